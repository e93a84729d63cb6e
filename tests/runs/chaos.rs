//! A service of three processes on one server survives what happens to a fleet: processes killed, suspended and with
//! clocks that jump, a primary that crashes, connections that are closed.
//!
//! One minute; `SKILLS_SOAK=10` makes it ten. `SKILLS_CHAOS_SEED` repeats the faults of an earlier run, as far as the
//! scheduler of the system repeats itself.
#![cfg(target_os = "linux")]
mod checker;
mod effects;
mod fleet;
mod load;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::faults::Numbers;
use effects::Effects;
use fleet::{Fleet, SIZE};
use load::Load;

/// The lease of a worker of a service.
const LEASE: Duration = Duration::from_secs(30);
/// Of each minute, what is left to end the open runs.
const QUIET: Duration = Duration::from_secs(12);
/// More than two leases, so that a hang is a failure and not a hang.
const TIMEOUT: Duration = Duration::from_secs(150);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Kill,
    /// Longer than a lease: others reclaim its runs.
    LongSuspension,
    ShortSuspension,
    PrimaryRestart,
    LostConnections,
    /// Of one process of the service.
    ClockJump,
    /// Of the server that leases end by.
    ServerClockJump,
}

/// Every fault once, then as often as they are listed.
const FIRST: [Fault; 7] = [
    Fault::LongSuspension,
    Fault::ClockJump,
    Fault::Kill,
    Fault::LostConnections,
    Fault::ServerClockJump,
    Fault::PrimaryRestart,
    Fault::ShortSuspension,
];
const LATER: [Fault; 16] = [
    Fault::Kill,
    Fault::Kill,
    Fault::Kill,
    Fault::Kill,
    Fault::Kill,
    Fault::LongSuspension,
    Fault::LongSuspension,
    Fault::ShortSuspension,
    Fault::ShortSuspension,
    Fault::PrimaryRestart,
    Fault::LostConnections,
    Fault::LostConnections,
    Fault::LostConnections,
    Fault::ClockJump,
    Fault::ClockJump,
    Fault::ServerClockJump,
];

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

/// Injects faults until the time has passed; returns the number of each.
fn make_faults(
    fleet: &mut Fleet,
    effects: &Effects,
    numbers: &mut Numbers,
    time: Duration,
) -> BTreeMap<Fault, u32> {
    let (started, mut counts) = (Instant::now(), BTreeMap::new());
    let mut first = FIRST.into_iter();
    while started.elapsed() < time {
        // During execution: a fault follows the previous one after some effects, or soon if there are none.
        let more = usize::try_from(numbers.below(30)).unwrap();
        effects.wait_for_more(more, Duration::from_millis(200 + numbers.below(1_800)));
        fleet.continue_due();
        let member = usize::try_from(numbers.below(SIZE as u64)).unwrap();
        let fault = first.next().unwrap_or_else(|| LATER[usize::try_from(numbers.below(16)).unwrap()]);
        let made = match fault {
            Fault::Kill => fleet.kill(member),
            Fault::LongSuspension => {
                let long = LEASE + Duration::from_millis(1_000 + numbers.below(3_000));
                started.elapsed() + long < time && !fleet.has_suspended() && fleet.suspend(member, long)
            }
            Fault::ShortSuspension => {
                fleet.suspend(member, Duration::from_millis(100 + numbers.below(3_000)))
            }
            Fault::PrimaryRestart => fleet.restart_primary(),
            Fault::LostConnections => fleet.close_connections(1 + numbers.below(8)),
            Fault::ClockJump => fleet.jump(Some(member), numbers),
            Fault::ServerClockJump => fleet.jump(None, numbers),
        };
        *counts.entry(fault).or_insert(0) += u32::from(made);
    }
    counts
}

#[test]
fn a_fleet_survives_chaos() {
    let minutes = variable("SKILLS_SOAK").unwrap_or(1).max(1);
    let time = Duration::from_secs(60).saturating_sub(QUIET) * u32::try_from(minutes).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    let seed = variable("SKILLS_CHAOS_SEED").unwrap_or(u64::from(now)).max(1);
    let effects = Effects::start();
    let Some(mut fleet) = Fleet::start(&effects) else { return };
    eprintln!("{minutes} min, SKILLS_CHAOS_SEED={seed}");
    let mut numbers = Numbers(seed);
    let load = Load::start(fleet.addresses(), &effects, seed);
    let faults = make_faults(&mut fleet, &effects, &mut numbers, time);
    fleet.calm_down();
    load.stop_launching();
    let deadline = Instant::now() + TIMEOUT;
    let unended = "SELECT count(*) FROM runs WHERE state NOT IN ('completed', 'failed', 'canceled')";
    while !load.has_launched_all() || fleet.sql(unended) != "0" {
        if Instant::now() >= deadline {
            let rows = "SELECT id, state, step, worker, held, lost_leases, lease_until_ms FROM runs
                WHERE state NOT IN ('completed', 'failed', 'canceled') LIMIT 20";
            panic!("runs do not end: {}\n{}", fleet.sql(rows), fleet.logs());
        }
        effects.wait_for_more(1, Duration::from_millis(200));
    }
    let observed = load.finish();
    eprintln!("faults: {faults:?}; processes started: {}", fleet.starts());
    checker::check(&fleet, &effects, &observed);
}
