//! Construction from blocks, single elements and other tensors.

use t4a_algebra::c64;
use t4a_diff::{Array, Integers};
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::{Forbidden, GradedTensor};
use crate::error::{Result, StructuredError};
use crate::leg::Leg;
use crate::operation::one;
use crate::sector::Sector;
use crate::spec::Spec;

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Real tensor of some of its blocks; all other entries are 0. A block is given by one sector per axis and an
    /// array of its shape. [`GradedTensor::from_real_imaginary`] combines two such tensors into a complex one.
    ///
    /// ```
    /// use t4a_diff::check;
    /// use t4a_structured::{Direction, GradedTensor, Leg, Spec, U1};
    /// let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out)?;
    /// let spec = Spec::new(vec![spin.clone(), spin.dual()], U1(0), 1)?;
    /// let half = |sign: f64| check::array(&[1, 1], |_| 0.5 * sign);
    /// let (up, down) = ([U1(1), U1(1)], [U1(-1), U1(-1)]);
    /// let z = GradedTensor::from_blocks(&spec, &[(&up, half(1.0)), (&down, half(-1.0))])?;
    /// assert_eq!(check::elements(&z.to_dense()?.0), [-0.5, 0.0, 0.0, 0.5]);
    /// # Ok::<(), t4a_structured::StructuredError>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for no block (the dtype is that of the first block) and for sectors that a leg does not have;
    /// `Rank`, `Flux`, `DuplicateBlock`, `Shape`, `DType`.
    pub fn from_blocks(spec: &Spec<S>, blocks: &[(&[S], A)]) -> Result<Self> {
        let op = "from_blocks";
        let Some((_, first)) = blocks.first() else {
            let message = "at least one block is required; `zeros` has none".into();
            return Err(StructuredError::Invalid { op, message });
        };
        let sectors: Vec<&[S]> = blocks.iter().map(|&(sectors, _)| sectors).collect();
        let plan = spec.assemble(op, &sectors)?;
        let mut flat = Vec::with_capacity(blocks.len());
        for (sectors, block) in blocks {
            let required = spec.block_of(op, sectors)?.shape().to_vec();
            if block.shape() != required {
                let given = block.shape();
                return Err(StructuredError::Shape { op, required, given });
            }
            if block.dtype() != first.dtype() {
                let (required, given) = (first.dtype(), block.dtype());
                return Err(StructuredError::DType { op, required, given });
            }
            flat.push(block.reshape(&[required.iter().product()]));
        }
        Self::new(spec.clone(), one(&plan, &[&A::cat(&flat, 0)])?, None)
    }

    /// Block of one sector per leg, as arrays of its shape: real part, and imaginary part of a complex tensor.
    ///
    /// # Errors
    /// `Rank`; `Invalid` for a sector that its leg does not have; `Flux` for a block that the symmetry forbids.
    pub fn block_of(&self, sectors: &[S]) -> Result<(A, Option<A>)> {
        let block = self.spec.block_of("block_of", sectors)?;
        let plan = self.spec.extract(block);
        let one = |x: &A| one(&plan, &[x]).map(|x| x.reshape(block.shape()));
        Ok((one(&self.re)?, self.im.as_ref().map(one).transpose()?))
    }

    /// Direct sum along `axes`: the legs of these axes are concatenated sector by sector; all other legs must be
    /// equal. One axis gives a concatenation, several a block-diagonal tensor, none a sum. The sum of two matrix
    /// product states is the direct sum of their tensors along both bonds.
    ///
    /// # Errors
    /// `Invalid` for no term; `Rank`, `Axis`, `Flux`, `DType`; `LegMismatch` for concatenated legs of different
    /// directions and for other legs that differ.
    pub fn direct_sum(terms: &[&Self], axes: &[usize]) -> Result<Self> {
        let op = "direct_sum";
        let rows = terms.first().map_or(0, |first| first.spec.rows());
        let terms: Vec<Self> =
            terms.iter().map(|term| term.repartition(rows)).collect::<Result<_>>()?;
        let specs: Vec<&Spec<S>> = terms.iter().map(|term| &term.spec).collect();
        let (spec, plan) = Spec::direct_sum(&specs, axes)?;
        let dtype = terms[0].re.dtype();
        if let Some(other) = terms.iter().find(|term| term.re.dtype() != dtype) {
            let (required, given) = (dtype, other.re.dtype());
            return Err(StructuredError::DType { op, required, given });
        }
        let joined = |parts: Vec<A>| one(&plan, &[&A::cat(&parts, 0)]);
        let re = joined(terms.iter().map(|term| term.re.clone()).collect())?;
        let complex = terms.iter().any(Self::is_complex);
        let im = || joined(terms.iter().map(Self::imaginary).collect());
        Self::new(spec, re, complex.then(im).transpose()?)
    }

    /// Operator with the matrix elements `⟨i₁ i₂ …|O|j₁ j₂ …⟩`, arrays of shape `[legs…, legs…]`. The row legs of the
    /// result are `legs`, the column legs their duals; contracting the columns with the legs of a state applies the
    /// operator. Fermionic basis states are `c₁† c₂† … |0⟩` in the order of the legs. The signs of their contraction
    /// are included; [`GradedTensor::from_dense`] does not add them, and differs where two column legs are odd.
    ///
    /// # Errors
    /// As [`GradedTensor::from_dense`].
    pub fn operator(
        legs: &[Leg<S>],
        flux: S,
        re: &A,
        im: Option<&A>,
        forbidden: Forbidden,
    ) -> Result<Self> {
        let all = legs.iter().cloned().chain(legs.iter().map(Leg::dual)).collect();
        let spec = Spec::new(all, flux, legs.len())?;
        Self::from_dense(&spec, re, im, forbidden)?.signed()
    }

    /// Matrix elements of a map from its column legs to its row legs: inverse of [`GradedTensor::operator`]. Real and
    /// imaginary part.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn matrix_elements(&self) -> Result<(A, Option<A>)> {
        self.signed()?.to_dense()
    }

    /// [`GradedTensor::from_dense`] of arrays with permuted basis states: index `i` of axis `k` of the tensor is
    /// index `orders[k][i]` of the array, where `orders[k]` is the permutation of [`Leg::from_states`].
    ///
    /// # Errors
    /// As [`GradedTensor::from_dense`]; `Rank` and `Invalid` for orders that are not permutations of the states of
    /// the legs.
    pub fn from_dense_in(
        spec: &Spec<S>,
        re: &A,
        im: Option<&A>,
        orders: &[&[usize]],
        forbidden: Forbidden,
    ) -> Result<Self> {
        let (op, shape) = ("from_dense_in", spec.shape());
        if orders.len() != shape.len() {
            let (required, given) = (shape.len(), orders.len());
            return Err(StructuredError::Rank { op, required, given });
        }
        for (axis, (order, &size)) in orders.iter().zip(&shape).enumerate() {
            let mut sorted = order.to_vec();
            sorted.sort_unstable();
            if !sorted.into_iter().eq(0..size) {
                let message =
                    format!("the order of axis {axis} is not a permutation of {size} states");
                return Err(StructuredError::Invalid { op, message });
            }
        }
        let sorted = |x: &A| -> Result<A> {
            if x.shape() != shape {
                let (required, given) = (shape.clone(), x.shape());
                return Err(StructuredError::Shape { op, required, given });
            }
            let mut x = x.clone();
            for (axis, order) in orders.iter().enumerate() {
                let mut sizes = vec![1; shape.len()];
                sizes[axis] = shape[axis];
                let order = order.iter().map(|&i| i as i64).collect();
                let order = Tensor::<i64>::from_vec(order, &sizes)?;
                let order = x.indices(order.into()).expand(&shape);
                x = x.gather(axis, &order);
            }
            Ok(x)
        };
        let im = im.map(sorted).transpose()?;
        Self::from_dense(spec, &sorted(re)?, im.as_ref(), forbidden)
    }
}

impl<S: Sector> GradedTensor<S> {
    /// Tensor with the given entries, on the engine; all others are 0. An entry is a sector and a state within it for
    /// each axis, and a number. Repeated entries are added.
    ///
    /// ```
    /// use t4a_algebra::c64;
    /// use t4a_structured::{Direction, GradedTensor, Leg, Spec, U1};
    /// use t4a_tensor::DType;
    /// // The hopping term c†₁ c₂ + c†₂ c₁ of hard-core bosons.
    /// let site = Leg::new([(U1(0), 1), (U1(1), 1)], Direction::Out)?;
    /// let legs = vec![site.clone(), site.clone(), site.dual(), site.dual()];
    /// let (e, o) = ((U1(0), 0), (U1(1), 0));
    /// let hop = [(vec![o, e, e, o], 1.0), (vec![e, o, o, e], 1.0)];
    /// let hop = GradedTensor::from_elements(&Spec::new(legs, U1(0), 2)?, hop, DType::F64, false)?;
    /// assert_eq!(hop.spec().len(), 6);
    /// # Ok::<(), t4a_structured::StructuredError>(())
    /// ```
    ///
    /// # Errors
    /// `Rank`; `Invalid` for a state that a leg does not have and for a complex number in a real tensor; `Flux` for
    /// an entry that the symmetry forbids.
    pub fn from_elements<C: Into<c64>>(
        spec: &Spec<S>,
        elements: impl IntoIterator<Item = (Vec<(S, usize)>, C)>,
        dtype: DType,
        complex: bool,
    ) -> Result<Self> {
        let op = "from_elements";
        let mut data = [vec![0.0f64; spec.len()], vec![0.0; if complex { spec.len() } else { 0 }]];
        for (states, value) in elements {
            let value: c64 = value.into();
            let sectors: Vec<S> = states.iter().map(|&(sector, _)| sector).collect();
            let block = spec.block_of(op, &sectors)?;
            let mut at = block.offset();
            for (axis, &(sector, state)) in states.iter().enumerate() {
                if state >= block.shape()[axis] {
                    let leg = &spec.legs()[axis];
                    let message =
                        format!("axis {axis} is {leg} without state {state} of sector {sector}");
                    return Err(StructuredError::Invalid { op, message });
                }
                at += state * block.strides()[axis];
            }
            data[0][at] += value.re;
            if complex {
                data[1][at] += value.im;
            } else if value.im != 0.0 {
                let message = format!("complex number {value} in a real tensor");
                return Err(StructuredError::Invalid { op, message });
            }
        }
        let [re, im] = data;
        let array = |x: Vec<f64>| -> Result<_> {
            let len = x.len();
            Ok(AnyTensor::from(Tensor::from_vec(x, &[len])?).cast(dtype)?.into())
        };
        Self::new(spec.clone(), array(re)?, complex.then(|| array(im)).transpose()?)
    }

    /// Copy tensor δ, on the engine: 1 where all axes are in the same state, counted in dense order, else 0. All legs
    /// have the same dimension. For a leg and its dual this is the bosonic identity map ([`GradedTensor::identity`]
    /// includes the signs of fermions). A nonzero flux shifts the sectors of the legs against each other.
    ///
    /// ```
    /// use t4a_structured::{Direction, GradedTensor, Leg, U1};
    /// use t4a_tensor::DType;
    /// let low = Leg::new([(U1(0), 1), (U1(1), 1)], Direction::In)?;
    /// let high = Leg::new([(U1(1), 1), (U1(2), 1)], Direction::Out)?;
    /// let raise = GradedTensor::delta(&[high, low], U1(1), 1, DType::F64)?;
    /// assert_eq!(raise.spec().flux(), U1(1));
    /// # Ok::<(), t4a_structured::StructuredError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Spec::new`]; `Invalid` for no leg and for different dimensions; `Flux` for an entry that the symmetry
    /// forbids.
    pub fn delta(legs: &[Leg<S>], flux: S, rows: usize, dtype: DType) -> Result<Self> {
        let (op, dims) = ("delta", legs.iter().map(Leg::dim).collect::<Vec<_>>());
        let spec = Spec::new(legs.to_vec(), flux, rows)?;
        if dims.is_empty() || dims.iter().any(|&dim| dim != dims[0]) {
            let message = format!("legs of equal dimension are required, given {dims:?}");
            return Err(StructuredError::Invalid { op, message });
        }
        let states: Vec<Vec<(S, usize)>> = legs.iter().map(states).collect();
        let entry = |i: usize| (states.iter().map(|own| own[i]).collect(), 1.0);
        Self::from_elements(&spec, (0..dims[0]).map(entry), dtype, false)
    }
}

/// All states of a leg in dense order.
fn states<S: Sector>(leg: &Leg<S>) -> Vec<(S, usize)> {
    leg.sectors().iter().flat_map(|&(sector, dim)| (0..dim).map(move |i| (sector, i))).collect()
}
