//! One instruction over the arena.
//!
//! Sizes up to four are known at compile time: a step of a filter of few states is loads, a handful of
//! multiply-adds and stores. Everything else runs by the loops of the fused groups.

use crate::fuse::kernel::{self as fused, Lane};
use crate::fuse::{Binary, Elementwise};

/// What a kernel reads and writes: offsets of the arena, and sizes.
#[derive(Clone, Debug)]
pub(super) struct Inst<T> {
    pub(super) run: Kernel<T>,
    /// Offsets of the operands.
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) c: usize,
    pub(super) out: usize,
    /// Sizes: elements, or of a product `[batch; m, k] · [k, n]`.
    pub(super) n: usize,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) batch: usize,
    pub(super) scalar: T,
    pub(super) what: Option<Elementwise>,
    /// Where each element comes from.
    pub(super) table: Box<[usize]>,
}

/// # Safety
/// The pointer is that of an arena to which all ranges of the instruction belong; the result overlaps no
/// operand.
pub(super) type Kernel<T> = unsafe fn(*mut T, &Inst<T>);

impl<T: Lane> Inst<T> {
    pub(super) fn new(run: Kernel<T>, operands: [usize; 3], out: usize, n: usize) -> Self {
        let [a, b, c] = operands;
        let (scalar, table) = (T::ZERO, Box::default());
        Self { run, a, b, c, out, n, m: 0, k: 0, batch: 1, scalar, what: None, table }
    }

    /// Whether all that it reads and writes is within `len` elements.
    pub(super) fn fits(&self, len: usize) -> bool {
        let Self { a, b, c, out, n, m, k, batch, .. } = *self;
        let operand = if m > 0 { [batch * m * k, batch * k * n] } else { [n.max(k), n] };
        let result = if m > 0 { batch * m * n } else { n };
        a + operand[0] <= len
            && b + operand[1] <= len
            && c + n <= len
            && out + result <= len
            && self.table.iter().all(|&at| at < len)
    }
}

/// # Safety
/// `at + n` elements are the arena's, and nobody writes to them.
unsafe fn read<'a, T>(arena: *mut T, at: usize, n: usize) -> &'a [T] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(arena.add(at), n) }
}

/// # Safety
/// `at + n` elements are the arena's, and nobody else reads or writes them.
unsafe fn write<'a, T>(arena: *mut T, at: usize, n: usize) -> &'a mut [T] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts_mut(arena.add(at), n) }
}

/// Functions of two numbers that are one instruction.
pub(super) trait Two<T> {
    fn of(a: T, b: T) -> T;
}

macro_rules! twos {
    ($($name:ident |$a:ident, $b:ident| $of:expr;)*) => {$(
        pub(super) enum $name {}
        impl<T: Lane> Two<T> for $name {
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

/// Which operand of two is one number for all.
const NONE: u8 = 0;
const LEFT: u8 = 1;
const RIGHT: u8 = 2;
/// The right one is part of the instruction.
const STATIC: u8 = 3;

/// `outᵢ = f(aᵢ, bᵢ)`; `N` elements, or as many as the instruction says if it is 0.
unsafe fn two<T: Lane, F: Two<T>, const N: usize, const ONE: u8>(arena: *mut T, i: &Inst<T>) {
    let n = if N == 0 { i.n } else { N };
    // SAFETY: ranges of the instruction; the result overlaps no operand.
    unsafe {
        let (a, b, out) = (arena.add(i.a), arena.add(i.b), arena.add(i.out));
        for j in 0..n {
            let x = *a.add(if ONE == LEFT { 0 } else { j });
            let y = match ONE {
                RIGHT => *b,
                STATIC => i.scalar,
                _ => *b.add(j),
            };
            *out.add(j) = F::of(x, y);
        }
    }
}

fn sized<T: Lane, F: Two<T>, const ONE: u8>(n: usize) -> Kernel<T> {
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

/// How two operands of these numbers of elements meet without being laid out; the last: a static one.
fn of_two<T: Lane, F: Two<T>>(n: usize, sizes: [usize; 2], fixed: bool) -> Option<Kernel<T>> {
    Some(match (fixed, sizes) {
        (true, _) => sized::<T, F, STATIC>(n),
        (_, [a, b]) if a == n && b == n => sized::<T, F, NONE>(n),
        (_, [1, b]) if b == n => sized::<T, F, LEFT>(n),
        (_, [a, 1]) if a == n => sized::<T, F, RIGHT>(n),
        _ => return None,
    })
}

/// A kernel for numbers of few elements, if there is one.
pub(super) fn small<T: Lane>(
    what: Elementwise,
    n: usize,
    sizes: [usize; 2],
) -> Option<(Kernel<T>, T)> {
    let (f, scalar) = match what {
        Elementwise::Binary(f) => (f, None),
        Elementwise::Scalar(f, c) => (f, Some(T::from_f64(c))),
        _ => return None,
    };
    let fixed = scalar.is_some();
    let run = match f {
        Binary::Add => of_two::<T, Add>(n, sizes, fixed),
        Binary::Sub => of_two::<T, Sub>(n, sizes, fixed),
        Binary::Mul => of_two::<T, Mul>(n, sizes, fixed),
        Binary::Div => of_two::<T, Div>(n, sizes, fixed),
        _ => None,
    };
    run.map(|run| (run, scalar.unwrap_or(T::ZERO)))
}

/// Any elementwise function of operands of `n` elements. Truth values are 1 and 0.
pub(super) unsafe fn each<T: Lane>(arena: *mut T, i: &Inst<T>) {
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
pub(super) unsafe fn gather<T: Lane>(arena: *mut T, i: &Inst<T>) {
    // SAFETY: ranges and table of the instruction; the result overlaps no operand.
    unsafe {
        let out = arena.add(i.out);
        for (j, &from) in i.table.iter().enumerate() {
            *out.add(j) = *arena.add(from);
        }
    }
}

/// `out = a`.
pub(super) unsafe fn copy<T: Lane>(arena: *mut T, i: &Inst<T>) {
    // SAFETY: ranges of the instruction, which do not overlap.
    unsafe {
        let (a, out) = (arena.add(i.a), arena.add(i.out));
        for j in 0..i.n {
            *out.add(j) = *a.add(j);
        }
    }
}

/// `out[m, n] = scalar · Σₖ a[m, k, n]`, `n` of the instruction being all of the results.
pub(super) unsafe fn sum<T: Lane>(arena: *mut T, i: &Inst<T>) {
    let inner = i.batch;
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

/// `out[m, n] = a[m, k] · b[k, n]` with sizes known at compile time.
unsafe fn product<T: Lane, const M: usize, const K: usize, const N: usize>(
    arena: *mut T,
    i: &Inst<T>,
) {
    // SAFETY: ranges of the instruction; the result overlaps no operand.
    unsafe {
        let (a, b, out) = (arena.add(i.a), arena.add(i.b), arena.add(i.out));
        for r in 0..M {
            for c in 0..N {
                let mut total = (*a.add(r * K)).mul(*b.add(c));
                for k in 1..K {
                    total = (*a.add(r * K + k)).mul(*b.add(k * N + c)).add(total);
                }
                *out.add(r * N + c) = total;
            }
        }
    }
}

/// The same with any sizes, for each of a batch.
unsafe fn products<T: Lane>(arena: *mut T, i: &Inst<T>) {
    let Inst { m, k, n, batch, .. } = *i;
    // SAFETY: ranges of the instruction; the result overlaps no operand.
    let (a, b, out) = unsafe {
        (
            read(arena, i.a, batch * m * k),
            read(arena, i.b, batch * k * n),
            write(arena, i.out, batch * m * n),
        )
    };
    for (t, out) in out.chunks_exact_mut((m * n).max(1)).enumerate() {
        let (a, b) = (&a[t * m * k..][..m * k], &b[t * k * n..][..k * n]);
        for (out, a) in out.chunks_exact_mut(n).zip(a.chunks_exact(k)) {
            out.fill(T::ZERO);
            for (&a, b) in a.iter().zip(b.chunks_exact(n)) {
                out.iter_mut().zip(b).for_each(|(out, &b)| *out = a.mul(b).add(*out));
            }
        }
    }
}

/// The kernel of a product.
pub(super) fn matmul<T: Lane>(batch: usize, m: usize, k: usize, n: usize) -> Kernel<T> {
    macro_rules! table {
        ($($m:literal $k:literal $n:literal;)*) => {
            match (batch, m, k, n) {
                $((1, $m, $k, $n) => product::<T, $m, $k, $n>,)*
                _ => products::<T>,
            }
        };
    }
    table! {
        1 1 1; 1 1 2; 1 1 3; 1 1 4; 2 1 1; 2 1 2; 3 1 1; 3 1 3; 4 1 1; 4 1 4;
        1 2 1; 1 2 2; 1 2 3; 1 2 4; 2 2 1; 2 2 2; 3 2 1; 3 2 3; 4 2 1; 4 2 4; 2 2 3; 3 2 2; 2 2 4; 4 2 2;
        1 3 1; 1 3 2; 1 3 3; 2 3 1; 2 3 2; 2 3 3; 3 3 1; 3 3 2; 3 3 3;
        1 4 1; 1 4 2; 1 4 4; 2 4 1; 2 4 2; 2 4 4; 4 4 1; 4 4 2; 4 4 4;
    }
}
