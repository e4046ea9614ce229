//! Published contents of each crate: licences, and a README with the first paragraph of the crate documentation, its first
//! example as a program, and the dependencies of this program.

use std::fs;
use std::path::{Path, PathBuf};

/// Greatest number of lines of the README of a crate, blank ones excluded: its example has about 15.
const LINES: usize = 30;

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

/// First example of a crate documentation as a program, without hidden lines except for those at its beginning.
fn example(page: &str) -> Option<String> {
    let lines = page.lines().map_while(|line| line.strip_prefix("//!"));
    let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let mut block = lines.skip_while(|line| !line.starts_with("```"));
    if block.next()? == "```text" {
        return None;
    }
    let block: Vec<&str> = block.take_while(|line| !line.starts_with("```")).collect();
    let code: Vec<&str> = block.iter().copied().filter(|line| !line.starts_with("# ")).collect();
    if code.is_empty() {
        return None;
    }
    let head = "fn main() -> Result<(), Box<dyn std::error::Error>> {\n";
    let indented = |line: &str| match line {
        "" => "\n".to_owned(),
        _ => format!("    {line}\n"),
    };
    let body: String = code.into_iter().map(indented).collect();
    Some(format!("{head}{body}    Ok(())\n}}\n"))
}

/// Lines of `[dependencies]` for the crates that an example uses.
fn dependencies(own: &str, code: &str) -> String {
    let mut names = vec![own.to_owned()];
    for rest in code.lines().filter_map(|line| line.trim_start().strip_prefix("use ")) {
        let name = rest.split("::").next().unwrap_or_default().replace('_', "-");
        if name != "std" && !names.contains(&name) {
            names.push(name);
        }
    }
    let later = own.contains("022");
    let line = |name: String| {
        match &name[..] {
        "burn" => "burn = { version = \"=0.21.0\", default-features = false, features = [\"std\", \"autodiff\"] }\n".to_owned(),
        _ if name.starts_with("burn-t4a") || name.starts_with("t4a-") => {
            format!("{name} = \"{}\"\n", env!("CARGO_PKG_VERSION"))
        }
        _ => {
            let version = if later { "=0.22.1" } else { "=0.21.0" };
            format!("{name} = {{ version = \"{version}\", default-features = false, features = [\"std\"] }}\n")
        }
    }
    };
    names.into_iter().map(line).collect()
}

fn readme(folder: &Path) -> String {
    let read = |file: &str| fs::read_to_string(folder.join(file)).expect("a file");
    let manifest = read("Cargo.toml");
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")).expect("a name");
    let (name, page) = (name.trim_end_matches('"'), read("src/lib.rs"));
    let code = example(&page).unwrap_or_default();
    let mut text = format!("# {name}\n\n{}\n\n", paragraph(&page));
    text += &format!("```toml\n[dependencies]\n{}```\n\n", dependencies(name, &code));
    if !code.is_empty() {
        text += &format!("```rust\n{code}```\n\n");
    }
    text + &format!("Part of burn-t4a: <https://docs.rs/{name}>. MIT or Apache-2.0, as you like.\n")
}

#[test]
fn examples_become_programs() {
    let page = "//! A.\n//!\n//! ```\n//! use burn::tensor::Tensor;\n//! use t4a_a::{b, c};\n//!\n//! b()?;\n//! # Ok(())\n//! ```\n";
    let code = example(page).expect("an example");
    let want = "fn main() -> Result<(), Box<dyn std::error::Error>> {\n    use burn::tensor::Tensor;\n    use \
                t4a_a::{b, c};\n\n    b()?;\n    Ok(())\n}\n";
    assert_eq!(code, want);
    let lines = dependencies("t4a-x", &code);
    assert!(
        lines.starts_with("t4a-x = \"0.1.0\"\nburn = {") && lines.ends_with("t4a-a = \"0.1.0\"\n")
    );
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
        let readme = readme(&at);
        let lines = readme.lines().filter(|line| !line.is_empty()).count();
        assert!(lines <= LINES, "{}: {lines} lines of {LINES}", folder.join("README.md").display());
        super::is_up_to_date(folder.join("README.md"), &readme);
    }
}
