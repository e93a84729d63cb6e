//! The environment of a script: empty except for a short list, and names that callers may not set.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::error::SandboxError;

/// Variables inherited from the program's own environment, if they are set.
const INHERITED: [&str; 3] = ["LANG", "LC_ALL", "TZ"];

/// Maximum total size of all values in bytes.
const MAX_BYTES: usize = 128 << 10;

const LOADS_CODE: &str = "it makes programs load code from outside the bundle";
const RESERVED: &str = "the sandbox sets it itself";

/// Names, and prefixes of names (with a `*`), that a caller may not set.
const REFUSED: [(&str, &str); 38] = [
    ("LD_*", LOADS_CODE),
    ("DYLD_*", LOADS_CODE),
    ("GLIBC_TUNABLES", LOADS_CODE),
    ("GCONV_PATH", LOADS_CODE),
    ("LOCPATH", LOADS_CODE),
    ("NLSPATH", LOADS_CODE),
    ("MALLOC_*", LOADS_CODE),
    ("PYTHON*", LOADS_CODE),
    ("NODE_OPTIONS", LOADS_CODE),
    ("NODE_PATH", LOADS_CODE),
    ("NODE_EXTRA_CA_CERTS", LOADS_CODE),
    ("NODE_REPL_*", LOADS_CODE),
    ("RUBYOPT", LOADS_CODE),
    ("RUBYLIB", LOADS_CODE),
    ("GEM_*", LOADS_CODE),
    ("BUNDLE_*", LOADS_CODE),
    ("PERL5*", LOADS_CODE),
    ("PERLLIB", LOADS_CODE),
    ("LUA_*", LOADS_CODE),
    ("JAVA_TOOL_OPTIONS", LOADS_CODE),
    ("_JAVA_OPTIONS", LOADS_CODE),
    ("BASH_*", LOADS_CODE),
    ("BASHOPTS", LOADS_CODE),
    ("SHELLOPTS", LOADS_CODE),
    ("ENV", LOADS_CODE),
    ("ZDOTDIR", LOADS_CODE),
    ("PS4", LOADS_CODE),
    ("PROMPT_COMMAND", LOADS_CODE),
    ("IFS", "it changes how a shell splits words"),
    ("CDPATH", "it changes where `cd` goes"),
    ("GIT_*", LOADS_CODE),
    ("SSH_*", "it passes on a user's keys"),
    ("PATH", RESERVED),
    ("HOME", RESERVED),
    ("TMPDIR", RESERVED),
    ("TMP", RESERVED),
    ("TEMP", RESERVED),
    ("PWD", RESERVED),
];

/// Returns the complete environment of a script, by name: the variables that every script gets, then those of the
/// caller.
///
/// `own` looks up a variable of this program, `path` is the search path, `work` the private work directory.
pub(super) fn compose(
    given: &BTreeMap<String, String>,
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
    for (name, value) in given {
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
    let hit = REFUSED.iter().find(|(pattern, _)| match pattern.strip_suffix('*') {
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
        let given = BTreeMap::from([(name.to_owned(), "x".to_owned())]);
        compose(&given, |_| None, "/usr/bin", Path::new("/work"))
    }

    #[test]
    fn loaders_are_refused_by_name() {
        for name in ["LD_PRELOAD", "ld_preload", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "ENV", "PATH"] {
            let told = with(name).expect_err(name).to_string();
            assert!(told.contains(name), "{told}");
        }
        for name in ["", "1A", "A=B", "A B", "A\0"] {
            assert!(with(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn nothing_of_the_own_environment_is_inherited_but_language_and_zone() {
        let own = |name: &str| match name {
            "TZ" => Some(OsString::from("Europe/Berlin")),
            "AWS_SECRET_ACCESS_KEY" => Some(OsString::from("secret")),
            _ => None,
        };
        let given = BTreeMap::from([("MODE".to_owned(), "fast".to_owned())]);
        let env = compose(&given, own, "/usr/bin", Path::new("/work")).expect("plain names");
        let names: Vec<_> = env.keys().map(String::as_str).collect();
        assert_eq!(names, ["HOME", "LANG", "MODE", "PATH", "TMPDIR", "TZ"]);
        assert_eq!(env["HOME"], "/work");
    }
}
