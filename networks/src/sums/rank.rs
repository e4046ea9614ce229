//! Factors of a sparse matrix of the smallest rank, `M = X Y`.
//!
//! A column with one entry makes its row a row of Y, a row with one entry makes its column a column of X; neither has
//! fill-in. What is left falls into connected parts, which are eliminated with full pivoting.

use hashbrown::HashMap;
use t4a_algebra::c64;

/// Pivots below this part of the largest entry of a connected part are rounding errors.
const TOLERANCE: f64 = 1e-13;
/// Factors below this are left out: they change entries by less than rounding does.
const ROUNDING: f64 = 1e-16;

/// Entries of a row by column.
pub(crate) type Row = Vec<(u32, c64)>;

/// The factors, in the order of the pivot rows.
#[derive(Debug, Default)]
pub(crate) struct Factors {
    /// For each row of Y, the row of M that has the coefficient 1 of it.
    pub(crate) pivots: Vec<u32>,
    /// The rows of Y.
    pub(crate) rows: Vec<Row>,
    /// Row, column and value of X.
    pub(crate) entries: Vec<(u32, u32, c64)>,
}

/// The matrix while rows and columns are taken out.
struct Rest<'a> {
    rows: &'a [Row],
    by_col: Vec<Vec<(u32, c64)>>,
    row_left: Vec<bool>,
    col_left: Vec<bool>,
    row_count: Vec<u32>,
    col_count: Vec<u32>,
}

/// The factors of a matrix of `cols` columns. Rows list no column twice and no zero.
pub(crate) fn factors(rows: &[Row], cols: usize) -> Factors {
    let mut by_col: Vec<Vec<(u32, c64)>> = vec![Vec::new(); cols];
    for (i, row) in rows.iter().enumerate() {
        row.iter().for_each(|&(j, x)| by_col[j as usize].push((i as u32, x)));
    }
    let mut rest = Rest {
        rows,
        row_left: rows.iter().map(|row| !row.is_empty()).collect(),
        col_left: by_col.iter().map(|col| !col.is_empty()).collect(),
        row_count: rows.iter().map(|row| row.len() as u32).collect(),
        col_count: by_col.iter().map(|col| col.len() as u32).collect(),
        by_col,
    };
    let mut out = Factors::default();
    rest.peel(&mut out);
    for (rows, cols) in rest.parts() {
        rest.eliminate(&rows, &cols, &mut out);
    }
    // Pivots in the order of their rows: bonds of equal sums are equal.
    let mut order: Vec<usize> = (0..out.pivots.len()).collect();
    order.sort_by_key(|&k| out.pivots[k]);
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &k)| places[k] = place as u32);
    out.pivots = order.iter().map(|&k| out.pivots[k]).collect();
    out.rows = order.iter().map(|&k| std::mem::take(&mut out.rows[k])).collect();
    out.entries.iter_mut().for_each(|entry| entry.1 = places[entry.1 as usize]);
    out
}

impl Rest<'_> {
    fn row(&self, i: u32) -> impl Iterator<Item = (u32, c64)> + '_ {
        let row = self.rows[i as usize].iter().copied();
        row.filter(|&(j, _)| self.col_left[j as usize])
    }

    fn col(&self, j: u32) -> impl Iterator<Item = (u32, c64)> + '_ {
        let col = self.by_col[j as usize].iter().copied();
        col.filter(|&(i, _)| self.row_left[i as usize])
    }

    fn take_row(&mut self, i: u32) {
        for k in 0..self.rows[i as usize].len() {
            self.col_count[self.rows[i as usize][k].0 as usize] -= 1;
        }
        self.row_left[i as usize] = false;
    }

    fn take_col(&mut self, j: u32) {
        for k in 0..self.by_col[j as usize].len() {
            self.row_count[self.by_col[j as usize][k].0 as usize] -= 1;
        }
        self.col_left[j as usize] = false;
    }

    /// Rows and columns that are decided by a single entry.
    fn peel(&mut self, out: &mut Factors) {
        let mut again = true;
        while again {
            again = false;
            for j in 0..self.col_left.len() as u32 {
                if !self.col_left[j as usize] || self.col_count[j as usize] != 1 {
                    continue;
                }
                let Some((i, x)) = self.col(j).next() else { continue };
                let largest = self.row(i).map(|(_, x)| x.norm()).fold(0.0, f64::max);
                if x.norm() < TOLERANCE * largest {
                    continue;
                }
                out.entries.push((i, out.pivots.len() as u32, c64::ONE));
                out.pivots.push(i);
                out.rows.push(self.row(i).collect());
                self.take_row(i);
                again = true;
            }
            for i in 0..self.row_left.len() as u32 {
                if !self.row_left[i as usize] || self.row_count[i as usize] != 1 {
                    continue;
                }
                let Some((j, x)) = self.row(i).next() else { continue };
                let largest = self.col(j).map(|(_, x)| x.norm()).fold(0.0, f64::max);
                if x.norm() < 0.5 * largest {
                    continue;
                }
                let place = out.pivots.len() as u32;
                out.entries.extend(self.col(j).map(|(other, y)| (other, place, y / x)));
                out.pivots.push(i);
                out.rows.push(vec![(j, x)]);
                self.take_col(j);
                self.take_row(i);
                again = true;
            }
        }
    }

    /// Connected rows and columns of what is left.
    fn parts(&self) -> Vec<(Vec<u32>, Vec<u32>)> {
        let (mut seen_row, mut seen_col) =
            (vec![false; self.row_left.len()], vec![false; self.col_left.len()]);
        let mut parts = Vec::new();
        for start in 0..self.row_left.len() as u32 {
            if !self.row_left[start as usize] || seen_row[start as usize] {
                continue;
            }
            seen_row[start as usize] = true;
            let (mut rows, mut cols, mut next) = (vec![start], Vec::new(), 0);
            while next < rows.len() {
                for (j, _) in self.row(rows[next]) {
                    if std::mem::replace(&mut seen_col[j as usize], true) {
                        continue;
                    }
                    cols.push(j);
                    for (i, _) in self.col(j) {
                        if !std::mem::replace(&mut seen_row[i as usize], true) {
                            rows.push(i);
                        }
                    }
                }
                next += 1;
            }
            rows.sort_unstable();
            if !cols.is_empty() {
                parts.push((rows, cols));
            }
        }
        parts
    }

    /// Elimination with full pivoting: `M = L U` up to the orders of rows and columns.
    fn eliminate(&self, rows: &[u32], cols: &[u32], out: &mut Factors) {
        let (m, n) = (rows.len(), cols.len());
        let place: HashMap<u32, usize> = cols.iter().enumerate().map(|(k, &j)| (j, k)).collect();
        let mut a = vec![c64::ZERO; m * n];
        for (k, &i) in rows.iter().enumerate() {
            self.row(i).for_each(|(j, x)| a[k * n + place[&j]] = x);
        }
        let largest = a.iter().map(|x| x.norm()).fold(0.0, f64::max);
        let (mut free_row, mut free_col) = (vec![true; m], vec![true; n]);
        for _ in 0..m.min(n) {
            let (mut best, mut at) = (TOLERANCE * largest, None);
            for i in (0..m).filter(|&i| free_row[i]) {
                for j in (0..n).filter(|&j| free_col[j]) {
                    if a[i * n + j].norm() > best {
                        (best, at) = (a[i * n + j].norm(), Some((i, j)));
                    }
                }
            }
            let Some((p, q)) = at else { break };
            let number = out.pivots.len() as u32;
            let kept = (0..n).filter(|&j| free_col[j] && a[p * n + j].norm() > ROUNDING * best);
            let row: Row = kept.map(|j| (cols[j], a[p * n + j])).collect();
            (free_row[p], free_col[q]) = (false, false);
            out.entries.push((rows[p], number, c64::ONE));
            for i in (0..m).filter(|&i| free_row[i]) {
                let factor = a[i * n + q] / a[p * n + q];
                if factor.norm() <= ROUNDING {
                    continue;
                }
                out.entries.push((rows[i], number, factor));
                for j in (0..n).filter(|&j| free_col[j]) {
                    let x = a[p * n + j];
                    a[i * n + j] -= factor * x;
                }
            }
            out.pivots.push(rows[p]);
            out.rows.push(row);
        }
    }
}
