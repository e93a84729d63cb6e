//! Agent definitions (`agents/*.yaml`): a prompt, the skills that are always part of it, inline instructions.

use serde::{Deserialize, Serialize};

/// Bounds on an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentLimits {
    /// Turns at most.
    pub max_turns: Option<u32>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// What commands call it.
    pub id: String,
    /// For people.
    pub description: Option<String>,
    /// What it is told first.
    pub prompt: String,
    /// Skills whose bodies are always part of its instructions, in this order; it sees no others.
    pub uses_skills: Vec<String>,
    /// What it is told last.
    pub instructions: String,
    /// Tools it may call beside those of skills.
    pub uses_tools: Vec<String>,
    /// Agents that have to be through before it.
    pub depends_on: Vec<String>,
    /// The model it wants.
    pub model: Option<String>,
    /// How a host wires it in; the host's word.
    pub integration_mode: Option<String>,
    /// Bounds.
    pub limits: AgentLimits,
}

impl Agent {
    /// Whether its catalogue is limited to its own skills.
    #[must_use]
    pub fn scoped(&self) -> bool {
        !self.uses_skills.is_empty()
    }
}

/// Reads an agent definition.
///
/// # Errors
/// A sentence with the line, for a file that is no such mapping, an unknown key, or an empty id.
pub fn parse_agent(source: &str) -> Result<Agent, String> {
    let agent: Agent = serde_saphyr::from_str(source).map_err(|error| error.to_string())?;
    if agent.id.trim().is_empty() {
        return Err("`id` is absent: give the agent a name to call it by".to_owned());
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = agent.uses_skills.iter().find(|skill| !seen.insert(skill.as_str())) {
        return Err(format!("`uses_skills` names {twice} twice"));
    }
    Ok(agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_read_and_what_is_wrong_with_one_is_said() {
        let agent = parse_agent(
            "id: auditor\nprompt: You audit.\nuses_skills: [csv-profile]\ninstructions: Be brief.\nlimits: {max_turns: 4}\n",
        )
        .unwrap();
        assert!(agent.scoped());
        assert_eq!(agent.limits.max_turns, Some(4));
        for (source, word) in [
            ("prompt: x\n", "`id`"),
            ("id: a\nuses_skill: [x]\n", "uses_skill"),
            ("id: a\nuses_skills: [x, x]\n", "twice"),
        ] {
            let error = parse_agent(source).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
