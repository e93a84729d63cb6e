//! The lead over another result by words, with a short reason for each.

use crate::widgets::breakdown::is_stop_word;
use crate::widgets::{cells, cut_end, shown};
use skills_discovery::{Answer, Hit, QueryWord, ScoreComponent, SignalSums, WordRow};

/// Scores that differ by less are shown as equal.
pub const LEVEL: f64 = 0.005;

/// The label of all stop words together.
const STOP_WORDS: &str = "stop words";

/// The contribution of a word to the lead.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The word, pair, or `rules`.
    pub label: String,
    /// Whether the label is a word of the request.
    pub is_word: bool,
    /// The difference to the other hit; negative if that has more.
    pub value: f64,
    pub reason: Reason,
}

/// Why a word made a difference, in a few words that name the skill to which they apply: the other skill's name, if any, is
/// between the two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reason {
    before: &'static str,
    /// The text after the other skill's name; `None` if the reason concerns the selected skill.
    after: Option<&'static str>,
    /// The reason without a name, for narrow columns.
    short: &'static str,
}

impl Reason {
    /// Formats the reason in at most `available` cells, truncating the other skill's name; a name that would be truncated
    /// to a few letters is replaced by *the other*. If that does not fit, the reason is a word without a name.
    pub fn text(self, other: &str, available: u16, ellipsis: &str) -> String {
        const OTHER: &str = "the other";
        let text = match self.after {
            None => self.before.to_owned(),
            Some(after) => {
                let width = available.saturating_sub(cells(self.before) + cells(after));
                let is_legible = width >= cells(other) || width > cells(OTHER) + 2;
                let name = if is_legible { cut_end(other, width, ellipsis) } else { OTHER.into() };
                format!("{}{name}{after}", self.before)
            }
        };
        let text = if cells(&text) <= available { text.as_str() } else { self.short };
        cut_end(text, available, ellipsis).into_owned()
    }
}

/// A comparison of the selected hit with another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<'a> {
    pub other: &'a Hit,
    /// Score of the selected hit minus that of the other hit.
    pub lead: f64,
    /// Differences, those in favor of the selected hit first; they add up to the lead.
    pub rows: Vec<Difference>,
}

/// Returns the hit to compare with: for the first of the list the second, for every other one the first.
pub fn nearest<'a>(answer: &'a Answer, selected: &Hit) -> Option<&'a Hit> {
    answer.results.iter().find(|hit| hit.skill_id != selected.skill_id)
}

/// Compares two hits in at most `max` rows; the smallest differences are summed in the last one, and stop words of the
/// request in one.
pub fn compare<'a>(selected: &Hit, other: &'a Hit, words: &[QueryWord], max: usize) -> Comparison<'a> {
    fn of<'r>(row: &'r WordRow, words: &[QueryWord]) -> &'r str {
        if is_stop_word(row, words) { STOP_WORDS } else { &row.label }
    }
    let mut labels: Vec<(&str, bool)> = Vec::new();
    for row in selected.breakdown.rows.iter().chain(&other.breakdown.rows) {
        let label = of(row, words);
        if !labels.iter().any(|(known, _)| *known == label) {
            labels.push((label, row.query_word.is_some() && label != STOP_WORDS));
        }
    }
    let sums = |hit: &Hit, label: &str| {
        let mut out: SignalSums = [0.0; 5];
        for row in hit.breakdown.rows.iter().filter(|r| of(r, words) == label) {
            for (sum, value) in out.iter_mut().zip(row.by_signal) {
                *sum += value;
            }
        }
        out
    };
    let mut rows: Vec<Difference> = Vec::new();
    for (label, is_word) in labels {
        let (ours, theirs) = (sums(selected, label), sums(other, label));
        let value = ours.iter().sum::<f64>() - theirs.iter().sum::<f64>();
        if value.abs() >= 0.005 {
            let reason = reason(label, &ours, &theirs);
            rows.push(Difference { label: shown(label), is_word, value, reason });
        }
    }
    rows.sort_by(|a, b| b.value.abs().total_cmp(&a.value.abs()));
    let rest = if rows.len() > max && max > 0 { rows.split_off(max - 1) } else { Vec::new() };
    // The decisive rows come first: for a lead those in favor, else those against.
    let lead = selected.score - other.score;
    if lead > -LEVEL {
        rows.sort_by(|a, b| b.value.total_cmp(&a.value));
    } else {
        rows.sort_by(|a, b| a.value.total_cmp(&b.value));
    }
    if !rest.is_empty() {
        let value = rest.iter().map(|r| r.value).sum();
        let label = format!("{} more", rest.len());
        rows.push(Difference { label, is_word: false, value, reason: Reason::default() });
    }
    Comparison { other, lead, rows }
}

/// Returns which signal made the difference, and in favor of which of the two.
fn reason(label: &str, ours: &SignalSums, theirs: &SignalSums) -> Reason {
    let ahead = ours.iter().sum::<f64>() > theirs.iter().sum::<f64>();
    let (more, less) = if ahead { (ours, theirs) } else { (theirs, ours) };
    let signals = [
        ScoreComponent::Name,
        ScoreComponent::Description,
        ScoreComponent::Body,
        ScoreComponent::Semantic,
        ScoreComponent::Rule,
    ];
    let largest = (0..5).max_by(|&a, &b| (more[a] - less[a]).total_cmp(&(more[b] - less[b]))).unwrap_or(0);
    let message = |sums: &SignalSums| sums[..3].iter().any(|v| *v >= 0.005);
    let alone = less[largest] < 0.005;
    let signal = signals[largest];
    let never = signal != ScoreComponent::Rule && message(more) && !message(less);
    let ours = |before, short| Reason { before, after: None, short };
    let theirs = |before, after, short| Reason { before, after: Some(after), short };
    match (signal, ahead) {
        _ if label == STOP_WORDS => Reason::default(),
        _ if label.contains('+') && ahead => ours("adjacent words", "adjacent"),
        _ if label.contains('+') => theirs("adjacent in ", "", "adjacent"),
        _ if never && ahead => theirs("not in ", "", "only here"),
        _ if never => theirs("only in ", "", "only there"),
        (ScoreComponent::Name, true) => ours("in its name", "name"),
        (ScoreComponent::Name, false) => theirs("in the name ", "", "name"),
        (ScoreComponent::Description, true) if alone => ours("in its description", "description"),
        (ScoreComponent::Description, true) => theirs("higher than in ", "", "higher"),
        (ScoreComponent::Description, false) if alone => theirs("", " describes it", "description"),
        (ScoreComponent::Description, false) => theirs("higher in ", "", "lower"),
        (ScoreComponent::Body, true) if alone => ours("in its body", "body"),
        (ScoreComponent::Body, true) => ours("higher in its body", "body"),
        (ScoreComponent::Body, false) => theirs("in the body of ", "", "body"),
        (ScoreComponent::Semantic, true) => ours("closer in meaning", "meaning"),
        (ScoreComponent::Semantic, false) => theirs("", " is closer", "meaning"),
        (ScoreComponent::Rule, true) => ours("rules favor it", "rule"),
        (ScoreComponent::Rule, false) => theirs("rules favor ", "", "rule"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_reason_is_a_word_instead_of_a_truncated_sentence() {
        let reason = Reason { before: "only in ", after: Some(""), short: "only there" };
        assert_eq!(reason.text("pdf-forms", 40, "…"), "only in pdf-forms");
        assert_eq!(reason.text("release-notes", 17, "…"), "only in the other");
        assert_eq!(reason.text("release-notes", 16, "…"), "only there");
    }
}
