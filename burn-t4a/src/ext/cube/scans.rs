//! Launches of scans.

use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use t4a_cube::{LaneScan, Operand as Memory, ScanKind, scan};

use super::{launched, memory, tensor};

/// Parts of the states of a scan with these factors, terms and initial state.
pub(super) fn scanned<R: CubeRuntime>(
    kind: ScanKind,
    [a, b, first]: [&[&CubeTensor<R>]; 3],
    axis: usize,
    reverse: bool,
) -> Vec<CubeTensor<R>> {
    let own = |x: &[&CubeTensor<R>]| -> Vec<Memory> {
        x.iter().map(|&x| memory(&into_contiguous(x.clone()))).collect()
    };
    let over = LaneScan { kind, a: own(a), b: own(b), first: own(first), axis, reverse };
    let h = launched(scan(&b[0].client, over));
    h.into_iter().map(|h| tensor(b[0], h, b[0].meta.shape(), b[0].dtype)).collect()
}

/// As [`scanned`], for real numbers.
pub(super) fn scanned_real<R: CubeRuntime>(
    kind: ScanKind,
    operands: [&[&CubeTensor<R>]; 3],
    axis: usize,
    reverse: bool,
) -> CubeTensor<R> {
    scanned(kind, operands, axis, reverse).swap_remove(0)
}
