//! Flamebearer in: a flame graph that Pyroscope or Grafana exported, back to stacks.

use std::borrow::Cow;

use hotspan_model::call_path::{NO_PATH, PathIndex};
use hotspan_model::frame::FrameIndex;
use hotspan_model::{ProfileSet, ProfileType};

use crate::collapsed::StackSink;
use crate::decode_options::{DecodeOptions, TextType};
use crate::file_error::{FileError, Result};
use crate::json_scan::{Token, Tokens};
use crate::naming::nanos_per_sample;

const FORMAT: &str = "flamebearer";

/// A file whose numbers have been read and not yet been made sense of.
#[derive(Debug, Default)]
struct File<'a> {
    /// Names, and where each stands.
    names: Vec<(Cow<'a, str>, usize)>,
    /// The numbers of all levels.
    numbers: Vec<i64>,
    /// Where the numbers of each level end, and where it stands.
    levels: Vec<(usize, usize)>,
    metadata: Metadata<'a>,
}

#[derive(Debug, Default)]
struct Metadata<'a> {
    format: (Cow<'a, str>, usize),
    name: Cow<'a, str>,
    units: Cow<'a, str>,
    sample_rate: u32,
}

/// Reads the flame graph of one profile.
pub fn decode<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<ProfileSet<'a>> {
    let file = File::read(bytes, options)?;
    let (format, offset) = &file.metadata.format;
    if format == "double" {
        let found = "a comparison of two (format double); export each of them alone";
        return Err(FileError::malformed(FORMAT, *offset, "the flame graph of one profile", found));
    }
    let mut sink = StackSink::of_type(FORMAT, options, values_of(&file.metadata, options));
    let names = file.names.into_iter().map(|(name, offset)| sink.frame(name, offset));
    let frames = names.collect::<Result<_>>()?;
    let mut walk = Walk { sink, frames };
    let mut callers = Vec::new();
    let mut start = 0;
    for (depth, (end, offset)) in file.levels.iter().enumerate() {
        callers = walk.level((depth, *offset), &file.numbers[start..*end], &callers)?;
        start = *end;
    }
    walk.sink.finish()
}

impl<'a> File<'a> {
    fn read(bytes: &'a [u8], options: &DecodeOptions) -> Result<Self> {
        let mut tokens = Tokens::new(FORMAT, bytes);
        let mut file = Self::default();
        let (mut has_names, mut has_levels) = (false, false);
        tokens.expect(&Token::ObjectStart, "an object")?;
        while let Token::Key(key) = tokens.require()? {
            match (key.as_ref(), tokens.require()?) {
                ("flamebearer", Token::ObjectStart) => {
                    while let Token::Key(key) = tokens.require()? {
                        match (key.as_ref(), tokens.require()?) {
                            ("names", Token::ArrayStart) => {
                                has_names = true;
                                file.read_names(&mut tokens, options.max_symbols())?;
                            }
                            ("levels", Token::ArrayStart) => {
                                has_levels = true;
                                file.read_levels(&mut tokens, options.max_symbols())?;
                            }
                            (_, other) => tokens.skip(&other)?,
                        }
                    }
                }
                ("metadata", Token::ObjectStart) => file.metadata.read(&mut tokens)?,
                (_, other) => tokens.skip(&other)?,
            }
        }
        tokens.next()?;
        if has_names && has_levels {
            return Ok(file);
        }
        Err(FileError::malformed(FORMAT, bytes.len(), "an object flamebearer with names and levels", "none"))
    }

    fn read_names(&mut self, tokens: &mut Tokens<'a>, most: usize) -> Result<()> {
        loop {
            let (token, offset) = (tokens.require()?, tokens.last_offset());
            match token {
                Token::ArrayEnd => return Ok(()),
                Token::Text(_) if self.names.len() == most => {
                    return Err(FileError::too_large(FORMAT, offset, "names", most as u64));
                }
                Token::Text(name) => self.names.push((name, offset)),
                other => return Err(FileError::malformed(FORMAT, offset, "a name in quotes", format!("{other:?}"))),
            }
        }
    }

    fn read_levels(&mut self, tokens: &mut Tokens<'a>, most: usize) -> Result<()> {
        loop {
            let (token, level_at) = (tokens.require()?, tokens.last_offset());
            match token {
                Token::ArrayEnd => return Ok(()),
                Token::ArrayStart => {}
                other => return Err(FileError::malformed(FORMAT, level_at, "a list of bars", format!("{other:?}"))),
            }
            while let Token::Number(_) = tokens.require()? {
                // A float would round large values, and bars would no longer lie below their callers.
                let text = tokens.last_text();
                let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                let number = number.ok_or_else(|| self.not_a_number(tokens))?;
                self.numbers.push(number);
                if self.numbers.len() > 4 * most {
                    return Err(FileError::too_large(FORMAT, tokens.last_offset(), "bars", most as u64));
                }
            }
            if tokens.last_text() != b"]" {
                return Err(self.not_a_number(tokens));
            }
            self.levels.push((self.numbers.len(), level_at));
            if self.levels.len() > most {
                return Err(FileError::too_large(FORMAT, level_at, "levels", most as u64));
            }
        }
    }

    fn not_a_number(&self, tokens: &Tokens<'_>) -> FileError {
        let expected = format!("a whole number in level {}", self.levels.len());
        let found = String::from_utf8_lossy(tokens.last_text()).into_owned();
        FileError::malformed(FORMAT, tokens.last_offset(), expected, found)
    }
}

impl<'a> Metadata<'a> {
    fn read(&mut self, tokens: &mut Tokens<'a>) -> Result<()> {
        while let Token::Key(key) = tokens.require()? {
            match (key.as_ref(), tokens.require()?) {
                ("format", Token::Text(format)) => self.format = (format, tokens.last_offset()),
                ("name", Token::Text(name)) => self.name = name,
                ("units", Token::Text(units)) => self.units = units,
                ("sampleRate", Token::Number(rate)) => self.sample_rate = rate.clamp(0.0, 4e9) as u32,
                (_, other) => tokens.skip(&other)?,
            }
        }
        Ok(())
    }
}

/// What the bars measure. Samples that were counted become time by their rate.
fn values_of(metadata: &Metadata<'_>, options: &DecodeOptions) -> TextType {
    let rate = if metadata.sample_rate == 0 { 100 } else { metadata.sample_rate };
    let as_counts = options.text_type.as_ref().is_some_and(|given| given.profile_type.sample_unit == "count");
    let (unit, scale) = match metadata.units.as_ref() {
        "" => return TextType::of_counts(options),
        "samples" if as_counts => ("count", 1),
        "samples" => ("nanoseconds", nanos_per_sample(rate)),
        "objects" | "goroutines" | "exceptions" | "lock_samples" => ("count", 1),
        "lock_nanoseconds" => ("nanoseconds", 1),
        unit => (unit, 1),
    };
    // Older exports write the name of the application before the type, and labels after it.
    let name = metadata.name.split('{').next().unwrap_or_default();
    let name = name.rsplit('.').next().unwrap_or_default();
    let name = match (name, unit) {
        ("samples", "nanoseconds") | ("", "nanoseconds") => "cpu",
        ("", unit) => unit,
        (name, _) => name,
    };
    let known = name.parse().ok().filter(|known: &ProfileType| known.sample_unit == unit);
    let profile_type = known.unwrap_or_else(|| {
        let name = name.replace(':', "_");
        ProfileType::from_parts([&name, &name, &unit.replace(':', "_"), "", ""])
    });
    // The file knows what it has counted; what that is called may be said by others.
    TextType { profile_type: options.type_in_unit_of(profile_type), scale }
}

/// A bar that others may lie below.
struct Bar {
    start: i64,
    end: i64,
    path: PathIndex,
}

struct Walk<'a> {
    sink: StackSink<'a>,
    /// The frames of the file by their numbers.
    frames: Vec<FrameIndex>,
}

impl Walk<'_> {
    /// Adds the own values of a level's bars. The caller of a bar is the one above it, wherever that has its place.
    fn level(&mut self, (depth, offset): (usize, usize), numbers: &[i64], mut callers: &[Bar]) -> Result<Vec<Bar>> {
        let wrong = |expected: &str, found: &dyn std::fmt::Debug| {
            FileError::malformed(FORMAT, offset, format!("{expected} in level {depth}"), format!("{found:?}"))
        };
        let (bars, rest) = numbers.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(wrong("four numbers a bar", &numbers.len()));
        }
        let mut placed = Vec::with_capacity(bars.len());
        let mut end = 0i64;
        for bar in bars {
            let [gap, total, own, name] = *bar;
            let span = end.checked_add(gap).and_then(|start| Some((start, start.checked_add(total)?)));
            let Some((start, bar_end)) = span.filter(|_| gap >= 0 && (0..=total).contains(&own)) else {
                return Err(wrong("a bar that starts after the one before and holds its own value", bar));
            };
            end = bar_end;
            let frame = usize::try_from(name).ok().and_then(|name| self.frames.get(name)).copied();
            let frame = frame.ok_or_else(|| wrong("the number of a name", &name))?;
            // Nothing was measured there or below.
            if total == 0 {
                continue;
            }
            // The first level is the whole, which is no function.
            let path = if depth == 0 {
                NO_PATH
            } else {
                let passed = callers.iter().take_while(|caller| caller.end <= start).count();
                callers = &callers[passed..];
                let caller = callers.first().filter(|caller| caller.start <= start && end <= caller.end);
                let caller = caller.ok_or_else(|| wrong("a bar below one of the level above", bar))?;
                self.sink.child(caller.path, frame, offset)?
            };
            // Neither is negative.
            self.sink.add(path, own.unsigned_abs(), offset)?;
            placed.push(Bar { start, end, path });
        }
        Ok(placed)
    }
}

#[cfg(test)]
mod tests {
    use hotspan_model::FlameTree;

    use super::*;
    use crate::Limits;
    use crate::diff_tree::DiffTree;
    use crate::flamebearer::FlamebearerProfile;
    use crate::profile_tree::flame_tree;

    fn read(json: &str) -> Result<(ProfileType, Vec<(String, i64)>)> {
        let set = decode(json.as_bytes(), &DecodeOptions::default())?;
        let text = crate::collapsed::encode(&flame_tree(&set, &set.profiles));
        let line = |line: &str| {
            let (stack, value) = line.rsplit_once(' ').unwrap();
            (stack.to_owned(), value.parse().unwrap())
        };
        let mut stacks: Vec<_> = text.lines().map(line).collect();
        stacks.sort();
        Ok((set.profiles[0].profile_type.clone(), stacks))
    }

    /// Scenario: trees of several types, with gaps, repeated names and own values of callers, written and read.
    /// Guarantee: the same type and the same values of the same stacks.
    #[test]
    fn written_and_read() {
        let stacks = [("main", 4), ("main;x;main", 3), ("main;y", 5), ("start", 2), ("start;x", 7)];
        let mut tree = FlameTree::default();
        for (stack, value) in stacks {
            tree.add_stack(stack.split(';'), value);
        }
        for name in ["cpu", "wall", "alloc_objects", "inuse_space", "goroutine", "samples", "a:odd:count:b:c"] {
            let profile_type: ProfileType = name.parse().unwrap();
            let json = serde_json::to_string(&FlamebearerProfile::single(&tree, &profile_type)).unwrap();
            let (read_type, read_stacks) = read(&json).unwrap();
            assert_eq!(read_stacks, stacks.map(|(stack, value)| (stack.to_owned(), value)), "{name}");
            let measured = |of: &ProfileType| (of.sample_type.clone(), of.sample_unit.clone());
            assert_eq!(measured(&read_type), measured(&profile_type), "{name}");
        }
    }

    /// Scenario: an older export, whose values are samples of 100 a second and whose name is that of an application.
    /// Guarantee: they are CPU time in nanoseconds, also if they are said to be.
    #[test]
    fn counted_samples_are_time() {
        let json = r#"{"version":1,"metadata":{"format":"single","name":"shop.cpu{}","units":"samples","sampleRate":100},
            "flamebearer":{"names":["total","main"],"levels":[[0,3,0,0],[0,3,3,1]],"numTicks":3,"maxSelf":3}}"#;
        assert_eq!(read(json).unwrap(), (ProfileType::cpu(), vec![("main".to_owned(), 30_000_000)]));
        let said = Some(TextType { profile_type: ProfileType::cpu(), scale: 1 });
        let options = DecodeOptions { text_type: said, ..DecodeOptions::default() };
        assert_eq!(decode(json.as_bytes(), &options).unwrap().profiles[0].samples[0].value, 30_000_000);
    }

    /// Scenario: graphs whose numbers lead nowhere, one with more bars than there may be, and a comparison of two.
    /// Guarantee: each is refused with what was expected.
    #[test]
    fn broken_graphs_are_refused() {
        let graph = |levels: &str| format!(r#"{{"flamebearer":{{"names":["total","a"],"levels":{levels}}}}}"#);
        for (levels, expected) in [
            ("[[0,3,0]]", "four numbers"),
            ("[[0,3,0,0],[0,3,3,2]]", "number of a name"),
            ("[[0,3,0,0],[0,3,3,-1]]", "number of a name"),
            ("[[0,3,0,0],[-1,3,3,1]]", "starts after"),
            ("[[0,3,0,0],[0,3,4,1]]", "own value"),
            ("[[0,3,0,0],[0,-3,-4,1]]", "own value"),
            ("[[0,3,0,0],[0,4,4,1]]", "level above in level 1"),
            ("[[0,3,0,0],[3,1,1,1]]", "level above in level 1"),
            ("[[0,3,0,0],[],[0,3,3,1]]", "level above in level 2"),
            ("[[9223372036854775807,9223372036854775807,0,0]]", "starts after"),
            ("[[0,3,0,0],[0,1.5,1,1]]", "a whole number in level 1"),
        ] {
            let error = read(&graph(levels)).unwrap_err().to_string();
            assert!(error.contains(expected), "{levels}: {error}");
        }
        assert_eq!(read(&graph("[[0,3,1,0],[1,2,2,1,0,0,0,1]]")).unwrap().1, [("a".to_owned(), 2)]);
        let limits = Limits { max_decoded_bytes: 1024, ..Limits::default() };
        let few_bars = DecodeOptions { limits, ..DecodeOptions::default() };
        assert!(decode(graph("[[0,3,0,0],[0,3,3,1]]").as_bytes(), &few_bars).is_ok());
        let many = format!("[[0,5,0,0],[{}]]", ["0,1,1,1"; 4].join(","));
        let error = decode(graph(&many).as_bytes(), &few_bars).unwrap_err();
        assert!(error.to_string().contains("at most 4 bars"), "{error}");
        let both = DiffTree::new(&FlameTree::default(), &FlameTree::default());
        let json = serde_json::to_string(&FlamebearerProfile::double(&both, &ProfileType::cpu())).unwrap();
        assert!(read(&json).unwrap_err().to_string().contains("comparison of two"));
    }
}
