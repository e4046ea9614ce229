//! The library used by C and C++ programs, with the address sanitizer; the header against the sources.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use t4a::dlpack::{DlTensor, Managed};
use t4a::op::{EinsumOptions, Operand};
use t4a::tensor::TensorMeta;

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of)
}

/// Sizes and offsets of the structs as defined here, for assertions of the C program.
fn layout() -> String {
    let mut text = String::new();
    macro_rules! structs {
        ($($c:ident $rust:ident { $($field:ident $own:ident),* })*) => {$(
            writeln!(text, "#define RUST_{} {}", stringify!($c), size_of::<$rust>()).unwrap();
            $(writeln!(text, "#define RUST_{}_{} {}", stringify!($c), stringify!($field), offset_of!($rust, $own)).unwrap();)*
        )*};
    }
    structs! {
        DLTensor DlTensor {
            data data, device device, ndim ndim, dtype dtype, shape shape, strides strides,
            byte_offset byte_offset
        }
        DLManagedTensorVersioned Managed {
            version version, manager_ctx context, deleter deleter, flags flags, dl_tensor tensor
        }
        t4a_operand Operand { labels labels, shape shape, rank rank }
        t4a_einsum_options EinsumOptions {
            semiring semiring, memory memory, dtype dtype, optimize optimize
        }
        t4a_meta TensorMeta { rank rank, dtype dtype, shape shape }
    }
    text
}

/// Compiles a program with the header of a folder, and runs it.
fn program(compiler: &str, options: &[&str], header: &str, source: &str) {
    // The shared library is in the folder of the test binaries.
    let test = std::env::current_exe().expect("a test has a path");
    let libraries = test.parent().expect("a test lies in a folder");
    assert!(libraries.join("libt4a.so").exists(), "no libt4a.so in {}", libraries.display());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{compiler}_{source}_{}", header.replace('/', "_")));
    std::fs::create_dir_all(&out).expect("a folder for the program");
    std::fs::write(out.join("layout.h"), layout()).expect("a header with sizes");
    let program = out.join("program");
    let status = Command::new(compiler)
        .args(options)
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-fsanitize=address"])
        .arg("-I")
        .arg(folder(header))
        .arg("-I")
        .arg(&out)
        .arg(folder(&format!("tests/c/{source}.c")))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(libraries)
        .args(["-lt4a", "-lm", "-lpthread"])
        .status()
        .unwrap_or_else(|error| panic!("the test of the C interface needs {compiler}: {error}"));
    assert!(status.success(), "{compiler} refuses the header or the program");
    let run = Command::new(&program)
        .env("LD_LIBRARY_PATH", libraries)
        .output()
        .expect("the program was compiled");
    let text = [run.stdout, run.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(run.status.success() && text.contains("all is well"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn as_c() {
    for source in ["memory", "operations", "xla", "julia", "networks"] {
        program("gcc", &["-std=gnu11"], "include", source);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn as_cpp() {
    for source in ["memory", "operations", "xla", "julia", "networks"] {
        program("g++", &["-std=gnu++17", "-x", "c++"], "include", source);
    }
}

/// Programs compiled with the header of an earlier version work with this library.
#[cfg(target_os = "linux")]
#[test]
fn earlier_headers() {
    program("gcc", &["-std=gnu11"], "tests/abi/1.0", "abi");
    program("gcc", &["-std=gnu11"], "include", "abi");
}

/// A released handle is an error, and a second release is ignored.
#[cfg(all(target_os = "linux", debug_assertions))]
#[test]
fn released_handles() {
    program("gcc", &["-std=gnu11"], "include", "released");
}

/// Identifiers in front of a parenthesis.
fn names(text: &str, before: &str) -> BTreeSet<String> {
    text.split(before)
        .skip(1)
        .filter_map(|rest| {
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            rest[name.len()..].starts_with('(').then(|| format!("t4a_{name}"))
        })
        .collect()
}

/// The header declares exactly the exported functions.
#[test]
fn the_header_is_complete() {
    let header = std::fs::read_to_string(folder("include/t4a.h")).expect("the header");
    let networks = ["networks/ground_states", "networks/trains"];
    let files =
        ["lib", "error", "tensor", "op", "run", "saved", "xla", "python/mod", "python/capsule"]
            .into_iter()
            .chain(networks);
    let source = |name| std::fs::read_to_string(folder(&format!("src/{name}.rs")));
    let sources: Vec<String> = files.map(|name| source(name).expect("a source")).collect();
    let exported = names(&sources.concat(), "extern \"C\" fn t4a_");
    assert_eq!(names(&header, "t4a_"), exported);
    assert_eq!(exported.len(), 33);
    for (name, value) in [("MAJOR", t4a::ABI_MAJOR), ("MINOR", t4a::ABI_MINOR)] {
        assert!(header.contains(&format!("#define T4A_ABI_{name} {value}\n")), "{name}");
    }
    let text = t4a::t4a_version();
    // SAFETY: a constant that ends with 0.
    let text = unsafe { std::ffi::CStr::from_ptr(text) };
    assert_eq!(text.to_str(), Ok(env!("CARGO_PKG_VERSION")));
    assert_eq!(t4a::t4a_abi(), t4a::ABI_MAJOR << 16 | t4a::ABI_MINOR);
}
