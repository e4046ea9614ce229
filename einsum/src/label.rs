//! Names of indices.

use std::fmt;

/// The name of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Label {
    /// A letter.
    Char(char),
    /// An integer.
    Int(i64),
    /// An axis under the ellipsis, counted from the right.
    Ellipsis(u32),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Char(c) => write!(f, "'{c}'"),
            Label::Int(i) => write!(f, "{i}"),
            Label::Ellipsis(i) => write!(f, "...[-{}]", i + 1),
        }
    }
}

macro_rules! from_label {
    ($($t:ty: $x:ident => $label:expr;)*) => {$(
        impl From<$t> for Label {
            fn from($x: $t) -> Self {
                $label
            }
        }
    )*};
}
from_label! {
    char: c => Label::Char(c);
    i32: i => Label::Int(i.into());
    i64: i => Label::Int(i);
    u32: i => Label::Int(i.into());
    // Two's complement keeps distinct labels distinct.
    usize: i => Label::Int(i as i64);
}
