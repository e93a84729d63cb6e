//! Invariants of a store and of its side effects after any loss.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::Connection;
use skills_runs::idempotency_key;

fn open(folder: &Path) -> Connection {
    let connection = Connection::open(folder.join("runs.db")).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    connection
}

fn rows<const N: usize>(connection: &Connection, sql: &str) -> Vec<[String; N]> {
    let mut statement = connection.prepare(sql).unwrap();
    let found = statement.query_map([], |row| {
        let mut cells = std::array::from_fn(|_| String::new());
        for (index, cell) in cells.iter_mut().enumerate() {
            *cell = row.get::<_, Option<String>>(index)?.unwrap_or_default();
        }
        Ok(cells)
    });
    found.unwrap().collect::<Result<_, _>>().unwrap()
}

fn pairs(path: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let pair = |line: &str| line.split_once('\t').map(|(a, b)| (a.to_owned(), b.to_owned()));
    text.lines().filter_map(pair).collect()
}

/// Runs that have started and not ended.
pub fn in_flight(folder: &Path) -> usize {
    let sql = "SELECT count(*) FROM runs WHERE state NOT IN ('completed', 'canceled', 'failed')";
    let runs: i64 = open(folder).query_row(sql, [], |row| row.get(0)).unwrap();
    usize::try_from(runs).unwrap()
}

/// Every event and every step there is.
pub fn everything(folder: &Path) -> Vec<[String; 3]> {
    let connection = open(folder);
    let mut all = rows(&connection, "SELECT run, kind, data FROM events ORDER BY global");
    all.extend(rows::<3>(&connection, "SELECT run, step, json FROM steps ORDER BY run, n"));
    all
}

/// The invariants.
pub fn check(folder: &Path, runs: usize) {
    let connection = open(folder);
    let states = rows::<2>(&connection, "SELECT id, state FROM runs");
    assert_eq!(states.len(), runs, "each key has one run");
    let unended: Vec<_> = states.iter().filter(|[_, state]| state != "completed").collect();
    assert!(unended.is_empty(), "every run comes to its end: {unended:?}");

    let known: BTreeSet<&String> = states.iter().map(|[id, _]| id).collect();
    let mut by_key: BTreeMap<String, String> = BTreeMap::new();
    for (key, run) in pairs(&folder.join("acknowledged")) {
        assert!(known.contains(&run), "run {run} was acknowledged and is lost");
        let first = by_key.entry(key.clone()).or_insert_with(|| run.clone());
        assert_eq!(*first, run, "{key} asked again got another run");
    }
    assert_eq!(by_key.len(), runs);

    let twice = rows::<2>(
        &connection,
        "SELECT run, step FROM events WHERE kind IN ('step.completed', 'step.skipped')
         GROUP BY run, step HAVING count(*) > 1",
    );
    assert!(twice.is_empty(), "recorded twice: {twice:?}");
    let gaps = rows::<1>(
        &connection,
        "SELECT run FROM events GROUP BY run HAVING max(number) <> count(*) OR min(number) <> 1",
    );
    assert!(gaps.is_empty(), "events with gaps: {gaps:?}");

    let decisions = rows::<3>(
        &connection,
        "SELECT run, json_extract(decision, '$.step'), json_extract(decision, '$.choice') FROM decisions",
    );
    for (run, step) in pairs(&folder.join("decided")) {
        let is_stored = decisions.iter().any(|[r, s, _]| *r == run && *s == step);
        assert!(is_stored, "the decision on {step} of {run} was acknowledged and is lost");
    }

    let mut effects: BTreeMap<String, usize> = BTreeMap::new();
    for (key, _) in pairs(&folder.join("effects")) {
        *effects.entry(key).or_default() += 1;
    }
    for [run, _] in &states {
        for step in ["send", "pay", "last"] {
            let chosen = |choice: &str| {
                decisions.iter().filter(|[r, s, c]| r == run && s == step && c == choice).count()
            };
            let times = effects.get(&idempotency_key(run, step)).copied().unwrap_or(0);
            let again = chosen("rerun");
            assert!(
                times <= 1 + again,
                "{step} of {run} acted {times} times, and {again} times somebody said so"
            );
            assert!(times >= 1 || chosen("skip") > 0, "{step} of {run} is recorded and never acted");
        }
        for step in ["read", "each[0]", "each[1]", "each[2]"] {
            assert!(effects.contains_key(&idempotency_key(run, step)), "{step} of {run} never ran");
        }
    }
    let integrity: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
}
