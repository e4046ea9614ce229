//! Rows measured on request, for `benches/peers/table.py`, which measures its peers in between and compares results.
//!
//! ```text
//! request  NAME tab SECONDS
//! answer   seconds of BurnT4a, its drop-in functions and Flex (NaN if there is none), Σ yᵢ·wᵢ, Σ |yᵢ|,
//!          bytes read and written (0 if not known)
//! ```
//!
//! Times are minima over batches. The weights w are multiples of the golden ratio, modulo 2.

use std::io::BufRead;
use std::time::Instant;

use burn::tensor::TensorData;

use crate::distance;
use crate::rows::{Row, Run};

/// Duration of a batch in seconds: the clock then does not count.
const BATCH: f64 = 20e-6;

fn weight(i: usize) -> f64 {
    let word = (i as u32).wrapping_mul(2_654_435_761).wrapping_add(7 * 974_711);
    f64::from(word) / f64::from(1u32 << 31) - 1.0
}

/// Seconds of one of `calls` calls.
fn batch(run: &mut Run, calls: usize) -> f64 {
    let begin = Instant::now();
    for _ in 0..calls {
        run(false);
    }
    begin.elapsed().as_secs_f64() / calls as f64
}

/// BurnT4a, its drop-in functions, and Flex, ready to run, and the two sums of the results.
struct Ready {
    runs: [Option<(Run, usize)>; 3],
    sums: [f64; 2],
    bytes: usize,
}

impl Ready {
    fn new(row: &Row) -> Result<Self, String> {
        let make = [row.make[0].as_ref(), row.fused.as_ref(), row.make[1].as_ref()];
        let mut runs = make.map(|make| make.map(|make| make()));
        let results: Vec<Option<TensorData>> =
            runs.iter_mut().map(|run| run.as_mut().and_then(|run| run(true))).collect();
        let result = results[0].as_ref().ok_or("no result")?;
        for other in results[1..].iter().flatten() {
            let off = distance(result, other);
            if off.is_nan() || off > row.tolerance {
                return Err(format!("relative difference {off:e}"));
            }
        }
        let numbers = || result.iter::<f64>().enumerate();
        let sums = [
            numbers().map(|(i, y)| y * weight(i)).sum(),
            numbers().map(|(_, y)| y.abs()).sum::<f64>(),
        ];
        let runs = runs.map(|run| {
            run.map(|mut run| {
                let calls = (BATCH / batch(&mut run, 3)).ceil().max(1.0) as usize;
                (run, calls)
            })
        });
        Ok(Self { runs, sums, bytes: row.bytes })
    }

    /// Shortest times of all within about `seconds` each.
    fn times(&mut self, seconds: f64) -> [f64; 3] {
        self.runs.each_mut().map(|run| {
            let Some((run, calls)) = run else { return f64::NAN };
            let (begin, mut best) = (Instant::now(), f64::INFINITY);
            while begin.elapsed().as_secs_f64() < seconds {
                best = best.min(batch(run, *calls));
            }
            best
        })
    }
}

/// Answers requests until the end of the standard input.
pub(crate) fn serve(rows: &[Row]) {
    let mut last: Option<(String, Ready)> = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let (name, seconds) = line.split_once('\t').unwrap_or((&line, "0.1"));
        if last.as_ref().is_none_or(|(of, _)| of != name) {
            // Memory of the last row is released first.
            drop(last.take());
            let row = rows.iter().find(|row| row.name == name).ok_or("no such row".to_string());
            match row.and_then(Ready::new) {
                Ok(ready) => last = Some((name.to_string(), ready)),
                Err(error) => {
                    println!("error: {error}");
                    continue;
                }
            }
        }
        let Some((_, ready)) = &mut last else { continue };
        let [t4a, fused, flex] = ready.times(seconds.parse().unwrap_or(0.1));
        let [weighted, size] = ready.sums;
        println!("{t4a:e} {fused:e} {flex:e} {weighted:e} {size:e} {}", ready.bytes);
    }
}
