//! Attacks on other processes and on the kernel: signals, tracing, limits, `io_uring`, namespaces, keys, daemons.

use std::fs::File;

use skill_workbench::sandbox::{Held, Outcome, Promise, Sandbox, Setup};
use tokio_util::sync::CancellationToken;

use crate::arena::{Attack, Bundle, Stage, Victim, sandboxes, soon};

#[tokio::test]
async fn another_process_is_not_killed() {
    Attack::new("kill.py", Promise::Processes)
        .is_repelled(|_| {
            let mut victim = Victim::new();
            Stage::new([victim.pid().to_string()])
                .seen_by(move |outcome| outcome.end.exit_code() == Some(0) && soon(|| victim.is_dead()))
        })
        .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn limits_of_another_process_stay() {
    Attack::new("prlimit.py", Promise::Processes)
        .is_repelled(|_| {
            let victim = Victim::new();
            let limits = format!("/proc/{}/limits", victim.pid());
            Stage::new([victim.pid().to_string()]).keeping(victim).seen_by(move |_| {
                let text = std::fs::read_to_string(&limits).expect("the victim lives");
                text.lines().any(|line| line.starts_with("Max open files") && line.contains(" 7 "))
            })
        })
        .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_process_is_traced() {
    Attack::new("ptrace.py", Promise::Processes).is_repelled(|_| Stage::new([])).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_namespace_is_made() {
    outside_may_refuse("namespaces.py").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_io_uring_is_made() {
    outside_may_refuse("io_uring.py").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_key_ring_is_opened() {
    outside_may_refuse("keyring.py").await;
}

/// For what many containers refuse by themselves: the control is looked at first, and its absence told.
async fn outside_may_refuse(script: &'static str) {
    let control = Sandbox::with(Setup { bubblewrap: None, ..Setup::of_this_program() });
    let bundle = Bundle::with(script);
    let mut spec = bundle.spec(script);
    spec.unsandboxed = true;
    let outcome = control.run(spec, CancellationToken::new()).await.expect("starts");
    let attack = Attack::new(script, Promise::Privileges);
    if outcome.stdout.text().contains("SUCCEEDED") {
        attack.is_repelled(|_| Stage::new([])).await;
    } else {
        eprintln!("NO CONTROL: {script} is refused by this machine itself: {}", outcome.stdout.text());
        attack.is_repelled_inside(|_| Stage::new([])).await;
    }
}

#[tokio::test]
async fn a_daemon_dies_with_its_script() {
    outlived_by("once").await;
}

#[tokio::test]
async fn a_daemon_that_keeps_moving_dies_too() {
    outlived_by("again").await;
}

async fn outlived_by(kind: &str) {
    let control = Sandbox::with(Setup { bubblewrap: None, ..Setup::of_this_program() });
    let outcome = leave_daemon(&control, kind, true).await;
    assert!(!is_free(&outcome), "without isolation it outlives its script");
    drop(outcome);
    for (name, sandbox) in sandboxes() {
        if sandbox.report().held(Promise::Lifetime) != Held::Yes {
            eprintln!("SKIPPED: daemons ({name}): not promised here");
            continue;
        }
        let outcome = leave_daemon(sandbox, kind, false).await;
        assert!(is_free(&outcome), "{name}: nothing holds the daemon's lock any more");
    }
}

async fn leave_daemon(sandbox: &Sandbox, kind: &str, unsandboxed: bool) -> Outcome {
    let bundle = Bundle::with("daemon.py");
    let mut spec = bundle.spec("daemon.py");
    spec.args = vec![kind.to_owned()];
    spec.unsandboxed = unsandboxed;
    let outcome = sandbox.run(spec, CancellationToken::new()).await.expect("starts");
    assert_eq!(outcome.stdout.text(), "SUCCEEDED in starting\n", "{}", outcome.stderr.text());
    outcome
}

/// Whether the lock that a daemon holds for all of its life is free.
fn is_free(outcome: &Outcome) -> bool {
    let lock = File::open(outcome.work_directory().join("lock")).expect("the script made it");
    lock.try_lock().is_ok()
}
