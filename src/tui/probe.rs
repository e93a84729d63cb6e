//! Queries the terminal before the first frame: its background, and how wide it draws `◆`. One query, one short wait;
//! for a terminal that does not respond, defaults apply.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::theme::luminance;

/// Timeout for the response of a terminal on this machine; the first frame still appears within 50 ms.
const PROBE_TIMEOUT: Duration = Duration::from_millis(25);
/// Timeout over SSH, where the response takes a round trip.
const SSH_PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long after the query a late response may still arrive as keys.
const LATE_REPLY_TIMEOUT: Duration = Duration::from_secs(3);
/// Relative luminance above which a background counts as light: the middle of perceived lightness (L* 50).
const LIGHT_FROM: f64 = 0.184;

/// The responses of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answers {
    /// Whether the background is light, if the terminal reported it.
    pub light: Option<bool>,
    /// Width of `◆` in cells, if the terminal reported it.
    pub glyph_cells: Option<u16>,
}

/// Sends the query. The terminal must be in raw mode on the alternate screen, with no other reader.
///
/// The query consists of a glyph, a cursor position report (DSR 6), the background (OSC 11) and the device attributes
/// (DA 1). Every terminal responds to the last one, which therefore ends the wait.
pub fn ask(is_ssh: bool) -> Answers {
    let mut out = io::stdout();
    let question = "\x1b[1;1H◆\x1b[6n\x1b[1;1H\x1b[2K\x1b]11;?\x1b\\\x1b[c";
    if !io::stdin().is_terminal() || out.write_all(question.as_bytes()).and_then(|()| out.flush()).is_err() {
        return Answers::default();
    }
    let timeout = if is_ssh { SSH_PROBE_TIMEOUT } else { PROBE_TIMEOUT };
    let deadline = Instant::now() + timeout;
    let stdin = io::stdin();
    let mut bytes = Vec::new();
    while !ends(&bytes) {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(wait) = Timespec::try_from(left) else { break };
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        if left.is_zero() || !matches!(poll(&mut ready, Some(&wait)), Ok(1..)) {
            break;
        }
        let mut chunk = [0; 256];
        match rustix::io::read(&stdin, &mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
    read(&bytes)
}

/// Returns whether the response to the device attributes has arrived: `ESC [ ? … c`.
fn ends(bytes: &[u8]) -> bool {
    let at = bytes.windows(3).position(|three| three == b"\x1b[?");
    at.is_some_and(|at| {
        let rest = bytes[at + 3..].iter().find(|byte| !byte.is_ascii_digit() && **byte != b';');
        rest == Some(&b'c')
    })
}

fn read(bytes: &[u8]) -> Answers {
    let text = String::from_utf8_lossy(bytes);
    let mut answers = Answers::default();
    for part in text.split('\x1b') {
        if let Some(report) =
            part.strip_prefix('[').and_then(|rest| rest.split_once('R')).map(|(head, _)| head)
        {
            let column = report.split_once(';').and_then(|(_, column)| column.parse::<u16>().ok());
            answers.glyph_cells = column.map(|column| column.saturating_sub(1));
        }
        if let Some(color) = part.strip_prefix("]11;rgb:") {
            answers.light = is_light(color);
        }
    }
    answers
}

/// Classifies `RRRR/GGGG/BBBB`, each of one to four hex digits (`XParseColor`), as light or dark.
fn is_light(color: &str) -> Option<bool> {
    let mut channels = color.splitn(3, '/').map(|channel| {
        let hex: String = channel.chars().take_while(char::is_ascii_hexdigit).take(4).collect();
        let most = 16_u32.checked_pow(hex.len() as u32)?.checked_sub(1)?;
        let value = u32::from_str_radix(&hex, 16).ok()?;
        u8::try_from(value * 255 / most.max(1)).ok()
    });
    let mut next = || channels.next().flatten();
    let color = ratatui::style::Color::Rgb(next()?, next()?, next()?);
    luminance(color).map(|luminance| luminance > LIGHT_FROM)
}

/// Returns whether `COLORFGBG` (`15;0`, set by rxvt, Konsole and others) indicates a light background.
pub fn light_by_environment(value: &str) -> Option<bool> {
    let ground: u8 = value.rsplit(';').next()?.parse().ok()?;
    Some(matches!(ground, 7 | 9..=15))
}

/// Returns whether a terminal lacks our glyphs, by `TERM`.
pub fn is_ascii_only(term: &str) -> bool {
    ["linux", "dumb", "vt", "cons", "sun", "ansi"].iter().any(|name| term.starts_with(name))
}

/// A reader for a response to OSC 11 that arrives after the timeout, as over a slow connection, and is parsed as keys:
/// `Alt-]` … `Alt-\`.
#[derive(Debug)]
pub struct LateAnswer {
    until: Instant,
    inside: bool,
    /// The part of the response that has arrived.
    text: String,
    light: Option<bool>,
}

impl LateAnswer {
    /// Starts to watch for a late response if the terminal has not reported its background.
    pub fn after(answers: Answers, now: Instant) -> Option<Self> {
        answers.light.is_none().then(|| Self {
            until: now + LATE_REPLY_TIMEOUT,
            inside: false,
            text: String::new(),
            light: None,
        })
    }

    /// Returns whether this event is part of a late response.
    pub fn consumes(&mut self, event: &Event, now: Instant) -> bool {
        let Event::Key(KeyEvent { code, modifiers, .. }) = event else { return false };
        if now > self.until {
            return false;
        }
        let alt = modifiers.contains(KeyModifiers::ALT);
        let control = modifiers.contains(KeyModifiers::CONTROL);
        match (self.inside, code) {
            (false, KeyCode::Char(']')) if alt => self.inside = true,
            (false, _) => return false,
            (true, KeyCode::Char('\\')) if alt => self.end(),
            (true, KeyCode::Char('g')) if control => self.end(),
            (true, KeyCode::Char(part)) if part.is_ascii_hexdigit() || ";:/rgba".contains(*part) => {
                self.text.push(*part);
            }
            (true, _) => {
                self.inside = false;
                return false;
            }
        }
        true
    }

    fn end(&mut self) {
        self.inside = false;
        self.light = self.text.strip_prefix("11;rgb:").and_then(is_light);
    }

    /// Takes whether the background is light, once the response has arrived.
    pub fn take_light(&mut self) -> Option<bool> {
        self.light.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_responses_are_parsed() {
        let bytes = b"\x1b[1;2R\x1b]11;rgb:1313/1515/1a1a\x1b\\\x1b[?62;22c";
        assert!(ends(bytes));
        assert_eq!(read(bytes), Answers { light: Some(false), glyph_cells: Some(1) });
        let light = read(b"\x1b[1;3R\x1b]11;rgb:fb/f8/f1\x07");
        assert_eq!(light, Answers { light: Some(true), glyph_cells: Some(2) });
    }

    #[test]
    fn missing_or_invalid_response_detects_nothing() {
        assert_eq!(read(b""), Answers::default());
        assert_eq!(read(b"\x1b]11;rgb:zz/1/\x1b\\abc"), Answers::default());
        assert!(!ends(b"\x1b[?62;2"));
    }

    #[test]
    fn environment_is_used_without_a_terminal_response() {
        assert_eq!(light_by_environment("15;0"), Some(false));
        assert_eq!(light_by_environment("0;default;15"), Some(true));
        assert_eq!(light_by_environment("default"), None);
        assert!(is_ascii_only("linux") && is_ascii_only("vt220") && !is_ascii_only("xterm-256color"));
    }

    #[test]
    fn late_response_is_parsed_and_not_typed() {
        let now = Instant::now();
        let mut late = LateAnswer::after(Answers::default(), now).unwrap();
        let key = |letter, modifiers| Event::Key(KeyEvent::new(KeyCode::Char(letter), modifiers));
        assert!(!late.consumes(&key('q', KeyModifiers::NONE), now));
        assert!(late.consumes(&key(']', KeyModifiers::ALT), now));
        for letter in "11;rgb:1313/1515/1a1a".chars() {
            assert!(late.consumes(&key(letter, KeyModifiers::NONE), now), "{letter}");
        }
        assert_eq!(late.take_light(), None);
        assert!(late.consumes(&key('\\', KeyModifiers::ALT), now));
        assert_eq!(late.take_light(), Some(false));
        assert_eq!(late.take_light(), None);
        assert!(!late.consumes(&key('g', KeyModifiers::NONE), now));
        assert!(!late.consumes(&key(']', KeyModifiers::ALT), now + LATE_REPLY_TIMEOUT * 2));
        let answers = Answers { light: Some(true), glyph_cells: None };
        assert!(LateAnswer::after(answers, now).is_none());
    }
}
