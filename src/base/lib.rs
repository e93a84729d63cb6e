//! Foundation of all other crates: files, private storage, checksummed blocks, logging, metrics and the audit log.
#![forbid(unsafe_code)]

pub mod audit;
pub mod blocks;
pub mod canonical;
pub mod duration;
pub mod files;
pub mod hex;
pub mod idle_cache;
pub mod json_value;
pub mod locked_folder;
pub mod memory;
pub mod nesting;
pub mod number;
pub mod paths;
pub mod private_files;
pub mod suggest;
pub mod sync;
pub mod telemetry;
pub mod text;
pub mod time_limit;
