//! Notifies people that a run waits for them: by terminal signals, or a signed message to another program (Standard
//! Webhooks, <https://www.standardwebhooks.com>). Disabled by default.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::binding::http::root_cause;
use skills_base::duration::to_millis;
use skills_base::sync::MutexExt as _;
use skills_model::{BEFORE_FIRST_STEP, Gate, approval_label};
use skills_skill::safe_text;
use skills_store::{
    EventKind, PendingDelivery, Precondition, RunEvent, RunId, RunOptions, RunRecord, Store, StoreError,
};

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

/// How long after a delivery was due another process sends the message: clocks of machines differ.
const TAKEOVER_DELAY: Duration = Duration::from_secs(10);

/// Waits that began longer ago are not notified when a process starts.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of attempts to record a delivery in a store that other processes change at the same time.
const MAX_CONFLICTS: usize = 5;

/// Maximum number of pending deliveries of the runs of one principal, those that wait for a retry included. Further ones
/// are read from the store again when half of them are done.
const MAX_DELIVERIES: usize = 10_000;
/// Maximum number of messages that are sent at the same time.
const MAX_SENDS: usize = 16;

/// Events read per page.
const PAGE: usize = 500;

/// A notification about a run that started to wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reminder {
    pub run: RunId,
    pub skill_id: String,
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

    pub fn sentence(&self) -> String {
        let name = self.title.as_deref().unwrap_or(&self.skill_id);
        match &self.gate {
            Gate::Human { step, .. } if step == BEFORE_FIRST_STEP => {
                format!("{name} is waiting for the {}", approval_label(step))
            }
            Gate::Human { step, .. } => format!("{name} is waiting for a decision on step {step}"),
            Gate::Signal { name: signal, .. } => format!("{name} is waiting for the signal {signal}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TerminalSignals {
    pub bell: bool,
    /// Desktop notification via OSC 9 and OSC 777; terminals that support neither ignore it.
    pub osc: bool,
    /// The terminal supports notifications that can be withdrawn (OSC 99,
    /// <https://sw.kovidgoyal.net/kitty/desktop-notifications/>), which replace the others.
    #[serde(default)]
    pub withdrawable: bool,
}

fn notification_id(run: &RunId) -> String {
    let safe = run.0.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-');
    format!("skills-{}", safe.collect::<String>())
}

/// Returns the bytes that withdraw the notification of a run; empty if the terminal cannot withdraw one.
pub fn withdrawal_bytes(signs: TerminalSignals, run: &RunId) -> Vec<u8> {
    if signs.osc && signs.withdrawable {
        format!("\x1b]99;i={}:p=close;\x1b\\", notification_id(run)).into_bytes()
    } else {
        Vec::new()
    }
}

/// Returns the bytes that send these signals to a terminal. Text from a bundle is sanitized first.
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
/// sent to `tell`, and to the webhook if there is one. The webhook is also notified of the waits that began before, and of
/// which it was not notified: each message is delivered at least once, unless all attempts fail or the wait ends.
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
    let queue = Arc::new(Queue::new(MAX_DELIVERIES));
    // Dropped together with this function, which aborts them.
    let mut senders = JoinSet::new();
    for webhook in webhook.iter().flat_map(|webhook| vec![webhook.clone(); MAX_SENDS]) {
        let (store, client, queue) = (store.clone(), client.clone(), Arc::clone(&queue));
        senders.spawn(async move {
            loop {
                let (principal, delivery) = queue.next().await;
                let again = deliver(&*store, &client, &webhook, &delivery).await;
                queue.done(&principal, again);
            }
        });
    }
    if webhook.is_some() {
        enqueue_pending(&*store, &queue, seen).await?;
    }
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            waited = store.wait(seen, 60_000) => { waited?; }
            (principal, after) = queue.next_postponed(), if webhook.is_some() => {
                enqueue_again(&*store, &queue, &principal, after, seen).await?;
                continue;
            }
        }
        let events = store.events(None, seen, PAGE).await?;
        let Some(last) = events.last() else { continue };
        seen = last.global;
        for event in events.iter().filter(|event| is_notifiable(event)) {
            let Some((started_by, reminder)) = still_waiting(&*store, event).await? else { continue };
            if webhook.is_some() {
                queue.push(&started_by, event);
            }
            if tell.send(reminder).await.is_err() && webhook.is_none() {
                return Ok(());
            }
        }
    }
}

fn is_notifiable(event: &RunEvent) -> bool {
    matches!(event.event.kind, EventKind::GateWaiting | EventKind::RunEscalated)
}

/// Enqueues the events up to `until` whose message was not sent, or whose sender may have been killed.
async fn enqueue_pending(store: &dyn Store, queue: &Queue, until: u64) -> Result<(), StoreError> {
    let max_age_ms = to_millis(MAX_AGE);
    let mut after = 0;
    loop {
        let events = store.unnotified(now_ms() - max_age_ms, after, PAGE).await?;
        let Some(last) = events.last() else { return Ok(()) };
        after = last.global;
        for event in events.iter().filter(|event| event.global <= until) {
            if let Some((started_by, _)) = still_waiting(store, event).await? {
                queue.push(&started_by, event);
            }
        }
    }
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Enqueues the events of a principal's runs that were postponed: those after `after`, up to `until`.
async fn enqueue_again(
    store: &dyn Store,
    queue: &Queue,
    principal: &str,
    after: u64,
    until: u64,
) -> Result<(), StoreError> {
    let mut after = after;
    while after < until {
        let events = store.events(None, after, PAGE).await?;
        let Some(last) = events.last() else { return Ok(()) };
        after = last.global;
        for event in events.iter().filter(|event| is_notifiable(event) && event.global <= until) {
            let waits = still_waiting(store, event).await?;
            if waits.is_some_and(|(started_by, _)| started_by == principal) && !queue.push(principal, event) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A message to send. What it contains is read from the store when it is sent.
#[derive(Debug)]
struct Delivery {
    run: RunId,
    /// The number of the event in its run.
    event: u64,
    /// What this process recorded about it.
    own: Option<PendingDelivery>,
}

/// The messages to send. The principals whose runs they are about take turns, so that one with many runs does not delay
/// the notifications of others.
struct Queue {
    /// Maximum number of messages of one principal.
    share: usize,
    shares: Mutex<Queues>,
    /// A message became available, or is to be sent again at another time.
    pushed: Notify,
    /// A principal whose messages were postponed has capacity again.
    capacity: Notify,
}

#[derive(Default)]
struct Queues {
    by_principal: HashMap<String, PrincipalQueue>,
    /// The principals with messages to send now; the first one is next.
    turns: VecDeque<String>,
}

#[derive(Default)]
struct PrincipalQueue {
    now: VecDeque<Delivery>,
    later: BTreeMap<(Instant, u64), Delivery>,
    /// Messages that are being sent.
    sending: usize,
    /// The event before the first one that was postponed.
    postponed: Option<u64>,
}

impl PrincipalQueue {
    fn len(&self) -> usize {
        self.now.len() + self.later.len() + self.sending
    }
}

impl Queues {
    fn push(&mut self, principal: &str, delivery: Delivery) {
        let share = self.by_principal.entry(principal.to_owned()).or_default();
        if share.now.is_empty() {
            self.turns.push_back(principal.to_owned());
        }
        share.now.push_back(delivery);
    }

    /// Returns the next message, or when one is to be sent again.
    fn next(&mut self, at: Instant) -> Result<(String, Delivery), Option<Instant>> {
        let due = self.by_principal.iter_mut().filter_map(|(principal, share)| {
            let first = share.later.first_entry().filter(|first| first.key().0 <= at)?;
            Some((principal.clone(), first.remove()))
        });
        for (principal, delivery) in due.collect::<Vec<_>>() {
            self.push(&principal, delivery);
        }
        let next = self.turns.pop_front().and_then(|principal| {
            let share = self.by_principal.get_mut(&principal)?;
            let delivery = share.now.pop_front()?;
            share.sending += 1;
            if !share.now.is_empty() {
                self.turns.push_back(principal.clone());
            }
            Some((principal, delivery))
        });
        let first_later = |share: &PrincipalQueue| share.later.first_key_value().map(|((at, _), _)| *at);
        next.ok_or_else(|| self.by_principal.values().filter_map(first_later).min())
    }
}

impl Queue {
    fn new(share: usize) -> Self {
        Self { share, shares: Mutex::default(), pushed: Notify::new(), capacity: Notify::new() }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Queues) -> T) -> T {
        change(&mut self.shares.locked())
    }

    /// Adds the message of an event. Returns false if it was postponed, because the share of its principal is full.
    fn push(&self, principal: &str, event: &RunEvent) -> bool {
        let delivery = Delivery { run: event.run.clone(), event: event.number, own: None };
        let pushed = self.with(|shares| {
            let share = shares.by_principal.entry(principal.to_owned()).or_default();
            if share.postponed.is_some() || share.len() >= self.share {
                if share.postponed.is_none() {
                    tracing::warn!(
                        "notifications of runs started by {principal} are postponed: {} others are pending",
                        self.share
                    );
                    share.postponed = Some(event.global - 1);
                }
                return false;
            }
            shares.push(principal, delivery);
            true
        });
        self.pushed.notify_one();
        pushed
    }

    /// Returns the next message when it is time to send one.
    async fn next(&self) -> (String, Delivery) {
        loop {
            let pushed = self.pushed.notified();
            match self.with(|shares| shares.next(Instant::now())) {
                Ok(next) => {
                    // Another sender may wait, and there may be more to send.
                    self.pushed.notify_one();
                    return next;
                }
                Err(Some(later)) => {
                    tokio::select! {
                        () = pushed => {}
                        () = tokio::time::sleep_until(later) => {}
                    }
                }
                Err(None) => pushed.await,
            }
        }
    }

    /// Ends the sending of a message, which is to be sent again after a pause, if there is one.
    fn done(&self, principal: &str, again: Option<(Delivery, Duration)>) {
        let is_later = again.is_some();
        let has_capacity = self.with(|shares| {
            let Some(share) = shares.by_principal.get_mut(principal) else { return false };
            share.sending -= 1;
            if let Some((delivery, pause)) = again {
                let at = Instant::now() + pause;
                let number =
                    (0..=u64::MAX).find(|number| !share.later.contains_key(&(at, *number))).unwrap_or(0);
                share.later.insert((at, number), delivery);
            }
            let has_capacity = share.postponed.is_some() && share.len() <= self.share / 2;
            if share.len() == 0 && share.postponed.is_none() {
                shares.by_principal.remove(principal);
            }
            has_capacity
        });
        if is_later {
            self.pushed.notify_one();
        }
        if has_capacity {
            self.capacity.notify_one();
        }
    }

    /// Returns a principal whose messages were postponed and that has capacity again, and the event before the first of them.
    async fn next_postponed(&self) -> (String, u64) {
        loop {
            let capacity = self.capacity.notified();
            let found = self.with(|shares| {
                let ready =
                    |share: &&mut PrincipalQueue| share.postponed.is_some() && share.len() <= self.share / 2;
                let mut all = shares.by_principal.iter_mut();
                let (principal, share) = all.find(|(_, share)| ready(share))?;
                Some((principal.clone(), share.postponed.take()?))
            });
            match found {
                Some(found) => return found,
                None => capacity.await,
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
            action: "prepare to send notifications".to_owned(),
            reason: e.to_string(),
        })
}

/// Returns the wait that an event reported, if it continues, and who started the run.
async fn still_waiting(
    store: &dyn Store,
    event: &RunEvent,
) -> Result<Option<(String, Reminder)>, StoreError> {
    let run = store.run(&event.run).await?;
    let run = run.filter(|run| run.since_ms <= event.at_ms);
    Ok(run.and_then(|run| Some((run.started_by.clone(), Reminder::of(&run)?))))
}

/// Whether this process sends a message now.
enum Claim {
    /// It does, and has recorded this.
    Sends(PendingDelivery),
    /// Another process does, and may need to be replaced after a pause.
    Later(Duration),
    /// It is delivered.
    Over,
}

/// Records that this process sends the message of an event, unless it is delivered or another process sends it.
async fn claim(
    store: &dyn Store,
    event: &RunEvent,
    own: Option<PendingDelivery>,
) -> Result<Claim, StoreError> {
    for _ in 0..MAX_CONFLICTS {
        let Some(RunRecord { options, .. }) = store.run(&event.run).await? else { return Ok(Claim::Over) };
        let pending = options.notifying.iter().find(|pending| pending.event == event.number);
        let failures = match pending {
            None if options.notified.is_some_and(|notified| notified >= event.number) => {
                return Ok(Claim::Over);
            }
            None => 0,
            Some(pending) if own == Some(*pending) => pending.failures,
            Some(pending) => {
                let takeover = pending.due_ms.saturating_add(to_millis(TAKEOVER_DELAY));
                match u64::try_from(takeover - now_ms()) {
                    Ok(remaining) if remaining > 0 => {
                        return Ok(Claim::Later(Duration::from_millis(remaining)));
                    }
                    _ => pending.failures,
                }
            }
        };
        let due_ms = now_ms().saturating_add(to_millis(WEBHOOK_TIMEOUT));
        let sending = PendingDelivery { event: event.number, failures, due_ms };
        if record(store, event, &options, Some(sending)).await? {
            return Ok(Claim::Sends(sending));
        }
    }
    Ok(Claim::Later(TAKEOVER_DELAY))
}

/// Records the result of an attempt: when it is due again, or that there is none.
async fn record_result(
    store: &dyn Store,
    event: &RunEvent,
    own: PendingDelivery,
    next: Option<PendingDelivery>,
) -> Result<(), StoreError> {
    for _ in 0..MAX_CONFLICTS {
        let Some(RunRecord { options, .. }) = store.run(&event.run).await? else { return Ok(()) };
        // Otherwise another process took over.
        if !options.notifying.contains(&own) || record(store, event, &options, next).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Replaces what is recorded about the message of an event; false if another process has changed it since `before`.
async fn record(
    store: &dyn Store,
    event: &RunEvent,
    before: &RunOptions,
    now: Option<PendingDelivery>,
) -> Result<bool, StoreError> {
    let mut notifying = before.notifying.clone();
    // What is long overdue belongs to waits that have ended.
    notifying.retain(|other| {
        other.event != event.number && other.due_ms.saturating_add(to_millis(MAX_AGE)) > now_ms()
    });
    notifying.extend(now);
    let notified = before.notified.max(Some(event.number));
    let list = if notifying.is_empty() { Value::Null } else { json!(notifying) };
    let fields = Map::from_iter([("notified".to_owned(), json!(notified)), ("notifying".to_owned(), list)]);
    let requires = Precondition::Notifications(before.notified, before.notifying.clone());
    match store.annotate(&event.run, fields, Vec::new(), Some(requires)).await {
        Ok(_) | Err(StoreError::NoRun(_)) => Ok(true),
        Err(StoreError::PreconditionFailed { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sends a message, unless the wait is over or another process sends it. Returns it with the pause after which it has to
/// be looked at again.
async fn deliver(
    store: &dyn Store,
    client: &reqwest::Client,
    webhook: &Webhook,
    delivery: &Delivery,
) -> Option<(Delivery, Duration)> {
    let run = delivery.run.clone();
    let again = |own, pause| Some((Delivery { run: run.clone(), event: delivery.event, own }, pause));
    let event = match waiting_event(store, delivery).await {
        Ok(Some(event)) => event,
        Ok(None) => return None,
        Err(error) => {
            tracing::warn!("cannot read the notification of run {run}, trying again: {error}");
            return again(delivery.own, TAKEOVER_DELAY);
        }
    };
    let (event, reminder) = event;
    let sending = match claim(store, &event, delivery.own).await {
        Ok(Claim::Sends(sending)) => sending,
        Ok(Claim::Later(pause)) => return again(None, pause),
        Ok(Claim::Over) => return None,
        Err(error) => {
            // Rather twice than not at all: a receiver can drop duplicates by their id.
            tracing::warn!("cannot claim the notification of run {run}: {error}");
            let failures = delivery.own.map_or(0, |own| own.failures);
            PendingDelivery { event: event.number, failures, due_ms: now_ms() }
        }
    };
    // The same for each retry, so that a receiver can drop duplicates.
    let id = format!("msg_{}_{}", event.run, event.number);
    let escalates = event.event.kind == EventKind::RunEscalated;
    let kind = if escalates { "run.escalated" } else { "run.waiting" };
    let mut body = json!({"type": kind, "timestamp_ms": event.at_ms, "data": reminder});
    if escalates {
        body["escalate_to"] = event.event.data["to"].clone();
    }
    let sent = send(client, webhook, &id, &body.to_string()).await;
    let pause = match &sent {
        Ok(()) => None,
        Err(why) => {
            let pause = webhook.pauses.get(sending.failures as usize).copied();
            if let Some(pause) = pause {
                tracing::warn!("the notification of run {run} failed: {why}; retrying in {pause:?}");
            } else {
                tracing::error!("the notification of run {run} failed: {why}");
            }
            pause
        }
    };
    let next = pause.map(|pause| PendingDelivery {
        failures: sending.failures + 1,
        due_ms: now_ms().saturating_add(to_millis(pause)),
        ..sending
    });
    if let Err(error) = record_result(store, &event, sending, next).await {
        tracing::warn!("cannot record the notification of run {run}: {error}");
    }
    again(next, pause?)
}

/// Returns the event of a message, if the wait that it reported continues.
async fn waiting_event(
    store: &dyn Store,
    delivery: &Delivery,
) -> Result<Option<(RunEvent, Reminder)>, StoreError> {
    let mut events = store.events(Some(&delivery.run), delivery.event.saturating_sub(1), 1).await?;
    let Some(event) = events.pop().filter(|event| event.number == delivery.event) else { return Ok(None) };
    Ok(still_waiting(store, &event).await?.map(|(_, reminder)| (event, reminder)))
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
    use skills_store::NewEvent;

    #[test]
    fn signature_matches_the_example_of_the_standard() {
        let webhook = Webhook::new("http://x", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature =
            webhook.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(Webhook::new("http://x", "short").unwrap_err().contains("24"));
        assert!(Webhook::new("http://x", "whsec_***").unwrap_err().contains("Base64"));
    }

    fn waiting_event(global: u64) -> RunEvent {
        let event = NewEvent { kind: EventKind::GateWaiting, step: None, data: json!({}) };
        RunEvent { run: RunId(format!("r{global}")), number: 3, global, at_ms: 0, event }
    }

    #[tokio::test]
    async fn principals_take_turns() {
        let queue = Queue::new(100);
        for n in 0..50 {
            assert!(queue.push("flood", &waiting_event(n + 1)));
        }
        queue.push("other", &waiting_event(60));
        let (first, second) = (queue.next().await, queue.next().await);
        assert_eq!((first.0.as_str(), second.0.as_str()), ("flood", "other"));
        // A message that failed waits, and delays nothing.
        let own = Some(PendingDelivery { event: 3, failures: 1, due_ms: 0 });
        queue.done(&second.0, Some((Delivery { own, ..second.1 }, Duration::from_millis(20))));
        let third = queue.next().await;
        assert_eq!((third.0.as_str(), third.1.run.0.as_str()), ("flood", "r2"));
        tokio::time::sleep(Duration::from_millis(30)).await;
        queue.next().await;
        let again = queue.next().await;
        assert_eq!((again.0.as_str(), again.1.own), ("other", own));
    }

    #[tokio::test]
    async fn messages_beyond_the_share_of_a_principal_are_postponed() {
        let queue = Queue::new(4);
        let pushed: Vec<bool> = (11..=17).map(|global| queue.push("flood", &waiting_event(global))).collect();
        assert_eq!(pushed, [true, true, true, true, false, false, false]);
        assert!(queue.push("other", &waiting_event(18)), "others have their own share");
        for _ in 0..3 {
            let (principal, _) = queue.next().await;
            queue.done(&principal, None);
        }
        assert_eq!(queue.next_postponed().await, ("flood".to_owned(), 14));
        assert!(queue.push("flood", &waiting_event(15)) && queue.push("flood", &waiting_event(16)));
        queue.next().await;
        queue.done("flood", None);
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
    fn notification_text_contains_no_control_sequences() {
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
        assert!(String::from_utf8(titled).unwrap().contains(":p=body;Pay ana is waiting for a decision"));
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
