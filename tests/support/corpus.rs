//! Archives of the large public data, unpacked once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of the data that `SKILLS_TEST_DATA` names, unpacked into the target folder the first time.
pub fn data(archive: &str, folder: &str) -> Option<PathBuf> {
    let Some(data) = std::env::var_os("SKILLS_TEST_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: SKILLS_TEST_DATA is not set, so no real file was read");
        return None;
    };
    if data.join(folder).is_dir() {
        return Some(data.join(folder));
    }
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unpacked-{archive}"));
    if !scratch.is_dir() {
        let unpacking = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut tar = Command::new("tar");
        tar.arg("xJf").arg(data.join(archive).with_extension("tar.xz")).arg("-C").arg(unpacking.path());
        assert!(tar.status().is_ok_and(|status| status.success()), "tar cannot unpack {archive}.tar.xz");
        // Another test process may have been faster.
        let _ = std::fs::rename(unpacking.keep(), &scratch);
    }
    Some(scratch.join(folder))
}
