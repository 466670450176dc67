//! `/api/v1/explain`: why a trace, a span or a cohort is slow. docs/explain.md describes request and answer.

mod link;
mod request;

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use hotspan_analysis::merged_tree::short_merged_tree;
use hotspan_analysis::{Analysis, gather, render};
use hotspan_formats::text_flame::{TextFlameOptions, text_flame};
use hotspan_model::CoverageOf;
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};

use self::link::Links;
use self::request::{ExplainBody, ExplainQuestion, Format};
use super::QuestionError;
use super::asker::Asker;
use crate::app::App;

/// The routes of explanations.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/api/v1/explain", post(explain))
}

/// Lines of the flame graph below a text.
const FLAME_LINES: usize = 24;
/// Bars below this share are left out of it.
const FLAME_PERCENT: f64 = 3.0;

async fn explain(
    Asker { core, tenant }: Asker,
    headers: HeaderMap,
    body: Result<Json<ExplainBody>, JsonRejection>,
) -> Result<Response, QuestionError> {
    let Json(body) = body.map_err(|error| QuestionError::invalid(error.body_text()))?;
    let question = ExplainQuestion::read(body)?;
    let mut analysis = match question.times {
        Some(times) => gather::explain_change(&core.engine, &tenant, &question.query, times).await?,
        None => gather::explain(&core.engine, &tenant, &question.query).await?,
    };
    let links = Links::of(&headers, &question);
    let coverage = analysis.explanation.coverage.clone();
    for cause in &mut analysis.explanation.causes {
        cause.link = links.cause(cause, &coverage);
    }
    Ok(match question.format {
        Format::Json => Json(answer_json(&analysis, &question, &links)).into_response(),
        Format::Text => plain("text/plain; charset=utf-8", as_text(&analysis, &links)),
        Format::Markdown => {
            let text = render::markdown(&analysis.explanation, &question.query.target, &links.explanation());
            plain("text/markdown; charset=utf-8", text)
        }
    })
}

fn plain(content_type: &'static str, body: String) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], body).into_response()
}

/// The answer, with the question it answers and what the page shows below it.
fn answer_json(analysis: &Analysis, question: &ExplainQuestion, links: &Links) -> Value {
    let explanation = &analysis.explanation;
    let mut answer = serde_json::to_value(explanation).unwrap_or_default();
    answer["target"] = json!(question.query.target);
    answer["baseline"] = json!(question.query.baseline);
    answer["headline"] = json!(render::headline(explanation));
    for (at, cause) in explanation.causes.iter().enumerate() {
        answer["causes"][at]["sentence"] = json!(render::sentence(cause, explanation));
    }
    answer["markdown"] = json!(render::markdown(explanation, &question.query.target, &links.explanation()));
    answer["link"] = json!(links.explanation());
    answer["exactness"] = exactness(analysis);
    answer
}

/// What the numbers rest on, in the words that every answer uses.
pub(super) fn exactness(analysis: &Analysis) -> Value {
    let explanation = &analysis.explanation;
    let coverage = &explanation.coverage;
    let samples = coverage.exact_samples + coverage.inherited_samples + coverage.inferred_samples;
    json!({
        "samples": samples,
        "spans": explanation.slow.spans + explanation.fast.spans,
        "linked_samples": samples,
        "exact_share": if samples == 0 { Value::Null } else { json!(coverage.exact_samples as f64 / samples as f64) },
        "inherited": coverage.inherited_samples,
        "inferred": coverage.inferred_samples,
        "dropped": coverage.dropped,
        "coverage": coverage.sampled,
        "coverage_of": CoverageOf::Spans.name(),
        "explained": coverage.explained,
    })
}

fn as_text(analysis: &Analysis, links: &Links) -> String {
    let mut text = render::text(&analysis.explanation);
    if !analysis.ledger.sides[0].is_empty() {
        let tree = short_merged_tree(&analysis.vocabulary, &analysis.ledger, 0);
        let options = TextFlameOptions {
            unit: "nanoseconds".to_owned(),
            max_lines: FLAME_LINES,
            min_percent: FLAME_PERCENT,
            ..TextFlameOptions::default()
        };
        let one = render::side_names(&analysis.explanation).one_slow;
        text.push_str(&format!("\nA{}: spans, then code and waits\n", one.trim_start_matches('a')));
        text.push_str(&text_flame(&tree, &options));
    }
    text.push_str(&format!("\n{}\n", links.explanation()));
    text
}
