//! Skills as resources, and the extension `io.modelcontextprotocol/skills`: manifests with digests, folders, files.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rmcp::model::{
    CompletionInfo, DIRECTORY_MIME_TYPE, ErrorData, GetSkillResult, ListResourceTemplatesResult,
    ListResourcesResult, ListSkillsResult, PaginatedRequestParams, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate, Skill as Entry, SkillFrontmatter, SkillResource, SkillResources,
};
use serde_json::{Value, json};

use super::answer::meta;
use super::{page, uri};
use skills_api::resources::{self, SkillManifest};
use skills_api::{Code, Error, ErrorBody, SharedClient};
use skills_skill::{Digest, Skill};

/// Key of a resource's digest in `_meta`.
const DIGEST: &str = "io.modelcontextprotocol.skills/digest";
/// Number of resources per page.
const RESOURCES: usize = 500;
/// Number of skills with manifests per page: all files of each are read.
const SKILLS: usize = 50;
/// URI template of a skill.
const SKILL: &str = "skill://{skill_id}/SKILL.md";
/// URI template of a file.
const FILE: &str = "skill://{skill_id}/{+path}";

/// Returns the main files of all skills.
pub async fn list(
    core: &SharedClient,
    request: Option<PaginatedRequestParams>,
) -> Result<ListResourcesResult, ErrorData> {
    let catalog = core.catalog().await.map_err(|error| failed(&error))?;
    let (skills, next) = page::of(&catalog, request, RESOURCES, |_| true)?;
    let mut list = ListResourcesResult::with_all_items(skills.iter().map(|skill| main(skill)).collect());
    list.next_cursor = next;
    Ok(list)
}

fn main(skill: &Skill) -> Resource {
    let path = resources::main_path(skill);
    let kind = if path == resources::MAIN { "text/markdown" } else { "application/yaml" };
    Resource::new(uri::of(skill, path), &skill.name)
        .with_description(&skill.description)
        .with_mime_type(kind)
        .with_size(skill.bytes)
        .with_meta(meta(DIGEST, json!(format_digest(skill.digest))))
}

/// Returns the URI templates.
pub fn templates() -> ListResourceTemplatesResult {
    let skill = ResourceTemplate::new(SKILL, "skill")
        .with_description("The instructions of a skill.")
        .with_mime_type("text/markdown");
    let file = ResourceTemplate::new(FILE, "skill-file")
        .with_description("A file of a skill, such as references/rules.md.");
    ListResourceTemplatesResult::with_all_items(vec![skill, file])
}

/// Returns a file of a skill.
pub async fn read(core: &SharedClient, address: &str) -> Result<ReadResourceResult, ErrorData> {
    let found = async {
        let catalog = core.catalog().await?;
        let (skill, path) = uri::read(&catalog, address)?;
        if path.is_empty() {
            let message = format!("{address} is a folder; its file is {}", uri::of(&skill, resources::MAIN));
            return Err(Error::new(Code::InvalidRequest, message));
        }
        resources::content(core, &skill, &path).await
    };
    let content = found.await.map_err(|error| at(failed(&error), address))?;
    let meta = meta(DIGEST, json!(format_digest(content.digest)));
    let contents = match String::from_utf8(content.bytes) {
        // Text is returned byte for byte, so that digests match.
        Ok(text) if !text.contains('\0') => ResourceContents::text(text, address),
        Ok(text) => ResourceContents::blob(BASE64.encode(text), address),
        Err(error) => ResourceContents::blob(BASE64.encode(error.as_bytes()), address),
    };
    Ok(ReadResourceResult::new(vec![contents.with_mime_type(content.media_type).with_meta(meta)]))
}

/// Returns the length of the text of a file.
pub fn content_bytes(content: &ResourceContents) -> usize {
    match content {
        ResourceContents::TextResourceContents { text, .. } => text.len(),
        ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
        _ => 0,
    }
}

/// Returns the entries of a folder of a skill.
pub async fn folder(core: &SharedClient, address: &str) -> Result<ListResourcesResult, ErrorData> {
    let found = async {
        let catalog = core.catalog().await?;
        let (skill, path) = uri::read(&catalog, address)?;
        let children = resources::children(core, &skill, &path).await?;
        Ok((skill, children))
    };
    // For this method an unknown folder is an invalid parameter, in every revision.
    let (skill, children) = found.await.map_err(|error| invalid(&error))?;
    let items = children.into_iter().map(|child| {
        let name = child.path.rsplit('/').next().unwrap_or(&child.path).to_owned();
        let kind = if child.folder { DIRECTORY_MIME_TYPE } else { child.media_type };
        Resource::new(uri::of(&skill, &child.path), name).with_mime_type(kind)
    });
    Ok(ListResourcesResult::with_all_items(items.collect()))
}

/// Returns a page of skills with their manifests. A skill that no host could load is omitted and listed in `_meta`.
pub async fn skills(
    core: &SharedClient,
    request: Option<PaginatedRequestParams>,
) -> Result<ListSkillsResult, ErrorData> {
    let catalog = core.catalog().await.map_err(|error| failed(&error))?;
    let (skills, next) = page::of(&catalog, request, SKILLS, |_| true)?;
    let (mut entries, mut left_out) = (Vec::new(), Vec::new());
    for skill in skills {
        match entry(core, &skill).await {
            Ok(entry) => entries.push(entry),
            Err(error) => left_out.push(json!({ "skill_id": skill.id, "why": error.message })),
        }
    }
    let mut list = ListSkillsResult::with_all_items(entries);
    list.next_cursor = next;
    list.meta = (!left_out.is_empty()).then(|| meta("left_out", Value::Array(left_out)));
    Ok(list)
}

/// Returns one skill with its manifest.
pub async fn skill(core: &SharedClient, address: &str) -> Result<GetSkillResult, ErrorData> {
    let found = async {
        let catalog = core.catalog().await?;
        let (skill, path) = uri::read(&catalog, address)?;
        if path != resources::MAIN {
            let message =
                format!("{address} is not a skill; {} is at {}", skill.id, uri::of(&skill, resources::MAIN));
            return Err(Error::new(Code::NotFound, message));
        }
        entry(core, &skill).await
    };
    found.await.map(GetSkillResult::new).map_err(|error| invalid(&error))
}

async fn entry(core: &SharedClient, skill: &Arc<Skill>) -> Result<Entry, Error> {
    entry_of(skill, resources::manifest(core, skill).await?)
}

fn entry_of(skill: &Skill, manifest: SkillManifest) -> Result<Entry, Error> {
    let refused = |why: String| Error::new(Code::InvalidConfiguration, format!("{}: {why}", skill.id));
    let mut frontmatter =
        manifest.frontmatter.ok_or_else(|| refused("its frontmatter is not valid YAML".into()))?;
    let mut text = |key: &str| match frontmatter.remove(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        _ => Err(refused(format!("its frontmatter has no {key}"))),
    };
    let mut entry_frontmatter = SkillFrontmatter::new(text("name")?, text("description")?);
    entry_frontmatter.extra = frontmatter;
    let files = manifest
        .files
        .into_iter()
        .map(|file| SkillResource::new(uri::of(skill, &file.path), format_digest(file.digest), file.size));
    let entry = Entry::new(
        uri::of(skill, resources::MAIN),
        entry_frontmatter,
        SkillResources::Files(files.collect()),
    );
    entry.validate().map_err(|error| refused(error.to_string()))?;
    Ok(entry)
}

pub async fn complete(
    core: &SharedClient,
    template: &str,
    argument: &str,
    value: &str,
    chosen: &HashMap<String, String>,
) -> Result<CompletionInfo, ErrorData> {
    let catalog = core.catalog().await.map_err(|error| failed(&error))?;
    let found: Vec<String> = match (template, argument) {
        (SKILL | FILE, "skill_id") => {
            catalog.entries.iter().map(|entry| entry.skill.id.to_string()).collect()
        }
        (FILE, "path") => match chosen.get("skill_id").and_then(|id| catalog.by_id(id)) {
            Some(skill) => resources::files(core, skill).await.map_err(|error| failed(&error))?,
            None => Vec::new(),
        },
        _ => Vec::new(),
    };
    Ok(completed(found, value))
}

/// Returns values that contain the typed text, those with it as a prefix first, up to the maximum of a response.
pub fn completed(mut all: Vec<String>, value: &str) -> CompletionInfo {
    let typed = value.to_lowercase();
    all.retain(|one| one.to_lowercase().contains(&typed));
    all.sort_by_key(|one| !one.to_lowercase().starts_with(&typed));
    let total = all.len();
    all.truncate(CompletionInfo::MAX_VALUES);
    let more = total > all.len();
    let total = u32::try_from(total).ok();
    CompletionInfo::with_pagination(all, total, more).unwrap_or_default()
}

fn format_digest(digest: Digest) -> String {
    format!("sha256:{digest}")
}

/// Maps an error of the core to the protocol's codes, with the error body as data.
pub fn failed(error: &Error) -> ErrorData {
    match error.code {
        Code::NotFound => ErrorData::resource_not_found(text_result(error), body(error)),
        Code::InternalError | Code::RuntimeError => {
            ErrorData::internal_error(text_result(error), body(error))
        }
        _ => invalid(error),
    }
}

/// Adds the requested URI to the error's data, as the protocol requires.
fn at(mut failed: ErrorData, address: &str) -> ErrorData {
    if let Some(Value::Object(data)) = &mut failed.data {
        data.insert("uri".to_owned(), json!(address));
    }
    failed
}

fn invalid(error: &Error) -> ErrorData {
    ErrorData::invalid_params(text_result(error), body(error))
}

fn text_result(error: &Error) -> String {
    match error.suggestions.as_slice() {
        [] => error.message.clone(),
        near => format!("{}; did you mean {}?", error.message, near.join(", ")),
    }
}

fn body(error: &Error) -> Option<Value> {
    serde_json::to_value(ErrorBody::from(error)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_start_with_the_typed_prefix() {
        let all = ["csv-pdf", "pdf-tables", "json-diff"].map(str::to_owned).to_vec();
        let found = completed(all, "PDF");
        assert_eq!(found.values, ["pdf-tables", "csv-pdf"]);
        assert_eq!((found.total, found.has_more), (Some(2), Some(false)));
        let many = completed((0..150).map(|n| format!("s{n}")).collect(), "");
        assert_eq!((many.values.len(), many.total, many.has_more), (100, Some(150), Some(true)));
    }
}
