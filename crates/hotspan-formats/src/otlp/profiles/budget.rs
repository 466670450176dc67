//! How much memory a decoded request may still take (R5).
//!
//! A table entry takes two bytes on the wire and a hundred in memory, and a resource is copied to each of its
//! profiles: the size of a request says little about the size of what it becomes. So everything that is kept is
//! charged here, about as large as it is, before it is built.

use super::super::fault::{Fault, Problem, Read};

#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    limit: usize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self { left: limit, limit }
    }

    /// Takes `bytes` from what is left, or refuses the request.
    #[inline]
    pub(super) fn charge(&mut self, bytes: usize) -> Read<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Fault::new(Problem::Expands { limit: self.limit })),
        }
    }
}
