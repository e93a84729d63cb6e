//! The pane of runs over a core that holds runs in memory, as several tests open it.

use std::sync::Arc;

use skills_api::{RunCommand, RunDetail};
use skills_tui::Settings;
use skills_tui::harness::Harness;
use skills_tui::pane::Pane;
use skills_tui::panes::runs::Runs;

use super::fake_client::FakeClient;
use super::run_samples::settings;

/// A run of one of the samples by its number.
pub fn id(number: u32) -> String {
    format!("0198a1b{number}-{number}000-7000-8000-00000000000{number}")
}

pub fn core(runs: Vec<RunDetail>) -> Arc<FakeClient> {
    let client = FakeClient::answering(|_| panic!("nothing is ranked here"));
    for run in runs {
        client.runs.add(run);
    }
    Arc::new(client)
}

pub fn opened_as(client: &Arc<FakeClient>, settings: &Settings, size: (u16, u16)) -> Harness {
    let panes: Vec<Box<dyn Pane>> = vec![Box::new(Runs::new())];
    Harness::new(Arc::clone(client) as _, panes, settings, size.0, size.1).unwrap()
}

/// The pane over these runs, once they are listed.
pub fn opened(client: &Arc<FakeClient>, width: u16, height: u16) -> Harness {
    let mut harness = opened_as(client, &settings(), (width, height));
    harness.wait_for(" total ");
    if height >= 30 {
        harness.wait_for("Checkpoints");
    }
    harness
}

pub fn commands(client: &FakeClient) -> Vec<RunCommand> {
    client.runs.commands.lock().unwrap().iter().map(|(_, command)| command.clone()).collect()
}

/// The dialog's fields and buttons alone, where an entire screen shows too much.
pub fn has(harness: &Harness, texts: &[&str]) {
    let screen = harness.screen();
    for text in texts {
        assert!(screen.contains(text), "{text} is missing in\n{screen}");
    }
}
