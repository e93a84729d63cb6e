//! Typo link: a misspelt word is read as the nearest word of the index, an unfinished last word as the
//! words that it may become. The other links then see the corrected request.

use std::time::{Duration, Instant};

use super::super::answer::Correction;
use super::super::reading::{ReadWord, Reading};
use super::super::segment::Key;
use super::super::vocabulary::StemId;
use super::{Context, Failure, Link};

/// See the module.
pub(super) struct Typo;

/// Letters that an unfinished word may have beyond a stem it grew out of (`extracti` of `extract`).
const SUFFIX: usize = 4;

impl Link for Typo {
    fn name(&self) -> &'static str {
        "typo"
    }

    fn read(&self, reading: &mut Reading, cx: &Context<'_>) -> Result<usize, Failure> {
        let budget = cx.weights.typo.budget_ms;
        let deadline = Instant::now() + Duration::from_millis(budget);
        let last = reading.words.len().wrapping_sub(1);
        let ends_open =
            cx.typing && reading.words.last().is_some_and(|w| w.word.end as usize == reading.intent.len());
        let mut changed = 0;
        for at in 0..reading.words.len() {
            let written = reading.written(at).to_owned();
            let word = &mut reading.words[at];
            if word.word.stop || frequency(cx, &word.word.stem) > 0 || !latin(&word.word.text) {
                continue;
            }
            if Instant::now() > deadline {
                return Err(Failure::Budget(budget));
            }
            let letters = word.word.text.chars().count();
            let known = cx.model.as_ref().is_ok_and(|m| m.find(&word.word.text).is_some());
            let open = ends_open && at == last && letters >= cx.weights.completion.min_letters;
            let done = (open && complete(word, cx))
                || (!known && letters >= cx.weights.typo.min_letters && correct(word, cx, deadline)?);
            if done {
                changed += 1;
            } else if open && !known && !written.contains(char::is_numeric) {
                word.correction = Some(Correction::Dropped);
                changed += 1;
            }
        }
        Ok(changed)
    }
}

fn latin(text: &str) -> bool {
    text.chars().all(char::is_alphanumeric) && text.chars().any(char::is_alphabetic)
}

fn frequency(cx: &Context<'_>, stem: &str) -> usize {
    cx.index.vocabulary.find(stem).map_or(0, |id| cx.index.frequency(Key::stem(id), cx.view))
}

/// Reads an unfinished word as the most frequent index words it may become.
fn complete(read: &mut ReadWord, cx: &Context<'_>) -> bool {
    let vocabulary = &cx.index.vocabulary;
    let fragment = read.word.text.as_str();
    let mut found: Vec<(usize, StemId)> = vocabulary
        .same_initial(fragment)
        .iter()
        .filter(|id| {
            vocabulary.stem(**id).starts_with(fragment) || vocabulary.written(**id).starts_with(fragment)
        })
        .map(|id| (cx.index.frequency(Key::stem(*id), cx.view), *id))
        .filter(|(df, _)| *df > 0)
        .collect();
    if found.is_empty() {
        // Grown past a stem: `extracti` on its way from `extract` to `extracting`.
        found = vocabulary
            .same_initial(fragment)
            .iter()
            .filter(|id| {
                let stem = vocabulary.stem(**id);
                stem.len() >= 4 && fragment.starts_with(stem) && fragment.len() - stem.len() <= SUFFIX
            })
            .max_by_key(|id| vocabulary.stem(**id).len())
            .map(|id| (cx.index.frequency(Key::stem(*id), cx.view), *id))
            .into_iter()
            .filter(|(df, _)| *df > 0)
            .collect();
    }
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| vocabulary.stem(a.1).cmp(vocabulary.stem(b.1))));
    found.truncate(cx.weights.completion.words);
    if found.is_empty() {
        return false;
    }
    let words = found.iter().map(|(_, id)| vocabulary.written(*id).to_owned()).collect();
    read.completions = found.into_iter().map(|(_, id)| id).collect();
    read.correction = Some(Correction::Completed(words));
    true
}

/// Reads a misspelt word as the nearest index word with the same first letter.
fn correct(read: &mut ReadWord, cx: &Context<'_>, deadline: Instant) -> Result<bool, Failure> {
    let vocabulary = &cx.index.vocabulary;
    let (text, stem) = (read.word.text.as_str(), read.word.stem.as_str());
    let letters = text.chars().count();
    let edits = if letters >= cx.weights.typo.two_edits_from { 2 } else { 1 };
    let mut best: Option<(usize, usize, StemId)> = None;
    for (i, id) in vocabulary.same_initial(text).iter().enumerate() {
        if i % 256 == 0 && Instant::now() > deadline {
            return Err(Failure::Budget(cx.weights.typo.budget_ms));
        }
        let near = [(text, vocabulary.written(*id)), (stem, vocabulary.stem(*id))]
            .into_iter()
            .filter(|(a, b)| a.len().abs_diff(b.len()) <= edits && b.chars().count() >= 4)
            .map(|(a, b)| strsim::osa_distance(a, b))
            .min();
        let Some(distance) = near.filter(|d| *d <= edits) else { continue };
        if best.is_some_and(|(d, _, _)| distance > d) {
            continue;
        }
        let df = cx.index.frequency(Key::stem(*id), cx.view);
        let better = match best {
            None => true,
            Some((d, f, other)) => {
                (distance, std::cmp::Reverse(df), vocabulary.stem(*id))
                    < (d, std::cmp::Reverse(f), vocabulary.stem(other))
            }
        };
        if df > 0 && better {
            best = Some((distance, df, *id));
        }
    }
    let Some((_, _, id)) = best else { return Ok(false) };
    read.correction = Some(Correction::Typo(vocabulary.written(id).to_owned()));
    vocabulary.written(id).clone_into(&mut read.word.text);
    vocabulary.stem(id).clone_into(&mut read.word.stem);
    Ok(true)
}
