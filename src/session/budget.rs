//! How a client keeps the catalogue within bounds, and what of it a model then sees.
//!
//! The bounds, and what is measured against them, are data of the client profiles; what nobody published is not
//! guessed: entries beyond a bound whose way of shortening is unknown are shown as they would stand, marked.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use super::compose::Listed;
pub use super::scale::Unit;
use super::scale::{Frame, Scale};
use crate::skill::client::{Budget, Shortening};

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// As written.
    Whole,
    /// Its description was cut to this many characters.
    Shortened {
        /// Characters left.
        characters: usize,
        /// Why.
        why: String,
    },
    /// Its name alone is left.
    NameOnly {
        /// Why.
        why: String,
    },
    /// It is not in the catalogue.
    Omitted {
        /// Why.
        why: String,
    },
    /// It lies beyond the bound; how the client shortens is not published.
    Beyond,
}

/// A catalogue within a client's bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Allowance {
    /// Every entry, in order, with what became of it; omitted ones have an empty description.
    pub entries: Vec<(Listed, Shown)>,
    /// How full the catalogue is, and of what.
    #[serde(flatten)]
    pub fill: Fill,
}

/// How full a client's catalogue is, in the client's own unit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fill {
    /// The bound, where one is known.
    pub limit: Option<usize>,
    /// The unit of the bound and of both sizes.
    pub unit: Unit,
    /// Where the bound comes from, in words ("2 % of a context of 200000 tokens: 4000 tokens").
    pub limit_from: String,
    /// What is measured, in words.
    pub measured: String,
    /// The catalogue as it is written.
    pub wanted: usize,
    /// What of it is shown.
    pub used: usize,
    /// Why more is shown than the bound allows, where that is so.
    pub over: Option<String>,
    /// What is not known of this client.
    pub unknown: Vec<String>,
    /// What became of the entries.
    pub made: Made,
}

/// How many entries came to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Made {
    /// As written.
    pub whole: usize,
    /// With a shorter description.
    pub shortened: usize,
    /// With their names alone.
    pub name_only: usize,
    /// Left out.
    pub omitted: usize,
    /// Beyond a bound whose way of shortening is not published.
    pub beyond: usize,
}

impl Made {
    fn of(entries: &[(Listed, Shown)]) -> Self {
        let mut made = Self::default();
        for (_, shown) in entries {
            *match shown {
                Shown::Whole => &mut made.whole,
                Shown::Shortened { .. } => &mut made.shortened,
                Shown::NameOnly { .. } => &mut made.name_only,
                Shown::Omitted { .. } => &mut made.omitted,
                Shown::Beyond => &mut made.beyond,
            } += 1;
        }
        made
    }
}

impl Allowance {
    /// The entries that are in the catalogue.
    pub fn kept(&self) -> impl Iterator<Item = &Listed> {
        self.entries
            .iter()
            .filter(|(_, shown)| !matches!(shown, Shown::Omitted { .. }))
            .map(|(entry, _)| entry)
    }

    /// How much a model learns of it: more entries first, then more of their descriptions, then less room.
    fn tells(&self) -> (usize, usize, std::cmp::Reverse<usize>) {
        let told = self.kept().map(|entry| entry.description.chars().count()).sum();
        (self.kept().count(), told, std::cmp::Reverse(self.fill.used))
    }

    /// A catalogue that nobody bounds.
    #[must_use]
    pub fn whole(entries: Vec<Listed>) -> Self {
        let size = |entry: &Listed| entry.name.chars().count() + entry.description.chars().count();
        let characters = entries.iter().map(size).sum();
        let entries: Vec<_> = entries.into_iter().map(|entry| (entry, Shown::Whole)).collect();
        let fill = Fill {
            limit_from: "no bound".to_owned(),
            measured: "characters of names and descriptions".to_owned(),
            wanted: characters,
            used: characters,
            made: Made::of(&entries),
            ..Fill::default()
        };
        Self { entries, fill }
    }
}

/// Where it is the client's rule to cut one description after the other, none is cut to less than this: below it
/// says nothing, so that the name alone is left.
const LEAST: usize = 20;

/// Where the skills of a catalogue lie, for clients that write less than whole paths.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// The folder that some write as `~`.
    pub home: &'a Path,
    /// The client's folders, which some write once.
    pub folders: &'a [PathBuf],
}

/// The catalogue as a client with this budget would hand it out: entries in the client's order, which decides who
/// stays. `uses` says how often each entry was loaded, for clients that shorten what is used least.
#[must_use]
pub fn shorten(
    entries: &[Listed],
    uses: &[u64],
    budget: &Budget,
    window: u32,
    ground: Ground<'_>,
) -> Allowance {
    let (scale, limit, limit_from) = Scale::of(budget, window, ground.home);
    let table = scale.with_table(entries, ground.folders);
    let bound = (limit, limit_from);
    let plain = within(entries, uses, budget, scale, &bound);
    // A table costs something itself: it is written where otherwise something would give way.
    if plain.fill.made.whole < entries.len()
        && let Some(table) = table
    {
        let short = within(entries, uses, budget, table, &bound);
        if short.tells() > plain.tells() {
            let wanted = plain.fill.wanted;
            return Allowance { fill: Fill { wanted, ..short.fill }, ..short };
        }
    }
    plain
}

/// The catalogue on one scale.
fn within(
    entries: &[Listed],
    uses: &[u64],
    budget: &Budget,
    scale: Scale<'_>,
    (limit, limit_from): &(Option<usize>, String),
) -> Allowance {
    let (limit, limit_from) = (*limit, limit_from.clone());
    let mut unknown = Vec::new();
    let mut work = Work {
        rows: entries.iter().map(|entry| (entry.clone(), Shown::Whole)).collect(),
        frames: entries.iter().map(|entry| scale.frame(entry)).collect(),
        scale,
        bare: false,
    };
    let wanted = work.total();
    if let Some(&most) = budget.entry_characters.value() {
        work.cap_each(most as usize);
    }
    if let Some(&most) = budget.entries.value() {
        for at in (most as usize)..entries.len() {
            work.omit(at, &format!("the client lists {most} skills at most"));
        }
    }
    let mut over = None;
    if let Some(limit) = limit
        && work.total() > limit
    {
        match budget.shortening.value() {
            Some(Shortening::LeastUsedFirst) => {
                work.least_used_first(uses, limit);
                if work.total() > limit {
                    over = Some("every name is kept, and names alone are more than the bound".to_owned());
                }
            }
            Some(Shortening::EvenlyThenOmit) => work.evenly_then_omit(limit),
            Some(Shortening::NamesThenOmit) => work.names_then_omit(limit),
            Some(Shortening::Omit) => work.omit_beyond(limit, true),
            None => {
                unknown.push("how it shortens a catalogue that is too long".to_owned());
                over = Some("how it shortens is not published: shown as it is written".to_owned());
                work.mark_beyond(limit);
            }
        }
    }
    if limit.is_none() {
        unknown.push("its bound for the catalogue".to_owned());
    } else if !work.scale.known() {
        unknown.push("what of an entry it counts: name and description are counted here".to_owned());
    }
    let used = work.total();
    let (unit, measured) = (work.scale.unit, work.scale.told());
    let made = Made::of(&work.rows);
    let fill = Fill { limit, unit, limit_from, measured, wanted, used, over, unknown, made };
    Allowance { entries: work.rows, fill }
}

/// A catalogue that is being shortened.
struct Work<'a> {
    rows: Vec<(Listed, Shown)>,
    /// What each entry measures beside its description.
    frames: Vec<Frame>,
    scale: Scale<'a>,
    /// Whether all descriptions went at once.
    bare: bool,
}

impl Work<'_> {
    fn cost(&self, at: usize) -> usize {
        match &self.rows[at] {
            (_, Shown::Omitted { .. }) => 0,
            (entry, _) => self.scale.entry(self.frames[at], &entry.description),
        }
    }

    fn total(&self) -> usize {
        let listed = self.rows.iter().any(|(_, shown)| !matches!(shown, Shown::Omitted { .. }));
        let around = if listed { self.scale.around(self.bare) } else { 0 };
        around + (0..self.rows.len()).map(|at| self.cost(at)).sum::<usize>()
    }

    /// Leaves so many characters of a description, the mark of a cut among them.
    fn cut(&mut self, at: usize, characters: usize, why: &str) {
        let mark = self.scale.cut_mark().to_owned();
        let (entry, shown) = &mut self.rows[at];
        if entry.description.chars().count() <= characters {
            return;
        }
        let kept = characters.saturating_sub(mark.chars().count());
        if kept == 0 {
            entry.description.clear();
            *shown = Shown::NameOnly { why: why.to_owned() };
        } else {
            entry.description = entry.description.chars().take(kept).chain(mark.chars()).collect();
            *shown = Shown::Shortened { characters, why: why.to_owned() };
        }
    }

    fn omit(&mut self, at: usize, why: &str) {
        let (entry, shown) = &mut self.rows[at];
        entry.description.clear();
        *shown = Shown::Omitted { why: why.to_owned() };
    }

    fn cap_each(&mut self, most: usize) {
        for at in 0..self.rows.len() {
            self.cut(at, most, &format!("an entry has {most} characters at most"));
        }
    }

    /// Names stay; descriptions of the least used go first, later ones of the catalogue before earlier ones.
    fn least_used_first(&mut self, uses: &[u64], limit: usize) {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|&at| (uses.get(at).copied().unwrap_or(0), std::cmp::Reverse(at)));
        let mut over = self.total().saturating_sub(limit);
        for at in order {
            if over == 0 {
                return;
            }
            let before = self.cost(at);
            let left = self.rows[at].0.description.chars().count().saturating_sub(over);
            let left = if left < LEAST { 0 } else { left };
            self.cut(at, left, "the catalogue is too long, and it is used least");
            over = over.saturating_sub(before.saturating_sub(self.cost(at)));
        }
    }

    /// Room is handed out one character after the other to every description, so that what a short one leaves goes
    /// to the long ones. Where entries without descriptions are too long already, the last that do not fit go.
    fn evenly_then_omit(&mut self, limit: usize) {
        let why = "the catalogue is too long, and every description gives way alike";
        let bare: usize = (0..self.rows.len()).map(|at| self.bare_cost(at)).sum();
        if bare + self.scale.around(false) > limit {
            for at in 0..self.rows.len() {
                if !matches!(self.rows[at].1, Shown::Omitted { .. }) {
                    self.cut(at, 0, why);
                }
            }
            self.omit_beyond(limit, true);
            return;
        }
        let mut rest = limit - bare - self.scale.around(false);
        let mut shares: Vec<Share<'_>> = Vec::with_capacity(self.rows.len());
        for (at, (entry, shown)) in self.rows.iter().enumerate() {
            let open = !matches!(shown, Shown::Omitted { .. });
            shares.push(Share {
                signs: entry.description.chars(),
                size: self.frames[at].whole,
                cost: self.bare_cost(at),
                taken: 0,
                open,
            });
        }
        while shares.iter().any(|share| share.open) {
            for share in shares.iter_mut().filter(|share| share.open) {
                share.open = share.signs.next().is_some_and(|sign| {
                    let size = share.size.and(self.scale.text(sign.encode_utf8(&mut [0; 4])));
                    let cost = self.scale.amount(size).max(share.cost);
                    let fits = cost - share.cost <= rest;
                    if fits {
                        rest -= cost - share.cost;
                        (share.size, share.cost, share.taken) = (size, cost, share.taken + 1);
                    }
                    fits
                });
            }
        }
        let taken: Vec<usize> = shares.into_iter().map(|share| share.taken).collect();
        for (at, taken) in taken.into_iter().enumerate() {
            self.cut(at, taken, why);
        }
    }

    /// All descriptions go at once; then what does not fit at the end.
    fn names_then_omit(&mut self, limit: usize) {
        for at in 0..self.rows.len() {
            if !matches!(self.rows[at].1, Shown::Omitted { .. }) {
                self.cut(at, 0, "the catalogue is too long, and all descriptions go at once");
            }
        }
        self.bare = true;
        self.omit_beyond(limit, false);
    }

    fn bare_cost(&self, at: usize) -> usize {
        match &self.rows[at].1 {
            Shown::Omitted { .. } => 0,
            _ => self.scale.amount(self.frames[at].bare),
        }
    }

    /// Entries beyond the bound go; `later` ones that still fit stay.
    fn omit_beyond(&mut self, limit: usize, later: bool) {
        let mut used = self.scale.around(self.bare);
        let mut full = false;
        for at in 0..self.rows.len() {
            if matches!(self.rows[at].1, Shown::Omitted { .. }) {
                continue;
            }
            let cost = self.cost(at);
            if full || used + cost > limit {
                full |= !later;
                self.omit(at, "the catalogue is full");
            } else {
                used += cost;
            }
        }
    }

    fn mark_beyond(&mut self, limit: usize) {
        let mut used = self.scale.around(self.bare);
        for at in 0..self.rows.len() {
            used += self.cost(at);
            if used > limit && !matches!(self.rows[at].1, Shown::Omitted { .. }) {
                self.rows[at].1 = Shown::Beyond;
            }
        }
    }
}

/// What an entry has got of the room for descriptions.
struct Share<'a> {
    /// What is left of its description.
    signs: std::str::Chars<'a>,
    size: super::scale::Size,
    cost: usize,
    taken: usize,
    /// Whether it can still get something.
    open: bool,
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
