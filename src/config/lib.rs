//! Configuration: file locations (XDG), and the settings of the user and the project.
//!
//! Later layers take precedence over earlier ones: defaults, the user's `config.yaml`, the project's
//! `.skill-workbench.yaml`, environment variables (`SKILLS_…`), arguments. Lists of roots are concatenated, the most
//! specific layer first; maps are merged key by key.

mod dirs;
mod error;
mod file;
mod invocation;
mod load;
mod notify;
mod runs;
mod services;
mod template;
pub mod terminal;
mod values;

pub use dirs::{Dirs, Env, expand, real_path, repository_root, shown};
pub use error::{ConfigError, LocationInFile, reword_parser_error};
pub use invocation::{Invocation, arguments, operands, option, quoted};
pub use load::{
    Arguments, Audience, Config, MAX_ERRORS_PER_FILE, MEMORY_STORE, MissingStore, PROJECT_FILE, PROJECT_KEYS,
    RootChoice, VARIABLES, check,
};
pub use notify::{Notify, WebhookTo};
pub use runs::{Retention, RunColumn, RunSettings, RunSort};
pub use template::TEMPLATE;
pub use terminal::{TerminalFeatures, TerminalProgress};
pub use values::{AuditLog, GlyphSet, Keys, MatcherSettings, RankPolicy, Scripts};
