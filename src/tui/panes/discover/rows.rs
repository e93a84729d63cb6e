//! The rows of the result list: results and sidecars in the order of the answer, then what was excluded, and last a
//! skill that was opened by its name and is none of these.

use super::listing::Listing;
use skills_discovery::{Answer, Excluded, ExcludedWhy};
use skills_skill::SkillId;

/// An item that the cursor can be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// A result, by its index in the list.
    Hit(usize),
    /// A matching sidecar, by its index in the answer.
    Attachable(usize),
    /// An excluded skill, by its index in the answer.
    Excluded(usize),
    /// One line for this number of copies and other versions of shadowed ids.
    Copies(usize),
    /// A skill that was opened by its name and is none of these.
    Opened,
}

/// A skill that was opened by its name and has no row.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedSkill {
    pub id: SkillId,
    /// Why it is not a result.
    pub outcome: Outcome,
}

/// The outcome of a request for a skill that is not a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It matches and was excluded.
    Excluded(Excluded),
    /// It is a sidecar, with its score.
    Sidecar(f64),
    /// It does not match.
    NoMatch,
}

impl Outcome {
    /// Creates it from the answer about this skill alone.
    pub fn of(answer: &Answer) -> Self {
        match (answer.excluded.first(), answer.attachable.first()) {
            (Some(excluded), _) => Self::Excluded(excluded.clone()),
            (None, Some(sidecar)) => Self::Sidecar(sidecar.score),
            (None, None) => Self::NoMatch,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// A heading with the number of items below it.
    Heading(&'static str, usize),
    Item(Item),
}

/// Returns all rows of a list, without blank ones; with `unfolded`, copies are listed one by one.
pub fn rows(listing: &Listing, unfolded: bool, opened: bool) -> Vec<Row> {
    let Some(answer) = listing.first() else { return Vec::new() };
    let total = listing.total();
    let mut out = Vec::with_capacity(total + answer.attachable.len() + answer.excluded.len() + 3);
    let mut sidecars = answer.attachable.iter().enumerate().peekable();
    for place in 0..=total {
        while let Some((index, _)) = sidecars.next_if(|(_, s)| s.results_before <= place || place == total) {
            out.push(Row::Item(Item::Attachable(index)));
        }
        if place < total {
            out.push(Row::Item(Item::Hit(place)));
        }
    }
    if !answer.excluded.is_empty() {
        out.push(Row::Heading("excluded", answer.excluded.len()));
        // Exclusions by the request are more informative than copies.
        let shadowed = |i: &usize| matches!(answer.excluded[*i].reason, ExcludedWhy::Shadowed(_));
        let (copies, others): (Vec<usize>, Vec<usize>) = (0..answer.excluded.len()).partition(shadowed);
        let row = |i: usize| Row::Item(Item::Excluded(i));
        out.extend(others.into_iter().map(row));
        if copies.len() > 1 {
            out.push(Row::Item(Item::Copies(copies.len())));
        }
        if copies.len() == 1 || unfolded {
            out.extend(copies.into_iter().map(row));
        }
    }
    if opened {
        out.extend([Row::Heading("opened by name", 1), Row::Item(Item::Opened)]);
    }
    out
}

/// Returns the indices of the rows that the cursor can be on.
pub fn items(rows: &[Row]) -> Vec<usize> {
    rows.iter().enumerate().filter(|(_, row)| matches!(row, Row::Item(_))).map(|(at, _)| at).collect()
}

/// How much of a hit is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Density {
    /// One line, no blank row before a heading.
    Dense,
    /// One line, a blank row before a heading.
    Tight,
    /// One additional line of description.
    Close,
    /// A line of description and a blank row.
    Airy,
    /// Two lines of description and a blank row.
    Roomy,
}

/// Number of results that should be visible without scrolling.
const MIN_VISIBLE_RESULTS: usize = 10;

impl Density {
    /// Returns the number of lines of description.
    pub fn description(self) -> usize {
        match self {
            Self::Dense | Self::Tight => 0,
            Self::Close | Self::Airy => 1,
            Self::Roomy => 2,
        }
    }

    /// Returns whether a blank row follows a hit.
    pub fn gap(self) -> bool {
        self >= Self::Airy
    }

    /// Returns the most detailed density in which the first hits fit; the rest may require scrolling.
    pub fn choose(rows: &[Row], width: u16, height: u16) -> Self {
        let all = rows.iter().filter(|r| matches!(r, Row::Item(Item::Hit(_)))).count();
        let hits = all.min(MIN_VISIBLE_RESULTS);
        let headings = rows.iter().filter(|r| matches!(r, Row::Heading(..))).count();
        let rest = if all > hits { 0 } else { rows.len() - hits + headings };
        let available = usize::from(height);
        let wanted = |density: Self, rest: usize| {
            hits * (1 + density.description() + usize::from(density.gap())) + rest
        };
        let described = width >= 50;
        if described && width >= 64 && wanted(Self::Roomy, rest) <= available {
            Self::Roomy
        } else if described && hits <= 5 && wanted(Self::Airy, rest) <= available {
            Self::Airy
        } else if described && wanted(Self::Close, 0) <= available {
            Self::Close
        } else if wanted(Self::Tight, rest) <= available {
            Self::Tight
        } else {
            Self::Dense
        }
    }
}
