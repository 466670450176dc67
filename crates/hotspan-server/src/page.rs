//! The web page, built into the binary.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, Uri, header};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Files;

/// A file of the page; a path that is none gets the page itself, which reads its state from the URL.
pub(crate) async fn serve(uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    if let Some(file) = Files::get(path) {
        // Built files carry a hash of their content in their name.
        let lasting = path.starts_with("assets/");
        let cache = if lasting { "public, max-age=31536000, immutable" } else { "no-cache" };
        return respond(path, file.data.into_owned(), cache);
    }
    let wants_page = !path.contains('.') && !path.starts_with("api/");
    match Files::get("index.html").filter(|_| wants_page) {
        Some(page) => respond("index.html", page.data.into_owned(), "no-cache"),
        None => (StatusCode::NOT_FOUND, "not found\n").into_response(),
    }
}

fn respond(path: &str, body: Vec<u8>, cache: &'static str) -> Response {
    let content_type = match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript",
        "css" => "text/css",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "png" => "image/png",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static(cache)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (headers, body).into_response()
}
