//! Runs the complete program, from data to images, for two epochs.

use std::process::Command;

#[test]
fn two_epochs_learn_digits() {
    let run = Command::new(env!("CARGO_BIN_EXE_digits"))
        .arg("--quick")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}\n{}", String::from_utf8_lossy(&run.stderr));
    let accuracy = |net: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(&format!("{net} on t4a:")));
        let percent = line.and_then(|line| line.split_whitespace().nth(3));
        percent.and_then(|percent| percent.parse().ok()).expect("its accuracy is printed")
    };
    for net in ["convolution", "perceptron"] {
        assert!(accuracy(net) > 80.0, "{text}");
    }
}
