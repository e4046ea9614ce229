//! Perfect sampling of basis states.
//!
//! Reference: A. Ferris, G. Vidal, *Perfect sampling with unitary tensor networks* (2012).

use t4a_structured::{Direction, GradedTensor, Leg, Sector, Spec};
use t4a_tensor::random::{self, Generator};

use super::Mps;
use crate::error::{NetworksError, Result};
use crate::fill::Filler;
use crate::scalar::norm;

impl<S: Sector> Mps<S> {
    /// Basis states with the probabilities `|⟨s|ψ⟩|² / ⟨ψ|ψ⟩`, one number per site in the order of the site's basis.
    /// The charge of each is that of the state.
    ///
    /// Cost: `O(n d D²)` per sample, and one sweep before the first.
    ///
    /// # Errors
    /// `Norm` for a state of norm 0.
    pub fn sample(&self, count: usize, generator: &Generator) -> Result<Vec<Vec<usize>>> {
        let mut state = self.clone();
        state.orthogonalise(0)?;
        state.normalise()?;
        let selectors = state.selectors()?;
        (0..count).map(|_| state.draw(&selectors, generator)).collect()
    }

    /// By site and basis state, the tensor that reads its amplitude: `[site In, charge Out]` of one state.
    fn selectors(&self) -> Result<Vec<Vec<GradedTensor<S>>>> {
        let one = |leg: &Leg<S>, charge: S, k: usize| {
            let legs = vec![leg.dual(), Leg::new([(charge, 1)], Direction::Out)?];
            let mut filler = Filler::new(Spec::new(legs, S::TRIVIAL, 1)?);
            filler.add(&[k, 0], 1.0.into());
            filler.finish()
        };
        let all = |site: usize| {
            let leg = self.physical(site);
            let charges = leg.sectors().iter().flat_map(|&(charge, dim)| vec![charge; dim]);
            charges.enumerate().map(|(k, charge)| one(leg, charge, k)).collect()
        };
        (0..self.len()).map(all).collect()
    }

    fn draw(
        &self,
        selectors: &[Vec<GradedTensor<S>>],
        generator: &Generator,
    ) -> Result<Vec<usize>> {
        let draws = random::uniform::<f64>(generator, &[self.len()], 0.0, 1.0)?.to_vec()?;
        let mut sample = Vec::with_capacity(self.len());
        // Amplitudes of what was drawn so far: [charges of the drawn sites as one leg, bond].
        let mut amplitude: Option<GradedTensor<S>> = None;
        for (i, x) in self.tensors.iter().enumerate() {
            let here = match &amplitude {
                None => x.clone(),
                Some(left) => left.contract(x, &[1], &[0])?,
            };
            let (mut sum, mut found) = (0.0, None);
            for (k, selector) in selectors[i].iter().enumerate() {
                let chosen = here.contract(selector, &[1], &[0])?;
                let size = norm(&chosen)?;
                sum += size * size;
                if size > 0.0 {
                    found = Some((k, size, chosen));
                }
                if draws[i] < sum {
                    break;
                }
            }
            let Some((k, size, chosen)) = found else {
                return Err(NetworksError::Norm { op: "sample", norm: 0.0 });
            };
            sample.push(k);
            // [drawn, bond, charge] → one leg of all charges, and the bond.
            let joined = chosen.permute(&[0, 2, 1], 2)?.fuse(0..2, Direction::Out)?;
            amplitude = Some(crate::scalar::unfused(joined)?.scale(1.0 / size));
        }
        Ok(sample)
    }
}
