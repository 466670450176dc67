//! Whole files in memory, and files of any size as a stream.

use std::fmt;
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use hotspan_model::ProfileSet;

use super::FORMAT;
use super::chunk::{Chunk, HEADER_BYTES, Header};
use super::labels_snapshot::LabelsSnapshot;
use super::native_memory::KeptMemory;
use super::recording::{Carried, Recording};
use super::span_join::FarSpans;
use crate::compression::Encoding;
use crate::decode_options::DecodeOptions;
use crate::file_error::{Fault, FileError, Result};
use crate::set_builder::SetBuilder;
use crate::value_text::value_text;

/// Reads a recording that is in memory and not compressed. `labels_part` is what the Pyroscope agent sends beside it.
pub fn decode(bytes: &[u8], labels_part: Option<&[u8]>, options: &DecodeOptions) -> Result<ProfileSet<'static>> {
    let snapshot = labels_part.map(|part| LabelsSnapshot::read(part, &options.limits)).transpose()?.unwrap_or_default();
    let mut recording = Recording::new(options, &snapshot, Carried::default());
    let mut at = 0;
    while at < bytes.len() || at == 0 {
        let header = Header::read(&bytes[at..], at)?;
        let end = (at as u64).saturating_add(header.size);
        if end > bytes.len() as u64 {
            let expected = format!("a chunk of {} bytes that starts at byte {at}", header.size);
            return Err(FileError::truncated(FORMAT, bytes.len(), expected));
        }
        let end = end as usize;
        check_chunk_size(header.size, at, options)?;
        recording.add_chunk(&Chunk::open(&bytes[at..end], at)?)?;
        at = end;
    }
    recording.finish()
}

/// Constants are found again by 32-bit places; and a chunk is all that a stream holds in memory.
fn check_chunk_size(size: u64, at: usize, options: &DecodeOptions) -> Result<()> {
    let most = options.limits.max_chunk_bytes.max(options.limits.max_bytes) as u64;
    let most = most.min(u64::from(u32::MAX));
    if size <= most {
        return Ok(());
    }
    let text = |bytes: u64| value_text(i64::try_from(bytes).unwrap_or(i64::MAX), "bytes");
    let most = text(most);
    let expected =
        format!("a chunk of at most {most} (the profiler can end them earlier; limits.max_bytes allows more)");
    let error = FileError::malformed(FORMAT, at + 8, expected, format!("one of {}", text(size)));
    Err(FileError { fault: Fault::TooLarge, ..error })
}

/// Whether a file that starts with these bytes, compressed or not, is a recording.
pub fn is_recording(head: &[u8]) -> bool {
    let mut magic = [0; 4];
    Input::new(head).and_then(|mut input| input.read_exact(&mut magic)).is_ok() && magic == *b"FLR\0"
}

/// Reads a recording of any length, plain, gzip or zstd, a chunk at a time.
///
/// Memory is bounded by the largest chunk ([`crate::Limits::max_chunk_bytes`]) and its samples, and by what reaches across chunks
/// ([`crate::Limits::max_decoded_bytes`]): native memory in use, and spans. A caller that must not
/// keep anything of a broken file holds back what it got until [`JfrReader::next_chunk`] says that there is no more.
pub struct JfrReader<R: Read> {
    input: Input<R>,
    options: DecodeOptions,
    snapshot: LabelsSnapshot,
    carried: Carried,
    /// Until what is in use at the end has been given.
    kept: Option<KeptMemory>,
    buffer: Vec<u8>,
    at: usize,
    chunks: usize,
    largest_chunk: usize,
}

impl<R: Read> fmt::Debug for JfrReader<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("JfrReader").field("at", &self.at).field("chunks", &self.chunks).finish_non_exhaustive()
    }
}

type Prefixed<R> = io::Chain<io::Cursor<Vec<u8>>, R>;

enum Input<R: Read> {
    Plain(Prefixed<R>),
    Gzip(Box<MultiGzDecoder<Prefixed<R>>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, io::BufReader<Prefixed<R>>>>),
}

impl<R: Read> Input<R> {
    /// The first bytes tell whether the input is compressed.
    fn new(mut input: R) -> io::Result<Self> {
        let mut magic = Vec::new();
        (&mut input).take(4).read_to_end(&mut magic)?;
        let encoding = Encoding::from_magic(&magic);
        let prefixed = io::Cursor::new(magic).chain(input);
        Ok(match encoding {
            Encoding::Identity => Self::Plain(prefixed),
            Encoding::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(prefixed))),
            Encoding::Zstd => Self::Zstd(Box::new(zstd::stream::read::Decoder::new(prefixed)?)),
        })
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(into),
            Self::Gzip(input) => input.read(into),
            Self::Zstd(input) => input.read(into),
        }
    }
}

impl<R: Read> JfrReader<R> {
    /// Starts reading; the first bytes tell whether the input is compressed.
    ///
    /// Samples know the spans that they lie in as far as those end in their own chunk or before. Who needs all of them
    /// reads twice: see [`Self::far_spans`].
    pub fn new(input: R, labels_part: Option<&[u8]>, options: DecodeOptions) -> Result<Self> {
        let snapshot =
            labels_part.map(|part| LabelsSnapshot::read(part, &options.limits)).transpose()?.unwrap_or_default();
        let input = Input::new(input).map_err(|error| io_error(&error, 0))?;
        let kept = Some(KeptMemory { tables: SetBuilder::new(FORMAT, &options) });
        let (carried, buffer) = (Carried::default(), Vec::new());
        Ok(Self { input, options, snapshot, carried, kept, buffer, at: 0, chunks: 0, largest_chunk: 0 })
    }

    /// Starts reading a recording again, of which a first reading found all spans that reach across chunks.
    pub fn again(input: R, labels_part: Option<&[u8]>, options: DecodeOptions, far_spans: FarSpans) -> Result<Self> {
        let mut reader = Self::new(input, labels_part, options)?;
        reader.carried.far_spans = far_spans;
        Ok(reader)
    }

    /// The spans that reach across chunks, once [`Self::next_chunk`] has said that there is no more.
    pub fn far_spans(self) -> FarSpans {
        self.carried.far_spans.completed()
    }

    /// The profiles of the next chunk, then those of native memory that is in use at the end, then none.
    pub fn next_chunk(&mut self) -> Result<Option<ProfileSet<'static>>> {
        self.buffer.clear();
        self.fill(HEADER_BYTES as u64)?;
        if self.buffer.is_empty() && self.chunks > 0 {
            let Some(kept) = self.kept.take() else { return Ok(None) };
            let far_spans = std::mem::take(&mut self.carried.far_spans);
            let carried = std::mem::replace(&mut self.carried, Carried { far_spans, ..Carried::default() });
            let recording = Recording::new(&self.options, &self.snapshot, carried);
            return recording.finish_memory(kept);
        }
        let header = Header::read(&self.buffer, self.at)?;
        check_chunk_size(header.size, self.at, &self.options)?;
        self.fill(header.size - HEADER_BYTES as u64)?;
        if (self.buffer.len() as u64) < header.size {
            let expected = format!("a chunk of {} bytes that starts at byte {}", header.size, self.at);
            return Err(FileError::truncated(FORMAT, self.at + self.buffer.len(), expected));
        }
        let Some(kept) = &mut self.kept else { return Ok(None) };
        let mut recording = Recording::new(&self.options, &self.snapshot, std::mem::take(&mut self.carried));
        recording.add_chunk(&Chunk::open(&self.buffer, self.at)?)?;
        let (set, carried) = recording.finish_chunk(kept, self.at)?;
        self.carried = carried;
        self.at += self.buffer.len();
        self.chunks += 1;
        self.largest_chunk = self.largest_chunk.max(self.buffer.len());
        Ok(Some(set))
    }

    /// How many bytes have been read, once decompressed.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes of the largest chunk so far.
    pub fn largest_chunk(&self) -> usize {
        self.largest_chunk
    }

    /// Reads up to `length` more bytes. The buffer grows with what arrives, not with what is announced.
    fn fill(&mut self, length: u64) -> Result<()> {
        let (input, buffer) = (&mut self.input, &mut self.buffer);
        let at = self.at + buffer.len();
        input.take(length).read_to_end(buffer).map(drop).map_err(|error| io_error(&error, at))
    }
}

fn io_error(error: &io::Error, at: usize) -> FileError {
    let fault = if error.kind() == io::ErrorKind::UnexpectedEof { Fault::Truncated } else { Fault::Malformed };
    FileError { fault, ..FileError::malformed(FORMAT, at, "readable data", error) }
}
