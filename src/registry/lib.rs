//! Skill discovery on disk: roots, scan, precedence and shadowing, hot reload, warm-start cache. Provides immutable
//! snapshots ([`Catalog`]) and a stream of changes. Does not rank.
// Text of bundles is untrusted: an invalid range must not abort the program.
#![cfg_attr(not(test), deny(clippy::string_slice))]

mod assemble;
mod cache;
mod catalog;
mod changes;
mod folder_state;
mod handle;
mod incomplete;
mod ordered_path;
pub mod policy;
mod roots;
mod shipped;
mod tree;
pub mod trust;
mod walk;
mod watch;
mod worker;

pub use catalog::{
    Alias, Catalog, Change, Entry, FolderLink, Lookup, Root, RootOrigin, RootState, ScanProgress, Shadowed,
};
pub use handle::{Registry, RegistryEvent, Settings};
pub use roots::{RootSpec, ShippedUse, resolve};
pub use shipped::{SHIPPED, check_cache, is_shipped_id, versions as shipped_versions};
pub use trust::{Pin, PinsStamp, Trust, TrustError, TrustState, TrustSummary};
