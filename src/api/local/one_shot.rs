//! The core for a single command: it waits for the scan, watches nothing, and builds only what the command needs of the
//! index.

use std::path::PathBuf;
use std::sync::Arc;

use super::compose::compose;
use super::{Local, SCAN_TIMEOUT, ensure_cache, router};
use crate::bisect::{BisectJob, Bisection};
use crate::client_roots::unsearched_files;
use crate::eval::{self, EvalJob, Evaluation};
use crate::git::router_at;
use crate::lint::{self, LintJob, LintReport, Repairable};
use crate::work::run_blocking;
use crate::{Code, Error};
use skills_base::files::canonicalize;
use skills_base::sync::RwLockExt as _;
use skills_config::Config;
use skills_discovery::Router;

/// The parts of the core that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreParts {
    Catalog,
    /// The catalog and the index, with headings and bodies.
    Index,
}

impl Local {
    /// Opens the core for one command: returns when what it needs is available.
    pub async fn open_once(mut config: Config, needs: CoreParts) -> Result<Self, Error> {
        config.watch = false;
        let local = compose(config, true)?;
        // The index is read from its file while the roots are scanned.
        let restored = (needs == CoreParts::Index).then(|| {
            let mut indexer = local.ranking.indexer();
            tokio::spawn(run_blocking(move || {
                indexer.restore();
                Ok(indexer)
            }))
        });
        let scanned = tokio::time::timeout(SCAN_TIMEOUT, local.skills.registry.wait_scanned()).await;
        let catalog = scanned.unwrap_or_else(|_| {
            tracing::warn!("the scan is incomplete; using the skills found so far");
            local.skills.registry.snapshot()
        });
        if let Some(restored) = restored {
            let mut indexer = restored.await.map_err(|error| Error::from_join_error(&error))??;
            let catalog = Arc::clone(&catalog);
            run_blocking(move || {
                indexer.level(&catalog);
                // See below.
                std::mem::forget(indexer);
                Ok(())
            })
            .await?;
        }
        // The process ends with the command. Freeing each skill before would take longer than most commands.
        std::mem::forget((catalog, Arc::clone(&local.ranking.shared)));
        local.ranking.shared.ready.send_replace(true);
        Ok(local)
    }
}

/// Lints the bundles below these paths (files or folders), or all roots if there are none, and those that only clients
/// find in their folders there; repairs those of the catalog before if requested, except links that point outside their
/// folders.
///
/// # Errors
/// Returns `invalid_configuration` if a repair cannot be written.
pub async fn lint(config: Config, job: LintJob) -> Result<LintReport, Error> {
    let LintJob { paths, fix, environment } = job;
    let all_roots = paths.is_empty();
    let mut fixed = Vec::new();
    let mut report = LintReport::default();
    let (mut findings, mut named) = (Vec::new(), Vec::new());
    for path in paths {
        match fix.then(|| lint::named(&path)) {
            Some(Err(link)) => {
                report.skills += 1;
                report.findings.push(*link);
                continue;
            }
            Some(Ok(file)) => named.push(file),
            None => {}
        }
        findings.push(path);
    }
    let (files, folders): (Vec<PathBuf>, Vec<PathBuf>) =
        findings.into_iter().partition(|path| !path.is_dir());
    if !files.is_empty() {
        let named = named.clone().into_iter().filter(|file| !file.real.is_dir());
        let mut config = config.clone();
        let _temporary_cache = ensure_cache(&mut config)?;
        let catalog = catalog(config).await?;
        let found = move || Ok((lint::repair(named)?, lint::files_in_place(&files, &catalog, environment)));
        let (repaired, found) = run_blocking(found).await?;
        fixed.extend(repaired);
        report = report.and(found);
    }
    if all_roots || !folders.is_empty() {
        let mut config =
            if all_roots { config } else { Config { argument_roots: folders, demo: false, ..config } };
        let _temporary_cache = ensure_cache(&mut config)?;
        if fix {
            let catalog = catalog(config.clone()).await?;
            let repaired = run_blocking(move || {
                let roots = catalog.roots.iter().filter_map(|root| canonicalize(&root.path).ok());
                let within: Vec<PathBuf> = if all_roots {
                    roots.collect()
                } else {
                    named.into_iter().map(|folder| folder.real).collect()
                };
                lint::repair(Repairable::of(&catalog, &within))
            });
            fixed.extend(repaired.await?);
        }
        let catalog = catalog(config).await?;
        let checked = move || {
            let report = lint::checked_catalog(&catalog, environment);
            let unsearched = unsearched_files(&catalog);
            if unsearched.is_empty() {
                return Ok(report);
            }
            Ok(report.and(lint::files_in_place(&unsearched, &catalog, environment)))
        };
        report = report.and(run_blocking(checked).await?);
    }
    report.fixed = fixed;
    report.summarize();
    Ok(report)
}

/// Measures the ranking on golden queries: of files given by name, else of the roots.
///
/// # Errors
/// Returns `not_found` if there is no golden set, `invalid_configuration` for unreadable files.
pub async fn eval(config: Config, job: EvalJob) -> Result<Evaluation, Error> {
    let router = match &job.skills {
        Some(skills) => {
            let (empty, skills) = (router(&config, true)?, skills.clone());
            EvaluationScope::Files(Box::new(run_blocking(move || eval::router_of(empty, &skills)).await?))
        }
        None => EvaluationScope::Roots(Local::open_once(config, CoreParts::Index).await?),
    };
    run_blocking(move || {
        let golden = match (&job.queries, &router) {
            (Some(queries), _) => eval::golden_in(queries, job.out_of_scope.as_deref())?,
            (None, EvaluationScope::Roots(local)) => {
                let own = local.skills.config.golden_file();
                let golden = eval::golden_of(&local.skills.registry.snapshot(), own.as_deref())?;
                if golden.files().is_empty() {
                    let error = Error::new(Code::InvalidConfiguration, golden.warnings().join("; "));
                    return Err(error.of_unreadable_file());
                }
                golden
            }
            (None, EvaluationScope::Files(_)) => {
                return Err(Error::new(Code::InvalidRequest, "--skills needs --queries"));
            }
        };
        match &router {
            EvaluationScope::Files(router) => eval::measure(router, golden, &job, None, None),
            EvaluationScope::Roots(local) => {
                let router = local.ranking.shared.router.read_locked();
                let catalog = local.skills.registry.snapshot();
                let earlier = job.against.as_deref();
                let earlier = earlier.map(|reference| router_at(&router, &catalog, reference)).transpose()?;
                let measured = eval::measure(&router, golden, &job, earlier.as_ref(), Some(&catalog));
                if router.is_damaged() {
                    local.ranking.remove_index_cache();
                    return Err(Error::new(
                        Code::InternalError,
                        "the cached index was damaged and has been removed; run the command again",
                    ));
                }
                measured
            }
        }
    })
    .await
}

/// Finds the commit that changed the winner of a request.
///
/// # Errors
/// Returns `invalid_request` for a folder that is not in a git repository, and errors of reading it.
pub async fn bisect(config: Config, job: BisectJob) -> Result<Bisection, Error> {
    let local = Local::open_once(config, CoreParts::Index).await?;
    run_blocking(move || {
        let router = local.ranking.shared.router.read_locked().snapshot();
        crate::bisect::bisect(&router, &local.skills.registry.snapshot(), &job)
    })
    .await
}

/// The skills over which a golden set is ranked.
enum EvaluationScope {
    Files(Box<Router>),
    Roots(Local),
}

async fn catalog(config: Config) -> Result<Arc<skills_registry::Catalog>, Error> {
    let settings = skills_registry::Settings::new(&Config { watch: false, ..config });
    let registry = skills_registry::Registry::open(settings)
        .map_err(|e| Error::new(Code::InternalError, format!("cannot open the registry: {e}")))?;
    Ok(registry.wait_scanned().await)
}
