//! The problems that are planted in the shop, each of which can be switched while it runs.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// One planted problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Problem {
    /// `lookup_tax_rate` parses the same document on each call.
    Tax,
    /// The price rules are compiled for each item.
    Regex,
    /// One shard of the inventory answers late.
    Shard,
    /// A report holds the lock that orders need.
    Lock,
    /// The stock of each item is asked for by a query of its own.
    Queries,
    /// The best bundle is searched for by trying everything.
    Bundles,
    /// Exemptions of one region are never found in their cache.
    Cache,
    /// The receipt is copied for each of its lines.
    Memory,
    /// The payment provider takes long for some.
    Payments,
    /// Charges fail and are tried again.
    Retries,
}

impl Problem {
    /// All of them, in the order of their numbers.
    pub const ALL: [Problem; 10] = [
        Problem::Tax,
        Problem::Regex,
        Problem::Shard,
        Problem::Lock,
        Problem::Queries,
        Problem::Bundles,
        Problem::Cache,
        Problem::Memory,
        Problem::Payments,
        Problem::Retries,
    ];

    /// Those that the shop has if nobody says otherwise: enough to look for, few enough to tell apart.
    pub const MIX: [Problem; 4] = [Problem::Tax, Problem::Regex, Problem::Shard, Problem::Lock];

    /// The name by which `--fix` and `--break` know it.
    pub fn name(self) -> &'static str {
        match self {
            Problem::Tax => "tax",
            Problem::Regex => "regex",
            Problem::Shard => "shard",
            Problem::Lock => "lock",
            Problem::Queries => "queries",
            Problem::Bundles => "bundles",
            Problem::Cache => "cache",
            Problem::Memory => "memory",
            Problem::Payments => "payments",
            Problem::Retries => "retries",
        }
    }

    /// The service that has it.
    pub fn service(self) -> &'static str {
        match self {
            Problem::Tax | Problem::Cache => "tax",
            Problem::Regex | Problem::Bundles => "discount",
            Problem::Shard | Problem::Queries => "inventory",
            Problem::Lock | Problem::Memory => "order",
            Problem::Payments | Problem::Retries => "checkout",
        }
    }

    /// What is wrong, and how it shows, in one line.
    pub fn explanation(self) -> &'static str {
        match self {
            Problem::Tax => {
                "calculate_tax calls lookup_tax_rate for each item, and that parses the same JSON document each time: \
                 CPU that grows with the cart"
            }
            Problem::Regex => "apply_price_rules compiles its regular expression again for each item: CPU in regex",
            Problem::Shard => {
                "shard-3 of the inventory answers in 0.3 to 0.6 s instead of milliseconds: waiting, no CPU"
            }
            Problem::Lock => {
                "a report holds the order book's lock for up to 0.4 s every 2 s: store_order waits, lock profile"
            }
            Problem::Queries => {
                "the stock of each item is asked for by a query of its own: many short calls, more with the cart"
            }
            Problem::Bundles => "best_bundle calls itself for every choice and remembers none: CPU, deep stacks",
            Problem::Cache => {
                "exemptions of region US-CA are kept under a key that is never looked up: load_exemptions waits each time"
            }
            Problem::Memory => "print_receipt copies the whole receipt for each line: CPU in allocation and copying",
            Problem::Payments => "the payment provider takes 0.3 to 0.5 s for one charge in eight: waiting for another",
            Problem::Retries => "one charge in eight fails twice before it succeeds: the same call again and again",
        }
    }

    fn number(self) -> usize {
        Problem::ALL.iter().position(|problem| *problem == self).unwrap_or(0)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A name that is no problem's or scenario's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName(String);

impl fmt::Display for UnknownName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Problem::ALL.map(Problem::name).join(", ");
        write!(out, "{:?} is not known; there is {names} (see hotspan demo --list)", self.0)
    }
}

impl std::error::Error for UnknownName {}

impl FromStr for Problem {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Problem, UnknownName> {
        Problem::ALL.into_iter().find(|problem| problem.name() == text).ok_or_else(|| UnknownName(text.to_owned()))
    }
}

/// Which problems a shop starts with: `mix`, `all`, `none`, or names with commas between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario(Vec<Problem>);

impl Default for Scenario {
    /// The mix.
    fn default() -> Scenario {
        Scenario(Problem::MIX.to_vec())
    }
}

impl Scenario {
    /// The problems in it.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }

    /// The same without one problem.
    #[must_use]
    pub fn without(mut self, fixed: Problem) -> Scenario {
        self.0.retain(|problem| *problem != fixed);
        self
    }

    /// The same with one problem more.
    #[must_use]
    pub fn with(self, broken: Problem) -> Scenario {
        let mut scenario = self.without(broken);
        scenario.0.push(broken);
        scenario
    }
}

impl FromStr for Scenario {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Scenario, UnknownName> {
        match text {
            "mix" => Ok(Scenario::default()),
            "all" => Ok(Scenario(Problem::ALL.to_vec())),
            "none" => Ok(Scenario(Vec::new())),
            names => names.split(',').map(|name| name.trim().parse()).collect::<Result<_, _>>().map(Scenario),
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return out.write_str("none");
        }
        out.write_str(&self.0.iter().map(|problem| problem.name()).collect::<Vec<_>>().join(","))
    }
}

/// Which problems the running shop has now.
#[derive(Debug, Default)]
pub struct Problems {
    present: [AtomicBool; Problem::ALL.len()],
}

impl Problems {
    /// The problems of a scenario.
    pub fn new(scenario: &Scenario) -> Problems {
        let problems = Problems::default();
        scenario.problems().iter().for_each(|problem| problems.set(*problem, true));
        problems
    }

    /// Whether the shop has this problem.
    pub fn has(&self, problem: Problem) -> bool {
        self.present[problem.number()].load(Ordering::Relaxed)
    }

    /// Plants a problem, or fixes it.
    pub fn set(&self, problem: Problem, present: bool) {
        self.present[problem.number()].store(present, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: scenarios as a person writes them, and one that is misspelt.
    /// Guarantee: each holds what it names, survives its own text, and a wrong name is answered with the right ones.
    #[test]
    fn scenarios_name_their_problems() {
        assert_eq!("all".parse::<Scenario>().unwrap().problems(), Problem::ALL);
        assert_eq!("mix".parse::<Scenario>().unwrap().problems(), Problem::MIX);
        let some: Scenario = "lock, tax".parse().unwrap();
        assert_eq!(some.problems(), [Problem::Lock, Problem::Tax]);
        assert_eq!(some.to_string().parse::<Scenario>().unwrap(), some);
        assert_eq!("none".parse::<Scenario>().unwrap().to_string(), "none");
        assert_eq!(some.without(Problem::Lock).with(Problem::Tax).problems(), [Problem::Tax]);
        let message = "takes".parse::<Scenario>().unwrap_err().to_string();
        assert!(message.contains("\"takes\"") && message.contains("tax, regex, shard, lock, queries"), "{message}");
    }
}
