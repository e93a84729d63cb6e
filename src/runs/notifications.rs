//! Notifies people that a run waits for them: by terminal signals, or a signed message to another program (Standard
//! Webhooks, <https://www.standardwebhooks.com>). Disabled by default.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use sha2::Sha256;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::binding::http::root_cause;
use skills_model::Gate;
use skills_skill::safe_text;
use skills_store::{EventKind, Precondition, RunEvent, RunId, RunRecord, Store, StoreError};

/// Backoff before each retry of a delivery.
const BACKOFF: [Duration; 5] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(300),
    Duration::from_secs(1800),
];

/// Timeout of a delivery.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum number of pending deliveries, those that wait for a retry included.
const MAX_DELIVERIES: usize = 10_000;
/// Maximum number of messages that are sent at the same time.
const MAX_SENDS: usize = 16;

/// Events read per page.
const PAGE: usize = 500;

/// A notification about a run that started to wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reminder {
    /// The run.
    pub run: RunId,
    /// Its skill.
    pub skill_id: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it waits for.
    pub gate: Gate,
    /// Since when it waits, in milliseconds since 1970-01-01 UTC.
    pub since_ms: i64,
    /// When the wait expires, in milliseconds since 1970-01-01 UTC.
    pub expires_ms: Option<i64>,
}

impl Reminder {
    /// Creates the reminder for a run if it waits.
    #[must_use]
    pub fn of(run: &RunRecord) -> Option<Self> {
        Some(Self {
            run: run.id.clone(),
            skill_id: run.skill_id.clone(),
            title: run.title().map(str::to_owned),
            gate: run.gate.clone()?,
            since_ms: run.since_ms,
            expires_ms: run.expires_ms,
        })
    }

    /// Returns the reminder as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let name = self.title.as_deref().unwrap_or(&self.skill_id);
        match &self.gate {
            Gate::Human { step, .. } => format!("{name} waits for a decision on step {step}"),
            Gate::Signal { name: signal, .. } => format!("{name} waits for the signal {signal}"),
        }
    }
}

/// The terminal signals to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TerminalSignals {
    /// The bell.
    pub bell: bool,
    /// Desktop notification by OSC 9 and OSC 777; terminals that support neither ignore it.
    pub osc: bool,
    /// The terminal supports notifications that can be withdrawn (OSC 99,
    /// <https://sw.kovidgoyal.net/kitty/desktop-notifications/>), which replace the others.
    #[serde(default)]
    pub withdrawable: bool,
}

/// Returns the notification id of a run.
fn notification_id(run: &RunId) -> String {
    let safe = run.0.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-');
    format!("skills-{}", safe.collect::<String>())
}

/// Returns the bytes that withdraw the notification of a run; empty if the terminal cannot withdraw one.
#[must_use]
pub fn withdrawal_bytes(signs: TerminalSignals, run: &RunId) -> Vec<u8> {
    if signs.osc && signs.withdrawable {
        format!("\x1b]99;i={}:p=close;\x1b\\", notification_id(run)).into_bytes()
    } else {
        Vec::new()
    }
}

/// Returns the bytes that send these signals to a terminal. Text from a bundle is sanitized first.
#[must_use]
pub fn terminal_bytes(signs: TerminalSignals, reminder: &Reminder) -> Vec<u8> {
    let mut bytes = Vec::new();
    if signs.osc {
        let clean = |text: &str| -> String {
            let text = safe_text::line(text);
            text.chars()
                .filter(|c| !c.is_control())
                .map(|c| if c == ';' { ',' } else { c })
                .take(200)
                .collect()
        };
        let text = clean(&reminder.sentence());
        if signs.withdrawable {
            let id = notification_id(&reminder.run);
            bytes.extend_from_slice(format!("\x1b]99;i={id}:d=0;Skill Workbench\x1b\\").as_bytes());
            bytes.extend_from_slice(format!("\x1b]99;i={id}:p=body;{text}\x1b\\").as_bytes());
        } else {
            // OSC 9 as defined by iTerm2, OSC 777 as defined by the rxvt-unicode extension; both end with ST (ECMA-48).
            bytes.extend_from_slice(format!("\x1b]9;{text}\x1b\\").as_bytes());
            bytes.extend_from_slice(format!("\x1b]777;notify;Skill Workbench;{text}\x1b\\").as_bytes());
        }
    }
    if signs.bell {
        bytes.push(0x07);
    }
    bytes
}

/// A webhook receiver and the key that signs its messages.
#[derive(Clone)]
pub struct Webhook {
    url: String,
    /// Keyed with the secret.
    mac: Hmac<Sha256>,
    pauses: Vec<Duration>,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("url", &self.shown()).finish_non_exhaustive()
    }
}

impl Webhook {
    /// Creates a webhook for an address, with a secret: `whsec_` and Base64, as in the standard, or any text of at
    /// least 24 bytes.
    ///
    /// # Errors
    /// Returns a message if the secret is invalid.
    pub fn new(url: &str, secret: &str) -> Result<Self, String> {
        let key = match secret.strip_prefix("whsec_") {
            Some(encoded) => BASE64
                .decode(encoded)
                .map_err(|_| "the webhook secret begins with whsec_, but the rest is not valid Base64")?,
            None => secret.as_bytes().to_vec(),
        };
        if key.len() < 24 {
            return Err(format!(
                "the webhook secret has {} bytes, the minimum is 24; create one with `openssl rand \
                    -base64 32`",
                key.len()
            ));
        }
        let mac = Hmac::new_from_slice(&key).map_err(|error| format!("the webhook secret: {error}"))?;
        Ok(Self { url: url.to_owned(), mac, pauses: BACKOFF.to_vec() })
    }

    /// Returns the address without user, path and query, which can contain secrets.
    fn shown(&self) -> String {
        reqwest::Url::parse(&self.url)
            .map_or_else(|_| "the webhook".to_owned(), |url| url.origin().ascii_serialization())
    }

    /// Replaces the backoff between deliveries.
    #[must_use]
    pub fn with_pauses(self, pauses: Vec<Duration>) -> Self {
        Self { pauses, ..self }
    }

    /// Returns the value of `webhook-signature` for a message.
    #[must_use]
    pub fn signature(&self, id: &str, timestamp_s: i64, body: &str) -> String {
        let mac = self.mac.clone().chain_update(format!("{id}.{timestamp_s}.{body}"));
        format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
    }
}

/// Standard Base64 that accepts missing padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Follows the store and notifies of each run that starts to wait, from now on, until `stop` fires. Every reminder is
/// sent to `tell`, and to the webhook if there is one.
///
/// # Errors
/// Returns the errors of the store, and an error if the HTTP client cannot be created.
pub async fn remind(
    store: Arc<dyn Store>,
    tell: mpsc::Sender<Reminder>,
    webhook: Option<Webhook>,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let mut seen = store.newest_event().await?;
    let client = client()?;
    // Dropped together with this function, which aborts them.
    let mut deliveries = JoinSet::new();
    let sends = Arc::new(Semaphore::new(MAX_SENDS));
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            waited = store.wait(seen, 60_000) => waited?,
        }
        let events = store.events(None, seen, PAGE).await?;
        let Some(last) = events.last() else { continue };
        seen = last.global;
        let tells =
            |event: &&RunEvent| matches!(event.event.kind, EventKind::GateWaiting | EventKind::RunEscalated);
        for event in events.iter().filter(tells) {
            let Some(reminder) = still_waiting(&*store, event).await? else { continue };
            while deliveries.try_join_next().is_some() {}
            if let Some(webhook) = webhook.clone() {
                let (store, client) = (store.clone(), client.clone());
                let (reminder, event, sends) = (reminder.clone(), event.clone(), Arc::clone(&sends));
                if deliveries.len() < MAX_DELIVERIES {
                    deliveries.spawn(async move {
                        deliver(&*store, &client, &webhook, &reminder, &event, &sends).await;
                    });
                } else {
                    tracing::error!(
                        "no notification of run {} is sent: {MAX_DELIVERIES} others are pending",
                        event.run
                    );
                }
            }
            if tell.send(reminder).await.is_err() && webhook.is_none() {
                return Ok(());
            }
        }
    }
}

fn client() -> Result<reqwest::Client, StoreError> {
    // Another part of the process may already have installed a provider, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent(concat!("skill-workbench/", env!("CARGO_PKG_VERSION")))
        // A signed message must not be sent anywhere but to its configured address.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|e| StoreError::Failed {
            doing: "preparing to send notifications".to_owned(),
            reason: e.to_string(),
        })
}

/// Returns the wait that an event reported, if it continues.
async fn still_waiting(store: &dyn Store, event: &RunEvent) -> Result<Option<Reminder>, StoreError> {
    let run = store.run(&event.run).await?;
    Ok(run.filter(|run| run.since_ms <= event.at_ms).as_ref().and_then(Reminder::of))
}

/// Records that this process sends the message of an event; false if another process on the store does.
async fn claim(store: &dyn Store, event: &RunEvent) -> bool {
    let fields = Map::from_iter([("notified".to_owned(), json!(event.number))]);
    let requires = Some(Precondition::NotNotified(event.number));
    match store.annotate(&event.run, fields, Vec::new(), requires).await {
        Ok(_) => true,
        Err(StoreError::PreconditionFailed { .. } | StoreError::NoRun(_)) => false,
        Err(error) => {
            // Rather twice than not at all: a receiver can drop duplicates by their id.
            tracing::warn!("claiming the notification of run {}: {error}", event.run);
            true
        }
    }
}

/// Sends a message until it is accepted, the wait is over, or the retries are exhausted; nothing if another process
/// sends it.
async fn deliver(
    store: &dyn Store,
    client: &reqwest::Client,
    webhook: &Webhook,
    reminder: &Reminder,
    event: &RunEvent,
    sends: &Semaphore,
) {
    if !claim(store, event).await {
        return;
    }
    // The same for each retry, so that a receiver can drop duplicates.
    let id = format!("msg_{}_{}", event.run, event.number);
    let escalates = event.event.kind == EventKind::RunEscalated;
    let kind = if escalates { "run.escalated" } else { "run.waiting" };
    let mut body = json!({"type": kind, "timestamp_ms": event.at_ms, "data": reminder});
    if escalates {
        body["escalate_to"] = event.event.data["to"].clone();
    }
    let body = body.to_string();
    let mut pauses = webhook.pauses.iter();
    loop {
        // The semaphore is never closed.
        let permit = sends.acquire().await;
        let why = match send(client, webhook, &id, &body).await {
            Ok(()) => return,
            Err(why) => why,
        };
        drop(permit);
        let Some(pause) = pauses.next() else {
            return tracing::error!("the notification of run {} failed: {why}", event.run);
        };
        tracing::warn!("the notification of run {} failed: {why}; retrying in {pause:?}", event.run);
        tokio::time::sleep(*pause).await;
        if !matches!(still_waiting(store, event).await, Ok(Some(_))) {
            return;
        }
    }
}

async fn send(client: &reqwest::Client, webhook: &Webhook, id: &str, body: &str) -> Result<(), String> {
    let now = jiff::Timestamp::now().as_second();
    let answer = client
        .post(&webhook.url)
        .timeout(WEBHOOK_TIMEOUT)
        .header("content-type", "application/json")
        .header("webhook-id", id)
        .header("webhook-timestamp", now)
        .header("webhook-signature", webhook.signature(id, now, body))
        .body(body.to_owned())
        .send()
        .await
        .map_err(|error| format!("cannot reach {}: {}", webhook.shown(), root_cause(&error.without_url())))?;
    if answer.status().is_success() { Ok(()) } else { Err(format!("it returned {}", answer.status())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_model::ApprovalReason;

    #[test]
    fn a_message_is_signed_as_the_standards_own_example() {
        let webhook = Webhook::new("http://x", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature =
            webhook.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(Webhook::new("http://x", "short").unwrap_err().contains("24"));
        assert!(Webhook::new("http://x", "whsec_***").unwrap_err().contains("Base64"));
    }

    #[tokio::test]
    async fn errors_of_a_webhook_have_no_secrets() {
        // Nothing listens on the port of a listener that was closed.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("http://kim:s3cret@127.0.0.1:{port}/hook/s3cret?token=s3cret");
        let webhook = Webhook::new(&url, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let error = send(&client().unwrap(), &webhook, "msg_1", "{}").await.unwrap_err();
        assert!(error.contains(&format!("http://127.0.0.1:{port}: ")), "{error}");
        assert!(
            !error.contains("s3cret") && !format!("{webhook:?}").contains("s3cret"),
            "{error} {webhook:?}"
        );
    }

    #[test]
    fn nothing_of_a_bundle_reaches_the_terminal_but_words() {
        let gate = Gate::human("pay\x1b]0;x\x07;rm", "d", ApprovalReason::Confirmation);
        let reminder = Reminder {
            run: RunId("r".into()),
            skill_id: "demo\x1b[2J".into(),
            title: None,
            gate,
            since_ms: 0,
            expires_ms: None,
        };
        let signs = TerminalSignals { bell: true, osc: true, withdrawable: false };
        let bytes = terminal_bytes(signs, &reminder);
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.matches('\x1b').count(), 4, "{text:?}");
        assert_eq!(text.matches('\x07').count(), 1);
        assert!(
            text.starts_with("\x1b]9;demo") && text.contains("\x1b]777;notify;Skill Workbench;demo"),
            "{text:?}"
        );
        assert!(terminal_bytes(TerminalSignals::default(), &reminder).is_empty());
        assert!(withdrawal_bytes(signs, &reminder.run).is_empty());
        let kitty = TerminalSignals { withdrawable: true, bell: false, ..signs };
        let title = Some("Pay ana".into());
        let titled = terminal_bytes(kitty, &Reminder { title, ..reminder.clone() });
        assert!(String::from_utf8(titled).unwrap().contains(":p=body;Pay ana waits for a decision"));
        let reminder = Reminder { run: RunId("0199-1f;\x1b2e".into()), ..reminder };
        let text = String::from_utf8(terminal_bytes(kitty, &reminder)).unwrap();
        assert!(
            text.starts_with("\x1b]99;i=skills-0199-1f2e:d=0;") && text.contains(":p=body;demo"),
            "{text:?}"
        );
        assert_eq!(text.matches('\x1b').count(), 4, "{text:?}");
        assert_eq!(withdrawal_bytes(kitty, &reminder.run), b"\x1b]99;i=skills-0199-1f2e:p=close;\x1b\\");
    }
}
