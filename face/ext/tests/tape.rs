//! Nodes with their own rules: orders of derivatives, checkpointing, unused outputs, threads.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::{
    BalancedCheckpointing, CheckpointStrategy, NoCheckpointing,
};
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Backend, Scalar, TensorData, TensorMetadata, try_read_sync};

use crate::line::Engine;
use crate::line::ext::operation::{
    Array, Cotangents, Keep, Meta, Operation, Operations, Outcome, Reverse, TensorError, Value,
};
use crate::line::ext::primitive::Floats;
use crate::line::ext::tape::{Tracked, is_tracked, record, record_many};

type Taped = Autodiff<Engine>;
type Loss<B, C> = fn([Tracked<B, C>; 2]) -> Tracked<B, C>;

fn numbers<B: Backend>(x: FloatTensor<B>) -> Vec<f64> {
    try_read_sync(B::float_into_data(x)).unwrap().unwrap().iter::<f64>().collect()
}

fn constant<B: Backend>(values: [f32; 3]) -> FloatTensor<B> {
    B::float_from_data(TensorData::from(values), &Default::default())
}

fn leaf<B: Backend>(values: [f32; 3]) -> FloatTensor<B> {
    B::float_set_require_grad(constant::<B>(values), true)
}

/// Gradients of the sum of all elements.
fn backward<B: AutodiffBackend>(y: FloatTensor<B>) -> B::Gradients {
    B::backward(B::float_sum(y))
}

fn slope<B: AutodiffBackend>(x: &FloatTensor<B>, gradients: &B::Gradients) -> Vec<f64> {
    numbers::<B::InnerBackend>(B::grad(x, gradients).unwrap())
}

/// x² y, with the cotangents 2xy ḡ and x² ḡ.
fn square_times<B: Backend, C: CheckpointStrategy>(
    x: Tracked<B, C>,
    y: Tracked<B, C>,
) -> Tracked<B, C> {
    let z = record::<B, C, _, _, 2>(
        [x, y],
        |[x, y], _| {
            let square = B::float_mul(x.clone(), x.clone());
            Ok::<_, Infallible>((B::float_mul(square, y.clone()), (x, y)))
        },
        |(x, y), g, wanted| {
            let xg = B::float_mul(x.clone(), g);
            let to_x = wanted[0].then(|| {
                let xyg = B::float_mul(xg.clone(), y);
                B::float_add(xyg.clone(), xyg)
            });
            [to_x, wanted[1].then(|| B::float_mul(x, xg))]
        },
    );
    z.unwrap()
}

fn first_order<B: Backend, C: CheckpointStrategy>() {
    type AD<B, C> = Autodiff<B, C>;
    let x = leaf::<AD<B, C>>([1.0, 2.0, -3.0]);
    let y = leaf::<AD<B, C>>([5.0, 7.0, 11.0]);
    // Memory-bound operations on both sides: under balanced checkpointing they are recomputed and read the saved
    // values of the node. The cotangent of `sum` is an expanded view.
    let same = AD::<B, C>::float_log(AD::<B, C>::float_exp(x.clone()));
    let z = square_times::<B, C>(same, y.clone());
    let grads = backward::<AD<B, C>>(AD::<B, C>::float_mul_scalar(z, Scalar::Float(2.0)));
    let close = |a: Vec<f64>, b: [f64; 3]| {
        a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a} {b}"));
    };
    close(slope::<AD<B, C>>(&x, &grads), [20.0, 56.0, -132.0]);
    close(slope::<AD<B, C>>(&y, &grads), [2.0, 8.0, 18.0]);
}

#[test]
fn gradients_under_both_strategies() {
    on_backends!(first_order);
}

fn second_order<B: Backend, C: CheckpointStrategy>() {
    type Lower<B, C> = Autodiff<B, C>;
    type Upper<B, C> = Autodiff<Autodiff<B, C>, C>;
    let x = leaf::<Lower<B, C>>([1.0, 2.0, -3.0]);
    let y = leaf::<Lower<B, C>>([5.0, 7.0, 11.0]);
    let lift = |x: &Tracked<B, C>| {
        Upper::<B, C>::float_set_require_grad(Upper::<B, C>::from_inner(x.clone()), true)
    };
    let (x2, y2) = (lift(&x), lift(&y));
    let z = square_times::<Lower<B, C>, C>(x2.clone(), y2);
    let grads = backward::<Upper<B, C>>(z);
    let dx = Upper::<B, C>::grad(&x2, &grads).unwrap(); // 2xy on the lower tape
    let grads = backward::<Lower<B, C>>(dx);
    assert_eq!(slope::<Lower<B, C>>(&x, &grads), [10.0, 14.0, 22.0]); // 2y
    assert_eq!(slope::<Lower<B, C>>(&y, &grads), [2.0, 4.0, -6.0]); // 2x
}

#[test]
fn second_derivatives() {
    on_backends!(second_order);
}

#[test]
fn one_tensor_as_both_inputs_collects_both_cotangents() {
    let x = leaf::<Taped>([1.0, 2.0, 3.0]);
    let grads = backward::<Taped>(square_times::<Engine, NoCheckpointing>(x.clone(), x.clone()));
    assert_eq!(slope::<Taped>(&x, &grads), [3.0, 12.0, 27.0]);
}

#[test]
fn the_rule_is_told_what_is_tracked() {
    let known = || constant::<Taped>([5.0, 7.0, 11.0]);
    let x = leaf::<Taped>([1.0, 2.0, 3.0]);
    let seen = Arc::new(AtomicUsize::new(0));
    let told = seen.clone();
    let y = record::<Engine, NoCheckpointing, _, _, 2>(
        [known(), x.clone()],
        |[c, x], tracked| {
            assert_eq!(tracked, [false, true]);
            Ok::<_, Infallible>((Engine::float_mul(c.clone(), x), c))
        },
        move |c, g, wanted| {
            assert_eq!(wanted, [false, true]);
            told.fetch_add(1, SeqCst);
            // A cotangent returned for the constant, which needs none, changes nothing.
            [Some(g.clone()), Some(Engine::float_mul(c, g))]
        },
    );
    let grads = backward::<Taped>(y.unwrap());
    assert_eq!(slope::<Taped>(&x, &grads), [5.0, 7.0, 11.0]);
    assert_eq!(seen.load(SeqCst), 1);
    let free = square_times::<Engine, NoCheckpointing>(known(), known());
    assert!(!is_tracked::<Engine, NoCheckpointing>(&free));
    assert_eq!(numbers::<Taped>(free), [125.0, 343.0, 1331.0]);
}

#[test]
fn no_cotangent_is_zero_for_inputs_with_a_history() {
    let x = leaf::<Taped>([1.0, 2.0, 3.0]);
    let y = record::<Engine, NoCheckpointing, _, _, 1>(
        [Taped::float_exp(x.clone())],
        |[x], _| Ok::<_, Infallible>((Engine::float_sign(x), ())),
        |(), _, _| [None],
    );
    let grads = backward::<Taped>(y.unwrap());
    assert_eq!(slope::<Taped>(&x, &grads), [0.0; 3]);
}

#[test]
fn an_error_of_the_forward_pass_leaves_no_node() {
    let x = leaf::<Taped>([1.0, 2.0, 3.0]);
    let failed = record::<Engine, NoCheckpointing, (), _, 1>(
        [x.clone()],
        |_, _| Err("singular"),
        |(), _, _| [None],
    );
    assert_eq!(failed.unwrap_err(), "singular");
    let grads = backward::<Taped>(x.clone());
    assert_eq!(slope::<Taped>(&x, &grads), [1.0; 3]);
}

/// x², x³ (as a 3 × 1 matrix) and an empty tensor from one node.
fn powers<B: Backend, C: CheckpointStrategy>(
    x: Tracked<B, C>,
    runs: Arc<AtomicUsize>,
) -> [Tracked<B, C>; 2] {
    let [square, cube, empty] = record_many::<B, C, _, _, 1, 3>(
        [x],
        |[x], _| {
            let square = B::float_mul(x.clone(), x.clone());
            let cube = B::float_mul(square.clone(), x.clone());
            let cube = B::float_reshape(cube, [3, 1].into());
            let empty = B::float_zeros([0, 2].into(), &Default::default(), x.dtype().into());
            Ok::<_, Infallible>(([square, cube, empty], x))
        },
        move |x, [g2, g3, g0], _| {
            runs.fetch_add(1, SeqCst);
            assert_eq!((g3.shape(), g0.shape()), ([3, 1].into(), [0, 2].into()));
            let g3 = B::float_reshape(g3, [3].into());
            let three_x = B::float_add(B::float_add(x.clone(), x.clone()), x.clone());
            let cubic = B::float_mul(three_x, g3);
            let linear = B::float_add(g2.clone(), g2);
            [Some(B::float_mul(x, B::float_add(linear, cubic)))]
        },
    )
    .unwrap();
    assert_eq!(empty.shape(), [0, 2].into());
    [square, Autodiff::<B, C>::float_reshape(cube, [3].into())]
}

fn several_outputs<B: Backend, C: CheckpointStrategy>() {
    type AD<B, C> = Autodiff<B, C>;
    let runs = Arc::new(AtomicUsize::new(0));
    let gradient = |loss: Loss<B, C>| {
        let x = leaf::<AD<B, C>>([1.0, 2.0, 3.0]);
        let scaled = AD::<B, C>::float_mul_scalar(x.clone(), Scalar::Float(1.0));
        let grads = backward::<AD<B, C>>(loss(powers::<B, C>(scaled, runs.clone())));
        slope::<AD<B, C>>(&x, &grads)
    };
    assert_eq!(gradient(|[_, cube]| cube), [3.0, 12.0, 27.0]);
    assert_eq!(gradient(|[square, _]| square), [2.0, 4.0, 6.0]);
    assert_eq!(runs.load(SeqCst), 2);
    // d(x⁵ + x²): both outputs are used, one of them twice, and the rule runs once.
    let both: Loss<B, C> =
        |[square, cube]| AD::<B, C>::float_add(AD::<B, C>::float_mul(square.clone(), cube), square);
    assert_eq!(gradient(both), [7.0, 84.0, 411.0]);
    assert_eq!(runs.load(SeqCst), 3);
}

#[test]
fn several_outputs_meet_in_one_rule() {
    on_backends!(several_outputs);
}

#[test]
fn second_derivatives_of_several_outputs() {
    type Twice = Autodiff<Taped>;
    let x = leaf::<Taped>([1.0, 2.0, 3.0]);
    let x2 = Twice::float_set_require_grad(Twice::from_inner(x.clone()), true);
    let [square, cube] = powers::<Taped, NoCheckpointing>(x2.clone(), Default::default());
    let grads = backward::<Twice>(Twice::float_mul(square, cube));
    let fourth = Twice::grad(&x2, &grads).unwrap(); // 5x⁴
    let grads = backward::<Taped>(fourth);
    assert_eq!(slope::<Taped>(&x, &grads), [20.0, 160.0, 540.0]);
}

#[test]
fn several_outputs_without_a_history() {
    let x = constant::<Taped>([1.0, 2.0, 3.0]);
    let runs = Arc::new(AtomicUsize::new(0));
    let all = powers::<Engine, NoCheckpointing>(x, runs.clone());
    assert!(!all.iter().any(is_tracked::<Engine, NoCheckpointing>));
    let [_, cube] = all;
    assert_eq!(numbers::<Taped>(cube), [1.0, 8.0, 27.0]);
    assert_eq!(runs.load(SeqCst), 0);
}

/// Σ (i + 1) xᵢ and Σ xᵢ² of any number of operands.
#[derive(Clone, Debug)]
struct Sums;

impl Operation for Sums {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "sums"
    }
    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, TensorError> {
        Ok(vec![inputs[0].clone(); 2])
    }
    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().all_inputs()
    }
    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        _: &[bool],
    ) -> Result<Outcome<A>, TensorError> {
        let zero = inputs[0].float().scale(0.0);
        let terms = || inputs.iter().map(Value::float).enumerate();
        let weighted = terms().fold(zero.clone(), |s, (i, x)| s.add(&x.scale((i + 1) as f64)));
        let squares = terms().fold(zero, |s, (_, x)| s.add(&x.mul(x)));
        Ok(Outcome::new(vec![weighted, squares]))
    }
    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, TensorError> {
        let own = |i: usize| {
            let weighted = reverse.cotangents[0].as_ref().map(|g| g.scale((i + 1) as f64));
            let squares = reverse.cotangents[1].as_ref();
            let squares = squares.map(|g| reverse.kept.float(i).mul(g).scale(2.0));
            match (weighted, squares) {
                (Some(a), Some(b)) => Some(a.add(&b)),
                (a, b) => a.or(b),
            }
        };
        let wanted = reverse.wanted.iter().enumerate();
        Ok(wanted.map(|(i, &wanted)| own(i).filter(|_| wanted)).collect())
    }
}

/// Results of [`Sums`] on a tape.
fn sums<B: Operations, C: CheckpointStrategy>(all: &[Tracked<B, C>]) -> [Tracked<B, C>; 2] {
    let inputs: Vec<_> = all.iter().map(|x| Value::Float(Floats(x.clone()))).collect();
    let out = <Autodiff<B, C> as Operations>::run(&Sums, &inputs, &vec![false; all.len()]);
    let results: Vec<_> = out.unwrap().results.into_iter().map(|y| y.0).collect();
    results.try_into().unwrap()
}

fn operand(i: usize) -> [f32; 3] {
    [i as f32, 1.0, -2.0]
}

fn any_number_of_operands<B: Operations, C: CheckpointStrategy>() {
    for n in 1..=12 {
        for used in [[true, false], [false, true], [true, true]] {
            let untracked = |i: usize| i % 3 == 1 || (4..8).contains(&i);
            let own = |i| match untracked(i) {
                true => constant::<Autodiff<B, C>>(operand(i)),
                false => leaf::<Autodiff<B, C>>(operand(i)),
            };
            let all: Vec<_> = (0..n).map(own).collect();
            let [weighted, squares] = sums::<B, C>(&all);
            let loss = match used {
                [true, true] => Autodiff::<B, C>::float_add(weighted, squares),
                [true, false] => weighted,
                _ => squares,
            };
            let grads = backward::<Autodiff<B, C>>(loss);
            for (i, x) in all.iter().enumerate().filter(|&(i, _)| !untracked(i)) {
                let [a, b] = used.map(|used| f64::from(u8::from(used)));
                let want = operand(i).map(|x| a * (i + 1) as f64 + b * 2.0 * f64::from(x));
                assert_eq!(slope::<Autodiff<B, C>>(x, &grads), want, "{i} of {n}");
            }
        }
    }
}

#[test]
fn operations_have_any_number_of_operands_and_several_results() {
    on_backends!(any_number_of_operands);
}

/// p = Σ xᵢ², ∂ Σⱼ (∂p²/∂xⱼ) / ∂xᵢ = 4 p + 8 xᵢ Σ xⱼ.
#[test]
fn second_derivatives_by_many_operands() {
    type Twice = Autodiff<Taped>;
    let all: Vec<_> = (0..9).map(|i| leaf::<Taped>(operand(i))).collect();
    let lift =
        |x: &FloatTensor<Taped>| Twice::float_set_require_grad(Twice::from_inner(x.clone()), true);
    let lifted: Vec<_> = all.iter().map(lift).collect();
    let [_, squares] = sums::<Taped, NoCheckpointing>(&lifted);
    let grads = backward::<Twice>(Twice::float_mul(squares.clone(), squares));
    let first = lifted.iter().map(|x| Twice::grad(x, &grads).unwrap());
    let grads = backward::<Taped>(first.reduce(Taped::float_add).unwrap());
    let column = |e: usize| (0..9).map(move |i| f64::from(operand(i)[e]));
    for (i, x) in all.iter().enumerate() {
        let want = [0, 1, 2].map(|e| {
            let [sum, squares] = [column(e).sum::<f64>(), column(e).map(|x| x * x).sum()];
            4.0 * squares + 8.0 * f64::from(operand(i)[e]) * sum
        });
        assert_eq!(slope::<Taped>(x, &grads), want, "{i}");
    }
}

/// A `backward` on another thread sweeps all graphs while the forward pass runs. Only the argument list of `record`
/// refers to the input of the node: without the handles that `record` holds, the nodes before it would be dropped
/// and their rules would never run.
#[test]
fn a_concurrent_backward_loses_no_gradient() {
    let stop = Arc::new(AtomicBool::new(false));
    let sweeps = Arc::new(AtomicUsize::new(0));
    let sweeper = std::thread::spawn({
        let (stop, sweeps) = (stop.clone(), sweeps.clone());
        move || {
            while !stop.load(SeqCst) {
                let x = leaf::<Taped>([1.0, 2.0, 3.0]);
                backward::<Taped>(Taped::float_exp(x));
                sweeps.fetch_add(1, SeqCst);
            }
        }
    });
    let wait = || {
        let from = sweeps.load(SeqCst);
        while sweeps.load(SeqCst) < from + 2 {
            std::thread::sleep(Duration::from_micros(50));
        }
    };
    let runs = Arc::new(AtomicUsize::new(0));
    for _ in 0..50 {
        let runs = runs.clone();
        let before = record::<Engine, NoCheckpointing, _, _, 1>(
            [leaf::<Taped>([1.0, 2.0, 3.0])],
            |[x], _| Ok::<_, Infallible>((x, ())),
            move |(), g, _| {
                runs.fetch_add(1, SeqCst);
                [Some(g)]
            },
        );
        let y = record::<Engine, NoCheckpointing, _, _, 1>(
            [before.unwrap()],
            |[x], _| {
                wait();
                Ok::<_, Infallible>((x, ()))
            },
            |(), g, _| [Some(g)],
        );
        backward::<Taped>(y.unwrap());
    }
    stop.store(true, SeqCst);
    sweeper.join().unwrap();
    assert_eq!(runs.load(SeqCst), 50);
}
