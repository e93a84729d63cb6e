//! Reads a file of a bundle for a runtime tool: completely, or by ranges.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use serde::{Deserialize, Serialize};

use super::failure::{ToolError, ToolFailure};
use skills_base::files::{Folder, OpenError};

/// Default and maximum number of bytes returned at once.
pub const MAX_READ_BYTES: u64 = 256 << 10;

/// A range of a file, which may be all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Path inside the bundle.
    pub path: String,
    /// Size of the whole file in bytes.
    pub size: u64,
    /// First byte that was read.
    pub offset: u64,
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// Where to continue, if there is more.
    pub next_offset: Option<u64>,
}

/// Reads a range of a file of a bundle.
///
/// # Errors
/// Returns [`ToolFailure::PathEscape`] for a path that is absolute, hidden, contains `..`, or points outside through a
/// link; [`ToolFailure::NotFound`]; [`ToolFailure::InvalidRequest`] for a folder, pipe or device, and for a range that
/// is empty or begins after the end; [`ToolFailure::PayloadTooLarge`] for one that is too large.
pub fn range(bundle: &Folder, path: &str, offset: u64, length: Option<u64>) -> Result<Range, ToolError> {
    let most = length.unwrap_or(MAX_READ_BYTES);
    if most == 0 {
        return Err(ToolError::new(
            ToolFailure::InvalidRequest,
            format!("`length`: 0 is out of range; allowed: 1 to {MAX_READ_BYTES} bytes"),
        ));
    }
    if most > MAX_READ_BYTES {
        return Err(ToolError::new(
            ToolFailure::PayloadTooLarge,
            format!(
                "invalid `length` {most}; allowed: 1 to {MAX_READ_BYTES} bytes, use `offset` for the rest"
            ),
        ));
    }
    let (mut file, metadata): (File, _) = bundle.open_file(path).map_err(|refusal| refused(&refusal))?;
    let size = metadata.len();
    if offset > size {
        return Err(ToolError::new(
            ToolFailure::InvalidRequest,
            format!("{path} has {size} bytes; `offset` {offset} is past its end"),
        ));
    }
    file.seek(SeekFrom::Start(offset)).map_err(|error| failed(path, &error))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(|error| failed(path, &error))?;
    let end = offset + bytes.len() as u64;
    Ok(Range { path: path.to_owned(), size, offset, bytes, next_offset: (end < size).then_some(end) })
}

/// Reads a complete file of a bundle.
///
/// # Errors
/// Same as [`range`]; [`ToolFailure::PayloadTooLarge`] for more than `most` bytes.
pub fn read_all(bundle: &Folder, path: &str, most: u64) -> Result<Vec<u8>, ToolError> {
    bundle.read(path, most).map_err(|refusal| refused(&refusal))
}

/// Converts the error of opening a file to that of a tool.
pub fn refused(refusal: &OpenError) -> ToolError {
    let code = match refusal {
        OpenError::NotInside { .. } | OpenError::Link { .. } | OpenError::PseudoFileSystem { .. } => {
            ToolFailure::PathEscape
        }
        OpenError::NotFound { .. } => ToolFailure::NotFound,
        OpenError::NotRegular { .. } => ToolFailure::InvalidRequest,
        OpenError::TooLarge { .. } => ToolFailure::PayloadTooLarge,
        OpenError::Io { .. } => ToolFailure::RuntimeError,
    };
    ToolError::new(code, refusal.to_string())
}

fn failed(path: &str, error: &std::io::Error) -> ToolError {
    ToolError::new(ToolFailure::RuntimeError, format!("{path}: {error}"))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "what cannot be made has to fail the test")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn bundle() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("skill/references")).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        fs::write(dir.path().join("skill/references/rules.md"), "0123456789").unwrap();
        let folder = Folder::follow(&dir.path().join("skill")).unwrap();
        (dir, folder)
    }

    #[test]
    fn file_is_read_completely_or_by_ranges() {
        let (_dir, bundle) = bundle();
        let file = range(&bundle, "references/rules.md", 0, None).unwrap();
        assert_eq!((file.bytes.as_slice(), file.next_offset), (b"0123456789".as_slice(), None));
        let part = range(&bundle, "./references/rules.md", 2, Some(3)).unwrap();
        assert_eq!((part.bytes.as_slice(), part.next_offset), (b"234".as_slice(), Some(5)));
        assert_eq!(
            range(&bundle, "references/rules.md", 11, None).unwrap_err().code,
            ToolFailure::InvalidRequest
        );
        let error = range(&bundle, "references/rules.md", 0, Some(MAX_READ_BYTES + 1)).unwrap_err();
        assert_eq!(error.code, ToolFailure::PayloadTooLarge);
        let error = range(&bundle, "references/rules.md", 0, Some(0)).unwrap_err();
        assert_eq!(error.code, ToolFailure::InvalidRequest);
    }

    #[test]
    fn refusals_have_their_codes() {
        let (dir, bundle) = bundle();
        symlink(dir.path().join("secret"), bundle.path().join("out")).unwrap();
        symlink("nothing", bundle.path().join("dangling")).unwrap();
        let code = |path: &str| range(&bundle, path, 0, None).unwrap_err().code;
        for path in ["out", "../secret", "/etc/passwd", ".hidden", ""] {
            assert_eq!(code(path), ToolFailure::PathEscape, "{path}");
        }
        for path in ["dangling", "references/none.md", "references/rules.md/x"] {
            assert_eq!(code(path), ToolFailure::NotFound, "{path}");
        }
        assert_eq!(code("references"), ToolFailure::InvalidRequest);
        assert_eq!(
            read_all(&bundle, "references/rules.md", 9).unwrap_err().code,
            ToolFailure::PayloadTooLarge
        );
    }
}
