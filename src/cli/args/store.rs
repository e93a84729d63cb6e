//! Arguments of the commands about the store of runs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::value_parsers::{moment, span, sqlite_file};

/// `skills db`
#[derive(Debug, Args)]
#[command(after_help = "The store is the default file in the data folder, or that of --store.")]
pub struct DbArgs {
    #[command(subcommand)]
    pub action: DbAction,
}
#[derive(Debug, Subcommand)]
pub enum DbAction {
    /// Check the integrity of the store; exits with 1 if it is damaged or inconsistent, with 70 if it cannot be opened
    /// (missing, replaced, not readable).
    Check,
    /// Write a complete copy, also while runs execute.
    Backup(BackupArgs),
    /// Copy all records of another store into this one, which must be empty.
    Migrate(MigrateArgs),
    /// Replace the store with a copy of a backup; the old files are kept under another name.
    Restore(RestoreArgs),
    /// Create an empty store; the old files are kept under another name.
    Reset(ConfirmArgs),
    /// Accept a different store at this path.
    Adopt(ConfirmArgs),
    /// Delete runs that ended before a given time, with all their data.
    Purge(BeforeArgs),
}

/// `skills db backup`
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// File to create; open it with --store sqlite:FILE.
    pub file: PathBuf,
}

/// `skills db migrate`
#[derive(Debug, Args)]
#[command(
    after_help = "Stop the processes that use the old store first; it is not changed. The records go to the store of \
        --store, for example postgres://USER@HOST/DATABASE."
)]
pub struct MigrateArgs {
    /// Store to copy: sqlite:FILE.
    #[arg(long, value_name = "STORE", value_parser = sqlite_file)]
    pub from: PathBuf,
}

/// `skills db restore`
#[derive(Debug, Args)]
#[command(
    after_help = "Stop the processes that use the store first. The backup is checked, and not changed."
)]
pub struct RestoreArgs {
    /// Backup to copy, written by `skills db backup`.
    pub file: PathBuf,
    #[command(flatten)]
    pub confirm: ConfirmArgs,
}

/// `skills db reset` and `skills db adopt`
#[derive(Debug, Args)]
pub struct ConfirmArgs {
    /// Skip the confirmation prompt.
    #[arg(long, short)]
    pub yes: bool,
}

/// `skills db purge` and `skills audit-purge`: up to when.
#[derive(Debug, Args)]
pub struct BeforeArgs {
    /// Select runs that ended before this date or time: 2026-10-01, 2026-10-01T12:00:00Z.
    #[arg(long, value_name = "DATE", value_parser = moment, required_unless_present = "older_than",
        conflicts_with = "older_than", allow_hyphen_values = true)]
    pub before: Option<i64>,
    /// Select runs that ended at least this long ago: 90s, 12h, 30d.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub older_than: Option<u64>,
    /// Skip the confirmation prompt.
    #[arg(long, short)]
    pub yes: bool,
}

impl BeforeArgs {
    /// Returns the time, in milliseconds since 1970-01-01 UTC.
    pub fn before_ms(&self, now_ms: i64) -> i64 {
        let ago = |seconds: u64| {
            now_ms.saturating_sub(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000))
        };
        self.before.or_else(|| self.older_than.map(ago)).unwrap_or(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::{Cli, Command};

    fn before(words: &[&str]) -> Result<i64, clap::Error> {
        let cli = Cli::try_parse_from([&["skills", "audit-purge"], words].concat())?;
        match cli.command {
            Some(Command::AuditPurge(args)) => Ok(args.before_ms(1_000_000_000)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_migration_names_a_file() {
        let parse = |from: &str| Cli::try_parse_from(["skills", "db", "migrate", "--from", from]);
        assert!(parse("sqlite:runs.db").is_ok());
        for wrong in ["sqlite:", "runs.db", "memory:", "postgres://kim@db/runs"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(Cli::try_parse_from(["skills", "db", "migrate"]).is_err());
    }

    #[test]
    fn a_purge_says_up_to_when() {
        assert_eq!(before(&["--older-than", "2h"]).unwrap(), 1_000_000_000 - 7_200_000);
        assert_eq!(before(&["--before", "1970-01-02T00:00:00Z"]).unwrap(), 86_400_000);
        assert!(before(&[]).is_err() && before(&["--before", "1970-01-02", "--older-than", "1d"]).is_err());
    }
}
