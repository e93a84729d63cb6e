//! Where files live: the XDG folders, `~`, and how a path is shown to a person.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::ConfigError;
use skills_base::private_files;

const NAME: &str = "skill-workbench";

/// The home folder and the environment variables, as values, so that what depends on them can be tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Env {
    /// The person's home folder.
    pub home: PathBuf,
    /// Environment variables; those that are not UTF-8 are left out.
    pub vars: BTreeMap<String, String>,
}

impl Env {
    /// A home folder and no variables.
    pub fn at(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into(), vars: BTreeMap::new() }
    }

    /// The environment of this process.
    ///
    /// # Errors
    /// When the system does not say where home is.
    pub fn of_process() -> Result<Self, ConfigError> {
        let home = etcetera::home_dir().map_err(|_| ConfigError::NoHome)?;
        let text = |(key, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((key.into_string().ok()?, value.into_string().ok()?))
        };
        Ok(Self { home, vars: std::env::vars_os().filter_map(text).collect() })
    }

    /// A variable's value; an empty one counts as not set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// This program's folders, by the XDG Base Directory Specification on Linux and macOS alike
/// (<https://specifications.freedesktop.org/basedir-spec/latest/>). None of them need exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// The person's home folder.
    pub home: PathBuf,
    /// Settings and themes of the person.
    pub config: PathBuf,
    /// What must not be lost.
    pub data: PathBuf,
    /// What can be made again: the warm-start cache, unpacked skills.
    pub cache: PathBuf,
    /// Logs, histories.
    pub state: PathBuf,
    /// The person's settings file, where it is not the usual one.
    settings: Option<PathBuf>,
}

impl Dirs {
    /// The folders for an environment. A relative `XDG_…` value is ignored, as the specification says.
    #[must_use]
    pub fn new(env: &Env) -> Self {
        let base = |name: &str, default: &str| {
            let given = env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
            given.unwrap_or_else(|| env.home.join(default)).join(NAME)
        };
        Self {
            home: env.home.clone(),
            config: base("XDG_CONFIG_HOME", ".config"),
            data: base("XDG_DATA_HOME", ".local/share"),
            cache: base("XDG_CACHE_HOME", ".cache"),
            state: base("XDG_STATE_HOME", ".local/state"),
            settings: env.get("SKILLS_CONFIG").map(PathBuf::from),
        }
    }

    /// The record of stores that were opened, by their paths.
    #[must_use]
    pub fn known_stores(&self) -> PathBuf {
        self.state.join("stores.json")
    }

    /// Takes the rights of others away from this program's own folders, where they exist. What cannot be changed (a
    /// folder of another account) stays as it is.
    pub fn restrict(&self) {
        for folder in [&self.config, &self.data, &self.cache, &self.state] {
            if let Err(error) = private_files::restrict(folder, private_files::FOLDER_MODE) {
                tracing::debug!("cannot change the permissions of {}: {error}", folder.display());
            }
        }
    }

    /// The person's settings file: `SKILLS_CONFIG`, else `config.yaml` among the settings.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.settings.clone().unwrap_or_else(|| self.config.join("config.yaml"))
    }

    /// The log that is written to; the one before it ends in `.old`.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.state.join("skills.log")
    }
}

/// `~` and `~/…` become the home folder, a relative path is taken from `base`; `.` and `..` are resolved
/// in the text, without asking the disk.
#[must_use]
pub fn expand(path: &str, base: &Path, home: &Path) -> PathBuf {
    let whole = match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => base.join(path),
    };
    let mut out = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// A path as a person reads it: `./…` below the working directory, `~/…` below home, else whole.
#[must_use]
pub fn shown(path: &Path, cwd: &Path, home: &Path) -> String {
    let below = |base: &Path, sign: &str| {
        let rest = path.strip_prefix(base).ok().filter(|_| base.parent().is_some())?;
        let rest = rest.to_string_lossy();
        Some(if rest.is_empty() { sign.to_owned() } else { format!("{sign}/{rest}") })
    };
    let in_home = || below(home, "~");
    let in_cwd = || if cwd == home { None } else { below(cwd, ".") };
    in_cwd().or_else(in_home).unwrap_or_else(|| path.to_string_lossy().into_owned())
}

/// The nearest folder at or above `cwd` that holds `.git` (a folder, or the file of a worktree).
#[must_use]
pub fn repository_root(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().find(|dir| dir.join(".git").exists()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_follow_xdg_and_ignore_relative_values() {
        let mut env = Env::at("/home/ann");
        env.vars.insert("XDG_CACHE_HOME".to_owned(), "/var/c".to_owned());
        env.vars.insert("XDG_STATE_HOME".to_owned(), "relative".to_owned());
        env.vars.insert("XDG_DATA_HOME".to_owned(), String::new());
        let dirs = Dirs::new(&env);
        assert_eq!(dirs.config_file(), Path::new("/home/ann/.config/skill-workbench/config.yaml"));
        env.vars.insert("SKILLS_CONFIG".to_owned(), "/srv/mine.yaml".to_owned());
        assert_eq!(Dirs::new(&env).config_file(), Path::new("/srv/mine.yaml"));
        assert_eq!(dirs.cache, Path::new("/var/c/skill-workbench"));
        assert_eq!(dirs.state, Path::new("/home/ann/.local/state/skill-workbench"));
        assert_eq!(dirs.data, Path::new("/home/ann/.local/share/skill-workbench"));
    }

    #[test]
    fn a_path_is_expanded_and_shown_the_way_a_person_writes_it() {
        let (cwd, home) = (Path::new("/home/ann/work"), Path::new("/home/ann"));
        for (written, absolute, back) in [
            ("~", "/home/ann", "~"),
            ("~/s", "/home/ann/s", "~/s"),
            ("./s", "/home/ann/work/s", "./s"),
            ("../s/./t", "/home/ann/s/t", "~/s/t"),
            ("/srv/../opt", "/opt", "/opt"),
            (".", "/home/ann/work", "."),
            ("~bob/s", "/home/ann/work/~bob/s", "./~bob/s"),
        ] {
            assert_eq!(expand(written, cwd, home), Path::new(absolute), "{written}");
            assert_eq!(shown(Path::new(absolute), cwd, home), back, "{written}");
        }
        assert_eq!(shown(Path::new("/etc"), Path::new("/"), Path::new("/")), "/etc");
    }
}
