//! Keys, clicks and the wheel in the pane of the golden set.

use std::path::PathBuf;
use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::rows::EXPECTS;
use super::{Focus, Golden, TABS, Tab};
use crate::action::{Action, Context, PaneCommand};
use crate::golden_requests::{GoldenForm, GoldenPaneRequest, NO_GOLDEN_FILE};
use crate::keymap::mention;
use crate::overlay::{DescriptionEdit, DialogSpec, PromptKind};
use crate::pane::{Draw, Effect, Message, Pane, PaneId, Target};
use skills_api::{WhyRequest, rejection_of};
use skills_authoring::golden_file::GoldenEdit;
use skills_skill::SkillId;

impl Pane for Golden {
    fn id(&self) -> PaneId {
        PaneId::Golden
    }

    fn contexts(&self) -> Vec<Context> {
        match self.focus {
            Focus::Filter => vec![Context::Field],
            Focus::List | Focus::Detail => vec![Context::Golden, Context::List],
        }
    }

    fn in_text(&self) -> bool {
        self.focus == Focus::Filter
    }

    fn commands(&self) -> Vec<PaneCommand> {
        if self.focus == Focus::Filter {
            return vec![
                PaneCommand::shown(Action::Submit, "queries"),
                PaneCommand::shown(Action::Clear, "clear"),
                PaneCommand::shown(Action::LeaveField, "leave"),
                PaneCommand::hidden(Action::Up, "move"),
                PaneCommand::hidden(Action::Down, "move"),
                PaneCommand::hidden(Action::PageUp, "page up"),
                PaneCommand::hidden(Action::PageDown, "page down"),
            ];
        }
        let none = || self.list.result().is_none().then(|| "no query selected".to_owned());
        let on_query = |command: PaneCommand| PaneCommand { blocked: none(), ..command };
        let of_skill = |command: PaneCommand| PaneCommand { blocked: without_skill(self), ..command };
        let why = PaneCommand::shown(Action::Why, "why");
        let in_file = |command: PaneCommand| {
            let blocked = none().or_else(|| self.list.file_of_query().err());
            PaneCommand { blocked, ..command }
        };
        let no_file = || {
            let file = self.list.measured.as_ref().and_then(|measured| measured.file.as_ref());
            file.is_none().then(|| NO_GOLDEN_FILE.to_owned())
        };
        let moves =
            if self.focus == Focus::Detail && self.detail.tab != Tab::Skills { "scroll" } else { "move" };
        let mut all = vec![PaneCommand::shown(Action::Down, moves)];
        if self.is_folded {
            let (action, label) = match self.focus {
                Focus::Detail => (Action::Back, "queries"),
                _ => (Action::NextPart, "details"),
            };
            all.push(PaneCommand::shown(action, label));
        }
        let unmeasured = self.list.measured.is_none().then(|| "nothing is measured yet".to_owned());
        let open = if self.is_in_skills() {
            PaneCommand::shown(Action::Open, "its queries")
        } else {
            on_query(PaneCommand::shown(Action::Open, "show in Discover"))
        };
        all.extend([
            open,
            of_skill(PaneCommand::shown(Action::Draft, "draft")),
            if rejected(self).is_some() { why } else { of_skill(why) },
            PaneCommand::shown(Action::Filter, "filter"),
            PaneCommand { blocked: no_file(), ..PaneCommand::shown(Action::AddQuery, "new") },
            in_file(PaneCommand::shown(Action::EditQuery, "change")),
            in_file(PaneCommand::shown(Action::RemoveQuery, "remove")),
            PaneCommand { blocked: unmeasured, ..PaneCommand::shown(Action::SetBaseline, "set baseline") },
            PaneCommand { blocked: no_file(), ..PaneCommand::shown(Action::ImportGolden, "import") },
            PaneCommand::shown(Action::Measure, "measure"),
            PaneCommand::shown(Action::NextTab, "next tab"),
            on_query(PaneCommand::hidden(Action::Copy, "copy")),
            in_file(PaneCommand::hidden(Action::Edit, "edit the file")),
            PaneCommand::hidden(Action::PreviousTab, "previous tab"),
            PaneCommand::hidden(Action::NextPart, "next panel"),
            PaneCommand::hidden(Action::PreviousPart, "previous panel"),
        ]);
        all.extend(PaneCommand::moves());
        all
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        let was_removing = std::mem::take(&mut self.is_removing);
        if self.focus == Focus::Filter {
            return self.act_in_filter(action);
        }
        let effects = match action {
            Action::NextPart | Action::PreviousPart => {
                self.focus = if self.focus == Focus::Detail { Focus::List } else { Focus::Detail };
                Vec::new()
            }
            Action::Back if self.focus == Focus::Detail => {
                self.focus = Focus::List;
                Vec::new()
            }
            Action::Back if !self.list.filter.is_empty() => {
                self.list.filter.clear();
                self.list.set_rows();
                Vec::new()
            }
            Action::NextTab => self.set_tab(self.detail.tab_after(1)),
            Action::PreviousTab => self.set_tab(self.detail.tab_after(TABS.len() - 1)),
            Action::Filter => {
                self.list.measured.as_ref()?;
                self.focus = Focus::Filter;
                Vec::new()
            }
            Action::Open if self.is_in_skills() => {
                let filter = format!("{EXPECTS}{}", self.skill_in_tab()?);
                self.list.filter.set(&filter);
                (self.focus, self.list.scroll.cursor) = (Focus::List, 0);
                self.set_tab(Tab::Query);
                self.list.set_rows();
                if self.is_folded {
                    self.focus = Focus::List;
                }
                Vec::new()
            }
            Action::Open => {
                let intent = self.list.result()?.query.query.clone();
                vec![Effect::Go(PaneId::Discover, Some(Target::Intent(intent)))]
            }
            Action::Measure => {
                self.freshness.is_stale = true;
                self.detail.forget();
                Vec::new()
            }
            Action::SetBaseline => {
                vec![Effect::Golden(GoldenPaneRequest::SetBaseline(self.list.measured.clone()?))]
            }
            Action::AddQuery => {
                vec![ask(PromptKind::Golden(GoldenForm {
                    query: Some(String::new()),
                    ..GoldenForm::default()
                }))]
            }
            Action::EditQuery => {
                let file = self.list.file_of_query().ok()?.file.clone();
                let result = self.list.result()?;
                vec![ask(PromptKind::Golden(GoldenForm {
                    query: Some(result.query.query.clone()),
                    skills: result.query.expectation().replace(',', ""),
                    replaces: Some((file, result.place, result.query.clone().into())),
                }))]
            }
            Action::RemoveQuery => return self.remove(was_removing),
            Action::ImportGolden => vec![ask(PromptKind::Import)],
            Action::Copy => vec![Effect::copy_line(&self.list.result()?.query.query, "query")],
            Action::Edit => {
                let file = self.list.file_of_query().ok()?.file.clone();
                vec![Effect::Edit(file, 1)]
            }
            Action::Draft => {
                let skill = self.catalog.by_id(self.skill()?.as_str())?;
                vec![Effect::EditDescription(DescriptionEdit::of(skill, self.query_text()))]
            }
            Action::Why => vec![Effect::Why(WhyRequest {
                skill_id: self.skill().or_else(|| rejected(self))?.to_string(),
                intent: self.query_text(),
                ..WhyRequest::default()
            })],
            other => return self.move_cursor(other).then(Vec::new),
        };
        Some(effects)
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.list.filter.key(key) {
            self.list.set_rows();
        }
        Vec::new()
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.list.filter.paste(text) {
            self.list.set_rows();
        }
        Vec::new()
    }

    fn leave(&mut self) {
        self.is_removing = false;
    }

    fn click(&mut self, at: Position) -> Vec<Effect> {
        self.is_removing = false;
        let tab = self.detail.tabs.iter().find(|(area, _)| area.contains(at)).map(|(_, tab)| *tab);
        if self.list.filter_area.contains(at) {
            self.focus = Focus::Filter;
            self.list.filter.click(at);
        } else if let Some(tab) = tab {
            self.set_tab(tab);
        } else if self.list.area.contains(at) {
            self.focus = Focus::List;
            if self.list.row_at(at).is_some_and(|row| self.list.select(row)) {
                self.detail.scroll.offset = 0;
            }
        } else if self.detail.area.contains(at) {
            self.focus = Focus::Detail;
            if let Some((_, skill)) = self.detail.skills.iter().find(|(area, _)| area.contains(at)) {
                self.detail.scroll.cursor = *skill;
            }
        }
        Vec::new()
    }

    fn wheel(&mut self, at: Position, rows: isize) -> Vec<Effect> {
        if self.list.area.contains(at) {
            self.list.roll(rows);
        } else if self.detail.area.contains(at) {
            self.detail.move_by(rows, self.skill_count());
        }
        Vec::new()
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        self.on_message(message)
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.refresh();
        self.view(area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.detail.wanted)
    }

    fn animated(&self) -> bool {
        self.freshness.is_measuring
    }

    fn next_poll(&self, now: Instant) -> Option<Instant> {
        // The first measurement says which files there are.
        self.list.measured.as_ref().and_then(|_| self.freshness.next_check(now))
    }

    fn poll(&mut self, now: Instant) -> Vec<Effect> {
        let Some(measured) = &self.list.measured else { return Vec::new() };
        let sources = measured.report.sources.iter().filter(|_| !measured.is_remote);
        let mut files: Vec<PathBuf> = sources.map(|source| source.file.clone()).collect();
        if let Some(own) = measured.file.as_ref().filter(|own| !files.contains(own)) {
            files.push(own.clone());
        }
        vec![Effect::Golden(self.freshness.begin_checking(now, files))]
    }
}

/// Opens a dialog.
fn ask(asking: PromptKind) -> Effect {
    Effect::OpenDialog(Box::new(DialogSpec::Prompt { asking, typed: serde_json::Map::new() }))
}

/// Returns the selected skill if its file is rejected.
fn rejected(pane: &Golden) -> Option<&SkillId> {
    let is_rejected = |id: &&SkillId| rejection_of(&pane.catalog, id).is_some();
    if pane.is_in_skills() {
        return pane.skill_in_tab().filter(is_rejected);
    }
    let query = &pane.list.result()?.query;
    query.expect.iter().chain(&query.not).find(is_rejected)
}

/// Returns why commands on a skill are unavailable; `None` if one is selected.
fn without_skill(pane: &Golden) -> Option<String> {
    let rejection = || rejected(pane).and_then(|id| rejection_of(&pane.catalog, id));
    let why = || rejection().unwrap_or_else(|| "the expected skill is not in the catalog".to_owned());
    pane.skill().is_none().then(why)
}

impl Golden {
    /// Returns whether keys concern the skill under the cursor of the tab of skills.
    fn is_in_skills(&self) -> bool {
        self.focus == Focus::Detail && self.detail.tab == Tab::Skills
    }

    /// Returns the skill under the cursor of the tab of skills.
    fn skill_in_tab(&self) -> Option<&SkillId> {
        let skills = &self.list.measured.as_ref()?.report.by_skill;
        skills.get(self.detail.scroll.cursor).map(|skill| &skill.skill_id)
    }

    /// Returns the text of the query that keys concern; none in the tab of skills.
    fn query_text(&self) -> Option<String> {
        self.list.result().filter(|_| !self.is_in_skills()).map(|result| result.query.query.clone())
    }

    /// Returns the skill that keys concern: that of the tab of skills, or the expected one of the query under the
    /// cursor, if it is in the catalog.
    fn skill(&self) -> Option<&SkillId> {
        if self.is_in_skills() {
            return self.skill_in_tab().filter(|id| self.catalog.by_id(id.as_str()).is_some());
        }
        let query = &self.list.result()?.query;
        query.expect.iter().chain(&query.not).find(|id| self.catalog.by_id(id.as_str()).is_some())
    }

    fn remove(&mut self, is_confirmed: bool) -> Option<Vec<Effect>> {
        let file = self.list.file_of_query().ok()?.file.clone();
        let result = self.list.result()?;
        if !is_confirmed {
            let (key, query) = (mention(Action::RemoveQuery), &result.query.query);
            let note = format!("press {key} again to remove “{query}” from {}", file.display());
            self.is_removing = true;
            return Some(vec![Effect::Toast(note)]);
        }
        let edit = GoldenEdit::Remove(result.place);
        let expected = result.query.clone().into();
        Some(vec![Effect::Golden(GoldenPaneRequest::Edit { file, edit, expected })])
    }

    fn set_tab(&mut self, tab: Tab) -> Vec<Effect> {
        self.detail.set_tab(tab);
        // With one column the tabs are in the other part.
        if self.is_folded {
            self.focus = Focus::Detail;
        }
        Vec::new()
    }

    fn act_in_filter(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Submit | Action::LeaveField | Action::Back | Action::NextPart | Action::PreviousPart => {
                self.focus = Focus::List;
            }
            Action::Clear => {
                if self.list.filter.kill_to_start() {
                    self.list.set_rows();
                }
            }
            other => return self.move_cursor(other).then(Vec::new),
        }
        Some(Vec::new())
    }

    /// Moves the cursor, or scrolls the details; returns `false` for every other action.
    fn move_cursor(&mut self, action: Action) -> bool {
        let scroll = if self.focus == Focus::Detail { self.detail.scroll } else { self.list.scroll };
        let Some(by) = action.rows(scroll.page()) else { return false };
        if self.focus == Focus::Detail {
            self.detail.move_by(by, self.skill_count());
        } else if self.list.move_by(by) {
            self.detail.scroll.offset = 0;
        }
        true
    }

    fn skill_count(&self) -> usize {
        self.list.measured.as_ref().map_or(0, |measured| measured.report.by_skill.len())
    }
}
