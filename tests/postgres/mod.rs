//! A `PostgreSQL` server for tests: the one named by `SKILLS_TEST_POSTGRES`, or one that is started from the installed
//! package and ends with the test.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The account that the package makes: the server does not run as root.
const ACCOUNT: &str = "postgres";

/// A server with a database for tests.
pub struct Server {
    /// Address without a schema.
    address: String,
    /// None for one that was there before.
    own: Option<Own>,
    next_schema: AtomicU32,
}

struct Own {
    folder: tempfile::TempDir,
    programs: PathBuf,
    settings: Settings,
    process: Child,
}

/// How a server is started.
#[derive(Clone)]
struct Settings {
    /// Port on this machine; none for only a socket.
    port: Option<u16>,
    /// Of its environment.
    variables: Vec<(&'static str, PathBuf)>,
    /// Arguments, in addition to those of every server.
    arguments: &'static [&'static str],
}

/// The newest version that is installed.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions.flatten().map(|at| at.path().join("bin")).collect();
    found.retain(|at| at.join("postgres").is_file());
    found.sort();
    found.pop()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A program of the server, as its account where the test is root. It ends with the thread that started it.
fn program(programs: &Path, name: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if is_root() {
        command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups"]);
    }
    command.arg(programs.join(name)).env_remove("PGDATA").stdin(Stdio::null());
    command
}

impl Server {
    /// A server; none, with a message, if PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(Vec::new())
    }

    /// The same with variables in its environment, if it is started here.
    pub fn start_with(variables: Vec<(&'static str, PathBuf)>) -> Option<Self> {
        // Tests need data to survive a crash of the server, not of the machine.
        let arguments = &["-c", "fsync=off", "-c", "max_connections=200"];
        Self::start_in(Path::new("/tmp"), Settings { port: None, variables, arguments })
    }

    /// The same, where each commit is made durable before it is acknowledged, in this folder.
    pub fn start_durable(parent: &Path) -> Option<Self> {
        let arguments = &["-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "max_connections=400"];
        Self::start_in(parent, Settings { port: None, variables: Vec::new(), arguments })
    }

    fn start_in(parent: &Path, settings: Settings) -> Option<Self> {
        if let Ok(address) = std::env::var("SKILLS_TEST_POSTGRES") {
            return Some(Self { address, own: None, next_schema: AtomicU32::new(0) });
        }
        let Some(programs) = programs() else {
            eprintln!(
                "skipped: PostgreSQL is not installed (apt-get install postgresql), and SKILLS_TEST_POSTGRES is not set"
            );
            return None;
        };
        let folder = folder_in(parent);
        let data = folder.path().join("data");
        let made = program(&programs, "initdb")
            .args([
                "--auth",
                "trust",
                "--username",
                "tests",
                "--encoding",
                "UTF8",
                "--no-locale",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success(), "initdb: {made}");
        Some(Self::start_on(folder, programs, settings))
    }

    /// A server on a folder with data.
    fn start_on(folder: tempfile::TempDir, programs: PathBuf, settings: Settings) -> Self {
        let process = spawn(&programs, folder.path(), &settings);
        let socket = folder.path().display().to_string().replace('/', "%2F");
        let port = settings.port.map(|port| format!(":{port}")).unwrap_or_default();
        let address = format!("postgres://tests@{socket}{port}/postgres");
        let own = Own { folder, programs, settings, process };
        let server = Self { address, own: Some(own), next_schema: AtomicU32::new(0) };
        server.wait_until_ready();
        server
    }

    /// The same as [`Self::start`] with a standby that has each commit before it is acknowledged; none, with a message,
    /// if the test cannot start servers.
    pub fn start_replicated() -> Option<(Self, Self)> {
        let arguments = &["-c", "fsync=off", "-c", "max_connections=200"];
        let settings = Settings { port: Some(free_port()), variables: Vec::new(), arguments };
        let primary = Self::start_in(Path::new("/tmp"), settings.clone())?;
        let Some(own) = &primary.own else {
            eprintln!("skipped: the server of SKILLS_TEST_POSTGRES is not replicated by a test");
            return None;
        };
        let folder = folder_in(Path::new("/tmp"));
        let copied = program(&own.programs, "pg_basebackup")
            .args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf", "-d", &primary.address, "-D"])
            .arg(folder.path().join("data"))
            .current_dir(folder.path())
            .status()
            .unwrap();
        assert!(copied.success(), "pg_basebackup: {copied}");
        let settings = Settings { port: Some(free_port()), ..settings };
        let standby = Self::start_on(folder, own.programs.clone(), settings);
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        primary.sql("SELECT pg_reload_conf()");
        let deadline = Instant::now() + Duration::from_secs(60);
        while primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1" {
            assert!(Instant::now() < deadline, "the standby does not follow");
            std::thread::yield_now();
        }
        Some((primary, standby))
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self.answers("SELECT 1") {
            assert!(Instant::now() < deadline, "the server does not start");
            std::thread::yield_now();
        }
    }

    fn psql(&self, sql: &str) -> Command {
        let mut command = match &self.own {
            Some(own) => Command::new(own.programs.join("psql")),
            None => Command::new("psql"),
        };
        command.args(["--no-psqlrc", "--quiet", "-At", "-v", "ON_ERROR_STOP=1", "-c", sql, &self.address]);
        command
    }

    fn answers(&self, sql: &str) -> bool {
        self.psql(sql)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Runs statements; returns what they print.
    pub fn sql(&self, sql: &str) -> String {
        let output = self.psql(sql).output().unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// The address of a new, empty store, and its schema.
    pub fn store(&self) -> (String, String) {
        let number = self.next_schema.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{}_{number}", std::process::id());
        self.sql(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}"));
        (format!("{}?options=-csearch_path%3D{schema}", self.address), schema)
    }

    /// What the server wrote to its log.
    pub fn log(&self) -> String {
        let own = self.own.as_ref().expect("a server of our own");
        fs::read_to_string(own.folder.path().join("log")).unwrap()
    }

    /// Whether the test may stop it.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Stops the server as a crash does, and starts it again.
    pub fn restart(&mut self) {
        self.crash();
        let own = self.own.as_mut().expect("a server of our own");
        own.process = spawn(&own.programs, own.folder.path(), &own.settings);
        self.wait_until_ready();
    }

    /// Stops the server as a crash does.
    pub fn crash(&mut self) {
        self.stop(Signal::QUIT);
    }

    /// Host and port for an address.
    pub fn endpoint(&self) -> String {
        let port = self.own.as_ref().and_then(|own| own.settings.port).expect("a server with a port");
        format!("127.0.0.1:{port}")
    }

    fn stop(&mut self, signal: Signal) {
        if let Some(own) = &mut self.own {
            let process = Pid::from_child(&own.process);
            let _ = kill_process(process, signal);
            let _ = own.process.wait();
        }
    }
}

/// A folder of the account that the server runs as.
fn folder_in(parent: &Path) -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("skills-postgres-").tempdir_in(parent).unwrap();
    if is_root() {
        let changed = Command::new("chown").arg(ACCOUNT).arg(folder.path()).status().unwrap();
        assert!(changed.success(), "the account {ACCOUNT} owns the folder");
    }
    folder
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn spawn(programs: &Path, folder: &Path, settings: &Settings) -> Child {
    let log = fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
    let mut server = program(programs, "postgres");
    match settings.port {
        Some(port) => server.args(["-c", "listen_addresses=127.0.0.1", "-p", &port.to_string()]),
        None => server.args(["-c", "listen_addresses="]),
    };
    server
        .arg("-D")
        .arg(folder.join("data"))
        .arg("-k")
        .arg(folder)
        .args(settings.arguments)
        .envs(settings.variables.iter().map(|(name, value)| (*name, value)))
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(Signal::QUIT);
    }
}
