//! File access control by Landlock (<https://docs.kernel.org/userspace-api/landlock.html>): read and write access only
//! to the given paths; no TCP ports, and no signals and abstract sockets across the boundary, if the kernel's ABI
//! supports that.

use std::error::Error;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    PathFdError, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};

use super::super::plan::FileAccess;

/// The newest ABI that this module supports.
const NEWEST: ABI = ABI::V7;

/// Applies the rules to this process and all its children, and returns the ABI.
///
/// With an ABI in the plan, all of its access rights are hard requirements. Otherwise, the best supported ABI is used.
pub fn restrict(access: &FileAccess) -> Result<i32, String> {
    let (abi, level) = match access.landlock {
        Some(number) => (ABI::from(number), CompatLevel::HardRequirement),
        None => (NEWEST, CompatLevel::BestEffort),
    };
    let status = build(access, abi, level).map_err(|error| format!("Landlock: {error}"))?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err("Landlock is not supported by this kernel, or disabled".to_owned());
    }
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => Ok((effective_abi as i32).min(NEWEST as i32)),
        other => Err(format!("Landlock: {other:?}")),
    }
}

fn build(
    access: &FileAccess,
    abi: ABI,
    level: CompatLevel,
) -> Result<landlock::RestrictionStatus, Box<dyn Error>> {
    let mut rules = Ruleset::default().set_compatibility(level).handle_access(AccessFs::from_all(abi))?;
    // Requesting a set that is empty in an ABI is an error.
    if abi >= ABI::V4 {
        rules = rules.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        rules = rules.scope(Scope::from_all(abi))?;
    }
    let read = AccessFs::from_read(abi);
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile;
    // No device nodes and no sockets: both give access to something outside.
    let write = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock);
    let mut rules = rules.create()?;
    for path in &access.readable {
        rules = rules.add_rules(path_beneath_rules([required(path)?], read))?;
    }
    Ok(rules
        .add_rules(path_beneath_rules(&access.readable_if_present, read))?
        .add_rules(path_beneath_rules(&access.devices, device))?
        .add_rule(PathBeneath::new(PathFd::new(&access.writable)?, write))?
        .restrict_self()?)
}

/// Requires that a path exists: `path_beneath_rules` silently skips missing ones.
fn required(path: &std::path::Path) -> Result<&std::path::Path, PathFdError> {
    PathFd::new(path)?;
    Ok(path)
}
