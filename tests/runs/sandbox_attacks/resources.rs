//! Attacks on resources: memory, disk, processes, output, time.

use std::process::{Command, Stdio};
use std::time::Duration;

use skills_sandbox::{DiskLimit, End, Enforcement, ExceededLimit, Guarantee, SandboxError};
use tokio_util::sync::CancellationToken;

use super::attack_setup::{Attack, AttackSetup, Bundle, sandboxes, soon};

#[tokio::test]
async fn two_gibibytes_of_private_memory_are_refused() {
    Attack::new("memory.py", Guarantee::Memory)
        .is_repelled(|_| AttackSetup::new(["private".to_owned()]))
        .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn two_gibibytes_of_shared_memory_are_refused() {
    Attack::new("memory.py", Guarantee::Memory)
        .is_repelled(|_| AttackSetup::new(["shared".to_owned()]))
        .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn two_gibibytes_in_anonymous_files_are_refused() {
    Attack::new("memory.py", Guarantee::Memory)
        .is_repelled(|_| AttackSetup::new(["nameless".to_owned()]))
        .await;
}

#[tokio::test]
async fn a_file_of_128_mib_is_refused() {
    Attack::new("big_file.py", Guarantee::FileSize)
        .is_repelled(|_| {
            AttackSetup::new([])
                .seen_by(|outcome| outcome.produced.iter().any(|file| file.bytes >= 128 << 20))
        })
        .await;
}

async fn disk_is_limited(kind: &str, limit: DiskLimit) {
    let place = tempfile::tempdir().expect("temporary folder");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/attacks/disk.py");
    let control = Command::new("python3").args([script, kind]).current_dir(place.path()).output();
    let control = control.expect("python3 is installed");
    assert!(control.status.success(), "the control writes all of it: {control:?}");
    let bundle = Bundle::with("disk.py");
    let mut spec = bundle.spec("disk.py");
    spec.args = vec![kind.to_owned()];
    let allowed = match limit {
        DiskLimit::Bytes => spec.limits.disk,
        DiskLimit::Files => spec.limits.files,
    };
    for (name, sandbox) in sandboxes() {
        let outcome = sandbox.run(spec.clone(), CancellationToken::new()).await.expect("starts");
        assert_eq!(outcome.exceeded, Some(ExceededLimit { limit, allowed }), "{name}: {:?}", outcome.end);
        if sandbox.report().enforcement(Guarantee::Disk) != Enforcement::Yes {
            eprintln!("SKIPPED: a hard limit on the disk ({name}): not promised here");
            continue;
        }
        assert_eq!(outcome.end, End::ExitCode(3), "{name}: {}", outcome.stderr.text());
        let output = outcome.stdout.text().into_owned();
        let number = |at: usize| output.split(' ').nth(at).and_then(|word| word.parse::<u64>().ok());
        assert!(
            number(1) <= Some(spec.limits.disk) && number(2) <= Some(spec.limits.files),
            "{name}: {output}"
        );
    }
    // Where no file system can be mounted it is counted, as it is without isolation.
    spec.unsandboxed = true;
    let unsandboxed = &sandboxes()[0].1;
    let outcome = unsandboxed.run(spec, CancellationToken::new()).await.expect("starts");
    assert_eq!(outcome.exceeded, Some(ExceededLimit { limit, allowed }), "{:?}", outcome.end);
}

#[tokio::test]
async fn disk_of_540_mib_is_refused() {
    disk_is_limited("bytes", DiskLimit::Bytes).await;
}

#[tokio::test]
async fn three_thousand_files_are_refused() {
    disk_is_limited("files", DiskLimit::Files).await;
}

#[tokio::test]
async fn sparse_files_count_with_their_full_length() {
    let bundle = Bundle::of("holes.py", "for n in range(8):\n    open(str(n), 'wb').truncate(60 << 20)\n");
    for (name, sandbox) in sandboxes() {
        let outcome = sandbox.run(bundle.spec("holes.py"), CancellationToken::new()).await.expect("starts");
        let limit = outcome.exceeded.map(|exceeded| exceeded.limit);
        assert_eq!(limit, Some(DiskLimit::Bytes), "{name}: artifacts would take 480 MiB");
    }
}

#[tokio::test]
async fn eighty_processes_are_refused() {
    Attack::new("processes.py", Guarantee::ProcessCount).is_repelled(|_| AttackSetup::new([])).await;
}

#[tokio::test]
async fn excessive_output_is_truncated_and_drained() {
    let bundle = Bundle::with("flood.py");
    let mut control = Command::new("python3");
    control.arg(bundle.path().join("scripts/flood.py")).stdout(Stdio::piped());
    let mut child = control.spawn().expect("python3 is installed");
    let mut pipe = child.stdout.take().expect("piped");
    let printed = std::io::copy(&mut pipe, &mut std::io::sink()).expect("read");
    assert!(child.wait().expect("ends").success());
    assert_eq!(printed, 1 << 30, "the control prints all of it");
    for (name, sandbox) in sandboxes() {
        let outcome = sandbox.run(bundle.spec("flood.py"), CancellationToken::new()).await.expect("starts");
        assert_eq!(outcome.end, End::ExitCode(0), "{name}: it is never held up: {}", outcome.stderr.text());
        assert_eq!(outcome.stdout.bytes.len(), 1 << 20, "{name}");
        assert_eq!(outcome.stdout.total, 1 << 30, "{name}");
        assert!(outcome.stdout.truncated() && !outcome.stderr.truncated(), "{name}");
    }
}

#[tokio::test]
async fn a_script_that_ignores_the_request_to_end_is_killed() {
    ignores_the_request_without_a_sandbox();
    let bundle = Bundle::with("stubborn.sh");
    for (name, sandbox) in sandboxes() {
        let mut spec = bundle.spec("stubborn.sh");
        spec.limits.wall = Duration::from_millis(700);
        spec.limits.grace = Duration::from_millis(700);
        let outcome = sandbox.run(spec, CancellationToken::new()).await.expect("starts");
        assert_eq!(outcome.end, End::Signal(9), "{name}: {}", outcome.stderr.text());
        assert!(outcome.timed_out && !outcome.canceled, "{name}");
        let left: Vec<_> = outcome.produced.iter().map(|file| file.path.display().to_string()).collect();
        assert_eq!(left, ["heard", "ready"], "{name}: it was asked first");
    }
}

fn ignores_the_request_without_a_sandbox() {
    let place = tempfile::tempdir().expect("temporary folder");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/attacks/stubborn.sh");
    let mut child =
        Command::new("bash").arg(script).current_dir(place.path()).spawn().expect("bash is installed");
    assert!(soon(|| place.path().join("ready").exists()));
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill is installed");
    assert!(soon(|| place.path().join("heard").exists()), "it hears the request");
    assert!(child.try_wait().expect("a child").is_none(), "and continues");
    child.kill().expect("alive");
    child.wait().expect("ends");
}

#[tokio::test]
async fn endless_script_ends_at_its_timeout() {
    let bundle = Bundle::of("wait.py", "import time\nprint('begun', flush=True)\ntime.sleep(600)\n");
    for (name, sandbox) in sandboxes() {
        let mut spec = bundle.spec("wait.py");
        spec.limits.wall = Duration::from_millis(500);
        let outcome = sandbox.run(spec, CancellationToken::new()).await.expect("starts");
        assert!(outcome.timed_out, "{name}");
        assert_eq!(outcome.end, End::Signal(15), "{name}: asking was enough");
        assert_eq!(outcome.stdout.text(), "begun\n", "{name}: what it had printed is kept");
        assert!(outcome.duration < Duration::from_secs(2), "{name}: {:?}", outcome.duration);
    }
}

#[tokio::test]
async fn spinning_is_ended_by_the_limit_on_processor_time() {
    let bundle = Bundle::of("spin.py", "while True:\n    pass\n");
    for (name, sandbox) in sandboxes() {
        let mut spec = bundle.spec("spin.py");
        spec.limits.cpu = Duration::from_secs(1);
        let outcome = sandbox.run(spec, CancellationToken::new()).await.expect("starts");
        let killed =
            matches!(outcome.end, End::Signal(_)) || outcome.end.exit_code().is_some_and(|code| code > 128);
        assert!(killed && !outcome.timed_out, "{name}: {:?} {:?}", outcome.end, outcome.duration);
    }
}

#[tokio::test]
async fn a_script_prevented_by_limits_is_reported() {
    let bundle = Bundle::of("big.py", "print('x')\n");
    for (name, sandbox) in sandboxes() {
        let mut spec = bundle.spec("big.py");
        spec.limits.memory = 1;
        let error = sandbox.run(spec, CancellationToken::new()).await.expect_err("too little");
        assert!(matches!(error, SandboxError::BadSpec { .. }), "{name}: {error}");
    }
}
