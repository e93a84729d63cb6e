//! One request through the chain: reading, columns of every link, candidates, order, answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::adjust::Adjustments;
use super::answer::{Answer, Confidence, Fit, LinkReport, LinkState};
use super::confidence::confidence;
use super::embedding::DIM;
use super::hit;
use super::link::{Addend, Column, Context, Failure, Link, Scorer, matched};
use super::lookup::View;
use super::reading::Reading;
use super::request::{Policy, Request};
use super::router::Router;
use super::rules;
use super::segment::Key;
use super::sorting::{Ranked, sort};
use super::weights::{Fitted, Profile};

/// Candidates that are scored exactly beyond the limit: the columns are single precision.
const SLACK: usize = 2;

/// Everything about one request that the steps hand on.
pub(crate) struct Asked<'a> {
    pub router: &'a Router,
    pub request: &'a Request,
    pub adjustments: &'a Adjustments,
    pub reading: &'a Reading,
    pub cx: &'a Context<'a>,
    pub read_only: bool,
    /// The request's direction in the embedding, centred.
    pub direction: &'a [i16; DIM],
}

/// A link's column and its scorer, which can explain it.
struct Running<'a> {
    link: usize,
    scorer: Box<dyn Scorer + 'a>,
    column: Column,
}

/// Answers a request that is not empty.
pub(crate) fn rank(router: &Router, request: &Request, adjustments: &Adjustments) -> Answer {
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
    };
    let mut reports: Vec<LinkReport> =
        router.links.iter().map(|link| report(router, link.as_ref())).collect();
    let mut reading = Reading::new(&request.intent, &router.words);
    for (link, report) in router.links.iter().zip(&mut reports) {
        read(link.as_ref(), report, &mut reading, &cx);
    }
    if let Ok(model) = &cx.model {
        reading.cut(model, router.weights.limits.query_pieces);
    }
    let reading = reading;
    let mut running: Vec<Running<'_>> = Vec::new();
    for (at, (link, report)) in router.links.iter().zip(&mut reports).enumerate() {
        if let Some((scorer, column)) = score(link.as_ref(), report, &reading, &cx) {
            running.push(Running { link: at, scorer, column });
        }
    }
    let read_only =
        reading.words.first().is_some_and(|w| router.weights.read_only_words.contains(&w.word.text));
    let direction = hit::direction(&reading, &cx);
    let asked =
        Asked { router, request, adjustments, reading: &reading, cx: &cx, read_only, direction: &direction };
    let sorted = sort(&asked, candidates(&asked, &running));
    let mut ranked = Vec::new();
    for candidate in sorted.results.iter().take(request.limit.saturating_add(SLACK)) {
        let addends = explain(&running, &mut reports, candidate.slot);
        let z = addends.iter().map(|a| a.value).sum();
        ranked.push((Ranked { z, ..candidate.clone() }, addends));
    }
    for (candidate, addends) in &mut ranked {
        rules::add(&asked, candidate, addends);
        candidate.score = addends.iter().map(|a| a.value).sum();
    }
    ranked.sort_by(|(a, _), (b, _)| a.compare(b, index));
    let confidence = fit(&profile.confidence.at(index.ranked()), ranked.iter().map(|(r, _)| r.z));
    ranked.truncate(request.limit);
    let known = |at: usize| known(&asked, at);
    Answer {
        below_limit: sorted.results.len() - ranked.len(),
        results: ranked
            .into_iter()
            .filter_map(|(candidate, addends)| hit::hit(&asked, &candidate, addends))
            .collect(),
        attachable: sorted.attachable,
        excluded: sorted.excluded,
        fit: confidence.map_or(Fit::None, |c| c.fit),
        confidence,
        words: reading.shown(known),
        links: reports,
        profile: profile_name.to_owned(),
        skills: index.ranked(),
        bodies_missing: index.unread(),
        took_us: started.elapsed().as_micros() as u64,
    }
}

/// The weights in force: those for bodies where at least half of the skills have one.
fn profile<'a>(router: &'a Router, request: &Request) -> (&'static str, &'a Profile) {
    let profiles = &router.weights.profiles;
    if request.with_body && router.index.bodies() * 2 >= router.index.len().max(1) {
        ("bodies", &profiles.bodies)
    } else {
        ("short", &profiles.short)
    }
}

fn report(router: &Router, link: &dyn Link) -> LinkReport {
    let state = if router.off.contains(link.name()) { LinkState::Off } else { LinkState::Idle };
    LinkReport { link: link.name().to_owned(), state, candidates: 0, took_us: 0 }
}

/// Runs one step of a link so that neither its errors nor its panics get further than the report.
fn contained<T>(report: &mut LinkReport, step: impl FnOnce() -> Result<T, Failure>) -> Option<T> {
    if !matches!(report.state, LinkState::Idle | LinkState::Ran) {
        return None;
    }
    let started = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(step));
    report.took_us += started.elapsed().as_micros() as u64;
    match outcome {
        Ok(Ok(value)) => Some(value),
        Ok(Err(failure)) => {
            report.state = LinkState::Failed(failure.to_string());
            None
        }
        Err(panic) => {
            let said = panic
                .downcast_ref::<&str>()
                .map(|s| (*s).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            report.state = LinkState::Failed(format!("it panicked: {said}"));
            None
        }
    }
}

fn read(link: &dyn Link, report: &mut LinkReport, reading: &mut Reading, cx: &Context<'_>) {
    let mut changed = reading.clone();
    if let Some(words) = contained(report, || link.read(&mut changed, cx))
        && words > 0
    {
        report.state = LinkState::Ran;
        report.candidates = words;
        *reading = changed;
    }
}

fn score<'a>(
    link: &dyn Link,
    report: &mut LinkReport,
    reading: &'a Reading,
    cx: &'a Context<'a>,
) -> Option<(Box<dyn Scorer + 'a>, Column)> {
    let scorer = contained(report, || link.prepare(reading, cx))??;
    let column = contained(report, || scorer.score())?;
    report.state = LinkState::Ran;
    report.candidates += column.values.iter().filter(|v| **v != 0.0).count();
    Some((scorer, column))
}

/// Skills that match at all, with z as the columns say.
fn candidates(asked: &Asked<'_>, running: &[Running<'_>]) -> Vec<Ranked> {
    let index = asked.cx.index;
    // A request of nothing but stop words is matched by stop words.
    let content = asked.reading.words.iter().any(|w| !w.word.stop);
    let need = matched::CONTENT | matched::EXACT | matched::MEANING | if content { 0 } else { matched::STOP };
    let mut flags = vec![0_u8; index.slots()];
    let mut sums = vec![0.0_f32; index.slots()];
    for link in running {
        flags.iter_mut().zip(&link.column.matched).for_each(|(all, one)| *all |= one);
        sums.iter_mut().zip(&link.column.values).for_each(|(sum, value)| *sum += value);
    }
    // Often all of them match: the list is made in one piece.
    let mut out = Vec::with_capacity(flags.iter().filter(|flags| **flags & need != 0).count());
    for (slot, ((flags, z), facts)) in flags.iter().zip(&sums).zip(index.facts()).enumerate() {
        if let (true, Some(facts)) = (flags & need != 0, facts) {
            out.push(Ranked::new(asked, slot, *facts, f64::from(*z), *flags));
        }
    }
    out
}

/// All addends of one slot. A link that cannot explain itself loses its part and is reported.
fn explain(running: &[Running<'_>], reports: &mut [LinkReport], slot: usize) -> Vec<Addend> {
    let mut out = Vec::new();
    for link in running {
        let mut part = Vec::new();
        let done = contained(&mut reports[link.link], || {
            link.scorer.explain(slot, &mut part);
            Ok(())
        });
        if done.is_some() {
            out.append(&mut part);
        }
    }
    out
}

fn fit(fitted: &Fitted, z: impl Iterator<Item = f64>) -> Option<Confidence> {
    let mut all: Vec<f64> = z.collect();
    all.sort_by(|a, b| b.total_cmp(a));
    let first = *all.first()?;
    let margin = all.get(1).map_or(f64::INFINITY, |second| first - second);
    Some(confidence(fitted, first, margin))
}

/// Whether index or embedding knows a word of the request.
fn known(asked: &Asked<'_>, at: usize) -> bool {
    let read = &asked.reading.words[at];
    let in_index = |stem: &str| {
        asked
            .cx
            .index
            .vocabulary
            .find(stem)
            .is_some_and(|id| asked.cx.index.frequency(Key::stem(id), asked.cx.view) > 0)
    };
    !read.completions.is_empty()
        || in_index(&read.word.stem)
        || asked.cx.model.as_ref().is_ok_and(|m| m.find(&read.word.text).is_some())
}

/// How `policy` orders.
pub(crate) fn strict(request: &Request) -> bool {
    request.policy == Policy::Strict
}
