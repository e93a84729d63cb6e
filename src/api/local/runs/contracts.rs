//! The contracts of the current skills: read from disk on demand, pinned when a run is launched.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::{Code, Error};
use skills_base::sync::MutexExt as _;
use skills_config::quoted;
use skills_registry::{Catalog, Trust};
use skills_runs::{Capabilities, Plan};
use skills_skill::contract::{Contract, ContractApprovals, parse};
use skills_skill::{Digest, Finding, MAX_BYTES, Severity, Skill, SkillId};

/// File name of a contract.
const FILE: &str = "skill.yaml";

/// A skill and its contract as they are on disk now.
#[derive(Clone)]
pub(super) struct SkillContract {
    pub skill: Arc<Skill>,
    pub contract: Arc<Contract>,
    /// SHA-256 of its file.
    pub digest: Digest,
}

/// Reads the contract of a skill. One with errors is returned too, so that it can be shown.
///
/// # Errors
/// Returns `invalid_configuration` if there is none, or if it is unreadable.
pub(super) fn read(skill: &Arc<Skill>) -> Result<SkillContract, Error> {
    let place = skill.root_dir.join(FILE);
    let refused = |message: String| Error::new(Code::InvalidConfiguration, message);
    let opened = skill.open().and_then(|bundle| Ok(bundle.read_text(FILE, MAX_BYTES)?));
    let text = opened.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::no_contract(&skill.id),
        _ => refused(format!("cannot read the contract of {}: {}: {e}", skill.id, place.display())),
    })?;
    let (contract, findings) = parse(&place, &text);
    if let Some(contract) = contract {
        let digest = Digest::of(text.as_bytes());
        Ok(SkillContract { skill: Arc::clone(skill), contract: Arc::new(contract), digest })
    } else {
        let errors: Vec<&Finding> = findings.iter().filter(|f| f.severity == Severity::Error).collect();
        let why = errors.first().map_or_else(|| "not a contract".to_owned(), |f| located(&place, f));
        Err(refused(format!("invalid contract of {}: {why}", skill.id)))
    }
}

/// Returns what the contract of a skill requires for approvals; `None` if it requires nothing, or there is no contract.
/// Reads from disk.
///
/// # Errors
/// Returns `invalid_configuration` if errors hide what its `approvals` require.
pub(super) fn approvals(skill: &Arc<Skill>) -> Result<Option<ContractApprovals>, Error> {
    let read = match read(skill) {
        Ok(read) => read,
        Err(error) if error.has_no_contract() || !mentions_approvals(skill) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_about_approvals = |finding: &Finding| {
        let field = finding.field.as_deref().unwrap_or_default();
        finding.severity == Severity::Error && (field == "approvals" || field.starts_with("approvals."))
    };
    match broken(&read).filter(|_| read.contract.findings.iter().any(is_about_approvals)) {
        Some(error) => Err(error),
        None => Ok(read.contract.approvals),
    }
}

/// Returns whether a file that is not a contract may be one with `approvals`: other tools have a `skill.yaml`, too.
fn mentions_approvals(skill: &Skill) -> bool {
    let text = skill.open().ok().and_then(|bundle| bundle.read_text(FILE, MAX_BYTES).ok());
    text.is_none_or(|text| text.contains("approvals"))
}

/// Returns why a contract with errors does not run; `None` if it has no errors.
pub(super) fn broken(read: &SkillContract) -> Option<Error> {
    let errors: Vec<&Finding> =
        read.contract.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    let first = errors.first()?;
    let more = match errors.len() - 1 {
        0 => String::new(),
        1 => " (and 1 more error)".to_owned(),
        n => format!(" (and {n} more errors)"),
    };
    let message = format!(
        "the contract of {} has errors: {}{more}; `skills lint {}` shows all",
        read.skill.id,
        located(&read.contract.location, first),
        quoted(&read.skill.root_dir.to_string_lossy())
    );
    Some(Error::new(Code::InvalidConfiguration, message))
}

fn located(place: &Path, finding: &Finding) -> String {
    let line = finding.span.map(|span| format!(":{}", span.line)).unwrap_or_default();
    format!("{}{line}: {}", place.display(), finding.message)
}

/// Index of contracts by their own ids, which may differ from the ids of their skills.
#[derive(Default)]
pub(super) struct ByContractId(Mutex<(u64, HashMap<String, SkillId>)>);

impl ByContractId {
    /// Returns the contract that `id` names: that of the skill with this id, else the one with this id of its own.
    pub(super) fn find(&self, catalog: &Catalog, id: &str) -> Option<SkillContract> {
        if let Some(found) = catalog.by_id(id).and_then(|skill| read(skill).ok()) {
            return Some(found);
        }
        let mut index = self.0.locked();
        if index.0 != catalog.generation {
            let skills = catalog.entries.iter().map(|entry| &entry.skill);
            let contracts =
                skills.filter(|skill| skill.root_dir.join(FILE).is_file()).filter_map(|s| read(s).ok());
            let mut ids = HashMap::new();
            for found in contracts {
                // The first root wins, as it does for skills.
                ids.entry(found.contract.id.clone()).or_insert_with(|| found.skill.id.clone());
            }
            *index = (catalog.generation, ids);
        }
        let skill = index.1.get(id)?;
        read(catalog.by_id(skill.as_str())?).ok()
    }
}

/// The sources of a plan.
pub(super) struct Sources<'a> {
    pub catalog: &'a Catalog,
    pub by_id: &'a ByContractId,
    pub capabilities: &'a Capabilities,
    /// The trust store; `None` for a plan that is only displayed.
    pub trust: Option<&'a Trust>,
}

impl Sources<'_> {
    /// Pins a contract with every contract it runs and every capability they call.
    ///
    /// # Errors
    /// Returns `untrusted` naming a skill it runs, `max_depth_exceeded`, or `invalid_configuration` naming everything
    /// missing.
    pub(super) fn pin(&self, read: &SkillContract, approval: Option<String>) -> Result<Plan, Error> {
        let untrusted: RefCell<Option<Error>> = RefCell::default();
        let skills = |id: &str| {
            let found = self.by_id.find(self.catalog, id)?;
            if let Some(Err(error)) = self.trust.map(|trust| trusted(trust, &found)) {
                untrusted.borrow_mut().get_or_insert(error);
            }
            Some(found.contract)
        };
        let capabilities = |id: &str| self.capabilities.capability(id).cloned();
        let pinned = Plan::pin(&read.contract, &skills, &capabilities, approval);
        if let Some(error) = untrusted.into_inner() {
            return Err(error);
        }
        pinned.map_err(|error| {
            let code = if error.too_deep() { Code::MaxDepthExceeded } else { Code::InvalidConfiguration };
            let reason = serde_json::to_value(&error).ok();
            Error { reason, ..Error::new(code, format!("{} cannot run: {error}", read.skill.id)) }
        })
    }
}

/// Checks that a skill's bundle may run, and that its contract is the one that was trusted.
///
/// # Errors
/// Returns `untrusted`, with what to do.
pub(super) fn trusted(trust: &Trust, read: &SkillContract) -> Result<(), Error> {
    let (skill, files) = (&read.skill, BTreeMap::from([(FILE.to_owned(), read.digest.to_string())]));
    // Named by its id: remote callers must not learn paths of this machine.
    let id = skill.id.as_str();
    let refusal = |folder: &Path| trust.refusal_of(folder, &files, id, id);
    // The folder that was read: a link to it can lead elsewhere by now.
    let real = Some(skill.real_folder()).filter(|real| *real != skill.root_dir);
    match refusal(&skill.root_dir).or_else(|| real.and_then(refusal)) {
        None => Ok(()),
        Some(why) => Err(Error::new(Code::Untrusted, why)),
    }
}
