//! The runs of a command: what distinguishes them, which ones are included, and the outcome of each.

use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use super::super::decision::passed;
use super::super::parts::{self, LABEL, tail};
use super::super::run_command::payload;
use super::CONTEXTS;
use super::texts::Texts;
use crate::action::Action;
use crate::keymap::mention;
use crate::overlay::row_at;
use crate::pane::Effect;
use crate::run_requests::RunRequest;
use crate::theme::Role;
use crate::widgets::json_lines;
use crate::widgets::wrap::break_code_to;
use crate::widgets::{Painter, RichLine, Scroll, Seg, age, break_code, cells, count, cut_end, exact, shown};
use skills_api::{
    Code, CommandResult, DecisionPreview, Differences, Error, RunCommand, RunDetail, SuppliedFile, UNDONE,
    distinguish, is_same, target_fields,
};
use skills_model::{ApprovalReason, CommandName, Gate, RunState, Verdict, step_label};
use skills_store::{RunId, RunRecord, failure_kind};

/// Why a run is not included whose inputs the list leaves out.
const INPUTS_NOT_LOADED: &str = "excluded: its inputs are not loaded (too long for the list)";
/// The same for the content of its target.
const TARGET_NOT_LOADED: &str = "excluded: its target is not loaded (too long for the list)";
/// Why a run is not decided yet.
const CALL_NOT_LOADED: &str = "excluded: what it would execute is not loaded";
/// What the launcher chose and what would be executed, which is shown completely if it is the same in all runs.
const COMPLETE: [&str; 5] = ["title", "labels", "inputs", "attached to", "call inputs"];
/// Facts that are compared between runs, in this order, and those of them that need not be read before a command.
const FACTS: [&str; 8] =
    ["skill", "step", "waiting for", "continues", "contract", "error", "message", "started by"];
const UNESSENTIAL: [&str; 3] = ["error", "message", "started by"];
/// Begins the row of a run that it does not show completely.
const UNTIL_REVIEWED: &str = "review: ";
/// Begins the row of a run that continues with the contract of its launch.
const DESPITE: &str = "with the contract of the launch  ";
/// Number of characters of a digest in a row.
const DIGEST_LENGTH: usize = 8;
/// Maximum number of lines of another property that is the same in all runs.
const MAX_FACT_LINES: usize = 2;
/// Begins the inputs of the call in a row.
const CALL_PREFIX: &str = "call: ";

/// A run of the dialog.
pub(super) struct Row {
    pub run: RunRecord,
    /// What distinguishes it from the others.
    pub text: String,
    /// Width of the text.
    width: u16,
    /// Width of its beginning that has to be read before the command is sent.
    essential: u16,
    /// Whether that fits into the row.
    fits: bool,
    /// Whether its details were shown to their end once everything about it was loaded.
    reviewed: bool,
    /// In what its call differs from that of the first run.
    deviations: Vec<&'static str>,
    /// Whether the person included or excluded it.
    chosen: bool,
    /// Why the command cannot be sent to it.
    pub blocked: Option<String>,
    /// Whether the command will be sent to it.
    pub included: bool,
    pub outcome: Option<Result<String, String>>,
    /// The outcome in one word, of [`UNDONE`], after an error.
    pub undone: &'static str,
    /// Whether the command was sent and it is not known whether it was executed.
    pub unknown: bool,
    /// Why an accepted command did not decide, if so.
    undecided: Option<Undecided>,
    /// Whether the command decides what would be executed.
    decides: bool,
    /// What would be executed, once it is loaded.
    pub preview: Option<DecisionPreview>,
    /// Inputs of the call that differ from those of the run; null until they are loaded.
    call: Value,
    /// What is called apart from the inputs; empty until it is loaded.
    call_facts: Vec<(&'static str, String)>,
    /// The command continues the run from its last checkpoint.
    continues: bool,
    /// Version of its contract, once it is loaded.
    version: Option<String>,
    /// Whether its skill changed since the launch.
    pub changed: bool,
    /// Whether it continues with the contract of the launch although its skill changed.
    pub despite: bool,
    /// Whether its details were requested from here.
    requested: bool,
}

/// What the details of a run mean for the dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DetailChange {
    Nothing,
    /// The command that was sent was not executed.
    NotExecuted,
    /// It waits for something else, and is not included any longer.
    Moved,
}

/// Why an accepted command did not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undecided {
    /// More approvals are needed.
    Partly,
    /// Another person was first.
    Before,
    /// The same person approved it before, and another one must approve it, too.
    Waiting,
}

/// The number of runs by outcome.
pub(super) struct Tally {
    pub done: usize,
    pub approved_in_part: usize,
    pub decided_before: usize,
    pub waiting: usize,
    /// Runs for which it was not executed, by outcome.
    pub undone: [(usize, &'static str); UNDONE.len()],
    pub unknown: usize,
    pub unsent: usize,
}

/// Maximum width of a column of values that is aligned: a wider one would leave no space for the error.
const MAX_ALIGNED: u16 = 16;

pub(super) struct RunRows {
    command: CommandName,
    pub rows: Vec<Row>,
    /// What is the same in all rows: label and value.
    common: Vec<(&'static str, String)>,
    /// What the first run that takes the decision would call: runs that would call something else are excluded.
    first_call: Option<Vec<(&'static str, String)>>,
    pub scroll: Scroll,
    /// Areas of the last frame.
    areas: Vec<(Rect, usize)>,
}

impl RunRows {
    pub fn new(command: CommandName, runs: Vec<RunRecord>) -> Self {
        let rows = runs.into_iter().map(|run| Row::new(run, command)).collect();
        let (common, scroll, areas) = (Vec::new(), Scroll::default(), Vec::new());
        let mut runs = Self { command, rows, common, first_call: None, scroll, areas };
        runs.distinguish();
        runs
    }

    pub fn decides(&self) -> bool {
        matches!(self.command, CommandName::Approve | CommandName::Deny)
    }

    /// Separates what is the same in all runs from what distinguishes each.
    fn distinguish(&mut self) {
        let mut facts: Vec<Vec<(&'static str, String)>> = self.rows.iter().map(Row::facts).collect();
        if self.rows.iter().any(|row| row.version.is_none()) {
            // A row that is not loaded yet would seem to have another contract.
            facts.iter_mut().for_each(|facts| facts.retain(|fact| fact.0 != "contract"));
        }
        // A contract can change without its version.
        if !is_same(self.rows.iter().map(|row| &row.run.contract_digest)) {
            for (row, facts) in self.rows.iter().zip(&mut facts) {
                let digest: String = row.run.contract_digest.chars().take(DIGEST_LENGTH).collect();
                let contract = facts.iter_mut().filter(|fact| fact.0 == "contract");
                contract.for_each(|fact| fact.1 += &format!(" sha256 {digest}"));
            }
        }
        let labels = FACTS;
        let of = |facts: &[(&'static str, String)], label: &str| {
            facts.iter().find(|fact| fact.0 == label).map(|fact| fact.1.clone()).unwrap_or_default()
        };
        let same: Vec<&str> =
            labels.into_iter().filter(|label| is_same(facts.iter().map(|one| of(one, label)))).collect();
        let first = facts.first().map(Vec::as_slice).unwrap_or_default();
        let same_facts = labels.into_iter().filter(|label| same.contains(label));
        let same_facts = same_facts.map(|label| (label, of(first, label)));
        let distinguished = distinguish(self.rows.iter().map(|row| &row.run));
        let (calls, same_call) = self.compare_calls();
        let of_one = |object: &Value| Differences::of(&[object]).line(object);
        let mut inputs_of_rows = aligned(&distinguished.rows);
        let (title, same_labels, same_inputs, same_target) = match self.rows.as_slice() {
            [row] => {
                // The row of a single run does not repeat what is above it.
                inputs_of_rows.iter_mut().for_each(String::clear);
                let labels = of_one(&serde_json::json!(row.run.options.labels));
                let target = of_one(&Value::Object(target_fields(&row.run)));
                (row.run.title().map(shown), labels, of_one(&row.run.inputs), target)
            }
            _ => (distinguished.title, distinguished.labels, distinguished.inputs, distinguished.target),
        };
        // In a small window, only the first of them may fit.
        let chosen = [title.unwrap_or_default(), same_labels, same_inputs, same_target, same_call];
        let chosen = COMPLETE.into_iter().zip(chosen);
        self.common = chosen.chain(same_facts).filter(|(_, value)| !value.is_empty()).collect();
        let texts = inputs_of_rows.into_iter().zip(call_texts(&calls));
        for ((row, facts), (inputs, call)) in self.rows.iter_mut().zip(facts).zip(texts) {
            // Without a title, the name of the row is the skill.
            let titled = row.run.title().is_some();
            let parts = facts.into_iter().filter(|fact| !same.contains(&fact.0));
            let parts = parts.filter(|fact| titled || fact.0 != "skill");
            let (essential, others): (Vec<_>, Vec<_>) =
                parts.partition(|fact| !UNESSENTIAL.contains(&fact.0));
            // After the inputs of the call, those of the run could be taken for them.
            let inputs =
                if call.is_empty() || inputs.is_empty() { inputs } else { format!("inputs: {inputs}") };
            let first = [call, inputs].into_iter().chain(essential.into_iter().map(|fact| fact.1));
            let mut all: Vec<String> = first.filter(|part| !part.is_empty()).collect();
            row.essential = cells(all.join("  ").trim_end());
            all.extend(others.into_iter().map(|fact| fact.1));
            row.text = all.join("  ");
            row.width = cells(&row.text);
        }
    }

    /// Returns the inputs of the calls in which the rows of a decision differ, and those that are the same in all.
    fn compare_calls(&self) -> (Vec<Vec<String>>, String) {
        let mut out = vec![Vec::new(); self.rows.len()];
        if !self.decides() || self.rows.len() < 2 {
            return (out, String::new());
        }
        // A call that is not loaded yet has nothing in common with the others.
        let rows = self.rows.iter().enumerate();
        let compared: Vec<(usize, &Row)> =
            rows.filter(|(_, row)| row.blocked.is_none() || row.preview.is_some()).collect();
        let calls: Vec<&Value> = compared.iter().map(|(_, row)| &row.call).collect();
        let differences = Differences::of(&calls);
        let common = differences.common();
        for ((at, _), call) in compared.iter().zip(calls) {
            out[*at] = differences.row(call);
        }
        (out, common)
    }

    /// Includes and excludes the runs that the person has not chosen: a run whose call differs from that of the first run
    /// is excluded, and one that the row does not show completely until its details were shown.
    fn choose(&mut self) {
        if self.decides() && self.first_call.is_none() {
            // It stays the same, so that nothing but the person includes a run with another call.
            let first = self.rows.iter().find(|row| row.blocked.is_none());
            self.first_call = first.filter(|row| row.preview.is_some()).map(|row| row.call_facts.clone());
        }
        let is_known = !self.decides() || self.first_call.is_some();
        for row in &mut self.rows {
            let first = self.first_call.as_deref().filter(|_| row.preview.is_some());
            row.deviations = first.map(|first| deviations(&row.call_facts, first)).unwrap_or_default();
            if !row.chosen && row.outcome.is_none() {
                row.included = is_known && !row.is_excluded();
            }
        }
    }

    /// Records that the details of the run under the cursor were shown to their end. Returns whether that includes it.
    pub fn review(&mut self, width: u16) -> bool {
        let before = self.included();
        if let Some(row) = self.rows.get_mut(self.scroll.cursor)
            && row.awaits_review()
        {
            row.reviewed = row.is_complete(width);
            self.choose();
        }
        self.included() != before
    }

    /// Determines which rows show everything in this width, and includes the runs accordingly while the runs are chosen.
    pub fn measure(&mut self, width: u16, clock: i64, choosing: bool) {
        let available = self.columns(width, clock).text(width);
        for row in &mut self.rows {
            let prefix = if row.despite { cells(DESPITE) } else { 0 };
            // The ellipsis of a row that is cut takes a cell.
            let width = |own: u16| own.saturating_add(prefix);
            let is_cut = width(row.width) > available;
            let is_shown = width(row.essential).saturating_add(u16::from(is_cut)) <= available;
            // A run that is canceled executes nothing.
            row.fits = self.command == CommandName::Cancel || is_shown;
        }
        if choosing {
            self.choose();
        }
    }

    /// Returns whether there are runs that are included once their details were shown.
    pub fn awaits_review(&self) -> bool {
        self.rows.iter().any(|row| !row.included && row.awaits_review())
    }

    pub fn included(&self) -> usize {
        self.rows.iter().filter(|row| row.included).count()
    }

    /// Returns whether the details of the run under the cursor, which the dialog shows, are being loaded.
    pub fn is_loading(&self) -> bool {
        let row = self.rows.get(self.scroll.cursor).filter(|_| self.checks());
        row.is_some_and(|row| row.included && row.requested && row.outcome.is_none() && row.version.is_none())
    }

    /// Returns whether the details of a run decide about the command.
    fn checks(&self) -> bool {
        self.decides() || self.command == CommandName::Resume
    }

    /// Excludes a run that could not be loaded.
    pub fn take_failure(&mut self, run: &RunId, error: &Error) {
        let checks = self.checks();
        let row = self.rows.iter_mut().find(|row| row.run.id == *run);
        if let Some(row) = row.filter(|row| row.lacks_details(checks)) {
            (row.included, row.requested) = (false, false);
            row.blocked = Some(format!("excluded: {}", shown(&error.message)));
        }
    }

    /// Returns the number of runs that the command is still to be sent to.
    pub fn unsent(&self) -> usize {
        self.rows.iter().filter(|row| row.included && row.outcome.is_none()).count()
    }

    pub fn build_command(&self, at: usize, texts: &Texts) -> Option<RunCommand> {
        let row = &self.rows[at];
        let command = match self.command {
            CommandName::Resume => RunCommand::Resume {
                checkpoint: None,
                inputs: None,
                despite_change: row.despite,
                by: None,
                since_ms: None,
            },
            CommandName::Cancel => RunCommand::Cancel { by: None },
            CommandName::Signal => {
                let payload = payload(&texts.typed(1).unwrap_or_default()).ok()?;
                RunCommand::Signal { name: texts.typed(0)?, payload, by: None, since_ms: None }
            }
            CommandName::Approve | CommandName::Deny => {
                let preview = row.preview.as_ref()?;
                let approve = self.command == CommandName::Approve;
                RunCommand::Decide {
                    verdict: if approve { Verdict::Approve } else { Verdict::Deny },
                    step: Some(preview.step.clone()),
                    inputs_digest: Some(preview.inputs_digest.clone()),
                    approver: None,
                    notes: texts.typed(0),
                    choice: None,
                    result: None,
                }
            }
            _ => return None,
        };
        Some(command.if_unchanged(&row.run))
    }

    /// Returns the runs whose skill changed and that are not resumed.
    pub fn changed(&self) -> impl Iterator<Item = &Row> {
        let resumes = self.command == CommandName::Resume;
        let stays = |row: &&Row| row.changed && !matches!(row.outcome, Some(Ok(_)));
        self.rows
            .iter()
            .filter(move |row| resumes && row.run.allowed.contains(&CommandName::Resume) && stays(row))
    }

    /// Returns whether all runs whose skill changed are included.
    pub fn includes_changed(&self) -> bool {
        self.changed().all(|row| row.despite)
    }

    /// Includes the runs whose skill changed, with the contract of their launch, or leaves them out again. After
    /// sending, they alone are included.
    pub fn include_changed(&mut self, on: bool, after_sending: bool) {
        for row in &mut self.rows {
            // A row that was not shown completely when the others were sent is not sent now.
            let is_left_out = after_sending && row.outcome.is_none() && !row.fits && !row.reviewed;
            let stays = row.changed && !matches!(row.outcome, Some(Ok(_))) && !is_left_out;
            if stays {
                // What the person excluded, or has to review again, stays excluded.
                let included = on && (row.included || !row.chosen);
                (row.despite, row.included, row.outcome) = (on, included, None);
            } else if after_sending && row.outcome.is_none() {
                (row.included, row.chosen) = (false, true);
            }
        }
    }

    /// Returns the next run at or after index `from` that the command is to be sent to.
    pub fn next(&self, from: usize) -> Option<usize> {
        let waits = |row: &Row| row.included && row.outcome.is_none();
        (from..self.rows.len()).find(|at| waits(&self.rows[*at]))
    }

    pub fn position(&self, run: &RunId) -> Option<usize> {
        self.rows.iter().position(|row| row.run.id == *run)
    }

    pub fn row_at(&self, at: Position) -> Option<usize> {
        row_at(&self.areas, at)
    }

    /// Includes or excludes a run; returns why it cannot be included.
    pub fn toggle(&mut self, at: usize) -> Option<String> {
        let row = self.rows.get_mut(at)?;
        if row.blocked.is_none() && row.not_loaded().is_some() {
            return Some(format!("{} not loaded yet: move the cursor to the run.", row.missing()));
        }
        if row.changed && !row.despite {
            let key = mention(Action::AllowChangedSkill);
            return Some(format!("Its skill changed: {key} resumes it with the contract of the launch."));
        }
        row.included = !row.included && row.blocked.is_none();
        row.chosen = true;
        self.choose();
        None
    }

    /// Moves the cursor, and requests what would be executed for the run under it, and what excludes the runs around it
    /// until it is loaded, as far as the cursor moves by a page.
    pub fn go(&mut self, rows: isize) -> Vec<Effect> {
        self.scroll.by(rows, self.rows.len());
        let (checks, cursor, page) = (self.checks(), self.scroll.cursor, self.scroll.page().unsigned_abs());
        let mut out = Vec::new();
        for (at, row) in
            self.rows.iter_mut().enumerate().take(cursor + page + 1).skip(cursor.saturating_sub(page))
        {
            let is_wanted = if at == cursor {
                row.unknown || (!row.requested && row.lacks_details(checks))
            } else {
                !row.requested && row.blocked.is_none() && row.lacks_details(false)
            };
            if is_wanted {
                row.requested = true;
                out.push(Effect::Run(RunRequest::Detail(row.run.id.clone())));
            }
        }
        out
    }

    /// Records the response to the command; returns whether it is unknown whether it was executed.
    pub fn take_response(&mut self, at: usize, answer: Result<&CommandResult, &Error>) -> bool {
        let row = &mut self.rows[at];
        row.changed |= answer.is_err_and(|error| error.code == Code::SkillChanged);
        row.unknown = answer.is_err_and(Error::is_outcome_unknown);
        row.undecided = answer.ok().and_then(|result| {
            match (result.repeated, result.run.approval_progress().is_some()) {
                (true, true) => Some(Undecided::Waiting),
                (true, false) => Some(Undecided::Before),
                (false, true) => Some(Undecided::Partly),
                (false, false) => None,
            }
        });
        row.outcome = Some(match answer {
            Ok(result) => Ok(shown(&result.note)),
            Err(error) => Err(shown(&error.message)),
        });
        row.undone = answer.err().map_or("", Error::outcome);
        row.unknown
    }

    /// Updates a run: what would be executed, and whether it still takes the command. A run that was not loaded is
    /// included, but not after the runs were chosen.
    pub fn take_detail(&mut self, detail: &RunDetail, undecided: bool, choosing: bool) -> DetailChange {
        let command = self.command;
        let Some(row) = self.rows.iter_mut().find(|row| row.run.id == detail.run.id) else {
            return DetailChange::Nothing;
        };
        if row.unknown {
            row.unknown = false;
            let is_unchanged = row.run.since_ms == detail.run.since_ms && row.run.state == detail.run.state;
            if is_unchanged && gate_key(&row.run) == gate_key(&detail.run) {
                // It can be sent again.
                row.outcome = None;
                return DetailChange::NotExecuted;
            }
            row.outcome = Some(Ok(format!("it is {} now", detail.run.state.label())));
            row.run.clone_from(&detail.run);
            return DetailChange::Nothing;
        }
        if row.outcome.is_some() || !undecided {
            row.requested = false;
            return DetailChange::Nothing;
        }
        let first = row.version.is_none();
        let was_not_loaded = row.run.lacks_values() || (first && row.not_loaded().is_some());
        // A run that was resumed and failed again may have other inputs.
        let is_of_state = matches!(command, CommandName::Resume | CommandName::Signal);
        let moved = gate_key(&row.run) != gate_key(&detail.run)
            || (is_of_state && !row.run.is_in_same_state(&detail.run));
        row.run.clone_from(&detail.run);
        row.preview.clone_from(&detail.sheet);
        if row.decides {
            let preview = row.preview.as_ref();
            row.call = preview.map_or(Value::Null, |preview| call_inputs(preview, &row.run.inputs));
            row.call_facts = preview.map(|preview| call_facts(preview, &row.run)).unwrap_or_default();
        }
        row.version = Some(detail.contract_version.clone());
        let unreadable = row.not_loaded().map(|_| {
            let what = match (row.run.lacks_inputs(), row.run.lacks_target_content()) {
                (true, _) => "its inputs",
                (false, true) => "its target",
                (false, false) => "what it would execute",
            };
            format!("excluded: {what} cannot be read")
        });
        row.blocked = blocked(&row.run, command).or(unreadable).or_else(|| {
            let preview = row.preview.as_ref().filter(|_| command == CommandName::Approve)?;
            let why = preview.approval_obstacle()?;
            Some(format!("excluded: {}", shown(why)))
        });
        row.changed = command == CommandName::Resume && detail.contract_unchanged == Some(false);
        let mut change = DetailChange::Nothing;
        let was_included = row.included;
        if moved {
            // Only the person includes it again, also after a state in which it took no command.
            (row.included, row.chosen, row.reviewed) = (false, true, false);
        }
        if row.blocked.is_some() || (row.changed && !row.despite && first) {
            row.included = false;
        } else if moved {
            if was_included || was_not_loaded {
                change = DetailChange::Moved;
            }
        } else if was_not_loaded {
            (row.included, row.chosen) = (choosing, !choosing);
        }
        self.distinguish();
        if choosing {
            self.choose();
        }
        change
    }

    pub fn tally(&self) -> Tally {
        let known = || self.rows.iter().filter(|row| !row.unknown);
        let accepted = known().filter(|row| matches!(row.outcome, Some(Ok(_)))).count();
        let undone = |outcome: &'static str| {
            let ended = known().filter(|row| matches!(row.outcome, Some(Err(_))));
            (ended.filter(|row| row.undone == outcome).count(), outcome)
        };
        let unknown = self.rows.iter().filter(|row| row.unknown).count();
        let undecided = |why| self.rows.iter().filter(|row| row.undecided == Some(why)).count();
        let (approved_in_part, decided_before) = (undecided(Undecided::Partly), undecided(Undecided::Before));
        let waiting = undecided(Undecided::Waiting);
        Tally {
            done: accepted.saturating_sub(approved_in_part + decided_before + waiting),
            approved_in_part,
            decided_before,
            waiting,
            undone: UNDONE.map(undone),
            unknown,
            unsent: self.unsent(),
        }
    }

    /// Returns the lines of what is the same in all runs, what was chosen by the launcher first.
    pub fn common_lines(&self, width: u16, painter: &Painter<'_>) -> Vec<RichLine> {
        let mut out = Vec::new();
        let whose = if self.rows.len() == 1 { "this run" } else { "in all runs" };
        for (label, value) in &self.common {
            let role = if *label == "error" { Role::Danger } else { Role::Text };
            let segs = [Seg::new(value.clone(), role)];
            let most = if COMPLETE.contains(label) { usize::MAX } else { MAX_FACT_LINES };
            let available = width.saturating_sub(2 * LABEL);
            let lines = break_code_to(&segs, available, most, painter.glyphs.ellipsis);
            for (at, line) in lines.into_iter().enumerate() {
                let head = if out.is_empty() { whose } else { "" };
                let label = if at == 0 { *label } else { "" };
                let indent = usize::from(LABEL);
                let mut segs = vec![Seg::new(format!("{head:<indent$}{label:<indent$}"), Role::Muted)];
                segs.extend(line.segs);
                out.push(RichLine::from_segs(segs));
            }
        }
        out
    }

    /// Returns the lines about the run under the cursor: the whole outcome, and what would be executed.
    pub fn detail_lines(&self, width: u16, painter: &Painter<'_>, clock: i64) -> Vec<RichLine> {
        let Some(row) = self.rows.get(self.scroll.cursor) else { return Vec::new() };
        let mut out = Vec::new();
        let outcome = match (&row.outcome, &row.blocked) {
            (Some(Err(why)), _) => Some((why.clone(), Role::Danger)),
            (Some(Ok(note)), _) => Some((note.clone(), row.accepted_role())),
            (None, Some(why)) => Some((why.clone(), Role::Muted)),
            (None, None) if row.changed && !row.despite => {
                let text = format!(
                    "excluded: its skill changed since the launch. Resume it with the contract of the launch ({}), \
                     or launch the skill again.",
                    painter.key_word(Action::AllowChangedSkill, &CONTEXTS)
                );
                Some((text, Role::Warning))
            }
            (None, None) if row.run.lacks_values() => {
                row.not_loaded().map(|why| (why.to_owned(), Role::Warning))
            }
            _ => None,
        };
        let mut labeled = |label: &str, segs: Vec<Seg>, out: &mut Vec<RichLine>| {
            out.extend(parts::labeled(label, LABEL, break_code(&segs, width.saturating_sub(LABEL))));
        };
        let id = tail(&row.run.id.0).to_uppercase();
        if let Some((text, role)) = outcome {
            labeled(&id, vec![Seg::new(text, role)], &mut out);
        }
        if row.outcome.is_some() {
            return out;
        }
        if !self.decides() {
            if !row.run.lacks_values() {
                // The row may end before them.
                labeled(&id, vec![Seg::new(shown(row.run.title_or_skill()), Role::Text)], &mut out);
                let shows_all = parts::shows_all(&row.run.id, painter);
                let lines = json_lines::fields(&row.run.inputs, width.saturating_sub(LABEL), &shows_all);
                for (at, line) in lines.into_iter().enumerate() {
                    labeled(if at == 0 { "inputs" } else { "" }, line.segs, &mut out);
                }
                row.labels_line(&mut labeled, &mut out);
                if let Some(target) = &row.run.target {
                    let lines = json_lines::fields(target, width.saturating_sub(LABEL), &shows_all);
                    for (at, line) in lines.into_iter().enumerate() {
                        labeled(if at == 0 { "attached to" } else { "" }, line.segs, &mut out);
                    }
                }
            }
            return out;
        }
        let Some(preview) = &row.preview else {
            if row.blocked.is_none() {
                let text = "loading what it would execute".to_owned() + painter.glyphs.ellipsis;
                labeled(&id, vec![Seg::new(text, Role::Muted)], &mut out);
            }
            return out;
        };
        // What an excluded run would execute is not that of the others.
        let whose = if row.included && self.previews_are_equal() { "all runs" } else { &id };
        labeled(whose, vec![Seg::new(exact(&preview.headline), Role::Strong)], &mut out);
        if let Some(warning) = &preview.irreversible {
            labeled("", vec![Seg::new(shown(warning), Role::Danger)], &mut out);
        }
        if !preview.capability.is_empty() {
            let note = Seg::new(format!(" {}", shown(&preview.capability_note)), Role::Muted);
            labeled("capability", vec![Seg::new(shown(&preview.capability), Role::Text), note], &mut out);
        }
        if !preview.binding.trim().is_empty() {
            labeled("binding", vec![Seg::new(exact(&preview.binding), Role::Text)], &mut out);
        }
        for (at, fallback) in preview.fallbacks.iter().enumerate() {
            let label = if at == 0 { "fallbacks" } else { "" };
            labeled(label, vec![Seg::new(exact(fallback), Role::Text)], &mut out);
        }
        for (at, file) in preview.files.iter().enumerate() {
            let label = if at == 0 { "files" } else { "" };
            labeled(label, vec![Seg::new(exact(&file.text()), Role::Text)], &mut out);
        }
        let shows_all = parts::shows_all(&preview.run, painter);
        if let Some(target) = &preview.target {
            labeled("attached to", vec![Seg::new(exact(&target.text()), Role::Text)], &mut out);
            let lines = json_lines::fields(&target.content, width.saturating_sub(LABEL), &shows_all);
            for (at, line) in lines.into_iter().enumerate() {
                labeled(if at == 0 { "content" } else { "" }, line.segs, &mut out);
            }
            if target.truncated {
                labeled("", vec![Seg::new(format!("truncated; {shows_all}"), Role::Warning)], &mut out);
            }
        }
        if !preview.why.trim().is_empty() {
            labeled("reason", vec![Seg::new(exact(&preview.why), Role::Text)], &mut out);
        }
        let left = preview.expires_ms.map(|at| at - clock).filter(|left| *left > 0);
        if let Some(left) = left {
            labeled("expires", vec![Seg::new(format!("in {}", age(left)), Role::Warning)], &mut out);
        }
        if let Some(progress) = row.run.approval_progress() {
            labeled("approvals", vec![Seg::new(progress, Role::Text)], &mut out);
        }
        let inputs = if preview.inputs.is_null() {
            vec![RichLine::of(DecisionPreview::CHANGED, Role::Muted)]
        } else {
            json_lines::fields(&preview.inputs, width.saturating_sub(LABEL), &shows_all)
        };
        for (at, line) in inputs.into_iter().enumerate() {
            labeled(if at == 0 { "inputs" } else { "" }, line.segs, &mut out);
        }
        labeled("digest", vec![Seg::new(shown(&preview.inputs_digest), Role::Muted)], &mut out);
        if !row.fits {
            // The row ends before them.
            row.labels_line(&mut labeled, &mut out);
            let lines = json_lines::fields(&row.run.inputs, width.saturating_sub(LABEL), &shows_all);
            for (at, line) in lines.into_iter().enumerate() {
                labeled(if at == 0 { "run inputs" } else { "" }, line.segs, &mut out);
            }
        }
        out
    }

    /// Returns whether the same would be executed for all runs.
    fn previews_are_equal(&self) -> bool {
        let previews = || self.rows.iter().filter(|row| row.included).map(|row| row.preview.as_ref());
        let key = |preview: &'_ DecisionPreview| {
            (preview.headline.clone(), preview.target.clone(), preview.inputs_digest.clone())
        };
        let call_facts = self.rows.iter().filter(|row| row.included).map(|row| &row.call_facts);
        previews().count() > 1
            && previews().all(|preview| preview.is_some())
            && is_same(previews().flatten().map(key))
            && is_same(call_facts)
    }

    fn columns(&self, width: u16, clock: i64) -> Columns {
        let name = |row: &Row| shown(row.run.title_or_skill());
        // A name that is the same in all rows is stated above them.
        let names = if is_same(self.rows.iter().map(name)) {
            0
        } else {
            self.rows.iter().map(|row| cells(&name(row))).max().unwrap_or(0).min(width / 3)
        };
        let ages: Vec<String> = self.rows.iter().map(|row| age(clock - row.run.since_ms)).collect();
        let age = ages.iter().map(|age| cells(age)).max().unwrap_or(0);
        let id = self.rows.iter().map(|row| cells(&tail(&row.run.id.0))).max().unwrap_or(0);
        Columns { name: names, id, age, ages }
    }

    pub fn draw(&mut self, area: Rect, sending: Option<usize>, clock: i64, painter: &mut Painter<'_>) {
        let len = self.rows.len();
        let hides = len > usize::from(area.height);
        let height = area.height.saturating_sub(u16::from(hides));
        self.scroll.follow(len, usize::from(height));
        let columns = self.columns(area.width, clock);
        self.areas.clear();
        for place in 0..height {
            let at = self.scroll.offset + usize::from(place);
            if at >= len {
                break;
            }
            let row = Rect { y: area.y + place, height: 1, ..area };
            if at == self.scroll.cursor {
                painter.band(row, Role::Selection);
                painter.put(row.x.saturating_sub(1), row.y, painter.glyphs.gutter, Role::Gutter, 1);
            }
            self.rows[at].draw(row, (&columns, at), sending == Some(at), painter);
            self.areas.push((row, at));
        }
        if hides {
            let hidden = count(len - usize::from(height).min(len));
            let is_above = self.scroll.offset + usize::from(height) >= len;
            let arrow = if is_above { painter.glyphs.up } else { painter.glyphs.down };
            let more = format!("{} and {hidden} more {arrow}", painter.glyphs.ellipsis);
            painter.put(area.x + 4, area.bottom().saturating_sub(1), &more, Role::Waiting, area.width);
        }
    }
}

/// The columns before the text of a row.
struct Columns {
    name: u16,
    id: u16,
    age: u16,
    ages: Vec<String>,
}

impl Columns {
    /// Returns the width of the text.
    fn text(&self, width: u16) -> u16 {
        let columns = [self.name, self.id, self.age];
        let used: u16 = columns.into_iter().filter(|width| *width > 0).map(|width| width + 2).sum();
        width.saturating_sub(4 + used)
    }
}

impl Row {
    fn new(run: RunRecord, command: CommandName) -> Self {
        let blocked = blocked(&run, command);
        let decides = matches!(command, CommandName::Approve | CommandName::Deny);
        Self {
            text: String::new(),
            width: 0,
            essential: 0,
            fits: true,
            reviewed: false,
            deviations: Vec::new(),
            chosen: false,
            included: blocked.is_none() && !run.lacks_values() && !decides,
            blocked,
            decides,
            call: Value::Null,
            call_facts: Vec::new(),
            continues: command == CommandName::Resume,
            outcome: None,
            undone: "",
            unknown: false,
            undecided: None,
            preview: None,
            version: None,
            changed: false,
            despite: false,
            requested: false,
            run,
        }
    }

    /// Returns whether the command is not sent to it, unless the person includes it.
    pub fn is_excluded(&self) -> bool {
        self.stays_excluded() || self.awaits_review()
    }

    /// Returns whether it stays excluded when its details were shown.
    fn stays_excluded(&self) -> bool {
        self.blocked.is_some()
            || (self.changed && !self.despite)
            || self.not_loaded().is_some()
            || !self.deviations.is_empty()
    }

    /// Returns whether it is excluded until its details were shown.
    fn awaits_review(&self) -> bool {
        !self.fits && !self.reviewed && !self.chosen && !self.stays_excluded()
    }

    /// Returns what is not loaded, as the beginning of a sentence.
    fn missing(&self) -> &'static str {
        if self.run.lacks_inputs() {
            "Its inputs are"
        } else if self.run.lacks_target_content() {
            "Its target is"
        } else {
            "What it would execute is"
        }
    }

    /// Returns what excludes it until it is loaded: its inputs or target, or, for a decision, what would be executed.
    fn not_loaded(&self) -> Option<&'static str> {
        if self.run.lacks_inputs() {
            return Some(INPUTS_NOT_LOADED);
        }
        if self.run.lacks_target_content() {
            return Some(TARGET_NOT_LOADED);
        }
        (self.decides && self.preview.is_none()).then_some(CALL_NOT_LOADED)
    }

    /// Returns whether details that decide about the command are not loaded: what excludes it until then, or, if the
    /// dialog `checks` what would be executed, that.
    fn lacks_details(&self, checks: bool) -> bool {
        (checks || self.not_loaded().is_some()) && self.version.is_none() && self.outcome.is_none()
    }

    /// Returns whether its details contain all values completely.
    fn is_complete(&self, width: u16) -> bool {
        let width = width.saturating_sub(LABEL);
        let preview = self.preview.as_ref();
        let target = preview.and_then(|preview| preview.target.as_ref());
        let values = [Some(&self.run.inputs), self.run.target.as_ref().filter(|_| !self.decides)];
        let call = [preview.map(|preview| &preview.inputs), target.map(|target| &target.content)];
        let mut values = values.into_iter().chain(call).flatten();
        values.all(|value| json_lines::is_complete(value, width))
            && target.is_none_or(|target| !target.truncated)
    }

    /// Adds the labels of a run that does not fit into its row.
    fn labels_line(
        &self,
        labeled: &mut impl FnMut(&str, Vec<Seg>, &mut Vec<RichLine>),
        out: &mut Vec<RichLine>,
    ) {
        let labels = self.run.labels();
        if !self.fits && !labels.is_empty() {
            labeled("labels", vec![Seg::new(shown(&labels), Role::Text)], out);
        }
    }

    /// Returns the properties that are compared between runs: label and value.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let (step, signal) = match &self.run.gate {
            Some(Gate::Human { step, .. }) => (Some(step.as_str()), None),
            Some(Gate::Signal { step, name }) => (Some(step.as_str()), Some(name.as_str())),
            _ => (self.run.step.as_deref(), None),
        };
        let mut facts = vec![("skill", shown(&self.run.skill_id))];
        facts.extend(step.map(|step| ("step", shown(step_label(step)))));
        facts.extend(signal.map(|name| ("waiting for", shown(name))));
        if let Some(why) = self.run.failure() {
            let kind = failure_kind(&why);
            facts.push(("error", shown(kind)));
            let message = why.strip_prefix(kind).and_then(|rest| rest.strip_prefix(": "));
            facts.extend(message.map(|message| ("message", shown(message))));
        }
        if self.continues {
            facts.push(("continues", format!("from checkpoint {}", self.run.head)));
        }
        facts.extend(self.version.as_ref().map(|version| ("contract", shown(version))));
        facts.push(("started by", shown(&self.run.started_by)));
        facts
    }

    /// Returns the role of the outcome of an accepted command.
    fn accepted_role(&self) -> Role {
        if self.undecided == Some(Undecided::Waiting) { Role::Waiting } else { Role::Success }
    }

    fn draw(
        &self,
        area: Rect,
        (columns, at): (&Columns, usize),
        is_sending: bool,
        painter: &mut Painter<'_>,
    ) {
        let accepted = self.accepted_role();
        let (sign, role) = match (&self.outcome, self.included) {
            (Some(Ok(_)), _) if accepted == Role::Waiting => (painter.glyphs.waiting, accepted),
            (Some(Ok(_)), _) => (painter.glyphs.ok, accepted),
            (Some(Err(_)), _) if self.unknown => ("?", Role::Warning),
            (Some(Err(_)), _) => (painter.glyphs.bad, Role::Danger),
            (None, true) if is_sending => (painter.glyphs.running[0], Role::Info),
            (None, true) => ("x", Role::Strong),
            (None, false) => (" ", Role::Muted),
        };
        painter.put(area.x, area.y, "[", Role::Muted, 1);
        painter.put(area.x + 1, area.y, sign, role, 1);
        painter.put(area.x + 2, area.y, "]", Role::Muted, 1);
        let text_role = if self.included { Role::Text } else { Role::Muted };
        let name = shown(self.run.title_or_skill());
        let id = tail(&self.run.id.0).to_uppercase();
        let since = &columns.ages[at];
        let pad = usize::from(columns.age.saturating_sub(cells(since)));
        let since = format!("{}{since}", " ".repeat(pad));
        let mut x = area.x + 4;
        for (text, width, role) in [
            (&name, columns.name, text_role),
            (&id, columns.id, Role::Muted),
            (&since, columns.age, Role::Muted),
        ] {
            if width > 0 {
                painter.put(x, area.y, &cut_end(text, width, painter.glyphs.ellipsis), role, width);
                x += width + 2;
            }
        }
        let own = match (&self.outcome, self.included) {
            (None, false) if !self.chosen && !self.deviations.is_empty() => {
                format!("excluded: other {}", self.deviations.join(", "))
            }
            (None, false) if self.awaits_review() => format!("{UNTIL_REVIEWED}{}", self.text),
            (None, true) if !self.deviations.is_empty() => {
                format!("other {}  {}", self.deviations.join(", "), self.text)
            }
            (None, true) if self.changed && self.despite => format!("{DESPITE}{}", self.text),
            _ => self.text.clone(),
        };
        let (text, role) = match (&self.outcome, &self.blocked) {
            (Some(Ok(note)), _) => (note.as_str(), accepted),
            (Some(Err(why)), _) => (why.as_str(), Role::Danger),
            (None, Some(why)) => (why.as_str(), Role::Muted),
            (None, None) if self.changed && !self.despite => {
                ("excluded: skill changed since the launch", Role::Warning)
            }
            (None, None) => match self.not_loaded() {
                Some(why) => (why, Role::Warning),
                None => (own.as_str(), text_role),
            },
        };
        let available = area.right().saturating_sub(x);
        painter.put(x, area.y, &cut_end(text, available, painter.glyphs.ellipsis), role, available);
    }
}

/// Returns the inputs of a call that differ from those of its run, and what the run is attached to.
fn call_inputs(preview: &DecisionPreview, own: &Value) -> Value {
    let mut inputs = match passed(preview).into_owned() {
        Value::Object(inputs) => inputs,
        Value::Null => Map::new(),
        // Those of all calls of a `foreach`.
        calls => [("calls".to_owned(), calls)].into_iter().collect(),
    };
    inputs.retain(|name, value| own.get(name) != Some(&*value));
    Value::Object(inputs)
}

/// Returns what a call would execute apart from its inputs, and why a decision is required.
fn call_facts(preview: &DecisionPreview, run: &RunRecord) -> Vec<(&'static str, String)> {
    let files: Vec<String> = preview.files.iter().map(SuppliedFile::text).collect();
    vec![
        ("capability", format!("{} {}", preview.capability, preview.capability_note)),
        ("binding", preview.binding.clone()),
        ("fallbacks", preview.fallbacks.join("; ")),
        ("files", files.join("; ")),
        ("isolation", preview.isolation.clone()),
        ("reason", preview.why.clone()),
        ("warning", preview.irreversible.clone().unwrap_or_default()),
        ("pause", preview.pause.clone().unwrap_or_default()),
        ("contract", run.contract_digest.clone()),
    ]
}

/// Returns the names of the facts in which a call differs from another one.
fn deviations(own: &[(&'static str, String)], other: &[(&'static str, String)]) -> Vec<&'static str> {
    own.iter().zip(other).filter(|(own, other)| own.1 != other.1).map(|(own, _)| own.0).collect()
}

/// Returns the inputs of each call on one line, with a prefix; empty if the calls do not differ.
fn call_texts(rows: &[Vec<String>]) -> Vec<String> {
    let text = |line: String| {
        if line.is_empty() {
            line
        } else if line.trim().is_empty() {
            // What follows stays below that of the other rows.
            format!("{}{line}", " ".repeat(CALL_PREFIX.len()))
        } else {
            format!("{CALL_PREFIX}{line}")
        }
    };
    aligned(rows).into_iter().map(text).collect()
}

/// Returns each row on one line, with columns of short values below each other.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|field| cells(field)).max();
    let widths: Vec<u16> = (0..columns).map(|at| widest(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let fields =
            row.iter().zip(&widths).filter(|(field, width)| !field.is_empty() || **width <= MAX_ALIGNED);
        let parts = fields.map(|(field, width)| {
            let pad = if *width <= MAX_ALIGNED { width.saturating_sub(cells(field)) } else { 0 };
            format!("{field}{}", " ".repeat(usize::from(pad)))
        });
        parts.collect::<Vec<_>>().join("  ")
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if lines.iter().all(|line| line.trim().is_empty()) {
        lines.iter_mut().for_each(String::clear);
    }
    lines
}

/// Returns step and digest of what a run waits for.
fn gate_key(run: &RunRecord) -> Option<(&str, &str)> {
    match &run.gate {
        Some(Gate::Human { step, inputs_digest, .. }) => Some((step, inputs_digest)),
        Some(Gate::Signal { step, name }) => Some((step, name)),
        _ => None,
    }
}

/// Returns why a run does not accept the command.
fn blocked(run: &RunRecord, command: CommandName) -> Option<String> {
    if !run.allowed.contains(&command) {
        let state = match run.state {
            RunState::Pending if run.paused => "paused",
            state => state.label(),
        };
        return Some(format!("excluded: {state}"));
    }
    match (&run.gate, command) {
        (Some(Gate::Human { why: ApprovalReason::UnknownOutcome, .. }), CommandName::Approve) => {
            Some("excluded: unknown outcome, decide it individually".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use skills_store::RunOptions;

    /// Returns a run that has the first of two approvals.
    fn approved_in_part() -> RunRecord {
        let mut run: RunRecord = serde_json::from_value(json!({
            "id": "a", "skill_id": "demo", "state": "waiting_for_human", "held": false, "gate": null,
            "decided": null, "contract_digest": "c", "inputs": {}, "target": null,
            "options": RunOptions::default(), "outputs": null, "error": null, "trace_id": "t",
            "started_by": "ana", "source": null, "progress": [0, 1], "step": null, "head": 0, "fence": 1,
            "created_ms": 0, "since_ms": 0, "expires_ms": null, "allowed": ["approve"],
        }))
        .unwrap();
        let mut gate = Gate::human("book", "d", ApprovalReason::Confirmation);
        if let Gate::Human { approvals, .. } = &mut gate {
            (approvals.need, approvals.by) = (2, vec!["ana".to_owned()]);
        }
        run.gate = Some(gate);
        run
    }

    fn detail(run: &RunRecord) -> RunDetail {
        serde_json::from_value(json!({
            "run": run, "contract_version": "1", "contract_unchanged": true, "steps": [], "checkpoints": [],
            "events": [], "decisions": [], "sheet": null, "descendants": [], "isolation": "",
        }))
        .unwrap()
    }

    /// Returns the details of a run that waits for the approval of a call with these inputs.
    fn waiting(run: &RunRecord, inputs: &Value) -> RunDetail {
        let preview = json!({
            "run": run.id, "skill_id": "demo", "headline": "Books", "step": "book", "place": [1, 1],
            "outcome_unknown": false, "capability": "", "capability_note": "", "binding": "", "isolation": "",
            "why": "", "irreversible": null, "inputs": inputs, "inputs_digest": "d", "approver": null,
            "since_ms": 0, "expires_ms": null,
        });
        RunDetail { sheet: Some(serde_json::from_value(preview).unwrap()), ..detail(run) }
    }

    #[test]
    fn a_run_is_decided_once_what_it_would_execute_is_loaded() {
        for command in [CommandName::Approve, CommandName::Deny] {
            let run = |id: &str| RunRecord {
                id: RunId(id.to_owned()),
                allowed: vec![CommandName::Approve, CommandName::Deny],
                inputs: json!({ "ref": id }),
                ..approved_in_part()
            };
            let (first, second, third) = (run("a"), run("b"), run("c"));
            let mut rows = RunRows::new(command, vec![first.clone(), second.clone(), third.clone()]);
            assert_eq!((rows.included(), rows.unsent(), rows.next(0)), (0, 0, None), "{command}");
            assert!(rows.rows.iter().all(Row::is_excluded), "{command}");
            assert!(rows.toggle(0).unwrap().contains("not loaded"), "{command}");
            assert!(rows.build_command(0, &Texts::of(command, &[])).is_none(), "{command}");
            // The runs around the cursor are loaded, too.
            rows.scroll.height = 3;
            assert_eq!(rows.go(0).len(), 3, "{command}");
            let call = |amount: u32, to: &str| json!({ "amount": amount, "to": to, "memo": "rent" });
            rows.take_detail(&waiting(&first, &call(1, "alice")), true, true);
            rows.take_detail(&waiting(&second, &call(99_999, "mallory")), true, true);
            assert_eq!((rows.included(), rows.next(2)), (2, None), "{command}");
            let seen = |rows: &RunRows| rows.rows.iter().map(|row| row.text.clone()).collect::<Vec<_>>();
            assert!(
                seen(&rows)[1].contains("call: amount=99999  memo=rent  to=mallory"),
                "{:?}",
                seen(&rows)
            );
            rows.take_detail(&waiting(&third, &call(3, "alice")), true, true);
            assert_eq!(rows.included(), 3, "{command}");
            let texts = seen(&rows);
            assert!(texts[1].starts_with("call: amount=99999  to=mallory  inputs: ref=b"), "{texts:?}");
            assert!(texts[2].contains("call: amount=3 ") && texts[2].contains("to=alice"), "{texts:?}");
            assert!(rows.common.contains(&("call inputs", "memo=rent".to_owned())), "{:?}", rows.common);
        }
    }

    #[test]
    fn a_call_that_differs_from_the_first_is_excluded_until_it_is_chosen() {
        let runs = ["a", "b", "c", "d"].map(|id| RunRecord {
            id: RunId(id.to_owned()),
            allowed: vec![CommandName::Approve],
            ..approved_in_part()
        });
        let mut rows = RunRows::new(CommandName::Approve, runs.to_vec());
        for (run, (binding, why)) in runs.iter().zip([
            ("script scripts/send.py", "always requires approval"),
            ("script scripts/refund.py", "always requires approval"),
            ("script scripts/send.py", "scripts/send.py changed since the launch"),
            ("script scripts/send.py", "always requires approval"),
        ]) {
            let mut detail = waiting(run, &json!({}));
            let preview = detail.sheet.as_mut().unwrap();
            (preview.binding, preview.why) = (binding.to_owned(), why.to_owned());
            rows.take_detail(&detail, true, true);
        }
        let included = |rows: &RunRows| rows.rows.iter().map(|row| row.included).collect::<Vec<_>>();
        assert_eq!(included(&rows), [true, false, false, true]);
        assert_eq!(rows.rows[1].deviations, ["binding"]);
        assert_eq!(rows.rows[2].deviations, ["reason"]);
        assert_eq!((rows.toggle(2), included(&rows)), (None, vec![true, false, true, true]));
        // Without the first run, the others are not compared with another one.
        assert_eq!((rows.toggle(0), included(&rows)), (None, vec![false, false, true, true]));
        let canceled = RunRecord { allowed: Vec::new(), ..runs[0].clone() };
        rows.take_detail(&detail(&canceled), true, true);
        assert_eq!(included(&rows), [false, false, true, true]);
    }

    /// Returns a failed run.
    fn failed(id: &str, to: &str) -> RunRecord {
        RunRecord {
            id: RunId(id.to_owned()),
            state: RunState::Failed,
            gate: None,
            allowed: vec![CommandName::Resume],
            inputs: json!({ "to": to }),
            ..approved_in_part()
        }
    }

    #[test]
    fn a_changed_skill_does_not_include_a_run_that_has_to_be_reviewed_again() {
        let run = failed("a", "ana");
        let changed = |run: &RunRecord| RunDetail { contract_unchanged: Some(false), ..detail(run) };
        let mut rows = RunRows::new(CommandName::Resume, vec![run.clone()]);
        rows.take_detail(&changed(&run), true, true);
        let again = RunRecord { since_ms: 5, inputs: json!({ "to": "mallory" }), ..run };
        rows.take_detail(&changed(&again), true, true);
        rows.include_changed(true, false);
        rows.measure(80, 0, true);
        assert_eq!(rows.included(), 0);
        assert_eq!((rows.toggle(0), rows.included()), (None, 1));
    }

    #[test]
    fn runs_that_were_left_out_are_not_resumed_after_the_others() {
        let runs = [failed("a", "ana"), failed("b", &"x".repeat(90)), failed("c", "cy"), failed("d", "di")];
        let mut rows = RunRows::new(CommandName::Resume, runs.to_vec());
        for run in &runs {
            let changed = RunDetail { contract_unchanged: Some(false), ..detail(run) };
            rows.take_detail(&changed, true, true);
        }
        rows.include_changed(true, false);
        rows.measure(80, 0, true);
        rows.toggle(2);
        let included = |rows: &RunRows| rows.rows.iter().map(|row| row.included).collect::<Vec<_>>();
        assert_eq!(included(&rows), [true, false, false, true]);
        rows.rows[0].outcome = Some(Ok("resumed".to_owned()));
        rows.rows[3].outcome = Some(Err("skill changed".to_owned()));
        rows.include_changed(true, true);
        assert_eq!((included(&rows), rows.unsent()), (vec![true, false, false, true], 1));
    }

    #[test]
    fn a_run_that_its_row_does_not_show_completely_is_excluded_until_its_details_were_shown() {
        let long = format!("{} Mallory", "x".repeat(90));
        let mut rows = RunRows::new(CommandName::Resume, vec![failed("a", "ana"), failed("b", &long)]);
        rows.measure(80, 0, true);
        assert_eq!((rows.included(), rows.awaits_review()), (1, true));
        rows.go(1);
        rows.measure(80, 0, true);
        assert_eq!((rows.included(), rows.awaits_review()), (1, true));
        assert!(rows.review(80));
        assert_eq!((rows.included(), rows.awaits_review()), (2, false));
        rows.go(-1);
        rows.measure(80, 0, true);
        assert_eq!(rows.included(), 2, "it was reviewed");
        // The width of a very long text is limited to the largest number.
        let texts: Map<String, Value> =
            (0..40).map(|n| (format!("text{n}"), json!(format!("{n}{}", "x".repeat(2_500))))).collect();
        let longest = RunRecord { inputs: Value::Object(texts), ..failed("b", "bo") };
        let mut rows = RunRows::new(CommandName::Resume, vec![failed("a", "ana"), longest]);
        rows.measure(80, 0, true);
        assert_eq!((rows.rows[1].essential, rows.included()), (u16::MAX, 1));
        // The details are truncated, too.
        let mut rows = RunRows::new(
            CommandName::Resume,
            vec![failed("a", "ana"), failed("b", &"May rent\n".repeat(70))],
        );
        rows.go(1);
        rows.measure(80, 0, true);
        assert_eq!((rows.review(80), rows.included()), (false, 1));
        assert_eq!((rows.toggle(1), rows.included()), (None, 2));
    }

    #[test]
    fn a_call_that_cannot_be_read_excludes_its_run_and_inputs_of_the_run_are_not_repeated() {
        let run = RunRecord {
            allowed: vec![CommandName::Approve],
            inputs: json!({ "to": "ana" }),
            ..approved_in_part()
        };
        let other = RunRecord { id: RunId("b".to_owned()), inputs: json!({ "to": "bo" }), ..run.clone() };
        let mut rows = RunRows::new(CommandName::Approve, vec![run.clone(), other.clone()]);
        rows.take_detail(&waiting(&run, &json!({ "to": "ana" })), true, true);
        rows.take_detail(&detail(&other), true, true);
        let why = rows.rows[1].blocked.as_deref();
        assert_eq!(why, Some("excluded: what it would execute cannot be read"));
        assert!(!rows.rows[0].text.contains("call"), "{}", rows.rows[0].text);
    }

    #[test]
    fn choices_of_the_launcher_are_above_one_run_and_equal_ones() {
        let mut run = RunRecord {
            allowed: vec![CommandName::Resume],
            state: RunState::Failed,
            gate: None,
            inputs: json!({ "amount": 99_999, "to": "mallory" }),
            ..approved_in_part()
        };
        run.options.title = Some("Payment".to_owned());
        run.options.labels = [("env".to_owned(), "prod".to_owned())].into();
        let other = RunRecord { id: RunId("b".to_owned()), ..run.clone() };
        for runs in [vec![run.clone()], vec![run, other]] {
            let rows = RunRows::new(CommandName::Resume, runs);
            let first: Vec<(&str, &str)> =
                rows.common.iter().take(4).map(|(label, value)| (*label, value.as_str())).collect();
            let expected = [
                ("title", "Payment"),
                ("labels", "env=prod"),
                ("inputs", "amount=99999  to=mallory"),
                ("skill", "demo"),
            ];
            assert_eq!(first, expected);
            assert_eq!(rows.rows[0].text, "");
        }
    }

    #[test]
    fn a_run_is_included_once_its_inputs_are_loaded() {
        let all = [CommandName::Resume, CommandName::Signal, CommandName::Cancel];
        for command in all {
            let run = |id: &str| RunRecord {
                id: RunId(id.to_owned()),
                allowed: all.to_vec(),
                inputs: json!({ "to": "mallory" }),
                ..approved_in_part()
            };
            let (small, large, third) = (run("a"), run("b"), run("c"));
            let listed = |run: &RunRecord| RunRecord { inputs: json!(null), ..run.clone() };
            let mut rows = RunRows::new(command, vec![small, listed(&large), listed(&third)]);
            assert_eq!((rows.included(), rows.unsent(), rows.next(1)), (1, 1, None), "{command}");
            assert!(rows.rows[1].is_excluded() && !rows.rows[0].is_excluded(), "{command}");
            assert!(rows.toggle(1).unwrap().contains("not loaded"), "{command}");
            assert_eq!(rows.included(), 1, "{command}");
            // The runs around the cursor are loaded, too.
            rows.scroll.height = 2;
            let request = |run: &RunRecord| Effect::Run(RunRequest::Detail(run.id.clone()));
            let requested = rows.go(1);
            assert_eq!(requested, [request(&large), request(&third)], "{command}");
            assert_eq!(rows.go(0), [], "{command}");
            assert_eq!(rows.take_detail(&detail(&large), true, true), DetailChange::Nothing, "{command}");
            assert_eq!((rows.included(), rows.next(1)), (2, Some(1)), "{command}");
            // After the choice, a run that is loaded is not sent with the others.
            rows.take_detail(&detail(&third), true, false);
            assert_eq!((rows.included(), rows.toggle(2), rows.included()), (2, None, 3), "{command}");
        }
    }

    #[test]
    fn a_run_whose_inputs_cannot_be_loaded_stays_excluded() {
        let run = RunRecord { inputs: json!(null), allowed: vec![CommandName::Cancel], ..approved_in_part() };
        let mut rows = RunRows::new(CommandName::Cancel, vec![run.clone()]);
        assert_eq!(rows.go(0).len(), 1);
        rows.take_failure(&run.id, &Error::new(Code::RateLimited, "try again later"));
        assert_eq!(rows.rows[0].blocked.as_deref(), Some("excluded: try again later"));
        assert_eq!(rows.go(0).len(), 1, "it is requested again");
        rows.take_detail(&detail(&run), true, true);
        assert_eq!(rows.rows[0].blocked.as_deref(), Some("excluded: its inputs cannot be read"));
        assert_eq!(rows.included(), 0);
    }

    #[test]
    fn a_run_that_failed_again_is_excluded_until_it_is_reviewed() {
        let failed = RunRecord {
            state: RunState::Failed,
            gate: None,
            allowed: vec![CommandName::Resume],
            ..approved_in_part()
        };
        let mut rows = RunRows::new(CommandName::Resume, vec![failed.clone()]);
        assert_eq!(rows.take_detail(&detail(&failed), true, true), DetailChange::Nothing);
        let again =
            RunRecord { since_ms: failed.since_ms + 2, inputs: json!({"to": "EVIL"}), ..failed.clone() };
        // Between both states it takes no command.
        let running =
            RunRecord { state: RunState::Running, since_ms: 1, allowed: Vec::new(), ..failed.clone() };
        let mut others = RunRows::new(CommandName::Resume, vec![failed.clone()]);
        for state in [&failed, &running, &again] {
            others.take_detail(&detail(state), true, true);
            others.measure(120, 0, true);
        }
        assert_eq!(others.included(), 0);
        assert_eq!(rows.take_detail(&detail(&again), true, true), DetailChange::Moved);
        rows.measure(120, 0, true);
        assert_eq!(rows.included(), 0);
        rows.toggle(0);
        let Some(RunCommand::Resume { since_ms, .. }) =
            rows.build_command(0, &Texts::of(CommandName::Resume, &[]))
        else {
            panic!("no command")
        };
        assert_eq!(since_ms, Some(again.since_ms), "as it is shown now");
    }

    #[test]
    fn a_repeated_partial_approval_is_neither_done_nor_decided() {
        let run = approved_in_part();
        let mut rows = RunRows::new(CommandName::Approve, vec![run.clone()]);
        for (repeated, approved, waiting) in [(false, 1, 0), (true, 0, 1)] {
            let result = CommandResult {
                run: run.clone(),
                note: "approved".to_owned(),
                worker_alive: true,
                repeated,
                mode: None,
            };
            assert!(!rows.take_response(0, Ok(&result)));
            let tally = rows.tally();
            assert_eq!(
                (tally.done, tally.approved_in_part, tally.decided_before, tally.waiting),
                (0, approved, 0, waiting)
            );
        }
    }
}
