//! Kernels without Burn: tiles, sizes, element types.

use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::einsum::{MaxPlus, semiring_einsum};
use t4a_cube::{CubeError, Operand, Semiring, Tile, product};

use super::{Card, noise, tensor};

fn operand(x: Tensor<Card, 3>) -> Operand {
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
    let x = tensor::<Card, 3>(&noise(24, 1), [2, 3, 4]);
    let client = x.clone().into_primitive().tensor().client;
    let half = x.clone().cast(DType::F16).swap_dims(1, 2);
    let run = |a: &Tensor<Card, 3>, b: &Tensor<Card, 3>, tile: Option<Tile>| {
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

/// Element types that the device lacks are an error before the launch, which would end its server.
#[test]
fn elements_that_the_device_lacks_are_refused() {
    let data = TensorData::new(vec![1.0f32; 4], [2, 2]).convert_dtype(DType::BF16);
    let x = Tensor::<Card, 2>::from_data(data, (&Default::default(), DType::BF16));
    let client = x.clone().into_primitive().tensor().client;
    let product = semiring_einsum::<MaxPlus, Card, 2>("ij,jk->ik", [&x, &x]);
    match t4a_cube::supports(&client, DType::BF16.into()) {
        true => drop(product.unwrap()),
        false => assert!(product.unwrap_err().to_string().contains("bf16")),
    }
}
