//! Selection of a triangle of a matrix.

/// Transformation applied to a triangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum TriangleOp {
    /// No transformation: `T`.
    None,
    /// `Tᵀ`.
    Transpose,
    /// `Tᴴ`.
    Adjoint,
}

/// Selected triangle of a matrix, and its transformation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Triangle {
    /// The upper triangle instead of the lower one.
    pub upper: bool,
    /// Unit diagonal; the stored diagonal is ignored.
    pub unit: bool,
    /// Transformation of the triangle.
    pub op: TriangleOp,
}

impl Triangle {
    /// The lower triangle.
    pub const LOWER: Self = Self { upper: false, unit: false, op: TriangleOp::None };
    /// The upper triangle.
    pub const UPPER: Self = Self { upper: true, unit: false, op: TriangleOp::None };

    /// The same triangle with a unit diagonal.
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
