//! A limit for all tensors: allocations above it are errors, and freed memory is available again. A separate program,
//! because the limit is process-wide.

use t4a_tensor::{Tensor, TensorError, pool};

#[test]
fn beyond_the_limit_is_an_error() {
    const MIB: usize = 1 << 20;
    pool::set_memory_limit(10 * MIB);
    // A single tensor that exceeds the limit, with no other memory in use.
    let (op, bytes) = ("from_fn", 11 * MIB);
    let error = Tensor::<u8>::from_fn(&[bytes], |_| 1).unwrap_err();
    assert_eq!(error, TensorError::OutOfMemory { op, bytes });
    assert!(error.to_string().starts_with("from_fn: out of memory: 11534336 bytes"), "{error}");
    let block = || Tensor::<u8>::from_fn(&[4 * MIB], |_| 1);
    let (a, b) = (block().unwrap(), block().unwrap());
    assert!(matches!(block(), Err(TensorError::OutOfMemory { .. })));
    drop(a);
    // The same size from the cache, another size after the cache is cleared.
    let c = block().unwrap();
    drop(c);
    let larger = Tensor::<u8>::from_fn(&[5 * MIB], |_| 1).unwrap();
    assert!(matches!(block(), Err(TensorError::OutOfMemory { .. })));
    drop((b, larger));
    assert_eq!(block().unwrap().get(&[0]), Some(1));
    drop(block());
    // Rejected allocations do not reduce the memory available to others, and are not cached.
    pool::set_memory_limit(64 * MIB);
    std::thread::scope(|scope| {
        let greedy = scope
            .spawn(|| (0..20_000).all(|_| Tensor::<f32>::from_fn(&[1 << 40], |_| 1.0).is_err()));
        while !greedy.is_finished() {
            for kib in [8, 100, 400] {
                Tensor::<u8>::from_fn(&[kib << 10], |_| 1).unwrap();
            }
        }
        assert!(greedy.join().unwrap());
    });
    pool::set_memory_limit(usize::MAX);
}
