//! Gauss–Legendre and Gauss–Kronrod rules with any number of nodes.

use t4a_linalg::solve::solve;
use t4a_tensor::Tensor;

use crate::train::{Result, TrainError};

/// Largest numbers of Gauss nodes. Those of Kronrod rules are limited by the rule that integrates products of three
/// Legendre polynomials.
const MOST: usize = 200;
const MOST_KRONROD: usize = 130;

/// Nodes and weights on an interval: `∫ f ≈ Σ wᵢ f(xᵢ)`.
///
/// ```
/// use t4a_networks::cross::Rule;
/// let rule = Rule::gauss_kronrod(7)?.on(0.0, 2.0)?;
/// let sum: f64 = rule.nodes().iter().zip(rule.weights()).map(|(x, w)| w * x.exp()).sum();
/// assert!((sum - (2f64.exp() - 1.0)).abs() < 1e-14);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    nodes: Vec<f64>,
    weights: Vec<f64>,
    /// Weights of the Gauss rule within a Kronrod rule, 0 at the other nodes.
    embedded: Option<Vec<f64>>,
}

/// `P_n(x)` and `P_{n−1}(x)` by the three-term recurrence.
fn legendre(n: usize, x: f64) -> (f64, f64) {
    let (mut before, mut now) = (0.0, 1.0);
    for k in 1..=n {
        let k = k as f64;
        (before, now) = (now, ((2.0 * k - 1.0) * x * now - (k - 1.0) * before) / k);
    }
    (now, before)
}

impl Rule {
    /// Nodes and weights of one's own.
    ///
    /// # Errors
    /// `Length` unless there are as many weights as nodes; `Value` without nodes or if one is not finite.
    pub fn new(nodes: &[f64], weights: &[f64]) -> Result<Self> {
        let op = "quadrature";
        if nodes.len() != weights.len() {
            return Err(TrainError::Length { op, required: nodes.len(), given: weights.len() });
        }
        if nodes.is_empty() || nodes.iter().chain(weights).any(|x| !x.is_finite()) {
            return Err(TrainError::value(
                op,
                "finite nodes and weights are required, at least one",
            ));
        }
        Ok(Self { nodes: nodes.to_vec(), weights: weights.to_vec(), embedded: None })
    }

    /// `n` nodes on [−1, 1], exact for polynomials of degree `2n − 1`.
    ///
    /// Zeros of `P_n` by Newton's method. Cost `n²`.
    ///
    /// # Errors
    /// `Value` unless `1 ≤ n ≤ 200`.
    pub fn gauss_legendre(n: usize) -> Result<Self> {
        if n == 0 || n > MOST {
            let message = format!("1 to {MOST} nodes are required, given {n}");
            return Err(TrainError::value("gauss_legendre", message));
        }
        let (mut nodes, mut weights) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for i in 0..n {
            let guess = (std::f64::consts::PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
            let slope = |x: f64| {
                let (p, q) = legendre(n, x);
                (p, n as f64 * (q - x * p) / (1.0 - x * x))
            };
            let mut x = -guess;
            for _ in 0..10 {
                let (p, dp) = slope(x);
                x -= p / dp;
            }
            if 2 * i + 1 == n {
                x = 0.0;
            }
            nodes.push(x);
            weights.push(2.0 / ((1.0 - x * x) * slope(x).1.powi(2)));
        }
        Ok(Self { nodes, weights, embedded: None })
    }

    /// `2n + 1` nodes on [−1, 1] that contain those of the Gauss rule of `n`, exact for polynomials of degree
    /// `3n + 1`.
    ///
    /// The additional nodes are the zeros of the polynomial `E` of degree `n + 1` with `∫ P_n E xᵏ = 0` for
    /// `k ≤ n`; they separate the Gauss nodes. Weights integrate `P₀ … P_2n`. Cost `n³`.
    /// Reference: A. Kronrod (1965); G. Monegato, SIAM Review 24, 137 (1982).
    ///
    /// # Errors
    /// `Value` unless `1 ≤ n ≤ 130`.
    pub fn gauss_kronrod(n: usize) -> Result<Self> {
        if n == 0 || n > MOST_KRONROD {
            let message = format!("1 to {MOST_KRONROD} Gauss nodes are required, given {n}");
            return Err(TrainError::value("gauss_kronrod", message));
        }
        let gauss = Self::gauss_legendre(n)?;
        let stieltjes = stieltjes(n)?;
        let value = |x: f64| {
            let terms = stieltjes.iter().enumerate().map(|(j, c)| c * legendre(j, x).0);
            terms.sum::<f64>()
        };
        let mut nodes = Vec::with_capacity(2 * n + 1);
        let mut ends = vec![-1.0];
        ends.extend_from_slice(&gauss.nodes);
        ends.push(1.0);
        for (i, pair) in ends.windows(2).enumerate() {
            let (mut low, mut high) = (pair[0], pair[1]);
            let sign = value(low).signum();
            for _ in 0..100 {
                let middle = 0.5 * (low + high);
                if value(middle).signum() == sign { low = middle } else { high = middle }
            }
            let middle = if 2 * i == n { 0.0 } else { 0.5 * (low + high) };
            nodes.push(middle);
            nodes.extend(gauss.nodes.get(i));
        }
        let size = nodes.len();
        let moments = Tensor::from_fn(&[size, size], |at| legendre(at / size, nodes[at % size]).0)?;
        let right = Tensor::from_fn(&[size, 1], |k| if k == 0 { 2.0 } else { 0.0 })?;
        let weights = solve(&moments, &right)?.to_vec()?;
        let embedded = (0..size).map(|i| if i % 2 == 1 { gauss.weights[i / 2] } else { 0.0 });
        Ok(Self { nodes, weights, embedded: Some(embedded.collect()) })
    }

    /// The rule of [−1, 1] on [a, b].
    ///
    /// # Errors
    /// `Value` unless both are finite.
    pub fn on(&self, a: f64, b: f64) -> Result<Self> {
        if !(a.is_finite() && b.is_finite() && (b - a).is_finite()) {
            let message = format!("a finite interval is required, given [{a}, {b}]");
            return Err(TrainError::value("quadrature", message));
        }
        let half = 0.5 * (b - a);
        let scale = |weights: &[f64]| weights.iter().map(|w| w * half).collect();
        Ok(Self {
            nodes: self.nodes.iter().map(|x| half.mul_add(*x, 0.5 * (a + b))).collect(),
            weights: scale(&self.weights),
            embedded: self.embedded.as_deref().map(scale),
        })
    }

    /// The nodes in increasing order.
    pub fn nodes(&self) -> &[f64] {
        &self.nodes
    }

    /// The weights.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Weights of the Gauss rule contained in a Kronrod rule, 0 at the other nodes.
    pub fn embedded(&self) -> Option<&[f64]> {
        self.embedded.as_deref()
    }
}

/// Coefficients of `E = P_{n+1} + Σ_{j ≤ n} cⱼ Pⱼ`, orthogonal to `P_n · Pₖ` for `k ≤ n`.
fn stieltjes(n: usize) -> Result<Vec<f64>> {
    // Products of three have degrees of at most 3n + 1.
    let exact = Rule::gauss_legendre((3 * n + 3).div_ceil(2))?;
    let triple = |j: usize, k: usize| {
        let term =
            |(&x, w): (&f64, &f64)| w * legendre(n, x).0 * legendre(j, x).0 * legendre(k, x).0;
        exact.nodes.iter().zip(&exact.weights).map(term).sum::<f64>()
    };
    let size = n + 1;
    let matrix = Tensor::from_fn(&[size, size], |at| triple(at % size, at / size))?;
    let right = Tensor::from_fn(&[size, 1], |k| -triple(n + 1, k))?;
    let mut out = solve(&matrix, &right)?.to_vec()?;
    out.push(1.0);
    Ok(out)
}
