//! Plays a script: the next input and its time, the caption below the screen, and stepping back.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{DemoOptions, Input};
use crate::command_lines::CommandLines;
use crate::glyphs::Glyphs;
use crate::keymap::{Keymap, parse_key};
use crate::theme::{Role, Theme};
use crate::widgets::{Painter, cut_end};

/// Delay between two typed characters, so that an audience can read along.
const LETTER: Duration = Duration::from_millis(45);
/// Timeout for an awaited text.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of rows of the caption.
pub const ROWS: u16 = 2;

/// A presenter's command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoCommand {
    /// The key has no meaning for the player.
    None,
    /// The next step, or the end of the current one.
    Forward,
    /// The previous step.
    Back,
    /// Ends the demonstration; the workbench keeps its state.
    Quit,
}

/// A demonstration in progress.
pub struct Player {
    play: DemoOptions,
    /// Number of steps begun.
    started: usize,
    waiting: VecDeque<Input>,
    letters: VecDeque<char>,
    /// Time from which the next input is due.
    since: Instant,
    /// Frames of the completed steps.
    shots: Vec<Buffer>,
    /// Index of the frame being shown.
    looking: Option<usize>,
    failed: Option<String>,
    rested: bool,
    /// Steps that did not reach the state they waited for.
    missed_steps: Vec<String>,
    /// Whether it played automatically to its end.
    ended: bool,
}

impl Player {
    /// Creates a player before the first step.
    pub fn new(mut play: DemoOptions, now: Instant) -> Self {
        // The script may contain paths and names too. Texts to wait for are redacted because they are searched for on
        // the redacted screen.
        play.script.title = play.redaction.text(&play.script.title);
        for step in &mut play.script.steps {
            step.say = play.redaction.text(&step.say);
            for input in &mut step.inputs {
                if let Input::Until { until } = input {
                    *until = play.redaction.on_screen(until);
                }
            }
        }
        Self {
            play,
            started: 0,
            waiting: VecDeque::new(),
            letters: VecDeque::new(),
            since: now,
            shots: Vec::new(),
            looking: None,
            failed: None,
            rested: false,
            missed_steps: Vec::new(),
            ended: false,
        }
    }

    /// Returns whether it played automatically to its end, the last step included.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Returns the steps that did not reach the state they waited for, each with that text.
    pub fn missed_steps(&self) -> &[String] {
        &self.missed_steps
    }

    pub fn play(&self) -> &DemoOptions {
        &self.play
    }

    /// Returns the command of a presenter's key. All other input is ignored: during a demonstration only the script
    /// controls the workbench.
    pub fn key(&self, event: &Event) -> DemoCommand {
        let Event::Key(key) = event else { return DemoCommand::None };
        if key.kind == KeyEventKind::Release {
            return DemoCommand::None;
        }
        match key.code {
            KeyCode::Right | KeyCode::PageDown | KeyCode::Enter | KeyCode::Char(' ' | 'n') => {
                DemoCommand::Forward
            }
            KeyCode::Left | KeyCode::PageUp | KeyCode::Backspace | KeyCode::Char('p') => DemoCommand::Back,
            KeyCode::Char('q') | KeyCode::Esc => DemoCommand::Quit,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => DemoCommand::Quit,
            _ => DemoCommand::None,
        }
    }

    /// Returns whether all inputs of the current step have been sent.
    pub fn resting(&self) -> bool {
        self.waiting.is_empty() && self.letters.is_empty()
    }

    /// Returns whether every step is complete.
    pub fn over(&self) -> bool {
        self.resting() && self.started == self.play.script.steps.len()
    }

    /// Returns the index of the step being shown, from 0; `None` before the first.
    pub fn step(&self) -> Option<usize> {
        self.looking.or_else(|| self.started.checked_sub(1))
    }

    /// Moves forward: to the next captured frame, else to the next step. If a step is still in progress, its remaining
    /// text is typed at once.
    pub fn forward(&mut self, now: Instant) {
        if let Some(at) = self.looking {
            self.looking = (at + 1 < self.shots.len()).then_some(at + 1);
            return;
        }
        if !self.resting() {
            // Only typing is accelerated: waits keep their time.
            if !self.letters.is_empty() {
                self.since = now.checked_sub(LETTER).unwrap_or(now);
            }
            return;
        }
        if let Some(step) = self.play.script.steps.get(self.started) {
            self.waiting = step.inputs.clone().into();
            self.started += 1;
            self.since = now;
            self.failed = None;
            self.rested = false;
        }
    }

    /// Shows the frame of the previous step.
    pub fn back(&mut self) {
        let present = self.looking.unwrap_or(self.shots.len().saturating_sub(1));
        if present > 0 && !self.shots.is_empty() {
            self.looking = Some(present - 1);
        }
    }

    /// Returns the next input when it is due. `settled` means that nothing is in progress, `screen` is what the
    /// audience sees.
    pub fn next(&mut self, now: Instant, is_idle: bool, screen: &Buffer) -> Option<KeyEvent> {
        if self.looking.is_some() {
            return None;
        }
        if let Some(&letter) = self.letters.front() {
            if now < self.since + LETTER {
                return None;
            }
            self.letters.pop_front();
            self.since = now;
            return Some(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE));
        }
        match self.waiting.front()? {
            Input::Until { until } => {
                if text_of(screen).contains(until.as_str()) {
                    self.waiting.pop_front();
                    self.since = now;
                } else if now > self.since + WAIT_TIMEOUT {
                    let why = format!("timed out waiting for {until:?}");
                    self.missed_steps.push(format!("step {}: {why}", self.started));
                    self.failed = Some(why);
                    self.waiting.clear();
                }
                None
            }
            _ if !is_idle => None,
            Input::Type { r#type } => {
                self.letters = r#type.chars().collect();
                self.waiting.pop_front();
                self.since = now;
                None
            }
            Input::Key(name) => {
                let key = parse_key(name).ok();
                self.waiting.pop_front();
                self.since = now;
                match key?.codes {
                    crokey::OneToThree::One(code) => Some(KeyEvent::new(code, key?.modifiers)),
                    _ => None,
                }
            }
        }
    }

    /// Returns when the player next acts without input.
    pub fn wake(&self, now: Instant) -> Option<Instant> {
        if self.looking.is_some() {
            return None;
        }
        if !self.resting() {
            return Some(now + LETTER.min(Duration::from_millis(30)));
        }
        let pause = self.play.auto?;
        (!self.ended).then(|| self.since + pause)
    }

    /// Advances time: with automatic playback, begins the next step, and ends after the last one.
    pub fn tick(&mut self, now: Instant) {
        if self.resting()
            && self.looking.is_none()
            && self.play.auto.is_some_and(|pause| now >= self.since + pause)
        {
            self.ended = self.over();
            self.forward(now);
        }
    }

    /// Captures the frame of a completed step. Returns its number if it is new.
    pub fn seen(&mut self, screen: &Buffer, is_idle: bool) -> Option<usize> {
        if !self.resting() || !is_idle || self.looking.is_some() || self.started == 0 || self.rested {
            return None;
        }
        self.rested = true;
        self.shots.truncate(self.started - 1);
        self.shots.push(screen.clone());
        Some(self.started)
    }

    /// Returns the captured frame being shown, if any.
    pub fn looked_at(&self) -> Option<&Buffer> {
        self.shots.get(self.looking?)
    }

    /// Draws the caption and the keys below the screen.
    pub fn draw(&self, area: Rect, buf: &mut Buffer, (theme, glyphs, keymap): (&Theme, &Glyphs, &Keymap)) {
        let commands = &CommandLines::default();
        let mut painter = Painter { buf, theme, glyphs, keymap, commands };
        painter.run(area.x, area.y, glyphs.heavy, area.width, Role::Accent);
        let row = Rect { y: area.y + 1, height: 1, ..area };
        painter.run(row.x, row.y, " ", row.width, Role::Text);
        let steps = self.play.script.steps.len();
        let step = self.step();
        let place = match step {
            None => format!("0/{steps}"),
            Some(at) => format!("{}/{steps}", at + 1),
        };
        let keys = if glyphs.ascii {
            "Right next  Left back  q Esc end script"
        } else {
            "→ next  ← back  q Esc end script"
        };
        let keys = match (self.looking.is_some(), self.over()) {
            (true, _) => format!(" earlier step  {keys} "),
            (false, true) => format!(" end of demo  {keys} "),
            _ => format!(" {keys} "),
        };
        // Keys are drawn on the rule, so that the caption has the entire row at any width.
        painter.right(area.right().saturating_sub(1), area.y, &keys, Role::Muted);
        let at = row.right().saturating_sub(1);
        let x = painter.put(row.x + 1, row.y, &place, Role::Muted, 8);
        let message = match (&self.failed, step) {
            (Some(why), _) => why.as_str(),
            (None, None) => self.play.script.title.as_str(),
            (None, Some(step)) => self.play.script.steps.get(step).map_or("", |step| step.say.as_str()),
        };
        let available = at.saturating_sub(x + 3);
        painter.put(x + 2, row.y, &cut_end(message, available, glyphs.ellipsis), Role::Strong, available);
    }
}

/// Returns the text of a screen, row by row.
fn text_of(screen: &Buffer) -> String {
    let width = usize::from(screen.area.width.max(1));
    let mut out = String::new();
    for row in screen.content.chunks(width) {
        out.extend(row.iter().map(ratatui::buffer::Cell::symbol));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{Redaction, Script};

    fn player(source: &str) -> (Player, Instant) {
        let now = Instant::now();
        let script = Script::parse(source).unwrap();
        let play =
            DemoOptions { script, auto: None, record: None, pictures: None, redaction: Redaction::default() };
        (Player::new(play, now), now)
    }

    fn screen(text: &str) -> Buffer {
        let mut screen = Buffer::empty(Rect::new(0, 0, 30, 2));
        screen.set_string(0, 0, text, ratatui::style::Style::new());
        screen
    }

    const TWO_STEP_SCRIPT: &str =
        "title: t\nsteps:\n- say: a\n  do: ['2', {type: hi}, {until: found}, enter]\n- say: b\n";

    #[test]
    fn inputs_come_in_order_and_wait_for_the_screen() {
        let (mut player, now) = player(TWO_STEP_SCRIPT);
        assert_eq!(player.next(now, true, &screen("")), None);
        player.forward(now);
        let code = |player: &mut Player, at, is_idle, text: &str| {
            player.next(at, is_idle, &screen(text)).map(|key| key.code)
        };
        assert_eq!(code(&mut player, now, false, ""), None, "something is still in progress");
        assert_eq!(code(&mut player, now, true, ""), Some(KeyCode::Char('2')));
        assert_eq!(code(&mut player, now, true, ""), None);
        let later = now + LETTER;
        assert_eq!(code(&mut player, later, true, ""), Some(KeyCode::Char('h')));
        assert_eq!(code(&mut player, later, true, ""), None, "letters are apart");
        assert_eq!(code(&mut player, later + LETTER, true, ""), Some(KeyCode::Char('i')));
        assert_eq!(code(&mut player, later + LETTER, true, "not yet"), None);
        assert_eq!(code(&mut player, later + LETTER, true, "found it"), None);
        assert_eq!(code(&mut player, later + LETTER, true, ""), Some(KeyCode::Enter));
        assert!(player.resting() && !player.over());
    }

    #[test]
    fn a_missing_text_does_not_stop_the_demo() {
        let (mut player, now) = player("title: t\nsteps:\n- say: a\n  do: [{until: never}]\n- say: b\n");
        player.forward(now);
        assert_eq!(player.next(now + WAIT_TIMEOUT * 2, true, &screen("")), None);
        assert!(player.failed.as_deref().is_some_and(|why| why.contains("never")));
        assert!(player.missed_steps()[0].contains("step 1"), "{:?}", player.missed_steps());
        player.forward(now);
        assert_eq!((player.step(), player.failed.clone()), (Some(1), None));
    }

    #[test]
    fn unattended_demo_ends_after_the_last_step() {
        let (mut player, now) = player("title: t\nsteps:\n- say: a\n- say: b\n");
        let pause = Duration::from_secs(2);
        player.play.auto = Some(pause);
        for at in 1..=2 {
            player.tick(now + pause * at);
            assert_eq!((player.step(), player.ended()), (Some(at as usize - 1), false));
        }
        assert_eq!(player.wake(now + pause * 2), Some(now + pause * 3), "the end comes by itself");
        player.tick(now + pause * 2 + pause / 2);
        assert!(!player.ended(), "the last step is seen as long as the others");
        player.tick(now + pause * 3);
        assert!(player.ended() && player.missed_steps().is_empty());
        assert_eq!(player.wake(now), None);
    }

    #[test]
    fn keys_are_shown_at_every_width() {
        let (player, _) = player(TWO_STEP_SCRIPT);
        let themes = crate::theme::Themes::shipped().unwrap();
        let theme = themes.theme("dark", crate::theme::Depth::True).unwrap();
        let glyphs = crate::glyphs::UNICODE;
        for width in [60, 80, 140] {
            let area = Rect::new(0, 0, width, ROWS);
            let mut buf = Buffer::empty(area);
            player.draw(area, &mut buf, (&theme, &glyphs, &crate::keymap::Keymap::shipped().unwrap()));
            let seen = text_of(&buf);
            // The workbench of the demonstration stays open.
            assert!(seen.contains("q Esc end script ") && seen.contains("0/2"), "{width}: {seen}");
            assert!(!seen.contains("quit"), "{width}: {seen}");
        }
    }

    #[test]
    fn custom_sentences_contain_no_path_or_person() {
        let source = "title: What /home/ann has\nsteps:\n- say: ann opens /home/ann/skills\n  do: [{until: /home/ann/skills}]\n";
        let now = Instant::now();
        let redaction = Redaction::of("/home/ann", &[], Some("ann"));
        let script = Script::parse(source).unwrap();
        let play =
            DemoOptions { script, auto: None, record: None, pictures: None, redaction: redaction.clone() };
        let mut player = Player::new(play, now);
        let themes = crate::theme::Themes::shipped().unwrap();
        let theme = themes.theme("dark", crate::theme::Depth::True).unwrap();
        let area = Rect::new(0, 0, 80, ROWS);
        let mut seen = String::new();
        for _ in 0..2 {
            let mut buf = Buffer::empty(area);
            player.draw(
                area,
                &mut buf,
                (&theme, &crate::glyphs::UNICODE, &crate::keymap::Keymap::shipped().unwrap()),
            );
            seen += &text_of(&buf);
            player.forward(now);
        }
        assert!(seen.contains("What ~ has") && seen.contains("user opens ~/skills"), "{seen}");
        assert!(!seen.contains("ann"), "{seen}");
        let mut page = screen("in /home/ann/skills");
        redaction.apply(&mut page);
        player.next(now, true, &page);
        assert!(player.resting(), "what it waits for is on the redacted screen");
    }

    #[test]
    fn stepping_back_shows_the_earlier_screen() {
        let (mut player, now) = player("title: t\nsteps:\n- say: a\n- say: b\n");
        for text in ["first", "second"] {
            player.forward(now);
            assert!(player.seen(&screen(text), true).is_some());
            assert_eq!(player.seen(&screen(text), true), None, "once a step");
        }
        player.back();
        assert_eq!(player.step(), Some(0));
        assert!(text_of(player.looked_at().unwrap()).starts_with("first"));
        player.back();
        assert_eq!(player.step(), Some(0));
        player.forward(now);
        assert_eq!(player.step(), Some(1));
        player.forward(now);
        assert!(player.looked_at().is_none() && player.over());
    }
}
