//! A row of the bench: one closure, compiled for each backend, and its operands.

use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor, TensorData};

/// One measured operation: called with `true` it returns its result.
pub(crate) type Run = Box<dyn FnMut(bool) -> Option<TensorData>>;

pub(crate) struct Row {
    pub(crate) name: String,
    /// Largest difference from Flex, relative to the largest element.
    pub(crate) tolerance: f64,
    /// BurnT4a, Flex, NdArray; `None` if the backend has no implementation of its own.
    pub(crate) make: [Option<Box<dyn Fn() -> Run>>; 3],
    /// BurnT4a with drop-in functions.
    pub(crate) fused: Option<Box<dyn Fn() -> Run>>,
    /// Bytes read and written.
    pub(crate) bytes: usize,
}

/// `row!(rows, name, tolerance, |device| { inputs; move || result });`
macro_rules! row {
    ($rows:ident, $name:expr, $tolerance:expr, |$device:ident| $body:block) => {
        $rows.push($crate::rows::Row {
            name: $name.to_string(),
            tolerance: $tolerance,
            make: [
                Some(row!(@side burn_t4a::BurnT4a, $device, $body)),
                Some(row!(@side burn_flex::Flex, $device, $body)),
                Some(row!(@side burn_ndarray::NdArray<f32>, $device, $body)),
            ],
            fused: None,
            bytes: 0,
        })
    };
    ($rows:ident, $name:expr, $tolerance:expr, $bytes:expr, |$device:ident| $body:block) => {
        row!($rows, $name, $tolerance, |$device| $body);
        $rows.last_mut().expect("just pushed").bytes = $bytes;
    };
    ($rows:ident, $name:expr, $tolerance:expr, |$device:ident| $body:block, fused $fused:block) => {
        row!($rows, $name, $tolerance, |$device| $body);
        $rows.last_mut().expect("just pushed").fused =
            Some(row!(@side burn_t4a::BurnT4a, $device, $fused));
    };
    // BurnT4a only: the others have no implementation of their own.
    (alone $rows:ident, $name:expr, $tolerance:expr, |$device:ident| $body:block) => {
        $rows.push($crate::rows::Row {
            name: $name.to_string(),
            tolerance: $tolerance,
            make: [Some(row!(@side burn_t4a::BurnT4a, $device, $body)), None, None],
            fused: None,
            bytes: 0,
        })
    };
    // BurnT4a and Flex.
    (flex $rows:ident, $name:expr, $tolerance:expr, |$device:ident| $body:block) => {
        row!(against $rows, $name, $tolerance, burn_flex::Flex, |$device| $body, $body)
    };
    // BurnT4a and another closure, on a backend, in the place of Flex.
    (against $rows:ident, $name:expr, $tolerance:expr, $B:ty, |$device:ident| $body:block, $peer:block) => {
        row!(alone $rows, $name, $tolerance, |$device| $body);
        $rows.last_mut().expect("just pushed").make[1] = Some(row!(@side $B, $device, $peer));
    };
    (@side $B:ty, $device:ident, $body:block) => {
        Box::new(move || {
            #[allow(dead_code)]
            type B = $B;
            let $device: <B as burn::tensor::backend::BackendTypes>::Device = Default::default();
            #[allow(unused_mut)]
            let mut run = $body;
            Box::new(move |read: bool| {
                let out = std::hint::black_box(run());
                read.then(|| out.into_data())
            }) as $crate::rows::Run
        })
    };
}
pub(crate) use row;

/// Fixed values in −1…1.
pub(crate) fn floats<B: Backend, const D: usize>(
    shape: [usize; D],
    device: &B::Device,
) -> Tensor<B, D> {
    let numel: usize = shape.iter().product();
    let value = |i: usize| {
        let bits = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        bits as f32 / (1u64 << 23) as f32 - 1.0
    };
    let data = TensorData::new((0..numel).map(value).collect::<Vec<f32>>(), shape);
    // A computed tensor, as in the middle of a net, not memory lent by the caller.
    Tensor::from_data(data, device) + 0.0
}

pub(crate) fn whole<B: Backend, const D: usize>(
    shape: [usize; D],
    n: usize,
    device: &B::Device,
) -> Tensor<B, D, Int> {
    let numel: usize = shape.iter().product();
    let values: Vec<i32> = (0..numel).map(|i| ((i * 7919) % n) as i32).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Bytes of a million floats.
pub(crate) const M: usize = 4 << 20;
