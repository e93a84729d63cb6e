//! Messages of server errors, with what to do. None contains the password: neither the library nor the server repeats
//! it.

use std::error::Error as _;

use tokio_postgres::error::SqlState;

use super::tx::is_of_connection;
use crate::{StoreError, Unavailability};

/// How to handle an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The transaction conflicted with another one and can be retried.
    Again,
    /// The connection or the server was lost.
    Lost,
    /// The store cannot be used, for this reason.
    Unusable(Unavailability),
    /// The statement failed.
    Failed,
}

pub(super) fn kind(error: &tokio_postgres::Error) -> Kind {
    let Some(state) = error.code() else {
        return if is_of_connection(error) { Kind::Lost } else { Kind::Failed };
    };
    match *state {
        // A contract that was purged between its lookup and the launch is stored again by the next attempt.
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::FOREIGN_KEY_VIOLATION => Kind::Again,
        SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN | SqlState::CANNOT_CONNECT_NOW => Kind::Lost,
        SqlState::TOO_MANY_CONNECTIONS
        | SqlState::QUERY_CANCELED
        | SqlState::LOCK_NOT_AVAILABLE
        | SqlState::OUT_OF_MEMORY => Kind::Unusable(Unavailability::Busy),
        SqlState::DISK_FULL => Kind::Unusable(Unavailability::DiskFull),
        SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::INSUFFICIENT_PRIVILEGE => {
            Kind::Unusable(Unavailability::ReadOnly)
        }
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => Kind::Unusable(Unavailability::Damaged),
        SqlState::IO_ERROR => Kind::Unusable(Unavailability::Io),
        SqlState::INVALID_PASSWORD
        | SqlState::INVALID_AUTHORIZATION_SPECIFICATION
        | SqlState::INVALID_CATALOG_NAME
        | SqlState::UNDEFINED_TABLE
        | SqlState::INVALID_SCHEMA_NAME => Kind::Unusable(Unavailability::Unopenable),
        // 08: connection exceptions.
        ref other if other.code().starts_with("08") => Kind::Lost,
        _ => Kind::Failed,
    }
}

/// Returns the server's message, or the library's with its cause.
fn describe_error(error: &tokio_postgres::Error) -> String {
    if let Some(answer) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", answer.message(), answer.code().code());
    }
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

pub(super) fn failed(action: &str, error: &tokio_postgres::Error) -> StoreError {
    let (action, words) = (action.to_owned(), describe_error(error));
    let (cause, advice) = match kind(error) {
        Kind::Failed | Kind::Again => return StoreError::Failed { action, reason: words },
        Kind::Lost => (Unavailability::Io, "the connection to the database was lost; is the server running?"),
        Kind::Unusable(cause) => (
            cause,
            match cause {
                Unavailability::Busy => "the database did not answer in time; try again, or reduce its load",
                Unavailability::DiskFull => {
                    "the disk of the database is full; nothing recorded before is lost. Free some space, \
                        then try again"
                }
                Unavailability::ReadOnly => {
                    "the database does not accept writes from this user; connect to the primary, or grant \
                        the privileges"
                }
                Unavailability::Damaged => {
                    "the database is damaged; see the server log, and restore a backup"
                }
                Unavailability::Io => "a read or write of the database failed; see the server log",
                _ => "the database cannot be opened; check user, password, database and schema",
            },
        ),
    };
    StoreError::Unavailable { cause, action, reason: format!("{advice} ({words})") }
}

/// Converts the error of a pool that did not provide a connection.
pub(super) fn no_connection(place: &str, error: &deadpool_postgres::PoolError) -> StoreError {
    use deadpool_postgres::PoolError;
    let action = format!("connect to {place}");
    match error {
        PoolError::Backend(error) if error.code().is_none() && is_of_connection(error) => {
            StoreError::Unavailable {
                cause: Unavailability::Io,
                action,
                reason: format!("cannot reach the server; is it running? ({})", describe_error(error)),
            }
        }
        PoolError::Backend(error) => match failed(&action, error) {
            StoreError::Failed { action, reason } => {
                StoreError::Unavailable { cause: Unavailability::Unopenable, action, reason }
            }
            unavailable => unavailable,
        },
        _ => StoreError::Unavailable {
            cause: Unavailability::Busy,
            action,
            reason: "all connections are in use, or the server did not answer in time; try again, or set a larger \
                    pool_size in the address of the store"
                .to_owned(),
        },
    }
}
