//! Serialised tensors that describe far more combinations of sectors than they have bytes: rejected in bounded time
//! and memory, measured by a counting allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use t4a_diff::check;
use t4a_structured::{Direction, GradedTensor, Leg, Spec, U1};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = BYTES.fetch_add(layout.size(), SeqCst) + layout.size();
        MOST.fetch_max(bytes, SeqCst);
        // SAFETY: the layout is that of the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), SeqCst);
        // SAFETY: `at` was returned by `alloc` with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Serialises the tests, since the allocation counter is global.
static ALONE: Mutex<()> = Mutex::new(());

/// Deserialises a tensor within 2 s and 48 MiB.
fn read(text: &str) -> Result<GradedTensor<U1>, String> {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (before, start) = (BYTES.load(SeqCst), Instant::now());
    MOST.store(before, SeqCst);
    let read = serde_json::from_str(text).map_err(|error| error.to_string());
    let (bytes, time) = (MOST.load(SeqCst) - before, start.elapsed());
    assert!(time < Duration::from_secs(2), "{time:?}");
    assert!(bytes < 48 << 20, "{bytes} bytes");
    read
}

/// Serialised leg with these sectors, optionally fused.
fn leg(sectors: &[(i32, usize)], fused: Option<&str>) -> String {
    let sectors: Vec<String> = sectors.iter().map(|(q, n)| format!("[{q},{n}]")).collect();
    let fused = fused.map_or(String::new(), |legs| format!(r#","fused":[{legs}]"#));
    format!(r#"{{"direction":"out","sectors":[{}]{fused}}}"#, sectors.join(","))
}

fn tensor(legs: &[String], flux: i32, rows: usize) -> String {
    let legs = legs.join(",");
    format!(r#"{{"legs":[{legs}],"flux":{flux},"rows":{rows},"re":{{"f64":[1.0]}}}}"#)
}

#[track_caller]
fn refused(text: &str, why: &str) {
    let error = read(text).unwrap_err();
    assert!(error.contains(why), "{error}");
}

/// 2²¹ row tuples and 2²¹ column tuples, and one element.
#[test]
fn forty_two_legs() {
    let text = tensor(&vec![leg(&[(0, 1), (1, 1)], None); 42], 42, 21);
    assert!(text.len() < 2500);
    refused(&text, "combinations of sectors");
    // As many legs with one sector each are accepted.
    let few = tensor(&vec![leg(&[(1, 1)], None); 42], 42, 21);
    assert_eq!(read(&few).unwrap().spec().len(), 1);
}

/// A leg fused from 20 legs in a tensor of one element; many such legs; a leg without sectors after other legs.
#[test]
fn fused_legs() {
    let two = leg(&[(0, 1), (1, 1)], None);
    let parts = vec![two.clone(); 20].join(",");
    let fused = leg(&[(0, 1)], Some(&parts));
    refused(&tensor(&[fused], 0, 1), "combinations of sectors");
    let small = leg(&[(0, 1)], Some(&vec![two.clone(); 14].join(",")));
    refused(&tensor(&vec![small; 400], 0, 200), "combinations of sectors");
    let mut legs = vec![two; 40];
    legs.push(leg(&[], None));
    assert!(read(&tensor(&legs, 0, 41)).is_err());
}

#[test]
fn legs_fused_of_fused_legs() {
    let deep = |levels| {
        let one = |inner: String, _| leg(&[(0, 1)], Some(&inner));
        tensor(&[(0..levels).fold(leg(&[(0, 1)], None), one)], 0, 1)
    };
    assert!(read(&deep(20)).is_ok());
    // The JSON parser has its own recursion limit.
    assert!(read(&deep(10_000)).is_err());
}

/// Tensors beyond the bound are not serialised either; those below it survive a round trip.
#[test]
fn storing_has_the_bound_of_loading() {
    let leg = Leg::new([(U1(0), 1), (U1(1), 1)], Direction::Out).unwrap();
    let of = |legs: usize, flux: i32| {
        let spec = Spec::new(vec![leg.clone(); legs], U1(flux), legs).unwrap();
        let re = check::array(&[spec.len()], |i| i as f64);
        GradedTensor::new(spec, re, None).unwrap()
    };
    let error = serde_json::to_string(&of(18, 18)).unwrap_err().to_string();
    assert!(error.contains("combinations of sectors"), "{error}");
    let tensor = of(15, 7);
    let back: GradedTensor<U1> =
        serde_json::from_str(&serde_json::to_string(&tensor).unwrap()).unwrap();
    assert_eq!(back.spec(), tensor.spec());
    assert_eq!(check::elements(back.re()), check::elements(tensor.re()));
}
