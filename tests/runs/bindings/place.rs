//! A registry folder, a broker over it, and servers.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use skills_runs::{
    Artifacts, Broker, BrokerSettings, BundleRefusal, Call, CallConditions, CallError, Caller, Capabilities,
    CapabilityFolder, LogLine, Reply,
};
use skills_sandbox::{Contents, Sandbox, Setup};
use skills_skill::contract::{Capability, Conformance, Endpoint, ServiceTarget};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The sandbox of the tests: the built program is its helper.
pub fn sandbox() -> Sandbox {
    static ONE: OnceLock<Sandbox> = OnceLock::new();
    ONE.get_or_init(|| {
        let helper = env!("CARGO_BIN_EXE_skills").into();
        Sandbox::with(Setup { helper, bubblewrap: None, ..Setup::of_this_program() })
    })
    .clone()
}

/// Without isolation scripts run bare, where that has been allowed.
pub fn waived() -> bool {
    std::env::var_os("SKILLS_TEST_WITHOUT_ISOLATION").is_some()
}

/// The capability most tests call.
pub const CAPABILITY: &str = "id: text.classify
inputs: {text: {type: string, required: true}, limit: {type: integer}, mode: {type: string, default: fast}}
outputs: {label: {type: string, required: true}, score: number}
properties: {deterministic: true, side_effects: false, idempotent: true}
";

/// One that must not happen twice.
pub const UNSAFE: &str = "id: mail.send
inputs: {text: {type: string, required: true}}
outputs: {label: {type: string, required: true}}
properties: {deterministic: false, side_effects: true, idempotent: false}
";

/// A folder of the registry form, its services, and a clock that only the test moves.
pub struct Bench {
    folder: TempDir,
    pub services: BTreeMap<String, Endpoint>,
    pub overrides: BTreeMap<String, String>,
    pub environment: BTreeMap<String, String>,
    pub untrusted: Option<String>,
    pub passed: Arc<Mutex<Duration>>,
}

impl Bench {
    pub fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir_in(std::env::temp_dir().canonicalize().unwrap()).unwrap();
        // Scripts run as another user where the tests are root.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let bench = Self {
            folder,
            services: BTreeMap::new(),
            overrides: BTreeMap::new(),
            environment: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
            untrusted: None,
            passed: Arc::default(),
        };
        bench.write("capabilities/text.classify.yaml", CAPABILITY);
        bench.write("capabilities/mail.send.yaml", UNSAFE);
        bench
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Adds a binding of `text.classify`; `rest` are further lines.
    pub fn bind(&self, id: &str, service: &str, protocol: &str, operation: &str, rest: &str) -> &Self {
        self.bind_to("text.classify", id, service, protocol, operation, rest)
    }

    pub fn bind_to(
        &self,
        capability: &str,
        id: &str,
        service: &str,
        protocol: &str,
        operation: &str,
        rest: &str,
    ) -> &Self {
        let text = format!(
            "id: {id}\ncapability: {capability}\nservice: {service}\nprotocol: {protocol}\noperation: '{operation}'\n{rest}\n"
        );
        self.write(&format!("bindings/{id}.yaml"), &text);
        self
    }

    pub fn http(&mut self, service: &str, url: String) -> &mut Self {
        self.reach(service, ServiceTarget::Http { url, headers: BTreeMap::new() })
    }

    pub fn reach(&mut self, service: &str, reach: ServiceTarget) -> &mut Self {
        self.services.insert(service.to_owned(), Endpoint { reach, timeout: None });
        self
    }

    pub fn catalog(&self) -> Capabilities {
        let bundle = Some(self.root().to_owned());
        Capabilities::load(&[CapabilityFolder {
            dir: self.root().to_owned(),
            bundle,
            shipped: false,
            of_project: false,
        }])
    }

    pub fn broker(&self) -> Broker {
        let (start, passed) = (Instant::now(), Arc::clone(&self.passed));
        let environment = self.environment.clone();
        let settings = BrokerSettings {
            services: self.services.clone(),
            overrides: self.overrides.clone(),
            environment: Arc::new(move |name| environment.get(name).cloned()),
            clock: Arc::new(move || start + *passed.lock().unwrap()),
            ..BrokerSettings::default()
        };
        let untrusted = self.untrusted.clone();
        let refusal = untrusted.map(BundleRefusal::Untrusted);
        let trust = Arc::new(move |_: &Path, _: &Contents| refusal.clone().map_or(Ok(()), Err));
        let artifacts = Arc::new(Artifacts::open(&self.root().join("artifacts")).unwrap());
        Broker::new(Arc::new(self.catalog()), settings, sandbox(), trust, artifacts)
    }

    pub fn capability(&self, id: &str) -> Arc<Capability> {
        Arc::clone(self.catalog().capability(id).unwrap())
    }

    /// A call of a capability with the input `text`.
    pub fn call_of(&self, capability: &str, text: &str) -> Call {
        Call {
            capability: self.capability(capability),
            inputs: object(json!({ "text": text })),
            target: None,
            idempotency_key: "run-1/classify".to_owned(),
            trace_id: "trace-1".to_owned(),
            step: "classify".to_owned(),
            timeout: Duration::from_secs(20),
            conditions: CallConditions {
                conformance: Conformance::Standard,
                unsandboxed: waived(),
                ordered_by: Some("kim".to_owned()),
            },
            files: BTreeMap::new(),
            file_digests: BTreeMap::new(),
            pins: None,
            log: Arc::new(|_| {}),
        }
    }

    pub fn call(&self, text: &str) -> Call {
        self.call_of("text.classify", text)
    }
}

pub fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

pub async fn call(broker: &Broker, call: Call) -> Result<Reply, CallError> {
    broker.call(call, CancellationToken::new()).await
}

/// Lines that arrive, and a way to wait for one.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<LogLine>>>, Arc<tokio::sync::Notify>);

impl Lines {
    pub fn sink(&self) -> Arc<dyn Fn(LogLine) + Send + Sync> {
        let Self(lines, arrived) = self.clone();
        Arc::new(move |line| {
            lines.lock().unwrap().push(line);
            arrived.notify_one();
        })
    }

    pub fn texts(&self, stream: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.stream == stream).map(|line| line.text.clone()).collect()
    }

    pub async fn wait_for(&self, text: &str) {
        let there = || self.0.lock().unwrap().iter().any(|line| line.text == text);
        let wait = async {
            while !there() {
                self.1.notified().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wait).await.expect("the line arrives");
    }
}

/// A server process of `tests/fixtures/servers`, killed at the end.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Server {
    pub fn start() -> Self {
        let mut child = Command::new("python3")
            .arg(fixture("web_service.py"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is installed");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { port: line.trim().parse().expect("the server prints its port"), child }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/servers").join(name)
}

/// Whether a process is alive; one that waits to be reaped is not.
pub fn alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}

/// Waits until a condition holds.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < end, "{what} within 30 s");
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
