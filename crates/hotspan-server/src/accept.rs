//! The `Accept` header: which of several forms an asker likes best (RFC 9110, 12.5.1).

use std::cmp::Reverse;

use http::{HeaderMap, header};

/// What an asker reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Accept {
    ranges: Vec<MediaRange>,
}

/// One kind of answer, or several by `*`.
#[derive(Debug, PartialEq, Eq)]
struct MediaRange {
    kind: String,
    subkind: String,
    /// In lower case; a range is narrowed down by them.
    parameters: Vec<(String, String)>,
    /// From 0, which is not wanted, to 1000.
    quality: u16,
}

/// How closely a range says what is meant: by `*/*`, by `text/*`, by `text/plain`, with parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    Anything,
    Kind,
    Named,
    Narrowed(usize),
}

impl Accept {
    /// What the headers of a request say. Ranges that can't be read say nothing.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
        Self { ranges: lines.flat_map(|line| line.split(',')).filter_map(MediaRange::parse).collect() }
    }

    /// The media type that is liked best. Of those that are liked as much, the one that is said most closely, then the one
    /// that is said first, then the first that is offered. None if none of them is wanted.
    pub(crate) fn best<'o>(&self, offered: &[&'o str]) -> Option<&'o str> {
        let liked = offered.iter().enumerate().filter_map(|(place, offer)| {
            let (quality, closeness, said_at) = self.opinion_of(&MediaRange::parse(offer)?)?;
            (quality > 0).then_some(((quality, closeness, Reverse(said_at), Reverse(place)), *offer))
        });
        liked.max_by_key(|(rank, _)| *rank).map(|(_, offer)| offer)
    }

    /// What the closest range that means a media type says of it, and where that stands.
    fn opinion_of(&self, offer: &MediaRange) -> Option<(u16, Closeness, usize)> {
        let meant =
            |(place, range): (usize, &MediaRange)| Some((range.closeness_to(offer)?, Reverse(place), range.quality));
        let (closeness, Reverse(place), quality) = self.ranges.iter().enumerate().filter_map(meant).max()?;
        Some((quality, closeness, place))
    }
}

impl MediaRange {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subkind) = parts.next()?.split_once('/')?;
        let mut range = Self {
            kind: kind.trim().to_ascii_lowercase(),
            subkind: subkind.trim().to_ascii_lowercase(),
            parameters: Vec::new(),
            quality: 1000,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().trim_matches('"').to_ascii_lowercase());
            if name == "q" {
                let share = value.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share))?;
                range.quality = (share * 1000.0).round() as u16;
            } else {
                range.parameters.push((name, value));
            }
        }
        Some(range)
    }

    /// How closely this range means a media type; none if it means another. A parameter that only one of them has does not
    /// part them: who asks for an escaping, say, that nobody here has heard of, still asks for that type.
    fn closeness_to(&self, offer: &Self) -> Option<Closeness> {
        match (self.kind.as_str(), self.subkind.as_str()) {
            ("*", "*") => Some(Closeness::Anything),
            (kind, "*") => (kind == offer.kind).then_some(Closeness::Kind),
            (kind, subkind) if kind == offer.kind && subkind == offer.subkind => {
                let of_offer = |name: &str| offer.parameters.iter().find(|(other, _)| other == name);
                let shared: Vec<bool> =
                    self.parameters.iter().filter_map(|(name, value)| Some(of_offer(name)?.1 == *value)).collect();
                match shared.len() {
                    0 => Some(Closeness::Named),
                    count => shared.iter().all(|same| *same).then_some(Closeness::Narrowed(count)),
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best<'o>(accept: &[&'static str], offered: &[&'o str]) -> Option<&'o str> {
        let mut headers = HeaderMap::new();
        for line in accept {
            headers.append(header::ACCEPT, http::HeaderValue::from_static(line));
        }
        Accept::of(&headers).best(offered)
    }

    /// Scenario: headers as curl, browsers and scripts send them, and with weights, in any case, twice, and broken.
    /// Guarantee: the heaviest form is taken, of equals the one that is named, then the first; what weighs 0 never is.
    #[test]
    fn the_heaviest_form_is_taken() {
        let forms = ["text/plain", "text/html", "application/json"];
        let cases: &[(&[&'static str], Option<&str>)] = &[
            (&["*/*"], Some("text/plain")),
            (&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], Some("text/html")),
            (&["APPLICATION/JSON"], Some("application/json")),
            (&["application/json, text/plain, */*"], Some("application/json")),
            (&["*/*, application/json"], Some("application/json")),
            (&["text/html;q=0,*/*"], Some("text/plain")),
            (&["text/html;q=0, text/plain; q=0.0 ,*/*;q=0.1"], Some("application/json")),
            (&["application/json;q=0.5,text/html"], Some("text/html")),
            (&["application/json;q=0.5", "text/html;q=0.6"], Some("text/html")),
            (&["text/*;q=0.3, application/*;q=0.4"], Some("application/json")),
            (&["application/json;charset=utf-8"], Some("application/json")),
            (&["text/html;q=2, nonsense, text/plain;q=0.1"], Some("text/plain")),
            (&["image/png"], None),
            (&[], None),
        ];
        for (accept, wanted) in cases {
            assert_eq!(best(accept, &forms), *wanted, "{accept:?}");
        }
    }

    /// Scenario: a type that is asked for in versions, one of which is offered, as Prometheus asks.
    /// Guarantee: the weight of that version counts, and other versions do not stand for it.
    #[test]
    fn versions_are_told_apart() {
        let forms = ["text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0"];
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                          application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert_eq!(best(&[prometheus], &forms), Some(forms[1]));
        assert_eq!(best(&["application/openmetrics-text"], &forms), Some(forms[1]));
        assert_eq!(best(&["application/openmetrics-text;version=0.0.1,*/*;q=0.1"], &forms), Some(forms[0]));
        assert_eq!(best(&["text/plain;version=0.0.4"], &forms), Some(forms[0]));
    }
}
