//! Chains of dense cores, and dense tensor trains as chains: without a symmetry the tensors of a chain are its cores.

use t4a_algebra::{Field, Real};
use t4a_diff::{Array, Eager};
use t4a_linalg::LinalgScalar;
use t4a_structured::{Direction, GradedTensor, Leg, Sector, Spec, Trivial};
use t4a_tensor::{AnyTensor, DType, Tensor};

use crate::error::{NetworksError, Result};
use crate::mpo::Mpo;
use crate::mps::Mps;
use crate::scalar::{constant_like, numbers, on_engine};
use crate::train::{TensorTrain, TrainOperator};

/// A dense array: real part, and imaginary part of a complex one.
pub type DenseCore<A> = (A, Option<A>);

/// Dense cores as tensors with legs of one sector.
fn tensors<A: Array>(
    op: &'static str,
    cores: impl IntoIterator<Item = DenseCore<A>>,
    directions: &[Direction],
) -> Result<Vec<GradedTensor<Trivial, A>>> {
    let tensor = |(site, (re, im)): (usize, DenseCore<A>)| {
        let shape = re.shape();
        if shape.len() != directions.len() || shape.contains(&0) {
            let required = directions.len();
            let message = format!("a core of {required} axes is required, given {shape:?}");
            return Err(NetworksError::Chain { op, site, message });
        }
        let leg = |(&size, &direction)| Leg::new([(Trivial, size)], direction);
        let legs = shape.iter().zip(directions).map(leg).collect::<Result<_, _>>()?;
        let (spec, flat): (_, [usize; 1]) =
            (Spec::new(legs, Trivial, 2)?, [shape.iter().product()]);
        let im = im.map(|im| im.reshape(&flat));
        Ok(GradedTensor::new(spec, re.reshape(&flat), im)?)
    };
    cores.into_iter().enumerate().map(tensor).collect()
}

impl<A: Array> Mps<Trivial, A> {
    /// The state of dense cores `[l, d, r]` without a symmetry, real or complex. Differentiable.
    ///
    /// # Errors
    /// `Length` for none; `Chain` for cores of another rank, with an axis of size 0, or that do not fit.
    pub fn from_cores(cores: impl IntoIterator<Item = DenseCore<A>>) -> Result<Self> {
        use Direction::{In, Out};
        Self::new(tensors("from_cores", cores, &[Out, Out, In])?)
    }
}

impl<A: Array> Mpo<Trivial, A> {
    /// The operator of dense cores `[l, output, input, r]` without a symmetry, real or complex. Differentiable.
    ///
    /// # Errors
    /// As [`Mps::from_cores`].
    pub fn from_cores(cores: impl IntoIterator<Item = DenseCore<A>>) -> Result<Self> {
        use Direction::{In, Out};
        Self::new(tensors("from_cores", cores, &[Out, Out, In, In])?)
    }
}

macro_rules! chains {
    ($($chain:ident $axes:literal)*) => {$(
        impl<S: Sector, A: Array> $chain<S, A> {
            #[doc = concat!("The dense cores `", $axes, "`, zeros included. Differentiable.")]
            ///
            /// # Errors
            /// `Structured` for cores with more elements than an array may have.
            pub fn to_cores(&self) -> Result<Vec<DenseCore<A>>> {
                Ok(self.tensors().iter().map(GradedTensor::to_dense).collect::<Result<_, _>>()?)
            }

            /// The same chain without charges: each leg is one sector, in the order of the basis. Differentiable.
            ///
            /// # Errors
            /// As `to_cores`.
            pub fn without_charges(&self) -> Result<$chain<Trivial, A>> {
                $chain::from_cores(self.to_cores()?)
            }

            /// The same chain over arrays of the engine, for algorithms.
            ///
            /// # Errors
            /// Those of a transfer.
            pub fn to_engine(&self) -> Result<$chain<S>> {
                $chain::new(self.tensors().iter().map(on_engine).collect::<Result<_>>()?)
            }
        }

        impl<S: Sector> $chain<S, Eager> {
            /// The chain as constants over arrays like `like`, in its type.
            ///
            /// # Errors
            /// Those of a conversion.
            pub fn over<A: Array>(&self, like: &A) -> Result<$chain<S, A>> {
                let all = self.tensors().iter().map(|x| constant_like(x, like));
                $chain::new(all.collect::<Result<_>>()?)
            }
        }
    )*};
}

chains! { Mps "[l, d, r]" Mpo "[l, output, input, r]" }

/// Real and imaginary parts of the elements.
fn parts<T: LinalgScalar>(x: &Tensor<T>) -> Result<DenseCore<Eager>> {
    let (data, shape) = (x.to_vec()?, x.shape());
    let part = |part: fn(T) -> f64| {
        let part = Tensor::from_vec(data.iter().map(|&x| part(x)).collect(), shape)?;
        Ok::<_, NetworksError>(Eager::from(AnyTensor::from(part).cast(real_type::<T>())?))
    };
    let im = T::IS_COMPLEX.then(|| part(|x| Field::im(x).to_f64())).transpose()?;
    Ok((part(|x| Field::re(x).to_f64())?, im))
}

fn real_type<T: LinalgScalar>() -> DType {
    <T::R as t4a_tensor::Element>::DTYPE
}

/// The tensor of real and imaginary parts; an imaginary part of a real type is an error.
fn joined<T: LinalgScalar>(
    op: &'static str,
    site: usize,
    x: &DenseCore<Eager>,
) -> Result<Tensor<T>> {
    let (re, im) = (numbers(&x.0)?, x.1.as_ref().map(numbers).transpose()?);
    if im.is_some() && !T::IS_COMPLEX {
        let message = "the core is complex; a train of complex numbers is required".into();
        return Err(NetworksError::Chain { op, site, message });
    }
    let number = |k: usize| {
        let im = im.as_ref().map_or(0.0, |im| im[k]);
        T::from_parts(t4a_algebra::Numeric::from_f64(re[k]), t4a_algebra::Numeric::from_f64(im))
    };
    Ok(Tensor::from_vec((0..re.len()).map(number).collect(), &x.0.shape())?)
}

impl<T: LinalgScalar> TensorTrain<T> {
    /// The train as a state without a symmetry, whose amplitudes are the values.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn to_mps(&self) -> Result<Mps<Trivial>> {
        Mps::from_cores(self.cores().iter().map(parts).collect::<Result<Vec<_>>>()?)
    }

    /// The amplitudes of a state as a train, sites in the order of their bases.
    ///
    /// # Errors
    /// `Chain` for a complex state as a real train; as `Mps::to_cores`.
    pub fn from_mps<S: Sector, A: Array>(state: &Mps<S, A>) -> Result<Self> {
        let cores = state.to_engine()?.to_cores()?;
        let cores = cores.iter().enumerate().map(|(site, x)| joined("from_mps", site, x));
        train(Self::new(cores.collect::<Result<_>>()?))
    }
}

impl<T: LinalgScalar> TrainOperator<T> {
    /// The map as an operator without a symmetry: each output has the size of its input.
    ///
    /// # Errors
    /// `Chain` for a site whose output and input differ in size.
    pub fn to_mpo(&self) -> Result<Mpo<Trivial>> {
        Mpo::from_cores(self.cores().iter().map(parts).collect::<Result<Vec<_>>>()?)
    }

    /// The entries of an operator as a map of trains.
    ///
    /// # Errors
    /// As [`TensorTrain::from_mps`].
    pub fn from_mpo<S: Sector, A: Array>(operator: &Mpo<S, A>) -> Result<Self> {
        let cores = operator.to_engine()?.to_cores()?;
        let cores = cores.iter().enumerate().map(|(site, x)| joined("from_mpo", site, x));
        train(Self::new(cores.collect::<Result<_>>()?))
    }
}

/// Cores of a chain are cores of a train.
fn train<T>(result: crate::train::Result<T>) -> Result<T> {
    result.map_err(|error| {
        let message = error.to_string();
        NetworksError::Chain { op: "train of a chain", site: 0, message }
    })
}
