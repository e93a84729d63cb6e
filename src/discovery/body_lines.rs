//! Selects the lines of a body that contain words of a request, for display.

use std::collections::HashSet;

use super::answer::{BodyLine, ScoreComponent};
use super::marks::by_stem;
use super::tokenize::Words;

/// Yields each line and whether it belongs to a code fence, including the fence delimiters.
pub(crate) fn lines_outside_fences(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut open: Option<&str> = None;
    text.lines().map(move |line| {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|m| trimmed.starts_with(m));
        match (open, mark) {
            (None, Some(m)) => {
                open = Some(m);
                (line, true)
            }
            (Some(o), Some(m)) if o == m => {
                open = None;
                (line, true)
            }
            (o, _) => (line, o.is_some()),
        }
    })
}

/// Returns at most `limit` lines of a body with the most words of a request, in order; fenced code is skipped.
/// `first_line` is the number of the body's first line in its file.
pub(crate) fn body_lines(
    body: &str,
    first_line: u32,
    stems: &HashSet<&str>,
    words: &Words,
    limit: usize,
) -> Vec<BodyLine> {
    let mut found: Vec<(usize, BodyLine)> = Vec::new();
    for (line, (text, fenced)) in (first_line..).zip(lines_outside_fences(body)) {
        if fenced {
            continue;
        }
        let marks = by_stem(text, stems, words, ScoreComponent::Body);
        if marks.is_empty() {
            continue;
        }
        let mut distinct = HashSet::new();
        words.each_and_joined(text, |w, _| {
            if stems.contains(w.stem.as_str()) {
                distinct.insert(w.stem);
            }
        });
        found.push((distinct.len(), BodyLine { line, text: text.to_owned(), marks }));
    }
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.line.cmp(&b.1.line)));
    found.truncate(limit);
    found.sort_by_key(|(_, l)| l.line);
    found.into_iter().map(|(_, l)| l).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_most_words_are_in_order_without_code() {
        let words = Words::new(HashSet::new());
        let body = "# Tables\nNothing here.\n```\ntables in a pdf\n```\nA table of a PDF.\nThe pdf.\n";
        let stems = ["tabl", "pdf"].into();
        let lines = body_lines(body, 5, &stems, &words, 2);
        assert_eq!(lines.iter().map(|l| l.line).collect::<Vec<_>>(), [5, 10]);
        let marked: Vec<&str> =
            lines[1].marks.iter().map(|m| &lines[1].text[m.start as usize..m.end as usize]).collect();
        assert_eq!(marked, ["table", "PDF"]);
    }
}
