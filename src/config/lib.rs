//! Configuration: where files live (XDG), what the user and the project say.
//!
//! Later layers win over earlier ones: defaults, the user's `config.yaml`, the project's
//! `.skill-workbench.yaml`, environment variables (`SKILLS_…`), arguments. Lists of roots are joined,
//! the nearest first; maps are merged key by key.

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

pub use dirs::{Dirs, Env, expand, repository_root, shown};
pub use error::{ConfigError, LocationInFile};
pub use invocation::{Invocation, quoted};
pub use load::{Arguments, Config, MEMORY_STORE, MissingStore, PROJECT_FILE, RootChoice, VARIABLES, check};
pub use notify::{Notify, WebhookTo};
pub use runs::{RUN_COLUMNS, Retention, RunSettings};
pub use template::TEMPLATE;
pub use terminal::{TerminalFeatures, TerminalProgress};
pub use values::{AuditLog, GlyphSet, Keys, Links, RankPolicy, Scripts};
