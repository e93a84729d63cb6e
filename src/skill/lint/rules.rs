//! The table of everything a finding can be about: code, weight, what to do, whether `--fix` may.

use crate::Severity;

/// One kind of remark. Its findings carry the code; the documentation lists this table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Stable kebab-case code.
    pub code: &'static str,
    /// How much its findings weigh.
    pub severity: Severity,
    /// Whether `skills lint --fix` can repair it without a guess.
    pub fixable: bool,
    /// What to do, as a sentence; single findings may say it more exactly.
    pub help: &'static str,
}

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $code:literal $severity:ident $($fixable:ident)? : $help:literal;)+) => {
        $($(#[$doc])* pub const $name: Rule = Rule {
            code: $code,
            severity: Severity::$severity,
            fixable: rules!(@fixable $($fixable)?),
            help: $help,
        };)+

        /// Every rule, in the order of the table.
        pub const ALL: &[Rule] = &[$($name),+];
    };
    (@fixable fixable) => { true };
    (@fixable) => { false };
}

rules! {
    // The file.
    /// The file is larger than 2 MiB.
    FILE_TOO_LARGE = "file-too-large" Error: "Move reference material into files beside SKILL.md; it is read only when it is needed.";
    /// The bytes are not UTF-8.
    NOT_UTF8 = "not-utf8" Error: "Save the file as UTF-8.";
    /// The file cannot be read.
    UNREADABLE = "unreadable" Error: "Check that the file exists and that you may read it.";
    /// A link leads out of the root.
    LINK_LEAVES_ROOT = "link-leaves-root" Error: "Copy the bundle into the root, or name the folder it leads to as a root of its own.";
    /// The file's name differs from `SKILL.md` by case.
    FILE_NAME_CASE = "file-name-case" Warning: "Rename it to SKILL.md: on a case-sensitive file system most clients look for that name alone.";
    /// A file that nobody reads, because one beside it has the same name but for its case.
    FILE_IGNORED = "file-ignored" Warning: "Keep one of the two: a file system that ignores case has room for one, and which one that is nobody knows.";
    /// A byte order mark before the frontmatter.
    BYTE_ORDER_MARK = "byte-order-mark" Warning fixable: "Save the file as UTF-8 without a byte order mark: Codex and Gemini CLI drop the skill.";
    /// Lines end in CR LF.
    CRLF = "crlf" Info fixable: "Use line feeds alone; some clients look for `---` followed by a line feed.";
    /// Blank lines before the opening fence.
    LEADING_BLANK_LINES = "leading-blank-lines" Warning fixable: "Start the file with `---`: Codex, Gemini CLI, OpenCode, OpenClaw and Copilot drop the skill, and Claude Code lists `---` as its description.";

    // Frontmatter as a whole.
    /// There is no frontmatter.
    NO_FRONTMATTER = "no-frontmatter" Error: "Start the file with `---`, a `name`, a `description`, and `---`.";
    /// The opening fence is missing.
    NO_OPENING_FENCE = "no-opening-fence" Error fixable: "Put `---` on a line of its own before the first key.";
    /// The closing fence is missing.
    NO_CLOSING_FENCE = "no-closing-fence" Error fixable: "Put `---` on a line of its own after the last key.";
    /// The frontmatter is no YAML, even after repairs.
    BAD_YAML = "bad-yaml" Error: "Correct the YAML here; until then no client can read any of the fields.";
    /// The frontmatter is YAML, but no mapping.
    NOT_A_MAPPING = "not-a-mapping" Error: "Write `key: value` lines between the fences.";
    /// A plain scalar that holds `: `.
    UNQUOTED_COLON = "unquoted-colon" Error fixable: "Put the value in quotes: `: ` inside a plain value is not YAML, and Copilot drops the skill without a message.";
    /// A plain scalar that starts with a character which YAML reserves.
    UNQUOTED_VALUE = "unquoted-value" Error fixable: "Put the value in quotes: it starts with a character that means something else in YAML.";
    /// A key that stands in the value of another one: its line break is lost.
    SWALLOWED_KEY = "swallowed-key" Warning: "Put the key on a line of its own, or the value in quotes where it is meant as text.";
    /// A key stands twice.
    DUPLICATE_KEY = "duplicate-key" Error: "Keep one of them: Codex, OpenCode, OpenClaw and Copilot drop the skill, others take the last.";
    /// A value has another type than its field.
    WRONG_TYPE = "wrong-type" Warning: "Write the value in the form that the field has.";
    /// A key that looks like a misspelling of a known one.
    MISSPELT_KEY = "misspelt-key" Warning: "Correct the key; as it stands no client reads it.";
    /// Keys that no known client reads.
    UNKNOWN_KEYS = "unknown-keys" Info: "Move them under `metadata`, the specification's place for a client's or an author's own data.";
    /// A field is given twice, at the top and under `metadata`, with different values.
    CONTRADICTION = "contradiction" Warning: "Keep the value in one place.";

    // Fields of the specification.
    /// `name` is absent.
    NAME_MISSING = "name-missing" Error: "Add `name:` with the folder's name.";
    /// `name` is not 1 to 64 lower-case letters, digits and single hyphens.
    NAME_INVALID = "name-invalid" Error: "Use 1 to 64 lower-case letters, digits and single hyphens.";
    /// `name` has a sign that a client does not take.
    NAME_SIGNS = "name-signs" Warning: "Use letters of ASCII, digits, `:`, `_`, blanks and hyphens alone: with any other sign Copilot drops the skill without a message.";
    /// Two skills of `OpenCode`'s folders have one name.
    NAME_UNDEFINED = "name-undefined" Warning: "Rename one of them, or keep it in a folder that OpenCode does not read: which of the two it lists differs from start to start.";
    /// `name` differs from the folder's.
    NAME_NOT_FOLDER = "name-not-folder" Error: "Give folder and name the same text: some clients load by one, some by the other.";
    /// `description` is absent.
    DESCRIPTION_MISSING = "description-missing" Error: "Add `description:` with what the skill does and when to use it; it is all that a model sees when it chooses.";
    /// `description` is longer than 1,024 characters.
    DESCRIPTION_TOO_LONG = "description-too-long" Error: "Cut it to 1024 characters: Copilot drops the skill, and Codex lists the first 1021.";
    /// `description` is longer than 220 characters.
    DESCRIPTION_OVER_220 = "description-over-220" Info: "Put what a model chooses by into the first 217 characters: OpenClaw lists no more of it.";
    /// `description` holds a closing tag.
    DESCRIPTION_CLOSING_TAG = "description-closing-tag" Warning: "Take `</` out: Gemini CLI and OpenCode write a description between tags without escaping it, so that it can end the list that it stands in.";
    /// `description` is left over from a template.
    DESCRIPTION_TEMPLATE = "description-template" Error: "Write what the skill does and when to use it in its place.";
    /// `description` is so short that nothing can be matched to it.
    DESCRIPTION_SHORT = "description-short" Warning: "Say what it does and when to use it, in words that a request would hold.";
    /// `description` only repeats the name.
    DESCRIPTION_REPEATS_NAME = "description-repeats-name" Warning: "Say what the name does not: what comes in, what comes out, and when to use it.";
    /// `description` does not say when to use the skill.
    DESCRIPTION_NO_WHEN = "description-no-when" Info: "Add a sentence with the occasion, such as “Use when …”: a model chooses by it.";
    /// `description` speaks as "I" or "we".
    DESCRIPTION_FIRST_PERSON = "description-first-person" Info: "Use the third person (“Converts …”): the text stands in the model's instructions, where “I” is the model.";
    /// `description` holds XML tags.
    DESCRIPTION_XML = "description-xml" Warning: "Take the angle brackets out: clients put the description between XML tags of their own, and some refuse it.";
    /// `compatibility` is longer than 500 characters.
    COMPATIBILITY_TOO_LONG = "compatibility-too-long" Error: "Cut it to 500 characters; details belong into the body.";

    // Classification.
    /// A word that the field does not know.
    CLASSIFICATION_INVALID = "classification-invalid" Error: "Use one of the field's words.";
    /// A sidecar that is invoked directly.
    SIDECAR_DIRECT = "sidecar-direct" Error: "A sidecar is only ever attached: write `invocation: attach`.";
    /// Attaching without anything to attach to.
    ATTACH_WITHOUT_TARGETS = "attach-without-targets" Error: "Add `attach_targets` with at least one of task, run, output, transcript, artifact.";
    /// Targets of a skill that cannot be attached.
    DIRECT_WITH_TARGETS = "direct-with-targets" Error: "Take `attach_targets` out, or write `invocation: both`.";

    // Body.
    /// Nothing stands below the frontmatter.
    BODY_EMPTY = "body-empty" Warning: "Write the instructions below the frontmatter; loading this skill gives a model nothing.";
    /// The body has 500 lines or more.
    BODY_MANY_LINES = "body-many-lines" Warning: "Keep the body below 500 lines; move details into `references/` and link them.";
    /// The body takes 5,000 tokens or more.
    BODY_MANY_TOKENS = "body-many-tokens" Info: "Below 5,000 tokens is recommended: the whole body enters the context on every load.";
    /// The body takes more than 8,000 tokens.
    BODY_TOO_MANY_TOKENS = "body-too-many-tokens" Warning: "Move what is not always needed into `references/` and link it.";
    /// A relative link leads nowhere.
    BROKEN_LINK = "broken-link" Warning: "Correct the path, or add the file to the bundle.";
    /// Several relative links lead nowhere, and there is no other file at all.
    RESOURCES_MISSING = "resources-missing" Warning: "Copy the files that belong to the skill beside its SKILL.md, or take the links out.";
    /// A relative link leads out of the bundle.
    LINK_LEAVES_BUNDLE = "link-leaves-bundle" Info: "Copy the file into the bundle, or name the other skill instead: a skill that is installed alone does not have this file.";

    // Contracts, capabilities, bindings and services.
    /// A part that the form demands is absent or has no meaning.
    CONTRACT_INVALID = "contract-invalid" Error: "Correct it; until then the contract does not run.";
    /// A key that no reader of contracts knows.
    CONTRACT_UNKNOWN_KEY = "contract-unknown-key" Warning: "Correct or delete the key; it changes nothing as it stands.";
    /// A step reads or waits for something that is not there.
    CONTRACT_REFERENCE = "contract-reference" Error: "Name an input, an earlier step's output, or a step of this contract.";
    /// An expression that cannot be read.
    CONTRACT_EXPRESSION = "contract-expression" Error: "Use references, constants, == != > < >= <=, in, not in, and, or, not.";
    /// A step calls something that is declared nowhere.
    CONTRACT_CAPABILITY = "contract-capability" Warning: "Declare it in `capabilities/`, in the bundle or beside it, or name one that is there.";
    /// A step gives a capability what it does not take.
    CONTRACT_INPUT = "contract-input" Error: "Give the capability the inputs that it declares, each of its type.";
    /// An output that no step produces.
    CONTRACT_OUTPUT = "contract-output" Warning: "Let a step write it, or take it out of `outputs`.";

    // What a reader should know before trusting it.
    /// Characters that cannot be seen, or that change the order of what is seen.
    HIDDEN_CHARACTERS = "hidden-characters" Warning: "Delete them: a model reads what a person cannot see.";
    /// Unicode tag characters, bidi overrides, smuggled variation selectors.
    SMUGGLED_TEXT = "smuggled-text" Error: "Delete them: text of this kind carries instructions that no reader of the file sees.";
    /// `` !`command` `` in the body.
    COMMAND_EXPANSION = "command-expansion" Warning: "Say in the text which command to run instead: Claude Code runs this one as soon as the skill is loaded.";
    /// The frontmatter has hooks.
    HOOKS = "hooks" Warning: "Readers should know: a client that supports hooks runs these commands by itself.";
    /// Tools that the skill grants itself without a limit.
    GRANTS_SHELL = "grants-shell" Warning: "Name the commands, such as `Bash(git status:*)`: this runs any command without asking.";
    /// Tools that the skill grants itself.
    GRANTS_TOOLS = "grants-tools" Info: "Readers should know: these tools run without asking while the skill is active.";

    // Among other skills.
    /// `requires` names a skill that is not here.
    REQUIRES_UNKNOWN = "requires-unknown" Warning: "Correct the name, or install the skill: loading this one tells the model to read it too.";
    /// Another bundle of higher precedence has the same id.
    SHADOWED = "shadowed" Warning: "Rename one of them, or delete the copy.";
}

/// The rule with a code, if there is one.
#[must_use]
pub fn by_code(code: &str) -> Option<&'static Rule> {
    ALL.iter().find(|rule| rule.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_kebab_case_and_helps_are_sentences() {
        let mut codes: Vec<_> = ALL.iter().map(|rule| rule.code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ALL.len());
        for rule in ALL {
            assert!(rule.code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            assert!(rule.help.ends_with('.'), "{}", rule.code);
            assert_eq!(by_code(rule.code), Some(rule));
        }
    }
}
