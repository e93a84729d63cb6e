//! A public registry of contracts, loaded and explained completely.

use std::path::Path;
use std::sync::Arc;

use skills_runs::{Artifacts, Broker, BrokerSettings, BundleRefusal, Caller, Capabilities, CapabilityFolder};
use skills_sandbox::Contents;
use skills_skill::contract::Conformance;

use super::place::sandbox;

#[test]
fn every_capability_of_a_public_registry_is_explained_and_every_gap_named() {
    let Some(data) = std::env::var_os("SKILLS_TEST_DATA") else {
        eprintln!(
            "SKIPPED: set SKILLS_TEST_DATA to the folder of the large data to read a public registry whole"
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let archive = Path::new(&data).join("contract-registry.tar.xz");
    let tar =
        std::process::Command::new("tar").arg("xJf").arg(&archive).arg("-C").arg(folder.path()).status();
    assert!(tar.unwrap().success(), "{} cannot be unpacked", archive.display());
    let place = |name: &str| CapabilityFolder {
        dir: folder.path().join(name),
        bundle: None,
        shipped: false,
        of_project: false,
    };
    let catalog = Arc::new(Capabilities::load(&[place("registry"), place("runtime")]));
    assert_eq!((catalog.ids().len(), catalog.bindings().len()), (184, 189));
    let count = |code: &str| catalog.findings().iter().filter(|finding| finding.code == code).count();
    let unbound = catalog.ids().filter(|id| catalog.bindings_of(id).is_empty()).count();
    assert_eq!(count("capability-unbound"), unbound);
    assert_eq!(count("binding-capability"), 84, "bindings whose capability has another name by now");
    assert_eq!(count("binding-fallback"), 0);
    assert_eq!(count("registry-file-unreadable"), 0);

    let artifacts = Arc::new(Artifacts::open(&folder.path().join("artifacts")).unwrap());
    let settings = BrokerSettings::default();
    let broker = Broker::new(
        Arc::clone(&catalog),
        settings,
        sandbox(),
        Arc::new(|_: &Path, _: &Contents| Ok(())),
        artifacts,
    );
    let mut explained = 0;
    for id in catalog.ids() {
        let capability = catalog.capability(id).unwrap();
        let explanation = broker.explain(capability, &Conformance::Standard.into());
        assert_eq!(explanation.bindings.len(), catalog.bindings_of(id).len(), "{id}");
        assert_eq!(explanation.chosen, None, "{id}: nothing is configured");
        for choice in &explanation.bindings {
            explained += 1;
            let obstacle = choice.obstacle.as_deref().unwrap_or_default();
            let named =
                obstacle.contains(&choice.service) && obstacle.contains("`services:` in the configuration");
            assert!(named, "{}: {obstacle}", choice.binding);
        }
    }
    assert_eq!(explained, 189 - 84);
}

#[test]
fn address_of_an_untrusted_folder_is_not_advised() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("pay/capabilities/go.yaml", "id: pay.go\nversion: 1.0.0\ndescription: Pays.\n");
    let binding = "id: go\ncapability: pay.go\nprotocol: openapi\nservice: bank\noperation: POST /transfer\n";
    write("pay/bindings/go.yaml", binding);
    let describe = |name: &str| {
        let text = format!("id: bank\nprotocol: openapi\nurl: https://{name}.example/v1\n");
        write(&format!("{name}/services/bank.yaml"), &text);
    };
    let place = |name: &str, is_bundle: bool, of_project: bool| {
        let dir = folder.path().join(name);
        CapabilityFolder { bundle: is_bundle.then(|| dir.clone()), dir, shipped: false, of_project }
    };
    let advice = |other: CapabilityFolder, trusts_other: bool| {
        let catalog = Arc::new(Capabilities::load(&[other, place("pay", true, false)]));
        let check = move |folder: &Path, _: &Contents| {
            let refusal = (folder.ends_with("fmt") && !trusts_other)
                .then(|| BundleRefusal::Untrusted("not trusted".to_owned()));
            refusal.map_or(Ok(()), Err)
        };
        let artifacts = Arc::new(Artifacts::open(&folder.path().join("artifacts")).unwrap());
        let settings = BrokerSettings::default();
        let broker = Broker::new(Arc::clone(&catalog), settings, sandbox(), Arc::new(check), artifacts);
        let explanation =
            broker.explain(catalog.capability("pay.go").unwrap(), &Conformance::Standard.into());
        let obstacle = explanation.bindings[0].obstacle.clone().unwrap();
        assert!(obstacle.starts_with("service bank is not configured"), "{obstacle}");
        obstacle.split_once("https://").map(|(_, address)| address.split('.').next().unwrap().to_owned())
    };
    describe("fmt");
    assert_eq!(advice(place("fmt", true, false), false), None, "a bundle that was never trusted");
    assert_eq!(advice(place("fmt", false, true), false), None, "the registry of a repository");
    assert_eq!(advice(place("fmt", true, true), true).as_deref(), Some("fmt"), "trusted");
    assert_eq!(advice(place("fmt", false, false), false), None, "a registry folder that was never trusted");
    describe("pay");
    assert_eq!(advice(place("fmt", true, true), true).as_deref(), Some("pay"), "next to the binding");
}
