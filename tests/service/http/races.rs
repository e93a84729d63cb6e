//! Files and folders of a bundle are swapped for links while every route reads them: nothing from outside is returned.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use skills_api::operations::{Caller, Service, operation};
use skills_api::{SharedClient, resources};

use super::test_server::TestServer;

/// Content outside of the bundle.
const SECRET: &str = "TOP-SECRET-CONTENT";
const OWN: &str = "OWN-CONTENT";
/// Reads of each route.
const READS: usize = 10_000;
/// Swaps of every name at least: on a busy machine more reads are made until then.
const MIN_SWAPS: usize = 100;

/// What is swapped: a path below the roots, and what takes its place.
const SWAPS: [(&str, &str); 4] = [
    ("skills/watch/references/a.md", "outside/references/a.md"),
    ("skills/watch/references", "outside/references"),
    ("skills/watch/SKILL.md", "outside/SKILL.md"),
    ("skills/watch", "outside"),
];

/// Swaps all of them for links and back until it is dropped; the kernel exchanges two names in one step.
struct Swapping {
    ends: Arc<AtomicBool>,
    swapped: Arc<AtomicUsize>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapping {
    fn begin(test_server: &TestServer) -> Self {
        let place = &test_server.place;
        let skill = std::fs::read_to_string(place.path("skills/watch/SKILL.md")).unwrap();
        place.write("skills/watch/references/a.md", OWN);
        place.write("outside/references/a.md", SECRET);
        place.write("outside/SKILL.md", &format!("{skill}\n{SECRET}\n"));
        let pairs = SWAPS.map(|(path, target)| {
            let link = place.path(&format!("links/{}", path.replace('/', "-")));
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(place.path(target), &link).unwrap();
            (place.path(path), link)
        });
        let (ends, swapped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (end, count) = (Arc::clone(&ends), Arc::clone(&swapped));
        let thread = std::thread::spawn(move || {
            let swap = |a: &Path, b: &Path| renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
            while !end.load(Ordering::Relaxed) {
                for (path, link) in &pairs {
                    swap(path, link);
                    std::thread::yield_now();
                    swap(path, link);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { ends, swapped, thread: Some(thread) }
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Reads by a route, often enough while names are swapped; no response may contain the secret.
async fn raced<F: Future<Output = Result<String, String>>>(test_server: &TestServer, read: impl Fn() -> F) {
    let swapping = Swapping::begin(test_server);
    let (mut good, mut refused) = (0, 0);
    let enough = |reads: usize| reads >= READS && swapping.swapped.load(Ordering::Relaxed) > MIN_SWAPS;
    while !enough(good + refused) {
        let answer = read().await;
        let text = answer.as_ref().unwrap_or_else(|error| error);
        assert!(!text.contains(SECRET), "{text}");
        *(if answer.is_ok() { &mut good } else { &mut refused }) += 1;
    }
    assert!(good > 0, "{refused} refused");
}

async fn call(test_server: &TestServer, name: &str, arguments: Value) -> Result<String, String> {
    let service =
        Service { core: Arc::clone(&test_server.core) as _, sessions: Arc::clone(&test_server.core) as _ };
    let result = operation(name).expect(name).call(&service, &Caller::anyone(), arguments).await;
    result.map(|value| value.to_string()).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn file_reads_survive_swapped_links() {
    let test_server = TestServer::open().await;
    let arguments = json!({ "skill_id": "watch", "path": "references/a.md" });
    raced(&test_server, || call(&test_server, "skill.file", arguments.clone())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_survive_swapped_links() {
    let test_server = TestServer::open().await;
    raced(&test_server, || call(&test_server, "skill.levels", json!({ "skill_id": "watch" }))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn describe_survives_swapped_links() {
    let test_server = TestServer::open().await;
    raced(&test_server, || call(&test_server, "skill.describe", json!({ "skill_id": "watch" }))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn contract_survives_swapped_links() {
    let test_server = TestServer::open().await;
    test_server
        .place
        .write("outside/skill.yaml", &format!("id: test.watch\nversion: 1.0.0\ndescription: {SECRET}\n"));
    raced(&test_server, || call(&test_server, "skill.contract", json!({ "skill_id": "watch" }))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runtime_reads_survive_swapped_links() {
    let test_server = TestServer::open().await;
    let session = test_server.call("session.new", json!({})).await.json()["session_id"].clone();
    let load = json!({ "session_id": session, "tool": "skills.load", "arguments": { "names": ["watch"] } });
    test_server.call("session.tool", load).await;
    let loaded = test_server.core.resolve("watch").unwrap();
    // As `skills.read` opens it; each call by itself would grow the transcript by an entry.
    raced(&test_server, || {
        let loaded = Arc::clone(&loaded);
        async move {
            let bundle = loaded.open().map_err(|error| error.to_string())?;
            let read = skills_session::read::range(&bundle, "references/a.md", 0, None);
            read.map(|range| String::from_utf8(range.bytes).unwrap()).map_err(|error| error.message)
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skill_targets_survive_swapped_links() {
    let test_server = TestServer::open().await;
    let arguments = json!({ "skill_id": "watch", "target_type": "artifact", "target_ref": "skill:watch/references/a.md" });
    raced(&test_server, || call(&test_server, "skill.attach_preview", arguments.clone())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_survive_swapped_links() {
    let test_server = TestServer::open().await;
    let core: SharedClient = Arc::clone(&test_server.core) as _;
    let skill = test_server.core.resolve("watch").unwrap();
    let turn = AtomicUsize::new(0);
    raced(&test_server, || {
        let path = ["references/a.md", "SKILL.md"][turn.fetch_add(1, Ordering::Relaxed) % 2];
        let (core, skill) = (Arc::clone(&core), Arc::clone(&skill));
        async move {
            let read = resources::content(&core, &skill, path).await;
            read.map(|content| String::from_utf8(content.bytes).unwrap()).map_err(|error| error.to_string())
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resource_lists_survive_swapped_links() {
    let test_server = TestServer::open().await;
    test_server.place.write("outside/references/SECRET-NAME.md", "x");
    test_server.place.write("outside/SECRET-NAME.md", "x");
    let core: SharedClient = Arc::clone(&test_server.core) as _;
    let skill = test_server.core.resolve("watch").unwrap();
    raced(&test_server, || {
        let (core, skill) = (Arc::clone(&core), Arc::clone(&skill));
        async move {
            let files = resources::files(&core, &skill).await.map_err(|error| error.to_string())?;
            Ok(files.join(" ").replace("SECRET-NAME", SECRET))
        }
    })
    .await;
}
