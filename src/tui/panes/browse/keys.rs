//! Keys of the Browse pane.

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::detail::{TABS, Tab};
use super::list::Row;
use super::{Browse, Focus};
use crate::action::{Action, Command, Context};
use crate::golden_requests::GoldenForm;
use crate::overlay::Drafting;
use crate::pane::{Draw, Effect, Message, Pane, PaneId, Picker, PickerKind, Target, skills_to_open};
use crate::widgets::text_width::shown as safe;
use skills_api::WhyRequest;
use skills_config::quoted;
use skills_skill::Invocation;

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

    fn commands(&self) -> Vec<Command> {
        match self.focus {
            _ if self.map.is_open => self.map_commands(),
            Focus::Filter => vec![
                shown(Action::Submit, "apply"),
                shown(Action::Down, "move"),
                shown(Action::Clear, "clear"),
                shown(Action::LeaveField, "leave"),
                hidden(Action::Up, "move"),
                hidden(Action::PageUp, "page up"),
                hidden(Action::PageDown, "page down"),
                hidden(Action::NextPart, "next panel"),
                hidden(Action::PreviousPart, "previous panel"),
            ],
            Focus::List => self.list_commands(),
            Focus::Detail => self.detail_commands(),
        }
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        if self.map.is_open && !matches!(action, Action::OpenByName) {
            return self.act_in_map(action);
        }
        let effects = match action {
            Action::ShowCollisions => self.map.open(),
            Action::NextTab => self.turn_tab(1),
            Action::PreviousTab => self.turn_tab(TABS.len() - 1),
            Action::PickClient => vec![Effect::PickClient(self.client.as_ref().map(|c| c.client.clone()))],
            Action::NextPart | Action::PreviousPart => {
                self.focus = if self.focus == Focus::Detail { Focus::List } else { Focus::Detail };
                Vec::new()
            }
            Action::Filter => {
                self.focus = Focus::Filter;
                Vec::new()
            }
            Action::OpenByName => {
                let current = self.shown_entry().map(|entry| &entry.id);
                vec![Effect::Pick(skills_to_open(&self.catalogue, current)?)]
            }
            Action::Copy => {
                let id = self.shown_entry()?.id.to_string();
                vec![Effect::Copy(id, "id".to_owned())]
            }
            Action::CopyAs => vec![Effect::Pick(self.copy_choices()?)],
            Action::Edit => vec![self.edit()?],
            Action::DiscoverThis => vec![self.discover_this()?],
            Action::Draft => {
                let skill = self.catalogue.by_id(self.shown_entry()?.id.as_str())?;
                vec![Effect::EditDescription(Drafting::of(skill, None))]
            }
            Action::AddGolden => {
                let skills = self.shown_entry()?.id.to_string();
                vec![Effect::AddGolden(GoldenForm { skills, ..GoldenForm::default() })]
            }
            Action::Why => {
                let skill_id = self.shown_entry()?.id.to_string();
                vec![Effect::Why(WhyRequest { skill_id, ..WhyRequest::default() })]
            }
            Action::AttachThis => {
                let skill = Some(self.shown_entry()?.id.clone());
                vec![Effect::Go(PaneId::Attach, Some(Target::Attach { skill, target: None }))]
            }
            Action::Launch => {
                let skill = self.shown_entry()?.id.clone();
                vec![Effect::Go(PaneId::Runs, Some(Target::Launch(skill)))]
            }
            Action::LoadSkill => {
                let id = self.shown_entry()?.id.clone();
                vec![Effect::Go(PaneId::Session, Some(Target::Skill(id)))]
            }
            other => return self.act_in_part(other),
        };
        // The action referred to the skill under the cursor, so the selection is the user's from now on.
        self.moved |= !matches!(action, Action::PickClient | Action::Filter | Action::OpenByName);
        Some(effects)
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.filter.key(key) { self.filtered() } else { Vec::new() }
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        if self.filter.paste(text) { self.filtered() } else { Vec::new() }
    }

    fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        self.pointed(event)
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        self.news(message)
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        self.view(area, buf, cx);
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.wanted)
    }

    fn animated(&self) -> bool {
        false
    }
}

impl Browse {
    fn act_in_part(&mut self, action: Action) -> Option<Vec<Effect>> {
        match self.focus {
            Focus::List => self.act_in_list(action),
            Focus::Filter => self.act_in_filter(action),
            Focus::Detail => self.act_in_detail(action),
        }
    }

    fn act_in_list(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Sort => {
                self.sort = self.sort.next();
                self.sort_again();
                self.build();
                Some(self.all_levels())
            }
            Action::GroupBy => {
                self.group = self.group.next();
                self.build();
                Some(self.selection_changed())
            }
            Action::Open => Some(match self.rows.get(self.scroll.cursor) {
                Some(Row::Group { .. }) => self.fold(),
                Some(Row::Entry(_)) => {
                    self.focus = Focus::Detail;
                    self.moved = true;
                    Vec::new()
                }
                None => Vec::new(),
            }),
            Action::Fold => Some(self.fold()),
            Action::Back if !self.filter.is_empty() => {
                self.filter.clear();
                Some(self.filtered())
            }
            other => self.move_cursor(other),
        }
    }

    fn act_in_filter(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Submit | Action::LeaveField | Action::Back => {
                self.focus = Focus::List;
                Some(Vec::new())
            }
            Action::Clear => Some(if self.filter.kill_to_start() { self.filtered() } else { Vec::new() }),
            other => self.move_cursor(other),
        }
    }

    fn move_cursor(&mut self, action: Action) -> Option<Vec<Effect>> {
        let rows = rows_of(action, self.scroll.page())?;
        self.scroll.by(rows, self.rows.len());
        (self.follow, self.moved) = (true, true);
        Some(self.selection_changed())
    }

    fn act_in_detail(&mut self, action: Action) -> Option<Vec<Effect>> {
        if action == Action::Back {
            self.focus = Focus::List;
            return Some(Vec::new());
        }
        if action == Action::Open && self.detail.tab == Tab::Findings {
            return self.edit().map(|effect| vec![effect]);
        }
        match self.detail.tab {
            Tab::Contract if action == Action::Open => self.act(Action::Launch),
            Tab::Instructions | Tab::Frontmatter | Tab::Contract => {
                let rows = rows_of(action, self.detail.text.page())?;
                // Drawing knows the length and clamps the offset.
                let offset = self.detail.text.offset.saturating_add_signed(rows);
                self.detail.text.offset = offset.min(usize::MAX / 2);
                Some(Vec::new())
            }
            Tab::Findings => {
                let count = self.findings().len();
                let rows = rows_of(action, 5)?;
                let next = self.detail.finding.saturating_add_signed(rows);
                self.detail.finding = next.min(count.saturating_sub(1));
                Some(Vec::new())
            }
            Tab::Files => self.act_in_files(action),
            Tab::Rivals => self.act_in_rivals(action),
        }
    }

    /// Moves among the rivals; Enter compares the skill with one.
    fn act_in_rivals(&mut self, action: Action) -> Option<Vec<Effect>> {
        if action == Action::Open {
            let (own, rival) = (self.shown_entry()?.id.clone(), self.chosen_rival()?);
            let mut effects = self.map.open();
            effects.extend(self.map.go_to(&own, &rival));
            return Some(effects);
        }
        let rows = rows_of(action, 5)?;
        let last = self.rival_count().saturating_sub(1);
        self.detail.rival = self.detail.rival.saturating_add_signed(rows).min(last);
        Some(Vec::new())
    }

    fn act_in_files(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::PageUp | Action::PageDown => {
                let rows = rows_of(action, self.detail.preview.page())?;
                self.detail.preview.offset = self.detail.preview.offset.saturating_add_signed(rows);
                Some(Vec::new())
            }
            Action::Open | Action::Fold => {
                let row = self.detail.tree_rows().into_iter().nth(self.detail.tree.cursor)?;
                if row.file.is_some() {
                    return if action == Action::Open { self.edit().map(|e| vec![e]) } else { None };
                }
                if !self.detail.folded.remove(&row.path) {
                    self.detail.folded.insert(row.path);
                }
                Some(Vec::new())
            }
            other => {
                let rows = rows_of(other, 1)?;
                let count = self.detail.tree_rows().len();
                self.detail.tree.by(rows, count);
                Some(self.preview())
            }
        }
    }

    pub(super) fn turn_tab(&mut self, steps: usize) -> Vec<Effect> {
        self.detail.turn(steps);
        self.preview()
    }

    /// Collapses or expands the group that contains the cursor, and moves to its heading.
    pub(super) fn fold(&mut self) -> Vec<Effect> {
        let before = &self.rows[..(self.scroll.cursor + 1).min(self.rows.len())];
        let Some(at) = before.iter().rposition(|row| matches!(row, Row::Group { .. })) else {
            return Vec::new();
        };
        let Row::Group { key, .. } = self.rows[at].clone() else { return Vec::new() };
        (self.scroll.cursor, self.moved) = (at, true);
        if !self.turned.remove(&key) {
            self.turned.insert(key);
        }
        self.build();
        Vec::new()
    }

    fn filtered(&mut self) -> Vec<Effect> {
        self.fuzzy.set(self.filter.text());
        self.moved = true;
        // While a filter is typed, the cursor is on the best match.
        if !self.fuzzy.is_empty() {
            self.selected = None;
            self.rows.clear();
            self.scroll = crate::widgets::scroll::Scroll::default();
        }
        self.build();
        self.selection_changed()
    }

    fn edit(&self) -> Option<Effect> {
        if let Some(refusal) = self.refusal() {
            let line = refusal.findings.iter().find_map(|f| f.span).map_or(1, |s| s.line);
            return Some(Effect::Edit(refusal.location.clone(), line));
        }
        let entry = self.shown_entry()?;
        let skill = self.catalogue.by_id(entry.id.as_str())?;
        if self.focus != Focus::Detail {
            return Some(Effect::Edit(skill.location.clone(), 1));
        }
        let (path, line) = match self.detail.tab {
            Tab::Instructions => {
                (skill.location.clone(), skill.body_line + self.detail.line_in_sight.saturating_sub(1))
            }
            Tab::Frontmatter => (skill.location.clone(), self.detail.line_in_sight.max(1)),
            Tab::Contract => (skill.root_dir.join("skill.yaml"), 1),
            Tab::Files => (skill.root_dir.join(self.detail.chosen_file()?), 1),
            Tab::Findings => {
                let finding = self.findings().get(self.detail.finding)?;
                (skill.root_dir.join(&finding.file), finding.span.map_or(1, |s| s.line))
            }
            Tab::Rivals => (skill.location.clone(), 1),
        };
        Some(Effect::Edit(path, line))
    }

    fn discover_this(&self) -> Option<Effect> {
        let skill = self.catalogue.by_id(self.shown_entry()?.id.as_str())?;
        let intent = skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Effect::Go(PaneId::Discover, Some(Target::Intent(intent))))
    }

    fn copy_choices(&self) -> Option<Picker> {
        let entry = self.shown_entry()?;
        let line = format!("skills describe {}", quoted(entry.id.as_str()));
        let mut choices = vec![
            ("id".to_owned(), "id".to_owned(), entry.id.to_string()),
            ("cli".to_owned(), "command line".to_owned(), line),
        ];
        if let Some(skill) = self.catalogue.by_id(entry.id.as_str()) {
            let place = skill.location.display().to_string();
            choices.push(("location".to_owned(), "location".to_owned(), place));
            choices.push(("json".to_owned(), "JSON".to_owned(), "the record".to_owned()));
        }
        Some(Picker { what: PickerKind::CopyAs, title: "Copy as".to_owned(), choices, current: Some(0) })
    }

    pub(super) fn copy_as(&self, what: &str) -> Vec<Effect> {
        let Some(entry) = self.shown_entry() else { return Vec::new() };
        let skill = self.catalogue.by_id(entry.id.as_str());
        let copied = match what {
            "id" => Some(Effect::Copy(entry.id.to_string(), "id".to_owned())),
            "cli" => {
                let line = format!("skills describe {}", quoted(entry.id.as_str()));
                Some(Effect::CopyCommand(line, "command line".to_owned()))
            }
            "location" => {
                skill.map(|s| Effect::Copy(s.location.display().to_string(), "location".to_owned()))
            }
            "json" => skill
                .and_then(|s| serde_json::to_string_pretty(s.as_ref()).ok())
                .map(|json| Effect::Copy(json, "JSON".to_owned())),
            _ => None,
        };
        copied.into_iter().collect()
    }

    fn attach_command(&self) -> Command {
        let skill = self.shown_entry().and_then(|entry| self.catalogue.by_id(entry.id.as_str()));
        let blocked = match skill {
            None => Some("no skill selected".to_owned()),
            Some(skill) if skill.classification.invocation.value == Invocation::Direct => {
                Some(format!("{} is invoked directly; only sidecars can be attached", safe(&skill.name)))
            }
            Some(_) => None,
        };
        Command { blocked, ..shown(Action::AttachThis, "attach") }
    }

    /// Returns the command to launch, disabled if the contract is known to be missing or not runnable.
    fn launch_command(&self, footer: bool) -> Command {
        let known = self.shown_entry().and_then(|entry| self.detail.contracts.get(&entry.id));
        let blocked = match known {
            None if self.shown_entry().is_none() => Some("no skill selected".to_owned()),
            Some(Err(error)) => Some(safe(&error.message)),
            Some(Ok(view)) => view.blocked.as_deref().map(safe),
            None => None,
        };
        Command { blocked, footer, ..shown(Action::Launch, "launch") }
    }

    fn list_commands(&self) -> Vec<Command> {
        let none = self.shown_entry().is_none().then(|| "no skill selected".to_owned());
        let on_skill = |command: Command| Command { blocked: none.clone(), ..command };
        let mut out = vec![
            Command { blocked: none.clone(), ..shown(Action::Down, "move") },
            on_skill(shown(Action::Open, "open")),
            on_skill(shown(Action::Filter, "filter")),
            on_skill(shown(Action::OpenByName, "open by name")),
            on_skill(shown(Action::Edit, "edit")),
            shown(Action::PickClient, "client"),
            on_skill(shown(Action::Sort, "sort")),
            on_skill(shown(Action::GroupBy, "group")),
            on_skill(shown(Action::DiscoverThis, "discover")),
            on_skill(shown(Action::Why, "why")),
            on_skill(shown(Action::Draft, "draft")),
            on_skill(hidden(Action::AddGolden, "to golden set")),
            shown(Action::ShowCollisions, "collisions"),
            self.attach_command(),
            self.launch_command(false),
            on_skill(shown(Action::LoadSkill, "load")),
            on_skill(shown(Action::Copy, "copy")),
            on_skill(hidden(Action::CopyAs, "copy as")),
            on_skill(hidden(Action::Fold, "fold")),
            on_skill(hidden(Action::NextTab, "next tab")),
            on_skill(hidden(Action::PreviousTab, "previous tab")),
            hidden(Action::NextPart, "next panel"),
            hidden(Action::PreviousPart, "previous panel"),
        ];
        if !self.filter.is_empty() {
            out.insert(3, shown(Action::Back, "all"));
        }
        out.extend(moves());
        out
    }

    fn detail_commands(&self) -> Vec<Command> {
        let none = self.shown_entry().is_none().then(|| "no skill selected".to_owned());
        let on_skill = |command: Command| Command { blocked: none.clone(), ..command };
        let is_list = matches!(self.detail.tab, Tab::Files | Tab::Findings | Tab::Rivals);
        let label = if is_list { "move" } else { "scroll" };
        let mut out = vec![shown(Action::Down, label)];
        if matches!(self.detail.tab, Tab::Files | Tab::Findings) {
            out.push(on_skill(shown(Action::Open, "edit there")));
        }
        if self.detail.tab == Tab::Rivals {
            let blocked = self.chosen_rival().is_none().then(|| "no rival".to_owned());
            out.push(Command { blocked, ..shown(Action::Open, "compare") });
        }
        out.push(self.launch_command(self.detail.tab == Tab::Contract));
        out.extend([
            shown(Action::NextTab, "next tab"),
            shown(Action::Back, "list"),
            on_skill(shown(Action::Edit, "edit")),
            on_skill(shown(Action::DiscoverThis, "discover")),
            on_skill(shown(Action::Why, "why")),
            on_skill(shown(Action::Draft, "draft")),
            on_skill(hidden(Action::AddGolden, "to golden set")),
            hidden(Action::ShowCollisions, "collisions"),
            self.attach_command(),
            on_skill(shown(Action::LoadSkill, "load")),
            on_skill(shown(Action::Copy, "copy")),
            on_skill(hidden(Action::CopyAs, "copy as")),
            hidden(Action::Filter, "filter"),
            on_skill(hidden(Action::OpenByName, "open by name")),
            hidden(Action::PickClient, "client"),
            hidden(Action::PreviousTab, "previous tab"),
            hidden(Action::NextPart, "next panel"),
            hidden(Action::PreviousPart, "previous panel"),
        ]);
        out.extend(moves());
        out
    }
}

/// Returns how many rows an action moves.
pub(super) fn rows_of(action: Action, page: isize) -> Option<isize> {
    Some(match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::PageUp => -page,
        Action::PageDown => page,
        Action::Top => isize::MIN,
        Action::Bottom => isize::MAX,
        _ => return None,
    })
}

pub(super) fn moves() -> [Command; 5] {
    [Action::Up, Action::PageUp, Action::PageDown, Action::Top, Action::Bottom].map(|a| hidden(a, "move"))
}

pub(super) fn shown(action: Action, label: &str) -> Command {
    Command { action, label: label.to_owned(), blocked: None, footer: true }
}

pub(super) fn hidden(action: Action, label: &str) -> Command {
    Command { footer: false, ..shown(action, label) }
}
