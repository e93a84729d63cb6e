//! The sheet that asks for what a session needs: a message, or what a script is given. A script's sheet says what it
//! would be shut into, and nothing runs by opening it.

use std::collections::BTreeMap;
use std::time::Instant;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value, json};

use super::parts::{self, Button, LABEL};
use crate::session::Speaker;
use crate::skill::contract::{Field, FieldType};
use crate::tui::action::{Action, Context};
use crate::tui::form::{Acted, Form, Look};
use crate::tui::overlay::{Hint, Outcome, Overlay, centred, frame};
use crate::tui::pane::{Draw, Effect, PaneId};
use crate::tui::session_traffic::SessionAsk;
use crate::tui::theme::Role;
use crate::tui::widgets::measure::shown;
use crate::tui::widgets::pen::Pen;
use crate::tui::widgets::rich::{RichLine, Seg};
use crate::tui::widgets::wrap::{wrap, wrap_to};

/// Width of the box where there is room.
const WIDTH: u16 = 78;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asking {
    /// A message of a session.
    Message {
        /// Which session.
        session: String,
    },
    /// What a script is given.
    Script {
        /// Which session.
        session: String,
        /// Of which loaded skill.
        skill: String,
        /// Its path in the bundle.
        path: String,
        /// What it would be shut into, in words.
        isolation: String,
    },
}

fn field(description: &str) -> Field {
    Field { description: Some(description.to_owned()), ..Field::of(FieldType::String) }
}

impl Asking {
    fn form(&self) -> Form {
        let fields = match self {
            Self::Message { .. } => BTreeMap::from([
                ("text".to_owned(), Field { required: true, ..field("What is said.") }),
                (
                    "as".to_owned(),
                    Field {
                        default: Some(json!("user")),
                        allowed: vec![json!("user"), json!("assistant")],
                        ..field("Who says it.")
                    },
                ),
            ]),
            Self::Script { .. } => BTreeMap::from([
                ("args".to_owned(), field("Arguments, parted by spaces; quotes keep words together.")),
                ("files".to_owned(), field("Files for its work directory: NAME=PATH, or PATH.")),
                ("env".to_owned(), field("Variables: NAME=VALUE.")),
            ]),
        };
        Form::new(&fields, &Map::new())
    }

    /// What is asked of the core.
    ///
    /// # Errors
    /// A sentence about what cannot be read.
    fn ask(&self, values: &Map<String, Value>) -> Result<SessionAsk, String> {
        let text = |name: &str| values.get(name).and_then(Value::as_str).unwrap_or_default();
        match self {
            Self::Message { session } => {
                let speaker = if text("as") == "assistant" { Speaker::Assistant } else { Speaker::User };
                Ok(SessionAsk::Say(session.clone(), speaker, text("text").to_owned()))
            }
            Self::Script { session, skill, path, .. } => {
                let args = words(text("args"))?;
                let env: BTreeMap<String, String> = words(text("env"))?
                    .into_iter()
                    .map(|word| match word.split_once('=') {
                        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
                        _ => Err(format!("env: {word} is no NAME=VALUE")),
                    })
                    .collect::<Result<_, _>>()?;
                let files = words(text("files"))?.into_iter().map(handed).collect::<Result<_, _>>()?;
                Ok(SessionAsk::Script {
                    session: session.clone(),
                    arguments: json!({"path": path, "skill": skill, "args": args, "env": env}),
                    files,
                })
            }
        }
    }
}

/// `NAME=PATH`, or a path whose last part is the name.
fn handed(word: String) -> Result<(String, String), String> {
    let (name, path) = if let Some((name, path)) = word.split_once('=') {
        (name.to_owned(), path.to_owned())
    } else {
        let name = std::path::Path::new(&word).file_name().map(|name| name.to_string_lossy().into_owned());
        (name.unwrap_or_default(), word.clone())
    };
    if name.is_empty() || path.is_empty() {
        return Err(format!("files: {word} names no file"));
    }
    Ok((name, path))
}

/// Words parted by spaces; quotes keep spaces, a backslash keeps the next sign.
///
/// # Errors
/// Where a quote is not closed.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut signs = text.chars();
    while let Some(c) = signs.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => out.extend(word.take()),
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(signs.next()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("the quote {open} in {text:?} is not closed"));
    }
    out.extend(word);
    Ok(out)
}

/// The sheet and where it stands.
pub(super) struct AskSheet {
    pane: PaneId,
    asking: Asking,
    form: Form,
    /// The button with the focus; none while the form has it.
    button: Option<usize>,
    said: Option<String>,
    pressed: Vec<Rect>,
}

impl AskSheet {
    pub(super) fn new(pane: PaneId, asking: Asking) -> Self {
        // A script waits for a yes: the focus is on no.
        let button = matches!(asking, Asking::Script { .. }).then_some(0);
        let form = asking.form();
        Self { pane, asking, form, button, said: None, pressed: Vec::new() }
    }

    fn buttons(&self) -> [Button; 2] {
        let act = match self.asking {
            Asking::Message { .. } => "Say it",
            Asking::Script { .. } => "Run it",
        };
        [Button::new(Action::Back, "Not now", "Esc"), Button::new(Action::CarryOut, act, "^S")]
    }

    fn press(&mut self, action: Action) -> Outcome {
        match action {
            Action::Back => Outcome::Close,
            Action::CarryOut => self.carry_out(),
            _ => Outcome::Stay,
        }
    }

    fn carry_out(&mut self) -> Outcome {
        if !self.form.check() {
            self.button = None;
            return Outcome::Stay;
        }
        let Ok(values) = self.form.values() else { return Outcome::Stay };
        match self.asking.ask(&values) {
            Ok(ask) => Outcome::Done(self.pane, vec![Effect::Session(ask)]),
            Err(why) => {
                self.said = Some(why);
                Outcome::Stay
            }
        }
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

    fn head(&self, width: u16, pen: &Pen<'_>) -> Vec<RichLine> {
        let rows = match &self.asking {
            Asking::Message { .. } => {
                vec![("", "It is appended to the transcript, and part of the next call.")]
            }
            Asking::Script { skill, path, isolation, .. } => {
                vec![("script", path.as_str()), ("of", skill.as_str()), ("isolation", isolation.as_str())]
            }
        };
        let mut out = Vec::new();
        for (label, text) in rows {
            let indent = if label.is_empty() { 0 } else { LABEL };
            let segs = [Seg::new(shown(text), Role::Text)];
            let lines = wrap_to(&segs, width.saturating_sub(indent), 3, pen.glyphs.ellipsis);
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

impl Overlay for AskSheet {
    fn in_text(&self) -> bool {
        self.button.is_none()
    }

    fn contexts(&self) -> Vec<Context> {
        if self.button.is_none() {
            vec![Context::Form, Context::Field, Context::Sheet]
        } else {
            vec![Context::Sheet]
        }
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        self.said = None;
        match (action, self.button) {
            (Some(Action::CarryOut), _) => return self.carry_out(),
            (Some(Action::Leave | Action::Back), None) => {
                self.form.leave();
                self.button = Some(0);
            }
            (Some(action), None) => match self.form.act(action) {
                Acted::After => self.button = Some(1),
                Acted::Before => self.button = Some(0),
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
        let (act, nothing) = match self.asking {
            Asking::Message { .. } => ("say it", "nothing is said"),
            Asking::Script { .. } => ("run it", "nothing runs"),
        };
        if self.button.is_some() {
            out.push(Hint { action: Action::Open, label: "press" });
        }
        out.push(Hint { action: Action::CarryOut, label: act });
        if self.button.is_some() {
            out.push(Hint { action: Action::Back, label: nothing });
        } else {
            out.push(Hint { action: Action::Leave, label: "leave the field" });
        }
        out
    }

    fn draw(&mut self, area: Rect, pen: &mut Pen<'_>, now: Instant) -> Option<Position> {
        let width = WIDTH.min(area.width);
        let inner = width.saturating_sub(6);
        let roomy = area.height >= 26;
        let air = u16::from(roomy);
        let head = self.head(inner, pen);
        let look = Look {
            indent: 0,
            label: self.form.label_width(0, inner / 3),
            roomy,
            focused: self.button.is_none(),
        };
        let said = self.said.as_ref().map(|said| {
            let lines = wrap(&[Seg::new(shown(said), Role::Text)], inner.saturating_sub(2));
            lines.into_iter().map(|segs| RichLine::from_segs(segs).plain()).collect::<Vec<_>>()
        });
        let said_rows = said.as_ref().map_or(0, |lines| lines.len() as u16 + 1);
        let fixed = head.len() as u16 + said_rows + 5 + 2 * air;
        let rows = self.form.room(inner, look).max(1).min(area.height.saturating_sub(fixed)).max(1);
        let outer = centred(area, width, fixed + rows);
        let title = match self.asking {
            Asking::Message { .. } => "Say something",
            Asking::Script { .. } => "Run this script?",
        };
        let inside = frame(outer, pen, title, "", false);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let mut y = inside.y + air;
        for line in &head {
            pen.line(inside.x, y, line, inside.width);
            y += 1;
        }
        y += 1;
        if let Some(lines) = said {
            y += parts::warning(Rect { y, ..inside }, pen, &lines) + 1;
        }
        let mut cx = Draw {
            theme: pen.theme,
            glyphs: pen.glyphs,
            now,
            clock_ms: 0,
            focused: true,
            full_screen: false,
            split: 0,
            cursor: None,
        };
        self.form.draw(Rect { y, height: rows, ..inside }, look, pen.buf, &mut cx);
        let row = Rect { y: inside.bottom().saturating_sub(1 + air), height: 1, ..inside };
        self.pressed = parts::buttons(row, pen, &self.buttons(), self.button);
        cx.cursor.filter(|_| self.button.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parted_as_in_a_shell() {
        let of = |text: &str| words(text).unwrap();
        assert_eq!(
            of("  --top 3 'two words' \"a \\\" b\" c\\ d '' "),
            ["--top", "3", "two words", "a \" b", "c d", ""]
        );
        assert!(words("'open").unwrap_err().contains("not closed"));
    }

    #[test]
    fn a_script_is_asked_for_with_arguments_and_files() {
        let asking = Asking::Script {
            session: "s".into(),
            skill: "csv".into(),
            path: "scripts/a.py".into(),
            isolation: "shut in".into(),
        };
        let values = json!({"args": "--top 3", "files": "in.csv=./orders.csv notes.txt", "env": "A=b=c"});
        let SessionAsk::Script { arguments, files, .. } = asking.ask(values.as_object().unwrap()).unwrap()
        else {
            unreachable!("a script")
        };
        assert_eq!(arguments["args"], json!(["--top", "3"]));
        assert_eq!(arguments["env"], json!({"A": "b=c"}));
        let files: Vec<(&str, &str)> = files.iter().map(|(n, p)| (n.as_str(), p.as_str())).collect();
        assert_eq!(files, [("in.csv", "./orders.csv"), ("notes.txt", "notes.txt")]);
        let wrong = json!({"env": "A"});
        assert!(asking.ask(wrong.as_object().unwrap()).unwrap_err().contains("NAME=VALUE"));
    }
}
