//! The scope in which references of a running contract are resolved: the namespaces of one contract, and the names that
//! a `foreach` defines for its items.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use skills_base::memory::object_bytes;
use skills_skill::contract::expression;

/// Namespaces in which a missing path is an error: a step should have produced it.
const PRODUCED: &[&str] = &["vars", "outputs", "working"];

/// The namespaces of one contract while it runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Namespaces {
    /// Inputs; read-only.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// Intermediate results of steps.
    pub vars: Map<String, Value>,
    pub outputs: Map<String, Value>,
    /// Working memory.
    pub working: Map<String, Value>,
    /// The frame it was given; read-only.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub frame: Map<String, Value>,
    /// Notes about the response.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub output: Map<String, Value>,
    /// Everything else.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extensions: Map<String, Value>,
}

impl Namespaces {
    /// Returns a namespace by name, except `target` and the names of a `foreach`.
    fn namespace(&self, name: &str) -> Option<&Map<String, Value>> {
        Some(match name {
            "inputs" => &self.inputs,
            "vars" => &self.vars,
            "outputs" => &self.outputs,
            "working" => &self.working,
            "frame" => &self.frame,
            "output" => &self.output,
            "extensions" => &self.extensions,
            _ => return None,
        })
    }

    /// Returns the estimated memory of what steps have written, in bytes.
    pub(super) fn produced_bytes(&self) -> usize {
        [&self.vars, &self.outputs, &self.working, &self.output, &self.extensions]
            .into_iter()
            .map(object_bytes)
            .sum()
    }

    /// Returns a namespace that steps may write to.
    pub(super) fn writable(&mut self, name: &str) -> Option<&mut Map<String, Value>> {
        Some(match name {
            "vars" => &mut self.vars,
            "outputs" => &mut self.outputs,
            "working" => &mut self.working,
            "output" => &mut self.output,
            "extensions" => &mut self.extensions,
            _ => return None,
        })
    }
}

/// The scope in which a step of a contract resolves its references.
#[derive(Debug, Clone, Copy)]
pub struct StepScope<'a> {
    pub space: &'a Namespaces,
    /// What the run is attached to.
    pub target: Option<&'a Value>,
    /// Names that a `foreach` defines: its item and its index.
    pub locals: &'a Map<String, Value>,
}

impl StepScope<'_> {
    pub fn has(&self, path: &[String]) -> bool {
        self.find(path).is_some()
    }

    fn find(&self, path: &[String]) -> Option<Value> {
        let (first, rest) = path.split_first()?;
        if let Some(local) = self.locals.get(first) {
            return walk(local, rest).cloned();
        }
        if first == "target" {
            return walk(self.target?, rest).cloned();
        }
        let namespace = self.space.namespace(first)?;
        match rest.split_first() {
            None => Some(Value::Object(namespace.clone())),
            Some((field, deeper)) => walk(namespace.get(field)?, deeper).cloned(),
        }
    }
}

impl expression::Scope for StepScope<'_> {
    fn resolve(&self, path: &[String]) -> Result<Value, String> {
        if let Some(value) = self.find(path) {
            return Ok(value);
        }
        let first = path.first().map_or("", String::as_str);
        let dotted = path.join(".");
        if PRODUCED.contains(&first) {
            let missing = (2..path.len())
                .find(|length| !self.has(&path[..*length]))
                .map(|length| format!(" (there is no {})", path[..length].join(".")))
                .unwrap_or_default();
            return Err(format!(
                "{dotted} has no value{missing}: no earlier step wrote it, or that step was skipped"
            ));
        }
        if self.locals.contains_key(first) || first == "target" || self.space.namespace(first).is_some() {
            return Ok(Value::Null);
        }
        Err(format!("{dotted} does not begin with a namespace"))
    }
}

/// Walks from a value along a path: object fields by name, list items by index.
pub(super) fn walk<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, part| match value {
        Value::Object(map) => map.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use expression::Scope as _;
    use serde_json::json;

    use super::*;

    fn ask(path: &str) -> Result<Value, String> {
        let space: Namespaces = serde_json::from_value(json!({
            "inputs": {"file": "a.pdf"}, "vars": {"rows": [{"n": 1}, {"n": 2}], "none": null}
        }))
        .unwrap();
        let target = json!({"type": "output", "content": {"total": 3}});
        let locals = Map::from_iter([("item".to_owned(), json!({"name": "x"}))]);
        let scope = StepScope { space: &space, target: Some(&target), locals: &locals };
        scope.resolve(&path.split('.').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn values_are_found_at_any_depth() {
        assert_eq!(ask("inputs.file"), Ok(json!("a.pdf")));
        assert_eq!(ask("vars.rows.1.n"), Ok(json!(2)));
        assert_eq!(ask("target.content.total"), Ok(json!(3)));
        assert_eq!(ask("item.name"), Ok(json!("x")));
        assert_eq!(ask("vars.none"), Ok(Value::Null));
        assert_eq!(ask("inputs"), Ok(json!({"file": "a.pdf"})));
    }

    #[test]
    fn inputs_may_be_absent_but_outputs_may_not() {
        for path in
            ["inputs.limit", "frame.goal.x", "output.note", "extensions.a", "target.content.x.y", "item.age"]
        {
            assert_eq!(ask(path), Ok(Value::Null), "{path}");
        }
        for path in ["vars.total", "vars.rows.7", "outputs.sum", "working.notes.a"] {
            let error = ask(path).unwrap_err();
            assert!(error.starts_with(path), "{error}");
        }
        assert!(ask("working.notes.a.b").unwrap_err().contains("there is no working.notes"));
        assert!(ask("nothing.x").unwrap_err().contains("namespace"));
    }
}
