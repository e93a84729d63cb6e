//! Identifies the process of a worker within the worker's id, so that another process on the same machine can determine
//! whether it is still alive.

use std::sync::atomic::{AtomicUsize, Ordering};

use skills_store::WorkerId;

/// The identity of a process with workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    host: String,
    /// PID namespace and boot, within which process ids are comparable: a container has its own.
    space: String,
    process: u32,
    /// Start time of the process, in ticks since boot, since process ids are reused.
    started: String,
}

impl ProcessIdentity {
    pub fn here() -> Self {
        let process = std::process::id();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let host = host.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
        Self {
            host: host.trim().replace('/', "-"),
            space: space(),
            process,
            started: started(process).unwrap_or_default(),
        }
    }

    /// Returns the name of this host.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn next_worker(&self) -> WorkerId {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        self.worker(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    fn worker(&self, number: usize) -> WorkerId {
        WorkerId(format!("{}/{}/{}/{}/{number}", self.host, self.space, self.process, self.started))
    }

    /// Returns the common prefix of the ids of this process's workers.
    pub fn process(&self) -> String {
        format!("{}/{}/{}/{}", self.host, self.space, self.process, self.started)
    }

    /// Returns whether a worker belongs to this process.
    pub fn is_mine(&self, worker: &WorkerId) -> bool {
        let own = format!("{}/{}/{}/{}/", self.host, self.space, self.process, self.started);
        worker.0.starts_with(&own)
    }

    /// Returns whether a worker is certainly dead: it belonged to this boot and PID namespace, and its process is gone.
    /// False if that cannot be determined; then its lease has to expire.
    pub fn is_process_dead(&self, worker: &WorkerId) -> bool {
        let parts: Vec<&str> = worker.0.split('/').collect();
        let [_, space, process, ticks, _] = parts[..] else { return false };
        let Ok(process) = process.parse() else { return false };
        let comparable = space == self.space && !ticks.is_empty() && !space.is_empty();
        comparable && is_gone(process, ticks)
    }
}

/// Returns whether the process that started at this tick is gone. A process that exists but cannot be inspected
/// (`hidepid`, proc(5)) may be the one.
#[cfg(target_os = "linux")]
fn is_gone(process: u32, ticks: &str) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return false };
    if test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
        return true;
    }
    match std::fs::read(format!("/proc/{process}/stat")) {
        Ok(stat) => began_in(&stat).as_deref() != Some(ticks),
        Err(_) => false,
    }
}

#[cfg(not(target_os = "linux"))]
fn is_gone(_: u32, _: &str) -> bool {
    false
}

/// Returns the PID namespace and the boot, which must both match for process ids to be comparable.
///
/// Empty if `/proc` is missing or shows the processes of another namespace (`unshare --pid` without a new `/proc`).
fn space() -> String {
    let shown = std::fs::read_link("/proc/self").unwrap_or_default();
    if shown.to_str() != Some(std::process::id().to_string().as_str()) {
        return String::new();
    }
    let names = std::fs::read_link("/proc/self/ns/pid").ok();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    match (names, boot) {
        (Some(names), Some(boot)) => {
            let boot: String = boot.trim().chars().filter(char::is_ascii_hexdigit).take(8).collect();
            format!("{}-{boot}", digits(&names.to_string_lossy()))
        }
        _ => String::new(),
    }
}

/// Returns the start time of a process; `None` if it has ended or cannot be inspected.
fn started(process: u32) -> Option<String> {
    began_in(&std::fs::read(format!("/proc/{process}/stat")).ok()?)
}

/// Parses field 22 of `/proc/PID/stat` (proc(5)). The name before it may contain any bytes, including closing
/// parentheses. A zombie has ended, unless it is the first of several threads.
fn began_in(stat: &[u8]) -> Option<String> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&str> =
        std::str::from_utf8(stat.get(name_end + 1..)?).ok()?.split_ascii_whitespace().collect();
    // The first one is field 3, the state; field 20 is the number of threads.
    let has_ended = match *fields.first()? {
        "Z" => fields.get(17) == Some(&"1"),
        "X" => true,
        _ => false,
    };
    if has_ended {
        return None;
    }
    fields.get(19).map(|ticks| (*ticks).to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn live_dead_and_unknown_processes_are_distinguished() {
        let here = ProcessIdentity::here();
        assert!(!here.is_process_dead(&here.worker(0)), "this process lives");
        assert!(here.is_mine(&here.worker(7)));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = ProcessIdentity { process: child.id(), started: "1".into(), ..here.clone() };
        child.wait().unwrap();
        assert!(here.is_process_dead(&gone.worker(3)) && !here.is_mine(&gone.worker(3)));
        let renamed = ProcessIdentity { host: "another".into(), ..gone.clone() };
        assert!(here.is_process_dead(&renamed.worker(3)), "a host may get another name");
        let (namespace, _) = here.space.split_once('-').unwrap();
        let earlier = ProcessIdentity { space: format!("{namespace}-00000000"), ..gone.clone() };
        assert!(!here.is_process_dead(&earlier.worker(3)), "numbers of another boot mean nothing");
        let container = ProcessIdentity { space: "1-ab".into(), ..gone };
        assert!(!here.is_process_dead(&container.worker(3)));
        assert!(!here.is_process_dead(&WorkerId("w1".into())));
    }

    #[test]
    fn a_name_cannot_hide_the_start_time() {
        let rest = |state: &str, threads: u32| {
            format!(") {state} 7 12 12 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 99 0 0")
        };
        let began = |rest: String| began_in(&[b"12 (\xff) Z (".as_slice(), rest.as_bytes()].concat());
        assert_eq!(began(rest("S", 1)).as_deref(), Some("99"));
        assert_eq!(began(rest("Z", 1)), None);
        assert_eq!(began(rest("Z", 2)).as_deref(), Some("99"), "its other threads run");
    }

    #[test]
    fn reused_process_id_is_another_process() {
        let here = ProcessIdentity::here();
        let earlier = ProcessIdentity { started: "7".into(), ..here.clone() };
        assert!(here.is_process_dead(&earlier.worker(0)));
    }
}
