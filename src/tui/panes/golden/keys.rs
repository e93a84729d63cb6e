//! Keys, clicks and the wheel in the pane of the golden set.

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::{Focus, Golden, TABS, Tab, rows};
use crate::action::{Action, Command, Context};
use crate::golden_requests::{GoldenForm, GoldenPaneRequest};
use crate::overlay::{DialogSpec, Drafting, PromptKind};
use crate::pane::{Draw, Effect, Message, Pane, PaneId, Target};
use skills_api::{GoldenSource, WhyRequest};
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

    fn commands(&self) -> Vec<Command> {
        if self.focus == Focus::Filter {
            return vec![
                shown(Action::Submit, "queries"),
                shown(Action::Clear, "clear"),
                shown(Action::LeaveField, "leave"),
                hidden(Action::Up, "move"),
                hidden(Action::Down, "move"),
                hidden(Action::PageUp, "page up"),
                hidden(Action::PageDown, "page down"),
            ];
        }
        let none = || self.result().is_none().then(|| "no query selected".to_owned());
        let on_query = |command: Command| Command { blocked: none(), ..command };
        let of_skill = |command: Command| {
            let blocked =
                self.skill().is_none().then(|| "the expected skill is not in the catalog".to_owned());
            Command { blocked, ..command }
        };
        let in_file = |command: Command| {
            let blocked = none().or_else(|| self.file_of_query().err());
            Command { blocked, ..command }
        };
        let no_file = || {
            let file = self.measured.as_ref().and_then(|measured| measured.file.as_ref());
            file.is_none().then(|| "the demonstration has no golden set of its own".to_owned())
        };
        let moves = if self.focus == Focus::Detail && self.tab != Tab::Skills { "scroll" } else { "move" };
        let mut all = vec![shown(Action::Down, moves)];
        if self.drawn.is_folded {
            let (action, label) = match self.focus {
                Focus::Detail => (Action::Back, "queries"),
                _ => (Action::NextPart, "details"),
            };
            all.push(shown(action, label));
        }
        let unmeasured = self.measured.is_none().then(|| "nothing is measured yet".to_owned());
        let open = if self.is_in_skills() {
            shown(Action::Open, "its queries")
        } else {
            on_query(shown(Action::Open, "in Discover"))
        };
        all.extend([
            open,
            of_skill(shown(Action::Draft, "draft")),
            shown(Action::Filter, "filter"),
            Command { blocked: no_file(), ..shown(Action::AddQuery, "new") },
            in_file(shown(Action::EditQuery, "change")),
            in_file(shown(Action::RemoveQuery, "remove")),
            Command { blocked: unmeasured, ..shown(Action::SetBaseline, "set baseline") },
            Command { blocked: no_file(), ..shown(Action::ImportGolden, "import") },
            shown(Action::Measure, "measure"),
            shown(Action::NextTab, "next tab"),
            of_skill(hidden(Action::Why, "why")),
            on_query(hidden(Action::Copy, "copy")),
            in_file(hidden(Action::Edit, "edit the file")),
            hidden(Action::PreviousTab, "previous tab"),
            hidden(Action::NextPart, "next panel"),
            hidden(Action::PreviousPart, "previous panel"),
        ]);
        let moving = [Action::Up, Action::PageUp, Action::PageDown, Action::Top, Action::Bottom];
        all.extend(moving.map(|action| hidden(action, "move")));
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
            Action::Back if !self.filter.is_empty() => {
                self.filter.clear();
                self.set_rows();
                Vec::new()
            }
            Action::NextTab => self.turn(1),
            Action::PreviousTab => self.turn(TABS.len() - 1),
            Action::Filter => {
                self.measured.as_ref()?;
                self.focus = Focus::Filter;
                Vec::new()
            }
            Action::Open if self.is_in_skills() => {
                let skill = self.skill_in_tab()?.to_string();
                self.filter.set(&skill);
                (self.focus, self.scroll.cursor) = (Focus::List, 0);
                self.set_tab(Tab::Query);
                self.set_rows();
                if self.drawn.is_folded {
                    self.focus = Focus::List;
                }
                Vec::new()
            }
            Action::Open => {
                let intent = self.result()?.query.query.clone();
                vec![Effect::Go(PaneId::Discover, Some(Target::Intent(intent)))]
            }
            Action::Measure => {
                self.is_stale = true;
                self.explanations.clear();
                self.explaining = None;
                Vec::new()
            }
            Action::SetBaseline => {
                vec![Effect::Golden(GoldenPaneRequest::SetBaseline(self.measured.clone()?))]
            }
            Action::AddQuery => {
                vec![ask(PromptKind::Golden(GoldenForm {
                    query: Some(String::new()),
                    ..GoldenForm::default()
                }))]
            }
            Action::EditQuery => {
                let file = self.file_of_query().ok()?.file.clone();
                let result = self.result()?;
                vec![ask(PromptKind::Golden(GoldenForm {
                    query: Some(result.query.query.clone()),
                    skills: result.query.expectation().replace(',', ""),
                    replaces: Some((file, result.place, result.query.clone().into())),
                }))]
            }
            Action::RemoveQuery => return self.remove(was_removing),
            Action::ImportGolden => vec![ask(PromptKind::Import)],
            Action::Copy => vec![Effect::Copy(self.result()?.query.query.clone(), "query".to_owned())],
            Action::Edit => {
                let file = self.file_of_query().ok()?.file.clone();
                vec![Effect::Edit(file, 1)]
            }
            Action::Draft => {
                let skill = self.catalogue.by_id(self.skill()?.as_str())?;
                vec![Effect::EditDescription(Drafting::of(skill, self.query_text()))]
            }
            Action::Why => vec![Effect::Why(WhyRequest {
                skill_id: self.skill()?.to_string(),
                intent: self.query_text(),
                ..WhyRequest::default()
            })],
            other => return self.move_cursor(other).then(Vec::new),
        };
        Some(effects)
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.filter.key(key) {
            self.set_rows();
        }
        Vec::new()
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.filter.paste(text) {
            self.set_rows();
        }
        Vec::new()
    }

    fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => self.click(at),
            MouseEventKind::ScrollUp => self.wheel(at, -3),
            MouseEventKind::ScrollDown => self.wheel(at, 3),
            _ => {}
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
        std::mem::take(&mut self.wanted)
    }

    fn animated(&self) -> bool {
        self.is_measuring
    }
}

/// Opens a dialog.
fn ask(asking: PromptKind) -> Effect {
    Effect::OpenDialog(Box::new(DialogSpec::Prompt { asking, typed: serde_json::Map::new() }))
}

impl Golden {
    /// Returns whether keys concern the skill under the cursor of the tab of skills.
    fn is_in_skills(&self) -> bool {
        self.focus == Focus::Detail && self.tab == Tab::Skills
    }

    /// Returns the skill under the cursor of the tab of skills.
    fn skill_in_tab(&self) -> Option<&SkillId> {
        let skills = &self.measured.as_ref()?.report.by_skill;
        skills.get(self.detail.cursor).map(|skill| &skill.skill_id)
    }

    /// Returns the text of the query that keys concern; none in the tab of skills.
    fn query_text(&self) -> Option<String> {
        self.result().filter(|_| !self.is_in_skills()).map(|result| result.query.query.clone())
    }

    /// Returns the skill that keys concern: that of the tab of skills, or the expected one of the query under the
    /// cursor, if it is in the catalog.
    fn skill(&self) -> Option<&SkillId> {
        if self.is_in_skills() {
            return self.skill_in_tab().filter(|id| self.catalogue.by_id(id.as_str()).is_some());
        }
        let query = &self.result()?.query;
        query.expect.iter().chain(&query.not).find(|id| self.catalogue.by_id(id.as_str()).is_some())
    }

    /// Returns the file with the query under the cursor, or why it cannot be changed from here.
    fn file_of_query(&self) -> Result<&GoldenSource, String> {
        let none = || "no query selected".to_owned();
        let (measured, result) = (self.measured.as_ref().ok_or_else(none)?, self.result().ok_or_else(none)?);
        let source = result.source.and_then(|at| measured.report.sources.get(at));
        match source {
            Some(source) if measured.is_remote => {
                Err(format!("{} is on the service's machine", source.file.display()))
            }
            Some(source) if source.is_editable => Ok(source),
            Some(source) => Err(format!("{} is read-only here; edit the file itself", source.file.display())),
            None => Err("this query is in your own golden.yaml; edit it with skills golden".to_owned()),
        }
    }

    fn remove(&mut self, is_confirmed: bool) -> Option<Vec<Effect>> {
        let file = self.file_of_query().ok()?.file.clone();
        let result = self.result()?;
        if !is_confirmed {
            let note = format!("x again removes “{}” from {}", result.query.query, file.display());
            self.is_removing = true;
            return Some(vec![Effect::Toast(note)]);
        }
        let edit = GoldenEdit::Remove(result.place);
        let expected = result.query.clone().into();
        Some(vec![Effect::Golden(GoldenPaneRequest::Edit { file, edit, expected })])
    }

    fn turn(&mut self, by: usize) -> Vec<Effect> {
        let at = TABS.iter().position(|tab| *tab == self.tab).unwrap_or(0);
        self.set_tab(TABS[(at + by) % TABS.len()]);
        Vec::new()
    }

    fn set_tab(&mut self, tab: Tab) {
        (self.tab, self.detail.offset, self.detail.cursor) = (tab, 0, 0);
        // With one column the tabs are in the other part.
        if self.drawn.is_folded {
            self.focus = Focus::Detail;
        }
    }

    fn act_in_filter(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Submit | Action::LeaveField | Action::Back | Action::NextPart | Action::PreviousPart => {
                self.focus = Focus::List;
            }
            Action::Clear => {
                if self.filter.kill_to_start() {
                    self.set_rows();
                }
            }
            other => return self.move_cursor(other).then(Vec::new),
        }
        Some(Vec::new())
    }

    /// Moves the cursor, or scrolls the details; returns `false` for every other action.
    fn move_cursor(&mut self, action: Action) -> bool {
        let scroll = if self.focus == Focus::Detail { self.detail } else { self.scroll };
        let by = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -scroll.page(),
            Action::PageDown => scroll.page(),
            Action::Top => isize::MIN / 2,
            Action::Bottom => isize::MAX / 2,
            _ => return false,
        };
        if self.is_in_skills() {
            self.move_in_skills(by);
        } else if self.focus == Focus::Detail {
            // Drawing clamps the offset.
            self.detail.offset = self.detail.offset.saturating_add_signed(by).min(100_000);
        } else {
            self.select(rows::moved(&self.rows, self.scroll.cursor, by));
        }
        true
    }

    fn move_in_skills(&mut self, by: isize) {
        let skills = self.measured.as_ref().map_or(0, |measured| measured.report.by_skill.len());
        self.detail.by(by, skills);
    }

    fn select(&mut self, row: usize) {
        if row != self.scroll.cursor {
            self.detail.offset = 0;
        }
        (self.scroll.cursor, self.is_followed) = (row, true);
    }

    fn click(&mut self, at: Position) {
        self.is_removing = false;
        if self.drawn.filter.contains(at) {
            self.focus = Focus::Filter;
            self.filter.click(at);
        } else if let Some(tab) =
            self.drawn.tabs.iter().find(|(area, _)| area.contains(at)).map(|(_, tab)| *tab)
        {
            self.set_tab(tab);
        } else if self.drawn.list.contains(at) {
            self.focus = Focus::List;
            let row = self.drawn.rows.iter().find(|(area, _)| area.contains(at)).map(|(_, row)| *row);
            if let Some(row) = row {
                self.select(row);
            }
        } else if self.drawn.detail.contains(at) {
            self.focus = Focus::Detail;
            if let Some((_, skill)) = self.drawn.skills.iter().find(|(area, _)| area.contains(at)) {
                self.detail.cursor = *skill;
            }
        }
    }

    fn wheel(&mut self, at: Position, by: isize) {
        if self.drawn.list.contains(at) {
            self.is_followed = false;
            self.scroll.roll(by, self.rows.len());
        } else if self.drawn.detail.contains(at) && self.tab == Tab::Skills {
            self.move_in_skills(by);
        } else if self.drawn.detail.contains(at) {
            self.detail.offset = self.detail.offset.saturating_add_signed(by).min(100_000);
        }
    }
}

fn shown(action: Action, label: &str) -> Command {
    Command { action, label: label.to_owned(), blocked: None, footer: true }
}

fn hidden(action: Action, label: &str) -> Command {
    Command { footer: false, ..shown(action, label) }
}
