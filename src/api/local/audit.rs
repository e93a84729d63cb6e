//! The audit log of this installation: its location, entries other than those of runs, and its verification.

use std::sync::Arc;

use serde_json::Value;

use super::runs::{self, RunStore};
use crate::work::run_blocking;
use crate::{AuditFilter, AuditPurged, AuditReport, Code, Error};
use skills_base::audit::{AuditError, Line, Mode, PurgeResult, Recorder};
use skills_config::{AuditLog, Config};

/// Default number of lines.
const DEFAULT_LIMIT: usize = 100;

/// Returns the recorder in the data folder; a demo records nothing.
pub(super) fn recorder(config: &Config) -> Arc<Recorder> {
    let mode = match config.audit {
        _ if config.demo => Mode::Off,
        AuditLog::Off => Mode::Off,
        AuditLog::Standard => Mode::Standard,
        AuditLog::Full => Mode::Full,
    };
    Recorder::new(&config.dirs.data.join("audit"), mode)
}

impl From<AuditError> for Error {
    fn from(error: AuditError) -> Self {
        let code = match error.reason.kind() {
            std::io::ErrorKind::InvalidData => Code::InvalidConfiguration,
            _ => Code::InternalError,
        };
        Self::new(code, error.to_string())
    }
}

/// The audit log of this installation.
pub struct AuditLogs {
    pub(super) config: Arc<Config>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) store: Arc<RunStore>,
}

impl AuditLogs {
    /// Verifies the complete audit log.
    pub async fn verify(&self) -> Result<AuditReport, Error> {
        let (log, mode) = (self.recorder.log().clone(), self.config.audit.to_string());
        let (stored, unchecked) = match self.store.audit_anchors().await {
            Ok(stored) => (stored, None),
            // The log can be verified without the store; the result states that the anchors were not checked.
            Err(error) => (Vec::new(), Some(error.message)),
        };
        run_blocking(move || {
            let file = log.file();
            let (verification, anchors) = log.verify_against(&[("store", stored)])?;
            Ok(AuditReport { exists: file.exists(), file, mode, verification, anchors, unchecked })
        })
        .await
    }

    /// Returns the last lines of the audit log that match a filter, oldest first.
    pub async fn show(&self, filter: AuditFilter) -> Result<Vec<Line>, Error> {
        let log = self.recorder.log().clone();
        run_blocking(move || {
            let limit = if filter.limit == 0 { DEFAULT_LIMIT } else { filter.limit };
            let about = |line: &Line, run: &str| {
                let id = line.data.get("run").and_then(Value::as_str).unwrap_or_default();
                id == run || run.len() >= 3 && (id.starts_with(run) || id.ends_with(run))
            };
            let keep = |line: &Line| {
                filter.run.as_deref().is_none_or(|run| about(line, run))
                    && filter.kind.as_deref().is_none_or(|kind| line.kind.starts_with(kind))
                    && filter.by.as_deref().is_none_or(|by| line.by.as_deref() == Some(by))
            };
            Ok(log.show(limit, keep)?)
        })
        .await
    }

    async fn purge_lines(&self, before_ms: i64) -> Result<PurgeResult, Error> {
        let log = self.recorder.log().clone();
        let now = jiff::Timestamp::now().as_millisecond();
        run_blocking(move || Ok(log.purge(before_ms, now, Some(&runs::account()))?)).await
    }

    /// Deletes inputs of steps and output lines of runs that ended before a moment, and the audit log lines up to then;
    /// returns the number of runs and lines.
    ///
    /// # Errors
    /// Returns the errors of the store; `invalid_configuration` for an audit log that fails verification, before
    /// anything is deleted.
    pub async fn purge(&self, before_ms: i64) -> Result<AuditPurged, Error> {
        let lines = self.purge_lines(before_ms).await?;
        let runs = self.store.runtime().await?.store.prune(before_ms).await?;
        Ok(AuditPurged { runs, lines: lines.lines, before_ms })
    }
}
