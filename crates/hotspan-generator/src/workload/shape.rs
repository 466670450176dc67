//! The shape of a trace: which operation calls which, before anything has a time.

use crate::fleet::{Fleet, Operation, OperationKind};
use crate::random::{Random, Skewed};

/// What a span is in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Runs an operation of its own service.
    Runs,
    /// Calls an endpoint of another service, whose span is its only child.
    Calls,
}

/// A span in the making.
#[derive(Debug, Clone)]
pub(super) struct Draft<'w> {
    pub(super) parent: Option<usize>,
    pub(super) service: u16,
    /// What it runs, or the endpoint that it calls.
    pub(super) operation: &'w Operation,
    pub(super) role: Role,
    pub(super) children: Vec<usize>,
    depth: u32,
}

/// Deeper chains of calls are rare in practice.
const MAX_DEPTH: u32 = 14;
/// However long the tail of the distribution is.
const MAX_SPANS: usize = 10_000;

/// Grows a trace; a span stands before its children.
pub(super) fn grow<'w>(fleet: &'w Fleet, entries: &Skewed, mean_spans: f64, random: &mut Random) -> Vec<Draft<'w>> {
    // The mean of a log-normal distribution is the median times exp(sigma^2 / 2).
    let sigma: f64 = 0.8;
    let wanted = random.log_normal(mean_spans / (sigma * sigma / 2.0).exp(), sigma).round();
    let wanted = (wanted as usize).clamp(1, MAX_SPANS);
    let entry = entries.pick(random) as u16;
    let endpoint = fleet.services[usize::from(entry)].pick_operation(OperationKind::Endpoint, random);
    let root =
        Draft { parent: None, service: entry, operation: endpoint, role: Role::Runs, children: Vec::new(), depth: 0 };
    let mut spans = vec![root];
    // Spans that may call something.
    let mut open = vec![0];
    while spans.len() < wanted {
        // Half the time the newest goes on: some traces are deep, others wide.
        let parent = if random.chance(0.5) { open[open.len() - 1] } else { open[random.below(open.len())] };
        let service = &fleet.services[usize::from(spans[parent].service)];
        let may_call = spans.len() + 2 <= wanted && spans[parent].depth + 2 < MAX_DEPTH;
        let may_nest = spans[parent].depth + 1 < MAX_DEPTH;
        match random.below(100) {
            0..=44 if may_call && !service.downstream.is_empty() => {
                let called = random.pick(&service.downstream).copied().unwrap_or_default();
                let endpoint = fleet.services[usize::from(called)].pick_operation(OperationKind::Endpoint, random);
                let caller = spans[parent].service;
                let call = add(&mut spans, parent, caller, endpoint, Role::Calls);
                let answer = add(&mut spans, call, called, endpoint, Role::Runs);
                open.push(answer);
            }
            0..=69 if may_nest => {
                let operation = service.pick_operation(OperationKind::Step, random);
                let owner = spans[parent].service;
                let step = add(&mut spans, parent, owner, operation, Role::Runs);
                open.push(step);
            }
            kind => {
                let kind = if kind < 96 { OperationKind::Query } else { OperationKind::Publish };
                let operation = service.pick_operation(kind, random);
                let owner = spans[parent].service;
                add(&mut spans, parent, owner, operation, Role::Runs);
            }
        }
    }
    spans
}

fn add<'w>(spans: &mut Vec<Draft<'w>>, parent: usize, service: u16, operation: &'w Operation, role: Role) -> usize {
    let number = spans.len();
    let depth = spans[parent].depth + 1;
    spans.push(Draft { parent: Some(parent), service, operation, role, children: Vec::new(), depth });
    spans[parent].children.push(number);
    number
}
