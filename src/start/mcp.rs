//! `skills mcp`: the core as an MCP server for the client that starts this process.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use skills_api::operations::{Principal, Service};
use skills_api::{Code, Error, Local, account};
use skills_cli::{Context, Exit, Failure, Global, McpArgs, connect, invocation};
use skills_config::{Config, MEMORY_STORE};
use skills_mcp::{Settings, Transport};
use skills_skill::safe_text;

/// Serves standard input and output until the client disconnects, over the local core or the configured service.
pub fn serve(cx: &Context, args: &McpArgs) -> Result<Exit, Failure> {
    let config = cx.config()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::new(Code::InternalError, format!("cannot start the async runtime: {e}")))?;
    let served = if config.connect.is_some() {
        runtime.block_on(async {
            let remote = Arc::new(connect(&config, &cx.env).await?);
            let service = Service { core: remote.clone(), sessions: remote };
            over(cx, &config, args, service, CancellationToken::new()).await
        })
    } else {
        let local = Arc::new(Local::open(config.clone())?);
        let worker = Arc::clone(&local);
        // Runs continue after the call that launched them is canceled; failures are reported as notices.
        runtime.spawn(async move { drop(worker.start_workers().await) });
        let (end, stopped) = (CancellationToken::new(), Arc::clone(&local));
        let ended = end.clone();
        runtime.spawn(async move {
            ended.cancelled().await;
            stopped.stop_requests();
        });
        let core = Arc::clone(&local);
        let service = Service { core: core.clone(), sessions: core };
        let served = runtime.block_on(over(cx, &config, args, service, end));
        // Release the leases of this process so that other workers can claim its runs at once.
        runtime.block_on(local.stop_workers());
        let called = invocation(&cx.global, None);
        for notice in local.take_notices() {
            eprintln!("skills: {}", safe_text::line(&called.completed_in(&notice)));
        }
        served
    };
    // A pending read of standard input must not delay the exit.
    runtime.shutdown_background();
    served
}

async fn over(
    cx: &Context,
    config: &Config,
    args: &McpArgs,
    service: Service,
    stop: CancellationToken,
) -> Result<Exit, Failure> {
    if let Some(session) = &args.session {
        service.sessions.session(session).await?;
    }
    tokio::spawn(stop_on_signals(stop.clone()));
    skills_mcp::serve(service, settings(cx, config, args, stop)).await?;
    Ok(Exit::Success)
}

fn settings(cx: &Context, config: &Config, args: &McpArgs, leave: CancellationToken) -> Settings {
    let principal = Principal { name: account(), scopes: args.scopes.iter().copied().collect() };
    // Resolve values that depend on this process's environment or working directory: another shell does not have them.
    let global = Global {
        connect: config.connect.clone(),
        store: cx.global.store.clone().or_else(|| config.store.clone().filter(|_| config.connect.is_none())),
        api_key_file: config.api_key_file.clone().filter(|_| config.connect.is_some()),
        ..cx.global.clone()
    };
    let in_memory = config.connect.is_none() && config.store.as_deref() == Some(MEMORY_STORE);
    let called = (!in_memory).then(|| invocation(&global, Some(&cx.cwd)));
    Settings {
        transport: Transport::Process(principal),
        session: args.session.clone(),
        called,
        compat: args.compat,
        leave,
    }
}

#[cfg(unix)]
async fn stop_on_signals(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            stop.cancel();
        }
        (Err(error), _) | (_, Err(error)) => tracing::warn!("cannot handle signals: {error}"),
    }
}

#[cfg(not(unix))]
async fn stop_on_signals(stop: CancellationToken) {
    match tokio::signal::ctrl_c().await {
        Ok(()) => stop.cancel(),
        Err(error) => tracing::warn!("cannot handle signals: {error}"),
    }
}
