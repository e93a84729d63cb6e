//! The core in this process follows changes: what changes on disk is found by the next request, and a second
//! start takes the index from its cache.

use std::fs;
use std::path::Path;
use std::time::Duration;

use skills_api::{Client as _, CoreParts, Event, Local};
use skills_config::{Config, Env};
use skills_discovery::Request;

fn write(root: &Path, id: &str, description: &str) {
    let folder = root.join(id);
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("SKILL.md"),
        format!("---\nname: {id}\ndescription: {description}\n---\nBody of {id}.\n"),
    )
    .unwrap();
}

fn config(home: &Path, root: &Path) -> Config {
    let mut config = Config::defaults(home, &Env::at(home));
    config.argument_roots = vec![root.to_owned()];
    config
}

async fn best(core: &Local, intent: &str) -> Option<String> {
    let answer = core.discover(Request { intent: intent.into(), ..Request::default() }).await.unwrap();
    answer.results.first().map(|hit| hit.skill_id.to_string())
}

/// Waits for events until the condition holds.
async fn until<F: AsyncFnMut() -> bool>(core: &Local, mut condition: F) {
    let mut events = core.events();
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        while !condition().await {
            let next = tokio::time::timeout(Duration::from_secs(1), events.recv()).await;
            drop(next);
        }
    })
    .await;
    assert!(waited.is_ok(), "the condition never held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn added_and_removed_skills_are_detected() {
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("skills"));
    fs::create_dir_all(&home).unwrap();
    write(&root, "pdf-tables", "Extracts tables from PDF files.");
    let core = Local::open(config(&home, &root)).unwrap();
    until(&core, async || best(&core, "tables of a pdf").await.as_deref() == Some("pdf-tables")).await;
    write(&root, "knitting", "Plans knitting patterns for pullovers.");
    until(&core, async || {
        best(&core, "knitting patterns for a pullover").await.as_deref() == Some("knitting")
    })
    .await;
    fs::remove_dir_all(root.join("knitting")).unwrap();
    until(&core, async || {
        best(&core, "knitting patterns for a pullover").await.as_deref() != Some("knitting")
    })
    .await;
    let diagnostics = core.diagnostics().await.unwrap();
    assert!(diagnostics.operations["discover"].calls > 0 && diagnostics.index.done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_ends_with_done() {
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("skills"));
    fs::create_dir_all(&home).unwrap();
    for i in 0..300 {
        write(&root, &format!("skill-{i}"), &format!("Does the job number {i} of many."));
    }
    let core = Local::open(config(&home, &root)).unwrap();
    let mut events = core.events();
    let done = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            if core.diagnostics().await.unwrap().index.total == 300
                && core.diagnostics().await.unwrap().index.done
            {
                return;
            }
            if let Ok(Ok(Event::Index(progress))) =
                tokio::time::timeout(Duration::from_secs(1), events.recv()).await
            {
                assert!(progress.indexed <= progress.total);
            }
        }
    });
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_start_uses_the_cached_index_and_detects_changes() {
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("skills"));
    fs::create_dir_all(&home).unwrap();
    for i in 0..150 {
        write(&root, &format!("skill-{i}"), &format!("Does the job number {i} of many."));
    }
    let open = || Local::open_once(config(&home, &root), CoreParts::Index);
    let index_cache = async |core: &Local| {
        let checks = core.checkup().await.unwrap();
        checks.into_iter().find(|check| check.subject == "index cache").unwrap().found
    };
    let first = open().await.unwrap();
    assert!(index_cache(&first).await.starts_with("rebuilt"));
    drop(first);
    write(&root, "knitting", "Plans knitting patterns for pullovers.");
    fs::remove_dir_all(root.join("skill-7")).unwrap();
    let second = open().await.unwrap();
    assert_eq!(index_cache(&second).await, "used");
    assert_eq!(best(&second, "knitting patterns").await.as_deref(), Some("knitting"));
    let answer = second
        .discover(Request { intent: "skill-7".into(), limit: 500, ..Request::default() })
        .await
        .unwrap();
    assert!(answer.results.iter().all(|hit| hit.skill_id.as_str() != "skill-7"), "it is gone");
    let file = fs::read_dir(home.join(".cache/skill-workbench"))
        .unwrap()
        .flatten()
        .find(|file| file.file_name().to_string_lossy().starts_with("index-"))
        .unwrap();
    fs::write(file.path(), b"damaged").unwrap();
    let third = open().await.unwrap();
    assert!(index_cache(&third).await.starts_with("rebuilt"));
    assert_eq!(best(&third, "knitting patterns").await.as_deref(), Some("knitting"));
}
