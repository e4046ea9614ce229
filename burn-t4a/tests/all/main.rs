//! Operations beyond Burn's on Burn 0.21, as one program, in which they are compiled once. Modules of a tape contain the tests
//! that all versions of Burn share; their sources are in `face/ext/tests`.

// A source file is included for several tapes and backends.
#![allow(clippy::duplicate_mod)]

mod einsum;
#[macro_use]
mod line;
mod linalg;
mod networks;
mod routes;
mod scalar;
mod structured;
mod tape;

mod plain {
    pub(crate) use crate::line::plain::*;

    pub(crate) mod arrays;
    mod chains;
    mod complex;
    mod contractions;
    mod discrete;
    mod edges;
    mod models;
    pub(crate) mod native;
    mod nn;
    mod passes;
    pub(crate) mod recurrences;
    mod scan;
    mod scan_paths;
    mod tree;
}

mod balanced {
    pub(crate) use crate::line::balanced::*;

    mod arrays;
    mod nn;
    pub(crate) mod recurrences;
}

mod flex {
    pub(crate) use crate::line::flex::*;

    mod arrays;
    mod chains;
    mod discrete;
    mod edges;
    pub(crate) mod native;
    mod nn;
    mod passes;
    pub(crate) mod recurrences;
    mod scan_paths;
}

mod twice {
    pub(crate) use crate::line::twice::*;

    mod arrays;
    mod edges;
}

mod twice_flex {
    pub(crate) use crate::line::twice_flex::*;

    mod arrays;
    mod edges;
}

mod eager {
    pub(crate) use crate::line::eager::*;

    mod arrays;
    mod chains;
    pub(crate) mod native;
    mod scan_paths;
}

mod eager_flex {
    pub(crate) use crate::line::eager_flex::*;

    mod arrays;
    pub(crate) mod native;
    mod scan_paths;
}

#[test]
fn layers_and_filters_agree_between_backends() {
    let own = plain::recurrences::layers_and_filters();
    for other in
        [balanced::recurrences::layers_and_filters(), flex::recurrences::layers_and_filters()]
    {
        for (own, other) in own.iter().zip(&other) {
            plain::arrays::close(own, other, 1e-12);
        }
    }
}
