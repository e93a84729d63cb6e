//! Arguments about sessions: what a model is given.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use skills_session::{Api, Form, Instructions, Speaker};

use super::words::{HandedFile, handed_file, words};

const FORMS: [&str; 2] = ["xml", "bullets"];
const PLACES: [&str; 2] = ["top-level", "tool-result"];
const APIS: [&str; 3] = ["anthropic", "openai-responses", "openai-chat"];

/// `skills session`
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub action: SessionAction,
}

/// How a session is composed; what is not given stays.
#[derive(Debug, Clone, Default, Args)]
pub struct SettingsArgs {
    /// The client whose budget shortens the catalogue (e.g. codex); an empty text for none.
    #[arg(long, value_name = "CLIENT")]
    pub client: Option<String>,
    /// The agent that speaks (agents/*.yaml); an empty text for none.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Skills that may be active at once.
    #[arg(long, value_name = "N")]
    pub cap: Option<usize>,
    /// How the catalogue is written.
    #[arg(long, value_parser = words::<Form>(&FORMS))]
    pub form: Option<Form>,
    /// Where bodies go: into the instructions of every call, or into the answer of the load call.
    #[arg(long, value_parser = words::<Instructions>(&PLACES))]
    pub instructions: Option<Instructions>,
    /// Leave locations out, for hosts without a file system.
    #[arg(long, conflicts_with = "locations")]
    pub no_locations: bool,
    /// Tell locations, as a new session does.
    #[arg(long)]
    pub locations: bool,
    /// The model's context window in tokens.
    #[arg(long, value_name = "TOKENS")]
    pub window: Option<u32>,
    /// Offer the older tool names too.
    #[arg(long, conflicts_with = "no_compat")]
    pub compat: bool,
    /// Offer the five tools alone, as a new session does.
    #[arg(long)]
    pub no_compat: bool,
}

impl SettingsArgs {
    /// The options that change a setting, as they are written.
    pub fn options() -> Vec<String> {
        let all = Self::augment_args(clap::Command::new("set"));
        all.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect()
    }
}

/// What to do with a session.
#[derive(Debug, Subcommand)]
pub enum SessionAction {
    /// Begin an empty session; prints its id.
    New(SettingsArgs),
    /// List sessions, the one that changed last first.
    List {
        /// How many at most.
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Show a session: active skills, sizes by level, transcript.
    Show {
        /// Id of the session, or a beginning or end of it.
        session: String,
    },
    /// Change how a session is composed.
    Set {
        /// Id of the session.
        session: String,
        /// The changes.
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Load skills: their instructions hold from the next call on.
    Load {
        /// Id of the session.
        session: String,
        /// Ids, names or locations of skills.
        #[arg(required = true)]
        skills: Vec<String>,
        /// Keep what is loaded already.
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
        /// Path inside the skill's folder.
        path: String,
        /// A loaded skill; the one loaded last, where absent.
        #[arg(long)]
        skill: Option<String>,
        /// First byte to read.
        #[arg(long, value_name = "BYTE", default_value_t = 0)]
        offset: u64,
        /// Bytes to read at most.
        #[arg(long, value_name = "BYTES")]
        length: Option<u64>,
    },
    /// Run a script of a loaded skill, isolated; asks first.
    RunScript {
        /// Id of the session.
        session: String,
        /// Path of the script below `scripts/`.
        path: String,
        /// Arguments for the script, behind `--`.
        #[arg(last = true)]
        args: Vec<String>,
        /// A loaded skill; the one loaded last, where absent.
        #[arg(long)]
        skill: Option<String>,
        /// Variables for the script.
        #[arg(long, value_name = "NAME=VALUE")]
        env: Vec<String>,
        /// A file for the script's work directory: the name there, and the file here.
        #[arg(long = "file", value_name = "NAME=PATH", value_parser = handed_file)]
        files: Vec<HandedFile>,
        /// Current directory inside the private work directory.
        #[arg(long)]
        workdir: Option<String>,
        /// Run it without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Append a message to the transcript.
    Say {
        /// Id of the session.
        session: String,
        /// The message; `-` reads it from standard input.
        text: String,
        /// Who says it.
        #[arg(long = "as", value_parser = words::<Speaker>(&["user", "assistant"]), default_value = "user")]
        speaker: Speaker,
    },
    /// Print the instructions of the next call, byte for byte.
    Compose {
        /// Id of the session.
        session: String,
        /// Print what differs from the last call instead.
        #[arg(long, conflicts_with = "sizes")]
        diff: bool,
        /// Print sizes by level instead.
        #[arg(long)]
        sizes: bool,
        /// Remember it as the last call.
        #[arg(long)]
        call: bool,
    },
    /// Print the whole request of the next call.
    Export {
        /// Id of the session.
        session: String,
        /// For which API.
        #[arg(long, value_parser = words::<Api>(&APIS), default_value = "anthropic")]
        api: Api,
        /// The model's name.
        #[arg(long, default_value = "MODEL")]
        model: String,
        /// Write it into this file instead.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Replace the file that is there.
        #[arg(long, requires = "out")]
        force: bool,
    },
}

/// `skills agents`
#[derive(Debug, Args)]
pub struct AgentsArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: AgentsAction,
}

/// What to do with agents.
#[derive(Debug, Subcommand)]
pub enum AgentsAction {
    /// List the agents found.
    List,
    /// Show one agent.
    Show {
        /// Its id.
        agent: String,
    },
}

/// `skills budget`
#[derive(Debug, Args)]
#[command(
    after_help = "Bounds are those that a client was measured to have or publishes; what is not known is said to be unknown. \
        Skills that a client brings itself take their share."
)]
pub struct BudgetArgs {
    /// The client (e.g. codex, or claude-code@2.1.197 for that version); without one, every client is shown in a line.
    #[arg(long, value_name = "CLIENT")]
    pub client: Option<String>,
    /// The model's context window in tokens.
    #[arg(long, value_name = "TOKENS")]
    pub window: Option<u32>,
    /// Show every entry, not only those that give way.
    #[arg(long)]
    pub all: bool,
}

/// `skills demo`
#[derive(Debug, Args)]
#[command(
    after_help = "Right, Space or Enter goes on, Left looks back, q or Esc leaves. Without a file the shipped \
    script plays on the shipped skills. What runs and sessions it makes are gone with it, unless --store names where \
    they are kept. With --auto it ends by itself: 0 when every step came to what it waited for, else 1."
)]
pub struct DemoArgs {
    /// A script of your own: `title`, and `steps` of `say` and `do`.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Go on by itself after so many seconds a step (4 where none are given), and end after the last.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "4")]
    pub auto: Option<f64>,
    /// Record the screen as an asciicast.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Write a picture (SVG) of each step into this folder.
    #[arg(long, value_name = "DIR")]
    pub pictures: Option<PathBuf>,
    /// Leave paths and names readable.
    #[arg(long)]
    pub no_redaction: bool,
}
