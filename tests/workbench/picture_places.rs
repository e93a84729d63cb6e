//! What the pictures of the documentation show: the skills of an author, and the runs of a night with an outage.

use crate::support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use skills_api::{BoardRun, Local, RunDetail, WorkerState, WorkerView};
use skills_authoring::proposals::{NewProposal, ProposalDecision, ProposalStore};
use skills_config::{Arguments, Config, Env};
use skills_model::RunState;
use skills_skill::SkillId;
use skills_tui::Settings;
use skills_tui::harness::Harness;
use skills_tui::pane::Pane;
use support::fake_client::FakeClient;
use support::fixed_clock_client::FixedClockClient;
use support::run_pane::core;
use support::run_samples::{NOW_MS, detail, settings};

/// Skills of a project, then those of its author.
const SKILLS: [(&str, &str, &str); 13] = [
    (
        "shop",
        "stripe-billing",
        "Integrates Stripe Billing into a web backend: customers, products, prices, invoices and webhooks. Use for \
         recurring payments, plan changes, proration, trials and dunning. Handles tax ids, coupons and the customer \
         portal. Covers the whole life of subscriptions.",
    ),
    (
        "shop",
        "stripe-checkout",
        "Builds checkout pages and payment links with Stripe: products, prices and customers. Use for one-time \
         payments and refunds.",
    ),
    (
        "shop",
        "nextjs-starter",
        "Builds and extends Next.js apps: routes, server actions, auth and forms. Use when adding a feature, a page \
         or a paid plan to a Next.js app.",
    ),
    ("shop", "react-forms", "Builds forms in React apps with validation, error messages and server actions."),
    (
        "shop",
        "pdf-tables",
        "Extracts tables from PDF files into rows and columns. Reads form fields of PDF files.",
    ),
    (
        "shop",
        "pdf-export",
        "Extracts tables from PDF files into spreadsheets. Fills form fields of PDF files.",
    ),
    (
        "shop",
        "release-notes",
        "Writes release notes from merged pull requests. Lists breaking changes of a version.",
    ),
    (
        "shop",
        "changelog",
        "Writes a changelog from merged pull requests. Lists breaking changes of a version.",
    ),
    (
        "shop",
        "api-style-guide",
        "Reviews an HTTP API for style: names, errors and paging. Use before a route is published.",
    ),
    (
        "",
        "mail-client",
        "Calls the mail API with retries and typed errors. Handles rate limits and timeouts.",
    ),
    (
        "",
        "search-client",
        "Calls the search API with retries and typed errors. Handles rate limits and timeouts.",
    ),
    ("", "deploy-check", "Checks a deployment before it is released. Use for pre-flight checks."),
    ("", "trip-planner", "Plans train journeys with hotels and museums."),
];

const GOLDEN: &str = "\
- query: add subscriptions to my next.js app
  expect: [stripe-billing]
- query: change the plan of a customer in the middle of the month
  expect: [stripe-billing]
- query: build a checkout page with a payment link
  expect: [stripe-checkout]
- query: get the rows out of this pdf
  expect: [pdf-tables]
- query: fill in the fields of this pdf form
  expect: [pdf-export]
- query: notes for the next release
  expect: [release-notes]
- query: run the pre-flight checks
  expect: [deploy-check]
- query: what is the weather in berlin
  expect: none
";

/// The description that is proposed for `stripe-billing`.
const PROPOSED: &str = "Adds Stripe subscriptions to a web app, Next.js and others: plans, trials, proration and dunning. \
    Use for recurring payments, plan changes, invoices and the customer portal. Not for one-time payments.";

/// The home of an author, with skills in the folders that clients search.
pub struct Authors {
    home: tempfile::TempDir,
}

impl Authors {
    pub fn new() -> Self {
        let place = Self { home: tempfile::tempdir().unwrap() };
        for (project, id, description) in SKILLS {
            // A colon in a plain value is an error that some clients repair; release notes are user-only.
            let value = match id {
                "api-style-guide" => description.to_owned(),
                _ => format!(">-\n  {description}"),
            };
            let manual = if id == "release-notes" { "disable-model-invocation: true\n" } else { "" };
            let text =
                format!("---\nname: {id}\n{manual}description: {value}\n---\n# {id}\n\nInstructions.\n");
            let file = place.file(project, id);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        // Only OpenClaw searches this folder: its list is full, and descriptions in it are truncated.
        let handbook = place.repo().join("skills/handbook/SKILL.md");
        std::fs::create_dir_all(handbook.parent().unwrap()).unwrap();
        let words = "Answers questions about the shop. ".repeat(400);
        std::fs::write(handbook, format!("---\nname: handbook\ndescription: {words}\n---\n# handbook\n"))
            .unwrap();
        std::fs::create_dir_all(place.repo().join(".git")).unwrap();
        std::fs::write(place.repo().join(".agents/skills/golden.yaml"), GOLDEN).unwrap();
        place
    }

    fn repo(&self) -> PathBuf {
        self.home.path().join("shop")
    }

    fn file(&self, project: &str, id: &str) -> PathBuf {
        self.home.path().join(project).join(".agents/skills").join(id).join("SKILL.md")
    }

    /// The folder whose name differs at every run.
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// The workbench over these skills.
    pub fn open(&self, panes: Vec<Box<dyn Pane>>, width: u16, height: u16) -> Harness {
        let arguments =
            Arguments { watch: Some(false), store: Some("memory:".to_owned()), ..Arguments::default() };
        let config = Config::load(&self.repo(), &Env::at(self.home.path()), &arguments).unwrap();
        let settings = Settings { clock_ms: Some(NOW_MS), ..settings() };
        let client = Arc::new(FixedClockClient(Local::open(config).unwrap()));
        let mut harness = Harness::new(client, panes, &settings, width, height).unwrap();
        harness.wait_until("all skills indexed", |screen| {
            screen.contains("13 skills") && !screen.contains("indexed") && !screen.contains("so far")
        });
        harness
    }

    /// A proposal that waits for approval, and one that was denied.
    pub fn propose(&self) {
        let store = ProposalStore::new(
            self.home.path().join(".local/share/skill-workbench/proposals"),
            self.home.path().join(".local/share/skill-workbench/proposals-in-progress"),
            skills_base::audit::Recorder::new(self.home.path(), skills_base::audit::Mode::Off),
        );
        let denied = self.new_proposal("release-notes", "shop", 3 * 24 * 60, |text| {
            text.replace("Instructions.", "Write one line for each change.")
        });
        let denied = store.create(denied).unwrap();
        let decision = ProposalDecision {
            by: "kim".to_owned(),
            at_ms: NOW_MS - 2 * 86_400_000,
            notes: Some("The house style has two lines.".to_owned()),
        };
        store.deny(&denied.facts.proposal_id, decision).unwrap();
        let waiting = self.new_proposal("stripe-billing", "shop", 12, |text| {
            let (head, rest) = text.split_once(">-\n").unwrap();
            let (_, body) = rest.split_once("\n---\n").unwrap();
            format!("{head}>-\n  {PROPOSED}\n---\n{body}")
        });
        store.create(waiting).unwrap();
    }

    fn new_proposal(
        &self,
        id: &str,
        project: &str,
        minutes_ago: i64,
        change: impl Fn(&str) -> String,
    ) -> NewProposal {
        let file = self.file(project, id);
        let base = std::fs::read_to_string(&file).unwrap();
        NewProposal {
            skill_id: SkillId::new(id),
            real: file.canonicalize().unwrap(),
            location: file,
            result: change(&base),
            base,
            justification: "Requests for subscriptions load nextjs-starter.".to_owned(),
            evidence: Some("3 sessions of this week".to_owned()),
            proposed_by: "orchestrator".to_owned(),
            at_ms: NOW_MS - minutes_ago * 60_000,
            effect: None,
        }
    }
}

/// A run of a deployment: its title, how long ago it was started, and how long its state lasts.
fn run(number: u32, state: RunState, title: &str, region: &str, minutes: (i64, i64)) -> RunDetail {
    let mut run = detail(&format!("0198a1b2-1000-7000-8000-{number:012}"), "deploy-service", state);
    run.run.options.title = Some(title.to_owned());
    run.run.inputs = json!({ "version": "5.4.0", "region": region });
    (run.run.created_ms, run.run.since_ms) = (NOW_MS - minutes.0 * 60_000, NOW_MS - minutes.1 * 60_000);
    run
}

/// Runs of a shift: some wait for approval, some are running, many failed in an outage of one service.
pub fn shift() -> Vec<RunDetail> {
    let regions = ["eu-west-1", "eu-central-1", "us-east-1", "us-west-2", "ap-south-1", "sa-east-1"];
    let mut all = Vec::new();
    for (at, region) in (0_u32..).zip(regions) {
        let ago = 190 - 4 * i64::from(at);
        let title = format!("Deploy 5.4.0 to {region}");
        all.push(run(10 + at, RunState::Failed, &title, region, (ago + 3, ago)));
    }
    for (at, region) in (0_u32..).zip(&regions[..3]) {
        let ago = 65 - 20 * i64::from(at);
        let mut failed =
            run(20 + at, RunState::Failed, &format!("Check 5.4.0 for {region}"), region, (ago + 8, ago));
        failed.run.error = Some(json!({"code": "step_timeout", "message": "step sum took longer than 60 s"}));
        "kim".clone_into(&mut failed.run.started_by);
        all.push(failed);
    }
    for (at, region) in (0_u32..).zip(regions) {
        let ago = 420 - 55 * i64::from(at);
        let title = format!("Deploy 5.3.9 to {region}");
        all.push(run(30 + at, RunState::Completed, &title, region, (ago + 25, ago)));
    }
    let waiting = [
        ("Promote 5.4.0 to eu-west-1", (75, 40), Some(5)),
        ("Promote 5.4.0 to us-east-1", (60, 25), Some(35)),
        ("Delete 41 stale branches", (180, 150), None),
    ];
    for (at, (title, minutes, expires)) in (0_u32..).zip(waiting) {
        let mut waits = run(40 + at, RunState::WaitingForHuman, title, "eu-west-1", minutes);
        waits.run.expires_ms = expires.map(|minutes: i64| NOW_MS + minutes * 60_000);
        all.push(waits);
    }
    all.push(run(50, RunState::Running, "Deploy 5.4.1 to staging", "staging", (14, 14)));
    all.push(run(51, RunState::Running, "Check 5.4.1 for staging", "staging", (6, 6)));
    all
}

/// The core of a shift, with two workers.
pub fn shift_core() -> Arc<FakeClient> {
    let runs = shift();
    let running: Vec<BoardRun> = runs
        .iter()
        .filter(|detail| detail.run.state == RunState::Running)
        .map(|detail| BoardRun::of(&detail.run))
        .collect();
    let client = core(runs);
    let workers = running.into_iter().zip([("build-1", 4_711, 2), ("build-2", 812, 4)]);
    client.runs.workers.lock().unwrap().extend(workers.map(|(run, (host, process, seen))| WorkerView {
        worker: format!("{host}/1/{process}/9"),
        name: format!("process {process} on {host}"),
        version: Some("0.2.0".to_owned()),
        state: WorkerState::Live,
        slots: Some(8),
        runs: vec![run],
        started_ms: Some(NOW_MS - 9 * 3_600_000),
        seen_ms: Some(NOW_MS - seen * 1_000),
    }));
    client
}
