//! Baselines of golden sets: the figures that a user chose for comparison, and earlier ones, in one file of the state
//! folder.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use skills_base::private_files;
use skills_discovery::GoldenFigures;
use skills_skill::{SkillId, read_regular_text};

/// Maximum number of stored baselines of one golden set.
const MAX_BASELINES: usize = 12;
/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Figures of a golden set at one time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GoldenBaseline {
    /// When it was set, milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    pub figures: GoldenFigures,
    /// Queries that were answered as expected, with the first result of each; of the newest baseline only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passed: BTreeMap<String, Option<SkillId>>,
    /// The others, in the same form.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<String, Option<SkillId>>,
}

type StoredBaselines = BTreeMap<String, Vec<GoldenBaseline>>;

/// Returns the baselines of a golden set, oldest first. `key` identifies the golden set.
pub fn baselines(file: &Path, key: &str) -> Vec<GoldenBaseline> {
    stored(file).remove(key).unwrap_or_default()
}

fn stored(file: &Path) -> StoredBaselines {
    let text = match read_regular_text(file, MAX_BYTES) {
        Ok(text) => text,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!("cannot read {}: {error}", file.display());
            }
            return StoredBaselines::new();
        }
    };
    serde_json::from_str(&text).unwrap_or_else(|error| {
        tracing::warn!("{} is not a list of baselines: {error}", file.display());
        StoredBaselines::new()
    })
}

/// Adds a baseline, and returns all baselines of the golden set.
pub fn add_baseline(file: &Path, key: &str, baseline: GoldenBaseline) -> io::Result<Vec<GoldenBaseline>> {
    let mut stored = stored(file);
    let own = stored.entry(key.to_owned()).or_default();
    for earlier in own.iter_mut() {
        earlier.passed.clear();
        earlier.failed.clear();
    }
    own.push(baseline);
    let surplus = own.len().saturating_sub(MAX_BASELINES);
    own.drain(..surplus);
    let own = own.clone();
    if let Some(folder) = file.parent() {
        private_files::create_folder(folder)?;
    }
    let text = serde_json::to_vec(&stored).map_err(io::Error::other)?;
    private_files::replace(file, &text)?;
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_baseline_keeps_its_queries() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/golden-baselines.json");
        assert_eq!(baselines(&file, "a"), []);
        let baseline = |at_ms| GoldenBaseline {
            at_ms,
            passed: BTreeMap::from([("q".to_owned(), None)]),
            ..GoldenBaseline::default()
        };
        for at in 0..15 {
            add_baseline(&file, "a", baseline(at)).unwrap();
        }
        let found = baselines(&file, "a");
        assert_eq!((found.len(), found[0].at_ms, found[11].at_ms), (12, 3, 14));
        assert!(found[0].passed.is_empty() && found[11].passed.contains_key("q"));
        assert_eq!(baselines(&file, "b"), []);
    }
}
