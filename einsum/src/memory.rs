//! Fallible allocation of lists with the length of a tensor, which is a user input.

use t4a_tensor::TensorError;

use crate::error::Result;

fn reserved<T>(len: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    list.try_reserve_exact(len).map_err(|_| TensorError::OutOfMemory { op: "einsum", bytes })?;
    Ok(list)
}

/// A list of `len` copies of a value.
pub(crate) fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>> {
    let mut list = reserved(len)?;
    list.resize(len, value);
    Ok(list)
}

/// `f` applied to every item.
pub(crate) fn mapped<T: Copy, U>(items: &[T], f: impl FnMut(T) -> U) -> Result<Vec<U>> {
    let mut list = reserved(items.len())?;
    list.extend(items.iter().copied().map(f));
    Ok(list)
}

/// `f` applied to every pair of items.
pub(crate) fn zipped<T: Copy, U>(a: &[T], b: &[T], f: impl Fn(T, T) -> U) -> Result<Vec<U>> {
    let mut list = reserved(a.len().min(b.len()))?;
    list.extend(a.iter().zip(b).map(|(&a, &b)| f(a, b)));
    Ok(list)
}
