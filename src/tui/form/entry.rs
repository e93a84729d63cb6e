//! One field of a form: what is declared, what a person gave, and what that means.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use serde_json::Value;

use super::read::{read, type_name, typed};
use super::text::Text;
use crate::widgets::text_width::shown;
use skills_skill::contract::{Field, FieldType};

/// How a value is given.
#[derive(Debug, Clone)]
pub(super) enum Control {
    /// Typed.
    Text(Text),
    /// One of several; none is taken while the default holds.
    Choice {
        /// What can be chosen, with its label.
        choices: Vec<(Value, String)>,
        /// Which one is.
        taken: Option<usize>,
    },
}

/// What a field means now.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Meaning {
    /// Nothing was given, and nothing has to be.
    Absent,
    /// This.
    Value(Value),
    /// It has to be given.
    Missing,
    /// What was given is none, because.
    Wrong(String),
}

/// One field.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub name: String,
    pub label: String,
    pub field: Field,
    pub control: Control,
    /// Whether the user visited the field: before that it is not reported as missing.
    pub left: bool,
    /// A finding of the core about the value, until it changes.
    pub remark: Option<String>,
    /// The value it was opened with.
    pub before: Option<Value>,
    /// Where it was drawn last, and each choice.
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

    /// Gives it a value, as if it were typed.
    pub fn set(&mut self, value: &Value) {
        match &mut self.control {
            Control::Text(text) => text.set(&typed(self.field.kind, value)),
            Control::Choice { choices, taken } => {
                *taken = choices.iter().position(|(choice, _)| choice == value);
            }
        }
    }

    /// What a person changed, as it was typed or chosen; none where nothing was.
    pub fn typed(&self) -> Option<Value> {
        let given = match &self.control {
            Control::Text(text) => Value::from(text.text()),
            Control::Choice { choices, taken } => {
                taken.and_then(|at| choices.get(at)).map_or(Value::Null, |(value, _)| value.clone())
            }
        };
        self.changed().then_some(given)
    }

    /// Gives it what [`Self::typed`] answered.
    pub fn retype(&mut self, given: &Value) {
        match (&mut self.control, given) {
            (Control::Text(text), Value::String(typed)) => text.set(typed),
            (Control::Text(_), _) => {}
            (Control::Choice { .. }, value) => self.set(value),
        }
    }

    /// Takes the default over, to be changed; answers whether there was one to take.
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
        let given = match &self.control {
            Control::Text(text) if text.text().trim().is_empty() => None,
            Control::Text(text) => Some(read(self.field.kind, text.text())),
            Control::Choice { choices, taken } => {
                taken.and_then(|at| choices.get(at)).map(|(value, _)| Ok(value.clone()))
            }
        };
        match given {
            Some(Ok(value)) => Meaning::Value(value),
            Some(Err(why)) => Meaning::Wrong(why),
            None if self.field.required && self.field.default.is_none() => Meaning::Missing,
            None => Meaning::Absent,
        }
    }

    /// What is wrong with it, to be reported now: everything once the form was checked.
    pub fn problem(&self, checked: bool) -> Option<String> {
        match self.meaning() {
            Meaning::Wrong(why) => Some(why),
            Meaning::Missing if checked || self.left => Some("is required".to_owned()),
            _ => self.remark.clone(),
        }
    }

    /// The default as shown in an empty field.
    pub fn ghost(&self) -> String {
        match &self.field.default {
            Some(default) => shown(&typed(self.field.kind, default)),
            None if self.field.required => "required".to_owned(),
            None => "optional".to_owned(),
        }
    }

    /// The choice that holds while none is taken.
    pub fn default_choice(&self) -> Option<usize> {
        let Control::Choice { choices, .. } = &self.control else { return None };
        let default = self.field.default.as_ref()?;
        choices.iter().position(|(value, _)| value == default)
    }

    /// What is at the right end: the type, as read.
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
        if *meaning == Meaning::Absent && self.field.default.is_some() {
            format!("{name}, default")
        } else {
            name
        }
    }

    pub fn changed(&self) -> bool {
        match self.meaning() {
            Meaning::Value(value) => self.before.as_ref() != Some(&value),
            Meaning::Absent | Meaning::Missing => self.before.is_some(),
            Meaning::Wrong(_) => true,
        }
    }

    /// A key for it; answers whether the value may have changed.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        if goes_on(key) && self.take_default() {
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

    /// Deletes what is before the cursor, or takes the choice back.
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

/// A key that goes to what is behind the cursor: in an empty field that is the default.
fn goes_on(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Right | KeyCode::End)
        || control && matches!(key.code, KeyCode::Char('e' | 'f'))
}

fn erases(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Backspace | KeyCode::Delete)
        || control && matches!(key.code, KeyCode::Char('h' | 'w' | 'k'))
}

/// The choice a key goes to: arrows and Space step round, a letter goes to the next one it begins.
fn choose(choices: &[(Value, String)], from: Option<usize>, key: KeyEvent) -> Option<usize> {
    let count = choices.len();
    let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    let next = || from.map_or(0, |at| (at + 1) % count);
    match key.code {
        KeyCode::Right | KeyCode::Char(' ') if plain => Some(next()),
        KeyCode::Left if plain => Some(from.map_or(count - 1, |at| (at + count - 1) % count)),
        KeyCode::Home => Some(0),
        KeyCode::End => Some(count - 1),
        KeyCode::Char(letter) if plain => {
            let letter = letter.to_lowercase().to_string();
            let start = from.map_or(0, |at| at + 1);
            (start..start + count)
                .map(|at| at % count)
                .find(|at| choices[*at].1.to_lowercase().starts_with(&letter))
        }
        _ => None,
    }
}
