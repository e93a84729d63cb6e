//! Commands and environment variables of this machine.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Mutex;

use skills_base::sync::MutexExt as _;
use skills_skill::Skill;
use skills_skill::lint::{Reference, ReferenceKind};

/// The search path of commands, and a cache of the commands found.
#[derive(Debug, Default)]
pub struct Machine {
    folders: Vec<PathBuf>,
    found: Mutex<HashSet<String>>,
}

impl Machine {
    /// Uses the search path of this process.
    pub fn of_process() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self { folders: std::env::split_paths(&path).collect(), found: Mutex::default() }
    }

    /// Returns whether what a skill mentions exists here, or the skill states that it requires it.
    pub fn has(&self, reference: &Reference, skill: &Skill) -> bool {
        let name = reference.name.as_str();
        let is_named = skill.properties.compatibility.as_deref().is_some_and(|text| {
            text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_')).any(|word| word == name)
        });
        is_named
            || match reference.kind {
                ReferenceKind::Variable => std::env::var_os(name).is_some(),
                ReferenceKind::Command => self.has_command(name),
                ReferenceKind::Skill | ReferenceKind::Tool | ReferenceKind::File => true,
            }
    }

    fn has_command(&self, name: &str) -> bool {
        let mut found = self.found.locked();
        if found.contains(name) {
            return true;
        }
        let is_there = |folder: &PathBuf| {
            folder.join(name).is_file()
                || (cfg!(windows) && folder.join(name).with_extension("exe").is_file())
        };
        let here = self.folders.iter().any(is_there);
        if here {
            found.insert(name.to_owned());
        }
        here
    }
}
