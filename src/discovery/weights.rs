//! The constants of the router: `assets/ranker/weights.yaml`, typed and validated.

use std::collections::HashSet;

use serde::Deserialize;

use super::phrases::Phrases;

/// The embedded weights file.
const SHIPPED: &str = include_str!("../../assets/ranker/weights.yaml");
/// The embedded phrases file.
const PHRASES: &str = include_str!("../../assets/ranker/phrases.yaml");

/// Why a weights file is invalid.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The weights file cannot be parsed.
    #[error("invalid weights file: {0}; compare it with assets/ranker/weights.yaml")]
    Form(String),
    /// The phrases file cannot be parsed.
    #[error("invalid phrases file: {0}")]
    Phrases(String),
    /// A value is out of range.
    #[error("the weights file says {field} = {value}; it must be {must}")]
    Value {
        /// The dotted key.
        field: &'static str,
        /// The value in the file.
        value: f64,
        /// The allowed range.
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
    pub description: FieldWeight,
    pub tags: FieldWeight,
    /// Headings of its body.
    pub headings: FieldWeight,
    /// Its body without code fences.
    pub body: FieldWeight,
}

impl Fields {
    /// Returns the fields in the order of [`super::field::NAMES`].
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
    #[serde(rename = "fits_from")]
    pub fit_threshold: f64,
    /// Above this z, it fits without the label "unsure".
    #[serde(rename = "sure_from")]
    pub medium_threshold: f64,
    /// Above this z, it fits clearly.
    #[serde(rename = "high_from")]
    pub high_threshold: f64,
    /// From this margin between first and second on, the first is clear.
    pub lead: f64,
    /// Number of skills for which the constants were fitted.
    pub at: u32,
    /// Growth of the thresholds per e-fold more skills: rarity, and with it a score, grows with their number.
    pub growth: f64,
    /// Decrease of the thresholds per e-fold fewer skills.
    pub growth_below: f64,
    /// The relative change of `lead` per unit of that growth.
    pub lead_growth: f64,
}

impl Fitted {
    /// Returns the constants for scores that are smaller by this factor.
    #[must_use]
    pub fn scaled(&self, share: f64) -> Self {
        Self {
            slope: self.slope / share,
            fit_threshold: self.fit_threshold * share,
            medium_threshold: self.medium_threshold * share,
            high_threshold: self.high_threshold * share,
            lead: self.lead * share,
            ..*self
        }
    }

    /// Returns the constants for a collection of this many skills.
    #[must_use]
    pub fn at(&self, skills: usize) -> Self {
        /// The lowest threshold, and the smallest share of `lead`.
        const MIN_THRESHOLD: f64 = 0.4;
        let more = (skills.max(1) as f64 / f64::from(self.at)).ln();
        let growth = if more > 0.0 { self.growth } else { self.growth_below };
        let shift = (growth * more).max(MIN_THRESHOLD - self.fit_threshold);
        Self {
            offset: self.offset - self.slope * shift,
            fit_threshold: self.fit_threshold + shift,
            medium_threshold: self.medium_threshold + shift,
            high_threshold: self.high_threshold + shift,
            lead: self.lead * (1.0 + self.lead_growth * more).max(MIN_THRESHOLD),
            ..*self
        }
    }
}

/// Weights of the terms of z.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Weight of BM25F over stems.
    pub lexical: f64,
    /// Weight of BM25F over adjacent pairs.
    pub bigram: f64,
    /// Weight of stems that occur in headings or body only.
    pub body: f64,
    /// Weight of presence.
    pub presence: f64,
    /// Weight of the covered share of the name.
    pub name: f64,
    /// Weight of the centered cosine.
    pub meaning: f64,
    /// Weight of the main verb of the request, if it is one of the skill's verbs.
    pub verb: f64,
    /// Weight of the presence of the request's head, for long requests.
    pub head: f64,
    /// Weight of description clauses that occur completely in the request.
    pub clause: f64,
    /// Increase of the thresholds for a skill that matches only one of several words of a request.
    pub single_word: f64,
    /// Whether only words in the heads of sentences count for covering a name.
    pub name_in_heads: bool,
    /// Fitted confidence.
    pub confidence: Fitted,
}

/// Stop words that occur in too many skills to be informative.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommonStopWords {
    /// Share of the skills above which a stop word is ignored.
    pub share: f64,
    /// Minimum number of skills for a meaningful share.
    pub from_skills: usize,
}

/// Limits of the influence of stop words.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopWordLimits {
    /// Maximum contribution of all stop words of a request to a score.
    pub most: f64,
    /// Share of the threshold that other words must contribute for a fit.
    pub content_share: f64,
}

/// The number of words from which a request counts as long.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongRequests {
    /// Up to this number, it does not count as long.
    pub from: usize,
    /// From this number on, it counts as fully long.
    pub full: usize,
}

impl LongRequests {
    /// Returns how long a request with this number of words is, from 0 to 1.
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
    /// Used if at least half of the skills have a body.
    pub bodies: Profile,
    /// Used otherwise.
    pub short: Profile,
}

/// Constants of exact matches.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exact {
    /// The request is an id or a name.
    #[serde(rename = "whole")]
    pub full_match: f64,
    /// Added to `full_match` or `named` if it is the id: several skills can share a name, but not an id.
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
    pub procedure: f64,
    pub utility: f64,
    pub sidecar: f64,
}

/// Rule term by status.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusTerms {
    /// Ready for use.
    pub stable: f64,
    /// Subject to change.
    pub experimental: f64,
    /// Anything else.
    pub other: f64,
}

/// Rule terms of the blended policy.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Terms by role.
    pub role: RoleTerms,
    /// Terms by status.
    pub status: StatusTerms,
    /// Term of a read-only skill for a read-only request.
    pub read_only: f64,
}

/// Thresholds and weights of typo correction.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Typo {
    /// Minimum number of letters of a word.
    pub min_letters: usize,
    /// Minimum number of letters if only one word is similar.
    pub min_letters_unique: usize,
    /// Minimum number of letters if two of them are transposed.
    pub min_letters_turned: usize,
    /// Number of letters from which two edits are allowed.
    pub two_edits_from: usize,
    /// Bonus for transposed letters, in units of rarity.
    pub turned: f64,
    /// Bonus for the same first letter.
    pub same_start: f64,
    /// Bonus for a stop word; for another word, the bonus is how well the skills that contain it match the rest of the
    /// request.
    pub stop_word: f64,
    /// Deduction for each e-fold that fewer skills contain it than the most frequent of the nearest candidates.
    pub frequency: f64,
    /// Number of letters from which the word pieces of an unknown word count.
    pub pieces_from: usize,
    /// Time limit in milliseconds.
    pub budget_ms: u64,
}

/// Limits of completing an unfinished word.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Completion {
    /// Minimum number of letters of a fragment.
    pub min_letters: usize,
    /// Maximum number of completions.
    pub words: usize,
}

/// Limits of the semantic matcher.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Semantic {
    /// Time limit in milliseconds.
    pub budget_ms: u64,
    /// Minimum share of the similarity for marking a word of a description.
    pub mark_share: f64,
    /// Maximum number of marked words.
    pub marks: usize,
}

/// Limits of indexed and ranked text.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of headings of a body.
    pub headings: usize,
    /// Maximum number of characters of a body.
    pub body_chars: usize,
    /// Maximum number of word pieces of a text's vector.
    pub query_pieces: usize,
    /// Maximum number of word pieces of a skill for the presence matcher.
    pub document_pieces: usize,
    /// Maximum number of listed excluded skills.
    pub excluded: usize,
}

/// All constants of the router.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Fields of BM25F.
    pub fields: Fields,
    /// k of tf/(k + tf).
    pub saturation: f64,
    /// g of a stop word.
    pub stop_word_weight: f64,
    /// Limits of the influence of stop words.
    pub stop_words_limit: StopWordLimits,
    /// The number of words from which a request counts as long.
    pub long_requests: LongRequests,
    /// Stop words that are ignored because they are too common.
    pub common_stop_words: CommonStopWords,
    /// Factor of the thresholds if request and skill share a language that the embedding does not cover.
    pub unread_language: f64,
    /// Share of the mean vector that is subtracted, 0 to 1.
    pub centring: f64,
    /// Weights of the terms of z.
    pub profiles: Profiles,
    /// Minimum centered cosine that makes a skill a candidate by itself.
    pub cosine_floor: f64,
    /// Exact matches.
    pub exact: Exact,
    /// Rule terms.
    pub rules: Rules,
    /// First words of read-only requests.
    #[serde(deserialize_with = "word_set")]
    pub read_only_words: HashSet<String>,
    /// Typo correction.
    pub typo: Typo,
    /// Completion of unfinished words.
    pub completion: Completion,
    /// The semantic matcher.
    pub semantic: Semantic,
    /// Limits of indexed and ranked text.
    pub limits: Limits,
    /// Stop words as written (lower case, with apostrophes).
    #[serde(deserialize_with = "word_set")]
    pub stop_words: HashSet<String>,
    /// Verbs, request openings, exclusions and function words; loaded from a separate file.
    #[serde(skip)]
    pub phrases: Phrases,
}

fn word_set<'de, D: serde::Deserializer<'de>>(d: D) -> Result<HashSet<String>, D::Error> {
    Ok(String::deserialize(d)?.split_whitespace().map(str::to_owned).collect())
}

impl Weights {
    /// Returns the weights with generous time limits, for measurements that must not depend on the load of the
    /// machine.
    #[must_use]
    pub fn with_generous_time_limits(mut self) -> Self {
        const MINUTE_MS: u64 = 60_000;
        self.typo.budget_ms = MINUTE_MS;
        self.semantic.budget_ms = MINUTE_MS;
        self
    }

    /// Returns the embedded weights.
    ///
    /// # Errors
    /// Never fails with the shipped file, which a test parses.
    pub fn shipped() -> Result<Self, WeightsError> {
        Self::parse(SHIPPED)
    }

    /// Parses a weights file.
    ///
    /// # Errors
    /// Returns an error if the file does not have the expected form, or a number is out of range.
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
                c.fit_threshold <= c.medium_threshold && c.medium_threshold <= c.high_threshold,
                "profiles.*.confidence.sure_from",
                c.medium_threshold,
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
    fn shipped_file_is_valid() {
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
