//! The line of Burn, as `cfg(burn_line)` for sources that several lines share.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(burn_line, values(\"0.21\", \"0.22\"))");
    println!("cargo::rustc-cfg=burn_line=\"0.22\"");
}
