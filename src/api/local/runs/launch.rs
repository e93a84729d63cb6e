//! Turns a launch request into a stored run: skill, contract, trust, policy, inputs, plan, idempotency key.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Component, Path};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::super::skills::Skills;
use super::capability_run::capability_of;
use super::contracts::{self, ByContractId, SkillContract};
use super::lease_holder::with_holder;
use super::runtime::{CapabilityServices, RunStore, place_of_root};
use super::{Permissions, Workers, identity, workers};
use crate::run_options::ensure_without_nul;
use crate::{Code, Error, ExecutionOptions, LaunchRequest, Launched, SingleFlight, new_trace_id};
use skills_base::canonical::digest_of;
use skills_base::duration::MAX_SECONDS;
use skills_base::files::{canonicalize, open_regular};
use skills_base::hex;
use skills_config::{Config, operands};
use skills_registry::Trust;
use skills_registry::policy::PolicyResult;
use skills_runs::{Caller as _, FieldProblem, Plan, check_inputs};
use skills_skill::contract::{Capability, Contract, derived_title, render_title};
use skills_skill::{Invocation, Skill, SkillId};
use skills_store::{
    Idempotency, IdempotencyOutcome, Launch, LaunchOutcome, PolicySubject, RunId, RunOptions, RunRecord,
};

/// Default lifetime of an idempotency key in seconds: one day.
const KEY_SECONDS: u64 = 86_400;
/// The environment variable that overrides it.
const KEY_VARIABLE: &str = "AGENT_SKILLS_IDEMPOTENCY_TTL_SECONDS";

/// A plan in the form that is stored with every run.
#[derive(Clone)]
pub(super) struct Pinned {
    steps: u32,
    digest: String,
    contract: Arc<Value>,
    /// Digests of what could execute its steps, by binding.
    pins: BTreeMap<String, String>,
    /// What the rules of the policy apply to.
    policy_subjects: Vec<PolicySubject>,
    /// The folders that define its capabilities.
    definitions: BTreeMap<String, String>,
}

/// A skill that may be launched, independent of the inputs.
pub(super) struct Ready {
    skill: Arc<Skill>,
    read: SkillContract,
    /// The plan with the approval that is required of a run without options. Checked last: invalid inputs are reported
    /// first.
    plan: Result<(Plan, Pinned), Error>,
    /// The root that the skill was read from.
    place: Option<String>,
}

/// The result of checking a skill for a launch, shared by concurrent requests.
pub(super) type Readiness = Result<Arc<Ready>, Error>;

/// A launch for which all checks have passed.
pub(super) struct PreparedLaunch {
    pub skill_id: SkillId,
    pub plan: Pinned,
    pub inputs: Map<String, Value>,
    pub options: RunOptions,
    pub title: Option<String>,
    /// Default expiry of its waits in seconds.
    pub expires_in_s: Option<u64>,
}

/// Plans of the current skills, as a run would be launched with them.
pub(in crate::local) struct Plans {
    pub(super) config: Arc<Config>,
    pub(super) skills: Skills,
    pub(super) trust: Trust,
    pub(super) by_contract_id: Arc<ByContractId>,
    pub(super) services: Arc<CapabilityServices>,
    pub(super) permissions: Arc<Permissions>,
    /// Deduplicates concurrent checks of skills to be launched.
    pub(super) launching: SingleFlight<Readiness>,
}

impl Plans {
    /// Checks a skill that is run directly, reading from disk once for concurrent requests.
    async fn ready_alone(self: &Arc<Self>, requested: &str) -> Readiness {
        let look = || {
            let (plans, requested) = (Arc::clone(self), requested.to_owned());
            crate::work::run_blocking(move || {
                let skill = plans.skills.resolve(&requested)?;
                if skill.classification.invocation.value == Invocation::Attach {
                    // Without a contract, it cannot be attached either.
                    contracts::read(&skill)?;
                    // A caller over MCP may have no command line.
                    let id = operands([skill.id.as_str()]);
                    let use_one = format!("use `skills attach {id}`, or the operation `skill.attach`");
                    let message = format!("{} can only be attached: {use_one}", skill.id);
                    return Err(Error::new(Code::InvalidRequest, message));
                }
                plans.ready(&skill).map(Arc::new)
            })
        };
        self.launching.share(requested, look).await
    }

    /// Makes all checks before a run is stored. Reads files.
    ///
    /// # Errors
    /// Returns the first failure; for inputs all problems.
    pub(super) fn prepare(
        &self,
        skill: &Arc<Skill>,
        inputs: &Map<String, Value>,
        options: &ExecutionOptions,
    ) -> Result<PreparedLaunch, Error> {
        self.fit(&self.ready(skill)?, inputs, options)
    }

    /// Makes the checks that do not depend on the inputs. Reads from disk.
    fn ready(&self, skill: &Arc<Skill>) -> Result<Ready, Error> {
        if capability_of(skill.id.as_str()).is_some() {
            let message = format!(
                "{} cannot run: ids that begin with `capability:` denote runs of a single capability; rename its folder",
                skill.id
            );
            return Err(Error::new(Code::InvalidConfiguration, message));
        }
        let read = contracts::read(skill)?;
        if let Some(error) = contracts::broken(&read) {
            return Err(error);
        }
        contracts::trusted(&self.trust, &read)?;
        self.permissions.approval(skill)?;
        let plan = match self.pin(&read, None) {
            Ok(plan) => {
                let options = RunOptions::default();
                let approval = self.permissions.approval_of_plan(skill.id.as_str(), &plan, &options)?;
                let plan = Plan { approval, ..plan };
                self.pinned(skill.id.as_str(), &plan, &options).map(|pinned| (plan, pinned))
            }
            Err(error) => Err(error),
        };
        Ok(Ready { skill: Arc::clone(skill), read, plan, place: self.source_root(skill) })
    }

    /// Checks inputs and options. Reads from disk if files are to be passed.
    fn fit(
        &self,
        ready: &Ready,
        inputs: &Map<String, Value>,
        options: &ExecutionOptions,
    ) -> Result<PreparedLaunch, Error> {
        let skill = &ready.skill;
        let inputs = check_inputs(&ready.read.contract.inputs, inputs)
            .map_err(|problems| inputs_error(skill.id.as_str(), &problems))?;
        let plan = self.plan_for(ready, &policy_options(options))?;
        let title = title_of(skill.id.as_str(), &ready.read.contract, &inputs);
        let expires_in_s = ready.read.contract.expires_in_seconds;
        let options = RunOptions { place: ready.place.clone(), ..self.run_options(options)? };
        Ok(PreparedLaunch { skill_id: skill.id.clone(), plan, inputs, options, title, expires_in_s })
    }

    /// Returns the plan of a launch with these options. The policy may have rules for its labels, and for the bundles of
    /// bindings that only its options permit. Reads from disk unless they are the default.
    fn plan_for(&self, ready: &Ready, options: &RunOptions) -> Result<Pinned, Error> {
        let (plan, pinned) = ready.plan.clone()?;
        if *options == RunOptions::default() {
            return Ok(pinned);
        }
        let id = ready.skill.id.as_str();
        let approval = self.permissions.approval_of_plan(id, &plan, options)?;
        let has_usual_bindings = options.conformance.is_none() && !options.unsandboxed;
        if has_usual_bindings && approval == plan.approval {
            return Ok(pinned);
        }
        self.pinned(id, &Plan { approval, ..plan }, options)
    }

    /// Pins a contract in its current state.
    fn pin(&self, read: &SkillContract, approval: Option<String>) -> Result<Plan, Error> {
        self.pin_with(read, approval, Some(&self.trust))
    }

    /// Returns the plan of a contract without trust checks: for display, never for execution.
    pub(super) fn pin_untrusting(
        &self,
        read: &SkillContract,
        approval: Option<String>,
    ) -> Result<Plan, Error> {
        self.pin_with(read, approval, None)
    }

    fn pin_with(
        &self,
        read: &SkillContract,
        approval: Option<String>,
        trust: Option<&Trust>,
    ) -> Result<Plan, Error> {
        let catalog = self.skills.snapshot();
        let capabilities = self.services.capabilities()?;
        let by_id = &self.by_contract_id;
        let sources = contracts::Sources { catalog: &catalog, by_id, capabilities: &capabilities, trust };
        sources.pin(read, approval)
    }

    /// Checks that a skill, the skills that its contract runs, and the definitions of the capabilities that these call
    /// are trusted. Reads from disk.
    ///
    /// # Errors
    /// Returns `untrusted`, with what to do, and the error of a contract that cannot be pinned.
    pub(super) fn ensure_trusted(&self, read: &SkillContract) -> Result<(), Error> {
        contracts::trusted(&self.trust, read)?;
        let plan = self.pin(read, None)?;
        let (capabilities, catalog) = (self.services.capabilities()?, self.skills.snapshot());
        match self.services.refusal_in_plan(&capabilities, &catalog, &plan) {
            Some(why) => Err(Error::new(Code::Untrusted, why)),
            None => Ok(()),
        }
    }

    /// Returns the digest and the version that a run's skill would be launched with now; `None` if it can no longer
    /// run. An approval required by the policy is not a change of the skill.
    pub(super) async fn present(
        self: &Arc<Self>,
        run: &RunRecord,
        plan: &Plan,
    ) -> (Option<String>, Option<String>) {
        let (plans, requested, approval) = (Arc::clone(self), run.skill_id.clone(), plan.approval.clone());
        let inputs = run.inputs.clone();
        let looked = crate::work::run_blocking(move || {
            if let Some(capability) = capability_of(&requested) {
                return plans.present_capability(capability, &inputs, approval);
            }
            let skill = plans.skills.resolve(&requested)?;
            let read = contracts::read(&skill)?;
            let version = read.contract.version.clone();
            let digest = match contracts::broken(&read) {
                None => plans.pin_untrusting(&read, approval).ok().map(|plan| plan.digest()),
                Some(_) => None,
            };
            Ok((digest, Some(version)))
        });
        looked.await.unwrap_or((None, None))
    }

    /// Adds to a plan the digests of what executes its steps now, and what the policy applies to in a run with these
    /// options. Reads from disk.
    pub(super) fn pinned(&self, skill_id: &str, plan: &Plan, options: &RunOptions) -> Result<Pinned, Error> {
        let broker = &self.services.calling()?.broker;
        let definitions = self.current_definitions(skill_id, plan)?;
        let pins = plan.capabilities.keys().flat_map(|id| broker.pins(id)).collect();
        let steps = u32::try_from(plan.contract.steps.len()).unwrap_or(u32::MAX);
        let policy_subjects = self.permissions.policy_subjects(skill_id, plan, options)?;
        let contract = plan.to_value();
        Ok(Pinned {
            steps,
            digest: digest_of(&contract),
            contract: Arc::new(contract),
            pins,
            policy_subjects,
            definitions,
        })
    }

    /// Checks that the nested contracts and capabilities of a plan are the present ones, and that the definitions of
    /// the capabilities are those that were trusted, where their folder is pinned. Returns these folders by the id of the
    /// capability, without those that ship with this program: other machines have them elsewhere.
    fn current_definitions(&self, skill_id: &str, plan: &Plan) -> Result<BTreeMap<String, String>, Error> {
        let (capabilities, catalog) = (self.services.capabilities()?, self.skills.snapshot());
        let of_own = catalog.by_id(skill_id).is_some_and(|skill| catalog.is_own(skill));
        let changed = |what: String| {
            Err(Error::new(
                Code::SkillChanged,
                format!("{what} changed while it was launched; launch it again"),
            ))
        };
        // What the policy and the pins were compared with must be what is launched.
        for id in plan.skills.keys() {
            let found = self.by_contract_id.find(&catalog, id, of_own)?;
            if !found.is_some_and(|found| plan.runs_contract(id, &found.contract)) {
                return changed(format!("the contract of {id}"));
            }
        }
        let mut folders = BTreeMap::new();
        for id in plan.capabilities.keys() {
            let Some(capability) = capabilities.capability(id).filter(|found| plan.calls_capability(found))
            else {
                return changed(format!("the definition of the capability `{id}`"));
            };
            if let Some(why) = self.services.definition_refusal(&capabilities, &catalog, capability) {
                return Err(Error::new(Code::Untrusted, why));
            }
            if let Some((place, _)) = capabilities.source(&capability.location)
                && !place.shipped
            {
                folders.insert(id.clone(), place.root().to_string_lossy().into_owned());
            }
        }
        Ok(folders)
    }

    /// Returns the root that a skill was read from.
    fn source_root(&self, skill: &Skill) -> Option<String> {
        let catalog = self.skills.snapshot();
        let id = skill.id.as_str();
        let winner = catalog.entry(id).map(|entry| (&entry.skill, entry.root));
        let found = winner.or_else(|| catalog.shadowed_by_id(id).map(|loser| (&loser.skill, loser.root)));
        let (_, root) = found.filter(|(found, _)| found.location == skill.location)?;
        catalog.roots.get(root).map(place_of_root)
    }

    /// Returns the root that a capability was read from: that of its bundle, else the innermost that contains its file.
    pub(super) fn place_of_capability(&self, capability: &Capability) -> Option<String> {
        let catalog = self.skills.snapshot();
        let bundle = catalog.containing(&capability.location);
        let containing = || {
            let roots = catalog.roots.iter().filter(|root| capability.location.starts_with(&root.path));
            roots.max_by_key(|root| root.path.as_os_str().len())
        };
        bundle.and_then(|(_, root)| catalog.roots.get(root)).or_else(containing).map(place_of_root)
    }

    pub(super) fn run_options(&self, options: &ExecutionOptions) -> Result<RunOptions, Error> {
        options.check()?;
        let files = files(&options.files, &self.config.cwd)?;
        Ok(RunOptions {
            audit_mode: options.audit_mode,
            expires_in_s: options.expires_in,
            on_expiry: options.on_expiry,
            file_digests: file_digests(&files)?,
            files,
            ..policy_options(options)
        })
    }
}

/// Returns the options of a launch on which the policy's rules for it depend.
pub(super) fn policy_options(options: &ExecutionOptions) -> RunOptions {
    RunOptions {
        conformance: options.conformance.map(|conformance| conformance.to_string()),
        unsandboxed: options.unsandboxed,
        labels: options.labels.clone(),
        ..RunOptions::default()
    }
}

pub(in crate::local) struct Launches {
    pub(super) config: Arc<Config>,
    pub(super) store: Arc<RunStore>,
    pub(super) plans: Arc<Plans>,
    pub(super) workers: Arc<Workers>,
}

impl Launches {
    /// Launches a skill without a target.
    pub(super) async fn launch(&self, request: LaunchRequest) -> Result<Launched, Error> {
        let wait = request.options.wait;
        let ready = self.plans.ready_alone(&request.skill).await?;
        let LaunchRequest { inputs, options, started_by, .. } = request;
        let prepared = if options.files.is_empty() && policy_options(&options) == RunOptions::default() {
            self.plans.fit(&ready, &inputs, &options)?
        } else {
            let (plans, options) = (Arc::clone(&self.plans), options.clone());
            crate::work::run_blocking(move || plans.fit(&ready, &inputs, &options)).await?
        };
        let launched = self.begin(prepared, None, &options, started_by).await?;
        let launched = self.returned(launched, wait).await?;
        Ok(Launched { run: with_holder(launched.run), ..launched })
    }

    /// Returns a complete launched run; if it is waited for, when it has ended, waits or is paused.
    pub(super) async fn returned(&self, launched: Launched, wait: bool) -> Result<Launched, Error> {
        let run = if wait {
            self.workers.wait_for_completion(&launched.run.id.0, &CancellationToken::new()).await?
        } else if launched.idempotency == IdempotencyOutcome::Reused {
            let runtime = self.store.runtime().await?;
            workers::returned(&*runtime.store, &launched.run.id).await?
        } else {
            return Ok(launched);
        };
        Ok(Launched { run, ..launched })
    }

    /// Stores a prepared run, attached to `target` if given. A run of an earlier launch is returned as in a list.
    pub(super) async fn begin(
        &self,
        prepared: PreparedLaunch,
        target: Option<Value>,
        options: &ExecutionOptions,
        started_by: Option<String>,
    ) -> Result<Launched, Error> {
        let runtime = self.store.runtime().await?;
        let PreparedLaunch { skill_id, plan, inputs, options: run_options, title, expires_in_s } = prepared;
        if run_options.place.is_none() {
            // The skill was removed from its root while it was checked.
            let message =
                format!("the root of {skill_id} is not known; reload the skills and launch it again");
            return Err(Error::new(Code::InvalidConfiguration, message));
        }
        ensure_without_nul("inputs", &inputs)?;
        let started_by = started_by.filter(|name| !name.trim().is_empty()).unwrap_or_else(identity::account);
        let inputs = Value::Object(inputs);
        let idempotency = match &options.idempotency_key {
            Some(key) => {
                // Like the skill, a file may be edited: the same key still finds the run with the former content.
                let options = RunOptions { file_digests: BTreeMap::new(), ..run_options.clone() };
                Some(Idempotency {
                    principal: started_by.clone(),
                    key: key.clone(),
                    payload_digest: digest_of(
                        &json!({ "inputs": inputs, "target": target, "options": options }),
                    ),
                    ttl_seconds: key_seconds(std::env::var(KEY_VARIABLE).ok().as_deref())?,
                })
            }
            None => None,
        };
        let usual = self.config.runs.expires_in.map(|expires_in| expires_in.as_secs());
        let expires_in_s = run_options.expires_in_s.or(expires_in_s).or(usual);
        let trace_id = options.trace_id.clone().unwrap_or_else(new_trace_id);
        let launch = Launch {
            id: RunId(uuid::Uuid::now_v7().to_string()),
            skill_id: skill_id.to_string(),
            contract_digest: plan.digest,
            contract: plan.contract,
            inputs,
            target,
            trace_id,
            started_by,
            steps: plan.steps,
            // Not part of the key's payload: after an edit, the same key still finds the same run.
            options: RunOptions {
                pins: Some(plan.pins),
                policy_subjects: plan.policy_subjects,
                definitions: Some(plan.definitions),
                // Every process that shows or executes the run chooses its bindings with the same level.
                conformance: run_options.conformance.or_else(|| Some(self.config.conformance.to_string())),
                title,
                expires_in_s,
                ..run_options
            },
            idempotency,
        };
        let LaunchOutcome { run, idempotency } = runtime.store.launch(launch).await?;
        let worker_alive = self.workers.own.or_others(&runtime).await;
        Ok(Launched { run, idempotency, worker_alive })
    }
}

/// Maximum number of characters of an input that is used in a generated title.
const MAX_TITLE_INPUT: usize = 40;

/// Returns the title of a run: the contract's template with its inputs, or the skill with its first short inputs.
/// `None` if no input is short; the skill is shown then.
pub(super) fn title_of(skill: &str, contract: &Contract, inputs: &Map<String, Value>) -> Option<String> {
    if let Some(template) = &contract.title {
        return Some(render_title(template, inputs)).filter(|title| !title.is_empty());
    }
    let is_short = |value: &Value| match value {
        Value::String(text) => text.chars().count() <= MAX_TITLE_INPUT && text.lines().count() == 1,
        Value::Array(items) => Value::Array(items.clone()).to_string().len() <= MAX_TITLE_INPUT,
        other => !other.is_object(),
    };
    let short = inputs.iter().filter(|(_, value)| is_short(value));
    let short: Map<String, Value> = short.map(|(name, value)| (name.clone(), value.clone())).collect();
    let title = derived_title(&short);
    (!title.is_empty()).then(|| format!("{skill}: {title}"))
}

/// Returns the rule that requires an approval, if the policy allows the skill.
///
/// # Errors
/// Returns `forbidden`, naming the rule.
pub(super) fn allowed(skill: &SkillId, result: PolicyResult) -> Result<Option<String>, Error> {
    if result.allowed {
        return Ok(result.require_approval);
    }
    let why = result.denied_by.unwrap_or_else(|| "no rule allows it".to_owned());
    let id = operands([skill.as_str()]);
    Err(Error::new(
        Code::Forbidden,
        format!("the policy forbids {skill}: {why} (skills policy explain {id})"),
    ))
}

/// Converts invalid inputs to one error, with the fields as reason.
pub(super) fn inputs_error(skill: &str, problems: &[FieldProblem]) -> Error {
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let reason = serde_json::to_value(problems).ok().map(|fields| json!({ "fields": fields }));
    let message = format!("invalid inputs for {skill}: {}", all.join("; "));
    Error { reason, ..Error::new(Code::InvalidRequest, message) }
}

/// Resolves files for work directories to absolute paths that exist.
pub(in crate::local) fn files(
    input_files: &BTreeMap<String, String>,
    cwd: &Path,
) -> Result<BTreeMap<String, String>, Error> {
    let wrong = |message: String| Error::new(Code::InvalidRequest, message);
    let mut files = BTreeMap::new();
    for (name, path) in input_files {
        let is_valid = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !is_valid {
            return Err(wrong(format!("file {name:?} is not a path in the work directory")));
        }
        let place = cwd.join(path);
        let real =
            canonicalize(&place).map_err(|e| wrong(format!("file {name}: {}: {e}", place.display())))?;
        if !real.is_file() {
            return Err(wrong(format!("file {name}: {} is not a regular file", place.display())));
        }
        files.insert(name.clone(), real.to_string_lossy().into_owned());
    }
    Ok(files)
}

/// Returns the SHA-256 of each file for a work directory, by name.
fn file_digests(files: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error> {
    let digest = |(name, path): (&String, &String)| match digest_of_file(Path::new(path)) {
        Ok(digest) => Ok((name.clone(), digest)),
        Err(error) => Err(Error::new(Code::InvalidRequest, format!("file {name}: {path}: {error}"))),
    };
    files.iter().map(digest).collect()
}

/// Returns the SHA-256 of a regular file, which is read in chunks because its size is not limited.
fn digest_of_file(path: &Path) -> io::Result<String> {
    let (mut file, _) = open_regular(path)?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(hex::encode(&hash.finalize())),
            Ok(read) => hash.update(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the lifetime of a key as configured in the environment.
fn key_seconds(setting: Option<&str>) -> Result<u64, Error> {
    match setting.map(str::trim).filter(|text| !text.is_empty()) {
        None => Ok(KEY_SECONDS),
        Some(text) => {
            text.parse().ok().filter(|seconds| (1..=MAX_SECONDS).contains(seconds)).ok_or_else(|| {
                let message = format!(
                    "invalid {KEY_VARIABLE} {text:?}; expected a number of seconds from 1 to {MAX_SECONDS}"
                );
                Error::new(Code::InvalidConfiguration, message)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_quotes_the_id_in_its_command() {
        let message = |id: &str| allowed(&SkillId::new(id), PolicyResult::default()).unwrap_err().message;
        assert_eq!(
            message("mail"),
            "the policy forbids mail: no rule allows it (skills policy explain mail)"
        );
        let hostile = message("mail;touch x");
        assert!(hostile.ends_with("(skills policy explain 'mail;touch x')"), "{hostile}");
    }

    #[test]
    fn idempotency_key_lifetime_is_read_from_the_environment() {
        assert_eq!(key_seconds(None), Ok(KEY_SECONDS));
        assert_eq!(key_seconds(Some("60")), Ok(60));
        for wrong in ["0", "-1", "a day", "3153600001"] {
            assert_eq!(key_seconds(Some(wrong)).unwrap_err().code, Code::InvalidConfiguration, "{wrong}");
        }
    }

    #[test]
    fn input_file_must_exist_and_its_name_be_relative() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), "x").unwrap();
        let one = |name: &str, path: &str| {
            files(&BTreeMap::from([(name.to_owned(), path.to_owned())]), folder.path())
        };
        assert!(one("in/a.csv", "a.csv").unwrap()["in/a.csv"].ends_with("a.csv"));
        for (name, path) in [("../a", "a.csv"), ("/a", "a.csv"), ("", "a.csv"), ("a", "gone"), ("a", ".")] {
            assert_eq!(one(name, path).unwrap_err().code, Code::InvalidRequest, "{name} {path}");
        }
    }

    #[test]
    fn digest_of_an_input_file_covers_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let digests = |name: &str| file_digests(&BTreeMap::from([("in.csv".to_owned(), at(name))]));
        // More than one chunk.
        for content in ["x".to_owned(), "y".repeat(200_000)] {
            std::fs::write(at("a.csv"), &content).unwrap();
            let digest = skills_skill::Digest::of(content.as_bytes()).to_string();
            assert_eq!(digests("a.csv").unwrap(), BTreeMap::from([("in.csv".to_owned(), digest)]));
        }
        // A pipe in place of the file does not block.
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["pipe", "gone", "."] {
            assert_eq!(digests(name).unwrap_err().code, Code::InvalidRequest, "{name}");
        }
    }
}
