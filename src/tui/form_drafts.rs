//! Text entered into dialogs that were closed without submitting, kept until they are opened again.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Field texts by the name of their dialog.
#[derive(Debug, Default)]
pub struct FormDrafts(BTreeMap<String, Map<String, Value>>);

impl FormDrafts {
    /// Stores the fields of a closed dialog; empty fields remove its draft.
    pub fn keep(&mut self, dialog: &str, fields: &Map<String, Value>) {
        if fields.is_empty() {
            self.0.remove(dialog);
        } else {
            self.0.insert(dialog.to_owned(), fields.clone());
        }
    }

    /// Returns the initial fields of a dialog.
    pub fn of(&self, dialog: &str) -> Map<String, Value> {
        self.0.get(dialog).cloned().unwrap_or_default()
    }

    pub fn dialogs(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Removes all drafts.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
