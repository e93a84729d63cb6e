//! The core in this process.

mod cache_file;
mod levels;
mod operations;
