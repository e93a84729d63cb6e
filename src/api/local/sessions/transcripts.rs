//! Cache of recently read transcripts. Entries never change, so a call costs no more in a long session than in a short
//! one: only newly appended entries are read from the store.

use std::sync::{Arc, Mutex};

use skills_base::sync::MutexExt as _;
use skills_session::Entry;

/// Number of cached sessions; others are read completely.
const CACHE_SIZE: usize = 16;

#[derive(Debug)]
struct CachedTranscript {
    id: String,
    version: u64,
    entries: Vec<Arc<Entry>>,
}

/// Cached transcripts, most recently used first.
#[derive(Debug, Default)]
pub(in crate::local) struct Transcripts(Mutex<Vec<CachedTranscript>>);

impl Transcripts {
    /// Returns the version and the entries when the session was last read.
    pub(super) fn of(&self, id: &str) -> Option<(u64, Vec<Arc<Entry>>)> {
        let cached = self.0.locked();
        cached.iter().find(|known| known.id == id).map(|known| (known.version, known.entries.clone()))
    }

    /// Stores what was read or written; an older version than the cached one is ignored.
    pub(super) fn keep(&self, id: &str, version: u64, entries: &[Arc<Entry>]) {
        let mut cached = self.0.locked();
        if let Some(at) = cached.iter().position(|known| known.id == id) {
            let transcript = cached.remove(at);
            if transcript.version > version {
                cached.insert(0, transcript);
                return;
            }
        }
        cached.truncate(CACHE_SIZE - 1);
        cached.insert(0, CachedTranscript { id: id.to_owned(), version, entries: entries.to_vec() });
    }

    /// Removes a session whose stored transcript differs from the cached one.
    pub(super) fn forget(&self, id: &str) {
        self.0.locked().retain(|known| known.id != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_session::{MessageRole, Turn};

    fn entry(number: u64) -> Arc<Entry> {
        let turn = Turn::Message { speaker: MessageRole::User, text: format!("message {number}") };
        Arc::new(Entry { number, at_ms: 0, turn })
    }

    #[test]
    fn least_recently_used_transcript_is_evicted() {
        let transcripts = Transcripts::default();
        transcripts.keep("a", 2, &[entry(1), entry(2)]);
        transcripts.keep("a", 1, &[entry(1)]);
        assert_eq!(transcripts.of("a").unwrap().1.len(), 2, "an older one came late");
        for other in 0..CACHE_SIZE {
            transcripts.keep(&format!("other {other}"), 0, &[]);
        }
        assert_eq!(transcripts.of("a"), None);
        assert!(transcripts.of("other 0").is_some());
        transcripts.forget("other 0");
        assert_eq!(transcripts.of("other 0"), None);
    }
}
