//! Bonds of two-dimensional lattices whose sites are numbered along a path: column by column, each from its
//! first row on, so that the bonds of a chain cut the lattice along a column.

use crate::error::{NetworksError, Result};

/// Sites and bonds of a lattice.
///
/// ```
/// use t4a_networks::lattice::square;
/// let lattice = square(3, 2, false)?;
/// assert_eq!(lattice.sites(), 6);
/// assert_eq!(lattice.bonds(), [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5)]);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Lattice {
    positions: Vec<[f64; 2]>,
    bonds: Vec<(usize, usize)>,
}

impl Lattice {
    /// Number of sites.
    pub fn sites(&self) -> usize {
        self.positions.len()
    }

    /// Pairs of nearest neighbours, the smaller number first, ascending and none twice.
    pub fn bonds(&self) -> &[(usize, usize)] {
        &self.bonds
    }

    /// The position of a site in the plane; a cylinder is cut open.
    pub fn position(&self, site: usize) -> Option<[f64; 2]> {
        self.positions.get(site).copied()
    }

    fn new(positions: Vec<[f64; 2]>, bonds: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let ordered = bonds.into_iter().map(|(a, b)| (a.min(b), a.max(b)));
        let mut bonds: Vec<(usize, usize)> = ordered.filter(|(a, b)| a != b).collect();
        bonds.sort_unstable();
        bonds.dedup();
        Self { positions, bonds }
    }
}

fn check(op: &'static str, columns: usize, rows: usize) -> Result<()> {
    if (1..=1 << 12).contains(&columns) && (1..=1 << 12).contains(&rows) {
        return Ok(());
    }
    let (name, given) = ("the size", format!("{columns} × {rows}"));
    Err(NetworksError::Argument { op, name, given, required: "1 to 4096 columns and rows" })
}

/// The row behind another one, around the cylinder.
fn behind(row: usize, by: usize, rows: usize, cylinder: bool) -> Option<usize> {
    match cylinder {
        true => Some((row + by) % rows),
        false => Some(row + by).filter(|&row| row < rows),
    }
}

/// The square lattice; site `column · rows + row`. A cylinder is periodic along its columns.
///
/// # Errors
/// `Argument` for a size of 0 or beyond 4096.
pub fn square(columns: usize, rows: usize, cylinder: bool) -> Result<Lattice> {
    check("square", columns, rows)?;
    let (mut positions, mut bonds) = (Vec::new(), Vec::new());
    for x in 0..columns {
        for y in 0..rows {
            let at = x * rows + y;
            positions.push([x as f64, y as f64]);
            bonds.extend(behind(y, 1, rows, cylinder).map(|y| (at, x * rows + y)));
            bonds.extend((x + 1 < columns).then_some((at, at + rows)));
        }
    }
    Ok(Lattice::new(positions, bonds))
}

/// The triangular lattice: the square one, sheared, and the diagonals from (x, y) to (x + 1, y + 1).
///
/// # Errors
/// As [`square`].
pub fn triangular(columns: usize, rows: usize, cylinder: bool) -> Result<Lattice> {
    let square = square(columns, rows, cylinder)?;
    let mut bonds = square.bonds;
    for x in 0..columns.saturating_sub(1) {
        for y in 0..rows {
            let next = behind(y, 1, rows, cylinder);
            bonds.extend(next.map(|next| (x * rows + y, (x + 1) * rows + next)));
        }
    }
    let sheared = |[x, y]: [f64; 2]| [x * 0.75f64.sqrt(), y - x / 2.0];
    Ok(Lattice::new(square.positions.into_iter().map(sheared).collect(), bonds))
}

/// The honeycomb lattice as brick wall: bonds along all columns, and from column x to x + 1 in the rows
/// where x + y is even. A cylinder has an even number of rows.
///
/// # Errors
/// As [`square`]; `Argument` for a cylinder of an odd number of rows.
pub fn honeycomb(columns: usize, rows: usize, cylinder: bool) -> Result<Lattice> {
    check("honeycomb", columns, rows)?;
    if cylinder && rows % 2 == 1 {
        let (op, name, given) = ("honeycomb", "the number of rows of a cylinder", rows.to_string());
        return Err(NetworksError::Argument { op, name, given, required: "an even number" });
    }
    let square = square(columns, rows, cylinder)?;
    let kept =
        |&(a, b): &(usize, usize)| a / rows == b / rows || (a / rows + a % rows).is_multiple_of(2);
    let bonds = square.bonds.iter().copied().filter(kept);
    let position = |at: usize| {
        let (x, y) = ((at / rows) as f64, (at % rows) as f64);
        let shift = if (at / rows + at % rows).is_multiple_of(2) { 0.25 } else { -0.25 };
        [1.5 * x + shift, y * 0.75f64.sqrt()]
    };
    Ok(Lattice::new((0..columns * rows).map(position).collect(), bonds))
}
