//! `skills serve`: serves the core over HTTP, with workers in this process, until a shutdown signal.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use skills_api::operations::Service;
use skills_api::{Code, Error, Local, RateLimit};
use skills_base::private_files;
use skills_cli::{Context, Exit, Failure, ServeArgs, invocation};
use skills_config::{Invocation, quoted};
use skills_http::{Authenticator, Server, ServiceKeys, Settings, Timeouts};
use skills_mcp::{HttpSettings, SessionLimits};
use skills_skill::safe_text;

/// The environment variable for the API key.
const KEY: &str = "SKILLS_API_KEY";

/// Serves until SIGINT or SIGTERM.
pub fn serve(cx: &mut Context, args: &ServeArgs) -> Result<Exit, Failure> {
    let config = cx.config()?;
    let keys = keys(cx, args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new(Code::InternalError, format!("cannot start the async runtime: {e}")))?;
    let address = runtime.block_on(resolved(args))?;
    if !address.ip().is_loopback() && keys.is_empty() && !args.allow_open {
        return Err(Error::new(
            Code::InvalidConfiguration,
            format!(
                "{address} is reachable from other machines without authentication; set {KEY} or \
                    --keys-file, or pass --allow-open"
            ),
        )
        .into());
    }
    let window_seconds = args.rate_limit_window_seconds;
    let limit = args.rate_limit_requests.map(|requests| RateLimit { requests, window_seconds });
    let local = Arc::new(Local::open(config)?);
    // Fail at startup rather than reject every write: launches and decisions must be recorded.
    runtime.block_on(local.store().require_writable())?;
    let called = invocation(&cx.global, None);
    print_notices(&local, &called);
    let served = runtime.block_on(listen(cx, &local, address, keys, limit, args));
    // From here on, a signal ends the process at once, whatever is still running.
    runtime.spawn(async {
        shutdown_signal().await;
        std::process::exit(130);
    });
    // Release the leases of this process so that other workers can claim its runs at once.
    runtime.block_on(local.stop_workers());
    print_notices(&local, &called);
    drop(local);
    runtime.shutdown_background();
    served
}

fn print_notices(local: &Local, called: &Invocation) {
    for notice in local.take_notices() {
        eprintln!("skills: {}", safe_text::line(&called.completed_in(&notice)));
    }
}

async fn listen(
    cx: &mut Context,
    local: &Arc<Local>,
    address: SocketAddr,
    keys: ServiceKeys,
    limit: Option<RateLimit>,
    args: &ServeArgs,
) -> Result<Exit, Failure> {
    let (authenticator, cors) = (keys, args.cors.clone());
    let keys = authenticator.len();
    let authenticator = (keys > 0).then(|| Arc::new(authenticator) as Arc<dyn Authenticator>);
    let service = Service { core: Arc::clone(local) as _, sessions: Arc::clone(local) as _ };
    let end = CancellationToken::new();
    let mcp = HttpSettings {
        any_host: keys > 0 || !address.ip().is_loopback(),
        origins: cors.iter().map(|origin| origin.as_str().to_owned()).collect(),
        limits: SessionLimits {
            total: args.max_mcp_sessions as usize,
            per_principal: args.max_mcp_sessions_per_key as usize,
            ..SessionLimits::default()
        },
        stop: end.child_token(),
    };
    let more = skills_mcp::routes(service.clone(), mcp);
    let limiter = match limit {
        Some(limit) => Some(local.limiter(limit).await?),
        None => None,
    };
    let connections = connections(args.max_connections as usize, raised_file_limit());
    let per_address =
        args.max_connections_per_address.map_or_else(|| connections.div_ceil(2), |limit| limit as usize);
    let patience = Timeouts { connections, per_address, ..Timeouts::default() };
    let settings = Settings { authenticator, limiter, metrics: local.recorder(), patience, more, cors };
    let server = Server::bind(address, service, settings).await?;
    // Resume interrupted runs immediately; failures are reported as notices.
    let working = Arc::clone(local);
    tokio::spawn(async move { drop(working.start_workers().await) });
    let address = server.address();
    if cx.out.json {
        cx.out.value(&serde_json::json!({ "address": format!("http://{address}"), "keys": keys }))?;
    } else {
        let who = match keys {
            0 => "authentication disabled".to_owned(),
            1 => "1 key".to_owned(),
            many => format!("{many} keys"),
        };
        cx.out.line(format!("skills {} listening on http://{address} ({who})", env!("CARGO_PKG_VERSION")))?;
    }
    cx.out.flush()?;
    tracing::info!(%address, keys, "serving");
    let (requested, stopped) = (end.clone(), Arc::clone(local));
    tokio::spawn(async move {
        shutdown_signal().await;
        requested.cancel();
        stopped.stop_requests();
    });
    tokio::select! {
        () = server.run(end.clone()) => {}
        // A second signal ends the service at once.
        () = async { end.cancelled().await; shutdown_signal().await } => {}
    }
    tracing::info!(%address, "the service exited");
    Ok(Exit::Success)
}

/// File descriptors reserved for the store, scripts and everything else that is not a connection.
const RESERVED_FILES: u64 = 128;

/// Raises the soft limit of open files to the hard limit and returns the resulting limit.
#[cfg(unix)]
fn raised_file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!("cannot raise the limit of open files: {error}");
            limit.current
        }
    }
}

#[cfg(not(unix))]
fn raised_file_limit() -> Option<u64> {
    None
}

/// Returns the maximum number of connections for a limit of open files: the requested number, reduced where connections
/// would exhaust the file descriptors.
fn connections(requested: usize, files: Option<u64>) -> usize {
    let Some(files) = files else { return requested };
    let left = files.saturating_sub(RESERVED_FILES).max(files / 4).max(1);
    let most = requested.min(usize::try_from(left).unwrap_or(usize::MAX));
    if most < requested {
        tracing::warn!(
            "at most {most} connections instead of {requested}: the limit of open files is {files}"
        );
    }
    most
}

/// Completes on SIGINT or SIGTERM.
async fn shutdown_signal() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    drop(interrupted.await);
}

/// Collects the API keys of all sources.
fn keys(cx: &Context, args: &ServeArgs) -> Result<ServiceKeys, Failure> {
    if args.api_key.is_some() {
        cx.reporter().warn(&format!("--api-key is visible in the process list; prefer {KEY} or --keys-file"));
    }
    let key = args.api_key.clone().or_else(|| cx.env.get(KEY).map(str::to_owned));
    let file = args.key_file.as_ref().map(|path| cx.cwd.join(path));
    let keys = ServiceKeys::open(key, file.clone())?;
    if let Some(path) = file
        && let Ok(Some(_)) = private_files::excess(&path, key_file_mode(&path))
    {
        let path = quoted(&path.to_string_lossy());
        cx.reporter().print_line(&format!("the keys file is readable by other users: run chmod 600 {path}"));
    }
    Ok(keys)
}

/// Returns the permissions that a key file may have. One of another account, such as a mounted secret of Kubernetes, is
/// read by group.
#[cfg(unix)]
fn key_file_mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    let is_own = |file: std::fs::Metadata| file.uid() == rustix::process::geteuid().as_raw();
    if std::fs::metadata(path).is_ok_and(is_own) { private_files::FILE_MODE } else { 0o640 }
}

#[cfg(not(unix))]
fn key_file_mode(_: &Path) -> u32 {
    private_files::FILE_MODE
}

async fn resolved(args: &ServeArgs) -> Result<SocketAddr, Failure> {
    let wrong = |why: &str| {
        let message =
            format!("--host {}: {why}; expected an address of this machine, 127.0.0.1 or 0.0.0.0", args.host);
        Failure::usage(message)
    };
    let host = args.host.trim_start_matches('[').trim_end_matches(']');
    let mut found =
        tokio::net::lookup_host((host, args.port)).await.map_err(|error| wrong(&error.to_string()))?;
    found.next().ok_or_else(|| wrong("the name cannot be resolved"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_file_descriptors_for_other_uses() {
        assert_eq!(connections(4096, None), 4096);
        assert_eq!(connections(4096, Some(20_000)), 4096);
        assert_eq!(connections(4096, Some(1024)), 1024 - 128);
        assert_eq!(connections(4096, Some(64)), 16);
        assert_eq!(connections(10, Some(1)), 1);
    }
}
