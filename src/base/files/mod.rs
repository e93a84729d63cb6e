//! Opens files that an untrusted party may have prepared: only regular files, and never outside of the folder in which
//! they are looked up.
//!
//! A path that is checked and then opened can be changed in between. A [`Folder`] stays open, and the system resolves
//! names relative to it: `openat2(2)` with `RESOLVE_BENEATH` if available, otherwise one folder at a time without
//! following links. A file that was swapped in the meantime is not found; it is never read.

mod folder;
mod real_path;
mod refusal;
mod regular;
mod stamp;

/// Maximum depth of folders in a bundle: recursive traversal uses one stack frame per level, and every level makes the
/// paths below it slower to resolve.
pub const MAX_DEPTH: usize = 64;

/// Maximum number of components of a path below a folder, of the path of a link and of its target, and of the path that
/// both lead to: what looks at each component takes time in proportion to their square.
pub const MAX_COMPONENTS: usize = 128;

/// Maximum size in bytes of a file that the user names.
pub const MAX_USER_FILE: u64 = 64 * 1024 * 1024;

#[cfg(unix)]
pub use folder::open_folder;
pub use folder::{
    Entry, Folder, open_file, read_file, read_text, read_user_text, replace_file, replace_file_after,
    resolve_named,
};
pub use real_path::canonicalize;
pub use refusal::OpenError;
pub use regular::{open_regular, read_regular, read_regular_text, replace_shared};
pub use stamp::{FileIdentity, FileStamp};

/// Returns the reason of an error of the system as part of a sentence, without its number: `no such file or directory`.
pub fn io_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    let starts_with_acronym = letters.clone().next().is_some_and(char::is_uppercase);
    match first {
        Some(first) if !starts_with_acronym => first.to_string() + letters.as_str(),
        _ => text.to_owned(),
    }
}

/// Describes why a file cannot be written: for example because its folder does not exist.
pub fn write_failure(path: &std::path::Path, error: &std::io::Error) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let missing = folder.filter(|folder| error.kind() == std::io::ErrorKind::NotFound && !folder.exists());
    let reason = missing.map_or_else(
        || io_reason(error),
        |folder| format!("the folder `{}` does not exist", folder.display()),
    );
    format!("cannot write `{}`: {reason}", path.display())
}

/// Returns whether anybody may execute a file; nothing is executable where the system has no such mode.
#[cfg(unix)]
pub fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
pub fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}
