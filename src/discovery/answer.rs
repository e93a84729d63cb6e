//! The router's answer: results with their score breakdowns, and excluded skills with the reason.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter};

use skills_skill::{AttachTarget, EffectMode, Role, SkillId};

/// The five columns of a score, which sum to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, Display, EnumIter, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schemars(rename = "Signal")]
pub enum ScoreComponent {
    /// Contribution of the name.
    Name,
    /// Contribution of description and tags.
    Description,
    /// Contribution of headings and body.
    Body,
    /// Contribution of meaning (static embedding).
    Semantic,
    /// Role, status, read-only intent, exact matches by rule.
    Rule,
}

/// Which component of the formula a term is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TermKind {
    /// The query is, or names, an id, a name or a tag.
    Exact,
    /// One stem in one field (BM25F share).
    Term,
    /// Two adjacent stems in one field.
    Bigram,
    /// A stem that is only in headings or body.
    BodyOnly,
    /// A word piece of the request that the skill has.
    Presence,
    /// A word piece of the name that the request has.
    NameCover,
    /// A word piece's share of the centered cosine.
    Meaning,
    /// The main verb of the request is one of the skill's verbs.
    Task,
    /// A word of a description clause that the request contains completely.
    Clause,
    /// The constant of the centered cosine, one line per skill.
    GeneralWording,
    /// Role term.
    RuleRole,
    /// Status term.
    RuleStatus,
    /// Read-only term.
    RuleReadOnly,
    /// A preference of the user's policy.
    Policy,
}

/// One term of a score. All terms of a hit sum to its score within 1e-6.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BreakdownTerm {
    /// Its row: index into `words` of the breakdown.
    #[serde(rename = "word")]
    pub row: usize,
    /// Column of the term.
    pub signal: ScoreComponent,
    /// Which component of the formula.
    pub kind: TermKind,
    /// The field that contains it (`name`, `description`, `tags`, `headings`, `body`), if any.
    pub field: Option<Cow<'static, str>>,
    /// What matched, as shown (`table`, `table+pdf`, `##sheet`, `procedure`).
    pub label: String,
    /// The term.
    pub value: f64,
}

/// A row of the score breakdown: a word of the request (or a pair, or the rules) and its contribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WordRow {
    /// The word as interpreted (`tables`), a pair (`table+pdf`), `general wording`, `rules`, `exact`.
    pub label: String,
    /// Index into `words` of the answer for a single word of the request.
    pub query_word: Option<usize>,
    /// Its contribution by column, in the order name, description, body, semantic, rule.
    pub by_signal: [f64; 5],
    /// Their sum.
    pub sum: f64,
}

/// Sums by column, in the order name, description, body, semantic, rule.
pub type SignalSums = [f64; 5];

/// Score breakdown by words and signals; both sum to the score.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Breakdown {
    /// Rows, largest first; the last ones are pairs, general wording and rules.
    #[serde(rename = "words")]
    pub rows: Vec<WordRow>,
    /// Column sums.
    pub signals: SignalSums,
    /// Every term.
    #[serde(rename = "parts")]
    pub terms: Vec<BreakdownTerm>,
}

/// Which group a result is shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Group {
    /// Procedures.
    Primary,
    /// Utilities.
    Secondary,
    /// Sidecars, if requested by role.
    Attachable,
}

/// A matching range of a text: bytes of `name` or `description`, and the signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mark {
    /// First byte.
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
    /// The signal with the largest contribution there.
    pub signal: ScoreComponent,
}

/// A line of the body that matches words of the request (filled on demand).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BodyLine {
    /// Line in the file, from 1.
    pub line: u32,
    /// The line's text.
    pub text: String,
    /// Matching ranges, in bytes of `text`.
    pub marks: Vec<Mark>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Hit {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// Name of the skill.
    pub name: String,
    /// The score; answers are sorted by it (under `strict` by rules first).
    pub score: f64,
    /// The score before rule terms.
    pub z: f64,
    /// Role of the skill.
    pub role: Role,
    /// Effect of the skill.
    pub effect_mode: EffectMode,
    /// Summary of the largest terms.
    pub reason: String,
    /// Status of the skill, as shown.
    pub status: String,
    /// Where it is shown.
    pub group: Group,
    /// Description of the skill.
    pub description: String,
    /// Matches in the name.
    pub name_marks: Vec<Mark>,
    /// Matches in the description.
    pub description_marks: Vec<Mark>,
    /// The exclusion clause of the description that the request matches ("not for …").
    pub exclusion_note: Option<String>,
    /// The score, term by term.
    pub breakdown: Breakdown,
    /// The policy rule that requires approval, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_approval: Option<String>,
    /// Its rank among all results, from 1, if the request skips or filters results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
}

/// A sidecar that can be attached; not a separate result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Attachable {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// Name of the skill.
    pub name: String,
    /// Score of the skill for the request.
    pub score: f64,
    /// What it can be attached to.
    pub attach_targets: Vec<AttachTarget>,
    /// Number of results of the filtered request that precede it.
    #[serde(default)]
    pub results_before: usize,
}

/// Why a matching skill is not a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExcludedWhy {
    /// The skill's status is deprecated.
    Deprecated,
    /// Another bundle has its id; the location of the winner, for display.
    Shadowed(String),
    /// Excluded by the domain filter.
    Domain,
    /// Excluded by the role filter.
    Role,
    /// Denied by policy; the rule.
    Policy(String),
    /// Past the limit.
    BelowLimit,
}

/// A skill that matches but was excluded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Excluded {
    /// Id of the skill.
    pub skill_id: SkillId,
    /// Score of the skill for the request.
    pub score: f64,
    /// Why, as short text: `deprecated`, `a copy, shadowed by ~/.claude/skills`.
    pub why: String,
    /// Why, as a code.
    pub reason: ExcludedWhy,
}

/// Whether any skill fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[derive(Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Fit {
    /// No skill fits.
    #[default]
    None,
    /// A skill may fit, low confidence.
    Low,
    /// A skill fits.
    Medium,
    /// A skill fits, high confidence.
    High,
}

/// Lead of the first over the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schemars(rename = "Lead")]
pub enum Margin {
    /// No other skill has a similar score.
    Clear,
    /// The second result has a similar score.
    Ambiguous,
}

/// Confidence and its thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Confidence {
    /// Label of the confidence.
    pub fit: Fit,
    /// Calibrated probability that the first result fits, 0 to 1; displayed only as a label.
    pub p_fit: f64,
    /// Below this score, no skill fits.
    #[serde(rename = "fits_from")]
    pub fit_threshold: f64,
    /// From this score on, it fits without the label "unsure".
    #[serde(rename = "sure_from")]
    pub medium_threshold: f64,
    /// Lead of the first result over the second.
    pub lead: Margin,
}

/// Basis of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[derive(Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum VerdictReason {
    /// The first result reaches the threshold.
    Fits,
    /// It reaches the threshold only by corrected words, or in a language other than the skill's.
    FitsByReading,
    /// It does not reach the threshold.
    #[default]
    BelowThreshold,
    /// It reaches the threshold by stop words.
    StopWords,
    /// The request is in a language other than that of the first result.
    Language,
    /// No word of the request is known.
    NothingKnown,
}

/// A request that is not in the language of the skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RequestLanguage {
    /// ISO 639-1 code of the request's language; `und` if unknown.
    pub request: String,
    /// ISO 639-1 code of the language of most skills, or of the first result.
    pub skills: String,
}

/// Whether the first result fits, with its evidence and as a sentence, which every adapter shows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Verdict")]
pub struct FitVerdict {
    /// The first result; none if there are no results.
    pub skill_id: Option<SkillId>,
    /// Whether it fits; the same as `fit` of the answer.
    pub fit: Fit,
    /// Evidence for it.
    pub reason: VerdictReason,
    /// The language of the request, if it differs from that of the skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<RequestLanguage>,
    /// The verdict as text, without a final period.
    pub sentence: String,
}

/// A word of the request, as interpreted by the router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QueryWord {
    /// First byte in the intent.
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
    /// Whether it is a stop word (low weight).
    pub stop: bool,
    /// Whether index or embedding know it.
    pub known: bool,
    /// The interpretation that replaces the word, if any.
    pub correction: Option<Correction>,
}

impl QueryWord {
    /// Returns the word that replaces a misspelled one.
    #[must_use]
    pub fn reading(&self) -> Option<&str> {
        match &self.correction {
            Some(Correction::Typo(word)) => Some(word),
            _ => None,
        }
    }
}

/// A word that was interpreted as another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Correction {
    /// A misspelling.
    Typo(String),
    /// An unfinished last word and its completion.
    Completed(Vec<String>),
    /// An unfinished last word, ignored for now.
    Dropped,
}

/// Status of a matcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatcherState {
    /// Completed.
    Ran,
    /// Not applicable.
    Idle,
    /// Switched off by configuration.
    Off,
    /// Skipped for this query; why.
    Failed(String),
}

/// Contribution of one matcher to an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MatcherReport {
    /// `exact`, `typo`, `lexical`, `presence`, `task`, `semantic`.
    #[serde(rename = "link")]
    pub matcher: String,
    /// Outcome of the matcher.
    pub state: MatcherState,
    /// Number of candidates with signals.
    pub candidates: usize,
    /// Time it took, microseconds.
    pub took_us: u64,
}

/// The complete answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// Results, best first.
    pub results: Vec<Hit>,
    /// Sidecars that match.
    pub attachable: Vec<Attachable>,
    /// Excluded matches, best first, at most 20; `below_limit` is counted, not listed.
    pub excluded: Vec<Excluded>,
    /// Number of further matches beyond the limit.
    pub below_limit: usize,
    /// Whether any skill fits.
    pub fit: Fit,
    /// The verdict about the first result.
    #[serde(default)]
    pub verdict: FitVerdict,
    /// Fit, thresholds and lead; none if nothing could be ranked.
    pub confidence: Option<Confidence>,
    /// The words of the request as interpreted.
    pub words: Vec<QueryWord>,
    /// Result of each matcher.
    #[serde(rename = "links")]
    pub matchers: Vec<MatcherReport>,
    /// `bodies` or `short`: which weights were used.
    pub profile: String,
    /// Values of the request that no skill has, such as a misspelled domain, with a similar one that skills have; and
    /// why the only skill of the request has no score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Number of ranked skills.
    pub skills: usize,
    /// Number of those whose body is not indexed yet.
    pub bodies_missing: usize,
    /// Time it took, microseconds.
    pub took_us: u64,
}

impl Answer {
    /// Returns the words of the request that neither index nor embedding knows and that are not read as others. Of a run
    /// in a script without spaces, which is read as pairs of characters, returns the entire run if none of them is known.
    pub fn unknown_words<'i>(&self, intent: &'i str) -> impl Iterator<Item = &'i str> {
        let runs = self.words.chunk_by(|word, next| next.start < word.end);
        let is_unknown = |word: &QueryWord| !word.known && !word.stop && word.correction.is_none();
        runs.filter(move |run| run.iter().all(is_unknown))
            .filter_map(|run| intent.get(run.first()?.start as usize..run.last()?.end as usize))
    }
}
