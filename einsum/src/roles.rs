//! Roles of the labels of one or two operands.

use crate::label::Label;
use crate::network::LabelId;
use crate::plan::Plan;

/// Labels of a contraction of one or two tensors, classified by role; axes of size 1 have none.
///
/// ```text
/// A  [batch, left, sum,   lone 0]     batch  in A, B and C     sum   in A and B
/// B  [batch, sum,  right, lone 1]     left   in A and C        lone  in one operand only
/// C  [repeated, batch, left, right]   right  in B and C        repeated  in the result only
/// ```
///
/// Summed labels are in the order of [`Plan::labels`], which numbers the terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles<L = Label> {
    /// In both operands and in the result.
    pub batch: Vec<L>,
    /// In the first operand and in the result.
    pub left: Vec<L>,
    /// In the second operand and in the result.
    pub right: Vec<L>,
    /// In both operands, summed.
    pub sum: Vec<L>,
    /// In one operand only, summed before the product.
    pub lone: [Vec<L>; 2],
    /// In the result only.
    pub repeated: Vec<L>,
}

impl<L> Roles<L> {
    fn map<M>(self, f: impl Fn(L) -> M) -> Roles<M> {
        let all = |labels: Vec<L>| labels.into_iter().map(&f).collect();
        Roles {
            batch: all(self.batch),
            left: all(self.left),
            right: all(self.right),
            sum: all(self.sum),
            lone: self.lone.map(all),
            repeated: all(self.repeated),
        }
    }
}

impl Plan {
    /// The roles of the labels if the plan has one or two operands, as all plans of [`Plan::steps`] have.
    ///
    /// ```
    /// use t4a_einsum::{Einsum, Label};
    /// let plan = Einsum::new("bij,bjk->bik")?.plan(&[&[5, 2, 3], &[5, 3, 4]], 8)?;
    /// let roles = plan.roles().unwrap();
    /// assert_eq!(roles.batch, [Label::from('b')]);
    /// assert_eq!([roles.left, roles.sum, roles.right], ['i', 'j', 'k'].map(|l| vec![l.into()]));
    /// # Ok::<(), t4a_einsum::EinsumError>(())
    /// ```
    pub fn roles(&self) -> Option<Roles> {
        Some(self.role_ids()?.map(|id| self.network.names[id as usize]))
    }

    /// [`Plan::roles`] with numbered labels.
    pub(crate) fn role_ids(&self) -> Option<Roles<LabelId>> {
        let network = &self.network;
        let mut roles = match &self.steps[..] {
            [] => {
                let kept = network.inputs[0].iter().filter(|id| !self.lone.contains(id));
                let mut lone = self.lone.to_vec();
                lone.sort_unstable();
                let left = kept.copied().collect();
                Roles { left, lone: [lone, Vec::new()], ..Roles::default() }
            }
            [step] => Roles {
                batch: step.batch.to_vec(),
                left: step.left.to_vec(),
                right: step.right.to_vec(),
                sum: step.sum.to_vec(),
                lone: [step.lone_left.to_vec(), step.lone_right.to_vec()],
                repeated: Vec::new(),
            },
            _ => return None,
        };
        if self.steps.first().is_some_and(|step| step.lhs > step.rhs) {
            std::mem::swap(&mut roles.left, &mut roles.right);
            roles.lone.swap(0, 1);
        }
        for &id in network.result.iter().flatten() {
            let known = network.inputs.iter().any(|ids| ids.contains(&id));
            if !known && !roles.repeated.contains(&id) {
                roles.repeated.push(id);
            }
        }
        Some(roles)
    }
}
