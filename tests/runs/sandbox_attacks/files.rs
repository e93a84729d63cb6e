//! Attacks on files: reading, listing and changing what is not the script's.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use skills_sandbox::Guarantee;

use super::attack_setup::{Attack, AttackSetup, Victim, open_folder, soon, text};

#[tokio::test]
async fn a_secret_outside_stays_secret() {
    let place = open_folder();
    let secret = place.path().join("secret");
    std::fs::write(&secret, "the secret").expect("written");
    let attack = Attack::new("read_secret.py", Guarantee::Files);
    attack
        .is_repelled(|_| {
            AttackSetup::new([text(&secret)]).seen_by(|outcome| outcome.stdout.text().contains("the secret"))
        })
        .await;
}

#[tokio::test]
async fn the_home_folder_is_not_listed() {
    let stand_in = open_folder();
    std::fs::write(stand_in.path().join("diary"), "x").expect("written");
    let attack = Attack::new("list_folder.py", Guarantee::Files);
    attack.is_repelled(|_| AttackSetup::new([text(stand_in.path())])).await;
    if let Some(home) = std::env::home_dir().filter(|home| std::fs::read_dir(home).is_ok()) {
        attack.is_repelled(|_| AttackSetup::new([text(&home)])).await;
    }
}

#[tokio::test]
async fn link_does_not_escape_the_bundle() {
    let place = open_folder();
    let secret = place.path().join("secret");
    std::fs::write(&secret, "the secret").expect("written");
    let attack = Attack::new("link_out.py", Guarantee::Files);
    attack
        .is_repelled(|bundle| {
            bundle.link_out_to(&secret);
            AttackSetup::new([]).seen_by(|outcome| outcome.stdout.text().contains("the secret"))
        })
        .await;
}

#[tokio::test]
async fn nothing_is_written_outside() {
    let place = open_folder();
    let attack = Attack::new("write_outside.py", Guarantee::Files);
    attack
        .is_repelled(|_| {
            let target = place.path().join("target");
            let _ = std::fs::remove_file(&target);
            AttackSetup::new([text(&target)]).seen_by(move |_| target.exists())
        })
        .await;
}

#[tokio::test]
async fn the_bundle_is_not_changed() {
    let attack = Attack::new("change_bundle.py", Guarantee::Files);
    attack
        .is_repelled(|bundle| {
            let (notes, new) =
                (bundle.path().join("references/notes.md"), bundle.path().join("scripts/new.py"));
            AttackSetup::new([text(bundle.path())]).seen_by(move |_| {
                new.exists() || std::fs::read_to_string(&notes).ok().as_deref() != Some("notes")
            })
        })
        .await;
}

#[tokio::test]
async fn modes_and_times_of_files_outside_stay() {
    let place = open_folder();
    let attack = Attack::new("change_mode.py", Guarantee::Files);
    attack
        .is_repelled(|_| {
            let target = place.path().join("target");
            std::fs::write(&target, "x").expect("written");
            std::fs::set_permissions(&target, PermissionsExt::from_mode(0o600)).expect("own file");
            AttackSetup::new([text(&target)]).seen_by(move |_| {
                let meta = std::fs::metadata(&target).expect("there");
                meta.mode() & 0o777 != 0o600 || meta.mtime() == 1
            })
        })
        .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn extended_attributes_outside_stay_secret() {
    let place = open_folder();
    let target = place.path().join("target");
    std::fs::write(&target, "x").expect("written");
    Attack::new("extended_attributes.py", Guarantee::Files)
        .is_repelled(|_| AttackSetup::new([text(&target)]))
        .await;
}

#[tokio::test]
async fn the_environment_of_another_process_stays_closed() {
    let attack = Attack::new("other_environment.py", Guarantee::Environment);
    attack
        .is_repelled(|_| {
            let victim = Victim::new();
            // Between fork and exec it still has the tests' own.
            let environ = format!("/proc/{}/environ", victim.pid());
            let started =
                || std::fs::read(&environ).is_ok_and(|text| text.windows(6).any(|part| part == b"VICTIM"));
            assert!(soon(started), "the victim has its variable");
            AttackSetup::new([victim.pid().to_string()]).keeping(victim)
        })
        .await;
}
