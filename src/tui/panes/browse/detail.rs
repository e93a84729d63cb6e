//! The state of the right part: the sub-tab, scroll positions, and texts being rendered.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::Arc;

use ratatui::layout::{Position, Rect};

use super::items::Entry;
use super::skill_list::ShownBundle;
use crate::action::Action;
use crate::pane::{Effect, Message, RenderJob};
use crate::run_requests::{RunRequest, RunResponse};
use crate::theme::Role;
use crate::widgets::tree::{TreeRow, rows};
use crate::widgets::{RichLine, Scroll, Seg, break_code};
use skills_api::{ContractView, Error, FileContent, SkillDetail, SkillRivals};
use skills_discovery::Rival;
use skills_skill::{Finding, Skill, SkillId, safe_text};

/// Maximum number of cached contracts.
const CONTRACTS_KEPT: usize = 64;
/// Maximum number of cached texts.
const CACHE_SIZE: usize = 24;
/// Number of lines shown of a text that is not rendered yet.
const RAW: usize = 400;

/// The sub-tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Tab {
    /// The rendered body.
    #[default]
    Instructions,
    /// The YAML, with inline findings.
    Frontmatter,
    /// Tree and preview.
    Files,
    /// Steps as a graph.
    Contract,
    /// Findings of parser and lint.
    Findings,
    /// Skills that win requests made from the description.
    Rivals,
}

/// All sub-tabs in order.
pub const TABS: [Tab; 6] =
    [Tab::Instructions, Tab::Frontmatter, Tab::Files, Tab::Contract, Tab::Rivals, Tab::Findings];

/// Areas of the last frame.
#[derive(Debug, Default)]
pub struct DrawnAreas {
    pub area: Rect,
    pub tabs: Vec<(Rect, Tab)>,
    pub tree: Rect,
    pub findings: Vec<(Rect, usize)>,
}

/// The loaded data of a skill and its view state.
#[derive(Debug, Default)]
pub struct Detail {
    /// The current sub-tab.
    pub tab: Tab,
    /// The skill, once loaded.
    pub skill: Option<Arc<SkillDetail>>,
    /// Why loading failed.
    pub error: Option<Error>,
    /// Scroll of instructions, frontmatter, preview, and the cursor among files and findings.
    pub text: Scroll,
    /// Scroll and cursor of the tree.
    pub tree: Scroll,
    pub preview: Scroll,
    /// Cursor in the findings.
    pub finding: usize,
    /// Loaded rivals, and the skills for which they were requested.
    pub rivals: HashMap<SkillId, Result<Arc<SkillRivals>, Error>>,
    pub asked_rivals: HashSet<SkillId>,
    /// Cursor in the rivals.
    pub rival: usize,
    /// Collapsed folders of the tree.
    pub folded: HashSet<String>,
    /// The file in the preview.
    pub file: Option<(String, Result<Arc<FileContent>, Error>)>,
    /// The source line at the top of the visible text, from 1.
    pub line_in_sight: u32,
    /// Whether texts are rendered with ASCII glyphs.
    pub ascii: bool,
    /// The last drawn instructions, kept until those of the next skill are rendered.
    pub last_text: Option<Arc<[RichLine]>>,
    /// Recently loaded skills and prefetched neighbors.
    pub known: HashMap<SkillId, Arc<SkillDetail>>,
    /// Loaded contracts; outdated ones are kept until newer ones arrive.
    pub contracts: HashMap<SkillId, Result<Arc<ContractView>, Error>>,
    /// Skills whose contracts were requested.
    pub asked_contracts: HashSet<SkillId>,
    /// Prefetched skills.
    pub asked_ahead: HashSet<SkillId>,
    /// Requests for what the last frame lacked.
    pub wanted: Vec<Effect>,
    pub drawn: DrawnAreas,
    order: VecDeque<u64>,
    rendered: HashMap<u64, Arc<[RichLine]>>,
    requested: HashSet<u64>,
}

impl Detail {
    /// Shows another skill; requests what is not loaded.
    pub fn select(&mut self, id: &SkillId, is_readable: bool) -> Vec<Effect> {
        self.leave();
        if let Some(known) = self.known.get(id) {
            self.skill = Some(Arc::clone(known));
            return self.preview(Some(id));
        }
        if is_readable { vec![Effect::Describe(id.clone())] } else { Vec::new() }
    }

    /// Resets the state for another skill.
    fn leave(&mut self) {
        self.skill = None;
        self.error = None;
        self.text = Scroll::default();
        self.tree = Scroll::default();
        self.preview = Scroll::default();
        self.finding = 0;
        self.rival = 0;
        self.folded.clear();
        self.file = None;
    }

    /// Moves on by a number of sub-tabs.
    pub fn turn(&mut self, steps: usize) {
        let at = TABS.iter().position(|t| *t == self.tab).unwrap_or(0);
        self.show(TABS[(at + steps) % TABS.len()]);
    }

    /// Shows a sub-tab from its top.
    pub fn show(&mut self, tab: Tab) {
        if tab != self.tab {
            self.tab = tab;
            self.text = Scroll::default();
        }
    }

    pub fn tree_rows(&self) -> Vec<TreeRow> {
        let Some(skill) = &self.skill else { return Vec::new() };
        let paths: Vec<&str> = skill.files.iter().map(|f| f.path.as_str()).collect();
        rows(&paths, &self.folded)
    }

    /// Returns the file under the cursor of the tree.
    pub fn chosen_file(&self) -> Option<String> {
        let row = self.tree_rows().into_iter().nth(self.tree.cursor)?;
        row.file.map(|_| row.path)
    }

    /// Returns a text rendered at a width; requests it if it is not cached.
    pub fn rendered(&mut self, text: &str, syntax: &str, width: u16) -> Option<Arc<[RichLine]>> {
        let mut hasher = DefaultHasher::new();
        (text, syntax, width, self.ascii).hash(&mut hasher);
        let key = hasher.finish();
        if let Some(lines) = self.rendered.get(&key) {
            return Some(Arc::clone(lines));
        }
        if self.requested.insert(key) {
            let job =
                RenderJob { key, text: text.into(), syntax: syntax.to_owned(), width, ascii: self.ascii };
            self.wanted.push(Effect::Render(job));
        }
        None
    }

    /// Handles what was loaded; `selected` is the skill that is shown.
    pub fn take(&mut self, message: &Message, selected: Option<&SkillId>) -> Vec<Effect> {
        match message {
            Message::Detail(id, detail) => {
                if let Ok(detail) = detail {
                    self.know(id, detail);
                }
                if Some(id) != selected {
                    return Vec::new();
                }
                match detail {
                    Ok(detail) => (self.skill, self.error) = (Some(Arc::clone(detail)), None),
                    Err(error) => self.error = Some(error.clone()),
                }
                return self.preview(selected);
            }
            Message::File(id, path, content)
                if Some(id) == selected && self.chosen_file().as_deref() == Some(path) =>
            {
                self.file = Some((path.clone(), content.clone()));
                self.preview = Scroll::default();
            }
            Message::Rendered(key, lines) => self.take_rendered(*key, lines),
            Message::Run(RunResponse::Contract(skill, contract)) => {
                if self.contracts.len() > CONTRACTS_KEPT {
                    self.contracts.clear();
                    self.asked_contracts.clear();
                }
                self.contracts.insert(SkillId::new(skill), contract.clone());
            }
            Message::Run(RunResponse::Following) => self.asked_contracts.clear(),
            Message::Rivals(id, rivals) => {
                if self.rivals.len() > CONTRACTS_KEPT {
                    self.forget_rivals();
                }
                self.asked_rivals.insert(id.clone());
                self.rivals.insert(id.clone(), rivals.clone());
            }
            _ => {}
        }
        Vec::new()
    }

    /// Returns the contract of a skill; requests it if it is not loaded or may be outdated.
    pub fn contract(&mut self, id: &SkillId) -> Option<Result<Arc<ContractView>, Error>> {
        if self.asked_contracts.insert(id.clone()) {
            self.wanted.push(Effect::Run(RunRequest::Contract(id.to_string())));
        }
        self.contracts.get(id).cloned()
    }

    /// Requests the file under the tree's cursor if it is not loaded.
    pub fn preview(&mut self, selected: Option<&SkillId>) -> Vec<Effect> {
        if self.tab != Tab::Files {
            return Vec::new();
        }
        let (Some(id), Some(path)) = (selected, self.chosen_file()) else { return Vec::new() };
        let there = self.file.as_ref().is_some_and(|(known, _)| *known == path);
        if there { Vec::new() } else { vec![Effect::ReadFile(id.clone(), path)] }
    }

    /// Prefetches skills, and their texts, so that the next step shows them at once.
    pub fn prefetch<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>, width: u16) {
        for entry in entries {
            if let Some(skill) = self.known.get(&entry.id).cloned() {
                self.rendered(&skill.body, "markdown", width);
            } else if self.asked_ahead.insert(entry.id.clone()) {
                self.wanted.push(Effect::Describe(entry.id.clone()));
            }
        }
    }

    /// Returns the findings of the bundle that is shown; once loaded, including those that depend on other skills.
    pub fn findings<'a>(&'a self, shown: ShownBundle<'a>) -> &'a [Finding] {
        match (shown.refusal, &self.skill, shown.skill) {
            (Some(refusal), ..) => &refusal.findings,
            (None, Some(detail), _) => &detail.findings,
            (None, None, skill) => skill.map_or(&[], |skill| &skill.findings),
        }
    }

    pub fn rivals_of(&self, id: &SkillId) -> &[Rival] {
        let rivals = self.rivals.get(id).and_then(|rivals| rivals.as_ref().ok());
        rivals.map_or(&[], |rivals| &rivals.report.rivals)
    }

    /// Returns the rival under the cursor.
    pub fn chosen_rival(&self, id: &SkillId) -> Option<&SkillId> {
        self.rivals_of(id).get(self.rival).map(|rival| &rival.skill_id)
    }

    /// Discards the rivals.
    pub fn forget_rivals(&mut self) {
        self.rivals.clear();
        self.asked_rivals.clear();
    }

    /// Records the source line at the top, where the editor opens the file.
    pub fn note_line(&mut self, lines: &[RichLine]) {
        let top = self.text.offset.min(lines.len());
        let at = lines[top..].iter().take(self.text.height).map(|l| l.source).find(|s| *s > 0);
        let before = || lines[..top].iter().rev().map(|l| l.source).find(|s| *s > 0);
        self.line_in_sight = at.or_else(before).unwrap_or(1);
    }

    /// Returns the file and line to edit: what the sub-tab shows.
    pub fn place_to_edit(&self, shown: ShownBundle<'_>, skill: &Skill) -> Option<(PathBuf, u32)> {
        let own = |line| (skill.location.clone(), line);
        Some(match self.tab {
            Tab::Instructions => own(skill.body_line + self.line_in_sight.saturating_sub(1)),
            Tab::Frontmatter => own(self.line_in_sight.max(1)),
            Tab::Contract => (skill.root_dir.join("skill.yaml"), 1),
            Tab::Files => (skill.root_dir.join(self.chosen_file()?), 1),
            Tab::Findings => {
                let finding = self.findings(shown).get(self.finding)?;
                (skill.root_dir.join(&finding.file), finding.span.map_or(1, |s| s.line))
            }
            Tab::Rivals => own(1),
        })
    }

    /// Moves the cursor of the sub-tab, or scrolls it; returns `None` if the action moves none.
    pub fn move_by(
        &mut self,
        action: Action,
        shown: Option<ShownBundle<'_>>,
        selected: Option<&SkillId>,
    ) -> Option<Vec<Effect>> {
        match self.tab {
            Tab::Instructions | Tab::Frontmatter | Tab::Contract => {
                let rows = action.rows(self.text.page())?;
                // Drawing knows the length and clamps the offset.
                let offset = self.text.offset.saturating_add_signed(rows);
                self.text.offset = offset.min(usize::MAX / 2);
            }
            Tab::Findings => {
                let count = shown.map_or(0, |shown| self.findings(shown).len());
                let next = self.finding.saturating_add_signed(action.rows(5)?);
                self.finding = next.min(count.saturating_sub(1));
            }
            Tab::Rivals => {
                let count = shown.map_or(0, |shown| self.rivals_of(&shown.entry.id).len());
                let next = self.rival.saturating_add_signed(action.rows(5)?);
                self.rival = next.min(count.saturating_sub(1));
            }
            Tab::Files if matches!(action, Action::PageUp | Action::PageDown) => {
                let rows = action.rows(self.preview.page())?;
                self.preview.offset = self.preview.offset.saturating_add_signed(rows);
            }
            Tab::Files => {
                let rows = action.rows(1)?;
                let count = self.tree_rows().len();
                self.tree.by(rows, count);
                return Some(self.preview(selected));
            }
        }
        Some(Vec::new())
    }

    /// Collapses or expands the folder under the cursor of the tree; returns whether it is one.
    pub fn fold(&mut self) -> Option<bool> {
        let row = self.tree_rows().into_iter().nth(self.tree.cursor)?;
        if row.file.is_none() && !self.folded.remove(&row.path) {
            self.folded.insert(row.path);
        }
        Some(row.file.is_none())
    }

    pub fn click(&mut self, at: Position, selected: Option<&SkillId>) -> Vec<Effect> {
        if let Some((_, tab)) = self.drawn.tabs.iter().find(|(rect, _)| rect.contains(at)) {
            self.show(*tab);
            return self.preview(selected);
        }
        if let Some((_, finding)) = self.drawn.findings.iter().find(|(rect, _)| rect.contains(at)) {
            self.finding = *finding;
        }
        if self.tab == Tab::Files && self.drawn.tree.contains(at) {
            let row = self.tree.offset + usize::from(at.y - self.drawn.tree.y);
            if row < self.tree_rows().len() {
                self.tree.cursor = row;
                return self.preview(selected);
            }
        }
        Vec::new()
    }

    pub fn wheel(&mut self, at: Position, rows: isize) {
        let scroll = match self.tab {
            Tab::Files if self.drawn.tree.contains(at) => {
                let count = self.tree_rows().len();
                self.tree.by(rows.signum(), count);
                return;
            }
            Tab::Files => &mut self.preview,
            _ => &mut self.text,
        };
        // Drawing clamps the offset.
        scroll.offset = scroll.offset.saturating_add_signed(rows);
    }

    /// Caches a loaded skill; a full cache is cleared first.
    fn know(&mut self, id: &SkillId, detail: &Arc<SkillDetail>) {
        if self.known.len() >= CACHE_SIZE {
            self.forget();
        }
        self.known.insert(id.clone(), Arc::clone(detail));
    }

    /// Discards cached data that may have changed.
    pub fn forget(&mut self) {
        self.known.clear();
        self.asked_ahead.clear();
        self.asked_contracts.clear();
    }

    /// Stores a rendered text.
    fn take_rendered(&mut self, key: u64, lines: &Arc<[RichLine]>) {
        if !self.requested.remove(&key) {
            return;
        }
        if self.order.len() >= CACHE_SIZE
            && let Some(oldest) = self.order.pop_front()
        {
            self.rendered.remove(&oldest);
        }
        self.order.push_back(key);
        self.rendered.insert(key, Arc::clone(lines));
    }
}

/// Returns the syntax of a file for highlighting, by its name.
pub fn syntax_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(_, extension)| extension)
}

/// Returns the beginning of a text, wrapped and safe to draw: shown until it is rendered.
pub fn raw(text: &str, width: u16) -> Arc<[RichLine]> {
    let mut out = Vec::new();
    for (index, line) in text.lines().take(RAW).enumerate() {
        let line = Seg::new(safe_text::line(&line.replace('\t', "    ")), Role::Text);
        for (part, segs) in break_code(&[line], width).into_iter().enumerate() {
            let source = if part == 0 { index as u32 + 1 } else { 0 };
            out.push(RichLine { segs, band: None, source });
        }
    }
    out.into()
}
