//! Scatters.

use super::{index_layouts, replaced, resized};
use crate::any::{AnyTensor, FromNumber};
use crate::dtype::{DType, Element};
use crate::index::{self, Reduction};
use crate::kernels::arithmetic::Add;
use crate::scalars::*;
use crate::tensor::Tensor;
use crate::testing::{Close, SHAPES, assert_close, elements, indices, layouts, layouts_of, value};
use crate::{dtypes, with_dtype};
use t4a_algebra::Numeric;

const REDUCTIONS: [Reduction; 5] =
    [Reduction::Assign, Reduction::Add, Reduction::Mul, Reduction::Min, Reduction::Max];

/// The reductions on each dtype, written out.
trait Reference: Element + FromNumber + Close {
    fn combine(self, new: Self, reduction: Reduction) -> Option<Self>;
}

macro_rules! reference {
    (
        { $a:ident $b:ident, $add:expr, $mul:expr, $min:expr, $max:expr }
        $($tag:ident $t:ident,)*
    ) => {$(
        impl Reference for $t {
            fn combine(self, new: Self, reduction: Reduction) -> Option<Self> {
                let ($a, $b) = (self, new);
                match reduction {
                    Reduction::Assign => Some($b),
                    Reduction::Add => $add,
                    Reduction::Mul => $mul,
                    Reduction::Min => $min,
                    Reduction::Max => $max,
                }
            }
        }
    )*};
}

dtypes!(int => [reference] {
    a b, Some(a.wrapping_add(b)), Some(a.wrapping_mul(b)), Some(a.min(b)), Some(a.max(b))
});
dtypes!([float] => [reference] {
    a b, Some(a + b), Some(a * b), Some(a.min(b)), Some(a.max(b))
});
dtypes!([narrow] => [reference] {
    a b, Some(Numeric::narrow(a.widen() + b.widen())), Some(Numeric::narrow(a.widen() * b.widen())),
    Some(if b < a { b } else { a }), Some(if b > a { b } else { a })
});
dtypes!([complex] => [reference] { a b, Some(a + b), Some(a * b), None, None });
dtypes!([truth] => [reference] { a b, Some(a | b), Some(a & b), Some(a & b), Some(a | b) });

/// Row-major position of an index.
fn position(shape: &[usize], at: &[usize]) -> usize {
    shape.iter().zip(at).fold(0, |p, (n, i)| p * n + i)
}

fn scatter_row<T: Reference>() {
    for reduction in REDUCTIONS {
        for shape in SHAPES {
            for axis in 0..shape.len() {
                let wanted = resized(shape, axis);
                let values = layouts_of(&wanted, |i| value::<T>(i + 300));
                let index = index_layouts(&wanted, shape[axis]);
                for (n, (name, x)) in layouts::<T>(shape).into_iter().enumerate() {
                    let (value_name, v) = &values[(n * 3) % values.len()];
                    let (index_name, i) = &index[(n * 5 + 1) % index.len()];
                    let mut want = Some(elements(&x));
                    for at in indices(&wanted) {
                        let to = replaced(&at, axis, i.get(&at).unwrap() as usize);
                        let to = position(shape, &to);
                        want = want.and_then(|mut want| {
                            want[to] = want[to].combine(v.get(&at).unwrap(), reduction)?;
                            Some(want)
                        });
                    }
                    let any = AnyTensor::from(x.clone());
                    let got = any.scatter(axis, &i.clone().into(), &v.clone().into(), reduction);
                    match want {
                        Some(want) if !(T::DTYPE.is_complex() && got.is_err()) => {
                            let got = elements(got.unwrap().typed::<T>().unwrap());
                            let context = format!("{name} {value_name} {index_name}");
                            let context = format!("{} {context} {shape:?} {axis}", T::DTYPE);
                            assert_close(&got, &want, 0.0, &context);
                        }
                        _ => assert!(got.is_err() && T::DTYPE.is_complex()),
                    }
                }
            }
        }
    }
}

#[test]
fn scatter_combines_in_the_order_of_the_index() {
    for dtype in DType::ALL {
        with_dtype!(dtype, T in all => scatter_row::<T>(), else => unreachable!());
    }
}

fn index_scatter_row<T: Reference>(reduction: Reduction) {
    for shape in SHAPES {
        for axis in 0..shape.len() {
            let wanted = resized(shape, axis);
            let index = index_layouts(&wanted[axis..=axis], shape[axis]);
            for (value_name, v) in layouts_of(&wanted, |i| value::<T>(i + 300)) {
                for (n, (name, x)) in layouts::<T>(shape).into_iter().enumerate() {
                    let (index_name, i) = &index[n % index.len()];
                    let mut want = elements(&x);
                    for at in indices(&wanted) {
                        let to = i.get(&at[axis..=axis]).unwrap() as usize;
                        let to = position(shape, &replaced(&at, axis, to));
                        want[to] = want[to].combine(v.get(&at).unwrap(), reduction).unwrap();
                    }
                    let any = AnyTensor::from(x);
                    let got = any
                        .index_scatter(axis, &i.clone().into(), &v.clone().into(), reduction)
                        .unwrap();
                    let got = elements(got.typed::<T>().unwrap());
                    let context = format!("{name} {value_name} {index_name}");
                    assert_eq!(got, want, "{context} {shape:?} {axis}");
                }
            }
        }
    }
}

#[test]
fn index_scatter_combines_slices() {
    index_scatter_row::<f32>(Reduction::Add);
    index_scatter_row::<bool>(Reduction::Add);
    index_scatter_row::<c64>(Reduction::Mul);
    index_scatter_row::<u8>(Reduction::Max);
    index_scatter_row::<i16>(Reduction::Assign);
}

fn scatter_nd_row<T: Reference>(reduction: Reduction) {
    for shape in SHAPES {
        for k in 0..=shape.len() {
            for prefix in [&[][..], &[3], &[2, 4]] {
                if shape[..k].contains(&0) {
                    continue;
                }
                let index_shape = [prefix, &[k]].concat();
                let value_shape = [prefix, &shape[k..]].concat();
                let limit = shape[..k].iter().copied().min().unwrap_or(1);
                let index = index_layouts(&index_shape, limit);
                let values = layouts_of(&value_shape, |i| value::<T>(i + 300));
                for (n, (name, x)) in layouts::<T>(shape).into_iter().enumerate() {
                    let ((index_name, i), (value_name, v)) =
                        (&index[n % index.len()], &values[(3 * n) % values.len()]);
                    let mut want = elements(&x);
                    for at in indices(&value_shape) {
                        let (tuple, rest) = at.split_at(prefix.len());
                        let mut to: Vec<usize> = (0..k)
                            .map(|j| i.get(&[tuple, &[j]].concat()).unwrap() as usize)
                            .collect();
                        to.extend_from_slice(rest);
                        let to = position(shape, &to);
                        want[to] = want[to].combine(v.get(&at).unwrap(), reduction).unwrap();
                    }
                    let any = AnyTensor::from(x);
                    let got =
                        any.scatter_nd(&i.clone().into(), &v.clone().into(), reduction).unwrap();
                    assert_eq!(got.shape(), shape);
                    let got = elements(got.typed::<T>().unwrap());
                    let context = format!("{name} {value_name} {index_name}");
                    assert_eq!(got, want, "{context} {shape:?} {k}");
                }
            }
        }
    }
}

#[test]
fn scatter_nd_combines_where_the_tuples_say() {
    for reduction in REDUCTIONS {
        scatter_nd_row::<f64>(reduction);
        scatter_nd_row::<bool>(reduction);
    }
}

#[test]
fn large_scatters_do_not_depend_on_the_split() {
    // 0.1 is inexact, so another order of additions would show in the bits.
    let v = Tensor::from_fn(&[600, 500], |i| (i % 13) as f32 * 0.1).unwrap();
    for axis in 0..2 {
        let (_, i) = index_layouts(&[600, 500], 17).remove(0);
        let shape = replaced(&[600, 500], axis, 17);
        let mut want = vec![0.0f32; shape.iter().product()];
        for at in indices(v.shape()) {
            let to = replaced(&at, axis, i.get(&at).unwrap() as usize);
            want[position(&shape, &to)] += v.get(&at).unwrap();
        }
        let got = index::scatter(Add, Tensor::zeros(&shape).unwrap(), axis, &i, &v).unwrap();
        assert_eq!(elements(&got), want, "axis {axis}");

        let i = i.select(1 - axis, 5).unwrap();
        let mut want = vec![0.0f32; shape.iter().product()];
        for at in indices(v.shape()) {
            let to = replaced(&at, axis, i.get(&[at[axis]]).unwrap() as usize);
            want[position(&shape, &to)] += v.get(&at).unwrap();
        }
        let got = index::index_scatter(Add, Tensor::zeros(&shape).unwrap(), axis, &i, &v).unwrap();
        assert_eq!(elements(&got), want, "axis {axis}");
    }
}

#[test]
fn unique_memory_is_overwritten_and_shared_memory_is_not() {
    let i = Tensor::from_vec(vec![1i64, 1], &[2]).unwrap();
    let v = Tensor::full(&[2, 30], 1.0f32).unwrap();
    let x = Tensor::<f32>::zeros(&[3, 30]).unwrap();
    let ptr = x.as_ptr();
    let x = index::index_scatter(Add, x, 0, &i, &v).unwrap();
    assert_eq!(x.as_ptr(), ptr);
    let y = index::index_scatter(Add, x.clone(), 0, &i, &v).unwrap();
    assert_ne!(y.as_ptr(), ptr);
    assert_eq!((x.get(&[1, 0]), y.get(&[1, 0])), (Some(2.0), Some(4.0)));
    // The values are a view of the target.
    let z = index::index_scatter(Add, y.clone(), 0, &i, &y.slice_axis(0, 1, 2, 1).unwrap());
    assert_eq!(z.unwrap().get(&[1, 0]), Some(8.0));
    // Repeated memory is written out first.
    let repeated = Tensor::full(&[1, 30], 0.0f32).unwrap().expand(&[3, 30]).unwrap();
    let z = index::index_scatter(Add, repeated, 0, &i, &v).unwrap();
    assert_eq!((z.get(&[0, 0]), z.get(&[1, 0])), (Some(0.0), Some(2.0)));
}
