//! Inputs of the command line, typed by the contract.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Map, Value};

use crate::args::{InputArgs, Pair};
use crate::failure::Failure;
use skills_api::{Code, Error, near};
use skills_base::json_value::value_kind;
use skills_skill::contract::{Field, FieldType};
use skills_skill::safe_text;

/// Input fields of a skill, if known.
pub type Fields = BTreeMap<String, Field>;

/// What is known about the inputs of a skill.
#[derive(Debug, Clone, Copy)]
pub enum InputTypes<'a> {
    /// The contract declares exactly these.
    Declared(&'a Fields),
    /// These types are likely; there may be others.
    Likely(&'a Fields),
    Nothing,
}

impl InputTypes<'_> {
    fn field(&self, name: &str) -> Option<&Field> {
        match self {
            Self::Declared(fields) | Self::Likely(fields) => fields.get(name),
            Self::Nothing => None,
        }
    }

    /// Checks that there is an input of this name.
    fn has(&self, name: &str) -> Result<(), Failure> {
        let Self::Declared(fields) = self else { return Ok(()) };
        if fields.contains_key(name) {
            return Ok(());
        }
        let names: Vec<&str> = fields.keys().map(String::as_str).collect();
        let takes = if names.is_empty() { "no inputs".to_owned() } else { names.join(", ") };
        let message = format!("unknown input `{}`; inputs: {takes}", safe_text::line(name));
        let suggestions = near(name, names.iter().copied());
        Err(Error { suggestions, ..Error::new(Code::InvalidRequest, message) }.into())
    }
}

/// Returns the inputs: those of the file, overridden by individual values.
///
/// # Errors
/// Returns an error for an unreadable file, a name unknown to the contract, and a value of the wrong type.
pub fn gather(args: &InputArgs, types: InputTypes<'_>, cwd: &Path) -> Result<Map<String, Value>, Failure> {
    let mut inputs = match &args.inputs {
        Some(file) => object(&read(&file.to_string_lossy(), cwd)?, file)?,
        None => Map::new(),
    };
    inputs.keys().try_for_each(|name| types.has(name))?;
    let mut single: Map<String, Value> = Map::new();
    for Pair { name, value } in &args.pairs {
        types.has(name)?;
        let text = match value.strip_prefix('@') {
            Some(rest) if rest.starts_with('@') => rest.to_owned(),
            Some(file) => read(file, cwd)?,
            None => value.clone(),
        };
        let value =
            typed(&text, types.field(name)).map_err(|why| Failure::usage(format!("input {name}: {why}")))?;
        match (single.get_mut(name), value) {
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (Some(_), _) => {
                return Err(Failure::usage(format!(
                    "input `{name}` is set more than once, but is not a list"
                )));
            }
            (None, value) => {
                single.insert(name.clone(), value);
            }
        }
    }
    inputs.extend(single);
    Ok(inputs)
}

/// Reads the text of a file; `-` is standard input.
pub fn read(file: &str, cwd: &Path) -> Result<String, Failure> {
    if file == "-" {
        let mut text = String::new();
        return match std::io::stdin().read_to_string(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => Err(Failure::usage(format!("cannot read standard input: {error}"))),
        };
    }
    let path = cwd.join(file);
    skills_base::files::read_user_text(&path).map_err(|error| Failure::file(&path, &error))
}

fn object(text: &str, file: &Path) -> Result<Map<String, Value>, Failure> {
    let wrong = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    // YAML 1.2 includes JSON, but errors of a JSON parser are more specific for JSON.
    let value: Value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| wrong(format!("invalid JSON: {error}")))?
    } else {
        serde_saphyr::from_str(text)
            .map_err(|error| wrong(format!("invalid YAML: {}", skills_skill::yaml_message(&error))))?
    };
    match value {
        Value::Object(fields) => Ok(fields),
        other => {
            Err(wrong(format!("inputs must be a mapping of names to values, not {}", value_kind(&other))))
        }
    }
}

/// Parses text as a value of the field's type.
///
/// # Errors
/// Returns what the type requires, as a sentence without the field's name.
pub fn typed(text: &str, field: Option<&Field>) -> Result<Value, String> {
    let trimmed = text.trim();
    let shown = safe_text::line(trimmed).chars().take(60).collect::<String>();
    let value = match field.map_or(FieldType::Any, |field| field.kind) {
        FieldType::String => Value::String(text.to_owned()),
        FieldType::Number => match serde_json::from_str::<Value>(trimmed) {
            Ok(value @ Value::Number(_)) => value,
            _ => return Err(format!("{shown:?} is not a number")),
        },
        FieldType::Integer => trimmed
            .parse::<i64>()
            .map(Value::from)
            .or_else(|_| trimmed.parse::<u64>().map(Value::from))
            .map_err(|_| format!("{shown:?} is not an integer"))?,
        FieldType::Boolean => match trimmed.to_ascii_lowercase().as_str() {
            "true" | "yes" => Value::Bool(true),
            "false" | "no" => Value::Bool(false),
            _ => return Err(format!("{shown:?} is not true or false")),
        },
        FieldType::Array => list(trimmed, field.and_then(|field| field.items.as_deref()))?,
        FieldType::Object => match serde_json::from_str::<Value>(trimmed) {
            Ok(value @ Value::Object(_)) => value,
            Ok(other) => return Err(format!("expected an object, found {}", value_kind(&other))),
            Err(error) => return Err(format!("expected a JSON object: {error}")),
        },
        FieldType::Any => serde_json::from_str(trimmed).unwrap_or_else(|_| Value::String(text.to_owned())),
    };
    let allowed = field.map(|field| field.allowed.as_slice()).unwrap_or_default();
    if allowed.is_empty() || allowed.contains(&value) {
        return Ok(value);
    }
    let words: Vec<String> = allowed.iter().map(skills_api::value_line).collect();
    Err(format!("{shown:?} is not one of {}", words.join(", ")))
}

/// Parses a JSON list, or comma-separated words, each of the element type; without an element type, words that are JSON
/// numbers are numbers.
fn list(text: &str, items: Option<&Field>) -> Result<Value, String> {
    if text.starts_with('[') {
        return serde_json::from_str(text).map_err(|error| format!("not a JSON list: {error}"));
    }
    let item = |word: &str| match serde_json::from_str::<Value>(word) {
        Ok(number @ Value::Number(_)) => number,
        _ => Value::String(word.to_owned()),
    };
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    match items.filter(|items| items.kind != FieldType::Any) {
        None => Ok(words.map(item).collect()),
        Some(items) => {
            let element = |(index, word)| typed(word, Some(items)).map_err(|why| format!("[{index}] {why}"));
            words.enumerate().map(element).collect()
        }
    }
}

/// Derives fields from the current inputs of a run, if its contract no longer exists.
pub fn suggested(inputs: &Value) -> Fields {
    let field = |value: &Value| {
        let kind = match value {
            Value::Null => FieldType::Any,
            Value::Bool(_) => FieldType::Boolean,
            Value::Number(_) => FieldType::Number,
            Value::String(_) => FieldType::String,
            Value::Array(_) => FieldType::Array,
            Value::Object(_) => FieldType::Object,
        };
        Field::of(kind)
    };
    let Value::Object(inputs) = inputs else { return Fields::new() };
    inputs.iter().map(|(name, value)| (name.clone(), field(value))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(kind: FieldType) -> Field {
        Field::of(kind)
    }

    fn input_args(pairs: &[(&str, &str)]) -> InputArgs {
        let pair = |(name, value): &(&str, &str)| Pair { name: (*name).into(), value: (*value).into() };
        InputArgs { pairs: pairs.iter().map(pair).collect(), inputs: None }
    }

    fn fields() -> Fields {
        let all = [
            ("file", FieldType::String),
            ("count", FieldType::Integer),
            ("limit", FieldType::Number),
            ("dry", FieldType::Boolean),
            ("tags", FieldType::Array),
            ("options", FieldType::Object),
        ];
        all.map(|(name, kind)| (name.to_owned(), field(kind))).into()
    }

    #[test]
    fn each_value_gets_the_type_of_its_field() {
        let pairs = [
            ("file", "007"),
            ("count", "7"),
            ("limit", "1.5"),
            ("dry", "yes"),
            ("tags", "a, b,3,007"),
            ("options", r#"{"deep": [1]}"#),
        ];
        let inputs = gather(&input_args(&pairs), InputTypes::Declared(&fields()), Path::new("/")).unwrap();
        assert_eq!(
            Value::Object(inputs),
            json!({ "file": "007", "count": 7, "limit": 1.5, "dry": true, "tags": ["a", "b", 3, "007"],
                "options": { "deep": [1] } })
        );
    }

    #[test]
    fn only_list_inputs_can_be_repeated() {
        let inputs = gather(
            &input_args(&[("tags", "a"), ("tags", r#"["b,c"]"#)]),
            InputTypes::Declared(&fields()),
            Path::new("/"),
        )
        .unwrap();
        assert_eq!(inputs["tags"], json!(["a", "b,c"]));
        let numbers = Field { items: Some(Box::new(field(FieldType::Integer))), ..field(FieldType::Array) };
        let texts = Field { items: Some(Box::new(field(FieldType::String))), ..field(FieldType::Array) };
        assert_eq!(typed("1, 2", Some(&numbers)), Ok(json!([1, 2])));
        assert_eq!(typed("1, a", Some(&numbers)), Err("[1] \"a\" is not an integer".to_owned()));
        assert_eq!(typed("007, a", Some(&texts)), Ok(json!(["007", "a"])));
        let twice = gather(
            &input_args(&[("count", "1"), ("count", "2")]),
            InputTypes::Declared(&fields()),
            Path::new("/"),
        );
        assert!(format!("{twice:?}").contains("more than once"), "{twice:?}");
    }

    #[test]
    fn invalid_values_are_reported_with_the_expected_type() {
        let says = |name: &str, value: &str| match gather(
            &input_args(&[(name, value)]),
            InputTypes::Declared(&fields()),
            Path::new("/"),
        ) {
            Err(Failure::Core(error)) => (error.message, error.suggestions),
            other => panic!("{other:?}"),
        };
        assert_eq!(says("count", "1.5").0, "input count: \"1.5\" is not an integer");
        assert_eq!(says("limit", "many").0, "input limit: \"many\" is not a number");
        assert_eq!(says("dry", "perhaps").0, "input dry: \"perhaps\" is not true or false");
        assert_eq!(says("options", "[1]").0, "input options: expected an object, found a list");
        let unknown = says("cuont", "1");
        assert!(unknown.0.contains("inputs: count, dry, file"), "{unknown:?}");
        assert_eq!(unknown.1, ["count"]);
    }

    #[test]
    fn only_listed_enum_values_are_accepted() {
        let field = Field { allowed: vec![json!("EUR"), json!("USD")], ..field(FieldType::String) };
        assert_eq!(typed("EUR", Some(&field)), Ok(json!("EUR")));
        assert_eq!(typed("GBP", Some(&field)), Err("\"GBP\" is not one of EUR, USD".to_owned()));
    }

    #[test]
    fn single_inputs_override_the_inputs_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("note.txt"), "two\nlines\n").unwrap();
        std::fs::write(dir.path().join("all.yaml"), "file: a.pdf\ncount: 3\n").unwrap();
        let args = InputArgs {
            inputs: Some("all.yaml".into()),
            ..input_args(&[("file", "@note.txt"), ("tags", "@@at")])
        };
        let inputs = gather(&args, InputTypes::Declared(&fields()), dir.path()).unwrap();
        assert_eq!(Value::Object(inputs), json!({ "file": "two\nlines\n", "count": 3, "tags": ["@at"] }));
        let missing =
            gather(&input_args(&[("file", "@gone.txt")]), InputTypes::Declared(&fields()), dir.path())
                .unwrap_err();
        let Failure::Core(error) = missing else { panic!() };
        assert_eq!(error.code, Code::NotFound);
        std::fs::write(dir.path().join("list.json"), "[1]").unwrap();
        let args = InputArgs { inputs: Some("list.json".into()), ..input_args(&[]) };
        assert!(format!("{:?}", gather(&args, InputTypes::Nothing, dir.path())).contains("not a list"));
    }

    #[test]
    fn present_inputs_define_types_without_a_contract() {
        let fields = suggested(&json!({ "file": "a", "count": 1 }));
        assert_eq!(typed("7", fields.get("file")), Ok(json!("7")));
        assert_eq!(typed("7", fields.get("count")), Ok(json!(7)));
        let new =
            gather(&input_args(&[("file", "7"), ("new", "8")]), InputTypes::Likely(&fields), Path::new("/"))
                .unwrap();
        assert_eq!(Value::Object(new), json!({ "file": "7", "new": 8 }));
        assert_eq!(typed("plain words", None), Ok(json!("plain words")));
    }
}
