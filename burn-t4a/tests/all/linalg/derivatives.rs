//! Gradients of every function: against finite differences, on two backends, and second derivatives.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::BalancedCheckpointing;
use burn_backend::AutodiffBackend;
use burn_backend::DType;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::operation::Operations;
use burn_tensor::Tensor;

use super::cases::{Case, Inputs, cases, data, numbers, tensor, values};

type AD = Autodiff<BurnT4a>;

fn input_data<B: Operations>(index: usize, case: &Case<B>) -> Vec<Vec<f64>> {
    let one = |(i, shape): (usize, &[usize; 3])| data(index, i, *shape, case.kind);
    case.shapes.iter().enumerate().map(one).collect()
}

fn directions<B: Operations>(index: usize, case: &Case<B>) -> Vec<Vec<f64>> {
    let one = |(i, shape): (usize, &[usize; 3])| {
        numbers(500 + 10 * index + i, shape.iter().product::<usize>())
    };
    case.shapes.iter().enumerate().map(one).collect()
}

fn inputs<B: Operations>(data: &[Vec<f64>], shapes: &[[usize; 3]]) -> Inputs<B> {
    data.iter().zip(shapes).map(|(x, &shape)| tensor(x.clone(), shape)).collect()
}

/// Gradient on `B`, one vector per input.
fn gradient<B: AutodiffBackend + Operations>(case: &Case<B>, data: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let x: Inputs<B> = inputs(data, &case.shapes);
    let x: Inputs<B> = x.into_iter().map(|x| x.require_grad()).collect();
    let gradients = (case.loss)(x.clone()).backward();
    x.iter().map(|x| values(x.grad(&gradients).expect("every input counts"))).collect()
}

fn shifted(data: &[Vec<f64>], h: f64, directions: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let one = |(x, v): (&Vec<f64>, &Vec<f64>)| x.iter().zip(v).map(|(x, v)| x + h * v).collect();
    data.iter().zip(directions).map(one).collect()
}

fn dot(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a * b).sum()
}

fn norm(a: &[Vec<f64>]) -> f64 {
    dot(a, a).sqrt()
}

/// Central difference of fourth order.
fn difference(f: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let h = 2e-4;
    let (p1, m1, p2, m2) = (f(h), f(-h), f(2.0 * h), f(-2.0 * h));
    (0..p1.len()).map(|i| (8.0 * (p1[i] - m1[i]) - (p2[i] - m2[i])) / (12.0 * h)).collect()
}

#[test]
fn gradients_agree_with_differences() {
    for (index, (case, plain)) in cases::<AD>().iter().zip(cases::<BurnT4a>()).enumerate() {
        let (x, v) = (input_data(index, case), directions(index, case));
        let bar = gradient(case, &x);
        let slope =
            difference(|h| values((plain.loss)(inputs(&shifted(&x, h, &v), &plain.shapes))))[0];
        let got = dot(&bar, &v);
        let scale = slope.abs().max(0.1 * norm(&bar) * norm(&v));
        assert!((got - slope).abs() <= 1e-6 * scale, "{}: {got} {slope}", case.name);
    }
}

#[test]
fn other_backends_agree() {
    let foreign = cases::<Autodiff<Flex>>();
    for (index, (case, other)) in cases::<AD>().iter().zip(&foreign).enumerate() {
        let x = input_data(index, case);
        let (ours, theirs) = (gradient(case, &x), gradient(other, &x));
        let off = norm(&shifted(&ours, -1.0, &theirs));
        assert!(off <= 1e-10 * norm(&ours).max(1.0), "{}: {off:e}", case.name);
    }
}

#[test]
fn gradients_are_differentiable() {
    let outer = cases::<Autodiff<AD>>();
    for (index, (case, outer)) in cases::<AD>().iter().zip(&outer).enumerate() {
        let (x, v) = (input_data(index, case), directions(index, case));
        // ⟨∇L, v⟩ on the inner tape, and its gradient: the Hessian times v.
        let leaves: Inputs<AD> = inputs(&x, &case.shapes);
        let leaves: Inputs<AD> = leaves.into_iter().map(|x| x.require_grad()).collect();
        let above: Vec<Tensor<Autodiff<AD>, 3>> =
            leaves.iter().map(|x| Tensor::from_inner(x.clone()).require_grad()).collect();
        let gradients = (outer.loss)(above.clone()).backward();
        let mut product: Option<Tensor<AD, 1>> = None;
        for ((x, v), &shape) in above.iter().zip(&v).zip(&case.shapes) {
            let bar = x.grad(&gradients).expect("every input counts");
            let term = (bar * tensor(v.clone(), shape)).sum();
            product = Some(match product {
                Some(sum) => sum + term,
                None => term,
            });
        }
        let gradients = product.expect("an input").backward();
        let got: Vec<f64> = leaves
            .iter()
            .flat_map(|x| match x.grad(&gradients) {
                Some(bar) => values(bar),
                None => vec![0.0; x.shape().num_elements()],
            })
            .collect();
        let slope =
            difference(|h| gradient(case, &shifted(&x, h, &v)).into_iter().flatten().collect());
        let (got, slope) = (vec![got], vec![slope]);
        let off = norm(&shifted(&got, -1.0, &slope));
        assert!(off <= 1e-6 * norm(&slope).max(1.0), "{}: {off:e} {:e}", case.name, norm(&slope));
    }
}

#[test]
fn checkpointing_changes_nothing() {
    type Balanced = Autodiff<BurnT4a, BalancedCheckpointing>;
    let balanced = cases::<Balanced>();
    for (index, (case, other)) in cases::<AD>().iter().zip(&balanced).enumerate().step_by(7) {
        let x = input_data(index, case);
        assert_eq!(gradient(case, &x), gradient(other, &x), "{}", case.name);
    }
}

#[test]
fn single_precision_agrees_with_double() {
    for (index, case) in cases::<AD>().iter().enumerate() {
        let x = input_data(index, case);
        let single: Inputs<AD> = inputs(&x, &case.shapes);
        let single: Inputs<AD> =
            single.into_iter().map(|x| x.cast(DType::F32).require_grad()).collect();
        let gradients = (case.loss)(single.clone()).backward();
        let bar = |x: &Tensor<AD, 3>| x.grad(&gradients).expect("every input counts");
        assert!(single.iter().all(|x| bar(x).dtype() == DType::F32), "{}", case.name);
        let got: Vec<_> = single.iter().map(|x| values(bar(x))).collect();
        let want = gradient(case, &x);
        let off = norm(&shifted(&got, -1.0, &want));
        assert!(off <= 1e-3 * norm(&want), "{}: {off:e} of {:e}", case.name, norm(&want));
    }
}
