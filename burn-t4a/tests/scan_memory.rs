//! What a tape keeps of a scan, counted by an allocator: buffers of the size of a carry that are alive at
//! the same time, and all bytes, Burn's records among them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use burn_autodiff::Autodiff;
use burn_t4a::ext::scan::{Memory, Options, Policy, scan};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_tensor::Tensor;

type AD = Autodiff<BurnT4a>;

/// Elements of a carry, `f32`: nothing else in this program has about its size.
const ELEMENTS: usize = 5000;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static MOST_BYTES: AtomicUsize = AtomicUsize::new(0);

fn is_carry(layout: Layout) -> bool {
    (4 * ELEMENTS..5 * ELEMENTS).contains(&layout.size())
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_carry(layout) {
            let now = LIVE.fetch_add(1, SeqCst) + 1;
            MOST.fetch_max(now, SeqCst);
        }
        let bytes = BYTES.fetch_add(layout.size(), SeqCst) + layout.size();
        MOST_BYTES.fetch_max(bytes, SeqCst);
        // SAFETY: the layout is the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if is_carry(layout) {
            LIVE.fetch_sub(1, SeqCst);
        }
        BYTES.fetch_sub(layout.size(), SeqCst);
        // SAFETY: it came from `alloc` with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test at a time counts.
static ALONE: Mutex<()> = Mutex::new(());

/// Waits for the threads of an earlier reverse pass to end.
fn settle() {
    let mut before = usize::MAX;
    while before != BYTES.load(SeqCst) {
        before = BYTES.load(SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Most carries alive in the forward pass and in the reverse pass of `c ← sin c`, which keeps one carry
/// per step.
fn carries(n: usize, memory: Memory) -> [usize; 2] {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    settle();
    // Blocks that nobody uses would be taken for ones in use.
    t4a_tensor::pool::set_cache_limit(0);
    let before = LIVE.load(SeqCst);
    let init = Tensor::<AD, 1>::full([ELEMENTS], 0.7, &T4aDevice).require_grad();
    let step = |(): (), c: Tensor<AD, 1>, (): ()| (c.sin(), ());
    MOST.store(LIVE.load(SeqCst), SeqCst);
    let options = Options::default().length(n).memory(memory);
    let (last, ()): (Tensor<AD, 1>, ()) = scan(step, (), init.clone(), (), &options).unwrap();
    let forward = MOST.load(SeqCst) - before;
    MOST.store(LIVE.load(SeqCst), SeqCst);
    let loss = last.sum();
    let gradients = loss.backward();
    let reverse = MOST.load(SeqCst) - before;
    drop((gradients, init));
    [forward, reverse]
}

/// What the table of `Policy` says, to the carry. Of Revolve's carries none is the first one, which is an
/// operand; that, the one at work and the next one are there as well.
#[test]
fn carries_alive_are_those_of_the_table() {
    for n in [64usize, 100, 101] {
        let root = (n as f64).sqrt().ceil() as usize;
        let mut all = vec![
            (Memory::StoreAll, n + 1),
            (Memory::Bounded(Policy::Carries), n + 1),
            (Memory::Bounded(Policy::Sqrt), n.div_ceil(root) + root),
        ];
        for k in [5, 25] {
            all.push((Memory::Bounded(Policy::Segment(k)), n.div_ceil(k) + k));
        }
        for s in [1, 3, 6] {
            all.push((Memory::Bounded(Policy::Revolve(s)), s + 3));
        }
        for (memory, most) in all {
            let [forward, reverse] = carries(n, memory);
            assert_eq!(reverse, most, "{n} steps, {memory:?}");
            assert!(forward <= most, "{n} steps, {memory:?}: {forward} in the forward pass");
        }
    }
}

/// Most bytes while `c ← a c + x` of few numbers is differentiated by `a`, in KiB.
fn kib(n: usize, options: &Options) -> usize {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    settle();
    t4a_tensor::pool::set_cache_limit(0);
    let a = Tensor::<AD, 1>::full([16], 0.999, &T4aDevice).require_grad();
    let c = Tensor::<AD, 1>::zeros([16], &T4aDevice);
    let xs = Tensor::<AD, 1>::ones([n], &T4aDevice);
    let before = BYTES.load(SeqCst);
    MOST_BYTES.store(before, SeqCst);
    let step = |a: Tensor<AD, 1>, c: Tensor<AD, 1>, x: Tensor<AD, 1>| (c * a + x, ());
    let (last, ()): (Tensor<AD, 1>, ()) = scan(step, a.clone(), c, xs, options).unwrap();
    let gradients = last.sum().backward();
    assert!(a.grad(&gradients).is_some());
    (MOST_BYTES.load(SeqCst) - before) / 1024
}

#[test]
fn memory_of_many_steps_of_a_small_carry_is_bounded() {
    let many = kib(32_000, &Options::default());
    let everything = 16 * kib(2_000, &Options::default().memory(Memory::StoreAll));
    // About 8 MiB; 14 where another thread was late once, and Burn's map has doubled, of which each span has a
    // copy.
    assert!(many <= 20_000, "32000 steps take {many} KiB");
    assert!(4 * many <= everything, "32000 steps take {many} KiB, all of them {everything} KiB");
}
