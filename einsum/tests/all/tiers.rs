//! Requirements for a foreign element type: its arithmetic only, then a batched matrix product, then a contraction. The
//! route of the result names the tier used.

use std::sync::atomic::{AtomicUsize, Ordering};

use t4a_algebra::{MaxPlus, Scalar, Semiring, Standard};
use t4a_einsum::{
    BgemmBackend, BgemmShape, Einsum, EinsumError, ProductBackends, Result, TensordotAxes,
    TensordotBackend,
};
use t4a_tensor::Tensor;
use t4a_tensor::route::Path as Route;

/// Integers modulo 97, an element type defined outside of this workspace's crates.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Residue(u8);
impl Scalar for Residue {}

#[derive(Clone, Copy)]
struct Mod97;
impl Semiring<Residue> for Mod97 {
    const ZERO: Residue = Residue(0);
    const ONE: Residue = Residue(1);
    fn add(a: Residue, b: Residue) -> Residue {
        Residue(((a.0 as u32 + b.0 as u32) % 97) as u8)
    }
    fn mul(a: Residue, b: Residue) -> Residue {
        Residue(((a.0 as u32 * b.0 as u32) % 97) as u8)
    }
}

/// A matrix product that counts its calls.
#[derive(Default)]
struct Bgemm(AtomicUsize);
impl BgemmBackend<Residue> for Bgemm {
    fn bgemm(&self, s: BgemmShape, a: &[Residue], b: &[Residue], c: &mut [Residue]) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        for p in 0..s.batch {
            for i in 0..s.m {
                for j in 0..s.n {
                    let term = |k: usize| {
                        a[(p * s.m + i) * s.k + k].0 as u32 * b[(p * s.k + k) * s.n + j].0 as u32
                    };
                    let sum: u32 = (0..s.k).map(term).sum();
                    c[(p * s.m + i) * s.n + j] = Residue((sum % 97) as u8);
                }
            }
        }
        Ok(())
    }
}

/// A contraction of matrices over one index in one call; returns `None` for all others.
#[derive(Default)]
struct Dot(AtomicUsize);
impl TensordotBackend<Residue> for Dot {
    fn tensordot(
        &self,
        axes: &TensordotAxes,
        a: &Tensor<Residue>,
        b: &Tensor<Residue>,
    ) -> Result<Option<Tensor<Residue>>> {
        let ([], [i], [j], [(ka, kb)]) =
            (&axes.batch[..], &axes.left[..], &axes.right[..], &axes.sum[..])
        else {
            return Ok(None);
        };
        self.0.fetch_add(1, Ordering::Relaxed);
        let (m, n, k) = (a.shape()[*i], b.shape()[*j], a.shape()[*ka]);
        let (a, b) = (a.permute(&[*i, *ka])?, b.permute(&[*kb, *j])?);
        let at = |x: &Tensor<Residue>, r, c| x.get(&[r, c]).map_or(0, |r| r.0 as u32);
        let element = |p: usize| {
            let sum: u32 = (0..k).map(|l| at(&a, p / n, l) * at(&b, l, p % n)).sum();
            Residue((sum % 97) as u8)
        };
        Ok(Some(Tensor::from_fn(&[m, n], element)?))
    }
}

fn residues(shape: &[usize], seed: usize) -> Tensor<Residue> {
    Tensor::from_fn(shape, |i| Residue(((i * 31 + seed * 7) % 97) as u8)).unwrap()
}

#[test]
fn each_tier_computes_the_same_and_says_so() -> Result<()> {
    let (a, b) = (residues(&[5, 4, 6], 1), residues(&[6, 3, 5], 2));
    let (bgemm, dot) = (Bgemm::default(), Dot::default());
    // The first contraction sums two labels, the second one.
    for (text, shapes, user_dot) in [("ijk,kli->jl", [0, 0], false), ("jk,kl->jl", [1, 1], true)] {
        let (a, b) = if shapes[0] == 0 {
            (a.clone(), b.clone())
        } else {
            (a.select(0, 2)?, b.select(2, 1)?)
        };
        let plan = Einsum::new(text)?.plan(&[a.shape(), b.shape()], 1)?;
        let plain = plan.contract::<Mod97, Residue>(&[&a, &b])?;
        assert_eq!(plain.route().path, Route::GemmSemiring);
        let with = ProductBackends { bgemm: Some(&bgemm as &dyn BgemmBackend<_>), tensordot: None };
        let second = plan.contract_with::<Mod97, Residue>(&[&a, &b], &with)?;
        assert_eq!(second.route().path, Route::BgemmUser);
        let with =
            ProductBackends { bgemm: Some(&bgemm as &dyn BgemmBackend<_>), tensordot: Some(&dot) };
        let third = plan.contract_with::<Mod97, Residue>(&[&a, &b], &with)?;
        assert_eq!(
            third.route().path,
            if user_dot { Route::TensordotUser } else { Route::BgemmUser }
        );
        assert_eq!(plain.to_vec()?, second.to_vec()?);
        assert_eq!(plain.to_vec()?, third.to_vec()?);
    }
    assert_eq!(bgemm.0.into_inner(), 3);
    assert_eq!(dot.0.into_inner(), 1);
    Ok(())
}

#[test]
fn a_product_of_the_wrong_shape_is_refused() -> Result<()> {
    struct Wrong;
    impl TensordotBackend<Residue> for Wrong {
        fn tensordot(
            &self,
            _: &TensordotAxes,
            a: &Tensor<Residue>,
            _: &Tensor<Residue>,
        ) -> Result<Option<Tensor<Residue>>> {
            Ok(Some(a.clone()))
        }
    }
    let (a, b) = (residues(&[2, 3], 1), residues(&[3, 4], 2));
    let plan = Einsum::new("ij,jk")?.plan(&[&[2, 3], &[3, 4]], 1)?;
    let with = ProductBackends { tensordot: Some(&Wrong as &dyn TensordotBackend<_>), bgemm: None };
    let error = plan.contract_with::<Mod97, Residue>(&[&a, &b], &with).unwrap_err();
    assert!(matches!(error, EinsumError::Backend(_)));
    Ok(())
}

/// Row-major operands whose contraction is one matrix product skip the grouping of labels; a backend that declines every
/// product does not.
#[test]
fn direct_products_are_those_of_grouped_labels() -> Result<()> {
    struct Declines;
    impl TensordotBackend<f64> for Declines {
        fn tensordot(
            &self,
            _: &TensordotAxes,
            _: &Tensor<f64>,
            _: &Tensor<f64>,
        ) -> Result<Option<Tensor<f64>>> {
            Ok(None)
        }
    }
    let with =
        ProductBackends { tensordot: Some(&Declines as &dyn TensordotBackend<_>), bgemm: None };
    let sizes = |term: &str| -> Vec<usize> {
        term.chars().map(|c| if c == 'z' { 1 } else { 2 + (c as usize) % 5 }).collect()
    };
    for text in [
        "ij,jk->ik",
        "ji,jk->ik",
        "ij,kj->ik",
        "ji,kj->ik",
        "bij,bjk->bik",
        "bji,bkj->bik",
        "abij,abjk->abik",
        "ijk,kl->ijl",
        "ijk,jkl->il",
        "i,ij->j",
        "ij,j->i",
        "i,i->",
        "izj,zjk->ik",
        "zij,zjk->zik",
        "bi,bi->b",
        "ij,jk->ki",
        "bij,jbk->bik",
        "ii,ij->j",
    ] {
        let terms: Vec<&str> = text.split("->").next().unwrap_or("").split(',').collect();
        let [a, b] = [0, 1].map(|i| {
            let shape = sizes(terms[i]);
            let numel: usize = shape.iter().product();
            let values = (0..numel).map(|x| ((7 * x + 3 * i) % 11) as f64 / 8.0 - 0.5).collect();
            Tensor::from_vec(values, &shape)
        });
        let (a, b) = (a?, b?);
        let plan = Einsum::new(text)?.plan(&[a.shape(), b.shape()], 8)?;
        let direct = plan.contract::<Standard, f64>(&[&a, &b])?;
        let grouped = plan.contract_with::<Standard, f64>(&[&a, &b], &with)?;
        assert_eq!(direct.shape(), grouped.shape(), "{text}");
        assert_eq!(direct.to_vec()?, grouped.to_vec()?, "{text}");
        assert_eq!(direct.route(), grouped.route(), "{text}");
        let best = plan.contract::<MaxPlus, f64>(&[&a, &b])?;
        let other = plan.contract_with::<MaxPlus, f64>(&[&a, &b], &with)?;
        assert_eq!(best.to_vec()?, other.to_vec()?, "{text}");
    }
    Ok(())
}
