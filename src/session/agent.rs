//! Agent definitions (`agents/*.yaml`): a prompt, the skills that are always part of it, inline instructions.

use serde::{Deserialize, Serialize};

/// Name of a call without an agent, which no agent can have.
pub const ORCHESTRATOR: &str = "orchestrator";

/// Maximum number of skills of an agent: each is looked up in every catalog.
const MAX_SKILLS: usize = 1_000;

/// Limits of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentLimits {
    /// Maximum number of turns.
    pub max_turns: Option<u32>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// Id of the agent in commands.
    pub id: String,
    /// Description for users.
    pub description: Option<String>,
    /// The beginning of its instructions.
    pub prompt: String,
    /// Skills whose bodies are always part of its instructions, in this order; others are not available to
    /// it.
    pub uses_skills: Vec<String>,
    /// The end of its instructions.
    pub instructions: String,
    /// Tools it may call in addition to those of skills.
    pub uses_tools: Vec<String>,
    /// Agents that must complete before it.
    pub depends_on: Vec<String>,
    /// The model that it requests.
    pub model: Option<String>,
    /// How a host integrates it, in the host's terms.
    pub integration_mode: Option<String>,
    /// Limits.
    pub limits: AgentLimits,
}

impl Agent {
    /// Returns whether its catalog is limited to its own skills.
    pub fn scoped(&self) -> bool {
        !self.uses_skills.is_empty()
    }
}

/// Returns the components of a call, in order, as text; without an agent those of the orchestrator, which sees every
/// skill.
pub fn call_order(agent: Option<&Agent>) -> Vec<String> {
    let of = |text: fn(&Agent) -> &str| agent.is_some_and(|agent| !text(agent).trim().is_empty());
    let own = agent.map_or(&[][..], |agent| agent.uses_skills.as_slice());
    let mut parts = Vec::new();
    if of(|agent| &agent.prompt) {
        parts.push("its prompt".to_owned());
    }
    parts.push("the rules for using skills".to_owned());
    parts.push(match own {
        [] => "the catalog of all skills".to_owned(),
        own => format!("the catalog of its own skills: {}", own.join(", ")),
    });
    parts.extend(own.iter().map(|name| format!("the body of {name}, always")));
    // An agent with its own skills loads no others, and those are already included.
    if own.is_empty() {
        parts.push("the bodies of loaded skills, in load order".to_owned());
    }
    if of(|agent| &agent.instructions) {
        parts.push("its inline instructions".to_owned());
    }
    parts
}

/// Parses an agent definition.
///
/// # Errors
/// Returns a message with the line, for a file that is not such a mapping, an unknown key, or an empty id.
pub fn parse_agent(source: &str) -> Result<Agent, String> {
    let agent: Agent = serde_saphyr::from_str(source).map_err(|error| error.to_string())?;
    if agent.id.trim().is_empty() {
        return Err("`id` is missing; give the agent an id".to_owned());
    }
    if agent.id.trim().eq_ignore_ascii_case(ORCHESTRATOR) {
        return Err(format!("`id` is {ORCHESTRATOR}, the name of calls without an agent; choose another id"));
    }
    if agent.uses_skills.len() > MAX_SKILLS {
        return Err(format!(
            "`uses_skills` lists {} skills; the maximum is {MAX_SKILLS}",
            agent.uses_skills.len()
        ));
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = agent.uses_skills.iter().find(|skill| !seen.insert(skill.as_str())) {
        return Err(format!("`uses_skills` lists {twice} twice"));
    }
    Ok(agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_is_parsed_and_its_errors_are_reported() {
        let agent = parse_agent(
            "id: auditor\nprompt: You audit.\nuses_skills: [csv-profile]\ninstructions: Be brief.\nlimits: {max_turns: 4}\n",
        )
        .unwrap();
        assert!(agent.scoped());
        assert_eq!(agent.limits.max_turns, Some(4));
        let skills: Vec<String> = (0..1_001).map(|n| format!("s{n}")).collect();
        let many = format!("id: a\nuses_skills: [{}]\n", skills.join(", "));
        for (source, word) in [
            (many.as_str(), "maximum"),
            ("prompt: x\n", "`id`"),
            ("id: a\nuses_skill: [x]\n", "uses_skill"),
            ("id: Orchestrator\n", "another id"),
            ("id: a\nuses_skills: [x, x]\n", "twice"),
        ] {
            let error = parse_agent(source).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_call_is_described_in_composition_order() {
        let agent = Agent {
            prompt: "You audit.".into(),
            uses_skills: vec!["csv".into(), "pdf".into()],
            instructions: "Be brief.".into(),
            ..Agent::default()
        };
        let order = call_order(Some(&agent));
        let at = |what: &str| order.iter().position(|part| part.contains(what)).unwrap();
        assert!(at("prompt") < at("catalog") && at("catalog") < at("body of csv"), "{order:?}");
        assert!(at("body of csv") < at("body of pdf") && at("body of pdf") < at("inline"), "{order:?}");
        assert!(call_order(None).iter().any(|part| part.contains("all skills")));
    }
}
