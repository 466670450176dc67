//! Starting a program that waits at the door until it is watched, so that its first instruction is recorded.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Starts `command`. In between, when the process exists but has not executed the program, `watch` is called with its
/// number, on the calling thread.
pub(crate) fn start_watched<T>(mut command: Command, watch: impl FnOnce(i32) -> T) -> io::Result<(Child, T)> {
    let (mut pids, tell_pid) = io::pipe()?;
    let (door, mut open_door) = io::pipe()?;
    let (tell, wait) = (OwnedFd::from(tell_pid), OwnedFd::from(door));
    let (tell_raw, wait_raw, opener_raw) = (tell.as_raw_fd(), wait.as_raw_fd(), open_door.as_raw_fd());
    // SAFETY: only system calls that are allowed between fork and exec, on descriptors that stay open until then.
    unsafe {
        command.pre_exec(move || {
            // The child's own copy, or it would wait for itself if the parent died.
            libc::close(opener_raw);
            let pid = libc::getpid().to_ne_bytes();
            let mut byte = [0u8; 1];
            if libc::write(tell_raw, pid.as_ptr().cast(), pid.len()) != pid.len() as isize {
                return Err(io::Error::last_os_error());
            }
            match libc::read(wait_raw, byte.as_mut_ptr().cast(), 1) {
                1 => Ok(()),
                _ => Err(io::Error::other("the recorder went away")),
            }
        });
    }
    // `spawn` returns when the program runs, so it needs a thread of its own while we watch.
    std::thread::scope(|scope| {
        let spawning = scope.spawn(move || {
            let child = command.spawn();
            // Closed only now: the child had its copies.
            drop((tell, wait));
            child
        });
        let mut pid = [0; 4];
        let watched = pids.read_exact(&mut pid).map(|()| watch(i32::from_ne_bytes(pid)));
        // If the child never told, `spawn` says why.
        let opened = open_door.write_all(&[1]);
        let child = spawning.join().map_err(|_| io::Error::other("starting the program failed"))??;
        opened?;
        Ok((child, watched?))
    })
}
