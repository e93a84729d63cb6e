//! Typo matcher: a misspelled word is read as the nearest word of the index, an unfinished last word as its
//! possible completions. The other matchers then see the corrected request.

use std::collections::HashSet;
use std::time::Duration;

use super::super::answer::Correction;
use super::super::fast_hash::FastMap;
use super::super::field::Counts;
use super::super::language::Language;
use super::super::reading::{ReadWord, Reading, is_acronym};
use super::super::segment::Key;
use super::super::tokenize::{Word, american_spelling, fold_accents};
use super::super::vocabulary::StemId;
use super::super::weights::Typo;
use super::super::word_forms::letter_bits;
use super::{Context, Failure, Matcher, rarity};
use skills_base::time_limit::TimeLimit;

/// Corrects misspelled words and completes an unfinished one.
pub(super) struct TypoMatcher;

impl Matcher for TypoMatcher {
    fn name(&self) -> &'static str {
        "typo"
    }

    fn rewrites_request(&self) -> bool {
        true
    }

    fn read(&self, reading: &mut Reading, cx: &Context<'_>) -> Result<usize, Failure> {
        // Words of another language are not misspelled English words.
        if matches!(reading.language, Some(Language::Listed(_) | Language::Undetermined)) {
            return Ok(0);
        }
        let budget = cx.weights.typo.budget_ms;
        let time_limit = TimeLimit::start(Duration::from_millis(budget));
        let mut support = Support::default();
        let mut changed = join_odd_capitals(reading, cx);
        let last = reading.words.len().wrapping_sub(1);
        let ends_open =
            cx.typing && reading.words.last().is_some_and(|w| w.word.end as usize == reading.intent.len());
        for at in 0..reading.words.len() {
            let word = &reading.words[at];
            let open = ends_open && at == last;
            if let Some(form) = american(&word.word.text, cx).filter(|_| !open && !word.word.is_stop_word) {
                take(reading.word_mut(at), form, cx);
                changed += 1;
                continue;
            }
            if word.word.is_stop_word || cx.documents(&word.word.stem) > 0 || !latin(&word.word.text) {
                continue;
            }
            // A word that a skill writes is not misspelled, even if its exclusions are all that has it.
            if !open && cx.excludes(&word.word.stem) {
                continue;
            }
            if time_limit.is_exceeded() {
                return Err(Failure::Budget(budget));
            }
            let letters = word.word.text.chars().count();
            let is_known = cx.in_embedding(&word.word.text);
            let started = open && letters < cx.weights.completion.min_letters;
            if started && !is_known {
                reading.word_mut(at).correction = Some(Correction::Dropped);
                changed += 1;
            } else if (open && !started && complete(reading.word_mut(at), cx))
                || (!is_known && correct(reading, at, cx, &mut support))
            {
                changed += 1;
            }
        }
        Ok(changed)
    }
}

/// Reads `WaCAG` as one word if a part is unknown and the joined text is a word or resembles one, or if a part has one
/// or two letters and the joined text resembles a word of the index.
fn join_odd_capitals(reading: &mut Reading, cx: &Context<'_>) -> usize {
    let mut joined = 0;
    let mut at = 0;
    while at + 1 < reading.words.len() {
        let touching = |from: &[ReadWord]| from[0].word.end == from[1].word.start;
        let parts = 1 + reading.words[at..].windows(2).take_while(|two| touching(two)).count();
        let run = &reading.words[at..at + parts];
        let joined_text: String = run.iter().map(|w| w.word.text.as_str()).collect();
        let joinable = parts > 1 && joined_text.chars().all(|c| c.is_ascii_alphabetic());
        let odd = run.iter().any(|w| !w.word.is_stop_word && cx.documents(&w.word.stem) == 0);
        let fragment = run.iter().any(|w| !w.word.is_stop_word && w.word.text.len() <= 2);
        if joinable && (odd || fragment) {
            let (first, last) = (&run[0].word, &run[parts - 1].word);
            let word = Word {
                start: first.start,
                end: last.end,
                stem: cx.words.stem(&joined_text),
                is_stop_word: cx.words.is_stop(&joined_text),
                text: joined_text.clone(),
            };
            let is_known = cx.documents(&word.stem) > 0 || cx.in_embedding(&joined_text);
            let is_correction = is_known && odd;
            let correction = is_correction.then_some(Correction::Typo(joined_text));
            let read = ReadWord { correction, ..ReadWord::new(word) };
            let originals = reading.replace_words(at..at + parts, [read]);
            if is_correction || correct(reading, at, cx, &mut Support::default()) {
                joined += 1;
                at += 1;
                continue;
            }
            reading.replace_words(at..at + 1, originals);
        }
        at += parts;
    }
    joined
}

fn latin(text: &str) -> bool {
    text.chars().all(char::is_alphanumeric) && text.chars().any(char::is_alphabetic)
}

/// Returns the American spelling of a word in British spelling if several times as many skills have it.
fn american(text: &str, cx: &Context<'_>) -> Option<String> {
    const MORE: usize = 4;
    let form = american_spelling(text)?;
    let documents = cx.documents(&cx.words.stem(&form));
    (documents > MORE * cx.documents(&cx.words.stem(text))).then_some(form)
}

/// Reads an unfinished word as its most frequent completions in the index: longer words that start with it.
fn complete(read: &mut ReadWord, cx: &Context<'_>) -> bool {
    let vocabulary = &cx.index.vocabulary;
    let fragment = &*fold_accents(&read.word.text);
    let mut shortest: FastMap<StemId, &str> = FastMap::default();
    let mut take = |form, stem| {
        let best = shortest.entry(stem).or_insert(form);
        if (form.len(), form) < (best.len(), *best) {
            *best = form;
        }
    };
    cx.index.forms.continuing(fragment, &mut take);
    // Words with digits are not among the forms.
    for id in vocabulary.same_initial(fragment) {
        let written = vocabulary.written_form(*id);
        if written.len() > fragment.len()
            && written.starts_with(fragment)
            && written.chars().any(char::is_numeric)
        {
            take(written, *id);
        }
    }
    let mut found: Vec<(usize, StemId, &str)> = shortest
        .into_iter()
        .map(|(stem, form)| (cx.index.frequency(Key::stem(stem), cx.view), stem, form))
        .filter(|(documents, ..)| *documents > 0)
        .collect();
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| vocabulary.stem(a.1).cmp(vocabulary.stem(b.1))));
    found.truncate(cx.weights.completion.words);
    if found.is_empty() {
        return false;
    }
    let words = found.iter().map(|(_, _, form)| (*form).to_owned()).collect();
    read.completions = found.into_iter().map(|(_, stem, _)| stem).collect();
    read.correction = Some(Correction::Completed(words));
    true
}

/// A candidate correction of a misspelled word.
struct Candidate<'a> {
    form: &'a str,
    /// Its stem in the index; `None` for a stop word that no skill has.
    stem: Option<StemId>,
    distance: usize,
    /// Whether the words differ only by transposed letters.
    turned: bool,
    same_start: bool,
    documents: usize,
    /// How well the skills that contain it match the rest of the request.
    support: f64,
    /// Logarithm of how many times more skills contain the most frequent candidate; 0 for a stop word.
    scarcity: f64,
}

impl Candidate<'_> {
    /// Returns how likely the candidate is meant, regardless of its distance.
    fn likelihood(&self, typo: &Typo) -> f64 {
        let bonus = |has: bool, value: f64| if has { value } else { 0.0 };
        self.support + bonus(self.turned, typo.turned) + bonus(self.same_start, typo.same_start)
            - typo.frequency * self.scarcity
    }
}

/// How well the name, description and tags of each skill match the known words of a request; computed on first use.
#[derive(Default)]
struct Support(Option<Vec<f32>>);

impl Support {
    /// Returns the match with the request of the skills with this stem, as the mean of the best and the average: a
    /// single skill has almost any two words.
    fn of(&mut self, stem: StemId, reading: &Reading, cx: &Context<'_>) -> f64 {
        let by_slot = self.0.get_or_insert_with(|| {
            let mut by_slot = vec![0.0_f32; cx.index.slots()];
            for (at, read) in reading.words.iter().enumerate() {
                if read.word.is_stop_word || reading.row(at) != at {
                    continue;
                }
                let stem = cx.index.vocabulary.find(&read.word.stem);
                let Some(found) = stem.and_then(|stem| cx.stem(stem)) else {
                    continue;
                };
                let value = rarity(cx.index.len(), found.documents) as f32;
                found.each(|slot, counts| by_slot[slot] += value * weight(counts));
            }
            by_slot
        });
        let (mut most, mut sum, mut of) = (0.0_f32, 0.0_f32, 0.0_f32);
        if let Some(found) = cx.stem(stem) {
            found.each(|slot, counts| {
                let weight = weight(counts);
                most = most.max(weight * by_slot[slot]);
                sum += weight * by_slot[slot];
                of += weight;
            });
        }
        f64::from(BEST * most + (1.0 - BEST) * sum / of.max(1.0))
    }
}

/// Share of the best match in the support of a candidate.
const BEST: f32 = 0.5;

/// Returns the weight of a match: less if only the body has the word.
fn weight(counts: Counts) -> f32 {
    const BODY_ONLY: f32 = 0.5;
    if counts.without_body().is_empty() { BODY_ONLY } else { 1.0 }
}

/// Corrects a misspelled word to the most likely written form of the index, the stop words, or the embedding.
fn correct(reading: &mut Reading, at: usize, cx: &Context<'_>, support: &mut Support) -> bool {
    match correction(reading, at, cx, support) {
        Interpretation::Form(form) => take(reading.word_mut(at), form, cx),
        Interpretation::Doubtful(form) => {
            take(reading.word_mut(at), form, cx);
            reading.word_mut(at).is_doubtful = true;
        }
        Interpretation::Unknown => return false,
    }
    true
}

/// How a misspelled word is read.
enum Interpretation {
    /// As this form.
    Form(String),
    /// As this stop word, although it may as well be a word that no skill has.
    Doubtful(String),
    /// As written.
    Unknown,
}

/// Reads a word as another one.
fn take(read: &mut ReadWord, form: String, cx: &Context<'_>) {
    read.word.stem = cx.words.stem(&form);
    read.word.is_stop_word = cx.words.is_stop(&form);
    read.correction = Some(Correction::Typo(form.clone()));
    read.word.text = form;
}

fn correction(reading: &Reading, at: usize, cx: &Context<'_>, support: &mut Support) -> Interpretation {
    let typo = &cx.weights.typo;
    let text = reading.words[at].word.text.as_str();
    let letters = text.chars().count();
    if letters < typo.min_letters_turned
        || text.chars().any(char::is_numeric)
        || is_contraction_or_acronym(reading.as_typed(at), text, typo.min_letters)
        || (cx.index.language().is_none() && !reading.as_typed(at).is_ascii())
    {
        return Interpretation::Unknown;
    }
    let short = letters < typo.min_letters;
    let mut found = candidates(text, letters, cx);
    // Two swapped letters of a frequent word (`htis`) are likelier than any error in a rare one (`hits`).
    let is_turned_stop_word = |c: &Candidate<'_>| c.turned && c.distance == 1 && cx.words.is_stop(c.form);
    if found.iter().any(is_turned_stop_word) {
        found.retain(is_turned_stop_word);
    }
    let nearest = found.iter().map(|candidate| candidate.distance).min();
    found.retain(|candidate| Some(candidate.distance) == nearest);
    let stems: HashSet<_> = found.iter().map(|candidate| candidate.stem).collect();
    let turned: HashSet<_> = found.iter().filter(|c| c.turned).map(|candidate| candidate.stem).collect();
    let most = found.iter().map(|candidate| candidate.documents).max().unwrap_or_default();
    if stems.len() > 1 || short {
        for candidate in &mut found {
            if candidate.documents > 0 {
                candidate.scarcity = (most as f64 / candidate.documents as f64).ln();
            }
            candidate.support = match candidate.stem {
                Some(stem) if !cx.words.is_stop(candidate.form) => support.of(stem, reading, cx),
                _ => typo.stop_word,
            };
        }
    }
    let best = found.into_iter().min_by(|a, b| {
        let likelihood = b.likelihood(typo).total_cmp(&a.likelihood(typo));
        likelihood.then(b.documents.cmp(&a.documents)).then(a.form.cmp(b.form))
    });
    let Some(best) = best else {
        let model = cx.model.as_ref().ok().filter(|_| !short);
        return model
            .and_then(|model| model.only_near(text))
            .map_or(Interpretation::Unknown, Interpretation::Form);
    };
    // A word of few letters is within one edit of some stop word, whatever it means.
    if short && cx.words.is_stop(best.form) && !best.turned {
        return Interpretation::Doubtful(best.form.to_owned());
    }
    // A short word is within one edit of many others: the candidate has to be the only one, or to match the rest of
    // the request.
    let only = stems.len() == 1 && best.same_start && letters >= typo.min_letters_unique;
    let by_turning = best.turned && turned.len() == 1;
    let in_place = letters >= typo.min_letters_unique && best.support > 0.0;
    if !short || only || by_turning || in_place || cx.words.is_stop(best.form) {
        Interpretation::Form(best.form.to_owned())
    } else {
        Interpretation::Unknown
    }
}

/// Returns whether a word is a contraction (`they're`) or an acronym (`SSD`): unknown, but not misspelled.
fn is_contraction_or_acronym(written: &str, read: &str, most_letters: usize) -> bool {
    let contraction =
        written.contains(['\'', '’']) && written.to_lowercase().replace(['\'', '’'], "") == read;
    contraction || (is_acronym(written) && read.chars().count() <= most_letters)
}

/// Collects words of the index and stop words that are close to a misspelled word.
fn candidates<'a>(text: &str, letters: usize, cx: &'a Context<'_>) -> Vec<Candidate<'a>> {
    let typo = &cx.weights.typo;
    let edits = if letters >= typo.two_edits_from { 2 } else { 1 };
    let bits = letter_bits(text);
    let candidate = |form: &'a str, stem, distance, documents| Candidate {
        form,
        stem,
        distance,
        turned: letter_bits(form) == bits && form.chars().count() == letters,
        same_start: form.chars().next() == text.chars().next(),
        documents,
        support: 0.0,
        scarcity: 0.0,
    };
    let mut out: Vec<Candidate<'a>> = Vec::new();
    cx.index.forms.near(text, edits, |near| {
        let documents = cx.index.frequency(Key::stem(near.stem), cx.view);
        let candidate = candidate(near.form, Some(near.stem), near.distance, documents);
        if documents > 0 && (candidate.same_start || near.distance == 1) {
            out.push(candidate);
        }
    });
    let near = letters.saturating_sub(1)..=letters + 1;
    for word in cx.words.stops().filter(|word| near.contains(&word.len())) {
        if !out.iter().any(|known| known.form == word) && strsim::osa_distance(text, word) == 1 {
            out.push(candidate(word, None, 1, 0));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::answer::Answer;
    use super::super::super::document::Document;
    use super::super::super::request::Request;
    use super::super::super::router::Router;
    use super::super::super::weights::Weights;
    use super::*;
    use skills_skill::IndexText;

    const DESCRIPTIONS: [&str; 4] = [
        "Reviews pull requests and checks each license. Has the licensee ever signed?",
        "Pivots tables in a spreadsheet and converts them to black and white charts, extracted with Postgre tools.",
        "Backed up databases are restored; refers to the manual of postgres2pdf.",
        "Checks licensing terms, extracting every clause of a contract.",
    ];

    fn ask(router: &Router, intent: &str, typing: bool) -> Answer {
        router.discover(&Request { intent: intent.to_owned(), typing, ..Request::default() }).unwrap()
    }

    fn router() -> Router {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let documents = DESCRIPTIONS.iter().enumerate();
        router.update(documents.map(|(at, text)| Document::new(format!("s{at}"), "x", *text)).collect(), &[]);
        router
    }

    /// The completions of the last word.
    fn completions(answer: &Answer) -> Vec<String> {
        match answer.words.last().and_then(|word| word.correction.clone()) {
            Some(Correction::Completed(words)) => words,
            _ => Vec::new(),
        }
    }

    #[test]
    fn an_unfinished_word_is_read_as_words_that_start_with_it() {
        let router = router();
        let of = |fragment: &str| completions(&ask(&router, &format!("check {fragment}"), true));
        assert_eq!(of("licens"), ["license", "licensee"]);
        assert_eq!(of("pivo"), ["pivots"]);
        assert_eq!(of("extracti"), ["extracting"]);
        assert_eq!(of("postgres2"), ["postgres2pdf"]);
        for complete in ["everest", "postgress", "blackjack", "referendum", "backyard"] {
            assert_eq!(of(complete), Vec::<String>::new(), "{complete}");
        }
    }

    #[test]
    fn corrections_prefer_frequent_forms_over_fragments() {
        let mut router = router();
        let text = |body: &str| Some(skills_skill::IndexText { headings: Vec::new(), body: body.to_owned() });
        let mut documents: Vec<Document> = (0..40)
            .map(|at| Document::new(format!("a{at}"), "a", "Analyze the code of postgres; analyzes malware."))
            .collect();
        let fragment =
            Document { text: text("**A**nalyze code."), ..Document::new("junior", "junior", "Helps.") };
        let rare =
            Document { text: text("Call it nalyzes code."), ..Document::new("rare", "rare", "Helps.") };
        documents.extend([fragment, rare]);
        router.update(documents, &[]);
        let read = |intent: &str| match ask(&router, intent, false).words[0].correction.clone() {
            Some(Correction::Typo(word)) => word,
            other => panic!("{intent}: {other:?}"),
        };
        assert_eq!(read("anlyze code"), "analyze");
        assert_eq!(read("anlyzes code"), "analyzes");
        assert_eq!(read("postgress code"), "postgres");
    }

    #[test]
    fn swapped_letters_of_stop_words_and_british_spellings_are_read() {
        let mut router = router();
        let texts =
            ["Counts hits of a page.", "Organizes files.", "Organizes mails.", "Lists tours of harbours."];
        let more = texts.iter().enumerate();
        router.update(more.map(|(at, text)| Document::new(format!("m{at}"), "x", *text)).collect(), &[]);
        for (intent, expected) in
            [("htis page", Some("this")), ("adn tables", Some("and")), ("organise mails", Some("organize"))]
        {
            let read = ask(&router, intent, false).words[0].correction.clone();
            assert_eq!(read, expected.map(|word| Correction::Typo(word.to_owned())), "{intent}");
        }
        for intent in ["harbours page", "hits page", "organis"] {
            let read = ask(&router, intent, true).words[0].correction.clone();
            assert!(!matches!(read, Some(Correction::Typo(_))), "{intent}: {read:?}");
        }
    }

    #[test]
    fn short_unknown_words_are_not_stop_words() {
        let mut router = router();
        let texts = ["Makes migrations.", "Makes migrations of tables.", "Draws maps.", "Sells tickets."];
        let more = texts.iter().enumerate();
        router.update(more.map(|(at, text)| Document::new(format!("m{at}"), "x", *text)).collect(), &[]);
        for (intent, at) in [("hoa migrations", 0), ("what is hoa", 2), ("imf migrations", 0)] {
            let answer = ask(&router, intent, false);
            assert_eq!(
                (answer.words[at].correction.clone(), answer.words[at].stop),
                (None, false),
                "{intent}"
            );
            assert!(!answer.words[at].known, "{intent}");
        }
        let sentence = ask(&router, "what is hoa", false).verdict.sentence;
        assert_eq!(sentence, "no skill fits: none of the searched skills contains any word of the request");
        let score = |intent: &str| ask(&router, intent, false).results[0].score;
        assert!(score("hoa migrations") < score("how migrations"));
        for (intent, stop) in [("htis page", true), ("whith page", true), ("thier page", true)] {
            assert_eq!(ask(&router, intent, false).words[0].stop, stop, "{intent}");
        }
    }

    #[test]
    fn complete_unknown_word_scores_the_same_while_typing() {
        let router = router();
        let text = DESCRIPTIONS.join(" ").to_lowercase();
        let forms: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|f| f.len() > 2).collect();
        let endings = ["", "s", "ss", "est", "jack", "um", "yard", "x", "ing"];
        let mut alike = 0;
        for (at, form) in forms.iter().enumerate() {
            for (step, ending) in endings.iter().enumerate() {
                // Complete forms, and forms that lost their last letters, with an ending.
                let cut = form.len() - (at + step) % 3;
                let last = format!("{}{ending}", &form[..cut]);
                let before = forms[(at * 7 + step * 3) % forms.len()];
                let intent = format!("{before} with {last}");
                let typed = ask(&router, &intent, true);
                for completion in completions(&typed) {
                    assert!(
                        completion.starts_with(&last) && completion.len() > last.len(),
                        "{intent}: {completion}"
                    );
                    assert!(forms.contains(&completion.as_str()), "{intent}: {completion}");
                }
                if last.len() < 3 || forms.iter().any(|f| f.starts_with(&last) && f.len() > last.len()) {
                    continue;
                }
                let finished = ask(&router, &intent, false);
                assert_eq!(typed.results, finished.results, "{intent}");
                assert_eq!(typed.verdict, finished.verdict, "{intent}");
                alike += 1;
            }
        }
        assert!(alike > 200, "{alike}");
    }

    #[test]
    fn one_body_with_two_words_does_not_decide() {
        let with_body = |id: String, text: &str, body: &str| {
            let body = IndexText { headings: Vec::new(), body: body.to_owned() };
            Document { text: Some(body), ..Document::new(id.clone(), id, text) }
        };
        let mut skills: Vec<Document> = (0..4)
            .map(|n| with_body(format!("git-{n}"), "Makes a git rebase of branches.", "Run git rebase."))
            .collect();
        skills
            .extend((0..40).map(|n| with_body(format!("parts-{n}"), "Helps to reuse parts.", "Draw a map.")));
        skills.push(with_body(
            "both".to_owned(),
            "Helps to reuse parts.",
            "Reuse it, and commit it with git.",
        ));
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update(skills, &[]);
        let answer = ask(&router, "git rebse", false);
        assert_eq!(answer.words[1].correction, Some(Correction::Typo("rebase".into())));
    }
}
