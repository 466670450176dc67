//! Settings from the environment, which win over the file and the code: they are what an operator can reach.

use super::section::by_grpc;
use super::{Config, ConfigError, units};
use crate::export::Destination;

/// Applies `HOTSPAN_*` and OpenTelemetry's own variables to the settings.
///
/// | variable | setting |
/// |---|---|
/// | `HOTSPAN_PROFILING_CONFIG` | path of a YAML file with a `profiling:` section |
/// | `HOTSPAN_PROFILING_ENABLED` | `true` or `false` |
/// | `HOTSPAN_PROFILING_CPU_RATE` | CPU samples per second, 0 is off |
/// | `HOTSPAN_PROFILING_WALL_RATE` | wall samples per second, 0 is off |
/// | `HOTSPAN_PROFILING_MEMORY_RATE` | bytes between heap samples, such as `512KB` |
/// | `HOTSPAN_PROFILING_INTERVAL` | time between uploads, such as `10s` |
/// | `HOTSPAN_PROFILING_ENDPOINT`, `OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT` | OTLP server, the first that is set |
/// | `OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL`, `OTEL_EXPORTER_OTLP_PROTOCOL` | `http/protobuf` or `grpc` |
/// | `OTEL_EXPORTER_OTLP_COMPRESSION` | `none`, `gzip` or `zstd` |
/// | `OTEL_EXPORTER_OTLP_HEADERS` | `name=value,name=value` |
/// | `OTEL_EXPORTER_OTLP_CERTIFICATE` | file with certificates to trust besides the system's |
/// | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | name and other attributes of the service |
///
/// # Errors
/// For a value that is not understood, naming its variable.
pub fn from_environment(config: &mut Config) -> Result<(), ConfigError> {
    apply(config, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn apply(config: &mut Config, variable: impl Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
    if let Some(path) = variable("HOTSPAN_PROFILING_CONFIG") {
        let text = std::fs::read_to_string(&path).map_err(|error| ConfigError::new(format!("{path}: {error}")))?;
        config
            .apply_yaml(&text)
            .map_err(|error| ConfigError { message: format!("{} (in {path})", error.message), ..error })?;
    }
    let read = |name: &str| variable(name).map(|value| (name.to_owned(), value));
    if let Some((name, value)) = read("HOTSPAN_PROFILING_ENABLED") {
        config.enabled = value.parse().map_err(|_| refused(&name, "neither true nor false"))?;
    }
    for (name, rate) in
        [("HOTSPAN_PROFILING_CPU_RATE", &mut config.cpu_hertz), ("HOTSPAN_PROFILING_WALL_RATE", &mut config.wall_hertz)]
    {
        if let Some(value) = variable(name) {
            let hertz: u32 = value.parse().map_err(|_| refused(name, "not a whole number of samples per second"))?;
            *rate = (hertz > 0).then_some(hertz);
        }
    }
    if let Some((name, value)) = read("HOTSPAN_PROFILING_MEMORY_RATE") {
        config.memory_interval = Some(units::size(&value).map_err(|reason| refused(&name, &reason))?);
    }
    if let Some((name, value)) = read("HOTSPAN_PROFILING_INTERVAL") {
        config.upload_interval = units::duration(&value).map_err(|reason| refused(&name, &reason))?;
    }
    if let Some(name) = variable("OTEL_SERVICE_NAME") {
        config.service_name = name;
    }
    for (key, value) in pairs(variable("OTEL_RESOURCE_ATTRIBUTES")) {
        if key == "service.name" && variable("OTEL_SERVICE_NAME").is_none() {
            config.service_name = value;
        } else if key != "service.name" {
            config.tags.push((key, value));
        }
    }
    let endpoint =
        ["HOTSPAN_PROFILING_ENDPOINT", "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]
            .into_iter()
            .find_map(&variable);
    if let Some(endpoint) = endpoint {
        let protocols = ["OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
        let protocol = protocols.into_iter().find_map(read);
        let by_grpc = protocol.map(|(name, value)| by_grpc(&value).map_err(|reason| refused(&name, &reason)));
        let is_otlp =
            |destination: &Destination| matches!(destination, Destination::Otlp { .. } | Destination::OtlpGrpc { .. });
        config.destinations.retain(|destination| !is_otlp(destination));
        config.destinations.push(match by_grpc.transpose()? {
            Some(true) => Destination::otlp_grpc(endpoint),
            _ => Destination::otlp(endpoint),
        });
    }
    if let Some((name, value)) = read("OTEL_EXPORTER_OTLP_COMPRESSION") {
        let chosen = value.parse().map_err(|reason: String| refused(&name, &reason))?;
        config.destinations.iter_mut().filter_map(Destination::compression_mut).for_each(|value| *value = chosen);
    }
    let added: Vec<(String, String)> = pairs(variable("OTEL_EXPORTER_OTLP_HEADERS")).collect();
    for destination in &mut config.destinations {
        if let Destination::Otlp { headers, .. } | Destination::OtlpGrpc { headers, .. } = destination {
            headers.extend(added.iter().cloned());
        }
    }
    config.check()
}

fn refused(variable: &str, reason: &str) -> ConfigError {
    ConfigError::new(format!("{variable}: {reason}"))
}

fn pairs(text: Option<String>) -> impl Iterator<Item = (String, String)> {
    let owned: Vec<(String, String)> = text
        .unwrap_or_default()
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect();
    owned.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        apply(&mut config, |name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })?;
        Ok(config)
    }

    /// Scenario: OpenTelemetry's variables and ours, together.
    /// Guarantee: they arrive, and the more specific endpoint wins.
    #[test]
    fn variables_are_applied() {
        let config = with(&[
            ("OTEL_SERVICE_NAME", "orders"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other, region=eu"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://general:4318"),
            ("HOTSPAN_PROFILING_ENDPOINT", "http://specific:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-scope-orgid=t1"),
            ("HOTSPAN_PROFILING_CPU_RATE", "0"),
            ("HOTSPAN_PROFILING_MEMORY_RATE", "1MB"),
        ])
        .unwrap();
        assert_eq!(config.service_name, "orders");
        assert_eq!(config.tags, [("region".to_owned(), "eu".to_owned())]);
        assert_eq!((config.cpu_hertz, config.memory_interval), (None, Some(1 << 20)));
        let Destination::Otlp { endpoint, headers, .. } = &config.destinations[0] else { panic!() };
        assert_eq!((endpoint.as_str(), headers.len(), config.destinations.len()), ("http://specific:4318", 1, 1));
    }

    /// Scenario: values that make no sense.
    /// Guarantee: the error names the variable.
    #[test]
    fn nonsense_names_its_variable() {
        for (name, value) in [
            ("HOTSPAN_PROFILING_ENABLED", "maybe"),
            ("HOTSPAN_PROFILING_CPU_RATE", "fast"),
            ("HOTSPAN_PROFILING_INTERVAL", "10"),
            ("HOTSPAN_PROFILING_MEMORY_RATE", "512"),
        ] {
            assert!(with(&[(name, value)]).unwrap_err().message.starts_with(name));
        }
    }
}
