//! The router's numbers: `assets/ranker/weights.yaml`, typed and checked.

use std::collections::HashSet;

use serde::Deserialize;

/// The weights file that this program ships.
const SHIPPED: &str = include_str!("../../assets/ranker/weights.yaml");

/// A weights file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// Not the form of a weights file.
    #[error("the weights file cannot be read: {0}; compare it with assets/ranker/weights.yaml")]
    Form(String),
    /// A value outside of what makes sense.
    #[error("the weights file says {field} = {value}; it must be {must}")]
    Value {
        /// Dotted key.
        field: &'static str,
        /// As given.
        value: f64,
        /// What it must be.
        must: &'static str,
    },
}

/// Length normalisation and weight of one field (BM25F, Robertson & Zaragoza 2009, section 3.6).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldWeight {
    /// w of the field.
    pub weight: f64,
    /// b for single stems, 0 to 1.
    pub length: f64,
    /// b for neighbouring pairs, 0 to 1.
    pub bigram_length: f64,
}

/// The five fields.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    /// The skill's name, as words.
    pub name: FieldWeight,
    /// Its description.
    pub description: FieldWeight,
    /// Its tags.
    pub tags: FieldWeight,
    /// Headings of its body.
    pub headings: FieldWeight,
    /// Its body without code fences.
    pub body: FieldWeight,
}

impl Fields {
    /// In the order of [`super::field::NAMES`].
    pub(crate) fn all(&self) -> [FieldWeight; 5] {
        [self.name, self.description, self.tags, self.headings, self.body]
    }
}

/// Confidence constants of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// α of σ(α·z + β).
    pub slope: f64,
    /// β of σ(α·z + β).
    pub offset: f64,
    /// Below this z, no skill fits.
    pub fits_from: f64,
    /// Above this z, it fits without "unsure".
    pub sure_from: f64,
    /// Above this z, it fits clearly.
    pub high_from: f64,
    /// From this margin between first and second on, the first is clear.
    pub lead: f64,
    /// Number of skills from which the constants hold as they are.
    pub full_at: u32,
    /// How much smaller they are per e-fold fewer skills: rarity, and with it z, grows with their number.
    pub shrink: f64,
}

impl Fitted {
    /// The constants for a collection of so many skills.
    #[must_use]
    pub fn at(&self, skills: usize) -> Self {
        let fewer = (f64::from(self.full_at) / skills.max(1) as f64).ln().max(0.0);
        let factor = (1.0 - self.shrink * fewer).max(0.4);
        Self {
            slope: self.slope / factor,
            fits_from: self.fits_from * factor,
            sure_from: self.sure_from * factor,
            high_from: self.high_from * factor,
            lead: self.lead * factor,
            ..*self
        }
    }
}

/// Weights of the terms of z.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Of BM25F over stems.
    pub lexical: f64,
    /// Of BM25F over neighbouring pairs.
    pub bigram: f64,
    /// Of stems that stand in headings or body only.
    pub body: f64,
    /// Of presence.
    pub presence: f64,
    /// Of the covered share of the name.
    pub name: f64,
    /// Of the centred cosine.
    pub meaning: f64,
    /// Fitted confidence.
    pub confidence: Fitted,
}

/// Stop words that so many skills have that they tell nothing.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommonStopWords {
    /// Share of the skills above which a stop word is left out.
    pub share: f64,
    /// Skills from which on a share says anything.
    pub from_skills: usize,
}

/// Both profiles.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profiles {
    /// Where at least half of the skills have a body.
    pub bodies: Profile,
    /// Else.
    pub short: Profile,
}

/// Constants of exact matches.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exact {
    /// The request is an id or a name.
    pub whole: f64,
    /// The request names a skill.
    pub named: f64,
    /// The request is a tag.
    pub tag: f64,
}

/// Rule term by role.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleTerms {
    /// A whole job.
    pub procedure: f64,
    /// A part of a job.
    pub utility: f64,
    /// Attached only.
    pub sidecar: f64,
}

/// Rule term by status.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusTerms {
    /// Ready for use.
    pub stable: f64,
    /// May change.
    pub experimental: f64,
    /// Anything else.
    pub other: f64,
}

/// Rule terms of the blended policy.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// By role.
    pub role: RoleTerms,
    /// By status.
    pub status: StatusTerms,
    /// A read-only skill for a read-only request.
    pub read_only: f64,
}

/// When a word is corrected.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Typo {
    /// Letters a word needs.
    pub min_letters: usize,
    /// Letters from which two edits are allowed.
    pub two_edits_from: usize,
    /// Time it may take, milliseconds.
    pub budget_ms: u64,
}

/// When an unfinished word is completed.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Completion {
    /// Letters a fragment needs.
    pub min_letters: usize,
    /// Words it is completed to at most.
    pub words: usize,
}

/// Limits of the semantic link.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Semantic {
    /// Time it may take, milliseconds.
    pub budget_ms: u64,
    /// Share of the likeness that marks a word of a description.
    pub mark_share: f64,
    /// Words marked at most.
    pub marks: usize,
}

/// How much of a text counts.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Headings of a body.
    pub headings: usize,
    /// Characters of a body.
    pub body_chars: usize,
    /// Word pieces of a text's vector.
    pub query_pieces: usize,
    /// Word pieces of a skill that presence looks at.
    pub document_pieces: usize,
    /// Excluded skills that are listed.
    pub excluded: usize,
}

/// Everything the router ranks with.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Fields of BM25F.
    pub fields: Fields,
    /// k of tf/(k + tf).
    pub saturation: f64,
    /// g of a stop word.
    pub stop_word_weight: f64,
    /// Stop words that are left out altogether.
    pub common_stop_words: CommonStopWords,
    /// Share of the mean vector taken off, 0 to 1.
    pub centring: f64,
    /// Weights of the terms of z.
    pub profiles: Profiles,
    /// Centred cosine that makes a candidate by itself.
    pub cosine_floor: f64,
    /// Exact matches.
    pub exact: Exact,
    /// Rule terms.
    pub rules: Rules,
    /// First words of requests that only want to know.
    #[serde(deserialize_with = "word_set")]
    pub read_only_words: HashSet<String>,
    /// Corrections.
    pub typo: Typo,
    /// Completions.
    pub completion: Completion,
    /// The semantic link.
    pub semantic: Semantic,
    /// What makes a sentence an exclusion, lower case.
    pub exclusion_cues: Vec<String>,
    /// Limits of texts.
    pub limits: Limits,
    /// Words that say little, as written (lower case, apostrophes in).
    #[serde(deserialize_with = "word_set")]
    pub stop_words: HashSet<String>,
}

fn word_set<'de, D: serde::Deserializer<'de>>(d: D) -> Result<HashSet<String>, D::Error> {
    Ok(String::deserialize(d)?.split_whitespace().map(str::to_owned).collect())
}

impl Weights {
    /// The same without time budgets: for measuring, which must not depend on how busy a machine is.
    #[must_use]
    pub fn patient(mut self) -> Self {
        const MINUTE_MS: u64 = 60_000;
        self.typo.budget_ms = MINUTE_MS;
        self.semantic.budget_ms = MINUTE_MS;
        self
    }

    /// The weights that this program ships.
    ///
    /// # Errors
    /// Never with the shipped file; a test reads it.
    pub fn shipped() -> Result<Self, WeightsError> {
        Self::parse(SHIPPED)
    }

    /// Reads a weights file.
    ///
    /// # Errors
    /// When it has not the form, or a number is outside of its range.
    pub fn parse(yaml: &str) -> Result<Self, WeightsError> {
        let weights: Self =
            serde_saphyr::from_str(yaml).map_err(|error| WeightsError::Form(error.to_string()))?;
        weights.check()?;
        Ok(weights)
    }

    fn check(&self) -> Result<(), WeightsError> {
        let need = |ok: bool, field, value, must| {
            if ok { Ok(()) } else { Err(WeightsError::Value { field, value, must }) }
        };
        for f in self.fields.all() {
            need(f.weight >= 0.0 && f.weight.is_finite(), "fields.*.weight", f.weight, "0 or more")?;
            for b in [f.length, f.bigram_length] {
                need((0.0..1.0).contains(&b), "fields.*.length", b, "from 0 to below 1")?;
            }
        }
        need(self.saturation > 0.0, "saturation", self.saturation, "above 0")?;
        need(
            (0.0..=1.0).contains(&self.stop_word_weight),
            "stop_word_weight",
            self.stop_word_weight,
            "0 to 1",
        )?;
        need((0.0..=1.0).contains(&self.centring), "centring", self.centring, "0 to 1")?;
        let r = &self.rules;
        for term in [r.role.procedure, r.role.utility, r.role.sidecar].into_iter().chain([
            r.status.stable,
            r.status.experimental,
            r.status.other,
            r.read_only,
        ]) {
            need((0.0..=0.1).contains(&term), "rules.*", term, "0 to 0.1")?;
        }
        for p in [&self.profiles.bodies, &self.profiles.short] {
            let c = &p.confidence;
            need(
                c.fits_from <= c.sure_from && c.sure_from <= c.high_from,
                "profiles.*.confidence.sure_from",
                c.sure_from,
                "between fits_from and high_from",
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_is_read_and_checked() {
        let w = Weights::shipped().unwrap();
        assert!((w.fields.name.weight - 2.0).abs() < 1e-9);
        assert!(w.stop_words.contains("i'm") && w.stop_words.contains("any"));
        assert!(w.read_only_words.contains("summarise"));
    }

    #[test]
    fn a_rule_term_that_would_outweigh_text_is_refused() {
        let text = SHIPPED.replace("read_only: 0.03", "read_only: 0.3");
        let error = Weights::parse(&text).unwrap_err().to_string();
        assert_eq!(error, "the weights file says rules.* = 0.3; it must be 0 to 0.1");
    }

    #[test]
    fn an_unknown_key_is_refused() {
        assert!(Weights::parse(&format!("{SHIPPED}\nsaturaton: 1.0\n")).is_err());
    }
}
