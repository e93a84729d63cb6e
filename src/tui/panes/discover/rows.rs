//! What the result list holds, in the order it is shown: hits in the order of the answer, attachable ones, left out
//! ones.

use crate::discovery::{Answer, ExcludedWhy};
use crate::skill::SkillId;

/// Something the cursor can stand on; indices into the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// A result.
    Hit(usize),
    /// A sidecar that matches.
    Attachable(usize),
    /// Left out, with a reason.
    Excluded(usize),
    /// So many copies and other versions of ids that others have, in one line.
    Copies(usize),
}

impl Item {
    /// The skill it is about.
    #[must_use]
    pub fn skill(self, answer: &Answer) -> Option<&SkillId> {
        match self {
            Self::Hit(i) => answer.results.get(i).map(|h| &h.skill_id),
            Self::Attachable(i) => answer.attachable.get(i).map(|a| &a.skill_id),
            Self::Excluded(i) => answer.excluded.get(i).map(|e| &e.skill_id),
            Self::Copies(_) => None,
        }
    }

    /// The result it is, if it is one.
    #[must_use]
    pub fn hit(self, answer: &Answer) -> Option<&crate::discovery::Hit> {
        match self {
            Self::Hit(i) => answer.results.get(i),
            _ => None,
        }
    }
}

/// A row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// A group's name with the number of its members.
    Heading(&'static str, usize),
    /// Something to stand on, with its place among the hits (from 1) where it is one.
    Item(Item, Option<usize>),
    /// Matches below the limit.
    Below(usize),
}

/// All rows of an answer, without blanks; copies one by one where they are unfolded.
#[must_use]
pub fn rows(answer: &Answer, unfolded: bool) -> Vec<Row> {
    let hit = |index: usize| Row::Item(Item::Hit(index), Some(index + 1));
    let mut out: Vec<Row> = (0..answer.results.len()).map(hit).collect();
    if !answer.attachable.is_empty() {
        out.push(Row::Heading("attachable", answer.attachable.len()));
        out.extend((0..answer.attachable.len()).map(|i| Row::Item(Item::Attachable(i), None)));
    }
    if !answer.excluded.is_empty() || answer.below_limit > 0 {
        out.push(Row::Heading("left out", answer.excluded.len() + answer.below_limit));
        // What the request itself left out says more than copies do.
        let shadowed = |i: &usize| matches!(answer.excluded[*i].reason, ExcludedWhy::Shadowed(_));
        let (copies, others): (Vec<usize>, Vec<usize>) = (0..answer.excluded.len()).partition(shadowed);
        let row = |i: usize| Row::Item(Item::Excluded(i), None);
        out.extend(others.into_iter().map(row));
        if copies.len() > 1 {
            out.push(Row::Item(Item::Copies(copies.len()), None));
        }
        if copies.len() == 1 || unfolded {
            out.extend(copies.into_iter().map(row));
        }
    }
    if answer.below_limit > 0 {
        out.push(Row::Below(answer.below_limit));
    }
    out
}

/// The rows the cursor can stand on, in order.
#[must_use]
pub fn items(rows: &[Row]) -> Vec<(Item, Option<usize>)> {
    rows.iter()
        .filter_map(|row| match row {
            Row::Item(item, rank) => Some((*item, *rank)),
            _ => None,
        })
        .collect()
}

/// How much a hit shows of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Density {
    /// One line, groups without a blank row between.
    Dense,
    /// One line, a blank row between groups.
    Tight,
    /// A line of description below.
    Close,
    /// A line of description and a blank row.
    Airy,
    /// Two lines of description and a blank row.
    Roomy,
}

impl Density {
    /// Lines of description.
    #[must_use]
    pub fn description(self) -> usize {
        match self {
            Self::Dense | Self::Tight => 0,
            Self::Close | Self::Airy => 1,
            Self::Roomy => 2,
        }
    }

    /// Whether a blank row follows a hit.
    #[must_use]
    pub fn gap(self) -> bool {
        self >= Self::Airy
    }

    /// The richest form in which the hits fit; what comes after them may be scrolled to.
    #[must_use]
    pub fn choose(rows: &[Row], width: u16, height: u16) -> Self {
        let hits = rows.iter().filter(|r| matches!(r, Row::Item(Item::Hit(_), _))).count();
        let headings = rows.iter().filter(|r| matches!(r, Row::Heading(..))).count();
        let rest = rows.len() - hits - headings;
        let room = usize::from(height);
        let groups = headings + headings.saturating_sub(1);
        let wanted = |density: Self, rest: usize| {
            let each = 1 + density.description() + usize::from(density.gap());
            hits * each + if density == Self::Dense { headings } else { groups } + rest
        };
        let described = width >= 50;
        if described && width >= 64 && wanted(Self::Roomy, rest) <= room {
            Self::Roomy
        } else if described && hits <= 5 && wanted(Self::Airy, rest) <= room {
            Self::Airy
        } else if described && wanted(Self::Close, 0) <= room {
            Self::Close
        } else if wanted(Self::Tight, rest) <= room {
            Self::Tight
        } else {
            Self::Dense
        }
    }
}
