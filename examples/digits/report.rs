//! The confusion matrix for the terminal, the curves as a picture.

use std::path::PathBuf;

use plotters::prelude::*;

use crate::Result;
use crate::data::Set;
use crate::train::Trained;

/// Where generated files go: the build folder.
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
    for (digit, row) in counts.iter().enumerate() {
        let cell = |(guess, &count): (usize, &usize)| match count {
            0 => "   ·".into(),
            _ if guess == digit => format!("\x1b[32m{count:>4}\x1b[0m"),
            _ => format!("\x1b[31m{count:>4}\x1b[0m"),
        };
        println!("{digit:>4} {}", row.iter().enumerate().map(cell).collect::<String>());
    }
    println!();
}

/// Loss and test accuracy over the epochs, side by side.
pub fn curves(backend: &str, nets: &[(&'static str, Trained)]) -> Result<PathBuf> {
    let path = target().join(format!("digits-{backend}.svg"));
    let root = SVGBackend::new(path.as_path(), (960, 400)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(480);
    let epochs = nets.iter().map(|(_, net)| net.history.len()).max().unwrap_or(1);
    let losses = nets.iter().flat_map(|(_, net)| &net.history).map(|epoch| epoch.loss);
    let top = losses.fold(0.0, f64::max);
    let draw =
        |area, title: &str, range: std::ops::Range<f64>, value: fn(&crate::train::Epoch) -> f64| {
            let mut chart = ChartBuilder::on(&area)
                .caption(title, ("sans-serif", 18))
                .margin(12)
                .x_label_area_size(32)
                .y_label_area_size(48)
                .build_cartesian_2d(1.0..epochs as f64, range)?;
            chart.configure_mesh().x_desc("epoch").draw()?;
            for (i, (name, net)) in nets.iter().enumerate() {
                let color = [BLUE, RED][i % 2];
                let points =
                    net.history.iter().enumerate().map(|(i, e)| ((i + 1) as f64, value(e)));
                chart
                    .draw_series(LineSeries::new(points, color.stroke_width(2)))?
                    .label(*name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
            }
            chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw()?;
            Ok::<(), Box<dyn std::error::Error>>(())
        };
    draw(left, &format!("training loss ({backend})"), 0.0..top.max(1e-3), |epoch| epoch.loss)?;
    draw(right, "test accuracy", 0.0..1.0, |epoch| epoch.test)?;
    root.present()?;
    drop(root);
    Ok(path)
}
