//! Maps a contract's values to a step's inputs, and a step's outputs back to their targets.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::scope::{Namespaces, StepScope, walk};
use skills_base::nesting::{self, MAX_LEVELS};
use skills_skill::contract::expression::Scope as _;
use skills_skill::contract::{MergeStrategy, Source, Step};

/// Evaluates a source.
///
/// # Errors
/// Returns a message that names the unresolved reference.
pub fn value_of(source: &Source, scope: &StepScope<'_>) -> Result<Value, String> {
    Ok(match source {
        Source::Reference(path) => scope.resolve(path)?,
        Source::Literal(value) => value.clone(),
        Source::List(items) => {
            Value::Array(items.iter().map(|item| value_of(item, scope)).collect::<Result<_, _>>()?)
        }
        Source::Object(map) => Value::Object(
            map.iter()
                .map(|(key, item)| Ok((key.clone(), value_of(item, scope)?)))
                .collect::<Result<_, String>>()?,
        ),
    })
}

/// Evaluates a step's inputs.
///
/// # Errors
/// Returns a message that names the input and the reference.
pub fn inputs_of(
    sources: &BTreeMap<String, Source>,
    scope: &StepScope<'_>,
) -> Result<Map<String, Value>, String> {
    sources
        .iter()
        .map(|(field, source)| {
            let value = value_of(source, scope).and_then(not_too_deep);
            Ok((field.clone(), value.map_err(|reason| format!("input {field}: {reason}"))?))
        })
        .collect()
}

/// Returns a target that a step may not write to, because it has a value already and the step states no merge strategy.
pub fn taken(step: &Step, space: &Namespaces) -> Option<String> {
    if step.merge_strategy != MergeStrategy::Overwrite {
        return None;
    }
    let locals = Map::new();
    let scope = StepScope { space, target: None, locals: &locals };
    let target = step.output.values().find(|target| scope.has(target))?.join(".");
    Some(format!("{target} is already set; set merge_strategy (append, deep_merge, replace)"))
}

/// Writes a step's outputs to their targets. Unmapped fields are ignored, and mapped fields that are missing write
/// nothing.
///
/// # Errors
/// Returns a message that names the target if it has a value already and the strategy does not merge the two, or if a
/// part of its path is not an object.
pub fn write_outputs(
    outputs: &BTreeMap<String, Vec<String>>,
    strategy: MergeStrategy,
    produced: &Map<String, Value>,
    space: &mut Namespaces,
) -> Result<(), String> {
    for (field, target) in outputs {
        let Some(value) = produced_field(produced, field) else { continue };
        let dotted = target.join(".");
        let [namespace, path @ ..] = target.as_slice() else { continue };
        let map =
            space.writable(namespace).ok_or_else(|| format!("{dotted} cannot be written to by a step"))?;
        let written = not_too_deep(value.clone()).and_then(|value| put(map, path, value, strategy));
        written.map_err(|reason| format!("{dotted}: {reason}"))?;
        // Appended and merged values are nested in the present one.
        let top = path.first().and_then(|name| map.get(name));
        if top.is_some_and(|value| nesting::exceeds(value, MAX_LEVELS)) {
            return Err(format!("{dotted}: {}", too_deep()));
        }
    }
    Ok(())
}

fn too_deep() -> String {
    format!("nested more than {MAX_LEVELS} levels deep")
}

fn not_too_deep(value: Value) -> Result<Value, String> {
    if nesting::exceeds(&value, MAX_LEVELS) { Err(too_deep()) } else { Ok(value) }
}

/// Looks up a produced field by name or dotted path.
fn produced_field<'v>(produced: &'v Map<String, Value>, field: &str) -> Option<&'v Value> {
    if let Some(value) = produced.get(field) {
        return Some(value);
    }
    let (first, rest) = field.split_once('.')?;
    let path: Vec<String> = rest.split('.').map(str::to_owned).collect();
    walk(produced.get(first)?, &path)
}

fn put(
    map: &mut Map<String, Value>,
    path: &[String],
    value: Value,
    strategy: MergeStrategy,
) -> Result<(), String> {
    match path {
        [] => Err("a target needs a namespace and a name (vars.rows)".to_owned()),
        [name] => match map.get_mut(name) {
            None => {
                map.insert(name.clone(), value);
                Ok(())
            }
            Some(present) => join(present, value, strategy),
        },
        [name, rest @ ..] => match map.entry(name.clone()).or_insert_with(|| Value::Object(Map::new())) {
            Value::Object(inner) => put(inner, rest, value, strategy),
            _ => Err(format!("{name} is not an object")),
        },
    }
}

fn join(present: &mut Value, value: Value, strategy: MergeStrategy) -> Result<(), String> {
    match (strategy, present, value) {
        (MergeStrategy::Overwrite, ..) => {
            Err("already set; set merge_strategy (append, deep_merge, replace)".to_owned())
        }
        (MergeStrategy::Replace, present, value) => {
            *present = value;
            Ok(())
        }
        (MergeStrategy::Append, Value::Array(items), Value::Array(more)) => {
            items.extend(more);
            Ok(())
        }
        (MergeStrategy::Append, Value::Array(items), one) => {
            items.push(one);
            Ok(())
        }
        (MergeStrategy::Append, ..) => {
            Err("append needs a list, but the current value is not a list".to_owned())
        }
        (MergeStrategy::DeepMerge, present @ Value::Object(_), value @ Value::Object(_)) => {
            merge(present, value);
            Ok(())
        }
        (MergeStrategy::DeepMerge, ..) => Err("deep_merge needs two objects".to_owned()),
    }
}

/// Merges objects recursively; for anything else the later value wins.
fn merge(present: &mut Value, value: Value) {
    match (present, value) {
        (Value::Object(present), Value::Object(value)) => {
            for (key, item) in value {
                match present.get_mut(&key) {
                    Some(inner) => merge(inner, item),
                    None => {
                        present.insert(key, item);
                    }
                }
            }
        }
        (present, value) => *present = value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(
        space: &mut Namespaces,
        target: &str,
        value: Value,
        strategy: MergeStrategy,
    ) -> Result<(), String> {
        let outputs = BTreeMap::from([("out".to_owned(), target.split('.').map(str::to_owned).collect())]);
        write_outputs(&outputs, strategy, &Map::from_iter([("out".to_owned(), value)]), space)
    }

    #[test]
    fn target_is_written_once_unless_a_merge_strategy_is_set() {
        let mut space = Namespaces::default();
        write(&mut space, "vars.a.b", json!([1]), MergeStrategy::Overwrite).unwrap();
        let twice = write(&mut space, "vars.a.b", json!([2]), MergeStrategy::Overwrite).unwrap_err();
        assert!(twice.starts_with("vars.a.b: already set"), "{twice}");
        write(&mut space, "vars.a.b", json!([2, 3]), MergeStrategy::Append).unwrap();
        write(&mut space, "vars.a.b", json!(4), MergeStrategy::Append).unwrap();
        assert_eq!(space.vars["a"], json!({"b": [1, 2, 3, 4]}));
        write(&mut space, "vars.a", json!({"c": {"x": 1}}), MergeStrategy::DeepMerge).unwrap();
        write(&mut space, "vars.a", json!({"c": {"y": 2}, "b": 0}), MergeStrategy::DeepMerge).unwrap();
        assert_eq!(space.vars["a"], json!({"b": 0, "c": {"x": 1, "y": 2}}));
        write(&mut space, "vars.a", json!("new"), MergeStrategy::Replace).unwrap();
        assert_eq!(space.vars["a"], "new");
        assert!(
            write(&mut space, "vars.a.b", json!(1), MergeStrategy::Replace)
                .unwrap_err()
                .contains("not an object")
        );
        assert!(write(&mut space, "vars.a", json!([1]), MergeStrategy::Append).unwrap_err().contains("list"));
        assert!(
            write(&mut space, "inputs.a", json!(1), MergeStrategy::Replace).unwrap_err().contains("inputs.a")
        );
    }

    #[test]
    fn produced_fields_are_found_by_path_and_absent_ones_write_nothing() {
        let outputs = BTreeMap::from([
            ("stats.mean".to_owned(), vec!["vars".to_owned(), "mean".to_owned()]),
            ("gone".to_owned(), vec!["vars".to_owned(), "gone".to_owned()]),
        ]);
        let mut space = Namespaces::default();
        let produced = json!({"stats": {"mean": 2.5}});
        write_outputs(&outputs, MergeStrategy::Overwrite, produced.as_object().unwrap(), &mut space).unwrap();
        assert_eq!(Value::Object(space.vars), json!({"mean": 2.5}));
    }

    #[test]
    fn inputs_name_what_is_missing() {
        let sources = BTreeMap::from([(
            "body".to_owned(),
            Source::Object(BTreeMap::from([
                ("text".to_owned(), Source::Reference(vec!["vars".to_owned(), "text".to_owned()])),
                ("kind".to_owned(), Source::Literal(json!("note"))),
            ])),
        )]);
        let (mut space, locals) = (Namespaces::default(), Map::new());
        let error =
            inputs_of(&sources, &StepScope { space: &space, target: None, locals: &locals }).unwrap_err();
        assert!(error.starts_with("input body: vars.text has no value"), "{error}");
        space.vars.insert("text".to_owned(), json!("hello"));
        let inputs =
            inputs_of(&sources, &StepScope { space: &space, target: None, locals: &locals }).unwrap();
        assert_eq!(Value::Object(inputs), json!({"body": {"text": "hello", "kind": "note"}}));
    }
}
