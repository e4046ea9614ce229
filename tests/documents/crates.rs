//! Published contents of each crate: licences, and a README that starts with the first paragraph of the crate
//! documentation.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the published crates.
fn published() -> Vec<PathBuf> {
    let mut files = Vec::new();
    super::files(super::root(), &mut files);
    let mut folders = Vec::new();
    for file in files.iter().filter(|file| file.ends_with("Cargo.toml")) {
        let manifest = fs::read_to_string(super::root().join(file)).expect("a manifest");
        let folder = file.parent().expect("a folder").to_path_buf();
        let is_crate = super::root().join(&folder).join("src/lib.rs").exists();
        if is_crate && !manifest.contains("publish = false") {
            folders.push(folder);
        }
    }
    folders
}

/// First paragraph of a crate documentation, without links to items.
fn paragraph(page: &str) -> String {
    let lines = page.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let text = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let (mut plain, mut rest) = (String::new(), &text[..]);
    while let Some(start) = rest.find("[`") {
        let end = start + rest[start..].find("`]").expect("a link ends");
        plain += &rest[..start];
        plain += &rest[start + 1..=end];
        rest = &rest[end + 2..];
        if rest.starts_with('(') {
            rest = &rest[rest.find(')').expect("a target ends") + 1..];
        }
    }
    plain + rest
}

fn readme(folder: &Path) -> String {
    let read = |file: &str| fs::read_to_string(folder.join(file)).expect("a file");
    let manifest = read("Cargo.toml");
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")).expect("a name");
    let (name, text) = (name.trim_end_matches('"'), paragraph(&read("src/lib.rs")));
    format!(
        "# {name}\n\n{text}\n\nPart of burn-t4a. Documentation: <https://docs.rs/{name}>.\n\nMIT or \
         Apache-2.0, as you like.\n"
    )
}

#[test]
fn links_become_names() {
    let page = "//! A [Burn](https://burn.dev) crate: [`A`], [`Tensor<T>`](Tensor),\n//! `B`.\n//!\n//! More.\n";
    assert_eq!(paragraph(page), "A [Burn](https://burn.dev) crate: `A`, `Tensor<T>`, `B`.");
}

#[test]
fn crates_have_licences_and_a_readme() {
    let folders = published();
    assert!(folders.len() > 20, "only {} crates", folders.len());
    for folder in folders {
        let at = super::root().join(&folder);
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let [own, whole] = [&at, super::root()].map(|x| fs::read_to_string(x.join(licence)));
            let missing = "a link to that of the project is missing";
            assert_eq!(own.ok(), whole.ok(), "{}: {missing}", folder.join(licence).display());
        }
        // Cargo finds the README of the folder without an entry in the manifest.
        let manifest = fs::read_to_string(at.join("Cargo.toml")).expect("a manifest");
        let names = manifest.lines().any(|line| line.starts_with("readme"));
        assert!(!names, "{}/Cargo.toml names another readme", folder.display());
        super::is_up_to_date(folder.join("README.md"), &readme(&at));
    }
}
