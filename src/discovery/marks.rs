//! What counted in a name and a description, as stretches to colour, and the exclusion sentence that
//! a request touches.

use std::collections::HashSet;

use super::analysis::Place;
use super::answer::{Mark, Signal};
use super::embedding::{DIM, Embedding};
use super::reading::Reading;
use super::words::Words;

/// Content stems of a request, completions included.
pub(crate) fn stems<'a>(reading: &'a Reading, written: impl Fn(u32) -> &'a str) -> HashSet<&'a str> {
    let mut out = HashSet::new();
    for read in reading.words.iter().filter(|w| !w.word.stop) {
        if read.completions.is_empty() {
            out.insert(read.word.stem.as_str());
        }
        out.extend(read.completions.iter().map(|id| written(*id)));
    }
    out
}

/// The same as numbers of the index.
pub(crate) fn numbers(reading: &Reading, number: impl Fn(&str) -> Option<u32>) -> HashSet<u32> {
    let mut out = HashSet::new();
    for read in reading.words.iter().filter(|w| !w.word.stop) {
        if read.completions.is_empty() {
            out.extend(number(&read.word.stem));
        }
        out.extend(&read.completions);
    }
    out
}

/// Stretches of a text whose stems the request has.
pub(crate) fn by_stem(text: &str, stems: &HashSet<&str>, words: &Words, signal: Signal) -> Vec<Mark> {
    let mut out: Vec<Mark> = Vec::new();
    words.each(text, |word| {
        if !stems.contains(word.stem.as_str()) {
            return;
        }
        match out.last_mut() {
            // Pairs of characters overlap: one stretch.
            Some(last) if last.end > word.start => last.end = last.end.max(word.end),
            _ => out.push(Mark { start: word.start, end: word.end, signal }),
        }
    });
    out
}

/// The same for a text whose words are known by number.
pub(crate) fn by_number(places: &[Place], numbers: &HashSet<u32>, signal: Signal) -> Vec<Mark> {
    let mut out: Vec<Mark> = Vec::new();
    for place in places.iter().filter(|p| numbers.contains(&p.what)) {
        let (start, end) = (u32::from(place.start), u32::from(place.end));
        match out.last_mut() {
            Some(last) if last.end > start => last.end = last.end.max(end),
            _ => out.push(Mark { start, end, signal }),
        }
    }
    out
}

/// Words of a text that no stem matched but whose pieces carry at least `share` of its likeness to the
/// request's direction `query`; at most `limit`, in order of the text.
pub(crate) fn by_meaning(
    (text, pieces): (&str, &[Place]),
    taken: &[Mark],
    query: &[f64; DIM],
    model: &Embedding,
    words: &Words,
    (share, limit): (f64, usize),
) -> Vec<Mark> {
    let mut found: Vec<(f64, u32, u32)> = Vec::new();
    let mut total = 0.0;
    for piece in pieces {
        let value: f64 = model.vector(piece.what as u16).zip(query).map(|(v, q)| v * q).sum();
        let (start, end) = (u32::from(piece.start), u32::from(piece.end));
        total += value;
        match found.last_mut() {
            Some(last) if last.2 == start => {
                last.0 += value;
                last.2 = end;
            }
            _ => found.push((value, start, end)),
        }
    }
    if total <= 0.0 {
        return Vec::new();
    }
    found.retain(|(value, start, end)| {
        *value >= share * total
            && !taken.iter().any(|m| m.start < *end && *start < m.end)
            && text
                .get(*start as usize..*end as usize)
                .is_some_and(|word| !words.is_stop(&word.to_ascii_lowercase()))
    });
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(limit);
    found.sort_by_key(|(_, start, _)| *start);
    found.into_iter().map(|(_, start, end)| Mark { start, end, signal: Signal::Semantic }).collect()
}

/// The first sentence of a description that says what the skill is not for and has a stem of the request.
pub(crate) fn exclusion(
    description: &str,
    cues: &[String],
    asked: impl Fn(&str) -> bool,
    words: &Words,
) -> Option<String> {
    sentences(description).find_map(|sentence| {
        let lower = sentence.to_lowercase();
        let at = cues.iter().filter_map(|cue| lower.find(cue.as_str()).map(|at| at + cue.len())).min()?;
        let mut touched = false;
        words.each(lower.get(at..)?, |w| touched |= !w.stop && asked(&w.stem));
        touched.then(|| sentence.trim().to_owned())
    })
}

/// Parts a text at its stops. A dot inside a word (`.xlsx`, `1.2`) is none.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().find_map(|(at, c)| {
            let next = at + c.len_utf8();
            let ends = match c {
                '.' | '!' | '?' => rest[next..].chars().next().is_none_or(char::is_whitespace),
                ';' | '\n' | '。' | '；' => true,
                _ => false,
            };
            ends.then_some(next)
        });
        let (sentence, tail) = rest.split_at(end.unwrap_or(rest.len()));
        rest = tail;
        (!sentence.is_empty()).then_some(sentence)
    })
    .filter(|s| !s.trim().is_empty())
}
