//! Operations beyond Burn's: factorisations in double precision, the log-partition function of a chain, a tensor
//! network, and a tropical product.
//!
//! Flex and NdArray have no factorisations: theirs would be the engine's, through host data.

use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::einsum::{Einsum, Operand, einsum};
use burn_t4a::ext::linalg;
use burn_t4a::ext::operation::Operations;
use burn_t4a::models::LinearChain;
use t4a_algebra::MaxPlus;
use t4a_algebra::gemm::{MatMut, MatRef, Parallelism, Product};
use t4a_einsum::clear_plans;
use tropical_gemm::{TropicalMaxPlus, tropical_matmul_with_argmax};

use crate::rows::{Row, floats, row};

/// Fixed matrices in double precision; those of [`floats`] itself are nearly singular.
fn matrices<B: Backend>(count: usize, n: usize, device: &B::Device) -> Tensor<B, 3> {
    let x = floats::<B, 3>([count, n, n], device).cast(DType::F64);
    (x.clone() * x).mul_scalar(1e4).sin()
}

/// Results are compared where they are unique: R up to signs, packed L and U, singular values, eigenvalues.
pub(crate) fn factorisations(rows: &mut Vec<Row>) {
    for (count, n) in [(64, 8), (1, 64), (1, 256)] {
        let name = |op: &str| match count {
            1 => format!("{op} f64 {n}²"),
            _ => format!("{op} f64 {n}², batch {count}"),
        };
        row!(alone rows, name("qr"), 1e-9, |d| {
            let a = matrices::<B>(count, n, &d);
            move || linalg::qr(a.clone()).expect("finite").r
        });
        row!(alone rows, name("lu"), 1e-9, |d| {
            let a = matrices::<B>(count, n, &d);
            move || linalg::lu_factor(a.clone()).expect("finite").packed
        });
        row!(alone rows, name("svd"), 1e-9, |d| {
            let a = matrices::<B>(count, n, &d);
            move || linalg::svd(a.clone()).expect("finite").s
        });
        row!(alone rows, name("eigh"), 1e-9, |d| {
            let a = matrices::<B>(count, n, &d);
            let a = a.clone() + a.swap_dims(1, 2);
            move || linalg::eigh(a.clone()).expect("finite").values
        });
    }
}

pub(crate) fn chains(rows: &mut Vec<Row>) {
    row!(flex rows, "ln Z of chains 32×128, 64 tags", 1e-4, |d| {
        let (x, w) = (floats::<B, 3>([32, 128, 64], &d), floats::<B, 2>([64, 64], &d));
        move || {
            let chain = LinearChain::new(x.clone(), w.clone(), None).expect("shapes of a chain");
            chain.log_partition().expect("contractions")
        }
    });
}

/// The network `str_nw_mera_open_26` of the einsum benchmark (Blacher et al., 2024): 26 tensors, a result of 9 axes.
const MERA: &str = "ab,acg,bdh,cek,dft,ewP,fJQ,ghij,ilo,jps,klmn,mxy,nqzA,opqr,ruBC,stuv,vDE,wxK,yzL,ABM,CDN,EFO,FG,GHR,HI,IJS->PQKLMNORS";

/// Sizes of the labels A to S and a to z.
const SIZES: [[usize; 26]; 2] = [
    [56, 7, 48, 4, 11, 20, 5, 6, 25, 79, 9, 9, 9, 9, 9, 3, 3, 9, 9, 0, 0, 0, 0, 0, 0, 0],
    [13, 9, 5, 27, 17, 10, 46, 7, 15, 25, 19, 6, 68, 22, 26, 24, 22, 7, 9, 68, 8, 6, 17, 5, 7, 11],
];

/// Shapes of the 26 tensors.
fn mera_shapes() -> Vec<Vec<usize>> {
    let (operands, _) = MERA.split_once("->").expect("an output");
    let size = |label: u8| match label {
        b'a'..=b'z' => SIZES[1][usize::from(label - b'a')],
        _ => SIZES[0][usize::from(label - b'A')],
    };
    operands.split(',').map(|labels| labels.bytes().map(size).collect()).collect()
}

/// An operand of the network in double precision, scaled so that elements of the result are of order 1.
fn operand<B: Operations, const D: usize>(shape: &[usize], device: &B::Device) -> Operand<B> {
    let shape: [usize; D] = shape.try_into().expect("the rank");
    let scale = (shape.iter().product::<usize>() as f64).powf(-0.25);
    floats::<B, D>(shape, device).cast(DType::F64).mul_scalar(scale).into()
}

pub(crate) fn networks(rows: &mut Vec<Row>) {
    row!(alone rows, "einsum f64 MERA of 26 tensors", 1e-9, |d| {
        let operands: Vec<Operand<B>> = mera_shapes()
            .iter()
            .map(|shape| match shape.len() {
                2 => operand::<B, 2>(shape, &d),
                3 => operand::<B, 3>(shape, &d),
                _ => operand::<B, 4>(shape, &d),
            })
            .collect();
        move || einsum::<B, 9>(MERA, operands.clone()).expect("a contraction")
    });
    // The result is the number of multiply-adds.
    row!(alone rows, "plan of MERA of 26 tensors", 0.0, |d| {
        let shapes = mera_shapes();
        move || {
            clear_plans();
            let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
            let plan = Einsum::new(MERA).and_then(|einsum| einsum.plan(&shapes, 8)).expect("a plan");
            Tensor::<B, 1>::from_data(TensorData::from([plan.cost().flops]), (&d, DType::F64))
        }
    });
}

/// Positions of the maxima of a tropical product.
struct Positions(Vec<u32>);

impl Positions {
    fn into_data(self) -> TensorData {
        let len = self.0.len();
        TensorData::new(self.0, [len])
    }
}

pub(crate) fn tropical(rows: &mut Vec<Row>) {
    const N: usize = 512;
    let operands =
        || [7919, 104_729].map(|p| (0..N * N).map(|i| (i * p % 1009) as f32).collect::<Vec<_>>());
    row!(against rows, "max-plus with argmax 512, tropical-gemm", 0.0, burn_t4a::BurnT4a, |_d| {
        let [a, b] = operands();
        move || {
            let (mut c, mut arg) = (vec![0.0f32; N * N], vec![0u32; N * N]);
            let (a, b) = (MatRef::row_major(&a, N, N), MatRef::row_major(&b, N, N));
            let c = MatMut::row_major(&mut c, N, N).expect("a square");
            let positions = MatMut::row_major(&mut arg, N, N).expect("a square");
            Product::new(a.expect("a square"), b.expect("a square"), c)
                .expect("equal sizes")
                .parallelism(Parallelism::Threads(0))
                .argmax(positions, 0)
                .expect("equal sizes")
                .run_argmax::<MaxPlus>();
            Positions(arg)
        }
    }, {
        let [a, b] = operands();
        move || Positions(tropical_matmul_with_argmax::<TropicalMaxPlus<f32>>(&a, N, N, &b, N).argmax)
    });
}
