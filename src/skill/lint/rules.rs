//! The table of rules: code, severity, help, and whether `--fix` can repair it.

use crate::Severity;

/// One rule. Its findings carry the code; the documentation lists this table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Stable kebab-case code.
    pub code: &'static str,
    pub severity: Severity,
    /// Whether `skills lint --fix` can repair it unambiguously.
    pub fixable: bool,
    /// What it finds, as a phrase with a period.
    pub subject: &'static str,
    /// What to do, as a sentence; individual findings may be more specific. `Finding::action` is the part before the
    /// first `: `, which has to be a complete instruction.
    pub help: &'static str,
    /// Why it matters, as a sentence.
    pub reason: &'static str,
    /// An example: a complete `SKILL.md` or `skill.yaml` if one shows it, otherwise the situation.
    pub example: &'static str,
}

impl Rule {
    /// Returns what to do, without the explanation.
    pub fn action(&self) -> &'static str {
        crate::finding::action(self.help)
    }

    /// Returns whether a comment in the file may ignore it. A bundle must not hide what a user should know before
    /// trusting it.
    pub fn can_be_ignored(&self) -> bool {
        let trust =
            [&HIDDEN_CHARACTERS, &SMUGGLED_TEXT, &COMMAND_EXPANSION, &HOOKS, &GRANTS_SHELL, &GRANTS_TOOLS];
        !trust.contains(&self) && !self.code.starts_with("ignore-")
    }
}

macro_rules! rules {
    ($(#[doc = $subject:literal] $name:ident = $code:literal $severity:ident $($fixable:ident)? : $help:literal
        why $reason:literal example $example:literal;)+) => {
        $(#[doc = $subject] pub const $name: Rule = Rule {
            code: $code,
            severity: Severity::$severity,
            fixable: rules!(@fixable $($fixable)?),
            subject: $subject.trim_ascii(),
            help: $help,
            reason: $reason,
            example: $example,
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
        are read only when needed."
        why "No client loads instructions of that size, and reading them would stall the scan."
        example "a SKILL.md of 3 MiB with a pasted reference manual";
    /// The bytes are not UTF-8.
    NOT_UTF8 = "not-utf8" Error: "Save the file as UTF-8."
        why "The specification requires UTF-8; clients drop the file or show wrong characters."
        example "a file saved as Latin-1 with `é`";
    /// The path of the bundle is not UTF-8.
    PATH_NOT_UTF8 = "path-not-utf8" Error: "Rename the folder so that its name is UTF-8."
        why "JSON, the catalog and skill ids are UTF-8 text and cannot contain this path."
        example "a folder that an archive names in Latin-1 with `é`";
    /// The file cannot be read.
    UNREADABLE = "unreadable" Error: "Check that the file exists and that you may read it."
        why "Clients do not list a skill that they cannot read."
        example "a SKILL.md with mode 000";
    /// A link points outside the root.
    LINK_LEAVES_ROOT = "link-leaves-root" Error: "Copy the bundle into the root, or add its target \
        folder as a root."
        why "Reading it would expose files outside the folders that were configured."
        example "skills/notes -> /home/ana/private/notes";
    /// A folder in a client's folder of skills has no `SKILL.md`.
    SKILL_FILE_MISSING = "skill-file-missing" Warning: "Add a SKILL.md to the folder, or move it elsewhere if it is not \
        a skill."
        why "Clients skip such a folder without a message, so nothing shows why the skill is not offered."
        example "~/.claude/skills/pdf-tables/README.md without a SKILL.md next to it";
    /// The file name differs from `SKILL.md` by case.
    FILE_NAME_CASE = "file-name-case" Error: "Rename it to SKILL.md: on a case-sensitive file system \
        no known client accepts another name."
        why "Case-sensitive file systems have no other match, so clients skip the folder."
        example "pdf-tables/Skill.md";
    /// Another file has the same name except for case, or a contract is not named `skill.yaml`.
    FILE_IGNORED = "file-ignored" Warning: "Keep one of the two: a case-insensitive file system can hold \
        only one of them, and which one is undefined."
        why "The result depends on the file system, so colleagues see different skills."
        example "SKILL.md and skill.md in one folder";
    /// A byte order mark before the frontmatter.
    BYTE_ORDER_MARK = "byte-order-mark" Warning fixable: "Save the file as UTF-8 without a byte order mark: Codex and Gemini CLI drop the skill."
        why "Clients that compare the first three bytes with `---` find no frontmatter."
        example "a file that starts with the bytes EF BB BF";
    /// Lines end in CR LF.
    CRLF = "crlf" Info fixable: "Use line feeds only; some clients expect `---` followed by a line feed."
        why "Clients that search for `---` followed by a line feed find no frontmatter."
        example "a file with Windows line endings";
    /// Blank lines before the opening fence.
    LEADING_BLANK_LINES = "leading-blank-lines" Warning fixable: "Start the file with `---`: Codex, Gemini CLI, OpenCode, OpenClaw and Copilot drop the skill, and Claude Code lists `---` as its description."
        why "Clients expect the frontmatter at the first byte of the file."
        example "\n\n---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\n# Tables\n";

    // The frontmatter itself.
    /// The frontmatter is missing.
    NO_FRONTMATTER = "no-frontmatter" Error: "Start the file with `---`, a `name`, a `description`, and `---`."
        why "Without frontmatter, the skill has no name or description by which it can be selected."
        example "# Tables\n\nExtract the tables of a PDF.\n";
    /// The opening fence is missing.
    NO_OPENING_FENCE = "no-opening-fence" Error fixable: "Put `---` on a line of its own before the first key."
        why "The keys are read as body text, so the skill has no description."
        example "name: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\n# Tables\n";
    /// The closing fence is missing.
    NO_CLOSING_FENCE = "no-closing-fence" Error fixable: "Put `---` on a line of its own after the last key."
        why "The body is read as YAML, which fails in most clients."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n\n# Tables\n";
    /// The frontmatter is not YAML, even after repairs.
    BAD_YAML = "bad-yaml" Error: "Write each field as `key: value`, and quote values that contain `: `."
        why "A client that cannot parse the frontmatter drops the skill."
        example "---\nname: pdf-tables\ndescription: \"Extracts tables\n---\n# Tables\n";
    /// The frontmatter is YAML, but not a mapping.
    NOT_A_MAPPING = "not-a-mapping" Error: "Write `key: value` lines between the fences."
        why "Fields are looked up by key; a list or a string has none."
        example "---\n- pdf-tables\n- Extracts tables from PDF files.\n---\n";
    /// A plain scalar that contains `: `, or ends with a colon.
    UNQUOTED_COLON = "unquoted-colon" Error fixable: "Put the value in quotes: `: ` in an unquoted value \
        is not valid YAML, and Copilot drops the skill without a message."
        why "YAML reads `: ` as the start of a nested mapping."
        example "---\nname: pdf-tables\ndescription: Extracts tables: from PDF files. Use for PDFs.\n---\n# Tables\n";
    /// A plain scalar that starts with a character that has a special meaning in YAML.
    UNQUOTED_VALUE = "unquoted-value" Error fixable: "Put the value in quotes: its first character has a \
        special meaning in YAML."
        why "YAML gives some characters a meaning at the start of a value."
        example "---\nname: pdf-tables\ndescription: @tables of PDF files, extracted. Use for PDFs.\n---\n# Tables\n";
    /// A key inside the value of another one: its line break is missing.
    SWALLOWED_KEY = "swallowed-key" Warning: "Put the key on its own line, or quote the value if it is \
        meant as text."
        why "The key has no effect, and its text becomes part of the description."
        example "---\nname: pdf-tables\ndescription: 提取表格。license: MIT\n---\n# Tables\n";
    /// A duplicate key.
    DUPLICATE_KEY = "duplicate-key" Error: "Keep one of the keys: Codex, Copilot, goose, OpenClaw and OpenCode drop the \
        skill, others may use the last."
        why "The YAML standard forbids it, and parsers disagree about which value applies."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\nlicense: MIT\nlicense: Apache-2.0\n---\n# Tables\n";
    /// A value has a different type than its field.
    WRONG_TYPE = "wrong-type" Warning: "Use the type that the field requires."
        why "Clients convert such values differently or drop the skill."
        example "---\nname: 42\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\n# Tables\n";
    /// A key that looks like a misspelled known key.
    MISSPELT_KEY = "misspelt-key" Warning: "Correct the key; no client reads it."
        why "The value is silently ignored."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\nlicence: MIT\n---\n# Tables\n";
    /// Keys that no known client reads.
    UNKNOWN_KEYS = "unknown-keys" Info: "Move such keys under `metadata`, which the specification \
        reserves for custom data."
        why "Strict validators reject them, and a later version of a client may give them a meaning."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\nshoe-size: 42\n---\n# Tables\n";
    /// A field is set twice, at the top and under `metadata`, with different values.
    CONTRADICTION = "contradiction" Warning: "Keep the value in one place."
        why "Clients read one place or the other, so the skill behaves differently in each."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\nstatus: stable\nmetadata:\n  status: experimental\n---\n# Tables\n";

    // Fields of the specification.
    /// `name` is missing.
    NAME_MISSING = "name-missing" Error: "Add `name:` with the folder's name."
        why "The specification requires it; some clients drop the skill."
        example "---\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\n# Tables\n";
    /// `name` is not 1 to 64 lowercase letters, digits and single hyphens.
    NAME_INVALID = "name-invalid" Error: "Use 1 to 64 lowercase letters, digits and single hyphens."
        why "The specification restricts names, so that they work as folder names and in commands."
        example "---\nname: PDF Tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\n# Tables\n";
    /// `name` has a character that a client does not accept.
    NAME_SIGNS = "name-signs" Warning: "Use only ASCII letters, digits, `:`, `_`, spaces and hyphens: \
        Copilot drops other names without a message."
        why "Copilot drops the skill without a message."
        example "---\nname: pdf.tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\n# Tables\n";
    /// Two skills in `OpenCode`'s folders have the same name.
    NAME_UNDEFINED = "name-undefined" Warning: "Rename one of them, or keep it in a folder that OpenCode \
        does not read: which one it lists varies between starts."
        why "OpenCode reads the folders in parallel and keeps the last one."
        example ".opencode/skills/notes and .claude/skills/notes, both named `notes`";
    /// `name` differs from the folder's name.
    NAME_NOT_FOLDER = "name-not-folder" Error: "Use the same text for folder and name: some clients load \
        by one, some by the other."
        why "Some clients load by folder, some by name; only equal texts work in all."
        example "---\nname: tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\n# Tables\n";
    /// `description` is missing.
    DESCRIPTION_MISSING = "description-missing" Error: "Add a `description:` that states what the skill \
        does and when to use it; a model selects the skill by it alone."
        why "A model selects a skill by its description alone."
        example "---\nname: pdf-tables\n---\n# Tables\n";
    /// `description` is longer than 1,024 characters.
    DESCRIPTION_TOO_LONG = "description-too-long" Error: "Shorten it to 1,024 characters: Copilot drops \
        the skill, and Codex lists only the first 1,021."
        why "The specification allows 1,024 characters; clients truncate or drop longer ones."
        example "a description of 1,200 characters";
    /// `description` is longer than 220 characters.
    DESCRIPTION_OVER_220 = "description-over-220" Info: "Put the most important terms into the first 217 \
        characters: OpenClaw truncates the rest when its list is full."
        why "What a client cuts off cannot be matched."
        example "a description of 400 characters whose trigger terms are at its end";
    /// `description` contains a closing tag.
    DESCRIPTION_CLOSING_TAG = "description-closing-tag" Warning: "Remove `</`: Gemini CLI and OpenCode \
        write descriptions between tags without escaping, so it can end the enclosing list."
        why "A closing tag in an unescaped list can end the list early."
        example "---\nname: pdf-tables\ndescription: Extracts </tables> of PDF files. Use for PDFs.\n---\n# Tables\n";
    /// `description` is template text.
    DESCRIPTION_TEMPLATE = "description-template" Error: "Replace it with what the skill does and when \
        to use it."
        why "Template text matches nothing and looks like a skill that was never finished."
        example "---\nname: pdf-tables\ndescription: TODO\n---\n# Tables\n";
    /// `description` is too short to match requests.
    DESCRIPTION_SHORT = "description-short" Warning: "State what it does and when to use it, with words \
        of typical requests."
        why "A few words are not enough to match requests."
        example "---\nname: pdf-tables\ndescription: PDF tool\n---\n# Tables\n";
    /// `description` only repeats the name.
    DESCRIPTION_REPEATS_NAME = "description-repeats-name" Warning: "State what the name does not say: \
        inputs, outputs, and when to use it."
        why "The name already matches; the repetition adds no term."
        example "---\nname: pdf-tables\ndescription: PDF tables\n---\n# Tables\n";
    /// `description` does not say when to use the skill.
    DESCRIPTION_NO_WHEN = "description-no-when" Info: "Add a sentence such as “Use when …”: a model \
        selects the skill by it."
        why "A model needs the trigger, not only the function."
        example "---\nname: pdf-tables\ndescription: Extracts the tables of documents into spreadsheets with typed columns.\n---\n# Tables\n";
    /// `description` is written in the first person.
    DESCRIPTION_FIRST_PERSON = "description-first-person" Info: "Use the third person (“Converts …”): \
        the text is part of the model's instructions, where “I” is the model."
        why "The text is read as a statement about the model itself."
        example "---\nname: pdf-tables\ndescription: I extract tables from PDF files. Use when a request names a PDF.\n---\n# Tables\n";
    /// `description` contains XML tags.
    DESCRIPTION_XML = "description-xml" Warning: "Remove the angle brackets: clients put descriptions \
        between XML tags, and some reject this."
        why "Tags in a description can break the prompt that lists the skills."
        example "---\nname: pdf-tables\ndescription: Extracts <b>tables</b> from PDF files. Use when a request names a PDF.\n---\n# Tables\n";
    /// `compatibility` is longer than 500 characters.
    COMPATIBILITY_TOO_LONG = "compatibility-too-long" Error: "Shorten it to 500 characters; details \
        belong in the body."
        why "The specification limits the field."
        example "a compatibility of 700 characters";

    // Classification.
    /// The value is not one of those allowed for the field.
    CLASSIFICATION_INVALID = "classification-invalid" Error: "Use one of the allowed values."
        why "An unknown value is replaced by the default."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\nmetadata:\n  classification:\n    role: helper\n---\n# Tables\n";
    /// A sidecar that is invoked directly.
    SIDECAR_DIRECT = "sidecar-direct" Error: "A sidecar can only be attached: use `invocation: attach`."
        why "A sidecar acts on the target that it is attached to and does nothing on its own."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\nmetadata:\n  classification:\n    role: sidecar\n    invocation: direct\n---\n# Tables\n";
    /// A skill that can be attached has no targets.
    ATTACH_WITHOUT_TARGETS = "attach-without-targets" Error: "Add `attach_targets` with at least one of task, run, output, transcript, artifact."
        why "Without a target the skill can never be attached."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\nmetadata:\n  classification:\n    role: sidecar\n    invocation: attach\n---\n# Tables\n";
    /// A skill that cannot be attached has targets.
    DIRECT_WITH_TARGETS = "direct-with-targets" Error: "Remove `attach_targets`, or use `invocation: both`."
        why "The targets have no effect."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\nmetadata:\n  classification:\n    invocation: direct\n    attach_targets: [output]\n---\n# Tables\n";

    // Body.
    /// The body is empty.
    BODY_EMPTY = "body-empty" Warning: "Add instructions below the frontmatter; loading this skill has \
        no effect."
        why "The model receives nothing beyond the description it already had."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\n";
    /// The body has 500 lines or more.
    BODY_MANY_LINES = "body-many-lines" Warning: "Keep the body below 500 lines; move details into `references/` and link them."
        why "The specification recommends fewer; the complete body is loaded at once."
        example "a body of 640 lines";
    /// The body takes 5,000 tokens or more.
    BODY_MANY_TOKENS = "body-many-tokens" Info: "Shorten the body, or move details into `references/` \
        and link them: the complete body is added to the context on every load."
        why "Every load takes that share of the context."
        example "a body of 6,200 tokens";
    /// The body takes more than 8,000 tokens.
    BODY_TOO_MANY_TOKENS = "body-too-many-tokens" Warning: "Move material that is not always needed into \
        `references/` and link it."
        why "Long instructions displace the conversation, and their middle is followed less reliably."
        example "a body of 11,000 tokens";
    /// The target of a relative link does not exist.
    BROKEN_LINK = "broken-link" Warning: "Correct the path, or add the file to the bundle."
        why "The model tries to read a file that does not exist."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\nRead [the layout](references/layout.md).\n";
    /// The targets of several relative links do not exist, and the bundle has no other files.
    RESOURCES_MISSING = "resources-missing" Warning: "Copy the files of the skill next to its SKILL.md, \
        or remove the links."
        why "The skill was copied without its files and cannot work as written."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\nRead [one](references/one.md) and [two](references/two.md).\n";
    /// A relative link points outside the bundle.
    LINK_LEAVES_BUNDLE = "link-leaves-bundle" Info: "Copy the file into the bundle, or refer to the \
        other skill instead: this file is missing if the skill is installed alone."
        why "The file exists only as long as the skill stays where it is."
        example "[the other skill](../csv-tools/SKILL.md)";

    // Contracts, capabilities, bindings and services.
    /// A required part is missing or invalid.
    CONTRACT_INVALID = "contract-invalid" Error: "Correct the value, or add the missing part."
        why "A contract that cannot be read cannot run."
        example "id: tables.extract\nsteps: 3\n";
    /// An unknown key.
    CONTRACT_UNKNOWN_KEY = "contract-unknown-key" Warning: "Correct or delete the key; it has no effect."
        why "A misspelled key silently changes what a contract does."
        example "id: tables.extract\nsteps:\n  - {id: a, uses: text.count, inptu: {text: x}}\n";
    /// A step reads or waits for something that does not exist, or a binding executes it.
    CONTRACT_REFERENCE = "contract-reference" Error: "Use an input, an output of an earlier step, or a \
        step of this contract."
        why "The step would fail when it starts."
        example "id: tables.extract\nsteps:\n  - id: a\n    uses: text.count\n    input: {text: vars.missing}\n";
    /// An expression that cannot be parsed.
    CONTRACT_EXPRESSION = "contract-expression" Error: "Use references, constants, == != > < >= <=, in, not in, and, or, not."
        why "The condition cannot be evaluated, so the run would stop."
        example "id: tables.extract\nsteps:\n  - id: a\n    uses: text.count\n    config: {condition: \"a ===\"}\n";
    /// A step calls an undeclared capability, or a binding implements it.
    CONTRACT_CAPABILITY = "contract-capability" Warning: "Declare it in `capabilities/`, in the bundle \
        or next to it, or use an existing one."
        why "No binding can be chosen for an undeclared capability."
        example "uses: text.conut";
    /// A capability with the id of another one, in a second file.
    CAPABILITY_DUPLICATE = "capability-duplicate" Error: "Rename one of the two, or remove one."
        why "The file that is found later is not used, so a step runs the definition in the other file."
        example "pdf-tables/capabilities/read.yaml and notes/capabilities/read.yaml, both with `id: document.read`";
    /// A binding with the id of another one, in a second file.
    BINDING_DUPLICATE = "binding-duplicate" Error: "Rename one of the two, or remove one."
        why "The file that is found later is not used, so its capability may have no implementation."
        example "pdf-tables/bindings/b.yaml and notes/bindings/b.yaml, both with `id: read-local`";
    /// A service with the id of another one, in a second file.
    SERVICE_DUPLICATE = "service-duplicate" Error: "Rename one of the two, or remove one."
        why "The file that is found later is not used, so calls go to the address of the other one."
        example "pdf-tables/services/api.yaml and notes/services/api.yaml, both with `id: tickets`";
    /// A step passes invalid inputs to a capability or skill.
    CONTRACT_INPUT = "contract-input" Error: "Pass the inputs that the capability declares, with their \
        types."
        why "The capability would reject the call."
        example "input: {txet: inputs.text}";
    /// An output that no step writes, or that is not declared.
    CONTRACT_OUTPUT = "contract-output" Warning: "Write it in a step, or remove it from `outputs`."
        why "The output stays empty."
        example "id: tables.extract\noutputs: {rows: {type: array, required: true}}\nsteps:\n  - {id: a, uses: text.count}\n";

    // What a reader should know before trusting it.
    /// Invisible characters, or characters that change the display order.
    HIDDEN_CHARACTERS = "hidden-characters" Warning: "Delete hidden characters: a model reads them, but a \
        person cannot see them."
        why "A reviewer approves text that differs from what the model reads."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\nRead\u{200b} the file.\n";
    /// Unicode tag characters, bidi overrides, smuggled variation selectors.
    SMUGGLED_TEXT = "smuggled-text" Error: "Delete such characters: they can carry hidden instructions."
        why "Such characters can carry instructions that no reviewer sees."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\nRead the \u{202e}file.\n";
    /// `` !`command` `` or a block that begins with `` ```! ``.
    COMMAND_EXPANSION = "command-expansion" Warning: "Write the command as text instead: Claude Code \
        runs it as soon as the skill is loaded."
        why "The command runs before a decision can be made about it."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\nState: !`git status`\n";
    /// The frontmatter has hooks.
    HOOKS = "hooks" Warning: "Remove hooks that are not needed: clients that support hooks run these commands automatically."
        why "Hooks run outside of the model's control."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\nhooks:\n  PostToolUse: []\n---\n# Tables\n";
    /// The skill grants itself unrestricted tools.
    GRANTS_SHELL = "grants-shell" Warning: "List specific commands, such as `Bash(git status:*)`: this \
        allows any command without confirmation."
        why "The skill can run any command without confirmation."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\nallowed-tools: Bash\n---\n# Tables\n";
    /// The skill grants itself tools.
    GRANTS_TOOLS = "grants-tools" Info: "Remove tools that are not needed: these run without confirmation while the skill is active."
        why "Installing the skill accepts these tools."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\nallowed-tools: Write\n---\n# Tables\n";

    // What a body mentions.
    /// A file of the bundle that the body mentions does not exist.
    FILE_MISSING = "file-missing" Warning: "Correct the path, or add the file to the bundle."
        why "The model runs or reads a file that does not exist."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\nRun `scripts/extract.py` first.\n\n```bash\npython scripts/extract.py input.pdf\n```\n";
    /// The body mentions a tool that no known client has, with a name like a known one.
    TOOL_UNKNOWN = "tool-unknown" Warning: "Correct the name: the model calls tools by their exact name."
        why "A call of a tool with another name fails."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\nUse the `AskUserQuestions` tool.\n";
    /// The body mentions a skill that is not in the roots.
    SKILL_UNKNOWN = "skill-unknown" Warning: "Correct the name, or install the skill: the body tells the \
        model to use it."
        why "The model looks for a skill that it cannot load."
        example "Use the `pdf-raeder` skill.";
    /// The body runs a command that this machine does not have (`--environment`).
    COMMAND_MISSING = "command-missing" Info: "Install it, or name it in `compatibility`."
        why "The instructions fail at that step on this machine."
        example "a shell block with `pdftotext input.pdf`, where poppler is not installed";
    /// The body reads an environment variable that is not set (`--environment`).
    VARIABLE_UNSET = "variable-unset" Info: "Set it, or name it in `compatibility`."
        why "The command runs with an empty value on this machine."
        example "a shell block with `curl -H \"Authorization: $API_TOKEN\"`";

    // Ignored findings.
    /// An ignore comment without a reason.
    IGNORE_WITHOUT_REASON = "ignore-without-reason" Warning: "Add the reason after a colon: \
        `skills-lint: ignore RULE: reason`."
        why "Without a reason, it is unclear whether the suppression is still needed."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\n<!-- skills-lint: ignore broken-link -->\nRead [the layout](references/layout.md).\n";
    /// An ignore comment without a known rule, or for a rule that cannot be ignored.
    IGNORE_INVALID = "ignore-invalid" Warning: "Name a rule of `skills lint --rules`; rules about trust \
        cannot be ignored in the file that they check."
        why "The comment has no effect."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\n<!-- skills-lint: ignore brokn-link: made at install time -->\n";
    /// An ignore comment that ignores nothing.
    IGNORE_UNUSED = "ignore-unused" Info: "Delete the comment."
        why "It would hide a later finding."
        example "---\nname: pdf-tables\ndescription: Extracts tables from PDF files. Use when a request names a PDF.\n---\n<!-- skills-lint: ignore broken-link: made at install time -->\nText.\n";

    // Among other skills.
    /// `requires` names an unknown skill.
    REQUIRES_UNKNOWN = "requires-unknown" Warning: "Correct the name, or install the skill: this skill \
        tells the model to read it."
        why "The instructions name a skill that the model cannot load."
        example "requires: [pdf-reader], which no root has";
    /// Another bundle of higher precedence has the same id.
    SHADOWED = "shadowed" Warning: "Rename one of them, or delete the copy."
        why "Only one of them is listed, and the client decides which."
        example "~/.claude/skills/notes and .claude/skills/notes";
}

/// Returns the rule with a code, if there is one.
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
            assert!(rule.reason.ends_with('.') && rule.subject.ends_with('.'), "{}", rule.code);
        }
    }

    /// Rules whose example describes a situation instead of a file.
    const SITUATIONS: &[&str] = &[
        "file-too-large",
        "not-utf8",
        "path-not-utf8",
        "unreadable",
        "link-leaves-root",
        "file-name-case",
        "skill-file-missing",
        "file-ignored",
        "capability-duplicate",
        "binding-duplicate",
        "service-duplicate",
        "byte-order-mark",
        "crlf",
        "name-undefined",
        "description-too-long",
        "description-over-220",
        "compatibility-too-long",
        "body-many-lines",
        "body-many-tokens",
        "body-too-many-tokens",
        "link-leaves-bundle",
        "contract-capability",
        "contract-input",
        "requires-unknown",
        "shadowed",
        "skill-unknown",
        "command-missing",
        "variable-unset",
    ];

    #[test]
    fn an_example_is_reported_by_its_rule() {
        for rule in ALL.iter().filter(|rule| !SITUATIONS.contains(&rule.code)) {
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path().join("pdf-tables");
            std::fs::create_dir(&folder).unwrap();
            let main = folder.join("SKILL.md");
            let valid = "---\nname: pdf-tables\ndescription: Extracts tables. Use for PDFs.\n---\nText.\n";
            let is_contract = rule.code.starts_with("contract-");
            std::fs::write(&main, if is_contract { valid } else { rule.example }).unwrap();
            if is_contract {
                std::fs::write(folder.join("skill.yaml"), rule.example).unwrap();
            }
            let findings = match crate::read_bundle(&main) {
                Ok(skill) => {
                    let source = std::fs::read_to_string(&main).unwrap();
                    super::super::ignore(super::super::bundle(&skill, &source), "SKILL.md".as_ref(), &source)
                        .0
                }
                Err(refusal) => refusal.findings,
            };
            let codes: Vec<&str> = findings.iter().map(|finding| finding.code.as_str()).collect();
            assert!(codes.contains(&rule.code), "{}: {codes:?}", rule.code);
        }
    }
}
