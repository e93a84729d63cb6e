//! Who may invoke a skill, according to a file next to its instructions.

use serde::Deserialize;

use skills_base::files::Folder;
use skills_skill::client::{PeopleOnly, Profile};

/// File next to a skill's instructions with its appearance and invocation in Codex.
const OPENAI: &str = "agents/openai.yaml";
/// Maximum number of bytes read of that file.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Returns the setting, in a file next to the instructions, that hides a skill in this folder from the model, if the
/// client respects it.
pub fn mark(profile: &Profile, folder: &std::path::Path) -> Option<&'static str> {
    let reads_openai_yaml =
        profile.people_only.value().is_some_and(|ways| ways.contains(&PeopleOnly::OpenaiYaml));
    (reads_openai_yaml && forbids(folder)).then_some("allow_implicit_invocation in agents/openai.yaml")
}

/// Returns whether `policy.allow_implicit_invocation` is false; an unreadable file forbids nothing.
fn forbids(folder: &std::path::Path) -> bool {
    #[derive(Deserialize)]
    struct OpenAiMetadata {
        policy: Option<Policy>,
    }
    #[derive(Deserialize)]
    struct Policy {
        allow_implicit_invocation: Option<bool>,
    }
    let Ok(bundle) = Folder::open(folder) else { return false };
    let Ok(text) = bundle.read_text(OPENAI, MAX_FILE_BYTES) else { return false };
    let read = serde_saphyr::from_str::<OpenAiMetadata>(&text).ok();
    read.and_then(|written| written.policy?.allow_implicit_invocation) == Some(false)
}
