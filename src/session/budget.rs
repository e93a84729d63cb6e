//! How a client keeps the catalogue within bounds, and what of it a model then sees.
//!
//! The bounds are data of the client profiles; what nobody published is not guessed: entries beyond a bound whose
//! way of shortening is unknown are shown as they would stand, marked.

use serde::{Deserialize, Serialize};

pub use super::compose::Listed;
use crate::skill::client::{Budget, ShareUnit, Shortening};

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
    /// The bound in characters, where one is known.
    pub limit: Option<usize>,
    /// Where the bound comes from, in words ("1 % of a context of 200,000 tokens").
    pub limit_from: String,
    /// Characters of names and descriptions as they are written.
    pub wanted: usize,
    /// Characters of what is shown.
    pub used: usize,
    /// What is not known of this client.
    pub unknown: Vec<String>,
}

impl Allowance {
    /// The entries that are in the catalogue.
    pub fn kept(&self) -> impl Iterator<Item = &Listed> {
        self.entries
            .iter()
            .filter(|(_, shown)| !matches!(shown, Shown::Omitted { .. }))
            .map(|(entry, _)| entry)
    }
}

/// Characters of a token, where a client measures in one and its bound is in the other.
const CHARACTERS_PER_TOKEN: f64 = 4.0;
/// A description is never cut to less than this: below it says nothing, so that the name alone is left.
const LEAST: usize = 20;

/// The catalogue as a client with this budget would hand it out. `uses` says how often each entry was loaded, for
/// clients that shorten what is used least.
#[must_use]
pub fn shorten(entries: &[Listed], uses: &[u64], budget: &Budget, window: u32) -> Allowance {
    let (limit, limit_from) = limit(budget, window);
    let mut unknown = Vec::new();
    let mut out: Vec<(Listed, Shown)> = entries.iter().map(|entry| (entry.clone(), Shown::Whole)).collect();
    if let Some(&most) = budget.entry_characters.value() {
        cap_each(&mut out, most as usize);
    }
    if let Some(&most) = budget.entries.value() {
        for (entry, shown) in out.iter_mut().skip(most as usize) {
            omit(entry, shown, &format!("the client lists {most} skills at most"));
        }
    }
    let wanted = entries.iter().map(size).sum();
    if let Some(limit) = limit
        && total(&out) > limit
    {
        match budget.shortening.value() {
            Some(Shortening::LeastUsedFirst) => least_used_first(&mut out, uses, limit),
            Some(Shortening::EvenlyThenOmit) => evenly_then_omit(&mut out, limit),
            Some(Shortening::Omit) => omit_beyond(&mut out, limit),
            None => {
                unknown.push("how it shortens a catalogue that is too long".to_owned());
                mark_beyond(&mut out, limit);
            }
        }
    }
    if limit.is_none() {
        unknown.push("its bound for the catalogue".to_owned());
    }
    let used = total(&out);
    Allowance { entries: out, limit, limit_from, wanted, used, unknown }
}

fn limit(budget: &Budget, window: u32) -> (Option<usize>, String) {
    let share = budget.share_of_context.value().filter(|_| window > 0);
    if let Some(&share) = share {
        let amount = f64::from(window) * share;
        // A share is one of tokens either way; clients that count characters take four for a token.
        let characters = (amount * CHARACTERS_PER_TOKEN) as usize;
        let unit = match budget.share_unit.value() {
            Some(ShareUnit::Characters) | None => format!("about {characters} characters"),
            Some(ShareUnit::Tokens) => format!("{amount:.0} tokens"),
        };
        return (Some(characters), format!("{:.0} % of a context of {window} tokens: {unit}", share * 100.0));
    }
    match budget.characters.value() {
        Some(&characters) => (Some(characters as usize), format!("{characters} characters")),
        None => (None, "not known".to_owned()),
    }
}

fn size(entry: &Listed) -> usize {
    entry.name.chars().count() + entry.description.chars().count()
}

fn total(entries: &[(Listed, Shown)]) -> usize {
    entries
        .iter()
        .filter(|(_, shown)| !matches!(shown, Shown::Omitted { .. }))
        .map(|(entry, _)| size(entry))
        .sum()
}

fn cut(entry: &mut Listed, shown: &mut Shown, characters: usize, why: &str) {
    if entry.description.chars().count() <= characters {
        return;
    }
    if characters < LEAST {
        entry.description.clear();
        *shown = Shown::NameOnly { why: why.to_owned() };
    } else {
        entry.description =
            entry.description.chars().take(characters.saturating_sub(1)).chain(['…']).collect();
        *shown = Shown::Shortened { characters, why: why.to_owned() };
    }
}

fn omit(entry: &mut Listed, shown: &mut Shown, why: &str) {
    entry.description.clear();
    *shown = Shown::Omitted { why: why.to_owned() };
}

fn cap_each(entries: &mut [(Listed, Shown)], most: usize) {
    for (entry, shown) in entries {
        cut(entry, shown, most, &format!("an entry has {most} characters at most"));
    }
}

/// Names stay; descriptions of the least used go first, later ones of the catalogue before earlier ones.
fn least_used_first(entries: &mut [(Listed, Shown)], uses: &[u64], limit: usize) {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&i| (uses.get(i).copied().unwrap_or(0), std::cmp::Reverse(i)));
    let mut over = total(entries).saturating_sub(limit);
    for i in order {
        if over == 0 {
            return;
        }
        let (entry, shown) = &mut entries[i];
        let had = entry.description.chars().count();
        cut(entry, shown, had.saturating_sub(over), "the catalogue is too long, and it is used least");
        over = over.saturating_sub(had - entry.description.chars().count());
    }
}

/// All descriptions get the same bound, as large as possible; where names alone are too long, the last ones go.
fn evenly_then_omit(entries: &mut [(Listed, Shown)], limit: usize) {
    let names: usize = entries.iter().map(|(entry, _)| entry.name.chars().count()).sum();
    let lengths: Vec<usize> = entries.iter().map(|(entry, _)| entry.description.chars().count()).collect();
    let fits = |each: usize| names + lengths.iter().map(|&have| have.min(each)).sum::<usize>() <= limit;
    let (mut low, mut high) = (0, lengths.iter().copied().max().unwrap_or(0));
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    for (entry, shown) in entries.iter_mut() {
        cut(entry, shown, low, "the catalogue is too long, and every description gives way alike");
    }
    omit_beyond(entries, limit);
}

fn omit_beyond(entries: &mut [(Listed, Shown)], limit: usize) {
    let mut used = 0;
    for (entry, shown) in entries.iter_mut() {
        if matches!(shown, Shown::Omitted { .. }) {
            continue;
        }
        used += size(entry);
        if used > limit {
            used -= size(entry);
            omit(entry, shown, "the catalogue is full");
        }
    }
}

fn mark_beyond(entries: &mut [(Listed, Shown)], limit: usize) {
    let mut used = 0;
    for (entry, shown) in entries.iter_mut() {
        if !matches!(shown, Shown::Omitted { .. }) {
            used += size(entry);
            if used > limit {
                *shown = Shown::Beyond;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::client::profile;

    fn entries(count: usize, length: usize) -> Vec<Listed> {
        (0..count)
            .map(|i| Listed {
                name: format!("skill-{i:03}"),
                description: "d".repeat(length),
                location: None,
            })
            .collect()
    }

    fn of(client: &str, count: usize, length: usize, uses: &[u64]) -> Allowance {
        shorten(&entries(count, length), uses, &profile(client).unwrap().budget, 200_000)
    }

    #[test]
    fn claude_code_keeps_names_and_shortens_what_is_used_least() {
        // 1 % of 200,000 tokens are 8,000 characters.
        let mut uses = vec![0; 20];
        uses[19] = 5;
        let allowed = of("claude-code", 20, 600, &uses);
        assert_eq!(allowed.limit, Some(8_000));
        assert!(allowed.used <= 8_000 && allowed.used > 7_900, "{}", allowed.used);
        assert_eq!(allowed.entries[19].1, Shown::Whole, "the used one stays");
        assert!(matches!(allowed.entries[18].1, Shown::NameOnly { .. }), "the last of the unused goes first");
        assert_eq!(allowed.entries[0].1, Shown::Whole);
        assert_eq!(allowed.kept().count(), 20, "no name goes");
        let long = of("claude-code", 1, 2_000, &[]);
        assert_eq!(long.entries[0].0.description.chars().count(), 1_536);
    }

    #[test]
    fn codex_shortens_evenly_and_then_leaves_out() {
        let allowed = of("codex", 100, 300, &[]);
        let lengths: Vec<usize> =
            allowed.entries.iter().map(|(e, _)| e.description.chars().count()).collect();
        assert!(lengths.iter().all(|l| *l == lengths[0]) && lengths[0] < 300, "{lengths:?}");
        assert!(allowed.used <= 16_000 && allowed.used > 15_800, "{}", allowed.used);
        let many = of("codex", 3_000, 10, &[]);
        assert!(many.used <= 16_000);
        assert!(many.entries.iter().any(|(_, shown)| matches!(shown, Shown::Omitted { .. })));
    }

    #[test]
    fn what_is_not_published_is_marked_and_not_guessed() {
        let allowed = of("openclaw", 200, 300, &[]);
        assert_eq!(allowed.entries.iter().filter(|(_, s)| matches!(s, Shown::Omitted { .. })).count(), 50);
        assert!(allowed.entries.iter().any(|(_, s)| *s == Shown::Beyond));
        assert!(!allowed.unknown.is_empty());
        let none = of("cursor", 10, 10, &[]);
        assert!(none.limit.is_some() || none.unknown.iter().any(|what| what.contains("bound")));
    }

    #[test]
    fn what_fits_is_left_alone() {
        let allowed = of("codex", 3, 50, &[]);
        assert!(allowed.entries.iter().all(|(_, shown)| *shown == Shown::Whole));
        assert_eq!(allowed.wanted, allowed.used);
    }
}
