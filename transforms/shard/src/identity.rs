//! What a call is, in so few bytes that processes can compare it before they begin.

use burn_backend::Backend;
use burn_t4a_compile::CompileError;
use burn_t4a_compile::graph::{Graph, Key};

use crate::error::Result;
use crate::parts::encode;
use crate::processes::Digests;

/// What is compared, in the order in which differences are told.
const WHAT: [&str; 4] = ["mesh", "shapes of arguments", "program", "captured tensors"];

/// Hashes of a call, and what they are of.
pub(crate) struct Identity {
    pub(crate) digests: Digests,
    here: [String; 4],
}

/// FNV-1a: it finds differences, not forgeries.
fn hash(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

impl Identity {
    /// Of a recording and how it is spread, which `plan` shows. Operations that are values are compared by
    /// their names.
    pub(crate) fn new<B: Backend>(
        mesh: String,
        key: &Key,
        graph: &Graph<B>,
        plan: &str,
    ) -> Result<Self> {
        let mut program = hash(EMPTY, plan.as_bytes());
        for one in graph.instructions() {
            program = hash(program, format!("{:?}", one.words()).as_bytes());
        }
        let mut captured = EMPTY;
        for (value, x) in graph.constants() {
            captured = hash(captured, format!("{value} {}", x.meta()).as_bytes());
            let operation = "captured tensors";
            let bytes = encode(x.clone());
            let bytes = bytes.map_err(|message| CompileError::Operation { operation, message })?;
            captured = hash(captured, &bytes);
        }
        let key = key.to_string();
        let digests =
            [hash(EMPTY, mesh.as_bytes()), hash(EMPTY, key.as_bytes()), program, captured];
        let program = format!("{} operations ({program:016x})", graph.instructions().len());
        let captured = format!("{} of them ({captured:016x})", graph.constants().len());
        Ok(Self { digests, here: [mesh, key, program, captured] })
    }

    /// What the hash at this place is of, and what that is here.
    pub(crate) fn told(&self, at: usize) -> (&'static str, String) {
        (WHAT[at], self.here[at].clone())
    }
}
