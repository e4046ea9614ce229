//! `H_t = A_t H_{t−1} + B_t` with small matrices.

use t4a_algebra::Float;
use t4a_algebra::parallel;
use t4a_algebra::simd::{Loop, dispatch};
use t4a_diff::{
    Array, Cotangents, Dual, Eager, Keep, Meta, OnBatch, Operation, Outcome, Reverse, Value,
};
use t4a_tensor::{Result, TensorError};

use crate::operand::{self, computed_in, elements, narrow, wide};
use crate::recurrence::{before, zero};

/// `H_t = A_t H_{t−1} + B_t`.
///
/// Shapes: `A: […, n, d, d]`, `B: […, n, d, k]`, with `initial` also `H₀: […, 1, d, k]` (otherwise H₀ = 0); the result
/// has the shape of B. Vectors have k = 1. With `reverse` time runs from the end of its axis.
///
/// The rule: `Λ_t = H̄_t + A_{t+1}ᵀ Λ_{t+1}`, `Ā_t = Λ_t H_{t−1}ᵀ`, `B̄_t = Λ_t`, `H̄₀ = A₁ᵀ Λ₁`.
///
/// Cost: `2 d² k` flops per step; products with d = 1 to 4 and 8 and k = 1 are unrolled; the sequences of a batch are
/// distributed over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MatrixRecurrence {
    /// Time runs from the end of its axis.
    pub reverse: bool,
    /// H₀ is an operand.
    pub initial: bool,
}

/// The axis of time.
fn time<A: Array>(b: &A) -> usize {
    b.shape().len() - 3
}

impl MatrixRecurrence {
    fn of<A: Array>(&self, inputs: Vec<A>) -> Result<A> {
        let inputs: Vec<Value<A>> = inputs.into_iter().map(Value::Float).collect();
        Ok(A::apply(self, &inputs, &vec![false; inputs.len()])?.results.swap_remove(0))
    }

    fn states_before<A: Array>(&self, h: &A, h0: Option<&A>) -> A {
        let first = h0.map_or_else(|| zero(h, time(h)), A::clone);
        before(h, &first, time(h), self.reverse)
    }

    fn first<A: Array>(&self, x: &A) -> A {
        let n = x.shape()[time(x)];
        x.narrow(time(x), if self.reverse { n - 1 } else { 0 }, 1)
    }

    /// Cotangents of all operands, given `lambda`, the cotangent of B.
    fn cotangents<A: Array>(&self, reverse: &Reverse<'_, A>, lambda: A) -> Cotangents<A> {
        let (kept, wanted) = (reverse.kept, reverse.wanted);
        let h0 = (self.initial && wanted[0]).then(|| kept.float(2));
        let of_a = || lambda.matmul(&self.states_before(kept.result(0), h0).transpose());
        let of_h0 = || self.first(kept.float(0)).transpose().matmul(&self.first(&lambda));
        let empty = lambda.shape()[time(&lambda)] == 0;
        let mut all = vec![wanted[0].then(of_a)];
        let of_h0 = (wanted.get(2) == Some(&true) && !empty).then(of_h0);
        all.push(Some(lambda));
        if self.initial {
            all.push(of_h0);
        }
        all
    }
}

impl Operation for MatrixRecurrence {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "matrix_recurrence"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([2 + usize::from(self.initial), 1])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let op = self.name();
        operand::count(op, inputs, 2 + self.initial as usize)?;
        operand::floats(op, inputs)?;
        let (a, b) = (&inputs[0].shape, &inputs[1].shape);
        let fits = match (&a[..], &b[..]) {
            ([x @ .., d, d2], [y @ .., d3, _]) => x == y && !x.is_empty() && d == d2 && d == d3,
            _ => false,
        };
        if !fits {
            return Err(TensorError::shapes(op, a, b, "A […, n, d, d] and B […, n, d, k]"));
        }
        if let Some(h0) = inputs.get(2) {
            let mut first = b.clone();
            first[b.len() - 3] = 1;
            if h0.shape != first {
                return Err(TensorError::shapes(op, b, &h0.shape, "H₀ […, 1, d, k]"));
            }
        }
        Ok(vec![inputs[1].clone()])
    }

    fn keep(&self, tracked: &[bool]) -> Keep {
        let keep = Keep::default().inputs(&[0]);
        match tracked[0] {
            true if self.initial => keep.inputs(&[2]).results(&[0]),
            true => keep.results(&[0]),
            false => keep,
        }
    }

    /// Sequential definition from [`Array`] operations.
    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let (a, b) = (inputs[0].float(), inputs[1].float());
        let axis = time(b);
        let n = b.shape()[axis];
        if n == 0 {
            return Ok(b.clone().into());
        }
        let mut h = inputs.get(2).map_or_else(|| zero(b, axis), |h0| h0.float().clone());
        let mut all = Vec::with_capacity(n);
        for k in 0..n {
            let t = if self.reverse { n - 1 - k } else { k };
            h = a.narrow(axis, t, 1).matmul(&h).add(&b.narrow(axis, t, 1));
            all.push(h.clone());
        }
        if self.reverse {
            all.reverse();
        }
        Ok(A::cat(&all, axis).into())
    }

    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        let (a, b) = (inputs[0].float(), inputs[1].float());
        let h0 = inputs.get(2).map(Value::float);
        Ok(run(a, b, h0, self.reverse, false)?.into())
    }

    fn on_batch(&self, _: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        (!differ.contains(&false)).then_some(OnBatch::front(*self))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let a = reverse.kept.float(0);
        let later = before(a, &zero(a, time(a)), time(a), !self.reverse).transpose();
        let back = Self { reverse: !self.reverse, initial: false };
        let lambda = back.of(vec![later, reverse.cotangent().clone()])?;
        Ok(self.cotangents(reverse, lambda))
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let lambda = run(reverse.kept.float(0), reverse.cotangent(), None, !self.reverse, true)?;
        Ok(self.cotangents(reverse, lambda))
    }

    /// `Ḣ_t = A_t Ḣ_{t−1} + (Ȧ_t H_{t−1} + Ḃ_t)`: the same recurrence with another B.
    fn jvp<A: Array>(&self, inputs: &[Value<Dual<A>>], _: &[bool]) -> Result<Outcome<Dual<A>>> {
        let values: Vec<A> = inputs.iter().map(|x| x.float().value.clone()).collect();
        let tangent = |i: usize| inputs.get(i).and_then(|x| x.float().tangent.clone());
        let h = self.of(values.clone())?;
        let mut force = tangent(1);
        if let Some(a) = tangent(0) {
            let term = a.matmul(&self.states_before(&h, values.get(2)));
            force = Some(force.map_or_else(|| term.clone(), |b| b.add(&term)));
        }
        let force = force.unwrap_or_else(|| h.full(&h.shape(), 0.0));
        let mut operands = vec![values[0].clone(), force];
        operands.extend(tangent(2));
        let op = Self { initial: operands.len() == 3, ..*self };
        let tangent = op.of(operands)?;
        Ok(Dual::new(h, tangent).into())
    }
}

/// `H_t = A_t H_{t−1} + B_t`; with `adjoint` the coefficient is `A_{t−1}ᵀ`.
fn run(a: &Eager, b: &Eager, h0: Option<&Eager>, reverse: bool, adjoint: bool) -> Result<Eager> {
    let (shape, dtype) = (b.shape(), b.dtype());
    let [.., n, d, k] = shape[..] else { unreachable!("shapes are checked before") };
    computed_in!("matrix_recurrence", dtype, T => {
        let [a, mut h] = wide::<T, 2>([a, b])?;
        let h0 = h0.map(|h0| wide::<T, 1>([h0])).transpose()?;
        let (size, matrix) = (n * d * k, n * d * d);
        if size > 0 {
            let (a, h0) = (elements(&a), h0.as_ref().map(|[h0]| elements::<T>(h0)));
            let memory: &mut [T] = h.as_mut_slice()?;
            let parallel = parallel::worthwhile(memory.len(), 2 * d);
            let mut sequences: Vec<&mut [T]> = memory.chunks_exact_mut(size).collect();
            parallel::for_each_mut(&mut sequences, parallel, |i, h| {
                let a = &a[i * matrix..][..matrix];
                let h0 = h0.map(|h0| &h0[i * d * k..][..d * k]);
                dispatch(Sequence { a, h, h0, sizes: [n, d, k], reverse, adjoint });
            });
        }
        Ok(narrow::<T>(h, &shape, dtype)?.into())
    })
}

/// One sequence; on entry `h` contains B.
struct Sequence<'a, T> {
    a: &'a [T],
    h: &'a mut [T],
    h0: Option<&'a [T]>,
    /// Sizes n, d, k.
    sizes: [usize; 3],
    reverse: bool,
    adjoint: bool,
}

impl<T: Float> Loop for Sequence<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let [n, d, k] = self.sizes;
        // Constant sizes let the compiler unroll the loops of a step.
        match (d, k) {
            (1, 1) => self.steps(n, 1, 1),
            (2, 1) => self.steps(n, 2, 1),
            (3, 1) => self.steps(n, 3, 1),
            (4, 1) => self.steps(n, 4, 1),
            (8, 1) => self.steps(n, 8, 1),
            _ => self.steps(n, d, k),
        }
    }
}

impl<T: Float> Sequence<'_, T> {
    #[inline(always)]
    fn steps(self, n: usize, d: usize, k: usize) {
        let Self { a, h, h0, reverse, adjoint, .. } = self;
        let size = d * k;
        if let (Some(h0), false) = (h0, adjoint) {
            let t = if reverse { n - 1 } else { 0 };
            add_product(&a[t * d * d..][..d * d], h0, &mut h[t * size..][..size], d, k);
        }
        for s in 1..n {
            // Indices of the previous and of the current state.
            let (from, to) = if reverse { (n - s, n - 1 - s) } else { (s - 1, s) };
            let (low, high) = h.split_at_mut(from.max(to) * size);
            let low = &mut low[from.min(to) * size..];
            let high = &mut high[..size];
            let (before, now) = if reverse { (&*high, low) } else { (&*low, high) };
            if adjoint {
                add_adjoint(&a[from * d * d..][..d * d], before, now, d, k);
            } else {
                add_product(&a[to * d * d..][..d * d], before, now, d, k);
            }
        }
    }
}

/// `out ← out + A x`.
#[inline(always)]
fn add_product<T: Float>(a: &[T], x: &[T], out: &mut [T], d: usize, k: usize) {
    for i in 0..d {
        for c in 0..k {
            let mut sum = out[i * k + c];
            for j in 0..d {
                sum = a[i * d + j].mul_add(x[j * k + c], sum);
            }
            out[i * k + c] = sum;
        }
    }
}

/// `out ← out + Aᵀ x`.
#[inline(always)]
fn add_adjoint<T: Float>(a: &[T], x: &[T], out: &mut [T], d: usize, k: usize) {
    for i in 0..d {
        for j in 0..d {
            for c in 0..k {
                let at = j * k + c;
                out[at] = a[i * d + j].mul_add(x[i * k + c], out[at]);
            }
        }
    }
}
