//! The screen of a demonstration: the workbench, the caption below it, and an optional recording.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Instant;

use crossterm::event::{Event, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::player::ROWS;
use super::{AsciicastWriter, DemoCommand, DemoOptions, Player};
use crate::app::App;
use crate::svg::svg;

/// A demonstration on a screen.
pub struct DemoScreen {
    player: Player,
    cast: Option<AsciicastWriter<BufWriter<File>>>,
    /// The last frame of the workbench.
    page: Buffer,
    /// The first write error, if any.
    failed: Option<String>,
}

impl DemoScreen {
    /// Creates the screen before the first step.
    pub fn new(play: DemoOptions, now: Instant) -> Self {
        Self { player: Player::new(play, now), cast: None, page: Buffer::empty(Rect::ZERO), failed: None }
    }

    /// Handles a terminal event. Returns whether the demonstration continues.
    pub fn take(&mut self, event: &Event, now: Instant) -> bool {
        match self.player.key(event) {
            DemoCommand::Forward => self.player.forward(now),
            DemoCommand::Back => self.player.back(),
            DemoCommand::Quit => return false,
            DemoCommand::None => {}
        }
        true
    }

    /// Returns the next key for the workbench when it is due.
    pub fn next(&mut self, now: Instant, is_idle: bool) -> Option<KeyEvent> {
        if is_idle {
            self.player.tick(now);
        }
        self.player.next(now, is_idle, &self.page)
    }

    /// Returns whether it played automatically to its end.
    pub fn ended(&self) -> bool {
        self.player.ended()
    }

    /// Returns the steps that did not reach the state they waited for.
    pub fn missed_steps(&self) -> &[String] {
        self.player.missed_steps()
    }

    /// Returns when it next acts without input.
    pub fn wake(&self, now: Instant) -> Option<Instant> {
        self.player.wake(now)
    }

    /// Takes the write error, if any.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failed.take()
    }

    /// Draws the workbench and the caption, and records the frame.
    pub fn draw(&mut self, screen: &mut Buffer, app: &mut App, now: Instant) {
        let area = screen.area;
        let rows = ROWS.min(area.height);
        let mut page = Buffer::empty(Rect { height: area.height - rows, ..area });
        app.draw(&mut page, now);
        self.player.play().redaction.apply(&mut page);
        self.page = page;
        let shown = self.player.looked_at().unwrap_or(&self.page);
        for y in 0..area.height - rows {
            for x in 0..area.width {
                if let (Some(to), Some(from)) = (screen.cell_mut((x, y)), shown.cell((x, y))) {
                    to.clone_from(from);
                }
            }
        }
        let foot = Rect { y: area.bottom() - rows, height: rows, ..area };
        screen.set_style(foot, app.theme().style(crate::theme::Role::Base));
        self.player.draw(foot, screen, (app.theme(), app.glyphs(), app.keymap()));
        if let Err(error) = self.record(screen, now) {
            self.failed.get_or_insert(format!("the recording stopped: {error}"));
            self.cast = None;
        }
    }

    /// Writes the image of a completed step.
    pub fn rest(&mut self, is_idle: bool, app: &App) {
        let Some(step) = self.player.seen(&self.page, is_idle) else { return };
        let Some(folder) = self.player.play().pictures.clone() else { return };
        let message = self.player.play().script.steps.get(step - 1).map_or("", |step| step.say.as_str());
        let picture = svg(&self.page, app.theme(), None, message);
        if let Err(error) = write(&folder, step, &picture) {
            self.failed = Some(format!("{}: {error}", folder.display()));
        }
    }

    fn record(&mut self, screen: &Buffer, now: Instant) -> io::Result<()> {
        let Some(file) = self.player.play().record.clone() else { return Ok(()) };
        if self.failed.is_some() {
            return Ok(());
        }
        if self.cast.is_none() {
            let out = BufWriter::new(File::create(&file)?);
            let (width, height) = (screen.area.width, screen.area.height);
            let started = jiff::Timestamp::now().as_second();
            let title = self.player.play().script.title.clone();
            self.cast = Some(AsciicastWriter::begin(out, width, height, &title, started, now)?);
        }
        match &mut self.cast {
            Some(cast) => cast.frame(screen, now),
            None => Ok(()),
        }
    }
}

fn write(folder: &Path, step: usize, picture: &str) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(format!("step-{step:02}.svg")), picture)
}

impl Drop for DemoScreen {
    fn drop(&mut self) {
        if let Some(cast) = self.cast.take()
            && let Err(error) = cast.end()
        {
            tracing::warn!("the recording is incomplete: {error}");
        }
    }
}
