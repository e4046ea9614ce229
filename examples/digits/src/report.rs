//! Confusion matrix for the terminal, and training curves as an image.

use std::io::IsTerminal;
use std::path::PathBuf;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::Result;
use crate::data::Set;
use crate::train::{Epoch, Trained};

/// Output folder of generated files: the build folder.
pub fn target() -> PathBuf {
    let dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let dir = dir.join("digits");
    std::fs::create_dir_all(&dir).ok();
    dir
}

/// Rows are the true digits, columns the predicted ones.
pub fn confusion(set: &Set, predictions: &[i32]) {
    let mut counts = [[0usize; 10]; 10];
    for (&truth, &guess) in set.labels.iter().zip(predictions) {
        counts[truth as usize][guess as usize] += 1;
    }
    println!("confusion of the convolution (row: digit, column: prediction)");
    println!("     {}", (0..10).map(|digit| format!("{digit:>4}")).collect::<String>());
    let color = std::io::stdout().is_terminal();
    for (digit, row) in counts.iter().enumerate() {
        let cell = |(guess, &count): (usize, &usize)| match count {
            0 => "   ·".into(),
            _ if !color => format!("{count:>4}"),
            _ if guess == digit => format!("\x1b[32m{count:>4}\x1b[0m"),
            _ => format!("\x1b[31m{count:>4}\x1b[0m"),
        };
        println!("{digit:>4} {}", row.iter().enumerate().map(cell).collect::<String>());
    }
    println!();
}

/// Loss and test accuracy over the epochs, in two panels: one color per network, thin lines for a second backend, whose
/// curves may coincide with those of the first.
pub fn curves(nets: &[Trained]) -> Result<PathBuf> {
    let path = target().join("digits.svg");
    let root = SVGBackend::new(path.as_path(), (1100, 440)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(550);
    let loss = |epoch: &Epoch| epoch.loss.max(1e-9);
    let accuracy = |epoch: &Epoch| 100.0 * epoch.test;
    let (least, most) = bounds(nets, 0, loss);
    draw(&left, "training loss", nets, 0, (least * 0.8..most * 1.25).log_scale(), loss)?;
    // The first epochs are excluded: their range would hide the differences of the others.
    let from = nets[0].history.len() / 8;
    let (least, _) = bounds(nets, from, accuracy);
    draw(&right, "test accuracy in %", nets, from, least.floor()..100.0, accuracy)?;
    root.present()?;
    drop((root, left, right));
    Ok(path)
}

/// Minimum and maximum of a value from an epoch on.
fn bounds(nets: &[Trained], from: usize, value: impl Fn(&Epoch) -> f64) -> (f64, f64) {
    let all = nets.iter().flat_map(|net| &net.history[from..]).map(value);
    all.fold((f64::INFINITY, 0.0), |(least, most), x| (x.min(least), x.max(most)))
}

fn draw<Y>(
    area: &DrawingArea<SVGBackend, Shift>,
    title: &str,
    nets: &[Trained],
    from: usize,
    range: Y,
    value: impl Fn(&Epoch) -> f64,
) -> Result<()>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let epochs = nets[0].history.len();
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(1..epochs.max(2), range)?;
    chart
        .configure_mesh()
        .x_desc("epoch")
        .x_labels(epochs.min(13))
        .light_line_style(WHITE)
        .draw()?;
    for (i, net) in nets.iter().enumerate() {
        let first = net.backend == nets[0].backend;
        let color = if net.name == nets[0].name { BLUE } else { RED };
        let style =
            color.mix(if first { 1.0 } else { 0.5 }).stroke_width(if first { 3 } else { 1 });
        let points = net.history.iter().enumerate().skip(from).map(|(i, x)| (i + 1, value(x)));
        let mut line = LineSeries::new(points, style);
        if nets.len() > 2 && !first {
            line = line.point_size(2 + i as u32 % 2);
        }
        chart
            .draw_series(line)?
            .label(format!("{}, {}", net.name, net.backend))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    let labels = SeriesLabelPosition::MiddleRight;
    chart
        .configure_series_labels()
        .position(labels)
        .border_style(BLACK)
        .background_style(WHITE)
        .draw()?;
    Ok(())
}
