//! Kernels by themselves: tiles, sizes, element types.

use burn::backend::Wgpu;
use burn::tensor::{DType, Tensor};
use burn_t4a::ext::einsum::{MaxPlus, semiring_einsum};
use t4a_cube::{CubeError, Operand, Semiring, Tile, product};

use super::{assert_close, noise, numbers, steps, tensor};

fn operand(x: Tensor<Wgpu, 3>) -> Operand {
    let x = x.into_primitive().tensor();
    Operand {
        handle: x.handle.clone(),
        shape: x.meta.shape().to_vec(),
        strides: x.meta.strides().to_vec(),
        dtype: x.dtype.into(),
    }
}

#[test]
fn what_does_not_fit_is_refused_before_a_launch() {
    let x = tensor::<Wgpu, 3>(&noise(24, 1), [2, 3, 4]);
    let client = x.clone().into_primitive().tensor().client;
    let half = x.clone().cast(DType::F16).swap_dims(1, 2);
    let run = |a: &Tensor<Wgpu, 3>, b: &Tensor<Wgpu, 3>, tile: Option<Tile>| {
        let operands = [operand(a.clone()), operand(b.clone())];
        product(&client, Semiring::MaxPlus, operands, true, tile).map(|_| ())
    };
    let turned = x.clone().swap_dims(1, 2);
    assert_eq!(run(&x, &turned, None), Ok(()));
    assert!(matches!(run(&x, &x, None), Err(CubeError::Sizes { .. })));
    assert!(matches!(run(&x, &half, None), Err(CubeError::DType { .. })));
    let tiles = [
        ([16, 16, 16], [3, 2]),
        ([16, 16, 0], [2, 2]),
        ([16, 16, 1], [1, 1]),
        ([256, 256, 64], [8, 8]),
    ];
    for (sizes, unit) in tiles {
        let error = run(&x, &turned, Some(Tile { sizes, unit }));
        assert!(matches!(error, Err(CubeError::Tile { .. })), "{sizes:?} {error:?}");
    }
    let mut far = operand(x.clone());
    far.strides[0] = 1 << 31;
    let error = product(&client, Semiring::MaxPlus, [far, operand(turned)], false, None);
    assert!(matches!(error.map(|_| ()), Err(CubeError::TooLarge { .. })));
}

/// Half precision in and out, `f32` in between: one rounding.
#[test]
fn products_of_half_precision_round_once() {
    let [m, k, n] = [17, 300, 18];
    let run = |a: Vec<f32>, b: Vec<f32>| {
        let a = tensor::<Wgpu, 2>(&a, [m, k]).cast(DType::F16);
        let b = tensor::<Wgpu, 2>(&b, [k, n]).cast(DType::F16);
        let y: Tensor<Wgpu, 2> = semiring_einsum::<MaxPlus, _, _>("ij,jk->ik", [&a, &b]).unwrap();
        assert_eq!(y.dtype(), DType::F16);
        numbers(y)
    };
    let (a, b) = (steps(m * k, 1), steps(k * n, 2));
    let term = |i: usize, j: usize, t: usize| a[i * k + t] + b[t * n + j];
    let best = |e: usize| (0..k).map(|t| term(e / n, e % n, t)).fold(f32::NEG_INFINITY, f32::max);
    let expected: Vec<f32> = (0..m * n).map(best).collect();
    assert_close(&run(a.clone(), b.clone()), &expected, 0.0, "max plus");
}
