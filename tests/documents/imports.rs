//! Examples of the documentation of Burn's faces import only crates that a program has among its dependencies.

/// Folders with the documentation of a user's crates.
const FOLDERS: [&str; 8] = [
    "face",
    "burn-t4a/src",
    "burn-022/ext/src",
    "transforms/src",
    "transforms/compile/src",
    "transforms/jvp/src",
    "transforms/shard/src",
    "transforms/vmap/src",
];
const CRATES: [&str; 5] = ["std", "burn", "burn_t4a", "burn_t4a_transforms", "burn_t4a_022_ext"];
/// Modules of these crates that examples have imported before.
const MODULES: [&str; 3] = ["networks", "operation", "structured"];

/// Crate that a line of an example imports from.
fn import(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! ")).or_else(|| {
        let attribute = line.strip_prefix("#![cfg_attr(")?;
        Some(attribute.split_once("doc = \"")?.1)
    })?;
    let path = line.trim_start_matches("# ").strip_prefix("use ")?;
    path.split_once("::").map(|(name, _)| name)
}

#[test]
fn examples_import_crates_of_a_user() {
    let (mut problems, mut count) = (Vec::new(), 0);
    let mut files = Vec::new();
    super::files(super::root(), &mut files);
    for file in files {
        let path = file.display().to_string();
        // Examples of one version of Burn are in Markdown files.
        let is_example = path.ends_with(".md");
        if !(path.ends_with(".rs") || is_example)
            || !FOLDERS.iter().any(|folder| path.starts_with(folder))
        {
            continue;
        }
        let text = std::fs::read_to_string(super::root().join(&file)).expect("a source");
        for (number, line) in text.lines().enumerate() {
            let line = if is_example { format!("/// {line}") } else { line.to_owned() };
            let Some(name) = import(&line) else { continue };
            count += 1;
            if !CRATES.contains(&name) && !MODULES.contains(&name) {
                problems.push(format!("{path}:{}: {name}", number + 1));
            }
        }
    }
    assert!(count > 200, "only {count} imports were found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn imports_are_read() {
    assert_eq!(import("    /// use burn::tensor::Tensor;"), Some("burn"));
    assert_eq!(import("//! # use t4a_tensor::{A, B};"), Some("t4a_tensor"));
    assert_eq!(
        import("#![cfg_attr(burn_line = \"0.22\", doc = \"use burn_tensor::A;\")]"),
        Some("burn_tensor")
    );
    assert_eq!(import("use burn_tensor::Tensor;"), None);
}
