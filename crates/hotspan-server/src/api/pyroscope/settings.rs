//! Settings that Grafana keeps with the server, by tenant: a small file in the store, replaced as a whole.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use hotspan_lake::catalog::now_nanos;
use hotspan_model::TenantId;
use http::StatusCode;
use tokio::sync::Mutex;

use super::messages::{DeleteSettingRequest, EmptyMessage, Setting, SettingMessage, SettingsResponse};
use super::unary::Asked;
use crate::api::ApiError;

/// One change at a time: a file is read, changed and replaced.
static CHANGING: Mutex<()> = Mutex::const_new(());

/// A tenant has this many settings at most, each this long at most.
const MOST_SETTINGS: usize = 1000;
const MOST_BYTES: usize = 64 << 10;

pub(super) async fn get(asked: Asked<EmptyMessage>) -> Result<SettingsResponse, ApiError> {
    let settings = read(&file_of(&asked.app.settings.store, &asked.tenant))?;
    Ok(SettingsResponse { settings: settings.into_values().collect() })
}

pub(super) async fn set(asked: Asked<SettingMessage>) -> Result<SettingMessage, ApiError> {
    let mut setting = asked.message.setting.ok_or_else(|| ApiError::invalid("setting is missing"))?;
    if setting.name.is_empty() {
        return Err(ApiError::invalid("setting.name is missing"));
    }
    if setting.name.len() + setting.value.len() > MOST_BYTES {
        return Err(ApiError::invalid(format!("a setting has {MOST_BYTES} bytes at most")));
    }
    if setting.modified_at == 0 {
        setting.modified_at = now_nanos().div_euclid(1_000_000);
    }
    let _changing = CHANGING.lock().await;
    let file = file_of(&asked.app.settings.store, &asked.tenant);
    let mut settings = read(&file)?;
    // Whoever read it before somebody else changed it must look again.
    if settings.get(&setting.name).is_some_and(|kept| kept.modified_at > setting.modified_at) {
        let message = format!("the setting {:?} was changed since", setting.name);
        return Err(ApiError { status: StatusCode::CONFLICT, message });
    }
    settings.insert(setting.name.clone(), setting.clone());
    if settings.len() > MOST_SETTINGS {
        return Err(ApiError::invalid(format!("there are {MOST_SETTINGS} settings already")));
    }
    write(&file, &settings)?;
    Ok(SettingMessage { setting: Some(setting) })
}

pub(super) async fn delete(asked: Asked<DeleteSettingRequest>) -> Result<SettingMessage, ApiError> {
    let _changing = CHANGING.lock().await;
    let file = file_of(&asked.app.settings.store, &asked.tenant);
    let mut settings = read(&file)?;
    if settings.remove(&asked.message.name).is_some() {
        write(&file, &settings)?;
    }
    Ok(SettingMessage::default())
}

fn file_of(store: &Path, tenant: &TenantId) -> PathBuf {
    store.join("settings").join(format!("{tenant}.json"))
}

fn read(file: &Path) -> Result<BTreeMap<String, Setting>, ApiError> {
    let settings: SettingsResponse = match std::fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed("damaged", file, &error))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => SettingsResponse::default(),
        Err(error) => return Err(failed("unreadable", file, &error)),
    };
    Ok(settings.settings.into_iter().map(|setting| (setting.name.clone(), setting)).collect())
}

fn write(file: &Path, settings: &BTreeMap<String, Setting>) -> Result<(), ApiError> {
    let all = SettingsResponse { settings: settings.values().cloned().collect() };
    let json = serde_json::to_vec(&all).map_err(|error| failed("not writable", file, &error))?;
    let replace = || {
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(&json)?;
        new.as_file().sync_all()?;
        new.persist(file)?;
        std::fs::File::open(folder)?.sync_all()
    };
    replace().map_err(|error| failed("not writable", file, &error))
}

fn failed(what: &str, file: &Path, error: &dyn std::fmt::Display) -> ApiError {
    let message = format!("the settings in {} are {what}: {error}", file.display());
    ApiError { status: StatusCode::INTERNAL_SERVER_ERROR, message }
}
