//! How a binding carries a call out: through a script, over HTTP, JSON-RPC or MCP, or by a function of this program.

pub(super) mod request;
