//! The context of a command: output, global options, environment, and access to the core.

use std::io;
use std::ops::Deref;
use std::path::PathBuf;

use serde::Serialize;

use super::args::Global;
use super::dialog::clean_lines;
use super::failure::Failure;
use super::links::Hyperlinks;
use super::output::{Out, TerminalCaps, stderr_caps};
use super::runs::{Reporter, invocation};
use skills_api::remote::{Address, KEY_VARIABLE, Key, Remote};
use skills_api::{
    Client, Code, ConnectionState, CoreParts, Error, Local, OperatorClient, RunClient, SessionClient,
};
use skills_config::{Arguments, Audience, Config, Env, GlyphSet, Invocation, MEMORY_STORE, MissingStore};
use skills_skill::safe_text;

/// What a command reports instead of commands that would use the store again, if that is in memory.
pub const IN_MEMORY_NOTE: &str = "the store is in memory and is deleted when this command ends; to keep runs and sessions, use --store sqlite:FILE";

/// All operations that commands use, local or remote.
pub trait FullClient: Client + RunClient + OperatorClient + SessionClient {}

impl<T: Client + RunClient + OperatorClient + SessionClient> FullClient for T {}

/// The core of a command: in this process, or on a remote service.
pub enum Backend {
    /// In this process, with the options of the call. With `json`, notices are only logged: standard error holds only a
    /// JSON error.
    Local { local: Box<Local>, called: Invocation, json: bool },
    /// On a remote service.
    Remote(Box<Remote>),
}

impl Backend {
    /// Returns the local core, if it is local.
    pub fn as_local(&self) -> Option<&Local> {
        match self {
            Self::Local { local, .. } => Some(local),
            Self::Remote(_) => None,
        }
    }
}

/// Reports notices from the command at the end, where the user sees them.
impl Drop for Backend {
    fn drop(&mut self) {
        let Self::Local { local, called, json: false } = self else { return };
        for notice in local.take_notices() {
            let notice = called.completed_in(&notice);
            super::failure::print(&format!("skills: {}\n", safe_text::line(&notice)), false);
        }
    }
}

impl Deref for Backend {
    type Target = dyn FullClient;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Local { local, .. } => &**local,
            Self::Remote(remote) => &**remote,
        }
    }
}

pub struct Context {
    /// Standard output.
    pub out: Out,
    /// The global options.
    pub global: Global,
    /// Home and environment variables.
    pub env: Env,
    /// The working directory.
    pub cwd: PathBuf,
    /// What the command does with a store that does not exist.
    pub missing_store: MissingStore,
    /// Who reads the messages of the core.
    pub audience: Audience,
    /// Functions that start the workbench and the servers.
    pub adapters: super::Adapters,
}

impl Context {
    /// Loads the settings.
    pub fn config(&self) -> Result<Config, Failure> {
        let global = &self.global;
        if let Some(file) = global.config.as_ref().filter(|file| !file.exists()) {
            let message = format!("configuration file `{}` does not exist (--config)", file.display());
            return Err(Error::new(Code::NotFound, message).into());
        }
        let arguments = Arguments {
            roots: global.roots.clone(),
            demo: global.demo,
            watch: global.no_watch.then_some(false),
            store: global.store.clone(),
            missing_store: if global.store_must_exist { MissingStore::Refuse } else { self.missing_store },
            audience: self.audience,
            connect: global.connect.clone(),
            api_key_file: global.api_key_file.clone(),
            ..Arguments::default()
        };
        let config =
            Config::load(&self.cwd, &self.env, &arguments).map_err(|error| super::config::failure(&error))?;
        let local = [
            ("--root", !global.roots.is_empty()),
            ("--demo", global.demo),
            ("--store", global.store.is_some()),
        ];
        match local.into_iter().find(|(_, is_set)| *is_set && global.connect.is_some()) {
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} applies to this machine, --connect to a service with its own roots and runs; \
                    remove one of them"
            ))),
            None => Ok(config),
        }
    }

    /// Returns the reporter on standard error, for messages in addition to the result.
    pub fn reporter(&self) -> Reporter {
        let look = stderr_caps(self.global.no_color);
        // The setting for Unicode characters applies to both streams.
        let look = TerminalCaps { unicode: look.unicode && self.out.look.unicode, ..look };
        if self.is_plain() {
            return Reporter::labeled(look.labeled());
        }
        Reporter::new(look, self.out.json)
    }

    /// Returns whether runs of this command are lost when it ends.
    pub fn in_memory(&self) -> bool {
        self.config()
            .is_ok_and(|config| config.connect.is_none() && config.store.as_deref() == Some(MEMORY_STORE))
    }

    /// Returns how to add the first entry to a list of the store: commands in backticks, to which the options of this
    /// call are added. A store in memory has no entries in any other command.
    pub(super) fn first_entry_advice(&self, commands: &str) -> String {
        if self.in_memory() {
            return IN_MEMORY_NOTE.to_owned();
        }
        self.completed_in(commands)
    }

    /// Adds the options of this call to the commands in a text, in backticks or parentheses.
    pub(super) fn completed_in(&self, text: &str) -> String {
        invocation(&self.global, None).completed_in(text)
    }

    /// Opens the local core, with what this command needs: for commands that are not available for a remote service.
    pub async fn open(&mut self, needs: CoreParts) -> Result<Local, Failure> {
        let config = self.config()?;
        if let Some(address) = &config.connect {
            let way_out = match self.global.connect {
                Some(_) => "remove --connect",
                None => "unset SKILLS_CONNECT and remove `connect` from config.yaml",
            };
            let message = format!(
                "this command does not work with a remote service; {way_out}, or run it on the host of {}",
                safe_text::line(address)
            );
            return Err(Failure::usage(message));
        }
        self.open_local(needs).await
    }

    /// Opens the local core, regardless of the settings: for commands that inspect this machine.
    pub async fn open_local(&mut self, needs: CoreParts) -> Result<Local, Failure> {
        let config = self.config()?;
        self.take_signs(&config);
        Ok(Local::open_once(config, needs).await?)
    }

    /// Opens the core that the settings name, local or remote.
    pub async fn reach(&mut self, needs: CoreParts) -> Result<Backend, Failure> {
        let config = self.config()?;
        self.take_signs(&config);
        if config.connect.is_none() {
            let local = Box::new(Local::open_once(config, needs).await?);
            let called = invocation(&self.global, None);
            return Ok(Backend::Local { local, called, json: self.out.json });
        }
        let remote = connect(&config, &self.env).await?;
        let address = remote.address().to_string();
        let mut states = remote.states();
        // Reports that a waiting command still waits; ends with the process.
        tokio::spawn(async move {
            let mut lost = false;
            while states.changed().await.is_ok() {
                let state = states.borrow_and_update().clone();
                match state {
                    ConnectionState::Lost { why, .. } if !lost => {
                        lost = true;
                        let why = safe_text::line(&why).into_owned();
                        super::failure::print(&format!("{why}\nretrying; press Ctrl-C to stop\n"), false);
                    }
                    ConnectionState::Connected if lost => {
                        lost = false;
                        super::failure::print(&format!("reconnected to {address}\n"), false);
                    }
                    _ => {}
                }
            }
        });
        Ok(Backend::Remote(Box::new(remote)))
    }

    /// Returns whether the output is labeled lines for screen readers.
    pub(super) fn is_plain(&self) -> bool {
        !self.out.json && (self.global.plain || self.config().is_ok_and(|config| config.plain))
    }

    /// Prints the text of a result. If its argument is true, `render` returns labels in place of columns, and the text
    /// is formatted as lines for screen readers.
    pub(super) fn print_rendered(
        &mut self,
        render: impl FnOnce(bool, TerminalCaps) -> String,
    ) -> io::Result<()> {
        let is_plain = self.is_plain();
        let text = render(is_plain, self.out.look);
        self.out.text(&if is_plain { clean_lines(&text) } else { text })
    }

    /// Prints a result as JSON if that is requested, otherwise like [`Self::print_rendered`].
    pub(super) fn show(
        &mut self,
        value: &impl Serialize,
        render: impl FnOnce(bool, TerminalCaps) -> String,
    ) -> io::Result<()> {
        if self.out.json { self.out.value(value) } else { self.print_rendered(render) }
    }

    /// Returns whether the terminal shows the progress of this command.
    pub(super) fn shows_progress(&self) -> bool {
        let is_terminal = self.out.look.terminal && stderr_caps(true).terminal && !self.global.plain;
        is_terminal && self.config().is_ok_and(|config| config.terminal.progress && !config.plain)
    }

    /// Applies the settings for characters and hyperlinks.
    pub(super) fn take_signs(&mut self, config: &Config) {
        if self.out.look.terminal && !self.global.plain && !config.plain {
            self.out.links = Hyperlinks::of(config, &self.env);
        }
        self.out.labeled |= config.plain;
        match config.glyphs {
            GlyphSet::Auto => {}
            GlyphSet::Unicode => self.out.look.unicode = !self.global.plain && !config.plain,
            GlyphSet::Ascii => self.out.look.unicode = false,
        }
    }
}

/// Connects to the service that the settings name, with the key they name.
///
/// # Errors
/// Same as [`Remote::connect`]; also for a key that cannot be read or is invalid.
pub async fn connect(config: &Config, env: &Env) -> Result<Remote, Error> {
    let address = Address::parse(config.connect.as_deref().unwrap_or_default())?;
    let key = match (&config.api_key_file, env.get(KEY_VARIABLE)) {
        (Some(file), _) => Some(Key::of_file(file)?),
        (None, Some(value)) => Some(Key::of_variable(KEY_VARIABLE, value)?),
        (None, None) => None,
    };
    if key.is_some() && address.is_readable_on_the_way() {
        let note = format!(
            "warning: the connection to {address} is not encrypted and exposes the API key; use https:// \
                or an SSH tunnel (ssh -L)\n"
        );
        super::failure::print(&note, false);
    }
    let user = env.get("USER").or_else(|| env.get("LOGNAME")).map(str::to_owned);
    Ok(Remote::connect(address, key, user).await?.with_views(config.runs.views.clone()))
}
