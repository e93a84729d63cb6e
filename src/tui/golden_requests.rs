//! Requests of panes about golden queries and their responses: the core's measurement, and edits of the user's files on
//! this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::action::Action;
use crate::keymap::mention;
use skills_api::{
    Code, Connection, Core, Error, GoldenExplainRequest, GoldenExplanation, GoldenQuery, GoldenReport,
    GoldenRequest,
};
use skills_authoring::golden_baseline::{GoldenBaseline, add_baseline, baselines};
use skills_authoring::golden_file::{EditError, GoldenEdit, edit_golden, is_same_query, read_golden};
use skills_authoring::golden_format::{FormatError, GoldenFormat, parse_golden, skill_of_evals};
use skills_base::files::io_reason;
use skills_config::expand;
use skills_discovery::{Case, Expect};
use skills_skill::{SkillId, read_regular_text};

/// Maximum size of an imported file.
const MAX_IMPORT_BYTES: u64 = 16 << 20;

/// Why golden queries cannot be changed in a demonstration.
pub(crate) const NO_GOLDEN_FILE: &str = "the demo has no editable golden set";

/// The local files that belong to golden sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoldenPlace {
    /// The file to which queries are added; `None` in a demonstration.
    pub file: Option<PathBuf>,
    pub baselines: PathBuf,
    /// The directory that relative paths are resolved against.
    pub cwd: PathBuf,
    /// The directory that `~` expands to.
    pub home: PathBuf,
}

/// A query being edited in a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GoldenForm {
    /// The query; `None` for the request of Discover.
    pub query: Option<String>,
    /// Ids, `none`, or `not ID`.
    pub skills: String,
    /// The query to replace: its file, its index there, and its current content.
    pub replaces: Option<(PathBuf, usize, Case)>,
}

/// A file with its modification time and length; `None` if it cannot be read.
pub type FileStamp = (PathBuf, Option<(SystemTime, u64)>);

#[derive(Debug, Clone, PartialEq)]
pub enum GoldenPaneRequest {
    Measure,
    Explain(GoldenQuery),
    /// Add a query to the user's file.
    Add(Case),
    /// Change a file.
    Edit {
        file: PathBuf,
        /// The change.
        edit: GoldenEdit,
        /// The query that was shown at that index.
        expected: Case,
    },
    /// Add the queries of a file to the user's file.
    Import {
        path: String,
        /// The skill that an evaluation file belongs to.
        skill: Option<SkillId>,
    },
    /// Use these metrics as the baseline from now on.
    SetBaseline(Arc<GoldenMeasurement>),
    /// Check whether files differ from how they were at the last check.
    Check {
        /// Files with queries on this machine.
        files: Vec<PathBuf>,
        /// Their state at the last check.
        known: Option<Vec<FileStamp>>,
    },
}

/// A measurement and what it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct GoldenMeasurement {
    pub report: GoldenReport,
    /// Baselines, oldest first.
    pub baselines: Vec<GoldenBaseline>,
    /// The file to which queries are added.
    pub file: Option<PathBuf>,
    /// Whether the files of the report are on another machine.
    pub is_remote: bool,
}

#[derive(Debug, Clone)]
pub enum GoldenPaneResponse {
    /// The measured golden sets.
    Measurement(Result<Arc<GoldenMeasurement>, Error>),
    Explained(GoldenQuery, Result<Arc<GoldenExplanation>, Error>),
    /// The outcome of a change of a file, with a note for the user.
    Edited(Result<String, Error>),
    /// The baselines after one was set.
    Baselines(Result<Vec<GoldenBaseline>, Error>),
    /// The state of the files if it differs from the last check.
    Checked(Option<Vec<FileStamp>>),
}

impl GoldenPaneRequest {
    /// Returns the skills that the query to add or to change names.
    pub(crate) fn named_skills(&self) -> &[SkillId] {
        match self {
            Self::Add(case) | Self::Edit { edit: GoldenEdit::Replace(_, case), .. } => named_by(case),
            _ => &[],
        }
    }

    /// Returns the name for the log.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Measure => "golden_report",
            Self::Explain(_) => "golden_explain",
            Self::Add(_) | Self::Edit { .. } => "golden_edit",
            Self::Import { .. } => "golden_import",
            Self::SetBaseline(_) => "golden_baseline",
            Self::Check { .. } => "golden_check",
        }
    }

    pub(crate) async fn execute(self, client: &dyn Core, place: Option<GoldenPlace>) -> GoldenPaneResponse {
        match self {
            Self::Measure => GoldenPaneResponse::Measurement(measure(client, place).await.map(Arc::new)),
            Self::Explain(query) => {
                let explained = explain(client, place, query.clone()).await.map(Arc::new);
                GoldenPaneResponse::Explained(query, explained)
            }
            Self::Add(case) => {
                let what = short(&case.query);
                let unknown = unknown(client, &case).await;
                let edit = move |place: &GoldenPlace| {
                    let file = own_file(place)?;
                    let (existing, _) = read_golden(file).map_err(edit_error)?;
                    if existing.iter().any(|other| is_same_query(other, &case)) {
                        let message = format!("{} already has this query; edit it there", file.display());
                        return Err(Error::new(Code::InvalidRequest, message));
                    }
                    edit_golden(file, &GoldenEdit::Add(vec![case]), None).map_err(edit_error)?;
                    Ok(format!("added “{what}” to {}{unknown}", shown(file, place)))
                };
                GoldenPaneResponse::Edited(on_disk(place, edit).await)
            }
            Self::Edit { file, edit, expected } => {
                let is_removal = matches!(edit, GoldenEdit::Remove(_));
                let what = short(&expected.query);
                let unknown = match &edit {
                    GoldenEdit::Replace(_, case) => unknown(client, case).await,
                    _ => String::new(),
                };
                let change = move |place: &GoldenPlace| {
                    edit_golden(&file, &edit, Some(&expected)).map_err(edit_error)?;
                    let verb = if is_removal { "removed" } else { "changed" };
                    Ok(format!("{verb} “{what}” in {}{unknown}", shown(&file, place)))
                };
                GoldenPaneResponse::Edited(on_disk(place, change).await)
            }
            Self::Import { path, skill } => {
                let import = move |place: &GoldenPlace| import(&path, skill.as_ref(), place);
                GoldenPaneResponse::Edited(on_disk(place, import).await)
            }
            Self::SetBaseline(measured) => {
                GoldenPaneResponse::Baselines(set_baseline(client, place, measured).await)
            }
            Self::Check { files, known } => {
                let stamped = tokio::task::spawn_blocking(move || stamps(files)).await.ok();
                GoldenPaneResponse::Checked(stamped.filter(|stamps| known.as_ref() != Some(stamps)))
            }
        }
    }
}

fn stamps(files: Vec<PathBuf>) -> Vec<FileStamp> {
    let stamp = |file: PathBuf| {
        let found = std::fs::metadata(&file).ok();
        let stamp = found.and_then(|found| Some((found.modified().ok()?, found.len())));
        (file, stamp)
    };
    files.into_iter().map(stamp).collect()
}

/// Returns the key under which the baselines of a golden set are stored.
fn key(client: &dyn Core, place: &GoldenPlace) -> String {
    match client.connection() {
        Connection::Remote { address, .. } => address,
        Connection::Local => {
            place.file.as_ref().map_or_else(|| "demo".to_owned(), |file| file.display().to_string())
        }
    }
}

/// Returns the queries of the user's file that a remote core does not know.
pub(crate) async fn own_queries(
    client: &dyn Core,
    place: Option<&GoldenPlace>,
) -> Result<Vec<GoldenQuery>, Error> {
    if matches!(client.connection(), Connection::Local) {
        return Ok(Vec::new());
    }
    let Some(file) = place.and_then(|place| place.file.clone()) else { return Ok(Vec::new()) };
    let read = tokio::task::spawn_blocking(move || read_golden(&file)).await;
    let (cases, _) =
        read.map_err(|error| Error::new(Code::InternalError, error.to_string()))?.map_err(edit_error)?;
    Ok(cases.into_iter().map(GoldenQuery::from).collect())
}

async fn measure(client: &dyn Core, place: Option<GoldenPlace>) -> Result<GoldenMeasurement, Error> {
    let queries = own_queries(client, place.as_ref()).await?;
    let report = client.golden_report(GoldenRequest { skill_id: None, queries }).await?;
    let file = place.as_ref().and_then(|place| place.file.clone());
    let is_remote = matches!(client.connection(), Connection::Remote { .. });
    let baselines = match place {
        Some(place) => {
            let key = key(client, &place);
            let read = tokio::task::spawn_blocking(move || baselines(&place.baselines, &key)).await;
            read.unwrap_or_default()
        }
        None => Vec::new(),
    };
    Ok(GoldenMeasurement { report, baselines, file, is_remote })
}

async fn explain(
    client: &dyn Core,
    place: Option<GoldenPlace>,
    query: GoldenQuery,
) -> Result<GoldenExplanation, Error> {
    let queries = own_queries(client, place.as_ref()).await?;
    client.golden_explain(GoldenExplainRequest { query, queries }).await
}

/// Converts a measurement to a baseline.
pub fn baseline_of(report: &GoldenReport, at_ms: i64) -> GoldenBaseline {
    let mut baseline = GoldenBaseline { at_ms, figures: report.figures, ..GoldenBaseline::default() };
    for result in &report.results {
        let queries = if result.state.is_failing() { &mut baseline.failed } else { &mut baseline.passed };
        queries.insert(result.query.query.clone(), result.first.clone());
    }
    baseline
}

async fn set_baseline(
    client: &dyn Core,
    place: Option<GoldenPlace>,
    measured: Arc<GoldenMeasurement>,
) -> Result<Vec<GoldenBaseline>, Error> {
    let Some(place) = place else {
        return Err(Error::new(Code::InvalidConfiguration, "this workbench has no folder for baselines"));
    };
    let key = key(client, &place);
    let baseline = baseline_of(&measured.report, jiff::Timestamp::now().as_millisecond());
    let add = move || add_baseline(&place.baselines, &key, baseline);
    let added = tokio::task::spawn_blocking(add).await;
    let added = added.map_err(|error| Error::new(Code::InternalError, error.to_string()))?;
    added.map_err(|error| Error::new(Code::InternalError, format!("cannot store the baseline: {error}")))
}

/// Changes files off the async workers.
async fn on_disk(
    place: Option<GoldenPlace>,
    change: impl FnOnce(&GoldenPlace) -> Result<String, Error> + Send + 'static,
) -> Result<String, Error> {
    let Some(place) = place else {
        return Err(Error::new(Code::InvalidConfiguration, "this workbench has no golden set"));
    };
    let changed = tokio::task::spawn_blocking(move || change(&place)).await;
    changed.unwrap_or_else(|error| Err(Error::new(Code::InternalError, error.to_string())))
}

/// Returns a note about skills that a query names and that do not exist: the query cannot be won. Empty if there are
/// none.
async fn unknown(client: &dyn Core, case: &Case) -> String {
    let named = named_by(case);
    let Ok(catalog) = client.catalog().await else { return String::new() };
    let is_unknown = |id: &&SkillId| catalog.by_id(id.as_str()).is_none();
    let names: Vec<String> = named.iter().filter(is_unknown).map(|id| format!("`{id}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!("; warning: skill {one} not found"),
        more => format!("; warning: skills {} not found", more.join(", ")),
    }
}

/// Returns the skills that an expectation names.
fn named_by(case: &Case) -> &[SkillId] {
    match &case.expect {
        Expect::AnyOf(ids) => ids.as_slice(),
        Expect::Not(id) => std::slice::from_ref(id),
        Expect::Nothing => &[],
    }
}

fn own_file(place: &GoldenPlace) -> Result<&Path, Error> {
    place.file.as_deref().ok_or_else(|| {
        let message = format!("{NO_GOLDEN_FILE}; start the workbench without --demo");
        Error::new(Code::InvalidConfiguration, message)
    })
}

fn edit_error(error: EditError) -> Error {
    let code = match &error {
        EditError::Changed => Code::SkillChanged,
        _ => Code::InvalidConfiguration,
    };
    let message = match error {
        EditError::Changed => {
            format!("the golden set has changed; press {} to read it again", mention(Action::Measure))
        }
        other => other.to_string(),
    };
    Error::new(code, message)
}

fn shown(file: &Path, place: &GoldenPlace) -> String {
    skills_config::shown(file, &place.cwd, &place.home)
}

/// Truncates a query for a note.
fn short(query: &str) -> String {
    const MAX_CHARACTERS: usize = 40;
    match query.char_indices().nth(MAX_CHARACTERS) {
        Some((at, _)) => format!("{}…", query.get(..at).unwrap_or_default().trim_end()),
        None => query.to_owned(),
    }
}

fn import(path: &str, skill: Option<&SkillId>, place: &GoldenPlace) -> Result<String, Error> {
    let invalid = |message: String| Error::new(Code::InvalidRequest, message);
    let source = expand(path.trim(), &place.cwd, &place.home);
    // A notice is short: the action comes first, and only the part of the path that identifies the file.
    let name = shown(&source, place);
    let text = read_regular_text(&source, MAX_IMPORT_BYTES)
        .map_err(|error| invalid(format!("cannot read `{name}`: {}", io_reason(&error))))?;
    let format = GoldenFormat::of(&source)
        .ok_or_else(|| invalid(format!("the name must end with json, jsonl, csv or yaml: {name}")))?;
    let skill = skill.cloned().or_else(|| skill_of_evals(&source, &text));
    let cases = parse_golden(format, &text, skill.as_ref()).map_err(|error| {
        invalid(match error {
            FormatError::NoSkill => format!("enter the skill, which the file does not name: {name}"),
            other => format!("{other}: {name}"),
        })
    })?;
    let file = own_file(place)?;
    let added = add_new(file, cases).map_err(edit_error)?;
    let note = format!("{} of {} queries added to {}", added.added, added.of, shown(file, place));
    Ok(if added.conflicts == 0 {
        note
    } else {
        format!("{note}; {} have a different expectation there and were skipped", added.conflicts)
    })
}

/// The outcome of an import.
struct ImportOutcome {
    added: usize,
    of: usize,
    conflicts: usize,
}

fn add_new(file: &Path, cases: Vec<Case>) -> Result<ImportOutcome, EditError> {
    let (existing, _) = read_golden(file)?;
    let split = skills_authoring::golden_file::split_new(&existing, cases);
    let (added, conflicts) = (split.new.len(), split.conflicts.len());
    let of = added + conflicts + split.known;
    if added > 0 {
        edit_golden(file, &GoldenEdit::Add(split.new), None)?;
    }
    Ok(ImportOutcome { added, of, conflicts })
}

/// Parses an expectation that the user entered: ids, `none`, or `not ID`.
///
/// # Errors
/// Returns a message if the text is not a valid expectation.
pub fn parse_expectation(text: &str) -> Result<Expect, String> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    match words[..] {
        [] => Err("enter ids of skills, `none`, or `not` and an id".to_owned()),
        ["none"] => Ok(Expect::Nothing),
        ["not", id] => Ok(Expect::Not(SkillId::new(id))),
        ["not", ..] => Err("`not` takes one id".to_owned()),
        _ if words.contains(&"none") => Err("`none` cannot be combined with ids".to_owned()),
        _ => Ok(Expect::AnyOf(words.into_iter().map(SkillId::new).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_parsed() {
        let ids = |ids: &[&str]| Expect::AnyOf(ids.iter().map(|id| SkillId::new(*id)).collect());
        assert_eq!(parse_expectation("pdf, xlsx"), Ok(ids(&["pdf", "xlsx"])));
        assert_eq!(parse_expectation(" none "), Ok(Expect::Nothing));
        assert_eq!(parse_expectation("not pdf"), Ok(Expect::Not(SkillId::new("pdf"))));
        for wrong in ["", "not", "not a b", "none a"] {
            assert!(parse_expectation(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_import_adds_new_queries_once() {
        let folder = tempfile::tempdir().unwrap();
        let place = GoldenPlace {
            file: Some(folder.path().join("golden.yaml")),
            baselines: folder.path().join("baselines.json"),
            cwd: folder.path().to_owned(),
            home: folder.path().to_owned(),
        };
        std::fs::create_dir_all(folder.path().join("pdf/evals")).unwrap();
        let evals = r#"[{"query": "q", "should_trigger": true}, {"query": "r", "should_trigger": false}]"#;
        std::fs::write(folder.path().join("pdf/evals/evals.json"), evals).unwrap();
        std::fs::write(folder.path().join("golden.yaml"), "- query: r\n  expect: [pdf]\n").unwrap();
        import("pdf/evals/evals.json", None, &place).unwrap();
        let (cases, _) = read_golden(&folder.path().join("golden.yaml")).unwrap();
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[1].expect, Expect::AnyOf(vec![SkillId::new("pdf")]));
        import("pdf/evals/evals.json", None, &place).unwrap();
        assert_eq!(read_golden(&folder.path().join("golden.yaml")).unwrap().0.len(), 2);
        let gone = import("gone.csv", None, &place).unwrap_err();
        assert_eq!(gone.code, Code::InvalidRequest);
        assert!(
            gone.message.starts_with("cannot read `") && gone.message.ends_with("no such file or directory")
        );
        std::fs::write(folder.path().join("evals.json"), evals).unwrap();
        let message = import("evals.json", None, &place).unwrap_err().message;
        assert!(message.starts_with("enter the skill, which the file does not name: "), "{message}");
        assert!(message.len() < 70, "a notice at 80 columns: {message}");
        std::fs::write(folder.path().join("evals.json"), "{").unwrap();
        let message = import("evals.json", None, &place).unwrap_err().message;
        assert!(message.starts_with("invalid evaluation file"), "{message}");
    }
}
