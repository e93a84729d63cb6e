//! `skills runs workers`, `views` and `logs`: the workers, saved filters, and output of steps.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::{board, clock, commands, plain};
use crate::Context;
use crate::args::{RunsLogsArgs, RunsViewsArgs, RunsWorkersArgs};
use crate::failure::{Exit, Failure};
use crate::output::{TerminalCaps, TextStyle, cells, fit, push_row};
use skills_api::{Code, CoreParts, Error, LogLine, LogRequest, RunDetail, near};
use skills_skill::safe_text;

const PAGE: usize = 1_000;
/// How long a single request for further lines waits, in milliseconds.
const FOLLOW_MS: u64 = 10_000;

/// Runs `skills runs workers`.
pub async fn workers(cx: &mut Context, args: &RunsWorkersArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let list = match (&args.drain, &args.undrain) {
        (Some(worker), _) => client.drain(worker, true, None).await?,
        (_, Some(worker)) => client.drain(worker, false, None).await?,
        _ => client.workers().await?,
    };
    let advice = cx.first_entry_advice(board::FIRST_WORKER);
    cx.show(&list, |is_plain, look| {
        if is_plain {
            plain::text::workers(&list.workers)
        } else {
            board::workers(&list.workers, clock::now_ms(), &advice, look)
        }
    })?;
    Ok(Exit::Success)
}

/// Runs `skills runs views`.
pub async fn views(cx: &mut Context, args: &RunsViewsArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    let list = match (&args.save, &args.delete) {
        (Some(name), _) => client.save_view(name, args.r#where.as_deref(), None).await?,
        (_, Some(name)) => client.save_view(name, None, None).await?,
        _ => client.views().await?,
    };
    if cx.out.json {
        cx.out.value(&list)?;
        return Ok(Exit::Success);
    }
    if let Some(name) = &args.save {
        let filter = args.r#where.as_deref().unwrap_or_default();
        let (name, filter) = (safe_text::line(name), safe_text::line(filter));
        cx.out.line(format!("saved view `{name}`: {filter}"))?;
        return Ok(Exit::Success);
    }
    if let Some(name) = &args.delete {
        cx.out.line(format!("deleted view `{}`", safe_text::line(name)))?;
        return Ok(Exit::Success);
    }
    let mut out = String::new();
    let look = cx.out.look;
    let width = look.name_width(list.views.iter().map(|view| view.name.as_str()), 4, 40);
    for view in &list.views {
        let by = view.by.as_ref().map(|by| format!("  by {}", safe_text::line(by))).unwrap_or_default();
        let head = format!("{}  ", look.name(&safe_text::line(&view.name), width));
        push_row(&mut out, &head, &format!("{}{by}", safe_text::line(&view.r#where)), look);
    }
    if list.views.is_empty() {
        let advice = cx.first_entry_advice("save one with `skills runs views --save NAME --where FILTER`");
        let _ = writeln!(out, "no saved views; {advice}");
    }
    cx.out.text(&out)?;
    Ok(Exit::Success)
}

/// Runs `skills runs logs`.
pub async fn logs(cx: &mut Context, args: &RunsLogsArgs) -> Result<Exit, Failure> {
    let client = cx.reach(CoreParts::Catalog).await?;
    if let Some(step) = &args.step {
        has_step(&client.run(&args.run).await?, step)?;
    }
    let mut request = LogRequest {
        run: args.run.clone(),
        step: args.step.clone(),
        text: args.grep.clone(),
        after: 0,
        limit: PAGE,
        wait_ms: 0,
    };
    loop {
        let page = client.run_log(request.clone()).await?;
        for line in &page.lines {
            if cx.out.json {
                cx.out.json_line(line)?;
            } else {
                cx.out.line(render(line, args.step.is_none(), &TimeZone::system(), cx.out.look))?;
            }
        }
        cx.out.flush()?;
        let more = page.lines.len() >= PAGE;
        if !(more || (args.follow && page.open)) {
            return Ok(Exit::Success);
        }
        request.after = page.next;
        request.wait_ms = if more { 0 } else { FOLLOW_MS };
    }
}

/// Rejects a step that the run does not have. Items and steps of nested contracts may appear later, so only the first
/// part of a path is checked.
fn has_step(detail: &RunDetail, step: &str) -> Result<(), Failure> {
    let own = step.split(['[', '/']).next().unwrap_or(step);
    let steps = commands::step_names(detail);
    if steps.iter().any(|name| name == own) {
        return Ok(());
    }
    let names = if steps.is_empty() { "none".to_owned() } else { steps.join(", ") };
    let message = format!("run {} has no step `{step}`; its steps: {names}", detail.run.id);
    let suggestions = near(own, steps.iter().map(String::as_str));
    Err(Error { suggestions, ..Error::new(Code::NotFound, message) }.into())
}

/// Renders a line of output. In a pipe only the complete text is printed.
fn render(line: &LogLine, with_step: bool, zone: &TimeZone, look: TerminalCaps) -> String {
    let text = safe_text::line(&line.text);
    if !look.terminal {
        return text.into_owned();
    }
    let step = if with_step {
        format!("{}  ", fit(&safe_text::line(&line.step), 16, look.unicode))
    } else {
        String::new()
    };
    let time = clock::time_of_day(line.at_ms, zone);
    let pad = " ".repeat(cells(&time) + 2 + cells(&step));
    let rows = look.rows(&pad, &pad, &text);
    let texts = rows.iter().map(|row| row.strip_prefix(&pad).unwrap_or(row));
    let style = (line.stream == "stderr").then_some(TextStyle::Warn);
    let texts =
        texts.map(|text| style.map_or_else(|| text.to_owned(), |style| style.paint(text, look.color)));
    let text = texts.collect::<Vec<_>>().join(format!("\n{pad}").as_str());
    format!("{}  {step}{text}", TextStyle::Muted.paint(&time, look.color))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::samples;
    use skills_model::RunState;

    #[test]
    fn output_of_a_step_begins_no_row() {
        let look = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let line = LogLine {
            number: 1,
            at_ms: 0,
            step: "extract".to_owned(),
            stream: "stdout".to_owned(),
            text: format!("read{}00:00:00  pay               sent", " ".repeat(60)),
        };
        let text = render(&line, true, &TimeZone::UTC, look);
        assert!(text.starts_with("00:00:00  extract           read\n"), "{text}");
        assert!(text.lines().skip(1).all(|row| row.starts_with(&" ".repeat(28))), "{text}");
        assert!(text.lines().all(|row| cells(row) <= 80), "{text}");
    }

    #[test]
    fn an_unknown_step_is_not_found() {
        let detail = samples::detail(RunState::Completed);
        assert!(has_step(&detail, "extract").is_ok() && has_step(&detail, "extract[2]/read").is_ok());
        let Err(Failure::Core(error)) = has_step(&detail, "extrct") else { panic!() };
        assert_eq!((error.code, error.suggestions), (Code::NotFound, vec!["extract".to_owned()]));
    }
}
