//! Single elementwise instructions over a block, by the kernels of the engine.

use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, Numeric, Scalar};
use t4a_tensor::Element;
use t4a_tensor::kernels::activation as act;
use t4a_tensor::kernels::arithmetic as arith;
use t4a_tensor::kernels::compare as cmp;
use t4a_tensor::kernels::fold::Sum;
use t4a_tensor::kernels::math;
use t4a_tensor::loops::fold::row;
use t4a_tensor::loops::kernel::{self, BindRight, Fold};

use super::machine::{self, ChainInst};
use super::{BinaryOp, Compare, ReduceOp, UnaryOp};

/// Float types supported by the machine code generator.
#[cfg(feature = "jit")]
pub(crate) use t4a_jit::MachineFloat as Coded;
/// Float types supported by the machine code generator; every float without the feature `jit`.
#[cfg(not(feature = "jit"))]
pub(crate) trait Coded {}
#[cfg(not(feature = "jit"))]
impl<T: Float> Coded for T {}

/// Element types that are fused: floats whose accumulation type is the type itself.
pub(crate) trait FusedFloat: Float + Element + Numeric<Acc = Self> + Coded {
    /// Vector type of 64 bytes.
    type Vector: Copy;
    /// Executes a chain.
    ///
    /// # Safety
    /// That of [`machine::run`].
    unsafe fn chain(chain: &[ChainInst<Self>], blocks: usize);
    /// Bit pattern.
    #[cfg(all(feature = "jit", target_arch = "x86_64"))]
    fn bit_pattern(self) -> u64;
}

impl FusedFloat for f32 {
    type Vector = machine::F32;
    unsafe fn chain(chain: &[ChainInst<Self>], blocks: usize) {
        // SAFETY: as the caller promises.
        unsafe { machine::on::<Self, 16>(chain, blocks) };
    }
    #[cfg(all(feature = "jit", target_arch = "x86_64"))]
    fn bit_pattern(self) -> u64 {
        self.to_bits().into()
    }
}

impl FusedFloat for f64 {
    type Vector = machine::F64;
    unsafe fn chain(chain: &[ChainInst<Self>], blocks: usize) {
        // SAFETY: as the caller promises.
        unsafe { machine::on::<Self, 8>(chain, blocks) };
    }
    #[cfg(all(feature = "jit", target_arch = "x86_64"))]
    fn bit_pattern(self) -> u64 {
        self.to_bits()
    }
}

struct UnaryChunk<'a, T: Scalar, K: kernel::Unary<T>> {
    kernel: K,
    x: &'a [T],
    out: &'a mut [K::Out],
}

impl<T: Scalar, K: kernel::Unary<T>> Loop for UnaryChunk<'_, T, K> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { kernel, x, out } = self;
        if const { K::PART == 0 } {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = kernel.apply(x);
            }
            return;
        }
        for (x, out) in x.chunks(K::PART.max(1)).zip(out.chunks_mut(K::PART.max(1))) {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = kernel.seed(x);
            }
            kernel.complete(out);
        }
    }
}

struct BinaryChunk<'a, T: Scalar, K: kernel::Binary<T>> {
    kernel: K,
    x: &'a [T],
    y: &'a [T],
    out: &'a mut [K::Out],
}

impl<T: Scalar, K: kernel::Binary<T>> Loop for BinaryChunk<'_, T, K> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((out, &x), &y) in self.out.iter_mut().zip(self.x).zip(self.y) {
            *out = self.kernel.apply(x, y);
        }
    }
}

fn map<T: Scalar, K: kernel::Unary<T>>(kernel: K, x: &[T], out: &mut [K::Out]) {
    dispatch(UnaryChunk { kernel, x, out });
}

macro_rules! unaries {
    ($($name:ident => $kernel:expr;)*) => {
        /// `outᵢ = f(xᵢ)`.
        pub(crate) fn unary<T: FusedFloat>(f: UnaryOp, x: &[T], out: &mut [T]) {
            match f {
                $(UnaryOp::$name => map($kernel, x, out),)*
            }
        }

        /// Work per element, in units of one addition.
        pub(crate) fn unary_cost(f: UnaryOp) -> usize {
            fn of<K: kernel::Unary<f32>>(_: K) -> usize {
                K::COST
            }
            match f {
                $(UnaryOp::$name => of($kernel),)*
            }
        }
    };
}

unaries! {
    Neg => arith::Neg;
    Abs => arith::Abs;
    Exp => math::Exp;
    Ln => math::Ln;
    Ln1p => math::Ln1p;
    Sqrt => math::Sqrt;
    Recip => arith::Recip;
    Square => arith::Square;
    Cube => arith::Cube;
    PowHalf => arith::PowHalf;
    Sin => math::Sin;
    Cos => math::Cos;
    Tan => math::Tan;
    Tanh => math::Tanh;
    Sinh => math::Sinh;
    Cosh => math::Cosh;
    Atan => math::Atan;
    Erf => math::Erf;
    Floor => math::Floor;
    Ceil => math::Ceil;
    Round => math::Round;
    Trunc => math::Trunc;
    Sign => arith::Sign;
    Relu => act::Relu;
    Sigmoid => act::Sigmoid;
    Gelu => act::Gelu;
    LogSigmoid => act::LogSigmoid;
}

macro_rules! binaries {
    ($($name:ident => $kernel:expr;)*) => {
        /// `outᵢ = f(xᵢ, yᵢ)`.
        pub(crate) fn binary<T: FusedFloat>(f: BinaryOp, x: &[T], y: &[T], out: &mut [T]) {
            match f {
                $(BinaryOp::$name => dispatch(BinaryChunk { kernel: $kernel, x, y, out }),)*
            }
        }

        /// `outᵢ = f(xᵢ, c)`.
        pub(crate) fn scalar<T: FusedFloat>(f: BinaryOp, x: &[T], c: T, out: &mut [T]) {
            match f {
                $(BinaryOp::$name => map(BindRight($kernel, c), x, out),)*
            }
        }

        /// Work per element, in units of one addition.
        pub(crate) fn binary_cost(f: BinaryOp) -> usize {
            fn of<K: kernel::Binary<f32>>(_: K) -> usize {
                K::COST
            }
            match f {
                $(BinaryOp::$name => of($kernel),)*
            }
        }
    };
}

binaries! {
    Add => arith::Add;
    Sub => arith::Sub;
    Mul => arith::Mul;
    Div => arith::Div;
    Max => arith::Max;
    Min => arith::Min;
    Pow => arith::Pow;
    Atan2 => arith::Atan2;
    ReluBackward => act::ReluBackward;
    SigmoidBackward => act::SigmoidBackward;
    GeluBackward => act::GeluBackward;
    LogSigmoidBackward => act::LogSigmoidBackward;
}

macro_rules! comparisons {
    ($($name:ident)*) => {
        /// `outᵢ = xᵢ ∘ yᵢ`.
        pub(crate) fn compare<T: FusedFloat>(f: Compare, x: &[T], y: &[T], out: &mut [bool]) {
            match f {
                $(Compare::$name => dispatch(BinaryChunk { kernel: cmp::$name, x, y, out }),)*
            }
        }

        /// `outᵢ = xᵢ ∘ c`.
        pub(crate) fn compare_scalar<T: FusedFloat>(f: Compare, x: &[T], c: T, out: &mut [bool]) {
            match f {
                $(Compare::$name => map(BindRight(cmp::$name, c), x, out),)*
            }
        }
    };
}

comparisons!(Equal NotEqual Greater GreaterEqual Less LessEqual);

/// `min(max(xᵢ, low), high)`.
pub(crate) fn clamp<T: FusedFloat>(x: &[T], low: T, high: T, out: &mut [T]) {
    map(arith::Clamp { low, high }, x, out);
}

/// `xᵢ` where positive, else `c xᵢ`.
pub(crate) fn leaky<T: FusedFloat>(x: &[T], c: T, out: &mut [T]) {
    map(act::LeakyRelu(c), x, out);
}

struct Select<'a, T> {
    x: &'a [T],
    flags: &'a [bool],
    y: &'a [T],
    out: &'a mut [T],
}

impl<T: FusedFloat> Loop for Select<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let operands = self.x.iter().zip(self.flags).zip(self.y);
        for (out, ((&x, &flag), &y)) in self.out.iter_mut().zip(operands) {
            *out = if flag { y } else { x };
        }
    }
}

/// `yᵢ` where the flag holds, else `xᵢ`.
pub(crate) fn select<T: FusedFloat>(x: &[T], flags: &[bool], y: &[T], out: &mut [T]) {
    dispatch(Select { x, flags, y, out });
}

struct FillChunk<'a, T> {
    x: &'a [T],
    flags: &'a [bool],
    c: T,
    out: &'a mut [T],
}

impl<T: FusedFloat> Loop for FillChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (out, (&x, &flag)) in self.out.iter_mut().zip(self.x.iter().zip(self.flags)) {
            *out = if flag { self.c } else { x };
        }
    }
}

/// `c` where the flag holds, else `xᵢ`.
pub(crate) fn fill<T: FusedFloat>(x: &[T], flags: &[bool], c: T, out: &mut [T]) {
    dispatch(FillChunk { x, flags, c, out });
}

/// 1 where the flag holds, else 0.
pub(crate) fn indicator<T: FusedFloat>(flags: &[bool], out: &mut [T]) {
    for (out, &flag) in out.iter_mut().zip(flags) {
        *out = if flag { T::ONE } else { T::ZERO };
    }
}

/// Reduces each row of `n` elements to a scalar.
pub(crate) fn reduce<T: FusedFloat>(f: ReduceOp, x: &[T], n: usize, out: &mut [T]) {
    for (out, x) in out.iter_mut().zip(x.chunks_exact(n)) {
        *out = total(f, x, n);
    }
}

/// Reduction of a row of `n` elements, given its elements or its partial sums.
pub(crate) fn total<T: FusedFloat>(f: ReduceOp, x: &[T], n: usize) -> T {
    let sum = Fold::<T>::finish(Sum, row(Sum, x), n);
    match f {
        ReduceOp::Sum => sum,
        ReduceOp::Mean => t4a_algebra::Real::div(sum, T::from_f64(n as f64)),
    }
}
