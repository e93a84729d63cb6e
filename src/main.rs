//! The `skills` binary: runs a command, the workbench, the HTTP service or the MCP server.

mod start {
    //! Starts the adapters, which do not depend on each other.

    pub mod http;
    pub mod mcp;
    pub mod workbench;
}

use mimalloc::MiMalloc;
use skills_cli::Adapters;

/// Returns freed memory to the system; the C library's allocator keeps it after a scan.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> std::process::ExitCode {
    // The process that isolates a script must do so before any thread starts or file is opened.
    if let Some(code) = skills_sandbox::helper_entry() {
        return code;
    }
    skills_cli::main(Adapters {
        workbench: start::workbench::open,
        serve: start::http::serve,
        mcp: start::mcp::serve,
        settings_problems: start::workbench::settings_problems,
        openapi_document: skills_http::document_text,
    })
}
