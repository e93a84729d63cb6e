//! `skills man`: the manual pages, from the same definition as the arguments.

use std::fmt::Write as _;
use std::fs;

use super::Context;
use super::args::{self, EXIT_CODES, ManArgs};
use super::failure::{Exit, Failure};

pub fn run(cx: &mut Context, args: &ManArgs) -> Result<Exit, Failure> {
    match &args.dir {
        None => cx.out.raw(&page(&args::command())?)?,
        Some(dir) => {
            fs::create_dir_all(dir).map_err(|e| Failure::written_file(dir, &e))?;
            for (name, page) in pages()? {
                let path = dir.join(name);
                // A link is replaced, not followed.
                if path.is_symlink() {
                    fs::remove_file(&path).map_err(|e| Failure::written_file(&path, &e))?;
                }
                fs::write(&path, page).map_err(|e| Failure::written_file(&path, &e))?;
                cx.out.line(path.display().to_string())?;
            }
        }
    }
    Ok(Exit::Success)
}

/// Returns every page by file name (`skills.1`, `skills-discover.1`, `skills-config-path.1`).
fn pages() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut root = args::command();
    root.build();
    let mut out = Vec::new();
    let mut open = vec![root];
    while let Some(command) = open.pop() {
        open.extend(command.get_subcommands().filter(|sub| sub.get_name() != "help").cloned());
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        out.push((format!("{name}.1"), page(&command.display_name(name))?));
    }
    out.sort();
    Ok(out)
}

fn page(command: &clap::Command) -> Result<Vec<u8>, Failure> {
    // The exit codes have a separate section instead of being part of the extra text.
    let extra = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let command = command.clone().after_help(extra.replace(EXIT_CODES, "").trim().to_owned());
    let has_version = command.get_version().is_some();
    let man = clap_mangen::Man::new(command);
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    man.render_subcommands_section(&mut out)?;
    if extra.trim() != EXIT_CODES && !extra.trim().is_empty() {
        man.render_extra_section(&mut out)?;
    }
    out.extend_from_slice(exit_status().as_bytes());
    if has_version {
        man.render_version_section(&mut out)?;
    }
    Ok(out)
}

/// Returns the table of exit codes in roff.
fn exit_status() -> String {
    let mut out = ".SH \"EXIT STATUS\"\n".to_owned();
    for line in EXIT_CODES.lines().skip(1) {
        if let Some((code, meaning)) = line.trim().split_once(' ') {
            let _ = write!(out, ".TP\n{code}\n{}\n", meaning.trim());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_the_exit_codes() {
        let pages = pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"skills.1") && names.contains(&"skills-config-check.1"), "{names:?}");
        for (name, page) in &pages {
            let page = String::from_utf8_lossy(page);
            assert!(page.contains("EXIT STATUS") && page.contains("not found"), "{name}");
        }
    }
}
