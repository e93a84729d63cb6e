//! The control request of a sidecar for the run it watches: none, cancel, pause, or a signal.

use serde_json::Value;

use skills_model::Command;

/// The value of the output `control` of a skill whose effect is `control_signal`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ControlRequest {
    /// Let the run continue.
    None,
    Cancel,
    /// Pause it until a person resumes it.
    Pause,
    Signal {
        name: String,
        payload: Value,
    },
}

impl ControlRequest {
    /// Parses a request: `none`, `cancel`, `pause`, `signal(name)`, `signal(name, JSON)`, or `{"signal": {"name": …,
    /// "payload": …}}`.
    ///
    /// # Errors
    /// Returns a message for anything else.
    pub(super) fn read(value: &Value) -> Result<Self, String> {
        let wrong = || {
            format!(
                "invalid control {value}; expected none, cancel, pause or signal(name, \
            payload)"
            )
        };
        match value {
            Value::Null => Ok(Self::None),
            Value::String(word) => word_of(word.trim()).ok_or_else(wrong),
            Value::Object(fields) => {
                let signal = fields.get("signal").ok_or_else(wrong)?;
                match signal {
                    Value::String(name) => {
                        let payload = fields.get("payload").cloned().unwrap_or_default();
                        Ok(Self::Signal { name: name.clone(), payload })
                    }
                    Value::Object(inner) => {
                        let name = inner.get("name").and_then(Value::as_str).ok_or_else(wrong)?;
                        let payload = inner.get("payload").cloned().unwrap_or_default();
                        Ok(Self::Signal { name: name.to_owned(), payload })
                    }
                    _ => Err(wrong()),
                }
            }
            _ => Err(wrong()),
        }
    }

    /// Returns the command for the watched run, with a signal's payload; `None` if there is nothing to do.
    pub(super) fn command(&self) -> Option<(Command, Option<Value>)> {
        match self {
            Self::None => None,
            Self::Cancel => Some((Command::Cancel, None)),
            Self::Pause => Some((Command::Pause, None)),
            Self::Signal { name, payload } => {
                Some((Command::Signal { name: name.clone() }, Some(payload.clone())))
            }
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Cancel => "cancel".to_owned(),
            Self::Pause => "pause".to_owned(),
            Self::Signal { name, .. } => format!("signal {name}"),
        }
    }
}

fn word_of(word: &str) -> Option<ControlRequest> {
    match word {
        "none" | "" => return Some(ControlRequest::None),
        "cancel" => return Some(ControlRequest::Cancel),
        "pause" => return Some(ControlRequest::Pause),
        _ => {}
    }
    let inside = word.strip_prefix("signal(")?.strip_suffix(')')?;
    let (name, payload) = inside.split_once(',').unwrap_or((inside, "null"));
    let name = name.trim().trim_matches('"');
    let payload = serde_json::from_str(payload.trim()).ok()?;
    (!name.is_empty()).then(|| ControlRequest::Signal { name: name.to_owned(), payload })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_spelling_of_a_control_request_is_parsed() {
        let signal = |payload: Value| Ok(ControlRequest::Signal { name: "stop".to_owned(), payload });
        assert_eq!(ControlRequest::read(&json!("cancel")), Ok(ControlRequest::Cancel));
        assert_eq!(ControlRequest::read(&json!(null)), Ok(ControlRequest::None));
        assert_eq!(ControlRequest::read(&json!("pause")), Ok(ControlRequest::Pause));
        assert_eq!(ControlRequest::read(&json!("signal(stop)")), signal(Value::Null));
        assert_eq!(
            ControlRequest::read(&json!("signal(stop, {\"a\": [1, 2]})")),
            signal(json!({ "a": [1, 2] }))
        );
        assert_eq!(
            ControlRequest::read(&json!({ "signal": { "name": "stop", "payload": 3 } })),
            signal(json!(3))
        );
        assert_eq!(ControlRequest::read(&json!({ "signal": "stop", "payload": 3 })), signal(json!(3)));
        for wrong in
            [json!("halt"), json!(3), json!({ "cancel": true }), json!("signal()"), json!("signal(a, {)")]
        {
            assert!(ControlRequest::read(&wrong).unwrap_err().contains("expected none"), "{wrong}");
        }
    }

    #[test]
    fn control_request_becomes_a_command() {
        assert_eq!(ControlRequest::Pause.command(), Some((Command::Pause, None)));
        assert_eq!(ControlRequest::Cancel.command(), Some((Command::Cancel, None)));
        assert_eq!(ControlRequest::None.command(), None);
    }
}
