//! Random programs over matrices with named sizes, recorded at some sizes and called at others: bitwise equal to the
//! function that is not compiled, or to the first call where results depend on layouts.

use burn::tensor::DType;
use burn_t4a::BurnT4a;
use burn_t4a_transforms::compile::{CompileError, Traced, compile};

use t4a_fuzz::input::Input;

use crate::matrix_programs::{Matrix, Mode, bits, function, noise};

type B = BurnT4a;

const SIZES: [usize; 8] = [1, 2, 3, 4, 5, 8, 17, 33];

/// Runs one case.
fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mode = input.pick(&[Mode::RowMajor, Mode::Any, Mode::Reverse]);
    let fused = !input.once_in(4);
    let dtype = input.pick(&[DType::F32, DType::F64]);
    let form = input.below(3);
    let sizes = [(); 3].map(|()| [input.pick(&SIZES), input.pick(&SIZES)]);
    let text = bytes.get(10..).unwrap_or_default().to_vec();
    let of = text.clone();
    let record = move |(x, y): (Matrix<Traced<B>>, Matrix<Traced<B>>)| function(&of, mode, [x, y]);
    let compiled = compile(record).fullgraph().fused(fused);
    let compiled = compiled.dynamic(0, 0, "rows").dynamic(0, 1, "columns");
    // The second matrix has both named sizes, or is a row or a column.
    let compiled = if form == 1 { compiled } else { compiled.dynamic(1, 0, "rows") };
    let compiled = if form == 2 { compiled } else { compiled.dynamic(1, 1, "columns") };
    let mut seen = Vec::new();
    let mut firsts: Vec<Vec<Matrix<B>>> = Vec::new();
    // The first call records, the second one interprets small groups, the third one is machine code.
    for (call, [n, m]) in sizes.into_iter().chain(sizes).chain(sizes).enumerate() {
        let seed = call % sizes.len();
        let other = [[n, m], [1, m], [n, 1]][form];
        let [x, y] = [noise([n, m], seed, dtype), noise(other, seed + 7, dtype)];
        let want = match firsts.get(seed) {
            Some(first) if mode != Mode::RowMajor => first.clone(),
            _ => function(&text, mode, [x.clone(), y.clone()]),
        };
        let got = compiled.call((x.clone(), y)).expect("programs can be recorded");
        firsts.push(got.clone());
        assert_eq!(got.len(), want.len());
        for (k, (got, want)) in got.iter().zip(&want).enumerate() {
            let explained = || format!("{k} of {n} × {m}, {dtype:?}\n{}", compiled.explain());
            if mode != Mode::RowMajor && call < sizes.len() {
                assert_eq!(got.dims(), want.dims(), "{}", explained());
            } else {
                assert_eq!(bits(got), bits(want), "{}", explained());
            }
        }
        if !seen.contains(&[n, m]) {
            seen.push([n, m]);
        }
        // A row has a named size in the second axis, a column in the first.
        let wrong =
            noise([other[0] + usize::from(form != 1), other[1] + usize::from(form != 2)], 0, dtype);
        let wrong = compiled.call((x, wrong));
        assert!(matches!(wrong, Err(CompileError::Sizes { .. })));
    }
    // One recording per size.
    assert_eq!(compiled.counters().traces, seen.len());
}

#[test]
fn named_sizes_are_the_function_at_every_size() {
    bolero::check!().with_max_len(120).for_each(|bytes: &[u8]| run(bytes));
}
