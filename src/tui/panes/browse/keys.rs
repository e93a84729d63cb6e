//! Keys of the Browse pane.

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::detail::{TABS, Tab};
use super::{Browse, Focus, commands, copy};
use crate::action::{Action, Context, PaneCommand};
use crate::golden_requests::GoldenForm;
use crate::overlay::DescriptionEdit;
use crate::pane::{Draw, Effect, Message, Pane, PaneId, Target, skills_to_open};
use skills_api::WhyRequest;
use skills_base::text::collapse_whitespace;

impl Pane for Browse {
    fn id(&self) -> PaneId {
        PaneId::Browse
    }

    fn contexts(&self) -> Vec<Context> {
        match (self.focus, self.detail.tab) {
            _ if self.map.is_open => vec![Context::BrowseMap, Context::List],
            (Focus::List, _) => vec![Context::Browse, Context::List],
            (Focus::Filter, _) => vec![Context::Field],
            (Focus::Detail, Tab::Files | Tab::Findings | Tab::Rivals) => {
                vec![Context::BrowseDetail, Context::List]
            }
            (Focus::Detail, _) => vec![Context::BrowseDetail, Context::Text],
        }
    }

    fn in_text(&self) -> bool {
        self.focus == Focus::Filter && !self.map.is_open
    }

    fn commands(&self) -> Vec<PaneCommand> {
        match self.focus {
            _ if self.map.is_open => self.map.commands(),
            Focus::Filter => PaneCommand::in_filter("apply"),
            Focus::List => commands::in_list(&self.list, &self.detail),
            Focus::Detail => commands::in_detail(&self.list, &self.detail),
        }
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        if self.map.is_open && !matches!(action, Action::OpenByName) {
            return self.map.act(action, &self.list.catalog);
        }
        let effects = match action {
            Action::ShowCollisions => self.map.open(),
            Action::NextTab => self.turn_tab(1),
            Action::PreviousTab => self.turn_tab(TABS.len() - 1),
            Action::PickClient => {
                vec![Effect::PickClient(self.list.client.view.as_ref().map(|c| c.client.clone()))]
            }
            Action::NextPart | Action::PreviousPart => {
                self.focus = if self.focus == Focus::Detail { Focus::List } else { Focus::Detail };
                Vec::new()
            }
            Action::Filter => {
                self.focus = Focus::Filter;
                Vec::new()
            }
            Action::OpenByName => {
                let current = self.list.shown().map(|shown| &shown.entry.id);
                vec![Effect::Pick(skills_to_open(&self.list.catalog, current)?)]
            }
            other => match self.act_on_skill(other) {
                Ok(effect) => vec![effect?],
                Err(other) => return self.act_in_part(other),
            },
        };
        // The action referred to the skill under the cursor, so the selection is the user's from now on.
        self.list.moved |= !matches!(action, Action::PickClient | Action::Filter | Action::OpenByName);
        Some(effects)
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.list.filter.key(key) { self.filtered() } else { Vec::new() }
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.list.filter.paste(text) { self.filtered() } else { Vec::new() }
    }

    fn click(&mut self, at: Position) -> Vec<Effect> {
        if self.map.is_open {
            return self.map.click(at);
        }
        if self.list.filter_area.contains(at) {
            self.focus = Focus::Filter;
            self.list.filter.click(at);
        } else if self.list.area.contains(at) {
            self.focus = Focus::List;
            if self.list.click(at) {
                if self.list.is_on_group() == Some(false) {
                    return self.selection_changed();
                }
                self.list.fold();
            }
        } else if self.detail.drawn.area.contains(at) {
            (self.focus, self.list.moved) = (Focus::Detail, true);
            return self.detail.click(at, self.list.selected.as_ref());
        }
        Vec::new()
    }

    fn wheel(&mut self, at: Position, rows: isize) -> Vec<Effect> {
        if self.map.is_open {
            self.map.wheel(at, rows);
        } else if self.list.area.contains(at) {
            self.list.roll(rows);
        } else if self.detail.drawn.area.contains(at) {
            self.detail.wheel(at, rows);
        }
        Vec::new()
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        self.handle_message(message)
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.view(area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        let mut effects = std::mem::take(&mut self.list.wanted);
        effects.append(&mut self.detail.wanted);
        effects.append(&mut self.map.wanted);
        effects
    }
}

impl Browse {
    /// Executes an action on the skill that is shown, if it is possible; returns every other action.
    fn act_on_skill(&self, action: Action) -> Result<Option<Effect>, Action> {
        let shown = self.list.shown();
        let on_id = |effect: fn(String) -> Effect| shown.map(|shown| effect(shown.entry.id.to_string()));
        let skill = shown.and_then(|shown| shown.skill);
        Ok(match action {
            Action::Copy => on_id(|id| Effect::copy_line(&id, "id")),
            Action::CopyAs => shown.map(|shown| Effect::Pick(copy::choices(shown))),
            Action::Edit => self.edit(),
            Action::DiscoverThis => skill.map(|skill| {
                let intent = collapse_whitespace(&skill.description);
                Effect::Go(PaneId::Discover, Some(Target::Intent(intent)))
            }),
            Action::Draft => skill.map(|skill| Effect::EditDescription(DescriptionEdit::of(skill, None))),
            Action::AddGolden => {
                on_id(|skills| Effect::AddGolden(GoldenForm { skills, ..GoldenForm::default() }))
            }
            Action::Why => on_id(|skill_id| Effect::Why(WhyRequest { skill_id, ..WhyRequest::default() })),
            Action::AttachThis => shown.map(|shown| {
                let skill = Some(shown.entry.id.clone());
                Effect::Go(PaneId::Attach, Some(Target::Attach { skill, target: None }))
            }),
            Action::Launch => {
                shown.map(|shown| Effect::Go(PaneId::Runs, Some(Target::Launch(shown.entry.id.clone()))))
            }
            Action::LoadSkill => {
                shown.map(|shown| Effect::Go(PaneId::Session, Some(Target::Skill(shown.entry.id.clone()))))
            }
            other => return Err(other),
        })
    }

    fn act_in_part(&mut self, action: Action) -> Option<Vec<Effect>> {
        match self.focus {
            Focus::List => self.act_in_list(action),
            Focus::Filter => self.act_in_filter(action),
            Focus::Detail => self.act_in_detail(action),
        }
    }

    fn act_in_list(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Sort => return Some(self.list.sort_by_next()),
            Action::GroupBy => {
                self.list.group_by_next();
                return Some(self.selection_changed());
            }
            Action::Open => match self.list.is_on_group() {
                Some(true) => self.list.fold(),
                Some(false) => (self.focus, self.list.moved) = (Focus::Detail, true),
                None => {}
            },
            Action::Fold => self.list.fold(),
            Action::Back if !self.list.filter.is_empty() => {
                self.list.filter.clear();
                return Some(self.filtered());
            }
            other => return self.move_cursor(other),
        }
        Some(Vec::new())
    }

    fn act_in_filter(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Submit | Action::LeaveField | Action::Back => {
                self.focus = Focus::List;
                Some(Vec::new())
            }
            Action::Clear => {
                Some(if self.list.filter.kill_to_start() { self.filtered() } else { Vec::new() })
            }
            other => self.move_cursor(other),
        }
    }

    fn move_cursor(&mut self, action: Action) -> Option<Vec<Effect>> {
        self.list.move_cursor(action)?;
        Some(self.selection_changed())
    }

    fn act_in_detail(&mut self, action: Action) -> Option<Vec<Effect>> {
        match (action, self.detail.tab) {
            (Action::Back, _) => {
                self.focus = Focus::List;
                Some(Vec::new())
            }
            (Action::Open, Tab::Findings) => self.edit().map(|effect| vec![effect]),
            (Action::Open, Tab::Contract) => self.act(Action::Launch),
            // Enter compares the skill with a rival.
            (Action::Open, Tab::Rivals) => {
                let own = &self.list.shown()?.entry.id;
                let rival = self.detail.chosen_rival(own)?;
                let mut effects = self.map.open();
                effects.extend(self.map.go_to(own, rival));
                Some(effects)
            }
            (Action::Open | Action::Fold, Tab::Files) => match self.detail.fold()? {
                true => Some(Vec::new()),
                false if action == Action::Open => self.edit().map(|effect| vec![effect]),
                false => None,
            },
            _ => self.detail.move_by(action, self.list.shown(), self.list.selected.as_ref()),
        }
    }

    fn turn_tab(&mut self, steps: usize) -> Vec<Effect> {
        self.detail.turn(steps);
        self.detail.preview(self.list.selected.as_ref())
    }

    fn filtered(&mut self) -> Vec<Effect> {
        self.list.apply_filter();
        self.selection_changed()
    }

    fn edit(&self) -> Option<Effect> {
        let shown = self.list.shown()?;
        if let Some(refusal) = shown.refusal {
            let line = refusal.findings.iter().rev().find_map(|f| f.span).map_or(1, |s| s.line);
            return Some(Effect::Edit(refusal.location.clone(), line));
        }
        let skill = shown.skill?;
        let (path, line) = match self.focus {
            Focus::Detail => self.detail.place_to_edit(shown, skill)?,
            Focus::List | Focus::Filter => (skill.location.clone(), 1),
        };
        Some(Effect::Edit(path, line))
    }
}
