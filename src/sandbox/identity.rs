//! A separate user for a script, if the program runs as root: one that owns no files and no other processes.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

use super::plan::Identity;
use skills_base::sync::MutexExt as _;

/// The range of ids that systemd reserves for dynamic users (systemd.exec(5), `DynamicUser`).
const FIRST_UID: u32 = 61_184;
const LAST_UID: u32 = 65_519;

/// User ids in use by runs of this process.
static LEASED_UIDS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A user id that no other run uses while this value exists.
#[derive(Debug)]
pub struct UidReservation(u32);

impl UidReservation {
    /// Returns the id in the form of a plan.
    pub fn identity(&self) -> Identity {
        Identity(self.0)
    }
}

impl Drop for UidReservation {
    fn drop(&mut self) {
        LEASED_UIDS.locked().remove(&self.0);
    }
}

/// Returns whether the program may change its user.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Reserves an id that is used neither by a run of this process nor by any living process.
pub fn reserve_uid() -> Option<UidReservation> {
    let living = owners_of_processes();
    let mut taken = LEASED_UIDS.locked();
    // Programs that start at the same time begin at different ids.
    let number =
        find_free_uid(std::process::id(), |number| taken.contains(&number) || living.contains(&number))?;
    taken.insert(number);
    Some(UidReservation(number))
}

/// Returns the first free id from a position determined by the seed.
fn find_free_uid(seed: u32, taken: impl Fn(u32) -> bool) -> Option<u32> {
    let span = LAST_UID - FIRST_UID + 1;
    let start = seed.wrapping_mul(2_654_435_761) % span;
    (0..span).map(|step| FIRST_UID + (start + step) % span).find(|number| !taken(*number))
}

fn owners_of_processes() -> BTreeSet<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeSet::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit))
        .filter_map(|entry| entry.metadata().ok().map(|meta| meta.uid()))
        .collect()
}

/// Returns the number of tasks (processes and threads) of the user of this program, which share one kernel limit.
pub fn own_tasks() -> u64 {
    let own = nix::unistd::getuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    entries
        .flatten()
        .filter(|entry| entry.metadata().is_ok_and(|meta| meta.uid() == own))
        .filter_map(|entry| std::fs::read_dir(entry.path().join("task")).ok())
        .map(|tasks| tasks.count() as u64)
        .sum()
}

/// Checks that the script can read a file or enter a folder: as a user that owns nothing if `other` is set, otherwise
/// as the user of this program. The error names the inaccessible part of the path.
pub fn check_readable(path: &Path, other: bool) -> Result<(), String> {
    if !other {
        return nix::unistd::access(path, nix::unistd::AccessFlags::R_OK)
            .map_err(|error| format!("{}: {error}", path.display()));
    }
    let mut steps: Vec<&Path> = path.ancestors().collect();
    steps.reverse();
    for step in steps {
        let meta = std::fs::metadata(step).map_err(|error| format!("{}: {error}", step.display()))?;
        let needed = match (meta.is_dir(), step == path) {
            (true, false) => 0o001,
            (true, true) => 0o005,
            (false, _) => 0o004,
        };
        if meta.mode() & needed != needed {
            return Err(format!("{} is not accessible to other users", step.display()));
        }
    }
    Ok(())
}

/// Checks that a folder can be created in a folder that the script can traverse.
pub fn check_traversable(folder: &Path, other: bool) -> Result<(), String> {
    use nix::unistd::{AccessFlags, access};
    access(folder, AccessFlags::W_OK | AccessFlags::X_OK)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let closed = |step: &&Path| std::fs::metadata(step).is_ok_and(|meta| meta.mode() & 0o001 == 0);
    match folder.ancestors().find(closed).filter(|_| other) {
        Some(step) => Err(format!("{} is not accessible to other users", step.display())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn user_ids_in_use_are_skipped() {
        let first = find_free_uid(7, |_| false).expect("one of thousands");
        assert!((FIRST_UID..=LAST_UID).contains(&first));
        assert_ne!(find_free_uid(7, |number| number == first), Some(first));
        assert_eq!(find_free_uid(7, |_| true), None);
    }

    #[test]
    fn file_below_an_unreadable_folder_is_unreadable() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "x").expect("written");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).expect("own folder");
        let why = check_readable(&file, true).expect_err("closed");
        assert!(why.contains(&folder.path().display().to_string()), "{why}");
        assert!(check_readable(&file, false).is_ok());
    }
}
