//! A field of a form: its declaration, the user's input, and the value parsed from it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use serde_json::Value;

use super::read::{read, type_name, typed};
use super::text::Text;
use crate::widgets::shown;
use skills_skill::contract::{Field, FieldType};

#[derive(Debug, Clone)]
pub(super) enum Control {
    Text(Text),
    /// A choice of several values; `taken` is `None` while the default applies.
    Choice {
        /// The values, with their labels.
        choices: Vec<(Value, String)>,
        /// Index of the chosen value.
        taken: Option<usize>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Meaning {
    /// No value, and none is required.
    Absent,
    /// A valid value.
    Value(Value),
    /// A required value is missing.
    Missing,
    /// The input is invalid, with the reason.
    Wrong(String),
}

/// A field of a form.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub name: String,
    pub label: String,
    pub field: Field,
    pub control: Control,
    /// Whether the user has visited the field: until then it is not reported as missing.
    pub left: bool,
    /// A finding of the core about the value, until the value changes.
    pub remark: Option<String>,
    /// The initial value.
    pub before: Option<Value>,
    /// Last drawn areas of the field and of each choice.
    pub drawn: Rect,
    pub drawn_choices: Vec<(Rect, usize)>,
}

impl Entry {
    pub fn new(name: &str, field: &Field, value: Option<Value>) -> Self {
        let choices: Vec<Value> = if !field.allowed.is_empty() {
            field.allowed.clone()
        } else if field.kind == FieldType::Boolean {
            vec![Value::Bool(true), Value::Bool(false)]
        } else {
            Vec::new()
        };
        let control = if choices.is_empty() {
            let text = value.as_ref().map_or_else(String::new, |value| typed(field.kind, value));
            Control::Text(Text::new(&text))
        } else {
            let taken = value.as_ref().and_then(|value| choices.iter().position(|choice| choice == value));
            let choices = choices.into_iter().map(|choice| (choice.clone(), choice_label(&choice))).collect();
            Control::Choice { choices, taken }
        };
        Self {
            name: name.to_owned(),
            label: shown(name),
            field: field.clone(),
            control,
            left: false,
            remark: None,
            before: value,
            drawn: Rect::ZERO,
            drawn_choices: Vec::new(),
        }
    }

    /// Sets the value as if it were typed.
    pub fn set(&mut self, value: &Value) {
        match &mut self.control {
            Control::Text(text) => text.set(&typed(self.field.kind, value)),
            Control::Choice { choices, taken } => {
                *taken = choices.iter().position(|(choice, _)| choice == value);
            }
        }
    }

    /// Returns the user's input, as typed or chosen; `None` if nothing was changed.
    pub fn typed(&self) -> Option<Value> {
        let input = match &self.control {
            Control::Text(text) => Value::from(text.text()),
            Control::Choice { choices, taken } => {
                taken.and_then(|at| choices.get(at)).map_or(Value::Null, |(value, _)| value.clone())
            }
        };
        self.changed().then_some(input)
    }

    /// Restores what [`Self::typed`] returned.
    pub fn retype(&mut self, typed_value: &Value) {
        match (&mut self.control, typed_value) {
            (Control::Text(text), Value::String(typed)) => text.set(typed),
            (Control::Text(_), _) => {}
            (Control::Choice { .. }, value) => self.set(value),
        }
    }

    /// Copies the default into an empty field for editing; returns whether there was one.
    pub fn take_default(&mut self) -> bool {
        match (&mut self.control, &self.field.default) {
            (Control::Text(text), Some(default)) if text.is_empty() => {
                text.set(&typed(self.field.kind, default));
                !text.is_empty()
            }
            _ => false,
        }
    }

    pub fn meaning(&self) -> Meaning {
        let input = match &self.control {
            Control::Text(text) if text.text().trim().is_empty() => None,
            Control::Text(text) => Some(read(self.field.kind, text.text())),
            Control::Choice { choices, taken } => {
                taken.and_then(|at| choices.get(at)).map(|(value, _)| Ok(value.clone()))
            }
        };
        match input {
            Some(Ok(value)) => Meaning::Value(value),
            Some(Err(why)) => Meaning::Wrong(why),
            None if self.field.required && self.field.default.is_none() => Meaning::Missing,
            None => Meaning::Absent,
        }
    }

    /// Returns the problem to show now; with `checked`, a missing value is always a problem.
    pub fn problem(&self, checked: bool) -> Option<String> {
        match self.meaning() {
            Meaning::Wrong(why) => Some(why),
            Meaning::Missing if checked || self.left => Some("is required".to_owned()),
            _ => self.remark.clone(),
        }
    }

    /// Returns the default as shown in an empty field.
    pub fn default_text(&self) -> String {
        match &self.field.default {
            Some(default) => shown(&typed(self.field.kind, default)),
            None if self.field.required => String::new(),
            None => "optional".to_owned(),
        }
    }

    /// Returns the index of the choice that applies while none is chosen.
    pub fn default_choice(&self) -> Option<usize> {
        let Control::Choice { choices, .. } = &self.control else { return None };
        let default = self.field.default.as_ref()?;
        choices.iter().position(|(value, _)| value == default)
    }

    /// Returns the text at the right end: the type, as parsed.
    pub fn tag(&self, meaning: &Meaning) -> String {
        let read = match meaning {
            Meaning::Value(value) => Some(value),
            _ => None,
        };
        let name = match &self.control {
            Control::Choice { choices, .. } if self.field.kind != FieldType::Boolean => {
                format!("one of {}", choices.len())
            }
            _ => type_name(self.field.kind, read),
        };
        match (&self.control, &self.field.default) {
            (Control::Choice { .. }, Some(_)) if *meaning == Meaning::Absent => "default".to_owned(),
            (_, Some(_)) if *meaning == Meaning::Absent => format!("{name}, default"),
            _ => name,
        }
    }

    pub fn changed(&self) -> bool {
        match self.meaning() {
            Meaning::Value(value) => self.before.as_ref() != Some(&value),
            Meaning::Absent | Meaning::Missing => self.before.is_some(),
            Meaning::Wrong(_) => true,
        }
    }

    /// Handles a key; returns whether the value may have changed.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        if moves_forward(key) && self.take_default() {
            return true;
        }
        let changed = match &mut self.control {
            Control::Text(text) => text.key(key),
            Control::Choice { choices, taken } => {
                let from = taken.or(self
                    .field
                    .default
                    .as_ref()
                    .and_then(|default| choices.iter().position(|(value, _)| value == default)));
                let to = choose(choices, from, key);
                let next = if erases(key) { None } else { to.or(*taken) };
                std::mem::replace(taken, next) != next
            }
        };
        self.touched(changed)
    }

    pub fn paste(&mut self, pasted: &str) -> bool {
        let changed = match &mut self.control {
            Control::Text(text) => {
                let one = matches!(self.field.kind, FieldType::Number | FieldType::Integer);
                text.insert(if one { pasted.trim() } else { pasted.trim_end_matches(['\r', '\n']) })
            }
            Control::Choice { choices, taken } => {
                let found = choices.iter().position(|(_, label)| label.eq_ignore_ascii_case(pasted.trim()));
                found.is_some() && std::mem::replace(taken, found) != found
            }
        };
        self.touched(changed)
    }

    /// Deletes the text before the cursor, or resets the choice.
    pub fn clear(&mut self) -> bool {
        let changed = match &mut self.control {
            Control::Text(text) => text.kill_to_start(),
            Control::Choice { taken, .. } => taken.take().is_some(),
        };
        self.touched(changed)
    }

    pub fn click(&mut self, at: Position) -> bool {
        let choice = self.drawn_choices.iter().find(|(area, _)| area.contains(at)).map(|(_, choice)| *choice);
        let changed = match &mut self.control {
            Control::Text(text) => {
                text.click(at);
                false
            }
            Control::Choice { taken, .. } => choice.is_some() && std::mem::replace(taken, choice) != choice,
        };
        self.touched(changed)
    }

    fn touched(&mut self, changed: bool) -> bool {
        if changed {
            self.remark = None;
        }
        changed
    }
}

fn choice_label(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => shown(text),
        other => shown(&other.to_string()),
    }
}

/// Returns whether a key moves forward: in an empty field that takes the default.
fn moves_forward(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Right | KeyCode::End)
        || control && matches!(key.code, KeyCode::Char('e' | 'f'))
}

fn erases(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Backspace | KeyCode::Delete)
        || control && matches!(key.code, KeyCode::Char('h' | 'w' | 'k'))
}

/// Returns the choice that a key selects: arrows and Space cycle, a letter selects the next choice that begins with it.
fn choose(choices: &[(Value, String)], from: Option<usize>, key: KeyEvent) -> Option<usize> {
    let count = choices.len();
    let is_unmodified = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    let next = || from.map_or(0, |at| (at + 1) % count);
    match key.code {
        KeyCode::Right | KeyCode::Char(' ') if is_unmodified => Some(next()),
        KeyCode::Left if is_unmodified => Some(from.map_or(count - 1, |at| (at + count - 1) % count)),
        KeyCode::Home => Some(0),
        KeyCode::End => Some(count - 1),
        KeyCode::Char(letter) if is_unmodified => {
            let letter = letter.to_lowercase().to_string();
            let start = from.map_or(0, |at| at + 1);
            (start..start + count)
                .map(|at| at % count)
                .find(|at| choices[*at].1.to_lowercase().starts_with(&letter))
        }
        _ => None,
    }
}
