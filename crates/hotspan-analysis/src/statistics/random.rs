//! Random numbers that are the same on every machine for the same seed.

/// A small generator (SplitMix64): one state word, good enough to resample with.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator that gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Evenly from 0 up to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Poisson with mean one: how often a request is drawn in one resampling.
    pub fn poisson_one(&mut self) -> u32 {
        // Cumulative probabilities of 0, 1, 2, …; beyond nine there is one in a million million.
        const CUMULATIVE: [f64; 10] = [
            0.367_879_441,
            0.735_758_882,
            0.919_698_603,
            0.981_011_843,
            0.996_340_153,
            0.999_405_815,
            0.999_916_759,
            0.999_989_751,
            0.999_998_875,
            0.999_999_889,
        ];
        let drawn = self.unit();
        CUMULATIVE.iter().position(|bound| drawn < *bound).unwrap_or(CUMULATIVE.len()) as u32
    }
}
