//! Trust: the shipped skills, folders named in the user's settings, and bundles that the user pinned by approving
//! exactly these files. Everything else loads with its contract disabled. A pinned bundle that changed has to be
//! approved again.

mod digest;
mod file;
mod trust_snapshot;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use strum::Display;

use self::digest::CachedDigest;
use self::file::Pins;
use super::shipped;
use skills_base::files::canonicalize;
use skills_base::sync::MutexExt as _;
use skills_config::{Config, operands, real_path};

pub use self::digest::{BundleDigest, DigestError, FileKind, SeenFile, combined_digest};
pub use self::file::Pin;
pub use self::trust_snapshot::TrustSnapshot;

/// Whether a bundle's contract, scripts and bindings may run, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum TrustState {
    /// It ships with this program.
    Shipped,
    /// The user's settings name it or a folder above it: trusted in any version.
    Config {
        /// The named folder.
        #[serde(rename = "named", serialize_with = "skills_base::paths::serialize")]
        path: PathBuf,
    },
    /// The user trusted exactly these files.
    Pinned {
        /// Time, as RFC 3339 in UTC.
        at: String,
    },
    /// It was trusted, but has changed since.
    Changed {
        /// Files that differ: `scripts/run.py`, `new.sh (new)`, `old.md (gone)`; or why the differences are unknown.
        #[serde(rename = "changed")]
        files: Vec<String>,
    },
    /// Not trusted.
    Untrusted,
}

/// State of trust as one word, for lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[derive(Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schemars(rename = "Trusted")]
pub enum TrustSummary {
    /// It ships with this program.
    Shipped,
    /// Trusted by configuration or by a pin.
    Yes,
    /// Trusted, but changed since.
    Changed,
    /// Not trusted.
    #[default]
    No,
}

impl TrustState {
    /// Returns the state as one word.
    pub fn summary(&self) -> TrustSummary {
        match self {
            Self::Shipped => TrustSummary::Shipped,
            Self::Config { .. } | Self::Pinned { .. } => TrustSummary::Yes,
            Self::Changed { .. } => TrustSummary::Changed,
            Self::Untrusted => TrustSummary::No,
        }
    }

    pub fn may_run(&self) -> bool {
        matches!(self.summary(), TrustSummary::Shipped | TrustSummary::Yes)
    }
}

/// Why trust cannot be determined or stored.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file of pins is damaged.
    #[error("{} is damaged ({why}), so all pinned trust is ignored. Move the file away and trust the \
        bundles again", file.display())]
    Damaged {
        file: PathBuf,
        /// The parse error.
        why: String,
    },
    /// The file of pins was written by a later version.
    #[error("{} was written by a newer version of this program (layout {version}); use that version", file.display())]
    Newer {
        file: PathBuf,
        /// The version of its layout.
        version: u32,
    },
    /// The file of pins cannot be read or written.
    #[error("{}: {source}", file.display())]
    Io {
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The content of the place cannot be pinned.
    #[error("{} cannot be trusted: {why}", place.display())]
    Unpinnable {
        place: PathBuf,
        /// The reason.
        why: DigestError,
    },
    /// The content differs from what was shown.
    #[error("{} changed during the check; try again", place.display())]
    Moved { place: PathBuf },
}

/// Pins, settings and cached digests; cheap to clone, the clones share them.
#[derive(Debug, Clone)]
pub struct Trust {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// `trust.json`; `None` if nothing is stored persistently.
    file: Option<PathBuf>,
    shipped: PathBuf,
    named: Vec<PathBuf>,
    /// The paths of the repository of the working directory: a link in it does not give the trust of its target to
    /// another name.
    repository: Vec<PathBuf>,
    pins: Mutex<CachedPins>,
    digest_cache: Mutex<HashMap<PathBuf, CachedDigest>>,
}

/// The pins as last read, and the stamp of the file at that time.
#[derive(Debug, Default)]
struct CachedPins {
    stamp: Option<PinsStamp>,
    pins: Arc<Pins>,
}

/// Maximum number of folders in the cache of digests; beyond, it starts empty. More than the largest known catalog has.
const MAX_CACHED: usize = 65_536;

/// Inode number, size, and time of the last change of the file.
pub type PinsStamp = (u64, u64, i64, i64);

impl Trust {
    /// Creates the trust state of these settings: pins in the data folder, `trust` of the user's own settings file,
    /// and the shipped skills in the cache. In a demonstration only the shipped skills are trusted.
    pub fn of(config: &Config) -> Self {
        let shipped = shipped::root(&config.dirs.cache).path;
        if config.demo {
            return Self::new(None, shipped, Vec::new());
        }
        let project = config.project().to_owned();
        let project = (!config.contains_home(&project)).then_some(project);
        // Settings name it by the path of `HOME`, which may contain links.
        let below_home = |project: &PathBuf| {
            let below = project.strip_prefix(real_path(&config.dirs.home)).ok()?;
            Some(config.dirs.home.join(below))
        };
        let named = project.as_ref().and_then(below_home);
        let repository = project.into_iter().chain(named).collect();
        Self::with(Some(config.dirs.data.join("trust.json")), shipped, config.trust.clone(), repository)
    }

    /// Creates a trust state from a file of pins, the folder of the shipped skills, and the folders named in settings.
    pub fn new(file: Option<PathBuf>, shipped: PathBuf, named: Vec<PathBuf>) -> Self {
        Self::with(file, shipped, named, Vec::new())
    }

    fn with(file: Option<PathBuf>, shipped: PathBuf, named: Vec<PathBuf>, repository: Vec<PathBuf>) -> Self {
        let (pins, digest_cache) = (Mutex::default(), Mutex::default());
        Self { inner: Arc::new(Inner { file, shipped, named, repository, pins, digest_cache }) }
    }

    /// Returns the file of pins, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.inner.file.as_deref()
    }

    /// Returns whether the content of this folder may run. The folder is a bundle, or a registry folder, of which only
    /// `bindings/`, `capabilities/`, `scripts/` and `services/` matter.
    pub fn state(&self, place: &Path) -> TrustState {
        self.trust_snapshot().state(place)
    }

    /// Returns a snapshot for the states of many places at once.
    pub fn trust_snapshot(&self) -> TrustSnapshot {
        TrustSnapshot::new(self.clone())
    }

    /// Returns the version of the pins: it differs after a bundle was trusted or its trust was revoked, by any process.
    pub fn pins_stamp(&self) -> Option<PinsStamp> {
        self.inner.file.as_deref().and_then(stamp)
    }

    /// Returns why a folder may not run, or `None` if it may: `what` is the subject of the sentence, `name` the
    /// argument for `skills trust`.
    pub fn refusal(&self, place: &Path, what: &str, name: &str) -> Option<String> {
        self.refusal_of(place, &BTreeMap::new(), what, name)
    }

    /// Like [`Self::refusal`], for files that were read from the folder: their digests by relative path. They must be
    /// what was trusted, even if the folder contains that again in the meantime.
    pub fn refusal_of(
        &self,
        place: &Path,
        read: &BTreeMap<String, String>,
        what: &str,
        name: &str,
    ) -> Option<String> {
        let name = operands([name]);
        let changed = |files: &[String]| {
            format!(
                "{what} changed since it was trusted ({}); review it and run `skills trust {name}` again",
                few(files),
            )
        };
        match self.state(place) {
            TrustState::Shipped | TrustState::Config { .. } => None,
            TrustState::Pinned { .. } => {
                let files = self.unpinned(place, read);
                (!files.is_empty()).then(|| changed(&files))
            }
            TrustState::Changed { files } => Some(changed(&files)),
            TrustState::Untrusted if self.trust_snapshot().is_outside(place).is_some() => Some(format!(
                "{what} is reached by a symbolic link that points outside the repository, where trust in its target \
                 does not apply; use it by its own path"
            )),
            TrustState::Untrusted => {
                Some(format!("{what} is not trusted; review it, then run `skills trust {name}`"))
            }
        }
    }

    /// Returns the files that differ from those of the folder's pin. A digest is the SHA-256 of the content, followed by
    /// `x` if the file is executable, or `link:` and the SHA-256 of the target.
    fn unpinned(&self, place: &Path, read: &BTreeMap<String, String>) -> Vec<String> {
        if read.is_empty() {
            return Vec::new();
        }
        let pins = self.pins().ok().zip(canonicalize(place).ok());
        let pin = pins.as_ref().and_then(|(pins, real)| pins.get(real));
        let is_pinned = |path: &String, digest: &String| {
            let Some(file) = pin.and_then(|pin| pin.files.get(path)) else { return false };
            let (is_link, digest) = match digest.strip_prefix("link:") {
                Some(digest) => (true, digest),
                None => (false, digest.trim_end_matches('x')),
            };
            is_link == (file.kind == FileKind::Link) && file.sha256.to_string() == digest
        };
        let others = read.iter().filter(|(path, digest)| !is_pinned(path, digest));
        others.map(|(path, _)| path.clone()).collect()
    }

    /// Computes the digests of all files of a place in their current state.
    pub fn compute_digest(&self, place: &Path) -> Result<BundleDigest, TrustError> {
        let io = |source| TrustError::Io { file: place.to_owned(), source };
        let real = canonicalize(place).map_err(io)?;
        self.measured(&real).map_err(|why| TrustError::Unpinnable { place: place.to_owned(), why })
    }

    /// Pins places as they were shown: all of them, or none. `at` is the current time in RFC 3339, UTC.
    ///
    /// # Errors
    /// Returns [`TrustError::Moved`] if one differs from what was shown.
    pub fn pin(&self, seen: &[(PathBuf, BundleDigest)], at: &str) -> Result<(), TrustError> {
        let mut pins = Vec::new();
        for (place, shown) in seen {
            let now = self.compute_digest(place)?;
            if now.digest != shown.digest {
                return Err(TrustError::Moved { place: place.clone() });
            }
            let io = |source| TrustError::Io { file: place.clone(), source };
            let path = canonicalize(place).map_err(io)?;
            pins.push(Pin { path, digest: now.digest, at: at.to_owned(), files: now.files });
        }
        self.change(|all| {
            all.extend(pins.into_iter().map(|pin| (pin.path.clone(), pin)));
            Ok(())
        })
    }

    /// Revokes the pins of a folder and of everything below it; returns their folders.
    pub fn revoke(&self, place: &Path) -> Result<Vec<PathBuf>, TrustError> {
        // A deleted folder can still be revoked, by its path as listed.
        let real = canonicalize(place).unwrap_or_else(|_| place.to_owned());
        self.change(|all| {
            let gone: Vec<PathBuf> = all.keys().filter(|path| path.starts_with(&real)).cloned().collect();
            for path in &gone {
                all.remove(path);
            }
            Ok(gone)
        })
    }

    /// Returns every pin, sorted by path.
    pub fn list(&self) -> Result<Vec<Pin>, TrustError> {
        Ok(self.pins()?.values().cloned().collect())
    }

    /// Returns the folders named in the user's settings.
    pub fn named(&self) -> &[PathBuf] {
        &self.inner.named
    }

    fn change<T>(&self, change: impl FnOnce(&mut Pins) -> Result<T, TrustError>) -> Result<T, TrustError> {
        if let Some(file) = &self.inner.file {
            file::change(file, change)
        } else {
            let mut read = self.inner.pins.locked();
            change(Arc::make_mut(&mut read.pins))
        }
    }

    /// Returns the current pins of the file. It is always replaced atomically, so different content has a different
    /// inode number, size or time.
    fn pins(&self) -> Result<Arc<Pins>, TrustError> {
        let mut read = self.inner.pins.locked();
        let Some(file) = &self.inner.file else { return Ok(Arc::clone(&read.pins)) };
        let stamp = stamp(file);
        if stamp.is_none() || read.stamp != stamp {
            *read = CachedPins::default();
            read.pins = Arc::new(file::read(file)?);
            read.stamp = stamp;
        }
        Ok(Arc::clone(&read.pins))
    }

    fn measured(&self, real: &Path) -> Result<BundleDigest, DigestError> {
        let cached = self.inner.digest_cache.locked().get(real).cloned();
        let now = digest::measure(real, cached.as_ref(), SystemTime::now())?;
        let measured = now.measured().clone();
        let mut cache = self.inner.digest_cache.locked();
        // Folders that no longer exist do not accumulate.
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(real.to_owned(), now);
        Ok(measured)
    }
}

/// Computes the digests of a folder without a trust state, for packages.
pub fn measure_bundle(place: &Path) -> Result<BundleDigest, TrustError> {
    let io = |source| TrustError::Io { file: place.to_owned(), source };
    let real = canonicalize(place).map_err(io)?;
    let measured = digest::measure(&real, None, SystemTime::now());
    measured
        .map(CachedDigest::into_measured)
        .map_err(|why| TrustError::Unpinnable { place: place.to_owned(), why })
}

/// Returns whether a folder is a bundle, that is, contains a main file.
pub fn is_bundle(folder: &Path) -> bool {
    digest::is_bundle(folder)
}

fn few(files: &[String]) -> String {
    const MAX_NAMED_FILES: usize = 3;
    let more = files.len().saturating_sub(MAX_NAMED_FILES);
    let named = files.iter().take(MAX_NAMED_FILES).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

#[cfg(unix)]
fn stamp(file: &Path) -> Option<PinsStamp> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.ino(), metadata.len(), metadata.ctime(), metadata.ctime_nsec()))
}

#[cfg(not(unix))]
fn stamp(_: &Path) -> Option<PinsStamp> {
    None
}

#[cfg(all(test, unix))]
#[path = "trust/tests.rs"]
mod tests;
