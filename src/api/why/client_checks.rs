//! The checks of one client: whether it finds, reads and offers a skill, and what it shows of the description.

use std::path::Path;

use super::{
    CheckKind, ClientChecks, CutDescription, ExaminedSkill, WhyCheck, WhyTerm, instead_of_description,
    quoted_start, shown_text,
};
use crate::client_view::shadowed_by;
use crate::visibility::{Visibility, deciding_sources};
use crate::{ClientView, ClientViewEntry, ClientViewState, other_files};
use skills_config::{arguments, quoted};
use skills_discovery::contains_word;
use skills_session::{ListedEntry, Truncation, without_description};
use skills_skill::client::{Scope, one_blank, profile};

/// What a client does with a skill before it offers it to its model.
#[derive(Clone, Copy)]
enum Phase {
    /// It searches the folder.
    Search,
    /// It reads the file.
    Read,
    /// It takes the skill, of those with its name.
    Name,
}

/// The phases that a client has passed.
type PassedPhases = &'static [Phase];

const NONE: PassedPhases = &[];
const SEARCHED: PassedPhases = &[Phase::Search];
const READ: PassedPhases = &[Phase::Search, Phase::Read];
const NOT_SHADOWED: PassedPhases = &[Phase::Search, Phase::Read, Phase::Name];

/// Returns the checks of a client, up to the first that fails.
pub(super) fn client_checks(
    view: &ClientView,
    subject: &ExaminedSkill,
    terms: &[WhyTerm],
    has_request: bool,
) -> ClientChecks {
    let entry = view.entry_of(&subject.id, &subject.location);
    let examination = Examination { view, subject, entry: entry.as_ref() };
    let state = entry.as_ref().map(|entry| &entry.state);
    let is_found = state.is_some_and(|state| *state != ClientViewState::NotLooked);
    let repaired = match state {
        Some(ClientViewState::Repaired(how)) => Some(how.clone()),
        _ => None,
    };
    let (checks, description) = match examination.stop() {
        Some((passed, last)) => {
            let passed = passed.iter().map(|phase| examination.passed(*phase));
            (passed.chain([last]).collect(), None)
        }
        None => examination.listed(repaired.as_deref(), terms, has_request),
    };
    let decided = match state {
        None | Some(ClientViewState::NotLooked | ClientViewState::TooDeep(_)) => Visibility::NotSearched,
        Some(ClientViewState::Shadowed(_) | ClientViewState::Either(_)) => Visibility::Shadowed,
        Some(ClientViewState::ForPeople(_)) => Visibility::Manual,
        Some(_) if description.is_some() => Visibility::Cut,
        Some(_) => Visibility::Unknown,
    };
    let assumed = examination.is_assumed();
    ClientChecks {
        client: view.client.clone(),
        name: view.name.clone(),
        source: deciding_sources(&view.client, decided, &view.source),
        searches_folder: is_found && !assumed,
        assumed,
        checks,
        repaired,
        description,
    }
}

/// A skill and what a client does with it.
struct Examination<'v> {
    view: &'v ClientView,
    subject: &'v ExaminedSkill,
    entry: Option<&'v ClientViewEntry>,
}

impl Examination<'_> {
    /// Returns whether the folder is not one of the client's and is checked as if it were.
    fn is_assumed(&self) -> bool {
        self.entry.is_some_and(|entry| entry.assumed)
    }

    /// Returns whether the client found the skill, which the catalog does not contain.
    fn is_foreign(&self) -> bool {
        self.view.foreign.iter().any(|one| one.location == self.subject.location && !one.missed)
    }

    /// Returns the check of a phase that the client has passed.
    fn passed(&self, phase: Phase) -> WhyCheck {
        let name = &self.view.name;
        match phase {
            Phase::Search if self.is_assumed() => {
                let mut folders = self.view.assumed_folders.iter();
                let is_shipped =
                    folders.any(|folder| folder.shipped && self.subject.location.starts_with(&folder.path));
                let evidence = if is_shipped {
                    format!("shipped skill: checked as if {name} searched its folder")
                } else {
                    format!("given by --root: checked as if {name} searched it")
                };
                WhyCheck::unknown(CheckKind::Folder, evidence)
            }
            Phase::Search => WhyCheck::pass(CheckKind::Folder, format!("{name} searches the folder")),
            Phase::Read => WhyCheck::pass(CheckKind::Parse, format!("{name} reads the file")),
            Phase::Name => WhyCheck::pass(CheckKind::Name, "not shadowed"),
        }
    }

    /// Returns the phases that the client passes and the check that it does not pass, or whose result is unknown;
    /// `None` if the client lists the skill, as far as its own rules decide.
    fn stop(&self) -> Option<(PassedPhases, WhyCheck)> {
        let name = &self.view.name;
        let Some(entry) = self.entry else { return Some((NONE, self.not_searched())) };
        let place_help = entry.help.as_deref();
        let not_offered = |evidence: String, help: String| {
            (NOT_SHADOWED, WhyCheck::fail(CheckKind::Offered, evidence, help))
        };
        Some(match &entry.state {
            ClientViewState::NotLooked => (NONE, self.not_searched()),
            ClientViewState::TooDeep(top) => self.not_found(
                format!("nested too deep ({name} searches only direct subfolders of {})", top.display()),
                &format!("move the folder directly into {}", top.display()),
            ),
            ClientViewState::NotRead(why) => self.not_found(why.clone(), place_help.unwrap_or_default()),
            ClientViewState::Dropped(why) => {
                let help = self.repair_help();
                let is_named = why.starts_with(name.as_str());
                let evidence = if is_named { why.clone() } else { format!("{name} drops it: {why}") };
                (SEARCHED, WhyCheck::fail(CheckKind::Parse, evidence, help))
            }
            ClientViewState::Unknown(what) if entry.setting.is_some() => {
                (NOT_SHADOWED, WhyCheck::unknown(CheckKind::Offered, what.clone()))
            }
            ClientViewState::Unknown(what) => {
                let (id, location) = (&self.subject.id, &self.subject.location);
                if self.view.listed(id, location).is_some() || self.is_foreign() {
                    (SEARCHED, WhyCheck::unknown(CheckKind::Parse, what.clone()))
                } else {
                    // Whether the client finds it is unknown.
                    (NONE, WhyCheck::unknown(CheckKind::Folder, what.clone()))
                }
            }
            ClientViewState::Shadowed(winner) => {
                let evidence = shadowed_by(winner, place_help.is_some());
                let help = place_help.unwrap_or("remove or rename one of the two");
                (READ, WhyCheck::fail(CheckKind::Name, evidence, help))
            }
            ClientViewState::ForPeople(setting) => not_offered(
                format!("user-only; the model cannot invoke it: {setting}"),
                format!("remove {setting} if the model of {name} should invoke the skill"),
            ),
            ClientViewState::TurnedOff(setting) => not_offered(
                format!("turned off in the settings of {name}: {setting}"),
                format!("remove {setting} if {name} should offer the skill"),
            ),
            ClientViewState::Waiting(until) => not_offered(
                format!("not offered yet: {until}"),
                format!("remove `paths` from the frontmatter if {name} should always offer the skill"),
            ),
            ClientViewState::Found | ClientViewState::Repaired(_) | ClientViewState::Either(_) => {
                return None;
            }
        })
    }

    /// Returns the check of a folder that the client does not search.
    fn not_searched(&self) -> WhyCheck {
        let Self { view, subject, .. } = self;
        let folder = subject.location.parent().and_then(Path::parent).unwrap_or(&subject.location);
        let evidence = format!("{} does not search {}", view.name, folder.display());
        let is_same = |entry: &&ListedEntry| entry.name == subject.name && !entry.bundled;
        let own = view.list.included().find(is_same);
        let Some((entry, path)) = own.and_then(|own| Some((own, own.location.as_ref()?))) else {
            return WhyCheck::fail(CheckKind::Folder, evidence, self.link_help());
        };
        let id = entry.skill_id.as_ref().map_or_else(|| path.display().to_string(), ToString::to_string);
        let evidence = format!("{evidence}; it lists another copy: {}", path.display());
        let client = format!("--client {}", quoted(&view.client));
        let help = format!("edit that copy, or see `skills why {}`", arguments([id.as_str()], &client));
        WhyCheck::fail(CheckKind::Folder, evidence, help)
    }

    /// Returns the check of a file that the client does not find below a folder that it searches. In a folder that it does
    /// not search, moving the file inside it does not help.
    fn not_found(&self, why: String, help: &str) -> (PassedPhases, WhyCheck) {
        if !self.is_assumed() {
            return (NONE, WhyCheck::fail(CheckKind::Folder, why, help));
        }
        let evidence = format!("would not find it: {why}");
        (SEARCHED, WhyCheck::fail(CheckKind::Folder, evidence, self.link_help()))
    }

    fn link_help(&self) -> String {
        let profile = profile(&self.view.client);
        let first = |scope: Scope, start: &str| {
            let mut folders = profile.iter().flat_map(|profile| &profile.folders);
            let folder = folders.find(|folder| folder.scope == scope);
            folder.map(|folder| format!("{start}{}", folder.path))
        };
        let examples =
            [first(Scope::User, "~/"), first(Scope::Project, "").map(|path| path + " of the project")];
        let examples: Vec<String> = examples.into_iter().flatten().collect();
        let such = if examples.is_empty() { "" } else { ", such as " };
        format!(
            "copy or link it into a folder that {} searches{such}{}",
            self.view.name,
            examples.join(" or ")
        )
    }

    /// Returns the checks of a skill that the client lists. `repaired` is how the client repairs the file.
    fn listed(
        &self,
        repaired: Option<&str>,
        terms: &[WhyTerm],
        has_request: bool,
    ) -> (Vec<WhyCheck>, Option<CutDescription>) {
        let Self { view, subject, entry } = *self;
        let name = &view.name;
        let read = repaired.map_or_else(
            || self.passed(Phase::Read),
            |how| {
                let help = Some(self.repair_help()).filter(|help| !help.is_empty());
                let evidence = format!("{name} reads the file although it has {how}");
                WhyCheck { help, ..WhyCheck::pass(CheckKind::Parse, evidence) }
            },
        );
        let named = match entry.map(|entry| &entry.state) {
            Some(ClientViewState::Either(others)) => {
                let others = other_files(others, ", ", |path| path.display().to_string());
                let evidence = format!(
                    "several skills have its name, and the one that {name} lists varies between starts: {others}"
                );
                WhyCheck::unknown(CheckKind::Name, evidence)
            }
            _ => self.passed(Phase::Name),
        };
        let mut checks = vec![self.passed(Phase::Search), read, named];
        let mut groups = view.not_listed.iter();
        let withheld = groups.find(|group| group.names.iter().any(|name| name == subject.id.as_str()));
        // The names are those of skills of the catalog.
        if let Some(group) = withheld.filter(|_| !self.is_foreign()) {
            let help = "remove `disable-model-invocation` if models should invoke the skill";
            checks.push(WhyCheck::fail(CheckKind::Offered, group.why.clone(), help));
            return (checks, None);
        }
        if matches!(entry.map(|entry| &entry.state), Some(ClientViewState::Either(_))) {
            let evidence = "either this skill or one of the others is offered to the model";
            checks.push(WhyCheck::unknown(CheckKind::Offered, evidence));
            return (checks, None);
        }
        let (check, cut) = self.description_check(terms, has_request, repaired);
        checks.extend([WhyCheck::pass(CheckKind::Offered, "it is offered to the model"), check]);
        (checks, cut)
    }

    /// Returns what to do about a defect for which the client drops or repairs the file, or shows another text.
    fn repair_help(&self) -> String {
        if let Some(help) = self.entry.and_then(|entry| entry.help.as_ref()) {
            return help.clone();
        }
        if self.subject.location.file_name().is_none_or(|name| name != "SKILL.md") {
            return "rename the file to SKILL.md".to_owned();
        }
        self.subject.repair.clone().unwrap_or_default()
    }

    /// Returns the check of what the client's catalog budget leaves of the description. `repaired` is how the client
    /// repairs the file.
    fn description_check(
        &self,
        terms: &[WhyTerm],
        has_request: bool,
        repaired: Option<&str>,
    ) -> (WhyCheck, Option<CutDescription>) {
        let Self { view, subject, .. } = *self;
        let kind = CheckKind::Description;
        let Some((listed, shown)) = view.listed(&subject.id, &subject.location) else {
            let evidence = format!("which text {} shows as the description is not known", view.name);
            return (WhyCheck::unknown(kind, evidence), None);
        };
        let text = shown_text(listed, shown);
        if listed.other_text && !text.is_empty() {
            let evidence = format!("{} shows {}", view.name, instead_of_description(text));
            return (WhyCheck::fail(kind, evidence, self.repair_help()), None);
        }
        let when_to_use = subject.when_to_use.as_deref();
        let stated = profile(&view.client).map_or_else(
            || subject.description.as_str().into(),
            |profile| profile.listable_text(&subject.description, when_to_use),
        );
        if let Truncation::NameOnly { why } = shown
            && *why == without_description(&view.name)
        {
            let evidence = format!("only the name is shown: {why}");
            let nothing = CutDescription {
                shown: String::new(),
                cut: String::new(),
                lost_terms: Vec::new(),
                place: None,
            };
            return (WhyCheck::fail(kind, evidence, self.repair_help()), Some(nothing));
        }
        if !subject.parsed && subject.description.is_empty() && matches!(shown, Truncation::Complete) {
            let evidence =
                format!("{} shows {}, which this catalog cannot read", view.name, quoted_start(text));
            return (WhyCheck::pass(kind, evidence), None);
        }
        // A repair may use only its beginning.
        let is_complete =
            repaired.is_none() || one_blank(&listed.description).starts_with(&one_blank(&stated));
        match shown {
            Truncation::Unknown { what } => (WhyCheck::unknown(kind, what.clone()), None),
            Truncation::Complete if !listed.cut && is_complete => {
                let characters = stated.chars().count();
                let is_appended = stated.len() > subject.description.len();
                let fields = match when_to_use {
                    None => "the description are shown",
                    Some(_) if is_appended => "the description and `when_to_use` are shown",
                    Some(_) => "the description are shown, but not `when_to_use`",
                };
                (WhyCheck::pass(kind, format!("all {characters} characters of {fields}")), None)
            }
            Truncation::Beyond => {
                let evidence = "the catalog exceeds the client's budget, and how the client truncates is not \
                    published";
                (WhyCheck::unknown(kind, evidence), None)
            }
            Truncation::Omitted { why } => {
                (WhyCheck::fail(kind, format!("not in the catalog: {why}"), fit_help(view)), None)
            }
            Truncation::NameOnly { .. }
            | Truncation::Complete
            | Truncation::OtherText
            | Truncation::Shortened { .. } => {
                let (check, cut) = cut_check(view, (listed, shown), &stated, terms, has_request);
                (check, Some(cut))
            }
        }
    }
}

fn fit_help(view: &ClientView) -> String {
    let client = quoted(&view.client);
    format!("shorten the list with `skills budget fit --client {client}`, which needs golden queries")
}

/// Returns the check of a description of which the client shows only a part. `stated` is the complete text.
fn cut_check(
    view: &ClientView,
    (listed, shown): (&ListedEntry, &Truncation),
    stated: &str,
    terms: &[WhyTerm],
    has_request: bool,
) -> (WhyCheck, CutDescription) {
    let kind = CheckKind::Description;
    let text = shown_text(listed, shown);
    // If a client rewrites the text, the truncation cannot be shown in the original.
    let full = stated.trim();
    let common = full.chars().zip(text.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let (head, tail) = full.split_at(common);
    let is_lost = |term: &&WhyTerm| contains_word(tail, term.word()) && !contains_word(head, term.word());
    let lost_terms: Vec<String> = terms.iter().filter(is_lost).map(|term| term.term.clone()).collect();
    let cut_by_client = listed.cut || !full.starts_with(listed.description.trim());
    let why = match shown {
        Truncation::Shortened { why, .. } | Truncation::NameOnly { why } => why.as_str(),
        _ if cut_by_client => "the client's own limit for one description",
        _ => "",
    };
    let because = if why.is_empty() { String::new() } else { format!(" ({why})") };
    let count = head.chars().count();
    let evidence = if count == 0 {
        format!("only the name is shown{because}")
    } else {
        format!("{count} of {} characters are shown{because}", stated.chars().count())
    };
    // If no description is shown, no change of this one helps.
    let help = if let Some(setting) = &listed.name_only {
        format!("remove {setting} if the model should see the description")
    } else if text.is_empty() {
        fit_help(view)
    } else {
        "put the most important terms first, or shorten the description".to_owned()
    };
    let check = if !lost_terms.is_empty() {
        let lost = lost_terms.iter().map(|term| format!("“{term}”")).collect::<Vec<_>>().join(", ");
        WhyCheck::fail(kind, format!("{evidence}; cut off: {lost}"), help)
    } else if has_request && count > 0 {
        WhyCheck::pass(kind, format!("{evidence}; no term of the request is cut off"))
    } else {
        WhyCheck::fail(kind, evidence, help)
    };
    (check, CutDescription { shown: head.to_owned(), cut: tail.to_owned(), lost_terms, place: None })
}
