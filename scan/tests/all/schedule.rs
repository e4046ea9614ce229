//! Schedules of reverse passes: the table of policies, for many lengths.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;

use t4a_scan::schedule::{Action, Policy, Schedule};

/// Cost of a schedule: steps recomputed outside of spans, and maximum number of stored carries without c₀.
#[derive(Debug, PartialEq)]
struct Needs {
    again: usize,
    kept: usize,
}

/// Executes every action and checks its precondition.
fn follow(policy: Policy, steps: usize) -> Needs {
    let schedule = Schedule::new(policy, steps).unwrap();
    let mut kept = std::collections::BTreeSet::new();
    let (mut at, mut made, mut most) = (Some(0), 0, 0);
    let mut left = steps;
    for action in schedule.forward().chain([Action::Restore(usize::MAX)]).chain(schedule.backward())
    {
        match action {
            // Marks the boundary between forward and backward pass.
            Action::Restore(usize::MAX) => {
                assert_eq!((at, made), (Some(steps), steps), "{policy:?} {steps}");
                at = None;
            }
            Action::Advance { from, to } => {
                assert!(at == Some(from) && from < to, "{action:?}");
                made += to - from;
                at = Some(to);
            }
            Action::Store(t) => {
                assert!(at == Some(t) && kept.insert(t), "{action:?}");
                most = most.max(kept.iter().filter(|&&t| t > 0).count());
            }
            Action::Restore(t) => {
                assert!(kept.contains(&t), "{action:?}");
                at = Some(t);
            }
            Action::Discard(t) => assert!(kept.remove(&t), "{action:?}"),
            Action::Reverse { from, to } => {
                assert!(at == Some(from) && to == left && from < to, "{action:?}");
                assert!(to - from <= schedule.span());
                left = from;
            }
        }
    }
    assert_eq!(left, 0);
    Needs { again: made - steps, kept: most }
}

fn lengths() -> impl Iterator<Item = usize> {
    (0..70).chain([99, 100, 101, 1000, 10_000])
}

#[test]
fn carries_and_segments_are_the_table() {
    for n in lengths() {
        assert_eq!(follow(Policy::Carries, n), Needs { again: 0, kept: n.saturating_sub(1) });
        let root = (n as f64).sqrt().ceil() as usize;
        let Needs { again, kept } = follow(Policy::Sqrt, n);
        assert!(again == 0 && kept <= root, "{n}");
        assert_eq!(Schedule::new(Policy::Sqrt, n).unwrap().span(), root);
        for k in [1, 2, 7, 64, 200] {
            let kept = n.div_ceil(k).saturating_sub(1);
            assert_eq!(follow(Policy::Segment(k), n), Needs { again: 0, kept });
        }
    }
}

/// `t(s, n) = min over m of m + t(s − 1, n − m) + t(s, m)`, the minimal number of steps.
fn least(
    s: usize,
    n: usize,
    table: &mut std::collections::HashMap<(usize, usize), usize>,
) -> usize {
    match (s, n) {
        (_, 0 | 1) => 0,
        (1, n) => n * (n - 1) / 2,
        _ => {
            if let Some(&known) = table.get(&(s, n)) {
                return known;
            }
            let split = |m| m + least(s - 1, n - m, table) + least(s, m, table);
            let best = (1..n).map(split).min().unwrap();
            table.insert((s, n), best);
            best
        }
    }
}

#[test]
fn spans_are_those_of_the_reverse_pass() {
    let policies = [Policy::Carries, Policy::Sqrt, Policy::Segment(3), Policy::Revolve(2)];
    for (policy, n) in policies.into_iter().flat_map(|policy| (0..40).map(move |n| (policy, n))) {
        let schedule = Schedule::new(policy, n).unwrap();
        let reversed =
            schedule.backward().filter(|action| matches!(action, Action::Reverse { .. }));
        assert_eq!(schedule.spans(), reversed.count(), "{policy:?} of {n}");
    }
}

#[test]
fn revolve_needs_the_fewest_steps() {
    let mut table = std::collections::HashMap::new();
    for s in 1..8 {
        for n in 1..70 {
            let Needs { again, kept } = follow(Policy::Revolve(s), n);
            // The last step is executed for the last carry, which the table does not count.
            assert_eq!(again + n - 1, least(s, n, &mut table), "{s} {n}");
            assert!(kept <= s, "{s} {n} {kept}");
        }
    }
    assert_eq!(follow(Policy::Revolve(3), 0), Needs { again: 0, kept: 0 });
}

/// Published values for 10⁴ and 10⁵ steps: repetitions `t(s, n)/n`.
#[test]
fn revolve_on_long_sequences() {
    for (s, n, sweeps) in [
        (10, 10_000, 5.8),
        (14, 10_000, 4.6),
        (20, 10_000, 3.8),
        (32, 10_000, 3.3),
        (17, 100_000, 5.7),
    ] {
        let Needs { again, kept } = follow(Policy::Revolve(s), n);
        let made = (again + n) as f64 / n as f64;
        assert!((made - sweeps).abs() < 0.1 && kept == s, "{s} {n} {made} {kept}");
    }
}

#[test]
fn a_policy_that_keeps_nothing_is_an_error() {
    assert!(Schedule::new(Policy::Segment(0), 5).is_err());
    assert!(Schedule::new(Policy::Revolve(0), 5).is_err());
}

/// A carry that counts its live instances.
#[derive(Debug)]
struct Counted {
    value: f64,
    live: Rc<Cell<[usize; 2]>>,
}

impl Counted {
    fn new(value: f64, live: &Rc<Cell<[usize; 2]>>) -> Self {
        let [now, most] = live.get();
        live.set([now + 1, most.max(now + 1)]);
        Self { value, live: live.clone() }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.value, &self.live)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let [now, most] = self.live.get();
        self.live.set([now - 1, most]);
    }
}

/// `c ← sin(c + x_t)` with its gradient under every policy: bit-identical results, memory within the bound.
#[test]
fn every_policy_gives_the_same_gradient() {
    let n = 1000;
    let x: Vec<f64> = (0..n).map(|t| (t as f64 * 0.7).cos()).collect();
    let gradient = |policy| {
        let live = Rc::new(Cell::new([0, 0]));
        let schedule = Schedule::new(policy, n).unwrap();
        let step = |t: usize, c: Counted| {
            let next = (c.value + x[t]).sin();
            drop(c);
            Ok::<_, Infallible>(Counted::new(next, &live))
        };
        let Ok((last, stored)) = schedule.run_forward(Counted::new(0.3, &live), step);
        drop(last);
        let mut of_c = 1.0;
        let mut of_x = vec![0.0; n];
        let reverse = |from: usize, to: usize, c: Counted| {
            let mut carries = vec![c];
            for t in from..to - 1 {
                let next = (carries[t - from].value + x[t]).sin();
                carries.push(Counted::new(next, &live));
            }
            for t in (from..to).rev() {
                of_c *= (carries[t - from].value + x[t]).cos();
                of_x[t] = of_c;
            }
            Ok(())
        };
        let Ok(()) = schedule.run_backward(stored, step, reverse);
        let [now, most] = live.get();
        assert_eq!(now, 0);
        (of_x.iter().map(|g| g.to_bits()).collect::<Vec<_>>(), most)
    };
    let (want, most) = gradient(Policy::Carries);
    assert_eq!(most, n + 1);
    // Stored carries, carries in a span, and the current one.
    for (policy, bound) in [
        (Policy::Sqrt, 32 + 32),
        (Policy::Segment(10), 100 + 10),
        (Policy::Segment(2000), 1 + 1000),
        // c₀ is included here.
        (Policy::Revolve(1), 1 + 2),
        (Policy::Revolve(4), 4 + 2),
        (Policy::Revolve(20), 20 + 2),
    ] {
        let (own, most) = gradient(policy);
        assert_eq!(own, want, "{policy:?}");
        assert!(most <= bound + 1, "{policy:?}: {most}");
    }
}
