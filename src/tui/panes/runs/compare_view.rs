//! A run beside its source or a run made from it; which checkpoints or runs `=` compares.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::detail::{Showing, Stop};
use super::detail_view::short_id;
use super::state_view::scrolled;
use super::steps_view::sign;
use super::view::spinner;
use super::{Part, Runs};
use crate::gateway::{RunDetail, StepComparison, compare_runs};
use crate::store::RunId;
use crate::tui::overlay::state_word;
use crate::tui::pane::{Draw, Effect, Picker, PickerKind};
use crate::tui::run_traffic::RunAsk;
use crate::tui::theme::Role;
use crate::tui::widgets::ages::duration;
use crate::tui::widgets::figures::counted;
use crate::tui::widgets::json_lines::on_one_line;
use crate::tui::widgets::measure::{cells, cut_end, shown};
use crate::tui::widgets::pen::Pen;
use crate::tui::widgets::rich::{RichLine, Seg};
use crate::tui::widgets::rule::Title;
use crate::tui::widgets::scroll::Scroll;

/// Differences shown of one step.
const SHOWN: usize = 6;

impl Runs {
    /// The runs this one can be compared with, its source first.
    fn relatives(&self) -> Vec<RunId> {
        let Some(run) = self.record() else { return Vec::new() };
        let mut out: Vec<RunId> = run.source.iter().map(|(run, _)| run.clone()).collect();
        out.extend(self.detail.get().map(|detail| detail.descendants.clone()).unwrap_or_default());
        out
    }

    /// Whether `=` has something to compare; else why not.
    pub(super) fn comparable(&self) -> Result<(), String> {
        let points = self.detail.get().map_or(0, |detail| detail.checkpoints.len());
        let on_point = self.focus == Part::Detail && self.detail.checkpoint().is_some();
        if (on_point && points > 1) || !self.relatives().is_empty() {
            Ok(())
        } else if on_point {
            Err("it has one checkpoint only".to_owned())
        } else {
            Err("it was neither replayed nor forked".to_owned())
        }
    }

    /// On a checkpoint: what changed up to it. Else this run beside a relative; with several, one is chosen.
    pub(super) fn compare(&mut self) -> Vec<Effect> {
        let on_point = (self.focus == Part::Detail).then(|| self.detail.checkpoint()).flatten();
        if let (Some(number), Some(detail)) = (on_point, self.detail.get().cloned()) {
            if let Showing::Changes(..) = self.detail.showing {
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
            (Some(Stop::Source(run) | Stop::Descendant(run)), _) => {
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
                let choice = |run: &RunId| {
                    let how =
                        if source.as_ref() == Some(run) { "where it comes from" } else { "made from it" };
                    (format!("run {run}"), shown(&run.0), how.to_owned())
                };
                let choices = several.iter().map(choice).collect();
                let title = "Compare with".to_owned();
                vec![Effect::Pick(Picker { what: PickerKind::Checkpoint, title, choices, current: Some(0) })]
            }
        }
    }

    /// What was chosen to compare with: a checkpoint's number, or `run ID`.
    pub(super) fn picked(&mut self, choice: &str) -> Vec<Effect> {
        if let Some(run) = choice.strip_prefix("run ") {
            return self.show_pair(RunId(run.to_owned()));
        }
        if let (Ok(other), Some(number)) = (choice.parse::<u64>(), self.detail.checkpoint()) {
            self.detail.showing = Showing::Changes(other.min(number), other.max(number));
            self.detail.tree = Scroll::default();
        }
        Vec::new()
    }

    fn show_pair(&mut self, other: RunId) -> Vec<Effect> {
        self.detail.showing = Showing::Pair(other.clone());
        self.detail.tree = Scroll::default();
        self.focus = Part::Detail;
        let asked = self.detail.ask(&other);
        asked.then(|| Effect::Run(RunAsk::Detail(other))).into_iter().collect()
    }

    pub(super) fn draw_pair(
        &mut self,
        other: &RunId,
        detail: &RunDetail,
        area: Rect,
        buf: &mut Buffer,
        cx: &mut Draw<'_>,
    ) {
        let focused = cx.focused && self.focus == Part::Detail;
        let ids = [&detail.run.id, other].map(|id| short_id(&shown(&id.0), cx.glyphs.ellipsis));
        let title = Title::of(format!("{} {} compared", shown(&detail.run.skill_id), cx.glyphs.dot), focused);
        let mut pen = Pen::new(buf, cx);
        title
            .note(format!("{} {} {}", ids[0], cx.glyphs.dot, ids[1]))
            .draw(&mut pen, area.x, area.y, area.width);
        let Some(second) = self.detail.other(other).cloned() else {
            pen.put(area.x + 2, area.y + 2, "reading the other run", Role::Muted, area.width);
            return;
        };
        let width = area.width.saturating_sub(4);
        let turning = spinner(cx);
        let all = compare_runs(detail, &second).steps;
        let mut lines = vec![heads(detail, &second, width), RichLine::default()];
        for pair in &all {
            pair_lines(pair, width, cx, turning, &mut lines);
        }
        lines.push(RichLine::default());
        let differing = all.iter().filter(|pair| !same(pair)).count();
        let verdict = match differing {
            0 => RichLine::of("both did the same with the same", Role::Muted),
            count => RichLine::of(format!("{} of {} differ", count, counted(all.len(), "step")), Role::Text),
        };
        lines.push(verdict);
        let body = Rect { y: area.y + 2, height: area.height.saturating_sub(2), ..area };
        scrolled(&mut self.detail.tree, &lines, body, &mut Pen::new(buf, cx));
    }
}

/// The two columns of states and times, from the right edge.
const COLUMN: u16 = 12;

fn heads(one: &RunDetail, other: &RunDetail, width: u16) -> RichLine {
    let first = width.saturating_sub(2 * COLUMN + 2);
    let state = |detail: &RunDetail| cut_end(state_word(detail.run.state), COLUMN, "…").into_owned();
    RichLine::from_segs(vec![
        Seg::new(pad("step", first), Role::Muted),
        Seg::new(pad(&state(one), COLUMN + 2), Role::Text),
        Seg::new(pad(&state(other), COLUMN), Role::Text),
    ])
}

fn pair_lines(
    pair: &StepComparison,
    width: u16,
    cx: &Draw<'_>,
    turning: &'static str,
    lines: &mut Vec<RichLine>,
) {
    let first = width.saturating_sub(2 * COLUMN + 2);
    let name_role = if same(pair) { Role::Muted } else { Role::Strong };
    let name = cut_end(&shown(&pair.step), first.saturating_sub(2), cx.glyphs.ellipsis).into_owned();
    let mut segs = vec![Seg::new(pad(&name, first), name_role)];
    for (state, took, room) in [(pair.left, pair.left_ms, COLUMN + 2), (pair.right, pair.right_ms, COLUMN)] {
        let Some(state) = state else {
            segs.push(Seg::new(pad(cx.glyphs.minus, room), Role::Muted));
            continue;
        };
        let (sign, role) = sign(state, cx.glyphs, turning);
        segs.push(Seg::new(format!("{sign} "), role));
        let took = took.map(duration).unwrap_or_default();
        segs.push(Seg::new(pad(&took, room.saturating_sub(2)), Role::Text));
    }
    lines.push(RichLine::from_segs(segs));
    for (what, found) in [("inputs", &pair.inputs), ("result", &pair.result)] {
        for change in found.iter().take(SHOWN) {
            let path = if change.path.is_empty() {
                what.to_owned()
            } else {
                format!("{what}{}", shown(&change.path))
            };
            lines.push(RichLine::of(format!("  {path}"), Role::Muted));
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
        if found.len() > SHOWN {
            let more = counted(found.len() - SHOWN, "more difference");
            lines.push(RichLine::of(format!("  {more} in the {what}"), Role::Muted));
        }
    }
}

/// Whether both did the same with the same.
fn same(pair: &StepComparison) -> bool {
    pair.left == pair.right && pair.inputs.is_empty() && pair.result.is_empty()
}

fn pad(text: &str, width: u16) -> String {
    format!("{text}{}", " ".repeat(usize::from(width.saturating_sub(cells(text)))))
}
