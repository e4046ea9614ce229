//! Recurrent layers on engine tensors: blocks of sequences, each executed over all steps.

use t4a_algebra::gemm::{MatMut, MatRef, Parallelism, Product};
use t4a_algebra::parallel;
use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, Semiring, Standard};
use t4a_diff::{Array, Eager};
use t4a_tensor::{Result, Tensor};

use crate::cell::Cell;
use crate::operand::{computed_in, elements, narrow, wide};
use crate::recurrent::RecurrentOperands;

/// Number of sequences in a block. Constant, so that the product shapes do not depend on the number of threads.
const BLOCK: usize = 16;

/// For each block, rows `BLOCK·i …` of every step: disjoint mutable slices of `[n, batch, width]`.
fn blocks<T>(x: &mut [T], batch: usize, width: usize) -> Vec<Vec<&mut [T]>> {
    let mut all: Vec<Vec<&mut [T]>> = (0..batch.div_ceil(BLOCK)).map(|_| Vec::new()).collect();
    for step in x.chunks_exact_mut(batch * width) {
        for (block, rows) in all.iter_mut().zip(step.chunks_mut(BLOCK * width)) {
            block.push(rows);
        }
    }
    all
}

/// `C ← A·B`, or `C ← C + A·Bᵀ`.
fn product<T>(a: &[T], b: &[T], c: &mut [T], inner: usize, transposed: bool, all: bool)
where
    T: Float,
    Standard: Semiring<T>,
{
    let rows = a.len() / inner;
    let cols = c.len() / rows;
    let b = match transposed {
        true => MatRef::strided(b, 0, (inner, cols), (1, inner as isize)),
        false => MatRef::row_major(b, inner, cols),
    };
    let c = MatMut::row_major(c, rows, cols);
    let product = MatRef::row_major(a, rows, inner).and_then(|a| Product::new(a, b?, c?));
    let product = product.unwrap_or_else(|error| unreachable!("{error}"));
    let threads = if all { Parallelism::Threads(0) } else { Parallelism::Seq };
    product.accumulate(transposed).parallelism(threads).run::<Standard>();
}

/// h of all steps, and c for an LSTM.
pub(crate) fn forward(
    cell: Cell,
    reverse: bool,
    x: &RecurrentOperands<Eager>,
) -> Result<Vec<Eager>> {
    let shape = x.z.shape();
    let (n, batch) = (shape[0], shape[1]);
    let width = x.weight.shape()[0];
    let out = [n, batch, width];
    let dtype = x.z.dtype();
    computed_in!("recurrent", dtype, T => {
        let [z, weight] = wide::<T, 2>([&x.z, &x.weight])?;
        let bias = x.bias.as_ref().map(|bias| wide::<T, 1>([bias])).transpose()?;
        let first = x.first.iter().map(|x| wide::<T, 1>([x])).collect::<Result<Vec<_>>>()?;
        let mut states: Vec<Tensor<T>> =
            (0..cell.states()).map(|_| Tensor::zeros(&out)).collect::<Result<_>>()?;
        if n * batch > 0 {
            let mut parts: Vec<Vec<Vec<&mut [T]>>> = states
                .iter_mut()
                .map(|x| Ok(blocks(x.as_mut_slice()?, batch, width)))
                .collect::<Result<_>>()?;
            let c = if cell.states() == 2 { parts.pop() } else { None };
            let h = parts.pop().unwrap_or_default();
            let c: Vec<Option<Vec<&mut [T]>>> = match c {
                Some(c) => c.into_iter().map(Some).collect(),
                None => h.iter().map(|_| None).collect(),
            };
            let mut runs: Vec<_> = h.into_iter().zip(c).collect();
            let parallel = parallel::worthwhile(n * batch * width, cell.gates() * (8 + width));
            let alone = runs.len() == 1;
            parallel::for_each_mut(&mut runs, parallel && !alone, |i, (h, c)| {
                dispatch(RecurrentForward {
                    cell,
                    reverse,
                    alone,
                    width,
                    z: elements(&z),
                    weight: elements(&weight),
                    bias: bias.as_ref().map(|[bias]| elements(bias)),
                    first: first.iter().map(|[x]| &elements(x)[i * BLOCK * width..]).collect(),
                    from: i * BLOCK,
                    batch,
                    h,
                    c: c.as_mut(),
                });
            });
        }
        states.into_iter().map(|x| Ok(narrow(x, &out, dtype)?.into())).collect()
    })
}

struct RecurrentForward<'a, 'b, T> {
    cell: Cell,
    reverse: bool,
    /// True if this is the only block; its products may then be multithreaded.
    alone: bool,
    width: usize,
    z: &'a [T],
    weight: &'a [T],
    bias: Option<&'a [T]>,
    first: Vec<&'a [T]>,
    /// Index of the first sequence of the block; `batch` is the total.
    from: usize,
    batch: usize,
    h: &'b mut [&'a mut [T]],
    c: Option<&'b mut Vec<&'a mut [T]>>,
}

impl<T: Float> Loop for RecurrentForward<'_, '_, T>
where
    Standard: Semiring<T>,
{
    type Output = ();
    #[inline(always)]
    fn run(mut self) {
        let (n, width) = (self.h.len(), self.width);
        let gates = self.cell.gates() * width;
        let rows = self.h[0].len() / width;
        let mut u = vec![T::ZERO; rows * gates];
        let mut h = self.first[0][..rows * width].to_vec();
        let mut c = self.first.get(1).map_or(Vec::new(), |c| c[..rows * width].to_vec());
        for k in 0..n {
            let t = if self.reverse { n - 1 - k } else { k };
            product(&h, self.weight, &mut u, width, false, self.alone);
            let z = &self.z[(t * self.batch + self.from) * gates..][..rows * gates];
            for row in 0..rows {
                let (z, u) = (&z[row * gates..][..gates], &mut u[row * gates..][..gates]);
                if let Some(bias) = self.bias {
                    u.iter_mut().zip(bias).for_each(|(u, &b)| *u = u.add(b));
                }
                let at = row * width..(row + 1) * width;
                let c = if c.is_empty() { &mut [][..] } else { &mut c[at.clone()] };
                step(self.cell, z, u, &mut h[at], c);
            }
            self.h[t].copy_from_slice(&h);
            if let Some(states) = &mut self.c {
                states[t].copy_from_slice(&c);
            }
        }
    }
}

/// The cell of one row; `h` and `c` are updated in place.
#[inline(always)]
fn step<T: Float>(cell: Cell, z: &[T], u: &[T], h: &mut [T], c: &mut [T]) {
    let w = h.len();
    let p = |gate: usize, i: usize| z[gate * w + i].add(u[gate * w + i]);
    match cell {
        Cell::Tanh => {
            for i in 0..w {
                h[i] = p(0, i).tanh();
            }
        }
        Cell::Gated => {
            for i in 0..w {
                let (keep, new) = (p(0, i).sigmoid(), p(1, i).tanh());
                h[i] = h[i].sub(new).mul_add(keep, new);
            }
        }
        Cell::Gru => {
            for i in 0..w {
                let (reset, keep) = (p(0, i).sigmoid(), p(1, i).sigmoid());
                let new = reset.mul_add(u[2 * w + i], z[2 * w + i]).tanh();
                h[i] = h[i].sub(new).mul_add(keep, new);
            }
        }
        Cell::Lstm => {
            for i in 0..w {
                let (input, forget) = (p(0, i).sigmoid(), p(1, i).sigmoid());
                let (new, output) = (p(2, i).tanh(), p(3, i).sigmoid());
                c[i] = forget.mul_add(c[i], input.mul(new));
                h[i] = output.mul(c[i].tanh());
            }
        }
    }
}

/// Cotangents of z and u of all steps, which are one array but for a GRU, and of the initial states.
pub(crate) fn back(
    cell: Cell,
    reverse: bool,
    x: &RecurrentOperands<Eager>,
    u: &Eager,
    states: &[&Eager],
    given: &[Eager],
) -> Result<([Eager; 2], Vec<Eager>)> {
    let shape = x.z.shape();
    let (n, batch) = (shape[0], shape[1]);
    let width = x.weight.shape()[0];
    let dtype = x.z.dtype();
    computed_in!("recurrent", dtype, T => {
        let [z, u, weight, h, of_h] =
            wide::<T, 5>([&x.z, u, &x.weight, states[0], &given[0]])?;
        let c = match (states.get(1), given.get(1)) {
            (Some(c), Some(g)) => Some(wide::<T, 2>([c, g])?),
            _ => None,
        };
        let first = x.first.iter().map(|x| wide::<T, 1>([x])).collect::<Result<Vec<_>>>()?;
        let mut of_z = Tensor::zeros(&shape)?;
        let mut of_u = (cell == Cell::Gru).then(|| Tensor::zeros(&shape)).transpose()?;
        let one = [1, batch, width];
        let mut of_first: Vec<Tensor<T>> =
            (0..cell.states()).map(|_| Tensor::zeros(&one)).collect::<Result<_>>()?;
        if n * batch > 0 {
            let gates = cell.gates() * width;
            let z_parts = blocks(of_z.as_mut_slice()?, batch, gates);
            let u_parts: Vec<Option<Vec<&mut [T]>>> = match &mut of_u {
                Some(of_u) => {
                    blocks(of_u.as_mut_slice()?, batch, gates).into_iter().map(Some).collect()
                }
                None => z_parts.iter().map(|_| None).collect(),
            };
            let firsts = of_first
                .iter_mut()
                .map(|x| Ok(blocks(x.as_mut_slice()?, batch, width)))
                .collect::<Result<Vec<_>>>()?;
            let mut of_blocks: Vec<Vec<&mut [T]>> = z_parts.iter().map(|_| Vec::new()).collect();
            for parts in firsts {
                for (block, rows) in of_blocks.iter_mut().zip(parts) {
                    block.extend(rows);
                }
            }
            let mut runs: Vec<_> = z_parts.into_iter().zip(u_parts).zip(of_blocks).collect();
            let parallel = parallel::worthwhile(n * batch * width, cell.gates() * (8 + width));
            let alone = runs.len() == 1;
            parallel::for_each_mut(&mut runs, parallel && !alone, |i, ((of_z, of_u), of_first)| {
                dispatch(RecurrentBackward {
                    cell,
                    reverse,
                    alone,
                    sizes: [batch, width, i * BLOCK],
                    z: elements(&z),
                    u: elements(&u),
                    weight: elements(&weight),
                    h: elements(&h),
                    of_h: elements(&of_h),
                    c: c.as_ref().map(|[c, g]| [elements(c), elements(g)]),
                    first: first.iter().map(|[x]| elements(x)).collect(),
                    of_z,
                    of_u: of_u.as_deref_mut(),
                    of_first,
                });
            });
        }
        let of_z: Eager = narrow(of_z, &shape, dtype)?.into();
        let of_u = match of_u {
            Some(of_u) => narrow(of_u, &shape, dtype)?.into(),
            None => of_z.clone(),
        };
        let of_first: Vec<Eager> =
            of_first.into_iter().map(|x| Ok(narrow(x, &one, dtype)?.into())).collect::<Result<_>>()?;
        Ok(([of_z, of_u], of_first))
    })
}

struct RecurrentBackward<'a, 'b, T> {
    cell: Cell,
    reverse: bool,
    alone: bool,
    /// Batch, width, index of the first sequence of the block.
    sizes: [usize; 3],
    z: &'a [T],
    u: &'a [T],
    weight: &'a [T],
    h: &'a [T],
    of_h: &'a [T],
    c: Option<[&'a [T]; 2]>,
    first: Vec<&'a [T]>,
    of_z: &'b mut [&'a mut [T]],
    /// If it differs from that of z.
    of_u: Option<&'b mut [&'a mut [T]]>,
    of_first: &'b mut [&'a mut [T]],
}

impl<T: Float> Loop for RecurrentBackward<'_, '_, T>
where
    Standard: Semiring<T>,
{
    type Output = ();
    #[inline(always)]
    fn run(mut self) {
        let n = self.of_z.len();
        let [batch, width, from] = self.sizes;
        let gates = self.cell.gates() * width;
        let rows = self.of_z[0].len() / gates;
        let mut h = vec![T::ZERO; rows * width];
        let mut c = vec![T::ZERO; if self.c.is_some() { rows * width } else { 0 }];
        for k in 0..n {
            let t = if self.reverse { k } else { n - 1 - k };
            let at = |t: usize, width: usize| {
                (t * batch + from) * width..(t * batch + from + rows) * width
            };
            let add = |x: &mut [T], g: &[T]| {
                x.iter_mut().zip(g).for_each(|(x, &g)| *x = x.add(g));
            };
            add(&mut h, &self.of_h[at(t, width)]);
            if let Some([_, g]) = self.c {
                add(&mut c, &g[at(t, width)]);
            }
            let (z, u) = (&self.z[at(t, gates)], &self.u[at(t, gates)]);
            // The states before this step.
            let is_first = if self.reverse { t + 1 == n } else { t == 0 };
            let before = if self.reverse { t + 1 } else { t.wrapping_sub(1) };
            for row in 0..rows {
                let here = row * width..(row + 1) * width;
                let h_before = match is_first {
                    true => &self.first[0][(from + row) * width..][..width],
                    false => &self.h[at(before, width)][here.clone()],
                };
                let c_pair = self.c.map(|[c, _]| {
                    let earlier = match is_first {
                        true => &self.first[1][(from + row) * width..][..width],
                        false => &c[at(before, width)][here.clone()],
                    };
                    [earlier, &c[at(t, width)][here.clone()]]
                });
                let gate = row * gates..(row + 1) * gates;
                step_back(
                    self.cell,
                    [&z[gate.clone()], &u[gate.clone()]],
                    h_before,
                    c_pair.unwrap_or([&[], &[]]),
                    &mut h[here.clone()],
                    if c.is_empty() { &mut [] } else { &mut c[here] },
                    &mut self.of_z[t][gate.clone()],
                    self.of_u.as_mut().map_or(&mut [], |of_u| &mut of_u[t][gate]),
                );
            }
            let of_u = self.of_u.as_ref().map_or(&self.of_z[t][..], |of_u| &of_u[t][..]);
            product(of_u, self.weight, &mut h, gates, true, self.alone);
        }
        self.of_first[0].copy_from_slice(&h);
        if let Some(of_c) = self.of_first.get_mut(1) {
            of_c.copy_from_slice(&c);
        }
    }
}

/// Vjp of the cell of one row, with `of_u` of a GRU; the cotangents `h` and `c` are updated in place, without the path through u.
#[inline(always)]
fn step_back<T: Float>(
    cell: Cell,
    [z, u]: [&[T]; 2],
    before: &[T],
    [c_before, c_after]: [&[T]; 2],
    h: &mut [T],
    c: &mut [T],
    of_z: &mut [T],
    of_u: &mut [T],
) {
    let w = h.len();
    let p = |gate: usize, i: usize| z[gate * w + i].add(u[gate * w + i]);
    let of_logistic = |y: T, g: T| g.mul(y).mul(T::ONE.sub(y));
    let of_tanh = |y: T, g: T| g.mul(T::ONE.sub(y.mul(y)));
    match cell {
        Cell::Tanh => {
            for i in 0..w {
                of_z[i] = of_tanh(p(0, i).tanh(), h[i]);
                h[i] = T::ZERO;
            }
        }
        Cell::Gated => {
            for i in 0..w {
                let (keep, new) = (p(0, i).sigmoid(), p(1, i).tanh());
                of_z[i] = of_logistic(keep, h[i].mul(before[i].sub(new)));
                of_z[w + i] = of_tanh(new, h[i].mul(T::ONE.sub(keep)));
                h[i] = h[i].mul(keep);
            }
        }
        Cell::Gru => {
            for i in 0..w {
                let (reset, keep) = (p(0, i).sigmoid(), p(1, i).sigmoid());
                let own = u[2 * w + i];
                let new = reset.mul_add(own, z[2 * w + i]).tanh();
                let of_new = of_tanh(new, h[i].mul(T::ONE.sub(keep)));
                of_z[i] = of_logistic(reset, of_new.mul(own));
                of_z[w + i] = of_logistic(keep, h[i].mul(before[i].sub(new)));
                of_z[2 * w + i] = of_new;
                of_u[2 * w + i] = of_new.mul(reset);
                h[i] = h[i].mul(keep);
            }
            of_u[..2 * w].copy_from_slice(&of_z[..2 * w]);
        }
        Cell::Lstm => {
            for i in 0..w {
                let (input, forget) = (p(0, i).sigmoid(), p(1, i).sigmoid());
                let (new, output) = (p(2, i).tanh(), p(3, i).sigmoid());
                let t = c_after[i].tanh();
                let of_c = c[i].add(of_tanh(t, h[i].mul(output)));
                of_z[i] = of_logistic(input, of_c.mul(new));
                of_z[w + i] = of_logistic(forget, of_c.mul(c_before[i]));
                of_z[2 * w + i] = of_tanh(new, of_c.mul(input));
                of_z[3 * w + i] = of_logistic(output, h[i].mul(t));
                c[i] = of_c.mul(forget);
                h[i] = T::ZERO;
            }
        }
    }
}
