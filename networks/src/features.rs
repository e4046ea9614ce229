//! A chain of cores as a function of features of its sites.

use t4a_diff::Array;

use crate::cores::DenseCore;
use crate::error::{NetworksError, Result};

const OP: &str = "contract_features";

/// Rows of norm 1, and the logarithms of what they were divided by.
#[derive(Clone, Debug)]
pub struct Contracted<A> {
    /// Real parts `[n, r]`.
    pub re: A,
    /// Imaginary parts of complex cores.
    pub im: Option<A>,
    /// `[n, 1]`: row k of the product is `exp(ln_norm[k])` times row k here; −∞ for a row of zeros.
    pub ln_norm: A,
}

/// `y[n, :] = Πₖ (Σ_s φₖ[n, s] Aₖ[:, s, :])` of cores `[l, d, r]` and features `φₖ [n, d]`, one array per site. The first
/// core has l = 1; the last one may have any r, such as a number of classes. Differentiable in cores and features.
///
/// Products are scaled to norm 1 after every site, so that long chains neither overflow nor vanish. One-hot features
/// select a basis state of each site, and y is its amplitude.
///
/// Shapes: n ≥ 1 rows. Cost: `O(n Σ l d r)`. Reference: E. Stoudenmire, D. Schwab, *Supervised learning with tensor
/// networks* (2016).
///
/// # Errors
/// `Length` unless there is one array of features per core, at least one; `Chain` for shapes that do not fit.
pub fn contract_features<A: Array>(
    cores: &[DenseCore<A>],
    features: &[A],
) -> Result<Contracted<A>> {
    check(cores, features)?;
    let (like, n) = (&cores[0].0, features[0].shape()[0]);
    let mut out =
        Contracted { re: like.full(&[n, 1], 1.0), im: None, ln_norm: like.full(&[n, 1], 0.0) };
    for (core, features) in cores.iter().zip(features) {
        out = out.step(core, features);
    }
    Ok(out)
}

fn check<A: Array>(cores: &[DenseCore<A>], features: &[A]) -> Result<()> {
    let (op, what, required, given) = (OP, "arrays of features", cores.len(), features.len());
    if required != given || required == 0 {
        let required = required.max(1);
        return Err(NetworksError::Length { op, what, required, given });
    }
    let n = features[0].shape().first().copied().unwrap_or(0);
    let mut left = 1;
    for (site, ((re, im), features)) in cores.iter().zip(features).enumerate() {
        let (shape, given) = (re.shape(), features.shape());
        let fits = shape.len() == 3
            && shape[0] == left
            && !shape.contains(&0)
            && n > 0
            && given == [n, shape[1]]
            && im.as_ref().is_none_or(|im| im.shape() == shape);
        if !fits {
            let message = format!(
                "a core [{left}, d, r] and features [n, d] are required, n = {n}, given {shape:?} and {given:?}"
            );
            return Err(NetworksError::Chain { op, site, message });
        }
        left = shape[2];
    }
    Ok(())
}

/// `Σ_s φ[n, s] (x[n, :] A[:, s, :])`.
fn absorb<A: Array>(x: &A, core: &A, features: &A) -> A {
    let (shape, n) = (core.shape(), x.shape()[0]);
    let all = x.matmul(&core.reshape(&[shape[0], shape[1] * shape[2]]));
    let weighted = all.reshape(&[n, shape[1], shape[2]]).mul(&features.reshape(&[n, shape[1], 1]));
    weighted.sum(1).reshape(&[n, shape[2]])
}

impl<A: Array> Contracted<A> {
    /// One more site.
    fn step(&self, (core, core_im): &DenseCore<A>, features: &A) -> Self {
        let product = |x: &A, core: &A| absorb(x, core, features);
        let re = product(&self.re, core);
        let (re, im) = match (&self.im, core_im) {
            (None, None) => (re, None),
            (None, Some(c)) => (re, Some(product(&self.re, c))),
            (Some(x), None) => (re, Some(product(x, core))),
            (Some(x), Some(c)) => {
                let im = product(&self.re, c).add(&product(x, core));
                (re.sub(&product(x, c)), Some(im))
            }
        };
        let mut square = re.mul(&re).sum(1);
        if let Some(im) = &im {
            square = square.add(&im.mul(im).sum(1));
        }
        // Zeros stay, with the logarithm of 0.
        let square = square.reshape(&[re.shape()[0], 1]);
        let zero = square.equals(0.0);
        let norm = square.fill(&zero, 1.0).sqrt();
        let ln_norm = self.ln_norm.add(&norm.ln().fill(&zero, f64::NEG_INFINITY));
        Self { re: re.div(&norm), im: im.map(|im| im.div(&norm)), ln_norm }
    }
}
