//! Permuted copies in GB/s (bytes read plus bytes written), against strided-perm and memcpy.
//!
//! `cargo bench -p t4a-einsum --bench permute -- DIR` (or `T4A_EINSUM_DIR=DIR`) runs the patterns of
//! `permutation_patterns.json` in that directory; without one, a built-in list. Shapes and axes are those of row-major
//! arrays. Every copy is checked before timing. memcpy runs on one thread and writes to mapped memory, like all others.

use std::time::Instant;

use serde_json::Value;
use strided_perm::copy_into;
use strided_perm_view::{StridedView, StridedViewMut, row_major_strides};
use t4a_tensor::Tensor;
use t4a_tensor::copy::to_contiguous;
use t4a_tensor::loops::parallel;
use threadteam::{Exec, Pool};

struct Pattern {
    name: String,
    /// Shape of the contiguous operand, and its permutation of axes.
    shape: Vec<usize>,
    axes: Vec<usize>,
}

fn pattern(name: &str, shape: &[usize], axes: &[usize]) -> Pattern {
    Pattern { name: name.into(), shape: shape.to_vec(), axes: axes.to_vec() }
}

fn own_patterns() -> Vec<Pattern> {
    let cyclic = |n: usize| (0..n).map(|i| (i + 1) % n).collect::<Vec<_>>();
    let reversed = |n: usize| (0..n).rev().collect::<Vec<_>>();
    // The last axes move to the front, as in a late step of a spin network.
    let scattered: Vec<usize> = [0, 1].into_iter().chain([22, 23]).chain(2..22).collect();
    let shuffled: Vec<usize> = (0..24).map(|i| i * 7 % 24).collect();
    vec![
        pattern("24d of 2: identity", &[2; 24], &(0..24).collect::<Vec<_>>()),
        pattern("24d of 2: cyclic", &[2; 24], &cyclic(24)),
        pattern("24d of 2: reversed", &[2; 24], &reversed(24)),
        pattern("24d of 2: two axes to the front", &[2; 24], &scattered),
        pattern("24d of 2: every seventh", &[2; 24], &shuffled),
        pattern("15d of 3: cyclic", &[3; 15], &cyclic(15)),
        pattern("15d of 3: reversed", &[3; 15], &reversed(15)),
        pattern("6d rotation", &[16, 16, 32, 32, 32, 32], &[2, 4, 1, 3, 5, 0]),
        pattern("2d 2048 transpose", &[2048, 2048], &[1, 0]),
        pattern("2d 4000×1000 transpose", &[4000, 1000], &[1, 0]),
        pattern("3d 256: 2 0 1", &[256; 3], &[2, 0, 1]),
        pattern("3d 256: 0 2 1", &[256; 3], &[0, 2, 1]),
        pattern("3d 256: 2 1 0", &[256; 3], &[2, 1, 0]),
    ]
}

/// `out[i₀, …] = src[i_p0, …]` on column-major arrays: axis p(j) of the result is axis j of the
/// source, and row-major axes count from the other end.
fn read(json: &Value) -> Pattern {
    let list = |value: &Value| -> Vec<usize> {
        let list = value.as_array().expect("a list");
        list.iter().map(|n| n.as_u64().expect("a number") as usize).collect()
    };
    let (mut shape, perm) = (list(&json["shape"]), list(&json["perm"]));
    let n = shape.len();
    let mut axes = vec![0; n];
    perm.iter().enumerate().for_each(|(j, &p)| axes[n - 1 - p] = n - 1 - j);
    shape.reverse();
    if let Some(strides) = json["src_layout"].get("strides") {
        // A dense layout with permuted axes: the memory is a contiguous array.
        let strides: Vec<usize> = list(strides).into_iter().rev().collect();
        let mut memory: Vec<usize> = (0..n).collect();
        memory.sort_by_key(|&axis| std::cmp::Reverse(strides[axis]));
        let place = |axis: usize| memory.iter().position(|&m| m == axis).expect("an axis");
        axes = axes.iter().map(|&axis| place(axis)).collect();
        shape = memory.iter().map(|&axis| shape[axis]).collect();
    }
    Pattern { name: json["id"].as_str().expect("a name").into(), shape, axes }
}

fn patterns() -> Vec<Pattern> {
    let dir = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let Some(dir) = dir.or(std::env::var("T4A_EINSUM_DIR").ok()) else { return own_patterns() };
    let file = std::path::Path::new(&dir).join("permutation_patterns.json");
    let text = std::fs::read_to_string(file).expect("permutation_patterns.json");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    json["patterns"].as_array().expect("patterns").iter().map(read).collect()
}

/// The best rate of several runs, in GB/s.
fn rate(bytes: usize, mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut best = f64::INFINITY;
    let mut runs = 0;
    while runs < 3 || (start.elapsed().as_secs_f64() < 0.3 && runs < 50) {
        let begin = Instant::now();
        run();
        best = best.min(begin.elapsed().as_secs_f64());
        runs += 1;
    }
    bytes as f64 / best * 1e-9
}

fn main() {
    let threads = parallel::threads();
    let pool = Pool::builder().threads(threads).build().expect("threads");
    println!("f64, GB/s read plus written; one thread, then {threads}");
    println!(
        "{:<44} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "pattern", "one", "all", "peer 1", "peer", "memcpy", "ratio 1"
    );
    for Pattern { name, shape, axes } in patterns() {
        let x = Tensor::from_fn(&shape, |i| i as f64).expect("memory");
        let view = x.permute(&axes).expect("a permutation");
        let data = x.as_slice().expect("a contiguous operand");
        let source = StridedView::<f64>::new(data, view.shape(), view.layout().strides(), 0);
        let source = source.expect("a view");
        let strides = row_major_strides(view.shape());
        let mut out = vec![0.0; x.numel()];
        let mut peer = |exec: Exec<'_>| {
            let dst = StridedViewMut::new(&mut out, view.shape(), &strides, 0);
            copy_into(&mut dst.expect("a view"), &source, exec).expect("a copy");
        };
        peer(Exec::serial());
        let bytes = 2 * std::mem::size_of_val(data);
        let peer_one = rate(bytes, || peer(Exec::serial()));
        let peer_all = rate(bytes, || peer(Exec::new(&pool, threads).expect("threads")));
        parallel::set_threads(threads);
        let copied = to_contiguous(&view).expect("memory");
        assert_eq!(copied.as_slice().expect("a contiguous result"), out, "{name}");
        let memcpy = rate(bytes, || out.copy_from_slice(std::hint::black_box(data)));
        let copy = || drop(std::hint::black_box(to_contiguous(&view)));
        let all = rate(bytes, copy);
        parallel::set_threads(1);
        let one = rate(bytes, copy);
        println!(
            "{name:<44} {one:>7.2} {all:>7.2} {peer_one:>7.2} {peer_all:>7.2} {memcpy:>7.2} {:>7.2}",
            one / peer_one
        );
    }
}
