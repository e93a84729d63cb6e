//! Rules for every source file: a module comment, and no reference to documents outside of the project.

/// Whether the first line of a file states its subject.
pub fn has_module_comment(source: &str) -> bool {
    source.starts_with("//! ")
}

/// Planning papers are not part of the project: comments must not lean on them.
pub fn foreign_references(file: &str, text: &str, first_line: usize) -> Vec<String> {
    let mut out = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if let Some(word) = foreign_reference(line) {
            out.push(format!(
                "{file}:{}: `{word}` names a paper that readers do not have; say what it says",
                first_line + n
            ));
        }
    }
    out
}

/// Pages that are kept elsewhere.
const PAGES: &[&str] =
    &["requirements.md", "decisions.md", "visual-guide.md", "shared/spec", "shared/data/README"];

fn foreign_reference(line: &str) -> Option<String> {
    if let Some(page) = PAGES.iter().find(|page| line.contains(**page)) {
        return Some((*page).to_owned());
    }
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    for pair in words.windows(2) {
        let before = pair[0].to_ascii_lowercase();
        let counted = pair[1].bytes().all(|b| b.is_ascii_digit());
        if matches!(before.as_str(), "requirement" | "requirements") && is_number(pair[1])
            || matches!(before.as_str(), "issue") && counted
        {
            return Some(format!("{} {}", pair[0], pair[1]));
        }
    }
    // `F1` to `F12` are keys and C0, C1 are sets of control characters: those need the word before them.
    words
        .into_iter()
        .find(|w| is_number(w) && !w.starts_with('F') && !matches!(*w, "C0" | "C1"))
        .map(Into::into)
}

/// `A6`, `C10`: a capital of the numbering and one or two digits.
fn is_number(word: &str) -> bool {
    let mut chars = word.chars();
    matches!(chars.next(), Some('A'..='F'))
        && (2..=3).contains(&word.len())
        && chars.all(|c| c.is_ascii_digit())
}
