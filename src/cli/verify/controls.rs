//! Whether a service asks for keys, limits its callers, and refuses what it should in the one shape of errors.

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Map, Value};

use super::Check;
use super::probe::{Answered, Probe};
use crate::cli::failure::Failure;
use crate::gateway::operations::{Method, operations};

/// Requests that are sent to see a limit, at most.
const MOST_TRIES: u64 = 2_000;
/// More than a service takes in one body, bytes.
const TOO_LARGE: usize = (2 << 20) + 1;

pub async fn checks(probe: &Probe) -> Result<Vec<Check>, Failure> {
    let mut checks = open(probe).await?;
    checks.extend(keys(probe).await?);
    checks.extend(refusals(probe).await?);
    checks.push(limit(probe).await?);
    Ok(checks)
}

/// What everybody may see.
async fn open(probe: &Probe) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    for path in ["/v1/health", "/openapi.json", "/livez"] {
        let answer = probe.send(probe.bare("GET", path)).await?;
        checks.push(Check::new(format!("GET {path} is open"), answer.status == 200, unlike(&answer, 200)));
    }
    Ok(checks)
}

/// Every other route, without a key and with a wrong one.
async fn keys(probe: &Probe) -> Result<Vec<Check>, Failure> {
    if !probe.has_key() {
        let answer = probe.send(probe.bare("GET", "/v1/skills/list")).await?;
        let note = if answer.status == 200 {
            "nobody is asked for a key: what else holds is not tried; give the key of a service that asks"
                .to_owned()
        } else {
            format!("{}; give the key by SKILLS_API_KEY or --api-key-file", unlike(&answer, 200))
        };
        return Ok(vec![Check::new("callers are asked for a key", answer.status == 401, note)]);
    }
    let mut open_to_all = Vec::new();
    let mut tried = 0;
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
            ("no key", probe.send(request(probe.bare(&method, &path))).await?),
            (
                "a wrong key",
                probe.send(request(probe.bare(&method, &path).header(AUTHORIZATION, "Bearer wrong"))).await?,
            ),
        ] {
            tried += 1;
            if answer.status != 401 || answer.code().as_deref() != Some("unauthorized") {
                open_to_all.push(format!("{method} {path} with {who}: status {}", answer.status));
            }
        }
    }
    let right = probe.send(probe.request("GET", "/v1/skills/list")).await?;
    Ok(vec![
        Check::new(
            format!("no key and a wrong key are refused ({tried} requests)"),
            open_to_all.is_empty(),
            open_to_all.join("; "),
        ),
        Check::new("the right key is let in", right.status == 200, unlike(&right, 200)),
    ])
}

/// Requests that are wrong in form.
async fn refusals(probe: &Probe) -> Result<Vec<Check>, Failure> {
    let json = |body: String| {
        probe.request("POST", "/v1/skills/discover").header(CONTENT_TYPE, "application/json").body(body)
    };
    let traced = probe.request("GET", "/v1/skills/no-such-skill/describe").header("x-trace-id", "verify-1");
    let wrong: [(&str, reqwest::RequestBuilder, u16, &str); 5] = [
        ("a body that is no JSON", json("{".to_owned()), 400, "invalid_request"),
        ("an unknown argument", json(r#"{"intnt": "a"}"#.to_owned()), 400, "invalid_request"),
        ("a body of more than 2 MiB", json("a".repeat(TOO_LARGE)), 413, "payload_too_large"),
        ("a route that is none", probe.request("GET", "/v1/no-such-route"), 404, "not_found"),
        ("a skill that is none", traced, 404, "not_found"),
    ];
    let mut checks = Vec::new();
    for (what, request, status, code) in wrong {
        let answer = match probe.send(request).await {
            Ok(answer) => answer,
            // A service may close on a body that it does not take; what is found besides is not lost over it.
            Err(Failure::Core(error)) => {
                checks.push(Check::new(format!("{what} answers {status} {code}"), false, error.message));
                continue;
            }
            Err(other) => return Err(other),
        };
        let shaped = answer.code().as_deref() == Some(code) && answer.json()["trace_id"].is_string();
        let holds = answer.status == status && shaped;
        let note =
            if holds { String::new() } else { format!("{}: {}", unlike(&answer, status), answer.body) };
        checks.push(Check::new(format!("{what} answers {status} {code}"), holds, note));
        if what == "a skill that is none" {
            let kept =
                answer.json()["trace_id"] == "verify-1" && answer.header("x-trace-id") == Some("verify-1");
            checks.push(Check::new("a trace id that is sent comes back", kept, ""));
        }
    }
    Ok(checks)
}

/// The limit of requests, by meeting it.
async fn limit(probe: &Probe) -> Result<Check, Failure> {
    let name = "who asks too often is told to wait";
    let first = probe.send(probe.request("GET", "/v1/skills/list?query=a")).await?;
    let Some(policy) = first.header("ratelimit-policy").map(str::to_owned) else {
        return Ok(Check::new(name, false, "the service sets no limit (--rate-limit-requests)"));
    };
    let quota = policy.split(';').find_map(|part| part.trim().strip_prefix("q=")?.parse::<u64>().ok());
    let Some(quota) = quota.filter(|quota| *quota < MOST_TRIES) else {
        return Ok(Check::new(name, true, format!("{policy}: too many to be tried")));
    };
    for _ in 0..=quota {
        let answer = probe.send(probe.request("GET", "/v1/skills/list?query=a")).await?;
        if answer.status == 429 {
            let wait = answer.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
            let shaped = answer.code().as_deref() == Some("rate_limited") && wait.is_some();
            return Ok(Check::new(name, shaped, format!("{policy}; retry after {wait:?} s")));
        }
    }
    Ok(Check::new(name, false, format!("{policy}, and {} requests were let through", quota + 1)))
}

/// What a status is instead of the one wanted; nothing where it is that.
fn unlike(answer: &Answered, wanted: u16) -> String {
    if answer.status == wanted {
        String::new()
    } else {
        format!("status {} instead of {wanted}", answer.status)
    }
}
