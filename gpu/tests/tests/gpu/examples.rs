//! Examples of the repository on the GPU backend, in `f32`: `cargo test -p burn-t4a-gpu-tests examples -- --nocapture` prints
//! their output.

use burn::tensor::DType;

use super::Card;

#[allow(dead_code, reason = "`main` runs on the engine")]
#[path = "../../../../examples/ising.rs"]
mod ising;
#[allow(dead_code, reason = "`main` runs on the engine")]
#[path = "../../../../examples/viterbi.rs"]
mod viterbi;

#[test]
fn ising_on_a_torus() {
    ising::run::<Card>(DType::F32, 1e-3).unwrap();
}

#[test]
fn viterbi_path() {
    viterbi::run::<Card>(DType::F32, 1e-5).unwrap();
}
