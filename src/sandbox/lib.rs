//! Isolated execution of a script of a bundle, and the report of what isolation is in force.
//!
//! Who may run which script is decided elsewhere; here it is run: without network, with the bundle read-only, one
//! private work directory, a scrubbed environment, and limits on time, memory, processes and output. What of this a
//! machine can give is found out by trying ([`Sandbox::detect`]) and told by the [`Report`]; where files and network
//! cannot be closed off, a script is refused unless [`Spec::unsandboxed`] asks for less.
//!
//! Promised are files, network, environment and resources. Not promised: faults of the kernel, side channels,
//! fairness between runs, and that the mere existence of a file whose path is known stays hidden.

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
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

pub use bundle::{Contents, ContentsCache};
pub use error::SandboxError;
pub use helper::helper_entry;
pub use outcome::{DiskLimit, End, Exceeded, Outcome, Produced, Stream};
pub use output_stream::{Channel, Tap};
pub use report::{Coverage, Held, Level, Promise, Report};
pub use spec::{InputFile, Limits, Spec, Supplied, Verify};
pub use workdir::Leftovers;

use prepare::{Prepared, Workshop};

/// Where the parts of a sandbox come from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The program that calls [`helper_entry`] first thing in its `main`.
    pub helper: PathBuf,
    /// The bubblewrap to put around the helper, when that works.
    pub bubblewrap: Option<PathBuf>,
    /// Where the work folders of scripts are created; default: the system's temporary folder.
    pub work_base: Option<PathBuf>,
    /// Folders in which interpreters are looked for, before the usual ones.
    pub search: Vec<PathBuf>,
}

impl Setup {
    /// This program as its own helper, and the search path of its environment.
    pub fn of_this_program() -> Self {
        let search: Vec<PathBuf> =
            std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        // The running program itself, even when its file has been replaced in the meantime.
        let helper = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe().unwrap_or_default()
        };
        Self { helper, bubblewrap: bwrap::find(&search), work_base: None, search }
    }
}

/// Runs scripts with the isolation that this machine gives.
#[derive(Clone, Debug)]
pub struct Sandbox {
    workshop: Arc<Workshop>,
}

impl Sandbox {
    /// The sandbox of this program. The first call tries out what works, which takes some ten milliseconds; later
    /// ones answer the same.
    ///
    /// The program must call [`helper_entry`] first thing in `main`; otherwise everything is reported unavailable.
    pub fn detect() -> Self {
        Self::detect_in(None)
    }

    /// As [`Self::detect`], with the work folders of scripts in this folder.
    pub fn detect_in(work_base: Option<PathBuf>) -> Self {
        static FOUND: Mutex<BTreeMap<Option<PathBuf>, Sandbox>> = Mutex::new(BTreeMap::new());
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let sandbox = found
            .entry(work_base.clone())
            .or_insert_with(|| Self::with(Setup { work_base, ..Setup::of_this_program() }));
        sandbox.clone()
    }

    /// The work folders of scripts whose processes are gone, in all places where they are made.
    pub fn leftovers(&self) -> Leftovers {
        workdir::leftovers(self.workshop.work_base(), false)
    }

    /// Deletes the work folders of scripts whose processes are gone.
    pub fn clear_leftovers(&self) -> Leftovers {
        workdir::leftovers(self.workshop.work_base(), true)
    }

    /// A sandbox with given parts; tries out what works.
    pub fn with(setup: Setup) -> Self {
        Self { workshop: Arc::new(Workshop::open(setup)) }
    }

    /// The isolation that the next run gets, unless it asks for none.
    pub fn report(&self) -> &Report {
        self.workshop.report()
    }

    /// What [`Spec::verify`] would be given if the script started now, to show it to a person. Starts nothing.
    ///
    /// # Errors
    /// As [`Self::run`], for what can be known before, so that a person is not asked about what cannot run anyway.
    pub fn preview(&self, spec: &Spec) -> Result<Supplied, SandboxError> {
        self.workshop.preview(spec)
    }

    /// Runs one script to its end, its time limit, or the caller's wish. Dropping the future kills the script.
    ///
    /// Everything the script started is dead when this returns. A script that fails is an [`Outcome`] too.
    pub async fn run(&self, mut spec: Spec, cancel: CancellationToken) -> Result<Outcome, SandboxError> {
        let workshop = Arc::clone(&self.workshop);
        let tap = spec.tap.take();
        let prepared = tokio::task::spawn_blocking(move || workshop.prepare(spec))
            .await
            .map_err(|error| SandboxError::NotStarted { why: error.to_string() })??;
        let Prepared { order, stdin, limits, work, report, isolated, lease } = prepared;
        let work = Arc::new(work);
        // What is not limited by a file system is counted.
        let counted = order.plan.disk.is_none().then_some(&work);
        let mut ran = if isolated {
            launch::isolated(self.workshop.helper(), &order, &stdin, &limits, tap, counted, &cancel).await?
        } else {
            launch::spawn_unsandboxed(&order.plan, stdin, &limits, tap, counted, &cancel).await?
        };
        // The user number is free again only now that nothing runs under it.
        drop(lease);
        let (produced, truncated) = work.produced();
        let written = produced.iter().map(|file| file.bytes).sum::<u64>();
        if ran.exceeded.is_none() && written > limits.disk {
            // Files with holes take less on the disk than they are long, and as artifacts as much as that.
            ran.exceeded = Some(Exceeded { limit: DiskLimit::Bytes, allowed: limits.disk });
        }
        let produced_truncated = truncated || ran.truncated;
        Ok(Outcome {
            end: ran.end,
            stdout: ran.stdout,
            stderr: ran.stderr,
            timed_out: ran.timed_out,
            cancelled: ran.cancelled,
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
