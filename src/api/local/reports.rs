//! Reports about the complete catalog, each of which may take seconds on all processors: one at a time, on its own
//! threads, and shared by concurrent requests.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::work::run_blocking;
use crate::{Code, Error, GovernanceList, LintReport, SingleFlight};

/// Builds threads for a long computation, so that nothing else waits in the queue of the shared threads.
///
/// # Errors
/// Returns `internal_error` if a thread cannot be started.
pub(super) fn separate_threads(name: &'static str) -> Result<rayon::ThreadPool, Error> {
    rayon::ThreadPoolBuilder::new().thread_name(move |_| name.to_owned()).build().map_err(|error| {
        Error::new(Code::InternalError, format!("cannot start the threads for {name}: {error}"))
    })
}

/// The reports of one core that are being computed.
pub(super) struct Reports {
    /// Findings of the linter, before any filter.
    pub lint: SingleFlight<Result<Arc<LintReport>, Error>>,
    /// Quality states, by the filter that selects the skills.
    pub governance: SingleFlight<Result<Arc<GovernanceList>, Error>>,
    /// Held by the report that is being computed.
    turn: Arc<Semaphore>,
}

impl Reports {
    /// Creates it without reports.
    pub fn new() -> Self {
        Self {
            lint: SingleFlight::default(),
            governance: SingleFlight::default(),
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Computes a report when those that were requested before have ended: it uses all processors.
    pub async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // Held until the work has ended, even if its caller is gone. The semaphore is never closed.
        let turn = Arc::clone(&self.turn).acquire_owned().await;
        run_blocking(move || {
            let _turn = turn;
            separate_threads("reports")?.install(work)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Barrier;
    use std::time::Duration;

    use super::super::Local;
    use super::*;
    use crate::{GovernanceFilter, LintFilter, ListFilter};
    use skills_config::{Config, Env, MEMORY_STORE};
    use skills_runs::{Capabilities, CapabilityFolder};

    const SKILLS: [&str; 3] = ["add", "book", "cancel"];

    /// Opens a core with three skills and three capabilities in `skills/`.
    async fn core(home: &Path) -> Local {
        let root = home.join("skills");
        std::fs::create_dir_all(root.join("capabilities")).unwrap();
        for name in SKILLS {
            let skill = format!("---\nname: {name}\ndescription: Use it to {name} orders.\n---\n# {name}\n");
            std::fs::create_dir_all(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("SKILL.md"), skill).unwrap();
            let capability = format!("id: a.{name}\nversion: 1.0.0\ndescription: {name}\n");
            std::fs::write(root.join(format!("capabilities/a.{name}.yaml")), capability).unwrap();
        }
        let config = Config {
            store: Some(MEMORY_STORE.to_owned()),
            watch: false,
            argument_roots: vec![root],
            ..Config::defaults(home, &Env::at(home))
        };
        let core = Local::open(config).unwrap();
        core.ranking.wait_for_index().await.unwrap();
        core
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn reports_and_capabilities_need_no_shared_thread() {
        let home = tempfile::tempdir().unwrap();
        let core = core(home.path()).await;
        let barrier = Arc::new(Barrier::new(rayon::current_num_threads() + 1));
        let of_threads = Arc::clone(&barrier);
        // The first wait ends when all threads are occupied, the second one when the reports are there.
        rayon::spawn_broadcast(move |_| {
            of_threads.wait();
            of_threads.wait();
        });
        barrier.wait();
        let place = CapabilityFolder {
            dir: home.path().join("skills"),
            bundle: None,
            shipped: false,
            of_project: false,
        };
        let requests = async {
            let linted = core.records.lint(LintFilter::default()).await?;
            let governed = core.quality.governed(GovernanceFilter::default()).await?;
            let listed = core.records.list(ListFilter::default()).await?;
            let loaded = run_blocking(move || Ok(Capabilities::load(&[place]))).await?;
            Ok::<_, Error>((linted.skills, governed.total, listed.skills.len(), loaded.ids().len()))
        };
        let found = tokio::time::timeout(Duration::from_secs(20), requests).await;
        barrier.wait();
        let (linted, governed, listed, loaded) = found.expect("they wait for shared threads").unwrap();
        assert!(linted >= SKILLS.len() && governed >= SKILLS.len() && listed >= SKILLS.len());
        assert_eq!(loaded, SKILLS.len());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_report_is_computed_at_a_time() {
        let reports = Reports::new();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let mut first = Box::pin(reports.compute(move || Ok(ended.recv().ok())));
        assert!(futures::poll!(&mut first).is_pending());
        // The work continues when its caller is gone.
        drop(first);
        let mut second = Box::pin(reports.compute(|| Ok(rayon::current_thread_index())));
        assert!(futures::poll!(&mut second).is_pending());
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut second).await.is_err());
        end.send(()).unwrap();
        assert!(second.await.unwrap().is_some());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn concurrent_requests_share_a_report() {
        let home = tempfile::tempdir().unwrap();
        let core = core(home.path()).await;
        let turn = Arc::clone(&core.records.reports.turn).acquire_owned().await.unwrap();
        let evaluate = || Box::pin(core.quality.evaluate_shared(GovernanceFilter::default()));
        let mut all = [evaluate(), evaluate(), evaluate()];
        for one in &mut all {
            assert!(futures::poll!(one).is_pending());
        }
        drop(turn);
        let [first, second, third] = all;
        first.await.unwrap();
        let (second, third) = (second.await.unwrap(), third.await.unwrap());
        assert!(Arc::ptr_eq(&second, &third), "both came while the first was being computed");
    }
}
