//! Draws the metrics at the top of the pane: current values, the change since the baseline, and their history.

use std::collections::BTreeSet;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::golden_requests::GoldenMeasurement;
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Seg, Title, cells, counted, day};
use skills_discovery::GoldenFigures;

/// Minimum size for metrics of two rows with their history.
const MIN_WIDTH: u16 = 96;
const MIN_HEIGHT: u16 = 26;
/// Maximum number of values in a history.
const MAX_HISTORY: usize = 8;
const STEPS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// A metric of the head.
struct Figure {
    label: &'static str,
    short: &'static str,
    value: fn(&GoldenFigures) -> Option<f64>,
    /// Decimals; 0 for a count.
    decimals: usize,
    is_higher_better: bool,
}

const FIGURES: [Figure; 4] = [
    Figure {
        label: "P@1",
        short: "P@1",
        value: |figures| (figures.queries > 0).then_some(figures.p_at_1),
        decimals: 3,
        is_higher_better: true,
    },
    Figure {
        label: "MRR@10",
        short: "MRR",
        value: |figures| (figures.queries > 0).then_some(figures.mrr_at_10),
        decimals: 3,
        is_higher_better: true,
    },
    Figure {
        label: "false triggers",
        short: "false trig.",
        value: |figures| (figures.out_of_scope > 0).then_some(figures.false_triggers as f64),
        decimals: 0,
        is_higher_better: false,
    },
    Figure {
        label: "out of scope rejected",
        short: "rejected",
        value: |figures| figures.out_of_scope_rejected,
        decimals: 2,
        is_higher_better: true,
    },
];

impl Figure {
    fn text(&self, value: f64) -> String {
        format!("{value:.decimals$}", decimals = self.decimals)
    }

    /// Formats the change since a baseline: a sign and the difference, and its role.
    /// Over other queries it is neither better nor worse.
    fn change(&self, now: f64, before: f64, is_same_set: bool, painter: &Painter<'_>) -> (String, Role) {
        let difference = now - before;
        let smallest = 0.5 / 10_f64.powi(self.decimals as i32);
        if difference.abs() < smallest {
            return ("=".to_owned(), Role::Muted);
        }
        let (sign, way) = if difference > 0.0 {
            ("+", painter.glyphs.up)
        } else {
            (painter.glyphs.minus, painter.glyphs.down)
        };
        let is_better = (difference > 0.0) == self.is_higher_better;
        let role = match () {
            () if !is_same_set => Role::Muted,
            () if is_better => Role::Success,
            () => Role::Danger,
        };
        (format!("{way} {sign}{}", self.text(difference.abs())), role)
    }
}

/// Draws the head, with what is known about the next measurement; returns the number of rows.
pub(super) fn draw(
    measured: &GoldenMeasurement,
    status: Option<(&'static str, Role)>,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) -> u16 {
    let is_roomy = area.width >= MIN_WIDTH && area.height >= MIN_HEIGHT;
    let mut painter = Painter::new(buf, cx);
    title(measured, status, cx).draw(&mut painter, area.x, area.y, area.width);
    let before = measured.baselines.last().map(|baseline| baseline.figures);
    let is_same_set = other_queries(measured) == (0, 0);
    if !is_roomy {
        draw_line(&measured.report.figures, before.as_ref(), is_same_set, area, &mut painter);
        return 2;
    }
    let width = area.width / FIGURES.len() as u16;
    for (figure, x) in FIGURES.iter().zip((area.x + 3..).step_by(usize::from(width))) {
        painter.put(x, area.y + 2, figure.label, Role::Muted, width - 2);
        let Some(now) = (figure.value)(&measured.report.figures) else {
            painter.put(x, area.y + 3, painter.glyphs.dot, Role::Muted, 1);
            continue;
        };
        let end = painter.put(x, area.y + 3, &figure.text(now), Role::Strong, width - 2);
        if let Some(before) = before.as_ref().and_then(figure.value) {
            let (text, role) = figure.change(now, before, is_same_set, &painter);
            painter.put(end + 2, area.y + 3, &text, role, width.saturating_sub(end - x + 4));
        }
        draw_history(figure, measured, x + width - 4, area.y + 3, &mut painter);
    }
    5
}

/// Returns how many queries the baseline does not have, and how many only it has.
fn other_queries(measured: &GoldenMeasurement) -> (usize, usize) {
    let Some(baseline) = measured.baselines.last() else { return (0, 0) };
    let earlier: BTreeSet<&String> = baseline.passed.keys().chain(baseline.failed.keys()).collect();
    if earlier.is_empty() {
        // An earlier baseline, which has only figures.
        return (0, 0);
    }
    let now: BTreeSet<&String> = measured.report.results.iter().map(|result| &result.query.query).collect();
    (now.difference(&earlier).count(), earlier.difference(&now).count())
}

fn title(measured: &GoldenMeasurement, status: Option<(&'static str, Role)>, cx: &Draw<'_>) -> Title {
    let dot = cx.glyphs.dot;
    let report = &measured.report;
    let queries = report.results.len();
    let mut note = format!("{} {dot} {}", counted(queries, "query"), counted(report.skills, "skill"));
    match measured.baselines.last() {
        Some(baseline) => {
            note += &format!(" {dot} baseline {}", day(baseline.at_ms));
            let (added, removed) = other_queries(measured);
            for (sign, queries) in [("+", added), (cx.glyphs.minus, removed)] {
                if queries > 0 {
                    note += &format!(", {sign}{}", counted(queries, "query"));
                }
            }
        }
        None => note += &format!(" {dot} no baseline"),
    }
    let mut title = Title::of("Golden set", false).note(note);
    if let Some((text, role)) = status {
        title.note.segs.insert(0, Seg::new(text, role));
    }
    title
}

/// Draws all metrics in one row.
fn draw_line(
    now: &GoldenFigures,
    before: Option<&GoldenFigures>,
    is_same_set: bool,
    area: Rect,
    painter: &mut Painter<'_>,
) {
    let mut segs = Vec::new();
    for figure in &FIGURES {
        let Some(value) = (figure.value)(now) else { continue };
        if !segs.is_empty() {
            segs.push(Seg::new("   ", Role::Text));
        }
        segs.push(Seg::new(format!("{} ", figure.short), Role::Muted));
        segs.push(Seg::new(figure.text(value), Role::Strong));
        if let Some(before) = before.and_then(figure.value) {
            let (text, role) = figure.change(value, before, is_same_set, painter);
            segs.push(Seg::new(format!(" {text}"), role));
        }
    }
    painter.line(area.x + 3, area.y + 1, &RichLine::from_segs(segs), area.width.saturating_sub(4));
}

/// Draws earlier baselines and the current value, on a scale from the lowest to the highest of them; ends before `end`.
fn draw_history(figure: &Figure, measured: &GoldenMeasurement, end: u16, y: u16, painter: &mut Painter<'_>) {
    if painter.glyphs.ascii || measured.baselines.is_empty() {
        return;
    }
    let earlier = measured.baselines.iter().map(|baseline| &baseline.figures);
    let values: Vec<f64> = earlier.chain([&measured.report.figures]).filter_map(figure.value).collect();
    let values = &values[values.len().saturating_sub(MAX_HISTORY)..];
    let (lowest, highest) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    let span = (highest - lowest).max(if figure.decimals == 0 { 4.0 } else { 0.05 });
    let start = end.saturating_sub(values.len() as u16 * cells(STEPS[0]));
    for (at, value) in values.iter().enumerate() {
        let step = ((value - lowest) / span * 5.0).round().clamp(0.0, 5.0) as usize + 2;
        let role = if at + 1 == values.len() { Role::Level3 } else { Role::Level1 };
        painter.put(start + at as u16, y, STEPS[step.min(7)], role, 1);
    }
}
