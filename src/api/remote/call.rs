//! Calls operations by name: serializes arguments, returns the result or error, and retries where that is safe.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::Inner;
use super::transport::TransportError;
use crate::{Code, Error};

/// Pauses before a command with an idempotency key is sent again.
const RETRY_PAUSES: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];
/// Maximum delay for a busy service before its error is returned.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(5);
/// How long a command with an idempotency key and a lost response waits for the connection before it is sent again.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout of calls that may take arbitrarily long.
pub const LONG_CALL_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Arguments of an operation.
pub type Arguments = Map<String, Value>;

/// Returns a JSON object as arguments.
pub fn arguments(value: Value) -> Arguments {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Serializes a value to arguments.
///
/// # Errors
/// Returns `internal_error` if it is not an object.
pub fn to_arguments(value: &impl serde::Serialize) -> Result<Arguments, Error> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Error::new(Code::InternalError, "the arguments are not an object")),
        Err(error) => {
            Err(Error::new(Code::InternalError, format!("cannot serialize the arguments: {error}")))
        }
    }
}

impl Inner {
    /// Calls an operation that is read-only or idempotent; retries once if the connection was lost.
    pub async fn ask<R: DeserializeOwned>(
        &self,
        name: &'static str,
        arguments: Arguments,
    ) -> Result<R, Error> {
        match self.once(name, arguments.clone(), self.wire.reading()).await {
            Err(TransportError::NotSent(error) | TransportError::ResponseLost(error))
                if error.code != Code::UpstreamTimeout =>
            {
                tracing::debug!("retrying {name}: {error}");
                self.once(name, arguments, self.wire.reading()).await.map_err(TransportError::error)
            }
            answer => answer.map_err(TransportError::error),
        }
    }

    /// Executes a command: see [`Self::command`].
    pub async fn execute<R: DeserializeOwned>(
        &self,
        name: &'static str,
        arguments: Arguments,
    ) -> Result<R, Error> {
        match self.command(name, arguments, self.wire.reading()).await {
            Err(TransportError::ResponseLost(error)) => {
                Err(error.outcome_unknown("check the result before repeating it"))
            }
            answer => answer.map_err(TransportError::error),
        }
    }

    /// Sends a command once. It is refused while the service cannot be reached: nothing is queued, because an approval
    /// must not take effect late.
    pub async fn command<R: DeserializeOwned>(
        &self,
        name: &'static str,
        arguments: Arguments,
        patience: Duration,
    ) -> Result<R, TransportError> {
        let answer = match self.link.lost_reason() {
            Some(why) => Err(TransportError::NotSent(self.wire.unreachable(why))),
            None => self.once(name, arguments, patience).await,
        };
        answer.map_err(|error| match error {
            TransportError::NotSent(Error { message, code, suggestions, reason }) => {
                let message = format!("{message} (the request was not sent; repeat it when connected)");
                TransportError::NotSent(Error { code, message, suggestions, reason })
            }
            error => error,
        })
    }

    /// Executes a command with an idempotency key, so that it is executed once although it is sent again: if its
    /// response is lost, when the connection is back, within [`WAIT_TIMEOUT`].
    pub async fn surely<R: DeserializeOwned>(
        &self,
        name: &'static str,
        arguments: Arguments,
        patience: Duration,
    ) -> Result<R, TransportError> {
        let end = Instant::now() + WAIT_TIMEOUT;
        let mut sent = false;
        let mut pauses = RETRY_PAUSES.into_iter();
        loop {
            let reconnects = self.link.reconnect_count();
            let answer = if sent {
                self.once(name, arguments.clone(), patience).await
            } else {
                self.command(name, arguments.clone(), patience).await
            };
            let error = match answer {
                Err(TransportError::ResponseLost(error)) => error,
                Err(TransportError::NotSent(error)) if sent => error,
                answer => return answer,
            };
            sent = true;
            tracing::debug!("retrying {name} with the same idempotency key: {error}");
            if let Some(pause) = pauses.next().filter(|_| self.link.lost_reason().is_none()) {
                tokio::time::sleep(pause).await;
                continue;
            }
            let finding = self.link.reconnect(&self.wire, reconnects, &error, 0);
            if tokio::time::timeout_at(end, finding).await.is_err() {
                return Err(TransportError::ResponseLost(error));
            }
        }
    }

    /// Calls once, and again if the service was busy.
    pub async fn once<R: DeserializeOwned>(
        &self,
        name: &'static str,
        arguments: Arguments,
        patience: Duration,
    ) -> Result<R, TransportError> {
        for _ in 0..2 {
            match self.wire.ask(name, arguments.clone(), patience).await {
                Err(TransportError::RateLimited(error, pause)) if pause <= MAX_RETRY_PAUSE => {
                    tracing::debug!("{name}: {error}");
                    tokio::time::sleep(pause).await;
                }
                answer => return answer,
            }
        }
        self.wire.ask(name, arguments, patience).await
    }
}
