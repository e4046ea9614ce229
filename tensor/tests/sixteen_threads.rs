//! Partition of every kind of loop for sixteen threads, planned on a machine with fewer: the number of chunks per
//! thread is balanced to a tenth, and results do not depend on the number of threads.
//!
//! The number of threads is process-wide, so this is a separate test program with one test.

use t4a_algebra::parallel::{rehearse, set_threads};
use t4a_tensor::nn::attention::AttentionOptions;
use t4a_tensor::nn::conv::ConvOptions;
use t4a_tensor::nn::pool::PoolOptions;
use t4a_tensor::random::{Distribution, Generator};
use t4a_tensor::{AnyTensor, DType, Number, Result};

const THREADS: usize = 16;

fn random(shape: &[usize]) -> AnyTensor {
    let law = Distribution::Uniform(Number::Float(-1.0), Number::Float(1.0));
    AnyTensor::random(&Generator::new(1), shape, law, DType::F32).unwrap()
}

type Kind = (&'static str, Box<dyn Fn() -> Result<AnyTensor>>);

fn kinds() -> Vec<Kind> {
    fn kind(name: &'static str, f: impl Fn() -> Result<AnyTensor> + 'static) -> Kind {
        (name, Box::new(f))
    }
    let (x, y) = (random(&[1024, 1024]), random(&[1024, 1024]));
    let image = random(&[8, 32, 56, 56]);
    let dy = random(&[8, 64, 56, 56]);
    let (weight, thin) = (random(&[64, 32, 3, 3]), random(&[32, 1, 3, 3]));
    let heads = random(&[4, 8, 128, 64]);
    let mut options = ConvOptions::new(2).padded(&[1, 1]);
    let own = options.clone();
    options.groups = 32;
    let index = random(&[4096]).mul_scalar(Number::Float(1000.0)).unwrap().abs().unwrap();
    let index = index.cast(DType::I64).unwrap();
    let pool = PoolOptions::new([2, 2]);
    let odd = random(&[17, 200, 300]);
    vec![
        kind("add", {
            let (x, y) = (x.clone(), y.clone());
            move || x.clone().add(y.clone())
        }),
        kind("add transposed", {
            let (x, y) = (x.clone(), y.swap_axes(0, 1).unwrap());
            move || x.clone().add(y.clone())
        }),
        kind("add a row", {
            let (x, y) = (x.clone(), random(&[1, 1024]));
            move || x.clone().add(y.clone())
        }),
        kind("exp", {
            let x = x.clone();
            move || x.clone().exp()
        }),
        kind("copy transposed", {
            let x = x.swap_axes(0, 1).unwrap();
            move || x.to_contiguous()
        }),
        kind("sum", {
            let x = x.clone();
            move || x.sum(&[0, 1])
        }),
        kind("sum of rows", {
            let x = x.clone();
            move || x.sum(&[1])
        }),
        kind("sum of columns", {
            let x = x.clone();
            move || x.sum(&[0])
        }),
        kind("maximum of rows", {
            let x = x.clone();
            move || Ok(x.max_with_index(1)?.0)
        }),
        kind("softmax of rows", {
            let x = x.clone();
            move || x.softmax(1)
        }),
        kind("softmax of columns", {
            let x = x.clone();
            move || x.softmax(0)
        }),
        kind("layer norm", {
            let (x, gamma) = (x.clone(), random(&[1024]));
            move || x.layer_norm(&gamma, None, 1e-5)
        }),
        kind("cumulative sum", {
            let x = x.clone();
            move || x.cumsum(1)
        }),
        kind("cumulative sum of columns", {
            let x = x.clone();
            move || x.cumsum(0)
        }),
        kind("maximum of columns", {
            let x = x.clone();
            move || Ok(x.max_with_index(0)?.0)
        }),
        kind("sum of 17 × 1000 columns", {
            let x = random(&[17, 1000, 96]);
            move || x.sum(&[1])
        }),
        kind("sort", {
            let x = x.clone();
            move || x.clone().sort(1, false)
        }),
        kind("index select", {
            let x = x.clone();
            move || x.index_select(0, &index)
        }),
        kind("random", || {
            let law = Distribution::Normal(0.0, 1.0);
            AnyTensor::random(&Generator::new(7), &[1024, 1024], law, DType::F32)
        }),
        kind("matmul", {
            let (x, y) = (x.clone(), y.clone());
            move || x.matmul(&y)
        }),
        kind("batched matmul, 17 entries", {
            let y = random(&[17, 300, 300]);
            move || odd.matmul(&y)
        }),
        kind("convolution", {
            let (x, weight, own) = (image.clone(), weight.clone(), own.clone());
            move || x.conv(&weight, None, &own)
        }),
        kind("convolution: x", {
            let (weight, dy, own) = (weight.clone(), dy.clone(), own.clone());
            move || dy.conv_x(&[8, 32, 56, 56], &weight, &own)
        }),
        kind("convolution: weight", {
            let (x, own) = (image.clone(), own.clone());
            move || dy.conv_weight(&x, &[64, 32, 3, 3], &own)
        }),
        kind("depthwise convolution", {
            let x = image.clone();
            move || x.conv(&thin, None, &options)
        }),
        kind("max pool", {
            let x = image.clone();
            move || x.max_pool(&pool)
        }),
        kind("attention", {
            let heads = heads.clone();
            move || heads.attention(&heads, &heads, None, None, &AttentionOptions::default())
        }),
        kind("attention: vjp", move || {
            let (x, options) = (&heads, AttentionOptions::default());
            let ([dq, ..], _) = x.attention_vjp([x, x, x], None, None, &options, false)?;
            Ok(dq)
        }),
    ]
}

fn bytes(x: &AnyTensor) -> Vec<u32> {
    let x = x.to_contiguous().unwrap();
    x.typed::<f32>().unwrap().to_vec().unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
fn work_is_cut_evenly() {
    let mut wrong = Vec::new();
    for (name, f) in kinds() {
        set_threads(1);
        let one = bytes(&f().unwrap());
        let mut many = None;
        let rehearsal = rehearse(THREADS, || many = Some(f().unwrap()));
        assert_eq!(one, bytes(&many.unwrap()), "{name} depends on the number of threads");
        let cut: Vec<_> = rehearsal.loops.iter().map(|x| (x.chunks, x.threads)).collect();
        println!("{name:32} {cut:?}");
        if cut.is_empty() || rehearsal.loops.iter().any(|x| x.imbalance() > 0.1) {
            wrong.push((name, cut));
        }
    }
    assert!(wrong.is_empty(), "(chunks, threads) of loops: {wrong:#?}");
}
