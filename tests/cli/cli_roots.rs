//! `--root` on the command line: each one counts, and one that cannot be read is an error everywhere.

use crate::binary;

use binary::Home;

#[test]
fn a_missing_root_is_not_found_for_every_command() {
    let home = Home::with_skills();
    let wrong = home.path().join("skils");
    let wrong = wrong.to_str().unwrap();
    for command in [&["list"][..], &["lint"], &["discover", "a pdf"], &["eval"], &["describe", "x"], &[]] {
        let answer = home.run_bare(&[&["--root", wrong], command].concat());
        assert_eq!(answer.code, 3, "{command:?}: {}", answer.stderr);
        assert!(answer.stderr.contains("did you mean"), "{command:?}: {}", answer.stderr);
        assert_eq!(answer.stdout, "");
    }
    let answer = home.run_bare(&["list", "--json", "--root", wrong]);
    let error: serde_json::Value = serde_json::from_str(&answer.stderr).unwrap();
    assert_eq!((answer.code, error["error"]["code"].as_str()), (3, Some("not_found")));
}

#[test]
fn a_file_as_root_is_refused() {
    let home = Home::with_skills();
    let file = home.skills().join("pdf-tables/SKILL.md");
    let answer = home.run_bare(&["list", "--root", file.to_str().unwrap()]);
    assert_eq!(answer.code, 4, "{}", answer.stderr);
}

#[test]
fn roots_on_both_sides_of_a_command_are_both_read() {
    let home = Home::with_skills();
    let other = home.path().join("other/extra");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("SKILL.md"), "---\nname: extra\ndescription: One more\n---\n# Extra\n")
        .unwrap();
    let answer = home.run(&["list", "--root", home.path().join("other").to_str().unwrap()]);
    assert!(answer.stdout.contains("extra") && answer.stdout.contains("pdf-tables"), "{}", answer.stdout);
}

#[test]
fn shipped_skills_are_used_although_the_cache_cannot_be_written() {
    let home = Home::with_skills();
    let file = home.skills().join("pdf-tables/SKILL.md");
    let cache = ("XDG_CACHE_HOME", file.to_str().unwrap());
    for command in [&["--demo", "list"][..], &["list"], &["--demo", "describe", "log-digest"]] {
        let answer = home.run_bare_with(command, &[cache]);
        assert_eq!(answer.code, 0, "{command:?}: {}", answer.stderr);
        assert!(answer.stdout.contains("log-digest"), "{command:?}: {}", answer.stdout);
    }
    let doctor = home.run_bare_with(&["--demo", "doctor"], &[cache]);
    assert!(doctor.stdout.contains("a temporary folder is used instead"), "{}", doctor.stdout);

    let answer = home.run_bare_with(&["--demo", "list"], &[cache, ("TMPDIR", cache.1)]);
    assert_eq!(answer.code, 70, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stderr.contains("cannot unpack the shipped skills"), "{}", answer.stderr);
}
