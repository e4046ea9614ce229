//! Grids of one or several variables, and the digits of their indices.

use crate::train::{Result, TrainError, check_index};

const OP: &str = "grid";
/// Points of one variable at most: indices and offsets between them have to fit into 64 bits.
const MOST: u128 = 1 << 62;

/// Order of the digits of several variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// The digits of one level of all variables, then those of the next level.
    #[default]
    Interleaved,
    /// As interleaved, with the digits of a level in one site.
    Fused,
    /// All digits of the first variable, then all of the second.
    Grouped,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Variable {
    low: f64,
    high: f64,
    digits: usize,
}

/// Settings of a [`Grid`].
#[derive(Clone, Debug, PartialEq)]
pub struct GridBuilder {
    variables: Vec<Variable>,
    base: usize,
    layout: Layout,
    endpoint: bool,
}

impl Default for GridBuilder {
    fn default() -> Self {
        let (base, layout, endpoint) = (2, Layout::Interleaved, false);
        Self { variables: Vec::new(), base, layout, endpoint }
    }
}

impl GridBuilder {
    /// No variables, base 2, interleaved, without the upper end.
    pub fn new() -> Self {
        Self::default()
    }
    /// One more variable on [low, high] with `base^digits` points.
    pub fn variable(mut self, low: f64, high: f64, digits: usize) -> Self {
        self.variables.push(Variable { low, high, digits });
        self
    }
    /// The base of the digits, 2 or more.
    pub fn base(self, base: usize) -> Self {
        Self { base, ..self }
    }
    /// The order of the digits.
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }
    /// With `true` the last point is `high`; otherwise it is one step below, as for periodic functions.
    pub fn endpoint(self, endpoint: bool) -> Self {
        Self { endpoint, ..self }
    }

    /// The grid.
    ///
    /// # Errors
    /// `Sites` without variables; `Value` for a base below 2, variables without digits or with more than 2⁶² points,
    /// and bounds that are not finite and increasing.
    pub fn build(self) -> Result<Grid> {
        let Self { variables, base, layout, endpoint } = self;
        if variables.is_empty() {
            return Err(TrainError::Sites { op: OP, required: 1, given: 0 });
        }
        if base < 2 {
            return Err(TrainError::value(
                OP,
                format!("the base must be at least 2, given {base}"),
            ));
        }
        for (v, variable) in variables.iter().enumerate() {
            let Variable { low, high, digits } = *variable;
            let points = power(base, digits).filter(|&n| n <= MOST);
            if digits == 0 || points.is_none() {
                let message = format!("variable {v}: 1 digit to 2⁶² points, given {base}^{digits}");
                return Err(TrainError::value(OP, message));
            }
            if !(low < high && (high - low).is_finite()) {
                let message = format!("variable {v}: finite low < high required, [{low}, {high}]");
                return Err(TrainError::value(OP, message));
            }
        }
        let most = variables.iter().map(|v| v.digits).max().unwrap_or(0);
        let level = |digit: usize| {
            let has = move |&v: &usize, variables: &[Variable]| digit < variables[v].digits;
            let all = 0..variables.len();
            all.filter(|v| has(v, &variables)).map(|v| (v, digit)).collect::<Vec<_>>()
        };
        let sites: Vec<Vec<(usize, usize)>> = match layout {
            Layout::Fused => (0..most).map(level).collect(),
            Layout::Interleaved => (0..most).flat_map(level).map(|at| vec![at]).collect(),
            Layout::Grouped => {
                let digits = |v: usize| (0..variables[v].digits).map(move |d| vec![(v, d)]);
                (0..variables.len()).flat_map(digits).collect()
            }
        };
        let widest = sites.iter().map(Vec::len).max().unwrap_or(1);
        if power(base, widest).is_none_or(|size| size > 1 << 32) {
            let message = format!("a site of {widest} fused digits of base {base} is too large");
            return Err(TrainError::value(OP, message));
        }
        Ok(Grid { variables, base, endpoint, sites })
    }
}

fn power(base: usize, exponent: usize) -> Option<u128> {
    (base as u128).checked_pow(u32::try_from(exponent).ok()?)
}

/// A grid whose indices are digits of a train.
///
/// ```
/// use t4a_networks::quantics::{GridBuilder, Layout};
/// let grid = GridBuilder::new().variable(0.0, 1.0, 3).variable(-1.0, 1.0, 3).layout(Layout::Fused).build()?;
/// // Indices 6 = 110 and 3 = 011.
/// assert_eq!(grid.to_sites(&[6, 3])?, [2, 3, 1]);
/// assert_eq!(grid.coordinates(&[2, 3, 1])?, [0.75, -0.25]);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    variables: Vec<Variable>,
    base: usize,
    endpoint: bool,
    /// Variables and levels of the digits of each site, the most significant digit first.
    sites: Vec<Vec<(usize, usize)>>,
}

impl Grid {
    /// Variables on the intervals given, base 2, interleaved, without the upper end.
    ///
    /// # Errors
    /// As [`GridBuilder::build`].
    pub fn new(intervals: &[(f64, f64)], digits: usize) -> Result<Self> {
        let add = |grid: GridBuilder, &(low, high): &(f64, f64)| grid.variable(low, high, digits);
        intervals.iter().fold(GridBuilder::new(), add).build()
    }

    /// Number of variables.
    pub fn variables(&self) -> usize {
        self.variables.len()
    }

    /// The base of the digits.
    pub fn base(&self) -> usize {
        self.base
    }

    /// Number of digits of a variable.
    pub fn digits(&self, variable: usize) -> Option<usize> {
        self.variables.get(variable).map(|v| v.digits)
    }

    /// Number of points of each variable.
    pub fn points(&self) -> Vec<usize> {
        // At most 2⁶², checked by the builder.
        self.variables.iter().map(|v| self.base.pow(v.digits as u32)).collect()
    }

    /// Distance between neighbouring points of each variable.
    pub fn steps(&self) -> Vec<f64> {
        let pairs = self.variables.iter().zip(self.points());
        let last = |n: usize| if self.endpoint { n - 1 } else { n };
        pairs.map(|(v, n)| (v.high - v.low) / last(n) as f64).collect()
    }

    /// True if the last point of each variable is the upper end of its interval.
    pub fn endpoint(&self) -> bool {
        self.endpoint
    }

    /// Variable and level of each digit of each site; level 0 is the most significant digit of a variable.
    pub fn sites(&self) -> &[Vec<(usize, usize)>] {
        &self.sites
    }

    /// Sizes of the sites of a train on this grid.
    pub fn sizes(&self) -> Vec<usize> {
        self.sites.iter().map(|digits| self.base.pow(digits.len() as u32)).collect()
    }

    /// The sites of indices, one per variable.
    ///
    /// # Errors
    /// `Length`, `Index`.
    pub fn to_sites(&self, indices: &[usize]) -> Result<Vec<usize>> {
        check_index("to_sites", &self.points(), indices)?;
        let digit = |&(v, level): &(usize, usize)| {
            let below = self.variables[v].digits - 1 - level;
            indices[v] / self.base.pow(below as u32) % self.base
        };
        let site = |digits: &Vec<(usize, usize)>| {
            digits.iter().fold(0, |site, at| site * self.base + digit(at))
        };
        Ok(self.sites.iter().map(site).collect())
    }

    /// The indices, one per variable, of the sites of a train.
    ///
    /// # Errors
    /// `Length`, `Index`.
    pub fn to_indices(&self, sites: &[usize]) -> Result<Vec<usize>> {
        check_index("to_indices", &self.sizes(), sites)?;
        let mut indices = vec![0; self.variables.len()];
        self.accumulate(sites, &mut indices);
        Ok(indices)
    }

    /// The indices of valid sites.
    pub(super) fn accumulate(&self, sites: &[usize], indices: &mut [usize]) {
        indices.fill(0);
        for (digits, &site) in self.sites.iter().zip(sites) {
            let mut rest = site;
            // The last digit first.
            for &(v, level) in digits.iter().rev() {
                let below = (self.variables[v].digits - 1 - level) as u32;
                indices[v] += rest % self.base * self.base.pow(below);
                rest /= self.base;
            }
        }
    }

    /// The coordinate of an index of a variable.
    pub(super) fn coordinate(&self, variable: usize, index: usize, step: f64) -> f64 {
        let Variable { low, high, digits } = self.variables[variable];
        let last = self.base.pow(digits as u32) - 1;
        if self.endpoint && index == last { high } else { step.mul_add(index as f64, low) }
    }

    /// The coordinates of the sites of a train.
    ///
    /// # Errors
    /// `Length`, `Index`.
    pub fn coordinates(&self, sites: &[usize]) -> Result<Vec<f64>> {
        let indices = self.to_indices(sites)?;
        let steps = self.steps();
        Ok((0..indices.len()).map(|v| self.coordinate(v, indices[v], steps[v])).collect())
    }

    /// The indices of the points nearest to coordinates; coordinates outside of the grid give its first or last point.
    ///
    /// # Errors
    /// `Length`; `Value` for NaN.
    pub fn nearest(&self, x: &[f64]) -> Result<Vec<usize>> {
        let op = "nearest";
        if x.len() != self.variables.len() {
            let (required, given) = (self.variables.len(), x.len());
            return Err(TrainError::Length { op, required, given });
        }
        if let Some(v) = x.iter().position(|x| x.is_nan()) {
            return Err(TrainError::value(op, format!("coordinate {v} is NaN")));
        }
        let (points, steps) = (self.points(), self.steps());
        let index = |v: usize| {
            let at = ((x[v] - self.variables[v].low) / steps[v]).round();
            (at.max(0.0) as usize).min(points[v] - 1)
        };
        Ok((0..x.len()).map(index).collect())
    }
}
