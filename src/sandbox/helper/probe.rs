//! Tries, with every measure in place, what no script may do: what is promised is what was seen to hold.

use std::path::Path;

use nix::sys::signal::kill;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::getppid;

use super::super::plan::{Findings, WITNESS};

/// Adds what was still possible to the findings of the measures. `outside` is a folder that everybody may write to.
pub fn look(mut found: Findings, outside: &Path) -> Findings {
    found.reads_outside = std::fs::read(outside.join(WITNESS)).is_ok();
    found.writes_outside = std::fs::write(outside.join("written"), "x").is_ok();
    let opens = |family, kind| socket(family, kind, SockFlag::empty(), None).is_ok();
    found.opens_sockets = opens(AddressFamily::Inet, SockType::Datagram)
        || opens(AddressFamily::Inet, SockType::Stream)
        || opens(AddressFamily::Unix, SockType::Stream);
    // Signal 0 asks for the permission alone. The parent is the warden, or the wrapper's own first process.
    found.signals_others = kill(getppid(), None).is_ok();
    found
}
