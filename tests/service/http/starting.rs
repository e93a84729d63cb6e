//! A service that has just started and still reads its skills.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use skills_api::Local;
use skills_http::Settings;

use super::errors::is;
use super::test_server::{TestServer, WAIT_TIMEOUT};
use crate::runs_place::{TestHome, sandbox};

/// A service whose first scan does not start until the fail point is removed.
pub async fn starting(catalog_timeout: Duration) -> TestServer {
    fail::cfg(FIRST_SCAN, "pause").unwrap();
    let place = TestHome::new();
    let core = Local::open(place.config.clone()).unwrap();
    let core = core.with_sandbox(sandbox()).with_catalog_timeout(catalog_timeout);
    TestServer::over(place, Arc::new(core), Settings::default()).await
}

pub const FIRST_SCAN: &str = "first-scan";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_missing_before_the_first_scan() {
    let test_server = starting(Duration::from_millis(50)).await;
    for (name, arguments) in [
        ("skill.describe", json!({ "skill_id": "ledger" })),
        ("skill.list", json!({})),
        ("skill.discover", json!({ "intent": "book the ledger" })),
        ("skill.execute_async", json!({ "skill_id": "ledger", "inputs": { "amounts": [1] } })),
        ("capability.explain", json!({ "capability_id": "ledger.book" })),
    ] {
        let answer = test_server.call(name, arguments).await;
        is(&answer, 503, "not_ready");
        assert!(answer.header("retry-after").is_some(), "{name}: {}", answer.head);
    }
    for name in ["runtime.health", "run.list", "event.newest", "skill.diagnostics"] {
        assert_eq!(test_server.call(name, json!({})).await.status, 200, "{name}");
    }
    fail::remove(FIRST_SCAN);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_wait_for_the_first_scan() {
    let test_server = starting(Duration::from_secs(60)).await;
    let describe = test_server.call("skill.describe", json!({ "skill_id": "ledger" }));
    let scan = async {
        // Sent second, so that the other request arrives before the scan starts.
        assert_eq!(test_server.get("/v1/health").await.json()["ready"], false);
        fail::remove(FIRST_SCAN);
    };
    let (answer, ()) = tokio::join!(describe, scan);
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_wait_for_the_first_index() {
    fail::cfg(FIRST_INDEX, "pause").unwrap();
    let place = TestHome::new();
    let core = Local::open(place.config.clone()).unwrap();
    let core = core.with_sandbox(sandbox()).with_catalog_timeout(Duration::from_secs(60));
    let test_server = TestServer::over(place, Arc::new(core), Settings::default()).await;
    let scanned = async {
        while test_server.get("/v1/skills/diagnostics").await.json()["scan"]["done"] != true {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, scanned).await.unwrap();
    let discover = test_server.call("skill.discover", json!({ "intent": "book the ledger" }));
    let index = async {
        // Sent second, so that the other request arrives before the index is built.
        assert_eq!(test_server.get("/v1/health").await.status, 200);
        fail::remove(FIRST_INDEX);
    };
    let (answer, ()) = tokio::join!(discover, index);
    assert_eq!(answer.json()["results"][0]["skill_id"], "ledger", "{}", answer.body);
}

const FIRST_INDEX: &str = "first-index";

#[tokio::test(flavor = "multi_thread")]
async fn response_counts_bodies_not_read_after_two_seconds() {
    fail::cfg("bodies", "pause").unwrap();
    let place = TestHome::new();
    let core = Local::open(place.config.clone()).unwrap();
    let core = core.with_sandbox(sandbox()).with_catalog_timeout(Duration::from_secs(60));
    let test_server = TestServer::over(place, Arc::new(core), Settings::default()).await;
    let sentence = async || {
        let answer = test_server.call("skill.discover", json!({ "intent": "book the ledger" })).await;
        let verdict = answer.json()["verdict"]["sentence"].clone();
        verdict.as_str().unwrap_or_else(|| panic!("{}", answer.body)).to_owned()
    };
    let started = std::time::Instant::now();
    let early = sentence().await;
    assert!(early.ends_with(" still being read"), "{early}");
    assert!(started.elapsed() >= Duration::from_secs(2), "it waited");
    let started = std::time::Instant::now();
    sentence().await;
    assert!(started.elapsed() < Duration::from_secs(2), "only the first requests wait");
    fail::remove("bodies");
    let read = async {
        while sentence().await.contains("still being read") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, read).await.unwrap();
}
