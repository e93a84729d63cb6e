//! Translates a filter of runs to SQL over `runs r`.

use super::{Value, dialect};
use crate::query::{Comparison, Ordering, Pattern, TARGET_FIELDS, Test, in_json, millis};
use crate::{RunFilter, RunQuery};

/// Conditions on `runs r`, and the values of their parameters.
pub(super) struct Conditions<'a> {
    pub postgres: bool,
    /// SQL expression for the current state of a run.
    pub state: &'a str,
    pub now_ms: i64,
    /// Conditions, each with a leading ` AND `.
    pub sql: String,
    pub values: Vec<Value<'static>>,
}

impl Conditions<'_> {
    /// Adds a parameter with this value and returns its placeholder.
    fn bind(&mut self, value: impl Into<Value<'static>>) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    /// Adds the conditions of a filter other than its query.
    pub fn add_fields(&mut self, filter: &RunFilter) {
        if !filter.states.is_empty() {
            let condition = self.states(&filter.states);
            self.sql += &format!(" AND {condition}");
        }
        if let Some(skill) = &filter.skill_id {
            let skill = self.bind(skill.clone());
            self.sql += &format!(" AND r.skill_id = {skill}");
        }
        if let Some(text) = &filter.text {
            let columns = ["r.id", "r.skill_id", "r.step"];
            let mut any = columns.map(|column| self.like(column, &containing(text))).to_vec();
            let is_prefix = text.len() >= RunFilter::TRACE_PREFIX;
            let end = if is_prefix { format!("{text}{}", char::MAX) } else { text.clone() };
            any.push(self.trace(text, end));
            self.sql += &format!(" AND ({})", any.join(" OR "));
        }
        if let Some(trace) = &filter.trace_id {
            let condition = self.trace(trace, trace.clone());
            self.sql += &format!(" AND {condition}");
        }
    }

    /// Adds all terms of a query.
    pub fn add_terms(&mut self, query: &RunQuery) {
        for term in query.terms() {
            let condition = self.condition(&term.test);
            // In SQL neither a comparison with a missing value nor its negation would be true.
            let not = if term.negated { "NOT " } else { "" };
            self.sql += &format!(" AND {not}coalesce({condition}, false)");
        }
    }

    fn condition(&mut self, test: &Test) -> String {
        match test {
            Test::States(states) => self.states(states),
            Test::UnknownOutcome => {
                let waits = self.states(&[skills_model::RunState::WaitingForHuman]);
                let gate = dialect::json(self.postgres, "r.gate");
                format!("({waits} AND {gate} -> 'human' ->> 'why' = 'unknown_outcome')")
            }
            Test::Skill(pattern) => self.like("r.skill_id", &pattern_of(pattern)),
            Test::Title(pattern) => self.like(&self.field("r.options", "title"), &pattern_of(pattern)),
            Test::Label(name, pattern) => {
                let label = self.label(name);
                self.like(&label, &pattern_of(pattern))
            }
            Test::Assigned(text) => {
                let to = self.collated(format!(
                    "({} -> 'assigned' ->> 'to')",
                    dialect::json(self.postgres, "r.options")
                ));
                self.like(&to, &containing(text))
            }
            Test::Worker(text) => self.like("r.worker", &containing(text)),
            Test::Step(pattern) => self.like("r.step", &pattern_of(pattern)),
            Test::Id(text) => self.like("r.id", &containing(text)),
            Test::StartedBy(text) => self.like("r.started_by", &containing(text)),
            Test::Trace(text) => self.trace(text, format!("{text}{}", char::MAX)),
            Test::Error(text) => {
                let public = self.public_error();
                let within = self.like(&public, &containing(&in_json(text)));
                let code = format!("replace({}, '_', ' ')", self.field("r.error", "code"));
                let code = self.like(&code, &containing(text));
                format!("({within} OR coalesce({code}, false))")
            }
            Test::Detail(text) => self.like("r.error", &containing(&in_json(text))),
            Test::Target(text) => {
                let any = TARGET_FIELDS.map(|name| {
                    let field = self.field("r.target", name);
                    let like = self.like(&field, &containing(text));
                    format!("coalesce({like}, false)")
                });
                format!("({})", any.join(" OR "))
            }
            Test::Input(path, comparison) => self.input(path, comparison),
            Test::Age(ordering, age) => self.older("r.created_ms", *ordering, self.now_ms - millis(*age)),
            Test::InState(ordering, age) => self.older("r.since_ms", *ordering, self.now_ms - millis(*age)),
            Test::Any(tests) => {
                let any = tests.iter().map(|test| format!("coalesce({}, false)", self.condition(test)));
                format!("({})", any.collect::<Vec<_>>().join(" OR "))
            }
            Test::Word(word) => {
                let quoted = in_json(word);
                let (title, error) = (self.field("r.options", "title"), self.public_error());
                let columns = [
                    ("r.id", word),
                    ("r.skill_id", word),
                    ("r.step", word),
                    (title.as_str(), word),
                    ("r.inputs", &quoted),
                    (error.as_str(), &quoted),
                ];
                let like = |(column, text): (&str, &String)| {
                    let like = self.like(column, &containing(text));
                    format!("coalesce({like}, false)")
                };
                let mut any = columns.map(like).to_vec();
                if word.len() >= RunFilter::TRACE_PREFIX {
                    any.push(self.trace(word, format!("{word}{}", char::MAX)));
                }
                format!("({})", any.join(" OR "))
            }
        }
    }

    fn states(&mut self, states: &[skills_model::RunState]) -> String {
        let names: Vec<String> = states.iter().map(|state| self.bind(state.to_string())).collect();
        format!("({} IN ({}))", self.state, names.join(", "))
    }

    /// Returns the expression for the part of the error that every caller may see.
    fn public_error(&self) -> String {
        self.collated(dialect::public_error(self.postgres, "r.error"))
    }

    /// Returns the expression for the text of a field in a column of JSON text.
    fn field(&self, column: &str, name: &str) -> String {
        self.collated(dialect::field(self.postgres, column, name))
    }

    /// Returns the expression for the text of the label with this name.
    fn label(&mut self, name: &str) -> String {
        if self.postgres {
            let name = self.bind(name.to_owned());
            let options = dialect::json(true, "r.options");
            self.collated(format!("({options} -> 'labels' ->> CAST({name} AS TEXT))"))
        } else {
            let path = self.bind(format!("$.labels.\"{}\"", name.replace('"', "")));
            format!("(r.options ->> {path})")
        }
    }

    /// Gives text extracted from JSON the collation of the columns.
    fn collated(&self, text: String) -> String {
        if self.postgres { format!("({text} COLLATE \"C\")") } else { text }
    }

    /// Returns a `LIKE` condition that ignores ASCII case.
    fn like(&mut self, text: &str, pattern: &str) -> String {
        if self.postgres {
            // The columns have the collation "C", in which `lower` affects only ASCII.
            let pattern = self.bind(pattern.to_ascii_lowercase());
            format!("(lower({text}) LIKE {pattern} ESCAPE '\\')")
        } else {
            let pattern = self.bind(pattern.to_owned());
            format!("({text} LIKE {pattern} ESCAPE '\\')")
        }
    }

    /// Returns a condition that uses the index of trace ids.
    fn trace(&mut self, from: &str, to: String) -> String {
        let (from, to) = (self.bind(from.to_owned()), self.bind(to));
        format!("(r.seq IN (SELECT seq FROM runs WHERE trace_id BETWEEN {from} AND {to}))")
    }

    /// Returns a condition on an age: what happened before a moment is older than the corresponding age.
    fn older(&mut self, column: &str, ordering: Ordering, moment_ms: i64) -> String {
        let moment = self.bind(moment_ms);
        let sign = match ordering {
            Ordering::Greater => "<",
            Ordering::AtLeast => "<=",
            Ordering::Less => ">",
            Ordering::AtMost => ">=",
        };
        format!("({column} {sign} {moment})")
    }

    /// Strings are compared without their quotes, everything else as JSON: `true`, `5`, `null`.
    fn input(&mut self, path: &[String], comparison: &Comparison) -> String {
        let (kind, text, numbers) = if self.postgres {
            let inputs = dialect::json(true, "r.inputs");
            let names: Vec<String> =
                path.iter().map(|name| format!("CAST({} AS TEXT)", self.bind(name.clone()))).collect();
            let kind = format!("json_typeof({inputs} -> {})", names.join(" -> "));
            let text = match names.split_last() {
                Some((last, [])) => format!("({inputs} ->> {last})"),
                Some((last, rest)) => format!("({inputs} -> {} ->> {last})", rest.join(" -> ")),
                None => "NULL".to_owned(),
            };
            // `->>` yields null for the JSON value null.
            let text = format!("((CASE WHEN {kind} = 'null' THEN 'null' ELSE {text} END) COLLATE \"C\")");
            (kind, text, "('number')")
        } else {
            let mut json_path = "$".to_owned();
            for name in path {
                json_path += &format!(".\"{}\"", name.replace('"', ""));
            }
            let path = self.bind(json_path);
            let kind = format!("json_type(r.inputs, {path})");
            let text =
                format!("(CASE {kind} WHEN 'text' THEN r.inputs ->> {path} ELSE r.inputs -> {path} END)");
            (kind, text, "('integer', 'real')")
        };
        match comparison {
            Comparison::Like(pattern) => self.like(&text, &pattern_of(pattern)),
            Comparison::Number(ordering, limit) => {
                let sign = match ordering {
                    Ordering::Less => "<",
                    Ordering::AtMost => "<=",
                    Ordering::Greater => ">",
                    Ordering::AtLeast => ">=",
                };
                let limit = self.bind(*limit);
                // Only numbers are converted.
                format!(
                    "(CASE WHEN {kind} IN {numbers} THEN CAST({text} AS DOUBLE PRECISION) {sign} {limit} END)"
                )
            }
        }
    }
}

fn pattern_of(pattern: &Pattern) -> String {
    pattern.0.split('*').map(escaped).collect::<Vec<_>>().join("%")
}

/// Returns a pattern for texts that contain this one, ignoring case.
fn containing(text: &str) -> String {
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
