//! Where an attack is tried: once without isolation, where it must succeed, and then in every sandbox that this
//! machine gives, where it must fail for the right reason.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use skills_sandbox::{End, Enforcement, Guarantee, Level, Limits, Outcome, Sandbox, Setup, Spec};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Exit code of an attack that was refused; any other failure has another one.
const REFUSED: i32 = 3;

/// Every sandbox of this machine: the helper alone, and inside bubblewrap when that is installed.
pub fn sandboxes() -> &'static [(&'static str, Sandbox)] {
    static ALL: OnceLock<Vec<(&'static str, Sandbox)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let setup = Setup { helper: env!("CARGO_BIN_EXE_skills").into(), ..Setup::of_this_program() };
        let alone = Sandbox::with(Setup { bubblewrap: None, ..setup.clone() });
        assert!(
            !cfg!(target_os = "linux") || alone.report().level >= Level::Partial || waived(),
            "this machine isolates nothing: {}; set SKILLS_TEST_WITHOUT_ISOLATION=1 to accept that",
            alone.report().summary()
        );
        let mut all = vec![("alone", alone)];
        if setup.bubblewrap.is_none() {
            eprintln!("SKIPPED: no bwrap on PATH, so nothing is tried inside bubblewrap");
            return all;
        }
        let wrapped = Sandbox::with(setup);
        if wrapped.report().means.iter().any(|means| means == "bubblewrap") {
            all.push(("bubblewrap", wrapped));
        } else {
            eprintln!("SKIPPED: bubblewrap does not work here: {}", wrapped.report().missing.join("; "));
        }
        all
    })
}

fn waived() -> bool {
    std::env::var_os("SKILLS_TEST_WITHOUT_ISOLATION").is_some()
}

/// A bundle with some scripts of `tests/fixtures/attacks`, notes, and a link that points outside.
pub struct Bundle {
    folder: TempDir,
}

impl Bundle {
    pub fn with(script: &str) -> Self {
        let folder = open_folder();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/attacks").join(script);
        for part in ["scripts", "references"] {
            std::fs::create_dir(folder.path().join(part)).expect("new folder");
        }
        std::fs::copy(fixture, folder.path().join("scripts").join(script)).expect("the fixture is there");
        std::fs::write(folder.path().join("references/notes.md"), "notes").expect("written");
        Self { folder }
    }

    /// A bundle whose only script is this text.
    pub fn of(name: &str, text: &str) -> Self {
        let folder = open_folder();
        std::fs::create_dir(folder.path().join("scripts")).expect("new folder");
        std::fs::write(folder.path().join("scripts").join(name), text).expect("written");
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn link_out_to(&self, target: &Path) {
        std::os::unix::fs::symlink(target, self.folder.path().join("references/leak")).expect("linked");
    }

    pub fn spec(&self, script: &str) -> Spec {
        Spec::new(self.folder.path(), Path::new("scripts").join(script))
    }
}

/// A temporary folder that every user may enter and write to: what is refused inside is refused by the sandbox.
pub fn open_folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder =
        tempfile::tempdir_in(std::env::temp_dir().canonicalize().expect("there")).expect("temporary folder");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).expect("own folder");
    folder
}

/// What one try needs: arguments, what must stay alive, and a way to see from outside whether it succeeded.
pub struct AttackSetup {
    pub args: Vec<String>,
    /// Whether the attack had its effect; checked once, after the script has ended.
    pub happened: Box<dyn FnMut(&Outcome) -> bool + Send>,
    pub keep: Vec<Box<dyn Any + Send>>,
}

impl AttackSetup {
    /// A try whose own word is enough.
    pub fn new(args: impl IntoIterator<Item = String>) -> Self {
        let happened = Box::new(|outcome: &Outcome| outcome.stdout.text().contains("SUCCEEDED"));
        Self { args: args.into_iter().collect(), happened, keep: Vec::new() }
    }

    pub fn keeping(mut self, resource: impl Any + Send) -> Self {
        self.keep.push(Box::new(resource));
        self
    }

    pub fn seen_by(mut self, happened: impl FnMut(&Outcome) -> bool + Send + 'static) -> Self {
        self.happened = Box::new(happened);
        self
    }
}

pub struct Attack {
    pub script: &'static str,
    pub against: Guarantee,
    pub limits: Limits,
}

impl Attack {
    pub fn new(script: &'static str, against: Guarantee) -> Self {
        Self { script, against, limits: Limits::default() }
    }

    /// Tries it without isolation and in every sandbox.
    pub async fn is_repelled(&self, stage: impl Fn(&Bundle) -> AttackSetup) {
        let control = Sandbox::with(Setup { bubblewrap: None, ..Setup::of_this_program() });
        let (outcome, happened) = self.run(&control, true, &stage).await;
        assert!(
            happened && outcome.end == End::ExitCode(0),
            "{} must succeed without isolation: {:?} {} {}",
            self.script,
            outcome.end,
            outcome.stdout.text(),
            outcome.stderr.text()
        );
        assert_eq!(outcome.report.level, Level::Unsandboxed);
        self.is_repelled_inside(stage).await;
    }

    /// Tries it in every sandbox, for an attack that the machine around may refuse as well.
    pub async fn is_repelled_inside(&self, stage: impl Fn(&Bundle) -> AttackSetup) {
        for (name, sandbox) in sandboxes() {
            if sandbox.report().enforcement(self.against) == Enforcement::No {
                eprintln!("SKIPPED: {} against {} ({name}): not promised here", self.script, self.against);
                continue;
            }
            let (outcome, happened) = self.run(sandbox, false, &stage).await;
            let report = format!(
                "{} {name}: {:?} {} {}",
                self.script,
                outcome.end,
                outcome.stdout.text(),
                outcome.stderr.text()
            );
            assert!(!happened, "had its effect: {report}");
            assert_eq!(outcome.end, End::ExitCode(REFUSED), "not refused, but: {report}");
        }
    }

    async fn run(
        &self,
        sandbox: &Sandbox,
        unsandboxed: bool,
        stage: &impl Fn(&Bundle) -> AttackSetup,
    ) -> (Outcome, bool) {
        let bundle = Bundle::with(self.script);
        let mut stage = stage(&bundle);
        let mut spec = bundle.spec(self.script);
        spec.args = std::mem::take(&mut stage.args);
        spec.limits = self.limits;
        spec.unsandboxed = unsandboxed;
        let outcome = sandbox.run(spec, CancellationToken::new()).await.expect("the script starts");
        let happened = (stage.happened)(&outcome);
        (outcome, happened)
    }
}

/// A process of the tests' own user that waits for its end.
pub struct Victim(std::process::Child);

impl Victim {
    pub fn new() -> Self {
        let child = std::process::Command::new("sleep").arg("600").env("VICTIM_SECRET", "x").spawn();
        Self(child.expect("sleep is installed"))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn is_dead(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(Some(_)))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Polls until it holds; false after a timeout.
pub fn soon(mut so: impl FnMut() -> bool) -> bool {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while !so() {
        if std::time::Instant::now() > until {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

pub fn text(path: &Path) -> String {
    PathBuf::from(path).into_os_string().into_string().expect("plain path")
}
