use super::{dots, reduce, reduced_shape};
use crate::arg_reduce::arg_reduce;
use crate::error::TensorError;
use crate::kernels::fold::{All, Any, Maximum, Mean, Minimum, Prod, Sum};
use crate::layout::Layout;
use crate::tensor::Tensor;
use t4a_algebra::{Numeric, bf16, f16};

/// Integers in `f64`, so that sums are exact in any order.
fn values(shape: &[usize]) -> Tensor<f64> {
    Tensor::from_fn(shape, |i| ((i * 7919 + 13) % 101) as f64 - 50.0).unwrap()
}

fn layouts(shape: &[usize]) -> Vec<Tensor<f64>> {
    let rev: Vec<usize> = (0..shape.len()).rev().collect();
    let back: Vec<usize> = shape.iter().rev().copied().collect();
    let mut wide = shape.to_vec();
    wide[0] = 1;
    let doubled: Vec<usize> = shape.iter().map(|n| 2 * n).collect();
    let mut strided = values(&doubled);
    for (axis, &n) in shape.iter().enumerate() {
        strided = strided.slice_axis(axis, 1.min(n), n, 2).unwrap();
    }
    vec![
        values(shape),
        values(&back).permute(&rev).unwrap(),
        values(shape).flip(&rev).unwrap(),
        values(&wide).expand(shape).unwrap(),
        strided,
    ]
}

/// Index by index: the elements reduced into each result.
fn groups(x: &Tensor<f64>, axes: &[usize]) -> Vec<Vec<f64>> {
    let (shape, _) = reduced_shape("test", x.shape(), axes).unwrap();
    let out = Layout::contiguous("test", &shape, 1).unwrap();
    let mut groups = vec![Vec::new(); out.numel()];
    let mut index = vec![0; x.rank()];
    for _ in 0..x.numel() {
        let to: Vec<usize> =
            index.iter().enumerate().map(|(a, &i)| if axes.contains(&a) { 0 } else { i }).collect();
        groups[out.position(&to)].push(x.get(&index).unwrap());
        for axis in (0..x.rank()).rev() {
            index[axis] += 1;
            if index[axis] < x.shape()[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    groups
}

#[test]
fn every_layout_and_choice_of_axes_reduces_the_right_elements() {
    let shapes: [&[usize]; 8] = [
        &[40],
        &[5, 7],
        &[3, 300],
        &[300, 3],
        &[4, 20, 33],
        &[2, 3, 4, 5],
        &[18, 1, 270],
        // More than one block, so that contiguous rows are planned too.
        &[60, 400],
    ];
    for shape in shapes {
        for x in layouts(shape) {
            for mask in 0..1usize << shape.len() {
                let axes: Vec<usize> = (0..shape.len()).filter(|a| mask >> a & 1 == 1).collect();
                let want = groups(&x, &axes);
                let sum = reduce(Sum, &x, &axes).unwrap().to_vec().unwrap();
                let max = reduce(Maximum, &x, &axes).unwrap().to_vec().unwrap();
                let min = reduce(Minimum, &x, &axes).unwrap().to_vec().unwrap();
                for (i, group) in want.iter().enumerate() {
                    assert_eq!(sum[i], group.iter().sum::<f64>(), "{:?} {axes:?}", x.layout());
                    assert_eq!(max[i], group.iter().copied().fold(f64::MIN, f64::max));
                    assert_eq!(min[i], group.iter().copied().fold(f64::MAX, f64::min));
                }
                if let [axis] = axes[..] {
                    let (v, at) = arg_reduce(Maximum, &x, axis).unwrap();
                    let (v, at) = (v.to_vec().unwrap(), at.to_vec().unwrap());
                    for (i, group) in want.iter().enumerate() {
                        let first = group.iter().position(|&g| g == max[i]).unwrap();
                        assert_eq!(
                            (v[i], at[i]),
                            (max[i], first as i64),
                            "{:?} {axis}",
                            x.layout()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn long_reductions_are_cut_into_blocks() {
    for shape in [&[100_000usize][..], &[70_000, 3], &[3, 70_000], &[2, 40_000, 2]] {
        let x = values(shape);
        for axes in [vec![0], vec![shape.len() - 1], (0..shape.len()).collect()] {
            let want: Vec<f64> = groups(&x, &axes).iter().map(|g| g.iter().sum()).collect();
            assert_eq!(
                reduce(Sum, &x, &axes).unwrap().to_vec().unwrap(),
                want,
                "{shape:?} {axes:?}"
            );
        }
    }
}

/// Long rows are folded by pairs of elements.
#[test]
fn extrema_and_nan_are_found_at_every_place_of_a_row() {
    for n in [1, 64, 129, 300] {
        for at in 0..n {
            let row = |value: f32| Tensor::from_fn(&[1, n], |i| if i == at { value } else { 1.0 });
            let of = |x: &Tensor<f32>, max: bool| match max {
                true => reduce(Maximum, x, &[1]).unwrap().to_vec().unwrap()[0],
                false => reduce(Minimum, x, &[1]).unwrap().to_vec().unwrap()[0],
            };
            for max in [true, false] {
                let extreme = if max { 2.0 } else { -2.0 };
                assert_eq!(of(&row(extreme).unwrap(), max), extreme, "{n} {at}");
                assert!(of(&row(f32::NAN).unwrap(), max).is_nan(), "{n} {at}");
            }
        }
    }
}

#[test]
fn nan_wins_and_ties_go_to_the_first() {
    let x = Tensor::from_vec(vec![1.0f32, f32::NAN, 5.0, f32::NAN, 5.0, 5.0], &[2, 3]).unwrap();
    for x in
        [x.clone(), x.swap_axes(0, 1).unwrap().reshape(&[3, 2]).unwrap().swap_axes(0, 1).unwrap()]
    {
        let (v, i) = arg_reduce(Maximum, &x, 1).unwrap();
        assert!(v.to_vec().unwrap().iter().all(|v| v.is_nan()));
        assert_eq!(i.to_vec().unwrap(), [1, 0]);
        let (v, i) = arg_reduce(Minimum, &x, 0).unwrap();
        assert_eq!(i.to_vec().unwrap(), [1, 0, 0]);
        assert!(v.get(&[0, 0]).unwrap().is_nan() && v.get(&[0, 2]).unwrap() == 5.0);
    }
    let x = Tensor::full(&[40, 40], 2i32).unwrap();
    for axis in 0..2 {
        let (_, i) = arg_reduce(Minimum, &x, axis).unwrap();
        assert!(i.to_vec().unwrap().iter().all(|&i| i == 0));
    }
}

#[test]
fn half_precision_accumulates_in_single() {
    let x = Tensor::full(&[3000, 2], <f16 as Numeric>::from_f64(1.0)).unwrap();
    for axes in [vec![0], vec![0, 1]] {
        let sum = reduce(Sum, &x, &axes).unwrap().to_vec().unwrap();
        assert_eq!(sum[0].to_f64(), 3000.0 * (axes.len() as f64));
        assert_eq!(reduce(Mean, &x, &axes).unwrap().to_vec().unwrap()[0].to_f64(), 1.0);
    }
    let big = Tensor::full(&[100_000], <bf16 as Numeric>::from_f64(3e38)).unwrap();
    assert!(reduce(Sum, &big, &[0]).unwrap().to_vec().unwrap()[0].is_infinite());
}

#[test]
fn reducing_nothing() {
    let x = Tensor::<f32>::zeros(&[0, 3]).unwrap();
    assert_eq!(reduce(Sum, &x, &[0]).unwrap().to_vec().unwrap(), [0.0; 3]);
    assert_eq!(reduce(Prod, &x, &[0, 1]).unwrap().to_vec().unwrap(), [1.0]);
    assert!(reduce(Mean, &x, &[0]).unwrap().to_vec().unwrap()[0].is_nan());
    assert!(matches!(reduce(Maximum, &x, &[0]), Err(TensorError::Shape { op: "max", .. })));
    assert_eq!(reduce(Maximum, &x, &[1]).unwrap().shape(), [0, 1]);
    assert!(arg_reduce(Maximum, &x, 0).is_err());
    assert!(matches!(reduce(Sum, &x, &[2]), Err(TensorError::Axis { axis: 2, .. })));
    assert!(matches!(reduce(Sum, &x, &[1, 1]), Err(TensorError::Axis { .. })));
    assert_eq!(reduce(Any, &x, &[0, 1]).unwrap().to_vec().unwrap(), [false]);
    assert_eq!(reduce(All, &x, &[0, 1]).unwrap().to_vec().unwrap(), [true]);
}

/// Sums of positive numbers, where rounding errors keep one sign, against sums in `f64`.
#[test]
fn errors_of_long_sums_grow_with_the_logarithm() {
    use crate::kernels::fold::SumSquares;

    let check = |x: &Tensor<f32>, axes: &[usize], squares: bool| {
        let (shape, _) = reduced_shape("sum", x.shape(), axes).unwrap();
        let wide = x.to_vec().unwrap().into_iter().map(f64::from).collect();
        let wide = Tensor::<f64>::from_vec(wide, x.shape()).unwrap();
        let (got, want) = if squares {
            (reduce(SumSquares, x, axes).unwrap(), reduce(SumSquares, &wide, axes).unwrap())
        } else {
            (reduce(Sum, x, axes).unwrap(), reduce(Sum, &wide, axes).unwrap())
        };
        let n = (x.numel() / shape.iter().product::<usize>()) as f64;
        for (got, want) in got.to_vec().unwrap().into_iter().zip(want.to_vec().unwrap()) {
            let allowed = (260.0 + n.log2()) * 2f64.powi(-24) * want;
            let error = (f64::from(got) - want).abs();
            assert!(error <= allowed, "{:?} {axes:?}: {error} > {allowed}", x.layout());
        }
    };
    let tenths = |shape: &[usize]| {
        Tensor::from_fn(shape, |i| 0.1 + 0.01 * ((i * 7919) % 11) as f32).unwrap()
    };
    let long = Tensor::full(&[1 << 24], 0.1f32).unwrap();
    check(&long, &[0], false);
    let sum = f64::from(reduce(Sum, &long, &[0]).unwrap().to_vec().unwrap()[0]);
    assert!((sum - 1_677_721.6).abs() < 12.0, "{sum}");
    for shape in [
        &[1 << 21][..],
        &[1 << 20, 3],
        &[3, 1 << 20],
        &[2, 1 << 18, 5],
        &[512, 4096],
        &[20, 40_000],
    ] {
        let x = tenths(shape);
        let rev: Vec<usize> = (0..shape.len()).rev().collect();
        for x in [x.clone(), x.permute(&rev).unwrap(), x.slice_axis(0, 0, shape[0] / 2, 2).unwrap()]
        {
            for axis in 0..x.rank() {
                check(&x, &[axis], false);
            }
            check(&x, &(0..x.rank()).collect::<Vec<_>>(), true);
        }
    }
    // 16-bit floats are rounded once.
    let x = Tensor::full(&[1 << 20, 2], f16::from_f32(0.01)).unwrap();
    let want = f64::from(f16::from_f32(0.01).to_f32());
    for axes in [&[0][..], &[0, 1]] {
        let mean = reduce(Mean, &x, axes).unwrap().to_vec().unwrap()[0];
        assert_eq!(f64::from(mean.to_f32()), want);
    }
}

#[test]
fn inner_products_agree_with_sums_of_products() {
    let block = 1 << 14;
    let numbers = |n: usize| (0..n).map(|i| ((i * 104_729 + 5) % 97) as f64 - 48.0).collect();
    let exact = |x: &Tensor<f64>, y: &[f64]| -> f64 {
        x.to_vec().unwrap().iter().zip(y).map(|(x, y)| x * y).sum()
    };
    // Small integers: every order of the sum is exact.
    for n in [0, 1, 31, 33, block - 1, block, block + 1, 3 * block + 7] {
        let (x, y): (_, Vec<f64>) = (values(&[n]), numbers(n));
        let required = exact(&x, &y);
        let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect();
        let single = |x: &[f64]| Tensor::<f32>::from_vec(narrow(x), &[n]).unwrap();
        let sum = dots(&single(&x.to_vec().unwrap()), &[&single(&y)]).unwrap();
        assert_eq!(sum, [required], "{n}");
        let squares = exact(&x, &x.to_vec().unwrap());
        let y = Tensor::from_vec(y, &[n]).unwrap();
        assert_eq!(dots(&x, &[&y, &x]).unwrap(), [required, squares], "{n}");
    }
    let y: Vec<f64> = numbers(12);
    for x in layouts(&[3, 4]) {
        let other = Tensor::from_vec(y.clone(), &[3, 4]).unwrap();
        let squares: f64 = y.iter().map(|y| y * y).sum();
        assert_eq!(dots(&x, &[&other]).unwrap(), [exact(&x, &y)]);
        assert_eq!(dots(&other, &[&other, &x]).unwrap(), [squares, exact(&x, &y)]);
    }
    let x = values(&[3, 4]);
    let e = dots(&x, &[&x, &values(&[4, 3])]).unwrap_err();
    assert!(matches!(e, TensorError::ShapeMismatch { op: "dot", .. }), "{e}");
    let nan = Tensor::from_vec(vec![f64::NAN], &[1]).unwrap();
    assert!(dots(&nan, &[&nan]).unwrap()[0].is_nan());
}
