//! Options of convolutions and pools, small and extreme.

use t4a_tensor::nn::conv::{ConvOptions, conv, conv_transpose, conv_weight, conv_x};
use t4a_tensor::nn::pool::{
    Overhang, PoolOptions, adaptive_mean_pool, max_pool, max_pool_vjp, max_pool_with_indices,
    mean_pool, mean_pool_vjp,
};
use t4a_tensor::{Result, Tensor};

use crate::input::Input;
use crate::reference::{indices, position, value};

/// Maximum number of elements of a result that is computed.
const FEW: usize = 3000;

fn tensor(shape: &[usize]) -> Tensor<f64> {
    Tensor::from_fn(shape, |i| value(i + shape.len())).expect("few elements")
}

/// A size from 1 to 4, occasionally arbitrary.
fn option(input: &mut Input<'_>) -> usize {
    if input.once_in(6) { input.size() } else { 1 + input.below(4) }
}

/// `⌊(size + 2p − d·(k − 1) − 1)/s⌋ + 1` if there is a window inside.
fn positions(size: usize, k: usize, s: usize, [p, q]: [usize; 2], d: usize) -> Option<usize> {
    // A window whose extent exceeds `i128` is not inside.
    let extent = (d as i128).checked_mul(k as i128 - 1)?;
    let room = size as i128 + p as i128 + q as i128 - extent - 1;
    (room >= 0 && s > 0 && d > 0).then(|| usize::try_from(room / s as i128 + 1).ok())?
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    if input.once_in(2) { pools(&mut input) } else { convolutions(&mut input) }
}

fn convolutions(input: &mut Input<'_>) {
    let axes = 1 + input.below(3);
    let groups = input.pick(&[1, 1, 2, 3]);
    let (c, o) = (1 + input.below(3), 1 + input.below(3));
    let mut x = vec![input.below(3), groups * c];
    let mut w = vec![groups * o, c];
    let mut options = ConvOptions::new(axes);
    options.groups = groups;
    for i in 0..axes {
        x.push(input.below(7));
        w.push(input.below(4));
        options.stride[i] = option(input);
        options.padding[i] = if input.once_in(2) { option(input) } else { input.below(3) };
        let same = input.once_in(2);
        options.padding_end[i] = if same { options.padding[i] } else { input.below(3) };
        options.dilation[i] = option(input);
    }
    if input.once_in(10) {
        options.groups = input.size();
    }
    let (xt, wt) = (tensor(&x), tensor(&w));
    let sizes: Option<Vec<usize>> = (0..axes)
        .map(|i| {
            let margin = [options.padding[i], options.padding_end[i]];
            positions(x[2 + i], w[2 + i], options.stride[i], margin, options.dilation[i])
        })
        .collect();
    let results = |sizes: &Vec<usize>| {
        sizes.iter().try_fold((o * groups) as u128, |n, &s| n.checked_mul(s as u128))
    };
    // Results of intermediate size are skipped: memory may suffice, but the computation would take hours.
    let runs = |n: Option<u128>| n.is_none_or(|n| n <= FEW as u128 || n > 1 << 50);
    if input.once_in(3) {
        // The transposed convolution as a separate operation: results may be large, errors are typed.
        let extra: Vec<usize> = (0..axes).map(|_| input.below(2)).collect();
        let y: Vec<usize> = [x[0], w[0]].into_iter().chain(x[2..].iter().copied()).collect();
        let reach = |i: usize| {
            let steps = (y[2 + i] as u128).checked_mul(options.stride[i] as u128)?;
            steps.checked_add((w[2 + i] as u128).checked_mul(options.dilation[i] as u128)?)
        };
        let size = (0..axes).try_fold(1u128, |n, i| n.checked_mul(reach(i)?));
        if runs(size) {
            let _ = conv_transpose(&tensor(&y), &wt, None, &extra, &options);
        }
        return;
    }
    let number = sizes.as_ref().map_or(Some(0), results);
    if !runs(number) {
        return;
    }
    let got = conv(&xt, &wt, None, &options);
    let fits = sizes.filter(|_| options.groups == groups && !w[2..].contains(&0));
    let Some(sizes) = fits else {
        assert!(got.is_err(), "{x:?} {w:?} {options:?}: {got:?}");
        return;
    };
    let Ok(y) = got else {
        let many = number.is_none_or(|n| n > FEW as u128);
        assert!(many || refused(&x, &w, &options), "{x:?} {w:?} {options:?}: {got:?}");
        return;
    };
    let mut shape = vec![x[0], groups * o];
    shape.extend_from_slice(&sizes);
    assert_eq!(y.shape(), shape);
    // Position in x of window element k at output position t; `None` for padding.
    let place = |t: &[usize], k: &[usize]| -> Option<Vec<usize>> {
        let at = |i: usize| {
            let [s, p, d] = [options.stride[i], options.padding[i], options.dilation[i]];
            let at = t[i] as i128 * s as i128 + k[i] as i128 * d as i128 - p as i128;
            (at >= 0 && at < x[2 + i] as i128).then_some(at as usize)
        };
        (0..axes).map(at).collect()
    };
    let dy = tensor(&shape);
    let mut dx = vec![0.0; x.iter().product()];
    let mut dw = vec![0.0; w.iter().product()];
    for index in indices(&shape) {
        let (n, channel) = (index[0], index[1]);
        let mut sum = 0.0;
        let g = dy.get(&index).expect("an index inside");
        for k in indices(&w[1..]) {
            let Some(at) = place(&index[2..], &k[1..]) else { continue };
            let mut from = vec![n, channel / o * c + k[0]];
            from.extend(at);
            let mut tap = vec![channel];
            tap.extend_from_slice(&k);
            let (v, u) = (xt.get(&from).expect("inside"), wt.get(&tap).expect("inside"));
            sum += v * u;
            dx[position(&x, &from)] += g * u;
            dw[position(&w, &tap)] += g * v;
        }
        // Sums of small integers are exact in any order.
        assert_eq!(y.get(&index), Some(sum), "{x:?} {w:?} {options:?} {index:?}");
    }
    let got = conv_x(&x, &wt, &dy, &options).expect("the shapes of the forward pass");
    assert_eq!(got.to_vec().expect("few elements"), dx, "{x:?} {w:?} {options:?}");
    let got = conv_weight(&xt, &w, &dy, &options).expect("the shapes of the forward pass");
    assert_eq!(got.to_vec().expect("few elements"), dw, "{x:?} {w:?} {options:?}");
}

/// True if the options are so large that the engine may reject them.
fn refused(x: &[usize], w: &[usize], options: &ConvOptions) -> bool {
    let all = [&options.stride, &options.padding, &options.padding_end, &options.dilation];
    let far = all.into_iter().flatten().any(|&v| v > 1 << 44);
    far || options.groups == 0 || x.iter().chain(w).any(|&v| v > 1 << 44)
}

fn pools(input: &mut Input<'_>) {
    let x = [input.below(3), input.below(3), input.below(7), input.below(7)];
    let pair = |input: &mut Input<'_>| [option(input), option(input)];
    let mut options = PoolOptions::new(pair(input));
    options.stride = pair(input);
    if input.once_in(2) {
        options.padding = pair(input);
    }
    if input.once_in(3) {
        options.dilation = pair(input);
    }
    options.overhang = if input.once_in(4) { Overhang::Always } else { Overhang::Never };
    let t = Tensor::from_fn(&x, |i| value(i) - 3.0).expect("few elements");
    if input.once_in(6) {
        let size = [input.size(), input.size()];
        let many = size[0].checked_mul(size[1]).is_none_or(|n| n > FEW);
        if !many || size[0].max(size[1]) > 1 << 45 {
            adaptive(&t, size);
        }
        return;
    }
    let mut counts = [0; 2];
    for (i, count) in counts.iter_mut().enumerate() {
        let [k, s, p, d] =
            [options.window[i], options.stride[i], options.padding[i], options.dilation[i]];
        let fits = if k == 0 { None } else { positions(x[2 + i], k, s, [p; 2], d) };
        match fits {
            Some(n) => {
                let padded = x[2 + i] as u128 + 2 * p as u128;
                let left = (padded - (d as u128 * (k as u128 - 1) + 1)) % s as u128;
                *count =
                    n.saturating_add(usize::from(options.overhang == Overhang::Always && left > 0));
            }
            None => {
                let got = max_pool(&t, &options);
                assert!(got.is_err(), "{x:?} {options:?}: {got:?}");
                assert!(mean_pool(&t, &options, false).is_err());
                return;
            }
        }
    }
    if counts[0].checked_mul(counts[1]).is_none_or(|n| n > FEW) {
        return;
    }
    let shape = [x[0], x[1], counts[0], counts[1]];
    let Ok((y, at)) = max_pool_with_indices(&t, &options) else {
        let far = [options.window, options.stride, options.padding, options.dilation];
        assert!(far.into_iter().flatten().any(|v| v > 1 << 44), "{x:?} {options:?}");
        return;
    };
    assert_eq!(y.shape(), shape);
    let values = max_pool(&t, &options).expect("as with indices");
    for index in indices(&shape) {
        let mut best: Option<(f64, i64)> = None;
        for (h, w) in inside(&x, &options, &index) {
            let v = t.get(&[index[0], index[1], h, w]).expect("inside");
            if best.is_none_or(|(b, _)| v > b) {
                best = Some((v, (h * x[3] + w) as i64));
            }
        }
        let (v, place) = best.unwrap_or((f64::NEG_INFINITY, -1));
        let context = || format!("{x:?} {options:?} {index:?}");
        assert_eq!((y.get(&index), at.get(&index)), (Some(v), Some(place)), "{}", context());
        assert_eq!(values.get(&index), Some(v), "{}", context());
    }
    let back: Result<_> = max_pool_vjp(&x, &y, &at);
    back.expect("the indices of the forward pass");
    if options.dilation != [1; 2] {
        return;
    }
    let means = mean_pool(&t, &options, false).expect("as the maxima");
    for index in indices(&shape) {
        let all: Vec<f64> = inside(&x, &options, &index)
            .into_iter()
            .map(|(h, w)| t.get(&[index[0], index[1], h, w]).expect("inside"))
            .collect();
        let want = all.iter().sum::<f64>() / all.len().max(1) as f64;
        let got = means.get(&index).expect("inside");
        assert!((got - want).abs() <= 1e-12, "{x:?} {options:?} {index:?}: {got} {want}");
    }
    mean_pool_vjp(&x, &means, &options, false).expect("the shapes of the forward pass");
}

/// Elements of a window that are inside x, not in the padding.
fn inside(x: &[usize; 4], options: &PoolOptions, index: &[usize]) -> Vec<(usize, usize)> {
    let axis = |i: usize| -> Vec<usize> {
        let start = index[2 + i] as i128 * options.stride[i] as i128 - options.padding[i] as i128;
        let reach = |u: usize| {
            let off = u as i128 - start;
            let d = options.dilation[i] as i128;
            off >= 0 && off % d == 0 && off / d < options.window[i] as i128
        };
        (0..x[2 + i]).filter(|&u| reach(u)).collect()
    };
    let columns = axis(1);
    axis(0)
        .into_iter()
        .flat_map(|h| columns.iter().map(move |&w| (h, w)).collect::<Vec<_>>())
        .collect()
}

fn adaptive(t: &Tensor<f64>, size: [usize; 2]) {
    let x = t.shape();
    let Ok(y) = adaptive_mean_pool(t, size) else {
        let empty = x[2] == 0 || x[3] == 0;
        assert!(empty || size.into_iter().max() > Some(1 << 40), "{x:?} {size:?}");
        return;
    };
    assert_eq!(y.shape(), [x[0], x[1], size[0], size[1]]);
    for index in indices(y.shape()) {
        let range = |i: usize| {
            let (at, n, size) = (index[2 + i], x[2 + i], size[i]);
            at * n / size..((at + 1) * n).div_ceil(size)
        };
        let (mut sum, mut count) = (0.0, 0);
        for h in range(0) {
            for w in range(1) {
                sum += t.get(&[index[0], index[1], h, w]).expect("inside");
                count += 1;
            }
        }
        let got = y.get(&index).expect("inside");
        assert!((got - sum / f64::from(count)).abs() <= 1e-12, "{x:?} {size:?} {index:?}");
    }
}
