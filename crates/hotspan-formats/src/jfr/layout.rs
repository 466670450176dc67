//! The metadata of a chunk: which types there are, and which fields each has.

use hashbrown::HashMap;

use super::cursor::{Cursor, JfrString};
use crate::file_error::Result;

/// A type that a chunk declares.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) fields: Vec<FieldLayout>,
    pub(super) shape: Shape,
}

/// What the values of a type look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A whole number of this many bytes where numbers are not compressed.
    Number(u64),
    /// Always this many bytes: floats, doubles, bytes and booleans.
    Fixed(u64),
    Text,
    /// Its fields one after another.
    Fields,
}

/// A field of a type.
#[derive(Debug, Clone)]
pub(super) struct FieldLayout {
    pub(super) name: String,
    pub(super) class: u64,
    pub(super) constant: bool,
    pub(super) array: bool,
}

/// All types of a chunk, by id.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    classes: HashMap<u64, Class>,
}

/// How deep types may nest in each other; the JDK needs three.
const MOST_NESTING: usize = 16;

/// Work that a chunk may cause by skipping. Types without fields take no bytes, so bytes alone don't bound it.
#[derive(Debug)]
pub(super) struct SkipBudget(u64);

impl SkipBudget {
    pub(super) fn for_chunk(bytes: usize) -> Self {
        Self(bytes as u64 * 8 + 1_000_000)
    }

    fn spend(&mut self, cursor: &Cursor<'_>) -> Result<()> {
        self.0 =
            self.0.checked_sub(1).ok_or_else(|| cursor.malformed("types that take bytes", "types that take none"))?;
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Element {
    name: usize,
    attributes: Vec<(usize, usize)>,
}

impl Layouts {
    /// Reads a metadata event, after its size and type.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        cursor.long()?;
        cursor.long()?;
        cursor.long()?;
        let mut strings = Vec::new();
        for _ in 0..cursor.count()? {
            strings.push(match cursor.string()? {
                JfrString::Text(text) => text.into_owned(),
                _ => String::new(),
            });
        }
        let mut layouts = Self::default();
        // Elements nest; the stack holds how many children of each are still to come, and the class it is in.
        let mut open: Vec<(usize, Option<u64>)> = vec![(1, None)];
        while let Some((remaining, class)) = open.last_mut() {
            if *remaining == 0 {
                open.pop();
                continue;
            }
            *remaining -= 1;
            let within = *class;
            let (element, children) = Self::element(cursor)?;
            let text = |index: usize| strings.get(index).map_or("", String::as_str);
            let attribute = |name: &str| {
                element.attributes.iter().find(|(key, _)| text(*key) == name).map(|(_, value)| text(*value))
            };
            let mut class = within;
            match text(element.name) {
                "class" => {
                    let id = attribute("id").and_then(|id| id.parse().ok());
                    let Some(id) = id else { return Err(cursor.malformed("a class with an id", "none")) };
                    let name = attribute("name").unwrap_or_default().to_owned();
                    let shape = shape_of(&name);
                    layouts.classes.insert(id, Class { name, fields: Vec::new(), shape });
                    class = Some(id);
                }
                "field" => {
                    let field = FieldLayout {
                        name: attribute("name").unwrap_or_default().to_owned(),
                        class: attribute("class").and_then(|class| class.parse().ok()).unwrap_or(0),
                        constant: attribute("constantPool") == Some("true"),
                        array: attribute("dimension").is_some_and(|dimension| dimension != "0"),
                    };
                    if let Some(class) = within.and_then(|id| layouts.classes.get_mut(&id)) {
                        class.fields.push(field);
                    }
                }
                _ => {}
            }
            if children > 0 {
                if open.len() > 64 {
                    return Err(cursor.malformed("metadata of at most 64 levels", "more"));
                }
                open.push((children, class));
            }
        }
        Ok(layouts)
    }

    fn element(cursor: &mut Cursor<'_>) -> Result<(Element, usize)> {
        let mut element = Element { name: cursor.int()? as usize, attributes: Vec::new() };
        for _ in 0..cursor.count()? {
            element.attributes.push((cursor.int()? as usize, cursor.int()? as usize));
        }
        let children = cursor.count()?;
        Ok((element, children))
    }

    pub(super) fn class(&self, id: u64) -> Option<&Class> {
        self.classes.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Class)> {
        self.classes.iter().map(|(id, class)| (*id, class))
    }

    /// Skips the value of a field.
    pub(super) fn skip_field(
        &self,
        field: &FieldLayout,
        cursor: &mut Cursor<'_>,
        budget: &mut SkipBudget,
    ) -> Result<()> {
        self.skip(field, cursor, budget, 0)
    }

    /// Skips a whole value of this type.
    pub(super) fn skip_value(&self, class: u64, cursor: &mut Cursor<'_>, budget: &mut SkipBudget) -> Result<()> {
        self.skip_class(class, cursor, budget, 0)
    }

    fn skip(&self, field: &FieldLayout, cursor: &mut Cursor<'_>, budget: &mut SkipBudget, depth: usize) -> Result<()> {
        budget.spend(cursor)?;
        let count = if field.array { cursor.count()? } else { 1 };
        for _ in 0..count {
            if field.constant {
                cursor.long()?;
            } else {
                self.skip_class(field.class, cursor, budget, depth)?;
            }
        }
        Ok(())
    }

    fn skip_class(&self, id: u64, cursor: &mut Cursor<'_>, budget: &mut SkipBudget, depth: usize) -> Result<()> {
        budget.spend(cursor)?;
        let Some(class) = self.class(id) else {
            return Err(cursor.malformed("a value of a declared type", format!("type {id}")));
        };
        match class.shape {
            Shape::Number(width) => cursor.number(width).map(drop),
            Shape::Fixed(width) => cursor.take(width).map(drop),
            Shape::Text => cursor.string().map(drop),
            Shape::Fields if depth == MOST_NESTING => {
                Err(cursor.malformed("types nested at most 16 deep", &class.name))
            }
            Shape::Fields => class.fields.iter().try_for_each(|field| self.skip(field, cursor, budget, depth + 1)),
        }
    }
}

fn shape_of(name: &str) -> Shape {
    match name {
        "boolean" | "byte" => Shape::Fixed(1),
        "float" => Shape::Fixed(4),
        "double" => Shape::Fixed(8),
        "char" | "short" => Shape::Number(2),
        "int" => Shape::Number(4),
        "long" => Shape::Number(8),
        "java.lang.String" => Shape::Text,
        _ => Shape::Fields,
    }
}
