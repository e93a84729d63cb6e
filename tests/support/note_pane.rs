//! A small pane for tests of the frame: rows with a cursor, a text field, and commands of every sort.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use skills_skill::SkillId;
use skills_tui::action::{Action, Context, PaneCommand};
use skills_tui::field::Field;
use skills_tui::pane::{Draw, Effect, Message, Pane, PaneId, Picker, PickerKind};
use skills_tui::theme::Role;

#[derive(Default)]
pub struct NotePane {
    pub rows: Vec<String>,
    pub cursor: usize,
    pub field: Field,
    pub typing: bool,
    pub heard: Vec<String>,
    /// Text that would be lost.
    pub unsaved: Option<String>,
    pub panics: bool,
}

impl NotePane {
    pub fn of(rows: &[&str]) -> Self {
        Self { rows: rows.iter().map(|row| (*row).to_owned()).collect(), ..Self::default() }
    }

    fn command(action: Action, label: &str) -> PaneCommand {
        PaneCommand { action, label: label.to_owned(), blocked: None, footer: true }
    }
}

impl Pane for NotePane {
    fn id(&self) -> PaneId {
        PaneId::Browse
    }

    fn contexts(&self) -> Vec<Context> {
        if self.typing { vec![Context::Field] } else { vec![Context::Browse, Context::List] }
    }

    fn in_text(&self) -> bool {
        self.typing
    }

    fn commands(&self) -> Vec<PaneCommand> {
        if self.typing {
            return vec![Self::command(Action::Submit, "take"), Self::command(Action::LeaveField, "leave")];
        }
        let blocked = Some("these notes are read only".to_owned());
        vec![
            Self::command(Action::Up, "move"),
            Self::command(Action::Filter, "filter"),
            Self::command(Action::Copy, "copy"),
            PaneCommand { blocked, ..Self::command(Action::Edit, "edit") },
            Self::command(Action::PickClient, "client"),
            Self::command(Action::PickDomain, "domain"),
        ]
    }

    fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Up => self.cursor = self.cursor.saturating_sub(1),
            Action::Down => self.cursor = (self.cursor + 1).min(self.rows.len().saturating_sub(1)),
            Action::Filter => self.typing = true,
            Action::LeaveField | Action::Submit => self.typing = false,
            Action::Copy => {
                return Some(vec![Effect::Copy(self.rows[self.cursor].clone(), "the note".to_owned())]);
            }
            Action::PickClient => return Some(vec![Effect::PickClient(None)]),
            Action::Open => return Some(vec![Effect::Describe(SkillId::new("gone"))]),
            Action::DiscoverThis => return Some(vec![Effect::Edit("/skills/SKILL.md".into(), 3)]),
            Action::Fold if self.panics => panic!("the pane panics on purpose"),
            Action::Sort => {
                let choice = |name: &str| (name.to_owned(), name.to_owned(), String::new());
                let choices = ["name", "tokens", "findings"].map(choice).to_vec();
                let title = "Sort by".to_owned();
                return Some(vec![Effect::Pick(Picker {
                    what: PickerKind::Domain,
                    title,
                    choices,
                    current: Some(1),
                })]);
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        self.field.key(key);
        Vec::new()
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        self.field.paste(text);
        Vec::new()
    }

    fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        if event.kind == MouseEventKind::Down(MouseButton::Left) {
            self.cursor = usize::from(event.row.saturating_sub(2)).min(self.rows.len().saturating_sub(1));
        }
        Vec::new()
    }

    fn message(&mut self, message: &Message) -> Vec<Effect> {
        let heard = match message {
            Message::Picked(kind, value) => format!("picked {kind:?} {value}"),
            Message::Visit(target) => format!("visit {target:?}"),
            Message::Detail(id, Err(error)) => format!("{id}: {error}"),
            _ => return Vec::new(),
        };
        self.heard.push(heard);
        Vec::new()
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        for (at, row) in self.rows.iter().enumerate().take(usize::from(area.height.saturating_sub(1))) {
            let y = area.y + 1 + at as u16;
            if at == self.cursor {
                buf.set_style(Rect::new(area.x, y, area.width, 1), cx.theme.style(Role::Selection));
                buf.set_string(area.x, y, cx.glyphs.gutter, cx.theme.style(Role::Gutter));
            }
            buf.set_stringn(area.x + 2, y, row, usize::from(area.width) - 2, cx.theme.style(Role::Text));
        }
        for (heard, y) in self.heard.iter().zip((area.y + area.height / 2)..area.bottom()) {
            buf.set_stringn(area.x + 2, y, heard, usize::from(area.width) - 2, cx.theme.style(Role::Muted));
        }
        if self.typing {
            let row = Rect::new(area.x + 2, area.y, area.width - 2, 1);
            cx.cursor = self.field.draw(row, buf, cx.theme.style(Role::Strong), &[]);
        }
    }

    fn take_pending_effects(&mut self) -> Vec<Effect> {
        Vec::new()
    }

    fn animated(&self) -> bool {
        false
    }

    fn unsaved(&self) -> Option<String> {
        self.unsaved.clone()
    }
}
