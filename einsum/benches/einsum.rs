//! Einsum instances: time with the given path and with our own, one and all threads.
//!
//! `cargo bench -p t4a-einsum --bench einsum -- DIR` (or `T4A_EINSUM_DIR=DIR`) runs every JSON
//! file of a directory with the fields `format_string`, `shapes` and `paths.opt_flops.path`.
//! Without one, instances of the same families are generated. Before the clock starts, both paths
//! must agree.

use std::time::Instant;

use serde_json::Value;
use t4a_algebra::Standard;
use t4a_einsum::{Einsum, Path, Plan, Subscripts};
use t4a_tensor::{Tensor, loops::parallel};

struct Instance {
    name: String,
    einsum: Einsum,
    shapes: Vec<Vec<usize>>,
    path: Option<Path>,
}

fn sizes(value: &Value) -> Option<Vec<usize>> {
    value.as_array()?.iter().map(|n| Some(n.as_u64()? as usize)).collect()
}

fn load(text: &str) -> Option<Instance> {
    let json: Value = serde_json::from_str(text).ok()?;
    let subscripts = json.get("format_string_rowmajor").or(json.get("format_string"))?.as_str()?;
    let shapes = json["shapes"].as_array()?.iter().map(sizes).collect::<Option<_>>()?;
    let steps = json["paths"]["opt_flops"]["path"].as_array();
    let path = steps.and_then(|p| p.iter().map(sizes).collect::<Option<Vec<_>>>()).map(Path::new);
    let name = json["name"].as_str()?.to_string();
    Some(Instance { name, einsum: Einsum::new(subscripts).ok()?, shapes, path })
}

fn instance(name: &str, inputs: &[(Vec<usize>, Vec<usize>)], output: Vec<usize>) -> Instance {
    let labels = inputs.iter().map(|(labels, _)| labels.clone());
    let einsum = Subscripts::new(labels, output).into();
    let shapes = inputs.iter().map(|(_, shape)| shape.clone()).collect();
    Instance { name: name.into(), einsum, shapes, path: None }
}

fn text(name: &str, subscripts: &str, shapes: &[&[usize]]) -> Instance {
    let einsum = Einsum::new(subscripts).expect("subscripts of the bench");
    let shapes = shapes.iter().map(|s| s.to_vec()).collect();
    Instance { name: name.into(), einsum, shapes, path: None }
}

/// ⟨ψ|φ⟩ of two matrix product states with bonds that grow towards the middle.
fn mps_inner_product(sites: usize, bond: usize) -> Instance {
    let size = |i: usize| if i == 0 || i == sites { 1 } else { (bond / 2) + (i * 7 % (bond / 2)) };
    let mut inputs = Vec::new();
    for i in 0..sites {
        for layer in 0..2 {
            let bond = |i: usize| 3 * i + layer;
            inputs.push((vec![bond(i), 3 * i + 2, bond(i + 1)], vec![size(i), 2, size(i + 1)]));
        }
    }
    instance(&format!("mps_inner_product_{sites}"), &inputs, vec![])
}

fn matrix_chain(length: usize) -> Instance {
    let size = |i: usize| 20 + (i * 37) % 180;
    let chain: Vec<_> = (0..length).map(|i| (vec![i, i + 1], vec![size(i), size(i + 1)])).collect();
    instance(&format!("matrix_chain_{length}"), &chain, vec![0, length])
}

/// A random graph in which every tensor has three bonds of size 2.
fn random_regular(tensors: usize) -> Instance {
    let mut stubs: Vec<usize> = (0..3 * tensors).map(|i| i / 3).collect();
    let mut state = 12345u64;
    for i in (1..stubs.len()).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        stubs.swap(i, (state >> 33) as usize % (i + 1));
    }
    let mut inputs = vec![(Vec::new(), vec![2; 3]); tensors];
    for (bond, pair) in stubs.chunks(2).enumerate() {
        pair.iter().for_each(|&tensor| inputs[tensor].0.push(bond));
    }
    instance(&format!("random_3_regular_{tensors}"), &inputs, vec![])
}

/// A causal cone of a binary MERA layer on a three-site operator.
fn mera_cone(d: usize) -> Instance {
    let s4 = &[d; 4][..];
    let s3 = &[d; 3][..];
    let shapes = [s3, s3, s4, s4, &[d; 6][..], s4, s4, s3, s3];
    text("mera_layer", "abp,cdq,bcef,ghij,efgklm,klno,mrij,pns,qrt->adohst", &shapes)
}

fn families() -> Vec<Instance> {
    vec![
        text("matmul_256", "ij,jk->ik", &[&[256, 256], &[256, 256]]),
        text("batched_matmul_b32_64", "bij,bjk->bik", &[&[32, 64, 64], &[32, 64, 64]]),
        text("outer_product_2048", "i,j->ij", &[&[2048], &[2048]]),
        text("elementwise_1024", "ij,ij->ij", &[&[1024, 1024], &[1024, 1024]]),
        matrix_chain(100),
        mps_inner_product(60, 32),
        mera_cone(6),
        random_regular(40),
    ]
}

fn instances() -> Vec<Instance> {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let Some(dir) = args.first().cloned().or(std::env::var("T4A_EINSUM_DIR").ok()) else {
        return families();
    };
    let files = std::fs::read_dir(&dir).expect("a directory of instances");
    let mut files: Vec<_> = files.filter_map(|f| Some(f.ok()?.path())).collect();
    files.sort();
    files.iter().filter_map(|f| load(&std::fs::read_to_string(f).ok()?)).collect()
}

/// Median of the runs that fit into about a third of a second, at least three, in milliseconds.
fn time(plan: &Plan, operands: &[&Tensor<f64>]) -> f64 {
    let start = Instant::now();
    let mut runs = Vec::new();
    while runs.len() < 3 || (start.elapsed().as_secs_f64() < 0.3 && runs.len() < 1000) {
        let begin = Instant::now();
        std::hint::black_box(plan.contract::<Standard, f64>(operands).expect("a contraction"));
        runs.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

fn main() {
    println!("threads {}", parallel::threads());
    println!(
        "{:<52} {:>10} {:>9} {:>10} {:>9} {:>9}",
        "instance", "given ms", "GFLOP/s", "own ms", "GFLOP/s", "plan ms"
    );
    for Instance { name, einsum, shapes, path } in instances() {
        let data: Vec<Tensor<f64>> = shapes
            .iter()
            .enumerate()
            .map(|(s, shape)| {
                // Sums over whole networks stay near 1.
                let scale = 2.0 / (shape.iter().product::<usize>() as f64).sqrt();
                let value = |i| (0.5 + ((i * 7919 + s * 31) % 101) as f64 / 101.0) * scale;
                Tensor::from_fn(shape, value).expect("memory")
            })
            .collect();
        let operands: Vec<&Tensor<f64>> = data.iter().collect();
        let views: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let begin = Instant::now();
        let own = einsum.plan(&views, 8).expect("a plan");
        let planning = begin.elapsed().as_secs_f64() * 1e3;
        let given = path.map(|path| einsum.clone().path(path).plan(&views, 8).expect("a plan"));
        if let Some(given) = &given {
            let values = |plan: &Plan| {
                plan.contract::<Standard, f64>(&operands)
                    .expect("a contraction")
                    .to_vec()
                    .expect("memory")
            };
            let (a, b) = (values(given), values(&own));
            let most = b.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
            let off = a.iter().zip(&b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            assert!(off <= 1e-9 * most, "{name}: paths differ by {off} of {most}");
        }
        let rate = |plan: &Plan, ms: f64| 2e-6 * plan.cost().flops / ms;
        let (given_ms, given_rate) = given.map_or((f64::NAN, f64::NAN), |plan| {
            let ms = time(&plan, &operands);
            (ms, rate(&plan, ms))
        });
        let own_ms = time(&own, &operands);
        let own_rate = rate(&own, own_ms);
        println!(
            "{name:<52} {given_ms:>10.3} {given_rate:>9.2} {own_ms:>10.3} {own_rate:>9.2} {planning:>9.3}"
        );
    }
}
