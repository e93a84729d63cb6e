//! What every command has: where to write, the global options, the environment, and the way to the core.

use std::path::PathBuf;

use super::args::Global;
use super::failure::Failure;
use super::output::{Look, Out, stderr_look};
use super::runs::Voice;
use crate::config::{Arguments, Config, Env, GlyphSet, MEMORY_STORE};
use crate::gateway::{Code, Error, Local, Needs};

/// What every command has.
pub struct Context {
    /// Standard output.
    pub out: Out,
    /// The global options.
    pub global: Global,
    /// Home and environment variables.
    pub env: Env,
    /// Where the command was called.
    pub cwd: PathBuf,
}

impl Context {
    /// The settings in force.
    pub fn config(&self) -> Result<Config, Failure> {
        let global = &self.global;
        if let Some(file) = global.config.as_ref().filter(|file| !file.exists()) {
            let message = format!("the settings file {} is not there (--config)", file.display());
            return Err(Error::new(Code::NotFound, message).into());
        }
        let arguments = Arguments {
            roots: global.roots.clone(),
            demo: global.demo,
            watch: global.no_watch.then_some(false),
            store: global.store.clone(),
            ..Arguments::default()
        };
        Config::load(&self.cwd, &self.env, &arguments).map_err(|error| super::config::failure(&error))
    }

    /// Standard error for what is said beside the answer.
    pub fn voice(&self) -> Voice {
        let look = stderr_look(self.global.no_color);
        // The settings choose the signs of both streams alike.
        Voice::new(Look { unicode: look.unicode && self.out.look.unicode, ..look }, self.out.json)
    }

    /// Whether runs of this command end with it.
    pub fn in_memory(&self) -> bool {
        self.config().is_ok_and(|config| config.store.as_deref() == Some(MEMORY_STORE))
    }

    /// The core, with what this command needs of it ready.
    pub async fn open(&mut self, needs: Needs) -> Result<Local, Failure> {
        let config = self.config()?;
        match config.glyphs {
            GlyphSet::Auto => {}
            GlyphSet::Unicode => self.out.look.unicode = true,
            GlyphSet::Ascii => self.out.look.unicode = false,
        }
        Ok(Local::open_once(config, needs).await?)
    }
}
