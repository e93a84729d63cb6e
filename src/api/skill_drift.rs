//! Drift of a loaded skill from its file and from the current roots: the version in a session may be older than both.

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
    /// They contain this file under this name.
    #[default]
    Here,
    /// They contain the file and reject it.
    Refused,
    /// They contain the file under another name.
    Renamed,
    /// They contain another file under this name.
    Namesake,
    /// They contain neither.
    Elsewhere,
}

/// Drift of a loaded skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Standing")]
pub struct SkillDrift {
    /// State of the file of the skill.
    pub file: LoadedFile,
    /// The current roots.
    pub roots: LoadedFrom,
}

impl SkillDrift {
    /// Returns whether there is no drift: the roots contain it as it was loaded.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Describes the drift: `changed on disk since, not in these roots`.
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
            LoadedFrom::Refused => Some("rejected in these roots"),
            LoadedFrom::Renamed => Some("has another name in these roots"),
            LoadedFrom::Namesake => Some("these roots have a different skill with this name"),
            // A missing file is not in any root, so that need not be stated.
            LoadedFrom::Elsewhere if self.has_file() => Some("not in these roots"),
            LoadedFrom::Elsewhere => None,
        };
        let notes: Vec<&str> = file.into_iter().chain(roots).collect();
        (!notes.is_empty()).then(|| notes.join(", "))
    }

    /// Returns whether loading it again by name yields a different text.
    pub fn needs_reload(&self) -> bool {
        match self.roots {
            LoadedFrom::Here => self.file == LoadedFile::Changed,
            LoadedFrom::Namesake => true,
            LoadedFrom::Refused | LoadedFrom::Renamed | LoadedFrom::Elsewhere => false,
        }
    }

    /// Returns whether its `SKILL.md` exists.
    pub fn has_file(&self) -> bool {
        !matches!(self.file, LoadedFile::Gone | LoadedFile::FolderGone)
    }

    pub fn has_folder(&self) -> bool {
        self.file != LoadedFile::FolderGone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_deleted_and_unread_skills_are_distinguished() {
        let describe = |file, roots| SkillDrift { file, roots }.describe();
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
