//! The fixed traces of the golden suite, read from `tests/golden/traces.txt`.

use hotspan_model::{SpanId, TraceId};
use hotspan_traceql::Value;
use hotspan_traceql::ast::{FieldExprKind, Keyword, Kind, QueryBody, SpansetExpr, Stage, Status};
use hotspan_traceql::memory::{Attributes, MemoryEvent, MemoryLink, MemoryProfile, MemorySpan, MemoryTrace};

/// A trace with a label for each span.
pub struct Labelled {
    pub trace: MemoryTrace,
    pub labels: Vec<String>,
}

/// Every trace of the file. A span line is indented under its parent's; what it has follows its label.
pub fn traces() -> Vec<Labelled> {
    let mut all: Vec<Labelled> = Vec::new();
    let mut path: Vec<SpanId> = Vec::new();
    for line in include_str!("../golden/traces.txt").lines() {
        let words = words(line);
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if words[0] == "trace" {
            let id: TraceId = words[1].parse().unwrap();
            all.push(Labelled { trace: MemoryTrace { id, spans: vec![] }, labels: vec![] });
            continue;
        }
        let depth = (line.len() - line.trim_start().len()) / 2 - 1;
        path.truncate(depth);
        let current = all.last_mut().unwrap();
        let number = 16 * current.trace.id.0[15] + current.labels.len() as u8 + 1;
        let mut span = MemorySpan {
            id: SpanId([0, 0, 0, 0, 0, 0, 0, number]),
            parent_id: path.last().copied(),
            name: words[0].clone(),
            ..MemorySpan::default()
        };
        path.push(span.id);
        for word in &words[1..] {
            set(&mut span, word);
        }
        current.labels.push(words[0].clone());
        current.trace.spans.push(span);
    }
    all
}

/// Words of a line; spaces inside quotes, brackets and parentheses do not divide.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quoted, mut depth) = (false, 0);
    for c in line.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '(' if !quoted => depth += 1,
            ']' | ')' if !quoted => depth -= 1,
            _ => {}
        }
        if c == ' ' && !quoted && depth == 0 {
            words.push(String::new());
        } else {
            words.last_mut().unwrap().push(c);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn split_list(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut quoted, mut depth) = (false, 0);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => depth -= 1,
            _ => {}
        }
        if c == ',' && !quoted && depth == 0 {
            parts.push(String::new());
        } else {
            parts.last_mut().unwrap().push(c);
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// A value as TraceQL writes it, or several in brackets.
fn value(text: &str) -> Value {
    if let Some(inner) = text.strip_prefix('[') {
        return Value::Array(split_list(inner.strip_suffix(']').unwrap()).iter().map(|part| value(part)).collect());
    }
    let query = hotspan_traceql::parse_syntax(&format!("{{ .x = {text} }}")).unwrap();
    let QueryBody::Search { pipeline, .. } = query.body else { panic!() };
    let Stage::Spanset(SpansetExpr::Filter { condition: Some(condition), .. }) = &pipeline.stages[0] else { panic!() };
    let FieldExprKind::Compare { rhs, .. } = &condition.kind else { panic!() };
    Value::from_literal(rhs.as_literal().unwrap())
}

fn nanos(text: &str) -> i64 {
    let Value::Duration(nanos) = value(text) else { panic!("{text} is no duration") };
    nanos
}

fn text(text: &str) -> String {
    let Value::Str(text) = value(text) else { panic!("{text} is no string") };
    text
}

fn attributes(list: &str) -> Attributes {
    split_list(list)
        .iter()
        .map(|part| part.split_once('=').unwrap())
        .map(|(name, written)| (name.to_owned(), value(written)))
        .collect()
}

fn set(span: &mut MemorySpan, word: &str) {
    if let Some(inner) = word.strip_prefix("event(") {
        let (name, rest) = inner.strip_suffix(')').unwrap().split_once('@').unwrap();
        let (at, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let event = MemoryEvent { name: name.to_owned(), since_start_nanos: nanos(at), attributes: attributes(rest) };
        span.events.push(event);
        return;
    }
    if let Some(inner) = word.strip_prefix("link(") {
        let (ids, rest) = inner.strip_suffix(')').unwrap().split_once(' ').unwrap_or((&inner[..inner.len() - 1], ""));
        let (trace, linked) = ids.split_once('/').unwrap();
        let link = MemoryLink {
            trace_id: trace.parse().unwrap(),
            span_id: linked.parse().unwrap(),
            attributes: attributes(rest),
        };
        span.links.push(link);
        return;
    }
    if let Some(quoted) = word.strip_prefix("\"span.") {
        let (name, written) = quoted.split_once("\"=").unwrap();
        span.attributes.push((name.to_owned(), value(written)));
        return;
    }
    let (key, written) = word.split_once('=').unwrap_or_else(|| panic!("`{word}` is no key=value"));
    let profile = |span: &mut MemorySpan| span.profile.get_or_insert_with(MemoryProfile::default).clone();
    match key {
        "name" => span.name = text(written),
        "service" => span.resource.push(("service.name".to_owned(), value(written))),
        "kind" => span.kind = *Kind::ALL.iter().find(|kind| kind.name() == Some(written)).unwrap(),
        "status" => span.status = *Status::ALL.iter().find(|status| status.name() == Some(written)).unwrap(),
        "message" => span.status_message = text(written),
        "at" => span.start_nanos = nanos(written),
        "for" => span.duration_nanos = nanos(written),
        "parent" => span.parent_id = Some(written.parse().unwrap()),
        "id" => span.id = written.parse().unwrap(),
        "library" => {
            let (name, version) = text(written).split_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
            (span.instrumentation_name, span.instrumentation_version) = (name, version);
        }
        "cpu" => span.profile = Some(MemoryProfile { cpu_nanos: nanos(written), ..profile(span) }),
        "wall" => span.profile = Some(MemoryProfile { wall_nanos: nanos(written), ..profile(span) }),
        "samples" => span.profile = Some(MemoryProfile { samples: written.parse().unwrap(), ..profile(span) }),
        "functions" => {
            let functions = written.split('|').map(str::to_owned).collect();
            span.profile = Some(MemoryProfile { functions, ..profile(span) });
        }
        "files" => {
            let files = written.split('|').map(str::to_owned).collect();
            span.profile = Some(MemoryProfile { files, ..profile(span) });
        }
        _ => {
            if let Some(name) = key.strip_prefix("resource.") {
                span.resource.push((name.to_owned(), value(written)));
            } else if let Some(name) = key.strip_prefix("instrumentation.") {
                span.instrumentation.push((name.to_owned(), value(written)));
            } else {
                let name = key.strip_prefix("span.").unwrap_or_else(|| panic!("unknown key {key}"));
                span.attributes.push((name.to_owned(), value(written)));
            }
        }
    }
}
