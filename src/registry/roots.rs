//! Determines the roots, in order of precedence.
//!
//! Folders given as arguments are the only roots, because the user selected them explicitly. Otherwise: settings, then
//! the known clients' folders of the project (nearest folder first, up to the repository root), then those of the home
//! folder. The shipped skills are listed if all of these are empty, or alone on request.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::RootOrigin;
use skills_config::{Config, shown};
use skills_skill::client::{Folder, Profile, Scope};

/// A root before it is accessed on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootSpec {
    /// Absolute path.
    pub path: PathBuf,
    /// Its display form.
    pub label: String,
    /// Where it comes from.
    pub origin: RootOrigin,
}

/// When the skills embedded in this program are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShippedUse {
    /// Never: the user specified folders.
    Never,
    /// If no root contains a bundle.
    WhenEmpty,
    Only,
}

/// Returns the roots for these settings, each path once, at its highest precedence.
pub fn resolve(config: &Config, profiles: &[Profile]) -> (Vec<RootSpec>, ShippedUse) {
    if config.demo {
        return (Vec::new(), ShippedUse::Only);
    }
    let mut roots = Unique { config, seen: HashSet::new(), roots: Vec::new() };
    if !config.argument_roots.is_empty() {
        for path in &config.argument_roots {
            roots.add(path.clone(), None, RootOrigin::Argument);
        }
        return (roots.roots, ShippedUse::Never);
    }
    for root in &config.roots {
        roots.add(root.path.clone(), root.label.clone(), RootOrigin::Config);
    }
    for dir in project_folders(config) {
        for (client, folder) in folders(profiles, Scope::Project) {
            let origin = RootOrigin::Project { client: client.to_owned() };
            roots.add(dir.join(&folder.path), None, origin);
        }
    }
    for (client, folder) in folders(profiles, Scope::User) {
        let path = config.dirs.home.join(&folder.path);
        roots.add(path, None, RootOrigin::User { client: client.to_owned() });
    }
    (roots.roots, ShippedUse::WhenEmpty)
}

/// Yields the folders from the working directory up to the repository root, without the home folder (its client
/// folders belong to the user, not to a project).
pub(super) fn project_folders(config: &Config) -> impl Iterator<Item = &Path> {
    let top = config.repository.as_deref().unwrap_or(&config.cwd);
    let inside = config.cwd.ancestors().take_while(move |dir| dir.starts_with(top));
    inside.filter(|dir| *dir != config.dirs.home)
}

/// Returns the folders of all clients: first the one that most clients share (`.agents/skills`), then by client.
/// Excludes a plain `skills` folder, which is not specific to a client and would match that of any repository.
fn folders(profiles: &[Profile], scope: Scope) -> Vec<(&str, &Folder)> {
    let all = profiles.iter().flat_map(|profile| profile.folders.iter().map(|f| (profile.id.as_str(), f)));
    let mut all: Vec<_> = all.filter(|(_, f)| f.scope == scope && f.path.starts_with('.')).collect();
    all.sort_by_key(|(_, folder)| !folder.path.contains("agents/"));
    all
}

struct Unique<'a> {
    config: &'a Config,
    seen: HashSet<PathBuf>,
    roots: Vec<RootSpec>,
}

impl Unique<'_> {
    fn add(&mut self, path: PathBuf, label: Option<String>, origin: RootOrigin) {
        if self.seen.insert(path.clone()) {
            let label = label.unwrap_or_else(|| shown(&path, &self.config.cwd, &self.config.dirs.home));
            self.roots.push(RootSpec { path, label, origin });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_config::{Arguments, Env, RootChoice};
    use skills_skill::client::profiles;

    fn config() -> Config {
        let mut config = Config::defaults(Path::new("/home/ann/repo/a"), &Env::at("/home/ann"));
        config.repository = Some("/home/ann/repo".into());
        config
    }

    fn labels(config: &Config) -> Vec<String> {
        resolve(config, profiles()).0.into_iter().map(|root| root.label).collect()
    }

    #[test]
    fn roots_are_settings_project_and_home_in_order() {
        let mut config = config();
        config.roots = vec![RootChoice { path: "/srv/skills".into(), label: Some("team".to_owned()) }];
        let labels = labels(&config);
        let at = |label: &str| {
            labels.iter().position(|l| l == label).unwrap_or_else(|| panic!("{label} of {labels:?}"))
        };
        let order = [
            "team",
            "./.agents/skills",
            "./.claude/skills",
            "~/repo/.agents/skills",
            "~/repo/.github/skills",
            "~/.agents/skills",
            "~/.config/agents/skills",
            "~/.claude/skills",
        ];
        assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{labels:?}");
        for client in [".codex", ".cursor", ".gemini", ".opencode", ".goose"] {
            at(&format!("./{client}/skills"));
        }
        let unique: HashSet<_> = labels.iter().collect();
        assert_eq!(unique.len(), labels.len());
    }

    #[test]
    fn a_folder_given_as_argument_is_the_only_root() {
        let mut config = config();
        config.roots = vec![RootChoice { path: "/srv/skills".into(), label: None }];
        config.argument_roots = vec!["/x".into(), "/home/ann/y".into(), "/x".into()];
        assert_eq!(labels(&config), ["/x", "~/y"]);
        assert_eq!(resolve(&config, profiles()).1, ShippedUse::Never);
    }

    #[test]
    fn a_demo_reads_nothing_but_the_shipped_skills() {
        let arguments = Arguments { demo: true, ..Arguments::default() };
        let mut config = config();
        config.demo = arguments.demo;
        assert_eq!(resolve(&config, profiles()), (Vec::new(), ShippedUse::Only));
    }

    #[test]
    fn client_folders_in_home_belong_to_the_user() {
        let config = Config::defaults(Path::new("/home/ann"), &Env::at("/home/ann"));
        let (roots, _) = resolve(&config, profiles());
        assert!(roots.iter().all(|root| matches!(root.origin, RootOrigin::User { .. })), "{roots:?}");
    }
}
