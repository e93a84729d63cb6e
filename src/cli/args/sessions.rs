//! Arguments about sessions: the context sent to a model.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use skills_session::{Api, Form, Instructions, MessageRole};

use super::value_parsers::{InputFileArg, integer_from, parse_file_arg, parse_name};

const CATALOG_FORMATS: [&str; 2] = ["xml", "bullets"];
const INSTRUCTION_PLACEMENTS: [&str; 2] = ["top-level", "tool-result"];
const APIS: [&str; 3] = ["anthropic", "openai-responses", "openai-chat"];

/// `skills session`
#[derive(Debug, Args)]
pub struct SessionArgs {
    #[command(subcommand)]
    pub action: SessionAction,
}

/// A script and what it is given.
#[derive(Debug, Clone, Args)]
pub struct ScriptArgs {
    /// Id of the session.
    pub session: String,
    /// Path of the script in `scripts/`.
    pub path: String,
    /// Arguments for the script, after `--`.
    #[arg(last = true)]
    pub args: Vec<String>,
    /// Loaded skill [default: the one loaded last].
    #[arg(long)]
    pub skill: Option<String>,
    /// Environment variable for the script (repeatable).
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Copy a file to the script's work directory under this name.
    #[arg(long = "file", value_name = "NAME=PATH", value_parser = parse_file_arg)]
    pub files: Vec<InputFileArg>,
    /// Current directory, relative to the work directory.
    #[arg(long)]
    pub workdir: Option<String>,
    /// Digest of what was reviewed; exactly that is run.
    #[arg(long, value_name = "DIGEST")]
    pub inputs_digest: Option<String>,
    /// Skip the confirmation prompt; requires `--inputs-digest`.
    #[arg(long)]
    pub yes: bool,
}

/// How a session is composed; what is not given stays.
#[derive(Debug, Clone, Default, Args)]
pub struct SettingsArgs {
    /// Client whose budget truncates the catalog (e.g. codex); an empty value for none.
    #[arg(long, value_name = "CLIENT")]
    pub client: Option<String>,
    /// Agent whose prompt and skills are part of the call (agents/*.yaml); an empty value for none.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Maximum number of active skills.
    #[arg(long, value_name = "N", value_parser = integer_from(0_usize))]
    pub cap: Option<usize>,
    /// Format of the catalog.
    #[arg(long, value_parser = parse_name::<Form>(&CATALOG_FORMATS))]
    pub form: Option<Form>,
    /// Where skill bodies are placed: in the instructions of every call, or in the result of the load call.
    #[arg(long, value_parser = parse_name::<Instructions>(&INSTRUCTION_PLACEMENTS))]
    pub instructions: Option<Instructions>,
    /// Omit locations, for hosts without a file system.
    #[arg(long, conflicts_with = "locations")]
    pub no_locations: bool,
    /// Include locations (default).
    #[arg(long)]
    pub locations: bool,
    /// Context window of the model in tokens.
    #[arg(long, value_name = "TOKENS", value_parser = integer_from(0_u32))]
    pub window: Option<u32>,
    /// Also offer the old tool names.
    #[arg(long, conflicts_with = "no_compat")]
    pub compat: bool,
    /// Offer only the current tool names (default).
    #[arg(long)]
    pub no_compat: bool,
}

impl SettingsArgs {
    /// Returns the names of the options that change a setting.
    pub fn options() -> Vec<String> {
        let all = Self::augment_args(clap::Command::new("set"));
        all.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect()
    }
}

/// What to do with a session.
#[derive(Debug, Subcommand)]
pub enum SessionAction {
    /// Create an empty session and print its id.
    New(SettingsArgs),
    /// List sessions, most recently changed first.
    List {
        /// Maximum number of entries.
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = integer_from(0_usize))]
        limit: usize,
    },
    /// Show a session: active skills, sizes by level, transcript.
    Show {
        /// Id of the session, or a unique prefix or suffix of it.
        session: String,
    },
    /// Change the settings of a session.
    Set {
        /// Id of the session.
        session: String,
        /// The changes.
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Load skills, starting with the next call.
    Load {
        /// Id of the session.
        session: String,
        /// Ids, names or locations of skills.
        #[arg(required = true)]
        skills: Vec<String>,
        /// Keep the skills that are already loaded.
        #[arg(long)]
        add: bool,
    },
    /// Unload skills.
    Unload {
        /// Id of the session.
        session: String,
        /// Names of loaded skills.
        #[arg(required_unless_present = "all")]
        skills: Vec<String>,
        /// Unload every skill.
        #[arg(long)]
        all: bool,
    },
    /// Read a file of a loaded skill.
    Read {
        /// Id of the session.
        session: String,
        /// Path in the skill's folder.
        path: String,
        /// Loaded skill [default: the one loaded last].
        #[arg(long)]
        skill: Option<String>,
        /// Offset of the first byte.
        #[arg(long, value_name = "BYTE", default_value_t = 0, value_parser = integer_from(0_u64))]
        offset: u64,
        /// Maximum number of bytes.
        #[arg(long, value_name = "BYTES", value_parser = integer_from(0_u64))]
        length: Option<u64>,
    },
    /// Run a script of a loaded skill in the sandbox, after confirmation.
    RunScript(ScriptArgs),
    /// Append a message to the transcript.
    Say {
        /// Id of the session.
        session: String,
        /// Text of the message; `-` reads standard input.
        text: String,
        /// Role of the author.
        #[arg(
            long = "as",
            value_parser = parse_name::<MessageRole>(&["user", "assistant"]),
            default_value = "user"
        )]
        speaker: MessageRole,
    },
    /// Print the instructions of the next call.
    Compose {
        /// Id of the session.
        session: String,
        /// Print the differences from the last call instead.
        #[arg(long, conflicts_with = "sizes")]
        diff: bool,
        /// Print sizes by level instead.
        #[arg(long)]
        sizes: bool,
        /// Record it as the last call.
        #[arg(long)]
        call: bool,
    },
    /// Print the complete request of the next call.
    Export {
        /// Id of the session.
        session: String,
        /// API to build the request for.
        #[arg(long, value_parser = parse_name::<Api>(&APIS), default_value = "anthropic")]
        api: Api,
        /// Name of the model.
        #[arg(long, default_value = "MODEL")]
        model: String,
        /// Write to this file instead.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Overwrite an existing file.
        #[arg(long, requires = "out")]
        force: bool,
    },
}

/// `skills agents`
#[derive(Debug, Args)]
pub struct AgentsArgs {
    #[command(subcommand)]
    pub action: AgentsAction,
}
#[derive(Debug, Subcommand)]
pub enum AgentsAction {
    /// List agents.
    List,
    /// Show one agent.
    Show {
        /// Id of the agent.
        agent: String,
    },
}

/// `skills budget`
#[derive(Debug, Args)]
#[command(
    after_help = "Budgets are measured or published by the client; unknown values are reported as \
        unknown. Skills bundled with a client count toward its budget.",
    args_conflicts_with_subcommands = true
)]
pub struct BudgetArgs {
    #[command(subcommand)]
    pub action: Option<BudgetAction>,
    /// Client (e.g. codex, or claude-code@2.1.197 for that version) [default: one line per client].
    #[arg(long, value_name = "CLIENT")]
    pub client: Option<String>,
    /// Context window of the model in tokens.
    #[arg(long, value_name = "TOKENS", value_parser = integer_from(0_u32))]
    pub window: Option<u32>,
    /// Show every entry, not only truncated ones.
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Subcommand)]
pub enum BudgetAction {
    /// Propose the smallest change that makes the clients' catalogs fit their budgets and loses no golden query.
    Fit(BudgetFitArgs),
}

/// `skills budget fit`
#[derive(Debug, Args)]
#[command(
    after_help = "Clauses of descriptions that no golden query needs are removed first; then skills that no golden \
        query needs are reduced to their first clause, to their name or to user-only (Claude Code), or turned off \
        (Codex), as few as possible. Golden queries are measured without bodies, which a client's model \
        does not see. Exits with 1 if a list does not fit or a golden query is lost."
)]
pub struct BudgetFitArgs {
    /// Clients, e.g. codex,claude-code.
    #[arg(long = "client", value_name = "CLIENTS", value_delimiter = ',', required = true)]
    pub clients: Vec<String>,
    /// Context window of the model in tokens.
    #[arg(long, value_name = "TOKENS", value_parser = integer_from(0_u32))]
    pub window: Option<u32>,
    /// Write the descriptions into their files, and the levels into the clients' settings files. If a skill's file
    /// cannot be written, its description is proposed instead.
    #[arg(long)]
    pub write: bool,
}

/// `skills demo`
#[derive(Debug, Args)]
#[command(
    after_help = "Keys: Right, Space or Enter for the next step, Left for the previous one, q or Esc to \
        quit. Without a file, plays the shipped script. Runs and sessions are temporary unless --store is given. With --auto, exits with 0 if every step reached its expected state, else with 1."
)]
pub struct DemoArgs {
    /// Demo script: YAML with a `title` and `steps`, each with `say` and `do`.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Advance automatically after this many seconds per step [default: 4], and exit after the last.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "4")]
    pub auto: Option<f64>,
    /// Record the screen as an asciicast file.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Write an SVG screenshot of each step to this folder.
    #[arg(long, value_name = "DIR")]
    pub pictures: Option<PathBuf>,
    /// Do not redact paths and names.
    #[arg(long)]
    pub no_redaction: bool,
}
