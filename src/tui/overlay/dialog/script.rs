//! The dialog that confirms a script: exactly what would run, in a text that scrolls, and its digest. Enter closes it
//! without running anything until the other button has the focus.

use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use super::parts::{self, Button, LABEL};
use super::prompt::name_of_script;
use crate::action::{Action, Context};
use crate::overlay::{Hint, Outcome, Overlay, centered, frame};
use crate::pane::{Effect, PaneId};
use crate::session_requests::{ScriptCall, SessionRequest};
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Scroll, Seg, break_code, exact};
use skills_session::ScriptPreview;

/// Width of the box where there is room.
const WIDTH: u16 = 84;
/// Rows below the text: a blank row and the buttons.
const FOOT_ROWS: u16 = 2;

pub struct ScriptDialog {
    pane: PaneId,
    call: ScriptCall,
    preview: ScriptPreview,
    /// The button with the focus.
    focus: usize,
    scroll: Scroll,
    rows: usize,
    buttons: Vec<Rect>,
}

impl ScriptDialog {
    /// Creates a dialog with the focus on "Cancel".
    pub fn new(pane: PaneId, call: ScriptCall, preview: ScriptPreview) -> Self {
        Self { pane, call, preview, focus: 0, scroll: Scroll::default(), rows: 0, buttons: Vec::new() }
    }

    fn choices() -> [Button; 2] {
        [Button::new(Action::Back, "Cancel"), Button::danger(Action::Execute, "Run it")]
    }

    fn press(&self, action: Action) -> Outcome {
        match action {
            Action::Back => Outcome::Close,
            Action::Execute => {
                let run = SessionRequest::Script {
                    call: self.call.clone(),
                    confirmed: Some(self.preview.inputs_digest.clone()),
                };
                // What was typed for it is used now.
                let typed = name_of_script(&self.preview.skill, &self.preview.path);
                let effects = vec![Effect::Keep(typed, Map::new()), Effect::Session(run)];
                Outcome::Done(self.pane, effects)
            }
            _ => Outcome::Stay,
        }
    }

    fn press_at(&self, index: usize) -> Outcome {
        let action = Self::choices().get(index).map_or(Action::Back, |button| button.action);
        self.press(action)
    }

    fn lines(&self, width: u16) -> Vec<RichLine> {
        let preview = &self.preview;
        // Each in quotes: blanks are part of an argument.
        let quoted = |text: &str| Value::from(text).to_string();
        let args: Vec<String> = preview.args.iter().map(|arg| quoted(arg)).collect();
        let env = preview.env.iter().map(|(name, value)| quoted(&format!("{name}={value}")));
        let mut facts = vec![
            ("script", preview.path.clone()),
            ("sha256", preview.script_digest.clone()),
            ("skill", preview.skill.clone()),
            ("arguments", if args.is_empty() { "none".to_owned() } else { args.join(" ") }),
            ("variables", env.collect::<Vec<_>>().join(" ")),
        ];
        for (at, (name, digest)) in preview.files.iter().enumerate() {
            let from = self.call.files.get(name).map(String::as_str).unwrap_or_default();
            facts.push((if at == 0 { "files" } else { "" }, format!("{name} = {from}")));
            facts.push(("sha256", digest.clone()));
        }
        facts.extend([
            ("directory", preview.workdir.clone().unwrap_or_default()),
            ("isolation", preview.isolation.clone()),
            ("digest", preview.inputs_digest.clone()),
            ("", "Only a call with this digest is run.".to_owned()),
        ]);
        let mut lines = Vec::new();
        for (label, text) in facts.into_iter().filter(|(_, text)| !text.is_empty()) {
            let segs = [Seg::new(exact(&text), if label.is_empty() { Role::Muted } else { Role::Text })];
            lines.extend(parts::labeled(label, LABEL, break_code(&segs, width.saturating_sub(LABEL))));
        }
        lines
    }
}

impl Overlay for ScriptDialog {
    fn in_text(&self) -> bool {
        false
    }

    fn contexts(&self) -> Vec<Context> {
        vec![Context::Dialog]
    }

    fn key(&mut self, _key: KeyEvent, action: Option<Action>) -> Outcome {
        match action {
            Some(Action::NextPart | Action::PreviousPart) => self.focus = 1 - self.focus,
            Some(Action::Open) => return self.press_at(self.focus),
            Some(Action::Up) => self.scroll.roll(-1, self.rows),
            Some(Action::Down) => self.scroll.roll(1, self.rows),
            Some(Action::PageUp) => self.scroll.roll(-self.scroll.page(), self.rows),
            Some(Action::PageDown) => self.scroll.roll(self.scroll.page(), self.rows),
            Some(action) => return self.press(action),
            None => {}
        }
        Outcome::Stay
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        self.scroll.roll(rows, self.rows);
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        parts::button_at(&self.buttons, at).map_or(Outcome::Stay, |index| self.press_at(index))
    }

    fn hints(&self) -> Vec<Hint> {
        let mut hints = vec![
            Hint::new(Action::NextPart, "next"),
            Hint::new(Action::Open, "select"),
            Hint::new(Action::Execute, "run it"),
        ];
        if self.rows > self.scroll.height {
            hints.push(Hint::new(Action::PageDown, "scroll"));
        }
        hints.push(Hint::new(Action::Back, "cancel"));
        hints
    }

    fn help_items(&self) -> Vec<Hint> {
        let scroll = [Action::Up, Action::PageDown].map(|action| Hint { action, label: "scroll" });
        self.hints().into_iter().chain(scroll).collect()
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, _now: Instant) -> Option<Position> {
        let width = WIDTH.min(area.width);
        let lines = self.lines(width.saturating_sub(6));
        self.rows = lines.len();
        let requested = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(FOOT_ROWS + 2);
        let outer = centered(area, width, requested.min(area.height));
        let inside = frame(outer, painter, "Run this script?", "", true);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let body = Rect { height: inside.height.saturating_sub(FOOT_ROWS), ..inside };
        parts::scrolled(body, painter, &lines, &mut self.scroll);
        let row = Rect { y: body.bottom() + 1, height: 1, ..inside };
        self.buttons = parts::buttons(row, painter, (&Self::choices(), &[Context::Dialog]), Some(self.focus));
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::picture;

    fn dialog() -> ScriptDialog {
        let preview = serde_json::from_value(json!({
            "skill": "csv", "skill_digest": "s1", "path": "scripts/a.py", "script_digest": "a1".repeat(32),
            "bundle_digest": "b1", "args": ["--top", "3 4"], "env": { "MODE": "dry" }, "workdir": null,
            "files": { "in.csv": "f1".repeat(32) }, "isolation": "sandbox: landlock, seccomp",
            "inputs_digest": "9f".repeat(32),
        }));
        let call = ScriptCall {
            session: "s".to_owned(),
            arguments: json!({}),
            files: [("in.csv".to_owned(), "./orders.csv".to_owned())].into(),
        };
        ScriptDialog::new(PaneId::Session, call, preview.unwrap())
    }

    #[test]
    fn the_digest_of_what_is_shown_is_confirmed() {
        let mut dialog = dialog();
        let text: Vec<String> = dialog.lines(70).iter().map(RichLine::plain_text).collect();
        let text = text.join("\n");
        for part in ["scripts/a.py", "a1", "csv", r#""--top" "3 4""#, "MODE=dry", "./orders.csv", "f1", "9f"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let none = crossterm::event::KeyEvent::from(crossterm::event::KeyCode::Null);
        assert!(matches!(dialog.key(none, Some(Action::Open)), Outcome::Close), "no has the focus");
        dialog.key(none, Some(Action::NextPart));
        let Outcome::Done(_, effects) = dialog.key(none, Some(Action::Open)) else {
            unreachable!("the other button runs it")
        };
        let run = SessionRequest::Script { call: dialog.call.clone(), confirmed: Some("9f".repeat(32)) };
        assert_eq!(effects.last(), Some(&Effect::Session(run)));
    }

    #[test]
    fn spaces_of_arguments_are_exact() {
        let mut dialog = dialog();
        dialog.preview.args = vec!["a    b".to_owned(), "c\td".to_owned()];
        let lines = dialog.lines(70);
        assert!(lines.iter().any(|line| line.plain_text().ends_with(r#""a    b" "c\td""#)), "{lines:?}");
    }

    fn screen_text(dialog: &mut ScriptDialog, width: u16, height: u16) -> String {
        let draw = |painter: &mut Painter<'_>| {
            dialog.draw(Rect::new(0, 0, width, height), painter, Instant::now());
        };
        picture::text(&picture::painted(width, height, draw))
    }

    #[test]
    fn complete_call_is_shown_at_each_width() {
        insta::assert_snapshot!("script-80x24", screen_text(&mut dialog(), 80, 24));
        insta::assert_snapshot!("script-120x36", screen_text(&mut dialog(), 120, 36));
        let mut small = dialog();
        assert!(screen_text(&mut small, 80, 12).contains("more below"));
        small.scroll.roll(100, small.rows);
        assert!(screen_text(&mut small, 80, 12).contains("Only a call with this digest is run."));
    }
}
