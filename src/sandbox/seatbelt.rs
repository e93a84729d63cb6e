//! The Seatbelt profile of a script on macOS (sandbox-exec(1)). It is untested, which reports state.

use std::fmt::Write;
use std::path::Path;

use super::plan::FileAccess;

/// Returns a profile that denies everything except starting programs, reading the granted paths, and writing to the
/// work directory.
pub fn profile(access: &FileAccess) -> String {
    let mut out = String::from(
        "(version 1)\n(deny default)\n(allow process-fork)\n(allow sysctl-read)\n(allow signal (target same-sandbox))\n\
         (allow file-read-metadata)\n",
    );
    for path in access.readable_if_present.iter().chain(&access.readable) {
        let _ = writeln!(out, "(allow file-read* process-exec (subpath {}))", quoted(path));
    }
    for path in &access.devices {
        let _ = writeln!(out, "(allow file-read* file-write-data (literal {}))", quoted(path));
    }
    let _ =
        writeln!(out, "(allow file-read* file-write* process-exec (subpath {}))", quoted(&access.writable));
    out.push_str("(deny network*)\n");
    out
}

/// Formats a string in the profile's language.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_cannot_terminate_its_string() {
        let access = FileAccess {
            readable: vec!["/b\") (allow default) (\"".into()],
            writable: "/private/tmp/w".into(),
            ..FileAccess::default()
        };
        let text = profile(&access);
        assert!(text.contains(r#"(subpath "/b\") (allow default) (\"")"#), "{text}");
        assert!(text.contains(r#"file-write* process-exec (subpath "/private/tmp/w")"#), "{text}");
    }
}
