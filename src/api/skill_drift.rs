//! How a loaded skill is to its file and to the present roots: what holds on in a session may be older than
//! both.

use serde::{Deserialize, Serialize};

/// The file of a loaded skill, compared with what was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadedFile {
    /// As it was loaded.
    #[default]
    Unchanged,
    /// Its digest differs.
    Changed,
    /// Unreadable.
    Unreadable,
    /// Its folder exists, the file does not.
    Gone,
    /// Its folder does not exist.
    FolderGone,
}

/// Status of a loaded skill in the current roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadedFrom {
    /// They hold this very file under this name.
    #[default]
    Here,
    /// They hold the file and refuse it.
    Refused,
    /// They hold the file under another name.
    Renamed,
    /// They hold another file under this name.
    Namesake,
    /// They hold neither.
    Elsewhere,
}

/// Both of one loaded skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Standing {
    /// Its file.
    pub file: LoadedFile,
    /// The current roots.
    pub roots: LoadedFrom,
}

impl Standing {
    /// Whether there is nothing to tell: the roots hold it as it was loaded.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// What is to be reported as text: `changed on disk since, not in these roots`.
    #[must_use]
    pub fn describe(&self) -> Option<String> {
        let file = match self.file {
            LoadedFile::Unchanged => None,
            LoadedFile::Changed => Some("changed on disk"),
            LoadedFile::Unreadable => Some("file cannot be read"),
            LoadedFile::Gone => Some("file does not exist"),
            LoadedFile::FolderGone => Some("folder does not exist"),
        };
        let roots = match self.roots {
            LoadedFrom::Here => None,
            LoadedFrom::Refused => Some("refused in these roots"),
            LoadedFrom::Renamed => Some("has another name in these roots"),
            LoadedFrom::Namesake => Some("these roots have a different skill with this name"),
            // What is gone is in no roots: that goes without saying.
            LoadedFrom::Elsewhere if self.has_file() => Some("not in these roots"),
            LoadedFrom::Elsewhere => None,
        };
        let told: Vec<&str> = file.into_iter().chain(roots).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// Whether loading its name once more gives another text than the one that is loaded.
    #[must_use]
    pub fn loads_anew(&self) -> bool {
        match self.roots {
            LoadedFrom::Here => self.file == LoadedFile::Changed,
            LoadedFrom::Namesake => true,
            LoadedFrom::Refused | LoadedFrom::Renamed | LoadedFrom::Elsewhere => false,
        }
    }

    /// Whether its `SKILL.md` is there to be opened.
    #[must_use]
    pub fn has_file(&self) -> bool {
        !matches!(self.file, LoadedFile::Gone | LoadedFile::FolderGone)
    }

    /// Whether its folder is there to be read from.
    #[must_use]
    pub fn has_folder(&self) -> bool {
        self.file != LoadedFile::FolderGone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_gone_and_not_in_these_roots_are_told_apart() {
        let describe = |file, roots| Standing { file, roots }.describe();
        assert_eq!(describe(LoadedFile::Unchanged, LoadedFrom::Here), None);
        for (file, roots, words) in [
            (LoadedFile::Changed, LoadedFrom::Here, "changed on disk"),
            (LoadedFile::Unchanged, LoadedFrom::Elsewhere, "not in these roots"),
            (LoadedFile::Changed, LoadedFrom::Elsewhere, "changed on disk, not in these roots"),
            (LoadedFile::FolderGone, LoadedFrom::Elsewhere, "folder does not exist"),
            (
                LoadedFile::Unchanged,
                LoadedFrom::Namesake,
                "these roots have a different skill with this \
                name",
            ),
        ] {
            assert_eq!(describe(file, roots).as_deref(), Some(words));
        }
    }
}
