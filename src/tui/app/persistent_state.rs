//! State that the workbench stores between sessions: positions of splits, the chosen theme and recent requests.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::pane::PaneId;
use skills_base::private_files;

/// The state file, as YAML.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PersistentState {
    /// The theme chosen last; the configuration has precedence.
    pub theme: Option<String>,
    /// Offset of splits in cells, by pane.
    pub split: BTreeMap<String, i16>,
    /// Ranked requests, oldest first.
    pub intents: Vec<String>,
}

/// Maximum size of the file.
const MAX_BYTES: u64 = 16 << 20;

const PANES: [PaneId; 6] =
    [PaneId::Browse, PaneId::Discover, PaneId::Attach, PaneId::Session, PaneId::Runs, PaneId::Golden];

impl PersistentState {
    /// Reads the file. A missing or damaged file yields the default state; it is rewritten on exit.
    pub fn read(file: &Path) -> Self {
        let text = skills_skill::read_regular_text(file, MAX_BYTES).unwrap_or_default();
        serde_saphyr::from_str(&text).unwrap_or_default()
    }

    /// Writes the file.
    pub fn write(&self, file: &Path) -> std::io::Result<()> {
        let text = serde_saphyr::to_string(self).map_err(std::io::Error::other)?;
        private_files::replace(file, text.as_bytes())
    }

    pub(super) fn splits(&self) -> HashMap<PaneId, i16> {
        PANES.iter().filter_map(|pane| Some((*pane, *self.split.get(&pane.name().to_lowercase())?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_round_trips_and_damaged_state_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/workbench.yaml");
        let remembered = PersistentState {
            theme: Some("light".to_owned()),
            split: BTreeMap::from([("browse".to_owned(), -4)]),
            intents: vec!["turn: the # table".to_owned()],
        };
        remembered.write(&file).unwrap();
        assert_eq!(PersistentState::read(&file), remembered);
        assert_eq!(remembered.splits(), HashMap::from([(PaneId::Browse, -4)]));
        std::fs::write(&file, ": [").unwrap();
        assert_eq!(PersistentState::read(&file), PersistentState::default());
    }
}
