//! Gated recurrent cells `(z, u, h, c) ↦ (h, c)`, elementwise, composed from [`Array`] operations.
//!
//! `z = x W` are the input contributions to the gates and `u = h U` the state contributions, concatenated along the
//! last axis in the order of the formulas. σ is the logistic function.

use t4a_diff::Array;

/// Update of a recurrent layer in each step, with `p = z + u`.
///
/// ```text
/// Tanh    h ← tanh p
/// Gated   h ← f h + (1 − f) m                              f = σ(p₀), m = tanh p₁
/// Gru     h ← q h + (1 − q) m      r = σ(p₀), q = σ(p₁), m = tanh(z₂ + r u₂)
/// Lstm    c ← f c + i g,  h ← o tanh c       i = σ(p₀), f = σ(p₁), g = tanh p₂, o = σ(p₃)
/// ```
///
/// Reference: Hochreiter and Schmidhuber 1997; Cho et al. 2014, with the reset gate behind the product as
/// in cuDNN; Zhou et al. 2016 for one gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Cell {
    /// `tanh`.
    Tanh,
    /// One gate that interpolates between the old and the new state.
    Gated,
    /// Reset and update gates.
    Gru,
    /// A memory cell c in addition to the state h.
    Lstm,
}

/// A step backwards: cotangents of z, u, h and c.
pub(crate) struct CellCotangents<A> {
    pub(crate) z: A,
    pub(crate) u: A,
    /// Cotangent of h without the path through u.
    pub(crate) h: Option<A>,
    pub(crate) c: Option<A>,
}

/// σ(x).
fn logistic<A: Array>(x: &A) -> A {
    x.scale(0.5).tanh().shift(1.0).scale(0.5)
}

/// `1 − x`.
fn rest<A: Array>(x: &A) -> A {
    x.neg().shift(1.0)
}

/// `g y (1 − y)`, the cotangent of x for y = σ(x).
fn of_logistic<A: Array>(y: &A, g: &A) -> A {
    g.mul(y).mul(&rest(y))
}

/// `g (1 − y²)`, the cotangent of x for y = tanh x.
fn of_tanh<A: Array>(y: &A, g: &A) -> A {
    g.mul(&rest(&y.mul(y)))
}

impl Cell {
    /// All cells.
    pub const ALL: [Self; 4] = [Self::Tanh, Self::Gated, Self::Gru, Self::Lstm];

    /// Number of gates; each has the width of the state.
    pub fn gates(self) -> usize {
        match self {
            Self::Tanh => 1,
            Self::Gated => 2,
            Self::Gru => 3,
            Self::Lstm => 4,
        }
    }

    /// Number of arrays of [`activations`](Self::activations); none for `tanh`, whose activation is the state.
    pub(crate) fn saved(self) -> usize {
        match self {
            Self::Tanh => 0,
            Self::Gated => 2,
            Self::Gru | Self::Lstm => 4,
        }
    }

    /// Number of state arrays: h, and c for an LSTM.
    pub fn states(self) -> usize {
        if self == Self::Lstm { 2 } else { 1 }
    }

    /// Activated gates; for a GRU also `u₂`.
    pub(crate) fn activations<A: Array>(self, z: &A, u: &A) -> Vec<A> {
        let last = z.shape().len() - 1;
        let width = z.shape()[last] / self.gates();
        let part = |x: &A, gate: usize| x.narrow(last, gate * width, width);
        if self == Self::Gru {
            let logistic = |gate| logistic(&part(z, gate).add(&part(u, gate)));
            let (reset, update, own) = (logistic(0), logistic(1), part(u, 2));
            let new = part(z, 2).add(&reset.mul(&own)).tanh();
            return vec![reset, update, new, own];
        }
        let p = z.add(u);
        let function = |gate| match (self, gate) {
            (Self::Tanh, _) | (Self::Gated, 1) | (Self::Lstm, 2) => part(&p, gate).tanh(),
            _ => logistic(&part(&p, gate)),
        };
        (0..self.gates()).map(function).collect()
    }

    /// The state after a step, given the state before it.
    pub(crate) fn step<A: Array>(self, gates: &[A], state: &[A]) -> Vec<A> {
        let mix = |keep: &A, new: &A| state[0].sub(new).mul(keep).add(new);
        match (self, gates) {
            (Self::Tanh, [h]) => vec![h.clone()],
            (Self::Gated, [keep, new]) | (Self::Gru, [_, keep, new, _]) => vec![mix(keep, new)],
            (_, [input, forget, new, output]) => {
                let c = forget.mul(&state[1]).add(&input.mul(new));
                vec![output.mul(&c.tanh()), c]
            }
            _ => unreachable!("as many gates as the cell has"),
        }
    }

    /// Cotangents of z, u, h and c, given those of h and c after the step.
    pub(crate) fn back<A: Array>(
        self,
        gates: &[A],
        state: &[A],
        after: &[A],
        h: &A,
        c: Option<&A>,
    ) -> CellCotangents<A> {
        let last = h.shape().len() - 1;
        let join = |parts: &[A]| A::cat(parts, last);
        let mix = |keep: &A, new: &A| {
            let (of_keep, of_new) = (h.mul(&state[0].sub(new)), h.mul(&rest(keep)));
            (of_logistic(keep, &of_keep), of_tanh(new, &of_new), h.mul(keep))
        };
        match (self, gates) {
            (Self::Tanh, [y]) => {
                let z = of_tanh(y, h);
                CellCotangents { u: z.clone(), z, h: None, c: None }
            }
            (Self::Gated, [keep, new]) => {
                let (keep, new, h) = mix(keep, new);
                let z = join(&[keep, new]);
                CellCotangents { u: z.clone(), z, h: Some(h), c: None }
            }
            (Self::Gru, [reset, keep, new, own]) => {
                let (keep, new, h) = mix(keep, new);
                let of_reset = of_logistic(reset, &new.mul(own));
                let u = join(&[of_reset.clone(), keep.clone(), new.mul(reset)]);
                CellCotangents { z: join(&[of_reset, keep, new]), u, h: Some(h), c: None }
            }
            (_, [input, forget, new, output]) => {
                let t = after[1].tanh();
                let through = of_tanh(&t, &h.mul(output));
                let of_c = c.map_or_else(|| through.clone(), |c| c.add(&through));
                let z = join(&[
                    of_logistic(input, &of_c.mul(new)),
                    of_logistic(forget, &of_c.mul(&state[1])),
                    of_tanh(new, &of_c.mul(input)),
                    of_logistic(output, &h.mul(&t)),
                ]);
                CellCotangents { u: z.clone(), z, h: None, c: Some(of_c.mul(forget)) }
            }
            _ => unreachable!("as many gates as the cell has"),
        }
    }
}
