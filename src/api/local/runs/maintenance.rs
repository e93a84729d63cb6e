//! Maintenance of the store of runs: integrity check, backup, and deletion of old runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::runtime::{RunStore, StorePlace};
use crate::work::run_blocking;
use crate::{Code, Error, StoreHealth, StoreMigrated, StoreReset};
use skills_config::{Config, quoted};
use skills_store::{Health, Unavailability, check_source, damage_of};

/// Returns why the store cannot be used, if that is what the error means.
fn cause(error: &Error) -> Option<Unavailability> {
    serde_json::from_value(error.reason.as_ref()?.get("cause")?.clone()).ok()
}

/// Rewrites an error about the source of a migration, so that its commands and options refer to that store.
fn about_source(error: Error, place: &str) -> Error {
    let command = format!("`skills --store {} db ", quoted(place));
    let message = error.message.replace("`skills db ", &command).replace("another store", "another --from");
    Error { message, ..error }
}

/// The maintenance of the store of runs.
pub struct StoreMaintenance {
    pub(in crate::local) config: Arc<Config>,
    pub(in crate::local) store: Arc<RunStore>,
}

impl StoreMaintenance {
    /// Checks the integrity of the store.
    pub async fn health(&self) -> Result<StoreHealth, Error> {
        let store = match self.store.runtime().await {
            Ok(runtime) => runtime.store.clone(),
            // A damaged store that cannot be opened is reported as such.
            Err(error) if cause(&error) == Some(Unavailability::Damaged) => {
                let place = StorePlace::in_use(&self.config)?;
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

    /// Returns the kind and location of the store, without opening it.
    ///
    /// # Errors
    /// Returns `invalid_configuration` for an unknown kind of store.
    pub fn place(&self) -> Result<String, Error> {
        Ok(StorePlace::in_use(&self.config)?.describe())
    }

    /// Creates a new, empty store at the store's path; the previous files are renamed.
    ///
    /// # Errors
    /// Returns `store_unavailable` if a process has it open, or if its files cannot be renamed.
    pub async fn reset(&self) -> Result<StoreReset, Error> {
        let store = Arc::clone(&self.store);
        let done = run_blocking(move || store.reset_store()).await?;
        Ok(StoreReset { place: self.place()?, id: done.id, previous_files: done.set_aside })
    }

    /// Copies a backup to the store's path; the previous files are renamed.
    ///
    /// # Errors
    /// Returns `store_unavailable` if a process has it open, for a backup that is damaged or of another store, or if a
    /// file cannot be written.
    pub async fn restore(&self, backup: PathBuf) -> Result<StoreReset, Error> {
        let store = Arc::clone(&self.store);
        let done = run_blocking(move || store.restore_store(&backup)).await?;
        Ok(StoreReset { place: self.place()?, id: done.id, previous_files: done.set_aside })
    }

    /// Records the store at the store's path in place of the recorded one; returns its id.
    ///
    /// # Errors
    /// Returns `store_unavailable` if it cannot be opened.
    pub async fn adopt(&self) -> Result<String, Error> {
        let store = Arc::clone(&self.store);
        run_blocking(move || store.adopt_store()).await
    }

    /// Opens the store, and checks that it can be written.
    ///
    /// # Errors
    /// Returns `store_unavailable`, and other errors of the store.
    pub async fn require_writable(&self) -> Result<(), Error> {
        self.store.runtime().await?;
        self.store.ensure_store()
    }

    /// Copies the store of a database file into this store, which has no runs yet. The file is not changed, and is
    /// checked before this store is opened or created.
    ///
    /// # Errors
    /// Returns `invalid_request` for a store in memory; `forbidden` for a store that has runs; `store_unavailable` for
    /// a file that a process has open; and other errors of the store.
    pub async fn import(&self, from: &Path) -> Result<StoreMigrated, Error> {
        if matches!(StorePlace::in_use(&self.config)?, StorePlace::Memory) {
            let message = "a store in memory ends with this process; name a file or a database with --store";
            return Err(Error::new(Code::InvalidRequest, message));
        }
        let place = format!("sqlite:{}", from.display());
        let file = from.to_owned();
        let checked = run_blocking(move || Ok(check_source(&file)?)).await;
        checked.map_err(|error| about_source(error, &place))?;
        let store = &self.store.runtime().await?.store;
        let tables = store.import(from).await.map_err(Error::from);
        let tables = tables.map_err(|error| {
            if error.message.contains(&format!(" {place}: ")) { about_source(error, &place) } else { error }
        })?;
        Ok(StoreMigrated { from: place, to: store.describe(), tables })
    }

    /// Writes a complete copy of the store to a new file.
    pub async fn backup(&self, to: &Path) -> Result<(), Error> {
        Ok(self.store.runtime().await?.store.backup(to).await?)
    }

    /// Deletes runs that ended before a moment (milliseconds since 1970-01-01 UTC), with everything that belongs to
    /// them, reclaims their space, and returns their number.
    pub async fn purge(&self, before_ms: i64) -> Result<u64, Error> {
        let store = &self.store.runtime().await?.store;
        let purged = store.purge(before_ms).await?;
        if purged > 0
            && let Err(error) = store.compact().await
        {
            // The runs are deleted; their space is reused by the next ones.
            tracing::warn!("cannot reclaim the space of purged runs: {error}");
        }
        Ok(purged)
    }
}
