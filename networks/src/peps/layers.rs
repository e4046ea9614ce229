//! Bulk tensors of states on the square lattice: a tensor and its conjugate as one.

use t4a_diff::{Array, Eager};
use t4a_structured::{Direction, GradedTensor, Leg, Sector, Spec, einsum};
use t4a_tensor::random::Generator;

use crate::error::{NetworksError, Result};
use crate::scalar::unfused;

pub(super) fn rank<S: Sector, A: Array>(
    op: &'static str,
    x: &GradedTensor<S, A>,
    required: usize,
) -> Result<()> {
    let given = x.spec().legs().len();
    match given == required {
        true => Ok(()),
        false => Err(NetworksError::Length { op, what: "legs of a tensor", required, given }),
    }
}

/// Rejects complex tensors.
pub(super) fn real<S: Sector, A: Array>(
    op: &'static str,
    name: &'static str,
    x: &GradedTensor<S, A>,
) -> Result<()> {
    let (given, required) = ("complex".into(), "a real tensor");
    match x.im() {
        None => Ok(()),
        Some(_) => Err(NetworksError::Argument { op, name, given, required }),
    }
}

/// The bonds of both layers, behind `first` other legs, as one bond each.
fn fused<S: Sector, A: Array>(x: GradedTensor<S, A>, first: usize) -> Result<GradedTensor<S, A>> {
    let mut x = x.repartition(0)?;
    for bond in 0..4 {
        let direction = x.spec().legs()[first + bond].direction();
        x = x.fuse(first + bond..first + bond + 2, direction)?;
    }
    unfused(x)
}

/// The bulk tensor `[left, up, right, down]` of a state `[site, left, up, right, down]`: the site is contracted with that
/// of the conjugate, and a bond holds those of both layers.
///
/// Cost: `O(d D⁸)`.
///
/// # Errors
/// `Length` for another number of legs; `Structured` for fused legs that are too large.
pub fn double<S: Sector, A: Array>(x: &GradedTensor<S, A>) -> Result<GradedTensor<S, A>> {
    rank("double", x, 5)?;
    fused(einsum("sabcd,sefgh->aebfcgdh", &[x, &x.conj()?])?, 0)
}

/// As [`double`], of two states of one structure: the second one is conjugated.
pub(super) fn double_of<S: Sector, A: Array>(
    x: &GradedTensor<S, A>,
    y: &GradedTensor<S, A>,
) -> Result<GradedTensor<S, A>> {
    fused(einsum("sabcd,sefgh->aebfcgdh", &[x, &y.conj()?])?, 0)
}

/// As [`double`], with an operator `[out, in]` at the site.
///
/// # Errors
/// As there; `Structured` for an operator of another site.
pub fn double_with<S: Sector, A: Array>(
    x: &GradedTensor<S, A>,
    operator: &GradedTensor<S, A>,
) -> Result<GradedTensor<S, A>> {
    rank("double_with", x, 5)?;
    fused(einsum("sabcd,ts,tefgh->aebfcgdh", &[x, operator, &x.conj()?])?, 0)
}

/// As [`double`] with open sites: `[site, conjugate site, left, up, right, down]`.
///
/// # Errors
/// As there.
pub fn open<S: Sector, A: Array>(x: &GradedTensor<S, A>) -> Result<GradedTensor<S, A>> {
    rank("open", x, 5)?;
    fused(einsum("sabcd,tefgh->staebfcgdh", &[x, &x.conj()?])?, 2)
}

/// The mean over the eight symmetries of the square of `[…, left, up, right, down]`; all four bonds are one leg.
///
/// # Errors
/// `Length` for fewer than four legs; `Structured` for different bonds.
pub fn symmetrised<S: Sector, A: Array>(x: &GradedTensor<S, A>) -> Result<GradedTensor<S, A>> {
    let (op, n) = ("symmetrised", x.spec().legs().len());
    let Some(first) = n.checked_sub(4) else {
        return Err(NetworksError::Length { op, what: "legs of a tensor", required: 4, given: n });
    };
    let rows = x.spec().rows();
    let mut sum: Option<GradedTensor<S, A>> = None;
    for turn in 0..4 {
        for mirrored in [false, true] {
            let leg = |k: usize| first + (turn + if mirrored { 4 - k } else { k }) % 4;
            let axes: Vec<usize> = (0..first).chain((0..4).map(leg)).collect();
            let image = x.permute(&axes, rows)?;
            sum = Some(match sum {
                None => image,
                Some(sum) => sum.add(&image)?,
            });
        }
    }
    Ok(sum.unwrap_or_else(|| x.clone()).scale(0.125))
}

/// The state `[site, left, up, right, down]` with more states on its four bonds: the numbers of new states of each sector,
/// behind the present ones. New entries are zero, so the state is the same; then random numbers are added to all entries,
/// with the norm `noise` relative to that of the state. Optimisations of more states per bond start from there.
///
/// The noise does not have the symmetries of the square ([`symmetrised`]).
///
/// ```
/// use t4a_networks::peps::{layers, random_state};
/// use t4a_networks::sites::spin_half;
/// use t4a_structured::{Direction, Leg, Trivial};
/// let site = spin_half().conserve(|_| Trivial)?;
/// let bond = Leg::new([(Trivial, 2)], Direction::Out)?;
/// let two = random_state(site.leg(), &bond, 1)?;
/// let three = layers::symmetrised(&layers::enlarged(&two, [(Trivial, 1)], 1e-2, 2)?)?;
/// assert_eq!(three.spec().shape(), [2, 3, 3, 3, 3]);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
///
/// # Errors
/// `Length` for another number of legs; `Argument` for a noise that is negative or not finite; `Structured` for sectors
/// that are not a leg.
pub fn enlarged<S: Sector>(
    x: &GradedTensor<S>,
    more: impl IntoIterator<Item = (S, usize)>,
    noise: f64,
    seed: u64,
) -> Result<GradedTensor<S>> {
    let op = "enlarged";
    rank(op, x, 5)?;
    if !(noise.is_finite() && noise >= 0.0) {
        let (given, required) = (noise.to_string(), "a finite number of at least 0");
        return Err(NetworksError::Argument { op, name: "the noise", given, required });
    }
    let more: Vec<_> = more.into_iter().collect();
    let mut legs = x.spec().legs()[..1].to_vec();
    for bond in &x.spec().legs()[1..] {
        legs.push(Leg::new(more.iter().copied(), bond.direction())?);
    }
    let zeros = x.zeros_of(&Spec::new(legs, x.spec().flux(), x.spec().rows())?);
    let large = GradedTensor::direct_sum(&[x, &zeros], &[1, 2, 3, 4])?;
    let (dtype, complex) = (large.re().dtype(), large.im().is_some());
    let random = GradedTensor::random(large.spec().clone(), dtype, complex, &Generator::new(seed))?;
    let weight = noise * crate::scalar::norm(&large)? / crate::scalar::norm(&random)?;
    Ok(large.add(&random.scale(weight))?)
}

/// The vector on a bond of two layers that closes it: both layers in the same state.
///
/// # Errors
/// Those of the memory.
pub(super) fn closed<S: Sector>(bond: &Leg<S>) -> Result<GradedTensor<S, Eager>> {
    let pair = GradedTensor::identity(std::slice::from_ref(bond), t4a_tensor::DType::F64)?;
    let direction = bond.direction();
    unfused(pair.repartition(0)?.fuse(0..2, direction)?)
}

/// True if the direction of all legs from `first` on is that of the first of them.
pub(super) fn one_direction<S: Sector, A: Array>(x: &GradedTensor<S, A>, first: usize) -> bool {
    let legs = &x.spec().legs()[first..];
    let direction = legs.first().map_or(Direction::Out, |leg| leg.direction());
    legs.iter().all(|leg| leg.direction() == direction)
}

/// `Tr ρ O` of a density matrix `[site, conjugate site, …]` and an operator `[outs, ins]` on the same sites.
pub(super) fn traced<S: Sector, A: Array>(
    op: &'static str,
    density: &GradedTensor<S, A>,
    operator: &GradedTensor<S, A>,
) -> Result<A> {
    rank(op, operator, density.spec().legs().len())?;
    let subscripts = if density.spec().legs().len() == 2 { "ps,sp->" } else { "pqst,qtps->" };
    let value = einsum(subscripts, &[density, operator])?;
    Ok(crate::scalar::entry(&value).0)
}

/// `Σ c A ⊗ B` on a site and a neighbour whose legs are dual to those of the site, `[out, out, in, in]`: real operators by
/// name, those of the neighbour in its own rotated basis.
///
/// ```
/// use t4a_networks::peps::layers::pair_operator;
/// use t4a_networks::sites::spin_half;
/// // The Heisenberg antiferromagnet, with one sublattice rotated by π about y: S± → −S∓, Sz → −Sz.
/// let h = pair_operator(&spin_half(), [(-0.5, "S+", "S+"), (-0.5, "S-", "S-"), (-1.0, "Sz", "Sz")])?;
/// assert_eq!(h.spec().shape(), [2, 2, 2, 2]);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
///
/// # Errors
/// `UnknownOperator`; `Argument` for no term; `Structured` for terms that are not neutral, as the sum.
pub fn pair_operator<'a, S: Sector>(
    site: &crate::sites::Site<S>,
    terms: impl IntoIterator<Item = (f64, &'a str, &'a str)>,
) -> Result<GradedTensor<S>> {
    sum_of_pairs("pair_operator", site, terms, true)
}

/// `Σ c A ⊗ B` on a site and a neighbour of the same kind, `[out, out, in, in]`: real operators by name.
///
/// ```
/// use t4a_networks::peps::layers::bond_operator;
/// use t4a_networks::sites::spin_half;
/// let h = bond_operator(&spin_half(), [(0.5, "S+", "S-"), (0.5, "S-", "S+"), (1.0, "Sz", "Sz")])?;
/// assert_eq!(h.spec().shape(), [2, 2, 2, 2]);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
///
/// # Errors
/// As [`pair_operator`].
pub fn bond_operator<'a, S: Sector>(
    site: &crate::sites::Site<S>,
    terms: impl IntoIterator<Item = (f64, &'a str, &'a str)>,
) -> Result<GradedTensor<S>> {
    sum_of_pairs("bond_operator", site, terms, false)
}

fn sum_of_pairs<'a, S: Sector>(
    op: &'static str,
    site: &crate::sites::Site<S>,
    terms: impl IntoIterator<Item = (f64, &'a str, &'a str)>,
    is_dual: bool,
) -> Result<GradedTensor<S>> {
    let named = |site_number: usize, name: &str| -> Result<GradedTensor<S>> {
        site.matrix(name).ok_or_else(|| site.unknown(op, site_number, name))?;
        site.operator(name)
    };
    let mut sum: Option<GradedTensor<S>> = None;
    for (c, a, b) in terms {
        let b = named(1, b)?;
        let b = if is_dual { b.conj()? } else { b };
        let term = einsum("ab,cd->acbd", &[&named(0, a)?, &b])?.scale(c);
        let term = term.repartition(2)?;
        sum = Some(match sum {
            None => term,
            Some(sum) => sum.add(&term)?,
        });
    }
    let (name, given, required) = ("the operator", "no term".into(), "at least one term");
    sum.ok_or(NetworksError::Argument { op, name, given, required })
}
