//! Linear maps between tensors: trains of cores with an output and an input index.

use t4a_algebra::Field;
use t4a_linalg::LinalgScalar;
use t4a_tensor::Tensor;
use t4a_tensor::copy::row_major;
use t4a_tensor::create::eye;

use super::matrix::{magnitude, product};
use super::{Compression, Result, TensorTrain, TrainError};

/// A linear map `G(t₁, …, t_n) = Σ O(t₁, s₁; …; t_n, s_n) F(s₁, …, s_n)` with cores `[l, output, input, r]`.
///
/// Arithmetic of maps is that of the train of all pairs of indices: [`TrainOperator::as_train`].
///
/// ```
/// use t4a_networks::train::{TensorTrain, TrainOperator};
/// let f = TensorTrain::product_of(&[vec![1.0, 2.0], vec![3.0, 4.0]])?;
/// let square = TrainOperator::diagonal(&f)?.apply(&f)?;
/// assert_eq!(square.eval(&[1, 1])?, 64.0);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TrainOperator<T: LinalgScalar> {
    cores: Vec<Tensor<T>>,
}

impl<T: LinalgScalar> TrainOperator<T> {
    /// A map of cores `[l, output, input, r]`.
    ///
    /// # Errors
    /// `Sites`, `Core` as [`TensorTrain::new`].
    pub fn new(cores: Vec<Tensor<T>>) -> Result<Self> {
        let op = "train_operator";
        for (site, core) in cores.iter().enumerate() {
            if core.rank() != 4 || core.numel() == 0 {
                let required = "[l, output, input, r] without axes of size 0".to_string();
                return Err(TrainError::Core { op, site, shape: core.shape().to_vec(), required });
            }
        }
        let out = Self { cores: cores.iter().map(row_major).collect::<Result<_, _>>()? };
        out.as_train()?;
        Ok(out)
    }

    /// The identity.
    ///
    /// # Errors
    /// `Sites`, `Core` for a site of size 0.
    pub fn identity(sizes: &[usize]) -> Result<Self> {
        let core = |&d: &usize| eye::<T>(d, d)?.reshape(&[1, d, d, 1]);
        Self::new(sizes.iter().map(core).collect::<Result<_, _>>()?)
    }

    /// Elementwise multiplication by a train.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn diagonal(train: &TensorTrain<T>) -> Result<Self> {
        let core = |core: &Tensor<T>| {
            let (&[l, d, r], data) = (core.shape(), core.as_slice().unwrap_or_default()) else {
                unreachable!("cores have rank 3")
            };
            let mut out = vec![T::ZERO; l * d * d * r];
            for (i, line) in data.chunks_exact(r).enumerate() {
                out[(i * d + i % d) * r..][..r].copy_from_slice(line);
            }
            Tensor::from_vec(out, &[l, d, d, r])
        };
        Self::new(train.cores().iter().map(core).collect::<Result<_, _>>()?)
    }

    /// The map of a train whose site `k` is the pair of output and input, the output first.
    ///
    /// # Errors
    /// `Length`, `Core` unless the size of each site is the product of those of output and input.
    pub fn from_train(train: &TensorTrain<T>, outputs: &[usize], inputs: &[usize]) -> Result<Self> {
        let op = "from_train";
        let n = train.len();
        for given in [outputs.len(), inputs.len()] {
            if given != n {
                return Err(TrainError::Length { op, required: n, given });
            }
        }
        let mut cores = Vec::with_capacity(n);
        for (site, core) in train.cores().iter().enumerate() {
            let (shape, sizes) = (core.shape(), [outputs[site], inputs[site]]);
            if Some(shape[1]) != sizes[0].checked_mul(sizes[1]) {
                let required = format!("a site of size {} · {}", sizes[0], sizes[1]);
                return Err(TrainError::Core { op, site, shape: shape.to_vec(), required });
            }
            cores.push(core.reshape(&[shape[0], sizes[0], sizes[1], shape[2]])?);
        }
        Self::new(cores)
    }

    /// The train of all pairs of output and input, the output first.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn as_train(&self) -> Result<TensorTrain<T>> {
        let core = |core: &Tensor<T>| {
            let shape = core.shape();
            core.reshape(&[shape[0], shape[1] * shape[2], shape[3]])
        };
        TensorTrain::new(self.cores.iter().map(core).collect::<Result<_, _>>()?)
    }

    /// Number of sites.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.cores.len()
    }

    /// The cores `[l, output, input, r]`, in row-major order.
    pub fn cores(&self) -> &[Tensor<T>] {
        &self.cores
    }

    /// Sizes of the outputs.
    pub fn outputs(&self) -> Vec<usize> {
        self.cores.iter().map(|core| core.shape()[1]).collect()
    }

    /// Sizes of the inputs.
    pub fn inputs(&self) -> Vec<usize> {
        self.cores.iter().map(|core| core.shape()[2]).collect()
    }

    /// The largest bond.
    pub fn max_bond(&self) -> usize {
        self.cores[1..].iter().map(|core| core.shape()[0]).max().unwrap_or(1)
    }

    /// `O F`: the bonds multiply. Cost `Σ l·l'·o·i·r·r'` multiply-adds.
    ///
    /// # Errors
    /// `Sizes` unless the inputs are the sites of `F`.
    pub fn apply(&self, train: &TensorTrain<T>) -> Result<TensorTrain<T>> {
        check_sizes("apply", self.inputs(), train.sizes())?;
        let column = |core: &Tensor<T>| {
            let shape = core.shape();
            core.reshape(&[shape[0], shape[1], 1, shape[2]])
        };
        let pairs = self.cores.iter().zip(train.cores());
        let cores = pairs.map(|(o, f)| {
            let core = contract(o, &column(f)?)?;
            let shape = core.shape();
            Ok(core.reshape(&[shape[0], shape[1], shape[3]])?)
        });
        TensorTrain::new(cores.collect::<Result<_>>()?)
    }

    /// `O F`, compressed, and the error of the compression.
    ///
    /// # Errors
    /// As [`TrainOperator::apply`] and [`TensorTrain::compress`].
    pub fn apply_compressed(
        &self,
        train: &TensorTrain<T>,
        compression: &Compression,
    ) -> Result<(TensorTrain<T>, f64)> {
        self.apply(train)?.compress(compression)
    }

    /// `O F` by one sweep that compresses while it multiplies, and one that compresses again (zip-up): for bonds w, D of
    /// `O` and `F` and bonds of the result of order D it costs `O(n d w D³)`, instead of `O(n d w³ D³)` of
    /// [`TrainOperator::apply_compressed`]. Close to the best compression for maps near the identity.
    ///
    /// The error is that of the second sweep; the first one has no estimate of its own.
    ///
    /// Reference: E. Stoudenmire, S. White, *Minimally entangled typical thermal state algorithms* (2010).
    ///
    /// # Errors
    /// As [`TrainOperator::apply`] and [`TensorTrain::compress`].
    pub fn apply_zip_up(
        &self,
        train: &TensorTrain<T>,
        compression: &Compression,
    ) -> Result<(TensorTrain<T>, f64)> {
        check_sizes("apply_zip_up", self.inputs(), train.sizes())?;
        compression.validate("apply_zip_up")?;
        let n = self.len();
        let train = train.canonical(n - 1)?;
        let bonds = (n - 1).max(1) as f64;
        let mut cores = Vec::with_capacity(n);
        // [bond of the map, bond of the train, bond of the result]: all sites so far.
        let mut rest = Tensor::ones(&[1, 1, 1])?;
        for (o, f) in self.cores.iter().zip(train.cores()).rev() {
            let joined = zipped(o, f, &rest)?;
            let (shape, rows) = (joined.shape().to_vec(), joined.shape()[0] * joined.shape()[1]);
            let matrix = joined.reshape(&[rows, shape[2] * shape[3]])?;
            if cores.len() + 1 == n {
                cores.push(matrix.reshape(&[1, shape[2], shape[3]])?);
                break;
            }
            let squares = matrix.to_vec()?.into_iter().map(|x| magnitude(x).powi(2));
            let weight = compression.tolerance * squares.sum::<f64>().sqrt() / bonds.sqrt();
            let (left, right, _) = compression.split(&matrix, weight)?;
            let bond = right.shape()[0];
            cores.push(right.reshape(&[bond, shape[2], shape[3]])?);
            rest = left.reshape(&[shape[0], shape[1], bond])?;
        }
        cores.reverse();
        TensorTrain::new(cores)?.compress(compression)
    }

    /// `O P`: first `P`, then `O`. The bonds multiply.
    ///
    /// # Errors
    /// `Sizes` unless the inputs of `O` are the outputs of `P`.
    pub fn compose(&self, other: &Self) -> Result<Self> {
        check_sizes("compose", self.inputs(), other.outputs())?;
        let pairs = self.cores.iter().zip(&other.cores);
        Self::new(pairs.map(|(a, b)| contract(a, b)).collect::<Result<_>>()?)
    }

    /// `O + P`: the bonds add up.
    ///
    /// # Errors
    /// `Sizes`.
    pub fn add(&self, other: &Self) -> Result<Self> {
        check_sizes("add", self.outputs(), other.outputs())?;
        check_sizes("add", self.inputs(), other.inputs())?;
        self.like(&self.as_train()?.add(&other.as_train()?)?)
    }

    /// `a O`.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn scale(&self, a: T) -> Result<Self> {
        self.like(&self.as_train()?.scale(a)?)
    }

    /// The transpose: outputs and inputs exchanged.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn transpose(&self) -> Result<Self> {
        let turned = self.cores.iter().map(|core| core.permute(&[0, 2, 1, 3]));
        Self::new(turned.collect::<Result<_, _>>()?)
    }

    /// The adjoint: the conjugate of the transpose.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn adjoint(&self) -> Result<Self> {
        let out = self.transpose()?;
        out.like(&out.as_train()?.map_cores(Field::conj)?)
    }

    /// The sites in reverse order.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn reverse(&self) -> Result<Self> {
        let turned = self.cores.iter().rev().map(|core| core.permute(&[3, 1, 2, 0]));
        Self::new(turned.collect::<Result<_, _>>()?)
    }

    /// Lower bonds, and the error as that of [`TensorTrain::compress`].
    ///
    /// # Errors
    /// As [`TensorTrain::compress`].
    pub fn compress(&self, compression: &Compression) -> Result<(Self, f64)> {
        let (train, error) = self.as_train()?.compress(compression)?;
        Ok((self.like(&train)?, error))
    }

    /// The matrix `[Π outputs, Π inputs]`, indices in row-major order.
    ///
    /// # Errors
    /// `Tensor`: more elements than memory has.
    pub fn to_dense(&self) -> Result<Tensor<T>> {
        let (outputs, inputs, n) = (self.outputs(), self.inputs(), self.len());
        let pairs = outputs.iter().zip(&inputs).flat_map(|(&o, &i)| [o, i]).collect::<Vec<_>>();
        let axes = (0..n).map(|k| 2 * k).chain((0..n).map(|k| 2 * k + 1)).collect::<Vec<_>>();
        let dense = self.as_train()?.to_dense()?.reshape(&pairs)?.permute(&axes)?;
        Ok(dense.reshape(&[outputs.iter().product(), inputs.iter().product()])?)
    }

    /// A train of pairs with the sizes of this map.
    fn like(&self, train: &TensorTrain<T>) -> Result<Self> {
        Self::from_train(train, &self.outputs(), &self.inputs())
    }
}

fn check_sizes(op: &'static str, lhs: Vec<usize>, rhs: Vec<usize>) -> Result<()> {
    if lhs == rhs { Ok(()) } else { Err(TrainError::Sizes { op, lhs, rhs }) }
}

/// A core of a map, a core of a train, and `[map, train, result]` of the sites behind: `[map, train, output, result]`.
fn zipped<T: LinalgScalar>(o: &Tensor<T>, f: &Tensor<T>, rest: &Tensor<T>) -> Result<Tensor<T>> {
    let (&[ol, out, input, or], &[fl, _, fr]) = (o.shape(), f.shape()) else {
        unreachable!("cores have ranks 4 and 3")
    };
    let new = rest.shape()[2];
    let rest = row_major(&rest.permute(&[1, 0, 2])?)?.reshape(&[fr, or * new])?;
    let x = product(&f.reshape(&[fl * input, fr])?, &rest)?.reshape(&[fl, input, or, new])?;
    let x = row_major(&x.permute(&[1, 2, 0, 3])?)?.reshape(&[input * or, fl * new])?;
    let y = product(&o.reshape(&[ol * out, input * or])?, &x)?.reshape(&[ol, out, fl, new])?;
    Ok(row_major(&y.permute(&[0, 2, 1, 3])?)?)
}

/// `Σⱼ A(i, j) ⊗ B(j, k)`: cores `[l, i, j, r]` and `[l', j, k, r']` to `[l·l', i, k, r·r']`.
fn contract<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let (&[la, i, j, ra], &[lb, _, k, rb]) = (a.shape(), b.shape()) else {
        unreachable!("cores have rank 4")
    };
    let x = row_major(&a.permute(&[0, 1, 3, 2])?)?.reshape(&[la * i * ra, j])?;
    let y = row_major(&b.permute(&[1, 0, 2, 3])?)?.reshape(&[j, lb * k * rb])?;
    let out = product(&x, &y)?.reshape(&[la, i, ra, lb, k, rb])?.permute(&[0, 3, 1, 4, 2, 5])?;
    Ok(row_major(&out)?.reshape(&[la * lb, i, k, ra * rb])?)
}
