//! Settings of the workbench at startup: configuration values, folders, the log to show.

use std::path::PathBuf;

use super::golden_requests::GoldenPlace;
use super::keymap::Remap;
use super::theme::Depth;
use skills_api::{LocalFiles, TerminalSignals};
use skills_base::telemetry::RingBuffer;
use skills_config::{Config, GlyphSet, Invocation, RunSettings};

/// Configuration values and folders. [`Settings::default`] configures nothing and reads nothing.
#[derive(Clone)]
pub struct Settings {
    /// A theme by name; by default the terminal's background determines it.
    pub theme: Option<String>,
    /// Number of colors; by default the environment determines it.
    pub depth: Option<Depth>,
    /// The set of glyphs; `Auto` uses `TERM` and the terminal's responses.
    pub glyphs: GlyphSet,
    /// Key bindings that replace shipped ones.
    pub remaps: Vec<Remap>,
    /// The editor's command line; by default `VISUAL`, `EDITOR`, then `vi`.
    pub editor: Option<String>,
    /// Folder with the user's own theme files.
    pub theme_dir: Option<PathBuf>,
    /// File that stores splits and the chosen theme between sessions.
    pub state_file: Option<PathBuf>,
    /// The configuration file, as help names it.
    pub config_file: String,
    /// The log that the log view shows.
    pub log: RingBuffer,
    /// How the terminal signals that a run starts to wait; not at all by default.
    pub signs: TerminalSignals,
    /// How the workbench was started: copied commands contain the same options.
    pub invocation: Invocation,
    /// The local files that may be named as targets, if any.
    pub local_files: Option<LocalFiles>,
    /// Location of golden queries and their baselines on this machine, if any.
    pub golden: Option<GoldenPlace>,
    /// Whether runs are not persisted: they end with the workbench.
    pub passing: bool,
    /// How runs are listed.
    pub runs: RunSettings,
    /// Whether animations are disabled.
    pub reduced_motion: bool,
    /// Whether the terminal shows the progress of indexing.
    pub progress: bool,
    /// A wall clock (milliseconds since 1970-01-01 UTC) that advances only with the application's own time; by default
    /// the system's.
    pub clock_ms: Option<i64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: None,
            depth: None,
            glyphs: GlyphSet::Auto,
            remaps: Vec::new(),
            editor: None,
            theme_dir: None,
            state_file: None,
            config_file: "config.yaml".to_owned(),
            log: RingBuffer::new(),
            signs: TerminalSignals::default(),
            invocation: Invocation::default(),
            local_files: None,
            golden: None,
            passing: false,
            runs: RunSettings::default(),
            reduced_motion: false,
            progress: false,
            clock_ms: None,
        }
    }
}

impl Settings {
    /// Returns the settings of a configuration. The log is empty: set [`Settings::log`].
    pub fn of(config: &Config) -> Self {
        let layers = [("keys", &config.keys, false), ("project_keys", &config.project_keys, true)];
        let bindings = layers.into_iter().flat_map(|(layer, contexts, of_project)| {
            contexts.iter().flat_map(move |(context, actions)| {
                actions.iter().map(move |(action, keys)| (layer, context, action, keys, of_project))
            })
        });
        let remaps = bindings.map(|(layer, context, action, keys, of_project)| {
            let place = config.places.get(&format!("{layer}.{context}.{action}"));
            Remap {
                context: context.clone(),
                action: action.clone(),
                keys: keys.clone(),
                file: place
                    .map_or_else(|| "config.yaml".to_owned(), |place| place.file.display().to_string()),
                line: place.map_or(1, |place| u64::from(place.line)),
                of_project,
            }
        });
        let file = config.dirs.config_file();
        Self {
            theme: config.theme.clone(),
            glyphs: config.glyphs,
            remaps: remaps.collect(),
            editor: config.editor.clone(),
            signs: TerminalSignals {
                bell: config.notify.bell,
                osc: config.notify.osc,
                withdrawable: config.terminal.withdrawable_notifications,
            },
            runs: config.runs.clone(),
            reduced_motion: config.reduced_motion,
            progress: config.terminal.progress && !config.plain,
            passing: config.store.as_deref() == Some(skills_config::MEMORY_STORE),
            theme_dir: Some(config.dirs.config.join("themes")),
            state_file: Some(config.dirs.state.join("workbench.yaml")),
            local_files: Some(LocalFiles { cwd: config.cwd.clone(), home: config.dirs.home.clone() }),
            golden: Some(GoldenPlace {
                file: config.golden_file(),
                baselines: config.dirs.state.join("golden-baselines.json"),
                cwd: config.cwd.clone(),
                home: config.dirs.home.clone(),
            }),
            config_file: skills_config::shown(&file, &config.cwd, &config.dirs.home),
            ..Self::default()
        }
    }
}
