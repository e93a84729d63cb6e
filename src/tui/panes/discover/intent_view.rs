//! Draws the request: its words as the router parsed them, the contribution of each to the selected skill beneath it,
//! and in one line whether any skill fits.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::ask::PendingRequests;
use super::request_form::RequestForm;
use super::view::fit_sign;
use crate::field::Field;
use crate::glyphs::Glyphs;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::text_width::TextWidth as _;
use crate::widgets::{Painter, RichLine, Seg, cells, count, elapsed_micros, head, score, shown, wrap_to};
use skills_discovery::{Answer, Correction, Fit, Hit, QueryWord};

/// Minimum height for a verdict of two rows.
const TALL: u16 = 16;

/// Draws the field's band; in a band of several rows the contribution of each word is below the text.
pub(super) fn draw(
    form: &mut RequestForm,
    asking: &PendingRequests,
    hit: Option<&Hit>,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &mut Draw<'_>,
) {
    let row = u16::from(area.height > 1);
    let y = area.y + row;
    let words = live_words(form.field.text(), asking);
    let line = Rect { x: area.x + 4, y, width: area.width.saturating_sub(5), height: 1 };
    let spans = word_styles(&words, hit, cx);
    form.area = area;
    let mut painter = Painter::new(buf, cx);
    painter.band(area, Role::Field);
    painter.put(area.x + 2, y, painter.glyphs.prompt, if focused { Role::Accent } else { Role::Muted }, 1);
    if form.field.is_empty() && !focused {
        painter.put(line.x, y, "describe your task", Role::Muted, line.width);
    }
    let style = cx.theme.style(Role::Field).patch(cx.theme.style(Role::Text));
    let cursor = form.field.draw(line, buf, style, &spans);
    if focused {
        cx.cursor = cursor;
    }
    if area.height > row + 1 {
        let below = Rect { y: y + 1, ..line };
        draw_contributions(&form.field, &words, hit, below, &mut Painter::new(buf, cx));
    }
}

/// Returns the words of the last answer that are still in the field unchanged.
fn live_words(text: &str, asking: &PendingRequests) -> Vec<(usize, QueryWord)> {
    let Some(shown) = asking.shown() else { return Vec::new() };
    let same = text.bytes().zip(shown.intent.bytes()).take_while(|(a, b)| a == b).count();
    let words = shown.answer.words.iter().cloned().enumerate();
    words
        .filter(|(_, w)| w.end as usize <= same && text.get(w.start as usize..w.end as usize).is_some())
        .collect()
}

/// Returns the contribution of a word to the score of the selected skill.
fn contribution(hit: Option<&Hit>, word: usize) -> Option<f64> {
    let rows = &hit?.breakdown.rows;
    let mut own = rows.iter().filter(|r| r.query_word == Some(word)).map(|r| r.sum).peekable();
    own.peek().is_some().then(|| own.sum())
}

fn word_styles(words: &[(usize, QueryWord)], hit: Option<&Hit>, cx: &Draw<'_>) -> Vec<(Range<usize>, Style)> {
    let most = words.iter().filter_map(|(i, _)| contribution(hit, *i)).fold(0.0, f64::max);
    let style = |(index, word): &(usize, QueryWord)| {
        let contribution = contribution(hit, *index).unwrap_or(0.0);
        let role = if word.stop {
            Role::Muted
        } else if most > 0.0 && contribution >= 0.1 * most.max(0.5) {
            Role::Strong
        } else {
            Role::Text
        };
        (word.start as usize..word.end as usize, cx.theme.style(role))
    };
    words.iter().map(style).collect()
}

fn draw_contributions(
    field: &Field,
    words: &[(usize, QueryWord)],
    hit: Option<&Hit>,
    area: Rect,
    painter: &mut Painter<'_>,
) {
    // The contribution of a word is below it, as one sum for the parts of `next.js`.
    let text = field.text();
    let by_word = |a: &(usize, QueryWord), b: &(usize, QueryWord)| {
        text.get(a.1.end as usize..b.1.start as usize).is_none_or(|gap| gap.contains(char::is_whitespace))
    };
    let figure = |parts: &[(usize, QueryWord)]| {
        let contributions: Vec<f64> =
            parts.iter().filter_map(|(index, _)| contribution(hit, *index)).collect();
        let is_unknown = parts.iter().all(|(_, word)| !word.known && !word.stop);
        let contribution = contributions.iter().sum::<f64>();
        let x = field.column(parts.first()?.1.start as usize)?;
        match contribution {
            contribution if contribution.abs() >= 0.005 => Some((x, forms(contribution, painter.glyphs))),
            _ if is_unknown => Some((x, vec!["0".to_owned()])),
            _ => None,
        }
    };
    let mut figures: Vec<(u16, Vec<String>)> =
        words.chunk_by(|a, b| !by_word(a, b)).filter_map(figure).collect();
    figures.sort_by_key(|(x, _)| *x);
    let rooms: Vec<u16> = (0..figures.len())
        .map(|at| {
            let start = figures.get(at).map_or(0, |one| one.0);
            figures
                .get(at + 1)
                .map_or(area.right().saturating_sub(start), |next| next.0.saturating_sub(start + 1))
        })
        .collect();
    // All have the same number of decimals, except where a word is too narrow for that.
    let fits = |form: usize| {
        let mut all = figures.iter().zip(&rooms);
        all.all(|((_, forms), available)| {
            forms.get(form).or(forms.last()).is_none_or(|one| cells(one) <= *available)
        })
    };
    let first = usize::from(!fits(0));
    let mut taken: Vec<Range<u16>> = Vec::new();
    for ((x, forms), available) in figures.iter().zip(&rooms) {
        let mut shorter = forms.iter().skip(first);
        // A word of one letter is too narrow for a number.
        let none = head(painter.glyphs.ellipsis, 1);
        let text = shorter.find(|one| cells(one) <= *available).map_or(none, String::as_str);
        if x + cells(text) > area.right() {
            continue;
        }
        let end = painter.put(*x, area.y, text, Role::Muted, area.right() - x);
        taken.push(*x..end);
    }
    let free = taken.iter().map(|one| one.end + 1).max().unwrap_or(area.x);
    let notes: Vec<String> = words.iter().filter_map(|(_, w)| correction(w)).collect();
    if !notes.is_empty() {
        let available = area.right().saturating_sub(free + 1);
        let notes = notes.join(", ");
        painter.put_cut(free + 1, area.y, &notes, Role::Info, available);
    }
}

/// Returns the verdict next to the request in at most `most` rows: the statement about the first result, and the
/// reason in the rows below.
pub(super) fn status_lines(
    asking: &PendingRequests,
    width: u16,
    most: usize,
    cx: &Draw<'_>,
) -> Vec<RichLine> {
    let Some(shown_answer) = asking.shown() else { return Vec::new() };
    let answer = &shown_answer.answer;
    let width = width.saturating_sub(5);
    let available = width.saturating_sub(cells(&elapsed_micros(answer.took_us)) + 2);
    let sentence = [Seg::new(sentence(asking, answer), Role::Strong)];
    let mut rows = wrap_to(&sentence, available, most, cx.glyphs.ellipsis);
    let why = [Seg::new(reason_text(asking, answer), Role::Muted)];
    rows.extend(wrap_to(&why, width, most - rows.len(), cx.glyphs.ellipsis));
    rows
}

pub(super) fn draw_status(asking: &PendingRequests, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    let Some(shown_answer) = asking.shown() else { return };
    let answer = &shown_answer.answer;
    let all = usize::from(area.height);
    let rows = status_lines(asking, area.width, all, cx);
    let mut painter = Painter::new(buf, cx);
    let (x, end) = (area.x + 2, area.right().saturating_sub(1));
    let took = elapsed_micros(answer.took_us);
    let width = end.saturating_sub(x + 2);
    // Two rows are next to the request and the contributions of its words.
    let top = if rows.len() < all { area.y + 1 } else { area.y };
    let (sign, role) = fit_sign(answer.fit, cx);
    painter.put(x, top, sign, role, 1);
    for (row, line) in rows.iter().enumerate() {
        painter.line(x + 2, top + row as u16, line, width);
    }
    painter.right(end, top, &took, Role::Muted);
}

/// Returns the verdict with its reason over the full width, in one or two rows; names are truncated last.
pub(super) fn verdict_lines(
    asking: &PendingRequests,
    width: u16,
    height: u16,
    cx: &Draw<'_>,
) -> Vec<RichLine> {
    let Some(shown_answer) = asking.shown() else { return Vec::new() };
    let answer = &shown_answer.answer;
    let available = width.saturating_sub(5);
    let sentence = sentence(asking, answer);
    let long = cells(&sentence) > available;
    let mut segs = vec![Seg::new(sentence, Role::Strong)];
    let reason = reason_text(asking, answer);
    if !reason.is_empty() {
        // While skills are loaded, and if nothing fits, the reason is about a different subject than the sentence.
        let joint = match answer.fit {
            _ if asking.reading().is_some() => format!(" {} ", cx.glyphs.dot),
            Fit::None => "; ".to_owned(),
            _ => ": ".to_owned(),
        };
        segs.push(Seg::new(format!("{joint}{reason}"), Role::Muted));
    }
    let rows = if height >= TALL || long { 2 } else { 1 };
    let mut lines = wrap_to(&segs, available, rows, cx.glyphs.ellipsis);
    let took = elapsed_micros(answer.took_us);
    if let [line] = &mut lines[..] {
        let gap = usize::from(available).saturating_sub(line.width() + took.width());
        if gap > 1 {
            line.segs.push(Seg::new(format!("{}{took}", " ".repeat(gap)), Role::Muted));
        }
    }
    lines
}

pub(super) fn draw_verdict(
    asking: &PendingRequests,
    lines: &[RichLine],
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) {
    let Some(shown_answer) = asking.shown() else { return };
    let mut painter = Painter::new(buf, cx);
    painter.band(area, Role::Field);
    let (sign, role) = fit_sign(shown_answer.answer.fit, cx);
    painter.put(area.x + 2, area.y, sign, role, 1);
    for (row, line) in lines.iter().enumerate() {
        painter.line(area.x + 4, area.y + row as u16, line, area.width.saturating_sub(5));
    }
}

/// Returns the sentence about the first result; it may change while skills are loaded.
fn sentence(asking: &PendingRequests, answer: &Answer) -> String {
    let sentence = shown(&answer.verdict.sentence);
    match asking.reading().map(|(read, all)| (count(read), count(all))) {
        None => sentence,
        Some((read, all)) if answer.skills == 0 => format!("no skill is indexed yet ({read} of {all})"),
        Some((read, all)) => format!("{sentence}; provisional, {read} of {all}"),
    }
}

/// Describes why the first result fits or is the nearest, and which words of the request no skill contains.
fn reason_text(asking: &PendingRequests, answer: &Answer) -> String {
    let intent = asking.shown().map_or("", |shown| &shown.intent);
    let unknown: Vec<String> =
        answer.unknown_words(intent).map(|word| format!("“{}”", shown(word))).collect();
    let reason = answer.results.first().map(|first| match answer.fit {
        // If nothing fits, the sentence does not name the first result.
        Fit::None => format!("closest: {} ({})", shown(first.skill_id.as_str()), shown(&first.reason)),
        _ => shown(&first.reason),
    });
    let unknown = (!unknown.is_empty()).then(|| format!("unknown words: {}", unknown.join(", ")));
    reason.into_iter().chain(unknown).collect::<Vec<_>>().join("; ")
}

/// Formats a number with two decimals, with one, and as short as possible.
fn forms(contribution: f64, glyphs: &Glyphs) -> Vec<String> {
    let sign = if contribution < 0.0 { glyphs.minus } else { "" };
    let one = format!("{:.1}", contribution.abs());
    let least = match one.strip_prefix("0.") {
        Some(decimals) => format!("{sign}.{decimals}"),
        None => format!("{sign}{:.0}", contribution.abs()),
    };
    vec![score(contribution, glyphs), format!("{sign}{one}"), least]
}

fn correction(word: &QueryWord) -> Option<String> {
    match word.correction.as_ref()? {
        Correction::Typo(read) => Some(format!("read as “{}”", shown(read))),
        Correction::Completed(words) => {
            let first: Vec<String> = words.iter().take(3).map(|w| format!("“{}”", shown(w))).collect();
            let more = if words.len() > 3 { " …" } else { "" };
            Some(format!("read as {}{more}", first.join(", ")))
        }
        Correction::Dropped => Some("last word is too short to match".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glyphs::UNICODE;

    #[test]
    fn a_figure_has_shorter_forms() {
        assert_eq!(forms(1.61, &UNICODE), ["1.61", "1.6", "2"]);
        assert_eq!(forms(0.52, &UNICODE), ["0.52", "0.5", ".5"]);
        assert_eq!(forms(-0.13, &UNICODE), ["−0.13", "−0.1", "−.1"]);
    }
}
