//! `why`: every check between a skill's file and a client's model loading it for a request.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

use super::client_view::shadowed_by;
use super::uncataloged_bundles::{is_named, linked_bundle, uncataloged_bundles};
use super::visibility::{Visibility, deciding_sources};
use super::{
    Client, ClientView, ClientViewState, Code, DraftMeasure, DraftPlace, DraftRequest, Error,
    GoldenExplainRequest, GoldenQuery, HiddenCause, request_limits,
};
use skills_discovery::{
    Advice, Answer, BreakdownTerm, ExcludedWhy, Fit, Hit, Mark, Request, SignalSums, TermKind, VerdictReason,
    contains_word, matched_exclusion,
};
use skills_registry::Catalog;
use skills_session::{ListedEntry, Shown, without_description};
use skills_skill::client::one_blank;
use skills_skill::client::{profile, profiles, with_when_to_use};
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
    /// Its rank, from 1.
    pub rank: usize,
    /// Its score.
    pub score: f64,
    /// The score by signal: name, description, body, semantic, rule.
    pub signals: SignalSums,
    /// Its description.
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
    /// Its score.
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

impl WhyReport {
    /// Returns the answer in one sentence or two: whether the skill is selected, and which clients do not offer it. What
    /// clients would do with a folder that none of them searches is conditional.
    pub fn answer(&self) -> String {
        let is_failed = |check: &WhyCheck| check.result == CheckResult::Fail;
        let ranks = !self.checks.iter().any(is_failed);
        let names = |is: &dyn Fn(&ClientChecks) -> bool| -> Vec<&str> {
            self.clients.iter().filter(|client| is(client)).map(|client| client.name.as_str()).collect()
        };
        let all = names(&|_| true);
        let is_about_all = all.len() + self.other_clients.len() >= profiles().len();
        let is_assumed =
            names(&|client| client.searches_folder).is_empty() && !names(&|client| client.assumed).is_empty();
        let hidden = names(&ClientChecks::is_hidden);
        let other = names(&|client| !client.is_hidden() && client.shows_other_text());
        let is_cut = |client: &ClientChecks| !client.is_hidden() && !client.shows_other_text();
        let cut = names(&|client| is_cut(client) && client.checks.iter().any(is_failed));
        let unknown = names(&|client| !client.is_hidden() && client.is_unknown());
        let is_none_left = is_about_all && !hidden.is_empty() && hidden.len() == all.len();
        let is_hidden_from_all = hidden.len() == all.len();
        let say = |names: &[&str], one: &str, more: &str, conditional: &str| {
            let verb = if is_assumed { conditional } else { number(names, one, more) };
            format!("{} {verb}", join_names(names))
        };
        // Without a request, the checks of the clients are the whole answer.
        let is_start = self.intent.is_none();
        let it = if is_start { "the skill" } else { "it" };
        let no_client = if is_start { "No client" } else { "no client" };
        let mut parts = Vec::new();
        if is_none_left {
            parts.push(if is_assumed {
                format!("none would offer {it}")
            } else {
                format!("{no_client} offers {it}")
            });
        } else if !hidden.is_empty() {
            let verb = say(&hidden, "does not offer", "do not offer", "would not offer");
            parts.push(format!("{verb} {it}"));
        }
        if !other.is_empty() {
            let shows = say(&other, "shows", "show", "would show");
            parts.push(format!("{shows} other text instead of its description"));
        }
        if parts.is_empty() && !cut.is_empty() {
            let shows = say(&cut, "does not show", "do not show", "would not show");
            parts.push(format!("{shows} all of its description"));
        }
        if !unknown.is_empty() {
            let offers = say(&unknown, "offers", "offer", "would offer");
            let is_first = is_start && !is_assumed && parts.is_empty();
            let it_is = if is_first { "It is" } else { "it is" };
            let it = if parts.is_empty() { it } else { "it" };
            parts.push(format!("{it_is} not known whether {offers} {it}"));
        }
        let searches = if is_about_all {
            format!("{no_client} searches this folder")
        } else {
            let verb = number(&all, "does not search", "do not search");
            format!("{} {verb} this folder", join_names(&all))
        };
        let offers = if is_assumed && self.intent.is_some() { searches.clone() } else { parts.join("; ") };
        match (&self.intent, ranks, offers.as_str()) {
            (Some(_), true, "") if self.wins => {
                "The skill is offered and ranks first for this request.".to_owned()
            }
            (Some(_), true, _) if self.ranking.is_some() => {
                format!("The skill ranks first for this request, but {offers}.")
            }
            // Nothing was compared with the request: whether the skill is selected is open.
            (Some(_), true, _) if !is_hidden_from_all => {
                let offering = names(&|client| !client.is_hidden() && !client.is_unknown());
                let offers = match offers.as_str() {
                    "" => format!("{} it", say(&offering, "offers", "offer", "would offer")),
                    offers => offers.to_owned(),
                };
                format!("The skill is not ranked here, so it may or may not be selected; {offers}.")
            }
            (Some(_), _, "") => "The skill is not selected for this request.".to_owned(),
            (Some(_), ..) => format!("The skill is not selected for this request, and {offers}."),
            (None, false, "") => "The skill is not in the catalog.".to_owned(),
            (None, ..) if is_assumed => {
                let they = if is_about_all { "it" } else { number(&all, "it", "they") };
                let who = if is_about_all { "one" } else { they };
                let then = match offers.as_str() {
                    "" => format!(", {they} would offer the skill"),
                    offers => format!(": {offers}"),
                };
                format!("{searches}; if {who} did{then}.")
            }
            (None, true, "") if is_about_all => "Clients offer the skill.".to_owned(),
            (None, true, "") => {
                let offering = names(&|client| !client.is_unknown());
                format!("{} the skill.", say(&offering, "offers", "offer", ""))
            }
            (None, ..) => format!("{offers}."),
        }
    }
}

/// Returns the form of a verb for these subjects.
fn number<'w>(names: &[&str], one: &'w str, more: &'w str) -> &'w str {
    if names.len() == 1 { one } else { more }
}

/// Joins names: `a`, `a and b`, `a, b and c`.
fn join_names(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns what a client shows of a skill if it is another text than the description.
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
/// Maximum number of characters of another text quoted as evidence.
const MAX_QUOTED: usize = 80;

/// Codes of warnings about the file for which clients drop it or show other text.
const CLIENT_DEFECTS: [&str; 2] = [rules::BYTE_ORDER_MARK.code, rules::LEADING_BLANK_LINES.code];

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
    let known = core.client_profiles().await?;
    let is_requested =
        |id: &str| request.clients.is_empty() || request.clients.iter().any(|wanted| wanted == id);
    // An unknown client is rejected with similar ids.
    for unknown in request.clients.iter().filter(|id| !known.iter().any(|(known, _)| known == *id)) {
        core.client_view(unknown).await?;
    }
    let views = known.iter().filter(|(id, _)| is_requested(id)).map(|(id, _)| core.client_view(id));
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
    let failed = |check: &WhyCheck| check.result == CheckResult::Fail;
    // With a request, a skill that is not ranked does not win.
    let is_ranked = intent.is_none() || ranking.is_some();
    let wins = is_ranked
        && !checks.iter().any(failed)
        && !clients.iter().any(|client| client.checks.iter().any(failed));
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

async fn subject(core: &(impl Client + ?Sized), wanted: &str) -> Result<ExaminedSkill, Error> {
    match core.describe(wanted).await {
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
                None => is_named(&one.id, &one.location, wanted),
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
                    _ => rejection_cause(refusal).map_or_else(|| parse.help.clone(), |cause| Some(action(cause))),
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
fn foreign_subject(catalog: &Catalog, views: &[ClientView], wanted: &str) -> Option<ExaminedSkill> {
    let all = uncataloged_bundles(views, catalog);
    let (id, one) = all.into_iter().find(|(id, one)| is_named(id, &one.location, wanted))?;
    let root = one.location.parent().and_then(Path::parent).unwrap_or(&one.location);
    let is_above = |link: &RejectedBundle| {
        link.reason == RefusalReason::LeavesRoot && one.location.starts_with(&link.location)
    };
    let place = catalog.refused.iter().find(|refusal| is_above(refusal)).map_or_else(
        || "in no root of this catalog".to_owned(),
        |link| format!("behind {}, a symbolic link out of its root", link.location.display()),
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
    wanted: &str,
) -> ExaminedSkill {
    let own = catalog.refused.iter().filter(|refusal| refusal.location == subject.location);
    let meant = catalog.refused.iter().filter(|refusal| is_named(&refusal.id, &refusal.location, wanted));
    let mut links = own.chain(meant);
    let read = links.find_map(|refusal| Some((refusal, linked_bundle(views, refusal)?)));
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

/// Returns the check of a file that could be parsed, with the first finding of a repair.
fn parsed(findings: &[Finding]) -> WhyCheck {
    match defect(findings) {
        None => WhyCheck::pass(CheckKind::Parse, "the file can be parsed"),
        Some(error) => WhyCheck {
            help: Some(error.help.clone()),
            ..WhyCheck::pass(
                CheckKind::Parse,
                format!(
                    "Skill Workbench can parse the file, with {}: {}",
                    if error.severity == Severity::Error { "an error" } else { "a warning" },
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
    rejection_cause(refusal).map_or_else(|| "the file is refused".to_owned(), finding_text)
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

/// Returns the exclusion clause that a request matches by other words than those of the skill's own subject: most
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
                "not applied: of the exclusion clause “{noted}” the request contains only single words, or words \
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
            let winner = format!("{id} {wins} with {:.2}, {ahead:.2} ahead{but}", winner.score);
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
            (0..breakdown.words.len()).filter(|row| breakdown.words[*row].query_word == Some(word)).collect();
        let mut fields: Vec<String> = Vec::new();
        // A piece of a word or its meaning is not the word.
        let is_term = |part: &&BreakdownTerm| part.kind == TermKind::Term && rows.contains(&part.word);
        for part in breakdown.parts.iter().filter(is_term) {
            if let Some(field) =
                part.field.as_deref().filter(|field| !fields.iter().any(|known| known == field))
            {
                fields.push(field.to_owned());
            }
        }
        (fields, rows.iter().map(|row| breakdown.words[*row].sum).sum())
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
        let wanted: Vec<&WhyTerm> =
            terms.iter().copied().filter(|term| !is_excluded(term) && !is_number(term)).collect();
        if wanted.is_empty() {
            return String::new();
        }
        format!("add {} to the description if the skill does that", list(&wanted, quoted))
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

/// Returns the evidence of a folder that the client does not search, and what to do.
fn not_searched(view: &ClientView, subject: &ExaminedSkill) -> (String, String) {
    let name = &view.name;
    let evidence = format!("{name} does not search {}", folder_of(&subject.location));
    let is_same = |entry: &&ListedEntry| entry.name == subject.name && !entry.bundled;
    let own = view.list.included().find(is_same);
    if let Some((entry, path)) = own.and_then(|own| Some((own, own.location.as_ref()?))) {
        let id = entry.skill_id.as_ref().map_or_else(|| path.display().to_string(), ToString::to_string);
        let evidence = format!("{evidence}; it lists another copy: {}", path.display());
        return (evidence, format!("edit that copy, or see `skills why {id} --client {}`", view.client));
    }
    (evidence, link_help(view))
}

fn link_help(view: &ClientView) -> String {
    let (name, id) = (&view.name, &view.client);
    format!("copy or link it into a folder that {name} searches (listed by `skills list --client {id}`)")
}

/// Returns the checks of a client, up to the first that fails.
fn client_checks(
    view: &ClientView,
    subject: &ExaminedSkill,
    terms: &[WhyTerm],
    has_request: bool,
) -> ClientChecks {
    use CheckKind::{Folder, Name, Offered, Parse};
    let name = &view.name;
    let is_listed = || view.listed(&subject.id, &subject.location).is_some();
    // What the catalog does not contain is known because a client found it.
    let is_found = || view.foreign.iter().any(|one| one.location == subject.location && !one.missed);
    let entry = view.entry_of(&subject.id, &subject.location);
    let (state, setting, place_help) = match &entry {
        Some(entry) => (Some(&entry.state), entry.setting.as_deref(), entry.help.as_deref()),
        None => (None, None, None),
    };
    let assumed = entry.as_ref().is_some_and(|entry| entry.assumed);
    let is_shipped = || {
        let folders = view.assumed_folders.iter();
        folders.filter(|folder| subject.location.starts_with(&folder.path)).any(|folder| folder.shipped)
    };
    let mut checks = Vec::new();
    let mut searches_folder = !assumed;
    let searched = || {
        if !assumed {
            return WhyCheck::pass(Folder, format!("{name} searches the folder"));
        }
        let evidence = if is_shipped() {
            format!("shipped skill: checked as if {name} searched its folder")
        } else {
            format!("given by --root: checked as if {name} searched it")
        };
        WhyCheck::unknown(Folder, evidence)
    };
    // In a folder that the client does not search, moving the file inside it does not help.
    let not_found = |why: String, help: &str| {
        let found = assumed.then(searched);
        let failed = if assumed {
            WhyCheck::fail(Folder, format!("would not find it there: {why}"), link_help(view))
        } else {
            WhyCheck::fail(Folder, why, help)
        };
        found.into_iter().chain([failed])
    };
    let (mut description, mut repaired) = (None, None);
    let read = || WhyCheck::pass(Parse, format!("{name} reads the file"));
    match state {
        None | Some(ClientViewState::NotLooked) => {
            searches_folder = false;
            let (evidence, help) = not_searched(view, subject);
            checks.push(WhyCheck::fail(Folder, evidence, help));
        }
        Some(ClientViewState::TooDeep(top)) => checks.extend(not_found(
            format!("nested too deep ({name} searches only direct subfolders of {})", top.display()),
            &format!("move the folder directly into {}", top.display()),
        )),
        Some(ClientViewState::NotRead(why)) => {
            checks.extend(not_found(why.clone(), place_help.unwrap_or_default()));
        }
        Some(ClientViewState::Dropped(why)) => {
            let help = place_help.map_or_else(|| repair_help(subject), str::to_owned);
            let named = why.starts_with(name.as_str());
            let evidence = if named { why.clone() } else { format!("{name} drops it: {why}") };
            checks.extend([searched(), WhyCheck::fail(Parse, evidence, help)]);
        }
        Some(ClientViewState::Unknown(what)) if setting.is_some() => checks.extend([
            searched(),
            read(),
            WhyCheck::pass(Name, "not shadowed"),
            WhyCheck::unknown(Offered, what.clone()),
        ]),
        Some(ClientViewState::Unknown(what)) if is_listed() || is_found() => {
            checks.extend([searched(), WhyCheck::unknown(Parse, what.clone())]);
        }
        // Whether the client finds it is unknown.
        Some(ClientViewState::Unknown(what)) => checks.push(WhyCheck::unknown(Folder, what.clone())),
        Some(ClientViewState::Shadowed(winner)) => checks.extend([
            searched(),
            read(),
            WhyCheck::fail(
                Name,
                shadowed_by(winner, place_help.is_some()),
                place_help.unwrap_or("remove or rename one of the two"),
            ),
        ]),
        Some(ClientViewState::ForPeople(said)) => checks.extend([
            searched(),
            read(),
            WhyCheck::pass(Name, "not shadowed"),
            WhyCheck::fail(
                Offered,
                format!("user-only; the model cannot invoke it: {said}"),
                format!("remove {said} if the model of {name} should invoke the skill"),
            ),
        ]),
        Some(ClientViewState::TurnedOff(said)) => checks.extend([
            searched(),
            read(),
            WhyCheck::pass(Name, "not shadowed"),
            WhyCheck::fail(
                Offered,
                format!("turned off in the settings of {name}: {said}"),
                format!("remove {said} if {name} should offer the skill"),
            ),
        ]),
        Some(ClientViewState::Waiting(until)) => checks.extend([
            searched(),
            read(),
            WhyCheck::pass(Name, "not shadowed"),
            WhyCheck::fail(
                Offered,
                format!("not offered yet: {until}"),
                format!("remove `paths` from the frontmatter if {name} should always offer the skill"),
            ),
        ]),
        Some(
            state @ (ClientViewState::Found | ClientViewState::Repaired(_) | ClientViewState::Either(_)),
        ) => {
            checks.push(searched());
            checks.push(if let ClientViewState::Repaired(how) = state {
                repaired = Some(how.clone());
                let help = Some(repair_help(subject)).filter(|help| !help.is_empty());
                let evidence = format!("{name} reads the file with a workaround: {how}");
                WhyCheck { help, ..WhyCheck::pass(Parse, evidence) }
            } else {
                read()
            });
            checks.push(if let ClientViewState::Either(others) = state {
                WhyCheck::unknown(
                    Name,
                    format!(
                        "several skills have its name, and the one that {name} lists varies between \
                            starts: {}",
                        others.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
                    ),
                )
            } else {
                WhyCheck::pass(Name, "not shadowed")
            });
            let withheld = view
                .not_listed
                .iter()
                .find(|group| group.names.iter().any(|name| name == subject.id.as_str()))
                // The names are those of skills of the catalog.
                .filter(|_| !is_found());
            if let Some(group) = withheld {
                checks.push(WhyCheck::fail(Offered, group.why.clone(), withheld_help(group.cause)));
            } else {
                checks.push(WhyCheck::pass(Offered, "it is offered to the model"));
                let (check, cut) = description_check(view, subject, terms, has_request, repaired.as_deref());
                checks.push(check);
                description = cut;
            }
        }
    }
    let decided = match state {
        None | Some(ClientViewState::NotLooked | ClientViewState::TooDeep(_)) => Visibility::NotSearched,
        Some(ClientViewState::Shadowed(_) | ClientViewState::Either(_)) => Visibility::Shadowed,
        Some(ClientViewState::ForPeople(_)) => Visibility::Manual,
        Some(_) if description.is_some() => Visibility::Cut,
        Some(_) => Visibility::Unknown,
    };
    ClientChecks {
        client: view.client.clone(),
        name: name.clone(),
        source: deciding_sources(&view.client, decided, &view.source),
        searches_folder,
        assumed,
        checks,
        repaired,
        description,
    }
}

/// What to do about a file that a client drops and to which a link leads that the catalog does not follow.
const CORRECT_LINKED_FILE: &str = "correct the file to which the link leads";

fn action(finding: &Finding) -> String {
    finding.action().to_owned()
}

/// Returns what to do about a file that a client drops.
fn repair_help(subject: &ExaminedSkill) -> String {
    if subject.location.file_name().is_none_or(|name| name != "SKILL.md") {
        return "rename the file to SKILL.md".to_owned();
    }
    subject.repair.clone().unwrap_or_default()
}

fn folder_of(location: &Path) -> String {
    let folder = location.parent().and_then(Path::parent).unwrap_or(location);
    folder.display().to_string()
}

/// Returns what to do about a skill that this program hides from the models of all clients.
fn withheld_help(cause: Option<HiddenCause>) -> &'static str {
    if cause == Some(HiddenCause::Policy) {
        "`skills policy explain` names the rule"
    } else {
        "remove `disable-model-invocation` if models should invoke the skill"
    }
}

/// Returns what a client shows of a description, without the ellipsis of a truncated one.
pub(super) fn shown_text<'l>(listed: &'l ListedEntry, shown: &Shown) -> &'l str {
    match shown {
        Shown::NameOnly { .. } | Shown::Omitted { .. } | Shown::Beyond => "",
        Shown::Complete | Shown::OtherText | Shown::Unknown { .. } if !listed.cut => &listed.description,
        Shown::Complete | Shown::OtherText | Shown::Unknown { .. } | Shown::Shortened { .. } => {
            listed.description.trim_end_matches(['…', '.', ' '])
        }
    }
}

/// Returns the id of a skill, even of one that cannot be parsed.
///
/// # Errors
/// Returns `not_found` with similar names.
pub(super) async fn subject_id(core: &(impl Client + ?Sized), wanted: &str) -> Result<SkillId, Error> {
    Ok(subject(core, wanted).await?.id)
}

/// Returns the check of what the client's catalog budget leaves of the description. `repaired` is how the client
/// repairs the file.
fn description_check(
    view: &ClientView,
    subject: &ExaminedSkill,
    terms: &[WhyTerm],
    has_request: bool,
    repaired: Option<&str>,
) -> (WhyCheck, Option<CutDescription>) {
    let kind = CheckKind::Description;
    let Some((listed, shown)) = view.listed(&subject.id, &subject.location) else {
        let evidence = format!("which text {} shows as the description is not known", view.name);
        return (WhyCheck::unknown(kind, evidence), None);
    };
    let text = shown_text(listed, shown);
    if listed.other_text && !text.is_empty() {
        let evidence = format!("{} shows {}", view.name, instead_of_description(text));
        return (WhyCheck::fail(kind, evidence, repair_help(subject)), None);
    }
    let profile = profile(&view.client);
    let when_to_use = subject.when_to_use.as_deref();
    let stated = profile.map_or_else(
        || subject.description.as_str().into(),
        |profile| profile.listable_text(&subject.description, when_to_use),
    );
    if let Shown::NameOnly { why } = shown
        && *why == without_description(&view.name)
    {
        let evidence = format!("only the name is shown: {why}");
        let nothing =
            CutDescription { shown: String::new(), cut: String::new(), lost_terms: Vec::new(), place: None };
        return (WhyCheck::fail(kind, evidence, repair_help(subject)), Some(nothing));
    }
    if !subject.parsed && subject.description.is_empty() && matches!(shown, Shown::Complete) {
        let evidence = format!("{} shows {}, which this catalog cannot read", view.name, quoted_start(text));
        return (WhyCheck::pass(kind, evidence), None);
    }
    let fit = format!(
        "shorten the whole list: `skills budget fit --client {}` (needs golden queries)",
        view.client
    );
    let (all, is_appended) = (stated.chars().count(), stated.len() > subject.description.len());
    // A repair may use only its beginning.
    let is_whole = repaired.is_none() || one_blank(&listed.description).starts_with(&one_blank(&stated));
    let cut_by_client = listed.cut || !stated.trim().starts_with(listed.description.trim());
    let text = match shown {
        Shown::Unknown { what } => return (WhyCheck::unknown(kind, what.clone()), None),
        Shown::Complete if !listed.cut && is_whole => {
            let evidence = match when_to_use {
                None => format!("all {all} characters of the description are shown"),
                Some(_) if is_appended => {
                    format!("all {all} characters of the description and `when_to_use` are shown")
                }
                Some(_) => {
                    format!("all {all} characters of the description are shown, but not `when_to_use`")
                }
            };
            return (WhyCheck::pass(kind, evidence), None);
        }
        Shown::Beyond => {
            let evidence = "the catalog exceeds the client's budget, and how the client truncates is not \
                published";
            return (WhyCheck::unknown(kind, evidence), None);
        }
        Shown::Omitted { why } => {
            return (WhyCheck::fail(kind, format!("not in the catalog: {why}"), fit), None);
        }
        Shown::NameOnly { .. } | Shown::Complete | Shown::OtherText | Shown::Shortened { .. } => text,
    };
    // If a client rewrites the text, the truncation cannot be shown in the original.
    let full = stated.trim();
    let common = full.chars().zip(text.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let (head, tail) = full.split_at(common);
    let is_lost = |term: &&WhyTerm| contains_word(tail, term.word()) && !contains_word(head, term.word());
    let lost_terms: Vec<String> = terms.iter().filter(is_lost).map(|term| term.term.clone()).collect();
    let count = head.chars().count();
    let why = match shown {
        Shown::Shortened { why, .. } | Shown::NameOnly { why } => why.clone(),
        _ if cut_by_client => "the client's own limit for one description".to_owned(),
        _ => String::new(),
    };
    let because = if why.is_empty() { String::new() } else { format!(" ({why})") };
    let evidence = if count == 0 {
        format!("only the name is shown{because}")
    } else {
        format!("{count} of {all} characters are shown{because}")
    };
    // If no description is shown, no change of this one helps.
    let setting = listed.name_only.as_ref();
    let removed = setting.map(|setting| format!("remove {setting} if the model should see the description"));
    let help = if let Some(removed) = &removed {
        removed
    } else if text.is_empty() {
        fit.as_str()
    } else {
        "put the most important terms first, or shorten the description"
    };
    let check = if !lost_terms.is_empty() {
        let lost = lost_terms.iter().map(|term| format!("“{term}”")).collect::<Vec<_>>().join(", ");
        WhyCheck::fail(kind, format!("{evidence}; cut off: {lost}"), help)
    } else if has_request && count > 0 {
        WhyCheck::pass(kind, format!("{evidence}; no term of the request is cut off"))
    } else {
        WhyCheck::fail(kind, evidence, help)
    };
    let cut = CutDescription { shown: head.to_owned(), cut: tail.to_owned(), lost_terms, place: None };
    (check, Some(cut))
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
