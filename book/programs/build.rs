//! Writes a module for every code block of the book and of README.

use std::fmt::Write;

mod blocks;

fn main() {
    let (mut modules, mut calls) = (String::new(), String::new());
    for document in blocks::documents() {
        println!("cargo::rerun-if-changed={}", document.display());
        for blocks::CodeBlock { name, code, .. } in blocks::blocks(&document) {
            // As in documentation tests, statements are the body of a function.
            let code = match code.lines().any(|line| line.starts_with("fn main()")) {
                true => code,
                false => format!(
                    "fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{code}\nOk(())\n}}\n"
                ),
            };
            let run = "pub fn run() -> ::std::process::ExitCode { ::std::process::Termination::report(main()) }";
            let head = "#[allow(unused, clippy::all)]";
            writeln!(modules, "{head}\npub mod {name} {{\n{code}\n{run}\n}}").expect("a string");
            writeln!(calls, "{name:?} => {name}::run(),").expect("a string");
        }
    }
    // A new chapter changes the folder.
    println!("cargo::rerun-if-changed=src");
    let select = format!(
        "pub fn run(name: &str) -> std::process::ExitCode {{\nmatch name {{\n{calls}_ => \
         panic!(\"there is no program {{name}}\"),\n}}\n}}\n"
    );
    let folder = std::env::var_os("OUT_DIR").expect("set by cargo");
    let file = std::path::Path::new(&folder).join("programs.rs");
    std::fs::write(file, modules + &select).expect("the folder exists");
}
