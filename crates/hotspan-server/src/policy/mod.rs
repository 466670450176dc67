//! Policies: how the profilers of each service are to behave, set here and asked for by them.
//!
//! One small file per tenant beside the catalog. A change is durable before it is acknowledged or given out (R1).

mod document;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use hotspan_lake::LakeError;
use hotspan_lake::store::{BlobStore, LocalStore};
use hotspan_model::TenantId;
use tokio::sync::Mutex;

pub(crate) use document::{Policy, PolicyError};

/// The name under which a policy holds for every service that has none of its own.
pub(crate) const EVERY_SERVICE: &str = "*";
/// Services of one tenant that can have a policy (R5).
const MAX_POLICIES: usize = 10_000;
/// The longest name of a service.
const MAX_SERVICE_BYTES: usize = 256;

type Policies = Arc<BTreeMap<String, Policy>>;

/// All policies of a store.
#[derive(Debug)]
pub(crate) struct PolicyStore {
    files: LocalStore,
    by_tenant: RwLock<HashMap<TenantId, Policies>>,
    /// One change at a time, from reading to durable.
    changing: Mutex<()>,
}

/// Why a change is not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("service: {0:?} is not a name of 1 to {MAX_SERVICE_BYTES} bytes without control characters")]
    Service(String),
    #[error("{MAX_POLICIES} services have a policy already; clear some, or use one for every service (`*`)")]
    TooMany,
    #[error(transparent)]
    Storage(#[from] LakeError),
}

impl PolicyStore {
    /// Reads the policies in a store's folder.
    pub(crate) async fn open(store: &Path) -> anyhow::Result<Self> {
        let files = LocalStore::open(&store.join("policies"))?;
        let mut by_tenant = HashMap::new();
        for blob in files.list("").await? {
            let tenant = blob.path.strip_suffix(".json").and_then(|name| name.parse::<TenantId>().ok());
            let Some(tenant) = tenant else { continue };
            let policies: BTreeMap<String, Policy> = serde_json::from_slice(&files.get(&blob.path).await?)
                .map_err(|error| anyhow::anyhow!("policies/{}: {error}; repair or remove the file", blob.path))?;
            by_tenant.insert(tenant, Arc::new(policies));
        }
        Ok(Self { files, by_tenant: RwLock::new(by_tenant), changing: Mutex::new(()) })
    }

    /// What is in force for a service now: its own policy, or the one for every service.
    pub(crate) fn in_force(&self, tenant: &TenantId, service: &str) -> Option<Policy> {
        let policies = self.of(tenant);
        let policy = policies.get(service).or_else(|| policies.get(EVERY_SERVICE))?.at(now_unix_seconds());
        (!policy.is_empty()).then_some(policy)
    }

    /// All that say something now, by service.
    pub(crate) fn list(&self, tenant: &TenantId) -> BTreeMap<String, Policy> {
        let now = now_unix_seconds();
        let current = self.of(tenant).iter().map(|(service, policy)| (service.clone(), policy.at(now))).collect();
        without_empty(current)
    }

    /// Puts a policy in the place of the service's old one.
    pub(crate) async fn set(&self, tenant: &TenantId, service: &str, policy: Policy) -> Result<Policy, ChangeError> {
        self.change(tenant, service, |_| policy).await
    }

    /// Changes what `change` names in the service's policy.
    pub(crate) async fn merge(&self, tenant: &TenantId, service: &str, change: Policy) -> Result<Policy, ChangeError> {
        self.change(tenant, service, |old| old.map_or(change.clone(), |old| old.changed_by(change))).await
    }

    /// Removes a service's policy; false if it had none.
    pub(crate) async fn clear(&self, tenant: &TenantId, service: &str) -> Result<bool, ChangeError> {
        let _turn = self.changing.lock().await;
        let mut policies = self.list(tenant);
        let had_one = policies.remove(service).is_some();
        if had_one {
            self.save(tenant, policies).await?;
        }
        Ok(had_one)
    }

    async fn change(
        &self,
        tenant: &TenantId,
        service: &str,
        new: impl FnOnce(Option<&Policy>) -> Policy,
    ) -> Result<Policy, ChangeError> {
        let is_name = (1..=MAX_SERVICE_BYTES).contains(&service.len()) && !service.chars().any(char::is_control);
        if !is_name {
            return Err(ChangeError::Service(service.chars().take(MAX_SERVICE_BYTES).collect()));
        }
        let _turn = self.changing.lock().await;
        let mut policies = self.list(tenant);
        let policy = new(policies.get(service)).checked(now_unix_seconds())?;
        policies.insert(service.to_owned(), policy.clone());
        if policies.len() > MAX_POLICIES {
            return Err(ChangeError::TooMany);
        }
        self.save(tenant, policies).await?;
        Ok(policy)
    }

    /// Durable first, visible then.
    async fn save(&self, tenant: &TenantId, policies: BTreeMap<String, Policy>) -> Result<(), LakeError> {
        // A map of strings to plain data always serialises.
        let text = serde_json::to_vec_pretty(&policies).unwrap_or_default();
        self.files.put(&format!("{tenant}.json"), text.into()).await?;
        let mut by_tenant = self.by_tenant.write().unwrap_or_else(PoisonError::into_inner);
        by_tenant.insert(tenant.clone(), Arc::new(policies));
        Ok(())
    }

    fn of(&self, tenant: &TenantId) -> Policies {
        self.by_tenant.read().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned().unwrap_or_default()
    }
}

fn without_empty(mut policies: BTreeMap<String, Policy>) -> BTreeMap<String, Policy> {
    policies.retain(|_, policy| !policy.is_empty());
    policies
}

fn now_unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn rate(rate: u32) -> Policy {
        Policy { rate: Some(rate), ..Policy::default() }
    }

    /// Scenario: policies of two tenants are set, changed and cleared; the store is opened again.
    /// Guarantee: each tenant sees its own, a service without one gets that for all, and nothing is lost.
    #[tokio::test]
    async fn policies_survive_and_tenants_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b): (TenantId, TenantId) = ("a".parse().unwrap(), "b".parse().unwrap());
        let store = PolicyStore::open(folder.path()).await.unwrap();
        store.set(&a, "orders", rate(200)).await.unwrap();
        store.set(&a, EVERY_SERVICE, rate(20)).await.unwrap();
        store.set(&b, "orders", rate(7)).await.unwrap();
        store.set(&b, "gone", rate(8)).await.unwrap();
        assert!(store.clear(&b, "gone").await.unwrap() && !store.clear(&b, "gone").await.unwrap());
        drop(store);
        let store = PolicyStore::open(folder.path()).await.unwrap();
        assert_eq!(store.in_force(&a, "orders"), Some(rate(200)));
        assert_eq!(store.in_force(&a, "anything"), Some(rate(20)));
        assert_eq!(store.in_force(&b, "orders"), Some(rate(7)));
        assert_eq!((store.in_force(&b, "gone"), store.list(&b).len()), (None, 1));
    }

    /// Scenario: a name that is no name, and a policy that is wrong, where a good one is.
    /// Guarantee: both are refused, and what was there stays.
    #[tokio::test]
    async fn a_refused_change_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = PolicyStore::open(folder.path()).await.unwrap();
        let tenant = TenantId::anonymous();
        store.set(&tenant, "orders", rate(200)).await.unwrap();
        for name in ["", "a\nb", &"x".repeat(300)] {
            assert!(matches!(store.set(&tenant, name, rate(1)).await, Err(ChangeError::Service(_))));
        }
        assert!(matches!(store.merge(&tenant, "orders", rate(0)).await, Err(ChangeError::Policy(_))));
        assert_eq!(store.list(&tenant), BTreeMap::from([("orders".to_owned(), rate(200))]));
    }
}
