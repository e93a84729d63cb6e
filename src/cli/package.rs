//! `skills package-prepare` and `skills package-validate`: creates and validates packages of skills.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::Context;
use super::args::{PackagePrepareArgs, PackageValidateArgs};
use super::failure::{Exit, Failure};
use super::finding;
use super::output::{HANGING, TerminalCaps, TextStyle, byte_size, counted};
use skills_api::{CoreParts, PackageJob, PackageReport};
use skills_skill::safe_text;

/// Runs `skills package-prepare`.
pub async fn prepare(cx: &mut Context, args: &PackagePrepareArgs) -> Result<Exit, Failure> {
    let path = cx.cwd.join(&args.skill);
    // A folder requires no catalog; a name does.
    let bundle: PathBuf = if path.is_dir() {
        skills_base::files::canonicalize(&path).map_err(|error| Failure::file(&path, &error))?
    } else {
        cx.open(CoreParts::Catalog).await?.resolve(&args.skill)?.real_folder().to_owned()
    };
    let job = PackageJob {
        bundle,
        output: args.output.as_ref().map(|file| cx.cwd.join(file)),
        folder: cx.cwd.clone(),
        allow: args.allow.clone(),
        replace: args.force,
        dry_run: args.dry_run,
    };
    let report = skills_api::package_prepare(&job)?;
    let verb = if args.dry_run { "would pack" } else { "packed" };
    print_report(cx, &report, verb, "cannot be packaged", None)
}

/// Runs `skills package-validate`.
pub fn validate(cx: &mut Context, args: &PackageValidateArgs) -> Result<Exit, Failure> {
    let report = skills_api::package_validate(&cx.cwd.join(&args.file))?;
    print_report(cx, &report, "valid", "is not a valid package", Some(&args.file))
}

fn print_report(
    cx: &mut Context,
    report: &PackageReport,
    verb: &str,
    refusal: &str,
    file: Option<&Path>,
) -> Result<Exit, Failure> {
    cx.out.show(report, |look| render(report, verb, refusal, file, look))?;
    Ok(if report.good() { Exit::Success } else { Exit::ChecksFailed })
}

fn render(
    report: &PackageReport,
    verb: &str,
    refusal: &str,
    archive: Option<&Path>,
    look: TerminalCaps,
) -> String {
    let mut out = String::new();
    for found in &report.lint {
        out += &finding::render(&found.finding, look);
    }
    let push = |out: &mut String, head: &str, text: &str| {
        for row in look.rows(head, HANGING, text) {
            let _ = writeln!(out, "{row}");
        }
    };
    for found in &report.findings {
        let path = found.path.as_ref().map(|path| format!("{}: ", safe_text::line(path))).unwrap_or_default();
        let head = format!("  {} ", TextStyle::Bad.paint("error:", look.color));
        let text = format!("{path}{} ({})", safe_text::line(&found.message), safe_text::line(&found.code));
        push(&mut out, &head, &text);
    }
    for path in &report.left_out {
        let head = format!("  {} ", TextStyle::Muted.paint("excluded:", look.color));
        push(&mut out, &head, &safe_text::line(path));
    }
    for line in &report.runs {
        push(&mut out, "  includes ", &safe_text::line(line));
    }
    let id = report
        .skill_id
        .as_ref()
        .map_or_else(|| "the file".to_owned(), |id| safe_text::line(id.as_str()).into_owned());
    if !report.good() {
        let subject = match archive {
            Some(file) => safe_text::line(&file.display().to_string()).into_owned(),
            None => id,
        };
        let _ = writeln!(out, "`{subject}` {}", TextStyle::Bad.paint(refusal, look.color));
        return out;
    }
    if let Some(manifest) = &report.manifest {
        let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
        let files = counted(manifest.files.len(), "file");
        let verb = TextStyle::Good.paint(verb, look.color);
        let digest = manifest.digest;
        let _ = writeln!(out, "{verb} {id}: {files}, {}, sha256 {digest}", byte_size(bytes));
    }
    if let Some(file) = &report.file {
        let _ =
            writeln!(out, "  {} ({})", safe_text::line(&file.display().to_string()), byte_size(report.bytes));
    }
    out
}
