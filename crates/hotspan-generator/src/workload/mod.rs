//! What the fleet does: windows of 15 s, each with the traces that start in it and a profile of every service.

mod decoration;
mod sampling;
mod shape;
mod timing;
mod window;

pub(crate) use sampling::PERIOD_NANOS;
pub use sampling::{GeneratedProfile, GeneratedSample, SampleKind};
pub use window::{GeneratedSpan, Window};

/// Key and value of the attribute that one span in some thousands carries.
pub const RARE_ATTRIBUTE: (&str, &str) = decoration::RARE_ATTRIBUTE;

use crate::fleet::Fleet;
use crate::random::{Random, Skewed, Stream};
use crate::settings::{Settings, SettingsError, WINDOW_NANOS};

/// All windows of a fleet, none of which is kept.
#[derive(Debug, Clone)]
pub struct Workload {
    settings: Settings,
    fleet: Fleet,
    /// How many samples each service has.
    samples: Vec<u64>,
    /// Which service a trace starts at.
    entries: Skewed,
}

impl Workload {
    /// The workload of these settings.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let fleet = Fleet::new(&settings)?;
        let mut random = Random::of(settings.seed, Stream::Service, u64::MAX);
        let loads: Vec<f64> = fleet.services.iter().map(|_| random.log_normal(1.0, 0.4)).collect();
        let sum: f64 = loads.iter().sum();
        // Most requests come in at the first few services, some at any: jobs, probes, partners.
        let entries = Skewed::weighted((0..fleet.services.len()).map(|service| if service < 3 { 10.0 } else { 1.2 }));
        let mut before = 0.0;
        let up_to = |load: f64| (settings.samples as f64 * (load / sum).min(1.0)).round() as u64;
        let samples = loads
            .iter()
            .map(|load| {
                let first = up_to(before);
                before += load;
                up_to(before) - first
            })
            .collect();
        Ok(Self { samples, settings, fleet, entries })
    }

    /// What it was made from.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The services.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// How many windows there are.
    pub fn window_count(&self) -> u32 {
        self.settings.windows
    }

    /// The window with this number; each can be made without the others.
    pub fn window(&self, number: u32) -> Window<'_> {
        Window::new(self, number)
    }

    /// All windows in order, each made when it is asked for.
    pub fn windows(&self) -> impl Iterator<Item = Window<'_>> {
        (0..self.window_count()).map(|number| self.window(number))
    }

    fn window_start(&self, number: u32) -> i64 {
        self.settings.first_instant() + i64::from(number) * WINDOW_NANOS
    }

    /// The traces that start in a window; together the windows have exactly as many as the settings say.
    fn traces_of(&self, window: u32) -> std::ops::Range<u64> {
        let before = |window: u32| spread(self.settings.traces as f64, window, self.settings.windows);
        before(window)..before(window + 1)
    }

    /// How many samples a service has in a window.
    fn samples_of(&self, service: usize, window: u32) -> u64 {
        let all = self.samples[service] as f64;
        spread(all, window + 1, self.settings.windows) - spread(all, window, self.settings.windows)
    }
}

/// How many of `all` things fall before a window, if they are spread evenly.
fn spread(all: f64, window: u32, windows: u32) -> u64 {
    (all * f64::from(window) / f64::from(windows)).round() as u64
}
