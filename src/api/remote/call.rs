//! Operations called by name: arguments out, an answer or an error back, and how often a question is repeated.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::Inner;
use super::transport::TransportError;
use crate::{Code, Error};

/// Pauses before something that may be sent again is.
const AGAIN: [Duration; 3] = [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];
/// Maximum delay for a busy service before its error is returned.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(5);
/// How long something that was sent with a key waits for a connection to be sent again.
const WAITED: Duration = Duration::from_secs(120);
/// Longer than anything takes that comes to an end.
pub const PATIENT: Duration = Duration::from_secs(24 * 3600);

/// Arguments of an operation.
pub type Arguments = Map<String, Value>;

/// JSON of an object as arguments.
pub fn arguments(value: Value) -> Arguments {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// A value as arguments.
///
/// # Errors
/// `internal_error` for one that is not an object.
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
    /// Asks something that changes nothing, or nothing more when it is asked again: once more where the connection
    /// broke.
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

    /// Sends something that must not happen twice: again only where nothing was sent.
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

    /// The same, with its outcome.
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

    /// Sends something with a key, by which the service knows it again: what is repeated is executed once.
    /// Where the connection is known to be lost nothing is sent; where an answer is lost it is sent again
    /// when the connection is back, within [`WAITED`].
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

    /// One question, and again where the service was busy.
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

/// An error for a request that may or may not have been executed.
pub fn unknown(error: &Error, advice: &str) -> Error {
    let message = format!("{}; the outcome is unknown: {advice}", error.message);
    Error { message, ..error.clone() }
}
