//! Crates that are not compiled as tests contain no tests, and crates without documentation tests no examples.

use std::fs;
use std::path::Path;

/// Sources below a folder, without symbolic links: tests in a source of several crates run in one of them.
fn sources(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            found.extend(sources(&entry.path()));
        } else if kind.is_file() {
            found.push(fs::read_to_string(entry.path()).expect("a source"));
        }
    }
    found
}

/// True if a source has an example that is a program.
fn has_example(source: &str) -> bool {
    let fences = source.lines().filter_map(|line| {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        doc.trim_start().strip_prefix("```")
    });
    fences.step_by(2).any(|language| language.is_empty() || language.contains("rust"))
}

#[test]
fn nothing_is_left_out() {
    let mut files = Vec::new();
    super::files(super::root(), &mut files);
    let mut seen = [0, 0];
    for file in files.iter().filter(|file| file.ends_with("Cargo.toml")) {
        let manifest = fs::read_to_string(super::root().join(file)).expect("a manifest");
        let Some((_, library)) = manifest.split_once("[lib]\n") else { continue };
        let lines: Vec<&str> = library.lines().take_while(|line| !line.starts_with('[')).collect();
        let folder = super::root().join(file).with_file_name("src");
        // Other packages consist of tests.
        let sources = if folder.is_dir() { sources(&folder) } else { Vec::new() };
        let name = file.display();
        if lines.contains(&"test = false") {
            let test = |source: &String| source.lines().any(|line| line.trim() == "#[test]");
            assert!(!sources.iter().any(test), "{name}: `test = false`, but src has tests");
            seen[0] += 1;
        }
        if lines.contains(&"doctest = false") {
            let has = sources.iter().any(|source| has_example(source));
            assert!(!has, "{name}: `doctest = false`, but src has examples");
            seen[1] += 1;
        }
    }
    assert!(seen[0] > 14 && seen[1] > 5, "{seen:?} manifests");
}
