//! What spans say beside their times: attributes, events, links and status, as instrumentations write them.

use std::borrow::Cow;

use hotspan_model::{Attribute, Event, SpanKind, StatusCode, Value};

use super::shape::{Draft, Role};
use crate::fleet::{Fleet, OperationKind, Service};
use crate::random::Random;

/// One span in some thousands carries this, for searches that must find few among many.
pub(crate) const RARE_ATTRIBUTE: (&str, &str) = ("feature.flag", "checkout-redesign-b7");
const RARE_SHARE: f64 = 1.0 / 4000.0;

const ERRORS: &[(&str, &str)] = &[
    ("java.util.concurrent.TimeoutException", "timed out after 2000 ms"),
    ("ConnectionResetError", "connection reset by peer"),
    ("ValidationError", "quantity must be positive"),
    ("OutOfStockException", "item is out of stock"),
    ("SerializationException", "unexpected end of input"),
];

/// What a trace has in common.
pub(super) struct Request {
    pub(super) user: i64,
    pub(super) tenant: &'static str,
}

impl Request {
    pub(super) fn new(random: &mut Random) -> Self {
        let tenant = random.word(&["acme", "acme", "acme", "globex", "globex", "initech", "umbrella", "hooli"]);
        // The square makes some users far busier than others.
        let user = (random.unit() * random.unit() * 80_000.0) as i64 + 10_000;
        Self { user, tenant }
    }
}

/// Everything about a span but its ids and times.
pub(super) struct Decoration<'w> {
    pub(super) name: &'w str,
    pub(super) kind: SpanKind,
    pub(super) status: StatusCode,
    pub(super) status_message: &'static str,
    pub(super) attributes: Vec<Attribute<'w>>,
    pub(super) events: Vec<Event<'w>>,
    pub(super) rare: bool,
}

fn text<'w>(key: &'w str, value: impl Into<Cow<'w, str>>) -> Attribute<'w> {
    Attribute::new(key, Value::String(value.into()))
}

fn int(key: &str, value: i64) -> Attribute<'_> {
    Attribute::new(key, Value::Int(value))
}

pub(super) fn decorate<'w>(
    fleet: &'w Fleet,
    draft: &Draft<'w>,
    stretch: (i64, i64),
    thread: u8,
    request: &Request,
    random: &mut Random,
) -> Decoration<'w> {
    let service = &fleet.services[usize::from(draft.service)];
    let operation = draft.operation;
    let failed = random.chance(operation.error_share);
    let mut attributes = Vec::with_capacity(10);
    let mut rare = false;
    let (name, kind) = match (draft.role, operation.kind) {
        (Role::Calls, _) => {
            call_attributes(draft, failed, random, &mut attributes);
            (operation.verb.as_str(), SpanKind::Client)
        }
        (Role::Runs, OperationKind::Endpoint) => {
            endpoint_attributes(draft, failed, request, random, &mut attributes);
            rare = random.chance(RARE_SHARE);
            if rare {
                attributes.push(text(RARE_ATTRIBUTE.0, RARE_ATTRIBUTE.1));
            }
            attributes.push(int("thread.id", i64::from(thread) + 1));
            (operation.name.as_str(), SpanKind::Server)
        }
        (Role::Runs, OperationKind::Step) => {
            step_attributes(service, request, random, &mut attributes);
            attributes.push(int("thread.id", i64::from(thread) + 1));
            attributes.push(text("thread.name", service.thread_names[usize::from(thread)].as_str()));
            (operation.name.as_str(), SpanKind::Internal)
        }
        (Role::Runs, OperationKind::Query) => {
            query_attributes(service, draft, random, &mut attributes);
            (operation.name.as_str(), SpanKind::Client)
        }
        (Role::Runs, OperationKind::Publish) => {
            attributes.push(text("messaging.system", "kafka"));
            attributes.push(text("messaging.operation.type", "publish"));
            attributes.push(text("messaging.destination.name", operation.object.as_str()));
            attributes.push(int("messaging.destination.partition.id", random.between(0, 31)));
            attributes.push(text("messaging.message.id", format!("{:016x}", random.next())));
            attributes.push(int("messaging.message.body.size", random.log_normal(900.0, 0.8) as i64));
            (operation.name.as_str(), SpanKind::Producer)
        }
    };
    let error = failed.then(|| random.pick(ERRORS).copied()).flatten();
    Decoration {
        name,
        kind,
        status: if error.is_some() { StatusCode::Error } else { StatusCode::Unset },
        status_message: error.map_or("", |(_, message)| message),
        attributes,
        events: events(stretch, error, random),
        rare,
    }
}

/// An address below the called service's route, with an id nobody has seen before.
fn path(route: &str, random: &mut Random) -> String {
    route.replace("{id}", &format!("{:010x}", random.next() >> 24))
}

fn status_number(failed: bool, random: &mut Random) -> i64 {
    match (failed, random.below(20)) {
        (true, 0..=9) => 500,
        (true, 10..=15) => 503,
        (true, _) => 504,
        (false, 0) => 404,
        (false, 1) => 201,
        (false, _) => 200,
    }
}

fn call_attributes<'w>(draft: &Draft<'w>, failed: bool, random: &mut Random, attributes: &mut Vec<Attribute<'w>>) {
    let operation = draft.operation;
    attributes.push(text("http.request.method", operation.verb.as_str()));
    let query = format!("?trace={:06x}&page={}", random.next() >> 40, random.below(20));
    attributes.push(text(
        "url.full",
        format!("http://shop.svc.cluster.local:8080{}{query}", path(&operation.object, random)),
    ));
    attributes.push(text("server.address", "shop.svc.cluster.local"));
    attributes.push(int("server.port", 8080));
    attributes.push(int("http.response.status_code", status_number(failed, random)));
}

fn endpoint_attributes<'w>(
    draft: &Draft<'w>,
    failed: bool,
    request: &Request,
    random: &mut Random,
    attributes: &mut Vec<Attribute<'w>>,
) {
    let operation = draft.operation;
    attributes.push(text("http.request.method", operation.verb.as_str()));
    attributes.push(text("http.route", operation.object.as_str()));
    attributes.push(text("url.path", path(&operation.object, random)));
    attributes.push(int("http.response.status_code", status_number(failed, random)));
    attributes.push(text("user.id", format!("u-{}", request.user)));
    attributes.push(text("tenant", request.tenant));
    let size = random.log_normal(2400.0, 1.2) as i64;
    attributes.push(int("http.response.body.size", size));
}

fn step_attributes<'w>(service: &Service, request: &Request, random: &mut Random, attributes: &mut Vec<Attribute<'w>>) {
    attributes.push(text("code.namespace", format!("{}.domain", service.name)));
    attributes.push(text("tenant", request.tenant));
    attributes.push(Attribute::new("cache.hit", Value::Bool(random.chance(0.8))));
    attributes.push(int("items.count", random.log_normal(6.0, 0.9) as i64));
    let amount = random.log_normal(60.0, 0.8);
    attributes.push(Attribute::new("order.amount", Value::Double((amount * 100.0).round() / 100.0)));
    attributes.push(int("customer.id", request.user));
}

fn query_attributes<'w>(
    service: &'w Service,
    draft: &Draft<'w>,
    random: &mut Random,
    attributes: &mut Vec<Attribute<'w>>,
) {
    let operation = draft.operation;
    attributes.push(text("db.system.name", service.database));
    attributes.push(text("db.operation.name", operation.verb.as_str()));
    attributes.push(text("db.collection.name", operation.object.as_str()));
    let statement = match operation.verb.as_str() {
        "INSERT" => format!("INSERT INTO {} (id, state, amount) VALUES ($1, $2, $3)", operation.object),
        "UPDATE" => format!("UPDATE {} SET state = $2 WHERE id = $1", operation.object),
        _ => format!("SELECT id, state, amount FROM {} WHERE id = $1", operation.object),
    };
    attributes.push(text("db.query.text", statement));
    attributes.push(text("server.address", service.database_host.as_str()));
    attributes.push(int("db.response.returned_rows", random.log_normal(3.0, 1.4) as i64));
}

fn events<'w>(
    (start, end): (i64, i64),
    error: Option<(&'static str, &'static str)>,
    random: &mut Random,
) -> Vec<Event<'w>> {
    let mut events = Vec::new();
    if random.chance(0.02) {
        let attributes = vec![int("retry.attempt", random.between(1, 3)), text("reason", "pool exhausted")];
        events.push(Event { time: random.between(start, end), name: "retry", attributes, dropped_attributes_count: 0 });
    }
    if let Some((exception, message)) = error {
        let attributes = vec![text("exception.type", exception), text("exception.message", message)];
        events.push(Event { time: end, name: "exception", attributes, dropped_attributes_count: 0 });
    }
    events
}
