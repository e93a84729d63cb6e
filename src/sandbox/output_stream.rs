//! The output of a script, line by line while it runs.

use std::fmt;
use std::sync::Arc;

/// Maximum length of a reported line in bytes; the rest of a line is dropped.
const MAX_LINE: usize = 4 << 10;

/// An output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Receives lines as they are printed; must not block. Lines are untrusted text: sanitize them before display.
#[derive(Clone)]
pub struct OutputListener(Arc<OutputCallback>);

type OutputCallback = dyn Fn(Channel, &str) + Send + Sync;

impl OutputListener {
    /// Creates a receiver that calls `take` for each line, without its line feed, from any thread.
    pub fn new(take: impl Fn(Channel, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }
}

impl fmt::Debug for OutputListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputListener")
    }
}

/// Splits the bytes of one stream into lines.
pub(super) struct LineBuffer {
    listener: Option<OutputListener>,
    channel: Channel,
    partial: Vec<u8>,
    /// Whether the current line already exceeds the maximum length.
    cut: bool,
}

impl LineBuffer {
    pub fn new(listener: Option<OutputListener>, channel: Channel) -> Self {
        Self { listener, channel, partial: Vec::new(), cut: false }
    }

    /// Processes the next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        if self.listener.is_none() {
            return;
        }
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end]);
            self.emit_line();
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    /// Ends the stream, or discards its rest; in the latter case a note is added.
    pub fn finish(&mut self, dropped: bool) {
        if !self.partial.is_empty() {
            self.emit_line();
        }
        if let Some(OutputListener(take)) = self.listener.take().filter(|_| dropped) {
            take(self.channel, "… output truncated");
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let remaining = MAX_LINE.saturating_sub(self.partial.len());
        self.cut |= bytes.len() > remaining;
        self.partial.extend_from_slice(&bytes[..bytes.len().min(remaining)]);
    }

    fn emit_line(&mut self) {
        let line = std::mem::take(&mut self.partial);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let mut text = String::from_utf8_lossy(line).into_owned();
        if std::mem::take(&mut self.cut) {
            text.push('…');
        }
        if let Some(OutputListener(take)) = &self.listener {
            take(self.channel, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn lines_are_joined_and_long_ones_truncated() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let listener = OutputListener::new(move |_, line| sink.lock().unwrap().push(line.to_owned()));
        let mut lines = LineBuffer::new(Some(listener), Channel::Stdout);
        lines.push(b"a");
        lines.push(b"b\r\n\nc\n");
        lines.push(&[b'x'; MAX_LINE + 1]);
        lines.push(b"yy\nrest");
        lines.finish(true);
        let seen = seen.lock().unwrap();
        assert_eq!(seen[..3], ["ab", "", "c"]);
        assert_eq!(seen[3].chars().count(), MAX_LINE + 1);
        assert!(seen[3].ends_with("x…"));
        assert_eq!(seen[4..], ["rest", "… output truncated"]);
    }
}
