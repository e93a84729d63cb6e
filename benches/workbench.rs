//! What a person feels: the first frame, a key's way to the screen, rest, and memory, of the whole program in a
//! pseudo-terminal. Prints one line per set of skills; a benchmark of whole processes, so no statistics framework.
//!
//! `cargo bench --bench workbench` measures the shipped skills; `SKILLS_BENCH_ROOT=DIR` measures a folder too.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be taken has to stop")]

#[path = "../tests/support/pty.rs"]
#[allow(dead_code, reason = "a test needs more of it than a measurement")]
mod pty;

use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use pty::Pty;

/// What a terminal answers when it is asked where the cursor is, for its background, and what it is.
const ANSWERS: &str = "\x1b[1;2R\x1b]11;rgb:1313/1515/1a1a\x1b\\\x1b[?62c";
/// End of a synchronized update: a frame is on the screen.
const FRAME: &[u8] = b"\x1b[?2026l";
const TYPED: &str = "turn the table in this pdf into a spreadsheet and mail it to the team";

fn main() {
    let home = tempfile::tempdir().unwrap();
    measure("shipped skills", &["--demo"], home.path());
    if let Some(root) = std::env::var_os("SKILLS_BENCH_ROOT") {
        let root = root.to_string_lossy().into_owned();
        // The first start fills the cache; people start more than once.
        measure(&format!("{root}, cold cache"), &["--root", &root], home.path());
        measure(&format!("{root}, warm cache"), &["--root", &root], home.path());
    }
}

fn measure(name: &str, args: &[&str], home: &std::path::Path) {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_skills"));
    command.args(args);
    command.env("TERM", "xterm-256color");
    command.env("COLORTERM", "truecolor");
    command.env("HOME", home);
    for place in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
        command.env(place, home.join(place));
    }
    let began = Instant::now();
    let mut program = Pty::spawn(command, 120, 36);
    program.wait_until("the question what the terminal is", |p| contains(&p.raw, b"\x1b[c"));
    program.send(ANSWERS);
    program.wait_until("a frame", |p| contains(&p.raw, FRAME));
    let first = began.elapsed();
    program.rest(Duration::from_secs(2));
    let resident = resident(program.pid());

    program.send("2");
    program.rest(Duration::from_millis(500));
    let mut keys: Vec<Duration> = TYPED.chars().map(|key| answer_to(&mut program, key)).collect();
    keys.sort();
    program.rest(Duration::from_secs(1));

    let before = ticks(program.pid());
    let bytes = program.written_within(Duration::from_secs(10));
    let ticks = ticks(program.pid()) - before;
    println!(
        "{name}: first frame {:.0} ms; key to bytes p50 {:.1} ms, p95 {:.1} ms; 10 s at rest: {bytes} bytes, \
         {ticks} clock ticks; resident {resident:.0} MB, after typing {:.0} MB",
        millis(first),
        millis(keys[keys.len() / 2]),
        millis(keys[keys.len() * 95 / 100]),
        self::resident(program.pid()),
    );
}

fn answer_to(program: &mut Pty, key: char) -> Duration {
    program.rest(Duration::from_millis(60));
    let seen = program.raw.len();
    let began = Instant::now();
    program.send(&key.to_string());
    program.wait_until("an answer to a key", |p| p.raw.len() > seen);
    began.elapsed()
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Resident memory in MB (`proc_pid_status(5)`).
fn resident(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

/// Processor time used so far, in clock ticks of 10 ms (`proc_pid_stat(5)`, fields 14 and 15).
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
