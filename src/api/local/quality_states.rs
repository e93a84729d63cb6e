//! Quality states of the current skills: collects the input of the rules from lint, golden sets, runs, trust and
//! policy.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use tokio_util::sync::CancellationToken;

use super::indexer::Shared;
use super::reports::Reports;
use super::runs::{Plans, RunStore};
use super::skills::Skills;
use super::usual_request;
use crate::known_contracts::KnownContracts;
use crate::policies::PolicyFile;
use crate::work::run_blocking;
use crate::{
    Code, Error, GovernanceFilter, GovernanceList, GovernedSkill, detail, eval, lint, paging, policies, trust,
};
use skills_authoring::governance::{Facts, GoldenFacts, LifecycleStatus, RunFacts, judge};
use skills_base::sync::RwLockExt as _;
use skills_config::operands;
use skills_discovery::{Case, Expect, Fit, IsCanceled, Request};
use skills_model::RunState;
use skills_registry::policy::Policy;
use skills_registry::trust::TrustSnapshot;
use skills_registry::{Catalog, Trust, TrustState};
use skills_skill::{Severity, Skill, SkillId, Status};
use skills_store::SkillRuns;

/// Minimum number of golden queries per thread.
const MIN_QUERIES_PER_THREAD: usize = 16;

/// Number of errors and warnings.
type Findings = (usize, usize);

/// Facts in addition to a skill's own record.
struct EvidenceContext {
    catalog: Arc<Catalog>,
    findings: HashMap<SkillId, Findings>,
    golden: HashMap<SkillId, GoldenFacts>,
    runs: HashMap<String, RunFacts>,
    trust: Trust,
    trust_snapshot: TrustSnapshot,
    contracts: Arc<KnownContracts>,
    policy: Arc<Policy>,
}

/// The quality states of the current skills.
pub(super) struct Governance {
    pub skills: Skills,
    pub shared: Arc<Shared>,
    pub trust: Trust,
    pub contracts: Arc<KnownContracts>,
    pub policy: Arc<PolicyFile>,
    pub store: Arc<RunStore>,
    pub plans: Arc<Plans>,
    pub reports: Arc<Reports>,
}

impl Governance {
    /// Returns the quality states that match a filter.
    pub(super) async fn governed(&self, filter: GovernanceFilter) -> Result<GovernanceList, Error> {
        if filter.state.is_empty() {
            return self.evaluate_shared(filter).await.map(Arc::unwrap_or_clone);
        }
        // The state of each skill has to be known, whatever the states and the page.
        let all = GovernanceFilter { state: Vec::new(), limit: None, cursor: None, ..filter.clone() };
        let list = self.evaluate_shared(all).await?;
        let requested = list.skills.iter().filter(|one| filter.state.contains(&one.state));
        let mut skills: Vec<GovernedSkill> = requested.cloned().collect();
        let (total, next) = page(&mut skills, &filter)?;
        Ok(GovernanceList { skills, total, next, warnings: list.warnings.clone() })
    }

    /// Evaluates the skills that a filter without states selects, of the complete catalog once for concurrent requests.
    pub(super) async fn evaluate_shared(
        &self,
        filter: GovernanceFilter,
    ) -> Result<Arc<GovernanceList>, Error> {
        if filter.skill.is_some() {
            return self.evaluate(filter).await;
        }
        let key = format!("{filter:?}");
        self.reports.governance.share(&key, || self.evaluate(filter)).await
    }

    /// Evaluates the skills that a filter without states selects.
    async fn evaluate(&self, filter: GovernanceFilter) -> Result<Arc<GovernanceList>, Error> {
        let one = filter.skill.as_deref().map(|requested| self.skills.resolve(requested)).transpose()?;
        let is_report = one.is_none();
        let catalog = self.skills.registry.snapshot();
        let skills: Vec<Arc<Skill>> = match one {
            Some(skill) => vec![skill],
            None => catalog.entries.iter().map(|entry| Arc::clone(&entry.skill)).collect(),
        };
        let in_domain = |skill: &Arc<Skill>| {
            let domain = skill.domain.as_ref().map(|domain| domain.value.as_str());
            filter.domain.is_empty() || domain.is_some_and(|domain| filter.domain.iter().any(|d| d == domain))
        };
        let mut skills: Vec<Arc<Skill>> = skills.into_iter().filter(in_domain).collect();
        // Only the skills of the page are evaluated.
        let (total, next) = page(&mut skills, &filter)?;
        let runs = self.runs_of(&skills).await?;
        let (trust, policy) = (self.trust.clone(), self.policy.current()?);
        let contracts = Arc::clone(&self.contracts);
        let (shared, usual) = (Arc::clone(&self.shared), usual_request(&self.skills.config));
        let own = self.skills.config.golden_file();
        // The work ends at the next query once its caller is gone.
        let canceled = CancellationToken::new();
        let _cancel = canceled.clone().drop_guard();
        let is_canceled: IsCanceled = Arc::new(move || canceled.is_cancelled());
        let work = move || {
            let findings = findings(&catalog, &skills)?;
            let (golden, warnings) = golden(&catalog, own.as_deref(), &skills, &shared, &usual, is_canceled)?;
            let evidence = EvidenceContext {
                catalog,
                findings,
                golden,
                runs,
                trust_snapshot: trust.trust_snapshot(),
                trust,
                contracts,
                policy,
            };
            let judgments = skills.par_iter().map(|skill| {
                let assessment = judge(&evidence.facts(skill));
                GovernedSkill {
                    skill_id: skill.id.clone(),
                    state: assessment.state,
                    reasons: assessment.reasons,
                    next: assessment.next,
                }
            });
            Ok(Arc::new(GovernanceList { skills: judgments.collect(), total, next, warnings }))
        };
        if is_report { self.reports.compute(work).await } else { run_blocking(work).await }
    }

    /// Returns the ended runs of these skills, counting those of their current contracts separately.
    async fn runs_of(&self, skills: &[Arc<Skill>]) -> Result<HashMap<String, RunFacts>, Error> {
        let Some(counts) = self.store.counts().await? else { return Ok(HashMap::new()) };
        let mut by_skill: HashMap<String, Vec<SkillRuns>> = HashMap::new();
        for runs in counts.runs_by_skill().await? {
            by_skill.entry(runs.skill_id.clone()).or_default().push(runs);
        }
        let ran: Vec<Arc<Skill>> =
            skills.iter().filter(|skill| by_skill.contains_key(skill.id.as_str())).cloned().collect();
        let plans = Arc::clone(&self.plans);
        run_blocking(move || {
            let mut facts: HashMap<String, RunFacts> = HashMap::new();
            for skill in ran {
                let rows = by_skill.remove(skill.id.as_str()).unwrap_or_default();
                let digests = plans.present_digests(&skill);
                let of = facts.entry(skill.id.to_string()).or_default();
                for row in rows {
                    let present = digests.contains(&row.contract_digest);
                    match row.state {
                        RunState::Completed if present => of.completed += row.runs,
                        RunState::Failed if present => of.failed += row.runs,
                        RunState::Completed | RunState::Failed => of.earlier += row.runs,
                        _ => {}
                    }
                }
            }
            Ok(facts)
        })
        .await
    }
}

impl EvidenceContext {
    fn facts(&self, skill: &Arc<Skill>) -> Facts {
        let (errors, warnings) = self.findings.get(&skill.id).copied().unwrap_or_default();
        let result = policies::policy_result(&self.policy, &self.catalog, skill);
        let denied =
            (!result.allowed).then(|| result.denied_by.unwrap_or_else(|| "no rule allows it".to_owned()));
        Facts {
            operand: operands([skill.id.as_str()]),
            errors,
            warnings,
            life: match skill.status.value {
                Status::Stable => LifecycleStatus::Stable,
                Status::Deprecated => LifecycleStatus::Deprecated,
                Status::Experimental | Status::Other(_) => LifecycleStatus::Unfinished,
            },
            golden: self.golden.get(&skill.id).copied().unwrap_or_default(),
            has_contract: self.contracts.has(&skill.root_dir),
            runs: self.runs.get(skill.id.as_str()).copied().unwrap_or_default(),
            untrusted: self.untrusted(skill),
            denied,
        }
    }

    /// Returns why a skill may not run as it is; `None` if it may, or if it contains nothing to run.
    fn untrusted(&self, skill: &Skill) -> Option<String> {
        let why = match self.trust_snapshot.state(&skill.root_dir) {
            TrustState::Shipped | TrustState::Config { .. } | TrustState::Pinned { .. } => return None,
            TrustState::Changed { files } => {
                format!("it changed since it was trusted ({})", files.join(", "))
            }
            TrustState::Untrusted => "not trusted".to_owned(),
        };
        let subject = trust::survey_without_nested(&self.trust, &skill.root_dir, Some(skill));
        match &subject.obstacle {
            // What it executes cannot be determined.
            Some(obstacle) => Some(format!("{why}: {obstacle}")),
            None => subject.runs_something().then_some(why),
        }
    }
}

/// An item of a list of skills.
trait HasSkillId {
    fn id(&self) -> &SkillId;
}

impl HasSkillId for Arc<Skill> {
    fn id(&self) -> &SkillId {
        &self.id
    }
}

impl HasSkillId for GovernedSkill {
    fn id(&self) -> &SkillId {
        &self.skill_id
    }
}

/// Retains the requested page; returns the total number, and the cursor of the next page.
fn page<T: HasSkillId>(
    all: &mut Vec<T>,
    filter: &GovernanceFilter,
) -> Result<(usize, Option<String>), Error> {
    let total = all.len();
    let id = |at: usize| all[at].id().as_str();
    let (part, next) = paging::part(total, id, filter.limit, filter.cursor.as_deref())?;
    all.truncate(part.end);
    all.drain(..part.start);
    Ok((total, next))
}

/// Returns the number of errors and warnings by skill.
fn findings(catalog: &Catalog, skills: &[Arc<Skill>]) -> Result<HashMap<SkillId, Findings>, Error> {
    let count = |all: &mut HashMap<SkillId, Findings>, id: &SkillId, severity: Severity| {
        let (errors, warnings) = all.entry(id.clone()).or_default();
        match severity {
            Severity::Error => *errors += 1,
            Severity::Warning => *warnings += 1,
            Severity::Info => {}
        }
    };
    let mut all = HashMap::new();
    if let [skill] = skills {
        for finding in detail::describe(catalog, skill)?.findings {
            count(&mut all, &skill.id, finding.severity);
        }
    } else {
        for found in lint::winners(catalog, skills) {
            count(&mut all, &found.skill_id, found.finding.severity);
        }
    }
    Ok(all)
}

/// Returns how the golden queries that name these skills are answered, and which golden files were skipped.
fn golden(
    catalog: &Catalog,
    own: Option<&Path>,
    skills: &[Arc<Skill>],
    shared: &Shared,
    usual: &Request,
    is_canceled: IsCanceled,
) -> Result<(HashMap<SkillId, GoldenFacts>, Vec<String>), Error> {
    let golden = match eval::golden_of(catalog, own) {
        Ok(golden) => golden,
        Err(error) if error.code == Code::NotFound => return Ok((HashMap::new(), Vec::new())),
        Err(error) => return Err(error),
    };
    let requested: std::collections::HashSet<&SkillId> = skills.iter().map(|skill| &skill.id).collect();
    let names = |case: &&Case| match &case.expect {
        Expect::AnyOf(ids) => ids.iter().any(|id| requested.contains(id)),
        Expect::Not(id) => requested.contains(id),
        Expect::Nothing => false,
    };
    let cases: Vec<&Case> = golden.cases().iter().filter(names).collect();
    // A snapshot: the index changes meanwhile, and other rankings do not wait for that.
    let router = shared.router.read_locked().snapshot().cancelable(is_canceled);
    // The few queries of one skill do not wait for the shared threads.
    let firsts = cases.par_iter().with_min_len(MIN_QUERIES_PER_THREAD).map(|case| {
        let request = Request { intent: case.query.clone(), ..usual.clone() };
        let answer =
            router.discover(&request).map_err(|error| Error::new(Code::InvalidRequest, error.to_string()))?;
        let fits = answer.fit != Fit::None;
        Ok((answer.results.first().map(|hit| hit.skill_id.clone()), fits))
    });
    let firsts: Vec<(Option<SkillId>, bool)> = firsts.collect::<Result<_, Error>>()?;
    let mut facts: HashMap<SkillId, GoldenFacts> = HashMap::new();
    for (case, (first, fits)) in cases.iter().zip(firsts) {
        match &case.expect {
            Expect::AnyOf(ids) => {
                let found = first.is_some_and(|first| ids.contains(&first));
                for id in ids {
                    let of = facts.entry(id.clone()).or_default();
                    of.expected += 1;
                    of.found += usize::from(found);
                }
            }
            Expect::Not(id) => {
                let of = facts.entry(id.clone()).or_default();
                of.unwanted += 1;
                of.intruded += usize::from(fits && first.as_ref() == Some(id));
            }
            Expect::Nothing => {}
        }
    }
    Ok((facts, golden.warnings().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::super::Local;
    use super::*;
    use skills_config::{Config, Env, MEMORY_STORE};

    #[tokio::test(flavor = "multi_thread")]
    async fn measurement_of_a_caller_that_is_gone_ends() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("skills");
        std::fs::create_dir_all(root.join("pdf")).unwrap();
        std::fs::write(
            root.join("pdf/SKILL.md"),
            "---\nname: pdf\ndescription: Reads pdf files.\n---\n# pdf\n",
        )
        .unwrap();
        std::fs::write(root.join("golden.yaml"), "- query: read a pdf\n  expect: [pdf]\n").unwrap();
        let config = Config {
            store: Some(MEMORY_STORE.to_owned()),
            watch: false,
            argument_roots: vec![root],
            ..Config::defaults(home.path(), &Env::at(home.path()))
        };
        let core = Local::open(config).unwrap();
        core.ranking.wait_for_index().await.unwrap();
        let quality = &core.quality;
        let catalog = quality.skills.registry.snapshot();
        let skills: Vec<Arc<Skill>> = catalog.entries.iter().map(|entry| Arc::clone(&entry.skill)).collect();
        let usual = usual_request(&quality.skills.config);
        let measured = |is_gone: bool| {
            golden(&catalog, None, &skills, &quality.shared, &usual, Arc::new(move || is_gone))
        };
        assert_eq!(measured(false).unwrap().0[&SkillId::new("pdf")].found, 1);
        assert_eq!(measured(true).unwrap_err().message, "canceled");
    }
}
