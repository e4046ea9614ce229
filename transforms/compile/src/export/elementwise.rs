//! Elementwise methods.

use burn_backend::Scalar;

use super::ExportError;
use super::instruction::InstructionParts;
use super::text::{ModuleText, Ssa, Type};
use crate::words::{StaticArgument, Words, read};

/// A number of the type of a result.
fn number(x: Scalar) -> f64 {
    x.elem()
}

pub(super) fn write(
    text: &mut ModuleText,
    given: &InstructionParts<'_>,
) -> Result<Option<Vec<Ssa>>, ExportError> {
    let value = match given.operands.len() {
        1 => unary(text, given)?,
        2 => binary(text, given)?,
        3 => ternary(text, given)?,
        _ => None,
    };
    Ok(value.map(|value| vec![value]))
}

/// Two values in one shape.
pub(super) fn alike(text: &mut ModuleText, a: &Ssa, b: &Ssa) -> [Ssa; 2] {
    let shape: Vec<usize> =
        a.shape.iter().zip(&b.shape).map(|(&m, &n)| if m == 1 { n } else { m }).collect();
    [text.broadcast(a, &shape), text.broadcast(b, &shape)]
}

impl ModuleText {
    /// An operation of a value and a number.
    pub(super) fn with(&mut self, name: &str, x: &Ssa, c: f64) -> Ssa {
        let c = self.full(c, &x.shape, x.of);
        self.map(name, &[x, &c])
    }

    /// A comparison of values of one shape.
    pub(super) fn compare(&mut self, direction: &str, a: &Ssa, b: &Ssa) -> Ssa {
        let kind = if a.of.is_float() {
            "FLOAT"
        } else if a.of.is_signed() {
            "SIGNED"
        } else {
            "UNSIGNED"
        };
        let more = format!(
            "{{comparison_direction = #stablehlo<comparison_direction {direction}>, compare_type = \
             #stablehlo<comparison_type {kind}>}}"
        );
        self.op("stablehlo.compare", &[a, b], &more, &a.shape, Type::BOOL)
    }

    pub(super) fn select(&mut self, mask: &Ssa, a: &Ssa, b: &Ssa) -> Ssa {
        self.op("stablehlo.select", &[mask, a, b], "", &a.shape, a.of)
    }
}

/// `ln(1 + eˣ) = max(x, 0) + ln(1 + e^{−|x|})`.
fn softplus(text: &mut ModuleText, x: &Ssa) -> Ssa {
    let size = text.map("abs", &[x]);
    let size = text.map("negate", &[&size]);
    let small = text.map("exponential", &[&size]);
    let small = text.map("log_plus_one", &[&small]);
    let large = text.with("maximum", x, 0.0);
    text.map("add", &[&large, &small])
}

/// The distribution function of the normal distribution.
fn normal(text: &mut ModuleText, x: &Ssa) -> Ssa {
    let scaled = text.with("multiply", x, std::f64::consts::FRAC_1_SQRT_2);
    let erf = text.op("chlo.erf", &[&scaled], "", &x.shape, x.of);
    let sum = text.with("add", &erf, 1.0);
    text.with("multiply", &sum, 0.5)
}

fn half_of(text: &mut ModuleText, x: &Ssa, combine: &str) -> Ssa {
    let plus = text.map("exponential", &[x]);
    let minus = text.map("negate", &[x]);
    let minus = text.map("exponential", &[&minus]);
    let both = text.map(combine, &[&plus, &minus]);
    text.with("multiply", &both, 0.5)
}

fn unary(text: &mut ModuleText, given: &InstructionParts<'_>) -> Result<Option<Ssa>, ExportError> {
    let (x, of) = (&given.operands[0], given.of()?);
    let direct = match given.name {
        "neg" => "negate",
        "abs" => "abs",
        "exp" => "exponential",
        "log" => "log",
        "log1p" => "log_plus_one",
        "sqrt" => "sqrt",
        "sin" => "sine",
        "cos" => "cosine",
        "tan" => "tan",
        "tanh" => "tanh",
        "floor" => "floor",
        "ceil" => "ceil",
        "round" => "round_nearest_even",
        "sigmoid" => "logistic",
        "not" => "not",
        _ => "",
    };
    if !direct.is_empty() {
        return Ok(Some(text.map(direct, &[x])));
    }
    // Comparisons have the dtype of their result behind the number.
    let number_of = <(usize, Scalar)>::read(&mut Words(given.words.iter()));
    if let Some((_, c)) = number_of.filter(|_| !matches!(given.name, "clamp" | "hard_sigmoid")) {
        return Ok(scalar(text, given.name, x, number(c)));
    }
    Ok(Some(match given.name {
        "detach" | "set_require_grad" | "to_device" => x.clone(),
        "cast" | "into_float" | "into_int" => text.convert(x, of),
        "sign" if of.is_float() => {
            // sign(−0) = +0, sign(NaN) = NaN.
            let sign = text.map("sign", &[x]);
            text.with("add", &sign, 0.0)
        }
        "sign" => text.map("sign", &[x]),
        "recip" => {
            let one = text.full(1.0, &x.shape, x.of);
            text.map("divide", &[&one, x])
        }
        "trunc" => {
            let (down, up) = (text.map("floor", &[x]), text.map("ceil", &[x]));
            let zero = text.full(0.0, &x.shape, x.of);
            let negative = text.compare("LT", x, &zero);
            text.select(&negative, &up, &down)
        }
        "erf" => text.op("chlo.erf", &[x], "", &x.shape, x.of),
        "sinh" => half_of(text, x, "subtract"),
        "cosh" => half_of(text, x, "add"),
        "atan" => {
            let one = text.full(1.0, &x.shape, x.of);
            text.map("atan2", &[x, &one])
        }
        "is_nan" => text.compare("NE", x, x),
        "is_inf" => {
            let infinity = text.full(f64::INFINITY, &x.shape, x.of);
            let size = text.map("abs", &[x]);
            text.compare("EQ", &size, &infinity)
        }
        "relu" => text.with("maximum", x, 0.0),
        "gelu" => {
            let weight = normal(text, x);
            text.map("multiply", &[x, &weight])
        }
        "log_sigmoid" => {
            let negative = text.map("negate", &[x]);
            let softplus = softplus(text, &negative);
            text.map("negate", &[&softplus])
        }
        "clamp" | "hard_sigmoid" => {
            let Some((_, a, b)) = read::<(usize, Scalar, Scalar)>(given.words) else {
                return Ok(None);
            };
            let (a, b) = (number(a), number(b));
            if given.name == "clamp" {
                let above = text.with("maximum", x, a);
                text.with("minimum", &above, b)
            } else {
                let line = text.with("multiply", x, a);
                let line = text.with("add", &line, b);
                let above = text.with("maximum", &line, 0.0);
                text.with("minimum", &above, 1.0)
            }
        }
        _ => return Ok(None),
    }))
}

/// A method of a tensor and a number.
fn scalar(text: &mut ModuleText, name: &str, x: &Ssa, c: f64) -> Option<Ssa> {
    let direct = match name {
        "add_scalar" => "add",
        "sub_scalar" => "subtract",
        "mul_scalar" => "multiply",
        "div_scalar" => "divide",
        "clamp_min" => "maximum",
        "clamp_max" => "minimum",
        "and_scalar" => "and",
        "or_scalar" => "or",
        "xor_scalar" => "xor",
        "left_shift_scalar" => "shift_left",
        "right_shift_scalar" => right_shift(x),
        "powf_scalar" | "powf_scalar_impl" | "powi_scalar" | "powi_scalar_impl" => "power",
        _ => "",
    };
    if !direct.is_empty() {
        return Some(text.with(direct, x, c));
    }
    if let Some(direction) = name.strip_suffix("_elem").and_then(direction) {
        let c = text.full(c, &x.shape, x.of);
        return Some(text.compare(direction, x, &c));
    }
    match name {
        "remainder_scalar" => {
            let c = text.full(c, &x.shape, x.of);
            Some(remainder(text, x, &c))
        }
        "leaky_relu" => {
            let (zero, small) = (text.full(0.0, &x.shape, x.of), text.with("multiply", x, c));
            let negative = text.compare("LT", x, &zero);
            Some(text.select(&negative, &small, x))
        }
        _ => None,
    }
}

fn right_shift(x: &Ssa) -> &'static str {
    if x.of.is_signed() { "shift_right_arithmetic" } else { "shift_right_logical" }
}

fn direction(name: &str) -> Option<&'static str> {
    Some(match name {
        "equal" => "EQ",
        "not_equal" => "NE",
        "greater" => "GT",
        "greater_equal" => "GE",
        "lower" => "LT",
        "lower_equal" => "LE",
        _ => return None,
    })
}

/// The remainder with the sign of the divisor.
fn remainder(text: &mut ModuleText, a: &Ssa, b: &Ssa) -> Ssa {
    let rest = text.map("remainder", &[a, b]);
    let zero = text.full(0.0, &a.shape, a.of);
    let nonzero = text.compare("NE", &rest, &zero);
    let (first, second) = (text.compare("LT", &rest, &zero), text.compare("LT", b, &zero));
    let differ = text.map("xor", &[&first, &second]);
    let differ = text.map("and", &[&nonzero, &differ]);
    let moved = text.map("add", &[&rest, b]);
    text.select(&differ, &moved, &rest)
}

fn binary(text: &mut ModuleText, given: &InstructionParts<'_>) -> Result<Option<Ssa>, ExportError> {
    let direct = match given.name {
        "add" => "add",
        "sub" => "subtract",
        "mul" => "multiply",
        "div" => "divide",
        "powf" => "power",
        "atan2" => "atan2",
        "and" => "and",
        "or" => "or",
        "xor" => "xor",
        "left_shift" => "shift_left",
        "right_shift" => right_shift(&given.operands[0]),
        _ => "",
    };
    let [a, b] = [&given.operands[0], &given.operands[1]];
    if a.rank() != b.rank() {
        return Ok(None);
    }
    if !direct.is_empty() {
        let [a, b] = alike(text, a, b);
        return Ok(Some(text.map(direct, &[&a, &b])));
    }
    if let Some(direction) = direction(given.name) {
        let [a, b] = alike(text, a, b);
        return Ok(Some(text.compare(direction, &a, &b)));
    }
    Ok(Some(match given.name {
        "remainder" => {
            let [a, b] = alike(text, a, b);
            remainder(text, &a, &b)
        }
        "mask_fill" => {
            let Some((_, _, c)) = read::<(usize, usize, Scalar)>(given.words) else {
                return Ok(None);
            };
            let [x, mask] = alike(text, a, b);
            let c = text.full(number(c), &x.shape, x.of);
            text.select(&mask, &c, &x)
        }
        "prelu" => {
            let [x, slope] = alike(text, a, b);
            let (zero, small) =
                (text.full(0.0, &x.shape, x.of), text.map("multiply", &[&x, &slope]));
            let negative = text.compare("LT", &x, &zero);
            text.select(&negative, &small, &x)
        }
        // The output, and the cotangent.
        "relu_backward" => {
            let zero = text.full(0.0, &a.shape, a.of);
            let flat = text.compare("LE", a, &zero);
            text.select(&flat, &zero, b)
        }
        "sigmoid_backward" => {
            let one = text.full(1.0, &a.shape, a.of);
            let rest = text.map("subtract", &[&one, a]);
            let slope = text.map("multiply", &[a, &rest]);
            text.map("multiply", &[&slope, b])
        }
        // x, and the cotangent.
        "log_sigmoid_backward" => {
            let negative = text.map("negate", &[a]);
            let slope = text.map("logistic", &[&negative]);
            text.map("multiply", &[&slope, b])
        }
        "gelu_backward" => {
            let weight = normal(text, a);
            let square = text.map("multiply", &[a, a]);
            let square = text.with("multiply", &square, -0.5);
            let density = text.map("exponential", &[&square]);
            let scale = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2 / 2.0;
            let density = text.with("multiply", &density, scale);
            let density = text.map("multiply", &[a, &density]);
            let slope = text.map("add", &[&weight, &density]);
            text.map("multiply", &[&slope, b])
        }
        _ => return Ok(None),
    }))
}

fn ternary(
    text: &mut ModuleText,
    given: &InstructionParts<'_>,
) -> Result<Option<Ssa>, ExportError> {
    if given.name != "mask_where" {
        return Ok(None);
    }
    let shape = given.shape();
    let [x, mask, value] = [0, 1, 2].map(|at| &given.operands[at]);
    let [x, mask, value] = [x, mask, value].map(|x| text.broadcast(x, shape));
    Ok(Some(text.select(&mask, &value, &x)))
}
