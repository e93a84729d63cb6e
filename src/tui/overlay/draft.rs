//! The editor of a description: what it would change is measured at each keystroke, before anything is written.

use std::sync::Arc;
use std::time::Instant;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::{Hint, Outcome, Overlay, frame};
use crate::action::{Action, Context};
use crate::form::Text;
use crate::pane::{Effect, Message, PaneId};
use crate::theme::Role;
use crate::widgets::measure::shown;
use crate::widgets::pen::Pen;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::scroll::Scroll;
use crate::widgets::wrap::wrap;
use skills_api::{DraftPlace, DraftReport, DraftRequest};
use skills_skill::{Severity, SkillId};

/// Rows of the text field at most.
const MAX_FIELD_HEIGHT: u16 = 8;
/// Queries of each kind that are listed.
const MAX_QUERIES: usize = 12;

/// Cells of the labels.
const LABEL_WIDTH: u16 = 10;

/// A label, a text and its role.
type Line = (&'static str, String, Role);

/// A skill whose description is edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drafting {
    /// The skill.
    pub skill_id: SkillId,
    /// The description as it is in the file.
    pub description: String,
    /// The text to begin with, where it is another one.
    pub proposed: Option<String>,
    /// The request of Discover, where there is one.
    pub intent: Option<String>,
}

/// The overlay.
pub struct DraftEditor {
    pane: PaneId,
    skill: Drafting,
    text: Text,
    generation: u64,
    report: Option<Result<Arc<DraftReport>, String>>,
    /// The generation that the report is about.
    reported: u64,
    /// Whether the next Ctrl-S writes: the difference is shown.
    confirming: bool,
    written: bool,
    scroll: Scroll,
    rows: usize,
    field: Rect,
}

impl DraftEditor {
    /// The editor, and the request for the figures of the present description.
    #[must_use]
    pub fn open(pane: PaneId, skill: Drafting) -> (Self, Effect) {
        let mut editor = Self {
            pane,
            text: Text::new(skill.proposed.as_deref().unwrap_or(&skill.description)),
            skill,
            generation: 0,
            report: None,
            reported: 0,
            confirming: false,
            written: false,
            scroll: Scroll::default(),
            rows: 0,
            field: Rect::ZERO,
        };
        let effect = editor.measure();
        (editor, effect)
    }

    fn is_changed(&self) -> bool {
        self.text.text() != self.skill.description
    }

    fn measure(&mut self) -> Effect {
        self.generation += 1;
        Effect::Draft {
            request: DraftRequest {
                skill_id: self.skill.skill_id.to_string(),
                description: Some(self.text.text().to_owned()),
                intent: self.skill.intent.clone(),
                ..DraftRequest::default()
            },
            generation: self.generation,
        }
    }

    fn changed(&mut self) -> Outcome {
        (self.confirming, self.written) = (false, false);
        if self.text.text().trim().is_empty() {
            self.generation += 1;
            self.reported = self.generation;
            self.report = Some(Err("a description needs text".to_owned()));
            return Outcome::Stay;
        }
        let effect = self.measure();
        Outcome::Ask(self.pane, vec![effect])
    }

    fn save(&mut self) -> Outcome {
        if !self.is_changed() || self.text.text().trim().is_empty() {
            return Outcome::Stay;
        }
        if !self.confirming {
            self.confirming = true;
            self.scroll = Scroll::default();
            return Outcome::Stay;
        }
        self.confirming = false;
        let write = Effect::WriteDescription {
            skill_id: self.skill.skill_id.clone(),
            present: self.skill.description.clone(),
            description: self.text.text().to_owned(),
        };
        Outcome::Ask(self.pane, vec![write])
    }

    fn lines(&self) -> Vec<Line> {
        if self.confirming {
            return vec![
                (
                    "",
                    "Write this description? Ctrl-S confirms, any other key cancels.".to_owned(),
                    Role::Warning,
                ),
                ("-", self.skill.description.clone(), Role::Danger),
                ("+", self.text.text().to_owned(), Role::Success),
            ];
        }
        let mut out = Vec::new();
        if self.written {
            out.push((
                "",
                "Description written; the rest of the file is unchanged.".to_owned(),
                Role::Success,
            ));
        }
        match &self.report {
            None => out.push(("", "measuring".to_owned(), Role::Muted)),
            Some(Err(why)) => out.push(("", why.clone(), Role::Danger)),
            Some(Ok(report)) => push_report(report, self.skill.intent.as_deref(), &mut out),
        }
        out
    }
}

fn push_report(report: &DraftReport, intent: Option<&str>, out: &mut Vec<Line>) {
    let place = |place: &DraftPlace| match (place.rank, place.score) {
        (Some(1), Some(score)) if !place.fits => format!("first ({score:.2}), below the threshold"),
        (Some(1), Some(score)) => format!("first ({score:.2})"),
        (Some(rank), Some(score)) => format!("rank {rank} ({score:.2})"),
        _ => "not a result".to_owned(),
    };
    if let (Some(intent), Some(before), Some(after)) = (intent, &report.before, &report.after) {
        let role = match (before.rank, after.rank) {
            _ if after.fits != before.fits => {
                if after.fits {
                    Role::Success
                } else {
                    Role::Danger
                }
            }
            (Some(before), Some(after)) if after < before => Role::Success,
            (None, Some(_)) => Role::Success,
            (Some(before), Some(after)) if after > before => Role::Danger,
            (Some(_), None) => Role::Danger,
            _ => Role::Text,
        };
        out.push(("request", intent.to_owned(), Role::Muted));
        out.push(("", format!("{} -> {}", place(before), place(after)), role));
    }
    match &report.golden {
        None => out.push(("golden", "no root has a golden.yaml".to_owned(), Role::Muted)),
        Some(golden) => {
            let (before, after) = (&golden.before, &golden.after);
            let role = |up: bool, same: bool| match (same, up) {
                (true, _) => Role::Text,
                (false, true) => Role::Success,
                (false, false) => Role::Danger,
            };
            let figure = |name: &'static str, old: f64, new: f64| {
                (name, format!("{old:.3} -> {new:.3}"), role(new > old, (new - old).abs() < 5e-4))
            };
            out.push(figure("P@1", before.p_at_1, after.p_at_1));
            out.push(figure("MRR@10", before.mrr_at_10, after.mrr_at_10));
            let (old, new) = (before.false_triggers, after.false_triggers);
            out.push(("triggers", format!("{old} -> {new} false"), role(new < old, new == old)));
            let name = |id: &Option<SkillId>| id.as_ref().map_or("none".to_owned(), ToString::to_string);
            for (title, queries, role) in
                [("won", &golden.won, Role::Success), ("lost", &golden.lost, Role::Danger)]
            {
                for one in queries.iter().take(MAX_QUERIES) {
                    let line = format!("{} ({} -> {})", one.query, name(&one.from), name(&one.to));
                    out.push((title, line, role));
                }
                if queries.len() > MAX_QUERIES {
                    out.push(("", format!("and {} more", queries.len() - MAX_QUERIES), Role::Muted));
                }
            }
        }
    }
    for advice in &report.advice {
        let then = match advice.rank {
            Some(1) => "then first".to_owned(),
            Some(rank) => format!("then rank {rank}"),
            None => "still not a result".to_owned(),
        };
        let line = format!("add “{}”: {:+.2}, {then} for “{}”", advice.word, advice.gain, advice.query);
        out.push(("advice", line, Role::Info));
    }
    let characters = report.description.chars().count();
    out.push(("length", format!("{characters} characters, {} tokens", report.tokens), Role::Text));
    for shown in report.shown.iter().filter(|shown| shown.characters < shown.of) {
        let line = format!("{} shows {} of {} characters", shown.client, shown.characters, shown.of);
        out.push(("clients", line, Role::Warning));
    }
    for finding in &report.findings {
        let role = match finding.severity {
            Severity::Error => Role::Danger,
            Severity::Warning => Role::Warning,
            Severity::Info => Role::Muted,
        };
        out.push(("finding", format!("{} ({})", finding.message, finding.code), role));
    }
}

impl Overlay for DraftEditor {
    fn in_text(&self) -> bool {
        true
    }

    fn contexts(&self) -> Vec<Context> {
        vec![Context::Sheet, Context::Field]
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        match action {
            Some(Action::CarryOut) => return self.save(),
            Some(Action::Back | Action::Leave) if self.confirming => self.confirming = false,
            Some(Action::Back | Action::Leave) => return Outcome::Close,
            Some(Action::PageUp) => self.scroll.roll(-self.scroll.page(), self.rows),
            Some(Action::PageDown) => self.scroll.roll(self.scroll.page(), self.rows),
            _ => {
                if self.text.key(key) {
                    return self.changed();
                }
                self.confirming = false;
            }
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        // A description is one paragraph: line breaks of the clipboard become spaces.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.text.insert(&text) { self.changed() } else { Outcome::Stay }
    }

    fn told(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Draft(generation, report) if *generation == self.generation => {
                self.reported = *generation;
                self.report = Some(report.clone().map_err(|error| error.message));
                Outcome::Heard
            }
            Message::Draft(..) => Outcome::Heard,
            Message::DescriptionWritten(skill, Ok(description)) if *skill == self.skill.skill_id => {
                self.skill.description.clone_from(description);
                self.written = true;
                Outcome::Heard
            }
            Message::DescriptionWritten(_, Err(error)) => {
                self.report = Some(Err(error.message.clone()));
                Outcome::Heard
            }
            _ => Outcome::Stay,
        }
    }

    fn mouse(&mut self, event: MouseEvent) -> Outcome {
        match event.kind {
            MouseEventKind::ScrollUp => self.scroll.roll(-3, self.rows),
            MouseEventKind::ScrollDown => self.scroll.roll(3, self.rows),
            MouseEventKind::Down(MouseButton::Left) => {
                let at = Position::new(event.column, event.row);
                if self.field.contains(at) {
                    self.text.click(at);
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        vec![
            Hint { action: Action::CarryOut, label: "write" },
            Hint { action: Action::PageDown, label: "scroll" },
            Hint { action: Action::Back, label: "close" },
        ]
    }

    fn draw(&mut self, area: Rect, pen: &mut Pen<'_>, _now: Instant) -> Option<Position> {
        let title = format!("Draft of {}", shown(self.skill.skill_id.as_str()));
        let note = match (self.reported < self.generation, self.is_changed()) {
            (true, _) => "measuring",
            (false, true) => "not written",
            (false, false) => "as in the file",
        };
        let inside = frame(area, pen, &title, note, false);
        let wanted = u16::try_from(self.text.height(inside.width)).unwrap_or(u16::MAX);
        let height = wanted.clamp(2, MAX_FIELD_HEIGHT).min(inside.height);
        self.field = Rect { height, ..inside };
        pen.band(self.field, Role::Field);
        let style = pen.theme.style(Role::Field).patch(pen.theme.style(Role::Strong));
        let cursor = self.text.draw(self.field, pen.buf, style);
        let below =
            Rect { y: inside.y + height + 1, height: inside.height.saturating_sub(height + 1), ..inside };
        let mut lines: Vec<RichLine> = Vec::new();
        for (label, text, role) in self.lines() {
            let wrapped =
                wrap(&[Seg::new(shown(&text), role)], below.width.saturating_sub(LABEL_WIDTH).max(10));
            for (at, segs) in wrapped.into_iter().enumerate() {
                let label = if at == 0 { label } else { "" };
                let label = format!("{label:<width$}", width = usize::from(LABEL_WIDTH));
                let mut line = vec![Seg::new(label, Role::Muted)];
                line.extend(segs);
                lines.push(RichLine::from_segs(line));
            }
        }
        self.rows = lines.len();
        self.scroll.height = usize::from(below.height);
        self.scroll.roll(0, self.rows);
        for (line, y) in lines.iter().skip(self.scroll.offset).take(usize::from(below.height)).zip(below.y..)
        {
            pen.line(below.x, y, line, below.width);
        }
        cursor
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    fn editor() -> DraftEditor {
        let skill = Drafting {
            skill_id: SkillId::new("statements"),
            description: "Reads statements.".to_owned(),
            proposed: None,
            intent: Some("read my statement".to_owned()),
        };
        let (editor, effect) = DraftEditor::open(PaneId::Browse, skill);
        assert!(matches!(effect, Effect::Draft { generation: 1, .. }));
        editor
    }

    fn report(description: &str) -> Arc<DraftReport> {
        Arc::new(DraftReport {
            skill_id: SkillId::new("statements"),
            description: description.to_owned(),
            tokens: 7,
            before: None,
            after: None,
            golden: None,
            advice: Vec::new(),
            clauses: Vec::new(),
            findings: Vec::new(),
            shown: Vec::new(),
        })
    }

    fn text(editor: &DraftEditor) -> String {
        editor.lines().iter().map(|(label, text, _)| format!("{label} {text}\n")).collect()
    }

    #[test]
    fn the_newest_text_wins() {
        let mut editor = editor();
        let Outcome::Ask(_, effects) = editor.key(key(KeyCode::Char('x')), None) else { panic!() };
        let [Effect::Draft { request, generation: 2 }] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(request.description.as_deref(), Some("Reads statements.x"));
        assert_eq!(editor.told(&Message::Draft(1, Ok(report("old")))), Outcome::Heard);
        assert!(text(&editor).contains("measuring"), "a stale reply is dropped");
        editor.told(&Message::Draft(2, Ok(report("Reads statements.x"))));
        assert!(text(&editor).contains("length 18 characters, 7 tokens"), "{}", text(&editor));
    }

    #[test]
    fn writing_shows_the_difference_first() {
        let mut editor = editor();
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::CarryOut)), Outcome::Stay, "nothing to write");
        editor.key(key(KeyCode::Char('!')), None);
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::CarryOut)), Outcome::Stay);
        assert!(text(&editor).contains("- Reads statements.\n+ Reads statements.!"), "{}", text(&editor));
        let Outcome::Ask(_, effects) = editor.key(key(KeyCode::Null), Some(Action::CarryOut)) else {
            panic!()
        };
        let [Effect::WriteDescription { present, description, .. }] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert_eq!((present.as_str(), description.as_str()), ("Reads statements.", "Reads statements.!"));
        let written = Message::DescriptionWritten(SkillId::new("statements"), Ok(description.clone()));
        editor.told(&written);
        assert!(!editor.is_changed());
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::Back)), Outcome::Close);
    }

    #[test]
    fn a_draft_without_text_is_refused_here() {
        let mut editor = editor();
        while !editor.text.is_empty() {
            editor.key(key(KeyCode::Backspace), None);
        }
        assert!(text(&editor).contains("a description needs text"));
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::CarryOut)), Outcome::Stay);
    }
}
