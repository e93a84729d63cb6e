//! Keys of the Proposals pane.

use std::time::Instant;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{Focus, LOOK_INTERVAL, Proposals};
use crate::action::{Action, Command, Context};
use crate::overlay::{Drafting, Passage, ProposalCommand, Reading};
use crate::pane::{Draw, Effect, Message, Pane, PaneId};
use crate::theme::Role;
use crate::widgets::text_width::shown;
use skills_api::{ProposalState, ProposalView};

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

    fn commands(&self) -> Vec<Command> {
        let state = self.summary().map(|one| one.state);
        let known = self.view_of_selected().is_some();
        let needs = |allowed: &[ProposalState], why: &str| match state {
            None => Some("no proposal is selected".to_owned()),
            Some(state) if !allowed.contains(&state) => Some(why.to_owned()),
            Some(_) if !known => Some("the proposal is still being read".to_owned()),
            Some(_) => None,
        };
        let command = |action, label: &str, blocked, footer| Command {
            action,
            label: label.to_owned(),
            blocked,
            footer,
        };
        if self.focus == Focus::Filter {
            return vec![
                command(Action::Submit, "to the list", None, true),
                command(Action::LeaveField, "leave", None, true),
            ];
        }
        let waiting = needs(&[ProposalState::Waiting], "this proposal was decided already");
        let any = [
            ProposalState::Waiting,
            ProposalState::Approved,
            ProposalState::Denied,
            ProposalState::RolledBack,
        ];
        let draft = needs(&any, "").or_else(|| {
            let same = self.view_of_selected().is_some_and(|view| {
                view.description.is_none() || view.description == view.current_description
            });
            same.then(|| "this proposal does not change the description".to_owned())
        });
        let open = if self.focus == Focus::Detail { "complete diff" } else { "open" };
        let columns = if self.unified { "two columns" } else { "one column" };
        let nothing = state.is_none().then(|| "no proposal is selected".to_owned());
        vec![
            command(Action::Approve, "approve", waiting.clone(), true),
            command(Action::Deny, "deny", waiting, true),
            command(Action::TakeDraft, "edit as draft", draft, true),
            command(Action::Open, open, nothing.clone(), true),
            command(Action::ToggleDiff, columns, nothing.clone(), true),
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
                    self.filter.clear();
                    Some(self.filtered())
                }
                _ => None,
            };
        }
        let in_detail = self.focus == Focus::Detail;
        let page = if in_detail { self.detail.page() } else { self.scroll.page() };
        let rows = isize::try_from(self.detail_rows.max(self.rows.len())).unwrap_or(isize::MAX);
        let scrolled = match action {
            Action::Up => Some(-1),
            Action::Down => Some(1),
            Action::PageUp => Some(-page),
            Action::PageDown => Some(page),
            Action::Top => Some(-rows),
            Action::Bottom => Some(rows),
            _ => None,
        };
        if let Some(by) = scrolled {
            if in_detail {
                self.detail.roll(by, self.detail_rows);
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
            Action::Back if !self.filter.is_empty() => {
                self.filter.clear();
                self.filtered()
            }
            Action::ToggleDiff => {
                self.unified = !self.unified;
                Vec::new()
            }
            Action::Approve => self.open_dialog(ProposalCommand::Approve),
            Action::Deny => self.open_dialog(ProposalCommand::Deny),
            Action::RollBack => self.open_dialog(ProposalCommand::RollBack),
            Action::TakeDraft => self.draft().into_iter().collect(),
            Action::Copy => {
                let id = self.selected.clone();
                id.map(|id| Effect::Copy(id, "the id of the proposal".to_owned())).into_iter().collect()
            }
            Action::CopyAs => {
                let line = self.selected.as_ref().map(|id| format!("skills proposals show {id}"));
                line.map(|line| Effect::CopyCommand(line, "the command".to_owned())).into_iter().collect()
            }
            _ => return None,
        })
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.filter.key(key) { self.filtered() } else { Vec::new() }
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.filter.paste(text) { self.filtered() } else { Vec::new() }
    }

    fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        self.click(event)
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        self.news(message)
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.draw_pane(area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        Vec::new()
    }

    fn animated(&self) -> bool {
        false
    }

    fn next_poll(&self, now: Instant) -> Option<Instant> {
        (!self.looking).then(|| self.looked.map_or(now, |looked| looked + LOOK_INTERVAL))
    }

    fn poll(&mut self, now: Instant) -> Vec<Effect> {
        self.looked = Some(now);
        self.request_list()
    }

    fn pending_decisions(&self) -> usize {
        self.list.as_ref().map_or(0, |list| list.waiting)
    }
}

impl Proposals {
    fn filtered(&mut self) -> Vec<Effect> {
        self.rebuild();
        self.request_selected()
    }

    /// Returns the effect that opens the draft editor with the proposed description.
    fn draft(&self) -> Option<Effect> {
        let view = self.view_of_selected()?;
        let skill = self.catalogue.as_ref()?.by_id(view.summary.skill_id.as_str())?;
        let proposed = view.description.clone();
        Some(Effect::EditDescription(Drafting { proposed, ..Drafting::of(skill, None) }))
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
        passages.push(Passage::Text { before: String::new(), text: line.to_owned(), role });
    }
    let texts = [("Justification", Some(&view.justification)), ("Evidence", view.evidence.as_ref())];
    for (title, text) in texts.iter().filter_map(|(title, text)| Some((title, text.as_ref()?))) {
        passages.push(Passage::Heading((*title).to_owned()));
        passages.push(Passage::Text { before: String::new(), text: (*text).clone(), role: Role::Text });
    }
    let title = format!("Proposal for {}", shown(view.summary.skill_id.as_str()));
    Effect::Read(Box::new(Reading { title, what: "proposal".to_owned(), passages, ..Reading::default() }))
}
