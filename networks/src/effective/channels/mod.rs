//! Channels: the states of the operator's bonds.
//!
//! Channel c of a bond is a sum of operators of the sites on its left, and another one of those on its right. Where one of
//! them is a multiple of the identity, the channel belongs to the other side alone. Between isometries the environment of
//! such a channel is that multiple of the identity matrix.
//!
//! ```text
//! bond     channels          left of it        right of it
//!          nothing yet       1                 terms of the right
//!          terms that cross  first factors     last factors
//!          complete          terms of the left 1
//! ```
//!
//! ```text
//! mod     parts of an operator on both sides of each bond
//! growth  environments from these parts
//! ```

mod growth;

use t4a_algebra::c64;
use t4a_diff::Array;
use t4a_structured::{GradedTensor, Leg, Sector, Spec, einsum};

use super::{ChainSide, EffectiveMap, Half, concurrently};
use crate::error::Result;
use crate::fill::Filler;
use crate::mpo::Mpo;
use crate::scalar::{constant_like, numbers};
use growth::Composition;

/// Largest deviation from a multiple of the identity, divided by it.
const ROUNDING: f64 = 1e-15;

/// For each channel of a bond the factor of the identity, if its operators on one side are a multiple of the identity.
pub(crate) type Multiples = Vec<Option<f64>>;

/// Channels of an environment that are contracted.
#[derive(Clone, Debug)]
struct Selected<S> {
    /// A matrix from all channels to them, unless they are all.
    matrix: Option<GradedTensor<S>>,
    number: usize,
}

/// Terms of a site: a tensor `[out, in]`, then the bond in the middle if they cross it, then the bond of the environment
/// if they reach it.
#[derive(Clone, Debug)]
struct SiteTerms<S> {
    tensor: GradedTensor<S>,
    environment: Option<Selected<S>>,
}

/// Terms of one side of a bond: those that do not cross it, and those that do.
#[derive(Clone, Debug)]
struct DividedTerms<O, C> {
    own: Option<O>,
    crossing: Option<C>,
}

/// One side of a bond without a site: factors of the channels, and the channels.
type BondSide<S> = DividedTerms<GradedTensor<S>, Selected<S>>;

/// A site on one side of a bond.
type SiteSide<S> = DividedTerms<SiteTerms<S>, SiteTerms<S>>;

/// The channels of an operator, and what depends on them alone. Pairs are of the left and of the right side.
#[derive(Clone, Debug)]
pub(crate) struct Channels<S> {
    tensors: Vec<GradedTensor<S>>,
    bonds: Vec<[BondSide<S>; 2]>,
    /// `None` if the parts do not determine each channel of the environment.
    compositions: Vec<[Option<Composition<S>>; 2]>,
    sites: Vec<[SiteSide<S>; 2]>,
    /// For each pair of sites the terms between the two as one operator `[out, out, in, in]`, if no other term crosses the
    /// bond.
    pairs: Vec<Option<GradedTensor<S>>>,
}

impl<S: Sector> Channels<S> {
    /// Those of an operator of charge 0.
    pub(crate) fn of_chain(operator: &Mpo<S>) -> Result<Self> {
        Self::new(operator.tensors(), [vec![Some(1.0)], vec![Some(1.0)]])
    }

    /// Those of the tensors `[left, out, in, right]` of a chain. `ends` are the multiples on the left of the first bond and
    /// on the right of the last one.
    pub(crate) fn new(tensors: &[GradedTensor<S>], ends: [Multiples; 2]) -> Result<Self> {
        let dense: Vec<Dense> = tensors.iter().map(Dense::new).collect::<Result<_>>()?;
        let [mut left, mut right] = ends.map(|end| vec![end]);
        for w in &dense {
            left.push(w.multiples(0, &left[left.len() - 1]));
        }
        for w in dense.iter().rev() {
            right.push(w.multiples(3, &right[right.len() - 1]));
        }
        right.reverse();
        let legs = tensors.iter().map(|w| w.spec().legs()[0].clone());
        let end = tensors.last().map(|w| w.spec().legs()[3].dual());
        let (mut bonds, mut compositions) = (Vec::new(), Vec::new());
        for ((leg, left), right) in legs.chain(end).zip(&left).zip(&right) {
            let both = || left.iter().zip(right);
            // A multiple of the identity on both sides belongs to the left.
            let rest: Multiples =
                both().map(|(left, right)| left.filter(|_| right.is_none())).collect();
            let crosses: Vec<bool> = both().map(|(l, r)| l.is_none() && r.is_none()).collect();
            let part = |leg: &Leg<S>, factors: &Multiples| -> Result<BondSide<S>> {
                let own = vector(&leg.dual(), factors, &tensors[0])?;
                Ok(DividedTerms { own, crossing: Selected::new(leg, &crosses, &tensors[0])? })
            };
            let sides = [part(&leg.dual(), right)?, part(&leg, &rest)?];
            let of = |leg: &Leg<S>, known, factors, side: &BondSide<S>| {
                Composition::new(leg, known, factors, side.crossing.as_ref(), &tensors[0])
            };
            compositions.push([
                of(&leg.dual(), left, right, &sides[0])?,
                of(&leg, right, &rest, &sides[1])?,
            ]);
            bonds.push(sides);
        }
        let mut sites = Vec::new();
        for (i, w) in tensors.iter().enumerate() {
            let as_left = site_side(w, 3, &bonds[i + 1][0], &left[i])?;
            sites.push([as_left, site_side(w, 0, &bonds[i][1], &right[i + 1])?]);
        }
        let pairs = sites.windows(2).map(|pair| of_pair(&pair[0][0], &pair[1][1]));
        let pairs = pairs.collect::<Result<_>>()?;
        Ok(Self { tensors: tensors.to_vec(), bonds, compositions, sites, pairs })
    }

    /// The tensors of the operator.
    pub(crate) fn tensors(&self) -> &[GradedTensor<S>] {
        &self.tensors
    }

    /// The effective operator of the bond before a site, between environments of isometries.
    pub(crate) fn bond(&self, i: usize, around: [&GradedTensor<S>; 2]) -> Result<EffectiveMap<S>> {
        let [left, right] = &self.bonds[i];
        let left = left.half(ChainSide::Left, around[0])?;
        let parts = left.with(right.half(ChainSide::Right, around[1])?, ["k", "m"]);
        Ok(parts.or_cheaper(EffectiveMap::bond(around)))
    }

    /// The effective operator of a site, between environments of isometries.
    pub(crate) fn site(&self, i: usize, around: [&GradedTensor<S>; 2]) -> Result<EffectiveMap<S>> {
        let left = self.sites[i][0].half(ChainSide::Left, around[0])?;
        let parts = left.with(self.bonds[i + 1][1].half(ChainSide::Right, around[1])?, ["kp", "m"]);
        Ok(parts.or_cheaper(EffectiveMap::site(around, &self.tensors[i])))
    }

    /// The effective operator of sites i and i + 1, between environments of isometries.
    pub(crate) fn pair(&self, i: usize, around: [&GradedTensor<S>; 2]) -> Result<EffectiveMap<S>> {
        let sides = [
            (ChainSide::Left, &self.sites[i][0], around[0]),
            (ChainSide::Right, &self.sites[i + 1][1], around[1]),
        ];
        let entries = around.iter().map(|x| x.spec().len()).sum();
        let halves = concurrently(&sides, entries, |&(side, terms, x)| terms.half(side, x))?;
        let Ok([mut left, mut right]) = <[_; 2]>::try_from(halves) else {
            unreachable!("two sides")
        };
        if let Some(operator) = &self.pairs[i] {
            let operands = vec![("stpq", operator.clone())];
            left.crossing = Some(Half { operands, output: "ks", cost: 0 });
            right.crossing = Some(Half::idle("tm"));
        }
        let parts = left.with(right, ["kp", "qm"]);
        Ok(parts.or_cheaper(EffectiveMap::pair(around, [&self.tensors[i], &self.tensors[i + 1]])))
    }
}

impl<S: Sector> DividedTerms<Half<S>, Half<S>> {
    /// The effective operator of two sides, on a tensor with these labels.
    fn with(self, right: Self, [k, m]: [&'static str; 2]) -> EffectiveMap<S> {
        let crossing = self.crossing.zip(right.crossing).map(|(left, right)| [left, right]);
        let left = self.own.map(|own| [own, Half::idle(m)]);
        let right = right.own.map(|own| [Half::idle(k), own]);
        // Two threads begin with the first and the last term, which are the largest.
        EffectiveMap::new(&[k, m].concat(), [left, crossing, right].into_iter().flatten())
    }
}

impl<S: Sector> BondSide<S> {
    fn half(&self, side: ChainSide, x: &GradedTensor<S>) -> Result<DividedTerms<Half<S>, Half<S>>> {
        let (join, own, crossing, output) = match side {
            ChainSide::Left => ("kcb,c->bk", "bk", "kcb", "b"),
            ChainSide::Right => ("mcn,c->mn", "mn", "mcn", "n"),
        };
        let joined = |factors| -> Result<_> {
            let matrix = einsum(join, &[x, factors])?.repartition(1)?;
            Ok(Half { operands: vec![(own, matrix)], output, cost: 1 })
        };
        let selected = |channels: &Selected<S>| -> Result<_> {
            let operands = vec![(crossing, channels.of(x)?)];
            Ok(Half { operands, output, cost: channels.number })
        };
        Ok(DividedTerms {
            own: self.own.as_ref().map(joined).transpose()?,
            crossing: self.crossing.as_ref().map(selected).transpose()?,
        })
    }
}

impl<S: Sector> SiteSide<S> {
    fn half(&self, side: ChainSide, x: &GradedTensor<S>) -> Result<DividedTerms<Half<S>, Half<S>>> {
        let own = self.own.as_ref().map(|terms| terms.own(side, x));
        let crossing = self.crossing.as_ref().map(|terms| terms.crossing(side, x));
        Ok(DividedTerms { own: own.transpose()?, crossing: crossing.transpose()? })
    }
}

impl<S: Sector> SiteTerms<S> {
    /// Terms that do not cross the bond in the middle.
    fn own(&self, side: ChainSide, x: &GradedTensor<S>) -> Result<Half<S>> {
        let (site, [x_labels, w_labels], join, both, [local, output]) = match side {
            ChainSide::Left => ("sp", ["kab", "spa"], "kab,spa->bskp", "bskp", ["ks", "bs"]),
            ChainSide::Right => ("tq", ["mdn", "tqd"], "tqd,mdn->qmtn", "qmtn", ["tm", "tn"]),
        };
        let Some(channels) = &self.environment else {
            let operands = vec![(site, self.tensor.clone())];
            return Ok(Half { operands, output: local, cost: 0 });
        };
        let (x, w) = (channels.of(x)?, self.tensor.clone());
        let dim = w.spec().legs()[0].dim();
        if channels.number < dim {
            let operands = vec![(x_labels, x), (w_labels, w)];
            return Ok(Half { operands, output, cost: channels.number });
        }
        let joined = match side {
            ChainSide::Left => einsum(join, &[&x, &w])?,
            ChainSide::Right => einsum(join, &[&w, &x])?,
        };
        Ok(Half { operands: vec![(both, joined.repartition(2)?)], output, cost: dim })
    }

    /// Terms that cross the bond in the middle.
    fn crossing(&self, side: ChainSide, x: &GradedTensor<S>) -> Result<Half<S>> {
        let (site, x_labels, w_labels, [local, output]) = match side {
            ChainSide::Left => ("spc", "kab", "spca", ["ks", "bs"]),
            ChainSide::Right => ("tqc", "mdn", "tqcd", ["tm", "tn"]),
        };
        let w = self.tensor.clone();
        Ok(match &self.environment {
            None => Half { operands: vec![(site, w)], output: local, cost: 0 },
            Some(channels) => {
                let operands = vec![(x_labels, channels.of(x)?), (w_labels, w)];
                Half { operands, output, cost: channels.number }
            }
        })
    }
}

impl<S: Sector> Selected<S> {
    /// The states of a leg that are used; `None` if none is.
    fn new(leg: &Leg<S>, used: &[bool], like: &GradedTensor<S>) -> Result<Option<Self>> {
        let number = used.iter().filter(|&&used| used).count();
        Ok(match number {
            0 => None,
            _ if number == used.len() => Some(Self { matrix: None, number }),
            _ => Some(Self { matrix: Some(selection(leg, used, like)?), number }),
        })
    }

    /// The tensor `[ket, operator, bra]` with these channels only.
    fn of(&self, x: &GradedTensor<S>) -> Result<GradedTensor<S>> {
        match &self.matrix {
            None => Ok(x.clone()),
            Some(matrix) => Ok(einsum("kab,ac->kcb", &[x, matrix])?.repartition(x.spec().rows())?),
        }
    }

    /// The tensor with these states of an axis, which becomes the last one.
    fn last(&self, x: &GradedTensor<S>, axis: usize) -> Result<GradedTensor<S>> {
        let rank = x.spec().legs().len();
        match &self.matrix {
            Some(matrix) => Ok(x.contract(matrix, &[axis], &[0])?),
            None => {
                let axes: Vec<usize> = (0..rank).filter(|&k| k != axis).chain([axis]).collect();
                Ok(x.permute(&axes, rank - 1)?)
            }
        }
    }
}

/// The terms of a site whose axis `middle` is the bond in the middle; `multiples` are those of the other bond.
fn site_side<S: Sector>(
    w: &GradedTensor<S>,
    middle: usize,
    bond: &BondSide<S>,
    multiples: &Multiples,
) -> Result<SiteSide<S>> {
    // Without the middle axis.
    let outer = if middle == 0 { 2 } else { 0 };
    let own = match &bond.own {
        Some(factors) => terms(w.contract(factors, &[middle], &[0])?, outer, multiples)?,
        None => None,
    };
    let crossing = match &bond.crossing {
        Some(channels) => terms(channels.last(w, middle)?, outer, multiples)?,
        None => None,
    };
    Ok(DividedTerms { own, crossing })
}

/// The terms that cross the bond between two sites as one operator, if they reach no environment and it is cheaper than the
/// operators of the sites one after the other.
fn of_pair<S: Sector>(left: &SiteSide<S>, right: &SiteSide<S>) -> Result<Option<GradedTensor<S>>> {
    let (Some(left), Some(right)) = (&left.crossing, &right.crossing) else { return Ok(None) };
    if left.environment.is_some() || right.environment.is_some() {
        return Ok(None);
    }
    let [a, b] = [&left.tensor, &right.tensor];
    let dims = [a, b].map(|x| x.spec().legs()[0].dim());
    let channels = a.spec().legs()[2].dim();
    // Steps per state of the bonds: (d d′)² instead of d d′ (d + d′) c.
    if dims[0] * dims[1] > channels * (dims[0] + dims[1]) {
        return Ok(None);
    }
    Ok(Some(einsum("spc,tqc->stpq", &[a, b])?.repartition(2)?))
}

/// Terms of a tensor whose axis `outer` is the bond of the environment.
fn terms<S: Sector>(
    x: GradedTensor<S>,
    outer: usize,
    multiples: &Multiples,
) -> Result<Option<SiteTerms<S>>> {
    let (used, leg) = (Dense::new(&x)?.used(outer), &x.spec().legs()[outer]);
    let reached = multiples.iter().zip(&used).map(|(multiple, &used)| multiple.filter(|_| used));
    let reached: Multiples = reached.collect();
    if reached.iter().zip(&used).all(|(multiple, used)| multiple.is_some() || !used) {
        // Each environment is a multiple of the identity.
        let factors = vector(&leg.dual(), &reached, &x)?;
        let tensor = factors.map(|factors| x.contract(&factors, &[outer], &[0])).transpose()?;
        return Ok(tensor.map(|tensor| SiteTerms { tensor, environment: None }));
    }
    let Some(channels) = Selected::new(leg, &used, &x)? else { return Ok(None) };
    let environment = Selected::new(&leg.dual(), &used, &x)?;
    Ok(Some(SiteTerms { tensor: channels.last(&x, outer)?, environment }))
}

/// Factors of the states of a leg as a tensor of this leg; `None` if all are zero.
fn vector<S: Sector>(
    leg: &Leg<S>,
    factors: &Multiples,
    like: &GradedTensor<S>,
) -> Result<Option<GradedTensor<S>>> {
    let mut filler = Filler::new(Spec::new(vec![leg.clone()], S::TRIVIAL, 1)?);
    let nonzero = |(c, factor): (usize, &Option<f64>)| factor.filter(|&x| x != 0.0).map(|x| (c, x));
    let nonzero: Vec<(usize, f64)> = factors.iter().enumerate().filter_map(nonzero).collect();
    if nonzero.is_empty() {
        return Ok(None);
    }
    for (c, factor) in nonzero {
        filler.add(&[c], c64::new(factor, 0.0));
    }
    Ok(Some(constant_like(&filler.finish()?, like.re())?))
}

/// A matrix that contracts with a leg and keeps the states that are used.
fn selection<S: Sector>(
    leg: &Leg<S>,
    used: &[bool],
    like: &GradedTensor<S>,
) -> Result<GradedTensor<S>> {
    let (mut kept, mut at) = (Vec::new(), 0);
    for &(sector, dim) in leg.sectors() {
        let number = used[at..at + dim].iter().filter(|&&used| used).count();
        kept.extend((number > 0).then_some((sector, number)));
        at += dim;
    }
    let kept = Leg::sorted(kept, leg.direction())?;
    let mut filler = Filler::new(Spec::new(vec![leg.dual(), kept], S::TRIVIAL, 1)?);
    let states = used.iter().enumerate().filter(|&(_, &used)| used);
    for (to, (from, _)) in states.enumerate() {
        filler.add(&[from, to], c64::ONE);
    }
    constant_like(&filler.finish()?, like.re())
}

/// All entries of a tensor of an operator.
struct Dense {
    shape: Vec<usize>,
    entries: Vec<c64>,
}

impl Dense {
    fn new<S: Sector>(x: &GradedTensor<S>) -> Result<Self> {
        let (re, im) = x.to_dense()?;
        let shape = re.shape().to_vec();
        let re = numbers(&re)?;
        let im = im.map_or(Ok(vec![0.0; re.len()]), |im| numbers(&im))?;
        let entries = re.into_iter().zip(im).map(|(re, im)| c64::new(re, im)).collect();
        Ok(Self { shape, entries })
    }

    /// For each state of an axis whether it has an entry that is not zero.
    fn used(&self, axis: usize) -> Vec<bool> {
        let mut used = vec![false; self.shape[axis]];
        let step: usize = self.shape[axis + 1..].iter().product();
        for (i, x) in self.entries.iter().enumerate() {
            used[i / step % self.shape[axis]] |= *x != c64::ZERO;
        }
        used
    }

    /// The multiples of the other bond of a tensor `[left, out, in, right]`, given those of bond `from`.
    fn multiples(&self, from: usize, known: &Multiples) -> Multiples {
        let [left, dim, _, right] = self.shape[..] else { unreachable!("a tensor of an operator") };
        let channel = |to: usize| {
            let mut sum = vec![c64::ZERO; dim * dim];
            for (from_channel, multiple) in known.iter().enumerate() {
                let (l, r) = if from == 0 { (from_channel, to) } else { (to, from_channel) };
                for (k, sum) in sum.iter_mut().enumerate() {
                    let x = self.entries[(l * dim * dim + k) * right + r];
                    if x != c64::ZERO {
                        *sum += x * (*multiple)?;
                    }
                }
            }
            let multiple = sum[0].re;
            let near = |(k, x): (usize, &c64)| {
                let required = if k % (dim + 1) == 0 { multiple } else { 0.0 };
                (x - required).norm() <= ROUNDING * multiple.abs()
            };
            sum.iter().enumerate().all(near).then_some(multiple)
        };
        (0..if from == 0 { right } else { left }).map(channel).collect()
    }
}

#[cfg(test)]
mod tests {
    use t4a_structured::U1;
    use t4a_tensor::random::Generator;

    use super::*;
    use crate::environment::{Environments, grow_left, grow_right, left_edge, right_edge};
    use crate::mps::Mps;
    use crate::scalar::norm;
    use crate::sites::{self, Sites};
    use crate::sums::{Sum, lattice};

    /// A random state of these sites, about its first site.
    fn random<S: Sector>(sites: &Sites<S>, charge: S) -> Mps<S> {
        let mut state = Mps::random(sites, charge, 12, false, &Generator::new(7)).unwrap();
        state.orthogonalise(0).unwrap();
        state
    }

    /// Checks the effective operators of all bonds, sites and pairs against those without parts. Returns the cost of the
    /// pair in the middle, in parts and whole.
    fn check<S: Sector>(operator: &Mpo<S>, mut state: Mps<S>, complex: bool) -> [usize; 2] {
        let mut environments = Environments::new(operator, &state).unwrap();
        let (n, w) = (state.len(), operator.tensors());
        // Environments of all channels, grown as a whole.
        let equal = |x: &GradedTensor<S>, y: &GradedTensor<S>| {
            let y = y.repartition(x.spec().rows()).unwrap();
            let difference = norm(&x.sub(&y).unwrap()).unwrap();
            assert!(difference <= 1e-12 * norm(&y).unwrap(), "{difference}");
        };
        let x = state.tensors();
        let mut whole = right_edge(&x[n - 1], &w[n - 1]).unwrap();
        for i in (0..n).rev() {
            equal(environments.of(0, i)[1], &whole);
            whole = grow_right(&whole, &x[i], &w[i], &x[i].conj().unwrap()).unwrap();
        }
        let mut whole_left = left_edge(&x[0], &w[0]).unwrap();
        let mut costs = [0; 2];
        for i in 0..n {
            let same =
                |effective: &EffectiveMap<S>, whole: &EffectiveMap<S>, x: &GradedTensor<S>| {
                    let x = if complex {
                        x.complexified().times_i().add(&x.complexified()).unwrap()
                    } else {
                        x.clone()
                    };
                    let (y, z) = (effective.apply(&x).unwrap(), whole.apply(&x).unwrap());
                    assert_eq!(y.spec(), x.spec());
                    let difference = norm(&y.sub(&z).unwrap()).unwrap();
                    assert!(difference <= 1e-12 * norm(&z).unwrap().max(1e-3), "{difference}");
                    assert!(effective.cost <= whole.cost, "{} {}", effective.cost, whole.cost);
                    [effective.cost, whole.cost]
                };
            let x = state.tensors();
            let around = environments.of(i, i);
            same(&environments.site(i).unwrap(), &EffectiveMap::site(around, &w[i]), &x[i]);
            if i + 1 < n {
                let pair = x[i].contract(&x[i + 1], &[2], &[0]).unwrap().repartition(2).unwrap();
                let whole = EffectiveMap::pair(environments.of(i, i + 1), [&w[i], &w[i + 1]]);
                let cost = same(&environments.pair(i).unwrap(), &whole, &pair);
                if i == n / 2 - 1 {
                    costs = cost;
                }
                state.orthogonalise(i + 1).unwrap();
                let x = state.tensors()[i].clone();
                environments.pass_right(i, &x).unwrap();
                whole_left = grow_left(&whole_left, &x, &w[i], &x.conj().unwrap()).unwrap();
                equal(environments.of(i + 1, i + 1)[0], &whole_left);
                let leg = state.tensors()[i].spec().legs()[2].clone();
                let spec = Spec::new(vec![leg.dual(), leg], S::TRIVIAL, 1).unwrap();
                let matrix =
                    GradedTensor::random(spec, x.re().dtype(), false, &Generator::new(3)).unwrap();
                let around = environments.around_bond(i + 1);
                let effective = environments.bond(i + 1).unwrap();
                same(&effective, &EffectiveMap::bond(around), &matrix);
            }
        }
        costs
    }

    #[test]
    fn parts_of_chains() {
        let spins = Sites::uniform(sites::spin_half(), 8);
        let mut near = Sum::new(&spins);
        for i in 0..7 {
            near.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]);
            near.add(0.7, [("Sz", i), ("Sz", i + 1)]);
        }
        let state = || random(&spins, U1(0));
        // Two matrices of both sites and bonds of both sides, and nothing else.
        assert_eq!(check(&near.mpo().unwrap(), state(), false), [4, 10]);
        let mut field = near.clone();
        for i in 0..8 {
            field.add(0.3 + 0.1 * i as f64, [("Sz", i)]);
        }
        assert_eq!(check(&field.mpo().unwrap(), state(), true), [4, 10]);
        // A multiple of the identity on both sides of every bond.
        let mut constant = Sum::new(&spins);
        constant.add(0.25, [("Id", 4)]);
        check(&constant.mpo().unwrap(), state(), false);
        let mut far = field.clone();
        for i in 0..6 {
            far.add_with_adjoint(0.2, [("S+", i), ("S-", i + 2)]);
            far.add(0.1, [("Sz", i), ("Sz", i + 1), ("Sz", i + 2)]);
        }
        let [parts, whole] = check(&far.mpo().unwrap(), state(), false);
        assert!(parts < whole, "{parts} {whole}");
        far.add_exponential(0.4, 0.6, ["Sz", "Sz"]);
        check(&far.mpo().unwrap(), state(), false);
        // A complex operator, and one whose sum is not in the form of channels.
        let mut turned = near.clone();
        for i in 0..7 {
            turned.add_with_adjoint(t4a_algebra::c64::new(0.0, 0.3), [("S+", i), ("S-", i + 1)]);
        }
        check(&turned.mpo().unwrap(), state(), true);
        let sum = near.mpo().unwrap().add(&field.mpo().unwrap().scale(-0.3)).unwrap();
        check(&sum, state(), false);
    }

    #[test]
    fn parts_of_fermions_and_lattices() {
        let electrons = Sites::uniform(sites::electron(), 6);
        let mut h = Sum::new(&electrons);
        for i in 0..6 {
            h.add(4.0, [("Nupdn", i)]);
            if i < 5 {
                h.add_with_adjoint(-1.0, [("Cdagup", i), ("Cup", i + 1)]);
                h.add_with_adjoint(-1.0, [("Cdagdn", i), ("Cdn", i + 1)]);
            }
        }
        let charge =
            Mps::product(&electrons, ["Up", "Dn"].into_iter().cycle().take(6)).unwrap().charge();
        assert_eq!(check(&h.mpo().unwrap(), random(&electrons, charge), false), [8, 12]);
        let grid = lattice::square(3, 3, false).unwrap();
        let sites = Sites::uniform(sites::fermion(), grid.sites());
        let mut h = Sum::new(&sites);
        for &(i, j) in grid.bonds() {
            h.add_with_adjoint(-1.0, [("Cdag", i), ("C", j)]);
            h.add(2.0, [("N", i), ("N", j)]);
        }
        let [parts, whole] = check(&h.mpo().unwrap(), random(&sites, U1(4)), true);
        assert!(parts < whole, "{parts} {whole}");
    }
}
