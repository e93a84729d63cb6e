//! Requests of the Proposals pane to the core, and the responses.

use std::sync::Arc;

use skills_api::{
    Error, ProposalAction, ProposalActionOptions, ProposalActionResult, ProposalFilter, ProposalList,
    ProposalView, SharedClient,
};

#[derive(Debug, Clone, PartialEq)]
pub enum ProposalPaneRequest {
    /// The list; the one being shown is passed so that an equal one causes no redraw.
    List(Option<Arc<ProposalList>>),
    Show(String),
    Act {
        proposal_id: String,
        action: ProposalAction,
        notes: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub enum ProposalPaneResponse {
    /// To [`ProposalPaneRequest::List`]; `None` if the list equals the one being shown.
    Listed(Result<Option<Arc<ProposalList>>, Error>),
    /// To [`ProposalPaneRequest::Show`], with the id.
    Shown(String, Result<Arc<ProposalView>, Error>),
    /// To [`ProposalPaneRequest::Act`], with the id.
    Acted(String, Result<Arc<ProposalActionResult>, Error>),
}

impl ProposalPaneRequest {
    /// Returns the name of the task.
    pub fn name(&self) -> &'static str {
        match self {
            Self::List(_) => "proposals",
            Self::Show(_) => "proposal",
            Self::Act { .. } => "order_proposal",
        }
    }

    /// Sends the request to the core.
    pub async fn send(self, client: SharedClient) -> ProposalPaneResponse {
        match self {
            Self::List(shown) => {
                let listed = client.proposals(ProposalFilter::default()).await;
                let is_new = |list: &ProposalList| shown.as_deref() != Some(list);
                ProposalPaneResponse::Listed(listed.map(|list| is_new(&list).then(|| Arc::new(list))))
            }
            Self::Show(id) => {
                let view = client.proposal(&id).await.map(Arc::new);
                ProposalPaneResponse::Shown(id, view)
            }
            Self::Act { proposal_id, action, notes } => {
                let by = ProposalActionOptions { notes, ..ProposalActionOptions::default() };
                let result = client.act_on_proposal(&proposal_id, action, by).await.map(Arc::new);
                ProposalPaneResponse::Acted(proposal_id, result)
            }
        }
    }
}
