//! Default dtypes. They are fixed at first use in a process, so the test re-executes itself in a new process.

use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Distribution, Int, Tensor, set_default_dtypes};
use burn_backend::{BoolStore, DType, FloatDType, IntDType};
use burn_t4a::BurnT4a;

type B = BurnT4a;

#[test]
fn default_dtypes_are_those_set() {
    const CHILD: &str = "BURN_T4A_SETTINGS_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "settings::default_dtypes_are_those_set", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let device = Default::default();
    set_default_dtypes::<B>(&device, FloatDType::F64, IntDType::I64).unwrap();
    assert!(set_default_dtypes::<B>(&device, FloatDType::F16, IntDType::I8).is_err());
    let x = Tensor::<B, 2>::zeros([2, 2], &device);
    assert_eq!(x.dtype(), DType::F64);
    assert_eq!(Tensor::<B, 1>::from_data([1.5f32], &device).dtype(), DType::F64);
    assert_eq!(Tensor::<B, 1>::random([3], Distribution::Default, &device).dtype(), DType::F64);
    assert_eq!(Tensor::<B, 1, Int>::arange(0..4, &device).dtype(), DType::I64);
    assert_eq!(x.clone().argmax(1).dtype(), DType::I64);
    assert_eq!(x.clone().int().dtype(), DType::I64);
    assert_eq!(x.clone().equal_elem(0.0).int().dtype(), DType::I64);
    assert_eq!(x.equal_elem(0.0).float().dtype(), DType::F64);
}

#[test]
fn every_dtype_is_supported() {
    use crate::material::{FLOATS, INTS};
    let device = Default::default();
    let stores = [BoolStore::Native, BoolStore::U8, BoolStore::U32].map(DType::Bool);
    for dtype in FLOATS.into_iter().chain(INTS).chain(stores) {
        assert!(B::supports_dtype(&device, dtype), "{dtype:?}");
    }
    assert!(!B::supports_dtype(&device, DType::Flex32));
    assert_eq!(B::name(&device), "t4a");
    assert!(!B::ad_enabled(&device));
    assert!(B::sync(&device).is_ok());
}

#[test]
fn a_dtype_is_kept_through_operations_whatever_the_defaults() {
    let device = Default::default();
    for dtype in crate::material::FLOATS {
        let x = Tensor::<B, 2>::ones([2, 3], (&device, dtype));
        let y = x.clone().exp().matmul(x.clone().transpose()).sum_dim(1).sqrt() / 3.0;
        assert_eq!(y.dtype(), dtype);
    }
    let i = Tensor::<B, 1, Int>::arange(0..5, (&device, DType::U8));
    assert_eq!((i.clone() * 2 + i.clone()).dtype(), DType::U8);
    let b = Tensor::<B, 1, Bool>::from_data([true, false], (&device, DType::Bool(BoolStore::U32)));
    assert_eq!(b.bool_not().flip([0]).dtype(), DType::Bool(BoolStore::U32));
}
