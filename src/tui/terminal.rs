//! The terminal as a resource: raw mode, alternate screen, paste, mouse and focus reports on; everything
//! back as it was on the way out, however one leaves.

use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write as _};
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
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};
use skills_config::TerminalProgress;

/// Whether this process has the terminal in its hands now. The panic hook asks it.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Whether the terminal shows progress.
static SHOWS_PROGRESS: AtomicBool = AtomicBool::new(false);

/// Longest text sent to the terminal's own clipboard: xterm takes about 75,000 characters of base64.
pub const MAX_COPY_BYTES: usize = 50_000;

/// The terminal while the workbench draws on it.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When standard output is not a terminal, or the terminal refuses raw mode.
    pub fn enter() -> io::Result<Self> {
        if !io::stdout().is_terminal() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "standard output is not a terminal"));
        }
        take()?;
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(out))? })
    }

    /// Gives the terminal back for a while.
    pub fn leave(&mut self) {
        restore();
    }

    /// Takes it again; the next frame draws everything.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub fn again(&mut self) -> io::Result<()> {
        take()?;
        self.forget()
    }

    /// Forgets what the terminal shows; the next frame draws everything.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn forget(&mut self) -> io::Result<()> {
        // Not `clear`: that asks where the cursor is, and the answer may never come.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    /// Draws one frame; what did not change is not sent, and the terminal shows the rest at once.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Buffer) -> Option<Position>) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| {
            if let Some(cursor) = draw(frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// Sends bytes that move and change nothing on the screen: the bell, a notification.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn sign(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.terminal.backend_mut().write_all(bytes)?;
        io::Write::flush(self.terminal.backend_mut())
    }

    /// Lets the terminal show how far something is.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn show_progress(&mut self, progress: TerminalProgress) -> io::Result<()> {
        SHOWS_PROGRESS.store(progress != TerminalProgress::Hidden, Ordering::SeqCst);
        self.sign(progress.sequence().as_bytes())
    }

    /// Sends text to the terminal's own clipboard (OSC 52).
    ///
    /// # Errors
    /// When the text is longer than terminals take, or the terminal is gone.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        if text.len() > MAX_COPY_BYTES {
            let said = format!("{} bytes exceed the limit of the terminal clipboard", text.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, said));
        }
        execute!(self.terminal.backend_mut(), CopyToClipboard::to_clipboard_from(text))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives a terminal without a size (a pseudo-terminal of `script`, a serial line) the size that programs assume there:
/// nothing could be drawn on it, and what the workbench waits for would never be seen.
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

fn take() -> io::Result<()> {
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

/// Restores the terminal once. Failures are ignored: there is no place left to report them.
pub fn restore() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = queue_restoration(&mut out);
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// What turns off everything that [`take`] turned on, but raw mode.
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

/// Restores the terminal without waiting for it: another thread may be blocked writing to a terminal without a reader.
pub fn give_back_now() {
    if !ENTERED.load(Ordering::SeqCst) {
        return;
    }
    // What was not shown yet is dropped, so that there is room for the few bytes that matter.
    let out = io::stdout();
    let _ = rustix::termios::tcflush(&out, rustix::termios::QueueSelector::OFlush);
    let mut bytes = Vec::new();
    if queue_restoration(&mut bytes).is_ok() {
        let mut ready = [PollFd::new(&out, PollFlags::OUT)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if matches!(poll(&mut ready, Some(&at_once)), Ok(1..)) && ready[0].revents() == PollFlags::OUT {
            // Past the lock of standard output, which the other thread holds.
            let _ = rustix::io::write(&out, &bytes);
        }
    }
    let _ = disable_raw_mode();
}

/// Restores the terminal before a panic of this thread is reported. A panic of another thread is logged
/// instead: its message would run over the screen, and the workbench continues without that task.
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
