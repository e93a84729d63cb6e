//! Changes to the text of a filter: the values of one field are alternatives, those of different fields narrow it.

use crate::query::{Ordering, Pattern, Token, states_of, takes_several, tokens};

/// The effect of a term that is added to a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermEffect {
    /// It restricts the runs that match.
    Narrows,
    /// It is a further value of a field, of which one has to match.
    Widens,
    /// The filter has it, so it is removed.
    Removes,
}

/// Returns a filter with a term: a further value of a field that the filter restricts is an alternative; a value that
/// the filter contains is removed; a part of what a value of the filter matches, such as `skill:deploy-web` of
/// `skill:deploy*`, replaces it.
#[must_use]
pub fn with_term(filter: &str, term: &str) -> (String, TermEffect) {
    let appended = || (format!("{} {term}", filter.trim()).trim().to_owned(), TermEffect::Narrows);
    let (Ok(known), Ok(added)) = (tokens(filter), tokens(term)) else { return appended() };
    let [added] = added.as_slice() else { return appended() };
    let Some(key) = added.key.as_deref().filter(|key| takes_several(key)) else {
        let is_known = known.iter().any(|token| token.typed == term);
        return if is_known { (filter.to_owned(), TermEffect::Narrows) } else { appended() };
    };
    let is_of_field = |token: &&Token<'_>| !token.negated && token.key.as_deref() == Some(key);
    let Some(token) = known.iter().rfind(is_of_field) else { return appended() };
    let typed = values(token);
    let mut remaining = Vec::new();
    let mut effect = TermEffect::Widens;
    for (value, text) in &typed {
        if value.eq_ignore_ascii_case(&added.value) {
            effect = TermEffect::Removes;
        } else if covers(key, value, &added.value) {
            effect = TermEffect::Narrows;
        } else {
            remaining.push(text.as_str());
        }
    }
    let new = added.typed.split_once(':').map_or("", |(_, value)| value);
    remaining.extend((effect != TermEffect::Removes).then_some(new));
    let mut out: Vec<String> = Vec::new();
    for other in &known {
        if !std::ptr::eq(other, token) {
            out.push(other.typed.to_owned());
        } else if !remaining.is_empty() {
            out.push(format!("{key}:{}", remaining.join(",")));
        }
    }
    (out.join(" "), effect)
}

/// Returns each field whose value the filter restricts, with the filter without these values: what matches that differs
/// in the field only.
#[must_use]
pub fn without_each_field(filter: &str) -> Vec<(String, String)> {
    let Ok(known) = tokens(filter) else { return Vec::new() };
    let mut fields: Vec<(String, String)> = Vec::new();
    for token in known.iter().filter(|token| !token.negated) {
        let Some(key) = token.key.as_deref().filter(|key| takes_several(key)) else { continue };
        if fields.iter().all(|(field, _)| field != key) {
            let others = known.iter().filter(|other| other.negated || other.key.as_deref() != Some(key));
            let others: Vec<&str> = others.map(|other| other.typed).collect();
            fields.push((key.to_owned(), others.join(" ")));
        }
    }
    fields
}

/// Returns the values of a term, each with its text in the filter.
fn values(token: &Token<'_>) -> Vec<(String, String)> {
    let (mut values, mut from) = (Vec::new(), 0);
    for to in token.commas.iter().copied().chain([token.value.len()]) {
        values.push(token.value.get(from..to).unwrap_or_default().to_owned());
        from = to + 1;
    }
    values.into_iter().map(|value| (value.clone(), quoted_value(&value))).collect()
}

/// Returns a value as it is written in a filter, in quotes if necessary.
#[must_use]
pub fn quoted_value(value: &str) -> String {
    let is_special = |c: char| c.is_whitespace() || matches!(c, '"' | '\\' | ':' | ',');
    if value.is_empty() || value.contains(is_special) {
        return format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
    }
    value.to_owned()
}

/// Returns whether a value of the filter matches runs with another value too, and those with this one.
fn covers(key: &str, value: &str, narrower: &str) -> bool {
    let contains = || narrower.to_ascii_lowercase().contains(&value.to_ascii_lowercase());
    match key {
        "state" => match (states_of(value), states_of(narrower)) {
            (Some(all), Some(some)) => some.iter().all(|state| all.contains(state)),
            _ => false,
        },
        "error" | "by" | "assigned" | "worker" | "id" => contains(),
        "trace" => narrower.to_ascii_lowercase().starts_with(&value.to_ascii_lowercase()),
        _ => match Ordering::split(value) {
            Some((ordering, limit)) => match (narrower.parse::<f64>(), limit.parse::<f64>()) {
                (Ok(number), Ok(limit)) => ordering.is_met(number, limit),
                _ => false,
            },
            None => Pattern(value.to_owned()).matches(narrower),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunQuery;

    #[test]
    fn values_of_one_field_are_alternatives() {
        use TermEffect::{Narrows, Removes, Widens};
        for (filter, term, expected, effect) in [
            ("", "skill:a", "skill:a", Narrows),
            ("state:failed", "skill:a", "state:failed skill:a", Narrows),
            ("skill:a", "skill:b", "skill:a,b", Widens),
            ("skill:a state:failed", "skill:b", "skill:a,b state:failed", Widens),
            ("skill:a,b", "skill:b", "skill:a", Removes),
            ("skill:A state:failed", "skill:a", "state:failed", Removes),
            ("skill:dep*", "skill:deploy", "skill:deploy", Narrows),
            ("state:open", "state:running", "state:running", Narrows),
            ("state:failed", "state:running", "state:failed,running", Widens),
            ("-skill:a", "skill:b", "-skill:a skill:b", Narrows),
            ("error:\"http 503\"", "error:\"a, b\"", "error:\"http 503\",\"a, b\"", Widens),
            ("error:http", "error:\"http 503\"", "error:\"http 503\"", Narrows),
            ("input.region:eu", "input.region:\"a,b\"", "input.region:eu,\"a,b\"", Widens),
            ("input.n:>3", "input.n:5", "input.n:5", Narrows),
            ("label.env:prod word", "label.env:test", "label.env:prod,test word", Widens),
            ("title:a", "title:b", "title:a title:b", Narrows),
            ("word", "word", "word", Narrows),
            ("skill:\"open", "state:failed", "skill:\"open state:failed", Narrows),
        ] {
            assert_eq!(with_term(filter, term), (expected.to_owned(), effect), "{filter} + {term}");
            assert!(RunQuery::parse(expected).is_ok() || filter.ends_with("open"), "{expected}");
        }
    }

    #[test]
    fn each_restricted_field_has_the_filter_of_its_alternatives() {
        let fields = without_each_field("state:failed skill:a -skill:b word skill:c age:>1h");
        let expected = [
            ("state", "skill:a -skill:b word skill:c age:>1h"),
            ("skill", "state:failed -skill:b word age:>1h"),
        ];
        assert_eq!(fields, expected.map(|(key, filter)| (key.to_owned(), filter.to_owned())));
    }
}
