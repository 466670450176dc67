//! From events to a profile: stacks are walked as they come, names are looked up once, at the end.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use hotspan_model::frame::FrameIndex;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::profile::Thread;
use hotspan_model::{Frame, FrameKind, Labels, Profile, ProfileSet, ProfileType, Sample};

use crate::Report;
use crate::demangle::readable;
use crate::event::{Event, Measure, Stack};
use crate::jit_map::JitMap;
use crate::kernel::KernelSymbols;
use crate::modules::ElfModule;
use crate::process::Processes;

/// Where an address lies.
#[derive(Debug, Clone)]
enum Code {
    File(Arc<ElfModule>),
    /// Memory without a file: code that the program made, or what we can't read.
    Memory(i32),
    Kernel,
}

/// The same as a key: files are the same if they are the same object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CodeKey {
    File(usize),
    Memory(i32),
    Kernel,
}

#[derive(Debug, Clone, Copy)]
struct Taken {
    stack: u32,
    thread: (i32, i32),
    time: u64,
    weight: u64,
}

/// Collects events.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) processes: Processes,
    max_depth: usize,
    period_ns: u64,
    addresses: Vec<(Code, u64)>,
    address_index: HashMap<(CodeKey, u64), u32>,
    stacks: Vec<Box<[u32]>>,
    stack_index: HashMap<Box<[u32]>, u32>,
    names: HashMap<i32, String>,
    programs: HashMap<i32, String>,
    taken: Vec<Taken>,
    /// Threads that are off the processors: since when, and where.
    waiting: HashMap<i32, (u64, u32)>,
    waits: Vec<Taken>,
    pub(crate) report: Report,
}

impl Recorder {
    pub(crate) fn new(max_depth: usize, hertz: u32) -> Recorder {
        Recorder {
            processes: Processes::default(),
            max_depth,
            period_ns: 1_000_000_000 / u64::from(hertz.max(1)),
            addresses: Vec::new(),
            address_index: HashMap::new(),
            stacks: Vec::new(),
            stack_index: HashMap::new(),
            names: HashMap::new(),
            programs: HashMap::new(),
            taken: Vec::new(),
            waiting: HashMap::new(),
            waits: Vec::new(),
            report: Report::default(),
        }
    }

    /// A process that runs already: what it has mapped, and what its threads are called.
    pub(crate) fn attach(&mut self, pid: i32, tids: &[i32]) -> std::io::Result<()> {
        self.processes.read_maps(pid)?;
        let name = |path: String| std::fs::read_to_string(path).map(|name| name.trim_end().to_owned());
        self.programs.insert(pid, name(format!("/proc/{pid}/comm"))?);
        for tid in tids {
            // A thread may have ended meanwhile.
            if let Ok(name) = name(format!("/proc/{pid}/task/{tid}/comm")) {
                self.names.insert(*tid, name);
            }
        }
        Ok(())
    }

    /// Takes one event.
    pub(crate) fn take(&mut self, event: Event) {
        match event {
            Event::Mapped { pid, range, offset, path } => self.processes.map(pid, range, offset, &path),
            Event::Named { pid, tid, name, executed } => {
                if executed {
                    self.processes.execute(pid);
                }
                if pid == tid {
                    self.programs.insert(pid, name.clone());
                }
                self.names.insert(tid, name);
            }
            Event::Forked { pid, parent } => {
                self.processes.fork(pid, parent);
                if let Some(program) = self.programs.get(&parent).cloned() {
                    self.programs.entry(pid).or_insert(program);
                }
            }
            Event::Exited { pid, tid } => {
                if pid == tid {
                    self.processes.forget(pid);
                }
            }
            Event::Lost { samples } => self.report.lost_samples += samples,
            Event::Sample { pid, tid, time, measure, interrupted, kernel, user } => {
                let stack = self.stack_of(pid, interrupted, &kernel, user.as_ref());
                match measure {
                    Measure::Cpu { nanoseconds } => {
                        self.report.samples += 1;
                        self.report.cpu_ns += nanoseconds;
                        self.taken.push(Taken { stack, thread: (pid, tid), time, weight: nanoseconds });
                    }
                    Measure::LeavesCpu => {
                        self.waiting.insert(tid, (time, stack));
                    }
                }
            }
            Event::BackOnCpu { pid, tid, time } => {
                if let Some((since, stack)) = self.waiting.remove(&tid) {
                    let weight = time.saturating_sub(since);
                    self.report.waits += 1;
                    self.report.off_cpu_ns += weight;
                    self.waits.push(Taken { stack, thread: (pid, tid), time: since, weight });
                }
            }
        }
    }

    /// The stack's number; its addresses are innermost first.
    fn stack_of(&mut self, pid: i32, interrupted: u64, kernel: &[u64], user: Option<&Stack>) -> u32 {
        let mut stack: Vec<u32> = Vec::with_capacity(32);
        for address in kernel.iter().take(self.max_depth) {
            stack.push(self.intern(Code::Kernel, *address));
        }
        if let Some(user) = user {
            let (addresses, was_cut) = self.processes.get(pid).unwind(user, self.max_depth - stack.len());
            self.report.cut_stacks += u64::from(was_cut);
            for address in addresses {
                let located = self.processes.get(pid).locate(address);
                let code = located.module.map_or(Code::Memory(pid), Code::File);
                stack.push(self.intern(code, located.address));
            }
        }
        if stack.is_empty() {
            stack.push(self.intern(Code::Memory(pid), interrupted));
        }
        let stack: Box<[u32]> = stack.into();
        *self.stack_index.entry(stack).or_insert_with_key(|stack| {
            self.stacks.push(stack.clone());
            (self.stacks.len() - 1) as u32
        })
    }

    fn intern(&mut self, code: Code, address: u64) -> u32 {
        let key = match &code {
            Code::File(module) => CodeKey::File(Arc::as_ptr(module) as usize),
            Code::Memory(pid) => CodeKey::Memory(*pid),
            Code::Kernel => CodeKey::Kernel,
        };
        *self.address_index.entry((key, address)).or_insert_with(|| {
            self.addresses.push((code, address));
            (self.addresses.len() - 1) as u32
        })
    }

    /// The profiles. `clock_offset` turns the monotonic clock into time since 1970.
    pub(crate) fn finish(
        mut self,
        service: &str,
        clock_offset: i64,
        duration_ns: i64,
    ) -> (ProfileSet<'static>, Report) {
        let mut set = ProfileSet::default();
        let frames = self.name_addresses(&mut set);
        let (taken, waits) = (std::mem::take(&mut self.taken), std::mem::take(&mut self.waits));
        let programs: BTreeSet<&String> =
            taken.iter().chain(&waits).filter_map(|taken| self.programs.get(&taken.thread.0)).collect();
        let mut writer = Writer {
            recorder: &self,
            frames,
            several_programs: programs.len() > 1,
            threads: HashMap::new(),
            clock_offset,
        };
        let off_cpu = ProfileType::from_parts(["off_cpu", "off_cpu", "nanoseconds", "off_cpu", "nanoseconds"]);
        let kinds = [(ProfileType::cpu(), taken, self.period_ns as i64), (off_cpu, waits, 1)];
        for (profile_type, taken, period) in kinds {
            if taken.is_empty() && !set.profiles.is_empty() {
                continue;
            }
            let samples = writer.samples(&mut set, &taken);
            set.profiles.push(Profile {
                id: None,
                profile_type,
                labels: Labels::from_pairs([(SERVICE_NAME, service)]),
                time: samples.iter().map(|sample| sample.time).min().unwrap_or(clock_offset),
                duration: duration_ns,
                period,
                context: Default::default(),
                samples,
            });
        }
        let mut report = self.report.clone();
        report.threads = writer.threads.len();
        (set, report)
    }

    /// The frames at each address, innermost first.
    fn name_addresses(&mut self, set: &mut ProfileSet<'static>) -> Vec<Vec<FrameIndex>> {
        let mut kernel = None;
        let mut jit_maps: HashMap<i32, JitMap> = HashMap::new();
        let addresses = std::mem::take(&mut self.addresses);
        let name = |(code, address): &(Code, u64)| -> Vec<FrameIndex> {
            match code {
                Code::File(module) => file_frames(set, module, *address),
                Code::Kernel => {
                    let symbols = kernel.get_or_insert_with(KernelSymbols::read);
                    let name = symbols.name_of(*address).map(str::to_owned);
                    vec![set.paths.frame(Frame {
                        function: name.unwrap_or_default().into(),
                        mapping: "[kernel]".into(),
                        address: *address,
                        kind: FrameKind::Kernel,
                        ..Frame::default()
                    })]
                }
                Code::Memory(pid) => {
                    let map = jit_maps.entry(*pid).or_insert_with(|| JitMap::of(*pid));
                    let name = map.name_of(*address).map(str::to_owned).unwrap_or_default();
                    vec![set.paths.frame(Frame { function: name.into(), address: *address, ..Frame::default() })]
                }
            }
        };
        addresses.iter().map(name).collect()
    }
}

/// Turns what was taken into samples.
struct Writer<'r> {
    recorder: &'r Recorder,
    frames: Vec<Vec<FrameIndex>>,
    several_programs: bool,
    threads: HashMap<(i32, i32), u32>,
    clock_offset: i64,
}

impl Writer<'_> {
    fn samples(&mut self, set: &mut ProfileSet<'static>, taken: &[Taken]) -> Vec<Sample> {
        let mut samples = Vec::with_capacity(taken.len());
        let mut path = Vec::new();
        for taken in taken {
            path.clear();
            if self.several_programs
                && let Some(program) = self.recorder.programs.get(&taken.thread.0)
            {
                path.push(set.paths.frame(Frame::named(program).into_owned()));
            }
            let stack = &self.recorder.stacks[taken.stack as usize];
            path.extend(stack.iter().rev().flat_map(|address| self.frames[*address as usize].iter().rev()));
            let thread = *self.threads.entry(taken.thread).or_insert_with(|| {
                let name = self.recorder.names.get(&taken.thread.1).cloned().unwrap_or_default();
                set.threads.push(Thread { id: Some(i64::from(taken.thread.1)), name: Cow::Owned(name) });
                (set.threads.len() - 1) as u32
            });
            samples.push(Sample {
                path: set.paths.path(&path),
                value: taken.weight as i64,
                time: (taken.time as i64).saturating_add(self.clock_offset),
                timed: true,
                link: 0,
                thread,
                labels: 0,
                attributes: 0,
            });
        }
        samples
    }
}

fn file_frames(set: &mut ProfileSet<'static>, module: &ElfModule, address: u64) -> Vec<FrameIndex> {
    let place = |function: Cow<'static, str>| Frame {
        function,
        mapping: module.path.clone().into(),
        build_id: module.build_id.clone().into(),
        address: module.offset_of(address),
        kind: FrameKind::Native,
        ..Frame::default()
    };
    let found = module.frames_at(address);
    if found.is_empty() {
        return vec![set.paths.frame(place(Cow::Borrowed("")))];
    }
    let named = found.into_iter().map(|source| {
        let (system_name, file, line) = (source.system_name.clone(), source.file.clone(), source.line);
        let frame = place(readable(source).into());
        set.paths.frame(Frame { system_name: system_name.into(), file: file.into(), line, ..frame })
    });
    named.collect()
}
