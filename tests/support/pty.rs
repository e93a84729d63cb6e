//! A program in a pseudo-terminal, seen through a terminal emulator.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::io::{Read as _, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Timeout of a condition.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

pub struct Pty {
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    pub child: Box<dyn Child + Send + Sync>,
    bytes: Receiver<Vec<u8>>,
    reader: Option<JoinHandle<()>>,
    parser: vt100::Parser,
    /// Everything the program wrote.
    pub raw: Vec<u8>,
}

impl Pty {
    /// A program in a terminal of this size. One without a size (0) is emulated with 80×24.
    pub fn spawn(command: CommandBuilder, width: u16, height: u16) -> Self {
        let size = PtySize { rows: height, cols: width, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, bytes) = channel();
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut chunk) {
                if sender.send(chunk[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let writer = pair.master.take_writer().unwrap();
        let (width, height) = if width == 0 { (80, 24) } else { (width, height) };
        let parser = vt100::Parser::new(cells(height), cells(width), 0);
        let (master, writer, reader) = (Some(pair.master), Some(writer), Some(reader));
        Self { master, writer, child, bytes, reader, parser, raw: Vec::new() }
    }

    pub fn send(&mut self, text: &str) -> &mut Self {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        writer.flush().unwrap();
        self
    }

    pub fn resize(&mut self, width: u16, height: u16) -> &mut Self {
        self.parser.screen_mut().set_size(cells(height), cells(width));
        let size = PtySize { rows: height, cols: width, pixel_width: 0, pixel_height: 0 };
        self.master.as_ref().unwrap().resize(size).unwrap();
        self
    }

    pub fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    pub fn terminal(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    pub fn wait_for(&mut self, text: &str) -> &mut Self {
        self.wait_until(text, |pty| pty.screen().contains(text))
    }

    pub fn wait_until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) -> &mut Self {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while !condition(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.bytes.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(why) => {
                    let raw = String::from_utf8_lossy(&self.raw);
                    panic!("timed out waiting for {what} ({why})\n{}\n--- raw\n{raw:?}", self.screen());
                }
            }
        }
        self
    }

    /// Waits until the program is idle: nothing written for that long.
    pub fn rest(&mut self, quiet: Duration) -> &mut Self {
        while let Ok(bytes) = self.bytes.recv_timeout(quiet) {
            self.take(&bytes);
        }
        self
    }

    /// Bytes written within a stretch of time.
    pub fn written_within(&mut self, time: Duration) -> usize {
        let until = Instant::now() + time;
        let mut count = 0;
        loop {
            match self.bytes.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => {
                    count += bytes.len();
                    self.take(&bytes);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return count,
            }
        }
    }

    /// Continues to read until the program has exited; returns its exit code.
    pub fn wait_for_end(&mut self) -> u32 {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            while let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(20)) {
                self.take(&bytes);
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                // Until the reader is at the end, which may take a while on a busy machine.
                while let Ok(bytes) = self.bytes.recv_timeout(Duration::from_secs(2)) {
                    self.take(&bytes);
                }
                return status.exit_code();
            }
            assert!(Instant::now() < deadline, "the program does not end\n{}", self.screen());
        }
    }

    /// Sends keys as fast as they are taken, for a while; what the program writes meanwhile is read.
    pub fn press_for(&mut self, keys: &str, time: Duration) -> &mut Self {
        let mut writer = self.writer.take().unwrap();
        let until = Instant::now() + time;
        std::thread::scope(|scope| {
            let pressing = scope.spawn(|| {
                while Instant::now() < until {
                    writer.write_all(keys.as_bytes()).unwrap();
                }
            });
            while !pressing.is_finished() {
                if let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(20)) {
                    self.take(&bytes);
                }
            }
        });
        self.writer = Some(writer);
        self
    }

    /// Stops reading what the program writes, so that it soon hangs in writing.
    pub fn stop_reading(&mut self) -> &mut Self {
        self.bytes = channel().1;
        // The reader ends with the next thing that is written: a new size makes the program draw.
        let size = PtySize { rows: 30, cols: 100, pixel_width: 0, pixel_height: 0 };
        self.master.as_ref().unwrap().resize(size).unwrap();
        self.reader.take().unwrap().join().unwrap();
        self
    }

    /// Closes the terminal; it can no longer be read.
    pub fn hang_up(&mut self) -> &mut Self {
        assert!(self.reader.is_none(), "the reader keeps the terminal open");
        self.writer = None;
        self.master = None;
        self
    }

    pub fn signal(&mut self, name: &str) -> &mut Self {
        let pid = self.pid().to_string();
        assert!(std::process::Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
        self
    }

    /// How long the program takes to exit from now on; none if it does not within a timeout.
    pub fn end_within(&mut self, limit: Duration) -> Option<Duration> {
        let started = Instant::now();
        while started.elapsed() < limit {
            if self.child.try_wait().unwrap().is_some() {
                return Some(started.elapsed());
            }
            std::thread::park_timeout(Duration::from_millis(2));
        }
        None
    }

    /// Whether the terminal is in the state that a shell expects: lines, echo, main screen, a cursor, no reports.
    pub fn restored(&self) -> bool {
        let termios = self.master.as_ref().unwrap().get_termios().unwrap();
        let modes = format!("{:?}", termios.local_flags);
        let screen = self.parser.screen();
        modes.contains("ICANON")
            && modes.contains("ECHO")
            && !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    fn take(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        self.parser.process(bytes);
    }
}

fn cells(count: u16) -> std::num::NonZeroU16 {
    std::num::NonZeroU16::new(count).unwrap()
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
    }
}
