//! Scans against the loop that they stand for, under every policy of memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use burn_t4a_022_ext::scan::fused::{
    self, AssociativeScan, Cell, FloatMonoid, Running, System, associative_scan,
};
use burn_t4a_022_ext::scan::{Memory, Options, Policy, ScanError, ScanPath, ScanReport, scan};
use burn_tensor::{DType, Device, Tensor, TensorData};

use crate::devices;

fn tape() -> Vec<Device> {
    let plain = devices().into_iter().map(Device::autodiff);
    plain.chain([Device::flex().autodiff().gradient_checkpointing()]).collect()
}

/// Numbers between −½ and ½.
fn random<const D: usize>(shape: [usize; D], seed: u64, device: &Device) -> Tensor<D> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let data = (0..shape.iter().product()).map(|_| next()).collect::<Vec<f64>>();
    Tensor::from_data(TensorData::new(data, shape), (device, DType::F64))
}

fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.into_data().try_to_vec::<f64>().unwrap()
}

#[track_caller]
fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{a} {b}");
    }
}

const STEPS: usize = 11;

/// `c ← tanh(W c + x)`, and `y = c²`.
fn step(
    (w,): (Tensor<2>,),
    (c, n): (Tensor<1>, Tensor<1>),
    x: Tensor<1>,
) -> ((Tensor<1>, Tensor<1>), Tensor<1>) {
    let c = (w.matmul(c.unsqueeze_dim(1)).squeeze_dim::<1>(1) + x).tanh();
    ((c.clone(), n + 1.0), c.powi_scalar(2))
}

/// The loss, and the gradients of W, the first carry and xs.
fn gradients(device: &Device, options: Option<&Options>) -> [Vec<f64>; 4] {
    let w = random([3, 3], 1, device).require_grad();
    let c = random([3], 2, device).require_grad();
    let xs = random([STEPS, 3], 3, device).require_grad();
    let n = random([1], 4, device);
    let (last, ys) = match options {
        Some(options) => {
            let carry = (c.clone(), n);
            let ((last, _), ys): ((Tensor<1>, Tensor<1>), Tensor<2>) =
                scan(step, (w.clone(),), carry, xs.clone(), options).unwrap();
            (last, ys)
        }
        None => {
            let (mut carry, mut ys) = ((c.clone(), n), Vec::new());
            for t in 0..STEPS {
                let x = xs.clone().narrow(0, t, 1).squeeze_dim::<1>(0);
                let (next, y) = step((w.clone(),), carry, x);
                carry = next;
                ys.push(y);
            }
            (carry.0, Tensor::stack::<2>(ys, 0))
        }
    };
    let loss = (last.sin()).sum() + (ys.clone() * random([STEPS, 3], 5, device)).sum();
    let grads = loss.clone().backward();
    [
        numbers(loss),
        numbers(w.grad(&grads).unwrap()),
        numbers(c.grad(&grads).unwrap()),
        numbers(xs.grad(&grads).unwrap()),
    ]
}

#[test]
fn a_scan_is_the_loop_under_every_policy() {
    for device in tape() {
        let want = gradients(&device, None);
        let bounded = [
            Policy::Carries,
            Policy::Sqrt,
            Policy::Segment(3),
            Policy::Segment(50),
            Policy::Revolve(1),
            Policy::Revolve(3),
        ];
        let all = bounded.map(Memory::Bounded).into_iter().chain([Memory::StoreAll]);
        for memory in all {
            let got = gradients(&device, Some(&Options::default().memory(memory)));
            for (got, want) in got.iter().zip(&want) {
                close(got, want);
            }
        }
    }
}

#[test]
fn ys_lie_where_their_xs_do_backwards() {
    for device in tape() {
        let xs = random::<1>([5], 1, &device).require_grad();
        let step = |(): (), c: Tensor<1>, x: Tensor<1>| (c.clone() * 0.5 + x, c);
        let options = Options::default().reverse(true);
        let start = random::<1>([1], 2, &device);
        let (last, ys): (Tensor<1>, Tensor<2>) =
            scan(step, (), start.clone(), xs.clone(), &options).unwrap();
        let x = numbers(xs.clone());
        let (mut c, mut want) = (numbers(start)[0], vec![0.0; 5]);
        for t in (0..5).rev() {
            want[t] = c;
            c = 0.5 * c + x[t];
        }
        close(&numbers(ys), &want);
        close(&numbers(last.clone()), &[c]);
        let slopes = xs.grad(&last.backward()).unwrap();
        close(&numbers(slopes), &[1.0, 0.5, 0.25, 0.125, 0.0625]);
    }
}

/// Gradients of a scan whose steps scan, and how often the body runs.
#[test]
fn scans_nest_and_run_their_steps_twice() {
    let device = Device::flex().autodiff();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let outer = move |(a,): (Tensor<1>,), c: Tensor<1>, x: Tensor<1>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let inner = |(a,): (Tensor<1>,), c: Tensor<1>, x: Tensor<1>| (a * c + x, ());
        let (c, ()): (Tensor<1>, ()) =
            scan(inner, (a,), c, x.repeat_dim(0, 3), &Options::default()).unwrap();
        (c, ())
    };
    let a = Tensor::<1>::from_data([0.5f64], (&device, DType::F64)).require_grad();
    let one = Tensor::<1>::from_data([1.0f64], (&device, DType::F64));
    let xs = one.clone().repeat_dim(0, 4);
    let options = Options::default().memory(Memory::Bounded(Policy::Segment(2)));
    let (last, ()): (Tensor<1>, ()) = scan(outer, (a.clone(),), one, xs, &options).unwrap();
    // Twelve steps of c ← a c + 1 from 1.
    let sum = |slope: bool| -> f64 {
        let power = |k: i32| if slope { k as f64 * 0.5f64.powi(k - 1) } else { 0.5f64.powi(k) };
        (0..=12).map(power).sum()
    };
    close(&numbers(last.clone()), &[sum(false)]);
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    let gradient = a.grad(&last.backward()).unwrap();
    close(&numbers(gradient), &[sum(true)]);
    // Spans of two steps run theirs once more.
    assert_eq!(calls.load(Ordering::Relaxed), 8);
}

#[test]
fn mistakes_are_typed_errors() {
    let device = Device::flex().autodiff();
    let x = random::<1>([2], 1, &device).require_grad();
    let captured = x.clone();
    let step = move |(): (), c: Tensor<1>, (): ()| (c * captured.clone(), ());
    let options = Options::default().length(3);
    let error = scan::<_, _, _, _, _, _, ()>(step.clone(), (), x.clone(), (), &options).err();
    assert!(matches!(error, Some(ScanError::Captured { .. })), "{error:?}");
    let all = options.clone().memory(Memory::StoreAll);
    assert!(scan::<_, _, _, _, _, _, ()>(step, (), x.clone(), (), &all).is_ok());
    let grow = |(): (), c: Tensor<1>, (): ()| (c.repeat_dim(0, 2), ());
    let error = scan::<_, _, _, _, _, _, ()>(grow, (), x.clone(), (), &options).err();
    assert!(matches!(error, Some(ScanError::Carry { .. })), "{error:?}");
    let still = |(): (), c: Tensor<1>, (): ()| (c, ());
    let error = scan::<_, _, _, _, _, _, ()>(still, (), x, (), &Options::default()).err();
    assert_eq!(error, Some(ScanError::LengthRequired));
}

/// A path that is not accepted is an error before the first step, which names it and why; one that is
/// accepted is reported once, on a tape and without.
#[test]
fn paths_can_be_required_and_are_reported() {
    for device in devices().into_iter().chain(tape()) {
        let (told, calls) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let sink = told.clone();
        let options = Options::default().length(2).report(move |r| sink.lock().unwrap().push(*r));
        let run = |paths: &[ScanPath]| {
            let counted = calls.clone();
            let step = move |(): (), c: Tensor<1>, (): ()| {
                counted.fetch_add(1, Ordering::Relaxed);
                (c, ())
            };
            let options = options.clone().accept(paths);
            let init = random::<1>([2], 1, &device);
            scan::<_, _, _, _, _, _, ()>(step, (), init, (), &options).map(|_| ())
        };
        for paths in [&[][..], &[ScanPath::Fused]] {
            let error = run(paths).unwrap_err();
            let (chosen, reason) = (ScanPath::Fallback, "body_not_traced");
            let accepted = paths.to_vec();
            assert_eq!(error, ScanError::PathRejected { chosen, reason, accepted });
            let wanted = "scan: the path would be Fallback (body_not_traced), accepted are ";
            assert_eq!(error.to_string(), format!("{wanted}{paths:?}"));
        }
        assert_eq!((calls.load(Ordering::Relaxed), told.lock().unwrap().len()), (0, 0));
        run(&[ScanPath::Fallback]).unwrap();
        run(&[ScanPath::Fused, ScanPath::Fallback]).unwrap();
        let report = ScanReport { path: ScanPath::Fallback, reason: "body_not_traced", length: 2 };
        assert_eq!(*told.lock().unwrap(), [report; 2]);
        assert_eq!(calls.load(Ordering::Relaxed), 4);
    }
}

#[test]
fn recurrences_in_one_kernel_are_the_scan() {
    for device in tape() {
        let [a, b] = [1, 2].map(|seed| random::<2>([9, 3], seed, &device).require_grad());
        let h0 = random::<2>([1, 3], 3, &device).require_grad();
        let h = fused::linear_recurrence(a.clone(), b.clone(), Some(h0.clone()), 0, false).unwrap();
        let step = |(): (), h: Tensor<1>, (a, b): (Tensor<1>, Tensor<1>)| {
            let h = a * h + b;
            (h.clone(), h)
        };
        let all = (a.clone(), b.clone());
        let (_, want): (Tensor<1>, Tensor<2>) =
            scan(step, (), h0.clone().reshape([3]), all, &Options::default()).unwrap();
        close(&numbers(h.clone()), &numbers(want.clone()));
        let (own, want) = (h.powi_scalar(2).sum().backward(), want.powi_scalar(2).sum().backward());
        for x in [a, b, h0] {
            close(&numbers(x.grad(&own).unwrap()), &numbers(x.grad(&want).unwrap()));
        }
        // The gradient of the sum of running products through a zero.
        let x = Tensor::<1>::from_data([2.0f64, 0.0, 3.0], (&device, DType::F64)).require_grad();
        let y = fused::cumulative(Running::Product, x.clone(), 0, false).unwrap();
        assert_eq!(numbers(x.grad(&y.sum().backward()).unwrap()), [1.0, 8.0, 0.0]);
    }
}

/// Layers, filters and associative scans with their gradients: kernels and definitions agree.
#[test]
fn layers_and_filters_agree_between_backends() {
    let run = |device: &Device| -> Vec<Vec<f64>> {
        let z = random::<3>([4, 2, 12], 1, device).require_grad();
        let w = random::<2>([3, 12], 2, device).require_grad();
        let first = vec![random::<2>([2, 3], 3, device), random::<2>([2, 3], 4, device)];
        let out = fused::recurrent(Cell::Lstm, z.clone(), w.clone(), None, first, false).unwrap();
        let layer = out[1].clone().powi_scalar(2).sum().backward();

        let unit = |n: usize| Tensor::<2>::eye(n, device).cast(DType::F64);
        let noise = unit(2).require_grad();
        let system = System {
            transition: random::<2>([2, 2], 1, device),
            process_noise: noise.clone(),
            observation: random::<2>([1, 2], 2, device),
            observation_noise: unit(1),
        };
        let y = random::<3>([2, 5, 1], 3, device);
        let mean = random::<1>([2], 6, device);
        let (mean, _, likelihood) = fused::kalman_filter(system, y, mean, unit(2)).unwrap();
        let filter = likelihood.clone().sum().backward();

        let [a, b] = [7, 8].map(|seed| random::<3>([5, 2, 2], seed, device).require_grad());
        let op = AssociativeScan::new(FloatMonoid::Affine, 0);
        let all = associative_scan(&op, vec![a.clone(), b]).unwrap();
        let affine = all[1].clone().sum().backward();
        vec![
            numbers(out[0].clone()),
            numbers(z.grad(&layer).unwrap()),
            numbers(w.grad(&layer).unwrap()),
            numbers(mean),
            numbers(likelihood),
            numbers(noise.grad(&filter).unwrap()),
            numbers(a.grad(&affine).unwrap()),
        ]
    };
    let all: Vec<_> = tape().iter().map(run).collect();
    for other in &all[1..] {
        for (a, b) in all[0].iter().zip(other) {
            close(a, b);
        }
    }
}

/// `w ← w − η ∇w²` with the gradient by a pass in the step, whose result is a constant: dw ← dw − 2 w.
#[test]
fn bodies_may_compute_gradients() {
    for device in devices().into_iter().map(Device::autodiff) {
        for n in [1, 2, 7] {
            let (mut want, mut slope) = (1.0, 0.0);
            for _ in 0..n {
                (want, slope) = (0.8 * want, slope - 2.0 * want);
            }
            let bounded = [Policy::Sqrt, Policy::Carries, Policy::Segment(3), Policy::Revolve(1)];
            for memory in bounded.map(Memory::Bounded).into_iter().chain([Memory::StoreAll]) {
                let of = |x: f64| Tensor::<1>::from_data([x], (&device, DType::F64));
                let eta = of(0.1).require_grad();
                let step = |eta: Tensor<1>, w: Tensor<1>, (): ()| {
                    let v = w.clone().detach().require_grad();
                    let gradient = v.grad(&(v.clone() * v.clone()).backward()).unwrap();
                    (w - eta * Tensor::from_inner(gradient), ())
                };
                let options = Options::default().length(n).memory(memory);
                let (last, ()): (Tensor<1>, ()) =
                    scan(step, eta.clone(), of(1.0), (), &options).unwrap();
                let gradient = eta.grad(&last.clone().backward()).unwrap();
                close(&numbers(last), &[want]);
                close(&numbers(gradient), &[slope]);
            }
        }
    }
}
