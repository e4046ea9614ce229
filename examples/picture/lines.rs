//! Pictures of lines, for examples.

use plotters::prelude::*;

/// Lines of points in black, red, blue and green, in `target/pictures/NAME.svg`, whose path is printed.
pub fn lines(
    name: &str,
    x: &str,
    lines: &[Vec<(f64, f64)>],
) -> Result<(), Box<dyn std::error::Error>> {
    let file = format!("target/pictures/{name}.svg");
    std::fs::create_dir_all("target/pictures")?;
    let range = |of: fn(&(f64, f64)) -> f64| {
        let all = lines.iter().flatten().map(of);
        all.clone().fold(f64::INFINITY, f64::min)..all.fold(f64::NEG_INFINITY, f64::max)
    };
    let root = SVGBackend::new(&file, (800, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(48)
        .build_cartesian_2d(range(|p| p.0), range(|p| p.1))?;
    chart.configure_mesh().x_desc(x).draw()?;
    for (line, color) in lines.iter().zip([&BLACK, &RED, &BLUE, &GREEN]) {
        chart.draw_series(LineSeries::new(line.iter().copied(), color))?;
    }
    root.present()?;
    drop(chart);
    drop(root);
    println!("{file}: black, red, blue, green in turn");
    Ok(())
}
