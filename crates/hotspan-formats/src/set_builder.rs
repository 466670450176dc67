//! Fills the tables of a [`ProfileSet`], each row once.

use std::hash::Hash;

use hashbrown::HashMap;
use hotspan_model::profile::Thread;
use hotspan_model::{Labels, Link, ProfileSet};

/// A set under construction.
#[derive(Debug, Default)]
pub(crate) struct SetBuilder<'a> {
    /// The set so far.
    pub(crate) set: ProfileSet<'a>,
    labels: HashMap<Labels, u32>,
    threads: HashMap<Thread<'a>, u32>,
    attributes: HashMap<String, u32>,
    links: HashMap<Link, u32>,
}

impl<'a> SetBuilder<'a> {
    /// Index of a label set.
    pub(crate) fn labels(&mut self, labels: Labels) -> u32 {
        intern(&mut self.labels, &mut self.set.label_sets, labels)
    }

    /// Index of a thread.
    pub(crate) fn thread(&mut self, thread: Thread<'a>) -> u32 {
        intern(&mut self.threads, &mut self.set.threads, thread)
    }

    /// Index of a set of attributes in JSON.
    pub(crate) fn attributes(&mut self, json: String) -> u32 {
        intern(&mut self.attributes, &mut self.set.attribute_sets, json)
    }

    /// Index of a link.
    pub(crate) fn link(&mut self, link: Link) -> u32 {
        intern(&mut self.links, &mut self.set.links, link)
    }
}

/// Index of a row in a table whose first row is the default one.
fn intern<T: Clone + Eq + Hash + Default>(index: &mut HashMap<T, u32>, table: &mut Vec<T>, row: T) -> u32 {
    if row == T::default() {
        return 0;
    }
    *index.entry(row).or_insert_with_key(|row| {
        table.push(row.clone());
        (table.len() - 1) as u32
    })
}
