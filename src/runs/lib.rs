//! Execution of runs: scheduling the steps of contracts, the capabilities they call, the bindings that execute those,
//! and the workers. State transitions belong to the state machine, persistence to the store (`skills_store`), and
//! script isolation to the sandbox.

mod apply_result;
mod approvals;
mod artifacts;
mod attempt;
mod binding;
mod broker;
mod call;
mod capabilities;
mod completed;
mod execute;
mod executor;
mod expand;
mod failure;
mod fields;
mod frames;
mod gates;
mod grants;
mod log;
mod loops;
mod mapping;
mod nested;
mod notifications;
mod plan;
mod process_identity;
mod progress;
mod run_writer;
mod running_calls;
mod schedule;
mod scheduled_call;
mod scheduler;
mod scope;
mod supervisor;
mod termination;
mod uploads;
mod value_count;
mod worker;

pub use apply_result::RESULT_BYTES;
pub use artifacts::Artifacts;
pub use binding::http::root_cause;
pub use broker::{Broker, BrokerSettings, BundleCheck, BundleRefusal, Clock, Environment};
pub use call::{
    Artifact, BindingChoice, Call, CallConditions, CallError, CallFailure, Caller, Explanation,
    FailedAttempt, LogLine, LogSink, PresentBindings, Reply, idempotency_key,
};
pub use capabilities::{Capabilities, CapabilityFolder, RegisteredBinding};
pub use execute::{Engine, ExecutionEnd, PendingGate};
pub use fields::{FieldProblem, check_inputs, check_outputs, check_value};
pub use log::LOG_BYTES;
pub use notifications::{Reminder, TerminalSignals, Webhook, remind, terminal_bytes, withdrawal_bytes};
pub use plan::{Plan, PlanError, PlanProblem};
pub use process_identity::ProcessIdentity;
pub use schedule::PARALLEL;
pub use scheduled_call::{DEFAULT_TIMEOUT, gate_digest, is_repeatable, max_attempts};
pub use supervisor::{
    DRAIN_PREFIX, HEARTBEAT_TIMEOUT, Supervisor, SupervisorSettings, WORKER_PREFIX, record_expired_waits,
};
pub use uploads::{UPLOADS_KEPT_FOR, Upload, UploadError, UploadLimits, UploadedBytes};
pub use value_count::{MAX_JSON_VALUES, has_few_values};
pub use worker::{CallerPermits, Execute, LeaseSettings, execute_next};
