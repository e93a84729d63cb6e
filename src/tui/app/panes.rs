//! The panes, and which of them is shown.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use crate::action::PaneCommand;
use crate::pane::{Effect, Pane, PaneId};

/// By how many cells a split can be moved in total.
const SPLIT_MOST: i16 = 60;

/// The panes, with the position of their splits.
pub(super) struct Panes {
    all: Vec<Box<dyn Pane>>,
    shown: usize,
    pub full_screen: bool,
    splits: HashMap<PaneId, i16>,
}

impl Panes {
    /// Shows the first pane.
    pub fn new(all: Vec<Box<dyn Pane>>, splits: HashMap<PaneId, i16>) -> Self {
        Self { all, shown: 0, full_screen: false, splits }
    }

    pub fn active(&self) -> Option<&dyn Pane> {
        self.all.get(self.shown).map(AsRef::as_ref)
    }

    pub fn active_mut(&mut self) -> Option<&mut Box<dyn Pane>> {
        self.all.get_mut(self.shown)
    }

    pub fn active_id(&self) -> Option<PaneId> {
        self.active().map(Pane::id)
    }

    pub fn active_name(&self) -> &'static str {
        self.active_id().map_or("the workbench", PaneId::name)
    }

    /// Returns the index of the active pane.
    pub fn shown(&self) -> usize {
        self.shown
    }

    /// Returns the commands of the active pane.
    pub fn commands(&self) -> Vec<PaneCommand> {
        self.active().map(Pane::commands).unwrap_or_default()
    }

    pub fn iter(&self) -> impl Iterator<Item = &dyn Pane> {
        self.all.iter().map(AsRef::as_ref)
    }

    pub fn ids(&self) -> Vec<PaneId> {
        self.iter().map(Pane::id).collect()
    }

    pub fn get_mut(&mut self, id: PaneId) -> Option<&mut Box<dyn Pane>> {
        self.all.iter_mut().find(|pane| pane.id() == id)
    }

    /// Shows a pane. Returns whether another one was shown before.
    pub fn show(&mut self, id: PaneId) -> bool {
        let Some(at) = self.all.iter().position(|pane| pane.id() == id).filter(|at| *at != self.shown) else {
            return false;
        };
        if let Some(left) = self.active_mut() {
            left.leave();
        }
        self.shown = at;
        self.full_screen = false;
        true
    }

    /// Moves the split of the active pane.
    pub fn move_split(&mut self, by: i16) {
        if let Some(id) = self.active_id() {
            let split = self.splits.entry(id).or_default();
            *split = (*split + by).clamp(-SPLIT_MOST, SPLIT_MOST);
        }
    }

    /// Returns the position of the active pane's split.
    pub fn split(&self) -> i16 {
        self.active_id().and_then(|id| self.splits.get(&id).copied()).unwrap_or_default()
    }

    /// Returns the splits that were moved, by the name of their pane.
    pub fn moved_splits(&self) -> BTreeMap<String, i16> {
        let moved = self.splits.iter().filter(|(_, cells)| **cells != 0);
        moved.map(|(pane, cells)| (pane.name().to_lowercase(), *cells)).collect()
    }

    /// Lets the active pane poll if it is due.
    pub fn poll(&mut self, now: Instant) -> Option<(PaneId, Vec<Effect>)> {
        let pane = self.active_mut()?;
        pane.next_poll(now).is_some_and(|due| now >= due).then(|| (pane.id(), pane.poll(now)))
    }
}
