//! Guarantees of trust, tested from outside: changes, links, races, damage.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the tests' scratch folder")]

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::thread;
use std::time::Duration;

use super::*;
use skills_skill::Digest;

const AT: &str = "2026-01-02T03:04:05Z";

struct TestHome {
    dir: tempfile::TempDir,
    trust: Trust,
}

impl TestHome {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let trust = trust(dir.path());
        let place = Self { dir, trust };
        place.write("skills/a/SKILL.md", "---\nname: a\ndescription: Does a.\n---\n");
        place.write("skills/a/skill.yaml", "id: a\n");
        place.write("skills/a/scripts/run.py", "print(1)\n");
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn pin(&self, path: &str) {
        let place = self.at(path);
        let seen = self.trust.compute_digest(&place).unwrap();
        self.trust.pin(&[(place, seen)], AT).unwrap();
    }

    fn state(&self, path: &str) -> TrustState {
        let state = self.trust.state(&self.at(path));
        // Cached and fresh results must never differ.
        assert_eq!(trust(self.dir.path()).state(&self.at(path)), state);
        let snapshot = self.trust.trust_snapshot();
        assert_eq!(
            [snapshot.state(&self.at(path)), snapshot.state(&self.at(path))],
            [state.clone(), state.clone()]
        );
        state
    }

    fn changed(&self, path: &str) -> Vec<String> {
        match self.state(path) {
            TrustState::Changed { files } => files,
            other => panic!("{other:?}"),
        }
    }
}

fn refusal(place: &TestHome) -> Option<String> {
    place.trust.refusal(&place.at("skills/a"), "it", "a")
}

fn trust(dir: &Path) -> Trust {
    Trust::new(Some(dir.join("data/trust.json")), dir.join("shipped"), vec![dir.join("named")])
}

/// The folder may contain what was trusted again before it is checked.
#[test]
fn content_must_match_the_pinned_digest() {
    let place = TestHome::new();
    let of =
        |path: &str, text: &str| BTreeMap::from([(path.to_owned(), Digest::of(text.as_bytes()).to_string())]);
    let files = place.trust.compute_digest(&place.at("skills/a")).unwrap().files;
    let path = files.keys().next().unwrap();
    let text = fs::read_to_string(place.at("skills/a").join(path)).unwrap();
    let why =
        |read: &BTreeMap<String, String>| place.trust.refusal_of(&place.at("skills/a"), read, "it", "a");
    assert!(why(&of(path, &text)).unwrap().contains("is not trusted"));
    place.pin("skills/a");
    assert_eq!(why(&of(path, &text)), None);
    for read in [of(path, "other"), of("other.md", &text)] {
        assert!(why(&read).unwrap().contains("changed since it was trusted"), "{read:?}");
    }
    let link = BTreeMap::from([(path.clone(), format!("link:{}", Digest::of(text.as_bytes())))]);
    assert!(why(&link).is_some());
}

#[test]
fn a_folder_of_the_settings_counts_by_its_real_path_too() {
    let place = TestHome::new();
    let home = place.dir.path().canonicalize().unwrap();
    fs::create_dir_all(home.join("repo/skills")).unwrap();
    symlink(home.join("skills/a"), home.join("repo/skills/b")).unwrap();
    symlink(&home, home.join("link")).unwrap();
    place.pin("skills/a");
    let state = |named: &str| {
        let (file, repository) = (home.join("data/trust.json"), home.join("repo"));
        let named = vec![home.join(named)];
        let trust = Trust::with(Some(file), home.join("shipped"), named, vec![repository]);
        trust.state(&home.join("repo/skills/b"))
    };
    assert_eq!(state("named"), TrustState::Untrusted, "a link out of the repository");
    assert!(state("repo").may_run());
    assert!(state("link/repo").may_run());
}

#[test]
fn nothing_is_trusted_by_default() {
    let place = TestHome::new();
    assert_eq!(place.state("skills/a"), TrustState::Untrusted);
    assert_eq!(place.state("skills/none"), TrustState::Untrusted);
    let why = refusal(&place).unwrap();
    assert!(why.contains("is not trusted") && why.contains("skills trust"), "{why}");
    place.pin("skills/a");
    assert_eq!(place.state("skills/a"), TrustState::Pinned { at: AT.to_owned() });
    assert_eq!(refusal(&place), None);
}

#[test]
fn shipped_and_configured_folders_are_trusted_despite_changes() {
    let place = TestHome::new();
    place.write("shipped/00/b/SKILL.md", "x");
    place.write("named/c/SKILL.md", "x");
    assert_eq!(place.state("shipped/00/b"), TrustState::Shipped);
    assert_eq!(place.state("named/c"), TrustState::Config { path: place.at("named") });
    // A link below a trusted folder does not extend trust to its target.
    symlink(place.at("skills/a"), place.at("named/a")).unwrap();
    assert_eq!(place.state("named/a"), TrustState::Untrusted);
    // Nor does a folder whose name has a trusted one as prefix.
    place.write("named-not/d/SKILL.md", "x");
    assert_eq!(place.state("named-not/d"), TrustState::Untrusted);
}

#[test]
fn changed_file_requires_trust_again_and_is_named() {
    let place = TestHome::new();
    place.pin("skills/a");
    let script = "skills/a/scripts/run.py";
    // Same length, and the time set back: only reading detects it.
    let before = fs::metadata(place.at(script)).unwrap().modified().unwrap();
    place.write(script, "print(2)\n");
    fs::File::options().write(true).open(place.at(script)).unwrap().set_modified(before).unwrap();
    assert_eq!(place.changed("skills/a"), ["scripts/run.py"]);
    place.write(script, "print(1)\n");
    assert!(place.state("skills/a").may_run(), "what is as it was is trusted as it was");

    place.write("skills/a/scripts/.hidden.py", "print(3)\n");
    assert_eq!(place.changed("skills/a"), ["scripts/.hidden.py (new)"]);
    fs::remove_file(place.at("skills/a/scripts/.hidden.py")).unwrap();
    fs::set_permissions(place.at(script), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(place.changed("skills/a"), ["scripts/run.py (execute bit)"]);
    fs::remove_file(place.at(script)).unwrap();
    assert_eq!(place.changed("skills/a"), ["scripts/run.py (gone)"]);
    symlink("../skill.yaml", place.at(script)).unwrap();
    assert_eq!(place.changed("skills/a").len(), 1);
    let why = refusal(&place).unwrap();
    assert!(why.contains("scripts/run.py"), "{why}");
    place.pin("skills/a");
    assert!(place.state("skills/a").may_run());
}

#[test]
fn cached_digest_is_used_only_for_unchanged_files() {
    let place = TestHome::new();
    let real = place.at("skills/a").canonicalize().unwrap();
    let later = SystemTime::now() + Duration::from_secs(60);
    let measured = digest::measure(&real, None, later).unwrap();
    // Hashed long after the last change, unchanged since: reused without reading the content.
    let again = digest::measure(&real, Some(&measured), later).unwrap();
    assert_eq!(again.measured(), measured.measured());
    // The same bytes, another length, or another file with the same appearance: read again.
    let script = place.at("skills/a/scripts/run.py");
    let before = fs::metadata(&script).unwrap().modified().unwrap();
    place.write("skills/a/scripts/new.py", "print(9)\n");
    fs::File::options()
        .write(true)
        .open(place.at("skills/a/scripts/new.py"))
        .unwrap()
        .set_modified(before)
        .unwrap();
    fs::rename(place.at("skills/a/scripts/new.py"), &script).unwrap();
    let now = digest::measure(&real, Some(&measured), later).unwrap();
    assert_ne!(now.measured().digest, measured.measured().digest);
}

#[test]
fn a_link_out_of_the_bundle_is_never_pinned() {
    let place = TestHome::new();
    place.write("outside.py", "print(1)\n");
    symlink(place.at("outside.py"), place.at("skills/a/scripts/out.py")).unwrap();
    let error = place.trust.compute_digest(&place.at("skills/a")).unwrap_err().to_string();
    assert!(error.contains("scripts/out.py") && error.contains("points outside"), "{error}");
    fs::remove_file(place.at("skills/a/scripts/out.py")).unwrap();
    place.pin("skills/a");
    // The link is added later, also a broken one, or one to a folder.
    for target in
        [place.at("outside.py"), "../../../nowhere".into(), "/nowhere".into(), place.dir.path().into()]
    {
        symlink(&target, place.at("skills/a/late")).unwrap();
        let files = place.changed("skills/a");
        assert!(files[0].contains("points outside"), "{files:?}");
        fs::remove_file(place.at("skills/a/late")).unwrap();
    }
    symlink("scripts/run.py", place.at("skills/a/inside.py")).unwrap();
    assert_eq!(place.changed("skills/a"), ["inside.py (new)"]);
}

#[test]
fn a_link_in_a_repository_gives_no_trust_below_a_linked_home() {
    let dir = tempfile::tempdir().unwrap();
    let real = real_path(dir.path()).join("real");
    fs::create_dir_all(real.join("repo/skills")).unwrap();
    fs::create_dir_all(real.join("own")).unwrap();
    fs::write(real.join("own/SKILL.md"), "x").unwrap();
    symlink(real.join("own"), real.join("repo/skills/x")).unwrap();
    let home = dir.path().join("home");
    symlink(&real, &home).unwrap();
    let mut config = Config::defaults(&real.join("repo"), &skills_config::Env::at(&home));
    config.repository = Some(real.join("repo"));
    config.trust = vec![home.join("own")];
    let trust = Trust::of(&config);
    for place in [&real, &home] {
        assert_eq!(trust.state(&place.join("repo/skills/x")), TrustState::Untrusted, "{}", place.display());
    }
    assert!(trust.state(&home.join("own")).may_run());
}

#[test]
fn pipe_is_rejected_without_blocking() {
    let place = TestHome::new();
    let fifo = place.at("skills/a/scripts/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let error = place.trust.compute_digest(&place.at("skills/a")).unwrap_err().to_string();
    assert!(error.contains("scripts/pipe"), "{error}");
}

#[test]
fn registry_digest_covers_executable_parts_without_bundles() {
    let place = TestHome::new();
    place.write("skills/bindings/b.yaml", "id: b\n");
    place.write("skills/golden.yaml", "x");
    place.pin("skills");
    assert!(place.state("skills").may_run());
    assert_eq!(place.state("skills/a"), TrustState::Untrusted, "a bundle of it is another thing");
    place.write("skills/golden.yaml", "y");
    assert!(place.state("skills").may_run());
    place.write("skills/services/s.yaml", "id: s\n");
    assert_eq!(place.changed("skills"), ["services/s.yaml (new)"]);
}

#[test]
fn revoking_a_folder_revokes_everything_below_it() {
    let place = TestHome::new();
    place.write("skills/b/SKILL.md", "x");
    place.pin("skills/a");
    place.pin("skills/b");
    assert_eq!(place.trust.revoke(&place.at("skills")).unwrap().len(), 2);
    assert_eq!(place.state("skills/a"), TrustState::Untrusted);
    assert!(place.trust.list().unwrap().is_empty());
    place.pin("skills/b");
    fs::remove_dir_all(place.at("skills/b")).unwrap();
    let listed = place.trust.list().unwrap();
    assert_eq!(place.trust.revoke(&listed[0].path).unwrap().len(), 1, "also what is gone from the disk");
}

#[test]
fn change_before_confirmation_is_not_pinned() {
    let place = TestHome::new();
    let at = place.at("skills/a");
    let shown = place.trust.compute_digest(&at).unwrap();
    place.write("skills/a/scripts/run.py", "print('swapped')\n");
    let error = place.trust.pin(&[(at, shown)], AT).unwrap_err();
    assert!(matches!(error, TrustError::Moved { .. }), "{error}");
    assert_eq!(place.state("skills/a"), TrustState::Untrusted);
}

#[test]
fn concurrent_writes_are_all_kept() {
    let place = TestHome::new();
    let names: Vec<String> = (0..16).map(|i| format!("skills/s{i:02}")).collect();
    for name in &names {
        place.write(&format!("{name}/SKILL.md"), name);
    }
    thread::scope(|scope| {
        for name in &names {
            let place = &place;
            scope.spawn(move || {
                // Each thread has its own state, as another process would have.
                let own = trust(place.dir.path());
                let at = place.at(name);
                let seen = own.compute_digest(&at).unwrap();
                own.pin(&[(at, seen)], AT).unwrap();
            });
        }
    });
    assert_eq!(place.trust.list().unwrap().len(), names.len());
    assert!(names.iter().all(|name| place.state(name).may_run()));
}

#[test]
fn damaged_or_newer_file_trusts_nothing() {
    let place = TestHome::new();
    place.pin("skills/a");
    let file = place.at("data/trust.json");
    let good = fs::read_to_string(&file).unwrap();
    for (bad, word) in [
        (good[..good.len() / 2].to_owned(), "damaged"),
        (good.replace("\"version\": 1", "\"version\": 2"), "newer version"),
        (String::new(), "damaged"),
    ] {
        fs::write(&file, &bad).unwrap();
        assert_eq!(place.state("skills/a"), TrustState::Untrusted);
        let at = place.at("skills/a");
        let seen = place.trust.compute_digest(&at).unwrap();
        let error = place.trust.pin(&[(at, seen)], AT).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), bad);
    }
    fs::write(&file, good).unwrap();
    assert!(place.state("skills/a").may_run());
}

#[test]
fn file_boundaries_change_the_digest() {
    let one = |files: &[(&str, &[u8])]| {
        let seen = |text: &[u8]| SeenFile { kind: FileKind::File, sha256: skills_skill::Digest::of(text) };
        digest::combined_digest(&files.iter().map(|(path, text)| ((*path).to_owned(), seen(text))).collect())
    };
    assert_ne!(one(&[("a", b"bc")]), one(&[("ab", b"c")]));
    assert_ne!(one(&[("a", b""), ("b", b"")]), one(&[("ab", b"")]));
}
