//! Decisions in flight to a remote core, and whether it is reachable.

use std::collections::BTreeMap;

use super::Runs;
use super::blocks::{Line, RowContext};
use crate::action::{Action, Command};
use crate::overlay::{name_of_decision, name_of_launch};
use crate::pane::Effect;
use crate::pending_decision::{describe, is_unsent};
use crate::run_requests::RunAsk;
use crate::theme::Role;
use crate::widgets::rich::Seg;
use crate::widgets::text_width::shown;
use crate::widgets::wrap::wrap_to;
use skills_api::{ConnectionState, Error, Sending, UnderWay};
use skills_model::{CommandName, Gate};
use skills_store::{RunId, RunRecord};

/// The state of communication with the core.
#[derive(Debug, Default)]
pub(super) struct OnTheWay {
    decisions: BTreeMap<RunId, UnderWay>,
    /// Whether the core is unreachable.
    lost: bool,
}

impl Runs {
    pub(super) fn connection_changed(&mut self, state: &ConnectionState) {
        self.way.lost = matches!(state, ConnectionState::Lost { .. });
    }

    pub(super) fn decision_on_its_way(&mut self, way: &UnderWay) {
        let run = RunId(way.run.clone());
        match way.sending {
            Sending::Over => drop(self.way.decisions.remove(&run)),
            _ => drop(self.way.decisions.insert(run, way.clone())),
        }
    }

    /// Returns the decision in flight for a run's current gate.
    pub(super) fn way_of(&self, run: &RunRecord) -> Option<&UnderWay> {
        let Some(Gate::Human { step, inputs_digest, .. }) = &run.gate else { return None };
        self.way.decisions.get(&run.id).filter(|way| way.is_for(&run.id.0, step, inputs_digest))
    }

    /// Returns why nothing can be launched, if the core is unreachable.
    pub(super) fn unreachable(&self) -> Option<String> {
        let why = "no connection: cannot launch";
        self.way.lost.then(|| why.to_owned())
    }

    /// Replaces the decision commands of a run whose decision is in flight.
    pub(super) fn on_its_way(&self, run: &RunRecord, name: CommandName, command: Command) -> Command {
        match (self.way_of(run), name) {
            (Some(_), CommandName::Approve) => Command { label: "your decision".to_owned(), ..command },
            (Some(way), CommandName::Deny) => {
                let back = if is_unsent(way) { ", B withdraws it" } else { "" };
                let blocked = Some(format!("decision pending: a shows it{back}"));
                Command { blocked, footer: false, ..command }
            }
            _ => command,
        }
    }

    /// Returns the command that withdraws a decision, disabled if there is none.
    pub(super) fn offered_back(&self, run: Option<&RunRecord>) -> Command {
        let unsent = run.and_then(|run| self.way_of(run)).is_some_and(is_unsent);
        let blocked = (!unsent).then(|| "no unsent decision".to_owned());
        Command { action: Action::TakeBack, label: "withdraw".to_owned(), blocked, footer: unsent }
    }

    pub(super) fn take_back(&self) -> Vec<Effect> {
        self.record().map(|run| Effect::Run(RunAsk::TakeBack(run.id.clone()))).into_iter().collect()
    }

    /// Inserts the decision and its progress on the band of the pending approval, after the row that names the step.
    pub(super) fn way_lines(&self, run: &RunRecord, at: usize, making: &RowContext<'_>, out: &mut Vec<Line>) {
        let Some(way) = self.way_of(run) else { return };
        let text = [Seg::new(describe(way, making.cx.now), Role::Waiting)];
        let lines = wrap_to(&text, making.width.saturating_sub(4), 4, making.cx.glyphs.ellipsis);
        let lines = lines.into_iter().map(|line| {
            let mut all = vec![Seg::new("   ", Role::Text)];
            all.extend(line.segs);
            Line::of(all).waiting()
        });
        if let Some(first) = out.get_mut(at).filter(|_| is_unsent(way)) {
            first.buttons.push((Action::TakeBack, "B".to_owned(), "withdraw".to_owned()));
        }
        let behind = (at + 1).min(out.len());
        out.splice(behind..behind, lines);
    }

    /// Discards the drafts of a completed decision or launch, because they were submitted with it.
    pub(super) fn said_all(&mut self, decided: Option<&RunId>, launched: Option<&str>) {
        let names = decided.map(name_of_decision).into_iter().chain(launched.map(name_of_launch));
        for name in names {
            self.typed.keep(&name, &serde_json::Map::new());
        }
    }

    /// Handles a command that was not executed.
    pub(super) fn refused(&self, run: &RunId, error: &Error) -> Vec<Effect> {
        if UnderWay::was_taken_back(error) {
            let name = self.known.get(run).map_or_else(|| shown(&run.0), |run| shown(&run.skill_id));
            return vec![Effect::Toast(format!("{name}: withdrawn before it was sent"))];
        }
        vec![Effect::ErrorNotice(format!("{}: failed", shown(&run.0)), shown(&error.message))]
    }

    /// Explains why the requested dialog does not open.
    pub(super) fn no_sheet(&self, run: &RunId) -> Vec<Effect> {
        let read = self.detail.other(run).is_some();
        let error = self.detail.error().filter(|_| self.detail.is_of(run));
        let text = match error {
            Some(error) => format!("cannot load the pending decision: {}", shown(&error.message)),
            None if read => "no pending decision".to_owned(),
            None => "loading the pending decision".to_owned(),
        };
        vec![Effect::Toast(text)]
    }
}
