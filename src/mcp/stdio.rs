//! The server over standard input and output, for the client that started this process.

use std::future::Future;
use std::time::Duration;

use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{QuitReason, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::{Transport, io};
use rmcp::{RoleServer, serve_server};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use super::oversized::InspectedReader;
use super::server::{Server, Settings};
use skills_api::operations::Service;
use skills_api::{Code, Error};

/// Maximum size of a message in bytes.
const MAX_MESSAGE_BYTES: usize = 2 << 20;

/// Grace period for calls in progress after the client has disconnected.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// Serves the client on standard input and output until it disconnects, or the settings' `leave` fires. Nothing else
/// may write to standard output meanwhile.
///
/// # Errors
/// Returns `internal_error` if standard output is closed or the connection fails.
pub async fn serve(service: Service, settings: Settings) -> Result<(), Error> {
    let leave = settings.leave.clone();
    let server = Server::new(service, settings);
    let served = until_end(server.clone(), &leave).await;
    leave.cancel();
    if tokio::time::timeout(SHUTDOWN_GRACE, server.quiet()).await.is_err() {
        tracing::warn!("aborted calls that did not end within {} s", SHUTDOWN_GRACE.as_secs());
    }
    served
}

async fn until_end(server: Server, leave: &CancellationToken) -> Result<(), Error> {
    let (input, output) = io::stdio();
    let (input, oversized) = InspectedReader::new(input, MAX_MESSAGE_BYTES);
    let transport = LenientTransport {
        inner: AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE_BYTES),
        oversized,
        started: false,
    };
    let broken = |what: &str| Error::new(Code::InternalError, format!("MCP connection lost: {what}"));
    let running = tokio::select! {
        running = serve_server(server, transport) => running,
        () = leave.cancelled() => return Ok(()),
    };
    let running = match running {
        Ok(running) => running,
        // No request was sent: the client only checked whether the program starts.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(broken(&error.to_string())),
    };
    let end = running.cancellation_token();
    let ended = running.waiting();
    tokio::pin!(ended);
    let reason = tokio::select! {
        reason = &mut ended => reason,
        () = leave.cancelled() => {
            end.cancel();
            ended.await
        }
    };
    match reason {
        Ok(QuitReason::JoinError(error)) => Err(broken(&error.to_string())),
        Ok(_) => Ok(()),
        Err(error) => Err(broken(&error.to_string())),
    }
}

/// A transport that tolerates two errors of clients: it skips messages before the first request, at which the protocol
/// library would end the server, and rejects a request that is too long, which the library would leave unanswered.
struct LenientTransport<T> {
    inner: T,
    oversized: Receiver<Option<RequestId>>,
    started: bool,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for LenientTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = tokio::select! {
                biased;
                Some(request) = self.oversized.recv() => {
                    let message = format!("the message has more than {MAX_MESSAGE_BYTES} bytes (2 MiB)");
                    let refused = ErrorData::invalid_request(message, None);
                    // In a task: this future may be dropped at any time, an answer that is started must be completed.
                    tokio::spawn(self.inner.send(JsonRpcMessage::error(refused, request)));
                    continue;
                }
                message = self.inner.receive() => message?,
            };
            if self.started || matches!(message, JsonRpcMessage::Request(_)) {
                self.started = true;
                return Some(message);
            }
            tracing::warn!("ignoring a message before the first request");
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
