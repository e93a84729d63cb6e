//! What the router answers: results with a breakdown that is the score, and what it left out and why.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter};

use skills_skill::{AttachTarget, EffectMode, Role, SkillId};

/// The five columns that a score is shown in. They add up to it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumIter,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Signal {
    /// What the name gave.
    Name,
    /// What description and tags gave.
    Description,
    /// What headings and body gave.
    Body,
    /// What meaning gave (static embedding).
    Semantic,
    /// Role, status, read-only intent, exact matches by rule.
    Rule,
}

/// Which term of the formula a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PartKind {
    /// The query is, or names, an id, a name or a tag.
    Exact,
    /// One stem in one field (BM25F share).
    Term,
    /// Two neighbouring stems in one field.
    Bigram,
    /// A stem that stands in headings or body only.
    BodyOnly,
    /// A word piece of the request that the skill has at all.
    Presence,
    /// A word piece of the name that the request has.
    NameCover,
    /// A word piece's share of the centred cosine.
    Meaning,
    /// The main verb of the request is one of the skill's.
    Task,
    /// A word of a description's clause that stands wholly in the request.
    Clause,
    /// The constant of the centred cosine, one line a skill.
    GeneralWording,
    /// Role term.
    RuleRole,
    /// Status term.
    RuleStatus,
    /// Read-only term.
    RuleReadOnly,
    /// A preference of the person's policy.
    Policy,
}

/// One addend of a score. All parts of a hit sum to its score within 1e-6.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Part {
    /// The row it is gathered under: index into [`Breakdown::words`].
    pub word: usize,
    /// The column it is gathered under.
    pub signal: Signal,
    /// Which term of the formula.
    pub kind: PartKind,
    /// The field it stands in (`name`, `description`, `tags`, `headings`, `body`), where there is one.
    pub field: Option<String>,
    /// What matched, as shown (`table`, `table+pdf`, `##sheet`, `procedure`).
    pub label: String,
    /// The addend.
    pub value: f64,
}

/// One row of the ledger: a word of the request (or a pair, or the rules) and what it gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WordRow {
    /// The word as it was read (`tables`), a pair (`table+pdf`), `general wording`, `rules`, `exact`.
    pub label: String,
    /// Index into [`Answer::words`] for a single word of the request.
    pub query_word: Option<usize>,
    /// What it gave by column, in the order name, description, body, semantic, rule.
    pub by_signal: [f64; 5],
    /// Their sum.
    pub sum: f64,
}

/// Sums by column, in the order name, description, body, semantic, rule.
pub type SignalSums = [f64; 5];

/// Why a score is what it is; adds up by word and by signal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Breakdown {
    /// Rows, largest first; the last ones are pairs, general wording and rules.
    pub words: Vec<WordRow>,
    /// Column sums.
    pub signals: SignalSums,
    /// Every addend.
    pub parts: Vec<Part>,
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
    /// Sidecars, when they were asked for by role.
    Attachable,
}

/// A stretch of a text that counted: bytes of `name` or `description`, and by which signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mark {
    /// First byte.
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
    /// The signal that counted most there.
    pub signal: Signal,
}

/// A line of the body that holds words of the request (filled on demand, see the gateway).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BodyLine {
    /// Line in the file, from 1.
    pub line: u32,
    /// The line's text.
    pub text: String,
    /// Matched stretches, in bytes of `text`.
    pub marks: Vec<Mark>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Hit {
    /// The skill.
    pub skill_id: SkillId,
    /// Its name.
    pub name: String,
    /// The score; answers are sorted by it (under `strict` by rules first).
    pub score: f64,
    /// The score before rule terms.
    pub z: f64,
    /// Its role.
    pub role: Role,
    /// Its effect.
    pub effect_mode: EffectMode,
    /// One sentence made from the largest parts.
    pub reason: String,
    /// Its status, as shown.
    pub status: String,
    /// Where it is shown.
    pub group: Group,
    /// Its description.
    pub description: String,
    /// What counted in the name.
    pub name_marks: Vec<Mark>,
    /// What counted in the description.
    pub description_marks: Vec<Mark>,
    /// The description's own exclusion sentence when the request touches it ("not for …").
    pub exclusion_note: Option<String>,
    /// The score, addend by addend.
    pub breakdown: Breakdown,
    /// The rule of the person's policy by which a person is asked before it runs, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_approval: Option<String>,
    /// Its place among all results, from 1, where the request skips results or keeps only some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
}

/// A sidecar that can be attached; no direct recommendation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Attachable {
    /// The skill.
    pub skill_id: SkillId,
    /// Its name.
    pub name: String,
    /// Its score for the request.
    pub score: f64,
    /// What it can be attached to.
    pub attach_targets: Vec<AttachTarget>,
    /// How many of the results that the request keeps stand before it by the order of the answer.
    #[serde(default)]
    pub results_before: usize,
}

/// Why a skill that matches is no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExcludedWhy {
    /// Its status says so.
    Deprecated,
    /// Another bundle has its id; the winner's place as a person reads it.
    Shadowed(String),
    /// Its domain was not asked for.
    Domain,
    /// Its role was not asked for.
    Role,
    /// The person's policy denies it; the rule.
    Policy(String),
    /// Past the limit.
    BelowLimit,
}

/// A skill that matches and was left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Excluded {
    /// The skill.
    pub skill_id: SkillId,
    /// Its score for the request.
    pub score: f64,
    /// Why, as a short phrase for people: `deprecated`, `a copy, shadowed by ~/.claude/skills`.
    pub why: String,
    /// Why, for programs.
    pub reason: ExcludedWhy,
}

/// Whether anything fits.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    Display,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Fit {
    /// No skill fits.
    #[default]
    None,
    /// Something fits, unsurely.
    Low,
    /// Something fits.
    Medium,
    /// Something fits, clearly.
    High,
}

/// How far the first is ahead of the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Lead {
    /// Nothing else comes near.
    Clear,
    /// See also the next.
    Ambiguous,
}

/// Fitted confidence and its thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Confidence {
    /// The word for it.
    pub fit: Fit,
    /// A fitted function of the first score, 0 to 1; shown only as a word.
    pub p_fit: f64,
    /// Below this score, no skill fits.
    pub fits_from: f64,
    /// From this score on, it fits without "unsure".
    pub sure_from: f64,
    /// First against second.
    pub lead: Lead,
}

/// What a verdict rests on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, Display, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum VerdictReason {
    /// The first result reaches the threshold.
    Fits,
    /// It reaches the threshold by words that were read as others, or in another language than the skill's.
    FitsByReading,
    /// It does not reach the threshold.
    #[default]
    BelowThreshold,
    /// It reaches the threshold by stop words.
    StopWords,
    /// The request is in a language that the first result does not speak.
    Language,
    /// Nothing of the request is known.
    NothingKnown,
}

/// A request that is not in the language of the skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RequestLanguage {
    /// ISO 639-1 code of the request's language; `und` where it cannot be told.
    pub request: String,
    /// ISO 639-1 code of the language of most skills.
    pub skills: String,
}

/// Whether the first result fits, with what it rests on and as a sentence. Every screen says this sentence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// The first result; none when there is no result.
    pub skill_id: Option<SkillId>,
    /// Whether it fits; the same as [`Answer::fit`].
    pub fit: Fit,
    /// What that rests on.
    pub reason: VerdictReason,
    /// The language of the request, where it is not that of the skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<RequestLanguage>,
    /// The verdict as a sentence, without a final stop.
    pub sentence: String,
}

/// A word of the request, as the router read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QueryWord {
    /// First byte in the intent.
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
    /// Whether it is a stop word (counts little).
    pub stop: bool,
    /// Whether anything knows it: index or embedding.
    pub known: bool,
    /// How it was read instead, if it was.
    pub correction: Option<Correction>,
}

/// A word that was read as another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Correction {
    /// A misspelling.
    Typo(String),
    /// An unfinished last word; what it was completed to.
    Completed(Vec<String>),
    /// A last word that has just been begun, left out for now.
    Dropped,
}

/// What became of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// It answered.
    Ran,
    /// It had nothing to do.
    Idle,
    /// Switched off by configuration.
    Off,
    /// Left out for this query; why.
    Failed(String),
}

/// One link's part in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LinkReport {
    /// `exact`, `typo`, `lexical`, `presence`, `task`, `semantic`.
    pub link: String,
    /// What became of it.
    pub state: LinkState,
    /// Candidates it gave signals for.
    pub candidates: usize,
    /// Time it took, microseconds.
    pub took_us: u64,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// Results, best first.
    pub results: Vec<Hit>,
    /// Sidecars that match.
    pub attachable: Vec<Attachable>,
    /// What matches and was left out, best first, at most 20; `below_limit` is counted, not listed.
    pub excluded: Vec<Excluded>,
    /// How many more match but stand below the limit.
    pub below_limit: usize,
    /// Whether anything fits, in one word.
    pub fit: Fit,
    /// The verdict about the first result.
    #[serde(default)]
    pub verdict: Verdict,
    /// Fit, thresholds and lead; none when nothing could be ranked.
    pub confidence: Option<Confidence>,
    /// The words of the intent as they were read.
    pub words: Vec<QueryWord>,
    /// What each link did.
    pub links: Vec<LinkReport>,
    /// `bodies` or `short`: which weights were used.
    pub profile: String,
    /// Skills that were ranked over.
    pub skills: usize,
    /// Of those, how many have no body in the index yet (still indexing).
    pub bodies_missing: usize,
    /// Time it took, microseconds.
    pub took_us: u64,
}
