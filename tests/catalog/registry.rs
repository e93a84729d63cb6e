//! The catalog of folders: bundles at any depth, one winner for each id, every
//! loser, copy and refused link still listed; and the next start is warm.
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use skills_registry::{Registry, RootOrigin, RootState, ShippedUse};
use skills_skill::{RefusalReason, SkillId};

use crate::registry_support;
use registry_support::{World, description, ids, scan, text};

#[test]
fn bundles_are_found_nested_hidden_and_without_skill_md() {
    let world = World::new();
    world.skill("root/pdf", "Reads PDF files");
    world.skill("root/pdf/inner/tables", "Finds tables in PDF files");
    world.skill("root/repo/.claude/skills/review", "Reviews code");
    world.write("root/lower/skill.md", &text("lower", "In lower case"));
    world.write(
        "root/official/text/summary/skill.yaml",
        "id: text.summary\nname: Summary\ndescription: Sums a text up\n",
    );
    world.write("root/readme/README.md", "no skill");
    let found = world.scan(&["root"]);
    assert_eq!(ids(&found), ["lower", "text.summary", "pdf", "tables", "review"]);
    assert!(found.refused.is_empty());
    let lower = found.by_id("lower").unwrap();
    assert!(
        lower.findings.iter().any(|finding| finding.message.contains("skill.md")),
        "{:?}",
        lower.findings
    );
}

#[test]
fn inside_a_root_the_shallower_path_wins() {
    let world = World::new();
    world.skill("root/docs/ja-JP/skills/pdf", "A translation");
    world.skill("root/skills/pdf", "The original");
    let found = world.scan(&["root"]);
    assert_eq!(description(&found, "pdf"), "The original");
    assert_eq!(found.shadowed[0].winner, world.path("root/skills/pdf/SKILL.md"));
}

#[test]
fn first_root_wins_an_id_and_shadowed_skills_stay_listed() {
    let world = World::new();
    world.skill("one/x/pdf", "The winner");
    world.skill("two/pdf", "Another one");
    world.skill("two/zz/pdf", "The winner");
    world.skill("two/deep/pdf", "The winner");
    world.skill("two/csv", "No rival");
    let found = world.scan(&["one", "two"]);
    assert_eq!(ids(&found), ["pdf", "csv"]);
    assert_eq!(description(&found, "pdf"), "The winner");
    let lost: Vec<_> = found
        .shadowed
        .iter()
        .map(|s| {
            let place = s.skill.location.strip_prefix(world.path("")).unwrap().display().to_string();
            assert_eq!((s.lost.as_str(), &s.winner), ("pdf", &world.path("one/x/pdf/SKILL.md")));
            (place, s.root, s.identical)
        })
        .collect();
    let place = |path: &str| path.to_owned();
    assert_eq!(
        lost,
        [
            (place("two/deep/pdf/SKILL.md"), 1, true),
            (place("two/pdf/SKILL.md"), 1, false),
            (place("two/zz/pdf/SKILL.md"), 1, true)
        ]
    );
    let unique: HashSet<&SkillId> = found.shadowed.iter().map(|s| &s.skill.id).collect();
    assert_eq!(unique.len(), 3, "byte-identical copies have ids of their own too: {unique:?}");
    for shadowed in &found.shadowed {
        let short = SkillId::new("pdf").shadowed(shadowed.skill.digest);
        assert!(shadowed.skill.id.as_str().starts_with(short.as_str()), "{}", shadowed.skill.id);
        let by_id = found.by_id(shadowed.skill.id.as_str()).unwrap();
        assert_eq!(by_id.location, shadowed.skill.location);
        assert!(found.entry(shadowed.skill.id.as_str()).is_none());
    }
    assert_eq!(
        world.scan(&["two", "one"]).entries[0].skill.description,
        "No rival",
        "inside a root the path sorts"
    );
}

#[test]
fn two_scans_of_the_same_folders_are_equal() {
    let world = World::new();
    for i in 0..60 {
        world.skill(&format!("root/g{}/s{i}", i % 7), "The same words");
        world.skill(&format!("root/h{}/s{i}", i % 5), "The same words");
    }
    let first = world.scan(&["root", "other"]);
    let (mut a, mut b) = ((*first).clone(), (*world.scan(&["root", "other"])).clone());
    (a.generation, b.generation) = (0, 0);
    assert_eq!(a, b);
    assert_eq!((a.entries.len(), a.shadowed.len()), (60, 60));
}

#[test]
fn missing_file_and_empty_roots_are_distinguished() {
    let world = World::new();
    world.write("file", "x");
    fs::create_dir(world.path("empty")).unwrap();
    let found = world.scan(&["missing", "file", "empty"]);
    assert_eq!(found.roots[0].state, RootState::Missing);
    assert!(matches!(&found.roots[1].state, RootState::Unreadable(why) if why.contains("file")));
    assert_eq!(found.roots[2].state, RootState::Present);
}

#[test]
fn overlapping_roots_count_a_file_once() {
    let world = World::new();
    world.skill("repo/skills/a", "One");
    world.skill("repo/b", "Two");
    let found = world.scan(&["repo/skills", "repo"]);
    assert_eq!(ids(&found), ["a", "b"]);
    assert!(found.shadowed.is_empty());
    assert_eq!(found.aliases.len(), 1);
    assert_eq!(found.entries[0].root, 0);
}

#[cfg(unix)]
#[test]
fn links_inside_the_roots_are_aliases_and_others_rejected() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    world.skill("agents/a", "One");
    world.skill("claude/b", "Two");
    world.skill("elsewhere/c", "Three");
    world.skill("agents/node_modules/pkg/d", "Four");
    symlink(world.path("agents/a"), world.path("claude/a")).unwrap();
    symlink(world.path("agents"), world.path("agents/a/loop")).unwrap();
    symlink(world.path("agents/node_modules/pkg"), world.path("agents/linked")).unwrap();
    symlink(world.path("elsewhere/c"), world.path("claude/c")).unwrap();
    let found = world.scan(&["agents", "claude"]);
    assert_eq!(ids(&found), ["a", "d", "b"]);
    assert!(found.shadowed.is_empty());
    let alias = found.by_location(&world.path("claude/a/SKILL.md")).unwrap();
    assert_eq!(alias.location, world.path("agents/a/SKILL.md"));
    let refused = &found.refused[..];
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!((refused[0].id.as_str(), refused[0].reason.clone()), ("c", RefusalReason::LeavesRoot));
    let message = &refused[0].findings[0].message;
    assert!(message.contains("elsewhere/c") && message.contains("claude"), "{message}");
    assert_eq!(
        ids(&world.scan(&["agents", "claude", "elsewhere"])),
        ["a", "d", "b", "c"],
        "its folder named as a root"
    );
}

#[cfg(unix)]
#[test]
fn a_link_to_a_main_file_does_not_replace_its_bundle() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    world.skill("root/own/victim", "One");
    let links = ["first/z/SKILL.md", "root/a/SKILL.md", "root/b/skill.yaml"];
    for link in links {
        let link = world.path(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(world.path("root/own/victim/SKILL.md"), link).unwrap();
    }
    // Other paths of the bundle itself, of which the first one counts.
    symlink("own/victim", world.path("root/linked")).unwrap();
    let found = world.scan(&["first", "root", "root/own"]);
    assert_eq!(ids(&found), ["victim"]);
    assert!(found.shadowed.is_empty() && found.refused.is_empty(), "{:?}", found.refused);
    let skill = found.by_id("victim").unwrap();
    let location = world.path("root/own/victim/SKILL.md");
    assert_eq!((&skill.location, found.entries[0].root), (&location, 1));
    let aliases: HashSet<_> = found.aliases_of(&location).map(|alias| alias.location.clone()).collect();
    let expected = links.into_iter().chain(["root/linked/SKILL.md", "root/own/victim/SKILL.md"]);
    let expected: HashSet<_> = expected.map(|path| world.path(path)).collect();
    assert_eq!(aliases, expected);
    for link in links {
        assert_eq!(found.by_location(&world.path(link)).unwrap().id, skill.id, "{link}");
    }
    // Only the links are left: each folder with one is a bundle.
    fs::create_dir(world.path("root/node_modules")).unwrap();
    fs::rename(world.path("root/own"), world.path("root/node_modules/own")).unwrap();
    fs::remove_file(world.path("root/a/SKILL.md")).unwrap();
    fs::create_dir(world.path("root/c")).unwrap();
    for link in ["root/a/SKILL.md", "root/c/SKILL.md"] {
        symlink(world.path("root/node_modules/own/victim/SKILL.md"), world.path(link)).unwrap();
    }
    symlink("c", world.path("root/d")).unwrap();
    let found = world.scan(&["root"]);
    assert_eq!(ids(&found), ["a", "c"]);
    let aliases: Vec<_> = found.aliases.iter().map(|alias| alias.location.clone()).collect();
    assert_eq!(aliases, [world.path("root/d/SKILL.md")], "another path of one folder");
    assert_eq!(found.by_location(&world.path("root/d")).unwrap().id.as_str(), "c");
}

#[cfg(unix)]
#[test]
fn links_to_a_text_outside_of_bundles_are_separate_skills() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    world.write("root/docs/victim.md", &text("victim", "One"));
    for folder in ["root/team/victim", "root/a/victim", "root/zz/other"] {
        fs::create_dir_all(world.path(folder)).unwrap();
        symlink("../../docs/victim.md", world.path(folder).join("SKILL.md")).unwrap();
    }
    let found = world.scan(&["root"]);
    assert_eq!(ids(&found), ["victim", "other"]);
    assert!(found.aliases.is_empty() && found.refused.is_empty(), "{:?}", found.aliases);
    assert_eq!(found.entries[0].skill.real_folder(), world.path("root/a/victim"));
    let lost = &found.shadowed[0];
    assert_eq!((found.shadowed.len(), lost.lost.as_str(), lost.identical), (1, "victim", true));
    assert_eq!(lost.skill.real_folder(), world.path("root/team/victim"));
    for folder in ["root/team/victim", "root/a/victim", "root/zz/other"] {
        let location = world.path(folder).join("SKILL.md");
        assert_eq!(found.by_location(&location).unwrap().location, location);
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_a_main_file_below_its_own_folder_is_the_bundle() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    for skill in ["alpha", "beta"] {
        world.write(&format!("root/{skill}/en/SKILL.md"), &text(skill, skill));
        symlink("en/SKILL.md", world.path(&format!("root/{skill}/SKILL.md"))).unwrap();
    }
    // Its folder does not contain the file.
    fs::create_dir(world.path("root/a")).unwrap();
    symlink("../alpha/SKILL.md", world.path("root/a/SKILL.md")).unwrap();
    let found = world.scan(&["root"]);
    assert_eq!(ids(&found), ["alpha", "beta"]);
    assert!(found.shadowed.is_empty() && found.refused.is_empty(), "{:?}", found.refused);
    let location = world.path("root/alpha/SKILL.md");
    assert_eq!(found.by_id("alpha").unwrap().location, location);
    let aliases: HashSet<_> = found.aliases_of(&location).map(|alias| alias.location.clone()).collect();
    let expected = ["root/alpha/en/SKILL.md", "root/a/SKILL.md"].map(|path| world.path(path));
    assert_eq!(aliases, HashSet::from(expected));
}

#[cfg(unix)]
#[test]
fn a_link_of_the_user_to_a_file_of_a_project_does_not_replace_its_skill() {
    let world = World::new();
    world.skill("project/a", "One");
    fs::create_dir_all(world.path("user/mine")).unwrap();
    let link = world.path("user/mine/SKILL.md");
    std::os::unix::fs::symlink(world.path("project/a/SKILL.md"), &link).unwrap();
    let mut settings = world.settings(&["project", "user"]);
    settings.roots[0].project = Some(world.path("project"));
    let found = scan(settings);
    assert_eq!(ids(&found), ["a"]);
    let location = world.path("project/a/SKILL.md");
    assert_eq!((&found.entries[0].skill.location, found.entries[0].root), (&location, 0));
    assert_eq!((&found.aliases[0].location, &found.aliases[0].same_as), (&link, &location));
}

#[test]
fn bundles_in_skipped_folders_are_found() {
    let world = World::new();
    for folder in ["root/a", "root/target/b", "root/g/node_modules", "root/.git"] {
        world.skill(folder, "One");
    }
    let find = |roots: &[&str]| {
        let mut settings = world.settings(roots);
        settings.cache = true;
        scan(settings)
    };
    // What has just been written is not cached.
    std::thread::sleep(Duration::from_millis(2_100));
    assert_eq!(ids(&find(&["root"])), ["a", "node_modules"]);
    assert_eq!(ids(&find(&["root", "root/target"])), ["a", "node_modules", "b"]);
    world.skill("root/target", "Two");
    assert_eq!(ids(&find(&["root"])), ["a", "node_modules", "target"]);
    let both = find(&["root", "root/target"]);
    assert_eq!(ids(&both), ["a", "node_modules", "target", "b"]);
    assert!(both.shadowed.is_empty(), "{:?}", both.shadowed);
}

#[cfg(unix)]
#[test]
fn link_to_a_folder_that_is_too_deep_is_followed() {
    let world = World::new();
    let deep = format!("root/{}", ["d"; 70].join("/"));
    world.skill(&format!("{deep}/a"), "One");
    assert!(ids(&world.scan(&["root"])).is_empty());
    std::os::unix::fs::symlink(world.path(&deep), world.path("root/near")).unwrap();
    let found = world.scan(&["root"]);
    assert_eq!(ids(&found), ["a"]);
    assert_eq!(found.entries[0].skill.location, world.path("root/near/a/SKILL.md"));
}

#[cfg(unix)]
#[test]
fn many_links_to_a_folder_with_many_skills_are_not_multiplied() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    for skill in 0..40 {
        world.skill(&format!("root/all/s{skill}"), "One");
    }
    fs::create_dir(world.path("root/links")).unwrap();
    for link in 10..60 {
        symlink(world.path("root/all"), world.path(&format!("root/links/k{link}"))).unwrap();
    }
    let found = world.scan(&["root"]);
    assert_eq!((found.entries.len(), found.links.len()), (40, 50));
    assert_eq!(found.aliases.len(), 40 * 32, "32 of 50 paths of each skill are listed");
    let skill = found.by_id("s39").unwrap();
    assert_eq!(found.aliases_of(&skill.location).count(), 32);
    let linked: usize = found.links_of(skill).map(|(links, _)| links.len()).sum();
    assert_eq!(linked, 50, "all are known");
    for place in ["root/links/k10/s39", "root/links/k59/s39", "root/links/k59/s39/SKILL.md"] {
        assert_eq!(found.by_location(&world.path(place)).unwrap().id, skill.id, "{place}");
    }
    for place in ["root/links/k60/s39", "root/links/k59/s40", "root/links/k59"] {
        assert!(found.by_location(&world.path(place)).is_none(), "{place}");
    }
}

#[test]
fn refused_bundles_are_listed_with_their_reason() {
    let world = World::new();
    world.write("root/none/SKILL.md", "---\nname: none\n---\n");
    fs::create_dir_all(world.path("root/bytes")).unwrap();
    fs::write(world.path("root/bytes/SKILL.md"), b"---\nname: bytes\ndescription: \xff\xfe\n---\n").unwrap();
    let found = world.scan(&["root"]);
    let refused: Vec<_> = found.refused.iter().map(|r| (r.id.as_str(), r.reason.clone())).collect();
    assert_eq!(refused, [("bytes", RefusalReason::NotUtf8), ("none", RefusalReason::NoDescription)]);
}

#[test]
fn refused_bundles_do_not_have_the_id_of_another_one() {
    let world = World::new();
    world.skill("one/pdf", "Reads PDF files");
    for root in ["two", "three"] {
        world.write(&format!("{root}/pdf/SKILL.md"), "---\nname: pdf\n---\n");
    }
    let found = world.scan(&["one", "two", "three"]);
    let ids: HashSet<&str> = found.refused.iter().map(|refusal| refusal.id.as_str()).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert!(ids.iter().all(|id| id.starts_with("pdf@")), "{ids:?}");
    let again = world.scan(&["one", "two", "three"]);
    assert_eq!(found.refused, again.refused, "the same ids every time");
}

#[test]
fn bundles_at_non_utf8_paths_are_rejected_with_unique_ids() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = World::new();
    world.skill("root/good", "Good");
    for name in [b"bad\xff", b"bad\xfe"] {
        let folder = world.path("root").join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), "---\nname: bad\ndescription: Bad.\n---\n").unwrap();
    }
    let found = world.scan(&["root"]);
    assert_eq!(ids(&found), ["good"]);
    let refused: Vec<_> = found.refused.iter().map(|r| (r.id.as_str(), r.reason.clone())).collect();
    assert_eq!(refused, [(r"bad\xfe", RefusalReason::NotUtf8), (r"bad\xff", RefusalReason::NotUtf8)]);
    serde_json::to_string(&found).unwrap();
}

#[test]
fn shipped_skills_are_used_as_fallback_and_in_demos() {
    let world = World::new();
    let mut settings = world.settings(&["root"]);
    settings.shipped = ShippedUse::WhenEmpty;
    let shipped = scan(settings.clone());
    assert!(!shipped.entries.is_empty(), "the shipped skills");
    assert!(
        shipped.entries.iter().all(|entry| entry.skill.location.starts_with(world.path("cache/shipped")))
    );
    assert_eq!(shipped.roots.last().unwrap().label, "shipped");
    // An incomplete skill is reported instead.
    settings.roots[0].origin = RootOrigin::User { client: "claude_code".to_owned() };
    world.write("root/begun/skills.md", "x");
    let started = scan(settings.clone());
    assert_eq!((ids(&started), started.refused.len()), (Vec::new(), 1));
    world.skill("root/own", "My own");
    assert_eq!(ids(&scan(settings.clone())), ["own"]);
    settings.shipped = ShippedUse::Only;
    settings.roots.clear();
    assert_eq!(ids(&scan(settings)), ids(&shipped));
}

#[test]
fn the_next_start_parses_only_what_changed() {
    let world = World::new();
    world.skill("root/a", "One");
    world.skill("root/b", "Two");
    world.write("root/none/SKILL.md", "---\nname: none\n---\n");
    let mut settings = world.settings(&["root"]);
    settings.cache = true;
    // What has just been written is not cached.
    let pause = || std::thread::sleep(Duration::from_millis(2_100));
    pause();
    let start = |settings: &_| {
        let registry = Registry::open(Clone::clone(settings)).unwrap();
        let found = registry.wait_scanned_blocking();
        let message = (registry.parsed(), registry.cache().1);
        // Dropping waits for the cache to be written.
        drop(registry);
        (found, message)
    };
    let (cold, message) = start(&settings);
    assert_eq!(message, (3, "rebuilt: no cache yet".to_owned()));
    let (warm, message) = start(&settings);
    assert_eq!(message, (0, "used".to_owned()));
    assert_eq!((&warm.entries, &warm.refused), (&cold.entries, &cold.refused));

    world.skill("root/b", "Two, but longer");
    fs::remove_file(world.path("root/a/SKILL.md")).unwrap();
    let (warm, message) = start(&settings);
    assert_eq!(message, (1, "used".to_owned()));
    assert_eq!(description(&warm, "b"), "Two, but longer");
    assert_eq!(ids(&warm), ["b"]);
    assert_eq!(start(&settings).1, (1, "used".to_owned()), "b has just been written");
    pause();
    assert_eq!((start(&settings).1.0, start(&settings).1.0), (1, 0));
    // A new version with the size and the modification time of the old one, as archives write it.
    let file = world.path("root/b/SKILL.md");
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    world.skill("root/b", "Two, but LONGER");
    fs::File::open(&file).unwrap().set_modified(modified).unwrap();
    let (warm, message) = start(&settings);
    assert_eq!(message, (1, "used".to_owned()));
    assert_eq!(description(&warm, "b"), "Two, but LONGER");

    settings.build = "another".to_owned();
    assert_eq!(
        start(&settings).1,
        (2, "rebuilt: it was written by another build of this program".to_owned())
    );
    let file = Registry::open(settings.clone()).unwrap().cache().0;
    for damage in [&b"short"[..], &b"SKILLS\x00\x01"[..]] {
        fs::write(&file, damage).unwrap();
        let (found, (parsed, message)) = start(&settings);
        assert_eq!((parsed, ids(&found)), (2, vec!["b"]), "{message}");
        assert!(message.starts_with("rebuilt: "), "{message}");
    }
    let good = fs::read(&file).unwrap();
    for at in (0..good.len()).step_by(7) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x55;
        fs::write(&file, bytes).unwrap();
        let (found, (_, message)) = start(&settings);
        assert!(message.starts_with("rebuilt: "), "byte {at}: {message}");
        assert_eq!(ids(&found), ["b"]);
    }
    settings.cache = false;
    assert_eq!(start(&settings).1, (2, "off".to_owned()));
}

#[test]
fn scan_does_not_block_and_can_be_canceled() {
    let world = World::new();
    for i in 0..300 {
        world.skill(&format!("root/s{i}"), "Many");
    }
    let registry = Registry::open(world.settings(&["root"])).unwrap();
    let before = registry.snapshot().entries.len();
    assert!(before <= 300);
    drop(registry);
}

#[test]
fn public_registry_of_contracts_loads_unchanged() {
    let Some(data) = std::env::var_os("SKILLS_TEST_DATA") else {
        eprintln!("SKIPPED: SKILLS_TEST_DATA is not set, the public contract registry is not read");
        return;
    };
    let world = World::new();
    let archive = Path::new(&data).join("contract-registry.tar.xz");
    let unpacked =
        std::process::Command::new("tar").arg("xJf").arg(archive).arg("-C").arg(world.path("")).status();
    assert!(unpacked.unwrap().success());
    let found = world.scan(&["registry/skills/official"]);
    assert_eq!(found.entries.len() + found.shadowed.len() + found.refused.len(), 26);
    assert!(found.refused.is_empty(), "{:?}", found.refused);
}
