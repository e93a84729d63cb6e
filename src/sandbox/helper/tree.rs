//! The processes below this one, regardless of their sessions and process groups.

#[cfg(target_os = "linux")]
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Sends a signal to every process below this one and returns those that existed.
///
/// With `wrapped`, the two processes of the wrapper are excluded: ended by SIGTERM, they would take the script with
/// them before it had time to clean up.
#[cfg(target_os = "linux")]
pub fn signal(script: Pid, signal: Signal, wrapped: bool) -> Vec<Pid> {
    let own = std::process::id();
    if std::fs::read_link("/proc/self").unwrap_or_default().to_str() != Some(own.to_string().as_str()) {
        return signal_group(script, signal);
    }
    let own = own.cast_signed();
    let mut out = Vec::new();
    if signal == Signal::SIGKILL {
        // Before the slower listing of all processes, during which a process can hand over to a new one.
        let children = own_children().into_iter();
        let alive = children.filter(|pid| read_stat(*pid).is_none_or(|stat| stat.is_alive));
        out.extend(alive.filter_map(|pid| send(pid, signal)));
    }
    let spared = if wrapped { 2 } else { 0 };
    let found = below(own, &parents(own)).into_iter().filter(|(_, depth)| *depth > spared);
    out.extend(found.filter_map(|(pid, _)| send(pid, signal)));
    out
}

/// Sends a signal to a process; returns it if it existed.
#[cfg(target_os = "linux")]
fn send(pid: i32, signal: Signal) -> Option<Pid> {
    let pid = Pid::from_raw(pid);
    (kill(pid, signal) != Err(Errno::ESRCH)).then_some(pid)
}

/// Without a way to list processes, only the script's group is reached.
#[cfg(not(target_os = "linux"))]
pub fn signal(script: Pid, signal: Signal, _wrapped: bool) -> Vec<Pid> {
    signal_group(script, signal)
}

/// Sends a signal to the script's process group and returns the script if it still exists.
fn signal_group(script: Pid, signal: Signal) -> Vec<Pid> {
    match nix::sys::signal::killpg(script, signal).and_then(|()| kill(script, None)) {
        Ok(()) => vec![script],
        Err(_) => Vec::new(),
    }
}

/// Returns every living process with its parent.
#[cfg(target_os = "linux")]
fn parents(own: i32) -> Vec<(i32, i32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let listed = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let living = listed.filter_map(|pid| {
        let stat = read_stat(pid).filter(|stat| stat.is_alive)?;
        Some((pid, stat.parent))
    });
    // `/proc` can hide processes of other users and those that forbid tracing (`hidepid`, proc(5)), but not which
    // children a process has. A hidden process further below becomes a child when its parent is killed.
    let hidden = own_children().into_iter().filter(|pid| read_stat(*pid).is_none()).map(|pid| (pid, own));
    living.chain(hidden).collect()
}

/// Returns the children of all threads of this process, including adopted ones and those that have ended; none if the
/// kernel does not list them (`CONFIG_PROC_CHILDREN`).
#[cfg(target_os = "linux")]
fn own_children() -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let mut out = Vec::new();
    for list in lists {
        out.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    out
}

/// What `/proc/PID/stat` (proc(5)) tells about a process.
#[cfg(any(target_os = "linux", test))]
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: i32,
    is_alive: bool,
}

/// Returns `None` for a process that is gone or hidden.
#[cfg(target_os = "linux")]
fn read_stat(pid: i32) -> Option<Stat> {
    parse_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

#[cfg(any(target_os = "linux", test))]
fn parse_stat(stat: &[u8]) -> Option<Stat> {
    // The process chooses the name in parentheses: any bytes, including parentheses.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let threads: u32 = fields.nth(15)?.parse().ok()?;
    // A process whose first thread has ended has the state of a dead one, although its other threads run.
    let is_alive = match state {
        "Z" => threads > 1,
        "X" => false,
        _ => true,
    };
    Some(Stat { parent, is_alive })
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

    /// The fields 5 to 20: everything up to the number of threads.
    fn stat(start: &[u8], threads: u32) -> Option<Stat> {
        let rest = format!(" 12 12 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 99\n");
        parse_stat(&[start, rest.as_bytes()].concat())
    }

    #[test]
    fn a_name_cannot_hide_the_parent() {
        let alive = Some(Stat { parent: 7, is_alive: true });
        for name in [b"a) Z (b".as_slice(), b"\xff\xfe\xfd", b"a\nb) Z 1", b"", b")"] {
            assert_eq!(stat(&[b"12 (".as_slice(), name, b") S 7"].concat(), 1), alive, "{name:?}");
        }
    }

    #[test]
    fn a_process_without_its_first_thread_is_alive() {
        assert_eq!(stat(b"12 (gone) Z 7", 1), Some(Stat { parent: 7, is_alive: false }));
        assert_eq!(stat(b"12 (headless) Z 7", 2), Some(Stat { parent: 7, is_alive: true }));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn own_children_are_listed_without_their_files() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is installed");
        let pid = child.id().cast_signed();
        let own = std::process::id().cast_signed();
        assert!(parents(own).contains(&(pid, own)));
        let listed = own_children();
        child.kill().expect("alive");
        child.wait().expect("ends");
        if std::path::Path::new("/proc/self/task").join(own.to_string()).join("children").exists() {
            assert!(listed.contains(&pid), "{listed:?}");
        }
    }

    #[test]
    fn tree_contains_all_descendants() {
        let parents = [(1, 0), (5, 1), (6, 5), (7, 6), (8, 5), (9, 1)];
        assert_eq!(below(5, &parents), [(6, 1), (8, 1), (7, 2)]);
    }
}
