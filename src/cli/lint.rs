//! `skills lint`: findings in the format of a compiler, for GitHub, as SARIF or as JSON; baselines; and repairs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::Context;
use super::args::{Deny, LintArgs, LintFormat};
use super::dialog::{capitalized, clean, clean_own, sentences};
use super::failure::{Exit, Failure};
use super::output::{HANGING, TerminalCaps, TextStyle, cells, counted, cut_middle, push_painted};
use skills_api::{
    Code, CoreParts, Error, LintBaseline, LintFinding, LintJob, LintReport, LintRule, LintStyle, RuleCount,
    lint_rules, lint_sarif, lint_text,
};
use skills_base::files;
use skills_config::shown;
use skills_skill::{Severity, safe_text};

pub async fn run(cx: &mut Context, args: &LintArgs) -> Result<Exit, Failure> {
    let format = if cx.out.json { LintFormat::Json } else { args.format };
    if args.rules {
        return rules(cx, format);
    }
    let mut paths = Vec::with_capacity(args.paths.len());
    for path in &args.paths {
        paths.push(place(cx, path).await?);
    }
    let config = cx.config()?;
    cx.take_signs(&config);
    let home = config.dirs.home.clone();
    let job = LintJob { paths, fix: args.fix, environment: args.environment };
    let mut report = skills_api::lint(config, job).await?;
    if let Some(file) = &args.baseline {
        let file = cx.cwd.join(file);
        let folder = file.parent().unwrap_or(&cx.cwd).to_owned();
        if args.write_baseline {
            write_baseline(&report, &file, &folder)?;
            let found = counted(report.findings.len(), "finding");
            cx.out.line(format!("{}: {found}", safe_text::line(&file.display().to_string())))?;
            return Ok(Exit::Success);
        }
        LintBaseline::read(&file)?.apply(&mut report, &folder);
    }
    let failed = fails(&report, args.deny.unwrap_or(Deny::Errors));
    report.keep_from(args.level.unwrap_or(Severity::Info));
    report.summarize();
    match format {
        LintFormat::Json => cx.out.value(&report)?,
        LintFormat::Sarif => cx.out.value(&lint_sarif(&report, &cx.cwd))?,
        LintFormat::Github | LintFormat::Text => print(cx, &report, args, &home)?,
    }
    Ok(if failed { Exit::ChecksFailed } else { Exit::Success })
}

/// Returns the path to lint: the given one, or the file of the skill with this id.
async fn place(cx: &mut Context, requested: &Path) -> Result<PathBuf, Failure> {
    let path = cx.cwd.join(requested);
    let error = match path.metadata() {
        // A contract belongs to the skill next to it, as in the folder.
        Ok(_) if path.file_name().is_some_and(|name| name == "skill.yaml") && has_instructions(&path) => {
            return Ok(path.parent().map(Path::to_owned).unwrap_or(path));
        }
        Ok(_) => return Ok(path),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Failure::file(&path, &error));
        }
        Err(_) => {
            let message = format!("`{}` is not a file, folder or skill id", requested.display());
            Error::new(Code::NotFound, message)
        }
    };
    let Some(id) = requested.to_str().filter(|id| !id.contains('/')) else { return Err(error.into()) };
    match cx.reach(CoreParts::Catalog).await?.describe(id).await {
        Ok(detail) => Ok(detail.summary.location),
        Err(found) if found.code == Code::NotFound => {
            Err(Error { suggestions: found.suggestions, ..error }.into())
        }
        Err(other) => Err(other.into()),
    }
}

fn has_instructions(contract: &Path) -> bool {
    contract.with_file_name("SKILL.md").is_file()
}

/// Returns whether the report contains denied findings.
fn fails(report: &LintReport, deny: Deny) -> bool {
    let least = match deny {
        Deny::None => return false,
        Deny::Errors => Severity::Error,
        Deny::Warnings => Severity::Warning,
        Deny::All => Severity::Info,
    };
    report.findings.iter().any(|found| found.finding.severity >= least)
}

fn write_baseline(report: &LintReport, file: &Path, folder: &Path) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(&LintBaseline::of(report, folder));
    let json = json.map_err(|error| Failure::usage(error.to_string()))?;
    files::replace_shared(file, format!("{json}\n").as_bytes())
        .map_err(|error| Failure::written_file(file, &error))
}

fn print(cx: &mut Context, report: &LintReport, args: &LintArgs, home: &Path) -> Result<(), Failure> {
    let (cwd, look) = (cx.cwd.clone(), cx.out.look);
    let is_github = args.format == LintFormat::Github;
    let is_plain = !is_github && cx.is_plain();
    let mut number = 1..;
    let style = if is_github {
        LintStyle::Github
    } else {
        LintStyle::Report { colors: look.color, unicode: look.unicode, width: look.width.min(110) }
    };
    let path = |location: &Path| {
        // GitHub expects paths relative to the repository, where its steps run.
        if is_github {
            return location.strip_prefix(&cwd).unwrap_or(location).display().to_string();
        }
        let path = shown(location, &cwd, home);
        path.strip_prefix("./").unwrap_or(&path).to_owned()
    };
    for fixed in &report.fixed {
        let what = fixed.repaired.join(", ");
        let path = path(&fixed.location);
        let mut text = String::new();
        push_painted(&mut text, look, |look| {
            let word = TextStyle::Good.paint("repaired", look.color);
            format!("{word} {}: {what}", safe_text::line(&path))
        });
        cx.out.text(&text)?;
    }
    if !args.summary {
        for findings in report.by_file() {
            let file = findings[0].path();
            let shown = path(&file);
            if is_plain {
                let text: String =
                    number.by_ref().zip(findings).map(|(at, found)| labeled(at, found, &shown)).collect();
                cx.out.text(&text)?;
                continue;
            }
            if is_github {
                cx.out.raw(lint_text(findings, &shown, style).as_bytes())?;
                continue;
            }
            let shown = safe_text::line(&shown);
            let spans = findings.iter().filter_map(|found| found.finding.span);
            let header = header_path(&shown, spans.map(|span| (span.line, span.column)), look);
            if header != *shown {
                for row in look.rows("file ", HANGING, &shown) {
                    cx.out.line(row)?;
                }
            }
            let text = cx.out.links.file(lint_text(findings, &header, style), &header, &file);
            cx.out.text(&text)?;
        }
    }
    if !is_github {
        // A file with few findings needs no table.
        if args.summary || report.summary.len() >= SUMMARY_FROM_ROWS {
            let text = if is_plain { rule_lines(&report.summary) } else { table(&report.summary, look) };
            cx.out.text(&text)?;
        }
        cx.out.line(summary(report, args.fix, args.level))?;
    }
    Ok(())
}

/// Returns the path in the headers of the excerpts of a file, which begin at these lines and columns: cut in its middle if
/// the terminal would continue a header in its first column.
fn header_path(shown: &str, starts: impl Iterator<Item = (u32, u32)>, look: TerminalCaps) -> String {
    let digits = |number: u32| number.to_string().len();
    // The number of the line is in the header, and its width that of the margin.
    let around = starts.map(|(line, column)| cells("  ,-[::]") + 2 * digits(line) + digits(column)).max();
    let width = around.map_or(usize::MAX, |around| look.text_width(usize::MAX).saturating_sub(around));
    cut_middle(shown, width, look.unicode)
}

/// Renders a finding as a labeled line.
fn labeled(number: usize, found: &LintFinding, shown: &str) -> String {
    let finding = &found.finding;
    let line = finding.span.map(|span| format!(", line {}", span.line)).unwrap_or_default();
    let help = Some(clean_own(&finding.help)).filter(|help| !help.is_empty());
    let text = sentences(vec![
        format!("File {}{line}", clean(shown)),
        format!("{}: {}", capitalized(&finding.severity.to_string()), clean_own(&finding.message)),
        format!("Rule: {}", clean(&finding.code)),
        help.map(|help| format!("Help: {help}")).unwrap_or_default(),
    ]);
    format!("{number}. {text}\n")
}

/// Renders the findings by rule and severity as labeled lines.
fn rule_lines(rules: &[RuleCount]) -> String {
    let line = |rule: &RuleCount| {
        let findings = counted(rule.findings, "finding");
        let skills = counted(rule.skills, "skill");
        format!("Rule {}, {}: {findings} in {skills}.\n", clean(&rule.code), rule.severity)
    };
    rules.iter().map(line).collect()
}

/// Number of rows from which a table follows the findings.
const SUMMARY_FROM_ROWS: usize = 5;

/// Renders the findings by rule and severity.
fn table(rules: &[RuleCount], look: TerminalCaps) -> String {
    let width = rules.iter().map(|rule| rule.code.len()).max().unwrap_or(0);
    let mut out = String::new();
    for rule in rules {
        let severity = super::finding::text_style(rule.severity)
            .paint(&format!("{:<7}", rule.severity.to_string()), look.color);
        let skills = counted(rule.skills, "skill");
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{severity}  {:<width$}  {:>6}  in {skills}", rule.code, rule.findings);
    }
    out
}

/// Returns the last line: the number of checked skills and of findings.
fn summary(report: &LintReport, fixing: bool, level: Option<Severity>) -> String {
    let skills = counted(report.skills, "skill");
    let mut out = if report.findings.is_empty() {
        let new = if report.baseline.is_some() { "new " } else { "" };
        format!("{skills}: no {new}findings")
    } else {
        // Those below the level were left out.
        let severities = [Severity::Error, Severity::Warning, Severity::Info].into_iter();
        let severities = severities.filter(|severity| level.is_none_or(|level| *severity >= level));
        let counts = severities.map(|severity| counted(report.count(severity), &severity.to_string()));
        format!("{skills}: {}", counts.collect::<Vec<_>>().join(", "))
    };
    let fixable = report.findings.iter().filter(|found| found.finding.fixable).count();
    if fixable > 0 && !fixing {
        let _ = write!(out, "; {} can be fixed with --fix", counted(fixable, "finding"));
    }
    if !report.ignored.is_empty() {
        let _ = write!(out, "; {} ignored by comments", report.ignored.len());
    }
    if let Some(change) = report.baseline {
        let _ = write!(out, "; {} known, {} of the baseline resolved", change.known, change.resolved);
    }
    out
}

/// `skills lint --rules`.
fn rules(cx: &mut Context, format: LintFormat) -> Result<Exit, Failure> {
    let rules = lint_rules();
    match format {
        LintFormat::Text => {
            let look = cx.out.look;
            for rule in &rules {
                cx.out.text(&described(rule, look))?;
            }
        }
        LintFormat::Json => cx.out.value(&serde_json::json!({ "rules": rules }))?,
        LintFormat::Github | LintFormat::Sarif => {
            return Err(Failure::usage("--rules prints text, or JSON with --format json"));
        }
    }
    Ok(Exit::Success)
}

fn described(rule: &LintRule, look: TerminalCaps) -> String {
    let severity = super::finding::text_style(rule.severity).paint(&rule.severity.to_string(), look.color);
    let fixable = if rule.fixable { ", fixed by --fix" } else { "" };
    let ignorable = if rule.can_be_ignored { "" } else { ", cannot be ignored" };
    let mut out =
        format!("{} ({severity}{fixable}{ignorable})\n", TextStyle::Strong.paint(&rule.code, look.color));
    for (label, text) in [("finds", &rule.subject), ("reason", &rule.reason), ("help", &rule.help)] {
        let rows = look.rows(&format!("  {label:<8}"), "          ", text);
        out.extend(rows.into_iter().map(|row| row + "\n"));
    }
    for (at, line) in rule.example.lines().enumerate() {
        let label = if at == 0 { "example" } else { "" };
        let line = format!("  {label:<8}{}", safe_text::line(line));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_of_an_excerpt_fits_the_terminal() {
        let path = format!("skills/x{}1 skill: no findings/SKILL.md", " ".repeat(80));
        let screen = TerminalCaps { color: false, unicode: true, width: 80, terminal: true };
        let header = header_path(&path, [(2, 1), (120, 17)].into_iter(), screen);
        assert_eq!(cells(&format!("     ,-[{header}:120:17]")), 80, "{header}");
        assert!(header.ends_with("/SKILL.md"), "{header}");
        assert_eq!(header_path(&path, std::iter::empty(), screen), path, "without an excerpt");
        let piped = TerminalCaps { terminal: false, ..screen };
        assert_eq!(header_path(&path, [(2, 1)].into_iter(), piped), path);
    }

    #[test]
    fn clean_result_is_stated() {
        let report = LintReport { skills: 16, ..LintReport::default() };
        assert_eq!(summary(&report, false, None), "16 skills: no findings");
    }
}
