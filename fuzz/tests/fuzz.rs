//! Short runs of every target: random bytes, and a fixed number of fixed cases that also run under Miri. An allocator
//! measures the memory held by a thread.

use t4a_fuzz::input::Random;
use t4a_fuzz::memory::{Counting, measured};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Maximum memory in bytes of a case of a few hundred bytes.
const MOST_BYTES: usize = 64 << 20;

/// Runs a target and checks that its memory stays below [`MOST_BYTES`].
fn bounded(target: fn(&[u8]), bytes: &[u8]) {
    let ((), most) = measured(|| target(bytes));
    assert!(most < MOST_BYTES, "a case takes {most} bytes");
}

fn fixed(target: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let cases = if cfg!(miri) { 40 } else { 4000 };
    for seed in 0..cases {
        let bytes = Random::new(seed).bytes(24 + (seed as usize * 7) % 100);
        if std::panic::catch_unwind(|| target(&bytes)).is_err() {
            panic!("seed {seed}");
        }
    }
}

macro_rules! targets {
    ($($name:ident $run:expr;)*) => {$(
        mod $name {
            #[test]
            fn fixed() {
                super::fixed($run);
            }

            #[test]
            #[cfg(not(miri))]
            fn random() {
                bolero::check!().with_max_len(160).for_each(|bytes: &[u8]| ($run)(bytes));
            }
        }
    )*};
}

targets! {
    views t4a_fuzz::views::run;
    indices t4a_fuzz::indices::run;
    windows t4a_fuzz::windows::run;
    einsum t4a_fuzz::einsum::run;
    messages |bytes| super::bounded(t4a_fuzz::messages::run, bytes);
    stored |bytes| super::bounded(t4a_fuzz::stored::run, bytes);
}
