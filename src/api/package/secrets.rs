//! Detects files that look like secrets, by their name or by a line with the format of a known kind of key. The user
//! decides about each; the detection is deliberately simple.

use std::path::Path;

/// Names of files that only contain secrets.
const NAMES: [&str; 10] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials",
    "credentials.json",
    "service-account.json",
    "secrets.yaml",
    "secrets.yml",
    "secrets.json",
];
const EXTENSIONS: [&str; 7] = ["key", "p12", "pfx", "jks", "keystore", "kdbx", "ppk"];
/// The format of a key: its prefix, the allowed characters, their minimum number, and its name.
type Form = (&'static str, fn(char) -> bool, usize, &'static str);

const SECRET_FORMATS: [Form; 9] = [
    ("AKIA", upper_or_digit, 16, "an AWS access key"),
    ("ASIA", upper_or_digit, 16, "an AWS session key"),
    ("ghp_", word, 36, "a GitHub token"),
    ("gho_", word, 36, "a GitHub token"),
    ("github_pat_", word_or_underscore, 60, "a GitHub token"),
    ("glpat-", word_or_dash, 20, "a GitLab token"),
    ("xoxb-", word_or_dash, 24, "a Slack token"),
    ("sk-", word_or_dash, 40, "an API key"),
    ("AIza", word_or_dash, 35, "a Google API key"),
];

fn upper_or_digit(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit()
}

fn word(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

fn word_or_underscore(c: char) -> bool {
    word(c) || c == '_'
}

fn word_or_dash(c: char) -> bool {
    word_or_underscore(c) || c == '-'
}

/// Returns why a file looks like a secret, if it does: a phrase, with the line number if a line matches.
pub(super) fn suspicion(path: &str, content: &[u8]) -> Option<String> {
    let place = Path::new(path);
    let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
    let extension = place.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    if NAMES.contains(&name.as_str()) || EXTENSIONS.contains(&extension.as_str()) {
        return Some("its name suggests a secret".to_owned());
    }
    let text = std::str::from_utf8(content).ok()?;
    text.lines()
        .enumerate()
        .find_map(|(at, line)| Some(format!("line {} contains {}", at + 1, in_line(line)?)))
}

fn in_line(line: &str) -> Option<&'static str> {
    let begins = |text: &str| line.trim_start().starts_with(text);
    if begins("-----BEGIN ") && line.contains("PRIVATE KEY") && line.trim_end().ends_with("-----") {
        return Some("a private key");
    }
    SECRET_FORMATS.iter().find_map(|(prefix, follows, least, what)| {
        line.match_indices(prefix)
            .any(|(at, _)| {
                // Inside a longer word it is not a prefix.
                let free = !line[..at].chars().next_back().is_some_and(word_or_underscore);
                let rest = &line[at + prefix.len()..];
                let run = rest.chars().take_while(|c| follows(*c)).collect::<Vec<_>>();
                free && run.len() >= *least && distinct(&run) >= 8
            })
            .then_some(*what)
    })
}

/// Counts distinct characters: a repetition of a few (`xxxxxxxx…`) is a placeholder, not a key.
fn distinct(run: &[char]) -> usize {
    run.iter().collect::<std::collections::BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinguished_from_text_about_keys() {
        // Concatenated here, so that no scanner reports this file as a leak.
        let github = format!("token = {}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let pem = format!("-----BEGIN {} KEY-----", "RSA PRIVATE");
        let aws = format!("{}{}", "AKIA", "IOSFODNN7EXAMPLQ");
        for (path, text, found) in [
            ("a.md", github.as_str(), true),
            ("a.md", pem.as_str(), true),
            ("a.md", aws.as_str(), true),
            ("id_rsa", "x", true),
            ("deep/tls.KEY", "x", true),
            ("a.md", "tokens begin with ghp_ and 36 characters", false),
            ("a.md", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", false),
            ("a.md", "task-description-of-a-long-name-that-goes-on-and-on-and-on", false),
            ("keys.md", "a private key begins with -----BEGIN", false),
        ] {
            assert_eq!(suspicion(path, text.as_bytes()).is_some(), found, "{path}: {text}");
        }
    }
}
