//! The operations for operators as one trait, implemented locally over the store and remotely over HTTP.

use async_trait::async_trait;

use super::Error;
use super::operator_types::{Board, FacetList, LogPage, LogRequest, ViewList, WorkerList};

/// Operations for operators, beyond single runs.
#[async_trait]
pub trait OperatorClient: Send + Sync + 'static {
    /// Returns everything that runs, waits and failed within the last hours.
    async fn board(&self, hours: u32) -> Result<Board, Error>;

    /// Returns the processes that execute runs.
    async fn workers(&self) -> Result<WorkerList, Error>;

    /// Drains a worker, or lets it claim runs again. It is named by its id or a unique part of it.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` where the part is not unique.
    async fn drain(&self, worker: &str, drain: bool, by: Option<String>) -> Result<WorkerList, Error>;

    /// Returns the fields by which the runs that match a filter differ.
    async fn facets(&self, filter: &str) -> Result<FacetList, Error>;

    /// Returns the saved views of the store and the configuration.
    async fn views(&self) -> Result<ViewList, Error>;

    /// Saves a filter under a name, or deletes the view if there is no filter.
    ///
    /// # Errors
    /// Returns `invalid_request` for an invalid name or filter; `invalid_configuration` for a view of the
    /// configuration.
    async fn save_view(
        &self,
        name: &str,
        filter: Option<&str>,
        by: Option<String>,
    ) -> Result<ViewList, Error>;

    /// Returns the lines that the steps of a run printed.
    async fn run_log(&self, request: LogRequest) -> Result<LogPage, Error>;
}
