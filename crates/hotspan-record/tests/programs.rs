//! Real programs, recorded from outside, by every method that this machine allows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hotspan_record::{Method, Options, RecordError, Recording, Target, record};

const NAPS: usize = 20;
const NAP: Duration = Duration::from_millis(50);

/// This test program itself, in the role of the program that is recorded.
fn program(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_recorded_program", "--nocapture", "--test-threads", "1"]);
    command.env("RECORDED_ROLE", role).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[inline(never)]
fn heavy_work(rounds: u64) -> u64 {
    (0..rounds).fold(1, |sum: u64, round| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(round)))
}

#[inline(never)]
fn light_work(rounds: u64) -> u64 {
    (0..rounds).fold(7, |sum: u64, round| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(round)))
}

#[inline(never)]
fn deep_call(depth: u32, rounds: u64) -> u64 {
    if depth == 0 { heavy_work(rounds) } else { std::hint::black_box(deep_call(depth - 1, rounds)) | 1 }
}

#[inline(never)]
fn long_nap(length: Duration) {
    std::thread::sleep(std::hint::black_box(length));
}

fn cpu_time() -> Duration {
    // SAFETY: the structure is filled by the call.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

/// Works three times as long in one function as in the other, until the process has used so much CPU. In pieces of irregular
/// length: samples that come at regular moments would always meet the same part of regular ones.
fn work_three_to_one(until: Duration) {
    let mut chance = 42u64;
    while cpu_time() < until {
        // A busy kernel likes to take the processor away at the end of a system call, which is always the same place: few.
        for _ in 0..20 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let rounds = 20_000 + (chance >> 33) % 160_000;
            heavy_work(3 * rounds);
            light_work(rounds);
        }
    }
}

/// Not a test of its own: what the recorded process runs.
#[test]
fn the_recorded_program() {
    match std::env::var("RECORDED_ROLE").as_deref() {
        Ok("ratio") => work_three_to_one(Duration::from_millis(1500)),
        Ok("deep") => {
            while cpu_time() < Duration::from_millis(600) {
                deep_call(60, 100_000);
            }
        }
        Ok("family") => {
            let threads = ["first", "second"].map(|name| {
                std::thread::Builder::new()
                    .name(name.to_owned())
                    .spawn(|| (0..200).fold(1, |all, _| all | heavy_work(200_000)))
                    .unwrap()
            });
            let child = program("ratio").spawn();
            threads.into_iter().for_each(|thread| assert_ne!(thread.join().unwrap(), 0));
            child.unwrap().wait().unwrap();
        }
        Ok("sleepy") => (0..NAPS).for_each(|_| long_nap(NAP)),
        Ok("failing") => std::process::exit(7),
        Ok("waiting") => work_three_to_one(Duration::from_secs(60)),
        _ => {}
    }
}

/// Records by a method, if it is allowed here; perf events often are not.
fn try_record(target: Target, method: Method, options: Options) -> Option<Recording> {
    match record(target, &Options { method: Some(method), hertz: 200, ..options }, &AtomicBool::new(false)) {
        Ok(recording) => Some(recording),
        Err(RecordError::PerfForbidden(reason)) => {
            eprintln!("not tested: {reason}");
            None
        }
        Err(error) => panic!("{method:?}: {error}"),
    }
}

/// CPU nanoseconds by the functions that occur on a stack, each counted once.
fn by_function(recording: &Recording) -> HashMap<String, f64> {
    let set = &recording.profiles;
    let mut sums = HashMap::new();
    for sample in &set.profiles[0].samples {
        let mut names: Vec<String> = set
            .paths
            .walk_to_root(sample.path)
            .map(|frame| frame.function.rsplit("::").next().unwrap().to_owned())
            .collect();
        names.sort();
        names.dedup();
        names.into_iter().for_each(|name| *sums.entry(name).or_insert(0.0) += sample.value as f64);
    }
    sums
}

/// As how many samples of equal weight these count: on a busy machine some come late and stand for much time.
fn independent_samples(recording: &Recording) -> f64 {
    let weights = recording.profiles.profiles[0].samples.iter().map(|sample| sample.value as f64);
    weights.clone().sum::<f64>().powi(2) / weights.map(|weight| weight * weight).sum::<f64>()
}

/// Scenario: a program that works 3:1 in two functions is started and recorded by each method.
/// Guarantee: the shares are right within three standard deviations, and nearly all CPU time has a whole stack.
#[test]
fn shares_are_right_by_every_method() {
    for method in [Method::Perf, Method::Ptrace] {
        let Some(recording) = try_record(Target::Command(program("ratio")), method, Options::default()) else {
            continue;
        };
        assert!(recording.report.exit.is_some_and(|exit| exit.success()), "{:?}", recording.report);
        let sums = by_function(&recording);
        let (heavy, light) = (sums["heavy_work"], sums["light_work"]);
        let samples = recording.report.samples as f64;
        assert!(samples > 60.0, "{method:?}: {samples} samples");
        let deviation = (0.75 * 0.25 / independent_samples(&recording)).sqrt();
        let share = heavy / (heavy + light);
        assert!((share - 0.75).abs() < 3.0 * deviation + 0.01, "{method:?}: {share} of {samples} samples: {sums:?}");
        let whole = sums["work_three_to_one"] / recording.report.cpu_ns as f64;
        assert!(whole > 0.85, "{method:?}: only {whole} of the time has its caller");
    }
}

/// Scenario: sixty calls deep without frame pointers being asked for.
/// Guarantee: the stacks reach through all of them to the caller, and lines and files are known.
#[test]
fn deep_stacks_are_walked_whole() {
    for method in [Method::Perf, Method::Ptrace] {
        let Some(recording) = try_record(Target::Command(program("deep")), method, Options::default()) else {
            continue;
        };
        let set = &recording.profiles;
        let deepest = set.profiles[0].samples.iter().map(|sample| {
            set.paths.walk_to_root(sample.path).filter(|frame| frame.function.ends_with("::deep_call")).count()
        });
        assert_eq!(deepest.max(), Some(61), "{method:?}");
        let frame = set.paths.frames.iter().find(|frame| frame.function.ends_with("heavy_work")).unwrap();
        assert!(frame.file.ends_with("programs.rs") && frame.line > 0 && !frame.build_id.is_empty(), "{frame:?}");
    }
}

/// Scenario: a program with two named threads and a child process.
/// Guarantee: all of them are in the profile, threads by name.
#[test]
fn threads_and_children_are_followed() {
    for method in [Method::Perf, Method::Ptrace] {
        let Some(recording) = try_record(Target::Command(program("family")), method, Options::default()) else {
            continue;
        };
        let names: Vec<&str> = recording.profiles.threads.iter().map(|thread| thread.name.as_ref()).collect();
        assert!(names.contains(&"first") && names.contains(&"second"), "{method:?}: {names:?}");
        assert!(by_function(&recording).contains_key("work_three_to_one"), "{method:?}: the child is missing");
    }
}

/// Waits until the program has begun its work: it has used more CPU time than starting takes.
fn wait_until_it_works(pid: u32) {
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let ticks = stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(11).unwrap().to_owned();
        ticks.parse::<u64>().unwrap()
    };
    while used() < 20 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Scenario: a process that runs already is recorded for a while; it goes on afterwards.
/// Guarantee: its functions are found, the recording ends at its time, the process is unharmed.
#[test]
fn a_running_process_is_recorded() {
    for method in [Method::Perf, Method::Ptrace] {
        let mut child = program("waiting").spawn().unwrap();
        wait_until_it_works(child.id());
        let options = Options { duration: Some(Duration::from_millis(2000)), ..Options::default() };
        let recording = try_record(Target::Process(child.id() as i32), method, options);
        assert!(child.try_wait().unwrap().is_none(), "{method:?}: the process ended");
        child.kill().unwrap();
        child.wait().unwrap();
        let Some(recording) = recording else { continue };
        assert!(by_function(&recording).contains_key("heavy_work"), "{method:?}: {:?}", recording.report);
    }
}

/// Scenario: a program that sleeps for a second in all, recorded with its waits.
/// Guarantee: the time is found in the function that sleeps, off the processor; without the right to see it, that is
/// said.
#[test]
fn waits_are_found_where_they_are() {
    let options = Options { off_cpu: true, ..Options::default() };
    let Some(recording) = try_record(Target::Command(program("sleepy")), Method::Perf, options) else { return };
    let set = &recording.profiles;
    if let Some(remark) = recording.report.remarks.iter().find(|remark| remark.contains("waits are not seen")) {
        eprintln!("not tested: {remark}");
        assert_eq!(recording.report.waits, 0);
        return;
    }
    let off_cpu = set.profiles.iter().find(|profile| profile.profile_type.sample_type == "off_cpu").unwrap();
    let in_nap = |path| set.paths.walk_to_root(path).any(|frame| frame.function.ends_with("long_nap"));
    let naps: Vec<i64> =
        off_cpu.samples.iter().filter(|sample| in_nap(sample.path)).map(|sample| sample.value).collect();
    // Each nap is at least as long as asked for; a busy machine makes them longer, and may lose some, which is said.
    let lost = recording.report.lost_samples as usize;
    assert!(naps.len() + lost >= NAPS, "{} naps, {:?}", naps.len(), recording.report);
    let slept: i64 = naps.iter().sum();
    let asked = NAP.as_nanos() as i64 * naps.len().min(NAPS) as i64;
    assert!(!naps.is_empty() && slept >= asked, "{slept} of {asked} ns, {:?}", recording.report);
}

/// Scenario: a command that fails, one that does not exist, and a process that is not there.
/// Guarantee: the exit code is passed on; the others are errors that say what is wrong.
#[test]
fn ends_and_errors_are_told() {
    for method in [Method::Perf, Method::Ptrace] {
        if let Some(recording) = try_record(Target::Command(program("failing")), method, Options::default()) {
            assert_eq!(recording.report.exit.and_then(|exit| exit.code()), Some(7), "{method:?}");
        }
    }
    let stop = AtomicBool::new(false);
    let missing = record(Target::Command(Command::new("/no/such/program")), &Options::default(), &stop);
    assert!(matches!(missing, Err(RecordError::Start(_))), "{missing:?}");
    let gone = record(Target::Process(i32::MAX - 1), &Options::default(), &stop);
    assert!(matches!(gone, Err(RecordError::NoProcess(_))), "{gone:?}");
}
