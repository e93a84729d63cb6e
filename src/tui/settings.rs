//! What the workbench is reported at its start: wishes of the configuration, folders, the log to show.

use std::path::PathBuf;

use super::golden_requests::GoldenPlace;
use super::keymap::Remap;
use super::theme::Depth;
use skills_api::{LocalFiles, Signs};
use skills_base::telemetry::RingBuffer;
use skills_config::{Config, GlyphSet, Invocation, RunSettings};

/// Wishes and places. [`Settings::default`] asks for nothing and reads nothing.
#[derive(Clone)]
pub struct Settings {
    /// A theme by name; without one the terminal's background chooses.
    pub theme: Option<String>,
    /// Number of colors; without it the environment tells.
    pub depth: Option<Depth>,
    /// Which signs; `Auto` asks `TERM` and the terminal.
    pub glyphs: GlyphSet,
    /// Other keys.
    pub remaps: Vec<Remap>,
    /// The editor's command line; without one `VISUAL`, `EDITOR`, then `vi`.
    pub editor: Option<String>,
    /// Folder with the user's own theme files.
    pub theme_dir: Option<PathBuf>,
    /// File that keeps splits and the picked theme between two sessions.
    pub state_file: Option<PathBuf>,
    /// The configuration file, as help names it.
    pub config_file: String,
    /// The log that the log view shows.
    pub log: RingBuffer,
    /// What the terminal does when a run begins to wait; nothing, unless it is asked for.
    pub signs: Signs,
    /// How the workbench was called: commands that are copied name the same options.
    pub invocation: Invocation,
    /// The files of this machine that may be named as targets; none, if omitted.
    pub local_files: Option<LocalFiles>,
    /// Where golden queries and their baselines are on this machine; none, if omitted.
    pub golden: Option<GoldenPlace>,
    /// Whether runs are not stored: they end with the workbench.
    pub passing: bool,
    /// How runs are listed.
    pub runs: RunSettings,
    /// Whether nothing moves by itself.
    pub reduced_motion: bool,
    /// Whether the terminal shows how far indexing is.
    pub progress: bool,
    /// A wall clock (milliseconds since 1970-01-01 UTC) that moves only as the application's own time does;
    /// without it, the system's.
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
            signs: Signs::default(),
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
    /// The wishes of a configuration. Its log is an empty one: set [`Settings::log`].
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let wishes = config
            .keys
            .iter()
            .flat_map(|(context, actions)| actions.iter().map(move |(action, keys)| (context, action, keys)));
        let remaps = wishes.map(|(context, action, keys)| {
            let place = config.places.get(&format!("keys.{context}.{action}"));
            Remap {
                context: context.clone(),
                action: action.clone(),
                keys: keys.clone(),
                file: place
                    .map_or_else(|| "config.yaml".to_owned(), |place| place.file.display().to_string()),
                line: place.map_or(1, |place| u64::from(place.line)),
            }
        });
        let file = config.dirs.config_file();
        Self {
            theme: config.theme.clone(),
            glyphs: config.glyphs,
            remaps: remaps.collect(),
            editor: config.editor.clone(),
            signs: Signs {
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
