//! What distinguishes the runs of a list: the inputs and labels in which they differ, and what they have in common.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use skills_skill::safe_text;
use skills_store::RunRecord;

/// Maximum number of characters of a value in a row.
const VALUE_LENGTH: usize = 40;
/// Number of characters before the first difference that remain of a long text.
const CONTEXT_LENGTH: usize = 10;
/// Number of characters at the beginning of such a text that remain, too.
const START_LENGTH: usize = 12;

/// What is listed instead of inputs that the list leaves out.
const INPUTS_LEFT_OUT: &str = "inputs of the run not listed: too long";

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
    /// Whether the list leaves out the inputs of each run.
    without_inputs: Vec<bool>,
}

impl Distinction {
    /// Returns each row on one line, which says if the inputs are left out.
    pub fn lines(&self, between: &str) -> Vec<String> {
        let rows = self.rows.iter().zip(self.without_inputs.iter().copied());
        rows.map(|(row, without_inputs)| match (without_inputs, line(row, between)) {
            (false, line) => line,
            (true, line) if line.is_empty() => INPUTS_LEFT_OUT.to_owned(),
            (true, line) => format!("{INPUTS_LEFT_OUT}{between}{line}"),
        })
        .collect()
    }
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

/// Compares the runs of a list.
pub fn distinguish<'r>(runs: impl IntoIterator<Item = &'r RunRecord>) -> Distinction {
    compare(&runs.into_iter().collect::<Vec<_>>(), true)
}

/// Compares runs; rows of many different fields are short without the empty ones.
fn compare(runs: &[&RunRecord], with_empty_fields: bool) -> Distinction {
    let row = |differences: &Differences<'_>, object: &Value| {
        if with_empty_fields { differences.row(object) } else { differences.fields(object) }
    };
    let mut by_skill: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        by_skill.entry(&run.skill_id).or_default().push(at);
    }
    let mut out = Distinction {
        rows: vec![Vec::new(); runs.len()],
        without_inputs: runs.iter().map(|run| run.lacks_inputs()).collect(),
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
    let own_labels = Differences::of(&labels);
    if runs.len() > 1 {
        let labels: Vec<Value> = runs.iter().map(|run| serde_json::json!(run.options.labels)).collect();
        out.labels = common_of(&labels);
        out.target = common_of(&targets.into_iter().map(Value::Object).collect::<Vec<_>>());
    }
    for of_skill in by_skill.values() {
        let inputs: Vec<&Value> = of_skill.iter().map(|at| &runs[*at].inputs).collect();
        let own_inputs = Differences::of(&inputs);
        if by_skill.len() == 1 && runs.len() > 1 {
            out.inputs = own_inputs.common();
        }
        // What is the same in the runs of one skill is not stated for all runs.
        let of_all = by_skill.len() > 1 && with_empty_fields;
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
    for (name, value) in run.target.as_ref().and_then(Value::as_object).into_iter().flatten() {
        if let Value::Object(content) = value {
            fields.extend(content.iter().map(|(own, value)| (format!("{name}.{own}"), value.clone())));
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    fields
}

/// The fields in which objects differ.
#[derive(Debug)]
pub struct Differences<'v> {
    first: Option<&'v Value>,
    /// Their names, sorted; of a single object all names.
    pub names: Vec<String>,
    /// How many characters a long text has in common with the most similar other one, by name and text.
    common: HashMap<(String, String), usize>,
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
        Self { first: objects.first().copied(), names, common }
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
        named(name, value, same)
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
        fields.into_iter().map(|(name, value)| named(name, value, 0)).collect()
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
        assert_eq!(distinction.lines("  ")[1], "target.content.iban=mallory  target.ref=artifact:mallory");
        assert!(distinguish(&runs[..1]).lines("  ")[0].contains("target.ref=artifact:alice"));
        let texts = distinguishing_texts(&runs.iter().collect::<Vec<_>>(), "  ");
        assert!(texts[0].contains("target.ref=artifact:alice"), "{texts:?}");
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
