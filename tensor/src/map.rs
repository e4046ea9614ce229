//! Elementwise operations: broadcast, allocate or overwrite, run the loop.
//!
//! Operands are taken by value. If one of them is the only owner of memory that the result would
//! fill exactly, the result is written over it. Otherwise the result is row-major, unless no
//! operand is and one of them is dense in another order of axes: then it keeps that order. Axes
//! along which every operand repeats its elements are computed once, and the result repeats them
//! as well: derivatives of sums and means stay as small as their sums.

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use t4a_algebra::Scalar;

use crate::copy;
use crate::error::Result;
use crate::layout::{Dims, Layout, Strides, broadcast_shapes};
use crate::loops::contiguous::{self, Run};
use crate::loops::elementwise::{Block, Operand, for_each_run};
use crate::loops::kernel::{Binary, Flip, Ternary, Unary};
use crate::loops::parallel::SendPtr;
use crate::loops::stage::Scratch;
use crate::loops::written;
use crate::route::{Path, Route};
use crate::storage::Buffer;
use crate::tensor::Tensor;

/// Row-major operands up to this many elements skip the walk over axes: its set-up would cost
/// more than the arithmetic (bench `backend`, row `add 4×4`).
pub(crate) const SMALL: usize = 4096;

/// Results above this many elements are computed from operands in the same order of axes: another
/// order is copied first (bench `backend`, row `add 1024² transposed`).
const CROSSING: usize = 1024;

/// Rows of a small broadcast that are handed out one by one.
const MAX_ROWS: usize = 64;

const CONTIGUOUS: Route = Route::native(Path::LoopContiguous);
const STRIDED: Route = Route::native(Path::LoopStrided);

/// `outᵢ = k(xᵢ)`.
///
/// Cost: one read, one write and one `k` per element.
///
/// # Errors
/// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
pub fn map<T: Scalar, K: Unary<T>>(kernel: K, x: Tensor<T>) -> Result<Tensor<K::Out>> {
    let spec = Spec {
        op: K::NAME,
        cost: K::COST,
        sizes: [size_of::<K::Out>(), size_of::<T>()],
        same_type: [true, same_type::<T, K::Out>()],
        in_place: [true, const { in_place::<T, K::Out>(K::COST) }],
    };
    // SAFETY: the body writes the run with elements of the result, and reads the operand as what it
    // is.
    unsafe {
        let out = spec.run([None, Some(erased(x))], &|out, len, [_, x]| {
            if const { in_place::<T, K::Out>(K::COST) } && x.ptr == out.cast_const() {
                return contiguous::map_in_place(kernel, out.cast::<T>(), len);
            }
            let out = typed::<K::Out>(out, len);
            match run::<T>(x, len) {
                Run::Each(x) => contiguous::map(kernel, x, out),
                Run::Repeat(x) => out.fill(MaybeUninit::new(kernel.apply(x))),
            }
        })?;
        Ok(out.retag())
    }
}

/// `outᵢ = k(aᵢ, bᵢ)` with the operands broadcast to a common shape.
///
/// Cost: two reads, one write and one `k` per element.
///
/// # Errors
/// [`TensorError::ShapeMismatch`](crate::TensorError::ShapeMismatch) if the shapes do not
/// broadcast; `OutOfMemory`.
pub fn zip<T: Scalar, U: Scalar, K: Binary<T, U>>(
    kernel: K,
    a: Tensor<T>,
    b: Tensor<U>,
) -> Result<Tensor<K::Out>> {
    let spec = Spec {
        op: K::NAME,
        cost: K::COST,
        sizes: [size_of::<K::Out>(), size_of::<T>(), size_of::<U>()],
        same_type: [true, same_type::<T, K::Out>(), same_type::<U, K::Out>()],
        in_place: const { [true, in_place::<T, K::Out>(K::COST), in_place::<U, K::Out>(K::COST)] },
    };
    // SAFETY: the body writes the run with elements of the result, and reads the operands as what
    // they are.
    unsafe {
        let out = spec.run([None, Some(erased(a)), Some(erased(b))], &|out, len, [_, a, b]| {
            if const { in_place::<T, K::Out>(K::COST) } && a.ptr == out.cast_const() {
                return contiguous::zip_in_place(kernel, out.cast::<T>(), run(b, len), len);
            }
            if const { in_place::<U, K::Out>(K::COST) } && b.ptr == out.cast_const() {
                return contiguous::zip_in_place(Flip(kernel), out.cast::<U>(), run(a, len), len);
            }
            contiguous::zip(kernel, run::<T>(a, len), run::<U>(b, len), typed(out, len));
        })?;
        Ok(out.retag())
    }
}

/// `outᵢ = k(aᵢ, bᵢ, cᵢ)` with the operands broadcast to a common shape.
///
/// Cost: three reads, one write and one `k` per element.
///
/// # Errors
/// As [`zip`].
pub fn zip3<T: Scalar, U: Scalar, V: Scalar, K: Ternary<T, U, V>>(
    kernel: K,
    a: Tensor<T>,
    b: Tensor<U>,
    c: Tensor<V>,
) -> Result<Tensor<K::Out>> {
    let spec = Spec {
        op: K::NAME,
        cost: K::COST,
        sizes: [size_of::<K::Out>(), size_of::<T>(), size_of::<U>(), size_of::<V>()],
        same_type: [
            true,
            same_type::<T, K::Out>(),
            same_type::<U, K::Out>(),
            same_type::<V, K::Out>(),
        ],
        in_place: [true, false, false, false],
    };
    let operands = [None, Some(erased(a)), Some(erased(b)), Some(erased(c))];
    // SAFETY: the body writes the run with elements of the result, and reads the operands as what
    // they are.
    unsafe {
        let out = spec.run(operands, &|out, len, [_, a, b, c]| {
            // Three operands with two accesses each would be eight loops: repeated elements
            // are spread out instead.
            let out = typed::<K::Out>(out, len);
            let (mut sa, mut sb, mut sc) = (Spread::new(), Spread::new(), Spread::new());
            let most = const { smallest(spread::<T>(), spread::<U>(), spread::<V>()) };
            let mut done = 0;
            while done < len {
                let part = (len - done).min(most);
                let a = sa.slice(run::<T>(a, len), done, part);
                let b = sb.slice(run::<U>(b, len), done, part);
                let c = sc.slice(run::<V>(c, len), done, part);
                contiguous::zip3(kernel, a, b, c, &mut out[done..done + part]);
                done += part;
            }
        })?;
        Ok(out.retag())
    }
}

/// A tensor whose element type the walk does not know.
fn erased<T: Scalar>(x: Tensor<T>) -> Tensor<()> {
    // SAFETY: `()` stands for any type.
    unsafe { x.retag() }
}

const fn smallest(a: usize, b: usize, c: usize) -> usize {
    let ab = if a < b { a } else { b };
    if ab < c { ab } else { c }
}

const fn in_place<T, U>(cost: usize) -> bool {
    contiguous::in_place(cost, size_of::<T>(), size_of::<U>())
}

fn same_type<T: 'static, U: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<U>()
}

/// Bytes in which a repeated element is written out.
const SPREAD_BYTES: usize = 8192;

/// Elements that are written out: of every size at least one.
const fn spread<T>() -> usize {
    let most = SPREAD_BYTES / size_of::<T>();
    if most < 256 { most } else { 256 }
}

/// A run as a slice, with a repeated element written out.
struct Spread<T> {
    scratch: Scratch<SPREAD_BYTES>,
    filled: bool,
    element: PhantomData<T>,
}

impl<T: Scalar> Spread<T> {
    #[inline]
    fn new() -> Self {
        const { t4a_algebra::scalar::assert_storable::<T>() };
        Self { scratch: Scratch::new(), filled: false, element: PhantomData }
    }

    /// `len ≤ spread::<T>()` elements of the run.
    #[inline]
    fn slice<'a>(&'a mut self, run: Run<'a, T>, from: usize, len: usize) -> &'a [T] {
        match run {
            Run::Each(x) => &x[from..from + len],
            Run::Repeat(x) => {
                let first = self.scratch.as_mut_ptr().cast::<MaybeUninit<T>>();
                // SAFETY: the scratch has room for as many elements, aligned for all of them; they
                // are filled just now or were before.
                unsafe {
                    let all = std::slice::from_raw_parts_mut(first, spread::<T>());
                    if !std::mem::replace(&mut self.filled, true) {
                        all.fill(MaybeUninit::new(x));
                    }
                    &written(all)[..len]
                }
            }
        }
    }
}

/// What an elementwise operation is besides its kernel. Entry 0 stands for the result.
struct Spec<const M: usize> {
    op: &'static str,
    cost: usize,
    /// Bytes per element.
    sizes: [usize; M],
    /// Whether the element type is that of the result.
    same_type: [bool; M],
    /// Whether the body finds that its run lies over that of the operand.
    in_place: [bool; M],
}

/// What is done with a run: first byte of the result, its length, the runs of the operands.
type Body<'a, const M: usize> = &'a (dyn Fn(*mut u8, usize, [Block; M]) + Sync);

impl<const M: usize> Spec<M> {
    /// Runs the operation.
    ///
    /// # Safety
    /// The body writes every element of its run, and reads operands as the types they have.
    #[inline]
    unsafe fn run(
        self,
        operands: [Option<Tensor<()>>; M],
        body: Body<'_, M>,
    ) -> Result<Tensor<()>> {
        match little(&self, &operands, body) {
            Some(done) => done,
            // SAFETY: passed on.
            None => unsafe { elementwise(self, operands, body) },
        }
    }
}

/// The result if it is small and the operands row-major: planning would cost more than the
/// arithmetic.
fn little<const M: usize>(
    spec: &Spec<M>,
    operands: &[Option<Tensor<()>>; M],
    body: Body<'_, M>,
) -> Option<Result<Tensor<()>>> {
    let first = |i: usize, out: *mut u8| {
        operands[i].as_ref().map_or(out.cast_const(), |x| x.first(spec.sizes[i]))
    };
    // SAFETY: the buffer was allocated for the layout, and the body writes it.
    let finish =
        |buffer, layout| unsafe { Tensor::from_raw(buffer, layout) }.with_route(CONTIGUOUS);
    if let Some(layout) = small(operands) {
        let (numel, layout) = (layout.numel(), layout.clone().at_start());
        return Some(Buffer::fresh(numel * spec.sizes[0]).map(|(buffer, out)| {
            let block = |i| Block { ptr: first(i, out), repeat: false };
            body(out, numel, std::array::from_fn(block));
            finish(buffer, layout)
        }));
    }
    let Rows { layout, inner, steps } = rows(spec.op, operands)?;
    Some(Buffer::fresh(layout.numel() * spec.sizes[0]).map(|(buffer, out)| {
        for row in 0..layout.numel() / inner {
            let block = |i: usize| {
                let (step, repeat) = steps[i];
                Block { ptr: first(i, out).wrapping_add(row * step * spec.sizes[i]), repeat }
            };
            body(out.wrapping_add(row * inner * spec.sizes[0]), inner, std::array::from_fn(block));
        }
        finish(buffer, layout)
    }))
}

/// Broadcasts the operands, chooses where the result goes and hands out runs of it. Compiled
/// once for all kernels.
///
/// # Safety
/// As [`Spec::run`].
unsafe fn elementwise<const M: usize>(
    spec: Spec<M>,
    mut operands: [Option<Tensor<()>>; M],
    body: Body<'_, M>,
) -> Result<Tensor<()>> {
    let shape = broadcast(spec.op, &operands)?;
    if let Some(part) = still(&operands, &shape) {
        for x in operands.iter_mut().flatten() {
            let lead = shape.len() - x.layout().rank();
            for (axis, _) in part.iter().enumerate().skip(lead).filter(|&(_, &n)| n == 1) {
                let part = x.layout().slice_axis(axis - lead, 0, 1, 1)?;
                // SAFETY: a view.
                *x = unsafe { x.clone().with_layout(part) };
            }
        }
        // SAFETY: passed on; the repeated result is a view.
        return unsafe {
            let out = elementwise(spec, operands, body)?;
            let repeated = out.layout().expand(&shape)?;
            Ok(out.with_layout(repeated))
        };
    }
    let mut strides: [Strides; M] = std::array::from_fn(|_| Strides::new());
    let mut over = None;
    for (i, slot) in operands.iter_mut().enumerate() {
        let Some(x) = slot else { continue };
        strides[i] = if x.layout().shape() == shape.as_slice() {
            x.layout().strides().into()
        } else {
            x.layout().expand(&shape)?.strides().into()
        };
        if over.is_none() && spec.same_type[i] {
            over = replaced(x, &shape, spec.sizes[i]).map(|ptr| (i, ptr));
        }
    }
    let order = match over {
        Some((i, _)) => forward(&shape, &strides[i]),
        None => {
            let layouts = || strides[1..].iter().filter_map(|s| forward(&shape, s));
            match layouts().any(|layout| layout.is_contiguous()) {
                true => None,
                false => layouts().find(Layout::is_dense),
            }
        }
    };
    let order = match order {
        Some(order) => order,
        None => Layout::contiguous(spec.op, &shape, spec.sizes[0])?,
    };
    let steps = |s: &Strides| {
        let axes = order.shape().iter().zip(order.strides()).zip(s);
        axes.filter(|((n, _), _)| **n > 1).all(|((_, order), s)| order == s)
    };
    let direct = |s: &Strides| steps(s) || s.iter().all(|&s| s == 0);
    let route = if strides[1..].iter().all(direct) { CONTIGUOUS } else { STRIDED };
    for (i, slot) in operands.iter_mut().enumerate() {
        let in_place = over.is_some_and(|(index, _)| index == i);
        let Some(x) = slot.as_mut().filter(|_| !in_place) else { continue };
        if order.numel() > CROSSING && crosses(&order, &strides[i]) {
            let lead = shape.len() - x.layout().rank();
            *x = copy::to_order(x, spec.sizes[i], &order.strides()[lead..])?;
            strides[i] = x.layout().expand(&shape)?.strides().into();
            // The copy is ours to write over.
            if over.is_none() && spec.same_type[i] {
                over = replaced(x, &shape, spec.sizes[i]).map(|ptr| (i, ptr));
            }
        }
    }
    let (out, buffer) = match over {
        Some((_, ptr)) => (ptr, None),
        None => {
            let (buffer, ptr) = Buffer::fresh(order.numel() * spec.sizes[0])?;
            (ptr, Some(buffer))
        }
    };
    let out = SendPtr(out);
    let sources = std::array::from_fn(|i| Operand {
        ptr: operands[i].as_ref().map_or(std::ptr::null(), |x| x.first(spec.sizes[i])),
        strides: if i == 0 { order.strides() } else { &strides[i] },
        size: spec.sizes[i],
        aliased: !spec.in_place[i] && over.is_some_and(|(index, _)| index == i),
    });
    // SAFETY: the operands are broadcast to the shape; the result is dense under `order`, and
    // each run of it lies inside.
    unsafe {
        for_each_run(&shape, sources, spec.cost, &|position, len, blocks| {
            body(out.get().wrapping_add(position * spec.sizes[0]), len, blocks);
        });
    }
    let done = match (buffer, over.and_then(|(i, _)| operands[i].take())) {
        // SAFETY: the buffer was allocated for the layout, and every run was written.
        (Some(buffer), _) => unsafe { Tensor::from_raw(buffer, order) }.with_route(route),
        (None, Some(operand)) => operand.with_route(route),
        (None, None) => unreachable!("the result is fresh or lies over an operand"),
    };
    Ok(done)
}

/// The shape of a large result without the axes along which no operand moves, if there are any:
/// these have size 1.
fn still<const M: usize>(operands: &[Option<Tensor<()>>; M], shape: &[usize]) -> Option<Dims> {
    if crate::layout::checked_numel(shape)? <= SMALL {
        return None;
    }
    let moves = |axis: usize, x: &Tensor<()>| {
        let own = (axis + x.layout().rank()).checked_sub(shape.len());
        own.is_some_and(|own| x.layout().shape()[own] > 1 && x.layout().strides()[own] != 0)
    };
    let moved = |axis| operands.iter().flatten().any(|x| moves(axis, x));
    let size = |(axis, &n): (usize, &usize)| if n > 1 && !moved(axis) { 1 } else { n };
    let part: Dims = shape.iter().enumerate().map(size).collect();
    (part.as_slice() != shape).then_some(part)
}

/// Whether the operand has another axis closer together than the innermost one of the result.
fn crosses(order: &Layout, strides: &[isize]) -> bool {
    let axes = || (0..strides.len()).filter(|&axis| order.shape()[axis] > 1);
    let Some(inner) = axes().min_by_key(|&axis| order.strides()[axis]) else { return false };
    let nearest = strides[inner].unsigned_abs();
    axes().any(|axis| (1..nearest).contains(&strides[axis].unsigned_abs()))
}

/// The common shape of the operands.
fn broadcast<const M: usize>(op: &'static str, operands: &[Option<Tensor<()>>; M]) -> Result<Dims> {
    let mut shape = Dims::new();
    for (i, x) in operands.iter().flatten().enumerate() {
        let given = x.layout().shape();
        shape = if i == 0 { Dims::from_slice(given) } else { broadcast_shapes(op, &shape, given)? };
    }
    Ok(shape)
}

/// The layout of the operands if all of them are small, row-major and of one shape.
#[inline]
fn small<const M: usize>(operands: &[Option<Tensor<()>>; M]) -> Option<&Layout> {
    let layout = operands[M - 1].as_ref()?.layout();
    if layout.numel() > SMALL || !layout.is_contiguous() {
        return None;
    }
    // An iterator: comparing slices calls a function.
    let same = |x: &Tensor<()>| x.layout().shape().iter().eq(layout.shape());
    let others = || operands[..M - 1].iter().flatten();
    others().all(|x| same(x) && x.layout().is_contiguous()).then_some(layout)
}

/// Rows of a small result that are handed out one by one.
struct Rows<const M: usize> {
    layout: Layout,
    /// Elements of a row.
    inner: usize,
    /// How far rows of an operand lie apart, and whether a row is one repeated element.
    steps: [(usize, bool); M],
}

/// The rows of a small result, if every operand is row-major and has all rows, or one row or one
/// column for all (bench `backend`, row `add 4×4 by a row`).
fn rows<const M: usize>(op: &'static str, operands: &[Option<Tensor<()>>; M]) -> Option<Rows<M>> {
    if operands.iter().flatten().any(|x| x.layout().numel() > SMALL || !x.layout().is_contiguous())
    {
        return None;
    }
    let shape = broadcast(op, operands).ok()?;
    let layout = Layout::contiguous(op, &shape, 1).ok()?;
    let total = layout.numel();
    if !(1..=SMALL).contains(&total) {
        return None;
    }
    let mut inner = total;
    let mut steps = [(0, false); M];
    for (x, step) in operands.iter().zip(&mut steps) {
        let Some(layout) = x.as_ref().map(Tensor::layout) else { continue };
        let (own, numel) = (layout.shape(), layout.numel());
        let ones = own.iter().take_while(|&&n| n == 1).count();
        let kept = own.len() - own.iter().rev().take_while(|&&n| n == 1).count();
        let lead = shape.len() - own.len();
        let len = if numel == total {
            continue;
        } else if numel == 1 {
            *step = (0, true);
            continue;
        } else if own[ones..] == shape[lead + ones..] {
            numel
        } else if shape[..lead].iter().all(|&n| n == 1) && own[..kept] == shape[lead..lead + kept] {
            *step = (1, true);
            total / numel
        } else {
            return None;
        };
        if inner != total && inner != len {
            return None;
        }
        inner = len;
    }
    if total / inner > MAX_ROWS {
        return None;
    }
    for (x, step) in operands.iter().zip(&mut steps) {
        if x.as_ref().is_some_and(|x| x.layout().numel() == total) {
            step.0 = inner;
        }
    }
    Some(Rows { layout, inner, steps })
}

/// Where the operand starts, if the result may be written over it: it has the shape of the result,
/// nothing else in its memory, and no other owner.
fn replaced(x: &mut Tensor<()>, shape: &[usize], size: usize) -> Option<*mut u8> {
    let dense = |x: &Tensor<()>| forward(shape, x.layout().strides()).is_some_and(|x| x.is_dense());
    if x.shape() == shape && dense(x) { x.first_mut(size) } else { None }
}

/// The strides as a layout, unless some run backwards.
fn forward(shape: &[usize], strides: &[isize]) -> Option<Layout> {
    if strides.iter().any(|&s| s < 0) {
        return None;
    }
    Layout::from_parts(shape, strides, 0, usize::MAX).ok()
}

/// A run of the result.
///
/// # Safety
/// `len` elements of type `U` may be written.
#[inline(always)]
unsafe fn typed<'a, U>(out: *mut u8, len: usize) -> &'a mut [MaybeUninit<U>] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(out.cast(), len) }
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
    fn small_row_major_operands_broadcast_by_rows_columns_and_elements() {
        let pairs: [(&[usize], &[usize]); 9] = [
            (&[4, 5], &[1, 5]),
            (&[4, 5], &[5]),
            (&[4, 5], &[4, 1]),
            (&[4, 5], &[1, 1]),
            (&[4, 5], &[]),
            (&[2, 3, 4], &[3, 1]),
            (&[2, 3, 4], &[2, 1, 1]),
            (&[2, 3, 4], &[2, 3, 1]),
            (&[4, 1], &[1, 5]),
        ];
        for (full, part) in pairs {
            let shape = broadcast_shapes("test", full, part).unwrap();
            // From an offset, as a view.
            let part = [&[2][..], part].concat();
            let part = arange(&part).slice_axis(0, 1, 1, 1).unwrap().squeeze(0).unwrap();
            let full = arange(full);
            let values = |x: &Tensor<i32>| x.expand(&shape).unwrap().to_vec().unwrap();
            let (a, b) = (values(&full), values(&part));
            let want: Vec<i32> = a.iter().zip(&b).map(|(x, y)| x - y).collect();
            let got = zip(Sub, full.clone(), part.clone()).unwrap();
            assert_eq!((got.shape(), got.to_vec().unwrap()), (&shape[..], want), "{part:?}");
            let want: Vec<i32> = a.iter().zip(&b).map(|(x, y)| y - x).collect();
            assert_eq!(zip(Sub, part, full).unwrap().to_vec().unwrap(), want);
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

    #[test]
    fn repeated_axes_are_computed_once() {
        let column = arange(&[80, 1]).expand(&[80, 90]).unwrap();
        let one = Tensor::full(&[1, 1], 3).unwrap().expand(&[80, 90]).unwrap();
        let squares = map(Square, column.clone()).unwrap();
        assert_eq!(squares.layout().strides()[1], 0);
        let want: Vec<i32> = (0..80 * 90).map(|i| (i / 90) * (i / 90) - 3).collect();
        let out = zip(Sub, squares.clone(), one.clone()).unwrap();
        assert_eq!((out.layout().strides()[1], out.to_vec().unwrap()), (0, want));
        // Another operand that moves along the axis: all elements are computed.
        let out = zip(Sub, arange(&[2, 80, 90]), squares).unwrap();
        assert!(out.layout().is_contiguous());
        let want = |i: i32| i - (i % 7200 / 90) * (i % 7200 / 90);
        assert_eq!(out.to_vec().unwrap(), (0..14400).map(want).collect::<Vec<_>>());
        assert_eq!(map(Square, one).unwrap().layout().strides(), [0, 0]);
        assert_eq!(column.to_vec().unwrap()[..91], *[vec![0; 90], vec![1]].concat());
    }
}
