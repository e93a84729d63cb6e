//! A place with bundles that run, a store of its own, and the core over both.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use skills_api::{
    AttachRequest, Attached, CommandResult, CoreParts, Error, ExecutionOptions, LaunchRequest, Launched,
    Local, RunClient as _, RunCommand,
};
use skills_config::{Config, Env};
use skills_model::{Gate, RunState, Verdict};
use skills_sandbox::{Sandbox, Setup};
use skills_store::RunRecord;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A folder with the bundles of `tests/fixtures/runs`, trusted by the settings.
pub struct TestHome {
    folder: TempDir,
    pub config: Config,
}

impl TestHome {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs");
        copy(&fixtures, &folder.path().join("skills"));
        std::fs::create_dir_all(folder.path().join("work")).unwrap();
        let config = Self::config_in(folder.path());
        Self { folder, config }
    }

    /// The settings of a place, which another process can open too.
    pub fn config_in(folder: &Path) -> Config {
        let at = |path: &str| folder.join(path);
        let mut config = Config::defaults(&at("work"), &Env::at(at("home")));
        config.argument_roots = vec![at("skills")];
        config.trust = vec![at("skills")];
        config.watch = false;
        config
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The core, as a command opens it.
    pub async fn open(&self) -> Arc<Local> {
        self.open_with(CoreParts::Catalog).await
    }

    /// The core with what this needs of it ready.
    pub async fn open_with(&self, needs: CoreParts) -> Arc<Local> {
        let local = Local::open_once(self.config.clone(), needs).await.unwrap();
        Arc::new(local.with_sandbox(sandbox()))
    }
}

/// This test's program is not the sandbox helper: the command is.
pub fn sandbox() -> Sandbox {
    static FOUND: OnceLock<Sandbox> = OnceLock::new();
    let make = || {
        let helper = env!("CARGO_BIN_EXE_skills").into();
        Sandbox::with(Setup { helper, bubblewrap: None, ..Setup::of_this_program() })
    };
    FOUND.get_or_init(make).clone()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

pub fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

pub fn request(skill: &str, inputs: Value) -> LaunchRequest {
    LaunchRequest {
        skill: skill.to_owned(),
        inputs: object(inputs),
        started_by: Some("ana".to_owned()),
        ..LaunchRequest::default()
    }
}

pub async fn launch(core: &Local, skill: &str, inputs: Value) -> Result<Launched, Error> {
    core.launch(request(skill, inputs)).await
}

/// Launches and executes a run until it ends or waits.
pub async fn run(core: &Local, skill: &str, inputs: Value) -> RunRecord {
    let launched = launch(core, skill, inputs).await.unwrap();
    assert_eq!(launched.run.state, RunState::Pending);
    wait_for_completion(core, &launched.run.id.0).await
}

pub async fn wait_for_completion(core: &Local, run: &str) -> RunRecord {
    core.wait_for_completion(run, CancellationToken::new()).await.unwrap()
}

/// A decision about what a run waits for, or, where it waits no more, about what was decided last.
pub fn decide(run: &RunRecord, verdict: Verdict, approver: &str) -> RunCommand {
    let (step, inputs_digest) = match (&run.gate, &run.decided) {
        (Some(Gate::Human { step, inputs_digest, .. }), _) => {
            (Some(step.clone()), Some(inputs_digest.clone()))
        }
        (_, Some(last)) => (Some(last.step.clone()), Some(last.inputs_digest.clone())),
        _ => (None, None),
    };
    RunCommand::Decide {
        verdict,
        step,
        inputs_digest,
        approver: Some(approver.to_owned()),
        notes: Some("as agreed".to_owned()),
        choice: None,
        result: None,
    }
}

pub async fn send_command(
    core: &Local,
    run: &RunRecord,
    command: RunCommand,
) -> Result<CommandResult, Error> {
    core.send_command(&run.id.0, command).await
}

pub fn resume() -> RunCommand {
    RunCommand::Resume { checkpoint: None, inputs: None, despite_change: false, by: None, since_ms: None }
}

pub async fn kinds(core: &Local, run: &RunRecord) -> Vec<String> {
    let events = core.run_events(Some(&run.id.0), 0, 1000, 0).await.unwrap();
    events.into_iter().map(|event| event.event.kind.to_string()).collect()
}

pub fn attachment(skill: &str, target_type: &str, target_ref: &str, inputs: Value) -> AttachRequest {
    AttachRequest {
        skill: skill.to_owned(),
        target_type: target_type.to_owned(),
        target_ref: target_ref.to_owned(),
        inputs: object(inputs),
        options: ExecutionOptions { wait: true, ..ExecutionOptions::default() },
        started_by: Some("ana".to_owned()),
        sessions: skills_api::SessionAccess::default(),
        local_files: None,
    }
}

pub async fn attach(
    core: &Local,
    target_type: &str,
    target_ref: &str,
    inputs: Value,
) -> Result<Attached, Error> {
    core.attach(attachment("watch", target_type, target_ref, inputs)).await
}
