//! How a client measures its catalog: which parts of an entry it counts, and in which unit.

use serde::{Deserialize, Serialize};

use unicode_width::UnicodeWidthStr;

use super::compose::ListedEntry;
use skills_base::number::grouped;
use skills_skill::client::{Bound, Budget, CountedFormat, Escape, ShareUnit};
use skills_skill::slice;

/// Unit in which a client counts its catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[derive(Serialize, Deserialize, strum::Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Unit {
    /// Characters.
    #[default]
    Characters,
    /// Tokens, as the client estimates them.
    Tokens,
}

/// Characters per token, for clients whose limit is in tokens and that count characters.
const CHARACTERS_PER_TOKEN: f64 = 4.0;
/// Bytes per token, for clients that count tokens by an unpublished method.
const BYTES_PER_TOKEN: u32 = 4;

/// Characters and bytes of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    characters: usize,
    bytes: usize,
}

impl Size {
    fn of(text: &str) -> Self {
        Self { characters: text.chars().count(), bytes: text.len() }
    }

    /// Counts columns as characters. Control characters have none.
    fn in_columns(text: &str) -> Self {
        let columns = text.split(char::is_control).map(UnicodeWidthStr::width).sum();
        Self { characters: columns, bytes: text.len() }
    }

    pub(super) fn and(self, more: Self) -> Self {
        Self { characters: self.characters + more.characters, bytes: self.bytes + more.bytes }
    }
}

/// Sizes of an entry without its description text.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntrySize {
    /// If it has a description.
    pub full: Size,
    /// If it has none.
    pub name_only: Size,
}

/// What all entries of a list contain of their descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Descriptions {
    /// All, as written.
    Complete,
    /// All, truncated to one length.
    Truncated,
    /// None.
    Omitted,
}

/// A client's measure.
#[derive(Debug, Clone)]
pub(super) struct Scale<'a> {
    pub unit: Unit,
    measured: std::borrow::Cow<'a, CountedFormat>,
    known: bool,
    per_token: usize,
}

pub(super) struct Limit {
    /// In the scale's unit; `None` if there is none, or if it is unknown.
    pub most: Option<usize>,
    /// Its origin, as text.
    pub from: String,
    /// Whether the list is known to be unlimited.
    pub unbounded: bool,
}

impl<'a> Scale<'a> {
    /// Returns the scale of a client, and its limit.
    pub(super) fn of(budget: &'a Budget, window: u32) -> (Self, Limit) {
        let (unit, most, from) = match budget.bound.value() {
            None => (Unit::Characters, None, "not known".to_owned()),
            Some(Bound::None) => (Unit::Characters, None, "no limit".to_owned()),
            Some(&Bound::Characters(characters)) => (
                Unit::Characters,
                Some(characters as usize),
                format!("{} characters", grouped(u64::from(characters))),
            ),
            Some(&Bound::ContextShare { without_window, .. }) if window == 0 => match without_window {
                Some(characters) => (
                    Unit::Characters,
                    Some(characters as usize),
                    format!("{} characters", grouped(u64::from(characters))),
                ),
                None => (Unit::Characters, None, "a share of a context of unknown size".to_owned()),
            },
            Some(&Bound::ContextShare { of_context, unit, at_most, .. }) => {
                let share = f64::from(window) * of_context;
                let (unit, most) = match unit {
                    ShareUnit::Tokens => (Unit::Tokens, (share as usize).max(1)),
                    ShareUnit::Characters => (Unit::Characters, (share * CHARACTERS_PER_TOKEN) as usize),
                };
                let limit_from = match at_most.map(|most| most as usize).filter(|cap| *cap < most) {
                    Some(cap) => {
                        return Self::with(
                            budget,
                            unit,
                            cap,
                            format!("at most {} {unit}", grouped(cap as u64)),
                        );
                    }
                    None if unit == Unit::Tokens => {
                        format!("{}: {} tokens", part(of_context, window), grouped(most as u64))
                    }
                    None => {
                        format!("{}: about {} characters", part(of_context, window), grouped(most as u64))
                    }
                };
                (unit, Some(most), limit_from)
            }
        };
        let unbounded = budget.bound.value() == Some(&Bound::None);
        (Self::measure(budget, unit), Limit { most, from, unbounded })
    }

    fn with(budget: &'a Budget, unit: Unit, most: usize, from: String) -> (Self, Limit) {
        (Self::measure(budget, unit), Limit { most: Some(most), from, unbounded: false })
    }

    fn measure(budget: &'a Budget, unit: Unit) -> Self {
        let measured = match budget.measured.value() {
            Some(known) => std::borrow::Cow::Borrowed(known),
            None => std::borrow::Cow::Owned(CountedFormat {
                entry: "{name}{description}".to_owned(),
                name_only: "{name}".to_owned(),
                ..CountedFormat::default()
            }),
        };
        let per_token = budget.bytes_per_token.value().copied().unwrap_or(BYTES_PER_TOKEN).max(1) as usize;
        Self { unit, measured, known: budget.measured.value().is_some(), per_token }
    }

    /// Describes what is measured.
    pub(super) fn measure_label(&self) -> String {
        let what = if self.known {
            let words: Vec<&str> = self.measured.entry.split_whitespace().collect();
            format!("the rendered entries, {}", words.join(" "))
        } else {
            "names and descriptions".to_owned()
        };
        match self.unit {
            Unit::Characters if self.measured.columns => {
                format!("characters of {what} (wide ones count twice)")
            }
            Unit::Characters => format!("characters of {what}"),
            Unit::Tokens => format!("tokens, {} bytes each, of {what}", self.per_token),
        }
    }

    /// Returns whether what is measured is published.
    pub(super) fn known(&self) -> bool {
        self.known
    }

    pub(super) fn frame(&self, entry: &ListedEntry) -> EntrySize {
        let path = || entry.location.as_deref().map(|path| path.display().to_string());
        let location = entry.written_location.clone().or_else(path).unwrap_or_default();
        let name = entry.title.as_deref().unwrap_or(&entry.name);
        let of = |form: &str| {
            pieces(form).fold(Size::default(), |size, part| {
                size.and(match part {
                    TemplatePart::Text(text) => Size::of(text),
                    TemplatePart::Name => self.text(name),
                    TemplatePart::Description => Size::default(),
                    TemplatePart::Location => self.text(&location),
                })
            })
        };
        EntrySize { full: of(&self.measured.entry), name_only: of(&self.measured.name_only) }
    }

    /// Returns the size of a text in an entry.
    pub(super) fn text(&self, text: &str) -> Size {
        match self.measured.escape {
            Escape::AngleBrackets | Escape::None if self.measured.columns => Size::in_columns(text),
            Escape::Xml => Size::of(&Escape::Xml.of(text)),
            // A client that escapes only these already has them in its descriptions.
            Escape::AngleBrackets | Escape::None => Size::of(text),
        }
    }

    /// Returns the size of an entry with this description, in the client's unit.
    pub(super) fn entry(&self, frame: EntrySize, description: &str) -> usize {
        if description.is_empty() {
            self.amount(frame.name_only)
        } else {
            self.amount(frame.full.and(self.text(description)))
        }
    }

    /// Converts a size to the client's unit.
    pub(super) fn amount(&self, size: Size) -> usize {
        match self.unit {
            Unit::Characters => size.characters,
            Unit::Tokens => size.bytes.div_ceil(self.per_token),
        }
    }

    /// Returns the size of the text around that many of all entries, and between them.
    pub(super) fn envelope_size(&self, descriptions: Descriptions, entries: usize, all: usize) -> usize {
        let mut around = match descriptions {
            Descriptions::Complete => self.measured.around,
            Descriptions::Truncated => self.measured.around_cut,
            Descriptions::Omitted => self.measured.around_bare,
        } as usize;
        if entries < all && self.measured.omission_note > 0 {
            around += self.measured.omission_note as usize + digits(entries) + digits(all);
        }
        let around = self.amount(Size { characters: around, bytes: around });
        around + self.amount(Size::of(&self.measured.between)) * entries.saturating_sub(1)
    }
}

fn digits(count: usize) -> usize {
    count.to_string().len()
}

fn part(share: f64, window: u32) -> String {
    format!("{:.0} % of a context of {} tokens", share * 100.0, grouped(u64::from(window)))
}

enum TemplatePart<'a> {
    Text(&'a str),
    Name,
    Description,
    Location,
}

/// Splits the format of an entry into pieces. Text of skills is never searched for placeholders.
fn pieces(form: &str) -> impl Iterator<Item = TemplatePart<'_>> {
    let mut rest = form;
    std::iter::from_fn(move || {
        let holes = [("{name}", 0), ("{description}", 1), ("{location}", 2)];
        if rest.is_empty() {
            return None;
        }
        let next = holes.iter().filter_map(|(hole, which)| Some((rest.find(hole)?, *hole, *which))).min();
        let (part, taken) = match next {
            Some((0, hole, 0)) => (TemplatePart::Name, hole.len()),
            Some((0, hole, 1)) => (TemplatePart::Description, hole.len()),
            Some((0, hole, _)) => (TemplatePart::Location, hole.len()),
            Some((at, ..)) => (TemplatePart::Text(slice(rest, ..at)), at),
            None => (TemplatePart::Text(rest), rest.len()),
        };
        rest = slice(rest, taken..);
        Some(part)
    })
}
