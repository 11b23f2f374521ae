//! The `laggard` program.

fn main() -> std::process::ExitCode {
    laggard::main(std::env::args_os())
}
