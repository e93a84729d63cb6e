//! The log file: appended to by several processes, verified, shown, and purged at its start.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::anchor::{self, Anchor, AnchorCheck};
use super::chain::{ANCHOR, GAP, GENESIS, PURGED, TORN, Verification, lines, verify, verify_since_gaps};
use super::line::{Entry, Line, Mode, digest};
use crate::files::read_regular;
use crate::private_files;

/// Number of bytes at the end that are read to find the last line, and elsewhere to find a line.
const TAIL: u64 = 1 << 20;

/// An error of the audit log.
#[derive(Debug, thiserror::Error)]
#[error("the audit log {}: {doing}: {reason}", file.display())]
pub struct AuditError {
    pub file: PathBuf,
    /// The operation that failed.
    pub doing: &'static str,
    /// The error of the system.
    pub reason: io::Error,
}

/// The result of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PurgeResult {
    /// Number of deleted lines.
    pub lines: u64,
    /// Number of remaining lines.
    #[serde(rename = "kept")]
    pub remaining: u64,
}

/// The audit log of one data directory.
#[derive(Debug, Clone)]
pub struct Log {
    folder: PathBuf,
    mode: Mode,
}

/// The end of the file, as known to this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    len: u64,
    file: FileId,
    seq: u64,
    prev: String,
}

/// Distinguishes a file from another one that replaced it.
type FileId = (u64, u64);

#[cfg(unix)]
fn id(metadata: &std::fs::Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn id(metadata: &std::fs::Metadata) -> FileId {
    (
        0,
        metadata
            .created()
            .ok()
            .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
            .map_or(0, |d| d.as_nanos() as u64),
    )
}

impl Log {
    /// Returns the log in this folder; nothing is created before the first write.
    pub fn new(folder: &Path, mode: Mode) -> Self {
        Self { folder: folder.to_owned(), mode }
    }

    pub fn file(&self) -> PathBuf {
        self.folder.join("audit.jsonl")
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn anchor_file(&self) -> PathBuf {
        self.folder.join("audit.anchor")
    }

    /// Returns the stored anchor of the log.
    ///
    /// # Errors
    /// Returns an error of the system, and `InvalidData` for a file that is not an anchor.
    pub fn anchor(&self) -> Result<Option<Anchor>, AuditError> {
        anchor::read(&self.anchor_file()).map_err(self.failed("reading its anchor"))
    }

    /// Returns the level of detail.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    fn failed(&self, doing: &'static str) -> impl Fn(io::Error) -> AuditError + use<> {
        let file = self.file();
        move |reason| AuditError { file: file.clone(), doing, reason }
    }

    /// Locks out every other process until the result is dropped. The lock has its own file, which is never replaced,
    /// unlike the log in a purge.
    fn lock(&self) -> Result<File, AuditError> {
        let failed = self.failed("waiting for its lock");
        private_files::create_folder(&self.folder).map_err(&failed)?;
        let path = self.folder.join("audit.lock");
        let lock = private_files::open_append(&path).map_err(&failed)?;
        lock.lock().map_err(&failed)?;
        Ok(lock)
    }

    /// Appends entries in one write. `last_end` is the end of the file after this process's last write; it is read
    /// again if another process has written since.
    pub(super) fn append(
        &self,
        entries: Vec<Entry>,
        at_ms: i64,
        last_end: &mut Option<End>,
    ) -> Result<(), AuditError> {
        if self.mode == Mode::Off || entries.is_empty() {
            return Ok(());
        }
        let _lock = self.lock()?;
        let failed = self.failed("writing to it");
        let mut file = private_files::open_append(&self.file()).map_err(&failed)?;
        let metadata = file.metadata().map_err(&failed)?;
        let same =
            last_end.as_ref().is_some_and(|end| end.len == metadata.len() && end.file == id(&metadata));
        let mut bytes = Vec::new();
        let mut end = match last_end.take() {
            Some(end) if same => end,
            before => self.end(&mut file, &metadata, at_ms, before.as_ref(), None, &mut bytes)?,
        };
        let durable = entries.iter().any(|entry| entry.durable);
        for entry in entries {
            let line = Line::of(entry, self.mode, end.seq + 1, at_ms, &end.prev).bytes();
            (end.seq, end.prev) = (end.seq + 1, digest(&line));
            bytes.extend_from_slice(&line);
            bytes.push(b'\n');
        }
        file.write_all(&bytes).map_err(&failed)?;
        if durable {
            file.sync_data().map_err(&failed)?;
        }
        end.len = metadata.len() + bytes.len() as u64;
        *last_end = Some(end);
        Ok(())
    }

    /// Writes the anchor of the log after syncing the log to the disk; returns `None` if there is nothing to anchor.
    pub(super) fn write_anchor(&self, last_end: &mut Option<End>) -> Result<Option<Anchor>, AuditError> {
        if self.mode == Mode::Off || !self.file().exists() {
            return Ok(None);
        }
        let _lock = self.lock()?;
        let failed = self.failed("anchoring it");
        let mut file = private_files::open_append(&self.file()).map_err(&failed)?;
        let metadata = file.metadata().map_err(&failed)?;
        let same =
            last_end.as_ref().is_some_and(|end| end.len == metadata.len() && end.file == id(&metadata));
        if !same {
            let mut unreported = Vec::new();
            let end = self.end(&mut file, &metadata, 0, last_end.as_ref(), None, &mut unreported)?;
            if !unreported.is_empty() {
                // A line must record a defect first, which the next entry does.
                return Ok(None);
            }
            *last_end = Some(end);
        }
        let Some(end) = last_end.as_ref().filter(|end| end.seq > 0) else { return Ok(None) };
        let anchor = Anchor { seq: end.seq, head: end.prev.clone() };
        if self.anchor()?.as_ref() != Some(&anchor) {
            file.sync_data().map_err(&failed)?;
            anchor::write(&self.anchor_file(), &anchor).map_err(&failed)?;
        }
        Ok(Some(anchor))
    }

    /// Compares the log with the furthest anchor that is stored elsewhere. Records a gap if they contradict each other
    /// and the log does not record that yet.
    pub(super) fn compare(
        &self,
        stored: &Anchor,
        at_ms: i64,
        last_end: &mut Option<End>,
    ) -> Result<(), AuditError> {
        if self.mode == Mode::Off {
            return Ok(());
        }
        let _lock = self.lock()?;
        let failed = self.failed("comparing it with the store");
        let mut file = private_files::open_append(&self.file()).map_err(&failed)?;
        let metadata = file.metadata().map_err(&failed)?;
        let mut bytes = Vec::new();
        let mut end = self.end(&mut file, &metadata, at_ms, last_end.as_ref(), Some(stored), &mut bytes)?;
        if !bytes.is_empty() {
            file.write_all(&bytes).and_then(|()| file.sync_data()).map_err(&failed)?;
            end.len += bytes.len() as u64;
        }
        *last_end = Some(end);
        Ok(())
    }

    /// Returns whether the log records already that the line of this anchor was removed or changed.
    fn has_gap(&self, anchor: &Anchor) -> Result<bool, AuditError> {
        let is_it = |line: Line| {
            let head = line.data.get("expected_head").and_then(serde_json::Value::as_str);
            line.kind == GAP && head == Some(&anchor.head)
        };
        let bytes = self.read()?;
        let (all, _) = lines(&bytes);
        // Parsing all lines of a long log takes seconds.
        let gaps = all.iter().rev().filter(|raw| String::from_utf8_lossy(raw).contains(GAP));
        Ok(gaps.filter_map(|raw| serde_json::from_slice::<Line>(raw).ok()).any(is_it))
    }

    /// Finds the end of the file; `before` is the end after this process's last write, `stored` an anchor that is
    /// stored elsewhere. Adds to `bytes` the lines that record a line truncated by a crash, or lines that were removed
    /// or changed: the last one of this process, or an anchored one.
    fn end(
        &self,
        file: &mut File,
        metadata: &std::fs::Metadata,
        at_ms: i64,
        before: Option<&End>,
        stored: Option<&Anchor>,
        bytes: &mut Vec<u8>,
    ) -> Result<End, AuditError> {
        let failed = self.failed("reading its end");
        let len = metadata.len();
        let written = before.filter(|end| end.seq > 0);
        let written = written.map(|end| Anchor { seq: end.seq, head: end.prev.clone() });
        let anchors: Vec<Anchor> = self.anchor()?.into_iter().chain(stored.cloned()).collect();
        let (mut tail, mut size) = (Vec::new(), TAIL);
        loop {
            file.seek(SeekFrom::Start(len.saturating_sub(size))).map_err(&failed)?;
            tail.clear();
            file.read_to_end(&mut tail).map_err(&failed)?;
            // The first one may be the end of a longer line.
            if size >= len || lines(&tail).0.into_iter().skip(1).any(|raw| number(raw).is_some()) {
                break;
            }
            size = size.saturating_mul(8);
        }
        let (complete, torn) = lines(&tail);
        let last_line = complete.iter().rev().find_map(|raw| serde_json::from_slice::<Line>(raw).ok());
        // The anchor line has the number of the line after it, and represents the last purged line.
        let (seq, anchored) = last_line.as_ref().map_or((0, None), |line| match line.kind.as_str() {
            ANCHOR => (line.seq.saturating_sub(1), Some(line.prev.clone())),
            _ => (line.seq, None),
        });
        let prev =
            anchored.or_else(|| complete.last().map(|raw| digest(raw))).unwrap_or_else(|| GENESIS.to_owned());
        let mut end = End { len, file: id(metadata), seq, prev };
        if !torn.is_empty() {
            tracing::warn!("the last line of {} was truncated by a crash; it is kept", self.file().display());
            let payload = json!({ "bytes": torn.len(), "sha256": digest(torn) });
            let line =
                Line::of(Entry::new(TORN, None, payload), self.mode, seq + 1, at_ms, &digest(torn)).bytes();
            (end.seq, end.prev) = (seq + 1, digest(&line));
            bytes.push(b'\n');
            bytes.extend_from_slice(&line);
            bytes.push(b'\n');
        }
        // A truncated line, which is recorded above, can be the last one of this process.
        let written = written.filter(|line| torn.is_empty() || line.seq != seq + 1);
        for anchor in anchors.iter().chain(&written) {
            let from = complete.iter().rposition(|raw| number(raw).is_some_and(|seq| seq <= anchor.seq));
            let skipped = from.map(|from| complete.iter().take(from).map(|raw| raw.len() + 1).sum::<usize>());
            let recent = match skipped.and_then(|skipped| tail.get(skipped..)) {
                Some(recent) => Cow::Borrowed(recent),
                None => Cow::Owned(around(file, len, anchor.seq).map_err(&failed)?),
            };
            if anchor::contradiction(&recent, std::slice::from_ref(anchor)).is_none()
                || self.has_gap(anchor)?
            {
                continue;
            }
            tracing::error!("lines of {} were truncated or modified", self.file().display());
            let payload = json!({
                "expected_seq": anchor.seq, "expected_head": anchor.head, "found_seq": end.seq, "found_head": end.prev,
            });
            let line =
                Line::of(Entry::new(GAP, None, payload), self.mode, end.seq + 1, at_ms, &end.prev).bytes();
            (end.seq, end.prev) = (end.seq + 1, digest(&line));
            bytes.extend_from_slice(&line);
            bytes.push(b'\n');
            break;
        }
        Ok(end)
    }

    fn read(&self) -> Result<Vec<u8>, AuditError> {
        match read_regular(&self.file(), u64::MAX) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.failed("reading it")(error)),
        }
    }

    /// Verifies the complete log.
    ///
    /// # Errors
    /// Returns an error of the system; a missing log has no lines.
    pub fn verify(&self) -> Result<Verification, AuditError> {
        Ok(self.verify_against(&[])?.0)
    }

    /// Verifies the complete log and compares it with its anchor and with others that are stored elsewhere, each with
    /// the name of its place.
    pub fn verify_against(
        &self,
        others: &[(&str, Vec<Anchor>)],
    ) -> Result<(Verification, Vec<AnchorCheck>), AuditError> {
        let _lock = if self.file().exists() { Some(self.lock()?) } else { None };
        let bytes = self.read()?;
        let mut found = verify(&bytes);
        let own = ("file", self.anchor()?.into_iter().collect());
        let places = std::iter::once(own).chain(others.iter().cloned());
        let checks: Vec<AnchorCheck> = places
            .map(|(place, anchors)| {
                let broken = anchor::contradiction(&bytes, &anchors);
                let anchor = anchors.into_iter().max_by_key(|anchor| anchor.seq);
                AnchorCheck { place: place.to_owned(), anchor, broken }
            })
            .collect();
        if found.broken.is_none() {
            found.broken = checks.iter().find_map(|check| check.broken.clone());
        }
        Ok((found, checks))
    }

    /// Returns the last `limit` lines for which `keep` returns true, oldest first.
    pub fn show(&self, limit: usize, keep: impl Fn(&Line) -> bool) -> Result<Vec<Line>, AuditError> {
        let bytes = self.read()?;
        let (all, _) = lines(&bytes);
        let read = all.iter().rev().filter_map(|raw| serde_json::from_slice::<Line>(raw).ok());
        let mut found: Vec<Line> =
            read.filter(|line| line.kind != ANCHOR && keep(line)).take(limit).collect();
        found.reverse();
        Ok(found)
    }

    /// Deletes lines that were written before a time, up to the first that was not. The file is replaced atomically;
    /// its last line records the purge, and the remaining lines form the same chain as before.
    ///
    /// # Errors
    /// Returns an error of the system, and `InvalidData` for a log with a broken chain, which is evidence and stays
    /// unchanged. Recorded gaps are deleted with the lines of their time.
    pub fn purge(&self, before_ms: i64, now_ms: i64, by: Option<&str>) -> Result<PurgeResult, AuditError> {
        if !self.file().exists() {
            return Ok(PurgeResult::default());
        }
        let _lock = self.lock()?;
        let failed = self.failed("purging it");
        let bytes = self.read()?;
        let mut found = verify_since_gaps(&bytes);
        if found.broken.is_none() {
            found.broken = self.anchor()?.and_then(|anchor| anchor::contradiction(&bytes, &[anchor]));
        }
        if let Some(broken) = found.broken {
            let why = format!("line {} {}; an invalid log is not purged", broken.line, broken.why);
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        let (all, torn) = lines(&bytes);
        let parsed: Vec<Option<Line>> = all.iter().map(|raw| serde_json::from_slice(raw).ok()).collect();
        let from = usize::from(parsed.first().is_some_and(|l| l.as_ref().is_some_and(|l| l.kind == ANCHOR)));
        let stays = |line: &Option<Line>| {
            line.as_ref().is_some_and(|line| line.at_ms().is_none_or(|at| at >= before_ms))
        };
        let cut = parsed[from..].iter().position(stays).map_or(all.len(), |at| from + at);
        // A line that records a truncated one stays with it.
        let cut = if cut < all.len() && parsed[cut].as_ref().is_some_and(|l| l.kind == TORN) {
            cut - 1
        } else {
            cut
        };
        if cut <= from || !torn.is_empty() {
            return Ok(PurgeResult { lines: 0, remaining: (all.len() - from) as u64 });
        }
        let through = digest(all[cut - 1]);
        let last = found.last.unwrap_or(0);
        let next = parsed[cut..].iter().flatten().map(|line| line.seq).next().unwrap_or(last + 1);
        let mut out =
            Line::of(Entry::new(ANCHOR, None, json!({})), self.mode, next, now_ms, &through).bytes();
        out.push(b'\n');
        for raw in &all[cut..] {
            out.extend_from_slice(raw);
            out.push(b'\n');
        }
        let prev = digest(all[all.len() - 1]);
        let taken = (cut - from) as u64;
        let before = jiff::Timestamp::from_millisecond(before_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let payload = json!({ "before": before.to_string(), "lines": taken, "through": through });
        let line = Line::of(Entry::new(PURGED, by, payload), self.mode, last + 1, now_ms, &prev).bytes();
        let anchor = Anchor { seq: last + 1, head: digest(&line) };
        out.extend(line);
        out.push(b'\n');
        let mut draft = tempfile::NamedTempFile::new_in(&self.folder).map_err(&failed)?;
        draft.write_all(&out).and_then(|()| draft.as_file().sync_all()).map_err(&failed)?;
        draft.persist(self.file()).map_err(|error| failed(error.error))?;
        anchor::write(&self.anchor_file(), &anchor).map_err(&failed)?;
        Ok(PurgeResult { lines: taken, remaining: (all.len() - cut) as u64 })
    }
}

/// Returns the number of a line.
fn number(raw: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Line>(raw).ok().map(|line| line.seq)
}

/// Returns the part of a file with the line of this number and the next one, or where they would be. Numbers ascend, so
/// little of a long file is read. It may begin and end within other lines.
pub(super) fn around(file: &mut File, len: u64, seq: u64) -> io::Result<Vec<u8>> {
    let mut read = |from: u64, bytes: u64| {
        file.seek(SeekFrom::Start(from))?;
        let mut part = Vec::new();
        io::Read::by_ref(file).take(bytes).read_to_end(&mut part)?;
        Ok::<_, io::Error>(part)
    };
    let (mut low, mut high) = (0, len);
    while high - low > TAIL {
        let middle = low + (high - low) / 2;
        let part = read(middle, TAIL)?;
        // The first one may be the end of a longer line.
        match lines(&part).0.into_iter().skip(1).find_map(number) {
            Some(found) if found <= seq => low = middle,
            Some(_) => high = middle,
            // Not lines of this log.
            None => break,
        }
    }
    // A line that begins before `high` may end after it.
    read(low, high - low + TAIL)
}
