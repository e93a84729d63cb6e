//! How a service is reached, as a person's own configuration says; never as a bundle says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A configured service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it is.
    pub reach: Reach,
    /// Longest wait for an answer, where it is shorter than the step's own time.
    pub timeout: Option<Duration>,
}

/// Where a service is. Values of `headers` and `env` may name variables of the program's own environment
/// (`Bearer ${API_KEY}`), so that no secret has to be in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// An HTTP address: for `openapi`, `openrpc`, and MCP over streamable HTTP.
    Http {
        /// `http://` or `https://`, without query and fragment; operations are appended to its path.
        url: String,
        /// Sent with each request.
        headers: BTreeMap<String, String>,
    },
    /// A program started for as long as it is needed: an MCP server that speaks on stdin and stdout.
    Command {
        /// A path, or a name looked for along `PATH`.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its variables, beside `PATH`, `HOME`, `TMPDIR` and the language.
        env: BTreeMap<String, String>,
    },
    /// A script, run in the sandbox: what executes `script` bindings whose file is not in their own bundle.
    Script {
        /// The folder that has `scripts/`.
        bundle: PathBuf,
        /// The file, relative to it.
        script: PathBuf,
    },
}
