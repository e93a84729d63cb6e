//! A core that returns results defined by a test, counts requests, and can delay responses.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use skills_api::{
    Client, ClientView, Code, Connection, Counting, Diagnostics, Error, Event, FileContent, GovernanceFilter,
    GovernanceList, IndexProgress, LevelTokens, ListFilter, MetricsReport, SkillDetail, SkillList,
};
use skills_discovery::{Answer, BodyLine, Request};
use skills_registry::{Catalog, ScanProgress};
use skills_skill::SkillId;
use tokio::sync::{Semaphore, broadcast};

use super::delegate_runs::delegate_runs;
use super::fake_runs::FakeRuns;

type Discover = Box<dyn Fn(&Request) -> Answer + Send + Sync>;

pub struct FakeClient {
    events: broadcast::Sender<Event>,
    pub connection: Connection,
    discover: Discover,
    /// Intents that were ranked, in order.
    pub requests: Mutex<Vec<String>>,
    /// Intents whose responses wait for a permit.
    pub blocked: Mutex<Vec<(String, Arc<Semaphore>)>>,
    pub rescans: Mutex<usize>,
    /// An operation that panics, by name.
    pub broken: Option<&'static str>,
    /// Runs and what belongs to them.
    pub runs: FakeRuns,
}

delegate_runs!(FakeClient, runs);

impl FakeClient {
    pub fn answering(discover: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            events: broadcast::channel(64).0,
            connection: Connection::Local,
            discover: Box::new(discover),
            requests: Mutex::default(),
            blocked: Mutex::default(),
            rescans: Mutex::default(),
            broken: None,
            runs: FakeRuns::default(),
        }
    }

    /// Notifies all subscribers.
    pub fn emit(&self, event: Event) {
        self.events.send(event).ok();
    }

    /// Delays the response to an intent until the semaphore gets a permit.
    pub fn hold(&self, intent: &str) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        self.blocked.lock().unwrap().push((intent.to_owned(), Arc::clone(&gate)));
        gate
    }

    fn missing<T>(&self, what: &str) -> Result<T, Error> {
        assert!(self.broken != Some("describe"), "broken on purpose");
        Err(Error::new(Code::NotFound, format!("there is no {what} here")))
    }
}

#[async_trait]
impl Client for FakeClient {
    fn connection(&self) -> Connection {
        self.connection.clone()
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    async fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        Ok(Arc::default())
    }

    async fn discover(&self, request: Request) -> Result<Answer, Error> {
        self.requests.lock().unwrap().push(request.intent.clone());
        let gate = self
            .blocked
            .lock()
            .unwrap()
            .iter()
            .find(|(blocked, _)| *blocked == request.intent)
            .map(|(_, gate)| Arc::clone(gate));
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
        Ok((self.discover)(&request))
    }

    async fn list(&self, _filter: ListFilter) -> Result<SkillList, Error> {
        Ok(SkillList::default())
    }

    async fn describe(&self, skill: &str) -> Result<SkillDetail, Error> {
        self.missing(skill)
    }

    async fn read_file(&self, _skill: &str, path: &str) -> Result<FileContent, Error> {
        self.missing(path)
    }

    async fn levels(&self, _skills: Vec<SkillId>) -> Result<Vec<LevelTokens>, Error> {
        Ok(Vec::new())
    }

    async fn body_lines(&self, _skill: &str, _intent: &str, _limit: usize) -> Result<Vec<BodyLine>, Error> {
        Ok(Vec::new())
    }

    async fn client_view(&self, client: &str) -> Result<ClientView, Error> {
        Ok(ClientView {
            client: client.to_owned(),
            name: "Codex".to_owned(),
            source: String::new(),
            version: None,
            entries: Vec::new(),
            foreign: Vec::new(),
            list: skills_session::BudgetedCatalog::default(),
            not_listed: Vec::new(),
            assumed_folders: Vec::new(),
        })
    }

    async fn draft(&self, request: skills_api::DraftRequest) -> Result<skills_api::DraftReport, Error> {
        Err(Error::new(Code::NotFound, format!("no skill is called {}", request.skill_id)))
    }

    async fn golden_report(
        &self,
        _request: skills_api::GoldenRequest,
    ) -> Result<skills_api::GoldenReport, Error> {
        self.missing("golden set")
    }

    async fn golden_explain(
        &self,
        request: skills_api::GoldenExplainRequest,
    ) -> Result<skills_api::GoldenExplanation, Error> {
        self.missing(&request.query.query)
    }

    async fn budget_fit(
        &self,
        _request: skills_api::BudgetFitRequest,
    ) -> Result<skills_api::BudgetFit, Error> {
        self.missing("golden set")
    }

    async fn propose(&self, request: skills_api::ProposalRequest) -> Result<skills_api::ProposalView, Error> {
        self.missing(&request.skill_id)
    }

    async fn proposals(
        &self,
        _filter: skills_api::ProposalFilter,
    ) -> Result<skills_api::ProposalList, Error> {
        Ok(skills_api::ProposalList::default())
    }

    async fn proposal(&self, proposal: &str) -> Result<skills_api::ProposalView, Error> {
        self.missing(proposal)
    }

    async fn act_on_proposal(
        &self,
        proposal: &str,
        _order: skills_api::ProposalAction,
        _by: skills_api::ProposalActionOptions,
    ) -> Result<skills_api::ProposalActionResult, Error> {
        self.missing(proposal)
    }

    async fn collisions(
        &self,
        _filter: skills_api::CollisionFilter,
    ) -> Result<skills_api::CollisionReport, Error> {
        Ok(skills_api::CollisionReport { complete: true, ..Default::default() })
    }

    async fn rivals(&self, skill: &str) -> Result<skills_api::SkillRivals, Error> {
        self.missing(skill)
    }

    async fn compare_skills(
        &self,
        first: &str,
        _second: &str,
    ) -> Result<skills_discovery::PairReport, Error> {
        self.missing(first)
    }

    async fn lint(&self, _filter: skills_api::LintFilter) -> Result<skills_api::LintReport, Error> {
        Ok(skills_api::LintReport::default())
    }

    async fn client_profiles(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(vec![
            ("claude-code".to_owned(), "Claude Code".to_owned()),
            ("codex".to_owned(), "Codex".to_owned()),
            ("goose".to_owned(), "Goose".to_owned()),
        ])
    }

    async fn diagnostics(&self) -> Result<Diagnostics, Error> {
        Ok(Diagnostics {
            version: "0".to_owned(),
            roots: Vec::new(),
            skills: 0,
            shadowed: 0,
            refused: 0,
            scan: ScanProgress { done: true, ..ScanProgress::default() },
            index: IndexProgress { done: true, ..IndexProgress::default() },
            counting: Counting::default(),
            started_ms: 0,
            uptime_seconds: 0,
            operations: std::collections::BTreeMap::new(),
            link_failures: std::collections::BTreeMap::new(),
            cache: (std::path::PathBuf::new(), "off".to_owned()),
            resident_bytes: None,
        })
    }

    async fn reset_diagnostics(&self) -> Result<Diagnostics, Error> {
        self.diagnostics().await
    }

    async fn metrics(&self) -> Result<MetricsReport, Error> {
        Ok(MetricsReport::default())
    }

    async fn metrics_text(&self) -> Result<String, Error> {
        Ok("# EOF\n".to_owned())
    }

    async fn governance(&self, _filter: GovernanceFilter) -> Result<GovernanceList, Error> {
        Ok(GovernanceList::default())
    }

    async fn rescan(&self) -> Result<(), Error> {
        *self.rescans.lock().unwrap() += 1;
        Ok(())
    }
}
