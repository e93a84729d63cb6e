//! Whether HTTP and MCP of a service answer alike, errors included.

use super::Check;
use super::cases::cases;
use super::probe::{Probe, Told};
use crate::cli::failure::Failure;
use crate::gateway::operations::{difference, steady};

pub async fn checks(probe: &Probe) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    for case in cases(probe).await?.iter().filter(|case| case.operation.tool) {
        let http = probe.http(case.operation, &case.arguments).await?;
        let mcp = probe.tool(case.operation, &case.arguments).await?;
        checks.push(Check::against(case.name(), parted("HTTP", &http, "MCP", &mcp)));
    }
    Ok(checks)
}

/// How two answers differ, if they do.
pub fn parted(one: &str, told: &Told, other: &str, as_told: &Told) -> Option<String> {
    match (told, as_told) {
        (Ok(a), Ok(b)) | (Err(a), Err(b)) => {
            difference(&steady(a), &steady(b)).map(|what| format!("{one} and {other} differ at {what}"))
        }
        (Ok(_), Err(error)) => Some(format!("{one} answers, {other} fails: {}", error["message"])),
        (Err(error), Ok(_)) => Some(format!("{other} answers, {one} fails: {}", error["message"])),
    }
}
