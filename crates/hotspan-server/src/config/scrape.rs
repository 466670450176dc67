//! The keys of a `[[scrape]]`, which may stand in a file as often as there are services to ask.

use std::collections::HashSet;
use std::time::Duration;

use hotspan_model::Labels;

use super::units::duration_text;
use crate::parse_duration;
use crate::scrape::{ProfileKind, ScrapeJob, base_address};

/// A value as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScrapeValue {
    /// `"text"`
    Text(String),
    /// `true` or `false`
    Boolean(bool),
    /// `["text", …]`
    Texts(Vec<String>),
    /// `{ name = "text", … }`
    Pairs(Vec<(String, String)>),
}

impl ScrapeValue {
    /// The value as TOML.
    pub fn toml(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Boolean(value) => value.to_string(),
            Self::Texts(texts) => format!("{texts:?}"),
            Self::Pairs(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name:?} = {value:?}")).collect();
                if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
            }
        }
    }
}

/// A key of a `[[scrape]]`.
#[derive(Debug)]
pub struct ScrapeKey {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in one line.
    pub doc: &'static str,
    /// What is allowed, as the end of "… is not".
    pub allowed: &'static str,
    read: fn(&mut ScrapeJob, &ScrapeValue) -> Option<()>,
    show: fn(&ScrapeJob) -> ScrapeValue,
}

const DURATION: &str = "a duration in quotes, such as \"15s\" or \"1m\"";
const LONG_DURATION: &str = "a duration in quotes of at least a second, such as \"15s\" or \"1m\"";
const TEXT: &str = "a text in quotes";

fn duration(value: &ScrapeValue, least: Duration) -> Option<Duration> {
    let ScrapeValue::Text(text) = value else { return None };
    parse_duration(text).filter(|length| *length >= least)
}

fn text(value: &ScrapeValue) -> Option<String> {
    match value {
        ScrapeValue::Text(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        _ => None,
    }
}

fn shown(length: Duration) -> ScrapeValue {
    ScrapeValue::Text(duration_text(length))
}

/// Every key, in the order in which they are shown.
pub static SCRAPE_KEYS: &[ScrapeKey] = &[
    ScrapeKey {
        name: "service",
        doc: "The service that the targets run; needed",
        allowed: TEXT,
        read: |job, value| text(value).map(|text| job.service = text),
        show: |job| ScrapeValue::Text(job.service.clone()),
    },
    ScrapeKey {
        name: "targets",
        doc: "Addresses to ask, `host:port` or with `http://` or `https://` in front; `name:password@` before the host is sent as basic authentication, and kept out of labels, logs and answers; needed",
        allowed: "a list of addresses such as [\"127.0.0.1:6060\"]",
        read: |job, value| match value {
            ScrapeValue::Texts(texts) if !texts.is_empty() && texts.iter().all(|text| is_address(text)) => {
                job.targets = texts.clone();
                Some(())
            }
            _ => None,
        },
        show: |job| ScrapeValue::Texts(job.targets.clone()),
    },
    ScrapeKey {
        name: "profiles",
        doc: "What to ask for: `cpu`, `heap`, `allocs`, `goroutine`, `mutex`, `block`, `threadcreate`",
        allowed: "a list of cpu, heap, allocs, goroutine, mutex, block and threadcreate",
        read: |job, value| {
            let ScrapeValue::Texts(texts) = value else { return None };
            let kinds: Vec<ProfileKind> = texts.iter().map(|text| ProfileKind::named(text)).collect::<Option<_>>()?;
            (!kinds.is_empty()).then(|| job.profiles = kinds)
        },
        show: |job| ScrapeValue::Texts(job.profiles.iter().map(|kind| kind.name().to_owned()).collect()),
    },
    ScrapeKey {
        name: "interval",
        doc: "Time between two scrapes; a CPU profile takes all of it but a second (at least 1s)",
        allowed: LONG_DURATION,
        read: |job, value| duration(value, Duration::from_secs(1)).map(|length| job.interval = length),
        show: |job| shown(job.interval),
    },
    ScrapeKey {
        name: "jitter",
        doc: "Each scrape waits a random time up to this, so that targets are not asked all at once",
        allowed: DURATION,
        read: |job, value| duration(value, Duration::ZERO).map(|length| job.jitter = length),
        show: |job| shown(job.jitter),
    },
    ScrapeKey {
        name: "timeout",
        doc: "Longest time for an answer, beyond the seconds that a CPU profile takes",
        allowed: DURATION,
        read: |job, value| duration(value, Duration::from_millis(1)).map(|length| job.timeout = length),
        show: |job| shown(job.timeout),
    },
    ScrapeKey {
        name: "path",
        doc: "Where profiles are, before their name",
        allowed: TEXT,
        read: |job, value| text(value).map(|text| job.path = text),
        show: |job| ScrapeValue::Text(job.path.clone()),
    },
    ScrapeKey {
        name: "delta",
        doc: "Whether values that count since the start of a process are stored as what was added between scrapes",
        allowed: "true or false",
        read: |job, value| match value {
            ScrapeValue::Boolean(value) => {
                job.delta = *value;
                Some(())
            }
            _ => None,
        },
        show: |job| ScrapeValue::Boolean(job.delta),
    },
    ScrapeKey {
        name: "labels",
        doc: "Labels of the profiles, besides `service_name` and `instance`",
        allowed: "a table of texts such as { region = \"eu\" }",
        read: |job, value| match value {
            ScrapeValue::Pairs(pairs) => {
                job.labels = Labels::from_pairs(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
                Some(())
            }
            _ => None,
        },
        show: |job| {
            ScrapeValue::Pairs(job.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
        },
    },
    ScrapeKey {
        name: "tenant",
        doc: "The tenant that owns the profiles",
        allowed: "a tenant's name: letters, digits and -_. without a slash",
        read: |job, value| text(value).and_then(|text| text.parse().ok()).map(|tenant| job.tenant = tenant),
        show: |job| ScrapeValue::Text(job.tenant.to_string()),
    },
];

/// Addresses are tried when they are first asked; here only what can't be one is refused.
fn is_address(text: &str) -> bool {
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    matches!(scheme, "http" | "https") && !rest.is_empty() && !rest.contains(char::is_whitespace)
}

impl ScrapeKey {
    /// The key of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SCRAPE_KEYS.iter().find(|key| key.name == name)
    }

    /// Takes a value; one that is wrong changes nothing and is explained.
    pub fn write(&self, job: &mut ScrapeJob, value: &ScrapeValue) -> Result<(), String> {
        let mut read = job.clone();
        (self.read)(&mut read, value)
            .ok_or_else(|| format!("scrape.{}: {} is not {}", self.name, value.toml(), self.allowed))?;
        if let Some(repeated) = repeated(&read) {
            return Err(format!("scrape.{}: {repeated}; name it once", self.name));
        }
        *job = read;
        Ok(())
    }

    /// Its value in a job.
    pub fn value(&self, job: &ScrapeJob) -> ScrapeValue {
        (self.show)(job)
    }
}

/// What a job would ask for twice at each interval, which would count twice.
fn repeated(job: &ScrapeJob) -> Option<String> {
    let mut kinds = HashSet::new();
    if let Some(kind) = job.profiles.iter().find(|kind| !kinds.insert(**kind)) {
        let also = if *kind == ProfileKind::Cpu { " (profile is another name of it)" } else { "" };
        return Some(format!("{} is there twice{also}", kind.name()));
    }
    let mut addresses = HashSet::new();
    let target = job.targets.iter().find(|target| !addresses.insert(base_address(target)))?;
    Some(format!("{target:?} is there twice"))
}

/// What is missing from a job that has been read.
pub fn missing(job: &ScrapeJob) -> Option<&'static str> {
    match (job.service.is_empty(), job.targets.is_empty()) {
        (true, _) => Some("service"),
        (_, true) => Some("targets"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: every key is given the value that it shows, and then a wrong one.
    /// Guarantee: the first is taken and shows the same again; the second is explained and changes nothing.
    #[test]
    fn what_is_shown_can_be_read() {
        let mut job = ScrapeJob { service: "shop".into(), targets: vec!["a:1".into()], ..ScrapeJob::default() };
        job.labels.set("region", "eu");
        let wrong = ScrapeValue::Texts(vec!["no such thing".into()]);
        for key in SCRAPE_KEYS {
            let mut read = ScrapeJob::default();
            key.write(&mut read, &key.value(&job)).unwrap();
            assert_eq!(key.value(&read), key.value(&job), "{}", key.name);
            let message = key.write(&mut read, &wrong).unwrap_err();
            assert!(message.contains(key.name) && message.contains("no such thing"), "{message}");
            assert_eq!(key.value(&read), key.value(&job), "{}", key.name);
            assert!(!key.doc.contains('|') && !key.doc.contains('\n'));
        }
        assert_eq!((missing(&job), missing(&ScrapeJob::default())), (None, Some("service")));
    }

    /// Scenario: profiles and targets that are named twice, in the same words and in others, and some that only look alike.
    /// Guarantee: what would be asked twice is named and changes nothing; the others are taken.
    #[test]
    fn nothing_is_asked_twice() {
        let write = |name: &str, texts: &[&str]| {
            let value = ScrapeValue::Texts(texts.iter().map(|text| (*text).to_owned()).collect());
            let mut job = ScrapeJob::default();
            let written = ScrapeKey::named(name).unwrap().write(&mut job, &value);
            (written, job)
        };
        for (name, texts, message) in [
            ("profiles", ["goroutine", "heap", "goroutine"], "scrape.profiles: goroutine is there twice; name it once"),
            ("profiles", ["cpu", "heap", "profile"], "cpu is there twice (profile is another name of it)"),
            ("targets", ["a:1", "b:1", "a:1"], "scrape.targets: \"a:1\" is there twice; name it once"),
            ("targets", ["a:1", "b:1", "http://a:1/"], "\"http://a:1/\" is there twice"),
        ] {
            let (written, job) = write(name, &texts);
            let error = written.unwrap_err();
            assert!(error.contains(message), "{error}");
            assert_eq!(job, ScrapeJob::default());
        }
        write("profiles", &["heap", "allocs", "mutex", "block"]).0.unwrap();
        write("targets", &["a:1", "a:2", "https://a:1"]).0.unwrap();
    }
}
