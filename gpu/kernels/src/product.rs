//! Batched matrix products over semirings: tiles and launches.

use cubecl::ir::{ElemType, FloatKind, IntKind};
use cubecl::prelude::*;

use crate::error::{CubeError, Result};
use crate::extreme::{Lanes, first_nan};
use crate::kernels::product::{
    LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Ring, Standard, product_kernel,
};
use crate::launch::{Operand, elements, grid, reach};

const KERNEL: &str = "product";

/// Semirings with a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Semiring {
    /// (+, ×), in the precision of the elements, without tensor cores, which round `f32`.
    Standard,
    /// (max, +).
    MaxPlus,
    /// (min, +).
    MinPlus,
    /// (max, ×) over nonnegative numbers.
    MaxMul,
    /// (max, min).
    MaxMin,
    /// (log-sum-exp, +).
    LogSumExp,
}

impl Semiring {
    /// Zero of the semiring.
    pub fn zero(self) -> f64 {
        match self {
            Self::Standard | Self::MaxMul => 0.0,
            Self::MaxPlus | Self::MaxMin | Self::LogSumExp => f64::NEG_INFINITY,
            Self::MinPlus => f64::INFINITY,
        }
    }
}

/// Sizes of the tile that a cube computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Rows and columns of the result, and steps of the sum in shared memory.
    pub sizes: [usize; 3],
    /// Rows and columns per unit.
    pub unit: [usize; 2],
}

impl Tile {
    /// Tile for products whose matrices fill it.
    pub const LARGE: Self = Self { sizes: [64, 64, 16], unit: [4, 4] };
    /// Tile for small matrices.
    pub const SMALL: Self = Self { sizes: [16, 16, 16], unit: [2, 2] };

    /// Chooses a tile by the size of the result.
    pub fn of(m: usize, n: usize) -> Self {
        if m.max(n) > 32 && m.min(n) > 16 { Self::LARGE } else { Self::SMALL }
    }

    pub(crate) fn units(&self) -> usize {
        self.sizes[0] / self.unit[0] * (self.sizes[1] / self.unit[1])
    }

    /// True if the steps in shared memory are unrolled: software devices take longer to compile them than to run them.
    pub(crate) fn unrolls<R: Runtime>(&self, client: &ComputeClient<R>) -> bool {
        client.properties().hardware.num_cpu_cores.is_none() && self.sizes[2] <= 16
    }

    /// # Errors
    /// `Tile` if the tile is not a multiple of a unit's share, or exceeds the device's memory.
    pub(crate) fn check<R: Runtime>(&self, client: &ComputeClient<R>, bytes: usize) -> Result<()> {
        let hardware = &client.properties().hardware;
        let failed =
            |required| Err(CubeError::Tile { kernel: KERNEL, required, tile: format!("{self:?}") });
        let ([bm, bn, bk], [tm, tn]) = (self.sizes, self.unit);
        if [bm, bn, bk, tm, tn].contains(&0) || bm % tm != 0 || bn % tn != 0 {
            return failed("units that divide the tile");
        }
        let units = self.units();
        if bm * bk % units != 0 || bk * bn % units != 0 {
            return failed("as many loads for each unit");
        }
        if units > hardware.max_units_per_cube as usize {
            return failed("no more units than the device has in a cube");
        }
        if (bm * (bk + 1) + bk * bn) * bytes > hardware.max_shared_memory_size {
            return failed("no more shared memory than the device has");
        }
        Ok(())
    }
}

/// A product, and the indices of its terms.
pub struct Product {
    /// Values `[β, m, n]`, contiguous.
    pub values: Operand,
    /// Same shape, `i32`: the first k whose term equals the sum, or is NaN; the number of terms if the sum is the
    /// zero of the semiring.
    pub places: Option<Operand>,
    /// For log-sum-exp, `[β, m, n, 2]` in the type of the computation: the largest term `h` of each sum, and
    /// `Σ exp(t − h)`; if h is +∞ the number of terms of +∞, if h is −∞ zero.
    pub parts: Option<Operand>,
}

/// Type in which products of these operands are computed.
///
/// # Errors
/// `DType` for two types, and for elements that are not floats.
pub(crate) fn computed(kernel: &'static str, [a, b]: [&Operand; 2]) -> Result<StorageType> {
    let (StorageType::Scalar(ElemType::Float(kind)), true) = (a.dtype, a.dtype == b.dtype) else {
        let dtype = format!("{} and {}", a.dtype, b.dtype);
        return Err(CubeError::DType { kernel, dtype });
    };
    match kind {
        FloatKind::F16 | FloatKind::BF16 => Ok(ElemType::Float(FloatKind::F32).into()),
        FloatKind::F32 | FloatKind::F64 => Ok(a.dtype),
        _ => Err(CubeError::DType { kernel, dtype: a.dtype.to_string() }),
    }
}

/// Operands of a product whose shapes and dtypes match.
pub(crate) struct Checked {
    /// Sizes `[β, m, k, n]`.
    pub(crate) sizes: [usize; 4],
    /// Element type of the computation.
    pub(crate) computed: StorageType,
}

impl Checked {
    /// # Errors
    /// `Sizes`, `DType`, `TooLarge`.
    pub(crate) fn new(a: &Operand, b: &Operand) -> Result<Self> {
        let sizes = || CubeError::Sizes {
            kernel: KERNEL,
            required: "[β, m, k] and [β, k, n]",
            given: [a.shape.clone(), b.shape.clone()],
        };
        let (&[batch, m, k], &[batches, rows, n]) = (&a.shape[..], &b.shape[..]) else {
            return Err(sizes());
        };
        if batch != batches || k != rows {
            return Err(sizes());
        }
        let computed = computed(KERNEL, [a, b])?;
        reach(KERNEL, &a.shape, &a.strides)?;
        reach(KERNEL, &b.shape, &b.strides)?;
        elements(KERNEL, &[batch, m, n])?;
        Ok(Self { sizes: [batch, m, k, n], computed })
    }
}

/// Computes `c[β, m, n] = ⊕ₖ a[β, m, k] ⊗ b[β, k, n]` for tensors with any strides.
///
/// `f16` and `bf16` are computed in `f32`. Over (+, ×) NaN is not masked and there are no indices. `details`
/// requests the indices of terms, or the parts of sums over log-sum-exp.
///
/// # Errors
/// `Sizes`, `DType`, `TooLarge`, `Tile`.
pub fn product<R: Runtime>(
    client: &ComputeClient<R>,
    semiring: Semiring,
    [a, b]: [Operand; 2],
    details: bool,
    tile: Option<Tile>,
) -> Result<Product> {
    let Checked { sizes: [batch, m, k, n], computed } = Checked::new(&a, &b)?;
    let tile = tile.unwrap_or(Tile::of(m, n));
    tile.check(client, computed.size())?;
    let call = Call { client, semiring, a, b, details, tile, computed, sizes: [batch, m, k, n] };
    match semiring {
        Semiring::Standard => call.run::<Standard>(),
        Semiring::MaxPlus => call.run::<MaxPlus>(),
        Semiring::MinPlus => call.run::<MinPlus>(),
        Semiring::MaxMul => call.run::<MaxMul>(),
        Semiring::MaxMin => call.run::<MaxMin>(),
        Semiring::LogSumExp => call.run::<LogSumExp>(),
    }
}

/// A checked product.
struct Call<'a, R: Runtime> {
    client: &'a ComputeClient<R>,
    semiring: Semiring,
    a: Operand,
    b: Operand,
    details: bool,
    tile: Tile,
    computed: StorageType,
    sizes: [usize; 4],
}

impl<R: Runtime> Call<'_, R> {
    fn run<S: Ring>(self) -> Result<Product> {
        let Self { client, semiring, a, b, details, tile, computed, sizes } = self;
        let [batch, m, k, n] = sizes;
        let (dtype, index) = (a.dtype, ElemType::Int(IntKind::I32).into());
        let mask = semiring != Semiring::Standard;
        let track = details && mask;
        let shared = semiring == Semiring::LogSumExp;
        let shape = [batch, m, n];
        let none = || Operand::empty(client, &[1], index);
        let values = Operand::empty(client, &shape, dtype);
        let by_place = track && !shared;
        let kept = if by_place { Operand::empty(client, &shape, index) } else { none() };
        let parts: &[usize] = if track && shared { &[batch, m, n, 2] } else { &[1] };
        let parts = Operand::empty(client, parts, computed);
        let result = Product {
            values: values.clone(),
            places: by_place.then(|| kept.clone()),
            parts: (track && shared).then(|| parts.clone()),
        };
        if batch * m * n == 0 {
            return Ok(result);
        }
        let strides = |x: &Operand| -> [usize; 3] { std::array::from_fn(|i| x.strides[i]) };
        let ([ab, ar, ac], [bb, br, bc]) = (strides(&a), strides(&b));
        let (rows, columns) = match mask && k > 0 {
            true => {
                let rows = Lanes { sizes: [batch, k, m], strides: [ab, ac, ar] };
                let columns = Lanes { sizes: [batch, k, n], strides: [bb, br, bc] };
                (first_nan(client, a.clone(), rows)?, first_nan(client, b.clone(), columns)?)
            }
            false => (none(), none()),
        };
        let ([bm, bn, bk], [tm, tn]) = (tile.sizes, tile.unit);
        let tiles = batch * m.div_ceil(bm) * n.div_ceil(bn);
        // SAFETY: the tile was checked; indices are masked by sizes that fit the operands.
        unsafe {
            product_kernel::launch_unchecked::<S, R>(
                client,
                grid(tiles),
                CubeDim::new_1d(tile.units() as u32),
                a.arg(),
                b.arg(),
                rows.arg(),
                columns.arg(),
                values.arg(),
                kept.arg(),
                parts.arg(),
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
                InputScalar::new(semiring.zero(), computed),
                InputScalar::new(f64::NAN, computed),
                bm,
                bn,
                bk,
                tm,
                tn,
                track,
                shared,
                mask && k > 0,
                ac <= ar,
                bc <= br,
                tile.unrolls(client),
                [dtype, computed],
            );
        }
        Ok(result)
    }
}
