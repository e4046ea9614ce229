//! Memory that a tape keeps of a scan, counted by an allocator: live buffers of the size of a carry, and all bytes,
//! including Burn's records.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use burn_autodiff::Autodiff;
use burn_t4a::ext::scan::{Memory, Options, Policy, scan};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_tensor::Tensor;

type AD = Autodiff<BurnT4a>;

/// Elements of a carry, `f32`; no other buffer of this program has about this size.
const ELEMENTS: usize = 5000;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static MOST_BYTES: AtomicUsize = AtomicUsize::new(0);

fn is_carry(layout: Layout) -> bool {
    (4 * ELEMENTS..5 * ELEMENTS).contains(&layout.size())
}

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_carry(layout) {
            let now = LIVE.fetch_add(1, SeqCst) + 1;
            MOST.fetch_max(now, SeqCst);
        }
        let bytes = BYTES.fetch_add(layout.size(), SeqCst) + layout.size();
        MOST_BYTES.fetch_max(bytes, SeqCst);
        // SAFETY: the caller guarantees the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if is_carry(layout) {
            LIVE.fetch_sub(1, SeqCst);
        }
        BYTES.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the block was returned by `alloc` with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Serialises tests, because the counters are global.
static ALONE: Mutex<()> = Mutex::new(());

/// Waits for the threads of an earlier reverse pass to end.
fn settle() {
    let mut before = usize::MAX;
    while before != BYTES.load(SeqCst) {
        before = BYTES.load(SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Maximum number of live carries in the forward pass and in the reverse pass of `c ← sin c`, which keeps one carry
/// per step.
fn carries(n: usize, memory: Memory) -> [usize; 2] {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    settle();
    // Cached free blocks would be counted as live.
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

/// Number of carries as documented at `Policy`, exactly. The first carry is an operand and not among those of
/// Revolve; it, the current carry and the next one are live too.
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

/// Maximum number of KiB in use during the gradient of `c ← a c + x` with respect to `a`, with few elements per
/// carry.
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
    const MOST: usize = 20_000;
    // About 8 MiB. Whenever a thread that drops records is late, Burn's map doubles, of which each span has a copy: 14
    // and 26 MiB were seen while other programs ran, so a larger number is measured again.
    let mut many = usize::MAX;
    for _ in 0..3 {
        many = many.min(kib(32_000, &Options::default()));
        if many <= MOST {
            break;
        }
    }
    let everything = 16 * kib(2_000, &Options::default().memory(Memory::StoreAll));
    assert!(many <= MOST, "32000 steps take {many} KiB");
    assert!(4 * many <= everything, "32000 steps take {many} KiB, all of them {everything} KiB");
}

/// Entries that gradients leave in Burn's tables are dropped by later gradients.
#[test]
fn gradients_leave_no_memory() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    t4a_tensor::pool::set_cache_limit(0);
    let policies = [Policy::Sqrt, Policy::Carries, Policy::Segment(2), Policy::Revolve(3)];
    let all = policies.map(Memory::Bounded).into_iter().chain([Memory::StoreAll]);
    for (memory, n) in
        all.flat_map(|memory| [(memory, 1), (memory, 10)]).chain([(Memory::default(), 400)])
    {
        let gradient = || {
            let a = Tensor::<AD, 1>::full([4], 0.9, &T4aDevice).require_grad();
            let c = Tensor::<AD, 1>::ones([4], &T4aDevice);
            let xs = Tensor::<AD, 1>::ones([n], &T4aDevice).require_grad();
            let step = |a: Tensor<AD, 1>, c: Tensor<AD, 1>, x: Tensor<AD, 1>| (c * a + x, ());
            let options = Options::default().memory(memory);
            let (last, ()): (Tensor<AD, 1>, ()) =
                scan(step, a.clone(), c, xs.clone(), &options).unwrap();
            let gradients = last.sum().backward();
            assert!(a.grad(&gradients).is_some() && xs.grad(&gradients).is_some());
        };
        // A table entry has 2.6 KB or more, so a leak exceeds the limit.
        let calls = if n > 10 { 40 } else { 300 };
        (0..20).for_each(|_| gradient());
        settle();
        let before = BYTES.load(SeqCst);
        (0..calls).for_each(|_| gradient());
        settle();
        let left = BYTES.load(SeqCst).saturating_sub(before);
        assert!(left <= 64 << 10, "{memory:?} of {n} steps: {left} bytes after {calls} gradients");
    }
}

/// Seconds for the gradient with respect to xs of `scans` consecutive scans over n elements.
fn seconds(scans: usize, n: usize, options: &Options) -> f64 {
    let xs = Tensor::<AD, 2>::ones([n, 64], &T4aDevice).require_grad();
    let step = |(): (), c: Tensor<AD, 1>, x: Tensor<AD, 1>| (c * 0.5 + x, ());
    let begin = Instant::now();
    let mut c = Tensor::<AD, 1>::zeros([64], &T4aDevice);
    for _ in 0..scans {
        c = scan::<AD, _, _, _, _, _, _, ()>(step, (), c, xs.clone(), options).unwrap().0;
    }
    let gradients = c.sum().backward();
    assert!(xs.grad(&gradients).is_some());
    begin.elapsed().as_secs_f64()
}

/// Eight times the work takes about eight times as long, not sixty-four times. Other processes may slow down two attempts.
#[track_caller]
fn linear(seconds: impl Fn(usize) -> f64) {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let few = (0..3).map(|_| seconds(1)).fold(f64::MAX, f64::min);
    let many: Vec<f64> = (0..3).map(|_| seconds(8)).take_while(|&many| many > 20.0 * few).collect();
    assert!(many.len() < 3, "{many:?} s after {few} s");
}

#[test]
fn time_of_recorded_steps_is_linear_in_their_number() {
    linear(|count| seconds(1, 1_000 * count, &Options::default().memory(Memory::StoreAll)));
}

/// Short scans, of four spans each unless they are recorded as they are.
#[test]
fn time_of_many_scans_is_linear_in_their_number() {
    linear(|count| seconds(100 * count, 10, &Options::default()));
    // Up to 3000 scans.
    linear(|count| seconds(375 * count, 3, &Options::default()));
    // Up to 200 scans of ten spans each.
    linear(|count| seconds(25 * count, 100, &Options::default()));
}
