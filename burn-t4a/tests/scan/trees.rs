//! Trees as consts, carries, xs and ys, and arguments returned unchanged.

use super::*;
use burn_t4a::ext::tree::Tree;

#[test]
fn trees_of_all_kinds() {
    type X = [Vec<Tensor<AD, 1>>; 2];
    type XS = [Vec<Tensor<AD, 2>>; 2];
    let step = |w: Vec<Tensor<AD, 1>>, (c,): (Tensor<AD, 1>,), [a, b]: X| {
        let c = c * w[0].clone() + a[0].clone() * b[0].clone();
        ((c.clone(),), (c, a[0].clone()))
    };
    let x = |seed| vec![random::<AD, 2>([5, 2], seed)];
    let xs: XS = [x(1), x(2)];
    type Out = ((Tensor<AD, 1>,), (Tensor<AD, 2>, Tensor<AD, 2>));
    let ((last,), (ys, passed)): Out = scan(
        step,
        vec![floats(&[0.5, 0.25])],
        (floats(&[0.0, 0.0]),),
        xs.clone(),
        &Options::default(),
    )
    .unwrap();
    assert_eq!(numbers(passed), numbers(xs[0][0].clone()));
    assert_eq!(numbers(last), numbers(ys.narrow(0, 4, 1)));
}

/// A state that exists on one backend.
#[derive(Tree)]
#[tree(backend = AD)]
struct State {
    position: Tensor<AD, 1>,
    velocity: Tensor<AD, 2>,
}

#[test]
fn a_struct_as_carry_and_a_list_of_trees_as_xs() {
    type X = Vec<(Tensor<AD, 1>, Tensor<AD, 1>)>;
    type XS = Vec<(Tensor<AD, 1>, Tensor<AD, 2>)>;
    let step = |(): (), c: State, x: X| {
        let [(a, b), (_, force)] = <[_; 2]>::try_from(x).unwrap();
        let velocity = c.velocity + force.reshape([1, 2]);
        let position = c.position + velocity.clone().reshape([2]) * a + b;
        (State { position: position.clone(), velocity }, position)
    };
    let xs: XS = vec![
        (floats(&[1.0, 2.0, 3.0]), random([3, 2], 1)),
        (floats(&[0.0, 0.0, 0.0]), random([3, 2], 2)),
    ];
    let init = || State { position: floats(&[0.1, 0.2]), velocity: random([1, 2], 3) };
    let (last, ys): (State, Tensor<AD, 2>) =
        scan(step, (), init(), xs.clone(), &Options::default()).unwrap();
    let mut c = init();
    for t in 0..3 {
        let row = |x: &Tensor<AD, 2>| x.clone().narrow(0, t, 1).reshape([2]);
        let x = xs.iter().map(|(a, b)| (a.clone().narrow(0, t, 1), row(b))).collect();
        let (next, y) = step((), c, x);
        assert_eq!(numbers(y), numbers(row(&ys)));
        c = next;
    }
    assert_eq!(numbers(last.position), numbers(c.position));
    assert_eq!(numbers(last.velocity), numbers(c.velocity));
}

#[test]
fn passthroughs() {
    for memory in POLICIES {
        let options = Options::default().memory(memory).reverse(true);
        let init = floats::<AD>(&[7.0]).require_grad();
        let xs = floats::<AD>(&[1.0, 2.0, 3.0]).require_grad();
        let step = |(): (), c: Tensor<AD, 1>, x: Tensor<AD, 1>| (c.clone(), (c.clone(), x, c));
        type Out = (Tensor<AD, 1>, (Tensor<AD, 2>, Tensor<AD, 2>, Tensor<AD, 2>));
        let (last, (old, x, _)): Out = scan(step, (), init.clone(), xs.clone(), &options).unwrap();
        assert_eq!(numbers(x.clone()), [1.0, 2.0, 3.0]);
        let weights = floats::<AD>(&[1.0, 10.0, 100.0]).reshape([3, 1]);
        let grads = (last.sum() + ((old + x) * weights).sum()).backward();
        assert_eq!(numbers(init.grad(&grads).unwrap()), [112.0]);
        assert_eq!(numbers(xs.grad(&grads).unwrap()), [1.0, 10.0, 100.0]);
    }
}

#[test]
fn one_tensor_as_carry_and_as_several_ys() {
    let step = |(): (), c: Tensor<AD, 1>, x: Tensor<AD, 1>| {
        let c = c * x;
        (c.clone(), [c.clone(), c.clone(), c])
    };
    let xs = floats::<AD>(&[2.0, 3.0]).require_grad();
    let (last, ys): (Tensor<AD, 1>, [Tensor<AD, 2>; 3]) =
        scan(step, (), floats(&[1.0]), xs.clone(), &Options::default()).unwrap();
    for y in &ys {
        assert_eq!(numbers(y.clone()), [2.0, 6.0]);
    }
    // 1 + 3·(1 + x₂) and x₁ + 3 x₁.
    let sum = ys.into_iter().fold(last.sum(), |sum, y| sum + y.sum());
    let gradients = sum.backward();
    assert_eq!(numbers(xs.grad(&gradients).unwrap()), [3.0 + 4.0 * 3.0, 4.0 * 2.0]);
}
