//! A filter of runs as SQL over `runs r`.

use rusqlite::types::Value as Sql;

use crate::query::{Comparison, Ordering, Pattern, Test, in_json, millis};
use crate::{RunFilter, RunQuery};

/// Conditions for all terms of a filter, each led by ` AND `, and the values of their parameters. `state` is the
/// expression for a run's state at this moment.
pub(super) fn conditions(query: &RunQuery, state: &str, now_ms: i64) -> (String, Vec<Sql>) {
    let (mut sql, mut values) = (String::new(), Vec::new());
    for term in query.terms() {
        let condition = condition(&term.test, state, now_ms, &mut values);
        // Of a missing value neither a term nor its negation would be true in SQL.
        let not = if term.negated { "NOT " } else { "" };
        sql += &format!(" AND {not}coalesce({condition}, 0)");
    }
    (sql, values)
}

fn condition(test: &Test, state: &str, now_ms: i64, values: &mut Vec<Sql>) -> String {
    match test {
        Test::States(states) => {
            values.extend(states.iter().map(|state| Sql::from(state.to_string())));
            format!("({state} IN ({}))", vec!["?"; states.len()].join(", "))
        }
        Test::Skill(pattern) => like("r.skill_id", pattern_of(pattern), values),
        Test::Title(pattern) => like("(r.options ->> '$.title')", pattern_of(pattern), values),
        Test::Label(name, pattern) => {
            values.push(Sql::from(format!("$.labels.\"{}\"", name.replace('"', ""))));
            like("(r.options ->> ?)", pattern_of(pattern), values)
        }
        Test::Assigned(text) => like("(r.options ->> '$.assigned.to')", containing(text), values),
        Test::Worker(text) => like("r.worker", containing(text), values),
        Test::Step(pattern) => like("r.step", pattern_of(pattern), values),
        Test::Id(text) => like("r.id", containing(text), values),
        Test::StartedBy(text) => like("r.started_by", containing(text), values),
        Test::Trace(text) => trace(text, values),
        Test::Error(text) => {
            let within = like("r.error", containing(&in_json(text)), values);
            let code = like("replace(r.error ->> '$.code', '_', ' ')", containing(text), values);
            format!("({within} OR coalesce({code}, 0))")
        }
        Test::Target(text) => like("r.target", containing(&in_json(text)), values),
        Test::Input(path, comparison) => input(path, comparison, values),
        Test::Age(ordering, age) => older("r.created_ms", *ordering, now_ms - millis(*age), values),
        Test::InState(ordering, age) => older("r.since_ms", *ordering, now_ms - millis(*age), values),
        Test::Word(word) => {
            let quoted = in_json(word);
            let columns = [
                ("r.id", word),
                ("r.skill_id", word),
                ("r.step", word),
                ("(r.options ->> '$.title')", word),
                ("r.inputs", &quoted),
                ("r.error", &quoted),
            ];
            let mut any: Vec<String> = columns
                .map(|(column, text)| format!("coalesce({}, 0)", like(column, containing(text), values)))
                .into();
            if word.len() >= RunFilter::TRACE_PREFIX {
                any.push(trace(word, values));
            }
            format!("({})", any.join(" OR "))
        }
    }
}

fn like(column: &str, pattern: String, values: &mut Vec<Sql>) -> String {
    values.push(pattern.into());
    format!("({column} LIKE ? ESCAPE '\\')")
}

/// By the index of trace ids.
fn trace(text: &str, values: &mut Vec<Sql>) -> String {
    values.extend([Sql::from(text.to_owned()), Sql::from(format!("{text}{}", char::MAX))]);
    "(r.seq IN (SELECT seq FROM runs WHERE trace_id BETWEEN ? AND ?))".to_owned()
}

/// What happened before a moment is older than the age that the moment stands for.
fn older(column: &str, ordering: Ordering, moment_ms: i64, values: &mut Vec<Sql>) -> String {
    values.push(moment_ms.into());
    match ordering {
        Ordering::Greater => format!("({column} < ?)"),
        Ordering::Less => format!("({column} > ?)"),
    }
}

fn input(path: &[String], comparison: &Comparison, values: &mut Vec<Sql>) -> String {
    let mut json_path = "$".to_owned();
    for name in path {
        json_path += &format!(".\"{}\"", name.replace('"', ""));
    }
    match comparison {
        Comparison::Like(pattern) => {
            values.extend([Sql::from(json_path.clone()), Sql::from(json_path.clone())]);
            values.extend([Sql::from(json_path), Sql::from(pattern_of(pattern))]);
            // Texts without their quotes, everything else as JSON: `true`, `5`, `null`.
            "((CASE json_type(r.inputs, ?) WHEN 'text' THEN r.inputs ->> ? ELSE r.inputs -> ? END) \
             LIKE ? ESCAPE '\\')"
                .to_owned()
        }
        Comparison::Number(ordering, limit) => {
            let sign = if *ordering == Ordering::Less { '<' } else { '>' };
            values.extend([Sql::from(json_path.clone()), Sql::from(json_path), Sql::from(*limit)]);
            format!("(json_type(r.inputs, ?) IN ('integer', 'real') AND (r.inputs ->> ?) {sign} ?)")
        }
    }
}

fn pattern_of(pattern: &Pattern) -> String {
    pattern.0.split('*').map(escaped).collect::<Vec<_>>().join("%")
}

/// A pattern for texts that have this one somewhere in them, whatever the case of its letters.
pub(super) fn containing(text: &str) -> String {
    format!("%{}%", escaped(text))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out
}
