//! `skills verify` against a service: checks that lack a scope or are delayed by the limit are reported and do not
//! fail.

use std::process::Command;

use serde_json::Value;
use skills_api::{CoreParts, RateLimit};
use skills_http::Settings;

use super::callers::keyed;
use super::test_server::TestServer;
use crate::runs_place::TestHome;

/// Runs the verifier over the skills of the service's own place.
async fn verify(test_server: &TestServer, what: &'static str, key: Option<&str>) -> (i32, Value) {
    let roots = test_server.place.path("skills");
    test_server
        .place
        .write("config/skill-workbench/config.yaml", &format!("trust: [\"{}\"]\n", roots.display()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_skills"));
    let url = format!("http://{}", test_server.address);
    command
        .args(["verify", what, "--json", "--url", &url, "--root"])
        .arg(roots)
        .current_dir(test_server.place.path("work"))
        .env_clear()
        .env("HOME", test_server.place.path("elsewhere"))
        .env("XDG_CONFIG_HOME", test_server.place.path("config"))
        .env("PATH", std::env::var_os("PATH").unwrap());
    if let Some(key) = key {
        command.env("SKILLS_API_KEY", key);
    }
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let message = String::from_utf8_lossy(&ran.stderr).into_owned();
    let report = serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {message}"));
    (ran.status.code().unwrap(), report)
}

fn of<'r>(report: &'r Value, outcome: &str) -> Vec<&'r Value> {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().filter(|check| check["outcome"] == outcome).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_without_scope_are_skipped_with_the_scope_named() {
    let (test_server, [reader, ..]) = keyed().await;
    for what in ["parity", "adapters"] {
        let (code, report) = verify(&test_server, what, Some(&reader)).await;
        assert_eq!((code, of(&report, "fails")), (0, Vec::new()), "{what}");
        let untried = of(&report, "not_tried");
        assert_eq!(report["not_tried"], untried.len());
        let run = untried.iter().find(|check| check["check"].as_str().unwrap().starts_with("skill.execute "));
        let run = run.unwrap_or_else(|| panic!("{what}: {report}"));
        assert_eq!(run["scope"], "run");
        assert!(run["note"].as_str().unwrap().contains("lacks the scope `run`"), "{run}");
        // Checks that this key may not run do not count as failures of the service.
        let places = untried.iter().filter(|check| check["scope"] == "admin").count();
        assert_eq!(places > 0, what == "parity", "{report}");
        assert!(of(&report, "holds").len() > 10, "{what}: {report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_without_a_key_are_skipped() {
    let (test_server, _) = keyed().await;
    let (code, report) = verify(&test_server, "controls", None).await;
    assert_eq!((code, of(&report, "fails")), (0, Vec::new()), "{report}");
    let untried = of(&report, "not_tried");
    let of_key = untried.iter().filter(|check| check["note"].as_str().unwrap().starts_with("no API key"));
    assert!(of_key.count() > 5, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exhausted_rate_limit_delays_checks_without_failures() {
    let place = TestHome::new();
    let core = place.open_with(CoreParts::Index).await;
    let limiter = Some(core.limiter(RateLimit { requests: 3, window_seconds: 3600 }).await.unwrap());
    let test_server = TestServer::over(place, core, Settings { limiter, ..Settings::default() }).await;
    while test_server.get("/v1/skills/list").await.status != 429 {}
    for what in ["parity", "adapters", "controls"] {
        let (code, report) = verify(&test_server, what, None).await;
        let failed = of(&report, "fails");
        assert_eq!((code, failed), (0, Vec::new()), "{what}");
        let untried = of(&report, "not_tried");
        assert!(!untried.is_empty(), "{what}: {report}");
        let why = untried[0]["note"].as_str().unwrap();
        assert!(why.contains("the rate limit is exhausted"), "{what}: {why}");
    }
}
