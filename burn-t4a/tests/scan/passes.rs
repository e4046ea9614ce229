//! Scan bodies that run reverse passes.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::*;
use burn_t4a::ext::scan::{Pushed, ScanBackend, scan_jvp};

/// Serialises tests: while a thread observes passes, those of other threads wait for it, up to seconds.
static ALONE: Mutex<()> = Mutex::new(());

/// Fails if the test does not end in time.
fn in_time(test: impl FnOnce() + Send + 'static) {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let (sender, receiver) = channel();
    let run = thread::spawn(move || {
        test();
        let _ = sender.send(());
    });
    let outcome = receiver.recv_timeout(Duration::from_secs(120));
    assert_ne!(outcome, Err(RecvTimeoutError::Timeout), "no result after two minutes");
    run.join().unwrap();
}

/// Gradient of `f`, which may be differentiated again.
fn slope<B: Backend>(
    f: impl Fn(Tensor<Autodiff<B>, 1>) -> Tensor<Autodiff<B>, 1>,
    x: Tensor<B, 1>,
) -> Tensor<B, 1> {
    let x = Tensor::<Autodiff<B>, 1>::from_inner(x).require_grad();
    x.grad(&f(x.clone()).sum().backward()).unwrap()
}

/// `w ← w − η ∇w²`
fn descent<B: Backend>(eta: Tensor<B, 1>, w: Tensor<B, 1>, (): ()) -> (Tensor<B, 1>, ()) {
    (w.clone() - eta * slope(|w| w.clone() * w, w), ())
}

/// wₙ and dwₙ/dη from w₀ = 1.
fn learned_rate<B: Backend>(n: usize, memory: Memory) -> [f64; 2]
where
    Autodiff<B>: ScanBackend,
{
    let eta = floats::<Autodiff<B>>(&[0.1]).require_grad();
    let options = Options::default().length(n).memory(memory);
    let (w, ()): (Tensor<Autodiff<B>, 1>, ()) =
        scan(descent, eta.clone(), floats(&[1.0]), (), &options).unwrap();
    let gradient = eta.grad(&w.clone().backward()).unwrap();
    [numbers(w)[0], numbers(gradient)[0]]
}

#[test]
fn learned_rate_has_its_gradient_under_every_policy() {
    in_time(|| {
        for n in [1, 2, 3, 20] {
            let want = [0.8f64.powi(n), -2.0 * n as f64 * 0.8f64.powi(n - 1)];
            for memory in POLICIES {
                close(&learned_rate::<BurnT4a>(n as usize, memory), &want, 1e-14);
                close(&learned_rate::<Flex>(n as usize, memory), &want, 1e-14);
            }
        }
        assert!((learned_rate::<BurnT4a>(20, Memory::default())[1] + 0.576460752303).abs() < 5e-13);
    });
}

#[test]
fn learned_rate_beside_busy_threads() {
    in_time(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let train = || {
            let stop = stop.clone();
            thread::spawn(move || {
                while !stop.load(SeqCst) {
                    let x = floats::<AD>(&[1.0]).require_grad();
                    let _ = (x.clone() * x).backward();
                }
            })
        };
        let threads = [train(), train()];
        for _ in 0..5 {
            for n in [1, 5] {
                let want = [0.8f64.powi(n), -2.0 * n as f64 * 0.8f64.powi(n - 1)];
                close(&learned_rate::<BurnT4a>(n as usize, Memory::default()), &want, 1e-14);
            }
        }
        stop.store(true, SeqCst);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Rates of three weights, and a fit to each element: `w ← w − η ∇ Σ (w² − x)²` and y = w.
#[test]
fn several_rates_and_elements() {
    type Y = (Tensor<AD, 1>, Tensor<AD, 2>);
    let step =
        |(eta, scale): (Tensor<AD, 1>, Tensor<AD, 1>), w: Tensor<AD, 1>, x: Tensor<AD, 1>| {
            let loss = |w: Tensor<Autodiff<AD>, 1>| {
                let [x, scale] = [&x, &scale].map(|x| Tensor::from_inner(x.clone()));
                (w.clone() * w * scale - x).powi_scalar(2)
            };
            let w = w.clone() - eta * slope(loss, w);
            (w.clone(), w)
        };
    in_time(move || {
        let gradients = |memory: Option<Memory>| {
            let eta = floats::<AD>(&[0.01, 0.02, 0.03]).require_grad();
            let scale = floats::<AD>(&[1.0, 0.5, 2.0]).require_grad();
            let first = floats::<AD>(&[0.3, -0.6, 0.9]).require_grad();
            let xs = random::<AD, 2>([7, 3], 5).require_grad();
            let consts = (eta.clone(), scale.clone());
            let (w, ys): Y = match memory {
                Some(memory) => {
                    let options = Options::default().memory(memory);
                    scan(step, consts, first.clone(), xs.clone(), &options).unwrap()
                }
                None => {
                    let (mut w, mut ys) = (first.clone(), Vec::new());
                    for t in 0..7 {
                        let x = xs.clone().narrow(0, t, 1).squeeze_dim::<1>(0);
                        w = step(consts.clone(), w, x).0;
                        ys.push(w.clone());
                    }
                    (w, Tensor::stack(ys, 0))
                }
            };
            let loss = w.sin().sum() + ys.powi_scalar(2).sum();
            let grads = loss.clone().backward();
            let of = |x: Tensor<AD, 1>| numbers(x.grad(&grads).unwrap());
            [numbers(loss), of(eta), of(scale), of(first), numbers(xs.grad(&grads).unwrap())]
        };
        let want = gradients(None);
        for memory in POLICIES {
            for (own, want) in gradients(Some(memory)).iter().zip(&want) {
                close(own, want, 1e-13);
            }
        }
    });
}

/// A reverse pass on the tape of the scan returns constants: dw ← dw − 2 w.
#[test]
fn gradient_without_second_order() {
    in_time(|| {
        let step = |eta: Tensor<AD, 1>, w: Tensor<AD, 1>, (): ()| {
            let v = w.clone().detach().require_grad();
            let gradient = v.grad(&(v.clone() * v.clone()).backward()).unwrap();
            (w - eta * Tensor::from_inner(gradient), ())
        };
        let (mut w, mut slope) = (1.0, 0.0);
        for _ in 0..6 {
            (w, slope) = (0.8 * w, slope - 2.0 * w);
        }
        for memory in POLICIES {
            let eta = floats::<AD>(&[0.1]).require_grad();
            let options = Options::default().length(6).memory(memory);
            let (last, ()): (Tensor<AD, 1>, ()) =
                scan(step, eta.clone(), floats(&[1.0]), (), &options).unwrap();
            let gradient = eta.grad(&last.clone().backward()).unwrap();
            close(&[numbers(last)[0], numbers(gradient)[0]], &[w, slope], 1e-14);
        }
    });
}

/// Reverse passes in nested scans, and in some steps only.
#[test]
fn passes_in_inner_scans_and_late_steps() {
    in_time(|| {
        for memory in POLICIES {
            let inner = Options::default().length(4).memory(memory);
            let outer = inner.clone().length(5);
            let step = move |eta: Tensor<AD, 1>, w: Tensor<AD, 1>, (): ()| {
                scan(descent, eta, w, (), &inner).unwrap() as (Tensor<AD, 1>, ())
            };
            let eta = floats::<AD>(&[0.1]).require_grad();
            let (w, ()): (Tensor<AD, 1>, ()) =
                scan(step, eta.clone(), floats(&[1.0]), (), &outer).unwrap();
            let gradient = eta.grad(&w.backward()).unwrap();
            close(&numbers(gradient), &[-40.0 * 0.8f64.powi(19)], 1e-13);

            // Two plain steps c ← a c, then w ← w − η ∇w².
            let step = |eta: Tensor<AD, 1>, (w, k): (Tensor<AD, 1>, Tensor<AD, 1>), (): ()| {
                let w = match numbers(k.clone())[0] < 2.0 {
                    true => eta * w,
                    false => descent(eta, w, ()).0,
                };
                ((w, k + 1.0), ())
            };
            let eta = floats::<AD>(&[0.1]).require_grad();
            let carry = (floats::<AD>(&[1.0]), floats(&[0.0]));
            let ((w, _), ()): ((Tensor<AD, 1>, Tensor<AD, 1>), ()) =
                scan(step, eta.clone(), carry, (), &outer).unwrap();
            // η² (1 − 2η)³
            let gradient = eta.grad(&w.backward()).unwrap();
            close(&numbers(gradient), &[0.2 * 0.512 - 0.01 * 6.0 * 0.64], 1e-14);
        }
    });
}

/// The gradient of an inner scan in each step: c ← c − η d(cᵏ)/dc, with the power as the inner scan.
#[test]
fn gradients_of_scans_in_scans() {
    in_time(|| {
        type A2 = Autodiff<AD>;
        for memory in POLICIES {
            let options = Options::default().length(3).memory(memory);
            let inner = options.clone();
            let step = move |eta: Tensor<AD, 1>, c: Tensor<AD, 1>, (): ()| {
                let cube = |c: Tensor<A2, 1>| {
                    let step = |c: Tensor<A2, 1>, p: Tensor<A2, 1>, (): ()| (p * c, ());
                    let one = c.ones_like().detach();
                    scan::<A2, _, _, _, _, _, _, ()>(step, c, one, (), &inner).unwrap().0
                };
                (c.clone() - eta * slope(cube, c), ())
            };
            let eta = floats::<AD>(&[0.1]).require_grad();
            let (c, ()): (Tensor<AD, 1>, ()) =
                scan(step, eta.clone(), floats(&[0.9]), (), &options).unwrap();
            let gradient = numbers(eta.grad(&c.clone().backward()).unwrap())[0];
            let (mut want, mut slope) = (0.9f64, 0.0);
            for _ in 0..3 {
                slope -= 3.0 * want * want + 0.1 * 6.0 * want * slope;
                want -= 0.1 * 3.0 * want * want;
            }
            close(&[numbers(c)[0], gradient], &[want, slope], 1e-13);
        }
    });
}

#[test]
fn learned_rate_of_second_order() {
    in_time(|| {
        type A2 = Autodiff<AD>;
        for memory in POLICIES {
            let eta = floats::<AD>(&[0.1]).require_grad();
            let top = Tensor::<A2, 1>::from_inner(eta.clone()).require_grad();
            let options = Options::default().length(6).memory(memory);
            let (w, ()): (Tensor<A2, 1>, ()) =
                scan(descent, top.clone(), floats(&[1.0]), (), &options).unwrap();
            let first = top.grad(&w.backward()).unwrap();
            let second = eta.grad(&first.clone().backward()).unwrap();
            let want = [-12.0 * 0.8f64.powi(5), 120.0 * 0.8f64.powi(4)];
            close(&[numbers(first)[0], numbers(second)[0]], &want, 1e-13);
        }
    });
}

#[test]
fn tangent_of_a_learned_rate() {
    in_time(|| {
        type A2 = Autodiff<AD>;
        let primals = (floats::<A2>(&[0.1]), floats(&[1.0]), ());
        let tangents = (Some(floats(&[1.0])), None, None);
        let options = Options::default().length(20);
        let ((w, ()), (tangent, ())): Pushed<Tensor<A2, 1>, ()> =
            scan_jvp(descent, primals, tangents, &options).unwrap();
        let want = [0.8f64.powi(20), -40.0 * 0.8f64.powi(19)];
        close(&[numbers(w)[0], numbers(tangent)[0]], &want, 1e-14);
    });
}
