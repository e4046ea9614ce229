//! Networks on the square lattice: infinite ones by corner transfer matrices (CTMRG), iPEPS with gradients, finite grids
//! by boundary states.
//!
//! ```text
//!   bulk tensor [left, up, right, down]            environment of a site, clockwise from the left
//!          up                                      corner0 ─ edge1 ─ corner1
//!          │                                          │        │        │
//!   left ──a── right                                edge0 ──── a ──── edge2
//!          │                                          │        │        │
//!         down                                     corner3 ─ edge3 ─ corner2
//! ```
//!
//! | task | |
//! |---|---|
//! | one real tensor with all symmetries of the square | [`Symmetric`], [`SymmetricSearch`] |
//! | a unit cell of any tensors | [`Cell`], [`CellSearch`] |
//! | states: bulk tensors of two layers, density matrices | [`layers`] |
//! | energy and gradient of an iPEPS, also as a differentiable operation | [`SymmetricEnergy`], [`energy()`] |
//! | energy and gradient of an iPEPS of a unit cell, also as a differentiable operation | [`CellEnergy`], [`cell_energy()`] |
//! | variational optimisation by L-BFGS, of one tensor or of a unit cell | [`PepsSearch`] |
//! | finite grids | [`Grid`] |
//!
//! ```text
//! layers       bulk tensors of a state and its conjugate, group averages
//! options      options and reports of CTMRG
//! symmetric    CTMRG of one tensor: steps, free energy, density matrices
//! fixed        one step about a fixed point, with its derivatives
//! subspace     derivatives of the subspaces that projectors keep
//! energy       energy of a symmetric iPEPS, its gradient by the fixed point
//! variational  energies as functions of the tensors of a state
//! metric       overlaps of changes of a state, which precondition gradients
//! operation    energies as operations on tapes
//! optimise     L-BFGS on the energy
//! implicit     gradients through fixed points
//! cell         CTMRG of a unit cell by moves in four directions, its energy and gradient
//! data         serde of environments
//! grid         finite grids, row by row
//! ```
//!
//! # Derivatives
//! Every function over arrays `A` is differentiable: [`FixedStep::apply`] is a step of CTMRG whose projectors have the
//! derivative of the subspace that they keep. At the fixed point x = f(a, x) of the environment the cotangent solves
//! `λ = ∂E/∂x + λ ∂f/∂x` (implicit differentiation), and nothing of the iteration is stored. [`energy()`] and
//! [`cell_energy()`] do so for any array type, tapes included, as one operation; [`Recorded`](crate::tape::Recorded) is the
//! tape of the engine.
//!
//! References: T. Nishino, K. Okunishi, *Corner transfer matrix renormalization group method* (1996); P. Corboz,
//! T. Rice, M. Troyer (2014) and M. Fishman, L. Vanderstraeten, V. Zauner-Stauber, J. Haegeman, F. Verstraete (2018)
//! for projectors; H.-J. Liao, J.-G. Liu, L. Wang, T. Xiang, *Differentiable programming tensor networks* (2019);
//! A. Francuz, N. Schuch, B. Vanhecke, *Stable and efficient differentiation of tensor network algorithms* (2023).

mod cell;
mod data;
mod energy;
mod fixed;
mod grid;
mod implicit;
pub mod layers;
mod metric;
mod operation;
mod optimise;
mod options;
mod subspace;
mod symmetric;
mod variational;

pub use cell::{Cell, CellEnergy, CellEnvironment, CellEvaluated, CellSearch, CellStep};
pub use energy::{Evaluated, SymmetricEnergy, random_state};
pub use fixed::FixedStep;
pub use grid::{Contracted, Grid};
pub use operation::{cell_energy, energy};
pub use optimise::{PepsOptions, PepsSearch};
pub use options::{CtmOptions, CtmReport};
pub use symmetric::{Symmetric, SymmetricSearch};
pub use variational::PepsEnergy;
