//! The `skills` binary: hands the arguments to the command line adapter and exits with its code.

fn main() -> std::process::ExitCode {
    skill_workbench::cli::main()
}
