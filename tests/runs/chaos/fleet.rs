//! The processes of the service and their server, and what can be done to them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::effects::{Effects, now_ms};
use crate::binary::Home;
use crate::faults::Numbers;
use crate::postgres::Server;

/// Processes of the service.
pub const SIZE: usize = 3;

pub const SKILL: &str = "chaos";

/// Its steps; those of which the outcome is unknown if they are interrupted.
pub const REPEATABLE: [&str; 2] = ["read", "last"];
pub const UNREPEATABLE: [&str; 2] = ["send", "pay"];

/// Where a wall clock jumps to, in seconds. That of the server moves leases, too; a jump of a day would end the keys of
/// launches, which are valid for that long.
const JUMPS: [i64; 5] = [300, -300, 3_600, -3_600, 0];

/// How long a process has to be back in after it was killed.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A process that is started again whenever it ends.
#[derive(Default)]
struct Member {
    state: Mutex<State>,
    changed: Condvar,
    ending: AtomicBool,
    starts: AtomicUsize,
}

#[derive(Default)]
struct State {
    process: Option<Pid>,
    address: Option<String>,
}

impl Member {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn signal(&self, signal: Signal) -> bool {
        // The process is reaped under the same lock, so that its number is still its own.
        self.state().process.is_some_and(|process| kill_process(process, signal).is_ok())
    }

    fn keep(&self, mut command: Command) {
        while !self.ending.load(Ordering::SeqCst) {
            let mut child = command.spawn().unwrap();
            let process = Pid::from_child(&child);
            self.state().process = Some(process);
            self.starts.fetch_add(1, Ordering::SeqCst);
            // None where it ended first: without its store it does not start.
            if let Some(address) = address(&mut child) {
                self.state().address = Some(address);
                self.changed.notify_all();
            }
            waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
            let mut state = self.state();
            child.wait().unwrap();
            *state = State::default();
        }
    }
}

/// The address that a service prints.
fn address(child: &mut Child) -> Option<String> {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let announced: serde_json::Value = serde_json::from_str(&line).ok()?;
    Some(announced["address"].as_str()?.strip_prefix("http://")?.to_owned())
}

/// The current addresses of the processes.
#[derive(Clone)]
pub struct Addresses(Arc<Vec<Member>>);

impl Addresses {
    pub fn of(&self, member: usize) -> Option<String> {
        self.0[member].state().address.clone()
    }
}

/// A clock that can be moved: the offset is read from a file.
struct WallClock {
    library: PathBuf,
    offset: PathBuf,
}

impl WallClock {
    fn new(folder: &Path, name: &str, library: &Path) -> Self {
        let offset = folder.join(name);
        fs::write(&offset, 0_i64.to_ne_bytes()).unwrap();
        fs::set_permissions(&offset, fs::Permissions::from_mode(0o644)).unwrap();
        Self { library: library.to_owned(), offset }
    }

    fn variables(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.library.clone()), ("SKILLS_CHAOS_CLOCK", self.offset.clone())]
    }

    fn set(&self, seconds: i64) {
        let file = fs::File::options().write(true).open(&self.offset).unwrap();
        file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }
}

/// None, with a message, where there is no C compiler.
fn library(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/chaos/wall_clock.c");
    let library = folder.join("wall_clock.so");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
    match made {
        Ok(status) if status.success() => Some(library),
        other => {
            eprintln!("no clock jumps: cc does not compile their library ({other:?})");
            None
        }
    }
}

/// A suspension that lasts until then.
struct Suspension {
    member: usize,
    until: Instant,
}

pub struct Fleet {
    folder: tempfile::TempDir,
    /// The skills, and the homes of the processes.
    shared: Home,
    server: Server,
    schema: String,
    store: String,
    members: Arc<Vec<Member>>,
    keepers: Vec<JoinHandle<()>>,
    suspended: Vec<Suspension>,
    /// When a process was continued after a suspension, or all leases ended by a jump of the server's clock.
    takeovers: Vec<(Option<usize>, i64)>,
    clocks: Vec<WallClock>,
    server_clock: Option<WallClock>,
}

fn write_skill(home: &Home) {
    home.skill(SKILL, "description: Calls a service, which loses its callers.", "Body.\n");
    home.file(
        "chaos/skill.yaml",
        "id: test.chaos\nversion: 1.0.0\ninputs: {n: {type: integer, required: true}}\n\
         outputs: {n: {type: integer}}\nsteps:\n\
         \x20 - {id: read, uses: chaos.read, input: {n: inputs.n}, output: {n: vars.n}}\n\
         \x20 - {id: send, uses: chaos.send, input: {n: inputs.n}}\n\
         \x20 - {id: pay, uses: chaos.pay, input: {n: inputs.n}}\n\
         \x20 - {id: last, uses: chaos.last, input: {n: inputs.n}, output: {n: outputs.n}}\n",
    );
    for step in REPEATABLE.into_iter().chain(UNREPEATABLE) {
        let acts = UNREPEATABLE.contains(&step);
        home.file(
            &format!("chaos/capabilities/{step}.yaml"),
            format!(
                "id: chaos.{step}\nversion: 1.0.0\ndescription: Of these tests.\ninputs: {{n: {{type: integer}}}}\n\
                 outputs: {{n: {{type: integer}}}}\n\
                 properties: {{deterministic: {}, side_effects: {acts}, idempotent: {}}}\n\
                 safety: {{trust_level: standard, requires_confirmation: {}}}\n",
                !acts,
                !acts,
                step == "pay"
            ),
        );
        home.file(
            &format!("chaos/bindings/{step}.yaml"),
            format!(
                "id: chaos-{step}\ncapability: chaos.{step}\nservice: world\nprotocol: openapi\n\
                 operation: POST /{step}\nrequest: {{n: input.n}}\nresponse: {{n: response.n}}\n"
            ),
        );
    }
}

impl Fleet {
    /// None, with a message, where PostgreSQL is not installed or may not be stopped.
    pub fn start(effects: &Effects) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("skills-chaos-").tempdir_in("/tmp").unwrap();
        // The server has an account of its own.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let library = library(folder.path());
        let clock = |name: &str| Some(WallClock::new(folder.path(), name, library.as_deref()?));
        let server_clock = clock("server");
        let server = Server::start_with(server_clock.iter().flat_map(WallClock::variables).collect())?;
        if !server.is_own() {
            eprintln!("skipped: the server of SKILLS_TEST_POSTGRES is not stopped by a test");
            return None;
        }
        let clocks: Vec<WallClock> = (0..SIZE).filter_map(|n| clock(&n.to_string())).collect();
        let (store, schema) = server.store();
        let shared = Home::empty();
        write_skill(&shared);
        let members: Arc<Vec<Member>> = Arc::new((0..SIZE).map(|_| Member::default()).collect());
        let mut fleet = Self {
            folder,
            shared,
            server,
            schema,
            store,
            members,
            keepers: Vec::new(),
            suspended: Vec::new(),
            takeovers: Vec::new(),
            clocks,
            server_clock,
        };
        for member in 0..SIZE {
            let command = fleet.serve(member, effects);
            let members = Arc::clone(&fleet.members);
            fleet.keepers.push(std::thread::spawn(move || members[member].keep(command)));
        }
        fleet.wait_until_all_answer();
        Some(fleet)
    }

    fn serve(&self, member: usize, effects: &Effects) -> Command {
        let home = self.folder.path().join(format!("home-{member}"));
        let config = home.join(".config/skill-workbench/config.yaml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        let skills = self.shared.skills();
        let settings = format!(
            "trust: [\"{}\"]\nservices: {{world: {{url: \"{}\", headers: {{member: \"${{MEMBER}}\"}}}}}}\nworkers: 4\n",
            skills.display(),
            effects.url()
        );
        fs::write(config, settings).unwrap();
        let log = fs::File::options().create(true).append(true).open(self.log_file(member)).unwrap();
        // It ends with the thread that started it.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", env!("CARGO_BIN_EXE_skills"), "--root"])
            .arg(skills)
            .args(["--store", &self.store, "--json", "serve", "--port", "0"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("LANG", "C.UTF-8")
            .env("MEMBER", member.to_string())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        if let Some(clock) = self.clocks.get(member) {
            command.envs(clock.variables());
        }
        command
    }

    fn log_file(&self, member: usize) -> PathBuf {
        self.folder.path().join(format!("log-{member}"))
    }

    /// The last lines that the processes wrote.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for member in 0..SIZE {
            let log = fs::read_to_string(self.log_file(member)).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            text += &format!("process {member}:\n{}\n", lines[lines.len().saturating_sub(30)..].join("\n"));
        }
        text
    }

    fn wait_until_all_answer(&self) {
        let deadline = Instant::now() + START_TIMEOUT;
        for member in self.members.iter() {
            let left = deadline.saturating_duration_since(Instant::now());
            let waits = |state: &mut State| state.address.is_none();
            let (state, over) = member.changed.wait_timeout_while(member.state(), left, waits).unwrap();
            drop(state);
            assert!(!over.timed_out(), "a process does not start\n{}", self.logs());
        }
    }

    pub fn addresses(&self) -> Addresses {
        Addresses(Arc::clone(&self.members))
    }

    pub fn starts(&self) -> usize {
        self.members.iter().map(|member| member.starts.load(Ordering::SeqCst)).sum()
    }

    /// What a statement prints that reads the store.
    pub fn sql(&self, sql: &str) -> String {
        self.server.sql(&format!("SET search_path = {}; {sql}", self.schema))
    }

    /// What a command prints that is run on the store.
    pub fn command(&self, args: &[&str]) -> crate::binary::Answer {
        self.shared.run(&[&["--store", &self.store], args].concat())
    }

    pub fn has_suspended(&self) -> bool {
        !self.suspended.is_empty()
    }

    pub fn is_suspended(&self, member: usize) -> bool {
        self.suspended.iter().any(|of| of.member == member)
    }

    /// Kills a process; one that is suspended is left to be continued.
    pub fn kill(&self, member: usize) -> bool {
        !self.is_suspended(member) && self.members[member].signal(Signal::KILL)
    }

    pub fn suspend(&mut self, member: usize, time: Duration) -> bool {
        let done = !self.is_suspended(member) && self.members[member].signal(Signal::STOP);
        if done {
            self.suspended.push(Suspension { member, until: Instant::now() + time });
        }
        done
    }

    /// Continues those whose suspension is over.
    pub fn continue_due(&mut self) {
        let now = Instant::now();
        self.continue_those(|of| of.until <= now);
    }

    fn continue_those(&mut self, is_due: impl Fn(&Suspension) -> bool) {
        let (due, rest) = std::mem::take(&mut self.suspended).into_iter().partition(is_due);
        self.suspended = rest;
        let due: Vec<Suspension> = due;
        for of in due {
            self.takeovers.push((Some(of.member), now_ms()));
            self.members[of.member].signal(Signal::CONT);
        }
    }

    pub fn restart_primary(&mut self) -> bool {
        self.server.restart();
        true
    }

    pub fn close_connections(&self, count: u64) -> bool {
        let sql = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
             WHERE application_name = 'skill-workbench' ORDER BY random() LIMIT {count}) victims"
        );
        self.server.sql(&sql) != "0"
    }

    /// Moves the wall clock of a process, or of the server.
    pub fn jump(&mut self, member: Option<usize>, numbers: &mut Numbers) -> bool {
        let seconds = JUMPS[usize::try_from(numbers.below(JUMPS.len() as u64)).unwrap()];
        match (member, &self.server_clock) {
            (Some(member), _) => {
                let Some(clock) = self.clocks.get(member) else { return false };
                clock.set(seconds);
            }
            (None, Some(clock)) => {
                clock.set(seconds);
                self.takeovers.push((None, now_ms()));
            }
            (None, None) => return false,
        }
        true
    }

    /// Ends all faults, and waits until every process responds. The clocks are not changed.
    pub fn calm_down(&mut self) {
        self.continue_those(|_| true);
        self.wait_until_all_answer();
    }

    /// Whether this process may not have known for this long that its runs were taken over.
    pub fn may_have_been_late(&self, member: usize, at_ms: i64, within: Duration) -> bool {
        let within = i64::try_from(within.as_millis()).unwrap();
        self.takeovers
            .iter()
            .any(|(of, then)| of.is_none_or(|of| of == member) && (0..=within).contains(&(at_ms - then)))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for member in self.members.iter() {
            member.ending.store(true, Ordering::SeqCst);
        }
        for (member, keeper) in self.members.iter().zip(self.keepers.drain(..)) {
            // It may be about to start a process.
            while !keeper.is_finished() {
                member.signal(Signal::KILL);
                std::thread::yield_now();
            }
            let _ = keeper.join();
        }
    }
}
