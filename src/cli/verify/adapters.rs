//! Checks that HTTP and MCP of a service return the same results, errors included.

use super::cases::cases;
use super::check::{Check, LIMITED, missing_scope};
use super::probe::{Probe, ProbeResponse};
use crate::failure::Failure;
use skills_api::operations::{difference, normalize_volatile_fields};

/// What to do if the two interfaces of one service differ.
const ADVICE: &str = "both use the same operations: a proxy may modify one of them, or the skills \
    changed in the meantime; if it persists, it is a bug in the service";

pub async fn checks(probe: &Probe) -> Result<Vec<Check>, Failure> {
    probe.admitted().await?;
    let mut checks = Vec::new();
    for case in cases(probe).await?.iter().filter(|case| case.operation.tool) {
        let http = probe.http(case.operation, &case.arguments).await?;
        let scope = http.as_ref().err().and_then(missing_scope);
        let mcp = probe.tool(case.operation, &case.arguments).await?;
        if let (Some(scope), Err(_)) = (scope, &mcp) {
            checks.push(Check::forbidden(case.name(), scope));
            continue;
        }
        checks.push(compared(case.name(), ("HTTP", &http), ("MCP", &mcp)).or(ADVICE));
    }
    Ok(checks)
}

pub fn compared(
    name: String,
    (one, response): (&str, &ProbeResponse),
    (other, as_told): (&str, &ProbeResponse),
) -> Check {
    let limited =
        |response: &ProbeResponse| response.as_ref().is_err_and(|error| error["code"] == "rate_limited");
    if limited(response) || limited(as_told) {
        return Check::not_tried(name, LIMITED);
    }
    Check::against(name, parted(one, response, other, as_told))
}

/// Returns how two responses differ, if they do.
fn parted(one: &str, response: &ProbeResponse, other: &str, as_told: &ProbeResponse) -> Option<String> {
    match (response, as_told) {
        (Ok(a), Ok(b)) | (Err(a), Err(b)) => {
            difference(&normalize_volatile_fields(a), &normalize_volatile_fields(b))
                .map(|what| format!("{one} and {other} differ at {what}"))
        }
        (Ok(_), Err(error)) => Some(format!("{one} succeeds, {other} fails: {}", error["message"])),
        (Err(error), Ok(_)) => Some(format!("{other} succeeds, {one} fails: {}", error["message"])),
    }
}
