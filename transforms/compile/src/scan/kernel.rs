//! Kernels: one instruction over the arena each.
//!
//! Binary functions of few elements are compiled for their size, since a step of a filter with few states consists of a few
//! loads, multiply-adds and stores. Other elementwise functions use the loops of fused groups, products those of `products`.

use std::marker::PhantomData;

use t4a_algebra::simd::{Loop, dispatch};

use super::products::Sizes;
use crate::fuse::kernel::{self as fused, FusedFloat};
use crate::fuse::{BinaryOp, Elementwise};

/// Operation of a kernel, as needed by the machine code generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelKind {
    /// The elementwise function `ArenaInst::what`. The flags mark operands with one element for all results.
    Each([bool; 2]),
    Gather,
    Copy,
    Sum,
    Product,
}

/// Kernel call: offsets and sizes of the ranges of the arena that it reads and writes.
#[derive(Clone, Debug)]
pub(super) struct ArenaInst<T> {
    pub(super) run: KernelFn<T>,
    /// Read by the machine code generator only.
    #[cfg_attr(not(feature = "jit"), allow(dead_code))]
    pub(super) kind: KernelKind,
    /// Offsets of the operands.
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) c: usize,
    pub(super) out: usize,
    /// Number of elements of the result (`n`) and, for sums, of the operand (`k`). The size of the axes behind the summed
    /// axis is `inner`.
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) inner: usize,
    /// Sizes of a product.
    pub(super) sizes: Sizes,
    pub(super) scalar: T,
    pub(super) what: Option<Elementwise>,
    /// Offset of the source of each element, for gathers.
    pub(super) table: Box<[usize]>,
}

/// # Safety
/// The pointer is the start of an arena that contains all ranges of the instruction; the result overlaps no operand.
pub(super) type KernelFn<T> = unsafe fn(*mut T, &ArenaInst<T>);

impl<T: FusedFloat> ArenaInst<T> {
    pub(super) fn new(
        (run, kind): (KernelFn<T>, KernelKind),
        [a, b, c]: [usize; 3],
        out: usize,
        n: usize,
    ) -> Self {
        let (scalar, table) = (T::ZERO, Box::default());
        let sizes = Sizes::default();
        Self { run, kind, a, b, c, out, n, k: 0, inner: 1, sizes, scalar, what: None, table }
    }

    /// True if all elements that it reads or writes have offsets below `len`.
    pub(super) fn fits(&self, len: usize) -> bool {
        let Self { a, b, c, out, n, k, sizes, .. } = *self;
        let [of_a, of_b, of_out] = if sizes.batch > 0 { sizes.lens() } else { [n.max(k), n, n] };
        a + of_a <= len
            && b + of_b <= len
            && c + n <= len
            && out + of_out <= len
            && self.table.iter().all(|&at| at < len)
    }
}

/// # Safety
/// Elements `at .. at + n` are inside the arena and are not written during the lifetime of the slice.
unsafe fn read<'a, T>(arena: *mut T, at: usize, n: usize) -> &'a [T] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(arena.add(at), n) }
}

/// # Safety
/// Elements `at .. at + n` are inside the arena and are not accessed otherwise during the lifetime of the slice.
unsafe fn write<'a, T>(arena: *mut T, at: usize, n: usize) -> &'a mut [T] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts_mut(arena.add(at), n) }
}

/// Binary functions that compile to one machine instruction.
pub(super) trait Two<T> {
    fn of(a: T, b: T) -> T;
}

macro_rules! twos {
    ($($name:ident |$a:ident, $b:ident| $of:expr;)*) => {$(
        pub(super) enum $name {}
        impl<T: FusedFloat> Two<T> for $name {
            #[inline(always)]
            fn of($a: T, $b: T) -> T {
                $of
            }
        }
    )*};
}

twos! {
    Add |a, b| t4a_algebra::Numeric::add(a, b);
    Sub |a, b| t4a_algebra::Numeric::sub(a, b);
    Mul |a, b| t4a_algebra::Numeric::mul(a, b);
    Div |a, b| t4a_algebra::Real::div(a, b);
}

/// Values of the parameter `ONE`: the operand that is broadcast from one element.
const NONE: u8 = 0;
const LEFT: u8 = 1;
const RIGHT: u8 = 2;
/// The right operand is the constant `ArenaInst::scalar`.
const STATIC: u8 = 3;

/// `outᵢ = f(aᵢ, bᵢ)` for `N` elements, or for `i.n` elements if N = 0.
unsafe fn two<T: FusedFloat, F: Two<T>, const N: usize, const ONE: u8>(
    arena: *mut T,
    i: &ArenaInst<T>,
) {
    let each =
        ElementLoop::<T, F, ONE> { arena, i, n: if N == 0 { i.n } else { N }, of: PhantomData };
    if N == 0 { dispatch(each) } else { each.run() }
}

struct ElementLoop<'a, T, F, const ONE: u8> {
    arena: *mut T,
    i: &'a ArenaInst<T>,
    n: usize,
    of: PhantomData<F>,
}

impl<T: FusedFloat, F: Two<T>, const ONE: u8> Loop for ElementLoop<'_, T, F, ONE> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { arena, i, n, .. } = self;
        // SAFETY: ranges of the instruction; the result overlaps no operand.
        unsafe {
            let (a, b) = (arena.add(i.a).cast_const(), arena.add(i.b).cast_const());
            let out = std::slice::from_raw_parts_mut(arena.add(i.out), n);
            for (j, out) in out.iter_mut().enumerate() {
                let x = *a.add(if ONE == LEFT { 0 } else { j });
                let y = match ONE {
                    RIGHT => *b,
                    STATIC => i.scalar,
                    _ => *b.add(j),
                };
                *out = F::of(x, y);
            }
        }
    }
}

fn sized<T: FusedFloat, F: Two<T>, const ONE: u8>(n: usize) -> KernelFn<T> {
    match n {
        1 => two::<T, F, 1, ONE>,
        2 => two::<T, F, 2, ONE>,
        3 => two::<T, F, 3, ONE>,
        4 => two::<T, F, 4, ONE>,
        6 => two::<T, F, 6, ONE>,
        8 => two::<T, F, 8, ONE>,
        9 => two::<T, F, 9, ONE>,
        16 => two::<T, F, 16, ONE>,
        _ => two::<T, F, 0, ONE>,
    }
}

/// Kernel for operands with `sizes` elements, one of which may be broadcast from one element. `fixed`: the right operand is
/// a constant. `None` if another broadcast is required.
fn of_two<T: FusedFloat, F: Two<T>>(
    n: usize,
    sizes: [usize; 2],
    fixed: bool,
) -> Option<(KernelFn<T>, KernelKind)> {
    let (run, one) = match (fixed, sizes) {
        (true, _) => (sized::<T, F, STATIC>(n), [false; 2]),
        (_, [a, b]) if a == n && b == n => (sized::<T, F, NONE>(n), [false; 2]),
        (_, [1, b]) if b == n => (sized::<T, F, LEFT>(n), [true, false]),
        (_, [a, 1]) if a == n => (sized::<T, F, RIGHT>(n), [false, true]),
        _ => return None,
    };
    Some((run, KernelKind::Each(one)))
}

/// Size-specialised kernel of a binary function, with its constant; `None` for functions without one.
pub(super) fn small<T: FusedFloat>(
    what: Elementwise,
    n: usize,
    sizes: [usize; 2],
) -> Option<((KernelFn<T>, KernelKind), T)> {
    let (f, scalar) = match what {
        Elementwise::Binary(f) => (f, None),
        Elementwise::Scalar(f, c) => (f, Some(T::from_f64(c))),
        _ => return None,
    };
    let fixed = scalar.is_some();
    let run = match f {
        BinaryOp::Add => of_two::<T, Add>(n, sizes, fixed),
        BinaryOp::Sub => of_two::<T, Sub>(n, sizes, fixed),
        BinaryOp::Mul => of_two::<T, Mul>(n, sizes, fixed),
        BinaryOp::Div => of_two::<T, Div>(n, sizes, fixed),
        _ => None,
    };
    run.map(|run| (run, scalar.unwrap_or(T::ZERO)))
}

/// [`apply`] to operands of `n` elements.
pub(super) unsafe fn each<T: FusedFloat>(arena: *mut T, i: &ArenaInst<T>) {
    let Some(what) = i.what else { return };
    // SAFETY: ranges of the instruction; the result overlaps no operand.
    let (a, b, c, out) = unsafe {
        (
            read(arena, i.a, i.n),
            read(arena, i.b, i.n),
            read(arena, i.c, i.n),
            write(arena, i.out, i.n),
        )
    };
    apply(what, [a, b, c], out);
}

/// Applies an elementwise function. Booleans are represented by 1 and 0.
pub(super) fn apply<T: FusedFloat>(what: Elementwise, [a, b, c]: [&[T]; 3], out: &mut [T]) {
    let of = T::from_f64;
    let truth = |x: bool| if x { T::ONE } else { T::ZERO };
    match what {
        Elementwise::Unary(f) => fused::unary(f, a, out),
        Elementwise::Binary(f) => fused::binary(f, a, b, out),
        Elementwise::Scalar(f, y) => fused::scalar(f, a, of(y), out),
        Elementwise::Clamp(low, high) => fused::clamp(a, of(low), of(high), out),
        Elementwise::Leaky(slope) => fused::leaky(a, of(slope), out),
        Elementwise::Compare(f) => {
            let pairs = a.iter().zip(b);
            out.iter_mut().zip(pairs).for_each(|(out, (&x, &y))| *out = truth(f.holds(x, y)));
        }
        Elementwise::CompareScalar(f, y) => {
            let y = of(y);
            out.iter_mut().zip(a).for_each(|(out, &x)| *out = truth(f.holds(x, y)));
        }
        Elementwise::Select => {
            for (j, out) in out.iter_mut().enumerate() {
                *out = if b[j] == T::ZERO { a[j] } else { c[j] };
            }
        }
        Elementwise::Fill(y) => {
            let y = of(y);
            for (j, out) in out.iter_mut().enumerate() {
                *out = if b[j] == T::ZERO { a[j] } else { y };
            }
        }
        Elementwise::Indicator => out.copy_from_slice(a),
        Elementwise::Reduce(..) => unreachable!("reductions have a kernel of their own"),
    }
}

/// `outᵢ = arena[tableᵢ]`.
pub(super) unsafe fn gather<T: FusedFloat>(arena: *mut T, i: &ArenaInst<T>) {
    // SAFETY: ranges and table of the instruction; the result overlaps no operand.
    unsafe {
        let out = arena.add(i.out);
        for (j, &from) in i.table.iter().enumerate() {
            *out.add(j) = *arena.add(from);
        }
    }
}

/// `out = a`.
pub(super) unsafe fn copy<T: FusedFloat>(arena: *mut T, i: &ArenaInst<T>) {
    // SAFETY: ranges of the instruction, which do not overlap.
    unsafe {
        let (a, out) = (arena.add(i.a), arena.add(i.out));
        for j in 0..i.n {
            *out.add(j) = *a.add(j);
        }
    }
}

/// `out[m, i] = Σₖ a[m, k, i] / scalar` with i below `inner`; `ArenaInst::n` is the number of results, `ArenaInst::k` that of
/// the elements of a.
pub(super) unsafe fn sum<T: FusedFloat>(arena: *mut T, i: &ArenaInst<T>) {
    let inner = i.inner;
    let terms = i.k / i.n.max(1);
    // SAFETY: ranges of the instruction; the result overlaps no operand.
    let (a, out) = unsafe { (read(arena, i.a, i.k), write(arena, i.out, i.n)) };
    for (j, out) in out.iter_mut().enumerate() {
        let first = j / inner * inner * terms + j % inner;
        let mut total = a[first];
        for t in 1..terms {
            total = total.add(a[first + t * inner]);
        }
        *out = t4a_algebra::Real::div(total, i.scalar);
    }
}
