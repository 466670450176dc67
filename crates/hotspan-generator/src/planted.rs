//! Causes of slowness that are hidden in the data on purpose, so that a test can ask whether they are found.

/// How a planted cause spends its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedTime {
    /// Running: seen in samples of CPU time, one each 10 ms.
    OnCpu,
    /// Waiting: seen in samples of off-CPU time, one for each wait.
    Waiting,
}

/// One cause: some requests of an operation spend extra time in a named function.
#[derive(Debug, Clone, PartialEq)]
pub struct PlantedCause {
    /// The service; one of [`crate::fleet::Fleet::service_names`].
    pub service: String,
    /// Name of the operation's server span.
    pub operation: String,
    /// Share of its requests that are slow.
    pub slow_share: f64,
    /// Extra time of a slow request; the median, since it varies by about a tenth.
    pub slow_nanos: i64,
    /// Time that every other request spends in the same function; 0 for none.
    pub fast_nanos: i64,
    /// The function to blame.
    pub function: String,
    /// Its source file.
    pub file: String,
    /// The line to blame.
    pub line: u32,
    /// Whether it runs or waits.
    pub time: PlantedTime,
    /// Attribute that slow requests carry, and only they.
    pub marking: Option<(String, String)>,
}
