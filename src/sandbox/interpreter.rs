//! Selects the program that runs a script by its extension, and the paths that the program needs to read.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::bundle::ScriptLocation;
use super::error::SandboxError;
use super::identity;

/// The embedded table.
const TABLE: &str = include_str!("../../assets/interpreters.yaml");

/// Timeout for querying an interpreter about the location of its library.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The content of `assets/interpreters.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    interpreters: Vec<Interpreter>,
    executable: Executable,
    search: Vec<PathBuf>,
    /// Paths that every script may read and execute, if they exist.
    pub readable: Vec<PathBuf>,
    /// Paths that every script may read and write, if they exist.
    pub devices: Vec<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Interpreter {
    name: String,
    extensions: Vec<String>,
    programs: Vec<String>,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    reserve_mib: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Executable {
    reserve_mib: u64,
}

/// How to run one script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    /// The interpreter; `None` if the script is executed directly.
    pub program: Option<PathBuf>,
    /// Arguments before the script.
    pub arguments: Vec<String>,
    /// Paths that it reads in addition to [`Table::readable`].
    pub readable: Vec<PathBuf>,
    /// Address space in bytes that it maps without using it.
    pub reserve: u64,
    /// The search path of the script.
    pub path: String,
}

impl Table {
    /// Parses the embedded table.
    pub fn shipped() -> Result<Self, SandboxError> {
        serde_saphyr::from_str(TABLE)
            .map_err(|error| SandboxError::bad("assets/interpreters.yaml", error.to_string()))
    }

    /// Returns the name of the interpreter that a script needs, which can serve as cache key for [`Table::find`].
    pub fn name_for(&self, script: &ScriptLocation) -> Result<Option<&str>, SandboxError> {
        let extension = script.script.extension().and_then(OsStr::to_str).unwrap_or_default();
        match self.by_extension(extension) {
            Some(interpreter) => Ok(Some(&interpreter.name)),
            None if script.executable => Ok(None),
            None => {
                let extensions: Vec<_> = self
                    .interpreters
                    .iter()
                    .flat_map(|each| &each.extensions)
                    .map(|ext| format!(".{ext}"))
                    .collect();
                Err(SandboxError::NoInterpreterKnown {
                    script: script.script.clone(),
                    known: extensions.join(" "),
                })
            }
        }
    }

    fn by_extension(&self, extension: &str) -> Option<&Interpreter> {
        self.interpreters.iter().find(|each| each.extensions.iter().any(|ext| ext == extension))
    }

    /// Finds the program for a script in `search`, then in the default folders. With `other`, it must be readable by
    /// every user. Starts the program once if it has to be queried for its library.
    pub fn find(
        &self,
        script: &ScriptLocation,
        other: bool,
        search: &[PathBuf],
    ) -> Result<Runner, SandboxError> {
        let extension = script.script.extension().and_then(OsStr::to_str).unwrap_or_default();
        let Some(interpreter) = self.by_extension(extension) else {
            self.name_for(script)?;
            return Ok(Runner {
                program: None,
                arguments: Vec::new(),
                readable: Vec::new(),
                reserve: self.executable.reserve_mib << 20,
                path: self.path(None),
            });
        };
        let mut tried = Vec::new();
        for folder in search.iter().chain(&self.search).filter(|folder| folder.is_absolute()) {
            for program in &interpreter.programs {
                let candidate = folder.join(program);
                if !is_program(&candidate) {
                    continue;
                }
                match self.probe(interpreter, &candidate, other) {
                    Ok(runner) => return Ok(runner),
                    Err(why) => tried.push(why),
                }
            }
        }
        if tried.is_empty() {
            tried.push("not found in PATH".to_owned());
        }
        tried.dedup();
        Err(SandboxError::NoInterpreter {
            interpreter: interpreter.name.clone(),
            script: script.script.clone(),
            tried,
        })
    }

    /// Checks whether a program can be used, and queries it for its library if that is not in a system folder.
    fn probe(&self, interpreter: &Interpreter, candidate: &Path, other: bool) -> Result<Runner, String> {
        let real = skills_base::files::canonicalize(candidate)
            .map_err(|error| format!("{}: {error}", candidate.display()))?;
        identity::check_readable(&real, other)?;
        let mut program = candidate.to_owned();
        let mut readable = Vec::new();
        let system = |path: &Path| self.readable.iter().any(|known| path.starts_with(known));
        if system(&real) {
            program = real;
        } else if interpreter.ask.is_empty() {
            readable.push(real);
        } else {
            let answer = query(candidate, &interpreter.ask)?;
            let mut lines = answer.lines().map(PathBuf::from).filter(|path| path.is_absolute());
            program =
                lines.next().ok_or_else(|| format!("{} did not report its location", candidate.display()))?;
            identity::check_readable(&program, other)?;
            readable.extend(program.canonicalize().ok());
            for folder in lines {
                let folder =
                    folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
                if system(&folder) || readable.contains(&folder) {
                    continue;
                }
                check_search_folder(&folder)?;
                identity::check_readable(&folder, other)?;
                readable.push(folder);
            }
        }
        Ok(Runner {
            path: self.path(program.parent()),
            program: Some(program),
            arguments: interpreter.arguments.clone(),
            readable,
            reserve: interpreter.reserve_mib << 20,
        })
    }

    /// Returns the search path of a script: the folder of its interpreter, then the default folders.
    fn path(&self, first: Option<&Path>) -> String {
        let mut folders: Vec<_> = first.into_iter().collect();
        for folder in &self.search {
            if !folders.contains(&folder.as_path()) && folder.exists() {
                folders.push(folder);
            }
        }
        folders.iter().map(|folder| folder.to_string_lossy()).collect::<Vec<_>>().join(":")
    }
}

/// Rejects a library folder that contains all files of a user, or of the machine.
fn check_search_folder(folder: &Path) -> Result<(), String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    let wide = folder.components().count() < 3 || home.is_some_and(|home| home.starts_with(folder));
    if wide {
        return Err(format!("its library directory is {}, which scripts may not read", folder.display()));
    }
    Ok(())
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Starts a program with a query and reads the response.
fn query(program: &Path, question: &[String]) -> Result<String, String> {
    let failed = |why: String| format!("{} does not respond: {why}", program.display());
    let mut child = Command::new(program)
        .args(question)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let until = Instant::now() + VERSION_TIMEOUT;
    let status = loop {
        match child.try_wait().map_err(|error| failed(error.to_string()))? {
            Some(status) => break status,
            None if Instant::now() > until => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(format!("not within {} s", VERSION_TIMEOUT.as_secs())));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    if !status.success() {
        return Err(failed(status.to_string()));
    }
    let mut out = String::new();
    let Some(stdout) = child.stdout.take() else { return Ok(out) };
    stdout.take(64 << 10).read_to_string(&mut out).map_err(|error| failed(error.to_string()))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(path: &str, executable: bool) -> ScriptLocation {
        ScriptLocation { root: "/bundle".into(), script: path.into(), executable }
    }

    fn program(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("own file");
        path
    }

    #[test]
    fn shipped_table_maps_its_extensions() {
        let table = Table::shipped().expect("valid");
        for (path, name) in [("scripts/a.py", "python3"), ("scripts/a.sh", "bash"), ("scripts/a.mjs", "node")]
        {
            assert_eq!(table.name_for(&script(path, false)).expect("known"), Some(name));
        }
        assert_eq!(table.name_for(&script("scripts/tool", true)).expect("its own program"), None);
        let message = table.name_for(&script("scripts/a.xyz", false)).expect_err("unknown").to_string();
        assert!(message.contains(".py .sh .js .mjs .rb"), "{message}");
    }

    #[test]
    fn a_missing_interpreter_is_named() {
        let mut table = Table::shipped().expect("valid");
        table.search.clear();
        let message =
            table.find(&script("scripts/a.rb", false), false, &[]).expect_err("no PATH").to_string();
        assert!(message.contains("`ruby`") && message.contains("not found in PATH"), "{message}");
    }

    #[test]
    fn shim_is_resolved_to_the_real_program() {
        let mut table = Table::shipped().expect("valid");
        table.search.clear();
        let folder = tempfile::tempdir().expect("temporary folder");
        let home = folder.path().canonicalize().expect("there");
        let (shims, real) = (home.join("shims"), home.join("versions"));
        std::fs::create_dir(&shims).expect("made");
        std::fs::create_dir(&real).expect("made");
        let python = program(&real, "python3.99", "");
        program(
            &shims,
            "python3",
            &format!("#!/bin/sh\necho {}\necho {}\n", python.display(), real.display()),
        );
        let found =
            table.find(&script("scripts/a.py", false), false, std::slice::from_ref(&shims)).expect("found");
        assert_eq!(found.program.as_deref(), Some(python.as_path()));
        assert_eq!(found.readable, [python, real]);
    }

    #[test]
    fn library_folder_covering_the_disk_is_rejected() {
        assert!(check_search_folder(Path::new("/")).is_err());
        assert!(check_search_folder(Path::new("/home")).is_err());
        assert!(check_search_folder(Path::new("/opt/python/3.99")).is_ok());
    }
}
