//! What the policy says about a run: the rules for its skill or capability, for the skills that its contracts run, and
//! for the bundles of the capabilities that they call. The strictest of all counts. And whether what a run executes is
//! still trusted.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::capabilities::{definition_subject, trust_name};
use super::contracts::ByContractId;
use super::runtime::{CapabilityServices, RunRuntime};
use super::{capability_run, contracts, launch};
use crate::policies::{self, PolicyFile};
use crate::{Code, Error};
use skills_base::audit::Recorder;
use skills_config::operands;
use skills_model::RunState;
use skills_registry::policy::{
    Effect, LinkedPaths, Policy, PolicyResult, RequiredApprovals, SkillPath, SkillProperties,
};
use skills_registry::{Catalog, Registry, SHIPPED, TrustState, is_shipped_id};
use skills_runs::{CallConditions, Capabilities, CapabilityFolder, Engine, Plan};
use skills_skill::{EffectMode, Role, Skill, SkillId};
use skills_store::{Claimed, OtherPath, PolicySubject, RunOptions, RunRecord};

/// Returns what the rules of the policy apply to for a skill; `contains` is the capability of its bundle that is called,
/// if only that is used.
fn skill_subject(catalog: &Catalog, skill: &Skill, contains: Option<&str>) -> PolicySubject {
    let SkillProperties { id, tags, domain, role, effect, location, root, other_paths, linked_paths, .. } =
        policies::properties(catalog, skill);
    // Some paths through links are also among the others.
    let mut seen = HashSet::from([Cow::Borrowed(location)]);
    let others = other_paths.into_iter().map(|path| (Cow::Borrowed(path.location), path.root));
    let linked = linked_paths.into_iter().flat_map(LinkedPaths::paths);
    let others = others.chain(linked.map(|(path, root)| (Cow::Owned(path), root)));
    let other_paths = others.filter(|(path, _)| seen.insert(path.clone())).map(|(path, root)| OtherPath {
        location: path.to_string_lossy().into_owned(),
        root: root.to_owned(),
    });
    PolicySubject {
        id: id.to_owned(),
        tags: tags.to_vec(),
        domain: domain.map(str::to_owned),
        role: role.to_string(),
        effect: effect.to_string(),
        location: location.to_string_lossy().into_owned(),
        root: root.to_owned(),
        other_paths: other_paths.collect(),
        contains: contains.map(str::to_owned),
    }
}

/// Returns the subject of a removed skill or capability, of which only the id is known.
fn removed_subject(id: &str) -> PolicySubject {
    PolicySubject {
        id: id.to_owned(),
        role: Role::Utility.to_string(),
        effect: EffectMode::Enrich.to_string(),
        ..PolicySubject::default()
    }
}

/// Returns a subject in the form that a policy compares with its rules.
fn comparable<'a>(subject: &'a PolicySubject, labels: &'a BTreeMap<String, String>) -> SkillProperties<'a> {
    SkillProperties {
        id: &subject.id,
        tags: &subject.tags,
        domain: subject.domain.as_deref(),
        role: subject.role.parse().unwrap_or(Role::Utility),
        effect: subject.effect.parse().unwrap_or(EffectMode::Enrich),
        location: Path::new(&subject.location),
        root: &subject.root,
        other_paths: {
            let paths = subject.other_paths.iter();
            paths.map(|path| SkillPath::new(Path::new(&path.location), &path.root)).collect()
        },
        linked_paths: Vec::new(),
        labels,
    }
}

/// Returns the rule that requires an approval before the first step.
///
/// # Errors
/// Returns `forbidden`, naming the rule.
fn allowed(subject: &PolicySubject, result: PolicyResult) -> Result<Option<String>, Error> {
    let forbidden = |message: String| Err(Error::new(Code::Forbidden, message));
    let id = &subject.id;
    if let Some(capability) = &subject.contains {
        let rule = |effect: Effect| result.rules.iter().find(|rule| rule.effect == effect);
        return match rule(Effect::Deny) {
            Some(why) => forbidden(format!(
                "the policy forbids {id}, which contains capability:{capability}: {}",
                why.rule
            )),
            None => Ok(rule(Effect::RequireApproval).map(|rule| rule.rule.clone())),
        };
    }
    if capability_run::capability_of(id).is_some() && !result.allowed {
        let why = result.denied_by.unwrap_or_else(|| "no rule allows it".to_owned());
        return forbidden(format!("the policy forbids {id}: {why}"));
    }
    launch::allowed(&SkillId::new(id.as_str()), result)
}

/// Returns whether a subject is a skill that ships with this program: other machines and versions have it in other
/// folders.
fn is_shipped(subject: &PolicySubject) -> bool {
    subject.root == SHIPPED && is_shipped_id(&subject.id)
}

/// Returns the folders of the bundles that a run uses and that may define a capability, without those of shipped
/// skills.
fn bundles_with<'a>(subjects: &'a [PolicySubject], id: &'a str) -> impl Iterator<Item = &'a Path> {
    let may_define = move |subject: &&PolicySubject| {
        !is_shipped(subject) && subject.contains.as_deref().is_none_or(|contained| contained == id)
    };
    subjects.iter().filter(may_define).filter_map(|subject| Path::new(&subject.location).parent())
}

/// A folder that defines a capability.
struct DefinitionFolder {
    dir: PathBuf,
    shipped: bool,
    /// Whether it is the definition that the run was launched with.
    is_launched: bool,
}

/// Returns the folder of the definition of a capability that is used among these, if there is one.
fn definition_folder(plan: &Plan, id: &str, capabilities: &Capabilities) -> Option<DefinitionFolder> {
    let found = capabilities.capability(id)?;
    let (place, _) = capabilities.source(&found.location)?;
    Some(DefinitionFolder {
        dir: place.root().to_owned(),
        shipped: place.shipped,
        is_launched: plan.calls_capability(found),
    })
}

/// What the policy permits.
pub(in crate::local) struct Permissions {
    pub(super) registry: Arc<Registry>,
    pub(super) policy: Arc<PolicyFile>,
    pub(super) audit: Arc<Recorder>,
    pub(super) by_contract_id: Arc<ByContractId>,
    pub(super) services: Arc<CapabilityServices>,
    /// Whether runs are claimed: not while the policy is invalid.
    pub(super) claiming: AtomicBool,
}

impl Permissions {
    fn policy_result(&self, skill: &Skill) -> Result<PolicyResult, Error> {
        Ok(policies::policy_result(&*self.deciding()?, &self.registry.snapshot(), skill))
    }

    /// Returns the current policy; a change is recorded in the audit log.
    pub(super) fn deciding(&self) -> Result<Arc<Policy>, Error> {
        let policy = self.policy.current()?;
        if let Some((file, text)) = self.policy.read() {
            self.audit.policy(file, &text);
        }
        Ok(policy)
    }

    /// Returns the policy rule that requires an approval first.
    ///
    /// # Errors
    /// Returns `forbidden`, naming the rule.
    pub(in crate::local) fn approval(&self, skill: &Skill) -> Result<Option<String>, Error> {
        launch::allowed(&skill.id, self.policy_result(skill)?)
    }

    /// Returns what the rules of the policy apply to for a run with this skill and plan: its skill or capability, the
    /// skills that its contracts run, and the skills whose bundles contain the capabilities that they call, or bindings
    /// that these options permit. The options of a run that was launched contain those of its launch: it is subject to
    /// the rules for both. Reads from disk.
    pub(super) fn policy_subjects(
        &self,
        skill_id: &str,
        plan: &Plan,
        options: &RunOptions,
    ) -> Result<Vec<PolicySubject>, Error> {
        let pinned = options.policy_subjects.as_slice();
        let (catalog, capabilities) = (self.registry.snapshot(), self.services.capabilities()?);
        let present = |skill: &Arc<Skill>, contains: Option<&str>| skill_subject(&catalog, skill, contains);
        let capability =
            |id: &str| capabilities.capability(id).map(|found| capability_run::policy_subject(found));
        let mut subjects = pinned.to_vec();
        let mut add = |subject: PolicySubject| {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        };
        // By location: another skill may have the id in the meantime.
        for was in pinned {
            let folder = Path::new(&was.location).parent();
            match capability_run::capability_of(&was.id).and_then(capability) {
                Some(now) if now.location == was.location => add(now),
                _ => {
                    if let Some((skill, _)) = folder.and_then(|folder| catalog.in_folder(folder)) {
                        add(present(skill, was.contains.as_deref()));
                    }
                }
            }
        }
        if pinned.is_empty() {
            let own = match capability_run::capability_of(skill_id) {
                Some(id) => capability(id),
                None => catalog.by_id(skill_id).map(|skill| present(skill, None)),
            };
            add(own.unwrap_or_else(|| removed_subject(skill_id)));
            let of_own = catalog.by_id(skill_id).is_some_and(|skill| catalog.is_own(skill));
            for id in plan.skills.keys() {
                let found = self.by_contract_id.find(&catalog, id, of_own).ok().flatten();
                let found = found.map(|found| found.skill).or_else(|| catalog.by_id(id).cloned());
                add(found.map_or_else(|| removed_subject(id), |skill| present(&skill, None)));
            }
        }
        let broker = &self.services.calling()?.broker;
        let conditions = CallConditions::of_run(options, self.services.config.conformance);
        for id in plan.capabilities.keys() {
            let declared = capabilities.capability(id).map(|capability| capability.location.clone());
            // A binding of a denied bundle is not called; that requires no other bundle to be denied.
            let files = broker.folders_of(id, &conditions).into_iter().map(|folder| folder.join("bindings"));
            for file in declared.into_iter().chain(files) {
                if let Some((skill, _)) = catalog.containing(&file) {
                    add(skill_subject(&catalog, skill, Some(id)));
                }
            }
        }
        // The rules for a skill that is run include those for the bundle of its own capabilities.
        let run: Vec<_> = subjects.iter().filter(|one| one.contains.is_none()).cloned().collect();
        let is_run = |one: &PolicySubject| run.iter().any(|other| other.location == one.location);
        subjects.retain(|one| one.contains.is_none() || !is_run(one));
        Ok(subjects)
    }

    /// Returns the first rule that requires an approval before the first step of a run with this skill, plan and options.
    /// Reads from disk.
    ///
    /// # Errors
    /// Returns `forbidden`, naming the rule, and `invalid_configuration` for an invalid policy.
    pub(super) fn approval_of_plan(
        &self,
        skill_id: &str,
        plan: &Plan,
        options: &RunOptions,
    ) -> Result<Option<String>, Error> {
        let policy = self.deciding()?;
        if policy.rules.is_empty() {
            return Ok(None);
        }
        let mut required = None;
        for subject in self.policy_subjects(skill_id, plan, options)? {
            let rule = allowed(&subject, policy.result(&comparable(&subject, &options.labels)))?;
            required = required.or(rule);
        }
        Ok(required)
    }

    /// Returns what the policy, and the contracts of the run's plan, require for its approval. Reads from disk.
    ///
    /// # Errors
    /// Returns `invalid_configuration` for an invalid policy.
    pub(super) fn required_approvals(
        &self,
        run: &RunRecord,
        plan: &Plan,
    ) -> Result<RequiredApprovals, Error> {
        let policy = self.deciding()?;
        let mut required = if policy.approvals.is_empty() {
            RequiredApprovals::default()
        } else {
            let subjects = self.policy_subjects(&run.skill_id, plan, &run.options)?;
            let own = subjects.iter().filter(|subject| subject.contains.is_none());
            let own: Vec<_> = own.map(|subject| comparable(subject, &run.options.labels)).collect();
            policy.approvals(&own)
        };
        let contracts = std::iter::once(&plan.contract).chain(plan.skills.values());
        for approvals in contracts.filter_map(|contract| contract.approvals.as_ref()) {
            required.raise(approvals);
        }
        Ok(required)
    }

    /// Checks that the policy and the contract of a skill require no more than the confirmation of any one person. Reads
    /// from disk.
    ///
    /// # Errors
    /// Returns `forbidden` with what they require, and `invalid_configuration` for an invalid policy or contract.
    pub(in crate::local) fn ensure_single_approval(&self, skill: &Arc<Skill>) -> Result<(), Error> {
        let (policy, catalog) = (self.deciding()?, self.registry.snapshot());
        let mut required = policy.approvals(&[policies::properties(&catalog, skill)]);
        if let Some(approvals) = contracts::approvals(skill)? {
            required.raise(&approvals);
        }
        if !required.is_strict() {
            return Ok(());
        }
        let message = format!(
            "the `approvals` of the policy or the contract of {} require more than one confirmation by anyone, which a \
                session cannot collect; run its contract instead (skills run {}): its gates collect them",
            skill.id,
            operands([skill.id.as_str()])
        );
        Err(Error { reason: Some(json!({ "approvals": required })), ..Error::new(Code::Forbidden, message) })
    }

    /// Checks that the bundles of the skills that a run executes, and the folders that define the capabilities it calls,
    /// are trusted now. Bundles whose bindings its steps call are checked when they are called. Reads from disk.
    ///
    /// # Errors
    /// Returns `untrusted`, with what to do.
    fn ensure_trusted(
        &self,
        skill_id: &str,
        plan: &Plan,
        options: &RunOptions,
        state: RunState,
    ) -> Result<(), Error> {
        let has_ended = state.is_terminal() || state == RunState::Failed;
        let refusal = |folder: &Path, what: &str, name: &str| self.refusal(folder, what, name, has_ended);
        let subjects = match options.policy_subjects.as_slice() {
            [] => self.policy_subjects(skill_id, plan, options)?,
            pinned => pinned.to_vec(),
        };
        for subject in &subjects {
            let PolicySubject { id, location, contains, other_paths, .. } = subject;
            if is_shipped(subject) || contains.is_some() || capability_run::capability_of(id).is_some() {
                continue;
            }
            let Some(folder) = Path::new(location).parent() else { continue };
            // The real folder is in no root: a link to it can lead elsewhere by now.
            let real = other_paths.iter().find(|path| path.root.is_empty());
            let real = real.and_then(|path| Path::new(&path.location).parent()).filter(|real| real.exists());
            let why = refusal(folder, id, id).or_else(|| real.and_then(|real| refusal(real, id, id)));
            if let Some(why) = why {
                return Err(Error::new(Code::Untrusted, why));
            }
        }
        let definitions = match &options.definitions {
            Some(launched) => {
                launched.iter().map(|(id, folder)| (id.clone(), PathBuf::from(folder))).collect()
            }
            None => self.present_definitions(plan, &subjects)?,
        };
        let catalog = self.registry.snapshot();
        for (id, folder) in &definitions {
            let name = trust_name(&catalog, folder);
            if let Some(why) = refusal(folder, &definition_subject(id), &name) {
                return Err(Error::new(Code::Untrusted, why));
            }
        }
        Ok(())
    }

    /// Returns why a run with a part from this folder may not continue; see [`Trust::refusal`].
    fn refusal(&self, folder: &Path, what: &str, name: &str, has_ended: bool) -> Option<String> {
        let trust = &self.services.trust;
        let why = trust.refusal(folder, what, name)?;
        match folder.ancestors().find(|above| above.exists()) {
            Some(above) if above != folder => match trust.state(above) {
                // A removed bundle is trusted if the settings name a folder that contained it.
                TrustState::Shipped | TrustState::Config { .. } => None,
                _ => {
                    let gone = if what == name { format!("the folder of {what}") } else { what.to_owned() };
                    let cancel = if has_ended { "" } else { ", or cancel the run" };
                    Some(format!("{gone} no longer exists; restore it{cancel}"))
                }
            },
            _ => Some(why),
        }
    }

    /// Returns the folders that contain the definitions of a plan now, for a run of an earlier version, which did not
    /// record them: that with the definition that it was launched with, else one with an edited definition. Reads from
    /// disk.
    ///
    /// # Errors
    /// Returns `untrusted` for a capability that no longer has a definition.
    fn present_definitions(
        &self,
        plan: &Plan,
        subjects: &[PolicySubject],
    ) -> Result<BTreeMap<String, PathBuf>, Error> {
        let capabilities = self.services.capabilities()?;
        let mut folders = BTreeMap::new();
        for id in plan.capabilities.keys() {
            let in_use = definition_folder(plan, id, &capabilities);
            let is_launched = in_use.as_ref().is_some_and(|folder| folder.is_launched);
            let of_bundles = bundles_with(subjects, id).filter(|_| !is_launched).filter_map(|dir| {
                let bundle = CapabilityFolder {
                    dir: dir.to_owned(),
                    bundle: Some(dir.to_owned()),
                    shipped: false,
                    of_project: false,
                };
                definition_folder(plan, id, &Capabilities::load(&[bundle]))
            });
            let found = in_use.into_iter().chain(of_bundles).min_by_key(|folder| !folder.is_launched);
            match found {
                Some(DefinitionFolder { shipped: true, .. }) => {}
                Some(DefinitionFolder { dir, .. }) => {
                    folders.insert(id.clone(), dir);
                }
                // Other versions of this program may define the capabilities of shipped skills elsewhere.
                None if subjects.iter().all(is_shipped) => {}
                None => {
                    let message = format!(
                        "the capability `{id}` no longer has a definition, so its approvals and gates are unknown; restore the \
                            definition, or launch again"
                    );
                    return Err(Error::new(Code::Untrusted, message));
                }
            }
        }
        Ok(folders)
    }

    /// Checks that what a run executes next is trusted, and that the current policy permits it. Rules may be newer than
    /// the run; `is_approved` is whether its next step is approved.
    ///
    /// # Errors
    /// Returns `untrusted`, `forbidden`, naming the rule, and `invalid_configuration` for an invalid policy.
    pub(super) async fn ensure_permitted(
        self: &Arc<Self>,
        run: &RunRecord,
        plan: &Plan,
        is_approved: bool,
    ) -> Result<(), Error> {
        let (permissions, plan) = (Arc::clone(self), plan.clone());
        let (skill_id, options) = (run.skill_id.clone(), run.options.clone());
        let state = run.state;
        let look = move || {
            permissions.ensure_trusted(&skill_id, &plan, &options, state)?;
            permissions.approval_of_plan(&skill_id, &plan, &options)
        };
        match crate::work::run_blocking(look).await? {
            Some(rule) if !is_approved => {
                let message = format!(
                    "the policy requires an approval of {} since run {} was launched: {rule}; launch it again",
                    run.skill_id, run.id
                );
                Err(Error::new(Code::Forbidden, message))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a run is trusted, and that the current policy permits it to continue after a signal.
    ///
    /// # Errors
    /// Returns `untrusted`, `forbidden`, naming the rule, and `invalid_configuration` for an invalid policy.
    pub(super) async fn ensure_may_continue(
        self: &Arc<Self>,
        runtime: &RunRuntime,
        run: &RunRecord,
    ) -> Result<(), Error> {
        if run.state.is_terminal() {
            return Ok(());
        }
        // An approval of a step may have been given before the policy required one of the run.
        let plan = runtime.plan(&run.contract_digest).await?;
        self.ensure_permitted(run, &plan, plan.approval.is_some()).await
    }

    /// Returns whether the policy can be read. While it cannot, no run is claimed: another process may execute it.
    pub(super) fn may_claim(&self) -> bool {
        let read = self.deciding();
        let is_readable = read.is_ok();
        if self.claiming.swap(is_readable, Ordering::Relaxed) != is_readable {
            match read {
                Ok(_) => tracing::info!("the policy can be read; claiming runs again"),
                Err(error) => {
                    tracing::warn!("no runs are claimed until the policy can be read: {}", error.message);
                }
            }
        }
        is_readable
    }

    /// Checks that a claimed run is trusted, and that the current policy permits it.
    ///
    /// # Errors
    /// Returns `untrusted`, `forbidden`, naming the rule, and `invalid_configuration` for an invalid policy.
    pub(super) async fn permitted_now(
        self: &Arc<Self>,
        engine: &Engine,
        claimed: &Claimed,
    ) -> Result<(), Error> {
        let run = &claimed.run;
        // An unreadable plan is reported when the run is executed.
        let Ok(plan) = engine.plan(&claimed.contract, &run.contract_digest) else { return Ok(()) };
        // An approval is required before the first step.
        let has_begun = run.head > 0 || run.decided.is_some();
        self.ensure_permitted(run, &plan, plan.approval.is_some() || has_begun).await
    }
}
