//! Functions of ITensorMPS, TeNPy, MPSKit and tensor4all, and those of this crate.
//!
//! # ITensorMPS
//! | ITensorMPS | here |
//! |---|---|
//! | `siteinds("S=1/2", n; conserve_qns)` | [`Sites::uniform`](crate::Sites::uniform) of [`spin_half`](crate::sites::spin_half); other charges by [`Site::conserve`](crate::Site::conserve) |
//! | `siteinds("Electron", n)`, `"Fermion"`, `"Boson"`, `"S=1"` | [`electron`](crate::sites::electron), [`fermion`](crate::sites::fermion), [`boson`](crate::sites::boson), [`spin`](crate::sites::spin) |
//! | `os = OpSum(); os += 0.5, "S+", 1, "S-", 2` | [`Sum::add`](crate::Sum::add)`(0.5, [("S+", 0), ("S-", 1)])`; sites count from 0 |
//! | `MPO(os, sites)` | [`Sum::mpo`](crate::Sum::mpo) |
//! | `MPS(sites, states)`, `random_mps(sites, states; linkdims)` | [`Mps::product`](crate::Mps::product), [`Mps::random`](crate::Mps::random) |
//! | `dmrg(H, psi0; nsweeps, maxdim, cutoff, noise)` | [`Dmrg`](crate::Dmrg) with `sweeps`, `max_dims`, `cutoff`, `expansion` |
//! | `dmrg(H, psis, psi0; weight)` | [`Dmrg::excited`](crate::Dmrg::excited), without a weight: lower states are projected out |
//! | `AbstractObserver`, `DMRGObserver` | the callback of [`Dmrg::run`](crate::Dmrg::run), which can stop the search |
//! | `tdvp(H, -im * t, psi; nsite)` | [`Tdvp`](crate::Tdvp) with `sites`; imaginary time by `imaginary` |
//! | `apply(gates, psi; cutoff)` | [`Tebd`](crate::Tebd) of a sum, of order 2 or 4 |
//! | `apply(H, psi; alg)`, `contract` | [`Mps::apply`](crate::Mps::apply) with a [`Method`](crate::Method) |
//! | `apply(A, B)` of operators | [`Mpo::mul`](crate::Mpo::mul), [`Mpo::truncate`](crate::Mpo::truncate) |
//! | `inner(psi, phi)`, `inner(psi', H, psi)`, `norm`, `lognorm` | [`Mps::inner`](crate::Mps::inner), [`Mps::expectation`](crate::Mps::expectation), [`Mps::norm`](crate::Mps::norm), [`Mps::ln_norm_squared`](crate::Mps::ln_norm_squared) |
//! | `expect(psi, "Sz")`, `correlation_matrix(psi, "S+", "S-")` | [`Mps::expect`](crate::Mps::expect), [`Mps::correlation`](crate::Mps::correlation) |
//! | `orthogonalize!`, `truncate!`, `+`, `linkdims`, `flux` | [`Mps::orthogonalise`](crate::Mps::orthogonalise), [`Mps::truncate`](crate::Mps::truncate), [`Mps::add`](crate::Mps::add), [`Mps::bond_dims`](crate::Mps::bond_dims), [`Mps::charge`](crate::Mps::charge) |
//! | `sample(psi)` | [`Mps::sample`](crate::Mps::sample) |
//! | gradients by Zygote rules | [`Mps::energy`](crate::Mps::energy), [`Mps::log_likelihood`](crate::Mps::log_likelihood), [`GroundState`](crate::GroundState), on Burn's tape too |
//!
//! # TeNPy
//! | TeNPy | here |
//! |---|---|
//! | `SpinHalfSite(conserve)`, `SpinSite`, `FermionSite`, `SpinHalfFermionSite`, `BosonSite`, `ClockSite` | the functions of [`sites`](crate::sites) |
//! | `add_onsite`, `add_coupling`, `add_multi_coupling(…, plus_hc)` | [`Sum::add`](crate::Sum::add), [`Sum::add_with_adjoint`](crate::Sum::add_with_adjoint) |
//! | `add_exponentially_decaying_coupling` | [`Sum::add_exponential`](crate::Sum::add_exponential) |
//! | `Square`, `Triangular`, `Honeycomb` lattices, `bc_y='cylinder'` | [`lattice`](crate::lattice) |
//! | `MPS.from_product_state`, `from_desired_bond_dimension` | [`Mps::product`](crate::Mps::product), [`Mps::random`](crate::Mps::random) |
//! | `TwoSiteDMRGEngine`, `SingleSiteDMRGEngine` with a mixer | [`Dmrg`](crate::Dmrg) with [`Update`](crate::Update) |
//! | `trunc_params`: `chi_max`, `svd_min`, `trunc_cut` | `max_dim`, and `cutoff` for the part of the squares |
//! | `orthogonal_to` | [`Dmrg::excited`](crate::Dmrg::excited) |
//! | `dmrg` with `bc='infinite'` | [`Idmrg`](crate::Idmrg) |
//! | `TEBDEngine`, `TwoSiteTDVPEngine`, `SingleSiteTDVPEngine` | [`Tebd`](crate::Tebd), [`Tdvp`](crate::Tdvp) |
//! | `PurificationMPS.from_infiniteT`, `PurificationTEBD` | [`thermal`](crate::thermal), [`Thermal`](crate::Thermal) |
//! | `expectation_value`, `correlation_function`, `term_correlation_function_right` | [`Mps::expect`](crate::Mps::expect), [`Mps::correlation`](crate::Mps::correlation), [`Mps::expect_sum`](crate::Mps::expect_sum) |
//! | `entanglement_entropy`, `entanglement_spectrum(by_charge=True)` | [`Mps::entropies`](crate::Mps::entropies), [`Mps::entanglement_spectrum`](crate::Mps::entanglement_spectrum) |
//! | `sample_measurements`, `overlap`, `canonical_form`, `compress` | [`Mps::sample`](crate::Mps::sample), [`Mps::inner`](crate::Mps::inner), [`Mps::orthogonalise`](crate::Mps::orthogonalise), [`Mps::truncate`](crate::Mps::truncate) |
//! | `MPO.apply(psi, {'compression_method': …})`, `MPO.variance` | [`Mps::apply`](crate::Mps::apply), [`Mps::variance`](crate::Mps::variance) |
//!
//! # MPSKit
//! | MPSKit | here |
//! |---|---|
//! | `FiniteMPS`, `FiniteMPO`, `FiniteMPOHamiltonian` | [`Mps`](crate::Mps), [`Mpo`](crate::Mpo) of a [`Sum`](crate::Sum) |
//! | `find_groundstate(ψ, H, DMRG2())`, `DMRG()` | [`Dmrg`](crate::Dmrg) with [`Update`](crate::Update) |
//! | `find_groundstate(ψ, H, IDMRG2())` | [`Idmrg`](crate::Idmrg) of an [`InfiniteMpo`](crate::InfiniteMpo) |
//! | `InfiniteMPS`, `find_groundstate(ψ, H, VUMPS())` | [`UniformMps`](crate::UniformMps), [`Vumps`](crate::Vumps) |
//! | `excitations(H, FiniteExcited(), ψ)` | [`Dmrg::excited`](crate::Dmrg::excited) |
//! | `timestep`, `time_evolve` with `TDVP()`, `TDVP2()` | [`Tdvp`](crate::Tdvp) |
//! | `expectation_value`, `correlator`, `entropy`, `entanglement_spectrum`, `variance` | [`Mps::expect`](crate::Mps::expect), [`Mps::correlation`](crate::Mps::correlation), [`Mps::entropies`](crate::Mps::entropies), [`Mps::entanglement_spectrum`](crate::Mps::entanglement_spectrum), [`Mps::variance`](crate::Mps::variance) |
//! | `approximate(ψ, (O, ψ₀))`, `changebonds(ψ, SvdCut())` | [`Mps::apply`](crate::Mps::apply) with [`Method::Variational`](crate::Method::Variational), [`Mps::truncate`](crate::Mps::truncate) |
//! | `propagator(ψ, z, H, DynamicalDMRG())` | the linear system of [`GroundState::expectation`](crate::GroundState::expectation) |
//!
//! # tensor4all
//! [`cross`](crate::cross) has the options of TensorCrossInterpolation.jl in a table of its own.
//!
//! | tensor4all | here |
//! |---|---|
//! | `crossinterpolate2`, `integrate`, `TensorTrain`, `sum`, `compress!` | [`interpolate`](crate::cross::interpolate), [`integrate`](fn@crate::cross::integrate), [`TensorTrain`](crate::train::TensorTrain) and its methods |
//! | `MPS(tt)`, `TensorTrain(mps)` of TCIITensorConversion.jl | [`TensorTrain::to_mps`](crate::train::TensorTrain::to_mps), [`TensorTrain::from_mps`](crate::train::TensorTrain::from_mps) |
//! | `DiscretizedGrid`, `InherentDiscreteGrid`, `quantics_to_origcoord` | [`Grid`](crate::quantics::Grid) and its methods |
//! | `quanticscrossinterpolate` | [`quantics::interpolate`](fn@crate::quantics::interpolate) |
//! | `quanticsfouriermpo`, `fouriertransform` | [`fourier`](crate::quantics::fourier) |
//! | `affine_transform_mpo`, `shiftaxis`, `reverseaxis` of Quantics.jl | [`affine`](crate::quantics::affine), [`shift`](crate::quantics::shift), [`flip`](crate::quantics::flip) |
//! | `contract(a, b; algorithm=:zipup)` | [`TrainOperator::apply_zip_up`](crate::train::TrainOperator::apply_zip_up), [`TrainOperator::apply_compressed`](crate::train::TrainOperator::apply_compressed) |
//! | elementwise products of Quantics.jl | [`TensorTrain::hadamard`](crate::train::TensorTrain::hadamard) |
