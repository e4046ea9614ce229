//! Cases (shapes × layouts × dtypes) and the comparison of BurnT4a with Flex, and with backends around it, on them.
//!
//! A case is data plus views, so that both backends build the same strided operand through their
//! own view operations. Values come from a fixed generator; nothing depends on a seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn_backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps};
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{Backend, BoolDType, DType, Slice, TensorData, TensorMetadata, TensorPrimitive};
use burn_flex::{Flex, FlexTensor};
use burn_t4a::{BurnT4a, T4aTensor};

use crate::line::*;

pub const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];
pub const INTS: [DType; 8] =
    [DType::I64, DType::I32, DType::I16, DType::I8, DType::U64, DType::U32, DType::U16, DType::U8];
pub const BOOLS: [DType; 2] = [DType::Bool(BoolDType::Native), DType::Bool(BoolDType::U8)];

/// Shapes of single operands: small, odd, larger than a vector register, larger than a block of
/// the loops, empty, and of size 1.
pub const SHAPES: [&[usize]; 8] =
    [&[1], &[7], &[3, 5], &[2, 3, 4], &[0, 3], &[4, 1, 5], &[70, 65], &[2, 3, 4, 5]];

/// Where the values of an operand come from.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// −3…3.
    Plain,
    /// −3…3 with zeros of both signs, infinities, NaN, and numbers near overflow.
    Special,
    /// 0.1…3.
    Positive,
    /// −0.95…0.95.
    Unit,
    /// Whole numbers −5…5 (0…10 for unsigned dtypes), with many equal ones.
    Whole,
    /// Whole numbers 1…6.
    Count,
    /// Whole numbers in `0..n`.
    Below(usize),
}

impl Values {
    fn at(self, i: usize, dtype: DType) -> f64 {
        // A multiplicative hash in 0…1: neighbours are unrelated, nothing repeats soon.
        let unit =
            ((i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
        match self {
            Values::Plain if dtype.is_float() => 6.0 * unit - 3.0,
            Values::Special if dtype.is_float() => match i % 11 {
                2 => 0.0,
                3 => -0.0,
                5 => f64::INFINITY,
                6 => f64::NEG_INFINITY,
                8 => f64::NAN,
                9 => 60.0 * unit - 30.0,
                10 => 1.0,
                _ => 6.0 * unit - 3.0,
            },
            Values::Positive => 0.1 + 2.9 * unit,
            Values::Unit => 1.9 * unit - 0.95,
            Values::Count => 1.0 + (6.0 * unit).floor(),
            Values::Below(n) => (n as f64 * unit).floor(),
            Values::Plain | Values::Special | Values::Whole => {
                let low = if dtype.is_uint() { 0.0 } else { -5.0 };
                low + (11.0 * unit).floor()
            }
        }
    }
}

/// How an operand lies in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lay {
    RowMajor,
    Transposed,
    Sliced,
    Flipped,
    /// The first axis repeats one row.
    Repeated,
    /// Every axis repeats one element.
    Scalar,
}

pub const LAYS: [Lay; 6] =
    [Lay::RowMajor, Lay::Transposed, Lay::Sliced, Lay::Flipped, Lay::Repeated, Lay::Scalar];

/// An operand: row-major data and how to view it.
#[derive(Clone, Debug)]
pub struct Operand {
    pub data: TensorData,
    pub shape: Vec<usize>,
    pub lay: Lay,
}

impl Operand {
    pub fn new(shape: &[usize], dtype: DType, values: Values, lay: Lay, salt: usize) -> Self {
        let mut base = shape.to_vec();
        match lay {
            Lay::RowMajor | Lay::Flipped => {}
            Lay::Transposed => base.reverse(),
            Lay::Sliced => base.iter_mut().for_each(|size| *size = 2 * *size + 1),
            Lay::Repeated => base[0] = base[0].min(1),
            Lay::Scalar => base.iter_mut().for_each(|size| *size = (*size).min(1)),
        }
        let numel = base.iter().product();
        let values: Vec<f64> = (0..numel).map(|i| values.at(i + 1000 * salt, dtype)).collect();
        Self { data: cast(&values, &base, dtype), shape: shape.to_vec(), lay }
    }

    pub fn row_major(shape: &[usize], dtype: DType, values: Values, salt: usize) -> Self {
        Self::new(shape, dtype, values, Lay::RowMajor, salt)
    }
}

/// Values as data of a dtype, each rounded once.
pub fn cast(values: &[f64], shape: &[usize], dtype: DType) -> TensorData {
    match dtype {
        DType::Bool(_) => {
            let odd: Vec<bool> = values.iter().map(|v| v.rem_euclid(2.0) >= 1.0).collect();
            TensorData::new(odd, shape.to_vec()).convert_dtype(dtype)
        }
        _ => TensorData::new(values.to_vec(), shape.to_vec()).convert_dtype(dtype),
    }
}

/// Operands as tensors of a backend, by the view operations of their kind.
macro_rules! operands {
    ($($kind:ident $Tensor:ident: $from:ident $permute:ident $slice:ident $flip:ident $expand:ident;)*) => {$(
        pub fn $kind<B: Backend>(operand: &Operand) -> $Tensor<B> {
            let x = B::$from(operand.data.clone(), &Default::default());
            let axes: Vec<usize> = (0..operand.shape.len()).rev().collect();
            match operand.lay {
                Lay::RowMajor => x,
                Lay::Transposed => B::$permute(x, &axes),
                Lay::Sliced => {
                    let part = |size: &usize| Slice::new(1, Some(2 * *size as isize + 1), 2);
                    B::$slice(x, &operand.shape.iter().map(part).collect::<Vec<_>>())
                }
                Lay::Flipped => B::$flip(x, &axes),
                Lay::Repeated | Lay::Scalar => B::$expand(x, operand.shape.clone().into()),
            }
        }
    )*};
}

operands! {
    float FloatTensor: float_from_data float_permute float_slice float_flip float_expand;
    int IntTensor: int_from_data int_permute int_slice int_flip int_expand;
    bool BoolTensor: bool_from_data bool_permute bool_slice bool_flip bool_expand;
}

/// A backend whose tensors can be read.
pub trait Side:
    Backend<
        FloatTensorPrimitive: Read,
        IntTensorPrimitive: Read,
        BoolTensorPrimitive: Read,
        QuantizedTensorPrimitive: Read,
    >
{
}

impl<B> Side for B where
    B: Backend<
            FloatTensorPrimitive: Read,
            IntTensorPrimitive: Read,
            BoolTensorPrimitive: Read,
            QuantizedTensorPrimitive: Read,
        >
{
}

/// What an operation returns, as data.
pub trait Read {
    fn read(self) -> Vec<TensorData>;
}

impl<A: Read, C: Read> Read for (A, C) {
    fn read(self) -> Vec<TensorData> {
        let mut out = self.0.read();
        out.extend(self.1.read());
        out
    }
}

impl<A: Read> Read for Option<A> {
    fn read(self) -> Vec<TensorData> {
        self.map(Read::read).unwrap_or_default()
    }
}

impl<A: Read> Read for Vec<A> {
    fn read(self) -> Vec<TensorData> {
        self.into_iter().flat_map(Read::read).collect()
    }
}

impl Read for TensorData {
    fn read(self) -> Vec<TensorData> {
        vec![self]
    }
}

impl<B: Side> Read for TensorPrimitive<B> {
    fn read(self) -> Vec<TensorData> {
        match self {
            TensorPrimitive::Float(x) => x.read(),
            TensorPrimitive::QFloat(x) => x.read(),
        }
    }
}

/// Backends whose floats, integers and truth values are one type.
macro_rules! read {
    ($($Tensor:ident of $B:ident;)*) => {$(
        impl Read for $Tensor {
            fn read(self) -> Vec<TensorData> {
                let dtype = self.dtype();
                let data = if dtype.is_float() {
                    burn_backend::read_sync($B::float_into_data(self))
                } else if dtype.is_bool() {
                    burn_backend::read_sync($B::bool_into_data(self))
                } else {
                    burn_backend::read_sync($B::int_into_data(self))
                };
                vec![data.unwrap()]
            }
        }
    )*};
}

read! {
    T4aTensor of BurnT4a;
    FlexTensor of Flex;
}

/// The operands of one call, and the axis it works along.
#[derive(Clone, Debug)]
pub struct Case {
    pub operands: Vec<Operand>,
    pub dim: usize,
}

impl Case {
    pub fn shape(&self) -> &[usize] {
        &self.operands[0].shape
    }

    pub fn dtype(&self) -> DType {
        self.operands[0].data.dtype()
    }

    pub fn size(&self) -> usize {
        self.shape()[self.dim]
    }

    /// The same values in `f64`: what an operation on them has to come near to, however it rounds
    /// on its way.
    pub fn exact(&self) -> Self {
        let mut case = self.clone();
        for operand in &mut case.operands {
            if operand.data.dtype().is_float() {
                operand.data = operand.data.clone().convert_dtype(DType::F64);
            }
        }
        case
    }

    /// The absolute values in `f64`: of an operation that is a sum of products of its operands, what
    /// the terms of each result add up to.
    pub fn absolute(&self) -> Self {
        let mut case = self.exact();
        for data in case.operands.iter_mut().map(|operand| &mut operand.data) {
            if data.dtype().is_float() {
                let values: Vec<f64> = data.iter::<f64>().map(f64::abs).collect();
                *data = TensorData::new(values, data.shape().clone());
            }
        }
        case
    }

    /// Results of [`Case::exact`] in the dtype of this case, rounded once.
    pub fn round(&self, results: Vec<TensorData>) -> Vec<TensorData> {
        let round = |data: TensorData| {
            if data.dtype().is_float() { data.convert_dtype(self.dtype()) } else { data }
        };
        results.into_iter().map(round).collect()
    }

    /// The case with further operands.
    pub fn and(mut self, operands: impl IntoIterator<Item = Operand>) -> Self {
        self.operands.extend(operands);
        self
    }
}

/// One operand in every shape, layout and dtype.
pub fn unary(dtypes: &[DType], values: Values) -> Vec<Case> {
    let mut out = Vec::new();
    for &dtype in dtypes {
        for shape in SHAPES {
            for lay in LAYS {
                let operands = vec![Operand::new(shape, dtype, values, lay, 0)];
                out.push(Case { operands, dim: 0 });
            }
        }
    }
    out
}

/// [`unary`] along every axis of at least one element.
pub fn along(dtypes: &[DType], values: Values) -> Vec<Case> {
    unary(dtypes, values)
        .into_iter()
        .flat_map(|case| (0..case.shape().len()).map(move |dim| Case { dim, ..case.clone() }))
        .filter(|case| case.size() > 0)
        .collect()
}

/// Two operands in pairs of layouts, and in shapes that broadcast.
pub fn binary(dtypes: &[DType], left: Values, right: Values) -> Vec<Case> {
    let mut out = Vec::new();
    for &dtype in dtypes {
        let mut push = |a: &[usize], la, b: &[usize], lb| {
            let operands =
                vec![Operand::new(a, dtype, left, la, 0), Operand::new(b, dtype, right, lb, 1)];
            out.push(Case { operands, dim: 0 });
        };
        for shape in SHAPES {
            for (i, la) in LAYS.into_iter().enumerate() {
                push(shape, la, shape, LAYS[(i + 1) % LAYS.len()]);
                push(shape, la, shape, la);
                push(shape, Lay::RowMajor, shape, la);
            }
        }
        for (a, b) in [
            (&[3usize, 1][..], &[1usize, 4][..]),
            (&[1, 4], &[3, 4]),
            (&[2, 3, 4], &[2, 1, 4]),
            (&[1, 1], &[70, 65]),
            (&[0, 1], &[1, 5]),
        ] {
            for lay in [Lay::RowMajor, Lay::Transposed, Lay::Flipped] {
                push(a, lay, b, Lay::RowMajor);
                push(b, Lay::RowMajor, a, lay);
            }
        }
    }
    out
}

/// How close results have to be, in units of the last place of the dtype: for 16-bit floats, of the
/// 32-bit floats in which they are computed, and two of their own. Integers and booleans have to be
/// equal.
#[derive(Clone, Copy, Debug)]
pub struct Ulps(pub f64);

/// Exact, also for floats.
pub const EXACT: Ulps = Ulps(0.0);

fn epsilon(dtype: DType) -> f64 {
    dtype.finfo().map_or(0.0, |info| info.epsilon)
}

/// Whether two results are the same tensors within the tolerance; the first difference if not.
pub fn difference(ours: &[TensorData], theirs: &[TensorData], ulps: Ulps) -> Option<String> {
    difference_of_terms(ours, theirs, ulps, None)
}

/// [`difference`] with a tolerance relative to the terms of each result, where they are given: a sum
/// that cancels is as inexact as what it cancels from.
pub fn difference_of_terms(
    ours: &[TensorData],
    theirs: &[TensorData],
    ulps: Ulps,
    terms: Option<&[TensorData]>,
) -> Option<String> {
    if ours.len() != theirs.len() {
        return Some(format!("{} results against {}", ours.len(), theirs.len()));
    }
    for (n, (a, b)) in ours.iter().zip(theirs).enumerate() {
        // Flex forgets in gather and select that bytes are booleans.
        let forgotten = a.dtype().is_bool() && b.dtype() == DType::U8;
        if a.shape() != b.shape() || !(a.dtype() == b.dtype() || forgotten) {
            return Some(format!(
                "{:?} {:?} against {:?} {:?}",
                a.shape(),
                a.dtype(),
                b.shape(),
                b.dtype()
            ));
        }
        // 16-bit floats are computed in 32 bits and rounded at the end.
        let (units, rounding) = match a.dtype() {
            DType::F16 | DType::BF16 => {
                (ulps.0 * epsilon(DType::F32), ulps.0.min(2.0) * epsilon(a.dtype()))
            }
            dtype => (ulps.0 * epsilon(dtype), 0.0),
        };
        let terms: Option<Vec<f64>> = terms.map(|terms| terms[n].iter().collect());
        let exact = |x: i128, y: i128| x == y;
        for (i, (x, y)) in a.iter::<f64>().zip(b.iter::<f64>()).enumerate() {
            let close = if a.dtype().is_float() {
                let size = x.abs().max(y.abs()).max(1e-3);
                let terms = terms.as_ref().map_or(0.0, |terms| terms[i].abs());
                let bound = units * terms.max(size) + rounding * size;
                x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= bound
            } else {
                exact(x as i128, y as i128)
            };
            if !close {
                return Some(format!(
                    "element {i} of {:?} {:?}: {x} against {y}",
                    a.shape(),
                    a.dtype()
                ));
            }
        }
        let wide = matches!(a.dtype(), DType::I64 | DType::U64);
        if wide && a.as_bytes() != b.as_bytes() {
            return Some(format!("{:?} {:?}: 64-bit values differ", a.shape(), a.dtype()));
        }
    }
    None
}

/// The result or the text of the panic.
pub fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        text.or_else(|| payload.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
    })
}

/// Whether Flex reads past the end of an operand.
fn unread(case: &Case) -> bool {
    let empty = |x: &Operand| x.shape.contains(&0) && matches!(x.lay, Lay::Flipped | Lay::Sliced);
    !FLEX_READS_EMPTY_VIEWS && case.operands.iter().any(empty)
}

/// A call as a function of its case, on any backend.
pub trait Row {
    fn run<B: Side>(case: &Case) -> Vec<TensorData>;
}

/// [`Row::run`] on some backend.
pub type Call = fn(&Case) -> Vec<TensorData>;

/// How a row is compared.
pub struct Rule {
    pub ulps: Ulps,
    pub in_f64: bool,
    pub of_terms: bool,
    pub except: fn(&Case) -> bool,
}

/// Compares a call on both sides, and on backends around the engine, which return what it returns. Where
/// Flex is known to be wrong or to panic, ours only has to return; `flex_is_wrong.rs` has the right answers.
pub fn agree<R: Row>(op: &str, cases: impl IntoIterator<Item = Case>, rule: Rule) {
    let cases = cases.into_iter().collect();
    all_agree(op, cases, rule, R::run::<BurnT4a>, R::run::<Flex>, &around::<R>());
}

fn all_agree(
    op: &str,
    cases: Vec<Case>,
    rule: Rule,
    ours: Call,
    flex: Call,
    around: &[(&str, Call)],
) {
    for case in &cases {
        let run = |name: &str, call: Call, case: &Case| {
            caught(|| call(case))
                .unwrap_or_else(|text| panic!("{name} {op} panics on {case:?}: {text}"))
        };
        let ours = run("", ours, case);
        for &(name, call) in around {
            let same = |(x, y): (&TensorData, &TensorData)| {
                (x.dtype(), x.shape(), x.bytes()) == (y.dtype(), y.shape(), y.bytes())
            };
            let theirs = run(name, call, case);
            let equal = ours.len() == theirs.len() && ours.iter().zip(&theirs).all(same);
            assert!(equal, "{op}\n{case:?}\nours {ours:?}\n{name} {theirs:?}");
        }
        if (rule.except)(case) || unread(case) {
            continue;
        }
        let theirs = match rule.in_f64 {
            true => case.round(run("Flex", flex, &case.exact())),
            false => run("Flex", flex, case),
        };
        let terms = rule.of_terms.then(|| flex(&case.absolute()));
        if let Some(text) = difference_of_terms(&ours, &theirs, rule.ulps, terms.as_deref()) {
            panic!("{op}: {text}\n{case:?}\nours {ours:?}\nflex {theirs:?}");
        }
    }
}

/// One test per method, behind the kind of operands that name none: `name: cases, tolerance,
/// |case, operands…| call on B;` where `B` is each backend in turn. `except` tells
/// the cases in which Flex is wrong; `in f64` lets Flex compute in `f64`, because it rounds every
/// intermediate value of a 16-bit operation to 16 bits and we do not; `of terms`, for operations that
/// are sums of products of their operands, measures the tolerance by the terms.
#[macro_export]
macro_rules! conform {
    ($default:ident; $($name:ident: $cases:expr, $ulps:expr, $(in $precision:ident,)? $(of $terms:ident,)? $(except $except:expr,)? |$case:ident $(, $x:ident $(: $kind:ident)?)*| $body:expr;)*) => {$(
        #[test]
        fn $name() {
            use $crate::material::{Case, Read, Row, Rule, Side, agree};
            struct Own;
            impl Row for Own {
                fn run<B: Side>($case: &Case) -> Vec<burn_backend::TensorData> {
                    #[allow(unused_mut, unused_variables)]
                    let mut operands = $case.operands.iter();
                    $(let $x = $crate::conform!(@operand operands, $default $($kind)?);)*
                    Read::read($body)
                }
            }
            let rule = Rule {
                ulps: $ulps,
                in_f64: $crate::conform!(@is $($precision)?),
                of_terms: $crate::conform!(@is $($terms)?),
                except: $crate::conform!(@except $($except)?),
            };
            agree::<Own>(stringify!($name), $cases, rule);
        }
    )*};
    (@operand $operands:ident, $default:ident) => {
        $crate::material::$default::<B>($operands.next().expect("operand"))
    };
    (@operand $operands:ident, $default:ident $kind:ident) => {
        $crate::material::$kind::<B>($operands.next().expect("operand"))
    };
    (@is) => { false };
    (@is f64) => { true };
    (@is terms) => { true };
    (@except) => { |_| false };
    (@except $except:expr) => { $except };
}

/// Slices of the axis of a case, in both directions and with odd bounds.
pub fn slices(case: &Case) -> Vec<Vec<Slice>> {
    let n = case.size() as isize;
    [
        Slice::new(0, None, 1),
        Slice::new(n / 2, Some(n), 1),
        Slice::new(0, None, 2),
        Slice::new(0, None, -1),
        Slice::new(1.min(n - 1), None, -2),
        Slice::new(-1, None, 1),
        Slice::new(0, Some(-1), 1),
        Slice::new(-100, Some(100), 1),
        Slice::new(n, Some(n), 1),
    ]
    .into_iter()
    .map(|slice| {
        let mut out = vec![Slice::full(); case.dim];
        out.push(slice);
        out
    })
    .collect()
}

/// The slice that [`assign_cases`] writes to.
pub fn halves(case: &Case) -> Vec<Slice> {
    let step = if case.dim.is_multiple_of(2) { 2 } else { -2 };
    let mut out = vec![Slice::full(); case.dim];
    out.push(Slice::new(0, None, step));
    out
}

/// Every other position of an axis, and the values for them.
pub fn assign_cases(dtypes: &[DType]) -> Vec<Case> {
    along(dtypes, Values::Plain)
        .into_iter()
        .map(|case| {
            let mut shape = case.shape().to_vec();
            shape[case.dim] = case.size().div_ceil(2);
            let lay = LAYS[shape.iter().sum::<usize>() % LAYS.len()];
            let value = Operand::new(&shape, case.dtype(), Values::Plain, lay, 5);
            case.and([value])
        })
        .collect()
}

/// A mask and values, some of them broadcast.
pub fn mask_cases(dtypes: &[DType]) -> Vec<Case> {
    let mut out = Vec::new();
    for case in unary(dtypes, Values::Plain) {
        for lay in [Lay::RowMajor, Lay::Transposed, Lay::Repeated] {
            let mask = Operand::new(case.shape(), BOOLS[0], Values::Whole, lay, 7);
            let value = Operand::new(case.shape(), case.dtype(), Values::Plain, lay, 8);
            out.push(case.clone().and([mask, value]));
        }
    }
    out
}

/// Indices along an axis, in a shape that depends on the case, of every dtype that an index has;
/// with values of the shape of the result if asked for.
pub fn index_cases(
    dtypes: &[DType],
    shape: impl Fn(&Case) -> Vec<usize>,
    with_values: bool,
) -> Vec<Case> {
    let index_dtypes = [DType::I32, DType::I64, DType::U8, DType::I64];
    let mut out = Vec::new();
    for (i, case) in along(dtypes, Values::Plain).into_iter().enumerate() {
        let shape = shape(&case);
        let (dtype, lay) = (index_dtypes[i % 4], LAYS[i % LAYS.len()]);
        let indices = Operand::new(&shape, dtype, Values::Below(case.size()), lay, 9);
        let mut with = vec![indices];
        if with_values {
            let mut result = case.shape().to_vec();
            if shape.len() == 1 {
                result[case.dim] = shape[0];
            } else {
                result = shape;
            }
            with.push(Operand::new(&result, case.dtype(), Values::Plain, lay, 10));
        }
        out.push(case.and(with));
    }
    out
}

/// Rows of coordinates of one, two or three axes; for a scatter, values, every way of combining
/// (in `dim`), and no position twice.
pub fn nd_cases(dtypes: &[DType], scatter: bool) -> Vec<Case> {
    let mut out = Vec::new();
    for &dtype in dtypes {
        for lay in LAYS {
            for coordinates in 1..=3usize {
                let shape = [3usize, 3, 3, 2];
                let data = Operand::new(&shape, dtype, Values::Plain, lay, 0);
                let rows: Vec<f64> = (0..3)
                    .flat_map(|row| (0..coordinates).map(move |axis| ((row + axis) % 3) as f64))
                    .collect();
                let index = Operand {
                    data: cast(&rows, &[3, coordinates], DType::I64),
                    shape: vec![3, coordinates],
                    lay: Lay::RowMajor,
                };
                let mut values = vec![3];
                values.extend(&shape[coordinates..]);
                let value = Operand::row_major(&values, dtype, Values::Plain, 2);
                let case = Case { operands: vec![data, index], dim: 0 };
                if scatter {
                    out.extend((0..5).map(|dim| Case { dim, ..case.clone().and([value.clone()]) }));
                } else {
                    out.push(case);
                }
            }
        }
    }
    out
}

/// `[1, shape…]`.
pub fn ones_then(shape: &[usize]) -> burn_backend::Shape {
    std::iter::once(1).chain(shape.iter().copied()).collect()
}

/// `[2, shape…]`.
pub fn twice(shape: &[usize]) -> burn_backend::Shape {
    std::iter::once(2).chain(shape.iter().copied()).collect()
}

/// Whether a reduction along the axis of the case has no result.
pub fn empty(case: &Case) -> bool {
    case.shape().contains(&0)
}
