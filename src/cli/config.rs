//! `skills config`: prints the paths of the configuration files, checks them, and opens them in the editor.

use std::env;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use super::Context;
use super::args::ConfigAction;
use super::failure::{Exit, Failure};
use super::output::{TextStyle, counted};
use skills_api::{Code, Error};
use skills_base::private_files;
use skills_config::{Config, ConfigError, MAX_ERRORS_PER_FILE};
use skills_skill::safe_text;

/// `skills config path --json`.
#[derive(Serialize)]
struct Paths<'a> {
    #[serde(serialize_with = "skills_base::paths::serialize")]
    user: &'a Path,
    /// The existing files, in order of application.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    files: &'a [std::path::PathBuf],
    #[serde(serialize_with = "skills_base::paths::serialize")]
    data: &'a Path,
    #[serde(serialize_with = "skills_base::paths::serialize")]
    cache: &'a Path,
    #[serde(serialize_with = "skills_base::paths::serialize")]
    state: &'a Path,
}

/// `skills config check --json`.
#[derive(Serialize)]
struct CheckOutput {
    mistakes: Vec<String>,
}

pub fn run(cx: &mut Context, action: ConfigAction) -> Result<Exit, Failure> {
    match action {
        ConfigAction::Path => path(cx),
        ConfigAction::Check => check(cx),
        ConfigAction::Edit => edit(cx),
    }
}

fn path(cx: &mut Context) -> Result<Exit, Failure> {
    // The locations are known even if a file is invalid.
    let usual = Config::defaults(&cx.cwd, &cx.env);
    let files = match cx.config() {
        Ok(config) => {
            cx.take_signs(&config);
            config.files
        }
        Err(_) => Vec::new(),
    };
    let user = usual.dirs.config_file();
    if cx.out.json {
        let dirs = &usual.dirs;
        let paths =
            Paths { user: &user, files: &files, data: &dirs.data, cache: &dirs.cache, state: &dirs.state };
        cx.out.value(&paths)?;
        return Ok(Exit::Success);
    }
    for file in std::iter::once(&user).chain(files.iter().filter(|file| **file != user)) {
        let shown = safe_text::line(&file.display().to_string()).into_owned();
        let line = cx.out.links.file(shown.clone(), &shown, file);
        cx.out.line(line)?;
    }
    Ok(Exit::Success)
}

fn check(cx: &mut Context) -> Result<Exit, Failure> {
    let (errors, valid) = skills_config::check(&cx.cwd, &cx.env);
    let mut mistakes: Vec<String> = errors.iter().map(ToString::to_string).collect();
    mistakes.extend((cx.adapters.settings_problems)(&cx.config().unwrap_or(valid)));
    let found = mistakes.len();
    if cx.out.json {
        cx.out.value(&CheckOutput { mistakes })?;
    } else if found == 0 {
        let files = cx.config()?.files;
        if files.is_empty() {
            cx.out.line("no configuration file; using defaults (`skills config edit` creates one)")?;
        }
        for file in files {
            cx.out.line(format!("{}: valid", safe_text::line(&file.display().to_string())))?;
        }
    } else {
        for mistake in mistakes {
            let word = cx.out.paint(TextStyle::Bad, "error:");
            cx.out.line(format!("{word} {}", safe_text::block(&mistake)))?;
        }
    }
    if found > 0 {
        let until = if errors.is_empty() {
            "the workbench or commands that use these settings may fail"
        } else {
            "other commands fail"
        };
        return Err(Failure::usage(format!(
            "the configuration has {}{}; {until} until {} fixed",
            if found < MAX_ERRORS_PER_FILE { "" } else { "at least " },
            counted(found, "error"),
            if found == 1 { "it is" } else { "they are" }
        )));
    }
    Ok(Exit::Success)
}

fn edit(cx: &mut Context) -> Result<Exit, Failure> {
    let usual = Config::defaults(&cx.cwd, &cx.env);
    let file = usual.dirs.config_file();
    if !file.exists() {
        let folder = file.parent().unwrap_or(&usual.dirs.config);
        private_files::create_folder(folder).map_err(|e| Failure::written_file(folder, &e))?;
        private_files::replace(&file, skills_config::TEMPLATE.as_bytes())
            .map_err(|e| Failure::written_file(&file, &e))?;
    }
    let editor = cx.config().ok().and_then(|config| config.editor).or(usual.editor);
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // Through a shell, because $EDITOR may contain arguments and quotes; the file is an argument, never part of the
    // script.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("exec {editor} \"$@\""))
        .arg("sh")
        .arg(&file)
        .current_dir(env::current_dir().unwrap_or_else(|_| cx.cwd.clone()))
        .status()
        .map_err(|e| {
            Error::new(Code::InvalidRequest, format!("cannot start {editor}: {e}; set VISUAL or EDITOR"))
        })?;
    if !status.success() {
        let end = status.code().map_or_else(|| status.to_string(), |code| format!("code {code}"));
        return Err(Failure::usage(format!(
            "{editor} exited with {end}; set VISUAL or EDITOR to an installed editor"
        )));
    }
    check(cx)
}

/// Converts a configuration error to a usage error.
pub fn failure(error: &ConfigError) -> Failure {
    let message = error.to_string();
    let joined_by = if message.ends_with('?') { " " } else { "; " };
    Failure::usage(format!("{message}{joined_by}`skills config check` lists all errors"))
}
