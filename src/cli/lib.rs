//! The command line adapter: parses arguments, prints text or JSON, and returns an exit code. It contains no domain
//! logic.

mod args;
mod audit;
mod bar;
mod bisect;
mod breakdown;
mod budget;
mod budget_fit;
mod busy_indicator;
mod completions;
mod config;
mod context;
mod db;
mod describe;
mod dialog;
mod discover;
mod doctor;
mod draft;
mod eval;
mod eval_report;
mod failure;
mod finding;
mod golden;
mod governance;
mod keys;
mod links;
mod lint;
mod list;
mod man;
mod menu;
mod output;
mod package;
mod plain;
mod policy;
mod proposals;
mod rivals;
mod roots;
mod runs;
mod scaffold;
mod schema;
mod session;
mod trust;
mod verify;
mod visibility;
mod why;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::error::ErrorKind;

use skills_config::{Audience, Config, Dirs, Env, MissingStore};

use self::args::{Cli, Command, DbAction, DbArgs, RunsAction, RunsArgs, SessionAction, SessionArgs};
pub use self::args::{DemoArgs, Global, McpArgs, ServeArgs};
use self::busy_indicator::BusyIndicator;
pub use self::context::{Context, connect};
pub use self::failure::{Exit, Failure};
pub use self::output::Out;
pub use self::runs::invocation;
use skills_api::{Code, Error};
use skills_base::telemetry::{self, RingBuffer, Stderr};
use skills_skill::safe_text;

/// Functions that the binary provides, because this crate does not depend on the other adapters.
#[derive(Clone, Copy)]
pub struct Adapters {
    /// Opens the workbench, or plays a demonstration in it.
    pub workbench: fn(&mut Context, RingBuffer, Option<&DemoArgs>) -> Result<Exit, Failure>,
    /// Serves HTTP until the process receives a termination signal.
    pub serve: fn(&mut Context, &ServeArgs) -> Result<Exit, Failure>,
    /// Serves MCP over standard input and output.
    pub mcp: fn(&Context, &McpArgs) -> Result<Exit, Failure>,
    /// Problems of the key bindings and the theme, with file and line.
    pub settings_problems: fn(&Config) -> Vec<String>,
    /// Returns the `OpenAPI` document of the service.
    pub openapi_document: fn() -> &'static str,
}

/// Parses the process's arguments and runs the command; without one, the workbench.
pub fn main(adapters: Adapters) -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // Determined before parsing, because parse errors are reported in the same format.
    let flag = |name: &str| args.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == name);
    let (json, no_color) = (flag("--json"), flag("--no-color"));
    let look = output::stderr_caps(no_color);
    let width = output::stdout_caps(no_color).width.min(100);
    let parse = |args: &[OsString]| {
        let command = args::command().term_width(width);
        command.try_get_matches_from(args).and_then(|found| Cli::of(&found))
    };
    let cli = match parse(&args) {
        Ok(cli) => cli,
        Err(error) if json => return misunderstood(&error, json, no_color),
        Err(error) => {
            // The message contains arguments, which must not act on the terminal, between the escape sequences of the error.
            let visible = |arg: &OsString| safe_text::line(&arg.to_string_lossy()).into_owned().into();
            let visible: Vec<OsString> = args.iter().map(visible).collect();
            return misunderstood(&parse(&visible).err().unwrap_or(error), json, no_color);
        }
    };
    let called = runs::invocation(&cli.global, None);
    let ran = catch_unwind(AssertUnwindSafe(|| run(cli, adapters)));
    let result = ran.unwrap_or_else(|_| {
        Err(Error::new(Code::InternalError, "internal error (see above); please report it").into())
    });
    // In JSON an error is the same in every adapter; the text form contains commands that can be run as shown.
    failure::end(
        result.map_err(|failure| if json { failure } else { failure.completed(&called) }),
        json,
        look,
    )
}

/// Reports a parse result other than a command: help and version are printed; everything else is a usage error (exit
/// code 2).
fn misunderstood(error: &clap::Error, json: bool, no_color: bool) -> ExitCode {
    let is_requested = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if json && !is_requested {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let message = if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            // Clap's text is the help itself.
            "a command or an argument is missing; `--help` lists them".to_owned()
        } else {
            let end =
                ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|tail| text.find(tail)).min();
            text.get(..end.unwrap_or(text.len())).unwrap_or(text).trim().to_owned()
        };
        return failure::report_error(
            &Error::new(Code::InvalidRequest, message),
            true,
            output::stderr_caps(true),
        );
    }
    let text = error.render();
    let look = if is_requested { output::stdout_caps(no_color) } else { output::stderr_caps(no_color) };
    let text = if look.color { text.ansi().to_string() } else { text.to_string() };
    failure::print(&text, is_requested);
    if is_requested { ExitCode::SUCCESS } else { ExitCode::from(2) }
}

fn run(cli: Cli, adapters: Adapters) -> Result<Exit, Failure> {
    let mut env = Env::of_process().map_err(|error| Failure::usage(error.to_string()))?;
    let cwd = std::env::current_dir()
        .map_err(|e| Failure::usage(format!("cannot read the working directory: {e}")))?;
    if let Some(file) = &cli.global.config {
        env.vars.insert("SKILLS_CONFIG".to_owned(), cwd.join(file).to_string_lossy().into_owned());
    }
    let log = log(&cli, &env)?;
    let out = Out::stdout(&cli.global);
    let missing_store = cli.command.as_ref().map_or(MissingStore::Create, missing_store);
    let audience = match &cli.command {
        Some(Command::Serve(_) | Command::Mcp(_)) => Audience::Service,
        None | Some(Command::Demo(_)) => Audience::Workbench,
        Some(_) => Audience::CommandLine,
    };
    let mut cx = Context { out, global: cli.global, env, cwd, missing_store, audience, adapters };
    if cx.is_plain() {
        cx.out.look = cx.out.look.labeled();
    }
    if let (Some(_), Some(what)) = (&cx.global.connect, cli.command.as_ref().and_then(about_files)) {
        return Err(Failure::usage(format!("{what}; remove --connect")));
    }
    // Settings and manual pages read no skills, and `doctor` reports a missing root itself.
    let reads_skills = !matches!(
        cli.command,
        Some(
            Command::Config(_)
                | Command::Completions(_)
                | Command::Man(_)
                | Command::Schema(_)
                | Command::Openapi(_)
                | Command::Keys(_)
                | Command::PackageValidate(_)
                | Command::Doctor
        )
    );
    if reads_skills && !cx.global.roots.is_empty() {
        roots::check(&cx.config()?.argument_roots)?;
    }
    let done = match cli.command {
        None if cx.is_plain() => menu::run(&mut cx)?,
        None => (adapters.workbench)(&mut cx, log, None)?,
        Some(Command::Demo(_)) if cx.is_plain() => {
            let message =
                "a demonstration is a full-screen program; remove --plain, or run `skills --plain --demo`";
            return Err(Failure::usage(message));
        }
        Some(Command::Demo(args)) => (adapters.workbench)(&mut cx, log, Some(&args))?,
        Some(Command::Serve(args)) => (adapters.serve)(&mut cx, &args)?,
        Some(Command::Mcp(args)) => (adapters.mcp)(&cx, &args)?,
        Some(command) => dispatch(&mut cx, command).map_err(|failure| {
            if cx.out.json { failure } else { failure.explained(cx.in_memory(), cx.global.demo) }
        })?,
    };
    cx.out.flush()?;
    Ok(done)
}

/// Returns what a command does with a missing store: one that reads it, or acts on its content, does not create it.
fn missing_store(command: &Command) -> MissingStore {
    match command {
        // They show runs that are launched later.
        Command::Runs(RunsArgs { action: None | Some(RunsAction::Watch(_)) }) => MissingStore::CreateDefault,
        Command::Session(SessionArgs { action: SessionAction::New(_) }) => MissingStore::Create,
        Command::Db(DbArgs { action: DbAction::Check | DbAction::Backup(_) }) => MissingStore::Refuse,
        Command::Runs(_)
        | Command::Session(_)
        | Command::Db(DbArgs { action: DbAction::Purge(_) })
        | Command::Audit(_)
        | Command::AuditPurge(_)
        | Command::Governance(_)
        | Command::ExplainCapability(_)
        | Command::Doctor => MissingStore::EmptyDefault,
        Command::Attach(args) if args.check => MissingStore::EmptyDefault,
        _ => MissingStore::Create,
    }
}

/// Returns why a command cannot be sent to a service; `None` if it can.
fn about_files(command: &Command) -> Option<&'static str> {
    Some(match command {
        Command::Lint(_) | Command::Eval(_) | Command::Bisect(_) => "this command checks local files",
        Command::Scaffold(_) | Command::PackagePrepare(_) | Command::PackageValidate(_) => {
            "this command writes local files"
        }
        Command::Serve(_) => "this command starts a service on this machine",
        Command::Keys(_) => "this command creates keys for a service on this machine",
        Command::Demo(_) => "a demonstration uses the shipped skills",
        Command::Config(_) => "this command uses the configuration of this machine",
        Command::Schema(_) | Command::Completions(_) | Command::Man(_) => {
            "this command does not depend \
            on a service"
        }
        _ => return None,
    })
}

/// Sets up logging. The workbench draws on the terminal, where nothing else may be written.
fn log(cli: &Cli, env: &Env) -> Result<RingBuffer, Failure> {
    let stderr = match (&cli.command, cli.global.verbose) {
        (None | Some(Command::Demo(_)), _) | (_, 0) => Stderr::Never,
        (_, 1) => Stderr::Warnings,
        (_, _) => Stderr::All,
    };
    let dirs = Dirs::new(env);
    dirs.restrict();
    telemetry::init(&dirs.log_file(), env.get("SKILLS_LOG"), stderr)
        .map_err(|error| Failure::usage(error.to_string()))
}

/// Returns whether a command may read and rank many skills, or copy a store; such commands do not prompt.
fn is_long(command: &Command) -> bool {
    matches!(
        command,
        Command::Discover(_)
            | Command::List(_)
            | Command::Describe(_)
            | Command::Draft(_)
            | Command::Why(_)
            | Command::Visibility(_)
            | Command::Rivals(_)
            | Command::Collisions(_)
            | Command::Lint(_)
            | Command::Eval(_)
            | Command::Bisect(_)
            | Command::Verify(_)
            | Command::Db(DbArgs { action: DbAction::Check | DbAction::Backup(_) | DbAction::Migrate(_) })
    )
}

fn dispatch(cx: &mut Context, command: Command) -> Result<Exit, Failure> {
    let _busy = (is_long(&command) && cx.shows_progress()).then(BusyIndicator::start);
    // One thread drives a command; heavy computation uses the blocking pool and rayon's.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new(Code::InternalError, format!("cannot start the async runtime: {e}")))?;
    let done = match command {
        Command::Discover(args) => runtime.block_on(discover::run(cx, &args)),
        Command::List(args) => runtime.block_on(list::run(cx, &args)),
        Command::Describe(args) => runtime.block_on(describe::run(cx, &args)),
        Command::Draft(args) => runtime.block_on(draft::run(cx, &args)),
        Command::Propose(args) => runtime.block_on(proposals::propose(cx, &args)),
        Command::Proposals(args) => runtime.block_on(proposals::run(cx, &args.action)),
        Command::Visibility(args) => runtime.block_on(visibility::run(cx, &args)),
        Command::Why(args) => runtime.block_on(why::run(cx, &args)),
        Command::Rivals(args) => runtime.block_on(rivals::rivals(cx, &args)),
        Command::Collisions(args) => runtime.block_on(rivals::collisions(cx, &args)),
        Command::Lint(args) => runtime.block_on(lint::run(cx, &args)),
        Command::Eval(args) => runtime.block_on(eval::run(cx, &args)),
        Command::Bisect(args) => runtime.block_on(bisect::run(cx, &args)),
        Command::Golden(args) => runtime.block_on(golden::run(cx, &args)),
        Command::Run(args) => runtime.block_on(runs::run(cx, &args)),
        Command::Attach(args) => runtime.block_on(runs::attach(cx, &args)),
        Command::Runs(args) => runtime.block_on(runs::act(cx, args.action.as_ref())),
        Command::Trace(args) => runtime.block_on(runs::trace(cx, &args)),
        Command::ExplainCapability(args) => runtime.block_on(runs::explain(cx, &args)),
        Command::Activate(args) => runtime.block_on(runs::activate(cx, &args)),
        Command::Db(args) => runtime.block_on(db::run(cx, &args.action)),
        Command::Governance(args) => runtime.block_on(governance::run(cx, &args)),
        Command::Audit(args) => runtime.block_on(audit::run(cx, &args.action)),
        Command::AuditPurge(args) => runtime.block_on(db::audit_purge(cx, &args)),
        Command::Session(args) => runtime.block_on(session::run(cx, &args)),
        Command::Agents(args) => runtime.block_on(budget::agents(cx, &args)),
        Command::Budget(args) => runtime.block_on(budget::run(cx, &args)),
        // They have their own runtimes.
        Command::Demo(_) | Command::Serve(_) | Command::Mcp(_) => Ok(Exit::Success),
        Command::Keys(args) => keys::run(cx, &args.action),
        Command::Verify(args) => runtime.block_on(verify::run(cx, &args)),
        Command::Openapi(args) => schema::openapi(cx, &args),
        Command::Schema(args) => schema::run(cx, &args),
        Command::Trust(args) => runtime.block_on(trust::run(cx, &args)),
        Command::Policy(args) => runtime.block_on(policy::run(cx, &args.action)),
        Command::Scaffold(args) => scaffold::run(cx, &args),
        Command::PackagePrepare(args) => runtime.block_on(package::prepare(cx, &args)),
        Command::PackageValidate(args) => package::validate(cx, &args),
        Command::Doctor => runtime.block_on(doctor::run(cx)),
        Command::Completions(args) => completions::run(cx, &args),
        Command::Man(args) => man::run(cx, &args),
        Command::Config(args) => config::run(cx, args.action),
    };
    // A background task whose result is no longer needed (loading a vocabulary) must not delay the exit.
    runtime.shutdown_background();
    done
}
