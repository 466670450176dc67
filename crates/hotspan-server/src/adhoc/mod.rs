//! Ad hoc profiles: files that somebody uploads to look at, kept as they came and apart from what is measured.
//!
//! An object each, in a folder beside the segments: no commit mentions them, so whatever sweeps or checks segments must
//! not meet them. They go when they are as old as profiles may become, or when their tenant has too many; there is no way
//! to delete one, so a full store takes what is new and gives up what is old.

mod id;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hotspan_lake::LakeError;
use hotspan_lake::catalog::now_nanos;
use hotspan_lake::store::{BlobStore, LocalStore};
use hotspan_model::TenantId;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub(crate) use id::AdHocId;

/// Profiles that a tenant can have (R5).
const MOST_PROFILES: usize = 1000;
/// How often is looked for what is too old.
const EXPIRE_EVERY: Duration = Duration::from_secs(60);
/// Ends the name of every object: what ends otherwise is none, however its sender called it.
const ENDING: &str = ".profile";

/// The ad hoc profiles of a store.
#[derive(Debug)]
pub(crate) struct AdHocStore {
    files: LocalStore,
    most_bytes: u64,
    removed: AtomicU64,
    /// One change at a time, so that two uploads do not both find room for themselves alone.
    changing: Mutex<()>,
}

/// A profile that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) id: AdHocId,
    path: String,
    size: u64,
}

/// Why a profile is not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    #[error("it has {size} bytes, and no more than {most} are kept of all; raise limits.max_adhoc_bytes")]
    TooLarge { size: u64, most: u64 },
    #[error(transparent)]
    Storage(#[from] LakeError),
}

impl AdHocStore {
    /// Opens those in a store's folder. A tenant has `most_bytes` of them at most.
    pub(crate) fn open(store: &Path, most_bytes: u64) -> Result<Self, LakeError> {
        let files = LocalStore::open(&store.join("adhoc"))?;
        Ok(Self { files, most_bytes, removed: AtomicU64::new(0), changing: Mutex::new(()) })
    }

    /// Keeps a profile, durably, and lets the oldest of the tenant go if there are too many now.
    pub(crate) async fn keep(&self, tenant: &TenantId, name: &str, content: Bytes) -> Result<AdHocId, KeepError> {
        let size = content.len() as u64;
        if size > self.most_bytes {
            return Err(KeepError::TooLarge { size, most: self.most_bytes });
        }
        let _turn = self.changing.lock().await;
        let id = AdHocId::new(now_nanos(), name, &content);
        self.files.put(&path_of(tenant, &id), content).await?;
        // The new one is safe by now, which is all that its sender asked for.
        if let Err(error) = self.make_room(tenant, &id, size).await {
            warn!(%error, %tenant, "ad hoc profiles beyond the limit could not be removed");
        }
        Ok(id)
    }

    /// Removes the oldest profiles that do not fit beside a new one.
    async fn make_room(&self, tenant: &TenantId, new: &AdHocId, size: u64) -> Result<(), LakeError> {
        let mut others = self.list(tenant).await?;
        others.retain(|kept| kept.id != *new);
        let (mut count, mut bytes) = (1, size);
        let stay = others.iter().take_while(|kept| {
            (count, bytes) = (count + 1, bytes + kept.size);
            count <= MOST_PROFILES && bytes <= self.most_bytes
        });
        let too_many = others.split_off(stay.count());
        self.remove(too_many, "their tenant has too many").await
    }

    /// The bytes of a profile, if there is one of this id.
    pub(crate) async fn read(&self, tenant: &TenantId, id: &AdHocId) -> Result<Option<Bytes>, LakeError> {
        match self.files.get(&path_of(tenant, id)).await {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What a tenant has, the latest first.
    pub(crate) async fn list(&self, tenant: &TenantId) -> Result<Vec<Kept>, LakeError> {
        self.under(&format!("{tenant}/")).await
    }

    /// How many were removed since the start.
    pub(crate) fn removed(&self) -> u64 {
        self.removed.load(Ordering::Relaxed)
    }

    /// Removes what gets older than `age`, until `stop`.
    pub(crate) async fn expire_until(&self, age: Duration, stop: CancellationToken) {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        loop {
            let oldest = (now_nanos() / 1_000_000).saturating_sub(age);
            if let Err(error) = self.expire(oldest).await {
                warn!(%error, "old ad hoc profiles could not be removed and will be tried again");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EXPIRE_EVERY) => {}
            }
        }
    }

    /// Removes what came before a time in milliseconds since 1970.
    async fn expire(&self, oldest: i64) -> Result<(), LakeError> {
        let mut old = self.under("").await?;
        old.retain(|kept| kept.id.uploaded_at() < oldest);
        self.remove(old, "they are past their retention").await
    }

    async fn remove(&self, profiles: Vec<Kept>, reason: &str) -> Result<(), LakeError> {
        if !profiles.is_empty() {
            info!(profiles = profiles.len(), reason, "removing ad hoc profiles");
        }
        for kept in profiles {
            self.files.delete(&kept.path).await?;
            self.removed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn under(&self, prefix: &str) -> Result<Vec<Kept>, LakeError> {
        let kept = |path: String, size| {
            let id = path.rsplit('/').next()?.strip_suffix(ENDING)?.parse().ok()?;
            Some(Kept { id, path, size })
        };
        let blobs = self.files.list(prefix).await?;
        let mut found: Vec<Kept> = blobs.into_iter().filter_map(|blob| kept(blob.path, blob.size)).collect();
        found.sort_unstable_by(|a, b| b.id.cmp(&a.id));
        Ok(found)
    }
}

fn path_of(tenant: &TenantId, id: &AdHocId) -> String {
    format!("{tenant}/{id}{ENDING}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(kept: &[Kept]) -> Vec<&str> {
        kept.iter().map(|kept| kept.id.name()).collect()
    }

    /// Scenario: profiles of two tenants, whose names begin alike, beyond the bytes that one may have; then a new start.
    /// Guarantee: the oldest of that tenant give way, the latest come first, and what is left is read back by its owner.
    #[tokio::test]
    async fn the_oldest_give_way() {
        let folder = tempfile::tempdir().unwrap();
        let store = AdHocStore::open(folder.path(), 100).unwrap();
        let (shop, shop2): (TenantId, TenantId) = ("shop".parse().unwrap(), "shop2".parse().unwrap());
        let other = store.keep(&shop2, "other", Bytes::from_static(&[7; 90])).await.unwrap();
        for (name, size) in [("a", 40), ("b.unfinished", 40), ("c", 20)] {
            store.keep(&shop, name, vec![1; size].into()).await.unwrap();
        }
        assert_eq!(names(&store.list(&shop).await.unwrap()), ["c", "b.unfinished", "a"]);
        store.keep(&shop, "d", vec![1; 30].into()).await.unwrap();
        assert_eq!(names(&store.list(&shop).await.unwrap()), ["d", "c", "b.unfinished"]);
        assert_eq!(store.removed(), 1);
        let refused = store.keep(&shop, "e", vec![1; 101].into()).await.unwrap_err();
        assert!(refused.to_string().contains("101 bytes"), "{refused}");

        drop(store);
        let store = AdHocStore::open(folder.path(), 100).unwrap();
        let kept = store.list(&shop).await.unwrap();
        assert_eq!(names(&kept), ["d", "c", "b.unfinished"]);
        assert_eq!(store.read(&shop, &kept[0].id).await.unwrap().unwrap(), vec![1; 30]);
        assert_eq!(store.read(&shop, &other).await.unwrap(), None);
        assert_eq!(store.read(&shop2, &other).await.unwrap().unwrap(), vec![7; 90]);
    }

    /// Scenario: two tenants with a profile each; time passes, and one of them uploads another.
    /// Guarantee: what is older than it may be goes, whoever has it, and the young one stays.
    #[tokio::test]
    async fn the_old_expire() {
        let folder = tempfile::tempdir().unwrap();
        let store = AdHocStore::open(folder.path(), 100).unwrap();
        let (a, b): (TenantId, TenantId) = ("a".parse().unwrap(), "b".parse().unwrap());
        store.keep(&a, "old", Bytes::from_static(b"1")).await.unwrap();
        store.keep(&b, "old", Bytes::from_static(b"1")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        let young = store.keep(&b, "young", Bytes::from_static(b"1")).await.unwrap();
        store.expire(young.uploaded_at()).await.unwrap();
        assert!(store.list(&a).await.unwrap().is_empty());
        assert_eq!(names(&store.list(&b).await.unwrap()), ["young"]);
        assert_eq!(store.removed(), 2);
    }
}
