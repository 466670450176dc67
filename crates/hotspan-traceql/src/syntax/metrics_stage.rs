//! Metrics functions and what may follow them.

use super::parser::{Parsed, Parser, SECOND_STAGES, Tall};
use super::token::{Magnitude, Symbol, TokenKind};
use crate::ast::{MetricsExpr, MetricsFunction, MetricsQuery, Pipeline, SecondStage};
use crate::error::{SourceRange, TraceqlError};
use crate::suggest::nearest;

impl Parser<'_> {
    pub(super) fn metrics_function(&mut self, pipeline: Pipeline, height: usize) -> Parsed<Tall<MetricsExpr>> {
        let start = self.range();
        let name = self.written();
        self.advance();
        self.expect_symbol(Symbol::OpenParen)?;
        let mut heights = vec![height];
        let function = match name {
            "rate" => MetricsFunction::Rate,
            "count_over_time" => MetricsFunction::CountOverTime,
            "compare" => self.compare_arguments()?,
            _ => {
                let of = self.field_expr()?;
                heights.push(of.height);
                match name {
                    "min_over_time" => MetricsFunction::MinOverTime(of.node),
                    "max_over_time" => MetricsFunction::MaxOverTime(of.node),
                    "sum_over_time" => MetricsFunction::SumOverTime(of.node),
                    "avg_over_time" => MetricsFunction::AvgOverTime(of.node),
                    "histogram_over_time" => MetricsFunction::HistogramOverTime(of.node),
                    _ => MetricsFunction::QuantileOverTime(of.node, self.quantiles()?),
                }
            }
        };
        self.expect_symbol(Symbol::CloseParen)?;
        let mut by = Vec::new();
        if self.word() == Some("by") {
            if name == "compare" {
                return Err(TraceqlError::at(
                    self.range(),
                    "`compare()` groups by every attribute and takes no `by(…)`",
                ));
            }
            self.advance();
            self.expect_symbol(Symbol::OpenParen)?;
            by = self.field_list("a field to group by")?;
            self.expect_symbol(Symbol::CloseParen)?;
        }
        let query = MetricsQuery { pipeline, function, by, range: start.to(self.last_range()) };
        self.above(MetricsExpr::Query(Box::new(query)), &heights)
    }

    fn quantiles(&mut self) -> Parsed<Vec<f64>> {
        let mut quantiles = Vec::new();
        self.expect_symbol(Symbol::Comma)?;
        loop {
            let range = self.range();
            let quantile = match self.kind() {
                TokenKind::Number(Magnitude::Float(value)) => *value,
                TokenKind::Number(Magnitude::Int(value)) => *value as f64,
                _ => return Err(self.unexpected("a quantile between 0 and 1")),
            };
            if !(0.0..=1.0).contains(&quantile) {
                return Err(TraceqlError::at(range, format!("quantile `{}` is not between 0 and 1", self.written())));
            }
            self.advance();
            quantiles.push(quantile);
            if !self.take_symbol(Symbol::Comma) {
                return Ok(quantiles);
            }
        }
    }

    fn compare_arguments(&mut self) -> Parsed<MetricsFunction> {
        let selection = self.filter()?.map(|tall| tall.node);
        let mut top = None;
        let mut window = None;
        if self.take_symbol(Symbol::Comma) {
            top = Some(self.whole_number(1, "the number of values for each attribute")?);
            if self.take_symbol(Symbol::Comma) {
                let from = self.nanoseconds()?;
                self.expect_symbol(Symbol::Comma)?;
                let to_range = self.range();
                let to = self.nanoseconds()?;
                if to <= from {
                    return Err(TraceqlError::at(to_range, "the selection's end is not after its start"));
                }
                window = Some((from, to));
            }
        }
        Ok(MetricsFunction::Compare { selection, top, window })
    }

    fn nanoseconds(&mut self) -> Parsed<u64> {
        let TokenKind::Number(Magnitude::Int(value)) = *self.kind() else {
            return Err(self.unexpected("a time in nanoseconds since 1970"));
        };
        self.advance();
        Ok(value)
    }

    pub(super) fn whole_number(&mut self, least: u32, expected: &str) -> Parsed<u32> {
        let number = match self.kind() {
            TokenKind::Number(Magnitude::Int(value)) => u32::try_from(*value).ok().filter(|value| *value >= least),
            _ => None,
        };
        let Some(number) = number else {
            return Err(self.unexpected(&format!("{expected}, at least {least}")));
        };
        self.advance();
        Ok(number)
    }

    /// Comparisons right behind a metrics function: `rate() > 10`.
    pub(super) fn trailing_filters(&mut self, mut series: Tall<MetricsExpr>) -> Parsed<Tall<MetricsExpr>> {
        while self.compare_op().is_some() {
            series = self.series_filter(series)?;
        }
        Ok(series)
    }

    fn series_filter(&mut self, of: Tall<MetricsExpr>) -> Parsed<Tall<MetricsExpr>> {
        let start = self.range();
        let op = match self.compare_op() {
            Some(op) if !op.is_regex() => op,
            _ => return Err(self.unexpected("a comparison, `topk(…)` or `bottomk(…)`")),
        };
        self.advance();
        let Some(value) = self.literal()? else {
            return Err(self.unexpected("a number or a duration"));
        };
        let range = start.to(self.last_range());
        let stage = SecondStage::Filter(op, value);
        self.above(MetricsExpr::Staged { of: Box::new(of.node), stage, range }, &[of.height])
    }

    pub(super) fn second_stage(&mut self, of: Tall<MetricsExpr>) -> Parsed<Tall<MetricsExpr>> {
        let start = self.range();
        let word = self.word().unwrap_or_default();
        if !SECOND_STAGES.contains(&word) {
            if self.compare_op().is_some() {
                let staged = self.series_filter(of)?;
                return self.trailing_filters(staged);
            }
            let meant = nearest(word, SECOND_STAGES).map(str::to_owned);
            return Err(self
                .unexpected("`topk(…)`, `bottomk(…)` or a comparison after a metrics function")
                .suggesting(meant));
        }
        self.advance();
        self.expect_symbol(Symbol::OpenParen)?;
        let count = self.whole_number(1, "how many series to keep")?;
        self.expect_symbol(Symbol::CloseParen)?;
        let stage = if word == "topk" { SecondStage::TopK(count) } else { SecondStage::BottomK(count) };
        let range = start.to(self.last_range());
        let staged = self.above(MetricsExpr::Staged { of: Box::new(of.node), stage, range }, &[of.height])?;
        self.trailing_filters(staged)
    }
}

impl MetricsExpr {
    /// Where it stands.
    pub fn range(&self) -> SourceRange {
        match self {
            Self::Query(query) => query.pipeline.range.to(query.range),
            Self::Number { range, .. } => *range,
            Self::Binary { lhs, rhs, .. } => lhs.range().to(rhs.range()),
            Self::Staged { of, range, .. } => of.range().to(*range),
        }
    }
}
