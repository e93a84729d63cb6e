//! A broker with metrics: which bindings executed calls, which failed, and the durations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use skills_base::telemetry::Metrics;
use skills_runs::{
    Broker, Call, CallConditions, CallError, CallFailure, Caller, Explanation, PresentBindings, Reply,
};
use skills_skill::contract::Capability;

/// A broker and its metrics.
pub(super) struct CountedBroker {
    broker: Arc<Broker>,
    metrics: Metrics,
}

impl CountedBroker {
    pub(super) fn new(broker: Arc<Broker>, metrics: Metrics) -> Self {
        Self { broker, metrics }
    }
}

#[async_trait]
impl Caller for CountedBroker {
    async fn call(&self, call: Call, cancel: CancellationToken) -> Result<Reply, CallError> {
        let started = Instant::now();
        let result = self.broker.call(call, cancel).await;
        let took = started.elapsed();
        let (binding, tried, failure) = match &result {
            Ok(reply) => (Some(reply.binding.as_str()), &reply.tried, None),
            Err(error) => (error.binding.as_deref(), &error.tried, Some(error.code)),
        };
        self.metrics.capability_call(took, failure.map(|code| code.to_string()).as_deref());
        // A canceled call does not count for or against a binding.
        if failure != Some(CallFailure::Canceled) {
            for binding in tried {
                self.metrics.binding(&binding.binding, false);
            }
            if let Some(binding) = binding {
                self.metrics.binding(binding, failure.is_none());
                if tried.is_empty() {
                    self.metrics.binding_took(binding, took);
                }
            }
        }
        result
    }

    fn pins(&self, capability: &str) -> BTreeMap<String, String> {
        self.broker.pins(capability)
    }

    fn present_bindings(
        &self,
        capability: &Capability,
        conditions: &CallConditions,
        launched: &BTreeMap<String, String>,
    ) -> PresentBindings {
        self.broker.present_bindings(capability, conditions, launched)
    }

    fn obstacle(&self, capability: &Capability, conditions: &CallConditions) -> Option<CallError> {
        self.broker.obstacle(capability, conditions)
    }

    fn explain(&self, capability: &Capability, conditions: &CallConditions) -> Explanation {
        self.broker.explain(capability, conditions)
    }
}
