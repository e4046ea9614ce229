//! Tangents of a scan, computed step by step by two nested tapes.
//!
//! ```text
//! y = f(x)            the body on the outer tape
//! g(u) = Jᵀ u         its reverse pass, recorded by the inner tape, at u = 0
//! d⟨g(u), v⟩/du = J v the reverse pass of that
//! ```
//!
//! Both tapes end with the step, so memory does not grow with the number of steps. Operands without a tangent are
//! not recorded: consts, xs and leaves of the carry become tracked when a tangent reaches them.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Backend};
use t4a_diff::{Array, Value};
use t4a_scan::body::{self, Stack, at, same};

use super::prepared::{Prepared, flatten};
use super::{Options, Result, ScanError, ScanReport, Steps};
use crate::ext::operation::{Operand, Operations};
use crate::ext::primitive::{Bools, Floats, Indices};
use crate::ext::tape::is_tracked;
use crate::ext::tree::{Structure, Tree};

/// A tape over a tape.
type TwoTapes<B, C, D> = Autodiff<Autodiff<B, C>, D>;

/// A tensor with its tangent; `None` means zero. Integers and booleans have none.
type Moving<B> = (Operand<B>, Option<Floats<B>>);

type Flat<B> = body::Flat<Floats<B>>;

/// A tensor of the outer tape with its tangent.
type Entered<B, C, D> = (Floats<TwoTapes<B, C, D>>, Floats<B>);

/// Values of a tree of type `S` and of one of type `YS`, and their tangents.
pub type Pushed<S, YS> = ((S, YS), (S, YS));

/// A [`scan`](super::scan) and its derivative along tangents of consts, init and xs: the final carry and all ys,
/// and the tangents of both.
///
/// A tangent has the structure, shapes and dtypes of its primal; values at integer and boolean leaves are ignored.
/// `None` means zero and saves work. Tangents of integer results are zeros. The body is ordinary code on a tape
/// over a tape, and all tensors are constants of both tapes.
///
/// Cost: per step one call of the body and two reverse passes, about four times the body. Memory does not depend on
/// the number of steps, except for ys.
///
/// ```
/// use burn::backend::Autodiff;
/// use burn::tensor::Tensor;
/// use burn_t4a::ext::scan::{Options, scan_jvp};
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// type B = Autodiff<Autodiff<BurnT4a>>;
/// type Out = (Tensor<B, 1>, ());
/// // The product of all x.
/// let step = |(): (), c: Tensor<B, 1>, x: Tensor<B, 1>| (c * x, ());
/// let of = |x: &[f32]| Tensor::<B, 1>::from_floats(x, &T4aDevice);
/// let primals = ((), of(&[1.0]), of(&[2.0, 3.0, 4.0]));
/// let tangents = (None, None, Some(of(&[1.0, 1.0, 1.0])));
/// let ((y, ()), (dy, ())): (Out, Out) = scan_jvp(step, primals, tangents, &Options::default())?;
/// y.into_data().assert_eq(&[24.0f32].into(), false);
/// dy.into_data().assert_eq(&[26.0f32].into(), false); // 3·4 + 2·4 + 2·3
/// # Ok::<(), burn_t4a::ext::scan::ScanError>(())
/// ```
///
/// # Errors
/// As [`scan`](super::scan); tangents that do not match their primals; tracked operands, whose gradients would be
/// lost.
pub fn scan_jvp<B, C, D, F, K, S, XS, X, Y, YS>(
    body: F,
    (consts, init, xs): (K, S, XS),
    tangents: (Option<K>, Option<S>, Option<XS>),
    options: &Options,
) -> Result<Pushed<S, YS>>
where
    B: Operations,
    C: CheckpointStrategy,
    D: CheckpointStrategy,
    F: Fn(K, S, X) -> (S, Y) + Send + Sync + 'static,
    K: Tree<TwoTapes<B, C, D>>,
    S: Tree<TwoTapes<B, C, D>>,
    XS: Tree<TwoTapes<B, C, D>>,
    X: Tree<TwoTapes<B, C, D>>,
    Y: Tree<TwoTapes<B, C, D>>,
    YS: Tree<TwoTapes<B, C, D>>,
{
    let structures = [consts.structure(), init.structure(), xs.structure()];
    let prepared = Prepared::<TwoTapes<B, C, D>>::new(body, consts, init, xs, options)?;
    options.take_path(ScanReport::step_by_step(prepared.steps.length()))?;
    let Prepared { steps, consts, init, xs, .. } = &prepared;
    let [of_consts, of_init, of_xs] = &structures;
    let consts = moving("consts", consts, tangents.0, of_consts)?;
    let init = moving("init", init, tangents.1, of_init)?;
    let xs = moving("xs", xs, tangents.2, of_xs)?;
    let [values, tangents] = run(steps, &consts, init, &xs)?;
    Ok((prepared.build(values)?, prepared.build(tangents)?))
}

/// Leaves of an operand as constants of both tapes, with their tangents.
fn moving<
    B: Operations,
    C: CheckpointStrategy,
    D: CheckpointStrategy,
    T: Tree<TwoTapes<B, C, D>>,
>(
    what: &'static str,
    values: &Flat<TwoTapes<B, C, D>>,
    tangent: Option<T>,
    structure: &Structure,
) -> Result<Vec<Moving<B>>> {
    let Some(tangent) = tangent else {
        return values.iter().map(|x| Ok((below::<B, C, D>(what, x)?, None))).collect();
    };
    let (given, tangent) = flatten(tangent);
    same("a tangent", &given, structure)?;
    let both = values.iter().zip(tangent).zip(structure.paths());
    both.map(|((x, v), path)| {
        let (x, v) = (below::<B, C, D>(what, x)?, below::<B, C, D>(what, &v)?);
        if x.as_float().is_none() {
            return Ok((x, None));
        }
        let [required, given] = [&x, &v].map(|x| Box::new((x.shape(), x.dtype())));
        match required == given {
            true => Ok((x, v.into_float())),
            false => Err(ScanError::Tangent { what, path, required, given }),
        }
    })
    .collect()
}

/// Value of a constant below both tapes; an error if it is tracked.
fn below<B: Operations, C: CheckpointStrategy, D: CheckpointStrategy>(
    what: &'static str,
    x: &Operand<TwoTapes<B, C, D>>,
) -> Result<Operand<B>> {
    if let Value::Float(x) = x {
        let inner = TwoTapes::<B, C, D>::inner(x.0.clone());
        if is_tracked::<Autodiff<B, C>, D>(&x.0) || is_tracked::<B, C>(&inner) {
            return Err(ScanError::Tracked { what });
        }
    }
    Ok(bottom::<B, C, D>(x.clone()))
}

fn bottom<B: Operations, C: CheckpointStrategy, D: CheckpointStrategy>(
    x: Operand<TwoTapes<B, C, D>>,
) -> Operand<B> {
    let float = |x: Floats<TwoTapes<B, C, D>>| {
        Floats(Autodiff::<B, C>::inner(TwoTapes::<B, C, D>::inner(x.0)))
    };
    x.map(float, |x| Indices(x.0), |x| Bools(x.0))
}

fn above<B: Operations, C: CheckpointStrategy, D: CheckpointStrategy>(
    x: Operand<B>,
) -> Operand<TwoTapes<B, C, D>> {
    let float =
        |x: Floats<B>| Floats(TwoTapes::<B, C, D>::from_inner(Autodiff::<B, C>::from_inner(x.0)));
    x.map(float, |x| Indices(x.0), |x| Bools(x.0))
}

/// Splits a list into values and tangents; missing tangents are zeros.
fn unzipped<B: Operations>(all: Vec<Moving<B>>) -> (Flat<B>, Flat<B>) {
    let filled = |(x, v): Moving<B>| {
        let v = v.map_or_else(|| x.zeros(&x.shape()), Value::Float);
        (x, v)
    };
    all.into_iter().map(filled).unzip()
}

/// Carry and ys, their values and tangents.
type ScanResults<B, C, D> = [[Flat<TwoTapes<B, C, D>>; 2]; 2];

fn run<B: Operations, C: CheckpointStrategy, D: CheckpointStrategy>(
    steps: &Steps<Floats<TwoTapes<B, C, D>>>,
    consts: &[Moving<B>],
    init: Vec<Moving<B>>,
    xs: &[Moving<B>],
) -> Result<ScanResults<B, C, D>> {
    let up = |x: Flat<B>| x.into_iter().map(above::<B, C, D>).collect::<Flat<TwoTapes<B, C, D>>>();
    if steps.length() == 0 {
        let values = |x: &[Moving<B>]| up(x.iter().map(|(x, _)| x.clone()).collect());
        let (first, of_first) = unzipped::<B>(init);
        let [last, ys] = steps.run(&values(consts), up(first), &values(xs))?;
        return Ok([[last, ys.clone()], [up(of_first), ys]]);
    }
    let (mut values, mut tangents) = (Stack::new(steps.length()), Stack::new(steps.length()));
    let mut carry = init;
    for k in 0..steps.length() {
        let t = steps.time(k);
        let element = |x: Operand<B>| at(std::slice::from_ref(&x), t).swap_remove(0);
        let tangent = |v: &Floats<B>| element(Value::Float(v.clone())).into_float();
        let x = xs.iter().map(|(x, v)| (element(x.clone()), v.as_ref().and_then(tangent)));
        let x = x.collect();
        let [next, y] = step(steps, consts, carry, x)?;
        carry = next;
        let (y, of_y) = unzipped::<B>(y);
        values.put(t, y)?;
        tangents.put(t, of_y)?;
    }
    let (last, of_last) = unzipped::<B>(carry);
    Ok([[up(last), up(values.finish()?)], [up(of_last), up(tangents.finish()?)]])
}

/// One step: carry and y with their tangents.
fn step<B: Operations, C: CheckpointStrategy, D: CheckpointStrategy>(
    steps: &Steps<Floats<TwoTapes<B, C, D>>>,
    consts: &[Moving<B>],
    carry: Vec<Moving<B>>,
    x: Vec<Moving<B>>,
) -> Result<[Vec<Moving<B>>; 2]> {
    type Lower<B, C> = Autodiff<B, C>;
    type Upper<B, C, D> = TwoTapes<B, C, D>;
    let mut leaves: Vec<Entered<B, C, D>> = Vec::new();
    let mut enter = |(x, v): Moving<B>| {
        let x = above::<B, C, D>(x);
        match (x, v) {
            (Value::Float(x), Some(v)) => {
                let x = Upper::<B, C, D>::float_set_require_grad(x.0, true);
                leaves.push((Floats(x.clone()), v));
                Value::Float(Floats(x))
            }
            (x, _) => x,
        }
    };
    let consts: Vec<_> = consts.iter().cloned().map(&mut enter).collect();
    let carry: Vec<_> = carry.into_iter().map(&mut enter).collect();
    let x = x.into_iter().map(&mut enter).collect();
    let (carry, y) = steps.step(&consts, carry, x)?;
    let carries = carry.len();
    let outputs: Vec<_> = carry.into_iter().chain(y).collect();

    // ⟨y, u⟩ with u = 0 on the inner tape; J v is the gradient with respect to u.
    let mut pairing = None;
    let mut directions = Vec::with_capacity(outputs.len());
    for output in &outputs {
        let output = match output {
            Value::Float(output) if is_tracked::<Lower<B, C>, D>(&output.0) => output,
            _ => {
                directions.push(None);
                continue;
            }
        };
        let u = Floats::<Lower<B, C>>(Upper::<B, C, D>::inner(output.0.clone()));
        let u = u.full(&u.shape(), 0.0).0;
        let u = Lower::<B, C>::float_set_require_grad(u, true);
        directions.push(Some(u.clone()));
        add_product::<Upper<B, C, D>>(
            &mut pairing,
            output.0.clone(),
            Upper::<B, C, D>::from_inner(u),
        );
    }
    let mut second = None;
    if let Some(pairing) = pairing {
        let gradients = Upper::<B, C, D>::backward(pairing);
        for (leaf, v) in leaves {
            // g(u), unless the leaf has no influence.
            if let Some(g) = Upper::<B, C, D>::grad(&leaf.0, &gradients)
                && is_tracked::<B, C>(&g)
            {
                add_product::<Lower<B, C>>(&mut second, g, Lower::<B, C>::from_inner(v.0));
            }
        }
    }
    let gradients = second.map(Lower::<B, C>::backward);
    let tangent = |u: Option<FloatTensor<Lower<B, C>>>| {
        Lower::<B, C>::grad(&u?, gradients.as_ref()?).map(Floats::<B>)
    };
    let both = outputs.into_iter().zip(directions);
    let mut all: Vec<Moving<B>> = both.map(|(x, u)| (bottom::<B, C, D>(x), tangent(u))).collect();
    let y = all.split_off(carries);
    Ok([all, y])
}

/// `sum ← sum + ⟨x, y⟩`. The reverse pass of this sum starts with exactly y and x as cotangents.
fn add_product<B: Backend>(sum: &mut Option<FloatTensor<B>>, x: FloatTensor<B>, y: FloatTensor<B>) {
    let product = B::float_sum(B::float_mul(x, y));
    *sum = Some(match sum.take() {
        Some(sum) => B::float_add(sum, product),
        None => product,
    });
}
