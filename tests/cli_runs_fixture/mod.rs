//! A home with small skills that have contracts, and a store of its own.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::binary::{Answer, Home};

/// Counts words; refuses the word `bad`.
const COUNT: &str = r#"import json, sys
given = json.load(sys.stdin)["inputs"]
if given.get("text") == "bad":
    sys.exit("a bad text")
words = len(str(given.get("text", "")).split())
print(json.dumps({"count": words * int(given.get("times") or 1)}))
"#;

/// A fixture for runs: `words` counts, `send` requires approval before it sends, `later` waits for a signal, `picky`
/// fails on a bad text, `watcher` is attached to outputs.
pub struct RunsFixture {
    pub home: Home,
}

fn capability(id: &str, inputs: &str, outputs: &str, more: &str) -> String {
    format!(
        "id: {id}\nversion: 1.0.0\ndescription: Of these tests.\ninputs: {inputs}\noutputs: {outputs}\n{more}\n"
    )
}

fn binding(id: &str, capability: &str, script: &str) -> String {
    format!(
        "id: {id}\ncapability: {capability}\nservice: bundle\nprotocol: script\noperation: scripts/{script}\n\
         metadata: {{conformance_profile: strict}}\n"
    )
}

impl RunsFixture {
    pub fn new() -> Self {
        let created = Self { home: Home::empty() };
        created.home.config(&format!("trust: [\"{}\"]\n", created.home.skills().display()));
        created.skills();
        created
    }

    fn skills(&self) {
        let home = &self.home;
        let contract = |id: &str, role: &str, body: &str| {
            home.skill(
                id,
                &format!("description: Does {id} for the tests of this program.\n{role}"),
                "Body.\n",
            );
            home.file(&format!("{id}/skill.yaml"), format!("id: test.{id}\nversion: 1.0.0\n{body}"));
        };
        contract(
            "words",
            "",
            "inputs:\n  text: {type: string, required: true}\n  times: {type: integer, default: 1}\n\
             outputs: {count: {type: integer, required: true}}\n\
             steps:\n  - {id: count, uses: text.words.count, input: {text: inputs.text, times: inputs.times}, output: {count: outputs.count}}\n",
        );
        let count = capability(
            "text.words.count",
            "{text: {type: string}, times: {type: integer}}",
            "{count: {type: integer, required: true}}",
            "properties: {deterministic: true, side_effects: false, idempotent: true}",
        );
        home.file("words/capabilities/text.words.count.yaml", count);
        home.file("words/bindings/count.yaml", binding("count_script", "text.words.count", "count.py"));
        home.file("words/bindings/other.yaml", binding("count_other", "text.words.count", "count.py"));
        home.file("words/scripts/count.py", COUNT);
        contract(
            "send",
            "",
            "inputs: {to: {type: string, required: true}}\noutputs: {sent: {type: string}}\n\
             steps:\n  - {id: send, uses: mail.message.send, input: {to: inputs.to}, output: {sent: outputs.sent}}\n",
        );
        let send = capability(
            "mail.message.send",
            "{to: {type: string, required: true}}",
            "{sent: {type: string, required: true}}",
            "properties: {deterministic: false, side_effects: true, idempotent: false}\n\
             safety: {trust_level: elevated, requires_confirmation: true}",
        );
        home.file("send/capabilities/mail.message.send.yaml", send);
        home.file("send/bindings/send.yaml", binding("send_script", "mail.message.send", "send.py"));
        home.file(
            "send/scripts/send.py",
            "import json, sys\nto = json.load(sys.stdin)['inputs']['to']\nprint(json.dumps({'sent': 'to ' + to}))\n",
        );
        contract(
            "later",
            "",
            "outputs: {count: {type: integer}}\n\
             steps:\n  - {id: closed, wait_for_signal: books-closed, output: {text: vars.text}}\n\
             \x20 - {id: count, uses: text.words.count, input: {text: vars.text}, output: {count: outputs.count}}\n",
        );
        contract(
            "picky",
            "",
            "inputs: {text: {type: string, required: true}}\noutputs: {count: {type: integer}}\n\
             steps:\n  - {id: count, uses: text.words.count, input: {text: inputs.text}, output: {count: outputs.count}}\n",
        );
        contract(
            "watcher",
            "metadata:\n  classification: {role: sidecar, invocation: attach, attach_targets: [output]}\n",
            "outputs: {count: {type: integer}}\n\
             steps:\n  - {id: look, uses: text.words.count, input: {text: \"of an output\"}, output: {count: outputs.count}}\n",
        );
    }

    /// The database of the default store.
    pub fn store(&self) -> PathBuf {
        self.home.path().join("home/.local/share/skill-workbench/runs.db")
    }

    /// The binary over the skills.
    pub fn command(&self) -> Command {
        self.home.command()
    }

    pub fn run(&self, args: &[&str]) -> Answer {
        self.home.run(args)
    }

    pub fn json(&self, args: &[&str]) -> Value {
        self.home.json(args)
    }

    /// A run of `send` that waits for approval.
    pub fn waiting_mail(&self) -> String {
        let waiting = self.run(&["run", "send", "--input", "to=ana", "--json"]);
        assert_eq!(waiting.code, 5, "{}{}", waiting.stdout, waiting.stderr);
        waiting.json()["run"]["id"].as_str().unwrap().to_owned()
    }

    /// Digest of what a run waits with.
    pub fn digest(&self, run: &str) -> String {
        self.json(&["runs", "show", run])["sheet"]["inputs_digest"].as_str().unwrap().to_owned()
    }

    /// What was sent, by the results of the steps that did.
    pub fn mails(&self) -> Vec<String> {
        let list = self.json(&["runs", "list", "--skill", "send"]);
        let runs = list["runs"].as_array().unwrap();
        runs.iter().filter_map(|run| run["outputs"]["sent"].as_str().map(str::to_owned)).collect()
    }
}
