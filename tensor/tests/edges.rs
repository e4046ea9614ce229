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
    // Above the midpoint of two bfloat16 numbers by less than the precision of f64.
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
    // Representable values are exact, and neighbours of midpoints in binary16 round to the nearest.
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

#[test]
fn hypotenuses_neither_overflow_nor_vanish() {
    let pairs = [
        (3.0, 4.0, 5.0),
        (-3e200, 4e200, 5e200),
        (3.0 * f64::MIN_POSITIVE, -4.0 * f64::MIN_POSITIVE, 5.0 * f64::MIN_POSITIVE),
        (0.0, -2.5, 2.5),
        (0.0, 0.0, 0.0),
        (f64::MAX, 1.0, f64::MAX),
        (f64::MAX, f64::MAX, f64::INFINITY),
        (f64::NEG_INFINITY, f64::NAN, f64::INFINITY),
        (f64::NAN, 1.0, f64::NAN),
    ];
    for (a, b, want) in pairs {
        for (a, b) in [(a, b), (b, a)] {
            let one = |x: f64| AnyTensor::from(Tensor::from_vec(vec![x], &[1]).unwrap());
            let got = cast(one(a).hypot(one(b)).unwrap(), DType::F64);
            let close = got == want || (got / want - 1.0).abs() < 1e-15;
            assert!(close || (got.is_nan() && want.is_nan()), "{a} {b}: {got}");
        }
    }
    for (dtype, x, tolerance) in
        [(DType::F32, 1e30, 1e-6), (DType::F32, 1e-30, 1e-6), (DType::F16, 4e4, 1e-3)]
    {
        let x = AnyTensor::from(Tensor::from_vec(vec![x], &[1]).unwrap()).cast(dtype).unwrap();
        let (side, got) =
            (cast(x.clone(), DType::F64), cast(x.clone().hypot(x).unwrap(), DType::F64));
        assert!((got / (side * 2f64.sqrt()) - 1.0).abs() < tolerance, "{dtype} {side}: {got}");
    }
}

#[test]
fn rounding_away_and_signs_at_their_edges() {
    let below = 0.5f64.next_down();
    let x =
        [0.5, -0.5, 1.5, 2.5, -2.5, below, -below, 1e300, f64::NEG_INFINITY, 4503599627370495.5];
    for x in x {
        let one = AnyTensor::from(Tensor::from_vec(vec![x], &[1]).unwrap());
        assert_eq!(cast(one.round_away().unwrap(), DType::F64), x.round(), "{x}");
    }
    let x = Tensor::from_vec(vec![f32::NAN, -0.0, 7.0, f32::NEG_INFINITY], &[4]).unwrap();
    let signs = AnyTensor::from(x).sign_or_zero().unwrap().into_typed::<f32>().unwrap();
    assert_eq!(signs.to_vec().unwrap(), [0.0, 0.0, 1.0, -1.0]);
}
