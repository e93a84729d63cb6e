//! The task of a request: the sentence that asks, its head (the text before "for …", "about …", "using …"), and the
//! main verb of the head. Correspondingly, the verbs and clauses of a skill's description.

use std::ops::Range;

use super::phrases::{Lexicon, Pattern, Token, longest, tokens};
use super::reading::ReadWord;
use super::tokenize::{Words, is_unspaced};
use skills_skill::slice;

/// Minimum number of words in a head before a cue may end it.
const HEAD_WORDS: usize = 2;
/// Number of content words of a head among which the main verb is searched.
const VERB_WITHIN: usize = 4;
/// Maximum number of words between the cue of an exclusion and the colon before its list.
const MAX_HEADING_WORDS: usize = 3;
/// Maximum number of words that a "not" in brackets or after the last comma of a sentence excludes.
const MAX_CONTRAST_WORDS: usize = 10;
/// Maximum number of words that "is not supported" excludes, and of each of them but the last if they are a list.
const MAX_DECLARED_WORDS: usize = 12;
const MAX_LISTED_WORDS: usize = 3;
/// Maximum number of stems of a clause.
const CLAUSE_STEMS: usize = 6;

/// The task of a request; ranges are bytes of the intent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Task {
    /// Head of the sentence with the request.
    pub head: Range<usize>,
    /// Heads of all sentences.
    pub heads: Vec<Range<usize>>,
    /// The main verb: index into the words of the reading.
    pub verb: Option<usize>,
}

impl Task {
    /// Reads the task of a request.
    pub fn read(intent: &str, read: &[ReadWord], words: &Words, lexicon: &Lexicon) -> Self {
        let sentences: Vec<Sentence<'_>> = sentences(intent)
            .into_iter()
            .map(|range| Sentence::new(intent, range, words, lexicon))
            .filter(|sentence| sentence.from < sentence.tokens.len())
            .collect();
        let asking = sentences.iter().find(|s| s.asks).or(sentences.first());
        let head = asking.map(|s| s.head(intent, false, words, lexicon)).unwrap_or_default();
        let verb = read
            .iter()
            .enumerate()
            .filter(|(_, w)| !w.word.is_stop_word && head.contains(&(w.word.start as usize)))
            .take(VERB_WITHIN)
            .find(|(_, w)| lexicon.verbs.contains(&w.word.stem))
            .map(|(at, _)| at);
        let heads = sentences.iter().map(|s| s.head(intent, true, words, lexicon)).collect();
        Self { head, heads, verb }
    }

    /// Returns whether a position of the intent is in any head.
    pub fn in_heads(&self, at: usize) -> bool {
        self.heads.iter().any(|head| head.contains(&at))
    }
}

struct Sentence<'a> {
    range: Range<usize>,
    tokens: Vec<Token<'a>>,
    /// The first token after polite words and the opening.
    from: usize,
    asks: bool,
}

impl<'a> Sentence<'a> {
    fn new(intent: &'a str, range: Range<usize>, words: &Words, lexicon: &Lexicon) -> Self {
        let tokens = tokens(slice(intent, range.clone()), range.start);
        let skip = |mut at: usize, set: &super::fast_hash::FastSet<String>| {
            while tokens.get(at).is_some_and(|t| set.contains(&t.text)) {
                at += 1;
            }
            at
        };
        let mut from = skip(0, &lexicon.politeness);
        let mut asks = false;
        if let Some(length) = longest(&lexicon.asking_forms, &tokens, from) {
            let behind = skip(from + length, &lexicon.asking_tail);
            if tokens.len() >= behind + 2 {
                (from, asks) = (behind, true);
            }
        }
        asks |= tokens.get(from).is_some_and(|t| lexicon.verbs.contains(&words.stem(&t.text)));
        Self { range, tokens, from, asks }
    }

    /// Returns the head: the text up to the first cue after two content words.
    fn head(&self, intent: &str, cut_at_semicolon: bool, words: &Words, lexicon: &Lexicon) -> Range<usize> {
        let Some(first) = self.tokens.get(self.from) else { return Range::default() };
        let mut content = 0;
        let mut before = first.start;
        for (at, token) in self.tokens.iter().enumerate().skip(self.from) {
            let gap = slice(intent, before..token.start);
            let cue = lexicon.head_cues.contains(&token.text)
                || longest(&lexicon.head_phrases, &self.tokens, at).is_some()
                || gap.contains([':', ';', '(', '"', '“', '”', '`', '‘'])
                || is_dash(gap)
                || is_path(intent, token);
            if (cue && content >= HEAD_WORDS) || (cut_at_semicolon && gap.contains(';')) {
                return first.start..before;
            }
            content += usize::from(!words.is_stop(&token.text));
            before = token.end;
        }
        first.start..self.range.end
    }
}

/// Returns whether the gap is a dash surrounded by whitespace, or contains an em dash.
fn is_dash(gap: &str) -> bool {
    matches!(gap.trim(), "-" | "–" | "—" | "--") && gap.starts_with(char::is_whitespace) || gap.contains('—')
}

/// Returns whether the word around a token is a path or a file name.
fn is_path(text: &str, token: &Token<'_>) -> bool {
    let from = slice(text, ..token.start).rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let to = slice(text, token.end..).find(char::is_whitespace).map_or(text.len(), |at| token.end + at);
    let word = text.get(from..to).unwrap_or_default().trim_end_matches(['.', ',', '!', '?', ')']);
    let file = |(name, ending): (&str, &str)| {
        !name.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.bytes().all(|b| b.is_ascii_alphanumeric())
            && ending.bytes().any(|b| b.is_ascii_lowercase())
    };
    word.contains(['/', '\\']) || word.rsplit_once('.').is_some_and(file)
}

/// Returns the length of the quotes and brackets that close directly after a full stop.
fn closing_marks(rest: &str) -> usize {
    rest.len() - rest.trim_start_matches(['"', '\'', '”', '’', ')', ']', '`']).len()
}

/// Returns whether a sentence may start here: after whitespace or at the end of the text. Where it is doubtful that the
/// one before has ended, only with a capital letter.
fn starts_sentence(rest: &str, is_doubtful: bool) -> bool {
    let mut chars = rest.trim_start_matches([' ', '\t']).chars();
    rest.chars().next().is_none_or(char::is_whitespace)
        && (!is_doubtful || chars.next().is_none_or(|c| c.is_uppercase() || c == '\n'))
}

/// Returns whether a text ends with an abbreviation that does not end a sentence, without its full stop.
fn is_abbreviated(before: &str) -> bool {
    let last = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    // The number of a list item does not end a sentence either.
    let is_number = !last.is_empty() && last == before.trim() && last.chars().all(|c| c.is_ascii_digit());
    is_number || matches!(last, "e.g" | "i.e" | "vs" | "cf")
}

/// Splits a text outside of code fences into sentences, which end at `. ! ?` before whitespace, also if a quote or a
/// bracket closes in between, and at the end of a line.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut fence: Option<&str> = None;
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let start = line_start;
        line_start += line.len();
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => {
                fence = Some(mark);
                continue;
            }
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
                continue;
            }
            (Some(_), _) => continue,
            (None, None) => {}
        }
        let mut from = start;
        for (at, c) in line.char_indices() {
            if !matches!(c, '.' | '!' | '?' | '。' | '！' | '？') {
                continue;
            }
            let after = start + at + c.len_utf8();
            let next = after + closing_marks(slice(text, after..));
            let (before, rest) = (slice(text, from..start + at), slice(text, next..));
            let ends = !c.is_ascii()
                || (starts_sentence(rest, next > after || before.ends_with("etc"))
                    && !is_abbreviated(before));
            if ends {
                out.push(from..next);
                from = next;
            }
        }
        out.push(from..start + line.len());
    }
    out.retain(|range| !slice(text, range.clone()).trim().is_empty());
    out
}

/// Verbs and clauses of a skill, as stems.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Phrasing {
    /// Stems of the verbs that state what it does or when it is used.
    pub verbs: Vec<String>,
    /// Distinct content stems of each clause of the description that has between one and six of them.
    pub clauses: Vec<Vec<String>>,
}

/// Extracts verbs and clauses from a name (as words) and a description (without its exclusions).
pub(crate) fn phrasing(name: &str, description: &str, words: &Words, lexicon: &Lexicon) -> Phrasing {
    let mut out = Phrasing::default();
    let mut verb = |stem: &str| {
        if lexicon.verbs.contains(stem) && !out.verbs.iter().any(|known| known == stem) {
            out.verbs.push(stem.to_owned());
        }
    };
    if let Some(first) = words.split(name).into_iter().find(|w| !w.is_stop_word) {
        verb(&first.stem);
    }
    for (at, range) in sentences(description).into_iter().enumerate() {
        let sentence = slice(description, range);
        let telling = at == 0 || {
            let tokens = tokens(sentence, 0);
            (0..tokens.len()).any(|at| longest(&lexicon.trigger_cues, &tokens, at).is_some())
        };
        let mut clause: Vec<String> = Vec::new();
        let mut before = 0;
        words.each(sentence, |word| {
            let gap = sentence.get(before..word.start as usize).unwrap_or_default();
            before = word.end as usize;
            let joins = matches!(word.text.as_str(), "and" | "or");
            if joins || ends_clause(gap) {
                out.clauses.push(std::mem::take(&mut clause));
            }
            if joins || word.is_stop_word {
                return;
            }
            if telling || clause.is_empty() {
                verb(&word.stem);
            }
            if !clause.contains(&word.stem) {
                clause.push(word.stem);
            }
        });
        out.clauses.push(clause);
    }
    out.clauses.retain(|clause| (1..=CLAUSE_STEMS).contains(&clause.len()));
    for clause in &mut out.clauses {
        clause.sort_unstable();
    }
    out.clauses.sort_unstable();
    out.clauses.dedup();
    out
}

/// Returns whether a gap contains punctuation, quotes, or a dash.
fn ends_clause(gap: &str) -> bool {
    gap.contains(|c: char| {
        matches!(
            c,
            ',' | ';'
                | ':'
                | '.'
                | '!'
                | '?'
                | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '"'
                | '“'
                | '”'
                | '„'
                | '‘'
                | '’'
                | '\''
                | '`'
                | '/'
                | '|'
                | '•'
                | '*'
                | '—'
                | '–'
                | '&'
                | '、'
                | '，'
                | '。'
                | '；'
                | '：'
        )
    }) || gap.contains(" - ")
}

/// Returns the byte ranges of a description that state what the skill is not for, in order.
pub(crate) fn exclusion_ranges(description: &str, lexicon: &Lexicon) -> Vec<Range<usize>> {
    exclusion_clauses(description, lexicon).into_iter().map(|one| one.clause).collect()
}

/// A clause that states what a skill is not for, as byte ranges of the description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExclusionClause {
    pub clause: Range<usize>,
    /// What it excludes: the text after its cue.
    pub subject: Range<usize>,
}

/// Returns the clauses of a description that state what the skill is not for, in order.
pub(crate) fn exclusion_clauses(description: &str, lexicon: &Lexicon) -> Vec<ExclusionClause> {
    let mut out: Vec<ExclusionClause> = Vec::new();
    for sentence in wrapped_sentences(description) {
        // "Do not use hooks yet?" asks for whom the skill is.
        if slice(description, sentence.clone()).trim_end().ends_with('?') {
            continue;
        }
        if continues_list(description, &sentence, out.last()) {
            out.push(ExclusionClause { clause: sentence.clone(), subject: sentence });
            continue;
        }
        let unspaced = unspaced_exclusions(description, &sentence, lexicon);
        if !unspaced.is_empty() {
            out.extend(unspaced);
            continue;
        }
        if let Some(subject) = refers_elsewhere(description, &sentence) {
            out.push(ExclusionClause { clause: sentence, subject });
            continue;
        }
        let mut done = sentence.start;
        let mut is_conditional = false;
        for segment in segments(description, sentence.clone()) {
            let all = tokens(slice(description, segment.clone()), segment.start);
            if let Some(declared) =
                excluded_subject(description, &segment, lexicon).filter(|_| done <= segment.start)
                && !is_quoted(slice(description, sentence.start..segment.start))
            {
                done = segment.end;
                out.push(declared);
                continue;
            }
            loop {
                let tokens = &all[all.partition_point(|token| token.start < done)..];
                let Some(cue) = exclusion_cue(description, tokens, is_conditional, sentence.end, lexicon)
                else {
                    break;
                };
                let (start, end) = (tokens[cue.start].start, tokens[cue.end - 1].end);
                if is_quoted(slice(description, sentence.start..start)) {
                    break;
                }
                let is_first = all.first().is_some_and(|token| token.start == start);
                let from = if is_first { segment.start } else { start };
                done = exclude(description, from, end..sentence.end, lexicon, &mut out);
            }
            is_conditional |= all.iter().any(|token| lexicon.exclusion_conditions.contains(&token.text));
        }
    }
    out
}

/// Returns the clauses of a sentence in a script without spaces that state what the skill is not for: those that start
/// or end with a phrase of the table (`不适用于劳动合同`, `契約書には使用しない`).
fn unspaced_exclusions(text: &str, sentence: &Range<usize>, lexicon: &Lexicon) -> Vec<ExclusionClause> {
    let stated = slice(text, sentence.clone());
    if !stated.contains(is_unspaced) {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut start = sentence.start;
    let is_end =
        |c: char| matches!(c, '，' | ',' | '；' | ';' | '：' | '（' | '）' | '(' | ')' | '「' | '」');
    for part in stated.split_inclusive(is_end) {
        let clause = start..start + part.len();
        start = clause.end;
        let is_mark = |c: char| !c.is_alphanumeric();
        let stated = part.trim_matches(is_mark);
        let from = clause.start + (part.len() - part.trim_start_matches(is_mark).len());
        let to = from + stated.len();
        let opening = lexicon.unspaced_exclusion_openings.iter().filter(|cue| stated.starts_with(*cue));
        let ending = lexicon.unspaced_exclusion_endings.iter().filter(|cue| stated.ends_with(*cue));
        let found = if let Some(cue) = opening.max_by_key(|cue| cue.len()) {
            Some((clause, from + cue.len()..to))
        } else {
            ending.max_by_key(|cue| cue.len()).map(|cue| {
                let first = listed_from(slice(text, from..to - cue.len()));
                (from + first..clause.end, from + first..to - cue.len())
            })
        };
        if let Some((clause, subject)) = found.filter(|(_, subject)| !subject.is_empty()) {
            // Closing brackets and quotes are not part of it.
            let end =
                clause.start + slice(text, clause.clone()).trim_end_matches(['（', '(', '「', '」']).len();
            if !is_quoted(slice(text, sentence.start..clause.start)) {
                out.push(ExclusionClause { clause: clause.start..end, subject });
            }
        }
    }
    out
}

/// Returns where the list starts with which a Japanese text ends: `契約書、請求書`, but not what precedes a clause that
/// ends with a verb (`作成し、`).
fn listed_from(text: &str) -> usize {
    let ends_verb = |item: &str| item.ends_with(|c: char| matches!(c, '\u{3040}'..='\u{309F}'));
    let mut from = text.len();
    for item in text.rsplit('、') {
        if from < text.len() && ends_verb(item) {
            break;
        }
        from -= item.len() + if from < text.len() { '、'.len_utf8() } else { 0 };
    }
    from
}

/// Splits a description into sentences; a line that ends with a comma, "or", "and" or before a small letter continues
/// on the next.
fn wrapped_sentences(description: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for line in sentences(description) {
        let text = slice(description, line.clone()).trim_start();
        let wrapped = out.last_mut().filter(|last| {
            let before = slice(description, (*last).clone());
            let is_open = !before.trim_end().ends_with(['.', '!', '?', ':', ';']);
            let goes_on = text.starts_with(|c: char| c.is_lowercase() || c == '(')
                || [",", " or", " and"].iter().any(|end| before.trim_end().ends_with(end));
            last.end == line.start && before.ends_with('\n') && is_open && goes_on && !is_list_item(text)
        });
        if let Some(last) = wrapped {
            last.end = line.end;
        } else {
            out.push(line);
        }
    }
    out
}

/// Returns whether a line is an item of a list.
fn is_list_item(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['-', '*', '•'])
        || (line.starts_with(|c: char| c.is_ascii_digit())
            && line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with([')', '.']))
}

/// Appends the clauses from `from` on whose cue ends where `rest` starts; returns where they end. Text in brackets is
/// part of them, also if it says where else to go.
fn exclude(
    description: &str,
    mut from: usize,
    rest: Range<usize>,
    lexicon: &Lexicon,
    out: &mut Vec<ExclusionClause>,
) -> usize {
    let mut subject = rest.start;
    let subject_end = clause_end(description, rest.clone());
    let mut end = subject_end;
    while let Some(next) = redirect_end(description, end..rest.end, lexicon) {
        end = next;
    }
    let all = tokens(slice(description, subject..end), subject);
    loop {
        let tokens = &all[all.partition_point(|token| token.start < subject)..];
        if tokens.is_empty() && from == subject {
            return end;
        }
        let stop = (0..tokens.len()).find(|at| longest(&lexicon.exclusion_ends, tokens, *at).is_some());
        let to = stop.map_or(end, |at| tokens[at].start);
        out.push(ExclusionClause { clause: from..to, subject: subject..to.min(subject_end).max(subject) });
        if let Some(next) = stop.filter(|at| matches!(&*tokens[*at].text, "without" | "unrelated"))
            && let Some(at) = next_item(description, subject..to, tokens[next].end..subject_end)
        {
            (from, subject) = (at, at);
            continue;
        }
        // What brackets take out of a clause ends with them: "not for maps (except of towns) or plans".
        let closing = clause_end(description, to..end);
        if !slice(description, closing..end).starts_with([')', ']']) {
            return to;
        }
        (from, subject) = (closing + 1, closing + 1);
    }
}

/// Returns where the segment ends that follows an exclusion at the start of `rest` and refers elsewhere: "Not for maps —
/// use atlas for those"; `None` if it states anything else.
fn redirect_end(text: &str, rest: Range<usize>, lexicon: &Lexicon) -> Option<usize> {
    let mark = slice(text, rest.clone()).chars().next().filter(|c| !matches!(c, '(' | ')' | '[' | ']'))?;
    let from = rest.start + mark.len_utf8();
    let end = clause_end(text, from..rest.end);
    let tokens = tokens(slice(text, from..end), from);
    let redirect = longest(&lexicon.exclusion_redirects, &tokens, 0)?;
    let purposes = [&lexicon.exclusion_purposes, &lexicon.trigger_cues];
    let is_purpose =
        |patterns: &Vec<Pattern>| longest(patterns, &tokens, 0).is_some_and(|length| length > redirect);
    (!purposes.into_iter().any(is_purpose)).then_some(end)
}

/// Returns where a list of excluded things continues after "without …" or "unrelated to …", which takes the rest of
/// its item out of the exclusion: at a colon, or at a comma if that item is not the last one. `item` ends before that
/// word, `rest` is after it.
fn next_item(text: &str, item: Range<usize>, rest: Range<usize>) -> Option<usize> {
    let last = slice(text, item).rsplit_once(',').map(|(_, last)| last.trim_start());
    let is_open = last.is_some_and(|last| !last.starts_with("or ") && !last.starts_with("and "));
    let (at, mark) =
        slice(text, rest.clone()).char_indices().find(|(_, c)| matches!(c, ',' | ':' | '(' | ')'))?;
    (mark == ':' || mark == ',' && is_open).then_some(rest.start + at)
}

/// Returns where a clause ends that continues at the start of `rest`: at a semicolon, a dash or a closing bracket
/// outside of the brackets that open within it. Semicolons and dashes within a list after a colon do not end it.
fn clause_end(text: &str, rest: Range<usize>) -> usize {
    let mut open: Vec<usize> = Vec::new();
    // The items of a folded list: "Do not use for: - maps - plans".
    let mut is_list = false;
    for (at, c) in separators(text, rest.clone()) {
        is_list |= c == '-' && slice(text, rest.start..at).trim_end().trim_end_matches('*').ends_with(':');
        match c {
            '-' if is_list => {}
            ';' if open.is_empty() && is_item(text, rest.start..at, at + 1..rest.end) => {}
            '(' | '[' => open.push(at),
            ')' | ']' if open.pop().is_none() => return at,
            ')' | ']' => {}
            _ if open.is_empty() => return at,
            _ => {}
        }
    }
    open.first().copied().unwrap_or(rest.end)
}

/// Returns whether what follows a semicolon is an item of a list after a colon: "Not for: maps; plans of towns".
/// `before` is the clause up to the semicolon.
fn is_item(text: &str, before: Range<usize>, after: Range<usize>) -> bool {
    let before = slice(text, before);
    let heading = before.split_once(": ").or_else(|| before.split_once(":** "));
    let next = tokens(slice(text, after), 0).into_iter().next();
    heading.is_some_and(|(heading, _)| heading.split_whitespace().count() <= MAX_HEADING_WORDS)
        && next.is_some_and(|next| {
            !matches!(&*next.text, "use" | "only" | "but" | "instead" | "triggers" | "works")
        })
}

/// Returns whether a line is an item of the list that an exclusion with a colon at its end introduces, or follows one.
fn continues_list(text: &str, line: &Range<usize>, last: Option<&ExclusionClause>) -> bool {
    let item = |range: &Range<usize>| is_list_item(slice(text, range.clone()));
    let is_heading = |range: &Range<usize>| {
        let heading = slice(text, range.clone()).trim_end().trim_end_matches(['*', '_']);
        heading.ends_with(':')
    };
    item(line)
        && last.is_some_and(|last| {
            let gap = text.get(last.clause.end..line.start);
            gap.is_some_and(|gap| gap.trim().is_empty())
                && (is_heading(&last.subject) || (last.clause == last.subject && item(&last.clause)))
        })
}

/// Returns the tokens with which a segment begins to state what the skill is not for; `follows_condition` states whether
/// its sentence, which ends at `sentence_end`, contains a condition before it.
fn exclusion_cue(
    description: &str,
    tokens: &[Token<'_>],
    follows_condition: bool,
    sentence_end: usize,
    lexicon: &Lexicon,
) -> Option<Range<usize>> {
    // `not-for-profit` is one word, and "not for profit" the same with spaces.
    let matches = |patterns: &[Pattern], at: usize| {
        longest(patterns, tokens, at).is_some_and(|length| {
            let words = tokens.get(at..at + length).unwrap_or_default();
            // "never used for" is an exclusion, but "never used" is not.
            longest(&lexicon.exclusion_compounds, tokens, at).is_none_or(|compound| compound < length)
                && !words.windows(2).any(|two| slice(description, two[0].end..two[1].start).contains('-'))
        })
    };
    let cue = |from: usize, at: usize| {
        let patterns = [
            &lexicon.exclusion_openings,
            &lexicon.exclusion_statements,
            &lexicon.exclusion_limits,
            &lexicon.exclusion_inside,
            &lexicon.exclusion_negations,
        ];
        let length = patterns.into_iter().filter_map(|patterns| longest(patterns, tokens, at)).max();
        Some(from..at + length?)
    };
    // "Never write boilerplate again" and "excludes files from a report" state what the skill does.
    let has = |text: &str| tokens.iter().any(|token| token.text == text);
    let is_purpose = |first: &Token<'_>| match &*first.text {
        "never" => has("again"),
        "excludes" => has("from"),
        "no" => has("required") || has("needed"),
        // "Use when the user says: not a good idea; …".
        "not" => follows_condition && tokens.get(1).is_some_and(|next| matches!(&*next.text, "a" | "an")),
        _ => false,
    };
    if [&lexicon.exclusion_openings, &lexicon.exclusion_statements].into_iter().any(|list| matches(list, 0))
        && !tokens.first().is_some_and(is_purpose)
    {
        return cue(0, 0);
    }
    // "Use when a build fails; it does not compile" describes the build.
    let is_skill = |subject: &usize| !follows_condition || *subject > 1;
    if let Some(subject) = longest(&lexicon.exclusion_subjects, tokens, 0).filter(is_skill)
        && [&lexicon.exclusion_statements, &lexicon.exclusion_limits]
            .into_iter()
            .any(|list| matches(list, subject))
    {
        return cue(0, subject);
    }
    let negated = |at: &usize| {
        tokens.get(*at).is_some_and(|token| token.text == "not")
            && contrasts(description, tokens, *at, sentence_end, lexicon)
    };
    if let Some(at) = [0, usize::from(tokens.first().is_some_and(|token| token.text == "but"))]
        .into_iter()
        .find(negated)
        .filter(|_| is_in_brackets(description, tokens))
    {
        return Some(0..at + 1);
    }
    let mut is_conditional = false;
    for (at, token) in tokens.iter().enumerate().skip(1) {
        is_conditional |= lexicon.exclusion_conditions.contains(&tokens[at - 1].text);
        // "teams that do not use …" tells what the skill is for.
        let is_relative = matches!(&*tokens[at - 1].text, "that" | "which" | "who");
        if !is_conditional && !is_relative && matches(&lexicon.exclusion_inside, at) {
            return cue(at, at);
        }
        if matches(&lexicon.exclusion_negations, at) && (token.text == "not" || !is_purpose(token)) {
            let joins = tokens[1..at].iter().rev().take_while(|t| lexicon.exclusion_joins.contains(&t.text));
            let from = at - joins.count();
            let after_comma = slice(description, tokens[at - 1].end..token.start).contains(',');
            // Authors who write NOT state what the skill is not for, also after "use it when".
            if token.written == "NOT" || (!is_conditional && (from < at || after_comma)) {
                return cue(from, at);
            }
        }
        let is_defined = || tokens[..at].iter().any(|t| lexicon.exclusion_definitions.contains(&t.text));
        if !is_conditional
            && slice(description, tokens[at - 1].end..token.start).contains(',')
            && negated(&at)
            && !is_defined()
        {
            return Some(at..at + 1);
        }
    }
    None
}

/// Returns whether the segment of some tokens is in brackets.
fn is_in_brackets(description: &str, tokens: &[Token<'_>]) -> bool {
    tokens.first().zip(tokens.last()).is_some_and(|(first, last)| {
        slice(description, ..first.start).trim_end().ends_with(['(', '['])
            && slice(description, last.end..).trim_start_matches(['.', '"', '`', '*']).starts_with([')', ']'])
    })
}

/// Returns whether a "not" excludes the few words after it: "(not maps)", or "charts, not maps" at the end of a sentence.
fn contrasts(
    description: &str,
    tokens: &[Token<'_>],
    at: usize,
    sentence_end: usize,
    lexicon: &Lexicon,
) -> bool {
    let behind = tokens.get(at + 1..).unwrap_or_default();
    let Some((first, last)) = behind.first().zip(behind.last()) else { return false };
    // `not-for-profit` is a compound.
    if slice(description, tokens[at].end..first.start).contains('-')
        || longest(&lexicon.exclusion_compounds, tokens, at).is_some()
    {
        return false;
    }
    let after = slice(description, last.end..sentence_end).trim();
    behind.len() <= MAX_CONTRAST_WORDS
        && !lexicon.exclusion_qualifiers.contains(&first.text)
        && (is_in_brackets(description, tokens)
            || (matches!(after, "" | "." | "!") && !slice(description, first.start..last.end).contains(',')))
}

/// Returns whether a text ends inside quotes or inline code.
fn is_quoted(before: &str) -> bool {
    let (mut straight, mut code, mut single, mut curly) = (false, false, false, 0_usize);
    let mut last = ' ';
    for c in before.chars() {
        match c {
            '"' => straight = !straight,
            '`' => code = !code,
            '“' => curly += 1,
            '”' => curly = curly.saturating_sub(1),
            // Otherwise an apostrophe, or the end of a quote.
            '\'' | '‘' if last.is_whitespace() || matches!(last, '(' | '[' | ',') => single = true,
            '\'' | '’' if !last.is_alphanumeric() => single = false,
            _ if matches!(last, '\'' | '’') && !c.is_alphanumeric() => single = false,
            _ => {}
        }
        last = c;
    }
    straight || code || single || curly > 0
}

/// Returns the clause of a segment that excludes the subject before its cue.
fn excluded_subject(text: &str, segment: &Range<usize>, lexicon: &Lexicon) -> Option<ExclusionClause> {
    let elsewhere =
        refers_elsewhere(text, segment).map(|subject| ExclusionClause { clause: segment.clone(), subject });
    elsewhere.or_else(|| declared_subject(text, segment, lexicon))
}

/// Returns the clause of a segment that declares its subject to be out of scope or not supported.
fn declared_subject(text: &str, segment: &Range<usize>, lexicon: &Lexicon) -> Option<ExclusionClause> {
    let tokens = tokens(slice(text, segment.clone()), segment.start);
    let declares = |at: &usize| longest(&lexicon.exclusion_declarations, &tokens, *at).is_some();
    let at = (1..tokens.len()).find(declares)?;
    let length = longest(&lexicon.exclusion_declarations, &tokens, at)?;
    // "Draws charts, but maps are not supported".
    let contrast =
        tokens[..at].iter().rposition(|token| matches!(&*token.text, "but" | "although" | "though"));
    let from = contrast.map_or(0, |contrast| contrast + 1);
    let subject = tokens.get(from..at).filter(|subject| !subject.is_empty())?;
    let stop =
        (at + length..tokens.len()).find(|at| longest(&lexicon.exclusion_ends, &tokens, *at).is_some());
    let start = contrast.map_or(segment.start, |contrast| tokens[contrast].start);
    let end = stop.map_or(segment.end, |stop| tokens[stop].start);
    let found = ExclusionClause { clause: start..end, subject: subject[0].start..tokens[at].start };
    if tokens[at + length - 1].text == "scope" {
        return Some(found);
    }
    // "If maps are not supported", "claims that are not supported by data".
    let is_open = tokens[..at].iter().any(|token| {
        lexicon.exclusion_conditions.contains(&token.text)
            || matches!(&*token.text, "that" | "which" | "who" | "what" | "where")
    });
    let is_passive = tokens.get(at + length).is_some_and(|token| token.text == "by");
    // "Converts pages of a book to text, scans are not supported" has another verb.
    let stated = slice(text, found.subject.clone());
    let is_list = stated.rsplit_once(',').is_none_or(|(items, _)| {
        items.split(',').all(|item| item.split_whitespace().count() <= MAX_LISTED_WORDS)
    });
    (!is_open && !is_passive && is_list && subject.len() <= MAX_DECLARED_WORDS).then_some(found)
}

/// Returns the byte range of the subject for which a sentence refers to another skill: `For X, see Y.`
fn refers_elsewhere(text: &str, sentence: &Range<usize>) -> Option<Range<usize>> {
    let tokens = tokens(slice(text, sentence.clone()), sentence.start);
    let first = tokens.first().filter(|token| token.text == "for")?;
    let last = tokens.windows(2).find(|two| {
        matches!(two[1].text.as_str(), "see" | "use" | "prefer")
            && slice(text, two[0].end..two[1].start).contains(',')
    })?;
    // The rest names another skill: no file of this one, nor this one itself.
    let target = slice(text, last[1].end..sentence.end).trim_matches(|c: char| c.is_whitespace() || c == '.');
    // Names of skills are written in lower case; "use Playwright" names a tool.
    let is_proper = target.starts_with(char::is_uppercase);
    let target = target.to_lowercase();
    let target = target.trim_end_matches("directly").trim_end_matches("instead").trim_end();
    // "For a dark theme, use navy" advises.
    let is_advice =
        matches!(&*tokens.get(1)?.text, "a" | "an") && last[1].text != "see" && !target.contains("skill");
    let is_own = target.contains("this skill") || target.split_whitespace().any(is_file);
    let is_named = (!target.contains(char::is_whitespace) && !is_proper)
        || target.split_whitespace().any(|word| word.contains('-') || word.starts_with("skill"));
    (is_named && !is_own && !is_advice).then_some(first.end..last[0].end)
}

/// Returns whether a word is a path or the name of a file.
fn is_file(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
    word.contains(['/', '\\'])
        || (1..=5).contains(&ending.len()) && ending.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Returns the semicolons, dashes and brackets of a range, with their positions.
fn separators(text: &str, range: Range<usize>) -> impl Iterator<Item = (usize, char)> {
    let is_spaced = |from: usize, to: usize| {
        slice(text, ..from).ends_with(char::is_whitespace)
            && slice(text, to..).starts_with(char::is_whitespace)
    };
    let chars = slice(text, range.clone()).char_indices().map(move |(at, c)| (range.start + at, c));
    chars.filter(move |(at, c)| {
        matches!(c, ';' | '—' | '–' | '(' | ')' | '[' | ']') || (*c == '-' && is_spaced(*at, at + 1))
    })
}

/// Splits a sentence at semicolons, dashes and brackets.
pub(crate) fn segments(text: &str, sentence: Range<usize>) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut from = sentence.start;
    for (at, c) in separators(text, sentence.clone()) {
        out.push(from..at);
        from = at + c.len_utf8();
    }
    out.push(from..sentence.end);
    out.retain(|range| !range.is_empty());
    out
}

/// Blanks out ranges of a text; all other bytes keep their positions.
pub(crate) fn without(text: &str, ranges: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for range in ranges {
        if range.start < from {
            continue;
        }
        out.push_str(slice(text, from..range.start));
        out.extend(std::iter::repeat_n(' ', range.len()));
        from = range.end;
    }
    out.push_str(slice(text, from..));
    out
}

#[cfg(test)]
mod tests {
    use super::super::reading::Reading;
    use super::super::weights::Weights;
    use super::*;

    fn tools() -> (Words, Lexicon) {
        let weights = Weights::shipped().unwrap();
        let words = Words::new(weights.stop_words.clone());
        let lexicon = Lexicon::new(&weights.phrases, &words);
        (words, lexicon)
    }

    #[test]
    fn the_head_and_its_verb_are_found() {
        let (words, lexicon) = tools();
        let task = |intent: &str| {
            let reading = Reading::new(intent, &words);
            let task = Task::read(intent, &reading.words, &words, &lexicon);
            (intent[task.head.clone()].to_owned(), task.verb.map(|at| reading.as_typed(at).to_owned()))
        };
        let found = |head: &str, verb: Option<&str>| (head.to_owned(), verb.map(str::to_owned));
        assert_eq!(
            task("Please write homepage copy for a tool that automates employee onboarding"),
            found("write homepage copy", Some("write"))
        );
        assert_eq!(
            task("We have a meeting on Monday. Could you please review my pull request before it?"),
            found("review my pull request", Some("review"))
        );
        assert_eq!(task("weather in Paris tomorrow"), found("weather in Paris tomorrow", None));
        assert_eq!(task("I need to convert the data in report.csv to JSON").0, "convert the data in");
        assert_eq!(task("```\nrm -rf\n```\nexplain this command").0, "explain this command");
    }

    #[test]
    fn a_skill_has_verbs_and_clauses() {
        let (words, lexicon) = tools();
        let text = "Extracts tables from PDF files, and forms. It is quick. Use when the user asks to merge invoices.";
        let found = phrasing("convert pdf", text, &words, &lexicon);
        for verb in ["convert", "extract", "merg"] {
            assert!(found.verbs.contains(&verb.to_owned()), "{verb}: {:?}", found.verbs);
        }
        assert!(found.clauses.contains(&vec!["form".to_owned()]), "{:?}", found.clauses);
        assert!(found.clauses.contains(&["extract", "file", "pdf", "tabl"].map(str::to_owned).to_vec()));
    }

    #[test]
    fn only_exclusions_are_removed() {
        let (_, lexicon) = tools();
        let left = |text: &str| {
            let ranges = exclusion_ranges(text, &lexicon);
            let left = without(text, &ranges);
            assert_eq!(left.len(), text.len());
            left.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(left("Makes tables. Not for forms. Fast."), "Makes tables. Fast.");
        assert_eq!(left("Reads logs (does not join them), and prints."), "Reads logs ( ), and prints.");
        assert_eq!(left("Plans trips. For hotels, see hotel-finder."), "Plans trips.");
        assert_eq!(left("Draws charts, not for maps"), "Draws charts,");
        assert_eq!(
            left("Draws charts.\nNot for maps (use atlas), plans,\nor towns.\nFast."),
            "Draws charts. Fast."
        );
        assert_eq!(left("Draws charts. Not for:\n- maps\n- plans\n\nFast."), "Draws charts. Fast.");
        assert_eq!(left("Draws. **Do not use for:**\n- maps\n- plans\nFast."), "Draws. Fast.");
        assert_eq!(left("Draws. Do not use for:\n1. maps of towns\n2. plans\nFast."), "Draws. Fast.");
        assert_eq!(left("Draws charts. Not for maps or\nPlans. Fast."), "Draws charts. Fast.");
        assert_eq!(left("- Fast.\n- Not for maps\n- Small"), "- Fast. - - Small");
        assert_eq!(
            left("Use it even if the user does not say so."),
            "Use it even if the user does not say so."
        );
        assert_eq!(left("Sorts lists rather than tables."), "Sorts lists rather than tables.");
    }

    #[test]
    fn exclusions_inside_a_sentence_are_removed() {
        let (_, lexicon) = tools();
        let excluded = |text: &str| {
            let ranges = exclusion_ranges(text, &lexicon).into_iter();
            ranges.map(|range| text[range].trim().to_owned()).collect::<Vec<_>>()
        };
        for (text, expected) in [
            ("Not legal advice, and not for holes in packages.", "and not for holes in packages."),
            ("Lists licenses and not for holes. Fast.", "and not for holes."),
            ("Lists licenses, nor for holes.", "nor for holes."),
            (
                "Also not for projects that stay on an old version.",
                "Also not for projects that stay on an old version.",
            ),
            ("Ports programs (and also not for new ones).", "and also not for new ones"),
            ("Ports programs, NOT for writing new programs", "NOT for writing new programs"),
            ("Ports programs NOT for writing new programs", "NOT for writing new programs"),
            ("Ports programs, but not intended for new ones; fast.", "but not intended for new ones"),
            ("Ports 'old' programs, the user's too, and not for new ones.", "and not for new ones."),
            ("This skill is not for new programs.", "This skill is not for new programs."),
            ("Should not be used for new programs.", "Should not be used for new programs."),
            ("Ports code. It must not be used for maps.", "It must not be used for maps."),
            ("Never used for maps.", "Never used for maps."),
            ("It does not support maps.", "It does not support maps."),
            ("This skill does not support maps, but towns.", "This skill does not support maps,"),
            ("Reads \"a; b\" files, not for maps.", "not for maps."),
            ("Use it when porting programs, NOT for writing new ones.", "NOT for writing new ones."),
            ("A skill not intended for direct use", "skill not intended for direct use"),
            ("Draws maps. A skill that is not meant for plans.", "skill that is not meant for plans."),
            (
                "Draws. NOT FOR: maps (use atlas), plans or towns.",
                "NOT FOR: maps (use atlas), plans or towns.",
            ),
            ("Draws. Not for (1) maps; fast", "Not for (1) maps"),
            ("Draws (not for maps [of towns], plans) quickly.", "not for maps [of towns], plans"),
            ("Draws. Not for maps, e.g. of towns. Fast.", "Not for maps, e.g. of towns."),
            ("Draws \"plans.\" Not for maps.", "Not for maps."),
            ("Draws \"plans.\" For maps, see atlas.", "For maps, see atlas."),
            ("Draws plans. For maps, prefer the atlas skill.", "For maps, prefer the atlas skill."),
            ("Draws plans. For maps, use atlas directly.", "For maps, use atlas directly."),
            ("Draws plans - for maps, use atlas.", "for maps, use atlas."),
            ("This skill isn't for maps.", "This skill isn't for maps."),
            ("Draws plans. It doesn't support maps.", "It doesn't support maps."),
            ("Draws plans; on paper, do not auto-draw maps.", "do not auto-draw maps."),
            ("Draws. Do not use for: - maps - plans of towns", "Do not use for: - maps - plans of towns"),
            ("Draws plans, but never use it for maps.", "never use it for maps."),
            ("Draws plans. Drawing maps is out of scope.", "Drawing maps is out of scope."),
            (
                "Draws plans; maps and towns are out of scope for it.",
                "maps and towns are out of scope for it.",
            ),
            ("Draws plans. When NOT to use: maps, towns.", "When NOT to use: maps, towns."),
            ("Draws. Not for: maps; plans of towns; globes.", "Not for: maps; plans of towns; globes."),
            ("Draws. Do not use it for: maps; towns. Fast.", "Do not use it for: maps; towns."),
            ("Draws. Not for: maps; use it for plans.", "Not for: maps"),
            ("Draws. Not for maps — use atlas for those.", "Not for maps — use atlas for those."),
            ("Draws. NOT for maps - use the atlas skill.", "NOT for maps - use the atlas skill."),
            ("Draws. Not for maps; that is atlas. Fast.", "Not for maps; that is atlas."),
            (
                "Draws. Not for maps (those are geography — see atlas).",
                "Not for maps (those are geography — see atlas).",
            ),
            ("Draws. Not for maps — applies to plans.", "Not for maps"),
            ("Draws. Not for maps; use when a plan is needed.", "Not for maps"),
            ("Draws. Not for maps; use it to plan.", "Not for maps"),
        ] {
            assert_eq!(excluded(text), [expected], "{text}");
        }
        for text in [
            "Decides whether or not for each file a test exists.",
            "Keeps the books of startups, not-for-profit organizations and schools.",
            "Not-for-profit accounting, and not for profit schools.",
            "Writes mails, not only for customers and not just for partners.",
            "Use when a file is for review, and not for release.",
            "Use if the change is large and not for production.",
            "Checks whether a package is for tests, and not for release.",
            "Use even if the request says it is done, and not for whom.",
            "Use for a note such as \"wip; also not for release\" in a ticket.",
            "Answers “yes, and not for long” to users.",
            "Answers 'yes, and not for long' to users.",
            "Runs `build, not for release`.",
            "Finds films that are not for children.",
            "Flags texts not suitable for children.",
            "Finds tools and films not suitable for children.",
            "Fixes webhooks that do not trigger on push events, for teams who don't use Git.",
        ] {
            assert_eq!(excluded(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn purpose_of_a_skill_stays_in_the_index() {
        let (_, lexicon) = tools();
        let excluded = |text: &str| {
            let ranges = exclusion_ranges(text, &lexicon).into_iter();
            ranges.map(|range| text[range].trim().to_owned()).collect::<Vec<_>>()
        };
        for (text, expected) in [
            ("Not for quotes, only for invoices and receipts.", "Not for quotes,"),
            ("Not for vegetables but for flowers.", "Not for vegetables"),
            ("Do not use unless the user mentions Kubernetes.", "Do not use"),
            ("Do not use when there is no Dockerfile.", "Do not use when"),
            ("Do not use for crashes unrelated to the environment setup.", "Do not use for crashes"),
            ("Not for networks without explicit approval.", "Not for networks"),
        ] {
            assert_eq!(excluded(text), [expected], "{text}");
        }
        assert_eq!(
            excluded("Not for maps (except of towns), plans (of any) or globes."),
            ["Not for maps (", ", plans (of any) or globes."]
        );
        assert_eq!(
            excluded(
                "Not for roads, maps without a legend, globes, or towns without streets, lanes or squares."
            ),
            ["Not for roads, maps", ", globes, or towns"]
        );
        assert_eq!(
            excluded("Not for plans without a value to find: maps, towns."),
            ["Not for plans", ": maps, towns."]
        );
        assert_eq!(
            excluded("Not for maps, but also not for towns."),
            ["Not for maps,", "also not for towns."]
        );
        for text in [
            "Does not require an API key.",
            "Doesn't need a server.",
            "Never lose a notebook again.",
            "Never write boilerplate again: generates forms and tests.",
            "Marks checks that it cannot see out of scope.",
            "Excludes generated files from a coverage report.",
            "Finds out why workflows do not trigger after a push.",
            "Do not use hooks yet? Rewrites classes.",
            "Don't panic: restores deleted files.",
            "For dynamic sites, use Playwright.",
            "For a dark theme, use navy.",
            "Teaches when to use effects and when not to use effects.",
            "Do not forget deductions.",
            "Don't hesitate to mention the piano.",
            "Do not stop until clippy passes.",
            "Does not only translate idioms.",
            "Never used Terraform before? This explains it.",
            "It must not be lost.",
            "Use it when a library does not support Windows.",
            "For keyword research, see references/keywords.md.",
            "For openings, use the opening book in this skill.",
            "For PDF forms, use this skill.",
            "For tables, see TABLES.md for the format.",
        ] {
            assert_eq!(excluded(text), Vec::<String>::new(), "{text}");
        }
        for text in
            ["For hotels, see hotel-finder.", "For sheets, use xlsx.", "For maps, use the skill atlas."]
        {
            assert_eq!(excluded(text), [text], "{text}");
        }
    }

    #[test]
    fn limits_of_a_skill_leave_the_index() {
        let (_, lexicon) = tools();
        for (text, expected) in [
            ("Merges PDFs. Should not be used to split PDFs.", "Should not be used to split PDFs."),
            ("Merges PDFs. Should not be used for signatures.", "Should not be used for signatures."),
            ("Merges PDFs. It shouldn't be used to sign them.", "It shouldn't be used to sign them."),
            ("Merges PDFs. Shouldn't be used with scans.", "Shouldn't be used with scans."),
            ("Plans diets. Must not be used as medical advice.", "Must not be used as medical advice."),
            (
                "Reads logs. This skill should not be used to delete logs.",
                "This skill should not be used to delete logs.",
            ),
            (
                "Tests pages. This tool may not be used on production sites.",
                "This tool may not be used on production sites.",
            ),
            ("Resizes images. It cannot remove backgrounds.", "It cannot remove backgrounds."),
            ("Resizes images; it can't upscale photos.", "it can't upscale photos."),
            ("Resizes images. It can not add text.", "It can not add text."),
            ("Resizes images. This skill cannot edit videos.", "This skill cannot edit videos."),
            ("Reads CSV files. This tool can't open workbooks.", "This tool can't open workbooks."),
            ("Reads CSV files (it cannot write them).", "it cannot write them"),
            ("Reviews plans — it cannot approve them.", "it cannot approve them."),
            ("The skill cannot send mail.", "The skill cannot send mail."),
            ("Resizes images. Does not edit videos.", "Does not edit videos."),
            ("Resizes images. It does not edit videos.", "It does not edit videos."),
            ("Resizes images. It doesn't crop them.", "It doesn't crop them."),
            ("Writes posts. This skill does not publish posts.", "This skill does not publish posts."),
            ("Writes posts. The tool doesn't schedule them.", "The tool doesn't schedule them."),
            ("Surfaces analysis only — does not recommend a price.", "does not recommend a price."),
            (
                "Shows margins. It does not recommend a price, but compares costs.",
                "It does not recommend a price,",
            ),
            ("Reads PDFs. Scanned pages are not supported.", "Scanned pages are not supported."),
            (
                "Reads PDFs. Passwords, forms and scans are not supported.",
                "Passwords, forms and scans are not supported.",
            ),
            ("Reads PDFs; OCR is not supported.", "OCR is not supported."),
            ("Reads PDFs. OCR is not yet supported.", "OCR is not yet supported."),
            ("Reads PDFs. OCR is currently not supported.", "OCR is currently not supported."),
            ("Deploys to clusters. Windows nodes are unsupported.", "Windows nodes are unsupported."),
            ("Deploys to clusters (Windows nodes aren't supported).", "Windows nodes aren't supported"),
            ("Draws charts, but maps are not supported.", "but maps are not supported."),
            ("Draws charts. Maps are not supported, but towns are.", "Maps are not supported, "),
            ("Backs up folders. No support for Windows.", "No support for Windows."),
            ("Backs up folders; no support for cloud buckets.", "no support for cloud buckets."),
            ("Backs up folders, no support for databases.", "no support for databases."),
            ("Backs up folders, but no support for databases.", "but no support for databases."),
            ("Writes tests. Only for pytest, not unittest or doctest.", "not unittest or doctest."),
            ("Explains methods. Teaches thinking, not commands.", "not commands."),
            ("Builds engines, not the outreach on top of them.", "not the outreach on top of them."),
            ("Summarizes rulings, not legal advice!", "not legal advice!"),
            ("Plans work, not deciding what to build.\nFast.", "not deciding what to build."),
            ("Use for invoices (not quotes) of customers.", "not quotes"),
            ("Assesses risks (not a maturity score) of a firm.", "not a maturity score"),
            ("Use for invoices (but not receipts, orders).", "but not receipts, orders"),
            ("Captures leads [not accounts].", "not accounts"),
            ("Finds intruders; not a substitute for hosts.", "not a substitute for hosts."),
            ("Draws a list. NOT a virtualized list.", "NOT a virtualized list."),
            ("Tunes SQL. Is not for MongoDB.", "Is not for MongoDB."),
            ("Tunes SQL. This tool isn't suitable for Redis.", "This tool isn't suitable for Redis."),
        ] {
            let clauses = exclusion_ranges(text, &lexicon).into_iter();
            let found: Vec<&str> = clauses.map(|range| text[range].trim()).collect();
            assert_eq!(found, [expected.trim()], "{text}");
        }
        let text = "Do not use for Xamarin apps, crashes unrelated to the setup, or store publishing.";
        let left = without(text, &exclusion_ranges(text, &lexicon));
        assert_eq!(left.trim(), "unrelated to the setup");
    }

    #[test]
    fn limits_in_other_languages_leave_the_index() {
        let (_, lexicon) = tools();
        for (text, expected, subject) in [
            (
                "Liest CSV. Nicht für Excel-Dateien verwenden.",
                "Nicht für Excel-Dateien verwenden.",
                "Excel-Dateien verwenden.",
            ),
            ("Prüft Texte. Nicht geeignet für Verträge.", "Nicht geeignet für Verträge.", "für Verträge."),
            ("Prüft Texte. Nicht zum Übersetzen.", "Nicht zum Übersetzen.", "Übersetzen."),
            ("Prüft Texte. Ungeeignet für Verträge.", "Ungeeignet für Verträge.", "Verträge."),
            ("Prüft Texte. Keine Unterstützung für Word.", "Keine Unterstützung für Word.", "Word."),
            ("Prüft Texte, nicht für Verträge.", "nicht für Verträge.", "Verträge."),
            (
                "Lit des PDF. Ne pas utiliser pour les images.",
                "Ne pas utiliser pour les images.",
                "les images.",
            ),
            (
                "Lit des PDF. N'utilisez pas avec des images.",
                "N'utilisez pas avec des images.",
                "avec des images.",
            ),
            ("Lit des PDF. Ne convient pas aux images.", "Ne convient pas aux images.", "images."),
            ("Lit des PDF. Non destiné aux images.", "Non destiné aux images.", "images."),
            (
                "Lit des PDF. N’est pas conçu pour les images.",
                "N’est pas conçu pour les images.",
                "les images.",
            ),
            ("Lit des PDF, pas pour les images.", "pas pour les images.", "les images."),
            ("Lee PDF. No usar para imágenes.", "No usar para imágenes.", "imágenes."),
            ("Lee PDF. No es adecuado para imágenes.", "No es adecuado para imágenes.", "imágenes."),
            ("Lee PDF. No apto para imágenes.", "No apto para imágenes.", "imágenes."),
            ("Lee PDF. No sirve para imágenes.", "No sirve para imágenes.", "imágenes."),
            ("Lee PDF, no para imágenes.", "no para imágenes.", "imágenes."),
            ("审查合同条款。不适用于劳动合同。", "不适用于劳动合同。", "劳动合同"),
            ("审查合同条款，但不适用于劳动合同。", "但不适用于劳动合同。", "劳动合同"),
            ("审查合同（不支持劳动合同），快。", "不支持劳动合同）", "劳动合同"),
            ("审查合同。请勿用于劳动合同、租约。", "请勿用于劳动合同、租约。", "劳动合同、租约"),
            ("議事録を作成する。契約書には使用しない。", "契約書には使用しない。", "契約書"),
            (
                "議事録を作成し、契約書、請求書は対象外です。",
                "契約書、請求書は対象外です。",
                "契約書、請求書",
            ),
            ("議事録を作成する。動画には対応していません。", "動画には対応していません。", "動画"),
        ] {
            let clauses = exclusion_clauses(text, &lexicon).into_iter();
            let found: Vec<(&str, &str)> =
                clauses.map(|one| (text[one.clause].trim(), text[one.subject].trim())).collect();
            assert_eq!(found, [(expected, subject)], "{text}");
        }
        for text in [
            "Findet heraus, warum Tests nicht laufen.",
            "Explique pourquoi un test ne passe pas.",
            "Explica por qué no hay pruebas.",
            "检查浏览器不支持的功能。",
            "当构建不支持缓存时使用。",
            "回答“不适用于合同”的提问。",
            "対応していない文書を変換する。",
            "使用しない変数を見つける。",
        ] {
            assert_eq!(exclusion_clauses(text, &lexicon), [], "{text}");
        }
    }

    #[test]
    fn negations_about_other_things_stay_in_the_index() {
        let (_, lexicon) = tools();
        for text in [
            "Sends mail. It does not require an API key.",
            "Runs offline. This skill doesn't need a server.",
            "Formats code. It does not change its meaning.",
            "Compresses images. This tool does not affect quality.",
            "Shares sessions. It does not break scrollback.",
            "Blocks orders. Does not allow negative stock.",
            "Reads feeds. It doesn't depend on a browser.",
            "Explains art. It does not just list painters.",
            "Never write boilerplate again: generates forms and tests.",
            "Never lose a note.",
            "Not a problem: restores deleted files.",
            "Use when the user says things like: no thanks; not a good idea; never mind that again.",
            "Not a developer? Explains errors in plain words.",
            "Not only draws charts but animates them.",
            "Writes mails, not just for customers.",
            "Commits changes with the reason, not just the files.",
            "Makes pages feel like stories, not only pages.",
            "Builds no code automations.",
            "Creates no-code tables and forms.",
            "Use when tests do not pass.",
            "Use if the build doesn't compile.",
            "Use when a page cannot load.",
            "Use when the user can't log in to a cluster.",
            "Use when the build fails; it does not compile.",
            "Use when an app crashes - it cannot open a window.",
            "Debugs clusters that cannot pull images.",
            "Finds anti-patterns that regular expressions cannot match.",
            "Turns a decision you can't answer into a questionnaire.",
            "Cannot connect to a database: finds the reason.",
            "Can't decide between two databases? Compares them.",
            "It cannot be undone, so asks before deleting branches.",
            "Explains to people what they should not do with secrets.",
            "Finds secrets that should not be committed.",
            "Blocks claims that are not supported by evidence.",
            "Use when a browser version is not supported.",
            "Explains why a codec is not supported.",
            "Converts the pages of a book to text, old fonts are not supported.",
            "Written by volunteers and is not supported by the vendor.",
            "Finds features which are unsupported in Safari.",
            "Adds a migration, no support for it required.",
            "No support for old parsers is needed.",
            "Those are other tasks, not prompt optimization.",
            "SHA3 of the standard is not Keccak, not the hash of Ethereum.",
            "Use when checking whether a model acts, not comprehends.",
            "NIST SHA3, not Ethereum Keccak, breaks selectors and storage slots.",
            "Works for JSON (but not limited to it).",
            "Collects helpers (not only for tests).",
            "Notes the proposed changes (not yet final).",
            "Keeps books (not-for-profit) of clubs.",
            "Serves cities, not-for-profit hospitals and schools.",
            "Answers \"done, not tested.\" to reviews.",
            "Creates an archive, excluding files that match a pattern.",
            "Bans all modules except the allowed ones.",
            "Unlike and like posts of other users.",
            "Unlike Selenium, waits for elements.",
            "Explains what it does when tests do not fail.",
            "Asks whether this should not be used to test.",
        ] {
            let found = exclusion_clauses(text, &lexicon);
            let found: Vec<&str> = found.into_iter().map(|one| &text[one.clause]).collect();
            assert_eq!(found, Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn the_subject_of_an_exclusion_is_what_follows_its_cue() {
        let (_, lexicon) = tools();
        for (text, expected) in [
            ("Makes tables. Not for filling in forms.", "filling in forms."),
            ("Makes tables; do not use with images", "with images"),
            ("Makes tables, and not suitable for maps.", "maps."),
            ("Makes tables. Never use for maps.", "for maps."),
            ("Makes tables. For hotels in Rome, see hotel-finder.", "hotels in Rome"),
            ("Makes tables. Hotels in Rome are out of scope.", "Hotels in Rome"),
            ("Makes tables. Not for hotels; use atlas for those.", "hotels"),
        ] {
            let clauses = exclusion_clauses(text, &lexicon);
            let subjects: Vec<&str> = clauses.into_iter().map(|one| text[one.subject].trim()).collect();
            assert_eq!(subjects, [expected], "{text}");
        }
    }

    #[test]
    fn an_exclusion_ends_with_its_segment() {
        let (_, lexicon) = tools();
        for join in [", not", ", and not", " and not", ", but not", ", also not", " NOT"] {
            for condition in ["", "if ", "when ", "whether "] {
                for after in [". Fast.", "; fast", ""] {
                    for negation in ["for", "meant for", "suitable for"] {
                        let text = format!("Reads {condition}data{join} {negation} maps of towns{after}");
                        let left = without(&text, &exclusion_ranges(&text, &lexicon));
                        let words = left.split_whitespace().collect::<Vec<_>>().join(" ");
                        let rest = if after == ". Fast." { "Fast." } else { after.trim() };
                        if condition.is_empty() || join == " NOT" {
                            let words = words.replacen("data,", "data", 1).replacen("data;", "data ;", 1);
                            assert_eq!(words, format!("Reads {condition}data {rest}").trim(), "{text}");
                        } else {
                            assert_eq!(left, text);
                        }
                    }
                }
            }
        }
    }
}
