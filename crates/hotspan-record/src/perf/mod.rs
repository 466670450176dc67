//! Samples from the kernel: perf events on the CPU clock, with registers and a piece of stack copied into each.
//!
//! One event per thread and processor, inherited by what the thread starts; one ring per processor.

mod attributes;
mod records;
mod ring;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use crate::event::Event;
use crate::{Options, RecordError};
use attributes::{Attributes, Moment};
use ring::Ring;

/// What an unprivileged user may lock per processor (`perf_event_mlock_kb`), less the first page.
const RING_BYTES: usize = 512 << 10;
/// What is asked for first: each switch brings a copy of a stack, and whoever reads them may have to wait for a processor.
const LARGE_RING_BYTES: usize = 4 << 20;
const SET_OUTPUT: libc::Ioctl = 0x2405;
const DISABLE: libc::Ioctl = 0x2401;

/// Open events and what they have told.
#[derive(Debug)]
pub(crate) struct PerfSource {
    rings: Vec<Ring>,
    others: Vec<OwnedFd>,
    /// Events that have been read, but may still be preceded by some of rings that were read earlier.
    waiting: Vec<(u64, Event)>,
    /// The latest time that the last round has seen: every ring has been read past it.
    settled: u64,
    /// Whether time in the kernel is seen.
    pub(crate) kernel: bool,
    /// Whether time off the processors is seen.
    pub(crate) off_cpu: bool,
}

impl PerfSource {
    /// Opens events for threads. `on_exec`: they start when the (single) thread executes its program.
    pub(crate) fn open(tids: &[i32], options: &Options, on_exec: bool) -> Result<PerfSource, RecordError> {
        raise_descriptor_limit();
        let mut attributes = Attributes {
            moment: Moment::CpuTime(1_000_000_000 / u64::from(options.hertz.max(1))),
            stack_bytes: options.stack_bytes.min(60 << 10) & !7,
            kernel: true,
            enable_on_exec: on_exec,
            wake_at: (RING_BYTES / 4) as u32,
        };
        let (mut rings, mut others) = (Vec::new(), Vec::new());
        let mut off_cpu = options.off_cpu;
        for cpu in online_cpus() {
            let mut ring: Option<Ring> = None;
            for tid in tids {
                match open_allowed(&mut attributes, *tid, cpu) {
                    Ok(event) => match &ring {
                        None => {
                            ring = Some(Ring::map(event, &[LARGE_RING_BYTES, RING_BYTES]).map_err(RecordError::Perf)?);
                        }
                        Some(ring) => {
                            share_ring(&event, ring.event()).map_err(RecordError::Perf)?;
                            others.push(event);
                        }
                    },
                    // A thread may have ended since it was listed, and a processor may have gone.
                    Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV)) => {}
                    Err(error) if is_forbidden(&error) => return Err(RecordError::PerfForbidden(why_forbidden())),
                    Err(error) => return Err(RecordError::Perf(error)),
                }
            }
            if let Some(ring) = &ring
                && off_cpu
            {
                let switches = Attributes { moment: Moment::LeavingCpu, ..attributes };
                for tid in tids {
                    match switches.open(*tid, cpu) {
                        Ok(event) => {
                            share_ring(&event, ring.event()).map_err(RecordError::Perf)?;
                            others.push(event);
                        }
                        Err(error) => off_cpu &= !is_forbidden(&error),
                    }
                }
            }
            rings.extend(ring);
        }
        if rings.is_empty() {
            return Err(RecordError::Gone);
        }
        Ok(PerfSource { rings, others, waiting: Vec::new(), settled: 0, kernel: attributes.kernel, off_cpu })
    }

    /// Waits until a ring fills up, at most this long.
    pub(crate) fn wait(&self, at_most: Duration) {
        let mut polled: Vec<libc::pollfd> = self
            .rings
            .iter()
            .map(|ring| libc::pollfd { fd: ring.event().as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        let milliseconds = i32::try_from(at_most.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the array lives for the call. Being interrupted is as good as a timeout.
        let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) };
        let hung_up = polled.iter().any(|event| event.revents & libc::POLLHUP != 0);
        if ready > 0 && hung_up {
            // All threads of an event have ended: it stays readable for ever, so sleeping is up to us.
            std::thread::sleep(at_most.min(Duration::from_millis(20)));
        }
    }

    /// Reads every ring, and hands over what is certain to be in order.
    pub(crate) fn read(&mut self, take: impl FnMut(Event)) {
        let before = self.settled;
        self.read_rings();
        self.hand_over(before, take);
    }

    /// Stops the events and hands over everything.
    pub(crate) fn finish(&mut self, take: impl FnMut(Event)) {
        for event in self.rings.iter().map(Ring::event).chain(&self.others) {
            // SAFETY: an open event. If it cannot be stopped, it ends with its descriptor.
            unsafe { libc::ioctl(event.as_raw_fd(), DISABLE, 0) };
        }
        self.read_rings();
        self.hand_over(u64::MAX, take);
    }

    fn read_rings(&mut self) {
        for ring in &mut self.rings {
            ring.drain(|kind, flags, body| {
                if let Some((time, event)) = records::read(kind, flags, body) {
                    self.settled = self.settled.max(time);
                    self.waiting.push((time, event));
                }
            });
        }
    }

    fn hand_over(&mut self, until: u64, mut take: impl FnMut(Event)) {
        // Stable: records of one ring and one time stay in their order.
        self.waiting.sort_by_key(|(time, _)| *time);
        let count = self.waiting.partition_point(|(time, _)| *time <= until);
        self.waiting.drain(..count).for_each(|(_, event)| take(event));
    }
}

/// Without privileges, user code only: better than nothing, and said in the report.
fn open_allowed(attributes: &mut Attributes, tid: i32, cpu: i32) -> io::Result<OwnedFd> {
    match attributes.open(tid, cpu) {
        Err(error) if is_forbidden(&error) && attributes.kernel => {
            attributes.kernel = false;
            attributes.open(tid, cpu)
        }
        opened => opened,
    }
}

fn share_ring(event: &OwnedFd, with: &OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are open events of the same processor.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, with.as_raw_fd()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::ENOSYS))
}

/// What forbids perf events here, and what to change.
fn why_forbidden() -> String {
    match fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").map(|text| text.trim().to_owned()) {
        Ok(level) if level.parse::<i32>().is_ok_and(|level| level > 2) => {
            format!("kernel.perf_event_paranoid is {level}: `sysctl kernel.perf_event_paranoid=2` allows them")
        }
        Ok(level) => format!(
            "kernel.perf_event_paranoid is {level}, so a sandbox or the owner of the process forbids them: run as the \
             same user or with CAP_PERFMON; in a container, allow perf_event_open in its seccomp profile"
        ),
        Err(_) => "this kernel has none".to_owned(),
    }
}

fn online_cpus() -> Vec<i32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = parse_cpu_list(text.trim());
    if cpus.is_empty() {
        (0..std::thread::available_parallelism().map_or(1, |count| count.get() as i32)).collect()
    } else {
        cpus
    }
}

/// `0-3,8` and the like.
fn parse_cpu_list(text: &str) -> Vec<i32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// An event per thread and processor can be many.
fn raise_descriptor_limit() {
    // SAFETY: the structure is filled by the first call and only read by the second.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: lists of processors as the kernel writes them.
    /// Guarantee: each processor is found once.
    #[test]
    fn processor_lists() {
        assert_eq!(parse_cpu_list("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(parse_cpu_list("0"), [0]);
        assert!(parse_cpu_list("").is_empty());
    }
}
