//! The hash that names a binary which carries no build id: OpenTelemetry's `htlhash`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const EDGE: u64 = 4096;

/// First 16 bytes of SHA-256 over the file's first and last 4096 bytes and its length, in hexadecimal.
pub(crate) fn htlhash(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let edge = length.min(EDGE);
    let mut bytes = vec![0; edge as usize];
    file.read_exact(&mut bytes).ok()?;
    let mut tail = vec![0; edge as usize];
    file.seek(SeekFrom::Start(length - edge)).ok()?;
    file.read_exact(&mut tail).ok()?;
    bytes.extend(tail);
    bytes.extend(length.to_be_bytes());
    Some(to_hex(&sha256(&bytes)[..16]))
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
];

/// SHA-256 (FIPS 180-4). Only ever applied to a few kilobytes, so clarity beats speed.
fn sha256(input: &[u8]) -> [u8; 32] {
    let mut state: [u32; 8] =
        [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
    let mut padded = input.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((input.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words = [0u32; 64];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for i in 16..64 {
            let (near, far) = (words[i - 15], words[i - 2]);
            let mixed_near = near.rotate_right(7) ^ near.rotate_right(18) ^ (near >> 3);
            let mixed_far = far.rotate_right(17) ^ far.rotate_right(19) ^ (far >> 10);
            words[i] = words[i - 16].wrapping_add(mixed_near).wrapping_add(words[i - 7]).wrapping_add(mixed_far);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for i in 0..64 {
            let big_e = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = (e & f) ^ (!e & g);
            let first = h.wrapping_add(big_e).wrapping_add(choice).wrapping_add(ROUNDS[i]).wrapping_add(words[i]);
            let big_a = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let majority = (a & b) ^ (a & c) ^ (b & c);
            let second = big_a.wrapping_add(majority);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
        }
        for (value, added) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *value = value.wrapping_add(added);
        }
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: the test vectors of FIPS 180-4, one of them longer than a block.
    /// Guarantee: the digests are the published ones.
    #[test]
    fn digests_match_the_standard() {
        let hex = |input: &[u8]| to_hex(&sha256(input));
        assert_eq!(hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(long), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    }

    /// Scenario: this test program's own file.
    /// Guarantee: it has a hash of 32 digits, the same each time.
    #[test]
    fn every_file_has_a_hash() {
        let path = Path::new("/proc/self/exe");
        let hash = htlhash(path).unwrap();
        assert_eq!(hash.len(), 32);
        assert_eq!(htlhash(path), Some(hash));
        assert_eq!(htlhash(Path::new("/nonexistent")), None);
    }
}
