//! Batched matrix products over semirings, and of complex numbers: tiles and launches.

use cubecl::ir::{ElemType, FloatKind, IntKind};
use cubecl::prelude::*;

use crate::error::{CubeError, Result};
use crate::kernels::product::{
    MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Ring, Standard, place_kernel, product_kernel,
};
use crate::kernels::tile::NumberParts;
use crate::launch::{Operand, arguments, elements, grid, reach};
use crate::log_sum::log_sum_product;

const KERNEL: &str = "product";

/// Units of a cube that computes indices of terms.
const UNITS: usize = 256;

/// Blocks of steps in shared memory.
const BLOCKS: usize = 2;

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
    /// (min, ×) over nonnegative numbers.
    MinMul,
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
            Self::MinPlus | Self::MinMul => f64::INFINITY,
        }
    }
}

/// Sizes of the tile that a cube computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Rows and columns of the result, and steps of the sum in shared memory; steps are a multiple of 4.
    pub sizes: [usize; 3],
    /// Rows and columns per unit; columns are a multiple of 4.
    pub unit: [usize; 2],
}

impl Tile {
    /// Tile for (+, ×) and for indices of terms, with at least 256 tiles of this size, on a GPU.
    pub const HUGE: Self = Self { sizes: [128, 128, 16], unit: [8, 8] };
    /// Tile for products with at least 64 tiles of this size, on a GPU.
    pub const WIDE: Self = Self { sizes: [64, 128, 32], unit: [4, 8] };
    /// Tile for products whose matrices fill it.
    pub const LARGE: Self = Self { sizes: [64, 64, 16], unit: [4, 4] };
    /// Tile for small matrices.
    pub const SMALL: Self = Self { sizes: [16, 16, 16], unit: [2, 4] };
    /// Tile for complex products with at least 64 tiles of this size, on a GPU; its sums take as many registers as those
    /// of [`Tile::HUGE`].
    pub const COMPLEX_WIDE: Self = Self { sizes: [64, 128, 16], unit: [4, 8] };
    /// Tile for complex products whose matrices fill it; 32 KiB of shared memory suffice for `f32`.
    pub const COMPLEX_LARGE: Self = Self { sizes: [32, 64, 16], unit: [4, 4] };

    /// Chooses a tile by the size of the result.
    pub fn of(m: usize, n: usize) -> Self {
        if m.max(n) > 32 && m.min(n) > 16 { Self::LARGE } else { Self::SMALL }
    }

    /// Chooses a tile for a complex product by the size of the result.
    fn of_complex(m: usize, n: usize) -> Self {
        if Self::of(m, n) == Self::LARGE { Self::COMPLEX_LARGE } else { Self::SMALL }
    }

    /// Chooses a tile for a batch of products: the first of `large` that fits the device and of which the product has at
    /// least this number, and `other` if there is none. `bytes` as in [`Tile::check`].
    fn on<R: Runtime>(
        client: &ComputeClient<R>,
        [batch, m, n]: [usize; 3],
        bytes: usize,
        large: &[(Self, usize)],
        other: Self,
    ) -> Self {
        let fills = |&(tile, least): &(Self, usize)| {
            let [rows, columns, _] = tile.sizes;
            let tiles = batch * m.div_ceil(rows) * n.div_ceil(columns);
            let fits = || tile.check(client, bytes).is_ok();
            let filled = tiles >= least && m >= rows && n >= columns && fits();
            filled.then_some(tile)
        };
        let found = if is_software(client) { None } else { large.iter().find_map(fills) };
        found.unwrap_or(other)
    }

    pub(crate) fn units(&self) -> usize {
        self.sizes[0] / self.unit[0] * (self.sizes[1] / self.unit[1])
    }

    /// Checks the tile for `bytes` of shared memory per element of its blocks of both operands.
    ///
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
        if bk % 4 != 0 || tn % 4 != 0 {
            return failed("steps and columns of units in fours");
        }
        let units = self.units();
        if bm * bk % (4 * units) != 0 || bk * bn % (4 * units) != 0 {
            return failed("as many loads for each unit");
        }
        if units > hardware.max_units_per_cube as usize {
            return failed("no more units than the device has in a cube");
        }
        let flags = (bm + bn) * size_of::<i32>();
        let blocks = (bm * (bk + 4) + bk * (bn + 4)) * bytes;
        if blocks + flags > hardware.max_shared_memory_size {
            return failed("no more shared memory than the device has");
        }
        Ok(())
    }
}

/// Returns true for software devices, which take longer to compile unrolled steps than to run them.
pub(crate) fn is_software<R: Runtime>(client: &ComputeClient<R>) -> bool {
    client.properties().hardware.num_cpu_cores.is_some()
}

/// Returns true if `max` and `min` of the runtime ignore NaN.
fn ignores_nan<R: Runtime>(client: &ComputeClient<R>) -> bool {
    ["cuda", "hip"].contains(&R::name(client))
}

/// Elements per load: 4 if the lines of all parts along axis `fast` consist of whole vectors of consecutive elements.
fn width(parts: &[Operand], fast: usize) -> usize {
    if parts.iter().all(|x| has_whole_vectors(x, fast)) { 4 } else { 1 }
}

fn has_whole_vectors(x: &Operand, fast: usize) -> bool {
    let whole = x.shape[fast].is_multiple_of(4) && x.strides[fast] == 1;
    let others = (0..3).filter(|&axis| axis != fast).all(|axis| x.strides[axis].is_multiple_of(4));
    let bytes = 4 * x.dtype.size();
    let start = (x.handle.offset_start.unwrap_or(0) as usize).is_multiple_of(bytes);
    whole && others && start
}

/// A product, and the indices of its terms.
pub struct Product {
    /// Values `[β, m, n]`, contiguous.
    pub values: Operand,
    /// Same shape, `i32`: the first k whose term equals the sum, or is NaN; the number of terms if the sum is the
    /// zero of the semiring.
    pub places: Option<Operand>,
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
/// `f16` and `bf16` are computed in `f32`; extrema without indices on CUDA and HIP in their own type, with the same
/// results up to the rounding of a sum or product. Over (+, ×) NaN is not masked and there are no indices, nor over log-sum-exp. `details`
/// requests the indices of terms. A tile is chosen if none is given; sums over
/// log-sum-exp have their own.
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
    let checked = Checked::new(&a, &b)?;
    let [batch, m, _, n] = checked.sizes;
    let bytes = BLOCKS * checked.computed.size();
    let huge = details || semiring == Semiring::Standard;
    let large = [(Tile::HUGE, 256), (Tile::WIDE, 64)];
    let large = if huge { &large[..] } else { &large[1..] };
    let choose = || Tile::on(client, [batch, m, n], bytes, large, Tile::of(m, n));
    let tile = tile.unwrap_or_else(choose);
    tile.check(client, bytes)?;
    let numbers = [NumberParts::REAL; 2];
    let call = Call { client, operands: [vec![a], vec![b]], numbers, checked, details, tile };
    match semiring {
        Semiring::Standard => call.run_real::<Standard>(semiring),
        Semiring::MaxPlus => call.run_real::<MaxPlus>(semiring),
        Semiring::MinPlus => call.run_real::<MinPlus>(semiring),
        Semiring::MaxMul => call.run_real::<MaxMul>(semiring),
        Semiring::MinMul => call.run_real::<MinMul>(semiring),
        Semiring::MaxMin => call.run_real::<MaxMin>(semiring),
        Semiring::LogSumExp => {
            let [a, b] = call.operands.map(|mut parts| parts.swap_remove(0));
            let values = log_sum_product(client, [a, b], call.checked)?;
            Ok(Product { values, places: None })
        }
    }
}

/// A complex operand: real and imaginary part, of the same shape and strides. A missing part is zero.
pub type OperandParts = [Option<Operand>; 2];

/// Returns true if operands of one shape have the same strides along all axes with several elements.
fn have_same_strides(x: &Operand, y: &Operand) -> bool {
    (0..x.shape.len()).all(|axis| x.shape[axis] <= 1 || x.strides[axis] == y.strides[axis])
}

/// The parts of an operand, and their description.
///
/// # Errors
/// `Sizes` for parts of different shapes or strides and for an operand without parts, `DType`.
pub(crate) fn numbers(
    kernel: &'static str,
    parts: OperandParts,
    conj: bool,
) -> Result<(NumberParts, Vec<Operand>)> {
    let first = usize::from(parts[0].is_none());
    let given: Vec<Operand> = parts.into_iter().flatten().collect();
    let failed = |required, given| Err(CubeError::Sizes { kernel, required, given });
    match &given[..] {
        [] => return failed("a part of each operand", [vec![], vec![]]),
        [x, y] if x.shape != y.shape => {
            return failed("parts of one shape", [x.shape.clone(), y.shape.clone()]);
        }
        [x, y] if !have_same_strides(x, y) => {
            return failed("parts with the same strides", [x.strides.clone(), y.strides.clone()]);
        }
        [x, y] if x.dtype != y.dtype => {
            let dtype = format!("{} and {}", x.dtype, y.dtype);
            return Err(CubeError::DType { kernel, dtype });
        }
        _ => {}
    }
    Ok((NumberParts { first, parts: given.len(), conj }, given))
}

/// Both operands of a complex product, and their descriptions.
///
/// # Errors
/// Those of [`numbers`]; `Sizes` if no operand has both parts.
pub(crate) fn complex_operands(
    kernel: &'static str,
    [a, b]: [OperandParts; 2],
    conj: [bool; 2],
) -> Result<([NumberParts; 2], [Vec<Operand>; 2])> {
    let (a_numbers, a) = numbers(kernel, a, conj[0])?;
    let (b_numbers, b) = numbers(kernel, b, conj[1])?;
    if a.len().max(b.len()) < 2 {
        let given = [a[0].shape.clone(), b[0].shape.clone()];
        return Err(CubeError::Sizes { kernel, required: "both parts of an operand", given });
    }
    Ok(([a_numbers, b_numbers], [a, b]))
}

/// Computes `c[β, m, n] = Σₖ a[β, m, k] b[β, k, n]` of complex numbers with any strides, conjugated where `conj` is true,
/// in one launch: real and imaginary part, contiguous. Each part of an operand is read once per tile.
///
/// `f16` and `bf16` are computed in `f32`. A tile is chosen if none is given.
///
/// # Errors
/// `Sizes`, `DType`, `TooLarge`, `Tile`.
pub fn complex_product<R: Runtime>(
    client: &ComputeClient<R>,
    operands: [OperandParts; 2],
    conj: [bool; 2],
    tile: Option<Tile>,
) -> Result<[Operand; 2]> {
    let (numbers, operands) = complex_operands(KERNEL, operands, conj)?;
    let checked = Checked::new(&operands[0][0], &operands[1][0])?;
    let [batch, m, _, n] = checked.sizes;
    let bytes = 2 * BLOCKS * checked.computed.size();
    let large = [(Tile::COMPLEX_WIDE, 64)];
    let choose = || Tile::on(client, [batch, m, n], bytes, &large, Tile::of_complex(m, n));
    let tile = tile.unwrap_or_else(choose);
    tile.check(client, bytes)?;
    let call = Call { client, operands, numbers, checked, details: false, tile };
    let (mut values, _) = call.run::<Standard>(Semiring::Standard);
    let im = values.swap_remove(1);
    Ok([values.swap_remove(0), im])
}

/// A checked product.
struct Call<'a, R: Runtime> {
    client: &'a ComputeClient<R>,
    /// Parts of the operands.
    operands: [Vec<Operand>; 2],
    numbers: [NumberParts; 2],
    checked: Checked,
    details: bool,
    tile: Tile,
}

impl<R: Runtime> Call<'_, R> {
    fn run_real<S: Ring>(self, semiring: Semiring) -> Result<Product> {
        let (mut values, places) = self.run::<S>(semiring);
        Ok(Product { values: values.swap_remove(0), places })
    }

    /// Parts of the values, and indices of terms.
    fn run<S: Ring>(self, semiring: Semiring) -> (Vec<Operand>, Option<Operand>) {
        let Self { client, operands: [a, b], numbers, checked, details, tile } = self;
        let Checked { sizes: [batch, m, k, n], computed } = checked;
        let (dtype, index) = (a[0].dtype, ElemType::Int(IntKind::I32).into());
        let mask = semiring != Semiring::Standard;
        let track = details && mask;
        let native = ignores_nan(client);
        let arithmetic = if native && mask && !track { dtype } else { computed };
        let shape = [batch, m, n];
        let parts = NumberParts::parts_of_product(numbers);
        let values: Vec<Operand> =
            (0..parts).map(|_| Operand::empty(client, &shape, dtype)).collect();
        let places = Operand::empty(client, if track { &shape } else { &[1] }, index);
        let result = (values.clone(), track.then(|| places.clone()));
        if batch * m * n == 0 {
            return result;
        }
        let strides = |x: &Operand| -> [usize; 3] { std::array::from_fn(|i| x.strides[i]) };
        let ([ab, ar, ac], [bb, br, bc]) = (strides(&a[0]), strides(&b[0]));
        let ([bm, bn, bk], [tm, tn]) = (tile.sizes, tile.unit);
        let tiles = batch * m.div_ceil(bm) * n.div_ceil(bn);
        // SAFETY: the tile was checked; indices are masked by sizes that fit the operands.
        unsafe {
            product_kernel::launch_unchecked::<S, R>(
                client,
                grid(tiles),
                CubeDim::new_1d(tile.units() as u32),
                width(&a, 2),
                width(&b, 2),
                arguments(&a),
                arguments(&b),
                arguments(&values),
                places.clone().arg(),
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
                InputScalar::new(semiring.zero(), arithmetic),
                InputScalar::new(f64::NAN, arithmetic),
                bm,
                bn,
                bk,
                tm,
                tn,
                track,
                mask && k > 0,
                ac <= ar,
                bc <= br,
                !is_software(client),
                native,
                numbers,
                [dtype, arithmetic],
            );
            if track {
                place_kernel::launch_unchecked::<S, R>(
                    client,
                    grid((batch * m * n).div_ceil(UNITS)),
                    CubeDim::new_1d(UNITS as u32),
                    a[0].clone().arg(),
                    b[0].clone().arg(),
                    values[0].clone().arg(),
                    places.arg(),
                    batch * m * n,
                    m,
                    k,
                    n,
                    ab,
                    ar,
                    ac,
                    bb,
                    br,
                    bc,
                    bk,
                    dtype == computed,
                    [dtype, computed],
                );
            }
        }
        result
    }
}
