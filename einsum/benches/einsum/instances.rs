//! Instances: from JSON files, or generated from the same families.

use std::path::Path as FilePath;

use serde_json::Value;
use t4a_einsum::{Einsum, Path, Subscripts};

pub(crate) struct Instance {
    pub(crate) name: String,
    pub(crate) einsum: Einsum,
    pub(crate) shapes: Vec<Vec<usize>>,
    pub(crate) path: Option<Path>,
}

/// All instances of a directory, or the generated ones.
pub(crate) fn instances(dir: Option<&FilePath>) -> Vec<Instance> {
    let Some(dir) = dir else { return families() };
    let files = std::fs::read_dir(dir).expect("a directory of instances");
    let mut files: Vec<_> = files.filter_map(|f| Some(f.ok()?.path())).collect();
    files.sort();
    let json = |f: &_| serde_json::from_str(&std::fs::read_to_string(f).ok()?).ok();
    let jsons = files.iter().filter_map(json);
    // Files of another kind, such as lists of permutations, have no shapes.
    jsons.filter(|json: &Value| json.get("shapes").is_some()).map(|json| read(&json)).collect()
}

fn sizes(value: &Value) -> Vec<usize> {
    let list = value.as_array().expect("a list of sizes");
    list.iter().map(|n| n.as_u64().expect("a size") as usize).collect()
}

fn read(json: &Value) -> Instance {
    let name = json["name"].as_str().expect("a name").to_string();
    let subscripts = json.get("format_string_rowmajor").or(json.get("format_string"));
    let subscripts = subscripts.and_then(Value::as_str).expect("subscripts");
    let shapes = json["shapes"].as_array().expect("shapes").iter().map(sizes).collect();
    let steps = json["paths"]["opt_flops"]["path"].as_array();
    let path = steps.map(|steps| Path::new(steps.iter().map(sizes).collect()));
    let einsum = Einsum::new(subscripts).unwrap_or_else(|error| panic!("{name}: {error}"));
    Instance { name, einsum, shapes, path }
}

fn instance(name: String, inputs: &[(Vec<usize>, Vec<usize>)], output: Vec<usize>) -> Instance {
    let labels = inputs.iter().map(|(labels, _)| labels.clone());
    let einsum = Subscripts::new(labels, output).into();
    let shapes = inputs.iter().map(|(_, shape)| shape.clone()).collect();
    Instance { name, einsum, shapes, path: None }
}

fn text(name: &str, subscripts: &str, shapes: &[&[usize]]) -> Instance {
    let einsum = Einsum::new(subscripts).expect("subscripts of the bench");
    let shapes = shapes.iter().map(|s| s.to_vec()).collect();
    Instance { name: name.into(), einsum, shapes, path: None }
}

/// ⟨ψ|φ⟩ of two matrix product states with physical dimensions that vary.
fn mps_inner_product(sites: usize, bond: usize) -> Instance {
    let size = |i: usize| if i == 0 || i == sites { 1 } else { bond };
    let mut inputs = Vec::new();
    for i in 0..sites {
        for layer in 0..2 {
            let bond = |i: usize| 3 * i + layer;
            let shape = vec![20 + i * 37 % 100, size(i), size(i + 1)];
            inputs.push((vec![3 * i + 2, bond(i), bond(i + 1)], shape));
        }
    }
    instance(format!("mps_inner_product_{sites}"), &inputs, vec![])
}

fn matrix_chain(length: usize) -> Instance {
    let size = |i: usize| 20 + (i * 97) % 480;
    let chain: Vec<_> = (0..length).map(|i| (vec![i, i + 1], vec![size(i), size(i + 1)])).collect();
    instance(format!("matrix_chain_{length}"), &chain, vec![0, length])
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
    instance(format!("random_3_regular_{tensors}"), &inputs, vec![])
}

/// Spins on a ring of triangles as hyperedges: every variable in six factors.
fn factor_graph(variables: usize) -> Instance {
    let factor = |i: usize| {
        let labels = vec![i, (i + 1) % variables, (i * 7 + 3) % variables];
        (labels, vec![2; 3])
    };
    let distinct = |f: &(Vec<usize>, Vec<usize>)| f.0[0] != f.0[2] && f.0[1] != f.0[2];
    let factors: Vec<_> = (0..variables).map(factor).filter(distinct).collect();
    instance(format!("factor_graph_{variables}"), &factors, vec![0])
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
        text("batched_matmul_innermost", "ijb,jkb->ikb", &[&[8, 8, 4096], &[8, 8, 4096]]),
        text("outer_product_2048", "i,j->ij", &[&[2048], &[2048]]),
        text("batched_outer_product", "tjk,to->tokj", &[&[64, 16, 16], &[64, 64]]),
        text("elementwise_1024", "ij,ij->ij", &[&[1024, 1024], &[1024, 1024]]),
        text("row_sums_1024", "ij->i", &[&[1024, 1024]]),
        matrix_chain(100),
        mps_inner_product(100, 19),
        mera_cone(6),
        random_regular(40),
        factor_graph(60),
    ]
}
