//! What distinguishes the runs of a list: the inputs and labels in which they differ, and what they have in common.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use skills_skill::safe_text;
use skills_store::RunRecord;

/// Maximum number of characters of a value in a row of many runs.
const VALUE_LENGTH: usize = 40;
/// Maximum number of characters of a value in a list of runs that a command is sent to.
const FULL_LENGTH: usize = 2_000;
/// Maximum depth of the fields of a target.
const MAX_DEPTH: usize = 4;
/// Number of characters before the first difference that remain of a long text.
const CONTEXT_LENGTH: usize = 10;
/// Number of characters at the beginning of such a text that remain, too.
const START_LENGTH: usize = 12;

/// What is listed instead of inputs, and of the content of a target, that the list leaves out.
const INPUTS_LEFT_OUT: &str = "inputs of the run not listed: too long";
const CONTENT_LEFT_OUT: &str = "content of the target not listed: too long";

/// What distinguishes runs, and what they have in common.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Distinction {
    /// The title, if all have the same one.
    pub title: Option<String>,
    /// Inputs that are the same in all runs of one skill.
    pub inputs: String,
    /// Labels that are the same in all runs.
    pub labels: String,
    /// Fields of what the runs are attached to that are the same in all runs.
    pub target: String,
    /// Inputs, labels (`label.NAME`) and fields of the target (`target.NAME`) in which each run differs from the others of
    /// its skill, also those that its title contains: titles are truncated, and may contain any text. In a list of several
    /// skills, inputs that are the same in all runs of one of them, too. The runs of a skill have the same fields in the
    /// same order; a field that a run does not have is empty.
    pub rows: Vec<Vec<String>>,
    /// What the list leaves out of each run.
    left_out: Vec<Vec<&'static str>>,
}

impl Distinction {
    /// Returns each row on one line, which says what is left out.
    pub fn lines(&self, between: &str) -> Vec<String> {
        let rows = self.rows.iter().zip(&self.left_out);
        let parts =
            rows.map(|(row, left_out)| left_out.iter().copied().chain(row.iter().map(String::as_str)));
        parts.map(|parts| parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)).collect()
    }
}

/// Returns what a list leaves out of a run, because it is too long.
fn left_out(run: &RunRecord) -> Vec<&'static str> {
    let parts = [(run.lacks_inputs(), INPUTS_LEFT_OUT), (run.lacks_target_content(), CONTENT_LEFT_OUT)];
    parts.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what).collect()
}

/// Joins the fields that are not empty.
fn line(row: &[String], between: &str) -> String {
    row.iter().filter(|field| !field.is_empty()).map(String::as_str).collect::<Vec<_>>().join(between)
}

/// Returns for each run of a list what distinguishes it from those with the same title, on one line; empty if it has none
/// or a unique one.
pub fn distinguishing_texts(runs: &[&RunRecord], between: &str) -> Vec<String> {
    let mut same: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, title) in runs.iter().enumerate().filter_map(|(at, run)| Some((at, run.title()?))) {
        same.entry(title).or_default().push(at);
    }
    let mut out = vec![String::new(); runs.len()];
    for places in same.into_values().filter(|places| places.len() > 1) {
        let same: Vec<&RunRecord> = places.iter().map(|at| runs[*at]).collect();
        let distinction = compare(&same, false);
        let is_one_skill = is_same(places.iter().map(|at| &runs[*at].skill_id));
        for (at, mut row) in places.into_iter().zip(distinction.rows) {
            if !is_one_skill {
                row.insert(0, safe_text::name(&runs[at].skill_id).into_owned());
            }
            out[at] = line(&row, between);
        }
    }
    out
}

/// Compares the runs that a command is sent to, with complete values.
pub fn distinguish<'r>(runs: impl IntoIterator<Item = &'r RunRecord>) -> Distinction {
    compare(&runs.into_iter().collect::<Vec<_>>(), true)
}

/// Compares runs, completely or for rows of a list of many runs: with short values, and without empty fields.
fn compare(runs: &[&RunRecord], completely: bool) -> Distinction {
    let row = |differences: &Differences<'_>, object: &Value| {
        if completely { differences.row(object) } else { differences.fields(object) }
    };
    let mut by_skill: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        by_skill.entry(&run.skill_id).or_default().push(at);
    }
    let mut out = Distinction {
        rows: vec![Vec::new(); runs.len()],
        left_out: runs.iter().map(|run| left_out(run)).collect(),
        ..Distinction::default()
    };
    let is_one_title = runs.len() > 1 && is_same(runs.iter().map(|run| run.title()));
    if is_one_title {
        out.title = runs[0].title().map(|title| safe_text::line(title).into_owned());
    }
    // In a row, a label is not taken for an input: `label.env=prod`, as in filters.
    let targets: Vec<Map<String, Value>> = runs.iter().map(|run| target_fields(run)).collect();
    let in_rows = |(run, target): (&&RunRecord, &Map<String, Value>)| -> Value {
        let labels =
            run.options.labels.iter().map(|(name, value)| (format!("label.{name}"), value.clone().into()));
        let target = target.iter().map(|(name, value)| (format!("target.{name}"), value.clone()));
        labels.chain(target).collect::<Map<_, _>>().into()
    };
    let labels: Vec<Value> = runs.iter().zip(&targets).map(in_rows).collect();
    let labels: Vec<&Value> = labels.iter().collect();
    let own_labels = Differences { is_short: !completely, ..Differences::of(&labels) };
    if runs.len() > 1 {
        let labels: Vec<Value> = runs.iter().map(|run| serde_json::json!(run.options.labels)).collect();
        out.labels = common_of(&labels);
        out.target = common_of(&targets.into_iter().map(Value::Object).collect::<Vec<_>>());
    }
    for of_skill in by_skill.values() {
        let inputs: Vec<&Value> = of_skill.iter().map(|at| &runs[*at].inputs).collect();
        let own_inputs = Differences { is_short: !completely, ..Differences::of(&inputs) };
        if by_skill.len() == 1 && runs.len() > 1 {
            out.inputs = own_inputs.common();
        }
        // What is the same in the runs of one skill is not stated for all runs.
        let of_all = by_skill.len() > 1 && completely;
        let own_common = if of_all { own_inputs.common_fields() } else { Vec::new() };
        for (at, inputs) in of_skill.iter().zip(inputs) {
            let own = row(&own_inputs, inputs);
            out.rows[*at] = [own, own_common.clone(), row(&own_labels, labels[*at])].concat();
        }
    }
    out
}

fn common_of(objects: &[Value]) -> String {
    Differences::of(&objects.iter().collect::<Vec<_>>()).common()
}

/// Returns the fields of what a run is attached to, with those of its content (`content.NAME`).
pub fn target_fields(run: &RunRecord) -> Map<String, Value> {
    let mut fields = Map::new();
    add_fields("", run.target.as_ref().unwrap_or(&Value::Null), MAX_DEPTH, &mut fields);
    fields
}

/// Adds the fields of an object, and of the objects in it, by their paths.
fn add_fields(path: &str, object: &Value, depth: usize, fields: &mut Map<String, Value>) {
    for (name, value) in object.as_object().into_iter().flatten() {
        // A path has one meaning: a name with a period is in quotation marks.
        let is_quoted = name.is_empty() || name.contains(['.', '"']);
        let name = if is_quoted { Value::from(name.as_str()).to_string() } else { name.clone() };
        let own = format!("{path}{name}");
        if depth > 1 && value.as_object().is_some_and(|object| !object.is_empty()) {
            add_fields(&format!("{own}."), value, depth - 1, fields);
        } else {
            fields.insert(own, value.clone());
        }
    }
}

/// The fields in which objects differ.
#[derive(Debug)]
pub struct Differences<'v> {
    first: Option<&'v Value>,
    /// Their names, sorted; of a single object all names.
    pub names: Vec<String>,
    /// How many characters a long text has in common with the most similar other one, by name and text.
    common: HashMap<(String, String), usize>,
    /// Whether values are shortened to [`VALUE_LENGTH`].
    is_short: bool,
}

impl<'v> Differences<'v> {
    /// Compares objects.
    pub fn of(objects: &[&'v Value]) -> Self {
        let mut values: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for (name, value) in objects.iter().filter_map(|one| one.as_object()).flatten() {
            values.entry(name).or_default().push(value);
        }
        values.retain(|_, values| {
            objects.len() == 1 || values.len() < objects.len() || !is_same(values.iter())
        });
        let mut common = HashMap::new();
        for (name, values) in &values {
            let mut texts: Vec<String> = values.iter().map(|value| value_line(value)).collect();
            texts.sort_unstable();
            texts.dedup();
            for pair in texts.windows(2) {
                let same =
                    pair[0].chars().zip(pair[1].chars()).take_while(|(one, other)| one == other).count();
                for text in pair {
                    let longest: &mut usize = common.entry(((*name).to_owned(), text.clone())).or_default();
                    *longest = same.max(*longest);
                }
            }
        }
        let names = values.into_keys().map(str::to_owned).collect();
        Self { first: objects.first().copied(), names, common, is_short: false }
    }

    /// Shortens values to what fits into a row of many runs.
    #[must_use]
    pub fn short(self) -> Self {
        Self { is_short: true, ..self }
    }

    fn has(&self, name: &str) -> bool {
        self.names.binary_search_by(|own| own.as_str().cmp(name)).is_ok()
    }

    fn field(&self, name: &str, value: &Value) -> String {
        let text = value_line(value);
        if text.is_empty() {
            return text;
        }
        let key = (name.to_owned(), text);
        let same = self.common.get(&key).copied().unwrap_or(0);
        self.named(name, value, same)
    }

    fn named(&self, name: &str, value: &Value, same: usize) -> String {
        if self.is_short {
            return named(name, value, same);
        }
        let text = value_line(value);
        let left = text.chars().count().saturating_sub(FULL_LENGTH);
        let mut part: String = text.chars().take(FULL_LENGTH).collect();
        if left > 0 {
            part += &format!("… {left} more characters");
        }
        field(name, value, part)
    }

    /// Returns the fields of one object that differ, as `name=value`; empty for a field without a value.
    pub fn row(&self, object: &Value) -> Vec<String> {
        let field = |name: &String| object.get(name).map(|value| self.field(name, value)).unwrap_or_default();
        self.names.iter().map(field).collect()
    }

    /// Returns the same without empty fields.
    fn fields(&self, object: &Value) -> Vec<String> {
        let own = object.as_object().into_iter().flatten().filter(|(name, _)| self.has(name));
        let mut own: Vec<_> = own.collect();
        own.sort_unstable_by_key(|(name, _)| *name);
        own.into_iter()
            .map(|(name, value)| self.field(name, value))
            .filter(|field| !field.is_empty())
            .collect()
    }

    pub fn line(&self, object: &Value) -> String {
        self.fields(object).join("  ")
    }

    /// Returns the fields that are the same in all objects, on one line.
    pub fn common(&self) -> String {
        self.common_fields().join("  ")
    }

    /// Returns the fields that are the same in all objects, as `name=value`.
    fn common_fields(&self) -> Vec<String> {
        let fields = self.first.and_then(Value::as_object).into_iter().flatten();
        let mut fields: Vec<_> = fields.filter(|(name, _)| !self.has(name)).collect();
        fields.sort_unstable_by_key(|(name, _)| *name);
        fields.into_iter().map(|(name, value)| self.named(name, value, 0)).collect()
    }
}

/// Renders a value on one line, safe to draw: strings unchanged, anything else as JSON.
pub fn value_line(value: &Value) -> String {
    match value {
        Value::String(text) => safe_text::line(text).into_owned(),
        other => safe_text::line(&other.to_string()).into_owned(),
    }
}

/// Returns `name=value`; of a long text that shares its beginning with another one, its start and the part that differs.
/// A text that could be taken for several fields is in quotation marks.
fn named(name: &str, value: &Value, same: usize) -> String {
    let text = value_line(value);
    let length = text.chars().count();
    let shared = same + CONTEXT_LENGTH > VALUE_LENGTH && length > VALUE_LENGTH;
    let skipped = if shared { same.saturating_sub(CONTEXT_LENGTH) } else { 0 };
    let mut part: String = text.chars().take(START_LENGTH).collect();
    let (from, left) = if skipped > START_LENGTH {
        part.push('…');
        (skipped, VALUE_LENGTH - START_LENGTH)
    } else {
        part.clear();
        (0, VALUE_LENGTH)
    };
    part.extend(text.chars().skip(from).take(left));
    if length > from + left {
        part.push('…');
    }
    field(name, value, part)
}

/// Returns `name=part` for a part of a value.
fn field(name: &str, value: &Value, part: String) -> String {
    let shown = if value.is_string() { safe_text::field(&part) } else { part };
    format!("{}={shown}", safe_text::field(name))
}

/// Returns whether all values are equal.
pub fn is_same<T: PartialEq>(values: impl IntoIterator<Item = T>) -> bool {
    let mut values = values.into_iter();
    let Some(first) = values.next() else { return true };
    values.all(|value| value == first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use skills_model::RunState;
    use skills_store::{RunId, RunOptions};

    #[test]
    fn only_fields_that_differ_distinguish_objects() {
        let (one, other) = (json!({"to": "ana", "count": 3}), json!({"to": "ana", "count": 104}));
        let differences = Differences::of(&[&one, &other]);
        assert_eq!(differences.names, ["count"]);
        assert_eq!(differences.line(&other), "count=104");
        assert_eq!(differences.common(), "to=ana");
        assert_eq!(Differences::of(&[&one]).names, ["count", "to"]);
        assert!(is_same([&one, &one]) && !is_same([&one, &other]));
    }

    fn run(skill: &str, title: &str, inputs: Value) -> RunRecord {
        let options = RunOptions { title: Some(title.to_owned()), ..RunOptions::default() };
        RunRecord {
            id: RunId("r".to_owned()),
            skill_id: skill.to_owned(),
            state: RunState::Failed,
            paused: false,
            gate: None,
            decided: None,
            contract_digest: String::new(),
            inputs,
            target: None,
            options,
            outputs: None,
            error: None,
            trace_id: String::new(),
            started_by: "kim".to_owned(),
            source: None,
            progress: (0, 1),
            step: None,
            head: 0,
            fence: 0,
            lease: None,
            created_ms: 0,
            since_ms: 0,
            expires_ms: None,
            allowed: Vec::new(),
        }
    }

    #[test]
    fn inputs_that_a_list_leaves_out_are_mentioned() {
        let mut long = run("send", "Send", Value::Null);
        let runs = [run("send", "Send", json!({"n": 1})), long.clone()];
        assert_eq!(distinguish(&runs).lines("  "), ["n=1", INPUTS_LEFT_OUT]);
        assert_eq!(distinguish(&runs).inputs, "", "nothing is known to be the same");
        long.options.labels.insert("env".to_owned(), "prod".to_owned());
        assert_eq!(distinguish([&long]).lines(", "), [format!("{INPUTS_LEFT_OUT}, label.env=prod")]);
    }

    #[test]
    fn an_input_that_the_title_contains_is_listed() {
        let long = format!("R-9 to alice, {}", "x".repeat(60));
        let runs = [
            run("pay", &format!("Pay {long} to mallory"), json!({"ref": long, "to": "mallory"})),
            run("pay", "Pay R-8 to bob", json!({"ref": "R-8", "to": "bob"})),
        ];
        let lines = distinguish(&runs).lines("  ");
        assert!(lines[0].ends_with("to=mallory"), "{lines:?}");
        assert_eq!(lines[1], "ref=R-8  to=bob");
        assert!(distinguish(&runs[..1]).lines("  ")[0].ends_with("to=mallory"));
    }

    #[test]
    fn targets_distinguish_runs() {
        let attached = |iban: &str| RunRecord {
            target: Some(
                json!({"type": "artifact", "ref": format!("artifact:{iban}"), "content": {"iban": iban}}),
            ),
            ..run("push", "Push", json!({}))
        };
        let runs = [attached("alice"), attached("mallory")];
        let distinction = distinguish(&runs);
        assert_eq!(distinction.target, "type=artifact");
        let listed = RunRecord { target: Some(json!({"type": "artifact", "ref": "a"})), ..runs[0].clone() };
        assert!(distinguish([&listed]).lines("  ")[0].starts_with(CONTENT_LEFT_OUT));
        assert_eq!(distinction.lines("  ")[1], "target.content.iban=mallory  target.ref=artifact:mallory");
        assert!(distinguish(&runs[..1]).lines("  ")[0].contains("target.ref=artifact:alice"));
        let texts = distinguishing_texts(&runs.iter().collect::<Vec<_>>(), "  ");
        assert!(texts[0].contains("target.ref=artifact:alice"), "{texts:?}");
        let content = json!({"pay": {"iban": "mallory"}, "pay.iban": "bob"});
        let dotted = RunRecord { target: Some(json!({"content": content})), ..runs[0].clone() };
        let fields = target_fields(&dotted);
        assert_eq!(fields["content.pay.iban"], "mallory");
        assert_eq!(fields[r#"content."pay.iban""#], "bob");
    }

    #[test]
    fn runs_with_the_same_title_are_distinguished() {
        let note = |end: &str| {
            let text = format!("Dear supplier, the invoice that you sent last week {end}");
            run("pay-note", "pay-note: amount: 77", json!({"amount": 77, "text": text}))
        };
        let runs = [note("is late"), note("was paid"), run("pay", "Pay 3", json!({"amount": 3}))];
        assert_eq!(
            distinguishing_texts(&runs.iter().collect::<Vec<_>>(), "  "),
            [r#"text="Dear supplie…last week is late""#, r#"text="Dear supplie…last week was paid""#, ""]
        );
        let runs = [run("pay", "Pay", json!({"n": 1, "to": "ana"})), run("send", "Pay", json!({"n": 1}))];
        assert_eq!(distinguishing_texts(&runs.iter().collect::<Vec<_>>(), ", ")[1], "send, n=1");
        let runs = [run("pay", "Pay", json!({"n": 1})), run("pay", "Pay", json!({"n": 1}))];
        assert_eq!(distinguishing_texts(&runs.iter().collect::<Vec<_>>(), "  "), ["", ""], "nothing differs");
    }

    #[test]
    fn inputs_that_are_the_same_in_all_runs_of_one_skill_are_listed() {
        let pay = |n: u32| run("pay", &format!("Pay {n}"), json!({"n": n, "to": "mallory"}));
        let runs = [pay(1), pay(2), run("send", "Send", json!({"to": "ana"}))];
        let distinction = distinguish(&runs);
        assert_eq!(distinction.lines("  "), ["n=1  to=mallory", "n=2  to=mallory", "to=ana"]);
        assert_eq!(distinguish(&runs[..2]).inputs, "to=mallory");
        assert_eq!(distinguish(&runs[..2]).lines("  "), ["n=1", "n=2"]);
    }

    #[test]
    fn many_runs_are_compared_in_one_pass() {
        let inputs = |n: usize| json!({"n": n, "to": "ana", format!("note{n}"): format!("{n}.{n}")});
        let runs: Vec<RunRecord> = (0..20_000).map(|n| run("pay", "Pay", inputs(n))).collect();
        let rows = distinguishing_texts(&runs.iter().collect::<Vec<_>>(), ", ");
        assert_eq!(rows[7], "n=7, note7=7.7");
        let differences = Differences::of(&runs.iter().map(|run| &run.inputs).collect::<Vec<_>>());
        assert_eq!((differences.names.len(), differences.common()), (20_001, "to=ana".to_owned()));
    }

    #[test]
    fn long_texts_show_where_they_differ() {
        let same = "Dear supplier, the invoice that you sent last week ";
        let texts =
            ["has no number", "has no date", "was paid"].map(|end| json!({"text": format!("{same}{end}")}));
        let differences = Differences::of(&texts.iter().collect::<Vec<_>>());
        assert!(differences.line(&texts[0]).contains(same), "complete unless short values are requested");
        let long = ["a", "b"].map(|end| json!({"text": format!("{}{end}", "x".repeat(FULL_LENGTH))}));
        let line = Differences::of(&long.iter().collect::<Vec<_>>()).line(&long[0]);
        assert!(line.contains("xx… 1 more characters"), "{line}");
        let differences = differences.short();
        let rows: Vec<String> = texts.iter().map(|one| differences.line(one)).collect();
        assert_eq!(
            rows,
            [
                r#"text="Dear supplie…ek has no number""#,
                r#"text="Dear supplie…ek has no date""#,
                r#"text="Dear supplie…last week was paid""#
            ]
        );
    }

    #[test]
    fn no_value_imitates_a_field() {
        let (one, other) = (
            json!({"address": "Elm St 1  amount=12", "iban": "DE00", "tags": ["a b"]}),
            json!({"address": "amount=12", "iban": "DE11", "tags": []}),
        );
        let differences = Differences::of(&[&one, &other]);
        assert_eq!(differences.line(&one), r#"address="Elm St 1  amount=12"  iban=DE00  tags=["a b"]"#);
        assert_eq!(differences.line(&other), r#"address="amount=12"  iban=DE11  tags=[]"#);
        assert_eq!(Differences::of(&[&one, &one]).common(), differences.line(&one));
    }
}
