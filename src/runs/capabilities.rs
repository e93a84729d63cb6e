//! The catalog of capabilities: what steps can call, the bindings that execute it, the services those go to.
//!
//! It is put together from every registry folder of the form `capabilities/*.yaml`, `bindings/**/*.yaml`,
//! `services/**/*.yaml`: roots that are registries, and bundles that bring their own. Nothing is run or contacted.

mod diagnostics;
mod known;
mod read;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use skills_skill::Finding;
use skills_skill::contract::{Binding, Capability, Service};

/// A folder that may hold capabilities, bindings and services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityFolder {
    /// The folder that has `capabilities/`, `bindings/` or `services/`.
    pub dir: PathBuf,
    /// The bundle it belongs to, where it is one; its scripts are below `scripts/`.
    pub bundle: Option<PathBuf>,
    /// It came with this program.
    pub shipped: bool,
}

impl CapabilityFolder {
    /// What trust is asked about, and where scripts lie: the bundle, or the registry folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.bundle.as_deref().unwrap_or(&self.dir)
    }
}

/// A binding, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// The binding.
    pub binding: Binding,
    /// Where it comes from.
    pub place: Arc<CapabilityFolder>,
}

/// All capabilities, bindings and services of some places; immutable, so that it can be shared and replaced whole.
///
/// Where two places define the same id, the earlier place counts, and a finding names both.
#[derive(Debug, Clone, Default)]
pub struct Capabilities {
    declared: BTreeMap<String, Arc<Capability>>,
    bindings: BTreeMap<String, Arc<Offered>>,
    services: BTreeMap<String, Arc<Service>>,
    by_capability: BTreeMap<String, Vec<Arc<Offered>>>,
    findings: Vec<Finding>,
}

impl Capabilities {
    /// Reads every place, in this order of precedence. A file that cannot be used becomes a finding.
    #[must_use]
    pub fn load(places: &[CapabilityFolder]) -> Self {
        let mut out = Self::default();
        for place in places {
            let place = Arc::new(place.clone());
            for part in read::read(&place) {
                match part {
                    read::Part::Capability(found) => out.add_capability(found),
                    read::Part::Binding(found) => out.add_binding(found, &place),
                    read::Part::Service(found) => out.add_service(found),
                    read::Part::Remark(finding) => out.findings.push(finding),
                }
            }
        }
        for offered in out.bindings.values() {
            let capability = offered.binding.capability.clone();
            out.by_capability.entry(capability).or_default().push(Arc::clone(offered));
        }
        diagnostics::references(&mut out);
        out
    }

    /// A capability by its id.
    #[must_use]
    pub fn capability(&self, id: &str) -> Option<&Arc<Capability>> {
        self.declared.get(id)
    }

    /// The bindings of a capability, by their ids; also of one that no file declares.
    #[must_use]
    pub fn bindings_of(&self, capability: &str) -> &[Arc<Offered>] {
        self.by_capability.get(capability).map_or(&[], Vec::as_slice)
    }

    /// A binding by its id.
    #[must_use]
    pub fn binding(&self, id: &str) -> Option<&Arc<Offered>> {
        self.bindings.get(id)
    }

    /// A service as a registry describes it; where it really is, only the configuration says.
    #[must_use]
    pub fn service(&self, id: &str) -> Option<&Arc<Service>> {
        self.services.get(id)
    }

    /// The ids of all capabilities, in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.declared.keys().map(String::as_str)
    }

    /// All bindings, by their ids.
    pub fn bindings(&self) -> impl ExactSizeIterator<Item = &Arc<Offered>> {
        self.bindings.values()
    }

    /// What is wrong with the files, or missing in them; each finding names its file by the path under which it was
    /// read.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn add_capability(&mut self, found: Capability) {
        match self.declared.get(&found.id) {
            None => drop(self.declared.insert(found.id.clone(), Arc::new(found))),
            // The same text in two places, as when a bundle brings what its registry has, is not a
            // contradiction.
            Some(first) if Capability { location: first.location.clone(), ..found.clone() } == **first => {}
            Some(first) => {
                let remark = diagnostics::twice("capability", &found.id, &first.location, &found.location);
                self.findings.push(remark);
            }
        }
    }

    fn add_binding(&mut self, binding: Binding, place: &Arc<CapabilityFolder>) {
        match self.bindings.get(&binding.id) {
            None => {
                let offered = Arc::new(Offered { binding, place: Arc::clone(place) });
                self.bindings.insert(offered.binding.id.clone(), offered);
            }
            // The same folder, named twice.
            Some(first) if first.binding.location == binding.location => {}
            Some(first) => {
                let remark =
                    diagnostics::twice("binding", &binding.id, &first.binding.location, &binding.location);
                self.findings.push(remark);
            }
        }
    }

    fn add_service(&mut self, found: Service) {
        match self.services.get(&found.id) {
            None => drop(self.services.insert(found.id.clone(), Arc::new(found))),
            Some(first) if first.settings == found.settings => {}
            Some(first) => {
                let remark = diagnostics::twice("service", &found.id, &first.location, &found.location);
                self.findings.push(remark);
            }
        }
    }
}

#[cfg(test)]
mod tests;
