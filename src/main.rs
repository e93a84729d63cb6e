//! The `skills` binary: hands the arguments to the command line adapter and exits with its code.

fn main() -> std::process::ExitCode {
    // Started again to isolate a script, it must do so before any thread or file is there.
    if let Some(code) = skill_workbench::sandbox::helper_entry() {
        return code;
    }
    skill_workbench::cli::main()
}
