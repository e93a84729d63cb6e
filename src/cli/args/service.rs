//! Arguments of the commands that make a service of the core, and of those about it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use skills_api::Origin;
use skills_api::operations::Scope;

/// `skills serve`
#[derive(Debug, Args)]
#[command(
    after_help = "On loopback no key is required unless one is configured. TLS is the work of a proxy in front."
)]
pub struct ServeArgs {
    /// Address or name to listen at; one beyond this machine needs a key.
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Port; 0 takes a free one and says which.
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub port: u16,
    /// A key that may do everything. The process list shows it: better `SKILLS_API_KEY` or --key-file.
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<String>,
    /// A file of keys, each with a name and scopes; skills keys new makes them.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Requests that a key, or an address without one, may send in a window; no limit where absent.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub rate_limit_requests: Option<u64>,
    /// Length of a window in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub rate_limit_window_seconds: u64,
    /// Let pages of this origin call, as a browser writes it: `https://docs.example`. Several times for several; no
    /// page of another origin may, unless said.
    #[arg(long, value_name = "ORIGIN", value_parser = |text: &str| Origin::parse(text).map_err(|wrong| wrong.message))]
    pub cors: Vec<Origin>,
    /// Connections at once. A new one beyond them takes the place of an idle one, or waits.
    #[arg(long, value_name = "COUNT", default_value_t = 4096,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_connections: u32,
    /// MCP sessions at once over HTTP. A new one beyond them ends one without a handshake, or an idle one.
    #[arg(long, value_name = "COUNT", default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_mcp_sessions: u32,
    /// MCP sessions at once over HTTP of one key, or of all callers where no keys are asked for.
    #[arg(long, value_name = "COUNT", default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_mcp_sessions_per_key: u32,
    /// Answer beyond this machine without asking anybody for a key.
    #[arg(long)]
    pub allow_open: bool,
}

/// `skills openapi`
#[derive(Debug, Args)]
pub struct OpenapiArgs {
    /// Compare this copy with it instead; exits with 1 where they differ.
    #[arg(long, value_name = "FILE")]
    pub check: Option<PathBuf>,
}

/// `skills verify`
#[derive(Debug, Args)]
#[command(after_help = "Exits with 1 when something does not hold; what could not be tried, because the \
                  key lacks a scope or the limit of requests is used up, is said and fails nothing. `controls` meets the limit of requests on purpose.")]
pub struct VerifyArgs {
    /// What to make sure of.
    pub verifier: Verifier,
    /// Where the service is.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
}

/// What can be made sure of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verifier {
    /// HTTP and MCP of the service answer alike.
    Adapters,
    /// Keys, limits and the shape of errors.
    Controls,
    /// The service answers as this program does over the skills here.
    Parity,
}

/// `skills keys`
#[derive(Debug, Args)]
pub struct KeysArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: KeysAction,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub enum KeysAction {
    /// Make a key: it is shown once, with the line that a key file keeps of it.
    New(NewKeyArgs),
}

/// `skills keys new`
#[derive(Debug, Args)]
pub struct NewKeyArgs {
    /// The principal's name: runs and decisions are recorded under it.
    pub name: String,
    /// What the key may do: read, run, decide, admin, with commas between.
    #[arg(long, value_name = "SCOPES", default_value = "read", value_parser = skills_api::scopes)]
    pub scopes: Scopes,
}

/// Several scopes as one value.
pub type Scopes = BTreeSet<Scope>;
