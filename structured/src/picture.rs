//! Prints the stored entries of a matrix as text.

use std::fmt;

/// Maximum number of lines and columns of a picture.
pub(crate) const LINES: usize = 16;
pub(crate) const COLUMNS: usize = 32;

/// Lines of cells. Each cell represents one or more entries and is filled if one of them is stored.
pub(crate) fn picture(
    f: &mut fmt::Formatter<'_>,
    rows: usize,
    cols: usize,
    stored: impl Iterator<Item = (usize, usize)>,
) -> fmt::Result {
    let (lines, columns) = (rows.min(LINES), cols.min(COLUMNS));
    let mut cells = vec![vec!['·'; columns]; lines];
    for (i, j) in stored {
        cells[i * lines / rows][j * columns / cols] = '█';
    }
    cells.iter().try_for_each(|line| writeln!(f, "│{}│", line.iter().collect::<String>()))
}
