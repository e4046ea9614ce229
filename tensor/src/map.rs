//! Elementwise operations: broadcast, allocate or overwrite, run the loop.
//!
//! Operands are taken by value. If one of them is the only owner of memory that the result would
//! fill exactly, the result is written over it. Otherwise the result is row-major, unless no
//! operand is and one of them is dense in another order of axes: then it keeps that order.

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use t4a_algebra::Scalar;

use crate::error::Result;
use crate::layout::{Layout, Strides, broadcast_shapes};
use crate::loops::contiguous::{self, Run};
use crate::loops::elementwise::{Block, Operand, for_each_run};
use crate::loops::kernel::{Binary, Ternary, Unary};
use crate::loops::parallel::SendPtr;
use crate::route::{Path, Route};
use crate::tensor::{Output, Tensor};

/// Row-major operands up to this many elements skip the walk over axes: its set-up would cost
/// more than the arithmetic (bench `backend`, row `add 4×4`).
const SMALL: usize = 4096;

const CONTIGUOUS: Route = Route::native(Path::LoopContiguous);
const STRIDED: Route = Route::native(Path::LoopStrided);

/// `outᵢ = k(xᵢ)`.
///
/// Cost: one read, one write and one `k` per element.
///
/// # Errors
/// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
#[inline]
pub fn map<T: Scalar, K: Unary<T>>(kernel: K, x: Tensor<T>) -> Result<Tensor<K::Out>> {
    if x.numel() <= SMALL
        && let Some(slice) = x.as_slice()
    {
        let mut out = Output::<K::Out>::new(K::NAME, x.shape())?;
        contiguous::map(kernel, slice, out.as_mut_slice());
        // SAFETY: the loop wrote every element.
        return Ok(unsafe { out.assume_init() }.with_route(CONTIGUOUS));
    }
    let mut x = x;
    let shape = x.layout.clone();
    let sides = [Side::RESULT, Side::new::<T, K::Out>(&mut x, shape.shape())?];
    // SAFETY: the operand has the shape of the result; runs are disjoint.
    let done = unsafe {
        walk::<K::Out, 2>(K::NAME, shape.shape(), sides, K::COST, |out, len, [_, x]| {
            match run::<T>(x, len) {
                Run::Each(x) => contiguous::map(kernel, x, out),
                Run::Repeat(x) => out.fill(MaybeUninit::new(kernel.apply(x))),
            }
        })
    }?;
    Ok(match done {
        Done::Fresh(out) => out,
        Done::Over(_, route) => reinterpret(x).with_route(route),
    })
}

/// `outᵢ = k(aᵢ, bᵢ)` with the operands broadcast to a common shape.
///
/// Cost: two reads, one write and one `k` per element.
///
/// # Errors
/// [`TensorError::ShapeMismatch`](crate::TensorError::ShapeMismatch) if the shapes do not
/// broadcast; `OutOfMemory`.
#[inline]
pub fn zip<T: Scalar, U: Scalar, K: Binary<T, U>>(
    kernel: K,
    a: Tensor<T>,
    b: Tensor<U>,
) -> Result<Tensor<K::Out>> {
    if a.numel() <= SMALL
        && a.shape() == b.shape()
        && let (Some(a_slice), Some(b_slice)) = (a.as_slice(), b.as_slice())
    {
        let mut out = Output::<K::Out>::new(K::NAME, a.shape())?;
        contiguous::zip(kernel, Run::Each(a_slice), Run::Each(b_slice), out.as_mut_slice());
        // SAFETY: the loop wrote every element.
        return Ok(unsafe { out.assume_init() }.with_route(CONTIGUOUS));
    }
    let shape = broadcast_shapes(K::NAME, a.shape(), b.shape())?;
    let (mut a, mut b) = (a, b);
    let sides = [
        Side::RESULT,
        Side::new::<T, K::Out>(&mut a, &shape)?,
        Side::new::<U, K::Out>(&mut b, &shape)?,
    ];
    // SAFETY: the operands are broadcast to the shape of the result; runs are disjoint.
    let done = unsafe {
        walk::<K::Out, 3>(K::NAME, &shape, sides, K::COST, |out, len, [_, a, b]| {
            contiguous::zip(kernel, run::<T>(a, len), run::<U>(b, len), out);
        })
    }?;
    Ok(match done {
        Done::Fresh(out) => out,
        Done::Over(1, route) => reinterpret(a).with_route(route),
        Done::Over(_, route) => reinterpret(b).with_route(route),
    })
}

/// `outᵢ = k(aᵢ, bᵢ, cᵢ)` with the operands broadcast to a common shape.
///
/// Cost: three reads, one write and one `k` per element.
///
/// # Errors
/// As [`zip`].
#[inline]
pub fn zip3<T: Scalar, U: Scalar, V: Scalar, K: Ternary<T, U, V>>(
    kernel: K,
    a: Tensor<T>,
    b: Tensor<U>,
    c: Tensor<V>,
) -> Result<Tensor<K::Out>> {
    let shape = broadcast_shapes(K::NAME, a.shape(), b.shape())?;
    let shape = broadcast_shapes(K::NAME, &shape, c.shape())?;
    let (mut a, mut b, mut c) = (a, b, c);
    let sides = [
        Side::RESULT,
        Side::new::<T, K::Out>(&mut a, &shape)?,
        Side::new::<U, K::Out>(&mut b, &shape)?,
        Side::new::<V, K::Out>(&mut c, &shape)?,
    ];
    // SAFETY: the operands are broadcast to the shape of the result; runs are disjoint.
    let done = unsafe {
        walk::<K::Out, 4>(K::NAME, &shape, sides, K::COST, |out, len, [_, a, b, c]| {
            // Three operands with two accesses each would be eight loops: repeated elements
            // are spread out instead.
            let (mut sa, mut sb, mut sc) = (Spread::new(), Spread::new(), Spread::new());
            let mut done = 0;
            while done < len {
                let part = (len - done).min(SPREAD);
                let a = sa.slice(run::<T>(a, len), done, part);
                let b = sb.slice(run::<U>(b, len), done, part);
                let c = sc.slice(run::<V>(c, len), done, part);
                contiguous::zip3(kernel, a, b, c, &mut out[done..done + part]);
                done += part;
            }
        })
    }?;
    Ok(match done {
        Done::Fresh(out) => out,
        Done::Over(1, route) => reinterpret(a).with_route(route),
        Done::Over(2, route) => reinterpret(b).with_route(route),
        Done::Over(_, route) => reinterpret(c).with_route(route),
    })
}

const SPREAD: usize = 256;

/// A run as a slice, with a repeated element written out.
struct Spread<T>([MaybeUninit<T>; SPREAD], bool);

impl<T: Scalar> Spread<T> {
    #[inline]
    fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; SPREAD], false)
    }

    #[inline]
    fn slice<'a>(&'a mut self, run: Run<'a, T>, from: usize, len: usize) -> &'a [T] {
        match run {
            Run::Each(x) => &x[from..from + len],
            Run::Repeat(x) => {
                if !std::mem::replace(&mut self.1, true) {
                    self.0.fill(MaybeUninit::new(x));
                }
                // SAFETY: filled just now or before.
                unsafe { &*(std::ptr::from_ref(&self.0[..len]) as *const [T]) }
            }
        }
    }
}

/// An operand broadcast to the shape of the result.
struct Side {
    ptr: *const u8,
    strides: Strides,
    size: usize,
    /// Where the result may be written instead of to fresh memory.
    over: Option<*mut u8>,
}

impl Side {
    /// Stands for the result.
    const RESULT: Side =
        Side { ptr: std::ptr::null(), strides: Strides::new_const(), size: 1, over: None };

    /// `x` expanded to `shape`, for a result of element type `U`.
    fn new<T: Scalar, U: Scalar>(x: &mut Tensor<T>, shape: &[usize]) -> Result<Self> {
        let exact = TypeId::of::<T>() == TypeId::of::<U>()
            && x.shape() == shape
            && x.buffer.len() == x.numel() * size_of::<T>()
            && x.layout.strides().iter().all(|&s| s >= 0)
            && x.layout.is_dense();
        let over = if exact { x.as_mut_ptr().map(<*mut T>::cast) } else { None };
        let strides: Strides = if x.shape() == shape {
            x.layout.strides().into()
        } else {
            x.layout.expand(shape)?.strides().into()
        };
        Ok(Self { ptr: x.as_ptr().cast(), strides, size: size_of::<T>(), over })
    }

    fn is_dense(&self, shape: &[usize]) -> bool {
        self.strides.iter().all(|&s| s >= 0)
            && Layout::from_parts(shape, &self.strides, 0, usize::MAX).is_ok_and(|l| l.is_dense())
    }

    fn is_row_major(&self, shape: &[usize]) -> bool {
        Layout::from_parts(shape, &self.strides, 0, usize::MAX).is_ok_and(|l| l.is_contiguous())
    }
}

enum Done<U> {
    /// The result in fresh memory.
    Fresh(Tensor<U>),
    /// The result lies over this operand.
    Over(usize, Route),
}

/// Chooses where the result goes and hands out runs of it.
///
/// # Safety
/// Every side is readable at every index of `shape`; `body` writes every element of the run.
unsafe fn walk<U: Scalar, const M: usize>(
    op: &'static str,
    shape: &[usize],
    sides: [Side; M],
    cost: usize,
    body: impl Fn(&mut [MaybeUninit<U>], usize, [Block; M]) + Sync + Send,
) -> Result<Done<U>> {
    let over = (1..M).find_map(|i| sides[i].over.map(|ptr| (i, ptr)));
    let order = match over {
        Some((i, _)) => Layout::from_parts(shape, &sides[i].strides, 0, usize::MAX)?,
        None => match sides[1..].iter().any(|s| s.is_row_major(shape)) {
            true => Layout::contiguous(op, shape, size_of::<U>())?,
            false => match sides[1..].iter().find(|s| s.is_dense(shape)) {
                Some(side) => Layout::from_parts(shape, &side.strides, 0, usize::MAX)?,
                None => Layout::contiguous(op, shape, size_of::<U>())?,
            },
        },
    };
    let mut fresh = match over {
        None => Some(Output::<U>::with_layout(order.clone())?),
        Some(_) => None,
    };
    let out = SendPtr(match (&mut fresh, over) {
        (Some(out), _) => out.as_mut_ptr(),
        (None, Some((_, ptr))) => ptr.cast(),
        (None, None) => std::ptr::null_mut(),
    });
    let operands = std::array::from_fn(|i| {
        let Side { ptr, strides, size, .. } = &sides[i];
        let aliased = over.is_some_and(|(index, _)| index == i);
        match i {
            0 => {
                let size = size_of::<U>();
                Operand { ptr: *ptr, strides: order.strides(), size, aliased: false }
            }
            _ => Operand { ptr: *ptr, strides, size: *size, aliased },
        }
    });
    let direct =
        |s: &Side| s.strides.as_slice() == order.strides() || s.strides.iter().all(|&s| s == 0);
    let route = if sides[1..].iter().all(direct) { CONTIGUOUS } else { STRIDED };
    // SAFETY: the caller's promise; the result is dense under `order` and each run lies inside.
    unsafe {
        for_each_run(shape, operands, cost, |position, len, blocks| {
            let run = std::slice::from_raw_parts_mut(out.get().add(position).cast(), len);
            body(run, len, blocks);
        });
    }
    Ok(match (fresh, over) {
        // SAFETY: the runs cover the result and `body` wrote them.
        (Some(out), _) => Done::Fresh(unsafe { out.assume_init() }.with_route(route)),
        (None, over) => Done::Over(over.map_or(0, |(index, _)| index), route),
    })
}

/// A block as a typed run.
///
/// # Safety
/// The block holds `len` elements of type `T`, or one if it is repeated.
#[inline(always)]
unsafe fn run<'a, T: Scalar>(block: Block, len: usize) -> Run<'a, T> {
    let ptr = block.ptr.cast::<T>();
    // SAFETY: the caller's promise.
    unsafe {
        if block.repeat {
            Run::Repeat(*ptr)
        } else {
            Run::Each(std::slice::from_raw_parts(ptr, len))
        }
    }
}

/// The tensor whose elements have been overwritten by values of `U`, the same type.
fn reinterpret<T: Scalar, U: Scalar>(x: Tensor<T>) -> Tensor<U> {
    debug_assert_eq!(TypeId::of::<T>(), TypeId::of::<U>());
    Tensor { buffer: x.buffer, layout: x.layout, route: x.route, element: PhantomData }
}

#[cfg(test)]
mod tests {
    use super::*;
    use t4a_algebra::Numeric;

    #[derive(Clone, Copy)]
    struct Sub;
    impl<T: Numeric> Binary<T> for Sub {
        type Out = T;
        const NAME: &'static str = "sub";
        fn apply(self, a: T, b: T) -> T {
            a.sub(b)
        }
    }
    #[derive(Clone, Copy)]
    struct Square;
    impl<T: Numeric> Unary<T> for Square {
        type Out = T;
        const NAME: &'static str = "square";
        fn apply(self, x: T) -> T {
            x.mul(x)
        }
    }

    fn arange(shape: &[usize]) -> Tensor<i32> {
        Tensor::from_fn(shape, |i| i as i32).unwrap()
    }

    /// Layouts of one shape: row-major, transposed, reversed, strided, repeated, offset.
    fn layouts(shape: &[usize]) -> Vec<Tensor<i32>> {
        let n = shape.len();
        let rev: Vec<usize> = (0..n).rev().collect();
        let flipped: Vec<usize> = shape.iter().rev().copied().collect();
        let doubled: Vec<usize> = shape.iter().map(|s| 2 * s + 1).collect();
        let mut strided = arange(&doubled);
        for axis in 0..n {
            strided = strided.slice_axis(axis, 1, shape[axis], 2).unwrap();
        }
        let mut out = vec![
            arange(shape),
            arange(&flipped).permute(&rev).unwrap(),
            arange(shape).flip(&rev).unwrap(),
            strided,
        ];
        if n > 0 {
            let mut ones = shape.to_vec();
            ones[n - 1] = 1;
            out.push(arange(&ones).expand(shape).unwrap());
            out.push(arange(&shape[n - 1..]).expand(shape).unwrap());
        }
        out.push(arange(&[]).expand(shape).unwrap());
        out
    }

    #[test]
    fn every_pair_of_layouts_gives_the_elementwise_result() {
        let shapes: [&[usize]; 8] =
            [&[], &[7], &[3, 5], &[70, 130], &[2, 3, 41], &[0, 4], &[5, 1, 6], &[17, 3, 33, 2]];
        for shape in shapes {
            for a in layouts(shape) {
                let got = map(Square, a.clone()).unwrap();
                let want: Vec<i32> =
                    a.to_vec().unwrap().iter().map(|x| x.wrapping_mul(*x)).collect();
                assert_eq!(got.to_vec().unwrap(), want, "{a:?}");
                for b in layouts(shape) {
                    let got = zip(Sub, a.clone(), b.clone()).unwrap();
                    assert_eq!(got.shape(), shape);
                    let (av, bv) = (a.to_vec().unwrap(), b.to_vec().unwrap());
                    let want: Vec<i32> = av.iter().zip(&bv).map(|(x, y)| x - y).collect();
                    assert_eq!(got.to_vec().unwrap(), want, "{:?} {:?}", a.layout(), b.layout());
                }
            }
        }
    }

    #[test]
    fn a_unique_operand_is_overwritten_and_a_shared_one_is_not() {
        let fresh = || Tensor::full(&[100, 100], 3i32).unwrap();
        let (a, b) = (fresh(), fresh());
        let ptr = a.as_ptr();
        let out = zip(Sub, a, b.clone()).unwrap();
        assert_eq!(out.as_ptr(), ptr);
        assert!(out.to_vec().unwrap().iter().all(|&x| x == 0));
        // The right operand, transposed, with a shared left one.
        let (a, ptr) = (fresh(), b.as_ptr());
        let out = zip(Sub, a.clone(), b.permute(&[1, 0]).unwrap()).unwrap();
        assert_ne!(out.as_ptr(), ptr);
        drop(out);
        let out = zip(Sub, a.clone(), b).unwrap();
        assert_eq!(out.as_ptr(), ptr);
        assert!(a.to_vec().unwrap().iter().all(|&x| x == 3));
        // Both operands the same tensor.
        let out = zip(Sub, a.clone(), a.clone()).unwrap();
        assert_ne!(out.as_ptr(), a.as_ptr());
    }

    #[test]
    fn a_dense_order_of_axes_is_kept() {
        let t = arange(&[80, 90]).permute(&[1, 0]).unwrap();
        let out = map(Square, t.clone()).unwrap();
        assert_eq!(out.layout().strides(), t.layout().strides());
        assert_eq!(out.route().path, Path::LoopContiguous);
    }

    #[test]
    fn shapes_that_do_not_broadcast_are_errors() {
        let error = zip(Sub, arange(&[3]), arange(&[4])).unwrap_err();
        assert!(error.to_string().contains("sub: shapes [3] and [4]"), "{error}");
    }
}
