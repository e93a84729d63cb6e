//! `skills rivals` and `skills collisions`: which skills win each other's requests, and what would separate them.

use std::fmt::Write as _;
use std::path::Path;

use super::Context;
use super::args::{CollisionsArgs, FailOn, RivalsArgs};
use super::failure::{Exit, Failure};
use super::output::{HANGING, TerminalCaps, TextStyle, counted, cut, push_painted, push_row};
use skills_api::{CollisionBaseline, CollisionFilter, CollisionReport, CoreParts, SkillRivals};
use skills_base::files;
use skills_discovery::{
    AdviceKind, Cluster, Collision, CollisionMap, GroupKind, PairAdvice, PairReport, PairSide, ProbedClause,
    SimilarGroup,
};
use skills_skill::{SkillId, safe_text};

/// Maximum number of lines of a list without `--all`.
const MAX_LISTED: usize = 20;
/// How long a single request for the map waits, in milliseconds.
const WAIT_MS: u64 = 1_000;

/// `skills rivals [SKILL]`.
pub async fn rivals(cx: &mut Context, args: &RivalsArgs) -> Result<Exit, Failure> {
    let core = cx.reach(CoreParts::Index).await?;
    let Some(skill) = &args.skill else {
        let report = complete(cx, &*core, None).await?;
        cx.show(
            &serde_json::json!({ "skills": report.skills, "losers": report.map.losers }),
            |is_plain, look| {
                let render = if is_plain { labeled_losers } else { losers };
                render(&report.map, args.all, look)
            },
        )?;
        return Ok(Exit::Success);
    };
    let report = core.rivals(skill).await?;
    cx.show(&report, |is_plain, look| rivals_text(&report, is_plain, look))?;
    Ok(Exit::Success)
}

/// `skills collisions [SKILL [SKILL]]`.
pub async fn collisions(cx: &mut Context, args: &CollisionsArgs) -> Result<Exit, Failure> {
    let core = cx.reach(CoreParts::Index).await?;
    if let [first, second] = args.skills.as_slice() {
        let pair = core.compare_skills(first, second).await?;
        cx.show(&pair, |is_plain, look| pair_text(&pair, is_plain, look))?;
        return Ok(Exit::Success);
    }
    let report = complete(cx, &*core, args.skills.first().cloned()).await?;
    let baseline = args.baseline.as_ref().map(|file| cx.cwd.join(file));
    if let Some(file) = baseline.as_deref().filter(|_| args.write_baseline) {
        write_baseline(&report.map, file)?;
        let found = counted(report.severe, "collision");
        cx.out.line(format!("{}: {found}", safe_text::line(&file.display().to_string())))?;
        return Ok(Exit::Success);
    }
    let baseline = baseline.as_deref().map(CollisionBaseline::read).transpose()?;
    let new: Option<Vec<&Collision>> =
        baseline.as_ref().map(|baseline| baseline.new_collisions(&report.map).collect());
    let failed = match args.fail_on {
        None => false,
        Some(FailOn::Collisions) => report.map.severe().next().is_some(),
        Some(FailOn::NewCollisions) => new.as_ref().is_some_and(|new| !new.is_empty()),
    };
    if cx.out.json {
        let mut value = serde_json::to_value(&report).map_err(|error| Failure::usage(error.to_string()))?;
        if let Some(new) = &new {
            value["new"] = serde_json::json!(new);
        }
        cx.out.value(&value)?;
    } else {
        cx.print_rendered(|is_plain, look| map_text(&report, new.as_deref(), args.all, is_plain, look))?;
    }
    Ok(if failed { Exit::ChecksFailed } else { Exit::Success })
}

fn write_baseline(map: &CollisionMap, file: &Path) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(&CollisionBaseline::of(map));
    let json = json.map_err(|error| Failure::usage(error.to_string()))?;
    files::replace_shared(file, format!("{json}\n").as_bytes())
        .map_err(|error| Failure::written_file(file, &error))
}

/// Returns the map once it is complete; until then the progress is shown on standard error.
async fn complete(
    cx: &Context,
    core: &dyn super::context::FullClient,
    skill: Option<String>,
) -> Result<CollisionReport, Failure> {
    let mut reporter = cx.reporter();
    loop {
        let filter =
            CollisionFilter { skill: skill.clone(), wait_ms: Some(WAIT_MS), ..CollisionFilter::default() };
        let report = core.collisions(filter).await?;
        if report.complete {
            reporter.clear();
            return Ok(report);
        }
        reporter.show(&format!("probing {} of {}", report.done, counted(report.skills, "skill")));
    }
}

fn name(id: &SkillId) -> String {
    safe_text::name(id.as_str()).into_owned()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Renders skills by the share of their requests that others win.
fn losers(map: &CollisionMap, all: bool, look: TerminalCaps) -> String {
    let mut out = heading(map);
    let shown = if all { usize::MAX } else { MAX_LISTED };
    let width = look.name_width(map.losers.iter().take(shown).map(|skill| skill.skill_id.as_str()), 5, 40);
    if !map.losers.is_empty() {
        let head = format!("{:<width$}  {:>6}  {:>5}  nearest rival", "skill", "probes", "won");
        let _ = writeln!(out, "\n{}", TextStyle::Muted.paint(&head, look.color));
    }
    for skill in map.losers.iter().take(shown) {
        let rival = skill.rival.as_ref().map(name).unwrap_or_default();
        let own = look.name(&name(&skill.skill_id), width);
        let counts = format!("{:>6}  {:>5}", skill.made, skill.won);
        push_painted(&mut out, look, |_| format!("{own}  {counts}  {rival} ({})", skill.lost_to_rival));
    }
    more(&mut out, map.losers.len(), shown, look);
    out
}

/// Renders the same as labeled lines.
fn labeled_losers(map: &CollisionMap, all: bool, look: TerminalCaps) -> String {
    let mut out = heading(map);
    let shown = if all { usize::MAX } else { MAX_LISTED };
    for (number, skill) in (1..).zip(&map.losers).take(shown) {
        let rival = skill
            .rival
            .as_ref()
            .map(|rival| format!(" Nearest rival: {}, wins {}.", name(rival), skill.lost_to_rival));
        let _ = writeln!(
            out,
            "{number}. {}. Probe requests: {}, won: {}.{}",
            name(&skill.skill_id),
            skill.made,
            skill.won,
            rival.unwrap_or_default()
        );
    }
    more(&mut out, map.losers.len(), shown, look);
    out
}

fn heading(map: &CollisionMap) -> String {
    format!(
        "{}: {} of {} lost to another skill\n",
        counted(map.skills, "skill"),
        map.lost,
        counted(map.probes, "probe request")
    )
}

fn more(out: &mut String, total: usize, shown: usize, look: TerminalCaps) {
    if total > shown {
        let text = format!("{} more; --all prints them", total - shown);
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(&text, look.color));
    }
}

fn clauses(out: &mut String, clauses: &[ProbedClause], plain: bool, look: TerminalCaps) {
    for clause in clauses {
        if plain {
            let text = safe_text::line(&clause.clause);
            let _ = writeln!(out, "{} of {}: {text}", clause.won, clause.made);
            continue;
        }
        let counts = format!("{:>2} of {:>2}", clause.won, clause.made);
        let style = if clause.won * 2 < clause.made { TextStyle::Warn } else { TextStyle::Muted };
        let text =
            cut(&safe_text::line(&clause.clause), look.text_width(100).saturating_sub(14), look.unicode);
        let _ = writeln!(out, "  {}  {text}", style.paint(&counts, look.color));
    }
}

fn rivals_text(rivals: &SkillRivals, plain: bool, look: TerminalCaps) -> String {
    let report = &rivals.report;
    let mut out = String::new();
    let mut result = report.not_ranked.as_ref().map_or_else(
        || format!("wins {} of {}", report.won, counted(report.made, "probe request")),
        |why| format!("not ranked: {}", safe_text::line(why)),
    );
    if report.golden > 0 {
        let _ = write!(result, ", {} of {}", report.golden_won, counted(report.golden, "golden query"));
    }
    push_painted(&mut out, look, |look| {
        format!("{}: {result}", TextStyle::Strong.paint(&name(&report.skill_id), look.color))
    });
    if !report.clauses.is_empty() {
        out.push_str("\nclauses, with the probe requests that the skill wins\n");
        clauses(&mut out, &report.clauses, plain, look);
    }
    if plain {
        for (number, rival) in (1..).zip(&report.rivals) {
            let _ = writeln!(
                out,
                "{number}. Rival {}. Loses to it: {}, wins: {}, golden queries lost: {}, won: {}, similarity: {}.",
                name(&rival.skill_id),
                rival.lost,
                rival.won,
                rival.golden_lost.len(),
                rival.golden_won.len(),
                similarity(rival.similarity, look)
            );
        }
    } else if !report.rivals.is_empty() {
        let width = look.name_width(report.rivals.iter().map(|rival| rival.skill_id.as_str()), 5, 40);
        let head = format!(
            "{:<width$}  {:>8}  {:>6}  {:>11}  {:>10}",
            "rival", "lost", "won", "golden -/+", "similarity"
        );
        let _ = writeln!(out, "\n{}", TextStyle::Muted.paint(&head, look.color));
        for rival in &report.rivals {
            let golden = format!("{} / {}", rival.golden_lost.len(), rival.golden_won.len());
            let own = look.name(&name(&rival.skill_id), width);
            let _ = writeln!(
                out,
                "{own}  {:>8}  {:>6}  {golden:>11}  {:>10}",
                rival.lost,
                rival.won,
                similarity(rival.similarity, look)
            );
        }
        let note = "similarity suggests pairs to review; it does not affect the order";
        let _ = writeln!(out, "{}", TextStyle::Muted.paint(note, look.color));
    }
    if !report.lost.is_empty() {
        out.push_str("\nlost probe requests\n");
        for lost in &report.lost {
            let won = lost.won.as_ref().map_or_else(|| "no skill".to_owned(), name);
            let query = cut(
                &safe_text::line(&lost.query),
                look.text_width(100).saturating_sub(6 + won.len()),
                look.unicode,
            );
            let between = if plain { ": won by " } else { "  " };
            push_painted(&mut out, look, |look| {
                format!("  {query}{between}{}", TextStyle::Warn.paint(&won, look.color))
            });
        }
    }
    if !rivals.groups.is_empty() {
        out.push('\n');
        groups(&mut out, &rivals.groups, usize::MAX, plain, look);
    }
    out
}

fn groups(out: &mut String, groups: &[SimilarGroup], shown: usize, plain: bool, look: TerminalCaps) {
    for group in groups.iter().take(shown) {
        let text = match group.kind {
            GroupKind::Template => format!(
                "{} with the description {}{}{}: {}",
                counted(group.skills.len(), "skill"),
                if plain { "\"" } else { "“" },
                safe_text::line(&group.text),
                if plain { "\"" } else { "”" },
                joined(&group.skills)
            ),
            GroupKind::Identical | GroupKind::Shadowed => joined(&group.skills),
        };
        let text = cut(&text, look.text_width(110).saturating_sub(12), look.unicode);
        let kind = group.kind.to_string();
        let _ = if plain { writeln!(out, "{kind}: {text}") } else { writeln!(out, "{kind:<10} {text}") };
    }
    more(out, groups.len(), shown, look);
}

fn joined(skills: &[SkillId]) -> String {
    skills.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn map_text(
    report: &CollisionReport,
    new: Option<&[&Collision]>,
    all: bool,
    plain: bool,
    look: TerminalCaps,
) -> String {
    let map = &report.map;
    let shown = if all { usize::MAX } else { MAX_LISTED };
    let mut out = heading(map);
    let clustered: usize = map.clusters.iter().map(|cluster| cluster.skills.len()).sum();
    let _ = writeln!(
        out,
        "{} in {}; {} (at least 2 lost requests and 20 %)",
        counted(clustered, "skill"),
        counted(map.clusters.len(), "cluster"),
        counted(report.severe, "collision")
    );
    for cluster in map.clusters.iter().take(if all { usize::MAX } else { MAX_MATRICES }) {
        out.push('\n');
        if plain {
            labeled_cluster(&mut out, cluster, map);
        } else {
            matrix(&mut out, cluster, map, look);
        }
    }
    more(&mut out, map.clusters.len(), if all { usize::MAX } else { MAX_MATRICES }, look);
    let severe: Vec<&Collision> = map.severe().collect();
    if !severe.is_empty() {
        let _ = writeln!(out, "\n{}", TextStyle::Muted.paint("loses to another skill", look.color));
    }
    for collision in severe.iter().take(shown) {
        let is_new = new.is_some_and(|new| new.contains(collision));
        let note = if plain { ", new" } else { "  new" };
        push_painted(&mut out, look, |look| {
            let note = if is_new { TextStyle::Warn.paint(note, look.color) } else { String::new() };
            format!(
                "{} loses {} of {} ({}) to {}{note}",
                name(&collision.skill_id),
                collision.lost,
                collision.made,
                percent(collision.share),
                name(&collision.rival)
            )
        });
    }
    more(&mut out, severe.len(), shown, look);
    if !map.groups.is_empty() {
        let _ = writeln!(out, "\n{}", TextStyle::Muted.paint("the same or nearly the same text", look.color));
        groups(&mut out, &map.groups, shown, plain, look);
    }
    if let Some(new) = new {
        let _ = writeln!(out, "\n{} since the baseline", counted(new.len(), "new collision"));
    }
    out
}

/// Maximum number of clusters printed as matrices without `--all`.
const MAX_MATRICES: usize = 4;

/// Renders a cluster as labeled lines.
fn labeled_cluster(out: &mut String, cluster: &Cluster, map: &CollisionMap) {
    let _ = writeln!(out, "Cluster {}:", safe_text::line(&cluster.label));
    for (number, skill) in (1..).zip(&cluster.skills) {
        let lost = cluster.skills.iter().filter_map(|rival| {
            let found = map.collision(skill, rival).filter(|_| rival != skill)?;
            Some(format!("loses {} to {}", percent(found.share), name(rival)))
        });
        let lost = lost.collect::<Vec<_>>().join(", ");
        let lost = if lost.is_empty() { "loses nothing to the others".to_owned() } else { lost };
        let _ = writeln!(out, "{number}. {}: {lost}.", name(skill));
    }
}

/// Renders a cluster: what each row loses to each column, in percent.
fn matrix(out: &mut String, cluster: &Cluster, map: &CollisionMap, look: TerminalCaps) {
    let letter = |at: usize| char::from(b'a' + u8::try_from(at % 26).unwrap_or_default());
    let width = look.name_width(cluster.skills.iter().map(SkillId::as_str), 5, 32);
    let heads: String = (0..cluster.skills.len()).map(|at| format!("{:>4}", letter(at))).collect();
    let label = safe_text::line(&cluster.label).into_owned();
    let label = format!("{label:<width$}");
    push_painted(out, look, |look| {
        let heads = TextStyle::Muted.paint(&heads, look.color);
        format!("{}  {heads}", TextStyle::Strong.paint(&format!("  {label}"), look.color))
    });
    for (row, skill) in cluster.skills.iter().enumerate() {
        let mut cells = String::new();
        for (column, rival) in cluster.skills.iter().enumerate() {
            let cell = match map.collision(skill, rival) {
                _ if row == column => TextStyle::Muted.paint("   \\", look.color),
                None => TextStyle::Muted.paint(if look.unicode { "   ·" } else { "   ." }, look.color),
                Some(found) => {
                    let text = format!("{:>4.0}", found.share * 100.0);
                    if found.is_severe() { TextStyle::Warn.paint(&text, look.color) } else { text }
                }
            };
            cells.push_str(&cell);
        }
        let _ = writeln!(out, "{} {}  {cells}", letter(row), look.name(&name(skill), width));
    }
    let note = "cell: percentage of the row skill's probe requests that the column skill wins";
    let _ = writeln!(out, "{}", TextStyle::Muted.paint(note, look.color));
}

/// Formats a similarity with two decimals.
fn similarity(value: f64, look: TerminalCaps) -> String {
    let minus = if value > -0.005 {
        ""
    } else if look.unicode {
        "−"
    } else {
        "-"
    };
    format!("{minus}{:.2}", value.abs())
}

fn pair_text(pair: &PairReport, plain: bool, look: TerminalCaps) -> String {
    let mut out = String::new();
    for (letter, side) in [("A", &pair.a), ("B", &pair.b)] {
        let lost = format!("{} of them lost to the other skill", side.lost);
        push_painted(&mut out, look, |look| {
            let lost = if side.lost > 0 { TextStyle::Warn.paint(&lost, look.color) } else { lost.clone() };
            format!(
                "{letter} {}: wins {} of {}, {lost}",
                TextStyle::Strong.paint(&name(&side.skill_id), look.color),
                side.won,
                counted(side.made, "probe request")
            )
        });
    }
    if !pair.golden.is_empty() {
        let won = |side: &PairSide| pair.golden.iter().filter(|duel| duel.won == side.skill_id).count();
        let queries = counted(pair.golden.len(), "golden query");
        let _ = writeln!(out, "{queries}: A wins {}, B wins {}", won(&pair.a), won(&pair.b));
    }
    let _ = writeln!(out, "similarity {}, not used in advice", similarity(pair.similarity, look));
    for (letter, side) in [("A", &pair.a), ("B", &pair.b)] {
        let _ = writeln!(out, "\nclauses of {letter}");
        clauses(&mut out, &side.clauses, plain, look);
    }
    out.push_str("\ndistinguishing terms\n");
    for (letter, side) in [("A", &pair.a), ("B", &pair.b)] {
        if side.own_terms.is_empty() {
            let _ = writeln!(out, "  {letter} has no unique term that wins a request");
            continue;
        }
        let terms = side
            .own_terms
            .iter()
            .map(|term| safe_text::line(term).into_owned())
            .collect::<Vec<_>>()
            .join(", ");
        let separable_note = format!("wins {} of {} requests", side.separable_kept, side.separable);
        for row in look.rows("  ", HANGING, &format!("only in {letter}: {terms}; {separable_note}")) {
            let _ = writeln!(out, "{row}");
        }
        if let Some(clause) = &side.separating_clause {
            let _ = writeln!(
                out,
                "    {}",
                cut(&safe_text::line(clause), look.text_width(100).saturating_sub(4), look.unicode)
            );
        }
    }
    let _ = writeln!(
        out,
        "  requests without a distinguishing term: {} of {} lost",
        pair.shared_lost, pair.shared
    );
    out.push_str("\nadvice, measured; nothing is written\n");
    for advice in &pair.advice {
        advice_text(&mut out, advice, plain, look);
    }
    if !pair.advice.iter().any(|advice| advice.is_best) {
        out.push_str("  no effective change found\n");
    }
    out
}

fn advice_text(out: &mut String, advice: &PairAdvice, plain: bool, look: TerminalCaps) {
    let label = match advice.kind {
        AdviceKind::AddExclusion => "add an exclusion",
        AdviceKind::Merge => "merge",
        AdviceKind::Split => "split",
    };
    let label = if plain { format!("{label}:") } else { format!("{label:<17}") };
    let label = if advice.is_best { TextStyle::Strong.paint(&label, look.color) } else { label };
    let golden = advice.golden.map(|change| format!(", golden queries {change:+}")).unwrap_or_default();
    let mark = match (advice.is_best, plain) {
        (true, true) => "best:",
        (true, false) => "*",
        (false, _) => " ",
    };
    let _ = writeln!(
        out,
        "{mark} {label} lost probe requests {} to {}{golden}, tokens {:+}",
        advice.lost_before, advice.lost_after, advice.tokens
    );
    if advice.is_best {
        for text in &advice.texts {
            let text = format!("{}: {}", name(&text.skill_id), safe_text::line(&text.description));
            for row in look.rows("    ", HANGING, &text) {
                let _ = writeln!(out, "{row}");
            }
        }
        if let Some(removed) = &advice.removed {
            push_row(out, "    ", &format!("{} is removed", name(removed)), look);
        }
    }
}
