//! Terminal input, read in a dedicated thread: the workbench never blocks on its terminal, and is notified at once when
//! the terminal is closed.
//!
//! Bytes are decoded here and not by crossterm's reader, which treats the hangup of a terminal as a retry and never
//! returns.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc as finish;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

use super::shutdown::Shutdown;

/// Maximum number of bytes per read.
const READ_SIZE: usize = 1024;
/// Maximum number of events queued for the workbench; further input stays with the terminal.
const MAX_PENDING_EVENTS: usize = 4 * READ_SIZE;
/// Poll interval for queue capacity while the queue is full.
const FULL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// How long to wait for a thread that was requested to stop.
const STOP_TIMEOUT: Duration = Duration::from_millis(100);
/// The first byte of escape sequences, and a key itself.
const ESCAPE: u8 = 0x1b;

/// A stream of terminal events. Dropping it releases the terminal to other readers.
pub struct InputReader {
    events: mpsc::Receiver<Event>,
    /// Closing it stops the thread.
    stop: Option<OwnedFd>,
    finished: finish::Receiver<()>,
}

impl InputReader {
    /// Starts to read. Requests the shutdown when the terminal is closed.
    pub fn start(shutdown: Shutdown) -> io::Result<Self> {
        let tty = Tty::open()?;
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (sender, events) = mpsc::channel(MAX_PENDING_EVENTS);
        let (finishing, finished) = finish::channel();
        std::thread::Builder::new().name("input".to_owned()).spawn(move || {
            if read_terminal(tty.as_fd(), stopped.as_fd(), &sender) == End::Gone {
                shutdown.request();
            }
            // The receiver is dropped if the workbench has ended.
            let _ = finishing.send(());
        })?;
        Ok(Self { events, stop: Some(stop), finished })
    }

    /// Returns the next event, or `None` after the terminal was closed.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Returns the next event if one is already available.
    pub fn next_ready(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }
}

impl Drop for InputReader {
    fn drop(&mut self) {
        drop(self.stop.take());
        // Another program may read from the terminal next: this thread must not consume its first key.
        let _ = self.finished.recv_timeout(STOP_TIMEOUT);
    }
}

/// The source of keys: standard input, or the controlling terminal if standard input is redirected.
enum Tty {
    Stdin(io::Stdin),
    Controlling(File),
}

impl Tty {
    fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            Ok(Self::Stdin(stdin))
        } else {
            File::open("/dev/tty").map(Self::Controlling)
        }
    }
}

impl AsFd for Tty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stdin(stdin) => stdin.as_fd(),
            Self::Controlling(file) => file.as_fd(),
        }
    }
}

/// Why reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stopped,
    /// The terminal was hung up, or can no longer be read.
    Gone,
}

fn read_terminal(tty: BorrowedFd<'_>, stopped: BorrowedFd<'_>, events: &mpsc::Sender<Event>) -> End {
    let mut decoder = Decoder::default();
    let mut buffer = [0; READ_SIZE];
    loop {
        // One read yields at most that many events; a hangup is noticed even while the queue is full.
        let available = events.capacity() > READ_SIZE;
        let interest = if available { PollFlags::IN } else { PollFlags::empty() };
        let mut ready = [PollFd::new(&tty, interest), PollFd::new(&stopped, PollFlags::IN)];
        match poll(&mut ready, (!available).then_some(&FULL_INTERVAL)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return End::Gone,
        }
        let state = ready[0].revents();
        if !ready[1].revents().is_empty() {
            return End::Stopped;
        }
        if state.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return End::Gone;
        }
        if !state.contains(PollFlags::IN) {
            continue;
        }
        let count = match rustix::io::read(tty, &mut buffer) {
            Ok(0) => return End::Gone,
            Ok(count) => count,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
            Err(_) => return End::Gone,
        };
        let decoded = decoder.decode(&buffer[..count], count == READ_SIZE && has_more(tty));
        for event in decoded {
            if events.try_send(event).is_err() {
                return End::Stopped;
            }
        }
    }
}

/// Returns whether more bytes are available.
fn has_more(tty: BorrowedFd<'_>) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut ready = [PollFd::new(&tty, PollFlags::IN)];
    matches!(poll(&mut ready, Some(&at_once)), Ok(1..)) && ready[0].revents().contains(PollFlags::IN)
}

/// A decoder of bytes to events, independent of how the bytes are split into reads.
#[derive(Debug, Default)]
struct Decoder {
    /// The beginning of an incomplete sequence.
    pending: Vec<u8>,
}

impl Decoder {
    /// Returns the events that these bytes complete. A trailing escape is the key, unless there is `more` to read.
    fn decode(&mut self, bytes: &[u8], more: bool) -> Vec<Event> {
        let mut events = Vec::new();
        for byte in bytes {
            if self.pending == [ESCAPE] && *byte == ESCAPE {
                // The first one was the key; the second may begin a sequence.
                events.push(escape());
                continue;
            }
            self.pending.push(*byte);
            if self.pending == [ESCAPE] {
                continue;
            }
            match terminput::Event::parse_from(&self.pending) {
                Ok(None) => {}
                Err(_) => self.pending.clear(),
                Ok(Some(event)) => {
                    let report = is_cursor_report(&self.pending);
                    self.pending.clear();
                    events.extend(terminput_crossterm::to_crossterm(event).ok().filter(|_| !report));
                }
            }
        }
        if !more && self.pending == [ESCAPE] {
            self.pending.clear();
            events.push(escape());
        }
        events
    }
}

fn escape() -> Event {
    Event::Key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE))
}

/// Recognizes `ESC [ row ; column R`: a late cursor position report, which looks like a function key with a modifier.
fn is_cursor_report(sequence: &[u8]) -> bool {
    let inner = sequence.strip_prefix(b"\x1b[").and_then(|rest| rest.strip_suffix(b"R"));
    inner.is_some_and(|inner| inner.contains(&b';'))
}

#[cfg(test)]
mod tests {
    use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
    use proptest::prelude::*;

    use super::*;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(code, modifiers))
    }

    fn unmodified(code: KeyCode) -> Event {
        key(code, KeyModifiers::NONE)
    }

    #[test]
    fn keys_keep_their_codes_and_modifiers() {
        let cases: [(&[u8], Event); 19] = [
            (b"a", unmodified(KeyCode::Char('a'))),
            (b"A", key(KeyCode::Char('A'), KeyModifiers::SHIFT)),
            ("表".as_bytes(), unmodified(KeyCode::Char('表'))),
            (b"\r", unmodified(KeyCode::Enter)),
            (b"\n", key(KeyCode::Char('j'), KeyModifiers::CONTROL)),
            (b"\t", unmodified(KeyCode::Tab)),
            (b"\x1b[Z", key(KeyCode::BackTab, KeyModifiers::SHIFT)),
            (b"\x7f", unmodified(KeyCode::Backspace)),
            (b"\x1b", unmodified(KeyCode::Esc)),
            (b"\x1bx", key(KeyCode::Char('x'), KeyModifiers::ALT)),
            (b"\x1b]", key(KeyCode::Char(']'), KeyModifiers::ALT)),
            (b"\x1f", key(KeyCode::Char('7'), KeyModifiers::CONTROL)),
            (b"\0", key(KeyCode::Char(' '), KeyModifiers::CONTROL)),
            (b"\x1b[A", unmodified(KeyCode::Up)),
            (b"\x1b[1;5C", key(KeyCode::Right, KeyModifiers::CONTROL)),
            (b"\x1bOP", unmodified(KeyCode::F(1))),
            (b"\x1b[13~", unmodified(KeyCode::F(3))),
            (b"\x1b[5~", unmodified(KeyCode::PageUp)),
            (b"\x1b[I", Event::FocusGained),
        ];
        for (bytes, event) in cases {
            assert_eq!(Decoder::default().decode(bytes, false), [event], "{bytes:?}");
        }
    }

    #[test]
    fn mouse_and_paste_are_decoded() {
        let click = MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column: 2,
            row: 4,
            modifiers: KeyModifiers::NONE,
        };
        assert_eq!(Decoder::default().decode(b"\x1b[<0;3;5M", false), [Event::Mouse(click)]);
        let paste = Event::Paste("a\nb \u{1b}[A".to_owned());
        assert_eq!(Decoder::default().decode(b"\x1b[200~a\nb \x1b[A\x1b[201~", false), [paste]);
    }

    #[test]
    fn consecutive_escapes_are_separate_keys() {
        let escape = || unmodified(KeyCode::Esc);
        assert_eq!(Decoder::default().decode(b"\x1b\x1b", false), [escape(), escape()]);
        assert_eq!(Decoder::default().decode(b"\x1b\x1b[B", false), [escape(), unmodified(KeyCode::Down)]);
    }

    #[test]
    fn terminal_responses_are_not_keys() {
        for answer in [&b"\x1b[1;2R"[..], b"\x1b[24;80R", b"\x1b[?62;22c"] {
            assert_eq!(Decoder::default().decode(answer, false), [], "{answer:?}");
        }
    }

    proptest! {
        #[test]
        fn any_split_yields_the_same_events(
            pieces in proptest::collection::vec(
                prop_oneof![
                    Just(&b"\x1b[A"[..]), Just(&b"j"[..]), Just("é".as_bytes()), Just(&b"\x1b[<0;3;5M"[..]),
                    Just(&b"\x1b[200~x y\x1b[201~"[..]), Just(&b"\x1b\x1b"[..]),
                ],
                0..8,
            ),
            at in 0_usize..40,
        ) {
            let mut bytes = pieces.concat();
            bytes.push(b'q');
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            let mut decoder = Decoder::default();
            let mut events = decoder.decode(first, true);
            events.extend(decoder.decode(second, false));
            prop_assert_eq!(events, Decoder::default().decode(&bytes, false));
        }

        #[test]
        fn any_bytes_are_decoded(bytes in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(ESCAPE), Just(b'['), Just(b';'), Just(b'~'), Just(b'M')], 0..60,
        )) {
            let events = Decoder::default().decode(&bytes, false);
            prop_assert!(events.len() <= bytes.len());
        }
    }
}
