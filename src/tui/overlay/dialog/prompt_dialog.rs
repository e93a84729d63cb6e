//! The dialog for what a session needs: a message, a script's arguments, or an export's format and file. For a script
//! it shows the sandbox; nothing runs before it is reviewed.

use std::sync::Arc;
use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use super::form_box::{FormBox, Surroundings};
use super::parts::{self, Button, LABEL};
use super::prompt::PromptKind;
use crate::action::{Action, Context};
use crate::keymap::mention;
use crate::overlay::{Hint, Outcome, Overlay};
use crate::pane::{Effect, Message, PaneId};
use crate::session_export::{Exported, Format};
use crate::session_requests::{SessionRequest, SessionResponse};
use crate::terminal::MAX_COPY_BYTES;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Seg, byte_size, shown, wrap_to};
use skills_api::near;
use skills_registry::Catalog;
use skills_skill::SkillId;

pub(super) struct PromptDialog {
    pane: PaneId,
    asking: PromptKind,
    fields: FormBox,
    /// Why it was not submitted.
    message: Option<String>,
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
        let fields = FormBox::new(asking.form(), button);
        let (catalog, reported) = (None, Vec::new());
        Self { pane, asking, fields, message: None, sent: false, done: false, catalog, reported }
    }

    /// Restores a draft.
    pub(super) fn retyped(mut self, typed: &Map<String, Value>) -> Self {
        self.fields.form.retype(typed);
        self
    }

    /// Returns the title, the label of the button, and that of its key.
    fn labels(&self) -> (&'static str, &'static str, &'static str) {
        match &self.asking {
            PromptKind::Message { .. } => ("Append a message", "Append", "append"),
            PromptKind::Script { .. } => ("Run a script", "Review", "review"),
            PromptKind::Export { .. } => ("Export the session", "Export", "export"),
            PromptKind::Golden(form) if form.replaces.is_some() => {
                ("Change a golden query", "Change", "change")
            }
            PromptKind::Golden(_) => ("Add a golden query", "Add", "add"),
            PromptKind::Import => ("Import golden queries", "Import", "import"),
        }
    }

    fn buttons(&self) -> [Button; 2] {
        let (_, label, _) = self.labels();
        [Button::new(Action::Back, "Cancel"), Button::new(Action::Execute, label)]
    }

    fn press(&mut self, action: Option<Action>) -> Outcome {
        match action {
            Some(Action::Back) => Outcome::Close,
            Some(Action::Execute) => self.submit(),
            _ => Outcome::Stay,
        }
    }

    fn submit(&mut self) -> Outcome {
        if self.sent {
            return Outcome::Stay;
        }
        if !self.fields.form.check() {
            self.fields.button = None;
            return Outcome::Stay;
        }
        let Ok(values) = self.fields.form.values() else { return Outcome::Stay };
        match self.asking.ask(&values) {
            Ok(write @ Effect::Session(SessionRequest::Write { .. })) => {
                // The dialog stays until the file is written: a rejected file name can be corrected here.
                self.sent = true;
                Outcome::Request(self.pane, vec![write])
            }
            Ok(effect) => {
                if let Some(why) = self.unknown_skills(&effect) {
                    self.message = Some(why);
                    return Outcome::Stay;
                }
                // The review may reveal an error: keep the input until the script runs.
                self.done = !matches!(self.asking, PromptKind::Script { .. });
                Outcome::Done(self.pane, vec![effect])
            }
            Err(why) => {
                self.message = Some(why);
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
        let save = mention(Action::Execute);
        Some(format!("{what} {names} not found; press {save} again to save the query anyway"))
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
                let text = "Evaluation files of skills, JSON Lines, CSV and YAML. Queries that your \
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
            out.extend(parts::labeled(label, indent, lines.into_iter().map(|line| line.segs)));
        }
        out
    }

    /// Returns the errors that the service of the chosen format is expected to report.
    fn objections(&self, exports: &[Exported]) -> Vec<String> {
        let values = self.fields.form.values().unwrap_or_default();
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
        self.fields.button.is_none()
    }

    fn contexts(&self) -> Vec<Context> {
        self.fields.contexts()
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        self.message = None;
        let pressed = self.fields.key(key, action, &self.buttons());
        self.press(pressed)
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Session(SessionResponse::Written(answer)) if self.sent => match answer {
                Ok(_) => {
                    self.done = true;
                    Outcome::Close
                }
                Err(why) => {
                    (self.sent, self.message) = (false, Some(why.clone()));
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
        let typed = if self.done { Map::new() } else { self.fields.form.typed() };
        Some((self.pane, Effect::Keep(self.asking.name(), typed)))
    }

    fn unsaved(&self) -> Option<String> {
        let is_kept = self.sent || self.done || !self.fields.form.changed();
        let what = match self.asking {
            PromptKind::Message { .. } => "The message has not been appended.",
            PromptKind::Script { .. } => "The script has not been run; its arguments have not been saved.",
            PromptKind::Golden(_) => "The golden query has not been saved.",
            // Choices and paths are quick to enter again.
            PromptKind::Export { .. } | PromptKind::Import => return None,
        };
        (!is_kept).then(|| what.to_owned())
    }

    fn paste(&mut self, text: &str) -> Outcome {
        self.fields.paste(text);
        Outcome::Stay
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        self.fields.form.wheel(rows > 0);
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        let pressed = self.fields.click(at, &self.buttons());
        self.press(pressed)
    }

    fn hints(&self) -> Vec<Hint> {
        self.fields.hints(Some(self.labels().2))
    }

    fn help_items(&self) -> Vec<Hint> {
        parts::with_form_keys(self.hints())
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, now: Instant) -> Option<Position> {
        let contexts = self.contexts();
        let around = Surroundings {
            title: self.labels().0,
            head: self.head(FormBox::inner_width(area), painter),
            message: self
                .message
                .as_ref()
                .map(|message| (shown(&painter.with_keys(message, &contexts)), true)),
            buttons: &self.buttons(),
            no_fields: "",
            keeps_rows: false,
        };
        self.fields.draw(area, painter, now, &around)
    }
}
