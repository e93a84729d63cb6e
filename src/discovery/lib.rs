//! Skill ranking: finds the skills that fit a request and explains why. Contains the matcher chain, the index, the
//! score and its breakdown, policies, confidence and golden sets. No I/O except for its model file.
//!
//! [`Router::discover`] splits a request into words (`reading`), lets every matcher of the chain (`matcher`) add a
//! score term to each skill, sorts the candidates (`sorting`), and explains the best ones term by term (`breakdown`,
//! `hit`). All constants are in `assets/ranker/weights.yaml`.
// Text of bundles is untrusted: an invalid range must not abort the program.
#![cfg_attr(not(test), deny(clippy::string_slice))]

mod adjust;
mod analysis;
mod answer;
mod body_lines;
mod breakdown;
mod clusters;
mod collisions;
mod confidence;
mod derived;
mod document;
mod draft;
mod embedding;
mod eval;
mod fast_hash;
mod field;
mod filter;
mod golden;
mod groups;
mod hit;
mod index;
mod labels;
mod language;
mod lookup;
mod marks;
mod matcher;
mod phrases;
mod probes;
mod ranking;
mod reading;
mod reason;
mod request;
mod rivals;
mod router;
mod rules;
mod segment;
mod snapshot;
mod sorting;
mod sums;
mod tables;
mod task;
mod tokenize;
mod verdict;
mod vocabulary;
mod weights;
mod word_forms;

pub use adjust::{Adjustment, Adjustments};
pub use answer::{
    Answer, Attachable, BodyLine, Breakdown, BreakdownTerm, Confidence, Correction, Excluded, ExcludedWhy,
    Fit, FitVerdict, Group, Hit, Margin, Mark, MatcherReport, MatcherState, QueryWord, RequestLanguage,
    ScoreComponent, SignalSums, TermKind, VerdictReason, WordRow,
};
pub use clusters::{Cluster, MAX_CLUSTER};
pub use collisions::{
    COLLIDES_FROM, Collision, CollisionMap, LostProbe, MAX_PROBES, ProbedClause, ProbedSkill,
    probes_per_skill,
};
pub use confidence::{fit_confidence, keeps};
pub use document::Document;
pub use draft::{
    Advice, AttractingWord, ClauseValue, GoldenChange, GoldenFigures, Split, SplitMetrics, advice, advise,
    attractions, clause_values, clauses, compare, is_held_out, rank_of,
};
pub use embedding::{Embedding, EmbeddingError};
pub use eval::{
    Baseline, ChangedQuery, ComparedQueries, EvalOptions, EvalReport, FalseTrigger, LatencyUs, Lost,
    NearMisses, OperatingPoint, Outcome, Regression, Rejected, Winner, changed_winners, eval, outcome,
    outcomes, regressions,
};
pub use filter::Filter;
pub use golden::{Case, Expect, GoldenError, golden_yaml, queries_jsonl, skill_evals, skills_jsonl};
pub use groups::{GroupKind, SimilarGroup};
pub use marks::{contains_word, matched_exclusion};
pub use matcher::matcher_names;
pub use phrases::{ExclusionPhrases, LanguageWords, Phrases};
pub use probes::ProbeClause;
pub use request::{Policy, Request};
pub use rivals::{
    AdviceKind, AdvisedText, GoldenComparison, PairAdvice, PairReport, PairSide, Rival, RivalReport,
};
pub use router::{
    IsCanceled, MergedIndex, PendingAnalyses, RequestError, Revision, Router, UnknownMatcher, WrittenSnapshot,
};
pub use snapshot::SnapshotError;
pub use weights::{
    CommonStopWords, Completion, Exact, FieldWeight, Fields, Fitted, Limits, Profile, Profiles, RoleTerms,
    Rules, Semantic, StatusTerms, Typo, Weights, WeightsError,
};
