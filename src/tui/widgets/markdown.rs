//! Renders Markdown: headings, lists, quotes, tables, links and highlighted code, wrapped to a width (`CommonMark` 0.31
//! with tables, task lists, strikethrough and footnotes).

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::Modifier;
use unicode_width::UnicodeWidthStr;

use super::code;
use super::rich::{RichLine, Seg};
use super::wrap::{break_code, wrap};
use crate::glyphs::{ASCII, Glyphs, UNICODE};
use crate::theme::Role;
use skills_skill::{prefix, safe_text};

/// Returns the lines of a Markdown text at a width. Line numbers in [`RichLine::source`] refer to `text`, from 1.
pub fn render(text: &str, width: u16, ascii: bool) -> Vec<RichLine> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES;
    let glyphs = if ascii { &ASCII } else { &UNICODE };
    let source = text;
    let text = prefix(text, MAX_DRAWN_BYTES);
    let mut writer = Writer::new(text, width.max(8), glyphs);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        writer.at = range.start;
        writer.event(event);
    }
    writer.flush();
    if text.len() < source.len() {
        let rest = (source.len() - text.len()).div_ceil(1024);
        writer.out.push(RichLine::of(format!("{} {rest} KiB more not shown", glyphs.ellipsis), Role::Muted));
    }
    writer.out
}

/// Maximum size of a rendered text: drawing keeps every line with its styles, many times the size of the text, and no
/// body for a model should be longer.
const MAX_DRAWN_BYTES: usize = 256 * 1024;

/// An open list or quote: the prefix of its first line and of the others.
struct Indent {
    first: Vec<Seg>,
    rest: Vec<Seg>,
    fresh: bool,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<Vec<Seg>>>,
    head: usize,
}

struct Writer<'t> {
    text: &'t str,
    width: u16,
    glyphs: &'static Glyphs,
    out: Vec<RichLine>,
    inline: Vec<Seg>,
    indents: Vec<Indent>,
    lists: Vec<Option<u64>>,
    strong: usize,
    slant: usize,
    struck: usize,
    link: usize,
    heading: bool,
    code: Option<(String, String)>,
    table: Option<Table>,
    blank_wanted: bool,
    at: usize,
    counted: (usize, u32),
}

impl<'t> Writer<'t> {
    fn new(text: &'t str, width: u16, glyphs: &'static Glyphs) -> Self {
        Self {
            text,
            width,
            glyphs,
            out: Vec::new(),
            inline: Vec::new(),
            indents: Vec::new(),
            lists: Vec::new(),
            strong: 0,
            slant: 0,
            struck: 0,
            link: 0,
            heading: false,
            code: None,
            table: None,
            blank_wanted: false,
            at: 0,
            counted: (0, 1),
        }
    }

    /// Returns the source line of a byte offset; offsets mostly ascend, so counting continues from the last one.
    fn source(&mut self, offset: usize) -> u32 {
        let (from, line) = if offset >= self.counted.0 { self.counted } else { (0, 1) };
        let more = self.text[from..offset].matches('\n').count();
        self.counted = (offset, line + more as u32);
        self.counted.1
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(code) => self.push(Seg::new(clean(&code), Role::CodeString)),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.flush_lines(),
            Event::Rule => {
                self.begin();
                let width = self.available_width();
                self.line(vec![Seg::new(self.glyphs.rule.repeat(usize::from(width)), Role::Rule)], None);
                self.blank_wanted = true;
            }
            Event::TaskListMarker(done) => {
                self.push(Seg::new(if done { "[x] " } else { "[ ] " }, Role::Muted));
            }
            Event::FootnoteReference(name) => self.push(Seg::new(format!("[{}]", clean(&name)), Role::Muted)),
            Event::Html(html) | Event::InlineHtml(html) => {
                for (index, line) in html.lines().enumerate() {
                    if index > 0 {
                        self.flush_lines();
                    }
                    self.push(Seg::new(clean(line), Role::Muted));
                }
            }
            Event::InlineMath(math) | Event::DisplayMath(math) => {
                self.push(Seg::new(clean(&math), Role::CodeString));
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                self.blank_wanted = !self.out.is_empty();
                self.heading = true;
                self.push(Seg::new(format!("{} ", marks(level)), Role::Strong));
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.begin();
                let bar = vec![Seg::new(format!("{} ", self.glyphs.bar), Role::Faint)];
                self.indents.push(Indent { first: bar.clone(), rest: bar, fresh: true });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let syntax = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((syntax, String::new()));
            }
            Tag::List(start) => {
                self.flush();
                self.lists.push(start);
            }
            Tag::Item => self.item(),
            Tag::Table(_) => {
                self.flush();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.slant += 1,
            Tag::Strong => self.strong += 1,
            Tag::Strikethrough => self.struck += 1,
            Tag::Link { .. } => self.link += 1,
            Tag::Image { .. } => self.push(Seg::new("image: ", Role::Muted)),
            Tag::FootnoteDefinition(name) => {
                self.flush();
                self.push(Seg::new(format!("[{}] ", clean(&name)), Role::Muted));
            }
            Tag::Paragraph | Tag::HtmlBlock => self.flush(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => {
                self.flush();
                self.blank_wanted = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.heading = false;
                self.blank_wanted = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.indents.pop();
                self.blank_wanted = true;
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.blank_wanted = true;
            }
            TagEnd::Item => {
                self.flush();
                if self.indents.last().is_some_and(|i| i.fresh) {
                    self.begin();
                    self.line(Vec::new(), None);
                }
                self.indents.pop();
                self.blank_wanted = false;
            }
            TagEnd::TableHead => {
                if let Some(table) = &mut self.table {
                    table.head = table.rows.len();
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.as_mut().and_then(|t| t.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.table_lines(&table);
                }
                self.blank_wanted = true;
            }
            TagEnd::Emphasis => self.slant = self.slant.saturating_sub(1),
            TagEnd::Strong => self.strong = self.strong.saturating_sub(1),
            TagEnd::Strikethrough => self.struck = self.struck.saturating_sub(1),
            TagEnd::Link => self.link = self.link.saturating_sub(1),
            _ => {}
        }
    }

    fn item(&mut self) {
        self.flush();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => format!("{} ", self.glyphs.bullet),
        };
        let rest = vec![Seg::new(" ".repeat(mark.width()), Role::Text)];
        self.indents.push(Indent { first: vec![Seg::new(mark, Role::Muted)], rest, fresh: true });
    }

    fn text(&mut self, text: &str) {
        let role = match (self.heading, self.link > 0, self.strong > 0) {
            (true, ..) => Role::Strong,
            (_, true, _) => Role::Info,
            (_, _, true) => Role::Strong,
            _ => Role::Text,
        };
        let mut plus = Modifier::empty();
        plus.set(Modifier::UNDERLINED, self.link > 0);
        plus.set(Modifier::ITALIC, self.slant > 0);
        plus.set(Modifier::CROSSED_OUT, self.struck > 0);
        self.push(Seg::new(clean(text), role).with(plus));
    }

    fn push(&mut self, seg: Seg) {
        self.inline.push(seg);
    }

    /// Returns the remaining width inside the open lists and quotes.
    fn available_width(&self) -> u16 {
        let indent: usize = self.indents.iter().flat_map(|i| &i.rest).map(|s| s.text.width()).sum();
        self.width.saturating_sub(indent as u16).max(8)
    }

    /// Adds the blank row before a block, if one is pending.
    fn begin(&mut self) {
        if std::mem::take(&mut self.blank_wanted) && !self.out.is_empty() {
            let prefix = self.indents.iter().flat_map(|i| i.rest.clone()).collect();
            self.out.push(RichLine::from_segs(prefix));
        }
    }

    /// Adds a line after the prefixes of the open lists and quotes.
    fn line(&mut self, segs: Vec<Seg>, band: Option<Role>) {
        let mut all = Vec::new();
        for indent in &mut self.indents {
            all.extend(if indent.fresh { indent.first.clone() } else { indent.rest.clone() });
            indent.fresh = false;
        }
        all.extend(segs);
        self.out.push(RichLine { segs: all, band, source: 0 });
    }

    /// Ends the current line within the same block.
    fn flush_lines(&mut self) {
        if self.table.is_some() {
            return;
        }
        let inline = std::mem::take(&mut self.inline);
        if inline.iter().all(|s| s.text.trim().is_empty()) {
            return;
        }
        self.begin();
        let first = self.out.len();
        for segs in wrap(&inline, self.available_width()) {
            self.line(segs, None);
        }
        let source = self.source(self.at);
        if let Some(line) = self.out.get_mut(first) {
            line.source = source;
        }
    }

    /// Ends the current block.
    fn flush(&mut self) {
        self.flush_lines();
    }

    fn code_block(&mut self) {
        let Some((syntax, text)) = self.code.take() else { return };
        self.begin();
        let source = self.source(self.at) + u32::from(!syntax.is_empty());
        let width = self.available_width().saturating_sub(2);
        for (index, segs) in code::highlight(&text, &syntax).iter().enumerate() {
            for (part, mut segs) in break_code(segs, width).into_iter().enumerate() {
                segs.insert(0, Seg::new(" ", Role::Text));
                self.line(segs, Some(Role::Surface));
                if let Some(line) = self.out.last_mut().filter(|_| part == 0) {
                    line.source = source + index as u32;
                }
            }
        }
        self.blank_wanted = true;
    }

    fn table_lines(&mut self, table: &Table) {
        self.begin();
        let widths = column_widths(table, self.available_width());
        for (index, row) in table.rows.iter().enumerate() {
            let cells: Vec<Vec<Vec<Seg>>> = row.iter().zip(&widths).map(|(c, w)| wrap(c, *w)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
            for part in 0..height {
                let mut segs = Vec::new();
                for (cell, width) in cells.iter().zip(&widths) {
                    let segment = cell.get(part).cloned().unwrap_or_default();
                    let used: usize = segment.iter().map(|s| s.text.width()).sum();
                    let head = index < table.head;
                    segs.extend(
                        segment.into_iter().map(|s| if head { Seg { role: Role::Strong, ..s } } else { s }),
                    );
                    segs.push(Seg::new(" ".repeat(usize::from(*width).saturating_sub(used) + 2), Role::Text));
                }
                self.line(segs, None);
            }
            if index + 1 == table.head {
                let sign = self.glyphs.rule;
                let rule = widths.iter().map(|w| sign.repeat(usize::from(*w))).collect::<Vec<_>>().join("  ");
                self.line(vec![Seg::new(rule, Role::Rule)], None);
            }
        }
    }
}

/// Returns the widths of a table's columns, two cells apart; the widest are reduced first if they do not fit.
fn column_widths(table: &Table, available: u16) -> Vec<u16> {
    let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths = vec![1_u16; columns];
    for row in &table.rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            let cells: usize = cell.iter().map(|s| s.text.width()).sum();
            *width = (*width).max(u16::try_from(cells).unwrap_or(u16::MAX));
        }
    }
    let available = available.saturating_sub(2 * columns.saturating_sub(1) as u16);
    loop {
        let total: u32 = widths.iter().map(|w| u32::from(*w)).sum();
        let excess = total.saturating_sub(u32::from(available));
        let Some(widest) = widths.iter_mut().max().filter(|w| excess > 0 && **w > 4) else { break };
        let cut = excess.min(u32::from(*widest / 4).max(1)) as u16;
        *widest -= cut;
    }
    widths
}

fn marks(level: HeadingLevel) -> &'static str {
    match level {
        HeadingLevel::H1 => "#",
        HeadingLevel::H2 => "##",
        HeadingLevel::H3 => "###",
        HeadingLevel::H4 => "####",
        HeadingLevel::H5 => "#####",
        HeadingLevel::H6 => "######",
    }
}

fn clean(text: &str) -> String {
    safe_text::line(&text.replace(['\n', '\t'], " ")).into_owned()
}
