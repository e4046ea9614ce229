//! Fingerprint of a call: four hashes that processes compare before they start the call.

use burn_backend::Backend;
use burn_t4a_compile::CompileError;
use burn_t4a_compile::graph::{Graph, Key};

use crate::error::Result;
use crate::parts::encode;
use crate::processes::Digests;

/// Hashed components of a call, in the order in which differences are reported.
const WHAT: [&str; 4] = ["mesh", "shapes of arguments", "program", "captured tensors"];

/// Hashes of a call and a readable description of each hashed component.
pub(crate) struct CallIdentity {
    pub(crate) digests: Digests,
    here: [String; 4],
}

/// FNV-1a: detects accidental differences; it is not collision-resistant.
fn hash(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

impl CallIdentity {
    /// Hashes a recorded graph and its sharding, given as the text of the plan. Operations whose static arguments have
    /// no encoding as words are compared by name only.
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

    /// Name of component `at` and its description in this process.
    pub(crate) fn told(&self, at: usize) -> (&'static str, String) {
        (WHAT[at], self.here[at].clone())
    }
}
