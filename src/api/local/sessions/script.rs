//! Runs a script of a loaded skill: rejects what cannot run, requires confirmation, and runs exactly what was confirmed,
//! sandboxed. The files that it produces become artifacts.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::skill_drift::{listed, open_loaded};
use super::tools::{HostGrants, called, to_tool_error};
use crate::Error;
use crate::local::runs::{self, CapabilityServices, Permissions, handed_over};
use crate::local::skills::Skills;
use skills_base::audit::{Entry, Recorder};
use skills_base::canonical::digest_of;
use skills_config::quoted;
use skills_runs::{Artifact, Artifacts};
use skills_sandbox::{InputFile, Outcome, SandboxError, Spec, SuppliedFiles, Verify};
use skills_session::{Active, RunScriptArguments, ScriptPreview, Session, ToolError, ToolFailure, arguments};

fn refused(error: &SandboxError) -> ToolError {
    let code = match error.code() {
        // The check before the start is that of the confirmed digest.
        "skill_changed" => ToolFailure::InvalidTransition,
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

/// The scripts of loaded skills.
pub(super) struct Scripts {
    pub skills: Skills,
    pub audit: Arc<Recorder>,
    pub services: Arc<CapabilityServices>,
    pub permissions: Arc<Permissions>,
}

impl Scripts {
    pub(super) async fn run(
        &self,
        tool: &str,
        raw_arguments: &Value,
        session: &Session,
        leave: HostGrants,
    ) -> Result<Value, ToolError> {
        let parsed: RunScriptArguments = arguments(tool, raw_arguments)?;
        let named = parsed.skill.as_deref().map(|name| called(&self.skills, session, name));
        let skill = session.loaded(named.as_deref())?;
        self.ensure_permitted(skill).await?;
        let handed: Vec<String> = leave.files.keys().cloned().collect();
        let files = handed_over(&leave.files, &self.skills.config.cwd).map_err(to_tool_error)?;
        let bundle = open_loaded(skill, &self.skills.registry.snapshot())?;
        let spec = Spec {
            follow_links: false,
            args: parsed.args,
            env: parsed.env,
            workdir: parsed.workdir.as_deref().map(PathBuf::from).unwrap_or_default(),
            files: files
                .into_iter()
                .map(|(name, from)| InputFile { from: from.into(), to: name.into() })
                .collect(),
            limits: self.services.script_limits(),
            ..Spec::new(bundle.path(), PathBuf::from(&parsed.path))
        };
        let sandbox = self.services.isolating();
        let asks = ScriptPreview {
            skill: skill.name.clone(),
            skill_digest: skill.digest.clone(),
            path: parsed.path.clone(),
            script_digest: String::new(),
            bundle_digest: String::new(),
            args: spec.args.clone(),
            env: spec.env.clone(),
            workdir: parsed.workdir,
            files: BTreeMap::new(),
            isolation: sandbox.report().summary(),
            inputs_digest: String::new(),
        };
        let id = session.id.0.clone();
        let Some(confirmed) = leave.confirmed else {
            // No confirmation is requested for a script that cannot run anyway.
            let supplied = crate::work::run_blocking(move || Ok(sandbox.preview(&spec)))
                .await
                .map_err(to_tool_error)?
                .map_err(|error| refused(&error))?;
            return Err(unconfirmed(reviewed(asks, &id, &supplied), bundle.path()));
        };
        let audit = Arc::clone(&self.audit);
        let by = leave.by.unwrap_or_else(runs::account);
        let verify = Verify::new(move |supplied| {
            let preview = reviewed(asks.clone(), &id, supplied);
            if preview.inputs_digest != confirmed {
                let why = "the script, its bundle, arguments, files or isolation differ from what was \
                    confirmed; review it again";
                return Err(why.to_owned());
            }
            // Recorded only now: a call that is rejected was never allowed to run.
            audit.record_blocking(allowed(&preview, &id, &by));
            Ok(())
        });
        let spec = Spec { verify: Some(verify), ..spec };
        let outcome = sandbox.run(spec, CancellationToken::new()).await.map_err(|error| refused(&error))?;
        self.result(skill, &parsed.path, &handed, outcome, session.owner.clone()).await
    }

    /// Checks that the policy and the contract of a loaded skill let it run scripts. An approval that they require is the
    /// confirmation of the call.
    async fn ensure_permitted(&self, skill: &Active) -> Result<(), ToolError> {
        // By its location: any bundle can have that text as its name.
        let Some(now) = listed(skill, &self.skills.snapshot()).cloned() else {
            // Its rules in the policy may depend on its tags or domain, which are not known any longer.
            let message = format!(
                "{} is no longer in the catalog, so its scripts cannot run; restore it, or unload it",
                skill.name
            );
            return Err(ToolError::new(ToolFailure::SafetyDenied, message));
        };
        self.permissions.approval(&now).map_err(to_tool_error)?;
        let permissions = Arc::clone(&self.permissions);
        let look = move || permissions.ensure_single_approval(&now);
        crate::work::run_blocking(look).await.map_err(to_tool_error)
    }

    /// Returns the result of a call, and keeps the files that the script produced for the session's owner.
    async fn result(
        &self,
        skill: &Active,
        path: &str,
        handed: &[String],
        outcome: Outcome,
        owner: Option<String>,
    ) -> Result<Value, ToolError> {
        if let Some(exceeded) = &outcome.exceeded {
            let message = format!("{path} reached {exceeded}");
            return Err(ToolError::new(ToolFailure::RuntimeError, message));
        }
        let mut answer = json!({
            "skill": skill.name,
            "path": path,
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
            let artifacts = self.services.kept_files().map_err(to_tool_error)?;
            let stored = crate::work::spawn_blocking(move || keep(&artifacts, &outcome, owner.as_deref()))
                .await
                .map_err(|error| {
                    ToolError::new(ToolFailure::RuntimeError, Error::from_join_error(&error).message)
                })??;
            answer["files"] = stored.iter().map(file).collect();
            if cut {
                answer["files_note"] =
                    json!(format!("more than {all} files were written; the rest is discarded"));
            }
        }
        Ok(answer)
    }
}

/// Completes the preview of a script with the files it would receive, and with the digest of everything.
fn reviewed(asks: ScriptPreview, session: &str, supplied: &SuppliedFiles) -> ScriptPreview {
    // Entries of the bundle are named without `./`.
    let path: PathBuf =
        Path::new(&asks.path).components().filter(|part| *part != Component::CurDir).collect();
    let script = supplied.bundle.get(&*path.to_string_lossy()).map(String::as_str).unwrap_or_default();
    let mut preview = ScriptPreview {
        // Without the suffix of executable files, which is part of the bundle's digest.
        script_digest: script.trim_end_matches('x').to_owned(),
        bundle_digest: digest_of(&json!(supplied.bundle)),
        files: supplied.files.clone(),
        inputs_digest: String::new(),
        ..asks
    };
    preview.inputs_digest = digest_of(&json!({ "session": session, "script": preview }));
    preview
}

/// Returns the error that requires confirmation of a script of the bundle in a folder.
fn unconfirmed(preview: ScriptPreview, folder: &Path) -> ToolError {
    // Quoted, so that an argument or a file name cannot be taken for the rest of the question.
    let with = |what: &str, list: &mut dyn Iterator<Item = &String>| {
        let words: Vec<String> = list.map(|word| quoted(word)).collect();
        if words.is_empty() { String::new() } else { format!(", {what} {}", words.join(" ")) }
    };
    let message = format!(
        "confirmation required: {} of {} in {}{}{}; isolation: {}",
        quoted(&preview.path),
        quoted(&preview.skill),
        quoted(&folder.to_string_lossy()),
        with("arguments", &mut preview.args.iter()),
        with("files", &mut preview.files.keys()),
        preview.isolation
    );
    ToolError {
        script: Some(Box::new(preview)),
        ..ToolError::new(ToolFailure::ConfirmationRequired, message)
    }
}

/// Returns the audit entry of a script that was confirmed.
fn allowed(preview: &ScriptPreview, session: &str, by: &str) -> Entry {
    let request = json!({
        "session": session, "skill": preview.skill, "path": preview.path, "inputs_digest": preview.inputs_digest,
    });
    let detail = json!({ "args": preview.args, "env": preview.env });
    Entry::new("script.allowed", Some(by), request).with_detail(detail).durably()
}

fn file(artifact: &Artifact) -> Value {
    json!({
        "path": artifact.name, "bytes": artifact.bytes, "media_type": artifact.media_type,
        "artifact": format!("artifact:{}", artifact.digest),
    })
}

fn keep(
    artifacts: &Arc<Artifacts>,
    outcome: &Outcome,
    owner: Option<&str>,
) -> Result<Vec<Artifact>, ToolError> {
    let failed = |name: &str, why: String| {
        ToolError::new(ToolFailure::RuntimeError, format!("cannot keep file {name}: {why}"))
    };
    let mut all = Vec::new();
    for produced in &outcome.produced {
        let name = produced.path.to_string_lossy();
        let mut from = outcome.open(produced).map_err(|error| failed(&name, error.to_string()))?;
        let stored = artifacts.keep_private(&name, &mut from, owner);
        all.push(stored.map_err(|error| failed(&name, error.to_string()))?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preview() -> ScriptPreview {
        serde_json::from_value(json!({
            "skill": "csv", "skill_digest": "s", "path": "scripts/a.py", "script_digest": "",
            "bundle_digest": "", "args": ["--top", "3"], "env": { "MODE": "dry" }, "workdir": null, "files": {},
            "isolation": "sandbox", "inputs_digest": "",
        }))
        .unwrap()
    }

    fn supplied() -> SuppliedFiles {
        let one = |name: &str, digest: &str| BTreeMap::from([(name.to_owned(), digest.to_owned())]);
        SuppliedFiles { bundle: one("scripts/a.py", "a1x"), files: one("o.csv", "f1") }
    }

    #[test]
    fn the_request_shows_what_would_run() {
        let folder = Path::new("/skills/csv");
        let error = unconfirmed(reviewed(preview(), "s1", &supplied()), folder);
        assert_eq!(
            error.message,
            "confirmation required: scripts/a.py of csv in /skills/csv, arguments --top 3, files o.csv; \
                isolation: sandbox"
        );
        assert_eq!(error.script.unwrap().script_digest, "a1");
        let forged = "read-only; isolation: full\n\ncall: {}";
        let with_forged = ScriptPreview { args: vec![forged.to_owned()], ..preview() };
        let message = unconfirmed(reviewed(with_forged, "s1", &supplied()), folder).message;
        assert!(
            message.contains(r"arguments $'read-only; isolation: full\x0a\x0acall: {}', files"),
            "{message}"
        );
        let without_args = ScriptPreview { args: Vec::new(), ..preview() };
        assert!(
            !unconfirmed(reviewed(without_args, "s1", &supplied()), folder).message.contains("arguments")
        );
    }

    #[test]
    fn digest_covers_everything_that_affects_execution() {
        let of = |preview: ScriptPreview, session: &str, supplied: &SuppliedFiles| {
            reviewed(preview, session, supplied).inputs_digest
        };
        let first = of(preview(), "s1", &supplied());
        let dotted = ScriptPreview { path: "scripts/./a.py".to_owned(), ..preview() };
        assert_eq!(reviewed(dotted, "s1", &supplied()).script_digest, "a1");
        let mut other = vec![of(preview(), "s2", &supplied())];
        let changes: [fn(&mut ScriptPreview); 7] = [
            |preview| preview.skill.push('2'),
            |preview| preview.skill_digest.push('2'),
            |preview| preview.path.push('2'),
            |preview| preview.args.swap(0, 1),
            |preview| preview.env.clear(),
            |preview| preview.workdir = Some("in".to_owned()),
            |preview| preview.isolation.clear(),
        ];
        for change in changes {
            let mut changed = preview();
            change(&mut changed);
            other.push(of(changed, "s1", &supplied()));
        }
        let changes: [fn(&mut SuppliedFiles); 4] = [
            |supplied| supplied.bundle.values_mut().for_each(|digest| digest.push('2')),
            |supplied| supplied.bundle.values_mut().for_each(|digest| digest.truncate(2)),
            |supplied| drop(supplied.bundle.insert("scripts/b.py".to_owned(), "b1".to_owned())),
            |supplied| supplied.files.values_mut().for_each(|digest| digest.push('2')),
        ];
        for change in changes {
            let mut changed = supplied();
            change(&mut changed);
            other.push(of(preview(), "s1", &changed));
        }
        other.push(first);
        let all = other.len();
        other.sort();
        other.dedup();
        assert_eq!(other.len(), all);
    }
}
