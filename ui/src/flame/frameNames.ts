// What a frame's name tells: the package it belongs to, and whether it is the runtime's or the kernel's rather than someone's code.
import type { FrameFacts } from './tree';

export const FRAME_KINDS = ['code', 'library', 'runtime', 'kernel', 'wait', 'span', 'thread', 'other'] as const;
export type FrameKind = (typeof FRAME_KINDS)[number];

const KERNEL = /^(\[k\]|\[kernel|entry_SYSCALL|do_syscall|__x64_sys_|__do_sys_|ret_from_fork|asm_(exc|sysvec)|(tcp|udp|ip|vfs|ext4|xfs|futex|schedule|__schedule|ksys|do_sys)_[a-z0-9_]*$)|_\[k\]$|\[kernel(\.kallsyms)?\]$/;
const RUNTIME =
  /^(\[allocating|runtime[./]|runtime$|internal\/runtime|gcWriteBarrier|java\.lang\.(Thread|ref|invoke)|jdk\.internal|sun\.|(Interpreter|call_stub|JavaCalls|GCTaskThread|G1|Parallel|ZGC|CompileBroker|JVM_|Unsafe_|OptoRuntime|StubRoutines)|<*(std|core)::(rt|sys|panicking|panic|thread)::|<*core::ops::function|<alloc::boxed::Box<(dyn )?.*FnOnce|__rust_|__rustc::|_start$|__libc_start|start_thread|_*clone3?$|__(mem|str)\w+_(avx|evex|sse|erms|neon|generic)|\(program\)|\(idle\)|\(garbage collector\)|\(root\)|node:internal|_PyEval|_PyFunction|PyObject_|Py_|pymain|<frozen |tokio::runtime|__GI_|pthread_|lib(c|pthread|gcc_s|stdc\+\+)[.-][^!]*!0x|ld-linux)/;
/** Standard libraries whose sources are rarely at hand: Rust names tell them without a path. */
const LIBRARY_NAME = /^<*[&]*(std|core|alloc|hashbrown)::|^(java|javax|kotlin|scala)\.|^(java|javax|kotlin|scala)\//;
/** Allocators that are linked into the program itself. */
const ALLOCATOR_NAME = /^_?(mi|je|_rjem)_[a-z]/;
/** Where names and files say nothing, the binary may: the C library is nobody's own code. Other shared objects can be. */
const SYSTEM_MODULE = /^(lib(c|m|pthread|dl|rt|gcc_s|stdc\+\+|System)|ld-(linux|musl))[-.]/;
const LIBRARY_PATH = /site-packages|node_modules|\/go\/pkg\/mod\/|\/\.cargo\/registry\/|\/rustc\/|\/usr\/(lib|local\/go\/src)|vendor\//;

export function kindOf(name: string, facts?: FrameFacts): FrameKind {
  const told = facts?.kind;
  if (told === 'kernel') return 'kernel';
  if (told === 'wait' || told === 'span' || told === 'thread' || told === 'runtime' || told === 'library') return told;
  if (name === 'other' || name === 'total' || name === '(other)' || name === '[unexplained]') return 'other';
  if (KERNEL.test(name)) return 'kernel';
  if (RUNTIME.test(name)) return 'runtime';
  if (facts?.file ? LIBRARY_PATH.test(facts.file) : LIBRARY_NAME.test(name) || ALLOCATOR_NAME.test(name)) return 'library';
  return !facts?.file && SYSTEM_MODULE.test(facts?.module?.split('/').pop() ?? '') ? 'runtime' : 'code';
}

/** The package, module or crate that colours a frame. Languages differ in separators, so each is tried in turn. */
export function packageOf(name: string, facts?: FrameFacts): string {
  // `func path/to/file.py:12` (Python, Node): the folder of the file.
  const located = /^(\S+?)[ (]+((?:\/|\w:|\.|[\w@-]+\/)[^:()]*\.\w+)(?::\d+)*\)?$/.exec(name);
  if (located) return folderOf(located[2]!);
  // Rust and C++: `<a::b::C as d::E>::f`, `std::vector<int>::push_back`.
  const scoped = /^[<&]*(?:dyn |mut )?([A-Za-z_][\w]*)::/.exec(name);
  if (scoped) return scoped[1]!;
  // Go: everything up to the first dot after the last slash.
  const slash = name.lastIndexOf('/');
  if (slash >= 0 && !name.includes(' ')) {
    const dot = name.indexOf('.', slash);
    // Java agents write `com/foo/Bar.method`.
    if (/^[a-z][\w]*(\/[\w$]+)+\.[\w$<>]+/.test(name) && !/^[\w-]+\.[a-z]+\//.test(name) && /\/[A-Z][\w$]*\./.test(name)) return name.slice(0, slash);
    return dot < 0 ? name.slice(0, slash) : name.slice(0, dot);
  }
  const dotted = name.split('(')[0]!.split('.');
  if (dotted.length > 2 && /^[A-Z]/.test(dotted[dotted.length - 2]!)) return dotted.slice(0, -2).join('.');
  if (dotted.length > 1 && dotted[0]) return dotted.length > 2 ? dotted.slice(0, -1).join('.') : dotted[0];
  if (facts?.file) return folderOf(facts.file);
  return facts?.module ?? '';
}

function folderOf(file: string): string {
  const installed = /(?:site-packages|node_modules|dist-packages)\/((?:@[^/]+\/)?[^/]+)/.exec(file);
  if (installed) return installed[1]!.replace(/\.\w+$/, '');
  const parts = file.split('/').filter(Boolean);
  return parts.length > 1 ? parts.slice(-3, -1).join('/') : (parts[0] ?? '');
}

/** The last part of a name: what fits into a narrow box and still tells. */
export function shortName(name: string): string {
  if (name.includes('::')) return scopedTail(name);
  if (name.includes(' ')) return name;
  const slash = name.lastIndexOf('/');
  const tail = slash >= 0 ? name.slice(slash + 1) : name;
  // Java: `com.shop.tax.TaxTable.lookup` is `TaxTable.lookup`.
  const dots = tail.split('.');
  return slash < 0 && dots.length > 2 && !tail.includes('(*') ? dots.slice(-2).join('.') : tail;
}

/** Rust and C++: the last two parts of the path, type arguments left out. `<a::B as c::D>::e` is `B::e`. */
function scopedTail(name: string): string {
  const bare = withoutArguments(name.replace(/^<(?:&|mut |dyn )*([^<>]*(?:<[^]*?>)?) as [^]*?>::(?=[\w{]+(?:::|$))/, '$1::'));
  const parts = bare.split('::').filter((part) => part && !part.startsWith('{{'));
  return parts.length > 2 ? parts.slice(-2).join('::') : parts.join('::') || name;
}

function withoutArguments(name: string): string {
  let kept = '';
  let depth = 0;
  for (const character of name) {
    if (character === '<') depth++;
    if (depth === 0) kept += character;
    if (character === '>' && depth > 0) depth--;
  }
  return kept;
}
