//! The screen of a demonstration: the workbench above, the sentence below, a recording beside.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Instant;

use crossterm::event::{Event, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::player::ROWS;
use super::{AsciicastWriter, DemoOptions, Player, Turn};
use crate::app::App;
use crate::svg::svg;

/// A demonstration on a screen.
pub struct DemoScreen {
    player: Player,
    cast: Option<AsciicastWriter<BufWriter<File>>>,
    /// What the workbench drew last.
    page: Buffer,
    /// What could not be written, once.
    failed: Option<String>,
}

impl DemoScreen {
    /// Before the first step.
    #[must_use]
    pub fn new(play: DemoOptions, now: Instant) -> Self {
        Self { player: Player::new(play, now), cast: None, page: Buffer::empty(Rect::ZERO), failed: None }
    }

    /// Takes an event of the terminal. Answers whether the demonstration continues.
    pub fn take(&mut self, event: &Event, now: Instant) -> bool {
        match self.player.key(event) {
            Turn::Forward => self.player.forward(now),
            Turn::Back => self.player.back(),
            Turn::Leave => return false,
            Turn::None => {}
        }
        true
    }

    /// The next key for the workbench, when it is time for one.
    pub fn next(&mut self, now: Instant, settled: bool) -> Option<KeyEvent> {
        if settled {
            self.player.tick(now);
        }
        self.player.next(now, settled, &self.page)
    }

    /// Whether it played by itself and is complete.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.player.ended()
    }

    /// Steps that did not come to what they waited for.
    #[must_use]
    pub fn missed(&self) -> &[String] {
        self.player.missed()
    }

    /// When there is something to do next.
    #[must_use]
    pub fn wake(&self, now: Instant) -> Option<Instant> {
        self.player.wake(now)
    }

    /// What could not be written.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failed.take()
    }

    /// Draws the workbench and what is below it, and records the frame.
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
        self.player.draw(foot, screen, app.theme(), app.glyphs());
        if let Err(error) = self.record(screen, now) {
            self.failed.get_or_insert(format!("the recording stopped: {error}"));
            self.cast = None;
        }
    }

    /// Keeps the picture of a step that came to rest.
    pub fn rest(&mut self, settled: bool, app: &App) {
        let Some(step) = self.player.seen(&self.page, settled) else { return };
        let Some(folder) = self.player.play().pictures.clone() else { return };
        let said = self.player.play().script.steps.get(step - 1).map_or("", |step| step.say.as_str());
        let picture = svg(&self.page, app.theme(), None, said);
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
