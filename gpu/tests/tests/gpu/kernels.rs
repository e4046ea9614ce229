//! Kernels without Burn: tiles, sizes, element types.

use burn::tensor::{DType, Tensor, TensorData};
use burn_cubecl::tensor::CubeTensor;
use burn_t4a::ext::einsum::{MaxPlus, semiring_einsum};
use burn_t4a_gpu_tests::Runtime;
use t4a_cube::{CubeError, Operand, Semiring, Tile, product};

use super::{Card, noise, tensor};

pub(super) fn operand(x: Tensor<Card, 3>) -> Operand {
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
        ([16, 16, 0], [2, 4]),
        ([16, 16, 1], [1, 4]),
        ([64, 64, 16], [2, 2]),
        ([512, 512, 64], [16, 16]),
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

/// Sum and index of its first term, by a loop; a term that is NaN is ignored, and NaN in an operand is the sum.
fn by_loop(of: Semiring, a: &[f32], b: &[f32]) -> (f32, i32) {
    let (mut sum, mut place) = (of.zero() as f32, a.len() as i32);
    for (k, (&a, &b)) in a.iter().zip(b).enumerate() {
        if of != Semiring::Standard && (a.is_nan() || b.is_nan()) {
            return (f32::NAN, k as i32);
        }
        let (term, wins) = match of {
            Semiring::Standard => (sum + a * b, true),
            Semiring::MaxPlus => (a + b, a + b > sum),
            Semiring::MinPlus => (a + b, a + b < sum),
            Semiring::MaxMul => (a * b, a * b > sum),
            Semiring::MinMul => (a * b, a * b < sum),
            _ => (a.min(b), a.min(b) > sum),
        };
        if wins {
            (sum, place) = (term, k as i32);
        }
    }
    (sum, place)
}

/// Every tile, operands in both orientations, in whole vectors and not, with infinities and NaN.
#[test]
fn products_by_all_tiles() {
    let semirings = [
        Semiring::Standard,
        Semiring::MaxPlus,
        Semiring::MinPlus,
        Semiring::MaxMul,
        Semiring::MinMul,
        Semiring::MaxMin,
    ];
    let mut case = 0;
    for [batch, m, k, n] in [[2, 70, 37, 131], [1, 132, 72, 132], [3, 5, 3, 4]] {
        for orientation in 0..4 {
            for tile in [Tile::HUGE, Tile::WIDE, Tile::LARGE, Tile::SMALL] {
                case += 1;
                let of = semirings[(case + case / 4) % semirings.len()];
                let operand_of = |rows: usize, columns: usize, turned: bool| {
                    let mut x = super::steps(batch * rows * columns, case + rows);
                    if of == Semiring::MinMul {
                        x[rows] = f32::INFINITY;
                        x[rows / 2] = f32::NAN;
                    }
                    if matches!(of, Semiring::MaxMul | Semiring::MinMul) {
                        x.iter_mut().for_each(|x| *x = x.abs());
                    } else if of != Semiring::Standard {
                        x[rows] = f32::NEG_INFINITY;
                        x[rows / 2] = f32::NAN;
                    }
                    match turned {
                        true => tensor::<Card, 3>(&x, [batch, columns, rows]).swap_dims(1, 2),
                        false => tensor::<Card, 3>(&x, [batch, rows, columns]),
                    }
                };
                let a = operand_of(m, k, orientation % 2 == 1);
                let b = operand_of(k, n, orientation >= 2);
                let beside = a.clone().into_primitive().tensor();
                let operands = [operand(a.clone()), operand(b.clone())];
                let found = match product(&beside.client, of, operands, true, Some(tile)) {
                    // Software Vulkan has 32 KiB of shared memory.
                    Err(CubeError::Tile { .. }) if !cfg!(feature = "cuda") => continue,
                    found => found.unwrap(),
                };
                let values = floats(&beside, found.values);
                let places = found.places.map(|x| integers(&beside, x));
                let (a, b) = (super::numbers(a), super::numbers(b.swap_dims(1, 2)));
                let mut expected = Vec::new();
                for (i, row) in a.chunks(k).enumerate() {
                    let columns = b[i / m * n * k..][..n * k].chunks(k);
                    expected.extend(columns.map(|column| by_loop(of, row, column)));
                }
                let name = format!("{of:?} {tile:?} {batch} {m} {k} {n} {orientation}");
                let sums: Vec<f32> = expected.iter().map(|x| x.0).collect();
                super::assert_close(&values, &sums, 1e-6, &name);
                if let Some(places) = places {
                    let expected: Vec<i32> = expected.iter().map(|x| x.1).collect();
                    assert_eq!(places, expected, "{name}");
                }
            }
        }
    }
}

fn read(beside: &CubeTensor<Runtime>, x: Operand) -> Vec<u8> {
    beside.client.read_one(x.handle).unwrap().to_vec()
}

fn floats(beside: &CubeTensor<Runtime>, x: Operand) -> Vec<f32> {
    let bytes = read(beside, x);
    bytes.chunks(4).map(|x| f32::from_ne_bytes(x.try_into().unwrap())).collect()
}

fn integers(beside: &CubeTensor<Runtime>, x: Operand) -> Vec<i32> {
    let bytes = read(beside, x);
    bytes.chunks(4).map(|x| i32::from_ne_bytes(x.try_into().unwrap())).collect()
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
