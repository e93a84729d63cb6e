//! The dialog for what a session needs: a message, a script's arguments, or an export's format and file. For a script
//! it shows the sandbox; nothing runs before it is reviewed.

use std::sync::Arc;
use std::time::Instant;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use super::parts::{self, Button, LABEL};
use super::prompt::PromptKind;
use crate::action::{Action, Context};
use crate::form::{Form, FormOutcome, FormState};
use crate::overlay::{Hint, Outcome, Overlay, centered, frame};
use crate::pane::{Draw, Effect, Message, PaneId};
use crate::session_export::{Exported, Format};
use crate::session_requests::{SessionRequest, SessionResponse};
use crate::terminal::MAX_COPY_BYTES;
use crate::theme::Role;
use crate::widgets::format::byte_size;
use crate::widgets::painter::Painter;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::text_width::shown;
use crate::widgets::wrap::{wrap, wrap_to};
use skills_api::near;
use skills_registry::Catalog;
use skills_skill::SkillId;

/// Width of the dialog if there is enough space.
const WIDTH: u16 = 78;

pub(super) struct PromptDialog {
    pane: PaneId,
    asking: PromptKind,
    form: Form,
    /// The focused button; `None` while the form has the focus.
    button: Option<usize>,
    said: Option<String>,
    pressed: Vec<Rect>,
    /// Whether a file is being written.
    sent: bool,
    /// Whether the request was submitted: no draft is kept.
    done: bool,
    /// The skills that a golden query can name.
    catalog: Option<Arc<Catalog>>,
    /// The ids that were reported as unknown: the same are accepted when submitted again.
    reported: Vec<SkillId>,
}

impl PromptDialog {
    pub(super) fn new(pane: PaneId, asking: PromptKind) -> Self {
        // A script requires approval, so the focus is on "Cancel".
        let button = matches!(asking, PromptKind::Script { .. }).then_some(0);
        let form = asking.form();
        let (said, pressed, sent, done) = (None, Vec::new(), false, false);
        let (catalog, reported) = (None, Vec::new());
        Self { pane, asking, form, button, said, pressed, sent, done, catalog, reported }
    }

    /// Restores a draft.
    pub(super) fn retyped(mut self, typed: &Map<String, Value>) -> Self {
        self.form.retype(typed);
        self
    }

    fn buttons(&self) -> [Button; 2] {
        let act = match &self.asking {
            PromptKind::Message { .. } => "Append",
            PromptKind::Script { .. } => "Review",
            PromptKind::Export { .. } => "Export",
            PromptKind::Golden(form) if form.replaces.is_some() => "Change",
            PromptKind::Golden(_) => "Add",
            PromptKind::Import => "Import",
        };
        [Button::new(Action::Back, "Cancel", "Esc"), Button::new(Action::Execute, act, "^S")]
    }

    fn press(&mut self, action: Action) -> Outcome {
        match action {
            Action::Back => Outcome::Close,
            Action::Execute => self.submit(),
            _ => Outcome::Stay,
        }
    }

    fn submit(&mut self) -> Outcome {
        if self.sent {
            return Outcome::Stay;
        }
        if !self.form.check() {
            self.button = None;
            return Outcome::Stay;
        }
        let Ok(values) = self.form.values() else { return Outcome::Stay };
        match self.asking.ask(&values) {
            Ok(write @ Effect::Session(SessionRequest::Write { .. })) => {
                // The dialog stays until the file is written: a rejected file name can be corrected here.
                self.sent = true;
                Outcome::Request(self.pane, vec![write])
            }
            Ok(effect) => {
                if let Some(why) = self.unknown_skills(&effect) {
                    self.said = Some(why);
                    return Outcome::Stay;
                }
                // The review may reveal an error: keep the input until the script runs.
                self.done = !matches!(self.asking, PromptKind::Script { .. });
                Outcome::Done(self.pane, vec![effect])
            }
            Err(why) => {
                self.said = Some(why);
                Outcome::Stay
            }
        }
    }

    /// Returns a warning about the skills of a golden query that do not exist, unless the user has seen it.
    fn unknown_skills(&mut self, effect: &Effect) -> Option<String> {
        let Effect::Golden(request) = effect else { return None };
        let (catalog, named) = (self.catalog.as_ref()?, request.named_skills());
        let unknown: Vec<SkillId> =
            named.iter().filter(|id| catalog.by_id(id.as_str()).is_none()).cloned().collect();
        if unknown.is_empty() || unknown == self.reported {
            return None;
        }
        let ids: Vec<&str> = catalog.entries.iter().map(|entry| entry.skill.id.as_str()).collect();
        let names = unknown.iter().map(|id| match near(id.as_str(), ids.iter().copied()).as_slice() {
            [] => format!("`{id}`"),
            near => format!("`{id}` (similar: {})", near.join(", ")),
        });
        let names = names.collect::<Vec<_>>().join(", ");
        let what = if unknown.len() == 1 { "skill" } else { "skills" };
        self.reported = unknown;
        Some(format!("{what} {names} not found; Ctrl-S again saves the query anyway"))
    }

    fn turn(&mut self, forward: bool) {
        match (self.button, forward) {
            (Some(0), true) => self.button = Some(1),
            (Some(at), false) if at > 0 => self.button = Some(at - 1),
            (Some(_), true) => {
                self.button = None;
                self.form.first();
            }
            (Some(_), false) => {
                self.button = None;
                self.form.last();
            }
            (None, _) => {}
        }
    }

    fn head(&self, width: u16, painter: &Painter<'_>) -> Vec<RichLine> {
        let rows = match &self.asking {
            PromptKind::Message { .. } => {
                vec![(
                    "",
                    "The message is appended to the transcript and is part of the next call.".to_owned(),
                )]
            }
            PromptKind::Script { skill, path, isolation, .. } => {
                vec![("script", path.clone()), ("of", skill.clone()), ("isolation", isolation.clone())]
            }
            PromptKind::Golden(form) => match &form.replaces {
                Some((file, ..)) => vec![("file", file.display().to_string())],
                None => vec![("", "The query is added to your golden.yaml.".to_owned())],
            },
            PromptKind::Import => {
                let text = "Evaluation files of skills, JSON lines, CSV and YAML. Queries that your \
                    golden.yaml already has are skipped.";
                vec![("", text.to_owned())]
            }
            PromptKind::Export { exports, desktop, .. } => {
                let dot = format!(" {} ", painter.glyphs.dot);
                let sizes: Vec<String> = exports
                    .iter()
                    .map(|made| format!("{} {}", made.format, byte_size(made.text.len() as u64)))
                    .collect();
                let most = if *desktop {
                    "desktop clipboard, no size limit".to_owned()
                } else {
                    format!("terminal clipboard, up to {}", byte_size(MAX_COPY_BYTES as u64))
                };
                let mut rows = vec![("sizes", sizes.join(&dot)), ("clipboard", most)];
                rows.extend(self.objections(exports).into_iter().map(|note| ("note", note)));
                rows
            }
        };
        let mut out = Vec::new();
        for (label, text) in rows {
            let indent = if label.is_empty() { 0 } else { LABEL };
            let segs = [Seg::new(shown(&text), Role::Text)];
            let lines = wrap_to(&segs, width.saturating_sub(indent), 3, painter.glyphs.ellipsis);
            for (at, line) in lines.into_iter().enumerate() {
                let head = if at == 0 { label } else { "" };
                let head = format!("{head:<width$}", width = usize::from(indent));
                let mut segs = vec![Seg::new(head, Role::Muted)];
                segs.extend(line.segs);
                out.push(RichLine::from_segs(segs));
            }
        }
        out
    }
}

impl PromptDialog {
    /// Returns the errors that the service of the chosen format is expected to report.
    fn objections(&self, exports: &[Exported]) -> Vec<String> {
        let values = self.form.values().unwrap_or_default();
        let chosen = values.get("format").and_then(Value::as_str).and_then(|format| format.parse().ok());
        let first = match &self.asking {
            PromptKind::Export { first, .. } => Some(*first),
            _ => None,
        };
        let format: Option<Format> = chosen.or(first);
        let made = exports.iter().find(|made| Some(made.format) == format);
        made.map(|made| made.notes.clone()).unwrap_or_default()
    }
}

impl Overlay for PromptDialog {
    fn in_text(&self) -> bool {
        self.button.is_none()
    }

    fn contexts(&self) -> Vec<Context> {
        if self.button.is_none() {
            vec![Context::Form, Context::Field, Context::Dialog]
        } else {
            vec![Context::Dialog]
        }
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        self.said = None;
        match (action, self.button) {
            (Some(Action::Execute), _) => return self.submit(),
            (Some(Action::LeaveField | Action::Back), None) => {
                self.form.leave();
                self.button = Some(0);
            }
            (Some(action), None) => match self.form.act(action) {
                FormOutcome::After => self.button = Some(1),
                FormOutcome::Before => self.button = Some(0),
                _ => {}
            },
            (None, None) => {
                self.form.key(key);
            }
            (Some(Action::NextPart | Action::Down), Some(_)) => self.turn(true),
            (Some(Action::PreviousPart | Action::Up), Some(_)) => self.turn(false),
            (Some(Action::Open), Some(at)) => {
                let action = self.buttons().get(at).map(|button| button.action);
                return action.map_or(Outcome::Stay, |action| self.press(action));
            }
            (Some(action), Some(_)) => return self.press(action),
            (None, Some(_)) => {}
        }
        Outcome::Stay
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Session(SessionResponse::Written(answer)) if self.sent => match answer {
                Ok(_) => {
                    self.done = true;
                    Outcome::Close
                }
                Err(why) => {
                    (self.sent, self.said) = (false, Some(why.clone()));
                    Outcome::Handled
                }
            },
            Message::Catalog(catalog) => {
                self.catalog = Some(Arc::clone(catalog));
                Outcome::Stay
            }
            _ => Outcome::Stay,
        }
    }

    fn draft_effect(&self) -> Option<(PaneId, Effect)> {
        let typed = if self.done { Map::new() } else { self.form.typed() };
        Some((self.pane, Effect::Keep(self.asking.name(), typed)))
    }

    fn unsaved(&self) -> Option<String> {
        let is_kept = self.sent || self.done || !self.form.changed();
        let what = match self.asking {
            PromptKind::Message { .. } => "The message is not appended.",
            PromptKind::Script { .. } => "The script is not run; its arguments are not saved.",
            PromptKind::Golden(_) => "The golden query is not saved.",
            // Choices and paths are quick to enter again.
            PromptKind::Export { .. } | PromptKind::Import => return None,
        };
        (!is_kept).then(|| what.to_owned())
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if self.button.is_none() {
            self.form.paste(text);
        }
        Outcome::Stay
    }

    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.form.wheel(false),
            MouseEventKind::ScrollDown => self.form.wheel(true),
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(index) = self.pressed.iter().position(|rect| rect.contains(at)) {
                    let action = self.buttons().get(index).map(|button| button.action);
                    return action.map_or(Outcome::Stay, |action| self.press(action));
                }
                if self.form.click(at).is_some() {
                    self.button = None;
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let mut out = vec![Hint { action: Action::NextPart, label: "next" }];
        let (act, nothing) = match &self.asking {
            PromptKind::Message { .. } => ("append", "cancel"),
            PromptKind::Script { .. } => ("review", "cancel"),
            PromptKind::Export { .. } => ("export", "cancel"),
            PromptKind::Golden(form) if form.replaces.is_some() => ("change", "cancel"),
            PromptKind::Golden(_) => ("add", "cancel"),
            PromptKind::Import => ("import", "cancel"),
        };
        if self.button.is_some() {
            out.push(Hint { action: Action::Open, label: "select" });
        }
        out.push(Hint { action: Action::Execute, label: act });
        if self.button.is_some() {
            out.push(Hint { action: Action::Back, label: nothing });
        } else {
            out.push(Hint { action: Action::LeaveField, label: "leave field" });
        }
        out
    }

    fn help_items(&self) -> Vec<Hint> {
        parts::with_form_keys(self.hints())
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        let width = WIDTH.min(area.width);
        let inner = width.saturating_sub(6);
        let roomy = area.height >= 26;
        let air = u16::from(roomy);
        let head = self.head(inner, painter);
        let look = FormState {
            indent: 0,
            label: self.form.label_width(0, inner / 3),
            roomy,
            focused: self.button.is_none(),
        };
        let said = self.said.as_ref().map(|said| {
            let lines = wrap(&[Seg::new(shown(said), Role::Text)], inner.saturating_sub(2));
            lines.into_iter().map(|segs| RichLine::from_segs(segs).plain_text()).collect::<Vec<_>>()
        });
        let said_rows = said.as_ref().map_or(0, |lines| lines.len() as u16 + 1);
        let fixed = head.len() as u16 + said_rows + 5 + 2 * air;
        let rows =
            self.form.required_height(inner, look).max(1).min(area.height.saturating_sub(fixed)).max(1);
        let outer = centered(area, width, fixed + rows);
        let title = match &self.asking {
            PromptKind::Message { .. } => "Append a message",
            PromptKind::Script { .. } => "Run a script",
            PromptKind::Export { .. } => "Export the session",
            PromptKind::Golden(form) if form.replaces.is_some() => "Change a golden query",
            PromptKind::Golden(_) => "Add a golden query",
            PromptKind::Import => "Import golden queries",
        };
        let inside = frame(outer, painter, title, "", false);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let mut y = inside.y + air;
        for line in &head {
            painter.line(inside.x, y, line, inside.width);
            y += 1;
        }
        y += 1;
        if let Some(lines) = said {
            y += parts::warning(Rect { y, ..inside }, painter, &lines) + 1;
        }
        let mut cx = Draw {
            theme: painter.theme,
            glyphs: painter.glyphs,
            now,
            clock_ms: 0,
            focused: true,
            full_screen: false,
            split: 0,
            cursor: None,
        };
        self.form.draw(Rect { y, height: rows, ..inside }, look, painter.buf, &mut cx);
        let row = Rect { y: inside.bottom().saturating_sub(1 + air), height: 1, ..inside };
        self.pressed = parts::buttons(row, painter, &self.buttons(), self.button);
        cx.cursor.filter(|_| self.button.is_none())
    }
}
