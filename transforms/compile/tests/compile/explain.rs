//! Cost of every instruction, and the drawing of a program.

use burn::tensor::{Distribution, Tensor};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{Traced, compile};

type B = BurnT4a;
type T = Traced<B>;

fn random<const D: usize>(shape: [usize; D]) -> Tensor<B, D> {
    Tensor::random(shape, Distribution::Default, &T4aDevice)
}

#[test]
fn bytes_and_operations_of_every_instruction_are_stated() {
    let f = |(x, w): (Tensor<T, 2>, Tensor<T, 2>)| {
        let y = x.matmul(w);
        (y.clone() * 2.0 + 1.0).tanh() * y
    };
    let f = compile(f).fullgraph();
    assert!(f.svg().is_none());
    f.call((random([8, 16]), random([16, 32]))).unwrap();
    let text = f.explain();
    let lines: Vec<&str> = text.lines().collect();
    let product = lines.iter().find(|line| line.contains("= float_matmul")).unwrap();
    // (8·16 + 16·32) · 4, 8·32·4; 2 · 8·32·16.
    assert!(product.ends_with("reads 2.56 kB, writes 1.02 kB, 8.19 kop"), "{text}");
    let fused = lines.iter().find(|line| line.contains("= fused[")).unwrap();
    assert!(fused.ends_with("reads 1.02 kB, writes 1.02 kB, 1.02 kop"), "{text}");
    // At the product: both operands and its result.
    let want = "all: reads 3.58 kB, writes 2.05 kB, 9.22 kop; 2 buffers, at most 3.58 kB at once";
    assert!(lines.contains(&want), "{text}");
}

#[test]
fn a_program_is_drawn_from_inputs_to_outputs() {
    let f = |(x, y): (Tensor<T, 2>, Tensor<T, 2>)| {
        let z = x.clone().matmul(y.clone());
        (z.clone().sort(1), x.clone().exp() * x.sin(), z.matmul(y))
    };
    let f = compile(f).fullgraph();
    f.call((random([4, 4]), random([4, 4]))).unwrap();
    let text = f.svg().unwrap();
    assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    let count = |part: &str| text.matches(part).count();
    assert_eq!(count("class=\"input\""), 2, "{text}");
    assert_eq!(count("class=\"output\""), 3);
    assert_eq!(count("class=\"product\""), 2);
    assert_eq!(count("class=\"fused\""), 1);
    // Two operands of each product, one of the sort and of the fused group, one of each output.
    assert_eq!(count("<path "), 2 + 2 + 1 + 1 + 3);
    // Every edge leads downwards.
    for path in text.lines().filter(|line| line.starts_with("<path ")) {
        let numbers: Vec<f64> = path
            .split(|c: char| !c.is_ascii_digit() && c != '.' && c != '-')
            .filter_map(|part| part.parse().ok())
            .collect();
        assert!(numbers[1] < numbers[numbers.len() - 1], "{path}");
    }
    // Boxes of one layer do not overlap.
    let place = |line: &str, name: &str| -> Option<f64> {
        line.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
    };
    let boxes: Vec<(f64, f64)> = text
        .lines()
        .filter_map(|line| {
            let rect = &line[line.find("<rect")?..];
            Some((place(rect, "x")?, place(rect, "y")?))
        })
        .collect();
    assert_eq!(boxes.len(), 2 + 4 + 3);
    for (i, a) in boxes.iter().enumerate() {
        for b in &boxes[..i] {
            assert!(a.1 != b.1 || (a.0 - b.0).abs() >= 190.0, "{a:?} and {b:?}");
        }
    }
}
