//! Tests of the deployment files in `assets/deploy`: their command lines are valid for this version, and the files can
//! be parsed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Cli, command};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/deploy")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap()
}

/// Prefixes of a command line in a comment, a unit or a manifest.
const PREFIXES: [&str; 7] =
    ["#", "$ ", "docker compose exec service-a ", "CMD ", "ExecStart=", "command: ", "RUN "];

/// Returns the arguments of a line that calls `skills`, written as words or as a JSON array.
fn call(line: &str) -> Option<Vec<String>> {
    let mut rest = line.trim();
    while let Some(shorter) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = shorter.trim_start();
    }
    if rest.starts_with("[\"skills\"") {
        return Some(serde_json::from_str(rest).unwrap_or_else(|e| panic!("{line}: {e}")));
    }
    let rest = rest.strip_prefix("/usr/local/bin/").unwrap_or(rest);
    let is_call = rest.starts_with("skills ");
    // The rest is a comment on the command, or another command.
    let words = rest.split_whitespace().take_while(|word| !matches!(*word, "#" | "&&" | "|" | ">"));
    is_call.then(|| words.map(str::to_owned).collect())
}

#[test]
fn every_command_line_is_parsed() {
    let expected = [("Dockerfile", 1), ("compose.yaml", 3), ("skills.service", 2), ("kubernetes.yaml", 3)];
    for (file, count) in expected {
        let text = read(file);
        let calls: Vec<Vec<String>> = text.lines().filter_map(call).collect();
        assert_eq!(calls.len(), count, "{file}: {calls:?}");
        for words in calls {
            let parsed = command().try_get_matches_from(&words).and_then(|found| Cli::of(&found));
            let cli = parsed.unwrap_or_else(|error| panic!("{file}: {words:?}: {error}"));
            assert!(cli.command.is_some(), "{file}: {words:?}");
        }
    }
}

#[test]
fn invalid_command_line_is_reported() {
    for line in [
        "CMD [\"skills\", \"serve\", \"--hots\", \"0.0.0.0\"]",
        "ExecStart=/usr/local/bin/skills srve --port 1",
    ] {
        let words = call(line).unwrap();
        assert!(command().try_get_matches_from(&words).is_err(), "{words:?}");
    }
    assert_eq!(call("# The folder `skills` has the skills"), None);
}

#[test]
fn manifests_are_valid_yaml() {
    let compose: Value = serde_saphyr::from_str(&read("compose.yaml")).unwrap();
    let services = compose["services"].as_object().unwrap();
    assert_eq!(services.len(), 3);
    for name in ["service-a", "service-b"] {
        let service = &services[name];
        assert!(service["ports"].is_array() && service["command"].is_array(), "{name}: the anchor is merged");
        assert_eq!(service["depends_on"]["postgres"]["condition"], "service_healthy");
    }
    let manifests: Vec<Value> = serde_saphyr::from_multiple(&read("kubernetes.yaml")).unwrap();
    let kinds: Vec<&str> = manifests.iter().filter_map(|manifest| manifest["kind"].as_str()).collect();
    assert_eq!(kinds, ["ConfigMap", "ConfigMap", "Job", "Deployment", "Service", "PodDisruptionBudget"]);
    let pod = &manifests[3]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/livez");
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > 10);
}

#[test]
fn the_unit_is_accepted_by_systemd() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("skills.service");
    // The program need not be installed here.
    std::fs::write(&unit, read("skills.service").replace("/usr/local/bin/skills", "/bin/true")).unwrap();
    let verify = Command::new("systemd-analyze").arg("verify").arg(&unit).stdin(Stdio::null()).output();
    let Ok(output) = verify else {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    };
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !message.contains("skills.service:"), "{message}");
}
