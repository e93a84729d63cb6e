//! Opens files that an untrusted party may have prepared: only regular files, and never outside of the folder in which
//! they are looked up.
//!
//! A path that is checked and then opened can be changed in between. A [`Folder`] stays open, and the system resolves
//! names relative to it: `openat2(2)` with `RESOLVE_BENEATH` if available, otherwise one folder at a time without
//! following links. A file that was swapped in the meantime is not found; it is never read.

mod folder;
mod refusal;
mod regular;
mod stamp;

/// Maximum depth of folders in a bundle: recursive traversal uses one stack frame per level, and every level makes the
/// paths below it slower to resolve.
pub const MAX_DEPTH: usize = 64;

/// Maximum size in bytes of a file that the user names.
pub const MAX_USER_FILE: u64 = 64 * 1024 * 1024;

#[cfg(unix)]
pub use folder::open_folder;
pub use folder::{
    Entry, Folder, open_file, read_file, read_text, read_user_text, replace_file, replace_file_after,
    resolve_named,
};
pub use refusal::OpenError;
pub use regular::{open_regular, read_regular, read_regular_text};
pub use stamp::FileStamp;
