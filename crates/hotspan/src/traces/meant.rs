//! What was probably meant by a search that found nothing: attributes that no span has, and the nearest that some have.

use hotspan_traceql::{parse_syntax, suggest_attributes};
use serde_json::Value;

use crate::client::Client;

/// A line for each attribute of a query that is not stored while one with nearly its name is.
pub(crate) fn probably_meant(client: &Client, query: &str) -> Vec<String> {
    // It is a courtesy: a server that does not tell its tags has answered the question nevertheless.
    let tags = client.get("/api/v2/search/tags", &[]).and_then(|answer| answer.json()).unwrap_or_default();
    suggestions(query, &tags)
}

fn suggestions(query: &str, tags: &Value) -> Vec<String> {
    let Ok(parsed) = parse_syntax(query) else { return Vec::new() };
    let scopes = tags["scopes"].as_array().map_or(&[][..], Vec::as_slice);
    let full_names = scopes.iter().flat_map(|scope| {
        let name = scope["name"].as_str().unwrap_or_default();
        let tags = scope["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
        tags.map(move |tag| format!("{name}.{tag}"))
    });
    let known: Vec<String> = full_names.collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let told = suggest_attributes(&parsed, &known).into_iter();
    told.map(|(range, nearest)| {
        let typed = query.get(range.start..range.end).unwrap_or_default();
        format!("no span has `{typed}`; did you mean `{nearest}`?")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Scenario: a search with a mistyped attribute, one that is stored, and one that is like none.
    /// Guarantee: the first alone is told, with the name that was meant.
    #[test]
    fn the_nearest_attribute_is_told() {
        let tags = json!({ "scopes": [{ "name": "span", "tags": ["http.method", "cart.items"] }] });
        let told = suggestions("{ span.http.metod = \"GET\" && span.cart.items > 3 && span.colour = \"red\" }", &tags);
        assert_eq!(told, ["no span has `span.http.metod`; did you mean `span.http.method`?"]);
        assert_eq!(suggestions("{ span.cart.items > 3 }", &tags), Vec::<String>::new());
        assert_eq!(suggestions("{ span.", &tags), Vec::<String>::new());
    }
}
