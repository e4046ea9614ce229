//! One derive for structs: scanned, differentiated, mapped, compiled and spread over a mesh.

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig, LinearRecord};
use burn_autodiff::Autodiff;
use burn_t4a::ext::scan::{Options, scan};
use burn_t4a::ext::tree::Tree;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::{
    DerivativeError, grad, hessian_tree, jacfwd_tree, jacrev, jacrev_tree, value_and_grad_with, vjp,
};
use burn_t4a_transforms::jvp::{Jvp, JvpError, jvp};
use burn_t4a_transforms::module::Parameters;
use burn_t4a_transforms::shard::{Mesh, PartitionSpec, shard_map};
use burn_t4a_transforms::vmap::{Vmap, vmap};
use burn_tensor::backend::Backend;
use burn_tensor::{Int, Tensor};

type B = BurnT4a;

/// A spring: what moves, what is constant, and how stiff it is.
#[derive(Clone, Debug, Tree)]
struct Spring<B: Backend> {
    position: Tensor<B, 1>,
    velocity: Tensor<B, 1>,
    #[tree(fixed)]
    stiffness: i32,
}

/// A tree around any tree.
#[derive(Clone, Debug, Tree)]
struct Tagged<B: Backend, T, const N: usize> {
    inner: [T; N],
    at: Tensor<B, 1, Int>,
}

fn of<A: Backend>(values: &[f32]) -> Tensor<A, 1> {
    Tensor::from_floats(values, &Default::default())
}

fn numbers<A: Backend, const D: usize>(x: Tensor<A, D>) -> Vec<f32> {
    x.into_data().iter::<f32>().collect()
}

fn spring<A: Backend>(position: &[f32], velocity: &[f32]) -> Spring<A> {
    Spring { position: of(position), velocity: of(velocity), stiffness: 2 }
}

/// A step of the symplectic Euler method with step 1/2.
fn step<A: Backend>(spring: Spring<A>) -> Spring<A> {
    let force = spring.position.clone().mul_scalar(-spring.stiffness);
    let velocity = spring.velocity + force.mul_scalar(0.5);
    let position = spring.position + velocity.clone().mul_scalar(0.5);
    Spring { position, velocity, ..spring }
}

fn energy<A: Backend>(spring: Spring<A>) -> Tensor<A, 1> {
    let potential = spring.position.powi_scalar(2).mul_scalar(spring.stiffness);
    (potential + spring.velocity.powi_scalar(2)).sum().div_scalar(2)
}

#[test]
fn a_struct_goes_through_every_transformation() {
    let at = || spring::<B>(&[1.0, 3.0], &[0.5, -1.0]);
    // The gradient of the energy: stiffness · position, velocity.
    let gradient = grad(energy, at()).unwrap();
    assert_eq!(numbers(gradient.position), [2.0, 6.0]);
    assert_eq!(numbers(gradient.velocity), [0.5, -1.0]);
    assert_eq!(gradient.stiffness, 2);
    // Along (1, 0), (0, 1): x' = x + (v − k x / 2) / 2, v' = v − k x / 2.
    let (value, moved) = jvp(step, at(), spring(&[1.0, 0.0], &[0.0, 1.0])).unwrap();
    assert_eq!(numbers(value.position), numbers(step(at()).position));
    assert_eq!(numbers(moved.position), [0.5, 0.5]);
    assert_eq!(numbers(moved.velocity), [-1.0, 1.0]);
    let (_, pullback) = vjp(step, at()).unwrap();
    let cotangent = pullback.call(spring(&[1.0, 0.0], &[0.0, 1.0])).unwrap();
    assert_eq!(numbers(cotangent.position), [0.5, -1.0]);
    assert_eq!(numbers(cotangent.velocity), [0.5, 1.0]);
    // A static value of the tangent that is another one.
    let other = Spring { stiffness: 3, ..at() };
    let error = jvp(step, at(), other).unwrap_err();
    assert!(matches!(error, JvpError::Structure { .. }), "{error}");
    // Two springs of one example each.
    let single = |spring: Spring<Vmap<B>>| Spring { stiffness: 5, ..step(spring) };
    let mapped: Spring<B> = vmap(single).call(at()).unwrap();
    assert_eq!(numbers(mapped.position), numbers(step(at()).position));
    assert_eq!(mapped.stiffness, 5);
    let shared: Spring<B> = vmap(|spring: Spring<Vmap<B>>| step(spring))
        .in_axes((0, None, None))
        .call(Spring { velocity: of(&[0.5]), ..at() })
        .unwrap();
    assert_eq!(numbers(shared.velocity), [-0.5, -2.5]);
    // Recorded once for each stiffness.
    let compiled = compile(step::<Traced<B>>);
    for stiffness in [2, 2, 7] {
        let spring = Spring { stiffness, ..at() };
        let result = compiled.call(spring.clone()).unwrap();
        assert_eq!(numbers(result.position), numbers(step(spring).position));
        assert_eq!(result.stiffness, stiffness);
    }
    assert_eq!((compiled.counters().traces, compiled.counters().hits), (2, 1));
    assert!(compiled.explain().contains("stiffness: 7"), "{}", compiled.explain());
    // On a mesh.
    let mesh = Mesh::new([("data", 2)]).unwrap();
    let split = || [PartitionSpec::split(["data"])];
    let spread = shard_map(step::<Traced<B>>, &mesh, split(), split());
    assert_eq!(numbers(spread.call(at()).unwrap().velocity), numbers(step(at()).velocity));
    // As a carry.
    let body = |(): (), spring: Spring<B>, (): ()| (step(spring.clone()), spring.position);
    let (last, positions): (Spring<B>, Tensor<B, 2>) =
        scan(body, (), at(), (), &Options::default().length(2)).unwrap();
    assert_eq!(numbers(last.position), numbers(step(step(at())).position));
    assert_eq!(positions.dims(), [2, 2]);
}

/// Programs of structs are saved with the names of their fields; those of static values are not.
#[test]
fn programs_of_structs_are_saved_and_loaded() {
    type T = Traced<B>;
    let f = || compile(|x: Tagged<T, Tensor<T, 1>, 2>| x.inner.map(|y| y.exp()));
    let at = Tensor::<B, 1, Int>::from_ints([1], &T4aDevice);
    let tree = || Tagged { inner: [of(&[1.0]), of(&[2.0])], at: at.clone() };
    let first = f();
    let want = first.call(tree()).unwrap();
    let second = f();
    assert_eq!(second.load(&first.save().unwrap()).unwrap(), 1);
    let got = second.call(tree()).unwrap();
    assert_eq!(got.map(numbers), want.map(numbers));
    assert_eq!((second.counters().traces, second.counters().hits), (0, 1));
    let fixed = compile(step::<T>);
    fixed.call(spring(&[1.0], &[1.0])).unwrap();
    let error = fixed.save().unwrap_err().to_string();
    assert!(error.contains("the static value 2"), "{error}");
}

#[test]
fn integers_of_trees_have_the_derivative_zero_and_are_auxiliary_results() {
    let at = Tensor::<B, 1, Int>::from_ints([2], &T4aDevice);
    let tree = || Tagged { inner: [of::<B>(&[1.0, 5.0, 3.0])], at: at.clone() };
    type OnTape = Tagged<Autodiff<B>, Tensor<Autodiff<B>, 1>, 1>;
    let pick = |x: OnTape| x.inner[0].clone().select(0, x.at).powi_scalar(2);
    let gradient = grad(pick, tree()).unwrap();
    assert_eq!(numbers(gradient.inner[0].clone()), [0.0, 0.0, 6.0]);
    assert_eq!(gradient.at.into_data().iter::<i64>().collect::<Vec<_>>(), [0]);
    // A result of integers has no cotangent.
    let error = vjp(|x: OnTape| x.at, tree()).err().unwrap();
    assert!(matches!(error, DerivativeError::Tree(_)), "{error}");
    let (_, best, slope) = value_and_grad_with(
        |x: Tensor<Autodiff<B>, 1>| (x.clone().max(), x.argmax(0)),
        of::<B>(&[1.0, 3.0, 2.0]),
    )
    .unwrap();
    assert_eq!(best.into_data().iter::<i64>().collect::<Vec<_>>(), [1]);
    assert_eq!(numbers(slope), [0.0, 1.0, 0.0]);
}

/// Matrices of derivatives of a struct with an array inside, by both modes, and their blocks.
#[test]
fn jacobians_and_hessians_of_trees() {
    // y = (a b, Σ a + b₀), with a of 2 and b of 2 elements.
    fn f<A: Backend>([a, b]: [Tensor<A, 1>; 2]) -> (Tensor<A, 2>, Tensor<A, 1>) {
        let sum = a.clone().sum() + b.clone().narrow(0, 0, 1);
        ((a * b).reshape([1, 2]), sum)
    }
    let x = || [of::<B>(&[2.0, 3.0]), of::<B>(&[5.0, 7.0])];
    let want = [5.0, 0.0, 2.0, 0.0, 0.0, 7.0, 0.0, 3.0, 1.0, 1.0, 1.0, 0.0];
    let forward = jacfwd_tree(f::<Jvp<B>>, x()).unwrap();
    let reverse = jacrev_tree(f::<Autodiff<B>>, x()).unwrap();
    for j in [&forward, &reverse] {
        assert_eq!(j.matrix().into_data().iter::<f64>().collect::<Vec<_>>(), want);
        assert_eq!(j.paths(), [vec![".0", ".1"], vec![".0", ".1"]]);
        let block: Tensor<B, 3> = j.block(".0", ".1").unwrap();
        assert_eq!(block.dims(), [1, 2, 2]);
        assert_eq!(block.into_data().iter::<f64>().collect::<Vec<_>>(), [2.0, 0.0, 0.0, 3.0]);
        let missing = j.block::<2>(".2", ".0").unwrap_err().to_string();
        assert!(missing.contains(".2") && missing.contains("\".0\", \".1\""), "{missing}");
        assert!(matches!(j.block::<2>(".0", ".0"), Err(DerivativeError::Rank { required: 3, .. })));
    }
    // a₀² b₁ has second derivatives 2 b₁ in a₀, a₀ and 2 a₀ in a₀, b₁.
    type Twice = Autodiff<Jvp<B>>;
    let g = |[a, b]: [Tensor<Twice, 1>; 2]| a.narrow(0, 0, 1).powi_scalar(2) * b.narrow(0, 1, 1);
    let h = hessian_tree(g, x()).unwrap();
    let mut want = [0.0; 16];
    (want[0], want[3], want[12]) = (14.0, 4.0, 4.0);
    assert_eq!(h.matrix().into_data().iter::<f64>().collect::<Vec<_>>(), want);
    let mixed = [of::<B>(&[1.0]), of::<B>(&[1.0]).cast(burn_tensor::DType::F64)];
    let error = jacfwd_tree(f::<Jvp<B>>, mixed).unwrap_err();
    assert!(matches!(error, DerivativeError::DTypes { .. }), "{error}");
}

/// The parameters of a module: gradients as those of Burn's own tape, tangents, an ensemble, a recurrent net.
#[test]
fn parameters_of_modules_are_trees() {
    type AD = Autodiff<B>;
    let config = LinearConfig::new(2, 2);
    let linear: Linear<B> = Linear {
        weight: Param::from_data([[0.5, -1.0], [2.0, 0.25]], &T4aDevice),
        bias: Some(Param::from_data([0.1, 0.2], &T4aDevice)),
    };
    let x = || Tensor::<B, 2>::from_floats([[1.0, 2.0], [-3.0, 0.5]], &T4aDevice);
    fn loss<A: Backend>(net: &Linear<A>, x: Tensor<A, 2>) -> Tensor<A, 1> {
        net.forward(x).tanh().sum()
    }
    let on_tape = |p: Parameters<AD>| p.onto(config.init::<AD>(&T4aDevice)).unwrap();
    let gradient =
        grad(|p| loss(&on_tape(p), Tensor::from_inner(x())), Parameters::of(&linear)).unwrap();
    let gradient = gradient.onto(config.init::<B>(&T4aDevice)).unwrap();
    let record: LinearRecord<AD> = Linear::<AD> {
        weight: Param::from_tensor(Tensor::from_inner(linear.weight.val())),
        bias: linear.bias.as_ref().map(|x| Param::from_tensor(Tensor::from_inner(x.val()))),
    }
    .into_record();
    let burn = config.init::<AD>(&T4aDevice).load_record(record);
    let all = loss(&burn, Tensor::from_inner(x())).backward();
    assert_eq!(numbers(gradient.weight.val()), numbers(burn.weight.val().grad(&all).unwrap()));
    let bias = burn.bias.unwrap().val().grad(&all).unwrap();
    assert_eq!(numbers(gradient.bias.clone().unwrap().val()), numbers(bias));
    assert_eq!(gradient.weight.id, linear.weight.id);
    // The derivative along the gradient is its square.
    let (_, slope) = jvp(
        |p: Parameters<Jvp<B>>| {
            let net = p.onto(config.init(&T4aDevice)).unwrap();
            loss(&net, burn_t4a_transforms::jvp::constant(x()).unwrap())
        },
        Parameters::of(&linear),
        Parameters::of(&gradient),
    )
    .unwrap();
    let square = gradient.weight.val().powi_scalar(2).sum()
        + gradient.bias.as_ref().unwrap().val().powi_scalar(2).sum();
    assert!((slope.into_scalar() - square.into_scalar()).abs() < 1e-4);
    // A gradient for every example, by one module that examples share.
    let each = |(p, x): (Parameters<Vmap<B>>, Tensor<Vmap<B>, 1>)| {
        let net = p.onto(config.init::<Vmap<B>>(&T4aDevice)).unwrap();
        net.forward(x.unsqueeze::<2>()).tanh().sum()
    };
    let losses: Tensor<B, 1> = vmap(each)
        .in_axes((None, 0))
        .random(burn_t4a_transforms::vmap::Random::Same)
        .call((Parameters::of(&linear), x()))
        .unwrap();
    let whole = loss(&linear, x()).into_scalar();
    assert!((numbers(losses).iter().sum::<f32>() - whole).abs() < 1e-5);
    // h ← tanh(W h + b) as a scan, against a loop, with gradients of the parameters.
    let init = Tensor::<AD, 2>::from_floats([[0.3, -0.2]], &T4aDevice);
    let steps = |p: Parameters<AD>| {
        let body = move |p: Parameters<AD>, h: Tensor<AD, 2>, (): ()| {
            let net = p.onto(LinearConfig::new(2, 2).init::<AD>(&T4aDevice)).unwrap();
            (net.forward(h).tanh(), ())
        };
        let options = Options::default().length(4);
        let (h, ()): (Tensor<AD, 2>, ()) = scan(body, p, init.clone(), (), &options).unwrap();
        h.sum()
    };
    let scanned = grad(steps, Parameters::of(&linear)).unwrap();
    let looped = grad(
        |p| {
            let net = on_tape(p);
            (0..4).fold(init.clone(), |h, _| net.forward(h).tanh()).sum()
        },
        Parameters::of(&linear),
    )
    .unwrap();
    let [scanned, looped] =
        [scanned, looped].map(|p| p.onto(config.init::<B>(&T4aDevice)).unwrap());
    let pairs = numbers(scanned.weight.val()).into_iter().zip(numbers(looped.weight.val()));
    assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-5));
    // A template with other parameters is refused.
    let wide = LinearConfig::new(3, 2).init::<B>(&T4aDevice);
    assert!(Parameters::of(&linear).onto(wide).is_err());
}

/// A derivative of a struct in a Jacobian's place: types infer without annotations.
#[test]
fn inference_needs_no_annotations() {
    let x = of::<B>(&[2.0, 3.0]);
    let jacobian: Tensor<B, 2> = jacrev(
        |x: Tensor<_, 1>| step(Spring { position: x.clone(), velocity: x, stiffness: 1 }).position,
        x,
    )
    .unwrap();
    // x + (x − x / 2) / 2.
    assert_eq!(numbers(jacobian), [1.25, 0.0, 0.0, 1.25]);
}

/// Messages about trees of thousands of leaves, subscripts of 10⁵ letters and tensors of 40 axes are short, and show the
/// first wrong place.
#[test]
fn messages_about_large_inputs_are_short() {
    #[track_caller]
    fn short(error: impl std::error::Error, place: &str) {
        let text = error.to_string();
        assert!(text.len() <= 500, "{} bytes: {text}", text.len());
        assert!(text.contains(place), "`{place}` is missing in `{text}`");
    }
    let count = 5000;
    let leaves = |wrong: usize| -> Vec<Tensor<B, 1>> {
        (0..count).map(|i| Tensor::zeros([2 + usize::from(i == wrong)], &T4aDevice)).collect()
    };
    let (fits, wrong) = (leaves(count), leaves(4321));
    let f = |x: Vec<Tensor<Jvp<B>, 1>>| x;
    short(jvp(f, fits.clone(), wrong.clone()).unwrap_err(), "leaf .4321 is");
    short(jvp(f, fits.clone(), fits[1..].to_vec()).unwrap_err(), "structure");
    let (_, pullback) = vjp(|x: Vec<Tensor<Autodiff<B>, 1>>| x, fits.clone()).unwrap();
    short(pullback.call(wrong.clone()).unwrap_err(), "leaf .4321 is");
    let columns = |x: Vec<Tensor<B, 1>>| -> Vec<Tensor<B, 2>> {
        x.into_iter().map(|x| x.unsqueeze_dim(1)).collect()
    };
    let mapped = vmap(|x: Vec<Tensor<Vmap<B>, 1>>| x);
    let result: Result<Vec<Tensor<B, 2>>, _> = mapped.call(columns(wrong));
    short(result.unwrap_err(), ".4321: 3 along axis 0");
    let subscripts = "ab".repeat(50_000) + "->a";
    let result: Result<Tensor<B, 1>, _> =
        burn_t4a::ext::einsum::einsum(subscripts.as_str(), [&fits[0]]);
    short(result.unwrap_err(), "has shape [2]");
    let ones = t4a_tensor::Tensor::<f32>::zeros(&[1; 40]).unwrap();
    short(ones.reshape(&[7]).unwrap_err(), "[1, 1, 1");
}
