//! Existing references for completion: runs, outputs of their steps, artifacts and files, open tasks, transcripts of
//! sessions.

use std::sync::Arc;

use super::{RunRuntime, Targets, transcripts};
use crate::{Error, LocalFiles, SessionAccess, TargetChoice};
use skills_base::number::byte_size;
use skills_skill::AttachTarget;
use skills_store::{RunFilter, RunRecord, StepStatus};

/// Maximum number of runs searched for completion.
const RUNS: usize = 200;
/// Maximum number of runs whose steps are offered.
const OUTPUTS_OF: usize = 30;

impl Targets {
    /// Returns references of a kind that contain `text`, newest first.
    pub(super) async fn target_choices(
        &self,
        kind: AttachTarget,
        text: &str,
        limit: usize,
        sessions: &SessionAccess,
        local_files: Option<&LocalFiles>,
    ) -> Result<Vec<TargetChoice>, Error> {
        let runtime = self.store.runtime().await?;
        let all = match kind {
            AttachTarget::Run => runs(&runtime).await?.iter().map(of_run).collect(),
            AttachTarget::Output => outputs(&runtime).await?,
            AttachTarget::Artifact => self.artifacts(&runtime, sessions, local_files).await?,
            AttachTarget::Task => self.tasks(&runtime).await?,
            AttachTarget::Transcript => transcripts::choices(&runtime, sessions).await?,
        };
        let text = text.to_lowercase();
        let matches = |choice: &TargetChoice| {
            choice.target_ref.to_lowercase().contains(&text) || choice.label.to_lowercase().contains(&text)
        };
        Ok(all.into_iter().filter(matches).take(limit).collect())
    }

    async fn artifacts(
        &self,
        runtime: &RunRuntime,
        sessions: &SessionAccess,
        local_files: Option<&LocalFiles>,
    ) -> Result<Vec<TargetChoice>, Error> {
        let (artifacts, local_files) = (Arc::clone(&runtime.artifacts), local_files.cloned());
        let sessions = sessions.clone();
        crate::work::run_blocking(move || {
            let mut choices: Vec<TargetChoice> = match artifacts.available(|owner| sessions.admits(owner)) {
                Ok(stored) => stored
                    .into_iter()
                    .map(|artifact| TargetChoice {
                        label: format!(
                            "{}, {}, {}",
                            artifact.name,
                            artifact.media_type,
                            byte_size(artifact.bytes)
                        ),
                        target_ref: format!("artifact:{}", artifact.digest),
                        at_ms: None,
                    })
                    .collect(),
                Err(error) => {
                    tracing::warn!("the folder of artifacts cannot be read: {error}");
                    Vec::new()
                }
            };
            choices.extend(local_files.iter().flat_map(LocalFiles::choices));
            Ok(choices)
        })
        .await
    }

    async fn tasks(&self, runtime: &RunRuntime) -> Result<Vec<TargetChoice>, Error> {
        let targets = self.clone();
        let (items, unreadable) = crate::work::run_blocking(move || Ok(targets.work_items())).await?;
        if let Some(why) = unreadable {
            tracing::warn!("{why}");
        }
        let open = items.into_iter().filter(|(_, task)| task.is_open()).map(|(_, task)| TargetChoice {
            target_ref: format!("task:{}", task.id),
            label: if task.title.is_empty() { "a task".to_owned() } else { task.title },
            at_ms: None,
        });
        let left = runs(runtime).await?;
        let left = left.iter().filter(|run| !run.state.is_terminal()).map(|run| {
            let choice = of_run(run);
            TargetChoice { target_ref: format!("task:{}", choice.target_ref), ..choice }
        });
        Ok(open.chain(left).collect())
    }
}

/// Returns the newest runs in any state.
async fn runs(runtime: &RunRuntime) -> Result<Vec<RunRecord>, Error> {
    let filter = RunFilter { limit: RUNS, ..RunFilter::default() };
    let mut runs = runtime.store.runs(filter).await?.runs;
    runs.sort_by(|a, b| b.created_ms.cmp(&a.created_ms).then_with(|| b.id.cmp(&a.id)));
    Ok(runs)
}

fn of_run(run: &RunRecord) -> TargetChoice {
    TargetChoice {
        target_ref: run.id.0.clone(),
        label: format!("{}, {}", run.skill_id, run.state),
        at_ms: Some(run.created_ms),
    }
}

async fn outputs(runtime: &RunRuntime) -> Result<Vec<TargetChoice>, Error> {
    let mut choices = Vec::new();
    for run in runs(runtime).await?.iter().filter(|run| run.progress.0 > 0).take(OUTPUTS_OF) {
        if run.outputs.as_ref().is_some_and(|outputs| !outputs.is_null()) {
            choices.push(TargetChoice { label: format!("{}, its outputs", run.skill_id), ..of_run(run) });
        }
        for step in runtime.store.steps(&run.id, 0).await?.iter().rev() {
            if step.status == StepStatus::Completed
                && (!step.result.is_null() || step.omitted_bytes.is_some())
            {
                choices.push(TargetChoice {
                    target_ref: format!("{}/{}", run.id, step.step),
                    label: format!("{}, output of {}", run.skill_id, step.step),
                    at_ms: Some(step.ended_ms),
                });
            }
        }
    }
    choices.sort_by_key(|choice| std::cmp::Reverse(choice.at_ms));
    Ok(choices)
}
