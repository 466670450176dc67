//! Profile formats against files that real tools wrote (see `fixtures/README.md`), and against each other.

mod detection;
mod jfr;
mod pprof;
mod scripts;
mod support;
