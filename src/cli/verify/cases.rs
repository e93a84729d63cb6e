//! Read-only calls, generated from the service's data: its first skill, its first capability, and invalid requests.

use serde_json::{Map, Value, json};

use super::probe::Probe;
use crate::failure::Failure;
use skills_api::operations::{Operation, operation};

pub struct Case {
    pub operation: &'static Operation,
    pub arguments: Map<String, Value>,
}

impl Case {
    /// Returns its description.
    pub fn name(&self) -> String {
        format!("{} {}", self.operation.name, Value::Object(self.arguments.clone()))
    }
}

pub async fn cases(probe: &Probe) -> Result<Vec<Case>, Failure> {
    let first = |name: &'static str, list: &'static str, key: &'static str| async move {
        let Some(operation_found) = operation(name) else { return Ok::<_, Failure>(None) };
        let few = if operation_found.takes("limit") { json!({ "limit": 1 }) } else { json!({}) };
        let answer = probe.http(operation_found, few.as_object().unwrap_or(&Map::new())).await?;
        let item = answer.ok().and_then(|answer| answer[list].get(0).cloned());
        Ok(item.and_then(|item| {
            if key.is_empty() {
                item.as_str().map(str::to_owned)
            } else {
                item[key].as_str().map(str::to_owned)
            }
        }))
    };
    let skill = first("skill.list", "skills", "skill_id").await?;
    let capability = first("capability.list", "capabilities", "").await?;
    let mut requested = vec![
        ("skill.list", json!({ "limit": 20 })),
        ("skill.list", json!({ "limit": 20, "role": "utility" })),
        ("skill.list", json!({ "limit": 0 })),
        ("skill.list", json!({ "role": "boss" })),
        ("skill.discover", json!({ "intent": "read a file and write a report" })),
        ("skill.discover", json!({ "intent": "read a file", "limit": 3, "policy": "strict" })),
        ("skill.discover", json!({ "intent": "watch a run", "role_filter": "sidecar" })),
        ("skill.discover", json!({ "intent": " " })),
        ("skill.discover", json!({ "intent": "a", "limit": 100_000 })),
        ("skill.discover", json!({ "intnt": "a" })),
        ("skill.describe", json!({ "skill_id": "no-such-skill" })),
        ("skill.governance.list", json!({ "limit": 20 })),
        ("skill.governance.list", json!({ "skill": "no-such-skill" })),
        ("skill.execute", json!({ "skill_id": "no-such-skill" })),
        ("skill.attach", json!({ "skill_id": "no-such-skill", "target_type": "run", "target_ref": "none" })),
        ("capability.list", json!({})),
        ("capability.explain", json!({ "capability_id": "no.such.capability" })),
        ("capability.execute", json!({ "capability_id": "no.such.capability" })),
        ("run.show", json!({ "run_id": "no-such-run" })),
        ("session.show", json!({ "session_id": "no-such-session" })),
        ("client.list", json!({})),
        ("client.view", json!({ "client": "no-such-client" })),
        ("agent.list", json!({})),
    ];
    if let Some(skill) = skill {
        requested.push(("skill.describe", json!({ "skill_id": skill })));
        requested.push(("skill.governance.list", json!({ "skill": skill })));
        requested.push(("skill.file", json!({ "skill_id": skill, "path": "../SKILL.md" })));
        requested.push(("skill.discover", json!({ "intent": skill })));
    }
    if let Some(capability) = capability {
        requested.push(("capability.explain", json!({ "capability_id": capability })));
    }
    Ok(requested
        .into_iter()
        .filter_map(|(name, arguments)| {
            let Value::Object(arguments) = arguments else { return None };
            Some(Case { operation: operation(name)?, arguments })
        })
        .collect())
}
