//! Checks that a service requires API keys, limits callers, and returns its error envelope for every rejected request.

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Map, Value, json};

use super::check::{Check, LIMITED};
use super::probe::{Probe, RawResponse};
use crate::failure::Failure;
use skills_api::operations::{Method, operation, operations};

/// Maximum number of requests sent to reach the rate limit.
const MAX_ATTEMPTS: u64 = 2_000;
/// What to do if an invalid request does not return the expected error.
const FORM: &str =
    "a proxy may respond instead of the service, or the version differs: connect to the service directly";
/// Why something was not checked without a key.
const NO_KEY: &str = "no API key: set SKILLS_API_KEY or use --api-key-file";
/// A body larger than a service accepts, in bytes.
const TOO_LARGE: usize = (2 << 20) + 1;

pub async fn checks(probe: &Probe) -> Result<Vec<Check>, Failure> {
    let mut checks = open(probe).await?;
    checks.extend(keys(probe).await?);
    checks.extend(refusals(probe).await?);
    checks.extend(server_files(probe).await?);
    checks.push(limit(probe).await?);
    Ok(checks)
}

/// Checks the open routes.
async fn open(probe: &Probe) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    for path in ["/v1/health", "/openapi.json", "/livez"] {
        let answer = probe.send(probe.unauthenticated_request("GET", path)).await?;
        let check = Check::of(
            format!("GET {path} needs no authentication"),
            &answer,
            answer.status == 200,
            unlike(&answer, 200),
        );
        checks.push(check.or("a proxy must pass it without a key, because health checks use it"));
    }
    Ok(checks)
}

/// Checks every other route, without a key and with a wrong one.
async fn keys(probe: &Probe) -> Result<Vec<Check>, Failure> {
    if !probe.has_key() {
        let answer = probe.send(probe.unauthenticated_request("GET", "/v1/skills/list?limit=1")).await?;
        let message = "authentication is required";
        if answer.status == 401 {
            return Ok(vec![
                Check::new(message, true, ""),
                Check::not_tried("a valid key is accepted", NO_KEY),
            ]);
        }
        let check = Check::of(
            message,
            &answer,
            false,
            "authentication is disabled: any client that can reach the \
                address has all permissions",
        );
        return Ok(vec![
            check.or("start the service with SKILLS_API_KEY or --keys-file, unless it is reachable only \
                from this machine"),
        ]);
    }
    let mut open_to_all = Vec::new();
    let (mut tried, mut kept_back) = (0, 0);
    for operation in operations().iter().filter(|operation| operation.scope.is_some()) {
        let arguments: Map<String, Value> =
            operation.route.parameters().map(|name| (name.to_owned(), Value::from("none"))).collect();
        let Some((path, _)) = operation.route.fill(arguments) else { continue };
        let method = operation.route.method.to_string();
        let request = |request: reqwest::RequestBuilder| {
            if operation.route.method == Method::Get {
                request
            } else {
                request.header(CONTENT_TYPE, "application/json").body("{}")
            }
        };
        for (who, answer) in [
            ("no key", probe.send(request(probe.unauthenticated_request(&method, &path))).await?),
            (
                "invalid key",
                probe
                    .send(request(
                        probe.unauthenticated_request(&method, &path).header(AUTHORIZATION, "Bearer wrong"),
                    ))
                    .await?,
            ),
        ] {
            if answer.is_limited() {
                kept_back += 1;
                continue;
            }
            tried += 1;
            if answer.status != 401 || answer.code().as_deref() != Some("unauthorized") {
                open_to_all.push(format!("{method} {path} with {who}: status {}", answer.status));
            }
        }
    }
    let right = probe.send(probe.request("GET", "/v1/skills/list?limit=1")).await?;
    let mut checks = Vec::new();
    if tried > 0 {
        let refused = Check::new(
            format!("a missing or invalid key is rejected ({tried} requests)"),
            open_to_all.is_empty(),
            open_to_all.join("; "),
        );
        checks.push(refused.or("these routes need no authentication"));
    }
    if kept_back > 0 {
        checks.push(Check::not_tried(format!("the same for {kept_back} more requests"), LIMITED));
    }
    let let_in = Check::of("a valid key is accepted", &right, right.status == 200, unlike(&right, 200));
    checks.push(let_in.or("the service does not know the API key, or it lacks the scope `read`"));
    Ok(checks)
}

/// Checks malformed requests.
async fn refusals(probe: &Probe) -> Result<Vec<Check>, Failure> {
    let json = |body: String| {
        probe.request("POST", "/v1/skills/discover").header(CONTENT_TYPE, "application/json").body(body)
    };
    let traced = probe.request("GET", "/v1/skills/no-such-skill/describe").header("x-trace-id", "verify-1");
    let wrong: [(&str, reqwest::RequestBuilder, u16, &str); 5] = [
        ("a body that is not JSON", json("{".to_owned()), 400, "invalid_request"),
        ("an unknown argument", json(r#"{"intnt": "a"}"#.to_owned()), 400, "invalid_request"),
        ("a body of more than 2 MiB", json("a".repeat(TOO_LARGE)), 413, "payload_too_large"),
        ("an unknown route", probe.request("GET", "/v1/no-such-route"), 404, "not_found"),
        ("an unknown skill", traced, 404, "not_found"),
    ];
    let mut checks = Vec::new();
    for (what, request, status, code) in wrong {
        let answer = match probe.send(request).await {
            Ok(answer) => answer,
            // A service may close the connection on a body that it rejects; other results are kept.
            Err(Failure::Core(error)) => {
                let check =
                    Check::new(format!("{what} is answered with {status} {code}"), false, error.message);
                checks.push(check.or(FORM));
                continue;
            }
            Err(other) => return Err(other),
        };
        let name = format!("{what} is answered with {status} {code}");
        let shaped = answer.code().as_deref() == Some(code) && answer.json()["trace_id"].is_string();
        let passes = answer.status == status && shaped;
        let note =
            if passes { String::new() } else { format!("{}: {}", unlike(&answer, status), answer.body) };
        checks.push(if lacks_key(probe, &answer) {
            Check::not_tried(name, NO_KEY)
        } else {
            Check::of(name, &answer, passes, note).or(FORM)
        });
        if what == "an unknown skill" {
            let entries =
                answer.json()["trace_id"] == "verify-1" && answer.header("x-trace-id") == Some("verify-1");
            let note = if entries { "" } else { "a different one, or none" };
            let check = Check::of("a trace id in the request is returned", &answer, entries, note);
            checks.push(check.or("a proxy must forward x-trace-id in both directions"));
        }
    }
    Ok(checks)
}

/// Files that a service on Linux could read, in spellings that a caller might try.
const SERVER_FILES: [&str; 8] = [
    "/proc/self/environ",
    "proc/self/environ",
    "/proc/version",
    "/etc/passwd",
    "etc/passwd",
    "../../../../../../etc/passwd",
    "skill:/etc/passwd",
    "artifact:../../../../../../etc/passwd",
];

/// Checks that a caller with read-only access can neither read nor list files of the service's machine as targets.
async fn server_files(probe: &Probe) -> Result<Vec<Check>, Failure> {
    const READ: &str = "files of the service's machine cannot be read as targets";
    const NOT_LISTED: &str = "files of the service's machine are not listed as targets";
    const ADVICE: &str = "every caller can read what the service's account can: update the service";
    let skills = probe.send(probe.request("GET", "/v1/skills/list")).await?;
    if lacks_key(probe, &skills) {
        return Ok([READ, NOT_LISTED].map(|check| Check::not_tried(check, NO_KEY)).into());
    }
    let target = json!("artifact");
    let skills = skills.json();
    let mut takers = skills["skills"].as_array().into_iter().flatten().filter(|skill| {
        let takes = skill["attach_targets"].as_array().is_some_and(|targets| targets.contains(&target));
        takes && skill["has_contract"] == true && skill["invocation"] != "direct"
    });
    let read = match takers.next().and_then(|skill| skill["skill_id"].as_str()) {
        None => Check::not_tried(READ, "no skill of the service can be attached to an artifact"),
        Some(skill) => {
            let mut leaked = Vec::new();
            let mut limited = false;
            let names = SERVER_FILES.map(str::to_owned).into_iter();
            let below = names.chain([format!("skill:{skill}/../../../../../../../etc/passwd")]);
            for reference in below {
                let arguments = Map::from_iter([("skill_id".to_owned(), Value::from(skill))]);
                let Some((path, _)) =
                    operation("skill.attach_preview").and_then(|preview| preview.route.fill(arguments))
                else {
                    continue;
                };
                let body = json!({ "target_type": target, "target_ref": reference }).to_string();
                let request =
                    probe.request("POST", &path).header(CONTENT_TYPE, "application/json").body(body);
                let answer = probe.send(request).await?;
                limited |= answer.is_limited();
                if !answer.json()["content"].is_null() {
                    leaked.push(reference);
                }
            }
            if limited && leaked.is_empty() {
                Check::not_tried(READ, LIMITED)
            } else {
                Check::new(READ, leaked.is_empty(), leaked.join(", ")).or(ADVICE)
            }
        }
    };
    let answer = probe.send(probe.request("GET", "/v1/targets?target_type=artifact&limit=1000")).await?;
    let targets = answer.json();
    let names = targets["targets"].as_array().into_iter().flatten();
    let names = names.filter_map(|target| target["target_ref"].as_str());
    let files: Vec<&str> =
        names.filter(|name| !name.starts_with("artifact:") && !name.starts_with("skill:")).take(3).collect();
    let listed = Check::of(NOT_LISTED, &answer, files.is_empty() && answer.status == 200, files.join(", "));
    Ok(vec![read, listed.or(ADVICE)])
}

/// Checks the rate limit by exceeding it; it may already be exhausted.
async fn limit(probe: &Probe) -> Result<Check, Failure> {
    let name = "the rate limit is enforced";
    let ask = || probe.send_once(probe.request("GET", "/v1/skills/list?limit=1"));
    let first = ask().await?;
    let Some(policy) = first.header("ratelimit-policy").map(str::to_owned) else {
        return Ok(Check::not_tried(name, "the service has no rate limit (--rate-limit-requests)"));
    };
    let quota = policy.split(';').find_map(|part| part.trim().strip_prefix("q=")?.parse::<u64>().ok());
    let Some(quota) = quota.filter(|quota| *quota < MAX_ATTEMPTS) else {
        return Ok(Check::not_tried(name, format!("{policy}: more requests than this check sends")));
    };
    let mut answer = first;
    // A window may end in the meantime: within two of them the limit is certainly reached.
    for _ in 0..=2 * quota {
        if answer.is_limited() {
            let wait = answer.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
            let shaped = answer.code().as_deref() == Some("rate_limited") && wait.is_some();
            let note = match wait {
                Some(wait) => format!("{policy}; the next request in {wait} s"),
                None => format!("{policy}; no Retry-After"),
            };
            return Ok(Check::new(name, shaped, note).or(FORM));
        }
        answer = ask().await?;
    }
    let check = Check::new(name, false, format!("{policy}, but {} requests were accepted", 2 * quota + 1));
    Ok(check.or("instances that share a limit need one store: give each the same --store"))
}

/// Returns whether a request was rejected because no API key is configured.
fn lacks_key(probe: &Probe, answer: &RawResponse) -> bool {
    answer.status == 401 && !probe.has_key()
}

/// Describes a status other than the expected one; empty if it is as expected.
fn unlike(answer: &RawResponse, requested: u16) -> String {
    if answer.status == requested {
        String::new()
    } else {
        format!("status {}, expected {requested}", answer.status)
    }
}
