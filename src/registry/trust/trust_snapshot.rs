//! A trust snapshot for querying many places at once: shared lookups are done only once.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use super::file::Pins;
use super::{Trust, TrustState, digest};
use skills_base::files::canonicalize;
use skills_base::sync::MutexExt as _;

/// Trust at a point in time; short-lived, because its cached lookups become outdated.
#[derive(Debug)]
pub struct TrustSnapshot {
    trust: Trust,
    shipped: OnceLock<Option<PathBuf>>,
    /// Folders named in the settings: their real paths, and as written.
    named: OnceLock<Vec<(PathBuf, PathBuf)>>,
    pins: OnceLock<Option<Arc<Pins>>>,
    /// Cache of real paths.
    real: Mutex<HashMap<PathBuf, Option<PathBuf>>>,
}

impl TrustSnapshot {
    pub(super) fn new(trust: Trust) -> Self {
        Self {
            trust,
            shipped: OnceLock::new(),
            named: OnceLock::new(),
            pins: OnceLock::new(),
            real: Mutex::default(),
        }
    }

    /// Returns the real path of a place in the repository of the working directory that is a link to a place outside it.
    /// A folder that the settings name is meant as it is.
    pub(super) fn is_outside(&self, place: &Path) -> Option<PathBuf> {
        let inner = &self.trust.inner;
        let repository = inner.repository.iter().find(|repository| place.starts_with(repository))?;
        let mut resolved = self.real.locked();
        let is_named = inner.named.iter().any(|folder| {
            place.starts_with(folder)
                || resolve(folder, &mut resolved).is_some_and(|real| place.starts_with(real))
        });
        if is_named {
            return None;
        }
        let real = resolve(place, &mut resolved)?;
        let top = resolve(repository, &mut resolved)?;
        (!real.starts_with(top)).then_some(real)
    }

    /// Returns the state of a place, like [`Trust::state`].
    pub fn state(&self, place: &Path) -> TrustState {
        let real = resolve(place, &mut self.real.locked());
        let Some(real) = real else { return TrustState::Untrusted };
        if self.is_outside(place).is_some() {
            return TrustState::Untrusted;
        }
        let inner = &self.trust.inner;
        let shipped = self.shipped.get_or_init(|| canonicalize(&inner.shipped).ok());
        if shipped.as_ref().is_some_and(|shipped| real.starts_with(shipped)) {
            return TrustState::Shipped;
        }
        let named = self.named.get_or_init(|| {
            let real = inner.named.iter().map(|folder| (canonicalize(folder), folder.clone()));
            real.filter_map(|(real, folder)| Some((real.ok()?, folder))).collect()
        });
        if let Some((_, path)) = named.iter().find(|(folder, _)| real.starts_with(folder)) {
            return TrustState::Config { path: path.clone() };
        }
        let pins = self
            .pins
            .get_or_init(|| self.trust.pins().map_err(|error| tracing::warn!("trust: {error}")).ok());
        let Some(pin) = pins.as_ref().and_then(|pins| pins.get(&real)) else { return TrustState::Untrusted };
        match self.trust.measured(&real) {
            Ok(measured) if measured.digest == pin.digest => TrustState::Pinned { at: pin.at.clone() },
            Ok(measured) => TrustState::Changed { files: digest::differences(&pin.files, &measured.files) },
            Err(obstacle) => TrustState::Changed { files: vec![obstacle.to_string()] },
        }
    }
}

/// Resolves a path like [`canonicalize`]; each parent folder is resolved only once.
fn resolve(place: &Path, resolved: &mut HashMap<PathBuf, Option<PathBuf>>) -> Option<PathBuf> {
    if let Some(real) = resolved.get(place) {
        return real.clone();
    }
    let winding = place.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir));
    let real = match (place.parent(), place.file_name()) {
        (Some(above), Some(name)) if place.is_absolute() && !winding => match place.symlink_metadata() {
            Ok(metadata) if !metadata.is_symlink() => resolve(above, resolved).map(|above| above.join(name)),
            Ok(_) => canonicalize(place).ok(),
            Err(_) => None,
        },
        _ => canonicalize(place).ok(),
    };
    resolved.insert(place.to_owned(), real.clone());
    real
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn folders_resolve_like_the_operating_system() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::create_dir_all(at("a/b/c")).unwrap();
        fs::write(at("a/file"), "x").unwrap();
        symlink(at("a/b"), at("to-b")).unwrap();
        symlink("gone", at("a/dangling")).unwrap();
        symlink("..", at("a/b/up")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let mut resolved = HashMap::new();
        let places = [
            "",
            "a",
            "a/b/c",
            "to-b",
            "to-b/c",
            "a/b/up",
            "a/b/up/b/c",
            "a/dangling",
            "a/dangling/x",
            "loop",
            "loop/x",
            "gone",
            "a/file",
            "a/file/x",
            "a/../a/b",
            "a/b/up/../to-b",
        ];
        for place in places.into_iter().chain(places) {
            assert_eq!(resolve(&at(place), &mut resolved), at(place).canonicalize().ok(), "{place}");
        }
        assert_eq!(resolve(Path::new("src"), &mut resolved), Path::new("src").canonicalize().ok());
        assert_eq!(resolve(Path::new("/"), &mut resolved).as_deref(), Some(Path::new("/")));
        assert_eq!(resolve(Path::new(""), &mut resolved), None);
    }
}
