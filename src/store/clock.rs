//! The clocks of a store: the wall clock for displayed times, the boot clock for leases.
//!
//! The wall clock jumps (NTP, a restored virtual machine, a container with a clock of its own), and a lease that
//! ends by it is stolen or never ends. The boot clock (`CLOCK_BOOTTIME`, `clock_gettime(2)`) only goes forward, counts
//! suspended time, and is the same for all processes of one boot.

use std::sync::Arc;

/// The wall clock: milliseconds since 1970-01-01 UTC.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A reading of a boot clock. Readings compare only where the boot is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootTime {
    /// Identifies the boot of the machine, and the time namespace where there is one beside the machine's.
    pub boot: Arc<str>,
    /// Milliseconds on its clock.
    pub ms: i64,
}

impl BootTime {
    /// The reading this much later.
    #[must_use]
    pub fn plus(&self, ms: u64) -> Self {
        Self { boot: Arc::clone(&self.boot), ms: self.ms.saturating_add_unsigned(ms) }
    }
}

/// One moment, on both clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// By the wall clock.
    pub wall_ms: i64,
    /// By the boot clock; `None` if the system cannot distinguish its boots.
    pub boot: Option<BootTime>,
}

impl Moment {
    /// The present moment, by the clocks of this machine.
    #[must_use]
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
    /// The clocks of this machine.
    #[must_use]
    pub fn system() -> Self {
        Self { wall: Arc::new(|| jiff::Timestamp::now().as_millisecond()), boot: Arc::new(boot_time) }
    }

    /// A wall clock and a boot clock of one's own, for tests.
    #[must_use]
    pub fn new(wall: Clock, boot: impl Fn() -> Option<BootTime> + Send + Sync + 'static) -> Self {
        Self { wall, boot: Arc::new(boot) }
    }

    /// What both say now.
    #[must_use]
    pub fn now(&self) -> Moment {
        Moment { wall_ms: (self.wall)(), boot: (self.boot)() }
    }

    /// With another wall clock.
    pub(super) fn with_wall(self, wall: Clock) -> Self {
        Self { wall, ..self }
    }
}

/// A clock that serves as both.
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

/// Asked of the kernel itself: what is preloaded to fake the wall clock fakes the C library's answer to this as well.
#[cfg(target_os = "linux")]
fn boot_time() -> Option<BootTime> {
    use rustix::time::{ClockId, clock_gettime};
    use std::sync::OnceLock;
    static BOOT: OnceLock<Option<Arc<str>>> = OnceLock::new();
    let boot = BOOT.get_or_init(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        // Kernels without time namespaces have one clock for all.
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
    fn boot_clock_has_one_boot_and_goes_forward() {
        let first = boot_time().expect("Linux has one");
        let second = boot_time().expect("Linux has one");
        assert_eq!(first.boot, second.boot);
        assert!(second.ms >= first.ms && first.ms > 0);
    }
}
