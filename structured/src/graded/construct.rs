//! Tensors of blocks, of single elements, of other tensors.

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
    /// The real tensor of some of its blocks; entries of others are 0. A block is the sectors of its axes and an array
    /// of its shape. [`GradedTensor::from_real_imaginary`] joins two to a complex tensor.
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
    /// `Invalid` for no block (the element type is that of the first) and for sectors that a leg lacks; `Rank`,
    /// `Flux`, `DuplicateBlock`, `Shape`, `DType`.
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

    /// The block of these sectors, one of each leg, as arrays of its shape: real part, and imaginary part of a complex
    /// tensor.
    ///
    /// # Errors
    /// `Rank`; `Invalid` for a sector that its leg lacks; `Flux` for a block that the symmetry forbids.
    pub fn block_of(&self, sectors: &[S]) -> Result<(A, Option<A>)> {
        let block = self.spec.block_of("block_of", sectors)?;
        let plan = self.spec.extract(block);
        let one = |x: &A| one(&plan, &[x]).map(|x| x.reshape(block.shape()));
        Ok((one(&self.re)?, self.im.as_ref().map(one).transpose()?))
    }

    /// The direct sum of tensors along `axes`: the legs there are stacked, sector by sector, the others are equal. With
    /// one axis the terms are concatenated, with several they are blocks of a block-diagonal tensor, with none
    /// they are added. The sum of two matrix product states is that of their tensors along both bonds.
    ///
    /// # Errors
    /// `Invalid` for no term; `Rank`, `Axis`, `Flux`, `DType`; `LegMismatch` for stacked legs of different directions
    /// and for others that differ.
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

    /// The operator of matrix elements `⟨i₁ i₂ …|O|j₁ j₂ …⟩`, arrays whose first axes are those of `legs` and whose last
    /// axes are the same again: `legs` are rows, their duals columns, and the contraction over the columns with the legs
    /// of a state applies it. States of fermions are `c₁† c₂† … |0⟩`, in the order of the legs: the signs of their
    /// contraction are included, which entries written by [`GradedTensor::from_dense`] lack where two odd columns meet.
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

    /// The matrix elements of a map of its column legs to its row legs, the inverse of [`GradedTensor::operator`]: real
    /// and imaginary part.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn matrix_elements(&self) -> Result<(A, Option<A>)> {
        self.signed()?.to_dense()
    }

    /// As [`GradedTensor::from_dense`] of arrays whose axes are in an order of their own: index `i` of the tensor is
    /// index `orders[k][i]` of axis `k` of the array, the permutation of [`Leg::from_states`].
    ///
    /// # Errors
    /// As there; `Rank` and `Invalid` for orders that are no permutations of the legs' states.
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
                    format!("the order of axis {axis} is no permutation of {size} states");
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
    /// The tensor of single entries on the engine; all others are 0. An entry is the sector and the state within it for
    /// each axis, and a number; an entry that is given twice has the sum.
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
    /// `Rank`; `Invalid` for states that a leg lacks and for a complex number in a real tensor; `Flux` for an entry that
    /// the symmetry forbids.
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
                    let message = format!("axis {axis} is {leg}: state {state} of sector {sector}");
                    return Err(StructuredError::Invalid { op, message });
                }
                at += state * block.strides()[axis];
            }
            data[0][at] += value.re;
            if complex {
                data[1][at] += value.im;
            } else if value.im != 0.0 {
                let message = format!("the number {value} in a real tensor");
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

    /// The copy tensor δ on the engine: 1 where all axes are in the same state, counted in dense order, else 0. The legs
    /// have one dimension. That of a leg and its dual is the identity map of bosons ([`GradedTensor::identity`] has the
    /// signs of fermions); with a charge, legs are shifted against each other.
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
    /// As [`Spec::new`]; `Invalid` for no leg and for different dimensions; `Flux` for a state that the charge forbids.
    pub fn delta(legs: &[Leg<S>], flux: S, rows: usize, dtype: DType) -> Result<Self> {
        let (op, dims) = ("delta", legs.iter().map(Leg::dim).collect::<Vec<_>>());
        let spec = Spec::new(legs.to_vec(), flux, rows)?;
        if dims.is_empty() || dims.iter().any(|&dim| dim != dims[0]) {
            let message = format!("legs of one dimension are required, given {dims:?}");
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
