//! The catalog of capabilities: what steps can call, the bindings that execute them, and the services these use.
//!
//! It is built from every registry folder of the form `capabilities/*.yaml`, `bindings/**/*.yaml`,
//! `services/**/*.yaml`: roots that are registries, and bundles with their own. Nothing is executed or contacted.

mod diagnostics;
mod known;
mod read;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use skills_sandbox::Contents;
use skills_skill::contract::{Binding, Capability, Service};
use skills_skill::{Digest, Finding};

/// A folder that may contain capabilities, bindings and services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityFolder {
    /// The folder that contains `capabilities/`, `bindings/` or `services/`.
    pub dir: PathBuf,
    /// The bundle it belongs to, if any; its scripts are in `scripts/`.
    pub bundle: Option<PathBuf>,
    /// Whether it ships with this program.
    pub shipped: bool,
    /// Whether only the project in which the program was started names its root.
    pub of_project: bool,
}

impl CapabilityFolder {
    /// Returns the folder to which trust applies and in which scripts are: the bundle, or the registry folder itself.
    pub fn root(&self) -> &Path {
        self.bundle.as_deref().unwrap_or(&self.dir)
    }
}

/// A binding and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredBinding {
    pub binding: Binding,
    /// Its origin.
    pub place: Arc<CapabilityFolder>,
}

/// The description of a service and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredService {
    pub service: Service,
    /// Its origin.
    pub place: Arc<CapabilityFolder>,
}

/// All capabilities, bindings and services of a list of folders; immutable, so that it can be shared and replaced as a
/// whole.
///
/// If two folders define the same id, the earlier one has precedence, and a finding names both. All descriptions of a
/// service are kept: each is only for the bindings of its own folder, unless the user trusts it.
#[derive(Debug, Clone, Default)]
pub struct Capabilities {
    declared: BTreeMap<String, Arc<Capability>>,
    /// The files that also define a capability, but are not in force, by id and in order of precedence.
    other_definitions: BTreeMap<String, Vec<PathBuf>>,
    bindings: BTreeMap<String, Arc<RegisteredBinding>>,
    services: BTreeMap<String, Vec<RegisteredService>>,
    by_capability: BTreeMap<String, Vec<Arc<RegisteredBinding>>>,
    /// The folder and the SHA-256 of each file that was read.
    sources: BTreeMap<PathBuf, (Arc<CapabilityFolder>, Digest)>,
    findings: Vec<Finding>,
}

impl Capabilities {
    /// Reads the folders in order of precedence. A file that cannot be used becomes a finding.
    pub fn load(places: &[CapabilityFolder]) -> Self {
        let mut out = Self::default();
        for place in places {
            let place = Arc::new(place.clone());
            for part in read::read(&place) {
                match part {
                    read::CatalogEntry::Capability(found) => out.add_capability(found),
                    read::CatalogEntry::Binding(found) => out.add_binding(found, &place),
                    read::CatalogEntry::Service(found) => out.add_service(found, &place),
                    read::CatalogEntry::Source(file, digest) => {
                        out.sources.insert(file, (Arc::clone(&place), digest));
                    }
                    read::CatalogEntry::Finding(finding) => out.findings.push(finding),
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

    pub fn capability(&self, id: &str) -> Option<&Arc<Capability>> {
        self.declared.get(id)
    }

    /// Returns the files that also define a capability, but are not in force, in order of precedence.
    pub fn other_definitions(&self, id: &str) -> &[PathBuf] {
        self.other_definitions.get(id).map_or(&[], Vec::as_slice)
    }

    /// Returns the bindings of a capability, sorted by id, even if no file declares the capability.
    pub fn bindings_of(&self, capability: &str) -> &[Arc<RegisteredBinding>] {
        self.by_capability.get(capability).map_or(&[], Vec::as_slice)
    }

    /// Returns the folder that a file was read from, and its content as a bundle's: the digest by its path in the bundle.
    pub fn source(&self, file: &Path) -> Option<(&Arc<CapabilityFolder>, Contents)> {
        let (place, digest) = self.sources.get(file)?;
        let path = file.strip_prefix(place.root()).ok()?;
        let parts = path.components().map(|part| part.as_os_str().to_string_lossy());
        Some((place, Contents::from([(parts.collect::<Vec<_>>().join("/"), digest.to_string())])))
    }

    pub fn binding(&self, id: &str) -> Option<&Arc<RegisteredBinding>> {
        self.bindings.get(id)
    }

    /// Returns the descriptions of a service in order of precedence; its actual address is only in the configuration.
    pub fn services(&self, id: &str) -> &[RegisteredService] {
        self.services.get(id).map_or(&[], Vec::as_slice)
    }

    /// Returns the ids of all capabilities, sorted.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.declared.keys().map(String::as_str)
    }

    /// Returns all bindings, sorted by id.
    pub fn bindings(&self) -> impl ExactSizeIterator<Item = &Arc<RegisteredBinding>> {
        self.bindings.values()
    }

    /// Returns the problems of the files; each finding names its file by the path under which it was read.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn add_capability(&mut self, found: Capability) {
        let Some(first) = self.declared.get(&found.id) else {
            self.declared.insert(found.id.clone(), Arc::new(found));
            return;
        };
        // The same folder, listed twice.
        if first.location == found.location {
            return;
        }
        // Identical definitions in two folders, as when a bundle includes a file of its registry, are not a conflict.
        let is_identical = Capability { location: first.location.clone(), ..found.clone() } == **first;
        if !is_identical {
            let remark = diagnostics::duplicate_id("capability", &found.id, &first.location, &found.location);
            self.findings.push(remark);
        }
        self.other_definitions.entry(found.id).or_default().push(found.location);
    }

    fn add_binding(&mut self, binding: Binding, place: &Arc<CapabilityFolder>) {
        match self.bindings.get(&binding.id) {
            None => {
                let offered = Arc::new(RegisteredBinding { binding, place: Arc::clone(place) });
                self.bindings.insert(offered.binding.id.clone(), offered);
            }
            // The same folder, listed twice.
            Some(first) if first.binding.location == binding.location => {}
            Some(first) => {
                let remark = diagnostics::duplicate_id(
                    "binding",
                    &binding.id,
                    &first.binding.location,
                    &binding.location,
                );
                self.findings.push(remark);
            }
        }
    }

    fn add_service(&mut self, service: Service, place: &Arc<CapabilityFolder>) {
        let all = self.services.entry(service.id.clone()).or_default();
        if let Some(RegisteredService { service: first, .. }) = all.first()
            && first.settings != service.settings
        {
            let remark =
                diagnostics::duplicate_id("service", &service.id, &first.location, &service.location);
            self.findings.push(remark);
        }
        all.push(RegisteredService { service, place: Arc::clone(place) });
    }
}

#[cfg(test)]
mod tests;
