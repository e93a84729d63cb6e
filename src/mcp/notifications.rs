//! Notifications about changes of the catalog: the lists of resources and prompts have changed.

use rmcp::RoleServer;
use rmcp::model::SubscriptionFilter;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::server::{Server, wait_for};
use skills_api::{CoreParts, Event, SharedClient};

/// Returns the supported notifications.
pub fn supported_subscriptions() -> SubscriptionFilter {
    SubscriptionFilter::builder().prompts_list_changed().resources_list_changed().build()
}

/// Notifies a client with a handshake of every change among these events until it disconnects.
pub async fn forward(core: &SharedClient, mut events: Receiver<Event>, peer: Peer<RoleServer>) {
    // The first scan is not a change: requests wait for it.
    wait_for(core, CoreParts::Catalog).await;
    while changed(&mut events).await && !peer.is_transport_closed() {
        let results = (peer.notify_resource_list_changed().await, peer.notify_prompt_list_changed().await);
        if let (Err(error), _) | (_, Err(error)) = results {
            tracing::debug!("cannot send notifications to the client: {error}");
            return;
        }
    }
}

/// Notifies a client that subscribed, until it unsubscribes.
pub async fn listen(server: &Server, subscription: &SubscriptionContext) {
    let mut events = server.core().events();
    server.ready(CoreParts::Catalog).await;
    let accepted = subscription.accepted();
    loop {
        tokio::select! {
            more = changed(&mut events) => if !more { return },
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

/// Waits for the next change of the catalog; returns false if there will be none.
async fn changed(events: &mut Receiver<Event>) -> bool {
    loop {
        match events.recv().await {
            // Missed events may include a change.
            Ok(Event::Catalog(_)) | Err(RecvError::Lagged(_)) => return true,
            Ok(_) => {}
            Err(RecvError::Closed) => return false,
        }
    }
}
