//! Findings as SARIF 2.1.0, the format of code scanning services
//! (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>).

use std::path::Path;

use serde_json::{Value, json};

use super::baseline::relative;
use super::{IgnoredFinding, LintFinding, LintReport, LintRule, lint_rules};
use skills_skill::{Digest, Severity, safe_text};

/// URL of the published schema.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Returns a report as a SARIF log. Paths are relative to `folder`, the top of the repository.
pub fn lint_sarif(report: &LintReport, folder: &Path) -> Value {
    let rules = lint_rules();
    let new = report.baseline.map(|_| "new");
    let found = report.findings.iter().map(|found| result(found, &rules, folder, new));
    let known = report.known.iter().map(|found| result(found, &rules, folder, Some("unchanged")));
    let ignored = report.ignored.iter().map(|IgnoredFinding { found, reason }| {
        let mut result = result(found, &rules, folder, new);
        let reason = safe_text::line(reason).into_owned();
        result["suppressions"] = json!([{ "kind": "inSource", "justification": reason }]);
        result
    });
    let results: Vec<Value> = found.chain(known).chain(ignored).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "skills",
                "fullName": "Skill Workbench",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(descriptor).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn descriptor(rule: &LintRule) -> Value {
    json!({
        "id": rule.code,
        "shortDescription": { "text": rule.subject },
        "fullDescription": { "text": rule.reason },
        "help": { "text": rule.help },
        "defaultConfiguration": { "level": level(rule.severity) },
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn result(found: &LintFinding, rules: &[LintRule], folder: &Path, state: Option<&str>) -> Value {
    let finding = &found.finding;
    let path = relative(&found.path(), folder);
    let mut physical = json!({ "artifactLocation": artifact(&path) });
    if let Some(span) = finding.span {
        physical["region"] = json!({ "startLine": span.line, "startColumn": span.column });
    }
    let text = safe_text::block(&format!("{}. {}", finding.message, finding.help)).into_owned();
    // The location may move; rule, file and message identify the finding.
    let fingerprint = Digest::of(format!("{path}\0{}\0{}", finding.code, finding.message).as_bytes());
    let mut result = json!({
        "ruleId": finding.code,
        "level": level(finding.severity),
        "message": { "text": text },
        "locations": [{ "physicalLocation": physical }],
        "partialFingerprints": { "ruleFileMessage/v1": fingerprint.to_string() },
    });
    if let Some(index) = rules.iter().position(|rule| rule.code == finding.code) {
        result["ruleIndex"] = json!(index);
    }
    if let Some(state) = state {
        result["baselineState"] = json!(state);
    }
    result
}

/// Returns the location of a file: relative to the repository, or absolute if it is outside.
fn artifact(path: &str) -> Value {
    let uri = percent_encoded(path);
    if path.starts_with('/') || path.starts_with("..") {
        return json!({ "uri": if path.starts_with('/') { format!("file://{uri}") } else { uri } });
    }
    json!({ "uri": uri, "uriBaseId": "%SRCROOT%" })
}

/// Encodes every byte except unreserved characters and `/` (RFC 3986).
fn percent_encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            use std::fmt::Write as _;
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{BaselineChange, files};
    use super::*;

    /// Checks the requirements of SARIF 2.1.0 on the parts that this program writes: required properties (3.13 to
    /// 3.30), closed sets of values, and types.
    fn check(log: &Value) {
        let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        assert_eq!(log["version"], "2.1.0");
        assert!(text(&log["$schema"]));
        let runs = log["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 1);
        let driver = &runs[0]["tool"]["driver"];
        assert!(text(&driver["name"]));
        let rules = driver["rules"].as_array().unwrap();
        let mut ids = std::collections::HashSet::new();
        for rule in rules {
            assert!(ids.insert(rule["id"].as_str().unwrap()), "{rule}");
            for part in ["shortDescription", "fullDescription", "help"] {
                assert!(text(&rule[part]["text"]), "{part}: {rule}");
            }
            assert!(
                ["none", "note", "warning", "error"]
                    .contains(&rule["defaultConfiguration"]["level"].as_str().unwrap())
            );
        }
        assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&runs[0]["columnKind"].as_str().unwrap()));
        for result in runs[0]["results"].as_array().unwrap() {
            assert!(text(&result["message"]["text"]), "{result}");
            let index = result["ruleIndex"].as_u64().unwrap() as usize;
            assert_eq!(rules[index]["id"], result["ruleId"]);
            assert!(["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
            let state = result.get("baselineState").map(|state| state.as_str().unwrap());
            assert!(state.is_none_or(|state| ["new", "unchanged", "updated", "absent"].contains(&state)));
            for suppression in
                result.get("suppressions").into_iter().flat_map(|list| list.as_array().unwrap())
            {
                assert!(["inSource", "external"].contains(&suppression["kind"].as_str().unwrap()));
            }
            assert!(result["partialFingerprints"].as_object().unwrap().values().all(Value::is_string));
            for location in result["locations"].as_array().unwrap() {
                let physical = &location["physicalLocation"];
                let uri = physical["artifactLocation"]["uri"].as_str().unwrap();
                assert!(uri.is_ascii() && !uri.contains([' ', '\\']), "{uri}");
                if let Some(region) = physical.get("region") {
                    assert!(region["startLine"].as_u64().unwrap() >= 1);
                    assert!(region["startColumn"].as_u64().unwrap() >= 1);
                }
            }
        }
    }

    #[test]
    fn a_log_has_the_required_form() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("näme x/SKILL.md");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(path.with_file_name("other.md"), "").unwrap();
        let body = "---\nname: a\ndescription: Writes notes. Use for notes.\n---\n\
            <!-- skills-lint: ignore broken-link: generated -->\n[a](a.md)\n\n[b](b.md)\n";
        std::fs::write(&path, body).unwrap();
        let mut report = files(&[path]);
        assert!(report.findings.len() >= 2 && report.ignored.len() == 1, "{report:?}");
        let log = lint_sarif(&report, dir.path());
        check(&log);
        let results = log["runs"][0]["results"].as_array().unwrap();
        let uri = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"];
        assert_eq!(
            (uri["uri"].as_str(), uri["uriBaseId"].as_str()),
            (Some("n%C3%A4me%20x/SKILL.md"), Some("%SRCROOT%"))
        );
        assert_eq!(results.last().unwrap()["suppressions"][0]["justification"], "generated");
        report.known = report.findings.split_off(1);
        report.baseline = Some(BaselineChange { known: report.known.len(), resolved: 0 });
        let log = lint_sarif(&report, dir.path());
        check(&log);
        let states: Vec<&str> = log["runs"][0]["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| result["baselineState"].as_str().unwrap())
            .collect();
        assert!(states.starts_with(&["new", "unchanged"]), "{states:?}");
    }
}
