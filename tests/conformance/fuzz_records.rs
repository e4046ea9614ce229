//! Saved modules with modified bytes: the outcome is an error or a module.
//!
//! The format is MessagePack: Burn's raw binary recorder trusts any length that it reads and allocates that much memory
//! before the backend is called.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::record::{FullPrecisionSettings, HalfPrecisionSettings, NamedMpkBytesRecorder, Recorder};
use burn::tensor::Tensor;
use burn_t4a::BurnT4a;

use t4a_fuzz::input::Input;

type B = BurnT4a;

fn saved(half: bool) -> &'static [u8] {
    static SAVED: [OnceLock<Vec<u8>>; 2] = [const { OnceLock::new() }; 2];
    SAVED[usize::from(half)].get_or_init(|| {
        let record = model().into_record();
        let bytes = match half {
            true => NamedMpkBytesRecorder::<HalfPrecisionSettings>::default().record(record, ()),
            false => NamedMpkBytesRecorder::<FullPrecisionSettings>::default().record(record, ()),
        };
        bytes.expect("a record of a small module")
    })
}

fn model() -> Linear<B> {
    LinearConfig::new(3, 2).init(&Default::default())
}

/// Runs one case.
fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let half = input.once_in(2);
    let mut record = saved(half).to_vec();
    for _ in 0..input.below(6) {
        let at = (input.byte() as usize | (input.byte() as usize) << 8) % record.len();
        record[at] = input.byte();
    }
    if input.once_in(8) {
        record.truncate(input.byte() as usize);
    }
    let device = Default::default();
    // Burn's methods cannot return the errors of a backend; these are panics with a message.
    let result = catch_unwind(AssertUnwindSafe(|| {
        let loaded = match half {
            true => NamedMpkBytesRecorder::<HalfPrecisionSettings>::default().load(record, &device),
            false => {
                NamedMpkBytesRecorder::<FullPrecisionSettings>::default().load(record, &device)
            }
        };
        loaded.ok().map(|record| model().load_record(record))
    }));
    if let Ok(Some(model)) = result {
        // A loaded module can be used; sizes that do not fit are panics with a message.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let y = model.forward(Tensor::<B, 2>::ones([4, 3], &device));
            y.into_data().bytes.len()
        }));
    }
}

#[test]
fn records_with_exchanged_bytes() {
    bolero::check!().with_max_len(24).for_each(|bytes: &[u8]| run(bytes));
}
