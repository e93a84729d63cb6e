//! News of the catalog for clients: the lists of resources and prompts have changed.

use rmcp::RoleServer;
use rmcp::model::SubscriptionFilter;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::server::Server;
use skills_api::{Event, Needs};

/// The kinds of news there are.
pub fn offered() -> SubscriptionFilter {
    SubscriptionFilter::builder().prompts_list_changed().resources_list_changed().build()
}

/// Tells a client with a handshake of every change, until it is gone.
pub async fn tell(server: Server, peer: Peer<RoleServer>) {
    let mut news = server.core().events();
    // The first reading of the skills is not news: anyone who asks waits for it.
    server.ready(Needs::Catalogue).await;
    while changed(&mut news).await && !peer.is_transport_closed() {
        let told = (peer.notify_resource_list_changed().await, peer.notify_prompt_list_changed().await);
        if let (Err(error), _) | (_, Err(error)) = told {
            tracing::debug!("cannot send notifications to the client: {error}");
            return;
        }
    }
}

/// Tells a client that listens for news, until it stops.
pub async fn listen(server: &Server, subscription: &SubscriptionContext) {
    let mut news = server.core().events();
    server.ready(Needs::Catalogue).await;
    let accepted = subscription.accepted();
    loop {
        tokio::select! {
            more = changed(&mut news) => if !more { return },
            () = subscription.cancelled() => return,
        }
        let sink = subscription.sink();
        if accepted.resources_list_changed == Some(true)
            && let Err(error) = sink.notify_resource_list_changed().await
        {
            tracing::debug!("cannot send notifications to the client: {error}");
            return;
        }
        if accepted.prompts_list_changed == Some(true)
            && let Err(error) = sink.notify_prompt_list_changed().await
        {
            tracing::debug!("cannot send notifications to the client: {error}");
            return;
        }
    }
}

/// Waits for the next change of the catalog; false when there will be none any longer.
async fn changed(news: &mut Receiver<Event>) -> bool {
    loop {
        match news.recv().await {
            // What was missed may have been a change.
            Ok(Event::Catalogue(_)) | Err(RecvError::Lagged(_)) => return true,
            Ok(_) => {}
            Err(RecvError::Closed) => return false,
        }
    }
}
