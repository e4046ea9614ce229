//! Conventions of fermionic tensors, with a worked example.
//!
//! A tensor is an ordered product of its legs, and tensors are even. An outgoing leg is a ket, an incoming leg a bra;
//! the exchange of two odd legs gives a factor −1. All signs follow from these rules and are part of the plans of the
//! operations. Values do not depend on the order in which a network is contracted, and no Jordan–Wigner strings are
//! needed.
//!
//! | task | convention |
//! |---|---|
//! | amplitudes of a state | entry `[n₁, n₂, …]` is that of `c₁†^n₁ c₂†^n₂ … \|0⟩`, in the order of the legs; [`permute`] has the signs |
//! | contraction | `in` of the left operand with `out` of the right one: no sign; `out` with `in`: −1 for an odd pair; several pairs are nested |
//! | operator | [`operator`] takes matrix elements in the basis of amplitudes and includes the signs of the columns; [`from_dense`] and [`from_blocks`] take entries as they are |
//! | hopping gate `c₁†c₂ + c₂†c₁` | elements `⟨10\|h\|01⟩ = ⟨01\|h\|10⟩ = 1`, applied to any two legs by a contraction |
//! | matrix product operator | permute an operator to `[out₁, in₁, out₂, in₂]` and factor it: the bond is even and odd, each tensor even |
//! | odd operator, as `c†` alone | an even tensor with one more leg of dimension 1 and odd charge |
//! | trace of a map | [`trace`] closes a loop of fermions: the supertrace, −1 for odd states, in both directions. The trace is that of `a.twist(&rows)`, with all of its row legs |
//! | inner product of entries | [`inner`], [`norm`]: `Σ a* b`, no signs, for states with legs in any direction |
//! | ⟨a\|b⟩ as a network | [`dagger`] of a, contracted with `b.twist(&legs)`, the open legs of b that point **in** |
//! | left isometry `U†U = 1` (svd, qr) | `u.dagger()` with `u.twist(&legs)`, the outer legs of u that point **in**; none for outgoing ones |
//! | right isometry `V V† = 1` | `v.twist(&legs)` with `v.dagger()`, the outer legs of v that point **out** |
//! | gradient of ⟨a\|H\|a⟩ by a* | contract the network without a*, then [`twist`] the legs of the result that point **in**: an effective Hamiltonian is Hermitian for [`inner`] only then |
//! | bosons | the same formulas; [`twist`] is the identity |
//!
//! An environment is a network without one tensor. Its incoming legs form closed loops with that tensor, and the
//! bosonic formula lacks the signs of these loops: an effective Hamiltonian without the final twist has other
//! eigenvalues, and no error is raised. [`lanczos`](t4a_linalg::krylov::lanczos) rejects such an operator if it is
//! not Hermitian.
//!
//! ```
//! use t4a_diff::check;
//! use t4a_linalg::krylov::Vector;
//! use t4a_structured::{Direction, FermionNumber, FluxOn, Forbidden, GradedTensor, Leg, Spec};
//! use t4a_tensor::DType;
//! use t4a_tensor::random::Generator;
//! # use t4a_structured::StructuredError;
//!
//! let site = Leg::new([0, 1].map(|n| (FermionNumber(n), 1)), Direction::Out)?;
//! let zero = FermionNumber(0);
//! let close = |a: &GradedTensor<_>, b: &GradedTensor<_>| -> Result<bool, StructuredError> {
//!     Ok(Vector::norm(&a.sub(&b.repartition(a.spec().rows())?)?)? < 1e-12)
//! };
//!
//! // Hopping and repulsion of two sites, −c₁†c₂ − c₂†c₁ + 2 n₁n₂: elements ⟨n₁ n₂|h|m₁ m₂⟩.
//! let h = check::array(&[2, 2, 2, 2], |k| match k {
//!     0b0110 | 0b1001 => -1.0,
//!     0b1111 => 2.0,
//!     _ => 0.0,
//! });
//! let h = GradedTensor::operator(&[site.clone(), site.clone()], zero, &h, None, Forbidden::Error(0.0))?;
//!
//! // Three sites, two fermions. The operator on sites 1 and 3, without a string for site 2.
//! let spec = Spec::new(vec![site.clone(); 3], FermionNumber(2), 1)?;
//! let psi = GradedTensor::random(spec, DType::F64, false, &Generator::new(1))?;
//! let moved = h.contract(&psi, &[2, 3], &[0, 2])?.permute(&[0, 2, 1], 1)?;
//! let amplitudes = |x: &GradedTensor<_>| Ok::<_, StructuredError>(check::elements(&x.to_dense()?.0));
//! // |110⟩ becomes +|011⟩: c₃†c₁ c₁†c₂†|0⟩ = c₃†c₂†|0⟩ = −c₂†c₃†|0⟩, times −1.
//! assert!((amplitudes(&moved)?[0b011] - amplitudes(&psi)?[0b110]).abs() < 1e-12);
//! assert!((amplitudes(&moved)?[0b101] - 2.0 * amplitudes(&psi)?[0b101]).abs() < 1e-12);
//!
//! // The same as two tensors of a matrix product operator, contracted one after the other.
//! let mpo = h.permute(&[0, 2, 1, 3], 2)?.svd(2, FluxOn::Right)?;
//! let (w1, w3) = (mpo.u.scale_columns(&mpo.s)?, mpo.vh);
//! let first = w1.contract(&psi, &[1], &[0])?; // out₁, bond, site 2, site 3
//! let both = w3.contract(&first, &[0, 2], &[1, 3])?; // out₃, out₁, site 2
//! assert!(close(&moved, &both.permute(&[1, 2, 0], 1)?)?);
//!
//! // A state as a network: ψ = U S Vᴴ.
//! let svd = psi.svd(1, FluxOn::Left)?;
//! let (u, v) = (svd.u, svd.vh);
//! // Left isometry: the site points out, no twist.
//! let one = GradedTensor::identity(&[u.spec().legs()[1].dual()], DType::F64)?;
//! assert!(close(&u.dagger()?.contract(&u, &[1], &[0])?, &one)?);
//! // Right isometry: sites that point out are twisted.
//! let one = GradedTensor::identity(&[v.spec().legs()[0].clone()], DType::F64)?;
//! let product = v.twist(&[1, 2])?.contract(&v.dagger()?, &[1, 2], &[1, 0])?;
//! assert!(close(&product, &one)?);
//!
//! // Trace and supertrace of the number operator's exponential on one site.
//! let n = check::array(&[2, 2], |k| if k == 3 { 1.0 } else { 0.0 });
//! let exp = GradedTensor::operator(&[site], zero, &n, None, Forbidden::Error(0.0))?.exp()?;
//! let e = 1f64.exp();
//! let number = |x: GradedTensor<_>| check::elements(x.re())[0];
//! assert!((number(exp.twist(&[0])?.trace(&[(0, 1)])?) - (1.0 + e)).abs() < 1e-12);
//! assert!((number(exp.trace(&[(0, 1)])?) - (1.0 - e)).abs() < 1e-12);
//! # Ok::<(), StructuredError>(())
//! ```
//!
//! Effective Hamiltonian of the tensor in the middle: the environments are contracted with their own signs, and one
//! twist of the result makes the map Hermitian.
//!
//! ```
//! use t4a_diff::check;
//! use t4a_linalg::krylov::{KrylovOptions, Vector, lanczos};
//! use t4a_structured::{Direction, FermionNumber, FluxOn, Forbidden, GradedTensor, Leg, Spec};
//! use t4a_tensor::DType;
//! use t4a_tensor::random::Generator;
//! # use t4a_structured::StructuredError;
//!
//! // −Σ (c†c + h.c.) on the three bonds of a triangle, two fermions: the lowest energy is −1.
//! let site = Leg::new([0, 1].map(|n| (FermionNumber(n), 1)), Direction::Out)?;
//! let h = check::array(&[2, 2, 2, 2], |k| if [0b0110, 0b1001].contains(&k) { -1.0 } else { 0.0 });
//! let pair = [site.clone(), site.clone()];
//! let h = GradedTensor::operator(&pair, FermionNumber(0), &h, None, Forbidden::Error(0.0))?;
//! let apply = |psi: &GradedTensor<FermionNumber>| -> Result<_, StructuredError> {
//!     let one = h.contract(psi, &[2, 3], &[0, 1])?.permute(&[0, 1, 2], 1)?;
//!     let two = h.contract(psi, &[2, 3], &[1, 2])?.permute(&[2, 0, 1], 1)?;
//!     let three = h.contract(psi, &[2, 3], &[0, 2])?.permute(&[0, 2, 1], 1)?;
//!     one.add(&two)?.add(&three)
//! };
//! let spec = Spec::new(vec![site; 3], FermionNumber(2), 1)?;
//! let psi = GradedTensor::random(spec, DType::F64, false, &Generator::new(2))?;
//! // ψ = c Vᴴ with a basis V of all states of sites 2 and 3 that occur: c has a leg that points in.
//! let svd = psi.svd(1, FluxOn::Left)?;
//! let c = svd.u.scale_columns(&svd.s)?;
//! let effective = |c: &GradedTensor<FermionNumber>| -> Result<_, StructuredError> {
//!     let image = apply(&c.contract(&svd.vh, &[1], &[0])?.repartition(1)?)?;
//!     // Close the network but for c*: the bond of the result points in.
//!     image.contract(&svd.vh.dagger()?, &[1, 2], &[1, 0])?.twist(&[1])?.repartition(1)
//! };
//! let [x, y] = [1, 2].map(|seed| Vector::random(&c, seed).unwrap());
//! let (left, right) = (Vector::inner(&x, &effective(&y)?)?, Vector::inner(&effective(&x)?, &y)?);
//! assert!((left - right).norm() < 1e-12);
//! // An upper bound of the energy, which the best environment makes exact.
//! let found = lanczos(effective, &c, &KrylovOptions::new())?;
//! let exact = lanczos(apply, &psi, &KrylovOptions::new())?;
//! assert!((exact.values[0] + 1.0).abs() < 1e-9 && found.values[0] > exact.values[0] - 1e-9);
//! # Ok::<(), StructuredError>(())
//! ```
//!
//! [`permute`]: crate::GradedTensor::permute
//! [`operator`]: crate::GradedTensor::operator
//! [`from_dense`]: crate::GradedTensor::from_dense
//! [`from_blocks`]: crate::GradedTensor::from_blocks
//! [`trace`]: crate::GradedTensor::trace
//! [`inner`]: crate::GradedTensor::inner
//! [`norm`]: crate::GradedTensor::norm
//! [`dagger`]: crate::GradedTensor::dagger
//! [`twist`]: crate::GradedTensor::twist
//!
//! References: P. Corboz, G. Vidal (2009); N. Bultinck, D. J. Williamson, J. Haegeman, F. Verstraete, *Fermionic matrix
//! product states and one-dimensional topological phases* (2017), for ordered products of graded spaces.
