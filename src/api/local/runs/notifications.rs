//! Reminders of waiting runs, as configured: to the workbench as an event, to a webhook as a message.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Notices, RunRuntime};
use crate::{Check, Event};
use skills_base::audit::redacted_text;
use skills_config::{Notify, WebhookTo};
use skills_runs::{Webhook, remind};

/// Maximum number of queued reminders for the workbench.
const WAITING_REMINDERS: usize = 64;

/// Starts the reminders, if configured, until the returned guard is dropped.
pub(super) fn start(notify: &Notify, notices: &Arc<Notices>, runtime: &RunRuntime) -> Option<DropGuard> {
    let webhook = match notify.webhook.as_ref().map(webhook).transpose() {
        Ok(webhook) => webhook,
        Err(why) => {
            notices.publish(format!("no notifications are sent: {why}"));
            None
        }
    };
    let requested = webhook.is_some() || notify.bell || notify.osc;
    if !requested {
        return None;
    }
    let stop = CancellationToken::new();
    let (tell, mut receiver) = mpsc::channel(WAITING_REMINDERS);
    let (store, until) = (Arc::clone(&runtime.store), stop.clone());
    tokio::spawn(async move {
        if let Err(error) = remind(store, tell, webhook, until).await {
            tracing::error!("stopped sending reminders for waiting runs: {error}");
        }
    });
    let shared = Arc::clone(&notices.shared);
    tokio::spawn(async move {
        while let Some(reminder) = receiver.recv().await {
            shared.emit(Event::Waiting(Box::new(reminder)));
        }
    });
    Some(stop.drop_guard())
}

/// Returns the check of reminders for `doctor`; `None` if none are configured.
pub(super) fn reminder_check(notify: &Notify) -> Option<Check> {
    let Notify { bell, osc, webhook: to } = notify;
    let mut ways: Vec<String> = Vec::new();
    ways.extend(bell.then(|| "the bell".to_owned()));
    ways.extend(osc.then(|| "a notification of the terminal".to_owned()));
    if let Some(to) = to {
        if let Err(why) = webhook(to) {
            let help = format!("set {} in the environment of the worker", to.secret_env);
            return Some(Check::problem("reminders", format!("none are sent: {why}"), help));
        }
        let address = to.url.split('?').next().unwrap_or_default();
        ways.push(format!("signed messages to {}", redacted_text(address)));
    }
    (!ways.is_empty()).then(|| Check::good("reminders", ways.join(", ")))
}

/// Creates the webhook with its secret, which is only in the environment.
fn webhook(to: &WebhookTo) -> Result<Webhook, String> {
    let secret = std::env::var(&to.secret_env)
        .ok()
        .filter(|secret| !secret.is_empty())
        .ok_or_else(|| format!("the environment variable {} of notify.webhook is not set", to.secret_env))?;
    Webhook::new(&to.url, &secret)
}
