//! Trace ids (W3C Trace Context), which connect an error to its log records.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::run_options::MAX_KEY_LEN;
use skills_skill::Digest;

/// Returns a new trace id: 32 lowercase hexadecimal digits, not all zero
/// (<https://www.w3.org/TR/trace-context/#trace-id>).
pub fn new_trace_id() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    trace_id(since.as_nanos(), std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// Returns whether a text is valid as a trace id of a caller: it is used in headers, log lines and file names of other
/// programs, so it must be short and printable.
pub fn is_trace_id(text: &str) -> bool {
    (1..=MAX_KEY_LEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Time, process and a counter make the id unique; a digest spreads it over all bytes.
fn trace_id(nanos: u128, process: u32, count: u64) -> String {
    let mut id = Digest::of(format!("{nanos} {process} {count}").as_bytes()).to_string();
    id.truncate(32);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_ids_of_callers_are_short_and_printable() {
        assert!(is_trace_id("nightly/42") && is_trace_id(&"Z".repeat(255)));
        for wrong in ["", "a b", "a\nb", "ä", &"Z".repeat(256)] {
            assert!(!is_trace_id(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn trace_ids_are_valid_and_unique() {
        let ids =
            [trace_id(1, 1, 0), trace_id(1, 1, 1), trace_id(1, 2, 0), trace_id(2, 1, 0), new_trace_id()];
        for (i, id) in ids.iter().enumerate() {
            assert!(id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{id}");
            assert!(!ids[..i].contains(id), "{ids:?}");
        }
    }
}
