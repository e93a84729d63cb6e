//! The progress that a terminal shows for a long command in its tab or in the task bar (OSC 9;4).

use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use skills_config::TerminalProgress;

/// Delay before the progress is shown; shorter commands show nothing.
const DELAY: Duration = Duration::from_millis(700);

/// Progress shown after [`DELAY`], until it is dropped.
pub struct BusyIndicator {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BusyIndicator {
    /// Starts the delay; the progress is shown on standard error.
    pub fn start() -> Self {
        let (end, ended) = channel();
        let shown = move || {
            if ended.recv_timeout(DELAY) == Err(RecvTimeoutError::Timeout) {
                show(TerminalProgress::Busy);
                // Blocks until the sender is dropped.
                let _ = ended.recv();
                show(TerminalProgress::Hidden);
            }
        };
        let thread = std::thread::Builder::new().name("busy-indicator".to_owned()).spawn(shown).ok();
        Self { end: Some(end), thread }
    }
}

impl Drop for BusyIndicator {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn show(progress: TerminalProgress) {
    let mut terminal = std::io::stderr().lock();
    // Errors are ignored: a closed terminal shows nothing.
    drop(terminal.write_all(progress.sequence().as_bytes()).and_then(|()| terminal.flush()));
}
