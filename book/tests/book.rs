//! Code blocks of the book and of README: each one compiles and ends without an error, and prints the text block that
//! follows it.

use std::path::Path;
use std::process::Command;

#[path = "../programs/blocks.rs"]
mod blocks;

use blocks::ExpectedOutput;

/// True if both texts are equal except for spaces at ends of lines. A line `…` matches any lines.
fn equal(given: &str, required: &str) -> bool {
    let lines = |text: &str| text.trim_end().lines().map(|x| x.trim_end().to_owned()).collect();
    let [given, required]: [Vec<String>; 2] = [lines(given), lines(required)];
    match required.iter().position(|line| line == "…") {
        None => given == required,
        Some(at) => {
            let (head, tail) = (&required[..at], &required[at + 1..]);
            given.len() >= required.len() - 1 && given.starts_with(head) && given.ends_with(tail)
        }
    }
}

#[test]
fn texts_are_compared() {
    assert!(equal("a \nb\n", "a\nb") && !equal("a\nb", "a") && !equal("a", "b"));
    assert!(equal("a\nb\nc\n", "a\n…\nc") && !equal("a\nb\n", "a\n…\nc") && !equal("a", "a\n…\na"));
}

/// Binary with all programs. Its name differs between the workspaces, which share a target directory.
fn programs() -> &'static str {
    let names = [
        option_env!("CARGO_BIN_EXE_book-programs"),
        option_env!("CARGO_BIN_EXE_gpu-programs"),
        option_env!("CARGO_BIN_EXE_later-programs"),
    ];
    names.into_iter().flatten().next().expect("the binary of this package")
}

/// If this variable is set, outputs in the documents are updated instead of checked.
const UPDATE: &str = "T4A_UPDATE_DOCUMENTS";

/// Replaces outputs of a document by those that were printed.
fn update(document: &Path, outputs: &[(ExpectedOutput, String)]) {
    let text = std::fs::read_to_string(document).expect("a document");
    let mut lines: Vec<&str> = text.lines().collect();
    for (old, new) in outputs.iter().rev() {
        let new = new.trim_end().lines().map(str::trim_end);
        lines.splice(old.line..old.line + old.text.lines().count(), new);
    }
    std::fs::write(document, lines.join("\n") + "\n").expect("a document");
}

#[test]
fn programs_print_their_output() {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for document in blocks::documents() {
        let mut differs = Vec::new();
        for block in blocks::blocks(&document) {
            let output =
                Command::new(programs()).arg(&block.name).output().expect("the program starts");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            if !output.status.success() {
                let errors = String::from_utf8_lossy(&output.stderr);
                wrong.push(format!("{} fails:\n{printed}{errors}", block.name));
            } else if let Some(required) = block.output {
                compared += 1;
                if !equal(&printed, &required.text) {
                    differs.push((required, printed));
                }
            }
        }
        if std::env::var_os(UPDATE).is_some() && !differs.is_empty() {
            update(&document, &differs);
        } else {
            let file = document.display();
            wrong.extend(differs.into_iter().map(|(required, printed)| {
                let line = required.line;
                format!("{file}:{line}: printed is\n{printed}\nrequired is\n{}", required.text)
            }));
        }
    }
    let least = if blocks::language() == "rust" { 15 } else { 1 };
    assert!(compared >= least, "only {compared} outputs were found");
    let advice = format!("`{UPDATE}=1 cargo test --test book` updates outputs");
    assert!(wrong.is_empty(), "{}\n{advice}", wrong.join("\n"));
}
