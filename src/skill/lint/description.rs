//! Advice on descriptions: the only text that a model sees when it selects a skill. Each rule was tuned on thousands
//! of public descriptions, and reports nothing in uncertain cases.

use std::collections::HashSet;

use super::{LintInput, rules};
use crate::finding_builder::{Notes, slice};

/// Checks a stated description (one that was derived from the body has its own finding).
pub(super) fn check(subject: &LintInput<'_>, notes: &mut Notes<'_>) {
    let Some(at) = subject.value("description").filter(|at| !at.is_empty()) else { return };
    let field = Some("description");
    let description = subject.skill.description.as_str();
    if let Some(tag) = xml_tag(description) {
        let message = format!("the description contains `{tag}`, which looks like an XML tag");
        notes.add(&rules::DESCRIPTION_XML, field, at.clone(), message);
    }
    if description.contains("</") {
        let message = "the description contains `</`, which can end the enclosing list";
        notes.add(&rules::DESCRIPTION_CLOSING_TAG, field, at.clone(), message);
    }
    if let Some(left_over) = template(description) {
        let message = format!("the description is a placeholder: “{left_over}”");
        notes.add(&rules::DESCRIPTION_TEMPLATE, field, at, message);
        return;
    }
    // A skill that only users can invoke is not selected by its description.
    if subject.skill.clients.disable_model_invocation {
        return;
    }
    if repeats_only(description, &subject.skill.name) {
        let message = format!("the description only repeats the name `{}`", subject.skill.name);
        notes.add(&rules::DESCRIPTION_REPEATS_NAME, field, at, message);
        return;
    }
    let words = weight(description);
    if words < 5 {
        notes.add(&rules::DESCRIPTION_SHORT, field, at, "the description is too short to match requests");
        return;
    }
    if let Some(start) = first_person(description) {
        let message = format!("the description is in the first person: “{start} …”");
        notes.add(&rules::DESCRIPTION_FIRST_PERSON, field, at.clone(), message);
    }
    if subject.skill.clients.when_to_use.is_none() && is_latin(description) && !has_occasion(description) {
        notes.add(
            &rules::DESCRIPTION_NO_WHEN,
            field,
            at,
            "the description does not say when to use the skill",
        );
    }
}

/// Typical starts of descriptions left by templates and generators.
const TEMPLATE_STARTS: &[&str] = &[
    "todo",
    "tbd",
    "fixme",
    "xxx",
    "[todo",
    "[insert",
    "[your",
    "[describe",
    "[description",
    "[what",
    "<description",
    "<what",
    "<one",
    "<your",
    "{{",
    "replace with",
    "replace this",
    "describe what",
    "description of the skill",
    "description of what this skill",
    "a brief description of",
    "a short description of",
    "brief description of",
    "short description of",
    "your description",
    "your skill",
    "insert description",
    "enter description",
    "lorem ipsum",
    "template for a skill",
    "sample skill",
    "example skill",
    "test skill",
];

/// Typical template text anywhere in a description.
const TEMPLATE_PARTS: &[&str] = &["[TODO", "TODO: ", "翻訳が必要です"];

fn template(description: &str) -> Option<String> {
    let lower = description.trim_start_matches(['"', '*', ' ']).to_lowercase();
    let starts = TEMPLATE_STARTS.iter().any(|start| {
        lower
            .strip_prefix(start)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
    });
    (starts || TEMPLATE_PARTS.iter().any(|part| description.contains(part))).then(|| beginning(description))
}

fn beginning(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", slice(line, ..cut)),
        None => line.to_owned(),
    }
}

/// Returns the approximate number of words of a text; a CJK character counts as half a word.
fn weight(text: &str) -> usize {
    let wide = text.chars().filter(|c| is_cjk(*c)).count();
    let words =
        text.split_whitespace().filter(|word| word.chars().any(|c| c.is_alphanumeric() && !is_cjk(c)));
    wide / 2 + words.count()
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

/// Words without information about a skill.
const EMPTY_WORDS: &[&str] =
    &["a", "an", "the", "for", "of", "to", "and", "in", "with", "skill", "skills", "use", "this", "is", "my"];

fn repeats_only(description: &str, name: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let split = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        split.map(str::to_lowercase).filter(|word| !EMPTY_WORDS.contains(&word.as_str())).collect()
    };
    let name: HashSet<String> = words(name).into_iter().collect();
    words(description).iter().all(|word| name.contains(word))
}

/// Returns the words that start a sentence in the first person, outside of quotes.
fn first_person(description: &str) -> Option<String> {
    let mut quoted = false;
    let outside: String = description
        .chars()
        .filter(|c| {
            quoted ^= matches!(c, '"' | '“' | '”');
            !quoted
        })
        .collect();
    let sentence = outside.split(['.', '!', '?', '\n']).map(str::trim_start).find(|sentence| {
        ["I ", "I'm ", "I'll ", "I've ", "We ", "We'll ", "My ", "Our "]
            .iter()
            .any(|start| sentence.starts_with(start))
    })?;
    Some(sentence.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
}

fn is_latin(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    text.chars().filter(char::is_ascii_alphabetic).count() * 10 >= letters * 9
}

/// Words with which English descriptions state when to use a skill.
const OCCASIONS: &[&str] = &[
    "when",
    "whenever",
    "if",
    "while",
    "before",
    "after",
    "during",
    "trigger",
    "triggers",
    "triggered",
    "invoke",
    "invoked",
    "activate",
    "activates",
    "asks",
    "asked",
    "wants",
    "needs",
    "user",
    "users",
    "request",
    "requests",
    "mention",
    "mentions",
    "suitable",
    "ideal",
    "needed",
];

fn has_occasion(description: &str) -> bool {
    let lower = description.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let next = words.peek().copied().unwrap_or_default();
        let use_for = matches!(word, "use" | "used" | "useful" | "helps" | "load" | "read" | "apply" | "run")
            && matches!(
                next,
                "for"
                    | "to"
                    | "it"
                    | "this"
                    | "in"
                    | "on"
                    | "as"
                    | "with"
                    | "at"
                    | "by"
                    | "proactively"
                    | "only"
            );
        if OCCASIONS.contains(&word) || use_for {
            return true;
        }
    }
    false
}

/// Maximum length of a tag; longer text between angle brackets is not a tag.
const MAX_TAG_BYTES: usize = 40;

/// Returns the first `<name>` or `</name>`: clients of the specification wrap descriptions in such tags.
fn xml_tag(text: &str) -> Option<&str> {
    text.match_indices('<').find_map(|(start, _)| {
        let rest = text.as_bytes().get(start + 1..)?;
        let length =
            rest.iter().take(MAX_TAG_BYTES + 1).position(|byte| matches!(byte, b'<' | b'>' | b'\n'))?;
        let end = start + 1 + length;
        let inner = slice(text, start + 1..end);
        let name = inner.strip_prefix('/').unwrap_or(inner);
        let tag = rest.get(length) == Some(&b'>') && name.starts_with(|c: char| c.is_ascii_alphabetic());
        tag.then(|| slice(text, start..=end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_texts_are_recognized() {
        for text in [
            "TODO",
            "TODO: describe",
            "[TODO: Write comprehensive description]",
            "Replace with description of the skill and when Claude should use it.",
            "日本語翻訳：このファイルは perl-testing 用の日本語翻訳が必要です",
            "Sample skill",
        ] {
            assert!(template(text).is_some(), "{text}");
        }
        for text in [
            "TODO.md sync and FR codes",
            "Todoist automation through the API",
            "Fill a template for a contract",
            "Your skills as a negotiator, trained",
        ] {
            assert!(template(text).is_none(), "{text}");
        }
    }

    #[test]
    fn occasions_are_recognized_in_common_forms() {
        for text in
            ["Formats SQL. Use when a query is long.", "Use for shell commands", "Run before a release"]
        {
            assert!(has_occasion(text), "{text}");
        }
        for text in ["REST API design patterns and status codes", "Master TypeScript with advanced types"] {
            assert!(!has_occasion(text), "{text}");
        }
    }

    #[test]
    fn the_first_person_counts_outside_of_quotes() {
        assert_eq!(first_person("Reads mail. I can sort it.").as_deref(), Some("I can sort"));
        assert_eq!(first_person("Trigger with \"I want\" or \"We need it. I say\"."), None);
        assert_eq!(first_person("I/O bound work"), None);
    }

    #[test]
    fn repeated_name_is_not_a_description() {
        assert!(repeats_only("The skill for PDF tables", "pdf-tables"));
        assert!(!repeats_only("Extracts PDF tables", "pdf-tables"));
        assert_eq!(weight("从文件中提取表格数据"), 5);
    }

    #[test]
    fn tags_are_detected_but_comparisons_are_not() {
        assert_eq!(xml_tag("Writes <service>.md"), Some("<service>"));
        assert_eq!(xml_tag("if a < b and c > d"), None);
        assert_eq!(xml_tag("renders `<% tp.file %>`"), None);
    }
}
