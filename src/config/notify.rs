//! The `notify` setting: how the user is notified that a run is waiting. Disabled by default.

use std::path::Path;

use serde_saphyr::Spanned;

use super::ConfigError;
use super::file::{NotifyLayer, place, wrong};

/// How the user is notified that a run is waiting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notify {
    /// Whether to ring the terminal's bell.
    pub bell: bool,
    /// Whether to show a desktop notification through the terminal (OSC 9 and OSC 777).
    pub osc: bool,
    /// A signed message to another program.
    pub webhook: Option<WebhookTo>,
}

/// Destination of webhook messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookTo {
    /// The address.
    pub url: String,
    /// The environment variable that contains the signing secret.
    pub secret_env: String,
}

impl Notify {
    /// Returns whether any notification is enabled.
    pub fn is_on(&self) -> bool {
        *self != Self::default()
    }

    pub(super) fn apply(&mut self, written: Spanned<NotifyLayer>, file: &Path) -> Result<(), ConfigError> {
        let layer = written.value;
        self.bell = layer.bell.unwrap_or(self.bell);
        self.osc = layer.osc.unwrap_or(self.osc);
        let Some(webhook) = layer.webhook else { return Ok(()) };
        let (url, variable) = (webhook.value.url, webhook.value.secret_env);
        let rest = url.value.strip_prefix("http://").or_else(|| url.value.strip_prefix("https://"));
        let host = rest.and_then(|rest| rest.split(['/', '?', '#', ':']).next()).unwrap_or_default();
        if host.is_empty() || url.value.chars().any(char::is_whitespace) {
            let message = format!("`notify.webhook.url` is `{}`", url.value);
            let allowed = "allowed: an address such as https://hooks.example.com/runs";
            return Err(wrong(place(file, url.referenced), message, allowed));
        }
        let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if variable.value.is_empty() || !variable.value.chars().all(is_valid) {
            let message = format!("`notify.webhook.secret_env` is `{}`", variable.value);
            let allowed = "allowed: the name of an environment variable, not the secret itself";
            return Err(wrong(place(file, variable.referenced), message, allowed));
        }
        self.webhook = Some(WebhookTo { url: url.value, secret_env: variable.value });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::*;

    fn read(text: &str) -> Result<Notify, String> {
        let file = Path::new("/h/config.yaml");
        let layer = parse(file, text).map_err(|error| error.to_string())?;
        let mut notify = Notify::default();
        notify.apply(layer.notify.unwrap(), file).map_err(|error| error.to_string())?;
        Ok(notify)
    }

    #[test]
    fn reminders_are_off_by_default() {
        assert!(!Notify::default().is_on());
        let expected = read(
            "notify: {bell: true, webhook: {url: 'https://hooks.example.com/a?b=1', secret_env: HOOK_KEY}}\n",
        );
        let expected = expected.unwrap();
        assert!(expected.is_on() && expected.bell && !expected.osc);
        assert_eq!(expected.webhook.unwrap().secret_env, "HOOK_KEY");
    }

    #[test]
    fn a_secret_in_the_file_and_a_wrong_address_are_refused() {
        let wrong =
            read("notify:\n  webhook: {url: 'https://x/', secret_env: whsec_MfKQ9r8=}\n").unwrap_err();
        assert!(wrong.contains(":2:") && wrong.contains("not the secret itself"), "{wrong}");
        let wrong = read("notify: {webhook: {url: 'hooks.example.com', secret_env: KEY}}\n").unwrap_err();
        assert!(wrong.contains("allowed: an address"), "{wrong}");
    }
}
