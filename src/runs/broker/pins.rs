//! Digests of what executes a capability: a binding with everything its script may load. They are taken when a run is
//! launched and compared when a step begins, so that what was launched is what runs.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::binding::script::{ScriptLocation, located};
use super::super::capabilities::RegisteredBinding;
use skills_base::canonical::digest_of;
use skills_sandbox::{Contents, ContentsCache};
use skills_skill::contract::{Endpoint, Protocol};

/// Maximum number of bundle files whose changes are reported individually.
const MAX_NAMED_FILES: usize = 64;
/// Hexadecimal digits of a file's digest that are stored to identify it; the digest of the whole is the actual check.
const SHORT: usize = 12;

/// Prefix of digests that cover every file of the bundle; those of earlier versions cover the folder of the script.
const FORMAT: &str = "2:";

/// Prefix of the key of a binding's own definition, followed by its id.
const DEFINITION: &str = "binding ";

/// Digest of a binding with everything its script may load, and of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Digest of everything.
    pub digest: String,
    /// Digests of its parts, to name the one that changed: the binding's definition, and the files of the bundle by
    /// path (`slow-pay/scripts/pay.py`); for a bundle with many files only those of the script's folder.
    pub parts: BTreeMap<String, String>,
    /// Key prefix of all its files.
    folder: String,
    /// Key prefix of the files of the script's folder.
    scripts: String,
}

/// A part that changed since the launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Description of the change.
    pub what: String,
    /// Key of the part.
    pub part: String,
    /// Its current digest; empty if it no longer exists.
    pub now: String,
}

/// Returns whether a digest covers every file that the script can read.
pub fn is_complete(digest: &str) -> bool {
    digest.starts_with(FORMAT)
}

impl Pin {
    /// Computes the pin of a binding from the contents of its bundle.
    pub fn of_contents(offered: &RegisteredBinding, found: &ScriptLocation, contents: &Contents) -> Self {
        Self::new(offered, Some((found, contents)))
    }

    fn new(offered: &RegisteredBinding, found: Option<(&ScriptLocation, &Contents)>) -> Self {
        let binding = &offered.binding;
        let own = json!({
            "capability": binding.capability, "service": binding.service, "protocol": binding.protocol,
            "operation": binding.operation, "request": binding.request, "response": binding.response,
            "metadata": binding.metadata,
        });
        let mut all = own.clone();
        all["scripts"] = json!(found.map(|(_, contents)| contents));
        let short = |digest: &str| digest.get(..SHORT).unwrap_or(digest).to_owned();
        let mut parts = BTreeMap::from([(format!("{DEFINITION}{}", binding.id), short(&digest_of(&own)))]);
        let (mut folder, mut scripts) = (String::new(), String::new());
        if let Some((found, contents)) = found {
            let bundle = found.bundle.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let within =
                found.script.parent().map(|at| at.to_string_lossy().into_owned()).unwrap_or_default();
            folder = format!("{bundle}/");
            scripts = format!("{bundle}/{within}/");
            let all = contents.iter().map(|(place, digest)| (format!("{bundle}/{place}"), short(digest)));
            let mut named: BTreeMap<String, String> = all.collect();
            if named.len() > MAX_NAMED_FILES {
                folder.clone_from(&scripts);
                named.retain(|place, _| place.starts_with(&scripts));
            }
            if named.len() <= MAX_NAMED_FILES {
                parts.extend(named);
            }
        }
        Self { digest: format!("{FORMAT}{}", digest_of(&all)), parts, folder, scripts }
    }

    /// Returns the parts that changed since the launch; empty if nothing was recorded then.
    pub fn edits(&self, launched: &BTreeMap<String, String>) -> Vec<Edit> {
        let digest_of = |part: &str| launched.get(part).filter(|digest| !digest.is_empty());
        let own = |part: &str| part.starts_with(DEFINITION);
        if !self.parts.keys().any(|part| own(part) && digest_of(part).is_some()) {
            // Launched by a version that recorded only the digest of the whole.
            return Vec::new();
        }
        // At the launch there may have been too many files to record the digest of each.
        let all_known =
            launched.keys().any(|part| part.starts_with(&self.folder) && !part.starts_with(&self.scripts));
        let is_comparable = |part: &str| own(part) || all_known || part.starts_with(&self.scripts);
        let name = |part: &str| part.split_once('/').map_or(part, |(_, place)| place).to_owned();
        let edit =
            |part: &String, now: &str, what: String| Edit { what, part: part.clone(), now: now.to_owned() };
        let comparable = self.parts.iter().filter(|(part, _)| is_comparable(part));
        let present = comparable.filter_map(|(part, now)| match digest_of(part) {
            Some(before) if before == now => None,
            Some(_) if own(part) => Some(edit(part, now, format!("the {part} changed since the launch"))),
            Some(_) => Some(edit(part, now, format!("{} changed since the launch", name(part)))),
            None => Some(edit(part, now, format!("{} did not exist when the run was launched", name(part)))),
        });
        let gone = launched.iter().filter(|(part, before)| {
            let files = !self.folder.is_empty() && self.parts.len() > 1;
            files && part.starts_with(&self.folder) && !before.is_empty() && !self.parts.contains_key(*part)
        });
        let gone = gone.map(|(part, _)| edit(part, "", format!("{} no longer exists", name(part))));
        present.chain(gone).collect()
    }
}

/// Digests of what bindings can load; files are read again only after a change.
#[derive(Default)]
pub struct Pins {
    contents: ContentsCache,
}

impl Pins {
    /// Computes the current pin of a binding; unreadable content has its own digest.
    pub fn of(&self, offered: &RegisteredBinding, services: &BTreeMap<String, Endpoint>) -> Pin {
        let binding = &offered.binding;
        if binding.protocol != Protocol::Script {
            return Pin::new(offered, None);
        }
        let reach = services.get(&binding.service).map(|endpoint| &endpoint.reach);
        let Ok(found) = located(offered, reach, None) else { return Pin::new(offered, None) };
        match self.contents.contents(&found.bundle) {
            Ok(contents) => Pin::of_contents(offered, &found, &contents),
            Err(error) => {
                let contents = Contents::from([(".".to_owned(), format!("unreadable: {error}"))]);
                Pin::of_contents(offered, &found, &contents)
            }
        }
    }
}
