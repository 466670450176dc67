//! Cuts a text into words. Never fails: what is no word becomes a [`TokenKind::Bad`] with its reason, so that the
//! editor can colour and complete a query that is still being typed.

use super::literal_text::{bad, read_number, read_raw_string, read_string};
use super::token::{Symbol, Token, TokenKind};
use crate::ast::{Field, SCOPE_NAMES, Scope, intrinsic_by_name, scope_by_name};
use crate::error::{SourceRange, TraceqlError};
use crate::suggest::nearest;

/// Whether a bare attribute name may hold the character.
pub(crate) fn is_attribute_name_char(c: char) -> bool {
    !c.is_whitespace()
        && !matches!(c, '{' | '}' | '(' | ')' | '=' | '~' | '!' | '<' | '>' | '&' | '|' | '^' | ',' | '"' | '`')
}

/// All words of the text; the last is always [`TokenKind::End`].
pub(crate) fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        if text[at..].starts_with("//") {
            at = text[at..].find('\n').map_or(text.len(), |length| at + length);
            continue;
        }
        let (kind, end) = read_token(text, at, c);
        tokens.push(Token { kind, range: SourceRange::new(at, end) });
        at = end;
    }
    tokens.push(Token { kind: TokenKind::End, range: SourceRange::new(text.len(), text.len()) });
    tokens
}

fn read_token(text: &str, start: usize, first: char) -> (TokenKind, usize) {
    match first {
        '"' => read_string(text, start),
        '`' => read_raw_string(text, start),
        '0'..='9' => read_number(text, start),
        '.' => read_dot(text, start),
        c if c.is_alphabetic() || c == '_' => read_word(text, start),
        _ => read_symbol(text, start, first),
    }
}

fn read_symbol(text: &str, start: usize, first: char) -> (TokenKind, usize) {
    let rest = &text[start..];
    let refuse = |written: &str, meant: Option<&str>| {
        let range = SourceRange::new(start, start + written.len());
        let error = TraceqlError::at(range, format!("`{written}` is not an operator"));
        (bad(error.suggesting(meant.map(str::to_owned))), start + written.len())
    };
    if rest.starts_with("==") {
        return refuse("==", Some("="));
    }
    if rest.starts_with("<>") {
        return refuse("<>", Some("!="));
    }
    if let Some((symbol, written)) = Symbol::ALL.iter().find(|(_, written)| rest.starts_with(written)) {
        return (TokenKind::Symbol(*symbol), start + written.len());
    }
    match first {
        '&' => refuse("&", Some("&&")),
        '\'' => {
            let range = SourceRange::new(start, start + 1);
            let error = TraceqlError::at(range, "strings are written in double quotes or backquotes");
            (bad(error.suggesting(Some("\"".to_owned()))), start + 1)
        }
        _ => {
            let range = SourceRange::new(start, start + first.len_utf8());
            (bad(TraceqlError::at(range, format!("`{first}` means nothing here"))), range.end)
        }
    }
}

/// `.5` is a number, `.http.status` and `.5xx` are attributes.
fn read_dot(text: &str, start: usize) -> (TokenKind, usize) {
    let name_end = text[start + 1..].find(|c| !is_attribute_name_char(c)).map_or(text.len(), |n| start + 1 + n);
    let name = &text[start + 1..name_end];
    if name.starts_with(|c: char| c.is_ascii_digit())
        && let Ok(value) = format!("0.{name}").parse::<f64>()
        && value.is_finite()
    {
        return (TokenKind::Number(super::token::Magnitude::Float(value)), name_end);
    }
    read_attribute(text, start, start + 1, false, Scope::Unscoped)
}

/// A bare word, an intrinsic with its colon, or an attribute with its scope.
fn read_word(text: &str, start: usize) -> (TokenKind, usize) {
    let word_end = |from: usize| {
        text[from..].find(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(text.len(), |length| from + length)
    };
    let mut end = word_end(start);
    if text[end..].starts_with('.') {
        return read_scoped(text, start, end);
    }
    // A colon with nothing behind it belongs to the word too: `span:` is an intrinsic still being typed.
    while text[end..].starts_with(':') {
        end = word_end(end + 1);
    }
    (TokenKind::Word, end)
}

/// What follows a scope and its dot.
fn read_scoped(text: &str, start: usize, scope_end: usize) -> (TokenKind, usize) {
    let scope = &text[start..scope_end];
    match scope {
        "profile" => {
            let end = text[scope_end + 1..]
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .map_or(text.len(), |length| scope_end + 1 + length);
            let name = &text[start..end];
            let kind = match intrinsic_by_name(name) {
                Some(intrinsic) => TokenKind::Field(Field::Intrinsic(intrinsic)),
                None => {
                    let known = ["profile.cpu", "profile.wall", "profile.samples", "profile.function", "profile.file"];
                    let error =
                        TraceqlError::at(SourceRange::new(start, end), format!("unknown profile field `{name}`"))
                            .expecting("profile.cpu, profile.wall, profile.samples, profile.function or profile.file");
                    bad(error.suggesting(nearest(name, known).map(str::to_owned)))
                }
            };
            (kind, end)
        }
        "parent" => {
            for (prefix, scope) in [("span.", Scope::Span), ("resource.", Scope::Resource)] {
                if text[scope_end + 1..].starts_with(prefix) {
                    return read_attribute(text, start, scope_end + 1 + prefix.len(), true, scope);
                }
            }
            read_attribute(text, start, scope_end + 1, true, Scope::Unscoped)
        }
        _ => match scope_by_name(scope) {
            Some(scope) => read_attribute(text, start, scope_end + 1, false, scope),
            None => {
                let end = text[scope_end..].find(|c| !is_attribute_name_char(c)).map_or(text.len(), |n| scope_end + n);
                let error = TraceqlError::at(SourceRange::new(start, scope_end), format!("unknown scope `{scope}.`"));
                let meant = nearest(scope, SCOPE_NAMES).map(|scope| format!("{scope}{}", &text[scope_end..end]));
                let meant = meant.unwrap_or_else(|| format!(".{}", &text[start..end]));
                (bad(error.suggesting(Some(meant))), end)
            }
        },
    }
}

/// Reads bare and quoted segments until the name ends.
fn read_attribute(text: &str, start: usize, name_start: usize, of_parent: bool, scope: Scope) -> (TokenKind, usize) {
    let mut name = String::new();
    let mut at = name_start;
    while let Some(c) = text[at..].chars().next() {
        if c == '"' {
            match read_quoted_segment(text, at, &mut name) {
                Ok(end) => at = end,
                Err((error, end)) => return (bad(error), end),
            }
        } else if is_attribute_name_char(c) {
            name.push(c);
            at += c.len_utf8();
        } else {
            break;
        }
    }
    if name.is_empty() {
        let error = TraceqlError::at(SourceRange::new(start, at.max(start + 1)), "attribute has no name");
        return (bad(error.expecting("a name such as `http.method` after the dot")), at);
    }
    (TokenKind::Field(Field::Attribute { of_parent, scope, name }), at)
}

/// Reads `"…"` inside an attribute name, where only `\"` and `\\` are escapes.
fn read_quoted_segment(text: &str, quote: usize, name: &mut String) -> Result<usize, (TraceqlError, usize)> {
    let mut chars = text[quote + 1..].char_indices();
    while let Some((offset, c)) = chars.next() {
        let at = quote + 1 + offset;
        match c {
            '"' => return Ok(at + 1),
            '\\' => match chars.next() {
                Some((_, c @ ('"' | '\\'))) => name.push(c),
                _ => {
                    let error = TraceqlError::at(SourceRange::new(at, at + 1), "unknown escape in attribute name");
                    return Err((error.expecting("`\\\"` or `\\\\`"), text.len()));
                }
            },
            c => name.push(c),
        }
    }
    let error = TraceqlError::at(SourceRange::new(quote, quote + 1), "attribute name is not closed");
    Err((error.expecting("a closing `\"`"), text.len()))
}
