//! Draws a proposal: its checks, diff, justification and effect as one scrollable text, and its decision below.

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::diff_view::{self, DiffRow};
use super::list_view::{gain, sign, state_label};
use crate::glyphs::Glyphs;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{
    Painter, RichLine, Scroll, Seg, Title, ago, break_code, cells, count, counted, cut_line, cut_middle,
    exact, rows_above_note, shown, wrap, wrap_to,
};
use skills_api::{
    CheckResult, ProposalCheck, ProposalCheckKind, ProposalDecision, ProposalState, ProposalSummary,
    ProposalView,
};
use skills_discovery::{ChangedQuery, GoldenChange};

/// Minimum width for a diff of two columns.
const TWO_COLUMNS_WIDTH: u16 = 78;
/// Minimum width for changed queries next to the metrics.
const MIN_SIDE_BY_SIDE_WIDTH: u16 = 72;
const DECISION_ROWS: u16 = 4;
/// Maximum number of skills named among the changed queries.
const MAX_RIVALS: usize = 6;

/// A row of the text.
enum Line {
    Title(String, RichLine),
    Rich(RichLine),
    Diff(DiffRow),
}

/// The text of the proposal that is shown: its scroll position and layout.
#[derive(Default)]
pub(super) struct ProposalText {
    pub scroll: Scroll,
    rows: usize,
    /// Whether the diff has one column although two would fit.
    pub unified: bool,
    /// Area of the last frame.
    pub area: Rect,
}

impl ProposalText {
    /// Shows another proposal from its top.
    pub fn reset_if(&mut self, is_other: bool) {
        if is_other {
            self.scroll = Scroll::default();
        }
    }

    /// Returns whether the area of the last frame is wide enough for a diff of two columns.
    pub fn fits_split(&self) -> bool {
        text_width(self.area) >= TWO_COLUMNS_WIDTH
    }

    pub fn roll(&mut self, by: isize) {
        self.scroll.roll(by, self.rows);
    }
}

/// Returns the width of the text, within the margins and without the column of the left edge.
fn text_width(area: Rect) -> u16 {
    area.width.saturating_sub(3)
}

/// Draws the proposal; returns the rows that have a rule.
pub(super) fn draw(
    part: &mut ProposalText,
    summary: Option<&ProposalSummary>,
    view: Option<&ProposalView>,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> Vec<u16> {
    part.area = area;
    let mut painter = Painter::new(buf, cx);
    let Some(summary) = summary else {
        Title::of("Proposal", focused).draw(&mut painter, area.x, area.y, area.width);
        return Vec::new();
    };
    let name = shown(summary.skill_id.as_str());
    let changed = view.and_then(|view| view.part).map(|part| format!("changes the {part}"));
    let title = Title::of(name, focused).note(changed.unwrap_or_default());
    title.draw(&mut painter, area.x, area.y, area.width);
    let body = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(1),
    };
    let Some(view) = view else {
        painter.put(body.x + 1, body.y, "reading the proposal", Role::Muted, body.width);
        return Vec::new();
    };
    let waits = summary.state == ProposalState::Waiting;
    let decision = if waits && body.height > DECISION_ROWS + 8 { DECISION_ROWS + 1 } else { 0 };
    let text = Rect { height: body.height - decision, ..body };
    let lines = lines(view, part.unified, text.width.saturating_sub(1), cx.clock_ms, painter.glyphs);
    part.rows = lines.len();
    part.scroll.height = rows_above_note(lines.len(), text.height);
    part.roll(0);
    let mut rules = Vec::new();
    let column = diff_view::column_width(text.width.saturating_sub(1));
    for (line, y) in lines.iter().skip(part.scroll.offset).take(part.scroll.height).zip(text.y..) {
        match line {
            Line::Title(name, note) => {
                let title = Title { note: note.clone(), ..Title::of(name.clone(), false) };
                title.draw(&mut painter, area.x, y, area.width);
                rules.push(y);
            }
            Line::Rich(line) | Line::Diff(DiffRow::One(line)) => {
                painter.line(text.x + 1, y, line, text.width.saturating_sub(1));
            }
            Line::Diff(DiffRow::Two(left, right)) => {
                if let Some(left) = left {
                    painter.line(text.x + 1, y, left, column);
                }
                painter.put(text.x + 1 + column, y, painter.glyphs.bar, Role::Rule, 1);
                if let Some(right) = right {
                    painter.line(text.x + 2 + column, y, right, column);
                }
            }
        }
    }
    let below = lines.len().saturating_sub(part.scroll.offset + part.scroll.height);
    if below > 0 {
        let note = format!(" {} more below {} ", count(below), painter.glyphs.down);
        painter.right(text.right(), text.bottom().saturating_sub(1), &note, Role::Muted);
    }
    if decision > 0 {
        let band =
            Rect { x: area.x, y: body.bottom() - DECISION_ROWS, width: area.width, height: DECISION_ROWS };
        draw_decision(view, band, &mut painter);
    }
    rules
}

fn lines(view: &ProposalView, unified: bool, width: u16, clock_ms: i64, glyphs: &Glyphs) -> Vec<Line> {
    let mut lines = Vec::new();
    push_head(&mut lines, view, width, clock_ms, glyphs);
    let (added, removed) = diff_view::changed_words(&view.hunks);
    let note = RichLine::from_segs(vec![
        Seg::new(format!("SKILL.md {} ", glyphs.dot), Role::Muted),
        Seg::new(format!("{} {} ", counted(view.hunks.len(), "hunk"), glyphs.dot), Role::Muted),
        Seg::new(format!("+{added} {}{removed} words", glyphs.minus), Role::Muted),
    ]);
    lines.push(Line::Rich(RichLine::default()));
    lines.push(Line::Title("Diff".to_owned(), note));
    let two_columns = !unified && width >= TWO_COLUMNS_WIDTH;
    if two_columns {
        let column = usize::from(diff_view::column_width(width));
        let tokens = |count: u32| format!("{count} tok");
        let (before, after) =
            view.description_tokens.map_or_else(Default::default, |(a, b)| (tokens(a), tokens(b)));
        let side = |name: &str, note: &str| {
            let gap = column.saturating_sub(name.len() + note.len() + 1);
            format!("{name}{}{note} ", " ".repeat(gap))
        };
        let applies = |check: &ProposalCheck| {
            check.check == ProposalCheckKind::Unchanged && check.result == CheckResult::Pass
        };
        let old = if view.checks.iter().any(applies) { "current" } else { "base" };
        let head = format!("{} {}", side(old, &before), side("proposed", &after));
        lines.push(Line::Rich(RichLine::of(head, Role::Muted)));
    }
    lines.extend(diff_view::rows(&view.hunks, width, two_columns).into_iter().map(Line::Diff));
    push_texts(&mut lines, view, width);
    push_effect(&mut lines, view.effect.as_ref(), width, glyphs);
    push_findings(&mut lines, view, width, glyphs);
    lines
}

fn push_head(lines: &mut Vec<Line>, view: &ProposalView, width: u16, clock_ms: i64, glyphs: &Glyphs) {
    let summary = &view.summary;
    let (glyph, role) = sign(summary.state, glyphs);
    let message = format!(
        " {} proposed {} by {}",
        glyphs.dot,
        ago(clock_ms.saturating_sub(summary.proposed_at_ms)),
        shown(&summary.proposed_by)
    );
    lines.push(Line::Rich(RichLine::from_segs(vec![
        Seg::new(format!("{glyph} {}", state_label(summary.state)), role),
        Seg::new(message, Role::Muted),
    ])));
    let decided = |what: &str, one: &ProposalDecision| {
        let notes = one.notes.as_deref().map(|notes| format!(": {}", shown(notes))).unwrap_or_default();
        format!("{what} by {}, {}{notes}", shown(&one.by), ago(clock_ms.saturating_sub(one.at_ms)))
    };
    let verb = if summary.state == ProposalState::Denied { "denied" } else { "approved" };
    let decisions = [(verb, &summary.decision), ("rolled back", &summary.rollback)];
    for (verb, one) in decisions.iter().filter_map(|(verb, one)| Some((verb, one.as_ref()?))) {
        let segs = [Seg::new(decided(verb, one), Role::Text)];
        lines.extend(wrap(&segs, width).into_iter().map(|segs| Line::Rich(RichLine::from_segs(segs))));
    }
    let mut row: Vec<Seg> = Vec::new();
    let mut used = 0;
    for check in &view.checks {
        let (glyph, role) = match check.result {
            CheckResult::Pass => (glyphs.ok, Role::Success),
            CheckResult::Fail => (glyphs.bad, Role::Danger),
            CheckResult::Unknown => (glyphs.warn, Role::Warning),
        };
        let name = if check.check == ProposalCheckKind::Lint { "lint: " } else { "" };
        let text = format!(" {name}{}", shown(&check.evidence));
        let wide = cells(glyph) + cells(&text) + 3;
        if used > 0 && used + wide > width {
            lines.push(Line::Rich(RichLine::from_segs(std::mem::take(&mut row))));
            used = 0;
        }
        let role_of_text = if check.result == CheckResult::Fail { Role::Strong } else { Role::Text };
        row.extend([Seg::new(glyph, role), Seg::new(text, role_of_text), Seg::new("   ", Role::Text)]);
        used += wide;
    }
    if !row.is_empty() {
        lines.push(Line::Rich(RichLine::from_segs(row)));
    }
}

fn push_texts(lines: &mut Vec<Line>, view: &ProposalView, width: u16) {
    let texts = [("Justification", Some(&view.justification)), ("Evidence", view.evidence.as_ref())];
    for (title, text) in texts.iter().filter_map(|(title, text)| Some((title, text.as_ref()?))) {
        lines.push(Line::Rich(RichLine::default()));
        lines.push(Line::Title((*title).to_owned(), RichLine::default()));
        for line in text.lines() {
            let broken = break_code(&[Seg::new(exact(line), Role::Text)], width);
            lines.extend(broken.into_iter().map(|segs| Line::Rich(RichLine::from_segs(segs))));
        }
    }
}

fn push_effect(lines: &mut Vec<Line>, effect: Option<&GoldenChange>, width: u16, glyphs: &Glyphs) {
    lines.push(Line::Rich(RichLine::default()));
    let note = effect.map(|effect| counted(effect.after.queries, "query")).unwrap_or_default();
    lines.push(Line::Title("Effect on the golden set".to_owned(), RichLine::of(note, Role::Muted)));
    let Some(effect) = effect else {
        let none = "Effect unknown: no golden set, skill not ranked, or file changed.";
        lines.push(Line::Rich(RichLine::of(none, Role::Muted)));
        return;
    };
    let (before, after) = (&effect.before, &effect.after);
    let mut rows = vec![vec![Seg::new(format!("{:<16}{:>8}{:>8}", "", "before", "after"), Role::Muted)]];
    let figure = |name: &str, old: f64, new: f64| {
        let change = new - old;
        let (glyph, role) = match change {
            change if change.abs() < 5e-4 => ("=", Role::Muted),
            change if change > 0.0 => (glyphs.up, Role::Success),
            _ => (glyphs.down, Role::Danger),
        };
        vec![
            Seg::new(format!("{name:<16}"), Role::Text),
            Seg::new(format!("{old:>8.3}"), Role::Muted),
            Seg::new(format!("{new:>8.3}"), Role::Strong),
            Seg::new(format!("  {glyph}"), role),
            Seg::new(format!(" {:<8}", gain(change, glyphs)), Role::Text),
        ]
    };
    if after.queries > 0 {
        rows.push(figure("P@1", before.p_at_1, after.p_at_1));
        rows.push(figure("MRR@10", before.mrr_at_10, after.mrr_at_10));
    }
    let (old, new) = (before.false_triggers, after.false_triggers);
    let (glyph, role) = match new.cmp(&old) {
        std::cmp::Ordering::Less => (glyphs.down, Role::Success),
        std::cmp::Ordering::Equal => ("=", Role::Muted),
        std::cmp::Ordering::Greater => (glyphs.up, Role::Danger),
    };
    rows.push(vec![
        Seg::new(format!("{:<16}", "false triggers"), Role::Text),
        Seg::new(format!("{old:>8}"), Role::Muted),
        Seg::new(format!("{new:>8}"), Role::Strong),
        Seg::new(format!("  {glyph}"), role),
        Seg::new(" ".repeat(9), Role::Text),
    ]);
    let mut changed = vec![vec![Seg::new(
        match effect.won.len() + effect.lost.len() {
            0 => "no query changes".to_owned(),
            1 => "1 query changes".to_owned(),
            many => format!("{many} queries change"),
        },
        Role::Muted,
    )]];
    changed.extend(rivals(&effect.won, |query| query.from.as_ref()).into_iter().map(|(skill, queries)| {
        vec![Seg::new(glyphs.ok, Role::Success), Seg::new(format!(" from {skill} {queries}"), Role::Text)]
    }));
    changed.extend(rivals(&effect.lost, |query| query.to.as_ref()).into_iter().map(|(skill, queries)| {
        vec![Seg::new(glyphs.bad, Role::Danger), Seg::new(format!(" to {skill} {queries}"), Role::Text)]
    }));
    if width >= MIN_SIDE_BY_SIDE_WIDTH {
        let height = rows.len().max(changed.len());
        for at in 0..height {
            let mut row = rows.get(at).cloned().unwrap_or_else(|| vec![Seg::new(" ".repeat(32), Role::Text)]);
            let used: u16 = row.iter().map(|seg| cells(&seg.text)).sum();
            row.push(Seg::new(" ".repeat(usize::from(48u16.saturating_sub(used))), Role::Text));
            row.extend(changed.get(at).cloned().unwrap_or_default());
            lines.push(Line::Rich(cut_line(&RichLine::from_segs(row), width, glyphs.ellipsis)));
        }
    } else {
        lines.extend(rows.into_iter().chain(changed).map(|segs| Line::Rich(RichLine::from_segs(segs))));
    }
    for (title, queries) in [("won", &effect.won), ("lost", &effect.lost)] {
        for query in queries.iter().take(MAX_RIVALS) {
            let segs =
                [Seg::new(format!("{title}  "), Role::Muted), Seg::new(shown(&query.query), Role::Text)];
            lines.extend(wrap(&segs, width).into_iter().map(|segs| Line::Rich(RichLine::from_segs(segs))));
        }
    }
}

/// Counts how many queries come from, or go to, each other skill; most first.
fn rivals<'q>(
    queries: &'q [ChangedQuery],
    other: impl Fn(&'q ChangedQuery) -> Option<&'q skills_skill::SkillId>,
) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for query in queries {
        let name = other(query).map_or_else(|| "no skill".to_owned(), |id| shown(id.as_str()));
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.truncate(MAX_RIVALS);
    counts
}

fn push_findings(lines: &mut Vec<Line>, view: &ProposalView, width: u16, glyphs: &Glyphs) {
    let kinds = [
        ("New findings", &view.new_findings, glyphs.bad, Role::Danger),
        ("Fixed findings", &view.fixed_findings, glyphs.ok, Role::Success),
    ];
    for (title, findings, glyph, role) in kinds {
        if findings.is_empty() {
            continue;
        }
        lines.push(Line::Rich(RichLine::default()));
        lines.push(Line::Title(title.to_owned(), RichLine::default()));
        for finding in findings {
            let text = format!(" {} ({})", shown(&finding.message), finding.code);
            let segs = [Seg::new(glyph, role), Seg::new(text, Role::Text)];
            lines.extend(wrap(&segs, width).into_iter().map(|segs| Line::Rich(RichLine::from_segs(segs))));
        }
    }
}

fn draw_decision(view: &ProposalView, band: Rect, painter: &mut Painter<'_>) {
    painter.band(band, Role::WaitingBand);
    for y in band.top()..band.bottom() {
        painter.put(band.x + 1, y, painter.glyphs.gutter, Role::Waiting, 1);
    }
    let x = band.x + 3;
    let available = band.width.saturating_sub(5);
    painter.put(x, band.y, painter.glyphs.waiting, Role::Waiting, 1);
    painter.put(x + 2, band.y, "Approve or deny", Role::Strong, available);
    let failed = view.blocking_check();
    let mut keys = vec![("d", "deny")];
    if failed.is_none() {
        keys = vec![("a", "approve"), ("d", "deny"), ("t", "edit as draft")];
    }
    let mut end = band.right().saturating_sub(2);
    for (key, label) in keys.iter().rev() {
        let start = painter.right(end, band.y, label, Role::Muted);
        let start = painter.right(start.saturating_sub(1), band.y, key, Role::Key);
        end = start.saturating_sub(2);
    }
    let label_end = x + 9;
    let value = available.saturating_sub(9);
    if let Some(check) = failed {
        painter.put(x + 2, band.y + 1, "blocked", Role::Danger, available);
        let evidence = [Seg::new(shown(&check.evidence), Role::Danger)];
        let lines = wrap_to(&evidence, value, usize::from(DECISION_ROWS) - 1, painter.glyphs.ellipsis);
        for (line, y) in lines.iter().zip(band.y + 1..band.bottom()) {
            painter.line(label_end + 1, y, line, value);
        }
        return;
    }
    let path = exact(&view.location.display().to_string());
    painter.put(x + 2, band.y + 1, "writes", Role::Muted, available);
    painter.put(
        label_end + 1,
        band.y + 1,
        &cut_middle(&path, value, painter.glyphs.ellipsis),
        Role::Text,
        value,
    );
    painter.put(x + 2, band.y + 2, "keeps", Role::Muted, available);
    let version = view.versions.len().max(1);
    let keeps = format!("v{version} for rollback; every other byte is unchanged");
    painter.put(label_end + 1, band.y + 2, &keeps, Role::Text, value);
    painter.put(x + 2, band.y + 3, "then", Role::Muted, available);
    painter.put(label_end + 1, band.y + 3, "R rolls back while the file is unchanged", Role::Text, value);
}
