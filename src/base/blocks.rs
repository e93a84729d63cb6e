//! Content that is read in blocks, each with a checksum that is verified when the block is read.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Size of a block in bytes.
const BLOCK: usize = 16 * 1024;
/// Number of bytes after the checksums: their own checksum, and the length of the content.
const TRAILER: usize = 12;

/// A source that supports reads at any offset.
pub trait ReadAt: Send + Sync + fmt::Debug {
    /// Fills `out` with the bytes at an offset.
    ///
    /// # Errors
    /// Returns an error of the system, and `UnexpectedEof` if there are fewer bytes.
    fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()>;

    /// Returns the total number of bytes.
    fn length(&self) -> io::Result<u64>;
}

impl ReadAt for Vec<u8> {
    fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        let from = usize::try_from(at).map_err(io::Error::other)?;
        let found = self.get(from..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// Writes content followed by the checksums of its blocks.
pub struct BlockWriter<W> {
    out: W,
    hash: crc32fast::Hasher,
    filled: usize,
    sums: Vec<u8>,
    length: u64,
}

impl<W: Write> BlockWriter<W> {
    pub fn new(out: W) -> Self {
        Self { out, hash: crc32fast::Hasher::new(), filled: 0, sums: Vec::new(), length: 0 }
    }

    /// Writes a record, for [`Reader::record`].
    pub fn record(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.write_all(&length.to_le_bytes())?;
        self.write_all(bytes)
    }

    fn end_block(&mut self) {
        let sum = std::mem::take(&mut self.hash).finalize();
        self.sums.extend(sum.to_le_bytes());
        self.filled = 0;
    }

    /// Writes the checksums.
    pub fn finish(mut self) -> io::Result<()> {
        if self.filled > 0 {
            self.end_block();
        }
        self.out.write_all(&self.sums)?;
        self.out.write_all(&crc32fast::hash(&self.sums).to_le_bytes())?;
        self.out.write_all(&self.length.to_le_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Write for BlockWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(BLOCK - self.filled)];
        self.out.write_all(bytes)?;
        self.hash.update(bytes);
        self.filled += bytes.len();
        self.length += bytes.len() as u64;
        if self.filled == BLOCK {
            self.end_block();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Content written by [`BlockWriter`].
pub struct Blocks {
    source: Box<dyn ReadAt>,
    sums: Vec<u32>,
    length: u64,
    damaged: Arc<AtomicBool>,
}

impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocks")
            .field("source", &self.source)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Blocks {
    /// Reads the checksums. `damaged` is set as soon as a read finds a mismatch.
    pub fn open(source: Box<dyn ReadAt>, damaged: Arc<AtomicBool>) -> io::Result<Self> {
        let cut = || io::Error::new(io::ErrorKind::InvalidData, "truncated");
        let total_length = source.length()?;
        let mut trailer = [0; TRAILER];
        let at = total_length.checked_sub(TRAILER as u64).ok_or_else(cut)?;
        source.read_exact_at(&mut trailer, at)?;
        let sum = u32::from_le_bytes(std::array::from_fn(|i| trailer[i]));
        let length = u64::from_le_bytes(std::array::from_fn(|i| trailer[4 + i]));
        let blocks = length.div_ceil(BLOCK as u64);
        if blocks.checked_mul(4).and_then(|sums| length.checked_add(sums)) != Some(at) {
            return Err(cut());
        }
        let mut sums = vec![0; usize::try_from(at - length).map_err(io::Error::other)?];
        source.read_exact_at(&mut sums, length)?;
        if crc32fast::hash(&sums) != sum {
            return Err(not_as_written());
        }
        let sums = sums.chunks_exact(4).map(|c| u32::from_le_bytes(std::array::from_fn(|i| c[i]))).collect();
        Ok(Self { source, sums, length, damaged })
    }

    /// Returns the length of the content in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns a reader of the content from an offset on.
    pub fn reader(&self, from: u64) -> Reader<'_> {
        Reader { blocks: self, at: from, block: None, bytes: Vec::new() }
    }

    /// Records a mismatch and returns the corresponding error.
    pub fn damaged(&self) -> io::Error {
        if !self.damaged.swap(true, Ordering::Relaxed) {
            tracing::error!("a cache is damaged and is rebuilt");
        }
        not_as_written()
    }

    fn read_block(&self, number: u64) -> io::Result<Vec<u8>> {
        let from = number * BLOCK as u64;
        let length = self.length.saturating_sub(from).min(BLOCK as u64) as usize;
        let mut block = vec![0; length];
        self.source.read_exact_at(&mut block, from).map_err(|error| {
            tracing::error!("reading a cache: {error}");
            self.damaged()
        })?;
        let sum = usize::try_from(number).ok().and_then(|number| self.sums.get(number));
        if sum != Some(&crc32fast::hash(&block)) {
            return Err(self.damaged());
        }
        Ok(block)
    }

    /// Reads a range of the content.
    pub fn read(&self, from: u64, length: usize) -> io::Result<Vec<u8>> {
        let end = from.checked_add(length as u64).filter(|end| *end <= self.length);
        let end = end.ok_or_else(|| self.damaged())?;
        let mut out = Vec::with_capacity(length);
        let mut at = from;
        while at < end {
            let number = at / BLOCK as u64;
            let block = self.read_block(number)?;
            let start = (at - number * BLOCK as u64) as usize;
            let take = block.len().saturating_sub(start).min((end - at) as usize);
            if take == 0 {
                return Err(self.damaged());
            }
            out.extend_from_slice(&block[start..start + take]);
            at += take as u64;
        }
        Ok(out)
    }
}

/// Reads sequentially from an offset, one block at a time, without caching earlier blocks.
pub struct Reader<'a> {
    blocks: &'a Blocks,
    at: u64,
    /// The last block that was read.
    block: Option<(u64, Vec<u8>)>,
    bytes: Vec<u8>,
}

impl Reader<'_> {
    /// Returns the next bytes.
    ///
    /// # Errors
    /// Returns an error of the system, and an error for content that differs from what was written.
    pub fn take(&mut self, length: usize) -> io::Result<&[u8]> {
        self.bytes.clear();
        let end = self.at.checked_add(length as u64).filter(|end| *end <= self.blocks.length);
        let end = end.ok_or_else(|| self.blocks.damaged())?;
        let start = (self.at % BLOCK as u64) as usize;
        let number = self.at / BLOCK as u64;
        if (1..=BLOCK - start).contains(&length) {
            // Most records are in one block, and are not copied.
            if self.block.as_ref().is_none_or(|(same, _)| *same != number) {
                self.block = Some((number, self.blocks.read_block(number)?));
            }
            let block = self.block.as_ref().map_or(&[][..], |(_, block)| block);
            let chunk = block.get(start..start + length).ok_or_else(|| self.blocks.damaged())?;
            self.at = end;
            return Ok(chunk);
        }
        while self.at < end {
            let number = self.at / BLOCK as u64;
            let block = match self.block.take() {
                Some((same, block)) if same == number => block,
                _ => self.blocks.read_block(number)?,
            };
            let start = (self.at % BLOCK as u64) as usize;
            let chunk = block.get(start..).unwrap_or_default();
            let chunk = &chunk[..chunk.len().min((end - self.at) as usize)];
            self.bytes.extend_from_slice(chunk);
            self.at += chunk.len() as u64;
            let nothing = chunk.is_empty();
            self.block = Some((number, block));
            if nothing {
                return Err(self.blocks.damaged());
            }
        }
        Ok(&self.bytes)
    }

    /// Returns the next record that [`BlockWriter::record`] wrote.
    pub fn record(&mut self) -> io::Result<&[u8]> {
        let length = self.take(4)?;
        let length = u32::from_le_bytes(std::array::from_fn(|i| length[i]));
        self.take(length as usize)
    }

    /// Returns the offset of the next bytes.
    pub fn at(&self) -> u64 {
        self.at
    }
}

/// A file that is read in parts from an offset on. It stays the same file if another one replaces its name.
#[derive(Debug)]
pub struct FileFrom {
    file: Source,
    from: u64,
}

impl FileFrom {
    /// Creates a source for the content after the first `from` bytes.
    pub fn new(file: File, from: u64) -> Self {
        Self { file: Source::new(file), from }
    }
}

impl ReadAt for FileFrom {
    fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(out, self.from.saturating_add(at))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.length()?.saturating_sub(self.from))
    }
}

#[cfg(unix)]
#[derive(Debug)]
struct Source(File);

#[cfg(unix)]
impl Source {
    fn new(file: File) -> Self {
        Self(file)
    }

    fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, out, at)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

#[cfg(not(unix))]
#[derive(Debug)]
struct Source(std::sync::Mutex<File>);

#[cfg(not(unix))]
impl Source {
    fn new(file: File) -> Self {
        Self(std::sync::Mutex::new(file))
    }

    fn file(&self) -> std::sync::MutexGuard<'_, File> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        use std::io::{Read as _, Seek as _};
        let mut file = self.file();
        file.seek(io::SeekFrom::Start(at))?;
        file.read_exact(out)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file().metadata()?.len())
    }
}

fn not_as_written() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "checksum mismatch")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_blocks(content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = BlockWriter::new(&mut out);
        writer.write_all(content).unwrap();
        writer.finish().unwrap();
        out
    }

    #[test]
    fn pieces_are_read_across_blocks() {
        let content: Vec<u8> = (0..3 * BLOCK + 17).map(|i| (i % 251) as u8).collect();
        let blocks = Blocks::open(Box::new(write_blocks(&content)), Arc::default()).unwrap();
        for (from, length) in
            [(0, 5), (BLOCK - 3, 7), (BLOCK - 1, 2 * BLOCK + 2), (3 * BLOCK, 17), (0, content.len())]
        {
            assert_eq!(blocks.read(from as u64, length).unwrap(), content[from..from + length]);
        }
        assert!(blocks.read(content.len() as u64, 1).is_err());
    }

    #[test]
    fn records_are_read_in_sequence() {
        let records: Vec<Vec<u8>> = (0..40_u8).map(|n| vec![n; usize::from(n) * 997]).collect();
        let mut out = Vec::new();
        let mut writer = BlockWriter::new(&mut out);
        writer.write_all(b"head").unwrap();
        for record in &records {
            writer.record(record).unwrap();
        }
        writer.finish().unwrap();
        let blocks = Blocks::open(Box::new(out), Arc::default()).unwrap();
        let mut reader = blocks.reader(4);
        for record in &records {
            assert_eq!(reader.record().unwrap(), record);
        }
        assert_eq!(reader.at(), blocks.length());
        assert!(reader.record().is_err(), "there is no more");
    }

    #[test]
    fn flipped_bit_is_detected_on_read_and_truncation_on_open() {
        let content = vec![7; 2 * BLOCK];
        let intact = write_blocks(&content);
        let mut flipped = intact.clone();
        flipped[BLOCK + 9] ^= 1;
        let damaged = Arc::<AtomicBool>::default();
        let blocks = Blocks::open(Box::new(flipped), Arc::clone(&damaged)).unwrap();
        assert!(blocks.read(0, BLOCK).is_ok() && !damaged.load(Ordering::Relaxed));
        assert!(blocks.read(0, BLOCK + 1).is_err() && damaged.load(Ordering::Relaxed));
        for cut in [0, 11, BLOCK, intact.len() - 1] {
            assert!(Blocks::open(Box::new(intact[..cut].to_vec()), Arc::default()).is_err(), "{cut}");
        }
    }
}
