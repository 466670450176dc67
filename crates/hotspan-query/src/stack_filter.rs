//! Which stacks count: where they start, and which functions they go through.

use hashbrown::HashSet;
use hotspan_lake::Snapshot;
use hotspan_model::TenantId;
use regex::Regex;

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::flame::FlameQuery;
use crate::series::SeriesEntry;
use crate::symbols::services_of;

/// So many tests there may be: one bit of a number each, and each takes memory (R5).
const MOST_TESTS: usize = 64;

/// Stacks that count. An empty filter keeps all; any other leaves out samples without a stack.
#[derive(Debug, Clone, Default)]
pub struct StackFilter {
    /// Functions that stacks start with, the root first.
    pub call_site: Vec<String>,
    /// Stacks go through a function for each of these.
    pub with: FunctionTests,
    /// Stacks go through no function that any of these fits.
    pub without: FunctionTests,
}

/// What the names of functions are tried for.
#[derive(Debug, Clone, Default)]
pub struct FunctionTests(Vec<FunctionTest>);

#[derive(Debug, Clone)]
enum FunctionTest {
    Named(String),
    Matches(Regex),
}

impl FunctionTests {
    /// One test for each name, and one for each pattern, which is found anywhere in a name.
    pub fn new(names: &[String], patterns: &[String]) -> Result<Self> {
        let count = names.len() + patterns.len();
        if count > MOST_TESTS {
            return Err(QueryError::Limit(format!("{count} names and patterns; there may be {MOST_TESTS}")));
        }
        let matches = |pattern: &String| {
            // Bounded, so that a hostile pattern costs nothing.
            let compiled = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build();
            let invalid = |error| QueryError::Invalid(format!("the pattern {pattern:?} is not valid: {error}"));
            compiled.map(FunctionTest::Matches).map_err(invalid)
        };
        let named = names.iter().map(|name| Ok(FunctionTest::Named(name.clone())));
        named.chain(patterns.iter().map(matches)).collect::<Result<_>>().map(Self)
    }

    /// One bit for each test that a name passes.
    fn passed_by(&self, function: &str) -> u64 {
        let bit = |(number, test): (usize, &FunctionTest)| u64::from(test.fits(function)) << number;
        self.0.iter().enumerate().map(bit).sum()
    }
}

impl FunctionTest {
    fn fits(&self, function: &str) -> bool {
        match self {
            Self::Named(name) => name == function,
            Self::Matches(pattern) => pattern.is_match(function),
        }
    }
}

/// What of a filter the functions of a stack have met so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Met {
    with: u64,
    without: u64,
}

impl Met {
    /// What two parts of a stack have met together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { with: self.with | other.with, without: self.without | other.without }
    }
}

impl StackFilter {
    /// Whether all stacks count.
    pub fn is_empty(&self) -> bool {
        self.call_site.is_empty() && !self.tests_functions()
    }

    /// Whether it matters which functions a stack goes through.
    pub(crate) fn tests_functions(&self) -> bool {
        !self.with.0.is_empty() || !self.without.0.is_empty()
    }

    /// What a function in a stack meets.
    pub(crate) fn met_by(&self, function: &str) -> Met {
        Met { with: self.with.passed_by(function), without: self.without.passed_by(function) }
    }

    /// Whether a stack counts whose functions meet this.
    pub(crate) fn keeps(&self, met: Met) -> bool {
        met.with.count_ones() as usize == self.with.0.len() && met.without == 0
    }
}

impl Engine {
    /// The call paths that the stack filter of a question keeps; none if it keeps all.
    pub(crate) async fn kept_paths(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        question: &FlameQuery,
        series: &[SeriesEntry],
    ) -> Result<Option<HashSet<u64>>> {
        if question.stacks.is_empty() {
            return Ok(None);
        }
        let range = (question.from, question.until);
        let symbols = self.symbols(tenant, snapshot, &services_of(series), range).await?;
        Ok(Some(symbols.kept_by(&question.stacks)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(names: &[&str], patterns: &[&str]) -> Result<FunctionTests> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        FunctionTests::new(&owned(names), &owned(patterns))
    }

    fn keeps(filter: &StackFilter, stack: &[&str]) -> bool {
        filter.keeps(stack.iter().fold(Met::default(), |met, function| met.and(filter.met_by(function))))
    }

    /// Scenario: names and patterns that stacks must or must not have, several at once, and more than there may be.
    /// Guarantee: every wanted one is needed and any unwanted one is enough; patterns are found inside of names.
    #[test]
    fn all_wanted_and_none_unwanted() {
        let filter = |with, without| StackFilter { call_site: Vec::new(), with, without };
        let names = filter(tests(&["a", "b"], &[]).unwrap(), tests(&["idle"], &[]).unwrap());
        assert!(keeps(&names, &["main", "b", "a"]) && keeps(&names, &["a", "a", "b"]));
        assert!(!keeps(&names, &["main", "a"]) && !keeps(&names, &["a", "b", "idle"]) && !keeps(&names, &[]));
        let patterns = filter(tests(&["main"], &[r"^net\."]).unwrap(), tests(&[], &["sleep$"]).unwrap());
        assert!(keeps(&patterns, &["main", "net.read"]) && !keeps(&patterns, &["main", "internet.read"]));
        assert!(!keeps(&patterns, &["main", "net.read", "nanosleep"]) && !keeps(&patterns, &["net.read"]));
        let many = filter(tests(&["x"; 64], &[]).unwrap(), FunctionTests::default());
        assert!(keeps(&many, &["x"]) && !keeps(&many, &["y"]));
        assert!(tests(&["x"; 60], &["x"; 5]).is_err());
        let error = tests(&[], &["["]).unwrap_err().to_string();
        assert!(error.contains("\"[\" is not valid"), "{error}");
        assert!(StackFilter::default().is_empty() && keeps(&StackFilter::default(), &["any"]));
    }
}
