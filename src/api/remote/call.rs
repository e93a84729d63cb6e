//! Calls operations by name: serializes arguments, returns the result or error, and retries where that is safe.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::Inner;
use super::transport::TransportError;
use crate::{Code, Error};

/// Pauses before retries.
const AGAIN: [Duration; 3] = [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];
/// Maximum delay for a busy service before its error is returned.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(5);
/// How long a call with an idempotency key waits for the connection before it is sent again.
const WAITED: Duration = Duration::from_secs(120);
/// Timeout of calls that may take arbitrarily long.
pub const PATIENT: Duration = Duration::from_secs(24 * 3600);

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
pub fn written(value: &impl serde::Serialize) -> Result<Arguments, Error> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Error::new(Code::InternalError, "arguments that are not an object")),
        Err(error) => {
            Err(Error::new(Code::InternalError, format!("arguments that cannot be written: {error}")))
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
            Err(TransportError::Unsent(error) | TransportError::Lost(error))
                if error.code != Code::UpstreamTimeout =>
            {
                tracing::debug!("retrying {name}: {error}");
                self.once(name, arguments, self.wire.reading()).await.map_err(TransportError::error)
            }
            answer => answer.map_err(TransportError::error),
        }
    }

    /// Calls an operation that must not be executed twice; retries only if nothing was sent.
    pub async fn tell<R: DeserializeOwned>(
        &self,
        name: &'static str,
        arguments: Arguments,
    ) -> Result<R, Error> {
        match self.call_with_outcome(name, arguments, self.wire.reading()).await {
            Err(TransportError::Lost(error)) => Err(unknown(&error, "check the result before repeating it")),
            answer => answer.map_err(TransportError::error),
        }
    }

    /// Like [`Self::tell`], distinguishing the kinds of errors.
    pub async fn call_with_outcome<R: DeserializeOwned>(
        &self,
        name: &'static str,
        arguments: Arguments,
        patience: Duration,
    ) -> Result<R, TransportError> {
        for pause in AGAIN {
            match self.once(name, arguments.clone(), patience).await {
                Err(TransportError::Unsent(error)) => {
                    tracing::debug!("retrying {name}: {error}");
                    tokio::time::sleep(pause).await;
                }
                answer => return answer,
            }
        }
        self.once(name, arguments, patience).await
    }

    /// Calls an operation with an idempotency key: repeated calls are executed once. While the connection is known to
    /// be lost nothing is sent; if a response is lost, the call is sent again when the connection is back, within
    /// [`WAITED`].
    pub async fn surely<R: DeserializeOwned>(
        &self,
        name: &'static str,
        arguments: Arguments,
        patience: Duration,
    ) -> Result<R, TransportError> {
        if let Some(why) = self.link.given_up() {
            let message = format!("{why}; the request was not sent; try again when connected");
            let address = self.wire.address();
            return Err(TransportError::Unsent(Error::service_unreachable(
                Code::UpstreamFailure,
                address,
                message,
            )));
        }
        let end = Instant::now() + WAITED;
        let mut sent = false;
        let mut pauses = AGAIN.into_iter();
        loop {
            let times = self.link.times();
            let error = match self.once(name, arguments.clone(), patience).await {
                Err(TransportError::Unsent(error)) => error,
                Err(TransportError::Lost(error)) => {
                    sent = true;
                    error
                }
                answer => return answer,
            };
            tracing::debug!("retrying {name} with the same idempotency key: {error}");
            let given_up = self.link.given_up().is_some();
            match pauses.next().filter(|_| !given_up) {
                Some(pause) => tokio::time::sleep(pause).await,
                None if !sent => return Err(TransportError::Unsent(error)),
                None => {
                    let finding = self.link.find(&self.wire, times, &error, 0);
                    if tokio::time::timeout_at(end, finding).await.is_err() {
                        return Err(TransportError::Lost(error));
                    }
                }
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
                Err(TransportError::Busy(error, pause)) if pause <= MAX_RETRY_PAUSE => {
                    tracing::debug!("{name}: {error}");
                    tokio::time::sleep(pause).await;
                }
                answer => return answer,
            }
        }
        self.wire.ask(name, arguments, patience).await
    }
}

/// Returns the error for a request that may or may not have been executed.
pub fn unknown(error: &Error, advice: &str) -> Error {
    let message = format!("{}; the outcome is unknown: {advice}", error.message);
    Error { message, ..error.clone() }
}
