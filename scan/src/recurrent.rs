//! A recurrent layer over a whole sequence as one operation.
//!
//! The input products of all steps are computed beforehand as one product (`z = x W`); each step computes `u = h U` and
//! the cell. On the engine a tracked forward pass saves the activated gates. The portable reverse pass recomputes them for all
//! steps in one product, so its residuals are the states.

use t4a_diff::{Array, Cotangents, Eager, Meta, OnBatch, Operation, Outcome, Reverse, Value};
use t4a_tensor::{Result, TensorError};

use crate::cell::Cell;
use crate::operand;
use crate::recurrence::before;
use crate::recurrent_kernel as kernel;

/// `h_t, c_t = cell(z_t, h_{t−1} U + b, h_{t−1}, c_{t−1})`.
///
/// Operands: `z: [n, batch, gates·width]`, `U: [width, gates·width]`, with `bias` `b: [gates·width]`, with
/// `initial` `h₀: [batch, width]` and for an LSTM `c₀` (else zeros). Results: `h: [n, batch, width]`, and c
/// for an LSTM. With `reverse` time runs from the end.
///
/// Cost: one product `[batch, width]·[width, gates·width]` and one activation per gate in each step; no allocation in a
/// step. Blocks of 16 sequences are distributed over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Recurrent {
    /// The cell.
    pub cell: Cell,
    /// Time runs from the end of the sequence.
    pub reverse: bool,
    /// A bias is added to the product with the state.
    pub bias: bool,
    /// The initial state is an operand.
    pub initial: bool,
}

/// Operands by name.
pub(crate) struct RecurrentOperands<A> {
    pub(crate) z: A,
    pub(crate) weight: A,
    pub(crate) bias: Option<A>,
    /// Initial states h₀, c₀: `[1, batch, width]`.
    pub(crate) first: Vec<A>,
}

impl Recurrent {
    /// A forward layer with zero initial state and no bias.
    pub fn new(cell: Cell) -> Self {
        Self { cell, reverse: false, bias: false, initial: false }
    }

    fn count(&self) -> usize {
        2 + self.bias as usize + if self.initial { self.cell.states() } else { 0 }
    }

    /// Sizes n, batch, width.
    fn sizes<A: Array>(z: &A, weight: &A) -> [usize; 3] {
        let (z, weight) = (z.shape(), weight.shape());
        [z[0], z[1], weight[0]]
    }

    fn operands<'a, A: Array + 'a>(
        &self,
        operand: impl Fn(usize) -> &'a A,
    ) -> RecurrentOperands<A> {
        let (z, weight) = (operand(0).clone(), operand(1).clone());
        let [_, batch, width] = Self::sizes(&z, &weight);
        let at = 2 + self.bias as usize;
        let first = |k: usize| match self.initial {
            true => operand(at + k).reshape(&[1, batch, width]),
            false => z.full(&[1, batch, width], 0.0),
        };
        RecurrentOperands {
            bias: self.bias.then(|| operand(2).clone()),
            first: (0..self.cell.states()).map(first).collect(),
            z,
            weight,
        }
    }

    /// State contributions `h U + b` for states `[…, batch, width]`.
    fn shares<A: Array>(x: &RecurrentOperands<A>, h: &A) -> A {
        let shape = h.shape();
        let [rows, batch, width] = shape[..] else { unreachable!("states have rank 3") };
        let u = h.reshape(&[rows * batch, width]).matmul(&x.weight);
        let gates = u.shape()[1];
        let u = u.reshape(&[rows, batch, gates]);
        match &x.bias {
            Some(bias) => u.add(&bias.reshape(&[1, 1, gates])),
            None => u,
        }
    }

    /// Cotangents of the operands, given those of all z and u and of the initial states.
    fn finish<A: Array>(
        &self,
        x: &RecurrentOperands<A>,
        h: &A,
        [of_z, of_u]: [A; 2],
        of_first: Vec<A>,
        wanted: &[bool],
    ) -> Cotangents<A> {
        let [n, batch, width] = Self::sizes(&x.z, &x.weight);
        let gates = of_u.shape()[2];
        let rows = |x: &A, width: usize| x.reshape(&[n * batch, width]);
        let earlier = before(h, &x.first[0], 0, self.reverse);
        let of_weight = || rows(&earlier, width).transpose().matmul(&rows(&of_u, gates));
        let mut all = vec![None, wanted[1].then(of_weight)];
        if self.bias {
            all.push(wanted[2].then(|| rows(&of_u, gates).sum(0).reshape(&[gates])));
        }
        if self.initial {
            all.extend(of_first.iter().map(|g| Some(g.reshape(&[batch, width]))));
        }
        all[0] = Some(of_z);
        all
    }
}

impl Operation for Recurrent {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        match self.cell {
            Cell::Tanh => "tanh_rnn",
            Cell::Gated => "gated_rnn",
            Cell::Gru => "gru",
            Cell::Lstm => "lstm",
        }
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([self.count(), self.cell.states()])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let op = self.name();
        operand::count(op, inputs, self.count())?;
        operand::floats(op, inputs)?;
        let (z, weight) = (&inputs[0].shape, &inputs[1].shape);
        let required = "z [n, batch, gates·width] and U [width, gates·width]";
        let (&[n, batch, of_z], &[width, of_u]) = (&z[..], &weight[..]) else {
            return Err(TensorError::shapes(op, z, weight, required));
        };
        if of_z != of_u || of_u != width * self.cell.gates() || width == 0 {
            return Err(TensorError::shapes(op, z, weight, required));
        }
        let states = 2 + self.bias as usize;
        if let Some(bias) = inputs[2..states].iter().find(|bias| bias.shape != [of_u]) {
            return Err(TensorError::shapes(op, weight, &bias.shape, "b [gates·width]"));
        }
        if let Some(h) = inputs[states..].iter().find(|h| h.shape != [batch, width]) {
            return Err(TensorError::shapes(op, z, &h.shape, "first states [batch, width]"));
        }
        let state = Meta { shape: vec![n, batch, width], dtype: inputs[0].dtype };
        Ok(vec![state; self.cell.states()])
    }

    /// Sequential definition from [`Array`] operations.
    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let x = self.operands(|i| inputs[i].float());
        let [n, batch, width] = Self::sizes(&x.z, &x.weight);
        let states = self.cell.states();
        if n == 0 {
            return Ok(Outcome::new(vec![x.z.full(&[0, batch, width], 0.0); states]));
        }
        let mut state = x.first.clone();
        let mut all: Vec<Vec<A>> = Vec::with_capacity(n);
        for k in 0..n {
            let t = if self.reverse { n - 1 - k } else { k };
            let u = Self::shares(&x, &state[0]);
            let gates = self.cell.activations(&x.z.narrow(0, t, 1), &u);
            state = self.cell.step(&gates, &state);
            all.push(state.clone());
        }
        if self.reverse {
            all.reverse();
        }
        let one = |s: usize| A::cat(&all.iter().map(|x| x[s].clone()).collect::<Vec<A>>(), 0);
        Ok(Outcome::new((0..states).map(one).collect()))
    }

    fn forward(&self, inputs: &[Value<Eager>], tracked: &[bool]) -> Result<Outcome<Eager>> {
        let x = self.operands(|i| inputs[i].float());
        let saved = self.cell.saved() > 0 && tracked.contains(&true);
        let (results, gates) = kernel::forward(self.cell, self.reverse, &x, saved)?;
        let extra = gates.into_iter().map(Value::Float).collect();
        Ok(Outcome { results, hidden: Vec::new(), extra })
    }

    /// A batch is an additional batch of sequences if the weights are shared.
    fn on_batch(&self, _: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let weights = 1 + self.bias as usize;
        if differ[1..=weights].contains(&true) {
            return None;
        }
        let mut operands = vec![Some(0); differ.len()];
        operands[0] = Some(1);
        operands[1..=weights].fill(None);
        Some(OnBatch::Joined { operands, results: vec![Some(1); self.cell.states()] })
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let (kept, wanted) = (reverse.kept, reverse.wanted);
        let x = self.operands(|i| kept.float(i));
        let [n, ..] = Self::sizes(&x.z, &x.weight);
        let states: Vec<&A> = (0..self.cell.states()).map(|s| kept.result(s)).collect();
        if n == 0 {
            let zeros = x.z.full(&x.z.shape(), 0.0);
            let first = x.first.iter().map(|x| x.full(&x.shape(), 0.0)).collect();
            return Ok(self.finish(&x, states[0], [zeros.clone(), zeros], first, wanted));
        }
        let shift = |(h, first): (&&A, &A)| before(*h, first, 0, self.reverse);
        let earlier: Vec<A> = states.iter().zip(&x.first).map(shift).collect();
        let gates = self.cell.activations(&x.z, &Self::shares(&x, &earlier[0]));
        let back = x.weight.transpose();
        let zeros = x.first[0].full(&x.first[0].shape(), 0.0);
        let (mut h, mut c) = (zeros.clone(), None::<A>);
        let (mut of_z, mut of_u) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for k in 0..n {
            let t = if self.reverse { k } else { n - 1 - k };
            let at = |x: &A| x.narrow(0, t, 1);
            let all = |x: &[A]| x.iter().map(at).collect::<Vec<A>>();
            if let Some(g) = &reverse.cotangents[0] {
                h = h.add(&at(g));
            }
            if let Some(Some(g)) = reverse.cotangents.get(1) {
                c = Some(c.map_or_else(|| at(g), |c| c.add(&at(g))));
            }
            let after: Vec<A> = states.iter().map(|x| at(x)).collect();
            let step = self.cell.back(&all(&gates), &all(&earlier), &after, &h, c.as_ref());
            let shape = step.u.shape();
            let through =
                step.u.reshape(&[shape[1], shape[2]]).matmul(&back).reshape(&zeros.shape());
            h = step.h.map_or_else(|| through.clone(), |h| h.add(&through));
            c = step.c;
            of_z.push(step.z);
            of_u.push(step.u);
        }
        if !self.reverse {
            of_z.reverse();
            of_u.reverse();
        }
        let first = [h].into_iter().chain(c).collect();
        let shares = [A::cat(&of_z, 0), A::cat(&of_u, 0)];
        Ok(self.finish(&x, states[0], shares, first, wanted))
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let kept = reverse.kept;
        let x = self.operands(|i| kept.float(i));
        let states: Vec<&Eager> = (0..self.cell.states()).map(|s| kept.result(s)).collect();
        let gates = match kept.extra.first() {
            _ if self.cell.saved() == 0 => states[0].clone(),
            Some(gates) => gates.float().clone(),
            None => {
                let earlier = before(states[0], &x.first[0], 0, self.reverse);
                let gates = self.cell.activations(&x.z, &Self::shares(&x, &earlier));
                Eager::cat(&gates, 2)
            }
        };
        let zeros = || states[0].full(&states[0].shape(), 0.0);
        let given = reverse.cotangents.iter().map(|g| g.clone().unwrap_or_else(zeros));
        let given: Vec<Eager> = given.collect();
        let (shares, first) = kernel::back(self.cell, self.reverse, &x, &gates, &states, &given)?;
        Ok(self.finish(&x, states[0], shares, first, reverse.wanted))
    }
}
