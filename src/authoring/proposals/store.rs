//! The folder of proposals: one Markdown file each, and the versions of the skills that they changed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::diff::{self, DiffError};
use super::document::{Facts, Proposal, ProposalDecision, ProposalHead, ProposalState};
use crate::write_back::{WriteError, replace_real_file, replaced};
use serde_json::json;
use skills_base::audit::{Entry, Recorder};
use skills_base::files::{self, FileIdentity, Folder, OpenError};
use skills_base::private_files;
use skills_discovery::GoldenChange;
use skills_skill::{Digest, MAX_BYTES, SkillId};

/// Maximum size of a proposal's file in bytes: two texts, a diff of a complete file, and the effect on many queries.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Maximum number of waiting proposals.
pub const MAX_WAITING: usize = 1000;
/// Maximum number of waiting proposals of one principal, so that none can prevent the others from proposing.
const MAX_WAITING_EACH: usize = 250;
/// Maximum number of bytes of a skill's id in a file name.
const MAX_ID_BYTES: usize = 120;
/// The lock file in the folder of proposals.
const LOCK: &str = ".lock";
/// The folder of versions, below that of the proposals.
const VERSIONS: &str = "versions";

/// Why an operation on a proposal failed.
#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    /// The proposal does not exist.
    #[error("proposal `{id}` not found")]
    NotFound {
        id: String,
        /// All existing ids.
        known: Vec<String>,
    },
    /// The file of a proposal is invalid.
    #[error("{}: not a proposal: {why}", file.display())]
    Damaged {
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The skill's file is not the one that the proposal was made for.
    #[error("{} has changed since the proposal was made; propose the change again", .0.display())]
    Changed(PathBuf),
    /// The skill's file is not what the approval wrote.
    #[error("{} has changed since the proposal was applied; nothing was rolled back", .0.display())]
    ChangedSince(PathBuf),
    /// The proposal's file is not the one that was reviewed.
    #[error("proposal {0} has changed since it was read; review it again")]
    Revised(String),
    /// The proposal states a file other than that of the skill.
    #[error(
        "proposal {id} names {}, but the file of {} is {}; nothing was written. Propose the change again",
        stated.display(),
        location.display(),
        real.display()
    )]
    OtherFile {
        id: String,
        stated: PathBuf,
        /// The skill's file.
        location: PathBuf,
        /// The skill's file without links.
        real: PathBuf,
    },
    /// The proposal was decided before.
    #[error("proposal {} was already {} by {}", .0.proposal_id, past(.0.state), decider(.0))]
    AlreadyDecided(Box<Facts>),
    /// Only an applied proposal can be rolled back.
    #[error("proposal {} is not applied: it is {}", .0.proposal_id, past(.0.state))]
    NotApplied(Box<Facts>),
    /// A required version is missing or damaged.
    #[error("the previous version of {} is missing from {}", location.display(), folder.display())]
    NoVersion {
        /// The skill's file.
        location: PathBuf,
        /// The folder in which it should be.
        folder: PathBuf,
    },
    /// Too many proposals are waiting.
    #[error("{0} proposals are waiting; decide some of them first")]
    TooMany(usize),
    /// Too many proposals of one principal are waiting.
    #[error(
        "{waiting} proposals of {by} are waiting; the maximum is {MAX_WAITING_EACH}. Decide some of them first"
    )]
    TooManyOwn {
        /// Who proposed them.
        by: String,
        /// Their number.
        waiting: usize,
    },
    /// The diff cannot be applied.
    #[error(transparent)]
    Diff(#[from] DiffError),
    /// The skill's file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file system returned an error.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

fn past(state: ProposalState) -> &'static str {
    match state {
        ProposalState::Waiting => "waiting for approval",
        ProposalState::Approved => "approved",
        ProposalState::Denied => "denied",
        ProposalState::RolledBack => "rolled back",
    }
}

fn decider(facts: &Facts) -> &str {
    let last = facts.rollback.as_ref().or(facts.decision.as_ref());
    last.map_or("another user", |decision| decision.by.as_str())
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> ProposalError + use<'_> {
    move |error| ProposalError::Io { path: path.to_owned(), error }
}

/// The data of a new proposal.
#[derive(Debug, Clone, PartialEq)]
pub struct NewProposal {
    pub skill_id: SkillId,
    /// The skill's file.
    pub location: PathBuf,
    /// Its real path, as it was when the skill was read.
    pub real: PathBuf,
    /// The current content of the file.
    pub base: String,
    /// The content with the change.
    pub result: String,
    /// Why the change is proposed.
    pub justification: String,
    /// Supporting evidence.
    pub evidence: Option<String>,
    /// Who proposes it.
    pub proposed_by: String,
    /// Time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    pub effect: Option<GoldenChange>,
}

/// The proposals of a folder, newest first, and its files that are not valid proposals.
#[derive(Debug, Default)]
pub struct StoredProposals {
    /// The beginnings of the proposals.
    pub proposals: Vec<ProposalHead>,
    /// Errors of the invalid files.
    pub damaged: Vec<ProposalError>,
}

/// A folder of proposals, whose changes are recorded in the audit log. It is created with the first proposal.
#[derive(Debug, Clone)]
pub struct ProposalStore {
    folder: PathBuf,
    begun: BegunChanges,
    audit: Arc<Recorder>,
}

/// A new proposal or a decision that is not yet in the audit log. It is kept in the user's own folder, because the
/// folder of proposals can come with a repository, which could state a decision by anyone.
#[derive(Debug, Serialize, Deserialize)]
struct BegunChange {
    /// The proposal's file; absent in an approval by an earlier version.
    #[serde(default)]
    file: Option<PathBuf>,
    #[serde(default = "approved")]
    state: ProposalState,
    base_digest: Digest,
    result_digest: Digest,
    /// The file that an approval or rollback writes.
    real: PathBuf,
    /// The prepared file of an approval, which takes the place of that file.
    #[serde(default)]
    prepared: Option<FileIdentity>,
    /// Who decided, or proposed.
    decision: ProposalDecision,
}

fn approved() -> ProposalState {
    ProposalState::Approved
}

/// What the files show about an approval that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteState {
    Yes,
    No,
    Unknown,
}

impl BegunChange {
    /// Returns the file in which the new content is prepared: as long as it exists, nothing was written.
    fn prepared_file(&self) -> PathBuf {
        self.real.with_file_name(new_file(self.result_digest))
    }

    /// Returns whether the file was written, also if it was changed again since.
    fn write_state(&self) -> WriteState {
        if self.state != ProposalState::Approved {
            return WriteState::No;
        }
        let present = files::read_file(&self.real, MAX_BYTES).ok().map(|bytes| Digest::of(&bytes));
        if present == Some(self.result_digest) {
            return WriteState::Yes;
        }
        if present == Some(self.base_digest) || self.prepared_file().symlink_metadata().is_ok() {
            return WriteState::No;
        }
        // The prepared file can also have been removed, for example by `git clean`.
        let is_prepared = |prepared| FileIdentity::of(&self.real).is_ok_and(|found| found == Some(prepared));
        if self.prepared.is_some_and(is_prepared) { WriteState::Yes } else { WriteState::Unknown }
    }

    /// Returns whether this is a rollback that was written, and the proposal does not state it.
    fn is_unrecorded_rollback(&self, facts: &Facts) -> bool {
        let present = || files::read_file(&self.real, MAX_BYTES).ok().map(|bytes| Digest::of(&bytes));
        self.state == ProposalState::RolledBack
            && facts.state == ProposalState::Approved
            && self.result_digest == facts.result_digest
            && self.base_digest == facts.base_digest
            && present() == Some(self.base_digest)
    }

    /// Returns whether a proposal has got the state of this change.
    fn is_recorded_in(&self, facts: &Facts) -> bool {
        match self.state {
            ProposalState::Waiting => true,
            ProposalState::Approved => {
                facts.state != ProposalState::Denied && facts.decision.as_ref() == Some(&self.decision)
            }
            ProposalState::Denied => {
                facts.state == ProposalState::Denied && facts.decision.as_ref() == Some(&self.decision)
            }
            ProposalState::RolledBack => facts.rollback.as_ref() == Some(&self.decision),
        }
    }

    /// Returns the entry of the audit log.
    fn entry(&self, facts: &Facts) -> Entry {
        let kind = match self.state {
            ProposalState::Waiting => "proposal.created",
            ProposalState::Approved => "proposal.approved",
            ProposalState::Denied => "proposal.denied",
            ProposalState::RolledBack => "proposal.rolled_back",
        };
        let about = json!({
            "proposal": facts.proposal_id,
            "skill": facts.skill_id,
            "location": facts.location,
            "base_digest": facts.base_digest,
            "result_digest": facts.result_digest,
        });
        let detail = json!({ "notes": self.decision.notes });
        Entry::new(kind, Some(&self.decision.by), about).with_detail(detail).durably()
    }
}

/// The fields of an entry that identify a change: a proposal gets each state once.
const CHANGE_KEY: [&str; 3] = ["proposal", "location", "result_digest"];

/// The folder of the changes that were started and are not in the audit log yet.
#[derive(Debug, Clone)]
struct BegunChanges(PathBuf);

impl BegunChanges {
    /// Returns the change of a proposal that was started, if it is about this content.
    fn of(&self, folder: &Folder, facts: &Facts) -> Option<BegunChange> {
        let begun = read_begun(&self.file(folder, &facts.proposal_id))?;
        let is_same = (begun.base_digest, begun.result_digest) == (facts.base_digest, facts.result_digest);
        is_same.then_some(begun)
    }

    /// Returns the file about the change of a proposal that is in progress.
    fn file(&self, folder: &Folder, id: &str) -> PathBuf {
        let name = format!("{}\0{id}", folder.path().to_string_lossy());
        self.0.join(format!("{}.json", Digest::of(name.as_bytes())))
    }

    /// Records a change before it is made: after a crash, the files show whether it was.
    fn begin(
        &self,
        folder: &Folder,
        facts: &Facts,
        state: ProposalState,
        decision: &ProposalDecision,
        written: Option<(&Path, Option<FileIdentity>)>,
    ) -> Result<BegunChange, ProposalError> {
        let file = self.file(folder, &facts.proposal_id);
        let (real, prepared) = written.unwrap_or((&facts.location, None));
        let begun = BegunChange {
            file: Some(folder.path().join(format!("{}.md", facts.proposal_id))),
            state,
            base_digest: facts.base_digest,
            result_digest: facts.result_digest,
            real: real.to_owned(),
            prepared,
            decision: decision.clone(),
        };
        let text = serde_json::to_vec(&begun).map_err(|error| failed(&file)(error.into()))?;
        private_files::replace(&file, &text).map_err(failed(&file))?;
        Ok(begun)
    }

    /// Ends a change that was started.
    fn end(&self, folder: &Folder, id: &str) {
        let file = self.file(folder, id);
        if let Err(error) = std::fs::remove_file(&file)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove {}: {error}", file.display());
        }
    }

    /// Returns the files of all changes; `None` if the folder does not exist.
    fn files(&self) -> Result<Option<Vec<PathBuf>>, ProposalError> {
        match std::fs::read_dir(&self.0) {
            Ok(entries) => Ok(Some(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&self.0)(error)),
        }
    }
}

/// The folder of proposals, while every other process is locked out.
struct LockedFolder {
    folder: Folder,
    _lock: File,
}

impl ProposalStore {
    /// Returns the store in a folder; `begun` is a folder of the user with the changes in progress.
    pub fn new(folder: PathBuf, begun: PathBuf, audit: Arc<Recorder>) -> Self {
        Self { folder, begun: BegunChanges(begun), audit }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Locks out every other process until the result is dropped. Nothing in the folder that is a link is followed.
    fn lock(&self) -> Result<LockedFolder, ProposalError> {
        let failed = failed(&self.folder);
        let open = || {
            private_files::create_folder(&self.folder)?;
            let name = self.folder.file_name().unwrap_or_default();
            let parent = files::canonicalize(self.folder.parent().unwrap_or(Path::new("/")))?;
            let folder = Folder::open(&parent.join(name))?;
            let lock = folder.open_lock(LOCK)?;
            lock.lock()?;
            Ok(LockedFolder { folder, _lock: lock })
        };
        open().map_err(|error: io::Error| {
            if is_link(&self.folder) || is_link(&self.folder.join(LOCK)) {
                let why = "the folder of proposals, or the file `.lock` in it, is a link; remove the link";
                return failed(io::Error::other(why));
            }
            failed(error)
        })
    }

    /// Opens the folder itself: a repository could make it a link to a folder whose files are none of its readers'
    /// business.
    fn open(&self) -> Result<Option<Folder>, ProposalError> {
        let name = self.folder.file_name().unwrap_or_default();
        let parent = files::canonicalize(self.folder.parent().unwrap_or(Path::new("/")));
        match parent.and_then(|parent| Folder::open(&parent.join(name))) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(_) if is_link(&self.folder) => {
                let why = "the folder of proposals is a link; remove the link";
                Err(failed(&self.folder)(io::Error::other(why)))
            }
            Err(error) => Err(failed(&self.folder)(error)),
        }
    }

    /// Returns all proposals, newest first.
    pub fn list(&self) -> Result<StoredProposals, ProposalError> {
        let mut listed = StoredProposals::default();
        let Some(folder) = self.open()? else { return Ok(listed) };
        let entries = folder.entries("").map_err(|refusal| failed(&self.folder)(refusal.into()))?;
        for name in entries.into_iter().map(|entry| entry.name) {
            let Some(id) = name.strip_suffix(".md").filter(|id| !id.starts_with('.')) else { continue };
            match self.read_head(&folder, id) {
                Ok(proposal) => listed.proposals.push(proposal),
                Err(error) => listed.damaged.push(error),
            }
        }
        listed.proposals.sort_by(|a, b| {
            let key = |proposal: &ProposalHead| proposal.facts.proposed_at_ms;
            key(b).cmp(&key(a)).then_with(|| b.facts.proposal_id.cmp(&a.facts.proposal_id))
        });
        Ok(listed)
    }

    fn damaged(&self, id: &str, why: String) -> ProposalError {
        ProposalError::Damaged { file: self.folder.join(format!("{id}.md")), why }
    }

    fn read(&self, folder: &Folder, id: &str) -> Result<Proposal, ProposalError> {
        let read = || {
            let text = folder.read_text(&format!("{id}.md"), MAX_FILE_BYTES).map_err(|e| e.to_string())?;
            let proposal = Proposal::of_markdown(&text)?;
            Ok(Proposal { facts: self.checked(folder, proposal.facts, id)?, ..proposal })
        };
        read().map_err(|why| self.damaged(id, why))
    }

    fn read_head(&self, folder: &Folder, id: &str) -> Result<ProposalHead, ProposalError> {
        let read = || {
            let (file, _) = folder.open_file(&format!("{id}.md")).map_err(|e| e.to_string())?;
            let head = ProposalHead::read(file, MAX_FILE_BYTES)?;
            Ok(ProposalHead { facts: self.checked(folder, head.facts, id)?, ..head })
        };
        read().map_err(|why| self.damaged(id, why))
    }

    /// Returns the proposal with this id.
    ///
    /// # Errors
    /// Returns `NotFound`, or `Damaged` if its file is invalid.
    pub fn find(&self, id: &str) -> Result<Proposal, ProposalError> {
        let not_found = |ids| ProposalError::NotFound { id: id.to_owned(), known: ids };
        let Some(folder) = self.open()? else { return Err(not_found(Vec::new())) };
        let entries = folder.entries("").map_err(|refusal| failed(&self.folder)(refusal.into()))?;
        let ids: Vec<String> = entries
            .into_iter()
            .filter_map(|entry| Some(entry.name.strip_suffix(".md")?.to_owned()))
            .collect();
        // Only names in the folder are opened: an id is never used as a path.
        if ids.iter().any(|name| name == id) { self.read(&folder, id) } else { Err(not_found(ids)) }
    }

    /// Checks the name and the facts of a file, and completes an approval whose end was not recorded: the files show
    /// whether it was written. Such an approval keeps `applying`, until it is recorded; so does a waiting proposal for
    /// which they do not show it.
    fn checked(&self, folder: &Folder, mut facts: Facts, id: &str) -> Result<Facts, String> {
        if facts.proposal_id != id {
            return Err(format!("its id is {}", facts.proposal_id));
        }
        if !is_made_for(id, &facts.skill_id) {
            let stem = id_stem(&facts.skill_id);
            return Err(format!("its name is not {stem}-<timestamp>.md"));
        }
        if !facts.location.is_absolute() {
            return Err("its location is not an absolute path".to_owned());
        }
        facts.applying = None;
        if facts.state != ProposalState::Waiting {
            return Ok(facts);
        }
        let Some(begun) = self.begun.of(folder, &facts) else { return Ok(facts) };
        match begun.write_state() {
            WriteState::Yes => {
                facts.state = ProposalState::Approved;
                facts.decision = Some(begun.decision.clone());
                facts.applying = Some(begun.decision);
            }
            WriteState::Unknown => facts.applying = Some(begun.decision),
            WriteState::No => {}
        }
        Ok(facts)
    }

    /// Writes a proposal with a change that was started, and records the change in the audit log. The folder stays
    /// locked until then, so that no other process records it too.
    fn write_change(
        &self,
        locked: &LockedFolder,
        proposal: &Proposal,
        begun: &BegunChange,
    ) -> Result<(), ProposalError> {
        let facts = &proposal.facts;
        if let Err(error) = self.write(locked, proposal) {
            // An approval or rollback is written already: the files show it.
            if matches!(begun.state, ProposalState::Waiting | ProposalState::Denied) {
                self.begun.end(&locked.folder, &facts.proposal_id);
            }
            return Err(error);
        }
        let is_recorded = self.audit.record_blocking(begun.entry(facts));
        if is_recorded {
            self.begun.end(&locked.folder, &facts.proposal_id);
        }
        Ok(())
    }

    fn write(&self, locked: &LockedFolder, proposal: &Proposal) -> Result<(), ProposalError> {
        let name = format!("{}.md", proposal.facts.proposal_id);
        let written = proposal
            .to_markdown()
            .map_err(io::Error::other)
            .and_then(|text| locked.folder.write(&name, text.as_bytes()));
        written.map_err(failed(&self.folder.join(name)))
    }

    /// Stores a proposal. Its diff is the difference of the two texts.
    ///
    /// # Errors
    /// Returns `TooMany`, or an error if it cannot be written.
    pub fn create(&self, new: NewProposal) -> Result<Proposal, ProposalError> {
        // Before the lock, for which all other changes wait.
        let diff = diff::between(&new.base, &new.result)?;
        // The stored diff must produce exactly the text that was measured and shown.
        if diff::apply(&new.base, &diff)? != new.result {
            return Err(DiffError::Mismatch(1).into());
        }
        let locked = self.lock()?;
        let mut waiting = self.list()?.proposals;
        waiting.retain(|one| one.facts.state == ProposalState::Waiting);
        if waiting.len() >= MAX_WAITING {
            return Err(ProposalError::TooMany(waiting.len()));
        }
        let own = waiting.iter().filter(|one| one.facts.proposed_by == new.proposed_by).count();
        if own >= MAX_WAITING_EACH {
            return Err(ProposalError::TooManyOwn { by: new.proposed_by, waiting: own });
        }
        let facts = Facts {
            proposal_id: self.free_id(&new.skill_id, new.at_ms)?,
            skill_id: new.skill_id,
            location: new.location,
            real: Some(new.real),
            base_digest: Digest::of(new.base.as_bytes()),
            result_digest: Digest::of(new.result.as_bytes()),
            proposed_by: new.proposed_by,
            proposed_at_ms: new.at_ms,
            state: ProposalState::Waiting,
            applying: None,
            decision: None,
            rollback: None,
            effect: new.effect,
        };
        let proposal = Proposal {
            facts,
            justification: new.justification.trim().to_owned(),
            evidence: new.evidence.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
            diff,
        };
        let facts = &proposal.facts;
        let proposed =
            ProposalDecision { by: facts.proposed_by.clone(), at_ms: facts.proposed_at_ms, notes: None };
        let begun = self.begun.begin(&locked.folder, facts, ProposalState::Waiting, &proposed, None)?;
        self.write_change(&locked, &proposal, &begun)?;
        Ok(proposal)
    }

    /// Returns an unused id of the form `<skill_id>-<timestamp>`.
    fn free_id(&self, skill: &SkillId, at_ms: i64) -> Result<String, ProposalError> {
        let stem = id_stem(skill);
        for later in 0..i64::try_from(MAX_WAITING).unwrap_or(i64::MAX) {
            let at = jiff::Timestamp::from_millisecond(at_ms.saturating_add(later)).unwrap_or_default();
            let id = format!("{stem}-{}", at.strftime("%Y%m%dT%H%M%S%3fZ"));
            let file = self.folder.join(format!("{id}.md"));
            if !file.try_exists().map_err(failed(&file))? {
                return Ok(id);
            }
        }
        Err(ProposalError::TooMany(MAX_WAITING))
    }

    fn keep_version(&self, locked: &LockedFolder, content: &[u8]) -> Result<(), ProposalError> {
        let keep = || {
            let versions = locked.folder.create_folder(VERSIONS)?;
            let name = version_name(Digest::of(content));
            // A file of this name can come with a repository, and have any content.
            match versions.read(&name, MAX_BYTES) {
                Ok(present) if present == content => Ok(()),
                _ => versions.write(&name, content),
            }
        };
        keep().map_err(failed(&self.folder.join(VERSIONS)))
    }

    /// Returns a stored version.
    ///
    /// # Errors
    /// Returns `NoVersion` if it is missing or damaged.
    pub fn version(&self, facts: &Facts, digest: Digest) -> Result<String, ProposalError> {
        let path = format!("{VERSIONS}/{}", version_name(digest));
        let content = self.open()?.and_then(|folder| folder.read_text(&path, MAX_BYTES).ok());
        content.filter(|content| Digest::of(content.as_bytes()) == digest).ok_or_else(|| {
            ProposalError::NoVersion { location: facts.location.clone(), folder: self.folder.join(VERSIONS) }
        })
    }

    /// Approves the proposal that was reviewed, and writes the skill's file at `real`, its path without links. `None`
    /// if nothing can be written in the state that was reviewed. Repeating the approval returns the first one, with
    /// `true`.
    ///
    /// # Errors
    /// Returns `AlreadyDecided` for a denied proposal, `Revised` or `OtherFile` if it does not state what was reviewed
    /// for this file, and `Changed` if the file is not the one that it was made for.
    pub fn approve(
        &self,
        reviewed: &Proposal,
        real: Option<&Path>,
        by: ProposalDecision,
    ) -> Result<(Proposal, bool), ProposalError> {
        let locked = self.lock()?;
        let mut proposal = self.find(&reviewed.facts.proposal_id)?;
        match proposal.facts.state {
            ProposalState::Waiting => {}
            ProposalState::Approved => return Ok((proposal, true)),
            _ => return Err(ProposalError::AlreadyDecided(Box::new(proposal.facts))),
        }
        let location = proposal.facts.location.clone();
        let real = file_of(&proposal, reviewed, real)?;
        let base = read(real, &location, ProposalError::Changed)?;
        if Digest::of(base.as_bytes()) != proposal.facts.base_digest {
            return Err(ProposalError::Changed(location));
        }
        let result = diff::apply(&base, &proposal.diff)?;
        if Digest::of(result.as_bytes()) != proposal.facts.result_digest {
            return Err(DiffError::Mismatch(1).into());
        }
        self.keep_version(&locked, base.as_bytes())?;
        self.keep_version(&locked, result.as_bytes())?;
        let (new, (read, write)) =
            (new_file(proposal.facts.result_digest), (base.as_bytes(), result.as_bytes()));
        let mut begun = None;
        let written = files::replace_file_after(real, read, write, Some(&new), || {
            let prepared = (real, FileIdentity::of(&real.with_file_name(&new))?);
            let (facts, state) = (&proposal.facts, ProposalState::Approved);
            let change = self.begun.begin(&locked.folder, facts, state, &by, Some(prepared));
            begun = Some(change.map_err(io::Error::other)?);
            fail::fail_point!("proposal.applying");
            Ok(())
        });
        if let Err(error) = replaced(real, written) {
            self.begun.end(&locked.folder, &proposal.facts.proposal_id);
            return Err(error.into());
        }
        fail::fail_point!("proposal.applied");
        proposal.facts.applying = None;
        proposal.facts.decision = Some(by);
        proposal.facts.state = ProposalState::Approved;
        if let Some(begun) = &begun {
            self.write_change(&locked, &proposal, begun)?;
        }
        Ok((proposal, false))
    }

    /// Completes changes that were interrupted: records an approval or rollback whose write is not recorded, before a
    /// later change of the file hides it, and each change that is missing in the audit log.
    pub fn record_interrupted(&self) -> Result<(), ProposalError> {
        let Some(files) = self.begun.files()? else { return Ok(()) };
        let Some(folder) = self.open()?.filter(|_| !files.is_empty()) else { return Ok(()) };
        let entries = folder.entries("").map_err(|refusal| failed(&self.folder)(refusal.into()))?;
        let ids = entries.iter().filter_map(|entry| entry.name.strip_suffix(".md"));
        let own: Vec<String> =
            ids.filter(|id| files.contains(&self.begun.file(&folder, id))).map(str::to_owned).collect();
        let is_orphan = |file: &PathBuf| {
            let proposal = read_begun(file).and_then(|begun| begun.file);
            proposal.is_some_and(|proposal| proposal.parent() == Some(folder.path()) && !proposal.exists())
        };
        if own.is_empty() && !files.iter().any(is_orphan) {
            return Ok(());
        }
        let locked = self.lock()?;
        for id in own {
            let Some(begun) = read_begun(&self.begun.file(&locked.folder, &id)) else { continue };
            let Ok(mut proposal) = self.find(&id) else { continue };
            if begun.is_unrecorded_rollback(&proposal.facts) {
                proposal.facts.applying = None;
                proposal.facts.rollback = Some(begun.decision.clone());
                proposal.facts.state = ProposalState::RolledBack;
                self.write(&locked, &proposal)?;
            }
            if begun.is_recorded_in(&proposal.facts) {
                if proposal.facts.applying.take().is_some() {
                    self.write(&locked, &proposal)?;
                }
                if self.audit.record_missing(begun.entry(&proposal.facts), &CHANGE_KEY) {
                    self.begun.end(&locked.folder, &id);
                }
            } else if begun.state != ProposalState::Approved || proposal.facts.state != ProposalState::Waiting
            {
                // It was not made, or another decision took its place.
                self.begun.end(&locked.folder, &id);
            }
        }
        for file in files.iter().filter(|file| is_orphan(file)) {
            std::fs::remove_file(file).map_err(failed(file))?;
        }
        Ok(())
    }

    /// Denies a proposal. Repeating the denial returns the first one, with `true`.
    ///
    /// # Errors
    /// Returns `AlreadyDecided` for an approved proposal.
    pub fn deny(&self, id: &str, by: ProposalDecision) -> Result<(Proposal, bool), ProposalError> {
        let locked = self.lock()?;
        let mut proposal = self.find(id)?;
        match proposal.facts.state {
            ProposalState::Waiting => {}
            ProposalState::Denied => return Ok((proposal, true)),
            _ => return Err(ProposalError::AlreadyDecided(Box::new(proposal.facts))),
        }
        if let Some(begun) = self.begun.of(&locked.folder, &proposal.facts) {
            // Left by an interrupted approval.
            let _ = std::fs::remove_file(begun.prepared_file());
        }
        let begun = self.begun.begin(&locked.folder, &proposal.facts, ProposalState::Denied, &by, None)?;
        proposal.facts.applying = None;
        proposal.facts.decision = Some(by);
        proposal.facts.state = ProposalState::Denied;
        self.write_change(&locked, &proposal, &begun)?;
        Ok((proposal, false))
    }

    /// Restores the version before an applied proposal, like [`Self::approve`]. Repeating the rollback returns the
    /// first one, with `true`.
    ///
    /// # Errors
    /// Returns `NotApplied`, `Revised`, `OtherFile`, `ChangedSince` if the file is not what the approval wrote,
    /// `NoVersion`, or `Diff` if the diff that is shown does not lead from that version to the file.
    pub fn roll_back(
        &self,
        reviewed: &Proposal,
        real: Option<&Path>,
        by: ProposalDecision,
    ) -> Result<(Proposal, bool), ProposalError> {
        let locked = self.lock()?;
        let mut proposal = self.find(&reviewed.facts.proposal_id)?;
        match proposal.facts.state {
            ProposalState::Approved => {}
            ProposalState::RolledBack => return Ok((proposal, true)),
            _ => return Err(ProposalError::NotApplied(Box::new(proposal.facts))),
        }
        let facts = &proposal.facts;
        let real = file_of(&proposal, reviewed, real)?;
        let base = self.version(facts, facts.base_digest)?;
        // The diff is what was shown: a version that it does not belong to was not reviewed.
        if Digest::of(diff::apply(&base, &proposal.diff)?.as_bytes()) != facts.result_digest {
            return Err(DiffError::Mismatch(1).into());
        }
        let location = facts.location.clone();
        let present = read(real, &location, ProposalError::ChangedSince)?;
        let begun = self.begun.begin(
            &locked.folder,
            &proposal.facts,
            ProposalState::RolledBack,
            &by,
            Some((real, None)),
        )?;
        let written = match Digest::of(present.as_bytes()) {
            // An earlier rollback was written but not recorded.
            digest if digest == facts.base_digest => Ok(()),
            digest if digest == facts.result_digest => {
                replace_real_file(real, present.as_bytes(), base.as_bytes()).map_err(Into::into)
            }
            _ => Err(ProposalError::ChangedSince(location)),
        };
        if let Err(error) = written {
            self.begun.end(&locked.folder, &proposal.facts.proposal_id);
            return Err(error);
        }
        proposal.facts.applying = None;
        proposal.facts.rollback = Some(by);
        proposal.facts.state = ProposalState::RolledBack;
        self.write_change(&locked, &proposal, &begun)?;
        Ok((proposal, false))
    }
}

/// Returns the beginning of the ids of a skill's proposals.
fn id_stem(skill: &SkillId) -> String {
    let mut stem = String::new();
    for letter in skill.as_str().chars() {
        let letter = if letter == '/' || letter == '\\' || letter.is_control() { '-' } else { letter };
        if stem.len() + letter.len_utf8() > MAX_ID_BYTES {
            break;
        }
        stem.push(letter);
    }
    stem.trim_start_matches('.').to_owned()
}

/// Returns whether an id is one that a new proposal for the skill gets. The files come with repositories, and users copy
/// ids into commands.
fn is_made_for(id: &str, skill: &SkillId) -> bool {
    let timestamp = id.strip_prefix(&id_stem(skill)).and_then(|rest| rest.strip_prefix('-'));
    let shape: Option<String> =
        timestamp.map(|text| text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect());
    shape.as_deref() == Some("00000000T000000000Z")
}

fn read_begun(file: &Path) -> Option<BegunChange> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// Returns the file to write: the skill's, whatever a proposal states, because proposals come with repositories.
fn file_of<'p>(
    proposal: &Proposal,
    reviewed: &Proposal,
    real: Option<&'p Path>,
) -> Result<&'p Path, ProposalError> {
    let facts = &proposal.facts;
    let revised = || ProposalError::Revised(facts.proposal_id.clone());
    let real = real.filter(|_| proposal.digest() == reviewed.digest()).ok_or_else(revised)?;
    match &facts.real {
        Some(stated) if stated != real => Err(ProposalError::OtherFile {
            id: facts.proposal_id.clone(),
            stated: stated.clone(),
            location: facts.location.clone(),
            real: real.to_owned(),
        }),
        _ => Ok(real),
    }
}

/// Reads a proposal's file; `changed` creates the error for a link that replaced it.
fn read(
    real: &Path,
    location: &Path,
    changed: fn(PathBuf) -> ProposalError,
) -> Result<String, ProposalError> {
    files::read_text(real, MAX_BYTES).map_err(|error| match error {
        OpenError::Link { .. } => changed(location.to_owned()),
        error => failed(location)(error.into()),
    })
}

/// Returns the current digest of a proposal's file.
pub fn present_digest(facts: &Facts) -> Option<Digest> {
    let real = files::canonicalize(&facts.location).ok()?;
    files::read_file(&real, MAX_BYTES).ok().map(|bytes| Digest::of(&bytes))
}

/// Returns the name of the file, next to the skill's, in which an approval prepares the new content.
fn new_file(result: Digest) -> String {
    format!(".skills-{}", skills_skill::prefix(&result.to_string(), 16))
}

fn version_name(digest: Digest) -> String {
    format!("{digest}.md")
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_base::audit::Mode;

    const BASE: &str = "---\nname: billing\ndescription: Old.\n---\nBody\n";
    const RESULT: &str = "---\nname: billing\ndescription: New.\n---\nBody\n";

    struct TestHome {
        _dir: tempfile::TempDir,
        store: ProposalStore,
        file: PathBuf,
        /// `file` without links.
        real: PathBuf,
    }

    fn place() -> TestHome {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("billing/SKILL.md");
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::fs::write(&file, BASE).unwrap();
        let real = file.canonicalize().unwrap();
        let audit = Recorder::new(&dir.path().join("audit"), Mode::Standard);
        let store = ProposalStore::new(dir.path().join("proposals"), dir.path().join("begun"), audit);
        TestHome { store, file, real, _dir: dir }
    }

    impl TestHome {
        fn propose(&self) -> Proposal {
            self.store.create(self.new_proposal()).unwrap()
        }

        fn new_proposal(&self) -> NewProposal {
            NewProposal {
                skill_id: SkillId::new("billing"),
                location: self.file.clone(),
                real: self.real.clone(),
                base: BASE.to_owned(),
                result: RESULT.to_owned(),
                justification: "Shorter.".to_owned(),
                evidence: None,
                proposed_by: "ana".to_owned(),
                at_ms: 1_780_000_000_123,
                effect: None,
            }
        }

        fn approve(&self, id: &str, name: &str) -> Result<(Proposal, bool), ProposalError> {
            self.store.approve(&self.store.find(id)?, Some(&self.real), by(name))
        }

        fn roll_back(&self, id: &str, name: &str) -> Result<(Proposal, bool), ProposalError> {
            self.store.roll_back(&self.store.find(id)?, Some(&self.real), by(name))
        }

        fn version_file(&self, text: &str) -> PathBuf {
            self.store.folder().join(VERSIONS).join(version_name(Digest::of(text.as_bytes())))
        }

        /// Records that an approval was started, as a process does that is killed before the end.
        fn begin(&self, proposal: &Proposal, name: &str) -> BegunChange {
            let new = self.real.with_file_name(new_file(proposal.facts.result_digest));
            let written = (self.real.as_path(), FileIdentity::of(&new).ok().flatten());
            self.begin_change(proposal, ProposalState::Approved, name, Some(written))
        }

        fn begin_change(
            &self,
            proposal: &Proposal,
            state: ProposalState,
            name: &str,
            written: Option<(&Path, Option<FileIdentity>)>,
        ) -> BegunChange {
            let locked = self.store.lock().unwrap();
            self.store.begun.begin(&locked.folder, &proposal.facts, state, &by(name), written).unwrap()
        }

        /// Returns the kinds and principals of the lines of the audit log.
        fn audited(&self) -> Vec<(String, String)> {
            let lines = self.store.audit.log().show(usize::MAX, |_| true).unwrap();
            lines.into_iter().map(|line| (line.kind, line.by.unwrap())).collect()
        }

        fn audited_count(&self, kind: &str) -> usize {
            self.audited().iter().filter(|(found, _)| found == kind).count()
        }

        fn begun_count(&self) -> usize {
            std::fs::read_dir(&self.store.begun.0).unwrap().count()
        }

        /// Changes the stored proposal as a repository could.
        fn revise(&self, id: &str, from: &str, to: &str) {
            let file = self.store.folder().join(format!("{id}.md"));
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains(from), "{text}");
            std::fs::write(&file, text.replace(from, to)).unwrap();
        }

        fn text(&self) -> String {
            std::fs::read_to_string(&self.file).unwrap()
        }
    }

    fn by(name: &str) -> ProposalDecision {
        ProposalDecision { by: name.to_owned(), at_ms: 1, notes: None }
    }

    #[cfg(unix)]
    #[test]
    fn link_replacing_the_file_or_folder_is_not_followed() {
        let place = place();
        let folder = place.file.parent().unwrap().to_owned();
        let elsewhere = tempfile::tempdir().unwrap();
        let target = elsewhere.path().join("SKILL.md");
        std::fs::write(&target, BASE).unwrap();
        let id = place.propose().facts.proposal_id;
        std::fs::remove_file(&place.file).unwrap();
        std::os::unix::fs::symlink(&target, &place.file).unwrap();
        assert!(matches!(place.approve(&id, "kim"), Err(ProposalError::Changed(_))));
        std::fs::remove_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &folder).unwrap();
        assert!(matches!(place.approve(&id, "kim"), Err(ProposalError::Changed(_))));
        assert_eq!(std::fs::read_to_string(&target).unwrap(), BASE);
        // After the folder is restored, the approval succeeds; a rollback does not follow a link either.
        std::fs::remove_file(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&place.file, BASE).unwrap();
        place.approve(&id, "kim").unwrap();
        std::fs::write(&target, RESULT).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &folder).unwrap();
        assert!(matches!(place.roll_back(&id, "lee"), Err(ProposalError::ChangedSince(_))));
        assert_eq!(std::fs::read_to_string(&target).unwrap(), RESULT);
    }

    #[test]
    fn an_approval_writes_once_and_a_rollback_restores() {
        let place = place();
        let id = place.propose().facts.proposal_id;
        assert_eq!(id, "billing-20260528T202640123Z");
        assert!(place.store.folder().join(format!("{id}.md")).is_file());
        assert_ne!(place.propose().facts.proposal_id, id, "two of one millisecond have two names");
        let (approved, repeated) = place.approve(&id, "kim").unwrap();
        assert_eq!(
            (approved.facts.state, repeated, place.text().as_str()),
            (ProposalState::Approved, false, RESULT)
        );
        let (again, repeated) = place.approve(&id, "lee").unwrap();
        assert_eq!((again.facts.decision.unwrap().by.as_str(), repeated), ("kim", true));
        assert!(matches!(place.store.deny(&id, by("lee")), Err(ProposalError::AlreadyDecided(_))));
        let (back, _) = place.roll_back(&id, "lee").unwrap();
        assert_eq!((back.facts.state, place.text().as_str()), (ProposalState::RolledBack, BASE));
        assert!(place.roll_back(&id, "kim").unwrap().1);
        assert!(matches!(place.approve(&id, "kim"), Err(ProposalError::AlreadyDecided(_))));
    }

    #[test]
    fn one_principal_cannot_use_the_whole_limit() {
        let place = place();
        for _ in 0..MAX_WAITING_EACH {
            place.propose();
        }
        let error = place.store.create(place.new_proposal()).unwrap_err();
        assert!(matches!(error, ProposalError::TooManyOwn { waiting: MAX_WAITING_EACH, .. }), "{error}");
        let other = NewProposal { proposed_by: "another".to_owned(), ..place.new_proposal() };
        let id = place.store.create(other).unwrap().facts.proposal_id;
        place.store.deny(&id, by("kim")).unwrap();
        let listed = place.store.list().unwrap();
        assert_eq!(listed.proposals.len(), MAX_WAITING_EACH + 1);
    }

    #[test]
    fn a_file_that_changed_is_not_overwritten() {
        let place = place();
        let id = place.propose().facts.proposal_id;
        std::fs::write(&place.file, "mine").unwrap();
        assert!(matches!(place.approve(&id, "kim"), Err(ProposalError::Changed(_))));
        std::fs::write(&place.file, BASE).unwrap();
        place.approve(&id, "kim").unwrap();
        std::fs::write(&place.file, "mine").unwrap();
        assert!(matches!(place.roll_back(&id, "kim"), Err(ProposalError::ChangedSince(_))));
        assert_eq!(place.text(), "mine");
        let missing = place.version_file(BASE);
        std::fs::write(&place.file, RESULT).unwrap();
        std::fs::write(missing, "forged").unwrap();
        assert!(matches!(place.roll_back(&id, "kim"), Err(ProposalError::NoVersion { .. })));
    }

    #[test]
    fn file_shows_after_a_crash_whether_it_was_applied() {
        let place = place();
        let proposal = place.propose();
        let id = proposal.facts.proposal_id.clone();
        place.begin(&proposal, "kim");
        assert_eq!(place.store.find(&id).unwrap().facts.state, ProposalState::Waiting);
        std::fs::write(&place.file, RESULT).unwrap();
        let found = place.store.find(&id).unwrap();
        assert_eq!((found.facts.state, found.facts.decision), (ProposalState::Approved, Some(by("kim"))));
        assert_eq!(place.store.list().unwrap().proposals[0].facts.state, ProposalState::Approved);
    }

    #[test]
    fn an_approval_is_not_lost_by_a_later_change_of_the_file() {
        let place = place();
        let proposal = place.propose();
        let id = proposal.facts.proposal_id.clone();
        let new = place.real.with_file_name(new_file(proposal.facts.result_digest));
        let state = || place.store.find(&id).unwrap().facts.state;
        // Interrupted before the write: the new content is still next to the file.
        std::fs::write(&new, RESULT).unwrap();
        place.begin(&proposal, "kim");
        assert_eq!(state(), ProposalState::Waiting);
        std::fs::write(&place.file, "another change").unwrap();
        assert_eq!(state(), ProposalState::Waiting);
        // Interrupted after it, and the file is changed before anything reads the proposal.
        std::fs::write(&place.file, BASE).unwrap();
        std::fs::rename(&new, &place.file).unwrap();
        std::fs::write(&place.file, "the next change").unwrap();
        assert_eq!(state(), ProposalState::Approved);
        place.store.record_interrupted().unwrap();
        assert_eq!(place.audited()[1..], [("proposal.approved".to_owned(), "kim".to_owned())]);
        // A file that is put back later does not undo what is recorded.
        std::fs::write(&new, RESULT).unwrap();
        assert_eq!((state(), place.text().as_str()), (ProposalState::Approved, "the next change"));
    }

    #[test]
    fn leftovers_of_an_interrupted_approval_are_removed() {
        for is_approved in [true, false] {
            let place = place();
            let proposal = place.propose();
            let id = proposal.facts.proposal_id.clone();
            let new = place.real.with_file_name(new_file(proposal.facts.result_digest));
            std::fs::write(&new, "part").unwrap();
            place.begin(&proposal, "kim");
            if is_approved {
                place.approve(&id, "lee").unwrap();
            } else {
                place.store.deny(&id, by("lee")).unwrap();
            }
            assert_eq!(place.text(), if is_approved { RESULT } else { BASE });
            let facts = place.store.find(&id).unwrap().facts;
            assert_eq!((facts.decision, facts.applying), (Some(by("lee")), None));
            assert!(!new.exists());
        }
    }

    #[test]
    fn interrupted_approval_is_recorded_once() {
        let place = place();
        let proposal = place.propose();
        let id = proposal.facts.proposal_id.clone();
        place.store.record_interrupted().unwrap();
        place.begin(&proposal, "kim");
        std::fs::write(&place.file, RESULT).unwrap();
        for _ in 0..2 {
            place.store.record_interrupted().unwrap();
            assert_eq!(place.audited()[1..], [("proposal.approved".to_owned(), "kim".to_owned())]);
        }
        assert_eq!(place.begun_count(), 0);
        std::fs::write(&place.file, "the next change").unwrap();
        let found = place.store.find(&id).unwrap().facts;
        assert_eq!((found.state, found.decision), (ProposalState::Approved, Some(by("kim"))));
    }

    #[test]
    fn interrupted_change_is_one_audit_log_line() {
        use ProposalState::{Approved, Denied, RolledBack, Waiting};
        for (state, kind) in [
            (Waiting, "proposal.created"),
            (Approved, "proposal.approved"),
            (Denied, "proposal.denied"),
            (RolledBack, "proposal.rolled_back"),
        ] {
            let (first, place) = (place(), self::place());
            let mut proposal = first.propose();
            let id = proposal.facts.proposal_id.clone();
            // The proposal comes from another location, so that its creation is in no line of this one.
            place.store.write(&place.store.lock().unwrap(), &proposal).unwrap();
            let path = |place: &TestHome| place.store.folder().join(format!("{id}.md"));
            let waiting = std::fs::read_to_string(path(&place)).unwrap();
            // Interrupted before anything changed.
            place.begin_change(&proposal, state, "kim", Some((&place.real, None)));
            if state == Waiting {
                std::fs::remove_file(path(&place)).unwrap();
            }
            place.store.record_interrupted().unwrap();
            assert_eq!(place.audited(), [], "{kind}");
            assert_eq!(place.begun_count(), usize::from(state == Approved), "{kind}");
            // Interrupted before the line, and after it.
            std::fs::write(path(&place), waiting).unwrap();
            proposal.facts.state = state;
            proposal.facts.decision = (state != Waiting).then(|| by("kim"));
            proposal.facts.rollback = (state == RolledBack).then(|| by("kim"));
            for _ in 0..2 {
                place.begin_change(&proposal, state, "kim", Some((&place.real, None)));
                place.store.write(&place.store.lock().unwrap(), &proposal).unwrap();
                place.store.record_interrupted().unwrap();
                assert_eq!(place.audited(), [(kind.to_owned(), "kim".to_owned())], "{kind}");
                assert_eq!(place.begun_count(), 0);
            }
        }
        let place = place();
        let id = place.propose().facts.proposal_id;
        place.approve(&id, "kim").unwrap();
        place.roll_back(&id, "lee").unwrap();
        place.store.record_interrupted().unwrap();
        let expected =
            [("proposal.created", "ana"), ("proposal.approved", "kim"), ("proposal.rolled_back", "lee")];
        assert_eq!(place.audited(), expected.map(|(kind, by)| (kind.to_owned(), by.to_owned())));
        assert_eq!(place.begun_count(), 0);
    }

    #[test]
    fn a_rollback_that_was_written_and_interrupted_is_recorded_once() {
        for is_written in [true, false] {
            let place = place();
            let id = place.propose().facts.proposal_id;
            let (approved, _) = place.approve(&id, "kim").unwrap();
            place.begin_change(&approved, ProposalState::RolledBack, "lee", Some((&place.real, None)));
            if is_written {
                std::fs::write(&place.file, BASE).unwrap();
            }
            for _ in 0..2 {
                place.store.record_interrupted().unwrap();
                let facts = place.store.find(&id).unwrap().facts;
                let (state, rollback) = if is_written {
                    (ProposalState::RolledBack, Some(by("lee")))
                } else {
                    (ProposalState::Approved, None)
                };
                assert_eq!((facts.state, facts.rollback, facts.applying), (state, rollback, None));
                assert_eq!(place.audited_count("proposal.rolled_back"), usize::from(is_written));
                assert_eq!(place.begun_count(), 0);
            }
        }
    }

    #[test]
    fn an_approval_is_not_recorded_if_it_may_not_have_been_written() {
        let place = place();
        let proposal = place.propose();
        let id = &proposal.facts.proposal_id;
        let new = place.real.with_file_name(new_file(proposal.facts.result_digest));
        // Interrupted before the write; then the file is changed, and the prepared one removed.
        std::fs::write(&new, RESULT).unwrap();
        place.begin(&proposal, "kim");
        std::fs::write(&place.file, "a change by hand").unwrap();
        std::fs::remove_file(&new).unwrap();
        place.store.record_interrupted().unwrap();
        let found = place.store.find(id).unwrap().facts;
        assert_eq!(
            (found.state, found.decision, found.applying),
            (ProposalState::Waiting, None, Some(by("kim")))
        );
        assert_eq!(place.audited_count("proposal.approved"), 0);
        // An editor that replaces the file gives it another inode, or the same one again.
        std::fs::remove_file(&place.file).unwrap();
        std::fs::write(&place.file, "another change by hand").unwrap();
        assert_eq!(place.store.find(id).unwrap().facts.state, ProposalState::Waiting);
        assert!(matches!(place.approve(id, "kim"), Err(ProposalError::Changed(_))));
        place.store.deny(id, by("lee")).unwrap();
        let found = place.store.find(id).unwrap().facts;
        assert_eq!((found.state, found.applying), (ProposalState::Denied, None));
        assert_eq!(place.begun_count(), 0);
    }

    #[test]
    fn approval_state_of_a_repository_file_is_ignored() {
        let place = place();
        let id = place.propose().facts.proposal_id;
        let applying = "state: waiting\napplying: {by: kim, at_ms: 1}";
        place.revise(&id, "state: waiting", applying);
        std::fs::write(&place.file, RESULT).unwrap();
        place.store.record_interrupted().unwrap();
        assert_eq!(place.audited_count("proposal.approved"), 0);
        let found = place.store.find(&id).unwrap().facts;
        assert_eq!((found.state, found.decision, found.applying), (ProposalState::Waiting, None, None));
        let absolute = place.file.display().to_string();
        place.revise(&id, &format!("location: {absolute}"), "location: billing/SKILL.md");
        assert!(matches!(place.store.find(&id), Err(ProposalError::Damaged { .. })));
    }

    #[test]
    fn an_approval_that_cannot_be_written_is_not_in_progress() {
        let place = place();
        let proposal = place.propose();
        place.begin(&proposal, "kim");
        place.store.deny(&proposal.facts.proposal_id, by("lee")).unwrap();
        assert_eq!(place.begun_count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn links_in_the_folder_of_proposals_are_not_followed() {
        let place = place();
        let (folder, elsewhere) = (place.store.folder().to_owned(), tempfile::tempdir().unwrap());
        let entries = || std::fs::read_dir(elsewhere.path()).unwrap().count();
        let id = place.propose().facts.proposal_id;
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, folder.join(name)).unwrap();
        std::fs::remove_file(folder.join(LOCK)).unwrap();
        link(&elsewhere.path().join("profile"), LOCK);
        let error = place.approve(&id, "kim").unwrap_err().to_string();
        assert!(error.contains("is a link"), "{error}");
        std::fs::remove_file(folder.join(LOCK)).unwrap();
        link(elsewhere.path(), VERSIONS);
        assert!(matches!(place.approve(&id, "kim"), Err(ProposalError::Io { .. })));
        assert_eq!((entries(), place.text().as_str()), (0, BASE));
        std::fs::remove_file(folder.join(VERSIONS)).unwrap();
        place.approve(&id, "kim").unwrap();
        assert_eq!(entries(), 0);
    }

    #[test]
    fn a_version_with_other_content_is_replaced() {
        let place = place();
        let id = place.propose().facts.proposal_id;
        std::fs::create_dir(place.store.folder().join(VERSIONS)).unwrap();
        std::fs::write(place.version_file(BASE), "junk").unwrap();
        place.approve(&id, "kim").unwrap();
        place.roll_back(&id, "lee").unwrap();
        assert_eq!(place.text(), BASE);
    }

    #[test]
    fn a_changed_proposal_does_not_write_something_else() {
        let place = place();
        let id = place.propose().facts.proposal_id;
        place.revise(&id, "+description: New.", "+description: Evil.");
        assert!(matches!(place.approve(&id, "kim"), Err(ProposalError::Diff(_))));
        assert_eq!(place.text(), BASE);
    }

    #[test]
    fn a_proposal_that_states_another_file_writes_none() {
        let place = place();
        let other = place.real.with_file_name("profile");
        std::fs::write(&other, BASE).unwrap();
        let id = place.propose().facts.proposal_id;
        let (stated, real) = (other.display().to_string(), place.real.display().to_string());
        place.revise(&id, &format!("real: {real}"), &format!("real: {stated}"));
        let error = place.approve(&id, "kim").unwrap_err();
        assert!(matches!(&error, ProposalError::OtherFile { stated, .. } if *stated == other), "{error}");
        assert_eq!(place.text(), BASE);
        // One that also claims to be applied, so that a rollback would write any content.
        place.revise(&id, "state: waiting", "state: approved");
        std::fs::write(&other, RESULT).unwrap();
        place.store.keep_version(&place.store.lock().unwrap(), BASE.as_bytes()).unwrap();
        let error = place.roll_back(&id, "kim").unwrap_err();
        assert!(matches!(error, ProposalError::OtherFile { .. }), "{error}");
        assert_eq!(
            (std::fs::read_to_string(&other).unwrap().as_str(), place.text().as_str()),
            (RESULT, BASE)
        );
    }

    #[test]
    fn a_proposal_revised_after_its_review_is_not_applied() {
        let place = place();
        let reviewed = place.propose();
        let id = &reviewed.facts.proposal_id;
        place.revise(id, "Shorter.", "Longer.");
        let error = place.store.approve(&reviewed, Some(&place.real), by("kim")).unwrap_err();
        assert!(matches!(error, ProposalError::Revised(_)), "{error}");
        let error = place.store.approve(&place.store.find(id).unwrap(), None, by("kim")).unwrap_err();
        assert!(matches!(error, ProposalError::Revised(_)), "{error}");
        assert_eq!(place.text(), BASE);
    }

    #[test]
    fn a_rollback_restores_only_what_its_diff_shows() {
        let place = place();
        let id = place.propose().facts.proposal_id;
        place.approve(&id, "kim").unwrap();
        let evil = BASE.replace("Body", "Evil");
        place.store.keep_version(&place.store.lock().unwrap(), evil.as_bytes()).unwrap();
        let digest = |text: &str| Digest::of(text.as_bytes()).to_string();
        place.revise(&id, &digest(BASE), &digest(&evil));
        assert!(matches!(place.roll_back(&id, "lee"), Err(ProposalError::Diff(_))));
        assert_eq!(place.text(), RESULT);
    }

    #[test]
    fn an_id_is_never_a_path_and_other_files_are_reported() {
        let place = place();
        let missing = place.store.find("x");
        assert!(matches!(missing, Err(ProposalError::NotFound { .. })));
        place.propose();
        for id in ["../billing/SKILL", "versions", "", "billing"] {
            assert!(matches!(place.store.find(id), Err(ProposalError::NotFound { .. })), "{id}");
        }
        std::fs::write(place.store.folder().join("notes.md"), "# Notes").unwrap();
        let listed = place.store.list().unwrap();
        assert_eq!((listed.proposals.len(), listed.damaged.len()), (1, 1));
        assert!(matches!(place.store.find("notes"), Err(ProposalError::Damaged { .. })));
        let new = NewProposal { skill_id: SkillId::new("../../x"), ..place.new_proposal() };
        let id = place.store.create(new).unwrap().facts.proposal_id;
        assert!(id.starts_with("-..-x-"), "{id}");
        place.store.find(&id).unwrap();
    }

    #[test]
    fn a_file_whose_name_is_not_that_of_a_proposal_is_reported() {
        let place = place();
        let id = place.propose().facts.proposal_id;
        // The form of all versions: files that exist stay valid.
        assert_eq!(id, "billing-20260528T202640123Z");
        let folder = place.store.folder().to_owned();
        let text = std::fs::read_to_string(folder.join(format!("{id}.md"))).unwrap();
        let forged = [format!("{id};touch x"), "$(touch x)".to_owned(), id.replace("billing", "mail")];
        for forged in &forged {
            std::fs::write(folder.join(format!("{forged}.md")), text.replace(&id, forged)).unwrap();
        }
        let listed = place.store.list().unwrap();
        assert_eq!((listed.proposals.len(), listed.damaged.len()), (1, forged.len()));
        for forged in &forged {
            let error = place.store.find(forged).unwrap_err().to_string();
            assert!(error.contains("billing-<timestamp>.md"), "{error}");
        }
        for skill in ["..hidden", "a b;c", "x\ny", &"é".repeat(200)] {
            let new = NewProposal { skill_id: SkillId::new(skill), ..place.new_proposal() };
            let id = place.store.create(new).unwrap().facts.proposal_id;
            place.store.find(&id).unwrap_or_else(|error| panic!("{skill}: {error}"));
        }
    }
}
