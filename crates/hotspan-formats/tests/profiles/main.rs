//! Profile formats against files that real tools wrote (see `fixtures/README.md`), and against each other.

mod jfr;
mod pprof;
mod scripts;
mod support;
