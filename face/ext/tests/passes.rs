//! Scan bodies that run a reverse pass.

use super::arrays::{close, floats};
use super::ext::scan::{Memory, Options, Policy, scan};
use super::{Tensor, numbers};

/// `w ← w − η ∇w²` with the gradient computed by a reverse pass in the step, whose result is a constant: dw ← dw −
/// 2 w.
#[test]
fn bodies_may_compute_gradients() {
    for n in [1, 2, 7] {
        let (mut want, mut slope) = (1.0, 0.0);
        for _ in 0..n {
            (want, slope) = (0.8 * want, slope - 2.0 * want);
        }
        let bounded = [Policy::Sqrt, Policy::Carries, Policy::Segment(3), Policy::Revolve(1)];
        for memory in bounded.map(Memory::Bounded).into_iter().chain([Memory::StoreAll]) {
            let eta = floats(&[0.1]).require_grad();
            let step = |eta: Tensor<1>, w: Tensor<1>, (): ()| {
                let v = w.clone().detach().require_grad();
                let gradient = v.grad(&(v.clone() * v.clone()).backward()).unwrap();
                (w - eta * Tensor::from_inner(gradient), ())
            };
            let options = Options::default().length(n).memory(memory);
            let (last, ()): (Tensor<1>, ()) =
                scan(step, eta.clone(), floats(&[1.0]), (), &options).unwrap();
            let gradient = eta.grad(&last.clone().backward()).unwrap();
            close(&numbers(last), &[want], 1e-12);
            close(&numbers(gradient), &[slope], 1e-12);
        }
    }
}
