//! Next steps for a user when the client could not be asked: commands with the options of this process or, if the
//! caller came over HTTP, where those options do not apply, the route.

use skills_api::operations::operation;
use skills_config::Invocation;
use skills_session::RunScriptArguments;
use skills_skill::safe_text;

/// Placeholder for the address, which only the caller knows.
const ADDRESS: &str = "URL";

/// How a user can reach the core of this server from outside the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextSteps {
    /// By commands with the options of this process.
    Commands(Invocation),
    /// By the HTTP service that the caller uses.
    Service,
    /// Not at all: the store of this process is in memory.
    Nowhere,
}

/// Message if the core cannot be reached.
const ONLY_HERE: &str = "it can only be decided in this connection, because this server keeps runs and \
    sessions in memory: use a client that supports elicitation, or start the server with `--store sqlite:FILE`";

impl NextSteps {
    /// Returns a command line that uses the same core.
    pub fn line(&self, words: &[&str]) -> String {
        let line = match self {
            Self::Commands(called) => called.line(words),
            Self::Service => Invocation::with(vec!["--connect".to_owned(), ADDRESS.to_owned()]).line(words),
            Self::Nowhere => Invocation::default().line(words),
        };
        safe_text::line(&line).into_owned()
    }

    /// Returns how to decide a waiting run. `asks` is the step and the digest of its inputs, if known.
    pub fn of_run(&self, run: &str, asks: Option<(&str, &str)>) -> String {
        if *self == Self::Nowhere {
            return ONLY_HERE.replacen("it", "It", 1);
        }
        let exact = asks.map_or(Vec::new(), |(step, digest)| vec!["--step", step, "--inputs-digest", digest]);
        let approve = self.line(&[&["runs", "approve", run], &exact[..]].concat());
        let show = self.line(&["runs", "show", run]);
        let mut route = self.route("run.approve", &[("run_id", run)]);
        if !route.is_empty() {
            route += " and `step` and `inputs_digest` in the body";
        }
        format!("The user can review it with `{show}` and decide with `{approve}` (or deny){route}")
    }

    /// Returns the command that confirms and runs a script exactly as requested.
    pub fn of_script(&self, session: &str, args: &RunScriptArguments, digest: &str) -> String {
        if *self == Self::Nowhere {
            return format!("; {ONLY_HERE}");
        }
        let mut words = vec!["session", "run-script", session, args.path.as_str()];
        if let Some(skill) = &args.skill {
            words.extend(["--skill", skill]);
        }
        let variables: Vec<String> = args.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        for variable in &variables {
            words.extend(["--env", variable]);
        }
        if let Some(workdir) = &args.workdir {
            words.extend(["--workdir", workdir]);
        }
        words.extend(["--inputs-digest", digest, "--yes"]);
        if !args.args.is_empty() {
            words.push("--");
            words.extend(args.args.iter().map(String::as_str));
        }
        if words.iter().any(|word| safe_text::line(word) != *word) {
            // A command that is displayed differently from what it is would run something else.
            let show = self.line(&["session", "show", session]);
            return format!(
                "; its arguments contain characters that cannot be displayed: the user can see the call with `{show}`"
            );
        }
        let route = self.route("session.tool", &[("session_id", session), ("tool", "skills.run_script")]);
        let route = if route.is_empty() { route } else { format!("{route} and `inputs_digest` in the body") };
        format!("; the user can run it with `{}`{route}", self.line(&words))
    }

    /// Returns the equivalent HTTP request, for callers over HTTP.
    fn route(&self, name: &str, params: &[(&str, &str)]) -> String {
        let Some(found) = operation(name).filter(|_| *self == Self::Service) else { return String::new() };
        let path = params.iter().fold(found.route.path.to_owned(), |path, (parameter, value)| {
            path.replace(&format!("{{{parameter}}}"), &safe_text::line(value))
        });
        format!(
            " at this service's address, or {} {path} with a key that has the scope `decide`",
            found.route.method
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn script(arguments: serde_json::Value) -> RunScriptArguments {
        serde_json::from_value(arguments).unwrap()
    }

    #[test]
    fn next_command_uses_the_same_store() {
        let called =
            NextSteps::Commands(Invocation::with(["--store", "sqlite:my m.db"].map(str::to_owned).into()));
        let args = script(json!({
            "path": "scripts/invoice.py", "args": ["--help", "it's"], "skill": "intake",
            "env": { "MODE": "dry run" }, "workdir": "in",
        }));
        assert_eq!(
            called.of_script("0198", &args, "9f"),
            "; the user can run it with `skills --store 'sqlite:my m.db' session run-script 0198 scripts/invoice.py --skill intake --env 'MODE=dry run' --workdir in --inputs-digest 9f --yes -- --help 'it'\\''s'`"
        );
        let hidden = called.of_script(
            "0198",
            &script(json!({ "path": "scripts/a.py", "args": ["a\u{1b}[2J"] })),
            "9f",
        );
        assert!(!hidden.contains('\u{1b}') && hidden.contains("session show 0198"), "{hidden}");
        let line = called.of_run("r1", Some(("book", "9f")));
        let approve = "`skills --store 'sqlite:my m.db' runs approve r1 --step book --inputs-digest 9f`";
        assert!(line.contains(approve), "{line}");
    }

    #[test]
    fn store_in_memory_has_no_next_command() {
        let script = NextSteps::Nowhere.of_script("s1", &script(json!({ "path": "scripts/a.py" })), "9f");
        for message in [NextSteps::Nowhere.of_run("r1", None), script] {
            assert!(message.contains("in memory") && !message.contains("approve"), "{message}");
        }
    }

    #[test]
    fn http_next_step_names_the_route_without_server_options() {
        let run = NextSteps::Service.of_run("r1", None);
        assert!(run.contains("`skills --connect URL runs approve r1`"), "{run}");
        assert!(run.contains("POST /v1/runs/r1/approve"), "{run}");
        let script = NextSteps::Service.of_script("s1", &script(json!({ "path": "scripts/a.py" })), "9f");
        assert!(script.contains("POST /v1/sessions/s1/tools/skills.run_script"), "{script}");
        assert!(
            script.contains(
                "`skills --connect URL session run-script s1 scripts/a.py --inputs-digest 9f --yes`"
            ),
            "{script}"
        );
    }
}
