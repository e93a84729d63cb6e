//! Presence link: which word pieces of the request a skill has at all, and how much of its name the
//! request covers. No length normalisation: it tells skills apart that say the same at length.

use std::collections::HashMap;

use super::super::answer::{PartKind, Signal};
use super::super::index::View;
use super::super::reading::Reading;
use super::super::segment::Key;
use super::{Addend, Column, Context, Failure, Link, Row, Scorer, matched, rarity};

/// See the module.
pub(super) struct Presence;

/// A distinct word piece of the request.
struct Piece {
    token: u16,
    /// v: how rare it is among the skills.
    rarity: f64,
    stop: bool,
    row: Row,
}

struct Prepared<'a> {
    cx: &'a Context<'a>,
    pieces: Vec<Piece>,
    /// 1/√(Σ v + 1e-6)
    scale: f64,
    /// v of any piece of a name, worked out once.
    rarities: HashMap<u16, f64>,
}

impl Link for Presence {
    fn name(&self) -> &'static str {
        "presence"
    }

    fn prepare<'a>(
        &self,
        reading: &'a Reading,
        cx: &'a Context<'a>,
    ) -> Result<Option<Box<dyn Scorer + 'a>>, Failure> {
        let model = cx.model.clone()?;
        let n = cx.index.len();
        let mut pieces: Vec<Piece> = Vec::new();
        for piece in &reading.pieces {
            if pieces.iter().any(|p| p.token == piece.token) {
                continue;
            }
            pieces.push(Piece {
                token: piece.token,
                rarity: rarity(n, cx.index.frequency(Key::piece(piece.token), View::Pieces)),
                stop: cx.words.is_stop(model.text(piece.token)),
                row: Row::Word(reading.row(piece.word)),
            });
        }
        if pieces.is_empty() {
            return Ok(None);
        }
        let sum: f64 = pieces.iter().map(|p| p.rarity).sum();
        let mut prepared =
            Prepared { cx, pieces, scale: (sum + 1e-6).sqrt().recip(), rarities: HashMap::new() };
        prepared.rarities = prepared.rarities_of_names();
        Ok(Some(Box::new(prepared)))
    }
}

impl Prepared<'_> {
    /// Rarities of all pieces in names that share a piece with the request.
    fn rarities_of_names(&self) -> HashMap<u16, f64> {
        let n = self.cx.index.len();
        let mut out = HashMap::new();
        for piece in self.pieces.iter().filter(|p| !p.stop) {
            self.cx.index.each(Key::piece(piece.token), View::Pieces, |slot, counts| {
                let Some(entry) = self.cx.index.entry(slot).filter(|_| counts.of(0) > 0) else { return };
                for token in &entry.name_pieces {
                    out.entry(*token).or_insert_with(|| {
                        rarity(n, self.cx.index.frequency(Key::piece(*token), View::Pieces))
                    });
                }
            });
        }
        out
    }

    /// Σ v over the pieces of a name.
    fn name_total(&self, slot: usize) -> f64 {
        let Some(entry) = self.cx.index.entry(slot) else { return 0.0 };
        entry.name_pieces.iter().filter_map(|token| self.rarities.get(token)).sum()
    }
}

impl Scorer for Prepared<'_> {
    fn score(&self) -> Result<Column, Failure> {
        let profile = self.cx.profile;
        let mut column = Column::new(self.cx.index.slots());
        for piece in &self.pieces {
            let value = (profile.presence * piece.rarity * self.scale) as f32;
            self.cx.index.each(Key::piece(piece.token), View::Pieces, |slot, counts| {
                column.values[slot] += value;
                if counts.of(0) > 0 && !piece.stop {
                    let total = self.name_total(slot);
                    if total > 0.0 {
                        column.values[slot] += (profile.name * piece.rarity / total) as f32;
                    }
                }
                column.matched[slot] |= if piece.stop { matched::STOP } else { 0 };
            });
        }
        Ok(column)
    }

    fn explain(&self, slot: usize, out: &mut Vec<Addend>) {
        let Ok(model) = self.cx.model.as_ref() else { return };
        for piece in &self.pieces {
            let Some(counts) = self.cx.index.counts(Key::piece(piece.token), slot, View::Pieces) else {
                continue;
            };
            let in_name = counts.of(0) > 0;
            let mut give = |kind, signal, field, value| {
                let label = model.text(piece.token).to_owned();
                out.push(Addend { row: piece.row, signal, kind, field, label, value });
            };
            let (signal, field) =
                if in_name { (Signal::Name, "name") } else { (Signal::Description, "description") };
            give(
                PartKind::Presence,
                signal,
                Some(field),
                self.cx.profile.presence * piece.rarity * self.scale,
            );
            let total = self.name_total(slot);
            if in_name && !piece.stop && total > 0.0 {
                let value = self.cx.profile.name * piece.rarity / total;
                give(PartKind::NameCover, Signal::Name, Some("name"), value);
            }
        }
    }
}
