//! Exact token counts by disclosure level, computed on demand and cached by content in memory and on disk, so that the
//! vocabulary is loaded only for new content. Blocking.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::cache_file::{CacheFile, CacheRead};
use crate::{LevelSize, LevelTokens};
use skills_base::files::Folder;
use skills_base::sync::MutexExt as _;
use skills_session::{ListedEntry, body_text, entry_text};
use skills_skill::tokens::{self, TokenCount};
use skills_skill::{BundleFile, Digest, Skill};

/// Larger resource files are estimated by their size: counting one exactly could take seconds.
const EXACT_UP_TO: u64 = 1 << 20;
/// Still larger files are not text that a model would read, and count as zero.
const READ_UP_TO: u64 = 32 << 20;
/// The cache is cleared when it exceeds this number of counts.
const CACHE_SIZE: usize = 200_000;
/// Minimum interval between writes of the file.
const WRITE_EVERY: Duration = Duration::from_secs(2);

/// Cache of token counts.
#[derive(Debug)]
pub struct Levels {
    file: Option<CacheFile>,
    cache: Mutex<CachedLevels>,
}

#[derive(Debug, Default)]
struct CachedLevels {
    loaded: bool,
    counts: HashMap<Digest, TokenCount>,
    unsaved: bool,
    saved_at: Option<Instant>,
}

impl Levels {
    /// Creates a cache, with or without a file.
    pub fn new(file: Option<CacheFile>) -> Self {
        Self { file, cache: Mutex::default() }
    }

    fn cache(&self) -> MutexGuard<'_, CachedLevels> {
        let mut cache = self.cache.locked();
        if !cache.loaded {
            cache.loaded = true;
            if let Some(CacheRead::Content(bytes)) = self.file.as_ref().map(CacheFile::read)
                && let Ok(counts) = postcard::from_bytes::<Vec<(Digest, TokenCount)>>(&bytes)
            {
                cache.counts = counts.into_iter().collect();
            }
        }
        cache
    }

    /// Returns the count under a key, computing it if it is unknown. No lock is held while counting.
    fn count(&self, key: Digest, compute: impl FnOnce() -> TokenCount) -> TokenCount {
        if let Some(count) = self.cache().counts.get(&key) {
            return *count;
        }
        let count = compute();
        let mut cache = self.cache();
        if cache.counts.len() >= CACHE_SIZE {
            cache.counts.clear();
        }
        cache.counts.insert(key, count);
        cache.unsaved = true;
        count
    }

    /// Counts all three levels of one skill.
    pub fn of(&self, skill: &Skill) -> LevelTokens {
        let l1 = self.text(&entry_text(&entry(skill)));
        let name = skill.id.as_str();
        let l2 = if skill.has_body {
            self.count(key("element", &format!("{name}\0{}", skill.digest)), || {
                let source = skill.read().ok().and_then(|bytes| String::from_utf8(bytes).ok());
                source.map_or_else(TokenCount::default, |source| {
                    tokens::count(&body_text(name, skills_skill::body(&source)))
                })
            })
        } else {
            TokenCount::default()
        };
        let bundle = skill.open();
        let files = bundle
            .as_ref()
            .ok()
            .and_then(|bundle| skills_skill::bundle_files(bundle).ok())
            .unwrap_or_default();
        let count = |file: &BundleFile| {
            bundle.as_ref().map_or_else(|_| TokenCount::default(), |bundle| self.file(bundle, file))
        };
        let l3: TokenCount = files.iter().map(count).sum();
        LevelTokens {
            skill_id: skill.id.clone(),
            l1: l1.tokens,
            l2: l2.tokens,
            l3: l3.tokens,
            l1_estimated: l1.estimated,
            l2_estimated: l2.estimated,
            l3_estimated: l3.estimated,
            l3_files: u32::try_from(files.len()).unwrap_or(u32::MAX),
            l3_bytes: files.iter().map(|file| file.bytes).sum(),
        }
    }

    /// Returns the count of a body in its element, if it was counted before, even by another process.
    pub fn known_body(&self, name: &str, digest: &Digest, text: &str) -> Option<TokenCount> {
        let cache = self.cache();
        let of = |key: Digest| cache.counts.get(&key).copied();
        of(key("element", &format!("{name}\0{digest}"))).or_else(|| of(key("text", text)))
    }

    /// Returns the count of a text, if it was counted before.
    pub fn known_text(&self, text: &str) -> Option<TokenCount> {
        self.cache().counts.get(&key("text", text)).copied()
    }

    pub fn text(&self, text: &str) -> TokenCount {
        self.count(key("text", text), || tokens::count(text))
    }

    pub fn size(&self, text: &str) -> LevelSize {
        LevelSize::new(text.len() as u64, self.text(text))
    }

    /// Counts a resource file, cached by its path, size and modification time.
    pub fn file(&self, bundle: &Folder, file: &BundleFile) -> TokenCount {
        let place = bundle.path().join(&file.path);
        let stamp = format!("{}\0{}\0{}", place.display(), file.bytes, file.modified_ns);
        self.count(key("l3", &stamp), || {
            let Ok(text) = bundle.read_text(&file.path, READ_UP_TO) else { return TokenCount::default() };
            if text.contains('\0') {
                TokenCount::default()
            } else if file.bytes > EXACT_UP_TO {
                TokenCount::estimate(&text)
            } else {
                tokens::count(&text)
            }
        })
    }

    /// Writes new counts, unless the file was just written.
    pub fn save(&self, now: Instant) {
        self.write(|cache| cache.saved_at.is_none_or(|at| now.duration_since(at) >= WRITE_EVERY), now);
    }

    fn write(&self, due: impl FnOnce(&CachedLevels) -> bool, now: Instant) {
        let Some(file) = &self.file else { return };
        let counts: Vec<(Digest, TokenCount)> = {
            let mut cache = self.cache();
            if !cache.unsaved || !due(&cache) {
                return;
            }
            cache.unsaved = false;
            cache.saved_at = Some(now);
            cache.counts.iter().map(|(key, count)| (*key, *count)).collect()
        };
        let written =
            postcard::to_stdvec(&counts).map_err(std::io::Error::other).and_then(|bytes| file.write(&bytes));
        if let Err(error) = written {
            tracing::warn!(%error, path = %file.path().display(), "cannot save the token counts");
        }
    }
}

impl Drop for Levels {
    fn drop(&mut self) {
        self.write(|_| true, Instant::now());
    }
}

/// Returns a skill as the catalog of a session lists it.
pub fn entry(skill: &Skill) -> ListedEntry {
    ListedEntry {
        name: skill.id.to_string(),
        description: skill.description.clone(),
        location: Some(skill.location.clone()),
        ..ListedEntry::default()
    }
}

fn key(level: &str, content: &str) -> Digest {
    Digest::of(format!("{level}\0{content}").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing;

    fn bundle() -> (tempfile::TempDir, Skill) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("SKILL.md"), "---\nname: demo\n---\nhello world").unwrap();
        fs::create_dir(dir.path().join("references")).unwrap();
        fs::write(dir.path().join("references/a.md"), "hello world").unwrap();
        fs::write(dir.path().join("references/b.bin"), b"\0\xff").unwrap();
        let mut skill = testing::skill("demo", "demo");
        skill.has_body = true;
        skill.root_dir = dir.path().to_owned();
        skill.location = dir.path().join("SKILL.md");
        (dir, skill)
    }

    #[test]
    fn every_level_is_counted_without_binary_files() {
        let (_dir, skill) = bundle();
        let levels = Levels::new(None).of(&skill);
        assert!(levels.l1 > 10, "{levels:?}");
        let body = tokens::count(&body_text("demo", "hello world")).tokens;
        assert_eq!((levels.l2, levels.l3, levels.l3_files, levels.l3_bytes), (body, 2, 2, 13));
    }

    #[test]
    fn counts_are_cached_until_a_file_changes() {
        let (dir, mut skill) = bundle();
        let cache = tempfile::tempdir().unwrap();
        let file = CacheFile::new(cache.path().join("tokens.bin"), "tokens", "o200k");
        let first = Levels::new(Some(file.clone())).of(&skill);
        let again = Levels::new(Some(file));
        let counted = again.cache().counts.len();
        assert_eq!(counted, 4);
        assert_eq!(again.of(&skill), first);
        assert_eq!(again.cache().counts.len(), counted, "nothing was counted a second time");
        fs::write(dir.path().join("SKILL.md"), "---\nname: demo\n---\nhello brave new world").unwrap();
        skill.digest = Digest::of(b"changed");
        assert_eq!(again.of(&skill).l2, tokens::count(&body_text("demo", "hello brave new world")).tokens);
    }
}
