//! Running compositions by an associative function of the caller.

use t4a_diff::{Array, Value};
use t4a_tensor::TensorError;

use super::steps::Flat;
use crate::error::{Result, ScanError};

/// `y_t = x_0 ∘ … ∘ x_t` along an axis of all xs, or `y_t = x_{n−1} ∘ … ∘ x_t`, with `combine(a, b) = a ∘ b` elementwise
/// along the axis.
///
/// Cost: about 2 log₂ n calls of `combine`, on at most 2 n elements in all (Blelloch, "Prefix sums and their applications",
/// 1990).
///
/// # Errors
/// `LengthMismatch` for xs of different sizes; `Tensor` for xs without this axis and for a composition of another shape or dtype;
/// those of `combine`.
pub fn associative<A: Array>(
    combine: &mut impl FnMut(Flat<A>, Flat<A>) -> Result<Flat<A>>,
    xs: Flat<A>,
    axis: usize,
    reverse: bool,
) -> Result<Flat<A>> {
    if let Some(x) = xs.iter().find(|x| x.shape().len() <= axis) {
        let message = format!("axis {axis} of a tensor of shape {:?}", x.shape());
        return Err(TensorError::value("associative_scan", message).into());
    }
    let sizes: Vec<usize> = xs.iter().map(|x| x.shape()[axis]).collect();
    let n = match sizes.first() {
        Some(&n) if sizes.iter().all(|&size| size == n) => n,
        None => return Ok(xs),
        _ => return Err(ScanError::LengthMismatch { given: None, leading: sizes }),
    };
    Scan { combine, axis, reverse }.run(xs, n)
}

struct Scan<'a, F> {
    combine: &'a mut F,
    axis: usize,
    reverse: bool,
}

impl<F> Scan<'_, F> {
    /// Composes pairs, scans those, and completes the elements between.
    fn run<A: Array>(&mut self, xs: Flat<A>, n: usize) -> Result<Flat<A>>
    where
        F: FnMut(Flat<A>, Flat<A>) -> Result<Flat<A>>,
    {
        if n < 2 {
            return Ok(xs);
        }
        let (axis, pairs, odd) = (self.axis, n / 2, n % 2);
        // The element without a partner is the last one in the direction of the scan.
        let first = if self.reverse { odd } else { 0 };
        let [left, right] = [first, first + 1].map(|start| every_second(&xs, axis, start, pairs));
        let (early, late) = if self.reverse { (right, left) } else { (left, right) };
        let reduced = self.composed(early, late)?;
        // At the later position of each pair.
        let scanned = self.run(reduced, pairs)?;
        let rest = pairs + odd - 1;
        let between = if rest == 0 {
            None
        } else {
            let start = if self.reverse { 1 - odd } else { 2 };
            let before = if self.reverse { pairs - rest } else { 0 };
            let before = scanned.iter().map(|y| y.narrow(axis, before, rest)).collect();
            Some(self.composed(before, every_second(&xs, axis, start, rest))?)
        };
        let end = if self.reverse { n - 1 } else { 0 };
        let all = xs.iter().enumerate().map(|(i, x)| {
            let own = x.narrow(axis, end, 1);
            let others = between.as_ref().map(|all| all[i].clone());
            let ends = match (others, self.reverse) {
                (None, _) => vec![own],
                (Some(others), false) => vec![own, others],
                (Some(others), true) => vec![others, own],
            };
            let ends = joined(&ends, axis);
            // Ends of the scan have the position of its first element.
            if self.reverse && odd == 0 {
                alternating(&scanned[i], &ends, axis)
            } else {
                alternating(&ends, &scanned[i], axis)
            }
        });
        Ok(all.collect())
    }

    fn composed<A: Array>(&mut self, a: Flat<A>, b: Flat<A>) -> Result<Flat<A>>
    where
        F: FnMut(Flat<A>, Flat<A>) -> Result<Flat<A>>,
    {
        let required: Vec<_> = b.iter().map(|x| (x.shape(), x.dtype())).collect();
        let all = (self.combine)(a, b)?;
        let given: Vec<_> = all.iter().map(|x| (x.shape(), x.dtype())).collect();
        if given != required {
            let message = format!("combine maps {required:?} to {given:?}");
            return Err(TensorError::value("associative_scan", message).into());
        }
        Ok(all)
    }
}

fn joined<A: Array>(all: &[Value<A>], axis: usize) -> Value<A> {
    Value::cat(all, axis).unwrap_or_else(|| unreachable!("values of one kind"))
}

/// The elements `start, start + 2, …` of each value, `count` of them.
fn every_second<A: Array>(xs: &[Value<A>], axis: usize, start: usize, count: usize) -> Flat<A> {
    let one = |x: &Value<A>| {
        let n = x.shape()[axis];
        let of_pairs = |x: &Value<A>, from: usize, count: usize, member: usize| {
            let shape = x.shape();
            let pairs = [&shape[..axis], &[count, 2], &shape[axis + 1..]].concat();
            let result = [&shape[..axis], &[count], &shape[axis + 1..]].concat();
            let pairs = x.narrow(axis, from, 2 * count).reshape(&pairs);
            pairs.narrow(axis + 1, member, 1).reshape(&result)
        };
        match (start + 2 * count <= n, start) {
            (true, _) => of_pairs(x, start, count, 0),
            (false, 0) if count == 1 => x.narrow(axis, 0, 1),
            (false, 0) => joined(&[of_pairs(x, 0, count - 1, 0), x.narrow(axis, n - 1, 1)], axis),
            (false, _) => of_pairs(x, start - 1, count, 1),
        }
    };
    xs.iter().map(one).collect()
}

/// `a_0, b_0, a_1, b_1, …`; a may have one element more.
fn alternating<A: Array>(a: &Value<A>, b: &Value<A>, axis: usize) -> Value<A> {
    let (shape, count) = (a.shape(), b.shape()[axis]);
    let column = [&shape[..axis], &[count, 1], &shape[axis + 1..]].concat();
    let both = [&shape[..axis], &[2 * count], &shape[axis + 1..]].concat();
    let columns = [a.narrow(axis, 0, count), b.clone()].map(|x| x.reshape(&column));
    let both = joined(&columns, axis + 1).reshape(&both);
    match shape[axis] - count {
        0 => both,
        more => joined(&[both, a.narrow(axis, count, more)], axis),
    }
}
