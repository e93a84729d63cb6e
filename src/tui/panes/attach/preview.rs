//! The preview of an attachment: the last response, and whether a newer one is pending.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use serde_json::Value;

use super::last::check_name;
use crate::action::Action;
use crate::pane::{Draw, Effect, Picker, PickerKind};
use crate::run_requests::RunRequest;
use crate::theme::Role;
use crate::widgets::json_text::{self, Layout};
use crate::widgets::{
    Painter, RichLine, Scroll, Seg, Title, byte_size, cells, command_rows, counted, shown, wrap, wrap_to,
};
use skills_api::{AttachCheck, AttachCheckResult, AttachPreview, AttachReason, AttachRequest, Error};
use skills_skill::EffectMode;

/// Minimum height for blank rows between parts.
const ROOMY: u16 = 28;
/// Minimum number of rows of the content.
const CONTENT_LEAST: usize = 3;
/// Maximum number of rows of the note of a check; the panel scrolls.
const MAX_NOTE_ROWS: usize = 24;

/// A row of the preview.
enum Row {
    Line(RichLine),
    /// A part's title on a rule, with a note.
    Rule(&'static str, RichLine),
    /// Text on a band with a gutter: a warning.
    Warning(RichLine),
    /// A command, on a band.
    Code(RichLine),
}

/// The command form of the request that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum CommandForm {
    #[default]
    Cli,
    Curl,
}

/// The preview and the state of its requests.
#[derive(Debug, Default)]
pub(super) struct Preview {
    requested_at: u64,
    answered: u64,
    shown: Option<Arc<AttachPreview>>,
    error: Option<Error>,
    /// Whether its subject has changed since.
    old: bool,
    /// Whether the target's content is shown in full.
    pub expanded: bool,
    /// Whether the last frame truncated the content.
    pub shortened: bool,
    pub scroll: Scroll,
    pub command: CommandForm,
    /// Areas of the last frame.
    pub area: Rect,
    pub commands: Vec<(Rect, CommandForm)>,
}

impl Preview {
    fn ask(&mut self) -> u64 {
        self.requested_at += 1;
        self.old = false;
        self.requested_at
    }

    /// Requests a preview; responses to earlier requests are dropped.
    pub fn request(&mut self, request: AttachRequest) -> Effect {
        let generation = self.ask();
        Effect::Run(RunRequest::AttachPreview { request: Box::new(request), generation })
    }

    /// Handles a response; returns whether it is the newest one.
    pub fn take(&mut self, generation: u64, preview: &Result<Arc<AttachPreview>, Error>) -> bool {
        if generation != self.requested_at {
            return false;
        }
        self.answered = generation;
        match preview {
            Ok(preview) => {
                self.shown = Some(Arc::clone(preview));
                self.error = None;
            }
            Err(error) => {
                self.shown = None;
                self.error = Some(error.clone());
            }
        }
        true
    }

    /// Clears the preview when nothing is selected: earlier and pending responses have another subject.
    pub fn clear(&mut self) {
        (self.shown, self.error) = (None, None);
        self.answered = self.ask();
    }

    /// Returns whether the response for the current selection is pending.
    pub fn pending(&self) -> bool {
        self.answered != self.requested_at
    }

    /// Marks the preview as outdated: the target changed.
    pub fn grow_old(&mut self) {
        self.old = true;
    }

    /// Returns whether it should be requested again, after any pending response.
    pub fn is_old(&self) -> bool {
        self.old && !self.pending()
    }

    pub fn shown(&self) -> Option<&Arc<AttachPreview>> {
        self.shown.as_ref()
    }

    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Returns the first check that failed.
    pub fn failed(&self) -> Option<&AttachCheckResult> {
        self.shown.as_ref()?.checks.iter().find(|check| check.passed == Some(false))
    }

    /// Returns whether all checks hold for the current selection.
    pub fn is_valid(&self) -> bool {
        let all = |preview: &Arc<AttachPreview>| {
            preview.reason.is_none()
                && !preview.checks.is_empty()
                && preview.checks.iter().all(|check| check.passed == Some(true))
        };
        !self.pending() && self.shown.as_ref().is_some_and(all)
    }

    /// Handles an action of the focused preview; returns whether it did.
    pub fn act(&mut self, action: Action) -> bool {
        let page = self.scroll.page();
        let rows = match action {
            Action::Up => -1,
            Action::Down => 1,
            Action::PageUp => -page,
            Action::PageDown => page,
            Action::Top => isize::MIN,
            Action::Bottom => isize::MAX,
            Action::Open | Action::Fold => {
                self.expanded = !self.expanded;
                self.scroll.offset = 0;
                return true;
            }
            _ => return false,
        };
        self.roll(rows);
        true
    }

    /// Scrolls; drawing knows the length and clamps the offset.
    pub fn roll(&mut self, rows: isize) {
        self.scroll.offset = self.scroll.offset.saturating_add_signed(rows).min(usize::MAX / 2);
    }

    pub fn turn_command(&mut self) {
        self.command = if self.command == CommandForm::Cli { CommandForm::Curl } else { CommandForm::Cli };
    }

    /// Handles a click; returns whether it was in the preview.
    pub fn click(&mut self, at: Position) -> bool {
        if let Some((_, command)) = self.commands.iter().find(|(area, _)| area.contains(at)) {
            self.command = *command;
        }
        self.area.contains(at)
    }

    /// Copies the command that is shown.
    pub fn copy(&self) -> Vec<Effect> {
        self.copy_as(if self.command == CommandForm::Cli { "cli" } else { "curl" }, None)
    }

    /// Copies a form of the preview to the clipboard.
    pub fn copy_as(&self, what: &str, request: Option<&AttachRequest>) -> Vec<Effect> {
        let Some(preview) = self.shown() else { return Vec::new() };
        let text = match what {
            "cli" => Some((preview.cli.clone(), "command line")),
            "curl" => Some((preview.curl.clone(), "curl line")),
            "content" => preview
                .content
                .as_ref()
                .and_then(|content| serde_json::to_string_pretty(content).ok())
                .map(|content| (content, "target's content")),
            "json" => request
                .and_then(|request| serde_json::to_string_pretty(request).ok())
                .map(|json| (json, "request")),
            _ => None,
        };
        text.into_iter().map(|(text, what)| Effect::Copy(text, what.to_owned())).collect()
    }

    pub fn copy_choices(&self) -> Option<Picker> {
        let preview = self.shown()?;
        let mut choices = vec![
            ("cli".to_owned(), "command line".to_owned(), shown(&preview.cli)),
            ("curl".to_owned(), "curl".to_owned(), shown(&preview.curl)),
            ("json".to_owned(), "JSON".to_owned(), "the request".to_owned()),
        ];
        if preview.content.is_some() {
            let label = preview.target_label.as_deref().map(shown).unwrap_or_default();
            choices.push(("content".to_owned(), "content".to_owned(), label));
        }
        Some(Picker { what: PickerKind::CopyAs, title: "Copy as".to_owned(), choices, current: Some(0) })
    }

    /// Draws the right part, with the isolation of the skill's scripts; returns the rows of its rules.
    pub(super) fn draw(
        &mut self,
        area: Rect,
        (isolation, focused): (Option<&str>, bool),
        buf: &mut Buffer,
        cx: &Draw<'_>,
    ) -> Vec<u16> {
        self.area = area;
        self.commands.clear();
        let rows = self.rows(area, isolation, cx);
        let roomy = area.height >= ROOMY;
        let body =
            Rect { y: area.y + 1 + u16::from(roomy), height: area.height - 1 - u16::from(roomy), ..area };
        let scroll = &mut self.scroll;
        scroll.height = usize::from(body.height);
        scroll.offset = scroll.offset.min(rows.len().saturating_sub(scroll.height));
        let offset = scroll.offset;
        let note = if rows.len() > usize::from(body.height) {
            let last = (offset + usize::from(body.height)).min(rows.len());
            format!("{}–{last} of {} lines", offset + 1, rows.len())
        } else if self.pending() {
            "checking".to_owned()
        } else {
            String::new()
        };
        let note = if cx.glyphs.ascii { note.replace('–', "-") } else { note };
        let mut painter = Painter::new(buf, cx);
        Title::of("Preview", focused).note(note).draw(&mut painter, area.x, area.y, area.width);
        let mut rules = Vec::new();
        for (row, y) in rows.iter().skip(offset).zip(body.y..body.bottom()) {
            let width = area.width.saturating_sub(3);
            match row {
                Row::Line(line) => {
                    painter.line(area.x + 2, y, line, width);
                }
                Row::Rule(name, note) => {
                    let mut title = Title::of(*name, false);
                    title.name.segs[0].role = Role::Muted;
                    title.note = note.clone();
                    title.draw(&mut painter, area.x, y, area.width);
                    rules.push(y);
                    if *name == SAME {
                        self.commands = same_places(note, area.right().saturating_sub(2), y);
                    }
                }
                Row::Warning(line) => {
                    painter.band(Rect { x: area.x, y, width: area.width, height: 1 }, Role::WaitingBand);
                    painter.put(area.x + 1, y, painter.glyphs.gutter, Role::Waiting, 1);
                    painter.line(area.x + 3, y, line, width.saturating_sub(1));
                }
                Row::Code(line) => {
                    painter.band(Rect { x: area.x + 1, y, width: area.width - 2, height: 1 }, Role::Surface);
                    painter.line(area.x + 2, y, line, width);
                }
            }
        }
        rules
    }

    fn rows(&mut self, area: Rect, isolation: Option<&str>, cx: &Draw<'_>) -> Vec<Row> {
        self.shortened = false;
        let width = area.width.saturating_sub(4);
        let roomy = area.height >= ROOMY;
        let blank = || roomy.then(|| Row::Line(RichLine::default()));
        if let Some(error) = self.error() {
            let mut segs = vec![Seg::new(format!("{} ", cx.glyphs.bad), Role::Danger)];
            segs.push(Seg::new(shown(&error.message), Role::Text));
            return wrap_to(&segs, width, 6, cx.glyphs.ellipsis).into_iter().map(Row::Line).collect();
        }
        let Some(preview) = self.shown().cloned() else {
            return vec![Row::Line(RichLine::of("select a skill for a preview", Role::Muted))];
        };
        let mut head: Vec<Row> = Vec::new();
        // Without a reference nothing was checked yet: that is not a failure.
        let needs_reference =
            |reason: &AttachReason| reason.check == AttachCheck::Target && reason.value.trim().is_empty();
        let is_open = preview.reason.as_ref().is_some_and(needs_reference);
        for check in &preview.checks {
            let is_open = is_open && check.check == AttachCheck::Target;
            let passed = check.passed.filter(|_| !is_open);
            let check = AttachCheckResult { passed, ..check.clone() };
            head.extend(check_lines(&check, width, cx).into_iter().map(Row::Line));
        }
        let mut foot: Vec<Row> = Vec::new();
        foot.extend(blank());
        foot.push(Row::Rule(SAME, same_note(self.command, cx)));
        let command = match self.command {
            CommandForm::Cli => &preview.cli,
            CommandForm::Curl => &preview.curl,
        };
        foot.extend(command_rows(command, width).into_iter().map(Row::Code));
        let effects = effect_rows(&preview, isolation, width);
        if !effects.is_empty() {
            foot.extend(blank());
            foot.push(Row::Rule("Permissions", RichLine::default()));
            foot.extend(effects);
        }
        let mut content: Vec<Row> = Vec::new();
        if let Some(value) = &preview.content {
            content.extend(blank());
            content.push(Row::Rule("Target as JSON", content_note(value, preview.content_bytes, cx)));
            let used = head.len() + foot.len() + content.len() + 1 + usize::from(roomy);
            let available = usize::from(area.height).saturating_sub(used).max(CONTENT_LEAST);
            content.extend(self.content_lines(value, width, available, cx).into_iter().map(Row::Line));
        }
        head.into_iter().chain(content).chain(foot).collect()
    }

    /// Returns the lines of the content: in full, or as much of its beginning as fits.
    fn content_lines(&mut self, value: &Value, width: u16, available: usize, cx: &Draw<'_>) -> Vec<RichLine> {
        let expanded = self.expanded;
        let ellipsis = cx.glyphs.ellipsis;
        let (mut lines, left_out) = json_text::lines(value, Layout { width, expanded, ellipsis });
        if !expanded && lines.len() > available {
            let more = lines.len() + 1 - available;
            lines.truncate(available - 1);
            let message = format!("{ellipsis} {}, ", counted(more, "more line"));
            lines.push(RichLine::from_segs(vec![
                Seg::new(message, Role::Muted),
                Seg::new(cx.glyphs.enter, Role::Key),
                Seg::new(" shows all", Role::Muted),
            ]));
            self.shortened = true;
        }
        self.shortened |= left_out;
        lines
    }
}

fn check_lines(check: &AttachCheckResult, width: u16, cx: &Draw<'_>) -> Vec<RichLine> {
    let (sign, role) = match check.passed {
        Some(true) => (cx.glyphs.ok, Role::Success),
        Some(false) => (cx.glyphs.bad, Role::Danger),
        None => (cx.glyphs.pending, Role::Muted),
    };
    let name = check_name(check.check);
    let result_known = check.passed.is_some();
    let column = 19.max(cells(name) + 2).min(width / 2).max(cells(name) + 1);
    let pad = " ".repeat(usize::from(column.saturating_sub(cells(name))));
    let note_role = if check.passed == Some(false) { Role::Text } else { Role::Muted };
    let note = [Seg::new(shown(&check.note), note_role)];
    let note = wrap_to(&note, width.saturating_sub(column + 2), MAX_NOTE_ROWS, cx.glyphs.ellipsis);
    let mut out = Vec::new();
    let head = vec![
        Seg::new(format!("{sign} "), role),
        Seg::new(format!("{name}{pad}"), if result_known { Role::Text } else { Role::Muted }),
    ];
    for (at, line) in note.into_iter().enumerate() {
        let indent = vec![Seg::new(" ".repeat(usize::from(column) + 2), Role::Text)];
        let mut segs = if at == 0 { head.clone() } else { indent };
        segs.extend(line.segs);
        out.push(RichLine::from_segs(segs));
    }
    if out.is_empty() {
        out.push(RichLine::from_segs(head));
    }
    out
}

fn same_note(shown: CommandForm, cx: &Draw<'_>) -> RichLine {
    let of = |same: CommandForm, text: &str| {
        if shown == same {
            Seg::new(text, Role::Text).with(Modifier::UNDERLINED)
        } else {
            Seg::new(text, Role::Muted)
        }
    };
    let dot = Seg::new(format!(" {} ", cx.glyphs.dot), Role::Muted);
    RichLine::from_segs(vec![of(CommandForm::Cli, "CLI"), dot, of(CommandForm::Curl, "curl")])
}

fn effect_rows(preview: &AttachPreview, isolation: Option<&str>, width: u16) -> Vec<Row> {
    let warns = preview.effect_mode == Some(EffectMode::ControlSignal);
    let mode = preview.effect_mode.map(|mode| match mode {
        EffectMode::ReadOnly => "read-only".to_owned(),
        mode => mode.to_string().replace('_', " "),
    });
    let mut out = Vec::new();
    let mut says = preview.may_do.iter();
    let head_role = if warns { Role::Waiting } else { Role::Text };
    let said_role = if warns { Role::Strong } else { Role::Text };
    let mut head: Vec<Seg> = mode.map(|mode| Seg::new(format!("{mode}: "), head_role)).into_iter().collect();
    if let Some(first) = says.next() {
        let plus = if warns { Modifier::BOLD } else { Modifier::empty() };
        head.push(Seg::new(shown(first), said_role).with(plus));
    }
    let mut lines: Vec<RichLine> =
        wrap(&head, width.saturating_sub(1)).into_iter().map(RichLine::from_segs).collect();
    let role = if warns { Role::Text } else { Role::Muted };
    for message in says {
        lines.extend(
            wrap(&[Seg::new(shown(message), role)], width.saturating_sub(1))
                .into_iter()
                .map(RichLine::from_segs),
        );
    }
    if let Some(isolation) = isolation {
        let message = [Seg::new("isolation  ", Role::Muted), Seg::new(shown(isolation), role)];
        lines.extend(wrap(&message, width.saturating_sub(1)).into_iter().map(RichLine::from_segs));
    }
    out.extend(lines.into_iter().map(|line| if warns { Row::Warning(line) } else { Row::Line(line) }));
    out
}

const SAME: &str = "Equivalent command";

/// Returns the click targets of the two command forms in a note that ends before `end`.
fn same_places(note: &RichLine, end: u16, y: u16) -> Vec<(Rect, CommandForm)> {
    let mut x = end.saturating_sub(note.width() as u16);
    let mut out = Vec::new();
    for (seg, same) in note.segs.iter().zip([Some(CommandForm::Cli), None, Some(CommandForm::Curl)]) {
        let width = cells(&seg.text);
        out.extend(same.map(|same| (Rect::new(x, y, width, 1), same)));
        x += width;
    }
    out
}

/// Formats the size of the content: `2.1 kB · 214 rows`.
fn content_note(value: &Value, size: Option<u64>, cx: &Draw<'_>) -> RichLine {
    let size_note = match value {
        Value::Array(items) => Some(counted(items.len(), "item")),
        Value::Object(map) => Some(counted(map.len(), "field")),
        Value::String(text) => Some(counted(text.lines().count(), "line")),
        _ => None,
    };
    let texts: Vec<String> = size.map(byte_size).into_iter().chain(size_note).collect();
    RichLine::of(texts.join(&format!(" {} ", cx.glyphs.dot)), Role::Muted)
}
