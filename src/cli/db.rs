//! `skills db` and `skills audit-purge`: checks the store of runs, copies it, and deletes old data.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use serde::Serialize;

use super::Context;
use super::args::{BackupArgs, BeforeArgs, ConfirmArgs, DbAction, MigrateArgs, RestoreArgs};
use super::context::Backend;
use super::failure::{Exit, Failure};
use super::output::{TerminalCaps, TextStyle, byte_size, counted, grouped};
use super::runs::{ask, clock};
use skills_api::{Code, CoreParts, Error, Local, RunClient as _, StoreHealth, StoreReset};
use skills_model::RunState;
use skills_skill::safe_text;
use skills_store::{RunFilter, TableRows};

/// `skills db backup --json`.
#[derive(Serialize)]
struct BackupOutput {
    #[serde(serialize_with = "skills_base::paths::serialize")]
    file: std::path::PathBuf,
    bytes: u64,
}

/// `skills db purge --json`.
#[derive(Serialize)]
struct PurgeOutput {
    runs: u64,
    before_ms: i64,
}

/// Runs `skills db …`.
pub async fn run(cx: &mut Context, action: &DbAction) -> Result<Exit, Failure> {
    match action {
        DbAction::Create => create(cx).await,
        DbAction::Check => check(cx).await,
        DbAction::Backup(args) => backup(cx, args).await,
        DbAction::Purge(args) => purge(cx, args).await,
        DbAction::Migrate(args) => migrate(cx, args).await,
        DbAction::Restore(args) => restore(cx, args).await,
        DbAction::Reset(args) => reset(cx, args).await,
        DbAction::Adopt(args) => adopt(cx, args).await,
    }
}

async fn create(cx: &mut Context) -> Result<Exit, Failure> {
    let client = cx.open(CoreParts::Catalog).await?;
    client.store().require_writable().await?;
    let place = client.store().place()?;
    cx.out.show_line(&serde_json::json!({ "place": place }), safe_text::line(&place))?;
    Ok(Exit::Success)
}

async fn check(cx: &mut Context) -> Result<Exit, Failure> {
    let local = Box::new(cx.open(CoreParts::Catalog).await?);
    let client =
        Backend::Local { local, called: super::runs::invocation(&cx.global, None), json: cx.out.json };
    let Some(local) = client.as_local() else { return Ok(Exit::Success) };
    let found = local.store().health().await?;
    cx.out
        .show(&found, |look| super::runs::invocation(&cx.global, None).completed_in(&render(&found, look)))?;
    Ok(if found.health.is_sound() { Exit::Success } else { Exit::ChecksFailed })
}

fn render(found: &StoreHealth, look: TerminalCaps) -> String {
    let mut out = String::new();
    let health = &found.health;
    let _ = writeln!(out, "{}", TextStyle::Strong.paint(&safe_text::line(&found.place), look.color));
    // A file that cannot be opened has no counts.
    if health.bytes > 0 {
        let _ = writeln!(
            out,
            "  {}, {}, {}, {} unused",
            counted(usize::try_from(health.runs).unwrap_or(usize::MAX), "run"),
            format_args!("{} events", grouped(health.events)),
            byte_size(health.bytes),
            byte_size(health.free_bytes)
        );
    }
    for (what, lines) in [("damaged", &health.damage), ("contradiction", &health.contradictions)] {
        for line in lines {
            let _ = writeln!(
                out,
                "  {} {}",
                TextStyle::Bad.paint(&format!("{what}:"), look.color),
                safe_text::line(line)
            );
        }
    }
    if health.is_sound() {
        let _ = writeln!(out, "  {}", TextStyle::Good.paint("ok", look.color));
    } else if !health.damage.iter().any(|line| line.contains("`skills db ")) {
        out += if health.damage.is_empty() {
            "  back it up now (skills db backup FILE), and keep your existing backups\n"
        } else {
            "  restore a backup (skills db restore FILE), which renames the damaged files; this tool \
                cannot repair them\n"
        };
    }
    out
}

async fn backup(cx: &mut Context, args: &BackupArgs) -> Result<Exit, Failure> {
    let file = cx.cwd.join(&args.file);
    if file.exists() {
        let message = format!("{} already exists; choose another file", file.display());
        return Err(Error::new(Code::Forbidden, message).into());
    }
    if let Some(folder) = file.parent() {
        std::fs::metadata(folder).map_err(|error| Failure::written_file(&file, &error))?;
    }
    let client = cx.open(CoreParts::Catalog).await?;
    client.store().backup(&file).await?;
    let bytes = std::fs::metadata(&file).map_err(|error| Failure::file(&file, &error))?.len();
    if cx.out.json {
        cx.out.value(&BackupOutput { file, bytes })?;
    } else {
        let shown = safe_text::line(&file.display().to_string()).into_owned();
        let line = cx.out.links.file(format!("{shown}, {}", byte_size(bytes)), &shown, &file);
        cx.out.line(line)?;
    }
    Ok(Exit::Success)
}

async fn migrate(cx: &mut Context, args: &MigrateArgs) -> Result<Exit, Failure> {
    let file = cx.cwd.join(&args.from);
    std::fs::metadata(&file).map_err(|error| Failure::file(&file, &error))?;
    let client = cx.open(CoreParts::Catalog).await?;
    let done = client.store().import(&file).await?;
    if cx.out.json {
        cx.out.value(&done)?;
        return Ok(Exit::Success);
    }
    let width = done.tables.iter().map(|of| of.table.len()).max().unwrap_or(0);
    for TableRows { table, rows } in &done.tables {
        cx.out.line(format!("  {table:width$}  {:>12}", grouped(*rows)))?;
    }
    let rows: u64 = done.tables.iter().map(|of| of.rows).sum();
    cx.out.line(format!(
        "copied {} from {}, which was not changed, and compared the counts",
        counted(usize::try_from(rows).unwrap_or(usize::MAX), "row"),
        safe_text::line(&done.from)
    ))?;
    cx.out.line(format!("from now on, start all processes with the store {}", safe_text::line(&done.to)))?;
    Ok(Exit::Success)
}

async fn reset(cx: &mut Context, args: &ConfirmArgs) -> Result<Exit, Failure> {
    let client = cx.open(CoreParts::Catalog).await?;
    if !args.yes {
        let place = client.store().place()?;
        confirm(
            &format!("Create an empty store at {place}? The existing files are renamed, not deleted."),
            "nothing was changed",
        )?;
    }
    let done = client.store().reset().await?;
    print_replaced(cx, &done, "created an empty store")
}

async fn restore(cx: &mut Context, args: &RestoreArgs) -> Result<Exit, Failure> {
    let file = cx.cwd.join(&args.file);
    std::fs::metadata(&file).map_err(|error| Failure::file(&file, &error))?;
    let client = cx.open(CoreParts::Catalog).await?;
    if !args.confirm.yes {
        let place = client.store().place()?;
        confirm(
            &format!(
                "Replace the store at {place} with a copy of {}? The existing files are renamed, not deleted.",
                file.display()
            ),
            "nothing was changed",
        )?;
    }
    let done = client.store().restore(file).await?;
    print_replaced(cx, &done, "restored the store")
}

fn print_replaced(cx: &mut Context, done: &StoreReset, what: &str) -> Result<Exit, Failure> {
    if cx.out.json {
        cx.out.value(done)?;
        return Ok(Exit::Success);
    }
    cx.out.line(format!("{what} {} (id {})", safe_text::line(&done.place), done.id))?;
    for file in &done.previous_files {
        cx.out.line(format!("  old file: {}", safe_text::line(&file.display().to_string())))?;
    }
    Ok(Exit::Success)
}

async fn adopt(cx: &mut Context, args: &ConfirmArgs) -> Result<Exit, Failure> {
    let client = cx.open(CoreParts::Catalog).await?;
    let place = client.store().place()?;
    if !args.yes {
        confirm(&format!("Accept the current store at {place}?"), "nothing was changed")?;
    }
    let id = client.store().adopt().await?;
    cx.out.show_line(
        &serde_json::json!({ "place": place, "id": id }),
        format!("{} is the store {id}", safe_text::line(&place)),
    )?;
    Ok(Exit::Success)
}

async fn purge(cx: &mut Context, args: &BeforeArgs) -> Result<Exit, Failure> {
    let before_ms = args.before_ms(clock::now_ms());
    let client = cx.open(CoreParts::Catalog).await?;
    if !args.yes {
        let runs = ended_before(&client, before_ms).await?;
        confirm(&format!("Delete {runs} that ended before {}?", shown(before_ms)), "nothing was deleted")?;
    }
    let runs = client.store().purge(before_ms).await?;
    print_deleted(cx, runs, before_ms, "deleted")
}

/// Runs `skills audit-purge`.
pub async fn audit_purge(cx: &mut Context, args: &BeforeArgs) -> Result<Exit, Failure> {
    let before_ms = args.before_ms(clock::now_ms());
    let client = cx.open(CoreParts::Catalog).await?;
    if !args.yes {
        let runs = ended_before(&client, before_ms).await?;
        confirm(
            &format!(
                "Delete step inputs and output lines of {runs} that ended before {}, and older entries of \
                the audit log? States, decisions and results are kept.",
                shown(before_ms)
            ),
            "nothing was deleted",
        )?;
    }
    let purged = client.audit_log().purge(before_ms).await?;
    if cx.out.json {
        cx.out.value(&purged)?;
        return Ok(Exit::Success);
    }
    let lines = counted(usize::try_from(purged.lines).unwrap_or(usize::MAX), "line");
    let what = format!("deleted {lines} from the audit log, and recorded data of");
    print_deleted(cx, purged.runs, before_ms, &what)
}

fn shown(before_ms: i64) -> String {
    clock::moment(before_ms, &TimeZone::system())
}

fn confirm(question: &str, refused: &str) -> Result<(), Failure> {
    let answer = ask(&format!("{question} [y/N]"), "pass --yes")?;
    if matches!(answer.as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Error::new(Code::ConfirmationRequired, refused).into())
}

fn print_deleted(cx: &mut Context, runs: u64, before_ms: i64, what: &str) -> Result<Exit, Failure> {
    if cx.out.json {
        cx.out.value(&PurgeOutput { runs, before_ms })?;
    } else {
        let runs = counted(usize::try_from(runs).unwrap_or(usize::MAX), "run");
        cx.out.line(format!("{what} {runs}"))?;
    }
    Ok(Exit::Success)
}

/// Returns how many runs ended before a time.
async fn ended_before(client: &Local, before_ms: i64) -> Result<String, Failure> {
    let mut filter = RunFilter { states: RunState::ENDED.to_vec(), limit: 500, ..RunFilter::default() };
    let mut count = 0;
    loop {
        let page = client.runs(filter.clone()).await?;
        count += page.runs.iter().filter(|run| run.since_ms < before_ms).count();
        let Some(cursor) = page.next else { return Ok(counted(count, "run")) };
        filter.cursor = Some(cursor);
    }
}
