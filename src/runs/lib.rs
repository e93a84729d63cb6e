//! What is executed: contract steps in their order, the capabilities they call, the bindings that execute
//! those, and the workers that do it. Which command moves a run where is the state machine's (`runs`), what
//! survives is the store's, and how a script is sandboxed is the sandbox's business.

mod artifacts;
mod binding;
mod broker;
mod call;
mod canonical;
mod capabilities;
mod carry;
mod control;
mod ending;
mod execute;
mod failure;
mod fields;
mod gates;
mod grants;
mod leaf;
mod log;
mod mapping;
mod nested;
mod offer;
mod plan;
mod progress;
mod remind;
mod repeat;
mod schedule;
mod scope;
mod session;
mod settle;
mod supervisor;
mod work;
mod worker;
mod workplace;

pub use artifacts::Artifacts;
pub use broker::{Broker, BrokerSettings, Clock, Environment, TrustCheck};
pub use call::{
    Artifact, BindingChoice, Call, CallError, CallFailure, Caller, Explanation, LogLine, LogSink, Reply,
    Tried,
};
pub use canonical::{canonical_json, digest_of, idempotency_key};
pub use capabilities::{Capabilities, Offered, Place};
pub use execute::{AtGate, Engine, Executed};
pub use fields::{FieldProblem, check_inputs, check_outputs, check_value};
pub use grants::BEFORE_FIRST_STEP;
pub use leaf::{DEFAULT_TIMEOUT, gate_digest, is_repeatable};
pub use log::LOG_BYTES;
pub use plan::{MAX_DEPTH, Plan, PlanError, PlanProblem};
pub use remind::{Reminder, Signs, Webhook, remind, terminal_bytes};
pub use schedule::PARALLEL;
pub use settle::RESULT_BYTES;
pub use supervisor::{ALIVE, DRAIN_PREFIX, Supervisor, SupervisorSettings, WORKER_PREFIX};
pub use worker::{Execute, Leases, work_one};
pub use workplace::Workplace;
