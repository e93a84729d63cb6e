//! `skills schema` and `skills openapi`: documents generated from the code, and checks whether a copy has drifted.

use std::fs;
use std::path::Path;

use super::Context;
use super::args::{OpenapiArgs, SchemaArgs};
use super::failure::{Exit, Failure};
use skills_skill::safe_text;

/// Prints or checks the schema of a skill's frontmatter.
pub fn run(cx: &mut Context, args: &SchemaArgs) -> Result<Exit, Failure> {
    let schema = skills_api::schema()?;
    print_or_check(cx, &schema, args.check.as_deref(), "skills schema")
}

/// Prints or checks the `OpenAPI` document of the service.
pub fn openapi(cx: &mut Context, args: &OpenapiArgs) -> Result<Exit, Failure> {
    print_or_check(cx, (cx.adapters.openapi_document)(), args.check.as_deref(), "skills openapi")
}

fn print_or_check(
    cx: &mut Context,
    document: &str,
    check: Option<&Path>,
    command: &str,
) -> Result<Exit, Failure> {
    let Some(path) = check else {
        cx.out.raw(document.as_bytes())?;
        return Ok(Exit::Success);
    };
    let copy = fs::read_to_string(path).map_err(|e| Failure::file(path, &e))?;
    let drifted = skills_api::schema_drift(&copy, document)
        .map_err(|error| Failure::usage(format!("{}: {}", path.display(), error.message)))?;
    if cx.out.json {
        cx.out.value(&serde_json::json!({ "same": drifted.is_none(), "difference": drifted }))?;
    } else {
        let path = path.display().to_string();
        let path = safe_text::line(&path);
        match &drifted {
            None => cx.out.line(format!("{path} is up to date"))?,
            Some(what) => {
                cx.out.line(format!("{path} is out of date: {}", safe_text::line(what)))?;
                cx.out.line(format!("Regenerate it: {command} > {path}"))?;
            }
        }
    }
    Ok(if drifted.is_none() { Exit::Success } else { Exit::ChecksFailed })
}
