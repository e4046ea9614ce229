//! Lists of the methods of Burn's backend traits, stored next to this file, from which both faces were implemented.
//! With a new version of Burn this test fails first and prints the changes.
//!
//! `T4A_WRITE_METHODS=1 cargo test --test methods` regenerates the lists; their difference is the required work.

use std::path::{Path, PathBuf};
use std::process::Command;

use quote::ToTokens;
use syn::{Item, TraitItem};

/// Supertraits of `Backend`.
const TRAITS: &[&str] = &[
    "ActivationOps",
    "Backend",
    "BackendTypes",
    "BoolTensorOps",
    "DistributedOps",
    "FloatTensorOps",
    "IntTensorOps",
    "ModuleOps",
    "QTensorOps",
    "QTensorPrimitive",
    "TensorMetadata",
    "TransactionOps",
];

#[test]
fn of_burn_0_21() {
    check("0.21.0");
}

#[test]
fn of_burn_0_22() {
    check("0.22.1");
}

fn check(version: &str) {
    let mut lines = Vec::new();
    collect(&sources(version).join("src"), &mut lines);
    lines.sort();
    lines.dedup();
    assert!(lines.len() > 200, "only {} methods were found", lines.len());
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/methods")
        .join(format!("burn-{version}.txt"));
    if std::env::var_os("T4A_WRITE_METHODS").is_some() {
        std::fs::write(&file, lines.join("\n") + "\n").expect("a list");
    }
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    let known: Vec<&str> = known.lines().collect();
    let new = lines.iter().filter(|line| !known.contains(&line.as_str())).map(|x| format!("+ {x}"));
    let gone = known.iter().filter(|x| !lines.iter().any(|y| y == *x)).map(|x| format!("- {x}"));
    let drift: Vec<String> = gone.chain(new).collect();
    assert!(
        drift.is_empty(),
        "{} differs from Burn's source:\n{}",
        file.display(),
        drift.join("\n")
    );
}

/// Location of the source of `burn-backend` in cargo's registry.
fn sources(version: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata = String::from_utf8(output.stdout).expect("text");
    let end = format!("burn-backend-{version}/Cargo.toml");
    let at = metadata.find(&end).unwrap_or_else(|| panic!("burn-backend {version} is not in use"));
    let start = metadata[..at].rfind('"').expect("a path in quotes") + 1;
    Path::new(&metadata[start..at + end.len()]).parent().expect("a folder").into()
}

/// One line per method: trait, presence of a default implementation, signature.
fn collect(folder: &Path, lines: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("Burn's source") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, lines);
        } else if path.extension().is_some_and(|x| x == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            let file = syn::parse_file(&text).expect("Rust");
            for item in file.items {
                let Item::Trait(item) = item else { continue };
                let name = item.ident.to_string();
                if !TRAITS.contains(&name.as_str()) {
                    continue;
                }
                for method in item.items {
                    let TraitItem::Fn(method) = method else { continue };
                    let kind = if method.default.is_some() { "default " } else { "required" };
                    let signature = method.sig.to_token_stream().to_string();
                    lines.push(format!("{name} {kind} {}", tidy(&signature)));
                }
            }
        }
    }
}

/// Removes the spaces that token streams print between tokens.
fn tidy(tokens: &str) -> String {
    let mut text = tokens.to_string();
    for (from, to) in [
        (" < ", "<"),
        (" >", ">"),
        (" , ", ", "),
        (" : ", ": "),
        (" ,)", ")"),
        (", )", ")"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("& ", "&"),
        (" :: ", "::"),
        (" ;", ";"),
    ] {
        text = text.replace(from, to);
    }
    text
}
