//! Proposals in this process: measured like drafts, stored in a folder, and applied by an approval.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::golden::GoldenCache;
use super::levels::Levels;
use super::ranking::Ranking;
use super::runs::{self, Approvals};
use super::skills::Skills;
use crate::error_conversions::write_error_code;
use crate::golden::invalid;
use crate::operations::Scope;
use crate::work::run_blocking;
use crate::{
    CheckResult, Code, Error, ProposalAction, ProposalActionOptions, ProposalActionResult, ProposalCheck,
    ProposalCheckKind, ProposalFilter, ProposalList, ProposalRequest, ProposalSummary, ProposalView,
    ProposedPart, lint, names, paging,
};
use skills_authoring::proposals::diff::{self, DiffError};
use skills_authoring::proposals::{
    Facts, NewProposal, Proposal, ProposalDecision, ProposalError, ProposalHead, ProposalState,
    ProposalStore, present_digest, versions,
};
use skills_base::audit::Recorder;
use skills_base::files::canonicalize;
use skills_base::locked_folder::LockedFolder;
use skills_config::Config;
use skills_discovery::{self as discovery, Document, EvalOptions, GoldenChange, Router};
use skills_registry::{Catalog, Trust, TrustState};
use skills_skill::{Digest, Finding, RefusalReason, Severity, Skill};

/// Maximum number of characters of a justification or evidence.
const MAX_TEXT: usize = 20_000;
/// Maximum size of a diff in bytes.
const MAX_DIFF_BYTES: usize = 1_000_000;
/// Maximum number of files named by a check.
const MAX_NAMED: usize = 2;

/// The folder of proposals: next to the project's settings file, else in the data folder. A demo uses a temporary
/// folder.
pub(super) struct ProposalFolder {
    store: ProposalStore,
    _demo: Option<LockedFolder>,
}

impl ProposalFolder {
    pub(super) fn of(config: &Config, audit: &Arc<Recorder>) -> Self {
        let demo = config.demo.then(super::temporary_folder).and_then(Result::ok);
        let folder = match (&demo, config.project_file_folder()) {
            (Some(demo), _) => demo.path().join("proposals"),
            (None, Some(project)) => project.join("proposals"),
            (None, None) => config.dirs.data.join("proposals"),
        };
        let own = demo.as_ref().map_or(config.dirs.data.as_path(), LockedFolder::path);
        let started = own.join("proposals-in-progress");
        Self { store: ProposalStore::new(folder, started, Arc::clone(audit)), _demo: demo }
    }
}

impl From<ProposalError> for Error {
    fn from(error: ProposalError) -> Self {
        let message = error.to_string();
        let code = match &error {
            ProposalError::NotFound { .. } => Code::NotFound,
            ProposalError::Damaged { .. }
            | ProposalError::NoVersion { .. }
            | ProposalError::OtherFile { .. } => Code::InvalidConfiguration,
            ProposalError::Changed(_) | ProposalError::ChangedSince(_) | ProposalError::Revised(_) => {
                Code::SkillChanged
            }
            ProposalError::Write(error) => write_error_code(error),
            ProposalError::AlreadyDecided(_) | ProposalError::NotApplied(_) => Code::InvalidTransition,
            ProposalError::TooMany(_) | ProposalError::TooManyOwn { .. } => Code::RateLimited,
            ProposalError::Diff(_) => Code::InvalidRequest,
            ProposalError::Io { .. } => Code::InternalError,
        };
        match error {
            ProposalError::NotFound { id, known } => Self {
                suggestions: names::near(&id, known.iter().map(String::as_str)),
                ..Self::new(code, message)
            },
            ProposalError::AlreadyDecided(facts) | ProposalError::NotApplied(facts) => {
                let reason =
                    json!({ "state": facts.state, "decision": facts.decision, "rollback": facts.rollback });
                Self { reason: Some(reason), ..Self::new(code, message) }
            }
            _ => Self::new(code, message),
        }
    }
}

impl From<DiffError> for Error {
    fn from(error: DiffError) -> Self {
        Self::new(Code::InvalidRequest, error.to_string())
    }
}

/// The measured effect of a change.
struct Measurement {
    part: ProposedPart,
    description: String,
    effect: Option<GoldenChange>,
    new_findings: Vec<Finding>,
    fixed_findings: Vec<Finding>,
}

/// The data that measurements and checks use.
#[derive(Clone)]
struct Evaluator {
    catalog: Arc<Catalog>,
    golden: Arc<GoldenCache>,
    own_golden: Option<PathBuf>,
    trust: Trust,
}

/// The proposals of this installation.
pub(super) struct Proposals {
    pub skills: Skills,
    pub folder: ProposalFolder,
    pub levels: Arc<Levels>,
    pub golden: Arc<GoldenCache>,
    pub trust: Trust,
    pub ranking: Arc<Ranking>,
    pub approvals: Arc<Approvals>,
}

impl Proposals {
    fn evaluator(&self) -> Evaluator {
        Evaluator {
            catalog: self.skills.registry.snapshot(),
            golden: Arc::clone(&self.golden),
            own_golden: self.skills.config.golden_file(),
            trust: self.trust.clone(),
        }
    }

    fn proposal_store(&self) -> ProposalStore {
        self.folder.store.clone()
    }

    /// Completes changes that were interrupted, in the audit log too. If the folder cannot be written, the next
    /// process that can completes them.
    async fn record_interrupted(&self) {
        let store = self.proposal_store();
        if let Err(error) = run_blocking(move || Ok(store.record_interrupted()?)).await {
            tracing::warn!("an interrupted change of a proposal is not recorded: {}", error.message);
        }
    }

    pub(super) async fn create(&self, request: ProposalRequest) -> Result<ProposalView, Error> {
        self.ranking.wait_for_index().await?;
        self.record_interrupted().await;
        let ProposalRequest { skill_id, diff, justification, evidence, by } = request;
        check_text("justification", &justification, true)?;
        check_text("evidence", evidence.as_deref().unwrap_or_default(), false)?;
        if diff.len() > MAX_DIFF_BYTES {
            let message = format!("the diff has {} bytes; the maximum is {MAX_DIFF_BYTES}", diff.len());
            return Err(Error::new(Code::InvalidRequest, message));
        }
        let skill = self.skills.resolve(&skill_id)?;
        // It could never be approved.
        if self.skills.snapshot().is_shipped(&skill) {
            return Err(Error::new(Code::InvalidRequest, SHIPPED_IS_READ_ONLY));
        }
        let (evaluator, store) = (self.evaluator(), self.proposal_store());
        let proposed_by = by.filter(|by| !by.trim().is_empty()).unwrap_or_else(runs::account);
        let at_ms = jiff::Timestamp::now().as_millisecond();
        let create = move |router: Router| {
            let base = base_of(&skill)?;
            let result = diff::apply(&base, &diff)?;
            let measured = evaluator.measure(&router, &skill, &base, &result)?;
            Ok(store.create(NewProposal {
                skill_id: skill.id.clone(),
                location: skill.location.clone(),
                real: skill.real_location().to_owned(),
                base,
                result,
                justification,
                evidence,
                proposed_by,
                at_ms,
                effect: measured.effect,
            })?)
        };
        let proposal = self.ranking.measure(create).await?;
        self.view(proposal).await
    }

    pub(super) async fn list(&self, filter: ProposalFilter) -> Result<ProposalList, Error> {
        self.record_interrupted().await;
        let store = self.proposal_store();
        // The proposals of a removed skill are still listed.
        let skill = filter.skill.as_deref().map(|requested| {
            self.skills.resolve(requested).map_or_else(|_| requested.to_owned(), |skill| skill.id.to_string())
        });
        run_blocking(move || {
            let listed = store.list()?;
            let waiting = |one: &ProposalHead| one.facts.state == ProposalState::Waiting;
            let count = listed.proposals.iter().filter(|one| waiting(one)).count();
            let requested = |one: &&ProposalHead| {
                (filter.state.is_empty() || filter.state.contains(&one.facts.state))
                    && skill.as_deref().is_none_or(|id| one.facts.skill_id.as_str() == id)
            };
            let found: Vec<&ProposalHead> = listed.proposals.iter().filter(requested).collect();
            let id = |at: usize| found[at].facts.proposal_id.as_str();
            let (page, next) = paging::part(found.len(), id, filter.limit, filter.cursor.as_deref())?;
            Ok(ProposalList {
                proposals: found[page].iter().map(|one| summary(one)).collect(),
                total: found.len(),
                waiting: count,
                damaged: listed.damaged.iter().map(ToString::to_string).collect(),
                next,
            })
        })
        .await
    }

    pub(super) async fn show(&self, id: &str) -> Result<ProposalView, Error> {
        self.record_interrupted().await;
        let (store, id) = (self.proposal_store(), id.to_owned());
        let proposal = run_blocking(move || Ok(store.find(&id)?)).await?;
        self.view(proposal).await
    }

    async fn view(&self, proposal: Proposal) -> Result<ProposalView, Error> {
        self.ranking.wait_for_index().await?;
        let (evaluator, store, levels) = (self.evaluator(), self.proposal_store(), Arc::clone(&self.levels));
        let view = move |router: Router| {
            let facts = &proposal.facts;
            let skill = evaluator.catalog.by_location(&facts.location).cloned();
            let present =
                match &skill {
                    Some(skill) => skill.read().ok().map(|bytes| Digest::of(&bytes)),
                    // A file that has never been a skill's is not read: anyone who edits the proposal could name it.
                    None if evaluator.catalog.refused.iter().any(|one| {
                        one.location == facts.location && one.reason != RefusalReason::LeavesRoot
                    }) =>
                    {
                        present_digest(facts)
                    }
                    None => None,
                };
            let waits = facts.state == ProposalState::Waiting;
            let base = match (&skill, present == Some(facts.base_digest)) {
                (Some(skill), true) => base_of(skill).ok(),
                _ => store.version(facts, facts.base_digest).ok(),
            };
            let leads = |result: &String| Digest::of(result.as_bytes()) == facts.result_digest;
            let result = base.as_deref().and_then(|base| diff::apply(base, &proposal.diff).ok());
            let result = result.filter(leads);
            // What is shown is what an approval writes, however the diff states it.
            let hunks = match base.as_deref().zip(result.as_deref()) {
                Some((base, result)) => diff::hunks(base, result)?,
                None => diff::stated_hunks(&proposal.diff),
            };
            let both = skill.as_deref().zip(base.as_deref().zip(result.as_deref()));
            // A decided proposal is shown with the effect on which the decision was based.
            let measured = match both {
                Some((skill, (base, result))) if waits => {
                    Some(evaluator.measure(&router, skill, base, result)?)
                }
                Some((skill, (base, result))) => evaluator.compare(skill, base, result).ok(),
                None => None,
            };
            let checks = if waits {
                evaluator.checks(facts, skill.as_deref(), present, measured.as_ref())
            } else {
                Vec::new()
            };
            let of_file = store.list()?.proposals;
            let of_file = of_file.iter().filter(|one| one.facts.location == facts.location);
            let current_description = base.as_deref().and_then(|base| {
                let old = skills_skill::parse(&facts.location, base.as_bytes(), 0).ok()?;
                Some(old.description)
            });
            let before = current_description.as_ref().map(|text| levels.text(text).tokens);
            let after = measured.as_ref().map(|measured| levels.text(&measured.description).tokens);
            let effect = if waits {
                measured.as_ref().and_then(|one| one.effect.clone())
            } else {
                facts.effect.clone()
            };
            let (mut new_findings, mut fixed_findings) = (Vec::new(), Vec::new());
            let (mut part, mut description) = (None, None);
            if let Some(measured) = measured {
                (new_findings, fixed_findings) = (measured.new_findings, measured.fixed_findings);
                (part, description) = (Some(measured.part), Some(measured.description));
            }
            Ok(ProposalView {
                summary: summary(&proposal.head()),
                location: facts.location.clone(),
                proposal_digest: proposal.digest(),
                base_digest: facts.base_digest,
                result_digest: facts.result_digest,
                part,
                hunks,
                current_description,
                description,
                description_tokens: before.zip(after),
                checks,
                new_findings,
                fixed_findings,
                effect,
                versions: versions(of_file, present),
                diff: proposal.diff.clone(),
                justification: proposal.justification.clone(),
                evidence: proposal.evidence.clone(),
            })
        };
        self.ranking.measure(view).await
    }

    pub(super) async fn decide(
        &self,
        id: &str,
        action: ProposalAction,
        by: ProposalActionOptions,
    ) -> Result<ProposalActionResult, Error> {
        self.record_interrupted().await;
        let store = self.proposal_store();
        let found = {
            let (store, id) = (store.clone(), id.to_owned());
            run_blocking(move || Ok(store.find(&id)?)).await?
        };
        let writes = !matches!(action, ProposalAction::Deny);
        let is_open = matches!(found.facts.state, ProposalState::Waiting | ProposalState::Approved);
        // An approval that is repeated is answered with its first outcome.
        let is_repeated =
            matches!(action, ProposalAction::Approve { .. }) && found.facts.state == ProposalState::Approved;
        if by.limited && writes && is_open && !is_repeated {
            self.check_limited(&found, &action, &by).await?;
        }
        if let ProposalAction::Approve { proposal_digest, base_digest } = &action {
            self.check_approval(&found, (*proposal_digest, *base_digest), &by).await?;
        }
        let real = (writes && is_open).then(|| self.writable_file(&found.facts)).transpose()?;
        let who = by.by.filter(|by| !by.trim().is_empty());
        let who = match who {
            Some(who) => who,
            None => self.approvals.approver().await.0,
        };
        let notes = by.notes.map(|notes| notes.trim().to_owned()).filter(|notes| !notes.is_empty());
        if let Some(notes) = &notes {
            check_text("notes", notes, false)?;
        }
        let decision = ProposalDecision { by: who, at_ms: jiff::Timestamp::now().as_millisecond(), notes };
        let owned_action = action.clone();
        let (proposal, repeated) = run_blocking(move || {
            Ok(match owned_action {
                ProposalAction::Approve { .. } => store.approve(&found, real.as_deref(), decision)?,
                ProposalAction::Deny => store.deny(&found.facts.proposal_id, decision)?,
                ProposalAction::RollBack => store.roll_back(&found, real.as_deref(), decision)?,
            })
        })
        .await?;
        let facts = &proposal.facts;
        let first =
            facts.rollback.as_ref().or(facts.decision.as_ref()).map_or("another user", |first| &first.by);
        // Paths of this machine are not for the owners of API keys.
        let file_name = facts.location.file_name().filter(|_| by.limited).map(Path::new);
        let location = file_name.unwrap_or(&facts.location).display();
        let note = match (&action, repeated) {
            (ProposalAction::Approve { .. }, false) => format!("approved; wrote {location}"),
            (ProposalAction::Deny, false) => "denied; the skill is unchanged".to_owned(),
            (ProposalAction::RollBack, false) => {
                format!("rolled back; wrote the previous version to {location}")
            }
            (ProposalAction::Approve { .. }, true) => format!("was already approved by {first}"),
            (ProposalAction::Deny, true) => format!("was already denied by {first}"),
            (ProposalAction::RollBack, true) => format!("was already rolled back by {first}"),
        };
        if !repeated && writes && !self.skills.config.watch {
            self.skills.registry.rescan();
        }
        Ok(ProposalActionResult { proposal: summary(&proposal.head()), note, repeated })
    }

    /// Rejects what only the scope `admin` may write: the approver's own proposal, and a change that decides which
    /// rules of the policy apply to the skill.
    async fn check_limited(
        &self,
        found: &Proposal,
        action: &ProposalAction,
        by: &ProposalActionOptions,
    ) -> Result<(), Error> {
        let facts = &found.facts;
        let approves = matches!(action, ProposalAction::Approve { .. });
        if approves && by.by.as_ref() == Some(&facts.proposed_by) {
            let message = format!(
                "{} was proposed by {}; another person, or a key with the scope `{}`, must approve it",
                facts.proposal_id,
                facts.proposed_by,
                Scope::Admin
            );
            return Err(Error::new(Code::Forbidden, message));
        }
        let (store, catalog, proposal) =
            (self.proposal_store(), self.skills.registry.snapshot(), found.clone());
        let changed = run_blocking(move || {
            let facts = &proposal.facts;
            let skill = catalog.by_location(&facts.location);
            let present = skill.and_then(|skill| base_of(skill).ok());
            let base = present.filter(|text| Digest::of(text.as_bytes()) == facts.base_digest);
            let base = match base {
                Some(base) => base,
                None if approves => return Err(ProposalError::Changed(facts.location.clone()).into()),
                None => store.version(facts, facts.base_digest)?,
            };
            let result = diff::apply(&base, &proposal.diff)?;
            Ok(policy_fields(&facts.location, &base, &result))
        })
        .await?;
        if changed.is_empty() {
            return Ok(());
        }
        let message = format!(
            "proposal {} changes {}, which rules of the policy may compare; that needs the scope `{}`",
            facts.proposal_id,
            changed.join(", "),
            Scope::Admin
        );
        Err(Error::needs_scope(Scope::Admin, message))
    }

    /// Rejects an approval that does not name what was reviewed.
    async fn check_approval(
        &self,
        found: &Proposal,
        (proposal_digest, base_digest): (Option<Digest>, Option<Digest>),
        by: &ProposalActionOptions,
    ) -> Result<(), Error> {
        let facts = &found.facts;
        let named = [
            ("proposal_digest", proposal_digest, found.digest()),
            ("base_digest", base_digest, facts.base_digest),
        ];
        let missing: Vec<&str> =
            named.iter().filter(|(_, named, _)| named.is_none()).map(|(name, ..)| *name).collect();
        if !missing.is_empty() && facts.state == ProposalState::Waiting {
            let view = self.view(found.clone()).await?;
            let mut body =
                json!({ "proposal_digest": view.proposal_digest, "base_digest": view.base_digest });
            for (name, value) in [("by", &by.by), ("notes", &by.notes)] {
                if let Some(value) = value {
                    body[name] = json!(value);
                }
            }
            let message = format!(
                "no decision made: proposal {} changes {}; to approve it, pass `proposal_digest` and `base_digest` \
                    of what was reviewed",
                facts.proposal_id, facts.skill_id
            );
            let path = format!("/v1/proposals/{}/approve", facts.proposal_id);
            let reason = json!({
                "proposal_id": facts.proposal_id,
                "missing": missing,
                "proposal": view,
                "send": { "method": "POST", "path": path, "body": body },
            });
            return Err(Error { reason: Some(reason), ..Error::new(Code::ConfirmationRequired, message) });
        }
        for (name, named, present) in named {
            if let Some(named) = named.filter(|named| *named != present) {
                let message = format!(
                    "no decision made: `{name}` does not match proposal {}; review it again",
                    facts.proposal_id
                );
                let reason = json!({ "named": named, "present": present });
                return Err(Error { reason: Some(reason), ..Error::new(Code::SkillChanged, message) });
            }
        }
        Ok(())
    }

    /// Returns the file of the proposal's skill, without links, as the current catalog knows it: no other file is
    /// written, whatever the proposal states.
    fn writable_file(&self, facts: &Facts) -> Result<PathBuf, Error> {
        let catalog = self.skills.registry.snapshot();
        let Some(skill) = catalog.by_location(&facts.location) else {
            let message = format!(
                "{} is no longer a skill: {} is not in any root",
                facts.skill_id,
                facts.location.display()
            );
            return Err(Error::new(Code::NotFound, message));
        };
        if catalog.by_id(facts.skill_id.as_str()).is_some_and(|named| named.location != skill.location) {
            let message = format!(
                "proposal {} is for {}, but names {}, the file of another skill; propose the change again",
                facts.proposal_id,
                facts.skill_id,
                facts.location.display()
            );
            return Err(Error::new(Code::InvalidConfiguration, message));
        }
        match read_only(&catalog, skill) {
            Some(why) => {
                let message = format!("cannot write {}: {why}", facts.location.display());
                Err(Error::new(Code::InvalidConfiguration, message))
            }
            None => Ok(skill.real_location().to_owned()),
        }
    }
}

fn check_text(name: &str, text: &str, required: bool) -> Result<(), Error> {
    if required && text.trim().is_empty() {
        return Err(Error::new(Code::InvalidRequest, format!("`{name}` is empty")));
    }
    let length = text.chars().count();
    if length > MAX_TEXT {
        let message = format!("`{name}` has {length} characters; the maximum is {MAX_TEXT}");
        return Err(Error::new(Code::InvalidRequest, message));
    }
    Ok(())
}

/// Returns the content of a skill's file; a diff requires text.
fn base_of(skill: &Skill) -> Result<String, Error> {
    let unusable = |why: String| {
        Error::new(Code::InvalidConfiguration, format!("cannot read {}: {why}", skill.location.display()))
    };
    let bytes = skill.read().map_err(|refusal| unusable(refusal.to_string()))?;
    String::from_utf8(bytes).map_err(|_| unusable("it is not UTF-8".to_owned()))
}

fn summary(ProposalHead { facts, title }: &ProposalHead) -> ProposalSummary {
    // Without an in-scope query there is nothing to rank.
    let effect = facts.effect.as_ref().filter(|effect| effect.after.queries > 0);
    ProposalSummary {
        proposal_id: facts.proposal_id.clone(),
        skill_id: facts.skill_id.clone(),
        state: facts.state,
        proposed_by: facts.proposed_by.clone(),
        proposed_at_ms: facts.proposed_at_ms,
        title: title.clone(),
        decision: facts.decision.clone(),
        rollback: facts.rollback.clone(),
        p_at_1: effect.map(|effect| effect.after.p_at_1 - effect.before.p_at_1),
    }
}

/// Why the file of a shipped skill is not written, and what to do instead.
pub const SHIPPED_IS_READ_ONLY: &str =
    "shipped skills are read-only; copy the skill's folder to your own root and change the copy";

/// Returns why the file of a skill cannot be written; `None` if it can.
pub(crate) fn read_only(catalog: &Catalog, skill: &Skill) -> Option<String> {
    if catalog.is_shipped(skill) {
        return Some(SHIPPED_IS_READ_ONLY.to_owned());
    }
    let real = canonicalize(&skill.location).ok()?;
    if std::fs::metadata(&real).is_ok_and(|found| found.permissions().readonly()) {
        return Some("the file is read-only".to_owned());
    }
    // The file is replaced by another one in its folder.
    unwritable(real.parent().unwrap_or(Path::new("."))).then(|| "the folder is read-only".to_owned())
}

#[cfg(unix)]
fn unwritable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_err()
}

#[cfg(not(unix))]
fn unwritable(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|found| found.permissions().readonly())
}

impl Evaluator {
    /// Measures a change, with its effect on the golden sets.
    fn measure(
        &self,
        router: &Router,
        skill: &Skill,
        base: &str,
        result: &str,
    ) -> Result<Measurement, Error> {
        let measured = self.compare(skill, base, result)?;
        Ok(Measurement { effect: self.effect(router, skill, result)?, ..measured })
    }

    /// Determines the parts that differ and the lint findings of both; rejects an unusable result.
    fn compare(&self, skill: &Skill, base: &str, result: &str) -> Result<Measurement, Error> {
        let parsed = |text: &str| {
            skills_skill::parse(&skill.location, text.as_bytes(), 0).map_err(|refusal| {
                let why = refusal.findings.last().map_or("it cannot be parsed", |finding| &finding.message);
                let message = format!("with this change, the file of {} would be unusable: {why}", skill.id);
                Error::new(Code::InvalidRequest, message)
            })
        };
        let new = parsed(result)?;
        let findings = |skill: &Skill, text: &str| {
            let mut all = lint::checked(skill, text, None).0;
            all.retain(|finding| finding.severity != Severity::Info);
            all
        };
        let old_findings = parsed(base).map(|old| findings(&old, base)).unwrap_or_default();
        let now = findings(&new, result);
        let only = |here: &[Finding], there: &[Finding]| {
            let alike = |a: &Finding, b: &Finding| a.code == b.code && a.message == b.message;
            here.iter().filter(|one| !there.iter().any(|other| alike(one, other))).cloned().collect()
        };
        Ok(Measurement {
            part: part(base, result),
            effect: None,
            new_findings: only(&now, &old_findings),
            fixed_findings: only(&old_findings, &now),
            description: new.description,
        })
    }

    /// Returns the effect of the change on the golden sets; `None` if there are none, or if the skill is not ranked.
    fn effect(&self, router: &Router, skill: &Skill, result: &str) -> Result<Option<GoldenChange>, Error> {
        let golden = self.golden.read(&self.catalog, self.own_golden.as_deref(), false)?;
        let (Some(golden), true) = (golden, self.catalog.entry(skill.id.as_str()).is_some()) else {
            return Ok(None);
        };
        let Ok(new) = skills_skill::parse(&skill.location, result.as_bytes(), 0) else { return Ok(None) };
        let new = Skill { id: skill.id.clone(), ..new };
        let text =
            if new.has_body { skills_skill::index_text(result) } else { skills_skill::IndexText::default() };
        let document = Document { digest: None, ..Document::from_skill(&new, Some(text)) };
        let (draft, cases) = (router.with_document(document), golden.cases());
        // No query can find it, neither before nor after the change.
        if [router, &draft].iter().all(|one| one.not_ranked(&skill.id).is_some()) {
            return Ok(None);
        }
        let before = self.golden.outcomes(router, cases)?;
        let after = discovery::outcomes(&draft, cases, EvalOptions::default()).map_err(invalid)?;
        Ok(Some(discovery::compare(cases, &before, &after)))
    }

    fn checks(
        &self,
        facts: &Facts,
        skill: Option<&Skill>,
        present: Option<Digest>,
        measured: Option<&Measurement>,
    ) -> Vec<ProposalCheck> {
        let mut checks = Vec::new();
        let mut push =
            |check, result, evidence: String| checks.push(ProposalCheck { check, result, evidence });
        let Some(skill) = skill else {
            push(
                ProposalCheckKind::Unchanged,
                CheckResult::Fail,
                "the skill is not in any loaded root".to_owned(),
            );
            return checks;
        };
        let (result, evidence) = match present {
            _ if facts.real.as_deref().is_some_and(|stated| stated != skill.real_location()) => {
                (CheckResult::Fail, "it names a different file than the skill's; propose the change again")
            }
            Some(digest) if digest == facts.base_digest && measured.is_none() => {
                (CheckResult::Fail, "the diff does not apply; propose the change again")
            }
            Some(digest) if digest == facts.base_digest => {
                (CheckResult::Pass, "file unchanged, diff applies")
            }
            Some(_) if facts.applying.is_some() => (
                CheckResult::Fail,
                "an approval was interrupted and the file has changed since: whether the approval was written is \
                 unknown; deny it, or propose the change again",
            ),
            Some(_) => (CheckResult::Fail, "the file has changed since; propose the change again"),
            None => (CheckResult::Fail, "the file cannot be read"),
        };
        push(ProposalCheckKind::Unchanged, result, evidence.to_owned());
        match read_only(&self.catalog, skill) {
            None => push(ProposalCheckKind::Writable, CheckResult::Pass, "file can be written".to_owned()),
            Some(why) => push(ProposalCheckKind::Writable, CheckResult::Fail, why),
        }
        if let Some(measured) = measured {
            let (new, fixed) = (measured.new_findings.len(), measured.fixed_findings.len());
            let result = if new == 0 { CheckResult::Pass } else { CheckResult::Fail };
            let evidence = match (new, fixed) {
                (0, 0) => "no new findings".to_owned(),
                (0, fixed) => format!("{fixed} fixed"),
                (new, 0) => format!("{new} new"),
                (new, fixed) => format!("{new} new, {fixed} fixed"),
            };
            push(ProposalCheckKind::Lint, result, evidence);
            let (result, evidence) = match &measured.effect {
                None => (
                    CheckResult::Unknown,
                    "not measured: no golden set, or the skill is not ranked".to_owned(),
                ),
                Some(effect) if effect.lost.is_empty() => (CheckResult::Pass, "no query lost".to_owned()),
                Some(effect) => {
                    let lost = effect.lost.len();
                    (
                        CheckResult::Fail,
                        format!("{lost} {} lost", if lost == 1 { "query" } else { "queries" }),
                    )
                }
            };
            push(ProposalCheckKind::Golden, result, evidence);
        }
        match self.trust.state(&skill.root_dir) {
            TrustState::Pinned { .. } => {
                let evidence = "trusted files change; trust the skill again after approval";
                push(ProposalCheckKind::Trust, CheckResult::Unknown, evidence.to_owned());
            }
            TrustState::Changed { files } => {
                let named = files.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
                let evidence = format!("changed since it was trusted: {named}");
                push(ProposalCheckKind::Trust, CheckResult::Unknown, evidence);
            }
            TrustState::Shipped | TrustState::Config { .. } | TrustState::Untrusted => {}
        }
        checks
    }
}

/// Returns the differing fields of two texts of a skill that decide which rules of the policy apply to it, or how it is
/// executed. A contract defines its own approvals, so any change of it is one.
fn policy_fields(location: &Path, base: &str, result: &str) -> Vec<&'static str> {
    let parsed = |text: &str| skills_skill::parse(location, text.as_bytes(), 0).ok();
    let (Some(old), Some(new)) = (parsed(base), parsed(result)) else { return vec!["an unusable file"] };
    let is_contract = location.extension().is_some_and(|extension| !extension.eq_ignore_ascii_case("md"));
    let (was, now) = (&old.classification, &new.classification);
    let fields = [
        (is_contract, "the contract"),
        (old.id != new.id, "id"),
        (old.name != new.name, "name"),
        (old.tags != new.tags, "tags"),
        (old.domain != new.domain, "domain"),
        (old.kind != new.kind, "kind"),
        (was.role != now.role, "role"),
        (was.invocation != now.invocation, "invocation"),
        (was.attach_targets != now.attach_targets, "attach_targets"),
        (was.effect_mode != now.effect_mode, "effect_mode"),
    ];
    fields.into_iter().filter(|(differs, _)| *differs).map(|(_, field)| field).collect()
}

/// Returns which part of a file differs.
fn part(base: &str, result: &str) -> ProposedPart {
    let same_body = skills_skill::body(base) == skills_skill::body(result);
    let fields = |text: &str| {
        let mut fields = skills_skill::frontmatter_json(text).unwrap_or_default();
        let description = fields.shift_remove("description");
        (fields, description)
    };
    let ((old, old_description), (new, new_description)) = (fields(base), fields(result));
    match (same_body, old == new, old_description == new_description) {
        (true, true, false) => ProposedPart::Description,
        (true, ..) => ProposedPart::Frontmatter,
        (false, true, true) => ProposedPart::Body,
        (false, ..) => ProposedPart::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_rules_compare_are_named() {
        let file = "---\nname: a\ndescription: Old.\ntags: [money]\ndomain: finance\n---\nBody\n";
        let changed =
            |from: &str, to: &str| policy_fields(Path::new("/r/a/SKILL.md"), file, &file.replace(from, to));
        assert!(changed("Old", "New").is_empty() && changed("Body", "Text").is_empty());
        assert_eq!(changed("tags: [money]\n", ""), ["tags"]);
        assert_eq!(changed("finance", "misc"), ["domain"]);
        assert_eq!(changed("name: a", "name: b"), ["name"]);
        assert_eq!(
            changed("tags: [money]", "tags: [money]\nmetadata: {classification: {role: utility}}"),
            ["role"]
        );
        assert_eq!(
            changed("tags: [money]", "tags: [money]\nmetadata: {classification: {effect_mode: read_only}}"),
            ["effect_mode"]
        );
        assert_eq!(policy_fields(Path::new("/r/a/skill.yaml"), "id: a\n", "id: b\n"), ["an unusable file"]);
    }

    #[test]
    fn the_changed_part_is_named() {
        let file = "---\nname: a\ndescription: Old.\n---\nBody\n";
        assert_eq!(part(file, &file.replace("Old", "New")), ProposedPart::Description);
        assert_eq!(part(file, &file.replace("name: a", "name: b")), ProposedPart::Frontmatter);
        assert_eq!(part(file, &file.replace("Body", "Text")), ProposedPart::Body);
        assert_eq!(part(file, &file.replace("Body", "Text").replace("Old", "New")), ProposedPart::File);
    }
}
