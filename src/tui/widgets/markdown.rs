//! Renders Markdown: headings, lists, quotes, tables, links and highlighted code, wrapped to a width (`CommonMark` 0.31
//! with tables, task lists, strikethrough and footnotes).
//!
//! A model reads the source, so nothing of it is left out: what the parser reports no event for, such as link targets,
//! definitions of references and surplus cells, is drawn muted as it is in the source.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::Modifier;

use super::code;
use super::rich::{RichLine, Seg};
use super::text_width::TextWidth as _;
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
        writer.event(event, &range);
    }
    writer.draw_uncovered(text.len());
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

/// Maximum width of the prefixes of open lists and quotes, also limited to half of the width: each line repeats them.
/// What is nested more deeply is drawn as it is in the source.
const MAX_INDENT: usize = 32;

/// Minimum width of a column of a table, if its cells are not narrower.
const MIN_COLUMN: usize = 4;

/// Characters of the source that are not drawn without an event.
const MARKUP: &str = "\\`*_~#<>-+=:|[]()!";

/// An open list or quote: the prefix of its first line and of the others.
struct Indent {
    first: Seg,
    rest: Seg,
    fresh: bool,
}

/// An open code block: the text after its fence, its lines, and the offset of its start.
struct Code {
    info: String,
    is_fenced: bool,
    text: String,
    at: usize,
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
    /// Whether each open list is numbered.
    numbered: Vec<bool>,
    strong: usize,
    slant: usize,
    struck: usize,
    link: usize,
    /// The length of `inline` at the start of the open link.
    link_start: usize,
    heading: bool,
    code: Option<Code>,
    table: Option<Table>,
    blank_wanted: bool,
    /// The offset of what is being drawn.
    at: usize,
    /// The offset at which `inline` starts.
    inline_at: usize,
    /// The offset up to which the source is drawn.
    covered: usize,
    /// The number of open tags of a part that is already drawn as it is in the source.
    skipped: usize,
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
            numbered: Vec::new(),
            strong: 0,
            slant: 0,
            struck: 0,
            link: 0,
            link_start: 0,
            heading: false,
            code: None,
            table: None,
            blank_wanted: false,
            at: 0,
            inline_at: 0,
            covered: 0,
            skipped: 0,
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

    fn event(&mut self, event: Event<'_>, range: &Range<usize>) {
        if self.skipped > 0 {
            match event {
                Event::Start(_) => self.skipped += 1,
                Event::End(_) => self.skipped -= 1,
                _ => {}
            }
            return;
        }
        // The parser subtracts the width of tabs from offsets, which may then be inside a character.
        let range = prefix(self.text, range.start).len()..prefix(self.text, range.end).len();
        let is_end = matches!(event, Event::End(_));
        self.draw_uncovered(if is_end { range.end } else { range.start });
        match event {
            Event::Start(tag) => self.start(tag, &range),
            Event::End(tag) => self.end(tag),
            other => {
                self.content(other);
                self.covered = self.covered.max(range.end);
            }
        }
    }

    /// Draws the source up to an offset as far as no event covers it, except markup.
    fn draw_uncovered(&mut self, to: usize) {
        let text = self.text;
        self.at = self.covered;
        let gap = self.covered..to.max(self.covered);
        self.covered = gap.end;
        let source = text.get(gap.clone()).unwrap_or_default();
        if has_content(source) {
            if let Some(code) = &mut self.code {
                code.text.push_str(source);
            } else if self.inline.is_empty() && self.table.is_none() {
                self.source_lines(&gap);
            } else {
                let source = source.trim_start_matches(']').trim();
                let is_told = self.link > 0 && self.is_link_text(source);
                if !is_told {
                    self.push(Seg::new(format!(" {}", clean(source)), Role::Muted));
                }
            }
        }
        self.at = to;
    }

    /// Returns whether a target in parentheses is what is drawn of the link that is open. Compares at most the target:
    /// a link can contain many images.
    fn is_link_text(&self, target: &str) -> bool {
        let Some(target) = target.strip_prefix('(').and_then(|target| target.strip_suffix(')')) else {
            return false;
        };
        let segs = self.inline.get(self.link_start..).unwrap_or_default();
        segs.iter().flat_map(|seg| seg.text.chars()).eq(target.chars())
    }

    /// Draws a part of the source as it is, without empty lines at its start and end.
    fn source_lines(&mut self, range: &Range<usize>) {
        self.flush();
        let text = self.text;
        let lines: Vec<&str> = text.get(range.clone()).unwrap_or_default().lines().collect();
        let end = lines.iter().rposition(|line| has_content(line)).map_or(0, |last| last + 1);
        let lines = lines.iter().take(end).enumerate().skip_while(|(_, line)| !has_content(line));
        let first = self.source(range.start);
        for (index, line) in lines {
            self.begin();
            self.wrapped(&[Seg::new(clean(line), Role::Muted)], first + index as u32);
        }
        self.blank_wanted = true;
    }

    fn content(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => match &mut self.code {
                Some(code) => code.text.push_str(&text),
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
                for line in html.split_inclusive('\n') {
                    self.push(Seg::new(clean(line.trim_end()), Role::Muted));
                    if line.ends_with('\n') {
                        self.flush_lines();
                    }
                }
            }
            Event::InlineMath(math) | Event::DisplayMath(math) => {
                self.push(Seg::new(clean(&math), Role::CodeString));
            }
            Event::Start(_) | Event::End(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
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
                let bar = Seg::new(format!("{} ", self.glyphs.bar), Role::Faint);
                self.cover_through('>', range.start);
                self.indent(bar.clone(), bar, range);
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let (info, is_fenced) = match kind {
                    CodeBlockKind::Fenced(info) => {
                        self.cover_through('\n', range.start);
                        (info.into_string(), true)
                    }
                    CodeBlockKind::Indented => (String::new(), false),
                };
                self.code = Some(Code { info, is_fenced, text: String::new(), at: range.start });
            }
            Tag::List(start) => {
                self.flush();
                self.numbered.push(start.is_some());
            }
            Tag::Item => self.item(range),
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
            Tag::Link { .. } => {
                self.link += 1;
                self.link_start = self.inline.len();
            }
            Tag::Image { .. } => self.push(Seg::new("image: ", Role::Muted)),
            Tag::FootnoteDefinition(name) => {
                self.flush();
                self.push(Seg::new(format!("[{}] ", clean(&name)), Role::Muted));
                self.cover_through(':', range.start);
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
                self.numbered.pop();
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
                self.end_row();
                if let Some(table) = &mut self.table {
                    table.head = table.rows.len();
                    for seg in table.rows.iter_mut().flatten().flatten() {
                        seg.role = Role::Strong;
                    }
                }
            }
            TagEnd::TableRow => self.end_row(),
            TagEnd::TableCell => self.end_cell(),
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

    fn item(&mut self, range: &Range<usize>) {
        self.flush();
        let text = self.text;
        let item = text.get(range.start..).unwrap_or_default();
        let item = item.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
        // The number of the source, which a model reads: Markdown would count from that of the first item.
        let digits = item.chars().take_while(char::is_ascii_digit).count();
        let mark = if self.numbered.last().is_some_and(|is_numbered| *is_numbered) {
            format!("{}. ", prefix(item, digits))
        } else {
            format!("{} ", self.glyphs.bullet)
        };
        self.cover_marks(range.start);
        let rest = Seg::new(" ".repeat(mark.width()), Role::Text);
        self.indent(Seg::new(mark, Role::Muted), rest, range);
    }

    /// Opens a list item or quote; if it is nested too deeply, draws it as it is in the source.
    fn indent(&mut self, first: Seg, rest: Seg, range: &Range<usize>) {
        let width = self.indent_width() + rest.text.width();
        if width <= usize::from(self.width / 2).min(MAX_INDENT) {
            self.indents.push(Indent { first, rest, fresh: true });
        } else {
            self.source_lines(range);
            self.covered = self.covered.max(range.end);
            self.skipped = 1;
        }
    }

    /// Marks the number and the checkbox at the start of a list item as drawn: the number is that of the list, and the
    /// event of the checkbox may follow that of the paragraph after it.
    fn cover_marks(&mut self, start: usize) {
        let text = self.text;
        let item = text.get(start..).unwrap_or_default();
        let item = item.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
        let number = item.trim_start_matches(|c: char| c.is_ascii_digit());
        let Some(rest) = number.strip_prefix(['.', ')', '-', '*', '+']).map(str::trim_start) else { return };
        let without_checkbox = ["[x]", "[X]"].into_iter().find_map(|checkbox| rest.strip_prefix(checkbox));
        let rest = without_checkbox.filter(|rest| rest.starts_with(char::is_whitespace)).unwrap_or(rest);
        self.covered = self.covered.max(text.len() - rest.len());
    }

    /// Marks the source from an offset through the next such character, or to the end, as drawn.
    fn cover_through(&mut self, end: char, start: usize) {
        let text = self.text;
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.find(end).map_or(rest.len(), |at| at + end.len_utf8());
        self.covered = self.covered.max(start + length);
    }

    fn end_cell(&mut self) {
        let cell = std::mem::take(&mut self.inline);
        if let Some(row) = self.table.as_mut().and_then(|t| t.rows.last_mut()) {
            row.push(cell);
        }
    }

    /// Ends a row of a table. What follows its last column is one more cell.
    fn end_row(&mut self) {
        if !self.inline.is_empty() {
            self.end_cell();
        }
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
        if self.inline.is_empty() {
            self.inline_at = self.at;
        }
        self.inline.push(seg);
    }

    /// Returns the width of the prefixes of the open lists and quotes.
    fn indent_width(&self) -> usize {
        self.indents.iter().map(|i| i.rest.text.width()).sum()
    }

    /// Returns the remaining width inside the open lists and quotes.
    fn available_width(&self) -> u16 {
        self.width.saturating_sub(self.indent_width() as u16).max(1)
    }

    /// Adds the blank row before a block, if one is pending.
    fn begin(&mut self) {
        if std::mem::take(&mut self.blank_wanted) && !self.out.is_empty() {
            let prefix = joined(self.indents.iter().filter(|i| !i.fresh).map(|i| &i.rest));
            self.out.push(RichLine::from_segs(prefix));
        }
    }

    /// Adds a line after the prefixes of the open lists and quotes.
    fn line(&mut self, segs: Vec<Seg>, band: Option<Role>) {
        let mut all = joined(self.indents.iter().map(|i| if i.fresh { &i.first } else { &i.rest }));
        for indent in &mut self.indents {
            indent.fresh = false;
        }
        all.extend(segs);
        self.out.push(RichLine { segs: all, band, source: 0 });
    }

    /// Adds wrapped lines; the first one begins in this line of the source.
    fn wrapped(&mut self, segs: &[Seg], source: u32) {
        let first = self.out.len();
        for segs in wrap(segs, self.available_width()) {
            self.line(segs, None);
        }
        if let Some(line) = self.out.get_mut(first) {
            line.source = source;
        }
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
        let source = self.source(self.inline_at);
        self.wrapped(&inline, source);
    }

    /// Ends the current block.
    fn flush(&mut self) {
        self.flush_lines();
    }

    fn code_block(&mut self) {
        let Some(code) = self.code.take() else { return };
        self.begin();
        let has_info = !code.info.trim().is_empty();
        let source = self.source(code.at) + u32::from(code.is_fenced && !has_info);
        let width = self.available_width().saturating_sub(2);
        let syntax = code.info.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
        let info = has_info.then(|| vec![Seg::new(clean(&code.info), Role::Muted)]);
        let lines = info.into_iter().chain(code::highlight(&code.text, &syntax));
        for (index, segs) in lines.enumerate() {
            for (part, mut segs) in break_code(&segs, width).into_iter().enumerate() {
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
        let Some(widths) = column_widths(table, self.available_width()) else {
            self.table_rows(table);
            return;
        };
        for (index, row) in table.rows.iter().enumerate() {
            let cells: Vec<Vec<Vec<Seg>>> =
                row.iter().zip(&widths).map(|(cell, width)| wrap(cell, *width)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
            for part in 0..height {
                let mut segs = Vec::new();
                let mut gap = 0;
                for (cell, width) in cells.iter().zip(&widths) {
                    let segment = cell.get(part).map(Vec::as_slice).unwrap_or_default();
                    let used: usize = segment.iter().map(|s| s.text.width()).sum();
                    if !segment.is_empty() && gap > 0 {
                        segs.push(Seg::new(" ".repeat(gap), Role::Text));
                        gap = 0;
                    }
                    segs.extend_from_slice(segment);
                    gap += usize::from(*width).saturating_sub(used) + 2;
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

    /// Draws a table with too many columns for the width: each row like a paragraph, without empty cells at its end.
    fn table_rows(&mut self, table: &Table) {
        for row in &table.rows {
            let columns = row.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
            let mut segs = Vec::new();
            for (column, cell) in row.iter().take(columns).enumerate() {
                if column > 0 {
                    segs.push(Seg::new(" | ", Role::Muted));
                }
                segs.extend_from_slice(cell);
            }
            self.wrapped(&segs, 0);
        }
    }
}

/// Joins the prefixes of a line: spaces do not require a segment of their own.
fn joined<'s>(prefixes: impl Iterator<Item = &'s Seg>) -> Vec<Seg> {
    let mut out: Vec<Seg> = Vec::new();
    for seg in prefixes {
        let last = out.last_mut().filter(|last| last.role == seg.role || seg.text.trim().is_empty());
        if let Some(last) = last {
            last.text.push_str(&seg.text);
        } else {
            out.push(seg.clone());
        }
    }
    out
}

/// Returns whether a part of the source contains more than markup.
fn has_content(source: &str) -> bool {
    source.chars().any(|c| !c.is_whitespace() && !MARKUP.contains(c))
}

/// Returns the widths of a table's columns, two cells apart; the widest are reduced first if they do not fit. `None` if
/// there are too many columns.
fn column_widths(table: &Table, available: u16) -> Option<Vec<u16>> {
    let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
    let available = usize::from(available).checked_sub(2 * columns.saturating_sub(1))?;
    let mut widths = vec![1_usize; columns];
    for row in &table.rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.iter().map(|s| s.text.width()).sum());
        }
    }
    let least: usize = widths.iter().map(|w| (*w).min(MIN_COLUMN)).sum();
    if least > available {
        return None;
    }
    loop {
        let excess = widths.iter().sum::<usize>().saturating_sub(available);
        let Some(widest) = widths.iter_mut().max().filter(|w| excess > 0 && **w > MIN_COLUMN) else { break };
        *widest -= excess.min((*widest / 4).max(1));
    }
    Some(widths.into_iter().map(|w| w as u16).collect())
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(text: &str, width: u16) -> Vec<String> {
        render(text, width, false).iter().map(RichLine::plain_text).collect()
    }

    /// Returns the first word of a text that is not drawn, or the first line that is wider than the width.
    fn fault(text: &str, width: u16) -> Option<String> {
        let lines = drawn(text, width);
        let shown: Vec<&str> = lines.iter().flat_map(|line| words(line)).collect();
        let missing = words(text).find(|word| word.len() > 2 && !shown.contains(word)).map(str::to_owned);
        missing.or_else(|| lines.iter().find(|line| line.width() > usize::from(width)).cloned())
    }

    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split(|c: char| !c.is_ascii_alphanumeric())
    }

    #[test]
    fn link_targets_are_drawn_behind_their_text() {
        let text = "See [the *guide*](guide.md \"All steps\") or <https://x.example>, ![A table](a.png)\n";
        let line = "See the guide (guide.md \"All steps\") or https://x.example, image: A table (a.png)";
        assert_eq!(drawn(text, 120), [line]);
        assert_eq!(drawn("Read [a.md](a.md) and [`b.md`](b.md).\n", 80), ["Read a.md and b.md."]);
        assert_eq!(
            drawn("The [guide][g].\n\n[g]: guide.md\n  'Title'\n", 80),
            ["The guide [g].", "", "[g]: guide.md", "'Title'"]
        );
    }

    #[test]
    fn info_string_is_the_first_line_of_its_code() {
        let lines = render("```text or not\nls\n```\n\n```\nls\n```\n", 80, false);
        let seen: Vec<(u32, String)> = lines.iter().map(|l| (l.source, l.plain_text())).collect();
        assert_eq!(
            seen,
            [(1, " text or not".into()), (2, " ls".into()), (0, String::new()), (6, " ls".into())]
        );
    }

    #[test]
    fn markup_is_not_drawn() {
        let text = "# A\n\nB\n=\n\n1. [x] a\n\n3. [ ] b\n\n> - c\\\n>   **d** `e`\n\n---\n\n\
            | f | g |\n|:--|--:|\n| h | i |\n";
        let expected = "# A\n\n# B\n\n1. [x] a\n3. [ ] b\n\n│ • c\n│   d e\n\n────────\n\nf  g\n─  ─\nh  i";
        assert_eq!(drawn(text, 8).join("\n"), expected);
    }

    #[test]
    fn nothing_of_the_instructions_is_hidden() {
        let columns: String = (0..60).map(|column| format!("|column{column}")).collect();
        let text = format!(
            "# Format\n\n[//]: # (first word\nand another)\n\nSee [it](target \"with a title\").\n\n\
            ```sh info string\nls\n```\n\n| one | two |\n|---|---|\n| three | four | surplus cell |\n\n\
            {}deep quote\n\n{}deep list\n\n{columns}\n{}\n{columns}\n",
            "> ".repeat(60),
            "- ".repeat(60),
            "|-".repeat(60)
        );
        for width in [40, 80, 200] {
            assert_eq!(fault(&text, width), None, "{width}");
        }
    }

    #[test]
    fn deep_nesting_takes_memory_in_proportion() {
        for mark in [">", "> - ", "- "] {
            let text = format!("{} {}end\n", mark.repeat(10_000), "word ".repeat(12_000));
            let lines = render(&text, 120, false);
            let segs: usize = lines.iter().map(|line| line.segs.len()).sum();
            let bytes: usize = lines.iter().flat_map(|line| &line.segs).map(|seg| seg.text.len()).sum();
            assert!(bytes < 4 * text.len() && segs < 8 * lines.len(), "{mark:?}: {bytes}, {segs}");
            assert!(lines.last().is_some_and(|line| line.plain_text().ends_with("end")), "{mark:?}");
        }
    }

    #[test]
    fn tables_of_any_number_of_columns_are_drawn() {
        let text = format!("{}|\n{}|\n|last|\n", "|aaaaaaaa".repeat(10_000), "|-".repeat(10_000));
        let lines = drawn(&text, 80);
        assert_eq!(lines.iter().map(|line| line.matches("aaaaaaaa").count()).sum::<usize>(), 10_000);
        assert_eq!(lines.last().map(String::as_str), Some("last"));
    }

    /// Blocks of every kind; each `W` is another word.
    const BLOCKS: [&str; 16] = [
        "W **W** W [W](W \"W W\") W",
        "[//]: # (W W\nW W)",
        "[W]: W 'W'",
        "![W](<W W> \"W\") `W` ~~W~~",
        "```W W W\nW W\n```",
        "~~~\nW\n~~~",
        "| W | W |\n|---|:-:|\n| W | [W](W \"W\") | W W | W |\n| W |",
        "- W\n  1. W\n     - [x] W\n- [ ] W [W]\n\n  [W]: W",
        "1. [x] W\n\n2. ```W\n   W\n   ```",
        "<!-- W\nW -->",
        "<div>\nW <b>W</b>\n</div>",
        "W\n\n[^W]: W [W](W)",
        "W W\n===",
        "## W [W](W) ##",
        "    W W\n    W",
        "W\\\nW  \nW",
    ];

    /// Replaces each `W` by another word of three letters.
    fn with_words(text: &str) -> String {
        let mut out = String::new();
        for (index, part) in text.split('W').enumerate() {
            if index > 0 {
                let letter = |at: usize| char::from(b'a' + (at % 26) as u8);
                out.extend([letter(16 + index / 676), letter(index / 26), letter(index)]);
            }
            out.push_str(part);
        }
        out
    }

    proptest! {
        #[test]
        fn every_word_of_a_document_is_drawn(
            blocks in proptest::collection::vec((0..BLOCKS.len(), 0..16_usize), 1..8),
            width in 24..120_u16,
        ) {
            let mut text = String::new();
            for (block, depth) in blocks {
                for line in BLOCKS[block].lines() {
                    text.push_str(&format!("{}{line}\n", "> ".repeat(depth)));
                }
                text.push('\n');
            }
            let text = with_words(&text);
            prop_assert_eq!(fault(&text, width), None, "{}", text);
        }

        #[test]
        fn every_word_between_any_markup_is_drawn(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    " W", "W ", "[", "](", "]: ", "]", ")", " \"", "\" ", "\n", "\n\n", "> ", "- ",
                    "1. ", "`", "\n```", "\n| ", " | ", "\n|-|-|\n", "\n# ", "*", "**", "~~", "<", ">", "<!-- ",
                    " -->", "![", "[^", "\\", "    ", "\t", "\n---\n", "[x] ",
                ]),
                0..60,
            ),
        ) {
            let text = with_words(&parts.concat());
            let shown = drawn(&text, 4_000).join("\n");
            for word in with_words(&"W ".repeat(text.len())).split(' ').filter(|word| text.contains(*word)) {
                prop_assert!(shown.contains(word), "{} in {:?}", word, text);
            }
        }
    }
}
