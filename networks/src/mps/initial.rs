//! Product states, and random states of a charge.

use t4a_algebra::c64;
use t4a_structured::{Direction, GradedTensor, Leg, Sector, Spec, StructuredError};
use t4a_tensor::DType;
use t4a_tensor::random::{self, Generator};

use super::Mps;
use crate::error::{NetworksError, Result};
use crate::fill::Filler;
use crate::sites::Sites;

fn fused<S: Sector>(op: &'static str, a: S, b: S) -> Result<S> {
    let overflow = || StructuredError::ChargeOverflow { op, sectors: format!("{a} and {b}") };
    Ok(a.fuse(b).ok_or_else(overflow)?)
}

impl<S: Sector> Mps<S> {
    /// The product of basis states by name, `f64`.
    ///
    /// # Errors
    /// `UnknownState`, `Length`.
    pub fn product<'a>(
        sites: &Sites<S>,
        states: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self> {
        let op = "product state";
        sites.check(op)?;
        let names: Vec<&str> = states.into_iter().collect();
        if names.len() != sites.len() {
            let (what, required, given) = ("names of states", sites.len(), names.len());
            return Err(NetworksError::Length { op, what, required, given });
        }
        let (mut charge, mut tensors) = (S::TRIVIAL, Vec::new());
        for (at, (site, name)) in sites.iter().zip(names).enumerate() {
            let state = site.state(name).ok_or_else(|| site.unknown_state(op, at, name))?;
            let own = site.states().nth(state).map_or(S::TRIVIAL, |(_, charge)| charge);
            let after = fused(op, charge, own)?;
            let left = Leg::new([(charge, 1)], Direction::Out)?;
            let legs = vec![left, site.leg().clone(), Leg::new([(after, 1)], Direction::In)?];
            let mut filler = Filler::new(Spec::new(legs, S::TRIVIAL, 2)?);
            filler.add(&[0, state, 0], c64::new(1.0, 0.0));
            tensors.push(filler.finish()?);
            charge = after;
        }
        Ok(Self { tensors, center: Some(0) })
    }

    /// A random state of this charge, of norm 1, with at most `max_dim` states per bond; the sectors of a bond have
    /// states in proportion to the number of basis states that pass through them.
    ///
    /// # Errors
    /// `Charge` if no basis state has the charge; `Argument` for `max_dim` 0.
    pub fn random(
        sites: &Sites<S>,
        charge: S,
        max_dim: usize,
        complex: bool,
        generator: &Generator,
    ) -> Result<Self> {
        let op = "random state";
        sites.check(op)?;
        if max_dim == 0 {
            let (name, given) = ("the bond dimension", "0".into());
            return Err(NetworksError::Argument { op, name, given, required: "at least 1" });
        }
        let counts = Counts::new(op, sites, charge)?;
        let path = counts.path(op, sites, generator)?;
        let bond = |i: usize, direction| Leg::new(counts.dims(i, path[i], max_dim), direction);
        let mut tensors = Vec::new();
        for (i, site) in sites.iter().enumerate() {
            let (left, right) = (bond(i, Direction::Out)?, bond(i + 1, Direction::In)?);
            let spec = Spec::new(vec![left, site.leg().clone(), right], S::TRIVIAL, 2)?;
            tensors.push(GradedTensor::random(spec, DType::F64, complex, generator)?);
        }
        let mut state = Self { tensors, center: None };
        // Normalised on the way: norms of long chains exceed the range of numbers.
        state.normalise_to(0)?;
        Ok(state)
    }
}

/// By bond and charge: numbers of basis states of the sites on the left and on the right.
struct Counts<S> {
    bonds: Vec<Vec<(S, f64, f64)>>,
}

/// Adds a count to those of a charge.
fn count<S: Sector>(counts: &mut Vec<(S, f64)>, charge: S, number: f64) {
    match counts.binary_search_by_key(&charge, |&(charge, _)| charge) {
        Ok(at) => counts[at].1 += number,
        Err(at) => counts.insert(at, (charge, number)),
    }
}

impl<S: Sector> Counts<S> {
    fn new(op: &'static str, sites: &Sites<S>, charge: S) -> Result<Self> {
        let mut left = vec![vec![(S::TRIVIAL, 1.0)]];
        for site in sites.iter() {
            let mut next = Vec::new();
            for &(before, number) in &left[left.len() - 1] {
                for (_, own) in site.states() {
                    count(&mut next, fused(op, before, own)?, number);
                }
            }
            // Numbers of states of long chains are relative.
            let largest = next.iter().map(|&(_, n)| n).fold(0.0, f64::max);
            if largest > 1e200 {
                next.iter_mut().for_each(|(_, n)| *n *= 1e-150);
            }
            left.push(next);
        }
        // Of the charges that the left reaches, those from which the total is reached.
        let mut right = vec![vec![(charge, 1.0)]];
        for (i, site) in sites.iter().enumerate().rev() {
            let behind = &right[right.len() - 1];
            let mut next = Vec::new();
            for &(before, _) in &left[i] {
                for (_, own) in site.states() {
                    let after = fused(op, before, own)?;
                    if let Ok(at) = behind.binary_search_by_key(&after, |&(charge, _)| charge) {
                        count(&mut next, before, behind[at].1);
                    }
                }
            }
            let largest = next.iter().map(|&(_, n)| n).fold(0.0, f64::max);
            if largest > 1e200 {
                next.iter_mut().for_each(|(_, n)| *n *= 1e-150);
            }
            right.push(next);
        }
        right.reverse();
        if right[0].is_empty() {
            let what = "every basis state".into();
            let (given, required) = ("another charge".into(), charge.to_string());
            return Err(NetworksError::Charge { op, what, given, required });
        }
        let mut bonds = Vec::with_capacity(left.len());
        for (left, right) in left.iter().zip(&right) {
            let find = |&(charge, b): &(S, f64)| {
                let at = left.binary_search_by_key(&charge, |&(charge, _)| charge).ok()?;
                Some((charge, left[at].1, b))
            };
            bonds.push(right.iter().filter_map(find).collect());
        }
        Ok(Self { bonds })
    }

    /// Charges of the bonds of a random basis state of the total charge.
    fn path(&self, op: &'static str, sites: &Sites<S>, generator: &Generator) -> Result<Vec<S>> {
        let draws = random::uniform::<f64>(generator, &[sites.len()], 0.0, 1.0)?.to_vec()?;
        let mut path = vec![S::TRIVIAL];
        for (i, site) in sites.iter().enumerate() {
            let (mut choices, mut total) = (Vec::new(), 0.0);
            for (_, own) in site.states() {
                let after = fused(op, path[i], own)?;
                if let Some(&(_, _, number)) = self.bonds[i + 1].iter().find(|x| x.0 == after) {
                    total += number;
                    choices.push((after, total));
                }
            }
            let drawn = choices.iter().find(|&&(_, sum)| draws[i] * total < sum);
            path.push(drawn.or(choices.last()).map_or(S::TRIVIAL, |&(charge, _)| charge));
        }
        Ok(path)
    }

    /// Sectors of a bond, at most `most` states, one of `always` among them.
    fn dims(&self, bond: usize, always: S, most: usize) -> Vec<(S, usize)> {
        let all = &self.bonds[bond];
        let numbers: Vec<f64> = all.iter().map(|&(_, a, b)| a.min(b)).collect();
        let total: f64 = numbers.iter().sum();
        let scale = (most as f64 / total).min(1.0);
        let mut dims: Vec<usize> =
            numbers.iter().map(|&n| ((n * scale).round() as usize).max(1)).collect();
        let mut sum: usize = dims.iter().sum();
        // The smallest sectors give way; the one that connects the ends stays.
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
        while sum > most {
            let least =
                order.iter().copied().find(|&k| dims[k] > if all[k].0 == always { 1 } else { 0 });
            let Some(k) = least else { break };
            dims[k] -= 1;
            sum -= 1;
        }
        let kept = all.iter().zip(dims).filter(|&(_, dim)| dim > 0);
        kept.map(|(&(charge, ..), dim)| (charge, dim)).collect()
    }
}
