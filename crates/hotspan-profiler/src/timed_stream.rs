//! A connection with a limit on every wait, in a process that gets signals all the time.
//!
//! The kernel counts a socket's timeout from the start of a call, and the standard library begins a call anew that a signal
//! interrupted: where signals come faster than the timeout, and the profiler's own may, it would never come.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A stream whose reads and writes wait this long at most, though the program is profiled.
///
/// A timeout of the socket itself is counted anew whenever a signal interrupts the wait.
#[derive(Debug)]
pub struct TimedStream {
    stream: TcpStream,
    timeout: Duration,
}

impl TimedStream {
    /// Limits each read and each write of `stream`.
    pub fn new(stream: TcpStream, timeout: Duration) -> Self {
        Self { stream, timeout }
    }
}

impl Read for TimedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        within(self.timeout, |left| {
            self.stream.set_read_timeout(Some(left))?;
            self.stream.read(buffer)
        })
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        within(self.timeout, |left| {
            self.stream.set_write_timeout(Some(left))?;
            self.stream.write(bytes)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Tries until it is not interrupted, each time with what is left of the time.
fn within<T>(timeout: Duration, mut attempt: impl FnMut(Duration) -> io::Result<T>) -> io::Result<T> {
    let began = Instant::now();
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the other side did not answer in time"));
        }
        match attempt(left) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Scenario: a call that signals interrupt again and again.
    /// Guarantee: it ends in time all the same, and each attempt has less time than the one before.
    #[test]
    fn interruptions_do_not_prolong_a_wait() {
        let mut last = Duration::MAX;
        let began = Instant::now();
        let result: io::Result<()> = within(Duration::from_millis(50), |left| {
            assert!(left < last);
            last = left;
            std::thread::sleep(Duration::from_millis(1));
            Err(io::ErrorKind::Interrupted.into())
        });
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= Duration::from_millis(50));
    }

    /// Scenario: the other side is connected and says nothing.
    /// Guarantee: a read ends with an error.
    #[test]
    fn silence_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut stream = TimedStream::new(stream, Duration::from_millis(20));
        let error = stream.read(&mut [0; 8]).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
    }
}
