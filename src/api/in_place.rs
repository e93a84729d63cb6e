//! Long computations in async functions.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs a computation that takes longer than a request may hold up its thread: other tasks of the thread continue on
/// another one. For computations that need borrowed values; others use `run_blocking`.
pub fn in_place<R>(compute: impl FnOnce() -> R) -> R {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(compute),
        // A runtime with one thread has no other one.
        _ => compute(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_during_the_computation() {
        let ran = AtomicBool::new(false);
        let computing = async {
            // The task is started by this thread, which is the only one.
            let other = tokio::spawn(async {});
            in_place(|| {
                while !other.is_finished() {
                    std::thread::yield_now();
                }
            });
            ran.store(true, Ordering::Relaxed);
        };
        computing.await;
        assert!(ran.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn a_runtime_with_one_thread_computes_too() {
        assert_eq!(in_place(|| 1), 1);
    }
}
