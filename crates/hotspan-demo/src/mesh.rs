//! How the services reach each other: a queue and threads for each, client and server spans as HTTP would give them.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::problems::{Problem, Problems};
use crate::telemetry::{Kind, Parent, Release, Span, SpanQueue};

/// A service of the shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Service {
    Checkout,
    Order,
    Tax,
    Discount,
    Inventory,
}

impl Service {
    /// All of them.
    pub(crate) const ALL: [Service; 5] =
        [Service::Checkout, Service::Order, Service::Tax, Service::Discount, Service::Inventory];

    /// `service.name`, and how its threads' names begin.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Service::Checkout => "checkout",
            Service::Order => "order",
            Service::Tax => "tax",
            Service::Discount => "discount",
            Service::Inventory => "inventory",
        }
    }

    /// A number of its own, from 1.
    pub(crate) fn number(self) -> u8 {
        match self {
            Service::Checkout => 1,
            Service::Order => 2,
            Service::Tax => 3,
            Service::Discount => 4,
            Service::Inventory => 5,
        }
    }

    /// The service that a thread belongs to, by the thread's name.
    pub(crate) fn of_thread(name: &str) -> Option<Service> {
        let (service, _number) = name.rsplit_once('-')?;
        Service::ALL.into_iter().find(|known| known.name() == service)
    }

    /// Requests that it serves at once. Those that wait more have more threads, as one would set them up.
    fn threads(self) -> usize {
        match self {
            Service::Checkout => 16,
            Service::Order | Service::Inventory => 12,
            Service::Tax | Service::Discount => 3,
        }
    }

    fn problems(self) -> impl Iterator<Item = Problem> {
        Problem::ALL.into_iter().filter(move |problem| problem.service() == self.name())
    }
}

/// Why a call failed: a status as HTTP has it, what went wrong, and a word for the person.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

impl Failure {
    /// Whether it is the server's fault, which is what OTel counts as an error of a server span.
    fn is_server_fault(&self) -> bool {
        self.status >= 500
    }
}

/// What is called: method and route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endpoint {
    pub(crate) service: Service,
    pub(crate) method: &'static str,
    pub(crate) route: &'static str,
}

impl Endpoint {
    /// As OTel names server spans.
    fn span_name(self) -> String {
        format!("{} {}", self.method, self.route)
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// The services' queues, and what all services share.
#[derive(Debug)]
pub(crate) struct Mesh {
    queues: [Mutex<Sender<Job>>; Service::ALL.len()],
    problems: Arc<Problems>,
    spans: Arc<SpanQueue>,
}

impl Mesh {
    /// Starts the threads of all services.
    pub(crate) fn start(problems: Arc<Problems>, spans: Arc<SpanQueue>) -> std::io::Result<Arc<Mesh>> {
        let mut receivers = Vec::new();
        let queues = Service::ALL.map(|service| {
            let (sender, receiver) = mpsc::channel::<Job>();
            receivers.push((service, Arc::new(Mutex::new(receiver))));
            Mutex::new(sender)
        });
        for (service, receiver) in receivers {
            for number in 1..=service.threads() {
                let receiver = Arc::clone(&receiver);
                let name = format!("{}-{number}", service.name());
                thread::Builder::new().name(name).spawn(move || serve_jobs(&receiver))?;
            }
        }
        Ok(Arc::new(Mesh { queues, problems, spans }))
    }

    /// The problems that are there now.
    pub(crate) fn problems(&self) -> &Problems {
        &self.problems
    }

    /// The version in which a service is now.
    pub(crate) fn release_of(&self, service: Service) -> Release {
        release_of(&self.problems, service)
    }

    /// Begins what a service does on its own account: a trace that no call began.
    pub(crate) fn begin_job(&self, service: Service, name: &str) -> Span {
        Span::begin_trace(&self.spans, self.release_of(service), name, Kind::Internal)
    }

    /// A call from outside: it begins a trace. The caller does not wait.
    pub(crate) fn enter(
        self: &Arc<Mesh>,
        endpoint: Endpoint,
        work: impl FnOnce(&Arc<Mesh>, &mut Span) -> Result<(), Failure> + Send + 'static,
    ) {
        let mesh = Arc::clone(self);
        self.submit(endpoint.service, Box::new(move || drop(serve_one(&mesh, endpoint, None, work))));
    }

    /// A call from one service to another, within a client span. The calling thread waits for the answer.
    pub(crate) fn call<T: Send + 'static>(
        self: &Arc<Mesh>,
        caller: &Span,
        endpoint: Endpoint,
        work: impl FnOnce(&Arc<Mesh>, &mut Span) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let mut client = caller.child(endpoint.method, Kind::Client);
        client.set("http.request.method", endpoint.method);
        client.set("server.address", endpoint.service.name());
        client.set("server.port", 8080u16);
        client.set("url.full", format!("http://{}:8080{}", endpoint.service.name(), endpoint.route));
        client.set("peer.service", endpoint.service.name());
        let (answer, answered) = mpsc::sync_channel(1);
        let (mesh, parent) = (Arc::clone(self), client.as_parent());
        let job = move || {
            let result = serve_one(&mesh, endpoint, Some(parent), work);
            // The caller may be gone only when the shop is closing.
            let _ = answer.send(result);
        };
        self.submit(endpoint.service, Box::new(job));
        let gone = |_| Failure {
            status: 503,
            kind: "connection_refused",
            message: format!("{} is not running", endpoint.service.name()),
        };
        let result = answered.recv().map_err(gone).flatten();
        client.set("http.response.status_code", result.as_ref().map_or_else(|failure| failure.status, |_| 200));
        if let Err(failure) = &result {
            client.fail(failure.kind, &failure.message);
        }
        result
    }

    fn submit(&self, service: Service, job: Job) {
        let queue = &self.queues[usize::from(service.number() - 1)];
        // Refused only when every thread of the service is gone; the caller then learns it from its own channel.
        let _ = queue.lock().unwrap_or_else(PoisonError::into_inner).send(job);
    }
}

/// The version in which a service is: a fix is a release.
pub(crate) fn release_of(problems: &Problems, service: Service) -> Release {
    Release { service, is_fixed: !service.problems().any(|problem| problems.has(problem)) }
}

fn serve_jobs(receiver: &Mutex<Receiver<Job>>) {
    loop {
        // A statement of its own, so that the queue is free again before the job runs.
        let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job(),
            Err(_closed) => return,
        }
    }
}

fn serve_one<T>(
    mesh: &Arc<Mesh>,
    endpoint: Endpoint,
    parent: Option<Parent>,
    work: impl FnOnce(&Arc<Mesh>, &mut Span) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (release, name) = (mesh.release_of(endpoint.service), endpoint.span_name());
    let mut span = match parent {
        Some(parent) => Span::serve(&mesh.spans, release, &name, parent),
        None => Span::begin_trace(&mesh.spans, release, &name, Kind::Server),
    };
    span.set("http.request.method", endpoint.method);
    span.set("http.route", endpoint.route);
    span.set("url.path", endpoint.route);
    span.set("url.scheme", "http");
    span.set("network.protocol.version", "1.1");
    let result = work(mesh, &mut span);
    span.set("http.response.status_code", result.as_ref().map_or_else(|failure| failure.status, |_| 200));
    if let Err(failure) = &result
        && failure.is_server_fault()
    {
        span.fail(failure.kind, &failure.message);
    }
    result
}
