//! Compares a run with its source or a run created from it; selects the checkpoints or runs that `=` compares.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::detail::{DetailCursor, DetailState, DetailView};
use super::detail_view::{label_of, short_id};
use super::list::tail;
use super::run_list::RunList;
use super::state_view::scrolled;
use super::steps_view::sign;
use super::view::spinner;
use crate::glyphs::Glyphs;
use crate::pane::{Draw, Picker, PickerKind};
use crate::theme::Role;
use crate::widgets::format::counted;
use crate::widgets::json_lines::on_one_line;
use crate::widgets::painter::Painter;
use crate::widgets::relative_time::{ago, duration};
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::rule::Title;
use crate::widgets::text_width::{cells, cut_end, exact, shown};
use crate::widgets::wrap::{cut_line, wrap_to};
use skills_api::{Change, ComparedRun, RunComparison, RunDetail, StepComparison, compare_runs};
use skills_store::{RunId, RunRecord};

/// Maximum number of displayed differences of one item.
const MAX_DIFFERENCES: usize = 6;
/// Maximum number of other runs of a skill that are offered.
const MAX_COMPARABLE_RUNS: usize = 30;

/// Returns the runs this one can be compared with, its source first; without related runs, other runs of its skill,
/// newest first.
fn relatives(list: &RunList, state: &DetailState) -> Vec<RunId> {
    let Some(run) = list.record() else { return Vec::new() };
    let mut out: Vec<RunId> = run.source.iter().map(|(run, _)| run.clone()).collect();
    out.extend(state.get().map(|detail| detail.descendants.clone()).unwrap_or_default());
    if out.is_empty() {
        let alike = |other: &&RunRecord| other.skill_id == run.skill_id && other.id != run.id;
        let mut others: Vec<&RunRecord> =
            list.runs.known.iter().map(|(other, _)| other).filter(alike).collect();
        others.sort_by_key(|other| std::cmp::Reverse((other.created_ms, other.id.clone())));
        out.extend(others.into_iter().take(MAX_COMPARABLE_RUNS).map(|other| other.id.clone()));
    }
    out
}

/// Returns why `=` has nothing to compare, if so.
pub(super) fn comparable(list: &RunList, state: &DetailState, on_detail: bool) -> Result<(), String> {
    let points = state.get().map_or(0, |detail| detail.checkpoints.len());
    let on_point = on_detail && state.checkpoint().is_some();
    if (on_point && points > 1) || !relatives(list, state).is_empty() {
        Ok(())
    } else if on_point {
        Err("it has only one checkpoint".to_owned())
    } else {
        Err("no other run of this skill to compare with".to_owned())
    }
}

/// What a run is compared with.
pub(super) enum Compared {
    /// A checkpoint was compared; its state is shown again.
    State(u64),
    /// Another run.
    Run(RunId),
    /// What the user chooses.
    Choice(Picker),
    Nothing,
}

/// Returns what `=` compares: on a checkpoint, the changes up to it; otherwise this run with a related one. With
/// several, the user chooses one.
pub(super) fn compared(list: &RunList, state: &DetailState, on_detail: bool) -> Compared {
    let choice = |title: String, choices, current| {
        Compared::Choice(Picker { what: PickerKind::Checkpoint, title, choices, current })
    };
    let on_point = on_detail.then(|| state.checkpoint()).flatten();
    if let (Some(number), Some(detail)) = (on_point, state.get()) {
        if let DetailView::Changes(..) = state.showing {
            return Compared::State(number);
        }
        let point = |number: u64| (number.to_string(), format!("c{number}"), label_of(detail, number));
        let others = detail.checkpoints.iter().rev().map(|point| point.number);
        let choices: Vec<_> = others.filter(|other| *other != number).map(point).collect();
        let before = choices.iter().position(|(value, ..)| value.parse::<u64>().is_ok_and(|n| n < number));
        return choice(format!("Compare c{number} with"), choices, before.or(Some(0)));
    }
    let relatives = relatives(list, state);
    match (&state.stop, &relatives[..]) {
        (Some(DetailCursor::Source(run) | DetailCursor::Descendant(run)), _) => Compared::Run(run.clone()),
        (_, [only]) => Compared::Run(only.clone()),
        (_, []) => Compared::Nothing,
        (_, several) => {
            let source = list.record().and_then(|run| run.source.as_ref()).map(|(run, _)| run);
            let made = state.get().map(|detail| detail.descendants.as_slice()).unwrap_or_default();
            let option = |run: &RunId| {
                let loaded = list.runs.known.get(run);
                let name = loaded.or(list.record()).map(|run| shown(&run.skill_id)).unwrap_or_default();
                let mut note: Vec<String> = Vec::new();
                if let Some(run) = loaded {
                    note.push(run.state.label().to_owned());
                    note.push(ago(list.drawn.clock_ms - run.since_ms));
                }
                if source == Some(run) {
                    note.push("its source".to_owned());
                } else if made.contains(run) {
                    note.push("created from it".to_owned());
                }
                (format!("run {run}"), format!("{name} {}", tail(run)), note.join(", "))
            };
            choice("Compare with".to_owned(), several.iter().map(option).collect(), Some(0))
        }
    }
}

pub(super) fn draw_pair(
    state: &mut DetailState,
    other: &RunId,
    detail: &RunDetail,
    focused: bool,
    area: Rect,
    buf: &mut Buffer,
    cx: &Draw<'_>,
) {
    let ids = [&detail.run.id, other].map(|id| short_id(&shown(&id.0), cx.glyphs.ellipsis));
    let title = Title::of(format!("{} {} compared", shown(&detail.run.skill_id), cx.glyphs.dot), focused);
    let mut painter = Painter::new(buf, cx);
    title.note(format!("{} {} {}", ids[0], cx.glyphs.dot, ids[1])).draw(
        &mut painter,
        area.x,
        area.y,
        area.width,
    );
    let Some(second) = state.other(other).cloned() else {
        painter.put(area.x + 2, area.y + 2, "loading the other run", Role::Muted, area.width);
        return;
    };
    let width = area.width.saturating_sub(4);
    let lines = pair_rows(&compare_runs(detail, &second), width, cx, spinner(cx));
    let body = Rect { y: area.y + 2, height: area.height.saturating_sub(2), ..area };
    scrolled(&mut state.tree, &lines, body, &mut Painter::new(buf, cx));
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
        let segs = [Seg::new("the runs have different contracts", Role::Warning)];
        lines.extend(wrap_to(&segs, width, 3, cx.glyphs.ellipsis));
    }
    lines.push(RichLine::default());
    for (what, changes) in [("inputs", &comparison.inputs), ("target", &comparison.target)] {
        change_lines(what, changes, width, cx, &mut lines);
    }
    if lines.last().is_some_and(|line| line.width() > 0) {
        lines.push(RichLine::default());
    }
    lines.extend(heads(comparison, width, cx.glyphs));
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

/// Widths of the names, of the two columns of states and times at the right edge, and of the blank cells after each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Columns {
    name: u16,
    side: u16,
    gap: u16,
}

/// Maximum width of a column of states and times.
const MAX_SIDE: u16 = 12;
/// Minimum width of the names, if the columns can be narrower.
const MIN_NAME: u16 = 8;

impl Columns {
    fn of(width: u16) -> Self {
        let gap = if width >= MIN_NAME + 2 * MAX_SIDE + 4 { 2 } else { 1 };
        let side = (width.saturating_sub(MIN_NAME + 2 * gap) / 2).min(MAX_SIDE);
        Self { name: width.saturating_sub(2 * (side + gap)), side, gap }
    }

    /// Returns a line of a name and the texts of both sides, each with its segment before it.
    fn line(self, name: Seg, sides: [(Option<Seg>, Seg); 2], ellipsis: &str) -> RichLine {
        let cell = |seg: Seg, width: u16, gap: u16| {
            let text = cut_end(&seg.text, width, ellipsis).into_owned();
            Seg { text: pad(&text, width + gap), ..seg }
        };
        let mut segs = vec![cell(name, self.name, self.gap)];
        for (at, (sign, text)) in sides.into_iter().enumerate() {
            let used = sign.as_ref().map_or(0, |sign| cells(&sign.text));
            segs.extend(sign);
            segs.push(cell(text, self.side.saturating_sub(used), if at == 0 { self.gap } else { 0 }));
        }
        RichLine::from_segs(segs)
    }
}

/// Returns the id of both runs with the sign of its values, the state and the duration.
fn heads(comparison: &RunComparison, width: u16, glyphs: &Glyphs) -> [RichLine; 3] {
    let row = |name: &str, signs: [Option<Seg>; 2], of: &dyn Fn(&ComparedRun) -> String| {
        let [left, right] = signs;
        let side = |sign, run| (sign, Seg::new(of(run), Role::Text));
        let sides = [side(left, &comparison.left), side(right, &comparison.right)];
        Columns::of(width).line(Seg::new(name, Role::Muted), sides, glyphs.ellipsis)
    };
    let minus = Seg::new(format!("{} ", glyphs.minus), Role::DiffDel);
    let signs = [Some(minus), Some(Seg::new("+ ", Role::DiffAdd))];
    [
        row("run", signs, &|side| tail(&side.run)),
        row("state", [None, None], &|side| side.state.label().to_owned()),
        row("in total", [None, None], &|side| side.took_ms.map(duration).unwrap_or_default()),
    ]
}

/// Appends a note about a step, indented.
fn note_lines(text: &str, width: u16, ellipsis: &str, lines: &mut Vec<RichLine>) {
    for mut line in wrap_to(&[Seg::new(text, Role::Muted)], width.saturating_sub(2), 3, ellipsis) {
        line.segs.insert(0, Seg::new("  ", Role::Muted));
        lines.push(line);
    }
}

fn pair_lines(
    pair: &StepComparison,
    width: u16,
    cx: &Draw<'_>,
    turning: &'static str,
    lines: &mut Vec<RichLine>,
) {
    let differences = pair.differences();
    let name_role = if differences.is_empty() { Role::Muted } else { Role::Strong };
    let sides = [(pair.left, pair.left_ms), (pair.right, pair.right_ms)].map(|(state, took)| match state {
        None => (None, Seg::new(cx.glyphs.minus, Role::Muted)),
        Some(state) => {
            let (sign, role) = sign(state, cx.glyphs, turning);
            let took = took.map(duration).unwrap_or_default();
            (Some(Seg::new(format!("{sign} "), role)), Seg::new(took, Role::Text))
        }
    });
    let name = Seg::new(shown(&pair.step), name_role);
    lines.push(Columns::of(width).line(name, sides, cx.glyphs.ellipsis));
    if !differences.is_empty() {
        note_lines(&differences.join(", "), width, cx.glyphs.ellipsis, lines);
    }
    if pair.same_inputs == Some(false) && pair.inputs.is_empty() {
        let text = "inputs are not recorded (only in audit mode full)";
        note_lines(text, width, cx.glyphs.ellipsis, lines);
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
        let path = RichLine::of(format!("{what}{}", exact(&change.path)), Role::Muted);
        lines.push(cut_line(&path, width, cx.glyphs.ellipsis));
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

#[cfg(test)]
mod tests {
    use super::*;
    use skills_model::RunState;

    #[test]
    fn heads_name_each_run_with_its_sign() {
        let side = |id: &str| ComparedRun {
            run: RunId(id.to_owned()),
            skill_id: "invoice-intake".to_owned(),
            contract_version: "1.2.0".to_owned(),
            state: RunState::Completed,
            took_ms: None,
        };
        let comparison = RunComparison {
            left: side("0198a1b7f3c"),
            right: side("0198a1b6128"),
            same_contract: true,
            same: true,
            first: None,
            inputs: Vec::new(),
            target: Vec::new(),
            outputs: Vec::new(),
            steps: Vec::new(),
        };
        for width in [28, 116] {
            let [run, state, _] = heads(&comparison, width, &crate::glyphs::UNICODE);
            let text = run.plain_text();
            assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["run", "−", "F3C", "+", "128"]);
            let text = state.plain_text();
            assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["state", "completed", "completed"]);
        }
    }

    #[test]
    fn notes_of_a_step_are_wrapped() {
        let mut lines = Vec::new();
        note_lines("inputs are not recorded (only in audit mode full)", 29, "…", &mut lines);
        let texts: Vec<String> = lines.iter().map(|line| line.plain_text().trim_end().to_owned()).collect();
        assert_eq!(texts, ["  inputs are not recorded", "  (only in audit mode full)"]);
    }

    #[test]
    fn columns_of_a_narrow_comparison_have_gaps() {
        let text = |width: u16| {
            let side = |text: &str| (None, Seg::new(text, Role::Text));
            let sides = [side("7 m 26 s"), side("0.2 s")];
            let line = Columns::of(width).line(Seg::new("in total", Role::Muted), sides, "…");
            line.segs.iter().map(|seg| seg.text.as_str()).collect::<String>()
        };
        assert_eq!(text(28), "in total 7 m 26 s  0.2 s    ");
        assert_eq!(Columns::of(116), Columns { name: 88, side: 12, gap: 2 });
    }
}
