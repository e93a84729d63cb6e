//! Runs in this process, as adapters ask for them.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::Local;
use crate::gateway::{
    AttachPreview, AttachRequest, Attached, CapabilityExplanation, Code, ContractView, Error, LaunchRequest,
    Launched, Ordered, RunClient, RunDetail, RunOrder, TargetChoice,
};
use crate::skill::AttachTarget;
use crate::store::{RunEvent, RunFilter, RunPage, RunRecord};

fn absent<T>(operation: &str) -> Result<T, Error> {
    Err(Error::new(Code::NotImplemented, format!("{operation} is not built in")))
}

#[async_trait]
impl RunClient for Local {
    async fn launch(&self, _request: LaunchRequest) -> Result<Launched, Error> {
        absent("launch")
    }

    async fn settle(&self, _run: &str, _leave: CancellationToken) -> Result<RunRecord, Error> {
        absent("settle")
    }

    async fn runs(&self, _filter: RunFilter) -> Result<RunPage, Error> {
        absent("runs")
    }

    async fn run(&self, _run: &str) -> Result<RunDetail, Error> {
        absent("run")
    }

    async fn order(&self, _run: &str, _order: RunOrder) -> Result<Ordered, Error> {
        absent("order")
    }

    async fn run_events(
        &self,
        _run: Option<&str>,
        _after: u64,
        _limit: usize,
        _wait_ms: u64,
    ) -> Result<Vec<RunEvent>, Error> {
        absent("run_events")
    }

    async fn newest_event(&self) -> Result<u64, Error> {
        absent("newest_event")
    }

    async fn attach_preview(&self, _request: AttachRequest) -> Result<AttachPreview, Error> {
        absent("attach_preview")
    }

    async fn attach(&self, _request: AttachRequest) -> Result<Attached, Error> {
        absent("attach")
    }

    async fn target_choices(
        &self,
        _target_type: AttachTarget,
        _text: &str,
        _limit: usize,
    ) -> Result<Vec<TargetChoice>, Error> {
        absent("target_choices")
    }

    async fn contract(&self, _skill: &str) -> Result<ContractView, Error> {
        absent("contract")
    }

    async fn explain_capability(&self, _capability: &str) -> Result<CapabilityExplanation, Error> {
        absent("explain_capability")
    }

    async fn capabilities(&self) -> Result<Vec<String>, Error> {
        absent("capabilities")
    }

    async fn activate(
        &self,
        _capability: &str,
        _binding: Option<&str>,
    ) -> Result<CapabilityExplanation, Error> {
        absent("activate")
    }
}
