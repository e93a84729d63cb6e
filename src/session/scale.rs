//! How large a client takes its catalogue to be: what of an entry it counts, and in which unit.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::compose::Listed;
use super::marked::escaped;
use crate::skill::client::{Budget, Measured, ShareUnit};
use crate::skill::slice;

/// In what a client counts its catalogue.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, strum::Display, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Unit {
    /// Characters.
    #[default]
    Characters,
    /// Tokens, as the client estimates them.
    Tokens,
}

/// Characters of a token, where a client's share is one of tokens and it counts in characters.
const CHARACTERS_PER_TOKEN: f64 = 4.0;
/// Bytes of a token, where a client counts tokens and how is not published.
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

    pub(super) fn and(self, more: Self) -> Self {
        Self { characters: self.characters + more.characters, bytes: self.bytes + more.bytes }
    }
}

/// What an entry measures beside its description.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// With one.
    pub whole: Size,
    /// Without.
    pub bare: Size,
}

/// A client's measure.
#[derive(Debug, Clone)]
pub(super) struct Scale<'a> {
    pub unit: Unit,
    measured: std::borrow::Cow<'a, Measured>,
    known: bool,
    per_token: usize,
    home: &'a Path,
    table: Option<Table>,
}

/// Folders that are written once, before the entries.
#[derive(Debug, Clone)]
struct Table {
    /// Each with its short name.
    folders: Vec<(PathBuf, String)>,
    size: Size,
}

impl<'a> Scale<'a> {
    /// The measure of a client, and its bound with where that comes from.
    pub(super) fn of(budget: &'a Budget, window: u32, home: &'a Path) -> (Self, Option<usize>, String) {
        let share = budget.share_of_context.value().filter(|_| window > 0);
        let (unit, limit, told) = match (share, budget.share_unit.value(), budget.characters.value()) {
            (Some(&share), Some(ShareUnit::Tokens), _) => {
                let tokens = ((f64::from(window) * share) as usize).max(1);
                (Unit::Tokens, Some(tokens), format!("{}: {tokens} tokens", part(share, window)))
            }
            (Some(&share), _, _) => {
                let characters = (f64::from(window) * share * CHARACTERS_PER_TOKEN) as usize;
                let told = format!("{}: about {characters} characters", part(share, window));
                (Unit::Characters, Some(characters), told)
            }
            (None, _, Some(&characters)) => {
                (Unit::Characters, Some(characters as usize), format!("{characters} characters"))
            }
            (None, _, None) => (Unit::Characters, None, "not known".to_owned()),
        };
        let measured = match budget.measured.value() {
            Some(known) => std::borrow::Cow::Borrowed(known),
            None => std::borrow::Cow::Owned(Measured {
                entry: "{name}{description}".to_owned(),
                bare: "{name}".to_owned(),
                cut_mark: "…".to_owned(),
                ..Measured::default()
            }),
        };
        let per_token = budget.bytes_per_token.value().copied().unwrap_or(BYTES_PER_TOKEN).max(1) as usize;
        let known = budget.measured.value().is_some();
        (Self { unit, measured, known, per_token, home, table: None }, limit, told)
    }

    /// The measure with the folders in a table, where the client does that and any entry lies in one of them.
    pub(super) fn with_table(&self, entries: &[Listed], folders: &[PathBuf]) -> Option<Self> {
        let aliases = self.measured.aliases.as_ref()?;
        let lies_in = |folder: &&PathBuf| {
            entries.iter().any(|entry| entry.location.as_deref().is_some_and(|path| path.starts_with(folder)))
        };
        let folders: Vec<(PathBuf, String)> = folders
            .iter()
            .filter(lies_in)
            .enumerate()
            .map(|(n, folder)| (folder.clone(), aliases.name.replace("{n}", &n.to_string())))
            .collect();
        if folders.is_empty() {
            return None;
        }
        let around = aliases.around as usize;
        let row = |(folder, name): &(PathBuf, String)| {
            Size::of(&aliases.row.replace("{alias}", name).replace("{root}", &folder.display().to_string()))
        };
        let size = folders.iter().map(row).fold(Size { characters: around, bytes: around }, Size::and);
        Some(Self { table: Some(Table { folders, size }), ..self.clone() })
    }

    /// What is measured, in words.
    pub(super) fn told(&self) -> String {
        let what = if self.known {
            let words: Vec<&str> = self.measured.entry.split_whitespace().collect();
            format!("every entry as it is written there, {}", words.join(" "))
        } else {
            "names and descriptions".to_owned()
        };
        let table = if self.table.is_some() { "; its folders stand in a table, once each" } else { "" };
        match self.unit {
            Unit::Characters => format!("characters of {what}{table}"),
            Unit::Tokens => format!("tokens, {} bytes each, of {what}{table}", self.per_token),
        }
    }

    /// Whether what is measured is published.
    pub(super) fn known(&self) -> bool {
        self.known
    }

    /// What stands at the end of a description that was cut.
    pub(super) fn cut_mark(&self) -> &str {
        &self.measured.cut_mark
    }

    pub(super) fn frame(&self, entry: &Listed) -> Frame {
        let location = entry.location.as_deref().map(|path| self.location(path)).unwrap_or_default();
        let of = |form: &str| {
            pieces(form).fold(Size::default(), |size, piece| {
                size.and(match piece {
                    Piece::Text(text) => Size::of(text),
                    Piece::Name => self.text(&entry.name),
                    Piece::Description => Size::default(),
                    Piece::Location => self.text(&location),
                })
            })
        };
        Frame { whole: of(&self.measured.entry), bare: of(&self.measured.bare) }
    }

    /// A text as it stands in an entry.
    pub(super) fn text(&self, text: &str) -> Size {
        if self.measured.xml { Size::of(&escaped(text)) } else { Size::of(text) }
    }

    /// The amount of an entry with this description, in the client's unit.
    pub(super) fn entry(&self, frame: Frame, description: &str) -> usize {
        if description.is_empty() {
            self.amount(frame.bare)
        } else {
            self.amount(frame.whole.and(self.text(description)))
        }
    }

    /// A size in the client's unit.
    pub(super) fn amount(&self, size: Size) -> usize {
        match self.unit {
            Unit::Characters => size.characters,
            Unit::Tokens => size.bytes.div_ceil(self.per_token),
        }
    }

    /// What stands around the entries.
    pub(super) fn around(&self, bare: bool) -> usize {
        let around = if bare { self.measured.around_bare } else { self.measured.around } as usize;
        let table = self.table.as_ref().map(|table| self.amount(table.size)).unwrap_or_default();
        self.amount(Size { characters: around, bytes: around }) + table
    }

    fn location(&self, path: &Path) -> String {
        let short = |(folder, name): &(PathBuf, String)| {
            path.strip_prefix(folder).ok().map(|below| format!("{name}/{}", below.display()))
        };
        if let Some(short) = self.table.as_ref().and_then(|table| table.folders.iter().find_map(short)) {
            return short;
        }
        match path.strip_prefix(self.home) {
            Ok(below) if self.measured.tilde => format!("~/{}", below.display()),
            _ => path.display().to_string(),
        }
    }
}

fn part(share: f64, window: u32) -> String {
    format!("{:.0} % of a context of {window} tokens", share * 100.0)
}

enum Piece<'a> {
    Text(&'a str),
    Name,
    Description,
    Location,
}

/// The pieces of an entry's form. What a skill says is never read for placeholders.
fn pieces(form: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = form;
    std::iter::from_fn(move || {
        let holes = [("{name}", 0), ("{description}", 1), ("{location}", 2)];
        if rest.is_empty() {
            return None;
        }
        let next = holes.iter().filter_map(|(hole, which)| Some((rest.find(hole)?, *hole, *which))).min();
        let (piece, taken) = match next {
            Some((0, hole, 0)) => (Piece::Name, hole.len()),
            Some((0, hole, 1)) => (Piece::Description, hole.len()),
            Some((0, hole, _)) => (Piece::Location, hole.len()),
            Some((at, ..)) => (Piece::Text(slice(rest, ..at)), at),
            None => (Piece::Text(rest), rest.len()),
        };
        rest = slice(rest, taken..);
        Some(piece)
    })
}
