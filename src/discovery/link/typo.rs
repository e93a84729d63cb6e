//! Typo link: a misspelt word is read as the nearest word of the index, an unfinished last word as the
//! words that it may become. The other links then see the corrected request.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::super::answer::Correction;
use super::super::forms::letter_bits;
use super::super::language::Language;
use super::super::reading::{ReadWord, Reading};
use super::super::segment::Key;
use super::super::vocabulary::StemId;
use super::super::words::Word;
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
        // A word of another language is no misspelt word of this one.
        if matches!(reading.language, Some(Language::Listed(_))) {
            return Ok(0);
        }
        let budget = cx.weights.typo.budget_ms;
        let deadline = Instant::now() + Duration::from_millis(budget);
        let mut changed = join_odd_capitals(reading, cx);
        let last = reading.words.len().wrapping_sub(1);
        let ends_open =
            cx.typing && reading.words.last().is_some_and(|w| w.word.end as usize == reading.intent.len());
        for at in 0..reading.words.len() {
            let word = &mut reading.words[at];
            if word.word.stop || frequency(cx, &word.word.stem) > 0 || !latin(&word.word.text) {
                continue;
            }
            if Instant::now() > deadline {
                return Err(Failure::Budget(budget));
            }
            let letters = word.word.text.chars().count();
            let known = cx.model.as_ref().is_ok_and(|m| m.find(&word.word.text).is_some());
            let open = ends_open && at == last;
            let begun = open && letters < cx.weights.completion.min_letters;
            if begun && !known {
                word.correction = Some(Correction::Dropped);
                changed += 1;
            } else if (open && !begun && complete(word, cx)) || (!known && correct(word, cx)) {
                changed += 1;
            }
        }
        Ok(changed)
    }
}

/// Reads `WaCAG` as one word where its parts are no words and the whole is one, or near to one.
fn join_odd_capitals(reading: &mut Reading, cx: &Context<'_>) -> usize {
    let mut joined = 0;
    let mut at = 0;
    while at + 1 < reading.words.len() {
        let touching = |from: &[ReadWord]| from[0].word.end == from[1].word.start;
        let parts = 1 + reading.words[at..].windows(2).take_while(|two| touching(two)).count();
        let run = &reading.words[at..at + parts];
        let whole: String = run.iter().map(|w| w.word.text.as_str()).collect();
        let odd = parts > 1
            && whole.chars().all(|c| c.is_ascii_alphabetic())
            && run.iter().any(|w| !w.word.stop && frequency(cx, &w.word.stem) == 0);
        if odd {
            let (first, last) = (&run[0].word, &run[parts - 1].word);
            let word = Word {
                start: first.start,
                end: last.end,
                stem: cx.words.stem(&whole),
                stop: cx.words.is_stop(&whole),
                text: whole.clone(),
            };
            let mut read = ReadWord { word, correction: None, completions: Vec::new() };
            let known = frequency(cx, &read.word.stem) > 0
                || cx.model.as_ref().is_ok_and(|m| m.find(&whole).is_some());
            if known {
                read.correction = Some(Correction::Typo(whole));
            }
            if known || correct(&mut read, cx) {
                reading.words.splice(at..at + parts, [read]);
                joined += 1;
                at += 1;
                continue;
            }
        }
        at += parts;
    }
    joined
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

/// Reads a misspelt word as the nearest written form of the index, or of the embedding.
fn correct(read: &mut ReadWord, cx: &Context<'_>) -> bool {
    let typo = &cx.weights.typo;
    let text = read.word.text.as_str();
    let letters = text.chars().count();
    if text.chars().any(char::is_numeric) {
        return false;
    }
    let edits = if letters >= typo.two_edits_from { 2 } else { 1 };
    let same_start = |form: &str| form.chars().next() == text.chars().next();
    let turned = |form: &str| letter_bits(form) == letter_bits(text) && form.chars().count() == letters;
    let mut found: Vec<(usize, bool, bool, Reverse<usize>, &str, StemId)> = Vec::new();
    if letters >= typo.min_letters_turned {
        cx.index.forms.near(text, edits, |near| {
            let same = same_start(near.form);
            let allowed = (same && letters >= typo.min_letters_unique)
                || near.distance == 1 && (letters >= typo.min_letters || turned(near.form));
            let df = if allowed { cx.index.frequency(Key::stem(near.stem), cx.view) } else { 0 };
            if df > 0 && near.form.chars().count() >= letters.min(typo.min_letters_unique) {
                found.push((near.distance, !turned(near.form), !same, Reverse(df), near.form, near.stem));
            }
        });
    }
    found.sort_unstable();
    // A short word is one typing slip from many others: only turned letters, or the only one it can be.
    let turned_stems = || found.iter().filter(|f| !f.1).map(|f| f.5).collect::<HashSet<_>>().len();
    let stems = || found.iter().map(|f| f.5).collect::<HashSet<_>>().len();
    if letters < typo.min_letters && turned_stems() != 1 && stems() > 1 {
        return false;
    }
    let known = found.first().map(|f| f.4.to_owned());
    let Some(form) = known.or_else(|| {
        let model = cx.model.as_ref().ok().filter(|_| letters >= typo.min_letters)?;
        model.only_near(text)
    }) else {
        return false;
    };
    read.word.stem = cx.words.stem(&form);
    read.word.stop = cx.words.is_stop(&form);
    read.correction = Some(Correction::Typo(form.clone()));
    read.word.text = form;
    true
}
