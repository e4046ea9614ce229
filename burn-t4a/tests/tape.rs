//! Nodes with rules of their own: orders of derivatives, checkpointing, unused outputs, threads.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::{
    BalancedCheckpointing, CheckpointStrategy, NoCheckpointing,
};
use burn_backend::ops::FloatTensorOps;
use burn_backend::{AutodiffBackend, Backend, TensorMetadata};
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::tape::{record, record_many};
use burn_tensor::{Tensor, TensorPrimitive};

type Node<B, C> = Tensor<Autodiff<B, C>, 1>;
type Loss<B, C> = fn([Node<B, C>; 2]) -> Node<B, C>;

fn primitive<B: Backend>(x: Tensor<B, 1>) -> B::FloatTensorPrimitive {
    x.into_primitive().tensor()
}

fn tensor<B: Backend>(x: B::FloatTensorPrimitive) -> Tensor<B, 1> {
    Tensor::from_primitive(TensorPrimitive::Float(x))
}

fn numbers<B: Backend>(x: Tensor<B, 1>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

fn leaf<B: Backend, C: CheckpointStrategy>(values: [f32; 3]) -> Node<B, C> {
    Tensor::from_floats(values, &Default::default()).require_grad()
}

/// x² y, with rule 2xy ḡ, x² ḡ.
fn square_times<B: Backend, C: CheckpointStrategy>(x: Node<B, C>, y: Node<B, C>) -> Node<B, C> {
    let z = record::<B, C, _, _, 2>(
        [primitive(x), primitive(y)],
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
    tensor(z.unwrap())
}

fn first_order<B: Backend, C: CheckpointStrategy>() {
    let (x, y) = (leaf::<B, C>([1.0, 2.0, -3.0]), leaf::<B, C>([5.0, 7.0, 11.0]));
    // Memory-bound neighbours on both sides: under balanced checkpointing they are recomputed and
    // ask for what the node saved. The cotangent of `sum` is an expanded view.
    let z = square_times(x.clone().exp().log(), y.clone()).mul_scalar(2.0).sum();
    let grads = z.backward();
    let close = |a: Vec<f64>, b: [f64; 3]| {
        a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a} {b}"));
    };
    close(numbers(x.grad(&grads).unwrap()), [20.0, 56.0, -132.0]);
    close(numbers(y.grad(&grads).unwrap()), [2.0, 8.0, 18.0]);
}

#[test]
fn gradients_under_both_strategies() {
    first_order::<BurnT4a, NoCheckpointing>();
    first_order::<BurnT4a, BalancedCheckpointing>();
    first_order::<Flex, NoCheckpointing>();
    first_order::<Flex, BalancedCheckpointing>();
}

fn second_order<B: Backend, C: CheckpointStrategy>() {
    type Level1<B, C> = Autodiff<B, C>;
    let (x, y) = (leaf::<B, C>([1.0, 2.0, -3.0]), leaf::<B, C>([5.0, 7.0, 11.0]));
    let lift = |x: &Node<B, C>| Node::<Level1<B, C>, C>::from_inner(x.clone()).require_grad();
    let (x2, y2) = (lift(&x), lift(&y));
    let z = square_times::<Level1<B, C>, C>(x2.clone(), y2);
    let grads = z.sum().backward();
    let dx = x2.grad(&grads).unwrap(); // 2xy on level 1
    let grads = dx.sum().backward();
    assert_eq!(numbers(x.grad(&grads).unwrap()), [10.0, 14.0, 22.0]); // 2y
    assert_eq!(numbers(y.grad(&grads).unwrap()), [2.0, 4.0, -6.0]); // 2x
}

#[test]
fn second_derivatives() {
    second_order::<BurnT4a, NoCheckpointing>();
    second_order::<BurnT4a, BalancedCheckpointing>();
    second_order::<Flex, NoCheckpointing>();
}

#[test]
fn one_tensor_as_both_inputs_collects_both_cotangents() {
    let x = leaf::<BurnT4a, NoCheckpointing>([1.0, 2.0, 3.0]);
    let grads = square_times(x.clone(), x.clone()).sum().backward();
    assert_eq!(numbers(x.grad(&grads).unwrap()), [3.0, 12.0, 27.0]);
}

#[test]
fn the_rule_is_told_what_is_tracked() {
    let constant =
        || Node::<BurnT4a, NoCheckpointing>::from_floats([5.0, 7.0, 11.0], &Default::default());
    let x = leaf::<BurnT4a, NoCheckpointing>([1.0, 2.0, 3.0]);
    let seen = Arc::new(AtomicUsize::new(0));
    let told = seen.clone();
    let y = record::<BurnT4a, NoCheckpointing, _, _, 2>(
        [primitive(constant()), primitive(x.clone())],
        |[c, x], tracked| {
            assert_eq!(tracked, [false, true]);
            Ok::<_, Infallible>((BurnT4a::float_mul(c.clone(), x), c))
        },
        move |c, g, wanted| {
            assert_eq!(wanted, [false, true]);
            told.fetch_add(1, SeqCst);
            // A cotangent for the constant, not asked for, changes nothing.
            [Some(g.clone()), Some(BurnT4a::float_mul(c, g))]
        },
    );
    let grads = tensor::<Autodiff<BurnT4a>>(y.unwrap()).sum().backward();
    assert_eq!(numbers(x.grad(&grads).unwrap()), [5.0, 7.0, 11.0]);
    assert_eq!(seen.load(SeqCst), 1);
    let free = square_times(constant(), constant());
    assert!(!free.is_require_grad());
    assert_eq!(numbers(free), [125.0, 343.0, 1331.0]);
}

#[test]
fn no_cotangent_is_zero_for_inputs_with_a_history() {
    let x = leaf::<BurnT4a, NoCheckpointing>([1.0, 2.0, 3.0]);
    let y = record::<BurnT4a, NoCheckpointing, _, _, 1>(
        [primitive(x.clone().exp())],
        |[x], _| Ok::<_, Infallible>((BurnT4a::float_sign(x), ())),
        |(), _, _| [None],
    );
    let grads = tensor::<Autodiff<BurnT4a>>(y.unwrap()).sum().backward();
    assert_eq!(numbers(x.grad(&grads).unwrap()), [0.0; 3]);
}

#[test]
fn an_error_of_the_forward_pass_leaves_no_node() {
    let x = leaf::<BurnT4a, NoCheckpointing>([1.0, 2.0, 3.0]);
    let failed = record::<BurnT4a, NoCheckpointing, (), _, 1>(
        [primitive(x.clone())],
        |_, _| Err("singular"),
        |(), _, _| [None],
    );
    assert_eq!(failed.unwrap_err(), "singular");
    let grads = x.clone().sum().backward();
    assert_eq!(numbers(x.grad(&grads).unwrap()), [1.0; 3]);
}

/// x², x³ (as a 3 x 1 matrix) and an empty tensor from one node.
fn powers<B: Backend, C: CheckpointStrategy>(
    x: Node<B, C>,
    runs: Arc<AtomicUsize>,
) -> [Node<B, C>; 2] {
    let [square, cube, empty] = record_many::<B, C, _, _, 1, 3>(
        [primitive(x)],
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
    let cube = Tensor::<Autodiff<B, C>, 2>::from_primitive(TensorPrimitive::Float(cube));
    [tensor(square), cube.squeeze_dim(1)]
}

fn several_outputs<B: Backend, C: CheckpointStrategy>() {
    let runs = Arc::new(AtomicUsize::new(0));
    let gradient = |loss: Loss<B, C>| {
        let x = leaf::<B, C>([1.0, 2.0, 3.0]);
        let outputs = powers(x.clone().mul_scalar(1.0), runs.clone());
        let grads = loss(outputs).sum().backward();
        numbers(x.grad(&grads).unwrap())
    };
    assert_eq!(gradient(|[_, cube]| cube), [3.0, 12.0, 27.0]);
    assert_eq!(gradient(|[square, _]| square), [2.0, 4.0, 6.0]);
    assert_eq!(runs.load(SeqCst), 2);
    // d(x⁵ + x²): both outputs, one of them twice, and still one run of the rule.
    assert_eq!(gradient(|[square, cube]| square.clone() * cube + square), [7.0, 84.0, 411.0]);
    assert_eq!(runs.load(SeqCst), 3);
}

#[test]
fn several_outputs_meet_in_one_rule() {
    several_outputs::<BurnT4a, NoCheckpointing>();
    several_outputs::<BurnT4a, BalancedCheckpointing>();
    several_outputs::<Flex, NoCheckpointing>();
}

#[test]
fn second_derivatives_of_several_outputs() {
    type B = BurnT4a;
    type AA = Autodiff<Autodiff<B>>;
    let x = leaf::<B, NoCheckpointing>([1.0, 2.0, 3.0]);
    let x2 = Tensor::<AA, 1>::from_inner(x.clone()).require_grad();
    let [square, cube] = powers(x2.clone(), Default::default());
    let grads = (square * cube).sum().backward();
    let slope = x2.grad(&grads).unwrap(); // 5x⁴
    let grads = slope.sum().backward();
    assert_eq!(numbers(x.grad(&grads).unwrap()), [20.0, 160.0, 540.0]);
}

#[test]
fn several_outputs_without_a_history() {
    let x = Node::<BurnT4a, NoCheckpointing>::from_floats([1.0, 2.0, 3.0], &Default::default());
    let runs = Arc::new(AtomicUsize::new(0));
    let [square, cube] = powers(x, runs.clone());
    assert!(!square.is_require_grad() && !cube.is_require_grad());
    assert_eq!(numbers(cube), [1.0, 8.0, 27.0]);
    assert_eq!(runs.load(SeqCst), 0);
}

/// Another thread's `backward` sweeps all graphs while the forward pass runs. The input of the
/// node lives only in its argument list: without the handles that `record` holds, every one of
/// these gradients is lost.
#[test]
fn a_concurrent_backward_loses_no_gradient() {
    type AD = Autodiff<BurnT4a>;
    let stop = Arc::new(AtomicBool::new(false));
    let sweeps = Arc::new(AtomicUsize::new(0));
    let sweeper = std::thread::spawn({
        let (stop, sweeps) = (stop.clone(), sweeps.clone());
        move || {
            while !stop.load(SeqCst) {
                let x = leaf::<BurnT4a, NoCheckpointing>([1.0, 2.0, 3.0]);
                x.exp().sum().backward();
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
    let kept = (0..50).filter(|_| {
        let x = leaf::<BurnT4a, NoCheckpointing>([1.0, 2.0, 3.0]);
        let y = record::<BurnT4a, NoCheckpointing, _, _, 1>(
            [primitive(x.clone() * 2.0)],
            |[x], _| {
                wait();
                Ok::<_, Infallible>((x, ()))
            },
            |(), g, _| [Some(g)],
        );
        let grads = AD::backward(primitive(tensor::<AD>(y.unwrap()).sum()));
        x.grad(&grads).is_some_and(|g| numbers(g) == [2.0; 3])
    });
    let kept = kept.count();
    stop.store(true, SeqCst);
    sweeper.join().unwrap();
    assert_eq!(kept, 50);
}
