//! Matrix functions of maps, and elementwise functions.

use t4a_diff::Array;
use t4a_linalg::MatrixOp;
use t4a_linalg::expm::ExpmOp;
use t4a_linalg::hermitian::{Elementary, HermitianFunctionOp};
use t4a_linalg::logm::LogmOp;
use t4a_linalg::qr::{Columns, QrOp};
use t4a_linalg::sqrtm::SqrtmOp;
use t4a_linalg::svd::SvdFunctionOp;
use t4a_tensor::random::Generator;
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::leg::Leg;
use crate::sector::Sector;
use crate::spec::Spec;

/// Maps: the column legs are the duals of the row legs in the same order, the flux is neutral, and products are
/// contractions over the column legs.
impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Matrix exponential `Σ Aⁿ / n!` of a map.
    ///
    /// # Errors
    /// `Rank`, `LegMismatch`, `Flux`; `Linalg` of the exponential.
    pub fn exp(&self) -> Result<Self> {
        self.function("exp", ExpmOp.into())
    }

    /// Principal square root of a map.
    ///
    /// # Errors
    /// As [`GradedTensor::exp`]; `Linalg` for an eigenvalue on the negative real axis. A complex
    /// tensor whose negative eigenvalues are slightly off the axis has a root.
    pub fn sqrt(&self) -> Result<Self> {
        self.function("sqrt", SqrtmOp.into())
    }

    /// Principal logarithm of a map.
    ///
    /// # Errors
    /// As [`GradedTensor::sqrt`].
    pub fn log(&self) -> Result<Self> {
        self.function("log", LogmOp.into())
    }

    /// `V f(E) Vᴴ` of a Hermitian map, smooth at degenerate eigenvalues. Other maps are replaced by their Hermitian
    /// part.
    ///
    /// # Errors
    /// As [`GradedTensor::exp`]; `Linalg` for eigenvalues outside of the domain of f.
    pub fn hermitian_function(&self, f: Elementary) -> Result<Self> {
        self.function("hermitian_function", HermitianFunctionOp { function: f }.into())
    }

    fn function(&self, name: &'static str, op: MatrixOp) -> Result<Self> {
        let x = self.as_matrices(name)?;
        let results = x.by_matrix(op, vec![x.in_order()])?;
        // The column signs are their own inverse: this converts the matrices back to the map.
        Self::of_results(x.spec.clone(), results)?.as_matrices(name)
    }

    /// `U f(S) Vᴴ` with the first `rows` legs as rows, smooth at degenerate values. `S` are the singular values of
    /// all sectors.
    ///
    /// # Errors
    /// `Rows`; `Linalg` for singular values outside of the domain of f.
    pub fn svd_function(&self, rows: usize, f: Elementary) -> Result<Self> {
        let x = self.repartition(rows)?;
        let results = x.by_matrix(SvdFunctionOp { function: f }.into(), vec![x.in_order()])?;
        Self::of_results(x.spec, results)
    }
}

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Applies a function with `f(0) = 0` to each entry of a real tensor; forbidden entries stay 0.
    ///
    /// # Errors
    /// `Invalid` if `f(0)` is not 0 (convert to a dense array first) and for complex tensors.
    pub fn map_entries(&self, f: impl Fn(&A) -> A) -> Result<Self> {
        if self.im.is_some() {
            let message = "a function of the entries of a real tensor".into();
            return Err(StructuredError::Invalid { op: "map_entries", message });
        }
        let re = crate::entries::mapped("map_entries", &self.re, f)?;
        Ok(Self { spec: self.spec.clone(), re, im: None })
    }
}

impl<S: Sector> GradedTensor<S> {
    /// Random tensor whose matrix in each coupled sector is an isometry (orthonormal columns).
    ///
    /// # Errors
    /// `Invalid` for a matrix with more columns than rows; errors of the allocation.
    pub fn isometry(
        spec: Spec<S>,
        dtype: DType,
        complex: bool,
        generator: &Generator,
    ) -> Result<Self> {
        if let Some(wide) = spec.matrices().iter().find(|matrix| matrix.cols > matrix.rows) {
            let (charge, rows, cols) = (wide.charge, wide.rows, wide.cols);
            let message = format!("charge {charge} has {cols} columns, but only {rows} rows");
            return Err(StructuredError::Invalid { op: "isometry", message });
        }
        let x = Self::random(spec, dtype, complex, generator)?;
        let orders = vec![x.in_order(), x.in_order()];
        let mut results = x.by_matrix(QrOp { columns: Columns::Thin }.into(), orders)?;
        results.truncate(1 + usize::from(complex));
        Self::of_results(x.spec, results)
    }

    /// Identity map on the engine: `legs` are the row legs, their duals in the same order the column legs.
    ///
    /// # Errors
    /// As [`Spec::new`].
    pub fn identity(legs: &[Leg<S>], dtype: DType) -> Result<Self> {
        let all = legs.iter().cloned().chain(legs.iter().map(|leg| leg.dual())).collect();
        let spec = Spec::new(all, S::TRIVIAL, legs.len())?;
        let mut data = vec![0.0f64; spec.len()];
        for matrix in spec.matrices() {
            (0..matrix.rows).for_each(|i| data[matrix.offset + i * (matrix.cols + 1)] = 1.0);
        }
        let len = data.len();
        let data = AnyTensor::from(Tensor::from_vec(data, &[len])?).cast(dtype)?;
        Self::new(spec, data.into(), None)?.as_matrices("identity")
    }
}
