//! Bodies that return their arguments unchanged, their gradients, and memory policies against the plain tape.

use super::*;

type Numbers = Tensor<1>;

/// Each y is the constant and the old carry, each carry is the element: the body computes nothing.
#[test]
fn constants_to_ys_and_elements_to_carries() {
    for memory in POLICIES {
        for reverse in [false, true] {
            let options = Options::default().memory(memory).reverse(reverse);
            let [k, init] = [5.0, 7.0].map(|x| floats(&[x]).require_grad());
            let xs = floats(&[1.0, 2.0, 3.0]).require_grad();
            let step = |k: Numbers, c: Numbers, x: Numbers| (x, (k, c));
            type Out = (Numbers, (Tensor<2>, Tensor<2>));
            let (last, (constants, old)): Out =
                scan(step, k.clone(), init.clone(), xs.clone(), &options).unwrap();
            assert_eq!(numbers(constants.clone()), [5.0; 3]);
            let (carries, end) =
                if reverse { ([2.0, 3.0, 7.0], 1.0) } else { ([7.0, 1.0, 2.0], 3.0) };
            assert_eq!(
                (numbers(old.clone()), numbers(last.clone())),
                (carries.to_vec(), vec![end])
            );
            let weights = floats(&[1.0, 10.0, 100.0]).reshape([3, 1]);
            let grads = (last * 1000.0 + ((constants + old) * weights).sum()).backward();
            assert_eq!(numbers(k.grad(&grads).unwrap()), [111.0]);
            let (first, elements) =
                if reverse { (100.0, [1000.0, 1.0, 10.0]) } else { (1.0, [10.0, 100.0, 1000.0]) };
            assert_eq!(numbers(init.grad(&grads).unwrap()), [first]);
            assert_eq!(numbers(xs.grad(&grads).unwrap()), elements);
        }
    }
}

#[test]
fn gradient_of_the_sum_of_the_final_carry() {
    for memory in POLICIES {
        for reverse in [false, true] {
            let options = Options::default().memory(memory).reverse(reverse);
            let xs = random::<2>([5, 2], 1).require_grad();
            let grads = sums(xs.clone(), &options).0.sum().backward();
            assert_eq!(numbers(xs.grad(&grads).unwrap()), [1.0; 10]);
        }
    }
}

/// Bitwise comparison of the gradients of a nonlinear body over 200 steps.
#[test]
fn gradients_of_the_default_policy_are_exactly_those_without_one() {
    let gradients = |memory, reverse| {
        let n = 200;
        let options = Options::default().memory(memory).reverse(reverse);
        let a = floats(&[0.9, 1.1]).require_grad();
        let init = floats(&[0.5, -0.25]).require_grad();
        let xs = random::<2>([n, 2], 3).require_grad();
        let step = |a: Numbers, c: Numbers, x: Numbers| {
            let c = (c * a + x.clone()).sin() * (x + 2.0);
            (c.clone(), c)
        };
        let (last, ys): (Numbers, Tensor<2>) =
            scan(step, a.clone(), init.clone(), xs.clone(), &options).unwrap();
        let grads = (last.sum() + (ys * random([n, 2], 4)).sum()).backward();
        [a.grad(&grads), init.grad(&grads)]
            .map(|x| numbers(x.unwrap()))
            .into_iter()
            .chain([numbers(xs.grad(&grads).unwrap())])
            .flatten()
            .map(f64::to_bits)
            .collect::<Vec<_>>()
    };
    for reverse in [false, true] {
        let want = gradients(Memory::StoreAll, reverse);
        for memory in [Memory::default(), Memory::Bounded(Policy::Segment(1))] {
            assert_eq!(gradients(memory, reverse), want, "{memory:?}");
        }
    }
}
