//! What profilers outside the process find: OTEP 4719's process context and OTEP 4947's thread context, read the way the
//! OpenTelemetry eBPF profiler reads them, by symbol, mapping name and memory of another process.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use hotspan_profiler::{Ctx, Profiler, Redaction, thread_context_is_exported};
use object::{Object, ObjectSymbol};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

const ROLE: &str = "OBSERVED_ROLE";
const TRACE: [u8; 16] = [0xa1; 16];
const SPAN: [u8; 8] = [0xb2; 8];

/// The message that OTEP 4719 defines.
#[derive(Clone, PartialEq, Message)]
struct ProcessContext {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    attributes: Vec<KeyValue>,
}

/// Not a test of its own: the process that is looked at. It works inside a span, then outside, each until it is told on.
#[test]
fn the_observed_process() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let profiler = Profiler::builder("observed")
        .ignore_environment()
        .tag("region", "eu")
        .tag("owner", "agent-x")
        .redact(Redaction::matching(["agent-*"]))
        .start()
        .unwrap();
    assert!(thread_context_is_exported());
    // SAFETY: gettid has no preconditions.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    let next_line = || std::io::stdin().lines().next();
    let inside = Ctx::for_request(TRACE, SPAN).attach();
    println!("\ninside {tid}");
    std::io::stdout().flush().unwrap();
    next_line();
    drop(inside);
    println!("\noutside {tid}");
    std::io::stdout().flush().unwrap();
    next_line();
    drop(profiler);
}

/// The other process, as an outsider sees it.
struct Observed {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Observed {
    fn start() -> Observed {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "the_observed_process", "--nocapture"]).env(ROLE, "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Observed { child, output }
    }

    /// Waits until it says that it is inside or outside of its span; the id of the thread that is.
    fn thread_that_is(&mut self, place: &str) -> i32 {
        let said = |line: std::io::Result<String>| line.unwrap().strip_prefix(place)?.trim().parse().ok();
        self.output.by_ref().lines().find_map(said).expect("the observed process ended early")
    }

    fn go_on(&mut self) {
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
    }

    fn read<const N: usize>(&self, address: u64) -> [u8; N] {
        self.read_bytes(address, N).try_into().unwrap()
    }

    fn read_bytes(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; length];
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
        // SAFETY: the call writes only into `bytes`.
        let copied = unsafe { libc::process_vm_readv(self.child.id() as i32, &local, 1, &remote, 1, 0) };
        assert_eq!(copied, length as isize, "{}", std::io::Error::last_os_error());
        bytes
    }

    /// Stops a thread, reads its thread pointer, and hands that to `look` before the thread goes on.
    fn with_stopped_thread<R>(&self, tid: i32, look: impl FnOnce(u64) -> R) -> R {
        // SAFETY: plain ptrace calls on a child; the registers are written before they are read.
        unsafe {
            let nothing = std::ptr::null_mut::<libc::c_void>();
            assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, tid, nothing, nothing), 0);
            assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, tid, nothing, nothing), 0);
            assert_eq!(libc::waitpid(tid, std::ptr::null_mut(), libc::__WALL), tid);
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, tid, nothing, &raw mut registers), 0);
            let seen = look(registers.fs_base);
            assert_eq!(libc::ptrace(libc::PTRACE_DETACH, tid, nothing, nothing), 0);
            seen
        }
    }

    /// The thread's record, if it points to one: 28 bytes of head, then the attributes.
    fn thread_record(&self, tid: i32) -> Option<(Vec<u8>, Vec<u8>)> {
        let offset = offset_of_thread_context();
        self.with_stopped_thread(tid, |thread_pointer| {
            let record = u64::from_le_bytes(self.read(thread_pointer.wrapping_sub(offset)));
            if record == 0 {
                return None;
            }
            let head: [u8; 28] = self.read(record);
            let attributes = usize::from(u16::from_le_bytes([head[26], head[27]]));
            Some((head.to_vec(), self.read_bytes(record + 28, attributes)))
        })
    }
}

/// How far below the thread pointer the record's pointer lies, from the program's dynamic symbols and its TLS segment.
fn offset_of_thread_context() -> u64 {
    let program = std::fs::read("/proc/self/exe").unwrap();
    let file = object::read::elf::ElfFile64::<object::LittleEndian>::parse(program.as_slice()).unwrap();
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok("otel_thread_ctx_v1"));
    let symbol = symbol.expect("the symbol is exported");
    let endian = object::LittleEndian;
    let segment = file.elf_program_headers().iter().find(|header| header.p_type.get(endian) == object::elf::PT_TLS);
    let segment = segment.unwrap();
    segment.p_memsz.get(endian).next_multiple_of(segment.p_align.get(endian).max(1)) - symbol.address()
}

/// Scenario: another process reads the thread context of a thread inside a span, and again after it left.
/// Guarantee: it finds the trace, the span and the local root by OTEP 4947's rules, and afterwards nothing.
#[test]
fn the_span_is_read_from_outside() {
    let mut observed = Observed::start();
    let tid = observed.thread_that_is("inside");
    let (head, attributes) = observed.thread_record(tid).expect("a record");
    assert_eq!((&head[..16], &head[16..24], head[24]), (&TRACE[..], &SPAN[..], 1));
    assert_eq!(attributes, [&[0, 16][..], b"b2b2b2b2b2b2b2b2"].concat());
    observed.go_on();
    assert_eq!(observed.thread_that_is("outside"), tid);
    assert_eq!(observed.thread_record(tid), None);
    observed.go_on();
    assert!(observed.child.wait().unwrap().success());
}

/// Scenario: another process looks for the process context by the name of its mapping.
/// Guarantee: header and payload are OTEP 4719's, with the resource and the keys of thread records, and without secrets.
#[test]
fn the_process_is_described_outside() {
    let mut observed = Observed::start();
    observed.thread_that_is("inside");
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", observed.child.id())).unwrap();
    let named =
        |line: &&str| ["[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"].iter().any(|n| line.contains(n));
    let line = maps.lines().find(named).expect("a mapping by that name");
    let start = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let header: [u8; 32] = observed.read(start);
    let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
    assert_eq!((&header[..8], word(8) as u32), (&b"OTEL_CTX"[..], 2));
    assert_ne!(word(16), 0, "published");
    let payload = observed.read_bytes(word(24), (word(8) >> 32) as usize);
    let context = ProcessContext::decode(payload.as_slice()).unwrap();
    let resource = context.resource.unwrap().attributes;
    let text = |attributes: &[KeyValue], key: &str| {
        let value = attributes.iter().find(|attribute| attribute.key == key)?.value.clone()?.value?;
        if let Value::StringValue(text) = value { Some(text) } else { None }
    };
    assert_eq!(text(&resource, "service.name").as_deref(), Some("observed"));
    let id = resource.iter().find(|attribute| attribute.key == "process.pid").and_then(|found| found.value.clone());
    assert_eq!(id.unwrap().value, Some(Value::IntValue(observed.child.id().into())));
    assert_eq!(text(&resource, "region").as_deref(), Some("eu"));
    assert_eq!(text(&resource, "owner").as_deref(), Some("[redacted]"));
    assert_eq!(text(&context.attributes, "threadlocal.schema_version").as_deref(), Some("tlsdesc_v1_dev"));
    let keys = context.attributes.iter().find(|attribute| attribute.key == "threadlocal.attribute_key_map").unwrap();
    let Some(Value::ArrayValue(keys)) = keys.value.clone().unwrap().value else { panic!("{keys:?}") };
    let first = AnyValue { value: Some(Value::StringValue("hotspan.local_root_span_id".into())) };
    assert_eq!(keys.values, [first]);
    observed.child.kill().unwrap();
    observed.child.wait().unwrap();
}
