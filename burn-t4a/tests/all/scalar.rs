//! `ext::scalar` returns elements without rounding.

use burn_t4a::ext::scalar;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_tensor::{Bool, DType, Int, Tensor};

#[test]
fn elements_keep_their_precision() {
    let x = 1.0 + f64::EPSILON;
    let float = Tensor::<BurnT4a, 2>::from_data([[x]], (&T4aDevice, DType::F64));
    assert_eq!(scalar(&float), x);
    // Not representable in f64.
    let n = (1i64 << 53) + 1;
    let int = Tensor::<BurnT4a, 1, Int>::from_data([n], (&T4aDevice, DType::I64));
    assert_eq!(scalar(&int), n);
    assert!(scalar(&Tensor::<BurnT4a, 1, Bool>::from_data([true], &T4aDevice)));
}

#[test]
#[should_panic(expected = "one element is required, the shape is Shape")]
fn more_elements_are_refused() {
    scalar(&Tensor::<BurnT4a, 1>::zeros([2], &T4aDevice));
}
