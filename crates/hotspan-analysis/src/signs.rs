//! What the name of a function says about its time, whatever the language.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use hotspan_model::frame::UNKNOWN_PLACE;

use crate::own_code::is_address;
use crate::words::Words;

/// Collecting garbage.
static GC: Words = Words::of(
    "\
    gcassist, gcdrain, gcbgmark, gcstart, gcmark, scanobject, sweepone, bgsweep, g1collected, g1parscan, \
    g1evacuate, psscavenge, parallelgc, zcollected, zmark, shenandoah, garbage_collect, garbagecollect, \
    gc_collect, _pygc, gc_sweep, gc_mark, v8::internal::heap::, scavenger, markcompact, safepointsynchronize, \
    gen_collect, sgen_, gcheap::, rb_gc, zend_gc",
);
/// Taking memory and giving it back: the allocators and runtimes of C, C++, Rust, Go, Java, Python, Node.js, Ruby, PHP and
/// .NET, and the kernel's part in it.
static ALLOCATION: Words = Words::of(
    "\
    malloc, calloc, realloc, memalign, mallocx, dallocx, arena_dalloc, libc_free, _int_free, cfree, tcache_, \
    unlink_chunk, systrim, operator new, operator delete, tc_new, tc_delete, tc_free, __rust_alloc, \
    __rust_dealloc, __rust_no_alloc, alloc::alloc::alloc, alloc::alloc::dealloc, alloc::alloc::box_free, \
    allocator>::, globalalloc>::, raw_vec, newobject, growslice, makeslice, makemap, makechan, runtime.(*mcache), \
    runtime.(*mcentral), runtime.(*mheap), runtime.(*mspan), allocate_new_tlab, memallocator, \
    instanceklass::allocate, arrayklass::allocate, optoruntime::new_, runtime1::new_, interpreterruntime::_new, \
    pymem_, pyobject_free, pytype_genericalloc, _pyobject_gc_new, v8::internal::factory::new, allocateraw, \
    runtime_allocatein, newobj_, objspace_x, _efree, zend_mm_, jit_new, gc_heap::allocate, membarrier_alloc, \
    page_fault, handle_mm_fault, clear_page, madvise, mmap, munmap",
);
/// The same where a word begins: two letters are in many.
static ALLOCATION_PREFIX: Words = Words::of("mi_, je_, rjem_");
/// The same where it is the whole name, as in C: many a method is called so, too.
const ALLOCATION_WHOLE: &str = "free";
/// Copying into memory that was taken for it.
static COPYING: Words = Words::of(
    "\
    core::clone::clone>::clone, ::to_vec, ::to_owned, concatstring, slicebytetostring, stringtoslicebyte, \
    rawbyteslice, bytes.clone, slices.clone, arrays.copyof, ensurecapacity, deepcopy, structuredclone, \
    buffer.concat, list_resize, bytes_concat, unicode_concat, _m_realloc, _m_create",
);
/// Waiting for a lock.
static LOCK: Words = Words::of(
    "\
    futex, mutex, pthread_cond, pthread_rwlock, rwlock, semacquire, semasleep, lockslow, monitor, unsafe.park, \
    unsafe_park, locksupport.park, synchronizer, reentrantlock, __lll_lock, parking_lot, condvar, srwlock, \
    acquiresrwlock, waitforsingleobject, semaphore, sync.(*, _pymutex, acquire_lock, take_gil, gil_acquire, \
    spinlock",
);
/// Waiting for a disk or a socket.
static IO: Words = Words::of(
    "\
    epoll, kevent, netpoll, recvfrom, recvmsg, sendto, sendmsg, fsync, fdatasync, pread, pwrite, preadv, pwritev, \
    io_uring, io_getevents, __poll, ppoll, __select, pselect, sys_read, sys_write, __read, __write, socketread, \
    socketwrite, socketinputstream, filedispatcher, internal/poll, internal/poll.(*fd), accept4, __connect, \
    sock_recv, sock_send, tcp_recvmsg, tcp_sendmsg, unix_stream, blk_, ext4_, xfs_, vfs_read, vfs_write, \
    vfs_fsync, wait_on_page, getaddrinfo, ssl_read, ssl_write, readv, writev, uv__io, nanosocket",
);
/// The same where it is the whole name without its module.
static IO_WHOLE: Words = Words::of("read, write, poll, select, recv, send, connect, accept, open, close");
/// Waiting for a CPU.
static SCHEDULING: Words =
    Words::of("schedule_preempt, preempt, sched_yield, runqget, cpu_throttl, throttle_cfs, runnable");
/// Waiting for a time to come, or for whoever wakes one up.
static SLEEP: Words = Words::of(
    "\
    nanosleep, usleep, timesleep, thread.sleep, thread::sleep, time.sleep, gopark, wait_for_completion, \
    schedule_timeout, do_wait, wait4, __sleep, object.wait, epoll_wait_idle",
);

/// Turning text or bytes into values. These and the next two count where a word begins: `parse` is no part of `sparse`.
static PARSING: Words = Words::of(
    "\
    unmarshal, parse, urlparse, decode, deserial, from_str, from_slice, from_reader, readvalue, readtree, \
    jsonparser, xmlreader, saxparser, yaml.load, fromjson, loads, unpickle, unpack",
);
/// Turning values into text or bytes.
static SERIALISATION: Words = Words::of(
    "\
    marshal, serializ, serialis, encode, to_json, tojson, stringify, writevalue, to_string, dumps, pickle.dump, \
    jsonwriter",
);
/// Compiling regular expressions, or matching them.
static REGEX: Words = Words::of("regex, irregexp, re.compile, re2::, sre_compile, _sre, pcre");

/// Something that a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It is part of a garbage collector.
    Collects,
    /// It takes memory from an allocator, or gives it back.
    Allocates,
    /// It copies into memory that is taken for it.
    Copies,
    /// It waits for a lock.
    Locks,
    /// It waits for a disk or a socket.
    DoesIo,
    /// It waits for a CPU.
    Schedules,
    /// It waits for a time to come.
    Sleeps,
    /// It turns text or bytes into values.
    Parses,
    /// It turns values into text or bytes.
    Serialises,
    /// It compiles or matches regular expressions.
    Matches,
    /// It has no name: it is known by its binary and address only.
    Nameless,
}

impl Sign {
    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// What the name of a function says: any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Signs(u16);

impl Signs {
    /// Reads a name. All words are looked for in one pass: there are hundreds, and tens of thousands of names.
    pub fn of(name: &str) -> Self {
        static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::new);
        let mut signs = Self::default();
        for found in LEXICON.automaton.find_overlapping_iter(name) {
            let (sign, where_a_word_begins) = LEXICON.signs[found.pattern().as_usize()];
            if !where_a_word_begins || begins_word(name.as_bytes(), found.start()) {
                signs.0 |= sign.bit();
            }
        }
        if IO_WHOLE.iter().any(|word| bare(name).eq_ignore_ascii_case(word)) {
            signs.0 |= Sign::DoesIo.bit();
        }
        if is_address(name) || name == UNKNOWN_PLACE {
            signs.0 |= Sign::Nameless.bit();
        }
        if name.trim_start_matches('_') == ALLOCATION_WHOLE {
            signs.0 |= Sign::Allocates.bit();
        }
        signs
    }

    /// Whether the name says this.
    pub fn say(self, sign: Sign) -> bool {
        self.0 & sign.bit() != 0
    }

    /// What either of two says.
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The bare name of a function, without its module.
fn bare(name: &str) -> &str {
    let start = name.rfind(['.', ':', '/', '!']).map_or(0, |at| at + 1);
    name[start..].trim_start_matches('_')
}

/// Whether a word begins here: `parse` in `json_parse`, `JsonParse` and `JSONParse`, but not in `sparse`.
fn begins_word(name: &[u8], at: usize) -> bool {
    let is = |at: Option<usize>, test: fn(&u8) -> bool| at.and_then(|at| name.get(at)).is_some_and(test);
    let (before, after) = (at.checked_sub(1), Some(at + 1));
    !is(before, u8::is_ascii_alphabetic)
        || !is(Some(at), u8::is_ascii_alphabetic)
        || (is(Some(at), u8::is_ascii_uppercase)
            && (is(before, u8::is_ascii_lowercase) || is(after, u8::is_ascii_lowercase)))
}

/// All words; for each of them what it is a sign of, and whether only where a word begins.
struct Lexicon {
    automaton: AhoCorasick,
    signs: Vec<(Sign, bool)>,
}

impl Lexicon {
    #[expect(clippy::expect_used, reason = "only too many or too long words fail, and these are constants")]
    fn new() -> Self {
        let lists = [
            (&GC, Sign::Collects, false),
            (&ALLOCATION, Sign::Allocates, false),
            (&ALLOCATION_PREFIX, Sign::Allocates, true),
            (&COPYING, Sign::Copies, false),
            (&LOCK, Sign::Locks, false),
            (&IO, Sign::DoesIo, false),
            (&SCHEDULING, Sign::Schedules, false),
            (&SLEEP, Sign::Sleeps, false),
            (&PARSING, Sign::Parses, true),
            (&SERIALISATION, Sign::Serialises, true),
            (&REGEX, Sign::Matches, true),
        ];
        let words = lists.iter().flat_map(|(list, ..)| list.iter());
        let signs = lists.iter().flat_map(|(list, sign, begins)| list.iter().map(|_| (*sign, *begins)));
        let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(words);
        Self { automaton: automaton.expect("the words are few and short"), signs: signs.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: functions of allocators and runtimes in ten languages, and functions that only look like them.
    /// Guarantee: taking memory and giving it back are seen in the first, and in none of the others.
    #[test]
    fn allocators_are_known() {
        let allocate = [
            "malloc",
            "__libc_free",
            "free",
            "_int_free_merge_chunk",
            "operator delete(void*, unsigned long)",
            "mi_free",
            "_mi_page_malloc_zero",
            "mi_theap_malloc_aligned",
            "je_sdallocx",
            "_rjem_je_arena_ralloc",
            "__rustc::__rust_dealloc",
            "alloc::alloc::dealloc",
            "alloc::raw_vec::RawVec<T,A>::grow_one",
            "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
            "runtime.growslice",
            "runtime.(*mcache).refill",
            "MemAllocator::allocate",
            "OptoRuntime::new_instance_C",
            "_PyObject_Free",
            "PyMem_RawMalloc",
            "v8::internal::Factory::NewFixedArray",
            "zend_mm_alloc_small",
            "JIT_New",
            "asm_exc_page_fault",
        ];
        for name in allocate {
            assert!(Signs::of(name).say(Sign::Allocates), "{name}");
        }
        let others = [
            "<[u8]>::sort_by::<alloc::alloc::Global>",
            "shop::Room::free",
            "shop::semi_sorted",
            "alloc::vec::Vec<T,A>::push",
            "freeze",
            "allocation_of_shares",
        ];
        for name in others {
            assert!(!Signs::of(name).say(Sign::Allocates), "{name}");
        }
        for name in ["<alloc::string::String as core::clone::Clone>::clone", "java.util.Arrays.copyOf", "copy.deepcopy"]
        {
            assert!(Signs::of(name).say(Sign::Copies), "{name}");
        }
    }

    /// Scenario: parsers, writers and regular expressions by their names, and names that hold the same letters.
    /// Guarantee: a word counts where it begins one, so that the opposite of a thing and chance are told from it.
    #[test]
    fn words_count_where_they_begin() {
        let signs = [Sign::Parses, Sign::Serialises, Sign::Matches];
        let said = |name: &str| signs.map(|sign| Signs::of(name).say(sign));
        for name in
            ["encoding/json.Unmarshal", "shop::parse_price", "JSONParser.next", "json.loads", "Deserializer::next"]
        {
            assert_eq!(said(name), [true, false, false], "{name}");
        }
        for name in ["encoding/json.Marshal", "JSON.stringify", "serde_json::ser::Serializer::end", "dumps"] {
            assert_eq!(said(name), [false, true, false], "{name}");
        }
        for name in ["regexp.Compile", "java.util.regex.Pattern.matcher", "re.compile", "regex_automata::meta::build"] {
            assert_eq!(said(name), [false, false, true], "{name}");
        }
        for name in ["sparse_matrix", "payloads", "core.compile", "render"] {
            assert_eq!(said(name), [false, false, false], "{name}");
        }
    }
}
