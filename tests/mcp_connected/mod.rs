//! The MCP server of a client's machine in front of a service that requires authentication.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use rmcp::model::{ElicitationAction, ProtocolVersion};
use serde_json::json;
use skills_api::new_key;
use skills_api::operations::Scope;

use crate::cli_runs_fixture::RunsFixture;
use crate::mcp_client::Client;

/// A service with two keys, in files: one that may run, one that may decide too.
struct Keyed {
    fixture: RunsFixture,
    server: Child,
    address: String,
}

impl Drop for Keyed {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Keyed {
    fn begin() -> Self {
        let fixture = RunsFixture::new();
        let place = fixture.home.path().to_owned();
        let mut lines = "keys:\n".to_owned();
        let runs = [Scope::Read, Scope::Run];
        for (name, scopes) in [("op", &runs[..]), ("adm", &[runs[0], runs[1], Scope::Decide][..])] {
            let (key, stored) = new_key(name, scopes.iter().copied().collect::<BTreeSet<_>>()).unwrap();
            std::fs::write(place.join(name), key).unwrap();
            lines += &format!("  {}\n", stored.line());
        }
        std::fs::write(place.join("keys.yaml"), lines).unwrap();
        for file in ["op", "adm", "keys.yaml"] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(place.join(file), mode).unwrap();
        }
        let mut server = fixture
            .command()
            .arg("--root")
            .arg(fixture.home.skills())
            .args(["serve", "--port", "0", "--key-file"])
            .arg(place.join("keys.yaml"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(server.stdout.take().unwrap());
        let address = out.lines().map_while(Result::ok).find_map(|line| {
            let rest = line.split_once("http://")?.1.to_owned();
            let end =
                rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':')).unwrap_or(rest.len());
            Some(format!("http://{}", &rest[..end]))
        });
        Self { fixture, server, address: address.unwrap() }
    }

    async fn client(&self, key: &str, version: ProtocolVersion, answer: ElicitationAction) -> Client {
        let mut command = self.fixture.command();
        command.args(["--connect", &self.address, "--api-key-file"]).arg(self.fixture.home.path().join(key));
        command.arg("mcp");
        Client::by(command, version, Some(answer)).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_the_scope_is_not_prompted() {
    let keyed = Keyed::begin();
    let send = json!({ "skill_id": "send", "inputs": { "to": "ana" } });
    for version in [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28] {
        for answer in [ElicitationAction::Accept, ElicitationAction::Decline] {
            let mut client = keyed.client("op", version.clone(), answer).await;
            let (failure, message) = client.fails_with_a_way_on("skill.execute", send.clone()).await;
            let error = &failure["error"];
            assert_eq!(error["code"], "confirmation_required", "{version}: {failure}");
            let run = error["reason"]["run_id"].as_str().unwrap();
            let digest = error["reason"]["gate"]["human"]["inputs_digest"].as_str().unwrap();
            let approve = format!("runs approve {run} --step send --inputs-digest {digest}`");
            assert!(message.contains(&format!("`skills --connect {}", keyed.address)), "{message}");
            assert!(message.contains(&approve) && message.contains("--api-key-file"), "{message}");
            assert_eq!(
                client.elicitations(),
                Vec::<String>::new(),
                "{version}: an answer would be thrown away"
            );
        }
    }
    assert!(keyed.fixture.mails().is_empty());
    let mut client = keyed.client("adm", ProtocolVersion::V_2025_11_25, ElicitationAction::Accept).await;
    let answer = client.works("skill.execute", send).await;
    assert_eq!(client.elicitations().len(), 1);
    assert_eq!(keyed.fixture.mails(), ["to ana"]);
    let run = answer["run"]["id"].as_str().unwrap();
    let shown = keyed.fixture.json(&["runs", "show", run]).to_string();
    assert!(shown.contains("\"approver\":\"adm\""), "recorded is whose key it was: {shown}");
    let files = keyed
        .fixture
        .command()
        .args(["--connect", &keyed.address, "--api-key-file"])
        .arg(keyed.fixture.home.path().join("op"))
        .args(["governance", "--limit", "1"])
        .output()
        .unwrap();
    let text = String::from_utf8(files.stdout).unwrap();
    assert!(files.status.success() && text.contains("missing for the next state"), "{text}");
}
