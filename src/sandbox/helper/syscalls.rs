//! System calls that are denied to scripts (seccomp(2)).
//!
//! A deny list instead of an allow list: Landlock controls file access, and an allow list would break interpreters
//! with every release. Denied are calls that reach other processes, the network, the kernel itself, or memory that no
//! limit counts.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::super::plan::CallFilter;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that scripts do not need, denied regardless of their arguments.
const DENIED: &[i64] = &[
    // Network, and local sockets that reach other programs.
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Reserves asynchronous requests, whose number is limited for the whole machine; the other calls need its result.
    libc::SYS_io_setup,
    // An alternative way to make system calls, which bypasses this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // Key management.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Memory that no limit counts, and objects that outlive their creator.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmdt,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    // These take an id that can be guessed, without a preceding open call.
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // File names that Landlock hides, and instances, of which a user has a limited number.
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_open_by_handle_at,
    // `statmount` and `listmount`: the mount table, which `/proc` hides. They are newer than the tables of some C
    // libraries, and have the same number on every architecture.
    457,
    458,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_personality,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[i64] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_inotify_init,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[i64] = &[];

/// Calls that change mode, owner or times of a file; `fchmodat2`, `setxattrat`, `removexattrat` and `file_setattr` are
/// newer than the tables of some C libraries, and have the same number on every architecture.
const METADATA: &[i64] = &[libc::SYS_fchmod, libc::SYS_fchmodat, 452, libc::SYS_fchown, libc::SYS_fchownat];
/// Calls that change extended attributes.
const EXTENDED_WRITES: &[i64] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    463,
    466,
    469,
];
/// Calls that read extended attributes, whose values are content: Landlock covers none of them, and names can be listed
/// by any user. `getxattrat` and `listxattrat` have the same number on every architecture.
const EXTENDED_READS: &[i64] = &[
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    464,
    465,
];
#[cfg(target_arch = "x86_64")]
const METADATA_SYSCALLS_X86_64: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const METADATA_SYSCALLS_X86_64: &[i64] = &[];

/// Flags of `clone` that create a namespace (clone(2)).
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The bit that turns a call into its x32 form, which the same processor accepts and filters often overlook.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Installs the filters; they apply to this process, its children, and every program that these execute.
pub fn install(filter: CallFilter) -> Result<(), String> {
    let programs = compile(filter).map_err(|error| format!("system call filter: {error}"))?;
    for program in &programs {
        apply_filter(program).map_err(|error| format!("system call filter: {error}"))?;
    }
    Ok(())
}

/// Compiles one filter for each error code. A C library that gets ENOSYS from `clone3` falls back to `clone`, whose
/// flags can be inspected; a program that gets ENOTSUP continues without extended attributes.
fn compile(filter: CallFilter) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let mut programs = vec![
        program(denied_rules()?, libc::EPERM)?,
        program(with_x32(unconditional(&[libc::SYS_clone3])), libc::ENOSYS)?,
    ];
    let mut extended = EXTENDED_READS.to_vec();
    if filter.freeze_metadata {
        programs.push(program(metadata_rules(), 0)?);
        extended.extend(EXTENDED_WRITES);
    }
    programs.push(program(with_x32(unconditional(&extended)), libc::ENOTSUP)?);
    Ok(programs)
}

fn program(rules: Rules, errno: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), arch)?.try_into()
}

fn denied_rules() -> Result<Rules, seccompiler::BackendError> {
    let mut rules = unconditional(&[DENIED, DENIED_HERE].concat());
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        namespaces.push(rule(0, Op::MaskedEq(flag as u64), flag as u64)?);
    }
    rules.insert(libc::SYS_clone, namespaces);
    rules.insert(libc::SYS_socketpair, pairs_that_reach_out()?);
    // Limits and scheduling of other processes: only the own process, with the number 0, is allowed.
    for call in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ] {
        rules.insert(call, vec![rule(0, Op::Ne, 0)?]);
    }
    rules.insert(libc::SYS_setpriority, vec![rule(0, Op::Ne, 0)?, rule(1, Op::Ne, 0)?]);
    rules.insert(libc::SYS_ioprio_set, vec![rule(0, Op::Ne, 1)?, rule(1, Op::Ne, 0)?]);
    #[cfg(target_arch = "x86_64")]
    rules.extend((512..=547).map(|call| (call | X32, Vec::new())));
    Ok(with_x32(rules))
}

/// Returns rules that apply to calls regardless of their arguments.
fn unconditional(calls: &[i64]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

/// Adds the x32 form of every call, regardless of its arguments.
#[cfg(target_arch = "x86_64")]
fn with_x32(mut rules: Rules) -> Rules {
    let twins: Vec<i64> = rules.keys().map(|call| call | X32).collect();
    rules.extend(unconditional(&twins));
    rules
}

#[cfg(not(target_arch = "x86_64"))]
fn with_x32(rules: Rules) -> Rules {
    rules
}

/// Returns the rules that deny `socketpair`, except for Unix stream sockets: a connected pair of these stays between
/// the processes that share it, and event loops depend on it. The ends of a datagram pair can still send to any other
/// address.
fn pairs_that_reach_out() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    const KIND: u64 = 0xf;
    let mut rules = vec![rule(0, Op::Ne, libc::AF_UNIX as u64)?];
    for kind in (0..=KIND).filter(|kind| *kind != libc::SOCK_STREAM as u64) {
        rules.push(rule(1, Op::MaskedEq(KIND), kind)?);
    }
    Ok(rules)
}

/// Returns the calls that succeed without effect.
fn metadata_rules() -> Rules {
    let mut rules = unconditional(&[METADATA, METADATA_SYSCALLS_X86_64].concat());
    rules.insert(libc::SYS_utimensat, Vec::new());
    with_x32(rules)
}

fn rule(argument: u8, operator: Op, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, Len::Dword, operator, value)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_fit_into_the_kernel() {
        let programs = compile(CallFilter { freeze_metadata: true }).expect("this architecture");
        assert_eq!(programs.len(), 4);
        assert_eq!(compile(CallFilter { freeze_metadata: false }).expect("this architecture").len(), 3);
        for program in programs {
            assert!(program.len() < 4096, "{}", program.len());
        }
    }

    #[test]
    fn every_denied_call_has_its_counterpart() {
        let rules = denied_rules().expect("valid rules");
        #[cfg(target_arch = "x86_64")]
        assert!(DENIED.iter().all(|call| rules.contains_key(&(call | X32))));
        #[cfg(target_arch = "x86_64")]
        assert!(METADATA.iter().all(|call| metadata_rules().contains_key(&(call | X32))));
        assert!(rules[&libc::SYS_socket].is_empty(), "refused whatever the family");
    }
}
