//! The executable part of a bundle: `skill.yaml` with typed inputs, outputs and steps, and the capabilities, bindings
//! and services of a registry folder in the same format.
//!
//! The format is the one that public contract registries use (`skills/<channel>/<domain>/<slug>/skill.yaml`,
//! `capabilities/*.yaml`, `bindings/**/*.yaml`, `services/*.yaml`), plus one additional step: `wait_for_signal`.

mod calls;
mod check;
mod endpoint;
pub mod expression;
mod nesting;
mod parse;
mod reader;
mod registry;
mod title;
mod types;

pub use calls::{KnownCapabilities, KnownContracts, check_binding, check_calls};
pub use endpoint::{Endpoint, ServiceTarget};
pub use nesting::{Extent, MAX_CONTRACTS, MAX_DEPTH, MAX_STEPS, Nesting};
pub use parse::{NAMESPACES, parse};
pub use registry::{parse_binding, parse_capability, parse_service};
pub use title::{derived_title, render_title};
pub use types::{
    Binding, Capability, Conformance, Contract, ContractApprovals, Field, FieldType, Foreach, Gate,
    GateFailure, Merge, MergeStrategy, Properties, Protocol, Retry, Router, Safety, Scatter, Service, Source,
    Step, StepAction, TrustLevel, While,
};
