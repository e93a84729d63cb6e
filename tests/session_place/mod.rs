//! A place with skills of its own, and the core over it.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;
use skills_api::{CoreParts, Local, SessionClient as _, ToolAnswer};
use skills_config::{Config, Env};
use skills_sandbox::{Sandbox, Setup};
use skills_session::ToolFailure;

/// This test's program is not the sandbox helper: the command is.
fn sandbox() -> Sandbox {
    static FOUND: OnceLock<Sandbox> = OnceLock::new();
    let make = || {
        let helper = env!("CARGO_BIN_EXE_skills").into();
        Sandbox::with(Setup { helper, bubblewrap: None, ..Setup::of_this_program() })
    };
    FOUND.get_or_init(make).clone()
}

pub struct TestHome {
    pub dir: Folder,
}

/// A folder that is deleted with the test, or one of another process.
pub enum Folder {
    Own(tempfile::TempDir),
    Others(PathBuf),
}

impl Folder {
    pub fn path(&self) -> &Path {
        match self {
            Self::Own(dir) => dir.path(),
            Self::Others(path) => path,
        }
    }
}

impl TestHome {
    pub fn new() -> Self {
        let place = Self { dir: Folder::Own(tempfile::tempdir().unwrap()) };
        fs::create_dir_all(place.home()).unwrap();
        for id in ["alpha", "beta", "gamma"] {
            place.skill(id, &format!("# {id}\n\nUse {id} well.\n"));
        }
        place
    }

    /// The place of another process.
    pub fn at(path: PathBuf) -> Self {
        Self { dir: Folder::Others(path) }
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("skills")
    }

    pub fn skill(&self, id: &str, body: &str) {
        self.file(
            &format!("{id}/SKILL.md"),
            &format!("---\nname: {id}\ndescription: Does {id} things. Use for {id}.\n---\n{body}"),
        );
    }

    pub fn file(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub async fn core(&self) -> Local {
        let mut config = Config::defaults(&self.home(), &Env::at(self.home()));
        config.argument_roots = vec![self.root()];
        Local::open_once(config, CoreParts::Catalog).await.unwrap().with_sandbox(sandbox())
    }
}

pub async fn call(core: &Local, session: &str, tool: &str, arguments: Value) -> ToolAnswer {
    core.call_tool(session, tool, arguments, None).await.unwrap()
}

/// The digest of what a script would run; none if this machine has no isolation.
pub async fn reviewed(
    core: &Local,
    session: &str,
    arguments: &Value,
    files: &BTreeMap<String, String>,
) -> Option<String> {
    let unconfirmed = core.run_script(session, arguments.clone(), files.clone(), None).await.unwrap();
    match unconfirmed.result.unwrap_err() {
        error if error.code == ToolFailure::SafetyDenied => {
            eprintln!("SKIPPED: this machine isolates nothing, the script was not run");
            None
        }
        error => Some(error.script.expect("what would run").inputs_digest),
    }
}

pub async fn failure(core: &Local, session: &str, tool: &str, arguments: Value) -> ToolFailure {
    call(core, session, tool, arguments).await.result.unwrap_err().code
}

pub fn names(answer: &ToolAnswer) -> Vec<String> {
    let active = answer.result.as_ref().unwrap()["active"].as_array().unwrap().clone();
    active.iter().map(|skill| skill["name"].as_str().unwrap().to_owned()).collect()
}
