//! Resource limits of a process and its children (setrlimit(2)).

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::super::plan::ResourceLimits;

/// Lowers every limit except those of memory, soft and hard, so that the script cannot raise them again.
pub fn set(limits: &ResourceLimits) -> Result<(), String> {
    lower("core files", Resource::RLIMIT_CORE, 0, 0)?;
    // The soft limit sends SIGXCPU, the hard one SIGKILL a second later.
    lower("processor time", Resource::RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1)?;
    lower("size of a file", Resource::RLIMIT_FSIZE, limits.file_size, limits.file_size)?;
    lower("open files", Resource::RLIMIT_NOFILE, limits.open_files, limits.open_files)?;
    lower("processes", Resource::RLIMIT_NPROC, limits.tasks, limits.tasks)
}

/// Lowers the memory limits. Called last, because the memory of this process counts too, so a later allocation may
/// fail.
pub fn set_memory(limits: &ResourceLimits) -> Result<(), String> {
    #[cfg(not(target_os = "macos"))]
    lower("mapped memory", Resource::RLIMIT_AS, limits.address_space, limits.address_space)?;
    lower("memory", Resource::RLIMIT_DATA, limits.data, limits.data)
}

fn lower(what: &str, resource: Resource, soft: u64, hard: u64) -> Result<(), String> {
    let failed = |error| format!("limiting the {what}: {error}");
    let (_, ceiling) = getrlimit(resource).map_err(failed)?;
    setrlimit(resource, soft.min(ceiling), hard.min(ceiling)).map_err(failed)
}
