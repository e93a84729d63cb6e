//! The clipboard: that of the desktop if there is one, opened on the first copy and off the UI task; over SSH, or when
//! it does not respond in time, that of the terminal (OSC 52).

use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::oneshot;

/// Timeout for a copy; a desktop clipboard that exceeds it is not used again.
const CLIPBOARD_TIMEOUT: Duration = Duration::from_millis(500);

type Job = (String, oneshot::Sender<Result<(), String>>);

/// A handle to the desktop's clipboard. A dedicated thread owns it: on X11 the process that copied a text must serve
/// it.
#[derive(Debug, Default)]
pub struct Clipboard {
    jobs: Option<mpsc::SyncSender<Job>>,
    gone: bool,
}

impl Clipboard {
    /// Returns whether this session has a desktop clipboard.
    pub fn has_desktop(variable: impl Fn(&str) -> Option<String>) -> bool {
        let set = |name| variable(name).is_some_and(|value| !value.is_empty());
        if set("SSH_CONNECTION") || set("SSH_TTY") {
            return false;
        }
        cfg!(any(target_os = "macos", windows)) || set("WAYLAND_DISPLAY") || set("DISPLAY")
    }

    /// Copies a text to the desktop clipboard. Returns whether that succeeded; if not, the caller uses the terminal's.
    pub async fn offer(&mut self, text: String) -> bool {
        if self.gone || !Self::has_desktop(|name| std::env::var(name).ok()) {
            return false;
        }
        let jobs = self.jobs.get_or_insert_with(serve);
        let (done, taken) = oneshot::channel();
        if jobs.try_send((text, done)).is_err() {
            self.gone = true;
            return false;
        }
        match tokio::time::timeout(CLIPBOARD_TIMEOUT, taken).await {
            Ok(Ok(Ok(()))) => true,
            Ok(Ok(Err(why))) => {
                tracing::warn!("desktop clipboard failed: {why}");
                false
            }
            Ok(Err(_)) | Err(_) => {
                tracing::warn!("desktop clipboard does not respond; using the terminal's");
                self.gone = true;
                false
            }
        }
    }
}

fn serve() -> mpsc::SyncSender<Job> {
    // The caller waits for each text before it sends the next one.
    let (sender, jobs) = mpsc::sync_channel::<Job>(1);
    std::thread::spawn(move || {
        let mut open: Option<arboard::Clipboard> = None;
        for (text, done) in jobs {
            let result = match open.take().map_or_else(arboard::Clipboard::new, Ok) {
                Ok(mut clipboard) => {
                    let result = clipboard.set_text(text).map_err(|error| error.to_string());
                    open = Some(clipboard);
                    result
                }
                Err(error) => Err(error.to_string()),
            };
            // The receiver is dropped after a timeout.
            done.send(result).ok();
        }
    });
    sender
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipboard_uses_the_terminal_over_ssh() {
        let env = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        assert!(!Clipboard::has_desktop(env(&[("DISPLAY", ":0"), ("SSH_CONNECTION", "a b c d")])));
        if cfg!(target_os = "linux") {
            assert!(Clipboard::has_desktop(env(&[("WAYLAND_DISPLAY", "wayland-0")])));
            assert!(!Clipboard::has_desktop(env(&[("DISPLAY", "")])));
        }
    }
}
