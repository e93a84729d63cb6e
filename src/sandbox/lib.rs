//! Isolated execution of a script of a bundle, and a report of the isolation in force.
//!
//! Who may run which script is decided elsewhere; this crate runs it: without network, with the bundle read-only, a
//! private work directory, a scrubbed environment, and limits on time, memory, processes and output. The capabilities
//! of the machine are determined by trying them ([`Sandbox::detect`]) and described by the [`Report`]; if files and
//! network cannot be isolated, a script is rejected unless [`Spec::unsandboxed`] is set.
//!
//! The guarantees cover files, network, environment and resources. They do not cover kernel vulnerabilities, side
//! channels, fairness between runs, and the existence of files whose paths are known.

mod bundle;
mod bwrap;
mod detect;
mod environment;
mod error;
mod helper;
mod identity;
mod interpreter;
mod launch;
mod outcome;
mod output_stream;
mod plan;
mod prepare;
mod report;
mod seatbelt;
mod spec;
mod workdir;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

pub use bundle::{Contents, ContentsCache};
pub use error::SandboxError;
pub use helper::helper_entry;
pub use outcome::{DiskLimit, End, ExceededLimit, Outcome, Produced, Stream};
pub use output_stream::{Channel, OutputListener};
pub use report::{Coverage, Enforcement, Guarantee, Level, Report};
pub use spec::{InputFile, Limits, Spec, SuppliedFiles, Verify};
pub use workdir::Leftovers;

use prepare::{PreparedScript, Preparer};
use skills_base::sync::MutexExt as _;

/// Components of a sandbox.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The program that calls [`helper_entry`] at the start of its `main`.
    pub helper: PathBuf,
    /// The bubblewrap executable to wrap the helper, if that works.
    pub bubblewrap: Option<PathBuf>,
    /// The folder in which the work directories of scripts are created; default: the system's temporary folder.
    pub work_base: Option<PathBuf>,
    /// Folders in which interpreters are searched, before the default ones.
    pub search: Vec<PathBuf>,
}

impl Setup {
    /// Uses this program as its own helper, and the search path of its environment.
    pub fn of_this_program() -> Self {
        let search: Vec<PathBuf> =
            std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        // The running program itself, even if its file has been replaced in the meantime.
        let helper = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe().unwrap_or_default()
        };
        Self { helper, bubblewrap: bwrap::find(&search), work_base: None, search }
    }
}

/// Runs scripts with the isolation that this machine supports.
#[derive(Clone, Debug)]
pub struct Sandbox {
    preparer: Arc<Preparer>,
}

impl Sandbox {
    /// Returns the sandbox of this program. The first call probes the machine, which takes about ten milliseconds;
    /// later calls return the same sandbox.
    ///
    /// The program must call [`helper_entry`] at the start of `main`; otherwise everything is reported as unavailable.
    pub fn detect() -> Self {
        Self::detect_in(None)
    }

    /// Returns the sandbox like [`Self::detect`], with the work directories of scripts in this folder.
    pub fn detect_in(work_base: Option<PathBuf>) -> Self {
        static FOUND: Mutex<BTreeMap<Option<PathBuf>, Sandbox>> = Mutex::new(BTreeMap::new());
        let mut found = FOUND.locked();
        let sandbox = found
            .entry(work_base.clone())
            .or_insert_with(|| Self::with(Setup { work_base, ..Setup::of_this_program() }));
        sandbox.clone()
    }

    /// Counts the work directories of scripts whose processes have ended, in all folders in which they are created.
    pub fn leftovers(&self) -> Leftovers {
        workdir::leftovers(self.preparer.work_base(), false)
    }

    /// Deletes the work directories of scripts whose processes have ended.
    pub fn clear_leftovers(&self) -> Leftovers {
        workdir::leftovers(self.preparer.work_base(), true)
    }

    /// Creates a sandbox from the given components and probes the machine.
    pub fn with(setup: Setup) -> Self {
        Self { preparer: Arc::new(Preparer::open(setup)) }
    }

    /// Returns the isolation of the next run, unless it requests none.
    pub fn report(&self) -> &Report {
        self.preparer.report()
    }

    /// Returns what [`Spec::verify`] would receive if the script started now, for review. Starts nothing, so that
    /// approval is not requested for a script that cannot run anyway.
    ///
    /// # Errors
    /// Returns the errors of [`Self::run`] that can be determined in advance.
    pub fn preview(&self, spec: &Spec) -> Result<SuppliedFiles, SandboxError> {
        self.preparer.preview(spec)
    }

    /// Runs one script until it ends, reaches its time limit, or is canceled by the caller. Dropping the future kills
    /// the script.
    ///
    /// Everything that the script started is dead when this returns. A failed script is an [`Outcome`] too.
    pub async fn run(&self, mut spec: Spec, cancel: CancellationToken) -> Result<Outcome, SandboxError> {
        let preparer = Arc::clone(&self.preparer);
        let output = spec.output.take();
        let prepared = tokio::task::spawn_blocking(move || preparer.prepare(spec))
            .await
            .map_err(|error| SandboxError::NotStarted { why: error.to_string() })??;
        let PreparedScript { message, stdin, limits, work, report, isolated, lease } = prepared;
        let work = Arc::new(work);
        // Without a file system of limited size, written files are counted.
        let counted = message.plan.disk.is_none().then_some(&work);
        let mut ran = if isolated {
            launch::run_isolated(self.preparer.helper(), &message, &stdin, &limits, output, counted, &cancel)
                .await?
        } else {
            launch::run_unsandboxed(&message.plan, stdin, &limits, output, counted, &cancel).await?
        };
        // The user id is only released now that no process runs under it.
        drop(lease);
        let (produced, truncated) = work.produced();
        let written = produced.iter().map(|file| file.bytes).sum::<u64>();
        if ran.exceeded.is_none() && written > limits.disk {
            // Sparse files take less space on disk than their length, which is their size as artifacts.
            ran.exceeded = Some(ExceededLimit { limit: DiskLimit::Bytes, allowed: limits.disk });
        }
        let produced_truncated = truncated || ran.truncated;
        Ok(Outcome {
            end: ran.end,
            stdout: ran.stdout,
            stderr: ran.stderr,
            timed_out: ran.timed_out,
            canceled: ran.canceled,
            duration: ran.duration,
            exceeded: ran.exceeded,
            leftovers: ran.leftovers,
            produced,
            produced_truncated,
            report,
            work,
        })
    }
}
