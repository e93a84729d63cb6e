//! Syntax highlighting by roles. The grammars are parsed on first use (about 100 ms): call it off the UI task.

use std::sync::OnceLock;
use std::time::Duration;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::rich::Seg;
use crate::theme::Role;
use skills_base::idle_cache::IdleCache;
use skills_skill::safe_text;

/// Maximum size of highlighted texts and lines: some grammars are slow on longer ones.
const MAX_BYTES: usize = 256 * 1024;
const MAX_LINE: usize = 2_000;

/// How long the grammars stay loaded after the last use: their regular expressions, which are compiled when they are
/// needed, take up to 30 MB.
const KEEP_GRAMMARS: Duration = Duration::from_secs(10);

static GRAMMARS: IdleCache<SyntaxSet> = IdleCache::new("grammars", KEEP_GRAMMARS);

/// Names of no grammar.
const PLAIN: [&str; 3] = ["", "text", "txt"];

/// Scopes and their roles; the innermost listed scope determines the role.
fn scope_roles() -> &'static [(Scope, Role)] {
    static ROLES: OnceLock<Vec<(Scope, Role)>> = OnceLock::new();
    ROLES.get_or_init(|| {
        [
            ("comment", Role::CodeComment),
            ("punctuation.definition.comment", Role::CodeComment),
            ("entity.name.tag", Role::CodeKey),
            ("meta.mapping.key", Role::CodeKey),
            ("support.type.property-name", Role::CodeKey),
            ("entity.other.attribute-name", Role::CodeKey),
            ("markup.heading", Role::CodeKey),
            ("string", Role::CodeString),
            ("markup.raw", Role::CodeString),
            ("constant.numeric", Role::CodeNumber),
            ("constant.language", Role::CodeNumber),
            ("keyword.operator", Role::Text),
            ("keyword", Role::CodeKeyword),
            ("storage", Role::CodeKeyword),
            ("support.function", Role::CodeKeyword),
        ]
        .into_iter()
        .filter_map(|(name, role)| Scope::new(name).ok().map(|scope| (scope, role)))
        .collect()
    })
}

fn role_of(stack: &ScopeStack) -> Role {
    let listed = |scope: &Scope| scope_roles().iter().find(|(s, _)| s.is_prefix_of(*scope)).map(|(_, r)| *r);
    stack.as_slice().iter().rev().find_map(listed).unwrap_or(Role::Text)
}

/// Returns the grammar of a name, extension or alias.
fn find<'s>(syntaxes: &'s SyntaxSet, syntax: &str) -> Option<&'s SyntaxReference> {
    let token = match syntax {
        "shell" | "console" | "shell-session" => "sh",
        other => other,
    };
    syntaxes.find_syntax_by_token(token)
}

/// Highlights the lines of a text, each safe to draw; tabs become four spaces.
pub fn highlight(text: &str, syntax: &str) -> Vec<Vec<Seg>> {
    let is_known = !PLAIN.contains(&syntax) && text.len() <= MAX_BYTES;
    let syntaxes = is_known.then(|| GRAMMARS.get(|| Some(two_face::syntax::extra_newlines()))).flatten();
    let Some((syntaxes, grammar)) = syntaxes.as_ref().and_then(|all| Some((all, find(all, syntax)?))) else {
        return text.lines().map(|line| vec![Seg::new(clean(line), Role::Text)]).collect();
    };
    let mut state = ParseState::new(grammar);
    let mut stack = ScopeStack::new();
    let mut failed = false;
    let mut out = Vec::new();
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_end_matches(['\n', '\r']);
        failed = failed || line.len() > MAX_LINE;
        let ops = if failed { None } else { state.parse_line(line, syntaxes).ok() };
        let Some(ops) = ops else {
            failed = true;
            out.push(vec![Seg::new(clean(trimmed), Role::Text)]);
            continue;
        };
        let mut segs: Vec<Seg> = Vec::new();
        let mut at = 0;
        for (offset, op) in ops {
            let offset = offset.min(trimmed.len());
            push(&mut segs, trimmed.get(at..offset).unwrap_or_default(), role_of(&stack));
            at = at.max(offset);
            failed |= stack.apply(&op).is_err();
        }
        push(&mut segs, trimmed.get(at..).unwrap_or_default(), role_of(&stack));
        out.push(segs);
    }
    out
}

fn push(segs: &mut Vec<Seg>, text: &str, role: Role) {
    if text.is_empty() {
        return;
    }
    let text = clean(text);
    match segs.last_mut() {
        Some(last) if last.role == role => last.text.push_str(&text),
        _ => segs.push(Seg::new(text, role)),
    }
}

fn clean(text: &str) -> String {
    safe_text::line(&text.replace('\t', "    ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(line: &[Seg]) -> Vec<(&str, Role)> {
        line.iter().map(|s| (s.text.trim(), s.role)).filter(|(t, _)| !t.is_empty()).collect()
    }

    #[test]
    fn python_shows_keywords_strings_and_comments() {
        let lines = highlight("# note\nfrom pathlib import Path\nx = \"in.pdf\"\n", "python");
        assert_eq!(roles(&lines[0]), [("# note", Role::CodeComment)]);
        assert!(roles(&lines[1]).contains(&("from", Role::CodeKeyword)), "{:?}", lines[1]);
        assert!(roles(&lines[2]).contains(&("\"in.pdf\"", Role::CodeString)), "{:?}", lines[2]);
    }

    #[test]
    fn yaml_keys_and_values_have_different_styles() {
        let lines = highlight("name: pdf-tables\n", "yaml");
        assert_eq!(roles(&lines[0])[0], ("name", Role::CodeKey));
    }

    #[test]
    fn unknown_language_is_unstyled_and_control_characters_visible() {
        let lines = highlight("a\u{1b}[31m", "no-such-language");
        let text_of_line: String = lines[0].iter().map(|s| s.text.as_str()).collect();
        assert!(!text_of_line.contains('\u{1b}'), "{text_of_line:?}");
    }
}
