//! The default user of requests and decisions: the account of this process, and the configured git user.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use crate::git::{git, output_within};
use crate::operations::OS_ACCOUNT;

/// Maximum size of a name that git prints, in bytes.
const MAX_NAME_BYTES: u64 = 4 << 10;
/// Maximum time to wait for it: git also reads the repository of the working directory, which may contain named pipes.
const MAX_DURATION: Duration = Duration::from_secs(5);

/// Returns the account's name from the environment (`USER`, `LOGNAME`) or the system's list of users; the user id if
/// neither contains it.
pub fn account() -> String {
    let names = ["USER", "LOGNAME"].iter().filter_map(|name| std::env::var(name).ok());
    names.map(|name| name.trim().to_owned()).find(|name| !name.is_empty()).unwrap_or_else(unnamed)
}

#[cfg(unix)]
fn unnamed() -> String {
    static NAME: OnceLock<String> = OnceLock::new();
    let named = || {
        let uid = rustix::process::getuid().as_raw();
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        name_in(&users, uid).unwrap_or_else(|| format!("uid {uid}"))
    };
    NAME.get_or_init(named).clone()
}

/// Returns the name of a user from text in the format of passwd(5).
#[cfg(unix)]
fn name_in(users: &str, uid: u32) -> Option<String> {
    let of_user = |line: &&str| line.split(':').nth(2).and_then(|number| number.parse().ok()) == Some(uid);
    let name = users.lines().find(of_user)?.split(':').next()?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(not(unix))]
fn unnamed() -> String {
    "unnamed".to_owned()
}

/// Returns the default approver and the source of that name: `git config user.name` of the user or the system, else the
/// account. The settings of a repository do not name the approver: another person may have written them.
pub(super) fn approver(cwd: &Path) -> (String, String) {
    match ["--global", "--system"].into_iter().find_map(|file| git_user_name(cwd, file)) {
        Some(name) => (name, "git config user.name".to_owned()),
        None => (account(), OS_ACCOUNT.to_owned()),
    }
}

fn git_user_name(cwd: &Path, file: &str) -> Option<String> {
    let mut command = git(cwd);
    command.args(["config", file, "--includes", "--get", "user.name"]);
    let name = output_within(command, "config", MAX_NAME_BYTES, MAX_DURATION).ok()?.trim().to_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_repository_does_not_name_the_approver() {
        let folder = tempfile::tempdir().unwrap();
        let run = |args: &[&str]| assert!(git(folder.path()).args(args).status().unwrap().success());
        run(&["init", "--quiet"]);
        run(&["config", "user.name", "Another Author"]);
        assert_ne!(approver(folder.path()).0, "Another Author");
    }

    #[test]
    fn a_repository_of_named_pipes_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        for name in ["HEAD", "config"] {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let path = folder.path().join(".git").join(name);
            rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }
        assert!(!approver(folder.path()).0.is_empty());
    }

    #[test]
    fn a_user_is_named_by_the_list_of_users() {
        let users = "root:x:0:0:root:/root:/bin/bash\nbroken\nkim:x:1000:1000::/home/kim:/bin/sh\n:x:7::::\n";
        assert_eq!(name_in(users, 1000).as_deref(), Some("kim"));
        assert_eq!(name_in(users, 0).as_deref(), Some("root"));
        assert_eq!((name_in(users, 7), name_in(users, 42)), (None, None));
    }
}
