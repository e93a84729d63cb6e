//! Scripts: JSON on stdin and stdout, in the sandbox.
//!
//! A script reads the rendered request template of its binding or, without one, `{"inputs", "target", "run"}`. It
//! prints one JSON object: all of stdout, or its last line; earlier lines then count as its log. Files that it writes
//! to its work directory become artifacts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::super::artifacts::Artifacts;
use super::super::broker::{CallObstruction, Pin, is_complete};
use super::super::call::{Artifact, CallFailure, LogLine, LogSink, ScriptExit};
use super::super::capabilities::RegisteredBinding;
use super::request::{self, kind};
use super::{BindingCall, BindingContext, BindingFailure, BindingResponse, Effect, excerpt};
use skills_base::sync::MutexExt as _;
use skills_sandbox::{
    Channel, End, InputFile, Level, Limits, Outcome, OutputListener, Report, Sandbox, SandboxError, Spec,
    Verify,
};
use skills_skill::contract::{Service, ServiceTarget};
use skills_skill::safe_text;

/// Bytes from the end of stderr that a failure includes.
const TAIL: usize = 4 << 10;

#[derive(Clone)]
pub struct ScriptLocation {
    pub bundle: PathBuf,
    pub script: PathBuf,
}

/// Locates the script of a binding: the one from the configuration, else the file of the bundle.
pub fn located(
    offered: &RegisteredBinding,
    reach: Option<&ServiceTarget>,
    described: Option<&Service>,
) -> Result<ScriptLocation, CallObstruction> {
    let (binding, root) = (&offered.binding, offered.place.root());
    match reach {
        Some(ServiceTarget::Script { bundle, script }) => {
            if bundle.join(script).is_file() {
                return Ok(ScriptLocation { bundle: bundle.clone(), script: script.clone() });
            }
            Err(CallObstruction::unconfigured(format!(
                "the script {} of service {} does not exist: correct `services.{}.script` in the \
                    configuration",
                bundle.join(script).display(),
                binding.service,
                binding.service
            )))
        }
        Some(_) => Err(CallObstruction::unconfigured(format!(
            "service {} is configured without `script`, which protocol script needs: correct `services.{}` in the configuration",
            binding.service, binding.service
        ))),
        None => {
            let named = Path::new(&binding.operation);
            let script = if named.starts_with("scripts") {
                named.to_owned()
            } else {
                Path::new("scripts").join(named)
            };
            if root.join(&script).is_file() {
                return Ok(ScriptLocation { bundle: root.to_owned(), script });
            }
            let module = described.and_then(|service| service.settings.get("module")).and_then(Value::as_str);
            let what = match module {
                Some(module) => format!(
                    "it calls `{}` of the Python module {module}, which is not part of the registry",
                    binding.operation
                ),
                None => format!("{} not found in {}", script.display(), root.display()),
            };
            Err(CallObstruction::unconfigured(format!(
                "{}: to use your own script, add `{}: {{script: …/scripts/NAME.py}}` under `services:` \
                    in the configuration",
                safe_text::line(&what),
                safe_text::line(&binding.service)
            )))
        }
    }
}

/// Checks that scripts can be sandboxed, or may run without a sandbox.
pub fn isolated(sandbox: &Sandbox, allow_unsandboxed: bool) -> Result<(), CallObstruction> {
    let report = sandbox.report();
    if allow_unsandboxed || report.level >= Level::Partial {
        return Ok(());
    }
    Err(CallObstruction::new(
        CallFailure::SafetyDenied,
        format!(
            "this machine cannot sandbox a script ({}): `skills doctor` shows what is missing; \
                --unsandboxed runs it without a sandbox",
            report.summary()
        ),
    ))
}

pub async fn execute(
    context: &BindingContext,
    job: &BindingCall<'_>,
    cancel: &CancellationToken,
) -> Result<BindingResponse, BindingFailure> {
    let (call, binding) = (job.call, &job.offered.binding);
    let reach = context.services.get(&binding.service).map(|endpoint| &endpoint.reach);
    let found = located(job.offered, reach, None)
        .map_err(|obstacle| BindingFailure::before(obstacle.code, obstacle.message))?;
    let patience = job.timeout(context.services.get(&binding.service));
    let request = if request::is_stated(&binding.request) {
        job.request()
    } else {
        json!({ "inputs": call.inputs, "target": call.target, "run": request::run(call) })
    };
    let log = Arc::new(Log::new(Arc::clone(&call.log)));
    let tap = Arc::clone(&log);
    let spec = Spec {
        env: BTreeMap::from([
            ("SKILLS_IDEMPOTENCY_KEY".to_owned(), call.idempotency_key.clone()),
            ("SKILLS_TRACE_ID".to_owned(), call.trace_id.clone()),
            ("SKILLS_STEP".to_owned(), call.step.clone()),
            ("SKILLS_OPERATION".to_owned(), binding.operation.clone()),
        ]),
        stdin: format!("{request}\n").into_bytes(),
        files: call
            .files
            .iter()
            .map(|(name, from)| InputFile { from: from.clone(), to: PathBuf::from(name) })
            .collect(),
        limits: Limits { wall: patience.wait, cpu: context.limits.cpu.max(patience.wait), ..context.limits },
        unsandboxed: call.conditions.unsandboxed && context.sandbox.report().level < Level::Partial,
        verify: Some(verify(context, job, &found)),
        output: Some(OutputListener::new(move |channel, line| tap.push(channel, line))),
        ..Spec::new(found.bundle.clone(), found.script.clone())
    };
    let outcome =
        context.sandbox.run(spec, cancel.clone()).await.map_err(|error| not_run(&error, &job.target))?;
    let answer = match check_output(&outcome, job) {
        Ok(answer) => answer,
        Err(mut failed) => {
            log.release();
            failed.stderr = tail(&outcome.stderr.bytes);
            return Err(if outcome.timed_out && failed.code == CallFailure::StepTimeout {
                BindingFailure { stderr: failed.stderr, ..job.too_late(patience) }
            } else {
                failed
            });
        }
    };
    let isolation = Some(summary(&outcome.report));
    let artifacts = store_artifacts(Arc::clone(&context.artifacts), outcome, &log).await?;
    Ok(BindingResponse { response: Value::Object(answer), isolation, artifacts })
}

/// Returns a check that lets a script start only if everything it can read is what was trusted, and, with its binding
/// and the files passed to it, what was launched or approved. Earlier changes of the bundle were already noticed; this
/// covers changes between those checks and the start, and all changes of the files.
fn verify(context: &BindingContext, job: &BindingCall<'_>, found: &ScriptLocation) -> Verify {
    let pins = job.call.pins.as_ref();
    let pin = pins.and_then(|pins| pins.get(&job.offered.binding.id)).filter(|pin| is_complete(pin)).cloned();
    let (offered, found, check) = (job.offered.clone(), found.clone(), Arc::clone(&context.check));
    let launched = job.call.file_digests.clone();
    // A script that the configuration names is trusted by that.
    let is_own = !offered.place.shipped && found.bundle == offered.place.root();
    Verify::new(move |supplied| {
        if is_own && let Err(refusal) = check(&found.bundle, &supplied.bundle) {
            return Err(CallObstruction::from(refusal).message);
        }
        if let Some(name) = changed_file(&launched, &supplied.files) {
            let name = safe_text::line(name);
            return Err(format!("the file {name} changed since the run was launched; launch the run again"));
        }
        if pin.as_ref().is_none_or(|pin| Pin::of_contents(&offered, &found, &supplied.bundle).digest == *pin)
        {
            return Ok(());
        }
        Err(format!(
            "{} changed after its last review, and the current version is not approved; resume the run \
                to review it",
            found.bundle.display()
        ))
    })
}

/// Returns the name of a supplied file whose content is not the launched one. Runs of earlier versions have no digests,
/// and are not checked.
fn changed_file<'a>(
    launched: &BTreeMap<String, String>,
    supplied: &'a BTreeMap<String, String>,
) -> Option<&'a str> {
    let is_changed = |name: &str, digest: &String| !launched.is_empty() && launched.get(name) != Some(digest);
    supplied.iter().find(|(name, digest)| is_changed(name, digest)).map(|(name, _)| name.as_str())
}

/// Converts an isolation report to the form that is recorded with a step.
fn summary(report: &Report) -> Value {
    json!({
        "level": report.level.to_string(),
        "summary": report.summary(),
        "means": report.means,
        "missing": report.missing,
    })
}

fn not_run(error: &SandboxError, target: &str) -> BindingFailure {
    let message = format!("{target}: {error}");
    let code = match error.code() {
        "invalid_request" => CallFailure::InvalidRequest,
        "safety_denied" => CallFailure::SafetyDenied,
        "skill_changed" => CallFailure::SkillChanged,
        "runtime_error" => CallFailure::RuntimeError,
        _ => CallFailure::InvalidConfiguration,
    };
    let has_run = matches!(
        error,
        SandboxError::Lost { .. } | SandboxError::FilesLost { .. } | SandboxError::ProcessesLeft { .. }
    );
    let effect = if has_run { Effect::Possible } else { Effect::None };
    BindingFailure {
        effect,
        counts: code == CallFailure::RuntimeError,
        ..BindingFailure::before(code, message)
    }
}

/// Returns the output of a finished script, or its failure.
fn check_output(outcome: &Outcome, job: &BindingCall<'_>) -> Result<Map<String, Value>, BindingFailure> {
    if outcome.canceled {
        return Err(BindingFailure::canceled());
    }
    if outcome.timed_out {
        return Err(BindingFailure::step_timeout(job.call.timeout));
    }
    if let Some(exceeded) = &outcome.exceeded {
        let failed = BindingFailure::answer(format!("{} reached {exceeded}", job.target));
        return Err(BindingFailure { reason: Some(json!(exceeded)), ..failed });
    }
    let last_line = || {
        let text = outcome.stderr.text();
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(excerpt(line.as_bytes()))
    };
    let stderr_note = || match last_line() {
        Some(line) => format!(": {line}"),
        None => ", and printed nothing to stderr".to_owned(),
    };
    match outcome.end {
        End::ExitCode(0) => {}
        End::ExitCode(code) => {
            let failed = format!("{} exited with code {code}{}", job.target, stderr_note());
            let exit = ScriptExit { code, stderr_line: last_line() };
            return Err(BindingFailure { exit: Some(exit), ..BindingFailure::answer(failed) });
        }
        End::Signal(signal) => {
            return Err(BindingFailure::answer(format!(
                "{} was killed by signal {signal}, which may indicate an exceeded memory, CPU time or \
                    file size limit{}",
                job.target,
                stderr_note()
            )));
        }
    }
    if outcome.stdout.truncated() {
        return Err(BindingFailure::answer(format!(
            "{} printed {} bytes to stdout, more than the limit of {}, so its result is lost: print \
                less, or write a file",
            job.target,
            outcome.stdout.total,
            outcome.stdout.bytes.len()
        )));
    }
    answer(&outcome.stdout.text()).map_err(|why| BindingFailure::answer(format!("{} {why}", job.target)))
}

/// Parses the JSON object that a script printed.
fn answer(stdout: &str) -> Result<Map<String, Value>, String> {
    let output = stdout.trim();
    let last = output.lines().last().unwrap_or_default();
    let value: Value =
        serde_json::from_str(output).or_else(|_| serde_json::from_str(last)).map_err(|error| {
            if output.is_empty() {
                return "printed no result; a script must print one JSON object to stdout".to_owned();
            }
            format!("the last line is not a JSON object ({error}): {}", excerpt(last.as_bytes()))
        })?;
    match value {
        Value::Object(map) => Ok(map),
        other => Err(format!("printed {}, expected a JSON object", kind(&other))),
    }
}

fn tail(stderr: &[u8]) -> Option<String> {
    let from = stderr.len().saturating_sub(TAIL);
    let text = String::from_utf8_lossy(&stderr[from..]);
    let text = text.trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Stores the files that a script produced.
async fn store_artifacts(
    artifacts: Arc<Artifacts>,
    outcome: Outcome,
    log: &Log,
) -> Result<Vec<Artifact>, BindingFailure> {
    if outcome.produced_truncated {
        let text = format!("more than {} files were written; the rest is not kept", outcome.produced.len());
        log.emit("stderr", text);
    }
    if outcome.produced.is_empty() {
        return Ok(Vec::new());
    }
    let keep = move || -> Result<Vec<Artifact>, String> {
        let mut all = Vec::new();
        for file in &outcome.produced {
            let name = file.path.to_string_lossy();
            let mut from = outcome.open(file).map_err(|error| error.to_string())?;
            let stored = artifacts.keep(&name, &mut from);
            all.push(stored.map_err(|error| format!("the file {name} cannot be kept: {error}"))?);
        }
        Ok(all)
    };
    let done =
        tokio::task::spawn_blocking(keep).await.map_err(|error| error.to_string()).and_then(|stored| stored);
    done.map_err(BindingFailure::answer)
}

/// Forwards output lines to the log. The end of stdout is held back: it may be the result, which is not logged.
struct Log {
    sink: LogSink,
    pending: Mutex<PendingOutput>,
}

#[derive(Default)]
struct PendingOutput {
    lines: Vec<String>,
    /// The first line opens an object without closing it: all of stdout may be the result.
    block: bool,
    begun: bool,
}

impl Log {
    fn new(sink: LogSink) -> Self {
        Self { sink, pending: Mutex::default() }
    }

    fn emit(&self, stream: &str, text: String) {
        (self.sink)(LogLine { stream: stream.to_owned(), text });
    }

    fn push(&self, channel: Channel, line: &str) {
        if channel == Channel::Stderr {
            return self.emit("stderr", line.to_owned());
        }
        if line.trim().is_empty() {
            return;
        }
        let mut pending = self.pending.locked();
        if !pending.begun {
            pending.begun = true;
            pending.block =
                line.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(line).is_err();
        }
        let ready = if pending.block { Vec::new() } else { std::mem::take(&mut pending.lines) };
        pending.lines.push(line.to_owned());
        drop(pending);
        for line in ready {
            self.emit("stdout", line);
        }
    }

    /// Forwards the lines held back, which were not the result.
    fn release(&self) {
        let lines = std::mem::take(&mut self.pending.locked().lines);
        for line in lines {
            self.emit("stdout", line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_all_of_stdout_or_its_last_line() {
        assert_eq!(answer("{\"a\": 1}\n").unwrap()["a"], 1);
        assert_eq!(answer("{\n  \"a\": 1\n}\n").unwrap()["a"], 1);
        assert_eq!(answer("reading\ndone {\n{\"a\": 2}\n\n").unwrap()["a"], 2);
        assert!(answer("").unwrap_err().contains("printed no result"));
        assert!(answer("done\n").unwrap_err().contains("last line"));
        assert!(answer("[1]").unwrap_err().contains("a list"));
    }

    #[test]
    fn all_output_except_the_result_is_logged() {
        let logged = |lines: &[&str], failed: bool| {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let sink = Arc::clone(&seen);
            let log = Log::new(Arc::new(move |line: LogLine| sink.lock().unwrap().push(line.text)));
            for line in lines {
                log.push(Channel::Stdout, line);
            }
            if failed {
                log.release();
            }
            std::mem::take(&mut *seen.lock().unwrap())
        };
        assert_eq!(logged(&["a", "b", "{\"x\": 1}"], false), ["a", "b"]);
        assert_eq!(logged(&["a", "b"], true), ["a", "b"]);
        assert!(logged(&["{", " \"x\": 1", "}"], false).is_empty());
        assert_eq!(logged(&["{\"step\": 1}", "{\"x\": 1}", ""], false), ["{\"step\": 1}"]);
    }
}
