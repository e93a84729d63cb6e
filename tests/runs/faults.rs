//! The process is lost at every point where that hurts, and at random moments with many runs in flight; the next one
//! continues, and nothing that was acknowledged, recorded or forbidden to be repeated is lost, doubled or repeated.
//!
//! `SKILLS_FAULTS=200` sets the number of kills at random moments.
#![cfg(target_os = "linux")]
mod checker;
mod driver;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// The configuration of a driver process.
#[derive(Clone, Default)]
struct DriverOptions<'a> {
    runs: usize,
    /// `point NAME NTH`, `moment EFFECTS MICROSECONDS`, `stop EFFECTS`, `full`; empty to go on to the end.
    fault: &'a str,
}

fn spawn(folder: &Path, options: &DriverOptions<'_>) -> Child {
    // The driver is this test program, with one test that is idle unless a folder is set.
    Command::new(std::env::current_exe().unwrap())
        .args(["faults::driver_process", "--exact", "--nocapture"])
        .env(driver::FOLDER, folder)
        .env(driver::RUNS, options.runs.to_string())
        .env(driver::FAULT, options.fault)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn drive(folder: &Path, options: &DriverOptions<'_>) -> ExitStatus {
    spawn(folder, options).wait().unwrap()
}

#[test]
fn driver_process() {
    driver::main();
}

/// Continues to the end and checks everything.
fn finish_and_check(folder: &Path, runs: usize) {
    let status = drive(folder, &DriverOptions { runs, fault: "" });
    assert!(status.success(), "the process after it goes on to the end: {status}");
    checker::check(folder, runs);
}

fn killed_at(point: &str, nth: usize) {
    let folder = tempfile::tempdir().unwrap();
    let runs = 8;
    let status = drive(folder.path(), &DriverOptions { runs, fault: &format!("point {point} {nth}") });
    assert_eq!(status.signal(), Some(9), "{point} was never reached {nth} times: {status}");
    assert_eq!(std::fs::read_to_string(folder.path().join("hit")).unwrap(), point);
    let flying = checker::in_flight(folder.path());
    assert!(flying > 0, "nothing was in flight at {point}");
    finish_and_check(folder.path(), runs);
}

macro_rules! points {
    ($($test:ident: $point:literal $nth:literal;)+) => {$(
        #[test]
        fn $test() {
            killed_at($point, $nth);
        }
    )+};
}

points! {
    killed_before_a_launch_is_committed: "launch-before-commit" 5;
    killed_after_a_launch_before_it_is_answered: "launch-after-commit" 5;
    killed_after_a_claim: "claim-after-commit" 4;
    killed_after_the_intent_before_the_call: "call-before" 9;
    killed_after_the_call_before_its_report: "call-after" 9;
    killed_while_a_report_is_written: "report-before-commit" 11;
    killed_after_a_report: "report-after-commit" 11;
    killed_when_a_run_has_begun_to_wait: "wait-after-commit" 3;
    killed_while_a_decision_is_written: "command-before-commit" 4;
    killed_after_a_decision_before_it_is_answered: "command-after-commit" 4;
}

/// A generator of the same numbers every time (xorshift, G. Marsaglia 2003), so that a failure can be reproduced.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn killed_at_random_moments_with_fifty_runs_in_flight() {
    let expected: usize = std::env::var("SKILLS_FAULTS").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let (runs, mut kills, mut numbers) = (50, 0, Numbers(0x9e37_79b9_7f4a_7c15));
    let mut most_in_flight = 0;
    while kills < expected {
        let folder = tempfile::tempdir().unwrap();
        // Not more often on one store: a run whose workers died five times without a step between is given up.
        for _ in 0..4.min(expected - kills) {
            let fault = format!("moment {} {}", 1 + numbers.below(80), numbers.below(8000));
            let status = drive(folder.path(), &DriverOptions { runs, fault: &fault });
            if status.success() {
                break;
            }
            assert_eq!(status.signal(), Some(9), "{fault}: {status}");
            kills += 1;
            let flying = checker::in_flight(folder.path());
            assert!(flying > 0, "nothing was in flight: {fault}");
            most_in_flight = most_in_flight.max(flying);
        }
        finish_and_check(folder.path(), runs);
    }
    assert!(most_in_flight >= 30, "{most_in_flight} runs in flight at most");
    eprintln!("{kills} kills, up to {most_in_flight} runs in flight");
}

#[test]
fn a_worker_that_sleeps_past_its_lease_writes_nothing_when_it_wakes() {
    let options = DriverOptions { runs: 3, fault: "stop 2" };
    // A process suspended within a commit blocks all others, whatever its lease: `leases.rs` tests that.
    let (folder, mut sleeper, pid) = loop {
        let folder = tempfile::tempdir().unwrap();
        let mut sleeper = spawn(folder.path(), &options);
        let pid = Pid::from_raw(i32::try_from(sleeper.id()).unwrap()).unwrap();
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "it sleeps in the middle of a step: {status:?}");
        let store = rusqlite::Connection::open(folder.path().join("runs.db")).unwrap();
        if store.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok() {
            break (folder, sleeper, pid);
        }
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    };
    assert!(checker::in_flight(folder.path()) > 0);
    let heir = drive(folder.path(), &DriverOptions { runs: 3, fault: "" });
    assert!(heir.success(), "another takes over when the lease is out: {heir}");
    let before = checker::everything(folder.path());
    kill_process(pid, Signal::CONT).unwrap();
    let woken = sleeper.wait().unwrap();
    assert!(woken.success(), "it exits cleanly: {woken}");
    assert_eq!(checker::everything(folder.path()), before, "what it writes late changes nothing");
    checker::check(folder.path(), 3);
}

#[test]
fn a_full_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=2m none \"$1\" || exit 77; shift; exec \"$@\"";
    let status = Command::new("unshare")
        .args(["-r", "-m", "sh", "-c", script, "sh"])
        .arg(&disk)
        .arg(std::env::current_exe().unwrap())
        .args(["faults::driver_process", "--exact", "--nocapture"])
        .env(driver::FOLDER, &disk)
        .env(driver::RUNS, "0")
        .env(driver::FAULT, "full")
        .stdout(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => {}
        // 1 from unshare itself, 77 from the mount: the test itself has not started then.
        Ok(status) if matches!(status.code(), Some(1 | 77)) => {
            eprintln!("skipped: no file system of a given size can be made here ({status})");
        }
        Ok(status) => panic!("{status}"),
        Err(error) => eprintln!("skipped: unshare cannot be started: {error}"),
    }
}
