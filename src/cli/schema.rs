//! `skills schema`: the JSON schema of a skill's frontmatter, and whether a copy of it has drifted.

use std::fs;

use super::Context;
use super::args::SchemaArgs;
use super::failure::{Done, Failure};
use crate::gateway;

/// Runs the command.
pub fn run(cx: &mut Context, args: &SchemaArgs) -> Result<Done, Failure> {
    let schema = gateway::schema()?;
    let Some(path) = &args.check else {
        cx.out.raw(schema.as_bytes())?;
        return Ok(Done::Fine);
    };
    let copy = fs::read_to_string(path).map_err(|e| Failure::file(path, &e))?;
    let drifted = gateway::schema_drift(&copy, &schema);
    if cx.out.json {
        cx.out.value(&serde_json::json!({ "same": drifted.is_none(), "difference": drifted }))?;
    } else {
        match &drifted {
            None => cx.out.line(format!("{} is up to date", path.display()))?,
            Some(what) => {
                cx.out.line(format!("{} has drifted: {what}", path.display()))?;
                cx.out.line(format!("Write it anew: skills schema > {}", path.display()))?;
            }
        }
    }
    Ok(if drifted.is_none() { Done::Fine } else { Done::Findings })
}
