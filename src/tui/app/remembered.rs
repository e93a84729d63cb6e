//! What the workbench stores between two sessions: positions of splits and the chosen theme.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::App;
use crate::pane::PaneId;
use skills_base::private_files;

/// The state file, as YAML.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    /// The theme picked last; the configuration's own wish goes before it.
    pub theme: Option<String>,
    /// Cells by which splits were moved, by pane.
    pub split: BTreeMap<String, i16>,
    /// Intents asked, oldest first.
    pub intents: Vec<String>,
}

const PANES: [PaneId; 6] =
    [PaneId::Browse, PaneId::Discover, PaneId::Attach, PaneId::Session, PaneId::Runs, PaneId::Golden];

impl Remembered {
    /// Reads the file. One that is missing or damaged remembers nothing; it is written again at the end.
    #[must_use]
    pub fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        serde_saphyr::from_str(&text).unwrap_or_default()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// As the file system has them.
    pub fn write(&self, file: &Path) -> std::io::Result<()> {
        let text = serde_saphyr::to_string(self).map_err(std::io::Error::other)?;
        private_files::replace(file, text.as_bytes())
    }

    pub(super) fn splits(&self) -> HashMap<PaneId, i16> {
        PANES.iter().filter_map(|pane| Some((*pane, *self.split.get(&pane.name().to_lowercase())?))).collect()
    }
}

impl App {
    /// What is worth remembering now. The theme only when it was picked, not when the terminal chose it.
    #[must_use]
    pub fn remember(&self, before: &Remembered, at_start: &str) -> Remembered {
        let picked = (self.kept_theme != at_start).then(|| self.kept_theme.clone());
        let split = self
            .splits
            .iter()
            .filter(|(_, cells)| **cells != 0)
            .map(|(pane, cells)| (pane.name().to_lowercase(), *cells))
            .collect();
        let intents = self.panes.iter().flat_map(|pane| pane.persistent_texts()).collect();
        Remembered { theme: picked.or_else(|| before.theme.clone()), split, intents }
    }

    /// The name of the theme that was picked or chosen.
    #[must_use]
    pub fn theme_name(&self) -> &str {
        &self.kept_theme
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_damage_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/workbench.yaml");
        let kept = Remembered {
            theme: Some("light".to_owned()),
            split: BTreeMap::from([("browse".to_owned(), -4)]),
            intents: vec!["turn: the # table".to_owned()],
        };
        kept.write(&file).unwrap();
        assert_eq!(Remembered::read(&file), kept);
        assert_eq!(kept.splits(), HashMap::from([(PaneId::Browse, -4)]));
        std::fs::write(&file, ": [").unwrap();
        assert_eq!(Remembered::read(&file), Remembered::default());
    }
}
