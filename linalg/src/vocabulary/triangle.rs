//! Which triangle of a matrix is meant.

/// What is applied to a matrix before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum TriangleOp {
    /// `T`.
    None,
    /// `Tᵀ`.
    Transpose,
    /// `Tᴴ`.
    Adjoint,
}

/// Which triangle of a matrix is read, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Triangle {
    /// The upper triangle instead of the lower one.
    pub upper: bool,
    /// Ones on the diagonal, whatever is stored there.
    pub unit: bool,
    /// Applied to the triangle.
    pub op: TriangleOp,
}

impl Triangle {
    /// The lower triangle.
    pub const LOWER: Self = Self { upper: false, unit: false, op: TriangleOp::None };
    /// The upper triangle.
    pub const UPPER: Self = Self { upper: true, unit: false, op: TriangleOp::None };

    /// With ones on the diagonal.
    pub const fn unit(self) -> Self {
        Self { unit: true, ..self }
    }

    /// The conjugate transpose of this triangle.
    pub const fn adjoint(self) -> Self {
        Self { op: TriangleOp::Adjoint, ..self }
    }

    /// The transpose of this triangle.
    pub const fn transpose(self) -> Self {
        Self { op: TriangleOp::Transpose, ..self }
    }
}
