//! One service: what it calls itself, what it does, and whom it calls.

use hotspan_model::{Attribute, Resource, Value};

use super::call_tree::{CallTree, NodeNumber};
use super::vocabulary::{self, Language};
use crate::planted::PlantedTime;
use crate::random::{Random, Skewed, Stream};
use crate::settings::Settings;

/// What kind of span an operation makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// Answers HTTP requests.
    Endpoint,
    /// A step inside the service.
    Step,
    /// Asks a database.
    Query,
    /// Sends a message.
    Publish,
}

/// Something that a service does over and over.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Name of its spans.
    pub name: String,
    /// What kind it is.
    pub kind: OperationKind,
    /// HTTP method of an endpoint, statement of a query, topic of a message.
    pub verb: String,
    /// Route of an endpoint, table of a query.
    pub object: String,
    /// Median of the time that it takes by itself.
    pub(crate) median_nanos: f64,
    /// Share of that time that it runs instead of waiting.
    pub(crate) cpu_share: f64,
    /// Share of requests that fail.
    pub(crate) error_share: f64,
    /// Region of the call tree that its samples are taken in.
    pub(crate) region: usize,
    /// Causes planted in it.
    pub(crate) planted: Vec<PlantedOperation>,
}

/// A planted cause, put into its place.
#[derive(Debug, Clone)]
pub(crate) struct PlantedOperation {
    pub(crate) slow_share: f64,
    pub(crate) slow_nanos: i64,
    pub(crate) fast_nanos: i64,
    pub(crate) time: PlantedTime,
    pub(crate) node: NodeNumber,
    pub(crate) marking: Option<(String, String)>,
}

/// A service of the fleet.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// What it is written in.
    pub language: Language,
    /// What it says about itself.
    pub resource: Resource<'static>,
    /// Host of its database.
    pub database_host: String,
    /// Which database that is.
    pub database: &'static str,
    /// How many threads it has.
    pub threads: u8,
    /// Names of its threads.
    pub thread_names: Vec<String>,
    /// Everything that it does.
    pub operations: Vec<Operation>,
    /// Its code.
    pub calls: CallTree,
    /// Services that it calls.
    pub downstream: Vec<u16>,
    endpoints: Skewed,
    endpoint_count: usize,
    steps: (usize, usize),
    queries: (usize, usize),
    publishes: (usize, usize),
}

impl Service {
    pub(super) fn new(settings: &Settings, number: u16, name: String) -> Self {
        let mut random = Random::of(settings.seed, Stream::Service, u64::from(number));
        let language = random.pick(Language::ALL).copied().unwrap_or(Language::Go);
        let database = random.word(vocabulary::DATABASES);
        let mut operations = Vec::new();
        let mut section = |kind, count: i64, random: &mut Random| {
            let first = operations.len();
            for _ in 0..count {
                let index = operations.len();
                operations.push(operation(kind, index, &name, database, random));
            }
            (first, operations.len())
        };
        let (_, endpoint_count) = section(OperationKind::Endpoint, random.between(6, 12), &mut random);
        let steps = section(OperationKind::Step, random.between(6, 12), &mut random);
        let queries = section(OperationKind::Query, random.between(4, 8), &mut random);
        let publishes = section(OperationKind::Publish, random.between(1, 2), &mut random);
        let handlers: Vec<String> = operations.iter().map(|operation| handler(language, &name, operation)).collect();
        let calls = CallTree::grow(settings, number, &name, language, &handlers);
        let threads = random.between(4, 16) as u8;
        Self {
            resource: resource(&name, language, &mut random),
            database_host: format!("{database}.{name}.svc.cluster.local"),
            downstream: downstream(settings.services, number, &mut random),
            endpoints: Skewed::zipf(endpoint_count, 1.1),
            thread_names: (0..threads).map(|thread| language.thread_name(thread)).collect(),
            name,
            language,
            database,
            threads,
            operations,
            calls,
            endpoint_count,
            steps,
            queries,
            publishes,
        }
    }

    /// The operations that answer requests, the most frequent first.
    pub fn endpoints(&self) -> &[Operation] {
        &self.operations[..self.endpoint_count]
    }

    /// One of its operations; endpoints are chosen by how popular they are.
    pub(crate) fn pick_operation(&self, kind: OperationKind, random: &mut Random) -> &Operation {
        let (first, end) = match kind {
            OperationKind::Endpoint => return &self.operations[self.endpoints.pick(random)],
            OperationKind::Step => self.steps,
            OperationKind::Query => self.queries,
            OperationKind::Publish => self.publishes,
        };
        // The product of two favours the first ones.
        let at = random.unit() * random.unit() * (end - first) as f64;
        &self.operations[first + at as usize]
    }
}

fn operation(kind: OperationKind, index: usize, service: &str, database: &str, random: &mut Random) -> Operation {
    let object = random.word(vocabulary::RESOURCES);
    let (name, verb, object, median, cpu_share) = match kind {
        OperationKind::Endpoint => {
            let method = random.word(vocabulary::METHODS);
            let route = match random.below(3) {
                0 => format!("/api/v{index}/{object}"),
                1 => format!("/api/v{index}/{object}/{{id}}"),
                _ => format!("/api/v{index}/{object}/{{id}}/{}", random.word(vocabulary::ACTIONS)),
            };
            (format!("{method} {route}"), method.to_owned(), route, 30e6, 0.9)
        }
        OperationKind::Step => {
            let verb = random.word(vocabulary::VERBS);
            let subject = random.word(vocabulary::NOUNS);
            (format!("{object}.{verb}_{}", subject.to_lowercase()), verb.to_owned(), subject.to_owned(), 22e6, 0.95)
        }
        OperationKind::Query => {
            let statement = random.word(&["SELECT", "SELECT", "SELECT", "INSERT", "UPDATE"]);
            (format!("{statement} {database}.{object}"), statement.to_owned(), object.to_owned(), 6e6, 0.05)
        }
        OperationKind::Publish => {
            let topic = format!("{service}.{object}");
            (format!("{topic} publish"), "publish".to_owned(), topic, 1.5e6, 0.3)
        }
    };
    Operation {
        name,
        kind,
        verb,
        object,
        median_nanos: random.log_normal(median, 0.5),
        cpu_share,
        error_share: random.log_normal(0.004, 1.0).min(0.2),
        region: index + 1,
        planted: Vec::new(),
    }
}

/// The function that an operation's code starts in.
fn handler(language: Language, service: &str, operation: &Operation) -> String {
    let words: String = operation.name.split(|letter: char| !letter.is_alphanumeric()).collect::<Vec<_>>().join("_");
    language.function(service, "handlers", ("Endpoint", "Handler"), ("handle_", words.trim_matches('_'))).0
}

/// Calls go to services with higher numbers, so that no request runs in a circle.
fn downstream(services: u16, number: u16, random: &mut Random) -> Vec<u16> {
    let first = number + 1;
    let Some(span) = services.checked_sub(first).filter(|span| *span > 0) else {
        return Vec::new();
    };
    let mut called: Vec<u16> = (0..random.between(2, 5)).map(|_| first + random.below(span.into()) as u16).collect();
    // The neighbour is always called, so that every service takes part.
    called.push(first);
    called.sort_unstable();
    called.dedup();
    called
}

fn resource(name: &str, language: Language, random: &mut Random) -> Resource<'static> {
    let hash = random.next();
    let text = |key: &'static str, text: String| Attribute::new(key, Value::String(text.into()));
    let attributes = vec![
        text("service.name", name.to_owned()),
        text("service.namespace", "shop".to_owned()),
        text("service.version", format!("{}.{}.{}", hash % 4 + 1, hash >> 8 & 31, hash >> 16 & 15)),
        text("service.instance.id", format!("{name}-{:08x}", hash as u32)),
        text("deployment.environment.name", "production".to_owned()),
        text("telemetry.sdk.language", language.name().to_owned()),
        text("k8s.cluster.name", "shop-production".to_owned()),
        text("k8s.namespace.name", "shop".to_owned()),
        text("k8s.deployment.name", name.to_owned()),
        text("k8s.pod.name", format!("{name}-{:06x}-{:05x}", hash >> 40, hash >> 12 & 0xfffff)),
        text("k8s.node.name", format!("node-{:02}", hash % 12)),
        text("cloud.availability_zone", random.word(vocabulary::ZONES).to_owned()),
        Attribute::new("process.pid", Value::Int(random.between(1, 40))),
    ];
    Resource { attributes, schema_url: "https://opentelemetry.io/schemas/1.37.0", ..Resource::default() }
}
