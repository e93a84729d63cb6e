//! `skills lint`: findings like a compiler's, for GitHub, or as JSON; and their repair.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::Context;
use super::args::{Deny, LintArgs, LintFormat};
use super::failure::{Done, Failure};
use super::output::{Ink, counted};
use skills_api::{LintReport, LintStyle};
use skills_config::shown;
use skills_skill::{Severity, safe_text};

/// Runs the command.
pub async fn run(cx: &mut Context, args: &LintArgs) -> Result<Done, Failure> {
    for path in &args.paths {
        let path = cx.cwd.join(path);
        path.metadata().map_err(|e| Failure::file(&path, &e))?;
    }
    let config = cx.config()?;
    let home = config.dirs.home.clone();
    let paths: Vec<PathBuf> = args.paths.iter().map(|path| cx.cwd.join(path)).collect();
    let report = skills_api::lint(config, paths, args.fix).await?;
    let cwd = cx.cwd.clone();
    if cx.out.json {
        cx.out.value(&report)?;
    } else {
        let look = cx.out.look;
        let style = match args.format {
            LintFormat::Github => LintStyle::Github,
            LintFormat::Text => {
                LintStyle::Report { colours: look.colour, unicode: look.unicode, width: look.width.min(110) }
            }
        };
        let path = |location: &Path| match args.format {
            // GitHub takes paths from the top of the repository, where its steps run.
            LintFormat::Github => location.strip_prefix(&cwd).unwrap_or(location).display().to_string(),
            LintFormat::Text => {
                let path = shown(location, &cwd, &home);
                path.strip_prefix("./").unwrap_or(&path).to_owned()
            }
        };
        for fixed in &report.fixed {
            let what = fixed.repaired.join(", ");
            let word = cx.out.ink(Ink::Good, "repaired");
            cx.out.line(format!("{word} {}: {what}", safe_text::line(&path(&fixed.location))))?;
        }
        for findings in report.by_file() {
            let text = skills_api::lint_text(findings, &path(&findings[0].path()), style);
            cx.out.raw(text.as_bytes())?;
        }
        if args.format == LintFormat::Text {
            let summary = summary(&report, args.fix);
            cx.out.line(summary)?;
        }
    }
    let warnings = args.deny == Some(Deny::Warnings) && report.count(Severity::Warning) > 0;
    let failed = report.count(Severity::Error) > 0 || warnings;
    Ok(if failed { Done::Findings } else { Done::Fine })
}

/// The last line: how much was looked at and what was found.
fn summary(report: &LintReport, fixing: bool) -> String {
    let skills = counted(report.skills, "skill", "skills");
    let [errors, warnings, remarks] =
        [Severity::Error, Severity::Warning, Severity::Info].map(|severity| report.count(severity));
    if errors + warnings + remarks == 0 {
        return format!("{skills}: no findings");
    }
    let mut out = format!(
        "{skills}: {}, {}, {}",
        counted(errors, "error", "errors"),
        counted(warnings, "warning", "warnings"),
        counted(remarks, "remark", "remarks")
    );
    let fixable = report.findings.iter().filter(|found| found.finding.fixable).count();
    if fixable > 0 && !fixing {
        let _ = write!(out, "; {} can be fixed with --fix", counted(fixable, "finding", "findings"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_run_says_so() {
        let report = LintReport { skills: 16, ..LintReport::default() };
        assert_eq!(summary(&report, false), "16 skills: no findings");
    }
}
