//! Trust and policy in this process: what trusting a folder or skill would allow, pins, results of the policy, explanations.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::ranking::Ranking;
use super::runs;
use super::skills::Skills;
use super::usual_request;
use crate::known_contracts::KnownContracts;
use crate::policies::{self, PolicyExplanation, PolicyFile, PolicyRanking, PolicyReport};
use crate::trust::{self, TrustSubject};
use crate::work::run_blocking;
use crate::{Code, Error, SkillSummary, request_limits};
use skills_base::audit::{Entry, Recorder};
use skills_base::files::canonicalize;
use skills_config::quoted;
use skills_discovery::{Answer, Request};
use skills_registry::policy::Policy;
use skills_registry::trust::{TrustSnapshot, is_bundle};
use skills_registry::{Catalog, Pin, Trust, TrustState};
use skills_skill::{Skill, SkillId};

/// Folders of a registry with executable content.
const REGISTRY_FOLDERS: [&str; 3] = ["bindings", "capabilities", "services"];

pub struct TrustPins {
    pub(super) skills: Skills,
    pub(super) trust: Trust,
    pub(super) audit: Arc<Recorder>,
}

impl TrustPins {
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Returns what trusting a skill (by id, name or location) or a folder would allow, bundle by bundle.
    ///
    /// # Errors
    /// Returns `not_found` if there is nothing at that name or folder that could run.
    pub async fn digest(&self, requested: &str) -> Result<Vec<TrustSubject>, Error> {
        let places = self.places(requested)?;
        let (trust, config) = (self.trust.clone(), Arc::clone(&self.skills.config));
        run_blocking(move || {
            let survey = |(place, skill): &(PathBuf, Option<Arc<Skill>>)| {
                trust::survey(&trust, place, skill.as_deref(), Some(&config.services))
            };
            Ok(places.iter().map(survey).collect())
        })
        .await
    }

    fn places(&self, requested: &str) -> Result<Vec<(PathBuf, Option<Arc<Skill>>)>, Error> {
        let catalog = self.skills.registry.snapshot();
        let path = skills_config::expand(requested, &self.skills.config.cwd, &self.skills.config.dirs.home);
        if let Some(skill) = self.named_skill(requested, &path)? {
            return Ok(vec![(skill.root_dir.clone(), Some(skill))]);
        }
        let of_place = |place: &Path| catalog.by_location(place).map(Arc::clone);
        if is_bundle(&path) {
            return Ok(vec![(path.clone(), of_place(&path))]);
        }
        let real = canonicalize(&path).unwrap_or_else(|_| path.clone());
        let inside = |skill: &&Arc<Skill>| {
            skill.root_dir.starts_with(&path)
                || canonicalize(&skill.root_dir).is_ok_and(|folder| folder.starts_with(&real))
        };
        let mut places: Vec<(PathBuf, Option<Arc<Skill>>)> = catalog
            .all_skills()
            .filter(inside)
            .map(|skill| (skill.root_dir.clone(), Some(Arc::clone(skill))))
            .collect();
        if REGISTRY_FOLDERS.iter().any(|name| path.join(name).is_dir()) {
            places.insert(0, (path.clone(), None));
        }
        if places.is_empty() {
            let message = format!(
                "no skill of {} is loaded; specify a bundle folder, or add --root {}",
                path.display(),
                quoted(&path.to_string_lossy())
            );
            return Err(Error::new(Code::NotFound, message));
        }
        Ok(places)
    }

    /// Returns the skill that a text names, or `None` if it is the path of a folder. A folder of the working directory
    /// does not hide a skill of that name: the text is a path only if it looks like one, or if no skill has the name.
    fn named_skill(&self, requested: &str, path: &Path) -> Result<Option<Arc<Skill>>, Error> {
        let is_like_path = requested.contains(['/', '\\']) || requested.starts_with(['.', '~']);
        if is_like_path && path.is_dir() {
            return Ok(None);
        }
        match self.skills.resolve(requested) {
            Ok(skill) => Ok(Some(skill)),
            // The name of several skills is not that of a folder.
            Err(error) if error.code != Code::InvalidRequest && path.is_dir() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Pins everything that was shown, or nothing.
    ///
    /// # Errors
    /// Returns `untrusted` for what cannot be pinned, `skill_changed` for what is no longer as it was shown.
    pub async fn pin(&self, subjects: Vec<TrustSubject>) -> Result<Vec<TrustSubject>, Error> {
        let (trust, audit) = (self.trust.clone(), Arc::clone(&self.audit));
        let at = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        run_blocking(move || {
            let mut seen = Vec::new();
            for subject in &subjects {
                match (&subject.measured, &subject.obstacle) {
                    (Some(measured), None) => seen.push((subject.place.clone(), measured.clone())),
                    (_, why) => {
                        let why = why.as_deref().unwrap_or("cannot be read");
                        let message = format!("{} cannot be trusted: {why}", subject.place.display());
                        return Err(Error::new(Code::Untrusted, message));
                    }
                }
            }
            trust.pin(&seen, &at)?;
            for subject in &subjects {
                let digest = subject.digest.map(|digest| digest.to_string());
                let pinned = json!({ "place": subject.place, "skill": subject.skill_id, "digest": digest });
                audit.note(Entry::new("trust.pinned", Some(&runs::account()), pinned).durably());
            }
            let updated =
                |subject: TrustSubject| TrustSubject { state: trust.state(&subject.place), ..subject };
            Ok(subjects.into_iter().map(updated).collect())
        })
        .await
    }

    /// Revokes the pins of a skill, or of a folder and everything below it. Returns their folders.
    ///
    /// # Errors
    /// `not_found` if there is no pin, `forbidden` if the bundle is trusted without one, `invalid_request` for a name
    /// that several skills have.
    pub fn revoke(&self, requested: &str) -> Result<Vec<PathBuf>, Error> {
        let path = skills_config::expand(requested, &self.skills.config.cwd, &self.skills.config.dirs.home);
        let place = match self.named_skill(requested, &path) {
            Ok(Some(skill)) => skill.root_dir.clone(),
            Ok(None) => path,
            // A pin can outlive its folder.
            Err(error) if error.code != Code::InvalidRequest => path,
            Err(error) => return Err(error),
        };
        let gone = self.trust.revoke(&place)?;
        if gone.is_empty() {
            let state = self.trust.state(&place);
            let (code, why) = match state {
                TrustState::Shipped => {
                    (Code::Forbidden, "shipped with this program and always trusted".to_owned())
                }
                TrustState::Config { path } => (
                    Code::Forbidden,
                    format!("your config.yaml lists {} under `trust:`; remove it there", path.display()),
                ),
                _ => (Code::NotFound, "not trusted; `skills trust --list` lists trusted bundles".to_owned()),
            };
            return Err(Error::new(code, format!("{}: {why}", place.display())));
        }
        for place in &gone {
            let revoked = json!({ "place": place });
            self.audit.note(Entry::new("trust.revoked", Some(&runs::account()), revoked).durably());
        }
        Ok(gone)
    }

    /// Returns every pin with its current state.
    ///
    /// # Errors
    /// Returns `invalid_configuration` for a damaged file of pins.
    pub async fn list(&self) -> Result<Vec<(Pin, TrustState)>, Error> {
        let trust = self.trust.clone();
        run_blocking(move || {
            let state = |pin: Pin| {
                let state = match trust.state(&pin.path) {
                    TrustState::Untrusted => {
                        TrustState::Changed { files: vec!["the folder no longer exists".to_owned()] }
                    }
                    state => state,
                };
                (pin, state)
            };
            Ok(trust.list()?.into_iter().map(state).collect())
        })
        .await
    }
}

/// The policy and what it changes.
pub struct PolicyViews {
    pub(super) skills: Skills,
    pub(super) policy: Arc<PolicyFile>,
    pub(super) ranking: Arc<Ranking>,
}

impl PolicyViews {
    /// Explains the policy for one skill, or for all that a rule matches; with an intent, their ranks with and without
    /// it.
    ///
    /// # Errors
    /// Returns `invalid_configuration` for an invalid policy, `not_found`, and the errors of [`Client::discover`].
    ///
    /// [`Client::discover`]: crate::Client::discover
    pub async fn explain(&self, skill: Option<&str>, intent: Option<&str>) -> Result<PolicyReport, Error> {
        let policy = self.policy.current()?;
        let catalog = self.skills.registry.snapshot();
        let id = skill.map(|requested| self.skills.resolve(requested)).transpose()?;
        let answers = match intent {
            Some(intent) => Some(self.with_and_without(intent).await?),
            None => None,
        };
        let explain = |skill: &Arc<Skill>| PolicyExplanation {
            skill_id: skill.id.clone(),
            result: policies::policy_result(&policy, &catalog, skill),
            approvals: policies::approval_rules(&policy, &catalog, skill),
            ranking: answers.as_ref().map(|(with, without)| PolicyRanking {
                with: place(with, &skill.id),
                without: place(without, &skill.id),
            }),
        };
        let skills = if let Some(skill) = &id {
            vec![explain(skill)]
        } else {
            let all = catalog.all_skills().map(explain);
            let touched = |explanation: &PolicyExplanation| {
                let has_rules = !(explanation.result.rules.is_empty() && explanation.approvals.is_empty());
                let matters = has_rules || !explanation.result.allowed;
                let ranked =
                    explanation.ranking.is_none_or(|ranking| ranking.with.or(ranking.without).is_some());
                matters && ranked
            };
            all.filter(touched).collect()
        };
        Ok(PolicyReport {
            file: self.policy.path().map(Path::to_path_buf),
            exists: self.policy.path().is_some_and(Path::exists),
            skills,
            rules: policies::reach(&policy, &catalog),
            approvals: policy.approvals.len(),
        })
    }

    async fn with_and_without(&self, intent: &str) -> Result<(Answer, Answer), Error> {
        let intent = request_limits::intent(intent)?;
        let limit = self.skills.snapshot().entries.len().max(1);
        let request = Request { intent, limit, ..usual_request(&self.skills.config) };
        let with = self.ranking.ranked(request.clone()).await?;
        let without = self.ranking.ranked_by(request, Arc::default()).await?;
        Ok((with, without))
    }
}

/// Facts about skills beyond their records: the current trust and policy.
pub(super) struct Facts {
    pub trust: TrustSnapshot,
    pub contracts: Arc<KnownContracts>,
    pub policy: Arc<Policy>,
}

impl Facts {
    /// Fills in trust, contract and approval. Reads from disk.
    pub fn add(&self, catalog: &Catalog, summary: &mut SkillSummary) {
        let Some(skill) = catalog.by_id(summary.skill_id.as_str()) else { return };
        summary.trusted = self.trust.state(&skill.root_dir).summary();
        summary.has_contract = self.contracts.has(&skill.root_dir);
        let result = policies::policy_result(&self.policy, catalog, skill);
        summary.needs_approval = result.require_approval.is_some();
    }
}

fn place(answer: &Answer, skill: &SkillId) -> Option<(usize, f64)> {
    let at = answer.results.iter().position(|hit| hit.skill_id == *skill)?;
    Some((at + 1, answer.results[at].score))
}
