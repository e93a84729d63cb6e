//! Single-flight for reads of the same value: callers that arrive while a read is in progress share the next one, so
//! that no result is older than its request, and a hundred requests cost a few reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use skills_base::sync::MutexExt as _;
use tokio::sync::OnceCell;

/// Calls in flight by key; an entry is removed when its last caller is done.
pub struct SingleFlight<T>(Mutex<HashMap<String, InFlight<T>>>);

/// The call in flight for one key.
struct InFlight<T> {
    by: usize,
    /// The read that has not started yet and can still be shared.
    coming: Option<Arc<OnceCell<T>>>,
    /// Held by the current read.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> SingleFlight<T> {
    /// Returns the result of a read of `name` that starts after this call. Of the callers that share it, the first one
    /// reads.
    pub async fn share<F>(&self, name: &str, look: impl FnOnce() -> F) -> T
    where
        F: Future<Output = T>,
    {
        let question = &self.ask(name);
        // If that caller is dropped, another one reads.
        let start = || async move {
            let _turn = question.turn.lock().await;
            question.begin();
            look().await
        };
        question.answer.get_or_init(start).await.clone()
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<String, InFlight<T>>> {
        self.0.locked()
    }

    fn ask(&self, name: &str) -> Question<'_, T> {
        let mut all = self.in_flight();
        let in_flight = all.entry(name.to_owned()).or_insert_with(|| InFlight {
            by: 0,
            coming: None,
            turn: Arc::default(),
        });
        in_flight.by += 1;
        let answer = Arc::clone(in_flight.coming.get_or_insert_with(Arc::default));
        Question { flights: self, name: name.to_owned(), answer, turn: Arc::clone(&in_flight.turn) }
    }
}

/// A caller's request, until it completes or is dropped.
struct Question<'a, T: Clone> {
    flights: &'a SingleFlight<T>,
    name: String,
    answer: Arc<OnceCell<T>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl<T: Clone> Question<'_, T> {
    /// Marks the read as started: from now on no caller joins.
    fn begin(&self) {
        if let Some(in_flight) = self.flights.in_flight().get_mut(&self.name) {
            in_flight.coming.take_if(|coming| Arc::ptr_eq(coming, &self.answer));
        }
    }
}

impl<T: Clone> Drop for Question<'_, T> {
    fn drop(&mut self) {
        let mut all = self.flights.in_flight();
        if let Some(in_flight) = all.get_mut(&self.name) {
            in_flight.by -= 1;
            if in_flight.by == 0 {
                all.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::poll;
    use tokio::sync::Notify;

    use super::*;

    struct Fixture {
        flights: SingleFlight<usize>,
        started: AtomicUsize,
        end: Notify,
    }

    impl Fixture {
        fn new() -> Self {
            Self { flights: SingleFlight::default(), started: AtomicUsize::new(0), end: Notify::new() }
        }

        /// Makes a request; returns the number of the read.
        async fn ask(&self, name: &str) -> usize {
            let look = || async {
                let number = self.started.fetch_add(1, Ordering::SeqCst) + 1;
                self.end.notified().await;
                number
            };
            self.flights.share(name, look).await
        }
    }

    #[tokio::test]
    async fn calls_during_a_request_share_the_next_one() {
        let fixture = Fixture::new();
        let mut first = Box::pin(fixture.ask("a"));
        assert!(poll!(&mut first).is_pending());
        let mut later: Vec<_> = (0..50).map(|_| Box::pin(fixture.ask("a"))).collect();
        for question in &mut later {
            assert!(poll!(question).is_pending());
        }
        assert_eq!(fixture.started.load(Ordering::SeqCst), 1, "one look at a time");
        fixture.end.notify_one();
        assert_eq!(first.await, 1, "no caller gets the result of a call that began before its request");
        fixture.end.notify_one();
        assert_eq!(futures::future::join_all(later).await, [2; 50]);
        assert!(fixture.flights.in_flight().is_empty());
    }

    #[tokio::test]
    async fn other_keys_and_canceled_calls_do_not_block() {
        let fixture = Fixture::new();
        let mut gone = Box::pin(fixture.ask("a"));
        let mut stays = Box::pin(fixture.ask("a"));
        let mut other = Box::pin(fixture.ask("b"));
        assert!(poll!(&mut gone).is_pending() && poll!(&mut stays).is_pending());
        assert!(poll!(&mut other).is_pending());
        assert_eq!(fixture.started.load(Ordering::SeqCst), 2);
        drop(gone);
        fixture.end.notify_waiters();
        assert_eq!(other.await, 2);
        assert!(poll!(&mut stays).is_pending());
        fixture.end.notify_one();
        assert_eq!(stays.await, 3, "it looked for itself");
        assert!(fixture.flights.in_flight().is_empty());
    }
}
