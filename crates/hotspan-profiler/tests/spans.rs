//! Every sample knows its span: across nesting, threads, async polls, migration, and conditions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod support;

use hotspan_profiler::{Conditions, Ctx, RequestOutcome, request_ended};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use support::{Recording, Seen, burn, one_at_a_time, thread_cpu_ns, total};

const TRACE: [u8; 16] = [0xab; 16];

fn cpu_of_span(seen: &[Seen], span: [u8; 8]) -> f64 {
    total(seen.iter().filter(|sample| sample.span_id == span), "cpu")
}

/// Scenario: a request with two children, each with a known amount of CPU, on one thread.
/// Guarantee: per-span sums of CPU equal the thread clock's, to within three sigma of the sampling.
#[test]
fn span_sums_equal_the_thread_clock() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(200));
    let request = Ctx::for_request(TRACE, [1; 8]);
    let mut used = HashMap::<[u8; 8], f64>::new();
    let mut charge = |span: [u8; 8], ctx: &Ctx, milliseconds: u64| {
        let _inside = ctx.attach();
        let before = thread_cpu_ns();
        burn(milliseconds);
        *used.entry(span).or_default() += (thread_cpu_ns() - before) as f64;
    };
    for round in 0..60 {
        let _request = request.attach();
        charge([1; 8], &request, 3 + round % 3);
        charge([2; 8], &request.child([2; 8]), 7 + round % 5);
        charge([3; 8], &request.child([3; 8]), 11 + round % 7);
    }
    let seen = recording.finish();
    let total_used: f64 = used.values().sum();
    let period = 5e6;
    for (span, used) in used {
        let measured = cpu_of_span(&seen, span);
        let share = used / total_used;
        let sigma = (total_used / period * share * (1.0 - share)).sqrt() * period;
        assert!((measured - used).abs() < 3.0 * sigma + period, "span {span:?}: {measured} of {used}, sigma {sigma}");
    }
    assert!(seen.iter().filter(|sample| !sample.span_id.is_empty()).all(|sample| sample.trace_id == TRACE));
}

/// Work of one task. Each number has a function of its own, so that a stack shows whose work it is.
macro_rules! task_works {
    ($($work:ident = $number:literal),*) => {
        $(#[inline(never)]
        fn $work() -> u64 {
            support::crunch(40_000) ^ $number
        })*

        const WORKS: &[(&str, u8, fn() -> u64)] = &[$((stringify!($work), $number, $work)),*];
    };
}

task_works!(work_of_one = 1, work_of_two = 2, work_of_three = 3, work_of_four = 4);

async fn migrating_task(work: fn() -> u64) {
    for _ in 0..250 {
        std::hint::black_box(work());
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_micros(50)).await;
    }
}

/// Scenario: eight tasks on a multi-thread runtime, each inside its own span, yielding all the time and migrating.
/// Guarantee: every sample taken in a task's work carries that task's span, on whichever thread it ran.
#[test]
fn migrating_tasks_keep_their_spans() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(250));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    let tasks: Vec<_> = WORKS
        .iter()
        .cycle()
        .take(2 * WORKS.len())
        .map(|(_, number, work)| runtime.spawn(Ctx::for_request(TRACE, [*number; 8]).wrap(migrating_task(*work))))
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    drop(runtime);
    let seen = recording.finish();
    let (mut samples, mut threads) = (0, std::collections::HashSet::new());
    for (name, number, _) in WORKS {
        for sample in seen.iter().filter(|sample| sample.profile == "cpu" && sample.mentions(name)) {
            assert_eq!(sample.span_id, [*number; 8], "{name} was charged to another span");
            threads.insert(sample.thread_id);
            samples += 1;
        }
    }
    assert!(samples > 20 && threads.len() > 1, "{samples} samples on {} threads", threads.len());
}

/// Scenario: a thread without any span, next to one with a span.
/// Guarantee: samples of the first have no link.
#[test]
fn work_without_a_span_has_no_link() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(200));
    std::thread::scope(|scope| {
        scope.spawn(unlinked_work);
        scope.spawn(|| {
            let _inside = Ctx::for_request(TRACE, [9; 8]).attach();
            linked_work();
        });
    });
    let seen = recording.finish();
    let of = |name: &str| seen.iter().filter(|sample| sample.mentions(name)).collect::<Vec<_>>();
    assert!(of("unlinked_work").len() > 10 && of("unlinked_work").iter().all(|sample| sample.span_id.is_empty()));
    let linked: Vec<&Seen> = seen.iter().filter(|s| s.functions.iter().any(|f| f.ends_with("::linked_work"))).collect();
    assert!(linked.len() > 10 && linked.iter().all(|sample| sample.span_id == [9; 8]));
}

#[inline(never)]
fn unlinked_work() {
    burn(200);
}

#[inline(never)]
fn linked_work() {
    burn(200);
}

/// Scenario: requests of which some are slow or failed; conditions keep only those.
/// Guarantee: kept requests have spans and times, the others are folded, and the total is exact either way. A request of which
/// no sample was taken counts as neither: a busy machine may leave one without.
#[test]
fn conditions_keep_some_and_fold_the_rest() {
    let _turn = one_at_a_time();
    let conditions = Conditions {
        // Longer than the test can take on the slowest machine: only what is told below is slow.
        slow_request_threshold: Some(Duration::from_secs(3_600)),
        profile_errors: true,
        ..Conditions::default()
    };
    let recording = Recording::start(|builder| builder.cpu_hertz(200).conditions(conditions));
    let mut used = 0.0;
    for request in 1..=24u8 {
        let (trace, root) = ([request; 16], [request; 8]);
        {
            let _inside = Ctx::for_request(trace, root).attach();
            let before = thread_cpu_ns();
            burn(60);
            used += (thread_cpu_ns() - before) as f64;
        }
        let is_slow = request % 4 == 0;
        let outcome = RequestOutcome {
            duration: Duration::from_secs(if is_slow { 7_200 } else { 1 }),
            is_error: request % 6 == 0,
            is_sampled: true,
        };
        request_ended(trace, root, outcome);
    }
    recording.profiler.flush();
    let status = recording.profiler.status();
    let seen = recording.finish();
    let work: Vec<&Seen> = seen.iter().filter(|sample| sample.mentions("burn")).collect();
    for sample in &work {
        let kept = sample.span_id.first().is_some_and(|request| request % 4 == 0 || request % 6 == 0);
        assert_eq!(kept, !sample.span_id.is_empty(), "request {:?}", sample.span_id.first());
        assert_eq!(kept, sample.time_unix_nano.is_some());
    }
    let kept: BTreeSet<&[u8]> = work.iter().map(|sample| &*sample.span_id).filter(|span| !span.is_empty()).collect();
    assert_eq!((status.kept_requests, status.undecided_requests), (kept.len() as u64, 0));
    let folded = status.folded_requests;
    assert!((4..=8).contains(&kept.len()) && (8..=16).contains(&folded), "{} kept, {folded} folded", kept.len());
    let measured = total(work.iter().copied(), "cpu");
    assert!((measured / used - 1.0).abs() < 0.1, "{measured} of {used}");
}

/// Scenario: an async request that polls for a while and waits for longer, with wall-clock profiling on.
/// Guarantee: the times polled and parked come to what the clocks say, and wall samples see the waiting as off-CPU.
#[test]
fn polling_and_parking_are_told_apart() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.wall_hertz(50));
    let milliseconds = |since: std::time::Instant| since.elapsed().as_secs_f64() * 1e3;
    let (async_elapsed, blocked_elapsed) = std::thread::scope(|scope| {
        let polled = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let began = std::time::Instant::now();
            runtime.block_on(Ctx::for_request(TRACE, [1; 8]).wrap(async {
                for _ in 0..5 {
                    burn(20);
                    tokio::time::sleep(Duration::from_millis(60)).await;
                }
            }));
            milliseconds(began)
        });
        let blocked = scope.spawn(|| {
            let _inside = Ctx::for_request(TRACE, [2; 8]).attach();
            let began = std::time::Instant::now();
            std::thread::sleep(Duration::from_millis(600));
            milliseconds(began)
        });
        (polled.join().unwrap(), blocked.join().unwrap())
    });
    let seen = recording.finish();
    let of = |profile: &str, span: [u8; 8]| total(seen.iter().filter(|sample| sample.span_id == span), profile) / 1e6;
    let (polling, parked) = (of("span_polling", [1; 8]), of("span_parked", [1; 8]));
    assert!(polling > 95.0 && parked > 285.0, "{polling} ms polling, {parked} ms parked");
    assert!(((polling + parked) / async_elapsed - 1.0).abs() < 0.1, "{polling} + {parked} ms of {async_elapsed}");
    let (wall, off_cpu) = (of("wall", [2; 8]), of("off_cpu", [2; 8]));
    assert!((wall / blocked_elapsed - 1.0).abs() < 0.4, "{wall} ms wall of {blocked_elapsed}");
    assert!(off_cpu > 0.8 * wall, "{off_cpu} ms off-CPU of {wall}");
}

/// How often a thread of this process went to sleep by itself.
fn sleeps_of(tid: i64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).unwrap();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    count.trim().parse().unwrap()
}

/// Scenario: two threads sleep while the wall clock is sampled, one inside a span, the other waiting for work.
/// Guarantee: the one inside is asked again and again, the other one is left asleep.
#[test]
fn threads_without_work_are_not_woken() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.wall_hertz(200));
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let (sender, receiver) = std::sync::mpsc::channel();
    let [working, waiting] = std::thread::scope(|scope| {
        let sleep_as = |span: Option<[u8; 8]>| {
            let (sender, is_over) = (sender.clone(), &is_over);
            let thread = scope.spawn(move || {
                let _inside = span.map(|span| Ctx::for_request(TRACE, span).attach());
                // SAFETY: gettid takes no arguments and cannot fail.
                sender.send(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap();
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    std::thread::park();
                }
            });
            (receiver.recv().unwrap(), thread)
        };
        let sleepers = [sleep_as(Some([1; 8])), sleep_as(None)];
        // New threads are looked for when the process has done something.
        burn(20);
        std::thread::sleep(Duration::from_millis(500));
        let before = [sleeps_of(sleepers[0].0), sleeps_of(sleepers[1].0)];
        std::thread::sleep(Duration::from_millis(600));
        let woken = [sleeps_of(sleepers[0].0) - before[0], sleeps_of(sleepers[1].0) - before[1]];
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        sleepers.iter().for_each(|(_, thread)| thread.thread().unpark());
        woken
    });
    let seen = recording.finish();
    assert!(working >= 10 && waiting <= 1, "{working} times inside a span, {waiting} times without");
    assert!(seen.iter().any(|sample| sample.profile == "wall" && sample.span_id == [1; 8]));
}

/// Scenario: `tracing` spans around async work on a multi-thread runtime, with the layer installed.
/// Guarantee: every sample of the work has a span, and all of one request share its trace.
#[cfg(feature = "tracing")]
#[test]
fn tracing_spans_reach_the_samples() {
    use tracing::Instrument;
    use tracing_subscriber::prelude::*;

    #[inline(never)]
    fn traced_work() {
        support::crunch(100_000);
    }

    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(250));
    let subscriber = tracing_subscriber::registry().with(hotspan_profiler::SpanLayer::new());
    let dispatch = tracing::Dispatch::new(subscriber);
    let runtime = {
        let dispatch = dispatch.clone();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all();
        builder.on_thread_start(move || std::mem::forget(tracing::dispatcher::set_default(&dispatch)));
        builder.build().unwrap()
    };
    tracing::dispatcher::with_default(&dispatch, || {
        let request = tracing::info_span!("request", trace_id = "0af7651916cd43dd8448eb211c80319c");
        runtime.block_on(async {
            let tasks: Vec<_> = (0..4)
                .map(|_| {
                    let step = tracing::info_span!(parent: &request, "step");
                    tokio::spawn(
                        async {
                            for _ in 0..100 {
                                traced_work();
                                tokio::task::yield_now().await;
                            }
                        }
                        .instrument(step),
                    )
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    });
    drop(runtime);
    let seen = recording.finish();
    let work: Vec<&Seen> = seen.iter().filter(|sample| sample.mentions("traced_work")).collect();
    assert!(work.len() > 10, "{} samples", work.len());
    assert!(work.iter().all(|sample| sample.trace_id.starts_with(&[0x0a, 0xf7, 0x65])), "a sample lost its trace");
    let spans: std::collections::HashSet<_> = work.iter().map(|sample| &sample.span_id).collect();
    assert!(spans.len() > 1);
}

/// Scenario: OpenTelemetry contexts around futures that migrate, and a tracer that samples nothing.
/// Guarantee: samples have the spans of the contexts, sampled or not.
#[cfg(feature = "opentelemetry")]
#[test]
fn opentelemetry_spans_reach_the_samples() {
    use opentelemetry::context::FutureExt;
    use opentelemetry::trace::{TraceContextExt, Tracer, TracerProvider};
    use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};

    #[inline(never)]
    fn observed_work() {
        support::crunch(100_000);
    }

    let _turn = one_at_a_time();
    hotspan_profiler::observe_opentelemetry().unwrap();
    let recording = Recording::start(|builder| builder.cpu_hertz(250));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut expected = std::collections::HashSet::new();
    for sampler in [Sampler::AlwaysOn, Sampler::AlwaysOff] {
        let provider = SdkTracerProvider::builder()
            .with_span_processor(hotspan_profiler::RequestSpanProcessor)
            .with_sampler(sampler)
            .build();
        let tracer = provider.tracer("test");
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let context = opentelemetry::Context::new().with_span(tracer.start("request"));
                expected.insert(context.span().span_context().span_id().to_bytes().to_vec());
                let work = async {
                    for _ in 0..80 {
                        observed_work();
                        tokio::task::yield_now().await;
                    }
                };
                runtime.spawn(work.with_context(context))
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
    drop(runtime);
    let seen = recording.finish();
    let work: Vec<&Seen> = seen.iter().filter(|sample| sample.mentions("observed_work")).collect();
    assert!(work.len() > 10, "{} samples", work.len());
    assert!(work.iter().all(|sample| expected.contains(&sample.span_id)), "a sample has a span of nobody");
    let spans: std::collections::HashSet<_> = work.iter().map(|sample| &sample.span_id).collect();
    assert!(spans.len() >= 4, "{} of 6 spans", spans.len());
}

/// Scenario: only requests that fail are to be kept; one fails, one does not, as their OpenTelemetry spans say.
/// Guarantee: the span processor sees both end: one keeps its span, the other one is folded.
#[cfg(feature = "opentelemetry")]
#[test]
fn opentelemetry_spans_decide_about_their_requests() {
    use opentelemetry::trace::{Status, TraceContextExt, Tracer, TracerProvider};
    use opentelemetry_sdk::trace::SdkTracerProvider;

    let _turn = one_at_a_time();
    hotspan_profiler::observe_opentelemetry().unwrap();
    let conditions = Conditions { profile_errors: true, ..Conditions::default() };
    let recording = Recording::start(|builder| builder.cpu_hertz(250).conditions(conditions));
    let provider = SdkTracerProvider::builder().with_span_processor(hotspan_profiler::RequestSpanProcessor).build();
    let tracer = provider.tracer("test");
    let handle = |status: Status| {
        let context = opentelemetry::Context::new().with_span(tracer.start("request"));
        let inside = context.clone().attach();
        burn(60);
        drop(inside);
        context.span().set_status(status);
        context.span().end();
        context.span().span_context().span_id().to_bytes().to_vec()
    };
    handle(Status::Ok);
    let failed = handle(Status::error("out of stock"));
    recording.profiler.flush();
    let status = recording.profiler.status();
    assert_eq!((status.kept_requests, status.folded_requests), (1, 1), "{status:?}");
    let seen = recording.finish();
    let linked: Vec<&Seen> = seen.iter().filter(|sample| !sample.span_id.is_empty()).collect();
    assert!(!linked.is_empty() && linked.iter().all(|sample| sample.span_id == failed), "{linked:?}");
}
