//! What was typed into sheets that were closed without sending it, until they are opened again.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Texts of fields by the name of their sheet.
#[derive(Debug, Default)]
pub struct Typed(BTreeMap<String, Map<String, Value>>);

impl Typed {
    /// Keeps what a sheet was left with; nothing where nothing was typed.
    pub fn keep(&mut self, sheet: &str, fields: &Map<String, Value>) {
        if fields.is_empty() {
            self.0.remove(sheet);
        } else {
            self.0.insert(sheet.to_owned(), fields.clone());
        }
    }

    /// What a sheet begins with.
    #[must_use]
    pub fn of(&self, sheet: &str) -> Map<String, Value> {
        self.0.get(sheet).cloned().unwrap_or_default()
    }

    /// The sheets of which something is kept.
    pub fn sheets(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Keeps nothing any longer.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
