//! What can go wrong with a statement, told by who can mend it.

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use hotspan_lake::{LakeError, Table};

/// How DataFusion asks for a report of what it takes for a bug of its own, and where to.
const BEGGING: &str = "\nThis issue was likely caused by a bug";
const TRACKER: &str = "https://github.com/apache/datafusion/issues";

/// An error of a statement.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The statement can't be understood, or asks for what is not there.
    #[error("{0}")]
    Invalid(String),
    /// The statement needs more than a limit allows.
    #[error("{0}")]
    Limit(String),
    /// The store failed.
    #[error("{0}")]
    Failed(String),
}

impl From<DataFusionError> for SqlError {
    fn from(error: DataFusionError) -> Self {
        let text = message_of(&error);
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => Self::Limit(format!(
                "the statement needs more memory than is left for SQL (sql.memory): {text}; narrow its time range or \
                 group by less"
            )),
            DataFusionError::External(source) if source.is::<LakeError>() => Self::Failed(text),
            DataFusionError::IoError(_) | DataFusionError::ExecutionJoin(_) => Self::Failed(text),
            // Also what DataFusion takes for a bug of its own (`Internal`): a statement asks for what it has not thought of.
            _ => Self::Invalid(text),
        }
    }
}

/// What was wrong, and where in the statement: without the layers that an error came through, and how each is called.
pub(crate) fn message_of(error: &DataFusionError) -> String {
    let root = error.find_root();
    if let DataFusionError::SQL(error, _) = root {
        return match error.as_ref() {
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => place_first(text),
            ParserError::RecursionLimitExceeded => "the statement nests too deep".to_owned(),
        };
    }
    let text = root.message();
    let text = text.split(DataFusionError::BACK_TRACE_SEP).next().unwrap_or_default();
    let text = &match root {
        // Some of these are nothing but the name of a clause, others have all of its tree behind it.
        DataFusionError::NotImplemented(_) if text.contains(SINGLE_STATEMENT) => ONE_STATEMENT.to_owned(),
        DataFusionError::NotImplemented(_) => format!("not supported: {}", without_tree(text)),
        _ => with_way_out(without_begging(text)),
    };
    match error.diagnostic().and_then(|diagnostic| diagnostic.span) {
        Some(span) => format!("line {}, column {}: {text}", span.start.line, span.start.column),
        None => text.to_owned(),
    }
}

/// The text up to where it shows a statement as the planner has it in memory.
fn without_tree(text: &str) -> &str {
    let trees = ["(", " {"].into_iter().filter_map(|opening| text.split_once(opening));
    let told = trees.filter(|(_, tree)| tree.contains(" { ")).map(|(told, _)| told).min_by_key(|told| told.len());
    told.unwrap_or(text)
}

/// The text, with what to write instead where a text is compared with bytes: nearly always an id as people read it.
fn with_way_out(text: &str) -> String {
    if text.contains("comparison operation") && text.contains("FixedSizeBinary") && text.contains("Utf8") {
        return format!("{text}; ids are bytes: trace_id = X'0af7651916cd43dd8448eb211c80319c'");
    }
    if text.contains("comparison operation") && text.contains("Timestamp(ns)") && text.contains("Int64") {
        return format!(
            "{text}; times are timestamps: to_timestamp_nanos(1795070325937300903), now() - INTERVAL '1 hour'"
        );
    }
    if let Some(name) = text.strip_prefix("table 'lake.").and_then(|rest| rest.strip_suffix("' not found")) {
        return format!("there is no table {}; there are {}", name.trim_start_matches("main."), all_tables());
    }
    text.replace(NO_WAY_OUT, "")
}

/// What the planner offers beside quotes, and nobody can do here.
const NO_WAY_OUT: &str = " or disable the datafusion.sql_parser.enable_ident_normalization configuration";

/// What the planner says of several statements, and what is said instead.
const SINGLE_STATEMENT: &str = "only supports a single SQL statement";
const ONE_STATEMENT: &str = "one statement at a time: send each by itself";

fn all_tables() -> String {
    let names: Vec<&str> = Table::ALL.iter().map(|table| table.name()).collect();
    format!("{}, hotspan.segments and hotspan.queries", names.join(", "))
}

/// The text without DataFusion's request for a report of a bug. What the planner adds behind one says more than the rest.
fn without_begging(text: &str) -> &str {
    let Some((before, begging)) = text.split_once(BEGGING) else { return text };
    let behind = begging.rsplit_once(TRACKER).map_or("", |(_, behind)| behind.trim_start_matches(['.', ' ']));
    if behind.is_empty() { before.trim_end_matches('.') } else { behind }
}

/// The parser writes the place behind the message, if it knows it.
fn place_first(text: &str) -> String {
    let placed =
        text.rsplit_once(" at Line: ").and_then(|(message, place)| Some((message, place.split_once(", Column: ")?)));
    match placed {
        Some((message, (line, column))) => format!("line {line}, column {column}: {message}"),
        None => text.to_owned(),
    }
}

/// An error of the lake, on its way through DataFusion.
pub(crate) fn lake_error(error: LakeError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
