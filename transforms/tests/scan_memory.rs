//! Peak memory of the gradient of a scan, eager and compiled, counted by an allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use burn::backend::Autodiff;
use burn::tensor::Tensor;
use burn_t4a::ext::scan::{Memory, Options, Policy, ScanBackend, scan};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::grad;

type B = BurnT4a;
type T = Traced<B>;

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = BYTES.fetch_add(layout.size(), SeqCst) + layout.size();
        MOST.fetch_max(now, SeqCst);
        // SAFETY: the caller guarantees the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the block was returned by `alloc` with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Steps and elements (`f32`) per step: 7.6 MiB of xs.
const SIZES: [usize; 2] = [400, 5000];

fn loss<A: ScanBackend>(xs: Tensor<A, 2>, memory: Memory) -> Tensor<A, 1> {
    let step = |(): (), c: Tensor<A, 1>, x: Tensor<A, 1>| ((c * 0.9 + x).tanh(), ());
    let init = Tensor::<A, 1>::zeros([SIZES[1]], &A::Device::default());
    let options = Options::default().memory(memory);
    let (last, ()): (Tensor<A, 1>, ()) = scan(step, (), init, xs, &options).unwrap();
    last.sum()
}

/// Most MiB in use above those before the call.
fn peak(call: impl FnOnce() -> Tensor<B, 2>) -> f64 {
    let before = BYTES.load(SeqCst);
    MOST.store(before, SeqCst);
    let gradient = call();
    let most = MOST.load(SeqCst);
    assert_eq!(gradient.dims(), SIZES);
    (most - before) as f64 / 1024.0 / 1024.0
}

/// Beyond xs, which the function drops, there are their gradient and the carries: all of them with `Policy::Carries`, and
/// with `Policy::Sqrt` while they are few; three times the size of xs at most. With Revolve there are only some.
#[test]
fn compiled_gradients_of_scans_keep_what_their_policy_says() {
    // Cached free blocks would be counted.
    t4a_tensor::pool::set_cache_limit(0);
    let xs = || Tensor::<B, 2>::full(SIZES, 0.1, &T4aDevice);
    let size = (SIZES[0] * SIZES[1] * 4) as f64 / 1024.0 / 1024.0;
    for (policy, most) in [(Policy::Sqrt, 3.2), (Policy::Carries, 3.2), (Policy::Revolve(6), 2.2)] {
        let memory = Memory::Bounded(policy);
        let x = xs();
        let eager = peak(|| grad(|x: Tensor<Autodiff<B>, 2>| loss(x, memory), x).unwrap());
        let gradient =
            |x: Tensor<T, 2>| grad(|x: Tensor<Autodiff<T>, 2>| loss(x, memory), x).unwrap();
        let f = compile(gradient).fullgraph();
        // Recorded, optimised, translated to machine code.
        for _ in 0..12 {
            f.call(xs()).unwrap();
        }
        let x = xs();
        let compiled = peak(|| f.call(x).unwrap());
        // Eager peaks vary, because Burn drops records on other threads.
        println!("{policy:?}: compiled {compiled:.1} MiB, eager {eager:.1} MiB");
        assert!(compiled < most * size, "{policy:?}: {compiled} MiB, xs {size}");
    }
}
