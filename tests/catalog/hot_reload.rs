//! Skills that are saved, renamed, added and removed on disk are updated without a restart.
use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use skills_registry::{Catalog, Registry, Settings, ShippedUse};

use crate::registry_support;
use registry_support::{World, description, ids, next, scan, text, until};

fn watched(mut settings: Settings) -> Registry {
    settings.watch = true;
    // Far away: what is seen is seen through events.
    settings.poll = std::time::Duration::from_secs(3600);
    let registry = Registry::open(settings).unwrap();
    registry.wait_scanned_blocking();
    until(&registry, "all roots are live", |now| now.roots.iter().all(|root| root.live));
    registry
}

#[test]
fn saving_one_file_parses_that_one_and_shares_the_rest() {
    let world = World::new();
    for id in ["a", "b", "c"] {
        world.skill(&format!("root/{id}"), "Before");
    }
    let registry = watched(world.settings(&["root"]));
    let (before, parsed, mut events) = (registry.snapshot(), registry.parsed(), registry.events());
    world.skill("root/b", "After");
    let after = until(&registry, "b changed", |now| description(now, "b") == "After");
    assert_eq!(registry.parsed() - parsed, 1);
    let change = next(&mut events).unwrap();
    assert_eq!(change.changed, ["b".into_id()]);
    assert!(change.added.is_empty() && change.removed.is_empty());
    for id in ["a", "c"] {
        assert!(Arc::ptr_eq(before.by_id(id).unwrap(), after.by_id(id).unwrap()), "{id} is the same record");
    }
    assert_eq!(description(&before, "b"), "Before", "a snapshot never changes");
}

#[test]
fn save_by_renaming_is_detected() {
    let world = World::new();
    world.skill("root/a", "Before");
    let registry = watched(world.settings(&["root"]));
    world.write("root/a/.SKILL.md.swp", &text("a", "After"));
    fs::rename(world.path("root/a/SKILL.md"), world.path("root/a/SKILL.md~")).unwrap();
    fs::rename(world.path("root/a/.SKILL.md.swp"), world.path("root/a/SKILL.md")).unwrap();
    until(&registry, "a changed", |now| description(now, "a") == "After");
    assert_eq!(ids(&registry.snapshot()), ["a"]);
}

#[test]
fn added_removed_and_renamed_bundles_are_detected() {
    let world = World::new();
    world.skill("root/a", "One");
    let registry = watched(world.settings(&["root"]));
    world.skill("root/group/new/b", "Two");
    until(&registry, "b came", |now| ids(now) == ["a", "b"]);
    fs::rename(world.path("root/group"), world.path("root/z")).unwrap();
    until(&registry, "its folder was renamed", |now| {
        now.by_id("b").is_some_and(|skill| skill.location == world.path("root/z/new/b/SKILL.md"))
    });
    world.skill("root/z/new/b", "Two again");
    until(&registry, "saved below the renamed folder", |now| description(now, "b") == "Two again");
    fs::rename(world.path("root/z/new/b"), world.path("root/z/new/c")).unwrap();
    until(&registry, "the bundle was renamed", |now| ids(now) == ["a", "c"]);
    fs::remove_dir_all(world.path("root/z")).unwrap();
    until(&registry, "it went", |now| ids(now) == ["a"]);
    fs::remove_file(world.path("root/a/SKILL.md")).unwrap();
    until(&registry, "the last went", |now| ids(now).is_empty());
}

#[test]
fn removed_winner_passes_its_id_to_the_next() {
    let world = World::new();
    world.skill("one/a", "First");
    world.skill("two/a", "Second");
    let registry = watched(world.settings(&["one", "two"]));
    let mut events = registry.events();
    fs::remove_dir_all(world.path("one/a")).unwrap();
    let now = until(&registry, "the second won", |now| description(now, "a") == "Second");
    assert!(now.shadowed.is_empty());
    assert_eq!(next(&mut events).unwrap().changed, ["a".into_id()]);
    world.skill("one/a", "First");
    let now = until(&registry, "the first is back", |now| description(now, "a") == "First");
    assert_eq!(now.shadowed.len(), 1);
}

#[test]
fn created_root_is_read_and_removed_root_reported() {
    let world = World::new();
    fs::create_dir(world.path("home")).unwrap();
    let mut settings = world.settings(&["home/.agents/skills"]);
    settings.shipped = ShippedUse::WhenEmpty;
    let registry = watched(settings);
    let shipped = ids(&registry.snapshot()).len();
    assert!(shipped > 1);
    world.skill("home/.agents/skills/a", "One");
    until(&registry, "the root came", |now| ids(now) == ["a"]);
    fs::remove_dir_all(world.path("home/.agents")).unwrap();
    until(&registry, "the root went", |now| ids(now).len() == shipped);
    world.skill("home/.agents/skills/b", "Two");
    until(&registry, "the root is back", |now| ids(now) == ["b"]);
}

#[test]
fn script_in_the_bundle_makes_a_skill_a_tool() {
    let world = World::new();
    world.skill("root/a", "One");
    let registry = watched(world.settings(&["root"]));
    let kind = |now: &Catalog| now.by_id("a").unwrap().kind.value.to_string();
    assert_eq!(kind(&registry.snapshot()), "host-knowledge");
    world.write("root/a/scripts/run.sh", "#!/bin/sh\n");
    until(&registry, "it became a tool", |now| kind(now) == "tool");
}

#[test]
fn bundle_in_a_skipped_folder_is_updated() {
    let world = World::new();
    world.skill("root/a", "One");
    world.skill("root/node_modules/b", "Not searched");
    let registry = watched(world.settings(&["root"]));
    assert_eq!(ids(&registry.snapshot()), ["a"]);
    world.skill("root/node_modules", "Two");
    let kind = |now: &Catalog| now.by_id("node_modules").map(|skill| skill.kind.value.to_string());
    until(&registry, "it came", |now| ids(now) == ["a", "node_modules"]);
    world.write("root/node_modules/scripts/run.sh", "#!/bin/sh\n");
    until(&registry, "it became a tool", |now| kind(now).as_deref() == Some("tool"));
    fs::remove_file(world.path("root/node_modules/SKILL.md")).unwrap();
    until(&registry, "it went", |now| ids(now) == ["a"]);
}

#[test]
fn changes_without_file_events_are_polled() {
    let world = World::new();
    world.skill("root/a", "Before");
    let still = Registry::open(world.settings(&["root"])).unwrap();
    still.wait_scanned_blocking();
    let mut settings = world.settings(&["root"]);
    (settings.watch, settings.events) = (true, false);
    let polled = Registry::open(settings).unwrap();
    polled.wait_scanned_blocking();
    assert!(polled.snapshot().roots.iter().all(|root| !root.live));
    world.skill("root/a", "After");
    world.skill("root/b", "New");
    until(&polled, "the poll saw both", |now| description(now, "a") == "After" && ids(now) == ["a", "b"]);
    assert_eq!(polled.parsed(), 3);
    assert_eq!(description(&still.snapshot(), "a"), "Before");
    assert!(still.snapshot().roots.iter().all(|root| !root.live));
    still.rescan();
    until(&still, "asked to look", |now| description(now, "a") == "After");
}

#[cfg(unix)]
#[test]
fn added_and_removed_links_are_detected() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    world.skill("root/a", "One");
    world.skill("out/b", "Two");
    let registry = watched(world.settings(&["root"]));
    symlink(world.path("out/b"), world.path("root/b")).unwrap();
    until(&registry, "refused", |now| now.refused.len() == 1);
    fs::remove_file(world.path("root/b")).unwrap();
    until(&registry, "gone", |now| now.refused.is_empty());
    symlink(world.path("root/a"), world.path("root/b")).unwrap();
    until(&registry, "another path", |now| now.aliases.len() == 1);
}

/// One thing that happens to a folder of skills.
#[derive(Debug, Clone)]
enum Deed {
    Write(usize, usize),
    Break(usize),
    Remove(usize),
    RemoveAll(usize),
    Move(usize, usize),
}

const PLACES: [&str; 8] =
    ["one/a", "one/g/a", "one/g/b", "one/target", "one/target/d", "two/a", "two/b", "two/b/inner/c"];

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let place = 0..PLACES.len();
    let deed = prop_oneof![
        4 => (place.clone(), 0..3_usize).prop_map(|(p, d)| Deed::Write(p, d)),
        1 => place.clone().prop_map(Deed::Break),
        1 => place.clone().prop_map(Deed::Remove),
        1 => place.clone().prop_map(Deed::RemoveAll),
        1 => (place.clone(), place).prop_map(|(a, b)| Deed::Move(a, b)),
    ];
    proptest::collection::vec(deed, 1..8)
}

fn happen(world: &World, deed: &Deed) {
    // What does not exist cannot be removed or moved; that is not a failure here.
    match deed {
        Deed::Write(place, d) => world.skill(PLACES[*place], ["One", "Two", "Three"][*d]),
        Deed::Break(place) => world.write(&format!("{}/SKILL.md", PLACES[*place]), "---\nname: x\n---\n"),
        Deed::Remove(place) => drop(fs::remove_file(world.path(&format!("{}/SKILL.md", PLACES[*place])))),
        Deed::RemoveAll(place) => drop(fs::remove_dir_all(world.path(PLACES[*place]))),
        Deed::Move(a, b) => drop(fs::rename(world.path(PLACES[*a]), world.path(PLACES[*b]))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn incremental_changes_equal_a_complete_scan(before in deeds(), after in deeds()) {
        let world = World::new();
        fs::create_dir_all(world.path("one")).unwrap();
        fs::create_dir_all(world.path("two")).unwrap();
        for deed in &before {
            happen(&world, deed);
        }
        let registry = watched(world.settings(&["one", "two"]));
        for deed in &after {
            happen(&world, deed);
        }
        let scanned = scan(world.settings(&["one", "two"]));
        let same = |now: &Catalog| {
            now.entries == scanned.entries && now.shadowed == scanned.shadowed && now.refused == scanned.refused
        };
        until(&registry, "the same as after a reload", same);
    }
}

trait IntoId {
    fn into_id(self) -> skills_skill::SkillId;
}

impl IntoId for &str {
    fn into_id(self) -> skills_skill::SkillId {
        skills_skill::SkillId::new(self)
    }
}
