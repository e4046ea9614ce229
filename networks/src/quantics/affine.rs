//! Substitutions `f((A x + b) / s)` of integer indices, digit by digit with carries.
//!
//! From the last digit on, `A xₖ + c = s yₖ + base · c'` with the digits `xₖ`, `yₖ` of all variables, the carry `c`
//! of the digits behind and the carry `c'` of this one. The first carry is `b`. Bonds are the carries
//! that occur and can still end at an allowed one.

use std::collections::HashMap;

use t4a_algebra::Numeric;
use t4a_linalg::LinalgScalar;
use t4a_tensor::Tensor;

use crate::train::{Result, TrainError, TrainOperator};

/// Largest bond: an affine map with more carries is an error before memory is taken.
const MOST: usize = 1 << 14;

/// Values of a function outside of its grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// 0.
    #[default]
    Open,
    /// Those of the index modulo the number of points.
    Periodic,
}

/// `(O f)(x) = f((A x + b) / s)` of integer indices `x` and 0 where the argument is no integer.
///
/// The input has one variable for each row of `A`, the output one for each column, all of `digits` digits; the digits
/// of a level are fused, the first variable the most significant one. [`Grid::place`](super::Grid::place) brings
/// the map onto other layouts. Its transpose adds `f(x)` to the point `(A x + b) / s`.
///
/// ```
/// use t4a_networks::quantics::{Boundary, affine};
/// // (O f)(x, y) = f(x + y, x − y) modulo 4.
/// let map = affine::<f64>(2, 2, &[vec![1, 1], vec![1, -1]], &[0, 0], 1, Boundary::Periodic)?;
/// assert_eq!(map.outputs(), [4, 4]);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
///
/// # Errors
/// `Value` for a base below 2, no digits, `s` of 0, a matrix without rows or columns or with rows of different
/// lengths, and maps with more than 2¹⁴ carries; `Length` for an offset of another length.
pub fn affine<T: LinalgScalar>(
    base: usize,
    digits: usize,
    matrix: &[Vec<i64>],
    offset: &[i64],
    divisor: i64,
    boundary: Boundary,
) -> Result<TrainOperator<T>> {
    let op = "affine";
    if offset.len() != matrix.len() {
        return Err(TrainError::Length { op, required: matrix.len(), given: offset.len() });
    }
    let start = offset.iter().map(|&b| i128::from(b)).collect();
    let rows = matrix.iter().map(|row| row.iter().map(|&a| i128::from(a)).collect()).collect();
    let map = Map { base, digits, matrix: rows, divisor: i128::from(divisor), boundary };
    map.operator(op, &[(start, T::ONE)])
}

/// `(O f)(x) = f(x + offset)` of one variable: bonds of 2.
///
/// # Errors
/// As [`affine`].
pub fn shift<T: LinalgScalar>(
    base: usize,
    digits: usize,
    offset: i64,
    boundary: Boundary,
) -> Result<TrainOperator<T>> {
    affine(base, digits, &[vec![1]], &[offset], 1, boundary)
}

/// `(O f)(x) = f(base^digits − 1 − x)` of one variable: bonds of 1.
///
/// # Errors
/// As [`affine`].
pub fn flip<T: LinalgScalar>(base: usize, digits: usize) -> Result<TrainOperator<T>> {
    let points = u32::try_from(digits).ok().and_then(|n| (base as i64).checked_pow(n));
    match points {
        Some(n) => affine(base, digits, &[vec![-1]], &[n - 1], 1, Boundary::Open),
        None => Err(TrainError::value("flip", format!("{base}^{digits} points exceed 2⁶³"))),
    }
}

/// Rows of `A`, one for each input variable.
pub(super) struct Map {
    pub(super) base: usize,
    pub(super) digits: usize,
    pub(super) matrix: Vec<Vec<i128>>,
    pub(super) divisor: i128,
    pub(super) boundary: Boundary,
}

/// A step from one carry to another: digits of the output and of the input of the map, as sites.
struct Step {
    from: usize,
    to: usize,
    output: usize,
    input: usize,
}

type Carry = Vec<i128>;

impl Map {
    fn check(&self, op: &'static str) -> Result<()> {
        let cols = self.matrix.first().map_or(0, Vec::len);
        let problem = if self.base < 2 {
            format!("the base must be at least 2, given {}", self.base)
        } else if self.digits == 0 {
            "at least 1 digit is required".into()
        } else if self.divisor == 0 {
            "the divisor must not be 0".into()
        } else if cols == 0 || self.matrix.iter().any(|row| row.len() != cols) {
            "a matrix with rows of equal length ≥ 1 is required".into()
        } else if [cols, self.matrix.len()].iter().any(|&n| {
            u32::try_from(n).ok().and_then(|n| self.base.checked_pow(n)).is_none_or(|n| n > 1 << 20)
        }) {
            "sites of more than 2²⁰ fused digits".into()
        } else {
            return Ok(());
        };
        Err(TrainError::value(op, problem))
    }

    /// The weighted sum over the first carries given.
    pub(super) fn operator<T: LinalgScalar>(
        &self,
        op: &'static str,
        starts: &[(Carry, T)],
    ) -> Result<TrainOperator<T>> {
        self.check(op)?;
        // Forward, from the last digit: carries and steps of each level.
        let mut carries: Vec<Carry> = starts.iter().map(|(carry, _)| carry.clone()).collect();
        let mut counts = vec![carries.len()];
        let mut levels: Vec<Vec<Step>> = Vec::with_capacity(self.digits);
        for _ in 0..self.digits {
            let (next, steps) = self.level(&carries);
            if next.len() > MOST {
                let message = format!("more than {MOST} carries between two digits");
                return Err(TrainError::value(op, message));
            }
            carries = next;
            counts.push(carries.len());
            levels.push(steps);
        }
        // Backward: carries that can still end at an allowed one, renumbered.
        let ends = |carry: &Carry| match self.boundary {
            Boundary::Open => carry.iter().all(|&c| c == 0),
            Boundary::Periodic => carry.iter().all(|&c| c % self.divisor == 0),
        };
        let mut alive: Vec<Option<usize>> =
            carries.iter().map(|carry| ends(carry).then_some(0)).collect();
        let mut left = 1;
        let mut cores = Vec::with_capacity(self.digits);
        let size = |n: usize| self.base.pow(n as u32);
        let (outs, ins) = (size(self.matrix[0].len()), size(self.matrix.len()));
        for (level, steps) in levels.iter().enumerate().rev() {
            let mut before: Vec<Option<usize>> = vec![None; counts[level]];
            let mut right = 0;
            for step in steps.iter().filter(|step| alive[step.to].is_some()) {
                if before[step.from].is_none() {
                    before[step.from] = Some(right);
                    right += 1;
                }
            }
            // Without a way to an allowed end the map is zero.
            let first = level == 0;
            let width = if first { 1 } else { right.max(1) };
            let mut core = vec![T::ZERO; left * outs * ins * width];
            for step in steps {
                if let (Some(to), Some(from)) = (alive[step.to], before[step.from]) {
                    let (from, weight) =
                        if first { (0, starts[step.from].1) } else { (from, T::ONE) };
                    let at = ((to * outs + step.output) * ins + step.input) * width + from;
                    core[at] = Numeric::add(core[at], weight);
                }
            }
            cores.push(Tensor::from_vec(core, &[left, outs, ins, width])?);
            (alive, left) = (before, width);
        }
        TrainOperator::new(cores)
    }

    /// Carries after one more digit, and the steps to them.
    fn level(&self, carries: &[Carry]) -> (Vec<Carry>, Vec<Step>) {
        let base = self.base as i128;
        let (vars_in, vars_out) = (self.matrix.len(), self.matrix[0].len());
        let mut known: HashMap<Carry, usize> = HashMap::new();
        let (mut next, mut steps) = (Vec::new(), Vec::new());
        let outputs = self.base.pow(vars_out as u32);
        for (from, carry) in carries.iter().enumerate() {
            for output in 0..outputs {
                let x: Vec<i128> = digits(output, self.base, vars_out);
                // For each input variable the digits that solve its equation, and the carries.
                let solve = |(row, &c): (&Vec<i128>, &i128)| {
                    let value = row.iter().zip(&x).map(|(a, x)| a * x).sum::<i128>() + c;
                    let rest = move |y: i128| value - self.divisor * y;
                    let fits = (0..base).filter(move |&y| rest(y) % base == 0);
                    fits.map(move |y| (y as usize, rest(y) / base)).collect::<Vec<_>>()
                };
                let options: Vec<Vec<(usize, i128)>> =
                    self.matrix.iter().zip(carry).map(solve).collect();
                let mut partial: Vec<(usize, Carry)> = vec![(0, Vec::with_capacity(vars_in))];
                for option in &options {
                    let extend = |(site, carry): &(usize, Carry)| {
                        let (site, carry) = (*site, carry.clone());
                        option.iter().map(move |&(y, c)| {
                            let mut carry = carry.clone();
                            carry.push(c);
                            (site * self.base + y, carry)
                        })
                    };
                    partial = partial.iter().flat_map(extend).collect();
                }
                for (input, carry) in partial {
                    let to = *known.entry(carry).or_insert_with_key(|carry| {
                        next.push(carry.clone());
                        next.len() - 1
                    });
                    steps.push(Step { from, to, output, input });
                }
            }
        }
        (next, steps)
    }
}

/// Digits of a site of `n` fused digits, the most significant first.
fn digits(site: usize, base: usize, n: usize) -> Vec<i128> {
    (0..n).rev().map(|k| (site / base.pow(k as u32) % base) as i128).collect()
}
