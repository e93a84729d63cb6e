//! Redacts secrets from recorded data: by the name of a field, and by the form of a text.

use serde_json::Value;

use super::line::digest;

/// Replacement of a secret.
pub const REDACTED: &str = "[redacted]";
/// Maximum length of a recorded text in bytes; longer texts are replaced by size and digest.
const MAX_TEXT_BYTES: usize = 4096;

/// Parts of names whose value is a secret, without separators.
const NAMES: [&str; 18] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "privatekey",
    "accesskey",
    "clientkey",
    "signingkey",
    "sessionid",
    "credentials",
    "passcode",
    "secretkey",
    "secretkeybase",
];

/// Complete names whose value is a secret; as a part of a name they would be too broad.
const SHORT_NAMES: [&str; 3] = ["pwd", "dbpass", "dbpwd"];

/// Prefixes of secrets, with the minimum length of such a word.
const WORDS: [(&str, usize); 22] = [
    // Keys of this program's service.
    ("skw_", 16),
    ("sk-", 20),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("ghu_", 20),
    ("ghr_", 20),
    ("github_pat_", 24),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("AKIA", 20),
    ("ASIA", 20),
    ("npm_", 20),
    ("hf_", 20),
    ("sk_test_", 16),
    ("whsec_", 16),
    ("eyJ", 40),
    ("AIza", 35),
];

/// Returns a value without apparent secrets and long texts.
pub fn redacted(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(name, value)| {
                    let hidden = is_secret_name(&name) && !matches!(value, Value::Null | Value::Bool(_));
                    let value = if hidden { Value::from(REDACTED) } else { redacted(value) };
                    (name, value)
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(redacted).collect()),
        Value::String(text) => Value::String(redacted_text(&text)),
        other => other,
    }
}

fn is_secret_name(name: &str) -> bool {
    let normalized: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    // `max_tokens` and `token_count` are numbers.
    let counts = normalized.contains("tokens") || normalized.contains("tokencount");
    (NAMES.iter().any(|secret| normalized.contains(secret)) && !counts) || SHORT_NAMES.contains(&&*normalized)
}

/// Returns a text without apparent secrets; a long text is replaced by its digest.
pub fn redacted_text(text: &str) -> String {
    if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY") {
        return REDACTED.to_owned();
    }
    if text.len() > MAX_TEXT_BYTES {
        return format!("[{} bytes, sha256 {}]", text.len(), digest(text.as_bytes()));
    }
    let mut out = String::with_capacity(text.len());
    let mut after_scheme = false;
    for segment in text.split_inclusive(is_boundary) {
        let word = segment.trim_end_matches(is_boundary);
        let secret = if after_scheme && word.len() >= 8 { Some(0) } else { known_secret(word) };
        match secret {
            Some(start) => {
                out.push_str(&segment[..start]);
                out.push_str(REDACTED);
                out.push_str(&segment[word.len()..]);
            }
            None => out.push_str(segment),
        }
        // `Bearer …` and `Basic …` (RFC 7235), and the password of a URL (`https://ana:…@host`).
        after_scheme = matches!(word.to_ascii_lowercase().as_str(), "bearer" | "basic")
            || (after_scheme && segment.trim().is_empty());
    }
    without_assignments(&without_userinfo(&out))
}

/// Returns where in a word a secret of a known form begins: at its start, or after punctuation.
fn known_secret(word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let starts = word.char_indices().scan('/', |before, (at, c)| {
        let is_start = is_part(c) && !is_part(*before);
        *before = c;
        Some((at, is_start))
    });
    let is_secret = |at: &usize| {
        let rest = &word[*at..];
        WORDS.iter().any(|(start, least)| rest.starts_with(start) && rest.len() >= *least)
    };
    starts.filter(|(_, is_start)| *is_start).map(|(at, _)| at).find(is_secret)
}

fn is_boundary(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ';' | '(' | ')' | '<' | '>' | '=' | '&' | '?')
}

/// Characters that may surround a name and its value.
const QUOTES: [char; 3] = ['"', '\'', '`'];
/// Headers whose complete value is a secret: `Authorization: Token …`, `Cookie: a=…; b=…`.
const HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];
/// Values that are not secrets: schemes, which precede the secret, and words for an absent one.
const NO_SECRETS: [&str; 6] = ["bearer", "basic", "null", "none", "true", "false"];

/// Redacts values after `password=`, `token:` and similar names.
fn without_assignments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['=', ':', '>']) {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        out.push_str(&rest[..=at]);
        rest = after;
        let named = before.trim_end().trim_end_matches('+').trim_end_matches(QUOTES).trim_end_matches('\\');
        let name =
            named.rsplit(|c: char| !c.is_alphanumeric() && !"_-.".contains(c)).next().unwrap_or_default();
        // `<password>…</password>`
        let is_tag = named[..named.len() - name.len()].ends_with('<');
        if !ends_in_secret_name(name) || out.ends_with('>') != is_tag {
            continue;
        }
        let enclosing = named[..named.len() - name.len()].chars().next_back().filter(|c| QUOTES.contains(c));
        let value = value_start(after);
        let escaped = value.starts_with('\\');
        let value = value.trim_start_matches('\\');
        // `password=(x)` and `password=<x>`.
        let value = value.trim_start_matches(['(', '<', '{']);
        let quote = value.chars().next().filter(|first| QUOTES.contains(first));
        let value = quote.map_or(value, |quote| &value[quote.len_utf8()..]);
        let end = match quote {
            Some(quote) => quote_end(value, quote, escaped),
            None if HEADERS.contains(&name.to_ascii_lowercase().as_str()) => header_end(value, enclosing),
            None => value.find(|c: char| is_boundary(c) || "]}`\\".contains(c)),
        };
        let secret = &value[..end.unwrap_or(value.len())];
        let lowercase = secret.to_ascii_lowercase();
        if secret.is_empty()
            || secret.starts_with(':')
            || NO_SECRETS.contains(&lowercase.as_str())
            || lowercase == REDACTED
        {
            continue;
        }
        out.push_str(&after[..after.len() - value.len()]);
        out.push_str(REDACTED);
        rest = &value[secret.len()..];
    }
    out + rest
}

/// Returns a text from where the value of an assignment begins: also after `=>`, and on the next line if that is
/// indented.
fn value_start(text: &str) -> &str {
    let text = text.trim_start_matches([' ', '\t', '=', '>']);
    // Also after the mark of a YAML block.
    let block = text.trim_start_matches(['|', '>', '-', '+']);
    let text = if block.starts_with(['\r', '\n']) { block } else { text };
    let line = text.trim_start_matches(['\r', '\n']);
    if line.len() < text.len() && line.starts_with([' ', '\t']) { line.trim_start() } else { text }
}

/// Returns where a quoted value ends: at the next quote that is as escaped as the first one.
fn quote_end(value: &str, quote: char, escaped: bool) -> Option<usize> {
    let ends = value.match_indices(quote).map(|(at, _)| at);
    let is_escaped = |at: usize| value[..at].ends_with('\\');
    ends.map(|at| (at, is_escaped(at)))
        .find(|(_, is_escaped)| *is_escaped == escaped)
        .map(|(at, is_escaped)| at - usize::from(is_escaped))
}

/// Returns where the value of a header ends: with its last line, of which those that are indented are a part, or at the
/// quote that encloses the header.
fn header_end(value: &str, enclosing: Option<char>) -> Option<usize> {
    let line_end =
        value.match_indices('\n').map(|(at, _)| at).find(|at| !value[at + 1..].starts_with([' ', '\t']));
    let quote_end = enclosing.and_then(|quote| value.find(quote));
    line_end.into_iter().chain(quote_end).min()
}

/// Returns whether a name in a text ends with the name of a secret; a match anywhere in it would be too broad for
/// sentences.
fn ends_in_secret_name(name: &str) -> bool {
    let normalized: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    NAMES.iter().any(|secret| normalized.ends_with(secret)) || SHORT_NAMES.contains(&&*normalized)
}

/// Redacts the user information of a URL: `https://ana:…@host` (RFC 3986, section 3.2.1), or a token in its place. A
/// password may contain characters that it should not, so the last `@` of the word ends it.
fn without_userinfo(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, mark)) =
        ["://", ":\\/\\/"].iter().filter_map(|mark| Some((rest.find(mark)?, mark))).min()
    {
        let (before, after) = rest.split_at(at + mark.len());
        out.push_str(before);
        let is_end = |c: char| c.is_whitespace() || QUOTES.contains(&c) || matches!(c, '<' | '>');
        let word = &after[..after.find(is_end).unwrap_or(after.len())];
        let authority = &word[..word.find(['/', '?', '#']).unwrap_or(word.len())];
        // `https://example.com/@ana` has no user information, `https://ana:a/b@example.com` has.
        let all = if authority.contains(':') && !is_port(authority) { word } else { authority };
        rest = after;
        if let Some((user, _)) = all.rsplit_once('@') {
            if let Some((name, _)) = user.split_once(':') {
                out.push_str(name);
                out.push(':');
            }
            out.push_str(REDACTED);
            rest = &after[user.len()..];
        }
    }
    out + rest
}

/// Returns whether a host is followed by the number of a port.
fn is_port(authority: &str) -> bool {
    authority.rsplit_once(':').is_some_and(|(_, port)| port.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_secrets_are_redacted_by_name_and_pattern() {
        let details = json!({
            "password": "hunter2", "db": {"API-Key": "abc", "host": "db.internal"},
            "headers": ["Authorization: Bearer abcdefgh12345678", "accept: */*"],
            "note": "use ghp_0123456789abcdefghijklmnop, please",
            "url": "https://ana:hunter2@example.com/x?y=1",
            "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
            "max_tokens": 100, "token": null, "secret": true, "amount": 42, "text": "the basic plan is fine",
        });
        insta::assert_snapshot!(serde_json::to_string_pretty(&redacted(details)).unwrap());
    }

    #[test]
    fn secrets_inside_texts_are_redacted() {
        let cases = [
            ("failed: {\"error\":\"password=hunter2 was wrong\"}", "hunter2"),
            ("{\"api_key\": \"abc def\", \"n\": 1}", "abc def"),
            ("GET /x?page=2&access_token=abc123&y=1", "abc123"),
            ("secret: s3cr3t", "s3cr3t"),
            ("DB_PASSWORD = 'correct horse'", "correct horse"),
            ("Authorization: Bearer abcdefgh12345678", "abcdefgh"),
            ("the key skw_0123456789abcdefghijklmnop leaked", "skw_"),
            ("token==abc", "abc"),
            ("the key is `skw_0123456789abcdefghijklmnop`", "skw_"),
            ("key:skw_0123456789abcdefghijklmnop", "skw_"),
            ("[skw_0123456789abcdefghijklmnop] {ghp_0123456789abcdefghijklmnop}", "0123"),
            ("https://ghp_0123456789abcdefghijklmnop:x@github.com", "ghp_"),
            ("Authorization: Token abc123", "abc123"),
            ("curl -H 'Cookie: sid=s3cr3t; csrf=t0k3n' https://example.com", "t0k3n"),
            ("body {\\\"password\\\":\\\"s3cr3t\\\"} end", "s3cr3t"),
            ("password: \"ab\\\"s3cr3t\" x", "s3cr3t"),
            ("Authorization: Digest username=\"kim\", response=\"s3cr3t\"", "s3cr3t"),
            ("Cookie: a=1\r\n b=s3cr3t\nhost: x", "s3cr3t"),
            ("token:\n  s3cr3t", "s3cr3t"),
            ("token => \"s3cr3t\"", "s3cr3t"),
            ("Bearer  abcdefgh12345678", "abcdefgh"),
            ("-----BEGIN PGP PRIVATE KEY BLOCK-----\ns3cr3t", "s3cr3t"),
            ("password=(s3cr3t)", "s3cr3t"),
            ("password=<s3cr3t>", "s3cr3t"),
            ("password+=s3cr3t", "s3cr3t"),
            ("password: |\n  s3cr3t", "s3cr3t"),
            ("<password>s3cr3t</password>", "s3cr3t"),
            ("Server=h;Pwd=s3cr3t", "s3cr3t"),
            ("DB_PASS=s3cr3t", "s3cr3t"),
            ("SECRET_KEY_BASE=s3cr3t", "s3cr3t"),
            ("https://s3cr3ttoken@github.com/x", "s3cr3t"),
            ("https:\\/\\/ana:s3cr3t@example.com", "s3cr3t"),
            ("postgres://ana:s3cr3t/x@db.internal/runs", "s3cr3t"),
            ("postgres://ana:s3cr3t?x@db.internal/runs", "s3cr3t"),
            ("npm_0123456789abcdefghijklmnop", "0123"),
        ];
        for (text, secret) in cases {
            let Value::String(clean) = redacted(Value::from(text)) else { panic!() };
            assert!(!clean.contains(secret) && clean.contains(REDACTED), "{text}: {clean}");
        }
        for text in [
            "max_tokens: 5",
            "Secretary: Ann",
            "https://example.com/token",
            "https://example.com/@ana",
            "https://example.com:8080/@ana",
            "a <b>c</b> d",
            "use Token::new()",
            "password:",
            "password:\nnext",
            "a=b",
        ] {
            assert_eq!(redacted(Value::from(text)), Value::from(text));
        }
    }

    #[test]
    fn long_texts_are_recorded_by_size_and_digest() {
        let Value::String(summary) = redacted(Value::String("x".repeat(5000))) else { panic!() };
        assert!(summary.starts_with("[5000 bytes, sha256 ") && summary.len() < 100, "{summary}");
    }
}
