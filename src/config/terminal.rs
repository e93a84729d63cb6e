//! Optional features of terminals: hyperlinks (OSC 8,
//! <https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda>) and progress (OSC 9;4,
//! <https://conemu.github.io/en/AnsiEscapeCodes.html#ConEmu_specific_OSC>). Terminals cannot be queried for them, so
//! they are detected by environment variables.

use std::fmt::Write as _;
use std::path::Path;

use super::Env;

/// Features that a terminal supports, or that are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalFeatures {
    /// Whether text can be a hyperlink.
    pub hyperlinks: bool,
    /// Whether the terminal shows the progress of a command outside of its text: in the tab, in the task bar.
    pub progress: bool,
    /// Whether notifications can be withdrawn (OSC 99).
    pub withdrawable_notifications: bool,
}

impl TerminalFeatures {
    /// Detects the features of the terminal with this environment. `FORCE_HYPERLINK` overrides the detection of
    /// hyperlinks; `0` disables them.
    pub fn of(env: &Env) -> Self {
        let is = |name: &str, values: &[&str]| env.get(name).is_some_and(|value| values.contains(&value));
        let has = |name: &str| env.get(name).is_some();
        let is_dumb = is("TERM", &["dumb"]) || !(has("TERM") || has("WT_SESSION"));
        if is_dumb {
            return Self::default();
        }
        // A multiplexer keeps the variables of the terminal in which it was started, but passes on neither feature by
        // default.
        let term = env.get("TERM").unwrap_or_default();
        let is_inside =
            has("TMUX") || has("STY") || ["screen", "tmux"].iter().any(|name| term.starts_with(name));
        let vte = env.get("VTE_VERSION").and_then(|version| version.parse().ok()).unwrap_or(0);
        let hyperlinks = vte >= 5000
            || has("DOMTERM")
            || has("WT_SESSION")
            || has("KONSOLE_VERSION")
            || is(
                "TERM",
                &["xterm-kitty", "xterm-ghostty", "alacritty", "alacritty-direct", "foot", "wezterm"],
            )
            || is(
                "TERM_PROGRAM",
                &["Hyper", "iTerm.app", "terminology", "WezTerm", "vscode", "ghostty", "zed"],
            )
            || is("COLORTERM", &["xfce4-terminal"]);
        let progress = has("WT_SESSION")
            || is("ConEmuANSI", &["ON"])
            || is("TERM_PROGRAM", &["WezTerm", "ghostty"])
            || (is("TERM_PROGRAM", &["iTerm.app"])
                && env.get("TERM_FEATURES").is_some_and(|features| features.contains('P')));
        let forced = env.get("FORCE_HYPERLINK").map(|value| value.trim() != "0");
        Self {
            hyperlinks: forced.unwrap_or(hyperlinks && !is_inside),
            progress: progress && !is_inside,
            withdrawable_notifications: is("TERM", &["xterm-kitty"]) && !is_inside,
        }
    }
}

/// Returns whether paths of this machine are valid for the terminal, which is not the case over SSH.
pub fn is_terminal_local(env: &Env) -> bool {
    env.get("SSH_CONNECTION").is_none() && env.get("SSH_TTY").is_none()
}

/// Returns text with a hyperlink to an address; without the link if the address has characters that could end the
/// control sequence.
pub fn hyperlink(uri: &str, text: &str) -> String {
    if uri.bytes().all(|byte| byte.is_ascii_graphic()) {
        format!("\x1b]8;;{uri}\x1b\\{text}\x1b]8;;\x1b\\")
    } else {
        text.to_owned()
    }
}

/// Returns the `file:` URI of a path; `None` for a relative path.
pub fn file_uri(path: &Path) -> Option<String> {
    let mut uri = "file://".to_owned();
    for byte in path.is_absolute().then_some(path.as_os_str().as_encoded_bytes())? {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    Some(uri)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TerminalProgress {
    #[default]
    Hidden,
    /// In progress, with unknown completion.
    Busy,
    /// Completed percentage.
    Percent(u8),
}

impl TerminalProgress {
    /// Returns the progress of `done` items of `total`.
    pub fn of(done: usize, total: usize) -> Self {
        match done.saturating_mul(100).checked_div(total) {
            None => Self::Busy,
            Some(percent) => Self::Percent(u8::try_from(percent.min(100)).unwrap_or(100)),
        }
    }

    /// Returns the control sequence.
    pub fn sequence(self) -> String {
        let (state, percent) = match self {
            Self::Hidden => (0, 0),
            Self::Percent(percent) => (1, percent),
            Self::Busy => (3, 0),
        };
        format!("\x1b]9;4;{state};{percent}\x1b\\")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(variables: &[(&str, &str)]) -> (bool, bool) {
        let mut env = Env::at("/home/ana");
        env.vars = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let TerminalFeatures { hyperlinks, progress, .. } = TerminalFeatures::of(&env);
        (hyperlinks, progress)
    }

    #[test]
    fn terminals_are_detected_by_environment() {
        let term = ("TERM", "xterm-256color");
        assert_eq!(features(&[term]), (false, false));
        assert_eq!(features(&[term, ("TERM_PROGRAM", "ghostty")]), (true, true));
        assert_eq!(features(&[term, ("TERM_PROGRAM", "vscode")]), (true, false));
        assert_eq!(features(&[("TERM", "xterm-kitty")]), (true, false));
        assert_eq!(features(&[term, ("VTE_VERSION", "4900")]), (false, false));
        assert_eq!(features(&[term, ("VTE_VERSION", "7600")]), (true, false));
        assert_eq!(features(&[("WT_SESSION", "1")]), (true, true));
        let iterm = [term, ("TERM_PROGRAM", "iTerm.app"), ("TERM_FEATURES", "T3LrMSc7UUw9Ts3BFGsSyHNoSxFP")];
        assert_eq!(features(&iterm), (true, true));
    }

    #[test]
    fn dumb_terminals_and_multiplexers_have_no_features() {
        let ghostty = ("TERM_PROGRAM", "ghostty");
        for variables in [
            &[("TERM", "dumb"), ghostty][..],
            &[ghostty],
            &[("TERM", "tmux-256color"), ghostty],
            &[("TERM", "xterm"), ("TMUX", "/tmp/tmux-0/default,1,0"), ghostty],
            &[("TERM", "dumb"), ("FORCE_HYPERLINK", "1")],
        ] {
            assert_eq!(features(variables), (false, false), "{variables:?}");
        }
    }

    #[test]
    fn hyperlinks_can_be_forced_and_disabled() {
        assert!(features(&[("TERM", "xterm"), ("FORCE_HYPERLINK", "1")]).0);
        assert!(!features(&[("TERM", "xterm-kitty"), ("FORCE_HYPERLINK", "0")]).0);
    }

    #[test]
    fn addresses_cannot_end_the_sequence() {
        assert_eq!(hyperlink("https://x.example/a", "a"), "\x1b]8;;https://x.example/a\x1b\\a\x1b]8;;\x1b\\");
        for uri in ["https://x.example/\x1b\\", "https://x.example/\u{9c}", "a b"] {
            assert_eq!(hyperlink(uri, "a"), "a");
        }
        assert_eq!(file_uri(Path::new("/a b/\u{fc};\x1b")).unwrap(), "file:///a%20b/%C3%BC%3B%1B");
        assert_eq!(file_uri(Path::new("a")), None);
    }

    #[test]
    fn progress_is_a_state_and_a_percentage() {
        assert_eq!(TerminalProgress::of(1, 4).sequence(), "\x1b]9;4;1;25\x1b\\");
        assert_eq!(TerminalProgress::of(9, 4), TerminalProgress::Percent(100));
        assert_eq!(TerminalProgress::of(1, 0).sequence(), "\x1b]9;4;3;0\x1b\\");
        assert_eq!(TerminalProgress::Hidden.sequence(), "\x1b]9;4;0;0\x1b\\");
    }
}
