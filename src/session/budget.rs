//! How a client applies its catalog budget, and what a model then sees.
//!
//! The budgets, and what counts toward them, are data of the client profiles; what is not published is not guessed:
//! entries that exceed a budget are shown unshortened and marked if the way of shortening is unknown.

use serde::{Deserialize, Serialize};

pub use super::compose::ListedEntry;
pub use super::scale::Unit;
use super::scale::{Descriptions, EntrySize, Limit, Scale};
use skills_skill::client::{Bundled, Profile, Shortening};

/// Truncation of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Shown")]
pub enum Truncation {
    /// As written.
    #[serde(rename = "whole")]
    Complete,
    /// Its description was truncated to this number of characters.
    Shortened {
        /// Characters left.
        characters: usize,
        /// The reason.
        why: String,
    },
    /// Only its name is shown.
    NameOnly {
        /// The reason.
        why: String,
    },
    /// It is not in the catalog.
    Omitted {
        /// The reason.
        why: String,
    },
    /// It exceeds the budget; how the client truncates is not published.
    Beyond,
    /// Another text of the file is shown in place of its description.
    OtherText,
    /// Whether it is listed, or with which text, is not known.
    Unknown {
        /// The unknown behavior of the client.
        what: String,
    },
}

/// A catalog under a client's budget.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Allowance")]
pub struct BudgetedCatalog {
    /// Every entry in order, with its truncation; omitted ones have an empty description.
    pub entries: Vec<(ListedEntry, Truncation)>,
    /// Use of the budget.
    #[serde(flatten)]
    pub fill: Fill,
}

/// How much of a client's catalog budget is used, in the client's unit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fill {
    /// The limit, if known.
    pub limit: Option<usize>,
    /// Whether the client is known to have no limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unbounded: bool,
    /// The unit of the bound and of both sizes.
    pub unit: Unit,
    /// Origin of the limit, as text ("2 % of a context of 200000 tokens: 4000 tokens").
    pub limit_from: String,
    /// What is measured, as text.
    pub measured: String,
    /// The catalog as written.
    pub wanted: usize,
    /// What is shown of it.
    pub used: usize,
    /// Why more is shown than the limit allows, if so.
    pub over: Option<String>,
    /// Unknown properties of this client.
    pub unknown: Vec<String>,
    /// Truncation of the entries, without built-in skills.
    pub made: BudgetResult,
    /// Size of the client's built-in skills.
    #[serde(default, skip_serializing_if = "BundledSize::is_none")]
    pub own: BundledSize,
}

/// Part of the budget that built-in skills use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Own")]
pub struct BundledSize {
    /// How many there are.
    pub skills: usize,
    /// Their size, in the unit of the limit.
    pub used: usize,
    /// Whether their number or size is an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approximate: bool,
}

impl BundledSize {
    fn is_none(&self) -> bool {
        self.skills == 0
    }
}

/// Number of entries by truncation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Made")]
pub struct BudgetResult {
    /// As written.
    #[serde(rename = "whole")]
    pub complete: usize,
    /// With a shorter description.
    pub shortened: usize,
    /// With only their names.
    pub name_only: usize,
    /// Omitted.
    pub omitted: usize,
    /// Over a budget whose truncation is not published.
    pub beyond: usize,
    /// With another text in place of the description.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_text: usize,
    /// Not known to be listed, or with which text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl BudgetResult {
    fn of(entries: &[(ListedEntry, Truncation)]) -> Self {
        let mut made = Self::default();
        for (_, shown) in entries.iter().filter(|(entry, _)| !entry.bundled) {
            *match shown {
                Truncation::Complete => &mut made.complete,
                Truncation::Shortened { .. } => &mut made.shortened,
                Truncation::NameOnly { .. } => &mut made.name_only,
                Truncation::Omitted { .. } => &mut made.omitted,
                Truncation::Beyond => &mut made.beyond,
                Truncation::OtherText => &mut made.other_text,
                Truncation::Unknown { .. } => &mut made.unknown,
            } += 1;
        }
        made
    }
}

impl BudgetedCatalog {
    /// Returns the entries that are in the catalog.
    pub fn included(&self) -> impl Iterator<Item = &ListedEntry> {
        self.entries
            .iter()
            .filter(|(_, shown)| !matches!(shown, Truncation::Omitted { .. }))
            .map(|(entry, _)| entry)
    }

    /// Returns a catalog without a budget.
    pub fn unlimited(entries: Vec<ListedEntry>) -> Self {
        let size = |entry: &ListedEntry| entry.name.chars().count() + entry.description.chars().count();
        let characters = entries.iter().map(size).sum();
        let entries: Vec<_> = entries.into_iter().map(|entry| (entry, Truncation::Complete)).collect();
        let fill = Fill {
            limit_from: "no limit".to_owned(),
            measured: "characters of names and descriptions".to_owned(),
            wanted: characters,
            used: characters,
            made: BudgetResult::of(&entries),
            ..Fill::default()
        };
        Self { entries, fill }
    }
}

/// Returns the catalog as this client would send it, in the client's order, which decides which entries are kept.
/// `uses` is how often each entry was loaded, for clients that consider it.
pub fn apply_budget(
    entries: &[ListedEntry],
    uses: &[u64],
    profile: &Profile,
    window: u32,
) -> BudgetedCatalog {
    let budget = &profile.budget;
    let (scale, Limit { most: limit, from: limit_from, unbounded }) = Scale::of(budget, window);
    let bundled = profile.bundled.value();
    let mut unknown = Vec::new();
    let mut work = Reduction {
        rows: entries.iter().map(|entry| (entry.clone(), initial_truncation(entry))).collect(),
        frames: entries.iter().map(|entry| scale.frame(entry)).collect(),
        scale,
        descriptions: Descriptions::Complete,
        own: bundled,
    };
    let wanted = work.total();
    if let Some(Some(most)) = budget.entries.value() {
        for at in (*most as usize)..entries.len() {
            work.omit(at, &format!("the client lists at most {most} skills"));
        }
    }
    let mut over = None;
    if let Some(limit) = limit
        && work.total() > limit
    {
        match budget.shortening.value() {
            Some(Shortening::WholeWhileFitting) => {
                work.keep_descriptions_by_usage(uses, limit);
                if work.total() > limit {
                    let keeps = |(entry, _): &(ListedEntry, Truncation)| work.keeps_description(entry);
                    let subject = if work.rows.iter().any(keeps) {
                        "all names and the descriptions of built-in skills"
                    } else {
                        "all names"
                    };
                    over = Some(format!("{subject} are kept, and they alone exceed the budget"));
                }
            }
            Some(Shortening::EvenlyThenOmit) => work.shorten_evenly_then_omit(limit),
            Some(&Shortening::CutThenOmit { least, most, .. }) => work.cut_then_omit(limit, least, most),
            Some(Shortening::WholeThenNames) => work.whole_then_names(limit),
            None => {
                unknown.push("how it truncates a catalog over budget".to_owned());
                over = Some("how it truncates is not published: shown as written".to_owned());
                work.mark_beyond(limit);
            }
        }
    }
    if let Some(&Shortening::CutThenOmit { most, tokens_per_character, least_for_window, .. }) =
        budget.shortening.value()
        && window > 0
    {
        work.cut_for_window((window / tokens_per_character.max(1)) as usize, least_for_window, most);
    }
    if limit.is_none() && !unbounded {
        unknown.push("its catalog budget".to_owned());
    } else if !work.scale.known() {
        unknown.push("which parts of an entry count: name and description are assumed".to_owned());
    }
    if bundled.is_none() {
        unknown.push("which skills are built in: none are assumed".to_owned());
    }
    let own = BundledSize {
        skills: entries.iter().filter(|entry| entry.bundled).count(),
        used: (0..entries.len()).filter(|at| entries[*at].bundled).map(|at| work.cost(at)).sum(),
        approximate: bundled.is_some_and(|bundled| bundled.approximate),
    };
    let used = work.total();
    for (entry, shown) in &mut work.rows {
        if let Some(what) = &entry.unknown {
            *shown = Truncation::Unknown { what: what.clone() };
        } else if *shown == Truncation::Complete && entry.description.trim().is_empty() {
            *shown = Truncation::NameOnly { why: without_description(&profile.name) };
        }
    }
    let (unit, measured) = (work.scale.unit, work.scale.measure_label());
    let made = BudgetResult::of(&work.rows);
    let fill = Fill { limit, unbounded, unit, limit_from, measured, wanted, used, over, unknown, made, own };
    BudgetedCatalog { entries: work.rows, fill }
}

/// Returns why the name alone is shown of a skill in which the client finds no description.
pub fn without_description(client: &str) -> String {
    format!("{client} finds no description")
}

/// Returns the truncation of an entry before the budget is applied: its description may be too long in itself, or
/// the client's settings may reduce it to its name.
fn initial_truncation(entry: &ListedEntry) -> Truncation {
    if let Some(why) = &entry.name_only {
        return Truncation::NameOnly { why: why.clone() };
    }
    if !entry.cut {
        return if entry.other_text { Truncation::OtherText } else { Truncation::Complete };
    }
    let characters = entry.description.chars().count();
    Truncation::Shortened { characters, why: format!("descriptions are limited to {characters} characters") }
}

/// A catalog that is being truncated.
struct Reduction<'a> {
    rows: Vec<(ListedEntry, Truncation)>,
    /// Sizes of the entries without their descriptions.
    frames: Vec<EntrySize>,
    scale: Scale<'a>,
    /// What all its entries contain of their descriptions.
    descriptions: Descriptions,
    /// The client's own skills.
    own: Option<&'a Bundled>,
}

impl Reduction<'_> {
    fn cost(&self, at: usize) -> usize {
        match &self.rows[at] {
            (_, Truncation::Omitted { .. }) => 0,
            (entry, _) => self.scale.entry(self.frames[at], &entry.description),
        }
    }

    fn total(&self) -> usize {
        let costs = (0..self.rows.len()).map(|at| self.cost(at)).filter(|cost| *cost > 0);
        let (entries, sum) = costs.fold((0, 0), |(entries, sum), cost| (entries + 1, sum + cost));
        if entries == 0 { 0 } else { self.envelope_size(entries) + sum }
    }

    fn envelope_size(&self, entries: usize) -> usize {
        self.scale.envelope_size(self.descriptions, entries, self.rows.len())
    }

    /// Truncates a description to that many characters.
    fn cut(&mut self, at: usize, characters: usize, why: &str) {
        let (entry, shown) = &mut self.rows[at];
        if entry.description.chars().count() <= characters {
            return;
        }
        if characters == 0 {
            entry.description.clear();
            *shown = Truncation::NameOnly { why: why.to_owned() };
        } else {
            entry.description = entry.description.chars().take(characters).collect();
            *shown = Truncation::Shortened { characters, why: why.to_owned() };
        }
    }

    /// Returns whether the description of a built-in skill is shown also over budget.
    fn keeps_description(&self, entry: &ListedEntry) -> bool {
        entry.bundled && self.own.is_some_and(|own| own.keeps(&entry.name))
    }

    fn omit(&mut self, at: usize, why: &str) {
        let (entry, shown) = &mut self.rows[at];
        entry.description.clear();
        *shown = Truncation::Omitted { why: why.to_owned() };
    }

    /// Keeps all names. Of the descriptions that may be removed, keeps those that still fit, complete: those of the
    /// most used skills first, else in list order, so that a short one after a long one may be kept.
    fn keep_descriptions_by_usage(&mut self, uses: &[u64], limit: usize) {
        let mut order: Vec<usize> =
            (0..self.rows.len()).filter(|&at| !self.keeps_description(&self.rows[at].0)).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(uses.get(at).copied().unwrap_or(0)), at));
        let original: Vec<(ListedEntry, Truncation)> =
            order.iter().map(|&at| self.rows[at].clone()).collect();
        for &at in &order {
            self.cut(at, 0, "over budget: its description no longer fits");
        }
        let mut used = self.total();
        for (at, original) in order.into_iter().zip(original) {
            let more =
                self.scale.entry(self.frames[at], &original.0.description).saturating_sub(self.cost(at));
            if used + more <= limit {
                used += more;
                self.rows[at] = original;
            }
        }
    }

    /// Keeps complete entries up to the limit; the first that does not fit and all after it are named in one line.
    fn whole_then_names(&mut self, limit: usize) {
        let mut used = 0;
        let mut entries = 0;
        let mut full = false;
        for at in 0..self.rows.len() {
            let cost = self.cost(at);
            full |= used + cost + self.envelope_size(entries + 1) > limit;
            if full {
                let (entry, shown) = &mut self.rows[at];
                entry.description.clear();
                let why = "over budget: only its name is listed at the end".to_owned();
                *shown = Truncation::NameOnly { why };
            } else {
                (used, entries) = (used + cost, entries + 1);
            }
        }
    }

    /// Distributes the budget one character at a time to all descriptions, so that what a short one does not need goes
    /// to the long ones. If entries without descriptions already exceed the budget, the last that do not fit are
    /// omitted.
    fn shorten_evenly_then_omit(&mut self, limit: usize) {
        let why = "over budget: all descriptions are truncated evenly";
        let total: usize = (0..self.rows.len()).map(|at| self.bare_cost(at)).sum();
        let envelope = self.envelope_size(self.rows.len());
        if total + envelope > limit {
            for at in 0..self.rows.len() {
                if !matches!(self.rows[at].1, Truncation::Omitted { .. }) {
                    self.cut(at, 0, why);
                }
            }
            self.omit_beyond(limit, true);
            return;
        }
        let mut rest = limit - total - envelope;
        let mut shares: Vec<Allocation<'_>> = Vec::with_capacity(self.rows.len());
        for (at, (entry, shown)) in self.rows.iter().enumerate() {
            let open = !matches!(shown, Truncation::Omitted { .. });
            shares.push(Allocation {
                chars: entry.description.chars(),
                size: self.frames[at].full,
                cost: self.bare_cost(at),
                taken: 0,
                open,
            });
        }
        while shares.iter().any(|share| share.open) {
            for share in shares.iter_mut().filter(|share| share.open) {
                share.open = share.chars.next().is_some_and(|character| {
                    let size = share.size.and(self.scale.text(character.encode_utf8(&mut [0; 4])));
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

    /// Removes all descriptions and the entries at the end that do not fit without them, then gives the rest back what
    /// fits: to each description the same number of characters.
    fn cut_then_omit(&mut self, limit: usize, least: u32, most: u32) {
        let complete_rows: Vec<(ListedEntry, Truncation)> = self.rows.clone();
        for at in 0..self.rows.len() {
            if !matches!(self.rows[at].1, Truncation::Omitted { .. }) {
                self.cut(at, 0, "over budget: all descriptions are omitted");
            }
        }
        self.descriptions = Descriptions::Omitted;
        self.omit_beyond(limit, false);
        let name_only_rows = self.rows.clone();
        self.descriptions = Descriptions::Truncated;
        if let Some(characters) = self.longest_that_fits(&name_only_rows, &complete_rows, limit, least..=most)
        {
            self.describe(&complete_rows, characters);
        } else {
            (self.rows, self.descriptions) = (name_only_rows, Descriptions::Omitted);
        }
    }

    /// Truncates the descriptions of a list that is too long for the context window, although it is within its limit.
    fn cut_for_window(&mut self, limit: usize, least: u32, most: u32) {
        if self.total() <= limit {
            return;
        }
        let complete_rows = self.rows.clone();
        let longest = self.longest_that_fits(&complete_rows, &complete_rows, limit, least..=most);
        self.describe(&complete_rows, longest.unwrap_or(least as usize));
    }

    /// Returns the largest number of characters for each description with which the entries of `name_only_rows` fit.
    fn longest_that_fits(
        &mut self,
        name_only_rows: &[(ListedEntry, Truncation)],
        complete_rows: &[(ListedEntry, Truncation)],
        limit: usize,
        lengths: std::ops::RangeInclusive<u32>,
    ) -> Option<usize> {
        let (mut fits, mut above) = (None, lengths.end() + 1);
        let mut next = *lengths.start();
        while next < above {
            self.rows.clone_from_slice(name_only_rows);
            self.describe(complete_rows, next as usize);
            if self.total() <= limit {
                fits = Some(next);
            } else {
                above = next;
            }
            next = fits? + (above - fits?).div_ceil(2);
        }
        self.rows.clone_from_slice(name_only_rows);
        fits.map(|characters| characters as usize)
    }

    /// Gives each entry in the catalog its description on one line, truncated to that many characters.
    fn describe(&mut self, complete_rows: &[(ListedEntry, Truncation)], characters: usize) {
        const MARK: &str = "...";
        for ((entry, shown), (original, before)) in self.rows.iter_mut().zip(complete_rows) {
            if matches!(shown, Truncation::Omitted { .. }) {
                continue;
            }
            let text = original.description.split_whitespace().collect::<Vec<_>>().join(" ");
            if text.chars().count() <= characters {
                (entry.description, *shown) = (text, before.clone());
                continue;
            }
            let truncated: String = text.chars().take(characters.saturating_sub(MARK.len())).collect();
            entry.description = truncated.trim_end().to_owned() + MARK;
            let why = format!("descriptions are limited to {characters} characters");
            *shown = Truncation::Shortened { characters: entry.description.chars().count(), why };
        }
    }

    fn bare_cost(&self, at: usize) -> usize {
        match &self.rows[at].1 {
            Truncation::Omitted { .. } => 0,
            _ => self.scale.amount(self.frames[at].name_only),
        }
    }

    /// Omits entries beyond the limit; with `later`, later ones that still fit are kept.
    fn omit_beyond(&mut self, limit: usize, later: bool) {
        let (mut used, mut entries) = (0, 0);
        let mut full = false;
        for at in 0..self.rows.len() {
            if matches!(self.rows[at].1, Truncation::Omitted { .. }) {
                continue;
            }
            let cost = self.cost(at);
            if full || used + cost + self.envelope_size(entries + 1) > limit {
                full |= !later;
                self.omit(at, "budget exhausted");
            } else {
                (used, entries) = (used + cost, entries + 1);
            }
        }
    }

    fn mark_beyond(&mut self, limit: usize) {
        let mut used = 0;
        for at in 0..self.rows.len() {
            used += self.cost(at);
            if used + self.envelope_size(at + 1) > limit
                && !matches!(self.rows[at].1, Truncation::Omitted { .. })
            {
                self.rows[at].1 = Truncation::Beyond;
            }
        }
    }
}

/// The part of the budget for descriptions that an entry has received.
struct Allocation<'a> {
    /// The rest of its description.
    chars: std::str::Chars<'a>,
    size: super::scale::Size,
    cost: usize,
    taken: usize,
    /// Whether it can still receive more.
    open: bool,
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
