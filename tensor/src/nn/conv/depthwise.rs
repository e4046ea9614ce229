//! Convolutions with very few channels per group: rows of y against shifted rows of x.
//!
//! With one channel a matrix product would read every window element once per product. Here a
//! line of y stays in the first-level cache while `w·x` is added to it, once per window element,
//! from the line of x that lies below; nothing is copied.

use t4a_algebra::Float;
use t4a_algebra::simd::{Loop, dispatch};

use super::geometry::Geometry;
use crate::error::Result;
use crate::loops::parallel::{self, SendPtr};
use crate::nn::lanes;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Multiply-adds below which threads cost more than they save.
const MIN_PARALLEL: usize = 1 << 18;

/// What is computed from the other two.
#[derive(Clone, Copy)]
enum Target {
    Y,
    X,
    W,
}

/// All window elements of one channel of x against one channel of y.
struct Planes<'a, T> {
    g: &'a Geometry,
    target: Target,
    x: *mut T,
    w: *mut T,
    y: *mut T,
}

impl<T: Float> Loop for Planes<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { g, target, x, w, y } = self;
        let stride = g.stride[2];
        let at = |i: usize, axis: usize, offset: isize| {
            ((i * g.stride[axis]) as isize + offset) as usize
        };
        for d in 0..g.y[0] {
            for h in 0..g.y[1] {
                let y = y.wrapping_add((d * g.y[1] + h) * g.y[2]);
                for k in 0..g.k[0] * g.k[1] * g.k[2] {
                    let (kw, rest) = (k % g.k[2], k / g.k[2]);
                    let (kh, kd) = (rest % g.k[1], rest / g.k[1]);
                    let (d_lo, d_hi, d_at) = g.inside(0, kd);
                    let (h_lo, h_hi, h_at) = g.inside(1, kh);
                    let (lo, hi, w_at) = g.inside(2, kw);
                    if d < d_lo || d >= d_hi || h < h_lo || h >= h_hi || lo >= hi {
                        continue;
                    }
                    let len = hi - lo;
                    let line = at(d, 0, d_at) * g.x[1] + at(h, 1, h_at);
                    let x = x.wrapping_add(line * g.x[2] + at(lo, 2, w_at));
                    // SAFETY: the line of x holds the elements below positions `lo..hi`, and
                    // planes, windows and outputs of different calls are disjoint.
                    unsafe {
                        let y = y.add(lo);
                        match target {
                            Target::Y => shifted(y, 1, x, stride, *w.add(k), len),
                            Target::X => shifted(x, stride, y, 1, *w.add(k), len),
                            Target::W => {
                                let w = w.add(k);
                                *w = (*w).add(dot(x, stride, y, len));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `aᵢ ← aᵢ + w·bᵢ` with strides.
///
/// # Safety
/// Both lines are valid for `len` strided elements and do not overlap.
#[inline(always)]
unsafe fn shifted<T: Float>(
    a: *mut T,
    a_stride: usize,
    b: *const T,
    b_stride: usize,
    w: T,
    len: usize,
) {
    // SAFETY: the promise.
    unsafe {
        if a_stride == 1 && b_stride == 1 {
            let a = std::slice::from_raw_parts_mut(a, len);
            for (a, &b) in a.iter_mut().zip(std::slice::from_raw_parts(b, len)) {
                *a = w.mul_add(b, *a);
            }
        } else {
            for i in 0..len {
                let a = a.add(i * a_stride);
                *a = w.mul_add(*b.add(i * b_stride), *a);
            }
        }
    }
}

/// `Σ xᵢ·yᵢ` with a stride in x.
///
/// # Safety
/// As [`shifted`].
#[inline(always)]
unsafe fn dot<T: Float>(x: *const T, stride: usize, y: *const T, len: usize) -> T {
    // SAFETY: the promise.
    unsafe {
        if stride == 1 {
            let x = std::slice::from_raw_parts(x, len);
            return lanes::dot(x, std::slice::from_raw_parts(y, len));
        }
        (0..len).fold(T::ZERO, |sum, i| (*x.add(i * stride)).mul_add(*y.add(i), sum))
    }
}

/// Calls its second argument with the planes of x, w and y that make up result `i`.
type Pairs<'a> = dyn Fn(usize, &mut dyn FnMut(usize, usize, usize)) + Sync + 'a;

/// Runs over `outer` disjoint results, each with a loop over pairs of planes.
fn run<T: Float>(
    g: &Geometry,
    target: Target,
    [x, w, y]: [*const T; 3],
    outer: usize,
    pairs: &Pairs<'_>,
) {
    let [x, w, y] = [x, w, y].map(|p| SendPtr(p.cast_mut()));
    let [x_plane, k, y_plane] = g.planes();
    let parallel = g.work() >= MIN_PARALLEL && parallel::threads() > 1;
    parallel::for_each(outer, parallel, &|i| {
        pairs(i, &mut |xi, wi, yi| {
            let (x, w, y) = (
                x.get().wrapping_add(xi * x_plane),
                w.get().wrapping_add(wi * k),
                y.get().wrapping_add(yi * y_plane),
            );
            dispatch(Planes { g, target, x, w, y });
        });
    });
}

/// y, which holds the bias, plus the convolution.
pub(super) fn forward<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    mut y: Tensor<T>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let out = y.as_mut_slice()?.as_mut_ptr().cast_const();
    let outputs = g.groups * g.o;
    run(g, Target::Y, [x.as_ptr(), weight.as_ptr(), out], g.n * outputs, &|i, pair| {
        let (image, o) = (i / outputs, i % outputs);
        for c in 0..g.c {
            pair((image * g.groups + o / g.o) * g.c + c, o * g.c + c, i);
        }
    });
    Ok(y.with_route(Route::native(Path::Fused)))
}

/// x, which holds the bias, plus the adjoint.
pub(super) fn adjoint<T: Float>(
    mut x: Tensor<T>,
    weight: &Tensor<T>,
    y: &Tensor<T>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let out = x.as_mut_slice()?.as_mut_ptr().cast_const();
    let inputs = g.groups * g.c;
    run(g, Target::X, [out, weight.as_ptr(), y.as_ptr()], g.n * inputs, &|i, pair| {
        let (image, group, c) = (i / inputs, i % inputs / g.c, i % g.c);
        for o in group * g.o..(group + 1) * g.o {
            pair(i, o * g.c + c, image * g.groups * g.o + o);
        }
    });
    Ok(x.with_route(Route::native(Path::Fused)))
}

/// The weight, summed over images in order.
pub(super) fn weight<T: Float>(x: &Tensor<T>, y: &Tensor<T>, g: &Geometry) -> Result<Tensor<T>> {
    let mut w = Tensor::<T>::zeros(&g.w_shape())?;
    let out = w.as_mut_slice()?.as_mut_ptr().cast_const();
    let outputs = g.groups * g.o;
    run(g, Target::W, [x.as_ptr(), out, y.as_ptr()], outputs * g.c, &|i, pair| {
        let (o, c) = (i / g.c, i % g.c);
        for image in 0..g.n {
            pair((image * g.groups + o / g.o) * g.c + c, i, image * outputs + o);
        }
    });
    Ok(w.with_route(Route::native(Path::Fused)))
}
