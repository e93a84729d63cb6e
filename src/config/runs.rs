//! The `runs` and `retention` settings: how runs are listed, when waits expire, and when ended runs are deleted.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_saphyr::Spanned;
use strum::IntoEnumIterator as _;

use super::ConfigError;
use super::file::{place, wrong};
use skills_base::duration;

/// A column of the run list, by its name in the settings. `since` and `age` mean the same as in filters: the time in
/// the current state, and since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(strum::Display, strum::EnumIter, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RunColumn {
    State,
    Title,
    Skill,
    Id,
    Progress,
    Step,
    /// Why the run failed, or how many approvals it has, and whether its wait was escalated.
    Error,
    By,
    /// `approver` is its former name.
    #[strum(to_string = "assigned", serialize = "approver")]
    Assigned,
    Worker,
    Deadline,
    Since,
    Age,
}

impl RunColumn {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns whether cells are right-aligned in the workbench, because their numbers are compared.
    pub fn is_numeric(self) -> bool {
        matches!(self, Self::Since | Self::Age)
    }

    /// Returns every column.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::iter()
    }

    /// Returns all names, as a list for messages.
    pub fn names() -> String {
        Self::iter().map(Self::name).collect::<Vec<_>>().join(", ")
    }
}

/// The order of the run list: a column name; the prefix `-` sorts in descending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSort {
    pub column: RunColumn,
    pub descending: bool,
}

impl std::str::FromStr for RunSort {
    type Err = strum::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, descending) = match text.strip_prefix('-') {
            Some(name) => (name, true),
            None => (text, false),
        };
        Ok(Self { column: name.parse()?, descending })
    }
}

impl std::fmt::Display for RunSort {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}{}", if self.descending { "-" } else { "" }, self.column)
    }
}

/// How runs are listed and how long they wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSettings {
    /// How long a run waits for an approval or a signal, if neither launch nor contract specifies it.
    pub expires_in: Option<Duration>,
    /// A deadline closer than this is shown as a warning.
    pub warn_before: Duration,
    /// A deadline closer than this is shown as danger.
    pub danger_before: Duration,
    /// Columns of the run list, from the left.
    pub columns: Vec<RunColumn>,
    /// The order of the run list.
    pub sort: Option<RunSort>,
    /// Named filters.
    pub views: BTreeMap<String, String>,
    /// Labels of runs that become labels of metrics.
    pub metric_labels: Vec<String>,
}

impl Default for RunSettings {
    fn default() -> Self {
        use RunColumn::{By, Error, Id, Progress, Since, Skill, State, Step, Title};
        Self {
            expires_in: None,
            warn_before: Duration::from_secs(3_600),
            danger_before: Duration::from_secs(900),
            columns: vec![State, Title, Skill, Id, Progress, Step, Error, By, Since],
            sort: None,
            views: BTreeMap::new(),
            metric_labels: Vec::new(),
        }
    }
}

/// When ended runs are deleted, by final state; default: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    pub completed: Option<Duration>,
    /// Failed runs; a deleted run cannot be resumed.
    pub failed: Option<Duration>,
    /// Canceled and denied runs.
    pub canceled: Option<Duration>,
    /// Sessions, since their last change.
    pub sessions: Option<Duration>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RunsLayer {
    pub expires_in: Option<Spanned<String>>,
    pub warn_before: Option<Spanned<String>>,
    pub danger_before: Option<Spanned<String>>,
    pub columns: Option<Vec<Spanned<String>>>,
    pub sort: Option<Spanned<String>>,
    pub views: Option<BTreeMap<String, String>>,
    pub metric_labels: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RetentionLayer {
    pub completed: Option<Spanned<String>>,
    pub failed: Option<Spanned<String>>,
    pub canceled: Option<Spanned<String>>,
    pub sessions: Option<Spanned<String>>,
}

impl RunSettings {
    pub(super) fn apply(&mut self, layer: RunsLayer, file: &Path) -> Result<(), ConfigError> {
        if let Some(written) = layer.expires_in {
            self.expires_in = Some(read(&written, "runs.expires_in", file)?);
        }
        for (slot, written, key) in [
            (&mut self.warn_before, layer.warn_before, "runs.warn_before"),
            (&mut self.danger_before, layer.danger_before, "runs.danger_before"),
        ] {
            if let Some(written) = written {
                *slot = read(&written, key, file)?;
            }
        }
        if let Some(columns) = layer.columns {
            let parsed = columns.iter().map(|column| parsed(column, &column.value, "runs.columns", file));
            self.columns = parsed.collect::<Result<_, _>>()?;
        }
        if let Some(sort) = layer.sort {
            self.sort = Some(parsed(&sort, &sort.value, "runs.sort", file)?);
        }
        // The user's own file comes first: a project must not change what its views select.
        for (name, filter) in layer.views.unwrap_or_default() {
            self.views.entry(name).or_insert(filter);
        }
        if let Some(labels) = layer.metric_labels {
            self.metric_labels = labels;
        }
        Ok(())
    }
}

impl Retention {
    pub(super) fn apply(&mut self, layer: &RetentionLayer, file: &Path) -> Result<(), ConfigError> {
        for (slot, written, key) in [
            (&mut self.completed, &layer.completed, "retention.completed"),
            (&mut self.failed, &layer.failed, "retention.failed"),
            (&mut self.canceled, &layer.canceled, "retention.canceled"),
            (&mut self.sessions, &layer.sessions, "retention.sessions"),
        ] {
            if let Some(written) = written {
                *slot = Some(read(written, key, file)?);
            }
        }
        Ok(())
    }
}

fn read(written: &Spanned<String>, key: &str, file: &Path) -> Result<Duration, ConfigError> {
    duration::parse(&written.value).filter(|duration| !duration.is_zero()).ok_or_else(|| {
        let message = format!("`{key}` is `{}`", written.value);
        wrong(
            place(file, written.referenced),
            message,
            "allowed: a duration such as 90s, 15m, 1h30m or 30d, at most 36500d",
        )
    })
}

/// Parses the name of a column, or an order.
fn parsed<T: std::str::FromStr>(
    written: &Spanned<String>,
    name: &str,
    key: &str,
    file: &Path,
) -> Result<T, ConfigError> {
    name.parse().map_err(|_| {
        let message = format!("`{key}` has the unknown column `{}`", name.trim_start_matches('-'));
        wrong(place(file, written.referenced), message, format!("expected one of: {}", RunColumn::names()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::*;

    fn settings(text: &str) -> Result<(RunSettings, Retention), String> {
        let file = Path::new("/h/config.yaml");
        let layer = parse(file, text).map_err(|error| error.to_string())?;
        let (mut runs, mut retention) = (RunSettings::default(), Retention::default());
        runs.apply(layer.runs.unwrap_or_default(), file).map_err(|error| error.to_string())?;
        if let Some(layer) = layer.retention {
            retention.apply(&layer.value, file).map_err(|error| error.to_string())?;
        }
        Ok((runs, retention))
    }

    #[test]
    fn durations_columns_and_views_are_read() {
        let text = "runs:\n  expires_in: 7d\n  columns: [state, title, age]\n  sort: -age\n  \
                    views: {Failed: 'state:failed'}\nretention: {completed: 30d}\n";
        let (runs, retention) = settings(text).unwrap();
        assert_eq!(runs.expires_in, Some(Duration::from_secs(604_800)));
        assert_eq!(runs.columns, [RunColumn::State, RunColumn::Title, RunColumn::Age]);
        assert_eq!(runs.sort, Some(RunSort { column: RunColumn::Age, descending: true }));
        assert_eq!(runs.views["Failed"], "state:failed");
        assert_eq!(retention.completed, Some(Duration::from_secs(2_592_000)));
        assert_eq!(retention.failed, None, "what is not named is kept");
    }

    #[test]
    fn errors_name_location_and_allowed_values() {
        for (text, message) in [
            ("runs:\n  expires_in: soon\n", ":2:15: `runs.expires_in` is `soon`; allowed: a duration"),
            ("runs: {columns: [state, size]}\n", "unknown column `size`; expected one of: state, title"),
            ("runs: {sort: -size}\n", "`runs.sort` has the unknown column `size`"),
            ("retention: {completed: 0d}\n", "`retention.completed` is `0d`"),
            ("runs: {expires_in: 36501d}\n", "`runs.expires_in` is `36501d`"),
        ] {
            let error = settings(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
