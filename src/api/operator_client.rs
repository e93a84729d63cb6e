//! The operations of operators as one trait: a local form over the store, a remote one over HTTP.

use async_trait::async_trait;

use super::Error;
use super::operator_types::{Board, FacetList, LogPage, LogRequest, ViewList, WorkerList};

/// Requests of operators in addition to single runs.
#[async_trait]
pub trait OperatorClient: Send + Sync + 'static {
    /// Everything that runs, waits and failed within the last hours.
    async fn board(&self, hours: u32) -> Result<Board, Error>;

    /// The processes that execute runs.
    async fn workers(&self) -> Result<WorkerList, Error>;

    /// Lets a worker finish its runs and claim no others, or claim again. Named by its id or a unique part of it.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` where the part is not unique.
    async fn drain(&self, worker: &str, drain: bool, by: Option<String>) -> Result<WorkerList, Error>;

    /// What distinguishes the runs that match a filter.
    async fn facets(&self, filter: &str) -> Result<FacetList, Error>;

    /// Saved views of the store and the configuration.
    async fn views(&self) -> Result<ViewList, Error>;

    /// Saves a filter under a name, or deletes the view without one.
    ///
    /// # Errors
    /// `invalid_request` for a name or filter that is none; `invalid_configuration` for a view of the configuration.
    async fn save_view(
        &self,
        name: &str,
        filter: Option<&str>,
        by: Option<String>,
    ) -> Result<ViewList, Error>;

    /// Lines that the steps of a run printed.
    async fn run_log(&self, request: LogRequest) -> Result<LogPage, Error>;
}
