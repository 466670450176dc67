//! Profile formats against files that real tools wrote (see `fixtures/README.md`), and against each other.

mod algebra;
mod detection;
mod hostile;
mod jfr;
mod pprof;
mod scripts;
mod support;
