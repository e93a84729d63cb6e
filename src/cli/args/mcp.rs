//! Arguments of `skills mcp`.

use clap::Args;

use super::value_parsers::parse_name;
use skills_api::operations::Scope;

/// `skills mcp`
#[derive(Debug, Args)]
#[command(after_help = "The client starts this command itself. Add it to the client's settings, e.g.\n\n  \
    {\"mcpServers\": {\"skills\": {\"command\": \"skills\", \"args\": [\"mcp\"]}}}\n\n\
    Standard output carries only the protocol. The log is written to its file and, with -v, to standard error.")]
pub struct McpArgs {
    /// Use this session instead of a new one per connection.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Also offer the runtime tools under their old names: `list_skills`, `read_skill`,
    /// `read_skill_resource`.
    #[arg(long)]
    pub compat: bool,
    /// Scopes of the client.
    #[arg(
        long = "scope",
        value_name = "SCOPE",
        value_delimiter = ',',
        value_parser = parse_name::<Scope>(&["read", "run", "decide", "admin"]),
        default_value = "read,run,decide"
    )]
    pub scopes: Vec<Scope>,
}
