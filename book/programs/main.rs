//! Runs one code block of the book or of README: `book-programs einsum_7`.

mod programs {
    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}

fn main() -> std::process::ExitCode {
    let name = std::env::args().nth(1).expect("the name of a program");
    programs::run(&name)
}
