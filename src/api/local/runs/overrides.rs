//! The preferred bindings of this host, as set by `activate`: a separate small file, in addition to the settings.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::{Code, Error};
use skills_base::private_files;
use skills_base::sync::MutexExt as _;

/// Maximum size of the file in bytes.
const MAX_OVERRIDES_FILE_BYTES: u64 = 4 << 20;

/// Binding by capability.
pub(super) type Chosen = BTreeMap<String, String>;

/// The file, or only memory in a demo.
pub(super) struct Overrides {
    file: Option<PathBuf>,
    memory: Mutex<Chosen>,
}

impl Overrides {
    /// Uses `overrides.json` in a folder, or memory if there is none.
    pub(super) fn new(folder: Option<&Path>) -> Self {
        Self { file: folder.map(|folder| folder.join("overrides.json")), memory: Mutex::default() }
    }

    /// Returns the current preferences.
    ///
    /// # Errors
    /// Returns `invalid_configuration` for an unreadable file.
    pub(super) fn present(&self) -> Result<Chosen, Error> {
        let Some(file) = &self.file else {
            return Ok(self.memory.locked().clone());
        };
        let wrong = |why: String| {
            let message = format!("{}: {why}; fix or move it", file.display());
            Error::new(Code::InvalidConfiguration, message)
        };
        match skills_skill::read_regular_text(file, MAX_OVERRIDES_FILE_BYTES) {
            Ok(text) => serde_json::from_str(&text).map_err(|e| wrong(e.to_string())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Chosen::new()),
            Err(e) => Err(wrong(e.to_string())),
        }
    }

    /// Sets or removes the preferred binding of a capability; the file is replaced atomically.
    ///
    /// # Errors
    /// Returns `invalid_configuration` for an unreadable file, `internal_error` if it cannot be written.
    pub(super) fn choose(&self, capability: &str, binding: Option<&str>) -> Result<Chosen, Error> {
        // Held across reading and writing, so that no concurrent change is lost.
        let mut memory = self.memory.locked();
        let mut chosen = if self.file.is_some() { self.present()? } else { memory.clone() };
        match binding {
            Some(binding) => chosen.insert(capability.to_owned(), binding.to_owned()),
            None => chosen.remove(capability),
        };
        if let Some(file) = &self.file {
            write(file, &chosen).map_err(|e| {
                Error::new(Code::InternalError, format!("cannot write {}: {e}", file.display()))
            })?;
        }
        *memory = chosen.clone();
        Ok(chosen)
    }
}

fn write(file: &Path, chosen: &Chosen) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    private_files::create_folder(folder)?;
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&mut draft, chosen)?;
    draft.write_all(b"\n")?;
    draft.as_file().sync_all()?;
    draft.persist(file).map(drop).map_err(|e| e.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn override_is_stored_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("data");
        let overrides = Overrides::new(Some(&place));
        assert!(overrides.present().unwrap().is_empty());
        overrides.choose("a.b", Some("x")).unwrap();
        overrides.choose("c.d", Some("y")).unwrap();
        assert_eq!(Overrides::new(Some(&place)).present().unwrap()["a.b"], "x");
        overrides.choose("a.b", None).unwrap();
        assert_eq!(overrides.present().unwrap().keys().collect::<Vec<_>>(), ["c.d"]);
    }

    #[test]
    fn damaged_file_is_reported_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("overrides.json"), "{").unwrap();
        let overrides = Overrides::new(Some(folder.path()));
        let error = overrides.choose("a.b", Some("x")).unwrap_err();
        assert_eq!(error.code, Code::InvalidConfiguration);
        assert!(error.message.contains("overrides.json"), "{error}");
        assert_eq!(std::fs::read_to_string(folder.path().join("overrides.json")).unwrap(), "{");
    }

    #[test]
    fn a_demo_writes_nothing() {
        let overrides = Overrides::new(None);
        overrides.choose("a.b", Some("x")).unwrap();
        assert_eq!(overrides.present().unwrap()["a.b"], "x");
    }
}
