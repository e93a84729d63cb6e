//! The processes below this one, regardless of their sessions and process groups.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Sends a signal to every process below this one and returns those that existed.
///
/// With `wrapped`, the two processes of the wrapper are excluded: ended by SIGTERM, they would take the script with
/// them before it had time to clean up.
#[cfg(target_os = "linux")]
pub fn signal(_script: Pid, signal: Signal, wrapped: bool) -> Vec<Pid> {
    let spared = if wrapped { 2 } else { 0 };
    let found = below(std::process::id().cast_signed(), &parents());
    let mut out = Vec::new();
    for (pid, depth) in found {
        let pid = Pid::from_raw(pid);
        if depth > spared && kill(pid, signal).is_ok() {
            out.push(pid);
        }
    }
    out
}

/// Without a way to list processes, only the script's group is reached.
#[cfg(not(target_os = "linux"))]
pub fn signal(script: Pid, signal: Signal, _wrapped: bool) -> Vec<Pid> {
    match nix::sys::signal::killpg(script, signal).and_then(|()| kill(script, None)) {
        Ok(()) => vec![script],
        Err(_) => Vec::new(),
    }
}

/// Returns every living process with its parent.
#[cfg(target_os = "linux")]
fn parents() -> Vec<(i32, i32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((pid, living_parent(&stat)?))
        })
        .collect()
}

/// Returns the parent in a line of `/proc/PID/stat` (proc(5)); `None` for a process that is already dead.
#[cfg(any(target_os = "linux", test))]
fn living_parent(stat: &str) -> Option<i32> {
    // The name in parentheses may contain spaces and parentheses itself.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.next()?.parse().ok(),
    }
}

/// Returns everything below `root` with its distance from it, nearest first.
#[cfg(any(target_os = "linux", test))]
fn below(root: i32, parents: &[(i32, i32)]) -> Vec<(i32, u32)> {
    let mut out: Vec<(i32, u32)> = Vec::new();
    let mut layer = vec![root];
    let mut depth = 0;
    while !layer.is_empty() && depth < 10_000 {
        depth += 1;
        layer = parents.iter().filter(|(_, parent)| layer.contains(parent)).map(|(pid, _)| *pid).collect();
        out.extend(layer.iter().map(|pid| (*pid, depth)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_hide_the_parent() {
        assert_eq!(living_parent("12 (a) Z (b) S 7 12 12 0"), Some(7));
        assert_eq!(living_parent("12 (gone) Z 7 12 12 0"), None);
    }

    #[test]
    fn tree_contains_all_descendants() {
        let parents = [(1, 0), (5, 1), (6, 5), (7, 6), (8, 5), (9, 1)];
        assert_eq!(below(5, &parents), [(6, 1), (8, 1), (7, 2)]);
    }
}
