//! Reports about programs: text with the cost of every instruction, and a drawing of the graph.

mod cost;
mod drawing;

pub(crate) use cost::size;
pub(crate) use drawing::draw;

use std::fmt;

use burn_backend::Backend;

use crate::program::Program;
use crate::tensor::TensorType;
use cost::{UnitCost, cost};

/// A number with a unit prefix, three significant digits: `1.5 k`.
fn short(x: u64) -> String {
    let mut value = x as f64;
    for prefix in ["", "k", "M", "G", "T"] {
        if value < 999.5 || prefix == "T" {
            let digits = match value {
                _ if prefix.is_empty() || value >= 99.95 => 0,
                _ if value >= 9.995 => 1,
                _ => 2,
            };
            return format!("{value:.digits$} {prefix}");
        }
        value /= 1000.0;
    }
    unreachable!("the last prefix has no limit")
}

impl fmt::Display for UnitCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [read, written] = [self.read, self.written].map(short);
        write!(f, "reads {read}B, writes {written}B, ")?;
        match self.operations {
            Some(count) => write!(f, "{}op", short(count)),
            None => write!(f, "operations unknown"),
        }
    }
}

fn values(list: &[usize], metas: &[TensorType]) -> String {
    let all: Vec<_> = list.iter().map(|&value| format!("%{value} {}", metas[value])).collect();
    all.join(", ")
}

impl<B: Backend> fmt::Display for Program<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (metas, mut total) = (self.metas(), UnitCost::default());
        for unit in self.units() {
            write!(f, "{} = {}", values(&unit.results, metas), unit.name)?;
            if unit.members.is_none() {
                write!(f, "{}", unit.step.text().unwrap_or_default())?;
            } else {
                write!(f, "[{}]", unit.parts().join(" "))?;
            }
            let cost = cost(unit, metas);
            writeln!(f, " of {}; {cost}", values(&unit.operands, metas))?;
            total = total.plus(&cost);
        }
        let (slots, peak) = self.memory();
        writeln!(f, "all: {total}; {slots} buffers, at most {}B at once", short(peak))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let all = [0, 999, 1000, 9_995, 99_950, 999_499, 999_500, 1_234_567_890, u64::MAX];
        let texts = all.map(short);
        let want = ["0 ", "999 ", "1.00 k", "10.0 k", "100 k", "999 k", "1.00 M", "1.23 G"];
        assert_eq!(texts[..8], want);
        assert_eq!(texts[8], "18446744 T");
    }
}
