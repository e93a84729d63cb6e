//! Semantic matcher: cosine of the static embeddings after a share of the collection's mean vector has been subtracted
//! from both.

use std::time::Duration;

use super::super::analysis::UNIT;
use super::super::answer::{ScoreComponent, TermKind};
use super::super::embedding::{DIM, Embedding, dot, normalize};
use super::super::reading::Reading;
use super::{Column, Context, Failure, Label, Matcher, Row, ScoreTerm, Scorer, matched};
use skills_base::time_limit::TimeLimit;

/// Number of skills between two checks of the time limit.
const CHUNK: usize = 1_024;

/// Scores the similarity in meaning.
pub(super) struct Semantic;

struct SemanticScorer<'a> {
    cx: &'a Context<'a>,
    model: &'a Embedding,
    reading: &'a Reading,
    /// (q̂ − share·μ) / |q̂ − share·μ|
    query: [f64; DIM],
    /// |Σ v| of the request's pieces.
    sum_length: f64,
    /// |q̂ − share·μ|
    centered_length: f64,
    /// share · μ
    offset: [f64; DIM],
    time_limit: TimeLimit,
}

impl Matcher for Semantic {
    fn name(&self) -> &'static str {
        "semantic"
    }

    fn prepare<'a>(
        &self,
        reading: &'a Reading,
        cx: &'a Context<'a>,
    ) -> Result<Option<Box<dyn Scorer + 'a>>, Failure> {
        let time_limit = TimeLimit::start(Duration::from_millis(cx.weights.semantic.budget_ms));
        let model = cx.model.clone()?;
        let mut sum = [0.0; DIM];
        for token in &reading.pieces {
            model.add(token.token, &mut sum);
        }
        let sum_length = dot(&sum, &sum).sqrt();
        if sum_length <= 0.0 || cx.profile.meaning <= 0.0 {
            return Ok(None);
        }
        let mean = &cx.index.derived.mean;
        let offset = std::array::from_fn(|i| cx.weights.centring * mean.get(i).copied().unwrap_or(0.0));
        let mut query: [f64; DIM] = std::array::from_fn(|i| sum[i] / sum_length - offset[i]);
        let centered_length = dot(&query, &query).sqrt();
        normalize(&mut query);
        Ok(Some(Box::new(SemanticScorer {
            cx,
            model,
            reading,
            query,
            sum_length,
            centered_length,
            offset,
            time_limit,
        })))
    }
}

/// Computes the inner product of two integer vectors. Separate sums per lane use the full width of the registers,
/// which a single sum does not.
fn dot_in_lanes(a: &[i16; DIM], b: &[i16; DIM]) -> i32 {
    const LANES: usize = 8;
    let mut sums = [0_i32; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += i32::from(*a) * i32::from(*b);
        }
    }
    sums.iter().sum()
}

impl SemanticScorer<'_> {
    /// Returns a skill's centered, normalized vector; `None` if it has no vector.
    fn centered(&self, slot: usize) -> Option<[f64; DIM]> {
        if self.cx.index.derived.centered[slot] <= 0.0 {
            return None;
        }
        let vector = self.cx.index.vector(slot);
        let mut out = std::array::from_fn(|i| f64::from(vector[i]) / UNIT - self.offset[i]);
        normalize(&mut out);
        Some(out)
    }
}

impl Scorer for SemanticScorer<'_> {
    fn score(&self, column: &mut Column) -> Result<(), Failure> {
        // Integers cannot overflow: both vectors have at most length one, so the sum stays below 2^30.
        let query: [i16; DIM] = std::array::from_fn(|i| (self.query[i] * UNIT).round() as i16);
        let shift = dot(&self.query, &self.offset) as f32;
        let weight = self.cx.profile.meaning as f32;
        let floor = self.cx.weights.cosine_floor as f32;
        let unit = (UNIT * UNIT) as f32;
        let (vectors, _) = self.cx.index.vectors().as_chunks::<DIM>();
        let lengths = self.cx.index.derived.centered.chunks(CHUNK);
        let columns = column.values.chunks_mut(CHUNK).zip(column.matched.chunks_mut(CHUNK));
        // Two loops per chunk, without branches: the compiler vectorizes both.
        let mut products = [0_i32; CHUNK];
        for ((vectors, lengths), (values, flags)) in vectors.chunks(CHUNK).zip(lengths).zip(columns) {
            if self.time_limit.is_exceeded() {
                return Err(Failure::Budget(self.cx.weights.semantic.budget_ms));
            }
            for (product, vector) in products.iter_mut().zip(vectors) {
                *product = dot_in_lanes(vector, &query);
            }
            let slots = products.iter().zip(lengths).zip(values.iter_mut().zip(flags));
            for ((product, length), (value, flags)) in slots {
                // Skills without a vector have the length 0, and so the value 0.
                let cosine = (*product as f32 / unit - shift) * length;
                *value = weight * cosine;
                *flags = u8::from(*length > 0.0) * u8::from(cosine >= floor) * matched::MEANING;
            }
        }
        Ok(())
    }

    fn explain(&self, slot: usize, out: &mut Vec<ScoreTerm>) {
        let Some(skill) = self.centered(slot) else { return };
        let weight = self.cx.profile.meaning / self.centered_length;
        for token in &self.reading.pieces {
            let product = self.model.product(token.token, &skill);
            out.push(ScoreTerm {
                row: Row::Word(self.reading.row(token.word)),
                signal: ScoreComponent::Semantic,
                kind: TermKind::Meaning,
                field: None,
                label: Label::Piece(token.token),
                value: weight * product / self.sum_length,
            });
        }
        out.push(ScoreTerm {
            row: Row::General,
            signal: ScoreComponent::Semantic,
            kind: TermKind::GeneralWording,
            field: None,
            label: Label::Fixed("general wording"),
            value: -weight * dot(&self.offset, &skill),
        });
    }
}
