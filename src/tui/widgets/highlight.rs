//! Texts with the matches that contributed to a score: tinted by signal, or in brackets with ASCII.

use ratatui::style::Modifier;

use super::rich::Seg;
use super::text_width::TextWidth as _;
use crate::theme::Role;
use skills_discovery::{Mark, ScoreComponent};
use skills_skill::safe_text;

/// Returns the role of a match.
pub fn mark_role(signal: ScoreComponent) -> Role {
    match signal {
        ScoreComponent::Name => Role::MarkName,
        ScoreComponent::Description | ScoreComponent::Rule => Role::MarkDescription,
        ScoreComponent::Body => Role::MarkBody,
        ScoreComponent::Semantic => Role::MarkSemantic,
    }
}

/// Returns an untrusted text as segments on one line: matches in their signal's tint, the rest in `role`. White space
/// is collapsed to single spaces. Marks that are not on character boundaries are ignored.
pub fn marked(raw: &str, marks: &[Mark], role: Role, ascii: bool) -> Vec<Seg> {
    let mut segs = Vec::new();
    let mut at = 0;
    let mut pending_space = false;
    for mark in marks {
        let (start, end) = (mark.start as usize, mark.end as usize);
        let (Some(before), Some(inside)) = (raw.get(at..start), raw.get(start..end)) else { continue };
        push(&mut segs, before, role, &mut pending_space);
        if inside.trim().is_empty() {
            continue;
        }
        if pending_space && !segs.is_empty() {
            segs.push(Seg::new(" ", role));
        }
        pending_space = false;
        let mut inner = Vec::new();
        push(&mut inner, inside, mark_role(mark.signal), &mut pending_space);
        if ascii {
            segs.push(Seg::new("[", role));
            segs.append(&mut inner);
            segs.push(Seg::new("]", role));
        } else {
            segs.append(&mut inner);
        }
        at = end;
    }
    push(&mut segs, raw.get(at..).unwrap_or_default(), role, &mut pending_space);
    segs
}

/// Returns the byte offset in `raw` of an excerpt that shows the first match within `available` cells: 0 if that suffices,
/// else a word boundary before the match.
pub fn excerpt_from(raw: &str, marks: &[Mark], available: u16) -> usize {
    let Some(first) = marks.first() else { return 0 };
    let (start, end) = (first.start as usize, first.end as usize);
    let Some(before) = raw.get(..end.min(raw.len())) else { return 0 };
    if before.width() < usize::from(available) {
        return 0;
    }
    let lead = usize::from(available) / 4;
    let words = raw.get(..start).unwrap_or_default().char_indices().rev();
    let mut from = start;
    for (at, c) in words {
        if start - at > lead {
            break;
        }
        if c.is_whitespace() {
            from = at + c.len_utf8();
        }
    }
    from
}

/// Returns the marks of a text relative to its rest from `from` on.
pub fn marks_from(marks: &[Mark], from: usize) -> Vec<Mark> {
    let from = u32::try_from(from).unwrap_or(u32::MAX);
    let rest = marks.iter().filter(|mark| mark.start >= from);
    rest.map(|mark| Mark { start: mark.start - from, end: mark.end - from, signal: mark.signal }).collect()
}

/// Appends text with single spaces; a space at its end is deferred until more text follows.
fn push(segs: &mut Vec<Seg>, raw: &str, role: Role, pending_space: &mut bool) {
    let mut out = String::new();
    let mut rest = raw;
    while !rest.is_empty() {
        let word_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        if word_end > 0 {
            if *pending_space && !(segs.is_empty() && out.is_empty()) {
                out.push(' ');
            }
            *pending_space = false;
            out.push_str(&safe_text::line(&rest[..word_end]));
        }
        rest = &rest[word_end..];
        let trimmed = rest.trim_start();
        if trimmed.len() < rest.len() {
            *pending_space = true;
        }
        rest = trimmed;
    }
    if !out.is_empty() {
        segs.push(Seg { text: out, role, plus: Modifier::empty() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(start: u32, end: u32, signal: ScoreComponent) -> Mark {
        Mark { start, end, signal }
    }

    #[test]
    fn marks_are_tinted_and_the_rest_is_kept() {
        let raw = "Extracts tables\n  from PDF files";
        let marks = [mark(9, 15, ScoreComponent::Description), mark(23, 26, ScoreComponent::Description)];
        let segs = marked(raw, &marks, Role::Text, false);
        let text_of_line: String = segs.iter().map(|s| s.text.as_str()).collect();
        assert_eq!(text_of_line, "Extracts tables from PDF files");
        let tinted: Vec<&str> =
            segs.iter().filter(|s| s.role == Role::MarkDescription).map(|s| s.text.as_str()).collect();
        assert_eq!(tinted, ["tables", "PDF"]);
    }

    #[test]
    fn ascii_marks_are_brackets() {
        let segs = marked("pdf-tables", &[mark(0, 3, ScoreComponent::Name)], Role::Text, true);
        assert_eq!(segs.iter().map(|s| s.text.as_str()).collect::<String>(), "[pdf]-tables");
    }

    #[test]
    fn mark_inside_a_character_is_ignored() {
        let segs = marked("表格", &[mark(1, 2, ScoreComponent::Name)], Role::Text, false);
        assert_eq!(segs.iter().map(|s| s.text.as_str()).collect::<String>(), "表格");
    }
}
