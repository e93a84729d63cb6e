//! Who may invoke a skill, according to a file next to its instructions.

use serde::Deserialize;

use skills_base::files::Folder;
use skills_skill::client::{PeopleOnly, Profile};

/// Beside a skill's instructions: how it looks and is called in Codex.
const OPENAI: &str = "agents/openai.yaml";
/// Bytes of that file that are read.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// What keeps a skill in this folder from the model, by a file beside its instructions, where the client keeps to that.
pub fn mark(profile: &Profile, folder: &std::path::Path) -> Option<&'static str> {
    let asked = profile.people_only.value().is_some_and(|ways| ways.contains(&PeopleOnly::OpenaiYaml));
    (asked && forbids(folder)).then_some("allow_implicit_invocation in agents/openai.yaml")
}

/// Whether `policy.allow_implicit_invocation` is false; unreadable file forbids nothing.
fn forbids(folder: &std::path::Path) -> bool {
    #[derive(Deserialize)]
    struct Written {
        policy: Option<Policy>,
    }
    #[derive(Deserialize)]
    struct Policy {
        allow_implicit_invocation: Option<bool>,
    }
    let Ok(bundle) = Folder::open(folder) else { return false };
    let Ok(text) = bundle.read_text(OPENAI, MAX_FILE_BYTES) else { return false };
    let read = serde_saphyr::from_str::<Written>(&text).ok();
    read.and_then(|written| written.policy?.allow_implicit_invocation) == Some(false)
}
