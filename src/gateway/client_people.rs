//! Which skills a client keeps from its model, so that people alone call them.

use serde::Deserialize;

use crate::skill::Skill;
use crate::skill::client::{PeopleOnly, Profile};

/// Beside a skill's instructions: how it looks and is called in Codex.
const OPENAI: &str = "agents/openai.yaml";
/// Bytes of that file that are read.
const MOST: u64 = 64 * 1024;

/// How a skill says that people alone call it, where the client keeps to that. What of it is unknown is told as
/// `Err`.
pub fn mark(profile: &Profile, skill: &Skill) -> Option<Result<&'static str, String>> {
    const IN_FRONTMATTER: &str = "disable-model-invocation";
    let Some(kept) = profile.people_only.value() else {
        let why = || format!("nobody has published what {} does with {IN_FRONTMATTER}", profile.name);
        return skill.clients.disable_model_invocation.then(|| Err(why()));
    };
    kept.iter().find_map(|way| match way {
        PeopleOnly::Frontmatter => skill.clients.disable_model_invocation.then_some(Ok(IN_FRONTMATTER)),
        PeopleOnly::OpenaiYaml => {
            forbids(skill).then_some(Ok("allow_implicit_invocation in agents/openai.yaml"))
        }
    })
}

/// Whether `policy.allow_implicit_invocation` is false; a file that cannot be read forbids nothing.
fn forbids(skill: &Skill) -> bool {
    #[derive(Deserialize)]
    struct Written {
        policy: Option<Policy>,
    }
    #[derive(Deserialize)]
    struct Policy {
        allow_implicit_invocation: Option<bool>,
    }
    let Ok(bundle) = skill.open() else { return false };
    let Ok(text) = bundle.read_text(OPENAI, MOST) else { return false };
    let read = serde_saphyr::from_str::<Written>(&text).ok();
    read.and_then(|written| written.policy?.allow_implicit_invocation) == Some(false)
}
