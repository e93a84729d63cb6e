//! The clocks of a store: the wall clock for displayed times, the boot clock for leases.
//!
//! The wall clock jumps (NTP, a restored virtual machine, a container with its own clock), so that a lease that expires
//! by it is stolen or never expires. The boot clock (`CLOCK_BOOTTIME`, `clock_gettime(2)`) only moves forward, counts
//! suspended time, and is the same for all processes of one boot.

use std::sync::Arc;

/// The wall clock: milliseconds since 1970-01-01 UTC.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A reading of the boot clock. Readings can be compared only if the boot is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootTime {
    /// Identifies the boot of the machine, and the time namespace if the process is not in the machine's own.
    pub boot: Arc<str>,
    /// Milliseconds on that clock.
    pub ms: i64,
}

impl BootTime {
    /// Returns the reading this many milliseconds later.
    #[must_use]
    pub fn plus(&self, ms: u64) -> Self {
        Self { boot: Arc::clone(&self.boot), ms: self.ms.saturating_add_unsigned(ms) }
    }
}

/// One moment on both clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockReading {
    /// Wall clock: milliseconds since 1970-01-01 UTC.
    pub wall_ms: i64,
    /// Boot clock; `None` if the system cannot distinguish its boots.
    pub boot: Option<BootTime>,
}

impl ClockReading {
    /// Returns the current moment on the clocks of this machine.
    pub fn now() -> Self {
        Clocks::system().now()
    }
}

/// Both clocks of a store.
#[derive(Clone)]
pub struct Clocks {
    pub(super) wall: Clock,
    boot: Arc<dyn Fn() -> Option<BootTime> + Send + Sync>,
}

impl std::fmt::Debug for Clocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clocks").field("now", &self.now()).finish()
    }
}

impl Clocks {
    /// Returns the clocks of this machine.
    pub fn system() -> Self {
        Self { wall: Arc::new(|| jiff::Timestamp::now().as_millisecond()), boot: Arc::new(boot_time) }
    }

    /// Creates clocks from functions, for tests.
    pub fn new(wall: Clock, boot: impl Fn() -> Option<BootTime> + Send + Sync + 'static) -> Self {
        Self { wall, boot: Arc::new(boot) }
    }

    /// Reads both clocks.
    pub fn now(&self) -> ClockReading {
        ClockReading { wall_ms: (self.wall)(), boot: (self.boot)() }
    }

    /// Replaces the wall clock.
    pub(super) fn with_wall(self, wall: Clock) -> Self {
        Self { wall, ..self }
    }
}

/// Uses one clock as both.
impl<F: Fn() -> i64 + Send + Sync + ?Sized + 'static> From<Arc<F>> for Clocks {
    fn from(clock: Arc<F>) -> Self {
        let boot: Arc<str> = "one clock".into();
        let wall = Arc::clone(&clock);
        Self {
            wall: Arc::new(move || wall()),
            boot: Arc::new(move || Some(BootTime { boot: Arc::clone(&boot), ms: clock() })),
        }
    }
}

/// Reads the boot clock by a system call: libraries preloaded to fake the wall clock would also fake the C library's
/// function.
#[cfg(target_os = "linux")]
fn boot_time() -> Option<BootTime> {
    use rustix::time::{ClockId, clock_gettime};
    use std::sync::OnceLock;
    static BOOT: OnceLock<Option<Arc<str>>> = OnceLock::new();
    let boot = BOOT.get_or_init(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        // Kernels without time namespaces have a single boot clock.
        let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
        Some(format!("{} {}", id.trim(), namespace.display()).trim_end().into())
    });
    let now = clock_gettime(ClockId::Boottime);
    let ms = now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000);
    Some(BootTime { boot: Arc::clone(boot.as_ref()?), ms })
}

#[cfg(not(target_os = "linux"))]
fn boot_time() -> Option<BootTime> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn boot_clock_has_one_boot_and_increases() {
        let first = boot_time().expect("Linux has one");
        let second = boot_time().expect("Linux has one");
        assert_eq!(first.boot, second.boot);
        assert!(second.ms >= first.ms && first.ms > 0);
    }
}
