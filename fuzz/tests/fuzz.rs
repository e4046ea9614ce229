//! Every target for a short while: random bytes, and a fixed number of fixed ones that also run
//! under Miri.

/// Bytes from a seed.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn fixed(target: fn(&[u8])) {
    let cases = if cfg!(miri) { 40 } else { 4000 };
    for seed in 0..cases {
        let bytes = bytes(seed, 24 + (seed as usize * 7) % 100);
        if std::panic::catch_unwind(|| target(&bytes)).is_err() {
            panic!("seed {seed}");
        }
    }
}

macro_rules! targets {
    ($($name:ident)*) => {$(
        mod $name {
            #[test]
            fn fixed() {
                super::fixed(t4a_fuzz::$name::run);
            }

            #[test]
            #[cfg(not(miri))]
            fn random() {
                bolero::check!().with_max_len(160).for_each(|bytes: &[u8]| t4a_fuzz::$name::run(bytes));
            }
        }
    )*};
}

targets!(views indices windows);
