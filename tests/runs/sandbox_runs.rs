//! Running a script of a bundle: its inputs, its outputs, and the reported isolation.
use crate::sandbox_attacks::attack_setup;

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attack_setup::{Bundle, open_folder, sandboxes};
use skills_sandbox::{
    Contents, End, Enforcement, Guarantee, InputFile, Level, Sandbox, SandboxError, Setup, Verify,
};
use tokio_util::sync::CancellationToken;

const TELL: &str = "
import json, os, sys
print(json.dumps({'args': sys.argv[1:], 'env': dict(os.environ), 'stdin': sys.stdin.read(), 'in': os.getcwd()}))
";

#[tokio::test]
async fn script_receives_only_arguments_stdin_and_variables() {
    let bundle = Bundle::of("tell.py", TELL);
    for (name, sandbox) in sandboxes() {
        let mut spec = bundle.spec("tell.py");
        spec.args = vec!["a b".to_owned(), "--".to_owned(), "ü".to_owned()];
        spec.stdin = "x".repeat(300_000).into_bytes();
        spec.env.insert("MODE".to_owned(), "fast".to_owned());
        let outcome = sandbox.run(spec, CancellationToken::new()).await.expect("starts");
        let result: serde_json::Value = serde_json::from_slice(&outcome.stdout.bytes).expect(name);
        assert_eq!(result["args"], serde_json::json!(["a b", "--", "ü"]), "{name}");
        assert_eq!(result["stdin"].as_str().map(str::len), Some(300_000), "{name}");
        assert_eq!(result["in"].as_str(), outcome.work_directory().to_str(), "{name}");
        let names: Vec<_> =
            result["env"].as_object().expect("an object").keys().map(String::as_str).collect();
        let known = ["HOME", "LANG", "LC_ALL", "LC_CTYPE", "MODE", "PATH", "PWD", "TMPDIR", "TZ"];
        assert!(names.iter().all(|name| known.contains(name)), "{name}: {names:?}");
    }
}

#[tokio::test]
async fn input_files_are_passed_and_outputs_returned() {
    let bundle =
        Bundle::of("copy.sh", "cat ../given.txt > out.txt\nmkdir deep\necho x > deep/note\nexit 7\n");
    let place = open_folder();
    let source = place.path().join("given");
    std::fs::write(&source, "given\n").expect("written");
    for (name, sandbox) in sandboxes() {
        let mut spec = bundle.spec("copy.sh");
        spec.files = vec![InputFile { from: source.clone(), to: "given.txt".into() }];
        spec.workdir = "today".into();
        let outcome = sandbox.run(spec, CancellationToken::new()).await.expect("starts");
        assert_eq!(outcome.end, End::ExitCode(7), "{name}: {}", outcome.stderr.text());
        let paths: Vec<_> = outcome.produced.iter().map(|file| file.path.to_str().expect("plain")).collect();
        assert_eq!(paths, ["today/deep/note", "today/out.txt"], "{name}: the input is not among them");
        let mut text = String::new();
        let mut file = outcome.open(&outcome.produced[1]).expect("there");
        std::io::Read::read_to_string(&mut file, &mut text).expect("read");
        assert_eq!(text, "given\n", "{name}");
        let folder = outcome.work_directory().to_owned();
        drop(outcome);
        assert!(!folder.exists(), "{name}: the work directory goes with its outcome");
    }
}

#[tokio::test]
async fn a_shell_script_has_its_usual_tools() {
    const SCRIPT: &str = "set -euo pipefail
sort <(printf 'b\\na\\n') | tee sorted > /dev/null
chmod +x sorted && touch -d '2020-01-01' sorted
head -c 4 /dev/urandom | wc -c
echo to-stderr > /dev/stderr
cat sorted
";
    let bundle = Bundle::of("tools.sh", SCRIPT);
    for (name, sandbox) in sandboxes() {
        let outcome = sandbox.run(bundle.spec("tools.sh"), CancellationToken::new()).await.expect("starts");
        assert_eq!(outcome.end, End::ExitCode(0), "{name}: {}", outcome.stderr.text());
        assert_eq!(outcome.stdout.text(), "4\na\nb\n", "{name}");
        assert_eq!(outcome.stderr.text(), "to-stderr\n", "{name}");
    }
}

#[tokio::test]
async fn executable_file_needs_no_interpreter() {
    let bundle = Bundle::of("tool", "#!/usr/bin/env python3\nimport sys\nprint(len(sys.argv))\n");
    let script = bundle.path().join("scripts/tool");
    let result = sandboxes()[0].1.run(bundle.spec("tool"), CancellationToken::new()).await;
    assert!(matches!(result, Err(SandboxError::NoInterpreterKnown { .. })), "not executable yet");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("own file");
    for (name, sandbox) in sandboxes() {
        let outcome = sandbox.run(bundle.spec("tool"), CancellationToken::new()).await.expect("starts");
        assert_eq!(outcome.stdout.text(), "1\n", "{name}: {}", outcome.stderr.text());
    }
}

#[tokio::test]
async fn node_runs_where_it_is_installed() {
    const SCRIPT: &str = "
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
const child = execFileSync('echo', ['from a child']).toString().trim();
let secret = 'closed';
try { secret = readFileSync('/etc/passwd', 'utf8'); } catch (error) { secret = error.code; }
console.log(JSON.stringify([child, secret]));
";
    if std::process::Command::new("node").arg("--version").output().is_err() {
        eprintln!("SKIPPED: node is not installed");
        return;
    }
    let bundle = Bundle::of("run.mjs", SCRIPT);
    for (name, sandbox) in sandboxes() {
        let outcome = sandbox.run(bundle.spec("run.mjs"), CancellationToken::new()).await.expect("starts");
        assert_eq!(outcome.end, End::ExitCode(0), "{name}: {}", outcome.stderr.text());
        let result = outcome.stdout.text();
        assert!(
            result == "[\"from a child\",\"EACCES\"]\n" || result == "[\"from a child\",\"ENOENT\"]\n",
            "{name}: {result}"
        );
    }
}

#[tokio::test]
async fn loader_variables_are_refused_before_anything_starts() {
    let bundle = Bundle::of("tell.py", TELL);
    for variable in ["LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "ENV"] {
        for unsandboxed in [false, true] {
            let mut spec = bundle.spec("tell.py");
            spec.env.insert(variable.to_owned(), "/tmp/x".to_owned());
            spec.unsandboxed = unsandboxed;
            let error = sandboxes()[0].1.run(spec, CancellationToken::new()).await.expect_err(variable);
            assert!(matches!(&error, SandboxError::Variable { name, .. } if name == variable), "{error}");
        }
    }
}

#[tokio::test]
async fn canceled_script_can_clean_up() {
    let bundle = Bundle::of("tidy.sh", "trap 'echo tidied; exit 5' TERM\nsleep \"$1\" &\nwait\n");
    for (name, sandbox) in sandboxes() {
        let (mut spec, cancel) = (bundle.spec("tidy.sh"), CancellationToken::new());
        let marker = marker();
        spec.args = vec![marker.clone()];
        let cancelling = async {
            assert!(eventually(|| runs(&["sleep", &marker])).await, "{name}: it never began");
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(sandbox.run(spec, cancel.clone()), cancelling);
        let outcome = outcome.expect("starts");
        assert!(outcome.canceled && !outcome.timed_out, "{name}");
        assert_eq!(outcome.stdout.text(), "tidied\n", "{name}: {:?}", outcome.end);
    }
}

#[tokio::test]
async fn a_run_without_a_waiter_is_killed() {
    let bundle = Bundle::of("long.sh", "setsid sleep \"$1\" &\nwait\n");
    for (name, sandbox) in sandboxes() {
        let mut spec = bundle.spec("long.sh");
        let marker = marker();
        spec.args = vec![marker.clone()];
        let started = tokio::select! {
            outcome = sandbox.run(spec, CancellationToken::new()) => panic!("{name}: ended: {outcome:?}"),
            started = eventually(|| runs(&["sleep", &marker])) => started,
        };
        assert!(started, "{name}: it never began");
        // The future is gone now, and with it the program's end of the helper's socket.
        assert!(
            eventually(|| !runs(&[&marker])).await,
            "{name}: something still has the marker in its arguments"
        );
    }
}

/// A time to sleep, in seconds, that no other process sleeps.
fn marker() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(100);
    format!("60.{}{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst))
}

/// Whether a living process has all of these in its command line.
fn runs(words: &[&str]) -> bool {
    let living = std::fs::read_dir("/proc").expect("proc").flatten();
    living.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(|line| {
        let line = String::from_utf8_lossy(&line);
        words.iter().all(|word| line.contains(word))
    })
}

/// Polls a condition while other tasks continue; false after a timeout.
async fn eventually(mut so: impl FnMut() -> bool) -> bool {
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while !so() {
        if std::time::Instant::now() > until {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    true
}

#[tokio::test]
async fn no_capability_is_left() {
    const SCRIPT: &str = "
import ctypes

libc = ctypes.CDLL(None)
head = (ctypes.c_uint32 * 2)(0x20080522, 0)
sets = (ctypes.c_uint32 * 6)()
assert libc.capget(head, sets) == 0
effective, permitted, inheritable = (sets[0] | sets[3], sets[1] | sets[4], sets[2] | sets[5])
print(effective, permitted)
";
    let bundle = Bundle::of("rights.py", SCRIPT);
    for (name, sandbox) in sandboxes() {
        let outcome = sandbox.run(bundle.spec("rights.py"), CancellationToken::new()).await.expect("starts");
        assert_eq!(outcome.stdout.text(), "0 0\n", "{name}: {}", outcome.stderr.text());
    }
}

#[tokio::test]
async fn scripts_are_rejected_without_a_helper() {
    let bundle = Bundle::of("tell.py", TELL);
    let setup = Setup { helper: "/bin/false".into(), bubblewrap: None, ..Setup::of_this_program() };
    let sandbox = Sandbox::with(setup);
    assert_eq!(sandbox.report().level, Level::Unavailable);
    let error = sandbox.run(bundle.spec("tell.py"), CancellationToken::new()).await.expect_err("refused");
    assert!(
        matches!(error, SandboxError::NoIsolation { .. }) && error.to_string().contains("--unsandboxed"),
        "{error}"
    );
    let mut spec = bundle.spec("tell.py");
    spec.unsandboxed = true;
    let outcome = sandbox.run(spec, CancellationToken::new()).await.expect("asked for");
    assert_eq!(outcome.report.level, Level::Unsandboxed);
    assert_eq!(outcome.report.enforcement(Guarantee::Files), Enforcement::No);
}

#[tokio::test]
async fn a_broken_bubblewrap_is_reported_and_not_used() {
    let setup = Setup { helper: env!("CARGO_BIN_EXE_skills").into(), ..Setup::of_this_program() };
    let sandbox = Sandbox::with(Setup { bubblewrap: Some("/bin/false".into()), ..setup });
    let report = sandbox.report();
    assert!(report.missing.iter().any(|why| why.starts_with("bubblewrap: ")), "{report:?}");
    assert_eq!(report.level, sandboxes()[0].1.report().level);
}

#[tokio::test]
async fn scripts_run_from_what_was_verified() {
    let bundle = Bundle::with("flood.py");
    let word = bundle.path().join("references/notes.md");
    std::fs::write(bundle.path().join("scripts/read.sh"), "cat \"$(dirname \"$0\")/../references/notes.md\"")
        .expect("written");
    for (name, sandbox) in sandboxes() {
        for unsandboxed in [false, true] {
            std::fs::write(&word, "seen").expect("written");
            let (seen, edited) = (Arc::new(Mutex::new(Contents::new())), word.clone());
            let into = Arc::clone(&seen);
            let mut spec = bundle.spec("read.sh");
            spec.unsandboxed = unsandboxed;
            spec.verify = Some(Verify::new(move |supplied| {
                into.lock().unwrap().clone_from(&supplied.bundle);
                // Between the look and the start.
                std::fs::write(&edited, "swapped").map_err(|error| error.to_string())
            }));
            let outcome = sandbox.run(spec, CancellationToken::new()).await.expect("starts");
            assert_eq!(outcome.stdout.text(), "seen", "{name}: {}", outcome.stderr.text());
            let paths: Vec<String> = seen.lock().unwrap().keys().cloned().collect();
            assert_eq!(paths, ["references/notes.md", "scripts/flood.py", "scripts/read.sh"], "{name}");
        }
        let mut spec = bundle.spec("read.sh");
        spec.verify = Some(Verify::new(|_| Err("another one".to_owned())));
        let error = sandbox.run(spec, CancellationToken::new()).await.expect_err("refused");
        assert_eq!(error.code(), "skill_changed", "{name}: {error}");
    }
}

#[tokio::test]
async fn work_directories_are_in_the_configured_location() {
    let bundle = Bundle::of("where.sh", "pwd\n");
    let place = open_folder();
    let base = place.path().join("scratch");
    let setup = Setup { helper: env!("CARGO_BIN_EXE_skills").into(), ..Setup::of_this_program() };
    let sandbox = Sandbox::with(Setup { bubblewrap: None, work_base: Some(base.clone()), ..setup });
    let outcome = sandbox.run(bundle.spec("where.sh"), CancellationToken::new()).await.expect("starts");
    assert!(outcome.stdout.text().starts_with(base.to_str().expect("plain")), "{}", outcome.stdout.text());
    drop(outcome);
    assert_eq!(std::fs::read_dir(&base).expect("made").count(), 0, "nothing is left, of the trial either");
    let dead = base.join("skills-step-dead");
    std::fs::create_dir(&dead).expect("made");
    std::fs::write(dead.join("lock"), "").expect("written");
    assert_eq!(sandbox.leftovers().folders, 1);
    assert_eq!(sandbox.clear_leftovers().folders, 1);
    assert!(!dead.exists());
}

#[tokio::test]
async fn concurrent_scripts_are_isolated() {
    let bundle = Bundle::of("mark.sh", "echo $1 > mark\ncat mark\n");
    for (name, sandbox) in sandboxes() {
        let runs = (0..12).map(|number| {
            let (sandbox, mut spec) = (sandbox.clone(), bundle.spec("mark.sh"));
            spec.args = vec![number.to_string()];
            spec.limits.processes = 4;
            async move { sandbox.run(spec, CancellationToken::new()).await.expect("starts") }
        });
        let outcomes = futures::future::join_all(runs).await;
        for (number, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.stdout.text(), format!("{number}\n"), "{name}: {}", outcome.stderr.text());
        }
    }
}
