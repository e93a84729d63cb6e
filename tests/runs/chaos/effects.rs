//! The outside world: an upstream service that records every call, and which process it came from.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// How long a call takes, so that faults meet calls.
const DURATION: Duration = Duration::from_millis(8);

/// The step that each run ends with.
pub const LAST: &str = "last";

/// A call that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Effect {
    /// Its number among all calls, which is its result.
    pub number: usize,
    /// Process of the service that it came from.
    pub member: usize,
    pub at_ms: i64,
}

#[derive(Default)]
struct Log {
    by_key: BTreeMap<String, Vec<Effect>>,
    count: usize,
    ended: usize,
}

#[derive(Default)]
struct Shared {
    log: Mutex<Log>,
    arrived: Condvar,
}

/// The service, until it is dropped.
#[derive(Clone)]
pub struct Effects {
    shared: Arc<Shared>,
    address: std::net::SocketAddr,
    _runtime: Arc<Runtime>,
}

/// Now, by the clock of this machine.
pub fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

async fn record(
    State(shared): State<Arc<Shared>>,
    Path(step): Path<String>,
    headers: HeaderMap,
) -> Json<Value> {
    let at_ms = now_ms();
    let member = headers["member"].to_str().unwrap().parse().unwrap();
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    let number = {
        let mut log = shared.log.lock().unwrap();
        log.count += 1;
        let number = log.count;
        let calls = log.by_key.entry(key).or_default();
        calls.push(Effect { number, member, at_ms });
        if step == LAST && calls.len() == 1 {
            log.ended += 1;
        }
        shared.arrived.notify_all();
        number
    };
    tokio::time::sleep(DURATION).await;
    Json(json!({ "n": number }))
}

impl Effects {
    pub fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let routes = axum::Router::new().route("/{step}", post(record));
        let routes = routes.with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { shared, address, _runtime: Arc::new(runtime) }
    }

    /// Where the processes of the service find it: all at one address, so that each can approve calls of the others.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.shared.log.lock().unwrap()
    }

    /// Waits until this many calls more have arrived, or the time is over.
    pub fn wait_for_more(&self, more: usize, time: Duration) {
        let log = self.log();
        let expected = log.count + more;
        drop(self.shared.arrived.wait_timeout_while(log, time, |log| log.count < expected).unwrap());
    }

    /// Runs whose last step was called.
    pub fn ended(&self) -> usize {
        self.log().ended
    }

    /// All calls, by the idempotency key of their step.
    pub fn calls(&self) -> BTreeMap<String, Vec<Effect>> {
        self.log().by_key.clone()
    }
}
