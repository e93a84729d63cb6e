//! `skills keys`: creates keys for the service.

use serde_json::json;

use super::Context;
use super::args::{KeysAction, NewKeyArgs};
use super::failure::{Exit, Failure};
use skills_api::new_key;

pub fn run(cx: &mut Context, action: &KeysAction) -> Result<Exit, Failure> {
    let KeysAction::New(args) = action;
    make(cx, args)
}

fn make(cx: &mut Context, args: &NewKeyArgs) -> Result<Exit, Failure> {
    let name = args.name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Failure::usage(
            "a key needs a name, without control characters, for example `skills keys new ci`",
        ));
    }
    if args.scopes.is_empty() {
        return Err(Failure::usage("a key needs a scope: --scopes read,run,decide,admin"));
    }
    let (key, stored) = new_key(name, args.scopes.clone())?;
    if cx.out.json {
        cx.out.value(&json!({ "key": key, "stored": stored }))?;
    } else {
        cx.out.line(&key)?;
        // Standard output is the key alone, and may be redirected: the two streams have no common order.
        cx.reporter()
            .print_line("The key is shown only once. Add this line to the keys file, under `keys:`:");
        let reporter = &mut cx.reporter();
        reporter.print_line(&reporter.look.unbroken_row("  ", &stored.line()));
    }
    Ok(Exit::Success)
}
