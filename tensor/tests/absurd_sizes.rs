//! Sizes, steps and options beyond any memory: a typed error or the right result, never an out-of-bounds address, an
//! overflow or an allocation that aborts the process.

use t4a_tensor::index::{Span, cat, slice_assign};
use t4a_tensor::kernels::fold::Sum;
use t4a_tensor::layout::MAX_NUMEL;
use t4a_tensor::nn::conv::{ConvOptions, conv, conv_transpose, conv_weight, conv_x};
use t4a_tensor::nn::pool::{
    PoolOptions, adaptive_mean_pool, max_pool, max_pool_vjp, max_pool_with_indices, mean_pool,
};
use t4a_tensor::reduce::reduce;
use t4a_tensor::{Layout, Tensor, TensorError, create};

fn ones(shape: &[usize]) -> Tensor<f32> {
    Tensor::ones(shape).unwrap()
}

fn overflows<T>(result: Result<T, TensorError>) -> bool {
    matches!(result, Err(TensorError::SizeOverflow { .. }))
}

#[test]
fn windows_over_repeated_elements_are_counted() {
    let x = ones(&[1, 4]).expand(&[1 << 40, 4]).unwrap();
    assert!(overflows(x.unfold(0, 1 << 39, 1)));
    // The largest representable views can be read, sliced and written.
    let x = ones(&[1, 4]).expand(&[1 << 20, 4]).unwrap();
    let w = x.unfold(0, 1 << 19, 1).unwrap().flip(&[1]).unwrap();
    assert_eq!(w.shape(), [(1 << 19) + 1, 4, 1 << 19]);
    let part = w.slice_axis(2, 7, 3, 1).unwrap().slice_axis(0, 5, 2, 1).unwrap();
    assert_eq!(part.to_vec().unwrap(), [1.0; 24]);
    let span = |len| Span { start: 1, len, step: 1 };
    let written = slice_assign(part, &[span(1), span(1), span(1)], &ones(&[1, 1, 1])).unwrap();
    assert_eq!(written.to_vec().unwrap(), [1.0; 24]);
}

#[test]
fn more_elements_than_can_be_counted_are_refused() {
    assert!(overflows(ones(&[1]).expand(&[MAX_NUMEL + 1])));
    assert!(overflows(ones(&[1]).expand(&[1 << 52])));
    assert!(overflows(Layout::contiguous("test", &[0, 2, 1 << 63], 4)));
    assert!(overflows(Tensor::<f32>::zeros(&[1 << 63, 0])));
    assert!(overflows(create::eye::<f32>(0, usize::MAX)));
    assert!(overflows(create::eye::<f32>(usize::MAX, usize::MAX)));
    let empty = Tensor::<u8>::zeros(&[0, 1 << 47]).unwrap();
    assert!(overflows(cat(&[empty.clone(), empty.clone(), empty], 1)));
    let empty = Tensor::<u8>::zeros(&[0, 2, 1 << 46]).unwrap();
    assert_eq!(empty.flip(&[0, 1, 2]).unwrap().shape(), [0, 2, 1 << 46]);
}

#[test]
fn a_long_sum_needs_no_memory_for_its_parts() {
    let x = Tensor::<u8>::ones(&[1]).unwrap().expand(&[1 << 27]).unwrap();
    // 2²⁷ modulo 256.
    assert_eq!(reduce(Sum, &x, &[0]).unwrap().to_vec().unwrap(), [0]);
    let x = Tensor::<u32>::ones(&[1]).unwrap().expand(&[(1 << 26) + 3]).unwrap();
    assert_eq!(reduce(Sum, &x, &[0]).unwrap().to_vec().unwrap(), [(1 << 26) + 3]);
}

/// Options for two spatial axes.
fn options(stride: [usize; 2], padding: [usize; 2], groups: usize) -> ConvOptions {
    let mut options = ConvOptions::new(2).padded(&padding);
    options.stride = stride.as_slice().into();
    options.groups = groups;
    options
}

#[test]
fn depthwise_convolutions_over_far_padding() {
    let far = [49477, 93208683194765];
    let options = options(far, far, 2);
    let (x, w) = (ones(&[1, 2, 1, 1]), ones(&[2, 1, 2, 2]));
    let y = conv(&x, &w, None, &options).unwrap();
    // Two positions along either axis: the window at the first one begins `far` before x, and the
    // window at the second one at x.
    assert_eq!(y.shape(), [1, 2, 2, 2]);
    assert_eq!(y.to_vec().unwrap(), [0., 0., 0., 1., 0., 0., 0., 1.]);
    let dx = conv_x(&[1, 2, 1, 1], &w, &ones(&[1, 2, 2, 2]), &options).unwrap();
    assert_eq!(dx.to_vec().unwrap(), [1.0; 2]);
    let dw = conv_weight(&x, &[2, 1, 2, 2], &ones(&[1, 2, 2, 2]), &options).unwrap();
    assert_eq!(dw.to_vec().unwrap(), [1., 0., 0., 0., 1., 0., 0., 0.]);
}

#[test]
fn a_depthwise_cotangent_with_long_strides_takes_the_memory_of_its_result() {
    let step = 1 << 17;
    let wide = options([1, step], [0, 0], 2);
    let (w, dy) = (ones(&[2, 1, 1, 1]), ones(&[1, 2, 1, 2]));
    let dx = conv_x(&[1, 2, 1, step + 1], &w, &dy, &wide).unwrap().to_vec().unwrap();
    let at = |i: usize| [0, step, step + 1, 2 * step + 1].contains(&i);
    assert!(dx.iter().enumerate().all(|(i, &v)| v == if at(i) { 1.0 } else { 0.0 }));
    let square = options([step, step], [0, 0], 2);
    let dx = conv_x(&[1, 2, 1, 1], &w, &ones(&[1, 2, 1, 1]), &square).unwrap();
    assert_eq!(dx.to_vec().unwrap(), [1.0; 2]);
}

#[test]
fn convolutions_whose_sizes_overflow() {
    let (x, w) = (ones(&[1, 2, 1, 1]), ones(&[2, 1, 2, 2]));
    for padding in [1 << 47, 1 << 48, 1 << 62, usize::MAX] {
        let result = conv(&x, &w, None, &options([1, 1], [padding; 2], 2));
        assert!(result.is_err(), "padding {padding}");
    }
    let nine = ones(&[1, 2, 3, 3]);
    for stride in [1 << 47, 1 << 62, usize::MAX] {
        let result = conv_transpose(&nine, &w, None, &[0; 2], &options([stride; 2], [0; 2], 2));
        assert!(result.is_err(), "stride {stride}");
    }
    let empty = Tensor::<f32>::zeros(&[0, 2, 1, 1]).unwrap();
    assert!(conv(&empty, &w, None, &options([1, 1], [1 << 47; 2], 2)).is_err());
    assert!(conv_weight(&x, &[2, usize::MAX, 2, 2], &x, &options([1, 1], [0; 2], 2)).is_err());
}

#[test]
fn pools_over_far_padding_and_with_many_results() {
    let x = Tensor::from_vec(vec![1.0f32, 3.0, 2.0, -1.0], &[1, 1, 2, 2]).unwrap();
    let far = 1 << 40;
    let options = PoolOptions {
        window: [2 * far + 1; 2],
        stride: [far; 2],
        padding: [far; 2],
        ..PoolOptions::new([1; 2])
    };
    assert_eq!(max_pool(&x, &options).unwrap().to_vec().unwrap(), [3.0]);
    let (y, at) = max_pool_with_indices(&x, &options).unwrap();
    assert_eq!((y.to_vec().unwrap(), at.to_vec().unwrap()), (vec![3.0], vec![1]));
    assert_eq!(mean_pool(&x, &options, false).unwrap().to_vec().unwrap(), [1.25]);
    let places = Tensor::full(&[1, 1, 2, 2], 0).unwrap();
    assert!(max_pool_vjp(&[usize::MAX, 2, 1, 1], &x, &places).is_err());
    assert!(overflows(adaptive_mean_pool(&x, [1 << 40, 1 << 40])));
    assert!(adaptive_mean_pool(&x, [1 << 46, 1]).is_err());
    let none = Tensor::<f32>::zeros(&[0, 1, 2, 2]).unwrap();
    assert_eq!(adaptive_mean_pool(&none, [1 << 46, 1]).unwrap().shape(), [0, 1, 1 << 46, 1]);
}

#[test]
fn a_far_pool_agrees_with_a_near_one() {
    // The same windows, and the same among so many others that the windows are evaluated one by one.
    let x = Tensor::from_fn(&[2, 3, 5, 7], |i| ((i * 37) % 29) as f32).unwrap();
    for (window, padding) in [([3, 2], [1, 1]), ([5, 9], [2, 4]), ([2, 2], [0, 1])] {
        let near = PoolOptions { window, padding, stride: [2, 3], ..PoolOptions::new(window) };
        let (values, places) = max_pool_with_indices(&x, &near).unwrap();
        let far = PoolOptions { padding: [padding[0], padding[1] + 3 * 5000], ..near };
        let (more, at) = max_pool_with_indices(&x, &far).unwrap();
        let cols = values.shape()[3];
        let part = more.slice_axis(3, 5000, cols, 1).unwrap();
        assert_eq!(part.to_vec().unwrap(), values.to_vec().unwrap());
        assert_eq!(max_pool(&x, &far).unwrap().to_vec().unwrap(), more.to_vec().unwrap());
        let at = at.slice_axis(3, 5000, cols, 1).unwrap();
        assert_eq!(at.to_vec().unwrap(), places.to_vec().unwrap());
        assert_eq!(more.get(&[0, 0, 0, 0]), Some(f32::NEG_INFINITY));
    }
}
