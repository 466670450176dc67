//! The `[[scrape]]`s of a file.

use hotspan_server::ScrapeJob;
use hotspan_server::config::{SCRAPE_KEYS, ScrapeKey, ScrapeValue, missing};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::file::Reading;

impl Reading<'_> {
    /// Reads all of them.
    pub(super) fn scrape(&mut self, jobs: &DeArray<'_>) {
        for job in jobs {
            match job.get_ref() {
                DeValue::Table(table) => self.scrape_job(table, job.span().start),
                _ => self.problem(job.span().start, "scrape: use [[scrape]] with a key on each line".to_owned()),
            }
        }
    }

    fn scrape_job(&mut self, table: &DeTable<'_>, at: usize) {
        let before = self.parsed.problems.len();
        let mut job = ScrapeJob::default();
        for (name, value) in table {
            let Some(key) = ScrapeKey::named(name.get_ref()) else {
                let known: Vec<&str> = SCRAPE_KEYS.iter().map(|key| key.name).collect();
                let message = format!("unknown key scrape.{}; there are {}", name.get_ref(), known.join(", "));
                self.problem(name.span().start, message);
                continue;
            };
            let written = match scrape_value(value) {
                Some(read) => key.write(&mut job, &read),
                None => Err(format!("scrape.{}: the value is not {}", key.name, key.allowed)),
            };
            if let Err(message) = written {
                self.problem(value.span().start, message);
            }
        }
        match missing(&job) {
            _ if self.parsed.problems.len() > before => {}
            Some(name) => self.problem(at, format!("this [[scrape]] has no {name}")),
            None => self.parsed.scrape.push(job),
        }
    }
}

fn scrape_value(value: &Spanned<DeValue<'_>>) -> Option<ScrapeValue> {
    let text = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
        DeValue::String(text) => Some(text.clone().into_owned()),
        _ => None,
    };
    match value.get_ref() {
        DeValue::String(text) => Some(ScrapeValue::Text(text.clone().into_owned())),
        DeValue::Boolean(value) => Some(ScrapeValue::Boolean(*value)),
        DeValue::Array(values) => values.iter().map(text).collect::<Option<_>>().map(ScrapeValue::Texts),
        DeValue::Table(table) => {
            let pairs = table.iter().map(|(name, value)| Some((name.get_ref().clone().into_owned(), text(value)?)));
            pairs.collect::<Option<_>>().map(ScrapeValue::Pairs)
        }
        _ => None,
    }
}

/// Jobs as they could stand in a file.
pub(super) fn as_toml(jobs: &[ScrapeJob]) -> String {
    let mut text = String::new();
    for job in jobs {
        text.push_str("\n[[scrape]]\n");
        for key in SCRAPE_KEYS {
            text.push_str(&format!("{} = {}\n", key.name, key.value(job).toml()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::*;

    /// Scenario: a file with two jobs, one with every key. Guarantee: both are read, and shown as they were read.
    #[test]
    fn jobs_are_read_and_shown() {
        let text = "[[scrape]]\nservice = 'shop'\ntargets = ['a:1', 'https://b']\nprofiles = ['profile', 'heap']\n\
                    interval = '5s'\njitter = '0s'\ntimeout = '2s'\npath = '/x'\ndelta = false\ntenant = 'one'\n\
                    labels = { region = 'eu' }\n[[scrape]]\nservice = 'other'\ntargets = ['c:1']\n";
        let parsed = parse("f", text);
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        assert_eq!(parsed.scrape.len(), 2);
        assert_eq!((parsed.scrape[0].delta, parsed.scrape[0].labels.get("region")), (false, Some("eu")));
        let again = parse("f", &as_toml(&parsed.scrape));
        assert_eq!(again.scrape, parsed.scrape);
    }

    /// Scenario: jobs that are wrong in one way each. Guarantee: the place is exact, and what is right is named.
    #[test]
    fn what_is_wrong_is_pointed_at() {
        let problem = |text: &str| {
            let parsed = parse("f", text);
            assert!(parsed.scrape.is_empty());
            parsed.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(problem("[[scrape]]\ntargets = ['a:1']\n"), "f:1:1: this [[scrape]] has no service");
        assert!(
            problem("[[scrape]]\nservice = 'a'\ntargets = 'b:1'\n")
                .starts_with("f:3:11: scrape.targets: \"b:1\" is not")
        );
        assert!(
            problem("[[scrape]]\nservice = 'a'\ntargets = ['b']\nintervl = '1s'\n")
                .contains("f:4:1: unknown key scrape.intervl; there are service, ")
        );
        assert!(problem("[[scrape]]\nservice = 'a'\ntargets = ['b']\nprofiles = ['memory']\n").contains("goroutine"));
        assert!(problem("scrape = [1]\n").contains("[[scrape]]"));
    }
}
