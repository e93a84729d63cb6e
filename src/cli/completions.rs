//! `skills completions`: completions for a shell, from the same definition as the arguments.

use super::Context;
use super::args::{self, CompletionsArgs};
use super::failure::{Exit, Failure};

pub fn run(cx: &mut Context, args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "skills", &mut script);
    cx.out.raw(&script)?;
    Ok(Exit::Success)
}
