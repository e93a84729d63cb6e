//! Merges the layers: defaults, the user's file, the project's file, environment, arguments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_saphyr::{Location, Spanned};

use super::dirs::ABSOLUTE_ONLY;
use super::file::{
    Layer, MAX_LIMIT, MatcherLayer, ScriptsLayer, allowed, parse, parse_yaml, place, syntax_error,
    without_entry, without_key, wrong,
};
use super::runs::RunsLayer;
use super::services::ServiceLayer;
use super::values::{WrittenKeys, WrittenRoot};
use super::{
    AuditLog, ConfigError, Dirs, Env, GlyphSet, Keys, LocationInFile, MatcherSettings, Notify, RankPolicy,
    Retention, RunSettings, Scripts, TerminalFeatures, expand, real_path, repository_root, services,
};
use skills_base::private_files::FILE_MODE;
use skills_skill::client;
use skills_skill::contract::{Conformance, Endpoint};

/// Name of the project's settings file, which is searched from the working directory up to the repository root.
pub const PROJECT_FILE: &str = ".skill-workbench.yaml";

/// The actions whose keys a project's file may set, by context: they move, sort, filter or show. All others send,
/// write, start or decide something, or stop that, depending on where the focus is; a new action or context belongs to
/// these until it is named here.
pub const PROJECT_KEYS: [(&str, &[&str]); 8] = [
    (
        "global",
        &[
            "go-browse",
            "go-discover",
            "go-attach",
            "go-session",
            "go-runs",
            "go-golden",
            "go-proposals",
            "next-part",
            "previous-part",
            "next-tab",
            "previous-tab",
            "palette",
            "help",
            "full-screen",
            "split-narrower",
            "split-wider",
            "pick-theme",
            "show-log",
            "show-clients",
            "play-demo",
            "rescan",
            "redraw",
            "suspend",
            "back",
            "quit",
        ],
    ),
    ("list", &["up", "down", "page-up", "page-down", "top", "bottom", "fold", "filter", "copy", "copy-as"]),
    ("text", &["up", "down", "page-up", "page-down", "top", "bottom", "filter", "copy", "copy-as"]),
    (
        "browse",
        &["sort", "group-by", "pick-client", "discover-this", "open-by-name", "why", "show-collisions"],
    ),
    ("browse-detail", &["pick-client", "discover-this", "open-by-name", "why", "show-collisions"]),
    ("browse-map", &["left", "right", "next-collision", "zoom-cluster", "open-by-name", "show-collisions"]),
    (
        "discover",
        &["focus-intent", "toggle-policy", "cycle-role", "pick-domain", "toggle-body", "open-by-name", "why"],
    ),
    ("discover-intent", &["history-earlier", "history-later", "down"]),
];

/// Returns whether a project's file may set the keys of an action.
fn may_bind(context: &str, action: &str) -> bool {
    let mut contexts = PROJECT_KEYS.iter().filter(|(name, _)| *name == context);
    contexts.any(|(_, actions)| actions.contains(&action))
}

/// Environment variables with settings, each with its meaning.
pub const VARIABLES: [(&str, &str); 16] = [
    ("SKILLS_CONFIG", "a configuration file to use instead of the default config.yaml"),
    (
        "SKILLS_ROOTS",
        "folders, separated as in PATH; take precedence over the files; a relative one counts as a project's",
    ),
    ("SKILLS_WATCH", "`true` or `false`"),
    ("SKILLS_THEME", "the name of a theme"),
    ("SKILLS_GLYPHS", "`auto`, `unicode` or `ascii`"),
    ("SKILLS_EDITOR", "a command line; takes precedence over VISUAL and EDITOR"),
    ("SKILLS_POLICY", "`blended` or `strict`"),
    ("SKILLS_LIMIT", "an integer from 1 to 1000"),
    ("SKILLS_WITH_BODY", "`true` or `false`"),
    ("SKILLS_CLIENT", "the id of a client profile"),
    ("SKILLS_CONNECT", "the address of a service"),
    ("SKILLS_STORE", "`sqlite:PATH`, `postgres://USER@HOST/DATABASE` or `memory:`"),
    ("SKILLS_PLAIN", "`true` or `false`"),
    ("SKILLS_REDUCED_MOTION", "`true` or `false`"),
    ("SKILLS_HYPERLINKS", "`true` or `false`"),
    ("SKILLS_PROGRESS", "`true` or `false`"),
];

/// Who reads the messages of the core: they advise only what can be done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Audience {
    /// The user of a command, who can repeat it with other options.
    #[default]
    CommandLine,
    /// The user of the workbench, who can start it with other options.
    Workbench,
    /// Callers over HTTP and MCP, who have no options.
    Service,
}

/// Settings from the command line; `None` for options that are not given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arguments {
    /// `--root`, as given.
    pub roots: Vec<PathBuf>,
    /// `--demo`: only the shipped skills.
    pub demo: bool,
    /// False with `--no-watch`.
    pub watch: Option<bool>,
    /// `--theme`.
    pub theme: Option<String>,
    /// `--glyphs`.
    pub glyphs: Option<GlyphSet>,
    /// `--client`.
    pub client: Option<String>,
    /// `--store`.
    pub store: Option<String>,
    /// By `--store-must-exist`, and by what the command does.
    pub missing_store: MissingStore,
    /// By the command.
    pub audience: Audience,
    /// `--connect`.
    pub connect: Option<String>,
    /// `--api-key-file`.
    pub api_key_file: Option<PathBuf>,
}

/// A root from a settings file or the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootChoice {
    /// Absolute path.
    pub path: PathBuf,
    /// The user's label for it.
    pub label: Option<String>,
    /// The label of a project's file: only for display.
    pub project_label: Option<String>,
    /// Whether a project's file names it.
    pub of_project: bool,
}

/// The effective settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// File locations.
    pub dirs: Dirs,
    /// The working directory, the base of relative paths and project folders.
    pub cwd: PathBuf,
    /// The repository that contains the working directory.
    pub repository: Option<PathBuf>,
    /// Folders given as arguments, absolute; if there are any, they are the only roots.
    pub argument_roots: Vec<PathBuf>,
    /// Whether only the shipped skills are used.
    pub demo: bool,
    /// Folders from environment, project file and user file, in that order.
    pub roots: Vec<RootChoice>,
    /// Whether changes on disk are watched.
    pub watch: bool,
    /// Name of a theme; `None` selects one by the terminal's background.
    pub theme: Option<String>,
    /// The characters that are used for drawing.
    pub glyphs: GlyphSet,
    /// The user's key bindings, which override the defaults.
    pub keys: Keys,
    /// Key bindings of the project's file, which override those of the user.
    pub project_keys: Keys,
    /// Command line of the editor.
    pub editor: Option<String>,
    /// Which matchers are enabled.
    pub matchers: MatcherSettings,
    /// How rules combine with the text score.
    pub policy: RankPolicy,
    /// Maximum number of results, if configured.
    pub limit: Option<usize>,
    /// Whether headings and bodies are ranked.
    pub with_body: bool,
    /// The client whose view of the catalog is shown.
    pub client: Option<String>,
    /// Folders whose contracts, scripts and bindings are trusted in any version; absolute.
    pub trust: Vec<PathBuf>,
    /// The user's policy file, if it is not the default one; absolute.
    pub policy_file: Option<PathBuf>,
    /// Upstream services of bindings, by id.
    pub services: BTreeMap<String, Endpoint>,
    /// The binding of a capability, where the default is overridden.
    pub bindings: BTreeMap<String, String>,
    /// Minimum conformance level of a binding.
    pub conformance: Conformance,
    /// The level of detail of the audit log.
    pub audit: AuditLog,
    /// Where runs are stored, `sqlite:PATH` or `memory:`; default: a file in the data folder.
    pub store: Option<String>,
    /// Permissions of the store's files; more than 0600 gives access to the group of their folder.
    pub store_mode: u32,
    /// What to do if the store does not exist.
    pub missing_store: MissingStore,
    /// Who reads the messages of this process.
    pub audience: Audience,
    /// Maximum number of concurrent runs of a process; the default depends on the machine.
    pub workers: Option<usize>,
    /// Where scripts write, and how much.
    pub scripts: Scripts,
    /// How the user is notified that a run is waiting.
    pub notify: Notify,
    /// How runs are listed and how long they wait.
    pub runs: RunSettings,
    /// When ended runs are deleted.
    pub retention: Retention,
    /// Whether animations are disabled.
    pub reduced_motion: bool,
    /// Whether commands use the line-based text interface for screen readers.
    pub plain: bool,
    /// Terminal features in use: the detected ones, unless overridden by the settings.
    pub terminal: TerminalFeatures,
    /// The address of the service to use instead of this machine.
    pub connect: Option<String>,
    /// The file with the API key for it; absolute.
    pub api_key_file: Option<PathBuf>,
    /// The settings files that were read, the user's first.
    pub files: Vec<PathBuf>,
    /// Positions of single values: `theme`, `client`, `keys.CONTEXT.ACTION`, `project_keys.CONTEXT.ACTION`.
    pub places: BTreeMap<String, LocationInFile>,
}

impl Config {
    /// Loads the settings for a working directory and an environment.
    ///
    /// # Errors
    /// Returns the first error in a file or variable; [`check`] returns all of them.
    pub fn load(cwd: &Path, env: &Env, arguments: &Arguments) -> Result<Self, ConfigError> {
        let mut config = Self::defaults(cwd, env);
        for (file, own) in config.candidates() {
            if let Some(layer) = read(&file, own)? {
                config.apply(layer, &file, own)?;
                config.files.push(file);
            }
        }
        config.apply_environment(env)?;
        config.apply_arguments(arguments);
        Ok(config)
    }

    /// Applies a settings file without the entries that have errors; returns the errors.
    fn errors_of(&mut self, mut text: String, file: &Path, own: bool) -> Vec<ConfigError> {
        if let Some(error) = syntax_error(file, &text) {
            return vec![error];
        }
        let mut errors = Vec::new();
        while errors.len() < MAX_ERRORS_PER_FILE {
            let mut applied = self.clone();
            let layer = parse_yaml(file, &text);
            let Err(error) = layer.and_then(|layer| applied.apply(layer, file, own)) else {
                *self = applied;
                return errors;
            };
            let rest = match &error {
                // The whole key is refused, not one of its entries.
                ConfigError::InFile { place, allowed, .. } if allowed == OWN_ONLY => {
                    without_key(&text, place.line)
                }
                ConfigError::InFile { place, .. } => without_entry(&text, place.line),
                _ => None,
            };
            errors.push(error);
            let Some(rest) = rest else { return errors };
            text = rest;
        }
        errors
    }

    /// Returns the folder whose content may be anyone's: the repository of the working directory, or that directory itself
    /// if it is in no repository, or in one that contains the home folder.
    pub fn project(&self) -> &Path {
        let repository = self.repository.as_deref().filter(|top| !self.contains_home(top));
        repository.unwrap_or(&self.cwd)
    }

    /// Returns whether a folder is the home folder or one above it. Real paths are compared too: the working directory has
    /// no links in its path, but `HOME` may.
    pub fn contains_home(&self, folder: &Path) -> bool {
        self.dirs.home.starts_with(folder) || real_path(&self.dirs.home).starts_with(real_path(folder))
    }

    /// Returns the folder of the project's settings file, if that was read.
    pub fn project_file_folder(&self) -> Option<&Path> {
        let own = self.dirs.config_file();
        let is_project =
            |file: &&PathBuf| file.file_name().is_some_and(|name| name == PROJECT_FILE) && **file != own;
        self.files.iter().find(is_project).and_then(|file| file.parent())
    }

    pub fn defaults(cwd: &Path, env: &Env) -> Self {
        Self {
            dirs: Dirs::new(env),
            cwd: cwd.to_owned(),
            repository: repository_root(cwd),
            argument_roots: Vec::new(),
            demo: false,
            roots: Vec::new(),
            watch: true,
            theme: None,
            glyphs: GlyphSet::Auto,
            keys: Keys::new(),
            project_keys: Keys::new(),
            editor: env.get("VISUAL").or_else(|| env.get("EDITOR")).map(str::to_owned),
            matchers: MatcherSettings::default(),
            policy: RankPolicy::Blended,
            limit: None,
            with_body: true,
            client: None,
            store: None,
            connect: None,
            api_key_file: None,
            trust: Vec::new(),
            policy_file: None,
            services: BTreeMap::new(),
            bindings: BTreeMap::new(),
            conformance: Conformance::default(),
            audit: AuditLog::default(),
            store_mode: FILE_MODE,
            missing_store: MissingStore::Create,
            audience: Audience::default(),
            workers: None,
            scripts: Scripts::default(),
            notify: Notify::default(),
            runs: RunSettings::default(),
            retention: Retention::default(),
            reduced_motion: false,
            plain: false,
            terminal: TerminalFeatures::of(env),
            files: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    /// Returns the file for golden queries of the user: `golden.yaml` next to the project's settings file, or in the
    /// user's settings folder. `None` for the demonstration, which leaves no files.
    pub fn golden_file(&self) -> Option<PathBuf> {
        let project = self.project_file_folder();
        (!self.demo).then(|| project.unwrap_or(&self.dirs.config).join("golden.yaml"))
    }

    /// Returns the possible settings files in order of application, and whether each is the user's own.
    fn candidates(&self) -> Vec<(PathBuf, bool)> {
        let top = self.project();
        let inside = self.cwd.ancestors().take_while(|dir| dir.starts_with(top));
        let project = inside.map(|dir| dir.join(PROJECT_FILE)).find(|file| file.exists());
        let own = (self.dirs.config_file(), true);
        std::iter::once(own).chain(project.map(|file| (file, false))).collect()
    }

    fn apply(&mut self, layer: Layer, path: &Path, own: bool) -> Result<(), ConfigError> {
        let file = LayerFile { path, folder: path.parent().unwrap_or(Path::new("/")), own };
        self.apply_roots(layer.roots.unwrap_or_default(), file)?;
        set(&mut self.watch, layer.watch);
        set(&mut self.glyphs, layer.glyphs);
        set(&mut self.policy, layer.policy);
        set(&mut self.with_body, layer.with_body);
        set(&mut self.reduced_motion, layer.reduced_motion);
        if let Some(plain) = layer.plain {
            file.ensure_own(plain.referenced, "`plain`", "choose how its texts are shown")?;
            self.plain = plain.value;
        }
        set(&mut self.terminal.hyperlinks, layer.hyperlinks);
        set(&mut self.terminal.progress, layer.progress);
        self.limit = layer.limit.map(|limit| limit.value).or(self.limit);
        self.apply_matchers(layer.matchers.unwrap_or_default());
        if let Some(theme) = layer.theme {
            self.places.insert("theme".to_owned(), file.place(theme.referenced));
            self.theme = Some(theme.value);
        }
        if let Some(client) = layer.client {
            self.apply_client(client, file)?;
        }
        if let Some(trust) = layer.trust {
            file.ensure_own(trust.referenced, "`trust`", "trust itself")?;
            for path in trust.value {
                self.trust.push(file.resolve(&path, &self.dirs.home)?);
            }
        }
        if let Some(policy) = layer.policy_file {
            file.ensure_own(policy.referenced, "`policy_file`", "loosen your policy")?;
            self.places.insert("policy_file".to_owned(), file.place(policy.referenced));
            self.policy_file = Some(expand(&policy.value, file.folder, &self.dirs.home));
        }
        if let Some(editor) = layer.editor {
            file.ensure_own(editor.referenced, "`editor`", "choose what runs on your machine")?;
            self.editor = Some(editor.value);
        }
        if let Some(conformance) = layer.conformance {
            if conformance.value < self.conformance {
                file.ensure_own(
                    conformance.referenced,
                    "a lower `conformance`",
                    "weaken the checks of outputs",
                )?;
            }
            self.conformance = conformance.value;
        }
        if let Some(audit) = layer.audit {
            file.ensure_own(audit.referenced, "`audit`", "disable your audit log")?;
            self.audit = audit.value;
        }
        if let Some(workers) = layer.workers {
            if self.workers.is_some_and(|most| workers.value > most) {
                file.ensure_own(workers.referenced, "more `workers`", "exceed your limit")?;
            }
            self.workers = Some(workers.value);
        }
        if let Some(scripts) = layer.scripts {
            self.apply_scripts(scripts, file)?;
        }
        if let Some(notify) = layer.notify {
            file.ensure_own(notify.referenced, "`notify`", "send messages about your runs")?;
            self.places.insert("notify".to_owned(), file.place(notify.referenced));
            self.notify.apply(notify, path)?;
        }
        if let Some(runs) = layer.runs {
            self.apply_runs(runs, file)?;
        }
        if let Some(retention) = layer.retention {
            file.ensure_own(retention.referenced, "`retention`", "delete your runs")?;
            self.retention.apply(&retention.value, path)?;
        }
        if let Some(connect) = layer.connect {
            file.ensure_own(connect.referenced, "`connect`", "choose the service that you use")?;
            self.places.insert("connect".to_owned(), file.place(connect.referenced));
            self.connect = Some(connect.value).filter(|address| !address.trim().is_empty());
        }
        if let Some(key) = layer.api_key_file {
            file.ensure_own(key.referenced, "`api_key_file`", "choose a file to send")?;
            self.places.insert("api_key_file".to_owned(), file.place(key.referenced));
            self.api_key_file = Some(expand(&key.value, file.folder, &self.dirs.home));
        }
        if let Some(store) = layer.store {
            file.ensure_own(store.referenced, "`store`", "choose where your runs are recorded")?;
            self.places.insert("store".to_owned(), file.place(store.referenced));
            self.store = Some(store_place(&store.value, file.folder, &self.dirs.home));
        }
        if let Some(mode) = layer.store_mode {
            file.ensure_own(mode.referenced, "`store_mode`", "open your store to others")?;
            self.store_mode = store_mode(&mode, file)?;
        }
        self.apply_bindings(layer.services.unwrap_or_default(), layer.bindings.unwrap_or_default(), file)?;
        self.apply_keys(layer.keys.unwrap_or_default(), file)
    }

    fn apply_roots(
        &mut self,
        roots: Vec<Spanned<WrittenRoot>>,
        file: LayerFile<'_>,
    ) -> Result<(), ConfigError> {
        let mut choices = Vec::new();
        for root in roots {
            let path = file.resolve_at(&root.value.path, root.referenced, &self.dirs.home)?;
            let label = root.value.label;
            let (label, project_label) = if file.own { (label, None) } else { (None, label) };
            choices.push(RootChoice { path, label, project_label, of_project: !file.own });
        }
        self.roots.splice(0..0, choices);
        Ok(())
    }

    fn apply_matchers(&mut self, matchers: MatcherLayer) {
        set(&mut self.matchers.exact, matchers.exact);
        set(&mut self.matchers.lexical, matchers.lexical);
        set(&mut self.matchers.typo, matchers.typo);
        set(&mut self.matchers.presence, matchers.presence);
        set(&mut self.matchers.task, matchers.task);
        set(&mut self.matchers.semantic, matchers.semantic);
    }

    fn apply_client(&mut self, client: Spanned<String>, file: LayerFile<'_>) -> Result<(), ConfigError> {
        let at = file.place(client.referenced);
        if client::profile(&client.value).is_none() {
            return Err(wrong(at, format!("unknown client profile `{}`", client.value), known_clients()));
        }
        self.places.insert("client".to_owned(), at);
        self.client = Some(client.value);
        Ok(())
    }

    fn apply_scripts(
        &mut self,
        scripts: Spanned<ScriptsLayer>,
        file: LayerFile<'_>,
    ) -> Result<(), ConfigError> {
        file.ensure_own(scripts.referenced, "`scripts`", "choose how much of your disk it fills")?;
        self.places.insert("scripts".to_owned(), file.place(scripts.referenced));
        let ScriptsLayer { disk_mb, files, work_dir } = scripts.value;
        self.scripts.disk = disk_mb.map(|disk| disk.value << 20).or(self.scripts.disk);
        self.scripts.files = files.map(|files| files.value).or(self.scripts.files);
        if let Some(work_dir) = work_dir {
            self.scripts.work_dir = Some(file.resolve(&work_dir, &self.dirs.home)?);
        }
        Ok(())
    }

    fn apply_runs(&mut self, runs: RunsLayer, file: LayerFile<'_>) -> Result<(), ConfigError> {
        let at = runs.expires_in.as_ref().map(|written| written.referenced);
        let limit = self.runs.expires_in;
        self.runs.apply(runs, file.path)?;
        if let (Some(at), Some(limit)) = (at, limit)
            && self.runs.expires_in.is_some_and(|expires_in| expires_in > limit)
        {
            file.ensure_own(at, "a longer `runs.expires_in`", "extend your deadline for approvals")?;
        }
        Ok(())
    }

    fn apply_bindings(
        &mut self,
        services: BTreeMap<String, Spanned<ServiceLayer>>,
        bindings: BTreeMap<String, Spanned<String>>,
        file: LayerFile<'_>,
    ) -> Result<(), ConfigError> {
        for (id, service) in services {
            let at = service.referenced;
            file.ensure_own(at, "`services`", "choose what runs on your machine")?;
            let endpoint = services::endpoint(&id, service, file.path, &self.dirs.home)?;
            self.places.insert(format!("services.{id}"), file.place(at));
            self.services.insert(id, endpoint);
        }
        for (capability, binding) in bindings {
            file.ensure_own(binding.referenced, "`bindings`", "choose where your data goes")?;
            self.places.insert(format!("bindings.{capability}"), file.place(binding.referenced));
            self.bindings.insert(capability, binding.value);
        }
        Ok(())
    }

    fn apply_keys(
        &mut self,
        contexts: BTreeMap<String, BTreeMap<String, Spanned<WrittenKeys>>>,
        file: LayerFile<'_>,
    ) -> Result<(), ConfigError> {
        let (bound, layer) =
            if file.own { (&mut self.keys, "keys") } else { (&mut self.project_keys, "project_keys") };
        for (context, actions) in contexts {
            for (action, keys) in actions {
                if !may_bind(&context, &action) {
                    file.ensure_own(
                        keys.referenced,
                        &format!("`keys.{context}.{action}`"),
                        "choose keys that send, start or decide something",
                    )?;
                }
                self.places.insert(format!("{layer}.{context}.{action}"), file.place(keys.referenced));
                bound.entry(context.clone()).or_default().insert(action, keys.value.0);
            }
        }
        Ok(())
    }

    fn apply_environment(&mut self, env: &Env) -> Result<(), ConfigError> {
        if let Some(paths) = env.get("SKILLS_ROOTS") {
            let paths = std::env::split_paths(paths).filter(|path| !path.as_os_str().is_empty());
            let root = |path: PathBuf| {
                let path = path.to_string_lossy();
                RootChoice {
                    path: expand(&path, &self.cwd, &self.dirs.home),
                    label: None,
                    project_label: None,
                    // In each project it is another folder.
                    of_project: !is_absolute(&path),
                }
            };
            let roots: Vec<_> = paths.map(root).collect();
            self.roots.splice(0..0, roots);
        }
        set(&mut self.watch, variable(env, "SKILLS_WATCH")?);
        set(&mut self.glyphs, variable(env, "SKILLS_GLYPHS")?);
        set(&mut self.policy, variable(env, "SKILLS_POLICY")?);
        set(&mut self.with_body, variable(env, "SKILLS_WITH_BODY")?);
        set(&mut self.plain, switch(env, "SKILLS_PLAIN")?);
        set(&mut self.terminal.hyperlinks, switch(env, "SKILLS_HYPERLINKS")?);
        set(&mut self.terminal.progress, switch(env, "SKILLS_PROGRESS")?);
        set(&mut self.reduced_motion, switch(env, "SKILLS_REDUCED_MOTION")?);
        if let Some(limit) = variable::<usize>(env, "SKILLS_LIMIT")? {
            if !(1..=MAX_LIMIT).contains(&limit) {
                return Err(in_environment("SKILLS_LIMIT", &limit.to_string()));
            }
            self.limit = Some(limit);
        }
        if let Some(client) = env.get("SKILLS_CLIENT") {
            if client::profile(client).is_none() {
                let (name, value) = ("SKILLS_CLIENT".to_owned(), client.to_owned());
                return Err(ConfigError::InEnvironment { name, value, allowed: known_clients() });
            }
            self.client = Some(client.to_owned());
        }
        if env.get("SKILLS_API_KEY").is_some() {
            // The key itself takes precedence over a file with a key in another layer.
            self.api_key_file = None;
        }
        self.connect = env.get("SKILLS_CONNECT").map(str::to_owned).or(self.connect.take());
        if let Some(store) = env.get("SKILLS_STORE") {
            ensure_absolute_store(store)?;
            self.store = Some(store_place(store, &self.cwd, &self.dirs.home));
        }
        self.theme = env.get("SKILLS_THEME").map(str::to_owned).or(self.theme.take());
        self.editor = env.get("SKILLS_EDITOR").map(str::to_owned).or(self.editor.take());
        Ok(())
    }

    fn apply_arguments(&mut self, arguments: &Arguments) {
        let root = |path: &PathBuf| expand(&path.to_string_lossy(), &self.cwd, &self.dirs.home);
        self.argument_roots = arguments.roots.iter().map(root).collect();
        self.demo = arguments.demo;
        set(&mut self.watch, arguments.watch);
        set(&mut self.glyphs, arguments.glyphs);
        self.theme = arguments.theme.clone().or(self.theme.take());
        self.client = arguments.client.clone().or(self.client.take());
        let store_path =
            arguments.store.as_deref().map(|store| store_place(store, &self.cwd, &self.dirs.home));
        // A demonstration leaves no files, unless a store is given.
        let passing = arguments.demo.then(|| MEMORY_STORE.to_owned());
        self.store = store_path.or(passing).or(self.store.take());
        self.missing_store = arguments.missing_store.of(self.store.is_some());
        self.audience = arguments.audience;
        // Roots or a store given as arguments refer to this machine, so they override a configured address unless
        // `--connect` is also given.
        let here = arguments.demo || !arguments.roots.is_empty() || arguments.store.is_some();
        self.connect = arguments.connect.clone().or(self.connect.take().filter(|_| !here));
        let file = arguments.api_key_file.as_ref();
        let file = file.map(|file| expand(&file.to_string_lossy(), &self.cwd, &self.dirs.home));
        self.api_key_file = file.or(self.api_key_file.take());
    }
}

/// The settings file of a layer.
#[derive(Clone, Copy)]
struct LayerFile<'a> {
    path: &'a Path,
    /// The folder that relative paths refer to.
    folder: &'a Path,
    /// Whether it is the user's own file, not a project's.
    own: bool,
}

impl LayerFile<'_> {
    fn place(self, at: Location) -> LocationInFile {
        place(self.path, at)
    }

    /// Rejects a key that is only allowed in the user's own file, with what it `would` let a repository do.
    fn ensure_own(self, at: Location, key: &str, would: &str) -> Result<(), ConfigError> {
        if self.own {
            return Ok(());
        }
        let message = format!("{key} in a project's file would let a repository {would}");
        Err(wrong(self.place(at), message, OWN_ONLY))
    }

    fn resolve(self, path: &Spanned<String>, home: &Path) -> Result<PathBuf, ConfigError> {
        self.resolve_at(&path.value, path.referenced, home)
    }

    /// Resolves a path, which must not be empty.
    fn resolve_at(self, path: &str, at: Location, home: &Path) -> Result<PathBuf, ConfigError> {
        if path.trim().is_empty() {
            let allowed = "allowed: a folder, absolute, with `~`, or relative to this file";
            return Err(wrong(self.place(at), "an empty path", allowed));
        }
        Ok(expand(path, self.folder, home))
    }
}

/// Parses the permissions of the store's files.
fn store_mode(mode: &Spanned<String>, file: LayerFile<'_>) -> Result<u32, ConfigError> {
    match mode.value.trim_start_matches("0o").trim_start_matches('0') {
        "600" => Ok(0o600),
        "640" => Ok(0o640),
        "660" => Ok(0o660),
        _ => {
            let message = format!("`store_mode` is `{}`", mode.value);
            let allowed = format!("allowed: {}", allowed("store_mode").unwrap_or_default());
            Err(wrong(file.place(mode.referenced), message, allowed))
        }
    }
}

/// What to do if the store does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingStore {
    #[default]
    Create,
    /// Create the default store; refuse one that the settings name, whose path may be mistyped.
    CreateDefault,
    /// Read the default store as an empty one; refuse one that the settings name.
    EmptyDefault,
    Refuse,
}

impl MissingStore {
    /// Resolves it for a store that the settings name, or for the default one.
    fn of(self, named: bool) -> Self {
        match (self, named) {
            (Self::CreateDefault | Self::EmptyDefault, true) => Self::Refuse,
            (Self::CreateDefault, false) => Self::Create,
            (other, _) => other,
        }
    }
}

/// The store that exists only as long as the process.
pub const MEMORY_STORE: &str = "memory:";

/// Makes the path in a store's address absolute.
fn store_place(store: &str, folder: &Path, home: &Path) -> String {
    match store.strip_prefix("sqlite:") {
        Some(path) => format!("sqlite:{}", expand(path, folder, home).display()),
        None => store.to_owned(),
    }
}

/// Returns whether a path in the environment does not depend on the working directory, which may be that of a project.
fn is_absolute(path: &str) -> bool {
    Path::new(path).is_absolute() || path == "~" || path.starts_with("~/")
}

/// Checks that the file of a store in the environment is not in the working directory, as that of another project.
fn ensure_absolute_store(store: &str) -> Result<(), ConfigError> {
    if is_absolute(store.strip_prefix("sqlite:").unwrap_or("/")) {
        return Ok(());
    }
    let (name, value) = ("SKILLS_STORE".to_owned(), store.to_owned());
    Err(ConfigError::InEnvironment { name, value, allowed: ABSOLUTE_ONLY.to_owned() })
}

/// Maximum number of errors reported of one file: each one is found by parsing the file again.
pub const MAX_ERRORS_PER_FILE: usize = 50;

/// Returns the errors in the settings files and variables, at most one per entry of a file and
/// [`MAX_ERRORS_PER_FILE`], and the settings without these entries.
pub fn check(cwd: &Path, env: &Env) -> (Vec<ConfigError>, Config) {
    let mut config = Config::defaults(cwd, env);
    let mut wrong = Vec::new();
    for (file, own) in config.candidates() {
        match read_file(&file, own) {
            Ok(Some(text)) => {
                let mut errors = config.errors_of(text, &file, own);
                errors.sort_by_key(line_of);
                wrong.extend(errors);
            }
            Ok(None) => {}
            Err(error) => wrong.push(error),
        }
    }
    wrong.extend(config.apply_environment(env).err());
    (wrong, config)
}

fn line_of(error: &ConfigError) -> u32 {
    match error {
        ConfigError::InFile { place, .. } => place.line,
        _ => 0,
    }
}

fn read(file: &Path, own: bool) -> Result<Option<Layer>, ConfigError> {
    read_file(file, own)?.map(|text| parse(file, &text)).transpose()
}

/// Reads a settings file. A project's file is untrusted: a pipe, or a link to a device, would never end.
fn read_file(file: &Path, own: bool) -> Result<Option<String>, ConfigError> {
    let text = if own {
        skills_base::files::read_user_text(file)
    } else {
        skills_skill::read_regular_text(file, MAX_PROJECT_FILE_BYTES)
    };
    match text {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ConfigError::Unreadable { file: file.to_owned(), why: error.to_string() }),
    }
}

fn set<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn variable<T: FromStr>(env: &Env, name: &str) -> Result<Option<T>, ConfigError> {
    let parsed = env.get(name).map(|value| value.parse().map_err(|_| in_environment(name, value)));
    parsed.transpose()
}

/// Parses a boolean variable, which may also be `1` or `0`.
fn switch(env: &Env, name: &str) -> Result<Option<bool>, ConfigError> {
    match env.get(name) {
        Some("1") => Ok(Some(true)),
        Some("0") => Ok(Some(false)),
        _ => variable(env, name),
    }
}

fn in_environment(name: &str, value: &str) -> ConfigError {
    let entry = VARIABLES.iter().find(|(variable, _)| *variable == name);
    let words = entry.map_or_else(|| allowed(name).unwrap_or_default(), |(_, words)| words);
    ConfigError::InEnvironment {
        name: name.to_owned(),
        value: value.to_owned(),
        allowed: format!("allowed: {words}"),
    }
}

/// Maximum size of a project's settings file in bytes.
const MAX_PROJECT_FILE_BYTES: u64 = 1 << 20;

/// What to do with a key that is only allowed in the user's own file.
const OWN_ONLY: &str = "only allowed in your own config.yaml";

fn known_clients() -> String {
    let ids: Vec<_> = client::profiles().iter().map(|profile| profile.id.as_str()).collect();
    format!("expected one of: {}", ids.join(", "))
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
