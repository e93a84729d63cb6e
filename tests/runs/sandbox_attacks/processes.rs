//! Attacks on other processes and on the kernel: signals, tracing, limits, `io_uring`, namespaces, keys, daemons.

use skills_sandbox::{Enforcement, Guarantee, Outcome, Sandbox, Setup};
use tokio_util::sync::CancellationToken;

use super::attack_setup::{Attack, AttackSetup, Bundle, Victim, sandboxes, soon};

#[tokio::test]
async fn another_process_is_not_killed() {
    Attack::new("kill.py", Guarantee::Processes)
        .is_repelled(|_| {
            let mut victim = Victim::new();
            AttackSetup::new([victim.pid().to_string()])
                .seen_by(move |outcome| outcome.end.exit_code() == Some(0) && soon(|| victim.is_dead()))
        })
        .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn limits_of_another_process_stay() {
    Attack::new("prlimit.py", Guarantee::Processes)
        .is_repelled(|_| {
            let victim = Victim::new();
            let limits = format!("/proc/{}/limits", victim.pid());
            AttackSetup::new([victim.pid().to_string()]).keeping(victim).seen_by(move |_| {
                let text = std::fs::read_to_string(&limits).expect("the victim lives");
                text.lines().any(|line| line.starts_with("Max open files") && line.contains(" 7 "))
            })
        })
        .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_process_is_traced() {
    Attack::new("ptrace.py", Guarantee::Processes).is_repelled(|_| AttackSetup::new([])).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_namespace_is_created() {
    outside_may_refuse("namespaces.py").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_io_uring_is_created() {
    outside_may_refuse("io_uring.py").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_key_ring_is_opened() {
    outside_may_refuse("keyring.py").await;
}

/// For operations that many containers reject: the control is checked first, and its absence is reported.
async fn outside_may_refuse(script: &'static str) {
    let control = Sandbox::with(Setup { bubblewrap: None, ..Setup::of_this_program() });
    let bundle = Bundle::with(script);
    let mut spec = bundle.spec(script);
    spec.unsandboxed = true;
    let outcome = control.run(spec, CancellationToken::new()).await.expect("starts");
    let attack = Attack::new(script, Guarantee::Privileges);
    if outcome.stdout.text().contains("SUCCEEDED") {
        attack.is_repelled(|_| AttackSetup::new([])).await;
    } else {
        eprintln!("NO CONTROL: {script} is refused by this machine itself: {}", outcome.stdout.text());
        attack.is_repelled_inside(|_| AttackSetup::new([])).await;
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
    let marker = format!("daemon-{kind}-{}", std::process::id());
    let outcome = leave_daemon(&control, &[kind, &marker], true).await;
    assert!(soon(|| lives(&marker)), "without isolation it outlives its script");
    drop(outcome);
    assert!(soon(|| !lives(&marker)), "it ends with its work directory");
    for (name, sandbox) in sandboxes() {
        if sandbox.report().enforcement(Guarantee::Lifetime) != Enforcement::Yes {
            eprintln!("SKIPPED: daemons ({name}): not promised here");
            continue;
        }
        leave_daemon(sandbox, &[kind, &marker], false).await;
        // One that hands over all the time is not in every listing of the living.
        assert!((0..100).all(|_| !lives(&marker)), "{name}: nothing of it is left");
    }
}

async fn leave_daemon(sandbox: &Sandbox, args: &[&str], unsandboxed: bool) -> Outcome {
    let bundle = Bundle::with("daemon.py");
    let mut spec = bundle.spec("daemon.py");
    spec.args = args.iter().map(|arg| (*arg).to_owned()).collect();
    spec.unsandboxed = unsandboxed;
    let outcome = sandbox.run(spec, CancellationToken::new()).await.expect("starts");
    assert_eq!(outcome.stdout.text(), "SUCCEEDED in starting\n", "{}", outcome.stderr.text());
    outcome
}

/// Whether a living process was started for this try; a daemon keeps the command line of its script.
fn lives(marker: &str) -> bool {
    let living = std::fs::read_dir("/proc").expect("proc").flatten();
    let mut lines = living.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(marker))
}
