//! Numbers at the edges of their types.

use t4a_algebra::{Numeric, bf16, f16};
use t4a_tensor::any::Number;
use t4a_tensor::random::{Distribution, Generator};
use t4a_tensor::{AnyTensor, DType, Tensor, TensorError};

/// Element 0 of a tensor after a cast, as `f64`.
fn cast(x: impl Into<AnyTensor>, dtype: DType) -> f64 {
    let x = x.into().cast(dtype).and_then(|x| x.cast(DType::F64)).unwrap();
    x.typed::<f64>().unwrap().to_vec().unwrap()[0]
}

#[test]
fn wide_integers_round_once_into_sixteen_bits() {
    // Just above the midpoint of two bfloat16 numbers, and nearer to it than an f64 can tell.
    let (low, high) = (2f64.powi(62), 2f64.powi(62) + 2f64.powi(55));
    let above = (1i64 << 62) + (1 << 54) + 1;
    let one = |v: i64| Tensor::from_vec(vec![v], &[1]).unwrap();
    assert_eq!(cast(one(above), DType::BF16), high);
    assert_eq!(cast(one(-above), DType::BF16), -high);
    assert_eq!(cast(one(above - 1), DType::BF16), low);
    assert_eq!(cast(one(above - 2), DType::BF16), low);
    let unsigned = Tensor::from_vec(vec![above as u64], &[1]).unwrap();
    assert_eq!(cast(unsigned, DType::BF16), high);
    assert_eq!(<bf16 as Numeric>::from_i64(above).to_f64(), high);
    assert_eq!(<f16 as Numeric>::from_i64(i64::MIN), f16::NEG_INFINITY);
    // What fits is exact, and neighbours of midpoints in binary16 go the right way.
    for v in [0i64, 1, -1, 2047, 2049, 2050, 2051, -2051, 65519, 65520] {
        let want = f16::from_f64(v as f64).to_f64();
        assert_eq!(cast(one(v), DType::F16), want, "{v}");
    }
}

#[test]
fn uniform_integers_need_finite_bounds() {
    let generator = Generator::new(1);
    for (low, high) in
        [(f64::NAN, 1.0), (0.0, f64::NAN), (f64::NEG_INFINITY, 1.0), (0.0, f64::INFINITY)]
    {
        let law = Distribution::Uniform(Number::Float(low), Number::Float(high));
        for dtype in [DType::I64, DType::I32, DType::U8, DType::F32] {
            let drawn = AnyTensor::random(&generator, &[4], law, dtype);
            assert!(matches!(drawn, Err(TensorError::Value { .. })), "{low} {high} {dtype}");
        }
    }
}
