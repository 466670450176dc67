//! The words that names are made of.

pub(super) const SERVICES: &[&str] = &[
    "api-gateway",
    "web-frontend",
    "mobile-backend",
    "checkout-service",
    "order-service",
    "cart-service",
    "catalog-service",
    "search-service",
    "pricing-service",
    "tax-service",
    "inventory-service",
    "payment-service",
    "fraud-service",
    "shipping-service",
    "recommendation-service",
    "review-service",
    "user-service",
    "auth-service",
    "session-service",
    "profile-service",
    "notification-service",
    "email-service",
    "sms-service",
    "invoice-service",
    "ledger-service",
    "report-service",
    "analytics-service",
    "event-router",
    "feature-flags",
    "config-service",
    "media-service",
    "image-resizer",
    "translation-service",
    "currency-service",
    "loyalty-service",
    "coupon-service",
    "warehouse-service",
    "supplier-service",
    "audit-service",
    "scheduler",
];

pub(super) const RESOURCES: &[&str] = &[
    "orders",
    "carts",
    "items",
    "products",
    "prices",
    "users",
    "sessions",
    "payments",
    "invoices",
    "shipments",
    "reviews",
    "coupons",
    "stocks",
    "events",
    "reports",
    "images",
    "flags",
    "addresses",
    "returns",
    "quotes",
];

pub(super) const ACTIONS: &[&str] =
    &["search", "validate", "confirm", "cancel", "refresh", "export", "summary", "history", "batch", "preview"];

pub(super) const VERBS: &[&str] = &[
    "load",
    "parse",
    "encode",
    "resolve",
    "compute",
    "apply",
    "merge",
    "validate",
    "fetch",
    "build",
    "render",
    "lookup",
    "filter",
    "convert",
    "serialize",
    "collect",
    "match",
    "update",
    "index",
    "dispatch",
    "acquire",
    "normalize",
];

pub(super) const NOUNS: &[&str] = &[
    "Order",
    "Cart",
    "Price",
    "TaxRate",
    "Discount",
    "Customer",
    "Session",
    "Token",
    "Payload",
    "Header",
    "Request",
    "Response",
    "Entity",
    "Row",
    "Batch",
    "Schema",
    "Rule",
    "Address",
    "Inventory",
    "Shipment",
    "Invoice",
    "Record",
    "Buffer",
    "Template",
    "Locale",
    "Currency",
];

pub(super) const ROLES: &[&str] = &[
    "Service",
    "Repository",
    "Mapper",
    "Handler",
    "Codec",
    "Cache",
    "Validator",
    "Client",
    "Factory",
    "Processor",
    "Resolver",
    "Registry",
    "Filter",
    "Pipeline",
];

pub(super) const PACKAGES: &[&str] = &[
    "core",
    "domain",
    "storage",
    "transport",
    "rules",
    "pricing",
    "json",
    "http",
    "cache",
    "security",
    "metrics",
    "model",
];

pub(super) const DATABASES: &[&str] = &["postgresql", "mysql", "redis", "mongodb"];

pub(super) const ZONES: &[&str] = &["eu-central-1a", "eu-central-1b", "eu-central-1c"];

pub(super) const METHODS: &[&str] = &["GET", "GET", "GET", "POST", "POST", "PUT", "DELETE"];

/// What a service is written in, which decides how its functions, files and threads are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Java.
    Java,
    /// Go.
    Go,
    /// Python.
    Python,
    /// Node.js.
    Node,
    /// Rust.
    Rust,
}

impl Language {
    pub(super) const ALL: &[Self] = &[Self::Java, Self::Java, Self::Go, Self::Go, Self::Python, Self::Node, Self::Rust];

    /// As `telemetry.sdk.language` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Java => "java",
            Self::Go => "go",
            Self::Python => "python",
            Self::Node => "nodejs",
            Self::Rust => "rust",
        }
    }

    /// Frames that every stack of such a program starts with.
    pub(super) fn runtime_frames(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Java => &[
                ("java.lang.Thread.run", "Thread.java"),
                ("java.util.concurrent.ThreadPoolExecutor$Worker.run", "ThreadPoolExecutor.java"),
                ("java.util.concurrent.ThreadPoolExecutor.runWorker", "ThreadPoolExecutor.java"),
                ("org.apache.tomcat.util.net.NioEndpoint$SocketProcessor.doRun", "NioEndpoint.java"),
                ("org.apache.coyote.http11.Http11Processor.service", "Http11Processor.java"),
                ("org.springframework.web.servlet.DispatcherServlet.doDispatch", "DispatcherServlet.java"),
            ],
            Self::Go => &[
                ("net/http.(*conn).serve", "net/http/server.go"),
                ("net/http.serverHandler.ServeHTTP", "net/http/server.go"),
                ("net/http.HandlerFunc.ServeHTTP", "net/http/server.go"),
                ("go.opentelemetry.io/contrib/otelhttp.(*middleware).serveHTTP", "otelhttp/handler.go"),
            ],
            Self::Python => &[
                ("Thread._bootstrap", "threading.py"),
                ("Thread.run", "threading.py"),
                ("BaseEventLoop._run_once", "asyncio/base_events.py"),
                ("FastAPI.__call__", "fastapi/applications.py"),
            ],
            Self::Node => &[
                ("processTicksAndRejections", "node:internal/process/task_queues"),
                ("Server.emit", "node:events"),
                ("Layer.handle", "node_modules/express/lib/router/layer.js"),
            ],
            Self::Rust => &[
                ("std::rt::lang_start_internal", "library/std/src/rt.rs"),
                ("tokio::runtime::scheduler::multi_thread::worker::run", "tokio/src/runtime/worker.rs"),
                ("tokio::runtime::task::harness::poll_future", "tokio/src/runtime/task/harness.rs"),
                ("<axum::routing::Router as tower::Service>::call", "axum/src/routing/mod.rs"),
            ],
        }
    }

    /// Name and file of a function of the service's own code.
    pub(super) fn function(
        self,
        service: &str,
        package: &str,
        class: (&str, &str),
        method: (&str, &str),
    ) -> (String, String) {
        let (subject, role) = class;
        let (verb, object) = method;
        let module = service.replace('-', "_");
        match self {
            Self::Java => (
                format!("com.example.{module}.{package}.{subject}{role}.{verb}{object}"),
                format!("com/example/{module}/{package}/{subject}{role}.java"),
            ),
            Self::Go => (
                format!("github.com/example/{service}/{package}.(*{subject}{role}).{verb}{object}"),
                format!("{service}/{package}/{}_{}.go", subject.to_lowercase(), role.to_lowercase()),
            ),
            Self::Python => (
                format!("{module}.{package}.{subject}{role}.{verb}_{}", object.to_lowercase()),
                format!("app/{module}/{package}/{}_{}.py", subject.to_lowercase(), role.to_lowercase()),
            ),
            Self::Node => {
                (format!("{subject}{role}.{verb}{object}"), format!("app/{service}/dist/{package}/{subject}{role}.js"))
            }
            Self::Rust => (
                format!("<{module}::{package}::{subject}{role}>::{verb}_{}", object.to_lowercase()),
                format!("{service}/src/{package}/{}_{}.rs", subject.to_lowercase(), role.to_lowercase()),
            ),
        }
    }

    pub(crate) fn thread_name(self, thread: u8) -> String {
        match self {
            Self::Java => format!("http-nio-8080-exec-{thread}"),
            Self::Go => format!("goroutine-{thread}"),
            Self::Python => format!("ThreadPoolExecutor-0_{thread}"),
            Self::Node => format!("node-worker-{thread}"),
            Self::Rust => format!("tokio-runtime-worker-{thread}"),
        }
    }
}
