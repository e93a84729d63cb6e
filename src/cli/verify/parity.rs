//! Checks that a service returns the same results as this program, over the same skills.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::adapters::compared;
use super::cases::cases;
use super::check::{Check, missing_scope};
use super::probe::{Probe, ProbeResponse};
use crate::Context;
use crate::failure::Failure;
use skills_api::operations::{Caller, Principal, Scope, Service, operation};
use skills_api::{CoreParts, ErrorBody};

/// What to do if the service returns different results.
const ADVICE: &str = "the service may use other roots, another config.yaml or newer skills: use the same \
    --root and configuration here, and compare `skills doctor` on both sides";

pub async fn checks(cx: &mut Context, probe: &Probe) -> Result<Vec<Check>, Failure> {
    probe.admitted().await?;
    let local = Arc::new(cx.open_local(CoreParts::Index).await?);
    let service = Service { core: Arc::clone(&local) as _, sessions: local };
    let caller = Caller::anyone();
    // A service withholds data from some keys: compare with the results for a caller with the same permissions.
    let scopes = BTreeSet::from([Scope::Read, Scope::Run, Scope::Decide]);
    let outsider =
        Caller { principal: Some(Principal { name: "verify".to_owned(), scopes }), ..Caller::anyone() };
    let mut checks = vec![version(probe).await?];
    for case in cases(probe).await? {
        let there = probe.http(case.operation, &case.arguments).await?;
        if let Some(scope) = there.as_ref().err().and_then(missing_scope) {
            checks.push(Check::forbidden(case.name(), scope));
            continue;
        }
        let placed = there.as_ref().map_or(true, |response| !is_without_places(response));
        let caller = if placed { &caller } else { &outsider };
        if !placed {
            let name = format!("{} (bindings and services)", case.name());
            checks.push(Check::forbidden(name, &Scope::Admin.to_string()));
        }
        let here = case.operation.call(&service, caller, Value::Object(case.arguments.clone())).await;
        let here = here.map_err(|error| {
            serde_json::to_value(ErrorBody::from(&error))
                .map(|mut body| body["error"].take())
                .unwrap_or_default()
        });
        let judges = case.operation.name == "skill.governance.list";
        let name = if judges { format!("{} (which skills)", case.name()) } else { case.name() };
        let common = |response: ProbeResponse| if judges { response.map(skills_alone) } else { response };
        let (here, there) = (common(here), common(there));
        checks.push(compared(name, ("this program", &here), ("the service", &there)).or(ADVICE));
    }
    Ok(checks)
}

/// Returns whether protocols and addresses of bindings were withheld: every binding has a protocol.
fn is_without_places(response: &Value) -> bool {
    let bindings = response["explanation"]["bindings"].as_array();
    bindings.is_some_and(|all| !all.is_empty() && all.iter().all(|binding| binding["protocol"] == ""))
}

async fn version(probe: &Probe) -> Result<Check, Failure> {
    let ours = env!("CARGO_PKG_VERSION");
    let response = match operation("runtime.health") {
        Some(health) => probe.http(health, &Map::new()).await?,
        None => Err(Value::Null),
    };
    let theirs = response
        .ok()
        .and_then(|response| response["version"].as_str().map(str::to_owned))
        .unwrap_or_default();
    let note =
        if theirs == ours { String::new() } else { format!("service: {theirs}, this program: {ours}") };
    let check = Check::new("the service has the same version", note.is_empty(), note);
    Ok(check.or("run this check with the version of the service"))
}

/// Reduces a list to skill ids: states count the runs of each side's own store, and the trust of its user.
fn skills_alone(mut list: Value) -> Value {
    for skill in list["skills"].as_array_mut().into_iter().flatten() {
        *skill = skill["skill_id"].take();
    }
    list
}
