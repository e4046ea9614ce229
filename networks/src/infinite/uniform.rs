//! Uniform matrix product states in mixed gauge.
//!
//! ```text
//!  … A_L ─ A_L ─ C ─ A_R ─ A_R …      A_L C = C A_R,   left and right isometries, C of norm 1
//! ```
//!
//! Reference: L. Vanderstraeten, J. Haegeman, F. Verstraete, *Tangent-space methods for uniform matrix product states*
//! (2019).

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use t4a_algebra::c64;
use t4a_linalg::krylov::{KrylovOptions, arnoldi};
use t4a_structured::{Direction, FluxOn, GradedTensor, Qr, Sector, Spec};
use t4a_tensor::DType;

use crate::error::{NetworksError, Result};
use crate::mpo::check_links;
use crate::mps::{Mps, lq, transfer};
use crate::scalar::{complex, norm, number};
use crate::sites::Sites;

pub(super) const OP: &str = "uniform mps";

/// The state of an infinite chain: a cell of tensors that repeats, in mixed gauge.
///
/// ```
/// use t4a_networks::UniformMps;
/// use t4a_networks::sites::{Sites, spin_half};
/// let sites = Sites::uniform(spin_half(), 2);
/// let neel = UniformMps::product(&sites, ["Up", "Dn"])?;
/// assert_eq!(neel.expect(&sites, "Sz")?.iter().map(|z| z.re).collect::<Vec<_>>(), [0.5, -0.5]);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug)]
pub struct UniformMps<S> {
    pub(super) left: Vec<GradedTensor<S>>,
    pub(super) right: Vec<GradedTensor<S>>,
    /// `[left, right]` of the bond behind each site.
    pub(super) bonds: Vec<GradedTensor<S>>,
}

/// The matrix with norm 1.
fn unit<S: Sector>(x: &GradedTensor<S>) -> Result<GradedTensor<S>> {
    let size = norm(x)?;
    match size.is_finite() && size > 0.0 {
        true => Ok(x.scale(1.0 / size)),
        false => Err(NetworksError::Norm { op: OP, norm: size }),
    }
}

impl<S: Sector> UniformMps<S> {
    /// The product of basis states of the sites of a cell by name, whose charge is 0.
    ///
    /// # Errors
    /// `UnknownState`, `Length`; `Charge` for a cell of another charge than 0.
    pub fn product<'a>(
        sites: &Sites<S>,
        states: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self> {
        let cell = Mps::product(sites, states)?;
        if cell.charge() != S::TRIVIAL {
            let (given, required) = (cell.charge().to_string(), S::TRIVIAL.to_string());
            return Err(NetworksError::Charge { op: OP, what: "the cell".into(), given, required });
        }
        let bond =
            |x: &GradedTensor<S>| GradedTensor::identity(&[x.spec().legs()[2].dual()], DType::F64);
        let bonds = cell.tensors().iter().map(bond).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { left: cell.tensors().to_vec(), right: cell.tensors().to_vec(), bonds })
    }

    /// The mixed gauge of any cell of tensors `[left, site, right]`, whose last bond is the first one.
    ///
    /// Cost: QR decompositions of the cell until bonds return to 1e-14, `O(D³ d)` each; many where correlations are long.
    ///
    /// # Errors
    /// `Length`, `Chain`, `FermionicSector` for tensors that do not fit; `Norm` for a state that vanishes.
    pub fn new(tensors: &[GradedTensor<S>]) -> Result<Self> {
        use Direction::{In, Out};
        check_links(OP, tensors, &[Out, Out, In])?;
        let (first, last) = (&tensors[0].spec().legs()[0], &tensors[tensors.len() - 1]);
        if !last.spec().legs()[2].contracts_with(first) {
            let message = "its last bond is not the first one of the cell".into();
            return Err(NetworksError::Chain { op: OP, site: tensors.len() - 1, message });
        }
        let one = GradedTensor::identity(std::slice::from_ref(first), DType::F64)?;
        let (mut c, mut left) = (unit(&one)?, Vec::new());
        for _ in 0..MOST {
            let before = c.clone();
            left.clear();
            for x in tensors {
                let Qr { q, r } = c.contract(x, &[1], &[0])?.qr(2, FluxOn::Right)?;
                left.push(q);
                c = unit(&r)?;
            }
            if same(&c, &before)? {
                break;
            }
        }
        let end = &left[left.len() - 1].spec().legs()[2];
        let one = GradedTensor::identity(&[end.dual()], DType::F64)?;
        Self::from_left(left, unit(&one)?)
    }

    /// The gauge of left isometries, from a guess of the last bond.
    fn from_left(left: Vec<GradedTensor<S>>, guess: GradedTensor<S>) -> Result<Self> {
        let (mut c, n) = (guess, left.len());
        let (mut right, mut bonds) = (Vec::new(), Vec::new());
        for _ in 0..MOST {
            let before = c.clone();
            (right, bonds) = (Vec::new(), Vec::new());
            for x in left.iter().rev() {
                bonds.push(c.clone());
                let [l, q] = lq(&x.contract(&c, &[2], &[0])?, 1)?;
                right.push(q.repartition(2)?);
                c = unit(&l)?;
            }
            if same(&c, &before)? {
                break;
            }
        }
        right.reverse();
        bonds.reverse();
        debug_assert_eq!(right.len(), n);
        Ok(Self { left, right, bonds })
    }

    /// Number of sites of the cell.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Never: a cell has a site.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The left isometries `[left, site, right]`.
    pub fn left(&self) -> &[GradedTensor<S>] {
        &self.left
    }

    /// The right isometries `[left, site, right]`.
    pub fn right(&self) -> &[GradedTensor<S>] {
        &self.right
    }

    /// The matrices `[left, right]` of the bonds behind the sites.
    pub fn bonds(&self) -> &[GradedTensor<S>] {
        &self.bonds
    }

    /// Numbers of states of the bonds.
    pub fn bond_dims(&self) -> Vec<usize> {
        self.bonds.iter().map(|c| c.spec().legs()[0].dim()).collect()
    }

    /// The largest number of states of a bond.
    pub fn max_bond_dim(&self) -> usize {
        self.bond_dims().into_iter().max().unwrap_or(1)
    }

    /// The centre `A_L C` of a site.
    ///
    /// # Errors
    /// `SiteOutOfRange`.
    pub fn center(&self, site: usize) -> Result<GradedTensor<S>> {
        self.check_site(site)?;
        Ok(self.left[site].contract(&self.bonds[site], &[2], &[0])?.repartition(2)?)
    }

    fn check_site(&self, site: usize) -> Result<()> {
        let sites = self.len();
        match site < sites {
            true => Ok(()),
            false => Err(NetworksError::SiteOutOfRange { op: OP, site, sites }),
        }
    }

    /// The largest `‖A_L C − C A_R‖` of a site, 0 in mixed gauge.
    ///
    /// # Errors
    /// Those of the contraction.
    pub fn gauge_error(&self) -> Result<f64> {
        let n = self.len();
        let mut most = 0.0f64;
        for i in 0..n {
            let before = &self.bonds[(i + n - 1) % n];
            let other = before.contract(&self.right[i], &[1], &[0])?.repartition(2)?;
            most = most.max(norm(&self.center(i)?.sub(&other)?)?);
        }
        Ok(most)
    }

    /// `⟨O⟩` of an operator at each site of the cell; 0 for one that changes charges.
    ///
    /// # Errors
    /// `UnknownOperator`, `Length`; `Definition` for an operator without a charge of its own.
    pub fn expect(&self, sites: &Sites<S>, operator: &str) -> Result<Vec<c64>> {
        let value = |i: usize| {
            let site = sites.at(OP, i)?;
            site.matrix(operator).ok_or_else(|| site.unknown(OP, i, operator))?;
            let (o, x) = (site.operator(operator)?, self.center(i)?);
            if o.spec().flux() != S::TRIVIAL {
                return Ok(c64::ZERO);
            }
            let moved = o.contract(&x, &[1], &[1])?.permute(&[1, 0, 2], x.spec().rows())?;
            complex(&x.inner(&moved)?)
        };
        if sites.len() != self.len() {
            let (what, required, given) = ("sites of a cell", self.len(), sites.len());
            return Err(NetworksError::Length { op: OP, what, required, given });
        }
        (0..self.len()).map(value).collect()
    }

    /// The von Neumann entropy of the bond behind a site.
    ///
    /// # Errors
    /// `SiteOutOfRange`; those of the factorisation.
    pub fn entropy(&self, site: usize) -> Result<f64> {
        self.check_site(site)?;
        number(&self.bonds[site].svd(1, FluxOn::Right)?.s.entropy()?)
    }

    /// The length ξ in sites of the slowest decay `exp(−r / ξ)` of correlations of operators that add this charge.
    ///
    /// # Errors
    /// Those of the iteration.
    pub fn correlation_length(&self, charge: S) -> Result<f64> {
        let leg = self.left[0].spec().legs()[0].dual();
        let spec = Spec::new(vec![leg.clone(), leg.dual()], charge, 1)?;
        if spec.is_empty() {
            return Ok(0.0);
        }
        let generator = t4a_tensor::random::Generator::new(3);
        let start = GradedTensor::random(spec, DType::F64, self.left[0].is_complex(), &generator)?;
        let map = |x: &GradedTensor<S>| -> Result<GradedTensor<S>> {
            let mut x = x.clone();
            for a in &self.left {
                x = transfer(&x, a, a)?;
            }
            Ok(x.repartition(1)?)
        };
        // The state itself has the eigenvalue 1 of charge 0.
        let which = usize::from(charge == S::TRIVIAL);
        let found = arnoldi(map, &start, &KrylovOptions::new().count(which + 1).tolerance(1e-8))?;
        let modulus = found.values.get(which).map_or(0.0, |value| value.norm());
        Ok(-(self.len() as f64) / modulus.ln())
    }
}

/// Most passes over a cell.
const MOST: usize = 10_000;

/// True for two matrices that agree to rounding.
fn same<S: Sector>(x: &GradedTensor<S>, y: &GradedTensor<S>) -> Result<bool> {
    Ok(x.spec() == y.spec() && norm(&x.sub(y)?)? < 1e-14)
}

impl<S: Sector + Serialize> Serialize for UniformMps<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        (&self.left, &self.right, &self.bonds).serialize(serializer)
    }
}

/// The bonds of the three lists of tensors are checked, not that they are isometries.
impl<'de, S: Sector + DeserializeOwned> Deserialize<'de> for UniformMps<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        type List<S> = Vec<GradedTensor<S>>;
        let (left, right, bonds) = <(List<S>, List<S>, List<S>)>::deserialize(deserializer)?;
        let state = Self { left, right, bonds };
        state.check_bonds().map_err(D::Error::custom)?;
        Ok(state)
    }
}

impl<S: Sector> UniformMps<S> {
    /// Rejects lists of tensors that do not fit.
    fn check_bonds(&self) -> Result<()> {
        let n = self.left.len();
        for given in [self.right.len(), self.bonds.len()] {
            if given != n || n == 0 {
                let what = "tensors of a cell";
                return Err(NetworksError::Length { op: OP, what, required: n.max(1), given });
            }
        }
        for i in 0..n {
            let fail = |message: &str| {
                Err(NetworksError::Chain { op: OP, site: i, message: message.into() })
            };
            let (a, b, c) = (&self.left[i], &self.right[i], self.bonds[i].spec().legs());
            if a.spec().legs().len() != 3 || b.spec().legs().len() != 3 || c.len() != 2 {
                return fail("isometries have three legs, bonds two");
            }
            let (next, own) = ((i + 1) % n, self.left[i].spec().legs());
            if self.left[next].spec().legs().len() != 3 || self.right[next].spec().legs().len() != 3
            {
                return fail("isometries have three legs");
            }
            let fits = own[2].contracts_with(&c[0])
                && own[2].contracts_with(&self.left[next].spec().legs()[0])
                && c[1].contracts_with(&self.right[next].spec().legs()[0])
                && b.spec().legs()[2].contracts_with(&self.right[next].spec().legs()[0])
                && own[1] == b.spec().legs()[1];
            if !fits {
                return fail("its bonds do not fit those of its neighbours");
            }
        }
        Ok(())
    }
}
