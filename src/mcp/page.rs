//! Pagination of lists: a cursor names the last skill of the previous page.

use std::sync::Arc;

use rmcp::model::{ErrorData, PaginatedRequestParams};

use skills_registry::Catalog;
use skills_skill::Skill;

/// Returns the next matching skills of the catalog, at most that many, and the cursor of the next page.
///
/// # Errors
/// Returns an invalid-parameters error for a cursor of another list, or whose skill no longer exists; the client starts
/// over.
pub fn of(
    catalog: &Catalog,
    request: Option<PaginatedRequestParams>,
    most: usize,
    wanted: impl Fn(&Skill) -> bool,
) -> Result<(Vec<Arc<Skill>>, Option<String>), ErrorData> {
    let begin = match request.and_then(|request| request.cursor) {
        None => 0,
        Some(cursor) => {
            let last = catalog.entries.iter().position(|entry| entry.skill.id.as_str() == cursor);
            let gone =
                || ErrorData::invalid_params(format!("the cursor {cursor:?} has expired; start over"), None);
            last.ok_or_else(gone)? + 1
        }
    };
    let mut page: Vec<Arc<Skill>> = catalog.entries[begin..]
        .iter()
        .map(|entry| &entry.skill)
        .filter(|skill| wanted(skill))
        .take(most + 1)
        .cloned()
        .collect();
    let more = page.len() > most;
    page.truncate(most);
    let next = page.last().filter(|_| more).map(|skill| skill.id.to_string());
    Ok((page, next))
}
