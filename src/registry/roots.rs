//! Determines the roots, in order of precedence.
//!
//! Folders given as arguments are the only roots, because the user selected them explicitly. Otherwise: settings, then
//! the known clients' folders of the project (nearest folder first, up to the repository root), then those of the home
//! folder. The shipped skills are listed if all of these are empty, or alone on request.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use super::RootOrigin;
use skills_config::{Config, RootChoice, real_path, shown};
use skills_skill::client::{Folder, Profile, Scope};

/// A root before it is accessed on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootSpec {
    /// Absolute path.
    pub path: PathBuf,
    /// Its display form, by which rules name it.
    pub label: String,
    /// The label of a project's settings file: only for display.
    pub project_label: Option<String>,
    /// The real path of the project, if only that names the root: the folder of its settings file, or else the
    /// repository or working directory.
    pub project: Option<PathBuf>,
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
    let project = real_path(config.project());
    let mut roots = Unique { config, project, seen: HashSet::new(), roots: Vec::new() };
    if !config.argument_roots.is_empty() {
        for path in &config.argument_roots {
            roots.add(path.clone(), RootOrigin::Argument);
        }
        return (roots.roots, ShippedUse::Never);
    }
    let own: HashSet<PathBuf> = {
        let of_clients = folders(profiles, Scope::User).into_iter();
        let of_clients = of_clients.map(|(_, folder)| config.dirs.home.join(&folder.path));
        let configured = config.roots.iter().filter(|root| !root.of_project).map(|root| root.path.clone());
        of_clients.chain(configured).flat_map(|path| [real_path(&path), path]).collect()
    };
    let is_inside = |root: &&RootChoice| {
        let is_below = root.path.starts_with(config.project());
        is_below && root.path.components().all(|part| part != Component::ParentDir)
    };
    for root in config.roots.iter().filter(|root| !root.of_project || is_inside(root)) {
        // A project does not change the precedence of the user's own roots.
        if !root.of_project || !own.contains(&root.path) {
            roots.add_configured(root, &root.path);
        }
    }
    for dir in project_folders(config) {
        for (client, folder) in folders(profiles, Scope::Project) {
            let origin = RootOrigin::Project { client: client.to_owned() };
            roots.add(dir.join(&folder.path), origin);
        }
    }
    for (client, folder) in folders(profiles, Scope::User) {
        let path = config.dirs.home.join(&folder.path);
        roots.add(path, RootOrigin::User { client: client.to_owned() });
    }
    for root in config.roots.iter().filter(|root| root.of_project && !is_inside(root)) {
        // By its real path, because a link outside the project can lead back into it; after the user's own roots.
        let path = real_path(&root.path);
        if !own.contains(&path) {
            roots.add_configured(root, &path);
        }
    }
    (roots.roots, ShippedUse::WhenEmpty)
}

/// Yields the folders from the working directory up to the repository root, without the home folder (its client
/// folders belong to the user, not to a project).
pub(super) fn project_folders(config: &Config) -> impl Iterator<Item = &Path> {
    let top = config.project();
    let inside = config.cwd.ancestors().take_while(move |dir| dir.starts_with(top));
    let home = real_path(&config.dirs.home);
    inside.filter(move |dir| real_path(dir) != home)
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
    /// The real path of the repository or working directory.
    project: PathBuf,
    seen: HashSet<PathBuf>,
    roots: Vec<RootSpec>,
}

impl Unique<'_> {
    fn add(&mut self, path: PathBuf, origin: RootOrigin) {
        if self.seen.insert(path.clone()) {
            let label = shown(&path, &self.config.cwd, &self.config.dirs.home);
            let settings = self.config.project_file_folder().filter(|folder| path.starts_with(folder));
            let project = matches!(origin, RootOrigin::Project { .. })
                .then(|| settings.map_or_else(|| self.project.clone(), real_path));
            self.roots.push(RootSpec { path, label, project_label: None, project, origin });
        }
    }

    /// Adds a root of the settings. A root of a project's file has the label that the user's file gives to its folder,
    /// if any: the rules of the user's policy name it so.
    fn add_configured(&mut self, root: &RootChoice, path: &Path) {
        let before = self.roots.len();
        self.add(path.to_owned(), RootOrigin::Config);
        if let Some(added) = self.roots.get_mut(before) {
            let mut same = self.config.roots.iter().filter(|other| other.path == root.path);
            let is_of_project = same.clone().all(|other| other.of_project);
            // The repository around a settings file need not be of the same author.
            let settings = self.config.project_file_folder();
            added.project = is_of_project.then(|| settings.map_or_else(|| self.project.clone(), real_path));
            match same.find_map(|other| other.label.clone()) {
                Some(label) => added.label = label,
                None => added.project_label.clone_from(&root.project_label),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_config::{Arguments, Env};
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
        config.roots = vec![RootChoice {
            path: "/srv/skills".into(),
            label: Some("team".to_owned()),
            project_label: None,
            of_project: false,
        }];
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
        config.roots = vec![RootChoice {
            path: "/srv/skills".into(),
            label: None,
            project_label: None,
            of_project: false,
        }];
        config.argument_roots = vec!["/x".into(), "/home/ann/y".into(), "/x".into()];
        assert_eq!(labels(&config), ["/x", "~/y"]);
        assert_eq!(resolve(&config, profiles()).1, ShippedUse::Never);
    }

    #[test]
    fn a_projects_label_replaces_no_name_that_rules_use() {
        let mut config = config();
        let root = |path: &str, label: Option<&str>, project_label: Option<&str>| RootChoice {
            path: path.into(),
            label: label.map(str::to_owned),
            project_label: project_label.map(str::to_owned),
            of_project: project_label.is_some(),
        };
        config.roots = vec![
            root("/home/ann/repo/a/ev", None, Some("shipped")),
            root("/home/ann/team", None, Some("mine")),
            root("/home/ann/team", Some("team"), None),
        ];
        let roots = resolve(&config, profiles()).0;
        let names = |root: &RootSpec| (root.label.clone(), root.project_label.clone());
        assert_eq!(names(&roots[0]), ("./ev".to_owned(), Some("shipped".to_owned())));
        assert_eq!(names(&roots[1]), ("team".to_owned(), None));
    }

    #[test]
    fn a_demo_reads_nothing_but_the_shipped_skills() {
        let arguments = Arguments { demo: true, ..Arguments::default() };
        let mut config = config();
        config.demo = arguments.demo;
        assert_eq!(resolve(&config, profiles()), (Vec::new(), ShippedUse::Only));
    }

    #[cfg(unix)]
    #[test]
    fn client_folders_in_a_linked_home_belong_to_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let real = real_path(dir.path()).join("real");
        std::fs::create_dir_all(real.join("src/evil")).unwrap();
        std::fs::create_dir(real.join(".git")).unwrap();
        let home = dir.path().join("home");
        std::os::unix::fs::symlink(&real, &home).unwrap();
        let config = Config::defaults(&real, &Env::at(&home));
        assert_eq!(project_folders(&config).count(), 0);
        let config = Config::defaults(&real.join("src/evil"), &Env::at(&home));
        assert_eq!(
            config.project(),
            real.join("src/evil"),
            "a repository around the home folder is not the project"
        );
        assert_eq!(project_folders(&config).collect::<Vec<_>>(), [real.join("src/evil")]);
    }

    #[test]
    fn the_project_of_a_settings_file_is_its_folder() {
        let mut config = config();
        config.files = vec!["/home/ann/repo/a/.skill-workbench.yaml".into()];
        config.roots = vec![RootChoice {
            path: "/home/ann/repo/a/sk".into(),
            label: None,
            project_label: None,
            of_project: true,
        }];
        let roots = resolve(&config, profiles()).0;
        let project = |path: &str| {
            let root = roots.iter().find(|root| root.path == Path::new(path)).expect(path);
            root.project.as_deref()
        };
        let (folder, repository) = (Path::new("/home/ann/repo/a"), Path::new("/home/ann/repo"));
        assert_eq!(project("/home/ann/repo/a/sk"), Some(folder));
        assert_eq!(project("/home/ann/repo/a/.agents/skills"), Some(folder));
        assert_eq!(project("/home/ann/repo/.agents/skills"), Some(repository));
        assert_eq!(project("/home/ann/.agents/skills"), None);
    }

    #[test]
    fn client_folders_in_home_belong_to_the_user() {
        let config = Config::defaults(Path::new("/home/ann"), &Env::at("/home/ann"));
        let (roots, _) = resolve(&config, profiles());
        assert!(roots.iter().all(|root| matches!(root.origin, RootOrigin::User { .. })), "{roots:?}");
    }
}
