//! Messages of all errors, listed in `errors.txt`, so that the effect of a change is visible next to the other
//! messages.

use std::path::PathBuf;

const FILE: &str = "tests/documents/errors.txt";

/// Message of an `#[error(…)]` attribute: its string, with continued lines joined.
fn message(attribute: &str) -> String {
    match (attribute.find('"'), attribute.rfind('"')) {
        (Some(start), Some(end)) if start < end => {
            let mut pieces = attribute[start + 1..end].split("\\\n");
            let first = pieces.next().unwrap_or_default().to_owned();
            pieces.fold(first, |text, piece| text + piece.trim_start())
        }
        _ => "(text of the source error)".into(),
    }
}

/// Error variants of a source file and their messages, as `Kind::Variant`.
fn texts(source: &str) -> Vec<(String, String)> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric()).collect::<String>();
    let (mut found, mut kind, mut attribute) = (Vec::new(), None, String::new());
    let mut inside = false;
    for line in source.lines() {
        if let Some(rest) = line.strip_prefix("pub enum ") {
            kind = Some(name(rest)).filter(|name| name.ends_with("Error"));
        } else if line.starts_with('}') {
            kind = None;
        }
        let (Some(kind), Some(line)) = (&kind, line.strip_prefix("    ")) else { continue };
        if line.starts_with("#[error(") {
            (attribute, inside) = (String::new(), true);
        }
        if inside {
            attribute += line;
            attribute += "\n";
            inside = !line.ends_with(")]");
        } else if line.starts_with(char::is_uppercase) {
            found.push((format!("{kind}::{}", name(line)), message(&attribute)));
            attribute.clear();
        }
    }
    found
}

#[test]
fn texts_are_read() {
    let source = "pub enum AnyError {\n    /// One.\n    #[error(\"a: {x} is\")]\n    One { x: u8 },\n    #[error(\n        \
                  \"b: {y:?} \\\n         and\", f(y)\n    )]\n    Two(u8),\n    #[error(transparent)]\n    Three(#[from] \
                  Other),\n}\npub enum Kind {\n    Four,\n}\n";
    let texts = texts(source);
    let want = [
        ("AnyError::One", "a: {x} is"),
        ("AnyError::Two", "b: {y:?} and"),
        ("AnyError::Three", "(text of the source error)"),
    ];
    assert_eq!(texts, want.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

#[test]
fn errors_say_what_the_list_says() {
    let mut files = Vec::new();
    super::files(super::root(), &mut files);
    files.sort();
    let source = |file: &&PathBuf| {
        let path = file.display().to_string();
        path.ends_with(".rs") && path.contains("/src/")
    };
    let (mut list, mut count) = (String::new(), 0);
    for file in files.iter().filter(source) {
        let text = std::fs::read_to_string(super::root().join(file)).expect("a source");
        let path = file.display().to_string();
        let folder = path.split("/src/").next().unwrap_or_default().to_owned();
        for (variant, says) in texts(&text) {
            assert!(!says.is_empty(), "{path}: {variant} says nothing");
            list += &format!("{folder} {variant}\n    {says}\n");
            count += 1;
        }
    }
    assert!(count > 100, "only {count} variants were found");
    super::is_up_to_date(FILE, &list);
}
