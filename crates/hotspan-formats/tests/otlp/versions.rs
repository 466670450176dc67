//! Other numberings of the same messages.
