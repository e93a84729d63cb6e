//! What isolation costs at the start of a script: the same trivial shell script bare, in the sandbox, and in the
//! sandbox with bubblewrap around it where that is installed. One run, so that the figures can be compared.
#![allow(missing_docs, reason = "criterion's macros make functions without")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot run should say so and stop")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use skills_sandbox::{End, Sandbox, Setup, Spec};
use tokio_util::sync::CancellationToken;

fn start(criterion: &mut Criterion) {
    let bundle = tempfile::tempdir().expect("temporary folder");
    let scripts = bundle.path().join("scripts");
    std::fs::create_dir(&scripts).expect("created");
    std::fs::write(scripts.join("true.sh"), "exit 0\n").expect("written");
    let setup = Setup { helper: env!("CARGO_BIN_EXE_skills").into(), ..Setup::of_this_program() };
    let alone = Sandbox::with(Setup { bubblewrap: None, ..setup.clone() });
    eprintln!("alone: {}", alone.report().summary());

    let mut group = criterion.benchmark_group("start");
    group.measurement_time(Duration::from_secs(5));
    let script = scripts.join("true.sh");
    group.bench_function("spawn", |bencher| {
        bencher.iter(|| {
            let mut command = Command::new("/bin/bash");
            let status = command.arg(&script).env_clear().stdin(Stdio::null()).status();
            assert!(status.expect("bash starts").success());
        });
    });
    group.bench_function("unsandboxed", |bencher| run(bencher, &alone, bundle.path(), true));
    group.bench_function("sandboxed", |bencher| run(bencher, &alone, bundle.path(), false));
    if setup.bubblewrap.is_some() {
        let wrapped = Sandbox::with(setup);
        eprintln!("bubblewrap: {}", wrapped.report().summary());
        group.bench_function("bubblewrap", |bencher| run(bencher, &wrapped, bundle.path(), false));
    }
    group.finish();
}

fn run(bencher: &mut criterion::Bencher<'_>, sandbox: &Sandbox, bundle: &Path, unsandboxed: bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    bencher.iter(|| {
        let mut spec = Spec::new(bundle, "scripts/true.sh");
        spec.unsandboxed = unsandboxed;
        let outcome = runtime.block_on(sandbox.run(spec, CancellationToken::new())).expect("starts");
        assert_eq!(outcome.end, End::ExitCode(0));
    });
}

criterion_group!(benches, start);
criterion_main!(benches);
