//! Finds every path of a source file that leads to another top-level module ("room") of the crate.

use super::lexer::Token;

/// A path as resolved from the crate's root, e.g. `["skill", "SkillId"]`, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    pub path: Vec<String>,
    pub line: usize,
}

/// The module path of a file below `src`: `tui/frame/mod.rs` is `["tui", "frame"]`, `lib.rs` is `[]`.
pub fn module_of(file: &str) -> Vec<String> {
    let stem = file.trim_end_matches(".rs").trim_end_matches("/mod");
    if matches!(stem, "lib" | "main") { Vec::new() } else { stem.split('/').map(String::from).collect() }
}

/// Every path that begins with `crate`, `self`, `super` or the library's own name, through groups, resolved
/// from the module it stands in.
pub fn imports(module: &[String], tokens: &[Token]) -> Vec<Import> {
    let mut found = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                open.pop_if(|inner| inner.depth == depth);
            }
            "mod" if text(tokens, at + 2) == "{" => {
                open.push(Open { name: text(tokens, at + 1).to_owned(), depth });
            }
            "crate" | "self" | "super" | "skill_workbench" if starts_path(tokens, at) => {
                let mut here = module.to_vec();
                here.extend(open.iter().map(|o| o.name.clone()));
                let mut leaves = Vec::new();
                let end = path(tokens, at, &mut Vec::new(), &mut leaves);
                found.extend(
                    leaves
                        .into_iter()
                        .filter_map(|(path, line)| Some(Import { path: resolve(&here, &path)?, line })),
                );
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// An inline module that is still open.
struct Open {
    name: String,
    depth: i32,
}

fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| token.text.as_str())
}

/// A path starts here: `::` follows (or the root itself is imported), and this is not the tail of one.
fn starts_path(tokens: &[Token], at: usize) -> bool {
    let before = if at == 0 { "" } else { text(tokens, at - 1) };
    let imported_whole = before == "use" && matches!(text(tokens, at + 1), "as" | ";");
    before != "::" && (text(tokens, at + 1) == "::" || imported_whole)
}

/// Reads one path from `at` on, with its groups; answers where it ends.
fn path(
    tokens: &[Token],
    mut at: usize,
    prefix: &mut Vec<String>,
    leaves: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    let base = prefix.len();
    loop {
        let line = tokens.get(at).map_or(0, |t| t.line);
        match text(tokens, at) {
            "{" => {
                at += 1;
                while at < tokens.len() && text(tokens, at) != "}" {
                    if text(tokens, at) == "," {
                        at += 1;
                    } else {
                        at = path(tokens, at, prefix, leaves);
                        // Renames and anything unforeseen: on to the next member.
                        while at < tokens.len() && !matches!(text(tokens, at), "," | "}") {
                            at += 1;
                        }
                    }
                }
                prefix.truncate(base);
                return at + 1;
            }
            "<" | "" => break, // a turbofish: what is inside is read on its own
            word => {
                prefix.push(word.to_owned());
                at += 1;
                if text(tokens, at) != "::" {
                    leaves.push((prefix.clone(), line));
                    break;
                }
                at += 1;
            }
        }
    }
    if matches!(text(tokens, at), "<" | "") && leaves.last().is_none_or(|(p, _)| p != prefix) {
        leaves.push((prefix.clone(), tokens.get(at.saturating_sub(1)).map_or(0, |t| t.line)));
    }
    prefix.truncate(base);
    at
}

/// From the crate's root; `None` for a path that never leaves the module it starts in by `self`.
fn resolve(here: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut out: Vec<String> = match path.first().map(String::as_str) {
        Some("crate" | "skill_workbench") => Vec::new(),
        Some("self" | "super") => here.to_vec(),
        _ => return None,
    };
    for word in path {
        match word.as_str() {
            "crate" | "skill_workbench" | "self" => {}
            "super" => {
                out.pop();
            }
            other => out.push(other.to_owned()),
        }
    }
    Some(out)
}
