//! Lexical matcher: BM25F over stems and over pairs of adjacent content stems (Robertson & Zaragoza,
//! "The Probabilistic Relevance Framework", 2009), and stems that occur only in headings or body.

use std::rc::Rc;

use super::super::answer::{ScoreComponent, TermKind};
use super::super::field::{self, Counts};
use super::super::lookup::KeyPostings;
use super::super::reading::Reading;
use super::super::segment::Key;
use super::{Column, Context, Failure, Label, Matcher, Row, ScoreTerm, Scorer, matched, rarity, signal_of};

/// Scores stems and pairs of adjacent stems with BM25F.
pub(super) struct Lexical;

/// A stem or pair of the request that the index knows.
struct Term<'a> {
    /// Its possible stems with their idf; exactly one, unless the word is unfinished.
    keys: Vec<(Rc<KeyPostings<'a>>, f64)>,
    /// g: the weight of the stem.
    weight: f64,
    content: bool,
    row: Row,
    label: Label,
}

/// The score of one key of a term in a skill.
struct KeyScore {
    fields: [f64; field::COUNT],
    body_only: f64,
}

impl KeyScore {
    fn sum(&self) -> f64 {
        self.fields.iter().sum::<f64>() + self.body_only
    }
}

struct LexicalScorer<'a> {
    cx: &'a Context<'a>,
    terms: Vec<Term<'a>>,
    pairs: Vec<Term<'a>>,
    /// 1/√I, where I is the score of a skill that matches everything.
    scale: f64,
}

impl Matcher for Lexical {
    fn name(&self) -> &'static str {
        "lexical"
    }

    fn prepare<'a>(
        &self,
        reading: &'a Reading,
        cx: &'a Context<'a>,
    ) -> Result<Option<Box<dyn Scorer + 'a>>, Failure> {
        let (terms, ideal) = terms(reading, cx);
        if terms.is_empty() || ideal <= 0.0 {
            return Ok(None);
        }
        Ok(Some(Box::new(LexicalScorer {
            cx,
            terms,
            pairs: pairs(reading, cx),
            scale: ideal.sqrt().recip(),
        })))
    }
}

/// Collects the distinct stems of a request, and computes the ideal score.
fn terms<'a>(reading: &Reading, cx: &'a Context<'a>) -> (Vec<Term<'a>>, f64) {
    let n = cx.index.len();
    let mut out = Vec::new();
    let mut ideal = 0.0;
    for (at, read) in reading.words.iter().enumerate() {
        // It lowers the score like any other unknown word.
        if read.is_doubtful {
            ideal += rarity(n, 0);
        }
        if reading.row(at) != at || matches!(read.correction, Some(super::super::answer::Correction::Dropped))
        {
            continue;
        }
        // The weight is reduced only if every form of the stem is a stop word.
        let content = reading.words.iter().any(|w| w.word.stem == read.word.stem && !w.word.is_stop_word);
        let weight = if content { 1.0 } else { cx.weights.stop_word_weight };
        let ids = if read.completions.is_empty() {
            cx.index.vocabulary.find(&read.word.stem).into_iter().collect()
        } else {
            read.completions.clone()
        };
        let found = |id| {
            let found = cx.stem(id)?;
            let idf = rarity(n, found.documents);
            Some((found, idf))
        };
        let keys: Vec<(Rc<KeyPostings<'a>>, f64)> = ids.into_iter().filter_map(found).collect();
        if !content && keys.iter().any(|(found, _)| cx.is_too_common(found.documents)) {
            continue;
        }
        match keys.iter().map(|(_, idf)| *idf).reduce(f64::max) {
            Some(idf) => ideal += weight * idf,
            // A name is an object of the task, not the task itself.
            None if content && !read.is_proper_name => ideal += rarity(n, 0) * unknown_words(reading, cx, at),
            None => {}
        }
        if !keys.is_empty() {
            out.push(Term { keys, weight, content, row: Row::Word(at), label: Label::Word(at) });
        }
    }
    (out, ideal)
}

/// Returns how many words an unknown word counts as: an unknown pair of characters counts half for each character that
/// no known pair contains, because pairs across two words are unknown.
fn unknown_words(reading: &Reading, cx: &Context<'_>, at: usize) -> f64 {
    if !reading.is_pair(at) {
        return 1.0;
    }
    let is_known_before = reading.continues_run(at) && cx.documents(&reading.words[at - 1].word.stem) > 0;
    let is_last = at + 1 == reading.words.len() || !reading.continues_run(at + 1);
    f64::from(u8::from(!is_known_before) + u8::from(is_last)) / 2.0
}

/// Collects adjacent content stems of a request that are also adjacent in some skill. A repeated word is not a pair.
fn pairs<'a>(reading: &Reading, cx: &'a Context<'a>) -> Vec<Term<'a>> {
    let n = cx.index.len();
    let content: Vec<usize> = (0..reading.words.len())
        .filter(|at| !reading.words[*at].word.is_stop_word && reading.words[*at].completions.is_empty())
        .collect();
    let mut seen = Vec::new();
    let mut out = Vec::new();
    for two in content.windows(2) {
        let [first, second] = [two[0], two[1]].map(|at| &reading.words[at].word);
        let ids = [first, second].map(|w| cx.index.vocabulary.find(&w.stem));
        let [Some(a), Some(b)] = ids else { continue };
        if a == b {
            continue;
        }
        let key = Key::pair(a, b);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let Some(found) = cx.index.find(key, cx.view) else { continue };
        let idf = rarity(n, found.documents);
        let row = Row::Pair(reading.row(two[0]), reading.row(two[1]));
        let label = Label::Pair(two[0], two[1]);
        out.push(Term { keys: vec![(Rc::new(found), idf)], weight: 1.0, content: true, row, label });
    }
    out
}

impl LexicalScorer<'_> {
    fn scan(&self, term: &Term<'_>, pair: bool, weight: f64, column: &mut Column) {
        let derived = &self.cx.index.derived;
        let k = self.cx.weights.saturation as f32;
        let body = if pair { 0.0 } else { self.cx.profile.body * term.weight * self.scale };
        let norms = if pair { &derived.pair_norms } else { &derived.norms };
        let value = |idf: f64| {
            let (lex, only) = ((weight * idf) as f32, (body * idf) as f32);
            move |slot: usize, counts: Counts| {
                let tf = norms.weighted(slot, counts);
                lex * tf / (k + tf) + if counts.body_only() { only } else { 0.0 }
            }
        };
        let (full_match, short) = if term.content {
            (matched::CONTENT, matched::CONTENT | matched::SHORT)
        } else {
            (matched::STOP, matched::STOP)
        };
        if let [(found, idf)] = &term.keys[..] {
            let value = value(*idf);
            let (values, matched) = column.of_word(term.content);
            found.each(|slot, counts| {
                values[slot] += value(slot, counts);
                matched[slot] |= if counts.body_only() { full_match } else { short };
            });
            return;
        }
        // Of several completions, the best one counts for each skill.
        let mut all = Vec::new();
        for (found, idf) in &term.keys {
            let value = value(*idf);
            found.each(|slot, counts| {
                all.push((slot, value(slot, counts)));
                column.matched[slot] |= if counts.body_only() { full_match } else { short };
            });
        }
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        all.dedup_by_key(|(slot, _)| *slot);
        for (slot, value) in all {
            column.values[slot] += value;
        }
    }

    /// Appends the score terms of a query term in a slot, for its best key.
    fn parts(&self, term: &Term<'_>, pair: bool, weight: f64, slot: usize, out: &mut Vec<ScoreTerm>) {
        let body = if pair { 0.0 } else { self.cx.profile.body };
        let mut best: Option<KeyScore> = None;
        for (found, idf) in &term.keys {
            let Some(counts) = found.counts(slot) else { continue };
            let shares = self.shares(counts, pair, slot);
            let tf: f64 = shares.iter().sum();
            let value = weight * idf * tf / (self.cx.weights.saturation + tf);
            let score = KeyScore {
                fields: shares.map(|share| if share > 0.0 { value * share / tf } else { 0.0 }),
                body_only: if counts.body_only() { body * term.weight * idf * self.scale } else { 0.0 },
            };
            if best.as_ref().is_none_or(|best| score.sum() > best.sum()) {
                best = Some(score);
            }
        }
        let Some(best) = best else { return };
        let part = |signal, kind, field, value| {
            let label = term.label.clone();
            ScoreTerm { row: term.row, signal, kind, field, label, value }
        };
        let kind = if pair { TermKind::Bigram } else { TermKind::Term };
        for (f, value) in best.fields.into_iter().enumerate().filter(|(_, value)| *value > 0.0) {
            out.push(part(signal_of(f), kind, Some(field::NAMES[f]), value));
        }
        if best.body_only > 0.0 {
            out.push(part(ScoreComponent::Body, TermKind::BodyOnly, None, best.body_only));
        }
    }

    /// Computes `w_f · norm_f · count_f` by field.
    fn shares(&self, counts: Counts, pair: bool, slot: usize) -> [f64; field::COUNT] {
        let derived = &self.cx.index.derived;
        let norms = if pair { &derived.pair_norms } else { &derived.norms };
        std::array::from_fn(|f| f64::from(norms.of(slot, f)) * f64::from(counts.of(f)))
    }
}

impl Scorer for LexicalScorer<'_> {
    fn score(&self, column: &mut Column) -> Result<(), Failure> {
        for term in &self.terms {
            self.scan(term, false, self.cx.profile.lexical * term.weight * self.scale, column);
        }
        for pair in &self.pairs {
            self.scan(pair, true, self.cx.profile.bigram * self.scale, column);
        }
        Ok(())
    }

    fn explain(&self, slot: usize, out: &mut Vec<ScoreTerm>) {
        for term in &self.terms {
            self.parts(term, false, self.cx.profile.lexical * term.weight * self.scale, slot, out);
        }
        for pair in &self.pairs {
            self.parts(pair, true, self.cx.profile.bigram * self.scale, slot, out);
        }
    }
}
