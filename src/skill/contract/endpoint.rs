//! How a service is reached: always from the user's configuration, never from a bundle.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A configured service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Address or program of the service.
    pub reach: ServiceTarget,
    /// Maximum wait for an answer, if it is shorter than the step's timeout.
    pub timeout: Option<Duration>,
}

/// How to reach a service. Values of `headers` and `env` may refer to environment variables of this process (`Bearer
/// ${API_KEY}`), so that no secret has to be in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceTarget {
    /// An HTTP address: for `openapi`, `openrpc`, and MCP over streamable HTTP.
    Http {
        /// `http://` or `https://`, without query and fragment; operations are appended to its path.
        url: String,
        /// Sent with each request.
        headers: BTreeMap<String, String>,
    },
    /// A program that runs while it is needed: an MCP server over stdin and stdout.
    Command {
        /// A path, or a name that is searched in `PATH`.
        program: String,
        args: Vec<String>,
        /// Its environment variables, in addition to `PATH`, `HOME`, `TMPDIR` and the locale.
        env: BTreeMap<String, String>,
        /// The folder that it is started in: a relative path in `args` never names a file of a repository in which the
        /// workbench was opened.
        directory: PathBuf,
    },
    /// A script in the sandbox: it executes `script` bindings whose file is not in their own bundle.
    Script {
        /// The folder that contains `scripts/`.
        bundle: PathBuf,
        /// The file, relative to `bundle`.
        script: PathBuf,
    },
}
