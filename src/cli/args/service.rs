//! Arguments of the commands that run a service, or concern one.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::value_parsers::{integer, integer_from, port};
use skills_api::Origin;
use skills_api::operations::Scope;

/// `skills serve`
#[derive(Debug, Args)]
#[command(after_help = "On loopback, authentication is disabled unless a key is configured. Use a reverse \
        proxy for TLS.")]
pub struct ServeArgs {
    /// Address or host name to listen on; a non-loopback address requires a key, or --allow-open.
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Port; 0 uses a free port and prints it.
    #[arg(long, value_name = "PORT", default_value_t = 8080, value_parser = port)]
    pub port: u16,
    /// API key with all scopes. It is visible in the process list; prefer `SKILLS_API_KEY` or --keys-file.
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<String>,
    /// File of API keys, each with a name and scopes; `skills keys new` creates them.
    #[arg(long = "keys-file", alias = "key-file", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Maximum number of requests per window and key, or per address without a key [default: unlimited].
    #[arg(long, value_name = "COUNT", value_parser = integer_from(1_u64))]
    pub rate_limit_requests: Option<u64>,
    /// Length of the rate limit window in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
        value_parser = integer(1_u64, 86_400))]
    pub rate_limit_window_seconds: u64,
    /// Allow cross-origin requests from this origin, e.g. `https://docs.example` (repeatable) [default:
    /// none].
    #[arg(long, value_name = "ORIGIN", value_parser = |text: &str| Origin::parse(text).map_err(|wrong| wrong.message))]
    pub cors: Vec<Origin>,
    /// Maximum number of connections. At the limit, a new connection replaces another one, or waits.
    #[arg(long, value_name = "COUNT", default_value_t = 4096,
        value_parser = integer(1_u32, 100_000))]
    pub max_connections: u32,
    /// Maximum number of connections from one address (IPv6: from its /64 network). At the limit, a new connection
    /// replaces another connection from that address, or is closed [default: half of --max-connections].
    #[arg(long, value_name = "COUNT", value_parser = integer(1_u32, 100_000))]
    pub max_connections_per_address: Option<u32>,
    /// Maximum number of MCP sessions over HTTP. At the limit, a new session replaces one without a handshake,
    /// or an idle one.
    #[arg(long, value_name = "COUNT", default_value_t = 1024,
        value_parser = integer(1_u32, 100_000))]
    pub max_mcp_sessions: u32,
    /// Maximum number of MCP sessions over HTTP per key, or of all callers if authentication is disabled.
    #[arg(long, value_name = "COUNT", default_value_t = 256,
        value_parser = integer(1_u32, 100_000))]
    pub max_mcp_sessions_per_key: u32,
    /// Allow a non-loopback address without authentication.
    #[arg(long)]
    pub allow_open: bool,
}

/// `skills openapi`
#[derive(Debug, Args)]
pub struct OpenapiArgs {
    /// Compare this file with the document instead of printing; exits with 1 if they differ.
    #[arg(long, value_name = "FILE")]
    pub check: Option<PathBuf>,
}

/// `skills verify`
#[derive(Debug, Args)]
#[command(after_help = "Exits with 1 if a check fails. Checks that cannot be run because there is no \
    API key, it lacks a scope, or the rate limit is exhausted are reported and do not fail. `controls` exceeds the rate limit deliberately.")]
pub struct VerifyArgs {
    /// Group of checks to run.
    #[arg(value_name = "CHECKS")]
    pub verifier: Verifier,
    /// Address of the service.
    #[arg(
        long,
        value_name = "URL",
        help = "Address of the service [default: that of --connect, or http://127.0.0.1:8080]"
    )]
    pub url: Option<String>,
}

/// What can be made sure of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verifier {
    /// HTTP and MCP of the service return the same results.
    Adapters,
    /// Authentication, limits and error format.
    Controls,
    /// The service returns the same results as this program with the local skills.
    Parity,
}

/// `skills keys`
#[derive(Debug, Args)]
pub struct KeysArgs {
    #[command(subcommand)]
    pub action: KeysAction,
}
#[derive(Debug, Subcommand)]
pub enum KeysAction {
    /// Create a key and print it once, with the line for the keys file.
    New(NewKeyArgs),
}

/// `skills keys new`
#[derive(Debug, Args)]
pub struct NewKeyArgs {
    /// Name of the principal, under which runs and decisions are recorded.
    pub name: String,
    /// Scopes of the key, separated by commas: read, run, decide, admin.
    #[arg(long, value_name = "SCOPES", default_value = "read", value_parser = skills_api::scopes)]
    pub scopes: Scopes,
}

/// Several scopes as one value.
pub type Scopes = BTreeSet<Scope>;
