//! The critical transverse Ising chain without ends, by VUMPS. The energy per site is −4/π (Pfeuty 1970). At a critical
//! point a bond dimension D limits the correlation length ξ of the state, and the entropy of a cut is `c/6 ln ξ` plus a
//! constant (Tagliacozzo, de Oliveira, Iblisdir, Latorre 2008): its slope is the central charge c = ½. The state of one
//! D is the start of the next. The picture has the entropy over ln ξ.
//!
//! `cargo run --release --example vumps`

use std::ops::ControlFlow;

use burn_t4a::ext::networks::sector::{U1, Z2};
use burn_t4a::ext::networks::sites::{Sites, spin_half};
use burn_t4a::ext::networks::{Sum, UniformMps, Vumps, VumpsOptions};
use indicatif::ProgressBar;

#[path = "picture/lines.rs"]
mod picture;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The parity of down spins, on a cell of one site.
    let parity = |q: U1| Z2::new((1 - i64::from(q.0)) / 2);
    let sites = Sites::uniform(spin_half().conserve(parity)?, 1);
    let mut h = Sum::new(&sites);
    h.add(-1.0, [("X", 0), ("X", 1)]).add(-1.0, [("Z", 0)]);
    let h = h.infinite_mpo()?;
    let mut state = UniformMps::product(&sites, ["Up"])?;
    let (mut rows, bar) = (Vec::new(), ProgressBar::new_spinner());
    println!(" D  steps          energy     error   gradient       ξ   entropy");
    for dim in [4, 6, 8, 12, 16] {
        let options = VumpsOptions::new().max_dim(dim).tolerance(1e-6);
        let mut search = Vumps::new(&h, state, options)?;
        let last = search.run(|step| {
            bar.set_message(format!("D = {dim}, gradient {:.1e}", step.gradient));
            bar.tick();
            Ok(ControlFlow::Continue(()))
        })?;
        state = search.into_state();
        // Correlations of XX, which change the parity at a site.
        let (length, entropy) = (state.correlation_length(Z2::new(1))?, state.entropy(0)?);
        let error = last.energy + 4.0 / std::f64::consts::PI;
        bar.suspend(|| {
            println!(
                "{dim:>2} {:>6} {:>15.12} {error:>9.1e} {:>10.1e} {length:>7.1} {entropy:>9.5}",
                last.step, last.energy, last.gradient
            );
        });
        // An upper bound, up to the accuracy of the environments.
        assert!(error > -1e-10);
        rows.push((error, length.ln(), entropy));
    }
    bar.finish_and_clear();
    // The slope of the entropy by least squares.
    let n = rows.len() as f64;
    let mean = |f: &dyn Fn(&(f64, f64, f64)) -> f64| rows.iter().map(f).sum::<f64>() / n;
    let (x, y) = (mean(&|row| row.1), mean(&|row| row.2));
    let slope = mean(&|row| (row.1 - x) * (row.2 - y)) / mean(&|row| (row.1 - x).powi(2));
    println!("central charge {:.3}", 6.0 * slope);
    assert!(rows.last().is_some_and(|row| row.0 < 1e-5));
    assert!((6.0 * slope - 0.5).abs() < 0.03, "{slope}");
    picture::lines("vumps", "ln ξ", &[rows.iter().map(|row| (row.1, row.2)).collect()])
}
