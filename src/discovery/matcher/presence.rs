//! Presence matcher: the word pieces of the request that occur in a skill, and the share of its name that the request
//! covers. No length normalization: it separates skills with similar but longer text.

use super::super::answer::{ScoreComponent, TermKind};
use super::super::lookup::{KeyPostings, View};
use super::super::reading::{ReadPiece, Reading};
use super::super::segment::Key;
use super::{Column, Context, Failure, Label, Matcher, Row, ScoreTerm, Scorer};

/// Scores the presence of word pieces.
pub(super) struct Presence;

/// A distinct word piece of the request that at least one skill has.
struct Piece<'a> {
    token: u16,
    found: KeyPostings<'a>,
    /// v: its rarity among the skills.
    rarity: f64,
    /// Its contribution to a skill that has it.
    value: f64,
    content: bool,
    /// Whether it counts for the coverage of a name.
    covers: bool,
    row: Row,
}

struct PresenceScorer<'a> {
    cx: &'a Context<'a>,
    pieces: Vec<Piece<'a>>,
}

impl Matcher for Presence {
    fn name(&self) -> &'static str {
        "presence"
    }

    fn prepare<'a>(
        &self,
        reading: &'a Reading,
        cx: &'a Context<'a>,
    ) -> Result<Option<Box<dyn Scorer + 'a>>, Failure> {
        let model = cx.model.clone()?;
        let mut seen: Vec<u16> = Vec::new();
        let mut pieces: Vec<(Piece<'a>, bool)> = Vec::new();
        let (mut sum, mut head_sum) = (0.0, 0.0);
        for read_token in &reading.pieces {
            if seen.contains(&read_token.token) {
                continue;
            }
            seen.push(read_token.token);
            let mut places = reading.pieces.iter().filter(|other| other.token == read_token.token);
            let start = |read_token: &ReadPiece| reading.words[read_token.word].word.start as usize;
            let in_head = places.clone().any(|other| reading.task.head.contains(&start(other)));
            let covers = !cx.profile.name_in_heads || places.any(|other| reading.task.in_heads(start(other)));
            let rarity = cx.index.piece_rarity(read_token.token);
            sum += rarity;
            head_sum += if in_head { rarity } else { 0.0 };
            let Some(found) = cx.index.find(Key::word_piece(read_token.token), View::All) else { continue };
            let content = reading.is_content(read_token.word);
            pieces.push((
                Piece {
                    token: read_token.token,
                    found,
                    rarity,
                    value: 0.0,
                    content,
                    covers: covers && !cx.words.is_stop(model.text(read_token.token)),
                    row: Row::Word(reading.row(read_token.word)),
                },
                in_head,
            ));
        }
        if pieces.is_empty() {
            return Ok(None);
        }
        let scale = |sum: f64| (sum + 1e-6_f64).sqrt().recip();
        let weight = cx.profile.presence * scale(sum);
        let head = cx.profile.head * cx.weights.long_requests.share(reading.words.len()) * scale(head_sum);
        let pieces = pieces.into_iter().map(|(read_token, in_head)| Piece {
            value: read_token.rarity * (weight + if in_head { head } else { 0.0 }),
            ..read_token
        });
        Ok(Some(Box::new(PresenceScorer { cx, pieces: pieces.collect() })))
    }
}

impl PresenceScorer<'_> {
    /// Computes Σ v over the pieces of a name.
    fn name_total(&self, slot: usize) -> f64 {
        let pieces = self.cx.index.entry(slot).map_or(&[][..], |e| &e.name_pieces);
        pieces.iter().map(|token| self.cx.index.piece_rarity(*token)).sum()
    }
}

impl Scorer for PresenceScorer<'_> {
    fn score(&self, column: &mut Column) -> Result<(), Failure> {
        let index = self.cx.index;
        let mut covered = vec![0.0_f32; column.values.len()];
        for token in &self.pieces {
            let (value, rarity) = (token.value as f32, token.rarity as f32);
            let (values, _) = column.of_word(token.content);
            if !token.covers {
                token.found.each(|slot, _| values[slot] += value);
                continue;
            }
            token.found.each(|slot, counts| {
                values[slot] += value;
                if counts.of(0) > 0 {
                    covered[slot] += rarity;
                }
            });
        }
        let weight = self.cx.profile.name as f32;
        for ((value, covered), total) in column.values.iter_mut().zip(&covered).zip(index.name_totals()) {
            if *covered > 0.0 && *total > 0.0 {
                *value += weight * covered / total;
            }
        }
        Ok(())
    }

    fn explain(&self, slot: usize, out: &mut Vec<ScoreTerm>) {
        let total = self.name_total(slot);
        for token in &self.pieces {
            let Some(counts) = token.found.counts(slot) else { continue };
            let in_name = counts.of(0) > 0;
            let mut give = |kind, signal, field, value| {
                let label = Label::Piece(token.token);
                out.push(ScoreTerm { row: token.row, signal, kind, field, label, value });
            };
            let (signal, field) = if in_name {
                (ScoreComponent::Name, "name")
            } else {
                (ScoreComponent::Description, "description")
            };
            give(TermKind::Presence, signal, Some(field), token.value);
            if in_name && token.covers && total > 0.0 {
                let value = self.cx.profile.name * token.rarity / total;
                give(TermKind::NameCover, ScoreComponent::Name, Some("name"), value);
            }
        }
    }
}
