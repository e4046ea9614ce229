//! Models saved and loaded: the weights are bitwise equal, and a damaged file is an error.

use burn::module::Module;
use burn::record::{
    BinBytesRecorder, BinFileRecorder, FullPrecisionSettings, HalfPrecisionSettings,
    NamedMpkFileRecorder, Recorder, RecorderError,
};
use burn_flex::Flex;
use burn_t4a::BurnT4a;

use crate::training::{Mlp, load, start};

fn scratch(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("burn-t4a-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

#[test]
fn every_format_restores_the_weights() {
    let device = Default::default();
    let model = load::<BurnT4a>(&start());
    let weights = model.weights();
    let mpk = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    let bin = BinFileRecorder::<FullPrecisionSettings>::new();
    model.clone().save_file(scratch("a"), &mpk).unwrap();
    model.clone().save_file(scratch("b"), &bin).unwrap();
    let a = Mlp::<BurnT4a>::new(&device).load_file(scratch("a"), &mpk, &device).unwrap();
    let b = Mlp::<BurnT4a>::new(&device).load_file(scratch("b"), &bin, &device).unwrap();
    assert_eq!(a.weights(), weights);
    assert_eq!(b.weights(), weights);
    // Flex reads files written by BurnT4a.
    let flex = Mlp::<Flex>::new(&Default::default());
    let flex = flex.load_file(scratch("a"), &mpk, &Default::default()).unwrap();
    assert_eq!(flex.weights(), weights);
    // Half precision rounds each weight once.
    let half = BinBytesRecorder::<HalfPrecisionSettings>::new();
    let bytes = half.record(model.into_record(), ()).unwrap();
    let rounded = Mlp::<BurnT4a>::new(&device).load_record(half.load(bytes, &device).unwrap());
    for (rounded, exact) in rounded.weights().iter().zip(&weights) {
        for (x, y) in rounded.iter::<f32>().zip(exact.iter::<f32>()) {
            assert_eq!(x, half::f16::from_f32(y).to_f32());
        }
    }
}

#[test]
fn a_truncated_file_is_an_error() {
    let device = Default::default();
    let model = load::<BurnT4a>(&start());
    let mpk = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    model.save_file(scratch("whole"), &mpk).unwrap();
    let whole = std::fs::read(scratch("whole.mpk")).unwrap();
    let load = |name| Mlp::<BurnT4a>::new(&device).load_file(scratch(name), &mpk, &device);
    assert!(load("whole").is_ok());
    for len in [0, 1, 17, whole.len() / 2, whole.len() - 1] {
        std::fs::write(scratch("part.mpk"), &whole[..len]).unwrap();
        assert!(load("part").is_err(), "{len} of {} bytes were accepted", whole.len());
    }
    assert!(matches!(load("missing"), Err(RecorderError::FileNotFound(_))));
}
