//! What can be on while work is done: profilers, and two controls.

use hotspan_profiler::Profiler;
use std::time::Duration;

/// Something that can be on while work is done.
pub trait Toggled {
    /// Turns it on.
    fn on(&mut self);
    /// Turns it off.
    fn off(&mut self);
    /// Percent of extra work while it is on.
    fn extra_percent(&self) -> u64 {
        0
    }
}

/// The negative control: on is as off.
pub struct Nothing;

impl Toggled for Nothing {
    fn on(&mut self) {}
    fn off(&mut self) {}
}

/// The positive control.
pub struct OnePercentMore;

impl Toggled for OnePercentMore {
    fn on(&mut self) {}
    fn off(&mut self) {}
    fn extra_percent(&self) -> u64 {
        1
    }
}

/// This crate.
pub struct Hotspan(Profiler);

impl Hotspan {
    /// Off at first.
    pub fn new(hertz: u32) -> Hotspan {
        let builder = Profiler::builder("overhead").ignore_environment().cpu_hertz(hertz).on_upload(|_| {});
        Hotspan(builder.paused().start().unwrap())
    }
}

impl Hotspan {
    /// Waits until the profiler says so: it is told through its monitor.
    fn wait_until_running(&self, running: bool) {
        while self.0.status().running != running {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Toggled for Hotspan {
    fn on(&mut self) {
        self.0.resume();
        self.wait_until_running(true);
    }

    // Nothing is flushed: uploads happen when they do in a service, and not a hundred times as often.
    fn off(&mut self) {
        self.0.pause();
        self.wait_until_running(false);
    }
}
