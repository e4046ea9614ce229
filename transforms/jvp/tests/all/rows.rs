//! Rows of tests: a row is a function of tensors, and is checked in all of these ways.
//!
//! ```text
//! Jvp<B>             against central differences, for every subset of operands with tangents
//! Jvp<Jvp<B>>        against differences of the former
//! Autodiff<Jvp<B>>   ⟨Jᵀu, v⟩ = ⟨u, J v⟩, and the tangent of the gradient ⟨u, v H v⟩
//! Jvp<Autodiff<B>>   the gradient of ⟨u, J v⟩ along v is the same number
//! ```

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData, TensorPrimitive};
use burn_backend::tensor::FloatTensor;
use burn_t4a::BurnT4a;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::scan::ScanBackend;
use burn_t4a_jvp::{Jvp, JvpTensor};

pub(crate) type B = BurnT4a;

/// A function of flattened tensors.
pub(crate) trait Row {
    /// Sizes of the operands, and the intervals of their elements.
    fn operands() -> Vec<(usize, f64, f64)>;
    /// Evaluates the function; the result is flattened, too.
    fn apply<B: Operations + ScanBackend>(x: &[Tensor<B, 1>]) -> Tensor<B, 1>;
}

/// A tensor in `f64`.
pub(crate) fn tensor<B: Backend>(x: &[f64]) -> Tensor<B, 1> {
    wrap(B::float_from_data(TensorData::new(x.to_vec(), [x.len()]), &Default::default()))
}

pub(crate) fn wrap<B: Backend>(x: FloatTensor<B>) -> Tensor<B, 1> {
    Tensor::from_primitive(TensorPrimitive::Float(x))
}

pub(crate) fn primitive<B: Backend>(x: Tensor<B, 1>) -> FloatTensor<B> {
    x.into_primitive().tensor()
}

pub(crate) fn read<B: Backend>(x: Tensor<B, 1>) -> Vec<f64> {
    x.into_data().convert::<f64>().to_vec().unwrap()
}

pub(crate) fn flat<B: Backend, const D: usize>(x: Tensor<B, D>) -> Tensor<B, 1> {
    let n = x.shape().num_elements();
    x.reshape([n])
}

/// Deterministic pseudo-random elements of an interval.
pub(crate) fn noise(seed: usize, n: usize, low: f64, high: f64) -> Vec<f64> {
    let mut state = (seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let next = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        low + (high - low) * ((state >> 11) as f64 / (1u64 << 53) as f64)
    };
    (0..n).map(next).collect()
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[track_caller]
pub(crate) fn close(what: &str, given: &[f64], wanted: &[f64], tolerance: f64) {
    assert_eq!(given.len(), wanted.len(), "{what}: lengths");
    for (i, (g, w)) in given.iter().zip(wanted).enumerate() {
        let bound = tolerance * (1.0 + w.abs());
        assert!(
            (g - w).abs() <= bound,
            "{what}: element {i} is {g}, wanted {w}\n{given:?}\n{wanted:?}"
        );
    }
}

fn dual<B: Backend>(x: FloatTensor<B>, v: FloatTensor<B>) -> FloatTensor<Jvp<B>> {
    JvpTensor::new(x, v)
}

/// Value and tangent of a row; the tangent is `None` if no operand has one.
fn push<R: Row>(x: &[Vec<f64>], v: &[Option<&Vec<f64>>]) -> (Vec<f64>, Option<Vec<f64>>) {
    let operand = |(x, v): (&Vec<f64>, &Option<&Vec<f64>>)| {
        let x = primitive(tensor::<B>(x));
        wrap::<Jvp<B>>(match v {
            Some(v) => dual::<B>(x, primitive(tensor::<B>(v))),
            None => JvpTensor::constant(x),
        })
    };
    let operands: Vec<_> = x.iter().zip(v).map(operand).collect();
    let (y, t) = primitive(R::apply::<Jvp<B>>(&operands)).into_parts();
    (read(wrap::<B>(y)), t.map(|t| read(wrap::<B>(t))))
}

fn along(x: &[Vec<f64>], v: &[Option<&Vec<f64>>], h: f64) -> Vec<Vec<f64>> {
    let moved = |(x, v): (&Vec<f64>, &Option<&Vec<f64>>)| match v {
        Some(v) => x.iter().zip(*v).map(|(x, v)| x + h * v).collect(),
        None => x.clone(),
    };
    x.iter().zip(v).map(moved).collect()
}

fn difference(f: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let h = 1e-5;
    f(h).into_iter().zip(f(-h)).map(|(a, b)| (a - b) / (2.0 * h)).collect()
}

/// One list of numbers per operand.
type Flats = Vec<Vec<f64>>;

/// Checks first derivatives for all subsets of operands; returns x, v and the tangent with respect to all operands.
fn forward<R: Row>() -> (Flats, Flats, Vec<f64>) {
    let operands = R::operands();
    let all = |from: usize| operands.iter().enumerate().map(move |(i, o)| (from + i, *o));
    let x: Vec<_> = all(1).map(|(i, (n, low, high))| noise(i, n, low, high)).collect();
    let v: Vec<_> = all(50).map(|(i, (n, ..))| noise(i, n, -1.0, 1.0)).collect();
    let value = |x: &[Vec<f64>]| {
        let x: Vec<_> = x.iter().map(|x| tensor::<B>(x)).collect();
        read(R::apply::<B>(&x))
    };
    let still = push::<R>(&x, &vec![None; x.len()]);
    close("value without tangents", &still.0, &value(&x), 1e-12);
    assert!(still.1.is_none(), "a tangent out of nothing");
    let full = (1usize << x.len()) - 1;
    let subsets: Vec<usize> = match x.len() {
        0..=3 => (1..=full).collect(),
        n => (0..n).map(|i| 1 << i).chain([full]).collect(),
    };
    let mut tangent = Vec::new();
    for subset in subsets {
        let v: Vec<_> =
            v.iter().enumerate().map(|(i, v)| (subset >> i & 1 == 1).then_some(v)).collect();
        let (y, t) = push::<R>(&x, &v);
        close("value", &y, &still.0, 1e-10);
        tangent = t.unwrap_or_else(|| vec![0.0; y.len()]);
        let wanted = difference(|h| value(&along(&x, &v, h)));
        close(&format!("tangent of operands {subset:b}"), &tangent, &wanted, 2e-6);
    }
    (x, v, tangent)
}

fn some(v: &[Vec<f64>]) -> Vec<Option<&Vec<f64>>> {
    v.iter().map(Some).collect()
}

/// Second derivative along v by nesting.
fn twice<R: Row>(x: &[Vec<f64>], v: &[Vec<f64>], first: &[f64]) -> Vec<f64> {
    let operand = |(x, v): (&Vec<f64>, &Vec<f64>)| {
        let [x, v] = [x, v].map(|x| primitive(tensor::<B>(x)));
        let inner = dual::<B>(x, v.clone());
        wrap::<Jvp<Jvp<B>>>(dual::<Jvp<B>>(inner, JvpTensor::constant(v)))
    };
    let operands: Vec<_> = x.iter().zip(v).map(operand).collect();
    let y = primitive(R::apply::<Jvp<Jvp<B>>>(&operands));
    let Some(t) = y.tangent() else { return vec![0.0; first.len()] };
    close("tangent of the upper level", &read(wrap::<B>(t.primal().clone())), first, 1e-9);
    match t.tangent() {
        Some(t) => read(wrap::<B>(t.clone())),
        None => vec![0.0; first.len()],
    }
}

/// Checks first derivatives only: for functions without a second derivative, or piecewise linear ones with expensive
/// differences.
pub(crate) fn check_first<R: Row>() {
    forward::<R>();
}

/// Checks first and second derivatives in forward mode.
pub(crate) fn check_forward<R: Row>() -> (Flats, Flats, [Vec<f64>; 2]) {
    let (x, v, first) = forward::<R>();
    let second = twice::<R>(&x, &v, &first);
    let wanted = difference(|h| {
        let x = along(&x, &some(&v), h);
        let zeros = || vec![0.0; first.len()];
        push::<R>(&x, &some(&v)).1.unwrap_or_else(zeros)
    });
    close("second tangent", &second, &wanted, 2e-5);
    (x, v, [first, second])
}

/// Checks all derivatives.
pub(crate) fn check<R: Row>() {
    let (x, v, [first, second]) = check_forward::<R>();
    let u = noise(99, first.len(), -1.0, 1.0);

    // Reverse over forward: a tape on tensors with tangents.
    type Outer = Autodiff<Jvp<B>>;
    let operand = |(x, v): (&Vec<f64>, &Vec<f64>)| {
        let [x, v] = [x, v].map(|x| primitive(tensor::<B>(x)));
        Tensor::<Outer, 1>::from_inner(wrap(dual::<B>(x, v))).require_grad()
    };
    let operands: Vec<_> = x.iter().zip(&v).map(operand).collect();
    let loss = (R::apply::<Outer>(&operands) * tensor(&u)).sum();
    let gradients = loss.backward();
    let mut found = [0.0; 2];
    for (x, v) in operands.iter().zip(&v) {
        let Some(g) = x.grad(&gradients) else { continue };
        let (g, t) = primitive(g).into_parts();
        found[0] += dot(&read(wrap::<B>(g)), v);
        found[1] += t.map_or(0.0, |t| dot(&read(wrap::<B>(t)), v));
    }
    let wanted = [dot(&u, &first), dot(&u, &second)];
    close("⟨Jᵀu, v⟩ and the tangent of the gradient", &found, &wanted, 1e-8);

    // Forward over reverse: tangents on tensors of a tape.
    type Inner = Autodiff<B>;
    let mut leaves = Vec::new();
    let mut operand = |(x, v): (&Vec<f64>, &Vec<f64>)| {
        let x = tensor::<Inner>(x).require_grad();
        leaves.push(x.clone());
        wrap::<Jvp<Inner>>(dual::<Inner>(primitive(x), primitive(tensor::<Inner>(v))))
    };
    let operands: Vec<_> = x.iter().zip(&v).map(&mut operand).collect();
    let y = primitive(R::apply::<Jvp<Inner>>(&operands));
    let Some(t) = y.tangent() else { return assert_eq!(dot(&first, &first), 0.0) };
    let loss = (wrap::<Inner>(t.clone()) * tensor(&u)).sum();
    close("⟨u, J v⟩ on a tape", &read(loss.clone().inner()), &wanted[..1], 1e-8);
    let gradients = loss.backward();
    let along = |(x, v): (&Tensor<Inner, 1>, &Vec<f64>)| {
        x.grad(&gradients).map_or(0.0, |g| dot(&read(g), v))
    };
    let found: f64 = leaves.iter().zip(&v).map(along).sum();
    close("the gradient of ⟨u, J v⟩", &[found], &wanted[1..], 1e-8);
}

/// `check name(x: [2, 3] in (low, high), …) => expression;`
macro_rules! rows {
    ($($check:ident $name:ident(
        $($x:ident: [$($size:expr),*] in ($low:expr, $high:expr)),*
    ) => $value:expr;)*) => {$(
        #[test]
        fn $name() {
            struct This;
            impl crate::rows::Row for This {
                fn operands() -> Vec<(usize, f64, f64)> {
                    vec![$(([$($size),*].iter().product(), $low, $high)),*]
                }
                fn apply<Back>(
                    x: &[burn::tensor::Tensor<Back, 1>],
                ) -> burn::tensor::Tensor<Back, 1>
                where
                    Back: burn_t4a::ext::operation::Operations + burn_t4a::ext::scan::ScanBackend,
                {
                    let mut all = x.iter().cloned();
                    $(let $x = all.next().unwrap().reshape([$($size as usize),*]);)*
                    crate::rows::flat($value)
                }
            }
            crate::rows::$check::<This>();
        }
    )*};
}
pub(crate) use rows;
