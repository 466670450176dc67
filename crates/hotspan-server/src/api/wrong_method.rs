//! What is asked by a method that it has no answer to: says which it has (R7).

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{ALLOW, CONTENT_TYPE};

use super::ApiError;

/// A router that does so. Around it all: a router says which methods it has only on the way out of all that is layered on it.
pub(crate) fn naming_methods(router: Router) -> Router {
    Router::new().fallback_service(router).layer(from_fn(name_methods))
}

/// Gives a body to refusals that have none, from the methods that they allow.
async fn name_methods(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let Some(allow) = response.headers().get(ALLOW).cloned() else { return response };
    if response.status() != StatusCode::METHOD_NOT_ALLOWED || response.headers().contains_key(CONTENT_TYPE) {
        return response;
    }
    let methods: Vec<&str> = allow.to_str().unwrap_or_default().split(',').filter(|name| *name != "HEAD").collect();
    let message = format!("{path} is asked with {}, and {method} came", methods.join(" or "));
    let mut told = ApiError { status: StatusCode::METHOD_NOT_ALLOWED, message }.into_response();
    told.headers_mut().insert(ALLOW, allow);
    told
}
