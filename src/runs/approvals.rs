//! Approval by a person before a call: whether it may start, and what to do about one whose outcome is unknown.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use super::call::PresentBindings;
use super::grants::Grants;
use super::progress::owner_of;
use skills_base::canonical::digest_of;
use skills_model::{ApprovalReason, Choice, Gate, RunState};
use skills_skill::contract::Capability;
use skills_store::{RunRecord, StepIntent};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApprovalRequest {
    /// The step, or the part of it.
    pub step: String,
    pub capability: Option<Arc<Capability>>,
    pub inputs: Value,
    pub digest: String,
    pub why: ApprovalReason,
}

/// Whether a call may start now.
#[derive(Debug, PartialEq)]
pub(super) enum Admission {
    /// It may start, with this attempt number.
    Go(u32),
    /// Approval is required first.
    Ask(ApprovalReason),
    /// A person marked the step as completed, with these outputs.
    Happened(Map<String, Value>),
    /// A person chose to skip the step.
    Skip,
    /// A person chose to let it fail.
    Fail,
}

/// Builds the question whether a call may be executed by something other than at launch. It is bound to what would
/// execute it now: another edit requires another approval. Approving it also approves the call itself if that requires
/// approval, so that one change is one question.
pub(super) fn about_change(
    step: &str,
    capability: &Arc<Capability>,
    inputs: &Value,
    call: &str,
    why: &ApprovalReason,
    human: Option<&ApprovalReason>,
) -> ApprovalRequest {
    let why = match why {
        ApprovalReason::Changed { what, now, .. } => ApprovalReason::Changed {
            what: what.clone(),
            now: now.clone(),
            call: Some(call.to_owned()),
            besides: human.map(ApprovalReason::describe),
        },
        other => other.clone(),
    };
    let digest =
        digest_of(&json!({"step": step, "capability": capability.id, "inputs": inputs, "changed": why}));
    let (capability, inputs) = (Some(Arc::clone(capability)), inputs.clone());
    ApprovalRequest { step: step.to_owned(), capability, inputs, digest, why }
}

/// The digests of a question.
struct Digests {
    current: String,
    /// Those of earlier versions, with which gates and decisions may be recorded: of the call alone, without the
    /// target, and without the bindings. None of a question before the first step, which is asked again.
    former: Vec<String>,
}

/// The approvals of a run, and what they have to cover. `lost` is the intent of a call that had started when the last
/// worker was lost.
#[derive(Debug)]
pub(super) struct Approvals {
    pub run: Arc<RunRecord>,
    pub grants: Grants,
    /// What would execute each capability now; updated before each turn.
    pub present: BTreeMap<String, PresentBindings>,
    /// Key of the digests, because readers of them may not know the addresses of services.
    key: Arc<str>,
    /// Digest of what the run is attached to, once computed: it may have many megabytes.
    target_digest: OnceLock<String>,
}

impl Approvals {
    pub fn new(
        run: Arc<RunRecord>,
        grants: Grants,
        present: BTreeMap<String, PresentBindings>,
        key: Arc<str>,
    ) -> Self {
        Self { run, grants, present, key, target_digest: OnceLock::new() }
    }

    /// Returns the digest of the question whether a step may run a call. It covers the contract, the code, the files,
    /// the target of this run and the bindings that may execute the capability, so that an approval does not apply to
    /// another version, or to a process with other settings. Without a capability it is the question before the first
    /// step. `edited` is code that is approved together with the call.
    pub fn question_digest(
        &self,
        step: &str,
        capability: Option<&str>,
        call: &str,
        edited: &BTreeMap<String, String>,
    ) -> String {
        self.valid_digest(step, capability, self.digests(step, capability, call, Some(edited)))
    }

    /// Returns the digest with which the run waits, if it is valid, otherwise the current one.
    fn valid_digest(&self, step: &str, capability: Option<&str>, digests: Digests) -> String {
        let Digests { current, former } = digests;
        let nothing_callable = capability.and_then(|id| self.present.get(id));
        if nothing_callable.is_some_and(|present| present.callable.is_empty())
            && let Some(Gate::Human { step: waiting, inputs_digest, .. }) = &self.run.gate
            && waiting == step
        {
            // It cannot be approved now: the question is not replaced by one without bindings.
            return inputs_digest.clone();
        }
        former.into_iter().find(|digest| self.waits_for(step, digest)).unwrap_or(current)
    }

    /// Returns whether a step was approved to run this call, which requires approval for this reason.
    pub fn is_allowed(&self, step: &str, capability: Option<&str>, call: &str, why: &ApprovalReason) -> bool {
        let Digests { current, former } = self.digests(step, capability, call, Some(&BTreeMap::new()));
        std::iter::once(&current).chain(&former).any(|digest| self.grants.allow(step, digest, why))
    }

    /// Without `edited` they do not cover code, about whose changes another question is asked.
    fn digests(
        &self,
        step: &str,
        capability: Option<&str>,
        call: &str,
        edited: Option<&BTreeMap<String, String>>,
    ) -> Digests {
        let question = self.grants.question(step, call);
        let mut covered = json!({"call": question, "contract": self.run.contract_digest});
        if let Some(edited) = edited {
            let mut code = self.run.options.pins.clone().unwrap_or_default();
            code.extend(edited.clone());
            covered["code"] = json!(code);
        }
        let files = &self.run.options.file_digests;
        if !files.is_empty() {
            covered["files"] = json!(files);
        }
        let mut former = vec![question];
        if let Some(target) = &self.run.target {
            former.push(digest_of(&covered));
            covered["target"] = json!(self.target_digest.get_or_init(|| digest_of(target)));
        }
        if let Some(bindings) = self.covered_bindings(capability) {
            if capability.is_some() {
                former.push(digest_of(&covered));
            } else {
                former.clear();
            }
            covered["bindings"] = json!(bindings);
        }
        if !files.is_empty() {
            former.push(digest_of(&covered));
            // Readers may not know the digests of the files.
            covered["files"] = json!(digest_of(&json!([*self.key, files])));
        }
        Digests { current: digest_of(&covered), former }
    }

    /// Returns the digests of the question about an interrupted call whose outcome is unknown. They cover the attempt,
    /// so that a resent decision about an earlier attempt does not apply to this one.
    fn lost_digests(&self, step: &str, capability: &str, call: &str, attempt: u32) -> Digests {
        let of = |call: &str| digest_of(&json!({"call": call, "lost_attempt": attempt}));
        let covered = self.digests(step, Some(capability), call, None).current;
        Digests { current: of(&covered), former: vec![of(call)] }
    }

    /// Returns the digest of the question about a call whose outcome is unknown.
    pub fn lost_question_digest(&self, step: &str, capability: &str, call: &str, attempt: u32) -> String {
        self.valid_digest(step, Some(capability), self.lost_digests(step, capability, call, attempt))
    }

    /// Returns a digest of the bindings that may be called for a capability, with their addresses; `None` for runs of
    /// earlier versions, which record no bindings.
    pub fn bindings_digest(&self, capability: &str) -> Option<String> {
        let present = self.present.get(capability)?;
        Some(digest_of(&json!([*self.key, present.callable])))
    }

    /// Returns a digest of the bindings that a question covers: those of its capability, or before the first step those
    /// of all capabilities that the run may call.
    fn covered_bindings(&self, capability: Option<&str>) -> Option<String> {
        match capability {
            Some(id) => self.bindings_digest(id),
            None if self.present.is_empty() => None,
            None => self.bindings_of(self.present.keys().map(String::as_str)),
        }
    }

    /// Returns a digest of the bindings that may be called for several capabilities; `None` if none are recorded.
    pub fn bindings_of<'a>(&self, capabilities: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let digests: Option<Vec<_>> = capabilities.into_iter().map(|id| self.bindings_digest(id)).collect();
        digests.map(|digests| digest_of(&json!(digests)))
    }

    /// Returns whether what had started may call the same bindings now. Earlier versions did not record them.
    pub fn has_same_bindings<'a>(
        &self,
        intent: &StepIntent,
        capabilities: impl IntoIterator<Item = &'a str>,
    ) -> bool {
        intent.bindings.is_none() || intent.bindings == self.bindings_of(capabilities)
    }

    /// Returns the decision about an interrupted call whose outcome is unknown, and the outputs that it states.
    fn choice(
        &self,
        intent: &StepIntent,
        path: &str,
        capability: &str,
        call: &str,
    ) -> Option<(Choice, Map<String, Value>)> {
        let Digests { current, mut former } = self.lost_digests(path, capability, call, intent.attempt);
        former.push(current);
        self.grants.choice(path, &former)
    }

    /// Returns why the run waits for the approval of a call of this step now; `None` if it does not.
    pub fn reason_at(&self, step: &str) -> Option<&ApprovalReason> {
        match &self.run.gate {
            Some(Gate::Human { step: at, why, .. })
                if self.run.state == RunState::WaitingForHuman
                    && !at.contains('~')
                    && owner_of(at) == step =>
            {
                Some(why)
            }
            _ => None,
        }
    }

    /// Whether the run waits at this step with this digest, of the call or of a change that includes the call: a gate
    /// keeps the one that it was recorded with.
    fn waits_for(&self, at: &str, digest: &str) -> bool {
        match &self.run.gate {
            Some(Gate::Human { step, inputs_digest, why, .. }) if step == at => {
                let changed =
                    matches!(why, ApprovalReason::Changed { call: Some(call), .. } if call == digest);
                changed || inputs_digest == digest
            }
            _ => false,
        }
    }

    /// Decides whether a call, or a step of several, may start. One that had started when its worker was lost continues
    /// if it is repeatable, and requires a decision otherwise.
    pub fn admit(
        &self,
        lost: Option<&StepIntent>,
        path: &str,
        capability: &str,
        digest: &str,
        human: Option<ApprovalReason>,
    ) -> Admission {
        if let Some(intent) = lost {
            if !intent.repeatable {
                return match self.choice(intent, path, capability, digest) {
                    None => Admission::Ask(ApprovalReason::UnknownOutcome),
                    Some((Choice::Rerun, _)) => Admission::Go(intent.attempt.saturating_add(1)),
                    Some((Choice::Happened, result)) => Admission::Happened(result),
                    Some((Choice::Skip, _)) => Admission::Skip,
                    Some((Choice::Fail, _)) => Admission::Fail,
                };
            }
            let is_approved = human.is_none() || self.has_same_bindings(intent, [capability]);
            if intent.inputs_digest == digest && is_approved {
                // Its approval was given before it started.
                return Admission::Go(intent.attempt);
            }
        }
        match human {
            Some(why) if !self.is_allowed(path, Some(capability), digest, &why) => Admission::Ask(why),
            _ => Admission::Go(1),
        }
    }

    /// Returns the question to ask before a step starts: whether what executes it may differ from the launch, and
    /// everything else that requires approval, in one question. `None` if no approval is required, or if an earlier
    /// outcome is unknown, which is asked first.
    pub fn question(
        &self,
        lost: Option<&StepIntent>,
        path: &str,
        capability: &Arc<Capability>,
        inputs: &Value,
        digest: &str,
        human: Option<ApprovalReason>,
    ) -> Option<ApprovalRequest> {
        let id = capability.id.as_str();
        let unknown = lost.filter(|intent| !intent.repeatable);
        let choice = unknown.map(|intent| self.choice(intent, path, id, digest).map(|(choice, _)| choice));
        if choice.is_some_and(|choice| choice != Some(Choice::Rerun)) {
            return None;
        }
        let unknown = unknown.is_some();
        let open = human.filter(|why| !unknown && !self.is_allowed(path, Some(id), digest, why));
        if let Some(why) = self.changes(id) {
            let edited = match &why {
                ApprovalReason::Changed { now, .. } => now.clone(),
                _ => BTreeMap::new(),
            };
            let question = self.question_digest(path, Some(id), digest, &edited);
            return Some(about_change(path, capability, inputs, &question, &why, open.as_ref()));
        }
        match self.admit(lost, path, id, digest, open) {
            Admission::Ask(why) => Some(ApprovalRequest {
                step: path.to_owned(),
                capability: Some(Arc::clone(capability)),
                inputs: inputs.clone(),
                digest: self.question_digest(path, Some(id), digest, &BTreeMap::new()),
                why,
            }),
            _ => None,
        }
    }

    /// Returns what changed about executing a capability, together with all other changes of the run, so that one edit
    /// of a script that several steps share is one question.
    fn changes(&self, capability: &str) -> Option<ApprovalReason> {
        let own = self.present.get(capability)?.changed.as_ref()?;
        let others = self.present.iter().filter(|(id, _)| *id != capability);
        let others = others.filter_map(|(_, present)| present.changed.as_ref());
        let (mut all, mut pins) = (Vec::new(), BTreeMap::new());
        for why in std::iter::once(own).chain(others) {
            if let ApprovalReason::Changed { what, now, .. } = why {
                for part in what.split("; ") {
                    if !all.contains(&part) {
                        all.push(part);
                    }
                }
                pins.extend(now.clone());
            }
        }
        Some(ApprovalReason::Changed { what: all.join("; "), now: pins, call: None, besides: None })
    }
}
