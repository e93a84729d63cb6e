//! Operations for operators of a remote service.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use super::Remote;
use super::call::{Arguments, to_arguments};
use crate::operations::arguments::{
    BoardArguments, DrainArguments, FacetsArguments, LogArguments, ViewArguments, ViewNameArguments,
};
use crate::operator_types::ensure_not_configured;
use crate::{Board, Error, FacetList, LogPage, LogRequest, OperatorClient, SavedView, ViewList, WorkerList};

#[async_trait]
impl OperatorClient for Remote {
    async fn board(&self, hours: u32) -> Result<Board, Error> {
        self.inner.ask("run.board", to_arguments(&BoardArguments { hours })?).await
    }

    async fn workers(&self) -> Result<WorkerList, Error> {
        self.inner.ask("worker.list", Arguments::new()).await
    }

    async fn drain(&self, worker: &str, drain: bool, _by: Option<String>) -> Result<WorkerList, Error> {
        self.inner
            .execute("worker.drain", to_arguments(&DrainArguments { worker: worker.to_owned(), drain })?)
            .await
    }

    async fn facets(&self, filter: &str) -> Result<FacetList, Error> {
        self.inner.ask("run.facets", to_arguments(&FacetsArguments { r#where: filter.to_owned() })?).await
    }

    async fn views(&self) -> Result<ViewList, Error> {
        Ok(with_own(&self.views, self.inner.ask("view.list", Arguments::new()).await?))
    }

    async fn save_view(
        &self,
        name: &str,
        filter: Option<&str>,
        by: Option<String>,
    ) -> Result<ViewList, Error> {
        ensure_not_configured(&self.views, name)?;
        let by = self.commands.user_or_default(by);
        let name = name.to_owned();
        let saved = match filter {
            Some(filter) => {
                let fields = ViewArguments { name, r#where: filter.to_owned(), by };
                self.inner.execute("view.save", to_arguments(&fields)?).await?
            }
            None => self.inner.execute("view.delete", to_arguments(&ViewNameArguments { name, by })?).await?,
        };
        Ok(with_own(&self.views, saved))
    }

    async fn run_log(&self, request: LogRequest) -> Result<LogPage, Error> {
        let LogRequest { run, step, text, after, limit, wait_ms } = request;
        let fields = to_arguments(&LogArguments { run_id: run, step, text, after, limit, wait_ms })?;
        let patience = self.inner.wire.reading() + Duration::from_millis(wait_ms);
        self.inner.once("run.log", fields, patience).await.map_err(super::transport::TransportError::error)
    }
}

/// Adds the user's own views, which replace those of the service with the same names.
fn with_own(views: &BTreeMap<String, String>, list: ViewList) -> ViewList {
    let shared = list.views.into_iter().filter(|view| !views.contains_key(&view.name));
    let own = views.iter().map(|(name, filter)| SavedView::configured(name, filter));
    let mut all: Vec<SavedView> = shared.chain(own).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    ViewList { views: all }
}
