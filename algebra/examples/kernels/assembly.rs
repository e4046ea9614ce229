//! Parser for functions and innermost loops of assembly, and the registers that they use.

/// Instruction set of an assembly file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Machine {
    X86,
    Arm,
}

impl Machine {
    /// x86-64 for AT&T syntax, AArch64 for ARM syntax.
    pub(crate) fn of(text: &str) -> Self {
        if text.contains("\tldp\tx29") { Self::Arm } else { Self::X86 }
    }
}

/// A function: symbol and lines.
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    lines: Vec<&'a str>,
}

/// Instruction counts of the most arithmetic-intensive loop of a function.
pub(crate) struct Hot {
    /// The vector registers used.
    pub(crate) set: &'static str,
    /// The vector registers for which the function is compiled.
    pub(crate) promised: &'static str,
    /// Operations on whole registers of the widest kind used.
    pub(crate) wide: usize,
    /// Operations on one scalar.
    pub(crate) scalar: usize,
    /// Vector moves from or to the stack.
    pub(crate) stack: usize,
}

impl Hot {
    /// Number of 4-byte elements computed per iteration.
    fn work(&self) -> usize {
        let width = match self.set {
            "avx-512" => 16,
            "avx2" => 8,
            _ => 4,
        };
        width * self.wide + self.scalar
    }
}

/// All functions of a file.
pub(crate) fn functions(text: &str) -> Vec<Function<'_>> {
    let mut functions: Vec<Function<'_>> = Vec::new();
    for line in text.lines() {
        match line.strip_suffix(':') {
            Some(name) if name.starts_with("_R") => {
                functions.push(Function { name, lines: Vec::new() });
            }
            _ => {
                if let Some(function) = functions.last_mut() {
                    function.lines.push(line.trim());
                }
            }
        }
    }
    functions
}

/// Class of an instruction.
enum Kind {
    Wide,
    Scalar,
    Stack,
    Other,
}

/// Prefixes of arithmetic instructions: sums, products, extrema, comparisons.
const X86_OPERATIONS: [&str; 12] = [
    "vadd", "vsub", "vmul", "vmax", "vmin", "vfm", "vfnm", "vcmp", "vdiv", "vpadd", "vpmax",
    "vpcmp",
];
const ARM_OPERATIONS: [&str; 12] = [
    "fadd", "fsub", "fmul", "fmla", "fmls", "fmax", "fmin", "fcm", "fmadd", "fdiv", "smax", "cmgt",
];

impl Function<'_> {
    /// The innermost loop with the most vector operations, or with the most scalar operations if it has none.
    pub(crate) fn hot(&self, machine: Machine) -> Option<Hot> {
        let label = |i: usize| self.lines[i].strip_suffix(':');
        let place = |name: &str| (0..self.lines.len()).find(|&i| label(i) == Some(name));
        // A loop is the range from a label to a backward jump to it.
        let mut loops: Vec<(usize, usize)> = (0..self.lines.len())
            .filter_map(|i| {
                let target = jump(self.lines[i], machine)?;
                let start = place(target)?;
                (start < i).then_some((start, i))
            })
            .collect();
        let all = loops.clone();
        loops.retain(|l| !all.iter().any(|m| m != l && m.0 >= l.0 && m.1 <= l.1));
        let of = |(start, end): (usize, usize)| self.count(start, end, machine);
        loops.into_iter().map(of).max_by_key(Hot::work)
    }

    fn count(&self, start: usize, end: usize, machine: Machine) -> Hot {
        let lines = &self.lines[start..=end];
        let set = match machine {
            Machine::Arm => "neon",
            Machine::X86 => {
                let uses = |register| lines.iter().any(|line| line.contains(register));
                if uses("%zmm") {
                    "avx-512"
                } else if uses("%ymm") {
                    "avx2"
                } else {
                    "sse2"
                }
            }
        };
        let promised = match machine {
            Machine::Arm => "neon",
            Machine::X86 if self.name.contains("6avx512") => "avx-512",
            Machine::X86 if self.name.contains("4avx2") => "avx2",
            Machine::X86 => "sse2",
        };
        let mut hot = Hot { set, promised, wide: 0, scalar: 0, stack: 0 };
        for line in lines {
            match kind(line, set) {
                Kind::Wide => hot.wide += 1,
                Kind::Scalar => hot.scalar += 1,
                Kind::Stack => hot.stack += 1,
                Kind::Other => {}
            }
        }
        hot
    }
}

/// Target label of a conditional or unconditional jump.
fn jump(line: &str, machine: Machine) -> Option<&str> {
    let (name, operands) = line.split_once(char::is_whitespace)?;
    let is_jump = match machine {
        Machine::X86 => name.starts_with('j'),
        Machine::Arm => {
            name == "b"
                || name.starts_with("b.")
                || name.starts_with("cb")
                || name.starts_with("tb")
        }
    };
    is_jump.then(|| operands.rsplit(',').next().unwrap_or(operands).trim())
}

fn kind(line: &str, set: &str) -> Kind {
    let Some((name, operands)) = line.split_once(char::is_whitespace) else { return Kind::Other };
    if set == "neon" {
        let computes = ARM_OPERATIONS.iter().any(|op| name.starts_with(op));
        let vector =
            operands.contains(".4s") || operands.contains(".2d") || operands.contains(".16b");
        let moves = name.starts_with("ldr")
            || name.starts_with("str")
            || name.starts_with("ldp")
            || name.starts_with("stp");
        return match () {
            () if computes && vector => Kind::Wide,
            () if computes => Kind::Scalar,
            () if moves && operands.trim().starts_with('q') && operands.contains("[sp") => {
                Kind::Stack
            }
            () => Kind::Other,
        };
    }
    let register = match set {
        "avx-512" => "%zmm",
        "avx2" => "%ymm",
        _ => "%xmm",
    };
    // SSE2 mnemonics lack the prefix `v`.
    let is = |op: &&str| name.starts_with(*op) || (set == "sse2" && name.starts_with(&op[1..]));
    let computes = X86_OPERATIONS.iter().any(is);
    let one = name.ends_with("ss") || name.ends_with("sd");
    let spilled = operands.contains("(%rsp)") || operands.contains("(%rbp)");
    match () {
        () if name.contains("mov") && spilled && operands.contains(register) => Kind::Stack,
        () if computes && one => Kind::Scalar,
        () if computes && operands.contains(register) => Kind::Wide,
        () => Kind::Other,
    }
}
