//! The matrix of skills and clients: how much of each skill the model of each client receives, and why not more.

use std::sync::Arc;
use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;

use super::dialog::parts::labeled;
use super::{Hint, Outcome, Overlay, frame, row_at};
use crate::action::{Action, Context};
use crate::field::Field;
use crate::pane::{Effect, Message, PaneId};
use crate::theme::Role;
use crate::widgets::{
    Painter, RichLine, Scroll, Seg, Title, cells, count, counted, cut_end, cut_last, cut_middle, shown, wrap,
    wrap_to,
};
use skills_api::{
    Error, Event, Visibility, VisibilityCell, VisibilityClient, VisibilityReport, VisibilityRow,
};
use skills_skill::SkillId;

/// Maximum width of a client's name, in cells.
const MAX_CLIENT_WIDTH: u16 = 14;
/// Minimum width of a column, in cells: a version, and a gap.
const MIN_COLUMN_WIDTH: u16 = 9;
/// Width of the word count and its gap, in cells.
const WORDS_WIDTH: u16 = 7;
/// Width of the labels below the matrix, in cells.
const LABEL_WIDTH: u16 = 10;
/// Rows above the skills: names, versions, counts.
const HEAD_ROWS: u16 = 3;
/// Rows of skills that notes, legend and facts leave on a small screen.
const MIN_ROWS: u16 = 3;

/// A row of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    /// The root of the skill with this index, above its first skill.
    Root(usize),
    /// The skill with this index.
    Skill(usize),
}

/// The overlay's state.
pub struct ClientsView {
    pane: PaneId,
    report: Option<Result<Arc<VisibilityReport>, Error>>,
    /// Whether a report was requested and has not arrived.
    is_pending: bool,
    /// Whether skills changed since it was requested.
    is_stale: bool,
    rows: Vec<Row>,
    scroll: Scroll,
    columns: Columns,
    filter: Option<Field>,
    /// Whether the explanation of the cell under the cursor replaces the matrix.
    explained: bool,
    /// The report about one skill, with its texts.
    single: Option<(SkillId, Arc<VisibilityReport>)>,
    text: Scroll,
    text_rows: usize,
    /// Click targets of the last frame.
    hits: Vec<(Rect, usize)>,
}

/// A cell with its skill and client.
type Cell<'a> = (&'a VisibilityRow, &'a VisibilityCell, &'a VisibilityClient);

/// The clients, of which only some fit.
#[derive(Default)]
struct Columns {
    /// The client under the cursor, and the first visible one.
    client: usize,
    first: usize,
    /// Click targets of the last frame.
    areas: Vec<(Rect, usize)>,
}

impl Columns {
    /// Returns the columns of clients that fit, from the first visible one.
    fn fitting(clients: &[VisibilityClient], first: usize, available: u16) -> Vec<(usize, u16)> {
        let mut left = available;
        let mut out = Vec::new();
        for (at, client) in clients.iter().enumerate().skip(first) {
            let width = (cells(&client.name).min(MAX_CLIENT_WIDTH) + 2).max(MIN_COLUMN_WIDTH);
            if width > left && !out.is_empty() {
                break;
            }
            // On the narrowest screen the first one has less than its width.
            let width = width.min(left.max(MIN_COLUMN_WIDTH));
            left = left.saturating_sub(width);
            out.push((at, width));
        }
        out
    }

    /// Returns the visible columns: they include the client under the cursor and fill the width.
    fn visible(&mut self, clients: &[VisibilityClient], available: u16) -> Vec<(usize, u16)> {
        self.first = self.first.min(self.client);
        while Self::fitting(clients, self.first, available)
            .last()
            .is_some_and(|(last, _)| *last < self.client)
        {
            self.first += 1;
        }
        while self.first > 0
            && Self::fitting(clients, self.first - 1, available)
                .last()
                .is_some_and(|(last, _)| last + 1 == clients.len())
        {
            self.first -= 1;
        }
        Self::fitting(clients, self.first, available)
    }

    fn draw_head(
        &mut self,
        clients: &[VisibilityClient],
        (area, name): (Rect, u16),
        columns: &[(usize, u16)],
        painter: &mut Painter<'_>,
    ) {
        self.areas.clear();
        let (first, last) = (columns.first().map_or(0, |one| one.0), columns.last().map_or(0, |one| one.0));
        if columns.len() < clients.len() {
            let part = format!("clients {} to {} of {}", first + 1, last + 1, clients.len());
            painter.put(area.x + 2, area.y, &part, Role::Warning, name);
        }
        painter.put(area.x + 2, area.y + 1, "version", Role::Muted, name);
        painter.put(area.x + 2, area.y + 2, "with description", Role::Muted, name);
        painter.right(area.x + name + WORDS_WIDTH - 2, area.y + 1, "words", Role::Muted);
        let mut x = area.x + name + WORDS_WIDTH;
        for (at, width) in columns {
            let Some(client) = clients.get(*at) else { continue };
            let label = cut_end(&client.name, width - 2, painter.glyphs.ellipsis).into_owned();
            let role = if *at == self.client { Role::Strong } else { Role::Text };
            let plus = if *at == self.client { Modifier::BOLD } else { Modifier::empty() };
            painter.put_plus(x, area.y, &shown(&label), role, plus, width - 1);
            let version = client.version.as_deref().unwrap_or("untested");
            painter.put(
                x,
                area.y + 1,
                &cut_end(version, width - 1, painter.glyphs.ellipsis),
                Role::Muted,
                width - 1,
            );
            painter.put(x, area.y + 2, &count(client.with_description), Role::Strong, width - 1);
            self.areas.push((Rect::new(x, area.y, *width, HEAD_ROWS), *at));
            x += width;
        }
    }
}

impl ClientsView {
    /// Creates the overlay and the request for its report.
    pub fn open(pane: PaneId) -> (Self, Effect) {
        let view = Self {
            pane,
            report: None,
            is_pending: true,
            is_stale: false,
            rows: Vec::new(),
            scroll: Scroll::default(),
            columns: Columns::default(),
            filter: None,
            explained: false,
            single: None,
            text: Scroll::default(),
            text_rows: 0,
            hits: Vec::new(),
        };
        (view, Effect::Visibility(None))
    }

    fn known(&self) -> Option<&Arc<VisibilityReport>> {
        self.report.as_ref()?.as_ref().ok()
    }

    fn row(&self) -> Option<&VisibilityRow> {
        match self.rows.get(self.scroll.cursor)? {
            Row::Skill(at) => self.known()?.skills.get(*at),
            Row::Root(_) => None,
        }
    }

    /// Returns the cell under the cursor with its skill and client; with its text if that is loaded.
    fn cell(&self) -> Option<Cell<'_>> {
        let client = self.known()?.clients.get(self.columns.client)?;
        let row = self.row()?;
        let single = self.single.as_ref().filter(|(skill, _)| *skill == row.skill_id);
        let row = single.and_then(|(_, report)| report.skills.first()).unwrap_or(row);
        let cell = row.cells.iter().find(|cell| cell.client == client.client)?;
        Some((row, cell, client))
    }

    /// Rebuilds the rows; the cursor stays on its skill.
    fn set_rows(&mut self) {
        let before = self.row().map(|row| row.skill_id.clone());
        let requested = self.filter.as_ref().map_or("", Field::text).trim().to_lowercase();
        let Some(report) = self.known().cloned() else { return };
        let mut rows = Vec::new();
        let mut root = None;
        for (at, row) in report.skills.iter().enumerate() {
            if !row.skill_id.as_str().to_lowercase().contains(&requested) {
                continue;
            }
            if root != Some(&row.root) {
                rows.push(Row::Root(at));
                root = Some(&row.root);
            }
            rows.push(Row::Skill(at));
        }
        let is_same = |row: &Row| match row {
            Row::Skill(at) => report.skills.get(*at).map(|row| &row.skill_id) == before.as_ref(),
            Row::Root(_) => false,
        };
        let cursor = rows.iter().position(is_same).filter(|_| before.is_some());
        self.scroll.cursor = cursor.unwrap_or(1).min(rows.len().saturating_sub(1));
        self.rows = rows;
    }

    fn move_by(&mut self, by: isize) {
        let skills: Vec<usize> =
            (0..self.rows.len()).filter(|at| matches!(self.rows.get(*at), Some(Row::Skill(_)))).collect();
        let here = skills.iter().position(|at| *at == self.scroll.cursor).unwrap_or(0);
        let next = here.saturating_add_signed(by).min(skills.len().saturating_sub(1));
        if let Some(at) = skills.get(next) {
            self.scroll.cursor = *at;
        }
        if next == 0 {
            // The first root is above its first skill.
            self.scroll.offset = 0;
        }
    }

    fn set_client(&mut self, client: usize) {
        let last = self.known().map_or(0, |report| report.clients.len().saturating_sub(1));
        self.columns.client = client.min(last);
        self.text.offset = 0;
    }

    /// Explains the cell under the cursor, or shows the matrix again.
    fn toggle(&mut self) -> Outcome {
        self.explained = !self.explained && self.row().is_some();
        self.text.offset = 0;
        let skill = self.row().map(|row| row.skill_id.clone()).filter(|_| self.explained);
        let is_known = |skill: &SkillId| self.single.as_ref().is_some_and(|(known, _)| known == skill);
        match skill.filter(|skill| !is_known(skill)) {
            Some(skill) => Outcome::Request(self.pane, vec![Effect::Visibility(Some(skill))]),
            None => Outcome::Stay,
        }
    }

    fn skills_changed(&mut self) -> Outcome {
        if self.is_pending {
            self.is_stale = true;
            return Outcome::Stay;
        }
        self.is_pending = true;
        Outcome::Request(self.pane, vec![Effect::Visibility(None)])
    }

    fn draw_rows(&mut self, area: Rect, name: u16, columns: &[(usize, u16)], painter: &mut Painter<'_>) {
        let Some(report) = self.known().cloned() else { return };
        self.scroll.follow(self.rows.len(), usize::from(area.height));
        self.hits.clear();
        let mut x = area.x + name + WORDS_WIDTH;
        for (at, width) in columns {
            if *at == self.columns.client {
                let top = area.y.saturating_sub(HEAD_ROWS);
                let column = Rect::new(x.saturating_sub(1), top, *width, area.height + HEAD_ROWS);
                painter.band(column, Role::SelectionWeak);
            }
            x += width;
        }
        for (at, y) in (self.scroll.offset..self.rows.len()).zip(area.y..area.bottom()) {
            let (index, is_root) = match self.rows.get(at) {
                Some(Row::Root(index)) => (*index, true),
                Some(Row::Skill(index)) => (*index, false),
                None => break,
            };
            let Some(row) = report.skills.get(index) else { continue };
            if is_root {
                painter.put_plus(area.x, y, &shown(&row.root), Role::Strong, Modifier::BOLD, area.width);
                continue;
            }
            let is_selected = at == self.scroll.cursor;
            let band = Rect::new(area.x, y, area.width, 1);
            self.hits.push((band, at));
            if is_selected {
                painter.band(band, Role::Selection);
                painter.put(area.x, y, painter.glyphs.gutter, Role::Gutter, 1);
            }
            let id = shown(row.skill_id.as_str());
            // A skill outside the catalog is named by its path, of which the end differs.
            let cut = if id.contains('/') { cut_middle } else { cut_end };
            let id = cut(&id, name.saturating_sub(3), painter.glyphs.ellipsis).into_owned();
            painter.put(area.x + 2, y, &id, if is_selected { Role::Strong } else { Role::Text }, name);
            painter.right(area.x + name + WORDS_WIDTH - 2, y, &row.words.to_string(), Role::Muted);
            let mut x = area.x + name + WORDS_WIDTH;
            for (client, width) in columns {
                if let Some(cell) = row.cells.get(*client) {
                    let is_here = is_selected && *client == self.columns.client;
                    draw_cell(painter, (x, y), cell, is_here, *width);
                }
                x += width;
            }
        }
    }

    /// Draws the facts about the cell under the cursor below a rule.
    fn draw_cell_facts(&mut self, area: Rect, painter: &mut Painter<'_>) {
        let Some((row, cell, client)) = self.cell() else { return };
        let version = client.version.as_deref().unwrap_or("untested");
        let state = match cell.state {
            Visibility::Cut => format!("truncated to {} of {} words", cell.words, row.words),
            state => state.label().to_owned(),
        };
        let name = format!("{} in {} {version}", shown(row.skill_id.as_str()), shown(&client.name));
        let note = format!("{} {state}", cell.state.sign(!painter.glyphs.ascii));
        Title::of(name, self.explained).note(note).draw(painter, area.x, area.y, area.width);
        let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        let lines = lines((row, cell, client), self.explained, below.width.saturating_sub(2), painter);
        self.text_rows = lines.len();
        self.text.height = usize::from(below.height);
        self.text.roll(0, self.text_rows);
        let offset = if self.explained { self.text.offset } else { 0 };
        let width = below.width.saturating_sub(2);
        for (line, y) in lines.iter().skip(offset).zip(below.y..below.bottom()) {
            // Below the matrix the facts do not scroll: the last row shows that there are more.
            let is_cut =
                !self.explained && y + 1 == below.bottom() && lines.len() > usize::from(below.height);
            let line = if is_cut { cut_last(line, width, painter.glyphs.ellipsis) } else { line.clone() };
            painter.line(below.x + 2, y, &line, width);
        }
    }

    fn draw_filter(&mut self, area: Rect, painter: &mut Painter<'_>) -> Option<Position> {
        let field = self.filter.as_mut()?;
        painter.put(area.x, area.y, "/ ", Role::Muted, 2);
        let style = painter.theme.style(Role::Strong);
        let text = Rect { x: area.x + 2, width: area.width.saturating_sub(2), ..area };
        field.draw(text, painter.buf, style, &[])
    }
}

/// Returns what is known about a cell, by label.
fn facts((row, cell, client): Cell<'_>) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    let reason = cell.reason.clone().unwrap_or_else(|| match cell.state {
        Visibility::Full => "the full description is shown".to_owned(),
        _ => "not known".to_owned(),
    });
    out.push(("reason", reason));
    let mut folders = client.assumed_folders.iter();
    let folder = folders.find(|folder| row.location.starts_with(&folder.path));
    out.extend(folder.filter(|_| cell.assumed).map(|folder| ("folder", folder.note(&client.name))));
    out.extend(cell.repaired.clone().map(|how| ("repaired", how)));
    let other = cell.name.clone().filter(|name| name != row.skill_id.as_str());
    out.extend(other.map(|name| ("name", name)));
    if !client.limit.is_empty() && cell.state != Visibility::NotSearched {
        out.push(("limit", client.limit.clone()));
    }
    out.push(("source", client.sources_of(cell)));
    out.push(("file", cell.location.as_ref().unwrap_or(&row.location).display().to_string()));
    out
}

/// Returns the facts as lines; an explanation also contains the text as the client shows it.
fn lines(of: Cell<'_>, explained: bool, width: u16, painter: &Painter<'_>) -> Vec<RichLine> {
    let mut lines = Vec::new();
    for (label, text) in facts(of) {
        let parts = wrap(&[Seg::new(shown(&text), Role::Text)], width.saturating_sub(LABEL_WIDTH).max(1));
        lines.extend(labeled(label, LABEL_WIDTH, parts));
    }
    let (row, cell, client) = of;
    let Some(description) = row.description.as_deref().filter(|_| explained) else { return lines };
    lines.push(RichLine::default());
    let cell_text = match cell.state {
        Visibility::Full if cell.shown.is_none() => description,
        _ => cell.shown.as_deref().unwrap_or(""),
    };
    let name = shown(&client.name);
    let title = if cell_text.is_empty() && !description.is_empty() {
        format!("{name} shows nothing of the description")
    } else {
        format!("What {name} shows")
    };
    lines.push(RichLine::of(title, Role::Strong));
    let common = description.chars().zip(cell_text.chars()).take_while(|(a, b)| a == b);
    let common = common.map(|(a, _)| a.len_utf8()).sum();
    let (head, rest) = description.split_at(common);
    if cell.state == Visibility::OtherText || description.is_empty() {
        let other = wrap(&[Seg::new(shown(cell_text), Role::Warning)], width.max(1));
        lines.extend(other.into_iter().map(RichLine::from_segs));
    }
    let cut = if rest.is_empty() || !painter.glyphs.ascii {
        Seg::new(shown(rest), Role::Muted).with(Modifier::CROSSED_OUT)
    } else {
        Seg::new(format!("{{-{}-}}", shown(rest)), Role::Muted)
    };
    // `shown` removes the space between the two.
    let is_between_words = head.ends_with(char::is_whitespace) || rest.starts_with(char::is_whitespace);
    let space = if is_between_words && !head.trim().is_empty() { " " } else { "" };
    let head = Seg::new(shown(head) + space, Role::Text);
    let text = wrap(&[head, cut], width.max(1));
    lines.extend(text.into_iter().map(RichLine::from_segs));
    lines
}

fn draw_cell(
    painter: &mut Painter<'_>,
    (x, y): (u16, u16),
    cell: &VisibilityCell,
    is_here: bool,
    width: u16,
) {
    let role = match cell.state {
        Visibility::Full => Role::Strong,
        Visibility::Cut => Role::Text,
        Visibility::Dropped => Role::Danger,
        Visibility::Undefined | Visibility::OtherText => Role::Warning,
        _ => Role::Muted,
    };
    let sign = cell.state.sign(!painter.glyphs.ascii);
    let mut end = painter.put(x, y, sign, role, width);
    if cell.state == Visibility::Cut {
        end = painter.put(end, y, &format!(" {}", cell.words), Role::Text, width.saturating_sub(2));
    }
    if is_here {
        painter.put(x.saturating_sub(1), y, "[", Role::Strong, 1);
        painter.put(end, y, "]", Role::Strong, 1);
    }
}

/// Returns the legend of the glyphs.
fn legend(width: u16, painter: &Painter<'_>) -> Vec<RichLine> {
    let items = Visibility::ALL.map(|state| {
        let sign = state.sign(!painter.glyphs.ascii);
        match state {
            Visibility::Cut => format!("{sign} n truncated to n words"),
            state => format!("{sign} {}", state.label()),
        }
    });
    // Items are not broken at their own spaces.
    let text = items.map(|item| item.replace(' ', "\u{a0}")).join("\u{a0} ");
    let lines = wrap_to(&[Seg::new(text, Role::Muted)], width, 3, painter.glyphs.ellipsis);
    let to_text = |line: RichLine| RichLine::of(line.plain_text().replace('\u{a0}', " "), Role::Muted);
    lines.into_iter().map(to_text).collect()
}

impl Overlay for ClientsView {
    fn in_text(&self) -> bool {
        self.filter.is_some()
    }

    fn contexts(&self) -> Vec<Context> {
        // Left and right are those of the collision map.
        vec![Context::Overlay, Context::BrowseMap]
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        let page = self.scroll.page();
        let by = match action {
            Some(Action::Up) => -1,
            Some(Action::Down) => 1,
            Some(Action::PageUp) => -page,
            Some(Action::PageDown) => page,
            Some(Action::Top) => isize::MIN / 2,
            Some(Action::Bottom) => isize::MAX / 2,
            _ => 0,
        };
        match action {
            _ if by != 0 && self.explained => self.text.roll(by, self.text_rows),
            _ if by != 0 => self.move_by(by),
            Some(Action::Left) => self.set_client(self.columns.client.saturating_sub(1)),
            Some(Action::Right) => self.set_client(self.columns.client + 1),
            Some(Action::Open) => return self.toggle(),
            Some(Action::Filter) if !self.explained => {
                self.filter.get_or_insert_default();
            }
            Some(Action::Back | Action::ShowClients) if self.explained => self.explained = false,
            Some(Action::Back | Action::ShowClients) => {
                // The first Esc removes a filter, the next one closes.
                if self.filter.take().is_none() {
                    return Outcome::Close;
                }
                self.set_rows();
            }
            _ => {
                if self.filter.as_mut().is_some_and(|field| field.key(key)) {
                    self.set_rows();
                }
            }
        }
        Outcome::Stay
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Visibility(None, report) => {
                self.report = Some(report.clone());
                self.single = None;
                self.set_rows();
                self.set_client(self.columns.client);
                self.is_pending = false;
                if std::mem::take(&mut self.is_stale) {
                    self.is_pending = true;
                    return Outcome::HandledWith(self.pane, vec![Effect::Visibility(None)]);
                }
                Outcome::Handled
            }
            Message::Visibility(Some(skill), report) => {
                if let Ok(report) = report {
                    self.single = Some((skill.clone(), Arc::clone(report)));
                }
                Outcome::Handled
            }
            Message::Catalog(_) | Message::Event(Event::Catalog(_)) => self.skills_changed(),
            _ => Outcome::Stay,
        }
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if self.filter.as_mut().is_some_and(|field| field.paste(text)) {
            self.set_rows();
        }
        Outcome::Stay
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        if self.explained {
            self.text.roll(rows, self.text_rows);
        } else {
            self.move_by(rows);
        }
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        if self.explained {
            return Outcome::Stay;
        }
        let mut heads = self.columns.areas.iter();
        let head = heads.find(|(area, _)| (area.left()..area.right()).contains(&at.x) && at.y >= area.y);
        let head = head.map(|(_, client)| *client);
        let row = row_at(&self.hits, at);
        if row.is_some() || self.columns.areas.iter().any(|(area, _)| area.contains(at)) {
            self.scroll.cursor = row.unwrap_or(self.scroll.cursor);
            self.set_client(head.unwrap_or(self.columns.client));
        }
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let hint = Hint::new;
        if self.explained {
            return vec![
                hint(Action::Left, "client"),
                hint(Action::Right, "client"),
                hint(Action::Down, "scroll"),
                hint(Action::Back, "matrix"),
            ];
        }
        let mut hints = vec![
            hint(Action::Up, "skill"),
            hint(Action::Left, "client"),
            hint(Action::Right, "client"),
            hint(Action::Open, "explain"),
        ];
        if self.filter.is_none() {
            hints.push(hint(Action::Filter, "filter"));
        }
        hints.push(hint(Action::Back, "close"));
        hints
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, _now: Instant) -> Option<Position> {
        let note = self.known().map_or_else(String::new, |report| {
            format!("{}, {}", counted(report.total, "skill file"), counted(report.clients.len(), "client"))
        });
        let inside = frame(area, painter, "Visibility in clients", &note, false);
        let report = match &self.report {
            Some(Ok(report)) => Arc::clone(report),
            Some(Err(error)) => {
                painter.put(inside.x, inside.y, &shown(&error.message), Role::Danger, inside.width);
                return None;
            }
            None => {
                painter.put(inside.x, inside.y, "reading the clients' catalogs", Role::Muted, inside.width);
                return None;
            }
        };
        if self.explained {
            self.draw_cell_facts(inside, painter);
            return None;
        }
        let mut cursor = None;
        let mut top = inside;
        if self.filter.is_some() {
            cursor = self.draw_filter(Rect { height: 1, ..inside }, painter);
            top = Rect { y: inside.y + 1, height: inside.height.saturating_sub(1), ..inside };
        }
        for note in report.notes() {
            let rows = usize::from(top.height.saturating_sub(HEAD_ROWS + MIN_ROWS).min(2));
            if rows == 0 {
                break;
            }
            let note = [Seg::new(shown(&note), Role::Warning)];
            let lines = wrap_to(&note, top.width, rows, painter.glyphs.ellipsis);
            for line in &lines {
                painter.line(top.x, top.y, line, top.width);
                top = Rect { y: top.y + 1, height: top.height.saturating_sub(1), ..top };
            }
        }
        // On a small screen the skills have precedence, then the facts.
        let spare = top.height.saturating_sub(HEAD_ROWS + MIN_ROWS);
        let facts = spare.min(if area.height >= 30 { 7 } else { 4 });
        let mut legend = legend(top.width, painter);
        // With a blank row below it.
        legend.push(RichLine::default());
        if legend.len() > usize::from(spare - facts) {
            legend.clear();
        }
        let below = facts + legend.len() as u16;
        let list =
            Rect { y: top.y + HEAD_ROWS, height: top.height.saturating_sub(HEAD_ROWS + below).max(1), ..top };
        let name = (top.width / 4).clamp(20, 40);
        let columns = self.columns.visible(&report.clients, top.width.saturating_sub(name + WORDS_WIDTH));
        self.draw_rows(list, name, &columns, painter);
        self.columns.draw_head(&report.clients, (top, name), &columns, painter);
        if self.rows.is_empty() {
            painter.put(list.x + 2, list.y, "no matches", Role::Muted, list.width);
        }
        let mut y = list.bottom();
        for line in &legend {
            painter.line(top.x, y, line, top.width);
            y += 1;
        }
        let rest = Rect { y, height: inside.bottom().saturating_sub(y), ..top };
        if rest.height > 0 {
            self.draw_cell_facts(rest, painter);
        }
        cursor
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;
    use crate::picture;
    use skills_api::AssumedFolder;

    const CLIENTS: [&str; 8] =
        ["Claude Code", "Codex", "GitHub Copilot", "Cursor", "Gemini CLI", "goose", "OpenClaw", "OpenCode"];

    fn cell(client: &str, state: Visibility) -> VisibilityCell {
        let is_cut = state == Visibility::Cut;
        VisibilityCell {
            client: client.to_owned(),
            state,
            words: if is_cut { 3 } else { 0 },
            name: None,
            repaired: None,
            location: None,
            reason: is_cut.then(|| "122 entries share 4,000 tokens, 2 % of the context".to_owned()),
            shown: is_cut.then(|| "Creates bills for".to_owned()),
            assumed: false,
        }
    }

    fn report() -> Arc<VisibilityReport> {
        let client = |name: &&str| VisibilityClient {
            client: name.to_lowercase().replace(' ', "-"),
            name: (*name).to_owned(),
            version: (*name != "Cursor").then(|| "1.18.33".to_owned()),
            source: "run: recorded on 2026-11-22".to_owned(),
            with_description: 2,
            limit: "2 % of the context".to_owned(),
            assumed_folders: Vec::new(),
        };
        let clients: Vec<VisibilityClient> = CLIENTS.iter().map(client).collect();
        let skills = ["billing", "invoices", "subs"].into_iter().enumerate().map(|(at, id)| VisibilityRow {
            skill_id: SkillId::new(id),
            location: format!("/home/k/.claude/skills/{id}/SKILL.md").into(),
            root: if at < 2 { "~/.claude/skills" } else { ".agents/skills" }.to_owned(),
            words: 8,
            description: Some("Creates bills for customers. Not for subscriptions.".to_owned()),
            cells: clients
                .iter()
                .zip(Visibility::ALL.iter().cycle().skip(at))
                .map(|(client, state)| cell(&client.client, *state))
                .collect(),
        });
        let skills = skills.collect();
        Arc::new(VisibilityReport { clients, skills, total: 3, next: None })
    }

    fn opened() -> ClientsView {
        let (mut view, effect) = ClientsView::open(PaneId::Browse);
        assert_eq!(effect, Effect::Visibility(None));
        assert_eq!(view.on_message(&Message::Visibility(None, Ok(report()))), Outcome::Handled);
        view
    }

    fn act(view: &mut ClientsView, action: Action) -> Outcome {
        view.key(KeyEvent::new(KeyCode::Null, KeyModifiers::NONE), Some(action))
    }

    fn screen_text(view: &mut ClientsView, width: u16, height: u16) -> String {
        let draw = |painter: &mut Painter<'_>| {
            view.draw(Rect::new(0, 0, width, height), painter, Instant::now());
        };
        picture::text(&picture::painted(width, height, draw))
    }

    #[test]
    fn a_small_screen_keeps_its_frame_and_the_skills() {
        let (mut view, _) = ClientsView::open(PaneId::Browse);
        let mut report = (*report()).clone();
        let folder = AssumedFolder { path: "/home/k/some/folder/of/skills".into(), shipped: false };
        report.clients.iter_mut().for_each(|client| client.assumed_folders = vec![folder.clone()]);
        view.on_message(&Message::Visibility(None, Ok(Arc::new(report))));
        for (width, height) in [(40, 9), (45, 11), (60, 12), (70, 16)] {
            let draw = |painter: &mut Painter<'_>| {
                view.draw(Rect::new(0, 0, width, height), painter, Instant::now());
            };
            let screen = picture::text(&picture::painted(width + 5, height + 4, draw));
            let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
            let (inside, below) = lines.split_at(usize::from(height));
            assert!(below.iter().all(|line| line.is_empty()), "{screen}");
            assert!(inside.iter().all(|line| line.chars().count() == usize::from(width)), "{screen}");
            let last = inside.last().unwrap();
            assert!(last.starts_with('╰') && !last.contains(char::is_alphabetic), "{screen}");
            assert!(screen.contains("billing") && screen.contains("invoices"), "{screen}");
        }
    }

    #[test]
    fn four_clients_fit_80_columns_and_all_200() {
        let mut view = opened();
        let narrow = screen_text(&mut view, 80, 23);
        assert!(narrow.contains("clients 1 to 4 of 8") && !narrow.contains("Gemini CLI"), "{narrow}");
        for _ in 0..7 {
            act(&mut view, Action::Right);
        }
        let scrolled = screen_text(&mut view, 80, 23);
        assert!(scrolled.contains("OpenCode") && !scrolled.contains("Claude Code"), "{scrolled}");
        assert!(scrolled.contains("billing"), "the names of the skills stay: {scrolled}");
        let wide = screen_text(&mut view, 200, 59);
        assert!(CLIENTS.iter().all(|name| wide.contains(name)), "{wide}");
        assert!(!wide.contains(" of 8"), "{wide}");
    }

    #[test]
    fn cell_under_the_cursor_shows_its_reason() {
        let mut view = opened();
        act(&mut view, Action::Right);
        let screen = screen_text(&mut view, 120, 39);
        assert!(screen.contains("[◐ 3]"), "{screen}");
        assert!(screen.contains("billing in Codex 1.18.33"), "{screen}");
        assert!(screen.contains("truncated to 3 of 8 words"), "{screen}");
        assert!(screen.contains("122 entries share 4,000 tokens"), "{screen}");
        let effects = act(&mut view, Action::Open);
        let skill = SkillId::new("billing");
        assert_eq!(effects, Outcome::Request(PaneId::Browse, vec![Effect::Visibility(Some(skill.clone()))]));
        view.on_message(&Message::Visibility(Some(skill), Ok(report())));
        let screen = screen_text(&mut view, 120, 39);
        assert!(screen.contains("What Codex shows"), "{screen}");
        assert!(screen.contains("Creates bills for customers. Not for subscriptions."), "{screen}");
        assert_eq!(act(&mut view, Action::Back), Outcome::Stay);
        assert_eq!(act(&mut view, Action::Back), Outcome::Close);
    }

    #[test]
    fn a_filter_keeps_the_matching_skills() {
        let mut view = opened();
        act(&mut view, Action::Filter);
        view.paste("sub");
        let screen = screen_text(&mut view, 120, 39);
        assert!(screen.contains("subs") && !screen.contains("invoices"), "{screen}");
        assert_eq!(view.row().map(|row| row.skill_id.as_str()), Some("subs"));
        act(&mut view, Action::Back);
        assert!(screen_text(&mut view, 120, 39).contains("invoices"));
    }

    #[test]
    fn changes_while_a_report_is_made_are_reported_afterwards() {
        let (mut view, _) = ClientsView::open(PaneId::Browse);
        assert_eq!(view.skills_changed(), Outcome::Stay);
        let again = view.on_message(&Message::Visibility(None, Ok(report())));
        assert_eq!(again, Outcome::HandledWith(PaneId::Browse, vec![Effect::Visibility(None)]));
    }
}
