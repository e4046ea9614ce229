//! Operations for second derivatives, on arrays: their rules have access to data that first-order rules do not have.

use t4a_diff::{Array, Cotangents, Dual, Keep, Meta, OnBatch, Operation, Outcome, Reverse, Value};
use t4a_tensor::{DType, TensorError};

use super::{Factors, MatrixFunction, Spectrum};
use crate::eig;
use crate::error::{LinalgError, Result};
use crate::idle::Idle;
use crate::operation::{Over, Part, PartKind, given, zeros};
use crate::vocabulary::{ComplexMatrix, Matrices, RealMatrix};

/// Operation for second derivatives. The factors `U`, `S`, `V` among the operands count as constants: their derivatives
/// follow from that of `A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Spectral {
    /// The carrier, `c`, factors → `U diag(c) Vᴴ`, the gradient of values.
    Gradient(Spectrum),
    /// The carrier, `dA`, factors → `dS`, the tangent of values.
    Tangent(Spectrum),
    /// `A`, a gradient, factors → the gradient; its derivative along directions that split ties is an error.
    Unsplit {
        /// Kind of the values.
        of: Spectrum,
        /// True for a gradient through vectors, which is already inaccurate near ties.
        vectors: bool,
    },
    /// [`Spectral::Unsplit`] for the eigenvalues and eigenvectors of general matrices.
    UnsplitEigenvectors,
    /// `A`, `C`, factors → derivative of a function of `A` along `C`.
    Function(MatrixFunction),
    /// `A`, a second derivative of a function of `A`, values → the second derivative; its derivative is an error for
    /// matrices with close values.
    Settled(MatrixFunction),
}

impl Spectral {
    /// Kind of the result.
    pub(crate) fn result(self) -> PartKind {
        if let Spectral::Tangent(_) = self { PartKind::Real } else { PartKind::Full }
    }

    fn operands(self) -> &'static [PartKind] {
        use PartKind::{Complex, Full, Real};
        match self {
            Spectral::Gradient(_) => &[Full, Real, Real, Full, Real, Full],
            Spectral::Tangent(_) => &[Full, Real, Full, Full, Real, Full],
            Spectral::Unsplit { .. } | Spectral::Function(_) => &[Full, Full, Full, Real, Full],
            Spectral::Settled(_) => &[Full, Full, Real],
            Spectral::UnsplitEigenvectors => &[Full, Full, Complex, Complex],
        }
    }

    /// Index of the operand with the shape of the result.
    fn like(self) -> usize {
        match self {
            Spectral::Gradient(_) => 0,
            _ => 1,
        }
    }
}

/// [`Spectral`] operation on arrays: real matrices, or pairs of arrays for complex ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SpectralOperation {
    /// The operation.
    pub op: Spectral,
    /// True if matrices are pairs of arrays.
    pub complex: bool,
}

fn factors<M: Matrices>(of: Spectrum, parts: &[Part<M>]) -> Factors<M> {
    let (u, s, v) = (parts[0].full().clone(), parts[1].real().clone(), parts[2].full().clone());
    Factors { u, s, v, of }
}

/// `None` for the constant operands.
fn constants<M: Matrices>(count: usize) -> impl Iterator<Item = Option<Part<M>>> {
    (0..count).map(|_| None)
}

impl Spectral {
    fn value<M: Matrices>(self, x: &[Part<M>]) -> Result<Part<M>> {
        Ok(match self {
            Spectral::Gradient(of) => Part::Full(factors(of, &x[3..]).sum(x[2].real())),
            Spectral::Tangent(of) => Part::Real(factors(of, &x[3..]).tangent(x[2].full())?),
            Spectral::Function(f) => {
                Part::Full(f.slope(&factors(f.spectrum(), &x[2..]), x[1].full())?)
            }
            _ => x[1].clone(),
        })
    }

    fn vjp<M: Matrices>(self, x: &[Part<M>], cotangent: &Part<M>) -> Result<Vec<Option<Part<M>>>> {
        let carried = |message: (M, M::Real), third: Part<M>| {
            let (a, w) = (Part::Full(message.0), Part::Real(message.1));
            [Some(a), Some(w), Some(third)].into_iter().chain(constants(3)).collect()
        };
        Ok(match self {
            Spectral::Gradient(of) => {
                let message = factors(of, &x[3..]).message(x[2].real(), cotangent.full())?;
                let slopes = Part::Real(message.1.clone());
                carried(message, slopes)
            }
            Spectral::Tangent(of) => {
                let (factors, c) = (factors(of, &x[3..]), cotangent.real());
                carried(factors.message(c, x[2].full())?, Part::Full(factors.sum(c)))
            }
            Spectral::Unsplit { of, vectors } => {
                factors(of, &x[2..]).unsplit(of.vectors(), cotangent.full(), vectors)?;
                [None, Some(cotangent.clone())].into_iter().chain(constants(3)).collect()
            }
            Spectral::UnsplitEigenvectors => {
                unsplit(x, cotangent.full())?;
                [None, Some(cotangent.clone())].into_iter().chain(constants(2)).collect()
            }
            Spectral::Function(f) => {
                let turned = function_tangent(f, x, cotangent.full())?;
                let slope = function_slope(f, x, cotangent.full())?;
                let moved = [turned, slope].map(|x| Some(Part::Full(x)));
                moved.into_iter().chain(constants(3)).collect()
            }
            Spectral::Settled(f) => {
                settled(f, x, cotangent.full())?;
                [None, Some(cotangent.clone()), None].into_iter().collect()
            }
        })
    }

    fn jvp<M: Matrices>(self, x: &[Part<M>], dx: &[Option<Part<M>>]) -> Result<Part<M>> {
        let direction = dx[0].as_ref().map(Part::full);
        let own = |i: usize| dx[i].clone().unwrap_or_else(|| x[i].zeros());
        Ok(match self {
            Spectral::Gradient(of) => {
                let (factors, dc) = (factors(of, &x[3..]), own(2));
                Part::Full(match direction {
                    Some(da) => factors.gradient_tangent(x[2].real(), dc.real(), da)?,
                    None => factors.sum(dc.real()),
                })
            }
            Spectral::Tangent(of) => {
                let (factors, da, moving) = (factors(of, &x[3..]), x[2].full(), dx[2].as_ref());
                Part::Real(match (direction, moving.map(Part::full)) {
                    (Some(y), dda) => factors.tangent_tangent(da, dda, y)?,
                    (None, Some(dda)) => factors.tangent(dda)?,
                    (None, None) => x[1].zeros().into_real(),
                })
            }
            Spectral::Unsplit { of, vectors } => {
                if let Some(da) = direction {
                    factors(of, &x[2..]).unsplit(of.vectors(), da, vectors)?;
                }
                own(1)
            }
            Spectral::UnsplitEigenvectors => {
                if let Some(da) = direction {
                    unsplit(x, da)?;
                }
                own(1)
            }
            Spectral::Function(f) => {
                let turned = direction.map(|da| function_tangent(f, x, da)).transpose()?;
                let slope = dx[1].as_ref().map(|dc| function_slope(f, x, dc.full())).transpose()?;
                Part::Full(match (turned, slope) {
                    (Some(turned), Some(slope)) => turned.add(&slope),
                    (turned, slope) => turned.or(slope).unwrap_or_else(|| zeros(x[1].full())),
                })
            }
            Spectral::Settled(f) => {
                if let Some(da) = direction {
                    settled(f, x, da)?;
                }
                own(1)
            }
        })
    }
}

impl Spectrum {
    /// Name of the operation that computes the vectors.
    fn vectors(self) -> &'static str {
        match self {
            Spectrum::Singular => "svd",
            Spectrum::Hermitian => "eigh",
        }
    }
}

/// `D f(A)[X]`, which can be differentiated again.
fn function_slope<M: Matrices>(f: MatrixFunction, x: &[Part<M>], direction: &M) -> Result<M> {
    M::function_slope(direction, x[0].full(), factors(f.spectrum(), &x[2..]), f)
}

/// `D² f(A)[C, X]`. Matrices with zero `C` or `X` do not fail.
fn function_tangent<M: Matrices>(f: MatrixFunction, x: &[Part<M>], direction: &M) -> Result<M> {
    let (a, c, factors) = (x[0].full(), x[1].full(), factors(f.spectrum(), &x[2..]));
    let second = f.second(&factors, [c, direction]).or_else(|error| {
        let idle = Idle::behind(error, Some(direction.activity()))
            .or_else(|error| Idle::behind(error, Some(c.activity())))?;
        f.second(&idle.factors(&factors), [c, direction])
    })?;
    let idle = Idle::without(&c.activity()).or(&Idle::without(&direction.activity()));
    M::settled(second, a, &idle.values(&factors.s), f)
}

/// Rejects directions that move a matrix with close values.
fn settled<M: Matrices>(f: MatrixFunction, x: &[Part<M>], direction: &M) -> Result<()> {
    let crowded = f.crowded(x[2].real());
    let moves = Idle::without(&direction.activity()).cotangent(&crowded).norms()?;
    match moves.iter().position(|&x| x != 0.0) {
        Some(batch) => Err(LinalgError::SecondOrderAtTie { op: f.name(), batch }),
        None => Ok(()),
    }
}

/// Returns an error for nonzero directions that split tied eigenvalues.
fn unsplit<M: Matrices>(x: &[Part<M>], direction: &M) -> Result<()> {
    let (values, vectors) = (x[2].complex(), x[3].complex());
    let direction = direction.to_complex();
    eig::unsplit(values, vectors, &direction).or_else(|error| {
        let idle = Idle::behind(error, Some(direction.activity()))?;
        eig::unsplit(&idle.values(values), &idle.factor(vectors), &direction)
    })
}

fn read<A: Array, M: Over<A>>(
    op: Spectral,
    inputs: impl Iterator<Item = A>,
) -> Result<Vec<Part<M>>> {
    let mut inputs = inputs;
    op.operands().iter().map(|&kind| M::read(kind, &mut inputs)).collect()
}

fn write<A: Array, M: Over<A>>(part: Part<M>) -> Result<Vec<A>> {
    let mut arrays = Vec::new();
    M::write(part, &mut arrays)?;
    Ok(arrays)
}

impl SpectralOperation {
    fn value_on<A: Array, M: Over<A>>(&self, inputs: &[Value<A>]) -> Result<Outcome<A>> {
        let parts = read::<A, M>(self.op, inputs.iter().map(|x| x.float().clone()))?;
        Ok(Outcome::new(write(self.op.value(&parts)?)?))
    }

    fn vjp_on<A: Array, M: Over<A>>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let inputs = (0..reverse.wanted.len()).map(|i| reverse.kept.float(i).clone());
        let parts = read::<A, M>(self.op, inputs)?;
        let Some(cotangent) = given::<A, M>(self.op.result(), reverse.cotangents.to_vec())? else {
            return Ok(vec![None; reverse.wanted.len()]);
        };
        let mut all = Vec::new();
        for (part, kind) in self.op.vjp(&parts, &cotangent)?.into_iter().zip(self.op.operands()) {
            match part {
                Some(part) => all.extend(write(part)?.into_iter().map(Some)),
                None => all.extend(vec![None; kind.arrays(self.complex)]),
            }
        }
        Ok(all)
    }

    fn jvp_on<A: Array, M: Over<A>>(&self, inputs: &[Value<Dual<A>>]) -> Result<Outcome<Dual<A>>> {
        let parts = read::<A, M>(self.op, inputs.iter().map(|x| x.float().value.clone()))?;
        let mut tangents = inputs.iter().map(|x| x.float().tangent.clone());
        let mut moving = Vec::new();
        for kind in self.op.operands() {
            let own = tangents.by_ref().take(kind.arrays(self.complex)).collect();
            moving.push(given::<A, M>(*kind, own)?);
        }
        let values: Vec<Value<A>> = inputs.iter().map(|x| x.clone().below()).collect();
        let values = A::apply(self, &values, &vec![false; values.len()])?.results.into_iter();
        let pairs = values.zip(write(self.op.jvp(&parts, &moving)?)?);
        Ok(Outcome::new(pairs.map(|(value, tangent)| Dual::new(value, tangent)).collect()))
    }
}

impl Operation for SpectralOperation {
    type Error = LinalgError;

    fn name(&self) -> &'static str {
        match self.op {
            Spectral::Gradient(_) => "spectral_gradient",
            Spectral::Tangent(_) => "spectral_tangent",
            Spectral::Unsplit { .. } | Spectral::UnsplitEigenvectors => "unsplit",
            Spectral::Function(_) => "function_slope",
            Spectral::Settled(_) => "settled",
        }
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let counts = self.op.operands().iter().map(|kind| kind.arrays(self.complex));
        let required: usize = counts.clone().sum();
        if inputs.len() != required {
            let message = format!("{required} arrays are required, given {}", inputs.len());
            return Err(TensorError::value(self.name(), message).into());
        }
        let dtype = inputs[0].dtype;
        if !matches!(dtype, DType::F32 | DType::F64) {
            let expected = "f32 or f64";
            return Err(TensorError::DTypeUnsupported { op: self.name(), dtype, expected }.into());
        }
        let first: usize = counts.take(self.op.like()).sum();
        Ok(vec![inputs[first].clone(); self.op.result().arrays(self.complex)])
    }

    fn keep(&self, _tracked: &[bool]) -> Keep {
        Keep::default().all_inputs()
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _tracked: &[bool]) -> Result<Outcome<A>> {
        match self.complex {
            true => self.value_on::<A, ComplexMatrix<A>>(inputs),
            false => self.value_on::<A, RealMatrix<A>>(inputs),
        }
    }

    fn on_batch(&self, _: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        (!differ.contains(&false)).then_some(OnBatch::front(*self))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        match self.complex {
            true => self.vjp_on::<A, ComplexMatrix<A>>(reverse),
            false => self.vjp_on::<A, RealMatrix<A>>(reverse),
        }
    }

    fn jvp<A: Array>(
        &self,
        inputs: &[Value<Dual<A>>],
        _tracked: &[bool],
    ) -> Result<Outcome<Dual<A>>> {
        match self.complex {
            true => self.jvp_on::<A, ComplexMatrix<A>>(inputs),
            false => self.jvp_on::<A, RealMatrix<A>>(inputs),
        }
    }
}
