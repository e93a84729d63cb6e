//! What contract checks can query about the available capabilities.

use std::collections::BTreeSet;

use skills_skill::contract::{Capability, Field, KnownCapabilities};

use super::Capabilities;
use crate::check_value;

impl KnownCapabilities for Capabilities {
    fn ids(&self) -> Vec<&str> {
        let bound = self.bindings().map(|offered| offered.binding.capability.as_str());
        let all: BTreeSet<&str> = Capabilities::ids(self).chain(bound).collect();
        all.into_iter().collect()
    }

    fn declared(&self, id: &str) -> Option<&Capability> {
        self.capability(id).map(|capability| &**capability)
    }

    fn maps_output(&self, id: &str, output: &str) -> bool {
        self.bindings_of(id).iter().any(|offered| offered.binding.response.contains_key(output))
    }

    fn has_service(&self, id: &str) -> bool {
        !self.services(id).is_empty()
    }

    fn check(&self, field: &Field, value: &serde_json::Value) -> Result<(), String> {
        check_value(field, value)
    }
}
