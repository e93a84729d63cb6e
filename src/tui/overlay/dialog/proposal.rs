//! The dialog that decides a proposal: what is written to which file, the digests, and notes. Opening it decides
//! nothing, and Enter closes it without a decision until another button has the focus.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};

use super::parts::{self, Button, Row};
use crate::action::{Action, Context};
use crate::form::Text;
use crate::overlay::{Hint, Outcome, Overlay, centered, frame};
use crate::pane::{Effect, PaneId};
use crate::panes::proposals::changed_lines;
use crate::proposal_requests::ProposalPaneRequest;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Scroll, Seg, break_code, cut_middle, exact, shown};
use skills_api::{CheckResult, ProposalAction, ProposalView};

/// Width of the dialog if there is enough space.
const WIDTH: u16 = 84;
/// Rows below the text: a blank row, notes, a blank row, buttons, a caption.
const FOOT_ROWS: u16 = 6;
/// Width of the labels, in cells.
const LABEL_WIDTH: u16 = 11;
/// Displayed characters of a digest.
const DIGEST_LETTERS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalCommand {
    /// Approve or deny, opened by the key of approval.
    Approve,
    /// Approve or deny, opened by the key of denial.
    Deny,
    /// Restore the previous version.
    RollBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Notes,
    /// The button that decides nothing, reached from the notes.
    AfterNotes,
    Button(usize),
}

pub struct ProposalDialog {
    pane: PaneId,
    view: Arc<ProposalView>,
    command: ProposalCommand,
    notes: Text,
    focus: Focus,
    /// Whether closing discards the notes: it was requested once.
    discarding: bool,
    scroll: Scroll,
    rows: usize,
    notes_area: Rect,
    buttons: Vec<Rect>,
}

impl ProposalDialog {
    /// Creates a dialog with the focus on the button that decides nothing.
    pub fn new(pane: PaneId, view: Arc<ProposalView>, command: ProposalCommand) -> Self {
        Self {
            pane,
            view,
            command,
            notes: Text::new(""),
            focus: Focus::Button(0),
            discarding: false,
            scroll: Scroll::default(),
            rows: 0,
            notes_area: Rect::ZERO,
            buttons: Vec::new(),
        }
    }

    fn choices(&self) -> Vec<Button> {
        match self.command {
            ProposalCommand::RollBack => {
                vec![Button::new(Action::Back, "Cancel"), Button::danger(Action::Execute, "Roll back")]
            }
            ProposalCommand::Approve | ProposalCommand::Deny => {
                let mut buttons =
                    vec![Button::new(Action::Back, "Cancel"), Button::danger(Action::DenyNow, "Deny")];
                if !self.is_blocked() {
                    buttons.push(Button::new(Action::ApproveNow, "Approve"));
                }
                buttons
            }
        }
    }

    /// Returns whether an approval would be rejected.
    fn is_blocked(&self) -> bool {
        self.command != ProposalCommand::RollBack && self.view.blocking_check().is_some()
    }

    fn press(&mut self, action: Action) -> Outcome {
        let proposal_action = match (action, self.command) {
            (Action::Back, _) if self.unsaved().is_some() && !self.discarding => {
                self.discarding = true;
                return Outcome::Stay;
            }
            (Action::Back, _) => return Outcome::Close,
            (Action::Execute, ProposalCommand::RollBack) => ProposalAction::RollBack,
            (Action::ApproveNow, ProposalCommand::Approve | ProposalCommand::Deny) if !self.is_blocked() => {
                ProposalAction::Approve {
                    proposal_digest: Some(self.view.proposal_digest),
                    base_digest: Some(self.view.base_digest),
                }
            }
            (Action::DenyNow, ProposalCommand::Approve | ProposalCommand::Deny) => ProposalAction::Deny,
            _ => return Outcome::Stay,
        };
        let notes = Some(self.notes.text().trim().to_owned()).filter(|notes| !notes.is_empty());
        let proposal_id = self.view.summary.proposal_id.clone();
        let request = ProposalPaneRequest::Act { proposal_id, action: proposal_action, notes };
        Outcome::Done(self.pane, vec![Effect::Proposals(request)])
    }

    /// The notes follow the button that decides nothing, and precede it: Tab reaches no other button from them, nor
    /// before them.
    fn turn(&mut self, forward: bool) {
        let decides = (1..self.choices().len()).map(Focus::Button);
        let start = [Focus::Button(0), Focus::Notes, Focus::AfterNotes];
        let ring: Vec<Focus> = start.into_iter().chain(decides).collect();
        self.focus = parts::next_focus(&ring, self.focus, forward);
    }

    fn button(&self) -> Option<usize> {
        match self.focus {
            Focus::Notes => None,
            Focus::AfterNotes => Some(0),
            Focus::Button(at) => Some(at),
        }
    }

    /// Returns the line below the buttons.
    fn caption(&self, painter: &Painter<'_>) -> Cow<'static, str> {
        let key = |action| painter.key_word(action, &[Context::Dialog]);
        let text = match self.command {
            _ if self.discarding => {
                let close = key(Action::Back);
                return format!(
                    "Unsent notes. Press {close} again to discard, or any other key to continue."
                )
                .into();
            }
            ProposalCommand::RollBack if self.in_text() => {
                return format!("Tab and Esc leave the notes. {} rolls back.", key(Action::Execute)).into();
            }
            _ if self.in_text() => {
                let (approve, deny) = (key(Action::ApproveNow), key(Action::DenyNow));
                if self.is_blocked() {
                    return format!("Tab and Esc leave the notes; then {deny} denies.").into();
                }
                return format!("Tab and Esc leave the notes; then {approve} approves and {deny} denies.")
                    .into();
            }
            ProposalCommand::RollBack => {
                "The file is restored only if it is exactly what the approval wrote."
            }
            ProposalCommand::Approve | ProposalCommand::Deny if self.is_blocked() => {
                "This proposal cannot be approved; you can deny it."
            }
            ProposalCommand::Approve | ProposalCommand::Deny => {
                "Approval writes the file only if it has not changed since the review."
            }
        };
        text.into()
    }

    fn lines(&self, width: u16, painter: &Painter<'_>) -> Vec<RichLine> {
        let view = &self.view;
        let short = |digest: skills_skill::Digest| {
            let letters: String = digest.to_string().chars().take(DIGEST_LETTERS).collect();
            format!("{letters}{}", painter.glyphs.ellipsis)
        };
        let value = width.saturating_sub(LABEL_WIDTH);
        let path = exact(&view.location.display().to_string());
        let path = cut_middle(&path, value, painter.glyphs.ellipsis).into_owned();
        let mut lines = Vec::new();
        let mut row = |label: &str, text: String, role: Role| {
            let broken = break_code(&[Seg::new(text, role)], value);
            lines.extend(parts::labeled(label, LABEL_WIDTH, broken));
        };
        row("skill", shown(view.summary.skill_id.as_str()), Role::Strong);
        let what = match self.command {
            ProposalCommand::RollBack => "restores",
            ProposalCommand::Approve | ProposalCommand::Deny => "writes",
        };
        row(what, path, Role::Text);
        row("proposal", format!("digest {}", short(view.proposal_digest)), Role::Muted);
        let file = match self.command {
            ProposalCommand::RollBack => {
                let (now, then) = (short(view.result_digest), short(view.base_digest));
                format!("digest {now} {} {then}", if painter.glyphs.ascii { "to" } else { "→" })
            }
            ProposalCommand::Approve | ProposalCommand::Deny => format!("digest {}", short(view.base_digest)),
        };
        row("file", file, Role::Muted);
        for check in view.checks.iter().filter(|check| check.result != CheckResult::Pass) {
            let (sign, role) = match check.result {
                CheckResult::Fail => (painter.glyphs.bad, Role::Danger),
                CheckResult::Pass | CheckResult::Unknown => (painter.glyphs.warn, Role::Warning),
            };
            let blocking = view.blocking_check().filter(|_| self.is_blocked());
            let label = match blocking {
                Some(blocking) if blocking.check == check.check => "blocked".to_owned(),
                _ => check.check.to_string(),
            };
            row(&label, format!("{sign} {}", shown(&check.evidence)), role);
        }
        lines.push(RichLine::default());
        lines.extend(changed_lines(&view.hunks, width, self.command == ProposalCommand::RollBack));
        lines
    }
}

impl ProposalDialog {
    /// Returns the keys outside of the notes.
    fn button_hints(&self) -> Vec<Hint> {
        let mut hints = match self.command {
            ProposalCommand::RollBack => vec![Hint::new(Action::Execute, "roll back")],
            ProposalCommand::Approve | ProposalCommand::Deny if self.is_blocked() => {
                vec![Hint::new(Action::DenyNow, "deny")]
            }
            ProposalCommand::Approve | ProposalCommand::Deny => {
                vec![Hint::new(Action::ApproveNow, "approve"), Hint::new(Action::DenyNow, "deny")]
            }
        };
        hints.extend([
            Hint::new(Action::NextPart, "next"),
            Hint::new(Action::PageDown, "scroll"),
            Hint::new(Action::Back, "back"),
        ]);
        hints
    }
}

impl Overlay for ProposalDialog {
    fn in_text(&self) -> bool {
        self.focus == Focus::Notes
    }

    fn contexts(&self) -> Vec<Context> {
        parts::contexts(self.in_text())
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        if !matches!(action, Some(Action::Back | Action::Open)) {
            self.discarding = false;
        }
        match (action, self.focus) {
            (Some(Action::LeaveField | Action::Back), Focus::Notes) => self.focus = Focus::AfterNotes,
            // A user who continues to write must not decide by a letter.
            (Some(Action::Open | Action::Submit), Focus::Notes) => {}
            (Some(Action::NextPart | Action::Complete), _) => self.turn(true),
            (Some(Action::PreviousPart), _) => self.turn(false),
            (Some(Action::Execute), _) => return self.press(Action::Execute),
            (_, Focus::Notes) => {
                self.notes.key(key);
            }
            (Some(Action::Open), _) => {
                let button = self.button().and_then(|at| self.choices().get(at).map(|button| button.action));
                return self.press(button.unwrap_or(Action::Back));
            }
            (Some(Action::Up), _) => self.scroll.roll(-1, self.rows),
            (Some(Action::Down), _) => self.scroll.roll(1, self.rows),
            (Some(Action::PageUp), _) => self.scroll.roll(-self.scroll.page(), self.rows),
            (Some(Action::PageDown), _) => self.scroll.roll(self.scroll.page(), self.rows),
            (Some(action @ (Action::Back | Action::ApproveNow | Action::DenyNow)), _) => {
                return self.press(action);
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn unsaved(&self) -> Option<String> {
        let is_empty = self.notes.text().trim().is_empty();
        (!is_empty).then(|| "The notes on this proposal have not been sent; no decision was made.".to_owned())
    }

    fn paste(&mut self, text: &str) -> Outcome {
        (self.focus, self.discarding) = (Focus::Notes, false);
        self.notes.insert(text);
        Outcome::Stay
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        self.scroll.roll(rows, self.rows);
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        if let Some(button) = parts::button_at(&self.buttons, at) {
            let action = self.choices().get(button).map_or(Action::Back, |button| button.action);
            return self.press(action);
        }
        if self.notes_area.contains(at) {
            self.focus = Focus::Notes;
            self.notes.click(at);
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        if self.in_text() {
            return vec![Hint::new(Action::LeaveField, "leave the notes")];
        }
        self.button_hints()
    }

    fn help_items(&self) -> Vec<Hint> {
        let mut items = parts::with_form_keys(self.hints());
        items.extend(self.button_hints());
        items
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, _now: Instant) -> Option<Position> {
        let width = WIDTH.min(area.width);
        let lines = self.lines(width.saturating_sub(6), painter);
        self.rows = lines.len();
        let requested = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(FOOT_ROWS + 2);
        let outer = centered(area, width, requested.min(area.height));
        let title = match self.command {
            ProposalCommand::RollBack => "Roll back this proposal?".to_owned(),
            ProposalCommand::Approve | ProposalCommand::Deny => {
                format!("{} Your decision", painter.glyphs.waiting)
            }
        };
        let by = format!("proposed by {}", shown(&self.view.summary.proposed_by));
        let inside = frame(outer, painter, &title, &by, true);
        let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
        let body = Rect { height: inside.height.saturating_sub(FOOT_ROWS), ..inside };
        parts::scrolled(body, painter, &lines, &mut self.scroll);
        self.notes_area = Rect { y: body.bottom() + 1, height: 2, ..inside };
        let row = Row {
            label: "notes",
            hint: "optional, stored with the decision (Tab)",
            note: "",
            wrong: false,
            focused: self.in_text(),
        };
        let cursor = parts::text(self.notes_area, painter, &mut self.notes, &row);
        let buttons = Rect { y: body.bottom() + 4, height: 1, ..inside };
        self.buttons = parts::buttons(buttons, painter, (&self.choices(), &[Context::Dialog]), self.button());
        let role = if self.discarding { Role::Warning } else { Role::Muted };
        let caption = self.caption(painter);
        painter.put(inside.x, body.bottom() + 5, &caption, role, inside.width);
        cursor
    }
}
