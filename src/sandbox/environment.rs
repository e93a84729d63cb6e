//! The environment of a script: empty except for a short list, and names that callers may not set.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::error::SandboxError;

/// Variables inherited from the program's own environment, if they are set.
const INHERITED: [&str; 3] = ["LANG", "LC_ALL", "TZ"];

/// Maximum total size of all values in bytes.
const MAX_BYTES: usize = 128 << 10;

const REASON_LOADS_CODE: &str = "it makes programs load code from outside the bundle";
const REASON_RESERVED: &str = "the sandbox sets it itself";

/// Names, and prefixes of names (with a `*`), that a caller may not set.
const REJECTED_VARIABLES: [(&str, &str); 38] = [
    ("LD_*", REASON_LOADS_CODE),
    ("DYLD_*", REASON_LOADS_CODE),
    ("GLIBC_TUNABLES", REASON_LOADS_CODE),
    ("GCONV_PATH", REASON_LOADS_CODE),
    ("LOCPATH", REASON_LOADS_CODE),
    ("NLSPATH", REASON_LOADS_CODE),
    ("MALLOC_*", REASON_LOADS_CODE),
    ("PYTHON*", REASON_LOADS_CODE),
    ("NODE_OPTIONS", REASON_LOADS_CODE),
    ("NODE_PATH", REASON_LOADS_CODE),
    ("NODE_EXTRA_CA_CERTS", REASON_LOADS_CODE),
    ("NODE_REPL_*", REASON_LOADS_CODE),
    ("RUBYOPT", REASON_LOADS_CODE),
    ("RUBYLIB", REASON_LOADS_CODE),
    ("GEM_*", REASON_LOADS_CODE),
    ("BUNDLE_*", REASON_LOADS_CODE),
    ("PERL5*", REASON_LOADS_CODE),
    ("PERLLIB", REASON_LOADS_CODE),
    ("LUA_*", REASON_LOADS_CODE),
    ("JAVA_TOOL_OPTIONS", REASON_LOADS_CODE),
    ("_JAVA_OPTIONS", REASON_LOADS_CODE),
    ("BASH_*", REASON_LOADS_CODE),
    ("BASHOPTS", REASON_LOADS_CODE),
    ("SHELLOPTS", REASON_LOADS_CODE),
    ("ENV", REASON_LOADS_CODE),
    ("ZDOTDIR", REASON_LOADS_CODE),
    ("PS4", REASON_LOADS_CODE),
    ("PROMPT_COMMAND", REASON_LOADS_CODE),
    ("IFS", "it changes how a shell splits words"),
    ("CDPATH", "it changes where `cd` goes"),
    ("GIT_*", REASON_LOADS_CODE),
    ("SSH_*", "it passes on a user's keys"),
    ("PATH", REASON_RESERVED),
    ("HOME", REASON_RESERVED),
    ("TMPDIR", REASON_RESERVED),
    ("TMP", REASON_RESERVED),
    ("TEMP", REASON_RESERVED),
    ("PWD", REASON_RESERVED),
];

/// Returns the complete environment of a script, by name: the variables that every script gets, then those of the
/// caller.
///
/// `own` looks up a variable of this program, `path` is the search path, `work` the private work directory.
pub(super) fn compose(
    variables: &BTreeMap<String, String>,
    own: impl Fn(&str) -> Option<OsString>,
    path: &str,
    work: &Path,
) -> Result<BTreeMap<String, String>, SandboxError> {
    let work = work.to_string_lossy();
    let mut out = BTreeMap::from([
        ("PATH".to_owned(), path.to_owned()),
        ("HOME".to_owned(), work.clone().into_owned()),
        ("TMPDIR".to_owned(), work.into_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
    ]);
    for name in INHERITED {
        if let Some(value) = own(name).and_then(|value| value.into_string().ok()) {
            out.insert(name.to_owned(), value);
        }
    }
    for (name, value) in variables {
        accept(name, value)?;
        out.insert(name.clone(), value.clone());
    }
    let size: usize = out.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > MAX_BYTES {
        let why = format!("{size} bytes, the maximum is {MAX_BYTES}; pass large data on stdin");
        return Err(SandboxError::bad("environment", why));
    }
    Ok(out)
}

/// Rejects an invalid name, and one of the list above.
fn accept(name: &str, value: &str) -> Result<(), SandboxError> {
    let named = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    if !named {
        return Err(SandboxError::bad(
            format!("variable {name:?}"),
            "a name has letters, digits and `_`, and does not begin with a digit",
        ));
    }
    if value.contains('\0') {
        return Err(SandboxError::bad(format!("variable `{name}`"), "its value contains a NUL byte"));
    }
    let upper = name.to_ascii_uppercase();
    let hit = REJECTED_VARIABLES.iter().find(|(pattern, _)| match pattern.strip_suffix('*') {
        Some(beginning) => upper.starts_with(beginning),
        None => upper == *pattern,
    });
    match hit {
        Some((_, why)) => Err(SandboxError::Variable { name: name.to_owned(), why }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str) -> Result<BTreeMap<String, String>, SandboxError> {
        let variables = BTreeMap::from([(name.to_owned(), "x".to_owned())]);
        compose(&variables, |_| None, "/usr/bin", Path::new("/work"))
    }

    #[test]
    fn loaders_are_refused_by_name() {
        for name in ["LD_PRELOAD", "ld_preload", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "ENV", "PATH"] {
            let message = with(name).expect_err(name).to_string();
            assert!(message.contains(name), "{message}");
        }
        for name in ["", "1A", "A=B", "A B", "A\0"] {
            assert!(with(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn only_language_and_time_zone_are_inherited() {
        let own = |name: &str| match name {
            "TZ" => Some(OsString::from("Europe/Berlin")),
            "AWS_SECRET_ACCESS_KEY" => Some(OsString::from("secret")),
            _ => None,
        };
        let variables = BTreeMap::from([("MODE".to_owned(), "fast".to_owned())]);
        let env = compose(&variables, own, "/usr/bin", Path::new("/work")).expect("plain names");
        let names: Vec<_> = env.keys().map(String::as_str).collect();
        assert_eq!(names, ["HOME", "LANG", "MODE", "PATH", "TMPDIR", "TZ"]);
        assert_eq!(env["HOME"], "/work");
    }
}
