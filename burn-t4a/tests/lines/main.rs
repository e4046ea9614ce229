//! Tests that both lines of Burn share, on Burn 0.21: their texts are in `face/ext/tests`.

// A text runs on several tapes and backends.
#![allow(clippy::duplicate_mod)]

#[macro_use]
mod line;
mod tape;

mod plain {
    pub(crate) use crate::line::plain::*;

    mod complex;
    mod discrete;
    mod nn;
    mod tree;
}

mod balanced {
    pub(crate) use crate::line::balanced::*;

    mod nn;
}

mod flex {
    pub(crate) use crate::line::flex::*;

    mod discrete;
    mod nn;
}
