//! Scripts of loaded skills: what cannot run is rejected first, then approval is requested, and the script runs
//! sandboxed. Files it produces become artifacts.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Local;
use super::skill_drift::open_loaded;
use super::tools::{HostGrants, to_tool_error};
use crate::Error;
use crate::local::runs::handed_over;
use skills_runs::{Artifact, Artifacts};
use skills_sandbox::{InputFile, Outcome, SandboxError, Spec};
use skills_session::{RunScriptArguments, Session, ToolError, ToolFailure, arguments};

fn refused(error: &SandboxError) -> ToolError {
    let code = match error.code() {
        "path_escape" => ToolFailure::PathEscape,
        "not_found" => ToolFailure::NotFound,
        "invalid_request" => ToolFailure::InvalidRequest,
        // A file that is not a program is an error of the call; a missing interpreter is one of the machine.
        _ if matches!(error, SandboxError::NoInterpreterKnown { .. }) => ToolFailure::InvalidRequest,
        "safety_denied" => ToolFailure::SafetyDenied,
        _ => ToolFailure::RuntimeError,
    };
    ToolError::new(code, error.to_string())
}

impl Local {
    pub(super) async fn running(
        &self,
        tool: &str,
        given: &Value,
        session: &Session,
        leave: HostGrants,
    ) -> Result<Value, ToolError> {
        let asked: RunScriptArguments = arguments(tool, given)?;
        let named = asked.skill.as_deref().map(|name| self.called(session, name));
        let skill = session.loaded(named.as_deref())?;
        if let Ok(now) = self.resolve(&skill.location.to_string_lossy()) {
            self.runs.approval(&now).map_err(to_tool_error)?;
        }
        let handed: Vec<String> = leave.files.keys().cloned().collect();
        let files = handed_over(&leave.files, &self.config.cwd).map_err(to_tool_error)?;
        let bundle = open_loaded(skill, &self.registry.snapshot())?;
        let spec = Spec {
            follow_links: false,
            args: asked.args,
            env: asked.env,
            workdir: asked.workdir.map(PathBuf::from).unwrap_or_default(),
            files: files
                .into_iter()
                .map(|(name, from)| InputFile { from: from.into(), to: name.into() })
                .collect(),
            limits: self.runs.script_limits(),
            ..Spec::new(bundle.path(), PathBuf::from(&asked.path))
        };
        let sandbox = self.runs.isolating();
        // No approval is requested for what cannot run anyway.
        let (spec, sandbox) =
            super::super::run_blocking(move || Ok((sandbox.check(&spec).map(|()| spec), sandbox)))
                .await
                .map_err(to_tool_error)?;
        let spec = spec.map_err(|error| refused(&error))?;
        if !leave.approved {
            return Err(ToolError::new(
                ToolFailure::ConfirmationRequired,
                question(&skill.name, &asked.path, &spec.args, &handed, &sandbox.report().summary()),
            ));
        }
        // Recorded only now: a script that was rejected was never allowed by a person.
        self.audit_script(&session.id.0, &skill.name, given).await;
        let outcome = sandbox.run(spec, CancellationToken::new()).await.map_err(|error| refused(&error))?;
        if let Some(exceeded) = &outcome.exceeded {
            let message = format!("{} reached {exceeded}", asked.path);
            return Err(ToolError::new(ToolFailure::RuntimeError, message));
        }
        let mut answer = json!({
            "skill": skill.name,
            "path": asked.path,
            "exit_code": outcome.end.exit_code(),
            "stdout": outcome.stdout.text(),
            "stderr": outcome.stderr.text(),
            "timed_out": outcome.timed_out,
            "duration_ms": u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            "isolation": outcome.report.summary(),
        });
        if !handed.is_empty() {
            answer["handed_over"] = json!(handed);
        }
        if outcome.stdout.truncated() || outcome.stderr.truncated() {
            answer["truncated"] =
                json!({"stdout_bytes": outcome.stdout.total, "stderr_bytes": outcome.stderr.total});
        }
        if !outcome.produced.is_empty() {
            let all = outcome.produced.len();
            let cut = outcome.produced_truncated;
            let artifacts = self.runs.kept_files().map_err(to_tool_error)?;
            let kept = tokio::task::spawn_blocking(move || keep(&artifacts, &outcome)).await.map_err(
                |error| ToolError::new(ToolFailure::RuntimeError, Error::broken_off(&error).message),
            )??;
            answer["files"] = kept.iter().map(file).collect();
            if cut {
                answer["files_note"] =
                    json!(format!("more than {all} files were written; the rest is discarded"));
            }
        }
        Ok(answer)
    }
}

/// Returns the question for a person.
fn question(skill: &str, path: &str, args: &[String], handed: &[String], isolation: &str) -> String {
    let with = |what: &str, list: &[String]| {
        if list.is_empty() { String::new() } else { format!(", {what} {}", list.join(" ")) }
    };
    format!(
        "confirmation required: {path} of {skill}{}{}; isolation: {isolation}",
        with("arguments", args),
        with("files", handed)
    )
}

fn file(artifact: &Artifact) -> Value {
    json!({
        "path": artifact.name, "bytes": artifact.bytes, "media_type": artifact.media_type,
        "artifact": format!("artifact:{}", artifact.digest),
    })
}

fn keep(artifacts: &Arc<Artifacts>, outcome: &Outcome) -> Result<Vec<Artifact>, ToolError> {
    let failed = |name: &str, why: String| {
        ToolError::new(ToolFailure::RuntimeError, format!("cannot keep file {name}: {why}"))
    };
    let mut all = Vec::new();
    for produced in &outcome.produced {
        let name = produced.path.to_string_lossy();
        let mut from = outcome.open(produced).map_err(|error| failed(&name, error.to_string()))?;
        all.push(artifacts.keep(&name, &mut from).map_err(|error| failed(&name, error.to_string()))?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_told_what_would_run_on_what() {
        let list = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let asked = question("csv", "scripts/a.py", &list(&["--top", "3"]), &list(&["o.csv"]), "sandbox");
        assert_eq!(
            asked,
            "confirmation required: scripts/a.py of csv, arguments --top 3, files o.csv; isolation: sandbox"
        );
        assert!(!question("csv", "scripts/a.py", &[], &[], "sandbox").contains("arguments"));
    }
}
