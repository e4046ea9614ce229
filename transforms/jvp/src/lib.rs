//! Forward-mode derivatives: `Jvp<B>` carries a tangent beside every float tensor.
