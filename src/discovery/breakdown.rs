//! Groups score terms by word and signal into the breakdown, whose sum is the score.

use std::borrow::Cow;

use super::answer::{Breakdown, BreakdownTerm, ScoreComponent, WordRow};
use super::matcher::{Row, ScoreTerm};
use super::ranking::QueryContext;
use super::reading::Reading;

/// Returns the index of a signal in every array over signals.
pub(crate) fn column(signal: ScoreComponent) -> usize {
    match signal {
        ScoreComponent::Name => 0,
        ScoreComponent::Description => 1,
        ScoreComponent::Body => 2,
        ScoreComponent::Semantic => 3,
        ScoreComponent::Rule => 4,
    }
}

/// Groups terms into rows: exact matches, words by size, pairs by size, general wording, rules, policy.
pub(crate) fn breakdown(score_terms: Vec<ScoreTerm>, query: &QueryContext<'_>) -> Breakdown {
    let reading = query.reading;
    let mut rows: Vec<(Row, WordRow)> = Vec::new();
    let mut signals = [0.0; 5];
    let mut terms = Vec::with_capacity(score_terms.len());
    for term in score_terms.into_iter().filter(|a| a.value != 0.0) {
        let at = rows.iter().position(|(row, _)| *row == term.row).unwrap_or_else(|| {
            rows.push((term.row, empty(term.row, reading)));
            rows.len() - 1
        });
        let c = column(term.signal);
        rows[at].1.by_signal[c] += term.value;
        rows[at].1.sum += term.value;
        signals[c] += term.value;
        terms.push((term.row, term));
    }
    let class = |row: &Row| match row {
        Row::Exact => 0,
        Row::Word(_) => 1,
        Row::Pair(..) => 2,
        Row::General => 3,
        Row::Rules => 4,
        Row::Policy => 5,
    };
    rows.sort_by(|(a, x), (b, y)| class(a).cmp(&class(b)).then(y.sum.total_cmp(&x.sum)).then(a.cmp(b)));
    let terms = terms
        .into_iter()
        .map(|(row, a)| BreakdownTerm {
            row: rows.iter().position(|(r, _)| *r == row).unwrap_or_default(),
            signal: a.signal,
            kind: a.kind,
            field: a.field.map(Cow::Borrowed),
            label: a.label.into_text(reading, query.cx),
            value: a.value,
        })
        .collect();
    Breakdown { rows: rows.into_iter().map(|(_, row)| row).collect(), signals, terms }
}

fn empty(row: Row, reading: &Reading) -> WordRow {
    let (label, query_word) = match row {
        Row::Word(at) => (reading.read_as(at).to_owned(), Some(at)),
        Row::Pair(a, b) => (format!("{}+{}", reading.read_as(a), reading.read_as(b)), None),
        Row::General => ("general wording".to_owned(), None),
        Row::Exact => ("exact".to_owned(), None),
        Row::Rules => ("rules".to_owned(), None),
        Row::Policy => ("policy".to_owned(), None),
    };
    WordRow { label, query_word, by_signal: [0.0; 5], sum: 0.0 }
}
