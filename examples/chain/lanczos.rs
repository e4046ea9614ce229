//! Lowest eigenvalue of a Hermitian map on graded tensors.

use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::BurnT4a;
use burn_t4a::ext::linalg;
use burn_t4a::ext::structured::{GradedTensor, Result, Sector};

type T<S> = GradedTensor<BurnT4a, S>;

/// Lowest eigenvalue in the Krylov space of `x, Ax, A²x, …`, and its normalised eigenvector.
pub fn lanczos<S: Sector>(
    map: impl Fn(&T<S>) -> Result<T<S>>,
    start: &T<S>,
    steps: usize,
) -> Result<(f64, T<S>)> {
    let mut basis: Vec<T<S>> = vec![start.scale(1.0 / norm(start)?)];
    let (mut diagonal, mut off) = (Vec::new(), Vec::new());
    loop {
        let last = &basis[basis.len() - 1];
        let mut next = map(last)?;
        diagonal.push(inner(last, &next)?);
        // Orthogonalisation against the full basis, twice, because of rounding errors.
        for _ in 0..2 {
            for x in &basis {
                next = next.sub(&x.scale(inner(x, &next)?))?;
            }
        }
        let size = norm(&next)?;
        if size < 1e-12 || basis.len() == steps.min(start.spec().len()) {
            break;
        }
        off.push(size);
        basis.push(next.scale(1.0 / size));
    }
    let n = basis.len();
    let mut matrix = vec![0.0; n * n];
    for i in 0..n {
        matrix[i * n + i] = diagonal[i];
        if i + 1 < n {
            matrix[i * n + i + 1] = off[i];
            matrix[(i + 1) * n + i] = off[i];
        }
    }
    let matrix = TensorData::new(matrix, [n, n]);
    let matrix = Tensor::<BurnT4a, 2>::from_data(matrix, (&Default::default(), DType::F64));
    let linalg::Eigh { values, vectors } = linalg::eigh(matrix)?;
    let first = numbers(vectors.narrow(1, 0, 1).flatten(0, 1));
    let mut ground = basis[0].scale(first[0]);
    for (x, &c) in basis.iter().zip(&first).skip(1) {
        ground = ground.add(&x.scale(c))?;
    }
    Ok((numbers(values)[0], ground))
}

fn numbers(x: Tensor<BurnT4a, 1>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

fn inner<S: Sector>(x: &T<S>, y: &T<S>) -> Result<f64> {
    Ok(numbers(x.inner(y)?.0.tensor()?)[0])
}

fn norm<S: Sector>(x: &T<S>) -> Result<f64> {
    Ok(inner(x, x)?.sqrt())
}
