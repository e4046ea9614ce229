//! Calls on nested tapes. Tests for all versions of Burn are in `face/ext/tests/contractions.rs`.

use burn_autodiff::Autodiff;
use burn_t4a::BurnT4a;
use burn_t4a::ext::ExtError;
use burn_t4a::ext::einsum::{EinsumError, einsum};

use super::cases::{f64s, numbers, tight_chain};

/// A tape with a node for every step keeps all intermediates, so plans are not sliced.
#[test]
fn a_tape_over_a_tape_has_no_slices() {
    type Twice = Autodiff<Autodiff<BurnT4a>>;
    let x = f64s::<Twice, 2>(&numbers(64, 1), [8, 8]).require_grad();
    let sliced = einsum::<_, 2>(tight_chain(), [&x, &x, &x]);
    assert!(matches!(sliced, Err(ExtError::Einsum(EinsumError::NotSliced { .. }))));
    let inner = x.inner();
    assert!(einsum::<_, 2>(tight_chain(), [&inner, &inner, &inner]).is_ok());
}
