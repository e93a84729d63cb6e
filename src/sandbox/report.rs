//! The isolation in force: determined before a run, recorded with it, and shown by the health checks.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, IntoEnumIterator};

use super::plan::{Findings, SandboxViolation};

/// How many of the guarantees this machine can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Display, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Level {
    /// The script is not isolated: it runs without a sandbox on request.
    Unsandboxed,
    /// Files or network cannot be isolated here; scripts are rejected.
    Unavailable,
    /// Files, network and environment are isolated; another guarantee holds only partly.
    Partial,
    /// Every guarantee holds.
    Full,
}

/// A guarantee about a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Display, EnumIter, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Guarantee {
    /// It reads only its bundle and its interpreter, and writes only to its work directory.
    Files,
    /// It has no access to the network or to sockets of other programs.
    Network,
    /// It sees no variables of the program or of other processes.
    Environment,
    /// It cannot signal, trace or change other processes.
    Processes,
    /// It cannot gain new privileges: namespaces, mounts, keys, set-user-id programs.
    Privileges,
    /// Memory is limited.
    Memory,
    /// Processor time is limited.
    Cpu,
    /// The size of a file is limited.
    FileSize,
    /// The bytes and the number of all files are limited.
    Disk,
    /// The number of processes is limited.
    ProcessCount,
    /// No process that it started outlives it.
    Lifetime,
    /// Elapsed time is limited.
    Time,
    /// Stored output is limited.
    Output,
}

/// Whether a guarantee holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Enforcement {
    /// It holds.
    Yes,
    /// It holds with the exception stated in the text.
    Partly,
    /// It does not hold.
    No,
}

/// One guarantee, whether it holds, and how or why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Coverage {
    /// The guarantee.
    pub promise: Guarantee,
    /// Whether it holds.
    #[serde(rename = "held")]
    pub enforcement: Enforcement,
    /// The mechanism, or what is missing.
    pub how: String,
}

/// The isolation in force for a run, or available on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Report {
    /// The summary.
    pub level: Level,
    /// Every guarantee, in a fixed order.
    pub coverage: Vec<Coverage>,
    /// The mechanisms in force, such as "Landlock ABI 7" and "seccomp".
    pub means: Vec<String>,
    /// Mechanisms of this platform that are not available on this machine, each with the reason.
    pub missing: Vec<String>,
    /// Whether the isolation of this platform is untested.
    pub untested: bool,
}

/// The input of a report.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    pub findings: Findings,
    pub wrapper: Option<Result<(), String>>,
    /// Whether the helper adopts orphaned processes.
    pub adopts: bool,
    /// Whether the files that the script writes go to a separate file system.
    pub disk: Option<Result<(), String>>,
    /// Whether the Seatbelt profile of macOS isolates the script.
    pub seatbelt: bool,
}

impl Report {
    /// Returns to what extent a guarantee holds.
    pub fn enforcement(&self, guarantee: Guarantee) -> Enforcement {
        self.coverage
            .iter()
            .find(|row| row.promise == guarantee)
            .map_or(Enforcement::No, |row| row.enforcement)
    }

    /// Returns a one-line summary: the level, the mechanisms, and the guarantees that do not hold.
    pub fn summary(&self) -> String {
        let mut out = format!("{}", self.level);
        if !self.means.is_empty() {
            out = format!("{out}: {}", self.means.join(", "));
        }
        let gaps: Vec<_> = self
            .coverage
            .iter()
            .filter(|row| row.enforcement != Enforcement::Yes)
            .map(|row| {
                format!(
                    "{} {} ({})",
                    row.promise,
                    if row.enforcement == Enforcement::No { "not enforced" } else { "in part" },
                    row.how
                )
            })
            .collect();
        if !gaps.is_empty() {
            out = format!("{out}; {}", gaps.join(", "));
        }
        if self.untested {
            out.push_str("; untested on this platform");
        }
        out
    }

    /// Returns the report of a run without isolation.
    pub fn unsandboxed() -> Self {
        let coverage = Guarantee::iter()
            .map(|guarantee| {
                let (enforcement, how) = match guarantee {
                    Guarantee::Time => {
                        (Enforcement::Partly, "its process group is killed; a daemon can survive")
                    }
                    Guarantee::Output => (Enforcement::Yes, "the rest is discarded"),
                    Guarantee::Disk => (Enforcement::Partly, DISK_COUNTED),
                    _ => (Enforcement::No, "run without a sandbox on request"),
                };
                Coverage { promise: guarantee, enforcement, how: how.to_owned() }
            })
            .collect();
        Self { level: Level::Unsandboxed, coverage, means: Vec::new(), missing: Vec::new(), untested: false }
    }

    /// Returns the report of a machine on which not even the helper works.
    pub(super) fn unavailable(why: &str) -> Self {
        let coverage = Guarantee::iter()
            .map(|promise| Coverage { promise, enforcement: Enforcement::No, how: why.to_owned() })
            .collect();
        let missing = vec![why.to_owned()];
        Self { level: Level::Unavailable, coverage, means: Vec::new(), missing, untested: false }
    }

    /// Creates a report from the observed evidence.
    pub(super) fn from_evidence(evidence: &Evidence) -> Self {
        let (means, missing) = list_mechanisms(evidence);
        let coverage: Vec<_> = Guarantee::iter()
            .map(|guarantee| {
                let (enforcement, how) = assess(guarantee, evidence);
                Coverage { promise: guarantee, enforcement, how: how.to_owned() }
            })
            .collect();
        let enforcement_of = |guarantee| {
            coverage.iter().find(|row: &&Coverage| row.promise == guarantee).map(|row| row.enforcement)
        };
        let closed = [Guarantee::Files, Guarantee::Network, Guarantee::Environment]
            .iter()
            .all(|guarantee| enforcement_of(*guarantee) == Some(Enforcement::Yes));
        let level = match (closed, coverage.iter().all(|row| row.enforcement == Enforcement::Yes)) {
            (true, true) => Level::Full,
            (true, false) => Level::Partial,
            _ => Level::Unavailable,
        };
        Self { level, coverage, means, missing, untested: evidence.seatbelt }
    }
}

/// Returns the names of the mechanisms in force, and the missing ones with the reason.
fn list_mechanisms(evidence: &Evidence) -> (Vec<String>, Vec<String>) {
    let found = &evidence.findings;
    let (mut means, mut missing) = (Vec::new(), Vec::new());
    let mut note = |name: String, state: Option<Result<(), String>>| match state {
        Some(Ok(())) => means.push(name),
        Some(Err(why)) => missing.push(format!("{name}: {why}")),
        None => {}
    };
    let landlock = match &found.landlock {
        Some(Ok(abi)) => format!("Landlock ABI {abi}"),
        _ => "Landlock".to_owned(),
    };
    note(landlock, found.landlock.clone().map(|state| state.map(drop)));
    note("seccomp".to_owned(), found.syscalls.clone());
    note("resource limits".to_owned(), found.limits.clone());
    note("unprivileged user".to_owned(), found.identity.clone());
    note("user namespace".to_owned(), found.namespace.clone());
    note("disk limit (tmpfs)".to_owned(), evidence.disk.clone());
    note("subreaper".to_owned(), evidence.adopts.then_some(Ok(())));
    note("bubblewrap".to_owned(), evidence.wrapper.clone());
    note("Seatbelt".to_owned(), evidence.seatbelt.then_some(Ok(())));
    (means, missing)
}

/// How written files are limited if no file system can be mounted for a script.
const DISK_COUNTED: &str =
    "counted every 100 ms in the work directory, so a script may write beyond the limit before it is killed";

/// Determines from the evidence whether one guarantee holds.
fn assess(guarantee: Guarantee, evidence: &Evidence) -> (Enforcement, &'static str) {
    let found = &evidence.findings;
    let abi = match found.landlock {
        Some(Ok(abi)) => abi,
        _ => 0,
    };
    let leaks = |leak| found.leaks.contains(&leak);
    let filtered = matches!(found.syscalls, Some(Ok(())));
    let limited = matches!(found.limits, Some(Ok(())));
    let wrapped = matches!(evidence.wrapper, Some(Ok(())));
    let other_user = matches!(found.identity, Some(Ok(())));
    let own_count = other_user || wrapped || matches!(found.namespace, Some(Ok(())));
    let still_root = matches!(found.identity, Some(Err(_)));
    let limit =
        |how| if limited { (Enforcement::Yes, how) } else { (Enforcement::No, "no limit could be set") };
    match guarantee {
        Guarantee::Files
            if leaks(SandboxViolation::ReadsOutside) || leaks(SandboxViolation::WritesOutside) =>
        {
            (Enforcement::No, "files outside can be accessed")
        }
        // The first two ABIs do not cover truncating a file, which later ones do.
        Guarantee::Files if !wrapped && !evidence.seatbelt && abi < 3 => {
            (Enforcement::No, "needs Landlock ABI 3 or bubblewrap")
        }
        // Without another layer, only the filter protects modes and owners of files.
        Guarantee::Files if !wrapped && !other_user && !filtered && !evidence.seatbelt => {
            (Enforcement::No, "permissions of files outside can be changed")
        }
        Guarantee::Files if wrapped => (Enforcement::Yes, "nothing else is visible"),
        Guarantee::Files => {
            (Enforcement::Yes, "opening any other file is denied; the existence of a known path is visible")
        }
        Guarantee::Network if evidence.seatbelt => (Enforcement::Yes, "denied by the profile"),
        Guarantee::Network if wrapped && !leaks(SandboxViolation::OpensSockets) => {
            (Enforcement::Yes, "no sockets, and its own network namespace")
        }
        Guarantee::Network if wrapped => (Enforcement::Yes, "its own network namespace without a route"),
        Guarantee::Network if leaks(SandboxViolation::OpensSockets) || !filtered => {
            (Enforcement::No, "sockets can be opened")
        }
        Guarantee::Network => (Enforcement::Yes, "sockets of every family are denied"),
        Guarantee::Environment => match assess(Guarantee::Files, evidence).0 {
            Enforcement::Yes => (Enforcement::Yes, "cleared, and /proc of other processes is not accessible"),
            _ => (Enforcement::No, "cleared, but /proc of other processes may be accessible"),
        },
        Guarantee::Processes if wrapped => (Enforcement::Yes, "other processes are not visible"),
        Guarantee::Processes if leaks(SandboxViolation::SignalsOthers) => {
            (Enforcement::Partly, "processes of the same user can be signaled; needs Landlock ABI 6")
        }
        Guarantee::Processes if filtered => (Enforcement::Yes, "signals and tracing are denied"),
        Guarantee::Processes => (Enforcement::Partly, "signals are denied, tracing may not be"),
        Guarantee::Privileges if still_root => (Enforcement::No, "it would run as root"),
        Guarantee::Privileges if evidence.seatbelt => (Enforcement::Partly, "only by the profile"),
        Guarantee::Privileges if filtered => {
            (Enforcement::Yes, "no new privileges, and the related system calls are denied")
        }
        Guarantee::Privileges => (Enforcement::Partly, "no new privileges, but no system call filter"),
        Guarantee::Memory if evidence.seatbelt => {
            (Enforcement::Partly, "private memory, as far as this system counts it")
        }
        Guarantee::Memory | Guarantee::Cpu => limit("per process"),
        Guarantee::FileSize => limit("per file"),
        Guarantee::Disk if matches!(evidence.disk, Some(Ok(()))) => {
            (Enforcement::Yes, "a separate file system with limited bytes and files")
        }
        Guarantee::Disk => (Enforcement::Partly, DISK_COUNTED),
        Guarantee::ProcessCount if still_root => (Enforcement::No, "root is not counted"),
        Guarantee::ProcessCount if limited && !own_count => {
            (Enforcement::Partly, "counted together with other processes of this user")
        }
        Guarantee::ProcessCount => limit("counted for this run only"),
        Guarantee::Lifetime if wrapped || evidence.adopts => {
            (Enforcement::Yes, "orphans are adopted and killed")
        }
        Guarantee::Lifetime => (Enforcement::Partly, "its process group is killed; a daemon can survive"),
        Guarantee::Time => (Enforcement::Yes, "SIGTERM, then SIGKILL"),
        Guarantee::Output => (Enforcement::Yes, "the rest is discarded"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete_evidence() -> Evidence {
        let findings = Findings {
            identity: Some(Ok(())),
            limits: Some(Ok(())),
            landlock: Some(Ok(7)),
            syscalls: Some(Ok(())),
            ..Findings::default()
        };
        Evidence { findings, wrapper: None, adopts: true, disk: Some(Ok(())), seatbelt: false }
    }

    #[test]
    fn all_mechanisms_together_are_full_isolation() {
        let report = Report::from_evidence(&complete_evidence());
        assert_eq!(report.level, Level::Full, "{}", report.summary());
        assert_eq!(
            report.summary(),
            "full: Landlock ABI 7, seccomp, resource limits, unprivileged user, disk limit (tmpfs), subreaper"
        );
    }

    #[test]
    fn unprivileged_user_shares_the_process_limit() {
        let mut evidence = complete_evidence();
        evidence.findings.identity = None;
        let report = Report::from_evidence(&evidence);
        assert_eq!(report.level, Level::Partial);
        assert_eq!(report.enforcement(Guarantee::ProcessCount), Enforcement::Partly);
        evidence.findings.namespace = Some(Ok(()));
        assert_eq!(Report::from_evidence(&evidence).level, Level::Full, "a namespace counts for itself");
    }

    #[test]
    fn counted_disk_usage_is_partly_enforced() {
        let mut evidence = complete_evidence();
        evidence.disk = Some(Err("entering a mount namespace: EPERM".to_owned()));
        let report = Report::from_evidence(&evidence);
        assert_eq!(
            (report.level, report.enforcement(Guarantee::Disk)),
            (Level::Partial, Enforcement::Partly)
        );
        assert_eq!(report.missing, ["disk limit (tmpfs): entering a mount namespace: EPERM"]);
    }

    #[test]
    fn missing_mechanisms_are_reported_by_severity() {
        let mut evidence = complete_evidence();
        evidence.findings.landlock = Some(Err("switched off".to_owned()));
        let report = Report::from_evidence(&evidence);
        assert_eq!(report.level, Level::Unavailable);
        assert_eq!(report.missing, ["Landlock: switched off"]);

        evidence.wrapper = Some(Ok(()));
        assert_eq!(
            Report::from_evidence(&evidence).level,
            Level::Full,
            "bubblewrap closes the files instead"
        );

        let mut evidence = complete_evidence();
        evidence.findings.leaks.push(SandboxViolation::WritesOutside);
        assert_eq!(Report::from_evidence(&evidence).level, Level::Unavailable);

        let mut evidence = complete_evidence();
        evidence.findings.syscalls = Some(Err("no seccomp".to_owned()));
        evidence.findings.leaks.push(SandboxViolation::OpensSockets);
        assert_eq!(Report::from_evidence(&evidence).level, Level::Unavailable);
    }

    #[test]
    fn without_isolation_disk_time_and_output_are_limited() {
        let report = Report::unsandboxed();
        let is_enforced = |guarantee: &Guarantee| report.enforcement(*guarantee) != Enforcement::No;
        let enforced: Vec<_> = Guarantee::iter().filter(is_enforced).collect();
        assert_eq!(enforced, [Guarantee::Disk, Guarantee::Time, Guarantee::Output]);
    }
}
