//! The remote core: every call is an operation of the table, sent over HTTP, over a connection that is re-established
//! when it is lost.

mod address;
mod call;
mod client;
mod commands;
mod connection;
mod event_buffer;
mod event_stream;
mod launches;
mod operator_client;
mod run_client;
mod session_client;
mod stream;
mod transport;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;

use self::commands::CommandSender;
use self::connection::ServiceConnection;
use self::event_buffer::EventBuffer;
use self::launches::LaunchSender;
use self::transport::{HttpTransport, READING, TransportError};
use super::{ConnectionState, Error};
use skills_base::sync::MutexExt as _;
use skills_registry::Catalog;

pub use address::{Address, KEY_VARIABLE, Key};

/// The core of a remote service.
///
/// Read-only calls are retried once if the connection was lost. Commands are refused while the service cannot be reached.
/// Launches carry an idempotency key, decisions the digest of what was reviewed, so that neither is ever executed twice;
/// if the response to a decision is lost, the run is read before anything is sent again. Waiting for events or for the end of a run continues through any outage.
pub struct Remote {
    inner: Arc<Inner>,
    commands: CommandSender,
    launches: LaunchSender,
    /// The user's own views of runs: name and filter.
    views: BTreeMap<String, String>,
    following: OnceLock<AbortHandle>,
}

/// State shared by its tasks.
struct Inner {
    wire: HttpTransport,
    link: ServiceConnection,
    /// Events of runs, from the event stream.
    event_buffer: EventBuffer,
    catalog: Mutex<Option<Arc<Catalog>>>,
}

impl Inner {
    fn cached_catalog(&self) -> MutexGuard<'_, Option<Arc<Catalog>>> {
        self.catalog.locked()
    }
}

impl Remote {
    /// Connects to a service, and checks that it is one of this version that accepts the caller.
    ///
    /// # Errors
    /// Returns `upstream_failure` if the service does not respond; `invalid_configuration` for another program or
    /// another version of this one; `unauthorized` and `forbidden`, with what to set.
    pub async fn connect(address: Address, key: Option<Key>, user: Option<String>) -> Result<Self, Error> {
        Self::connect_within(READING, address, key, user).await
    }

    /// Like [`Self::connect`] with another timeout for the start of a response, and for each piece of it.
    pub async fn connect_within(
        patience: Duration,
        address: Address,
        key: Option<Key>,
        user: Option<String>,
    ) -> Result<Self, Error> {
        let wire = HttpTransport::new(address, key, patience)?;
        wire.handshake().await.map_err(TransportError::error)?;
        let (link, event_buffer) = (ServiceConnection::new(), EventBuffer::new());
        let inner = Arc::new(Inner { wire, link, event_buffer, catalog: Mutex::new(None) });
        let commands = CommandSender { inner: Arc::clone(&inner), user: user.clone() };
        let launches = LaunchSender { inner: Arc::clone(&inner), user };
        Ok(Self { inner, commands, launches, views: BTreeMap::new(), following: OnceLock::new() })
    }

    /// Adds views of runs to those of the service.
    #[must_use]
    pub fn with_views(mut self, views: BTreeMap<String, String>) -> Self {
        self.views = views;
        self
    }

    /// Returns the address of the service.
    pub fn address(&self) -> &Address {
        self.inner.wire.address()
    }

    /// Starts the event stream at the first use; all subscribers share it.
    fn follow(&self) {
        self.following
            .get_or_init(|| tokio::spawn(event_stream::follow(Arc::clone(&self.inner))).abort_handle());
    }

    /// Subscribes to the state of the connection.
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
