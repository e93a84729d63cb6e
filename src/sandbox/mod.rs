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
mod plan;
mod prepare;
mod report;
mod seatbelt;
mod spec;
mod tap;
mod workdir;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

pub use error::SandboxError;
pub use helper::helper_entry;
pub use outcome::{End, Outcome, Produced, Stream};
pub use report::{Coverage, Held, Level, Promise, Report};
pub use spec::{InputFile, Limits, Spec};
pub use tap::{Channel, Tap};

use prepare::{Prepared, Workshop};

/// Where the parts of a sandbox come from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The program that calls [`helper_entry`] first thing in its `main`.
    pub helper: PathBuf,
    /// The bubblewrap to put around the helper, when that works.
    pub bubblewrap: Option<PathBuf>,
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
        Self { helper, bubblewrap: bwrap::find(&search), search }
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
        static FOUND: OnceLock<Sandbox> = OnceLock::new();
        FOUND.get_or_init(|| Self::with(Setup::of_this_program())).clone()
    }

    /// A sandbox with given parts; tries out what works.
    pub fn with(setup: Setup) -> Self {
        Self { workshop: Arc::new(Workshop::open(setup)) }
    }

    /// The isolation that the next run gets, unless it asks for none.
    pub fn report(&self) -> &Report {
        self.workshop.report()
    }

    /// Whether a script would be taken at all: its path, its interpreter, its variables, its files. Starts nothing,
    /// so that a person is not asked about what cannot run anyway.
    ///
    /// # Errors
    /// As [`Self::run`], for what can be known before.
    pub fn check(&self, spec: &Spec) -> Result<(), SandboxError> {
        self.workshop.check(spec)
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
        let ran = if isolated {
            launch::isolated(self.workshop.helper(), &order, &stdin, &limits, tap, &cancel).await?
        } else {
            launch::bare(&order.plan, stdin, &limits, tap, &cancel).await?
        };
        // The user number is free again only now that nothing runs under it.
        drop(lease);
        let (produced, produced_truncated) = work.produced();
        Ok(Outcome {
            end: ran.end,
            stdout: ran.stdout,
            stderr: ran.stderr,
            timed_out: ran.timed_out,
            cancelled: ran.cancelled,
            duration: ran.duration,
            leftovers: ran.leftovers,
            produced,
            produced_truncated,
            report,
            work,
        })
    }
}
