//! Cross interpolation on a grid, and integrals of trains on a grid.

use t4a_algebra::Numeric;
use t4a_linalg::LinalgScalar;

use super::grid::Grid;
use crate::cross::{CrossOptions, CrossReport, Function};
use crate::train::{Result, TensorTrain, TrainError};

impl Grid {
    /// A function of coordinates as a function of the sites of a train.
    pub fn function<'a, T: LinalgScalar>(
        &'a self,
        mut f: impl FnMut(&[f64]) -> T + 'a,
    ) -> Function<'a, T> {
        let steps = self.steps();
        let (mut indices, mut x) = (vec![0; self.variables()], vec![0.0; self.variables()]);
        Function::new(&self.sizes(), move |sites| {
            self.accumulate(sites, &mut indices);
            for (v, x) in x.iter_mut().enumerate() {
                *x = self.coordinate(v, indices[v], steps[v]);
            }
            f(&x)
        })
    }

    /// The integral of a train on this grid over the intervals of all variables: the sum over the points times the
    /// steps, by the trapezoidal rule if the grid has its upper ends. Without them the sum is exact to all
    /// orders for smooth periodic functions, and of first order in the step otherwise.
    ///
    /// # Errors
    /// `Sizes` unless the train has the sites of this grid.
    pub fn integrate<T: LinalgScalar>(&self, train: &TensorTrain<T>) -> Result<T> {
        let (lhs, rhs) = (self.sizes(), train.sizes());
        if lhs != rhs {
            return Err(TrainError::Sizes { op: "integrate", lhs, rhs });
        }
        let volume = T::from_f64(self.steps().iter().product());
        if !self.endpoint() {
            return Ok(Numeric::mul(train.sum()?, volume));
        }
        let mut weighted = train.clone();
        for v in 0..self.variables() {
            weighted = weighted.hadamard(&self.trapezoid(v)?)?;
        }
        Ok(Numeric::mul(weighted.sum()?, volume))
    }

    /// ½ at the first and the last point of a variable, 1 elsewhere: bonds of 3.
    fn trapezoid<T: LinalgScalar>(&self, variable: usize) -> Result<TensorTrain<T>> {
        let sizes = self.sizes();
        let one = TensorTrain::constant(&sizes, T::ONE)?;
        // ½ at each end: subtract half of the indicator of all digits 0, and of all digits base − 1.
        let indicator = |digit: usize| {
            let core = |(digits, &size): (&Vec<(usize, usize)>, &usize)| {
                let place = digits.iter().rev().position(|&(v, _)| v == variable);
                let fits = |s: usize| match place {
                    Some(place) => s / self.base().pow(place as u32) % self.base() == digit,
                    None => true,
                };
                let value = |s| if fits(s) { T::ONE } else { T::ZERO };
                (0..size).map(value).collect::<Vec<T>>()
            };
            let vectors: Vec<Vec<T>> = self.sites().iter().zip(&sizes).map(core).collect();
            TensorTrain::product_of(&vectors)?.scale(T::from_f64(-0.5))
        };
        one.add(&indicator(0)?)?.add(&indicator(self.base() - 1)?)
    }
}

/// The train of a function on a grid by cross interpolation.
///
/// ```
/// use t4a_networks::{cross::CrossOptions, quantics::{Grid, interpolate}};
/// // 2³⁰ points, of which a few thousand are evaluated.
/// let grid = Grid::new(&[(0.0, 3.0)], 30)?;
/// let options = CrossOptions::new().tolerance(1e-10);
/// let (train, report) = interpolate(&grid, |x| (50.0 * x[0]).cos() * (-x[0]).exp(), &options)?;
/// assert!(report.evaluations < 5000 && train.max_bond() == 2);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
///
/// # Errors
/// As [`cross::interpolate`](crate::cross::interpolate); points are sites, [`Grid::coordinates`] converts them.
pub fn interpolate<T: LinalgScalar>(
    grid: &Grid,
    f: impl FnMut(&[f64]) -> T,
    options: &CrossOptions,
) -> Result<(TensorTrain<T>, CrossReport)> {
    crate::cross::interpolate(grid.function(f), options)
}
