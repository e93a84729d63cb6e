//! Shutdown from outside: a signal or a closed terminal ends the process within a second, whatever it is doing.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::terminal;

/// How long the workbench may take to exit by itself.
const GRACE: Duration = Duration::from_millis(500);
/// Exit code of a process that exceeded the grace period: what a shell reports for SIGTERM.
const CUT_OFF: i32 = 128 + 15;

/// A handle to request and observe the shutdown.
#[derive(Debug, Clone)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// Watches for SIGTERM, SIGHUP and SIGINT in a dedicated thread until the process exits: neither a busy screen, nor
    /// a worker, nor a terminal that blocks on output can delay the shutdown.
    pub fn watch() -> io::Result<Self> {
        let requested = CancellationToken::new();
        let watched = requested.clone();
        let (ready, is_ready) = mpsc::channel();
        std::thread::Builder::new().name("shutdown".to_owned()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return ready.send(Err(error)),
            };
            runtime.block_on(async {
                let signals = match Signals::install() {
                    Ok(signals) => signals,
                    Err(error) => return ready.send(Err(error)),
                };
                ready.send(Ok(()))?;
                tokio::select! {
                    () = signals.any() => watched.cancel(),
                    () = watched.cancelled() => {}
                }
                tokio::time::sleep(GRACE).await;
                terminal::restore_now();
                std::process::exit(CUT_OFF)
            })
        })?;
        is_ready
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that watches for signals ended")))?;
        Ok(Self(requested))
    }

    pub fn request(&self) {
        self.0.cancel();
    }

    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the shutdown is requested.
    pub async fn requested(&self) {
        self.0.cancelled().await;
    }
}

struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
}

impl Signals {
    fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn any(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
