//! Targets to which a skill is attached: resolves a reference of a kind to its content.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::runtime::{RunRuntime, RunStore};
use super::{find, tasks, transcripts};
use crate::local_files::{FILE_FORMS, STORED_FORMS};
use crate::operations::remove_details;
use crate::{Code, Error, LocalFiles, SessionAccess, content, names};
use skills_base::number::byte_size;
use skills_registry::{Registry, RootState};
use skills_skill::AttachTarget;
use skills_store::{RunRecord, StepStatus};

/// Minimum number of characters of an abbreviated artifact digest.
pub(super) const MIN_DIGEST_CHARS: usize = 6;

/// Maximum size of the results of steps in the summary of a run, in bytes of JSON.
const MAX_SUMMARY_BYTES: u64 = 8 << 20;

/// Maximum number of steps that an error names.
const MAX_NAMED: usize = 20;

/// A target that exists.
pub(super) struct ResolvedTarget {
    /// Its description.
    pub label: String,
    /// The content passed to the skill.
    pub content: Value,
    /// The run that it belongs to, which a sidecar may control.
    pub run: Option<RunRecord>,
}

/// A target, or `target_not_found`, or the reason why its content cannot be passed on.
type TargetLookup = Result<ResolvedTarget, Error>;

fn missing(message: impl Into<String>) -> Error {
    Error::new(Code::TargetNotFound, message)
}

/// The targets to which a skill can be attached.
#[derive(Clone)]
pub(in crate::local) struct Targets {
    pub(super) registry: Arc<Registry>,
    pub(super) store: Arc<RunStore>,
}

impl Targets {
    /// Resolves a reference to a target of a kind.
    ///
    /// # Errors
    /// Returns `target_not_found`, with what was searched and where, or `payload_too_large`.
    pub(super) async fn target(
        &self,
        runtime: &RunRuntime,
        kind: AttachTarget,
        reference: &str,
        sessions: &SessionAccess,
        local_files: Option<&LocalFiles>,
    ) -> TargetLookup {
        let reference = reference.trim();
        if reference.is_empty() {
            return Err(missing(format!("a reference is required; {}", forms(kind, local_files))));
        }
        match kind {
            AttachTarget::Run => self.whole_run(runtime, reference).await,
            AttachTarget::Output => self.output(runtime, reference).await,
            AttachTarget::Artifact => self.artifact(runtime, reference, sessions, local_files).await,
            AttachTarget::Task => self.task(runtime, reference).await,
            AttachTarget::Transcript => transcripts::found(runtime, sessions, reference).await,
        }
    }

    async fn whole_run(&self, runtime: &RunRuntime, reference: &str) -> TargetLookup {
        let run = named(runtime, reference, AttachTarget::Run).await?;
        let content = summary(runtime, &run).await?;
        Ok(ResolvedTarget {
            label: format!("run {} of {}, {}", run.id, run.skill_id, run.state),
            content,
            run: Some(run),
        })
    }

    async fn output(&self, runtime: &RunRuntime, reference: &str) -> TargetLookup {
        let (name, step) = match reference.split_once('/') {
            Some((name, step)) => (name, Some(step)),
            None => (reference, None),
        };
        let run = named(runtime, name, AttachTarget::Output).await?;
        let Some(step) = step else {
            let outputs = run.outputs.clone().filter(|outputs| !outputs.is_null());
            let content = outputs.ok_or_else(|| {
                missing(format!(
                    "run {} has no outputs yet: {}; for the output of a step, use RUN/STEP",
                    run.id,
                    run.state.clause()
                ))
            })?;
            return Ok(ResolvedTarget {
                label: format!("outputs of run {}", run.id),
                content,
                run: Some(run),
            });
        };
        let Some(step_record) = runtime.store.step(&run.id, step).await? else {
            let steps = runtime.store.steps(&run.id, 0).await?;
            let available: Vec<&str> =
                steps.iter().map(|record| record.step.as_str()).take(MAX_NAMED).collect();
            let available =
                if available.is_empty() { "none so far".to_owned() } else { available.join(", ") };
            let more = if steps.len() > MAX_NAMED { ", …" } else { "" };
            return Err(missing(format!(
                "run {} has no output of step {step}; available: {available}{more}",
                run.id
            )));
        };
        if step_record.result.is_null() {
            return Err(missing(format!(
                "the output of step {step} of run {} was not recorded (audit mode {})",
                run.id, run.options.audit_mode
            )));
        }
        let label = format!("output of run {}, step {step}", run.id);
        let mut content = step_record.result;
        if step_record.status == StepStatus::Failed {
            remove_details(&mut content);
        }
        Ok(ResolvedTarget { label, content, run: Some(run) })
    }

    async fn artifact(
        &self,
        runtime: &RunRuntime,
        reference: &str,
        sessions: &SessionAccess,
        local_files: Option<&LocalFiles>,
    ) -> TargetLookup {
        let (targets, artifacts) = (self.clone(), Arc::clone(&runtime.artifacts));
        let (reference, local_files) = (reference.to_owned(), local_files.cloned());
        let sessions = sessions.clone();
        crate::work::run_blocking(move || {
            if let Some(file) = reference.strip_prefix("skill:") {
                return targets.skill_file(file);
            }
            let Some(digest) = reference.strip_prefix("artifact:") else {
                return targets.local_file(&reference, local_files.as_ref());
            };
            let digest = digest.to_lowercase();
            if digest.len() < MIN_DIGEST_CHARS || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(missing(format!(
                    "`{digest}` is not a digest prefix: expected at least {MIN_DIGEST_CHARS} hexadecimal digits"
                )));
            }
            let mut stored = artifacts.available(|owner| sessions.admits(owner)).map_err(|e| {
                Error::new(Code::InternalError, format!("cannot read the artifact folder: {e}"))
            })?;
            stored.retain(|artifact| artifact.digest.starts_with(&digest));
            let [artifact] = stored.as_slice() else {
                let how = match stored.len() {
                    0 => format!("no artifact digest begins with `{digest}`"),
                    n => format!("{n} artifact digests begin with {digest}; use more digits"),
                };
                return Err(missing(how));
            };
            let path = artifacts.path(&artifact.digest).ok_or_else(|| {
                missing(format!("the content of artifact {} no longer exists", artifact.digest))
            })?;
            let label =
                format!("artifact {}, {}, {}", artifact.name, artifact.media_type, byte_size(artifact.bytes));
            Ok(ResolvedTarget { label, content: content::of_artifact(&path, artifact)?, run: None })
        })
        .await
    }

    /// Returns a file of a skill: `ID/RELATIVE/PATH`, opened beneath the skill's folder.
    fn skill_file(&self, reference: &str) -> TargetLookup {
        let Some((id, path)) = reference.split_once('/') else {
            return Err(missing(format!(
                "skill:{reference} names no file; a skill's file is skill:ID/RELATIVE/PATH"
            )));
        };
        let catalog = self.registry.snapshot();
        let skill = names::resolve(&catalog, id, None)
            .map_err(|error| Error { code: Code::TargetNotFound, ..error })?;
        let bundle = skill
            .open()
            .map_err(|error| missing(format!("cannot open the folder of skill {id}: {error}")))?;
        let bytes = content::read_inside(&bundle, path, &format!("skill:{reference}"))?;
        let content = content::of_bytes(path, &bytes);
        let label = format!("file {path} of the skill {}, {}", skill.id, byte_size(bytes.len() as u64));
        Ok(ResolvedTarget { label, content, run: None })
    }

    /// Returns a file in a root or in the working directory, if the caller may name one.
    fn local_file(&self, reference: &str, local_files: Option<&LocalFiles>) -> TargetLookup {
        let Some(local_files) = local_files else {
            return Err(missing(format!(
                "{reference:?} is not an artifact reference, and files of the service's machine are not \
                    accessible; {}",
                forms(AttachTarget::Artifact, None)
            )));
        };
        let file = local_files.read(reference, &self.root_folders())?;
        let content = content::of_bytes(&file.name, &file.content);
        let label = format!("file {}, {}", file.path.display(), byte_size(file.content.len() as u64));
        Ok(ResolvedTarget { label, content, run: None })
    }

    fn root_folders(&self) -> Vec<PathBuf> {
        let catalog = self.registry.snapshot();
        let roots = catalog.roots.iter().filter(|root| root.state == RootState::Present);
        roots.map(|root| root.path.clone()).collect()
    }

    async fn task(&self, runtime: &RunRuntime, reference: &str) -> TargetLookup {
        let id = reference.strip_prefix("task:").unwrap_or(reference);
        let targets = self.clone();
        let (items, unreadable) = crate::work::run_blocking(move || Ok(targets.work_items())).await?;
        if let Some((root, task)) = items.iter().find(|(_, task)| task.id == id) {
            if !task.is_open() {
                return Err(missing(format!(
                    "task {id} is {}: only open work items can be targets",
                    task.status
                )));
            }
            let label = format!("task {id} in {root}: {}", task.title);
            return Ok(ResolvedTarget { label, content: task.content.clone(), run: None });
        }
        match find::run(&*runtime.store, id).await {
            Ok(run) if !run.state.is_terminal() => {
                let content = summary(runtime, &run).await?;
                let label = format!("run {} of {}, {}", run.id, run.skill_id, run.state);
                Ok(ResolvedTarget { label, content, run: Some(run) })
            }
            Ok(run) => Err(missing(format!("run {} is {} and no longer open", run.id, run.state))),
            Err(error) if error.code == Code::InvalidRequest && id.len() >= 3 => {
                Err(Error { code: Code::TargetNotFound, ..error })
            }
            Err(_) => {
                let why = unreadable.map(|why| format!(" ({why})")).unwrap_or_default();
                Err(missing(format!(
                    "task `{id}` not found, neither in a {} of the roots nor as a run{why}",
                    tasks::FILE
                )))
            }
        }
    }

    /// Returns all work items with the labels of their roots, and why a file of them cannot be read.
    pub(super) fn work_items(&self) -> (Vec<(String, tasks::Task)>, Option<String>) {
        tasks::of_roots(&self.registry.snapshot().roots)
    }
}

/// Describes the format of references of a kind.
pub(super) fn forms(kind: AttachTarget, local_files: Option<&LocalFiles>) -> &'static str {
    match kind {
        AttachTarget::Run => "expected the id of a run",
        AttachTarget::Output => "expected RUN/STEP, or RUN for all outputs of a run",
        AttachTarget::Artifact if local_files.is_some() => FILE_FORMS,
        AttachTarget::Artifact => STORED_FORMS,
        AttachTarget::Task => "expected task:ID",
        AttachTarget::Transcript => "expected session:ID",
    }
}

async fn named(runtime: &RunRuntime, name: &str, kind: AttachTarget) -> Result<RunRecord, Error> {
    find::run(&*runtime.store, name).await.map_err(|error| {
        let message = format!("{}; {}", error.message, forms(kind, None));
        Error { code: Code::TargetNotFound, message, ..error }
    })
}

/// Returns the summary of a run for a sidecar: its state, inputs, and the results of its steps, in the form for everyone,
/// because the sidecar's service and the callers who may read its run are not those of the run.
async fn summary(runtime: &RunRuntime, run: &RunRecord) -> Result<Value, Error> {
    let steps: Vec<Value> = runtime
        .store
        .steps(&run.id, MAX_SUMMARY_BYTES)
        .await?
        .into_iter()
        .map(|step| {
            json!({
                "step": step.step, "status": step.status, "result": step.result, "attempts": step.attempts,
                "binding": step.binding, "started_ms": step.started_ms, "ended_ms": step.ended_ms,
                "omitted_bytes": step.omitted_bytes,
            })
        })
        .collect();
    let mut summary = json!({
        "id": run.id, "skill_id": run.skill_id, "state": run.state, "inputs": run.inputs, "outputs": run.outputs,
        "error": run.error, "progress": run.progress, "step": run.step, "gate": run.gate, "trace_id": run.trace_id,
        "started_by": run.started_by, "created_ms": run.created_ms, "since_ms": run.since_ms, "steps": steps,
    });
    remove_details(&mut summary);
    Ok(summary)
}
