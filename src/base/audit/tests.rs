//! The log as files: truncated, changed, purged, written by several processes.
#![allow(clippy::unwrap_used, reason = "the tests' scratch folder")]

use std::fs;

use serde_json::json;

use super::log::End;
use super::{Entry, GENESIS, Log, Mode, Recorder};

struct Fixture {
    folder: tempfile::TempDir,
    known: Option<End>,
}

impl Fixture {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), known: None }
    }

    fn log(&self, mode: Mode) -> Log {
        Log::new(self.folder.path(), mode)
    }

    /// Writes one entry per millisecond, from the first number on.
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
fn lines_are_chained_and_contain_no_secret() {
    let mut desk = Fixture::new();
    desk.write(1..4);
    let text = desk.text();
    assert!(
        text.starts_with(r#"{"seq":1,"at":"1970-01-01T00:00:00.001Z","kind":"run.launched","by":"ana""#),
        "{text}"
    );
    assert!(text.lines().next().unwrap().ends_with(&format!(r#""prev":"{GENESIS}"}}"#)));
    assert!(!text.contains("sk-0123") && text.contains("[redacted]"), "{text}");
    let found = desk.verify();
    assert!(found.is_intact());
    assert_eq!((found.lines, found.first, found.last, found.torn_end), (3, Some(1), Some(3), 0));
    let standard = Fixture::new();
    let entry = Entry::new("x", None, json!({})).with_detail(json!({ "inputs": 1 }));
    standard.log(Mode::Standard).append(vec![entry.clone()], 1, &mut None).unwrap();
    assert!(!standard.text().contains("inputs"));
    let off = Fixture::new();
    off.log(Mode::Off).append(vec![entry], 1, &mut None).unwrap();
    assert!(!off.log(Mode::Off).file().exists());
}

#[test]
fn change_is_reported_at_the_first_broken_line() {
    let mut desk = Fixture::new();
    desk.write(1..6);
    let complete = desk.text();
    let lines: Vec<&str> = complete.lines().collect();
    let without = |at: usize| [&lines[..at], &lines[at + 1..]].concat().join("\n") + "\n";
    let swapped = [lines[0], lines[2], lines[1], lines[3], lines[4]].join("\n") + "\n";
    let cases = [
        (complete.replacen("\"r2\"", "\"r9\"", 1), 3, "previous line was modified"),
        (without(2), 3, "has number 4, expected 3"),
        (without(0), 1, "has number 2, expected 1"),
        (swapped, 2, "has number 3, expected 2"),
        (
            complete.replacen(
                "\"kind\":\"run.launched\",\"by\":\"ana\",\"data\":{\"run\":\"r4\"",
                "garbage",
                1,
            ),
            4,
            "not a line",
        ),
    ];
    for (text, line, why) in cases {
        desk.put(&text);
        let broken = desk.verify().broken.unwrap();
        assert_eq!(broken.line, line, "{why}: {broken:?}");
        assert!(broken.why.contains(why), "{broken:?}");
    }
}

/// Callers of the service choose their name and their inputs.
#[test]
fn a_long_line_does_not_break_the_chain() {
    let mut desk = Fixture::new();
    desk.write(1..3);
    let long = "x".repeat(2 << 20);
    let list: Vec<String> = (0..400).map(|_| "x".repeat(4_000)).collect();
    let entry = Entry::new("run.launched", Some(&long), json!({ "note": long }))
        .with_detail(json!({ "inputs": { "list": list } }));
    desk.log(Mode::Full).append(vec![entry], 3, &mut desk.known).unwrap();
    assert!(desk.text().lines().all(|line| line.len() < 4 << 10));
    // Another process does not know the end.
    desk.known = None;
    desk.write(4..5);
    assert!(desk.verify().is_intact());
    // A line of an earlier version.
    let mut desk = Fixture::new();
    desk.write(1..2);
    let first = desk.text();
    let seq_two = serde_json::from_str::<super::Line>(first.trim_end()).unwrap();
    let prev = super::line::digest(first.trim_end().as_bytes());
    let second = super::Line { seq: 2, by: Some(long), prev, ..seq_two };
    desk.put(&format!("{first}{}\n", String::from_utf8(second.bytes()).unwrap()));
    desk.known = None;
    desk.write(3..4);
    let found = desk.verify();
    assert!(found.is_intact(), "{found:?}");
    assert_eq!((found.lines, found.last), (3, Some(3)));
}

#[test]
fn torn_line_is_kept_and_reported_by_the_next() {
    let mut desk = Fixture::new();
    desk.write(1..4);
    let intact = desk.text();
    desk.put(&intact[..intact.len() - 30]);
    let found = desk.verify();
    assert!(found.is_intact() && found.torn_end > 0 && found.last == Some(2), "{found:?}");
    desk.write(4..6);
    let found = desk.verify();
    assert!(found.is_intact(), "{found:?}\n{}", desk.text());
    assert_eq!((found.torn, found.torn_end, found.lines), (1, 0, 6));
    assert!(desk.text().contains("audit.torn") && desk.text().contains("\"r3\""), "{}", desk.text());
}

#[test]
fn purge_keeps_the_chain_valid_and_is_recorded() {
    let mut desk = Fixture::new();
    desk.write(1..11);
    let log = desk.log(Mode::Standard);
    assert_eq!(log.purge(5, 20, Some("bo")).unwrap().lines, 4);
    let found = desk.verify();
    assert!(found.is_intact(), "{found:?}\n{}", desk.text());
    assert_eq!((found.first, found.last), (Some(5), Some(11)));
    desk.write(11..13);
    assert!(desk.verify().is_intact(), "the file was replaced under the one that wrote");
    assert_eq!(log.purge(8, 30, None).unwrap().lines, 3);
    assert!(desk.verify().is_intact(), "{}", desk.text());
    assert_eq!(log.purge(1_000, 40, None).unwrap().remaining, 0);
    assert!(desk.verify().is_intact(), "{}", desk.text());
    desk.write(50..52);
    let found = desk.verify();
    assert!(found.is_intact(), "{found:?}\n{}", desk.text());
    let shown = log.show(2, |line| line.kind == "run.launched").unwrap();
    assert_eq!(shown.iter().map(|line| &line.data["run"]).collect::<Vec<_>>(), ["r50", "r51"]);
    // A forged entry that does not record the purge breaks the chain.
    let text = desk.text();
    let forged = text.replacen("audit.purged", "audit.nothing", 9);
    desk.put(&forged);
    assert!(!desk.verify().is_intact());
    assert!(log.purge(60, 60, None).unwrap_err().to_string().contains("not purged"));
    assert_eq!(desk.text(), forged);
}

/// Two recorders behave like two processes: they share only the file.
#[tokio::test(flavor = "multi_thread")]
async fn several_processes_append_to_one_chain() {
    let desk = Fixture::new();
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
    assert!(found.is_intact(), "{found:?}");
    assert_eq!((found.lines, found.last), (303, Some(303)));
}

#[test]
fn a_policy_is_recorded_when_it_changes_not_when_it_is_read() {
    let desk = Fixture::new();
    let file = desk.folder.path().join("policy.yaml");
    let run = |text: &str| Recorder::new(desk.folder.path(), Mode::Full).policy(&file, text);
    run("");
    assert!(!desk.log(Mode::Full).file().exists(), "a missing policy is not recorded");
    run("deny: []\n");
    run("deny: []\n");
    run("allow: []\n");
    let lines = desk.log(Mode::Full).show(9, |_| true).unwrap();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[1].data["from"], lines[0].data["to"]);
    assert_eq!(lines[1].detail["text"], "allow: []\n");
}

#[test]
fn truncated_or_edited_end_is_detected() {
    let mut desk = Fixture::new();
    desk.write(1..6);
    let log = desk.log(Mode::Full);
    assert_eq!(log.write_anchor(&mut desk.known).unwrap().unwrap().seq, 5);
    let intact = desk.text();
    let lines: Vec<&str> = intact.lines().collect();
    let cut = lines[..3].join("\n") + "\n";
    let edited = intact.replacen("\"r5\"", "\"r9\"", 1);
    for (text, line) in
        [(cut, 4), (edited, 5), (intact[..intact.len() - 40].to_owned(), 5), (String::new(), 1)]
    {
        desk.put(&text);
        let broken = desk.verify().broken.unwrap();
        assert_eq!(broken.line, line, "{broken:?}");
        assert!(log.purge(3, 60, None).is_err(), "evidence is not purged");
    }
    desk.put(&intact);
    assert!(desk.verify().is_intact());
}

#[test]
fn lines_after_the_anchor_are_valid() {
    let mut desk = Fixture::new();
    desk.write(1..4);
    desk.log(Mode::Full).write_anchor(&mut desk.known).unwrap();
    // A crash between the lines and their anchor.
    desk.write(4..8);
    assert!(desk.verify().is_intact());
    desk.known = None;
    desk.write(8..9);
    assert!(desk.verify().is_intact(), "{}", desk.text());
    // A crash that truncated the last line.
    let intact = desk.text();
    desk.put(&intact[..intact.len() - 30]);
    assert!(desk.verify().is_intact());
    desk.write(9..10);
    assert!(desk.verify().is_intact(), "{}", desk.text());
}

#[test]
fn truncation_is_detected_after_further_writes() {
    for remaining in [0, 2] {
        let mut desk = Fixture::new();
        desk.write(1..6);
        desk.log(Mode::Full).write_anchor(&mut desk.known).unwrap();
        let cut: String = desk.text().lines().take(remaining).map(|line| format!("{line}\n")).collect();
        desk.put(&cut);
        desk.write(6..9);
        let log = desk.log(Mode::Full);
        log.write_anchor(&mut desk.known).unwrap();
        let broken = desk.verify().broken.unwrap();
        assert_eq!(broken.line, remaining as u64 + 1, "{broken:?}\n{}", desk.text());
        assert!(desk.text().contains("audit.gap"));
    }
}

#[test]
fn external_anchors_are_compared() {
    let mut desk = Fixture::new();
    desk.write(1..4);
    let log = desk.log(Mode::Full);
    let old = log.write_anchor(&mut desk.known).unwrap().unwrap();
    desk.write(4..7);
    log.write_anchor(&mut desk.known).unwrap();
    let checked = |log: &Log| log.verify_against(&[("store", vec![old.clone()])]).unwrap();
    assert!(checked(&log).0.is_intact());
    // A completely new log with a matching anchor.
    let mut remade = Fixture::new();
    remade.write(11..17);
    let other = remade.log(Mode::Full);
    other.write_anchor(&mut remade.known).unwrap();
    assert!(other.verify().unwrap().is_intact());
    let (found, checks) = checked(&other);
    assert!(!found.is_intact() && checks[0].broken.is_none() && checks[1].broken.is_some(), "{checks:?}");
}

#[test]
fn purge_moves_the_anchor() {
    let mut desk = Fixture::new();
    desk.write(1..11);
    let log = desk.log(Mode::Full);
    let old = log.write_anchor(&mut desk.known).unwrap().unwrap();
    let early = super::Anchor { seq: 2, head: "of a line that was purged".to_owned() };
    log.purge(5, 20, None).unwrap();
    assert_eq!(log.anchor().unwrap().unwrap().seq, 11);
    let (found, _) = log.verify_against(&[("store", vec![early, old])]).unwrap();
    assert!(found.is_intact(), "{found:?}");
    let text = desk.text();
    let cut: String = text.lines().take(3).map(|line| format!("{line}\n")).collect();
    desk.put(&cut);
    assert!(!desk.verify().is_intact());
}

#[tokio::test]
async fn recorder_anchors_its_lines() {
    let desk = Fixture::new();
    let recorder = Recorder::new(desk.folder.path(), Mode::Standard);
    let (tell, received) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    recorder.observe_anchors(Box::new(move |anchor| tell.lock().unwrap().send(anchor.seq).unwrap()));
    recorder.record(Entry::new("x", None, json!({}))).await;
    let soon = received.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    assert_eq!(soon, 1, "a line is anchored while the process continues");
    recorder.record(Entry::new("x", None, json!({}))).await;
    drop(recorder);
    assert_eq!(received.recv().unwrap(), 2, "and at its end");
    assert_eq!(desk.log(Mode::Standard).anchor().unwrap().unwrap().seq, 2);
    // The anchor of a process that was killed.
    let mut desk = Fixture { known: None, ..desk };
    desk.write(3..5);
    Recorder::new(desk.folder.path(), Mode::Standard).catch_up();
    assert_eq!(desk.log(Mode::Standard).anchor().unwrap().unwrap().seq, 4);
}

#[tokio::test]
async fn an_observer_that_panics_loses_no_entry() {
    let desk = Fixture::new();
    let recorder = Recorder::new(desk.folder.path(), Mode::Standard);
    let (tell, received) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    recorder.observe_anchors(Box::new(move |anchor| {
        tell.lock().unwrap().send(anchor.seq).unwrap();
        panic!("no runtime");
    }));
    recorder.record(Entry::new("x", None, json!({}))).await;
    assert_eq!(received.recv_timeout(std::time::Duration::from_secs(20)).unwrap(), 1);
    recorder.record(Entry::new("x", None, json!({}))).await;
    recorder.note(Entry::new("x", None, json!({})));
    drop(recorder);
    assert_eq!(desk.log(Mode::Standard).anchor().unwrap().unwrap().seq, 3);
}
