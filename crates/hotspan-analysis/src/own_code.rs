//! Whose code a frame is. People fix their own code, so that is what a cause names; libraries are named as the way.
//!
//! Each language leaves other traces: where the file lies, what the package is called. What nothing speaks against
//! is own code.

use crate::words::Words;

/// Whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The service's own.
    Own,
    /// A library's, the runtime's or the kernel's.
    Library,
}

/// Parts of paths where installed code lies, whatever the language.
static LIBRARY_FOLDERS: Words = Words::of(
    "\
    /pkg/mod/, /go/src/, /libexec/src/, /golang/src/, goroot/, /vendor/, site-packages/, dist-packages/, \
    /lib/python, /lib64/python, <frozen , node_modules/, node:, internal/modules/, .cargo/registry/, \
    .cargo/git/, /rustc/, /rustlib/, library/std/, library/core/, library/alloc/, /gems/, /lib/ruby/, \
    /usr/include/, /usr/lib/, /sysdeps/, /nptl/, /build/glibc, vendor/bundle/, phar://",
);

/// Standard packages of Go, by their first and by their last element: profilers show either.
static GO_STANDARD: Words = Words::of(
    "\
    archive, bufio, builtin, bytes, cmp, compress, container, context, crypto, database, debug, embed, encoding, \
    errors, expvar, flag, fmt, go, hash, html, image, index, internal, io, iter, log, maps, math, mime, net, os, \
    path, plugin, reflect, regexp, runtime, slices, sort, strconv, strings, structs, sync, syscall, testing, \
    text, time, unicode, unique, unsafe, weak",
);
static GO_LAST: Words = Words::of(
    "\
    json, http, sql, xml, gob, gzip, flate, base64, hex, binary, csv, pem, tls, x509, sha256, sha1, md5, aes, \
    rand, big, template, tabwriter, atomic, url, httputil, http2, poll, utf8, fs, filepath, ioutil, bits, \
    syntax, trace, pprof, multipart, textproto, rpc, netip, user, exec, signal, list, heap, ring, slog",
);
static GO_LIBRARY_HOSTS: Words = Words::of(
    "\
    golang.org/, google.golang.org/, gopkg.in/, go.uber.org/, k8s.io/, go.opentelemetry.io/",
);

static JAVA_LIBRARIES: Words = Words::of(
    "\
    java., javax., jakarta., jdk., sun., com.sun., kotlin., kotlinx., scala., groovy., clojure., \
    org.springframework., org.apache., org.eclipse., org.hibernate., org.jboss., org.postgresql., org.slf4j., \
    org.jooq., org.h2., org.mariadb., org.codehaus., io.netty., io.grpc., io.micrometer., io.opentelemetry., \
    io.lettuce., io.undertow., io.vertx., io.quarkus., io.micronaut., io.ktor., com.fasterxml., \
    com.google.common., com.google.protobuf., com.google.gson., com.mysql., com.zaxxer., com.mongodb., \
    com.github.benmanes., com.datastax., com.oracle., ch.qos., reactor., rx., akka., okhttp3., okio., \
    redis.clients., net.bytebuddy., one.profiler., jvm.",
);
static DOTNET_LIBRARIES: Words = Words::of(
    "\
    System., Microsoft., Npgsql., Newtonsoft., Grpc., Google.Protobuf.",
);
static RUST_LIBRARIES: Words = Words::of(
    "\
    std, core, alloc, rustc, tokio, hyper, hyper_util, h2, axum, tower, tonic, prost, serde, serde_core, \
    hotspan_profiler, serde_json, regex, regex_automata, regex_syntax, futures, futures_util, futures_core, \
    reqwest, rustls, ring, bytes, sqlx, diesel, rayon, crossbeam, parking_lot, hashbrown, mio, tracing, \
    tracing_core, tracing_subscriber, actix_web, actix_rt, rocket, memchr, aho_corasick, http, http_body, \
    compiler_builtins, mimalloc, jemallocator, opentelemetry, num_cpus",
);
/// Functions of the C library, the loader, the kernel and the allocators.
static SYSTEM_FUNCTIONS: Words = Words::of(
    "\
    malloc, calloc, realloc, free, cfree, memcpy, memmove, memset, memcmp, strlen, strcmp, syscall, read, write, \
    poll, epoll_wait, select, recv, send, futex, clone, clone3, start_thread, _start, nanosleep, \
    clock_nanosleep, usleep, recvmsg, sendmsg, recvfrom, sendto, fsync, fdatasync, pread64, pwrite64, accept, \
    accept4, connect, open, openat, close, mmap, munmap, madvise, schedule",
);
static SYSTEM_PREFIXES: Words = Words::of(
    "\
    __, _int_, _IO_, _dl_, pthread_, std::, core::, alloc::, do_syscall, entry_SYSCALL, x64_sys, do_futex, \
    do_nanosleep, do_epoll, do_select, do_wait, throttle_, sched_, preempt_, futex_, ksys_, vfs_, tcp_, sock_, \
    ip_, schedule_, je_, mi_, _mi_, _rjem_, tc_, runtime., v8::, node::, uv_, uv__, PyEval_, _PyEval, PyObject_, \
    _PyObject, Py_, _Py, rb_, zend_, G1, PS, SafepointSynchronize, ObjectMonitor, JavaThread, JavaCalls, \
    libc.so, libpthread, ld-linux, [",
);

/// Whether an address stands where a name should: `libc.so!0x1f0`, or `0x1f0` where no binary is known.
pub(crate) fn is_address(function: &str) -> bool {
    function.starts_with("0x") || function.contains("!0x")
}

/// Whose code a function in a file is.
pub fn ownership_of(function: &str, file: &str) -> Ownership {
    if is_library(function, file) { Ownership::Library } else { Ownership::Own }
}

fn is_library(function: &str, file: &str) -> bool {
    if function.is_empty() || function.starts_with('[') || is_address(function) {
        return true;
    }
    let path = file.replace('\\', "/");
    if LIBRARY_FOLDERS.iter().any(|folder| path.contains(folder) || path.starts_with(folder.trim_start_matches('/'))) {
        return true;
    }
    let extension =
        path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, extension)| extension);
    match extension {
        "go" => is_go_library(function, &path),
        "java" | "kt" | "scala" | "groovy" | "clj" => is_java_library(function),
        "rs" => is_rust_library(function),
        "cs" | "fs" | "vb" => DOTNET_LIBRARIES.iter().any(|prefix| function.starts_with(prefix)),
        // Scripts: where they lie has been looked at.
        "py" | "rb" | "php" | "js" | "mjs" | "cjs" | "ts" | "tsx" | "jsx" => false,
        "s" | "S" | "asm" => true,
        _ => {
            is_go_library(function, "") || is_java_library(function) || is_rust_library(function) || is_system(function)
        }
    }
}

fn is_system(function: &str) -> bool {
    SYSTEM_FUNCTIONS.contains(&function)
        || SYSTEM_PREFIXES.iter().any(|prefix| function.starts_with(prefix))
        || DOTNET_LIBRARIES.iter().any(|prefix| function.starts_with(prefix))
}

/// `encoding/json.(*decodeState).object`, `json.Unmarshal`, `golang.org/x/net/http2.(*Framer).ReadFrame`.
fn is_go_library(function: &str, path: &str) -> bool {
    if GO_LIBRARY_HOSTS.iter().any(|host| function.starts_with(host)) {
        return true;
    }
    // The package ends at the first dot after the last slash.
    let package_end = function.rfind('/').unwrap_or(0);
    let Some(dot) = function[package_end..].find('.') else { return false };
    let package = &function[..package_end + dot];
    let member = &function[package_end + dot + 1..];
    let is_go_member = member.starts_with('(') || member.starts_with(|c: char| c.is_ascii_alphabetic());
    if package == "main" || package.is_empty() || !is_go_member {
        return false;
    }
    let first = package.split('/').next().unwrap_or_default();
    if GO_STANDARD.contains(&first) {
        // `time.js`-like names of other languages have an own file.
        return path.is_empty() || path.contains(package) || !path.contains('/');
    }
    // Without its path, a standard package is told by its last element and an exported function.
    !package.contains('/')
        && GO_LAST.contains(&package)
        && (member.starts_with('(') || member.starts_with(|c: char| c.is_ascii_uppercase()))
        && (path.is_empty() || !path.contains('/') || path.contains(&format!("/{package}/")))
}

/// `java.util.HashMap.get`, `org/springframework/web/Foo.bar`.
fn is_java_library(function: &str) -> bool {
    let head = function.split(['(', ' ']).next().unwrap_or_default();
    let dotted = head.replace('/', ".");
    JAVA_LIBRARIES.iter().any(|prefix| dotted.starts_with(prefix))
        || dotted.contains("$$Lambda") && !dotted.contains('.')
}

/// `serde_json::de::from_str`, `<alloc::vec::Vec<T> as core::clone::Clone>::clone`.
fn is_rust_library(function: &str) -> bool {
    if !function.contains("::") {
        return false;
    }
    // An allocator of one's own only passes on what others ask of it.
    if function.contains(" as core::alloc::global::GlobalAlloc>") {
        return true;
    }
    let is_library = |path: &str| {
        let end = path.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(path.len());
        RUST_LIBRARIES.contains(&&path[..end])
    };
    let Some(inner) = function.strip_prefix('<') else { return is_library(function.trim_start_matches('_')) };
    let (of, implemented) = inner.split_once(" as ").map_or((inner, None), |(of, by)| (of, Some(by)));
    let of = of.trim_start_matches(['<', '&', '*', '[', '(']).trim_start_matches("mut ").trim_start_matches("dyn ");
    let has_path = of.split('>').next().is_some_and(|of| of.contains("::"));
    match (has_path, implemented) {
        // `<core::slice::Iter<T> as shop::Sum>::sum` is not a library's.
        (true, Some(implemented)) => is_library(of) && is_library(implemented),
        (true, None) => is_library(of),
        // A type without a path is of no crate: `<T as shop::Sum>::sum` is of the trait's, `<[u8]>::to_vec` of a library.
        (false, Some(implemented)) => is_library(implemented),
        (false, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: frames of eight languages, with files and without.
    /// Guarantee: what a team wrote is its own, what it installed or what the runtime brings is not.
    #[test]
    fn own_code_is_told_by_language() {
        let own = [
            ("main.lookupTaxRate", "tax.go"),
            ("github.com/acme/shop/tax.lookupTaxRate", "/src/shop/tax/tax.go"),
            ("lookupTaxRate", "tax.go"),
            ("com.acme.shop.TaxService.lookup", "TaxService.java"),
            ("lookup_tax_rate", "/app/shop/tax.py"),
            ("lookupTaxRate", "/app/src/tax.ts"),
            ("shop::tax::lookup_tax_rate", "src/tax.rs"),
            ("<shop::Cart as core::clone::Clone>::clone", ""),
            ("<T as shop::Priced>::price", ""),
            ("<&shop::Cart as core::fmt::Debug>::fmt", ""),
            ("<alloc::vec::Vec<shop::Item> as shop::Priced>::price", ""),
            ("Acme.Shop.Tax.Lookup", "Tax.cs"),
            ("render", "/app/lib/render.rb"),
            ("calculate", ""),
            ("time.update", "/app/time.js"),
            ("OrderBook::add(Order const&)", "/src/book.cc"),
        ];
        for (function, file) in own {
            assert_eq!(ownership_of(function, file), Ownership::Own, "{function} in {file}");
        }
        let library = [
            ("encoding/json.Unmarshal", "/usr/local/go/src/encoding/json/decode.go"),
            ("encoding/json.(*decodeState).object", ""),
            ("json.Unmarshal", "decode.go"),
            ("runtime.mallocgc", ""),
            ("github.com/gin-gonic/gin.(*Context).Next", "/go/pkg/mod/github.com/gin-gonic/gin@v1.9.1/context.go"),
            ("java.util.HashMap.get", "HashMap.java"),
            ("org/springframework/web/servlet/DispatcherServlet.doDispatch", ""),
            ("loads", "/usr/lib/python3.12/json/__init__.py"),
            ("get", "/app/.venv/lib/python3.12/site-packages/requests/api.py"),
            ("next", "/app/node_modules/express/lib/router/index.js"),
            ("processTicksAndRejections", "node:internal/process/task_queues"),
            ("serde_json::de::from_str", "/root/.cargo/registry/src/x/serde_json-1.0/src/de.rs"),
            ("core::ops::function::FnOnce::call_once", ""),
            ("<alloc::vec::Vec<T> as core::clone::Clone>::clone", ""),
            ("<shop::Allocator as core::alloc::global::GlobalAlloc>::dealloc", "src/main.rs"),
            ("__rustc::__rust_dealloc", "src/main.rs"),
            ("<T as alloc::slice::<impl [T]>::to_vec_in::ConvertVec>::to_vec", ""),
            ("<[u8]>::to_vec_in::<alloc::alloc::Global>", ""),
            ("<*const u8>::copy_to_nonoverlapping", ""),
            ("<&T as core::fmt::Display>::fmt", ""),
            ("_mi_page_malloc_zero", ""),
            ("System.Text.Json.JsonSerializer.Deserialize", ""),
            ("call", "/usr/local/bundle/gems/rack-3.0/lib/rack/builder.rb"),
            ("__futex_abstimed_wait_common64", ""),
            ("[kernel]", ""),
            ("libcrypto.so!0x1f0", ""),
            ("0x7f1f0", ""),
        ];
        for (function, file) in library {
            assert_eq!(ownership_of(function, file), Ownership::Library, "{function} in {file}");
        }
    }
}
