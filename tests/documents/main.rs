//! Consistency of documents: names in README.md, ARCHITECTURE.md, CONTRIBUTING.md, docs and the book exist, licences of
//! dependencies are accepted, and the lists of error messages and crate READMEs are up to date.

mod bounds;
mod crates;
mod errors;
mod examples;
mod imports;
mod licences;
mod targets;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const DOCUMENTS: [&str; 4] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/decisions.md"];
/// Folder of the chapters of the book.
const BOOK: &str = "book/src";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// If this variable is set, generated files are updated instead of checked.
const UPDATE: &str = "T4A_UPDATE_DOCUMENTS";

/// Checks that a file of the project has this content, or updates it.
#[track_caller]
fn is_up_to_date(file: impl AsRef<Path>, text: &str) {
    let (file, path) = (file.as_ref(), root().join(&file));
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, text).expect("a file");
    }
    let given = std::fs::read_to_string(&path).unwrap_or_default();
    let differs: Vec<&str> = text.lines().filter(|line| !given.contains(line)).collect();
    assert!(
        given == text,
        "{} says otherwise; `{UPDATE}=1 cargo test --test documents` makes it say:\n{}",
        file.display(),
        differs.join("\n")
    );
}

/// Files of the project, relative to its root.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"))
    {
        let path = entry.path();
        let name = entry.file_name();
        if name == OsStr::new("target") || name == OsStr::new(".git") {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path.strip_prefix(root()).expect("a path below the root").to_path_buf());
        }
    }
}

/// Text in backquotes outside of code blocks, with its line number. Names of other libraries (the first column of
/// tables whose header ends with "here") are excluded.
fn quoted(text: &str) -> Vec<(usize, String)> {
    let (mut names, mut block, mut foreign) = (Vec::new(), false, false);
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            block = !block;
        }
        foreign = line.starts_with('|') && (foreign || line.ends_with("| here |"));
        if block || line.starts_with("```") {
            continue;
        }
        let line = if foreign {
            line.split('|').skip(2).collect::<Vec<_>>().join("|")
        } else {
            line.into()
        };
        names.extend(line.split('`').skip(1).step_by(2).map(|name| (number + 1, name.to_owned())));
    }
    names
}

/// Expands a path: `a/{b, c}` gives two paths.
fn paths(name: &str) -> Vec<String> {
    let is_path = |x: &str| x.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
    match (name.split_once('{'), name.ends_with('}')) {
        (Some((head, tail)), true) if head.ends_with('/') => tail
            .trim_end_matches('}')
            .split(',')
            .map(|part| format!("{head}{}", part.trim()))
            .collect(),
        _ if is_path(name) && (name.contains('/') || name.ends_with(".rs")) => {
            vec![name.to_owned()]
        }
        _ => Vec::new(),
    }
}

/// Identifiers with an underscore or several words, which are unlikely to be prose.
fn items(name: &str) -> Vec<&str> {
    let code = !name.contains(' ') && !name.contains('/') && !name.starts_with('-');
    let parts = name.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let is_item = |x: &&str| {
        x.len() > 2
            && !x.starts_with(|c: char| c.is_ascii_digit())
            && (x.trim_matches('_').contains('_')
                || x.starts_with(|c: char| c.is_ascii_uppercase()))
    };
    if code { parts.filter(is_item).collect() } else { Vec::new() }
}

#[test]
fn what_documents_name_exists() {
    let mut all = Vec::new();
    files(root(), &mut all);
    let mut words: HashSet<String> = HashSet::new();
    for file in
        all.iter().filter(|f| f.extension().is_some_and(|e| e == "rs" || e == "toml" || e == "py"))
    {
        words.insert(file.file_stem().expect("a name").to_string_lossy().into_owned());
        let text = std::fs::read_to_string(root().join(file)).expect("a source");
        let split = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.extend(split.map(str::to_owned));
    }
    // Modules are identified by the end of their path, with or without `src` and the extension.
    let known: Vec<String> = all
        .iter()
        .flat_map(|file| file.ancestors())
        .flat_map(|path| {
            let whole = format!("/{}/", path.display());
            let module = whole.replace(".rs/", "/");
            [whole.replace("/src/", "/"), module.replace("/src/", "/"), whole, module]
        })
        .collect();

    let (mut missing, mut paths_seen, mut items_seen) = (Vec::new(), 0, 0);
    let chapters = all.iter().filter(|file| file.starts_with(BOOK));
    let chapters = chapters.filter(|file| file.extension().is_some_and(|e| e == "md"));
    let documents = DOCUMENTS.map(PathBuf::from);
    for document in documents.iter().chain(chapters) {
        let text = std::fs::read_to_string(root().join(document)).expect("a document");
        let document = document.display();
        for (line, name) in quoted(&text) {
            for path in paths(&name) {
                paths_seen += 1;
                let end = format!("/{}/", path.trim_matches('/'));
                let made_by_running = path.starts_with("target/");
                if !made_by_running && !known.iter().any(|path| path.ends_with(&end)) {
                    missing.push(format!("{document}:{line}: {path}"));
                }
            }
            for item in items(&name) {
                items_seen += 1;
                if !words.contains(item) {
                    missing.push(format!("{document}:{line}: {item} in `{name}`"));
                }
            }
        }
    }
    assert!(
        paths_seen > 40 && items_seen > 60,
        "{paths_seen} paths and {items_seen} items were seen"
    );
    assert!(missing.is_empty(), "named, but not there:\n{}", missing.join("\n"));
}
