//! Queries with known answers over fixed traces; the files under `tests/golden` say what and why.
//!
//! A query line is followed by lines that begin with two spaces: the answer. `BLESS=1 cargo test -p hotspan-traceql
//! --test golden` writes the answers as they are now, for review with `git diff`.

#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write as _;

use hotspan_traceql::memory::MemoryTrace;
use hotspan_traceql::{MetricsLimits, Program, Spanset, TimeGrid, parse, parse_syntax};
use support::{fixture, reference};

/// One query and its answer.
struct Case {
    query: String,
    answer: String,
}

/// A file of cases; `head` is everything else in it, by the index of the case it stands before.
fn cases_of(file: &str) -> (Vec<Case>, Vec<String>) {
    let mut cases: Vec<Case> = Vec::new();
    let mut heads = vec![String::new()];
    for line in file.lines() {
        if let (Some(answer), Some(case)) = (line.strip_prefix("  "), cases.last_mut()) {
            if !case.answer.is_empty() {
                case.answer.push('\n');
            }
            case.answer.push_str(answer);
        } else if line.is_empty() || line.starts_with('#') {
            let _ = writeln!(heads.last_mut().unwrap(), "{line}");
        } else {
            cases.push(Case { query: line.replace("\\n", "\n").replace("\\t", "\t"), answer: String::new() });
            heads.push(String::new());
        }
    }
    (cases, heads)
}

/// Runs every case of a file; gives how many there are.
fn run_file(name: &str, answer: impl Fn(&str) -> String) -> usize {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read_to_string(&path).unwrap();
    let (cases, heads) = cases_of(&file);
    let answers: Vec<String> = cases.iter().map(|case| answer(&case.query)).collect();
    if std::env::var_os("BLESS").is_some() {
        let mut text = heads[0].clone();
        for ((case, answer), head) in cases.iter().zip(&answers).zip(&heads[1..]) {
            let _ = writeln!(text, "{}", case.query.replace('\n', "\\n").replace('\t', "\\t"));
            for line in answer.lines() {
                let _ = writeln!(text, "  {line}");
            }
            text.push_str(head);
        }
        std::fs::write(&path, text).unwrap();
        return cases.len();
    }
    let wrong: Vec<String> = cases
        .iter()
        .zip(&answers)
        .filter(|(case, answer)| case.answer != **answer)
        .map(|(case, answer)| format!("{}\n expected: {}\n      got: {answer}", case.query, case.answer))
        .collect();
    assert!(wrong.is_empty(), "{name}: {} of {} wrong\n\n{}", wrong.len(), cases.len(), wrong.join("\n\n"));
    cases.len()
}

fn write_sets(all: &mut Vec<String>, labels: &[String], sets: &[Spanset]) {
    for set in sets {
        let mut text: Vec<String> = set.spans.iter().map(|span| labels[*span as usize].clone()).collect();
        for (name, value) in &set.attributes {
            text.push(format!("[{name}={value}]"));
        }
        all.push(text.join(" "));
    }
}

/// Labels of the spans found, spansets divided by `;`.
fn search_answer(text: &str) -> String {
    let program = match Program::new(text) {
        Ok(program) => program,
        Err(error) => return format!("ERROR {error}"),
    };
    let query = parse(text).unwrap();
    let mut all = Vec::new();
    for fixture::Labelled { trace, labels } in fixture::traces() {
        let source = trace.bind(program.fields());
        let sets = program.search().unwrap().evaluate(&program.view(&source));
        assert_eq!(sets, reference::search(&query, &trace), "the reference disagrees: {text}");
        assert!(sets.is_empty() || program.prefilter().may_match(&source), "the prefilter skips: {text}");
        write_sets(&mut all, &labels, &sets);
    }
    assert_eq!(parse_syntax(&query.to_string()).unwrap(), query, "{query}");
    if all.is_empty() { "nothing".to_owned() } else { all.join(" ; ") }
}

/// The spans found with the attributes shown for each.
fn select_answer(text: &str) -> String {
    let program = Program::new(text).unwrap();
    let mut all = Vec::new();
    for fixture::Labelled { trace, labels } in fixture::traces() {
        let source = trace.bind(program.fields());
        let view = program.view(&source);
        let search = program.search().unwrap();
        for set in search.evaluate(&view) {
            for span in set.spans {
                let shown: Vec<String> = search
                    .span_attributes(&view, span as usize)
                    .into_iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                all.push(format!("{}: {}", labels[span as usize], shown.join(" ")));
            }
        }
    }
    all.join("\n")
}

/// Series over 0 s to 6 s: one point for everything, or with `step=2s:` before the query, four.
fn metrics_answer(text: &str) -> String {
    let (grid, text) = match text.strip_prefix("step=2s: ") {
        Some(text) => (TimeGrid::range(0, 6_000_000_000, 2_000_000_000).unwrap(), text),
        None => (TimeGrid::instant(0, 6_000_000_000).unwrap(), text),
    };
    let program = match Program::new(text) {
        Ok(program) => program,
        Err(error) => return format!("ERROR {error}"),
    };
    let query = parse(text).unwrap();
    assert_eq!(parse_syntax(&query.to_string()).unwrap(), query, "{query}");
    let metrics = program.metrics().unwrap();
    let mut state = metrics.start(grid, MetricsLimits { exemplars: 0, ..MetricsLimits::default() });
    for fixture::Labelled { trace, .. } in fixture::traces() {
        let source = trace.bind(program.fields());
        metrics.observe_trace(&mut state, &program.view(&source)).unwrap();
    }
    let series: Vec<String> = metrics
        .finish(state)
        .into_iter()
        .map(|series| {
            let labels: Vec<String> = series.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let points: Vec<String> = series
                .points
                .iter()
                .map(|point| {
                    format!("{}s:{}", point.timestamp_nanos / 1_000_000_000, (point.value * 1e6).round() / 1e6)
                })
                .collect();
            format!("{{{}}} {}", labels.join(", "), points.join(" "))
        })
        .collect();
    if series.is_empty() { "nothing".to_owned() } else { series.join("\n") }
}

/// The error as a person sees it.
fn error_answer(text: &str) -> String {
    match parse(text) {
        Ok(query) => format!("NO ERROR: {query}"),
        Err(error) => error.render(text),
    }
}

/// Scenario: searches of every kind over the fixed traces.
/// Guarantee: the spans, groups and aggregates written in the files, which the reference evaluator confirms.
#[test]
fn searches() {
    let files = ["fields.txt", "operators.txt", "structure.txt", "pipelines.txt", "extensions.txt"];
    let count: usize = files.iter().map(|file| run_file(file, search_answer)).sum();
    let metrics = run_file("metrics.txt", metrics_answer);
    let selected = run_file("select.txt", select_answer);
    let errors = run_file("errors.txt", error_answer);
    assert!(errors >= 80, "{errors} error cases");
    assert!(count + metrics + selected + errors >= 400, "{count} + {metrics} + {selected} + {errors}");
}

/// Scenario: a trace without spans.
/// Guarantee: it gives nothing, for every query of the suite.
#[test]
fn empty_traces_give_nothing() {
    let empty = MemoryTrace::default();
    for file in ["fields.txt", "operators.txt", "structure.txt", "pipelines.txt", "extensions.txt"] {
        let path = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
        for case in cases_of(&std::fs::read_to_string(path).unwrap()).0 {
            let program = Program::new(&case.query).unwrap();
            let source = empty.bind(program.fields());
            assert!(program.search().unwrap().evaluate(&program.view(&source)).is_empty());
        }
    }
}
