//! Values derived from the sums over all documents: length norms and the mean vector of the collection.

use std::sync::OnceLock;

use super::analysis::UNIT;
use super::embedding::{DIM, dot};
use super::field::{self, Counts};
use super::sums::Sums;
use super::weights::Weights;

/// Norms of each field by length.
type Norms = [Vec<f32>; field::COUNT];

/// The norms `w_f / (1 − b_f + b_f · len_f / avglen_f)` of all fields, by slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldNorms {
    /// Separate, because most postings are of a body alone: a scan of them reads a fifth of the memory.
    body: Vec<f32>,
    others: Vec<[f32; field::BODY]>,
}

impl FieldNorms {
    fn new<'a>(table: &Norms, lengths: impl Iterator<Item = &'a [u16; field::COUNT]> + Clone) -> Self {
        let norm = |field: usize, lengths: &[u16; field::COUNT]| table[field][usize::from(lengths[field])];
        Self {
            body: lengths.clone().map(|lengths| norm(field::BODY, lengths)).collect(),
            others: lengths.map(|lengths| std::array::from_fn(|field| norm(field, lengths))).collect(),
        }
    }

    /// Returns the norm of one field.
    pub fn of(&self, slot: usize, field: usize) -> f32 {
        if field == field::BODY { self.body[slot] } else { self.others[slot][field] }
    }

    /// Computes `Σ norm_f · count_f`.
    pub fn weighted(&self, slot: usize, counts: Counts) -> f32 {
        let body = self.body[slot] * f32::from(counts.of(field::BODY));
        if counts.is_body() {
            return body;
        }
        let others = self.others[slot].iter().enumerate();
        others.map(|(field, norm)| norm * f32::from(counts.of(field))).sum::<f32>() + body
    }
}

/// Derived values; recomputed after every change of the index.
#[derive(Debug, Clone, Default)]
pub(crate) struct Derived {
    /// Length norms of stems.
    pub norms: FieldNorms,
    /// Length norms of pairs.
    pub pair_norms: FieldNorms,
    /// Mean vector of the collection.
    pub mean: Vec<f64>,
    /// 1 / |d − share·mean| by slot; 0 for a document without a vector.
    pub centered: Vec<f32>,
    /// The summed rarity of the word pieces of each name, by slot; computed by the first request.
    pub name_totals: OnceLock<Vec<f32>>,
}

/// Lengths by field: of stems, of pairs.
pub(crate) type Lengths = ([u16; field::COUNT], [u16; field::COUNT]);

impl Derived {
    /// Computes the values from the sums, the lengths by slot, and the vectors slot by slot.
    pub fn new(sums: &Sums, lengths: &[Lengths], vectors: &[i16], weights: &Weights) -> Self {
        let longest =
            lengths.iter().fold(([0; field::COUNT], [0; field::COUNT]), |(a, b): Lengths, (c, d)| {
                (std::array::from_fn(|f| a[f].max(c[f])), std::array::from_fn(|f| b[f].max(d[f])))
            });
        let fields = weights.fields.all();
        let stems = norms(&longest.0, |f| (fields[f].weight, fields[f].length, sums.average(f).0));
        let pairs = norms(&longest.1, |f| (fields[f].weight, fields[f].bigram_length, sums.average(f).1));
        let mean = sums.mean();
        Self {
            norms: FieldNorms::new(&stems, lengths.iter().map(|(stems, _)| stems)),
            pair_norms: FieldNorms::new(&pairs, lengths.iter().map(|(_, pairs)| pairs)),
            centered: centered(&mean.map(|m| weights.centring * m), vectors),
            mean: mean.to_vec(),
            name_totals: OnceLock::new(),
        }
    }
}

fn norms(longest: &[u16; field::COUNT], of: impl Fn(usize) -> (f64, f64, f64)) -> Norms {
    std::array::from_fn(|f| {
        let (weight, b, average) = of(f);
        (0..=longest[f]).map(|length| (weight / (1.0 - b + b * f64::from(length) / average)) as f32).collect()
    })
}

/// Computes 1 / |d − offset| from |d|² − 2·d·offset + |offset|², with integer products.
fn centered(offset: &[f64; DIM], vectors: &[i16]) -> Vec<f32> {
    let rounded: [i16; DIM] = offset.map(|v| (v * UNIT).round() as i16);
    let own = dot(offset, offset) as f32;
    let unit = (UNIT * UNIT) as f32;
    let (vectors, _) = vectors.as_chunks::<DIM>();
    vectors
        .iter()
        .map(|vector| {
            let (mut length, mut shared) = (0_i32, 0_i32);
            for (a, b) in vector.iter().zip(&rounded) {
                length += i32::from(*a) * i32::from(*a);
                shared += i32::from(*a) * i32::from(*b);
            }
            let square = (length as f32 - 2.0 * shared as f32) / unit + own;
            if length > 0 && square > 0.0 { square.sqrt().recip() } else { 0.0 }
        })
        .collect()
}
