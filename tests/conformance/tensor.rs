//! Memory behaviour visible to users: import and export without copies, boolean stores, views that remain views.

use burn::tensor::{Int, Tensor, TensorData, TensorPrimitive, s};
use burn_backend::DType;
use burn_t4a::{BurnT4a, T4aTensor};

type B = BurnT4a;

fn primitive<const D: usize>(x: &Tensor<B, D>) -> T4aTensor {
    match x.clone().into_primitive() {
        TensorPrimitive::Float(x) => x,
        TensorPrimitive::QFloat(_) => unreachable!(),
    }
}

fn address<const D: usize>(x: &Tensor<B, D>) -> *const u8 {
    primitive(x).any().buffer().as_ptr()
}

#[test]
fn data_enters_and_leaves_without_a_copy() {
    let data = TensorData::new(vec![1.0f32; 1 << 16], [256, 256]);
    let ptr = data.as_bytes().as_ptr();
    let x = Tensor::<B, 2>::from_data(data, &Default::default());
    assert_eq!(address(&x), ptr);
    assert_eq!(x.into_data().as_bytes().as_ptr(), ptr);
}

#[test]
fn views_share_the_memory() {
    let x = Tensor::<B, 3>::zeros([4, 5, 6], &Default::default());
    let ptr = address(&x);
    assert_eq!(address(&x.clone().swap_dims(0, 2)), ptr);
    assert_eq!(address(&x.clone().slice(s![1..3, ..;-1, ..;2])), ptr);
    assert_eq!(address(&x.clone().flip([0, 1])), ptr);
    assert_eq!(address(&x.clone().reshape([20, 6])), ptr);
    assert_eq!(address(&x.clone().unsqueeze::<4>().expand([3, 4, 5, 6])), ptr);
    assert_eq!(address(&x.unfold::<4, _>(2, 3, 1)), ptr);
}

#[test]
fn sixty_four_bit_integers_survive() {
    let values = [i64::MIN, i64::MAX, (1 << 53) + 1];
    let x =
        Tensor::<B, 1, Int>::from_data(TensorData::from(values), (&Default::default(), DType::I64));
    assert_eq!(x.into_data(), TensorData::from(values));
}
