//! What the rest of the process says to the monitor, and what the monitor says about itself.

use crate::control::policy::Policy;
use crate::doorbell::DOORBELL;
use crate::sampler::SamplingMode;
use crate::status::Status;
use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

/// What can be asked of the monitor.
#[derive(Debug)]
pub(crate) enum Command {
    Start,
    Stop,
    Apply(Result<Policy, String>),
    /// Send what there is, and tell when it is queued.
    Flush(Sender<()>),
    Close,
}

/// The monitor's mailbox and noticeboard.
#[derive(Debug)]
pub(crate) struct Mailbox {
    commands: Mutex<VecDeque<Command>>,
    status: Mutex<Status>,
}

impl Mailbox {
    pub(crate) fn new(mode: SamplingMode) -> Mailbox {
        Mailbox { commands: Mutex::default(), status: Mutex::new(Status::new(mode)) }
    }

    pub(crate) fn send(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push_back(command);
        DOORBELL.ring();
    }

    pub(crate) fn post(&self, status: Status) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    pub(crate) fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was sent since the last call.
    pub(crate) fn take(&self) -> VecDeque<Command> {
        std::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
