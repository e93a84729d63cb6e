//! What a session costs with the catalog of a large collection: composing the next call, the complete view with its
//! token counts, the same under a client's budget, and loading a skill. The skills are generated, as many as a public
//! collection has; `SKILLS_BENCH_ROOT` names a directory of real ones instead.
#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "a bench that cannot be set up has to stop; its harness writes undocumented items"
)]

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use skills_api::{Client as _, CoreParts, Local, SessionClient as _, SettingsChange};
use skills_config::{Config, Env};
use skills_session::{ComposeInput, Form, Instructions, ListedEntry, ToolNameFormat, catalog_text, compose};
use tokio::runtime::Runtime;

/// Skills of the public collection that is measured elsewhere, too.
const SKILLS: usize = 4_483;
/// About as long as descriptions of real skills are.
const WORDS: usize = 38;

const VOCABULARY: [&str; 16] = [
    "extracts", "tables", "from", "reports", "use", "when", "a", "request", "names", "invoices", "or",
    "asks", "to", "compare", "files", "quickly",
];

fn made(root: &Path) {
    for at in 0..SKILLS {
        let folder = root.join(format!("skill-{at:04}"));
        fs::create_dir_all(&folder).expect("a folder");
        let words: Vec<&str> =
            (0..WORDS).map(|w| VOCABULARY[(at * 7 + w * (1 + at % 5)) % VOCABULARY.len()]).collect();
        let body = format!("{}\n\n", words.join(" ")).repeat(60);
        let text = format!(
            "---\nname: skill-{at:04}\ndescription: Number {at} {}.\n---\n# Skill {at}\n\n{body}",
            words.join(" ")
        );
        fs::write(folder.join("SKILL.md"), text).expect("a skill");
    }
}

struct Bench {
    core: Local,
    session: String,
    names: Vec<String>,
    listed: Vec<ListedEntry>,
    _home: tempfile::TempDir,
}

async fn bench() -> Bench {
    let home = tempfile::tempdir().expect("a home");
    let root = std::env::var_os("SKILLS_BENCH_ROOT").map_or_else(
        || {
            let root = home.path().join("skills");
            made(&root);
            root
        },
        PathBuf::from,
    );
    let mut config = Config::defaults(home.path(), &Env::at(home.path()));
    config.argument_roots = vec![root];
    let core = Local::open_once(config, CoreParts::Catalog).await.expect("a core");
    let catalog = core.catalog().await.expect("a catalog");
    let listed: Vec<ListedEntry> = catalog
        .entries
        .iter()
        .map(|entry| ListedEntry {
            name: entry.skill.id.to_string(),
            description: entry.skill.description.clone(),
            location: Some(entry.skill.location.clone()),
            ..ListedEntry::default()
        })
        .collect();
    let names = listed.iter().map(|entry| entry.name.clone()).collect();
    let session = core.new_session(SettingsChange::default()).await.expect("a session").session_id;
    let load = json!({"names": [listed[0].name, listed[1].name, listed[2].name]});
    core.call_tool(&session, "skills.load", load, None).await.expect("a call").result.expect("loaded");
    // The first call counts every entry; what a person waits for later are the others.
    core.compose(&session, true).await.expect("a call");
    Bench { core, session, names, listed, _home: home }
}

fn sessions(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let Bench { core, session, names, listed, _home } = runtime.block_on(bench());
    let mut group = c.benchmark_group(format!("session/{}", listed.len()));
    group.sample_size(20);
    group.bench_function("compose the text", |b| {
        b.iter(|| {
            black_box(compose(&ComposeInput {
                available: &catalog_text(&listed, Form::Xml, ToolNameFormat::Dotted),
                active: &[],
                agent: None,
                own: &[],
                instructions: Instructions::TopLevel,
                in_answers: &std::collections::BTreeSet::new(),
                wire: ToolNameFormat::Dotted,
            }))
        });
    });
    group.bench_function("compose, counted and compared with the last call", |b| {
        b.iter(|| runtime.block_on(core.compose(&session, false)).expect("composed"));
    });
    let mut at = 0;
    group.bench_function("load one of them", |b| {
        b.iter(|| {
            at = (at + 1) % names.len();
            let load = json!({"names": [names[at]]});
            let answer =
                runtime.block_on(core.call_tool(&session, "skills.load", load, None)).expect("a call");
            black_box(answer)
        });
    });
    for client in ["codex", "claude-code"] {
        let change = SettingsChange { client: Some(client.to_owned()), ..SettingsChange::default() };
        runtime.block_on(core.configure_session(&session, change)).expect("a client");
        runtime.block_on(core.compose(&session, true)).expect("a call");
        group.bench_function(format!("compose as {client}"), |b| {
            b.iter(|| runtime.block_on(core.compose(&session, false)).expect("composed"));
        });
    }
    group.finish();
}

criterion_group!(benches, sessions);
criterion_main!(benches);
