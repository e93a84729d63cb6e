//! The core behind an address: every call one operation of the table, sent over HTTP, and a connection that is found
//! again when it is lost.

mod address;
mod call;
mod client;
mod connection;
mod event_buffer;
mod launches;
mod news;
mod operator_client;
mod orders;
mod pending_decisions;
mod run_client;
mod session_client;
mod stream;
mod transport;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;

use self::connection::Link;
use self::event_buffer::EventBuffer;
use self::pending_decisions::PendingDecisions;
use self::transport::{HttpTransport, READING, TransportError};
use super::{ConnectionState, Error};
use skills_registry::Catalogue;

pub use address::{Address, KEY_VARIABLE, Key};

/// The core of a service elsewhere.
///
/// Questions are repeated once where the connection broke. Launches carry a key, decisions what was seen, so
/// that neither is ever executed twice; where the answer to a decision is lost, the run is looked at before
/// anything is sent again. Waiting for events or for the end of a run continues through any outage.
pub struct Remote {
    inner: Arc<Inner>,
    /// Who runs are started by, where the service requires no key.
    user: Option<String>,
    following: OnceLock<AbortHandle>,
    /// Decisions that are on their way.
    deciding: PendingDecisions,
}

/// What its tasks share.
struct Inner {
    wire: HttpTransport,
    link: Link,
    /// Events of runs, by the stream of news.
    heard: EventBuffer,
    catalogue: Mutex<Option<Arc<Catalogue>>>,
}

impl Inner {
    fn cached_catalog(&self) -> MutexGuard<'_, Option<Arc<Catalogue>>> {
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Remote {
    /// Connects to a service and makes sure that it is one, of this version, that lets this caller in.
    ///
    /// # Errors
    /// `upstream_failure` if the service does not respond; `invalid_configuration` for another program or another
    /// version of this one; `unauthorized` and `forbidden`, with what to set.
    pub async fn connect(address: Address, key: Option<Key>, user: Option<String>) -> Result<Self, Error> {
        Self::connect_within(READING, address, key, user).await
    }

    /// The same with another patience: how long an answer may take to begin, and each piece of it to come.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn connect_within(
        patience: Duration,
        address: Address,
        key: Option<Key>,
        user: Option<String>,
    ) -> Result<Self, Error> {
        let wire = HttpTransport::new(address, key, patience)?;
        wire.handshake().await.map_err(TransportError::error)?;
        let (link, heard) = (Link::new(), EventBuffer::new());
        let inner = Inner { wire, link, heard, catalogue: Mutex::new(None) };
        Ok(Self {
            inner: Arc::new(inner),
            user,
            following: OnceLock::new(),
            deciding: PendingDecisions::default(),
        })
    }

    /// Where the service is.
    #[must_use]
    pub fn address(&self) -> &Address {
        self.inner.wire.address()
    }

    /// Holds the stream of news from the first time on that anybody wants them: there is one for all.
    fn follow(&self) {
        self.following.get_or_init(|| tokio::spawn(news::follow(Arc::clone(&self.inner))).abort_handle());
    }

    /// The state of the connection, and every change of that.
    #[must_use]
    pub fn states(&self) -> watch::Receiver<ConnectionState> {
        self.inner.link.states()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some(following) = self.following.get() {
            following.abort();
        }
    }
}
