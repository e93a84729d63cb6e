//! Keys, clicks and the wheel in Proposals.

use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::{Focus, LOOK_INTERVAL, Proposals};
use crate::action::{Action, Context, PaneCommand};
use crate::overlay::{DescriptionEdit, Passage, ProposalCommand, Reading};
use crate::pane::{Draw, Effect, Message, Pane, PaneId};
use crate::theme::Role;
use crate::widgets::{exact, shown};
use skills_api::{ProposalState, ProposalView};
use skills_config::operands;

impl Pane for Proposals {
    fn id(&self) -> PaneId {
        Self::ID
    }

    fn contexts(&self) -> Vec<Context> {
        match self.focus {
            Focus::List => vec![Context::Proposals, Context::List],
            Focus::Filter => vec![Context::Field],
            Focus::Detail => vec![Context::Proposals, Context::Text, Context::List],
        }
    }

    fn in_text(&self) -> bool {
        self.focus == Focus::Filter
    }

    fn commands(&self) -> Vec<PaneCommand> {
        let state = self.list.summary().map(|one| one.state);
        let is_read = self.view_of_selected().is_some();
        let needs = |allowed: &[ProposalState], why: &str| match state {
            None => Some("no proposal is selected".to_owned()),
            Some(state) if !allowed.contains(&state) => Some(why.to_owned()),
            Some(_) if !is_read => Some("the proposal is still being read".to_owned()),
            Some(_) => None,
        };
        let command = |action, label: &str, blocked, footer| PaneCommand {
            blocked,
            footer,
            ..PaneCommand::shown(action, label)
        };
        if self.focus == Focus::Filter {
            return vec![
                command(Action::Submit, "to the list", None, true),
                command(Action::LeaveField, "leave", None, true),
            ];
        }
        let waiting = needs(&[ProposalState::Waiting], "this proposal has already been decided");
        let any = [
            ProposalState::Waiting,
            ProposalState::Approved,
            ProposalState::Denied,
            ProposalState::RolledBack,
        ];
        let blocked = || {
            let failed = self.view_of_selected()?.blocking_check()?;
            Some(shown(&failed.evidence))
        };
        let approved = waiting.clone().or_else(blocked);
        let draft = needs(&any, "").or_else(|| self.view_of_selected().and_then(|view| no_draft(view)));
        let open = if self.focus == Focus::Detail { "complete diff" } else { "open" };
        let form = if self.text.unified { "split" } else { "unified" };
        let nothing = state.is_none().then(|| "no proposal is selected".to_owned());
        let narrow =
            (!self.text.fits_split()).then(|| "the window is too narrow for a split diff".to_owned());
        vec![
            command(Action::Approve, "approve", approved, true),
            command(Action::Deny, "deny", waiting, true),
            command(Action::TakeDraft, "edit as draft", draft, true),
            command(Action::Open, open, nothing.clone(), true),
            command(Action::ToggleDiff, form, nothing.clone().or(narrow), true),
            command(
                Action::RollBack,
                "roll back",
                needs(&[ProposalState::Approved], "only an applied proposal can be rolled back"),
                true,
            ),
            command(Action::Filter, "filter", None, true),
            command(Action::Copy, "copy id", nothing.clone(), false),
            command(Action::CopyAs, "copy as", nothing, false),
        ]
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        if self.focus == Focus::Filter {
            return match action {
                Action::Submit
                | Action::LeaveField
                | Action::Back
                | Action::NextPart
                | Action::PreviousPart => {
                    self.focus = Focus::List;
                    Some(Vec::new())
                }
                Action::Clear => {
                    self.list.filter.clear();
                    Some(self.filtered())
                }
                _ => None,
            };
        }
        let in_detail = self.focus == Focus::Detail;
        let scroll = if in_detail { &self.text.scroll } else { &self.list.scroll };
        if let Some(by) = action.rows(scroll.page()) {
            if in_detail {
                self.text.roll(by);
                return Some(Vec::new());
            }
            return Some(self.move_by(by));
        }
        Some(match action {
            Action::NextPart | Action::PreviousPart => {
                self.focus = if in_detail { Focus::List } else { Focus::Detail };
                Vec::new()
            }
            Action::Filter => {
                self.focus = Focus::Filter;
                Vec::new()
            }
            Action::Open if in_detail => {
                self.view_of_selected().map(|view| reading(view)).into_iter().collect()
            }
            Action::Open => {
                self.focus = Focus::Detail;
                Vec::new()
            }
            Action::Back if in_detail => {
                self.focus = Focus::List;
                Vec::new()
            }
            Action::Back if !self.list.filter.is_empty() => {
                self.list.filter.clear();
                self.filtered()
            }
            Action::ToggleDiff => {
                self.text.unified = !self.text.unified;
                Vec::new()
            }
            Action::Approve => self.open_dialog(ProposalCommand::Approve),
            Action::Deny => self.open_dialog(ProposalCommand::Deny),
            Action::RollBack => self.open_dialog(ProposalCommand::RollBack),
            Action::TakeDraft => self.draft().into_iter().collect(),
            Action::Copy => {
                let id = self.list.selected.clone();
                id.map(|id| Effect::copy_line(&id, "the id of the proposal")).into_iter().collect()
            }
            Action::CopyAs => {
                let line = self
                    .list
                    .selected
                    .as_ref()
                    .map(|id| format!("skills proposals show {}", operands([id.as_str()])));
                line.map(|line| Effect::CopyCommand(line, "the command".to_owned())).into_iter().collect()
            }
            _ => return None,
        })
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.list.filter.key(key) { self.filtered() } else { Vec::new() }
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.list.filter.paste(text) { self.filtered() } else { Vec::new() }
    }

    fn click(&mut self, at: Position) -> Vec<Effect> {
        if self.list.filter_area.contains(at) {
            self.focus = Focus::Filter;
            self.list.filter.click(at);
            return Vec::new();
        }
        let row = self.list.visible.iter().find(|(row, _)| row.contains(at)).map(|(_, row)| *row);
        if let Some(row) = row {
            self.focus = Focus::List;
            let is_other = self.list.select(row);
            self.text.reset_if(is_other);
            return self.request_selected();
        }
        if self.text.area.contains(at) {
            self.focus = Focus::Detail;
        }
        Vec::new()
    }

    fn wheel(&mut self, at: Position, rows: isize) -> Vec<Effect> {
        if self.text.area.contains(at) {
            self.text.roll(rows);
            return Vec::new();
        }
        self.move_by(rows.signum())
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        self.handle_message(message)
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.draw_pane(area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        Vec::new()
    }

    fn next_poll(&self, now: Instant) -> Option<Instant> {
        (!self.looking).then(|| self.looked.map_or(now, |looked| looked + LOOK_INTERVAL))
    }

    fn poll(&mut self, now: Instant) -> Vec<Effect> {
        self.looked = Some(now);
        self.request_list()
    }

    fn pending_decisions(&self) -> usize {
        self.list.list.as_ref().map_or(0, |list| list.waiting)
    }
}

impl Proposals {
    /// Moves the cursor by a number of proposals.
    fn move_by(&mut self, by: isize) -> Vec<Effect> {
        let Some(is_other) = self.list.move_by(by) else { return Vec::new() };
        self.text.reset_if(is_other);
        self.request_selected()
    }

    fn filtered(&mut self) -> Vec<Effect> {
        self.rebuild();
        self.request_selected()
    }

    /// Returns the effect that opens the draft editor with the proposed description.
    fn draft(&self) -> Option<Effect> {
        let view = self.view_of_selected()?;
        let skill = self.catalog.as_ref()?.by_id(view.summary.skill_id.as_str())?;
        let proposed = view.description.clone();
        Some(Effect::EditDescription(DescriptionEdit { proposed, ..DescriptionEdit::of(skill, None) }))
    }
}

/// Returns why the description of a proposal cannot be edited as a draft.
fn no_draft(view: &ProposalView) -> Option<String> {
    match &view.description {
        None => {
            let failed = view.blocking_check().map(|check| shown(&check.evidence));
            Some(failed.unwrap_or_else(|| "the file has changed since; propose the change again".to_owned()))
        }
        same if *same == view.current_description => {
            Some("this proposal does not change the description".to_owned())
        }
        Some(_) => None,
    }
}

/// Returns the effect that shows the complete proposal as text.
fn reading(view: &ProposalView) -> Effect {
    let mut passages = vec![Passage::Heading("Diff".to_owned())];
    for line in view.diff.lines() {
        let role = match line.chars().next() {
            Some('+') => Role::Success,
            Some('-') => Role::Danger,
            _ => Role::Text,
        };
        passages.push(Passage::Text { before: String::new(), text: exact(line), role });
    }
    let texts = [("Justification", Some(&view.justification)), ("Evidence", view.evidence.as_ref())];
    for (title, text) in texts.iter().filter_map(|(title, text)| Some((title, text.as_ref()?))) {
        passages.push(Passage::Heading((*title).to_owned()));
        passages.push(Passage::Text { before: String::new(), text: (*text).clone(), role: Role::Text });
    }
    let title = format!("Proposal for {}", shown(view.summary.skill_id.as_str()));
    Effect::Read(Box::new(Reading { title, what: "proposal".to_owned(), passages, ..Reading::default() }))
}
