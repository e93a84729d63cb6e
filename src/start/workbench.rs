//! Opens the workbench and checks the settings that only it reads.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use skills_api::{Code, Error, Local, SharedClient, SharedSessionClient};
use skills_base::telemetry::RingBuffer;
use skills_cli::{Context, DemoArgs, Exit, Failure, connect, invocation};
use skills_config::{AuditLog, Config, Dirs, Env, MAX_ERRORS_PER_FILE, MEMORY_STORE};
use skills_skill::safe_text;
use skills_tui::demo::{DemoOptions, Redaction, Script, shipped};
use skills_tui::keymap::Keymap;
use skills_tui::theme::{Depth, Themes};
use skills_tui::{RunError, Settings};

/// Opens the workbench until the user quits, or plays a demonstration in it.
pub fn open(cx: &mut Context, log: RingBuffer, demo: Option<&DemoArgs>) -> Result<Exit, Failure> {
    let play = demo.map(|args| play(cx, args)).transpose()?;
    show(cx, log, play)
}

fn play(cx: &mut Context, args: &DemoArgs) -> Result<DemoOptions, Failure> {
    let script = match &args.file {
        None => {
            // The shipped script refers to the shipped skills.
            cx.global.demo |= cx.global.roots.is_empty();
            shipped().map_err(|error| Error::new(Code::InternalError, error))?
        }
        Some(file) => {
            let source =
                skills_base::files::read_user_text(file).map_err(|error| Failure::file(file, &error))?;
            Script::parse(&source).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?
        }
    };
    // A demonstration does not write to the user's store unless one is given explicitly.
    if cx.global.store.is_none() && cx.global.connect.is_none() {
        cx.global.store = Some(MEMORY_STORE.to_owned());
    }
    let auto = match args.auto {
        Some(seconds) if !(seconds.is_finite() && (0.1..=3600.0).contains(&seconds)) => {
            return Err(Failure::usage("--auto must be 0.1 to 3600 seconds"));
        }
        seconds => seconds.map(Duration::from_secs_f64),
    };
    let redaction = if args.no_redaction { Redaction::default() } else { redaction(&cx.env) };
    Ok(DemoOptions { script, auto, record: args.record.clone(), pictures: args.pictures.clone(), redaction })
}

/// Returns the redaction of a demonstration: the user's folders and name are not shown.
fn redaction(env: &Env) -> Redaction {
    let dirs = Dirs::new(env);
    let named =
        [(&dirs.config, "$CONFIG"), (&dirs.data, "$DATA"), (&dirs.cache, "$CACHE"), (&dirs.state, "$STATE")];
    let folders = named.map(|(folder, name)| (folder.to_string_lossy().into_owned(), name));
    Redaction::of(&env.home.to_string_lossy(), &folders, env.get("USER"))
}

fn show(cx: &Context, log: RingBuffer, play: Option<DemoOptions>) -> Result<Exit, Failure> {
    let mut config = cx.config()?;
    if play.is_some() && config.store.as_deref() == Some(MEMORY_STORE) {
        config.audit = AuditLog::Off;
    }
    if !std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "the workbench needs a terminal; `skills --help` lists commands that do not need one",
        ));
    }
    if cx.env.get("TERM") == Some("dumb") {
        return Err(Failure::usage(
            "the workbench needs a terminal with a cursor, and TERM is `dumb`; `skills --plain` is a line-based interface",
        ));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::new(Code::InternalError, format!("cannot start the async runtime: {e}")))?;
    let invocation = invocation(&cx.global, Some(&cx.cwd));
    let depth = cx.global.no_color.then_some(Depth::None);
    let called = invocation.clone();
    let settings = Settings { log, invocation, depth, ..Settings::of(&config) };
    if config.connect.is_some() {
        let remote = Arc::new(runtime.block_on(connect(&config, &cx.env))?);
        let client: SharedClient = Arc::clone(&remote) as SharedClient;
        let sessions: SharedSessionClient = remote;
        let ended = runtime.block_on(skills_tui::run(client, Some(sessions), settings, play));
        runtime.shutdown_background();
        return left(ended);
    }
    let local = Arc::new(Local::open(config)?);
    let worker = Arc::clone(&local);
    // Resume interrupted runs immediately; failures are reported as notices.
    runtime.spawn(async move { drop(worker.start_workers().await) });
    let client: SharedClient = Arc::clone(&local) as SharedClient;
    let sessions: SharedSessionClient = Arc::clone(&local) as SharedSessionClient;
    let ended = runtime.block_on(skills_tui::run(client, Some(sessions), settings, play));
    // Release the leases of this process so that other workers can claim its runs at once.
    runtime.block_on(async {
        match ended {
            Ok(skills_tui::Exit::ShutDown) => local.stop_workers_at_once().await,
            _ => local.stop_workers().await,
        }
    });
    // The notice is also shown in the window, because what is printed before the first frame is not visible.
    for notice in local.take_notices() {
        // A closed terminal, on which `eprintln!` would panic, reads no notices.
        let _ = writeln!(std::io::stderr(), "skills: {}", safe_text::line(&called.completed_in(&notice)));
    }
    // A scan or token count that is still running must not delay the exit.
    runtime.shutdown_background();
    left(ended)
}

fn left(ended: Result<skills_tui::Exit, RunError>) -> Result<Exit, Failure> {
    match ended {
        Ok(_) => Ok(Exit::Success),
        Err(RunError::Settings(error)) => Err(Failure::usage(error.to_string())),
        Err(error @ RunError::Terminal(_)) => Err(Failure::usage(error.to_string())),
        Err(error @ RunError::Missed(_)) => {
            eprintln!("skills: {}", safe_text::line(&error.to_string()));
            Ok(Exit::ChecksFailed)
        }
    }
}

/// Returns problems of the settings that loading does not detect, with file and line: key bindings, theme, addresses
/// and saved views.
pub fn settings_problems(config: &Config) -> Vec<String> {
    let settings = Settings::of(config);
    let mut found = Vec::new();
    let mut remaps = settings.remaps.clone();
    while found.len() < MAX_ERRORS_PER_FILE
        && let Err(error) = Keymap::shipped().and_then(|keymap| keymap.remapped(&remaps))
    {
        found.push(error.to_string());
        let count = remaps.len();
        remaps.retain(|remap| (&remap.file, remap.line) != (&error.file, error.line));
        if remaps.len() == count {
            break;
        }
    }
    found.extend(skills_api::config_problems(config));
    match Themes::shipped() {
        Err(error) => found.push(error.to_string()),
        Ok(themes) => {
            let (themes, wrong) = match &settings.theme_dir {
                Some(dir) => themes.with_dir(dir),
                None => (themes, Vec::new()),
            };
            found.extend(wrong.iter().map(ToString::to_string));
            let theme = settings.theme.as_deref().map(|name| (name, themes.theme(name, Depth::True)));
            if let Some((name, Err(error))) = theme {
                let place = config.places.get("theme").map(|place| format!("{place}: ")).unwrap_or_default();
                // A missing theme has no file; other errors name theirs.
                let why =
                    if error.file == "theme" { error.message } else { format!("theme `{name}`: {error}") };
                found.push(format!("{place}{why}"));
            }
        }
    }
    found
}
