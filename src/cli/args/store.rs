//! Arguments of the commands about the store of runs.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::SqliteFile;
use super::value_parsers::{moment, span};

/// `skills db`
#[derive(Debug, Args)]
#[command(
    after_help = "The run store holds runs, their events and decisions, and sessions. It is the file runs.db in the data \
        folder, or the store of --store, SKILLS_STORE or `store` in config.yaml; `skills doctor` shows which. The first \
        command that writes creates it.\n\n\
        Each store has an id, which is recorded with the store's path when it is first opened (stores.json in the state \
        folder). If the file is missing or has another id later, commands fail instead of starting with an empty store: \
        move the file back, or use restore, reset or adopt."
)]
pub struct DbArgs {
    #[command(subcommand)]
    pub action: DbAction,
}
#[derive(Debug, Subcommand)]
pub enum DbAction {
    /// Create the store unless it exists.
    Create,
    /// Check the store for damage and inconsistent records; exits with 1 if there are any, with 70 if the store cannot be
    /// opened (missing, replaced, not readable).
    Check,
    /// Copy the store to a new file; safe while runs execute.
    Backup(BackupArgs),
    /// Copy all records of another store into this one, which must be empty.
    Migrate(MigrateArgs),
    /// Replace the store with a copy of a backup; the old files are renamed, not deleted.
    Restore(RestoreArgs),
    /// Replace the store with an empty one; the old files are renamed, not deleted.
    #[command(after_help = "Stop the processes that use the store first.")]
    Reset(ConfirmArgs),
    /// Accept the file at the store's path even though its id differs from the recorded one.
    #[command(
        after_help = "Use it if you replaced the file of the store on purpose. Only the recorded id is changed."
    )]
    Adopt(ConfirmArgs),
    /// Delete ended runs older than a given date or time, with their events, results and decisions.
    Purge(BeforeArgs),
}

/// `skills db backup`
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// File to create. `skills db restore FILE` restores it; --store sqlite:FILE opens it directly.
    pub file: PathBuf,
}

/// `skills db migrate`
#[derive(Debug, Args)]
#[command(
    after_help = "Stop the processes that use the old store first; it is not changed. The records are copied to the store \
        of --store, for example: skills --store postgres://USER@HOST/DATABASE db migrate --from sqlite:runs.db"
)]
pub struct MigrateArgs {
    /// Store to copy: sqlite:FILE.
    #[arg(long, value_name = "STORE", value_parser = SqliteFile)]
    pub from: PathBuf,
}

/// `skills db restore`
#[derive(Debug, Args)]
#[command(
    after_help = "Stop the processes that use the store first. The backup is checked before anything is replaced, and is \
        not changed."
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
#[command(group(ArgGroup::new("until").required(true).args(["before", "older_than"])))]
pub struct BeforeArgs {
    /// Select runs that ended before this date or time: 2026-10-01, 2026-10-01T12:00:00Z.
    #[arg(long, value_name = "DATE", value_parser = moment, allow_hyphen_values = true)]
    pub before: Option<i64>,
    /// Select runs that ended at least this long ago: 90s, 12h, 30d.
    #[arg(long, value_name = "DURATION", value_parser = span)]
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
        for with_password in ["postgres://kim:hunter2@db/runs", "postgres:///runs?password=hunter2"] {
            let error = parse(with_password).unwrap_err().to_string();
            assert!(error.contains("expected `sqlite:FILE`") && !error.contains("hunter2"), "{error}");
        }
        assert!(Cli::try_parse_from(["skills", "db", "migrate"]).is_err());
    }

    #[test]
    fn purge_requires_a_date() {
        assert_eq!(before(&["--older-than", "2h"]).unwrap(), 1_000_000_000 - 7_200_000);
        assert_eq!(before(&["--before", "1970-01-02T00:00:00Z"]).unwrap(), 86_400_000);
        assert!(before(&[]).is_err() && before(&["--before", "1970-01-02", "--older-than", "1d"]).is_err());
    }
}
