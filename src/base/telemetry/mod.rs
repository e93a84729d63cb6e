//! Logging to a file and to a ring buffer that the workbench shows, never to the terminal it draws on; and the metrics
//! of this process.
//!
//! `SKILLS_LOG` is a filter like `RUST_LOG` in other programs (`info`, `skills_registry=debug`).

mod file;
mod metrics;
mod ring;

use std::io;
use std::path::Path;

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer as _, fmt};

pub use file::LogFile;
pub use metrics::{
    Bucket, Distribution, KeyOutcome, METRICS_CONTENT_TYPE, MetricFamily, MetricKind, MetricSample, Metrics,
    MetricsReport, RunGauges, UploadOutcome,
};
pub use ring::{Level, Record, RingBuffer};

/// The default log filter.
const DEFAULT: &str = "warn,skills=info";

/// The part of the log that also goes to stderr. The workbench draws there and uses `Never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stderr {
    /// No output.
    Never,
    /// Warnings and errors (`-v`).
    Warnings,
    /// Everything that passes the filter (`-vv`).
    All,
}

/// Why logging could not be initialized.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `SKILLS_LOG` is invalid.
    #[error(
        "invalid value `{value}` for SKILLS_LOG: {why}; allowed: levels and targets as in `info,skills_registry=debug`"
    )]
    Filter {
        /// The value of the variable.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// Logging is already initialized in this process.
    #[error("logging is already set up in this process")]
    Twice,
}

/// Replaces the targets of version 0.1.0 in `filter`, in which the program was a single crate.
fn current_targets(filter: &str) -> String {
    const RENAMED: [(&str, &str); 9] = [
        ("skill_workbench::runs", "skills_model"),
        ("skill_workbench::engine", "skills_runs"),
        ("skill_workbench::gateway", "skills_api"),
        ("skill_workbench::audit", "skills_base::audit"),
        ("skill_workbench::files", "skills_base::files"),
        ("skill_workbench::telemetry", "skills_base::telemetry"),
        ("skill_workbench::policy", "skills_registry::policy"),
        ("skill_workbench::", "skills_"),
        ("skill_workbench", "skills"),
    ];
    RENAMED.iter().fold(filter.to_owned(), |text, (old, new)| text.replace(old, new))
}

/// Initializes logging for this process: to `file` (rotated at 1 MiB, with the previous file as `….old`), to the
/// returned ring buffer, and to stderr according to `stderr`. If the file is not writable, only the ring buffer and
/// stderr are used.
///
/// # Errors
/// Returns an error for an invalid filter, or a second call.
pub fn init(file: &Path, filter: Option<&str>, stderr: Stderr) -> Result<RingBuffer, TelemetryError> {
    let wish = filter.unwrap_or(DEFAULT);
    let targets = current_targets(wish);
    let parse = || {
        EnvFilter::try_new(&targets)
            .map_err(|error| TelemetryError::Filter { value: wish.to_owned(), why: error.to_string() })
    };
    let ring = RingBuffer::new();
    let opened = LogFile::open(file);
    let failed = opened.as_ref().err().map(ToString::to_string);
    let to_file =
        opened.ok().map(|log| fmt::layer().with_ansi(false).with_writer(log).with_filter(parse().ok()));
    let level = match stderr {
        Stderr::Never => None,
        Stderr::Warnings => Some(EnvFilter::new("warn")),
        Stderr::All => Some(parse()?),
    };
    let to_stderr = level.map(|level| {
        let writer = BoxMakeWriter::new(io::stderr);
        fmt::layer().without_time().with_ansi(false).with_writer(writer).with_filter(level)
    });
    let layers =
        tracing_subscriber::registry().with(ring.layer().with_filter(parse()?)).with(to_file).with(to_stderr);
    tracing::subscriber::set_global_default(layers).map_err(|_| TelemetryError::Twice)?;
    if let Some(why) = failed {
        tracing::warn!("cannot write the log file {}: {why}", file.display());
    }
    Ok(ring)
}

#[cfg(test)]
mod tests {
    use super::current_targets;

    #[test]
    fn targets_of_the_first_version_still_filter() {
        assert_eq!(
            current_targets("warn,skill_workbench=info,skill_workbench::engine::broker=debug"),
            "warn,skills=info,skills_runs::broker=debug"
        );
        assert_eq!(current_targets("skill_workbench::store=trace"), "skills_store=trace");
        assert_eq!(current_targets("skills_store=trace"), "skills_store=trace");
    }
}
