//! Licences of all dependencies of both workspaces: permissive, or file-level copyleft (MPL), which does not extend to
//! the program.

use std::process::Command;

const ACCEPTED: [&str; 16] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "MIT-0",
    "NCSA",
];

/// True if a licence expression allows an accepted choice.
fn accepted(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let all = expression.split(" AND ").map(|part| part.trim_matches(['(', ')', ' ']));
    all.into_iter().all(|part| part.split(" OR ").any(|one| ACCEPTED.contains(&one.trim())))
}

#[test]
fn of_every_crate() {
    assert!(accepted("MIT/Apache-2.0") && accepted("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(accepted("LGPL-3.0-or-later OR MPL-2.0"));
    assert!(!accepted("GPL-3.0-only") && !accepted("MIT AND GPL-3.0-only"));
    for manifest in ["Cargo.toml", "burn-022/Cargo.toml", "gpu/Cargo.toml"] {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--manifest-path", manifest])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        let all: Vec<&str> = text.split("\"license\":").skip(1).collect();
        assert!(all.len() > 300, "only {} crates", all.len());
        for rest in all {
            match rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
                Some((expression, _)) => assert!(accepted(expression), "{manifest}: {expression}"),
                // `cfg_block`: its licence file is the Apache licence.
                None => assert!(rest.contains("\"license_file\":\"LICENSE\""), "{manifest}"),
            }
        }
    }
}
