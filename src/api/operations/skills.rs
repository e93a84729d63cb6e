//! Operations on skills: rank, list, describe, read.

use super::answers::{ClientProfileList, ClientProfileName, LevelList, LineList, LintRuleList, Rescan};
use super::arguments::{
    ClientArguments, NoArguments, SeveralSkillsArguments, SkillArguments, SkillFileArguments,
    SkillLinesArguments, SkillPairArguments,
};
use super::{CallContext, Hints, Operation, Route, Scope};
use crate::{
    BudgetFitRequest, Code, CollisionFilter, Connection, DraftRequest, Error, GoldenExplainRequest,
    GoldenRequest, LintFilter, ListFilter, VisibilityRequest, WhyRequest, lint_rules, visibility, why,
};
use skills_base::number::inflected;
use skills_discovery::Request;

/// Default number of skills in the result of a tool call.
pub(super) const TOOL_PAGE: usize = 50;
/// The same for the visibility of skills, which has a cell for each client.
const VISIBILITY_PAGE: usize = 10;
/// Maximum number of skills whose tokens are counted in one call.
const MAX_COUNTED_SKILLS: usize = 1000;

/// Maximum number of results times words of the request: each result has a breakdown with a row for each word.
const MAX_BREAKDOWN_ROWS: usize = 50_000;

/// Rejects a request whose breakdowns would be too large.
fn ensure_few_breakdowns(request: &Request) -> Result<(), Error> {
    let words = request.intent.split_whitespace().count().max(request.intent.len() / 16).max(1);
    if request.limit.saturating_mul(words) <= MAX_BREAKDOWN_ROWS {
        return Ok(());
    }
    let most = MAX_BREAKDOWN_ROWS / words;
    let message = format!(
        "`limit`: {} results of a request of {words} words have too many breakdown rows; use at most {most}, or a \
         shorter request",
        request.limit
    );
    Err(Error::new(Code::InvalidRequest, message))
}

pub(super) fn operations() -> Vec<Operation> {
    let mut operations = reading_operations();
    operations.extend(visibility_operations());
    operations.extend(description_operations());
    operations.extend(rival_operations());
    operations.extend(catalog_operations());
    operations
}

/// Finds skills, and reads one.
fn reading_operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "skill.discover",
            Route::post("/v1/skills/discover"),
            Scope::Read,
            "Ranks skills for a request, with the breakdown of every score and a verdict on whether the \
                first fits.",
            |context: CallContext, request: Request| async move {
                let core = &context.service.core;
                core.wait_for_bodies().await;
                ensure_few_breakdowns(&request)?;
                let mut answer = core.discover(request).await?;
                if answer.bodies_missing > 0 && core.connection() == Connection::Local {
                    let bodies = inflected(answer.bodies_missing, "body is", "bodies are");
                    answer.verdict.sentence += &format!("; {bodies} still being read");
                }
                Ok(answer)
            },
        )
        .read_only()
        .tool(),
        Operation::new(
            "skill.list",
            Route::get("/v1/skills/list"),
            Scope::Read,
            "Lists skills by domain, role, status or a fuzzy query, optionally by page.",
            |context: CallContext, filter: ListFilter| async move { context.service.core.list(filter).await },
        )
        .shared()
        .pages(TOOL_PAGE)
        .tool(),
        Operation::new(
            "skill.describe",
            Route::get("/v1/skills/{skill_id}/describe"),
            Scope::Read,
            "Returns a skill: metadata, source, findings, files.",
            |context: CallContext, one: SkillArguments| async move {
                context.service.core.describe(&one.skill_id).await
            },
        )
        .aliases([Route::get("/v1/skills/{skill_id}")])
        .tool(),
        Operation::new(
            "skill.contract",
            Route::get("/v1/skills/{skill_id}/contract"),
            Scope::Read,
            "Returns the contract of a skill: inputs, outputs, and steps with capabilities and gates.",
            |context: CallContext, one: SkillArguments| async move {
                let mut view = context.service.core.contract(&one.skill_id).await?;
                if !context.caller.may(Scope::Admin) {
                    view.steps.iter_mut().for_each(|step| step.binding = None);
                }
                Ok(view)
            },
        ),
        Operation::new(
            "skill.file",
            Route::get("/v1/skills/{skill_id}/file"),
            Scope::Read,
            "Returns a file of a skill's folder.",
            |context: CallContext, file: SkillFileArguments| async move {
                context.service.core.read_file(&file.skill_id, &file.path).await
            },
        ),
        Operation::new(
            "skill.lines",
            Route::get("/v1/skills/{skill_id}/lines"),
            Scope::Read,
            "Returns the lines of a skill that match words of a request.",
            |context: CallContext, ask: SkillLinesArguments| async move {
                let lines = context.service.core.body_lines(&ask.skill_id, &ask.intent, ask.limit).await?;
                Ok(LineList { lines })
            },
        ),
    ]
}

/// Explains what clients and the ranking show of skills.
fn visibility_operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "skill.why",
            Route::post("/v1/skills/why"),
            Scope::Read,
            "Explains why clients do or do not select a skill for a request: every check from its file \
                to the ranking, with evidence.",
            |context: CallContext, request: WhyRequest| async move {
                why(&*context.service.core, &request).await
            },
        )
        .read_only()
        .measures()
        .tool(),
        Operation::new(
            "skill.visibility",
            Route::get("/v1/skills/visibility"),
            Scope::Read,
            "Lists which clients show which skills to their models, how many words of each description, and \
                why not more.",
            |context: CallContext, request: VisibilityRequest| async move {
                visibility(&*context.service.core, &request).await
            },
        )
        .client_view()
        .shared()
        .pages(VISIBILITY_PAGE)
        .tool(),
    ]
}

/// Measures descriptions by requests and golden queries.
fn description_operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "skill.draft",
            Route::post("/v1/skills/draft"),
            Scope::Read,
            "Shows what a changed description would affect: ranking, golden queries, findings, tokens. \
                Writes nothing.",
            |context: CallContext, request: DraftRequest| async move {
                context.service.core.draft(request).await
            },
        )
        .measures()
        .read_only()
        .tool(),
        Operation::new(
            "golden.report",
            Route::post("/v1/golden/report"),
            Scope::Read,
            "Ranks the queries of the golden sets: metrics, failing queries with what won instead, confused \
                skills.",
            |context: CallContext, request: GoldenRequest| async move {
                context.service.core.golden_report(request).await
            },
        )
        .measures()
        .read_only()
        .tool(),
        Operation::new(
            "golden.explain",
            Route::post("/v1/golden/explain"),
            Scope::Read,
            "Explains the ranking of a golden query: score breakdowns of the expected and the first skill, \
                and a measured change of the description that wins it.",
            |context: CallContext, request: GoldenExplainRequest| async move {
                context.service.core.golden_explain(request).await
            },
        )
        .measures()
        .read_only()
        .tool(),
        Operation::new(
            "skill.budget.fit",
            Route::post("/v1/skills/budget/fit"),
            Scope::Read,
            "Returns the smallest change of descriptions and client settings that makes the lists of clients fit \
                their budgets without losing a golden query. Writes nothing.",
            |context: CallContext, request: BudgetFitRequest| async move {
                context.service.core.budget_fit(request).await
            },
        )
        .measures()
        .read_only(),
    ]
}

/// Compares skills with each other.
fn rival_operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "skill.rivals",
            Route::get("/v1/skills/{skill_id}/rivals"),
            Scope::Read,
            "Returns the nearest rivals of a skill: probe requests made from each clause of its description, \
                and golden queries, won and lost.",
            |context: CallContext, one: SkillArguments| async move {
                context.service.core.rivals(&one.skill_id).await
            },
        )
        .measures()
        .tool(),
        Operation::new(
            "skill.pair",
            Route::get("/v1/skills/{skill_id}/rivals/{rival}"),
            Scope::Read,
            "Compares two skills: the terms and clauses that separate them, and measured advice to merge, split \
                or add an exclusion.",
            |context: CallContext, pair: SkillPairArguments| async move {
                context.service.core.compare_skills(&pair.skill_id, &pair.rival).await
            },
        )
        .measures()
        .tool(),
        Operation::new(
            "skill.collisions",
            Route::get("/v1/skills/collisions"),
            Scope::Read,
            "Returns which skills win each other's requests: clusters, collisions, identical and template \
                descriptions. Computed in the background: ask again until `complete`.",
            |context: CallContext, filter: CollisionFilter| async move {
                context.service.core.collisions(filter).await
            },
        )
        .shared()
        .pages(TOOL_PAGE)
        .tool(),
    ]
}

/// Checks and counts the catalog, and reads it as a client does.
fn catalog_operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "skill.lint",
            Route::get("/v1/skills/lint"),
            Scope::Read,
            "Returns findings about the skills of the catalog, filtered by skill, severity or rule, with a \
                summary by rule.",
            |context: CallContext, filter: LintFilter| async move { context.service.core.lint(filter).await },
        )
        .shared()
        .pages(TOOL_PAGE)
        .tool(),
        Operation::new(
            "lint.rules",
            Route::get("/v1/lint/rules"),
            Scope::Read,
            "Lists the rules of the linter with reason and example.",
            |_: CallContext, _: NoArguments| async move { Ok(LintRuleList { rules: lint_rules() }) },
        ),
        Operation::new(
            "skill.tokens",
            Route::post("/v1/skills/tokens"),
            Scope::Read,
            "Returns tokens of skills at each disclosure level.",
            |context: CallContext, ask: SeveralSkillsArguments| async move {
                if ask.skills.len() > MAX_COUNTED_SKILLS {
                    let message =
                        format!("{} skills requested; the maximum is {MAX_COUNTED_SKILLS}", ask.skills.len());
                    return Err(Error::new(Code::InvalidRequest, message));
                }
                Ok(LevelList { levels: context.service.core.levels(ask.skills).await? })
            },
        )
        .read_only(),
        Operation::new(
            "skill.catalogue",
            Route::get("/v1/skills/catalogue"),
            Scope::Read,
            "Returns the complete catalog: roots, skills, shadowed and rejected ones.",
            |context: CallContext, _: NoArguments| async move { context.service.core.catalog().await },
        ),
        Operation::new(
            "skill.rescan",
            Route::post("/v1/skills/rescan"),
            Scope::Admin,
            "Rescans all roots.",
            |context: CallContext, _: NoArguments| async move {
                context.service.core.rescan().await?;
                Ok(Rescan { begun: true })
            },
        )
        .without_catalog()
        .hints(Hints { idempotent: true, ..Hints::default() })
        .status(202),
        Operation::new(
            "client.list",
            Route::get("/v1/clients"),
            Scope::Read,
            "Lists client profiles.",
            |context: CallContext, _: NoArguments| async move {
                let profiles = context.service.core.client_profiles().await?;
                let clients = profiles.into_iter().map(|(id, name)| ClientProfileName { id, name }).collect();
                Ok(ClientProfileList { clients })
            },
        )
        .without_catalog(),
        Operation::new(
            "client.view",
            Route::get("/v1/clients/{client}/view"),
            Scope::Read,
            "Returns the catalog as a client sees it: skills found, repaired, dropped and shadowed.",
            |context: CallContext, one: ClientArguments| async move {
                context.service.core.client_view(&one.client).await
            },
        )
        .client_view(),
    ]
}
