//! The editor's command line: the program, and how a file and a line are passed to it.

use std::path::Path;

/// Editors that accept `+LINE FILE`; an editor in no list gets only the file.
const PLUS_LINE: [&str; 15] = [
    "vi",
    "vim",
    "nvim",
    "gvim",
    "view",
    "nano",
    "emacs",
    "emacsclient",
    "kak",
    "micro",
    "joe",
    "ne",
    "mg",
    "mcedit",
    "gedit",
];
/// Editors that accept `FILE:LINE`.
const COLON_LINE: [&str; 6] = ["hx", "helix", "zed", "subl", "amp", "lapce"];
/// Editors that accept `--goto FILE:LINE` and need `--wait` to block until the file is closed.
const GOTO: [&str; 6] = ["code", "code-insiders", "codium", "cursor", "windsurf", "positron"];

/// Returns the program and its arguments. `command_line` is a command line as in `EDITOR`, with quotes as in a shell.
///
/// # Errors
/// Returns an error if the command is empty or a quote is not closed.
pub fn command(command_line: &str, file: &Path, line: u32) -> Result<(String, Vec<String>), String> {
    let mut words = words(command_line)
        .map_err(|open| format!("unclosed quote {open} in the editor command `{command_line}`"))?
        .into_iter();
    let program = words.next().ok_or("the editor command is empty")?;
    let mut arguments: Vec<String> = words.collect();
    let name = Path::new(&program).file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let is = |names: &[&str]| names.contains(&name.as_str());
    let file = file.display().to_string();
    let has_flag = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if is(&GOTO) {
        if !has_flag("--wait") && !has_flag("-w") {
            arguments.push("--wait".to_owned());
        }
        arguments.extend(["--goto".to_owned(), format!("{file}:{line}")]);
    } else if is(&COLON_LINE) {
        arguments.push(format!("{file}:{line}"));
    } else if is(&PLUS_LINE) {
        arguments.extend([format!("+{line}"), file]);
    } else if name == "kate" {
        arguments.extend(["--block".to_owned(), "--line".to_owned(), line.to_string(), file]);
    } else {
        arguments.push(file);
    }
    Ok((program, arguments))
}

/// Splits a command line into words; quotes preserve spaces, a backslash escapes the next character.
///
/// # Errors
/// Returns the quote that is not closed.
pub(crate) fn words(text: &str) -> Result<Vec<String>, char> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(letter),
            (_, '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if let Some(open) = quote {
        return Err(open);
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(command_line: &str) -> String {
        let (program, arguments) = command(command_line, Path::new("/s/SKILL.md"), 12).unwrap();
        format!("{program} {}", arguments.join(" "))
    }

    #[test]
    fn each_editor_receives_the_line_in_its_syntax() {
        for (command_line, expected) in [
            ("vim", "vim +12 /s/SKILL.md"),
            ("/usr/bin/nvim -p", "/usr/bin/nvim -p +12 /s/SKILL.md"),
            ("emacsclient -t", "emacsclient -t +12 /s/SKILL.md"),
            ("hx", "hx /s/SKILL.md:12"),
            ("code", "code --wait --goto /s/SKILL.md:12"),
            ("code -w", "code -w --goto /s/SKILL.md:12"),
            ("ed", "ed /s/SKILL.md"),
        ] {
            assert_eq!(line(command_line), expected);
        }
    }

    #[test]
    fn quotes_keep_spaces_and_must_be_closed() {
        assert_eq!(
            line("'/opt/my editor/vim' -c \"set nu\""),
            "/opt/my editor/vim -c set nu +12 /s/SKILL.md"
        );
        assert!(command("vim 'x", Path::new("f"), 1).unwrap_err().contains("unclosed"));
        assert!(command("  ", Path::new("f"), 1).unwrap_err().contains("empty"));
    }
}
