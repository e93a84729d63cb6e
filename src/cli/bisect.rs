//! `skills bisect`: the commit that changed which skill ranks first for a request.

use std::fmt::Write as _;

use super::Context;
use super::args::BisectArgs;
use super::failure::{Exit, Failure};
use super::output::{HANGING, TerminalCaps, TextStyle, counted};
use skills_api::{BisectJob, Bisection, WinnerChange};
use skills_discovery::{Fit, Hit};
use skills_skill::{SkillId, safe_text};

/// Number of digits of a commit id shown.
const SHORT_ID: usize = 10;

pub async fn run(cx: &mut Context, args: &BisectArgs) -> Result<Exit, Failure> {
    let config = cx.config()?;
    let job = BisectJob {
        request: super::discover::intent(&args.request)?,
        skill: args.skill.as_ref().map(SkillId::new),
        from: args.from.clone(),
        max_commits: args.max_commits,
    };
    let found = skills_api::bisect(config, job).await?;
    cx.out.show(&found, |look| render(&found, look))?;
    Ok(if found.change.is_some() { Exit::Success } else { Exit::ChecksFailed })
}

fn name(id: Option<&SkillId>) -> String {
    id.map_or_else(|| "no result".to_owned(), |id| safe_text::line(id.as_str()).into_owned())
}

fn render(found: &Bisection, look: TerminalCaps) -> String {
    let commits = counted(found.commits, "commit");
    let mut out = String::new();
    if found.fit == Fit::None {
        out.push_str("no skill fits this request at the newest commit; the first result is compared\n\n");
    }
    let Some(change) = &found.change else {
        let end = if found.is_limited { "; older commits were not examined (--max-commits)" } else { "" };
        let _ = writeln!(
            out,
            "no commit changed the winner: {} ranks first in {commits}{end}",
            name(found.current.as_ref())
        );
        return out;
    };
    let id = change.commit.get(..SHORT_ID).unwrap_or(&change.commit);
    let day = jiff::Timestamp::from_millisecond(change.at_ms).ok();
    let day = day.map(|day| day.strftime("%Y-%m-%d").to_string()).unwrap_or_default();
    let head = format!("{} ", TextStyle::Strong.paint(id, look.color));
    let text = format!("{day} {}: {}", safe_text::line(&change.author), safe_text::line(&change.subject));
    for row in look.rows(&head, HANGING, &text) {
        let _ = writeln!(out, "{row}");
    }
    let first = |hit: Option<&Hit>| name(hit.map(|hit| &hit.skill_id));
    let _ = writeln!(
        out,
        "ranked first before: {}; after: {}\n",
        first(change.before.as_ref()),
        first(change.after.as_ref())
    );
    breakdowns(&mut out, change, look);
    let _ = writeln!(out, "\n{commits} read, newest first");
    out
}

/// Shows the scores of both skills before and after, by words.
fn breakdowns(out: &mut String, change: &WinnerChange, look: TerminalCaps) {
    let pairs = [
        (change.before.as_ref(), change.before_now.as_ref()),
        (change.after_then.as_ref(), change.after.as_ref()),
    ];
    for (before, after) in pairs {
        let Some(id) = before.or(after).map(|hit| &hit.skill_id) else { continue };
        let score = |hit: Option<&Hit>| match hit {
            Some(hit) => format!("{:.2}", hit.score),
            None => "not ranked".to_owned(),
        };
        let _ = writeln!(out, "{}: {} -> {}", name(Some(id)), score(before), score(after));
        let mut words: Vec<&str> = Vec::new();
        for row in before.into_iter().chain(after).flat_map(|hit| &hit.breakdown.rows) {
            if !words.contains(&row.label.as_str()) {
                words.push(&row.label);
            }
        }
        let sum = |hit: Option<&Hit>, word: &str| {
            let rows = hit.into_iter().flat_map(|hit| &hit.breakdown.rows);
            rows.filter(|row| row.label == word).map(|row| row.sum).reduce(|sum, points| sum + points)
        };
        let points = |sum: Option<f64>| match sum {
            Some(sum) => format!("{sum:>6.2}"),
            None => format!("{:>6}", if look.unicode { "·" } else { "-" }),
        };
        for word in words {
            let (old, new) = (sum(before, word), sum(after, word));
            let change = new.unwrap_or(0.0) - old.unwrap_or(0.0);
            if change.abs() >= 0.005 {
                let (old, new) = (points(old), points(new));
                let _ = writeln!(out, "  {old} -> {new}  {change:>+6.2}  {}", safe_text::line(word));
            }
        }
    }
}
