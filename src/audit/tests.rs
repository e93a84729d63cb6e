//! The log as files: torn, changed, purged, written by several.
#![allow(clippy::unwrap_used, reason = "the tests' scratch folder")]

use std::fs;

use serde_json::json;

use super::log::End;
use super::{Entry, GENESIS, Log, Mode, Recorder};

struct Desk {
    folder: tempfile::TempDir,
    known: Option<End>,
}

impl Desk {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), known: None }
    }

    fn log(&self, mode: Mode) -> Log {
        Log::new(self.folder.path(), mode)
    }

    /// Writes one entry a millisecond, from this number on.
    fn write(&mut self, numbers: std::ops::Range<i64>) {
        for n in numbers {
            let entry = Entry::new("run.launched", Some("ana"), json!({ "run": format!("r{n}") }))
                .with_detail(json!({ "inputs": { "n": n, "api_key": "sk-0123456789abcdefghijkl" } }));
            self.log(Mode::Full).append(vec![entry], n, &mut self.known).unwrap();
        }
    }

    fn text(&self) -> String {
        fs::read_to_string(self.log(Mode::Full).file()).unwrap()
    }

    fn put(&self, text: &str) {
        fs::write(self.log(Mode::Full).file(), text).unwrap();
    }

    fn verify(&self) -> super::Verification {
        self.log(Mode::Full).verify().unwrap()
    }
}

#[test]
fn lines_follow_each_other_and_hold_no_secret() {
    let mut desk = Desk::new();
    desk.write(1..4);
    let text = desk.text();
    assert!(
        text.starts_with(r#"{"seq":1,"at":"1970-01-01T00:00:00.001Z","kind":"run.launched","by":"ana""#),
        "{text}"
    );
    assert!(text.lines().next().unwrap().ends_with(&format!(r#""prev":"{GENESIS}"}}"#)));
    assert!(!text.contains("sk-0123") && text.contains("[redacted]"), "{text}");
    let found = desk.verify();
    assert!(found.holds());
    assert_eq!((found.lines, found.first, found.last, found.torn_end), (3, Some(1), Some(3), 0));
    let standard = Desk::new();
    let entry = Entry::new("x", None, json!({})).with_detail(json!({ "inputs": 1 }));
    standard.log(Mode::Standard).append(vec![entry.clone()], 1, &mut None).unwrap();
    assert!(!standard.text().contains("inputs"));
    let off = Desk::new();
    off.log(Mode::Off).append(vec![entry], 1, &mut None).unwrap();
    assert!(!off.log(Mode::Off).file().exists());
}

#[test]
fn any_change_names_the_first_line_that_does_not_follow() {
    let mut desk = Desk::new();
    desk.write(1..6);
    let whole = desk.text();
    let lines: Vec<&str> = whole.lines().collect();
    let without = |at: usize| [&lines[..at], &lines[at + 1..]].concat().join("\n") + "\n";
    let swapped = [lines[0], lines[2], lines[1], lines[3], lines[4]].join("\n") + "\n";
    let cases = [
        (whole.replacen("\"r2\"", "\"r9\"", 1), 3, "not the one it was written after"),
        (without(2), 3, "has number 4, where 3 follows"),
        (without(0), 1, "has number 2, where 1 follows"),
        (swapped, 2, "has number 3, where 2 follows"),
        (
            whole.replacen("\"kind\":\"run.launched\",\"by\":\"ana\",\"data\":{\"run\":\"r4\"", "garbage", 1),
            4,
            "no line",
        ),
    ];
    for (text, line, why) in cases {
        desk.put(&text);
        let broken = desk.verify().broken.unwrap();
        assert_eq!(broken.line, line, "{why}: {broken:?}");
        assert!(broken.why.contains(why), "{broken:?}");
    }
}

#[test]
fn a_torn_line_is_kept_and_told_of_by_the_next() {
    let mut desk = Desk::new();
    desk.write(1..4);
    let whole = desk.text();
    desk.put(&whole[..whole.len() - 30]);
    let found = desk.verify();
    assert!(found.holds() && found.torn_end > 0 && found.last == Some(2), "{found:?}");
    desk.write(4..6);
    let found = desk.verify();
    assert!(found.holds(), "{found:?}\n{}", desk.text());
    assert_eq!((found.torn, found.torn_end, found.lines), (1, 0, 6));
    assert!(desk.text().contains("audit.torn") && desk.text().contains("\"r3\""), "{}", desk.text());
}

#[test]
fn a_purge_leaves_a_chain_that_holds_and_says_what_it_took() {
    let mut desk = Desk::new();
    desk.write(1..11);
    let log = desk.log(Mode::Standard);
    assert_eq!(log.purge(5, 20, Some("bo")).unwrap().lines, 4);
    let found = desk.verify();
    assert!(found.holds(), "{found:?}\n{}", desk.text());
    assert_eq!((found.first, found.last), (Some(5), Some(11)));
    desk.write(11..13);
    assert!(desk.verify().holds(), "the file was replaced under the one that wrote");
    assert_eq!(log.purge(8, 30, None).unwrap().lines, 3);
    assert!(desk.verify().holds(), "{}", desk.text());
    assert_eq!(log.purge(1_000, 40, None).unwrap().kept, 0);
    assert!(desk.verify().holds(), "{}", desk.text());
    desk.write(50..52);
    let found = desk.verify();
    assert!(found.holds(), "{found:?}\n{}", desk.text());
    let shown = log.show(2, |line| line.kind == "run.launched").unwrap();
    assert_eq!(shown.iter().map(|line| &line.data["run"]).collect::<Vec<_>>(), ["r50", "r51"]);
    // What nobody purged is missed.
    let text = desk.text();
    let forged = text.replacen("audit.purged", "audit.nothing", 9);
    desk.put(&forged);
    assert!(!desk.verify().holds());
    assert!(log.purge(60, 60, None).unwrap_err().to_string().contains("kept whole"));
    assert_eq!(desk.text(), forged);
}

/// Recorders of two processes are two recorders: nothing is shared between them but the file.
#[tokio::test(flavor = "multi_thread")]
async fn several_processes_append_to_one_chain() {
    let desk = Desk::new();
    let recorders = [(); 3].map(|()| Recorder::new(desk.folder.path(), Mode::Standard));
    let write = |at: usize| {
        let recorder = recorders[at % 3].clone();
        tokio::spawn(async move { recorder.record(Entry::new("x", None, json!({ "n": at }))).await })
    };
    let tasks: Vec<_> = (0..300).map(write).collect();
    for task in tasks {
        task.await.unwrap();
    }
    for recorder in &recorders {
        recorder.note(Entry::new("last", None, json!({})));
    }
    drop(recorders);
    let found = desk.verify();
    assert!(found.holds(), "{found:?}");
    assert_eq!((found.lines, found.last), (303, Some(303)));
}

#[test]
fn a_policy_is_recorded_when_it_changes_not_when_it_is_read() {
    let desk = Desk::new();
    let file = desk.folder.path().join("policy.yaml");
    let run = |text: &str| Recorder::new(desk.folder.path(), Mode::Full).policy(&file, text);
    run("");
    assert!(!desk.log(Mode::Full).file().exists(), "no policy is no news");
    run("deny: []\n");
    run("deny: []\n");
    run("allow: []\n");
    let lines = desk.log(Mode::Full).show(9, |_| true).unwrap();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[1].data["from"], lines[0].data["to"]);
    assert_eq!(lines[1].detail["text"], "allow: []\n");
}
