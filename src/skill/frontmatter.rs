//! The typed frontmatter: one table of fields generates the reader, the list of known keys and the published JSON
//! schema, so that they cannot diverge.
//!
//! Fields of the open specification (<https://agentskills.io/specification>), of Claude Code
//! (<https://code.claude.com/docs/en/skills>), and this reader's own additive ones.

use schemars::JsonSchema;
use serde_json::Value;

use super::lenient::{Lenient, Reader, Targets, Tools, Words};
use super::yaml::Node;
use super::{AttachTarget, EffectMode, Invocation, Kind, Role, Status};

/// How a list is written: as a YAML list, or as one text.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum TextOrList {
    Text(String),
    List(Vec<String>),
}

/// How targets are written.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum TargetOrList {
    One(AttachTarget),
    List(Vec<AttachTarget>),
}

macro_rules! form {
    ($(#[$meta:meta])* $name:ident under $prefix:literal {
        $($(#[$field_meta:meta])* $field:ident: $kind:ty = $key:literal),+ $(,)?
    }) => {
        #[derive(Debug, Clone, PartialEq, Default, JsonSchema)]
        $(#[$meta])*
        pub struct $name {
            $($(#[$field_meta])* #[schemars(rename = $key)] pub $field: Option<$kind>),+
        }

        impl $name {
            /// The keys in the order of the table.
            #[cfg_attr(not(test), allow(dead_code, reason = "only tests ask for the inner forms' keys"))]
            pub const KEYS: &[&str] = &[$($key),+];

            /// Reads the fields from a mapping.
            pub(super) fn read(reader: &mut Reader<'_, '_>, node: &Node) -> Self {
                Self {
                    $($field: node.get($key).and_then(|entry| {
                        Lenient::read(reader, concat!($prefix, $key), &entry.value)
                    })),+
                }
            }
        }
    };
}

form! {
    /// Frontmatter of a `SKILL.md`: the YAML mapping between its `---` fences.
    #[schemars(title = "Frontmatter of an Agent Skill")]
    Frontmatter under "" {
        /// Name of the skill and its folder: 1 to 64 lowercase letters, digits and single hyphens.
        #[schemars(required, length(min = 1, max = 64), regex(pattern = "^[a-z0-9]+(-[a-z0-9]+)*$"))]
        name: String = "name",
        /// What the skill does and when to use it: the text by which a model selects the skill.
        #[schemars(required, length(min = 1, max = 1024))]
        description: String = "description",
        /// SPDX expression, or the name of a license file in the bundle.
        license: String = "license",
        /// Environment requirements.
        #[schemars(length(min = 1, max = 500))]
        compatibility: String = "compatibility",
        /// Tools that may be used without asking while the skill is active.
        #[schemars(with = "Option<TextOrList>")]
        allowed_tools: Tools = "allowed-tools",
        /// Custom data of the author or a client. Unknown keys are kept.
        #[schemars(with = "Option<Metadata>")]
        metadata: Value = "metadata",

        /// Facts to read, or a tool to operate.
        kind: Kind = "kind",
        /// `stable`, `experimental`, `deprecated`, or another value.
        #[schemars(with = "Option<String>")]
        status: Status = "status",
        /// Subject area.
        domain: String = "domain",
        /// Search terms.
        #[schemars(with = "Option<TextOrList>")]
        tags: Words = "tags",
        /// Ids of related skills; nothing is loaded automatically.
        #[schemars(with = "Option<TextOrList>")]
        requires: Words = "requires",
        /// Inputs, as text or as a mapping of names.
        inputs: Value = "inputs",
        /// Outputs, as text or as a mapping of names.
        outputs: Value = "outputs",
        /// Version of the skill.
        version: String = "version",

        /// Claude Code: when to use the skill, appended to the description in its catalog.
        when_to_use: String = "when_to_use",
        /// Claude Code: the model must not invoke it.
        disable_model_invocation: bool = "disable-model-invocation",
        /// Claude Code: whether it is offered as a slash command.
        user_invocable: bool = "user-invocable",
        /// Claude Code: hint after the slash command.
        argument_hint: String = "argument-hint",
        /// Claude Code: names of the command's arguments.
        #[schemars(with = "Option<TextOrList>")]
        arguments: Words = "arguments",
        /// Claude Code: `fork` runs it in a separate context.
        context: String = "context",
        /// Claude Code: which agent runs a forked context.
        agent: String = "agent",
        /// Claude Code: model while the skill is active.
        model: String = "model",
        /// Claude Code: effort while the skill is active.
        effort: String = "effort",
        /// Claude Code: which shell runs the body's command expansions.
        shell: String = "shell",
        /// Claude Code: commands that run on events while the skill is active.
        hooks: Value = "hooks",
        /// Claude Code: globs of files for which the skill is offered.
        #[schemars(with = "Option<TextOrList>")]
        paths: Words = "paths",
    }
}

form! {
    /// Known keys of `metadata`; others are kept.
    Metadata under "metadata." {
        /// Classification of the skill.
        #[schemars(with = "Option<ClassificationForm>")]
        classification: Value = "classification",
        /// Facts to read, or a tool to operate.
        kind: Kind = "kind",
        /// `stable`, `experimental`, `deprecated`, or another value.
        #[schemars(with = "Option<String>")]
        status: Status = "status",
        /// Subject area.
        domain: String = "domain",
        /// Search terms.
        #[schemars(with = "Option<TextOrList>")]
        tags: Words = "tags",
        /// Ids of related skills.
        #[schemars(with = "Option<TextOrList>")]
        requires: Words = "requires",
    }
}

form! {
    /// Classification of a skill. Defaults: procedure, direct, enrich.
    #[schemars(rename = "Classification")]
    ClassificationForm under "metadata.classification." {
        /// Role of the skill.
        role: Role = "role",
        /// Invocation. A sidecar is never `direct`.
        invocation: Invocation = "invocation",
        /// Valid targets; required for `attach` and `both`, not allowed for `direct`.
        #[schemars(with = "Option<TargetOrList>")]
        attach_targets: Targets = "attach_targets",
        /// Effects on its environment.
        effect_mode: EffectMode = "effect_mode",
    }
}

/// Returns the JSON schema of the frontmatter, generated from the types above.
pub fn schema() -> Value {
    schemars::schema_for!(Frontmatter).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_every_key_that_is_read() {
        let schema = schema();
        let forms = [
            (&schema, Frontmatter::KEYS),
            (&schema["$defs"]["Metadata"], Metadata::KEYS),
            (&schema["$defs"]["Classification"], ClassificationForm::KEYS),
        ];
        for (form, keys) in forms {
            let properties = form["properties"].as_object().unwrap();
            assert_eq!(properties.len(), keys.len());
            assert!(keys.iter().all(|key| properties.contains_key(*key)));
        }
        assert_eq!(schema["required"], serde_json::json!(["name", "description"]));
    }
}
