//! Every public function of Burn's faces is called by an example of the documentation of its crate.

use std::collections::HashSet;
use std::path::Path;

/// Sources of each face. Both lines of the extension crate are one: their files are shared or alike.
const FACES: [&[&str]; 2] = [
    &["face/backend", "face/ext", "burn-t4a/src", "burn-022/ext/src"],
    &[
        "transforms/src",
        "transforms/compile/src",
        "transforms/jvp/src",
        "transforms/shard/src",
        "transforms/vmap/src",
    ],
];
/// Functions that no program calls: for implementations of backends, trees and interpreters of recordings, and the interface
/// of the backend that Burn 0.22 replaces.
const FOR_BACKENDS: [(&str, &[&str]); 12] = [
    ("face/backend/saved.rs", &[]),
    ("face/backend/slot.rs", &[]),
    ("face/ext/operation.rs", &["definition_route", "rule_vjp", "rule_jvp"]),
    ("face/ext/tape/passes.rs", &["released"]),
    ("face/ext/tree.rs", &["dtype", "with_unit_axes", "any", "take"]),
    ("burn-022/ext/src/user.rs", &["integers", "flags"]),
    ("burn-t4a/src/ext/custom/backend.rs", &["tangents_by_transposition"]),
    (
        "burn-t4a/src/ext/scan/backend.rs",
        &["scan_at_level", "fixed_point_at_level", "iterate_at_level", "switch_at_level"],
    ),
    ("transforms/compile/src/graph.rs", &["paths", "key", "metas", "is_random", "words", "with"]),
    ("transforms/compile/src/recent.rs", &[]),
    ("transforms/compile/src/tensor.rs", &[]),
    ("transforms/jvp/src/error.rs", &["text"]),
];

/// Words of the code of examples in a source or a page.
fn words(text: &str, words: &mut HashSet<String>) {
    // True in an example, false in another block.
    let mut block = None;
    for line in text.lines() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let content = doc.unwrap_or(line).trim_start();
        if content.starts_with("```") {
            block = block.is_none().then(|| !content.starts_with("```text"));
        } else if block == Some(true) {
            let split = content.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            words.extend(split.map(str::to_owned));
        }
    }
}

/// Names and lines of public functions; items for documentation tools are hidden.
fn functions(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut is_hidden) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("mod tests") {
            break;
        }
        is_hidden |= line.starts_with("#[doc(hidden)]");
        if let Some((head, rest)) = line.split_once("fn ")
            && head.starts_with("pub ")
            && head.split_whitespace().all(|word| ["pub", "const", "unsafe"].contains(&word))
            && !std::mem::take(&mut is_hidden)
        {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            found.push((number + 1, &rest[..end.unwrap_or(rest.len())]));
        }
    }
    found
}

#[test]
fn functions_have_examples() {
    let mut files = Vec::new();
    super::files(super::root(), &mut files);
    let (mut missing, mut count) = (Vec::new(), 0);
    for face in FACES {
        let own = |file: &Path| {
            let is_test = file.components().any(|part| part.as_os_str() == "tests");
            // Files of a face are linked into the crates.
            let path = super::root().join(file).canonicalize().expect("a file");
            let is_link = !path.ends_with(file);
            !is_test && !is_link && face.iter().any(|folder| file.starts_with(folder))
        };
        let texts: Vec<(String, String)> = files
            .iter()
            .filter(|file| own(file))
            .filter_map(|file| {
                let text = std::fs::read_to_string(super::root().join(file)).ok()?;
                Some((file.display().to_string(), text))
            })
            .collect();
        let mut called = HashSet::new();
        texts.iter().for_each(|(_, text)| words(text, &mut called));
        for (file, text) in &texts {
            if !file.ends_with(".rs") {
                continue;
            }
            let exempt = FOR_BACKENDS.iter().find(|(path, _)| file == path);
            for (line, name) in functions(text) {
                count += 1;
                let is_exempt =
                    exempt.is_some_and(|(_, all)| all.is_empty() || all.contains(&name));
                if !is_exempt && !called.contains(name) {
                    missing.push(format!("{file}:{line}: {name}"));
                }
            }
        }
    }
    assert!(count > 200, "only {count} functions were found");
    assert!(missing.is_empty(), "no example calls these functions:\n{}", missing.join("\n"));
    for (file, _) in FOR_BACKENDS {
        assert!(super::root().join(file).exists(), "{file} has another name");
    }
}

#[test]
fn a_function_without_an_example_is_found() {
    let source = "/// ```\n/// first(1);\n/// ```\npub fn first() {}\n#[doc(hidden)]\npub fn second() {}\n\
                  pub const unsafe fn third() {}\npub(crate) fn fourth() {}\n";
    let names: Vec<_> = functions(source).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["first", "third"]);
    let mut called = HashSet::new();
    words(source, &mut called);
    assert!(called.contains("first") && !called.contains("third"));
}
