//! Operators of some variables on a grid of all variables and any layout.

use t4a_linalg::LinalgScalar;
use t4a_tensor::Tensor;
use t4a_tensor::copy::row_major;
use t4a_tensor::create::eye;

use super::grid::Grid;
use crate::train::{RankRevealingLu, Result, TrainError, TrainOperator, product};

const OP: &str = "place";
/// Pivots below this part of the largest one are rounding errors of the split of a core.
const EXACT: f64 = 1e-14;

impl Grid {
    /// An operator of the variables given, in increasing order, on the sites of this grid: the identity on all
    /// others. Its sites are the levels of digits, of which those of all its variables are fused, as [`affine`](super::affine())
    /// has them.
    ///
    /// # Errors
    /// `Value` for variables that do not exist, are not in increasing order or have different numbers of digits, and for
    /// several variables on a grouped layout; `Sizes` for an operator with other sites.
    pub fn place<T: LinalgScalar>(
        &self,
        operator: &TrainOperator<T>,
        variables: &[usize],
    ) -> Result<TrainOperator<T>> {
        let count = variables.len();
        let increasing = variables.windows(2).all(|pair| pair[0] < pair[1]);
        let levels = variables.first().and_then(|&v| self.digits(v));
        let same = variables.iter().all(|&v| self.digits(v) == levels);
        let (true, true, Some(levels)) = (increasing, same, levels) else {
            let message = format!(
                "variables {variables:?} of {}: one or more in increasing order with as many digits are required",
                self.variables()
            );
            return Err(TrainError::value(OP, message));
        };
        let lhs = vec![self.base().pow(count as u32); levels];
        for rhs in [operator.outputs(), operator.inputs()] {
            if rhs != lhs {
                return Err(TrainError::Sizes { op: OP, lhs, rhs });
            }
        }
        let mut chain = Vec::with_capacity(levels * count);
        for (level, core) in operator.cores().iter().enumerate() {
            let cores = split(core, self.base(), count)?;
            chain.extend(variables.iter().map(|&v| (v, level)).zip(cores));
        }
        let (mut chain, mut cores, mut bond) = (chain.into_iter().peekable(), Vec::new(), 1);
        for digits in self.sites() {
            let mut site = eye::<T>(bond, bond)?.reshape(&[bond, 1, 1, bond])?;
            for digit in digits {
                let core = match chain.next_if(|(next, _)| next == digit) {
                    Some((_, core)) => core,
                    None if variables.contains(&digit.0) => {
                        let message = "the digits of these variables are not interleaved or fused";
                        return Err(TrainError::value(OP, message));
                    }
                    None => identity(bond, self.base())?,
                };
                bond = core.shape()[3];
                site = fuse(&site, &core)?;
            }
            cores.push(site);
        }
        TrainOperator::new(cores)
    }
}

/// The identity on a digit and on the bond that passes it.
fn identity<T: LinalgScalar>(bond: usize, base: usize) -> Result<Tensor<T>> {
    let (one, digit) = (eye::<T>(bond, bond)?, eye::<T>(base, base)?);
    let (one, digit) = (one.to_vec()?, digit.to_vec()?);
    let shape = [bond, base, base, bond];
    Ok(Tensor::from_fn(&shape, |at| {
        let (l, o, i, r) =
            (at / (base * base * bond), at / (base * bond) % base, at / bond % base, at % bond);
        t4a_algebra::Numeric::mul(one[l * bond + r], digit[o * base + i])
    })?)
}

/// Neighbouring digits as one site: `[l, o, i, m]` and `[m, o', i', r]` to `[l, o·o', i·i', r]`.
fn fuse<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let (&[l, o, i, m], &[_, p, j, r]) = (a.shape(), b.shape()) else {
        unreachable!("cores have rank 4")
    };
    let flat = product(&a.reshape(&[l * o * i, m])?, &b.reshape(&[m, p * j * r])?)?;
    let out = flat.reshape(&[l, o, i, p, j, r])?.permute(&[0, 1, 3, 2, 4, 5])?;
    Ok(row_major(&out)?.reshape(&[l, o * p, i * j, r])?)
}

/// A core of `count` fused digits as cores of one digit each.
fn split<T: LinalgScalar>(core: &Tensor<T>, base: usize, count: usize) -> Result<Vec<Tensor<T>>> {
    let (mut rest, mut out) = (core.clone(), Vec::with_capacity(count));
    for behind in (1..count).rev() {
        let (left, right) = (rest.shape()[0], rest.shape()[3]);
        let tail = base.pow(behind as u32);
        let digits = rest.reshape(&[left, base, tail, base, tail, right])?;
        let digits = row_major(&digits.permute(&[0, 1, 3, 2, 4, 5])?)?;
        let matrix = digits.reshape(&[left * base * base, tail * tail * right])?;
        let lu = RankRevealingLu::new(&matrix, EXACT, usize::MAX)?;
        let bond = lu.rank().max(1);
        let rows = if lu.rank() == 0 {
            Tensor::zeros(&[left * base * base, 1])?
        } else {
            lu.left_interpolation()?
        };
        let picked: Vec<T> = {
            let (data, width) = (matrix.to_vec()?, tail * tail * right);
            let rows = if lu.rank() == 0 { &[0][..] } else { lu.rows() };
            rows.iter().flat_map(|&i| data[i * width..][..width].to_vec()).collect()
        };
        out.push(rows.reshape(&[left, base, base, bond])?);
        rest = Tensor::from_vec(picked, &[bond, tail, tail, right])?;
    }
    out.push(rest);
    Ok(out)
}
