//! Maintenance of the store of runs: integrity check, backup, and deletion of old runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::{Local, run_blocking};
use super::runtime::StorePlace;
use crate::{AuditPurged, Code, Error, StoreHealth, StoreMigrated, StoreReset};
use skills_config::quoted;
use skills_store::{Health, Unavailability, check_source, damage_of};

/// Why the store cannot be used, where an error is about that.
fn cause(error: &Error) -> Option<Unavailability> {
    serde_json::from_value(error.reason.as_ref()?.get("cause")?.clone()).ok()
}

/// An error about the source of a migration: the commands and options that it names are for that store.
fn about_source(error: Error, place: &str) -> Error {
    let command = format!("`skills --store {} db ", quoted(place));
    let message = error.message.replace("`skills db ", &command).replace("another --store", "another --from");
    Error { message, ..error }
}

impl Local {
    /// Checks the whole store.
    ///
    /// # Errors
    /// What the store says.
    pub async fn store_health(&self) -> Result<StoreHealth, Error> {
        let store = match self.runs.runtime().await {
            Ok(room) => room.store.clone(),
            // What keeps a damaged store from being opened is what was to be found.
            Err(error) if cause(&error) == Some(Unavailability::Damaged) => {
                let place = self.runs.store_place()?;
                let file = place.file().map(Path::to_owned);
                let mut damage =
                    run_blocking(move || Ok(file.map(|file| damage_of(&file)).unwrap_or_default())).await?;
                if damage.is_empty() {
                    damage.push(error.message);
                }
                let health = Health { damage, ..Health::default() };
                return Ok(StoreHealth { place: place.describe(), health });
            }
            Err(error) => return Err(error),
        };
        Ok(StoreHealth { place: store.describe(), health: store.check().await? })
    }

    /// What the store is and where; it is not opened.
    ///
    /// # Errors
    /// `invalid_configuration` for a store that is unknown.
    pub fn store_place(&self) -> Result<String, Error> {
        Ok(self.runs.store_place()?.describe())
    }

    /// Gives the store's path a new, empty store, and keeps the files that were there under other names.
    ///
    /// # Errors
    /// `store_unavailable` while a process has it open, or where its files cannot be renamed.
    pub async fn store_reset(&self) -> Result<StoreReset, Error> {
        let runs = Arc::clone(&self.runs);
        let done = run_blocking(move || runs.reset_store()).await?;
        Ok(StoreReset { place: self.store_place()?, id: done.id, kept: done.kept })
    }

    /// Puts a copy of a backup at the store's path, and keeps the files that were there under other names.
    ///
    /// # Errors
    /// `store_unavailable` while a process has it open, for a backup that is damaged or of another store, or where a file
    /// cannot be written.
    pub async fn store_restore(&self, backup: PathBuf) -> Result<StoreReset, Error> {
        let runs = Arc::clone(&self.runs);
        let done = run_blocking(move || runs.restore_store(&backup)).await?;
        Ok(StoreReset { place: self.store_place()?, id: done.id, kept: done.kept })
    }

    /// Accepts the store that is at the store's path in place of the one that is known there; answers its id.
    ///
    /// # Errors
    /// `store_unavailable` where it cannot be opened.
    pub async fn store_adopt(&self) -> Result<String, Error> {
        let runs = Arc::clone(&self.runs);
        run_blocking(move || runs.adopt_store()).await
    }

    /// Opens the store, and makes sure that it can be written.
    ///
    /// # Errors
    /// `store_unavailable`; what else the store says.
    pub async fn require_writable_store(&self) -> Result<(), Error> {
        self.runs.runtime().await?;
        self.runs.ensure_store()
    }

    /// Copies the store of a database file into this store, which has no runs yet. The file is not changed, and is
    /// checked before this store is opened or created.
    ///
    /// # Errors
    /// `invalid_request` for a store in memory; `forbidden` for a store that has runs; `store_unavailable` for a file
    /// that a process has open; what else the store says.
    pub async fn store_import(&self, from: &Path) -> Result<StoreMigrated, Error> {
        if matches!(self.runs.store_place()?, StorePlace::Memory) {
            let message = "a store in memory ends with this process; name a file or a database with --store";
            return Err(Error::new(Code::InvalidRequest, message));
        }
        let place = format!("sqlite:{}", from.display());
        let file = from.to_owned();
        let checked = run_blocking(move || Ok(check_source(&file)?)).await;
        checked.map_err(|error| about_source(error, &place))?;
        let store = &self.runs.runtime().await?.store;
        let tables = store.import(from).await.map_err(Error::from);
        let tables = tables.map_err(|error| {
            if error.message.contains(&format!(" {place}: ")) { about_source(error, &place) } else { error }
        })?;
        Ok(StoreMigrated { from: place, to: store.describe(), tables })
    }

    /// Writes a whole copy of the store into a file that is not there yet.
    ///
    /// # Errors
    /// What the store says; a file that is there is one of them.
    pub async fn store_backup(&self, to: &Path) -> Result<(), Error> {
        Ok(self.runs.runtime().await?.store.backup(to).await?)
    }

    /// Deletes runs that ended before a moment (milliseconds since 1970-01-01 UTC), with everything of theirs, gives
    /// their space back, and answers how many there were.
    ///
    /// # Errors
    /// What the store says.
    pub async fn store_purge(&self, before_ms: i64) -> Result<u64, Error> {
        let store = &self.runs.runtime().await?.store;
        let purged = store.purge(before_ms).await?;
        if purged > 0
            && let Err(error) = store.compact().await
        {
            // The runs are gone; their space is used by the next ones.
            tracing::warn!("cannot reclaim the space of purged runs: {error}");
        }
        Ok(purged)
    }

    /// Takes away inputs of steps and output lines of runs that ended before a moment, and the lines that the audit
    /// log had by then; answers how many runs and lines.
    ///
    /// # Errors
    /// What the store says; `invalid_configuration` for an audit log that does not hold, before anything is taken.
    pub async fn audit_purge(&self, before_ms: i64) -> Result<AuditPurged, Error> {
        let lines = self.audit_purge_lines(before_ms).await?;
        let runs = self.runs.runtime().await?.store.forget(before_ms).await?;
        Ok(AuditPurged { runs, lines: lines.lines, before_ms })
    }
}
