//! A large value that is loaded on first use and dropped when it was unused for a while.

use crate::sync::MutexExt as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The value, for a static variable.
#[derive(Debug)]
pub struct IdleCache<T> {
    /// Name of the thread that drops the value.
    name: &'static str,
    keep: Duration,
    /// The value, and the time of its last use.
    loaded: Mutex<Option<(Arc<T>, Instant)>>,
}

impl<T: Send + Sync> IdleCache<T> {
    /// Creates an empty cache that keeps its value for this long after the last use.
    pub const fn new(name: &'static str, keep: Duration) -> Self {
        Self { name, keep, loaded: Mutex::new(None) }
    }

    /// Returns the value; `load` loads it on first use and again after it was dropped. Concurrent callers wait for it.
    pub fn get(&'static self, load: impl FnOnce() -> Option<T>) -> Option<Arc<T>> {
        let mut loaded = self.loaded.locked();
        if let Some((value, used)) = loaded.as_mut() {
            *used = Instant::now();
            return Some(Arc::clone(value));
        }
        let value = Arc::new(load()?);
        // Without the thread that drops it, the value stays loaded.
        if let Err(error) = std::thread::Builder::new().name(self.name.into()).spawn(|| self.drop_unused()) {
            tracing::debug!(%error, "the {} stays loaded", self.name);
        }
        *loaded = Some((Arc::clone(&value), Instant::now()));
        Some(value)
    }

    /// Waits until the value was unused for long enough, and drops it.
    fn drop_unused(&self) {
        loop {
            let unused = {
                let mut loaded = self.loaded.locked();
                let Some((_, used)) = loaded.as_ref() else { return };
                let unused = used.elapsed();
                if unused >= self.keep {
                    *loaded = None;
                    return;
                }
                unused
            };
            std::thread::sleep(self.keep.saturating_sub(unused));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_value_is_dropped_and_loaded_again() {
        static CACHE: IdleCache<u32> = IdleCache::new("numbers", Duration::from_millis(50));
        assert_eq!(CACHE.get(|| None), None, "a failure is not kept");
        let first = CACHE.get(|| Some(1)).unwrap();
        let weak = Arc::downgrade(&first);
        drop(first);
        while weak.upgrade().is_some() {
            std::thread::yield_now();
        }
        assert_eq!(CACHE.get(|| Some(2)).as_deref(), Some(&2));
    }
}
