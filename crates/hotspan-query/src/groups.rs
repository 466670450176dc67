//! Series by the labels that a question tells them apart by.

use hashbrown::HashMap;
use hotspan_model::Labels;
use hotspan_model::selector::label_value;

use crate::series::SeriesEntry;

/// Groups of series.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// What each group has in common.
    pub(crate) labels: Vec<Labels>,
    /// For each series, in the order given, its group.
    pub(crate) of_series: Vec<usize>,
}

impl Groups {
    /// Groups series by these labels; by none makes one group of all.
    pub(crate) fn of(entries: &[SeriesEntry], group_by: &[String]) -> Self {
        let mut groups = Self::default();
        let mut index: HashMap<Labels, usize> = HashMap::new();
        for entry in entries {
            let group = *index.entry(shared(&entry.labels, group_by)).or_insert_with_key(|labels| {
                groups.labels.push(labels.clone());
                groups.labels.len() - 1
            });
            groups.of_series.push(group);
        }
        groups
    }

    /// The group that something with these labels is in, if there is one.
    pub(crate) fn of_labels(&self, labels: &Labels, group_by: &[String]) -> Option<usize> {
        let shared = shared(labels, group_by);
        self.labels.iter().position(|group| *group == shared)
    }
}

/// What something with these labels has in common with its group.
fn shared(labels: &Labels, group_by: &[String]) -> Labels {
    Labels::from_pairs(group_by.iter().filter_map(|name| Some((name.as_str(), label_value(labels, name)?))))
}
