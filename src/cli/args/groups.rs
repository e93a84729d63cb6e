//! Groups the commands in `skills --help`, based on the same definition as everything else.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::styling::Style;

/// Groups of commands, in the order of the page. Commands in no group are listed under the last title.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Find and check skills",
        &[
            "discover",
            "list",
            "describe",
            "why",
            "visibility",
            "rivals",
            "collisions",
            "lint",
            "eval",
            "golden",
            "bisect",
            "governance",
        ],
    ),
    ("Run skills", &["run", "attach", "runs", "trace", "explain-capability", "activate"]),
    ("Maintain runs and the audit log", &["db", "audit", "audit-purge"]),
    (
        "Write and share skills",
        &["scaffold", "draft", "propose", "proposals", "package-prepare", "package-validate", "schema"],
    ),
    ("Inspect model context", &["session", "agents", "budget", "demo"]),
    ("Serve over HTTP and MCP", &["serve", "mcp", "openapi", "keys", "verify"]),
    ("Setup", &[]),
];

/// Returns the command with a help page that lists its commands by group.
pub fn grouped(command: Command) -> Command {
    let styles = command.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{}", painted(&format!("{title}:"), header));
        let others: Vec<&str> = command
            .get_subcommands()
            .map(Command::get_name)
            .filter(|name| !GROUPS.iter().any(|(_, names)| names.contains(name)))
            .collect();
        for name in if names.is_empty() { &others[..] } else { names } {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(
                text,
                "  {}{}{about}",
                painted(name, literal),
                " ".repeat(20usize.saturating_sub(name.len()))
            );
        }
        text.push('\n');
    }
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} \
            {{usage}}\n\n{text}{{options-heading}}{{options}}{{after-help}}"
    );
    let heading = painted("Options:", header);
    command.help_template(template.replace("{options-heading}", &format!("{heading}\n")))
}

fn painted(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_on_the_page_once_and_its_line_fits() {
        let mut command = crate::args::command();
        let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        let page = command.render_help().to_string();
        for name in names {
            let lines: Vec<&str> =
                page.lines().filter(|line| line.split_whitespace().next() == Some(name.as_str())).collect();
            assert_eq!(lines.len(), 1, "{name}: {page}");
            assert!(lines[0].len() <= 80 && lines[0].len() > 24, "{}", lines[0]);
        }
        for (_, names) in GROUPS {
            assert!(names.iter().all(|name| command.find_subcommand(name).is_some()), "{names:?}");
        }
    }
}
