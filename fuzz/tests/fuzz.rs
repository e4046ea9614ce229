//! Every target for a short while: random bytes, and a fixed number of fixed ones that also run
//! under Miri.

use t4a_fuzz::input::Random;

fn fixed(target: fn(&[u8])) {
    let cases = if cfg!(miri) { 40 } else { 4000 };
    for seed in 0..cases {
        let bytes = Random::new(seed).bytes(24 + (seed as usize * 7) % 100);
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

targets!(views indices windows einsum);
