//! Clients: they launch and approve runs through any process that responds, and send
//! again what had no response.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::TIMEOUT;
use super::effects::Effects;
use super::fleet::{Addresses, SIZE, SKILL};
use crate::faults::Numbers;

const LAUNCHERS: u64 = 4;
const APPROVERS: u64 = 3;
/// Runs that are open at a time, so that all end soon after the last fault.
const OPEN: usize = 40;
/// A suspended process accepts connections and does not respond.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// A decision that was acknowledged.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Approval {
    pub run: String,
    pub step: String,
    pub choice: Option<String>,
}

/// What the clients have observed at the end.
#[derive(Debug, Default)]
pub struct Observations {
    /// Runs by the key of their launch.
    pub acknowledged: BTreeMap<String, String>,
    pub decided: Vec<Approval>,
    /// Responses that no fault explains.
    pub unexpected: Vec<String>,
    /// Requests that were sent again.
    pub repeated: usize,
    /// Launches that returned the run of an earlier attempt.
    pub reused: usize,
}

struct Shared {
    addresses: Addresses,
    effects: Effects,
    observed: Mutex<Observations>,
    launched: AtomicUsize,
    is_launching: AtomicBool,
    is_approving: AtomicBool,
}

pub struct Load {
    shared: Arc<Shared>,
    launchers: Vec<JoinHandle<()>>,
    approvers: Vec<JoinHandle<()>>,
}

/// One request on a connection of its own.
fn request(address: &str, head: &str, body: &str) -> io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    // The response of the earlier version of the protocol ends with the connection.
    write!(
        stream,
        "{head}\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(cut)?;
    Ok((status, serde_json::from_str(body).map_err(|_| cut())?))
}

impl Shared {
    /// Sends a request to any process, until one does not respond that it is unavailable.
    fn call(&self, numbers: &mut Numbers, method: &str, path: &str, more: &str, body: &str) -> (u16, Value) {
        let head = format!("{method} {path} HTTP/1.0{more}");
        let deadline = Instant::now() + TIMEOUT;
        let mut last = String::new();
        loop {
            let member = usize::try_from(numbers.below(SIZE as u64)).unwrap();
            match self.addresses.of(member).map(|address| request(&address, &head, body)) {
                Some(Ok((503 | 429, answer))) => last = answer.to_string(),
                Some(Ok(answered)) => return answered,
                Some(Err(error)) => last = error.to_string(),
                None => {}
            }
            assert!(Instant::now() < deadline, "no process answers {head}: {last}");
            self.observed.lock().unwrap().repeated += 1;
            self.effects.wait_for_more(1, Duration::from_millis(20));
        }
    }

    fn unexpected(&self, what: String) {
        self.observed.lock().unwrap().unexpected.push(what);
    }

    fn launch_all(&self, numbers: &mut Numbers, launcher: u64) {
        let mut n = 0;
        while self.is_launching.load(Ordering::SeqCst) {
            if self.launched.load(Ordering::SeqCst) >= self.effects.ended() + OPEN {
                self.effects.wait_for_more(4, Duration::from_millis(100));
                continue;
            }
            let key = format!("key-{launcher}-{n}");
            n += 1;
            self.launched.fetch_add(1, Ordering::SeqCst);
            let path = format!("/v1/skills/{SKILL}/execute/async");
            let body = json!({"inputs": {"n": n}, "started_by": "ana"}).to_string();
            // Some clients repeat a successful launch.
            for _ in 0..=numbers.below(5) / 4 {
                let header = format!("\r\nx-idempotency-key: {key}");
                let (status, answer) = self.call(numbers, "POST", &path, &header, &body);
                let Some(run) = answer["run"]["id"].as_str().filter(|_| (200..300).contains(&status)) else {
                    self.unexpected(format!("launch: {status} {answer}"));
                    continue;
                };
                let mut observed = self.observed.lock().unwrap();
                observed.reused += usize::from(answer["idempotency"] == "reused");
                let first =
                    observed.acknowledged.entry(key.clone()).or_insert_with(|| run.to_owned()).clone();
                if first != run {
                    observed
                        .unexpected
                        .push(format!("{key}: run {first}, then run {run} ({})", answer["idempotency"]));
                }
            }
        }
    }

    fn approve_all(&self, numbers: &mut Numbers) {
        while self.is_approving.load(Ordering::SeqCst) {
            let path = "/v1/runs?states=waiting_for_human&limit=20";
            let (status, answer) = self.call(numbers, "GET", path, "", "");
            let Some(runs) = answer["runs"].as_array().filter(|_| status == 200) else {
                self.unexpected(format!("list: {status} {answer}"));
                continue;
            };
            if runs.is_empty() {
                self.effects.wait_for_more(1, Duration::from_millis(50));
            }
            for run in runs {
                self.approve(numbers, run);
            }
        }
    }

    fn approve(&self, numbers: &mut Numbers, run: &Value) {
        let gate = &run["gate"]["human"];
        let [Some(id), Some(step)] = [&run["id"], &gate["step"]].map(Value::as_str) else {
            return self.unexpected(format!("no approval is pending: {run}"));
        };
        let choices = ["rerun", "skip"];
        let choice = (gate["why"] == "unknown_outcome").then(|| choices[usize::from(numbers.below(2) == 0)]);
        let mut body = json!({"step": step, "inputs_digest": gate["inputs_digest"], "approver": "kim"});
        if let Some(choice) = choice {
            body["choice"] = choice.into();
        }
        let path = format!("/v1/runs/{id}/approve");
        let (status, answer) = self.call(numbers, "POST", &path, "", &body.to_string());
        match status {
            200 => {
                let decided =
                    Approval { run: id.into(), step: step.into(), choice: choice.map(str::to_owned) };
                self.observed.lock().unwrap().decided.push(decided);
            }
            // Another approver was first, with another choice.
            409 => {}
            _ => self.unexpected(format!("approve: {status} {answer}")),
        }
    }
}

impl Load {
    pub fn start(addresses: Addresses, effects: &Effects, seed: u64) -> Self {
        let shared = Arc::new(Shared {
            addresses,
            effects: effects.clone(),
            observed: Mutex::default(),
            launched: AtomicUsize::new(0),
            is_launching: AtomicBool::new(true),
            is_approving: AtomicBool::new(true),
        });
        let numbers = |n: u64| Numbers(seed.wrapping_add(n).wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1));
        let launchers = (0..LAUNCHERS).map(|n| {
            let (shared, mut numbers) = (Arc::clone(&shared), numbers(n + 1));
            std::thread::spawn(move || shared.launch_all(&mut numbers, n))
        });
        let launchers = launchers.collect();
        let approvers = (0..APPROVERS).map(|n| {
            let (shared, mut numbers) = (Arc::clone(&shared), numbers(n + 1 + LAUNCHERS));
            std::thread::spawn(move || shared.approve_all(&mut numbers))
        });
        let approvers = approvers.collect();
        Self { shared, launchers, approvers }
    }

    /// Starts no further launches; those that were started are acknowledged.
    pub fn stop_launching(&self) {
        self.shared.is_launching.store(false, Ordering::SeqCst);
    }

    pub fn has_launched_all(&self) -> bool {
        self.launchers.iter().all(JoinHandle::is_finished)
    }

    pub fn finish(self) -> Observations {
        self.shared.is_approving.store(false, Ordering::SeqCst);
        for client in self.launchers.into_iter().chain(self.approvers) {
            client.join().unwrap();
        }
        std::mem::take(&mut *self.shared.observed.lock().unwrap())
    }
}
