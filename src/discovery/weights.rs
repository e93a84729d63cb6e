//! The router's numbers: `assets/ranker/weights.yaml`, typed and checked.

use std::collections::HashSet;

use serde::Deserialize;

use super::phrases::Phrases;

/// The weights file that this program ships.
const SHIPPED: &str = include_str!("../../assets/ranker/weights.yaml");
/// The phrases file that this program ships.
const PHRASES: &str = include_str!("../../assets/ranker/phrases.yaml");

/// A weights file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// Not the form of a weights file.
    #[error("invalid weights file: {0}; compare it with assets/ranker/weights.yaml")]
    Form(String),
    /// Not the form of a phrases file.
    #[error("invalid phrases file: {0}")]
    Phrases(String),
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

/// Length normalization and weight of one field (BM25F, Robertson & Zaragoza 2009, section 3.6).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldWeight {
    /// w of the field.
    pub weight: f64,
    /// b for single stems, 0 to 1.
    pub length: f64,
    /// b for adjacent pairs, 0 to 1.
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
    /// Number of skills for which the constants hold as they are.
    pub at: u32,
    /// How much the thresholds grow per e-fold more skills: rarity, and with it a score, grows with their number.
    pub growth: f64,
    /// How much they shrink per e-fold fewer.
    pub growth_below: f64,
    /// The share by which `lead` grows and shrinks so.
    pub lead_growth: f64,
}

impl Fitted {
    /// The constants for scores that are smaller by this share.
    #[must_use]
    pub fn scaled(&self, share: f64) -> Self {
        Self {
            slope: self.slope / share,
            fits_from: self.fits_from * share,
            sure_from: self.sure_from * share,
            high_from: self.high_from * share,
            lead: self.lead * share,
            ..*self
        }
    }

    /// The constants for a collection of this many skills.
    #[must_use]
    pub fn at(&self, skills: usize) -> Self {
        /// The lowest threshold, and the smallest share of `lead`.
        const MIN_THRESHOLD: f64 = 0.4;
        let more = (skills.max(1) as f64 / f64::from(self.at)).ln();
        let growth = if more > 0.0 { self.growth } else { self.growth_below };
        let shift = (growth * more).max(MIN_THRESHOLD - self.fits_from);
        Self {
            offset: self.offset - self.slope * shift,
            fits_from: self.fits_from + shift,
            sure_from: self.sure_from + shift,
            high_from: self.high_from + shift,
            lead: self.lead * (1.0 + self.lead_growth * more).max(MIN_THRESHOLD),
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
    /// Of BM25F over adjacent pairs.
    pub bigram: f64,
    /// Of stems that occur in headings or body only.
    pub body: f64,
    /// Of presence.
    pub presence: f64,
    /// Of the covered share of the name.
    pub name: f64,
    /// Of the centered cosine.
    pub meaning: f64,
    /// Of the main verb of the request, where it is one of the skill's.
    pub verb: f64,
    /// Of the presence of the request's head, for long requests.
    pub head: f64,
    /// Of description clauses that occur completely in the request.
    pub clause: f64,
    /// How much higher the thresholds are for a skill that matches only one of several words of a request.
    pub single_word: f64,
    /// Whether a name counts as covered by words in the heads of sentences only.
    pub name_in_heads: bool,
    /// Fitted confidence.
    pub confidence: Fitted,
}

/// Stop words that occur in too many skills to be informative.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommonStopWords {
    /// Share of the skills above which a stop word is left out.
    pub share: f64,
    /// Minimum number of skills for a meaningful share.
    pub from_skills: usize,
}

/// What stop words may do.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopWordLimits {
    /// What those of a request may add to a score together.
    pub most: f64,
    /// Share of the threshold that a fit needs from other words.
    pub content_share: f64,
}

/// From how many words on a request is a long one.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongRequests {
    /// Up to here it is not.
    pub from: usize,
    /// From here on it is wholly.
    pub full: usize,
}

impl LongRequests {
    /// How long a request with this number of words is, 0 to 1.
    #[must_use]
    pub fn share(&self, words: usize) -> f64 {
        let range = self.full.saturating_sub(self.from).max(1) as f64;
        (words.saturating_sub(self.from) as f64 / range).min(1.0)
    }
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
    /// More than that, or than `named`, where it is the id: names are shared, ids are not.
    pub id: f64,
    /// The request names a skill.
    pub named: f64,
    /// The request is a tag.
    pub tag: f64,
}

/// Rule term by role.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleTerms {
    /// A complete job.
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
    /// Letters it needs where only one word comes near.
    pub min_letters_unique: usize,
    /// Letters it needs where two of them are turned.
    pub min_letters_turned: usize,
    /// Letters from which two edits are allowed.
    pub two_edits_from: usize,
    /// What turned letters speak for a word, in units of rarity.
    pub turned: f64,
    /// What the same first letter speaks for it.
    pub same_start: f64,
    /// What speaks for a stop word; for another word it is what skills that say it say of the rest of the request.
    pub stop_word: f64,
    /// Letters from which the word pieces of an unknown word count.
    pub pieces_from: usize,
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

/// Limits of the semantic matcher.
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
    /// Maximum word pieces of a skill for the presence matcher.
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
    /// What stop words may do.
    pub stop_words_limit: StopWordLimits,
    /// From how many words on a request is a long one.
    pub long_requests: LongRequests,
    /// Stop words that are left out altogether.
    pub common_stop_words: CommonStopWords,
    /// What thresholds are multiplied by where request and skill share a language that the embedding does not read.
    pub unread_language: f64,
    /// Share of the mean vector taken off, 0 to 1.
    pub centring: f64,
    /// Weights of the terms of z.
    pub profiles: Profiles,
    /// Centered cosine that makes a candidate by itself.
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
    /// The semantic matcher.
    pub semantic: Semantic,
    /// What makes a sentence an exclusion, lower case.
    pub exclusion_cues: Vec<String>,
    /// Limits of texts.
    pub limits: Limits,
    /// Words that say little, as written (lower case, apostrophes in).
    #[serde(deserialize_with = "word_set")]
    pub stop_words: HashSet<String>,
    /// Verbs, forms of asking, exclusions and function words; a file of its own.
    #[serde(skip)]
    pub phrases: Phrases,
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
        let mut weights: Self =
            serde_saphyr::from_str(yaml).map_err(|error| WeightsError::Form(error.to_string()))?;
        weights.phrases =
            serde_saphyr::from_str(PHRASES).map_err(|error| WeightsError::Phrases(error.to_string()))?;
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
        let unread = self.unread_language;
        need(unread > 0.0 && unread <= 1.0, "unread_language", unread, "above 0, at most 1")?;
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
