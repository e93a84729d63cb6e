//! Short results, to save the model's tokens: only what it needs to continue. `explain: true` returns everything.

use serde_json::{Map, Number, Value};
use skills_skill::prefix;

/// The argument that requests the complete result.
pub const EXPLAIN: &str = "explain";

/// The fields of each operation's short result, as paths: lists are traversed, `*` matches every field, and a number
/// after a colon is the maximum number of bytes of a text. Results of other operations are short anyway.
const COMPACT_FIELDS: [(&str, &[&str]); 17] = [
    (
        "skill.discover",
        &[
            "verdict",
            "fit",
            "confidence.lead",
            "confidence.fits_from",
            "results.skill_id",
            "results.score",
            "results.description:240",
            "results.reason:120",
            "results.exclusion_note:120",
            "results.needs_approval:120",
            "attachable.skill_id",
            "attachable.attach_targets",
            "below_limit",
            "bodies_missing",
            "hints",
        ],
    ),
    (
        "skill.list",
        &[
            "skills.skill_id",
            "skills.description:240",
            "skills.role",
            "skills.status",
            "skills.shadowed_by",
            "refused.id",
            "total",
            "next",
            "hints",
        ],
    ),
    (
        "skill.describe",
        &[
            "summary.skill_id",
            "summary.name",
            "summary.description",
            "summary.role",
            "summary.invocation",
            "summary.effect_mode",
            "summary.status",
            "summary.kind",
            "summary.domain",
            "summary.tags",
            "summary.attach_targets",
            "summary.location",
            "summary.shadowed_by",
            "summary.has_contract",
            "summary.trusted",
            "summary.needs_approval",
            "findings.code",
            "findings.message",
            "files.path",
            "files.bytes",
        ],
    ),
    (
        "skill.collisions",
        &[
            "complete",
            "done",
            "skills",
            "severe",
            "total",
            "map.clusters",
            "map.collisions.skill_id",
            "map.collisions.rival",
            "map.collisions.lost",
            "map.collisions.made",
            "map.groups.kind",
            "map.groups.skills",
        ],
    ),
    (
        "skill.lint",
        &[
            "skills",
            "findings.skill_id",
            "findings.code",
            "findings.severity",
            "findings.message:240",
            "findings.span.line",
            "summary",
            "next",
        ],
    ),
    ("skill.diagnostics", DIAGNOSTICS),
    ("skill.metrics.reset", DIAGNOSTICS),
    ("skill.governance.list", &["skills.skill_id", "skills.state", "skills.next", "total", "next"]),
    (
        "skill.visibility",
        &[
            "clients.client",
            "clients.version",
            "clients.with_description",
            "skills.skill_id",
            "skills.words",
            "skills.cells.client",
            "skills.cells.state",
            "skills.cells.words",
            "skills.cells.reason:160",
            "total",
            "next",
        ],
    ),
    ("proposal.create", PROPOSAL),
    ("proposal.show", PROPOSAL),
    (
        "proposal.list",
        &[
            "proposals.proposal_id",
            "proposals.skill_id",
            "proposals.state",
            "proposals.title:120",
            "proposals.p_at_1",
            "total",
            "waiting",
            "next",
        ],
    ),
    (
        "run.list",
        &[
            "runs.id",
            "runs.skill_id",
            "runs.state",
            "runs.step",
            "runs.options.title",
            "runs.options.labels",
            "runs.options.assigned.to",
            "runs.error.code",
            "runs.error.message:240",
            "runs.started_by",
            "runs.since_ms",
            "runs.expires_ms",
            "counts",
            "next",
        ],
    ),
    ("skill.execute", EXECUTED),
    ("capability.execute", EXECUTED),
    (
        "skill.attach",
        &[
            "skill_id",
            "target_type",
            "target_ref",
            "execution.id",
            "execution.state",
            "execution.step",
            "execution.outputs",
            "execution.error",
            "control",
            "trace",
        ],
    ),
    (
        "capability.explain",
        &[
            "description",
            "inputs.*.type",
            "inputs.*.required",
            "inputs.*.description",
            "inputs.*.default",
            "inputs.*.enum",
            "outputs.*.type",
            "outputs.*.description",
            "gates",
            "explanation.capability",
            "explanation.chosen",
            "explanation.summary",
            "explanation.bindings.binding",
            "explanation.bindings.obstacle",
        ],
    ),
];

const DIAGNOSTICS: &[&str] = &[
    "version",
    "roots.label",
    "roots.state",
    "skills",
    "shadowed",
    "refused",
    "scan.done",
    "index.done",
    "uptime_seconds",
    "operations.*.calls",
    "operations.*.errors",
    "link_failures",
];

const PROPOSAL: &[&str] = &[
    "summary.proposal_id",
    "summary.skill_id",
    "summary.state",
    "summary.decision",
    "summary.rollback",
    "part",
    "diff:4000",
    "justification:1000",
    "evidence:1000",
    "checks.check",
    "checks.result",
    "checks.evidence",
    "new_findings.code",
    "new_findings.message",
    "effect.before",
    "effect.after",
    "effect.won.query",
    "effect.lost.query",
];

const EXECUTED: &[&str] =
    &["run.id", "run.skill_id", "run.state", "run.step", "run.outputs", "run.error", "idempotency", "trace"];

/// Returns the short form of an operation's result.
pub fn short(operation: &str, answer: Value) -> Value {
    match COMPACT_FIELDS.iter().find(|(name, _)| *name == operation) {
        Some((_, paths)) => picked(answer, paths).unwrap_or_else(|| Value::Object(Map::new())),
        None => answer,
    }
}

/// Returns the parts of a value that the paths select; `None` if there are none.
fn picked(value: Value, paths: &[&str]) -> Option<Value> {
    match value {
        Value::Array(items) => {
            let items: Vec<Value> = items.into_iter().filter_map(|item| picked(item, paths)).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(members) => {
            let members = members.into_iter().filter_map(|(name, value)| {
                let below: Vec<&str> = paths.iter().filter_map(|path| below(path, &name)).collect();
                match below.first()?.strip_prefix(':').map(str::parse) {
                    Some(Ok(most)) => Some((name, cut(value, most)?)),
                    _ if below.contains(&"") => Some((name, shortened(value)?)),
                    _ => Some((name, picked(value, &below)?)),
                }
            });
            let members: Map<String, Value> = members.collect();
            (!members.is_empty()).then_some(Value::Object(members))
        }
        _ => None,
    }
}

/// Returns the rest of a path after this field.
fn below<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    let end = path.find(['.', ':']).unwrap_or(path.len());
    let (first, rest) = path.split_at(end);
    (first == "*" || first == name).then(|| rest.strip_prefix('.').unwrap_or(rest))
}

/// Returns a value, or `None` if it is empty. Floating-point numbers are rounded to two decimal places.
fn shortened(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Array(items) if items.is_empty() => None,
        Value::Object(members) if members.is_empty() => None,
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().map(|figure| (figure * 100.0).round() / 100.0);
            Some(rounded.and_then(Number::from_f64).map_or(Value::Number(number), Value::Number))
        }
        other => Some(other),
    }
}

/// Truncates a text to that many bytes, if possible after a clause, otherwise after a word.
fn cut(value: Value, most: usize) -> Option<Value> {
    match value {
        Value::String(text) if text.len() > most => {
            let start = prefix(&text, most);
            let last = |mark: &str| start.rfind(mark).filter(|at| 3 * at >= most);
            Some(Value::String(match (last("; "), last(" ")) {
                (Some(clause), _) => format!("{}; …", prefix(start, clause)),
                (None, Some(word)) => format!("{}…", prefix(start, word)),
                (None, None) => format!("{start}…"),
            }))
        }
        other => shortened(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn compact_result_has_the_fields_for_a_model() {
        let answer = json!({
            "fit": "high", "took_us": 7, "attachable": [],
            "results": [{
                "skill_id": "pdf", "score": 1.216_965_7, "breakdown": { "words": [] }, "exclusion_note": null,
                "description": "é".repeat(200), "reason": "its name",
            }],
        });
        let shortened = short("skill.discover", answer);
        assert_eq!(shortened["results"][0]["description"].as_str().map(str::len), Some(243));
        let mut rest = shortened;
        rest["results"][0]["description"] = json!("é");
        let expected = json!({
            "fit": "high",
            "results": [{ "skill_id": "pdf", "score": 1.22, "description": "é", "reason": "its name" }],
        });
        assert_eq!(rest, expected);
    }

    #[test]
    fn a_long_reason_ends_after_a_clause_or_a_word() {
        let reason = |text: String| {
            let answer = short("skill.discover", json!({ "results": [{ "reason": text }] }));
            answer["results"][0]["reason"].as_str().unwrap().to_owned()
        };
        let clause = "its description contains “malware” and “samples”";
        assert_eq!(
            reason(format!("{clause}; “smaple” was read as “sample” and so on {clause}")),
            format!("{clause}; …")
        );
        let words = reason("word ".repeat(40));
        assert!(words.ends_with("word…") && words.len() <= 123, "{words}");
    }

    #[test]
    fn outputs_of_a_run_are_not_truncated() {
        let outputs = json!({ "rate": 0.123_456, "rows": [], "note": null });
        let run = json!({ "id": "r", "outputs": outputs, "inputs": { "a": 1 } });
        let answer = short("skill.execute", json!({ "run": run, "idempotency": "none" }));
        assert_eq!(answer, json!({ "run": { "id": "r", "outputs": outputs }, "idempotency": "none" }));
        let figures = json!({ "operations": { "list": { "calls": 3, "max_us": 9 } } });
        let expected = json!({ "operations": { "list": { "calls": 3 } } });
        assert_eq!(short("skill.diagnostics", figures), expected);
        assert_eq!(short("runtime.health", json!({ "ready": null })), json!({ "ready": null }));
    }
}
