//! The services that the data comes from: their operations, their code, and who calls whom.

pub mod call_tree;
mod service;
mod vocabulary;

pub(crate) use service::PlantedOperation;
pub use service::{Operation, OperationKind, Service};
pub use vocabulary::Language;

use crate::planted::PlantedCause;
use crate::settings::{Settings, SettingsError};

/// All services.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The services; spans and profiles name them by index.
    pub services: Vec<Service>,
}

impl Fleet {
    /// The names of the services of a fleet of this size, without making it.
    pub fn service_names(services: u16) -> impl Iterator<Item = String> {
        let words = vocabulary::SERVICES;
        (0..usize::from(services)).map(|number| match number / words.len() {
            0 => words[number].to_owned(),
            generation => format!("{}-{}", words[number % words.len()], generation + 1),
        })
    }

    pub(crate) fn new(settings: &Settings) -> Result<Self, SettingsError> {
        let services = Self::service_names(settings.services)
            .enumerate()
            .map(|(number, name)| Service::new(settings, number as u16, name))
            .collect();
        let mut fleet = Self { services };
        for cause in &settings.planted {
            fleet.plant(cause)?;
        }
        Ok(fleet)
    }

    /// The service with this name.
    pub fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }

    fn plant(&mut self, cause: &PlantedCause) -> Result<(), SettingsError> {
        let Some(at) = self.services.iter().position(|service| service.name == cause.service) else {
            return Err(SettingsError::UnknownService {
                function: cause.function.clone(),
                service: cause.service.clone(),
                known: join(self.services.iter().map(|service| service.name.as_str())),
            });
        };
        let service = &mut self.services[at];
        let endpoints = service.endpoints();
        let Some(operation) = endpoints.iter().position(|operation| operation.name == cause.operation) else {
            return Err(SettingsError::UnknownOperation {
                function: cause.function.clone(),
                service: cause.service.clone(),
                operation: cause.operation.clone(),
                known: join(endpoints.iter().map(|operation| operation.name.as_str())),
            });
        };
        let region = service.operations[operation].region;
        let node = service.calls.plant(region, &cause.function, &cause.file, cause.line);
        service.operations[operation].planted.push(PlantedOperation {
            slow_share: cause.slow_share,
            slow_nanos: cause.slow_nanos,
            fast_nanos: cause.fast_nanos,
            time: cause.time,
            node,
            marking: cause.marking.clone(),
        });
        Ok(())
    }
}

fn join<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
