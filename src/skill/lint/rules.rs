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
    FILE_TOO_LARGE = "file-too-large" Error: "Move reference material into files next to SKILL.md; they \
        are read only when needed.";
    /// The bytes are not UTF-8.
    NOT_UTF8 = "not-utf8" Error: "Save the file as UTF-8.";
    /// The file cannot be read.
    UNREADABLE = "unreadable" Error: "Check that the file exists and that you may read it.";
    /// A link leads out of the root.
    LINK_LEAVES_ROOT = "link-leaves-root" Error: "Copy the bundle into the root, or add its target \
        folder as a root.";
    /// The file's name differs from `SKILL.md` by case.
    FILE_NAME_CASE = "file-name-case" Warning: "Rename it to SKILL.md: on a case-sensitive file system \
        most clients accept only that name.";
    /// A file that nobody reads, because one beside it has the same name but for its case.
    FILE_IGNORED = "file-ignored" Warning: "Keep one of the two: a case-insensitive file system can hold \
        only one of them, and which one is undefined.";
    /// A byte order mark before the frontmatter.
    BYTE_ORDER_MARK = "byte-order-mark" Warning fixable: "Save the file as UTF-8 without a byte order mark: Codex and Gemini CLI drop the skill.";
    /// Lines end in CR LF.
    CRLF = "crlf" Info fixable: "Use line feeds only; some clients expect `---` followed by a line feed.";
    /// Blank lines before the opening fence.
    LEADING_BLANK_LINES = "leading-blank-lines" Warning fixable: "Start the file with `---`: Codex, Gemini CLI, OpenCode, OpenClaw and Copilot drop the skill, and Claude Code lists `---` as its description.";

    // Frontmatter as a whole.
    /// There is no frontmatter.
    NO_FRONTMATTER = "no-frontmatter" Error: "Start the file with `---`, a `name`, a `description`, and `---`.";
    /// The opening fence is missing.
    NO_OPENING_FENCE = "no-opening-fence" Error fixable: "Put `---` on a line of its own before the first key.";
    /// The closing fence is missing.
    NO_CLOSING_FENCE = "no-closing-fence" Error fixable: "Put `---` on a line of its own after the last key.";
    /// The frontmatter is not YAML, even after repairs.
    BAD_YAML = "bad-yaml" Error: "Correct the YAML; no client can read the fields otherwise.";
    /// The frontmatter is YAML, but no mapping.
    NOT_A_MAPPING = "not-a-mapping" Error: "Write `key: value` lines between the fences.";
    /// A plain scalar that holds `: `.
    UNQUOTED_COLON = "unquoted-colon" Error fixable: "Put the value in quotes: `: ` in an unquoted value \
        is not valid YAML, and Copilot drops the skill without a message.";
    /// A plain scalar that starts with a character which YAML reserves.
    UNQUOTED_VALUE = "unquoted-value" Error fixable: "Put the value in quotes: it starts with a reserved \
        character of YAML.";
    /// A key that is in the value of another one: its line break is lost.
    SWALLOWED_KEY = "swallowed-key" Warning: "Put the key on its own line, or quote the value if it is \
        meant as text.";
    /// A key stands twice.
    DUPLICATE_KEY = "duplicate-key" Error: "Keep one of them: Codex, OpenCode, OpenClaw and Copilot drop the skill, others take the last.";
    /// A value has another type than its field.
    WRONG_TYPE = "wrong-type" Warning: "Use the type that the field requires.";
    /// A key that looks like a misspelling of a known one.
    MISSPELT_KEY = "misspelt-key" Warning: "Correct the key; no client reads it.";
    /// Keys that no known client reads.
    UNKNOWN_KEYS = "unknown-keys" Info: "Move them under `metadata`, which the specification reserves \
        for custom data.";
    /// A field is given twice, at the top and under `metadata`, with different values.
    CONTRADICTION = "contradiction" Warning: "Keep the value in one place.";

    // Fields of the specification.
    /// `name` is absent.
    NAME_MISSING = "name-missing" Error: "Add `name:` with the folder's name.";
    /// `name` is not 1 to 64 lower-case letters, digits and single hyphens.
    NAME_INVALID = "name-invalid" Error: "Use 1 to 64 lowercase letters, digits and single hyphens.";
    /// `name` has a sign that a client does not take.
    NAME_SIGNS = "name-signs" Warning: "Use only ASCII letters, digits, `:`, `_`, spaces and hyphens: \
        Copilot drops other names without a message.";
    /// Two skills of `OpenCode`'s folders have one name.
    NAME_UNDEFINED = "name-undefined" Warning: "Rename one of them, or keep it in a folder that OpenCode \
        does not read: which one it lists varies between starts.";
    /// `name` differs from the folder's.
    NAME_NOT_FOLDER = "name-not-folder" Error: "Use the same text for folder and name: some clients load \
        by one, some by the other.";
    /// `description` is absent.
    DESCRIPTION_MISSING = "description-missing" Error: "Add a `description:` that states what the skill \
        does and when to use it; a model selects by it alone.";
    /// `description` is longer than 1,024 characters.
    DESCRIPTION_TOO_LONG = "description-too-long" Error: "Shorten it to 1024 characters: Copilot drops \
        the skill, and Codex lists only the first 1021.";
    /// `description` is longer than 220 characters.
    DESCRIPTION_OVER_220 = "description-over-220" Info: "Put the most important terms into the first 217 \
        characters: OpenClaw truncates the rest.";
    /// `description` holds a closing tag.
    DESCRIPTION_CLOSING_TAG = "description-closing-tag" Warning: "Remove `</`: Gemini CLI and OpenCode \
        write descriptions between tags without escaping, so it can end the enclosing list.";
    /// `description` is left over from a template.
    DESCRIPTION_TEMPLATE = "description-template" Error: "Replace it with what the skill does and when \
        to use it.";
    /// `description` is so short that nothing can be matched to it.
    DESCRIPTION_SHORT = "description-short" Warning: "State what it does and when to use it, with words \
        of typical requests.";
    /// `description` only repeats the name.
    DESCRIPTION_REPEATS_NAME = "description-repeats-name" Warning: "State what the name does not: \
        inputs, outputs, and when to use it.";
    /// `description` does not say when to use the skill.
    DESCRIPTION_NO_WHEN = "description-no-when" Info: "Add a sentence such as “Use when …”: a model \
        selects by it.";
    /// `description` speaks as "I" or "we".
    DESCRIPTION_FIRST_PERSON = "description-first-person" Info: "Use the third person (“Converts …”): \
        the text is part of the model's instructions, where “I” is the model.";
    /// `description` holds XML tags.
    DESCRIPTION_XML = "description-xml" Warning: "Remove the angle brackets: clients put descriptions \
        between XML tags, and some reject this.";
    /// `compatibility` is longer than 500 characters.
    COMPATIBILITY_TOO_LONG = "compatibility-too-long" Error: "Shorten it to 500 characters; details \
        belong in the body.";

    // Classification.
    /// A word that the field does not know.
    CLASSIFICATION_INVALID = "classification-invalid" Error: "Use one of the allowed values.";
    /// A sidecar that is invoked directly.
    SIDECAR_DIRECT = "sidecar-direct" Error: "A sidecar can only be attached: use `invocation: attach`.";
    /// Attaching without anything to attach to.
    ATTACH_WITHOUT_TARGETS = "attach-without-targets" Error: "Add `attach_targets` with at least one of task, run, output, transcript, artifact.";
    /// Targets of a skill that cannot be attached.
    DIRECT_WITH_TARGETS = "direct-with-targets" Error: "Remove `attach_targets`, or use `invocation: both`.";

    // Body.
    /// Nothing is below the frontmatter.
    BODY_EMPTY = "body-empty" Warning: "Add instructions below the frontmatter; loading this skill has \
        no effect.";
    /// The body has 500 lines or more.
    BODY_MANY_LINES = "body-many-lines" Warning: "Keep the body below 500 lines; move details into `references/` and link them.";
    /// The body takes 5,000 tokens or more.
    BODY_MANY_TOKENS = "body-many-tokens" Info: "Less than 5,000 tokens is recommended: the complete \
        body is added to the context on every load.";
    /// The body takes more than 8,000 tokens.
    BODY_TOO_MANY_TOKENS = "body-too-many-tokens" Warning: "Move material that is not always needed into \
        `references/` and link it.";
    /// A relative link leads nowhere.
    BROKEN_LINK = "broken-link" Warning: "Correct the path, or add the file to the bundle.";
    /// Several relative links lead nowhere, and there is no other file at all.
    RESOURCES_MISSING = "resources-missing" Warning: "Copy the files of the skill next to its SKILL.md, \
        or remove the links.";
    /// A relative link leads out of the bundle.
    LINK_LEAVES_BUNDLE = "link-leaves-bundle" Info: "Copy the file into the bundle, or refer to the \
        other skill instead: this file is missing if the skill is installed alone.";

    // Contracts, capabilities, bindings and services.
    /// A part that the form demands is absent or has no meaning.
    CONTRACT_INVALID = "contract-invalid" Error: "Correct it; the contract cannot run otherwise.";
    /// A key that no reader of contracts knows.
    CONTRACT_UNKNOWN_KEY = "contract-unknown-key" Warning: "Correct or delete the key; it has no effect.";
    /// A step reads or waits for something that is not there.
    CONTRACT_REFERENCE = "contract-reference" Error: "Use an input, an output of an earlier step, or a \
        step of this contract.";
    /// An expression that cannot be read.
    CONTRACT_EXPRESSION = "contract-expression" Error: "Use references, constants, == != > < >= <=, in, not in, and, or, not.";
    /// A step calls something that is declared nowhere.
    CONTRACT_CAPABILITY = "contract-capability" Warning: "Declare it in `capabilities/`, in the bundle \
        or next to it, or use an existing one.";
    /// A step gives a capability what it does not take.
    CONTRACT_INPUT = "contract-input" Error: "Pass the inputs that the capability declares, with their \
        types.";
    /// An output that no step produces.
    CONTRACT_OUTPUT = "contract-output" Warning: "Write it in a step, or remove it from `outputs`.";

    // What a reader should know before trusting it.
    /// Characters that cannot be seen, or that change the order of what is seen.
    HIDDEN_CHARACTERS = "hidden-characters" Warning: "Delete them: a model reads them, but a person \
        cannot see them.";
    /// Unicode tag characters, bidi overrides, smuggled variation selectors.
    SMUGGLED_TEXT = "smuggled-text" Error: "Delete them: such text can carry hidden instructions.";
    /// `` !`command` `` in the body.
    COMMAND_EXPANSION = "command-expansion" Warning: "Write the command as text instead: Claude Code \
        runs it as soon as the skill is loaded.";
    /// The frontmatter has hooks.
    HOOKS = "hooks" Warning: "Note: clients that support hooks run these commands automatically.";
    /// Tools that the skill grants itself without a limit.
    GRANTS_SHELL = "grants-shell" Warning: "List specific commands, such as `Bash(git status:*)`: this \
        allows any command without asking.";
    /// Tools that the skill grants itself.
    GRANTS_TOOLS = "grants-tools" Info: "Note: these tools run without asking while the skill is active.";

    // Among other skills.
    /// `requires` names a skill that is not here.
    REQUIRES_UNKNOWN = "requires-unknown" Warning: "Correct the name, or install the skill: this skill \
        tells the model to read it.";
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
