//! The script of a demonstration: steps, each with a caption for the audience and its keys.

use serde::Deserialize;

/// A complete script.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    pub title: String,
    /// The steps, one presenter's key each.
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The caption, in one line.
    pub say: String,
    #[serde(default, rename = "do")]
    pub inputs: Vec<Input>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Input {
    /// A key by name, as in the keymap (`"2"`, `enter`, `ctrl-s`).
    Key(String),
    /// Text, typed character by character.
    Type {
        /// The text.
        r#type: String,
    },
    /// Wait until this text is on the screen.
    Until { until: String },
}

impl Script {
    /// Parses a script.
    ///
    /// # Errors
    /// Returns a message with the line if the text is not valid YAML of this form, has no steps, or names an unknown
    /// key.
    pub fn parse(source: &str) -> Result<Self, String> {
        let script: Self =
            serde_saphyr::from_str(source).map_err(|error| skills_skill::yaml_message(&error))?;
        if script.steps.is_empty() {
            return Err("`steps` is empty: a script needs at least one step".to_owned());
        }
        for (step, at) in script.steps.iter().zip(1..) {
            for input in &step.inputs {
                if let Input::Key(name) = input {
                    crate::keymap::parse_key(name).map_err(|error| format!("step {at}: {error}"))?;
                }
            }
        }
        Ok(script)
    }
}

/// Returns the shipped script.
///
/// # Errors
/// Returns an error under the conditions of [`Script::parse`]; a test parses the script.
pub fn shipped() -> Result<Script, String> {
    Script::parse(include_str!("../../../assets/demo.yaml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_script_is_valid_and_its_sentences_fit() {
        let script = shipped().unwrap();
        assert!(script.steps.len() >= 8, "{}", script.steps.len());
        for step in &script.steps {
            // The space that 80 columns leave next to the step's number.
            assert!(step.say.chars().count() <= 70, "{} characters: {}", step.say.chars().count(), step.say);
        }
    }

    #[test]
    fn script_errors_are_reported() {
        for (source, word) in [
            ("title: x\nsteps: []\n", "empty"),
            ("title: x\nsteps:\n- say: a\n  do: [entre]\n", "entre"),
            ("title: x\nsteps:\n- say: a\n  does: [enter]\n", "does"),
        ] {
            let error = Script::parse(source).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
