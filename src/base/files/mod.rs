//! Opening files that somebody else may have prepared: regular files only, and never outside of the folder they are
//! looked for in.
//!
//! A path that is checked and then opened can be changed in between. A [`Folder`] is open, and the system resolves
//! names against it: `openat2(2)` with `RESOLVE_BENEATH` where there is one, else folder by folder without following
//! links. What was swapped meanwhile is not found; it is never read.

mod folder;
mod refusal;

/// Levels of folders in a bundle, at most: what walks one may call itself for each level, and every level makes all
/// paths below it longer to resolve.
pub const MAX_DEPTH: usize = 64;

/// Bytes of a file that the user names, at most.
pub const MAX_USER_FILE: u64 = 64 * 1024 * 1024;

#[cfg(unix)]
pub use folder::open_folder;
pub use folder::{
    Entry, Folder, open_file, read_file, read_text, read_user_text, replace_file, resolve_named,
};
pub use refusal::OpenError;
