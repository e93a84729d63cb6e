//! The contracts of the current skills: read from disk on demand, pinned when a run is launched.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
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
pub(super) struct ByContractId(Mutex<(u64, ContractIds)>);

#[derive(Default)]
struct ContractIds {
    /// Skills that have their id in the catalog.
    all: HashMap<String, Vec<SkillId>>,
    /// Skills of the user's own roots, as if there were no others.
    own: HashMap<String, Vec<SkillId>>,
}

impl ContractIds {
    /// Reads the contracts of a catalog.
    fn of(catalog: &Catalog) -> Self {
        let mut ids = Self::default();
        let mut seen = HashSet::new();
        for (skill, root, id) in catalog.candidates() {
            let is_winner = skill.id == *id;
            let is_own = catalog.is_own_root(root) && seen.insert(id);
            if !(is_winner || is_own) || !skill.root_dir.join(FILE).is_file() {
                continue;
            }
            let Ok(found) = read(skill) else { continue };
            for (counts, index) in [(is_winner, &mut ids.all), (is_own, &mut ids.own)] {
                if counts {
                    index.entry(found.contract.id.clone()).or_default().push(skill.id.clone());
                }
            }
        }
        ids
    }
}

impl ByContractId {
    /// Returns the contract that `id` names in a run: that of the skill with this id, else the one with this id of its
    /// own. In a run of one of the user's own skills (`of_own`), the user's own skills come first: a project cannot
    /// replace or hide one of them.
    ///
    /// # Errors
    /// Returns `invalid_configuration` with the candidates if several contracts have the id.
    pub(super) fn find(
        &self,
        catalog: &Catalog,
        id: &str,
        of_own: bool,
    ) -> Result<Option<SkillContract>, Error> {
        if of_own {
            if let Some(skill) = catalog.own_skill(id) {
                return Ok(read(skill).ok());
            }
            if let Some(found) = self.by_own_id(catalog, id, |ids| &ids.own)? {
                return Ok(Some(found));
            }
        }
        // A skill without a contract is not replaced by a contract of another skill.
        if let Some(skill) = catalog.by_id(id) {
            return Ok(read(skill).ok());
        }
        self.by_own_id(catalog, id, |ids| &ids.all)
    }

    /// Returns the contract with this id of its own, from one of the indexes.
    fn by_own_id(
        &self,
        catalog: &Catalog,
        id: &str,
        index: fn(&ContractIds) -> &HashMap<String, Vec<SkillId>>,
    ) -> Result<Option<SkillContract>, Error> {
        let mut contracts = self.0.locked();
        if contracts.0 != catalog.generation {
            *contracts = (catalog.generation, ContractIds::of(catalog));
        }
        match index(&contracts.1).get(id).map(Vec::as_slice) {
            None | Some([]) => Ok(None),
            Some([skill]) => Ok(catalog.by_id(skill.as_str()).and_then(|skill| read(skill).ok())),
            Some(several) => {
                let named: Vec<&str> = several.iter().map(SkillId::as_str).collect();
                let message = format!(
                    "the contracts of {} skills have the id {id}: {}; name the skill by its own id",
                    named.len(),
                    named.join(", ")
                );
                Err(Error::new(Code::InvalidConfiguration, message))
            }
        }
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
    /// missing or ambiguous.
    pub(super) fn pin(&self, read: &SkillContract, approval: Option<String>) -> Result<Plan, Error> {
        let refused: RefCell<Option<Error>> = RefCell::default();
        let of_own = self.catalog.is_own(&read.skill);
        let refuse = |error: Error| {
            refused.borrow_mut().get_or_insert(error);
        };
        let skills = |id: &str| {
            let found = self.by_id.find(self.catalog, id, of_own).map_err(refuse).ok()??;
            if let Some(Err(error)) = self.trust.map(|trust| trusted(trust, &found)) {
                refuse(error);
            }
            Some(found.contract)
        };
        let capabilities = |id: &str| self.capabilities.capability(id).cloned();
        let pinned = Plan::pin(&read.contract, &skills, &capabilities, approval);
        if let Some(error) = refused.into_inner() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use skills_registry::{Entry, Root, Shadowed};

    const PROJECT: usize = 0;
    const OWN: usize = 1;

    /// Returns a catalog of skills by root and id, with contracts of these ids.
    fn catalog(home: &Path, skills: &[(usize, &str, Option<&str>)]) -> Catalog {
        let mut catalog = testing::catalog(&[]);
        let own = catalog.roots.remove(0);
        catalog.roots = vec![Root { of_project: true, ..own.clone() }, own];
        for (root, id, contract) in skills {
            let folder = home.join(root.to_string()).join(id);
            std::fs::create_dir_all(&folder).unwrap();
            if let Some(contract) = contract {
                let text =
                    format!("id: {contract}\nversion: 1.0.0\nsteps:\n  - {{id: go, uses: text.count}}\n");
                std::fs::write(folder.join(FILE), text).unwrap();
            }
            let location = folder.join("SKILL.md");
            let skill = Skill { root_dir: folder, location, ..testing::skill(id, id) };
            match catalog.entries.iter().find(|entry| entry.skill.id.as_str() == *id) {
                None => catalog.entries.push(Entry { skill: Arc::new(skill), root: *root }),
                Some(winner) => {
                    let winner = winner.skill.location.clone();
                    let lost = skill.id.clone();
                    let skill = Arc::new(Skill { id: SkillId::new(format!("{id}@3f9a01c2")), ..skill });
                    catalog.shadowed.push(Shadowed { skill, root: *root, lost, winner, identical: false });
                }
            }
        }
        catalog
    }

    #[test]
    fn names_in_contracts_of_the_user_are_not_replaced() {
        type Case<'a> = (&'a [(usize, &'a str, Option<&'a str>)], Option<&'a str>, Option<&'a str>);
        let cases: [Case<'_>; 5] = [
            // A skill of a project without a contract hides neither the user's skill nor its contract.
            (
                &[
                    (PROJECT, "deploy", None),
                    (OWN, "deploy", Some("deploy")),
                    (OWN, "deploy-2024", Some("deploy")),
                ],
                Some("1/deploy"),
                None,
            ),
            (&[(PROJECT, "deploy", None), (OWN, "deploy-2024", Some("deploy"))], Some("1/deploy-2024"), None),
            (
                &[(PROJECT, "ship", Some("deploy")), (OWN, "go", Some("deploy"))],
                Some("1/go"),
                Some("ambiguous"),
            ),
            // A skill without a contract is not replaced by another one.
            (&[(OWN, "deploy", None), (OWN, "deploy-2024", Some("deploy"))], None, None),
            (&[(PROJECT, "deploy", Some("deploy"))], Some("0/deploy"), Some("0/deploy")),
        ];
        for (skills, in_own, in_project) in cases {
            let home = tempfile::tempdir().unwrap();
            let catalog = catalog(home.path(), skills);
            for (of_own, expected) in [(true, in_own), (false, in_project)] {
                let found = ByContractId::default().find(&catalog, "deploy", of_own);
                let found = match found {
                    Ok(found) => found.map(|found| found.skill.root_dir.clone()),
                    Err(_) => Some(home.path().join("ambiguous")),
                };
                assert_eq!(found, expected.map(|path| home.path().join(path)), "{skills:?} {of_own}");
            }
        }
    }

    #[test]
    fn ambiguous_contract_id_lists_the_skills() {
        let home = tempfile::tempdir().unwrap();
        let catalog = catalog(home.path(), &[(OWN, "a", Some("x.y")), (OWN, "b", Some("x.y"))]);
        let error = ByContractId::default().find(&catalog, "x.y", true).err().unwrap();
        assert_eq!(error.code, Code::InvalidConfiguration);
        assert!(error.message.contains("a, b"), "{error}");
    }
}
