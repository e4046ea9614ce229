//! Second derivatives.

use super::*;

#[test]
fn second_order() {
    type A2 = Autodiff<AD>;
    // y = Σ c_t² with c ← sin(a c + x): the gradient with respect to a, and its derivative with respect to a.
    let first_and_second = |memory: Memory| {
        let a: Tensor<AD, 1> = floats::<AD>(&[0.7]).require_grad();
        let top: Tensor<A2, 1> = Tensor::from_inner(a.clone()).require_grad();
        let xs: Tensor<A2, 1> = floats(&[0.3, -0.2, 0.5, 0.1]);
        let step = |a: Tensor<A2, 1>, c: Tensor<A2, 1>, x: Tensor<A2, 1>| {
            let c = (a * c + x).sin();
            (c.clone(), c)
        };
        let (_, ys): (Tensor<A2, 1>, Tensor<A2, 2>) =
            scan(step, top.clone(), floats(&[0.4]), xs, &Options::default().memory(memory))
                .unwrap();
        let grads = ys.powi_scalar(2).sum().backward();
        let slope: Tensor<AD, 1> = top.grad(&grads).unwrap();
        let second = slope.clone().backward();
        (numbers(slope)[0], numbers(a.grad(&second).unwrap())[0])
    };
    let value = |a: f64| {
        let (mut c, mut sum) = (0.4f64, 0.0);
        for x in [0.3, -0.2, 0.5, 0.1] {
            c = (a * c + x).sin();
            sum += c * c;
        }
        sum
    };
    let h = 1e-4;
    let slope = (value(0.7 + h) - value(0.7 - h)) / (2.0 * h);
    let curvature = (value(0.7 + h) - 2.0 * value(0.7) + value(0.7 - h)) / (h * h);
    for memory in [Memory::StoreAll, Memory::Bounded(Policy::Sqrt)] {
        let (first, second) = first_and_second(memory);
        assert!(
            (first - slope).abs() < 1e-7 && (second - curvature).abs() < 1e-6,
            "{first} {second}"
        );
    }
}
