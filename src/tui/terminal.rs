//! The terminal as a resource: enables raw mode, the alternate screen, and paste, mouse and focus reports; restores
//! everything on every way out.

use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write as _};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};
use skills_config::TerminalProgress;

use crate::aligned_backend::AlignedBackend;

/// Whether this process currently controls the terminal. Read by the panic hook.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Whether the terminal shows progress.
static SHOWS_PROGRESS: AtomicBool = AtomicBool::new(false);

/// Maximum length of text sent to the terminal's clipboard: xterm accepts about 75,000 characters of base64.
pub const MAX_COPY_BYTES: usize = 50_000;

/// The terminal while the workbench draws on it.
pub struct Screen {
    /// Never dropped: it would report on standard error that the cursor of a closed terminal cannot be shown, and
    /// `eprintln!` panics on a closed terminal, before the workers of this process are deregistered.
    terminal: ManuallyDrop<Terminal<AlignedBackend<BufWriter<Stdout>>>>,
}

impl Screen {
    /// Takes control of the terminal.
    ///
    /// # Errors
    /// Returns an error if standard output is not a terminal, or the terminal rejects raw mode.
    pub fn enter() -> io::Result<Self> {
        if !io::stdout().is_terminal() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "standard output is not a terminal"));
        }
        enter()?;
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        Ok(Self { terminal: ManuallyDrop::new(Terminal::new(AlignedBackend::new(out))?) })
    }

    /// Restores the terminal temporarily.
    pub fn leave(&mut self) {
        restore();
    }

    /// Takes control again; the next frame redraws everything.
    pub fn again(&mut self) -> io::Result<()> {
        enter()?;
        self.forget()
    }

    /// Discards the known content of the terminal; the next frame redraws everything.
    pub fn forget(&mut self) -> io::Result<()> {
        // Not `clear`: that queries the cursor position, and the response may never arrive.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    /// Draws one frame as a synchronized update; unchanged cells are not sent.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Buffer) -> Option<Position>) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| {
            if let Some(cursor) = draw(frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// Sends bytes that do not affect the screen: the bell, a notification.
    pub fn notify(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.terminal.backend_mut().write_all(bytes)?;
        io::Write::flush(self.terminal.backend_mut())
    }

    /// Shows progress in the terminal.
    pub fn show_progress(&mut self, progress: TerminalProgress) -> io::Result<()> {
        SHOWS_PROGRESS.store(progress != TerminalProgress::Hidden, Ordering::SeqCst);
        self.notify(progress.sequence().as_bytes())
    }

    /// Copies text to the terminal's clipboard (OSC 52).
    ///
    /// # Errors
    /// Returns an error if the text is longer than terminals accept, or the terminal is closed.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        if text.len() > MAX_COPY_BYTES {
            let message = format!("{} bytes exceed the limit of the terminal clipboard", text.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        execute!(self.terminal.backend_mut(), CopyToClipboard::to_clipboard_from(text))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
        // After an editor the terminal is restored already, but frames may have hidden the cursor since.
        let _ = self.terminal.show_cursor();
    }
}

/// Sets a terminal without a size (a pseudo-terminal of `script`, a serial line) to the conventional size: otherwise
/// nothing could be drawn on it, and the workbench would wait for output that never appears.
fn ensure_size() {
    let out = io::stdout();
    let unknown = tcgetwinsize(&out).is_ok_and(|size| size.ws_row == 0 || size.ws_col == 0);
    if unknown {
        let usual = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        if let Err(error) = tcsetwinsize(&out, usual) {
            tracing::warn!("the terminal has no size, and it cannot be set: {error}");
        }
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    ENTERED.store(true, Ordering::SeqCst);
    ensure_size();
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableMouseCapture,
        EnableFocusChange,
        Hide
    )
}

/// Restores the terminal once. Failures are ignored because they cannot be reported anymore.
pub fn restore() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = queue_restoration(&mut out);
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// Writes the sequences that revert everything that [`take`] enabled, except raw mode.
fn queue_restoration(out: &mut impl io::Write) -> io::Result<()> {
    if SHOWS_PROGRESS.swap(false, Ordering::SeqCst) {
        out.write_all(TerminalProgress::Hidden.sequence().as_bytes())?;
    }
    queue!(
        out,
        EndSynchronizedUpdate,
        DisableFocusChange,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    )
}

/// Restores the terminal without blocking: another thread may be blocked on writing to a terminal without a reader.
pub fn restore_now() {
    if !ENTERED.load(Ordering::SeqCst) {
        return;
    }
    // Discard pending output, so that the restoring sequences fit into the buffer.
    let out = io::stdout();
    let _ = rustix::termios::tcflush(&out, rustix::termios::QueueSelector::OFlush);
    let mut bytes = Vec::new();
    if queue_restoration(&mut bytes).is_ok() {
        let mut ready = [PollFd::new(&out, PollFlags::OUT)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if matches!(poll(&mut ready, Some(&at_once)), Ok(1..)) && ready[0].revents() == PollFlags::OUT {
            // Write to the descriptor directly: the other thread holds the lock of standard output.
            let _ = rustix::io::write(&out, &bytes);
        }
    }
    let _ = disable_raw_mode();
}

/// Restores the terminal before a panic of this thread is reported. A panic of another thread is logged instead: its
/// message would overwrite the screen, and the workbench continues without that task.
pub fn restore_on_panic() {
    let before = std::panic::take_hook();
    let here = std::thread::current().id();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == here {
            restore();
            before(panic);
        } else if ENTERED.load(Ordering::SeqCst) {
            tracing::error!("{panic}");
        } else {
            before(panic);
        }
    }));
}
