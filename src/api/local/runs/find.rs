//! Finds a run by its id, or by a unique prefix or suffix of it.

use crate::{Code, Error};
use skills_store::{RunFilter, RunId, RunRecord, Store, StoreError, quoted_value};

/// Minimum number of characters of an abbreviated id.
const MIN_COUNT: usize = 3;
/// Maximum number of characters of an id.
const MAX_ID_LENGTH: usize = 255;
/// Minimum number of characters of an id's suffix in messages.
const ENDING: usize = 8;
/// Maximum number of candidates listed for an ambiguous id.
const MAX_LISTED_RUNS: usize = 5;
/// Rows read per page.
const PAGE: usize = 500;

/// Returns the run that `wanted` names.
///
/// # Errors
/// Returns `not_found`, also for an abbreviation that is too short, and `invalid_request` for an ambiguous one, listing
/// the candidates.
pub(super) async fn run(store: &dyn Store, requested: &str) -> Result<RunRecord, Error> {
    let requested = requested.trim();
    if let Some(run) = store.run(&RunId(requested.to_owned())).await? {
        return Ok(run);
    }
    let id = abbreviated(store, requested).await?.id;
    Ok(store.run(&id).await?.ok_or(StoreError::NoRun(id))?)
}

/// Returns the run that `wanted` names as in a list: without inputs and outputs that are too long for one.
pub(super) async fn listed(store: &dyn Store, requested: &str) -> Result<RunRecord, Error> {
    let requested = requested.trim();
    match store.listed_run(&RunId(requested.to_owned())).await? {
        Some(run) => Ok(run),
        None => abbreviated(store, requested).await,
    }
}

/// Returns the run whose id begins or ends with `wanted`, as in a list.
async fn abbreviated(store: &dyn Store, requested: &str) -> Result<RunRecord, Error> {
    if requested.chars().count() < MIN_COUNT {
        let message = format!("run id `{requested}` is too short: at least {MIN_COUNT} characters");
        return Err(Error::new(Code::NotFound, message));
    }
    let lower = requested.to_lowercase();
    if lower.chars().count() > MAX_ID_LENGTH {
        return Err(Error::new(Code::NotFound, format!("a run id has at most {MAX_ID_LENGTH} characters")));
    }
    // Only ids are compared: a word can be part of the skill of every run.
    let of_id = Some(format!("id:{}", quoted_value(&lower)));
    let mut filter = RunFilter { r#where: of_id, limit: PAGE, ..RunFilter::default() };
    let mut found: Vec<RunRecord> = Vec::new();
    loop {
        let page = store.runs(filter.clone()).await?;
        let fits = |run: &RunRecord| run.id.0.starts_with(&lower) || run.id.0.ends_with(&lower);
        found.extend(page.runs.into_iter().filter(fits));
        filter.cursor = page.next;
        if filter.cursor.is_none() || found.len() > MAX_LISTED_RUNS {
            break;
        }
    }
    match found.len() {
        1 => Ok(found.swap_remove(0)),
        0 => Err(Error::new(Code::NotFound, format!("run `{requested}` not found"))),
        many => Err(ambiguous(requested, &found, many)),
    }
}

fn ambiguous(requested: &str, found: &[RunRecord], many: usize) -> Error {
    let endings: Vec<String> =
        found.iter().take(MAX_LISTED_RUNS).map(|run| ending(&run.id, found).to_owned()).collect();
    let named: Vec<String> = found
        .iter()
        .zip(&endings)
        .map(|(run, ending)| format!("…{ending} ({}, {})", run.skill_id, run.state.label()))
        .collect();
    let count =
        if many > MAX_LISTED_RUNS { format!("more than {MAX_LISTED_RUNS}") } else { many.to_string() };
    let message = format!(
        "{count} runs match {requested}: {}. Ids begin with the launch time, so use the end of the id instead",
        named.join(", ")
    );
    Error { suggestions: endings, ..Error::new(Code::InvalidRequest, message) }
}

/// Returns the shortest suffix of an id, at least [`ENDING`] characters, that none of the other runs has.
fn ending<'r>(id: &'r RunId, all: &[RunRecord]) -> &'r str {
    let ends = id.0.char_indices().rev().filter_map(|(at, _)| id.0.get(at..)).skip(ENDING - 1);
    let alone = |end: &&str| all.iter().filter(|run| run.id.0.ends_with(end)).count() < 2;
    ends.into_iter().find(alone).unwrap_or(&id.0)
}
