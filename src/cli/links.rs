//! Hyperlinks in the output of commands (OSC 8): to local files, and to runs of a service. They are added to formatted
//! text, so that they do not affect its layout.

use std::path::Path;

use skills_config::terminal::{file_uri, hyperlink, is_terminal_local};
use skills_config::{Config, Env};

/// What is linked; nothing in a pipe.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hyperlinks {
    /// Whether paths are valid for the terminal's machine.
    files: bool,
    /// Address of the service with the runs.
    service: Option<String>,
}

impl Hyperlinks {
    /// Creates links as configured, for an interactive terminal.
    pub fn of(config: &Config, env: &Env) -> Self {
        if !config.terminal.hyperlinks {
            return Self::default();
        }
        let service = config.connect.as_deref().map(|address| address.trim_end_matches('/').to_owned());
        Self { files: service.is_none() && is_terminal_local(env), service }
    }

    /// Links the first occurrence of a file in the text.
    pub fn file(&self, text: String, shown: &str, path: &Path) -> String {
        match file_uri(path).filter(|_| self.files && !shown.is_empty()) {
            Some(uri) => text.replacen(shown, &hyperlink(&uri, shown), 1),
            None => text,
        }
    }

    /// Links the first occurrence of each run in the text; `runs` are pairs of displayed text and id, in the order of
    /// the text.
    pub fn runs<'a>(&self, text: String, runs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
        let Some(service) = &self.service else { return text };
        let (mut out, mut rest) = (String::new(), text.as_str());
        for (shown, id) in runs.filter(|(shown, _)| !shown.is_empty()) {
            if let Some((before, after)) = rest.split_once(shown) {
                out += before;
                out += &hyperlink(&format!("{service}/v1/runs/{id}"), shown);
                rest = after;
            }
        }
        out + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_terminal_can_open_is_linked() {
        let files = Hyperlinks { files: true, service: None };
        let service = Hyperlinks { files: false, service: Some("https://gate.example".to_owned()) };
        let text = || "at /a b/c, run 1f2e and 77aa".to_owned();
        let path = Path::new("/a b/c");
        assert_eq!(
            files.file(text(), "/a b/c", path),
            "at \x1b]8;;file:///a%20b/c\x1b\\/a b/c\x1b]8;;\x1b\\, run 1f2e and 77aa"
        );
        let runs = || [("1f2e", "0199-1f2e"), ("gone", "0199-gone"), ("77aa", "0199-77aa")].into_iter();
        let linked = service.runs(text(), runs());
        assert_eq!(linked.matches("\x1b]8;;https://gate.example/v1/runs/0199-").count(), 2, "{linked:?}");
        assert_eq!((files.runs(text(), runs()), service.file(text(), "/a b/c", path)), (text(), text()));
        assert_eq!(Hyperlinks::default().file(text(), "/a b/c", path), text());
    }
}
