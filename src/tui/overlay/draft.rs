//! The editor of a description and `when_to_use`: the effects of a draft are measured at each keystroke, before anything is written.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;

use super::dialog::parts;
use super::draft_report::{Item, Pending, left_items, right_items};
use super::{Hint, Outcome, Overlay, frame};
use crate::action::{Action, Context};
use crate::form::Text;
use crate::keymap::mention;
use crate::pane::{Effect, InFile, Message, PaneId, SaveOutcome, StatedTexts};
use crate::theme::Role;
use crate::widgets::word_diff::word_diff;
use crate::widgets::{
    Painter, RichLine, Scroll, Seg, Title, cells, count, counted, cut_line, rows_above_note, shown,
    signed_count, wrap,
};
use skills_api::{DraftMeasure, DraftReport, DraftRequest, Event, SHIPPED_IS_READ_ONLY};
use skills_base::text::collapse_whitespace;
use skills_discovery::{Advice, clauses};
use skills_registry::Catalog;
use skills_skill::{Digest, Skill, SkillId};

/// Maximum number of rows of the text field.
const MAX_FIELD_HEIGHT: u16 = 8;
/// Rows next to a field: names, size, a gap, and two of the report.
const OTHER_ROWS: u16 = 5;
/// Minimum width for two columns.
const TWO_COLUMNS: u16 = 100;

/// A skill whose description is edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptionEdit {
    pub skill_id: SkillId,
    pub texts: StatedTexts,
    pub digest: Digest,
    pub name: String,
    pub tags: Vec<String>,
    /// The initial description, if it differs from the file's.
    pub proposed: Option<String>,
    /// The request of Discover, if any.
    pub intent: Option<String>,
    /// Whether the skill ships with this program, so that nothing can be written.
    pub is_shipped: bool,
}

impl DescriptionEdit {
    /// Creates it from a skill of the catalog.
    pub fn of(skill: &Skill, intent: Option<String>) -> Self {
        Self {
            skill_id: skill.id.clone(),
            texts: StatedTexts::of(skill),
            digest: skill.digest,
            name: skill.name.clone(),
            tags: skill.tags.clone(),
            proposed: None,
            intent,
            is_shipped: false,
        }
    }
}

/// The fields of the editor.
const FIELDS: [&str; 4] = ["description", "name", "when-to-use", "tags"];
const DESCRIPTION: usize = 0;
const NAME: usize = 1;
const WHEN_TO_USE: usize = 2;
const TAGS: usize = 3;

/// The measurements of a draft: increasingly expensive ones, while the text is unchanged.
const STAGES: [DraftMeasure; 3] = [DraftMeasure::Request, DraftMeasure::Golden, DraftMeasure::All];

/// The fields, one of which is shown.
struct Fields {
    texts: [Text; 4],
    focus: usize,
    /// Areas of the last frame.
    area: Rect,
    tabs: Vec<(Rect, usize)>,
}

impl Fields {
    fn of(skill: &DescriptionEdit) -> Self {
        let texts = [
            Text::new(skill.proposed.as_deref().unwrap_or(&skill.texts.description)),
            Text::new(&skill.name),
            Text::new(&skill.texts.when_to_use),
            Text::new(&skill.tags.join(", ")),
        ];
        Self { texts, focus: 0, area: Rect::ZERO, tabs: Vec::new() }
    }

    fn current(&mut self) -> &mut Text {
        &mut self.texts[self.focus]
    }

    fn name(&self) -> &str {
        self.texts[NAME].text().trim()
    }

    fn description(&self) -> &str {
        self.texts[DESCRIPTION].text()
    }

    fn stated_texts(&self) -> StatedTexts {
        let when_to_use = self.texts[WHEN_TO_USE].text().to_owned();
        StatedTexts { description: self.description().to_owned(), when_to_use }
    }

    fn tags(&self) -> Vec<String> {
        let tags = self.texts[TAGS].text().split(',').map(str::trim);
        tags.filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
    }

    /// Inserts a text, or replaces the description by it; returns whether a field changed.
    fn paste(&mut self, text: &str, is_description: bool) -> bool {
        // A description is one paragraph, so line breaks from the clipboard become spaces.
        let text = collapse_whitespace(text);
        if !is_description || text.is_empty() {
            return self.current().insert(&text);
        }
        self.focus = DESCRIPTION;
        self.current().set(&text);
        true
    }

    /// Sets the stated texts; a field that has its text is not changed.
    fn set(&mut self, texts: &StatedTexts) {
        for (field, text) in [(DESCRIPTION, &texts.description), (WHEN_TO_USE, &texts.when_to_use)] {
            if self.texts[field].text() != text {
                self.texts[field].set(text);
            }
        }
    }

    /// Makes a text that was written one step, which one undo takes back.
    fn join_steps(&mut self, before: &StatedTexts, now: &StatedTexts) {
        for (field, before, now) in [
            (DESCRIPTION, &before.description, &now.description),
            (WHEN_TO_USE, &before.when_to_use, &now.when_to_use),
        ] {
            if before != now && self.texts[field].text() == now {
                self.texts[field].set(before);
                self.texts[field].set(now);
            }
        }
    }

    fn click(&mut self, at: Position) {
        if self.area.contains(at) {
            self.current().click(at);
        } else if let Some((_, field)) = self.tabs.iter().find(|(area, _)| area.contains(at)) {
            self.focus = *field;
        }
    }

    fn draw(
        &mut self,
        area: Rect,
        (in_file, report): (&StatedTexts, Option<&DraftReport>),
        painter: &mut Painter<'_>,
    ) -> (u16, Option<Position>) {
        let mut x = area.x;
        self.tabs.clear();
        for (at, name) in FIELDS.iter().enumerate() {
            let end = if at == self.focus {
                painter.put_plus(
                    x,
                    area.y,
                    name,
                    Role::Strong,
                    Modifier::BOLD | Modifier::UNDERLINED,
                    cells(name),
                )
            } else {
                painter.put(x, area.y, name, Role::Muted, cells(name))
            };
            self.tabs.push((Rect::new(x, area.y, end - x, 1), at));
            x = end + 2;
        }
        let text = &mut self.texts[self.focus];
        let requested = u16::try_from(text.height(area.width)).unwrap_or(u16::MAX);
        let height = requested.clamp(2, MAX_FIELD_HEIGHT).min(area.height.saturating_sub(OTHER_ROWS).max(2));
        self.area = Rect { y: area.y + 1, height, ..area };
        painter.band(self.area, Role::Field);
        let style = painter.theme.style(Role::Field).patch(painter.theme.style(Role::Strong));
        let cursor = text.draw(self.area, painter.buf, style, true);
        let mut y = area.y + 1 + height;
        let words = |text: &str| text.split_whitespace().count();
        let stated = self.stated_texts();
        let (is_when, when) = (self.focus == WHEN_TO_USE, stated.when_to_use.chars().count());
        let (written, text) = if is_when {
            (&in_file.when_to_use, &stated.when_to_use)
        } else {
            (&in_file.description, &stated.description)
        };
        let (before, now) = (words(written), words(text));
        let mut segs = vec![Seg::new(counted(now, "word"), Role::Text)];
        if before != now {
            let role = if now > before { Role::DiffAdd } else { Role::DiffDel };
            let difference = signed_count(now as i64 - before as i64, painter.glyphs);
            segs.push(Seg::new(format!(" {difference}"), role));
        }
        segs.push(Seg::new(format!("   {}", counted(text.chars().count(), "character")), Role::Muted));
        if is_when {
            segs.push(Seg::new("   appended to the description by Claude Code", Role::Muted));
        } else {
            if let Some(report) = report {
                segs.push(Seg::new(format!("   {} tok", count(report.tokens as usize)), Role::Muted));
            }
            if when > 0 {
                segs.push(Seg::new(format!("   when-to-use: {when} more"), Role::Muted));
            }
        }
        let line = cut_line(&RichLine::from_segs(segs), area.width, painter.glyphs.ellipsis);
        painter.line(area.x, y, &line, area.width);
        y += 2;
        (y - area.y, cursor)
    }
}

#[derive(Default)]
struct Metrics {
    generation: u64,
    /// Number of completed measurements of the current text.
    stages: usize,
    /// Metrics of the current text as far as they are measured, and of an earlier one for the rest.
    report: Option<Arc<DraftReport>>,
    error: Option<String>,
}

impl Metrics {
    fn is_pending(&self) -> bool {
        self.stages < STAGES.len()
    }

    /// Returns whether the figures of the golden set are those of an earlier text.
    fn is_golden_pending(&self) -> bool {
        self.stages <= STAGES.iter().position(|stage| *stage == DraftMeasure::Golden).unwrap_or_default()
    }

    /// Returns the rewrite prompt of the current text, or why there is none.
    fn prompt(&self) -> Result<String, String> {
        if self.is_golden_pending() {
            return Err("the golden set is being measured; try again".to_owned());
        }
        let prompt = self.report.as_ref().and_then(|report| report.prompt.clone());
        prompt.ok_or_else(|| {
            format!("a rewrite prompt needs golden queries; {} adds one", mention(Action::AddGolden))
        })
    }

    /// Handles a change of the text, or of what it is compared with.
    fn restart(&mut self, texts: &StatedTexts) {
        (self.stages, self.error) = (0, None);
        self.generation += 1;
        let Some(report) = &mut self.report else { return };
        // Figures of clauses that are gone, and advice that was taken, belong to no text.
        let present: HashSet<String> = [&texts.description, &texts.when_to_use]
            .into_iter()
            .flat_map(|text| clauses(text))
            .map(|clause| clause.trim().to_owned())
            .collect();
        let words = texts.description.to_lowercase();
        let has =
            |advice: &Advice| advice.word.split_whitespace().all(|word| words.contains(&word.to_lowercase()));
        let report = Arc::make_mut(report);
        report.clauses.retain(|value| present.contains(value.clause.trim()));
        report.advice.retain(|advice| !has(advice));
    }

    /// Handles a measurement of the current text; returns whether another one follows.
    fn take(&mut self, report: &Result<Arc<DraftReport>, skills_api::Error>) -> bool {
        let new = match report {
            Ok(new) => new,
            Err(error) => {
                (self.error, self.stages) = (Some(error.message.clone()), STAGES.len());
                return false;
            }
        };
        let mut merged = (**new).clone();
        if let Some(earlier) = &self.report {
            // What is not measured yet stays visible, marked as being updated.
            if self.stages < 1 {
                merged.golden.clone_from(&earlier.golden);
                merged.shown.clone_from(&earlier.shown);
            }
            if self.stages < 2 {
                merged.advice.clone_from(&earlier.advice);
                merged.clauses.clone_from(&earlier.clauses);
                merged.attractions.clone_from(&earlier.attractions);
            }
        }
        (self.report, self.error) = (Some(Arc::new(merged)), None);
        self.stages += 1;
        self.is_pending()
    }
}

/// The changes of the file since the draft was opened.
#[derive(Default)]
struct FileChange {
    /// What another program wrote to it.
    on_disk: Option<InFile>,
    /// The texts that were replaced by writing.
    replaced: Option<StatedTexts>,
    /// The versions of the file that were replaced by writing, newest last.
    versions: Vec<Arc<str>>,
    /// Whether writing was rejected because the file had changed.
    is_refused: bool,
}

impl FileChange {
    /// Returns the texts that the file has now; `read` are those of the draft's base.
    fn current<'a>(&'a self, read: &'a StatedTexts) -> &'a StatedTexts {
        self.on_disk.as_ref().map_or(read, |now| &now.texts)
    }

    /// Returns the texts to write: those entered; a field in which nothing was entered follows the file.
    fn merge(&self, read: &StatedTexts, mut entered: StatedTexts) -> StatedTexts {
        let now = self.current(read);
        for (text, read, now) in [
            (&mut entered.description, &read.description, &now.description),
            (&mut entered.when_to_use, &read.when_to_use, &now.when_to_use),
        ] {
            if text == read {
                text.clone_from(now);
            }
        }
        entered
    }

    fn note(&self) -> Option<Note> {
        self.on_disk.as_ref()?;
        let (reload, write) = (mention(Action::ReloadFile), mention(Action::Execute));
        let text = if self.is_refused {
            format!(
                "Not written: the file changed on disk. {reload} reloads it and keeps your text; {write} compares again."
            )
        } else {
            format!("The file changed on disk: {reload} reloads it and keeps your text.")
        };
        Some((text, Role::Warning))
    }
}

pub struct DraftEditor {
    pane: PaneId,
    skill: DescriptionEdit,
    fields: Fields,
    metrics: Metrics,
    /// Whether the next Ctrl-S writes: the diff is shown.
    confirming: bool,
    /// What was written last, if nothing was entered since.
    written: Option<&'static str>,
    /// Whether the next Esc discards the text.
    discarding: bool,
    /// Whether the rewrite prompt was copied and nothing was entered since: what is pasted is its answer.
    expects_answer: bool,
    /// Why the text was not written, and its result.
    not_written: Option<Note>,
    file: FileChange,
    scroll: Scroll,
    rows: usize,
}

/// The row above the metrics.
type Note = (String, Role);

/// Returns the names of the texts that differ.
fn changed(old: &StatedTexts, new: &StatedTexts) -> &'static str {
    match (old.description != new.description, old.when_to_use != new.when_to_use) {
        (_, false) => "description",
        (false, true) => "when-to-use",
        (true, true) => "description and when-to-use",
    }
}

fn answer_note() -> Note {
    let text = "Pasting replaces the description with the answer; Ctrl-_ restores it.";
    (text.to_owned(), Role::Info)
}

fn written_note(what: &str) -> Note {
    let mut letters = what.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let what: String = first.into_iter().chain(letters).collect();
    let write = mention(Action::Execute);
    let text =
        format!("{what} written; the rest of the file is unchanged. Ctrl-_ followed by {write} restores it.");
    (text, Role::Success)
}

impl DraftEditor {
    /// Creates the editor and the request for the metrics of the current description.
    pub fn open(pane: PaneId, skill: DescriptionEdit) -> (Self, Effect) {
        let editor = Self {
            pane,
            fields: Fields::of(&skill),
            skill,
            metrics: Metrics { generation: 1, ..Metrics::default() },
            confirming: false,
            written: None,
            discarding: false,
            expects_answer: false,
            not_written: None,
            file: FileChange::default(),
            scroll: Scroll::default(),
            rows: 0,
        };
        let effect = editor.measure();
        (editor, effect)
    }

    fn is_changed(&self) -> bool {
        self.fields.stated_texts() != self.skill.texts
    }

    /// Returns which of name and tags differ: changes of these are measured, but not written.
    fn unwritable_change(&self) -> Option<&'static str> {
        match (self.fields.name() != self.skill.name, self.fields.tags() != self.skill.tags) {
            (true, true) => Some("name and tags"),
            (true, false) => Some("name"),
            (false, true) => Some("tags"),
            (false, false) => None,
        }
    }

    /// Returns the note that the figures count a change that is not written.
    fn unwritten_note(&self) -> Option<Note> {
        let what = self.unwritable_change()?;
        let text =
            format!("Not written: {what}. The figures include this change; edit the file to apply it.");
        Some((text, Role::Warning))
    }

    /// Returns the request for the next measurement.
    fn measure(&self) -> Effect {
        let measure = STAGES[self.metrics.stages.min(STAGES.len() - 1)];
        let name = self.fields.name();
        let measures_golden = measure != DraftMeasure::Request;
        Effect::Draft {
            request: DraftRequest {
                skill_id: self.skill.skill_id.to_string(),
                description: Some(self.fields.description().to_owned()),
                when_to_use: (self.fields.stated_texts().when_to_use != self.skill.texts.when_to_use)
                    .then(|| self.fields.stated_texts().when_to_use),
                name: (name != self.skill.name && !name.is_empty()).then(|| name.to_owned()),
                tags: (self.fields.tags() != self.skill.tags).then(|| self.fields.tags()),
                intent: self.skill.intent.clone(),
                clauses: measure == DraftMeasure::All,
                prompt: measures_golden,
                measure,
                ..DraftRequest::default()
            },
            generation: self.metrics.generation,
        }
    }

    fn changed(&mut self) -> Outcome {
        (self.confirming, self.written, self.not_written) = (false, None, None);
        self.expects_answer = false;
        self.metrics.restart(&self.fields.stated_texts());
        if self.fields.description().trim().is_empty() {
            // No figures belong to an empty text.
            (self.metrics.stages, self.metrics.report) = (STAGES.len(), None);
            self.metrics.error = Some("the description is empty".to_owned());
            return Outcome::Stay;
        }
        Outcome::Request(self.pane, vec![self.measure()])
    }

    /// Measures the unchanged text again: what it is compared with has changed. The figures stay until then.
    fn base_changed(&mut self) -> Outcome {
        if self.fields.description().trim().is_empty() {
            return Outcome::Handled;
        }
        self.metrics.restart(&self.fields.stated_texts());
        Outcome::HandledWith(self.pane, vec![self.measure()])
    }

    /// Returns the texts that the file has now.
    fn in_file(&self) -> &StatedTexts {
        self.file.current(&self.skill.texts)
    }

    /// Returns the texts to write.
    fn merged(&self) -> StatedTexts {
        self.file.merge(&self.skill.texts, self.fields.stated_texts())
    }

    /// Makes the texts in the file the base of the comparison; the entered text is kept. Returns whether the base
    /// changed.
    fn take_base(&mut self) -> bool {
        self.file.is_refused = false;
        let texts = self.merged();
        let Some(base) = self.file.on_disk.take() else { return false };
        self.fields.set(&texts);
        (self.skill.texts, self.skill.digest) = (base.texts, base.digest);
        true
    }

    /// Handles a reload of the catalog.
    fn catalog_changed(&mut self, catalog: &Catalog) -> Outcome {
        let Some(skill) = catalog.by_id(self.skill.skill_id.as_str()) else { return Outcome::Stay };
        let now = StatedTexts::of(skill);
        // A catalog from before the text was written does not count as a change.
        if self.file.replaced.as_ref() == Some(&now) {
            return Outcome::Stay;
        }
        if now.is_same(self.in_file()) {
            // Another part of the file changed: the difference that is shown stays the same.
            let digest =
                self.file.on_disk.as_mut().map_or(&mut self.skill.digest, |on_disk| &mut on_disk.digest);
            *digest = skill.digest;
            return Outcome::Stay;
        }
        let is_own = now.is_same(&self.fields.stated_texts()) || now.is_same(&self.skill.texts);
        // Unless a text was entered that could be lost, the file's is taken.
        if is_own || !self.is_changed() {
            (self.file.on_disk, self.file.is_refused) = (None, false);
            self.skill.texts.clone_from(&now);
            self.skill.digest = skill.digest;
            if is_own {
                return Outcome::Stay;
            }
            self.fields.set(&now);
            return self.changed();
        }
        self.confirming = false;
        self.file.on_disk = Some(InFile { texts: now, digest: skill.digest });
        Outcome::Stay
    }

    fn save(&mut self) -> Outcome {
        if let Some(what) = self.unwritable_change().filter(|_| !self.is_changed()) {
            let note = format!("only description and when-to-use are written; change {what} in the file");
            return Outcome::Request(self.pane, vec![Effect::Toast(note)]);
        }
        if !self.is_changed() || self.fields.description().trim().is_empty() {
            return Outcome::Stay;
        }
        // Blanks at the ends are not written.
        if self.merged().is_same(self.in_file()) {
            let note = "nothing to write: only white space at the ends differs";
            return Outcome::Request(self.pane, vec![Effect::Toast(note.to_owned())]);
        }
        if self.skill.is_shipped {
            self.not_written = Some((SHIPPED_IS_READ_ONLY.to_owned(), Role::Danger));
            return Outcome::Stay;
        }
        if !self.confirming {
            self.confirming = true;
            self.scroll = Scroll::default();
            return Outcome::Stay;
        }
        self.confirming = false;
        // The user has seen what is replaced.
        self.take_base();
        let write = Effect::WriteDescription {
            skill_id: self.skill.skill_id.clone(),
            shown: self.skill.digest,
            texts: self.fields.stated_texts(),
            earlier: self.file.versions.clone(),
        };
        Outcome::Request(self.pane, vec![write])
    }

    fn copy_prompt(&mut self) -> Outcome {
        let prompt = self.metrics.prompt();
        self.expects_answer = prompt.is_ok();
        let effect = match prompt {
            Ok(prompt) => Effect::Copy(prompt, "the rewrite prompt".to_owned()),
            Err(why) => Effect::Toast(why),
        };
        Outcome::Request(self.pane, vec![effect])
    }

    /// Returns what writing changes in the texts of the file, if it is to be shown.
    fn difference(&self, width: u16, ellipsis: &str) -> Vec<RichLine> {
        if !self.confirming && !self.file.is_refused {
            return Vec::new();
        }
        let (old, new) = (self.in_file(), self.merged());
        let diff = |old: &str, new: &str, label| word_diff(old.trim(), new.trim(), label, width, ellipsis);
        let mut out = diff(&old.description, &new.description, "");
        out.extend(diff(&old.when_to_use, &new.when_to_use, "when_to_use: "));
        out
    }

    /// Returns the notes above the metrics: the confirmation before writing, the result of writing, an error.
    fn notes(&self) -> Vec<Note> {
        if self.confirming {
            let what = changed(self.in_file(), &self.merged());
            let over = if self.file.on_disk.is_some() { " over the current one" } else { "" };
            let start = if self.file.on_disk.is_some() { "The file changed on disk. " } else { "" };
            let write = mention(Action::Execute);
            let question =
                format!("{start}Write this {what}{over}? {write} confirms; typing, Tab and Esc cancel.");
            return std::iter::once((question, Role::Warning)).chain(self.unwritten_note()).collect();
        }
        let mut out = Vec::new();
        if self.discarding {
            let text = "Unsaved draft. Press Esc again to discard it, or any other key to continue.";
            out.push((text.to_owned(), Role::Warning));
        }
        out.extend(self.expects_answer.then(answer_note));
        out.extend(self.file.note());
        out.extend(self.not_written.clone());
        if let Some(what) = self.written {
            out.push(written_note(what));
            out.extend(self.unwritten_note());
        }
        if let Some(error) = &self.metrics.error {
            out.push((error.clone(), Role::Danger));
        }
        out
    }
}

impl Overlay for DraftEditor {
    fn in_text(&self) -> bool {
        true
    }

    fn contexts(&self) -> Vec<Context> {
        vec![Context::Draft, Context::Dialog, Context::Field]
    }

    fn key(&mut self, key: KeyEvent, action: Option<Action>) -> Outcome {
        let was_discarding = std::mem::take(&mut self.discarding);
        let answers =
            matches!(action, Some(Action::Execute | Action::ReloadFile | Action::PageUp | Action::PageDown));
        if self.confirming && !answers {
            // The key answers the question: it is not entered.
            self.confirming = false;
            return Outcome::Stay;
        }
        match action {
            Some(Action::Execute) => return self.save(),
            Some(Action::RewritePrompt) => return self.copy_prompt(),
            Some(Action::ReloadFile) => {
                return if self.take_base() { self.changed() } else { Outcome::Stay };
            }
            Some(Action::NextPart) => self.fields.focus = (self.fields.focus + 1) % FIELDS.len(),
            Some(Action::PreviousPart) => {
                self.fields.focus = (self.fields.focus + FIELDS.len() - 1) % FIELDS.len();
            }
            Some(Action::Back | Action::LeaveField) if self.unsaved().is_some() && !was_discarding => {
                self.discarding = true;
            }
            Some(Action::Back | Action::LeaveField) => return Outcome::Close,
            Some(Action::PageUp) => self.scroll.roll(-self.scroll.page(), self.rows),
            Some(Action::PageDown) => self.scroll.roll(self.scroll.page(), self.rows),
            Some(Action::Up) => drop(self.fields.current().by_row(false)),
            Some(Action::Down) => drop(self.fields.current().by_row(true)),
            _ => {
                if self.fields.current().key(key) {
                    return self.changed();
                }
            }
        }
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) -> Outcome {
        if std::mem::take(&mut self.confirming) {
            return Outcome::Stay;
        }
        if self.fields.paste(text, self.expects_answer) { self.changed() } else { Outcome::Stay }
    }

    fn on_message(&mut self, message: &Message) -> Outcome {
        match message {
            Message::Draft(generation, report) if *generation == self.metrics.generation => {
                if self.metrics.take(report) {
                    Outcome::HandledWith(self.pane, vec![self.measure()])
                } else {
                    Outcome::Handled
                }
            }
            Message::Draft(..) => Outcome::Handled,
            Message::DescriptionWritten(skill, Ok(saved)) if *skill == self.skill.skill_id => {
                match saved {
                    SaveOutcome::InFile(InFile { texts, digest }, replaced) => {
                        self.file.versions.push(Arc::clone(replaced));
                        let before = std::mem::replace(&mut self.skill.texts, texts.clone());
                        let written = changed(&before, texts);
                        self.skill.digest = *digest;
                        (self.file.on_disk, self.file.is_refused) = (None, false);
                        self.fields.join_steps(&before, texts);
                        // The catalog may report the new text before the response arrives.
                        self.file.replaced =
                            Some(before).filter(|before| before != texts).or(self.file.replaced.take());
                        (self.written, self.expects_answer) = (Some(written), false);
                        return self.base_changed();
                    }
                    SaveOutcome::AsProposal(why) => {
                        let reported =
                            format!("Not written: {why}. Proposed for approval instead; see Proposals (7).");
                        self.not_written = Some((reported, Role::Waiting));
                    }
                    SaveOutcome::Changed(present) => {
                        (self.file.on_disk, self.file.is_refused) = (Some(present.clone()), true);
                    }
                }
                Outcome::Handled
            }
            Message::DescriptionWritten(_, Err(error)) => {
                // Not among the metrics: the next measurement would remove it.
                self.not_written = Some((error.message.clone(), Role::Danger));
                Outcome::Handled
            }
            Message::Catalog(catalog) => self.catalog_changed(catalog),
            // Only now a draft is compared with what was written.
            Message::Event(Event::Index(progress)) if progress.done => self.base_changed(),
            Message::Event(Event::Catalog(change)) => self.catalog_changed(&change.catalog),
            _ => Outcome::Stay,
        }
    }

    fn unsaved(&self) -> Option<String> {
        let skill = shown(self.skill.skill_id.as_str());
        let is_unsaved = self.is_changed() || self.unwritable_change().is_some();
        is_unsaved.then(|| format!("The draft of {skill} has not been saved."))
    }

    fn wheel(&mut self, rows: isize) -> Outcome {
        self.scroll.roll(rows, self.rows);
        Outcome::Stay
    }

    fn click(&mut self, at: Position) -> Outcome {
        self.fields.click(at);
        Outcome::Stay
    }

    fn hints(&self) -> Vec<Hint> {
        let is_hidden = self.rows > self.scroll.height;
        let scroll = is_hidden.then_some(Hint::new(Action::PageDown, "scroll"));
        if self.confirming {
            let mut hints = vec![Hint::new(Action::Execute, "confirm")];
            hints.extend(scroll);
            hints.push(Hint::new(Action::Back, "cancel"));
            return hints;
        }
        let mut hints = vec![Hint::new(Action::Execute, "write")];
        if self.file.on_disk.is_some() {
            hints.push(Hint::new(Action::ReloadFile, "reload"));
        }
        hints.extend(scroll);
        hints.extend([
            Hint::new(Action::NextPart, "next field"),
            Hint::new(Action::Back, "close"),
            Hint::new(Action::RewritePrompt, "copy rewrite prompt"),
        ]);
        hints
    }

    fn help_items(&self) -> Vec<Hint> {
        let mut items = self.hints();
        if items.iter().all(|hint| hint.action != Action::PageDown) {
            items.push(Hint::new(Action::PageDown, "scroll"));
        }
        items
    }

    fn draw(&mut self, area: Rect, painter: &mut Painter<'_>, _now: Instant) -> Option<Position> {
        let title = format!("Draft of {}", shown(self.skill.skill_id.as_str()));
        let pending =
            Pending { golden: self.metrics.is_golden_pending(), clauses: self.metrics.is_pending() };
        let note = match self.unwritable_change() {
            _ if pending.golden => "updating".to_owned(),
            _ if pending.clauses => "measuring clauses".to_owned(),
            _ if self.is_changed() => "unsaved".to_owned(),
            Some(what) => format!("{what} not written"),
            None => "unchanged".to_owned(),
        };
        let inside = frame(area, painter, &title, &note, false);
        let is_wide = inside.width >= TWO_COLUMNS;
        let left_width = if is_wide { inside.width * 53 / 100 } else { inside.width };
        // Titles are outdented by two cells.
        let left = Rect { x: inside.x + 1, width: left_width.saturating_sub(1), ..inside };
        let report = self.metrics.report.clone();
        let (top, cursor) = self.fields.draw(left, (&self.skill.texts, report.as_deref()), painter);
        let contexts = self.contexts();
        let notes = self.notes().into_iter();
        let notes: Vec<Note> =
            notes.map(|(text, role)| (painter.with_keys(&text, &contexts), role)).collect();
        let intent = self.skill.intent.as_deref();
        let left_below = Rect { y: left.y + top, height: left.height.saturating_sub(top), ..left };
        // The difference has no column next to it.
        let left_below = if self.confirming {
            Rect { width: inside.right().saturating_sub(left.x + 1), ..left_below }
        } else {
            left_below
        };
        let note_items = |width: u16| {
            let mut items = Vec::new();
            for (text, role) in &notes {
                let rows = wrap(&[Seg::new(shown(text), *role)], width).into_iter();
                items.extend(rows.map(|segs| Item::Line(RichLine::from_segs(segs))));
            }
            let difference = self.difference(width, painter.glyphs.ellipsis);
            if !difference.is_empty() {
                items.push(Item::Gap);
                items.extend(difference.into_iter().map(Item::Line));
            }
            if !items.is_empty() {
                items.push(Item::Gap);
            }
            items
        };
        let mut columns: Vec<(Rect, Vec<Item>)> = Vec::new();
        let mut first = note_items(left_below.width);
        if let Some(report) = report.as_deref().filter(|_| !self.confirming) {
            if is_wide {
                first.extend(left_items(report, pending, left_below.width, painter));
                let x = left.right() + 3;
                let right = Rect { x, width: inside.right().saturating_sub(x), ..inside };
                columns.push((right, right_items(report, intent, pending, right.width, painter)));
            } else {
                first.extend(right_items(report, intent, pending, left_below.width, painter));
                first.push(Item::Gap);
                first.extend(left_items(report, pending, left_below.width, painter));
            }
        } else if !self.confirming && self.metrics.error.is_none() {
            first.push(Item::Line(RichLine::of("measuring", Role::Muted)));
        }
        columns.push((left_below, first));
        let hidden = |area: &Rect, items: &[Item]| items.len().saturating_sub(usize::from(area.height));
        let most = columns.iter().map(|(area, items)| hidden(area, items)).max().unwrap_or(0);
        self.scroll.height = usize::from(left_below.height);
        self.rows = most + self.scroll.height;
        self.scroll.roll(0, self.rows);
        for (area, items) in &columns {
            // A column that fits does not scroll with the other one.
            let offset = self.scroll.offset.min(hidden(area, items));
            // The last row is that of the note about those below.
            let height = rows_above_note(items.len() - offset, area.height);
            for (item, y) in items.iter().skip(offset).take(height).zip(area.y..area.bottom()) {
                match item {
                    Item::Gap => {}
                    Item::Title(name, note) => {
                        Title::of(*name, false).note(note.clone()).draw(
                            painter,
                            area.x.saturating_sub(2),
                            y,
                            area.width + 2,
                        );
                    }
                    Item::Line(line) => drop(painter.line(area.x, y, line, area.width)),
                }
            }
            let shown = Scroll { offset, height, ..Scroll::default() };
            parts::more_below(*area, painter, items.len(), &shown);
        }
        cursor
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;
    use crate::picture;
    use skills_api::{Code, Error};

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    fn editor() -> DraftEditor {
        let skill = DescriptionEdit {
            skill_id: SkillId::new("statements"),
            texts: texts("Reads statements."),
            digest: Digest::of(b"Reads statements."),
            name: "statements".to_owned(),
            tags: Vec::new(),
            proposed: None,
            intent: Some("read my statement".to_owned()),
            is_shipped: false,
        };
        let (editor, effect) = DraftEditor::open(PaneId::Browse, skill);
        assert!(matches!(effect, Effect::Draft { generation: 1, .. }));
        editor
    }

    #[test]
    fn the_smallest_screen_keeps_its_frame() {
        let mut editor = editor();
        editor.paste(&" Reads the statements of a bank.".repeat(20));
        let draw = |painter: &mut Painter<'_>| {
            editor.draw(Rect::new(0, 0, 40, 9), painter, Instant::now());
        };
        let screen = picture::text(&picture::painted(40, 12, draw));
        let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
        assert!(lines[8].starts_with('╰') && !lines[8].contains(char::is_alphabetic), "{screen}");
        assert!(lines[9..].iter().all(|line| line.is_empty()), "{screen}");
        assert!(screen.contains(" words"), "{screen}");
    }

    fn texts(description: &str) -> StatedTexts {
        StatedTexts { description: description.to_owned(), when_to_use: String::new() }
    }

    fn in_file(description: &str) -> InFile {
        InFile { texts: texts(description), digest: Digest::of(description.as_bytes()) }
    }

    fn report(description: &str) -> Arc<DraftReport> {
        Arc::new(DraftReport {
            skill_id: SkillId::new("statements"),
            description: description.to_owned(),
            when_to_use: None,
            tokens: 7,
            before: None,
            after: None,
            golden: None,
            advice: Vec::new(),
            clauses: Vec::new(),
            attractions: Vec::new(),
            prompt: None,
            findings: Vec::new(),
            shown: Vec::new(),
        })
    }

    fn text(editor: &DraftEditor) -> String {
        let keymap = crate::keymap::Keymap::shipped().unwrap();
        let named = |text: String| keymap.with_keys(&text, &editor.contexts(), &crate::glyphs::UNICODE);
        let notes = editor.notes().into_iter().map(|(text, _)| named(text));
        let difference = editor.difference(200, "…").into_iter().map(|line| line.plain_text());
        notes.chain(difference).map(|line| line + "\n").collect()
    }

    fn stage(outcome: &Outcome) -> Option<DraftMeasure> {
        match outcome {
            Outcome::Request(_, effects) | Outcome::HandledWith(_, effects) => match &effects[..] {
                [Effect::Draft { request, .. }] => Some(request.measure),
                _ => None,
            },
            _ => None,
        }
    }

    #[test]
    fn the_newest_text_wins() {
        let mut editor = editor();
        let Outcome::Request(_, effects) = editor.key(key(KeyCode::Char('x')), None) else { panic!() };
        let [Effect::Draft { request, generation: 2 }] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(request.description.as_deref(), Some("Reads statements.x"));
        assert_eq!(editor.on_message(&Message::Draft(1, Ok(report("old")))), Outcome::Handled);
        assert!(editor.metrics.report.is_none(), "a stale reply is dropped");
        editor.on_message(&Message::Draft(2, Ok(report("Reads statements.x"))));
        assert_eq!(editor.metrics.report.as_ref().unwrap().description, "Reads statements.x");
    }

    #[test]
    fn a_text_is_measured_in_stages_and_keeps_earlier_figures() {
        let mut editor = editor();
        let typed = editor.key(key(KeyCode::Char('x')), None);
        assert_eq!(stage(&typed), Some(DraftMeasure::Request));
        let next = editor.on_message(&Message::Draft(2, Ok(report("x"))));
        assert_eq!(stage(&next), Some(DraftMeasure::Golden));
        let golden = DraftReport {
            golden: Some(skills_discovery::GoldenChange::default()),
            prompt: Some("Rewrite".to_owned()),
            ..(*report("x")).clone()
        };
        let next = editor.on_message(&Message::Draft(2, Ok(Arc::new(golden.clone()))));
        assert_eq!(stage(&next), Some(DraftMeasure::All));
        assert!(!editor.metrics.is_golden_pending() && editor.metrics.is_pending(), "clauses follow");
        let copied = editor.key(key(KeyCode::Null), Some(Action::RewritePrompt));
        assert!(
            matches!(&copied, Outcome::Request(_, effects) if matches!(&effects[..], [Effect::Copy(text, _)] if text == "Rewrite"))
        );
        // The answer replaces the description in one step.
        editor.paste("Reads all bank\nstatements.");
        assert_eq!(editor.fields.description(), "Reads all bank statements.");
        editor.key(KeyEvent::new(KeyCode::Char('_'), KeyModifiers::CONTROL), None);
        assert_eq!(editor.fields.description(), "Reads statements.x");
        editor.metrics.generation = 2;
        // The next key starts over; the golden metrics stay until the new ones arrive.
        editor.key(key(KeyCode::Char('y')), None);
        editor.on_message(&Message::Draft(3, Ok(report("xy"))));
        assert!(editor.metrics.report.as_ref().unwrap().golden.is_some());
        let too_early = editor.key(key(KeyCode::Null), Some(Action::RewritePrompt));
        assert!(
            matches!(&too_early, Outcome::Request(_, effects) if matches!(&effects[..], [Effect::Toast(_)]))
        );
    }

    #[test]
    fn figures_of_removed_clauses_are_not_shown() {
        let mut editor = editor();
        let clause = |text: &str| skills_discovery::ClauseValue {
            clause: text.to_owned(),
            queries: 4,
            mrr: 0.1,
            false_triggers: 0,
        };
        let advice = |word: &str| Advice {
            query: "read".to_owned(),
            word: word.to_owned(),
            gain: 1.0,
            rank: Some(1),
            won: 1,
            lost: 0,
            false_triggers: 0,
        };
        let clauses = vec![clause("Reads statements."), clause("Reads receipts.")];
        let advised = vec![advice("statements"), advice("receipts")];
        let old = DraftReport { clauses, advice: advised, ..(*report("x")).clone() };
        editor.metrics.report = Some(Arc::new(old));
        editor.key(key(KeyCode::Char(' ')), None);
        let report = editor.metrics.report.as_ref().unwrap();
        let clauses: Vec<&str> = report.clauses.iter().map(|value| value.clause.as_str()).collect();
        let words: Vec<&str> = report.advice.iter().map(|advice| advice.word.as_str()).collect();
        assert_eq!((clauses, words), (vec!["Reads statements."], vec!["receipts"]));
    }

    #[test]
    fn long_change_scrolls_and_counts_hidden_lines() {
        let mut editor = editor();
        editor.paste(&" Reads one more kind of document.".repeat(40));
        editor.key(key(KeyCode::Null), Some(Action::Execute));
        let screen = |editor: &mut DraftEditor| {
            let draw = |painter: &mut Painter<'_>| {
                editor.draw(Rect::new(0, 0, 80, 24), painter, Instant::now());
            };
            picture::text(&picture::painted(80, 24, draw))
        };
        let labels = |editor: &DraftEditor| editor.hints().iter().map(|hint| hint.label).collect::<Vec<_>>();
        let top = screen(&mut editor);
        assert!(top.contains("more below"), "{top}");
        assert_eq!(labels(&editor), ["confirm", "scroll", "cancel"]);
        for _ in 0..9 {
            editor.key(key(KeyCode::Null), Some(Action::PageDown));
        }
        assert!(editor.confirming, "scrolling does not cancel");
        let end = screen(&mut editor);
        assert!(!end.contains("more below"), "{end}");
    }

    #[test]
    fn a_key_that_cancels_writing_is_not_entered() {
        let mut editor = editor();
        editor.key(key(KeyCode::Char('!')), None);
        for cancel in 0..3 {
            editor.key(key(KeyCode::Null), Some(Action::Execute));
            assert!(editor.confirming);
            let outcome = match cancel {
                0 => editor.key(key(KeyCode::Char('x')), None),
                1 => editor.key(key(KeyCode::Null), Some(Action::Back)),
                _ => editor.paste("pasted"),
            };
            assert_eq!(outcome, Outcome::Stay);
            assert!(!editor.confirming);
            assert_eq!(editor.fields.description(), "Reads statements.!");
        }
    }

    #[test]
    fn figures_are_measured_again_when_the_base_has_changed() {
        let mut editor = editor();
        editor.key(key(KeyCode::Char('!')), None);
        editor.on_message(&Message::Draft(2, Ok(report("Reads statements.!"))));
        let saved = Ok(SaveOutcome::InFile(in_file("Reads statements.!"), "old".into()));
        let written = editor.on_message(&Message::DescriptionWritten(SkillId::new("statements"), saved));
        assert_eq!(stage(&written), Some(DraftMeasure::Request));
        assert!(editor.metrics.report.is_some(), "the figures stay until then");
        let progress =
            |done| Message::Event(Event::Index(skills_api::IndexProgress { done, ..Default::default() }));
        assert_eq!(editor.on_message(&progress(false)), Outcome::Stay);
        assert_eq!(stage(&editor.on_message(&progress(true))), Some(DraftMeasure::Request));
    }

    #[test]
    fn tab_measures_another_name() {
        let mut editor = editor();
        editor.key(key(KeyCode::Null), Some(Action::NextPart));
        let typed = editor.key(key(KeyCode::Char('s')), None);
        let Outcome::Request(_, effects) = typed else { panic!() };
        let [Effect::Draft { request, .. }] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(request.name.as_deref(), Some("statementss"));
        assert_eq!(request.description.as_deref(), Some("Reads statements."));
        assert_eq!((editor.is_changed(), editor.unwritable_change()), (false, Some("name")));
    }

    #[test]
    fn a_change_that_is_not_written_is_named() {
        let mut editor = editor();
        editor.key(key(KeyCode::Char('!')), None);
        editor.fields.texts[TAGS].set("bank");
        assert!(!text(&editor).contains("tags"), "{}", text(&editor));
        editor.key(key(KeyCode::Null), Some(Action::Execute));
        assert!(text(&editor).contains("Not written: tags."), "{}", text(&editor));
        editor.key(key(KeyCode::Null), Some(Action::Execute));
        let saved = Ok(SaveOutcome::InFile(in_file("Reads statements.!"), "old".into()));
        editor.on_message(&Message::DescriptionWritten(SkillId::new("statements"), saved));
        assert!(text(&editor).contains("Not written: tags."), "{}", text(&editor));
        assert!(editor.unsaved().is_some());
    }

    #[test]
    fn a_write_error_keeps_the_draft_and_names_the_cause() {
        let mut editor = editor();
        editor.key(key(KeyCode::Char('!')), None);
        let full = Error::new(Code::InternalError, "not written: /s/SKILL.md: No space left on device");
        editor.on_message(&Message::DescriptionWritten(SkillId::new("statements"), Err(full)));
        assert_eq!(text(&editor), "not written: /s/SKILL.md: No space left on device\n");
        assert_eq!(editor.fields.description(), "Reads statements.!");
    }

    #[test]
    fn writing_shows_the_difference_first() {
        let mut editor = editor();
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::Execute)), Outcome::Stay, "nothing to write");
        editor.key(key(KeyCode::Char('?')), None);
        editor.key(key(KeyCode::Backspace), None);
        editor.key(key(KeyCode::Char('!')), None);
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::Execute)), Outcome::Stay);
        assert!(text(&editor).contains("- Reads statements.\n+ Reads statements.!"), "{}", text(&editor));
        let Outcome::Request(_, effects) = editor.key(key(KeyCode::Null), Some(Action::Execute)) else {
            panic!()
        };
        let [Effect::WriteDescription { shown, texts: written, .. }] = &effects[..] else {
            panic!("{effects:?}")
        };
        let description = &written.description;
        assert_eq!((*shown, description.as_str()), (Digest::of(b"Reads statements."), "Reads statements.!"));
        let saved = Ok(SaveOutcome::InFile(in_file(description), "old".into()));
        let written = Message::DescriptionWritten(SkillId::new("statements"), saved);
        editor.on_message(&written);
        assert!(!editor.is_changed());
        let undo = KeyEvent::new(KeyCode::Char('_'), KeyModifiers::CONTROL);
        editor.key(undo, None);
        assert_eq!(editor.fields.description(), "Reads statements.", "one undo restores what was replaced");
        editor.key(key(KeyCode::Char('!')), None);
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::Back)), Outcome::Close);
        editor.key(key(KeyCode::Char('?')), None);
        assert_eq!(
            editor.key(key(KeyCode::Null), Some(Action::Back)),
            Outcome::Stay,
            "a text is not lost by one key"
        );
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::Back)), Outcome::Close);
    }

    #[test]
    fn draft_of_a_shipped_skill_is_refused_without_confirmation() {
        let mut editor = editor();
        editor.skill.is_shipped = true;
        editor.key(key(KeyCode::Char('!')), None);
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::Execute)), Outcome::Stay);
        assert!(!editor.confirming);
        assert_eq!(text(&editor), format!("{SHIPPED_IS_READ_ONLY}\n"));
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::Execute)), Outcome::Stay);
    }

    #[test]
    fn when_to_use_is_measured_and_written() {
        let mut editor = editor();
        for _ in 0..2 {
            editor.key(key(KeyCode::Null), Some(Action::NextPart));
        }
        let typed = editor.paste("On bank\nstatements.");
        let Outcome::Request(_, effects) = typed else { panic!() };
        let [Effect::Draft { request, .. }] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(request.when_to_use.as_deref(), Some("On bank statements."));
        editor.key(key(KeyCode::Null), Some(Action::Execute));
        assert!(
            text(&editor).ends_with("cancel.\n+ when_to_use: On bank statements.\n"),
            "{}",
            text(&editor)
        );
        let Outcome::Request(_, effects) = editor.key(key(KeyCode::Null), Some(Action::Execute)) else {
            panic!()
        };
        let [Effect::WriteDescription { texts, .. }] = &effects[..] else { panic!("{effects:?}") };
        let written =
            StatedTexts { when_to_use: "On bank statements.".to_owned(), ..editor.skill.texts.clone() };
        assert_eq!(*texts, written);
        let now = InFile { texts: written, digest: Digest::of(b"x") };
        let saved = Ok(SaveOutcome::InFile(now, "old".into()));
        editor.on_message(&Message::DescriptionWritten(SkillId::new("statements"), saved));
        assert!(!editor.is_changed());
        // Another program changes the description only: the entered `when_to_use` is kept, the description follows.
        editor.paste(" And receipts.");
        let other = StatedTexts { description: "Reads all.".to_owned(), ..editor.skill.texts.clone() };
        editor.file.on_disk = Some(InFile { texts: other, digest: Digest::of(b"y") });
        editor.key(key(KeyCode::Null), Some(Action::Execute));
        let shown = text(&editor);
        let difference =
            "- when_to_use: On bank statements.\n+ when_to_use: On bank statements.And receipts.\n";
        assert!(shown.contains("Write this when-to-use over") && shown.ends_with(difference), "{shown}");
        assert!(!shown.contains("Reads all."), "the description is not written: {shown}");
        editor.key(key(KeyCode::Null), Some(Action::ReloadFile));
        let entered = "On bank statements.And receipts.";
        assert_eq!(
            (editor.fields.description(), editor.fields.stated_texts().when_to_use.as_str()),
            ("Reads all.", entered)
        );
    }

    #[test]
    fn a_refused_text_is_kept_and_compared_with_the_file() {
        let mut editor = editor();
        editor.key(key(KeyCode::Char('!')), None);
        let changed = Ok(SaveOutcome::Changed(in_file("Reads bank statements.")));
        editor.on_message(&Message::DescriptionWritten(SkillId::new("statements"), changed));
        assert_eq!(editor.fields.description(), "Reads statements.!");
        assert!(
            text(&editor).contains("- Reads bank statements.\n+ Reads statements.!"),
            "{}",
            text(&editor)
        );
        // Writing compares with the current text of the file, and replaces exactly that.
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::Execute)), Outcome::Stay);
        assert!(
            text(&editor).contains("- Reads bank statements.\n+ Reads statements.!"),
            "{}",
            text(&editor)
        );
        let Outcome::Request(_, effects) = editor.key(key(KeyCode::Null), Some(Action::Execute)) else {
            panic!()
        };
        let [Effect::WriteDescription { shown, texts: written, .. }] = &effects[..] else {
            panic!("{effects:?}")
        };
        let description = &written.description;
        assert_eq!(
            (*shown, description.as_str()),
            (Digest::of(b"Reads bank statements."), "Reads statements.!")
        );
        let saved = Ok(SaveOutcome::InFile(in_file("Reads statements.!"), "old".into()));
        editor.on_message(&Message::DescriptionWritten(SkillId::new("statements"), saved));
        let shown = text(&editor);
        assert!(shown.contains("Description written") && !shown.contains("Not written"), "{shown}");
    }

    #[test]
    fn reloading_keeps_the_typed_text() {
        let mut editor = editor();
        editor.key(key(KeyCode::Char('!')), None);
        assert_eq!(
            editor.key(key(KeyCode::Null), Some(Action::ReloadFile)),
            Outcome::Stay,
            "nothing to reload"
        );
        editor.file.on_disk = Some(in_file("Reads bank statements."));
        assert!(text(&editor).contains("The file changed on disk: Ctrl-R"), "{}", text(&editor));
        let measured = editor.key(key(KeyCode::Null), Some(Action::ReloadFile));
        assert_eq!(stage(&measured), Some(DraftMeasure::Request));
        assert_eq!(editor.fields.description(), "Reads statements.!");
        assert_eq!(editor.skill.texts.description, "Reads bank statements.");
        assert!(editor.unsaved().is_some_and(|lost| lost.contains("statements")));
    }

    #[test]
    fn empty_draft_is_rejected_locally() {
        let mut editor = editor();
        while !editor.fields.texts[0].is_empty() {
            editor.key(key(KeyCode::Backspace), None);
        }
        assert!(text(&editor).contains("the description is empty"));
        assert_eq!(editor.key(key(KeyCode::Null), Some(Action::Execute)), Outcome::Stay);
    }
}
