//! What a reader should know before trusting a bundle: text that hides, commands that run by
//! themselves, tools that the skill grants itself.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Subject, rules};
use crate::skill::notes::Notes;
use crate::skill::safe_text::{Hidden, hidden};

/// Characters of one kind: where the first stands, and how many there are.
struct Group {
    first: Range<usize>,
    count: usize,
    text: String,
}

/// Characters that cannot be seen. One finding a kind, at the first of them.
pub(super) fn hidden_characters(notes: &mut Notes<'_>) {
    let source = notes.source;
    if source.is_ascii() && !source.bytes().any(|b| (b < b' ' && !matches!(b, b'\t' | b'\n' | b'\r')) || b == 0x7f) {
        return;
    }
    let mut groups: BTreeMap<Hidden, Group> = BTreeMap::new();
    let mut before = None;
    let mut flag = false;
    for (at, c) in source.char_indices() {
        // Tags behind a black flag are part of an emoji (the flags of England, Scotland, Wales).
        flag = c == '\u{1f3f4}' || (flag && matches!(c, '\u{e0020}'..='\u{e007f}'));
        let kind = hidden(c, before).filter(|_| !(flag || (at == 0 && c == '\u{feff}') || joins(c, before)));
        if let Some(kind) = kind {
            let group = groups.entry(kind).or_insert(Group { first: at..at + c.len_utf8(), count: 0, text: String::new() });
            group.count += 1;
            let letter = u32::from(c).checked_sub(0xe0000).and_then(char::from_u32).filter(char::is_ascii_graphic);
            if kind == Hidden::Tag && group.text.len() < 60 {
                group.text.push(letter.unwrap_or(' '));
            }
        }
        before = Some(c);
    }
    for (kind, group) in groups {
        let smuggled = match kind {
            Hidden::Tag => true,
            Hidden::Bidi => source[group.first.clone()].chars().any(|c| !matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')),
            Hidden::Selector => group.count >= 4,
            Hidden::Control | Hidden::ZeroWidth => false,
        };
        let rule = if smuggled { &rules::SMUGGLED_TEXT } else { &rules::HIDDEN_CHARACTERS };
        let code = source[group.first.clone()].chars().next().map_or(0, u32::from);
        let spelt = match group.text.trim() {
            "" => String::new(),
            text => format!(", which spell “{text}”"),
        };
        let message = format!("the file holds {} {} (first: U+{code:04X}){spelt}", group.count, kind.name());
        notes.add(rule, None, group.first, message);
    }
}

/// Joiners in their proper place: between emoji, and inside words of scripts that need them.
fn joins(c: char, before: Option<char>) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
        && before.is_some_and(|b| {
            matches!(b, '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}') || (!b.is_ascii() && b.is_alphabetic())
        })
}

/// Commands that Claude Code runs when it loads the skill: `` !`command` `` and fences marked `!`.
pub(super) fn expansions(body: &str, start: usize, notes: &mut Notes<'_>) {
    let mut found: Vec<(Range<usize>, &str)> = Vec::new();
    for (at, _) in body.match_indices("!`") {
        let free = body[..at].chars().next_back().is_none_or(char::is_whitespace);
        let rest = &body[at + 2..];
        let command = rest.split(['`', '\n']).next().unwrap_or_default();
        let closed = rest[command.len()..].starts_with('`');
        if free && closed && !command.trim().is_empty() {
            found.push((at..at + command.len() + 3, command));
        }
    }
    for (at, _) in body.match_indices("```!") {
        if at == 0 || body[..at].ends_with('\n') {
            let command = body[at + 4..].lines().nth(1).unwrap_or_default();
            found.push((at..at + 4, command));
        }
    }
    found.sort_by_key(|(at, _)| at.start);
    if let Some((at, command)) = found.first() {
        let more = match found.len() - 1 {
            0 => String::new(),
            1 => ", and one more".to_owned(),
            more => format!(", and {more} more"),
        };
        let message = format!("loading the skill runs `{}`{more}", command.trim());
        notes.add(&rules::COMMAND_EXPANSION, None, at.start + start..at.end + start, message);
    }
}

/// Hooks in the frontmatter.
pub(super) fn hooks(subject: &Subject<'_>, notes: &mut Notes<'_>) {
    if subject.skill.clients.has_hooks {
        let message = "the skill brings hooks: commands that run on events, without being asked for";
        notes.add(&rules::HOOKS, Some("hooks"), subject.key("hooks"), message);
    }
}

/// Tools that read, plan or ask, but change nothing outside of the conversation.
const HARMLESS: &[&str] = &[
    "Read",
    "Grep",
    "Glob",
    "LS",
    "NotebookRead",
    "TodoRead",
    "TodoWrite",
    "TaskCreate",
    "TaskUpdate",
    "TaskList",
    "TaskGet",
    "AskUserQuestion",
    "BashOutput",
    "Skill",
    "WebSearch",
    "ToolSearch",
    "ExitPlanMode",
    "EnterPlanMode",
    "SlashCommand",
];

/// Tools that the skill grants itself: any shell command is a warning, other effects are worth knowing.
pub(super) fn grants(subject: &Subject<'_>, notes: &mut Notes<'_>) {
    let tools = &subject.skill.properties.allowed_tools;
    let at = subject.value("allowed-tools");
    let field = Some("allowed-tools");
    if let Some(shell) = tools.iter().find(|tool| grants_any_command(tool)) {
        let message = format!("`{shell}` lets the skill run any command without asking");
        notes.add(&rules::GRANTS_SHELL, field, at, message);
        return;
    }
    let acting: Vec<_> = tools.iter().filter(|tool| !is_harmless(tool)).collect();
    if !acting.is_empty() {
        let shown: Vec<_> = acting.iter().take(4).map(|tool| format!("`{tool}`")).collect();
        let more = match acting.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!("the skill grants itself {}{more}", shown.join(", "));
        notes.add(&rules::GRANTS_TOOLS, field, at, message);
    }
}

fn is_harmless(tool: &str) -> bool {
    HARMLESS.contains(&tool.split('(').next().unwrap_or(tool))
}

fn grants_any_command(tool: &str) -> bool {
    let (name, rest) = tool.split_once('(').map_or((tool, None), |(name, rest)| (name, Some(rest)));
    let any = rest.is_none_or(|rest| matches!(rest.trim_end_matches(')').trim(), "" | "*" | "*:*" | ":*" | "**"));
    tool == "*" || (any && matches!(name.to_ascii_lowercase().as_str(), "bash" | "shell" | "powershell" | "run_shell_command"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unlimited_shell_is_any_command() {
        for tool in ["Bash", "Bash(*)", "Bash(*:*)", "*", "shell"] {
            assert!(grants_any_command(tool), "{tool}");
        }
        for tool in ["Bash(git status:*)", "Read", "BashOutput", "Bash(python3:*)"] {
            assert!(!grants_any_command(tool), "{tool}");
        }
    }
}
