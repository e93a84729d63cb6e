//! Records a screen as an asciicast, version 2 (<https://docs.asciinema.org/manual/asciicast/v2/>): a header line, then
//! one JSON line for each frame.

use std::io::{self, Write};
use std::time::Instant;

use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::Buffer;
use serde_json::json;
use skills_skill::safe_text;

/// A recording in progress.
pub struct AsciicastWriter<W: Write> {
    out: W,
    started: Instant,
    last: Option<Buffer>,
}

impl<W: Write> AsciicastWriter<W> {
    /// Begins a recording of a screen of this size.
    pub fn begin(
        mut out: W,
        width: u16,
        height: u16,
        title: &str,
        unix_s: i64,
        now: Instant,
    ) -> io::Result<Self> {
        let header = json!({
            "version": 2, "width": width, "height": height, "timestamp": unix_s, "title": safe_text::line(title),
            "env": {"TERM": "xterm-256color"},
        });
        writeln!(out, "{header}")?;
        Ok(Self { out, started: now, last: None })
    }

    /// Records a frame; unchanged cells are omitted.
    pub fn frame(&mut self, screen: &Buffer, now: Instant) -> io::Result<()> {
        let mut bytes = Vec::new();
        {
            let mut backend = CrosstermBackend::new(&mut bytes);
            if let Some(last) = self.last.as_ref().filter(|last| last.area == screen.area) {
                backend.draw(last.diff(screen).into_iter())?;
            } else {
                let empty = Buffer::empty(screen.area);
                backend.draw(empty.diff(screen).into_iter())?;
            }
        }
        if self.last.is_none() {
            // Clear the terminal before the first frame.
            bytes.splice(0..0, b"\x1b[?25l\x1b[2J".iter().copied());
        }
        self.last = Some(screen.clone());
        let seconds = now.saturating_duration_since(self.started).as_secs_f64();
        let text = String::from_utf8_lossy(&bytes);
        writeln!(self.out, "{}", json!([seconds, "o", text]))
    }

    /// Ends the recording.
    pub fn end(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn a_recording_plays_back_to_the_last_screen() {
        let now = Instant::now();
        let mut cast = AsciicastWriter::begin(Vec::new(), 20, 2, "a\u{7}\u{1b}[2J", 0, now).unwrap();
        let mut screen = Buffer::empty(Rect::new(0, 0, 20, 2));
        screen.set_string(0, 0, "hello", Style::new());
        cast.frame(&screen, now).unwrap();
        screen.set_string(0, 0, "jello", Style::new());
        cast.frame(&screen, now + Duration::from_secs(1)).unwrap();
        let text = String::from_utf8(cast.end().unwrap()).unwrap();
        let mut terminal = vt100::Parser::new(2.try_into().unwrap(), 20.try_into().unwrap(), 0);
        let mut lines = text.lines();
        let header: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!((&header["version"], &header["width"]), (&json!(2), &json!(20)));
        assert_eq!(header["title"], "a␇␛[2J", "players show it in the title of the window");
        let mut last = -1.0;
        for line in lines {
            let event: (f64, String, String) = serde_json::from_str(line).unwrap();
            assert!(event.0 > last && event.1 == "o");
            last = event.0;
            terminal.process(event.2.as_bytes());
        }
        assert_eq!(terminal.screen().contents().trim(), "jello");
    }
}
