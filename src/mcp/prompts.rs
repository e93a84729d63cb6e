//! Prompts: the skills whose authors offer them to users as commands.

use rmcp::model::{
    ErrorData, GetPromptRequestParams, GetPromptResult, ListPromptsResult, PaginatedRequestParams, Prompt,
    PromptArgument, PromptMessage, Role,
};
use serde_json::Value;

use super::page;
use super::resources::failed;
use skills_api::{Code, Error, SharedClient};
use skills_skill::Skill;

/// Maximum length of a prompt with its arguments: a body may repeat them.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// Number of prompts per page.
const PROMPTS: usize = 200;
/// The only argument: what a user types after the command.
pub const ARGUMENT: &str = "arguments";

/// Returns whether a skill is offered. Claude Code offers every one that does not opt out; a client with thousands of
/// skills would show thousands of commands, so here its author has to opt in by one of the supported fields.
pub fn is_offered(skill: &Skill) -> bool {
    let says = &skill.clients;
    says.user_invocable.unwrap_or(says.argument_hint.is_some() || says.disable_model_invocation)
}

pub async fn list(
    core: &SharedClient,
    request: Option<PaginatedRequestParams>,
) -> Result<ListPromptsResult, ErrorData> {
    let catalog = core.catalog().await.map_err(|error| failed(&error))?;
    let (skills, next) = page::of(&catalog, request, PROMPTS, is_offered)?;
    let prompts = skills.iter().map(|skill| {
        let hint = skill.clients.argument_hint.as_deref().unwrap_or("what to apply the instructions to");
        let argument = PromptArgument::new(ARGUMENT).with_description(hint).with_required(false);
        let prompt = Prompt::new(skill.id.as_str(), Some(&skill.description), Some(vec![argument]));
        prompt.with_title(&skill.name)
    });
    let mut list = ListPromptsResult::with_all_items(prompts.collect());
    list.next_cursor = next;
    Ok(list)
}

/// Returns the body of a skill with its arguments.
pub async fn get(core: &SharedClient, request: GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    // An unknown prompt is an invalid parameter.
    let wrong = |error: Error| ErrorData::invalid_params(error.message, None);
    let argument = match request.arguments.unwrap_or_default().remove(ARGUMENT) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => {
            let message = format!("`{ARGUMENT}` is {other}; expected a string");
            return Err(wrong(Error::new(Code::InvalidRequest, message)));
        }
    };
    let catalog = core.catalog().await.map_err(|error| failed(&error))?;
    let skill = catalog.by_id(&request.name).filter(|skill| is_offered(skill)).ok_or_else(|| {
        let message = format!("prompt `{}` not found", request.name);
        wrong(Error::new(Code::NotFound, message))
    })?;
    let detail = core.describe(skill.id.as_str()).await.map_err(|error| failed(&error))?;
    let text = filled(&detail.body, argument.trim(), &skill.root_dir.to_string_lossy()).ok_or_else(|| {
        let message = format!("the prompt with its arguments has more than {MAX_TEXT_BYTES} bytes");
        wrong(Error::new(Code::InvalidRequest, message))
    })?;
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(&skill.description))
}

/// Returns the length of the text of a prompt.
pub fn text_bytes(prompt: &GetPromptResult) -> usize {
    let texts = prompt.messages.iter().filter_map(|message| message.content.as_text());
    texts.map(|content| content.text.len()).sum()
}

/// Replaces `$ARGUMENTS`, `$ARGUMENTS[N]` and `$N` (counted from 0) in a body by what was typed, or appends it if the
/// body contains none of them (<https://code.claude.com/docs/en/skills>). Command expansions are not executed. `None`
/// if the text is too long.
fn filled(body: &str, argument: &str, folder: &str) -> Option<String> {
    let words = words(argument);
    let (mut out, mut rest, mut named) = (String::with_capacity(body.len()), body, false);
    while let Some(at) = rest.find('$') {
        if out.len() > MAX_TEXT_BYTES {
            return None;
        }
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let place = if let Some(tail) = behind.strip_prefix("ARGUMENTS[") {
            number(tail).filter(|(_, tail)| tail.starts_with(']')).map(|(n, tail)| (n, &tail[1..]))
        } else {
            number(behind)
        };
        if let Some((n, tail)) = place {
            out.push_str(words.get(n).map(String::as_str).unwrap_or_default());
            (rest, named) = (tail, true);
        } else if let Some(tail) = behind.strip_prefix("ARGUMENTS") {
            out.push_str(argument);
            (rest, named) = (tail, true);
        } else if let Some(tail) = behind.strip_prefix("{CLAUDE_SKILL_DIR}") {
            out.push_str(folder);
            rest = tail;
        } else {
            out.push('$');
            rest = behind;
        }
    }
    out.push_str(rest);
    if !named && !argument.is_empty() {
        out.push_str(&format!("\n\nARGUMENTS: {argument}\n"));
    }
    (out.len() <= MAX_TEXT_BYTES).then_some(out)
}

/// Parses a number of one or two digits, and returns the rest.
fn number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let digits = text.get(..end).filter(|digits| (1..=2).contains(&digits.len()))?;
    Some((digits.parse().ok()?, &text[end..]))
}

/// Splits text into words like a shell: quotes group words.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut started) = (Vec::new(), String::new(), None, false);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'') => (quote, started) = (Some(c), true),
            None if c.is_whitespace() => {
                if started {
                    words.push(std::mem::take(&mut word));
                }
                started = false;
            }
            _ => {
                word.push(c);
                started = true;
            }
        }
    }
    if started {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_replace_their_placeholders() {
        let of = |body: &str| filled(body, "fix \"the door\" now", "/s").unwrap();
        assert_eq!(of("Do: $ARGUMENTS."), "Do: fix \"the door\" now.");
        assert_eq!(of("$0, $1, $ARGUMENTS[2], $7"), "fix, the door, now, ");
        assert_eq!(of("Run ${CLAUDE_SKILL_DIR}/x $0"), "Run /s/x fix");
        assert_eq!(
            of("Costs $ and $HOME and $ARGUMENTS[x]"),
            "Costs $ and $HOME and fix \"the door\" now[x]"
        );
        assert_eq!(of("Body"), "Body\n\nARGUMENTS: fix \"the door\" now\n");
        assert_eq!(filled("Body", "", "/s").unwrap(), "Body");
    }

    #[test]
    fn repeated_long_argument_is_rejected_before_allocation() {
        let argument = "x".repeat(MAX_TEXT_BYTES / 2);
        assert!(filled("$ARGUMENTS $ARGUMENTS", &argument, "/s").is_none());
        assert!(filled(&"$0".repeat(1_000_000), &argument, "/s").is_none());
        assert!(filled("Do: $ARGUMENTS", &argument, "/s").is_some());
    }

    #[test]
    fn words_are_split_as_in_a_shell() {
        assert_eq!(words(" a 'b c' \"\" d\"e\" "), ["a", "b c", "", "de"]);
        assert!(words("  ").is_empty());
    }
}
