//! Ranks one request: reading, columns of every matcher, candidates, order, answer.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::adjust::Adjustments;
use super::answer::{Answer, Confidence, FitVerdict, MatcherReport, MatcherState, TermKind};
use super::embedding::DIM;
use super::hit;
use super::language::{self, Language};
use super::lookup::View;
use super::matcher::{Column, Context, Failure, Matcher, Row, ScoreTerm, Scorer};
use super::phrases::Lexicon;
use super::reading::{ReadWord, Reading, is_acronym};
use super::request::{Policy, Request};
use super::router::Router;
use super::rules;
use super::sorting::{Ranked, Sorted, sort};
use super::tokenize::fold_accents;
use super::verdict;
use super::vocabulary::StemId;
use super::weights::{Profile, Weights};
use skills_skill::SkillId;

/// Number of candidates beyond the limit that are scored exactly, because the columns have single precision.
const SLACK: usize = 2;

/// Usual number of score terms of a candidate.
const TERMS: usize = 64;

/// The data of one request that its processing steps share.
pub(crate) struct QueryContext<'a> {
    pub router: &'a Router,
    pub request: &'a Request,
    pub adjustments: &'a Adjustments,
    pub reading: &'a Reading,
    /// The stems in the index of each word of the request.
    pub stems: &'a [Vec<StemId>],
    pub cx: &'a Context<'a>,
    pub read_only: bool,
    /// The centered vector of the request in the embedding.
    pub direction: &'a [i16; DIM],
}

/// A matcher that scored and can still explain its terms.
struct ActiveMatcher<'a> {
    matcher: usize,
    scorer: Box<dyn Scorer + 'a>,
}

/// The sorted candidates of a request, with the other data that an answer needs.
struct Ranking<'r, 'a> {
    query: &'r QueryContext<'a>,
    sorted: Sorted,
    ranked: Vec<(Ranked, Vec<ScoreTerm>)>,
    verdict: FitVerdict,
    confidence: Option<Confidence>,
    reports: Vec<MatcherReport>,
    profile: &'static str,
    started: Instant,
}

/// The order of the results of a request, without breakdowns.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// The first results with their scores.
    pub results: Vec<(SkillId, f64)>,
    /// Whether the first fits, and why.
    pub verdict: FitVerdict,
    /// The thresholds in force.
    pub confidence: Option<Confidence>,
    /// The threshold of the collection, except for what the request adds to or takes off it.
    pub threshold: f64,
}

/// Answers a non-empty request.
pub(crate) fn rank(router: &Router, request: &Request, adjustments: &Adjustments) -> Answer {
    ranking(router, request, adjustments, |ranking| {
        let Ranking { query, sorted, ranked, verdict, confidence, reports, profile, started } = ranking;
        Answer {
            below_limit: sorted.matches.saturating_sub(request.offset.saturating_add(ranked.len())),
            results: ranked
                .into_iter()
                .filter_map(|(candidate, terms)| hit::hit(query, &candidate, terms))
                .collect(),
            attachable: sorted.attachable,
            excluded: sorted.excluded,
            fit: verdict.fit,
            verdict,
            confidence,
            words: query.reading.to_query_words(|at| is_known(query.reading, query.cx, at)),
            matchers: reports,
            profile: profile.to_owned(),
            hints: Vec::new(),
            skills: router.index.ranked(),
            bodies_missing: router.index.ranked_unread(),
            took_us: started.elapsed().as_micros() as u64,
        }
    })
}

/// Computes the same order and verdict as [`rank`] without breakdowns, which takes less time.
pub(crate) fn order(router: &Router, request: &Request) -> Order {
    ranking(router, request, &Adjustments::default(), |ranking| {
        let id = |slot| router.index.entry(slot).map(|entry| entry.document.id.clone());
        let results = ranking.ranked.iter();
        Order {
            results: results.filter_map(|(ranked, _)| Some((id(ranked.slot)?, ranked.score))).collect(),
            verdict: ranking.verdict,
            confidence: ranking.confidence,
            threshold: collection_threshold(router, request),
        }
    })
}

/// Returns the score from which a skill fits if neither language nor the number of matched words change it.
fn collection_threshold(router: &Router, request: &Request) -> f64 {
    let fitted = profile(router, request).1.confidence.at(router.index.ranked());
    fitted.fit_threshold + rule_terms(request, &router.weights)
}

/// Returns the rule terms that most skills have in full: scores include them, so thresholds do as well.
pub(crate) fn rule_terms(request: &Request, weights: &Weights) -> f64 {
    let rules = &weights.rules;
    if strict(request) { 0.0 } else { rules.role.procedure + rules.status.stable }
}

fn ranking<T>(
    router: &Router,
    request: &Request,
    adjustments: &Adjustments,
    finish: impl FnOnce(Ranking<'_, '_>) -> T,
) -> T {
    let started = Instant::now();
    let index = &router.index;
    let view = if request.with_body { View::All } else { View::Short };
    let (profile_name, profile) = profile(router, request);
    let cx = Context {
        index,
        weights: &router.weights,
        profile,
        words: &router.words,
        model: router.model.as_deref().map_err(Clone::clone),
        view,
        typing: request.typing,
        stems: RefCell::default(),
        excluded: RefCell::default(),
    };
    let mut reports: Vec<MatcherReport> =
        router.matchers.iter().map(|matcher| report(router, matcher.as_ref())).collect();
    let reading = read_request(router, request, &cx, &mut reports);
    let stems: Vec<Vec<StemId>> = reading.words.iter().map(|word| stems(word, &cx)).collect();
    let direction = hit::direction(&reading, &cx);
    let (running, sums) = score_all(router, &reading, &cx, &mut reports);
    let read_only =
        reading.words.first().is_some_and(|w| router.weights.read_only_words.contains(&w.word.text));
    let query = QueryContext {
        router,
        request,
        adjustments,
        reading: &reading,
        stems: &stems,
        cx: &cx,
        read_only,
        direction: &direction,
    };
    let sorted = sort(&query, &sums);
    router.columns.give(sums);
    let (ranked, verdict, confidence) = select_page(&query, &running, &mut reports, &sorted);
    finish(Ranking {
        query: &query,
        sorted,
        ranked,
        verdict,
        confidence,
        reports,
        profile: profile_name,
        started,
    })
}

/// Reads the words of a request: splits, corrects and completes them, and detects its language.
fn read_request(
    router: &Router,
    request: &Request,
    cx: &Context<'_>,
    reports: &mut [MatcherReport],
) -> Reading {
    let mut reading = Reading::new(&request.intent, &router.words);
    reading.join_parts(&router.words, |text, stem| cx.knows(text, stem) || cx.excludes(stem));
    let unknown = unknown_words(&reading, cx, &router.lexicon);
    let is_known_word = |word: &str| cx.knows(word, &router.words.stem(word));
    reading.language =
        language::of_request(&request.intent, unknown, is_known_word, &router.words, &router.lexicon);
    for (matcher, report) in router.matchers.iter().zip(reports) {
        read(matcher.as_ref(), report, &mut reading, cx);
    }
    reading.drop_stop_parts(&router.words);
    if reading.language.is_none() && is_unreadable(&reading, cx) {
        reading.language = Some(Language::Undetermined);
    }
    reading.mark_proper_names(|read| cx.documents(&read.word.stem) == 0);
    if let Ok(model) = &cx.model {
        let nothing: Vec<bool> = (0..reading.words.len()).map(|at| means_nothing(&reading, cx, at)).collect();
        reading.split_pieces(model, router.weights.limits.query_pieces, |at| nothing[at]);
    }
    reading.read_task(&router.words, &router.lexicon);
    reading
}

/// Applies every matcher to all slots. Returns those that can explain their terms, and the sums of their columns, which
/// belong to the router's pool.
fn score_all<'a>(
    router: &Router,
    reading: &'a Reading,
    cx: &'a Context<'a>,
    reports: &mut [MatcherReport],
) -> (Vec<ActiveMatcher<'a>>, Column) {
    let slots = router.index.slots();
    let mut running: Vec<ActiveMatcher<'_>> = Vec::new();
    let (mut sums, mut column) = (router.columns.take(slots), router.columns.take(0));
    for (at, (matcher, report)) in router.matchers.iter().zip(reports).enumerate() {
        column.reset(slots);
        if let Some(scorer) = score(matcher.as_ref(), report, reading, cx, &mut column) {
            sums.add(&column);
            running.push(ActiveMatcher { matcher: at, scorer });
        }
    }
    router.columns.give(column);
    sums.add_stop_words(cx.weights.stop_words_limit.most as f32);
    (running, sums)
}

/// Returns the requested page of results with their exact scores, and the verdict about the first result of all.
fn select_page(
    query: &QueryContext<'_>,
    running: &[ActiveMatcher<'_>],
    reports: &mut [MatcherReport],
    sorted: &Sorted,
) -> (Vec<(Ranked, Vec<ScoreTerm>)>, FitVerdict, Option<Confidence>) {
    let request = query.request;
    // Includes as many results around the page as may change places with those at its ends.
    let start = request.offset.saturating_sub(SLACK);
    let end = request.offset.saturating_add(request.limit).saturating_add(SLACK);
    let page = sorted.results.get(start..end.min(sorted.results.len())).unwrap_or_default();
    let mut ranked = exact(query, running, reports, page);
    let known = |at: usize| is_known(query.reading, query.cx, at);
    let (verdict, confidence) = if start == 0 && !request.is_narrowed() {
        verdict::verdict(query, &ranked, known)
    } else {
        verdict::verdict(query, &exact(query, running, reports, &sorted.first), known)
    };
    ranked.drain(..(request.offset - start).min(ranked.len()));
    ranked.truncate(request.limit);
    if request.offset > 0 && !request.is_narrowed() {
        for (place, (candidate, _)) in ranked.iter_mut().enumerate() {
            candidate.rank = Some(request.offset + place + 1);
        }
    }
    (ranked, verdict, confidence)
}

/// Computes all score terms of candidates, and sorts them by exact score.
fn exact(
    query: &QueryContext<'_>,
    running: &[ActiveMatcher<'_>],
    reports: &mut [MatcherReport],
    candidates: &[Ranked],
) -> Vec<(Ranked, Vec<ScoreTerm>)> {
    let mut ranked = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let mut terms = explain(running, reports, candidate.slot);
        limit_stop_words(query, &mut terms);
        let z = terms.iter().map(|a| a.value).sum();
        ranked.push((Ranked { z, ..candidate.clone() }, terms));
    }
    for (candidate, terms) in &mut ranked {
        rules::add(query, candidate, terms);
        candidate.score = terms.iter().map(|a| a.value).sum();
    }
    ranked.sort_by(|(a, _), (b, _)| a.compare(b, query.cx.index));
    ranked
}

/// Returns the profile in use: the one for bodies if at least half of the skills have one.
fn profile<'a>(router: &'a Router, request: &Request) -> (&'static str, &'a Profile) {
    let profiles = &router.weights.profiles;
    if request.with_body && router.index.bodies() * 2 >= router.index.len().max(1) {
        ("bodies", &profiles.bodies)
    } else {
        ("short", &profiles.short)
    }
}

fn report(router: &Router, matcher: &dyn Matcher) -> MatcherReport {
    let state = if router.off.contains(matcher.name()) { MatcherState::Off } else { MatcherState::Idle };
    MatcherReport { matcher: matcher.name().to_owned(), state, candidates: 0, took_us: 0 }
}

/// Runs one step of a matcher, and records errors and panics in its report.
fn contained<T>(report: &mut MatcherReport, step: impl FnOnce() -> Result<T, Failure>) -> Option<T> {
    if !matches!(report.state, MatcherState::Idle | MatcherState::Ran) {
        return None;
    }
    let started = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(step));
    report.took_us += started.elapsed().as_micros() as u64;
    match outcome {
        Ok(Ok(value)) => Some(value),
        Ok(Err(failure)) => {
            report.state = MatcherState::Failed(failure.to_string());
            None
        }
        Err(panic) => {
            let message = panic
                .downcast_ref::<&str>()
                .map(|s| (*s).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            report.state = MatcherState::Failed(format!("it panicked: {message}"));
            None
        }
    }
}

fn read(matcher: &dyn Matcher, report: &mut MatcherReport, reading: &mut Reading, cx: &Context<'_>) {
    if !matcher.rewrites_request() {
        return;
    }
    let mut changed = reading.clone();
    if let Some(words) = contained(report, || matcher.read(&mut changed, cx))
        && words > 0
    {
        report.state = MatcherState::Ran;
        report.candidates = words;
        *reading = changed;
    }
}

fn score<'a>(
    matcher: &dyn Matcher,
    report: &mut MatcherReport,
    reading: &'a Reading,
    cx: &'a Context<'a>,
    column: &mut Column,
) -> Option<Box<dyn Scorer + 'a>> {
    let scorer = contained(report, || matcher.prepare(reading, cx))??;
    contained(report, || scorer.score(column))?;
    report.state = MatcherState::Ran;
    report.candidates += column.values.iter().filter(|v| **v != 0.0).count();
    Some(scorer)
}

/// Collects all score terms of one slot. A matcher that fails to explain its terms contributes none and is reported.
fn explain(running: &[ActiveMatcher<'_>], reports: &mut [MatcherReport], slot: usize) -> Vec<ScoreTerm> {
    let mut out = Vec::with_capacity(TERMS);
    for matcher in running {
        let before = out.len();
        let done = contained(&mut reports[matcher.matcher], || {
            matcher.scorer.explain(slot, &mut out);
            Ok(())
        });
        if done.is_none() {
            out.truncate(before);
        }
    }
    out
}

/// Returns whether a term comes from a stop word that occurs in a skill.
fn of_stop_word(term: &ScoreTerm, reading: &Reading) -> bool {
    let Row::Word(word) = term.row else { return false };
    matches!(term.kind, TermKind::Term | TermKind::BodyOnly | TermKind::Presence) && !reading.is_content(word)
}

/// Scales the terms of stop words down to their limit for one request.
fn limit_stop_words(query: &QueryContext<'_>, terms: &mut [ScoreTerm]) {
    let most = query.cx.weights.stop_words_limit.most;
    let of_stop_words = |a: &&mut ScoreTerm| of_stop_word(a, query.reading);
    let sum: f64 = terms.iter_mut().filter(of_stop_words).map(|a| a.value).sum();
    if sum > most {
        terms.iter_mut().filter(of_stop_words).for_each(|a| a.value *= most / sum);
    }
}

/// Returns the stems of the index that a word of the request may match.
fn stems(read: &ReadWord, cx: &Context<'_>) -> Vec<StemId> {
    if read.completions.is_empty() {
        cx.index.vocabulary.find(&read.word.stem).into_iter().collect()
    } else {
        read.completions.clone()
    }
}

/// Returns the number of words that neither index nor embedding knows, except stop words, function words of other
/// languages and parts of addresses.
fn unknown_words(reading: &Reading, cx: &Context<'_>, lexicon: &Lexicon) -> usize {
    let addresses = language::addresses(&reading.intent);
    let is_content = |at: &usize| {
        let word = &reading.words[*at].word;
        let start = word.start as usize;
        let next = addresses.partition_point(|address| address.end <= start);
        let in_address = addresses.get(next).is_some_and(|address| address.contains(&start));
        !word.is_stop_word && !in_address && !lexicon.function_words.contains_key(&word.text)
    };
    (0..reading.words.len()).filter(is_content).filter(|at| !is_known(reading, cx, *at)).count()
}

/// Returns whether a request may be in another language although it has no function words: none of several words is
/// an English stop word, and either two in lower case with accents are unknown, or one with an accent and at least half
/// of those without. Without accents they may be names; accented words that are known without their accents are
/// English (`résumé`).
fn is_unreadable(reading: &Reading, cx: &Context<'_>) -> bool {
    let (mut unaccented, mut unaccented_unread, mut accented_unread, mut accented_lower) = (0, 0, 0, 0);
    for (at, read) in reading.words.iter().enumerate() {
        if read.word.is_stop_word && !read.is_doubtful {
            return false;
        }
        let is_accented = fold_accents(&read.word.text) != read.word.text;
        let is_unread = reading.is_corrected(at) || !is_known(reading, cx, at);
        if is_accented {
            accented_unread += usize::from(is_unread);
            accented_lower += usize::from(is_unread && reading.as_typed(at).starts_with(char::is_lowercase));
        } else {
            unaccented += 1;
            unaccented_unread += usize::from(is_unread);
        }
    }
    accented_lower > 1
        || (accented_unread > 0
            && accented_unread + unaccented_unread > 1
            && 2 * unaccented_unread >= unaccented)
}

/// Returns whether the word pieces of an unknown word carry no meaning: those of a short word, and of one with
/// characters that the embedding does not have.
fn means_nothing(reading: &Reading, cx: &Context<'_>, at: usize) -> bool {
    let text = &reading.words[at].word.text;
    let short = text.chars().count() < cx.weights.typo.pieces_from && !is_acronym(reading.as_typed(at));
    (short || !text.is_ascii()) && !is_known(reading, cx, at)
}

/// Returns whether index or embedding knows a word of the request.
fn is_known(reading: &Reading, cx: &Context<'_>, at: usize) -> bool {
    let read = &reading.words[at];
    !read.is_doubtful
        && (!read.completions.is_empty()
            || cx.knows(&read.word.text, &read.word.stem)
            || cx.excludes(&read.word.stem))
}

/// Returns whether the request uses the strict policy.
pub(crate) fn strict(request: &Request) -> bool {
    request.policy == Policy::Strict
}
