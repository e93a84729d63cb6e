//! The checks of `doctor`: one line per subject, with the finding and the advice.

use serde::{Deserialize, Serialize};
use strum::Display;

use super::{Diagnostics, IndexProgress};
use skills_base::number::{counted, inflected};
use skills_config::Config;
use skills_discovery::{MatcherReport, MatcherState};
use skills_registry::{Catalog, RootOrigin, RootState};

/// The state of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, Display, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Health {
    /// As it should be.
    Good,
    /// Works, but the user should know about it.
    Note,
    /// Does not work.
    Problem,
}

/// One subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Check {
    /// What was checked: `root ~/.claude/skills`, `cache`, `link semantic`.
    pub subject: String,
    /// Its state.
    pub health: Health,
    /// What was found.
    pub found: String,
    /// The recommended action, if one is necessary.
    pub advice: Option<String>,
}

impl Check {
    /// Creates a check without problems.
    pub fn good(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self { subject: subject.into(), health: Health::Good, found: found.into(), advice: None }
    }

    pub fn note(subject: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { subject: subject.into(), health: Health::Note, found: found.into(), advice }
    }

    pub fn problem(subject: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { subject: subject.into(), health: Health::Problem, found: found.into(), advice }
    }
}

/// Returns the checks of the settings files in use.
pub fn settings(config: &Config) -> Vec<Check> {
    if config.files.is_empty() {
        let usual = config.dirs.config_file();
        return vec![Check::good(
            "configuration",
            format!("none ({} does not exist; using defaults)", usual.display()),
        )];
    }
    let files: Vec<String> = config.files.iter().map(|file| file.display().to_string()).collect();
    vec![Check::good("configuration", files.join(", "))]
}

/// Returns the results of a test request for each matcher.
pub fn matchers(reports: &[MatcherReport]) -> Vec<Check> {
    let check = |report: &MatcherReport| {
        let subject = format!("matcher {}", report.matcher);
        match &report.state {
            MatcherState::Ran => Check::good(subject, "ok"),
            MatcherState::Idle => Check::good(subject, "ok, without effect on the test request"),
            MatcherState::Off => Check::note(subject, "disabled", "set in the configuration under `links`"),
            MatcherState::Failed(why) => {
                Check::problem(subject, why.clone(), "the other matchers continue to work; please report it")
            }
        }
    };
    reports.iter().map(check).collect()
}

/// Reports a cache folder that cannot be written.
pub fn temporary_cache() -> Check {
    Check::note(
        "cache folder",
        "cannot be written; a temporary folder is used instead",
        "check its owner and permissions, or set XDG_CACHE_HOME to another folder",
    )
}

/// Returns the checks of the roots, one line each; missing folders of clients that are not in use are summarized.
pub fn roots(catalog: &Catalog) -> Vec<Check> {
    let skills_in = |root: usize| catalog.skills_with_roots().filter(|(_, of)| *of == root).count();
    let mut checks = Vec::new();
    let mut missing = 0_usize;
    for (i, root) in catalog.roots.iter().enumerate() {
        let subject = format!("root {}", root.title());
        let asked_for = matches!(root.origin, RootOrigin::Argument | RootOrigin::Config);
        match &root.state {
            RootState::Present => checks.push(Check::good(subject, counted(skills_in(i), "skill"))),
            RootState::Missing if asked_for => checks.push(Check::problem(
                subject,
                format!("folder {} does not exist", root.path.display()),
                "create the folder, or set another root",
            )),
            RootState::Missing => missing += 1,
            RootState::Unreadable(why) => checks.push(Check::problem(
                subject,
                format!("cannot be read: {why}"),
                "check that it is a folder, its owner, and its permissions",
            )),
        }
    }
    let is_in_root = |path: &std::path::Path| catalog.roots.iter().any(|root| path.starts_with(&root.path));
    for folder in catalog.refused.iter().filter(|refusal| !is_in_root(&refusal.location)) {
        if let Some(finding) = folder.findings.last() {
            let subject = format!("folder {}", folder.id);
            checks.push(Check::note(subject, finding.message.clone(), finding.help.clone()));
        }
    }
    if missing > 0 {
        let one = "folder of known clients does not exist";
        let found = inflected(missing, one, "folders of known clients do not exist");
        checks.push(Check::good("other roots", found));
    }
    checks
}

/// Returns the checks from the diagnostics of the running core.
pub fn core(diagnostics: &Diagnostics) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.push(if diagnostics.refused == 0 {
        Check::good("skills", format!("{} usable, {} shadowed", diagnostics.skills, diagnostics.shadowed))
    } else {
        Check::note(
            "skills",
            format!(
                "{} usable, {} shadowed, {} rejected",
                diagnostics.skills, diagnostics.shadowed, diagnostics.refused
            ),
            "`skills lint` shows why",
        )
    });
    let IndexProgress { indexed, total, .. } = diagnostics.index;
    checks.push(Check::good("index", format!("{indexed} of {total} bodies indexed")));
    let (path, state) = &diagnostics.cache;
    checks.push(Check::good("cache", format!("{} ({state})", path.display())));
    for (matcher, failures) in &diagnostics.link_failures {
        if *failures > 0 {
            checks.push(Check::problem(
                format!("matcher {matcher}"),
                format!("skipped in {}", counted(*failures, "request")),
                "`skills discover` shows the reason; the other matchers continue to work",
            ));
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use skills_registry::Root;

    use super::*;

    fn root(label: &str, origin: RootOrigin, state: RootState) -> Root {
        Root {
            path: label.into(),
            label: label.into(),
            project_label: None,
            of_project: false,
            origin,
            state,
            live: true,
        }
    }

    fn catalog(roots: Vec<Root>) -> Catalog {
        Catalog { roots, ..Catalog::default() }
    }

    #[test]
    fn missing_folder_is_a_problem_only_if_configured() {
        let user = RootOrigin::User { client: "codex".into() };
        let catalog = catalog(vec![
            root("./nowhere", RootOrigin::Argument, RootState::Missing),
            root("~/.codex/skills", user, RootState::Missing),
            root("/skills", RootOrigin::Config, RootState::Present),
        ]);
        let checks = roots(&catalog);
        let health: Vec<Health> = checks.iter().map(|check| check.health).collect();
        assert_eq!(health, [Health::Problem, Health::Good, Health::Good]);
        assert_eq!(checks[1].found, "0 skills");
    }

    #[test]
    fn unreadable_root_has_help() {
        let state = RootState::Unreadable("permission denied".into());
        let checks = roots(&catalog(vec![root("/skills", RootOrigin::Argument, state)]));
        assert!(checks[0].found.contains("permission denied") && checks[0].advice.is_some());
    }
}
