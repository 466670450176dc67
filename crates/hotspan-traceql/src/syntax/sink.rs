//! Hotspan's last stages, which hand the spans to profiles.

use super::parser::{Parsed, Parser};
use super::pipeline::{Operand, into_pipeline};
use super::token::{Symbol, TokenKind};
use crate::ast::Sink;
use crate::error::TraceqlError;

impl Parser<'_> {
    pub(super) fn sink(&mut self, word: &str) -> Parsed<Sink> {
        self.advance();
        self.expect_symbol(Symbol::OpenParen)?;
        let sink = match word {
            "flame" => Sink::Flame { profile_type: self.profile_type()? },
            "top" => {
                let count = self.whole_number(1, "how many functions to list")?;
                self.expect_symbol(Symbol::Comma)?;
                Sink::Top { count, profile_type: self.profile_type()? }
            }
            "diff" => {
                let baseline = match self.deeper(|parser| parser.pipeline(None))? {
                    Operand::Spans(spans) => Box::new(into_pipeline(spans.node)),
                    other => {
                        return Err(TraceqlError::at(other.range(), format!("{} is no baseline", other.describe()))
                            .expecting("a spanset such as `{ status != error }`"));
                    }
                };
                self.expect_symbol(Symbol::Comma)?;
                Sink::Diff { baseline, profile_type: self.profile_type()? }
            }
            _ => Sink::Ledger,
        };
        self.expect_symbol(Symbol::CloseParen)?;
        Ok(sink)
    }

    fn profile_type(&mut self) -> Parsed<String> {
        let name = match self.kind() {
            TokenKind::Word => self.written().to_owned(),
            TokenKind::Text(text) if !text.is_empty() => text.clone(),
            _ => return Err(self.unexpected("a profile type such as `cpu`, `wall` or `alloc_space`")),
        };
        self.advance();
        Ok(name)
    }
}
