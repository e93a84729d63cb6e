//! `skills runs approve` and `skills runs deny`: shows what would happen, prompts, and decides exactly what was shown.

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::next_steps::Caller;
use super::reporter::{self, Reporter};
use super::{bulk, clock, commands, decision_preview, plain, status};
use crate::Context;
use crate::args::DecideArgs;
use crate::failure::{Exit, Failure};
use crate::output::TextStyle;
use skills_api::{Code, CoreParts, DecisionPreview, Error, RunCommand, RunDetail};
use skills_model::{Choice, Verdict, check_offered};

pub async fn run(cx: &mut Context, args: &DecideArgs, verdict: Verdict) -> Result<Exit, Failure> {
    let Some(run) = &args.run else { return bulk::decide(cx, args, verdict).await };
    let client = cx.reach(CoreParts::Catalog).await?;
    let mut reporter = cx.reporter();
    let detail = client.run(run).await?;
    let id = detail.run.id.0.clone();
    // For a named run that does not wait there is no prompt: the core returns the outcome, or why the decision is
    // rejected.
    let waits = detail.sheet.as_ref().filter(|preview| is_meant(args, preview));
    let mut result = args.result.as_deref().map(|text| commands::json("--result", text, cx)).transpose()?;
    // Stating a result implies that the step completed.
    let mut choice = args.choice.or_else(|| result.as_ref().map(|_| Choice::Happened));
    if let Some(preview) = waits {
        let (plain, caller) = (cx.is_plain(), Caller::of(&cx.global));
        let decision = DecisionPrompt { verdict, id: &id, args, choice, caller, plain };
        decision.check_choice(preview)?;
        let named = decision.is_named();
        if !(args.yes && named) {
            let text = if plain {
                plain::text::decision_preview(preview, &decision.caller, false)
            } else {
                let (now_ms, zone) = (clock::now_ms(), TimeZone::system());
                decision_preview::render(preview, &decision.caller, now_ms, &zone, reporter.look)
            };
            decision.show(&mut reporter, &text);
        }
        if let Some(why) = decision.obstacle(preview) {
            return Err(Error::new(Code::Forbidden, format!("not approved: {why}")).into());
        }
        if args.yes && !named {
            return Err(decision.unnamed(preview).into());
        }
        choice = decision.choice(preview)?;
        if choice == Some(Choice::Happened) && result.is_none() {
            result = Some(decision.result(preview)?);
        }
        if !args.yes && !decision.agreed(preview, choice)? {
            let message = format!("no decision made: run {} is still waiting", status::short(&id));
            return Err(Error::new(Code::ConfirmationRequired, message).into());
        }
    }
    let command = RunCommand::Decide {
        verdict,
        step: args
            .step
            .clone()
            .or_else(|| waits.map(|preview| preview.step.clone()))
            .or_else(|| recorded(args, &detail)),
        inputs_digest: args
            .inputs_digest
            .clone()
            .or_else(|| waits.map(|preview| preview.inputs_digest.clone())),
        approver: args
            .approver
            .clone()
            .or_else(|| waits.and_then(|preview| preview.approver.as_ref()).map(|(name, _)| name.clone())),
        notes: args.notes.clone(),
        choice,
        result,
    };
    let seen = commands::last_event(&detail);
    let steps = commands::step_names(&detail);
    let result = client.send_command(&id, command).await?;
    commands::continue_run(cx, &*client, result, seen, &steps, args.onward.detach, &mut reporter).await
}

/// Returns the step that was decided with the given digest, if it is no longer pending.
fn recorded(args: &DecideArgs, detail: &RunDetail) -> Option<String> {
    let digest = args.inputs_digest.as_ref()?;
    let mut decisions = detail.decisions.iter().rev().map(|record| &record.decision);
    let waiting = || detail.sheet.as_ref().map(|preview| preview.step.clone());
    decisions
        .find(|decision| decision.inputs_digest == *digest)
        .map(|decision| decision.step.clone())
        .or_else(waiting)
}

/// Returns whether the pending gate is the one that the options name.
fn is_meant(args: &DecideArgs, preview: &DecisionPreview) -> bool {
    args.step.as_ref().is_none_or(|step| *step == preview.step)
        && args.inputs_digest.as_ref().is_none_or(|digest| *digest == preview.inputs_digest)
}

/// A decision to be made.
struct DecisionPrompt<'a> {
    verdict: Verdict,
    id: &'a str,
    args: &'a DecideArgs,
    /// The choice given by the options for an unknown outcome.
    choice: Option<Choice>,
    caller: Caller,
    /// Prompts as the dialog for screen readers does: a typed word confirms.
    plain: bool,
}

impl DecisionPrompt<'_> {
    fn show(&self, reporter: &mut Reporter, text: &str) {
        let title = match self.verdict {
            Verdict::Approve => "Pending approval",
            Verdict::Deny => "Pending approval (denying it cancels the run)",
        };
        reporter.print_line(&format!("{}\n\n{text}", TextStyle::Strong.paint(title, reporter.look.color)));
    }

    /// Returns whether the options name what is decided, so that nothing has to be shown first.
    fn is_named(&self) -> bool {
        let denies = self.verdict == Verdict::Deny;
        self.args.inputs_digest.is_some() || (denies && self.args.step.is_some())
    }

    /// Checks that the choice given by the options is one that the step offers, before anything is shown or suggested.
    fn check_choice(&self, preview: &DecisionPreview) -> Result<(), Error> {
        let check = |choice| check_offered(&preview.step, preview.outcome_unknown, self.verdict, choice);
        self.choice.map_or(Ok(()), check).map_err(Error::from)
    }

    /// Returns why the approval would be rejected, before the command that approves is suggested.
    fn obstacle<'p>(&self, preview: &'p DecisionPreview) -> Option<&'p str> {
        // The complete command gets the answer of the core, also if it is repeated.
        if self.verdict == Verdict::Deny || (self.args.yes && self.is_named()) {
            return None;
        }
        // To record the outcome of a step executes nothing.
        let executes = !preview.outcome_unknown || self.choice == Some(Choice::Rerun);
        let blocked = preview.blocked.as_deref().filter(|_| executes);
        // Who else may not approve is not known.
        let not_approver = preview.not_approver.as_deref().filter(|_| self.args.approver.is_none());
        blocked.or(not_approver)
    }

    /// Returns why `--yes` alone decides nothing, with the command that does.
    fn unnamed(&self, preview: &DecisionPreview) -> Error {
        let option = match self.verdict {
            Verdict::Approve => "--inputs-digest",
            Verdict::Deny => "--step or --inputs-digest",
        };
        let message = format!(
            "no decision made: --yes requires {option}. To {}, {}",
            self.verdict,
            self.instead(preview)
        );
        let reason = json!({ "run_id": self.id, "decision": preview, "command": self.command(preview) });
        Error { reason: Some(reason), ..Error::new(Code::ConfirmationRequired, message) }
    }

    /// Returns the options to pass if there is no terminal to prompt on.
    fn instead(&self, preview: &DecisionPreview) -> String {
        let instruction = match self.choice {
            None if preview.outcome_unknown && self.verdict == Verdict::Approve => {
                "keep one of the choices and run"
            }
            Some(Choice::Happened) if self.args.result.is_none() => "replace JSON with the result and run",
            _ => "run",
        };
        format!("{instruction}: {}", self.command(preview))
    }

    /// Returns the command that decides what is shown without a prompt, with the options of this one.
    fn command(&self, preview: &DecisionPreview) -> String {
        let verb = self.verdict.to_string();
        let typed = self.choice.map(|choice| choice.to_string());
        let open = preview.outcome_unknown && self.verdict == Verdict::Approve;
        let choice = typed.as_deref().or(open.then_some("rerun|happened|skip|fail"));
        let result = match (&self.args.result, self.choice) {
            (None, Some(Choice::Happened)) => Some("JSON"),
            (notes, _) => notes.as_deref(),
        };
        let options = [
            ("--step", Some(preview.step.as_str())),
            ("--inputs-digest", Some(&preview.inputs_digest)),
            ("--choice", choice),
            ("--result", result),
            ("--approver", self.args.approver.as_deref()),
            ("--notes", self.args.notes.as_deref()),
        ];
        let mut words = vec!["runs", &verb, self.id];
        for (option, value) in options {
            words.extend(value.into_iter().flat_map(|value| [option, value]));
        }
        if self.args.onward.detach {
            words.push("--detach");
        }
        words.push("--yes");
        self.caller.line(&words)
    }

    /// Prompts for the choice if the outcome of a step is unknown.
    fn choice(&self, preview: &DecisionPreview) -> Result<Option<Choice>, Failure> {
        let open = preview.outcome_unknown && self.verdict == Verdict::Approve && self.choice.is_none();
        if !open {
            return Ok(self.choice);
        }
        let question = format!(
            "Outcome of {}: run it again, record that it happened, skip it, or fail it? (rerun, happened, \
                skip, fail) [cancel]:",
            preview.step
        );
        let answer = reporter::ask(&question, &self.instead(preview))?;
        if let Ok(choice) = answer.parse::<Choice>() {
            Ok(Some(choice))
        } else {
            let message = format!(
                "no decision made: {answer:?} is not one of rerun, happened, skip, fail; run {} is still \
                    waiting",
                status::short(self.id)
            );
            Err(Error::new(Code::ConfirmationRequired, message).into())
        }
    }

    /// Prompts for the outputs of a step that was completed.
    fn result(&self, preview: &DecisionPreview) -> Result<Value, Failure> {
        let fields: Vec<String> =
            preview.outputs.iter().map(|(name, field)| format!("{name}: {}", field.kind)).collect();
        let fields = if fields.is_empty() { "any fields".to_owned() } else { fields.join(", ") };
        let question = format!("Result of {} as one line of JSON ({fields}) [none]:", preview.step);
        let answer = reporter::ask_text(&question, &self.instead(preview))?;
        serde_json::from_str(&answer).map_err(|error| {
            let message = format!(
                "no decision made: the result is not valid JSON: {error}; run {} is still waiting",
                status::short(self.id)
            );
            Error::new(Code::ConfirmationRequired, message).into()
        })
    }

    fn agreed(&self, preview: &DecisionPreview, choice: Option<Choice>) -> Result<bool, Failure> {
        // A choice typed at the previous prompt also answers this one.
        if choice.is_some() && self.choice.is_none() {
            return Ok(true);
        }
        if self.plain {
            let word = self.verdict.to_string();
            let question = format!("Type the word {word} to confirm, or press Enter to abort:");
            return Ok(reporter::ask(&question, &self.instead(preview))? == word);
        }
        let question = match self.verdict {
            Verdict::Approve => "Approve? [y/N]",
            Verdict::Deny => "Deny? [y/N]",
        };
        let answer = reporter::ask(question, &self.instead(preview))?;
        Ok(matches!(answer.as_str(), "y" | "yes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, RunsAction};
    use crate::runs::samples::{caller, detail};
    use skills_model::RunState;

    fn args(words: &[&str]) -> DecideArgs {
        use clap::Parser as _;
        let cli = Cli::try_parse_from([&["skills", "runs", "approve", "abcd"], words].concat()).unwrap();
        match cli.command {
            Some(Command::Runs(runs)) => match runs.action.unwrap() {
                RunsAction::Approve(args) => args,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_the_named_gate_is_decided() {
        let preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        assert!(is_meant(&args(&[]), &preview));
        assert!(is_meant(&args(&["--step", "book", "--inputs-digest", &"9f".repeat(32)]), &preview));
        assert!(!is_meant(&args(&["--step", "sum"]), &preview));
        assert!(!is_meant(&args(&["--inputs-digest", "00"]), &preview));
    }

    #[test]
    fn choice_is_only_accepted_for_the_approval_of_an_unknown_outcome() {
        let args = args(&[]);
        let mut preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        let code = |verdict, choice, preview: &DecisionPreview| {
            let caller = caller(&[]);
            let decision = DecisionPrompt { verdict, id: "abcd", args: &args, choice, caller, plain: false };
            decision.check_choice(preview).err().map(|error| error.code)
        };
        assert_eq!(code(Verdict::Approve, None, &preview), None);
        assert_eq!(code(Verdict::Approve, Some(Choice::Rerun), &preview), Some(Code::InvalidTransition));
        preview.outcome_unknown = true;
        assert_eq!(code(Verdict::Approve, Some(Choice::Rerun), &preview), None);
        assert_eq!(code(Verdict::Deny, Some(Choice::Rerun), &preview), Some(Code::InvalidTransition));
    }

    #[test]
    fn an_approval_that_would_be_rejected_is_not_suggested() {
        let mut preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        preview.not_approver = Some("a person other than ana must approve".to_owned());
        let why = |verdict, words: &[&str], preview: &DecisionPreview| {
            let args = args(words);
            let caller = caller(&[]);
            let decision =
                DecisionPrompt { verdict, id: "abcd", args: &args, choice: None, caller, plain: false };
            decision.obstacle(preview).is_some()
        };
        assert!(why(Verdict::Approve, &[], &preview), "only the default approver is checked");
        assert!(
            !why(Verdict::Deny, &[], &preview) && !why(Verdict::Approve, &["--approver", "bo"], &preview)
        );
        preview.not_approver = None;
        preview.blocked = Some("it was launched from skills that are not loaded".to_owned());
        assert!(why(Verdict::Approve, &["--approver", "bo"], &preview) && !why(Verdict::Deny, &[], &preview));
        assert!(!why(Verdict::Approve, &["--inputs-digest", "9f", "--yes"], &preview), "the core answers");
        preview.outcome_unknown = true;
        assert!(!why(Verdict::Approve, &[], &preview), "its outcome can be recorded");
    }

    #[test]
    fn without_a_prompt_the_complete_command_is_named() {
        let args = args(&[]);
        let caller = caller(&[]);
        let asking = DecisionPrompt {
            verdict: Verdict::Approve,
            id: "abcd",
            args: &args,
            choice: None,
            caller,
            plain: false,
        };
        let mut preview = detail(RunState::WaitingForHuman).sheet.unwrap();
        let digest = "9f".repeat(32);
        assert_eq!(
            asking.instead(&preview),
            format!("run: skills runs approve abcd --step book --inputs-digest {digest} --yes")
        );
        preview.outcome_unknown = true;
        let instead = asking.instead(&preview);
        assert!(instead.starts_with("keep one of the choices and run: skills runs approve"), "{instead}");
        assert!(instead.ends_with("--choice 'rerun|happened|skip|fail' --yes"), "{instead}");
        let prompt = DecisionPrompt { choice: Some(Choice::Happened), ..asking };
        let instead = prompt.instead(&preview);
        assert!(instead.starts_with("replace JSON with the result and run: skills"), "{instead}");
        assert!(instead.ends_with("--choice happened --result JSON --yes"), "{instead}");
    }
}
