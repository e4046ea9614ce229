//! Empty library: the package consists of its tests.
