//! `skills session run-script`: shows what would run, prompts, and runs exactly what was shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{pairs, shown};
use crate::Context;
use crate::args::{InputFileArg, ScriptArgs};
use crate::failure::{Exit, Failure};
use crate::output::{TerminalCaps, TextStyle, fit};
use crate::runs::{Caller, ask};
use skills_api::{Code, Error, SessionClient};
use skills_session::{ScriptPreview, ToolFailure};
use skills_skill::safe_text;

/// Width of the names of the facts.
const LABEL: usize = 12;

/// Runs a script; without a confirmed digest it is shown first.
pub async fn run(cx: &mut Context, core: &dyn SessionClient, args: &ScriptArgs) -> Result<Exit, Failure> {
    let ScriptArgs { session, path, skill, workdir, .. } = args;
    let arguments = json!({
        "path": path, "skill": skill, "args": args.args, "env": pairs(&args.env)?, "workdir": workdir,
    });
    let files: BTreeMap<String, String> =
        args.files.iter().map(|file| (file.name.clone(), file.path.to_string_lossy().into_owned())).collect();
    let named = args.inputs_digest.as_deref();
    let confirmed = named.filter(|_| args.yes);
    let mut answer = core.run_script(session, arguments.clone(), files.clone(), confirmed).await?;
    if let Err(error) = &answer.result
        && error.code == ToolFailure::ConfirmationRequired
        && let Some(preview) = &error.script
    {
        let view = core.session(session).await?;
        let loaded = view.active.iter().find(|skill| skill.name == preview.skill);
        let folder = loaded.map(|skill| skill.root_dir.display().to_string()).unwrap_or_default();
        let mut reporter = cx.reporter();
        let head = TextStyle::Strong.paint("To run", reporter.look.color);
        reporter.print_line(&format!("{head}\n\n{}", text(preview, folder, reporter.look)));
        let command = command(&Caller::of(&cx.global), args, preview);
        if args.yes {
            let message =
                format!("the script was not run: --yes requires --inputs-digest. To run it, run: {command}");
            let reason = json!({ "script": preview, "command": command });
            let error = Error::new(Code::ConfirmationRequired, message);
            return Err(Error { reason: Some(reason), ..error }.into());
        }
        if !matches!(ask("Run it? [y/N]", &format!("run: {command}"))?.as_str(), "y" | "yes") {
            return Err(Error::new(Code::ConfirmationRequired, "the script was not run").into());
        }
        let digest = named.unwrap_or(&preview.inputs_digest);
        answer = core.run_script(session, arguments, files, Some(digest)).await?;
    }
    shown(cx, session, &answer)
}

/// The command that runs what is shown without asking.
fn command(caller: &Caller, args: &ScriptArgs, preview: &ScriptPreview) -> String {
    let named = |file: &InputFileArg| format!("{}={}", file.name, file.path.display());
    let files: Vec<String> = args.files.iter().map(named).collect();
    let mut words = vec!["session", "run-script", &args.session, &args.path];
    words.extend(args.skill.iter().flat_map(|skill| ["--skill", skill.as_str()]));
    words.extend(args.env.iter().flat_map(|variable| ["--env", variable.as_str()]));
    words.extend(files.iter().flat_map(|file| ["--file", file.as_str()]));
    words.extend(args.workdir.iter().flat_map(|workdir| ["--workdir", workdir.as_str()]));
    words.extend(["--inputs-digest", &preview.inputs_digest, "--yes"]);
    if !args.args.is_empty() {
        words.push("--");
        words.extend(args.args.iter().map(String::as_str));
    }
    caller.line(&words)
}

/// What would run, and the folder of its skill.
fn text(preview: &ScriptPreview, folder: String, look: TerminalCaps) -> String {
    let list = |words: &[String]| {
        let quoted: Vec<String> = words.iter().map(|word| Value::from(word.as_str()).to_string()).collect();
        quoted.join(" ")
    };
    let env: Vec<String> = preview.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let files: Vec<String> =
        preview.files.iter().map(|(name, digest)| format!("{name} (sha256 {digest})")).collect();
    let facts = [
        ("script", preview.path.clone()),
        ("sha256", preview.script_digest.clone()),
        ("skill", preview.skill.clone()),
        ("bundle", folder),
        ("arguments", list(&preview.args)),
        ("variables", list(&env)),
        ("files", files.join(", ")),
        ("directory", preview.workdir.clone().unwrap_or_default()),
        ("isolation", preview.isolation.clone()),
        ("digest", preview.inputs_digest.clone()),
    ];
    let (look, rest) = (look.at_most(100), " ".repeat(LABEL));
    let mut out = String::new();
    for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        let head = TextStyle::Muted.paint(&fit(name, LABEL, look.unicode), look.color);
        for line in look.rows(&head, &rest, &safe_text::exact(&value)) {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}
