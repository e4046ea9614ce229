//! Vector code of ten elementwise operations against the same loop written by hand, checked first.
//!
//! ```text
//! cargo bench -p t4a-jit --bench vectors
//! ```

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::hint::black_box;
    use std::time::Instant;

    use t4a_jit::{
        BinaryInst, VectorCode, VectorElement, VectorId, VectorInst, VectorIsa, VectorProgram,
    };

    /// Minimum time of a call in µs, over half a second of calls.
    fn time(mut f: impl FnMut()) -> f64 {
        f();
        let (begin, mut best) = (Instant::now(), f64::INFINITY);
        while begin.elapsed().as_secs_f64() < 0.5 {
            let one = Instant::now();
            f();
            best = best.min(one.elapsed().as_secs_f64());
        }
        best * 1e6
    }

    #[inline(always)]
    fn ten(x: &[f32], y: &[f32], out: &mut [f32]) {
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            let a = (x * 2.0 + y) * x;
            let b = (a - y).abs() + 1.0;
            *out = (x * b) / (b + y) * 0.5;
        }
    }

    #[target_feature(enable = "avx2")]
    fn ten_256(x: &[f32], y: &[f32], out: &mut [f32]) {
        ten(x, y, out);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn ten_512(x: &[f32], y: &[f32], out: &mut [f32]) {
        ten(x, y, out);
    }

    fn program() -> VectorProgram {
        let mut program = VectorProgram::new(VectorElement::F32);
        let [px, py, out] = [(); 3].map(|()| program.operand());
        let [x, y] = [px, py].map(|operand| program.push(VectorInst::Load(operand)));
        let [two, one, half, positive] = [2_f32, 1.0, 0.5, f32::from_bits(u32::MAX >> 1)]
            .map(|c| program.push(VectorInst::Constant(c.to_bits().into())));
        let mut of = |f, a: VectorId, b: VectorId| program.push(VectorInst::Binary(f, [a, b]));
        let double = of(BinaryInst::Mul, x, two);
        let sum = of(BinaryInst::Add, double, y);
        let a = of(BinaryInst::Mul, sum, x);
        let difference = of(BinaryInst::Sub, a, y);
        let size = of(BinaryInst::And, difference, positive);
        let b = of(BinaryInst::Add, size, one);
        let product = of(BinaryInst::Mul, x, b);
        let divisor = of(BinaryInst::Add, b, y);
        let quotient = of(BinaryInst::Div, product, divisor);
        let result = of(BinaryInst::Mul, quotient, half);
        program.push(VectorInst::Store(out, result));
        program
    }

    pub(super) fn rows() {
        println!("{:<24} {:>10} {:>10} {:>12}", "µs", "by hand", "generated", "generation");
        for n in [1 << 12, 1 << 20] {
            let x: Vec<f32> = (0..n).map(|i| (i as f32 * 0.37).sin()).collect();
            let y: Vec<f32> = (0..n).map(|i| (i as f32 * 0.11).cos() + 2.0).collect();
            let (mut out, mut want) = (vec![0_f32; n], vec![0_f32; n]);
            let sum = time(|| {
                want.iter_mut().zip(&x).zip(&y).for_each(|((out, x), y)| *out = x + y);
                black_box(&mut want);
            });
            println!("{:<24} {sum:>10.1}", format!("x + y, {n}"));
            for isa in [VectorIsa::Avx2, VectorIsa::Avx512] {
                let begin = Instant::now();
                // Machines without the instruction set have no code for it.
                let Ok(code) = VectorCode::new(&program(), isa) else { continue };
                let generation = begin.elapsed().as_secs_f64() * 1e6;
                // SAFETY: the generator has found the features of this instruction set.
                let by_hand = time(|| unsafe {
                    match isa {
                        VectorIsa::Avx2 => ten_256(&x, &y, &mut want),
                        VectorIsa::Avx512 => ten_512(&x, &y, &mut want),
                    }
                    black_box(&mut want);
                });
                let operands = [
                    x.as_ptr().cast_mut().cast(),
                    y.as_ptr().cast_mut().cast(),
                    out.as_mut_ptr().cast(),
                ];
                // SAFETY: three arrays of `n` numbers; the one that is written overlaps no other.
                let generated = time(|| unsafe { code.run(&operands, n) });
                assert!(out.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits()));
                let name = format!("ten, {n}, {isa:?}");
                println!("{name:<24} {by_hand:>10.1} {generated:>10.1} {generation:>12.1}");
            }
        }
    }
}

fn main() {
    #[cfg(target_arch = "x86_64")]
    x86::rows();
}
