//! Printing of a tensor: legs, block structure by charge, fill.

use std::fmt;

use t4a_diff::Array;

use super::GradedTensor;
use crate::picture::{COLUMNS, LINES};
use crate::sector::Sector;

impl<S: Sector, A: Array> fmt::Display for GradedTensor<S, A> {
    /// Prints the legs, the matrices of the coupled sectors within the dense matrix of all rows and columns, and the
    /// fill.
    ///
    /// ```text
    /// charge 0: out {-1: 1, 1: 1} | in {-1: 1, 1: 1}  f64
    /// │█·│ -1: 1×1
    /// │·█│ 1: 1×1
    /// 2 of 4 entries, 50.0 %
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = &self.spec;
        let kind = if self.im.is_some() { "complex " } else { "" };
        writeln!(f, "{spec}  {kind}{}", self.re.dtype())?;
        let (rows, cols) = spec
            .matrices()
            .iter()
            .fold((0, 0), |(rows, cols), matrix| (rows + matrix.rows, cols + matrix.cols));
        // Only coupled sectors with a matrix are drawn: the others have empty rows or columns.
        let (lines, columns) = (rows.min(LINES), cols.min(COLUMNS));
        let mut row = 0;
        let mut bounds = Vec::new();
        let mut col = 0;
        for matrix in spec.matrices() {
            bounds.push((row, row + matrix.rows, col, col + matrix.cols));
            (row, col) = (row + matrix.rows, col + matrix.cols);
        }
        // Labels are on the line at which their matrix begins.
        let mut labels = vec![Vec::new(); lines];
        for (matrix, &(first, ..)) in spec.matrices().iter().zip(&bounds) {
            let text = format!("{}: {}×{}", matrix.charge, matrix.rows, matrix.cols);
            labels[first * lines / rows].push(text);
        }
        for (line, labels) in labels.iter().enumerate() {
            let span = |i: usize, parts: usize, of: usize| (i * of / parts, (i + 1) * of / parts);
            let (top, bottom) = span(line, lines, rows);
            let cell = |column: usize| {
                let (left, right) = span(column, columns, cols);
                let meets = |&(r0, r1, c0, c1): &(usize, usize, usize, usize)| {
                    r0 < bottom && top < r1 && c0 < right && left < c1
                };
                if bounds.iter().any(meets) { '█' } else { '·' }
            };
            let cells: String = (0..columns).map(cell).collect();
            writeln!(f, "│{cells}│ {}", labels.join(", "))?;
        }
        let dense: f64 = spec.shape().iter().map(|&dim| dim as f64).product();
        let fill = if dense > 0.0 { 100.0 * spec.len() as f64 / dense } else { 0.0 };
        write!(f, "{} of {dense} entries, {fill:.1} %", spec.len())
    }
}
