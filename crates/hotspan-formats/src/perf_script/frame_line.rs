//! The lines of a stack: a frame, and below it its place in the source if that was asked for.

use std::borrow::Cow;

use hotspan_model::{Frame, FrameKind};

/// How perf marks a function that was inlined: in place of the binary, or behind the line of the source.
const INLINED: &str = "(inlined)";

/// A frame as perf writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FrameLine<'a> {
    /// `address symbol+offset (binary)`.
    text: &'a str,
    /// `file:line`; empty if it is not told.
    source: &'a str,
}

impl<'a> FrameLine<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text: text.trim(), source: "" }
    }

    /// The same frame with the place in the source that the line below it tells.
    pub(super) fn at(self, source: &'a str) -> Self {
        Self { source: source.trim(), ..self }
    }

    pub(super) fn is_inlined(&self) -> bool {
        self.text.ends_with(INLINED) || self.source.ends_with(INLINED)
    }

    /// Whether both are of one address: then the inlined one is part of the other.
    pub(super) fn is_at_address_of(&self, other: &Self) -> bool {
        self.split().is_some_and(|(address, _)| other.split().is_some_and(|(others, _)| address == others))
    }

    /// What perf tells of the frame. Of an inlined one, `caller` is the frame that it is part of: perf names the binary only there.
    pub(super) fn frame(&self, caller: Option<&Self>) -> Frame<'a> {
        let Some((address, rest)) = self.split() else { return Frame::named(self.text) };
        let (symbol, binary) = symbol_and_binary(rest);
        let binary = caller.map_or(binary, Self::binary);
        let kernel = binary.starts_with("[kernel") || binary.starts_with("[guest.kernel") || binary.ends_with(".ko");
        let kind = match () {
            () if caller.is_some() => FrameKind::Inlined,
            () if kernel => FrameKind::Kernel,
            () => FrameKind::Native,
        };
        let mut frame = Frame { mapping: Cow::Borrowed(binary), kind, ..Frame::default() };
        if symbol == "[unknown]" || symbol.is_empty() {
            frame.address = address;
        } else {
            let name = match symbol.rsplit_once("+0x") {
                Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
                _ => symbol,
            };
            frame.function = Cow::Borrowed(name);
        }
        if let Some((file, line)) = place_of(self.source) {
            (frame.file, frame.line) = (Cow::Borrowed(file), line);
        }
        frame
    }

    fn binary(&self) -> &'a str {
        self.split().map_or("", |(_, rest)| symbol_and_binary(rest).1)
    }

    fn split(&self) -> Option<(u64, &'a str)> {
        let (address, rest) = self.text.split_once(char::is_whitespace).unwrap_or((self.text, ""));
        Some((u64::from_str_radix(address, 16).ok()?, rest.trim()))
    }
}

/// Whether a line below a frame tells its place in the source, or that it is not known: a frame starts with its address.
pub(super) fn is_source(line: &str) -> bool {
    let line = line.trim();
    if line.split_whitespace().next().is_none_or(is_hex) {
        return false;
    }
    let place = without_inlined(line);
    let ends_in_line = place.rsplit_once(':').is_some_and(|(_, number)| number.parse::<u32>().is_ok());
    // `[kernel.kallsyms][ffffffff81752b6a]`: the binary and the address where the source is not known.
    let ends_in_address =
        place.strip_suffix(']').and_then(|place| place.rsplit_once('[')).is_some_and(|(_, address)| is_hex(address));
    ends_in_line || ends_in_address
}

/// File and line; none where perf writes `??:0` and the like.
fn place_of(source: &str) -> Option<(&str, u32)> {
    let (file, line) = without_inlined(source).rsplit_once(':')?;
    let line = line.parse().ok()?;
    (!file.is_empty() && file != "??").then_some((file, line))
}

fn symbol_and_binary(rest: &str) -> (&str, &str) {
    // A file that was replaced since, or that never had a name, as that in which .NET compiles.
    let whole = rest.strip_suffix(" (deleted))").or_else(|| rest.strip_suffix(')'));
    let (symbol, binary) = match whole.and_then(|rest| rest.rsplit_once(" (")) {
        Some((symbol, binary)) => (symbol.trim(), binary),
        None => (rest, ""),
    };
    // What stands in place of a binary.
    let is_none = matches!(binary, "[unknown]" | "inlined");
    (symbol, if is_none { "" } else { binary })
}

fn without_inlined(text: &str) -> &str {
    text.strip_suffix(INLINED).map_or(text, str::trim_end)
}

fn is_hex(text: &str) -> bool {
    u64::from_str_radix(text, 16).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Frame<'_> {
        FrameLine::new(text).frame(None)
    }

    /// Scenario: frames with and without symbols, and of a file that is gone. Guarantee: an address only where there is no name.
    #[test]
    fn frames() {
        let kernel = frame("ffffffff81 do_syscall_64+0x5b ([kernel.kallsyms])");
        assert_eq!((kernel.function.as_ref(), kernel.kind, kernel.address), ("do_syscall_64", FrameKind::Kernel, 0));
        let unknown = frame("7f94c7b9ac90 [unknown] (/usr/lib/libc.so.6)");
        assert_eq!((unknown.function.as_ref(), unknown.address), ("", 0x7f94_c7b9_ac90));
        let method = frame("12 std::vector<int, std::allocator<int> >::at(int) const+0x1f (/a b)");
        assert_eq!(method.function, "std::vector<int, std::allocator<int> >::at(int) const");
        assert_eq!(method.mapping, "/a b");
        let compiled = frame("7f00 void Shop.Cart::Add(int)+0x3 (/memfd:doublemapper (deleted))");
        assert_eq!((&*compiled.function, &*compiled.mapping), ("void Shop.Cart::Add(int)", "/memfd:doublemapper"));
    }

    /// Scenario: what perf writes below frames with `-F +srcline`, and frames.
    /// Guarantee: a place in the source is told from a frame, also where it is not known, and sets file and line where it is.
    #[test]
    fn places_in_the_source() {
        let unknown = ["  ??:0", "  :0", "  [kernel.kallsyms][ffffffff81752b6a]", "  libc.so.6[27249]"];
        let known = ["  p.c:4", "  /a b/add.c:4", "  p.c:4 (inlined)", "  C:\\code\\p.c:4"];
        for (lines, line) in [(unknown, 0), (known, 4)] {
            for source in lines {
                assert!(is_source(source), "{source}");
                let frame = FrameLine::new("11a5 f+0x2 (/p)").at(source).frame(None);
                assert_eq!((frame.line, frame.file.is_empty()), (line, line == 0), "{source}");
                assert_eq!((frame.function.as_ref(), frame.mapping.as_ref()), ("f", "/p"));
            }
        }
        for frame in ["\t 11a5 f+0x2 (/p)", "\t 11a5 std::f:4", "\t 11a5 f[12]", "\tf (/p)", "\tmain"] {
            assert!(!is_source(frame), "{frame}");
        }
    }
}
