//! Whether a service answers as this program does by itself, over the same skills.

use serde_json::Value;

use super::Check;
use super::adapters::parted;
use super::cases::cases;
use super::probe::Probe;
use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::gateway::operations::{Caller, Service};
use crate::gateway::{ErrorBody, Needs};
use std::sync::Arc;

pub async fn checks(cx: &mut Context, probe: &Probe) -> Result<Vec<Check>, Failure> {
    let local = Arc::new(cx.open(Needs::Index).await?);
    let service = Service { core: Arc::clone(&local) as _, sessions: local };
    let caller = Caller::anyone();
    let mut checks = Vec::new();
    for case in cases(probe).await? {
        let there = probe.http(case.operation, &case.arguments).await?;
        let here = case.operation.call(&service, &caller, Value::Object(case.arguments.clone())).await;
        let here = here.map_err(|error| {
            serde_json::to_value(ErrorBody::from(&error))
                .map(|mut body| body["error"].take())
                .unwrap_or_default()
        });
        checks.push(Check::against(case.name(), parted("this program", &here, "the service", &there)));
    }
    Ok(checks)
}
