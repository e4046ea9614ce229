//! Batched matrix products of elements without a derivative: checks and launches.

use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use cubecl::prelude::*;

use crate::error::{CubeError, Result};
use crate::kernels::element::{
    MaxProduct, MaxSum, MinProduct, MinSum, Preference, Widest, Wrapping, element_kernel,
};
use crate::launch::{Operand, elements, grid, reach};
use crate::product::Semiring;

const KERNEL: &str = "element_product";

/// Rows and columns of a tile; one unit per element.
const SIDE: usize = 16;

/// Kind of elements of [`element_product`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementForm {
    /// `i32` and `i64`: wrapping over (+, ×); over other semirings saturating, with the extreme values as ∞ and −∞,
    /// and over (max, ×) and (min, ×) for nonnegative numbers.
    Integers,
    /// Floats with the number of terms that attain each value.
    Counted,
    /// The best values of each sum, best first, with NaN before numbers; missing ones are the zero of the semiring.
    Best(usize),
}

impl ElementForm {
    /// Largest number of values of [`ElementForm::Best`]: they are kept in registers.
    pub const MOST_BEST: usize = 8;

    /// Returns true if a kernel exists for elements of this type over a semiring.
    pub fn supports(self, semiring: Semiring, dtype: StorageType) -> bool {
        let StorageType::Scalar(elem) = dtype else { return false };
        let float = matches!(
            elem,
            ElemType::Float(FloatKind::F16 | FloatKind::BF16 | FloatKind::F32 | FloatKind::F64)
        );
        match (self, semiring) {
            (_, Semiring::LogSumExp) => false,
            (Self::Integers, _) => matches!(elem, ElemType::Int(IntKind::I32 | IntKind::I64)),
            (_, Semiring::Standard) => false,
            (Self::Counted, Semiring::MaxMin) => false,
            (Self::Counted, _) => float,
            (Self::Best(k), _) => float && (1..=Self::MOST_BEST).contains(&k),
        }
    }
}

/// A batch of matrices of elements.
#[derive(Clone, Debug)]
pub struct ElementOperand {
    /// Numbers `[β, rows, columns]`; with a last axis of `k` values and stride 1 for lists of [`ElementForm::Best`].
    pub values: Operand,
    /// For [`ElementForm::Counted`] the counts of `values`, `u32` in the same layout: `u32::MAX` is an overflow or an
    /// unknown count. `None` means 1.
    pub counts: Option<Operand>,
}

impl ElementOperand {
    /// Sizes and strides of the matrices, and numbers per element.
    fn layout(&self) -> Option<([usize; 3], [usize; 3], usize)> {
        let (shape, strides) = (&self.values.shape, &self.values.strides);
        let width = match shape.len() {
            3 => 1,
            4 if strides[3] == 1 || shape[3] == 1 => shape[3],
            _ => return None,
        };
        let matches = |x: &Operand| x.shape[..] == shape[..3] && x.strides[..] == strides[..3];
        let first = |x: &[usize]| std::array::from_fn(|axis| x[axis]);
        self.counts.as_ref().is_none_or(matches).then(|| (first(shape), first(strides), width))
    }
}

/// Computes `c[β, m, n] = ⊕ₖ a[β, m, k] ⊗ b[β, k, n]` for tensors with any strides; the result is contiguous.
///
/// For [`ElementForm::Counted`] the result has counts; for [`ElementForm::Best`] it has a last axis of k values, and
/// operands may have one.
///
/// # Errors
/// `Unsupported`, `Sizes`, `DType`, `TooLarge`, `Tile`.
pub fn element_product<R: Runtime>(
    client: &ComputeClient<R>,
    kind: ElementForm,
    semiring: Semiring,
    [a, b]: [ElementOperand; 2],
) -> Result<ElementOperand> {
    let dtype = a.values.dtype;
    if b.values.dtype != dtype {
        let dtype = format!("{dtype} and {}", b.values.dtype);
        return Err(CubeError::DType { kernel: KERNEL, dtype });
    }
    if !kind.supports(semiring, dtype) {
        let requested = format!("{kind:?} over {semiring:?} of {dtype}");
        return Err(CubeError::Unsupported { kernel: KERNEL, requested });
    }
    let call = ElementCall { client, kind, semiring, a, b };
    match semiring {
        Semiring::MaxPlus => call.run::<MaxSum>(),
        Semiring::MinPlus => call.run::<MinSum>(),
        Semiring::MaxMul => call.run::<MaxProduct>(),
        Semiring::MinMul => call.run::<MinProduct>(),
        Semiring::MaxMin => call.run::<Widest>(),
        _ => call.run::<Wrapping>(),
    }
}

/// Element types in memory and of the computation, and the least and the greatest number.
fn types(dtype: StorageType, wrapping: bool) -> ([StorageType; 2], [InputScalar; 2]) {
    let StorageType::Scalar(elem) = dtype else { unreachable!("the element type was checked") };
    let same = |dtype: StorageType| [dtype, dtype];
    match elem {
        ElemType::Float(kind) => {
            let wide = match kind {
                FloatKind::F16 | FloatKind::BF16 => ElemType::Float(FloatKind::F32).into(),
                _ => dtype,
            };
            let ends = [f64::NEG_INFINITY, f64::INFINITY].map(|x| InputScalar::new(x, wide));
            ([dtype, wide], ends)
        }
        // Overflow of signed integers is undefined on some devices.
        ElemType::Int(IntKind::I64) if wrapping => {
            let dtype = ElemType::UInt(UIntKind::U64).into();
            (same(dtype), [0u64, u64::MAX].map(|x| InputScalar::new(x, dtype)))
        }
        _ if wrapping => {
            let dtype = ElemType::UInt(UIntKind::U32).into();
            (same(dtype), [0u32, u32::MAX].map(|x| InputScalar::new(x, dtype)))
        }
        ElemType::Int(IntKind::I64) => {
            (same(dtype), [i64::MIN, i64::MAX].map(|x| InputScalar::new(x, dtype)))
        }
        _ => (same(dtype), [i32::MIN, i32::MAX].map(|x| InputScalar::new(x, dtype))),
    }
}

/// A product whose dtype and semiring were checked.
struct ElementCall<'a, R: Runtime> {
    client: &'a ComputeClient<R>,
    kind: ElementForm,
    semiring: Semiring,
    a: ElementOperand,
    b: ElementOperand,
}

impl<R: Runtime> ElementCall<'_, R> {
    fn run<S: Preference>(self) -> Result<ElementOperand> {
        let Self { client, kind, semiring, a, b } = self;
        let counted = kind == ElementForm::Counted;
        let width = if let ElementForm::Best(k) = kind { k } else { 1 };
        let fits = |given: usize| given == 1 || given == width;
        let (Some((x, [ab, ar, ac], aw)), Some((y, [bb, br, bc], bw))) = (a.layout(), b.layout())
        else {
            return Err(mismatch(&a, &b));
        };
        let ([batch, m, k], [batches, rows, n]) = (x, y);
        if batch != batches || k != rows || !fits(aw) || !fits(bw) {
            return Err(mismatch(&a, &b));
        }
        for x in [&a.values, &b.values] {
            reach(KERNEL, &x.shape, &x.strides)?;
        }
        elements(KERNEL, &[batch, m, n, width])?;
        let dtype = a.values.dtype;
        let wrapping = semiring == Semiring::Standard;
        let (dtypes, [low, high]) = types(dtype, wrapping);
        let steps = if aw.max(bw) > 4 { 8 } else { 16 };
        let bytes = SIDE * ((steps + 1) * aw + steps * bw) * dtypes[1].size()
            + if counted { SIDE * (2 * steps + 1) * 4 } else { 8 };
        let hardware = &client.properties().hardware;
        let units = SIDE * SIDE;
        if bytes > hardware.max_shared_memory_size || units > hardware.max_units_per_cube as usize {
            let required = "no more shared memory and units than the device has";
            let tile = format!("{bytes} bytes and {units} units");
            return Err(CubeError::Tile { kernel: KERNEL, required, tile });
        }
        let index: StorageType = ElemType::UInt(UIntKind::U32).into();
        let none = || Operand::empty(client, &[1], index);
        let shape = [batch, m, n];
        let list = [batch, m, n, width];
        let listed = matches!(kind, ElementForm::Best(_));
        let values = Operand::empty(client, if listed { &list } else { &shape }, dtype);
        let counts = counted.then(|| Operand::empty(client, &shape, index));
        let result = ElementOperand { values: values.clone(), counts: counts.clone() };
        let tiles = batch * m.div_ceil(SIDE) * n.div_ceil(SIDE);
        if tiles == 0 {
            return Ok(result);
        }
        let (zero, absorbing) = match semiring {
            Semiring::MinPlus => (high, low),
            Semiring::MinMul => (high, InputScalar::new(0u8, dtypes[1])),
            Semiring::MaxMul | Semiring::Standard => (InputScalar::new(0u8, dtypes[1]), high),
            _ => (low, high),
        };
        let (a_counted, b_counted) = (a.counts.is_some(), b.counts.is_some());
        // SAFETY: indices are masked by sizes that fit the operands; shared memory was checked.
        unsafe {
            element_kernel::launch_unchecked::<S, R>(
                client,
                grid(tiles),
                CubeDim::new_1d(units as u32),
                a.values.arg(),
                a.counts.unwrap_or_else(none).arg(),
                b.values.arg(),
                b.counts.unwrap_or_else(none).arg(),
                values.arg(),
                counts.unwrap_or_else(none).arg(),
                tiles,
                m,
                k,
                n,
                ab,
                ar,
                ac,
                bb,
                br,
                bc,
                zero,
                low,
                high,
                absorbing,
                SIDE,
                steps,
                aw,
                bw,
                width,
                counted,
                a_counted,
                b_counted,
                matches!(dtype, StorageType::Scalar(ElemType::Float(_))),
                wrapping,
                dtypes,
            );
        }
        Ok(result)
    }
}

fn mismatch(a: &ElementOperand, b: &ElementOperand) -> CubeError {
    CubeError::Sizes {
        kernel: KERNEL,
        required: "[β, m, k] and [β, k, n], and lists of as many values as the result has",
        given: [a.values.shape.clone(), b.values.shape.clone()],
    }
}
