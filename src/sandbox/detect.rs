//! Determines the isolation that this machine supports, by trying it.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::helper::{HELPER_ARG, SUPERVISOR_ARG};
use super::identity;
use super::interpreter::Table;
use super::plan::{
    CallFilter, Disk, FileAccess, Findings, LaunchMessage, PROBE_FILE, Plan, ResourceLimits, ScriptEnd,
    SupervisorReport, receive, send,
};
use super::report::{Evidence, Report};
use super::workdir::WorkDir;
use super::{Setup, bwrap, seatbelt};

/// Timeout of the helper; a program that is not a helper never responds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The isolation mechanisms of each run that were found to work.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a means of its own, there or not")]
pub struct Mechanisms {
    /// The Landlock ABI that is required.
    pub landlock: Option<i32>,
    pub syscalls: bool,
    pub limits: bool,
    /// Whether to run as another user.
    pub identity: bool,
    /// Whether to enter a user namespace.
    pub namespace: bool,
    /// Whether to mount a separate file system for written files.
    pub disk: bool,
    /// The bubblewrap executable.
    pub wrapper: Option<PathBuf>,
    pub report: Report,
}

impl Mechanisms {
    fn unavailable(why: &str) -> Self {
        let report = Report::unavailable(why);
        Self {
            landlock: None,
            syscalls: false,
            limits: false,
            identity: false,
            namespace: false,
            disk: false,
            wrapper: None,
            report,
        }
    }
}

/// Probes everything once; with bubblewrap first, and without it if that fails.
pub fn detect(setup: &Setup, table: &Table) -> Mechanisms {
    let (helper, wrapper) = (setup.helper.as_path(), setup.bubblewrap.as_deref());
    let base = setup.work_base.as_deref();
    let mut failure = None;
    if let Some(wrapper) = wrapper {
        match probe(helper, Some(wrapper), base, table) {
            Ok(mechanisms) => return mechanisms,
            Err(why) => failure = Some(why),
        }
    }
    let mut mechanisms = probe(helper, None, base, table).unwrap_or_else(|why| Mechanisms::unavailable(&why));
    mechanisms.report.missing.extend(failure.map(|why| format!("bubblewrap: {why}")));
    mechanisms
}

fn probe(
    helper: &Path,
    wrapper: Option<&Path>,
    base: Option<&Path>,
    table: &Table,
) -> Result<Mechanisms, String> {
    let lease = if identity::is_root() { identity::reserve_uid() } else { None };
    let owner = lease.as_ref().map(identity::UidReservation::identity);
    let mut work = WorkDir::create(base, owner, &[], Path::new("")).map_err(|error| error.to_string())?;
    let out = work.export().map_err(|error| error.to_string())?;
    let outside = work.outer().join("outside");
    let failed = |error: std::io::Error| format!("preparing the probe: {error}");
    std::fs::create_dir(&outside).map_err(failed)?;
    std::fs::write(outside.join(PROBE_FILE), "x").map_err(failed)?;
    std::fs::set_permissions(&outside, PermissionsExt::from_mode(0o777)).map_err(failed)?;
    let files = FileAccess {
        landlock: None,
        readable: vec![],
        readable_if_present: table.readable.clone(),
        devices: table.devices.clone(),
        writable: work.path().to_owned(),
    };
    let wrapping = match wrapper {
        Some(bwrap) => Some(bwrap::command(bwrap, &real(helper)?, &files, identity::is_root())),
        None => None,
    };
    let plan = Plan {
        program: PathBuf::new(),
        args: Vec::new(),
        env: std::collections::BTreeMap::new(),
        directory: work.path().to_owned(),
        identity: owner,
        namespace: cfg!(target_os = "linux") && owner.is_none() && wrapper.is_none(),
        limits: Some(PROBE_LIMITS),
        disk: cfg!(target_os = "linux").then(|| Disk {
            work: work.path().to_owned(),
            out,
            bytes: 1 << 20,
            files: 16,
        }),
        seatbelt: cfg!(target_os = "macos").then(|| seatbelt::profile(&files)),
        files: Some(files),
        syscalls: Some(CallFilter { freeze_metadata: owner.is_none() && wrapper.is_none() }),
        probe: Some(outside),
    };
    let (findings, report) = run_helper(helper, &LaunchMessage { plan, stdin: 0, wrapper: wrapping })?;
    Ok(mechanisms_from(findings, &report, wrapper))
}

/// Limits of the probe: all of them, none of them restrictive.
const PROBE_LIMITS: ResourceLimits = ResourceLimits {
    cpu_seconds: 60,
    data: 1 << 40,
    address_space: 1 << 40,
    file_size: 1 << 30,
    open_files: 256,
    tasks: 1 << 20,
};

fn mechanisms_from(findings: Findings, report: &SupervisorReport, wrapper: Option<&Path>) -> Mechanisms {
    let evidence = Evidence {
        adopts: report.adopts,
        disk: report.disk.clone().map(|disk| disk.error.map_or(Ok(()), Err)),
        wrapper: wrapper.map(|_| Ok(())),
        seatbelt: cfg!(target_os = "macos"),
        findings,
    };
    let found = &evidence.findings;
    Mechanisms {
        landlock: found.landlock.clone().and_then(Result::ok),
        syscalls: matches!(found.syscalls, Some(Ok(()))),
        limits: matches!(found.limits, Some(Ok(()))),
        identity: matches!(found.identity, Some(Ok(()))),
        namespace: matches!(found.namespace, Some(Ok(()))),
        disk: matches!(evidence.disk, Some(Ok(()))),
        wrapper: wrapper.map(Path::to_owned),
        report: Report::from_evidence(&evidence),
    }
}

/// Starts a supervisor for a probe and reads both of its responses.
fn run_helper(helper: &Path, message: &LaunchMessage) -> Result<(Findings, SupervisorReport), String> {
    let failed = |error: std::io::Error| format!("the helper {} does not respond: {error}", helper.display());
    let (mut ours, theirs) = UnixStream::pair().map_err(failed)?;
    ours.set_read_timeout(Some(PROBE_TIMEOUT)).map_err(failed)?;
    let mut child = Command::new(helper)
        .args([HELPER_ARG, SUPERVISOR_ARG])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let report = send(&mut ours, message).and_then(|()| receive::<SupervisorReport>(&mut ours));
    if report.is_err() {
        let _ = child.kill();
    }
    let output = child.wait_with_output().map_err(failed)?;
    let report = report.map_err(failed)?;
    if let ScriptEnd::NotStarted(why) = &report.end {
        return Err(format!("{why} {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let findings = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the helper's findings: {error}; {:?}", report.end))?;
    Ok((findings, report))
}

/// Resolves the helper's path for use by another program, for which `/proc/self/exe` would be its own executable.
pub fn real(helper: &Path) -> Result<PathBuf, String> {
    helper.canonicalize().map_err(|error| format!("the helper {}: {error}", helper.display()))
}
