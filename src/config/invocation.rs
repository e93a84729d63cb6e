//! The global options with which this program was invoked, so that a command that is copied or printed refers to the
//! same skills and the same runs.

use skills_skill::safe_text;

/// Commands that are rejected with `--connect`.
const LOCAL: [&str; 17] = [
    "serve",
    "trust",
    "policy",
    "db",
    "audit",
    "bisect",
    "demo",
    "man",
    "keys",
    "lint",
    "eval",
    "scaffold",
    "package-prepare",
    "package-validate",
    "config",
    "schema",
    "completions",
];

/// The program's name with its global options. Never contains a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation(Vec<String>);

impl Default for Invocation {
    /// Creates an invocation without options.
    fn default() -> Self {
        Self::with(Vec::new())
    }
}

impl Invocation {
    pub fn with(options: Vec<String>) -> Self {
        Self(std::iter::once("skills".to_owned()).chain(options).collect())
    }

    /// Returns whether the commands are sent to a service.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.0.iter().any(|option| option == "--connect")
    }

    /// Returns whether only the shipped skills are used.
    #[must_use]
    pub fn is_demo(&self) -> bool {
        self.0.iter().any(|option| option == "--demo")
    }

    /// Returns a command line of these words.
    pub fn line(&self, words: &[&str]) -> String {
        let all = self.0.iter().map(String::as_str).chain(words.iter().copied());
        all.map(quoted).collect::<Vec<_>>().join(" ")
    }

    /// Adds the options to a complete command line, `skills …`, except those that it already has.
    pub fn completed(&self, line: &str) -> String {
        let own = self.line(&[]);
        match line.strip_prefix("skills ") {
            Some(rest) if !line.starts_with(&format!("{own} ")) => format!("{} {rest}", self.start_of(rest)),
            _ => line.to_owned(),
        }
    }

    /// Adds the options to the commands in a text, between backticks or in parentheses, except those that a command
    /// already has.
    pub fn completed_in(&self, text: &str) -> String {
        let own = self.line(&[]);
        if own == "skills" {
            return text.to_owned();
        }
        [("`skills ", '`'), ("(skills ", ')')].into_iter().fold(text.to_owned(), |text, (begin, end)| {
            let mut parts = text.split(begin);
            let first = parts.next().unwrap_or_default().to_owned();
            parts.fold(first, |text, rest| {
                let (command, after) =
                    rest.split_once(end).map_or((rest, String::new()), |(command, after)| {
                        let host = self.host_for(command);
                        let added = if after.starts_with(&host) { "" } else { host.as_str() };
                        (command, format!("{end}{added}{after}"))
                    });
                format!("{text}{}{} {command}{after}", &begin[..1], self.start_of(command))
            })
        })
    }

    /// Returns where a command must be run that decides what a service may execute: on the service's host.
    fn host_for(&self, command: &str) -> String {
        let address = self.0.iter().skip_while(|option| option.as_str() != "--connect").nth(1);
        address
            .filter(|_| command.starts_with("trust "))
            .map_or_else(String::new, |address| format!(" on the host of {}", safe_text::line(address)))
    }

    /// Returns the start of a command line: `skills` with the options that the command takes. An option that the
    /// command has itself is left out, because only `--root` can be repeated.
    fn start_of(&self, command: &str) -> String {
        let has = |option: &str| {
            command.split_whitespace().take_while(|word| *word != "--").any(|word| word == option)
        };
        if command.starts_with("--store ") || (self.is_remote() && (is_local(command) || has("--demo"))) {
            return "skills".to_owned();
        }
        let mut is_repeated = false;
        let own = self.0.iter().filter(|word| {
            // A value follows its option.
            if word.starts_with("--") {
                is_repeated = word.as_str() != "--root" && has(word.as_str());
            }
            !is_repeated
        });
        own.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Returns whether a command only works locally, such as those that start a service.
fn is_local(command: &str) -> bool {
    let word = command.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default();
    LOCAL.contains(&word)
}

/// Quotes a word for a POSIX shell; one with invisible characters in the form `$'…'`, which most shells know.
pub fn quoted(word: &str) -> String {
    if word.chars().any(safe_text::is_invisible) || safe_text::line(word) != word {
        let escaped = |c: char| match c {
            '\'' | '\\' => format!("\\{c}"),
            ' '..='~' => c.to_string(),
            _ => c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
        };
        return format!("$'{}'", word.chars().map(escaped).collect::<String>());
    }
    let is_unquoted = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,~".contains(c);
    // bash expands `~` after `=` and `:`, too, and zsh `=` at the beginning.
    let expands = word.starts_with(['~', '=']) || word.contains("=~") || word.contains(":~");
    if !word.is_empty() && word.chars().all(is_unquoted) && !expands {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Quotes the last words of a command, none of which is an option, even if it begins with `-`.
pub fn operands<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    arguments(words, "")
}

/// Quotes the operands of a command and puts them before its options, or after them if one begins with `-`.
pub fn arguments<'a>(operands: impl IntoIterator<Item = &'a str>, options: &str) -> String {
    let operands: Vec<&str> = operands.into_iter().collect();
    let is_last = operands.iter().any(|word| word.starts_with('-'));
    let line = operands.into_iter().map(quoted).collect::<Vec<_>>().join(" ");
    let parts = if is_last { [options, "--", line.as_str()] } else { [line.as_str(), options, ""] };
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Writes an option with its value, which may begin with `-`.
pub fn option(name: &str, value: &str) -> String {
    let separator = if value.starts_with('-') { '=' } else { ' ' };
    format!("{name}{separator}{}", quoted(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called() -> Invocation {
        Invocation::with(["--store", "sqlite:my runs.db"].map(str::to_owned).into())
    }

    #[test]
    fn command_repeats_the_options_of_this_process_once() {
        let line = called().completed("skills runs show 0198");
        assert_eq!(line, "skills --store 'sqlite:my runs.db' runs show 0198");
        assert_eq!(called().completed(&line), line);
        assert_eq!(called().completed("read the manual"), "read the manual");
        assert_eq!(Invocation::default().completed("skills list"), "skills list");
        assert_eq!(
            called().completed_in("run `skills trust x` (skills runs show 1), skills that run"),
            "run `skills --store 'sqlite:my runs.db' trust x` (skills --store 'sqlite:my runs.db' runs show 1), \
             skills that run"
        );
        let sentence = "skills are still being loaded; try again shortly";
        assert_eq!(called().completed_in(sentence), sentence);
    }

    #[test]
    fn a_command_for_another_store_keeps_it() {
        let text = "it is damaged; `skills --store sqlite:old.db db check` shows where";
        assert_eq!(called().completed_in(text), text);
    }

    #[test]
    fn an_option_of_the_command_is_not_repeated() {
        let called = Invocation::with(["--demo", "--store", "sqlite:a.db"].map(str::to_owned).into());
        assert_eq!(
            called.completed_in("run `skills --plain --demo`, or `skills lint`"),
            "run `skills --store sqlite:a.db --plain --demo`, or `skills --demo --store sqlite:a.db lint`"
        );
        assert_eq!(
            called.completed("skills --demo runs list --store sqlite:b.db"),
            "skills --demo runs list --store sqlite:b.db"
        );
        assert_eq!(
            called.completed("skills session run-script s1 a.py -- --demo"),
            "skills --demo --store sqlite:a.db session run-script s1 a.py -- --demo"
        );
        let remote = Invocation::with(["--connect", "http://gate:1"].map(str::to_owned).into());
        assert_eq!(remote.completed_in("run `skills --plain --demo`"), "run `skills --plain --demo`");
    }

    #[test]
    fn words_that_a_shell_expands_are_quoted() {
        for word in ["~/a", "a=~", "PATH=a:~root", "=ls"] {
            assert_eq!(quoted(word), format!("'{word}'"));
        }
        assert_eq!(quoted("pay~2=x:y"), "pay~2=x:y");
    }

    #[test]
    fn command_for_the_service_host_has_no_address() {
        let called = Invocation::with(["--connect", "http://gate:1"].map(str::to_owned).into());
        assert_eq!(
            called.completed_in("cannot be reached; is `skills serve` running there? (skills runs list)"),
            "cannot be reached; is `skills serve` running there? (skills --connect http://gate:1 runs list)"
        );
        assert_eq!(called.completed("skills serve --port 1"), "skills serve --port 1");
        let trusted = "review it, then run `skills trust a` on the host of http://gate:1";
        assert_eq!(called.completed_in("review it, then run `skills trust a`"), trusted);
        assert_eq!(called.completed_in(trusted), trusted);
        assert_eq!(called.completed("skills session list"), "skills --connect http://gate:1 session list");
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(
            [quoted("a-b.c"), quoted("it's"), quoted(""), quoted("{}")],
            ["a-b.c", r"'it'\''s'", "''", "'{}'"]
        );
        let hostile = "a\u{1b}]0;x\u{7}\n'\\\u{202e}é";
        assert_eq!(quoted(hostile), r"$'a\x1b]0;x\x07\x0a\'\\\xe2\x80\xae\xc3\xa9'");
        assert_eq!(quoted("Größe 1"), "'Größe 1'");
    }

    #[test]
    fn word_that_begins_with_a_dash_is_not_taken_for_an_option() {
        assert_eq!([operands(["csv"]), operands(["--revoke"])], ["csv", "-- --revoke"]);
        assert_eq!(operands(["a b", "-c"]), "-- 'a b' -c");
        assert_eq!([arguments(["x"], "--add"), arguments(["-x"], "--add")], ["x --add", "--add -- -x"]);
        assert_eq!([option("--domain", "a b"), option("--domain", "-x")], ["--domain 'a b'", "--domain=-x"]);
    }
}
