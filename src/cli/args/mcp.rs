//! Arguments of `skills mcp`.

use clap::Args;

use super::words::words;
use skills_api::operations::Scope;

/// `skills mcp`
#[derive(Debug, Args)]
#[command(
    after_help = "A client starts this program by itself: name it in the client's settings, e.g.\n\n  \
    {\"mcpServers\": {\"skills\": {\"command\": \"skills\", \"args\": [\"mcp\"]}}}\n\n\
    Standard output carries the protocol alone; the log goes to its file, with -v to standard error too."
)]
pub struct McpArgs {
    /// Go on with this session instead of a new one per connection.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Offer the runtime tools under their older names too: `list_skills`, `read_skill`, `read_skill_resource`.
    #[arg(long)]
    pub compat: bool,
    /// What the client may do: read, run, decide, admin.
    #[arg(
        long = "scope",
        value_name = "SCOPE",
        value_delimiter = ',',
        value_parser = words::<Scope>(&["read", "run", "decide", "admin"]),
        default_value = "read,run,decide"
    )]
    pub scopes: Vec<Scope>,
}
