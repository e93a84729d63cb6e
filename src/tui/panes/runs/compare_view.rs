//! Compares a run with its source or a run created from it; selects the checkpoints or runs that `=` compares.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::detail::{DetailCursor, DetailView};
use super::detail_view::short_id;
use super::state_view::scrolled;
use super::steps_view::sign;
use super::view::spinner;
use super::{Focus, Runs};
use crate::pane::{Draw, Effect, Picker, PickerKind};
use crate::run_requests::RunRequest;
use crate::theme::Role;
use crate::widgets::format::counted;
use crate::widgets::json_lines::on_one_line;
use crate::widgets::painter::Painter;
use crate::widgets::relative_time::{ago, duration};
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::rule::Title;
use crate::widgets::scroll::Scroll;
use crate::widgets::text_width::{cells, cut_end, shown};
use crate::widgets::wrap::wrap_to;
use skills_api::{Change, ComparedRun, RunComparison, RunDetail, StepComparison, compare_runs};
use skills_store::{RunId, RunRecord};

/// Maximum number of displayed differences of one item.
const MAX_DIFFERENCES: usize = 6;
/// Maximum number of other runs of a skill that are offered.
const MAX_COMPARABLE_RUNS: usize = 30;

impl Runs {
    /// Returns the runs this one can be compared with, its source first; without related runs, other runs of its skill,
    /// newest first.
    fn relatives(&self) -> Vec<RunId> {
        let Some(run) = self.record() else { return Vec::new() };
        let mut out: Vec<RunId> = run.source.iter().map(|(run, _)| run.clone()).collect();
        out.extend(self.detail.get().map(|detail| detail.descendants.clone()).unwrap_or_default());
        if out.is_empty() {
            let alike = |other: &&RunRecord| other.skill_id == run.skill_id && other.id != run.id;
            let mut others: Vec<&RunRecord> =
                self.known.iter().map(|(other, _)| other).filter(alike).collect();
            others.sort_by_key(|other| std::cmp::Reverse((other.created_ms, other.id.clone())));
            out.extend(others.into_iter().take(MAX_COMPARABLE_RUNS).map(|other| other.id.clone()));
        }
        out
    }

    /// Returns why `=` has nothing to compare, if so.
    pub(super) fn comparable(&self) -> Result<(), String> {
        let points = self.detail.get().map_or(0, |detail| detail.checkpoints.len());
        let on_point = self.focus == Focus::Detail && self.detail.checkpoint().is_some();
        if (on_point && points > 1) || !self.relatives().is_empty() {
            Ok(())
        } else if on_point {
            Err("it has only one checkpoint".to_owned())
        } else {
            Err("no other run of this skill to compare with".to_owned())
        }
    }

    /// Compares: on a checkpoint, the changes up to it; otherwise this run with a related one. With several, the user
    /// chooses one.
    pub(super) fn compare(&mut self) -> Vec<Effect> {
        let on_point = (self.focus == Focus::Detail).then(|| self.detail.checkpoint()).flatten();
        if let (Some(number), Some(detail)) = (on_point, self.detail.get().cloned()) {
            if let DetailView::Changes(..) = self.detail.showing {
                self.show_state(number);
                return Vec::new();
            }
            let point = |number: u64| {
                let label = super::detail_view::label_of(&detail, number);
                (number.to_string(), format!("c{number}"), label)
            };
            let choices: Vec<_> = detail
                .checkpoints
                .iter()
                .rev()
                .map(|point| point.number)
                .filter(|other| *other != number)
                .map(point)
                .collect();
            let before =
                choices.iter().position(|(value, ..)| value.parse::<u64>().is_ok_and(|n| n < number));
            let title = format!("Compare c{number} with");
            return vec![Effect::Pick(Picker {
                what: PickerKind::Checkpoint,
                title,
                choices,
                current: before.or(Some(0)),
            })];
        }
        let relatives = self.relatives();
        match (&self.detail.stop, &relatives[..]) {
            (Some(DetailCursor::Source(run) | DetailCursor::Descendant(run)), _) => {
                let run = run.clone();
                self.show_pair(run)
            }
            (_, [only]) => {
                let only = only.clone();
                self.show_pair(only)
            }
            (_, []) => Vec::new(),
            (_, several) => {
                let source = self.record().and_then(|run| run.source.clone()).map(|(run, _)| run);
                let made = self.detail.get().map(|detail| detail.descendants.clone()).unwrap_or_default();
                let choice = |run: &RunId| {
                    let known = self.known.get(run);
                    let name = known.or(self.record()).map(|run| shown(&run.skill_id)).unwrap_or_default();
                    let mut note: Vec<String> = Vec::new();
                    if let Some(run) = known {
                        note.push(run.state.label().to_owned());
                        note.push(ago(self.drawn.clock_ms - run.since_ms));
                    }
                    if source.as_ref() == Some(run) {
                        note.push("its source".to_owned());
                    } else if made.contains(run) {
                        note.push("created from it".to_owned());
                    }
                    (format!("run {run}"), format!("{name} {}", super::list::tail(run)), note.join(", "))
                };
                let choices = several.iter().map(choice).collect();
                let title = "Compare with".to_owned();
                vec![Effect::Pick(Picker { what: PickerKind::Checkpoint, title, choices, current: Some(0) })]
            }
        }
    }

    /// Handles the choice of what to compare with: a checkpoint's number, or `run ID`.
    pub(super) fn picked(&mut self, choice: &str) -> Vec<Effect> {
        if let Some(run) = choice.strip_prefix("run ") {
            return self.show_pair(RunId(run.to_owned()));
        }
        if let (Ok(other), Some(number)) = (choice.parse::<u64>(), self.detail.checkpoint()) {
            self.detail.showing = DetailView::Changes(other.min(number), other.max(number));
            self.detail.tree = Scroll::default();
        }
        Vec::new()
    }

    fn show_pair(&mut self, other: RunId) -> Vec<Effect> {
        self.detail.showing = DetailView::Pair(other.clone());
        self.detail.tree = Scroll::default();
        self.focus = Focus::Detail;
        let is_new = self.detail.ask(&other);
        is_new.then(|| Effect::Run(RunRequest::Detail(other))).into_iter().collect()
    }

    pub(super) fn draw_pair(
        &mut self,
        other: &RunId,
        detail: &RunDetail,
        area: Rect,
        buf: &mut Buffer,
        cx: &mut Draw<'_>,
    ) {
        let focused = cx.focused && self.focus == Focus::Detail;
        let ids = [&detail.run.id, other].map(|id| short_id(&shown(&id.0), cx.glyphs.ellipsis));
        let title = Title::of(format!("{} {} compared", shown(&detail.run.skill_id), cx.glyphs.dot), focused);
        let mut painter = Painter::new(buf, cx);
        title.note(format!("{} {} {}", ids[0], cx.glyphs.dot, ids[1])).draw(
            &mut painter,
            area.x,
            area.y,
            area.width,
        );
        let Some(second) = self.detail.other(other).cloned() else {
            painter.put(area.x + 2, area.y + 2, "loading the other run", Role::Muted, area.width);
            return;
        };
        let width = area.width.saturating_sub(4);
        let lines = pair_rows(&compare_runs(detail, &second), width, cx, spinner(cx));
        let body = Rect { y: area.y + 2, height: area.height.saturating_sub(2), ..area };
        scrolled(&mut self.detail.tree, &lines, body, &mut Painter::new(buf, cx));
    }
}

/// Returns the complete comparison: the first difference, the inputs, each step, the outcome.
fn pair_rows(comparison: &RunComparison, width: u16, cx: &Draw<'_>, turning: &'static str) -> Vec<RichLine> {
    let mut lines = Vec::new();
    match &comparison.first {
        Some(first) => {
            let segs = [Seg::new("first difference at ", Role::Muted), Seg::new(shown(first), Role::Strong)];
            lines.extend(wrap_to(&segs, width, 3, cx.glyphs.ellipsis));
        }
        None => lines.push(RichLine::of("no differences except timing", Role::Muted)),
    }
    if !comparison.same_contract {
        lines.push(RichLine::of("the runs have different contracts", Role::Warning));
    }
    lines.push(RichLine::default());
    for (what, changes) in [("inputs", &comparison.inputs), ("target", &comparison.target)] {
        change_lines(what, changes, width, cx, &mut lines);
    }
    if lines.last().is_some_and(|line| line.width() > 0) {
        lines.push(RichLine::default());
    }
    lines.extend(heads(comparison, width));
    lines.push(RichLine::default());
    for pair in &comparison.steps {
        pair_lines(pair, width, cx, turning, &mut lines);
    }
    lines.push(RichLine::default());
    change_lines("outputs", &comparison.outputs, width, cx, &mut lines);
    let differing = comparison.steps.iter().filter(|pair| !pair.is_same()).count();
    if differing > 0 {
        let text = format!("{differing} of {} differ", counted(comparison.steps.len(), "step"));
        lines.push(RichLine::of(text, Role::Text));
    }
    lines
}

/// Width of each of the two columns of states and times, at the right edge.
const COLUMN: u16 = 12;

/// Returns the state and the duration of both runs.
fn heads(comparison: &RunComparison, width: u16) -> [RichLine; 2] {
    let first = width.saturating_sub(2 * COLUMN + 2);
    let row = |name: &str, of: &dyn Fn(&ComparedRun) -> String| {
        RichLine::from_segs(vec![
            Seg::new(pad(name, first), Role::Muted),
            Seg::new(pad(&of(&comparison.left), COLUMN + 2), Role::Text),
            Seg::new(pad(&of(&comparison.right), COLUMN), Role::Text),
        ])
    };
    [
        row("step", &|side| cut_end(side.state.label(), COLUMN, "…").into_owned()),
        row("in total", &|side| side.took_ms.map(duration).unwrap_or_default()),
    ]
}

fn pair_lines(
    pair: &StepComparison,
    width: u16,
    cx: &Draw<'_>,
    turning: &'static str,
    lines: &mut Vec<RichLine>,
) {
    let first = width.saturating_sub(2 * COLUMN + 2);
    let differences = pair.differences();
    let name_role = if differences.is_empty() { Role::Muted } else { Role::Strong };
    let name = cut_end(&shown(&pair.step), first.saturating_sub(2), cx.glyphs.ellipsis).into_owned();
    let mut segs = vec![Seg::new(pad(&name, first), name_role)];
    for (state, took, available) in
        [(pair.left, pair.left_ms, COLUMN + 2), (pair.right, pair.right_ms, COLUMN)]
    {
        let Some(state) = state else {
            segs.push(Seg::new(pad(cx.glyphs.minus, available), Role::Muted));
            continue;
        };
        let (sign, role) = sign(state, cx.glyphs, turning);
        segs.push(Seg::new(format!("{sign} "), role));
        let took = took.map(duration).unwrap_or_default();
        segs.push(Seg::new(pad(&took, available.saturating_sub(2)), Role::Text));
    }
    lines.push(RichLine::from_segs(segs));
    if !differences.is_empty() {
        lines.push(RichLine::of(format!("  {}", differences.join(", ")), Role::Muted));
    }
    if pair.same_inputs == Some(false) && pair.inputs.is_empty() {
        lines.push(RichLine::of("  inputs are not recorded (recorded in audit mode full)", Role::Muted));
    }
    if pair.other_binding() {
        let value = |binding: &Option<String>| binding.clone().map(serde_json::Value::String);
        let change = Change {
            path: String::new(),
            left: value(&pair.left_binding),
            right: value(&pair.right_binding),
        };
        change_lines("  binding", &[change], width, cx, lines);
    }
    for (what, found) in [("  inputs", &pair.inputs), ("  result", &pair.result)] {
        change_lines(what, found, width, cx, lines);
    }
}

/// Appends each difference, with both values below it.
fn change_lines(what: &str, found: &[Change], width: u16, cx: &Draw<'_>, lines: &mut Vec<RichLine>) {
    for change in found.iter().take(MAX_DIFFERENCES) {
        lines.push(RichLine::of(format!("{what}{}", shown(&change.path)), Role::Muted));
        for (value, sign, role) in
            [(&change.left, cx.glyphs.minus, Role::DiffDel), (&change.right, "+", Role::DiffAdd)]
        {
            let Some(value) = value else { continue };
            let mut segs = vec![Seg::new(format!("    {sign} "), role)];
            let mut value = on_one_line(value, width.saturating_sub(8), cx.glyphs.ellipsis);
            value.iter_mut().for_each(|seg| seg.role = role);
            segs.extend(value);
            lines.push(RichLine::from_segs(segs));
        }
    }
    if found.len() > MAX_DIFFERENCES {
        let more = counted(found.len() - MAX_DIFFERENCES, "more difference");
        lines.push(RichLine::of(format!("{what}: {more}"), Role::Muted));
    }
}

fn pad(text: &str, width: u16) -> String {
    format!("{text}{}", " ".repeat(usize::from(width.saturating_sub(cells(text)))))
}
