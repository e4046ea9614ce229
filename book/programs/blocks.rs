//! Code blocks of Markdown files, for three packages: `t4a-book`, `burn-t4a-gpu-book` of the workspace `gpu`, and
//! `burn-t4a-022-book` of the workspace `burn-022`.

use std::path::{Path, PathBuf};

/// Language of the blocks that a package runs. Those marked `gpu` are for a GPU backend of Burn, those marked `burn-0.22`
/// for that version.
pub fn language() -> &'static str {
    match env!("CARGO_PKG_NAME") {
        "burn-t4a-gpu-book" => "rust,gpu",
        "burn-t4a-022-book" => "rust,burn-0.22",
        _ => "rust",
    }
}

/// A code block of Rust that is compiled and run.
pub struct CodeBlock {
    /// Name of the module: that of the file, and the line of the block.
    pub name: String,
    /// Contents without the marks of hidden lines (`# `).
    pub code: String,
    /// The text block that directly follows: the required output.
    pub output: Option<ExpectedOutput>,
}

/// A text block.
#[derive(Debug, PartialEq)]
pub struct ExpectedOutput {
    /// Index of its first line in the document.
    pub line: usize,
    pub text: String,
}

/// README and the chapters, in the order of their names.
pub fn documents() -> Vec<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().find(|folder| folder.join("book/src").is_dir());
    let root = root.expect("the folder of the repository");
    let chapters = std::fs::read_dir(root.join("book/src")).expect("the folder of the chapters");
    let chapters = chapters.map(|entry| entry.expect("an entry").path());
    let mut all: Vec<_> =
        chapters.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    all.push(root.join("README.md"));
    all.sort();
    all
}

/// Rust blocks of a document for this package.
pub fn blocks(path: &Path) -> Vec<CodeBlock> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file = path.file_stem().expect("a name").to_string_lossy().to_lowercase().replace('-', "_");
    parse(&file, language(), &text)
}

fn parse(file: &str, language: &str, text: &str) -> Vec<CodeBlock> {
    let (mut found, mut lines) = (Vec::<CodeBlock>::new(), text.lines().enumerate());
    // True while a text block would be the output of the last program.
    let mut expects_output = false;
    while let Some((number, line)) = lines.next() {
        let Some(opened) = line.strip_prefix("```") else {
            expects_output &= line.trim().is_empty();
            continue;
        };
        let body = lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```"));
        let body: String = body.map(|line| format!("{line}\n")).collect();
        match (opened, found.last_mut()) {
            _ if opened == language => {
                let shown = |line: &str| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n";
                let code = body.lines().map(shown).collect();
                let name = format!("{file}_{}", number + 1);
                found.push(CodeBlock { name, code, output: None });
            }
            ("text", Some(program)) if expects_output => {
                program.output = Some(ExpectedOutput { line: number + 1, text: body });
            }
            _ => {}
        }
        expects_output = opened == language;
    }
    found
}

#[test]
fn blocks_are_found() {
    let text = "```rust\n# use a;\nb\n```\n\n```text\n1\n```\n```rust,ignore\nc\n```\n```rust\nd\n```\ntext\n```text\n2\n```\n";
    let found = parse("x", "rust", text).into_iter();
    let found: Vec<_> = found.map(|b| (b.name, b.code, b.output)).collect();
    let output = ExpectedOutput { line: 6, text: "1\n".to_owned() };
    let want = [("x_1", "use a;\nb\n", Some(output)), ("x_12", "d\n", None)];
    assert_eq!(found, want.map(|(name, code, output)| (name.to_owned(), code.to_owned(), output)));
}
