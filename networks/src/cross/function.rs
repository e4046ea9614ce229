//! Black-box functions of multi-indices: point by point, on several threads, or in batches.

use t4a_algebra::parallel;
use t4a_linalg::LinalgScalar;

use crate::train::{BoxError, Result, TrainError};

/// Points that one thread evaluates at a time.
const CHUNK: usize = 16;

/// A batch of multi-indices.
#[derive(Clone, Copy, Debug)]
pub struct Points<'a> {
    data: &'a [usize],
    width: usize,
}

impl<'a> Points<'a> {
    /// Concatenated points of `width ≥ 1` indices.
    pub(crate) fn new(data: &'a [usize], width: usize) -> Self {
        Self { data, width }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.data.len() / self.width
    }

    /// True without points, which no function is called with.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The points in order.
    pub fn iter(&self) -> std::slice::ChunksExact<'a, usize> {
        self.data.chunks_exact(self.width)
    }

    /// All indices, point by point.
    pub fn as_slice(&self) -> &'a [usize] {
        self.data
    }
}

type Each<'a, T> = Box<dyn FnMut(&[usize]) -> Result<T, BoxError> + 'a>;
type Shared<'a, T> = Box<dyn Fn(&[usize]) -> Result<T, BoxError> + Sync + 'a>;
type Batched<'a, T> = Box<dyn FnMut(&Points<'_>) -> Result<Vec<T>, BoxError> + 'a>;

enum Call<'a, T> {
    Each(Each<'a, T>),
    Shared(Shared<'a, T>),
    Batched(Batched<'a, T>),
}

/// A function of `n` indices with the sizes of its sites.
pub struct Function<'a, T> {
    sizes: Vec<usize>,
    call: Call<'a, T>,
}

impl<'a, T: LinalgScalar> Function<'a, T> {
    /// A function that is called point by point.
    pub fn new(sizes: &[usize], mut f: impl FnMut(&[usize]) -> T + 'a) -> Self {
        Self { sizes: sizes.to_vec(), call: Call::Each(Box::new(move |x| Ok(f(x)))) }
    }

    /// A function that may fail.
    pub fn fallible<E: Into<BoxError>>(
        sizes: &[usize],
        mut f: impl FnMut(&[usize]) -> Result<T, E> + 'a,
    ) -> Self {
        let call = Call::Each(Box::new(move |x| f(x).map_err(Into::into)));
        Self { sizes: sizes.to_vec(), call }
    }

    /// A function that may fail, called from the engine's threads.
    pub fn parallel<E: Into<BoxError>>(
        sizes: &[usize],
        f: impl Fn(&[usize]) -> Result<T, E> + Sync + 'a,
    ) -> Self {
        let call = Call::Shared(Box::new(move |x| f(x).map_err(Into::into)));
        Self { sizes: sizes.to_vec(), call }
    }

    /// A function of batches of points, which returns one value per point.
    pub fn batched<E: Into<BoxError>>(
        sizes: &[usize],
        mut f: impl FnMut(&Points<'_>) -> Result<Vec<T>, E> + 'a,
    ) -> Self {
        let call = Call::Batched(Box::new(move |x| f(x).map_err(Into::into)));
        Self { sizes: sizes.to_vec(), call }
    }

    /// Sizes of the sites.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Values at all points, finite.
    ///
    /// # Errors
    /// `Function`, `Batch`, `NonFinite` with the first point that failed; `Length` for a batch with another
    /// number of values.
    pub(crate) fn values(&mut self, op: &'static str, points: &Points<'_>) -> Result<Vec<T>> {
        let failed =
            |point: &[usize], source| TrainError::Function { op, point: point.to_vec(), source };
        let values = match &mut self.call {
            Call::Each(f) => {
                let value = |x| f(x).map_err(|source| failed(x, source));
                points.iter().map(value).collect::<Result<Vec<T>>>()?
            }
            Call::Shared(f) => {
                let mut values: Vec<Result<T, BoxError>> = Vec::new();
                values.resize_with(points.len(), || Ok(T::ZERO));
                let mut chunks: Vec<_> = values.chunks_mut(CHUNK).collect();
                parallel::for_each_mut(&mut chunks, true, |i, chunk| {
                    let points = points.iter().skip(i * CHUNK);
                    chunk.iter_mut().zip(points).for_each(|(value, x)| *value = f(x));
                });
                let check = |(value, x): (Result<T, BoxError>, _)| value.map_err(|e| failed(x, e));
                values.into_iter().zip(points.iter()).map(check).collect::<Result<_>>()?
            }
            Call::Batched(f) => f(points).map_err(|source| {
                let first = points.iter().next().unwrap_or_default().to_vec();
                TrainError::Batch { op, points: points.len(), first, source }
            })?,
        };
        if values.len() != points.len() {
            let (required, given) = (points.len(), values.len());
            return Err(TrainError::Length { op, required, given });
        }
        for (value, point) in values.iter().zip(points.iter()) {
            if !crate::train::magnitude(*value).is_finite() {
                let (point, value) = (point.to_vec(), format!("{value:?}"));
                return Err(TrainError::NonFinite { op, point, value });
            }
        }
        Ok(values)
    }
}
