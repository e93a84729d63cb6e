//! The files of a new skill. They work as generated: the script counts lines and words, and the contract runs it; the
//! author replaces the core and keeps the rest.

use std::fmt::Write as _;

use super::{NewFile, Scaffold, ScriptLanguage};
use skills_skill::{EffectMode, Invocation};

/// Returns every file of the bundle.
pub(super) fn files(spec: &Scaffold) -> Vec<NewFile> {
    let file = |path: &str, text: String| NewFile { path: path.to_owned(), text, executable: false };
    let mut files = vec![file("SKILL.md", skill_md(spec))];
    // A contract needs something to run.
    let language = spec.script.or(spec.contract.then_some(ScriptLanguage::Python));
    if let Some(language) = language {
        files.push(NewFile {
            path: script_path(spec, language),
            text: script(spec, language),
            executable: true,
        });
        if spec.contract {
            let names = Names::of(spec);
            files.push(file("skill.yaml", contract(spec, &names)));
            files.push(file(&format!("capabilities/{}.yaml", names.capability), capability(spec, &names)));
            files.push(file(&format!("bindings/{}.yaml", names.binding), binding(spec, &names, language)));
        }
    }
    if spec.references {
        files.push(file("references/details.md", references(spec)));
    }
    files
}

/// Returns queries derived from the description, if the author gives none.
pub(super) fn usual_queries(spec: &Scaffold) -> Vec<String> {
    let first = spec.description.split(['.', '!', '?']).next().unwrap_or_default();
    let ask = |text: &str| text.trim().trim_end_matches(['.', '!', '?']).to_lowercase();
    let mut queries = vec![ask(first)];
    queries.extend(spec.when.as_deref().map(|when| ask(when.trim_start_matches("Use when "))));
    queries
}

/// Formats a text as one YAML scalar: plain if that is safe, else quoted as in JSON.
pub(super) fn scalar(text: &str) -> String {
    let safe_start = text.starts_with(|c: char| c.is_alphabetic());
    let word =
        ["true", "false", "null", "yes", "no", "on", "off", "none"].contains(&text.to_lowercase().as_str());
    let is_plain_scalar = safe_start
        && !word
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && !text.chars().any(char::is_control);
    if is_plain_scalar { text.to_owned() } else { serde_json::Value::String(text.to_owned()).to_string() }
}

/// Ids used in the contract files.
struct Names {
    contract: String,
    capability: String,
    binding: String,
}

impl Names {
    fn of(spec: &Scaffold) -> Self {
        let domain = spec.domain.as_deref().unwrap_or("local").trim().to_lowercase().replace([' ', '_'], "-");
        let contract = format!("{domain}.{}", spec.id);
        let capability = format!("{contract}.count");
        Self { binding: capability.replace('.', "-"), contract, capability }
    }
}

fn title(spec: &Scaffold) -> String {
    let words = spec.id.replace('-', " ");
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

fn script_path(spec: &Scaffold, language: ScriptLanguage) -> String {
    let stem = spec.id.replace('-', "_");
    match language {
        ScriptLanguage::Python => format!("scripts/{stem}.py"),
        ScriptLanguage::Node => format!("scripts/{stem}.mjs"),
        ScriptLanguage::Shell => format!("scripts/{stem}.sh"),
    }
}

fn flow(words: &[String]) -> String {
    format!("[{}]", words.iter().map(|word| scalar(word.trim())).collect::<Vec<_>>().join(", "))
}

fn classification(spec: &Scaffold) -> Vec<(&'static str, String)> {
    let mut fields = vec![("role", spec.role.to_string()), ("invocation", spec.invocation().to_string())];
    if !spec.targets.is_empty() {
        let targets: Vec<String> = spec.targets.iter().map(ToString::to_string).collect();
        fields.push(("attach_targets", flow(&targets)));
    }
    fields.push(("effect_mode", spec.effect.to_string()));
    fields
}

fn skill_md(spec: &Scaffold) -> String {
    let mut out = format!("---\nname: {}\ndescription: {}\n", spec.id, scalar(&spec.whole_description()));
    out += "metadata:\n  classification:\n";
    for (key, value) in classification(spec) {
        let _ = writeln!(out, "    {key}: {value}");
    }
    out += "  status: experimental\n";
    if let Some(domain) = &spec.domain {
        let _ = writeln!(out, "  domain: {}", scalar(domain.trim()));
    }
    let _ = writeln!(out, "  kind: {}", spec.kind());
    if !spec.tags.is_empty() {
        let _ = writeln!(out, "  tags: {}", flow(&spec.tags));
    }
    let _ = write!(out, "---\n\n# {}\n\n{}\n", title(spec), spec.description.trim());
    out += "\n## What you need\n\nState what is required before the first step: files, access, a \
        decision.\n";
    out += "\n## What to do\n\n";
    let language = spec.script.or(spec.contract.then_some(ScriptLanguage::Python));
    match language {
        Some(language) => {
            let path = script_path(spec, language);
            let (interpreter, input) = match language {
                ScriptLanguage::Python => ("python3", r#"{"text": "one line\nand another"}"#),
                ScriptLanguage::Node => ("node", r#"{"text": "one line\nand another"}"#),
                ScriptLanguage::Shell => ("bash", "one line"),
            };
            let _ = write!(
                out,
                "1. Take the complete text as given.\n2. Run the script; it reads standard input and \
                    prints one JSON object:\n\n```bash\nprintf '%s' '{input}' | {interpreter} {path}\n```\n\n3. Report the counts, and what could not be read.\n"
            );
        }
        None => {
            out += "1. Read the complete input before you answer.\n2. State your conclusions and the \
                parts that support them.\n3. Report missing information instead of guessing.\n";
        }
    }
    if spec.contract {
        out += "\nAs a run: [skill.yaml](skill.yaml) has the same step with typed inputs and outputs.\n";
    }
    if spec.references {
        out += "\nFurther details: [references/details.md](references/details.md).\n";
    }
    out += "\n## What it is not for\n\nState tasks it could be mistaken for, and what to use instead.\n";
    out
}

fn references(spec: &Scaffold) -> String {
    format!(
        "# {}: details\n\nMaterial that is read only when needed: tables, forms, edge cases. Use one \
            heading per subject.\n",
        title(spec)
    )
}

fn attaches(spec: &Scaffold) -> bool {
    spec.invocation() == Invocation::Attach
}

fn steers(spec: &Scaffold) -> bool {
    spec.effect == EffectMode::ControlSignal
}

fn contract(spec: &Scaffold, names: &Names) -> String {
    let mut out = format!("id: {}\nversion: 0.1.0\nname: {}\n", names.contract, title(spec));
    let _ = writeln!(out, "description: {}", scalar(&spec.whole_description()));
    let input = if attaches(spec) {
        "content: target.content"
    } else {
        out += "inputs:\n  text: {type: string, required: true, description: What the script works on.}\n";
        "content: inputs.text"
    };
    out += "outputs:\n  lines: {type: integer, required: true}\n  words: {type: integer, required: true}\n";
    let mut produced = "lines: outputs.lines, words: outputs.words".to_owned();
    if steers(spec) {
        out += "  control: {type: string, required: true, enum: [none, pause, cancel]}\n  reason: {type: string, required: true}\n";
        produced += ", control: outputs.control, reason: outputs.reason";
    }
    let _ = write!(
        out,
        "steps:\n  - id: count\n    uses: {}\n    input: {{{input}}}\n    output: {{{produced}}}\n",
        names.capability
    );
    let class: Vec<String> =
        classification(spec).iter().map(|(key, value)| format!("{key}: {value}")).collect();
    let _ = write!(out, "metadata:\n  classification: {{{}}}\n  status: experimental\n", class.join(", "));
    if !spec.tags.is_empty() {
        let _ = writeln!(out, "  tags: {}", flow(&spec.tags));
    }
    out
}

fn capability(spec: &Scaffold, names: &Names) -> String {
    let mut out = format!(
        "id: {}\nversion: 0.1.0\ndescription: Counts lines and words.\ninputs:\n  content: {{type: any}}\noutputs:\n  \
         lines: {{type: integer, required: true}}\n  words: {{type: integer, required: true}}\n",
        names.capability
    );
    if steers(spec) {
        out += "  control: {type: string, required: true}\n  reason: {type: string, required: true}\n";
    }
    // True for the generated script; an author whose script writes or calls something changes this.
    out + "properties: {deterministic: true, side_effects: false, idempotent: true}\n"
}

fn binding(spec: &Scaffold, names: &Names, language: ScriptLanguage) -> String {
    let mut response = vec!["lines", "words"];
    if steers(spec) {
        response.extend(["control", "reason"]);
    }
    let response: String = response.iter().map(|field| format!("  {field}: response.{field}\n")).collect();
    format!(
        "id: {}\ncapability: {}\nservice: bundle\nprotocol: script\noperation: {}\nrequest:\n  content: \
         input.content\nresponse:\n{response}metadata:\n  conformance_profile: standard\n  description: A script of this \
         bundle, JSON in and out.\n",
        names.binding,
        names.capability,
        script_path(spec, language)
    )
}

fn script(spec: &Scaffold, language: ScriptLanguage) -> String {
    let what = format!("{}: counts lines and words", title(spec));
    match language {
        ScriptLanguage::Python => {
            let control = if steers(spec) {
                "    answer[\"control\"] = \"none\"\n    answer[\"reason\"] = \"nothing to object to\"\n"
            } else {
                ""
            };
            format!(
                r#"#!/usr/bin/env python3
"""{what}.

Reads a JSON object from standard input (`text` or `content`) and writes one to standard output. On failure it exits
with code 1 and a message on standard error.
"""
import json
import sys


def count(given):
    value = given.get("content", given.get("text"))
    if value is None:
        sys.exit("nothing to count: pass `text` or `content`")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    answer = {{"lines": len(text.splitlines()), "words": len(text.split())}}
{control}    return answer


if __name__ == "__main__":
    try:
        asked = json.load(sys.stdin)
    except ValueError as error:
        sys.exit(f"standard input is not valid JSON: {{error}}")
    print(json.dumps(count(asked)))
"#
            )
        }
        ScriptLanguage::Node => {
            let control =
                if steers(spec) { ", control: \"none\", reason: \"nothing to object to\"" } else { "" };
            format!(
                r#"#!/usr/bin/env node
// {what}. Reads a JSON object from standard input (`text` or `content`) and writes one to standard output;
// on failure it exits with code 1 and a message on standard error.
import {{ readFileSync }} from "node:fs";

function fail(sentence) {{
  process.stderr.write(`${{sentence}}\n`);
  process.exit(1);
}}

let asked;
try {{
  asked = JSON.parse(readFileSync(0, "utf8"));
}} catch (error) {{
  fail(`standard input is not valid JSON: ${{error.message}}`);
}}
const value = asked.content ?? asked.text ?? fail("nothing to count: pass `text` or `content`");
const text = typeof value === "string" ? value : JSON.stringify(value);
const lines = text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
const words = text.split(/\s+/).filter(Boolean).length;
process.stdout.write(`${{JSON.stringify({{ lines, words{control} }})}}\n`);
"#
            )
        }
        ScriptLanguage::Shell => format!(
            r#"#!/usr/bin/env bash
# {what}. Reads a text from standard input, prints one JSON object to standard output.
set -euo pipefail

text=$(cat)
if [ -z "$text" ]; then
  echo "nothing to count: pass a text on standard input" >&2
  exit 1
fi
lines=$(printf '%s\n' "$text" | wc -l | tr -d ' ')
words=$(printf '%s\n' "$text" | wc -w | tr -d ' ')
printf '{{"lines": %s, "words": %s}}\n' "$lines" "$words"
"#
        ),
    }
}
