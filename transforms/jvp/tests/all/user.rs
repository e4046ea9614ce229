//! Functions on trees, errors, kinks, nesting levels.

use burn::backend::Autodiff;
use burn::tensor::module::{deform_conv2d, max_pool2d};
use burn::tensor::ops::DeformConvOptions;
use burn::tensor::quantization::QuantScheme;
use burn::tensor::{DType, Tensor, TensorData, TensorPrimitive, Transaction, activation};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_jvp::{Jvp, JvpError, JvpTensor, constant, jvp, linearize};

type B = BurnT4a;
type J = Jvp<B>;

fn of<const N: usize>(x: [f64; N]) -> Tensor<B, 1> {
    Tensor::from_data(TensorData::from(x), (&T4aDevice, DType::F64))
}

fn read<const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().convert::<f64>().to_vec().unwrap()
}

/// Tangent of `f` at x along ones.
fn slope<const N: usize>(f: impl Fn(Tensor<J, 1>) -> Tensor<J, 1>, x: [f64; N]) -> Vec<f64> {
    read(jvp(f, of(x), of([1.0; N])).unwrap().1)
}

#[test]
fn trees_go_in_and_out() {
    let x = (of([1.0, 2.0]), vec![of([3.0]), of([4.0])]);
    let v = (of([1.0, 0.0]), vec![of([0.0]), of([1.0])]);
    let f = |(a, b): (Tensor<J, 1>, Vec<Tensor<J, 1>>)| {
        let [p, q]: [Tensor<J, 1>; 2] = b.try_into().unwrap();
        ([a.clone() * p, a * q], ())
    };
    let (([y, z], ()), ([dy, dz], ())) = jvp(f, x, v).unwrap();
    assert_eq!([read(y), read(z)], [[3.0, 6.0], [4.0, 8.0]]);
    assert_eq!([read(dy), read(dz)], [[3.0, 0.0], [5.0, 2.0]]);
}

#[test]
fn a_linear_map_is_applied_many_times() {
    let (y, push) = linearize(|x: Tensor<J, 1>| x.clone() * x, of([2.0, 3.0])).unwrap();
    assert_eq!(read(y), [4.0, 9.0]);
    assert_eq!(read(push(of([1.0, 0.0])).unwrap()), [4.0, 0.0]);
    assert_eq!(read(push(of([0.0, 1.0])).unwrap()), [0.0, 6.0]);
    assert!(matches!(push(of([1.0])), Err(JvpError::Leaves(_))));
}

#[test]
fn every_leaf_that_does_not_fit_is_listed() {
    let f = |x: Vec<Tensor<J, 1>>| -> Tensor<J, 1> { panic!("f runs on {} leaves", x.len()) };
    let single = Tensor::<B, 1>::from_data(TensorData::from([1.0f32]), (&T4aDevice, DType::F32));
    let x = vec![of([1.0]), of([1.0]), of([1.0])];
    let v = vec![of([1.0, 2.0]), of([1.0]), single];
    let Err(JvpError::Leaves(wrong)) = jvp(f, x.clone(), v) else { panic!("accepted") };
    let paths: Vec<_> = wrong.0.iter().map(|leaf| leaf.path.as_str()).collect();
    assert_eq!(paths, [".0", ".2"]);
    assert_eq!(wrong.0[1].tangent.1, DType::F32);
    let Err(error) = jvp(f, x, vec![of([1.0])]) else { panic!("accepted") };
    assert_eq!(error.to_string(), "jvp: tangents have the structure (*), primals have (*, *, *)");
}

#[test]
fn what_does_not_depend_on_x_has_a_zero_tangent() {
    let (y, dy) =
        jvp(|_: Tensor<J, 1>| constant(of([5.0])).unwrap(), of([1.0]), of([1.0])).unwrap();
    assert_eq!((read(y), read(dy)), (vec![5.0], vec![0.0]));
    assert_eq!(slope(|x| x.clone().detach() * x, [3.0]), [3.0]);
}

/// Derivatives at kinks equal those of Burn's tape.
#[test]
fn kinks() {
    type A = Autodiff<B>;
    macro_rules! same {
        ($($x:expr => $f:expr;)*) => {$({
            let forward = slope(|x: Tensor<J, 1>| $f(x), $x);
            let x = Tensor::<A, 1>::from_inner(of($x)).require_grad();
            let y: Tensor<A, 1> = $f(x.clone());
            let backward = read(x.grad(&y.sum().backward()).unwrap());
            // Elementwise functions: the Jacobian is diagonal.
            assert_eq!(forward, backward, "{} at {:?}", stringify!($f), $x);
        })*};
    }
    same! {
        [-1.0, 0.0, 1.0] => Tensor::abs;
        [-1.0, 0.0, 1.0] => activation::relu;
        [-1.0, 0.0, 1.0] => |x| activation::leaky_relu(x, 0.5);
        [-1.0, -0.5, 0.0, 0.5, 1.0] => |x: Tensor<_, 1>| x.clamp(-0.5, 0.5);
        [-0.5, 1.0] => |x: Tensor<_, 1>| x.clamp_min(-0.5);
        [-0.5, 1.0] => |x: Tensor<_, 1>| x.clamp_max(1.0);
        [0.0, 1.0] => Tensor::sign;
        [0.5, 1.0] => Tensor::round;
        [0.0, 2.0] => |x: Tensor<_, 1>| x.powi_scalar(2);
        [0.0, 2.0] => |x: Tensor<_, 1>| x.powf_scalar(1.5);
    }
}

/// In a tie the tangent is that of the element at the returned index.
#[test]
fn ties() {
    let along = |f: fn(Tensor<J, 1>) -> Tensor<J, 1>, x: [f64; 4]| {
        read(jvp(f, of(x), of([1.0, 2.0, 4.0, 8.0])).unwrap().1)
    };
    assert_eq!(along(|x| x.max_dim(0), [1.0, 3.0, 3.0, 0.0]), [2.0]);
    assert_eq!(along(|x| x.min_dim(0), [0.0, 3.0, 3.0, 0.0]), [1.0]);
    assert_eq!(along(|x| x.max(), [3.0, 3.0, 3.0, 0.0]), [1.0]);
    assert_eq!(along(|x| x.sort(0), [2.0, 1.0, 2.0, 1.0]), [2.0, 8.0, 1.0, 4.0]);
    // The last index that attains the maximum.
    assert_eq!(along(|x| x.cummax(0), [1.0, 1.0, 0.0, 1.0]), [1.0, 2.0, 2.0, 8.0]);
    let pooled = along(
        |x| max_pool2d(x.reshape([1, 1, 2, 2]), [2, 2], [1, 1], [0, 0], [1, 1], false).reshape([1]),
        [1.0, 3.0, 3.0, 0.0],
    );
    assert_eq!(pooled, [2.0]);
}

/// Finite derivatives at points where Burn's tape returns NaN.
#[test]
fn numbers_where_the_tape_has_none() {
    assert_eq!(slope(|x| x.prod(), [0.0, 2.0, -3.0]), [-6.0]);
    assert_eq!(slope(|x| x.cumprod(0), [0.0, 2.0, 0.0]), [1.0, 2.0, 0.0]);
    let (_, t) = jvp(
        |(x, y): (Tensor<J, 1>, Tensor<J, 1>)| x.powf(y),
        (of([0.0]), of([2.0])),
        (of([1.0]), of([1.0])),
    )
    .unwrap();
    assert_eq!(read(t), [0.0]);
    assert!(slope(|x| x.powi_scalar(0), [0.0]) == [0.0]);
}

#[test]
fn empty_axes() {
    let empty =
        || Tensor::<B, 1>::from_data(TensorData::from([0.0f64; 0]), (&T4aDevice, DType::F64));
    let product = jvp(|x: Tensor<J, 1>| x.prod(), empty(), empty()).unwrap();
    assert_eq!((read(product.0), read(product.1)), (vec![1.0], vec![0.0]));
    assert!(read(jvp(|x: Tensor<J, 1>| x.cumprod(0), empty(), empty()).unwrap().1).is_empty());
    assert!(read(jvp(|x: Tensor<J, 1>| x.cummax(0), empty(), empty()).unwrap().1).is_empty());
}

#[test]
fn every_dtype_keeps_its_tangent() {
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let x = || of([0.5, 2.0]).cast(dtype);
        let f = |x: Tensor<J, 1>| activation::softmax((x.clone() * x.sin()).sqrt(), 0).prod();
        let (y, t) = jvp(f, x(), x()).unwrap();
        assert_eq!((y.dtype(), t.dtype()), (dtype, dtype));
        assert!(read(t)[0].is_finite());
    }
    let (y, t) = jvp(|x: Tensor<J, 1>| x.cast(DType::F32), of([0.5]), of([2.0])).unwrap();
    assert_eq!((y.dtype(), t.dtype(), read(t)), (DType::F32, DType::F32, vec![2.0]));
}

/// A captured tensor of the outer level is a constant of the inner level; if levels were confused, the slope would be
/// 2.
#[test]
fn levels_are_kept_apart() {
    let outer = |x: Tensor<J, 1>| {
        let inner = |y: Tensor<Jvp<J>, 1>| constant(x.clone()).unwrap() + y;
        let one = constant(of([1.0])).unwrap();
        let (_, slope) = jvp(inner, x.clone(), one).unwrap();
        x * slope
    };
    assert_eq!(slope(outer, [3.0]), [1.0]);
    let third = |x: Tensor<J, 1>| {
        let (_, d) = jvp(
            |y: Tensor<Jvp<J>, 1>| {
                let one = constant(constant(of([1.0])).unwrap()).unwrap();
                jvp(|z: Tensor<Jvp<Jvp<J>>, 1>| z.powi_scalar(4), y, one).unwrap().1
            },
            x,
            constant(of([1.0])).unwrap(),
        )
        .unwrap();
        d
    };
    assert_eq!(slope(third, [2.0]), [48.0]); // 24 x
}

#[test]
#[should_panic(expected = "jvp: backward: the loss has a tangent")]
fn a_moving_loss_is_refused_by_the_tape_below() {
    type A = Autodiff<B>;
    let x = Tensor::<A, 1>::from_inner(of([1.0])).require_grad().into_primitive().tensor();
    let v = Tensor::<A, 1>::from_inner(of([1.0])).into_primitive().tensor();
    let x = Tensor::<Jvp<A>, 1>::from_primitive(TensorPrimitive::Float(JvpTensor::new(x, v)));
    let _ = x.sum().backward();
}

#[test]
fn a_still_loss_is_differentiated_by_the_tape_below() {
    type A = Autodiff<B>;
    let x = Tensor::<Jvp<A>, 1>::from_inner(Tensor::from_primitive(TensorPrimitive::Float(
        JvpTensor::constant(of([3.0]).into_primitive().tensor()),
    )));
    let x = x.require_grad();
    let gradients = (x.clone() * x.clone()).sum().backward();
    let (g, t) = x.grad(&gradients).unwrap().into_primitive().tensor().into_parts();
    assert_eq!(read(Tensor::<B, 1>::from_primitive(TensorPrimitive::Float(g))), [6.0]);
    assert!(t.is_none());
}

#[test]
fn threads_share_nothing() {
    let work = |k: f64| move || slope(move |x| (x * k).sin(), [0.0])[0];
    let all: Vec<_> = (1..5).map(|k| std::thread::spawn(work(k as f64))).collect();
    let all: Vec<f64> = all.into_iter().map(|t| t.join().unwrap()).collect();
    assert_eq!(all, [1.0, 2.0, 3.0, 4.0]);
}

/// Quantization is piecewise constant: the tangent is zero.
#[test]
fn quantized_tensors_have_no_tangent() {
    let x = || of([0.0, 0.25, -1.0, 0.5, 1.0, -0.5, 0.75, 0.1]).cast(DType::F32);
    let scheme = QuantScheme::default();
    let (y, t) = jvp(|x: Tensor<J, 1>| x.quantize_dynamic(&scheme).dequantize(), x(), x()).unwrap();
    assert_eq!(read(y), read(x().quantize_dynamic(&scheme).dequantize()));
    assert_eq!(read(t), [0.0; 8]);
}

#[test]
fn data_are_values() {
    let f = |x: Tensor<J, 1>| {
        let all = Transaction::default().register(x.clone()).register(x.clone().int()).execute();
        assert_eq!(all[0].to_vec::<f64>().unwrap(), [2.0, 3.0]);
        assert_eq!(
            x.clone().greater_elem(2.5).into_data().to_vec::<bool>().unwrap(),
            [false, true]
        );
        x
    };
    assert_eq!(slope(f, [2.0, 3.0]), [1.0, 1.0]);
}

/// Zero offsets, the usual initial values, are at cell edges: the slope is that of the reverse pass.
#[test]
fn deformable_convolutions_at_the_edges_of_cells() {
    type A = Autodiff<B>;
    macro_rules! convolve {
        ($x:expr, $offset:expr, $w:expr) => {
            deform_conv2d(
                $x.reshape([1, 1, 3, 3]),
                $offset.reshape([1, 8, 4, 4]),
                $w.reshape([1, 1, 2, 2]),
                None,
                None,
                DeformConvOptions::new([1, 1], [1, 1], [1, 1], 1, 1),
            )
            .reshape([16])
        };
    }
    let x: [f64; 9] = std::array::from_fn(|i| (1.3 * i as f64).sin());
    let w = [0.5, -1.0, 2.0, 0.25];
    let v: [f64; 128] = std::array::from_fn(|i| (0.7 * i as f64).cos());
    let u: [f64; 16] = std::array::from_fn(|i| (1.9 * i as f64).sin());
    let still = |x| constant::<B, Tensor<B, 1>>(x).unwrap();
    let f = |offset: Tensor<J, 1>| convolve!(still(of(x)), offset, still(of(w)));
    let (_, t) = jvp(f, of([0.0; 128]), of(v)).unwrap();
    let forward: f64 = read(t).iter().zip(&u).map(|(t, u)| t * u).sum();
    let offset = Tensor::<A, 1>::from_inner(of([0.0; 128])).require_grad();
    let [x, w, u] = [of(x), of(w), of(u)].map(Tensor::<A, 1>::from_inner);
    let gradients = (convolve!(x, offset.clone(), w) * u).sum().backward();
    let g = read(offset.grad(&gradients).unwrap());
    let backward: f64 = g.iter().zip(&v).map(|(g, v)| g * v).sum();
    assert!((forward - backward).abs() < 1e-12, "{forward} and {backward}");
    assert!(forward.abs() > 0.1);
}

/// The tangent is zero in windows that contain only padding, and for powers with exponent 0 at 0.
#[test]
fn what_has_no_place_does_not_move() {
    let x = Tensor::<B, 4>::ones([1, 1, 4, 4], (&T4aDevice, DType::F64));
    let pool = |x| max_pool2d(x, [2, 2], [3, 3], [1, 1], [1, 1], true);
    let (y, dy) = jvp(pool, x.clone(), x).unwrap();
    let (y, dy) = (read(y), read(dy));
    assert!(y.contains(&f64::NEG_INFINITY));
    for (y, dy) in y.iter().zip(&dy) {
        assert_eq!(*dy, if y.is_finite() { 1.0 } else { 0.0 });
    }
    let power = |x: Tensor<J, 1>| x.powf(constant(of([0.0, 0.0, 2.0])).unwrap());
    assert_eq!(slope(power, [0.0, 2.0, 3.0]), [0.0, 0.0, 6.0]);
}
