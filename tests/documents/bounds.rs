//! Bounds of error messages for any input, computed from their formats and the types of their fields: a field without a
//! bound is written by a function of `t4a_algebra::message`.

use std::collections::HashMap;

use t4a_algebra::message::LIMIT;

/// Crates that depend on no other one. Their errors are cut where they become part of another message.
const INDEPENDENT: [&str; 2] = ["transforms/jit", "gpu/kernels"];

/// Longest texts of functions that format several fields.
const FUNCTIONS: [(&str, usize); 11] = [
    ("short", 96),
    ("long", 400),
    ("differing", 150),
    ("first", 350),
    ("list", 350),
    ("carry_leaves", 350),
    ("sizes", 370),
    ("wrong_source", 50),
    ("Bytes", 26),
    ("memory_limit", 115),
    ("outside", 110),
];

/// Greatest length of a field of this type; `None` if it has no bound. Static texts are names of operations and
/// requirements.
fn length(ty: &str, debug: bool, known: &HashMap<String, usize>) -> Option<usize> {
    Some(match ty {
        "usize" | "u32" | "i32" | "u64" | "i64" | "isize" | "u8" => 20,
        // Every digit of 1e300 is written without an exponent.
        "f64" => return debug.then_some(24),
        "char" => 12,
        "bool" | "DType" | "[DType ; 2]" => 8,
        "Label" => 24,
        "& 'static str" => 60,
        "Option < usize >" => 26,
        "ScanPath" => 8,
        // Two leaves and the number of the others.
        "Mismatches" => 350,
        _ => return known.get(ty.split(" <").next().unwrap_or(ty)).copied(),
    })
}

/// Arguments of a format: name and expression.
type Arguments = Vec<(Option<String>, String)>;

/// An error type or a variant: its message with arguments, and names and types of its fields.
struct Message {
    name: String,
    text: String,
    arguments: Arguments,
    fields: Vec<(String, String)>,
}

fn tokens(of: &impl quote::ToTokens) -> String {
    quote::ToTokens::to_token_stream(of).to_string()
}

/// The `#[error(…)]` attribute; `None` without one.
fn attribute(attributes: &[syn::Attribute]) -> Option<(String, Arguments)> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("error"))?;
    let tokens = attribute.parse_args::<proc_macro2::TokenStream>().expect("arguments");
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    for token in tokens {
        match &token {
            proc_macro2::TokenTree::Punct(comma) if comma.as_char() == ',' => {
                parts.push(std::mem::take(&mut part));
            }
            _ => part.push(token),
        }
    }
    parts.push(part);
    let mut parts =
        parts.into_iter().map(|part| part.into_iter().collect::<proc_macro2::TokenStream>());
    let first = parts.next()?;
    let text = match syn::parse2::<syn::LitStr>(first) {
        Ok(text) => text.value(),
        Err(_) => return Some(("transparent".into(), Vec::new())),
    };
    let argument = |part: proc_macro2::TokenStream| {
        let text = part.to_string();
        match text.split_once(" = ") {
            Some((name, value)) => (Some(name.to_owned()), value.to_owned()),
            None => (None, text),
        }
    };
    Some((text, parts.filter(|part| !part.is_empty()).map(argument).collect()))
}

fn fields(of: &syn::Fields) -> Vec<(String, String)> {
    let name = |(i, field): (usize, &syn::Field)| {
        let name = field.ident.as_ref().map_or(i.to_string(), ToString::to_string);
        (name, tokens(&field.ty))
    };
    of.iter().enumerate().map(name).collect()
}

/// Messages of the error types of a file.
fn messages(source: &str) -> Vec<Message> {
    let mut found = Vec::new();
    let mut add = |name: String, attributes: &[syn::Attribute], of: &syn::Fields| {
        if let Some((text, arguments)) = attribute(attributes) {
            found.push(Message { name, text, arguments, fields: fields(of) });
        }
    };
    for item in syn::parse_file(source).expect("Rust").items {
        match item {
            syn::Item::Enum(of) => of.variants.iter().for_each(|variant| {
                add(format!("{}::{}", of.ident, variant.ident), &variant.attrs, &variant.fields);
            }),
            syn::Item::Struct(of) => add(of.ident.to_string(), &of.attrs, &of.fields),
            _ => {}
        }
    }
    found
}

/// Greatest number of bytes of a message.
///
/// # Errors
/// The field without a bound.
fn bound(message: &Message, known: &HashMap<String, usize>) -> Result<usize, String> {
    let of_field = |name: &str, debug: bool| {
        let (_, ty) = message
            .fields
            .iter()
            .find(|(field, _)| field == name)
            .ok_or_else(|| format!("{}: {name} is no field", message.name))?;
        length(ty, debug, known)
            .ok_or_else(|| format!("{}: {name}: {ty} has no bound", message.name))
    };
    if message.text == "transparent" {
        return of_field(&message.fields[0].0, true);
    }
    let (mut rest, mut total, mut position) = (message.text.as_str(), 0, 0);
    let mut unnamed = message.arguments.iter().filter(|(name, _)| name.is_none());
    while let Some(start) = rest.find('{') {
        let end = start + rest[start..].find('}').expect("a placeholder");
        let (name, format) =
            rest[start + 1..end].split_once(':').unwrap_or((&rest[start + 1..end], ""));
        let debug = format.contains('?') || format.contains('e');
        let named =
            message.arguments.iter().find(|(argument, _)| argument.as_deref() == Some(name));
        let argument = if name.is_empty() { unnamed.next() } else { named };
        let length = match argument {
            None if name.is_empty() => {
                position += 1;
                of_field(&(position - 1).to_string(), debug)?
            }
            None => of_field(name, debug)?,
            Some((_, value)) => {
                let (function, inside) = value.split_once(" (").unwrap_or((value, ""));
                let field = |text: &str| of_field(text.trim_start_matches(['.', ' ']), debug);
                match (function, FUNCTIONS.iter().find(|&&(name, _)| name == function)) {
                    (_, Some(&(_, bytes))) => bytes,
                    ("cut", None) => {
                        let bytes = inside.trim_end_matches(')').rsplit(',').next().map(str::trim);
                        bytes.and_then(|bytes| bytes.parse().ok()).ok_or("cut without a number")?
                    }
                    _ => field(value.split(" [").next().unwrap_or(value))?,
                }
            }
        };
        total += start + length;
        rest = &rest[end + 1..];
    }
    Ok(total + rest.len())
}

/// For any input: the bound is computed from the formats and the types of the fields.
#[test]
fn messages_are_bounded() {
    let mut found = Vec::new();
    let mut files = Vec::new();
    super::files(super::root(), &mut files);
    for file in files {
        let path = file.display().to_string();
        let skipped = INDEPENDENT.iter().any(|folder| path.starts_with(folder));
        if path.ends_with(".rs") && path.contains("/src/") && !skipped {
            let text = std::fs::read_to_string(super::root().join(&file)).expect("a source");
            if text.contains("#[error(") {
                found.extend(messages(&text));
            }
        }
    }
    assert!(found.len() > 150, "only {} messages were found", found.len());
    // Bounds of types that occur in others follow from those of their variants: from the innermost type on.
    let mut known = HashMap::new();
    let mut problems = Vec::new();
    for _ in 0..6 {
        problems.clear();
        let mut bounds: HashMap<String, usize> = HashMap::new();
        for message in &found {
            let kind = message.name.split("::").next().unwrap_or_default().to_owned();
            match bound(message, &known) {
                Ok(bytes) => {
                    let longest = bounds.entry(kind).or_default();
                    *longest = (*longest).max(bytes);
                    if bytes > LIMIT {
                        problems.push(format!("{}: up to {bytes} bytes", message.name));
                    }
                }
                Err(problem) => problems.push(problem),
            }
        }
        known = bounds;
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn fields_without_a_bound_are_found() {
    let source = r#"
        #[derive(Error)]
        pub enum AnyError {
            #[error("{op}: shape {shape:?}")]
            Unbounded { op: &'static str, shape: Vec<usize> },
            #[error("{op}: shape {shape:?}", shape = short(.shape))]
            Bounded { op: &'static str, shape: Vec<usize> },
            #[error("a text: {}", cut(.0, 30))]
            Positional(String),
            #[error("norm {norm}")]
            AllDigits { norm: f64 },
            #[error(transparent)]
            Other(#[from] OtherError),
        }"#;
    let messages = messages(source);
    let known = HashMap::from([("OtherError".to_owned(), 300)]);
    let bounds: Vec<_> = messages.iter().map(|message| bound(message, &known).ok()).collect();
    assert_eq!(
        bounds,
        [None, Some(60 + ": shape ".len() + 96), Some("a text: ".len() + 30), None, Some(300)]
    );
}
