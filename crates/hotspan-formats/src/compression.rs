//! Decompression that stops at a limit while inflating, so that a bomb costs its limit and no more (R5).

use std::io::Read;

use bytes::Bytes;

/// What a gzip member with a deflated body starts with.
const GZIP_MEMBER: &[u8] = &[0x1f, 0x8b, 8];
/// How far a body is believed that says how long it is once decompressed: beyond that, memory grows with what arrives.
const MOST_BYTES_AHEAD: usize = 8 << 20;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Not at all.
    #[default]
    Identity,
    /// RFC 1952; several members one after another count as one text.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Encoding {
    /// The encoding that a `Content-Encoding` or `grpc-encoding` header names; some senders call it `none` if there is none.
    pub fn from_header(value: &str) -> Option<Self> {
        match value.trim() {
            value if value.is_empty() || value.eq_ignore_ascii_case("identity") => Some(Self::Identity),
            value if value.eq_ignore_ascii_case("none") => Some(Self::Identity),
            value if value.eq_ignore_ascii_case("gzip") || value.eq_ignore_ascii_case("x-gzip") => Some(Self::Gzip),
            value if value.eq_ignore_ascii_case("zstd") => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The encoding that a file's first bytes show.
    pub fn from_magic(bytes: &[u8]) -> Self {
        match bytes {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::Identity,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// Why a body can't be decompressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecompressError {
    /// It holds more than the limit allows; how much more is not known, since inflating stopped there.
    #[error("the body has more than {limit} bytes once decompressed")]
    TooLarge {
        /// How many bytes are allowed.
        limit: usize,
    },
    /// It is not what its encoding says.
    #[error("the body is not valid {encoding}: {reason} (after {decompressed} decompressed bytes)")]
    Corrupt {
        /// The encoding it claims.
        encoding: &'static str,
        /// What the decompressor says.
        reason: String,
        /// How much could be read before.
        decompressed: usize,
    },
}

/// Decompresses a body of at most `max_bytes`.
pub fn decompress(encoding: Encoding, bytes: Bytes, max_bytes: usize) -> Result<Bytes, DecompressError> {
    match encoding {
        Encoding::Identity if bytes.len() > max_bytes => Err(DecompressError::TooLarge { limit: max_bytes }),
        Encoding::Identity => Ok(bytes),
        _ => decompress_slice(encoding, &bytes, max_bytes).map(Bytes::from),
    }
}

/// The same for bytes that are lent, into a copy even if they are not compressed.
pub(crate) fn decompress_slice(encoding: Encoding, bytes: &[u8], max_bytes: usize) -> Result<Vec<u8>, DecompressError> {
    match encoding {
        Encoding::Identity if bytes.len() > max_bytes => Err(DecompressError::TooLarge { limit: max_bytes }),
        Encoding::Identity => Ok(bytes.to_vec()),
        Encoding::Gzip => match inflate_whole(bytes, max_bytes) {
            Some(body) => Ok(body),
            None => {
                let hint = gzip_size_hint(bytes);
                inflate(encoding, flate2::bufread::MultiGzDecoder::new(bytes), hint, max_bytes)
            }
        },
        Encoding::Zstd => {
            let hint = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten();
            let mut decoder =
                zstd::stream::read::Decoder::with_buffer(bytes).map_err(|error| corrupt(encoding, &error, 0))?;
            // A frame may demand a window as large as it likes. Senders that stream ask for up to 8 MiB whatever
            // they send; beyond the limit there is nothing to look back at.
            let window_log = usize::BITS - max_bytes.leading_zeros();
            decoder.window_log_max(window_log.clamp(23, 27)).map_err(|error| corrupt(encoding, &error, 0))?;
            inflate(encoding, decoder, hint.and_then(|size| usize::try_from(size).ok()), max_bytes)
        }
    }
}

/// The length that a compressed body announces for itself once decompressed; none if it doesn't, or can't be believed.
pub fn announced_size(encoding: Encoding, bytes: &[u8]) -> Option<usize> {
    match encoding {
        Encoding::Identity => Some(bytes.len()),
        Encoding::Gzip => gzip_size_hint(bytes),
        Encoding::Zstd => usize::try_from(zstd::zstd_safe::get_frame_content_size(bytes).ok()??).ok(),
    }
}

/// The length that a gzip trailer announces, as far as it is believable: deflate never does better than 1032 to 1.
fn gzip_size_hint(bytes: &[u8]) -> Option<usize> {
    let trailer: [u8; 4] = bytes.last_chunk().copied()?;
    let announced = u32::from_le_bytes(trailer) as usize;
    (announced / 1032 <= bytes.len()).then_some(announced)
}

/// Decompresses a body of one gzip member that is as long as it says, as nearly all are, in one go.
///
/// None where that can't be done, for whatever reason: reading it piece by piece tells the reason.
fn inflate_whole(bytes: &[u8], max_bytes: usize) -> Option<Vec<u8>> {
    let size = gzip_size_hint(bytes).filter(|size| *size <= max_bytes.min(MOST_BYTES_AHEAD))?;
    // Another member would be left out in silence. What only looks like one costs some time.
    if memchr::memmem::find(bytes.get(1..)?, GZIP_MEMBER).is_some() {
        return None;
    }
    let mut body = vec![0; size];
    let written = libdeflater::Decompressor::new().gzip_decompress(bytes, &mut body).ok()?;
    (written == size).then_some(body)
}

fn inflate(
    encoding: Encoding,
    mut reader: impl Read,
    size_hint: Option<usize>,
    max_bytes: usize,
) -> Result<Vec<u8>, DecompressError> {
    // One byte more than the hint says shows the end without growing.
    let hint = size_hint.unwrap_or(0).saturating_add(1);
    let mut out = vec![0u8; hint.clamp(4 << 10, MOST_BYTES_AHEAD).min(max_bytes.saturating_add(1))];
    let mut filled = 0;
    loop {
        if filled == out.len() {
            if filled > max_bytes {
                return Err(DecompressError::TooLarge { limit: max_bytes });
            }
            // One byte over the limit is enough to know that there is more.
            let larger = out.len().saturating_mul(2).max(4 << 10).min(max_bytes.saturating_add(1));
            out.resize(larger, 0);
        }
        match reader.read(&mut out[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(corrupt(encoding, &error, filled)),
        }
    }
    if filled > max_bytes {
        return Err(DecompressError::TooLarge { limit: max_bytes });
    }
    out.truncate(filled);
    Ok(out)
}

fn corrupt(encoding: Encoding, error: &std::io::Error, decompressed: usize) -> DecompressError {
    DecompressError::Corrupt { encoding: encoding.name(), reason: error.to_string(), decompressed }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        Bytes::from(encoder.finish().unwrap())
    }

    fn zstd(bytes: &[u8]) -> Bytes {
        Bytes::from(zstd::encode_all(bytes, 3).unwrap())
    }

    /// Scenario: names of encodings as headers have them.
    /// Guarantee: what the message of a refusal offers is taken, in any case, and nothing that is not known.
    #[test]
    fn encodings_are_known_by_name() {
        for (name, encoding) in [
            ("", Some(Encoding::Identity)),
            ("identity", Some(Encoding::Identity)),
            ("None", Some(Encoding::Identity)),
            (" GZIP", Some(Encoding::Gzip)),
            ("zstd", Some(Encoding::Zstd)),
            ("br", None),
        ] {
            assert_eq!(Encoding::from_header(name), encoding, "{name:?}");
        }
    }

    /// Scenario: bodies of sizes around the buffer and the limit, in each encoding.
    /// Guarantee: they come back whole up to the limit, and not one byte beyond.
    #[test]
    fn the_limit_is_exact() {
        for size in [0usize, 1, 4095, 4096, 4097, 100_000] {
            let body: Vec<u8> = (0..size).map(|at| (at * 7 % 251) as u8).collect();
            for (encoding, packed) in [
                (Encoding::Identity, Bytes::from(body.clone())),
                (Encoding::Gzip, gzip(&body)),
                (Encoding::Zstd, zstd(&body)),
            ] {
                assert_eq!(decompress(encoding, packed.clone(), size).unwrap(), body, "{encoding:?} {size}");
                if size > 0 {
                    let wrong = decompress(encoding, packed, size - 1).unwrap_err();
                    assert_eq!(wrong, DecompressError::TooLarge { limit: size - 1 });
                }
            }
        }
    }

    /// Scenario: 256 MiB of zeros in a few kilobytes.
    /// Guarantee: refused at the limit.
    #[test]
    fn bombs_stop_at_the_limit() {
        let zeros = vec![0u8; 256 << 20];
        for (encoding, bomb) in [(Encoding::Gzip, gzip(&zeros)), (Encoding::Zstd, zstd(&zeros))] {
            let wrong = decompress(encoding, bomb, 1 << 20).unwrap_err();
            assert_eq!(wrong, DecompressError::TooLarge { limit: 1 << 20 });
        }
    }

    /// Scenario: gzip of one member and of two that are equally long, with bytes changed, cut off and added at every place.
    /// Guarantee: decompressing in one go gives what reading piece by piece gives, or leaves it to that. All that it may overlook
    /// is what follows a whole member, is none itself, and ends like it.
    #[test]
    fn in_one_go_as_piece_by_piece() {
        let text = b"how much wood would a woodchuck chuck";
        let one = gzip(text).to_vec();
        let two = [one.clone(), one.clone()].concat();
        assert_eq!(inflate_whole(&one, 100).as_deref(), Some(&text[..]));
        assert_eq!((inflate_whole(&one, text.len() - 1), inflate_whole(&two, 100)), (None, None));
        for body in [&one, &two] {
            for at in 0..body.len() {
                let mut changed = body.clone();
                changed[at] ^= 1 << (at % 8);
                let added = [&body[..at], &[0x42], &body[at..]].concat();
                for damaged in [&changed[..], &added, &body[..at]] {
                    let in_pieces = inflate(Encoding::Gzip, flate2::bufread::MultiGzDecoder::new(damaged), None, 1000);
                    let Some(whole) = inflate_whole(damaged, 1000) else { continue };
                    match in_pieces {
                        Ok(body) => assert_eq!(whole, body, "{at}"),
                        Err(_) => assert!(damaged.starts_with(&one) && whole == text, "{at}"),
                    }
                }
            }
        }
    }

    /// Scenario: two gzip members, a cut body, bytes that are no gzip at all.
    /// Guarantee: the first reads as one text, the others are named corrupt.
    #[test]
    fn members_join_and_damage_is_told() {
        let mut two = gzip(b"hello ").to_vec();
        two.extend_from_slice(&gzip(b"world"));
        assert_eq!(decompress(Encoding::Gzip, Bytes::from(two.clone()), 100).unwrap(), "hello world");
        two.truncate(two.len() - 3);
        assert!(matches!(
            decompress(Encoding::Gzip, Bytes::from(two), 100),
            Err(DecompressError::Corrupt { encoding: "gzip", decompressed: 11, .. })
        ));
        for encoding in [Encoding::Gzip, Encoding::Zstd] {
            assert!(matches!(
                decompress(encoding, Bytes::from_static(b"plain text"), 100),
                Err(DecompressError::Corrupt { .. })
            ));
        }
    }
}
