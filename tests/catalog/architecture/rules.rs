//! The rules themselves: which room may import which, and what every source file looks like.

use super::imports::{imports, module_of};
use super::lexer::lex;

/// A room may import its own files and, from top to bottom, these.
pub struct Room {
    pub name: &'static str,
    /// Rooms it may use wholly.
    pub rooms: &'static [&'static str],
    /// Rooms of which it may use the plain values in [`VALUES`] only.
    pub values_of: &'static [&'static str],
}

/// The table. Whatever is not in it is forbidden; a new room gets a row here first.
pub const ROOMS: &[Room] = &[
    // Opening files that may be swapped for links meanwhile; whoever reads a bundle does it by this.
    Room { name: "files", rooms: &[], values_of: &[] },
    Room { name: "blocks", rooms: &[], values_of: &[] },
    Room { name: "skill", rooms: &["files"], values_of: &[] },
    Room {
        name: "registry",
        rooms: &["skill", "config", "blocks", "files", "private_files"],
        values_of: &[],
    },
    Room { name: "policy", rooms: &["skill"], values_of: &[] },
    Room { name: "runs", rooms: &["skill"], values_of: &[] },
    // A store applies the state machine's answer inside its transaction, so that all stores agree.
    Room { name: "store", rooms: &["runs", "private_files"], values_of: &[] },
    Room { name: "discovery", rooms: &["registry", "skill", "blocks"], values_of: &[] },
    Room {
        name: "gateway",
        rooms: &[
            "discovery",
            "registry",
            "skill",
            "config",
            "telemetry",
            "engine",
            "runs",
            "store",
            "sandbox",
            "policy",
            "session",
            "governance",
            "audit",
            "blocks",
            "files",
            "private_files",
        ],
        values_of: &[],
    },
    Room {
        name: "mcp",
        rooms: &["gateway", "config", "telemetry"],
        values_of: &["registry", "skill", "runs", "session", "store"],
    },
    Room {
        name: "cli",
        rooms: &["gateway", "http", "mcp", "tui", "config", "telemetry", "private_files"],
        values_of: &[
            "policy",
            "discovery",
            "registry",
            "skill",
            "engine",
            "runs",
            "session",
            "store",
            "governance",
            "audit",
        ],
    },
    Room {
        name: "tui",
        rooms: &["gateway", "config", "telemetry", "private_files"],
        values_of: &["discovery", "registry", "skill", "engine", "runs", "session", "store"],
    },
    // An adapter: a translation of the table of operations, which is the gateway's.
    Room { name: "http", rooms: &["gateway", "config", "telemetry"], values_of: &["runs", "store"] },
    // A client named in the settings is checked against the client profiles, which `skill` knows.
    Room { name: "config", rooms: &["skill", "private_files"], values_of: &[] },
    Room {
        name: "engine",
        rooms: &["runs", "store", "sandbox", "skill", "files", "private_files"],
        values_of: &[],
    },
    Room { name: "sandbox", rooms: &["files"], values_of: &[] },
    Room { name: "session", rooms: &["skill", "files"], values_of: &[] },
    Room { name: "telemetry", rooms: &["private_files"], values_of: &[] },
    Room { name: "governance", rooms: &[], values_of: &[] },
    Room { name: "audit", rooms: &["private_files"], values_of: &[] },
    Room { name: "private_files", rooms: &[], values_of: &[] },
    // The binary: it hands over to the command line, or becomes the sandbox's helper, and does nothing else.
    Room { name: "main", rooms: &["cli", "sandbox"], values_of: &[] },
];

/// What an adapter may take from the rooms below the gateway: values that calls answer with, and the one
/// function that makes a bundle's text safe to show. Nothing that reads, scans, parses or ranks.
pub const VALUES: &[(&str, &[&str])] = &[
    (
        "discovery",
        &[
            "Answer",
            "Attachable",
            "BodyLine",
            "Breakdown",
            "Confidence",
            "Correction",
            "EvalReport",
            "Excluded",
            "ExcludedWhy",
            "Filter",
            "Fit",
            "Group",
            "Hit",
            "Lead",
            "LinkReport",
            "LinkState",
            "Mark",
            "Part",
            "PartKind",
            "Policy",
            "QueryWord",
            "Request",
            "Signal",
            "SignalSums",
            "Verdict",
            "WordRow",
        ],
    ),
    ("policy", &["Effect", "Matched", "Verdict"]),
    (
        "registry",
        &[
            "Catalogue",
            "Change",
            "Entry",
            "Pin",
            "Root",
            "RootOrigin",
            "RootState",
            "ScanProgress",
            "Shadowed",
            "TrustState",
            "Trusted",
        ],
    ),
    (
        "skill",
        &[
            "AttachTarget",
            "Classification",
            "Clients",
            "Digest",
            "EffectMode",
            "Finding",
            "Invocation",
            "Kind",
            "Properties",
            "Refusal",
            "RefusalReason",
            "Role",
            "Severity",
            "Skill",
            "SkillId",
            "Span",
            "Stated",
            "Status",
            "contract::Conformance",
            "contract::Contract",
            "contract::Field",
            "contract::FieldType",
            "contract::Source",
            "contract::Step",
            "contract::StepAction",
            "safe_text",
            "slice",
            "tokens::TokenCount",
            "yaml_message",
        ],
    ),
    ("governance", &["QualityState"]),
    ("audit", &["Line", "Verification"]),
    ("engine", &["Artifact", "BindingChoice", "Explanation", "LogLine"]),
    (
        "session",
        &[
            "Active",
            "Allowance",
            "Api",
            "Compat",
            "Entry",
            "Fill",
            "Form",
            "Instructions",
            "Listed",
            "Made",
            "Part",
            "PartKind",
            "Payload",
            "RunScriptArguments",
            "Settings",
            "Shown",
            "Speaker",
            "Tool",
            "ToolError",
            "ToolFailure",
            "Turn",
            "Unit",
        ],
    ),
    ("runs", &["Asked", "Choice", "CommandName", "Decision", "Expiry", "Gate", "RunState", "Verdict"]),
    (
        "store",
        &[
            "AuditMode",
            "Checkpoint",
            "Decided",
            "DecisionRecord",
            "Hold",
            "Holder",
            "IdempotencyOutcome",
            "EventKind",
            "NewEvent",
            "RunEvent",
            "RunFilter",
            "RunId",
            "RunOptions",
            "RunPage",
            "RunRecord",
            "StepRecord",
            "StepStatus",
            "WorkerId",
        ],
    ),
];

/// The room a file below `src` belongs to; none for `lib.rs`, which only lists the rooms.
pub fn room_of(file: &str) -> Option<&str> {
    match file {
        "lib.rs" => None,
        "main.rs" => Some("main"),
        _ => file.split(['/', '.']).next(),
    }
}

/// Every forbidden import of one file, as `src/file:line: sentence`.
pub fn forbidden_imports(file: &str, source: &str) -> Vec<String> {
    let Some(name) = room_of(file) else { return Vec::new() };
    let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
        return vec![format!(
            "src/{file}:1: the room `{name}` has no row in the table of tests/architecture"
        )];
    };
    let (tokens, _) = lex(source);
    let star = ["*".to_owned()];
    let mut out = Vec::new();
    for import in imports(&module_of(file), &tokens) {
        let at = format!("src/{file}:{}", import.line);
        let Some(target) = import.path.first().filter(|target| *target != "*") else {
            out.push(format!("{at}: imports the crate's root whole; name the room"));
            continue;
        };
        // A module of `super::…` inside this room, or an item of the crate's root, is no other room.
        if target == name || !ROOMS.iter().any(|r| r.name == target) {
            continue;
        }
        if room.rooms.contains(&target.as_str()) {
            continue;
        }
        if room.values_of.contains(&target.as_str()) {
            let item = import.path.get(1..).filter(|rest| !rest.is_empty()).unwrap_or(&star).join("::");
            let values = VALUES.iter().find(|(room, _)| room == target).map_or(&[][..], |(_, items)| items);
            // A value brings what belongs to it: variants, associated functions, a module's items.
            let within = |value: &&str| {
                item.strip_prefix(*value).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            };
            if !values.iter().any(within) {
                out.push(format!(
                    "{at}: `{name}` uses `{target}::{item}`, which is no plain value; ask `gateway` for it \
                     (values allowed from `{target}`: {})",
                    values.join(", ")
                ));
            }
            continue;
        }
        out.push(format!("{at}: `{name}` imports `{target}`; it may import {}", allowed(room)));
    }
    out.dedup();
    out
}

fn allowed(room: &Room) -> String {
    let values = room.values_of.iter().map(|name| format!("values of {name}"));
    let all: Vec<String> = room.rooms.iter().map(ToString::to_string).chain(values).collect();
    if all.is_empty() { "no other room".into() } else { all.join(", ") }
}

/// Whether the first line of a file says what the file is about.
pub fn has_module_comment(source: &str) -> bool {
    source.starts_with("//! ")
}

/// Planning papers are not part of the project: comments must not lean on them.
pub fn foreign_references(file: &str, text: &str, first_line: usize) -> Vec<String> {
    let mut out = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if let Some(word) = foreign_reference(line) {
            out.push(format!(
                "{file}:{}: `{word}` names a paper that readers do not have; say what it says",
                first_line + n
            ));
        }
    }
    out
}

/// Pages that are kept elsewhere.
const PAGES: &[&str] = &[
    "requirements.md",
    "decisions.md",
    "architecture.md",
    "visual-guide.md",
    "shared/spec",
    "shared/data/README",
];

fn foreign_reference(line: &str) -> Option<String> {
    if let Some(page) = PAGES.iter().find(|page| line.contains(**page)) {
        return Some((*page).to_owned());
    }
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    for pair in words.windows(2) {
        let before = pair[0].to_ascii_lowercase();
        let counted = pair[1].bytes().all(|b| b.is_ascii_digit());
        if matches!(before.as_str(), "requirement" | "requirements") && is_number(pair[1])
            || matches!(before.as_str(), "issue") && counted
        {
            return Some(format!("{} {}", pair[0], pair[1]));
        }
    }
    // `F1` to `F12` are keys and C0, C1 are sets of control characters: those need the word before them.
    words
        .into_iter()
        .find(|w| is_number(w) && !w.starts_with('F') && !matches!(*w, "C0" | "C1"))
        .map(Into::into)
}

/// `A6`, `C10`: a capital of the numbering and one or two digits.
fn is_number(word: &str) -> bool {
    let mut chars = word.chars();
    matches!(chars.next(), Some('A'..='F'))
        && (2..=3).contains(&word.len())
        && chars.all(|c| c.is_ascii_digit())
}
