//! Functions of maps and of entries.

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

/// Maps: column legs are the duals of the row legs in the same order, the charge is neutral, and products are
/// contractions over them.
impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// `Σ Aⁿ / n!` of a map.
    ///
    /// # Errors
    /// `Rank`, `LegMismatch`, `Flux`; `Linalg` of the exponential.
    pub fn exp(&self) -> Result<Self> {
        self.function("exp", ExpmOp.into())
    }

    /// The principal root of a map, whose square is A.
    ///
    /// # Errors
    /// As [`GradedTensor::exp`]; `Linalg` for an eigenvalue on the negative real axis. A complex tensor of negative
    /// eigenvalues slightly off the axis has a root.
    pub fn sqrt(&self) -> Result<Self> {
        self.function("sqrt", SqrtmOp.into())
    }

    /// The principal logarithm of a map, whose exponential is A.
    ///
    /// # Errors
    /// As [`GradedTensor::sqrt`].
    pub fn log(&self) -> Result<Self> {
        self.function("log", LogmOp.into())
    }

    /// `V f(E) Vᴴ` of a Hermitian map, smooth at ties; of other maps the Hermitian part is read.
    ///
    /// # Errors
    /// As [`GradedTensor::exp`]; `Linalg` for eigenvalues outside of the domain of f.
    pub fn hermitian_function(&self, f: Elementary) -> Result<Self> {
        self.function("hermitian_function", HermitianFunctionOp { function: f }.into())
    }

    fn function(&self, name: &'static str, op: MatrixOp) -> Result<Self> {
        let x = self.as_matrices(name)?;
        let results = x.by_matrix(op, vec![x.in_order()])?;
        // The signs of the columns once more: the map of these matrices.
        Self::of_results(x.spec.clone(), results)?.as_matrices(name)
    }

    /// `U f(S) Vᴴ` with the first `rows` legs as rows, smooth at ties: `S` are the singular values of all sectors.
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
    /// A function of each entry of a real tensor, which maps 0 to 0: entries that are not stored stay what
    /// they are.
    ///
    /// # Errors
    /// `Invalid` for other functions (make it dense first) and complex tensors.
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
    /// A random tensor whose matrices of all charges are isometries: orthonormal columns.
    ///
    /// # Errors
    /// `Invalid` for a matrix with more columns than rows; those of the memory.
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

    /// The identity of these legs on the engine: they are rows, their duals in the same order columns.
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
