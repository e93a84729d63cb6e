//! The state of a folder on disk, which identifies what it contains: a start reads only the folders that changed.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use super::walk::Siblings;

/// A change this soon before reading could leave the change time as it is: clocks of file systems are coarse.
pub(super) const RACY: Duration = Duration::from_secs(2);

/// Local file systems on which the change time of a folder changes with its entries, by their magic numbers
/// (`statfs(2)`). Others, such as mounts of object stores, may not update it.
#[cfg(target_os = "linux")]
const RELIABLE: [u32; 7] = [
    0x0000_EF53, // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0x0102_1994, // tmpfs
    0x794C_7630, // OverlayFS
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
];

/// Identifies the entries of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FolderState {
    inode: u64,
    /// Its change time, which no program can set back, in nanoseconds since 1970.
    changed_ns: u64,
}

/// A folder that was read, and contains nothing that changes without its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadFolder {
    pub state: FolderState,
    /// Whether it contains a main file.
    pub has_main: bool,
}

/// What a folder contained in this state.
#[derive(Debug, Default)]
pub(super) struct KnownFolder {
    pub state: Option<FolderState>,
    /// Names of the folders in it that are scanned.
    pub folders: Vec<OsString>,
    /// Its main file, and what is next to it.
    pub main: Option<(OsString, Siblings)>,
}

/// What folders contained at the end of an earlier scan, by path. Paths are hashed and compared as text, which is much
/// faster than by components; another form of a path only causes its folder to be read.
pub(super) type KnownFolders = HashMap<OsString, KnownFolder>;

impl FolderState {
    /// Returns the state of a folder on this device; `None` if it is elsewhere, not a folder, or does not exist.
    #[cfg(unix)]
    pub fn of(folder: &Path, device: Option<u64>) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let device = device?;
        let metadata = folder.symlink_metadata().ok()?;
        let seconds = u64::try_from(metadata.ctime()).ok()?;
        let changed = Duration::new(seconds, u32::try_from(metadata.ctime_nsec()).ok()?);
        (metadata.is_dir() && metadata.dev() == device)
            .then_some(Self { inode: metadata.ino(), changed_ns: u64::try_from(changed.as_nanos()).ok()? })
    }

    #[cfg(not(unix))]
    pub fn of(_: &Path, _: Option<u64>) -> Option<Self> {
        None
    }

    /// Returns whether a change after this time changes the state.
    pub fn is_settled(&self, read_at: SystemTime) -> bool {
        let changed = UNIX_EPOCH.checked_add(Duration::from_nanos(self.changed_ns) + RACY);
        changed.is_some_and(|changed| changed < read_at)
    }
}

/// Returns the device of a folder if states of folders on it are reliable.
#[cfg(target_os = "linux")]
pub(super) fn reliable_device(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let kind = u32::try_from(rustix::fs::statfs(folder).ok()?.f_type).ok()?;
    RELIABLE.contains(&kind).then_some(folder.metadata().ok()?.dev())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn reliable_device(_: &Path) -> Option<u64> {
    None
}
