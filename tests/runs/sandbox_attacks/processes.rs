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
async fn no_asynchronous_requests_are_reserved() {
    outside_may_refuse("aio.py").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_inotify_instance_is_created() {
    outside_may_refuse("inotify.py").await;
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

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_daemon_with_any_name_dies_too() {
    outlived_by("renamed").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_daemon_without_its_first_thread_dies_too() {
    outlived_by("headless").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_daemon_that_forbids_tracing_dies_too() {
    outlived_by("untraceable").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_daemon_of_a_script_ended_by_a_real_time_signal_dies_too() {
    outlived_by("signaled").await;
}

/// The script itself hides in the same ways, and is stopped at its time limit.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_hidden_script_ends_at_its_timeout() {
    const RENAMED: &str = "import ctypes, time\n\
        ctypes.CDLL(None).prctl(15, b'\\xff\\xfe\\xfd', 0, 0, 0)\ntime.sleep(60)\n";
    const HEADLESS: &str = "import ctypes, platform, threading, time\n\
        threading.Thread(target=time.sleep, args=(60,)).start()\n\
        ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)\n";
    for (name, sandbox) in sandboxes() {
        for text in [RENAMED, HEADLESS] {
            let bundle = Bundle::of("hide.py", text);
            let mut spec = bundle.spec("hide.py");
            spec.limits.wall = std::time::Duration::from_millis(500);
            let outcome = sandbox.run(spec, CancellationToken::new()).await.expect("starts");
            assert!(outcome.timed_out, "{name}: {}", outcome.stderr.text());
            assert!(outcome.duration.as_secs() < 8, "{name}: {:?}", outcome.duration);
        }
    }
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

/// Whether a living process was started for this try; a daemon keeps the command line of its script, which is read by
/// thread because the first one may have ended.
fn lives(marker: &str) -> bool {
    let living = std::fs::read_dir("/proc").expect("proc").flatten();
    let threads = living.filter_map(|entry| std::fs::read_dir(entry.path().join("task")).ok());
    let mut lines =
        threads.flatten().flatten().filter_map(|thread| std::fs::read(thread.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(marker))
}
