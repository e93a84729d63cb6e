//! Runs the real `skills` binary in a home of its own, so that no test sees this machine's folders.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A temporary home with a folder of skills and a working directory.
pub struct Home {
    dir: tempfile::TempDir,
}

/// The result of a call.
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    /// Nothing in it.
    pub fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["home", "work", "skills"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    /// Five skills: two procedures, a utility, a sidecar and a deprecated one.
    pub fn with_skills() -> Self {
        let home = Self::empty();
        home.skill(
            "pdf-tables",
            "description: Extracts tables from PDF files into spreadsheets. Use when a request names a PDF with tables.\n\
             tags: [pdf, tables]\ndomain: documents",
            "# PDF tables\n\n## When to use\n\nA table in a PDF must become rows of a spreadsheet.\n",
        );
        home.file("pdf-tables/references/layout.md", "How tables are laid out.\n");
        home.skill(
            "deploy-check",
            "description: Checks a deployment before it goes live and lists what would break.",
            "# Deploy check\n\nRun through the release steps.\n",
        );
        home.skill(
            "csv-tools",
            "description: Cleans and joins CSV files, and turns a table into rows.\n\
             metadata:\n  classification:\n    role: utility",
            "# CSV\n\nJoin, filter, clean.\n",
        );
        home.skill(
            "table-audit",
            "description: Watches an extracted table and reports rows that do not add up.\n\
             metadata:\n  classification:\n    role: sidecar\n    invocation: attach\n    attach_targets: [output, artifact]",
            "# Audit\n\nCompare the sums.\n",
        );
        home.skill(
            "old-pdf",
            "description: Reads tables from PDF files the way it was done before.\nstatus: deprecated",
            "# Old\n\nDo not use.\n",
        );
        home
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn skills(&self) -> PathBuf {
        self.path().join("skills")
    }

    /// Writes a skill with these lines of frontmatter after its name.
    pub fn skill(&self, id: &str, frontmatter: &str, body: &str) {
        self.file(&format!("{id}/SKILL.md"), format!("---\nname: {id}\n{frontmatter}\n---\n\n{body}"));
    }

    /// Writes a file below the folder of skills.
    pub fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.skills().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The user's settings.
    pub fn config(&self, text: &str) -> PathBuf {
        let path = self.path().join("home/.config/skill-workbench/config.yaml");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// The binary, without anything of this process's environment but the path.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skills"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path().join("home"))
            .env("LANG", "C.UTF-8")
            .current_dir(self.path().join("work"))
            .stdin(Stdio::null());
        command
    }

    /// Runs it over the folder of skills.
    pub fn run(&self, args: &[&str]) -> Answer {
        self.run_bare(&[&["--root", self.skills().to_str().unwrap()], args].concat())
    }

    /// Runs it with these arguments alone.
    pub fn run_bare(&self, args: &[&str]) -> Answer {
        Answer::of(self.command().args(args).output().unwrap())
    }

    /// Runs it with these arguments alone and these variables.
    pub fn run_bare_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Answer {
        Answer::of(self.command().args(args).envs(variables.iter().copied()).output().unwrap())
    }

    /// Runs it with `--json` and parses its output.
    pub fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).json()
    }
}

impl Answer {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}\nstderr: {}", self.stdout, self.stderr))
    }

    /// The error on standard error, in its one shape.
    pub fn error(&self) -> Value {
        serde_json::from_str(&self.stderr).unwrap_or_else(|e| panic!("{e}: {}", self.stderr))
    }
}

/// The keys of a JSON object, in order.
pub fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}
