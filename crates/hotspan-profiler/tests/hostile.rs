//! The places where other profilers crash, hang or lie: each is tried here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod support;

use hotspan_profiler::Ctx;
use std::ffi::{CStr, CString};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{Recording, Seen, burn, crunch, one_at_a_time, total};

static FOREIGN: AtomicU64 = AtomicU64::new(0);

extern "C" fn foreign_handler(_signal: libc::c_int) {
    FOREIGN.fetch_add(1, Ordering::Relaxed);
}

/// Somebody else handles the signal before the profiler comes, as another library may.
fn install_foreign_handler() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: a handler with the right signature that only touches an atomic.
        unsafe { libc::signal(libc::SIGPROF, foreign_handler as extern "C" fn(libc::c_int) as usize) };
    });
}

/// Ends the test program if it hangs: a deadlock must fail, not wait for ever.
fn watchdog(seconds: u64) -> std::sync::mpsc::Sender<()> {
    let (alive, told) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        if told.recv_timeout(Duration::from_secs(seconds)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            eprintln!("hung for {seconds} s");
            std::process::abort();
        }
    });
    alive
}

fn send_foreign_signal() {
    // SAFETY: raises a signal that has a handler.
    unsafe { libc::raise(libc::SIGPROF) };
}

/// How long the storm lasts; `make stress` makes it long.
fn storm_length() -> Duration {
    let seconds = std::env::var("STRESS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(4))
}

/// Scenario: signals at a thousand a second on threads that load libraries, panic, fork, allocate, spawn and die.
/// Guarantee: no crash, no deadlock, everything makes progress, foreign signals reach their handler, and samples come to
/// what the process used, no more and no less.
#[test]
fn a_signal_storm_is_survived() {
    let _turn = one_at_a_time();
    install_foreign_handler();
    let length = storm_length();
    let _watchdog = watchdog(60 + length.as_secs());
    std::panic::set_hook(Box::new(|_| {}));
    let recording = Recording::start(|builder| builder.cpu_hertz(1000).wall_hertz(1000).memory(64 << 10).locks(true));
    let foreign_before = FOREIGN.load(Ordering::Relaxed);
    let until = Instant::now() + length;
    let progress: [AtomicU64; 6] = Default::default();
    let step = |index: usize| progress[index].fetch_add(1, Ordering::Relaxed);
    let inside = || Ctx::for_request([7; 16], [7; 8]).attach();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _inside = inside();
            let libraries = [c"libresolv.so.2", c"libnss_files.so.2", c"libutil.so.1", c"libanl.so.1"];
            while Instant::now() < until {
                libraries.iter().for_each(|name| load_and_unload(name));
                step(0);
            }
        });
        scope.spawn(|| {
            let _inside = inside();
            while Instant::now() < until {
                assert!(std::panic::catch_unwind(|| deep_panic(40)).is_err());
                step(1);
            }
        });
        scope.spawn(|| {
            while Instant::now() < until {
                fork_and_wait();
                step(2);
            }
        });
        scope.spawn(|| {
            let _inside = inside();
            let mut kept: Vec<Vec<u8>> = Vec::new();
            while Instant::now() < until {
                kept.push(vec![1; 1 + (progress[3].load(Ordering::Relaxed) as usize * 37) % 40_000]);
                if kept.len() > 200 {
                    kept.clear();
                }
                step(3);
            }
        });
        scope.spawn(|| {
            while Instant::now() < until {
                let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(|| crunch(1_000))).collect();
                assert!(threads.into_iter().all(|thread| thread.join().is_ok()));
                step(4);
            }
        });
        scope.spawn(|| {
            while Instant::now() < until {
                send_foreign_signal();
                crunch(500);
                step(5);
            }
        });
    });
    let _ = std::panic::take_hook();
    recording.assert_totals_are_of_the_process(1000);
    let status = recording.profiler.status();
    let seen = recording.finish();
    eprintln!("{length:?}: {progress:?} steps, {status:?}");
    for (index, steps) in progress.iter().enumerate() {
        assert!(steps.load(Ordering::Relaxed) > 10, "activity {index} stood still");
    }
    let raised = progress[5].load(Ordering::Relaxed);
    // A raise that meets a profiling signal already pending on its thread is merged with it by the kernel, as any two
    // standard signals are; all others must arrive.
    let passed_on = FOREIGN.load(Ordering::Relaxed) - foreign_before;
    assert!(passed_on * 100 >= raised * 99, "{passed_on} of {raised} foreign signals were passed on");
    assert!(status.samples > 200 && seen.iter().any(|sample| sample.profile == "cpu"), "{status:?}");
    assert!(status.leaf_only_stacks < status.samples / 10, "{status:?}");
}

fn load_and_unload(name: &CStr) {
    // SAFETY: ordinary system libraries without constructors of consequence.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if !handle.is_null() {
            libc::dlclose(handle);
        }
    }
}

#[inline(never)]
fn deep_panic(depth: u32) -> u32 {
    if depth == 0 {
        std::panic::resume_unwind(Box::new(1));
    }
    std::hint::black_box(deep_panic(depth - 1)) + 1
}

fn fork_and_wait() {
    // SAFETY: the child does nothing but end.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(0);
        }
        let mut status = 0;
        while libc::waitpid(child, &mut status, 0) == -1 && *libc::__errno_location() == libc::EINTR {}
        assert_eq!(status, 0, "the child of a fork did not end cleanly");
    }
}

/// Scenario: a thread that blocks the profiling signal works for seconds.
/// Guarantee: its time is told all the same, by the clock, under its name, and the status says why it has no stacks.
#[test]
fn threads_that_block_the_signal_are_told() {
    let _turn = one_at_a_time();
    install_foreign_handler();
    let (worked, works) = std::sync::mpsc::channel();
    let deaf = std::thread::Builder::new().name("deaf".into()).spawn(move || {
        // SAFETY: masks a signal of this thread alone.
        unsafe {
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&mut mask, libc::SIGPROF);
            libc::pthread_sigmask(libc::SIG_BLOCK, &mask, std::ptr::null_mut());
        }
        std::thread::park();
        burn(1_500);
        worked.send(()).unwrap();
        std::thread::park();
    });
    let deaf = deaf.unwrap();
    // It is there when sampling begins: what it used before it is found would count as that of a short thread.
    let recording = Recording::start(|builder| builder.cpu_hertz(200));
    deaf.thread().unpark();
    works.recv().unwrap();
    recording.profiler.flush();
    let remarks = recording.profiler.status().remarks;
    assert!(remarks.iter().any(|remark| remark.contains("blocked")), "{remarks:?}");
    recording.assert_totals_are_of_the_process(200);
    deaf.thread().unpark();
    deaf.join().unwrap();
    let seen = recording.finish();
    let told = total(seen.iter().filter(|sample| sample.thread_name == "deaf" && sample.mentions("blocked")), "cpu");
    assert!((1.4e9..1.6e9).contains(&told), "{told} of 1.5 s");
}

/// Scenario: a thread keeps a value in errno while it is sampled hundreds of times.
/// Guarantee: the handler leaves errno as it was.
#[test]
fn errno_survives_the_handler() {
    let _turn = one_at_a_time();
    install_foreign_handler();
    let recording = Recording::start(|builder| builder.cpu_hertz(1000));
    let until = support::thread_cpu_ns() + 500_000_000;
    while support::thread_cpu_ns() < until {
        // SAFETY: errno belongs to this thread.
        unsafe {
            *libc::__errno_location() = 4242;
            crunch(5_000);
            assert_eq!(*libc::__errno_location(), 4242);
        }
    }
    let seconds = total(&recording.finish(), "cpu") / 1e9;
    assert!(seconds > 0.3, "{seconds} s of 0.5 were sampled");
}

/// Scenario: threads blocked in a read of a pipe and in a futex, signalled by the wall-clock sampler all the while.
/// Guarantee: their waiting is seen; the read is restarted rather than failing with EINTR, and both go on when woken.
#[test]
fn blocked_system_calls_are_not_broken() {
    let _turn = one_at_a_time();
    install_foreign_handler();
    let _watchdog = watchdog(30);
    let recording = Recording::start(|builder| builder.wall_hertz(500));
    let mut ends = [0; 2];
    // SAFETY: a fresh pipe.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let woken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let _inside = Ctx::for_request([1; 16], [1; 8]).attach();
            let mut byte = 0u8;
            // SAFETY: reads one byte into a local.
            unsafe { libc::read(ends[0], (&raw mut byte).cast(), 1) }
        });
        let sleeper = scope.spawn(|| {
            let _inside = Ctx::for_request([1; 16], [2; 8]).attach();
            while !woken.load(Ordering::Relaxed) {
                std::thread::park();
            }
        });
        let deadline = Instant::now() + Duration::from_secs(20);
        while total(&recording.seen_so_far(), "off_cpu") < 200e6 {
            assert!(Instant::now() < deadline, "{:?}", recording.profiler.status());
            std::thread::sleep(Duration::from_millis(50));
            recording.profiler.flush();
        }
        // SAFETY: writes one byte from a literal.
        unsafe { libc::write(ends[1], b"x".as_ptr().cast(), 1) };
        assert_eq!(reader.join().unwrap(), 1);
        woken.store(true, Ordering::Relaxed);
        sleeper.thread().unpark();
    });
    recording.finish();
}

/// Scenario: CPU is used inside a signal handler that runs on an alternate stack, which no snapshot knows.
/// Guarantee: no crash, and the work there is seen by name.
#[test]
fn foreign_stacks_are_unwound_without_faults() {
    extern "C" fn busy_handler(_signal: libc::c_int) {
        work_on_alternate_stack();
    }

    #[inline(never)]
    fn work_on_alternate_stack() {
        burn(300);
    }

    let _turn = one_at_a_time();
    install_foreign_handler();
    let recording = Recording::start(|builder| builder.cpu_hertz(250));
    std::thread::spawn(|| {
        let memory = Box::leak(vec![0u8; 1 << 18].into_boxed_slice());
        // SAFETY: the stack is leaked memory of the size that is told; the handler is installed before the raise.
        unsafe {
            let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
            assert_eq!(libc::sigaltstack(&stack, std::ptr::null_mut()), 0);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = busy_handler as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_ONSTACK;
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
            libc::raise(libc::SIGUSR1);
        }
    })
    .join()
    .unwrap();
    let seen = recording.finish();
    let named = seen.iter().filter(|sample| sample.mentions("work_on_alternate_stack"));
    let seconds = total(named, "cpu") / 1e9;
    assert!((0.2..0.4).contains(&seconds), "{seconds} s of 0.3");
}

/// Scenario: threads with very small stacks are sampled at the highest rate.
/// Guarantee: the handler fits on what is left, and the stacks are whole.
#[test]
fn small_stacks_are_enough() {
    let _turn = one_at_a_time();
    install_foreign_handler();
    let recording = Recording::start(|builder| builder.cpu_hertz(1000));
    // What the kernel itself puts on the stack depends on the registers that the processor has; one handler may interrupt another.
    // SAFETY: asking has no preconditions.
    let signal_frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) }.max(4 << 10) as usize;
    let small = std::thread::Builder::new().stack_size((40 << 10) + 2 * signal_frame);
    let small = small.spawn(small_stack_work).unwrap();
    small.join().unwrap();
    let seen = recording.finish();
    let named = seen.iter().filter(|sample| sample.mentions("small_stack_work"));
    let seconds = total(named, "cpu") / 1e9;
    assert!((0.28..0.52).contains(&seconds), "{seconds} s of 0.4");
}

#[inline(never)]
fn small_stack_work() {
    burn(400);
}

/// Scenario: a library is loaded after profiling began, and calls back into the program.
/// Guarantee: stacks go through it: both its function and the caller of it are on them.
#[test]
fn libraries_loaded_later_are_unwound() {
    extern "C" fn callback() {
        burn(400);
    }

    #[inline(never)]
    fn caller_of_library(function: extern "C" fn(extern "C" fn()) -> libc::c_int) -> libc::c_int {
        std::hint::black_box(function(callback)) + 1
    }

    let _turn = one_at_a_time();
    install_foreign_handler();
    let folder = std::env::temp_dir().join(format!("hotspan-late-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, library) = (folder.join("late.c"), folder.join("liblate.so"));
    let code = "int late_function(void (*callback)(void)) { volatile int local[64]; local[3] = 1; callback(); return local[3]; }";
    std::fs::write(&source, code).unwrap();
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-fomit-frame-pointer", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(built.success());
    let recording = Recording::start(|builder| builder.cpu_hertz(250));
    let path = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: the library was just built; the symbol has the type that its source gives it.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null());
        let symbol = libc::dlsym(handle, c"late_function".as_ptr());
        assert!(!symbol.is_null());
        // The monitor looks for new libraries every second; it has been at work since when it answers, even if it came late.
        std::thread::sleep(Duration::from_millis(1_200));
        recording.profiler.flush();
        recording.profiler.flush();
        let function = std::mem::transmute::<*mut libc::c_void, extern "C" fn(extern "C" fn()) -> libc::c_int>(symbol);
        caller_of_library(function);
    }
    let seen = recording.finish();
    let through: Vec<&Seen> =
        seen.iter().filter(|sample| sample.mentions("libraries_loaded_later_are_unwound::callback")).collect();
    let whole =
        through.iter().filter(|sample| sample.mentions("late_function") && sample.mentions("caller_of_library"));
    assert!(through.len() > 20, "{} samples", through.len());
    assert_eq!(whole.count(), through.len());
    std::fs::remove_dir_all(folder).unwrap();
}

/// Scenario: another profiler takes the signal while ours runs.
/// Guarantee: ours withdraws and says so, so that its timers do not disturb the other; it can be started again.
#[test]
fn a_rival_for_the_signal_is_noticed() {
    let _turn = one_at_a_time();
    install_foreign_handler();
    let recording = Recording::start(|builder| builder.cpu_hertz(100));
    // SAFETY: swaps handlers that both stay valid.
    unsafe {
        let mut ours: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPROF, std::ptr::null(), &mut ours);
        libc::signal(libc::SIGPROF, foreign_handler as extern "C" fn(libc::c_int) as usize);
        let deadline = Instant::now() + Duration::from_secs(10);
        while !recording.profiler.status().displaced && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        let status = recording.profiler.status();
        assert!(status.displaced && !status.running);
        let before = FOREIGN.load(Ordering::Relaxed);
        burn(200);
        assert_eq!(FOREIGN.load(Ordering::Relaxed), before, "our timers still fire");
        libc::sigaction(libc::SIGPROF, &ours, std::ptr::null_mut());
    }
    recording.profiler.resume();
    burn(300);
    assert!(recording.finish().iter().any(|sample| sample.mentions("burn")));
}

/// Scenario: a thread holds signals back while it works, so that those of its CPU timer and of the wall clock come at once.
/// Guarantee: both samples see the function that let them through; none has the profiler's own handler on its stack.
#[test]
fn signals_that_come_together_see_the_same_code() {
    let _turn = one_at_a_time();
    let recording = Recording::start(|builder| builder.cpu_hertz(1000).wall_hertz(1000));
    std::thread::spawn(|| {
        let _span = Ctx::for_request([4; 16], [4; 8]).attach();
        let_signals_through(40);
    })
    .join()
    .unwrap();
    let seen = recording.finish();
    let of = |profile: &str| seen.iter().filter(|s| s.profile == profile && s.mentions("let_signals_through")).count();
    assert!(of("cpu") > 20 && of("wall") > 20, "{} on CPU, {} by the wall clock", of("cpu"), of("wall"));
    let inside: Vec<&Seen> = seen.iter().filter(|sample| sample.mentions("on_signal")).collect();
    assert!(inside.is_empty(), "{} samples, one of them {:?}", inside.len(), inside[0]);
}

/// Works with the profiling signal held back, and lets it through every 15 ms.
#[inline(never)]
fn let_signals_through(times: usize) {
    // SAFETY: the set is a valid one of this function; the mask that is changed is the thread's own.
    unsafe {
        let mut profiling: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut profiling, libc::SIGPROF);
        for _ in 0..times {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const profiling, std::ptr::null_mut());
            burn(15);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const profiling, std::ptr::null_mut());
        }
    }
}
