//! File locations: the XDG folders, `~`, and the display form of paths.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::ConfigError;
use skills_base::{files, private_files};

const NAME: &str = "skill-workbench";

/// What to do about a relative path of the user's own files in the environment.
pub const ABSOLUTE_ONLY: &str =
    "use an absolute path: a relative one is in the working directory, which may contain the files of anyone";

/// The home folder and the environment variables, as values, so that code that depends on them can be tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Env {
    /// The user's home folder.
    pub home: PathBuf,
    /// Environment variables; those that are not UTF-8 are omitted.
    pub vars: BTreeMap<String, String>,
}

impl Env {
    /// Creates an environment with a home folder and no variables.
    pub fn at(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into(), vars: BTreeMap::new() }
    }

    /// Returns the environment of this process.
    ///
    /// # Errors
    /// Returns an error if the home folder is unknown, or if it or `SKILLS_CONFIG` is a relative path.
    pub fn of_process() -> Result<Self, ConfigError> {
        let home = etcetera::home_dir().map_err(|_| ConfigError::NoHome)?;
        let text = |(key, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((key.into_string().ok()?, value.into_string().ok()?))
        };
        let env = Self { home, vars: std::env::vars_os().filter_map(text).collect() };
        env.ensure_absolute()?;
        Ok(env)
    }

    /// Checks the paths of the user's own files: a relative one would let a repository contain the user's settings.
    fn ensure_absolute(&self) -> Result<(), ConfigError> {
        let settings = self.get("SKILLS_CONFIG").map(|file| ("SKILLS_CONFIG", Path::new(file)));
        let mut paths = [("HOME", self.home.as_path())].into_iter().chain(settings);
        let relative = paths.find(|(_, path)| !path.is_absolute());
        relative.map_or(Ok(()), |(name, path)| {
            Err(ConfigError::InEnvironment {
                name: name.to_owned(),
                value: path.display().to_string(),
                allowed: ABSOLUTE_ONLY.to_owned(),
            })
        })
    }

    /// Returns the value of a variable; an empty value counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// The folders of this program, according to the XDG Base Directory Specification on both Linux and macOS
/// (<https://specifications.freedesktop.org/basedir-spec/latest/>). They need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// The user's home folder.
    pub home: PathBuf,
    /// Settings and themes of the user.
    pub config: PathBuf,
    /// Data that must not be lost.
    pub data: PathBuf,
    /// Data that can be regenerated: the warm-start cache, unpacked skills.
    pub cache: PathBuf,
    /// Logs and histories.
    pub state: PathBuf,
    /// The user's settings file, if it is not the default one.
    settings: Option<PathBuf>,
}

impl Dirs {
    /// Returns the folders for an environment. A relative `XDG_…` value is ignored, as the specification requires.
    pub fn new(env: &Env) -> Self {
        let base = |name: &str, default: &str| {
            let absolute = env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
            absolute.unwrap_or_else(|| env.home.join(default)).join(NAME)
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

    /// Returns the path of the list of stores that were opened.
    pub fn known_stores(&self) -> PathBuf {
        self.state.join("stores.json")
    }

    /// Removes the permissions of other users from the folders of this program, if they exist. Folders whose
    /// permissions cannot be changed (those of another account) stay unchanged.
    pub fn restrict(&self) {
        for folder in [&self.config, &self.data, &self.cache, &self.state] {
            if let Err(error) = private_files::restrict(folder, private_files::FOLDER_MODE) {
                tracing::debug!("cannot change the permissions of {}: {error}", folder.display());
            }
        }
    }

    /// Returns the path of the user's settings file: `SKILLS_CONFIG`, or `config.yaml` in the settings folder.
    pub fn config_file(&self) -> PathBuf {
        self.settings.clone().unwrap_or_else(|| self.config.join("config.yaml"))
    }

    /// Returns the path of the log file; the previous one has the suffix `.old`.
    pub fn log_file(&self) -> PathBuf {
        self.state.join("skills.log")
    }
}

/// Expands `~` and `~/…` to the home folder, and resolves a relative path against `base`; `.` and `..` are resolved
/// lexically, without file system access.
pub fn expand(path: &str, base: &Path, home: &Path) -> PathBuf {
    let expanded = match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => base.join(path),
    };
    let mut out = PathBuf::new();
    for part in expanded.components() {
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

/// Returns the path without symbolic links, or the path itself if it cannot be resolved.
pub fn real_path(path: &Path) -> PathBuf {
    files::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the display form of a path: `./…` below the working directory, `~/…` below the home folder, otherwise the
/// absolute path.
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

/// Returns the nearest folder at or above `cwd` that contains `.git` (a folder, or the file of a worktree).
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
    fn relative_paths_of_own_files_are_refused() {
        assert!(Env::at("/home/ann").ensure_absolute().is_ok());
        let refused = |env: &Env| match env.ensure_absolute() {
            Err(ConfigError::InEnvironment { name, value, .. }) => (name, value),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(&Env::at("~")), ("HOME".to_owned(), "~".to_owned()));
        assert_eq!(refused(&Env::at("")), ("HOME".to_owned(), String::new()));
        let mut env = Env::at("/home/ann");
        env.vars.insert("SKILLS_CONFIG".to_owned(), "skills.yaml".to_owned());
        assert_eq!(refused(&env), ("SKILLS_CONFIG".to_owned(), "skills.yaml".to_owned()));
        env.vars.insert("SKILLS_CONFIG".to_owned(), "/etc/skills.yaml".to_owned());
        assert!(env.ensure_absolute().is_ok());
    }

    #[test]
    fn path_is_expanded_and_abbreviated() {
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
