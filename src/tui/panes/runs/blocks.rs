//! Builds the blocks of a run below its steps: the pending approval, results, checkpoints, lineage.

use serde_json::Value;

use super::detail::{DetailCursor, DetailState};
use super::detail_view::{label_of, short_id};
use super::view::spinner;
use crate::action::{Action, Context};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::json_lines::{fields, on_one_line};
use crate::widgets::relative_time::duration;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::text_width::{cells, cut_end, cut_middle, exact, shown};
use crate::widgets::wrap::{break_code_to, wrap_to};
use skills_api::{ChangedInput, DecisionPreview, RunDetail, StepView, changed_inputs, list_commands};
use skills_base::number::{counted, inflected};
use skills_config::quoted;
use skills_model::{BEFORE_FIRST_STEP, CommandName, RunState, step_label};
use skills_store::{EventKind, RunRecord};

/// Maximum number of listed lines of a corrected text.
const MAX_DIFF_LINES: usize = 8;

/// The kind of a row.
pub(super) enum Kind {
    Plain,
    /// A section's rule with a note on the right.
    Rule(String, String),
    /// A time bar: first cell and width, relative to the bar's column.
    Bar(u16, u16),
    /// On the band of a pending approval.
    Waiting,
}

/// A row of the run.
pub(super) struct Line {
    pub(super) text: RichLine,
    pub(super) right: RichLine,
    pub(super) kind: Kind,
    pub(super) stop: Option<DetailCursor>,
    /// Click targets on the right, from left to right.
    pub(super) buttons: Vec<(Action, String, String)>,
}

impl Line {
    pub(super) fn of(segs: Vec<Seg>) -> Self {
        Self {
            text: RichLine::from_segs(segs),
            right: RichLine::default(),
            kind: Kind::Plain,
            stop: None,
            buttons: Vec::new(),
        }
    }

    pub(super) fn blank() -> Self {
        Self::of(Vec::new())
    }

    pub(super) fn rule(title: &str, note: &str) -> Self {
        Self { kind: Kind::Rule(title.to_owned(), note.to_owned()), ..Self::blank() }
    }

    pub(super) fn right(mut self, text: impl Into<String>, role: Role) -> Self {
        self.right = RichLine::of(text, role);
        self
    }

    pub(super) fn at(mut self, stop: DetailCursor) -> Self {
        self.stop = Some(stop);
        self
    }

    pub(super) fn waiting(mut self) -> Self {
        self.kind = Kind::Waiting;
        self
    }
}

/// The parameters for building rows.
pub(super) struct RowContext<'a> {
    pub(super) width: u16,
    pub(super) now_ms: i64,
    pub(super) cx: &'a Draw<'a>,
    pub(super) turning: &'static str,
    /// Whether the core is unreachable, so that commands are refused.
    pub(super) disconnected: bool,
}

impl<'a> RowContext<'a> {
    pub(super) fn of(width: u16, disconnected: bool, cx: &'a Draw<'a>) -> Self {
        Self { width, now_ms: cx.clock_ms, cx, turning: spinner(cx), disconnected }
    }
}

pub(super) fn lineage_lines(
    state: &DetailState,
    detail: &RunDetail,
    record: &RunRecord,
    making: &RowContext<'_>,
    out: &mut Vec<Line>,
) {
    let glyphs = making.cx.glyphs;
    out.push(Line::rule("Details", ""));
    if let Some((source, checkpoint)) = &record.source {
        let forked = state.events().any(|event| event.event.kind == EventKind::RunForkedFrom);
        let how = if forked { "forked from " } else { "replayed from " };
        // Next to the id: the relation, the checkpoint, and the key that compares the two.
        let suffix_width = cells(how) + cells(&format!(" at c{checkpoint}")) + cells("  = compare") + 1;
        let available = making.width.saturating_sub(suffix_width).max(9);
        let text = shown(&source.0);
        let id = if cells(&text) > available { short_id(&text, glyphs.ellipsis) } else { text };
        let mut line = Line::of(vec![
            Seg::new(how, Role::Muted),
            Seg::new(id, Role::Text),
            Seg::new(" at ", Role::Muted),
            Seg::new(format!("c{checkpoint}"), Role::Text),
        ])
        .at(DetailCursor::Source(source.clone()));
        line.buttons.push((Action::Compare, "=".to_owned(), "compare".to_owned()));
        out.push(line);
    }
    for run in &detail.descendants {
        let is_fork = state.events().any(|event| {
            let created = event.event.data.get("run").and_then(Value::as_str);
            event.event.kind == EventKind::RunForkedTo && created == Some(run.0.as_str())
        });
        let how = if is_fork { "forked as " } else { "replayed as " };
        let available = making.width.saturating_sub(cells(how) + 1);
        let segs = vec![
            Seg::new(how, Role::Muted),
            Seg::new(cut_middle(&shown(&run.0), available, glyphs.ellipsis), Role::Text),
        ];
        out.push(Line::of(segs).at(DetailCursor::Descendant(run.clone())));
    }
    let mut row = |label: &str, segs: Vec<Seg>| labeled_row(label, segs, making, out);
    row("isolation", vec![Seg::new(shown(&detail.isolation), Role::Text)]);
    let digest: String = record.contract_digest.chars().filter(char::is_ascii_alphanumeric).collect();
    let state_text = match detail.contract_unchanged {
        // The skill may have changed since these details were loaded.
        Some(true) => "",
        Some(false) => " skill changed",
        None => " skill not loaded or cannot run",
    };
    let short = format!(
        "{}{}{}",
        part(&digest, 0, 4),
        glyphs.ellipsis,
        part(&digest, digest.len().saturating_sub(2), 2)
    );
    row(
        "contract",
        vec![
            Seg::new(shown(&detail.contract_version), Role::Text),
            Seg::new(format!(" {} digest ", glyphs.dot), Role::Muted),
            Seg::new(short, Role::Text),
            Seg::new(state_text, Role::Warning),
        ],
    );
    corrected_lines(state, making, out);
    let mut row = |label: &str, segs: Vec<Seg>| labeled_row(label, segs, making, out);
    for decided in &detail.decisions {
        let by = decided.by.approver.as_deref().map_or_else(|| "another user".to_owned(), shown);
        let notes =
            decided.by.notes.as_deref().map(|notes| format!(": {}", shown(notes))).unwrap_or_default();
        let verdict = format!("{} {}", decided.decision.verdict, shown(step_label(&decided.decision.step)));
        row(
            "decision",
            vec![Seg::new(verdict, Role::Text), Seg::new(format!(" by {by}{notes}"), Role::Muted)],
        );
    }
    for command in list_commands(state.events()) {
        let note = command.note.map(|note| format!(": {note}")).unwrap_or_default();
        let by = format!(" by {}{note}", command.by);
        row("command", vec![Seg::new(command.what, Role::Text), Seg::new(by, Role::Muted)]);
    }
}
/// Appends corrected inputs: the previous and the new value.
fn corrected_lines(state: &DetailState, making: &RowContext<'_>, out: &mut Vec<Line>) {
    for event in state.events().filter(|event| event.event.kind == EventKind::RunResumed) {
        let data = &event.event.data;
        let is_recorded = data.get("inputs_before").is_some();
        for ChangedInput { name, before, after } in changed_inputs(data) {
            let was = is_recorded.then(|| before.as_ref().unwrap_or(&Value::Null));
            corrected_rows(&name, was, &after, making, out);
        }
    }
}
/// Appends a corrected input: both values in one row, or for texts of several lines the lines that differ.
fn corrected_rows(
    name: &str,
    was: Option<&Value>,
    after: &Value,
    making: &RowContext<'_>,
    out: &mut Vec<Line>,
) {
    let glyphs = making.cx.glyphs;
    let name = Seg::new(format!("{}  ", exact(name)), Role::Strong);
    if let (Some(Value::String(was)), Value::String(after)) = (was, after)
        && (was.contains('\n') || after.contains('\n'))
    {
        labeled_row("changed input", vec![name], making, out);
        let diff = similar::TextDiff::from_lines(was.as_str(), after.as_str());
        let all: Vec<(bool, String)> = diff
            .iter_all_changes()
            .filter(|change| change.tag() != similar::ChangeTag::Equal)
            .map(|change| {
                (change.tag() == similar::ChangeTag::Insert, exact(change.value().trim_end_matches('\n')))
            })
            .collect();
        for (new, text) in all.iter().take(MAX_DIFF_LINES) {
            let (sign, role) = if *new { ("+", Role::Text) } else { (glyphs.minus, Role::Muted) };
            let text = cut_end(text, making.width.saturating_sub(4), glyphs.ellipsis);
            out.push(Line::of(vec![Seg::new(format!("  {sign} "), role), Seg::new(text, role)]));
        }
        if all.len() > MAX_DIFF_LINES {
            let more = inflected(all.len() - MAX_DIFF_LINES, "more line differs", "more lines differ");
            let more = format!("    {more}");
            out.push(Line::of(vec![Seg::new(more, Role::Muted)]));
        }
        return;
    }
    let taken = cells("changed input ") + cells(&name.text) + cells(" -> ");
    let available = (making.width.saturating_sub(taken) / 2).max(8);
    let segment = |value: &Value, role: Role| match value {
        Value::Null => vec![Seg::new("nothing", Role::Muted)],
        value => {
            let cut = on_one_line(value, available, glyphs.ellipsis);
            cut.into_iter().map(|seg| Seg::new(seg.text, role)).collect()
        }
    };
    let mut segs = vec![name];
    if let Some(was) = was {
        segs.extend(segment(was, Role::Muted));
        segs.push(Seg::new(if glyphs.ascii { " -> " } else { " → " }, Role::Muted));
    }
    segs.extend(segment(after, Role::Text));
    labeled_row("changed input", segs, making, out);
}

fn labeled_row(label: &str, segs: Vec<Seg>, making: &RowContext<'_>, out: &mut Vec<Line>) {
    let mut all = vec![Seg::new(format!("{label} "), Role::Muted)];
    all.extend(segs);
    let lines = break_code_to(&all, making.width, 2, making.cx.glyphs.ellipsis);
    out.extend(lines.into_iter().map(|line| Line::of(line.segs)));
}

/// Appends the pending approval, on its band; `step` is `None` for the approval before the first step.
pub(super) fn waiting_lines(
    step: Option<&StepView>,
    preview: Option<&DecisionPreview>,
    record: &RunRecord,
    making: &RowContext<'_>,
    out: &mut Vec<Line>,
) {
    let glyphs = making.cx.glyphs;
    let label = step_label(step.map_or(BEFORE_FIRST_STEP, |step| step.step.as_str()));
    let name =
        vec![Seg::new(format!(" {} ", glyphs.waiting), Role::Waiting), Seg::new(shown(label), Role::Strong)];
    let mut first = Line::of(name).waiting();
    if let Some(step) = step {
        first = first.at(DetailCursor::Step(step.step.clone()));
    }
    for (command, action, key, label) in [
        (CommandName::Approve, Action::Approve, "a", "approve"),
        (CommandName::Deny, Action::Deny, "d", "deny"),
    ] {
        if record.allowed.contains(&command) && !making.disconnected {
            first.buttons.push((action, key.to_owned(), label.to_owned()));
        }
    }
    out.push(first);
    let mut row = |label: &str, segs: Vec<Seg>| {
        let pad = 8usize.saturating_sub(usize::from(cells(label)));
        let mut all = vec![Seg::new(format!("   {label}{} ", " ".repeat(pad)), Role::Muted)];
        all.extend(segs);
        out.push(Line::of(all).waiting());
    };
    let available = making.width.saturating_sub(13);
    let cut = |text: &str| cut_end(&exact(text), available, glyphs.ellipsis).into_owned();
    let Some(preview) = preview else {
        if let Some(step) = step {
            row("calls", vec![Seg::new(cut(&step.uses), Role::Text)]);
        }
        return;
    };
    let does = if preview.capability.is_empty() { &preview.headline } else { &preview.capability };
    // The approval before the first step is one of the run, not of a call.
    if step.is_some() {
        row("calls", vec![Seg::new(cut(does), Role::Text)]);
    }
    if let Value::Object(inputs) = &preview.inputs {
        for (name, value) in inputs.iter().take(4) {
            let label = cut_end(&exact(name), 8, glyphs.ellipsis).into_owned();
            let mut segs = on_one_line(value, available, glyphs.ellipsis);
            segs.iter_mut().filter(|seg| seg.role == Role::CodeString).for_each(|seg| seg.role = Role::Text);
            row(&label, segs);
        }
        if inputs.len() > 4 {
            row("", vec![Seg::new(format!("{} more in the dialog", inputs.len() - 4), Role::Muted)]);
        }
    }
    if let Some(target) = &preview.target {
        row("target", vec![Seg::new(cut(&target.text()), Role::Text)]);
    }
    if let Some(warning) = &preview.irreversible {
        row("effect", vec![Seg::new(cut(warning), Role::Danger)]);
    }
    if preview.outcome_unknown {
        row("outcome", vec![Seg::new(cut("unknown: execution was interrupted"), Role::Danger)]);
    }
    if let Some(why) = &preview.blocked {
        row("blocked", vec![Seg::new(cut(why), Role::Danger)]);
    }
    row("reason", vec![Seg::new(cut(&preview.why), Role::Text)]);
}

/// Appends the result of the run, or its error.
pub(super) fn result_lines(
    detail: &RunDetail,
    record: &RunRecord,
    making: &RowContext<'_>,
    out: &mut Vec<Line>,
) {
    if let Some(error) = record.error.as_ref().filter(|_| record.state == RunState::Failed) {
        let text = |key: &str| error.get(key).and_then(Value::as_str).map(shown);
        let message = text("detail")
            .or_else(|| text("message"))
            .or_else(|| error.as_str().map(shown))
            .unwrap_or_else(|| shown(&error.to_string()));
        out.push(Line::blank());
        let sign = Seg::new(format!("{} ", making.cx.glyphs.bad), Role::Danger);
        let segs = [Seg::new(message, Role::Danger)];
        let lines = wrap_to(&segs, making.width.saturating_sub(2), 4, making.cx.glyphs.ellipsis);
        for (at, line) in lines.into_iter().enumerate() {
            let mut all = vec![if at == 0 { sign.clone() } else { Seg::new("  ", Role::Text) }];
            all.extend(line.segs);
            out.push(Line::of(all));
        }
    }
    let outputs = record.outputs.as_ref().or(detail.run.outputs.as_ref());
    if let Some(outputs) = outputs.filter(|value| value.as_object().is_some_and(|map| !map.is_empty())) {
        out.push(Line::blank());
        out.push(Line::rule("Outputs", ""));
        let rows = fields(outputs, making.width, "");
        let more = rows.len().saturating_sub(10);
        out.extend(rows.into_iter().take(10).map(|line| Line::of(line.segs)));
        if more > 0 {
            let cx = making.cx;
            let key = cx.keymap.key_word(Action::Read, &[Context::RunsDetail], cx.glyphs);
            let more = counted(more, "more line");
            out.push(Line::of(vec![Seg::new(format!("{more}: {key} shows all"), Role::Muted)]));
        }
    }
}

pub(super) fn checkpoint_lines(
    detail: &RunDetail,
    record: &RunRecord,
    making: &RowContext<'_>,
    out: &mut Vec<Line>,
) {
    out.push(Line::rule("Checkpoints", ""));
    let last = detail.checkpoints.iter().map(|point| point.number).max().unwrap_or_default();
    let width = last.to_string().len().max(2) + 2;
    let glyphs = making.cx.glyphs;
    for point in detail.checkpoints.iter().rev() {
        let is_head = point.number == record.head;
        let (name, label) = if is_head { (Role::Strong, Role::Text) } else { (Role::Text, Role::Muted) };
        let mark = if is_head { if glyphs.ascii { "  <" } else { "  ◂" } } else { "" };
        let number = format!("{:<width$}", format!("c{}", point.number));
        let segs = vec![
            Seg::new(number, name),
            Seg::new(label_of(detail, point.number), label),
            Seg::new(mark, Role::Strong),
        ];
        let right = if is_head { "latest".to_owned() } else { duration(point.at_ms - record.created_ms) };
        out.push(Line::of(segs).right(right, Role::Muted).at(DetailCursor::Checkpoint(point.number)));
    }
    if let Some(last) = detail.earlier_checkpoint() {
        let command = format!("skills runs show {} --checkpoint N", quoted(&record.id.0));
        let how = making.cx.commands.completed(&command).unwrap_or_else(|| "not listed".to_owned());
        let segs = [Seg::new(format!("c0 to c{last}: {how}"), Role::Muted)];
        let lines = wrap_to(&segs, making.width, 4, glyphs.ellipsis);
        out.extend(lines.into_iter().map(|line| Line::of(line.segs)));
    }
}

fn part(text: &str, from: usize, count: usize) -> String {
    text.chars().skip(from).take(count).collect()
}
