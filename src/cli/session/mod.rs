//! `skills session`: sessions as used by a host or in a presentation.

mod script;
mod show;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};

use self::show::{composed_sizes, difference, session_list, session_view};
use super::Context;
use super::args::{SessionAction, SessionArgs, SettingsArgs};
use super::failure::{Exit, Failure};
use super::runs::invocation;
use crate::output::grouped;
use skills_api::{Code, CoreParts, Error, SessionClient, SettingsChange, ToolAnswer};
use skills_base::private_files;
use skills_config::quoted;
use skills_skill::safe_text;

/// Maximum number of sessions that are counted for the last line of a list; a service lists no more.
const MAX_COUNTED: usize = 1_000;

impl From<&SettingsArgs> for SettingsChange {
    fn from(args: &SettingsArgs) -> Self {
        Self {
            cap: args.cap,
            form: args.form,
            instructions: args.instructions,
            locations: chosen(args.locations, args.no_locations),
            client: args.client.clone(),
            window: args.window,
            agent: args.agent.clone(),
            compat: chosen(args.compat, args.no_compat),
        }
    }
}

/// Returns the value of a setting with an option for either value; `None` if neither is given.
fn chosen(yes: bool, no: bool) -> Option<bool> {
    (yes || no).then_some(yes)
}

pub async fn run(cx: &mut Context, args: &SessionArgs) -> Result<Exit, Failure> {
    let core = cx.reach(CoreParts::Index).await?;
    match &args.action {
        SessionAction::New(settings) => {
            let session = core.new_session(settings.into()).await?;
            cx.out.show_line(
                &json!({"session_id": session.session_id, "settings": session.settings}),
                safe_text::line(&session.session_id),
            )?;
        }
        SessionAction::List { limit } => {
            // Text states how many there are.
            let read = if cx.out.json { *limit } else { (*limit).max(MAX_COUNTED) };
            let sessions = core.sessions(read).await?;
            let is_complete = sessions.len() < read && sessions.len() != MAX_COUNTED;
            let advice = cx.first_entry_advice("create one with `skills session new`");
            cx.out.show(&sessions, |look| session_list(&sessions, (*limit, is_complete), &advice, look))?;
        }
        SessionAction::Show { session } => {
            // Composed first: token counts of this call replace estimates in the list of skills.
            let call = core.compose(session, false).await?;
            let view = core.session(session).await?;
            let called = invocation(&cx.global, None);
            cx.out.show(&json!({"session": view, "size": call.size}), |look| {
                session_view(&view, &call, &called, look)
            })?;
        }
        SessionAction::Set { session, settings } => {
            let change = SettingsChange::from(settings);
            if change == SettingsChange::default() {
                let options = SettingsArgs::options().join(", ");
                return Err(Failure::usage(format!("nothing to set; pass at least one of {options}")));
            }
            let view = core.configure_session(session, change).await?;
            if cx.out.json {
                cx.out.value(&json!({"session_id": view.session_id, "settings": view.settings}))?;
            } else {
                cx.out.line(format!("{} updated", safe_text::line(&view.session_id)))?;
                for setting in show::settings(&view.settings) {
                    cx.out.line(format!("  {setting}"))?;
                }
            }
        }
        SessionAction::Say { session, text, speaker } => {
            let text = if text == "-" { standard_input()? } else { text.clone() };
            let entry = core.say(session, *speaker, &text).await?;
            cx.out.show_line(&json!({"entry": entry}), format!("appended entry {entry}"))?;
        }
        SessionAction::Compose { session, diff, sizes, call } => {
            return compose(cx, &*core, session, *diff, *sizes, *call).await;
        }
        SessionAction::Export { session, api, model, out, force } => {
            let payload = core.export_session(session, *api, model).await?;
            for note in &payload.notes {
                tracing::warn!("{note}");
                super::failure::print(&format!("note: {}\n", safe_text::line(note)), false);
            }
            match out {
                Some(file) => {
                    let text = serde_json::to_string_pretty(&payload.body)
                        .map_err(|e| Error::new(Code::InternalError, e.to_string()))?;
                    write_file(file, &(text + "\n"), *force)?;
                    let bytes = std::fs::metadata(file).map_err(|error| Failure::file(file, &error))?.len();
                    if cx.out.json {
                        cx.out.value(&json!({"file": skills_base::paths::escaped(file), "bytes": bytes}))?;
                    } else {
                        let name = file.display().to_string();
                        let size = grouped(bytes);
                        cx.out.line(format!("wrote {}, {size} bytes", safe_text::line(&name)))?;
                    }
                }
                None => cx.out.value(&payload.body)?,
            }
        }
        tool => return call(cx, &*core, tool).await,
    }
    Ok(Exit::Success)
}

async fn compose(
    cx: &mut Context,
    core: &dyn SessionClient,
    session: &str,
    diff: bool,
    sizes: bool,
    call: bool,
) -> Result<Exit, Failure> {
    let view = core.compose(session, call).await?;
    if cx.out.json {
        cx.out.value(&view)?;
    } else if diff {
        let set =
            view.since.as_ref().map(|since| since.describe(|many| grouped(many as u64))).unwrap_or_default();
        for setting in &set {
            cx.out.line(safe_text::line(setting))?;
        }
        match &view.diff {
            None => {
                let command = invocation(&cx.global, None).line(&["session", "compose", session, "--call"]);
                cx.out.line(format!("no recorded call to compare with; `{command}` records one"))?;
            }
            Some(lines) if lines.is_empty() && !set.is_empty() => {}
            Some(lines) if lines.is_empty() => cx.out.line("no changes since the last call")?,
            Some(lines) => {
                let text = difference(lines, cx.out.look);
                cx.out.text(&text)?;
            }
        }
    } else if sizes {
        cx.out.line(format!("  {}", view.instructions.label()))?;
        let text = composed_sizes(&view, cx.out.look);
        cx.out.text(&text)?;
    } else {
        if cx.out.look.terminal {
            cx.out.raw(safe_text::block(&view.composed.text).as_bytes())?;
        } else {
            cx.out.raw(view.composed.text.as_bytes())?;
        }
        // Printed to standard error, so that the bytes of the instructions are unchanged.
        super::failure::print(&show::places(&view, cx.out.look.unicode), false);
    }
    Ok(Exit::Success)
}

/// Writes a new file; an existing one is only overwritten with `force`.
fn write_file(file: &Path, text: &str, force: bool) -> Result<(), Failure> {
    if file.is_dir() {
        let message = format!("{} is a directory; specify a file", file.display());
        return Err(Error::new(Code::InvalidConfiguration, message).into());
    }
    if force {
        return private_files::replace(file, text.as_bytes())
            .map_err(|error| Failure::written_file(file, &error));
    }
    let created = private_files::create_file(file, private_files::FILE_MODE);
    if !created.map_err(|error| Failure::written_file(file, &error))? {
        let message = format!("{} already exists; use --force to overwrite it", file.display());
        return Err(Error::new(Code::InvalidConfiguration, message).into());
    }
    std::fs::write(file, text).map_err(|error| Failure::written_file(file, &error))
}

/// Calls the five tools like a model would.
async fn call(cx: &mut Context, core: &dyn SessionClient, action: &SessionAction) -> Result<Exit, Failure> {
    let (session, tool, arguments) = match action {
        SessionAction::Load { session, skills, add } => {
            let mode = if *add { "add" } else { "replace" };
            (session, "skills.load", json!({"names": skills, "mode": mode}))
        }
        SessionAction::Unload { session, skills, all } => {
            (session, "skills.unload", json!({"names": skills, "all": all}))
        }
        SessionAction::Read { session, path, skill, offset, length } => {
            let arguments = json!({"path": path, "skill": skill, "offset": offset, "length": length});
            (session, "skills.read", arguments)
        }
        SessionAction::RunScript(args) => return script::run(cx, core, args).await,
        _ => return Ok(Exit::Success),
    };
    let answer = core.call_tool(session, tool, arguments, None).await?;
    shown(cx, session, &answer)
}

fn shown(cx: &mut Context, session: &str, answer: &ToolAnswer) -> Result<Exit, Failure> {
    let value = match &answer.result {
        Ok(value) => value,
        Err(error) => {
            let code = Code::from(error.code);
            return Err(Error::new(code, in_commands(&error.message, session)).into());
        }
    };
    // A failed script exits with 1, in either output format.
    let failed = value.get("exit_code").is_some_and(|code| *code != 0);
    if cx.out.json {
        cx.out.value(value)?;
    } else if let Some(content) = value["content"].as_str() {
        if cx.out.look.terminal {
            cx.out.raw(safe_text::block(content).as_bytes())?;
        } else {
            cx.out.raw(content.as_bytes())?;
        }
        if let Some(next) = value["next_offset"].as_u64() {
            super::failure::print(&format!("more from byte {next}: --offset {next}\n"), false);
        }
    } else if value.get("exit_code").is_some() {
        let text = |key: &str| safe_text::block(value[key].as_str().unwrap_or_default()).into_owned();
        cx.out.raw(text("stdout").as_bytes())?;
        super::failure::print(&text("stderr"), false);
        let mut after = String::new();
        for file in value["files"].as_array().into_iter().flatten() {
            let text = |key: &str| safe_text::line(file[key].as_str().unwrap_or_default()).into_owned();
            after += &format!("wrote {}, {} bytes: {}\n", text("path"), file["bytes"], text("artifact"));
        }
        if let Some(note) = value["files_note"].as_str() {
            after += &format!("{note}\n");
        }
        if value["truncated"].is_object() {
            let of = |stream: &str| &value["truncated"][stream];
            after += &format!(
                "output was truncated: stdout has {} bytes, stderr {}\n",
                of("stdout_bytes"),
                of("stderr_bytes")
            );
        }
        if value["timed_out"] == true {
            after += "stopped: timed out\n";
        }
        if failed {
            after += &format!("exit code {}\n", value["exit_code"]);
        }
        super::failure::print(&after, false);
    } else {
        let show = invocation(&cx.global, None).line(&["session", "show", session]);
        let text = show::receipt(value, &show, cx.out.look);
        cx.out.text(&text)?;
    }
    Ok(if failed { Exit::ChecksFailed } else { Exit::Success })
}

/// Rewrites a tool's message in terms of commands.
fn in_commands(message: &str, session: &str) -> String {
    let commands = [
        ("skills.run_script", "run-script", "SCRIPT"),
        ("skills.unload", "unload", "SKILL"),
        ("skills.load", "load", "SKILL"),
        ("skills.read", "read", "FILE"),
    ];
    let session = quoted(session);
    commands.into_iter().fold(message.to_owned(), |text, (tool, command, argument)| {
        text.replace(tool, &format!("`skills session {command} {session} {argument}`"))
    })
}

fn pairs(pairs_list: &[String]) -> Result<BTreeMap<&str, Value>, Failure> {
    pairs_list
        .iter()
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name, json!(value))),
            _ => Err(Failure::usage(format!("--env {pair}: expected NAME=VALUE"))),
        })
        .collect()
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("standard input: {error}")))?;
    Ok(text)
}
