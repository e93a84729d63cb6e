//! `why`: every check between a skill's file and a client's model loading it for a request.

mod answer;
mod client_checks;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

use self::client_checks::client_checks;
use super::uncataloged_bundles::{ListedEntries, is_named, linked_bundle, uncataloged_bundles};
use super::{
    Client, ClientView, Code, DraftMeasure, DraftPlace, DraftRequest, Error, GoldenExplainRequest,
    GoldenQuery, request_limits,
};
use skills_discovery::{
    Advice, Answer, BreakdownTerm, ExcludedWhy, Fit, Hit, Mark, Request, SignalSums, TermKind, VerdictReason,
    matched_exclusion,
};
use skills_registry::Catalog;
use skills_session::{ListedEntry, Truncation};
use skills_skill::client::{one_blank, with_when_to_use};
use skills_skill::lint::rules;
use skills_skill::{Finding, RefusalReason, RejectedBundle, Severity, SkillId};

/// Which skill, for which request, in which clients.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyRequest {
    /// Id, unambiguous name or location, also of a file that cannot be parsed.
    pub skill_id: String,
    /// The request; without one, checks that need it are skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20_000))]
    pub intent: Option<String>,
    /// Ids of client profiles; default: those that search the skill's folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub clients: Vec<String>,
}

/// The checks, in the order in which they decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CheckKind {
    /// The client searches the folder.
    Folder,
    /// The file can be parsed.
    Parse,
    /// The skill is not shadowed.
    Name,
    /// The client offers the skill to its model.
    Offered,
    /// The description survives the client's catalog budget.
    Description,
    /// The skill is ranked first, and fits.
    Rank,
    /// The skill has the terms of the request.
    Terms,
    /// No exclusion clause of the description matches the request.
    Exclusion,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Display, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CheckResult {
    /// Passed.
    Pass,
    /// Failed: a reason why the skill is not selected.
    Fail,
    /// Unknown.
    Unknown,
}

/// A check with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhyCheck {
    /// What was checked.
    pub check: CheckKind,
    /// The result.
    pub result: CheckResult,
    /// Evidence for the result, as a sentence without a final period.
    pub evidence: String,
    /// What to do, if the check failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl WhyCheck {
    fn new(check: CheckKind, result: CheckResult, evidence: impl Into<String>) -> Self {
        Self { check, result, evidence: evidence.into(), help: None }
    }

    fn pass(check: CheckKind, evidence: impl Into<String>) -> Self {
        Self::new(check, CheckResult::Pass, evidence)
    }

    fn fail(check: CheckKind, evidence: impl Into<String>, help: impl Into<String>) -> Self {
        let help = help.into();
        Self { help: (!help.is_empty()).then_some(help), ..Self::new(check, CheckResult::Fail, evidence) }
    }

    fn unknown(check: CheckKind, evidence: impl Into<String>) -> Self {
        Self::new(check, CheckResult::Unknown, evidence)
    }

    fn is_failed(&self) -> bool {
        self.result == CheckResult::Fail
    }
}

/// A description that a client's budget truncates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CutDescription {
    /// The part that the model receives.
    pub shown: String,
    /// The part that it does not receive.
    pub cut: String,
    /// Terms of the request that are only in the truncated part.
    pub lost_terms: Vec<String>,
    /// The skill's rank for the request with only the shown part as its description, measured by a draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<DraftPlace>,
}

/// The checks of one client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientChecks {
    /// Id of its profile.
    pub client: String,
    /// Name of the client.
    pub name: String,
    /// Sources of the profile.
    pub source: String,
    /// Whether the client searches the skill's folder.
    pub searches_folder: bool,
    /// Whether the checks assume that it does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// The checks, in order; none after the first that fails.
    pub checks: Vec<WhyCheck>,
    /// How the client repairs the file, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repaired: Option<String>,
    /// The description, as truncated by the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<CutDescription>,
}

impl ClientChecks {
    /// Returns whether all checks pass without a repair, and the description is shown in full. An assumed folder is
    /// not a check.
    pub fn passes(&self) -> bool {
        let is_passed = |check: &WhyCheck| check.result == CheckResult::Pass || self.assumes(check);
        self.description.is_none() && self.repaired.is_none() && self.checks.iter().all(is_passed)
    }

    /// Returns whether a check is the one of an assumed folder.
    pub fn assumes(&self, check: &WhyCheck) -> bool {
        self.assumed && check.check == CheckKind::Folder && check.result == CheckResult::Unknown
    }

    /// Returns whether the client shows other text instead of the description.
    fn shows_other_text(&self) -> bool {
        let is_other =
            |check: &WhyCheck| check.check == CheckKind::Description && check.result == CheckResult::Fail;
        self.repaired.is_some() && self.description.is_none() && self.checks.iter().any(is_other)
    }

    /// Returns whether it is not known whether the client offers the skill.
    fn is_unknown(&self) -> bool {
        let is_unknown = |check: &WhyCheck| {
            let is_open = check.result == CheckResult::Unknown && check.check != CheckKind::Description;
            is_open && !self.assumes(check)
        };
        self.checks.iter().any(is_unknown)
    }

    /// Returns whether the client shows nothing of the skill to its model.
    fn is_hidden(&self) -> bool {
        let is_shown = self.description.is_some() || self.repaired.is_some();
        let hides = |check: &WhyCheck| check.check != CheckKind::Description || !is_shown;
        self.checks.iter().any(|check| check.result == CheckResult::Fail && hides(check))
    }
}

/// A term of the request, in the skill and in the first result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhyTerm {
    /// As written in the request.
    pub term: String,
    /// The word that a misspelled term is read as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_as: Option<String>,
    /// Fields of the skill that have it.
    pub fields: Vec<String>,
    /// Points for the skill.
    pub points: f64,
    /// Fields of the first result that have it.
    pub winner_fields: Vec<String>,
    /// Points for the first result.
    pub winner_points: f64,
}

impl WhyTerm {
    /// Returns the word that is looked up: the corrected one if the term is misspelled.
    pub fn word(&self) -> &str {
        self.read_as.as_deref().unwrap_or(&self.term)
    }

    /// Returns the term, with the word that it is read as.
    pub fn label(&self) -> String {
        match &self.read_as {
            Some(word) => format!("{}, read as {word}", self.term),
            None => self.term.clone(),
        }
    }
}

/// A result with the texts that counted for its score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhyHit {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// Rank of the skill, from 1.
    pub rank: usize,
    /// Score of the skill.
    pub score: f64,
    /// The score by signal: name, description, body, semantic, rule.
    pub signals: SignalSums,
    /// Description of the skill.
    pub description: String,
    /// What counted in the description.
    pub description_marks: Vec<Mark>,
}

impl WhyHit {
    fn of(hit: &Hit, rank: usize) -> Self {
        Self {
            skill_id: hit.skill_id.clone(),
            rank,
            score: hit.score,
            signals: hit.breakdown.signals,
            description: hit.description.clone(),
            description_marks: hit.description_marks.clone(),
        }
    }
}

/// The skill's rank for the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhyRanking {
    /// The skill's rank among all results, from 1; none if it is not a result.
    pub rank: Option<usize>,
    /// Score of the skill.
    pub score: Option<f64>,
    /// The result to compare with: the first; the second, if the skill itself is first.
    #[serde(rename = "rival")]
    pub other: Option<SkillId>,
    /// The score of that result.
    #[serde(rename = "rival_score")]
    pub other_score: Option<f64>,
    /// The verdict about the first result.
    pub verdict: String,
    /// The terms of the request without stop words.
    pub terms: Vec<WhyTerm>,
    /// The score below which no skill fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "fits_from")]
    pub fit_threshold: Option<f64>,
    /// The skill as a result; none if it is not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<WhyHit>,
    /// The result to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "rival_hit")]
    pub other_hit: Option<WhyHit>,
    /// A change of the description that wins the request, measured by a draft; none if none was found or needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
}

/// The report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhyReport {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// Path of the skill's file.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub location: PathBuf,
    /// The request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Whether no check failed: with a request, the skill is first and fits.
    pub wins: bool,
    /// Checks that apply to every client: the file and the ranking.
    pub checks: Vec<WhyCheck>,
    /// The checks of each client.
    pub clients: Vec<ClientChecks>,
    /// Clients that do not search the skill's folder and were not requested by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_clients: Vec<String>,
    /// The ranking, if there is a request and the file can be parsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranking: Option<WhyRanking>,
}

/// Returns what a client shows of a skill if it differs from the description.
pub fn instead_of_description(text: &str) -> String {
    format!("{} instead of the description", quoted_start(text))
}

fn quoted_start(text: &str) -> String {
    let text = one_blank(text);
    let start: String = text.chars().take(MAX_QUOTED).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("“{start}{more}”")
}

/// Maximum number of words, articles and the like not counted, of a part of a clause that one word matches.
const MAX_SHORT_WORDS: usize = 4;
/// Scores that differ by less are equal at two decimals.
const TIE: f64 = 0.005;
/// Maximum number of characters of another text quoted as evidence.
const MAX_QUOTED: usize = 80;

/// Codes of warnings about the file for which clients drop it or show other text.
const CLIENT_DEFECTS: [&str; 2] = [rules::BYTE_ORDER_MARK.code, rules::LEADING_BLANK_LINES.code];

/// What to do about a file that a client drops, behind a link that the catalog does not follow.
const CORRECT_LINKED_FILE: &str = "fix the file that the link points to";

/// The skill in question, parsed or not.
struct ExaminedSkill {
    id: SkillId,
    /// Its name, which other copies have too.
    name: String,
    location: PathBuf,
    description: String,
    when_to_use: Option<String>,
    parse: WhyCheck,
    /// What to do about a defect of the file, for every client.
    repair: Option<String>,
    /// The bundle that wins its name in the catalog.
    shadowed_by: Option<PathBuf>,
    /// Whether it is ranked: it is in the catalog and could be parsed.
    parsed: bool,
}

/// Makes every check for a skill.
///
/// # Errors
/// Returns `not_found` with similar names, and the errors of `discover` and `client_view`.
pub async fn why(core: &(impl Client + ?Sized), request: &WhyRequest) -> Result<WhyReport, Error> {
    if let Some(intent) = &request.intent {
        // Before any work, which a request that is too long does not get.
        request_limits::intent(intent)?;
    }
    core.wait_for_catalog().await?;
    let profiles = core.client_profiles().await?;
    let is_requested =
        |id: &str| request.clients.is_empty() || request.clients.iter().any(|requested| requested == id);
    // An unknown client is rejected with similar ids.
    for unknown in request.clients.iter().filter(|id| !profiles.iter().any(|(profile, _)| profile == *id)) {
        core.client_view(unknown).await?;
    }
    let views = profiles.iter().filter(|(id, _)| is_requested(id)).map(|(id, _)| core.client_view(id));
    let views = futures::future::try_join_all(views).await?;
    let subject = match subject(core, &request.skill_id).await {
        Err(error) if error.code == Code::NotFound => {
            foreign_subject(&*core.catalog().await?, &views, &request.skill_id).ok_or(error)?
        }
        Ok(subject) if !subject.parsed => {
            as_clients_read(&*core.catalog().await?, &views, subject, &request.skill_id)
        }
        subject => subject?,
    };
    let intent = request.intent.as_deref().map(str::trim).filter(|intent| !intent.is_empty());
    let ranking = match intent.filter(|_| subject.parsed) {
        Some(intent) => Some(ranked(core, &subject, intent).await?),
        None => None,
    };
    let (ranking, rank_checks) =
        ranking.map_or((None, Vec::new()), |(ranking, checks)| (Some(ranking), checks));
    let terms = ranking.as_ref().map_or(&[][..], |ranking| ranking.terms.as_slice());
    let mut clients: Vec<ClientChecks> =
        views.iter().map(|view| client_checks(view, &subject, terms, intent.is_some())).collect();
    // The clients after which the folder is named come first.
    clients.sort_by_key(|client| !is_named_after(&subject.location, &client.client));
    if let Some(intent) = intent {
        measure_cuts(core, &subject.id, intent, &mut clients).await;
    }
    let mut other_clients = Vec::new();
    if request.clients.is_empty() && clients.iter().any(|client| client.searches_folder) {
        let (searching, others): (Vec<_>, Vec<_>) =
            clients.into_iter().partition(|client| client.searches_folder);
        other_clients = others.into_iter().map(|client| client.name).collect();
        clients = searching;
    }
    let mut checks = vec![subject.parse.clone()];
    if let Some(winner) = &subject.shadowed_by {
        checks.push(WhyCheck::fail(
            CheckKind::Name,
            format!("shadowed by another copy in this catalog: {}", winner.display()),
            "remove or rename one of the two copies",
        ));
    }
    checks.extend(rank_checks);
    // With a request, a skill that is not ranked does not win.
    let is_ranked = intent.is_none() || ranking.is_some();
    let wins = is_ranked
        && !checks.iter().any(WhyCheck::is_failed)
        && !clients.iter().any(|client| client.checks.iter().any(WhyCheck::is_failed));
    Ok(WhyReport {
        skill_id: subject.id,
        location: subject.location,
        intent: intent.map(str::to_owned),
        wins,
        checks,
        clients,
        other_clients,
        ranking,
    })
}

/// Ranks the skill with what each client shows of its description. If that cannot be measured, it has no rank.
async fn measure_cuts(
    core: &(impl Client + ?Sized),
    skill: &SkillId,
    intent: &str,
    clients: &mut [ClientChecks],
) {
    let mut measured: HashMap<String, Option<DraftPlace>> = HashMap::new();
    for cut in clients.iter_mut().filter_map(|client| client.description.as_mut()) {
        let shown = cut.shown.trim();
        if shown.is_empty() {
            continue;
        }
        if !measured.contains_key(shown) {
            let request = DraftRequest {
                skill_id: skill.to_string(),
                description: Some(shown.to_owned()),
                // Where the client appends it, it is part of what is shown.
                when_to_use: Some(String::new()),
                intent: Some(intent.to_owned()),
                measure: DraftMeasure::Request,
                ..DraftRequest::default()
            };
            let place = core.draft(request).await.ok().and_then(|report| report.after);
            measured.insert(shown.to_owned(), place);
        }
        cut.place = measured.get(shown).cloned().flatten();
    }
}

/// Returns a change of the description that wins the request, as for a golden query.
async fn advice(core: &(impl Client + ?Sized), skill: &SkillId, intent: &str) -> Option<Advice> {
    let query = GoldenQuery { query: intent.to_owned(), expect: vec![skill.clone()], not: None };
    let request = GoldenExplainRequest { query, queries: Vec::new() };
    core.golden_explain(request).await.ok().and_then(|explained| explained.advice)
}

async fn subject(core: &(impl Client + ?Sized), requested: &str) -> Result<ExaminedSkill, Error> {
    match core.describe(requested).await {
        Ok(detail) => {
            let parse = parsed(&detail.findings);
            Ok(ExaminedSkill {
                id: detail.summary.skill_id.clone(),
                name: detail.summary.name.clone(),
                location: detail.summary.location.clone(),
                description: detail.summary.description.clone(),
                when_to_use: detail.skill.clients.when_to_use.clone().filter(|text| !text.trim().is_empty()),
                repair: defect(&detail.findings).map(action),
                parse,
                shadowed_by: detail.summary.shadowed_by.clone(),
                parsed: true,
            })
        }
        // A rejected file has no record.
        Err(error) if matches!(error.code, Code::NotFound | Code::InvalidConfiguration) => {
            let catalog = core.catalog().await?;
            let mut all = catalog.refused.iter();
            let rejected = error.rejected_skill().map(SkillId::new);
            let is_wanted = |one: &&RejectedBundle| match &rejected {
                Some(id) => one.id == *id,
                None => is_named(&one.id, &one.location, requested),
            };
            let refusal = all.find(is_wanted).ok_or(error)?;
            let parse = rejected_check(refusal);
            Ok(ExaminedSkill {
                id: refusal.id.clone(),
                name: refusal.id.to_string(),
                location: refusal.location.clone(),
                description: String::new(),
                when_to_use: None,
                repair: match refusal.reason {
                    RefusalReason::LeavesRoot => Some(CORRECT_LINKED_FILE.to_owned()),
                    _ => rejection_cause(refusal)
                        .map_or_else(|| parse.help.clone(), |cause| Some(action(cause))),
                },
                parse,
                shadowed_by: None,
                parsed: false,
            })
        }
        Err(error) => Err(error),
    }
}

/// Returns a bundle that clients find and that the catalog does not contain.
fn foreign_subject(catalog: &Catalog, views: &[ClientView], requested: &str) -> Option<ExaminedSkill> {
    let all = uncataloged_bundles(views, catalog);
    let (id, one) = all.into_iter().find(|(id, one)| is_named(id, &one.location, requested))?;
    let root = one.location.parent().and_then(Path::parent).unwrap_or(&one.location);
    let is_above = |link: &RejectedBundle| {
        link.reason == RefusalReason::LeavesRoot && one.location.starts_with(&link.location)
    };
    let place = catalog.refused.iter().find(|refusal| is_above(refusal)).map_or_else(
        || "in no root of this catalog".to_owned(),
        |link| format!("behind {}, a symbolic link that points outside its root", link.location.display()),
    );
    let parse = match one.error.as_ref().filter(|_| one.rejected) {
        // As a root, its folder would not make it a skill.
        Some(error) => {
            let evidence =
                format!("in no root of this catalog, which would reject it: {}", finding_text(error));
            WhyCheck::fail(CheckKind::Parse, evidence, error.help.clone())
        }
        None => WhyCheck {
            help: Some(format!("to rank it, add {} to the roots", root.display())),
            ..WhyCheck::unknown(
                CheckKind::Parse,
                format!("{place}: only its frontmatter is read, and it is not ranked"),
            )
        },
    };
    Some(ExaminedSkill {
        id,
        name: one.name.clone(),
        location: one.location.clone(),
        description: one.description.clone(),
        when_to_use: None,
        repair: one.error.as_ref().map(action),
        parse,
        shadowed_by: None,
        parsed: false,
    })
}

/// Returns a bundle that the catalog cannot read, with what clients read behind a link that the catalog does not follow.
/// Several links can have one name: of those that are meant, one that a client lists is preferred.
fn as_clients_read(
    catalog: &Catalog,
    views: &[ClientView],
    subject: ExaminedSkill,
    requested: &str,
) -> ExaminedSkill {
    let own = catalog.refused.iter().filter(|refusal| refusal.location == subject.location);
    let meant = catalog.refused.iter().filter(|refusal| is_named(&refusal.id, &refusal.location, requested));
    let mut links = own.chain(meant);
    let listed: Vec<ListedEntries<'_>> = views.iter().map(ListedEntries::of).collect();
    let read = links.find_map(|refusal| Some((refusal, linked_bundle(&listed, refusal)?)));
    let Some((link, (file, description))) = read else { return subject };
    let parse = rejected_check(link);
    let evidence = format!("{}; only its frontmatter is read, and it is not ranked", parse.evidence);
    let parse = WhyCheck { result: CheckResult::Unknown, evidence, ..parse };
    ExaminedSkill {
        id: link.id.clone(),
        location: file.to_owned(),
        description: description.to_owned(),
        repair: Some(CORRECT_LINKED_FILE.to_owned()),
        parse,
        ..subject
    }
}

/// Returns a finding with its line: `SKILL.md:3: … (bad-yaml)`.
pub fn finding_text(finding: &Finding) -> String {
    let line = finding.span.map(|span| format!(":{}", span.line)).unwrap_or_default();
    format!("{}{line}: {} ({})", finding.file.display(), finding.message, finding.code)
}

/// Returns the finding for which clients may not read the file as written: its first error, or a warning about a defect
/// for which they drop it.
pub(super) fn defect(findings: &[Finding]) -> Option<&Finding> {
    let error = findings.iter().find(|finding| finding.severity == Severity::Error);
    error.or_else(|| findings.iter().find(|finding| CLIENT_DEFECTS.contains(&finding.code.as_str())))
}

fn action(finding: &Finding) -> String {
    finding.action().to_owned()
}

/// Returns the check of a file that could be parsed, with the first finding of a repair.
fn parsed(findings: &[Finding]) -> WhyCheck {
    match defect(findings) {
        None => WhyCheck::pass(CheckKind::Parse, "the file can be parsed"),
        Some(error) => WhyCheck {
            help: Some(error.help.clone()),
            ..WhyCheck::pass(
                CheckKind::Parse,
                format!(
                    "the file can be parsed; lint {}: {}",
                    if error.severity == Severity::Error { "error" } else { "warning" },
                    finding_text(error)
                ),
            )
        },
    }
}

fn rejected_check(refusal: &RejectedBundle) -> WhyCheck {
    let evidence = rejection(refusal);
    match rejection_cause(refusal) {
        Some(error) => WhyCheck::fail(CheckKind::Parse, evidence, error.help.clone()),
        None => WhyCheck::fail(CheckKind::Parse, evidence, "run `skills lint` on its folder"),
    }
}

/// Returns why the file of a skill is rejected, for one that is not in the catalog: ``skill `x` is rejected:
/// SKILL.md:3: … (bad-yaml)``.
pub fn rejection_of(catalog: &Catalog, id: &SkillId) -> Option<String> {
    let mut refused = catalog.refused.iter();
    let refusal = refused.find(|refusal| refusal.id == *id && catalog.by_id(id.as_str()).is_none())?;
    Some(format!("skill `{id}` is rejected: {}", rejection(refusal)))
}

/// Returns the finding for which a file is rejected.
pub(super) fn rejection_cause(refusal: &RejectedBundle) -> Option<&Finding> {
    let error = refusal.findings.iter().rev().find(|finding| finding.severity == Severity::Error);
    error.or(refusal.findings.last())
}

/// Returns why a file is rejected, with its line: `SKILL.md:3: … (bad-yaml)`.
fn rejection(refusal: &RejectedBundle) -> String {
    rejection_cause(refusal).map_or_else(|| "the file is rejected".to_owned(), finding_text)
}

/// Returns the skill's rank, and the checks derived from it.
async fn ranked(
    core: &(impl Client + ?Sized),
    subject: &ExaminedSkill,
    intent: &str,
) -> Result<(WhyRanking, Vec<WhyCheck>), Error> {
    let request = |skill: Option<SkillId>, limit: usize| Request {
        intent: intent.to_owned(),
        skill,
        limit,
        ..Request::default()
    };
    let own = core.discover(request(Some(subject.id.clone()), 1)).await?;
    let first = core.discover(request(None, 2)).await?;
    let hit = own.results.first();
    let rank = hit.map(|hit| hit.rank.unwrap_or(1));
    let winner = first.results.first().filter(|winner| winner.skill_id != subject.id);
    let other = winner.or_else(|| first.results.get(1));
    let terms = terms(intent, &first, hit, winner);
    let mut checks = vec![rank_check(subject, &own, &first, rank, other)];
    let wins = rank == Some(1) && first.fit != Fit::None;
    let stated = with_when_to_use(&subject.description, subject.when_to_use.as_deref());
    let clause = match hit {
        Some(hit) => hit.exclusion_note.as_ref().and_then(|_| matched_clause(&stated, &terms)),
        None => matched_exclusion(&stated, intent),
    };
    // Words of another language in an English description win nothing.
    let is_foreign = first.verdict.reason == VerdictReason::Language;
    // A skill that is not a result for another reason was not compared with the request.
    let is_compared = hit.is_some() || is_without_terms(subject, &own);
    if is_compared {
        let mut check = terms_check(&terms, clause.as_deref(), winner, first.fit != Fit::None);
        if is_foreign {
            check.help = None;
        }
        checks.push(check);
    }
    if is_compared || clause.is_some() {
        let noted = hit.and_then(|hit| hit.exclusion_note.as_deref());
        checks.push(exclusion_check(clause.as_deref(), noted, wins));
    }
    let has_advice = is_compared && !wins && !is_foreign;
    let advice = if has_advice { advice(core, &subject.id, intent).await } else { None };
    let ranking = WhyRanking {
        fit_threshold: first.confidence.as_ref().map(|confidence| confidence.fit_threshold),
        own: hit.zip(rank).map(|(hit, rank)| WhyHit::of(hit, rank)),
        // If the skill itself is first, the other result is second.
        other_hit: other.map(|other| WhyHit::of(other, if winner.is_some() { 1 } else { 2 })),
        advice,
        rank,
        score: hit.map(|hit| hit.score),
        other: other.map(|other| other.skill_id.clone()),
        other_score: other.map(|other| other.score),
        verdict: first.verdict.sentence.clone(),
        terms,
    };
    Ok((ranking, checks))
}

/// Returns the exclusion clause that a request matches by words other than those of the skill's own subject: most
/// clauses repeat the subject to narrow it. One word matches only a short part of a clause.
fn matched_clause(description: &str, terms: &[WhyTerm]) -> Option<String> {
    let is_subject = |field: &String| ["name", "description", "tags"].contains(&field.as_str());
    let others = terms.iter().filter(|term| !term.fields.iter().any(is_subject));
    let others: Vec<&str> = others.map(WhyTerm::word).collect();
    let clause = matched_exclusion(description, &others.join(" "))?;
    let mut parts = clause.split([',', ';', ':']).flat_map(|part| part.split(" or "));
    let is_matched = |part: &str| {
        let part_clause = format!("not for {part}");
        let shared = others.iter().filter(|term| matched_exclusion(&part_clause, term).is_some()).count();
        let is_short = || part.split_whitespace().filter(|word| word.len() > 3).count() <= MAX_SHORT_WORDS;
        shared > 1 || shared == 1 && is_short()
    };
    parts.any(is_matched).then(|| clause.clone())
}

/// Returns the check of the exclusion clause that the request matches. A clause does not keep a skill from winning.
/// `noted` is the clause that shares any word with the request, which the results of the request name.
fn exclusion_check(clause: Option<&str>, noted: Option<&str>, wins: bool) -> WhyCheck {
    let kind = CheckKind::Exclusion;
    let Some(clause) = clause else {
        let shared = |noted| {
            format!(
                "not applied: the request contains only single words of the exclusion clause “{noted}”, or words \
                    that also describe the skill"
            )
        };
        let evidence = noted.map_or_else(|| "no exclusion clause matches the request".to_owned(), shared);
        return WhyCheck::pass(kind, evidence);
    };
    let evidence = format!("the request matches an exclusion clause of the description: “{clause}”");
    let help = "narrow the clause if the skill is meant for this request";
    if wins {
        return WhyCheck { help: Some(help.to_owned()), ..WhyCheck::unknown(kind, evidence) };
    }
    WhyCheck::fail(kind, evidence, help)
}

/// Returns whether the skill is not a result because it has none of the terms.
fn is_without_terms(subject: &ExaminedSkill, own: &Answer) -> bool {
    own.results.is_empty()
        && own.attachable.is_empty()
        && !own.excluded.iter().any(|excluded| excluded.skill_id == subject.id)
}

fn rank_check(
    subject: &ExaminedSkill,
    own: &Answer,
    first: &Answer,
    rank: Option<usize>,
    other: Option<&Hit>,
) -> WhyCheck {
    let kind = CheckKind::Rank;
    let Some((rank, hit)) = rank.zip(own.results.first()) else {
        let left_out = own.excluded.iter().find(|excluded| excluded.skill_id == subject.id);
        return match (left_out, own.attachable.first()) {
            (Some(excluded), _) => WhyCheck::fail(
                kind,
                format!("not ranked: {}", excluded.why),
                match excluded.reason {
                    ExcludedWhy::Deprecated => "change its status, or search with --include-deprecated",
                    ExcludedWhy::Policy(_) => "`skills policy explain` names the rule",
                    _ => "",
                },
            ),
            (None, Some(_)) => WhyCheck::fail(
                kind,
                "not ranked: a sidecar is offered for attachment only",
                "change its role if it should be found by requests",
            ),
            (None, None) => WhyCheck::fail(
                kind,
                match other {
                    Some(winner) => format!(
                        "not ranked: no term of the request matches the skill; {} is first with {:.2}",
                        winner.skill_id, winner.score
                    ),
                    None => "not ranked: no term of the request matches the skill".to_owned(),
                },
                "use the words of the request in the description",
            ),
        };
    };
    let score = hit.score;
    match (rank, other) {
        (1, _) if first.fit == Fit::None => {
            let (refused, advice) = match first.verdict.reason {
                VerdictReason::BelowThreshold => {
                    ("below the threshold", "use more of the request's words in the description")
                }
                VerdictReason::Language => {
                    ("it does not fit", "write the request in the language of the skills")
                }
                _ => ("it does not fit", "name the subject in the request"),
            };
            let sentence = &first.verdict.sentence;
            WhyCheck::fail(kind, format!("first with {score:.2}, but {refused}: {sentence}"), advice)
        }
        (1, Some(second)) if score - second.score < TIE => {
            WhyCheck::pass(kind, format!("first with {score:.2}, tied with {}", second.skill_id))
        }
        (1, Some(second)) => WhyCheck::pass(
            kind,
            format!("first with {score:.2}, {:.2} ahead of {}", score - second.score, second.skill_id),
        ),
        (1, None) => WhyCheck::pass(kind, format!("first with {score:.2}, and the only result")),
        (rank, Some(winner)) => {
            let (wins, but) = match (first.fit, first.verdict.reason) {
                (Fit::None, VerdictReason::BelowThreshold) => ("is first", ", but below the threshold"),
                (Fit::None, _) => ("is first", ", but does not fit"),
                _ => ("wins", ""),
            };
            let (id, ahead) = (&winner.skill_id, winner.score - score);
            let lead = if ahead < TIE { "tied".to_owned() } else { format!("{ahead:.2} ahead") };
            let winner = format!("{id} {wins} with {:.2}, {lead}{but}", winner.score);
            WhyCheck::fail(kind, format!("rank {rank} with {score:.2}; {winner}"), "")
        }
        (rank, None) => WhyCheck::unknown(kind, format!("rank {rank} with {score:.2}")),
    }
}

/// Returns the words of the request that are not stop words, with their fields in the skill and in the winner.
fn terms(intent: &str, answer: &Answer, own: Option<&Hit>, winner: Option<&Hit>) -> Vec<WhyTerm> {
    let of = |hit: Option<&Hit>, word: usize| -> (Vec<String>, f64) {
        let Some(breakdown) = hit.map(|hit| &hit.breakdown) else { return (Vec::new(), 0.0) };
        let rows: Vec<usize> =
            (0..breakdown.rows.len()).filter(|row| breakdown.rows[*row].query_word == Some(word)).collect();
        let mut fields: Vec<String> = Vec::new();
        // A piece of a word or its meaning is not the word.
        let is_term = |part: &&BreakdownTerm| part.kind == TermKind::Term && rows.contains(&part.row);
        for part in breakdown.terms.iter().filter(is_term) {
            if let Some(field) =
                part.field.as_deref().filter(|field| !fields.iter().any(|known| known == field))
            {
                fields.push(field.to_owned());
            }
        }
        (fields, rows.iter().map(|row| breakdown.rows[*row].sum).sum())
    };
    let mut seen = HashSet::new();
    let words = answer.words.iter().enumerate().filter(|(_, word)| !word.stop);
    words
        .map(|(at, word)| {
            let (fields, points) = of(own, at);
            let (winner_fields, winner_points) = of(winner, at);
            let term = intent.get(word.start as usize..word.end as usize).unwrap_or_default().to_owned();
            // A correction of the case alone is not a misspelling.
            let read_as = word.reading().filter(|read| !read.eq_ignore_ascii_case(&term)).map(str::to_owned);
            WhyTerm { term, read_as, fields, points, winner_fields, winner_points }
        })
        // A repeated word is scored where it occurs first.
        .filter(|term| seen.insert(term.word().to_lowercase()))
        .collect()
}

/// Returns the check of the terms. `clause` is the exclusion clause that the request matches: its words count against
/// the skill.
fn terms_check(terms: &[WhyTerm], clause: Option<&str>, winner: Option<&Hit>, fits: bool) -> WhyCheck {
    if terms.is_empty() {
        return WhyCheck::unknown(CheckKind::Terms, "the request contains only stop words");
    }
    let words_of = |text: &str| -> Vec<String> {
        let words = text.to_lowercase();
        let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(|word| word.trim_end_matches('s').to_owned()).collect()
    };
    let clause_words = words_of(clause.unwrap_or_default());
    let is_excluded = |term: &WhyTerm| {
        let words = words_of(term.word());
        !words.is_empty() && words.iter().all(|word| clause_words.contains(word))
    };
    let list = |terms: &[&WhyTerm], show: fn(&WhyTerm) -> String| {
        terms.iter().map(|term| show(term)).collect::<Vec<_>>().join(", ")
    };
    let quoted = |term: &WhyTerm| format!("“{}”", term.word());
    let missing: Vec<&WhyTerm> = terms.iter().filter(|term| term.fields.is_empty()).collect();
    let winning: Vec<&WhyTerm> =
        missing.iter().copied().filter(|term| !term.winner_fields.is_empty()).collect();
    let missing_text = missing
        .iter()
        .map(|term| {
            let place = if is_excluded(term) { " (only in the exclusion clause)" } else { "" };
            let written = term.read_as.as_ref().map(|_| format!(" (written “{}”)", term.term));
            format!("{}{}{place}", quoted(term), written.unwrap_or_default())
        })
        .collect::<Vec<_>>()
        .join(", ");
    let help = |terms: &[&WhyTerm]| {
        // A number is of one request, not of what the skill does.
        let is_number = |term: &WhyTerm| term.word().chars().all(|c| c.is_ascii_digit());
        let requested: Vec<&WhyTerm> =
            terms.iter().copied().filter(|term| !is_excluded(term) && !is_number(term)).collect();
        if requested.is_empty() {
            return String::new();
        }
        let condition = if requested.len() == 1 { "it applies" } else { "they apply" };
        format!("add {} to the description if {condition} to the skill", list(&requested, quoted))
    };
    match winner {
        _ if missing.is_empty() => {
            WhyCheck::pass(CheckKind::Terms, "the skill contains every term of the request")
        }
        Some(winner) if !winning.is_empty() => WhyCheck::fail(
            CheckKind::Terms,
            format!(
                "missing: {missing_text}; {} has {}",
                winner.skill_id,
                list(&winning, |term| format!("“{}” ({})", term.word(), term.winner_fields.join(", ")))
            ),
            help(&winning),
        ),
        Some(_) => WhyCheck::pass(
            CheckKind::Terms,
            format!("the first result does not have these terms either: {missing_text}"),
        ),
        None if fits => {
            WhyCheck::pass(CheckKind::Terms, format!("ranks first without these terms: {missing_text}"))
        }
        None => WhyCheck::fail(CheckKind::Terms, format!("missing: {missing_text}"), help(&missing)),
    }
}

/// Returns whether a folder of a path is named after a client: `.claude` after `claude-code`.
fn is_named_after(location: &Path, client: &str) -> bool {
    let name =
        |folder: &str| folder.strip_prefix('.').is_some_and(|name| client.split('-').next() == Some(name));
    location.components().any(|part| part.as_os_str().to_str().is_some_and(name))
}

/// Returns what a client shows of a description, without the ellipsis of a truncated one.
pub(super) fn shown_text<'l>(listed: &'l ListedEntry, shown: &Truncation) -> &'l str {
    match shown {
        Truncation::NameOnly { .. } | Truncation::Omitted { .. } | Truncation::Beyond => "",
        Truncation::Complete | Truncation::OtherText | Truncation::Unknown { .. } if !listed.cut => {
            &listed.description
        }
        Truncation::Complete
        | Truncation::OtherText
        | Truncation::Unknown { .. }
        | Truncation::Shortened { .. } => listed.description.trim_end_matches(['…', '.', ' ']),
    }
}

/// Returns the id of a skill, even of one that cannot be parsed.
///
/// # Errors
/// Returns `not_found` with similar names.
pub(super) async fn subject_id(core: &(impl Client + ?Sized), requested: &str) -> Result<SkillId, Error> {
    Ok(subject(core, requested).await?.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exclusion_clause_that_the_results_name_is_named() {
        let check = exclusion_check(None, Some("Not for subscriptions."), true);
        assert_eq!(check, WhyCheck::pass(CheckKind::Exclusion, check.evidence.clone()));
        assert!(check.evidence.contains("Not for subscriptions."), "{check:?}");
        let none = exclusion_check(None, None, true);
        assert_eq!(none.evidence, "no exclusion clause matches the request");
    }

    #[test]
    fn an_exclusion_clause_is_matched_by_its_own_subject() {
        let matched = |description: &str, words: &[(&str, &str)]| {
            let term = |(word, field): &(&str, &str)| WhyTerm {
                term: (*word).to_owned(),
                read_as: None,
                fields: if field.is_empty() { Vec::new() } else { vec![(*field).to_owned()] },
                points: 0.0,
                winner_fields: Vec::new(),
                winner_points: 0.0,
            };
            let terms: Vec<WhyTerm> = words.iter().map(term).collect();
            matched_clause(description, &terms).is_some()
        };
        let logs = "Condenses a log. Not for joining logs of several systems into one order of time.";
        assert!(!matched(logs, &[("log", "description"), ("errors", "")]), "its own subject");
        assert!(!matched(logs, &[("happened", ""), ("time", "")]), "one word of a long clause");
        assert!(matched(logs, &[("join", ""), ("logs", "description"), ("systems", "")]));
        assert!(matched("Makes bills. Not for subscriptions.", &[("cancel", ""), ("subscription", "")]));
        let list = "Makes charts. Not for long written reports, summaries of tables or yearly invoices.";
        assert!(matched(list, &[("invoice", "")]), "one word of a short part");
        assert!(matched(list, &[("summary", "body")]));
    }
}
