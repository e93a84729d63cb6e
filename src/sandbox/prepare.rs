//! Converts a request to everything that a start needs: script, interpreter, work directory, plan.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::bundle::{self, Contents, ScriptLocation};
use super::detect::{self, Mechanisms};
use super::error::SandboxError;
use super::identity::{self, UidReservation};
use super::interpreter::{Runner, Table};
use super::plan::{CallFilter, Disk, FileAccess, Identity, LaunchMessage, Plan, ResourceLimits};
use super::report::{Level, Report};
use super::spec::{InputFile, Limits, Spec, SuppliedFiles};
use super::workdir::{WorkDir, copy_input};
use super::{Setup, bwrap, environment, seatbelt};
use skills_base::sync::MutexExt as _;

/// Number of bubblewrap's own processes that count towards the limit.
const WRAPPER_TASKS: u64 = 2;

/// State shared by all runs of a sandbox.
#[derive(Debug)]
pub struct Preparer {
    setup: Setup,
    /// The table of interpreters, or why it is invalid.
    table: Result<Table, String>,
    mechanisms: Option<Mechanisms>,
    unavailable: Report,
    /// Cached interpreters, by name.
    runners: Mutex<HashMap<(Option<String>, bool), Runner>>,
}

/// Everything needed to start one script.
pub struct PreparedScript {
    pub message: LaunchMessage,
    pub stdin: Vec<u8>,
    pub limits: Limits,
    pub work: WorkDir,
    pub report: Report,
    pub isolated: bool,
    pub lease: Option<UidReservation>,
}

impl Preparer {
    /// Probes the machine.
    pub fn open(setup: Setup) -> Self {
        let table = Table::shipped().map_err(|error| error.to_string());
        let mechanisms = table.as_ref().ok().map(|table| detect::detect(&setup, table));
        let unavailable = Report::unavailable(table.as_ref().err().map_or("", String::as_str));
        Self { setup, table, mechanisms, unavailable, runners: Mutex::default() }
    }

    pub fn report(&self) -> &Report {
        self.mechanisms.as_ref().map_or(&self.unavailable, |means| &means.report)
    }

    /// Returns the folder in which work directories are created, if it is configured.
    pub fn work_base(&self) -> Option<&Path> {
        self.setup.work_base.as_deref()
    }

    pub fn helper(&self) -> &Path {
        &self.setup.helper
    }

    /// Checks everything about a request that can be rejected before anything is created.
    pub fn check(&self, spec: &Spec) -> Result<(), SandboxError> {
        spec.check()?;
        let table = self.table.as_ref().map_err(|why| SandboxError::bad("interpreters", why.clone()))?;
        let located = bundle::locate(&spec.bundle_root, spec.follow_links, &spec.script)?;
        table.name_for(&located)?;
        environment::compose(&spec.env, |_| None, "", Path::new("/"))?;
        if !spec.unsandboxed && self.report().level < Level::Partial {
            return Err(SandboxError::NoIsolation { why: self.report().summary() });
        }
        Ok(())
    }

    /// Checks the request and returns the files that a script would receive now.
    pub fn preview(&self, spec: &Spec) -> Result<SuppliedFiles, SandboxError> {
        self.check(spec)?;
        let located = bundle::locate(&spec.bundle_root, spec.follow_links, &spec.script)?;
        let digest = |file: &InputFile| {
            Ok((bundle::name_of(&file.to)?, copy_input(&file.from, &mut std::io::sink())?))
        };
        Ok(SuppliedFiles {
            bundle: bundle::contents(&located.root)?,
            files: spec.files.iter().map(digest).collect::<Result<_, SandboxError>>()?,
        })
    }

    /// Checks the request and creates everything for the start. Accesses the disk; may start an interpreter once to
    /// query it for its library.
    pub fn prepare(&self, spec: Spec) -> Result<PreparedScript, SandboxError> {
        spec.check()?;
        let table = self.table.as_ref().map_err(|why| SandboxError::bad("interpreters", why.clone()))?;
        let mechanisms = match &self.mechanisms {
            Some(mechanisms) if !spec.unsandboxed && mechanisms.report.level >= Level::Partial => {
                Some(mechanisms)
            }
            _ if spec.unsandboxed => None,
            _ => return Err(SandboxError::NoIsolation { why: self.report().summary() }),
        };
        let located = bundle::locate(&spec.bundle_root, spec.follow_links, &spec.script)?;
        let lease = match mechanisms {
            Some(mechanisms) if mechanisms.identity => Some(identity::reserve_uid().ok_or_else(|| {
                SandboxError::NotStarted { why: "all user ids reserved for scripts are in use".to_owned() }
            })?),
            _ => None,
        };
        let owner = lease.as_ref().map(UidReservation::identity);
        let runner = self.runner(table, &located, owner.is_some())?;
        let mut work = WorkDir::create(self.setup.work_base.as_deref(), owner, &spec.files, &spec.workdir)?;
        let (root, bundle) = copy_bundle(&located.root, work.outer(), owner)?;
        if let Some(verify) = &spec.verify {
            verify.check(&SuppliedFiles { bundle, files: work.digests().clone() })?;
        }
        let env = environment::compose(&spec.env, |name| std::env::var_os(name), &runner.path, work.path())?;
        let script = root.join(&located.script);
        let (program, mut args) = match runner.program {
            None => (script, Vec::new()),
            Some(program) => {
                let mut args = runner.arguments;
                args.push(utf8(&script)?);
                (program, args)
            }
        };
        args.extend(spec.args);
        let mut plan = Plan {
            program,
            args,
            env,
            directory: work.path().join(&spec.workdir),
            identity: owner,
            namespace: false,
            limits: None,
            disk: None,
            files: None,
            syscalls: None,
            seatbelt: None,
            probe: None,
        };
        let mut wrapper = None;
        if let Some(mechanisms) = mechanisms {
            let files = FileAccess {
                landlock: mechanisms.landlock,
                readable: std::iter::once(root).chain(runner.readable).collect(),
                readable_if_present: table.readable.clone(),
                devices: table.devices.clone(),
                writable: work.path().to_owned(),
            };
            wrapper = self.wrap(mechanisms, &files)?;
            plan.namespace = mechanisms.namespace;
            plan.limits = mechanisms
                .limits
                .then(|| kernel_limits(&spec.limits, runner.reserve, foreign_task_count(mechanisms)));
            if mechanisms.disk {
                let (bytes, files) = (spec.limits.disk, spec.limits.files);
                plan.disk = Some(Disk { work: work.path().to_owned(), out: work.export()?, bytes, files });
            }
            plan.seatbelt = cfg!(target_os = "macos").then(|| seatbelt::profile(&files));
            plan.files = mechanisms.landlock.map(|_| files);
            plan.syscalls = mechanisms
                .syscalls
                .then_some(CallFilter { freeze_metadata: owner.is_none() && wrapper.is_none() });
        }
        Ok(PreparedScript {
            message: LaunchMessage { plan, stdin: spec.stdin.len(), wrapper },
            stdin: spec.stdin,
            limits: spec.limits,
            work,
            report: mechanisms.map_or_else(Report::unsandboxed, |means| means.report.clone()),
            isolated: mechanisms.is_some(),
            lease,
        })
    }

    fn wrap(&self, mechanisms: &Mechanisms, files: &FileAccess) -> Result<Option<Vec<String>>, SandboxError> {
        let Some(wrapper) = &mechanisms.wrapper else { return Ok(None) };
        let helper = detect::real(&self.setup.helper).map_err(|why| SandboxError::NotStarted { why })?;
        Ok(Some(bwrap::command(wrapper, &helper, files, identity::is_root())))
    }

    /// Returns the interpreter of a script, cached by its name.
    fn runner(&self, table: &Table, script: &ScriptLocation, other: bool) -> Result<Runner, SandboxError> {
        let key = (table.name_for(script)?.map(str::to_owned), other);
        if let Some(known) = self.runners.locked().get(&key) {
            return Ok(known.clone());
        }
        let found = table.find(script, other, &self.setup.search)?;
        self.runners.locked().insert(key, found.clone());
        Ok(found)
    }
}

/// Copies the bundle to a folder of its own name below `place`, and returns the copy's path and content. The script
/// sees only the copy: what was verified is what runs, regardless of changes of the original. Other users of the machine
/// than the `owner` cannot read it, because the original may be private.
fn copy_bundle(
    root: &Path,
    place: &Path,
    owner: Option<Identity>,
) -> Result<(PathBuf, Contents), SandboxError> {
    let holder = place.join("bundle");
    let group = owner.map(|Identity(id)| id);
    std::fs::create_dir(&holder)
        .and_then(|()| std::os::unix::fs::chown(&holder, None, group))
        .and_then(|()| std::fs::set_permissions(&holder, std::os::unix::fs::PermissionsExt::from_mode(0o750)))
        .map_err(|source| SandboxError::io("creating", &holder, source))?;
    let copy = holder.join(root.file_name().unwrap_or_else(|| std::ffi::OsStr::new("root")));
    let contents = bundle::copy(root, &copy)?;
    Ok((copy, contents))
}

/// Returns the number of tasks that the kernel counts towards a script's limit although they are not the script's.
///
/// A separate user and a user namespace are counted separately (the latter since Linux 5.14, which is older than the
/// Landlock version required here). Otherwise a script is counted together with all other tasks of this user.
fn foreign_task_count(mechanisms: &Mechanisms) -> u64 {
    if mechanisms.identity || mechanisms.namespace {
        return 0;
    }
    match (&mechanisms.wrapper, mechanisms.landlock) {
        (Some(_), Some(_)) => WRAPPER_TASKS,
        _ => identity::own_tasks(),
    }
}

/// Converts the limits to those of the kernel.
fn kernel_limits(limits: &Limits, reserve: u64, others: u64) -> ResourceLimits {
    ResourceLimits {
        cpu_seconds: limits.cpu.as_secs().max(1),
        data: limits.memory,
        address_space: limits.memory.saturating_add(reserve),
        file_size: limits.file_size,
        open_files: limits.open_files,
        tasks: limits.processes.saturating_add(others),
    }
}

fn utf8(path: &Path) -> Result<String, SandboxError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        SandboxError::bad(format!("path {}", path.display()), "is not UTF-8; rename the folder or the file")
    })
}
