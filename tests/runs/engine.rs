//! Runs executed against real stores with a caller whose behavior a test defines: order, control flow, gates, people,
//! signals, faults.
mod fixture;

mod crashes;
mod edits;
mod flow;
mod gates;
mod order;
mod people;
