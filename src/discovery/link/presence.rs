//! Presence link: which word pieces of the request a skill has at all, and how much of its name the
//! request covers. No length normalisation: it tells skills apart that say the same at length.

use super::super::answer::{PartKind, Signal};
use super::super::lookup::{Found, View};
use super::super::reading::Reading;
use super::super::segment::Key;
use super::{Addend, Column, Context, Failure, Link, Row, Scorer, rarity};

/// See the module.
pub(super) struct Presence;

/// A distinct word piece of the request that some skill has.
struct Piece<'a> {
    token: u16,
    found: Found<'a>,
    /// v: how rare it is among the skills.
    rarity: f64,
    stop: bool,
    row: Row,
}

struct Prepared<'a> {
    cx: &'a Context<'a>,
    pieces: Vec<Piece<'a>>,
    /// 1/√(Σ v + 1e-6)
    scale: f64,
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
        let mut seen: Vec<u16> = Vec::new();
        let mut pieces: Vec<Piece<'a>> = Vec::new();
        let mut sum = 0.0;
        for piece in &reading.pieces {
            if seen.contains(&piece.token) {
                continue;
            }
            seen.push(piece.token);
            let rarity = rarity(n, cx.index.piece_frequency(piece.token));
            sum += rarity;
            let Some(found) = cx.index.find(Key::piece(piece.token), View::All) else { continue };
            pieces.push(Piece {
                token: piece.token,
                found,
                rarity,
                stop: cx.words.is_stop(model.text(piece.token)),
                row: Row::Word(reading.row(piece.word)),
            });
        }
        if pieces.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(Prepared { cx, pieces, scale: (sum + 1e-6_f64).sqrt().recip() })))
    }
}

impl Prepared<'_> {
    /// Σ v over the pieces of a name.
    fn name_total(&self, slot: usize) -> f64 {
        let n = self.cx.index.len();
        let pieces = self.cx.index.entry(slot).map_or(&[][..], |e| &e.name_pieces);
        pieces.iter().map(|token| rarity(n, self.cx.index.piece_frequency(*token))).sum()
    }
}

impl Scorer for Prepared<'_> {
    fn score(&self) -> Result<Column, Failure> {
        let profile = self.cx.profile;
        let mut column = Column::new(self.cx.index.slots());
        let mut covered: Vec<(usize, f64)> = Vec::new();
        for piece in &self.pieces {
            let value = (profile.presence * piece.rarity * self.scale) as f32;
            piece.found.each(|slot, counts| {
                column.values[slot] += value;
                if counts.of(0) > 0 && !piece.stop {
                    covered.push((slot, piece.rarity));
                }
            });
        }
        // A name's own sum is needed once, however many of its pieces are covered.
        covered.sort_unstable_by_key(|(slot, _)| *slot);
        for of_slot in covered.chunk_by(|a, b| a.0 == b.0) {
            let slot = of_slot[0].0;
            let total = self.name_total(slot);
            if total > 0.0 {
                let share = of_slot.iter().map(|(_, rarity)| rarity).sum::<f64>() / total;
                column.values[slot] += (profile.name * share) as f32;
            }
        }
        Ok(column)
    }

    fn explain(&self, slot: usize, out: &mut Vec<Addend>) {
        let Ok(model) = self.cx.model.as_ref() else { return };
        let total = self.name_total(slot);
        for piece in &self.pieces {
            let Some(counts) = piece.found.counts(slot) else { continue };
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
            if in_name && !piece.stop && total > 0.0 {
                let value = self.cx.profile.name * piece.rarity / total;
                give(PartKind::NameCover, Signal::Name, Some("name"), value);
            }
        }
    }
}
