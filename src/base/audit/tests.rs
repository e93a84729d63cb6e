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

    /// Rewrites all lines and the anchor with another name, as a valid chain.
    fn forge(&self) {
        let (mut seq, mut prev, mut forged) = (0, GENESIS.to_owned(), String::new());
        for line in self.text().lines() {
            let (content, _) = line.rsplit_once(r#""prev":""#).unwrap();
            let line =
                format!(r#"{}"prev":"{prev}"}}"#, content.replace(r#""by":"ana""#, r#""by":"kim who else""#));
            (seq, prev) = (seq + 1, super::line::digest(line.as_bytes()));
            forged += &format!("{line}\n");
        }
        self.put(&forged);
        let anchor = serde_json::to_vec(&super::Anchor { seq, head: prev }).unwrap();
        fs::write(self.folder.path().join("audit.anchor"), anchor).unwrap();
        assert!(self.verify().is_intact());
    }

    fn verify(&self) -> super::Verification {
        self.log(Mode::Full).verify().unwrap()
    }
}

#[test]
fn lines_are_chained_and_contain_no_secret() {
    let mut fixture = Fixture::new();
    fixture.write(1..4);
    let text = fixture.text();
    assert!(
        text.starts_with(r#"{"seq":1,"at":"1970-01-01T00:00:00.001Z","kind":"run.launched","by":"ana""#),
        "{text}"
    );
    assert!(text.lines().next().unwrap().ends_with(&format!(r#""prev":"{GENESIS}"}}"#)));
    assert!(!text.contains("sk-0123") && text.contains("[redacted]"), "{text}");
    let found = fixture.verify();
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
    let mut fixture = Fixture::new();
    fixture.write(1..6);
    let complete = fixture.text();
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
        fixture.put(&text);
        let broken = fixture.verify().broken.unwrap();
        assert_eq!(broken.line, line, "{why}: {broken:?}");
        assert!(broken.why.contains(why), "{broken:?}");
    }
}

/// Callers of the service choose their name and their inputs.
#[test]
fn a_long_line_does_not_break_the_chain() {
    let mut fixture = Fixture::new();
    fixture.write(1..3);
    let long = "x".repeat(2 << 20);
    let list: Vec<String> = (0..400).map(|_| "x".repeat(4_000)).collect();
    let entry = Entry::new("run.launched", Some(&long), json!({ "note": long }))
        .with_detail(json!({ "inputs": { "list": list } }));
    fixture.log(Mode::Full).append(vec![entry], 3, &mut fixture.known).unwrap();
    assert!(fixture.text().lines().all(|line| line.len() < 4 << 10));
    // Another process does not know the end.
    fixture.known = None;
    fixture.write(4..5);
    assert!(fixture.verify().is_intact());
    // A line of an earlier version.
    let mut fixture = Fixture::new();
    fixture.write(1..2);
    let first = fixture.text();
    let seq_two = serde_json::from_str::<super::Line>(first.trim_end()).unwrap();
    let prev = super::line::digest(first.trim_end().as_bytes());
    let second = super::Line { seq: 2, by: Some(long), prev, ..seq_two };
    fixture.put(&format!("{first}{}\n", String::from_utf8(second.bytes()).unwrap()));
    fixture.known = None;
    fixture.write(3..4);
    let found = fixture.verify();
    assert!(found.is_intact(), "{found:?}");
    assert_eq!((found.lines, found.last), (3, Some(3)));
}

#[test]
fn torn_line_is_kept_and_reported_by_the_next() {
    let mut fixture = Fixture::new();
    fixture.write(1..4);
    let intact = fixture.text();
    fixture.put(&intact[..intact.len() - 30]);
    let found = fixture.verify();
    assert!(found.is_intact() && found.torn_end > 0 && found.last == Some(2), "{found:?}");
    fixture.write(4..6);
    let found = fixture.verify();
    assert!(found.is_intact(), "{found:?}\n{}", fixture.text());
    assert_eq!((found.torn, found.torn_end, found.lines), (1, 0, 6));
    assert!(fixture.text().contains("audit.torn") && fixture.text().contains("\"r3\""), "{}", fixture.text());
}

#[test]
fn purge_keeps_the_chain_valid_and_is_recorded() {
    let mut fixture = Fixture::new();
    fixture.write(1..11);
    let log = fixture.log(Mode::Standard);
    assert_eq!(log.purge(5, 20, Some("bo")).unwrap().lines, 4);
    let found = fixture.verify();
    assert!(found.is_intact(), "{found:?}\n{}", fixture.text());
    assert_eq!((found.first, found.last), (Some(5), Some(11)));
    fixture.write(11..13);
    assert!(fixture.verify().is_intact(), "the file was replaced under the one that wrote");
    assert_eq!(log.purge(8, 30, None).unwrap().lines, 3);
    assert!(fixture.verify().is_intact(), "{}", fixture.text());
    assert_eq!(log.purge(1_000, 40, None).unwrap().remaining, 0);
    assert!(fixture.verify().is_intact(), "{}", fixture.text());
    fixture.write(50..52);
    let found = fixture.verify();
    assert!(found.is_intact(), "{found:?}\n{}", fixture.text());
    let shown = log.show(2, |line| line.kind == "run.launched").unwrap();
    assert_eq!(shown.iter().map(|line| &line.data["run"]).collect::<Vec<_>>(), ["r50", "r51"]);
    // A forged entry that does not record the purge breaks the chain.
    let text = fixture.text();
    let forged = text.replacen("audit.purged", "audit.nothing", 9);
    fixture.put(&forged);
    assert!(!fixture.verify().is_intact());
    assert!(log.purge(60, 60, None).unwrap_err().to_string().contains("not purged"));
    assert_eq!(fixture.text(), forged);
}

/// Two recorders behave like two processes: they share only the file.
#[tokio::test(flavor = "multi_thread")]
async fn several_processes_append_to_one_chain() {
    let fixture = Fixture::new();
    let recorders = [(); 3].map(|()| Recorder::new(fixture.folder.path(), Mode::Standard));
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
    let found = fixture.verify();
    assert!(found.is_intact(), "{found:?}");
    assert_eq!((found.lines, found.last), (303, Some(303)));
}

#[test]
fn a_policy_is_recorded_when_it_changes_not_when_it_is_read() {
    let fixture = Fixture::new();
    let file = fixture.folder.path().join("policy.yaml");
    let run = |text: &str| Recorder::new(fixture.folder.path(), Mode::Full).policy(&file, text);
    run("");
    assert!(!fixture.log(Mode::Full).file().exists(), "a missing policy is not recorded");
    run("deny: []\n");
    run("deny: []\n");
    run("allow: []\n");
    let lines = fixture.log(Mode::Full).show(9, |_| true).unwrap();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[1].data["from"], lines[0].data["to"]);
    assert_eq!(lines[1].detail["text"], "allow: []\n");
}

#[test]
fn truncated_or_edited_end_is_detected() {
    let mut fixture = Fixture::new();
    fixture.write(1..6);
    let log = fixture.log(Mode::Full);
    assert_eq!(log.write_anchor(&mut fixture.known).unwrap().unwrap().seq, 5);
    let intact = fixture.text();
    let lines: Vec<&str> = intact.lines().collect();
    let cut = lines[..3].join("\n") + "\n";
    let edited = intact.replacen("\"r5\"", "\"r9\"", 1);
    for (text, line) in
        [(cut, 4), (edited, 5), (intact[..intact.len() - 40].to_owned(), 5), (String::new(), 1)]
    {
        fixture.put(&text);
        let broken = fixture.verify().broken.unwrap();
        assert_eq!(broken.line, line, "{broken:?}");
        assert!(log.purge(3, 60, None).is_err(), "evidence is not purged");
    }
    fixture.put(&intact);
    assert!(fixture.verify().is_intact());
}

#[test]
fn lines_after_the_anchor_are_valid() {
    let mut fixture = Fixture::new();
    fixture.write(1..4);
    fixture.log(Mode::Full).write_anchor(&mut fixture.known).unwrap();
    // A crash between the lines and their anchor.
    fixture.write(4..8);
    assert!(fixture.verify().is_intact());
    fixture.known = None;
    fixture.write(8..9);
    assert!(fixture.verify().is_intact(), "{}", fixture.text());
    // A crash that truncated the last line.
    let intact = fixture.text();
    fixture.put(&intact[..intact.len() - 30]);
    assert!(fixture.verify().is_intact());
    fixture.write(9..10);
    assert!(fixture.verify().is_intact(), "{}", fixture.text());
}

#[test]
fn truncation_is_detected_after_further_writes() {
    for remaining in [0, 2] {
        let mut fixture = Fixture::new();
        fixture.write(1..6);
        fixture.log(Mode::Full).write_anchor(&mut fixture.known).unwrap();
        let cut: String = fixture.text().lines().take(remaining).map(|line| format!("{line}\n")).collect();
        fixture.put(&cut);
        fixture.write(6..9);
        let log = fixture.log(Mode::Full);
        log.write_anchor(&mut fixture.known).unwrap();
        let broken = fixture.verify().broken.unwrap();
        assert_eq!(broken.line, remaining as u64 + 1, "{broken:?}\n{}", fixture.text());
        assert!(fixture.text().contains("audit.gap"));
    }
}

/// An account that can write the log and its anchor, but not the store, can compose a valid chain.
#[test]
fn lines_rewritten_together_with_the_anchor_are_recorded() {
    let mut fixture = Fixture::new();
    fixture.write(1..4);
    fixture.forge();
    fixture.write(4..5);
    assert!(fixture.text().contains("audit.gap"), "{}", fixture.text());
}

/// The same while no process runs: a new one compares the log with the store before it replaces the store's anchor.
#[test]
fn lines_rewritten_between_two_processes_are_recorded_once() {
    let mut fixture = Fixture::new();
    fixture.write(1..4);
    let stored = fixture.log(Mode::Full).write_anchor(&mut fixture.known).unwrap().unwrap();
    let open = |fixture: &Fixture| {
        let recorder = Recorder::new(fixture.folder.path(), Mode::Full);
        recorder.observe_anchors(std::slice::from_ref(&stored), Box::new(|_| {}));
        assert!(recorder.record_blocking(Entry::new("x", None, json!({}))));
    };
    open(&fixture);
    assert!(fixture.verify().is_intact(), "{}", fixture.text());
    fixture.forge();
    open(&fixture);
    open(&fixture);
    assert!(!fixture.verify().is_intact());
    assert_eq!(fixture.text().matches("audit.gap").count(), 1, "{}", fixture.text());
    // The gap is purged like every line, after its time.
    fixture.log(Mode::Full).purge(5, 20, None).unwrap();
    assert!(!fixture.verify().is_intact(), "the gap is newer");
    // A log that was removed with its anchor.
    fs::remove_file(fixture.log(Mode::Full).file()).unwrap();
    fs::remove_file(fixture.folder.path().join("audit.anchor")).unwrap();
    open(&fixture);
    assert!(!fixture.verify().is_intact());
    assert_eq!(fixture.text().matches("audit.gap").count(), 1, "{}", fixture.text());
}

/// More lines after the expected one than are read at first.
#[test]
fn an_anchor_far_before_the_end_is_compared() {
    let mut fixture = Fixture::new();
    fixture.write(1..4);
    let stored = fixture.log(Mode::Full).write_anchor(&mut fixture.known).unwrap().unwrap();
    fixture.known = None;
    fixture.write(4..6_000);
    assert!(fixture.text().len() > 1 << 20);
    fixture.log(Mode::Full).write_anchor(&mut fixture.known).unwrap();
    fixture.log(Mode::Full).compare(&stored, 6_000, &mut None).unwrap();
    assert!(fixture.verify().is_intact());
    fixture.forge();
    fixture.log(Mode::Full).compare(&stored, 6_000, &mut None).unwrap();
    assert!(!fixture.verify().is_intact());
}

/// A process that opens a store without writing to the log: it belongs to another store.
#[test]
fn a_process_that_only_reads_records_no_gap() {
    let mut fixture = Fixture::new();
    fixture.write(1..4);
    fixture.log(Mode::Full).write_anchor(&mut fixture.known).unwrap();
    let other = super::Anchor { seq: 2, head: "of the log of another store".to_owned() };
    let before = fixture.text();
    let recorder = Recorder::new(fixture.folder.path(), Mode::Full);
    let (tell, received) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let observer = move |anchor: &super::Anchor| tell.lock().unwrap().send(anchor.seq).unwrap_or_default();
    recorder.observe_anchors(std::slice::from_ref(&other), Box::new(observer));
    let (_, checks) = recorder.log().verify_against(&[("store", vec![other])]).unwrap();
    assert!(checks[1].broken.is_some(), "the difference is reported: {checks:?}");
    assert_eq!(fixture.text(), before);
    assert!(received.try_recv().is_err(), "and the anchor of the store is not replaced");
    assert!(recorder.record_blocking(Entry::new("x", None, json!({}))));
    assert!(fixture.text().contains("audit.gap"), "one that writes records it: {}", fixture.text());
}

/// A store that was not used for long has an anchor far before the end.
#[test]
fn a_line_is_found_without_reading_a_long_log() {
    let fixture = Fixture::new();
    let line = |seq: u64| {
        let entry = Entry::new("x", None, json!({ "text": "one two ".repeat(125) }));
        String::from_utf8(super::Line::of(entry, Mode::Full, seq, 1, GENESIS).bytes()).unwrap() + "\n"
    };
    // As after a purge.
    let text: String = (101..=8_100).map(line).collect();
    fixture.put(&text);
    let mut file = fs::File::open(fixture.log(Mode::Full).file()).unwrap();
    let len = text.len() as u64;
    assert!(len > 8 << 20);
    for seq in [0, 100, 101, 102, 4_000, 8_099, 8_100, 9_000] {
        let part = String::from_utf8(super::log::around(&mut file, len, seq).unwrap()).unwrap();
        assert!(part.len() <= 2 << 20, "{seq}: {}", part.len());
        // The purged line is represented by the first one, a missing one by the last one.
        for expected in [seq.clamp(101, 8_100), (seq + 1).clamp(101, 8_100)] {
            assert!(part.contains(&line(expected)), "{seq}: {expected}");
        }
    }
}

#[test]
fn external_anchors_are_compared() {
    let mut fixture = Fixture::new();
    fixture.write(1..4);
    let log = fixture.log(Mode::Full);
    let old = log.write_anchor(&mut fixture.known).unwrap().unwrap();
    fixture.write(4..7);
    log.write_anchor(&mut fixture.known).unwrap();
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
    let mut fixture = Fixture::new();
    fixture.write(1..11);
    let log = fixture.log(Mode::Full);
    let old = log.write_anchor(&mut fixture.known).unwrap().unwrap();
    let early = super::Anchor { seq: 2, head: "of a line that was purged".to_owned() };
    log.purge(5, 20, None).unwrap();
    assert_eq!(log.anchor().unwrap().unwrap().seq, 11);
    let (found, _) = log.verify_against(&[("store", vec![early, old])]).unwrap();
    assert!(found.is_intact(), "{found:?}");
    let text = fixture.text();
    let cut: String = text.lines().take(3).map(|line| format!("{line}\n")).collect();
    fixture.put(&cut);
    assert!(!fixture.verify().is_intact());
}

#[tokio::test]
async fn recorder_anchors_its_lines() {
    let fixture = Fixture::new();
    let recorder = Recorder::new(fixture.folder.path(), Mode::Standard);
    let (tell, received) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    recorder.observe_anchors(&[], Box::new(move |anchor| tell.lock().unwrap().send(anchor.seq).unwrap()));
    recorder.record(Entry::new("x", None, json!({}))).await;
    let soon = received.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    assert_eq!(soon, 1, "a line is anchored while the process continues");
    recorder.record(Entry::new("x", None, json!({}))).await;
    drop(recorder);
    assert_eq!(received.recv().unwrap(), 2, "and at its end");
    assert_eq!(fixture.log(Mode::Standard).anchor().unwrap().unwrap().seq, 2);
    // The anchor of a process that was killed.
    let mut fixture = Fixture { known: None, ..fixture };
    fixture.write(3..5);
    Recorder::new(fixture.folder.path(), Mode::Standard).catch_up();
    assert_eq!(fixture.log(Mode::Standard).anchor().unwrap().unwrap().seq, 4);
}

#[tokio::test]
async fn an_observer_that_panics_loses_no_entry() {
    let fixture = Fixture::new();
    let recorder = Recorder::new(fixture.folder.path(), Mode::Standard);
    let (tell, received) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    recorder.observe_anchors(
        &[],
        Box::new(move |anchor| {
            tell.lock().unwrap().send(anchor.seq).unwrap();
            panic!("no runtime");
        }),
    );
    recorder.record(Entry::new("x", None, json!({}))).await;
    assert_eq!(received.recv_timeout(std::time::Duration::from_secs(20)).unwrap(), 1);
    recorder.record(Entry::new("x", None, json!({}))).await;
    recorder.note(Entry::new("x", None, json!({})));
    drop(recorder);
    assert_eq!(fixture.log(Mode::Standard).anchor().unwrap().unwrap().seq, 3);
}
