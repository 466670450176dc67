//! The `profiling:` section of a service's YAML file.

use super::document::{self, Node, Value};
use super::{Config, ConfigError, ControlEndpoint, PolicySource, units};
use crate::aggregate::Conditions;
use crate::export::Destination;
use crate::redact::Redaction;
use crate::symbols::Symbols;

/// Finds the section in the text of a whole file and applies it.
pub(super) fn apply(config: &mut Config, text: &str) -> Result<(), ConfigError> {
    let Some((first_line, section)) = find_section(text) else {
        return Err(ConfigError::new("there is no `profiling:` section at the top level of this file"));
    };
    let document = document::parse(&section, first_line)?;
    let Value::Mapping(entries) = document.value else {
        return Err(ConfigError::at(first_line, "`profiling` holds settings by name"));
    };
    let node = entries.into_iter().find(|(key, _)| key == "profiling").map(|(_, node)| node);
    let Some(node) = node else { return Ok(()) };
    if node.value == Value::Scalar(String::new()) {
        return Ok(());
    }
    apply_profiling(config, node)
}

/// The lines of the section, and the number of the first. Other sections may use any YAML they like.
fn find_section(text: &str) -> Option<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| line.starts_with("profiling:"))?;
    let belongs = |line: &&&str| line.is_empty() || line.starts_with([' ', '\t', '#', '}', ']']);
    let length = 1 + lines[start + 1..].iter().take_while(belongs).count();
    Some((start + 1, lines[start..start + length].join("\n")))
}

fn apply_profiling(config: &mut Config, node: Node) -> Result<(), ConfigError> {
    let mut fields = Fields::of(node, "profiling")?;
    if let Some(enabled) = fields.bool("enabled")? {
        config.enabled = enabled;
    }
    if let Some(mut cpu) = fields.nested("cpu")? {
        config.cpu_hertz = rate(&mut cpu, config.cpu_hertz.unwrap_or(100))?;
    }
    if let Some(mut memory) = fields.nested("memory")? {
        let enabled = memory.bool("enabled")?.unwrap_or(true);
        let interval = memory.read("sample_rate", units::size)?;
        config.memory_interval = enabled.then(|| interval.or(config.memory_interval).unwrap_or(512 << 10));
        memory.finish()?;
    }
    if let Some(mut wall) = fields.nested("wall")? {
        config.wall_hertz = rate(&mut wall, config.wall_hertz.unwrap_or(10))?;
    }
    if let Some(mut locks) = fields.nested("locks")? {
        config.locks = locks.bool("enabled")?.unwrap_or(true);
        locks.finish()?;
    }
    if let Some(mut conditional) = fields.nested("conditional")? {
        config.conditions = read_conditions(&mut conditional)?;
        conditional.finish()?;
    }
    if let Some(depth) = fields.read("max_stack_depth", whole)? {
        config.max_stack_depth = depth;
        check_after(config, &fields)?;
    }
    if let Some(size) = fields.read("max_profile_size", units::size)? {
        config.max_profile_size = size;
    }
    if let Some(interval) = fields.read("upload_interval", units::duration)? {
        config.upload_interval = interval;
        check_after(config, &fields)?;
    }
    if let Some(timeout) = fields.read("upload_timeout", units::duration)? {
        config.upload_timeout = timeout;
    }
    if let Some(mut shedding) = fields.nested("load_shedding")? {
        let enabled = shedding.bool("enabled")?.unwrap_or(true);
        let threshold = shedding.read("cpu_threshold", units::percent)?.unwrap_or(90.0);
        config.load_shedding_percent = enabled.then_some(threshold);
        shedding.finish()?;
    }
    if let Some(mut adaptive) = fields.nested("adaptive")? {
        let settings = &mut config.adaptive;
        settings.overhead_ceiling_percent =
            adaptive.read("overhead_ceiling", units::percent)?.unwrap_or(settings.overhead_ceiling_percent);
        settings.floor_hertz = adaptive.read("floor_rate", whole)?.unwrap_or(settings.floor_hertz);
        settings.slow_request_factor =
            adaptive.read("slow_request_factor", whole)?.unwrap_or(settings.slow_request_factor);
        adaptive.finish()?;
    }
    let headers = apply_destinations(config, &mut fields)?;
    if let Some(symbols) = fields.read("symbols", symbols)? {
        config.symbols = symbols;
    }
    if let Some(patterns) = fields.list("redact")? {
        config.redaction = Redaction::matching(patterns);
    }
    if let Some(service) = fields.text("service")? {
        config.service_name = service;
    }
    if let Some(tags) = fields.nested("tags")? {
        config.tags.extend(tags.into_texts()?);
    }
    if let Some(mut control) = fields.nested("control")? {
        config.control = read_control(&mut control)?;
        control.finish()?;
        check_after(config, &fields)?;
    }
    if let Some(mut policy) = fields.nested("policy")? {
        let interval = policy.read("interval", units::duration)?;
        config.policy = policy.text("endpoint")?.map(PolicySource::new);
        if let Some(source) = &mut config.policy {
            source.interval = interval.unwrap_or(source.interval);
            source.headers.clone_from(&headers);
        }
        policy.finish()?;
        check_after(config, &fields)?;
    }
    fields.finish()
}

/// Refuses what is understood and still cannot work, with the line of the setting that was read last.
fn check_after(config: &Config, fields: &Fields) -> Result<(), ConfigError> {
    config.check().map_err(|error| ConfigError::at(fields.last_line, error.message))
}

/// Says which headers are to be sent with everything.
fn apply_destinations(config: &mut Config, fields: &mut Fields) -> Result<Vec<(String, String)>, ConfigError> {
    let by_grpc = fields.read("protocol", by_grpc)?.unwrap_or(false);
    if let Some(endpoint) = fields.text("endpoint")? {
        let destination = if by_grpc { Destination::otlp_grpc(endpoint) } else { Destination::otlp(endpoint) };
        config.destinations = vec![destination];
        check_after(config, fields)?;
    }
    if let Some(chosen) = fields.read("compression", str::parse)? {
        config.destinations.iter_mut().filter_map(Destination::compression_mut).for_each(|value| *value = chosen);
    }
    if let Some(endpoint) = fields.text("pyroscope_endpoint")? {
        config.destinations.push(Destination::Pyroscope { endpoint, headers: Vec::new() });
        check_after(config, fields)?;
    }
    let added = fields.nested("headers")?.map_or(Ok(Vec::new()), Fields::into_texts)?;
    for headers in config.destinations.iter_mut().filter_map(Destination::headers_mut) {
        headers.extend(added.iter().cloned());
    }
    Ok(added)
}

/// Whether OTLP goes by gRPC, in the words of OpenTelemetry's `OTEL_EXPORTER_OTLP_PROTOCOL`.
pub(super) fn by_grpc(protocol: &str) -> Result<bool, String> {
    match protocol {
        "grpc" => Ok(true),
        "http/protobuf" => Ok(false),
        _ => Err(format!("`{protocol}` is not one of grpc, http/protobuf")),
    }
}

/// The conditions, as the file and the server's policy both write them.
pub(crate) fn read_conditions(fields: &mut Fields) -> Result<Conditions, ConfigError> {
    Ok(Conditions {
        slow_request_threshold: fields.read("slow_request_threshold", units::duration)?,
        cpu_threshold_percent: fields.read("cpu_threshold_percent", units::percent)?,
        profile_errors: fields.bool("profile_errors")?.unwrap_or(false),
        request_share: fields.read("request_share", units::share)?,
        sampled_traces: fields.bool("sampled_traces")?.unwrap_or(false),
    })
}

fn read_control(fields: &mut Fields) -> Result<Option<ControlEndpoint>, ConfigError> {
    let enabled = fields.bool("enabled")?.unwrap_or(true);
    let address = |text: &str| text.parse().map_err(|_| format!("`{text}` is not an address such as 127.0.0.1:6060"));
    let listen = fields.read("listen", address)?;
    let token = fields.text("token")?.unwrap_or_default();
    let allow_remote = fields.bool("allow_remote")?.unwrap_or(false);
    let listen = listen.unwrap_or_else(|| std::net::SocketAddr::from(([127, 0, 0, 1], 6060)));
    Ok(enabled.then_some(ControlEndpoint { listen, token, allow_remote }))
}

fn rate(fields: &mut Fields, default: u32) -> Result<Option<u32>, ConfigError> {
    let enabled = fields.bool("enabled")?.unwrap_or(true);
    let hertz = fields.read("sample_rate", hertz)?.unwrap_or(default);
    fields.finish()?;
    Ok(enabled.then_some(hertz))
}

fn hertz(text: &str) -> Result<u32, String> {
    let hertz: u32 = text.parse().map_err(|_| format!("`{text}` is not a whole number of samples per second"))?;
    if (1..=1000).contains(&hertz) { Ok(hertz) } else { Err(format!("`{text}` is not between 1 and 1000")) }
}

fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number"))
}

fn symbols(text: &str) -> Result<Symbols, String> {
    match text {
        "off" => Ok(Symbols::Off),
        "names" => Ok(Symbols::Names),
        "lines" => Ok(Symbols::Lines),
        _ => Err(format!("`{text}` is not one of off, names, lines")),
    }
}

/// The settings of one mapping, taken out one by one; what is left at the end is a mistake.
#[derive(Debug)]
pub(crate) struct Fields {
    name: String,
    entries: Vec<(String, Node)>,
    known: Vec<&'static str>,
    /// Where the setting that was taken last stands.
    last_line: usize,
}

impl Fields {
    pub(crate) fn of(node: Node, name: &str) -> Result<Fields, ConfigError> {
        match node.value {
            Value::Mapping(entries) => {
                Ok(Fields { name: name.to_owned(), entries, known: Vec::new(), last_line: node.line })
            }
            _ => Err(ConfigError::at(node.line, format!("`{name}` holds settings by name"))),
        }
    }

    fn take(&mut self, key: &'static str) -> Option<Node> {
        self.known.push(key);
        let index = self.entries.iter().position(|(name, _)| name == key)?;
        let (_, node) = self.entries.remove(index);
        self.last_line = node.line;
        // JSON writes "not set" as null.
        (node.value != Value::Scalar("null".into())).then_some(node)
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Result<Option<String>, ConfigError> {
        self.read(key, |text| Ok(text.to_owned()))
    }

    pub(crate) fn read<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(node) = self.take(key) else { return Ok(None) };
        let at_fault = |reason: String| ConfigError::at(node.line, format!("`{key}`: {reason}"));
        match &node.value {
            Value::Scalar(text) if !text.is_empty() => parse(text).map(Some).map_err(at_fault),
            Value::Scalar(_) => Err(at_fault("a value is missing".into())),
            _ => Err(at_fault("expected a single value".into())),
        }
    }

    pub(crate) fn bool(&mut self, key: &'static str) -> Result<Option<bool>, ConfigError> {
        self.read(key, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("`{text}` is neither true nor false")),
        })
    }

    pub(crate) fn list(&mut self, key: &'static str) -> Result<Option<Vec<String>>, ConfigError> {
        let Some(node) = self.take(key) else { return Ok(None) };
        let expected = || ConfigError::at(node.line, format!("`{key}` is a list of values"));
        let Value::Sequence(items) = &node.value else { return Err(expected()) };
        let texts = items.iter().map(|item| match &item.value {
            Value::Scalar(text) => Ok(text.clone()),
            _ => Err(expected()),
        });
        texts.collect::<Result<_, _>>().map(Some)
    }

    pub(crate) fn nested(&mut self, key: &'static str) -> Result<Option<Fields>, ConfigError> {
        self.take(key).map(|node| Fields::of(node, key)).transpose()
    }

    fn into_texts(self) -> Result<Vec<(String, String)>, ConfigError> {
        let name = self.name;
        let texts = self.entries.into_iter().map(|(key, node)| match node.value {
            Value::Scalar(text) => Ok((key, text)),
            _ => Err(ConfigError::at(node.line, format!("`{name}.{key}` is a single value"))),
        });
        texts.collect()
    }

    /// Refuses what nobody asked for.
    pub(crate) fn finish(&mut self) -> Result<(), ConfigError> {
        match self.entries.first() {
            None => Ok(()),
            Some((key, node)) => {
                let known = self.known.join(", ");
                let message = format!("`{key}` is not a setting of `{}`; there are: {known}", self.name);
                Err(ConfigError::at(node.line, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const COMPLETE: &str = "\
server:
  port: &p 8080
profiling:
  cpu: {enabled: true, sample_rate: 100}
  memory:
    enabled: true
    sample_rate: 512KB
  conditional:
    slow_request_threshold: 1s
    cpu_threshold_percent: 80
    profile_errors: true
  max_stack_depth: 64
  max_profile_size: 10MB
  upload_interval: 10s
  load_shedding: {enabled: true, cpu_threshold: 90%}
  tags:
    region: eu-west
other: *p
";

    /// Scenario: the section as the issue spells it, among other sections with YAML we do not read.
    /// Guarantee: every setting arrives.
    #[test]
    fn the_documented_section_is_understood() {
        let mut config = Config::default();
        config.apply_yaml(COMPLETE).unwrap();
        assert_eq!(config.cpu_hertz, Some(100));
        assert_eq!(config.memory_interval, Some(512 << 10));
        assert_eq!(config.conditions.slow_request_threshold, Some(Duration::from_secs(1)));
        assert_eq!(config.conditions.cpu_threshold_percent, Some(80.0));
        assert!(config.conditions.profile_errors);
        assert_eq!((config.max_stack_depth, config.max_profile_size), (64, 10 << 20));
        assert_eq!(config.upload_interval, Duration::from_secs(10));
        assert_eq!(config.load_shedding_percent, Some(90.0));
        assert_eq!(config.tags, [("region".to_owned(), "eu-west".to_owned())]);
    }

    /// Scenario: a wrong key, a wrong unit, a wrong type, each on a known line of an otherwise good file.
    /// Guarantee: the error names the line, and no setting changes.
    #[test]
    fn mistakes_name_their_line_and_change_nothing() {
        for (right, wrong, line) in [
            ("sample_rate: 100", "sample_rte: 100", 4),
            ("sample_rate: 512KB", "sample_rate: 512", 7),
            ("slow_request_threshold: 1s", "slow_request_threshold: 1 parsec", 9),
            ("profile_errors: true", "profile_errors: yes", 11),
            ("max_stack_depth: 64", "max_stack_depth: deep", 12),
            ("cpu_threshold: 90%", "cpu_threshold: 900%", 15),
        ] {
            let mut config = Config { service_name: "before".into(), cpu_hertz: Some(7), ..Config::default() };
            let error = config.apply_yaml(&COMPLETE.replace(right, wrong)).unwrap_err();
            assert_eq!(error.line, Some(line), "{error}");
            assert_eq!(config.cpu_hertz, Some(7));
        }
        assert!(Config::default().apply_yaml("server: 1\n").is_err());
        assert!(Config::default().apply_yaml("profiling:\n").is_ok());
    }

    /// Scenario: a control endpoint that others could reach, one with a weak token, and ways of sending that are none.
    /// Guarantee: each is refused with its line, since it would be unsafe or could not work.
    #[test]
    fn unsafe_settings_are_refused() {
        for (settings, line) in [
            ("control: {listen: '0.0.0.0:6060', token: 0123456789abcdef}", 3),
            ("control: {listen: '127.0.0.1:6060', token: short}", 3),
            ("endpoint: example.com:4318", 3),
            ("pyroscope_endpoint: example.com:4040", 3),
            ("policy: {endpoint: 'example.com:4040'}", 3),
            ("endpoint: http://example.com:4317\n  protocol: carrier-pigeon", 4),
            ("endpoint: http://example.com:4318\n  compression: lzma", 4),
            ("max_stack_depth: 0", 3),
            ("upload_interval: 1ms", 3),
        ] {
            let text = format!("profiling:\n  enabled: true\n  {settings}\n");
            let error = Config::default().apply_yaml(&text).unwrap_err();
            assert_eq!(error.line, Some(line), "{settings}: {error}");
        }
        let text = "profiling:\n  control: {listen: '0.0.0.0:6060', token: 0123456789abcdef, allow_remote: true}\n";
        assert!(Config::default().apply_yaml(text).is_ok());
    }
}
