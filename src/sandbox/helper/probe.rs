//! Attempts, with all restrictions in place, what scripts must not be able to do, so that guarantees are based on
//! observation.

use std::path::Path;

use nix::sys::signal::kill;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::getppid;

use super::super::plan::{Findings, PROBE_FILE, SandboxViolation};

/// Adds the attempts that succeeded to the findings. `outside` is a folder that is writable by every user.
pub fn probe(mut found: Findings, outside: &Path) -> Findings {
    let opens = |family, kind| socket(family, kind, SockFlag::empty(), None).is_ok();
    let tries = [
        (SandboxViolation::ReadsOutside, std::fs::read(outside.join(PROBE_FILE)).is_ok()),
        (SandboxViolation::WritesOutside, std::fs::write(outside.join("written"), "x").is_ok()),
        (
            SandboxViolation::OpensSockets,
            opens(AddressFamily::Inet, SockType::Datagram)
                || opens(AddressFamily::Inet, SockType::Stream)
                || opens(AddressFamily::Unix, SockType::Stream),
        ),
        // Signal 0 only checks the permission. The parent is the supervisor, or the wrapper's own first process.
        (SandboxViolation::SignalsOthers, kill(getppid(), None).is_ok()),
    ];
    found.leaks = tries.into_iter().filter(|(_, done)| *done).map(|(leak, _)| leak).collect();
    found
}
