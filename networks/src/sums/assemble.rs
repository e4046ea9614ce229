//! Graded tensors of a sparse chain.

use t4a_structured::{Direction, Leg, Sector, Spec};

use super::compress::SparseChain;
use super::strings::Strings;
use crate::error::Result;
use crate::fill::Filler;
use crate::mpo::Mpo;
use crate::sites::Sites;

/// States of a bond in dense order: sorted by charge.
fn bond<S: Sector>(charges: &[S]) -> Result<(Leg<S>, Vec<usize>)> {
    let mut order: Vec<usize> = (0..charges.len()).collect();
    order.sort_by_key(|&k| charges[k]);
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &k)| places[k] = place);
    let same = order.chunk_by(|&a, &b| charges[a] == charges[b]);
    let leg = Leg::new(same.map(|same| (charges[same[0]], same.len())), Direction::Out)?;
    Ok((leg, places))
}

pub(crate) fn mpo<S: Sector>(
    sites: &Sites<S>,
    strings: &Strings<S>,
    chain: &SparseChain<S>,
) -> Result<Mpo<S>> {
    let mut tensors = Vec::with_capacity(sites.len());
    let mut left = bond(&chain.bonds[0])?;
    for (at, site) in sites.iter().enumerate() {
        let right = bond(&chain.bonds[at + 1])?;
        let physical = site.leg();
        let legs = vec![left.0.clone(), physical.clone(), physical.dual(), right.0.dual()];
        let mut filler = Filler::new(Spec::new(legs, S::TRIVIAL, 2)?);
        let symbols = &strings.symbols[strings.kinds[at]];
        for entry in &chain.sites[at] {
            let (a, b) = (left.1[entry.left as usize], right.1[entry.right as usize]);
            for (i, j, x) in symbols.basis(entry.basis).1.nonzeros() {
                filler.add(&[a, i, j, b], entry.coefficient * x);
            }
        }
        tensors.push(filler.finish()?);
        left = right;
    }
    Mpo::new(tensors)
}
