//! The router: maintains the index and answers requests.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::Arc;

use rayon::prelude::*;

use super::adjust::Adjustments;
use super::analysis::{Analysis, analyze};
use super::answer::{Answer, BodyLine};
use super::document::Document;
use super::embedding::{Embedding, EmbeddingError};
use super::index::Index;
use super::matcher::{Columns, Matcher, chain, matcher_names};
use super::phrases::Lexicon;
use super::ranking::Order;
use super::reading::Reading;
use super::request::Request;
use super::segment::{CAPACITY, Segment};
use super::snapshot::{self, SnapshotError};
use super::tokenize::Words;
use super::weights::Weights;
use super::{body_lines, marks, ranking};
use skills_base::blocks::ReadAt;
use skills_skill::{Skill, SkillId};

/// A request that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The request is blank.
    #[error("the request is empty; describe the task in a few words")]
    Empty,
    /// The measurement that the request belongs to was canceled.
    #[error("canceled")]
    Canceled,
}

/// Returns whether a measurement was canceled.
pub type IsCanceled = Arc<dyn Fn() -> bool + Send + Sync>;

/// An unknown matcher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("matcher `{name}` not found; expected one of: {known}")]
pub struct UnknownMatcher {
    /// The name that was requested.
    pub name: String,
    /// The known names, separated by commas.
    pub known: String,
}

/// Ranks skills for requests. Requests share it by reference; [`Router::update`] needs exclusive access.
pub struct Router {
    pub(super) weights: Weights,
    pub(super) words: Arc<Words>,
    pub(super) lexicon: Arc<Lexicon>,
    pub(super) model: Result<Arc<Embedding>, EmbeddingError>,
    pub(super) matchers: Vec<Box<dyn Matcher>>,
    pub(super) off: BTreeSet<String>,
    pub(super) index: Index,
    pub(super) columns: Columns,
    pub(super) revision: Revision,
    pub(super) is_canceled: Option<IsCanceled>,
}

/// Identifies a state of an index: routers with the same revision return the same rankings.
#[derive(Debug, Clone, Default)]
pub struct Revision(Arc<()>);

impl PartialEq for Revision {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Skills that are analyzed but not in the index yet.
#[derive(Debug)]
pub struct PendingAnalyses(Vec<Analysis>);

/// Receipt of [`Router::write_snapshot`], with which [`Router::store_in`] maps the written documents to slots.
#[derive(Debug)]
pub struct WrittenSnapshot {
    /// Slots of the documents in the order in which they were written.
    slots: Vec<u32>,
}

/// The index merged into one segment, not in use yet.
#[derive(Debug)]
pub struct MergedIndex(Segment);

impl Router {
    /// Creates an empty router with the embedded model. If a model is unusable, the matchers that need it are skipped,
    /// which every answer reports.
    pub fn new(weights: Weights) -> Self {
        Self::with_model(weights, Embedding::shipped())
    }

    /// Creates an empty router with this embedding, or with the reason why there is none.
    pub fn with_model(weights: Weights, model: Result<Arc<Embedding>, EmbeddingError>) -> Self {
        let words = Arc::new(Words::new(weights.stop_words.clone()));
        let lexicon = Arc::new(Lexicon::new(&weights.phrases, &words));
        Self {
            words,
            lexicon,
            model,
            matchers: chain(),
            off: BTreeSet::new(),
            index: Index::default(),
            columns: Columns::default(),
            revision: Revision::default(),
            is_canceled: None,
            weights,
        }
    }

    /// Lets requests fail with [`RequestError::Canceled`] once `is_canceled` returns `true`, so that a measurement of many
    /// requests stops at the next one.
    #[must_use]
    pub fn cancelable(self, is_canceled: IsCanceled) -> Self {
        Self { is_canceled: Some(is_canceled), ..self }
    }

    fn check(&self, request: &Request) -> Result<(), RequestError> {
        if request.intent.trim().is_empty() {
            return Err(RequestError::Empty);
        }
        self.ensure_not_canceled()
    }

    /// Lets a measurement stop between requests.
    ///
    /// # Errors
    /// Returns [`RequestError::Canceled`] if it was canceled.
    pub fn ensure_not_canceled(&self) -> Result<(), RequestError> {
        let is_canceled = self.is_canceled.as_ref().is_some_and(|is_canceled| is_canceled());
        if is_canceled { Err(RequestError::Canceled) } else { Ok(()) }
    }

    /// Disables matchers by name.
    ///
    /// # Errors
    /// Returns an error if there is no such matcher.
    pub fn without_matchers<I: IntoIterator<Item = S>, S: Into<String>>(
        mut self,
        names: I,
    ) -> Result<Self, UnknownMatcher> {
        for name in names {
            let name = name.into();
            if !matcher_names().contains(&name.as_str()) {
                return Err(UnknownMatcher { name, known: matcher_names().join(", ") });
            }
            self.off.insert(name);
        }
        Ok(self)
    }

    /// Returns the weights in use.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Returns the number of indexed skills.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns the number of indexed skills that no other skill shadows.
    #[must_use]
    pub fn unshadowed(&self) -> usize {
        self.index.ranked()
    }

    /// Returns whether no skill is indexed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of skills whose bodies are indexed.
    pub fn bodies(&self) -> usize {
        self.index.bodies()
    }

    /// Iterates over the indexed ids, in arbitrary order.
    pub fn ids(&self) -> impl Iterator<Item = &SkillId> {
        self.index.entries().map(|(_, e)| &e.document.id)
    }

    /// Returns whether the index contains this skill unchanged, including headings and body, so that they need not be
    /// read again. They are compared by the digest. `shadowed_by` is the display form of the winner's location.
    pub fn is_current(&self, skill: &Skill, shadowed_by: Option<&str>) -> bool {
        let entry = self.index.slot_of(&skill.id).and_then(|slot| self.index.entry(slot));
        entry.is_some_and(|e| e.is_body_read && e.document.is_of(skill, shadowed_by))
    }

    /// Inserts or replaces skills, and removes others.
    pub fn update(&mut self, upserts: Vec<Document>, removed: &[SkillId]) {
        let counted = self.count(upserts);
        self.put(counted, removed);
    }

    /// Analyzes skills on all cores: the slow half of an update, which changes nothing, so that requests are answered
    /// in the meantime. Large changes should be split into batches of a few hundred.
    #[must_use]
    pub fn count(&self, documents: Vec<Document>) -> PendingAnalyses {
        PendingAnalyses(if documents.len() < 4 {
            documents.into_iter().map(|d| self.analyze(d)).collect()
        } else {
            documents.into_par_iter().map(|d| self.analyze(d)).collect()
        })
    }

    /// Inserts analyzed skills into the index and removes others: the fast half of an update.
    pub fn put(&mut self, counted: PendingAnalyses, removed: &[SkillId]) {
        self.index.change(counted.0, removed, &self.weights);
        self.revision = Revision::default();
    }

    /// Merges an index that many changes have fragmented, which makes requests faster. Computed while requests are
    /// answered; pass the result to [`Router::adopt`] before any other change. Returns `None` if there is nothing to
    /// merge, or with more than 60,000 skills.
    #[must_use]
    pub fn joined(&self) -> Option<MergedIndex> {
        if self.len() > CAPACITY {
            return None;
        }
        self.index.joined().map(MergedIndex)
    }

    /// Replaces the segments by the result of [`Router::joined`]. Answers do not change.
    pub fn adopt(&mut self, joined: MergedIndex) {
        self.index.replace(joined.0);
    }

    fn analyze(&self, document: Document) -> Analysis {
        analyze(document, &self.words, &self.lexicon, self.model.as_deref().ok(), &self.weights)
    }

    /// Writes the index for [`Router::restore`] at the next start. Writes nothing and returns `None` above 60,000
    /// skills, where the index is rebuilt at each start.
    ///
    /// # Errors
    /// Returns the errors of the writer.
    pub fn write_snapshot(&self, out: impl io::Write) -> io::Result<Option<WrittenSnapshot>> {
        if self.len() > CAPACITY {
            return Ok(None);
        }
        snapshot::write(&self.index, self.stamp(), out).map(|slots| Some(WrittenSnapshot { slots }))
    }

    /// Releases the tables of the index from memory and reads them on demand from where they were just written. The
    /// index must not have changed since.
    ///
    /// # Errors
    /// Returns an error if the source is not what was written; the current index then stays in use.
    pub fn store_in(
        &mut self,
        written: WrittenSnapshot,
        source: Box<dyn ReadAt>,
    ) -> Result<(), SnapshotError> {
        let segment = snapshot::segment(source, self.stamp(), &self.index.damaged, written.slots)?;
        self.index.replace(segment);
        Ok(())
    }

    /// Replaces the current index by a stored one. Its tables stay in the source and are read on demand. Afterwards,
    /// [`Router::is_current`] tells what has changed since it was written.
    ///
    /// # Errors
    /// Returns an error if the source is damaged, or was written by another version or with other weights; the current
    /// index then stays in use.
    pub fn restore(&mut self, source: Box<dyn ReadAt>) -> Result<(), SnapshotError> {
        self.index = snapshot::read(source, self.stamp(), &self.weights)?;
        self.revision = Revision::default();
        Ok(())
    }

    /// Returns whether the part of the index in a file was found to be damaged: answers may lack skills, and the index
    /// must be rebuilt.
    pub fn is_damaged(&self) -> bool {
        self.index.is_damaged()
    }

    /// Removes all skills.
    pub fn clear(&mut self) {
        self.index = Index::default();
        self.revision = Revision::default();
    }

    /// Returns the revision of the index, which changes with every update.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision.clone()
    }

    /// Hashes what an index depends on in addition to its documents: stop words, limits, cues, and the embedding.
    pub(super) fn stamp(&self) -> u64 {
        let mut stops: Vec<&String> = self.weights.stop_words.iter().collect();
        stops.sort_unstable();
        let pieces = self.model.as_ref().map_or(0, |m| m.len());
        let w = &self.weights;
        let text = format!("{stops:?} {:?} {:?} {pieces}", w.limits, w.phrases);
        let digest = skills_skill::Digest::of(text.as_bytes()).to_string();
        u64::from_str_radix(skills_skill::slice(&digest, ..16), 16).unwrap_or_default()
    }

    /// Ranks the skills for a request.
    ///
    /// # Errors
    /// Returns an error if the intent is empty.
    pub fn discover(&self, request: &Request) -> Result<Answer, RequestError> {
        self.discover_adjusted(request, &Adjustments::default())
    }

    /// Ranks the skills for a request, with the score terms and exclusions of a policy.
    ///
    /// # Errors
    /// Returns an error if the intent is empty.
    pub fn discover_adjusted(
        &self,
        request: &Request,
        adjustments: &Adjustments,
    ) -> Result<Answer, RequestError> {
        self.check(request)?;
        Ok(ranking::rank(self, request, adjustments))
    }

    /// Returns the first results of a request with their scores, and the verdict: the answer of [`Self::discover`]
    /// without breakdowns.
    pub(crate) fn order(&self, request: &Request) -> Result<Order, RequestError> {
        self.check(request)?;
        Ok(ranking::order(self, request))
    }

    /// Returns at most `limit` lines of a body with the most words of a request, in file order. `first_line` is the
    /// number of the body's first line in its file.
    pub fn body_lines(&self, body: &str, first_line: u32, intent: &str, limit: usize) -> Vec<BodyLine> {
        let reading = Reading::new(intent, &self.words);
        let stems: HashSet<&str> = marks::stems(&reading, |id| self.index.vocabulary.stem(id));
        body_lines::body_lines(body, first_line, &stems, &self.words, limit)
    }
}

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Router")
            .field("skills", &self.len())
            .field("bodies", &self.bodies())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::MatcherState;
    use super::super::matcher::{Context, Failure, Scorer};
    use super::*;

    /// A matcher that panics.
    struct Broken;

    impl Matcher for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }

        fn prepare<'a>(
            &self,
            _reading: &'a Reading,
            _cx: &'a Context<'a>,
        ) -> Result<Option<Box<dyn Scorer + 'a>>, Failure> {
            panic!("on purpose")
        }
    }

    fn filled(mut router: Router) -> Router {
        let skills = [
            Document::new("pdf", "pdf-tables", "Extracts tables from PDF files."),
            Document::new("mail", "mail-writer", "Writes short mails to colleagues."),
        ];
        router.update(skills.into(), &[]);
        router
    }

    fn first_and_states(router: &Router, intent: &str) -> (String, Vec<MatcherState>) {
        let answer = router.discover(&Request { intent: intent.into(), ..Request::default() }).unwrap();
        (answer.results[0].skill_id.to_string(), answer.matchers.into_iter().map(|l| l.state).collect())
    }

    #[test]
    fn panicking_matcher_is_reported_and_others_continue() {
        let mut router = filled(Router::new(Weights::shipped().unwrap().with_generous_time_limits()));
        router.matchers.insert(0, Box::new(Broken));
        let (first, states) = first_and_states(&router, "tables of a pdf");
        assert_eq!(first, "pdf");
        assert_eq!(states[0], MatcherState::Failed("it panicked: on purpose".into()));
        assert_eq!(states[3], MatcherState::Ran);
    }

    #[test]
    fn damaged_model_disables_its_matchers() {
        let damaged = Embedding::parse(b"SKEMB".to_vec()).map(Arc::new);
        let router = filled(Router::with_model(Weights::shipped().unwrap(), damaged));
        let (first, states) = first_and_states(&router, "tables of a pdf");
        assert_eq!(first, "pdf");
        let reason = "invalid embedding: it does not start with SKEMB01";
        assert_eq!([&states[3], &states[5]], [&MatcherState::Failed(reason.into()); 2]);
    }

    #[test]
    fn matcher_over_its_time_budget_is_skipped() {
        let yaml = include_str!("../../assets/ranker/weights.yaml").replace("budget_ms: 20", "budget_ms: 0");
        let router = filled(Router::new(Weights::parse(&yaml).unwrap()));
        let (first, states) = first_and_states(&router, "tables of a pdf");
        assert_eq!(first, "pdf");
        assert_eq!(states[5], MatcherState::Failed("it took longer than 0 ms".into()));
    }

    #[test]
    fn unknown_matcher_cannot_be_disabled() {
        let error = Router::new(Weights::shipped().unwrap().with_generous_time_limits())
            .without_matchers(["lexicon"])
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "matcher `lexicon` not found; expected one of: exact, typo, lexical, presence, task, semantic"
        );
    }

    #[test]
    fn restored_index_ranks_the_same_and_detects_changes() {
        let skill = |description: &str| {
            let text = format!("---\nname: pdf-tables\ndescription: {description}\n---\n");
            skills_skill::parse(std::path::Path::new("/pdf/SKILL.md"), text.as_bytes(), 0).unwrap()
        };
        let current = skill("Extracts tables from PDF files.");
        let text = skills_skill::IndexText { headings: vec!["Grids".into()], body: "Lines.".into() };
        let mut router = filled(Router::new(Weights::shipped().unwrap().with_generous_time_limits()));
        router.update(vec![Document::from_skill(&current, Some(text))], &[]);
        let mut other = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        other.restore(Box::new(snapshot_bytes(&router))).unwrap();
        let ask = |r: &Router| {
            let request = Request { intent: "grids and tables in a mail".into(), ..Request::default() };
            r.discover(&request).unwrap().results
        };
        assert_eq!(ask(&other), ask(&router));
        assert!(other.is_current(&current, None));
        assert!(!other.is_current(&skill("Extracts tables from PDF files!"), None));
        other.update(Vec::new(), &[SkillId::new("pdf")]);
        assert_eq!(other.len(), 1);
    }

    #[test]
    fn merged_index_ranks_the_same_and_accepts_changes() {
        let skill = |n: usize, more: &str| {
            let text = format!("Extracts tables number {n} from PDF files {more}.");
            Document::new(format!("s{n}"), format!("tables-{n}"), text)
        };
        let mut router = filled(Router::new(Weights::shipped().unwrap().with_generous_time_limits()));
        for n in 0..6 {
            router.update((0..40).map(|i| skill(n * 40 + i, "")).collect(), &[]);
        }
        router.update((0..30).map(|n| skill(n * 3, "and mails them")).collect(), &[SkillId::new("s7")]);
        let ask = |router: &Router| {
            let intent = "mail the tables of a pdf".into();
            let answer = router.discover(&Request { intent, limit: 300, ..Request::default() }).unwrap();
            (answer.results, answer.attachable, answer.excluded, answer.confidence)
        };
        let (before, bytes) = (ask(&router), snapshot_bytes(&router));
        router.adopt(router.joined().unwrap());
        assert_eq!(ask(&router), before);
        assert!(router.joined().is_none(), "it is in one piece");
        assert_eq!(snapshot_bytes(&router), bytes);
        let change = |router: &mut Router| {
            router.update(vec![skill(3, "again"), skill(900, "")], &[SkillId::new("s5")]);
        };
        let mut other = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        other.restore(Box::new(bytes.clone())).unwrap();
        assert_eq!(ask(&other), before, "read from where it was written");
        let mut out = Vec::new();
        let slots = router.write_snapshot(&mut out).unwrap().unwrap();
        router.store_in(slots, Box::new(out)).unwrap();
        assert_eq!(ask(&router), before, "left where it was written");
        assert_eq!(snapshot_bytes(&router), bytes);
        change(&mut router);
        change(&mut other);
        assert_eq!(ask(&router), ask(&other));
        assert_eq!(router.len(), other.len());
    }

    #[test]
    fn damaged_snapshots_are_rejected_and_the_index_is_kept() {
        let mut router = filled(Router::new(Weights::shipped().unwrap().with_generous_time_limits()));
        let bytes = snapshot_bytes(&router);
        for cut in [0, 5, 20, bytes.len() / 2, bytes.len() - 1] {
            assert!(router.restore(Box::new(bytes[..cut].to_vec())).is_err(), "{cut}");
        }
        let mut flipped = bytes.clone();
        flipped[0] ^= 1;
        assert!(matches!(router.restore(Box::new(flipped)), Err(SnapshotError::Damaged(_))));
        assert_eq!(router.len(), 2);
        let mut weights = Weights::shipped().unwrap();
        weights.stop_words.insert("table".to_owned());
        assert_eq!(Router::new(weights).restore(Box::new(bytes)), Err(SnapshotError::Version));
    }

    fn snapshot_bytes(router: &Router) -> Vec<u8> {
        let mut out = Vec::new();
        router.write_snapshot(&mut out).unwrap().unwrap();
        out
    }

    #[test]
    fn damage_in_lazily_read_blocks_is_detected_on_access() {
        let skill = |n: usize| {
            let mut skill =
                Document::new(format!("s{n}"), format!("tables-{n}"), format!("Extracts table {n}."));
            let body = (0..200).map(|word| format!("w{}x{} ", n % 50, word)).collect();
            skill.text = Some(skills_skill::IndexText { headings: Vec::new(), body });
            skill
        };
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update((0..200).map(skill).collect(), &[]);
        let mut bytes = snapshot_bytes(&router);
        let postings = bytes.len() - 10_000;
        bytes[postings - 90_000..postings].fill(0xff);
        let mut other = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        other.restore(Box::new(bytes)).unwrap();
        assert!(!other.is_damaged());
        for n in 0..50 {
            let request = Request { intent: format!("w{n}x1 w{n}x7 w{n}x100"), ..Request::default() };
            other.discover(&request).unwrap();
        }
        assert!(other.is_damaged());
        other.clear();
        assert!(!other.is_damaged() && other.is_empty());
    }
}
