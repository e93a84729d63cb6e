//! The state of the right part: the sub-tab, scroll positions, and texts being rendered.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::pane::{Effect, RenderJob};
use crate::theme::Role;
use crate::widgets::rich::{RichLine, Seg};
use crate::widgets::scroll::Scroll;
use crate::widgets::tree::{TreeRow, rows};
use crate::widgets::wrap::break_code;
use skills_api::{ContractView, Error, FileContent, SkillDetail, SkillRivals};
use skills_skill::{SkillId, safe_text};

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
    /// The YAML, with findings at their lines.
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
    /// Scroll of the preview.
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
    pub drawn: Option<Arc<[RichLine]>>,
    /// Recently loaded skills and prefetched neighbors.
    pub known: HashMap<SkillId, Arc<SkillDetail>>,
    /// Loaded contracts; outdated ones are kept until newer ones arrive.
    pub contracts: HashMap<SkillId, Result<Arc<ContractView>, Error>>,
    /// Skills whose contracts were requested.
    pub asked_contracts: HashSet<SkillId>,
    /// Prefetched skills.
    pub asked_ahead: HashSet<SkillId>,
    order: VecDeque<u64>,
    rendered: HashMap<u64, Arc<[RichLine]>>,
    requested: HashSet<u64>,
}

impl Detail {
    /// Resets the state for another skill.
    pub fn leave(&mut self) {
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

    /// Returns the rows of the tree.
    #[must_use]
    pub fn tree_rows(&self) -> Vec<TreeRow> {
        let Some(skill) = &self.skill else { return Vec::new() };
        let paths: Vec<&str> = skill.files.iter().map(|f| f.path.as_str()).collect();
        rows(&paths, &self.folded)
    }

    /// Returns the file under the cursor of the tree.
    #[must_use]
    pub fn chosen_file(&self) -> Option<String> {
        let row = self.tree_rows().into_iter().nth(self.tree.cursor)?;
        row.file.map(|_| row.path)
    }

    /// Returns a text rendered at a width; requests it if it is not cached.
    pub fn rendered(
        &mut self,
        text: &str,
        syntax: &str,
        width: u16,
        wanted: &mut Vec<Effect>,
    ) -> Option<Arc<[RichLine]>> {
        let mut hasher = DefaultHasher::new();
        (text, syntax, width, self.ascii).hash(&mut hasher);
        let key = hasher.finish();
        if let Some(lines) = self.rendered.get(&key) {
            return Some(Arc::clone(lines));
        }
        if self.requested.insert(key) {
            let job =
                RenderJob { key, text: text.into(), syntax: syntax.to_owned(), width, ascii: self.ascii };
            wanted.push(Effect::Render(job));
        }
        None
    }

    /// Caches a loaded skill; a full cache is cleared first.
    pub fn know(&mut self, id: &SkillId, detail: &Arc<SkillDetail>) {
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
    pub fn take_rendered(&mut self, key: u64, lines: &Arc<[RichLine]>) {
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
#[must_use]
pub fn syntax_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(_, extension)| extension)
}

/// Returns the beginning of a text, wrapped and safe to draw: shown until it is rendered.
#[must_use]
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
