//! Circuit breakers: after repeated failures of calls for a person, a binding is not called for that person for some
//! time, then tried once. Inputs may cause the failures, so one person's do not stop the calls of others.

use skills_base::sync::MutexExt as _;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Number of consecutive failures that opens a breaker.
pub const THRESHOLD: u32 = 5;
/// How long a breaker stays open before a trial call.
pub const OPEN: Duration = Duration::from_secs(30);

/// Returns the current time; the system clock by default, replaced in tests.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Number of breakers from which those that are closed, or could be tried again, are forgotten.
const MAX_BREAKERS: usize = 10_000;

/// A binding, and the person for whom it is called.
type Key = (String, String);

/// The breakers with recent failures.
pub struct Breakers {
    clock: Clock,
    states: Mutex<HashMap<Key, State>>,
}

#[derive(Clone, Copy)]
enum State {
    /// Number of consecutive failures, below the threshold.
    Closed(u32),
    /// A trial call is in progress.
    Trial,
    /// No calls before this time; then one trial call.
    Open(Instant),
}

impl Breakers {
    pub fn new(clock: Clock) -> Self {
        Self { clock, states: Mutex::default() }
    }

    /// Requests permission to call a binding.
    ///
    /// # Errors
    /// Returns the state if the breaker is open, without the time left: the message is recorded with the run.
    pub fn enter(&self, binding: &str, person: &str) -> Result<Permit<'_>, String> {
        let key = (binding.to_owned(), person.to_owned());
        let mut states = self.lock();
        let state = states.get(&key).copied();
        if let Some(refusal) = state.and_then(|state| self.refusal(state)) {
            return Err(refusal);
        }
        let trial = matches!(state, Some(State::Open(_)));
        if trial {
            states.insert(key.clone(), State::Trial);
        }
        Ok(Permit { breakers: self, key, trial, is_recorded: false })
    }

    /// Returns whether [`Self::enter`] would permit a call of a binding for a person now.
    pub fn allows(&self, binding: &str, person: &str) -> bool {
        let key = (binding.to_owned(), person.to_owned());
        let state = self.lock().get(&key).copied();
        state.and_then(|state| self.refusal(state)).is_none()
    }

    /// Returns why a breaker in this state permits no call, without the time left.
    fn refusal(&self, state: State) -> Option<String> {
        match state {
            State::Closed(_) => None,
            State::Open(until) if until <= (self.clock)() => None,
            State::Open(_) => Some(format!("open, after {THRESHOLD} failures in a row")),
            State::Trial => Some(self.describe(state)),
        }
    }

    /// Returns the state of a binding's breaker for a person as text: `closed`, `open for 12 s more`, `half open`.
    /// Without a person, whether it permits all of them to call it.
    pub fn state(&self, binding: &str, person: Option<&str>) -> String {
        let states = self.lock();
        let closed = || "closed".to_owned();
        if let Some(person) = person {
            let own = states.get(&(binding.to_owned(), person.to_owned()));
            return own.map_or_else(closed, |state| self.describe(*state));
        }
        let mut own = states.iter().filter(|((of, _), _)| of == binding).map(|(_, state)| *state);
        if own.any(|state| self.refusal(state).is_some()) {
            "open for some callers".to_owned()
        } else {
            closed()
        }
    }

    fn describe(&self, state: State) -> String {
        match state {
            State::Closed(failures) => {
                format!("closed, {failures} of {THRESHOLD} failures in a row")
            }
            State::Open(until) => match until.checked_duration_since((self.clock)()) {
                Some(rest) if !rest.is_zero() => {
                    format!(
                        "open for {} s more, after {THRESHOLD} failures in a row",
                        rest.as_secs_f64().ceil()
                    )
                }
                _ => "half open: the next call is a trial".to_owned(),
            },
            State::Trial => "half open: a trial call is in progress".to_owned(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, State>> {
        self.states.locked()
    }
}

/// Permission for one call of a binding. Dropping it without a result, as when the call is canceled, does not count for
/// or against the binding.
pub struct Permit<'b> {
    breakers: &'b Breakers,
    key: Key,
    trial: bool,
    is_recorded: bool,
}

impl Permit<'_> {
    /// Records a success.
    pub fn succeeded(mut self) {
        self.is_recorded = true;
        self.breakers.lock().remove(&self.key);
    }

    /// Records a failure.
    pub fn failed(mut self) {
        self.is_recorded = true;
        let mut states = self.breakers.lock();
        let failures = match states.get(&self.key) {
            Some(State::Closed(failures)) => failures + 1,
            // Failures of calls that were already in progress when it opened change nothing.
            Some(State::Open(_)) => return,
            Some(State::Trial) => THRESHOLD,
            None => 1,
        };
        let state = if failures >= THRESHOLD {
            State::Open((self.breakers.clock)() + OPEN)
        } else {
            State::Closed(failures)
        };
        if states.len() >= MAX_BREAKERS {
            let now = (self.breakers.clock)();
            states.retain(|_, state| match state {
                State::Closed(_) => false,
                State::Trial => true,
                State::Open(until) => *until > now,
            });
        }
        states.insert(self.key.clone(), state);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.trial && !self.is_recorded {
            // The trial was inconclusive; the next call is another trial.
            let now = (self.breakers.clock)();
            self.breakers.lock().insert(self.key.clone(), State::Open(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breakers() -> (Breakers, Arc<Mutex<Duration>>) {
        let passed = Arc::new(Mutex::new(Duration::ZERO));
        let (start, shared) = (Instant::now(), Arc::clone(&passed));
        (Breakers::new(Arc::new(move || start + *shared.lock().unwrap())), passed)
    }

    fn fail(breakers: &Breakers, times: u32) {
        for _ in 0..times {
            breakers.enter("b", "kim").ok().unwrap().failed();
        }
    }

    #[test]
    fn five_consecutive_failures_open_the_breaker() {
        let (breakers, _) = breakers();
        fail(&breakers, 4);
        assert_eq!(breakers.state("b", Some("kim")), "closed, 4 of 5 failures in a row");
        breakers.enter("b", "kim").ok().unwrap().succeeded();
        fail(&breakers, 4);
        assert!(breakers.enter("b", "kim").is_ok());
        fail(&breakers, 1);
        assert_eq!(
            breakers.enter("b", "kim").err().unwrap(),
            "open, after 5 failures in a row",
            "a recorded message has no relative time"
        );
        assert_eq!(breakers.state("b", Some("kim")), "open for 30 s more, after 5 failures in a row");
        assert!(breakers.enter("another", "kim").is_ok(), "each binding has its own");
        assert!(breakers.enter("b", "lee").is_ok(), "each person has their own");
    }

    #[test]
    fn breaker_of_one_person_does_not_stop_another() {
        let (breakers, passed) = breakers();
        fail(&breakers, 5);
        assert!(!breakers.allows("b", "kim") && breakers.allows("b", "lee"));
        assert_eq!(breakers.state("b", Some("lee")), "closed");
        assert_eq!(breakers.state("b", None), "open for some callers");
        *passed.lock().unwrap() = OPEN;
        assert!(breakers.allows("b", "kim"));
        assert_eq!(breakers.state("b", None), "closed");
        let trial = breakers.enter("b", "kim").ok().unwrap();
        assert!(!breakers.allows("b", "kim"), "a trial is not interrupted by another call");
        trial.succeeded();
        assert!(breakers.allows("b", "kim"));
    }

    #[test]
    fn breaker_allows_one_trial_after_thirty_seconds() {
        let (breakers, passed) = breakers();
        fail(&breakers, 5);
        *passed.lock().unwrap() = Duration::from_millis(29_500);
        assert_eq!(breakers.state("b", Some("kim")), "open for 1 s more, after 5 failures in a row");
        *passed.lock().unwrap() = OPEN;
        assert_eq!(breakers.state("b", Some("kim")), "half open: the next call is a trial");
        let trial = breakers.enter("b", "kim").ok().unwrap();
        assert_eq!(breakers.enter("b", "kim").err().unwrap(), "half open: a trial call is in progress");
        trial.failed();
        assert!(breakers.enter("b", "kim").is_err(), "one failed trial opens it again");
        *passed.lock().unwrap() = OPEN * 2;
        breakers.enter("b", "kim").ok().unwrap().succeeded();
        assert_eq!(breakers.state("b", Some("kim")), "closed");
    }

    #[test]
    fn call_after_a_canceled_trial_is_the_trial() {
        let (breakers, passed) = breakers();
        fail(&breakers, 5);
        *passed.lock().unwrap() = OPEN;
        drop(breakers.enter("b", "kim").ok().unwrap());
        assert!(breakers.enter("b", "kim").is_ok());
    }
}
