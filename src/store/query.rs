//! The filter language of the run list: `state:failed skill:deploy* age:>1h -error:timeout 4711`.
//!
//! All terms must match; `-` negates a term; double quotes group words and make colons and commas literal. A term with a
//! key compares one field, some with several values: `error:503,circuit`; a word without a key is searched for in the
//! id, the skill, the step, the inputs and the error.

use std::time::Duration;

use serde_json::Value;

use crate::RunRecord;
pub(crate) use skills_base::duration::to_millis as millis;
use skills_base::suggest::nearest_name;
use skills_model::RunState;

/// A parsed filter. An empty one matches every run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunQuery {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Term {
    pub negated: bool,
    pub test: Test,
}

/// The comparison of a term.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    States(Vec<RunState>),
    /// It waits for a decision because the outcome of a step is unknown.
    UnknownOutcome,
    Skill(Pattern),
    Title(Pattern),
    Label(String, Pattern),
    /// Part of the name of the assignee.
    Assigned(String),
    /// Part of the id of the worker that has the lease.
    Worker(String),
    Step(Pattern),
    Id(String),
    StartedBy(String),
    /// A prefix of the trace id.
    Trace(String),
    /// The part of the error that every caller may see.
    Error(String),
    /// The complete error, with addresses and responses.
    Detail(String),
    Target(String),
    /// A value in the inputs, by path.
    Input(Vec<String>, Comparison),
    /// Time since the run was created.
    Age(Ordering, Duration),
    /// Time in the current state.
    InState(Ordering, Duration),
    Word(String),
    /// One of several values of a key.
    Any(Vec<Test>),
}

/// A text in which `*` matches any characters; ASCII case is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(pub String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ordering {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Comparison {
    Like(Pattern),
    Number(Ordering, f64),
}

/// Keys of terms, with an example of each.
pub const QUERY_KEYS: [(&str, &str); 16] = [
    ("state", "state:failed,canceled"),
    ("skill", "skill:deploy*"),
    ("step", "step:book"),
    ("age", "age:>1h"),
    ("since", "since:<10m"),
    ("error", "error:\"connection refused\""),
    ("detail", "detail:10.0.0.7"),
    ("input", "input.region:eu*"),
    ("title", "title:deploy*"),
    ("label", "label.env:prod"),
    ("by", "by:kim"),
    ("assigned", "assigned:kim"),
    ("worker", "worker:build-2"),
    ("id", "id:4f1c"),
    ("trace", "trace:4bf92f35"),
    ("target", "target:report.md"),
];

/// Keys that take several values, besides `state:`, `label.NAME:` and `input.NAME:`. Values of the others are free text,
/// in which a comma is usual.
const LIST_KEYS: [&str; 8] = ["skill", "step", "error", "by", "assigned", "worker", "id", "trace"];

/// Returns whether a key takes several values, of which one has to match.
pub(crate) fn takes_several(key: &str) -> bool {
    key == "state" || LIST_KEYS.contains(&key) || key.starts_with("label.") || key.starts_with("input.")
}

/// Returns the states for a name in a filter: a state, or a group of states.
pub(crate) fn states_of(name: &str) -> Option<Vec<RunState>> {
    Some(match name {
        "waiting" => vec![RunState::WaitingForHuman, RunState::WaitingForSignal],
        "open" => RunState::OPEN.to_vec(),
        "ended" => RunState::ENDED.to_vec(),
        name => vec![name.parse().ok()?],
    })
}

/// Names of states and groups of states in a filter.
pub const QUERY_STATES: [&str; 12] = [
    "failed",
    "waiting",
    "waiting_for_human",
    "waiting_for_signal",
    "open",
    "ended",
    "pending",
    "running",
    "replaying",
    "completed",
    "canceled",
    UNKNOWN,
];

/// Waiting for a decision because the outcome of a step is unknown.
const UNKNOWN: &str = "unknown";

/// Why a text is not a valid filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QueryError(String);

/// Fields of a run's error that only callers with the scope `admin` may see.
pub(crate) const PRIVATE_FIELDS: [&str; 3] = ["detail", "binding", "tried"];

/// Fields of a run's target that `target:` compares. Its content can hold errors of other runs.
pub(crate) const TARGET_FIELDS: [&str; 3] = ["type", "ref", "run"];

/// Maximum number of terms in a filter: `SQLite` rejects expressions deeper than about a thousand.
const MAX_TERMS: usize = 64;
/// Maximum number of characters of a filter.
const MAX_LEN: usize = 4_096;
/// Maximum number of characters of a value or a search text: the database compares it with each position of the inputs.
pub(crate) const MAX_TEXT_LEN: usize = 256;

impl RunQuery {
    /// Parses a filter.
    ///
    /// # Errors
    /// Returns an error for an unknown key, state, duration or number, or an unclosed quote; the message names what is
    /// allowed.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        if text.chars().count() > MAX_LEN {
            return Err(QueryError(format!("a filter has at most {MAX_LEN} characters")));
        }
        let mut terms = Vec::new();
        let mut count = 0;
        for token in tokens(text)? {
            let test = test(&token)?;
            count += if let Test::Any(tests) = &test { tests.len() } else { 1 };
            if count > MAX_TERMS {
                return Err(QueryError(format!("a filter has at most {MAX_TERMS} terms")));
            }
            terms.push(Term { negated: token.negated, test });
        }
        Ok(Self { terms })
    }

    /// Returns whether it compares error details that only some callers may see: a match would reveal them.
    pub fn compares_details(&self) -> bool {
        self.has(|test| matches!(test, Test::Detail(_)))
    }

    /// Returns whether it matches every run.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns whether it compares texts of any length.
    pub(crate) fn searches_long_texts(&self) -> bool {
        self.has(|test| {
            matches!(
                test,
                Test::Input(..) | Test::Word(_) | Test::Error(_) | Test::Detail(_) | Test::Target(_)
            )
        })
    }

    fn has(&self, kind: impl Fn(&Test) -> bool) -> bool {
        self.terms.iter().any(|term| match &term.test {
            Test::Any(tests) => tests.iter().any(&kind),
            test => kind(test),
        })
    }

    pub(crate) fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Returns whether a run certainly matches at a moment (milliseconds since 1970-01-01 UTC).
    pub fn matches(&self, run: &RunRecord, now_ms: i64) -> bool {
        self.evaluate(run, now_ms) == Some(true)
    }

    /// Returns whether a run matches at a moment (milliseconds since 1970-01-01 UTC); `None` if that depends on inputs that
    /// its record leaves out, so that only the store knows it.
    pub fn evaluate(&self, run: &RunRecord, now_ms: i64) -> Option<bool> {
        let result = |term: &Term| term.test.evaluate(run, now_ms).map(|is_match| is_match != term.negated);
        all(self.terms.iter().map(result))
    }
}

/// Returns whether all of several conditions hold, of which some may be unknown.
fn all(conditions: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut is_known = true;
    for condition in conditions {
        match condition {
            Some(true) => {}
            Some(false) => return Some(false),
            None => is_known = false,
        }
    }
    is_known.then_some(true)
}

impl Test {
    /// Returns whether a run matches; `None` if that depends on inputs that its record leaves out.
    fn evaluate(&self, run: &RunRecord, now_ms: i64) -> Option<bool> {
        match self {
            Self::Input(..) if run.lacks_inputs() => None,
            Self::Word(_) if run.lacks_inputs() => self.matches(run, now_ms).then_some(true),
            // One of several values matches unless none of them does.
            Self::Any(tests) => {
                let differs = |test: &Test| test.evaluate(run, now_ms).map(|is_match| !is_match);
                all(tests.iter().map(differs)).map(|none| !none)
            }
            _ => Some(self.matches(run, now_ms)),
        }
    }

    fn matches(&self, run: &RunRecord, now_ms: i64) -> bool {
        let json = |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
        let public = |error: &Option<Value>| error.as_ref().map(public_error).unwrap_or_default();
        match self {
            Self::States(states) => states.contains(&run.state),
            Self::UnknownOutcome => run.state == RunState::WaitingForHuman && run.is_outcome_unknown(),
            Self::Skill(pattern) => pattern.matches(&run.skill_id),
            Self::Title(pattern) => run.title().is_some_and(|title| pattern.matches(title)),
            Self::Label(name, pattern) => {
                run.options.labels.get(name).is_some_and(|value| pattern.matches(value))
            }
            Self::Assigned(text) => {
                run.options.assigned.as_ref().is_some_and(|assigned| contains(&assigned.to, text))
            }
            Self::Worker(text) => {
                let worker = run.lease.as_ref().and_then(|lease| lease.worker.as_ref());
                worker.is_some_and(|worker| contains(&worker.0, text))
            }
            Self::Step(pattern) => run.step.as_deref().is_some_and(|step| pattern.matches(step)),
            Self::Id(text) => contains(&run.id.0, text),
            Self::StartedBy(text) => contains(&run.started_by, text),
            Self::Trace(text) => run.trace_id.starts_with(text),
            // A code is also matched with spaces, as lists show it.
            Self::Error(text) => {
                let code = run.error.as_ref().and_then(|error| error.get("code")?.as_str());
                contains(&public(&run.error), &in_json(text))
                    || code.is_some_and(|code| contains(&code.replace('_', " "), text))
            }
            Self::Detail(text) => contains(&json(&run.error), &in_json(text)),
            Self::Target(text) => {
                let field = |name: &str| run.target.as_ref()?.get(name)?.as_str();
                TARGET_FIELDS.iter().filter_map(|name| field(name)).any(|value| contains(value, text))
            }
            Self::Input(path, comparison) => {
                let value = path.iter().try_fold(&run.inputs, |value, name| value.as_object()?.get(name));
                value.is_some_and(|value| comparison.matches(value))
            }
            Self::Age(ordering, age) => ordering.is_met(now_ms - run.created_ms, millis(*age)),
            Self::InState(ordering, age) => ordering.is_met(now_ms - run.since_ms, millis(*age)),
            Self::Any(tests) => tests.iter().any(|test| test.matches(run, now_ms)),
            Self::Word(word) => {
                contains(&run.id.0, word)
                    || contains(&run.skill_id, word)
                    || run.step.as_deref().is_some_and(|step| contains(step, word))
                    || (word.len() >= crate::RunFilter::TRACE_PREFIX && run.trace_id.starts_with(word))
                    || run.title().is_some_and(|title| contains(title, word))
                    || (!run.lacks_inputs() && contains(&run.inputs.to_string(), &in_json(word)))
                    || contains(&public(&run.error), &in_json(word))
            }
        }
    }
}

impl Ordering {
    /// Splits an operator off the beginning of a value.
    pub(crate) fn split(value: &str) -> Option<(Self, &str)> {
        let operators =
            [(">=", Self::AtLeast), ("<=", Self::AtMost), (">", Self::Greater), ("<", Self::Less)];
        operators.into_iter().find_map(|(sign, ordering)| Some((ordering, value.strip_prefix(sign)?)))
    }

    pub(crate) fn is_met<T: PartialOrd>(self, value: T, limit: T) -> bool {
        match self {
            Self::Less => value < limit,
            Self::AtMost => value <= limit,
            Self::Greater => value > limit,
            Self::AtLeast => value >= limit,
        }
    }
}

impl Comparison {
    fn matches(&self, value: &Value) -> bool {
        match self {
            Self::Like(pattern) => match value {
                Value::String(text) => pattern.matches(text),
                other => pattern.matches(&other.to_string()),
            },
            Self::Number(ordering, limit) => {
                value.as_f64().is_some_and(|value| ordering.is_met(value, *limit))
            }
        }
    }
}

impl Pattern {
    pub(crate) fn matches(&self, text: &str) -> bool {
        let (text, pattern) = (text.to_ascii_lowercase(), self.0.to_ascii_lowercase());
        let mut pieces = pattern.split('*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let Some(last) = pieces.next_back() else { return rest.is_empty() };
        for part in pieces {
            let Some((_, behind)) = rest.split_once(part) else { return false };
            rest = behind;
        }
        rest.ends_with(last)
    }
}

/// Returns an error without the fields for `admin`. Earlier versions recorded those in the message of a binding's
/// failure.
fn public_error(error: &Value) -> String {
    let Value::Object(fields) = error else { return error.to_string() };
    let message_is_private = fields.contains_key("binding") && !fields.contains_key("detail");
    let mut fields = fields.clone();
    fields.retain(|name, _| {
        let is_private = PRIVATE_FIELDS.contains(&name.as_str()) || (message_is_private && name == "message");
        !is_private
    });
    Value::Object(fields).to_string()
}

fn contains(text: &str, part: &str) -> bool {
    text.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
}

/// Escapes a text for a JSON string.
pub(crate) fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text).to_owned()
}

/// A term of a filter.
pub(crate) struct Token<'t> {
    /// The term as it was typed.
    pub typed: &'t str,
    pub negated: bool,
    pub key: Option<String>,
    pub value: String,
    /// Positions of the commas of the value outside quotes.
    pub commas: Vec<usize>,
}

impl Token<'_> {
    /// Returns the values: several are separated by commas, for a key that takes several.
    fn values(&self) -> Result<Vec<&str>, QueryError> {
        let key = self.key.as_deref().unwrap_or_default();
        // States are one test.
        if !takes_several(key) || key == "state" {
            return Ok(vec![&self.value]);
        }
        let (mut values, mut from) = (Vec::new(), 0);
        for to in self.commas.iter().copied().chain([self.value.len()]) {
            values.push(&self.value[from..to]);
            from = to + 1;
        }
        if values.contains(&"") {
            return Err(QueryError(format!(
                "`{}` has an empty value: write for example `{key}:a,b`, or quote the comma: `{key}:\"a,b\"`",
                self.typed
            )));
        }
        Ok(values)
    }
}

pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, QueryError> {
    let mut out = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((start, first)) = characters.peek().copied() {
        if first.is_whitespace() {
            characters.next();
            continue;
        }
        let mut token =
            Token { typed: "", negated: false, key: None, value: String::new(), commas: Vec::new() };
        if first == '-' {
            token.negated = true;
            characters.next();
        }
        let (mut quoted, mut was_quoted) = (false, false);
        while let Some((_, character)) = characters.next_if(|(_, c)| quoted || !c.is_whitespace()) {
            match character {
                '"' => (quoted, was_quoted) = (!quoted, true),
                '\\' if quoted && matches!(characters.peek(), Some((_, '"' | '\\'))) => {
                    token.value.extend(characters.next().map(|(_, c)| c));
                }
                ':' if !quoted && !was_quoted && token.key.is_none() && is_key(&token.value) => {
                    token.key = Some(lowercase_key(&std::mem::take(&mut token.value)));
                    token.commas.clear();
                }
                ',' if !quoted => {
                    token.commas.push(token.value.len());
                    token.value.push(',');
                }
                other => token.value.push(other),
            }
        }
        let end = characters.peek().map_or(text.len(), |(end, _)| *end);
        token.typed = text.get(start..end).unwrap_or_default();
        if quoted {
            return Err(QueryError(format!("unclosed quote in `{}`", token.typed)));
        }
        if token.value.is_empty() {
            if let Some(key) = token.key.as_deref().and_then(|key| key.split('.').next())
                && !QUERY_KEYS.iter().any(|(name, _)| *name == key)
            {
                return Err(unknown_key(key));
            }
            let typed = token.typed;
            let example = example(typed);
            return Err(QueryError(format!("`{typed}` has no value: write for example `{example}`")));
        }
        out.push(token);
    }
    Ok(out)
}

fn example(typed: &str) -> &'static str {
    let key = typed.trim_start_matches('-').split([':', '.']).next().unwrap_or_default();
    let fallback = if typed.starts_with('-') { "-state:completed" } else { "\"bad gateway\"" };
    QUERY_KEYS.iter().find(|(name, _)| *name == key).map_or(fallback, |(_, example)| example)
}

/// Returns a key in lower case; the name of an input or label after it stays as typed.
fn lowercase_key(text: &str) -> String {
    match text.split_once('.') {
        Some((key, name)) => format!("{}.{name}", key.to_ascii_lowercase()),
        None => text.to_ascii_lowercase(),
    }
}

/// Returns whether text before a colon can only be meant as a key: a known one, or any in lower case.
fn is_key(text: &str) -> bool {
    let is_known = || {
        let key = text.split('.').next().unwrap_or_default();
        QUERY_KEYS.iter().any(|(name, _)| name.eq_ignore_ascii_case(key))
    };
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && (text.starts_with(|c: char| c.is_ascii_lowercase()) || is_known())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn test(token: &Token) -> Result<Test, QueryError> {
    let values = token.values()?.into_iter();
    let mut tests: Vec<Test> = values
        .map(|value| comparison_of(token.key.as_deref(), value.to_owned()))
        .collect::<Result<_, _>>()?;
    Ok(if tests.len() == 1 { tests.remove(0) } else { Test::Any(tests) })
}

fn comparison_of(key: Option<&str>, value: String) -> Result<Test, QueryError> {
    if value.chars().count() > MAX_TEXT_LEN {
        return Err(QueryError(format!("a value in a filter has at most {MAX_TEXT_LEN} characters")));
    }
    let Some(key) = key else { return Ok(Test::Word(value)) };
    Ok(match key {
        "state" => {
            let (mut states, mut is_unknown) = (Vec::new(), false);
            for name in value.split(',') {
                if name == UNKNOWN {
                    is_unknown = true;
                } else {
                    states.extend(states_of(name).ok_or_else(|| unknown("state", name, QUERY_STATES))?);
                }
            }
            match (is_unknown, states.is_empty()) {
                (false, _) => Test::States(states),
                (true, true) => Test::UnknownOutcome,
                (true, false) => Test::Any(vec![Test::UnknownOutcome, Test::States(states)]),
            }
        }
        "skill" => Test::Skill(Pattern(value)),
        "title" => Test::Title(Pattern(value)),
        "assigned" => Test::Assigned(value),
        "worker" => Test::Worker(value),
        "step" => Test::Step(Pattern(value)),
        "id" => Test::Id(value),
        "by" => Test::StartedBy(value),
        "trace" => Test::Trace(value.to_ascii_lowercase()),
        "error" => Test::Error(value),
        "detail" => Test::Detail(value),
        "target" => Test::Target(value),
        "age" => {
            let (ordering, age) = duration(key, &value)?;
            Test::Age(ordering, age)
        }
        "since" => {
            let (ordering, age) = duration(key, &value)?;
            Test::InState(ordering, age)
        }
        key if key.strip_prefix("label.").is_some_and(|name| !name.is_empty()) => {
            Test::Label(key.trim_start_matches("label.").to_owned(), Pattern(value))
        }
        key => match key.strip_prefix("input.") {
            Some(path) if path.split('.').all(|name| !name.is_empty()) => {
                Test::Input(path.split('.').map(str::to_owned).collect(), comparison(key, value)?)
            }
            _ if matches!(key.trim_end_matches('.'), "input" | "label") => {
                let name = key.trim_end_matches('.');
                return Err(QueryError(format!(
                    "`{key}:` needs a name: write for example `{}`",
                    example(name)
                )));
            }
            _ => return Err(unknown_key(key)),
        },
    })
}

fn comparison(key: &str, value: String) -> Result<Comparison, QueryError> {
    let Some((ordering, number)) = Ordering::split(&value) else {
        return Ok(Comparison::Like(Pattern(value)));
    };
    let parsed: Option<f64> = number.parse().ok().filter(|number: &f64| number.is_finite());
    let wrong = || QueryError(format!("`{key}:{value}`: {number:?} is not a number"));
    Ok(Comparison::Number(ordering, parsed.ok_or_else(wrong)?))
}

fn duration(key: &str, value: &str) -> Result<(Ordering, Duration), QueryError> {
    let (ordering, text) = Ordering::split(value).unwrap_or((Ordering::Greater, value));
    let wrong = || {
        QueryError(format!(
            "`{key}:{value}` is not a duration: write `{key}:>90s`, `{key}:>10m`, `{key}:<1h` or `{key}:>2d` (at most \
             36500d)"
        ))
    };
    Ok((ordering, skills_base::duration::parse(text).ok_or_else(wrong)?))
}

fn unknown_key(key: &str) -> QueryError {
    let written = |name: &'static str| match name {
        "input" => "input.NAME",
        "label" => "label.NAME",
        name => name,
    };
    unknown("filter key", key, QUERY_KEYS.map(|(name, _)| written(name)))
}

fn unknown<const N: usize>(what: &str, name: &str, expected: [&'static str; N]) -> QueryError {
    QueryError(match nearest_name(name, expected) {
        Some(near) => format!("unknown {what} `{name}`: did you mean `{near}`?"),
        None => format!("unknown {what} `{name}`; expected one of: {}", expected.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys_are_read_in_any_case() {
        let parse = |text: &str| RunQuery::parse(text).unwrap();
        assert_eq!(parse("STATE:failed -Label.Env:prod"), parse("state:failed -label.Env:prod"));
        assert_ne!(parse("label.Env:prod"), parse("label.env:prod"), "names are case-sensitive");
        assert!(matches!(parse("HTTP:503").terms.as_slice(), [Term { test: Test::Word(_), .. }]));
    }

    #[test]
    fn quotes_group_words_and_make_colons_literal() {
        let query = RunQuery::parse(r#"error:"bad gateway" "http://x" -"a \"b\"" plain"#).unwrap();
        let tests: Vec<(bool, Test)> =
            query.terms.into_iter().map(|term| (term.negated, term.test)).collect();
        assert_eq!(
            tests,
            [
                (false, Test::Error("bad gateway".into())),
                (false, Test::Word("http://x".into())),
                (true, Test::Word("a \"b\"".into())),
                (false, Test::Word("plain".into())),
            ]
        );
    }

    #[test]
    fn commas_outside_quotes_separate_values() {
        let test = |text: &str| RunQuery::parse(text).unwrap().terms.remove(0).test;
        let error = |text: &str| Test::Error(text.into());
        assert_eq!(test("error:503,circuit"), Test::Any(vec![error("503"), error("circuit")]));
        assert_eq!(test("-error:\"a, b\",c"), Test::Any(vec![error("a, b"), error("c")]));
        assert_eq!(test("error:\"a,b\""), error("a,b"));
        assert_eq!(test("title:a,b"), Test::Title(Pattern("a,b".into())));
        let input = |text: &str| Test::Input(vec!["x".into()], Comparison::Like(Pattern(text.into())));
        assert_eq!(test("input.x:a,b"), Test::Any(vec![input("a"), input("b")]));
        assert_eq!(test("input.x:\"a,b\""), input("a,b"));
        assert_eq!(test("a,b"), Test::Word("a,b".into()));
        assert!(RunQuery::parse("error:503,x").unwrap().searches_long_texts());
    }

    #[test]
    fn terms_about_inputs_that_are_left_out_are_unknown() {
        let run = |inputs: Value| -> RunRecord {
            serde_json::from_value(serde_json::json!({
                "id": "a", "skill_id": "pay", "state": "failed", "held": false, "gate": null, "decided": null,
                "contract_digest": "c", "inputs": inputs, "target": null, "options": crate::RunOptions::default(),
                "outputs": null, "error": null, "trace_id": "t", "started_by": "ana", "source": null,
                "progress": [0, 1], "step": null, "head": 0, "fence": 1, "created_ms": 0, "since_ms": 0,
                "expires_ms": null, "allowed": [],
            }))
            .unwrap()
        };
        let (loaded, listed) = (run(serde_json::json!({"to": "mallory", "amount": 5})), run(Value::Null));
        for (text, matches, is_known) in [
            ("input.to:mallory", true, false),
            ("-input.to:mallory", false, false),
            ("input.to:alice,mallory", true, false),
            ("input.amount:>4", true, false),
            ("mallory", true, false),
            ("-mallory", false, false),
            ("null", false, false),
            ("pay", true, true),
            ("-pay", false, true),
            ("state:failed,unknown skill:pay", true, true),
            ("state:waiting input.to:mallory", false, true),
            ("state:failed -input.to:mallory", false, false),
        ] {
            let query = RunQuery::parse(text).unwrap();
            assert_eq!(query.evaluate(&loaded, 0), Some(matches), "{text}");
            assert_eq!(query.evaluate(&listed, 0), is_known.then_some(matches), "{text}");
        }
    }

    #[test]
    fn errors_are_explained() {
        for (text, message) in [
            ("stat:failed", "unknown filter key `stat`: did you mean `state`?"),
            ("state:faild", "unknown state `faild`: did you mean `failed`?"),
            ("colour:red", "unknown filter key `colour`; expected one of: state, skill"),
            ("age:tomorrow", "`age:tomorrow` is not a duration: write `age:>90s`"),
            ("age:>99999999999999999999d", "is not a duration"),
            ("input.total:>many", "`input.total:>many`: \"many\" is not a number"),
            ("input.total:>=many", "`input.total:>=many`: \"many\" is not a number"),
            ("error:503,", "`error:503,` has an empty value: write for example `error:a,b`"),
            ("input.:x", "`input.:` needs a name: write for example `input.region:eu*`"),
            ("label:prod", "`label:` needs a name: write for example `label.env:prod`"),
            ("\"\"", "`\"\"` has no value: write for example `\"bad gateway\"`"),
            ("-by:\"\"", "`-by:\"\"` has no value: write for example `by:kim`"),
            ("skill:", "`skill:` has no value: write for example `skill:deploy*`"),
            ("-", "`-` has no value"),
            ("error:\"open", "unclosed quote in `error:\"open`"),
            ("a -error:\"the \\\"x\\\" y", "unclosed quote in `-error:\"the \\\"x\\\" y`"),
            ("-error:503, a", "`-error:503,` has an empty value: write for example `error:a,b`"),
            ("y:", "unknown filter key `y`; expected one of: state, skill"),
        ] {
            let error = RunQuery::parse(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        assert!(RunQuery::parse("  ").unwrap().is_empty());
    }

    #[test]
    fn every_suggested_key_and_state_is_parsed() {
        for (key, example) in QUERY_KEYS {
            assert!(example.starts_with(key) && RunQuery::parse(example).is_ok(), "{example}");
        }
        for state in QUERY_STATES {
            assert!(RunQuery::parse(&format!("state:{state}")).is_ok(), "{state}");
        }
    }

    #[test]
    fn filter_has_a_limited_size() {
        assert!(RunQuery::parse(&"a".repeat(MAX_TEXT_LEN)).is_ok());
        assert!(RunQuery::parse(&"a".repeat(MAX_TEXT_LEN + 1)).is_err());
        assert!(RunQuery::parse(&format!("input.q:{}", "*".repeat(MAX_TEXT_LEN + 1))).is_err());
        assert!(RunQuery::parse(&" ".repeat(MAX_LEN)).is_ok());
        assert!(RunQuery::parse(&" ".repeat(MAX_LEN + 1)).is_err());
        assert!(RunQuery::parse(&"a ".repeat(MAX_TERMS)).is_ok());
        assert!(RunQuery::parse(&"a ".repeat(MAX_TERMS + 1)).is_err());
        assert!(RunQuery::parse(&format!("id:{}a", "a,".repeat(MAX_TERMS - 1))).is_ok());
        assert!(RunQuery::parse(&format!("id:{}a", "a,".repeat(MAX_TERMS))).is_err());
    }

    #[test]
    fn patterns_match_from_end_to_end() {
        for (pattern, text, matches) in [
            ("deploy", "deploy", true),
            ("deploy", "deploy-web", false),
            ("deploy*", "Deploy-web", true),
            ("*web", "deploy-web", true),
            ("d*y*b", "deploy-web", true),
            ("a*a", "a", false),
            ("*", "", true),
            ("**x", "x", true),
        ] {
            assert_eq!(Pattern(pattern.into()).matches(text), matches, "{pattern} {text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[a-z:\\-\"\\\\*.,=<>0-9 é]{0,40}") {
            drop(RunQuery::parse(&text));
        }
    }
}
