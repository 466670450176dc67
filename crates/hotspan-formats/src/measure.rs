//! What the values of a comparison are divided by, so that sides of different length compare.

/// What the values of each side are divided by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measure {
    /// Seconds, profiles or requests of the baseline; 1 to leave its values as they are.
    pub left: f64,
    /// The same of what it is compared with.
    pub right: f64,
    /// What is counted: `second`, `profile` or `request`; empty for nothing.
    pub noun: &'static str,
}

impl Measure {
    /// Values as they are.
    pub const NONE: Self = Self { left: 1.0, right: 1.0, noun: "" };

    /// Values of either side for each unit. A side without units has no values to divide.
    pub fn rates(&self, left: i64, right: i64) -> (f64, f64) {
        let rate = |value: i64, units: f64| if units > 0.0 { value as f64 / units } else { value as f64 };
        (rate(left, self.left), rate(right, self.right))
    }

    /// What values of either side are multiplied by so that both are worth as much as the longer one was measured: never
    /// less than 1, since values that are made smaller get lost where only whole numbers are told.
    pub fn factors_to_longer(&self) -> (f64, f64) {
        let longer = self.left.max(self.right);
        let factor = |units: f64| if units > 0.0 { longer / units } else { 1.0 };
        (factor(self.left), factor(self.right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: sides of 10 s and 30 s, either way round, and one that is empty.
    /// Guarantee: rates are per second; the shorter side is multiplied and the longer left as it is; what is empty changes nothing.
    #[test]
    fn sides_of_different_length() {
        let measure = |left, right| Measure { left, right, noun: "second" };
        assert_eq!(measure(10.0, 30.0).rates(5, 3), (0.5, 0.1));
        assert_eq!(measure(10.0, 30.0).factors_to_longer(), (3.0, 1.0));
        assert_eq!(measure(30.0, 10.0).factors_to_longer(), (1.0, 3.0));
        assert_eq!((measure(0.0, 10.0).factors_to_longer(), measure(0.0, 10.0).rates(0, 5)), ((1.0, 1.0), (0.0, 0.5)));
    }
}
