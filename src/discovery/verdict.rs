//! The verdict about the first result: compares its score with thresholds that grow with the collection, and handles
//! the cases in which the score is misleading: stop words, other languages, corrected words.

use std::collections::BTreeSet;

use super::answer::{Confidence, Fit, FitVerdict, Margin, RequestLanguage, TermKind, VerdictReason};
use super::confidence::confidence;
use super::index::Entry;
use super::language::Language;
use super::lookup::View;
use super::marks::Exclusion;
use super::matcher::{Row, ScoreTerm};
use super::ranking::{QueryContext, rule_terms, strict};
use super::reading::Reading;
use super::segment::Key;
use super::sorting::{Ranked, is_attachable, is_searched};
use super::tokenize::{fold_accents, is_unspaced};
use super::weights::Fitted;
use skills_skill::SkillId;

/// Minimum share of a request's content words that the first result must contain if the request is in another
/// language.
const SHARED_WORDS: f64 = 0.5;

/// The same share for a request that has function words of both languages.
const SHARED_WORDS_MIXED: f64 = 0.33;

/// The share of them from which pairs of characters, which match by chance, are more than weak evidence.
const SHARED_CHARACTERS: f64 = 0.8;

/// Maximum share of the skills whose name, description or tags contain a term, as `1 / TERM_SKILLS`.
const TERM_SKILLS: usize = 20;

/// Share of the thresholds that a request in another language has to reach if the first result contains a term of it:
/// its other words, which no skill contains, lower the score. About the threshold that keeps 98 % of the requests.
const TERM_SHARE: f64 = 0.8;

/// Returns whether a word has no meaning by itself: a short number, a year, a version, or a small letter.
fn is_weak(reading: &Reading, at: usize) -> bool {
    let text = &*reading.words[at].word.text;
    let is_letter = |text: &str| text.chars().count() == 1 && text.chars().all(char::is_lowercase);
    let is_number = |text: &str| text.chars().all(char::is_numeric);
    let is_year = text.len() == 4 && ["19", "20"].iter().any(|century| text.starts_with(century));
    is_letter(reading.as_typed(at))
        || (is_number(text) && (text.len() < 3 || is_year))
        || text.strip_prefix('v').is_some_and(is_number)
}

/// Returns whether a word is a stop word, and not one that may have been meant.
fn is_stop_word(reading: &Reading, at: usize) -> bool {
    reading.words[at].word.is_stop_word && !reading.words[at].is_doubtful
}

/// Returns whether a word is the first with its stem about the subject of the request, or one that may be.
fn is_content(reading: &Reading, at: usize) -> bool {
    reading.words[at].is_doubtful || (reading.row(at) == at && reading.is_evidence(at))
}

/// Content words of a request, as words; a character of a script without spaces counts as half a word.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    /// Number of words, and of characters of scripts without spaces.
    words: usize,
    halves: usize,
}

impl Extent {
    fn of(reading: &Reading, words: impl Iterator<Item = usize>) -> Self {
        let mut out = Self::default();
        let mut characters = BTreeSet::new();
        for at in words {
            let word = &reading.words[at].word;
            if word.text.starts_with(is_unspaced) {
                let start = word.start as usize;
                characters.extend(word.text.char_indices().map(|(offset, _)| start + offset));
            } else {
                out.words += 1;
                out.halves += 2;
            }
        }
        out.words += characters.len();
        out.halves += characters.len();
        out
    }
}

/// Evidence for the first result in its score terms.
struct Evidence {
    /// Sum without rules, stop words and general wording.
    content: f64,
    /// Sum of the terms of stop words.
    stop_words: f64,
    /// Sum of the terms of words that were read as others, and of parts of names that the skill does not contain.
    corrected: f64,
    /// Sum of the preferences of the policy.
    preferred: f64,
    /// Whether the request names the skill, or is one of its tags.
    exact: bool,
    /// Whether it is one of its tags only, which says little about what is wanted.
    is_tag: bool,
    /// Words of the request that occur in name, description or tags.
    matched: BTreeSet<usize>,
    /// Extent of those that occur as written in the request, except function words of another language.
    matched_as_written: Extent,
    /// Number of those that are not in a script without spaces, whose pairs of characters match by chance.
    matched_spaced: usize,
    /// Whether one of them is a term: an English word that few skills contain, in a request in another language.
    has_term: bool,
    /// Words of the request that occur anywhere in the skill.
    found: BTreeSet<usize>,
    /// Whether at least half of them were read as others.
    is_mostly_corrected: bool,
    /// Whether all content words that occur in the skill have no meaning by themselves, and none is in its name or
    /// tags.
    is_weak: bool,
}

impl Evidence {
    fn new(query: &QueryContext<'_>, terms: &[ScoreTerm]) -> Self {
        let reading = query.reading;
        let content = |a: &&ScoreTerm| match a.row {
            Row::Word(at) => reading.is_evidence(at),
            Row::Pair(..) | Row::Exact => true,
            Row::General | Row::Rules | Row::Policy => false,
        };
        let stop_word = |a: &&ScoreTerm| matches!(a.row, Row::Word(at) if !reading.is_evidence(at));
        let matched_word = |a: &ScoreTerm| match a.row {
            Row::Word(at) if a.kind == TermKind::Term && reading.is_evidence(at) => {
                matches!(a.field, Some("name" | "description" | "tags")).then_some(at)
            }
            _ => None,
        };
        let is_own = |at: usize| {
            let text = &reading.words[at].word.text;
            let foreign = reading.language.is_some_and(|l| l.has_function_word(text, &query.router.lexicon));
            !reading.is_corrected(at) && !foreign
        };
        let anywhere = |a: &ScoreTerm| match a.row {
            Row::Word(at) if a.kind == TermKind::Term && reading.is_evidence(at) => Some(at),
            _ => None,
        };
        let found: BTreeSet<usize> = terms.iter().filter_map(anywhere).collect();
        let is_label = |a: &ScoreTerm| matches!(a.field, Some("name" | "tags")) && anywhere(a).is_some();
        // A part of a name that the skill does not contain (`desk` of `AnyDesk`) is an interpretation like a correction.
        let is_interpreted =
            |at: usize| reading.is_corrected(at) || reading.is_lone_part(at, |part| found.contains(&part));
        let corrected = |a: &&ScoreTerm| match a.row {
            Row::Word(at) => is_interpreted(at),
            Row::Pair(a, b) => is_interpreted(a) || is_interpreted(b),
            _ => false,
        };
        let found_corrected = found.iter().filter(|at| is_interpreted(**at)).count();
        let index = query.cx.index;
        let is_rare = |at: usize| {
            let documents = query.stems[at].iter().map(|stem| index.frequency(Key::stem(*stem), View::Short));
            documents.sum::<usize>() <= (index.len() / TERM_SKILLS).max(1)
        };
        let is_english = |at: usize| {
            let is_latin = matches!(reading.language, Some(Language::Listed(_) | Language::Undetermined));
            !is_latin || query.cx.in_embedding(&reading.words[at].word.text)
        };
        let is_term = |at: &usize| {
            let is_spaced = !reading.words[*at].word.text.starts_with(is_unspaced);
            is_spaced && is_own(*at) && !is_weak(reading, *at) && is_english(*at) && is_rare(*at)
        };
        let sum = |of: &dyn Fn(&&ScoreTerm) -> bool| terms.iter().filter(of).map(|a| a.value).sum();
        let matched: BTreeSet<usize> = terms.iter().filter_map(matched_word).collect();
        Self {
            content: sum(&content),
            stop_words: sum(&stop_word),
            corrected: sum(&corrected),
            preferred: preferred(terms),
            exact: terms.iter().any(|a| a.kind == TermKind::Exact),
            is_tag: terms.iter().any(|a| a.kind == TermKind::Exact && a.field.is_some()),
            matched_as_written: Extent::of(reading, matched.iter().copied().filter(|at| is_own(*at))),
            matched_spaced: matched.iter().filter(|at| is_own(**at) && !reading.is_pair(**at)).count(),
            has_term: reading.language.is_some() && matched.iter().any(is_term),
            is_mostly_corrected: found_corrected > 0 && 2 * found_corrected >= found.len(),
            matched,
            is_weak: !found.is_empty()
                && found.iter().all(|at| is_weak(reading, *at))
                && !terms.iter().any(is_label),
            found,
        }
    }
}

impl Evidence {
    /// Returns whether words of the request occur in the skill, but in none of its name, description and tags.
    fn is_in_body_only(&self) -> bool {
        self.matched.is_empty() && !self.found.is_empty()
    }

    /// Returns whether name, description or tags contain one of the parts of a word.
    fn is_matched(&self, parts: &[usize]) -> bool {
        parts.iter().any(|at| self.matched.contains(at))
    }
}

/// Returns the sum of the preferences of the policy.
fn preferred(terms: &[ScoreTerm]) -> f64 {
    terms.iter().filter(|a| a.row == Row::Policy).map(|a| a.value).sum()
}

/// The languages of a request and of the skills; `None` for English.
type LanguagePair = (Option<Language>, Option<Language>);

/// The language of a request if it may not be that of the skills.
struct ForeignLanguage {
    /// The detected language, unless most skills may be in it.
    detected: Option<Language>,
    /// The languages of the request and of most skills, if they may be the reason why nothing fits.
    mismatch: Option<LanguagePair>,
}

fn foreign_language(query: &QueryContext<'_>, content: &[usize]) -> ForeignLanguage {
    let reading = query.reading;
    // A request in the language of most skills is not in a foreign language.
    let own = query.cx.index.language();
    let detected = reading.language.filter(|language| match own {
        Some(_) if *language == Language::Undetermined => false,
        own => !own.is_some_and(|own| language.may_be(own)),
    });
    // The language as the reason why nothing fits: it is enough that most skills are in another one.
    let is_english = reading.language.is_none() && is_english(query, content);
    let request = detected.map(Some).or(is_english.then_some(None));
    let mismatch = request.filter(|request| query.cx.index.is_foreign(*request));
    ForeignLanguage { detected, mismatch: mismatch.map(|request| (request, own)) }
}

/// How the language and the words of a request match the first result.
struct LanguageMatch {
    /// Whether the first result is in the language of the request, which the embedding does not cover.
    is_same_language: bool,
    /// Whether it is, and shares enough words with the request.
    matches_in_same_language: bool,
    /// Whether it shares enough words with the request, in whichever language.
    shares_words: bool,
    /// Whether the request is in a different language than the first result.
    is_foreign: bool,
    /// Whether it is, and the first result contains a term of the request.
    has_term: bool,
    /// Whether only pairs of characters match, which find a few skills of the same language among others by chance.
    is_by_pairs: bool,
}

impl LanguageMatch {
    fn new(
        query: &QueryContext<'_>,
        content: &[usize],
        detected: Option<Language>,
        skill: Option<Language>,
        evidence: &Evidence,
    ) -> Self {
        let reading = query.reading;
        // As typed: German `im` may have been read as `i'm`.
        let is_function_word = |at: usize| {
            let text = reading.as_typed(at).to_lowercase();
            detected.is_some_and(|language| language.has_function_word(&text, &query.router.lexicon))
        };
        let is_english_stop_word =
            |at: usize| is_stop_word(reading, at) && !reading.words[at].word.text.starts_with(is_unspaced);
        let is_mixed = (0..reading.words.len()).any(|at| is_english_stop_word(at) && !is_function_word(at));
        let share = if is_mixed { SHARED_WORDS_MIXED } else { SHARED_WORDS };
        let shares = |matched: usize, of: usize| matched > 1 && matched as f64 >= share * of as f64;
        let own_words = Extent::of(reading, content.iter().copied().filter(|at| !is_function_word(*at)));
        let matched = evidence.matched_as_written;
        let shares_words = matched.words > 1 && shares(matched.halves, own_words.halves);
        // Next to words with spaces, a run of characters without them counts as one word.
        let runs = content.iter().filter(|at| !reading.continues_run(**at)).count();
        let function_words = content.iter().filter(|at| is_function_word(**at)).count();
        let shares_spaced = shares(evidence.matched_spaced, runs.saturating_sub(function_words));
        let is_same_language = match (reading.language, skill) {
            (Some(Language::Undetermined), Some(Language::Listed(_))) => true,
            (Some(request), Some(skill)) => request.may_be(skill),
            _ => false,
        };
        let matches_in_same_language = is_same_language && shares_words;
        let is_foreign = detected.is_some() && !is_same_language;
        Self {
            is_same_language,
            matches_in_same_language,
            shares_words: shares_words || shares_spaced,
            is_foreign,
            has_term: is_foreign && evidence.has_term,
            is_by_pairs: matches_in_same_language
                && detected.is_some()
                && (matched.halves as f64) < SHARED_CHARACTERS * own_words.halves as f64,
        }
    }
}

/// Returns whether the description states that the skill is not for what is requested.
fn is_excluded(query: &QueryContext<'_>, content: &[usize], evidence: &Evidence, entry: &Entry) -> bool {
    let excludes = |exclusion: &Exclusion, at: &usize| {
        query.stems[*at].iter().any(|stem| exclusion.stems.contains(stem))
    };
    // The rarest word, which states most about the request, is only in such a clause.
    let documents = |at: &usize| {
        let stems = query.stems[*at].iter();
        stems.map(|stem| query.cx.index.frequency(Key::stem(*stem), View::Short)).sum::<usize>()
    };
    let rarest = evidence.matched.iter().map(documents).min();
    let is_decisive = |at: &usize| {
        !evidence.matched.contains(at)
            && rarest.is_some_and(|rarest| documents(at) <= rarest)
            && entry.exclusions.iter().any(|clause| excludes(clause, at))
    };
    let mut clauses = entry.exclusions.iter();
    !content.is_empty()
        && (clauses.any(|clause| content.iter().all(|at| excludes(clause, at)))
            || content.iter().any(is_decisive))
}

/// Returns whether so few words match that they may do so by chance, which requires a higher score: a single word of
/// several, or one of a body alone. A pair of characters of a script without spaces is not one word of several.
fn is_matched_by_chance(reading: &Reading, content: &[usize], evidence: &Evidence) -> bool {
    let written = reading.written_words(content).count();
    let matched = reading.written_words(content).filter(|parts| evidence.is_matched(parts)).count();
    matched < written.min(2)
}

/// Returns whether the skill contains a part of an identifier of the request, but not its number: another vulnerability
/// of the same year is not `CVE-2021-44228`.
fn is_other_identifier(reading: &Reading, content: &[usize], evidence: &Evidence) -> bool {
    let is_missing_number = |at: &usize| {
        let text = &reading.words[*at].word.text;
        text.len() > 2 && text.bytes().all(|b| b.is_ascii_digit()) && !evidence.found.contains(at)
    };
    let mut words = reading.written_words(content);
    words.any(|parts| evidence.is_matched(parts) && parts.iter().any(is_missing_number))
}

/// Returns the verdict about the first of the ranked candidates, with the thresholds used; `is_known` returns whether a
/// word is known.
pub(crate) fn verdict(
    query: &QueryContext<'_>,
    ranked: &[(Ranked, Vec<ScoreTerm>)],
    is_known: impl Fn(usize) -> bool,
) -> (FitVerdict, Option<Confidence>) {
    let reading = query.reading;
    let content: Vec<usize> = (0..reading.words.len()).filter(|at| is_content(reading, *at)).collect();
    let ForeignLanguage { detected, mismatch } = foreign_language(query, &content);
    let is_nothing_known = !content.iter().any(|at| is_known(*at));
    let Some((first, terms)) = ranked.first() else {
        let reason = match mismatch {
            Some(_) => VerdictReason::Language,
            None if content.is_empty() => VerdictReason::StopWords,
            None => VerdictReason::NothingKnown,
        };
        return (with_sentence(query, None, Fit::None, reason, mismatch, None, false), None);
    };
    let entry = query.cx.index.entry(first.slot);
    let skill_language = entry.and_then(|entry| entry.language);
    let evidence = Evidence::new(query, terms);
    let language = LanguageMatch::new(query, &content, detected, skill_language, &evidence);
    let is_by_chance = !evidence.exact
        && !language.matches_in_same_language
        && !language.has_term
        && is_matched_by_chance(reading, &content, &evidence);
    let rule_terms = rule_terms(query.request, query.cx.weights);
    let base = rule_terms + if is_by_chance { query.cx.profile.single_word } else { 0.0 };
    // A preference of the policy changes the order, not whether a skill fits.
    let base = base + evidence.preferred;
    let mut fitted = query.cx.profile.confidence.at(query.cx.index.ranked());
    if language.matches_in_same_language {
        fitted = fitted.scaled(query.cx.weights.unread_language);
    } else if language.has_term {
        fitted = fitted.scaled(TERM_SHARE);
    }
    let margin = ranked.get(1).map_or(f64::INFINITY, |(second, terms)| {
        (first.score - evidence.preferred) - (second.score - preferred(terms))
    });
    let mut confidence_of_first = confidence(&fitted, first.score, margin, base);
    let assessment = Assessment {
        query,
        content: &content,
        score: first.score,
        fit_as_written: confidence(&fitted, first.score - evidence.corrected, margin, base).fit,
        confidence: confidence_of_first,
        fitted: &fitted,
        is_excluded: entry.is_some_and(|entry| is_excluded(query, &content, &evidence, entry)),
        evidence: &evidence,
        language: &language,
        is_mismatch: mismatch.is_some(),
        is_nothing_known,
    };
    let (fit, reason) = assessment.fit_and_reason(is_known);
    if fit == Fit::None {
        // At most the confidence at the threshold.
        confidence_of_first.p_fit = confidence_of_first.p_fit.min(fitted.p_fit(fitted.fit_threshold));
    }
    confidence_of_first.fit = fit;
    // If no language is that of most skills, the first result is in a different one than the request.
    let languages = match (fit, mismatch) {
        _ if evidence.exact => None,
        (Fit::None, Some(languages)) => Some(languages),
        (Fit::None, None) if reason != VerdictReason::Language => None,
        _ => detected.filter(|_| language.is_foreign).map(|request| (Some(request), skill_language)),
    };
    let skill = entry.map(|entry| entry.document.id.clone());
    let second = close_second(query, ranked, confidence_of_first.lead);
    let verdict = with_sentence(query, skill, fit, reason, languages, second, evidence.is_weak);
    (verdict, Some(confidence_of_first))
}

/// What the verdict about the first result depends on.
struct Assessment<'q, 'a> {
    query: &'q QueryContext<'a>,
    content: &'q [usize],
    score: f64,
    evidence: &'q Evidence,
    language: &'q LanguageMatch,
    fitted: &'q Fitted,
    confidence: Confidence,
    /// The fit without the terms of corrected words.
    fit_as_written: Fit,
    /// Whether the languages may be the reason why nothing fits.
    is_mismatch: bool,
    is_nothing_known: bool,
    is_excluded: bool,
}

impl Assessment<'_, '_> {
    /// Returns the fit and its reason, by the first rule that applies.
    fn fit_and_reason(&self, is_known: impl Fn(usize) -> bool) -> (Fit, VerdictReason) {
        let Self { query, content, evidence, language, fitted, .. } = *self;
        let fit = self.confidence.fit;
        if evidence.exact && fit == Fit::None {
            (Fit::None, VerdictReason::BelowThreshold)
        } else if evidence.is_tag {
            (Fit::Low, VerdictReason::Fits)
        } else if evidence.exact {
            (fit, VerdictReason::Fits)
        } else if (language.is_foreign && fit != Fit::None && !(language.shares_words || language.has_term))
            || (self.is_mismatch && (fit == Fit::None || self.is_nothing_known))
        {
            (Fit::None, VerdictReason::Language)
        } else if !content.is_empty() && self.is_nothing_known {
            (Fit::None, VerdictReason::NothingKnown)
        } else if content.is_empty() {
            (Fit::None, VerdictReason::StopWords)
        } else if fit == Fit::None {
            (Fit::None, VerdictReason::BelowThreshold)
        } else if evidence.is_weak
            || evidence.content < query.cx.weights.stop_words_limit.content_share * fitted.fit_threshold
        {
            (Fit::None, VerdictReason::StopWords)
        } else if self.fit_as_written == Fit::None || evidence.is_mostly_corrected || language.is_foreign {
            (Fit::Low, VerdictReason::FitsByReading)
        } else if self.is_uncertain(is_known) {
            (Fit::Low, VerdictReason::Fits)
        } else if self.confidence.lead == Margin::Ambiguous {
            // Another skill fits almost as well: of the fits with a high score, about two thirds are right, compared
            // with nine of ten with a clear lead.
            (self.fit_as_written.min(Fit::Medium), VerdictReason::Fits)
        } else {
            (self.fit_as_written, VerdictReason::Fits)
        }
    }

    /// Returns whether the fit has low confidence, whatever its score.
    fn is_uncertain(&self, is_known: impl Fn(usize) -> bool) -> bool {
        let Self { query, content, evidence, language, fitted, .. } = *self;
        if language.is_by_pairs || self.is_excluded || self.score - evidence.stop_words < fitted.fit_threshold
        {
            return true;
        }
        // The embedding does not cover the language, and few of the words are shared; or the skill uses the words
        // without stating that it is about them.
        !language.matches_in_same_language
            && (is_other_identifier(query.reading, content, evidence)
                || language.is_same_language
                || evidence.is_in_body_only()
                || may_be_foreign(query, content, evidence, is_known))
    }
}

/// Returns the second result if it fits almost as well as the first.
fn close_second(
    query: &QueryContext<'_>,
    ranked: &[(Ranked, Vec<ScoreTerm>)],
    lead: Margin,
) -> Option<SkillId> {
    let (second, _) = ranked.get(1).filter(|_| lead == Margin::Ambiguous)?;
    query.cx.index.entry(second.slot).map(|entry| entry.document.id.clone())
}

/// Returns whether a request in which no other language was detected is English: it has an English stop word, or the
/// embedding, which reads English only, has all of its content words.
fn is_english(query: &QueryContext<'_>, content: &[usize]) -> bool {
    let reading = query.reading;
    let is_latin = |at: usize| reading.as_typed(at).is_ascii();
    let has_stop_word = (0..reading.words.len()).any(|at| is_stop_word(reading, at) && is_latin(at));
    let is_english_word = |at: &usize| is_latin(*at) && query.cx.in_embedding(&reading.words[*at].word.text);
    !content.is_empty() && (has_stop_word || content.iter().all(is_english_word))
}

/// Returns whether a request may be in another language although none was detected: it has no English stop word, but
/// an unknown word in lower case, an accented word that the first result does not contain, or a function word of
/// another language.
fn may_be_foreign(
    query: &QueryContext<'_>,
    content: &[usize],
    evidence: &Evidence,
    is_known: impl Fn(usize) -> bool,
) -> bool {
    /// Fewest letters of an unknown word, which may be an abbreviation otherwise.
    const LETTERS: usize = 4;
    let reading = query.reading;
    let lexicon = &query.router.lexicon;
    let is_foreign = |at: usize| {
        let (read, written) = (&reading.words[at], reading.as_typed(at));
        if read.is_proper_name || (evidence.found.contains(&at) && !reading.is_corrected(at)) {
            return false;
        }
        let is_lower = written.chars().all(char::is_lowercase);
        let is_unknown = !reading.is_corrected(at) && !is_known(at);
        let lower = written.to_lowercase();
        let is_accented = fold_accents(&lower) != lower && (is_lower || is_unknown);
        is_accented || (is_unknown && is_lower && written.chars().nth(LETTERS - 1).is_some())
    };
    let is_function_word = |at: usize| {
        let text = &reading.words[at].word.text;
        reading.as_typed(at).chars().all(char::is_lowercase)
            && lexicon.function_words.contains_key(text)
            && !lexicon.english_words.contains(text)
    };
    !(0..reading.words.len()).any(|at| is_stop_word(reading, at))
        && content.iter().any(|at| is_foreign(*at) || is_function_word(*at))
}

/// Completes the verdict with its sentence; `languages` are those of the request and of the skills if they differ.
fn with_sentence(
    query: &QueryContext<'_>,
    skill_id: Option<SkillId>,
    fit: Fit,
    reason: VerdictReason,
    languages: Option<LanguagePair>,
    close_second: Option<SkillId>,
    is_weak: bool,
) -> FitVerdict {
    let name = |language: Option<Language>| match language {
        Some(language) => language.name(&query.router.lexicon),
        None => ("en".to_owned(), "English".to_owned()),
    };
    let request = languages.map(|(request, _)| name(request));
    let skills = name(languages.and_then(|(_, skills)| skills));
    let is_certain = languages.is_none_or(|(request, _)| is_certain(query, request));
    let whose = if query.cx.index.is_in_one_language() {
        "the skills are"
    } else if languages.is_some_and(|(request, _)| query.cx.index.is_foreign(request)) {
        "most skills are"
    } else {
        "the first result is"
    };
    let mut words = 0..query.reading.words.len();
    let has_content = words.any(|at| is_content(query.reading, at));
    let id = skill_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut sentence = match (fit, reason) {
        (Fit::High, _) => format!("{id} fits, confidence high"),
        (Fit::Medium, _) => format!("{id} fits, confidence medium"),
        (Fit::Low, _) => format!("{id} may fit, confidence low"),
        (Fit::None, VerdictReason::StopWords) if query.reading.words.is_empty() => {
            "no skill fits: the request contains no words".to_owned()
        }
        (Fit::None, VerdictReason::StopWords) if is_weak => {
            "no skill fits: only stop words, numbers or single letters match".to_owned()
        }
        (Fit::None, VerdictReason::StopWords) if has_content => {
            "no skill fits: only stop words match".to_owned()
        }
        (Fit::None, VerdictReason::StopWords) => {
            "no skill fits: the request contains only stop words".to_owned()
        }
        (Fit::None, VerdictReason::NothingKnown) if query.cx.index.len() == 0 => {
            "no skill fits: there are no skills".to_owned()
        }
        (Fit::None, VerdictReason::NothingKnown) if has_excluded_word(query) => {
            "no skill fits: of the searched skills, only exclusion clauses contain words of the request"
                .to_owned()
        }
        (Fit::None, VerdictReason::NothingKnown) if has_sidecar_word(query) => {
            "no skill fits: of the searched skills, only sidecars contain words of the request, and they are not ranked"
                .to_owned()
        }
        (Fit::None, VerdictReason::NothingKnown) if query.cx.view == View::Short => {
            "no skill fits: none of the searched skills contains any word of the request in its name, description \
                or tags"
                .to_owned()
        }
        (Fit::None, VerdictReason::NothingKnown) => {
            "no skill fits: none of the searched skills contains any word of the request".to_owned()
        }
        (Fit::None, VerdictReason::Language) => format!(
            "no skill fits: the request {} in {}; {whose} in {}",
            if is_certain { "is" } else { "may be" },
            request.as_ref().map_or("another language", |(_, name)| name.as_str()),
            skills.1
        ),
        (Fit::None, _) => "no skill fits".to_owned(),
    };
    if let Some(second) = close_second.filter(|_| fit != Fit::None) {
        sentence += &format!(" (close second: {second})");
    }
    if fit != Fit::None && strict(query.request) {
        sentence += "; ranked first by the rules of the strict policy";
    }
    let language = request.map(|(request, _)| RequestLanguage { request, skills: skills.0 });
    FitVerdict { skill_id, fit, reason, language, sentence }
}

/// Returns whether an exclusion clause of a searched skill contains a content word of the request.
fn has_excluded_word(query: &QueryContext<'_>) -> bool {
    let (reading, index) = (query.reading, query.cx.index);
    let words = (0..reading.words.len()).filter(|at| reading.is_evidence(*at));
    let stems: Vec<_> = words.filter_map(|at| index.vocabulary.find(&reading.words[at].word.stem)).collect();
    let mut searched = index.entries().filter(|(slot, _)| is_searched(query, *slot));
    searched.any(|(_, entry)| {
        entry.exclusions.iter().any(|clause| stems.iter().any(|stem| clause.stems.contains(stem)))
    })
}

/// Returns whether a sidecar that can be attached contains a content word of the request.
fn has_sidecar_word(query: &QueryContext<'_>) -> bool {
    let words = (0..query.reading.words.len()).filter(|at| query.reading.is_evidence(*at));
    let mut found = words.flat_map(|at| &query.stems[at]).filter_map(|stem| query.cx.stem(*stem));
    found.any(|postings| {
        let mut is_of_sidecar = false;
        postings.each(|slot, _| is_of_sidecar |= is_attachable(query, slot));
        is_of_sidecar
    })
}

/// Returns whether the language of a request is certain: it has a script of its own, or more function words than the
/// words in the request that skills have, which may be English words beside a name (`de bruijn graph`).
fn is_certain(query: &QueryContext<'_>, language: Option<Language>) -> bool {
    let reading = query.reading;
    let Some(language) = language else {
        return (0..reading.words.len()).any(|at| is_stop_word(reading, at));
    };
    let words = || (0..reading.words.len()).filter(|at| !reading.words[*at].word.is_stop_word);
    let lexicon = &query.router.lexicon;
    let is_function_word = |at: usize| {
        let text = &reading.words[at].word.text;
        language.has_function_word(text, lexicon) && !lexicon.english_words.contains(text)
    };
    let is_own = |at: usize| {
        let word = &reading.words[at].word;
        reading.as_typed(at).is_ascii() && !is_function_word(at) && query.cx.documents(&word.stem) > 0
    };
    !matches!(language, Language::Listed(_) | Language::Undetermined)
        || words().filter(|at| is_function_word(*at)).count() > words().filter(|at| is_own(*at)).count()
}

#[cfg(test)]
mod tests {
    use super::super::adjust::{Adjustment, Adjustments};
    use super::super::answer::Answer;
    use super::super::document::Document;
    use super::super::request::Request;
    use super::super::router::Router;
    use super::super::weights::Weights;
    use super::*;
    use skills_skill::{IndexText, Role};

    fn router(skills: &[(&str, &str)]) -> Router {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let skills = skills.iter().map(|(name, text)| Document::new(*name, *name, *text));
        let others = [
            "Writes short mails to colleagues.",
            "Extracts tables from PDF files into spreadsheets.",
            "Converts and sorts columns of a CSV table.",
            "Plans a trip with trains and hotels.",
            "Checks pages against WCAG.",
            "Draws a chart of sales data.",
        ];
        let others =
            others.iter().enumerate().map(|(n, text)| Document::new(format!("s{n}"), format!("s{n}"), *text));
        router.update(skills.chain(others).collect(), &[]);
        router
    }

    fn request(intent: &str) -> Request {
        Request { intent: intent.to_owned(), ..Request::default() }
    }

    fn ask(router: &Router, intent: &str) -> Answer {
        router.discover(&request(intent)).unwrap()
    }

    #[test]
    fn verdict_states_that_the_catalog_is_empty() {
        let router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let verdict = ask(&router, "write a bill for customers").verdict;
        assert_eq!(verdict.sentence, "no skill fits: there are no skills");
    }

    #[test]
    fn accented_words_match_their_plain_forms() {
        let router = router(&[
            ("resume", "Reviews and updates a resume before an application."),
            ("cafe-site", "Builds the website of a café with its menu."),
            ("patterns", "Explains a design pattern: facade, proxy, builder."),
        ]);
        for (intent, expected) in [
            ("update my résumé", "resume"),
            ("review my resume\u{301}", "resume"),
            ("cafe website", "cafe-site"),
            ("café website", "cafe-site"),
            ("façade pattern", "patterns"),
        ] {
            let answer = ask(&router, intent);
            assert_eq!(answer.results[0].skill_id.as_str(), expected, "{intent}");
            assert_ne!(answer.fit, Fit::None, "{intent}: {}", answer.verdict.sentence);
        }
        let [unaccented, accented] =
            ["update my resume", "update my résumé"].map(|intent| ask(&router, intent));
        assert!((unaccented.results[0].score - accented.results[0].score).abs() < 1e-9);
    }

    #[test]
    fn accents_do_not_make_a_request_foreign() {
        let router = router(&[]);
        for intent in [
            "create résumé",
            "résumé",
            "jalapeño recipe",
            "Pokémon game",
            "naïve pages",
            "vis-à-vis comparison",
            "El Niño weather analysis",
            "über cool design",
            "I am in die hard mode",
            "e.g. i.e. etc.",
        ] {
            let verdict = ask(&router, intent).verdict;
            assert_ne!(verdict.reason, VerdictReason::Language, "{intent}: {}", verdict.sentence);
        }
        let verdict = ask(&router, "Übersetzung Geschäftsbericht").verdict;
        assert!(verdict.sentence.contains("may be in another language"), "{}", verdict.sentence);
    }

    #[test]
    fn preferences_change_neither_fit_nor_confidence() {
        let router = router(&[("tables", "Formats the tables of a report and its data.")]);
        let mut changed = 0;
        for intent in
            ["report with data", "something with tables", "sales figures of a table", "tables of a report"]
        {
            let before_preference = ask(&router, intent);
            let skill = before_preference.results[0].skill_id.clone();
            let preferred = Adjustment { terms: vec![("prefer".to_owned(), 0.5)], ..Adjustment::default() };
            let adjustments: Adjustments = [(skill, preferred)].into_iter().collect();
            let answer = router.discover_adjusted(&request(intent), &adjustments).unwrap();
            let (before, after) = (before_preference.confidence.unwrap(), answer.confidence.unwrap());
            changed += usize::from(answer.results[0].score > before_preference.results[0].score + 0.4);
            assert_eq!((before.fit, before.lead), (after.fit, after.lead), "{intent}");
            assert!((before.p_fit - after.p_fit).abs() < 1e-9, "{intent}");
            assert_eq!(
                answer.results[0].score >= after.fit_threshold,
                before_preference.results[0].score >= before.fit_threshold
            );
        }
        assert_eq!(changed, 4);
    }

    #[test]
    fn fit_by_mostly_corrected_words_is_low() {
        let router = router(&[("commit", "Writes a commit message for git and checks the commit.")]);
        assert_eq!(ask(&router, "git commit message").fit, Fit::High);
        let answer = ask(&router, "gti commit");
        assert!(answer.words[0].correction.is_some());
        assert_eq!((answer.fit, answer.verdict.reason), (Fit::Low, VerdictReason::FitsByReading));
    }

    #[test]
    fn fit_by_words_of_the_body_alone_is_low() {
        let mut router = router(&[]);
        let with_body = |n: usize| {
            let body = if n == 0 {
                "Grade final exam essays, rubric plagiarism reports, anonymous student records, teacher feedback letters."
            } else {
                "Follow these steps."
            };
            let body = IndexText { headings: Vec::new(), body: body.to_owned() };
            let (name, text) = (format!("tutor-{n}"), format!("Teaches subject {n} with quizzes."));
            Document { text: Some(body), ..Document::new(name.clone(), name, text) }
        };
        router.update((0..400).map(with_body).collect(), &[]);
        let answer = ask(
            &router,
            "grade final exam essays, rubric plagiarism reports, anonymous student records, teacher feedback letters",
        );
        assert_eq!(answer.results[0].skill_id.as_str(), "tutor-0");
        assert!(
            answer.results[0].reason.starts_with("only its body contains"),
            "{}",
            answer.results[0].reason
        );
        assert_eq!(
            (answer.fit, answer.verdict.reason),
            (Fit::Low, VerdictReason::Fits),
            "{:?}",
            answer.confidence
        );
    }

    #[test]
    fn numbers_and_single_letters_alone_do_not_fit() {
        let router = router(&[
            ("changes", "Reads changes of version v1 from 2024 01 01, e g i e in a log."),
            ("tax-forms", "Fills in form 1099 and finds each 404 error. Makes a P&L report."),
            ("windows-11", "Sets up Windows 11."),
        ]);
        for intent in ["2024-01-01", "v1.0.0", "e.g. i.e.", "1 2 3 4"] {
            let answer = ask(&router, intent);
            assert_eq!(answer.fit, Fit::None, "{intent}: {}", answer.verdict.sentence);
        }
        let answer = ask(&router, "2024-01-01");
        assert_eq!(
            answer.verdict.sentence,
            "no skill fits: only stop words, numbers or single letters match"
        );
        for intent in ["set up windows 11", "1099", "404 error", "P&L"] {
            let answer = ask(&router, intent);
            assert_ne!(answer.fit, Fit::None, "{intent}: {}", answer.verdict.sentence);
        }
    }

    #[test]
    fn japanese_endings_do_not_fit() {
        let router =
            router(&[("nihongo", "表を作成してください。表の作成、データの整理などに使ってください。")]);
        for intent in ["ください", "教えてください", "歌を歌ってください"] {
            let answer = ask(&router, intent);
            assert_eq!(answer.fit, Fit::None, "{intent}: {}", answer.verdict.sentence);
        }
        let answer = ask(&router, "表の作成をお願いします");
        assert_eq!(answer.results[0].skill_id.as_str(), "nihongo");
        assert_ne!(answer.verdict.reason, VerdictReason::Language, "{}", answer.verdict.sentence);
    }

    #[test]
    fn a_tag_alone_gives_low_confidence() {
        let tagged = |n: usize| Document {
            tags: vec!["kubernetes".to_owned()],
            ..Document::new(format!("s{n}"), format!("pentest-{n}"), "Attacks kubernetes clusters.")
        };
        let others =
            (0..50).map(|n| Document::new(format!("o{n}"), format!("o{n}"), format!("Draws map {n}.")));
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update(others.chain([tagged(1), tagged(2)]).collect(), &[]);
        let answer = ask(&router, "kubernetes");
        assert_eq!((answer.fit, answer.verdict.reason), (Fit::Low, VerdictReason::Fits));
        assert!(answer.results[0].reason.contains("the request is its tag “kubernetes”"));
        assert_eq!(ask(&router, "Kubernetes!").fit, Fit::Low);
        assert_eq!(ask(&router, "pentest-1").fit, Fit::High);
        let named = ask(&router, "use the pentest-1 skill").results.swap_remove(0).reason;
        assert_eq!(named, "the request names “pentest-1”");
    }

    #[test]
    fn another_identifier_gives_low_confidence() {
        let skill = |n: usize| Document::new(format!("s{n}"), format!("s{n}"), format!("Draws map {n}."));
        let mut skills: Vec<Document> = (0..50).map(skill).collect();
        for (name, text) in [
            ("nopac-cve-2021-42278", "Exploits CVE-2021-42278."),
            ("meetings", "Summarize a meeting, summarize notes, summarize a call, summarize minutes."),
        ] {
            skills.push(Document::new(name, name, text));
        }
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update(skills, &[]);
        assert!(ask(&router, "CVE-2021-44228").fit < ask(&router, "CVE-2021-42278").fit);
        assert_eq!(ask(&router, &"summarize the meeting".replace('z', "s")).fit, Fit::High);
    }

    #[test]
    fn a_request_for_what_a_skill_excludes_has_low_confidence() {
        let text = "Migrates prompts to a newer Opus model. Does not migrate Haiku prompts.";
        let mut skills: Vec<Document> = (0..50)
            .map(|n| Document::new(format!("s{n}"), format!("s{n}"), format!("Draws map {n}.")))
            .collect();
        skills.push(Document::new("migration", "migration", text));
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update(skills, &[]);
        assert!(ask(&router, "migrate prompts to a newer Opus model").fit > Fit::Low);
        assert!(ask(&router, "migrate Haiku prompts").fit <= Fit::Low);
        let notes = self::router(&[("notes", "Writes meeting notes. Not for invoices.")]);
        let sentence = ask(&notes, "invoices").verdict.sentence;
        assert_eq!(
            sentence,
            "no skill fits: of the searched skills, only exclusion clauses contain words of the request"
        );
        let verdict = ask(&router, "Haiku").verdict;
        assert_ne!(verdict.reason, VerdictReason::NothingKnown, "{}", verdict.sentence);
    }

    #[test]
    fn the_verdict_names_where_words_of_the_request_are() {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let body = IndexText { headings: Vec::new(), body: "Uses a flibbertix.".to_owned() };
        router.update(
            vec![
                Document { role: Role::Sidecar, ..Document::new("watch", "watch", "Guards a qvexil.") },
                Document {
                    text: Some(body),
                    ..Document::new("charts", "charts", "Draws a chart of sales data.")
                },
            ],
            &[],
        );
        let sentence = |intent: &str, with_body: bool| {
            let answer = router.discover(&Request { with_body, ..request(intent) }).unwrap();
            assert_eq!(answer.verdict.reason, VerdictReason::NothingKnown, "{intent}");
            answer.verdict.sentence
        };
        assert!(sentence("qvexil", true).contains("only sidecars contain words of the request"));
        assert!(sentence("flibbertix", false).ends_with(" in its name, description or tags"));
        let answer = ask(&router, "flibbertix");
        assert_ne!(answer.verdict.reason, VerdictReason::NothingKnown, "{}", answer.verdict.sentence);
    }

    #[test]
    fn only_exclusion_clauses_of_searched_skills_count() {
        let skill = |name: &str, text: &str, domain: &str| Document {
            domain: Some(domain.to_owned()),
            ..Document::new(name, name, text)
        };
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let skills = [
            skill("notes", "Writes meeting notes. Not for invoices.", "office"),
            skill("trips", "Plans a trip with trains and hotels.", "travel"),
            skill("pages", "Checks pages against WCAG.", "web"),
            skill("tables", "Converts and sorts columns of a CSV table.", "data"),
            skill("intake", "Books invoices of suppliers.", "finance"),
        ];
        router.update(skills.into(), &[]);
        let answer = |domain: &str| {
            let domain = vec![domain.to_owned()];
            router.discover(&Request { domain, ..request("invoices") }).unwrap()
        };
        for (domain, has_clause) in [("office", true), ("travel", false)] {
            let answer = answer(domain);
            assert!(answer.results.is_empty(), "{domain}");
            assert_eq!(answer.excluded[0].skill_id.as_str(), "intake", "{domain}");
            let sentence = answer.verdict.sentence;
            assert_eq!(sentence.contains("exclusion clauses"), has_clause, "{domain}: {sentence}");
        }
    }

    #[test]
    fn a_request_whose_rarest_word_is_excluded_has_low_confidence() {
        let router = router(&[
            ("contracts", "Reviews a contract for risks and deadlines. Not for employment contracts."),
            ("hetong", "审查合同条款，识别违约责任与付款风险。不适用于劳动合同。"),
            (
                "csv-bereinigen",
                "Bereinigt CSV-Dateien: entfernt Duplikate. Nicht für Excel-Dateien verwenden.",
            ),
        ]);
        assert!(ask(&router, "review a contract for risks").fit > Fit::Low);
        assert!(ask(&router, "审查合同条款").fit > Fit::Low);
        assert!(ask(&router, "CSV-Dateien bereinigen").fit > Fit::Low);
        for intent in ["review an employment contract", "劳动合同审查", "Excel-Dateien bereinigen"] {
            let answer = ask(&router, intent);
            assert!(answer.fit <= Fit::Low, "{intent}: {}", answer.verdict.sentence);
        }
    }

    #[test]
    fn parts_of_a_name_are_not_stop_words() {
        let router = router(&[
            ("avatars", "Makes avatar videos with HeyGen."),
            ("clips", "Cuts clips for YouTube and iMessage."),
            ("desk-open", "Opens a desk for a colleague."),
            ("vision", "Finds objects with computer vision."),
        ]);
        for name in ["HeyGen", "YouTube", "iMessage", "use HeyGen", "cut clips for YouTube"] {
            let (written, lower) = (ask(&router, name), ask(&router, &name.to_lowercase()));
            assert_eq!(written.verdict, lower.verdict, "{name}");
            assert!(written.fit > Fit::None, "{name}: {}", written.verdict.sentence);
        }
        for intent in ["open AnyDesk", "AnyDesk", "InVision", "DeskBird"] {
            let answer = ask(&router, intent);
            assert!(answer.fit <= Fit::Low, "{intent}: {}", answer.verdict.sentence);
        }
        let german = only(&[
            ("flyer", "Erstellt einen Flyer aus einer Vorlage und prüft den Druck der Seiten."),
            ("mahnung", "Schreibt eine Mahnung, wenn der Kunde nicht bezahlt hat."),
        ]);
        for intent in ["Flyer InDesign Vorlage", "Zugang AnyDesk"] {
            let sentence = ask(&german, intent).verdict.sentence;
            assert!(!sentence.contains("English"), "{intent}: {sentence}");
        }
    }

    /// Names of products; a part of each is a stop word or has one or two letters.
    const NAMES: [&str; 10] = [
        "YouTube",
        "HeyGen",
        "iMessage",
        "MySQL",
        "AnyDesk",
        "InVision",
        "AtCoder",
        "WhatsApp",
        "OnlyOffice",
        "LaTeX",
    ];

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        #[test]
        fn capitals_of_a_name_do_not_change_its_verdict(
            name in 0..NAMES.len(),
            capitals in proptest::collection::vec(proptest::bool::ANY, 10),
            around in 0..4_usize,
        ) {
            static ROUTER: std::sync::LazyLock<Router> = std::sync::LazyLock::new(|| {
                let skills = NAMES.map(|name| (name, format!("Opens {name} and reports its data.")));
                let skills: Vec<(&str, &str)> = skills.iter().map(|(name, text)| (*name, text.as_str())).collect();
                router(&skills)
            });
            let letters = NAMES[name].chars().zip(capitals.iter().chain(std::iter::repeat(&false)));
            let variant: String = letters
                .map(|(c, upper)| if *upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                .collect();
            let intent = |name: &str| match around {
                0 => name.to_owned(),
                1 => format!("use {name}"),
                2 => format!("{name} please"),
                _ => format!("open {name} and report"),
            };
            let (written, lower) = (ask(&ROUTER, &intent(&variant)), ask(&ROUTER, &intent(&variant.to_lowercase())));
            proptest::prop_assert_eq!(written.verdict, lower.verdict, "{}", variant);
        }
    }

    #[test]
    fn a_close_second_allows_at_most_medium_confidence() {
        let text = "Draws sequence diagrams of services in Mermaid.";
        let request = "draw a sequence diagram of a service in Mermaid";
        let single = ask(&router(&[("mermaid", text)]), request);
        assert_eq!((single.fit, single.confidence.unwrap().lead), (Fit::High, Margin::Clear));
        let both = ask(&router(&[("mermaid", text), ("mermaid-services", text)]), request);
        assert_eq!((both.fit, both.confidence.unwrap().lead), (Fit::Medium, Margin::Ambiguous));
    }

    #[test]
    fn a_word_of_an_exclusion_is_not_misspelled() {
        let router = router(&[("dryer", "Dries coats. Not for zorbellas."), ("shop", "Sells a zorbelle.")]);
        let answer = ask(&router, "dry coats and zorbellas");
        let dryer = answer.results.iter().find(|hit| hit.skill_id.as_str() == "dryer");
        let reason = &dryer.unwrap().reason;
        assert!(!reason.contains("was read as"), "{reason}");
        assert!(reason.contains("“zorbellas” only in an exclusion clause"), "{reason}");
    }

    #[test]
    fn a_result_in_the_language_of_the_request_is_not_foreign() {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let chinese = [
            ("youjian", "撰写邮件、催款邮件和通知。"),
            ("biaoge", "整理表格和数据。"),
            ("tupian", "处理图片。"),
            ("fanyi", "翻译文件。"),
        ];
        let japanese = [
            ("hyou", "表を作成します。データの整理。"),
            ("tegami", "手紙を書きます。挨拶の文章。"),
            ("gazou", "画像を編集します。"),
            ("honyaku", "文書を翻訳します。"),
            ("kaigi", "会議の記録を作成します。"),
        ];
        let skills = chinese.iter().chain(&japanese);
        router.update(skills.map(|(name, text)| Document::new(*name, *name, *text)).collect(), &[]);
        let answer = ask(&router, "写一封催款邮件");
        assert_eq!(answer.results[0].skill_id.as_str(), "youjian");
        assert_ne!(answer.verdict.reason, VerdictReason::Language, "{}", answer.verdict.sentence);
        // A part of the skills is in the language of the request.
        let verdict = ask(&router, "预订一张火车票").verdict;
        assert_ne!(verdict.reason, VerdictReason::Language, "{}", verdict.sentence);
        assert_eq!(verdict.language, None);
        router.update(Vec::new(), &["youjian", "biaoge", "tupian"].map(skills_skill::SkillId::new));
        // One of six is still not few.
        let verdict = ask(&router, "预订一张火车票").verdict;
        assert_ne!(verdict.reason, VerdictReason::Language, "{}", verdict.sentence);
    }

    fn only(skills: &[(&str, &str)]) -> Router {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let with_body = |(name, text): &(&str, &str)| {
            let body = IndexText { headings: Vec::new(), body: "1, 2, 3.".to_owned() };
            Document { text: Some(body), ..Document::new(*name, *name, *text) }
        };
        router.update(skills.iter().map(with_body).collect(), &[]);
        router
    }

    const JAPANESE: [(&str, &str); 5] = [
        ("gijiroku", "会議の録音やメモから議事録を作成します。決定事項と担当者をまとめます。"),
        ("honyaku", "日本語の文書を英語に翻訳します。契約書や技術文書に対応します。"),
        ("shijo-chosa", "市場調査の計画を立て、競合他社を分析して報告書にまとめます。"),
        ("seikyusho", "請求書を作成し、PDFとして保存します。"),
        ("ryohi-seisan", "出張旅費の精算書を作成し、領収書を確認します。"),
    ];

    const CHINESE: [(&str, &str); 5] = [
        ("hetong", "审核合同条款，标出风险并提出修改建议。"),
        ("jianli", "优化求职简历，针对岗位要求改写工作经历。"),
        ("zhoubao", "根据本周的工作记录撰写周报，列出完成事项、风险和下周计划。"),
        ("fanyi", "把中文文档翻译成英文，保持术语一致。"),
        ("bushu", "把服务部署到Kubernetes，检查镜像、探针和回滚方案。"),
    ];

    #[test]
    fn han_characters_alone_are_in_the_language_of_the_skills() {
        let japanese = only(&JAPANESE);
        for (intent, expected) in [
            ("議事録作成", "gijiroku"),
            ("文書翻訳", "honyaku"),
            ("市場調査", "shijo-chosa"),
            ("競合他社分析", "shijo-chosa"),
            ("出張旅費精算", "ryohi-seisan"),
        ] {
            let answer = ask(&japanese, intent);
            assert_eq!(answer.results[0].skill_id.as_str(), expected, "{intent}");
            assert!(answer.fit > Fit::None, "{intent}: {}", answer.verdict.sentence);
        }
        let both: Vec<_> = JAPANESE.into_iter().chain(CHINESE).collect();
        let answer = ask(&only(&both), "競合他社分析");
        assert_eq!(answer.results[0].skill_id.as_str(), "shijo-chosa");
        assert!(answer.fit > Fit::None, "{}", answer.verdict.sentence);
        for (router, intent, expected) in [
            (
                &router(&[]),
                "競合他社分析",
                "the request is in Chinese or Japanese; the skills are in English",
            ),
            (&router(&[]), "文書翻訳", "the request is in Japanese; the skills are in English"),
            (&japanese, "写一份周报", "the request is in Chinese; the skills are in Japanese"),
        ] {
            assert_eq!(ask(router, intent).verdict.sentence, format!("no skill fits: {expected}"));
        }
    }

    #[test]
    fn function_words_do_not_reject_a_chinese_request() {
        let router = only(&CHINESE);
        for (intent, expected) in [
            ("帮我写一份周报", "zhoubao"),
            ("看看这份合同有什么风险", "hetong"),
            ("我要找工作，优化简历", "jianli"),
            ("翻译成英文", "fanyi"),
        ] {
            let answer = ask(&router, intent);
            assert_eq!(answer.results[0].skill_id.as_str(), expected, "{intent}");
            assert!(answer.fit > Fit::None, "{intent}: {}", answer.verdict.sentence);
        }
        for intent in ["今天天气怎么样", "帮我订机票", "红烧肉怎么做", "推荐一部电影", "我头疼怎么办"]
        {
            let answer = ask(&router, intent);
            assert_eq!(answer.fit, Fit::None, "{intent}: {}", answer.verdict.sentence);
        }
    }

    #[test]
    fn an_english_request_among_skills_in_another_language_is_foreign() {
        let german = [
            ("rechnung", "Erstellt eine Rechnung aus den Daten des Kunden und prüft die Mehrwertsteuer."),
            ("mahnung", "Schreibt eine Mahnung, wenn der Kunde nicht bezahlt hat."),
            ("protokoll", "Fasst das Protokoll der Sitzung zusammen und nennt die Beschlüsse."),
        ];
        for (router, language) in
            [(only(&german), "German"), (only(&CHINESE), "Chinese"), (only(&JAPANESE), "Japanese")]
        {
            for (intent, is) in [("write a poem", "is"), ("bake a cake", "is"), ("play music", "may be")] {
                let sentence = ask(&router, intent).verdict.sentence;
                let expected = format!("the request {is} in English; the skills are in {language}");
                assert_eq!(sentence, format!("no skill fits: {expected}"), "{intent}");
            }
        }
        let sentence = ask(&only(&german), "Gedicht schreiben").verdict.sentence;
        assert!(!sentence.contains("English"), "{sentence}");
    }

    #[test]
    fn a_single_skill_in_the_language_of_a_request_does_not_hide_it() {
        let mut skills: Vec<Document> = (0..20)
            .map(|n| Document::new(format!("s{n}"), format!("s{n}"), format!("Plans trip number {n}.")))
            .collect();
        skills.push(Document::new("persona", "persona", "Writes a persona. 用户说“写作总结会议”时。"));
        skills.push(Document::new("fanyi", "fanyi", "把合同和信件整理成目录。"));
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update(skills, &[]);
        for (intent, language) in
            [("翻译这份文件", "Chinese"), ("预订一张火车票", "Chinese"), ("整理厨房", "Chinese or Japanese")]
        {
            let verdict = ask(&router, intent).verdict;
            let expected = format!("no skill fits: the request is in {language}; most skills are in English");
            assert_eq!(verdict.sentence, expected, "{intent}");
        }
        let verdict = ask(&router, "整理合同和信件").verdict;
        assert_eq!((verdict.fit > Fit::None, verdict.language), (true, None), "{}", verdict.sentence);
    }

    #[test]
    fn english_words_near_a_foreign_name_set_no_language() {
        let router = router(&[
            ("graphs", "Assembly of a graph, van der graph, slides and forces: asks about a book report."),
            ("tables", "Makes a table of a recipe."),
        ]);
        for intent in [
            "de bruijn graph assembly",
            "van der waals forces",
            "slides about don quijote de la mancha",
            "mein kampf book report",
            "sur la table recipe",
            "ask dan about zorblat",
        ] {
            let sentence = ask(&router, intent).verdict.sentence;
            assert!(!sentence.contains("the request is in"), "{intent}: {sentence}");
        }
        let sentence = ask(&router, "Wie kann ich meine Webseite verbessern?").verdict.sentence;
        assert!(sentence.contains("the request is in German"), "{sentence}");
    }

    #[test]
    fn short_requests_without_spaces_find_their_skill() {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let skills = [
            ("bushu", "部署应用到服务器，配置容器和持续集成。"),
            ("ceshi", "编写单元测试和集成测试。"),
            ("shencha", "审查代码，查找错误和安全漏洞，并提出改进建议。"),
            ("fanyi", "把文档翻译成英文、日文或中文，保持原有格式。"),
            ("huiyi", "整理会议记录，列出决定和待办事项。"),
            ("jianli", "修改和优化简历，准备面试问题。"),
            ("lvxing", "规划旅行路线，安排酒店、火车和景点。"),
            ("biaoge", "从PDF文件中提取表格并保存为CSV。当用户需要处理PDF表格时使用。"),
            ("shujuku", "优化数据库查询，设计表结构和索引。"),
            ("tubiao", "根据数据绘制图表，例如折线图和柱状图。"),
            ("youjian", "撰写商务邮件、催款邮件和通知。用于给客户或同事写信。"),
            ("zhouba", "生成周报和月报，总结工作进展。"),
        ];
        let with_body = |(name, text): (&str, &str)| {
            let body = IndexText { headings: Vec::new(), body: "按步骤完成。".to_owned() };
            Document { text: Some(body), ..Document::new(name, name, text) }
        };
        router.update(skills.map(with_body).to_vec(), &[]);
        for (intent, expected) in [
            ("翻译", "fanyi"),
            ("测试", "ceshi"),
            ("写周报", "zhouba"),
            ("优化慢查询", "shujuku"),
            ("修改我的简历", "jianli"),
        ] {
            let answer = ask(&router, intent);
            assert_eq!(answer.results[0].skill_id.as_str(), expected, "{intent}");
            assert_ne!(answer.fit, Fit::None, "{intent}: {}", answer.verdict.sentence);
        }
        // Less than half of the words is not enough for more than low confidence.
        let answer = ask(&router, "从PDF和PDF中提取PDF的PDF作者姓名出生日期和家庭住址并发送短信");
        assert!(answer.fit <= Fit::Low, "{}", answer.verdict.sentence);
        for intent in
            ["时使用", "当用户", "面包多少钱", "谢谢", "我头疼", "今天天气怎么样", "容器坏了怎么办才好呢"]
        {
            let answer = ask(&router, intent);
            assert_eq!(answer.fit, Fit::None, "{intent}: {}", answer.verdict.sentence);
        }
    }

    #[test]
    fn repeated_words_are_not_a_pair() {
        let router = router(&[("tests", "Runs a test. Test test test, and again a test test.")]);
        let score = |intent: &str| ask(&router, intent).results[0].score;
        assert!((score("test test test") - score("test")).abs() < 1e-9);
    }

    #[test]
    fn parts_of_an_identifier_are_not_a_pair() {
        let router = router(&[
            ("hardening", "Reviews workflows for risks: pull_request_target, workflow_run."),
            ("reviewing", "Reviews a pull request, its tests, and the merge."),
        ]);
        assert_eq!(ask(&router, "review the pull request").results[0].skill_id.as_str(), "reviewing");
        let answer = ask(&router, "why is pull_request_target a risk?");
        assert_eq!(answer.results[0].skill_id.as_str(), "hardening");
    }

    #[test]
    fn stop_words_without_a_match_are_not_reported() {
        let verdict = ask(&router(&[]), "hello").verdict;
        assert_eq!(verdict.sentence, "no skill fits: the request contains only stop words");
    }

    #[test]
    fn foreign_words_next_to_product_names_are_uncertain() {
        let router = router(&[
            ("pods", "Kubernetes pod security for a cluster: audits each Kubernetes pod."),
            ("redis", "Manages a Redis cache: Redis cache keys."),
        ]);
        for intent in [
            "kubernetes pod hatası",
            "Kubernetes Pod stürzt",
            "Redis Cache leeren",
            "kubernetes pod überwachen",
        ] {
            let answer = ask(&router, intent);
            assert!(answer.fit <= Fit::Low, "{intent}: {}", answer.verdict.sentence);
        }
        for intent in ["kubernetes pod security", "manage a redis cache for Zoë"] {
            let answer = ask(&router, intent);
            assert!(answer.fit > Fit::Low, "{intent}: {}", answer.verdict.sentence);
        }
    }

    #[test]
    fn english_words_next_to_kana_count() {
        let router = router(&[("code-review", "Code review of a pull request: reviews code.")]);
        let answer = ask(&router, "code review をお願いします");
        assert_eq!(answer.results[0].skill_id.as_str(), "code-review");
        assert_eq!(answer.fit, Fit::Low, "{}", answer.verdict.sentence);
    }

    #[test]
    fn unknown_runs_are_reported_completely() {
        let intent = "write เขียนการทดสอบ zzqxy";
        let answer = ask(&router(&[]), intent);
        assert_eq!(answer.unknown_words(intent).collect::<Vec<_>>(), ["เขียนการทดสอบ", "zzqxy"]);
    }
}
