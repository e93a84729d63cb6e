//! The `services` setting: the address, program or script of each service that bindings refer to.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::time::Duration;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::file::{place, wrong};
use super::{ConfigError, expand};
use skills_base::duration::MAX_SECONDS;
use skills_skill::contract::{Endpoint, ServiceTarget};

/// Allowed keys of a service.
const ALLOWED: &str = "allowed: one of `url` (with `headers`), `command` (with `args` and `env`) and `script`, and `timeout_seconds`";

/// A service as written in a file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServiceLayer {
    pub url: Option<Spanned<String>>,
    pub headers: Option<BTreeMap<String, String>>,
    pub command: Option<Spanned<String>>,
    pub args: Option<Vec<String>>,
    pub env: Option<BTreeMap<String, String>>,
    pub script: Option<Spanned<String>>,
    pub timeout_seconds: Option<Spanned<f64>>,
}

/// Validates a service. Paths are relative to the file's folder; `~` is expanded to `home`.
pub(super) fn endpoint(
    id: &str,
    written: Spanned<ServiceLayer>,
    file: &Path,
    home: &Path,
) -> Result<Endpoint, ConfigError> {
    let at = place(file, written.referenced);
    let layer = written.value;
    let timeout = match layer.timeout_seconds {
        None => None,
        Some(seconds) => match Duration::try_from_secs_f64(seconds.value) {
            Ok(time) if !time.is_zero() && time <= Duration::from_secs(MAX_SECONDS) => Some(time),
            _ => {
                let message = format!("`services.{id}.timeout_seconds` is {}", seconds.value);
                let allowed = format!("allowed: seconds, more than 0 and at most {MAX_SECONDS}");
                return Err(wrong(place(file, seconds.referenced), message, allowed));
            }
        },
    };
    let misplaced = [
        ("headers", layer.headers.is_some() && layer.url.is_none(), "url"),
        ("args", layer.args.is_some() && layer.command.is_none(), "command"),
        ("env", layer.env.is_some() && layer.command.is_none(), "command"),
    ];
    if let Some((key, _, needs)) = misplaced.iter().find(|(_, misplaced, _)| *misplaced) {
        return Err(wrong(at, format!("`services.{id}` has `{key}` without `{needs}`"), ALLOWED));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let reach = match (layer.url, layer.command, layer.script) {
        (Some(url), None, None) => {
            if let Some(why) = no_address(&url.value) {
                let message = format!("`services.{id}.url` is `{}`: {why}", url.value);
                let allowed =
                    "allowed: an address such as http://127.0.0.1:8080/v1 or https://api.example.com";
                return Err(wrong(place(file, url.referenced), message, allowed));
            }
            ServiceTarget::Http { url: url.value, headers: layer.headers.unwrap_or_default() }
        }
        (None, Some(command), None) => {
            if command.value.trim().is_empty() {
                let message = format!("`services.{id}.command` is empty");
                return Err(wrong(place(file, command.referenced), message, "allowed: a program"));
            }
            let program = if command.value.starts_with('~') || command.value.contains('/') {
                expand(&command.value, folder, home).to_string_lossy().into_owned()
            } else {
                command.value
            };
            let (args, env) = (layer.args.unwrap_or_default(), layer.env.unwrap_or_default());
            ServiceTarget::Command { program, args, env, directory: folder.to_owned() }
        }
        (None, None, Some(script)) => {
            let path = expand(&script.value, folder, home);
            let Some((bundle, script)) = in_scripts(&path) else {
                let message = format!(
                    "`services.{id}.script` is `{}`, which is not below a folder `scripts`",
                    path.display()
                );
                return Err(wrong(place(file, script.referenced), message, "allowed: …/scripts/NAME.py"));
            };
            ServiceTarget::Script { bundle, script }
        }
        (None, None, None) => {
            let message = format!("`services.{id}` has no `url`, `command` or `script`");
            return Err(wrong(at, message, ALLOWED));
        }
        _ => {
            return Err(wrong(
                at,
                format!(
                    "`services.{id}` has more than one of `url`, `command` and \
            `script`"
                ),
                ALLOWED,
            ));
        }
    };
    Ok(Endpoint { reach, timeout })
}

/// Returns why a text is not a valid service address, or `None` if it is.
fn no_address(url: &str) -> Option<&'static str> {
    let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else {
        return Some("it must start with http:// or https://");
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        Some("it has no host")
    } else if host.contains('@') {
        Some(
            "it contains a user or password; send them as a header, such as `Authorization: Bearer \
            ${TOKEN}`",
        )
    } else if rest.contains(['?', '#']) || url.chars().any(char::is_whitespace) {
        Some("it contains a query, a fragment or a space")
    } else {
        None
    }
}

/// Splits a path at its last folder `scripts` into the bundle and the script in it.
fn in_scripts(path: &Path) -> Option<(std::path::PathBuf, std::path::PathBuf)> {
    let parts: Vec<Component<'_>> = path.components().collect();
    let at = parts.iter().rposition(|part| *part == Component::Normal("scripts".as_ref()))?;
    (at > 0 && at + 1 < parts.len()).then(|| (parts[..at].iter().collect(), parts[at..].iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::super::{Arguments, Config, Env};
    use super::*;

    fn load(own: &str, project: &str) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("home/.config/skill-workbench/config.yaml", own);
        write("repo/.git/HEAD", "");
        write("repo/.skill-workbench.yaml", project);
        let env = Env::at(dir.path().join("home"));
        Config::load(&dir.path().join("repo"), &env, &Arguments::default())
            .map_err(|error| error.to_string().replace(&*dir.path().to_string_lossy(), ""))
    }

    #[test]
    fn a_service_is_an_address_a_program_or_a_script() {
        let config = load(
            "services:\n  chat: {url: 'https://api.example.com/v1', headers: {Authorization: 'Bearer ${KEY}'}, timeout_seconds: 2.5}\n  files: {command: mcp-files, args: [--root, /tmp], env: {MODE: ro}}\n  py: {script: tools/scripts/call.py}\nbindings: {text.classify: b1}\nconformance: strict\n",
            "",
        )
        .unwrap();
        let chat = &config.services["chat"];
        assert_eq!(chat.timeout, Some(Duration::from_millis(2500)));
        assert!(
            matches!(&chat.reach, ServiceTarget::Http { url, headers } if url == "https://api.example.com/v1" && headers["Authorization"] == "Bearer ${KEY}")
        );
        assert!(
            matches!(&config.services["files"].reach, ServiceTarget::Command { program, args, directory, .. } if program == "mcp-files" && args.len() == 2 && directory.ends_with("skill-workbench"))
        );
        assert!(matches!(&config.services["py"].reach, ServiceTarget::Script { bundle, script }
            if bundle.ends_with("skill-workbench/tools") && script == Path::new("scripts/call.py")));
        assert_eq!(config.bindings["text.classify"], "b1");
        assert_eq!(config.conformance.to_string(), "strict");
    }

    #[test]
    fn every_service_error_names_line_and_allowed_values() {
        let seen: Vec<String> = [
            ("services:\n  a: {}\n", ""),
            ("services:\n  a: {url: 'ftp://x'}\n", ""),
            ("services:\n  a: {url: 'http://me:pw@x/'}\n", ""),
            ("services:\n  a: {url: 'http://x', command: y}\n", ""),
            ("services:\n  a: {url: 'http://x', args: [y]}\n", ""),
            ("services:\n  a: {script: call.py}\n", ""),
            ("services:\n  a: {url: 'http://x', timeout_seconds: 0}\n", ""),
            ("services:\n  a: {url: 'http://x', timeout_seconds: 10000000000}\n", ""),
            ("services:\n  a: {url: 'http://x', tiemout: 1}\n", ""),
            ("conformance: loose\n", ""),
            ("bindings: {a: [b]}\n", ""),
            ("", "services: {a: {command: evil}}\n"),
            ("", "bindings: {a: b}\n"),
        ]
        .iter()
        .map(|(own, project)| load(own, project).unwrap_err())
        .collect();
        insta::assert_snapshot!(seen.join("\n"));
    }
}
