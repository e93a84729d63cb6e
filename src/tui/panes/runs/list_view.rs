//! Draws the list: groups, runs in columns, the filter, and the number of older runs. Only visible rows are built.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::list::{Group, Row, state_label, tail};
use super::view::spinner;
use super::{Focus, Runs};
use crate::pane::Draw;
use crate::theme::Role;
use crate::widgets::format::count;
use crate::widgets::painter::Painter;
use crate::widgets::relative_time::age;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::rule::Title;
use crate::widgets::text_width::{cells, cut_end, shown};
use crate::widgets::wrap::wrap_to;
use skills_model::RunState;
use skills_store::RunRecord;

/// Maximum number of rows that explain why a part of the list is missing.
const ERROR_ROWS: u16 = 4;

/// Columns of a row: the first cell and the width of each, 0 if there is no space for it.
struct Columns {
    name: (u16, u16),
    id: u16,
    /// `None` if names would be truncated for it.
    progress: Option<u16>,
    step: (u16, u16),
    word: (u16, u16),
    age_end: u16,
}

impl Columns {
    /// Computes the columns. Titles differ at their ends: if there are any, they take the width of the step column.
    fn of(area: Rect, has_titles: bool) -> Self {
        let age_end = area.right().saturating_sub(1);
        let end = age_end.saturating_sub(6);
        let x = area.x + 5;
        let inner = end.saturating_sub(x);
        if inner < 36 {
            // A name is more informative than the progress, which is also shown with the steps.
            let rest = inner.saturating_sub(6);
            let word = rest.saturating_sub(15).max(9);
            let name = rest.saturating_sub(word);
            let id = x + name + 1;
            let word = (id + 5, end.saturating_sub(id + 5));
            return Self { name: (x, name), id, progress: None, step: (id + 5, 0), word, age_end };
        }
        // Name, id, progress, step, state; the step is truncated first, then the state.
        let fixed = 5 + 6;
        let word = if inner >= 46 { 13 } else { 12 };
        let step = if inner >= 42 && !has_titles { (inner - fixed - word) * 2 / 5 } else { 0 };
        let gap = u16::from(step > 0);
        let name = inner.saturating_sub(fixed + word + step + gap);
        let id = x + name + 1;
        let progress = id + 5;
        let step_at = progress + 5;
        let word_at = step_at + step + gap;
        Self {
            name: (x, name),
            id,
            progress: Some(progress),
            step: (step_at, step),
            word: (word_at, end.saturating_sub(word_at)),
            age_end,
        }
    }
}

/// What an empty list shows.
pub(super) const NO_MATCHES: &str = "no runs match the filter: / changes it, Esc shows all runs";

impl Runs {
    pub(super) fn draw_list(&mut self, area: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        let focused = cx.focused && self.focus != Focus::Detail;
        self.list_title(focused, area.width, cx).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
        let mut y = area.y + 1;
        if area.height >= 12 {
            self.draw_tabs(Rect { y, height: 1, ..area }, buf, cx);
            y += 1;
        }
        if self.focus == Focus::Filter || !self.filter.field.is_empty() {
            self.draw_filter(Rect { y, height: 1, ..area }, buf, cx);
            y += 1;
            if self.focus == Focus::Filter || self.filter.is_invalid() {
                let (hint, wrong) = self.filter.hint(&self.known);
                let mut painter = Painter::new(buf, cx);
                let role = if wrong { Role::Danger } else { Role::Muted };
                let available = area.width.saturating_sub(4);
                painter.put(
                    area.x + 3,
                    y,
                    &cut_end(&hint, available, painter.glyphs.ellipsis),
                    role,
                    available,
                );
                y += 1;
            }
        }
        let mut list = Rect { y, height: area.bottom().saturating_sub(y), ..area };
        if let Some(error) = self.error.as_ref().filter(|_| list.height > 3 * ERROR_ROWS) {
            list.height -= ERROR_ROWS;
            let below = Rect { y: list.bottom(), height: ERROR_ROWS, ..area };
            trouble(&error.message, below, &mut Painter::new(buf, cx));
        }
        if self.is_table() {
            self.draw_table(list, buf, cx);
            return;
        }
        self.drawn.list = list;
        let height = usize::from(list.height);
        if self.follow {
            self.scroll.follow(self.rows.len(), height);
            // Scroll a group's heading into view together with its first run.
            let above = self.scroll.cursor.saturating_sub(1);
            let first = self.scroll.offset == self.scroll.cursor && self.scroll.cursor > 0;
            if first && matches!(self.rows.get(above), Some(Row::Heading(_))) {
                self.scroll.offset = above;
            }
        }
        self.scroll.height = height;
        self.scroll.offset = self.scroll.offset.min(self.rows.len().saturating_sub(height));
        let titled =
            |row: &Row| row.run().and_then(|id| self.known.get(id)).is_some_and(|run| run.title().is_some());
        let has_titles = self.rows.iter().skip(self.scroll.offset).take(height).any(titled);
        let columns = Columns::of(list, has_titles);
        let mut painter = Painter::new(buf, cx);
        if self.rows.is_empty() {
            painter.put(list.x + 3, list.y, NO_MATCHES, Role::Muted, list.width - 3);
        }
        let turning = spinner(cx);
        let mut older_in_sight = false;
        for place in 0..height.min(self.rows.len().saturating_sub(self.scroll.offset)) {
            let index = self.scroll.offset + place;
            let row = Rect { y: list.y + place as u16, height: 1, ..list };
            match self.rows[index].clone() {
                Row::Blank => {}
                Row::Heading(group) => heading(group, row, &mut painter),
                Row::Older(older) => {
                    older_in_sight = true;
                    let dot = painter.glyphs.dot;
                    let older = count(usize::try_from(older).unwrap_or(usize::MAX));
                    let text = format!("{older} older {dot} / filters {dot} n launches");
                    painter.put(row.x + 3, row.y, &text, Role::Muted, row.width.saturating_sub(4));
                }
                Row::Run(id) => {
                    let Some(run) = self.known.get(&id).cloned() else { continue };
                    self.drawn.rows.push((row, index));
                    self.drawn.since.push(since(&run));
                    let at_cursor = index == self.scroll.cursor;
                    if run.state == RunState::WaitingForHuman {
                        painter.band(row, Role::WaitingBand);
                    }
                    if at_cursor {
                        painter.band(row, if focused { Role::Selection } else { Role::SelectionWeak });
                        let role = if focused { Role::Gutter } else { Role::Muted };
                        painter.put(row.x + 1, row.y, painter.glyphs.gutter, role, 1);
                    }
                    if self.marked.contains_key(&id) {
                        painter.put(row.x + 2, row.y, painter.glyphs.set, Role::Focus, 1);
                    }
                    self.draw_run(&run, at_cursor, row.y, &columns, (turning, cx.clock_ms), &mut painter);
                }
            }
        }
        // Prefetch the next page when the last rows are visible.
        let near_end = self.scroll.offset + 2 * height >= self.rows.len();
        if older_in_sight || (near_end && self.filter.is_empty()) {
            self.wanted.extend(self.feeds.older());
        }
    }

    fn list_title(&self, focused: bool, width: u16, cx: &Draw<'_>) -> Title {
        let number = |count: u64| crate::widgets::format::count(usize::try_from(count).unwrap_or(0));
        let waiting = self.count(&[RunState::WaitingForHuman]);
        let running = self.count(&[RunState::Running, RunState::Replaying]);
        let dot = cx.glyphs.dot;
        let mut title = Title::of("Runs", focused);
        let mut segs = Vec::new();
        if !self.marked.is_empty() {
            segs.push(Seg::new(format!("{} marked", number(self.marked.len() as u64)), Role::Focus));
            segs.push(Seg::new(format!(" {dot} "), Role::Muted));
        }
        if waiting > 0 {
            let text = format!("{}{} to approve", cx.glyphs.waiting, number(waiting));
            segs.push(Seg::new(text, Role::Waiting));
            segs.push(Seg::new(format!(" {dot} "), Role::Muted));
        }
        if width >= 44 || waiting == 0 {
            segs.push(Seg::new(format!("{} running {dot} ", number(running)), Role::Muted));
        }
        segs.push(Seg::new(format!("{} all", number(self.all())), Role::Muted));
        title.note = RichLine::from_segs(segs);
        title
    }

    fn draw_filter(&mut self, row: Rect, buf: &mut Buffer, cx: &mut Draw<'_>) {
        let mut painter = Painter::new(buf, cx);
        painter.band(row, Role::Field);
        painter.put(row.x + 3, row.y, "/", Role::Strong, 1);
        let note = self.matches_in_words();
        let start = painter.right(row.right().saturating_sub(1), row.y, &note, Role::Muted);
        let line = Rect { x: row.x + 5, width: start.saturating_sub(row.x + 6), ..row };
        self.drawn.filter = row;
        let style = cx.theme.style(Role::Field).patch(cx.theme.style(Role::Strong));
        let cursor = self.filter.field.draw(line, buf, style, &[]);
        if cx.focused && self.focus == Focus::Filter {
            cx.cursor = cursor;
        }
    }

    fn draw_run(
        &mut self,
        run: &RunRecord,
        selected: bool,
        y: u16,
        columns: &Columns,
        (turning, now_ms): (&'static str, i64),
        painter: &mut Painter<'_>,
    ) {
        let group = Group::of(run);
        let (sign, role) = state_sign(run, painter, turning);
        painter.put(columns.name.0 - 2, y, sign, role, 1);
        let quiet = group == Group::Done && !selected;
        let name_role = match (selected || group == Group::You, quiet) {
            (true, _) => Role::Strong,
            (_, true) => Role::Muted,
            _ => Role::Text,
        };
        let (x, available) = columns.name;
        let name = cut_end(&shown(run.title_or_skill()), available, painter.glyphs.ellipsis).into_owned();
        painter.put(x, y, &name, name_role, available);
        painter.put(columns.id, y, &tail(&run.id), Role::Muted, 4);
        let (through, all) = run.progress;
        if let Some(progress) = columns.progress {
            painter.put(progress, y, &format!("{through}/{all}"), Role::Muted, 5);
        }
        let (word, asks) = state_label(run, now_ms);
        let (step_at, step_room) = columns.step;
        let ended = matches!(run.state, RunState::Completed | RunState::Canceled);
        let step = run.step.as_deref().filter(|_| !ended).map(shown).unwrap_or_default();
        let step_role = if quiet { Role::Muted } else { Role::Text };
        painter.put(step_at, y, &cut_end(&step, step_room, painter.glyphs.ellipsis), step_role, step_room);
        let (word_at, word_room) = columns.word;
        let waits = matches!(run.state, RunState::WaitingForHuman | RunState::WaitingForSignal);
        let word_role = match (run.expires_ms.filter(|_| waits && asks), asks) {
            (Some(at), _) => match self.deadline(Some(at), now_ms).1 {
                Role::Text => Role::Waiting,
                urgent => urgent,
            },
            (None, true) => Role::Waiting,
            (None, false) => Role::Muted,
        };
        // Without a column for the step, it is shown if there is no text for the state.
        let text = if word.is_empty() && step_room == 0 { step } else { word };
        painter.put(word_at, y, &cut_end(&text, word_room, painter.glyphs.ellipsis), word_role, word_room);
        let age_role = if quiet { Role::Muted } else { Role::Text };
        painter.right(columns.age_end, y, &age(now_ms - since(run)), age_role);
    }
}

/// Draws why a part of the list is missing, below the loaded part.
fn trouble(message: &str, area: Rect, painter: &mut Painter<'_>) {
    let text = format!("some runs cannot be read: {}", shown(message));
    let lines = wrap_to(
        &[Seg::new(text, Role::Text)],
        area.width.saturating_sub(6),
        ERROR_ROWS as usize,
        painter.glyphs.ellipsis,
    );
    painter.put(area.x + 3, area.y, painter.glyphs.bad, Role::Danger, 1);
    for (line, y) in lines.iter().zip(area.y..) {
        painter.line(area.x + 5, y, line, area.width.saturating_sub(6));
    }
}

/// Returns the start of the age in the list: a running run's launch, others' last change.
pub(super) fn since(run: &RunRecord) -> i64 {
    if run.state.is_active() { run.created_ms } else { run.since_ms }
}

/// Returns glyph and role of a run's state.
pub fn state_sign(run: &RunRecord, painter: &Painter<'_>, turning: &'static str) -> (&'static str, Role) {
    let glyphs = painter.glyphs;
    match run.state {
        RunState::Pending => (glyphs.pending, Role::Muted),
        RunState::Running => (turning, Role::Info),
        RunState::Replaying => (glyphs.replaying, Role::Info),
        RunState::WaitingForHuman => (glyphs.waiting, Role::Waiting),
        RunState::WaitingForSignal => (glyphs.signal, Role::Text),
        RunState::Completed => (glyphs.ok, Role::Success),
        RunState::Failed => (glyphs.bad, Role::Danger),
        RunState::Canceled => (glyphs.canceled, Role::Muted),
    }
}

fn heading(group: Group, row: Rect, painter: &mut Painter<'_>) {
    let role = if group == Group::You { Role::Waiting } else { Role::Muted };
    let end = painter.put(row.x + 3, row.y, group.title(), role, row.width.saturating_sub(4));
    if group == Group::You && row.right().saturating_sub(end) > cells("oldest first") + 2 {
        painter.right(row.right().saturating_sub(1), row.y, "oldest first", Role::Muted);
    }
}
