//! Locks that tell how long they were waited for, by stack and span.
//!
//! They are the standard library's locks (and, with feature `parking_lot`, those of `parking_lot`) with one addition:
//! a wait that outlasts a short spin is recorded when lock profiling is on. Taking a free lock costs nothing extra.

mod contention;

pub(crate) use contention::profile_locks;

use contention::wait_for_lock;
use std::sync::{LockResult, MutexGuard, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult};

/// A [`std::sync::Mutex`] whose contention is profiled.
///
/// ```
/// let counter = hotspan_profiler::sync::Mutex::new(1);
/// *counter.lock().unwrap() += 1;
/// assert_eq!(counter.into_inner().unwrap(), 2);
/// ```
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized> {
    inner: std::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// A free mutex.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { inner: std::sync::Mutex::new(value) }
    }

    /// The value inside.
    ///
    /// # Errors
    /// If a thread panicked while it held the lock.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    ///
    /// # Errors
    /// If a thread panicked while it held the lock.
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        attempt(|| self.inner.try_lock(), || self.inner.lock())
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// If it is not, or if a thread panicked while it held the lock.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        self.inner.try_lock()
    }
}

/// A [`std::sync::RwLock`] whose contention is profiled.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized> {
    inner: std::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// A free lock.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock { inner: std::sync::RwLock::new(value) }
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits to read.
    ///
    /// # Errors
    /// If a thread panicked while it wrote.
    #[inline]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        attempt(|| self.inner.try_read(), || self.inner.read())
    }

    /// Waits to write.
    ///
    /// # Errors
    /// If a thread panicked while it wrote.
    #[inline]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        attempt(|| self.inner.try_write(), || self.inner.write())
    }
}

#[inline]
fn attempt<G>(try_once: impl Fn() -> TryLockResult<G>, wait: impl FnOnce() -> LockResult<G>) -> LockResult<G> {
    let settled = |result: TryLockResult<G>| match result {
        Ok(guard) => Some(Ok(guard)),
        Err(TryLockError::Poisoned(poisoned)) => Some(Err(poisoned)),
        Err(TryLockError::WouldBlock) => None,
    };
    match settled(try_once()) {
        Some(result) => result,
        None => wait_for_lock(|| settled(try_once()), wait),
    }
}

/// Locks of `parking_lot`, profiled through `lock_api`.
#[cfg(feature = "parking_lot")]
pub mod parking_lot {
    use super::wait_for_lock;
    use lock_api::{GuardNoSend, RawMutex, RawRwLock};

    /// A raw lock of another kind with its contention profiled.
    #[derive(Debug)]
    pub struct Profiled<R>(R);

    /// A `parking_lot` mutex whose contention is profiled.
    pub type Mutex<T> = lock_api::Mutex<Profiled<::parking_lot::RawMutex>, T>;
    /// A `parking_lot` reader-writer lock whose contention is profiled.
    pub type RwLock<T> = lock_api::RwLock<Profiled<::parking_lot::RawRwLock>, T>;

    // SAFETY: exclusion is that of the wrapped lock; every call is forwarded to it.
    unsafe impl<R: RawMutex> RawMutex for Profiled<R> {
        #[allow(clippy::declare_interior_mutable_const)]
        const INIT: Profiled<R> = Profiled(R::INIT);
        type GuardMarker = GuardNoSend;

        #[inline]
        fn lock(&self) {
            if !self.0.try_lock() {
                wait_for_lock(|| self.0.try_lock().then_some(()), || self.0.lock());
            }
        }

        #[inline]
        fn try_lock(&self) -> bool {
            self.0.try_lock()
        }

        #[inline]
        unsafe fn unlock(&self) {
            // SAFETY: forwarded from the caller.
            unsafe { self.0.unlock() };
        }
    }

    // SAFETY: exclusion is that of the wrapped lock; every call is forwarded to it.
    unsafe impl<R: RawRwLock> RawRwLock for Profiled<R> {
        #[allow(clippy::declare_interior_mutable_const)]
        const INIT: Profiled<R> = Profiled(R::INIT);
        type GuardMarker = GuardNoSend;

        #[inline]
        fn lock_shared(&self) {
            if !self.0.try_lock_shared() {
                wait_for_lock(|| self.0.try_lock_shared().then_some(()), || self.0.lock_shared());
            }
        }

        #[inline]
        fn try_lock_shared(&self) -> bool {
            self.0.try_lock_shared()
        }

        #[inline]
        unsafe fn unlock_shared(&self) {
            // SAFETY: forwarded from the caller.
            unsafe { self.0.unlock_shared() };
        }

        #[inline]
        fn lock_exclusive(&self) {
            if !self.0.try_lock_exclusive() {
                wait_for_lock(|| self.0.try_lock_exclusive().then_some(()), || self.0.lock_exclusive());
            }
        }

        #[inline]
        fn try_lock_exclusive(&self) -> bool {
            self.0.try_lock_exclusive()
        }

        #[inline]
        unsafe fn unlock_exclusive(&self) {
            // SAFETY: forwarded from the caller.
            unsafe { self.0.unlock_exclusive() };
        }
    }
}
