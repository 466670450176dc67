//! Writes JFR chunks: events that no profiler at hand records, and chunks that none would.

/// A value of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Field<'v> {
    /// A whole number.
    Long(u64),
    /// A text in place.
    Text(&'v str),
    /// The key of a constant of this type.
    Constant(u64, u64),
}

pub(crate) const LONG: u64 = 1;
pub(crate) const TEXT: u64 = 2;
pub(crate) const THREAD: u64 = 3;
pub(crate) const SYMBOL: u64 = 4;
pub(crate) const CLASS: u64 = 5;
pub(crate) const METHOD: u64 = 6;
pub(crate) const FRAME_TYPE: u64 = 7;
const STACK_FRAME: u64 = 8;
pub(crate) const STACK_TRACE: u64 = 9;
pub(crate) const OLD_OBJECT: u64 = 10;
const FIRST_EVENT: u64 = 100;

/// A field of a type: name, type, whether it is the key of a constant, whether it is a list.
type Layout = (String, u64, bool, bool);

/// A constant: its key and its bytes.
type Constant = (u64, Vec<u8>);

/// A chunk that is being written. Ticks are nanoseconds since the chunk's start.
#[derive(Debug, Default)]
pub(crate) struct JfrChunk {
    start: u64,
    classes: Vec<(u64, String, Vec<Layout>)>,
    events: Vec<u8>,
    pools: Vec<(u64, Vec<Constant>)>,
}

impl JfrChunk {
    /// Starts a chunk at a time in nanoseconds since 1970, with one thread, and stack 1: `Work.leaf` below `Work.main`.
    pub(crate) fn new(start: u64) -> Self {
        let mut chunk = Self { start, ..Self::default() };
        let field = |name: &str, class, constant, array| (name.to_owned(), class, constant, array);
        let text = |name: &str| field(name, TEXT, false, false);
        let long = |name: &str| field(name, LONG, false, false);
        let key = |name: &str, class| field(name, class, true, false);
        for (class, name, fields) in [
            (LONG, "long", vec![]),
            (TEXT, "java.lang.String", vec![]),
            (
                THREAD,
                "java.lang.Thread",
                vec![text("osName"), long("osThreadId"), text("javaName"), long("javaThreadId")],
            ),
            (SYMBOL, "jdk.types.Symbol", vec![text("string")]),
            (CLASS, "java.lang.Class", vec![key("name", SYMBOL)]),
            (METHOD, "jdk.types.Method", vec![key("type", CLASS), key("name", SYMBOL)]),
            (FRAME_TYPE, "jdk.types.FrameType", vec![text("description")]),
            (
                STACK_FRAME,
                "jdk.types.StackFrame",
                vec![key("method", METHOD), long("lineNumber"), key("type", FRAME_TYPE)],
            ),
            (STACK_TRACE, "jdk.types.StackTrace", vec![field("frames", STACK_FRAME, false, true)]),
            (OLD_OBJECT, "jdk.types.OldObject", vec![long("address"), key("type", CLASS)]),
        ] {
            chunk.classes.push((class, name.to_owned(), fields));
        }
        chunk.constants(THREAD, [(1, [text_of("main"), number(7), text_of("main"), number(1)].concat())]);
        chunk.constants(SYMBOL, [(1, text_of("Work")), (2, text_of("leaf")), (3, text_of("main"))]);
        chunk.constants(CLASS, [(1, number(1))]);
        chunk.constants(METHOD, [(1, [number(1), number(2)].concat()), (2, [number(1), number(3)].concat())]);
        chunk.constants(FRAME_TYPE, [(1, text_of("Interpreted"))]);
        chunk.constants(STACK_TRACE, [(1, stack_of(&[1, 2]))]);
        chunk.constants(OLD_OBJECT, [(1, [number(4096), number(1)].concat())]);
        chunk
    }

    /// Adds constants of a type.
    pub(crate) fn constants(&mut self, class: u64, constants: impl IntoIterator<Item = Constant>) {
        self.pools.push((class, constants.into_iter().collect()));
    }

    /// Adds an event; the first one of its name declares the type.
    pub(crate) fn event(&mut self, name: &str, fields: &[(&str, Field<'_>)]) {
        let class = match self.classes.iter().find(|(_, known, _)| known == name) {
            Some((class, ..)) => *class,
            None => {
                let class = FIRST_EVENT + self.classes.len() as u64;
                let layouts = fields.iter().map(|(name, value)| match value {
                    Field::Long(_) => ((*name).to_owned(), LONG, false, false),
                    Field::Text(_) => ((*name).to_owned(), TEXT, false, false),
                    Field::Constant(class, _) => ((*name).to_owned(), *class, true, false),
                });
                self.classes.push((class, name.to_owned(), layouts.collect()));
                class
            }
        };
        let mut content = number(class);
        for (_, value) in fields {
            match value {
                Field::Long(value) | Field::Constant(_, value) => content.extend(number(*value)),
                Field::Text(text) => content.extend(text_of(text)),
            }
        }
        self.events.extend(sized(content));
    }

    /// The type that events of this name have, for settings of them.
    pub(crate) fn class_of(&self, name: &str) -> u64 {
        self.classes.iter().find(|(_, known, _)| known == name).map_or(0, |(class, ..)| *class)
    }

    /// The bytes of the chunk, which lasts a second.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut pools = [number(1), number(0), number(0), number(0), vec![0], number(self.pools.len() as u64)].concat();
        for (class, constants) in &self.pools {
            pools.extend(number(*class));
            pools.extend(number(constants.len() as u64));
            for (key, value) in constants {
                pools.extend(number(*key));
                pools.extend_from_slice(value);
            }
        }
        let body = [self.events.clone(), sized(pools)].concat();
        let metadata = sized(self.metadata());
        let size = (68 + body.len() + metadata.len()) as u64;
        let mut bytes = b"FLR\0\0\x02\0\x01".to_vec();
        for word in [size, 68, 68 + body.len() as u64, self.start, 1_000_000_000, 0, 1_000_000_000] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend([0, 0, 0, 1]);
        bytes.extend(body);
        bytes.extend(metadata);
        bytes
    }

    fn metadata(&self) -> Vec<u8> {
        let mut strings: Vec<String> = Vec::new();
        let mut intern = |text: &str| {
            let known = strings.iter().position(|known| known == text);
            number(known.unwrap_or_else(|| {
                strings.push(text.to_owned());
                strings.len() - 1
            }) as u64)
        };
        let mut element = |name: &str, attributes: &[(&str, String)], children: usize| {
            let mut bytes = [intern(name), number(attributes.len() as u64)].concat();
            for (key, value) in attributes {
                bytes.extend(intern(key));
                bytes.extend(intern(value));
            }
            bytes.extend(number(children as u64));
            bytes
        };
        let mut tree = element("root", &[], 1);
        tree.extend(element("metadata", &[], self.classes.len()));
        for (class, name, fields) in &self.classes {
            tree.extend(element("class", &[("id", class.to_string()), ("name", name.clone())], fields.len()));
            for (name, class, constant, array) in fields {
                let mut attributes = vec![("name", name.clone()), ("class", class.to_string())];
                if *constant {
                    attributes.push(("constantPool", "true".to_owned()));
                }
                if *array {
                    attributes.push(("dimension", "1".to_owned()));
                }
                tree.extend(element("field", &attributes, 0));
            }
        }
        let texts: Vec<u8> = strings.iter().flat_map(|text| text_of(text)).collect();
        [number(0), number(0), number(0), number(1), number(strings.len() as u64), texts, tree].concat()
    }
}

/// A stack of methods, the leaf first.
pub(crate) fn stack_of(methods: &[u64]) -> Vec<u8> {
    let frames = methods.iter().flat_map(|method| [number(*method), number(10), number(1)].concat());
    number(methods.len() as u64).into_iter().chain(frames).collect()
}

/// A number of variable length.
pub(crate) fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < 8 && value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A text in place.
pub(crate) fn text_of(text: &str) -> Vec<u8> {
    [vec![3], number(text.len() as u64), text.as_bytes().to_vec()].concat()
}

/// An event with its size in front, which counts itself.
fn sized(content: Vec<u8>) -> Vec<u8> {
    let size = content.len() as u64 + 4;
    // Four bytes whatever the size is.
    let mut bytes: Vec<u8> = (0..4).map(|place| (size >> (7 * place)) as u8 | 0x80).collect();
    bytes[3] &= 0x7f;
    bytes.extend(content);
    bytes
}
