//! Vectorisation: `Vmap<B>` hides batch axes in front of every tensor.
