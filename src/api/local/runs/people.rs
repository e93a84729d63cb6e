//! Who asks and who decides, where nobody is named: the account of this process, and git's idea of its owner.

use std::path::Path;
use std::process::{Command, Stdio};

/// The account's name, by the environment (`USER`, `LOGNAME`); the user's number where it says nothing.
pub(super) fn account() -> String {
    let said = ["USER", "LOGNAME"].iter().filter_map(|name| std::env::var(name).ok());
    said.map(|name| name.trim().to_owned()).find(|name| !name.is_empty()).unwrap_or_else(unnamed)
}

#[cfg(unix)]
fn unnamed() -> String {
    format!("uid {}", rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn unnamed() -> String {
    "unnamed".to_owned()
}

/// Who is offered as approver, and where that name comes from: `git config user.name` as it is in this folder, else
/// the account.
pub(super) fn approver(cwd: &Path) -> (String, String) {
    let asked = Command::new("git")
        .args(["config", "--get", "user.name"])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let name =
        asked.ok().filter(|out| out.status.success()).and_then(|out| String::from_utf8(out.stdout).ok());
    match name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()) {
        Some(name) => (name, "git config user.name".to_owned()),
        None => (account(), "the account".to_owned()),
    }
}
