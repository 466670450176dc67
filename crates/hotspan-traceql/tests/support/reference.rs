//! A slow, obvious evaluator, written from the rules of the language and not from the real one: it walks the syntax
//! tree for every span, follows parent pointers one by one and compares every span with every other.

use std::collections::BTreeSet;

use hotspan_traceql::ast::*;
use hotspan_traceql::memory::{MemorySpan, MemoryTrace};
use hotspan_traceql::{Spanset, Value};

/// The spansets of a search.
pub fn search(query: &Query, trace: &MemoryTrace) -> Vec<Spanset> {
    let QueryBody::Search { pipeline, .. } = &query.body else { panic!("not a search") };
    run(trace, &pipeline.stages, vec![everything(trace)])
}

/// The spans, in order and with repetition, that a metrics query observes.
pub fn observed(stages: &[Stage], trace: &MemoryTrace) -> Vec<usize> {
    let sets = run(trace, stages, vec![everything(trace)]);
    sets.into_iter().flat_map(|set| set.spans).map(|span| span as usize).collect()
}

fn everything(trace: &MemoryTrace) -> Spanset {
    Spanset { spans: (0..trace.spans.len() as u32).collect(), attributes: Vec::new() }
}

fn run(trace: &MemoryTrace, stages: &[Stage], mut sets: Vec<Spanset>) -> Vec<Spanset> {
    sets.retain(|set| !set.spans.is_empty());
    for stage in stages {
        let mut next: Vec<Spanset> = Vec::new();
        match stage {
            Stage::Spanset(spans) => {
                for set in &sets {
                    next.extend(spanset(trace, spans, set));
                }
            }
            Stage::By(expr) => {
                for set in &sets {
                    let mut groups: Vec<(Value, Vec<u32>)> = Vec::new();
                    for span in &set.spans {
                        let found = value(trace, expr, *span as usize);
                        // Functions and files are sets: a span is in the group of each.
                        let is_set = ["profile.function", "profile.file"].contains(&expr.to_string().as_str());
                        let all = match found {
                            Value::Array(elements) if is_set => BTreeSet::from_iter(elements),
                            single => BTreeSet::from([single]),
                        };
                        for found in all {
                            match groups.iter_mut().find(|(known, _)| *known == found) {
                                Some((_, members)) => members.push(*span),
                                None => groups.push((found, vec![*span])),
                            }
                        }
                    }
                    for (found, spans) in groups {
                        let mut attributes = set.attributes.clone();
                        put(&mut attributes, format!("by({expr})"), found);
                        next.push(Spanset { spans, attributes });
                    }
                }
            }
            Stage::Coalesce(_) => {
                if !sets.is_empty() {
                    next.push(Spanset { spans: spans_of(&sets), attributes: Vec::new() });
                }
            }
            Stage::Select(_) => next = sets.clone(),
        }
        sets = next;
        sets.retain(|set| !set.spans.is_empty());
    }
    sets
}

fn put(attributes: &mut Vec<(String, Value)>, name: String, value: Value) {
    match attributes.iter_mut().find(|(known, _)| *known == name) {
        Some(known) => known.1 = value,
        None => attributes.push((name, value)),
    }
}

fn spans_of(sets: &[Spanset]) -> Vec<u32> {
    let mut all: Vec<u32> = sets.iter().flat_map(|set| set.spans.clone()).collect();
    all.sort();
    all.dedup();
    all
}

fn spanset(trace: &MemoryTrace, expr: &SpansetExpr, input: &Spanset) -> Vec<Spanset> {
    let keep = |spans: Vec<u32>| {
        let set = Spanset { spans, attributes: input.attributes.clone() };
        if set.spans.is_empty() { vec![] } else { vec![set] }
    };
    match expr {
        SpansetExpr::Filter { condition, .. } => keep(
            input
                .spans
                .iter()
                .copied()
                .filter(|span| condition.as_ref().is_none_or(|condition| truth(trace, condition, *span as usize)))
                .collect(),
        ),
        SpansetExpr::Pipeline(pipeline) => run(trace, &pipeline.stages, vec![input.clone()]),
        SpansetExpr::Binary { op, lhs, rhs, .. } => {
            let left = spanset(trace, lhs, input);
            let right = spanset(trace, rhs, input);
            match op {
                SpansetOp::And | SpansetOp::Or => {
                    if *op == SpansetOp::And && (left.is_empty() || right.is_empty()) {
                        return vec![];
                    }
                    let both = [left, right].concat();
                    let mut result = keep(spans_of(&both));
                    for set in both {
                        for (name, value) in set.attributes {
                            put(&mut result[0].attributes, name, value);
                        }
                    }
                    result
                }
                SpansetOp::Structural { relation, form } => {
                    let (left, right) = (spans_of(&left), spans_of(&right));
                    let mut result = Vec::new();
                    for b in &right {
                        let is_related = left.iter().any(|a| related(trace, *relation, *a as usize, *b as usize));
                        if is_related != (*form == StructuralForm::RightWithout) {
                            result.push(*b);
                        }
                    }
                    if *form == StructuralForm::Both {
                        for a in &left {
                            if right.iter().any(|b| related(trace, *relation, *a as usize, *b as usize)) {
                                result.push(*a);
                            }
                        }
                    }
                    result.sort();
                    result.dedup();
                    keep(result)
                }
            }
        }
        SpansetExpr::ScalarFilter { op, lhs, rhs, .. } => {
            let left = scalar(trace, lhs, &input.spans);
            let right = scalar(trace, rhs, &input.spans);
            if !compare(&left, *op, &right) {
                return vec![];
            }
            let mut spans = Vec::new();
            for side in [lhs, rhs] {
                collect_spans(trace, side, input, &mut spans);
            }
            spans.sort();
            spans.dedup();
            let mut result = keep(spans);
            for (side, found) in [(lhs, left), (rhs, right)] {
                if !is_constant(side) && !result.is_empty() {
                    put(&mut result[0].attributes, side.to_string(), found);
                }
            }
            result
        }
    }
}

fn is_constant(scalar: &ScalarExpr) -> bool {
    match scalar {
        ScalarExpr::Literal { .. } => true,
        ScalarExpr::Negate { of, .. } => is_constant(of),
        ScalarExpr::Binary { lhs, rhs, .. } => is_constant(lhs) && is_constant(rhs),
        _ => false,
    }
}

fn collect_spans(trace: &MemoryTrace, side: &ScalarExpr, input: &Spanset, spans: &mut Vec<u32>) {
    match side {
        ScalarExpr::Literal { .. } => {}
        ScalarExpr::Aggregate { .. } => spans.extend(&input.spans),
        ScalarExpr::Negate { of, .. } => collect_spans(trace, of, input, spans),
        ScalarExpr::Binary { lhs, rhs, .. } => {
            collect_spans(trace, lhs, input, spans);
            collect_spans(trace, rhs, input, spans);
        }
        ScalarExpr::Pipeline { stages, value, .. } => {
            let chosen = spans_of(&run(trace, stages, vec![input.clone()]));
            spans.extend(&chosen);
            // A pipeline inside the value chooses among the chosen.
            if let ScalarExpr::Pipeline { .. } = **value {
                let inner = Spanset { spans: chosen, attributes: vec![] };
                collect_spans(trace, value, &inner, spans);
            }
        }
    }
}

fn scalar(trace: &MemoryTrace, expr: &ScalarExpr, spans: &[u32]) -> Value {
    match expr {
        ScalarExpr::Literal { value, .. } => Value::from_literal(value),
        ScalarExpr::Negate { of, .. } => calculate(&Value::Int(-1), ArithmeticOp::Mul, &scalar(trace, of, spans)),
        ScalarExpr::Binary { op, lhs, rhs } => calculate(&scalar(trace, lhs, spans), *op, &scalar(trace, rhs, spans)),
        ScalarExpr::Pipeline { stages, value, .. } => {
            let input = Spanset { spans: spans.to_vec(), attributes: vec![] };
            scalar(trace, value, &spans_of(&run(trace, stages, vec![input])))
        }
        ScalarExpr::Aggregate { op: AggregateOp::Count, .. } => Value::Int(spans.len() as i64),
        ScalarExpr::Aggregate { op, of, .. } => {
            let mut numbers: Vec<Value> = Vec::new();
            for span in spans {
                match value(trace, of.as_ref().unwrap(), *span as usize) {
                    Value::Array(values) => numbers.extend(values),
                    single => numbers.push(single),
                }
            }
            numbers.retain(|value| number(value).is_some());
            let floats: Vec<f64> = numbers.iter().map(|value| number(value).unwrap()).collect();
            if numbers.is_empty() {
                return Value::Nil;
            }
            let are_durations = numbers.iter().all(|value| matches!(value, Value::Duration(_)));
            let have_floats = numbers.iter().any(|value| matches!(value, Value::Float(_)));
            let sum: f64 = floats.iter().sum();
            match op {
                AggregateOp::Count => unreachable!(),
                AggregateOp::Min => {
                    numbers.into_iter().reduce(|a, b| if number(&b) < number(&a) { b } else { a }).unwrap()
                }
                AggregateOp::Max => {
                    numbers.into_iter().reduce(|a, b| if number(&b) > number(&a) { b } else { a }).unwrap()
                }
                AggregateOp::Sum if have_floats => Value::Float(sum),
                AggregateOp::Sum if are_durations => Value::Duration(sum as i64),
                AggregateOp::Sum => Value::Int(sum as i64),
                AggregateOp::Avg if are_durations => Value::Duration((sum / floats.len() as f64).round() as i64),
                AggregateOp::Avg => Value::Float(sum / floats.len() as f64),
            }
        }
    }
}

/// Whether `b` stands in the relation to `a`.
fn related(trace: &MemoryTrace, relation: Relation, a: usize, b: usize) -> bool {
    match relation {
        Relation::Child => parent(trace, b) == Some(a),
        Relation::Parent => parent(trace, a) == Some(b),
        Relation::Descendant => ancestors(trace, b).contains(&a),
        Relation::Ancestor => ancestors(trace, a).contains(&b),
        Relation::Sibling => a != b && parent(trace, a).is_some() && parent(trace, a) == parent(trace, b),
    }
}

/// Parent pointer by id; the earliest span of an id counts. A span that would be its own ancestor has its link cut if
/// it is the earliest of its cycle.
pub fn parent(trace: &MemoryTrace, span: usize) -> Option<usize> {
    let direct = link(trace, span)?;
    let mut cycle = vec![span];
    let mut at = direct;
    while !cycle.contains(&at) {
        cycle.push(at);
        match link(trace, at) {
            Some(next) => at = next,
            None => return Some(direct),
        }
    }
    if at != span {
        return Some(direct);
    }
    let earliest = cycle.into_iter().min_by_key(|span| age(trace, *span));
    if earliest == Some(span) { None } else { Some(direct) }
}

fn age(trace: &MemoryTrace, span: usize) -> (i64, [u8; 8], usize) {
    (trace.spans[span].start_nanos, trace.spans[span].id.0, span)
}

fn link(trace: &MemoryTrace, span: usize) -> Option<usize> {
    let wanted = trace.spans[span].parent_id?;
    let found = (0..trace.spans.len()).filter(|at| trace.spans[*at].id == wanted).min_by_key(|at| age(trace, *at))?;
    (found != span).then_some(found)
}

fn ancestors(trace: &MemoryTrace, span: usize) -> Vec<usize> {
    let mut all = Vec::new();
    let mut at = span;
    while let Some(up) = parent(trace, at) {
        all.push(up);
        at = up;
    }
    all
}

/// Numbers the trees by plain recursion.
fn nested_set(trace: &MemoryTrace) -> Vec<(i64, i64)> {
    fn visit(trace: &MemoryTrace, span: usize, next: &mut i64, numbers: &mut Vec<(i64, i64)>) {
        *next += 1;
        numbers[span].0 = *next;
        let mut children: Vec<usize> =
            (0..trace.spans.len()).filter(|child| parent(trace, *child) == Some(span)).collect();
        children.sort_by_key(|child| age(trace, *child));
        for child in children {
            visit(trace, child, next, numbers);
        }
        *next += 1;
        numbers[span].1 = *next;
    }
    let mut numbers = vec![(0, 0); trace.spans.len()];
    let mut roots: Vec<usize> = (0..trace.spans.len()).filter(|span| parent(trace, *span).is_none()).collect();
    roots.sort_by_key(|root| age(trace, *root));
    let mut next = 0;
    for root in roots {
        visit(trace, root, &mut next, &mut numbers);
    }
    numbers
}

fn truth(trace: &MemoryTrace, expr: &FieldExpr, span: usize) -> bool {
    match value(trace, expr, span) {
        Value::Bool(truth) => truth,
        Value::Array(values) => values.contains(&Value::Bool(true)),
        _ => false,
    }
}

/// The value of an expression for a span.
pub fn value(trace: &MemoryTrace, expr: &FieldExpr, span: usize) -> Value {
    match &expr.kind {
        FieldExprKind::Literal(literal) => Value::from_literal(literal),
        FieldExprKind::Field(name) => field(trace, name, span),
        FieldExprKind::Negate(of) => match value(trace, of, span) {
            Value::Float(number) => Value::Float(-number),
            other => calculate(&Value::Int(-1), ArithmeticOp::Mul, &other),
        },
        FieldExprKind::Not(of) => {
            let is_value = matches!(of.kind, FieldExprKind::Field(_) | FieldExprKind::Literal(_));
            match value(trace, of, span) {
                Value::Bool(truth) => Value::Bool(!truth),
                Value::Array(values) if is_value => Value::Bool(values.contains(&Value::Bool(false))),
                _ => Value::Bool(false),
            }
        }
        FieldExprKind::Logical { op, operands } => {
            let mut truths = operands.iter().map(|operand| truth(trace, operand, span));
            Value::Bool(match op {
                LogicalOp::And => truths.all(|truth| truth),
                LogicalOp::Or => truths.any(|truth| truth),
            })
        }
        FieldExprKind::Arithmetic { op, lhs, rhs, .. } => {
            calculate(&value(trace, lhs, span), *op, &value(trace, rhs, span))
        }
        FieldExprKind::Compare { op, lhs, rhs, .. } => {
            let is_nil = |expr: &FieldExpr| expr.as_literal() == Some(&Literal::Nil);
            if is_nil(lhs) || is_nil(rhs) {
                let other = if is_nil(lhs) { rhs } else { lhs };
                return Value::Bool(presence(trace, other, *op, span));
            }
            let (mut left, mut right) = (value(trace, lhs, span), value(trace, rhs, span));
            if !op.is_regex() {
                pad_id(lhs, &mut right);
                pad_id(rhs, &mut left);
            }
            Value::Bool(compare(&left, *op, &right))
        }
    }
}

/// Ids are compared in full length and lower case (except by patterns).
fn pad_id(of: &FieldExpr, literal: &mut Value) {
    let FieldExprKind::Field(Field::Intrinsic(intrinsic)) = &of.kind else { return };
    let digits = match intrinsic {
        Intrinsic::TraceId | Intrinsic::LinkTraceId => 32,
        Intrinsic::SpanId | Intrinsic::ParentId | Intrinsic::LinkSpanId => 16,
        _ => return,
    };
    if let Value::Str(text) = literal
        && !text.is_empty()
        && text.chars().all(|c| c.is_ascii_hexdigit())
    {
        while text.len() < digits {
            text.insert(0, '0');
        }
        *text = text.to_lowercase();
    }
}

fn presence(trace: &MemoryTrace, of: &FieldExpr, op: CompareOp, span: usize) -> bool {
    if of.as_literal().is_some() {
        return false;
    }
    let is_missing = value(trace, of, span) == Value::Nil;
    if op == CompareOp::NotEq {
        return !is_missing;
    }
    let at = &trace.spans[span];
    match &of.kind {
        FieldExprKind::Field(Field::Attribute { of_parent: false, scope: Scope::Event, .. }) => {
            is_missing && !at.events.is_empty()
        }
        FieldExprKind::Field(Field::Attribute { of_parent: false, scope: Scope::Link, .. }) => {
            is_missing && !at.links.is_empty()
        }
        _ => is_missing,
    }
}

fn compare(left: &Value, op: CompareOp, right: &Value) -> bool {
    let is_negative = matches!(op, CompareOp::NotEq | CompareOp::NotMatch);
    match (left, right) {
        (Value::Array(_), Value::Array(_)) => false,
        (Value::Array(values), single) if is_negative => values.iter().all(|value| compare(value, op, single)),
        (Value::Array(values), single) => values.iter().any(|value| compare(value, op, single)),
        (single, Value::Array(values)) if is_negative => values.iter().all(|value| compare(single, op, value)),
        (single, Value::Array(values)) => values.iter().any(|value| compare(single, op, value)),
        (Value::Str(text), Value::Str(pattern)) if op == CompareOp::Match || op == CompareOp::NotMatch => {
            let regex = regex::Regex::new(&format!("(?s)^(?:{pattern})$")).unwrap();
            regex.is_match(text) == (op == CompareOp::Match)
        }
        (left, right) => {
            let order = match (left, right) {
                (Value::Str(left), Value::Str(right)) => left.cmp(right),
                (Value::Bool(left), Value::Bool(right)) if is_equality(op) => left.cmp(right),
                (Value::Status(left), Value::Status(right)) if is_equality(op) => left.cmp(right),
                (Value::Kind(left), Value::Kind(right)) if is_equality(op) => left.cmp(right),
                (Value::Status(status), Value::Int(code)) if is_equality(op) => i64::from(status.number()).cmp(code),
                (Value::Int(code), Value::Status(status)) if is_equality(op) => code.cmp(&i64::from(status.number())),
                (Value::Kind(kind), Value::Int(number)) if is_equality(op) => i64::from(kind.number()).cmp(number),
                (Value::Int(number), Value::Kind(kind)) if is_equality(op) => number.cmp(&i64::from(kind.number())),
                (left, right) => match (number(left), number(right)) {
                    (Some(left), Some(right)) => match left.partial_cmp(&right) {
                        Some(order) => order,
                        None => return false,
                    },
                    _ => return false,
                },
            };
            match op {
                CompareOp::Eq => order.is_eq(),
                CompareOp::NotEq => order.is_ne(),
                CompareOp::Less => order.is_lt(),
                CompareOp::LessEq => order.is_le(),
                CompareOp::Greater => order.is_gt(),
                CompareOp::GreaterEq => order.is_ge(),
                CompareOp::Match | CompareOp::NotMatch => false,
            }
        }
    }
}

fn is_equality(op: CompareOp) -> bool {
    matches!(op, CompareOp::Eq | CompareOp::NotEq)
}

pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) | Value::Duration(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

/// Small numbers only: the tests of the real arithmetic look at overflow.
fn calculate(left: &Value, op: ArithmeticOp, right: &Value) -> Value {
    use ArithmeticOp::*;
    let (Some(a), Some(b)) = (number(left), number(right)) else { return Value::Nil };
    let float = match op {
        Add => a + b,
        Sub => a - b,
        Mul => a * b,
        Div => a / b,
        Mod => a % b,
        Pow => a.powf(b),
    };
    match (left, right) {
        (Value::Int(_) | Value::Duration(_), Value::Int(0)) if matches!(op, Div | Mod) => Value::Nil,
        (Value::Int(_), Value::Int(_)) if op == Pow && (b < 0.0 || float.abs() > 9e18) => Value::Float(float),
        (Value::Int(_), Value::Int(_)) => Value::Int(float.trunc() as i64),
        (Value::Duration(_), Value::Duration(_)) if matches!(op, Add | Sub) => Value::Duration(float as i64),
        (Value::Duration(_), Value::Int(_) | Value::Float(_)) if matches!(op, Mul | Div) => as_duration(float),
        (Value::Int(_) | Value::Float(_), Value::Duration(_)) if op == Mul => as_duration(float),
        _ => Value::Float(float),
    }
}

fn as_duration(nanos: f64) -> Value {
    if nanos.abs() < 9.2e18 { Value::Duration(nanos.round() as i64) } else { Value::Float(nanos) }
}

fn field(trace: &MemoryTrace, name: &Field, span: usize) -> Value {
    let at = &trace.spans[span];
    match name {
        Field::Attribute { of_parent: true, scope, name } => match parent(trace, span) {
            Some(up) => attribute(&trace.spans[up], *scope, name),
            None => Value::Nil,
        },
        Field::Attribute { of_parent: false, scope, name } => attribute(at, *scope, name),
        Field::Intrinsic(intrinsic) => intrinsic_value(trace, *intrinsic, span),
    }
}

fn lookup(attributes: &[(String, Value)], name: &str) -> Value {
    attributes.iter().find(|(key, _)| key == name).map_or(Value::Nil, |(_, value)| value.clone())
}

/// Nil if there is nothing at all, otherwise all values in a row.
fn several(values: Vec<Value>) -> Value {
    let values: Vec<Value> = values.into_iter().filter(|value| *value != Value::Nil).collect();
    if values.is_empty() {
        return Value::Nil;
    }
    let flat = values.into_iter().flat_map(|value| match value {
        Value::Array(inner) => inner,
        single => vec![single],
    });
    Value::Array(flat.collect())
}

fn attribute(at: &MemorySpan, scope: Scope, name: &str) -> Value {
    match scope {
        Scope::Span => lookup(&at.attributes, name),
        Scope::Resource => lookup(&at.resource, name),
        Scope::Instrumentation => lookup(&at.instrumentation, name),
        Scope::Event => several(at.events.iter().map(|event| lookup(&event.attributes, name)).collect()),
        Scope::Link => several(at.links.iter().map(|link| lookup(&link.attributes, name)).collect()),
        Scope::Unscoped => {
            for scope in [Scope::Span, Scope::Resource, Scope::Event, Scope::Link, Scope::Instrumentation] {
                let found = attribute(at, scope, name);
                if found != Value::Nil {
                    return found;
                }
            }
            Value::Nil
        }
    }
}

fn intrinsic_value(trace: &MemoryTrace, intrinsic: Intrinsic, span: usize) -> Value {
    let at = &trace.spans[span];
    let text = |text: &str| Value::Str(text.to_owned());
    let root = || {
        let roots = (0..trace.spans.len()).filter(|span| trace.spans[*span].parent_id.is_none());
        roots.min_by_key(|span| age(trace, *span))
    };
    match intrinsic {
        Intrinsic::Duration => Value::Duration(at.duration_nanos),
        Intrinsic::Name => text(&at.name),
        Intrinsic::Status => Value::Status(at.status),
        Intrinsic::StatusMessage => text(&at.status_message),
        Intrinsic::Kind => Value::Kind(at.kind),
        Intrinsic::SpanId => Value::Str(at.id.to_string()),
        Intrinsic::ParentId => Value::Str(at.parent_id.map_or(String::new(), |id| id.to_string())),
        Intrinsic::TraceId => Value::Str(trace.id.to_string()),
        Intrinsic::ChildCount => {
            Value::Int((0..trace.spans.len()).filter(|other| parent(trace, *other) == Some(span)).count() as i64)
        }
        Intrinsic::Parent => parent(trace, span).map_or(Value::Nil, |_| Value::Bool(true)),
        Intrinsic::NestedSetLeft => Value::Int(nested_set(trace)[span].0),
        Intrinsic::NestedSetRight => Value::Int(nested_set(trace)[span].1),
        Intrinsic::NestedSetParent => Value::Int(parent(trace, span).map_or(-1, |up| nested_set(trace)[up].0)),
        Intrinsic::TraceDuration => {
            let start = trace.spans.iter().map(|span| span.start_nanos).min().unwrap();
            let end = trace.spans.iter().map(|span| span.start_nanos + span.duration_nanos).max().unwrap();
            Value::Duration(end - start)
        }
        Intrinsic::RootName => text(root().map_or("", |root| &trace.spans[root].name)),
        Intrinsic::RootService => {
            let service = root().map_or(Value::Nil, |root| lookup(&trace.spans[root].resource, "service.name"));
            if service == Value::Nil { text("") } else { service }
        }
        Intrinsic::EventName => several(at.events.iter().map(|event| text(&event.name)).collect()),
        Intrinsic::EventTimeSinceStart => {
            several(at.events.iter().map(|event| Value::Duration(event.since_start_nanos)).collect())
        }
        Intrinsic::LinkTraceId => several(at.links.iter().map(|link| text(&link.trace_id.to_string())).collect()),
        Intrinsic::LinkSpanId => several(at.links.iter().map(|link| text(&link.span_id.to_string())).collect()),
        Intrinsic::InstrumentationName => text(&at.instrumentation_name),
        Intrinsic::InstrumentationVersion => text(&at.instrumentation_version),
        Intrinsic::ProfileCpu => at.profile.as_ref().map_or(Value::Nil, |profile| Value::Duration(profile.cpu_nanos)),
        Intrinsic::ProfileWall => at.profile.as_ref().map_or(Value::Nil, |profile| Value::Duration(profile.wall_nanos)),
        Intrinsic::ProfileSamples => at.profile.as_ref().map_or(Value::Nil, |profile| Value::Int(profile.samples)),
        Intrinsic::ProfileFunction => at
            .profile
            .as_ref()
            .map_or(Value::Nil, |profile| several(profile.functions.iter().map(|name| text(name)).collect())),
        Intrinsic::ProfileFile => at
            .profile
            .as_ref()
            .map_or(Value::Nil, |profile| several(profile.files.iter().map(|name| text(name)).collect())),
    }
}
