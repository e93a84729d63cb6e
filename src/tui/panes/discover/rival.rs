//! Where the lead over the nearest rival comes from, word by word, with a short reason for each.

use crate::discovery::{Answer, Hit, Signal, SignalSums};
use crate::tui::widgets::measure::{cut_end, shown};

/// Scores that are nearer than this look the same.
pub const LEVEL: f64 = 0.005;

/// One word's share in the lead.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The word, pair, or `rules`.
    pub label: String,
    /// What the first has more (or, below zero, less).
    pub value: f64,
    /// Why, in a few words.
    pub reason: String,
    /// The same without the rival's name, where that has no room.
    pub short: &'static str,
}

/// A comparison of the selected hit with another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<'a> {
    /// The other one.
    pub rival: &'a Hit,
    /// Selected score minus the rival's.
    pub lead: f64,
    /// Differences, what speaks for the selected first; they add up to the lead.
    pub rows: Vec<Difference>,
}

/// The hit to compare with: for the first of the list the second, for every other one the first.
#[must_use]
pub fn nearest(answer: &Answer, selected: usize) -> Option<usize> {
    (0..answer.results.len()).find(|index| *index != selected)
}

/// Compares, with at most `max` rows; the smallest are gathered in the last.
#[must_use]
pub fn compare<'a>(selected: &Hit, rival: &'a Hit, max: usize) -> Comparison<'a> {
    let name = cut_end(&shown(rival.skill_id.as_str()), 12, "…").into_owned();
    let mut labels: Vec<&str> = Vec::new();
    for row in selected.breakdown.words.iter().chain(&rival.breakdown.words) {
        if !labels.contains(&row.label.as_str()) {
            labels.push(&row.label);
        }
    }
    let sums = |hit: &Hit, label: &str| {
        let mut out: SignalSums = [0.0; 5];
        for row in hit.breakdown.words.iter().filter(|r| r.label == label) {
            for (sum, value) in out.iter_mut().zip(row.by_signal) {
                *sum += value;
            }
        }
        out
    };
    let mut rows: Vec<Difference> = Vec::new();
    for label in labels {
        let (ours, theirs) = (sums(selected, label), sums(rival, label));
        let value = ours.iter().sum::<f64>() - theirs.iter().sum::<f64>();
        if value.abs() >= 0.005 {
            let (reason, short) = reason(label, &ours, &theirs, &name);
            rows.push(Difference { label: shown(label), value, reason, short });
        }
    }
    rows.sort_by(|a, b| b.value.abs().total_cmp(&a.value.abs()));
    let rest = if rows.len() > max && max > 0 { rows.split_off(max - 1) } else { Vec::new() };
    // What decided comes first: for a lead what speaks for it, else what speaks against.
    let lead = selected.score - rival.score;
    if lead > -LEVEL {
        rows.sort_by(|a, b| b.value.total_cmp(&a.value));
    } else {
        rows.sort_by(|a, b| a.value.total_cmp(&b.value));
    }
    if !rest.is_empty() {
        let value = rest.iter().map(|r| r.value).sum();
        let label = format!("{} more", rest.len());
        rows.push(Difference { label, value, reason: String::new(), short: "" });
    }
    Comparison { rival, lead, rows }
}

/// Which signal made the difference, in words: with the rival's name, and without.
fn reason(label: &str, ours: &SignalSums, theirs: &SignalSums, rival: &str) -> (String, &'static str) {
    let ahead = ours.iter().sum::<f64>() > theirs.iter().sum::<f64>();
    let (more, less) = if ahead { (ours, theirs) } else { (theirs, ours) };
    let signals = [Signal::Name, Signal::Description, Signal::Body, Signal::Semantic, Signal::Rule];
    let largest = (0..5).max_by(|&a, &b| (more[a] - less[a]).total_cmp(&(more[b] - less[b]))).unwrap_or(0);
    let said = |sums: &SignalSums| sums[..3].iter().any(|v| *v >= 0.005);
    let alone = less[largest] < 0.005;
    let never = signals[largest] != Signal::Rule && said(more) && !said(less);
    let ours = |text: &'static str| (text.to_owned(), text);
    match (signals[largest], ahead) {
        _ if label.contains('+') && ahead => ours("side by side"),
        _ if label.contains('+') => (format!("side by side in {rival}"), "side by side"),
        _ if never && ahead => (format!("{rival} never says it"), "never said"),
        _ if never => (format!("only {rival} says it"), "said alone"),
        (Signal::Name, true) => ours("in its name"),
        (Signal::Name, false) => (format!("in the name {rival}"), "in the name"),
        (Signal::Description, true) if alone => ours("in its description"),
        (Signal::Description, true) => ours("said stronger"),
        (Signal::Description, false) if alone => (format!("{rival} describes it"), "described"),
        (Signal::Description, false) => (format!("{rival} says it stronger"), "said stronger"),
        (Signal::Body, true) if alone => ours("in its body"),
        (Signal::Body, true) => ours("more in its body"),
        (Signal::Body, false) => (format!("in the body of {rival}"), "in the body"),
        (Signal::Semantic, true) => ours("nearer in meaning"),
        (Signal::Semantic, false) => (format!("{rival} is nearer"), "nearer in meaning"),
        (Signal::Rule, true) => ours("by rule"),
        (Signal::Rule, false) => (format!("by rule for {rival}"), "by rule"),
    }
}
