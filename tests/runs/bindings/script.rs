//! Bindings of protocol `script` in the real sandbox.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use skills_runs::{Artifacts, Call, CallFailure, Caller};
use skills_skill::Digest;
use skills_skill::contract::ServiceTarget;
use tokio_util::sync::CancellationToken;

use super::place::{Bench, Lines, alive, call, until, waived};

fn bench(script: &str) -> Bench {
    let bench = Bench::new();
    bench.write("scripts/run.py", script);
    bench.bind("b", "bundle", "script", "run.py", "");
    bench
}

#[tokio::test]
async fn script_reads_its_request_and_returns_one_object() {
    let bench = bench(
        "import json, os, sys\n\
         given = json.load(sys.stdin)\n\
         print('reading', file=sys.stderr)\n\
         print('half done')\n\
         print(json.dumps({'label': 'seen', 'given': given, 'env': {k: v for k, v in os.environ.items() if k.startswith('SKILLS_')}}))\n",
    );
    let lines = Lines::default();
    let target = Some(json!({"type": "run", "ref": "r1", "content": {"a": 1}}));
    let reply =
        call(&bench.broker(), Call { target, log: lines.sink(), ..bench.call("hello") }).await.unwrap();
    assert_eq!(
        reply.outputs["given"],
        json!({
            "inputs": {"text": "hello", "mode": "fast"},
            "target": {"type": "run", "ref": "r1", "content": {"a": 1}},
            "run": {"trace_id": "trace-1", "idempotency_key": "run-1/classify", "step": "classify"},
        })
    );
    assert_eq!(reply.outputs["env"]["SKILLS_IDEMPOTENCY_KEY"], "run-1/classify");
    assert_eq!(reply.outputs["env"]["SKILLS_TRACE_ID"], "trace-1");
    assert_eq!(lines.texts("stdout"), ["half done"], "the response itself is not a log line");
    assert_eq!(lines.texts("stderr"), ["reading"]);
    let isolation = reply.isolation.unwrap();
    assert!(waived() || ["full", "partial"].contains(&isolation["level"].as_str().unwrap()), "{isolation}");
    assert!(!isolation["summary"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn a_stated_request_is_all_a_script_gets() {
    let bench = bench("import sys\nprint(sys.stdin.read())\n");
    bench.bind("b", "bundle", "script", "scripts/run.py", "request: {label: input.text, do: judge}");
    let reply = call(&bench.broker(), bench.call("hello")).await.unwrap();
    assert_eq!(json!(reply.outputs), json!({"label": "hello", "do": "judge"}));
}

#[tokio::test]
async fn lines_arrive_while_the_script_runs_and_a_cancellation_ends_it() {
    let bench = bench(
        "import os, subprocess, time\n\
         child = subprocess.Popen(['sleep', '600'])\n\
         print('working', flush=True)\nprint('still', flush=True)\n\
         time.sleep(600)\n",
    );
    let (broker, cancel, lines) = (bench.broker(), CancellationToken::new(), Lines::default());
    let waiting = broker.call(Call { log: lines.sink(), ..bench.call("x") }, cancel.clone());
    let stop = async {
        lines.wait_for("working").await;
        cancel.cancel();
    };
    let begun = Instant::now();
    let (result, ()) = tokio::join!(waiting, stop);
    assert_eq!(result.unwrap_err().code, CallFailure::Canceled);
    assert!(begun.elapsed() < Duration::from_secs(15));
    assert_eq!(lines.texts("stdout"), ["working", "still"], "what was held back is log after all");
}

#[tokio::test]
async fn dropping_the_call_ends_the_script_too() {
    // Without isolation there is no warden, and the group alone is killed: the script itself still ends.
    let bench =
        bench("import os, time\nprint(os.getpid(), flush=True)\nprint('.', flush=True)\ntime.sleep(600)\n");
    let (broker, lines) = (bench.broker(), Lines::default());
    let call = Call { log: lines.sink(), ..bench.call("x") };
    tokio::select! {
        _ = broker.call(call, CancellationToken::new()) => panic!("it runs for ten minutes"),
        () = until("the script runs", || !lines.texts("stdout").is_empty()) => {}
    }
    let pid = lines.texts("stdout")[0].clone();
    until("the script ends", || !alive(&pid)).await;
}

#[tokio::test]
async fn every_failed_exit_is_reported() {
    for (script, code, expected) in [
        (
            "import sys\nprint('no file a.csv', file=sys.stderr)\nsys.exit(3)\n",
            CallFailure::RuntimeError,
            "exited with code 3: no file a.csv",
        ),
        ("import os\nos.kill(os.getpid(), 9)\n", CallFailure::RuntimeError, "signal 9"),
        ("pass\n", CallFailure::RuntimeError, "printed no result"),
        ("print('done')\n", CallFailure::RuntimeError, "the last line is not a JSON object"),
        ("print('[1]')\n", CallFailure::RuntimeError, "printed a list"),
        (
            "print('{\"score\": 1}')\n",
            CallFailure::RuntimeError,
            "does not match `text.classify` at conformance level standard: label: required",
        ),
        ("print('{\"label\": 7}')\n", CallFailure::RuntimeError, "label: "),
    ] {
        let bench = bench(script);
        let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(expected), "{error}");
        assert!(error.message.contains("run.py"), "{error}");
    }
    let bench = bench("import sys, time\nprint('before', file=sys.stderr, flush=True)\ntime.sleep(60)\n");
    let error = call(&bench.broker(), Call { timeout: Duration::from_millis(800), ..bench.call("x") })
        .await
        .unwrap_err();
    assert_eq!(error.code, CallFailure::StepTimeout, "{error}");
    assert_eq!(error.stderr.as_deref(), Some("before"));
}

#[tokio::test]
async fn excessive_output_is_truncated_and_reported() {
    let bench = bench(
        "import sys\nfor _ in range(40): sys.stdout.write('x' * (1 << 20) + '\\n')\nprint('{\"label\": \"late\"}')\n",
    );
    let lines = Lines::default();
    let error = call(&bench.broker(), Call { log: lines.sink(), ..bench.call("x") }).await.unwrap_err();
    assert!(error.message.contains("more than the limit of 1048576"), "{error}");
    let logged: usize = lines.texts("stdout").iter().map(String::len).sum();
    assert!(logged < 2 << 20, "{logged}");
    assert!(lines.texts("stdout").iter().any(|line| line.contains("output truncated")));
}

#[tokio::test]
async fn input_files_are_passed_and_outputs_stored_by_digest() {
    let bench = bench(
        "import json, os\nos.makedirs('out', exist_ok=True)\n\
         open('out/report.txt', 'w').write(open('given.txt').read().upper())\nprint(json.dumps({'label': 'written'}))\n",
    );
    let input = bench.write("given", "hello\n");
    let files = BTreeMap::from([("given.txt".to_owned(), input)]);
    let reply = call(&bench.broker(), Call { files, ..bench.call("x") }).await.unwrap();
    assert_eq!(reply.artifacts.len(), 1, "the input is not among them");
    let artifact = &reply.artifacts[0];
    assert_eq!((artifact.name.as_str(), artifact.bytes), ("out/report.txt", 6));
    let store = Artifacts::open(&bench.root().join("artifacts")).unwrap();
    assert_eq!(std::fs::read_to_string(store.path(&artifact.digest).unwrap()).unwrap(), "HELLO\n");
}

#[tokio::test]
async fn an_untrusted_bundle_runs_nothing() {
    let mut bench = bench("import json\nprint(json.dumps({'label': 'ran'}))\n");
    bench.untrusted = Some("the bundle is not trusted: skills trust shows and allows it".to_owned());
    let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::Untrusted);
    assert!(error.message.contains("skills trust"), "{error}");
}

#[tokio::test]
async fn user_script_replaces_a_missing_module() {
    let mut bench = Bench::new();
    bench.write("services/data.yaml", "id: data_baseline\nkind: pythoncall\nmodule: official.data\n");
    bench.bind("b", "data_baseline", "pythoncall", "classify_it", "request: {text: input.text}");
    let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::InvalidConfiguration);
    assert!(
        error.message.contains("Python module official.data")
            && error.message.contains("`data_baseline: {script:"),
        "{error}"
    );
    bench.write(
        "adapter/scripts/data.py",
        "import json, os, sys\nprint(json.dumps({'label': os.environ['SKILLS_OPERATION'] + ' ' + json.load(sys.stdin)['text']}))\n",
    );
    let (bundle, script) = (bench.root().join("adapter"), Path::new("scripts/data.py").to_owned());
    bench.reach("data_baseline", ServiceTarget::Script { bundle, script });
    let reply = call(&bench.broker(), bench.call("x")).await.unwrap();
    assert_eq!(reply.outputs["label"], "classify_it x");
}

#[tokio::test]
async fn swap_after_the_last_check_runs_nothing() {
    let bench = bench("import json\nprint(json.dumps({'label': open('ran', 'w').name}))\n");
    bench.write("scripts/lib/words.py", "A = 1\n");
    let broker = bench.broker();
    let pins = broker.pins("text.classify");
    let launched = || Call { pins: Some(pins.clone()), ..bench.call("x") };
    call(&broker, launched()).await.unwrap();
    bench.write("scripts/lib/words.py", "A = 2\n");
    let error = call(&broker, launched()).await.unwrap_err();
    assert_eq!(error.code, CallFailure::SkillChanged, "{error}");
    call(&broker, Call { pins: Some(broker.pins("text.classify")), ..bench.call("x") }).await.unwrap();
    // For a run that an earlier version launched, only what was checked before counts.
    let earlier = pins.keys().map(|part| (part.clone(), "0".repeat(64))).collect();
    call(&broker, Call { pins: Some(earlier), ..bench.call("x") }).await.unwrap();
    // The binding was added to a run that had none to pin.
    let error = call(&broker, Call { pins: Some(BTreeMap::new()), ..bench.call("x") }).await.unwrap_err();
    assert_eq!(error.code, CallFailure::SkillChanged, "{error}");
}

#[tokio::test]
async fn a_swapped_input_file_runs_nothing() {
    let bench = bench("import json\nprint(json.dumps({'label': open('pay.csv').read()}))\n");
    let (first, other) = (bench.write("first", "one"), bench.write("other", "two"));
    let link = bench.root().join("link");
    std::os::unix::fs::symlink(&first, &link).unwrap();
    let launched = |name: &str| BTreeMap::from([(name.to_owned(), Digest::of(b"one").to_string())]);
    let with = |from: &Path, file_digests: BTreeMap<String, String>| Call {
        files: BTreeMap::from([("pay.csv".to_owned(), from.to_owned())]),
        file_digests,
        ..bench.call("x")
    };
    let broker = bench.broker();
    for from in [&first, &link] {
        let reply = call(&broker, with(from, launched("pay.csv"))).await.unwrap();
        assert_eq!(reply.outputs["label"], "one");
    }
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    // Another target of the link, and a file that was added to those of the launch.
    for (from, digests) in [(&link, launched("pay.csv")), (&first, launched("other.txt"))] {
        let error = call(&broker, with(from, digests)).await.unwrap_err();
        assert_eq!(error.code, CallFailure::SkillChanged, "{error}");
        assert!(error.message.contains("pay.csv"), "{error}");
    }
    bench.write("first", "edited");
    let error = call(&broker, with(&first, launched("pay.csv"))).await.unwrap_err();
    assert_eq!(error.code, CallFailure::SkillChanged, "{error}");
    // An earlier version launched runs without digests.
    let reply = call(&broker, with(&first, BTreeMap::new())).await.unwrap();
    assert_eq!(reply.outputs["label"], "edited");
}

#[tokio::test]
async fn full_disk_of_a_step_is_a_typed_failure() {
    let bench =
        bench("import json\nfor n in range(3000): open(str(n), 'w')\nprint(json.dumps({'label': 'done'}))\n");
    let error = call(&bench.broker(), bench.call("x")).await.unwrap_err();
    assert_eq!(error.code, CallFailure::RuntimeError, "{error}");
    assert_eq!(error.reason.as_deref(), Some(&json!({ "limit": "disk_files", "allowed": 2000 })));
}
