//! Recurrent layers on engine tensors: blocks of sequences, each executed over all steps.

use t4a_algebra::gemm::{MatMut, MatRef, Parallelism, Product};
use t4a_algebra::parallel;
use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, Semiring, Standard};
use t4a_diff::{Array, Eager};
use t4a_tensor::{AnyTensor, Result, Tensor};

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

/// The rows of each of `count` blocks, if there are any.
fn of_blocks<X>(all: Option<Vec<X>>, count: usize) -> Vec<Option<X>> {
    match all {
        Some(all) => all.into_iter().map(Some).collect(),
        None => (0..count).map(|_| None).collect(),
    }
}

/// `C ← A·B`, or `C ← C + A·B`, with `inner` columns of A.
fn product<T>(a: &[T], b: &[T], c: &mut [T], inner: usize, accumulate: bool, all: bool)
where
    T: Float,
    Standard: Semiring<T>,
{
    let rows = a.len() / inner;
    let cols = c.len() / rows;
    let (b, c) = (MatRef::row_major(b, inner, cols), MatMut::row_major(c, rows, cols));
    let product = MatRef::row_major(a, rows, inner).and_then(|a| Product::new(a, b?, c?));
    let product = product.unwrap_or_else(|error| unreachable!("{error}"));
    let threads = if all { Parallelism::Threads(0) } else { Parallelism::Seq };
    product.accumulate(accumulate).parallelism(threads).run::<Standard>();
}

/// States h, and c for an LSTM, of all steps, and with `saved` the activated gates `[n, batch, saved·width]`.
pub(crate) fn forward(
    cell: Cell,
    reverse: bool,
    x: &RecurrentOperands<Eager>,
    saved: bool,
) -> Result<(Vec<Eager>, Option<Eager>)> {
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
        let of_saved = cell.saved() * width;
        let mut gates =
            saved.then(|| Tensor::<T>::zeros(&[n, batch, of_saved])).transpose()?;
        if n * batch > 0 {
            let mut parts: Vec<Vec<Vec<&mut [T]>>> = states
                .iter_mut()
                .map(|x| Ok(blocks(x.as_mut_slice()?, batch, width)))
                .collect::<Result<_>>()?;
            let c = if cell.states() == 2 { parts.pop() } else { None };
            let h = parts.pop().unwrap_or_default();
            let c = of_blocks(c, h.len());
            let gates = gates.as_mut().map(|x| Ok(blocks(x.as_mut_slice()?, batch, of_saved)));
            let gates = of_blocks(gates.transpose()?, h.len());
            let mut runs: Vec<_> = h.into_iter().zip(c).zip(gates).collect();
            let parallel = parallel::worthwhile(n * batch * width, cell.gates() * (8 + width));
            let alone = runs.len() == 1;
            parallel::for_each_mut(&mut runs, parallel && !alone, |i, ((h, c), gates)| {
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
                    gates: gates.as_mut(),
                });
            });
        }
        let states = states.into_iter().map(|x| Ok(narrow(x, &out, dtype)?.into()));
        Ok((states.collect::<Result<_>>()?, gates.map(|x| AnyTensor::from(x).into())))
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
    /// Activated gates, if they are saved.
    gates: Option<&'b mut Vec<&'a mut [T]>>,
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
        let saved = self.cell.saved() * width;
        let rows = self.h[0].len() / width;
        let mut u = vec![T::ZERO; rows * gates];
        let mut scratch = vec![T::ZERO; rows * saved];
        let mut h = self.first[0][..rows * width].to_vec();
        let mut c = self.first.get(1).map_or(Vec::new(), |c| c[..rows * width].to_vec());
        for k in 0..n {
            let t = if self.reverse { n - 1 - k } else { k };
            product(&h, self.weight, &mut u, width, false, self.alone);
            let z = &self.z[(t * self.batch + self.from) * gates..][..rows * gates];
            let activated = match &mut self.gates {
                Some(gates) => &mut *gates[t],
                None => &mut scratch,
            };
            for row in 0..rows {
                let (z, u) = (&z[row * gates..][..gates], &mut u[row * gates..][..gates]);
                if let Some(bias) = self.bias {
                    u.iter_mut().zip(bias).for_each(|(u, &b)| *u = u.add(b));
                }
                let at = row * width..(row + 1) * width;
                let c = if c.is_empty() { &mut [][..] } else { &mut c[at.clone()] };
                step(self.cell, z, u, &mut activated[row * saved..][..saved], &mut h[at], c);
            }
            self.h[t].copy_from_slice(&h);
            if let Some(states) = &mut self.c {
                states[t].copy_from_slice(&c);
            }
        }
    }
}

/// `yᵢ = f(zᵢ + uᵢ)`.
#[inline(always)]
fn activate<T: Float>(f: impl Fn(T) -> T, z: &[T], u: &[T], y: &mut [T]) {
    for (y, (&z, &u)) in y.iter_mut().zip(z.iter().zip(u)) {
        *y = f(z.add(u));
    }
}

/// The cell of one row; `h` and `c` are updated in place. The activated gates, and `u₂` of a GRU, are written to `gates`.
#[inline(always)]
fn step<T: Float>(cell: Cell, z: &[T], u: &[T], gates: &mut [T], h: &mut [T], c: &mut [T]) {
    let w = h.len();
    match cell {
        Cell::Tanh => activate(T::tanh, z, u, h),
        Cell::Gated => {
            let (keep, new) = gates.split_at_mut(w);
            activate(T::sigmoid, &z[..w], &u[..w], keep);
            activate(T::tanh, &z[w..], &u[w..], new);
            interpolate(keep, new, h);
        }
        Cell::Gru => {
            let (logistic, rest) = gates.split_at_mut(2 * w);
            activate(T::sigmoid, &z[..2 * w], &u[..2 * w], logistic);
            let (reset, keep) = logistic.split_at(w);
            let (new, own) = rest.split_at_mut(w);
            own.copy_from_slice(&u[2 * w..]);
            for (new, ((&r, &own), &z)) in
                new.iter_mut().zip(reset.iter().zip(&*own).zip(&z[2 * w..]))
            {
                *new = r.mul_add(own, z).tanh();
            }
            interpolate(keep, new, h);
        }
        Cell::Lstm => {
            let (logistic, rest) = gates.split_at_mut(2 * w);
            activate(T::sigmoid, &z[..2 * w], &u[..2 * w], logistic);
            let (new, output) = rest.split_at_mut(w);
            activate(T::tanh, &z[2 * w..3 * w], &u[2 * w..3 * w], new);
            activate(T::sigmoid, &z[3 * w..], &u[3 * w..], output);
            let (input, forget) = logistic.split_at(w);
            let gates = input.iter().zip(forget).zip(new.iter().zip(&*output));
            for ((c, h), ((&i, &f), (&g, &o))) in c.iter_mut().zip(h).zip(gates) {
                *c = f.mul_add(*c, i.mul(g));
                *h = o.mul(c.tanh());
            }
        }
    }
}

/// `h ← f h + (1 − f) m`.
#[inline(always)]
fn interpolate<T: Float>(keep: &[T], new: &[T], h: &mut [T]) {
    for (h, (&f, &m)) in h.iter_mut().zip(keep.iter().zip(new)) {
        *h = h.sub(m).mul_add(f, m);
    }
}

/// Cotangents of z and u of all steps, which are one array but for a GRU, and of the initial states.
pub(crate) fn back(
    cell: Cell,
    reverse: bool,
    x: &RecurrentOperands<Eager>,
    activated: &Eager,
    states: &[&Eager],
    given: &[Eager],
) -> Result<([Eager; 2], Vec<Eager>)> {
    let shape = x.z.shape();
    let (n, batch) = (shape[0], shape[1]);
    let width = x.weight.shape()[0];
    let dtype = x.z.dtype();
    computed_in!("recurrent", dtype, T => {
        let [activated, weight, h, of_h] =
            wide::<T, 4>([activated, &x.weight.transpose(), states[0], &given[0]])?;
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
            let u_parts = of_u.as_mut().map(|x| Ok(blocks(x.as_mut_slice()?, batch, gates)));
            let u_parts = of_blocks(u_parts.transpose()?, z_parts.len());
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
                    activated: elements(&activated),
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
    activated: &'a [T],
    /// `Uᵀ`.
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
            // The activation of `tanh` is the state.
            let saved = self.cell.saved().max(1) * width;
            let activated = &self.activated[at(t, saved)];
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
                    &activated[row * saved..][..saved],
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

/// Vjp of the cell of one row, with `of_u` of a GRU; the cotangents `h` and `c` are updated in place, without the path
/// through u.
#[inline(always)]
fn step_back<T: Float>(
    cell: Cell,
    gates: &[T],
    before: &[T],
    [c_before, c_after]: [&[T]; 2],
    h: &mut [T],
    c: &mut [T],
    of_z: &mut [T],
    of_u: &mut [T],
) {
    let w = h.len();
    let of_logistic = |y: T, g: T| g.mul(y).mul(T::ONE.sub(y));
    let of_tanh = |y: T, g: T| g.mul(T::ONE.sub(y.mul(y)));
    match cell {
        Cell::Tanh => {
            for ((of_z, h), &y) in of_z.iter_mut().zip(h).zip(gates) {
                *of_z = of_tanh(y, *h);
                *h = T::ZERO;
            }
        }
        Cell::Gated => {
            let (keep, new) = gates.split_at(w);
            let (of_keep, of_new) = of_z.split_at_mut(w);
            let states = keep.iter().zip(new).zip(before);
            let all = of_keep.iter_mut().zip(of_new).zip(h).zip(states);
            for (((of_keep, of_new), h), ((&f, &m), &before)) in all {
                *of_keep = of_logistic(f, h.mul(before.sub(m)));
                *of_new = of_tanh(m, h.mul(T::ONE.sub(f)));
                *h = h.mul(f);
            }
        }
        Cell::Gru => {
            let [reset, keep, new, own] = std::array::from_fn(|k| &gates[k * w..][..w]);
            let (of_reset, rest) = of_z.split_at_mut(w);
            let (of_keep, of_new) = rest.split_at_mut(w);
            let states = keep.iter().zip(new).zip(before);
            let all = of_keep.iter_mut().zip(&mut *of_new).zip(h).zip(states);
            for (((of_keep, of_new), h), ((&q, &m), &before)) in all {
                *of_keep = of_logistic(q, h.mul(before.sub(m)));
                *of_new = of_tanh(m, h.mul(T::ONE.sub(q)));
                *h = h.mul(q);
            }
            let both = reset.iter().zip(own).zip(&*of_new);
            let all = of_reset.iter_mut().zip(&mut of_u[2 * w..]).zip(both);
            for ((of_reset, of_own), ((&r, &own), &g)) in all {
                *of_reset = of_logistic(r, g.mul(own));
                *of_own = g.mul(r);
            }
            of_u[..2 * w].copy_from_slice(&of_z[..2 * w]);
        }
        Cell::Lstm => {
            let [input, forget, new, output] = std::array::from_fn(|k| &gates[k * w..][..w]);
            let (first, rest) = of_z.split_at_mut(2 * w);
            let (of_new, of_output) = rest.split_at_mut(w);
            let (of_input, of_forget) = first.split_at_mut(w);
            let states = output.iter().zip(c_after);
            for ((of_output, (h, c)), (&o, &after)) in
                of_output.iter_mut().zip(h.iter_mut().zip(&mut *c)).zip(states)
            {
                let t = after.tanh();
                *c = c.add(of_tanh(t, h.mul(o)));
                *of_output = of_logistic(o, h.mul(t));
                *h = T::ZERO;
            }
            let of = of_input.iter_mut().zip(of_forget).zip(of_new);
            let gates = input.iter().zip(forget).zip(new).zip(c_before);
            for ((((of_i, of_f), of_g), c), (((&i, &f), &g), &before)) in of.zip(c).zip(gates) {
                *of_i = of_logistic(i, c.mul(g));
                *of_f = of_logistic(f, c.mul(before));
                *of_g = of_tanh(g, c.mul(i));
                *c = c.mul(f);
            }
        }
    }
}
