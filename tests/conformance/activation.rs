//! Every method of `ActivationOps`.

use crate::conform;
use crate::material::*;

/// Tolerance for compositions of a few elementary functions.
const COMPOSED: Ulps = Ulps(64.0);

fn plain() -> Vec<Case> {
    unary(&FLOATS, Values::Plain)
}

fn special() -> Vec<Case> {
    unary(&FLOATS, Values::Special)
}

fn with_grad() -> Vec<Case> {
    binary(&FLOATS, Values::Plain, Values::Plain)
        .into_iter()
        .filter(|c| c.operands[0].shape == c.operands[1].shape)
        .collect()
}

conform! {
    float;
    relu: plain(), EXACT, |_c, x| B::relu(x);
    relu_backward: with_grad(), EXACT, |_c, y, g| B::relu_backward(y, g);
    leaky_relu: special(), EXACT, |_c, x| B::leaky_relu(x, 0.25.into());
    prelu: with_grad(), EXACT, |_c, x, a| B::prelu(x, a);
    gelu: plain(), Ulps(1024.0), |_c, x| B::gelu(x);
    gelu_backward: with_grad(), Ulps(4096.0), |_c, x, g| B::gelu_backward(x, g);
    sigmoid: special(), COMPOSED, |_c, x| B::sigmoid(x);
    sigmoid_backward: with_grad(), COMPOSED, |_c, y, g| B::sigmoid_backward(y, g);
    hard_sigmoid: special(), COMPOSED, |_c, x| B::hard_sigmoid(x, 0.2.into(), 0.5.into());
    log_sigmoid: plain(), COMPOSED, |_c, x| B::log_sigmoid(x);
    log_sigmoid_backward: with_grad(), COMPOSED, |_c, x, g| B::log_sigmoid_backward(x, g);
    softmax: along(&FLOATS, Values::Plain), COMPOSED, |c, x| B::softmax(x, c.dim);
    log_softmax: along(&FLOATS, Values::Plain), Ulps(256.0), except |c| c.dtype().size() == 2, |c, x| B::log_softmax(x, c.dim);
    softmin: along(&FLOATS, Values::Plain), COMPOSED, |c, x| B::softmin(x, c.dim);
}
