//! Bundles with faults of every kind, in addition to the fixtures.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use skills_skill::contract::{Endpoint, ServiceTarget};

use crate::runs_place::TestHome;

/// The fixtures and the faulty bundles; `mute` accepts connections and never responds.
pub fn place(mute: &TcpListener) -> TestHome {
    let mut place = TestHome::new();
    let said_no = "printf '{\"allowed\": false, \"reason\": \"two addresses\"}\\n'";
    step(&place, "guarded", "", "safety: {mandatory_pre_gates: [{capability: test.judge, on_fail: block}]}");
    script(&place, "guarded", "test.guarded", "printf '{}\\n'");
    gate(&place, "guarded", "test.judge", said_no);
    step(
        &place,
        "unjudged",
        "",
        "safety: {mandatory_pre_gates: [{capability: test.absent-judge, on_fail: block}]}",
    );
    script(&place, "unjudged", "test.unjudged", "printf '{}\\n'");
    gate(&place, "unjudged", "test.absent-judge", "exit 1");
    step(&place, "slow", "config: {timeout_seconds: 0.2}", "");
    script(&place, "slow", "test.slow", "sleep 60");
    for (name, url) in [
        ("mute", format!("http://{}", mute.local_addr().unwrap())),
        // No service listens at the port of the discard service (RFC 863).
        ("gone", "http://127.0.0.1:9".to_owned()),
    ] {
        step(&place, name, "", "");
        bind(
            &place,
            name,
            &format!("test.{name}"),
            &format!("service: {name}\nprotocol: openapi\noperation: POST /ask\n"),
        );
        let (reach, timeout) =
            (ServiceTarget::Http { url, headers: BTreeMap::new() }, Some(Duration::from_millis(200)));
        place.config.services.insert(name.to_owned(), Endpoint { reach, timeout });
    }
    // Each runs the next one.
    for depth in 0..12 {
        let uses =
            if depth == 11 { "test.slow".to_owned() } else { format!("'skill:test.deep-{}'", depth + 1) };
        skill(
            &place,
            &format!("skills/deep-{depth}"),
            &format!("deep-{depth}"),
            &format!("  - {{id: next, uses: {uses}}}\n"),
        );
    }
    // Outside the trusted directory.
    skill(&place, "elsewhere/stranger", "stranger", "  - {id: closed, wait_for_signal: never}\n");
    place.config.argument_roots.push(place.path("elsewhere"));
    place
}

/// A skill whose contract has these steps.
pub fn skill(place: &TestHome, folder: &str, name: &str, steps: &str) {
    let about = format!(
        "---\nname: {name}\ndescription: Comes to grief. Use in the tests of errors.\n---\n\n# {name}\n"
    );
    place.write(&format!("{folder}/SKILL.md"), &about);
    let contract = format!("id: test.{name}\nversion: 1.0.0\ndescription: Comes to grief.\nsteps:\n{steps}");
    place.write(&format!("{folder}/skill.yaml"), &contract);
}

/// A skill of one step, with the capability of that step.
fn step(place: &TestHome, name: &str, more: &str, safety: &str) {
    let comma = if more.is_empty() { "" } else { ", " };
    skill(
        place,
        &format!("skills/{name}"),
        name,
        &format!("  - {{id: try, uses: test.{name}{comma}{more}}}\n"),
    );
    let capability = format!(
        "id: test.{name}\nversion: 1.0.0\ndescription: Comes to grief.\ninputs: {{}}\noutputs: {{}}\n\
         properties: {{deterministic: true, side_effects: false, idempotent: true}}\n{safety}\n"
    );
    place.write(&format!("skills/{name}/capabilities/it.yaml"), &capability);
}

fn gate(place: &TestHome, name: &str, capability: &str, body: &str) {
    let text = format!(
        "id: {capability}\nversion: 1.0.0\ndescription: Judges.\ninputs: {{}}\n\
         outputs: {{allowed: {{type: boolean, required: true}}, reason: {{type: string}}}}\n\
         properties: {{deterministic: true, side_effects: false, idempotent: true}}\n"
    );
    place.write(&format!("skills/{name}/capabilities/judge.yaml"), &text);
    script(place, name, capability, body);
}

fn script(place: &TestHome, name: &str, capability: &str, body: &str) {
    place.write(&format!("skills/{name}/scripts/{capability}.sh"), &format!("#!/usr/bin/env bash\n{body}\n"));
    let carried = format!("service: bundle\nprotocol: script\noperation: scripts/{capability}.sh\n");
    bind(place, name, capability, &carried);
}

fn bind(place: &TestHome, name: &str, capability: &str, carried: &str) {
    let id = capability.replace('.', "-");
    let text =
        format!("id: {id}\ncapability: {capability}\n{carried}metadata: {{conformance_profile: standard}}\n");
    place.write(&format!("skills/{name}/bindings/{id}.yaml"), &text);
}
