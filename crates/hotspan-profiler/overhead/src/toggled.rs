//! What can be on while work is done: profilers, and two controls.

use hotspan_profiler::Profiler;

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

impl Toggled for Hotspan {
    fn on(&mut self) {
        self.0.resume();
        self.0.flush();
    }
    fn off(&mut self) {
        self.0.pause();
        self.0.flush();
    }
}
